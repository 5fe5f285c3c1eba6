"""A run folder, read back: what reports, the web page and gates look at.

What the records of a run must hold, so that reports meet nothing else; each complaint names file and line.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whyscore.data.dataset import read_dataset
from whyscore.data.records import Kind, Records, read_records
from whyscore.errors import DataError
from whyscore.runs.folder import COMPARISONS, DECOMPOSITION, EXPLANATIONS, RUN, SCORES, SEGMENTS, TOTALS, facts_of
from whyscore.types import Dataset, Estimate, ExplanationRecord, FloatVector, Place, RunMetric, Side

Row = Mapping[str, object]

_AGAIN = "the file was changed or damaged; make the run again with whyscore evaluate --overwrite"
_ROW, _CLUSTER, _SEGMENT = "row", "cluster", "segment"


class Where(NamedTuple):
    """The place of a record."""

    file: str
    line: int

    def wrong(self, what: str) -> DataError:
        """Return the error that says what is wrong here, and what to do."""
        return DataError(f"{what}: {_AGAIN}", file=self.file, line=self.line)


def text(record: Row, key: str, where: Where) -> str:
    """Return a text that every record has."""
    found = record.get(key)
    if not isinstance(found, str):
        raise where.wrong(f"{key!r} is {found!r}, expected a text")
    return found


def value_of(value: object) -> float:
    """Return a number; NaN where there is none."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan


