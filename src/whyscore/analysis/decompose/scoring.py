"""The one score call of a decomposition, and how its rows are read.

1. Originals of all entries, and for each feature the two variants of its segments, are put into one list.
2. One deduplicated call gives a row per text; a metric with rows gives corpus scores from the same rows.
3. `Reading` turns rows into numbers for which more is better, from 0 to 1 where the metric says its scale.

A metric over a matrix of similarities (BERTScore) is asked for its matrices once; variants are then arithmetic:
the best case sets cells of masked reference and masked hypothesis units to 1; the worst case sets the rows and columns
of masked units to min(cell, 0), which is the paper's 0 unless a cosine is negative.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from whyscore.analysis.common import MetricLike, as_metric
from whyscore.analysis.decompose.masking import TextMasking, Variant, masking_for
from whyscore.analysis.decompose.settings import FeatureSettings, Level, Mode
from whyscore.analysis.decompose.tagging import MarkedEntry, Marking, members_of
from whyscore.errors import SpecError
from whyscore.garbage import collect_rarely
from whyscore.marking import Span
from whyscore.metrics.needs import traits_of
from whyscore.protocols import (
    CorpusMetric,
    Masking,
    MatrixMetric,
    Metric,
    RowMetric,
    Similarities,
    SupportsDecomposition,
)
from whyscore.scoring.stack import Prepared, Resources
from whyscore.types import Dataset, FloatMatrix, FloatVector, Segment, Signature

FLOOR = 1e-6
"""Of a metric's scale: a range at or below it says nothing."""

Members = Sequence[Sequence[int]]
"""For each feature the entries that have it on both sides."""


S_co = TypeVar("S_co", bound=FeatureSettings, covariant=True)


class Study(NamedTuple, Generic[S_co]):
    """What is decomposed and how: a data set, its features marked."""

    dataset: Dataset
    marking: Marking
    settings: S_co
    resources: Resources


class Answers(NamedTuple):
    """Rows of the originals of all entries, and for each feature those of its best and worst cases."""

    plain: FloatMatrix
    oracle: list[FloatMatrix]
    anti: list[FloatMatrix]


@dataclass(frozen=True)
class Reading:
    """How the rows of a metric become numbers for which more is better."""

    metric: Metric
    scale: float = 1.0
    direct: bool = False
    """Whether the rows are the scores themselves, as those of changed matrices are."""

    @property
    def factor(self) -> float:
        """What the metric's own numbers are multiplied by."""
        return (1.0 if self.metric.higher_is_better else -1.0) / self.scale

    def values(self, rows: FloatMatrix) -> FloatVector:
        """Return the segment scores of rows."""
        if self.direct or not isinstance(self.metric, RowMetric):
            return self.factor * rows[:, 0]
        return self.factor * self.metric.scores(rows)

    def total(self, row: FloatVector) -> float:
        if not isinstance(self.metric, CorpusMetric):
            raise SpecError(f"{self.metric.signature().spec} has no corpus score: use level='segment'")
        return self.factor * self.metric.total(row)


@dataclass(frozen=True, eq=False)
class Values:
    """The segment scores of one metric: of all entries, and of each feature's entries in best and worst case."""

    reading: Reading
    answers: Answers
    members: Members
    corpus: bool = False
    floor: float = FLOOR
    guard: float = FLOOR
    """The floor of a single segment's range in `guarded`."""

    @cached_property
    def scores(self) -> tuple[FloatVector, list[FloatVector], list[FloatVector]]:
        groups = [self.answers.plain, *self.answers.oracle, *self.answers.anti]
        values = self.reading.values(np.vstack(groups))
        plain, *rest = np.split(values, np.cumsum([len(group) for group in groups])[:-1])
        features = len(self.members)
        return plain, rest[:features], rest[features:]

    def of(self, feature: int, selected: Sequence[int]) -> tuple[FloatVector, FloatVector, FloatVector]:
        """Return sigma, oracle and anti of chosen members of a feature, by their position among the members."""
        entries = np.array(self.members[feature], dtype=np.intp)[list(selected)]
        plain, oracle, anti = self.scores
        numbers = plain[entries], oracle[feature][list(selected)], anti[feature][list(selected)]
        for array in numbers:
            array.setflags(write=False)  # they become part of the result
        return numbers

    def triple(self, feature: int, selected: Sequence[int]) -> tuple[float, float, float]:
        """Return the corpus scores of chosen members: as they are, in the best and in the worst case."""
        entries = np.array(self.members[feature], dtype=np.intp)[list(selected)]
        rows = self.answers.plain[entries], self.answers.oracle[feature][selected], self.answers.anti[feature][selected]
        sigma, oracle, anti = (self.reading.total(part.sum(axis=0)) for part in rows)
        return sigma, oracle, anti


