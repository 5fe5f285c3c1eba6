"""Any function as a metric: found, called, and its answers checked."""

import gc
import importlib
import io
import math
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from textwrap import indent

import numpy as np
import pytest

from whyscore.analysis.explain import explain
from whyscore.cli.main import INTERRUPTED
from whyscore.errors import ContractError, MissingInput, SpecError, TextFailure, UnknownName, UserError
from whyscore.metrics.callable import Callable, find
from whyscore.registry import build
from whyscore.types import Inputs, Segment, Side

SEGMENTS = [Segment("a cat", "eine Katze", ("a dog", "my cat")), Segment("no", "nein", ("nope",))]

FILE = """
from dataclasses import dataclass

LIMIT = 3

@dataclass
class Weight:
    value: float = 2.0

def words(segments):
    return [Weight().value * len(segment.hypothesis.split()) for segment in segments]

def same_length(hypotheses, references, *, scale=1):
    return [scale * (len(h) == len(r)) for h, r in zip(hypotheses, references)]

class Scorers:
    @staticmethod
    def zero(segments):
        return [0 for _ in segments]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "metric.py"
    path.write_text(FILE, encoding="utf-8")
    return path


def count(segments: Sequence[Segment]) -> list[int]:
    return [len(segment.references) for segment in segments]


def test_a_function_of_segments_is_called_once_with_all_of_them() -> None:
    calls: list[Sequence[Segment]] = []

    def remember(segments: Sequence[Segment]) -> list[float]:
        calls.append(segments)
        return [1.0] * len(segments)

    assert Callable(remember).score(SEGMENTS).tolist() == [1, 1]
    assert calls == [SEGMENTS]


def test_a_function_of_two_lists_gets_hypotheses_and_first_references() -> None:
    asked: list[tuple[list[str], list[str]]] = []

    def pairs(hypotheses: list[str], references: list[str]) -> np.ndarray:
        asked.append((hypotheses, references))
        return np.array([len(h) - len(r) for h, r in zip(hypotheses, references, strict=True)], dtype=np.int32)

    scores = Callable(pairs).score(SEGMENTS)
    assert scores.tolist() == [0, -2]
    assert scores.dtype == np.float64
    assert asked == [(["a cat", "no"], ["a dog", "nope"])]


def test_a_function_that_reads_source_and_not_references_gets_the_sources() -> None:
    def pairs(hypotheses: list[str], sources: list[str]) -> list[bool]:
        return [h in s for h, s in zip(hypotheses, sources, strict=True)]

    metric = Callable(pairs, reads=("hypothesis", "source"))
    assert metric.inputs == Inputs.HYPOTHESIS | Inputs.SOURCE
    assert metric.score([Segment("ein", "nein"), Segment("no", "nein")]).tolist() == [1, 0]
    with pytest.raises(MissingInput, match=re.escape("needs the source: segment 1 (hypothesis 'a') has none")):
        metric.score([Segment("a")])


def test_arguments_with_defaults_do_not_count() -> None:
    def scaled(segments: Sequence[Segment], scale: float = 2.0, *, shift: float = 1.0) -> list[float]:
        return [scale + shift for _ in segments]

    assert Callable(scaled).score(SEGMENTS).tolist() == [3, 3]


def test_takes_overrides_what_the_arguments_say() -> None:
    def anything(*arguments: object) -> list[float]:
        return [float(len(arguments))] * 2

    assert Callable(anything, takes="texts").score(SEGMENTS).tolist() == [2, 2]
    assert Callable(anything, takes="segments").score(SEGMENTS).tolist() == [1, 1]
    message = "anything has 0 arguments without default (none), expected one (segments) or two"
    with pytest.raises(SpecError, match=re.escape(message)):
        Callable(anything).score(SEGMENTS)


def test_three_arguments_are_one_too_many() -> None:
    def three(hypotheses: list[str], sources: list[str], references: list[str]) -> list[float]:
        return [0.0 for _ in (hypotheses, sources, references)]

    message = "three has 3 arguments without default (hypotheses, sources, references), expected one"
    with pytest.raises(SpecError, match=re.escape(message)):
        Callable(three).score(SEGMENTS)


def test_an_object_that_can_be_called_is_a_function() -> None:
    class Counting:
        def __call__(self, segments: Sequence[Segment]) -> list[int]:
            return [7 for _ in segments]

    metric = Callable(Counting())
    assert metric.score(SEGMENTS).tolist() == [7, 7]
    assert "Counting" in metric.name


def test_functions_are_found_in_files(file: Path) -> None:
    assert build(f"{file}:words").score(SEGMENTS).tolist() == [4, 2]
    assert build(f"{file}:same_length").score(SEGMENTS).tolist() == [1, 0]
    assert build(f"{file}:Scorers.zero").score(SEGMENTS).tolist() == [0, 0]


def test_functions_are_found_in_modules(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.rename(file.with_name("importable_metric.py"))
    monkeypatch.syspath_prepend(str(file.parent))
    metric = build("importable_metric:words")
    assert metric.score(SEGMENTS).tolist() == [4, 2]
    assert re.fullmatch(r'callable\(target="importable_metric:words"\)\|digest:[0-9a-f]{12}', str(metric.signature()))


def test_the_signature_of_a_file_names_its_content(file: Path) -> None:
    signature = Callable(f"{file}:words", version="2").signature()
    assert signature.stable
    assert [key for key, _ in signature.facts] == ["digest", "version"]
    other = file.with_name("other.py")
    other.write_text(FILE + "\n# changed\n", encoding="utf-8")
    assert dict(Callable(f"{other}:words").signature().facts)["digest"] != dict(signature.facts)["digest"]
    same = file.with_name("same.py")
    same.write_text(FILE, encoding="utf-8")
    assert dict(Callable(f"{same}:words").signature().facts)["digest"] == dict(signature.facts)["digest"]
    assert build(signature.spec).signature() == signature


def test_a_function_stays_what_it_was_when_its_file_changes(file: Path) -> None:
    metric = Callable(f"{file}:words")
    before = metric.signature(), metric.score(SEGMENTS).tolist()
    file.write_text("def words(segments): return [0 for _ in segments]\n", encoding="utf-8")
    assert (metric.signature(), metric.score(SEGMENTS).tolist()) == before


def test_a_changed_file_is_loaded_again_for_the_next_metric(file: Path) -> None:
    target = f"{file}:words"
    before = Callable(target).signature()
    assert Callable(target).score(SEGMENTS).tolist() == [4, 2]
    file.write_text("def words(segments): return [0 for _ in segments]\n", encoding="utf-8")
    assert Callable(target).score(SEGMENTS).tolist() == [0, 0]
    assert Callable(target).signature() != before


def rewrite(file: Path, text: str) -> None:
    """Change a file so that neither its size nor its time tells."""
    state = file.stat()
    assert state.st_size == len(text)
    file.write_text(text, encoding="utf-8")
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))


def test_a_module_beside_the_file_belongs_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytecode of the old text fits the new one by size and time, and is not taken for it."""
    monkeypatch.syspath_prepend(str(tmp_path))
    file, beside = tmp_path / "outer.py", tmp_path / "beside_outer.py"
    file.write_text("def score(segments):\n    from beside_outer import V\n    return [V for _ in segments]\n", "utf-8")
    beside.write_text("V = 1\n", "utf-8")
    signature = Callable(f"{file}:score").signature()
    assert Callable(f"{file}:score").score(SEGMENTS).tolist() == [1, 1]
    rewrite(beside, "V = 2\n")
    assert Callable(f"{file}:score").score(SEGMENTS).tolist() == [2, 2]
    assert Callable(f"{file}:score").signature() != signature


