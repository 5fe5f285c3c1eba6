"""The stack around a metric: asks once, keeps everything, changes no number."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyscore.errors import ContractError, ExecutionError, MissingInput
from whyscore.protocols import CorpusMetric, Metric, RowMetric
from whyscore.registry import build, register
from whyscore.scoring.executors import Processes, Serial
from whyscore.scoring.rows import Incomplete, orient
from whyscore.scoring.stack import Cost, batches, cost, prepare, require
from whyscore.scoring.store import Store
from whyscore.types import FloatVector, Inputs, Segment, Signature


@dataclass(frozen=True)
class Spy:
    """Scores by length and remembers what it was asked."""

    calls: list[list[Segment]] = field(default_factory=list, compare=False)
    inputs: Inputs = Inputs.HYPOTHESIS | Inputs.REFERENCES
    higher_is_better: bool = True
    stable: bool = True

    def signature(self) -> Signature:
        return Signature("spy", (("version", "1"),), self.stable)

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        self.calls.append(list(segments))
        if any("explode" in segment.hypothesis for segment in segments):
            raise ZeroDivisionError("boom")
        return np.array([np.nan if "nan" in s.hypothesis else float(len(s.hypothesis)) for s in segments])


def segments(*texts: str) -> list[Segment]:
    return [Segment(text, "the source", ("a reference",)) for text in texts]


def test_equal_questions_are_asked_once() -> None:
    spy = Spy()
    asked = [
        Segment("a", "s1", ("r",)),
        Segment("a", "s2", ("r",)),
        Segment("bb", "s1", ("r",)),
        Segment("a", None, ("q",)),
    ]
    assert prepare(spy).score(asked).tolist() == [1, 1, 2, 1]
    assert len(spy.calls) == 1
    assert spy.calls[0] == [Segment("a", None, ("r",)), Segment("bb", None, ("r",)), Segment("a", None, ("q",))]


def test_what_is_stored_is_not_asked_again(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    asked = segments("a", "bb", "ccc")
    first = prepare(Spy(), store=store).score(asked[:2])
    spy = Spy()
    assert cost(spy, [*asked, *asked], store) == Cost(6, 3, 2)
    assert prepare(spy, store=store).score(asked).tolist() == [*first, 3]
    assert spy.calls == [[asked[2].only(spy.inputs)]]


def test_scores_that_no_text_can_name_are_not_stored(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    prepare(Spy(stable=False), store=store).score(segments("a"))
    assert store.held() == []
    assert cost(Spy(stable=False), segments("a"), store) == Cost(1, 1, 0)


def test_each_batch_is_stored_as_soon_as_it_is_there(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")

    class Interrupted(Spy):
        def score(self, segments: Sequence[Segment]) -> FloatVector:
            if len(self.calls) == 2:
                raise KeyboardInterrupt
            return super().score(segments)

    with pytest.raises(KeyboardInterrupt):
        prepare(Interrupted(), store=store, size=2).score(segments("eeeee", "dddd", "ccc", "bb", "a"))
    assert [held.segments for held in store.held()] == [4]


@given(st.lists(st.text(max_size=30), max_size=40), st.integers(1, 7), st.integers(1, 100))
def test_batches_hold_every_index_once_and_keep_their_limits(texts: list[str], size: int, characters: int) -> None:
    asked = segments(*texts)
    found = list(batches(asked, size, characters))
    assert sorted(i for batch in found for i in batch) == list(range(len(texts)))
    assert all(len(batch) <= size for batch in found)
    assert all(batch == list(range(batch[0], batch[-1] + 1)) for batch in found), "probes of one text stay together"
    longest = [max(1, *(len(texts[i]) for i in batch)) for batch in found]
    assert longest == sorted(longest, reverse=True)
    assert all(len(batch) == 1 or len(batch) * most <= characters for batch, most in zip(found, longest, strict=True))


@given(st.lists(st.text(max_size=10), max_size=12), st.integers(1, 5))
def test_batch_size_changes_no_number(texts: list[str], size: int) -> None:
    assert prepare(Spy(), size=size).score(segments(*texts)).tolist() == [
        (np.nan if "nan" in text else len(text)) for text in texts
    ]


def test_a_failing_text_is_named_and_the_rest_is_kept(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    asked = segments("a", "explode", "bb", "nan", "explode")
    with pytest.raises(Incomplete) as caught:
        prepare(Spy(), store=store).score(asked)
    assert str(caught.value) == "spy failed on 'explode': ZeroDivisionError: boom (and 2 more)"
    scores, failures = prepare(Spy(), store=store).attempt(asked)
    assert scores.tolist()[::2][:2] == [1, 2]
    assert sorted(failures) == [1, 3, 4]
    assert failures[3] == "spy gave nan for 'nan'; scores must be finite"
    assert [held.segments for held in store.held()] == [2]


def test_a_wrong_number_of_scores_breaks_the_contract() -> None:
    class Short(Spy):
        def score(self, segments: Sequence[Segment]) -> FloatVector:
            return np.zeros(len(segments) - 1)

    message = "spy was asked about 2 segment(s) and gave shape (1,), expected (2,)"
    with pytest.raises(ContractError, match=re.escape(message)):
        prepare(Short()).score(segments("a", "b"))


@pytest.mark.parametrize(
    ("metric", "segment", "message"),
    [
        (Spy(), Segment("a"), "spy needs a reference: segment 0 has no reference. Give references with -r"),
        (
            Spy(),
            Segment("a", None, ("",)),
            "spy needs a reference: segment 0 has no reference. Give references with -r",
        ),
        (Spy(inputs=Inputs.SOURCE), Segment("a"), "spy needs a source: segment 0 has no source. Give a source with -s"),
    ],
)
def test_a_metric_that_lacks_its_input_is_not_asked(metric: Spy, segment: Segment, message: str) -> None:
    with pytest.raises(MissingInput, match=re.escape(message)):
        require(metric, [segment])
    assert metric.calls == []


def test_a_probe_may_hide_the_whole_reference_but_not_do_without() -> None:
    spy = Spy()
    prepare(spy).score([Segment("a", None, ("",))])
    with pytest.raises(MissingInput, match=re.escape("segment 0 has no reference")):
        prepare(spy).score([Segment("a")])


def test_a_prepared_metric_offers_what_the_metric_offers() -> None:
    assert isinstance(prepare(build("chrf")), CorpusMetric)
    assert isinstance(prepare(build("rouge")), RowMetric)
    assert not isinstance(prepare(build("rouge")), CorpusMetric)
    assert isinstance(prepare(Spy()), Metric)
    assert not isinstance(prepare(Spy()), RowMetric)
    assert prepare(prepare(Spy())).score([]).shape == (0,)


def test_corpus_rows_and_totals_are_the_metrics_own(tmp_path: Path) -> None:
    metric = build("chrf")
    asked = [Segment("the cat sat", references=("the cat sat down",)), Segment("a dog", references=("the dog",))]
    for store in (None, Store(tmp_path / "s"), Store(tmp_path / "s")):
        prepared = prepare(metric, store=store)
        assert isinstance(prepared, CorpusMetric)
        rows = prepared.statistics(asked)
        assert np.array_equal(rows, metric.statistics(asked))
        assert np.array_equal(prepared.score(asked), metric.score(asked))
        assert prepared.total(rows.sum(axis=0)) == metric.total(rows.sum(axis=0))
        assert prepared.segment_signature() == metric.segment_signature()


def test_lower_is_better_is_turned_once() -> None:
    turned = orient(Spy(higher_is_better=False))
    assert turned.score(segments("aa")).tolist() == [-2]
    assert turned.higher_is_better
    assert dict(turned.signature().facts)["sign"] == "turned"
    assert orient(turned) is turned
    assert orient(Spy()).score(segments("aa")).tolist() == [2]


def test_processes_give_the_same_numbers_as_this_process() -> None:
    asked = [Segment(f"word {i} and {i * i}", references=(f"word {i + 1} and {i}",)) for i in range(300)]
    for metric in (build("ter"), build("bleu"), build("token_f1")):
        serial = prepare(metric, executor=Serial(), size=32).score(asked)
        assert np.array_equal(prepare(metric, executor=Processes(2), size=32).score(asked), serial)


def test_workers_build_a_metric_again_when_its_file_changes(tmp_path: Path) -> None:
    executor, asked = Processes(1), [Segment("a"), Segment("b")]
    for value in (1.0, 2.0):
        path = tmp_path / "mine.py"
        path.write_text(f"def score(segments):\n    return [{value} for _ in segments]\n")
        assert prepare(build(f"{path}:score"), executor=executor).score(asked).tolist() == [value, value]


def test_workers_refuse_a_metric_that_is_another_than_at_the_start(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("def score(segments):\n    return [1.0 for _ in segments]\n")
    metric = build(f"{path}:score")
    prepared = prepare(metric, executor=Processes(1))
    prepared.signature()
    path.write_text("def score(segments):\n    return [2.0 for _ in segments]\n")
    with pytest.raises(ExecutionError, match="changed while it was scored"):
        prepared.score([Segment("a")])


def test_workers_do_not_run_the_users_script_again(tmp_path: Path) -> None:
    script = (
        "import whyscore as ws\n"
        "from whyscore.scoring.executors import Processes\n"
        "print('started')\n"
        "segments = [ws.Segment(str(i), references=('1 2 3',)) for i in range(200)]\n"
        "print(ws.score(segments, 'token_f1', resources=ws.Resources(executor=Processes(2))).values.sum())\n"
    )
    (tmp_path / "mine.py").write_text(script, "utf-8")
    by_name = subprocess.run([sys.executable, str(tmp_path / "mine.py")], capture_output=True, text=True, check=True)
    by_pipe = subprocess.run([sys.executable, "-"], input=script, capture_output=True, text=True, check=True)
    assert by_name.stdout == by_pipe.stdout
    assert by_name.stdout.count("started") == 1


def test_workers_end_when_the_process_that_started_them_is_killed(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "import os, time\n"
        "def score(segments):\n"
        "    open(f'{os.path.dirname(__file__)}/{os.getpid()}.pid', 'w').close()\n"
        "    time.sleep(60)\n"
    )
    script = (
        "import whyscore as ws\n"
        "from whyscore.scoring.executors import Processes\n"
        f"ws.score([ws.Segment('a')], {f'{tmp_path}/slow.py:score'!r}, resources=ws.Resources(executor=Processes(1)))\n"
    )
    with subprocess.Popen([sys.executable, "-c", script]) as parent:
        while not (found := list(tmp_path.glob("*.pid"))):
            assert parent.poll() is None
            time.sleep(0.05)
        parent.kill()
    for _ in range(100):
        try:
            os.kill(int(found[0].stem), 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("the worker outlived its parent")


def test_a_failure_in_a_worker_is_named_like_one_at_home(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("def score(segments):\n    return [1 / len(s.hypothesis) for s in segments]\n")
    prepared, asked = prepare(build(f"{path}:score"), executor=Processes(2)), [Segment("ab"), Segment("")]
    with pytest.raises(Incomplete, match="ZeroDivisionError"):
        prepared.score(asked)
    scores, failures = prepared.attempt(asked)
    assert scores[0] == 0.5
    assert list(failures) == [1]
    assert "ZeroDivisionError" in failures[1]


def test_a_worker_that_dies_leaves_a_clear_word_and_what_was_done(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("import os, signal\ndef score(segments):\n    os.kill(os.getpid(), signal.SIGKILL)\n")
    with pytest.raises(ExecutionError, match=re.escape("died (killed, or out of memory); what was scored is kept.")):
        prepare(build(f"{path}:score"), executor=Processes(2)).score([Segment("a")])
    assert prepare(build("token_f1"), executor=Processes(2)).score([Segment("a", references=("a",))]).tolist() == [1.0]


def test_a_name_known_to_one_process_only_is_explained() -> None:
    register("metric", "spy_for_this_test", Spy)
    with pytest.raises(ExecutionError, match=re.escape("The name is unknown to the worker processes")):
        prepare(Spy(), executor=Processes(2)).score(segments("a"))
