"""Is one metric better than another? Permutation tests, a test for calibrated ties, and Williams' test.

`permutation_test`, of a difference of correlations:

1. X and Y are brought to one scale (mean 0, deviation 1 over the whole matrix); delta = r(X, Z) - r(Y, Z).
2. Cells change places between X and Y at random, or in every way there is where that is at most 2^20 ways.
3. p is the share of swaps whose delta is at least as extreme, counting the observed one: (c + 1) / (n + 1).

What `permute` swaps decides what may be claimed: `systems` speaks for other systems on the same segments, `inputs` for
other segments and the same systems, `cell` and `row_xor_column` for both. Three of them are called "permute-both"
somewhere and differ, so that the name belongs beside every p. Deutsch, Dror and Roth (2021), doi 10.1162/tacl_a_00417.

`outcome_test`, of a difference in accuracy with calibrated ties:

1. Each metric keeps its own epsilon, fitted once: fitting inside every resample would test the fitting.
2. For every pair of systems on a segment the two metrics are right or wrong; a fair coin decides whether they change
   outcomes. Only pairs on which they differ matter, so that the sum over a group is a binomial number.
3. p = (c + 1) / (n + 1), as above.

`williams`, of two correlations that share a variable (Williams 1959; for metrics: Graham and Baldwin 2014).
With r12 = r(X, Z), r13 = r(Y, Z), r23 = r(X, Y), K = 1 - r12^2 - r13^2 - r23^2 + 2 r12 r13 r23 and m = (r12 + r13) / 2,

    t = (r12 - r13) sqrt((n - 1)(1 + r23) / (2 K (n - 1) / (n - 3) + m^2 (1 - r23)^3)),   n - 3 degrees of freedom.

It is made for Pearson over one vector of independent pairs: all cells (`global`), complete. Other coefficients come
with a warning. Compatible modes: `nlpstats` takes absolute correlations, `mtme` the absolute t.

How many segments does it take? Power of a comparison and the smallest difference it can see.

1. Two systems, by the normal approximation: n = ceil(((z_{1-alpha/2} + z_power) sd / difference)^2) segments, and the
   minimum detectable difference (z_{1-alpha/2} + z_power) sd / sqrt(n), sd of the paired differences (n - 1 below).
2. By simulation, for any test: draw segments (without replacement up to as many as there are, with it beyond), test,
   and count p <= alpha; the curve over n, and the smallest n that reaches the wanted power.
"""

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.random import Generator, RandomState
from numpy.typing import ArrayLike, NDArray

from whyscore.errors import DataError, SpecError
from whyscore.stats.agreement import PairTable, best_epsilon, pair_table, right
from whyscore.stats.coefficients import Coefficient, coefficient_of, kernel
from whyscore.stats.correlation import level_values, mean_values
from whyscore.stats.kendall import TABLED, table_deltas
from whyscore.stats.matrices import (
    ENUMERATED,
    NOTHING,
    PERMUTES,
    TIE_TOLERANCE,
    Coins,
    DegenerateStatisticWarning,
    Dropped,
    Level,
    Missing,
    Permute,
    align,
    coins,
    every_coin,
    free_coins,
    group_cells,
    level_of,
    row_means,
    spread,
    standardise,
    sum_swapped_cells,
)
from whyscore.stats.resampling import block_sizes, content_order, sort_by_content
from whyscore.types import FloatMatrix, FloatVector

Alternative = Literal["two-sided", "greater", "less"]
Seed = int | Generator | RandomState

MARGIN = 1e-12
"""Two deltas closer than this are equal: what is left is rounding."""