def score_with(folder: Path, name: str, helper: str) -> float:
    """Return the score of a metric file that gives the V of a module beside it."""
    file = folder / f"{name}.py"
    file.write_text(f"from {helper} import V\ndef score(segments):\n    return [V for _ in segments]\n", "utf-8")
    return float(Callable(f"{file}:score").score(SEGMENTS)[0])


def test_a_module_that_another_metric_imported_is_imported_again_when_it_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "helper_of_two.py").write_text("V = 1\n", "utf-8")
    assert score_with(tmp_path, "first", "helper_of_two") == 1
    module = sys.modules["helper_of_two"]
    assert score_with(tmp_path, "second", "helper_of_two") == 1
    assert sys.modules["helper_of_two"] is module
    (tmp_path / "helper_of_two.py").write_text("V = 2\n", "utf-8")
    assert score_with(tmp_path, "third", "helper_of_two") == 2
    assert module.V == 1


def test_a_module_that_was_imported_before_and_has_changed_is_imported_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    helper = tmp_path / "helper_imported_before.py"
    helper.write_text("V = 1\n", "utf-8")
    assert importlib.import_module("helper_imported_before").V == 1
    rewrite(helper, "V = 2\n")
    bytecode = {file: file.read_bytes() for file in tmp_path.rglob("*.pyc")}
    assert bytecode
    assert score_with(tmp_path, "only", "helper_imported_before") == 2
    assert {file: file.read_bytes() for file in tmp_path.rglob("*.pyc")} == bytecode


