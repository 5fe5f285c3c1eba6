"""Explanations: which words made the score, for every text of every segment; and the matrices behind a match."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import ClassVar, Protocol, cast

import numpy as np

from whyscore.analysis.common import (
    MetricLike,
    Segments,
    as_dataset,
    as_metric,
    as_segments,
    explainer_with_languages,
    languages_of,
    requested_name,
    with_languages,
)
from whyscore.analysis.mee import WordMatches, has_parts, word_matches
from whyscore.data.codec import Kind, explanation_record
from whyscore.data.records import header_of
from whyscore.errors import ContractError, SpecError
from whyscore.explainers.engine import (
    WINDOW,
    Plan,
    ask,
    explain_segments,
    failure_message,
    make_plan,
    probe_segments,
    sides_of,
    tasks_of,
    windows,
)
from whyscore.metrics.matching.words import SupportsSimilarity, TextPair, word_cosines
from whyscore.protocols import Explainer, Masker, Metric, Splitter
from whyscore.scoring.rows import asks_model
from whyscore.scoring.stack import LOCAL, Cost, Resources
from whyscore.scoring.stack import cost as score_cost
from whyscore.settings import Seeded, option, takes
from whyscore.text.files import Reason
from whyscore.types import (
    SHOWN,
    Dataset,
    Evidence,
    Explanation,
    ExplanationRecord,
    Side,
    Signature,
    SimilarityMatrix,
)
from whyscore.types.result import Cell, Record, Result, Table

_LISTED = 10


@dataclass(frozen=True, kw_only=True)
class ExplainersSettings:
    """Who explains."""

    explainers: tuple[str, ...] = option(
        ("erasure",), "erasure (default), 'lime(samples=100)', shap, intrinsic; see: whyscore list explainers",
        flags=("-e", "--explainers", "--explainer"), metavar="SPEC", basic=True,
    )  # fmt: skip
    explainer: str | None = option(
        None, "erasure (default), 'lime(samples=100)', intrinsic; see: whyscore list explainers",
        flags=("-e", "--explainer", "--explainers"), metavar="SPEC", basic=True,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class MaskingSettings(Seeded):
    """How words are masked."""

    unit: str | Splitter = option(
        "word", "unit that is masked: word, char, auto, sentence, 'chunk(3)', unicode", metavar="SPEC"
    )
    masker: str | Masker | None = option(
        None, "what replaces a masked word (default: the explainer's choice)", metavar="SPEC"
    )


@dataclass(frozen=True, kw_only=True)
class ExplainSettings(MaskingSettings):
    """What is explained, and how."""

    sides: tuple[str, ...] | None = option(
        None,
        "texts to explain (default: all that the metric reads)",
        flags=("--side", "--sides"),
        choices=tuple(Side),
        basic=True,
    )
    repeat: int = option(1, "explain with N seeds and report how well they agree", least=1, metavar="N")
    window: int = option(WINDOW, "probes kept in memory at a time", least=1, line=False)


class Explanations(Result, list[Explanation]):
    """What an explainer says of a metric's scores: a list with one explanation per segment and text."""

    kind: ClassVar[Kind] = "explanations"

    def __init__(
        self,
        explanations: Iterable[Explanation],
        segments: Segments,
        metric: MetricLike,
        explainer: str | Explainer,
        *,
        failures: Mapping[int, str] = MappingProxyType({}),
        matrices: Sequence[SimilarityMatrix | None] | None = None,
    ) -> None:
        """Hold explanations with what they are about.

        Args:
            explanations: One per segment and text.
            segments: What was explained.
            metric: Whose scores were explained.
            explainer: What explained them.
            failures: Why segments could not be explained, by their number.
            matrices: The similarities behind each explanation, where they were requested.
        """
        super().__init__(explanations)
        self.segments, self.metric, self.explainer = segments, metric, explainer
        self.failures, self.matrices = dict(failures), matrices

    @cached_property
    def dataset(self) -> Dataset:
        """The data that were explained."""
        return as_dataset(self.segments)

    @property
    def signature(self) -> Signature | None:
        return self[0].signature if self else None

    @cached_property
    def word_matches(self) -> list[WordMatches] | None:
        """The parts of each score and the partners of each word, for metrics that have them."""
        return word_matches(self.dataset, self.metric, self) if has_parts(self.metric) else None

    def header(self) -> Record:
        name = requested_name(self.metric)
        signatures = {} if self.signature is None else {f"{self.signature.spec} of {name}": str(self.signature)}
        return header_of(self.kind, self.dataset, signatures).object()

    def describe(self) -> Iterator[ExplanationRecord]:
        """Yield each explanation with its entry, its names, and what stands behind it."""
        names = requested_name(self.metric), requested_name(self.explainer)
        matrices = self.matrices or [None] * len(self)
        behind = (
            [{}] * len(self)
            if self.word_matches is None
            else [word_match._asdict() for word_match in self.word_matches]
        )
        for explanation, matrix, details in zip(self, matrices, behind, strict=True):
            yield ExplanationRecord.of(
                self.dataset.entries[explanation.index], *names, explanation, matrix=matrix, **details
            )

    def records(self) -> Iterator[Record]:
        return map(explanation_record, self.describe())

    def tables(self, *, long: bool = False) -> list[Table]:
        del long
        columns = ("id", "system", "metric", "explainer", "side", "reference", "word", "start", "end", "importance")
        rows: list[tuple[Cell, ...]] = []
        for record in self.describe():
            named = (
                record.id,
                record.system,
                record.metric,
                record.explainer,
                str(record.place.side),
                record.place.reference,
            )
            numbers = zip(record.words, record.spans.tolist(), record.importance.tolist(), strict=True)
            rows += [(*named, word, start, end, importance) for word, (start, end), importance in numbers]
        return [Table(columns, tuple(rows), notes=() if self.signature is None else (str(self.signature),))]

    def __repr__(self) -> str:
        lines = [f"  {explanation!r}," for explanation in self[:_LISTED]]
        more = [f"  ... {len(self) - _LISTED} more"] if len(self) > _LISTED else []
        left_out = [failure_message(self.failures, len(self.segments))] if self.failures else []
        return "\n".join([f"<Explanations: {len(self)} texts [", *lines, *more, "]>", *left_out])

    def _repr_html_(self) -> str:
        shown = "".join(explanation._repr_html_() for explanation in self[:SHOWN])
        return shown + (f"<div>and {len(self) - SHOWN} more</div>" if len(self) > SHOWN else "")


