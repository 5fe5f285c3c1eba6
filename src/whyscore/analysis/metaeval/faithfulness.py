"""Does the metric agree with the explanation? Words are hidden in its order, and the score is watched.

For a metric f (turned so that larger is better), a text x of n words, and an order of the words, most helpful first:

1. D(k) = f(x without the first k words), I(k) = f(the first k words alone); D(0) = I(n) = f(x), D(n) = I(0) = f(empty).
2. Read off, with k = the share q of the words, rounded up, so at least one (DeYoung et al., 2020, for the first three;
   Petsiuk et al., 2018, for the areas), means over the shares q:

   | measure | value | good |
   |---|---|---|
   | `comprehensiveness_plus` | f(x) - D(k): the most helpful words are missed | high |
   | `comprehensiveness_minus` | I(n - k) - f(x): the most harmful words are not | high |
   | `sufficiency` | f(x) - I(k): the most helpful words suffice | low |
   | `deletion` | area under D by trapezia, share of words on the axis | low |
   | `insertion` | area under I | high |

3. The same for 20 random orders of the text, from the seed and the text alone. **Gain** = how much better than their
   mean, so that above 0 is always good and random importance gets about 0.
4. Normalised values are divided by f(x) - f(empty); where that is 0 (at most 1e-9 in size) the text is `flat`.

All probes of all texts, orders and explainers go into one score call. Texts without some words are off the beaten track
of most metrics, so the masker stands in the signature.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whyscore.analysis.common import MetricLike, Segments, as_metric, as_segments, requested_name
from whyscore.analysis.explain import explain
from whyscore.errors import SpecError
from whyscore.explainers.engine import Plan, Task, make_plan, per_mask, probed, scored
from whyscore.protocols import Explainer, Masker, Splitter
from whyscore.registry import build, spec_of
from whyscore.scoring.rows import oriented
from whyscore.scoring.stack import LOCAL, Resources
from whyscore.stats.words import mean_estimates
from whyscore.text.maskers import Delete
from whyscore.text.randomness import generator
from whyscore.types import Estimate, Explanation, FloatMatrix, FloatVector, KeepMasks, Segment, Side, Signature
from whyscore.version import __version__

SHARES = (0.05, 0.1, 0.2, 0.5)
ORDERS = 20
MEASURES = ("comprehensiveness_plus", "comprehensiveness_minus", "sufficiency", "deletion", "insertion")
LOW_IS_GOOD = ("sufficiency", "deletion")
_FLAT = 1e-9
_ROUNDING = 1e-9  # 0.1 * 30 is a little more than 3

Order = NDArray[np.intp]
"""Words by number, most helpful first."""


@dataclass(frozen=True, eq=False)
class MeasureResult:
    """One measure over all texts; higher gains are better whatever the measure."""

    raw: float
    normalised: float
    gain: Estimate
    """Of the normalised values, over random orders."""
    raw_gain: Estimate


@dataclass(frozen=True, eq=False)
class FaithfulnessResult:
    """One explainer: its measures, and one row of raw values per text."""

    explainer: str
    measures: Mapping[str, MeasureResult]
    n: int
    """Texts with at least one word and a score for every probe."""
    flat: int
    """Of these, texts without a normalised value."""
    failed: int
    """Texts left out because the metric failed on a probe, or because they have no words."""
    signature: Signature
    values: FloatMatrix
    """Texts x measures, raw."""


class _Curves(NamedTuple):
    """D and I of one order, k = 0 .. n."""

    deletion: FloatVector
    insertion: FloatVector


def faithfulness(
    segments: Segments,
    metric: MetricLike,
    explainers: Sequence[str | Explainer],
    *,
    shares: Sequence[float] = SHARES,
    orders: int = ORDERS,
    masker: str | Masker | None = None,
    unit: str | Splitter = "word",
    sides: Sequence[str | Side] = ("hypothesis",),
    seed: int = 0,
    draws: int = 1000,
    resources: Resources = LOCAL,
) -> list[FaithfulnessResult]:
    """Return how faithful each explainer is to the metric.

    Args:
        segments: what is explained.
        metric: a spec, a metric, or any function of segments.
        explainers: specs or explainers.
        shares: of the words that are hidden, for comprehensiveness and sufficiency.
        orders: random orders per text that gains are measured against.
        masker: what a hidden word becomes (default: it is deleted).
        unit: what is hidden at a time.
        sides: whose words are explained.
        seed: fixes every random number.
        draws: bootstrap samples behind the intervals.
        resources: store, executor and progress.
    """
    _check(shares, orders)
    asked, base = as_segments(segments), as_metric(metric)
    hiding = build(masker, "masker") if isinstance(masker, str) else masker or Delete()
    plan = make_plan(base, "erasure", unit=unit, masker=hiding, seed=seed)
    plan = Plan(oriented(resources.prepare(base)), plan.explainer, hiding, plan.splitter, seed)
    found = [
        explain(asked, base, one, sides=list(sides), unit=unit, seed=seed, resources=resources) for one in explainers
    ]
    tasks, wanted = _tasks([one for own in found for one in own], orders, seed)
    curves = _scored(plan, [segment.only(plan.metric.inputs) for segment in asked], tasks, wanted)
    facts = {"masker": spec_of(hiding), "shares": ",".join(f"{share:g}" for share in shares), "orders": str(orders)}
    results, at = [], 0
    for given, own in zip(explainers, found, strict=True):
        name = requested_name(given)
        signature = Signature(
            name, (("metric", base.signature().spec), *facts.items(), ("seed", str(seed)), ("version", __version__))
        )
        results.append(_result(name, curves[at : at + len(own)], shares, signature, draws=draws, seed=seed))
        at += len(own)
    return results


def _check(shares: Sequence[float], orders: int) -> None:
    if not shares or not all(0 < share <= 1 for share in shares):
        raise SpecError(f"shares are {tuple(shares)}, expected numbers above 0 and up to 1")
    if orders < 1:
        raise SpecError(f"orders is {orders}, expected 1 or more")


def _tasks(found: Sequence[Explanation], orders: int, seed: int) -> tuple[list[Task], list[list[Order]]]:
    """Return each explained text with the orders to try: the explanation's own, then random ones."""
    tasks = [Task(one.index, one.place, one.words, seed) for one in found]
    wanted = []
    for one in found:
        rng = generator(seed, "orders", one.words.text)
        drawn = [rng.permutation(len(one.words)) for _ in range(orders)]
        wanted.append([np.argsort(-one.importance, kind="stable"), *drawn])
    return tasks, wanted


