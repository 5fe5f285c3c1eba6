"""Boosted scores: explain, aggregate, mix. The twin of `whyscore boost`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np
from markupsafe import Markup

from whyscore.aggregate.bags import Bags
from whyscore.aggregate.power import PowerMean
from whyscore.aggregate.sides import PerSide
from whyscore.analysis.calibrate.file import Calibration
from whyscore.analysis.calibrate.material import DEGENERATE
from whyscore.analysis.common import MetricLike, Segments, as_metric, as_segments
from whyscore.analysis.explain import cost as explain_cost
from whyscore.errors import DataError, SpecError
from whyscore.metrics.boosted import Boosted, OnEmpty, Parts
from whyscore.protocols import Aggregator, Explainer, Masker, Splitter
from whyscore.registry import build, spec_of
from whyscore.scoring.stack import LOCAL, Cost, Resources
from whyscore.types import SHOWN, Explanation, FloatVector, Scores, Segment


@dataclass(frozen=True, eq=False)
class BoostResult:
    """Boosted scores with what they are made of, one number per segment."""

    metric: Boosted
    scores: Scores
    """NaN where a segment has no word."""
    original: FloatVector
    aggregate: FloatVector
    explanations: tuple[Explanation, ...]
    degenerate: float
    """Share of segments whose power mean hangs on the floor alone: it counts words and sees nothing else."""
    empty: int
    """Segments without any word."""

    def _repr_html_(self) -> str:
        """Return every segment with its words coloured, and how its score came about."""
        head = Markup(
            "<p><b>{boosted:.4g}</b> = {w:g} &middot; {original:.4g} + {rest:g} &middot; {aggregate:.4g}</p>{words}"
        )
        pages = []
        for k, (value, original, aggregate) in enumerate(
            zip(self.scores.values[:SHOWN], self.original, self.aggregate, strict=False)
        ):
            words = Markup("").join(Markup(one._repr_html_()) for one in self.explanations if one.index == k)  # noqa: S704
            w = self.metric.w
            pages.append(
                head.format(boosted=value, w=w, original=original, rest=1 - w, aggregate=aggregate, words=words)
            )
        more = len(self.scores) - len(pages)
        return str(Markup("").join(pages)) + (f"<p>and {more} more</p>" if more else "")


def boosted(
    metric: MetricLike | None = None,
    explainer: str | Explainer | None = None,
    *,
    p: float | None = None,
    w: float | None = None,
    aggregator: str | Aggregator | None = None,
    parts: Parts = "all",
    unit: str | Splitter = "word",
    masker: str | Masker | None = None,
    seed: int = 0,
    calibration: Calibration | str | Path | None = None,
    on_empty: OnEmpty = "fail",
) -> Boosted:
    """Return a metric boosted by its own explanations, by given p and w or by a calibration.

    A segment without any word has no boosted score, or keeps the original one where `on_empty` is "score".

    >>> boosted("token_f1", "erasure", p=1.5, w=0.6).signature().spec
    'boosted(metric=token_f1, p=1.5, w=0.6)'
    """
    if calibration is not None:
        if p is not None or w is not None or aggregator is not None:
            raise SpecError("a calibration says p, w and aggregator: give it or them, not both")
        return replace(_calibrated(metric, explainer, calibration), on_empty=on_empty)
    if metric is None:
        raise SpecError("no metric to boost: name one, for example chrf, or give a calibration")
    return Boosted(
        metric=as_metric(metric),
        explainer=_explainer("erasure" if explainer is None else explainer),
        p=p,
        w=0.5 if w is None else w,
        aggregator=build(aggregator, "aggregator") if isinstance(aggregator, str) else aggregator,
        parts=parts,
        unit=build(unit, "splitter") if isinstance(unit, str) else unit,
        masker=build(masker, "masker") if isinstance(masker, str) else masker,
        seed=seed,
        on_empty=on_empty,
    )


def boost(
    segments: Segments,
    metric: MetricLike | None = None,
    explainer: str | Explainer | None = None,
    *,
    p: float | None = None,
    w: float | None = None,
    calibration: Calibration | str | Path | None = None,
    allow_overlap: bool = False,
    seed: int = 0,
    resources: Resources = LOCAL,
    **options: object,
) -> BoostResult:
    """Return boosted scores; `options` are those of `boosted`.

    Segments that the calibration was fitted on are refused unless `allow_overlap`: their scores have seen the people's.
    """
    made = _metric(metric, explainer, p=p, w=w, calibration=calibration, seed=seed, **options)
    asked = as_segments(segments)
    if calibration is not None and not allow_overlap:
        _refuse_overlap(asked, _loaded(calibration))
    found = made.components(asked, resources)
    values = made.mix(found.original, found.aggregate)
    rows = np.stack([found.original, found.aggregate], axis=1)
    scores = Scores(values, made.signature(), rows=rows, columns=("original", "aggregate"))
    empty = int(np.isnan(found.aggregate).sum())
    degenerate = degenerate_share(made, found.bags)
    return BoostResult(made, scores, found.original, found.aggregate, tuple(found.explanations), degenerate, empty)


def cost(segments: Segments, metric: Boosted, *, resources: Resources = LOCAL) -> Cost:
    """Return how many texts boosting would score; boosting a boosted metric multiplies the costs.

    For nested metrics the product is an upper bound: probes are no longer than the texts they come from.
    """
    asked = as_segments(segments)
    outer = explain_cost(
        asked, metric.metric, metric.explainer, resources=resources, unit=metric.unit, masker=metric.masker,
        seed=metric.seed, sides=["hypothesis"] if metric.parts == "hypothesis" else None,
    )  # fmt: skip
    if not isinstance(metric.metric, Boosted) or not asked:
        return outer
    inner = cost(asked, metric.metric)
    return Cost(
        -(-outer.asked * inner.asked // len(asked)), -(-outer.distinct * inner.distinct // len(asked)), outer.stored
    )


def degenerate_share(metric: Boosted, bags: Bags) -> float:
    """Return the share of segments whose power mean hangs on the floor alone; 0 for other means."""
    mean = metric.mean
    if not isinstance(mean, PowerMean | PerSide) or not len(bags):
        return 0.0
    floored = mean.powers(bags, np.array([mean.p])).floored[0]
    return float((floored >= DEGENERATE).mean())


def _metric(metric: MetricLike | None, explainer: str | Explainer | None, **options: object) -> Boosted:
    if isinstance(metric, Boosted) and explainer is None and options.get("p") is None and options.get("w") is None:
        return metric
    return boosted(metric, explainer, **options)  # type: ignore[arg-type]


def _calibrated(
    metric: MetricLike | None, explainer: str | Explainer | None, calibration: Calibration | str | Path
) -> Boosted:
    """Return the metric that a calibration describes, refusing any other metric or explainer."""
    found = _loaded(calibration)
    made = as_metric(found.metric if metric is None else metric)
    found.check(made.signature(), None if explainer is None else spec_of(_explainer(explainer)))
    return Boosted(
        metric=made,
        explainer=_explainer(found.explainer),
        aggregator=build(found.aggregator, "aggregator"),
        w=found.w,
        parts=cast("Parts", found.parts),
        unit=build(found.unit, "splitter"),
        masker=None if found.masker is None else build(found.masker, "masker"),
        seed=found.seed,
        shift=found.shift,
        stretch=found.stretch,
        rule=found.rule,
        calibration=found.digest,
    )


def _loaded(calibration: Calibration | str | Path) -> Calibration:
    return calibration if isinstance(calibration, Calibration) else Calibration.load(calibration)


def _explainer(given: str | Explainer) -> Explainer:
    return cast("Explainer", build(given, "explainer") if isinstance(given, str) else given)


def _refuse_overlap(segments: Sequence[Segment], calibration: Calibration) -> None:
    shared = calibration.overlap(segments)
    if shared:
        raise DataError(
            f"{shared} of {len(segments)} segments belong to the data this calibration was fitted on: their scores "
            "would look better than they are. Use other data, or --allow-overlap"
        )