EAGER = "from helper_of_both import V\ndef score(segments):\n    return [V for _ in segments]\n"
LATE = "def score(segments):\n    from helper_of_both import V\n    return [V for _ in segments]\n"
OWN_PATH = "import sys\nsys.path.insert(0, __file__.rpartition('/')[0])\n"


@pytest.mark.parametrize("text", [EAGER, LATE, OWN_PATH + EAGER, OWN_PATH + LATE])
@pytest.mark.parametrize("path", ["", "1"])
def test_two_files_import_modules_of_the_same_name_each_from_beside_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, path: str
) -> None:
    """Otherwise the scores of one would be stored under the digest of the other."""
    monkeypatch.setattr(sys, "path", [*([str(tmp_path / path)] if path else []), *sys.path])
    for folder in ("1", "2"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "helper_of_both.py").write_text("from value_of_both import V\n", "utf-8")
        (tmp_path / folder / "value_of_both.py").write_text(f"V = {folder}\n", "utf-8")
        (tmp_path / folder / "metric.py").write_text(text, "utf-8")
    metrics = {folder: Callable(f"{tmp_path / folder / 'metric.py'}:score") for folder in ("1", "2")}
    for folder in ("2", "1", "1", "2"):
        assert metrics[folder].score(SEGMENTS).tolist() == [int(folder)] * 2
        assert Callable(metrics[folder].target).score(SEGMENTS).tolist() == [int(folder)] * 2


def test_a_module_that_somebody_else_imported_stays_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder, value in (("mine", 1), ("metric", 2)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "helper_of_mine.py").write_text(f"V = {value}\n", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path / "mine"))
    mine = importlib.import_module("helper_of_mine")
    assert score_with(tmp_path / "metric", "metric", "helper_of_mine") == 2
    assert sys.modules["helper_of_mine"] is mine


def test_a_module_beside_a_file_does_not_stand_for_an_installed_one(tmp_path: Path) -> None:
    (tmp_path / "sacrebleu.py").write_text("V = 0\n", "utf-8")
    text = "import sacrebleu\ndef score(segments):\n    return [len(sacrebleu.__path__) for _ in segments]\n"
    (tmp_path / "metric.py").write_text(text, "utf-8")
    for forget in (False, True):
        if forget:
            kept = sys.modules.pop("sacrebleu")
        assert Callable(f"{tmp_path / 'metric.py'}:score").score(SEGMENTS).tolist() == [1, 1]
    sys.modules["sacrebleu"] = kept


def test_a_module_that_imports_a_changed_one_is_imported_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "changing_helper.py").write_text("V = 1\n", "utf-8")
    (tmp_path / "steady_helper.py").write_text("from changing_helper import V\n", "utf-8")
    assert score_with(tmp_path, "steady_before", "steady_helper") == 1
    (tmp_path / "changing_helper.py").write_text("V = 2\n", "utf-8")
    assert score_with(tmp_path, "changed", "changing_helper") == 2
    assert score_with(tmp_path, "steady_after", "steady_helper") == 2
    (tmp_path / "changing_helper.py").write_text("V = 3\n", "utf-8")
    importlib.reload(sys.modules["changing_helper"])
    assert score_with(tmp_path, "steady_reloaded", "steady_helper") == 3


def test_a_module_that_is_as_it_was_before_is_imported_again_inside_a_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    file, helper = tmp_path / "late.py", tmp_path / "helper_of_late.py"
    file.write_text(
        "def score(segments):\n    from helper_of_late import V\n    return [V for _ in segments]\n", "utf-8"
    )
    for value in (1, 2, 1):
        helper.write_text(f"V = {value}\n", "utf-8")
        assert Callable(f"{file}:score").score(SEGMENTS).tolist() == [value, value]


