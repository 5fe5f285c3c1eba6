"""Coefficients of two vectors, for whole stacks of vectors at once.

Vectors lie along the last axis; everything before it is a stack, and both sides may be broadcast. A place counts where
both vectors have a number. A pair of places is concordant (C), discordant (D), tied only in the metric (T_m), only in
the human scores (T_h) or in both (T_mh); P is their sum.

| name | value |
|---|---|
| pearson | covariance over the product of the deviations, centred first |
| spearman | Pearson of average ranks |
| kendall_b | (C - D) / sqrt((P - T_m - T_mh) (P - T_h - T_mh)) |
| kendall_c | 2 (C - D) k / (n^2 (k - 1)), k the smaller number of distinct values |
| tau_23 | (C + T_mh - D - T_m - T_h) / P |
| acc_23 | (C + T_mh) / P |
| auc | of human scores with two values: the share of pairs of both kinds in the right order, ties count half |
| accuracy | of human scores with two values: the largest share of places that one threshold on the metric puts right |

Where a vector is constant or shorter than two, correlations are NaN.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from whyscore.errors import SpecError
from whyscore.stats.matrices import divide
from whyscore.types import FloatVector

Coefficient = Literal["pearson", "spearman", "kendall_b", "kendall_c", "tau_23", "acc_23", "auc", "accuracy"]
CLASSIFYING: tuple[Coefficient, ...] = ("auc", "accuracy")
"""Those that need human scores with two values."""
COEFFICIENTS: tuple[Coefficient, ...] = tuple(name for name in get_args(Coefficient) if name not in CLASSIFYING)
_ALIASES: dict[str, Coefficient] = {"kendall": "kendall_b", "tau": "kendall_b", "kendalltau": "kendall_b"}

Stack = NDArray[np.float64]
"""Vectors along the last axis."""

LONG = 256
"""Places from which sorting beats looking at all pairs."""
_SHORT = 24  # up to here looking at all pairs beats sorting
_FLAT = 1e-13  # relative spread below which a vector is constant but for rounding, as scipy has it


class Pairs(NamedTuple):
    """How many pairs of places there are of each kind."""

    concordant: Stack
    discordant: Stack
    metric_ties: Stack
    human_ties: Stack
    both_ties: Stack

    @property
    def all(self) -> Stack:
        """All pairs."""
        return self.concordant + self.discordant + self.metric_ties + self.human_ties + self.both_ties


def coefficient_of(name: str) -> Coefficient:
    """Return a coefficient by its name; `kendall` is tau b."""
    canonical = _ALIASES.get(name, name)
    for coefficient in (*COEFFICIENTS, *CLASSIFYING):
        if canonical == coefficient:
            return coefficient
    raise SpecError(f"no coefficient named {name!r}: use {', '.join((*COEFFICIENTS, *CLASSIFYING, *_ALIASES))}")


def chance_of(coefficient: str) -> float:
    """Return what a metric that knows nothing reaches: half of the pairs for `auc`, else 0."""
    return 0.5 if coefficient == "auc" else 0.0


def kernel(coefficient: Coefficient) -> Callable[[Stack, Stack], Stack]:
    """Return the function that computes a coefficient along the last axis."""
    if coefficient == "pearson":
        return pearson
    if coefficient == "spearman":
        return spearman
    if coefficient in CLASSIFYING:
        return area if coefficient == "auc" else best_accuracy
    return lambda x, z: from_pairs(coefficient, pair_counts(x, z), x, z)


def pearson(x: Stack, z: Stack) -> Stack:
    """Return Pearson's correlation along the last axis."""
    there = None if not (np.isnan(x).any() or np.isnan(z).any()) else ~(np.isnan(x) | np.isnan(z))
    (a, flat_a), (b, flat_b) = _direction(x, there), _direction(z, there)
    r = np.einsum("...i,...i->...", a, b).clip(-1.0, 1.0)
    return np.where(flat_a | flat_b, np.nan, r)


def _direction(values: Stack, there: NDArray[np.bool_] | None) -> tuple[Stack, NDArray[np.bool_]]:
    """Return centred vectors of length 1 (0 where missing), and which of them are constant but for rounding."""
    if there is None:
        mean = values.mean(axis=-1, keepdims=True)
        centred, count = values - mean, np.float64(values.shape[-1])
    else:
        filled = np.where(there, values, 0.0)
        count = there.sum(axis=-1)
        mean = filled.sum(axis=-1, keepdims=True) / np.maximum(count, 1)[..., None]
        centred = np.where(there, filled - mean, 0.0)
    norm = np.sqrt(np.einsum("...i,...i->...", centred, centred))
    flat = norm <= _FLAT * np.sqrt(norm * norm + count * mean[..., 0] ** 2)
    return centred / np.where(flat, 1.0, norm)[..., None], flat


