"""A metric made better by its own explanations: BMX, after Leiter, Nguyen and Eger (2022), arXiv 2212.10469.

1. Explain the metric's score s0: one importance for each word of the references, the source and the hypothesis.
2. Aggregate all importances of a segment to one number M, by a power mean unless told otherwise.
3. The boosted score is w s0 + (1 - w) M: w = 1 is the original metric, w = 0 the explanation alone.

The result is a metric: it can be scored, explained, and boosted again by nesting. Scores of a lower-is-better metric
are turned first, so that a boosted metric is always higher-is-better.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from whyscore.aggregate import Bags, PowerMean, SidedFamily
from whyscore.errors import SpecError, TextFailure
from whyscore.explainers.engine import explain_segments, failure_message, make_plan, sides_of
from whyscore.explainers.masks.erasure import Erasure
from whyscore.protocols import Aggregator, Explainer, Masker, Metric, Splitter
from whyscore.registry import component, spec_of
from whyscore.scoring.rows import asks_model, orient
from whyscore.scoring.stack import LOCAL, Resources, needs
from whyscore.settings import check_fields
from whyscore.text.files import files_of
from whyscore.text.splitters import WhiteSpace
from whyscore.types import Explanation, FloatVector, Inputs, Segment, Side, Signature
from whyscore.version import __version__

Parts = Literal["all", "hypothesis", "first_reference"]
OnEmpty = Literal["fail", "score"]
UNSCORED = "undefined"
"""The reason of a segment that has a score itself, but not with some word masked."""


class BoostComponents(NamedTuple):
    """The parts of boosted scores, one row per segment."""

    original: FloatVector
    """The metric's own score, turned where lower is better."""
    aggregate: FloatVector
    """The aggregated importances; NaN where no text has a word."""
    explanations: list[Explanation]
    bags: Bags
    missing: Mapping[int, str] = MappingProxyType({})
    """Why a language model gave some segments no score; both numbers are NaN there."""


@dataclass(frozen=True)
class Boosted:
    """A metric mixed with the aggregate of its own word importances.

    Args:
        metric: the metric that is boosted; it may be boosted already.
        explainer: what gives words their importance.
        p: the power of the power mean; 1 if neither `p` nor `aggregator` is given.
        w: the weight of the original score, 0 to 1.
        aggregator: another mean instead of `power_mean(p)`.
        parts: aggregate the words of all texts, of the hypothesis alone, or of the first reference and the hypothesis.
        unit: what is masked at a time.
        masker: what replaces a masked word; the explainer's choice if None.
        seed: fixes the explainer's random numbers.
        shift, stretch: the aggregate is brought to the metric's scale by shift + stretch * M.
        on_empty: a segment without any word fails, or keeps the original `score`.
        rule: how p and w were found, for the signature.
        calibration: the digest of the calibration they come from, for the signature.
    """

    metric: Metric = component("metric")
    explainer: Explainer = component("explainer", default=Erasure())
    p: float | None = None
    w: float = 0.5
    aggregator: Aggregator | None = component("aggregator", default=None)
    parts: Parts = "all"
    unit: Splitter = component("splitter", default=WhiteSpace())
    masker: Masker | None = component("masker", default=None)
    seed: int = 0
    shift: float = 0.0
    stretch: float = 1.0
    on_empty: OnEmpty = "fail"
    rule: str = "given"
    calibration: str | None = None

    higher_is_better: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_fields(self)
        if self.p is not None and self.aggregator is not None:
            raise SpecError("boosted: p is the power of the power mean; give p or an aggregator, not both")
        if not 0 <= self.w <= 1:
            raise SpecError(f"boosted: w is {self.w!r}, expected a weight from 0 (explanation alone) to 1 (original)")
        if not (np.isfinite(self.shift) and np.isfinite(self.stretch)):
            raise SpecError(f"boosted: shift and stretch are {self.shift!r} and {self.stretch!r}, expected numbers")
        check_sides(self.mean, self.parts)

    @property
    def inner(self) -> "Boosted | None":
        """The metric that is boosted, where it is boosted itself: costs of nested explainers multiply."""
        return self.metric if isinstance(self.metric, Boosted) else None

    @property
    def inputs(self) -> Inputs:
        return self.metric.inputs

    @property
    def needs(self) -> Inputs:
        return needs(self.metric)

    @property
    def mean(self) -> Aggregator:
        """The aggregator, whichever way it was given."""
        if self.aggregator is not None:
            return self.aggregator
        return PowerMean(1.0 if self.p is None else self.p)

    def signature(self) -> Signature:
        signature = self.metric.signature()
        files = files_of((self.explainer, self.masker, self.unit))
        facts = (
            ("aggregator", spec_of(self.mean)),
            ("w", repr(self.w)),
            ("rule", self.rule),
            ("calibration", self.calibration or "none"),
            ("metric", str(signature).replace("|", ";")),
            *((("files", ",".join(files.values())),) if files else ()),
            ("seed", str(self.seed)),
            ("version", __version__),
        )
        return Signature(self._spec(signature), facts, signature.stable)

    def _spec(self, signature: Signature) -> str:
        try:
            return spec_of(self)
        except SpecError:  # a metric made at run time has no spec of its own
            return f"boosted(metric={signature.spec}, explainer={spec_of(self.explainer)})"

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        components = self.components(segments)
        mixed = self.mix(components.original, components.aggregate)
        if (np.isnan(mixed) & ~np.isnan(components.original)).any():
            raise TextFailure(
                "boosted", 'has no word to explain in some segment; on_empty="score" keeps the original score there'
            )
        return mixed

    def mix(self, original: FloatVector, aggregate: FloatVector) -> FloatVector:
        """Return the boosted scores of the two parts; NaN where there was no word, unless those keep the original."""
        mixed = self.w * original + (1 - self.w) * (self.shift + self.stretch * aggregate)
        return np.where(np.isnan(aggregate), original, mixed) if self.on_empty == "score" else mixed

    def components(self, segments: Sequence[Segment], resources: Resources = LOCAL) -> BoostComponents:
        """Return the original scores, the aggregates and the explanations behind them."""
        if not segments:
            return BoostComponents(np.zeros(0), np.zeros(0), [], Bags.of([]))
        sides = sides_of(["hypothesis"] if self.parts == "hypothesis" else None)
        resources = resources.keeping_answers(self.metric)
        plan = make_plan(self.metric, self.explainer, unit=self.unit, masker=self.masker, seed=self.seed)
        explanations, failures = explain_segments(plan, segments, sides, resources)
        missing = {}
        if failures:
            if not asks_model(self.metric):
                raise TextFailure("boosted", failure_message(failures, len(segments)))
            reasons = resources.prepare(self.metric).missing(segments)
            missing = {k: reasons[k].reason if k in reasons else UNSCORED for k in failures}
        original, bags = gather_importances(explanations, len(segments), self.parts)
        original = orient(self.metric).sign * original
        return BoostComponents(original, _aggregate(self.mean, bags), list(explanations), bags, missing)