MEMORY = 256_000_000
_BLOCK = 1000  # resamples between two looks of early stopping
_LOW, _HIGH = 0.02, 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class PermutationTest:
    """A tested difference of two correlations; `p` is NaN with a reason where it is not defined."""

    p: float = math.nan
    delta: float = math.nan
    level: Level
    coefficient: str
    permute: str
    alternative: Alternative
    n: int = 0
    """Resamples that have a delta."""
    extreme: int = 0
    """Those of them that are at least as extreme as the observed one."""
    exact: bool = False
    seed: int | None = None
    undefined: int = 0
    """Resamples without a delta, left out."""
    missing: Missing = "paired"
    dropped: Dropped = NOTHING
    compat: str | None = None
    stopped: bool = False
    reason: str | None = None
    samples: FloatVector | None = None

    @property
    def name(self) -> str:
        """The name a p-value is printed with: `kendall_b@system, permute cell`."""
        return f"{self.coefficient}@{self.level}, permute {self.permute}"

    def with_deltas(self, observed: float, deltas: FloatVector, *, keep: bool) -> "PermutationTest":
        """Return the test with its p-value: the share of resampled differences as extreme as the observed one."""
        defined = deltas[~np.isnan(deltas)]
        extreme = int(at_least(defined, observed, self.alternative).sum())
        counted = self.exact or self.compat  # all swaps, or the way of another package
        return replace(
            self,
            p=extreme / max(len(defined), 1) if counted else (extreme + 1) / (len(defined) + 1),
            delta=observed,
            n=len(defined),
            extreme=extreme,
            seed=None if self.exact else self.seed,
            undefined=len(deltas) - len(defined),
            reason=None,
            samples=deltas if keep else None,
        )


