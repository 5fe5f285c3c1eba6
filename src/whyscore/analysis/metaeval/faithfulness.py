"""Can an explanation be trusted? Whether the metric agrees with it (faithfulness), and whether it repeats (stability).

**Faithfulness**: words are masked in the order of the explanation, and the score is watched. For a metric f (turned so
that larger is better), a text x of n words, and an order of the words, most helpful first:

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

All probes of all texts, orders and explainers go into one score call. Metrics are not made for texts without some of
their words, so the masker is part of the signature.

**Stability**: the same texts are explained with other seeds, and the word scores are compared.

1. Every text is explained with the seeds s, s+1, ..., s+S-1; all probes of all seeds go into one score call per round.
2. Per text, means over pairs of seeds: Spearman's correlation of the importances (constant ones are counted and left
   out), whether the lowest word is the same, and the Jaccard overlap of the lowest fifth of the words (at least one).
   The lowest importance is the highest error score, which is what word-level tasks look at.
3. Explainers that draw nothing give exactly 1.
4. `until_stable` doubles the budget of a sampled explainer until two independent halves of the probes agree.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import combinations, islice
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from whyscore.analysis.common import (
    MetricLike,
    Segments,
    as_metric,
    as_segments,
    explainer_with_languages,
    languages_of,
    requested_name,
    with_languages,
)
from whyscore.analysis.explain import Explanations, explain, refuse_failures
from whyscore.analysis.metaeval.settings import FaithfulnessSettings, ProbeSettings, StabilitySettings
from whyscore.data.codec import Header, Kind
from whyscore.data.records import header_of
from whyscore.errors import SpecError
from whyscore.explainers.engine import (
    Plan,
    Task,
    failed_segments,
    gather_evidence,
    make_plan,
    per_mask,
    probe_segments,
    score_segments,
    sides_of,
    tasks_of,
    windows,
)
from whyscore.protocols import Explainer, SupportsBudget
from whyscore.registry import build, spec_of
from whyscore.scoring.rows import orient
from whyscore.scoring.stack import LOCAL, Resources
from whyscore.settings import takes
from whyscore.stats.coefficients import spearman
from whyscore.stats.words import mean_estimates
from whyscore.text.maskers import Delete
from whyscore.text.randomness import generator
from whyscore.types import (
    Dataset,
    Estimate,
    Explanation,
    FloatMatrix,
    FloatVector,
    KeepMasks,
    Segment,
    Side,
    Signature,
)
from whyscore.types.result import Cell, Record, Result, Table
from whyscore.version import __version__

MEASURES = {
    "comprehensiveness_plus": "compreh. +",
    "comprehensiveness_minus": "compreh. -",
    "sufficiency": "sufficiency",
    "deletion": "deletion",
    "insertion": "insertion",
}
"""With their names in tables."""
LOW_IS_GOOD = ("sufficiency", "deletion")
TOP = 0.2
_GAINS = "gains over random order, share of the whole effect; above 0 is good, for {} too".format(
    " and ".join(MEASURES[name] for name in LOW_IS_GOOD)
)
_FLAT = 1e-9
_ROUNDING = 1e-9  # 0.1 * 30 is a little more than 3
_MOST_ROUNDS = 10

Order = NDArray[np.intp]
"""Words by number, most helpful first."""


@dataclass(frozen=True, eq=False, repr=False)
class StabilityResult(Result):
    """How well the repeats of one explainer agree: means over texts, and one row per text."""

    explainer: str
    seeds: int
    n: int
    constant: int
    """Texts without a Spearman correlation: all words of some repeat have the same importance."""
    spearman: float
    top_word: float
    jaccard: float
    values: FloatMatrix
    """Texts x (spearman, top_word, jaccard)."""
    importances: tuple[FloatMatrix, ...]
    """Per text: seeds x words; no column where a language model gave no usable answer."""
    failures: Mapping[int, str] = field(default_factory=dict)
    """Why segments were left out, by their number."""

    def record(self) -> dict[str, object]:
        """Return the means."""
        names = ("explainer", "seeds", "n", "constant", "spearman", "top_word", "jaccard")
        record = {name: getattr(self, name) for name in names}
        return record | ({"reason": "constant"} if np.isnan(self.spearman) else {})

    def records(self) -> Iterator[Record]:
        yield self.record()


@dataclass(frozen=True, eq=False)
class MeasureResult:
    """One measure over all texts; higher gains are better whatever the measure."""

    raw: float
    normalised: float
    gain: Estimate
    """Of the normalised values, over random orders."""
    raw_gain: Estimate

    def record(self) -> Record:
        """Return the values and gains."""
        gains = {"gain": self.gain, "raw_gain": self.raw_gain}
        return {"raw": self.raw, "normalised": self.normalised} | {
            name: {"value": gain.value, "low": gain.low, "high": gain.high, "n": gain.n} for name, gain in gains.items()
        }


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
    """Texts left out because the metric failed on them or on a probe, or because they have no words."""
    signature: Signature
    values: FloatMatrix
    """Texts x measures, raw."""
    failures: Mapping[int, str] = field(default_factory=dict)
    """Why the metric failed, by the number of the segment."""
    stability: StabilityResult | None = None

    def record(self) -> dict[str, object]:
        """Return the measures."""
        measures = {name: measure.record() for name, measure in self.measures.items()}
        record: dict[str, object] = {"explainer": self.explainer, "signature": str(self.signature), "n": self.n}
        record |= {"flat": self.flat, "failed": self.failed, "measures": measures}
        return record | ({"reason": "flat"} if self.n == self.flat else {})


class FaithfulnessResults(Result, list[FaithfulnessResult]):
    """How faithful each explainer is; a list with one item per explainer."""

    kind: ClassVar[Kind] = "metaeval"
    __repr__ = Result.__repr__

    def __init__(
        self, segments: Segments, results: Iterable[FaithfulnessResult], budgets: Sequence["RaisedBudget"] = ()
    ) -> None:
        super().__init__(results)
        self.segments, self.budgets = segments, tuple(budgets)

    def header(self) -> Record:
        signatures = {result.explainer: str(result.signature) for result in self}
        if isinstance(self.segments, Dataset):
            return header_of(self.kind, self.segments, signatures).object()
        return Header(self.kind, signatures, counts={"segments": len(self.segments)}).object()

    def records(self) -> Iterator[Record]:
        for result in self:
            stable = {} if result.stability is None else {"stability": result.stability.record()}
            yield {"kind": "faithfulness", **result.record(), **stable}

    def document(self) -> object:
        return {"schema_version": 1, "kind": "faithfulness", "records": list(self.records())}

    def tables(self, *, long: bool = False) -> list[Table]:
        if not long:
            return [gain_table("explainer", {result.explainer: result for result in self})]
        ends = ("raw", "normalised", "gain", "low", "high")
        columns = ["explainer", "n", "flat", "failed", *(f"{name}_{end}" for name in MEASURES for end in ends)]
        rows: list[tuple[Cell, ...]] = []
        for result in self:
            cells: list[Cell] = [result.explainer, result.n, result.flat, result.failed]
            for measure in result.measures.values():
                cells += [measure.raw, measure.normalised, measure.gain.value, measure.gain.low, measure.gain.high]
            rows.append((*cells, *_stability_cells(result)))
        stable = any(result.stability is not None for result in self)
        return [Table((*columns, *(_STABILITY if stable else ())), tuple(rows))]


_STABILITY = ("spearman", "top_word", "jaccard")


def _stability_cells(result: FaithfulnessResult) -> tuple[Cell, ...]:
    return () if result.stability is None else tuple(getattr(result.stability, name) for name in _STABILITY)


def gain_table(first: str, results: Mapping[str, FaithfulnessResult]) -> Table:
    """Return gains over random order by name, and how stable explanations are where that is known."""
    stable = any(result.stability is not None for result in results.values())
    columns = (first, "n", *MEASURES.values(), *(_STABILITY if stable else ()))
    rows = tuple(
        (name, result.n, *(result.measures[measure].gain.value for measure in MEASURES), *_stability_cells(result))
        for name, result in results.items()
    )
    return Table(columns, rows, dict.fromkeys(MEASURES.values(), True), notes=(_GAINS,))


class _Curves(NamedTuple):
    """D and I of one order, k = 0 .. n."""

    deletion: FloatVector
    insertion: FloatVector


@takes(FaithfulnessSettings)
def faithfulness(
    segments: Segments,
    metric: MetricLike,
    explainers: Sequence[str | Explainer],
    *,
    settings: FaithfulnessSettings,
    resources: Resources = LOCAL,
) -> FaithfulnessResults:
    """Return how faithful each explainer is to the metric, and how stable where `seeds` asks for it."""
    shared: dict[str, Any] = {setting.name: getattr(settings, setting.name) for setting in fields(ProbeSettings)}
    shared |= {"resources": resources}
    budgets: list[RaisedBudget] = []
    if settings.until_stable is not None:
        budgets = [
            until_stable(segments, metric, explainer, mark=settings.until_stable, **shared) for explainer in explainers
        ]
        explainers = [spec_of(budget.explainer) for budget in budgets]
    base = with_languages(as_metric(metric), languages_of(segments))
    masker = build(settings.masker, "masker") if isinstance(settings.masker, str) else settings.masker or Delete()
    plan = make_plan(base, "erasure", unit=settings.unit, masker=masker, seed=settings.seed)
    plan = Plan(orient(resources.prepare(base)), plan.explainer, masker, plan.splitter, settings.seed)
    # The masker is that of the curves: explainers keep their own.
    options = {name: value for name, value in shared.items() if name != "masker"}
    explained = [explain(segments, base, explainer, **options) for explainer in explainers]
    curves, failures = _score(
        plan, [segment.only(base.inputs) for segment in as_segments(segments)], explained, settings
    )
    results = []
    for explainer, explanations, curve in zip(explainers, explained, curves, strict=True):
        failed = explanations.failures | {k: failures[k] for k in sorted({e.index for e in explanations} & {*failures})}
        result = _result(curve, _signature(explainer, plan, settings), settings, failed)
        if settings.seeds is not None:
            result = replace(result, stability=stability(segments, metric, explainer, seeds=settings.seeds, **shared))
        results.append(result)
    return FaithfulnessResults(segments, results, budgets)


def _signature(explainer: str | Explainer, plan: Plan, settings: FaithfulnessSettings) -> Signature:
    facts = {
        "metric": plan.metric.metric.signature().spec,
        "masker": spec_of(plan.masker),
        "shares": ",".join(f"{share:g}" for share in settings.shares),
        "orders": str(settings.orders),
        "seed": str(settings.seed),
        "version": __version__,
    }
    return Signature(requested_name(explainer), tuple(facts.items()))


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


def _orders(explanation: Explanation, settings: FaithfulnessSettings) -> list[Order]:
    """Return the orders to try: the explanation's own, then random ones."""
    rng = generator(settings.seed, "orders", explanation.words.text)
    drawn = [rng.permutation(len(explanation.words)) for _ in range(settings.orders)]
    return [np.argsort(-explanation.importance, kind="stable"), *drawn]


