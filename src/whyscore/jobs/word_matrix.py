"""The similarity matrix behind explanations: the words of each text against those of the text it is matched with."""

from collections.abc import Iterator, Sequence
from typing import Protocol, cast

import numpy as np

from whyscore.data.records import Heat
from whyscore.data.strict import Reason
from whyscore.errors import SpecError
from whyscore.jobs.common import MetricLike, as_metric, asked_name
from whyscore.jobs.languages import languages_of, spoken
from whyscore.jobs.probing import make_plan
from whyscore.metrics.matching.words import Faces, Facing, word_cosines
from whyscore.protocols import Explainer, Metric, Splitter
from whyscore.types import HYPOTHESIS, Dataset, Explanation, Place, Segment, Side


class _Matching(Faces, Metric, Protocol):
    """A metric that matches texts."""


def require_matrix(metric: MetricLike) -> None:
    """Refuse a metric that has no matrix, before any work."""
    if not isinstance(as_metric(metric), Faces):
        raise SpecError(f"{asked_name(metric)} has no matrix of similarities: bertscore and xbertscore have one")


def word_matrices(
    dataset: Dataset,
    metric: MetricLike,
    explanations: Sequence[Explanation],
    explainer: str | Explainer = "matching",
    *,
    unit: str | Splitter = "word",
) -> list[Heat]:
    """Return one matrix per explanation: its words x the words of the text it is matched with.

    Args:
        dataset: what was explained.
        metric: the metric that was explained; bertscore and xbertscore have matrices.
        explanations: what `explain` gave.
        explainer: what made them.
        unit: what they call a word.
    """
    require_matrix(metric)
    plan = make_plan(metric, explainer, unit=unit)
    asked = cast("_Matching", spoken(plan.metric.metric, languages_of(dataset)))
    found: dict[int, Heat] = {}
    for place in dict.fromkeys(one.place for one in explanations):
        rows = [k for k, one in enumerate(explanations) if one.place == place]
        segments = [explanations[k].segment.only(asked.inputs) for k in rows]
        faced = asked.faced(segments, place)
        heats = _heats([explanations[k] for k in rows], segments, faced, plan.splitter)
        found |= zip(rows, heats, strict=True)
    return [found[k] for k in range(len(explanations))]


def _heats(
    explanations: Sequence[Explanation],
    segments: Sequence[Segment],
    faced: Iterator[Facing | None],
    splitter: Splitter,
) -> Iterator[Heat]:
    for one, segment, found in zip(explanations, segments, faced, strict=True):
        if found is None:
            yield Heat(None, None, np.empty((len(one.words), 0)), "empty")
            continue
        others = splitter.split(found.other.text)
        cosines = word_cosines(found, one.words, others)
        cut = found.own.seen is not None or found.other.seen is not None
        reason: Reason = "truncated" if cut else "undefined"
        yield Heat(_facing(one.place, found, segment), others, cosines, reason if np.isnan(cosines).any() else None)


def _facing(place: Place, found: Facing, segment: Segment) -> Place:
    """Return the place of the text that a text is matched with."""
    if place.side is not Side.HYPOTHESIS:
        return HYPOTHESIS
    places = [Place(Side.SOURCE), *(Place(Side.REFERENCE, k) for k in range(len(segment.references)))]
    return next(other for other in places if str(other) == found.name)