def test_modules_of_a_package_that_a_metric_does_not_import_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    package = tmp_path / "held_package"
    package.mkdir()
    for name in ("__init__", "used", "held"):
        (package / f"{name}.py").write_text("V = 1\n", "utf-8")
    held, used = (importlib.import_module(f"held_package.{name}") for name in ("held", "used"))
    assert score_with(tmp_path, "of_package", "held_package.used") == 1
    assert sys.modules["held_package.used"] is not used
    assert importlib.import_module("held_package.held") is held
    assert sys.modules["held_package"].held is held


def test_the_program_itself_is_never_imported_again(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "V = 1\nif __name__ == '__main__':\n    import sys\n    from whyscore import Segment, build\n"
        "    print(build('of_program.py:score').score([Segment('a')]), '__main__' in sys.modules)\n",
        "utf-8",
    )
    (tmp_path / "of_program.py").write_text("from program import V\ndef score(segments):\n    return [V]\n", "utf-8")
    done = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, capture_output=True, check=False, timeout=60)
    assert done.stdout.decode() == "[1.] True\n", done.stderr


def test_a_module_that_changes_after_its_import_keeps_its_signature(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    file = tmp_path / "imported_once.py"
    file.write_text("def score(segments):\n    return [1 for _ in segments]\n", "utf-8")
    before = Callable("imported_once:score").signature()
    file.write_text("def score(segments):\n    return [2 for _ in segments]\n", "utf-8")
    with pytest.warns(UserWarning, match="has changed since it was imported"):
        assert Callable("imported_once:score").signature() == before


def test_a_function_made_in_python_has_no_stable_signature() -> None:
    signature = Callable(count, takes="segments", higher_is_better=False).signature()
    assert not signature.stable
    assert str(signature).startswith('callable("<')
    assert str(signature).endswith(':count>", takes="segments", higher_is_better=False)')
    with pytest.raises(SpecError):
        build(signature.spec).score(SEGMENTS)


def test_a_builtin_has_no_file_and_no_stable_signature() -> None:
    metric = Callable("builtins:len", takes="segments")
    assert not metric.signature().stable
    assert dict(metric.signature().facts)["digest"] == "none"


def test_nothing_is_asked_about_nothing() -> None:
    def refuse(segments: Sequence[Segment]) -> list[float]:
        raise AssertionError(segments)

    assert Callable(refuse).score([]).shape == (0,)


def test_everything_may_be_read_unless_said_otherwise() -> None:
    assert Callable(count).inputs == Inputs.HYPOTHESIS | Inputs.SOURCE | Inputs.REFERENCES
    assert Callable(count, reads=("hypothesis",)).inputs == Inputs.HYPOTHESIS


def answer(value: object) -> Callable:
    def give(segments: Sequence[Segment]) -> object:  # noqa: ARG001 - a metric's argument
        return value

    return Callable(give)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1.0], "give must return 2 numbers for 2 segments, got 1 numbers"),
        ([[1.0], [2.0]], "give must return 2 numbers for 2 segments, got an array of shape (2, 1)"),
        (3.5, "give must return 2 numbers for 2 segments, got the single number 3.5"),
        (["1.0", "2.0"], "give must return 2 numbers for 2 segments, got ['1.0', '2.0'] (list)"),
        (None, "give must return 2 numbers for 2 segments, got None (NoneType)"),
        ([1.0, None], "give must return 2 numbers for 2 segments, got [1.0, None] (list)"),
        ([1.0, [2.0]], "give must return 2 numbers for 2 segments, got list: "),
        (np.ma.array([1, 2], mask=[1, 0]), "give must return 2 numbers for 2 segments, got an array that masks some"),
        ([1j, 2j], "give must return 2 numbers for 2 segments, got [1j, 2j] (list)"),
        ([1.0, math.nan], "give gave nan for 'no'; scores must be finite"),
        ([math.inf, math.nan], "give gave inf for 'a cat' and 1 more; scores must be finite"),
    ],
)
def test_answers_that_are_no_scores_are_refused(value: object, message: str) -> None:
    with pytest.raises(ContractError, match=re.escape(message)):
        answer(value).score(SEGMENTS)


