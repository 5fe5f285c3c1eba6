"""The features of a run: what is lost on which kind of word, and which segments have too few or too many of it.

Metrics that count or match are taken apart; for others every feature would cost two more scores of every segment.
"""

from collections.abc import Iterator, Sequence

from whyscore.analysis.decompose.decompose import decompose
from whyscore.analysis.decompose.settings import DecomposeSettings
from whyscore.analysis.decompose.tagging import Marking, mark
from whyscore.data.records import row_lines
from whyscore.errors import MissingExtra
from whyscore.protocols import CorpusMetric, MatrixMetric
from whyscore.runs import folder as runs
from whyscore.runs.choices import Asked, Settings
from whyscore.scoring.stack import Resources
from whyscore.text.strict import REASONS
from whyscore.types import Dataset, Inputs

ROW = "row"
SEGMENT = "segment"
BECAUSE = "because"


def write_decomposition(
    folder: runs.Folder, dataset: Dataset, asked: Sequence[Asked], settings: Settings, resources: Resources
) -> list[str]:
    """Write the decomposition of every metric that can be taken apart; return why nothing was written, if so."""
    chosen = [one for one in asked if _apart(one)]
    if not chosen or settings.tagger is None or not all(segment.references for segment in dataset.segments):
        return []
    features = DecomposeSettings(tagger=settings.tagger, seed=settings.seed)
    metrics = [one.name if one.spec else one.metric for one in chosen]
    try:
        found = decompose(dataset, metrics, settings=features, resources=resources)
        marking = mark(dataset, features, resources)
    except MissingExtra as error:
        return [str(error)]
    signatures = {f"{name}, features": str(signature) for name, signature in found.signatures.items()}
    rows = [_told(row.record() | {"examples": list(row.examples)}) for row in found]
    rows += [_told(test.record()) for test in found.tests]
    rows += list(_segments(dataset, marking))
    folder.finished_file(
        runs.DECOMPOSITION, row_lines("decomposition", dataset, rows, signatures, created=folder.created)
    )
    return list(found.notes)


def _told(row: dict[str, object]) -> dict[str, object]:
    """Return a row whose reason is on the closed list of records; the sentence stands beside it."""
    reason = row.get("reason")
    if reason is None or reason in REASONS:
        return row
    return row | {"reason": "undefined" if row.get("n") else "empty", BECAUSE: reason}


def _apart(one: Asked) -> bool:
    return Inputs.REFERENCES in one.metric.inputs and isinstance(one.metric, CorpusMetric | MatrixMetric)


def _segments(dataset: Dataset, marking: Marking) -> Iterator[dict[str, object]]:
    """Yield the features of which a hypothesis has fewer than every reference, or more."""
    for entry, found in zip(dataset.entries, marking.entries, strict=True):
        under, over = [], []
        for number, feature in enumerate(marking.features):
            counts = [text.count(number) for text in found.references]
            own = found.hypothesis.count(number)
            if counts and own < min(counts):
                under.append(feature)
            if counts and own > max(counts):
                over.append(feature)
        if under or over:
            yield {ROW: SEGMENT, "system": entry.system, "id": entry.id, "under": under, "over": over}