class Measured(NamedTuple):
    """One metric over a marked data set: everything that was asked, before anything is fitted."""

    name: str
    metric: Metric
    values: Values
    texts: TextMasking | None
    """None where a matrix was changed instead of texts."""
    masking: Masking
    signature: Signature
    asked: int
    distinct: int


def decomposed_metric(requested: MetricLike, mode: Mode) -> Metric:
    """Return the metric that is scored: the variant for decompositions where a metric has one."""
    metric = as_metric(requested)
    if isinstance(metric, SupportsDecomposition):
        return metric.for_decomposition(published=mode == "compat")
    return metric


@collect_rarely()
def measure(study: Study[FeatureSettings], name: str, metric: Metric, level: Level = "segment") -> Measured:
    """Return the scores of originals and variants after one score call."""
    dataset, marking, settings, resources = study
    members = members_of(marking, settings.need)
    compat = settings.mode == "compat"
    traits = traits_of(metric)
    signature = _signature(metric, marking, settings, traits.masking, level)
    guard = 0.0 if compat else FLOOR
    if isinstance(metric, MatrixMetric):
        answers = ask_matrices(metric, dataset.segments, marking, members)
        values = Values(Reading(metric, traits.scale, direct=True), answers, members, guard=guard)
        distinct = len({segment.only(metric.inputs) for segment in dataset.segments})
        return Measured(name, metric, values, None, traits.masking, signature, len(dataset), distinct)
    texts = masking_for(metric, marking, settings, traits.masking)
    groups = questions(dataset.segments, marking, texts, members)
    answers = ask(resources.prepare(texts.metric), groups)
    values = Values(Reading(texts.metric, traits.scale), answers, members, level == "corpus", guard=guard)
    every = [segment for group in groups for segment in group]
    return Measured(name, metric, values, texts, traits.masking, signature, len(every), len(set(every)))


def _signature(
    metric: Metric, marking: Marking, settings: FeatureSettings, masking: Masking, level: Level
) -> Signature:
    """Return the metric's signature with how features were masked."""
    segments = level == "segment"
    base = metric.segment_signature() if segments and isinstance(metric, CorpusMetric) else metric.signature()
    facts: dict[str, object] = {"decomposed": settings.mode, "unit": settings.unit, "level": level}
    if settings.mode == "compat":
        facts["tokens"] = "nltk"
    elif masking == "token":
        facts["tokens"] = settings.tokens or ("tagger" if marking.gives_tokens else "metric")
    counts = {len(entry.references) for entry in marking.entries}
    if "nrefs" in dict(base.facts):
        facts["nrefs"] = counts.pop() if len(counts) == 1 else "var"
    return base.with_facts(**facts, grain=masking, seed=settings.seed)


def questions(
    segments: Sequence[Segment], marking: Marking, texts: TextMasking, members: Members
) -> list[list[Segment]]:
    """Return the segments to score: all originals, then for each feature its best cases and its worst cases."""
    groups = [[_plain(*pair, texts) for pair in zip(segments, marking.entries, strict=True)]]
    for feature, places in enumerate(members):
        shared: dict[int, Variant] = {}  # references, which all systems have in common
        pairs = [_variants(segments[k], marking.entries[k], texts, feature, shared) for k in places]
        groups += [[best for best, _ in pairs], [worst for _, worst in pairs]]
    return groups


def pooled(prepared: Prepared, groups: Sequence[Sequence[Segment]]) -> list[FloatMatrix]:
    """Return the rows of each group after one score call for all of them."""
    every = [segment for group in groups for segment in group]
    return np.split(prepared.rows(every), np.cumsum([len(group) for group in groups])[:-1])