def test_a_function_that_fails_is_named_with_its_error() -> None:
    def broken(segments: Sequence[Segment]) -> list[float]:
        raise KeyError(segments[0].hypothesis)

    with pytest.raises(ContractError, match=re.escape("broken failed on 2 segments: KeyError: 'a cat'")) as caught:
        Callable(broken).score(SEGMENTS)
    assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(TextFailure, match=re.escape("broken failed on 'no': KeyError: 'no'")):
        Callable(broken).score(SEGMENTS[1:])


def test_a_function_that_names_what_it_reads_needs_it_too() -> None:
    assert Callable(count).needs == Inputs.HYPOTHESIS
    assert Callable(count, reads=("hypothesis", "references")).needs == Inputs.HYPOTHESIS | Inputs.REFERENCES


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    target = f"{tmp_path}/nowhere.py:score"
    with pytest.raises(SpecError, match=re.escape(f"no file '{tmp_path}/nowhere.py' for the function {target!r}")):
        build(target).score(SEGMENTS)


def test_a_function_that_is_not_there_is_answered_with_the_near_one(file: Path) -> None:
    message = (
        f"no function in {file} named 'word'. Did you mean 'words'? Known: Scorers, Weight, dataclass, same_length"
    )
    with pytest.raises(UnknownName, match=re.escape(message)):
        build(f"{file}:word").score(SEGMENTS)
    with pytest.raises(SpecError, match=re.escape(f"'LIMIT' in {file} is int, expected a function")):
        build(f"{file}:LIMIT").score(SEGMENTS)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("x = 1\ny = 1 / 0\n", "cannot be loaded: ZeroDivisionError: division by zero (line 2)"),
        ("x = 1\ndef f(:\n", "cannot be loaded: SyntaxError: invalid syntax (line 2)"),
        ("import surely_not_there\n", "cannot be loaded: ModuleNotFoundError: No module named 'surely_not_there'"),
    ],
)
def test_a_file_that_fails_is_named_with_the_line(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "broken.py"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=re.escape(f"{path} {message}")):
        build(f"{path}:f").score(SEGMENTS)


def test_a_module_that_is_not_there_is_named() -> None:
    message = "no module named 'surely_not_there': install it, or write path/file.py:function"
    with pytest.raises(SpecError, match=re.escape(message)):
        build("surely_not_there.inner:score").score(SEGMENTS)


def test_a_module_that_fails_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "failing_module.py").write_text("import surely_not_there\n", encoding="utf-8")
    (tmp_path / "raising_module.py").write_text("raise ValueError('no')\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UserError, match=re.escape("failing_module cannot be loaded: ModuleNotFoundError: No module")):
        build("failing_module:score").score(SEGMENTS)
    with pytest.raises(UserError, match=re.escape("raising_module cannot be loaded: ValueError: no")):
        build("raising_module:score").score(SEGMENTS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "nothing"}, "cannot read the function 'nothing': write package.module:function or path/file.py"),
        ({"target": 3}, "Callable: target is 3, expected a text or a function"),
        ({"target": count, "takes": "lists"}, "Callable: takes is 'lists', expected 'segments' or 'texts' or None"),
        (
            {"target": count, "reads": ("hypothesis", "reference")},
            "callable: no text of a segment named 'reference'. Did you mean 'references'? Known: hypothesis",
        ),
        (
            {"target": count, "reads": ("source",)},
            "callable: reads is ('source',), expected 'hypothesis' and what else",
        ),
    ],
)
def test_impossible_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        Callable(**options).score(SEGMENTS)  # type: ignore[arg-type]


def test_a_segment_without_reference_is_refused_where_texts_are_taken() -> None:
    def pairs(hypotheses: list[str], references: list[str]) -> list[float]:
        return [0.0 for _ in zip(hypotheses, references, strict=True)]

    with pytest.raises(MissingInput, match=re.escape("pairs needs a reference: segment 1 (hypothesis 'a') has none")):
        Callable(pairs).score([Segment("a")])


def leaving(segments: list[Segment]) -> list[float]:
    raise SystemExit(len(segments) - 2)


def leaving_at_once(segments: list[Segment]) -> list[float]:
    os._exit(len(segments) - 2)


