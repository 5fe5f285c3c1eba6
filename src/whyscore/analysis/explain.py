"""Explanations: which words made the score, for every text of every segment; and the matrices behind a match."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np

from whyscore.analysis.common import (
    MetricLike,
    Segments,
    as_metric,
    as_segments,
    languages_of,
    requested_name,
    with_languages,
)
from whyscore.errors import ContractError, SpecError
from whyscore.explainers.engine import (
    WINDOW,
    Outcome,
    Plan,
    ask,
    explain_segments,
    failure_message,
    make_plan,
    probed,
    sides_of,
    tasks_of,
    windows,
)
from whyscore.metrics.matching.words import SupportsSimilarity, TextPair, word_cosines
from whyscore.protocols import Explainer, Masker, Metric, Splitter
from whyscore.scoring.stack import LOCAL, Cost, Resources
from whyscore.scoring.stack import cost as score_cost
from whyscore.settings import Seeded, option, takes
from whyscore.text.strict import Reason
from whyscore.types import (
    HYPOTHESIS,
    Dataset,
    Evidence,
    Explanation,
    Explanations,
    Place,
    Segment,
    Side,
    SimilarityMatrix,
)


@dataclass(frozen=True, kw_only=True)
class MaskingSettings(Seeded):
    """How words are masked."""

    unit: str | Splitter = option(
        "word", "what is masked at a time: word, char, auto, sentence, 'chunk(3)', unicode", metavar="SPEC"
    )
    masker: str | Masker | None = option(
        None, "what a masked word becomes (default: the explainer's choice)", metavar="SPEC"
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
    repeat: int = option(1, "explain with this many seeds, and say how well they agree", least=1, metavar="N")
    window: int = option(WINDOW, "probes that are held at a time", least=1, line=False)


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

    Args:
        segments: What to explain.
        metric: A spec, a metric, or any function of segments.
        explainer: A spec or an explainer.
        settings: Sides, unit, masker, seed, repeat and window, which may also be given by name.
        resources: Store, executor and progress.

    >>> print(explain([Segment("a cat", references=("a dog",))], "token_f1", sides=["hypothesis"])[0])
    [a +0.50] [cat -0.17]
    """
    found = attempt(segments, metric, explainer, settings=settings, resources=resources)
    if found.failures:
        raise Unexplained(failure_message(found.failures, len(as_segments(segments))))
    return found.explanations


@takes(ExplainSettings)
def attempt(
    segments: Segments,
    metric: MetricLike,
    explainer: str | Explainer = "erasure",
    *,
    settings: ExplainSettings,
    resources: Resources = LOCAL,
) -> Outcome:
    """Return the explanations of all segments that can be explained, and why the others cannot."""
    plan = _plan(with_languages(as_metric(metric), languages_of(segments)), explainer, settings)
    return explain_segments(plan, as_segments(segments), sides_of(settings.sides), resources)


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
    asked = [segment.only(plan.metric.inputs) for segment in as_segments(segments)]
    base = with_languages(plan.metric.metric, languages_of(segments))
    if not isinstance(plan.explainer, Explainer):
        return score_cost(base, asked, resources.store)
    total, distinct, stored = score_cost(base, asked, resources.store)
    for window in windows(plan, tasks_of(plan, asked, sides_of(settings.sides))):
        known = [Evidence.whole(task.words, np.nan, task.seed) for task in window]
        masks, probes = ask(plan, window, known, 0)
        first = score_cost(base, list(probed(asked, window, probes)), resources.store)
        later = sum(plan.explainer.cost(len(task.words)) - len(rows) for task, rows in zip(window, masks, strict=True))
        total, distinct, stored = total + first.asked + later, distinct + first.distinct + later, stored + first.stored
    return Cost(total, distinct, stored)


class Unexplained(ContractError):
    """Some segments could not be explained."""


class _Matching(SupportsSimilarity, Metric, Protocol):
    """A metric that matches texts."""


def require_matrix(metric: MetricLike) -> None:
    """Refuse a metric that has no matrix, before any work."""
    if not isinstance(as_metric(metric), SupportsSimilarity):
        raise SpecError(f"{requested_name(metric)} has no matrix of similarities: bertscore and xbertscore have one")


def word_matrices(
    dataset: Dataset,
    metric: MetricLike,
    explanations: Sequence[Explanation],
    explainer: str | Explainer = "matching",
    *,
    unit: str | Splitter = "word",
) -> list[SimilarityMatrix]:
    """Return one matrix per explanation: its words x the words of the text it is matched with.

    Args:
        dataset: what was explained.
        metric: the metric that was explained; bertscore and xbertscore have matrices.
        explanations: what `explain` gave.
        explainer: what made them.
        unit: what they call a word.
    """
    require_matrix(metric)
    plan = make_plan(as_metric(metric), explainer, unit=unit)
    asked = cast("_Matching", with_languages(plan.metric.metric, languages_of(dataset)))
    found: dict[int, SimilarityMatrix] = {}
    for place in dict.fromkeys(one.place for one in explanations):
        rows = [k for k, one in enumerate(explanations) if one.place == place]
        segments = [explanations[k].segment.only(asked.inputs) for k in rows]
        faced = asked.text_pairs(segments, place)
        heats = _heats([explanations[k] for k in rows], segments, faced, plan.splitter)
        found |= zip(rows, heats, strict=True)
    return [found[k] for k in range(len(explanations))]


def _heats(
    explanations: Sequence[Explanation],
    segments: Sequence[Segment],
    faced: Iterator[TextPair | None],
    splitter: Splitter,
) -> Iterator[SimilarityMatrix]:
    for one, segment, found in zip(explanations, segments, faced, strict=True):
        if found is None:
            yield SimilarityMatrix(None, None, np.empty((len(one.words), 0)), "empty")
            continue
        others = splitter.split(found.other.text)
        cosines = word_cosines(found, one.words, others)
        cut = found.own.seen is not None or found.other.seen is not None
        reason: Reason = "truncated" if cut else "undefined"
        yield SimilarityMatrix(
            _facing(one.place, found, segment), others, cosines, reason if np.isnan(cosines).any() else None
        )


def _facing(place: Place, found: TextPair, segment: Segment) -> Place:
    """Return the place of the text that a text is matched with."""
    if place.side is not Side.HYPOTHESIS:
        return HYPOTHESIS
    places = [Place(Side.SOURCE), *(Place(Side.REFERENCE, k) for k in range(len(segment.references)))]
    return next(other for other in places if str(other) == found.name)