def ask(prepared: Prepared, groups: Sequence[Sequence[Segment]]) -> Answers:
    """Return the answers to `questions` after one score call."""
    plain, *rest = pooled(prepared, groups)
    return Answers(plain, rest[::2], rest[1::2])


def ask_matrices(metric: MatrixMetric, segments: Sequence[Segment], marking: Marking, members: Members) -> Answers:
    """Return the scores of all groups from the metric's matrices, which are computed once."""
    distinct = {segment.only(metric.inputs): None for segment in segments}
    similarities = dict(zip(distinct, metric.similarities(list(distinct)), strict=True))
    matrices = [similarities[segment.only(metric.inputs)] for segment in segments]
    oracle, anti = [], []
    for feature, places in enumerate(members):
        hidden = [_find_hidden_units(marking.entries[k], matrices[k], feature) for k in places]
        selected = [matrices[k] for k in places]
        oracle.append(_score_matched(metric, [_best(*pair) for pair in zip(selected, hidden, strict=True)]))
        anti.append(_score_matched(metric, [_worst(*pair) for pair in zip(selected, hidden, strict=True)]))
    return Answers(_score_matched(metric, matrices), oracle, anti)


def _plain(segment: Segment, entry: MarkedEntry, texts: TextMasking) -> Segment:
    hypothesis, *references = map(texts.plain, (entry.hypothesis, *entry.references))
    return Segment(hypothesis, segment.source, tuple(references), segment.context)


def _variants(
    segment: Segment, entry: MarkedEntry, texts: TextMasking, feature: int, shared: dict[int, Variant]
) -> tuple[Segment, Segment]:
    for text in entry.references:
        if text.number not in shared:
            shared[text.number] = texts.variant(text, feature, hypothesis=False)
    hypothesis = texts.variant(entry.hypothesis, feature, hypothesis=True)
    best, worst = zip(hypothesis, *(shared[text.number] for text in entry.references), strict=True)
    return (
        Segment(best[0], segment.source, best[1:], segment.context),
        Segment(worst[0], segment.source, worst[1:], segment.context),
    )


Units = tuple[NDArray[np.bool_], NDArray[np.bool_]]
"""Which units of the other text and of the hypothesis are hidden."""


def _find_hidden_units(entry: MarkedEntry, matrices: Sequence[Similarities], feature: int) -> list[Units]:
    if len(matrices) != len(entry.references):
        raise SpecError(
            "a metric that compares with the source cannot be decomposed: features are marked in references"
        )
    spans = entry.hypothesis.spans[feature]
    return [
        (_find_overlaps(matrix.spans, text.spans[feature]), _find_overlaps(matrix.hypothesis_spans, spans))
        for matrix, text in zip(matrices, entry.references, strict=True)
    ]


def _find_overlaps(units: NDArray[np.int64], spans: Sequence[Span]) -> NDArray[np.bool_]:
    hidden = np.zeros(len(units), dtype=np.bool_)
    starts, ends = units[:, 0], units[:, 1]
    for start, end in spans:
        hidden |= (starts < end) & (ends > start) & (starts < ends)
    return hidden


def _best(matrices: Sequence[Similarities], hidden: Sequence[Units]) -> tuple[Similarities, ...]:
    return tuple(
        matrix._replace(cosines=np.where(np.outer(*units), 1.0, matrix.cosines))
        for matrix, units in zip(matrices, hidden, strict=True)
    )


def _worst(matrices: Sequence[Similarities], hidden: Sequence[Units]) -> tuple[Similarities, ...]:
    return tuple(
        matrix._replace(
            cosines=np.where(rows[:, None] | columns[None, :], np.minimum(matrix.cosines, 0.0), matrix.cosines)
        )
        for matrix, (rows, columns) in zip(matrices, hidden, strict=True)
    )


def _score_matched(metric: MatrixMetric, matrices: Sequence[Sequence[Similarities]]) -> FloatMatrix:
    return np.asarray(metric.matched(matrices), dtype=np.float64)[:, None] if matrices else np.empty((0, 1))