def failing_badly(_: list[Segment]) -> list[float]:
    raise BaseException("mine")  # noqa: TRY002 - what hostile functions raise


def changing_segments(segments: list[Segment]) -> list[float]:
    for one in segments:
        object.__setattr__(one, "hypothesis", "x")
    return [0.0] * len(segments)


def changing(hypotheses: list[str], references: list[str]) -> list[float]:
    hypotheses.clear()
    return [0.0] * len(references)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (leaving, "tried to end the program on 2 segments: SystemExit: 0"),
        (leaving_at_once, "tried to end the program on 2 segments: SystemExit: 0"),
        (failing_badly, "tried to end the program on 2 segments: BaseException: mine"),
        (changing, "changed what it was given"),
        (changing_segments, "changed what it was given"),
    ],
)
def test_a_function_cannot_end_the_program_or_change_what_it_is_given(function: object, message: str) -> None:
    asked = [Segment("a", None, ("b",)), Segment("c", None, ("d",))]
    with pytest.raises(ContractError, match=re.escape(message)):
        Callable(function).score(asked)  # type: ignore[arg-type]
    assert asked == [Segment("a", None, ("b",)), Segment("c", None, ("d",))]


def test_a_process_that_a_function_starts_may_end_itself() -> None:
    def forking(segments: list[Segment]) -> list[float]:
        child = os.fork()
        if not child:
            os._exit(7)
        return [float(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))] * len(segments)

    assert Callable(forking).score([Segment("a")]).tolist() == [7.0]


def test_a_process_that_comes_back_from_a_function_ends_there(tmp_path: Path) -> None:
    forking = "import os\nif not os.fork():\n    raise ValueError\nos.wait()\nreturn [1.0] * len(segments)"
    process = start_command(tmp_path, forking, "-f", "jsonl")
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out.count('"kind": "totals"') == 1


@pytest.mark.parametrize(("code", "result"), [(7, 7), (0, 1)])
def test_another_thread_may_end_the_program_while_a_function_runs_but_not_as_a_success(code: int, result: int) -> None:
    program = f"""
import os, threading
from whyscore import Segment
from whyscore.metrics.callable import Callable

def waiting(segments):
    threading.Thread(target=os._exit, args=({code},)).start()
    threading.Event().wait(30)

Callable(waiting).score([Segment("a")])
"""
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode == result


def test_functions_in_two_threads_leave_the_program_as_it_was(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    both, first_left = threading.Barrier(2), threading.Event()

    def end(code: int) -> None:
        raise ValueError(code)  # the program would have ended

    monkeypatch.setattr(os, "_exit", end)

    def first(segments: list[Segment]) -> list[float]:
        both.wait(10)
        return [1.0] * len(segments)

    def second(segments: list[Segment]) -> list[float]:
        both.wait(10)
        first_left.wait(10)
        os.write(1, b"hello\n")
        os._exit(len(segments))

    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(Callable(second).score, [Segment("a")])
        Callable(first).score([Segment("a")])
        first_left.set()
        with pytest.raises(ContractError, match="tried to end the program"):
            answer.result()
    os.write(1, b"result\n")
    assert capfd.readouterr() == ("result\n", "hello\n")
    assert os._exit is end


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("import sys\nsys.exit(0)\n", "cannot be loaded: SystemExit: 0"),
        ("import os\nos._exit(0)\n", "cannot be loaded: SystemExit: 0"),
        ("raise BaseException('mine')\n", "cannot be loaded: BaseException: mine"),
    ],
)
@pytest.mark.parametrize("place", ["{folder}/leaving.py:score", "leaving_module:score"])
def test_a_file_that_ends_the_program_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, message: str, place: str
) -> None:
    for name in ("leaving.py", "leaving_module.py"):
        (tmp_path / name).write_text(content, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UserError, match=re.escape(message)):
        Callable(place.format(folder=tmp_path)).score([Segment("a", None, ("b",))])


def test_what_a_function_prints_by_itself_or_a_program_of_its_own_does_not_mix_with_results(
    capfd: pytest.CaptureFixture[str],
) -> None:
    def talking(segments: list[Segment]) -> list[float]:
        os.write(1, b"one\n")
        os.system("echo two")
        return [1.0] * len(segments)

    Callable(talking).score([Segment("a", None, ("b",))])
    os.write(1, b"result\n")
    assert capfd.readouterr() == ("result\n", "one\ntwo\n")


