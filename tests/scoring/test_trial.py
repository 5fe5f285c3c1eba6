"""A trial tells how fast a metric is, and leaves nothing behind."""

import time
from collections.abc import Sequence

import numpy as np

from support.cli import Run
from whyscore.scoring.stack import rate
from whyscore.types import FloatVector, Inputs, Segment, Signature


class Slow:
    """Takes a fixed time for each text, after a long first call."""

    inputs = Inputs.HYPOTHESIS
    higher_is_better = True

    def __init__(self) -> None:
        self.seen: list[int] = []

    def signature(self) -> Signature:
        return Signature("slow")

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        time.sleep(0.002 * len(segments) if self.seen else 0.5)
        self.seen.append(len(segments))
        return np.ones(len(segments))


def test_the_first_call_is_not_counted_and_the_trial_is_short() -> None:
    metric = Slow()
    found = rate(metric, [Segment(str(i)) for i in range(10_000)])
    assert 50 < found <= 500  # the first call alone would make it 2
    assert metric.seen[0] == 1
    assert sum(metric.seen) < 400


def test_few_texts_are_all_there_is() -> None:
    assert rate(Slow(), [Segment("a")]) <= 500


def test_a_dry_run_tells_the_time_beside_the_counts(run: Run) -> None:
    command = ["--sample", "-m", "chrf", "--store", "none", "--dry-run"]
    done = run("explain", *command, "-e", "erasure")
    assert done.code == 0
    assert " distinct, 0 already stored\n" in done.out
    assert "chrf erasure: about " in done.err
    assert " for one worker, from a trial run here (" in done.err
    assert run("score", *command, "-q").err == ""
