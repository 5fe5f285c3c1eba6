"""Does an explainer repeat itself? The same texts with other seeds, and how well the word scores agree.

1. Every text is explained with the seeds s, s+1, ..., s+S-1; all probes of all seeds go into one score call per round.
2. Per text, means over pairs of seeds: Spearman's correlation of the importances (constant ones are counted and left
   out), whether the lowest word is the same, and the Jaccard overlap of the lowest fifth of the words (at least one).
   The lowest importance is the highest error score, which is what word-level tasks look at.
3. Explainers that draw nothing give exactly 1.
4. `until_stable` doubles the budget of a sampled explainer until two independent halves of the probes agree.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import combinations
from typing import cast

import numpy as np

from whyscore.analysis.common import MetricLike, Segments, as_metric, as_segments, requested_name
from whyscore.analysis.explain import explain
from whyscore.errors import ExecutionError, SpecError
from whyscore.explainers.engine import Plan, Task, ask, make_plan, per_mask, probed, scored, sides_of, tasks_of, windows
from whyscore.protocols import Explainer, Masker, Splitter
from whyscore.registry import build
from whyscore.scoring.rows import oriented
from whyscore.scoring.stack import LOCAL, Resources
from whyscore.stats.coefficients import spearman
from whyscore.types import Evidence, FloatMatrix, FloatVector, Segment, Side

TOP = 0.2
_BUDGETS = ("samples", "passes", "budget")
_MOST_ROUNDS = 10


@dataclass(frozen=True, eq=False)
class StabilityResult:
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
    """Per text: seeds x words."""


@dataclass(frozen=True, eq=False)
class Stable:
    """An explainer whose budget was raised, and how well its halves agree."""

    explainer: Explainer
    spearman: float
    reached: bool
    rounds: int


def stability(
    segments: Segments,
    metric: MetricLike,
    explainer: str | Explainer,
    *,
    seeds: int = 5,
    unit: str | Splitter = "word",
    masker: str | Masker | None = None,
    sides: Sequence[str | Side] = ("hypothesis",),
    seed: int = 0,
    resources: Resources = LOCAL,
) -> StabilityResult:
    """Return how well an explainer agrees with itself under other seeds."""
    if seeds < 2:  # noqa: PLR2004 - nothing to agree with
        raise SpecError(f"seeds is {seeds}, expected 2 or more")
    plan = make_plan(as_metric(metric), explainer, unit=unit, masker=masker, seed=seed, repeat=seeds)
    if isinstance(plan.explainer, Explainer):
        importances = list(_repeats(plan, as_segments(segments), sides_of(sides), resources))
    else:
        found = explain(segments, metric, explainer, sides=sides, unit=unit, seed=seed, resources=resources)
        importances = [np.tile(one.importance, (seeds, 1)) for one in found]
    return summary(requested_name(explainer), importances)


def summary(name: str, importances: Sequence[FloatMatrix]) -> StabilityResult:
    """Return the agreement of repeats: per text a matrix of seeds x words."""
    kept = [one for one in importances if one.shape[1]]
    rows = np.array([_agreement(one) for one in kept], dtype=np.float64).reshape(len(kept), 3)
    known = rows[~np.isnan(rows[:, 0])]
    return StabilityResult(
        name,
        seeds=len(importances[0]) if importances else 0,
        n=len(rows),
        constant=len(rows) - len(known),
        spearman=_mean(known[:, 0]),
        top_word=_mean(rows[:, 1]),
        jaccard=_mean(rows[:, 2]),
        values=rows,
        importances=tuple(importances),
    )


def until_stable(
    segments: Segments,
    metric: MetricLike,
    explainer: str | Explainer,
    *,
    mark: float = 0.95,
    unit: str | Splitter = "word",
    masker: str | Masker | None = None,
    sides: Sequence[str | Side] = ("hypothesis",),
    seed: int = 0,
    resources: Resources = LOCAL,
) -> Stable:
    """Return the explainer with a budget at which two halves of the probes agree, in rounds of one score call each."""
    if not -1 <= mark <= 1:
        raise SpecError(f"the mark of stability is {mark}, expected -1 to 1")
    current = cast("Explainer", build(explainer, "explainer") if isinstance(explainer, str) else explainer)
    for number in range(1, _MOST_ROUNDS + 1):
        options = {"unit": unit, "masker": masker, "sides": sides, "seed": seed, "resources": resources}
        found = stability(segments, metric, current, seeds=2, **options)  # type: ignore[arg-type]
        reached = np.isnan(found.spearman) or found.spearman >= mark
        if reached or number == _MOST_ROUNDS:
            break
        current = _raised(current)
    return Stable(current, found.spearman, reached=bool(reached), rounds=number)


def _raised(explainer: Explainer) -> Explainer:
    """Return the explainer with twice its budget."""
    names = [field.name for field in fields(explainer)] if hasattr(explainer, "__dataclass_fields__") else []  # type: ignore[arg-type]
    for name in _BUDGETS:
        value = getattr(explainer, name, None) if name in names else None
        if isinstance(value, int):
            return replace(explainer, **{name: 2 * value})  # type: ignore[type-var]
    raise SpecError(f"{requested_name(explainer)} has no budget to raise: expected {', '.join(_BUDGETS)} as a number")


def _repeats(
    plan: Plan, segments: Sequence[Segment], sides: frozenset[Side], resources: Resources
) -> Iterator[FloatMatrix]:
    """Yield for each text its importances, one row per seed; all seeds share the score calls."""
    plan = replace(plan, metric=oriented(resources.prepare(plan.metric.metric)))
    asked = [segment.only(plan.metric.inputs) for segment in segments]
    whole, failures = scored(plan, asked)
    _refuse(failures)
    for window in windows(plan, tasks_of(plan, asked, sides)):
        known = _answered(plan, asked, window, whole)
        explainer = cast("Explainer", plan.explainer)
        fits = [explainer.fit(evidence).importance for evidence in known]
        for start in range(0, len(fits), plan.repeat):
            yield np.stack(fits[start : start + plan.repeat])


def _answered(plan: Plan, segments: Sequence[Segment], window: list[Task], whole: FloatVector) -> list[Evidence]:
    """Return what is known of each task after all rounds of probes."""
    known = [Evidence.whole(task.words, whole[task.segment], task.seed) for task in window]
    for number in range(cast("Explainer", plan.explainer).rounds):
        masks, probes = ask(plan, window, known, number)
        if not any(map(len, masks)):
            break
        values, failures = scored(plan, list(probed(segments, window, probes)))
        _refuse(failures)
        ends = np.cumsum([len(texts.texts) for texts in probes]).tolist()
        for i, (rows, texts, end) in enumerate(zip(masks, probes, ends, strict=True)):
            part = values[end - len(texts.texts) : end]
            known[i] = known[i].extend(rows, per_mask(texts, part, len(rows)))
    return known


def _refuse(failures: dict[int, str]) -> None:
    if failures:
        raise ExecutionError(
            f"stability needs every score; {len(failures)} failed, the first: {min(failures.items())[1]}"
        )


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


def _spearman(one: FloatVector, other: FloatVector) -> float:
    # Equal importances agree exactly, whatever rounding says.
    return 1.0 if np.array_equal(one, other) else float(spearman(one, other))


def _mean(values: FloatVector) -> float:
    return float(values.mean()) if len(values) else float("nan")