def _score(
    plan: Plan, segments: Sequence[Segment], explained: Sequence[Explanations], settings: FaithfulnessSettings
) -> tuple[list[list[list[_Curves] | None]], dict[int, str]]:
    """Return for each explainer the curves of every text and order, and why segments have failing probes.

    ONE score call. There is None where a probe failed, where there are no words, and for texts without explanation.
    """
    explanations = [explanation for explanation_set in explained for explanation in explanation_set]
    tasks = [
        Task(explanation.index, explanation.place, explanation.words, settings.seed) for explanation in explanations
    ]
    masks = [
        np.concatenate([curve_masks(order) for order in _orders(explanation, settings)]) for explanation in explanations
    ]
    masker = plan.masker or Delete()
    probes = masker.render([(task.words, rows) for task, rows in zip(tasks, masks, strict=True)])
    values, failed = score_segments(plan, probe_segments(segments, tasks, probes))
    curves: list[list[_Curves] | None] = []
    start = 0
    for task, rows, texts in zip(tasks, masks, probes, strict=True):
        answers = per_mask(texts, values[start : start + len(texts.texts)], len(rows))
        start += len(texts.texts)
        n = len(task.words)
        both = answers.reshape(-1, 2, n + 1) if n else answers[:0].reshape(0, 2, 1)
        curves.append(None if not n or np.isnan(answers).any() else [_Curves(*pair) for pair in both])
    of_explainer = iter(curves)
    parts = []
    for explanation_set in explained:
        places = {explanation.place for explanation in explanation_set}
        lacking = sum(
            place in places for k in explanation_set.failures for place in segments[k].places(plan.metric.inputs)
        )
        parts.append([*islice(of_explainer, len(explanation_set)), *[None] * lacking])
    return parts, failed_segments(tasks, probes, failed)