def spearman(x: Stack, z: Stack) -> Stack:
    """Return Pearson's correlation of average ranks along the last axis."""
    gap = np.isnan(x) | np.isnan(z)
    if gap.any():
        x, z = np.where(gap, np.nan, x), np.where(gap, np.nan, z)
    return pearson(ranks(x), ranks(z))


def area(x: Stack, z: Stack) -> Stack:
    """Return the area under the ROC curve along the last axis; the larger human score is the positive class.

    >>> area(np.array([0.1, 0.4, 0.4, 0.9]), np.array([0.0, 0.0, 1.0, 1.0])).item()
    0.875
    """
    x, z, positive, negative = _classes(x, z)
    count, others = positive.sum(axis=-1), negative.sum(axis=-1)
    total = np.where(positive, ranks(np.where(positive | negative, x, np.nan)), 0.0).sum(axis=-1)
    return divide(total - count * (count + 1) / 2, count * others)


def best_accuracy(x: Stack, z: Stack) -> Stack:
    """Return the share of places that the best threshold classifies right; the larger human score is positive.

    >>> best_accuracy(np.array([0.1, 0.4, 0.2, 0.9]), np.array([0.0, 0.0, 1.0, 1.0])).item()
    0.75
    """
    x, z, positive, negative = _classes(x, z)
    order = np.argsort(-np.where(positive | negative, x, -np.inf), axis=-1, kind="stable")
    ordered = np.take_along_axis(x, order, axis=-1)
    steps = positive.astype(np.int64) - negative  # each place above the threshold gains a positive, or loses a negative
    gains = np.take_along_axis(steps, order, axis=-1).cumsum(axis=-1)
    inside = np.ones(ordered.shape, dtype=np.bool_)
    inside[..., :-1] = ordered[..., :-1] != ordered[..., 1:]  # no threshold between equal values
    best = np.maximum(np.where(inside, gains, 0).max(axis=-1, initial=0), 0)
    count, others = positive.sum(axis=-1), negative.sum(axis=-1)
    right = np.where((count > 0) & (others > 0), others + best, np.nan)
    return divide(right, count + others)


def _classes(x: Stack, z: Stack) -> tuple[Stack, Stack, NDArray[np.bool_], NDArray[np.bool_]]:
    """Return both vectors, equally shaped, and the places of each class; none where there are not two classes."""
    x, z = np.broadcast_arrays(x, z)
    there = ~(np.isnan(x) | np.isnan(z))
    largest = np.where(there, z, -np.inf).max(axis=-1, keepdims=True, initial=-np.inf)
    least = np.where(there, z, np.inf).min(axis=-1, keepdims=True, initial=np.inf)
    two = ~(there & (z != largest) & (z != least)).any(axis=-1, keepdims=True) & (least < largest)
    return x, z, there & two & (z == largest), there & two & (z == least)


def ranks(values: Stack) -> Stack:
    """Return average ranks from 1 along the last axis; NaN stays NaN.

    >>> ranks(np.array([3.0, 1.0, 3.0])).tolist()
    [2.5, 1.0, 2.5]
    """
    if values.shape[-1] <= _SHORT:
        above = np.count_nonzero(values[..., :, None] > values[..., None, :], axis=-1)
        equal = np.count_nonzero(values[..., :, None] == values[..., None, :], axis=-1)
        return np.where(np.isnan(values), np.nan, above + (equal + 1) / 2)
    order = np.argsort(values, axis=-1, kind="stable")
    ordered = np.take_along_axis(values, order, axis=-1)
    length = values.shape[-1]
    edge = np.ones((*values.shape[:-1], 1), dtype=np.bool_)
    new = np.concatenate([edge, ordered[..., 1:] != ordered[..., :-1]], axis=-1)
    places = np.arange(length)
    first = np.maximum.accumulate(np.where(new, places, 0), axis=-1)
    ends = np.concatenate([new[..., 1:], edge], axis=-1)
    last = np.flip(np.minimum.accumulate(np.flip(np.where(ends, places, length), axis=-1), axis=-1), axis=-1)
    result = np.empty(values.shape)
    np.put_along_axis(result, order, (first + last) / 2 + 1, axis=-1)
    result[np.isnan(values)] = np.nan
    return result


def pair_counts(x: Stack, z: Stack) -> Pairs:
    """Return the kinds of pairs along the last axis."""
    if x.shape[-1] < LONG:
        return _counts_by_signs(x, z)
    x, z = np.broadcast_arrays(x, z)
    length = x.shape[-1]
    counted = [_counts_by_sorting(a, b) for a, b in zip(x.reshape(-1, length), z.reshape(-1, length), strict=True)]
    columns = np.array(counted, dtype=np.float64).reshape(*x.shape[:-1], len(Pairs._fields))
    return Pairs(*np.moveaxis(columns, -1, 0))