class _Swapping(NamedTuple):
    """Two metrics on one scale and the human scores, and how swaps of their cells are compared."""

    x: FloatMatrix
    y: FloatMatrix
    z: FloatMatrix
    level: Level
    coefficient: Coefficient
    permute: Permute
    tolerance: float
    memory: int

    def observe(self) -> float:
        """Return delta without any swap."""
        how = (self.z, self.level, self.coefficient, self.tolerance)
        return float(level_values(self.x, *how) - level_values(self.y, *how))

    def toss(self, rng: Generator | RandomState | None, n: int, *, watched: bool) -> Iterator[Coins]:
        """Yield the coins of n swaps, or of all swaps where there is no generator, in blocks that fit the memory."""
        # Tables of pairs are made once per block and need the coins alone; other ways need the swapped matrices.
        tabled = self.coefficient in TABLED and self.level != "system"
        block = _BLOCK if watched else max(1, self.memory // ((2 if tabled else 64) * self.x.size))
        if rng is None:
            return every_coin(self.permute, *self.x.shape, block=block)
        return coins(rng, self.permute, *self.x.shape, n=n, block=block)

    def deltas(self, tossed: Coins) -> FloatVector:
        """Return delta of every swap."""
        if self.level == "system":
            return self._deltas_of_means(tossed)
        swaps = spread(tossed, self.permute, *self.x.shape)
        if self.coefficient in TABLED:
            matrices = (self.x, self.y, self.z)
            return table_deltas(matrices, swaps, self.level, self.coefficient, memory=self.memory)
        x, y = np.where(swaps, self.y, self.x), np.where(swaps, self.x, self.y)
        how = (self.z, self.level, self.coefficient)
        return level_values(x, *how) - level_values(y, *how)

    def _deltas_of_means(self, tossed: Coins) -> FloatVector:
        """Return delta of every swap at the level of systems: what moves is the means."""
        there = ~np.isnan(self.x)
        counts = np.where(there.any(axis=1), there.sum(axis=1), np.nan)
        moved = sum_swapped_cells(tossed, self.permute, np.where(there, self.y - self.x, 0.0)) / counts
        how = (row_means(self.z), self.coefficient, self.tolerance)
        return mean_values(row_means(self.x) + moved, *how) - mean_values(row_means(self.y) - moved, *how)


def permutation_test(
    x: ArrayLike,
    y: ArrayLike,
    z: ArrayLike,
    level: str = "system",
    coefficient: str = "kendall_b",
    *,
    permute: Permute = "cell",
    alternative: Alternative = "two-sided",
    n: int = 9999,
    seed: Seed = 0,
    missing: Missing = "paired",
    exact: bool | None = None,
    compat: Literal["nlpstats"] | None = None,
    early_stop: bool = False,
    tie_tolerance: float | None = None,
    memory: int = MEMORY,
    keep: bool = False,
) -> PermutationTest:
    """Return the test of whether X agrees with Z better (`greater`), worse (`less`) or otherwise than Y does.

    Args:
        x: one metric, systems x segments.
        y: the other metric.
        z: the human scores.
        level: see `correlation`.
        coefficient: see `coefficients`.
        permute: which cells are swapped together.
        alternative: what delta is compared with.
        n: number of random swaps.
        seed: a whole number, or a generator that goes on from where it is.
        missing: what to do with cells that one of the matrices lacks.
        exact: True lists all swaps, False never does; by default they are listed where they are at most 2^20.
        compat: `nlpstats` gives that package's p = c / n from the same random numbers (a RandomState).
        early_stop: stop after a block of 1000 where p is below .02 or above .5.
        tie_tolerance: as in `correlate`; 0 in compatible mode.
        memory: bytes that resampling may take.
        keep: return the resampled deltas.
    """
    at, named = level_of(level), coefficient_of(coefficient)
    check_options(permute, alternative, n, compat, ("nlpstats",))
    own = seed if isinstance(seed, int) else None
    (first, second, human), dropped = align(x, y, z, missing=missing, level=at)
    if compat is None and own is not None:  # a generator of the caller's own draws by place
        first, second, human = sort_by_content(first, second, human)
    tolerance = tie_tolerance if tie_tolerance is not None else (0.0 if compat else TIE_TOLERANCE)
    swapping = _Swapping(standardise(first), standardise(second), human, at, named, permute, tolerance, memory)
    listed = _list_swaps(permute, human.shape, exact=False if compat else exact)
    test = PermutationTest(
        level=at, coefficient=named, permute=permute, alternative=alternative, exact=listed, seed=own,
        missing=missing, dropped=dropped, compat=compat, reason="constant",
    )  # fmt: skip
    observed = swapping.observe()
    if math.isnan(observed):
        warnings.warn(f"{named}@{at} is not defined for both metrics", DegenerateStatisticWarning, stacklevel=2)
        return test
    parts = map(swapping.deltas, swapping.toss(None if listed else as_random(seed, compat), n, watched=early_stop))
    deltas = np.concatenate(list(_stop_early(parts, observed, alternative) if early_stop and not listed else parts))
    return replace(test.with_deltas(observed, deltas, keep=keep), stopped=not listed and len(deltas) < n)


def as_random(seed: Seed, compat: str | None = None) -> Generator | RandomState:
    """Return the generator of a seed: numpy's default one, or the old one that other packages draw from."""
    if not isinstance(seed, int):
        return seed
    return RandomState(seed) if compat == "nlpstats" else np.random.default_rng(seed)


def at_least(deltas: FloatVector, observed: float, alternative: Alternative) -> NDArray[np.bool_]:
    """Return which deltas are at least as extreme as the observed one."""
    if alternative == "greater":
        return deltas >= observed - MARGIN
    if alternative == "less":
        return deltas <= observed + MARGIN
    return np.abs(deltas) >= abs(observed) - MARGIN


def check_options(
    permute: str, alternative: str, n: int, compat: str | None = None, packages: Sequence[str] = ()
) -> None:
    """Refuse options that no test knows; `packages` are those that it can follow."""
    if permute not in PERMUTES:
        raise SpecError(f"no way to permute named {permute!r}: use {', '.join(PERMUTES)}")
    check_resampling(alternative, n)
    if compat not in (None, *packages):
        raise SpecError(f"compat is {compat!r}, expected {', '.join(map(repr, packages))} or None")


def check_resampling(alternative: str, n: int) -> None:
    """Refuse an alternative that there is not, and fewer resamples than one."""
    if alternative not in get_args(Alternative):
        raise SpecError(f"alternative is {alternative!r}, expected {' or '.join(map(repr, get_args(Alternative)))}")
    if n < 1:
        raise SpecError(f"n is {n}, expected at least 1 resample")


def _list_swaps(permute: Permute, shape: tuple[int, ...], *, exact: bool | None) -> bool:
    few = free_coins(permute, shape[0], shape[1]) <= ENUMERATED
    if exact and not few:
        raise SpecError(f"permute={permute!r} has more than 2^{ENUMERATED} swaps here: leave exact out to draw some")
    return few if exact is None else exact


def _stop_early(parts: Iterator[FloatVector], observed: float, alternative: Alternative) -> Iterator[FloatVector]:
    """Yield blocks of deltas until they leave no doubt whether p is small."""
    extreme = count = 0
    for deltas in parts:
        yield deltas
        extreme += int(at_least(deltas, observed, alternative).sum())
        count += len(deltas)
        if not _LOW <= extreme / count <= _HIGH:
            return


class _Differing(NamedTuple):
    """By group: pairs that only X is right about, pairs that only Y is right about, and the weight of one pair."""

    x_only: NDArray[np.int64]
    y_only: NDArray[np.int64]
    weight: FloatVector


def outcome_test(
    x: ArrayLike,
    y: ArrayLike,
    z: ArrayLike,
    level: str = "segment",
    *,
    epsilons: tuple[float, float] | None = None,
    alternative: Alternative = "two-sided",
    n: int = 9999,
    seed: int = 0,
    missing: Missing = "paired",
    memory: int = MEMORY,
    keep: bool = False,
) -> PermutationTest:
    """Return the test of a difference in accuracy with calibrated ties between X and Y, as `permutation_test` does.

    `level` says which pairs are compared, `segment` those of systems on a segment. `epsilons` are those of X and of Y,
    where they were fitted elsewhere.
    """
    at = level_of(level)
    if at == "system":
        raise SpecError("outcomes of pairs are swapped within segments or over all cells: use level segment or global")
    check_options("cell", alternative, n)
    (a, b, human), dropped = align(x, y, z, missing=missing, level=at)
    test = PermutationTest(
        level=at, coefficient="acc_eq", permute="pairs", alternative=alternative, seed=seed,
        missing=missing, dropped=dropped, reason="empty",
    )  # fmt: skip
    tables = [pair_table(group_cells(matrix, at), group_cells(human, at)) for matrix in (a, b)]
    if not len(tables[0].distance):
        warnings.warn("acc_eq is not defined: there are no pairs", DegenerateStatisticWarning, stacklevel=2)
        return test
    fitted = epsilons or (best_epsilon(tables[0]), best_epsilon(tables[1]))
    differing = _differing(tables, fitted)
    observed = float(((differing.x_only - differing.y_only) * differing.weight).sum())
    return test.with_deltas(observed, _draw_deltas(differing, n, seed, memory), keep=keep)


def _differing(tables: list[PairTable], epsilons: tuple[float, float]) -> _Differing:
    first, second = (right(table, epsilon) for table, epsilon in zip(tables, epsilons, strict=True))
    groups = int(tables[0].group.max()) + 1
    weight = np.zeros(groups)
    weight[tables[0].group] = tables[0].weight
    counts = [np.bincount(tables[0].group[mask], minlength=groups) for mask in (first & ~second, second & ~first)]
    order = content_order(np.stack([*counts, weight], axis=1))
    return _Differing(counts[0][order], counts[1][order], weight[order])


def _draw_deltas(differing: _Differing, n: int, seed: int, memory: int) -> FloatVector:
    """Return the difference after each swap: heads of the coins of a group are for X, tails for Y."""
    total = differing.x_only + differing.y_only
    rng = np.random.default_rng(seed)
    parts = [
        (2 * rng.binomial(total, 0.5, (size, len(total))) - total) @ differing.weight
        for size in block_sizes(n, 32 * len(total), memory)
    ]
    return np.concatenate(parts)


class SwappedSegments(NamedTuple):
    """Differences of two metrics in SPA and in acc_eq: what was observed, and after swapping segments, draws x 2."""

    observed: FloatVector
    drawn: FloatMatrix


def swap_segments(x: ArrayLike, y: ArrayLike, z: ArrayLike, *, n: int, seed: int | list[int]) -> SwappedSegments | None:
    """Return the differences in SPA and acc_eq between X and Y after swapping whole segments; None without pairs.

    1. Both metrics are standardised. A draw swaps their scores of each segment, all systems together, or leaves them:
       pairs of systems, and pairs of outputs for a segment, are not independent of each other, segments are.
    2. SPA: the p-value of "i is better than j" by flipping signs is that of the normal distribution with the variance
       of the flipped sum, for humans and metrics: p = 1 - Phi(sum d / sqrt(sum d^2)). Sums of swapped segments are
       then products of matrices.
    3. acc_eq: the gain of X on a segment is swapped with it; the epsilons of both are those without swaps.
    """
    (a, b, human), _ = align(x, y, z, missing="paired", level="segment")
    a, b, human = sort_by_content(a, b, human)
    tables = [pair_table(matrix.T, human.T) for matrix in (a, b)]
    if not len(tables[0].distance):
        return None
    right_pairs = [right(table, best_epsilon(table)).astype(np.float64) for table in tables]
    gains = np.bincount(
        tables[0].group, weights=(right_pairs[0] - right_pairs[1]) * tables[0].weight, minlength=a.shape[1]
    )
    first, second = np.triu_indices(len(a), 1)
    dx, dy, dz = (np.nan_to_num(matrix[first] - matrix[second]) for matrix in (standardise(a), standardise(b), human))
    there = (dx != 0) | (dy != 0) | (dz != 0)
    usable = there.any(axis=1)
    dx, dy, dz = dx[usable], dy[usable], dz[usable]
    human_p = _normal_p(dz.sum(axis=1), (dz**2).sum(axis=1))
    coins = np.random.default_rng(seed).integers(0, 2, size=(n, a.shape[1])).astype(np.float64)
    swaps = np.vstack([np.zeros(a.shape[1]), coins])  # the first row leaves everything in its place
    errors = []
    for base, swapped in ((dx, dy), (dy, dx)):
        sums = base.sum(axis=1) + swaps @ (swapped - base).T
        squares = (base**2).sum(axis=1) + swaps @ (swapped**2 - base**2).T
        errors.append(np.abs(_normal_p(sums, squares) - human_p).mean(axis=1))
    soft = errors[1] - errors[0]
    tied = (1 - 2 * swaps) @ gains
    values = np.column_stack([soft, tied])
    return SwappedSegments(values[0], values[1:])


def _normal_p(sums: FloatMatrix, squares: FloatMatrix) -> FloatMatrix:
    from scipy.special import ndtr  # noqa: PLC0415 - loads half of scipy

    spread = np.sqrt(np.maximum(squares, 0.0))
    result: FloatMatrix = ndtr(-np.divide(sums, spread, out=np.zeros_like(sums), where=spread > 0))
    return result


@dataclass(frozen=True, slots=True)
class Williams:
    """Williams' test; `p` is NaN with a reason where it is not defined."""

    p: float
    t: float
    delta: float
    n: int
    coefficient: str
    alternative: Alternative
    compat: str | None = None
    dropped: Dropped = NOTHING
    reason: str | None = None

    @property
    def degrees(self) -> int:
        """The degrees of freedom."""
        return self.n - 3


def williams(
    x: ArrayLike,
    y: ArrayLike,
    z: ArrayLike,
    coefficient: str = "pearson",
    *,
    alternative: Alternative = "two-sided",
    missing: Missing = "paired",
    compat: Literal["mtme", "nlpstats"] | None = None,
) -> Williams:
    """Return Williams' test of r(X, Z) against r(Y, Z) over all cells."""
    named = coefficient_of(coefficient)
    check_options("cell", alternative, 1, compat, ("nlpstats", "mtme"))
    if named != "pearson":
        warnings.warn(f"Williams' test is made for pearson, not {named}: prefer a permutation test", stacklevel=2)
    (a, b, human), dropped = align(x, y, z, missing=missing, level="global")
    there = ~np.isnan(a)
    a, b, human = a[there], b[there], human[there]
    n = int(there.sum())
    compute = kernel(named)
    r12, r13, r23 = (float(compute(*pair)) for pair in ((a, human), (b, human), (a, b)))
    if compat == "nlpstats":
        r12, r13, r23 = abs(r12), abs(r13), abs(r23)
    t = _statistic(r12, r13, r23, n)
    reason = None
    if math.isnan(t):
        reason = "empty" if n <= 3 else "constant"  # noqa: PLR2004 - t has n - 3 degrees of freedom
        warnings.warn("Williams' test is not defined for these scores", DegenerateStatisticWarning, stacklevel=2)
    p = math.nan if reason else _p_value(abs(t) if compat == "mtme" else t, n - 3, alternative)
    return Williams(p, t, r12 - r13, n, named, alternative, compat, dropped, reason)


def _statistic(r12: float, r13: float, r23: float, n: int) -> float:
    if n <= 3:  # noqa: PLR2004
        return math.nan
    rest = 1 - r12**2 - r13**2 - r23**2 + 2 * r12 * r13 * r23
    bottom = 2 * rest * (n - 1) / (n - 3) + ((r12 + r13) / 2) ** 2 * (1 - r23) ** 3
    return (r12 - r13) * math.sqrt((n - 1) * (1 + r23) / bottom) if bottom > 0 else math.nan


def _p_value(t: float, degrees: int, alternative: Alternative) -> float:
    from scipy.special import stdtr  # noqa: PLC0415 - loads half of scipy

    if alternative == "two-sided":
        return float(2 * stdtr(degrees, -abs(t)))
    return float(stdtr(degrees, -t if alternative == "greater" else t))


ALPHA = 0.05
POWER = 0.8
_RUNS = 200


@dataclass(frozen=True, slots=True)
class Power:
    """What n segments can tell of two systems."""

    difference: float
    deviation: float
    n: int
    detectable: float
    """The smallest true difference that n segments find with the wanted power."""
    needed: int | None
    """Segments that the observed difference would take; None where there is no difference or no spread."""
    alpha: float
    power: float


@dataclass(frozen=True, slots=True)
class PowerCurve:
    """Power by number of segments, found by simulation."""

    n: tuple[int, ...]
    power: tuple[float, ...]
    wanted: float
    alpha: float
    runs: int
    seed: int

    @property
    def enough(self) -> int | None:
        """The smallest tried number of segments that reaches the wanted power; None where none does."""
        return next((n for n, power in zip(self.n, self.power, strict=True) if power >= self.wanted), None)


def power(differences: ArrayLike, *, alpha: float = ALPHA, wanted: float = POWER) -> Power:
    """Return what paired differences say of the size of a test set."""
    values = np.asarray(differences, dtype=np.float64).ravel()
    values = values[~np.isnan(values)]
    if len(values) < 2:  # noqa: PLR2004 - a deviation takes two
        raise DataError(f"power needs at least 2 segments that both systems have, got {len(values)}")
    difference, deviation = float(values.mean()), float(values.std(ddof=1))
    reach = reach_of(alpha, wanted) * deviation
    needed = math.ceil((reach / difference) ** 2) if abs(difference) > 0 and deviation > 0 else None
    return Power(difference, deviation, len(values), reach / math.sqrt(len(values)), needed, alpha, wanted)


def reach_of(alpha: float = ALPHA, wanted: float = POWER) -> float:
    """Return how many standard errors a difference must have to be found with the wanted power."""
    from scipy.special import ndtri  # noqa: PLC0415 - loads half of scipy

    for name, value in (("alpha", alpha), ("power", wanted)):
        if not 0 < value < 1:
            raise SpecError(f"{name} is {value}, expected more than 0 and less than 1")
    return float(ndtri(1 - alpha / 2) + ndtri(wanted))


def power_curve(
    test: Callable[[NDArray[np.int64]], float],
    segments: int,
    sizes: Sequence[int],
    *,
    runs: int = _RUNS,
    alpha: float = ALPHA,
    wanted: float = POWER,
    seed: int = 0,
) -> PowerCurve:
    """Return the share of runs with p <= alpha for each number of segments.

    Args:
        test: positions of segments -> p-value of the test on them.
        segments: how many there are.
        sizes: how many to draw.
        runs: draws per size.
        alpha: the p-value that counts as found.
        wanted: the power that is enough.
        seed: fixes the draws.
    """
    if any(size < 1 for size in sizes):
        raise SpecError(f"sizes are {list(sizes)}, expected 1 or more segments")
    shares = []
    for size in sizes:
        rng = np.random.default_rng([seed, size])
        drawn = (rng.choice(segments, size, replace=size > segments) for _ in range(runs))
        shares.append(float(np.mean([test(positions) <= alpha for positions in drawn])))
    return PowerCurve(tuple(sizes), tuple(shares), wanted, alpha, runs, seed)