def curve_masks(order: Order) -> KeepMasks:
    """Return the masks along an order: without the first 0 .. n words, then with the first 0 .. n alone.

    >>> curve_masks(np.array([1, 0])).astype(int).tolist()
    [[1, 1], [1, 0], [0, 0], [0, 0], [0, 1], [1, 1]]
    """
    n = len(order)
    rank = np.empty(n, dtype=np.int64)
    rank[order] = np.arange(n)
    steps = np.arange(n + 1)[:, np.newaxis]
    return np.concatenate([rank >= steps, rank < steps])


def _scored(
    plan: Plan, segments: Sequence[Segment], tasks: list[Task], wanted: list[list[Order]]
) -> list[list[_Curves] | None]:
    """Return the curves of every text and order; None where a probe failed or there are no words. ONE score call."""
    masks = [np.concatenate([curve_masks(order) for order in orders]) for orders in wanted]
    masker = plan.masker or Delete()
    probes = masker.render([(task.words, rows) for task, rows in zip(tasks, masks, strict=True)])
    values, _ = scored(plan, list(probed(segments, tasks, probes)))
    curves: list[list[_Curves] | None] = []
    start = 0
    for task, rows, texts in zip(tasks, masks, probes, strict=True):
        own = per_mask(texts, values[start : start + len(texts.texts)], len(rows))
        start += len(texts.texts)
        n = len(task.words)
        both = own.reshape(-1, 2, n + 1) if n else own[:0].reshape(0, 2, 1)
        curves.append(None if not n or np.isnan(own).any() else [_Curves(*pair) for pair in both])
    return curves


def measured(curves: _Curves, shares: Sequence[float]) -> FloatVector:
    """Return the measures of one order, raw, in the order of `MEASURES`."""
    deletion, insertion = curves
    n = len(deletion) - 1
    whole = deletion[0]
    hidden = [max(1, int(np.ceil(share * n - _ROUNDING))) for share in shares]
    return np.array(
        [
            whole - deletion[hidden].mean(),
            insertion[[n - k for k in hidden]].mean() - whole,
            whole - insertion[hidden].mean(),
            _area(deletion),
            _area(insertion),
        ]
    )


def _area(curve: FloatVector) -> float:
    return float((curve[1:] + curve[:-1]).sum() / 2 / (len(curve) - 1))


def _result(
    name: str,
    curves: Sequence[list[_Curves] | None],
    shares: Sequence[float],
    signature: Signature,
    *,
    draws: int,
    seed: int,
) -> FaithfulnessResult:
    kept = [own for own in curves if own is not None]
    tables = [np.stack([measured(one, shares) for one in own]) for own in kept]
    values = np.stack([table[0] for table in tables]) if tables else np.zeros((0, len(MEASURES)))
    chance = np.stack([table[1:].mean(axis=0) for table in tables]) if tables else values
    signs = np.array([-1.0 if measure in LOW_IS_GOOD else 1.0 for measure in MEASURES])
    gains = (values - chance) * signs
    spread = np.array([own[0].deletion[0] - own[0].deletion[-1] for own in kept])
    steep = np.abs(spread) > _FLAT
    scale = spread[steep][:, np.newaxis]
    raw = mean_estimates(gains.T, draws=draws, seed=seed)
    normalised = mean_estimates((gains[steep] / scale).T, draws=draws, seed=seed)
    return FaithfulnessResult(
        name,
        {
            measure: MeasureResult(_mean(values[:, k]), _mean((values[steep] / scale)[:, k]), normalised[k], raw[k])
            for k, measure in enumerate(MEASURES)
        },
        n=len(kept),
        flat=int((~steep).sum()),
        failed=len(curves) - len(kept),
        signature=signature,
        values=values,
    )


def _mean(values: FloatVector) -> float:
    return float(values.mean()) if len(values) else float("nan")