@takes(ExplainSettings)
def explain(
    segments: Segments,
    metric: MetricLike,
    explainer: str | Explainer = "erasure",
    *,
    settings: ExplainSettings,
    resources: Resources = LOCAL,
) -> Explanations:
    """Return one explanation per segment and place: hypothesis, source and references, as far as the metric reads them.

    Segments for which a language model gave no usable answer are left out; `failures` says why.

    Args:
        segments: What to explain.
        metric: A spec, a metric, or any function of segments.
        explainer: A spec or an explainer.
        settings: Sides, unit, masker, seed, repeat and window, which may also be given by name.
        resources: Store, executor and progress.

    >>> from whyscore import Segment
    >>> print(explain([Segment("a cat", references=("a dog",))], "token_f1", sides=["hypothesis"])[0])
    [a +0.50] [cat -0.17]
    """
    explanations = attempt(segments, metric, explainer, settings, resources)
    refuse_failures(metric, explanations.failures, len(as_segments(segments)))
    return explanations


def refuse_failures(metric: MetricLike, failures: Mapping[int, str], segments: int) -> None:
    """Raise where segments could not be explained, unless a language model gave usable answers for others."""
    if failures and (len(failures) == segments or not asks_model(as_metric(metric))):
        raise Unexplained(failure_message(failures, segments))


