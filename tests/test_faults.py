"""A run that is disturbed comes to the files of one that was not; the script behind docs/reliability.md says how."""

import errno
import re
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from whyscore.data.writing import growing
from whyscore.errors import ExecutionError, StoreError, UserError
from whyscore.metrics.matching.weights import IdfTable, write_idf
from whyscore.models.lexicon import learn_lexicon, write_lexicon
from whyscore.models.maps import LanguageMap, write_map
from whyscore.models.tensors import write_tensors
from whyscore.runs import folder as runs
from whyscore.scoring.store import Store, digest
from whyscore.types import Dataset, Entry, Segment

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.xdist_group("faults")


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        import make_reliability

        yield make_reliability
    finally:
        sys.path.remove(str(ROOT / "scripts"))


@pytest.fixture(scope="module")
def bench(script: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> object:
    return script.prepared(tmp_path_factory.mktemp("faults"), segments=6, seed=0)


@pytest.mark.parametrize("number", [0, *(pytest.param(number, marks=pytest.mark.slow) for number in (1, 2))])
def test_a_killed_run_goes_on_to_the_same_files(script: ModuleType, bench: object, number: int) -> None:
    assert script.killed(bench, number).failed == ()


@pytest.mark.parametrize(
    "fault",
    [
        "limit",
        "memory",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("two-writers", "deleted", "bit", "nan", "edited", "parent")
        ),
    ],
)
def test_a_disturbed_run_comes_to_the_same_files(script: ModuleType, bench: object, fault: str) -> None:
    assert script.FAULTS[fault][1](bench, 1).failed == ()


def test_a_full_disk_is_told_in_one_line_and_loses_nothing(script: ModuleType, bench: object) -> None:
    if not script.has_space():
        pytest.skip("this system gives no name space for a small disk")
    assert script.full_disk(bench, 1).survived


def test_the_page_counts_what_was_survived(script: ModuleType) -> None:
    made = script.table([script.Row("a fault", 3, 2, "nothing")], ["another"], "Facts.")
    told = script.page(f"head\n{script.BEGIN}\nold\n{script.END}\ntail\n", made)
    assert told.startswith(f"head\n{script.BEGIN}\nFacts.\n")
    assert told.endswith(f"{script.END}\ntail\n")
    assert "old" not in told
    assert "| fault | tries | survived | lost |\n|---|---|---|---|\n| a fault | 3 | 2 | nothing |\n" in told
    assert "Not tried, because this system gives no name space to try it in: another." in told


def test_the_page_that_ships_has_all_faults_and_no_failure(script: ModuleType) -> None:
    shipped = script.PAGE.read_text("utf-8").partition(script.BEGIN)[2]
    rows = re.findall(r"^\| (.*?) \| (\d+) \| (\d+) \| .* \|$", shipped, re.MULTILINE)
    assert [fault for fault, _, _ in rows] == [told for told, _ in script.FAULTS.values()]
    assert [fault for fault, tries, survived in rows if tries != survived] == []


class Refusing:
    """A file on a disk that takes nothing."""

    def __init__(self, number: int) -> None:
        self.number = number

    def writelines(self, *_: object) -> None:
        raise OSError(self.number, "no")

    write = flush = close = writelines


@pytest.mark.parametrize(
    ("number", "kind", "message"),
    [
        (errno.ENOSPC, ExecutionError, "the disk is full; free some space and run again, nothing is lost"),
        (errno.EFBIG, UserError, "cannot be written: no. Choose another location"),
    ],
)
def test_a_growing_file_tells_what_the_disk_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[Exception], message: str
) -> None:
    monkeypatch.setattr(Path, "open", lambda *_, **__: Refusing(number))
    with pytest.raises(kind, match=re.escape(message)), growing(tmp_path / "a") as file:
        file.writelines(["a\n"])


def test_a_growing_file_keeps_what_was_flushed(tmp_path: Path) -> None:
    with growing(tmp_path / "a") as file:
        file.writelines(["a\n"])
        file.flush()
        assert (tmp_path / "a").read_text("utf-8") == "a\n"
    with growing(tmp_path / "a") as file:
        file.writelines(["b\n"])
    assert (tmp_path / "a").read_text("utf-8") == "a\nb\n"


def test_what_a_killed_writer_left_is_tidied_up(tmp_path: Path) -> None:
    left = tmp_path / ".run.json.0123abcd.tmp"
    left.write_text("{", "utf-8")
    mine = tmp_path / ".run.json.mine"
    data = Dataset("d", (Entry("0", "a", Segment("a")),))
    runs.open_or_create(tmp_path, runs.fingerprint(data, {}))
    assert not left.exists()
    mine.write_text("mine", "utf-8")
    with pytest.raises(UserError, match="is not empty and holds no run"):
        runs.open_or_create(tmp_path, runs.fingerprint(data, {}))
    assert mine.exists()


def test_a_failing_disk_is_told_with_a_cure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path / "store")

    def failing(*_: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(Store, "_open", failing)
    with pytest.raises(StoreError, match=re.escape("the disk fails, or is full. Free some space")):
        store.get("m", [digest(Segment("a"))], 1)
    with pytest.warns(UserWarning, match=re.escape("the results come out all the same")):
        store.put("m", [digest(Segment("a"))], np.ones((1, 1)))


def write_lexicon_file(path: Path) -> None:
    write_lexicon(learn_lexicon(["a b", "a c"], ["x y", "x z"]), path)


WRITERS = {
    "lexicon.npz": write_lexicon_file,
    "lexicon.tsv": write_lexicon_file,
    "map.npz": lambda path: write_map(LanguageMap(np.eye(2), None, {}), path),
    "tensors.safetensors": lambda path: write_tensors(path, {"a": np.zeros(2)}),
    "idf.json": lambda path: write_idf(IdfTable.of_weights({"a": 1.0}, 2.0), path),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_that_cannot_be_finished_leaves_the_old_one(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    path.write_text("old")

    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="no space"):
        WRITERS[name](path)
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [(name, "old")]
    monkeypatch.undo()
    WRITERS[name](path)
    assert path.read_bytes() != b"old"
