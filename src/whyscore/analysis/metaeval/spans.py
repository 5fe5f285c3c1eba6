"""Are the error spans right? Predicted spans against those that people marked, side by side.

1. Entries are matched by system and id, or by id alone where the gold has one system and the prediction another.
2. Each side is judged on its own (`stats.spans`), over the entries that people rated.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from whyscore.data.naming import few
from whyscore.errors import DataError
from whyscore.stats.spans import Marked, SpanResult, judge_spans
from whyscore.types import Dataset, Entry, Side, Signature
from whyscore.version import __version__

SIDES = (Side.HYPOTHESIS, Side.SOURCE)


@dataclass(frozen=True, eq=False)
class SpansResult:
    """The measures of each side that has spans."""

    sides: Mapping[Side, SpanResult]
    signature: Signature


def metaevaluate_spans(
    predicted: Dataset, gold: Dataset, *, severity: bool = False, weights: Mapping[str, float] | None = None
) -> SpansResult:
    """Return how well predicted spans fit the marked ones.

    Args:
        predicted: entries with spans.
        gold: entries with spans; entries that nobody rated are left out.
        severity: exact matches must have the severity too.
        weights: of spans by severity, in the measures that count spans.
    """
    pairs = _matched(predicted, gold)
    sides = {}
    for side in SIDES:
        texts = [_marked(one, other, side) for one, other in pairs]
        if side is Side.HYPOTHESIS or any(text.gold or text.predicted for text in texts):
            sides[side] = judge_spans(texts, severity=severity, weights=weights)
    worth = "none" if weights is None else ",".join(f"{name}={weight:g}" for name, weight in sorted(weights.items()))
    facts = {"gold": gold.name, "predicted": predicted.name, "severity": "yes" if severity else "no", "weights": worth}
    return SpansResult(sides, Signature("spans", (*facts.items(), ("version", __version__))))


def _matched(predicted: Dataset, gold: Dataset) -> list[tuple[Entry, Entry]]:
    alone = len(gold.systems) == 1 and len(predicted.systems) == 1
    known = {_key(entry, alone=alone): entry for entry in predicted.entries if entry.spans is not None}
    rated = [entry for entry in gold.entries if entry.spans is not None]
    missing = [_key(entry, alone=alone) for entry in rated if _key(entry, alone=alone) not in known]
    if missing or not rated:
        told = (
            f"no predicted spans for {few([' '.join(key).strip() for key in missing])}"
            if missing
            else "nobody rated it"
        )
        raise DataError(f"{predicted.name} and {gold.name} do not match: {told}")
    return [(known[_key(entry, alone=alone)], entry) for entry in rated]


def _key(entry: Entry, *, alone: bool) -> tuple[str, str]:
    return ("" if alone else entry.system, entry.id)


def _marked(one: Entry, other: Entry, side: Side) -> Marked:
    if one.segment.hypothesis != other.segment.hypothesis:
        raise DataError(f"segment {other.id}: the texts differ, so offsets mean different places; give the same texts")
    text = other.segment.hypothesis if side is Side.HYPOTHESIS else other.segment.source or ""
    spans = [tuple(span for span in entry.spans or () if span.side is side) for entry in (other, one)]
    return Marked(len(text), *spans)