def test_what_a_function_prints_does_not_mix_with_results(capsys: pytest.CaptureFixture[str]) -> None:
    def talking(segments: list[Segment]) -> list[float]:
        sys.stdout.write("hello\n")
        return [1.0] * len(segments)

    Callable(talking).score([Segment("a", None, ("b",))])
    assert capsys.readouterr() == ("", "hello\n")


def test_a_function_of_two_lists_is_not_asked_about_the_source() -> None:
    def overlap(hypotheses: list[str], references: list[str]) -> list[float]:
        return [float(len(set(a.split()) & set(b.split()))) for a, b in zip(hypotheses, references, strict=True)]

    metric = Callable(overlap)
    assert metric.inputs == metric.needs == Inputs.HYPOTHESIS | Inputs.REFERENCES
    found = explain([Segment("a cat", "eine Katze", ("a dog",))], metric, "erasure")
    assert {one.place.side for one in found} == {Side.HYPOTHESIS, Side.REFERENCE}


def test_an_exception_names_the_line_of_the_users_file(tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text(
        "def helper(text):\n    return int(text)\n\n\ndef score(segments):\n    return [helper('x')]\n", "utf-8"
    )
    with pytest.raises(TextFailure, match=re.escape(f"({file}, line 2)")):
        Callable(f"{file}:score").score([Segment("a cat", None, ("a dog",))])


def test_a_function_whose_numbers_change_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "unsteady.py"
    file.write_text("calls = []\ndef score(segments):\n    calls.append(1)\n    return [len(calls)] * len(segments)\n")
    with pytest.raises(ContractError, match="gave 1 for 'b' and 2 when asked again: its numbers depend on chance"):
        build(f"{file}:score").score([Segment("a"), Segment("b")])


def test_a_function_whose_numbers_change_later_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "drifting.py"
    file.write_text(
        "calls = []\ndef score(texts):\n    calls.append(len(texts))\n    return [len(calls) > 3] * len(texts)\n",
        "utf-8",
    )
    metric = build(f"{file}:score")
    segments = [Segment(str(number)) for number in range(40)]
    assert metric.score(segments).tolist() == [0] * 40
    assert metric.score(segments).tolist() == [0] * 40
    assert find(f"{file}:score").function.__globals__["calls"] == [40, 1, 41]  # type: ignore[attr-defined]
    assert metric.score(segments[:8]).tolist() == [1] * 8  # too few to ask again
    with pytest.raises(ContractError, match="gave 0 for '39' and 1 when asked again"):
        metric.score(segments)


def test_a_wrong_number_of_answers_is_told_with_the_segment_that_was_asked_about_again(tmp_path: Path) -> None:
    file = tmp_path / "short.py"
    file.write_text("def score(segments):\n    return [1.0] * min(len(segments), 40)\n", "utf-8")
    metric = build(f"{file}:score")
    segments = [Segment(str(number)) for number in range(40)]
    assert metric.score(segments).tolist() == [1] * 40
    message = "41 numbers for 41 segments (40 and an earlier one again, as a check), got 40 numbers"
    with pytest.raises(ContractError, match=re.escape(f"short.py:score must return {message}")):
        metric.score(segments)


def test_a_metric_that_was_used_is_found_again_by_another_process(file: Path) -> None:
    metric = Callable(f"{file}:words", reads=("hypothesis",))
    assert metric.score(SEGMENTS).tolist() == [4, 2]
    program = (
        "import pickle, sys\nfrom whyscore import Segment\n"
        "metric = pickle.load(sys.stdin.buffer)\nprint(metric.signature(), metric.score([Segment('a cat')]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], input=pickle.dumps(metric), capture_output=True, check=True, timeout=60
    )
    assert done.stdout.decode() == f"{metric.signature()} [4.]\n"


def test_a_function_whose_numbers_depend_on_the_place_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "counting.py"
    file.write_text("def score(segments):\n    return list(range(len(segments)))\n", "utf-8")
    with pytest.raises(ContractError, match="gave 2 for 'c' and 0 when asked again"):
        build(f"{file}:score").score([Segment("a"), Segment("b"), Segment("c")])


def test_a_function_that_closes_streams_and_leaves_the_folder_harms_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def closing(segments: list[Segment]) -> list[float]:
        sys.stdout.close()
        sys.stderr.close()
        sys.stderr = None
        os.close(1)
        os.close(2)
        os.chdir("/")
        os.umask(0o777)
        return [1.0] * len(segments)

    Callable(closing).score([Segment("a")])
    os.write(1, b"result\n")
    sys.stderr.write("note\n")
    assert capfd.readouterr() == ("result\n", "note\n")
    assert Path.cwd() == tmp_path
    (tmp_path / "readable").touch()
    assert (tmp_path / "readable").stat().st_mode & 0o400


REWRAPPING = """
import io, sys
sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8")
sys.stderr = io.TextIOWrapper(sys.stderr.detach(), encoding="utf-8")
print("loaded é")

def score(segments):
    for _ in range(2):
        sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8")
        print("called")
    with sys.stderr as stream:
        stream.write("closed\\ud800\\n")
    sys.stderr.buffer.write("ü\\n".encode())
    return [1.0] * len(segments)
"""


def test_a_function_that_wraps_or_closes_its_streams_leaves_those_of_the_program_alone(tmp_path: Path) -> None:
    (tmp_path / "wrapping.py").write_text(REWRAPPING, "utf-8")
    command = [sys.executable, "-m", "whyscore", "score", "--sample", "-m", "wrapping.py:score", "--store", "none"]
    done = subprocess.run([*command, "-f", "tsv"], cwd=tmp_path, capture_output=True, check=False, timeout=60)
    err = done.stderr.decode()
    assert done.returncode == 0, err
    assert "wrapping.py:score" in done.stdout.decode()
    assert err.count("loaded é") == 1
    assert err.count("called\n") >= 2
    assert "closed\\ud800\nü\n" in err


def test_a_function_that_wraps_streams_without_a_file_leaves_them_alone(capsys: pytest.CaptureFixture[str]) -> None:
    def wrapping(segments: list[Segment]) -> list[float]:
        sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8")
        sys.stdout.write("é\n")
        return [1.0] * len(segments)

    Callable(wrapping).score([Segment("a")])
    gc.collect()
    sys.stderr.write("note\n")
    assert capsys.readouterr() == ("", "é\nnote\n")


def start_command(tmp_path: Path, content: str, *options: str) -> "subprocess.Popen[str]":
    """Start a command that scores the sample with a function."""
    body = indent(content, "    ")
    (tmp_path / "mine.py").write_text(f"import sys, threading, time\ndef score(segments):\n{body}\n")
    command = [
        sys.executable,
        "-m",
        "whyscore",
        "score",
        "--sample",
        "-m",
        "mine.py:score",
        "--store",
        "none",
        *options,
    ]
    return subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell that runs this suite in the background has told its children to ignore interruptions.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )


