"""Progress by stages: lines for logs, and the counts behind bars."""

from whyscore.cli.setup import INTERVAL, Lines
from whyscore.scoring.stack import Stages


def test_a_log_gets_a_line_now_and_then_and_one_per_long_stage() -> None:
    said: list[str] = []
    now = [0.0]
    lines = Lines(said.append, clock=lambda: now[0])
    lines.asked(100)
    lines.answered(10, stored=True)
    now[0] = INTERVAL
    lines.answered(40, stored=False)
    now[0] = INTERVAL + 1
    lines.answered(50, stored=False)
    lines.begin("explain", 20)
    now[0] += 1
    lines.asked(500)  # texts do not count where segments do
    lines.advance(20)
    lines.begin("test")
    assert said == [
        "score: 50 of 100 (10 from the store), about 10 seconds left",
        "score: done 100 of 100 (10 from the store) in 11 seconds",
    ]
    now[0] += 2 * INTERVAL
    lines.begin("test", 3)
    lines.finish()
    assert said[2:] == ["test: 0 of 3", "test: done 0 of 3 in 20 seconds"]


def test_a_stage_counts_texts_or_what_it_says_itself() -> None:
    stages = Stages()
    stages.asked(3)
    stages.answered(2, stored=True)
    assert (stages.stage, stages.total, stages.done, stages.stored) == ("score", 3, 2, 2)
    stages.begin("explain", 5)
    stages.asked(3)
    stages.answered(3, stored=False)
    stages.advance(4)
    assert (stages.stage, stages.total, stages.done, stages.stored) == ("explain", 5, 4, 0)