def measures_of(curves: _Curves, shares: Sequence[float]) -> FloatVector:
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
    curves: Sequence[list[_Curves] | None],
    signature: Signature,
    settings: FaithfulnessSettings,
    failures: Mapping[int, str],
) -> FaithfulnessResult:
    complete = [curve for curve in curves if curve is not None]
    tables = [np.stack([measures_of(order, settings.shares) for order in orders]) for orders in complete]
    values = np.stack([table[0] for table in tables]) if tables else np.zeros((0, len(MEASURES)))
    chance = np.stack([table[1:].mean(axis=0) for table in tables]) if tables else values
    signs = np.array([-1.0 if measure in LOW_IS_GOOD else 1.0 for measure in MEASURES])
    gains = (values - chance) * signs
    spread = np.array([orders[0].deletion[0] - orders[0].deletion[-1] for orders in complete])
    steep = np.abs(spread) > _FLAT
    scale = spread[steep][:, np.newaxis]
    raw = mean_estimates(gains.T, draws=settings.draws, seed=settings.seed)
    normalised = mean_estimates((gains[steep] / scale).T, draws=settings.draws, seed=settings.seed)
    return FaithfulnessResult(
        signature.spec,
        {
            measure: MeasureResult(_mean(values[:, k]), _mean((values[steep] / scale)[:, k]), normalised[k], raw[k])
            for k, measure in enumerate(MEASURES)
        },
        n=len(complete),
        flat=int((~steep).sum()),
        failed=len(curves) - len(complete),
        signature=signature,
        values=values,
        failures=failures,
    )