def attempt(
    segments: Segments, metric: MetricLike, explainer: str | Explainer, settings: ExplainSettings, resources: Resources
) -> Explanations:
    """Return the explanations of all segments that can be explained, and why the others cannot (`failures`)."""
    languages = languages_of(segments)
    localised = explainer_with_languages(explainer, languages)
    plan = _plan(with_languages(as_metric(metric), languages), localised, settings)
    outcome = explain_segments(plan, as_segments(segments), sides_of(settings.sides), resources)
    return Explanations(outcome.explanations, segments, metric, explainer, failures=outcome.failures)


def _plan(metric: Metric, explainer: str | Explainer, settings: ExplainSettings) -> Plan:
    return make_plan(
        metric,
        explainer,
        unit=settings.unit,
        masker=settings.masker,
        seed=settings.seed,
        repeat=settings.repeat,
        window=settings.window,
    )


@takes(ExplainSettings)
def cost(
    segments: Segments,
    metric: MetricLike,
    explainer: str | Explainer = "erasure",
    *,
    settings: ExplainSettings,
    resources: Resources = LOCAL,
) -> Cost:
    """Return how many texts an explanation would score, how many differ, and how many the store already holds.

    Exact for explainers with one round; for the others the later rounds are counted at their largest.
    """
    plan = _plan(as_metric(metric), explainer, settings)
    texts = [segment.only(plan.metric.inputs) for segment in as_segments(segments)]
    base = with_languages(plan.metric.metric, languages_of(segments))
    if not isinstance(plan.explainer, Explainer):
        return score_cost(base, texts, resources.store)
    total, distinct, stored = score_cost(base, texts, resources.store)
    for window in windows(plan, tasks_of(plan, texts, sides_of(settings.sides))):
        evidence = [Evidence.whole(task.words, np.nan, task.seed) for task in window]
        masks, probes = ask(plan, window, evidence, 0)
        asked = sum(len(own.texts) for own in probes)
        different = [own._replace(texts=list(dict.fromkeys(own.texts))) for own in probes]
        first = score_cost(base, probe_segments(texts, window, different), resources.store)
        later = sum(plan.explainer.cost(len(task.words)) - len(rows) for task, rows in zip(window, masks, strict=True))
        total, distinct, stored = total + asked + later, distinct + first.distinct + later, stored + first.stored
    return Cost(total, distinct, stored)


class Unexplained(ContractError):
    """Some segments could not be explained."""


class _Matching(SupportsSimilarity, Metric, Protocol):
    """A metric that matches texts."""


def require_matrix(metric: MetricLike) -> None:
    """Refuse a metric that has no matrix, before any work."""
    if not isinstance(as_metric(metric), SupportsSimilarity):
        raise SpecError(f"{requested_name(metric)} has no similarity matrix: use bertscore or xbertscore")


def word_matrices(explanations: Explanations, unit: str | Splitter = "word") -> list[SimilarityMatrix]:
    """Return one matrix per explanation: its words (by `unit`) x the words of the text it is matched with."""
    require_matrix(explanations.metric)
    plan = make_plan(as_metric(explanations.metric), explanations.explainer, unit=unit)
    matcher = cast("_Matching", with_languages(plan.metric.metric, languages_of(explanations.segments)))
    matrices: dict[int, SimilarityMatrix] = {}
    for place in dict.fromkeys(explanation.place for explanation in explanations):
        rows = [k for k, explanation in enumerate(explanations) if explanation.place == place]
        segments = [explanations[k].segment.only(matcher.inputs) for k in rows]
        for k, pair in zip(rows, matcher.text_pairs(segments, place), strict=True):
            matrices[k] = _similarity(explanations[k], pair, plan.splitter)
    return [matrices[k] for k in range(len(explanations))]


def _similarity(explanation: Explanation, pair: TextPair | None, splitter: Splitter) -> SimilarityMatrix:
    if pair is None:
        return SimilarityMatrix(None, None, np.empty((len(explanation.words), 0)), "empty")
    others = splitter.split(pair.other.text)
    cosines = word_cosines(pair, explanation.words, others)
    cut = pair.own.seen is not None or pair.other.seen is not None
    reason: Reason = "truncated" if cut else "undefined"
    return SimilarityMatrix(pair.place, others, cosines, reason if np.isnan(cosines).any() else None)
