"""How certain is a correlation? Intervals over other systems, other segments, or both.

1. Percentile bootstrap (Efron 1979): draw rows, then columns, with replacement, the same for both matrices. `systems`
   speaks for other systems on the same segments, `inputs` for other segments and the same systems, `both` for both;
   it is the default and the widest (Deutsch, Dror and Roth 2021).
2. Fisher's z with the variances of Bonett and Wright (2000), as a cross-check.
3. Differences of two metrics: `sign` p is the share of resampled differences at or below 0, `centred` p the share at
   or above twice the observed one.

Resamples without a value (all drawn systems the same) are counted and left out.

Accuracies over pairs of systems, on bootstrap draws (for `acc_23` see the draws below):

1. A system that was drawn several times is no pair with itself: two equal texts are no evidence that a metric is right
   about anything. So a pair of different systems counts as often as the one was drawn times the other, and what is
   compared is computed once for the pairs there are.
2. `acc_eq`: the pairs are sorted by distance once; on every draw epsilon is chosen anew, as it is for the value.
3. `spa`: the p-values of every pair are computed on the drawn segments, with 1000 rows of signs.
4. `pdp`, `kendall_like`: sums over pairs and segments, a matrix product for all draws at once.
5. `pairwise_accuracy`: the means of the drawn segments.

Bootstrap draws of systems and segments, and what a coefficient is on each of them.

1. Rows are drawn with replacement, then columns; what is not drawn stays whole. Blocks do not change the draws.
2. A drawn matrix is compared like any other. In long vectors (all cells, or a system's many segments) that would sort
   anew for each draw: there, cells are sorted once and only how often each of them counts changes (`kendall.Places`).
3. `acc_23` and `tau_23` count pairs. What was drawn twice is no pair with itself: m copies of a place are m (m - 1) / 2
   pairs tied on both sides, which are taken out of the right ones and out of all. For the other coefficients such
   pairs are ties like any other, which they do not count as right.
"""

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whyscore.errors import SpecError
from whyscore.stats.agreement import CLEAR, pair_table, pairs_of, preference, preferences, right, sign_rows
from whyscore.stats.coefficients import LONG, Coefficient, Stack, coefficient_of, from_pairs
from whyscore.stats.correlation import Undefined, mean_of_defined, vector_values
from whyscore.stats.kendall import MOST, TABLED, Places
from whyscore.stats.matrices import (
    NOTHING,
    TIE_TOLERANCE,
    DegenerateStatisticWarning,
    Dropped,
    Level,
    Missing,
    align,
    divide,
    group_cells,
    tie,
)
from whyscore.stats.measures import FINE, Fine, Measure, agree, measure_of
from whyscore.stats.resampling import block_sizes, percentiles, sort_by_content
from whyscore.types import Estimate, FloatMatrix, FloatVector, IntVector

Resample = Literal["systems", "inputs", "both"]

MEMORY = 256_000_000
_ACCURACIES = ("acc_23", "tau_23")


class Drawing(NamedTuple):
    """How draws are made."""

    resample: Resample
    n: int
    seed: int
    memory: int = MEMORY
    undefined: Undefined = "leave_out"
    tie_tolerance: float = TIE_TOLERANCE
    epsilon: float | None = None


class Drawn(NamedTuple):
    """A block of draws: which rows and which columns, None for all of them."""

    rows: IntVector | None
    columns: IntVector | None

    def row_counts(self, rows: int) -> FloatMatrix:
        """Return how often each row was drawn, draws x rows."""
        return _counts(self, self.rows, rows)

    def column_counts(self, columns: int) -> FloatMatrix:
        """Return how often each column was drawn, draws x columns."""
        return _counts(self, self.columns, columns)

    def __len__(self) -> int:
        return len(self.columns if self.rows is None else self.rows)  # type: ignore[arg-type]


def _counts(drawn: Drawn, picked: IntVector | None, size: int) -> FloatMatrix:
    if picked is None:
        return np.ones((len(drawn), size))
    shifted = picked + size * np.arange(len(picked))[:, None]
    return np.bincount(shifted.ravel(), minlength=size * len(picked)).reshape(-1, size).astype(np.float64)