@dataclass(frozen=True, eq=False)
class RaisedBudget:
    """An explainer whose budget was raised, and how well its halves agree."""

    explainer: Explainer
    spearman: float
    reached: bool
    rounds: int


@takes(StabilitySettings)
def stability(
    segments: Segments,
    metric: MetricLike,
    explainer: str | Explainer,
    *,
    settings: StabilitySettings,
    resources: Resources = LOCAL,
) -> StabilityResult:
    """Return how well an explainer agrees with itself under other seeds."""
    shared: dict[str, Any] = {"unit": settings.unit, "seed": settings.seed}
    languages = languages_of(segments)
    base, explaining = with_languages(as_metric(metric), languages), explainer_with_languages(explainer, languages)
    plan = make_plan(base, explaining, masker=settings.masker, repeat=settings.seeds, **shared)
    if isinstance(plan.explainer, Explainer):
        importances, failures = _repeats(plan, as_segments(segments), sides_of(settings.sides), resources)
    else:
        explained = explain(segments, base, explainer, sides=settings.sides, resources=resources, **shared)
        places, failures = list(dict.fromkeys(explanation.place for explanation in explained)), explained.failures
        repeated = {
            (explanation.index, explanation.place): np.tile(explanation.importance, (settings.seeds, 1))
            for explanation in explained
        }
        nothing = np.empty((settings.seeds, 0))
        texts = [(k, place) for k in range(len(as_segments(segments))) for place in places]
        importances = [repeated.get(text, nothing) for text in texts if text in repeated or text[0] in failures]
    return replace(summary(requested_name(explainer), importances), failures=failures)


def summary(name: str, importances: Sequence[FloatMatrix]) -> StabilityResult:
    """Return the agreement of repeats: per text a matrix of seeds x words."""
    nonempty = [repeats for repeats in importances if repeats.shape[1]]
    rows = np.array([_agreement(repeats) for repeats in nonempty], dtype=np.float64).reshape(len(nonempty), 3)
    defined = rows[~np.isnan(rows[:, 0])]
    return StabilityResult(
        name,
        seeds=len(importances[0]) if importances else 0,
        n=len(rows),
        constant=len(rows) - len(defined),
        spearman=_mean(defined[:, 0]),
        top_word=_mean(rows[:, 1]),
        jaccard=_mean(rows[:, 2]),
        values=rows,
        importances=tuple(importances),
    )


