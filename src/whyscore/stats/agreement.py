"""Agreement as a share of pairs: who is right about which of two is better.

1. Accuracy with calibrated ties (Deutsch, Foster and Freitag 2023, arXiv 2305.14324). Differences of the metric up to
   epsilon are ties; a pair is right if its order, or its tie, is that of people. One epsilon per metric: the one with
   the best mean over segments, the smallest where several are. All pairs are sorted once; running sums do the rest.
2. Pairwise accuracy (Kocmi et al. 2021, arXiv 2107.10821): the share of pairs of systems whose means are in the
   order of people; tied in both is right, tied in one is wrong.
3. Pairwise difference Pearson: over all pairs of systems on one segment, the correlation of differences around zero.
4. The Kendall-like tau of WMT's old tables: pairs with a human difference of at least 25; a metric's tie is wrong.

Soft pairwise accuracy (Thompson, Mathur, Deutsch and Khayrallah 2024, arXiv 2409.09598).

1. For every pair of systems i < j, p = the one-sided p-value of "i is better than j" by flipping signs of the segments'
   differences, once with the metric's scores and once with people's.
2. One matrix of signs serves all pairs and both sides.
3. The accuracy is 1 - the mean of |p_human - p_metric|.

Which system of a pair is i changes p where flipped sums equal the observed one: it is decided by what their scores are.
A pair uses the segments that both systems have in both matrices. Compatible mode (`mtme`): i is the system that comes
first, 1000 rows of signs from numpy's generator with seed 4, float32 throughout, p = count / 1000, on columns that all
systems have.
"""

import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whyscore.errors import SpecError
from whyscore.stats.correlation import Correlation
from whyscore.stats.matrices import (
    TIE_TOLERANCE,
    DegenerateStatisticWarning,
    Dropped,
    Level,
    Missing,
    align,
    group_cells,
    level_of,
    row_means,
    tie,
)
from whyscore.stats.resampling import random_rows, sort_by_content
from whyscore.types import FloatMatrix, FloatVector

_EQUAL = 1e-12  # accuracies closer than this are equal but for rounding
CLEAR = 25.0
"""Points of direct assessment from which WMT took a human preference for clear."""


@dataclass(frozen=True, slots=True)
class TieAccuracy(Correlation):
    """Accuracy with calibrated ties; `n` and `n_used` are groups (segments), and those with at least one pair."""

    epsilon: float = math.nan
    at_zero: float = math.nan
    """The accuracy without calibration, where only equal scores are ties."""
    pairs: int = 0
    fitted: bool = False
    """Whether epsilon was chosen on these data."""


class PairTable(NamedTuple):
    """Every pair of places within a group: how far apart the metric sees them and what people say."""

    distance: FloatVector
    tied: NDArray[np.bool_]
    """Whether people see no difference."""
    concordant: NDArray[np.bool_]
    group: NDArray[np.int64]
    weight: FloatVector
    """One over (pairs of the group x groups with pairs), so that right pairs add up to the mean over groups."""


def pair_table(x: FloatMatrix, z: FloatMatrix) -> PairTable:
    """Return the pairs within each row of groups x places; pairs with a missing side are left out."""
    first, second = np.triu_indices(x.shape[1], 1)
    dx, dz = x[:, first] - x[:, second], z[:, first] - z[:, second]
    valid = ~np.isnan(dx + dz)
    counts = valid.sum(axis=1)
    share = np.divide(1.0, counts, out=np.zeros(len(counts)), where=counts > 0) / max(int((counts > 0).sum()), 1)
    group = np.broadcast_to(np.arange(len(x))[:, None], valid.shape)[valid]
    dx, dz = dx[valid], dz[valid]
    return PairTable(np.abs(dx), dz == 0, np.sign(dx) * np.sign(dz) > 0, group, share[group])


