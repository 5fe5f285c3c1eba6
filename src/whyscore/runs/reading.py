"""A run folder, read back: what reports, the web page and gates look at.

Every record is read as its type, so that reports meet nothing else; each complaint names file and line.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import msgspec
import numpy as np

from whyscore.data.codec import Where, convert
from whyscore.data.dataset import read_dataset
from whyscore.data.records import Kind, read_records
from whyscore.errors import DataError
from whyscore.runs.folder import COMPARISONS, DECOMPOSITION, EXPLANATIONS, RUN, SCORES, SEGMENTS, TOTALS, facts_of
from whyscore.types import (
    ClusterRank,
    Dataset,
    Estimate,
    ExplanationRecord,
    FeatureShare,
    FloatVector,
    PairTest,
    RunMetric,
    SegmentFeatures,
    Total,
)

Row = Mapping[str, object]

_AGAIN = "the file was changed or damaged; make the run again with whyscore evaluate --overwrite"
_TYPES: dict[tuple[Kind, object], type] = {
    ("decomposition", None): FeatureShare,
    ("decomposition", "segment"): SegmentFeatures,
    ("comparisons", None): PairTest,
    ("comparisons", "cluster"): ClusterRank,
}
"""By the kind of the file and the `row` of a record; other rows are for other readers."""


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

    @cached_property
    def pairs(self) -> tuple[PairTest, ...]:
        """The tested differences of all metrics."""
        where = Where(str(self.folder / COMPARISONS))
        return tuple(convert(PairTest, row, where) for row in self.comparisons if "row" not in row)

    def total_records(self) -> Iterator[Total]:
        """Yield the score of every system under every metric."""
        for one in self.metrics:
            for system, total in self.totals[one.name].items():
                yield Total.of(system, one.name, total, higher_is_better=one.higher_is_better)

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
        entries = {(entry.system, entry.id): k for k, entry in enumerate(self.dataset.entries)}
        for one in read_records(path, kind="explanations").explanations(entries, _AGAIN):
            size = len(self.dataset.entries[one.entry].segment.text(one.place))
            if len(one.spans) and one.spans[-1, 1] > size:
                where = Where(str(path), one.line, _AGAIN)
                raise where.error(f"a word ends at {one.spans[-1, 1]}, expected 0 to {size}")
            yield one


def read_run(path: str | Path) -> Run:
    """Return the run in a folder; one that is not finished is refused, because half a report misleads."""
    folder = Path(path)
    facts = facts_of(folder)
    if facts.get("status") != "done":
        raise DataError(f"{path} is not finished: run the same whyscore evaluate command again to go on")
    dataset = read_dataset(folder / SEGMENTS)
    metrics = convert(_Metrics, facts, Where(str(folder / RUN))).metrics
    decomposition, first = _rows(folder / DECOMPOSITION, "decomposition", dataset)
    comparisons, second = _rows(folder / COMPARISONS, "comparisons", dataset)
    totals, scores = read_totals(folder / TOTALS), read_scores(folder / SCORES, dataset)
    for one in metrics:
        if one.name not in scores or not set(dataset.systems) <= set(totals.get(one.name, ())):
            raise DataError(
                f"{path} lacks scores of {one.name!r}: make the run again with whyscore evaluate --overwrite"
            )
    return Run(folder, facts, dataset, metrics, totals, scores, decomposition, comparisons, first | second)


class _Metrics(msgspec.Struct):
    metrics: tuple[RunMetric, ...]


class _Score(msgspec.Struct):
    id: str
    system: str
    metric: str
    score: float | None = None


def read_scores(path: Path, dataset: Dataset) -> dict[str, FloatVector]:
    """Return the scores by metric, aligned with the entries; NaN where there is none."""
    entries = {(entry.system, entry.id): k for k, entry in enumerate(dataset.entries)}
    found: dict[str, FloatVector] = {}
    for where, record in read_records(path, kind="scores").typed(_Score, _AGAIN):
        values = found.setdefault(record.metric, np.full(len(dataset), np.nan))
        if (record.system, record.id) not in entries:
            raise where.error(f"no segment {record.id!r} of system {record.system!r} in {SEGMENTS}")
        values[entries[record.system, record.id]] = np.nan if record.score is None else record.score
    return found


def read_totals(path: Path) -> dict[str, dict[str, Estimate]]:
    """Return the corpus scores by metric, then by system."""
    found: dict[str, dict[str, Estimate]] = {}
    for _, one in read_records(path, kind="totals").typed(Total, _AGAIN):
        found.setdefault(one.metric, {})[one.system] = Estimate(one.score, one.low, one.high, one.level, one.n)
    return found


def _rows(path: Path, kind: Kind, dataset: Dataset) -> tuple[tuple[Row, ...], dict[str, str]]:
    """Return the rows of a table of results, checked, and the signatures behind them."""
    if not path.exists():
        return (), {}
    records, rows = read_records(path, kind=kind), []
    for number, row in records.numbered():
        where, known = Where(str(path), number, _AGAIN), row.get("row")
        expected = _TYPES.get((kind, known)) if known is None or isinstance(known, str) else None
        if expected is not None:
            _check_names(convert(expected, row, where), dataset, where)
        rows.append(row)
    return tuple(rows), dict(records.header.signatures)


def _check_names(fact: object, dataset: Dataset, where: Where) -> None:
    """Refuse features of systems and segments that the data do not have."""
    if isinstance(fact, FeatureShare | SegmentFeatures) and fact.system not in dataset.systems:
        known = ", ".join(map(repr, dataset.systems))
        raise where.error(f"'system' is {fact.system!r}, expected one of {known}")
    if isinstance(fact, SegmentFeatures) and fact.id not in dataset.ids:
        raise where.error(f"no segment {fact.id!r}")
