"""Are the error spans right? Predicted spans against those that people marked, side by side.

1. Entries are matched by system and id, or by id alone where the gold has one system and the prediction another.
2. Each side is judged on its own (`stats.spans`), over the entries that people rated.
3. A metric that marks errors itself (`judge`, xCOMET) is asked about the texts of the gold. Entries for which a
   language model gave no answer that can be used are left out and counted: no spans would mean no error.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from whyscore.analysis.common import MetricLike, as_metric, requested_name, with_languages
from whyscore.analysis.metaeval.settings import MetaevalSpansSettings
from whyscore.data.naming import few
from whyscore.errors import DataError, SpecError
from whyscore.protocols import SupportsErrorSpans
from whyscore.scoring.stack import LOCAL, Resources
from whyscore.settings import takes
from whyscore.stats.spans import Marked, SpanResult, judge_spans
from whyscore.types import Dataset, Entry, ErrorSpan, Side, Signature
from whyscore.types.result import Record, Result, Table
from whyscore.version import __version__

SIDES = (Side.HYPOTHESIS, Side.SOURCE)
_MEASURES = {"characters": "characters", "exact": "exact (EM)", "partial": "partial (MP)", "credit": "credit (MPP)"}
_NUMBERS = ("precision", "recall", "f1")


@dataclass(frozen=True, eq=False, repr=False)
class SpansResult(Result):
    """The measures of each side that has spans."""

    gold: str
    sides: Mapping[Side, SpanResult]
    signature: Signature
    missing: int = 0
    """Entries that were left out, because a language model gave no answer that can be used."""

    def document(self) -> Record:
        sides = {
            str(side): {"n": fit.n, "predicted": fit.predicted, "gold": fit.gold}
            | {name: {key: getattr(getattr(fit, name), key) for key in _NUMBERS} for name in _MEASURES}
            for side, fit in self.sides.items()
        }
        return {
            "schema_version": 1,
            "kind": "spans",
            "signature": str(self.signature),
            "gold": self.gold,
            "sides": sides,
        } | ({"missing": self.missing} if self.missing else {})

    def records(self) -> Iterator[Record]:
        yield self.document()

    def tables(self, *, long: bool = False) -> list[Table]:
        del long
        rows = tuple(
            (str(side), shown, fit.predicted, fit.gold, *(getattr(getattr(fit, name), key) for key in _NUMBERS))
            for side, fit in self.sides.items()
            for name, shown in _MEASURES.items()
        )
        return [Table(("side", "measure", "predicted", "gold", *_NUMBERS), rows, best=frozenset())]


@takes(MetaevalSpansSettings)
def metaevaluate_spans(
    predicted: Dataset, gold: Dataset, *, weights: Mapping[str, float] | None = None, settings: MetaevalSpansSettings
) -> SpansResult:
    """Return how well predicted spans fit the marked ones.

    Args:
        predicted: entries with spans.
        gold: entries with spans; entries that nobody rated are left out.
        weights: of spans by severity, in the measures that count spans.
        settings: what a match is.
    """
    pairs = _match_entries(predicted, gold)
    sides = {}
    for side in SIDES:
        texts = [_pair_spans(*pair, side) for pair in pairs]
        if side is Side.HYPOTHESIS or any(text.gold or text.predicted for text in texts):
            sides[side] = judge_spans(
                texts,
                severity=settings.severity,
                weights=weights,
                matching=settings.matching,
                average=settings.average,
            )
    worth = "none" if weights is None else ",".join(f"{name}={weight:g}" for name, weight in sorted(weights.items()))
    facts = {"gold": gold.name, "predicted": predicted.name, "severity": "yes" if settings.severity else "no"}
    facts |= {"weights": worth}
    # What is usual is left out, so that signatures stay those of earlier versions.
    facts |= {} if settings.matching == "optimal" else {"matching": settings.matching}
    facts |= {} if settings.average == "micro" else {"average": settings.average}
    facts |= {"version": __version__}
    return SpansResult(gold.name, sides, Signature("spans", tuple(facts.items())))


@takes(MetaevalSpansSettings)
def metaevaluate_metric_spans(
    gold: Dataset,
    metric: MetricLike,
    *,
    weights: Mapping[str, float] | None = None,
    settings: MetaevalSpansSettings,
    resources: Resources = LOCAL,
) -> SpansResult:
    """Return how well the errors that a metric marks in the texts of the gold fit the marked ones.

    Args:
        gold: entries with texts and spans; entries that nobody rated are left out.
        metric: marks errors itself: a spec or a metric.
        weights: of spans by severity, in the measures that count spans.
        settings: what a match is.
        resources: store, executor and progress.
    """
    entries = [entry for entry in gold.entries if entry.spans is not None]
    spans = predict_spans(replace(gold, entries=tuple(entries)), metric, resources)
    there = [(entry, marked) for entry, marked in zip(entries, spans, strict=True) if marked is not None]
    if entries and not there:
        raise DataError(f"{requested_name(metric)} gave no usable answer for any segment of {gold.name}")
    predicted = Dataset(requested_name(metric), tuple(replace(entry, spans=marked) for entry, marked in there))
    rated = replace(gold, entries=tuple(entry for entry, _ in there))
    result = metaevaluate_spans(predicted, rated, weights=weights, settings=settings)
    return replace(result, missing=len(entries) - len(there))


def predict_spans(
    dataset: Dataset, metric: MetricLike, resources: Resources = LOCAL
) -> list[tuple[ErrorSpan, ...] | None]:
    """Return the errors that a metric marks in each entry; None where a language model gave no answer to be used."""
    prepared = resources.prepare(with_languages(as_metric(metric), dataset.languages))
    if not isinstance(prepared.metric, SupportsErrorSpans):
        raise SpecError(
            f"{requested_name(metric)} marks no error spans: explain it and turn its word scores into spans with "
            "whyscore convert explanations.jsonl --to spans"
        )
    missing = prepared.missing(dataset.segments)
    spans = prepared.metric.error_spans(dataset.segments)
    return [None if k in missing else marked for k, marked in enumerate(spans)]


def _match_entries(predicted: Dataset, gold: Dataset) -> list[tuple[Entry, Entry]]:
    alone = len(gold.systems) == 1 and len(predicted.systems) == 1

    def key(entry: Entry) -> tuple[str, str]:
        return ("" if alone else entry.system, entry.id)

    by_key = {key(entry): entry for entry in predicted.entries if entry.spans is not None}
    rated = [entry for entry in gold.entries if entry.spans is not None]
    missing = [" ".join(key(entry)).strip() for entry in rated if key(entry) not in by_key]
    if missing or not rated:
        why = f"no predicted spans for {few(missing)}" if missing else f"{gold.name} has no human ratings"
        raise DataError(f"{predicted.name} and {gold.name} do not match: {why}")
    return [(by_key[key(entry)], entry) for entry in rated]


def _pair_spans(predicted: Entry, gold: Entry, side: Side) -> Marked:
    if predicted.segment.hypothesis != gold.segment.hypothesis:
        raise DataError(f"segment {gold.id}: the texts differ, so offsets mean different places; give the same texts")
    text = gold.segment.hypothesis if side is Side.HYPOTHESIS else gold.segment.source or ""
    spans = [tuple(span for span in entry.spans or () if span.side is side) for entry in (gold, predicted)]
    return Marked(len(text), *spans)