def pairs_of(x: FloatMatrix, z: FloatMatrix) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the two places of every pair of `pair_table`, in its order."""
    first, second = np.triu_indices(x.shape[1], 1)
    gap = np.isnan(x + z)
    valid = ~(gap[:, first] | gap[:, second])
    sides = (np.broadcast_to(index, valid.shape)[valid] for index in (first, second))
    return next(sides), next(sides)


def right(pairs: PairTable, epsilon: float) -> NDArray[np.bool_]:
    """Return which pairs the metric is right about, where differences up to epsilon are ties."""
    near = pairs.distance <= epsilon
    return (near & pairs.tied) | (~near & pairs.concordant)


def best_epsilon(pairs: PairTable) -> float:
    """Return the smallest epsilon with the best accuracy, among 0 and every difference there is."""
    order = np.argsort(pairs.distance, kind="stable")
    distance = pairs.distance[order]
    # A pair that becomes a tie is right if people tie it, and was right before if it was concordant.
    gain = (pairs.weight * (pairs.tied.astype(np.float64) - pairs.concordant))[order]
    value = np.cumsum(gain)
    last = np.append(distance[1:] != distance[:-1], np.True_)
    candidates, values = distance[last], value[last]
    if not len(candidates) or candidates[0] > 0:
        candidates, values = np.append(0.0, candidates), np.append(0.0, values)
    return float(candidates[np.flatnonzero(values >= values.max() - _EQUAL)[0]])


def acc_eq(
    x: ArrayLike, z: ArrayLike, level: str = "segment", *, epsilon: float | None = None, missing: Missing = "paired"
) -> TieAccuracy:
    """Return the accuracy with calibrated ties, or with a given epsilon, for example one fitted on other segments."""
    at = level_of(level)
    if epsilon is not None and not epsilon >= 0:
        raise SpecError(f"epsilon is {epsilon}, expected 0 or more")
    (a, b), dropped = align(x, z, missing=missing, level=at)
    a, b = sort_by_content(a, b)  # sums in another order differ in the last digit
    groups = len(group_cells(a, at))
    pairs = pair_table(group_cells(a, at), group_cells(b, at))
    if not len(pairs.distance):
        _warn("acc_eq", "no pair has scores on both sides")
        return TieAccuracy(math.nan, at, "acc_eq", groups, 0, missing, dropped, "empty", fitted=epsilon is None)
    threshold = best_epsilon(pairs) if epsilon is None else epsilon
    at_zero, value = (float(pairs.weight[right(pairs, limit)].sum()) for limit in (0.0, threshold))
    used = len(np.unique(pairs.group))
    accuracy = TieAccuracy(value, at, "acc_eq", groups, used, missing, dropped)
    return replace(accuracy, epsilon=threshold, at_zero=at_zero, pairs=len(pairs.distance), fitted=epsilon is None)


def acc_eq_held_out(x: ArrayLike, z: ArrayLike, level: str = "segment", *, missing: Missing = "paired") -> TieAccuracy:
    """Return the accuracy of each half of the segments with the epsilon fitted on the other half.

    Every second segment is in the first half, in an order that depends on the scores alone. What the accuracy loses
    against `acc_eq` is what fitting on the judged segments gave away. `epsilon` is the mean of both.
    """
    (a, b), _ = align(x, z, missing=missing, level=level_of(level))
    a, b = sort_by_content(a, b)
    halves = [slice(0, None, 2), slice(1, None, 2)]
    fitted = [acc_eq(a[:, half], b[:, half], level, missing=missing) for half in halves]
    whole = acc_eq(x, z, level, missing=missing)
    if any(accuracy.reason for accuracy in fitted):
        return replace(whole, value=math.nan, fitted=False, reason="empty")
    held_out = [
        acc_eq(a[:, half], b[:, half], level, epsilon=other.epsilon, missing=missing)
        for half, other in zip(halves, reversed(fitted), strict=True)
    ]
    groups = sum(half.n_used for half in held_out)
    value, at_zero = (
        math.fsum(half.n_used * getattr(half, name) for half in held_out) / groups for name in ("value", "at_zero")
    )
    return replace(
        whole,
        value=value,
        at_zero=at_zero,
        epsilon=sum(half.epsilon for half in held_out) / 2,
        n_used=groups,
        fitted=False,
    )


def pairwise_accuracy(
    x: ArrayLike, z: ArrayLike, *, missing: Missing = "paired", tie_tolerance: float = TIE_TOLERANCE
) -> Correlation:
    """Return the share of pairs of systems that the metric puts in the order of people."""
    (a, b), dropped = align(x, z, missing=missing, level="system")
    first, second = tie(row_means(a), tie_tolerance), tie(row_means(b), tie_tolerance)
    defined = ~np.isnan(first + second)
    i, j = np.triu_indices(int(defined.sum()), 1)
    signs = [np.sign(means[defined][i] - means[defined][j]) for means in (first, second)]
    if not len(i):
        _warn("pairwise_accuracy", "there are fewer than two systems")
    share = float((signs[0] == signs[1]).mean()) if len(i) else math.nan
    return over_pairs(share, "pairwise_accuracy", len(i), missing, dropped, level="system")


def pool_pairs(results: Sequence[Correlation]) -> Correlation:
    """Return the share over the pairs of several sets together."""
    pairs = sum(share.n for share in results)
    dropped = Dropped(*(sum(parts) for parts in zip(*(share.dropped for share in results), strict=True)))
    pooled = math.fsum(share.value * share.n for share in results if share.n) / pairs if pairs else math.nan
    measure = " + ".join(dict.fromkeys(share.coefficient for share in results))
    return over_pairs(pooled, measure, pairs, results[0].missing, dropped, level=results[0].level)


def over_pairs(
    value: float, measure: str, pairs: int, missing: Missing, dropped: Dropped, *, level: Level = "segment"
) -> Correlation:
    """Return a measure whose places are pairs; without a value, there are none or all of them are equal."""
    reason = None if not math.isnan(value) else "constant" if pairs else "empty"
    return Correlation(value, level, measure, pairs, pairs, missing, dropped, reason)


def difference_correlation(x: ArrayLike, z: ArrayLike, *, missing: Missing = "paired") -> Correlation:
    """Return the Pearson correlation, without centring, of all differences between two systems on one segment."""
    (a, b), dropped = align(x, z, missing=missing)
    a, b = sort_by_content(a, b)  # as in `acc_eq`
    there = ~np.isnan(a)
    counts = there.sum(axis=0)
    # The sum of (x_i - x_j)(z_i - z_j) over pairs is k times the sum of products minus the product of sums.
    a, b = (np.where(there, matrix - row_means(matrix.T), 0.0) for matrix in (a, b))
    product, square_a, square_b = (
        float((counts * (first * second).sum(axis=0)).sum()) for first, second in ((a, b), (a, a), (b, b))
    )
    pairs = int((counts * (counts - 1) // 2).sum())
    defined = square_a > 0 and square_b > 0
    if not defined:
        _warn("pdp", "no two systems differ on a segment")
    value = product / math.sqrt(square_a * square_b) if defined else math.nan
    return over_pairs(value, "pdp", pairs, missing, dropped)


def kendall_like(x: ArrayLike, z: ArrayLike, *, missing: Missing = "paired") -> Correlation:
    """Return (right - wrong) / (right + wrong) over the pairs that people clearly prefer one side of."""
    (a, b), dropped = align(x, z, missing=missing)
    first, second = np.triu_indices(a.shape[0], 1)
    human, metric = b[first] - b[second], a[first] - a[second]
    clear = np.abs(human) >= CLEAR
    agreed, pairs = int((np.sign(human) * np.sign(metric) > 0)[clear].sum()), int(clear.sum())
    if not pairs:
        _warn("kendall_like", f"no pair differs by {CLEAR:g} points or more in the human scores")
    value = (2 * agreed - pairs) / pairs if pairs else math.nan
    return over_pairs(value, "kendall_like", pairs, missing, dropped)


def _warn(name: str, why: str) -> None:
    warnings.warn(f"{name} is not defined: {why}", DegenerateStatisticWarning, stacklevel=3)


DRAWS = 10_000
_COMPAT_DRAWS, _COMPAT_SEED = 1000, 4
_MARGIN = 1e-10  # of the largest sum there can be: what is left is rounding


def soft_pairwise_accuracy(
    x: ArrayLike,
    z: ArrayLike,
    *,
    n: int = DRAWS,
    seed: int = 0,
    missing: Missing = "paired",
    compat: Literal["mtme"] | None = None,
) -> Correlation:
    """Return how near the metric's certainty about every two systems comes to that of people."""
    if compat not in (None, "mtme"):
        raise SpecError(f"compat is {compat!r}, expected 'mtme' or None")
    if n < 1:
        raise SpecError(f"n is {n}, expected at least 1 row of signs")
    (a, b), dropped = align(x, z, missing="complete" if compat else missing, level="segment")
    if compat is None:  # which system of a pair comes first matters where sums are equal
        a, b = sort_by_content(a, b)
    draws, used = (_COMPAT_DRAWS, _COMPAT_SEED) if compat else (n, seed)
    human, metric = (preference(matrix, n=draws, seed=used, compat=compat) for matrix in (b, a))
    errors = np.abs(human - metric)
    errors = errors[~np.isnan(errors)]
    pairs = len(errors)
    if not pairs:
        _warn("spa", "no two systems share a segment")
    value = 1 - float(errors.mean()) if pairs else math.nan
    return over_pairs(value, "spa", pairs, missing, dropped, level="system")