def counted(value: object) -> int:
    """Return a count; 0 where there is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def words_of(record: Row, where: Where) -> list[Row]:
    """Return the words of an explanation."""
    words = record.get("words")
    if not isinstance(words, list) or not all(isinstance(word, Mapping) for word in words):
        raise where.wrong(f"'words' is {words!r}, expected a list of objects")
    return words


def place_of(record: Row, where: Where) -> Place:
    """Return which text an explanation is of."""
    side, reference = record.get("side"), record.get("reference")
    if side not in tuple(Side):
        raise where.wrong(f"'side' is {side!r}, expected {', '.join(Side)}")
    if (side == Side.REFERENCE) != (isinstance(reference, int) and not isinstance(reference, bool)):
        raise where.wrong(f"'reference' is {reference!r}, which does not go with the side {side!r}")
    return Place(Side(str(side)), reference if isinstance(reference, int) else None)


def spans_of(words: Sequence[Row], size: int, where: Where) -> NDArray[np.int64]:
    """Return where words begin and end, one after the other inside a text of `size` characters."""
    at = 0
    for word in words:
        for key in ("start", "end"):
            found = word.get(key)
            if not isinstance(found, int) or isinstance(found, bool) or not at <= found <= size:
                raise where.wrong(f"{key!r} of a word is {found!r}, expected {at} to {size}")
            at = found
    return np.array([(word["start"], word["end"]) for word in words], dtype=np.int64).reshape(-1, 2)


def check_features(row: Row, dataset: Dataset, where: Where) -> None:
    """Refuse a row of a decomposition that reports could not show."""
    if row.get(_ROW) not in (None, _SEGMENT):
        return
    system = text(row, "system", where)
    if system not in dataset.systems:
        raise where.wrong(f"'system' is {system!r}, expected one of {', '.join(map(repr, dataset.systems))}")
    if row.get(_ROW) == _SEGMENT:
        if text(row, "id", where) not in dataset.ids:
            raise where.wrong(f"no segment {row['id']!r}")
    else:
        text(row, "metric", where)
        text(row, "feature", where)
        told = row.get("discrepancy")
        counts = told.get("all", {}) if isinstance(told, Mapping) else {}
        if not isinstance(counts, Mapping) or not all(isinstance(value, int | float) for value in counts.values()):
            raise where.wrong(f"'discrepancy' is {told!r}, expected counts")


def check_tests(row: Row, where: Where) -> None:
    """Refuse a row of comparisons that reports could not show."""
    if row.get(_ROW) == _CLUSTER:
        found = row.get(_CLUSTER)
        if not isinstance(found, int) or isinstance(found, bool):
            raise where.wrong(f"{_CLUSTER!r} is {found!r}, expected a whole number")
        keys: tuple[str, ...] = ("metric", "system")
    else:
        keys = () if _ROW in row else ("metric", "first", "second")
    for key in keys:
        text(row, key, where)


@dataclass(frozen=True, eq=False)
class Run:
    """Everything a run folder holds; explanations are read when they are asked for."""

    folder: Path
    facts: Row
    dataset: Dataset
    metrics: tuple[RunMetric, ...]
    totals: Mapping[str, Mapping[str, Estimate]]
    """By metric, then by system."""
    scores: Mapping[str, FloatVector]
    """By metric, aligned with the entries."""
    decomposition: tuple[Row, ...] = ()
    comparisons: tuple[Row, ...] = ()
    signatures: Mapping[str, str] = field(default_factory=dict)
    """Of decomposition and comparisons."""

    @property
    def done(self) -> bool:
        """Whether the run was finished."""
        return self.facts.get("status") == "done"

    def metric(self, name: str) -> RunMetric:
        """Return the metric of that name."""
        found = next((one for one in self.metrics if one.name == name), None)
        if found is None:
            raise DataError(f"the run has no metric {name!r}; it has: {', '.join(one.name for one in self.metrics)}")
        return found

    @cached_property
    def explanations(self) -> tuple[ExplanationRecord, ...]:
        """The explanations, in the order in which they were made."""
        return tuple(self.read_explanations())

    def read_explanations(self) -> Iterator[ExplanationRecord]:
        """Yield the explanations one by one."""
        path = self.folder / EXPLANATIONS
        if not path.exists():
            return
        place = {(entry.system, entry.id): k for k, entry in enumerate(self.dataset.entries)}
        for number, record in read_records(path, kind="explanations").numbered():
            yield _told(record, place, self.dataset, Where(str(path), number))


def read_run(path: str | Path) -> Run:
    """Return the run in a folder; one that is not finished is refused, because half a report misleads."""
    folder = Path(path)
    facts = facts_of(folder)
    if facts.get("status") != "done":
        raise DataError(f"{path} is not finished: run the same whyscore evaluate command again to go on")
    dataset = read_dataset(folder / SEGMENTS)
    metrics = tuple(_metric(row) for row in _list(facts, "metrics", folder))
    decomposition, first = _rows(
        folder / DECOMPOSITION, "decomposition", lambda row, where: check_features(row, dataset, where)
    )
    comparisons, second = _rows(folder / COMPARISONS, "comparisons", check_tests)
    totals, scores = read_totals(folder / TOTALS), read_scores(folder / SCORES, dataset)
    for one in metrics:
        if one.name not in scores or not set(dataset.systems) <= set(totals.get(one.name, ())):
            raise DataError(
                f"{path} lacks scores of {one.name!r}: make the run again with whyscore evaluate --overwrite"
            )
    return Run(folder, facts, dataset, metrics, totals, scores, decomposition, comparisons, first | second)


def read_scores(path: Path, dataset: Dataset) -> dict[str, FloatVector]:
    """Return the scores by metric, aligned with the entries; NaN where there is none."""
    place = {(entry.system, entry.id): k for k, entry in enumerate(dataset.entries)}
    found: dict[str, FloatVector] = {}
    for number, record in read_records(path, kind="scores").numbered():
        where = Where(str(path), number)
        values = found.setdefault(text(record, "metric", where), np.full(len(dataset), np.nan))
        key = text(record, "system", where), text(record, "id", where)
        if key not in place:
            raise DataError(f"no segment {key[1]!r} of system {key[0]!r} in {SEGMENTS}", file=str(path), line=number)
        values[place[key]] = value_of(record.get("score"))
    return found


def read_totals(path: Path) -> dict[str, dict[str, Estimate]]:
    """Return the corpus scores by metric, then by system."""
    found: dict[str, dict[str, Estimate]] = {}
    for number, record in read_records(path, kind="totals").numbered():
        low, high, where = record.get("low"), record.get("high"), Where(str(path), number)
        found.setdefault(text(record, "metric", where), {})[text(record, "system", where)] = Estimate(
            value_of(record.get("score")),
            None if low is None else value_of(low),
            None if high is None else value_of(high),
            value_of(record.get("level", 0.95)),
            counted(record.get("n", 0)),
        )
    return found


def _rows(path: Path, kind: Kind, check: Callable[[Row, Where], None]) -> tuple[tuple[Row, ...], dict[str, str]]:
    if not path.exists():
        return (), {}
    records: Records = read_records(path, kind=kind)
    rows = []
    for number, row in records.numbered():
        check(row, Where(str(path), number))
        rows.append(row)
    return tuple(rows), dict(records.header.signatures)


def _told(record: Row, place: Mapping[tuple[str, str], int], dataset: Dataset, where: Where) -> ExplanationRecord:
    words, side = words_of(record, where), place_of(record, where)
    notes = tuple(str(word.get("note", "")) for word in words)
    entry = place.get((text(record, "system", where), text(record, "id", where)))
    if entry is None:
        raise where.wrong(f"no segment {record['id']!r} of system {record['system']!r}")
    explained = dataset.entries[entry].segment.text(side)
    flags = record.get("flags")
    return ExplanationRecord(
        id=text(record, "id", where),
        system=text(record, "system", where),
        metric=text(record, "metric", where),
        explainer=str(record.get("explainer", "")),
        place=side,
        words=tuple(str(word.get("text", "")) for word in words),
        spans=spans_of(words, len(explained), where),
        importance=np.array([value_of(word.get("importance")) for word in words], dtype=np.float64),
        notes=notes if any(notes) else None,
        probes=counted(record.get("probes", 0)),
        fit=None if record.get("fit") is None else value_of(record["fit"]),
        flags=tuple(map(str, flags)) if isinstance(flags, list) else (),
        score=value_of(record.get("score")),
        entry=entry,
    )


def _metric(row: object) -> RunMetric:
    if not isinstance(row, Mapping):
        raise DataError(f"{RUN}: a metric is {row!r}, expected an object")
    explainer, explained = row.get("explainer"), row.get("explained")
    return RunMetric(
        str(row.get("name")),
        str(row.get("signature")),
        bool(row.get("higher_is_better", True)),
        None if explainer is None else str(explainer),
        None if explained is None else str(explained),
    )


def _list(facts: Row, key: str, folder: Path) -> Sequence[object]:
    found = facts.get(key)
    if not isinstance(found, list):
        raise DataError(f"{key!r} is {found!r}, expected a list", file=str(folder / RUN))
    return found
