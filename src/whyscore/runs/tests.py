"""Tests between the systems of a run: every two by every metric and every human score, and the clusters they form."""

from collections.abc import Iterator, Mapping, Sequence

from whyscore.analysis.compare.compare import compare
from whyscore.analysis.compare.result import Comparison
from whyscore.data.codec import record_of
from whyscore.data.records import row_lines
from whyscore.errors import DataError
from whyscore.runs import folder as runs
from whyscore.runs.choices import Asked, Settings
from whyscore.runs.reading import Row, Run
from whyscore.scoring.stack import Resources
from whyscore.types import Dataset, PairTest

ROW = "row"
CLUSTER = "cluster"


def write_comparisons(
    folder: runs.Folder, dataset: Dataset, asked: Sequence[Asked], settings: Settings, resources: Resources
) -> list[str]:
    """Write the tests; return what is to be known about them, or why there are none."""
    human = sorted({name for entry in dataset.entries for name in entry.human})
    try:
        found = compare(dataset, [one.metric for one in asked], human=human, seed=settings.seed, resources=resources)
    except DataError as error:
        return [str(error)]
    names = {one.metric: asked[k].name if k < len(asked) else one.metric for k, one in enumerate(found.metrics)}
    lines = row_lines("comparisons", dataset, _rows(found, names), {"tests": found.how}, created=folder.created)
    folder.finished_file(runs.COMPARISONS, lines)
    return list(found.notes)


def pairs_tested(run: Run) -> list[PairTest]:
    """Return every tested pair of systems."""
    return list(run.pairs)


def clusters_of(run: Run) -> dict[tuple[str, str], int]:
    """Return the significance cluster by metric and system; 1 is the best."""
    rows = [row for row in run.comparisons if row.get(ROW) == CLUSTER]
    return {(str(row["metric"]), str(row["system"])): int(str(row[CLUSTER])) for row in rows}


def _rows(found: Comparison, names: Mapping[str, str]) -> Iterator[Row]:
    for one in found.metrics:
        for pair in one.pairs:
            yield record_of(pair) | {"metric": names[one.metric]}
        for system, rank in one.ranks.items():
            yield {ROW: CLUSTER, "metric": names[one.metric], "system": system, CLUSTER: rank}