def check_sides(aggregator: object, parts: Parts) -> None:
    """Refuse powers per side where only one side is read."""
    if isinstance(aggregator, SidedFamily) and parts == "hypothesis":
        raise SpecError(
            "per_side has a power for the references, but parts='hypothesis' leaves them out: use power_mean"
        )


def _aggregate(mean: Aggregator, bags: Bags) -> FloatVector:
    if isinstance(mean, SidedFamily):  # sees more than a bare vector
        result: FloatVector = mean.table(bags, np.array([mean.p]))[0]
        return result
    return np.array([mean.aggregate(bags.of_segment(i)) for i in range(len(bags))], dtype=np.float64)


def gather_importances(
    explanations: Sequence[Explanation], count: int, parts: Parts = "all"
) -> tuple[FloatVector, Bags]:
    """Return the score of each segment, and the importances of its places: references, source, hypothesis."""
    scores = np.full(count, np.nan)
    importances: list[list[tuple[int, FloatVector]]] = [[] for _ in range(count)]
    lengths = np.zeros(count, dtype=np.int64)
    for explanation in explanations:
        scores[explanation.index] = explanation.score
        place = explanation.place
        if place.side is Side.HYPOTHESIS:
            lengths[explanation.index] = len(explanation.importance)
        if parts == "hypothesis" and place.side is not Side.HYPOTHESIS:
            continue
        if parts == "first_reference" and place.side is not Side.HYPOTHESIS and place.reference != 0:
            continue
        importances[explanation.index].append((_order(explanation), explanation.importance))
    ordered = [[values for _, values in sorted(places, key=lambda item: item[0])] for places in importances]
    return scores, Bags.of([np.concatenate(places) if places else np.zeros(0) for places in ordered]).with_sides(
        lengths
    )


def _order(explanation: Explanation) -> int:
    """Return where a place stands: references in order, then the source, then the hypothesis."""
    if explanation.place.side is Side.REFERENCE:
        return explanation.place.reference or 0
    return 10**9 if explanation.place.side is Side.SOURCE else 10**9 + 1