def draw_blocks(shape: tuple[int, ...], drawing: Drawing, draw_bytes: int | None = None) -> Iterator[Drawn]:
    """Yield the draws in blocks; `draw_bytes` is the memory that one draw takes."""
    rows, columns = shape
    # Signs of pairs are the largest thing held: half as many as systems, for each cell.
    each = 64 * rows * columns * (1 + min(rows, 256) // 8) if draw_bytes is None else draw_bytes
    row_rng, column_rng = (np.random.default_rng([drawing.seed, k]) for k in range(2))
    for size in block_sizes(drawing.n, each, drawing.memory):
        yield Drawn(
            None if drawing.resample == "inputs" else row_rng.integers(0, rows, (size, rows)),
            None if drawing.resample == "systems" else column_rng.integers(0, columns, (size, columns)),
        )


def draw_values(
    x: FloatMatrix, z: FloatMatrix, level: Level, coefficient: Coefficient, drawing: Drawing
) -> FloatVector:
    """Return the coefficient at a level of every draw of two matrices."""
    length = {"global": x.size, "within_system": x.shape[1]}.get(level, 0)
    if coefficient in TABLED and LONG <= length <= MOST:
        long = _long_global if level == "global" else _long_rows
        return long(x, z, coefficient, drawing)
    parts = []
    for drawn in draw_blocks(x.shape, drawing):
        values = vector_values(_take(x, drawn), _take(z, drawn), level, coefficient, drawing.tie_tolerance)
        if coefficient in _ACCURACIES:
            values = _drop_self_pairs(values, coefficient, _choose(_copies(x, z, level, drawn), level, drawn))
        parts.append(mean_of_defined(values, drawing.undefined) if level in ("segment", "within_system") else values)
    return np.concatenate(parts)


class _Copies(NamedTuple):
    """How many places each vector of each draw has, copies included, and the squares of their counts."""

    places: Stack
    squares: Stack


def _copies(x: FloatMatrix, z: FloatMatrix, level: Level, drawn: Drawn) -> _Copies:
    """Return the copies in every vector: draws, draws x segments or draws x systems."""
    there = [(~np.isnan(matrix)).astype(np.float64) for matrix in (x, z)]
    both = there[0] * there[1]
    rows, columns = drawn.row_counts(len(x)), drawn.column_counts(x.shape[1])
    if level == "segment":
        return _Copies(rows @ both, rows**2 @ both)
    if level == "within_system":
        return _Copies(columns @ both.T, columns**2 @ both.T)
    if level == "global":
        return _Copies(((rows @ both) * columns).sum(axis=1), ((rows**2 @ both) * columns**2).sum(axis=1))
    counted = rows * (columns @ there[0].T > 0) * (columns @ there[1].T > 0)
    return _Copies(counted.sum(axis=1), (counted**2).sum(axis=1))


def _choose(copies: _Copies, level: Level, drawn: Drawn) -> _Copies:
    """Return the copies of the vectors in the order they were drawn in."""
    order = {"segment": drawn.columns, "within_system": drawn.rows}.get(level)
    return copies if order is None else _Copies(*(np.take_along_axis(counts, order, axis=1) for counts in copies))


def _drop_self_pairs(values: Stack, coefficient: Coefficient, copies: _Copies) -> Stack:
    """Return accuracies (or tau_23) over pairs of different places; NaN where there is none."""
    all_pairs, self_pairs = copies.places * (copies.places - 1) / 2, (copies.squares - copies.places) / 2
    share = values if coefficient == "acc_23" else (values + 1) / 2
    agreed = divide(share * all_pairs - self_pairs, all_pairs - self_pairs)
    return agreed if coefficient == "acc_23" else 2 * agreed - 1


def _take(matrix: FloatMatrix, drawn: Drawn) -> Stack:
    if drawn.rows is None:
        return np.moveaxis(matrix[:, drawn.columns], 0, 1)
    if drawn.columns is None:
        return matrix[drawn.rows]
    return matrix[drawn.rows[:, :, None], drawn.columns[:, None, :]]


def _long_global(x: FloatMatrix, z: FloatMatrix, coefficient: Coefficient, drawing: Drawing) -> FloatVector:
    there = ~(np.isnan(x) | np.isnan(z))
    first, second = x[there], z[there]
    places = Places.of(first, second)
    parts = []
    for drawn in draw_blocks(x.shape, drawing, 32 * x.size):
        counts = drawn.row_counts(len(x))[:, :, None] * drawn.column_counts(x.shape[1])[:, None, :]
        values = from_pairs(coefficient, places.pairs(counts[:, there]), first, second)
        if coefficient in _ACCURACIES:
            values = _drop_self_pairs(values, coefficient, _copies(x, z, "global", drawn))
        parts.append(values)
    return np.concatenate(parts)


def _long_rows(x: FloatMatrix, z: FloatMatrix, coefficient: Coefficient, drawing: Drawing) -> FloatVector:
    gaps = np.isnan(x) | np.isnan(z)
    rows = [(a[~gap], b[~gap], ~gap) for a, b, gap in zip(x, z, gaps, strict=True)]
    prepared = [(Places.of(a, b), there, a, b) for a, b, there in rows]
    parts = []
    for drawn in draw_blocks(x.shape, drawing, 64 * x.shape[1]):
        counts = drawn.column_counts(x.shape[1])
        by_row = [from_pairs(coefficient, places.pairs(counts[:, there]), a, b) for places, there, a, b in prepared]
        values = np.stack(by_row, axis=1)
        if coefficient in _ACCURACIES:
            values = _drop_self_pairs(values, coefficient, _copies(x, z, "within_system", drawn))
        taken = values if drawn.rows is None else np.take_along_axis(values, drawn.rows, axis=1)
        parts.append(mean_of_defined(taken, drawing.undefined))
    return np.concatenate(parts)


PAIRED = ("acc_eq", "pairwise_accuracy", "spa", "pdp", "kendall_like")
"""The measures whose draws are made here."""

PAIR_DRAWS = 1_000_000_000
"""Pairs times draws up to which epsilon is chosen on every draw."""

_SIGNS = 1000  # of a p-value on one draw
_HELD = 4_000_000  # signs x pairs x draws compared at a time


class _Both(NamedTuple):
    """A metric's and people's scores, and every pair i < j of systems."""

    x: FloatMatrix
    z: FloatMatrix
    i: NDArray[np.int64]
    j: NDArray[np.int64]

    @classmethod
    def of(cls, x: FloatMatrix, z: FloatMatrix) -> "_Both":
        return cls(x, z, *np.triu_indices(len(x), 1))

    def counts(self, drawn: Drawn) -> FloatMatrix:
        """Return how often each pair counts, draws x pairs."""
        counts = drawn.row_counts(len(self.x))
        return counts[:, self.i] * counts[:, self.j]


Statistic = Callable[[Drawn], FloatVector]


def draw_pair_values(x: FloatMatrix, z: FloatMatrix, level: Level, measure: str, drawing: Drawing) -> FloatVector:
    """Return a measure of pairs for every draw of two matrices; NaN where a draw has no pair."""
    both = _Both.of(x, z)
    pairs = len(both.i) * max(1, x.shape[1])
    if measure == "acc_eq":
        compute, pairs = _compute_tied_accuracy(both, level, drawing)
    elif measure == "spa":
        compute = _soft_accuracy(both, drawing)
    elif measure == "pairwise_accuracy":
        compute = _pairwise(both, drawing.tie_tolerance)
    else:
        compute = _differences(both) if measure == "pdp" else _clear_preferences(both)
    values = [compute(drawn) for drawn in draw_blocks(x.shape, drawing, max(64 * x.size, 32 * pairs))]
    return np.concatenate(values)


def too_many(x: FloatMatrix, level: Level, measure: str, n: int) -> bool:
    """Return whether a measure has too many pairs for so many draws."""
    if measure != "acc_eq" or level == "system":
        return False
    rows, columns = len(x), int(x.shape[1])
    sizes = {"global": (1, rows * columns), "within_system": (rows, columns), "segment": (columns, rows)}
    groups, places = sizes[level]
    return groups * places * (places - 1) // 2 * n > PAIR_DRAWS


def _differences(both: _Both) -> Statistic:
    dx, dz = both.x[both.i] - both.x[both.j], both.z[both.i] - both.z[both.j]
    there = ~np.isnan(dx + dz)
    dx, dz = np.where(there, dx, 0.0), np.where(there, dz, 0.0)

    def compute(drawn: Drawn) -> FloatVector:
        cross, square_x, square_z = (_weigh(both, drawn, table) for table in (dx * dz, dx * dx, dz * dz))
        return divide(cross, np.sqrt(square_x * square_z))

    return compute


def _clear_preferences(both: _Both) -> Statistic:
    human, metric = both.z[both.i] - both.z[both.j], both.x[both.i] - both.x[both.j]
    clear = (np.abs(human) >= CLEAR) & ~np.isnan(metric)
    agreeing = clear & (human * metric > 0)

    def compute(drawn: Drawn) -> FloatVector:
        agreed, count = (_weigh(both, drawn, table.astype(np.float64)) for table in (agreeing, clear))
        return divide(2 * agreed - count, count)

    return compute


def _weigh(both: _Both, drawn: Drawn, table: FloatMatrix) -> FloatVector:
    """Return the sum of pairs x segments, each as often as it was drawn."""
    total: FloatVector = np.einsum("dk,dk->d", both.counts(drawn) @ table, drawn.column_counts(table.shape[1]))
    return total


def _means(matrix: FloatMatrix, drawn: Drawn, tolerance: float) -> FloatMatrix:
    """Return draws x systems: the means over drawn segments, near ones tied."""
    there = ~np.isnan(matrix)
    counts = drawn.column_counts(matrix.shape[1])
    return tie(divide(counts @ np.where(there, matrix, 0.0).T, counts @ there.T.astype(np.float64)), tolerance)


def _pairwise(both: _Both, tolerance: float) -> Statistic:
    def compute(drawn: Drawn) -> FloatVector:
        means = (_means(matrix, drawn, tolerance) for matrix in (both.x, both.z))
        signs = [np.sign(mean[:, both.i] - mean[:, both.j]) for mean in means]
        counts = both.counts(drawn) * ~np.isnan(signs[0] + signs[1])
        return divide((counts * (signs[0] == signs[1])).sum(axis=1), counts.sum(axis=1))

    return compute


def _soft_accuracy(both: _Both, drawing: Drawing) -> Statistic:
    columns = both.x.shape[1]
    signs = sign_rows(_SIGNS, columns, drawing.seed)

    whole = not np.isnan(both.x + both.z).any()
    block = max(1, _HELD // (_SIGNS * max(len(both.i), 1)))

    def p_values(matrix: FloatMatrix, picked: NDArray[np.int64]) -> FloatMatrix:
        if whole:
            return preferences(np.moveaxis(matrix[:, picked], 0, 1), signs)
        return np.stack([preference(matrix[:, segments], signs=signs)[both.i, both.j] for segments in picked])

    def compute(drawn: Drawn) -> FloatVector:
        picked = np.arange(columns)[None, :] if drawn.columns is None else drawn.columns
        parts = [picked[start : start + block] for start in range(0, len(picked), block)]
        errors = np.concatenate([np.abs(p_values(both.z, part) - p_values(both.x, part)) for part in parts])
        off = np.broadcast_to(errors, (len(drawn), len(both.i)))
        counts = both.counts(drawn) * ~np.isnan(off)
        return 1 - divide((counts * np.nan_to_num(off)).sum(axis=1), counts.sum(axis=1))

    return compute


def _compute_tied_accuracy(both: _Both, level: Level, drawing: Drawing) -> tuple[Statistic, int]:
    """Return the accuracy with the best epsilon of each draw (or the given one), and the number of pairs."""
    if level == "system":
        return _compute_tied_means(both, drawing), len(both.i)
    pairs = pair_table(group_cells(both.x, level), group_cells(both.z, level))
    order = np.argsort(pairs.distance, kind="stable")
    distance, concordant, group = pairs.distance[order], pairs.concordant[order], pairs.group[order]
    first, second = (places[order] for places in pairs_of(group_cells(both.x, level), group_cells(both.z, level)))
    ends = np.append(distance[1:] != distance[:-1], np.True_)[: len(distance)]
    change = pairs.tied[order].astype(np.float64) - concordant
    right_pairs = None if drawing.epsilon is None else right(pairs, drawing.epsilon)[order]
    rows, columns = both.x.shape

    def compute(drawn: Drawn) -> FloatVector:
        places, groups = _count_places(drawn, level, rows, columns)
        counts = places[:, first] * places[:, second]
        totals = np.stack([np.bincount(group, row, minlength=groups.shape[1]) for row in counts])
        share = divide(groups, totals * (groups * (totals > 0)).sum(axis=1, keepdims=True))
        weight = counts * np.nan_to_num(share)[:, group]
        if right_pairs is not None:
            return np.where(totals.sum(axis=1) > 0, weight @ right_pairs, np.nan)
        values = np.cumsum(weight * change, axis=1)[:, ends]
        if not len(distance) or distance[0] > 0:
            values = np.pad(values, ((0, 0), (1, 0)))
        return np.where(totals.sum(axis=1) > 0, weight @ concordant + values.max(axis=1), np.nan)

    return compute, len(distance)


def _count_places(drawn: Drawn, level: Level, rows: int, columns: int) -> tuple[FloatMatrix, FloatMatrix]:
    """Return how often each place within a group counts, and each group."""
    row_counts, column_counts = drawn.row_counts(rows), drawn.column_counts(columns)
    if level == "segment":
        return row_counts, column_counts
    if level == "within_system":
        return column_counts, row_counts
    return (row_counts[:, :, None] * column_counts[:, None, :]).reshape(len(drawn), -1), np.ones((len(drawn), 1))


def _compute_tied_means(both: _Both, drawing: Drawing) -> Statistic:
    def compute(drawn: Drawn) -> FloatVector:
        # As `acc_eq` has it, the tolerance of means is not to be chosen here.
        means = (_means(matrix, drawn, TIE_TOLERANCE) for matrix in (both.x, both.z))
        dx, dz = (mean[:, both.i] - mean[:, both.j] for mean in means)
        counts = both.counts(drawn) * ~np.isnan(dx + dz)
        distance = np.where(counts > 0, np.abs(dx), np.inf)
        concordant, tied = np.sign(dx) * np.sign(dz) > 0, dz == 0
        if drawing.epsilon is not None:
            agreed = np.where(distance <= drawing.epsilon, tied, concordant)
            return divide((counts * agreed).sum(axis=1), counts.sum(axis=1))
        order = np.argsort(distance, axis=1, kind="stable")
        ordered = np.take_along_axis(distance, order, axis=1)
        change = np.take_along_axis(counts * (tied.astype(np.float64) - concordant), order, axis=1)
        ends = np.pad(ordered[:, 1:] != ordered[:, :-1], ((0, 0), (0, 1)), constant_values=True)
        values = np.where(ends, np.cumsum(change, axis=1), -np.inf)
        # Without a distance of 0, an epsilon of 0 ties nothing.
        best = np.maximum(values.max(axis=1, initial=-np.inf), np.where((ordered == 0).any(axis=1), -np.inf, 0.0))
        return divide((counts * concordant).sum(axis=1) + best, counts.sum(axis=1))

    return compute


LEVEL = 0.95
TOO_MANY = "too many pairs"
"""The reason of an interval that would take too long."""

DRAWS = 1000
_MARGIN = 1e-12  # what is left is rounding
_BONETT_WRIGHT = 0.437  # the variance of Fisher's z of Kendall's tau


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """A correlation, or a difference of two, with its bootstrap interval."""

    estimate: Estimate
    level: Level
    coefficient: str
    resample: Resample
    n: int
    """Resamples with a value."""
    undefined: int
    """Resamples without one, left out."""
    seed: int
    dropped: Dropped = NOTHING
    sign: float = math.nan
    """Of a difference: the p-value that X is better, by the share of draws at or below 0."""
    centred: float = math.nan
    """Likewise, by the share of draws at or above twice the difference."""
    samples: FloatVector | None = None

    @property
    def name(self) -> str:
        """The name an interval is printed with."""
        return f"{self.coefficient}@{self.level}, bootstrap over {self.resample}"


def bootstrap(
    x: ArrayLike,
    z: ArrayLike,
    level: str | None = None,
    coefficient: str = "kendall_b",
    *,
    against: ArrayLike | None = None,
    resample: Resample = "both",
    n: int = DRAWS,
    confidence: float = LEVEL,
    seed: int = 0,
    missing: Missing = "paired",
    memory: int = MEMORY,
    keep: bool = False,
    fine: Fine = FINE,
) -> Bootstrap:
    """Return a measure of agreement with the percentile interval over resampled systems, segments or both.

    `coefficient` is any measure, also `acc_eq`, `spa`, `pdp` ...; its own level is taken where none is given. With
    another metric to stand `against`, it is the difference r(X, Z) - r(Y, Z): all three matrices are drawn together.
    """
    measure = measure_of(coefficient, level)
    at, named = measure.level, measure.name
    _check(resample, n, confidence)
    inputs = (x, z) if against is None else (x, against, z)
    matrices, dropped = align(*inputs, missing=missing, level=at)
    *metrics, human = sort_by_content(*matrices)
    endless = too_many(human, at, named, n)
    if endless and against is not None:
        raise SpecError(f"{named}@{at} has too many pairs for {n} draws here: use the level segment, or fewer draws")
    values = [_value(metric, human, measure, missing=missing, seed=seed, fine=fine) for metric in metrics]
    value, size = values[0] - sum(values[1:]), _size(metrics[0], at)
    if endless:
        estimate = Estimate(value, level=confidence, n=size, reason=TOO_MANY)
        return Bootstrap(estimate, at, named, resample, 0, n, seed, dropped)
    drawing = Drawing(resample, n, seed, memory, fine.undefined, fine.tie_tolerance, fine.epsilon)
    draws = [_draw(metric, human, measure, drawing) for metric in metrics]
    samples = draws[0] if against is None else draws[0] - draws[1]
    valid = samples[~np.isnan(samples)]
    sign, centred = (math.nan, math.nan) if against is None else shares(valid, value)
    return Bootstrap(
        *(_estimate(value, valid, confidence, size), at, named, resample, len(valid), n - len(valid), seed, dropped),
        *(sign, centred, samples if keep else None),
    )


def shares(deltas: FloatVector, observed: float) -> tuple[float, float]:
    """Return the p-values `sign` and `centred` of "the difference is above 0"."""
    if not len(deltas) or math.isnan(observed):
        return math.nan, math.nan
    return float((deltas <= _MARGIN).mean()), float((deltas >= 2 * observed - _MARGIN).mean())


def fisher(r: float, n: int, coefficient: str = "pearson", *, confidence: float = LEVEL) -> Estimate:
    """Return the interval of a correlation of n pairs by Fisher's z.

    >>> interval = fisher(0.75, 16, "kendall")
    >>> round(interval.low, 4), round(interval.high, 4)
    (0.5363, 0.8733)
    """
    from scipy.special import ndtri  # noqa: PLC0415 - loads half of scipy

    named = coefficient_of(coefficient)
    if named not in ("pearson", "spearman", "kendall_b"):
        raise SpecError(f"Fisher's z is for pearson, spearman and kendall, not {coefficient!r}")
    _check("both", 1, confidence)
    less = 4 if named == "kendall_b" else 3
    if math.isnan(r) or n <= less or abs(r) > 1:
        return Estimate(r, level=confidence, n=n, reason="undefined")
    spread = {"pearson": 1.0, "spearman": math.sqrt(1 + r * r / 2), "kendall_b": math.sqrt(_BONETT_WRIGHT)}[named]
    half = float(ndtri((1 + confidence) / 2)) * spread / math.sqrt(n - less)
    if abs(r) == 1:
        return Estimate(r, r, r, confidence, n)
    return Estimate(r, math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half), confidence, n)


def _draw(x: FloatMatrix, z: FloatMatrix, measure: Measure, drawing: Drawing) -> FloatVector:
    """Return a measure for every draw."""
    if measure.name in PAIRED:
        return draw_pair_values(x, z, measure.level, measure.name, drawing)
    return draw_values(x, z, measure.level, coefficient_of(measure.name), drawing)


def _value(
    x: FloatMatrix, z: FloatMatrix, measure: Measure, *, missing: Missing, seed: int, fine: Fine = FINE
) -> float:
    """Return a measure of two aligned matrices; NaN where it is not defined."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateStatisticWarning)
        return agree(x, z, measure, missing=missing, seed=seed, fine=fine)[0].value


def _size(matrix: FloatMatrix, level: Level) -> int:
    there = ~np.isnan(matrix)
    if level == "system":
        return int(there.any(axis=1).sum())
    if level == "global":
        return int(there.sum())
    return int(there.any(axis=0 if level == "segment" else 1).sum())


def _estimate(value: float, samples: FloatVector, confidence: float, n: int) -> Estimate:
    if len(samples) < 2 or math.isnan(value):  # noqa: PLR2004 - an interval needs two ends
        return Estimate(value, level=confidence, n=n, reason="undefined")
    low, high = percentiles(samples, confidence).tolist()
    return Estimate(value, low, high, confidence, n)


def _check(resample: str, n: int, confidence: float) -> None:
    if resample not in get_args(Resample):
        raise SpecError(f"resample is {resample!r}, expected {' or '.join(map(repr, get_args(Resample)))}")
    if n < 1:
        raise SpecError(f"n is {n}, expected at least 1 resample")
    if not 0 < confidence < 1:
        raise SpecError(f"confidence is {confidence}, expected more than 0 and less than 1")