def _counts_by_signs(x: Stack, z: Stack) -> Pairs:
    first, second = np.triu_indices(x.shape[-1], 1)
    sx, sz = _signs(x, first, second), _signs(z, first, second)
    there = ~(np.isnan(x) | np.isnan(z))
    if there.all():
        count: Stack = np.full(there.shape[:-1], float(len(first)))
    else:
        valid = there[..., first] & there[..., second]
        sx, sz, count = sx * valid, sz * valid, _total(valid)
    return Pairs(*_kinds(_total(sx * sz), _total(np.abs(sx)), _total(np.abs(sz)), _total(np.abs(sx * sz)), count))


def _signs(values: Stack, first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int8]:
    """Return the sign of every difference, 0 where one side is missing."""
    a, b = values[..., first], values[..., second]
    return (a > b).view(np.int8) - (a < b).view(np.int8)


def _total(values: NDArray[np.int8] | NDArray[np.bool_]) -> Stack:
    total: Stack = values.sum(axis=-1, dtype=np.int32).astype(np.float64)
    return total


def _kinds(
    surplus: Stack, untied_x: Stack, untied_z: Stack, untied: Stack, count: Stack
) -> tuple[Stack, Stack, Stack, Stack, Stack]:
    """Return the five kinds from C - D, the pairs untied in each vector and in both, and the number of pairs."""
    both = count - untied_x - untied_z + untied
    return (untied + surplus) / 2, (untied - surplus) / 2, untied_z - untied, untied_x - untied, both


def _counts_by_sorting(x: FloatVector, z: FloatVector) -> tuple[float, ...]:
    """Return the five kinds in O(n log n): discordant pairs are the inversions of z in the order of x (Knight 1966)."""
    there = ~(np.isnan(x) | np.isnan(z))
    _, a = np.unique(x[there], return_inverse=True)
    _, b = np.unique(z[there], return_inverse=True)
    # The side with fewer values takes fewer rounds to sort; which side is sorted by which changes nothing.
    few, many = (a, b) if a.max(initial=0) < b.max(initial=0) else (b, a)
    discordant = inversions(few[np.lexsort((few, many))])
    count = _choose_two(np.array([len(a)]))
    ties_a, ties_b = _choose_two(np.bincount(a)), _choose_two(np.bincount(b))
    joint = _choose_two(np.unique(a * (len(b) + 1) + b, return_counts=True)[1])
    concordant = count - ties_a - ties_b + joint - discordant
    return float(concordant), float(discordant), float(ties_a - joint), float(ties_b - joint), float(joint)


def _choose_two(counts: NDArray[np.int64]) -> int:
    return int((counts * (counts - 1) // 2).sum())


def inversions(values: NDArray[np.int64]) -> int:
    """Return how many pairs of whole numbers from 0 up stand in the wrong order, in O(n log n).

    From the highest bit down: within numbers that agree above the bit, every one before a zero is an inversion.

    >>> inversions(np.array([2, 0, 1]))
    2
    """
    total = 0
    for bit in reversed(range(int(values.max(initial=0)).bit_length())):
        group = values >> (bit + 1)
        digit = (values >> bit) & 1
        before = np.concatenate([[0], np.cumsum(digit)])[:-1]
        ones = before - before[np.searchsorted(group, group)]
        total += int(ones[digit == 0].sum())
        values = values[np.argsort(values >> bit, kind="stable")]
    return total


def from_pairs(coefficient: Coefficient, pairs: Pairs, x: Stack, z: Stack) -> Stack:
    """Return a coefficient of pairs; the vectors are needed for the distinct values of Kendall c."""
    surplus = pairs.concordant - pairs.discordant
    if coefficient == "kendall_b":
        untied = pairs.concordant + pairs.discordant
        return kendall_b(surplus, untied + pairs.human_ties, untied + pairs.metric_ties)
    if coefficient == "kendall_c":
        gap = np.isnan(x) | np.isnan(z)
        least = np.minimum(_distinct(x, gap), _distinct(z, gap))
        return divide(2 * surplus * least, (~gap).sum(axis=-1) ** 2 * (least - 1.0))
    agreed = divide(pairs.concordant + pairs.both_ties, pairs.all)
    return 2 * agreed - 1 if coefficient == "tau_23" else agreed


def kendall_b(surplus: Stack, untied_x: Stack, untied_z: Stack) -> Stack:
    """Return tau b from C - D and the pairs that are not tied in each vector."""
    return divide(surplus, np.sqrt(untied_x * untied_z)).clip(-1.0, 1.0)


def _distinct(values: Stack, gap: NDArray[np.bool_]) -> NDArray[np.int64]:
    ordered = np.sort(np.where(gap, np.nan, values), axis=-1)
    with np.errstate(invalid="ignore"):
        steps = (np.diff(ordered, axis=-1) > 0).sum(axis=-1)
    counts: NDArray[np.int64] = steps + ~np.isnan(ordered[..., 0])
    return counts
