"""Tests between the systems of a run: every two by every metric and every human score, and the clusters they form."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from whyscore.analysis.compare.compare import compare
from whyscore.analysis.compare.result import Comparison, Difference
from whyscore.data.records import row_lines
from whyscore.errors import DataError
from whyscore.runs import folder as runs
from whyscore.runs.choices import Asked, Settings
from whyscore.runs.reading import Row, Run
from whyscore.scoring.stack import Resources
from whyscore.types import Dataset

ROW = "row"
CLUSTER = "cluster"


class Tested(NamedTuple):
    """Two systems under one metric; `better` is named only where the difference is beyond chance."""

    metric: str
    first: str
    second: str
    difference: float
    low: float | None
    high: float | None
    p: float | None
    better: str | None
    detectable: float | None = None
    """The smallest difference that this many segments would show."""

    @property
    def worse(self) -> str:
        """The other one of the two."""
        return self.second if self.better == self.first else self.first


def write_comparisons(
    folder: runs.Folder, dataset: Dataset, asked: Sequence[Asked], settings: Settings, resources: Resources
) -> list[str]:
    """Write the tests; return what is to be known about them, or why there are none."""
    human = sorted({name for entry in dataset.entries for name in entry.human})
    try:
        found = compare(dataset, [one.metric for one in asked], human=human, seed=settings.seed, resources=resources)
    except DataError as error:
        return [f"tests: {error}"]
    names = {one.metric: asked[k].name if k < len(asked) else one.metric for k, one in enumerate(found.metrics)}
    lines = row_lines("comparisons", dataset, _rows(found, names), {"tests": found.how}, created=folder.created)
    folder.finished_file(runs.COMPARISONS, lines)
    return [f"tests: {note}" for note in found.notes]


def pairs_tested(run: Run) -> list[Tested]:
    """Return every tested pair of systems."""
    return [_tested(row) for row in run.comparisons if ROW not in row]


def clusters_of(run: Run) -> dict[tuple[str, str], int]:
    """Return the significance cluster by metric and system; 1 is the best."""
    rows = [row for row in run.comparisons if row.get(ROW) == CLUSTER]
    return {(str(row["metric"]), str(row["system"])): int(str(row[CLUSTER])) for row in rows}


def _rows(found: Comparison, names: Mapping[str, str]) -> Iterator[Row]:
    for one in found.metrics:
        for pair in one.pairs:
            yield _row(pair, names[one.metric])
        for system, rank in one.ranks.items():
            yield {ROW: CLUSTER, "metric": names[one.metric], "system": system, CLUSTER: rank}


def _row(pair: Difference, name: str) -> Row:
    return {
        "metric": name,
        "first": pair.first,
        "second": pair.second,
        "difference": pair.difference,
        "low": pair.low,
        "high": pair.high,
        "p": pair.adjusted,
        "better": pair.better,
        "method": pair.method,
        "n": pair.n,
        "detectable": pair.detectable,
        "needed": pair.needed,
        "reason": pair.reason,
    }


def _tested(row: Row) -> Tested:
    better = row.get("better")
    return Tested(
        str(row["metric"]),
        str(row["first"]),
        str(row["second"]),
        _number(row.get("difference")) or 0.0,
        _number(row.get("low")),
        _number(row.get("high")),
        _number(row.get("p")),
        None if better is None else str(better),
        _number(row.get("detectable")),
    )


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
