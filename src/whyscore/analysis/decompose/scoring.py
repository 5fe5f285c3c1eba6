"""The one score call of a decomposition, and how its rows are read.

1. Originals of all entries, and for each feature the two variants of its segments, are put into one list.
2. One deduplicated call gives a row per text; a metric with rows gives corpus scores from the same rows.
3. `Reading` turns rows into numbers for which more is better; BLEU, chrF and TER are read from 0 to 1.

A metric over a matrix of similarities (BERTScore) is asked for its matrices once; variants are then arithmetic:
the best case sets cells of hidden reference and hidden hypothesis units to 1; the worst case sets the rows and columns
of hidden units to min(cell, 0), which is the paper's 0 unless a cosine is negative.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from whyscore.analysis.common import MetricLike, as_metric
from whyscore.analysis.decompose.masking import Grain, Variant
from whyscore.analysis.decompose.tagging import MarkedEntry, Marking
from whyscore.errors import SpecError
from whyscore.marking import Span
from whyscore.metrics.lexical.bleu import Bleu
from whyscore.metrics.lexical.chrf import Chrf
from whyscore.metrics.lexical.ter import Ter
from whyscore.protocols import CorpusMetric, MatrixMetric, Metric, RowMetric, Similarities
from whyscore.registry.specs import parse
from whyscore.scoring.stack import Prepared
from whyscore.types import FloatMatrix, FloatVector, Segment

Members = Sequence[Sequence[int]]
"""For each feature the entries that have it on both sides."""

_TINY = 2.2250738585072014e-308  # what NLTK takes for an order without a match
_PERCENT = (Bleu, Chrf, Ter)


class Answers(NamedTuple):
    """Rows of the originals of all entries, and for each feature those of its best and worst cases."""

    plain: FloatMatrix
    oracle: list[FloatMatrix]
    anti: list[FloatMatrix]


@dataclass(frozen=True)
class Reading:
    """How the rows of a metric become numbers for which more is better."""

    metric: Metric
    pseudo_zero: bool = False
    """Whether orders without a match count as the smallest number there is, as in NLTK, instead of zero."""
    direct: bool = False
    """Whether the rows are the scores themselves, as those of changed matrices are."""

    @property
    def factor(self) -> float:
        """What the metric's own numbers are multiplied by."""
        sign = 1.0 if self.metric.higher_is_better else -1.0
        return sign / 100 if isinstance(self.metric, _PERCENT) else sign

    def values(self, rows: FloatMatrix) -> FloatVector:
        """Return the segment scores of rows."""
        if isinstance(self.metric, Bleu) and (self.pseudo_zero or _is_plain(self.metric)):
            return _plain_bleu(rows, self.metric.max_order, _TINY if self.pseudo_zero else 0.0)
        if self.direct or not isinstance(self.metric, RowMetric):
            return self.factor * rows[:, 0]
        return self.factor * self.metric.scores(rows)

    def total(self, row: FloatVector) -> float:
        """Return the corpus score of summed rows."""
        if not isinstance(self.metric, CorpusMetric):
            raise SpecError(f"{self.metric.signature().spec} has no corpus score: use level='segment'")
        return self.factor * self.metric.total(row)


def decomposed_metric(given: MetricLike, mode: str) -> Metric:
    """Return the metric that a decomposition means by a spec: plain `bleu` is unsmoothed, of order 4.

    In `compat`, plain `rouge` is the precision of ROUGE-L with stemming, as in the published tables. A metric over a
    matrix that may match phrases as well as pieces (BERTScore) matches pieces, unless it was told.
    """
    metric = as_metric(given)
    if dataclasses.is_dataclass(metric) and isinstance(metric, MatrixMetric) and _undecided(metric):
        return cast("Metric", dataclasses.replace(metric, phrases=0))
    if not isinstance(given, str):
        return metric
    spec = parse(given)
    named = dict(spec.named)
    if isinstance(metric, Bleu) and not spec.positional and "smoothing" not in named:
        order = metric.effective_order if "effective_order" in named else False
        return replace(metric, smoothing="none", effective_order=order)
    if mode == "compat" and spec.name == "rouge" and not (spec.positional or named):
        return as_metric('rouge(measure="p", stem=True, mode="compat")')
    return metric


def _is_plain(metric: Bleu) -> bool:
    """Return whether sentence BLEU is the textbook formula, which takes all rows at once."""
    return metric.smoothing == "none" and metric.effective_order is False


def _undecided(metric: Metric) -> bool:
    return getattr(metric, "phrases", 0) is None


def questions(segments: Sequence[Segment], marking: Marking, grain: Grain, members: Members) -> list[list[Segment]]:
    """Return the segments to score: all originals, then for each feature its best cases and its worst cases."""
    plain = [_plain(segment, entry, grain) for segment, entry in zip(segments, marking.entries, strict=True)]
    groups = [plain]
    for feature, places in enumerate(members):
        shared: dict[int, Variant] = {}  # references, which all systems have in common
        pairs = [_variants(segments[k], marking.entries[k], grain, feature, shared) for k in places]
        groups += [[best for best, _ in pairs], [worst for _, worst in pairs]]
    return groups


