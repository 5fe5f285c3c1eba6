"""Parser fixtures of the folders that whyscore writes and reads again: runs, shards, stores, tables of experiments.

Their files are made once per process, by the analyses themselves, from a data set of four entries.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from support.parsers import ParserFixture
from whyscore.experiments.bmx.study import RunFolder, explain_in
from whyscore.present import present
from whyscore.protocols import Tagged
from whyscore.report import build_report
from whyscore.report.page import html
from whyscore.runs import shards
from whyscore.runs.evaluate import EvaluateSettings, evaluate
from whyscore.runs.folder import read_run
from whyscore.scoring.stack import Resources
from whyscore.scoring.store import Store, TagStore
from whyscore.types import Dataset, Entry, ErrorSpan, Segment

_SIGNATURE = "token_f1|version:0"
_KEYS = [bytes([k]) * 16 for k in range(4)]
_fresh = count()


def _data() -> Dataset:
    entries = []
    for system, start in (("good", "a"), ("bad", "zzz")):
        for k, rest in enumerate(("cat sat", "dog ran")):
            text = f"{start} {rest}"
            spans = (ErrorSpan(0, 1, "major", "Accuracy"),)
            entries.append(Entry(str(k), system, Segment(text, f"Quelle {k}", (f"a {rest}",)), {"mqm": -1.0}, spans))
    return Dataset("small", tuple(entries), ("de", "en"))


def _files(folder: Path) -> dict[str, bytes]:
    found = {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    return {name: content for name, content in found.items() if not name.endswith((".html", "-wal", "-shm"))}


def _made(work: Callable[[Path], object]) -> dict[str, bytes]:
    """Return the files that some work leaves in an empty folder."""
    with TemporaryDirectory() as place:
        work(Path(place))
        return _files(Path(place))


def _run(folder: Path) -> None:
    evaluate(_data(), ["chrf", "token_f1"], output=folder / "run", settings=EvaluateSettings(draws=20))


def _reported(folder: Path) -> object:
    report = build_report(folder / "run")
    run = read_run(folder / "run")
    forms = ["".join(present(report.summary())), *("".join(present(report, form)) for form in ("json", "markdown"))]
    return html(report), forms, run.explanations


def _changed(folder: Path) -> object:
    report = build_report([folder / "run", folder / "other"])
    return html(report), "".join(present(report.summary()))


def _shards(folder: Path) -> None:
    data = _data()
    settings = EvaluateSettings(explainers=("erasure",), draws=20)
    for number in (1, 2):
        own, place = shards.Shard(number, 2), folder / f"part-{number}"
        with_store = Resources(store=Store(place / shards.STORE))
        shards.describe(place, data, own, ["token_f1"], settings)
        cut = shards.shard_of(data, own)
        evaluate(cut, ["token_f1"], output=place, settings=settings, resources=with_store, overwrite=True)
        if with_store.store is not None:
            with_store.store.close()


def _merged(folder: Path) -> object:
    return shards.merge([folder / "part-1", folder / "part-2"], folder / f"whole-{next(_fresh)}")


def _store(folder: Path) -> None:
    import numpy as np

    store = Store(folder / "scores.sqlite")
    store.put(_SIGNATURE, _KEYS, np.ones((4, 1)))
    TagStore(store).put("tags", {"a cat": (Tagged(0, 1, ("DET",)),)})
    store.close()


def _kept(folder: Path) -> object:
    store = Store(folder / "scores.sqlite")
    try:
        return store.get(_SIGNATURE, _KEYS, 1), TagStore(store).get("tags", ["a cat"]), store.held()
    finally:
        store.close()


def _experiment(folder: Path) -> None:
    made = RunFolder.make(folder / "bmx", "bmx")
    made.write("gains", [{"a": 1, "b": None}], seed=0)
    explain_in(made, _data(), "token_f1", "erasure")


def _resumed(folder: Path) -> object:
    made = RunFolder(folder / "bmx", "bmx")
    return made.head("gains"), made.read("gains"), explain_in(made, _data(), "token_f1", "erasure")


@lru_cache(maxsize=1)
def run_folders() -> Mapping[str, ParserFixture]:
    """Return the fixtures of folders that whyscore wrote, by name."""
    run = _made(_run)
    others = {name.replace("run/", "other/", 1): content for name, content in run.items()}
    return {
        "run": ParserFixture(run, _reported),
        "runs": ParserFixture({**run, **others}, _changed, tuple(others)),
        "run again": ParserFixture(run, _run),
        "shards": ParserFixture(_made(_shards), _merged),
        "store": ParserFixture(_made(_store), _kept),
        "experiment": ParserFixture(_made(_experiment), _resumed),
    }
