"""Boosted scores: explain, aggregate, mix. The twin of `whyscore boost`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol, cast, runtime_checkable

import numpy as np
from markupsafe import Markup

from whyscore.aggregate import Bags, FlooredFamily
from whyscore.analysis.calibrate.file import Calibration
from whyscore.analysis.calibrate.material import DEGENERATE
from whyscore.analysis.calibrate.settings import CalibrateSettings
from whyscore.analysis.common import MetricLike, Segments, as_dataset, as_metric, as_segments, with_languages
from whyscore.analysis.explain import MaskingSettings
from whyscore.analysis.explain import cost as explain_cost
from whyscore.data.codec import Kind
from whyscore.data.records import header_of, score_records
from whyscore.errors import DataError, SpecError
from whyscore.metrics.boosted import BoostComponents, Boosted, OnEmpty, Parts
from whyscore.protocols import Aggregator, Explainer
from whyscore.registry import build, build_from_file, spec_of
from whyscore.scoring.stack import LOCAL, Cost, Resources
from whyscore.settings import again, option, takes
from whyscore.types import Dataset, Explanation, FloatVector, Scores, Segment
from whyscore.types.result import Cell, Record, Result, Table

_SEGMENTS = 10
"""Segments that a notebook shows, each with the words of up to four texts."""


@dataclass(frozen=True, kw_only=True)
class BoostedSettings(MaskingSettings):
    """How a metric is boosted: by given p and w, or by a calibration."""

    p: float | None = option(
        None,
        "power of the power mean, -300 to 300 (default: 1)",
        flags=("-p", "--power"),
        metavar="P",
        basic=True,
    )
    w: float | None = option(
        None, "weight of the original score, 0 to 1 (default: 0.5)", flags=("--weight",), metavar="W", basic=True
    )
    aggregator: str | Aggregator | None = option(
        None, "another mean: 'exp_mean(t=2)', 'quantile(q=0.2)'", flags=("-a", "--aggregator"), metavar="SPEC"
    )
    parts: Parts = again(CalibrateSettings, "parts")
    calibration: str | Path | Calibration | None = option(
        None, "file with p and w, written by `whyscore calibrate`", metavar="FILE", basic=True
    )
    allow_code: tuple[str, ...] = option((), "files and modules that the calibration may run code from", metavar="PATH")
    on_empty: OnEmpty = option("fail", "segments without words: report no score (fail) or keep the original (score)")


@dataclass(frozen=True, kw_only=True)
class BoostSettings(BoostedSettings):
    """How segments are boosted."""

    allow_overlap: bool = option(False, "also score data that the calibration was fitted on")


@dataclass(frozen=True, eq=False, repr=False)
class BoostResult(Result):
    """Boosted scores with what they are made of, one number per segment."""

    metric: Boosted
    dataset: Dataset
    scores: Scores
    """NaN where a segment has no word."""
    original: FloatVector
    aggregate: FloatVector
    explanations: tuple[Explanation, ...]
    degenerate: float
    """Share of segments whose power mean is determined by the floor alone: it counts words and sees nothing else."""
    empty: int
    """Segments without any word."""
    missing: Mapping[int, str] = field(default_factory=dict)
    """Why segments have no score, by their number, where a language model gave none."""
    kind: ClassVar[Kind] = "scores"

    def header(self) -> Record:
        return _header(self.kind, self)

    def records(self) -> Iterator[Record]:
        reasons = dict.fromkeys(np.flatnonzero(np.isnan(self.scores.values)).tolist(), "empty") | dict(self.missing)
        name = self.scores.signature.spec
        return score_records(self.dataset, {name: self.scores}, parts=True, reasons={name: reasons})

    def tables(self, *, long: bool = False) -> list[Table]:
        del long
        rows: list[tuple[Cell, ...]] = [
            (entry.id, entry.system, *map(float, numbers))
            for entry, *numbers in zip(self.dataset.entries, *self._columns(), strict=True)
        ]
        return [Table(("id", "system", "original", "aggregate", "boosted"), tuple(rows))]

    def systems(self) -> "BoostedSystems":
        """Return the means of each system."""
        rows: list[tuple[Cell, ...]] = []
        for system in self.dataset.systems:
            members = [k for k, entry in enumerate(self.dataset.entries) if entry.system == system]
            scored = len(members) - sum(k in self.missing for k in members)
            rows.append((system, *(_mean(values[members]) for values in self._columns()), scored))
        return BoostedSystems(self, tuple(rows))

    def _columns(self) -> tuple[FloatVector, FloatVector, FloatVector]:
        return self.original, self.aggregate, self.scores.values

    def _repr_html_(self) -> str:
        """Return every segment with its words coloured, and how its score came about."""
        head = Markup(
            "<p><b>{boosted:.4g}</b> = {w:g} &middot; {original:.4g} + {rest:g} &middot; {aggregate:.4g}</p>{words}"
        )
        pages, w = [], self.metric.w
        for k, (original, aggregate, value) in enumerate(zip(*self._columns(), strict=True)):
            if k == _SEGMENTS:
                break
            pictures = [explanation._repr_html_() for explanation in self.explanations if explanation.index == k]
            words = Markup("").join(map(Markup, pictures))
            pages.append(
                head.format(boosted=value, w=w, original=original, rest=1 - w, aggregate=aggregate, words=words)
            )
        more = len(self.scores) - len(pages)
        return str(Markup("").join(pages)) + (f"<p>and {more} more</p>" if more else "")


@dataclass(frozen=True, eq=False, repr=False)
class BoostedSystems(Result):
    """The mean scores of each system."""

    segments: BoostResult
    rows: tuple[tuple[Cell, ...], ...]
    kind: ClassVar[Kind] = "totals"

    def header(self) -> Record:
        return _header(self.kind, self.segments)

    def tables(self, *, long: bool = False) -> list[Table]:
        del long
        directions = {"original": True, "boosted": True} if len(self.rows) > 1 else {}
        return [Table(("system", "original", "aggregate", "boosted", "segments"), self.rows, directions)]


def _header(kind: Kind, result: BoostResult) -> Record:
    signature = result.scores.signature
    return header_of(kind, result.dataset, {signature.spec: str(signature)}).object()


def _mean(values: FloatVector) -> float:
    defined = values[~np.isnan(values)]
    return float(np.sort(defined).mean()) if len(defined) else float("nan")


@takes(BoostedSettings)
def boosted(
    metric: MetricLike | None = None, explainer: str | Explainer | None = None, *, settings: BoostedSettings
) -> Boosted:
    """Return a metric boosted by its own explanations, by given p and w or by a calibration.

    A segment without any word has no boosted score, or keeps the original one where `on_empty` is "score".

    >>> boosted("token_f1", "erasure", p=1.5, w=0.6).signature().spec
    'boosted(metric=token_f1, p=1.5, w=0.6)'
    """
    if settings.calibration is not None:
        if settings.p is not None or settings.w is not None or settings.aggregator is not None:
            raise SpecError(
                "a calibration sets p, w and the aggregator: give either the calibration or these options, not both"
            )
        return _build_calibrated(metric, explainer, settings.calibration, settings)
    if metric is None:
        raise SpecError("no metric to boost: name one, for example chrf, or give a calibration")
    aggregator, unit, masker = settings.aggregator, settings.unit, settings.masker
    return Boosted(
        metric=as_metric(metric),
        explainer=_explainer("erasure" if explainer is None else explainer),
        p=settings.p,
        w=0.5 if settings.w is None else settings.w,
        aggregator=build(aggregator, "aggregator") if isinstance(aggregator, str) else aggregator,
        parts=settings.parts,
        unit=build(unit, "splitter") if isinstance(unit, str) else unit,
        masker=build(masker, "masker") if isinstance(masker, str) else masker,
        seed=settings.seed,
        on_empty=settings.on_empty,
    )


@runtime_checkable
class _HasComponents(Protocol):
    """A metric that is boosted already."""

    def components(self, segments: Sequence[Segment], resources: Resources = LOCAL) -> BoostComponents:
        """Return what its scores are mixed of."""


@takes(BoostSettings)
def boost(
    segments: Segments,
    metric: MetricLike | None = None,
    explainer: str | Explainer | None = None,
    *,
    settings: BoostSettings,
    resources: Resources = LOCAL,
) -> BoostResult:
    """Return boosted scores; a boosted metric that comes without explainer, p and w is taken as it is.

    Segments that the calibration was fitted on are refused unless `allow_overlap`: their scores have seen the people's.
    """
    ready = isinstance(metric, _HasComponents) and explainer is None and settings.p is None and settings.w is None
    booster = cast("Boosted", metric) if ready else boosted(metric, explainer, settings=settings)
    return boost_segments(segments, booster, settings, resources)


def boost_segments(
    segments: Segments, metric: Boosted, settings: BoostSettings, resources: Resources = LOCAL
) -> BoostResult:
    """Return the scores of a boosted metric with what they are made of."""
    dataset = as_dataset(segments)
    if settings.calibration is not None and not settings.allow_overlap:
        _refuse_overlap(dataset.segments, _load_calibration(settings.calibration))
    metric = replace(metric, metric=with_languages(metric.metric, dataset.languages))
    original, aggregate, explanations, bags, missing = metric.components(dataset.segments, resources)
    if len(missing) == len(dataset):
        raise DataError(f"{metric.metric.signature().spec} gave no score for any segment: there is nothing to boost")
    rows = np.stack([original, aggregate], axis=1)
    scores = Scores(metric.mix(original, aggregate), metric.signature(), rows=rows, columns=("original", "aggregate"))
    empty = int((np.isnan(aggregate) & ~np.isnan(original)).sum())
    degenerate = degenerate_share(metric, bags)
    return BoostResult(metric, dataset, scores, original, aggregate, tuple(explanations), degenerate, empty, missing)


def cost(segments: Segments, metric: Boosted, *, resources: Resources = LOCAL) -> Cost:
    """Return how many texts boosting would score; boosting a boosted metric multiplies the costs.

    For nested metrics the product is an upper bound: probes are no longer than the texts they come from.
    """
    texts = as_segments(segments)
    outer = explain_cost(
        texts, metric.metric, metric.explainer, resources=resources, unit=metric.unit, masker=metric.masker,
        seed=metric.seed, sides=["hypothesis"] if metric.parts == "hypothesis" else None,
    )  # fmt: skip
    if metric.inner is None or not texts:
        return outer
    inner = cost(texts, metric.inner)
    return Cost(
        -(-outer.asked * inner.asked // len(texts)), -(-outer.distinct * inner.distinct // len(texts)), outer.stored
    )


def degenerate_share(metric: Boosted, bags: Bags) -> float:
    """Return the share of segments whose power mean is determined by the floor alone; 0 for other means."""
    mean = metric.mean
    if not isinstance(mean, FlooredFamily) or not len(bags):
        return 0.0
    floored = mean.powers(bags, np.array([mean.p])).floored[0]
    return float((floored >= DEGENERATE).mean())


def _build_calibrated(
    metric: MetricLike | None,
    explainer: str | Explainer | None,
    calibration: Calibration | str | Path,
    settings: BoostedSettings,
) -> Boosted:
    """Return the metric that a calibration describes, refusing any other metric or explainer."""
    fitted = _load_calibration(calibration)
    file = "the calibration" if isinstance(calibration, Calibration) else calibration

    def build_named(spec: str, kind: str) -> Any:  # noqa: ANN401 - the kind decides the protocol
        return build_from_file(spec, kind, file, settings.allow_code)

    base = build_named(fitted.metric, "metric") if metric is None else as_metric(metric)
    fitted.check(base.signature(), None if explainer is None else spec_of(_explainer(explainer)))
    return Boosted(
        metric=base,
        explainer=build_named(fitted.explainer, "explainer"),
        aggregator=build_named(fitted.aggregator, "aggregator"),
        w=fitted.w,
        parts=cast("Parts", fitted.parts),
        unit=build_named(fitted.unit, "splitter"),
        masker=None if fitted.masker is None else build_named(fitted.masker, "masker"),
        seed=fitted.seed,
        shift=fitted.shift,
        stretch=fitted.stretch,
        rule=fitted.rule,
        calibration=fitted.digest,
        on_empty=settings.on_empty,
    )


def _load_calibration(calibration: Calibration | str | Path) -> Calibration:
    return calibration if isinstance(calibration, Calibration) else Calibration.load(calibration)


def _explainer(explainer: str | Explainer) -> Explainer:
    return cast("Explainer", build(explainer, "explainer") if isinstance(explainer, str) else explainer)


def _refuse_overlap(segments: Sequence[Segment], calibration: Calibration) -> None:
    shared = calibration.overlap(segments)
    if shared:
        raise DataError(
            f"{shared} of {len(segments)} segments belong to the data this calibration was fitted on: their scores "
            "would look better than they are. Use other data, or --allow-overlap"
        )