def pooled(prepared: Prepared, groups: Sequence[Sequence[Segment]]) -> list[FloatMatrix]:
    """Return the rows of each group after one score call for all of them."""
    every = [segment for group in groups for segment in group]
    rows = prepared.statistics(every) if isinstance(prepared, RowMetric) else prepared.score(every)[:, None]
    return np.split(rows, np.cumsum([len(group) for group in groups])[:-1])


def ask(prepared: Prepared, groups: Sequence[Sequence[Segment]]) -> Answers:
    """Return the answers to `questions` after one score call."""
    plain, *rest = pooled(prepared, groups)
    return Answers(plain, rest[::2], rest[1::2])


def ask_matrices(metric: MatrixMetric, segments: Sequence[Segment], marking: Marking, members: Members) -> Answers:
    """Return the scores of all groups from the metric's matrices, which are computed once."""
    distinct = {segment.only(metric.inputs): None for segment in segments}
    known = dict(zip(distinct, metric.similarities(list(distinct)), strict=True))
    matrices = [known[segment.only(metric.inputs)] for segment in segments]
    oracle, anti = [], []
    for feature, places in enumerate(members):
        hidden = [_hidden_units(marking.entries[k], matrices[k], feature) for k in places]
        chosen = [matrices[k] for k in places]
        oracle.append(_matched(metric, [_best(*pair) for pair in zip(chosen, hidden, strict=True)]))
        anti.append(_matched(metric, [_worst(*pair) for pair in zip(chosen, hidden, strict=True)]))
    return Answers(_matched(metric, matrices), oracle, anti)


def _plain(segment: Segment, entry: MarkedEntry, grain: Grain) -> Segment:
    references = tuple(grain.plain(text) for text in entry.references)
    return Segment(grain.plain(entry.hypothesis), segment.source, references)


def _variants(
    segment: Segment, entry: MarkedEntry, grain: Grain, feature: int, shared: dict[int, Variant]
) -> tuple[Segment, Segment]:
    for text in entry.references:
        if text.number not in shared:
            shared[text.number] = grain.variant(text, feature, hypothesis=False)
    references = [shared[text.number] for text in entry.references]
    hypothesis = grain.variant(entry.hypothesis, feature, hypothesis=True)
    best = Segment(hypothesis.oracle, segment.source, tuple(one.oracle for one in references))
    return best, Segment(hypothesis.anti, segment.source, tuple(one.anti for one in references))


Units = tuple[NDArray[np.bool_], NDArray[np.bool_]]
"""Which units of the other text and of the hypothesis are hidden."""


def _hidden_units(entry: MarkedEntry, matrices: Sequence[Similarities], feature: int) -> list[Units]:
    if len(matrices) != len(entry.references):
        raise SpecError(
            "a metric that compares with the source cannot be decomposed: features are marked in references"
        )
    own = entry.hypothesis.spans[feature]
    return [
        (_overlapped(one.spans, text.spans[feature]), _overlapped(one.hypothesis_spans, own))
        for one, text in zip(matrices, entry.references, strict=True)
    ]


def _overlapped(units: NDArray[np.int64], spans: Sequence[Span]) -> NDArray[np.bool_]:
    hidden = np.zeros(len(units), dtype=np.bool_)
    starts, ends = units[:, 0], units[:, 1]
    for start, end in spans:
        hidden |= (starts < end) & (ends > start) & (starts < ends)
    return hidden


def _best(matrices: Sequence[Similarities], hidden: Sequence[Units]) -> tuple[Similarities, ...]:
    return tuple(
        one._replace(cosines=np.where(np.outer(*units), 1.0, one.cosines))
        for one, units in zip(matrices, hidden, strict=True)
    )


def _worst(matrices: Sequence[Similarities], hidden: Sequence[Units]) -> tuple[Similarities, ...]:
    return tuple(
        one._replace(cosines=np.where(rows[:, None] | columns[None, :], np.minimum(one.cosines, 0.0), one.cosines))
        for one, (rows, columns) in zip(matrices, hidden, strict=True)
    )


def _matched(metric: MatrixMetric, matrices: Sequence[Sequence[Similarities]]) -> FloatMatrix:
    return np.asarray(metric.matched(matrices), dtype=np.float64)[:, None] if matrices else np.empty((0, 1))


def _plain_bleu(rows: FloatMatrix, order: int, zero: float = 0.0) -> FloatVector:
    """Return unsmoothed BLEU, 0 to 1, of all rows at once; `zero` is the precision of an order without a match.

    NLTK takes the smallest number there is: then only a hypothesis without any matched word is truly zero.
    """
    own, other = rows[:, 0], rows[:, 1]
    matched, totals = rows[:, 2 : 2 + order], rows[:, 2 + order : 2 + 2 * order]
    precision = np.where(matched > 0, matched / np.maximum(totals, 1), zero)
    short = np.where(own > other, 0.0, 1 - other / np.maximum(own, 1))
    with np.errstate(divide="ignore"):
        logs = np.log(precision).mean(axis=1)
    return cast("FloatVector", np.where(matched[:, 0] > 0, np.exp(short + logs), 0.0))