@takes(ProbeSettings)
def until_stable(
    segments: Segments,
    metric: MetricLike,
    explainer: str | Explainer,
    *,
    mark: float = 0.95,
    settings: ProbeSettings,
    resources: Resources = LOCAL,
) -> RaisedBudget:
    """Return the explainer with a budget at which two halves of the probes agree, in rounds of one score call each."""
    if not -1 <= mark <= 1:
        raise SpecError(f"the stability threshold is {mark}, expected -1 to 1")
    current = cast("Explainer", build(explainer, "explainer") if isinstance(explainer, str) else explainer)
    shared = {setting.name: getattr(settings, setting.name) for setting in fields(ProbeSettings)}
    for number in range(1, _MOST_ROUNDS + 1):
        agreement = stability(segments, metric, current, seeds=2, resources=resources, **shared).spearman
        reached = bool(np.isnan(agreement) or agreement >= mark)
        if reached or number == _MOST_ROUNDS:
            break
        current = _raise_budget(current)
    return RaisedBudget(current, agreement, reached=reached, rounds=number)


def _raise_budget(explainer: Explainer) -> Explainer:
    """Return the explainer with twice its budget."""
    raised = explainer.raise_budget() if isinstance(explainer, SupportsBudget) else None
    if raised is None:
        raise SpecError(
            f"{requested_name(explainer)} has no budget to raise: use lime or partition with a number, or shap"
        )
    return raised


def _repeats(
    plan: Plan, segments: Sequence[Segment], sides: frozenset[Side], resources: Resources
) -> tuple[list[FloatMatrix], dict[int, str]]:
    """Return for each text its importances, one row per seed, and why segments have none; seeds share the calls."""
    metric, explainer = plan.metric.metric, cast("Explainer", plan.explainer)
    plan = replace(plan, metric=orient(resources.prepare(metric)))
    read = [segment.only(plan.metric.inputs) for segment in segments]
    whole, failures = score_segments(plan, read)
    refuse_failures(metric, failures, len(read))
    importances: list[FloatMatrix] = []
    for window in windows(plan, tasks_of(plan, read, sides)):
        tasks = [task for task in window if task.segment not in failures]
        evidence = dict(zip(tasks, gather_evidence(plan, read, tasks, whole, failures)[0], strict=True))
        refuse_failures(metric, failures, len(read))
        for start in range(0, len(window), plan.repeat):
            repeats = [task for task in window[start : start + plan.repeat] if task.segment not in failures]
            fits = [explainer.fit(evidence[task]).importance for task in repeats]
            importances.append(np.stack(fits) if fits else np.empty((plan.repeat, 0)))
    return importances, failures


def _agreement(repeats: FloatMatrix) -> tuple[float, float, float]:
    """Return the mean agreement over pairs of seeds: Spearman, lowest word, lowest fifth."""
    pairs = list(combinations(range(len(repeats)), 2))
    words = repeats.shape[1]
    orders = np.argsort(repeats, axis=1, kind="stable")
    lowest = [set(order[: max(1, int(np.ceil(TOP * words - 1e-9)))].tolist()) for order in orders]
    same = [float(orders[i, 0] == orders[j, 0]) for i, j in pairs]
    overlap = [len(lowest[i] & lowest[j]) / len(lowest[i] | lowest[j]) for i, j in pairs]
    if any(np.ptp(row) == 0 for row in repeats):
        correlation = float("nan")
    else:
        correlation = float(np.mean([_spearman(repeats[i], repeats[j]) for i, j in pairs]))
    return correlation, sum(same) / len(same), sum(overlap) / len(overlap)


def _spearman(first: FloatVector, second: FloatVector) -> float:
    # Equal importances agree exactly, whatever rounding says.
    return 1.0 if np.array_equal(first, second) else float(spearman(first, second))


def _mean(values: FloatVector) -> float:
    return math.fsum(values.tolist()) / len(values) if len(values) else math.nan