Signs = NDArray[np.floating]
"""Rows x segments, -1 or 1."""


def preference(
    matrix: FloatMatrix,
    *,
    n: int = DRAWS,
    seed: int = 0,
    compat: Literal["mtme"] | None = None,
    signs: Signs | None = None,
) -> FloatMatrix:
    """Return for every i < j the p-value of "system i is better than system j", NaN elsewhere.

    `signs` are the rows of signs, where they are known already.
    """
    if compat:
        matrix = matrix[:, ~np.isnan(matrix).any(axis=0)]
    i, j = np.triu_indices(len(matrix), 1)
    totals = _flip_whole if not np.isnan(matrix).any() else _flip_by_pair
    blocks = _sign_blocks(n, matrix.shape[1], seed, len(i), compat) if signs is None else (signs,)
    counts = totals(matrix, i, j, blocks, single=compat is not None)
    drawn = n if signs is None else len(signs)
    p = counts / drawn if compat else (counts + 1) / (drawn + 1)
    shared = (~np.isnan(matrix)).astype(np.int64)
    p = np.where((shared @ shared.T)[i, j] > 0, p, np.nan)
    result = np.full((len(matrix), len(matrix)), np.nan)
    result[i, j] = p
    return result


def preferences(stack: NDArray[np.float64], signs: Signs) -> FloatMatrix:
    """Return the same p-values for a stack of complete matrices: matrices x pairs i < j."""
    count, systems, _ = stack.shape
    i, j = np.triu_indices(systems, 1)
    scores = stack - stack.mean(axis=1, keepdims=True)
    sums = scores.sum(axis=2)
    margin = _MARGIN * np.abs(scores).sum(axis=2).max(axis=1, keepdims=True)
    flipped = (signs @ scores.reshape(count * systems, -1).T).reshape(-1, count, systems)
    least = sums[:, i] - sums[:, j] - margin
    p_values: FloatMatrix = ((flipped[:, :, i] - flipped[:, :, j] >= least).sum(axis=0) + 1) / (len(signs) + 1)
    return p_values