def test_a_command_ends_though_threads_of_a_function_go_on(tmp_path: Path) -> None:
    waiting = "threading.Thread(target=threading.Event().wait).start()\nreturn [1.0] * len(segments)"
    process = start_command(tmp_path, waiting, "-f", "jsonl")
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert '"score": 1.0' in out


def test_what_a_function_leaves_for_the_end_turns_no_failure_into_a_success(tmp_path: Path) -> None:
    process = start_command(tmp_path, "import atexit, os\natexit.register(os._exit, 0)\nraise ValueError")
    _, err = process.communicate(timeout=60)
    assert "mine.py:score" in err
    assert process.returncode == 1


@pytest.mark.parametrize("options", [(), ("--executor", "processes", "--jobs", "1")])
def test_a_function_that_never_returns_can_be_interrupted(tmp_path: Path, options: tuple[str, ...]) -> None:
    process = start_command(tmp_path, "print('running', flush=True)\ntime.sleep(600)", *options)
    assert process.stderr is not None
    while "running" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == INTERRUPTED
    assert err == "whyscore: interrupted; nothing was kept, as --store none was given\n"


def test_a_function_that_catches_an_interruption_is_ended_by_the_second(tmp_path: Path) -> None:
    stubborn = """
while True:
    try:
        print('running', flush=True)
        time.sleep(600)
    except BaseException:
        pass
"""
    process = start_command(tmp_path, stubborn)
    assert process.stderr is not None
    for _ in range(2):
        while "running" not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