def sign_rows(n: int, segments: int, seed: int) -> Signs:
    """Return n rows of random signs."""
    return np.concatenate(list(_sign_blocks(n, segments, seed, segments, None)))


def _sign_blocks(n: int, segments: int, seed: int, width: int, compat: str | None) -> Iterator[Signs]:
    """Yield rows of signs; `width` is the most numbers held for one of them."""
    for drawn in random_rows(n, segments, seed, each=width):
        yield (drawn.round() * 2 - 1).astype(np.float32 if compat else np.float64)


def _flip_whole(
    matrix: FloatMatrix, i: NDArray[np.int64], j: NDArray[np.int64], signs: Iterable[Signs], *, single: bool
) -> FloatVector:
    """Return how often flipped sums are at least the observed ones, where every system has every segment."""
    # Equal sums in float32 depend on the order of adding: that of mt-metrics-eval is system by system.
    scores = np.ascontiguousarray(matrix, dtype=np.float32) if single else matrix - matrix.mean(axis=0)
    sums = scores.sum(axis=1)
    margin = 0.0 if single else _MARGIN * float(np.abs(scores).sum(axis=1).max(initial=0.0))
    counts = np.zeros(len(i))
    for block in signs:
        flipped = block @ scores.T
        counts += (flipped[:, i] - flipped[:, j] >= sums[i] - sums[j] - margin).sum(axis=0)
    return counts


def _flip_by_pair(
    matrix: FloatMatrix, i: NDArray[np.int64], j: NDArray[np.int64], signs: Iterable[Signs], *, single: bool
) -> FloatVector:
    """Return the same over the segments that both systems of a pair have."""
    del single  # compatible mode never comes here
    differences = np.nan_to_num(matrix[i] - matrix[j], nan=0.0)
    sums = differences.sum(axis=1)
    margin = _MARGIN * np.abs(differences).sum(axis=1)
    counts = np.zeros(len(i))
    for block in signs:
        counts += (block @ differences.T >= sums - margin).sum(axis=0)
    return counts
