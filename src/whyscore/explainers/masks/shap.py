"""Shapley values of words, after Lundberg and Lee (2017), arXiv 1705.07874: three ways to the same number.

1. The value of a mask is the score of its text; the base value is that of the text with every word hidden.
2. Plan the empty text and, by method,
   - `exact`: all other masks, 2^n - 1 in all;
   - `permutation`: the masks along `passes` random orders, up and down, 1 + 2 passes (n - 1) in all;
   - `kernel`: `budget` masks for a weighted regression, 1 + budget at the most;
   - `leverage`: as many masks for the same regression, spread evenly over the sizes.
   `auto` is exact up to `exact_up_to` words and permutation above; the result names the method that ran.
3. Fit: importances add up to score(whole) - score(empty).

`mode="compat"` is shap 0.51's PermutationExplainer: 500 // (2n + 1) passes (`budget` instead of 500, and never less
than one pass, where the package gives up), orders from a fresh `RandomState(seed)` for each text.

The methods are pure functions over masks and scores; row 0 of the scores is the whole text, row 1 the empty one.

**Exact** (Shapley 1953): with n words, a word's value is the mean over the sizes k = 0 .. n-1 of what it adds, on
average, to the sets of k other words.

**Permutation** (Castro, Gomez and Tejada 2009; forwards and backwards as in shap's PermutationExplainer): for each
random order, add the words one by one from nothing to the whole text, then take them away in the same order. A word's
value is the mean of its 2 x passes contributions. One pass is exact where words interact at most in pairs.

**Kernel** (Lundberg and Lee 2017): weighted least squares over sets of words.

1. A set of k of n words weighs (n - 1) / (C(n, k) k (n - k)): sets of few and of nearly all words weigh most.
2. Fill the sizes from outside in (1 and n-1, then 2 and n-2 ...), each with all its sets, as long as the budget
   lasts; every set comes with its complement.
3. Spend what is left of the budget on random sets of the sizes between, drawn in proportion to their weight, again
   with their complements. They share the weight of those sizes equally.
4. Fit the values by weighted least squares such that they add up to score(whole) - score(empty).

With a budget of 2^n - 2 no set is left out and the result is the exact Shapley value.

**Leverage** (Musco and Witter 2025, arXiv 2410.01917): the same regression with other masks.

1. The leverage of a set of k words, how much the fit can depend on it, is 1 / C(n, k): every size is worth as much as
   any other. So the pairs of a set and its complement are spread evenly over the sizes, outer sizes first where they
   do not go in evenly; a size that has fewer gives its rest to the others.
2. Of each size, pairs are drawn without replacement. They share the weight of their size equally.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.random import Generator, RandomState
from numpy.typing import NDArray

from whyscore.errors import SpecError
from whyscore.explainers.engine import check_least, check_masker, check_seed
from whyscore.protocols import Masker
from whyscore.registry import component
from whyscore.settings import check_fields
from whyscore.text.maskers import Replace
from whyscore.types import Evidence, Fit, FloatMatrix, FloatVector, KeepMasks

Orders = NDArray[np.intp]
"""Passes x words: the order in which words are added and taken away."""


def exact_masks(words: int) -> KeepMasks:
    """Return every mask but the full one; row r keeps the words whose bit is set in r, so row 0 keeps none.

    >>> exact_masks(2).astype(int).tolist()
    [[0, 0], [1, 0], [0, 1]]
    """
    numbers = np.arange(2**words - 1, dtype=np.int64)
    bits: KeepMasks = (numbers[:, np.newaxis] >> np.arange(words)) & 1 == 1
    return bits


def exact_values(scores: FloatVector, words: int) -> FloatVector:
    """Return the Shapley values, given the score of the whole text and then of each row of `exact_masks`."""
    value = np.append(scores[1:], scores[0])
    share = np.array([1 / (words * math.comb(words - 1, size)) for size in range(words)])[_sizes(words - 1)]
    result = np.empty(words)
    for word in range(words):
        # Numbers without and with the word's bit stand side by side: the blocks of the middle axis.
        without, having = value.reshape(-1, 2, 2**word).transpose(1, 0, 2)
        result[word] = share @ (having - without).ravel()
    return result


def _sizes(words: int) -> NDArray[np.intp]:
    """Return how many bits are set in 0, 1, 2 ... up to 2^words - 1."""
    sizes = np.zeros(1, dtype=np.intp)
    for _ in range(words):
        sizes = np.concatenate([sizes, sizes + 1])
    return sizes


def draw_orders(words: int, passes: int, rng: Generator) -> Orders:
    """Return random orders of the words, one per pass."""
    return np.argsort(rng.random((passes, words)), axis=1)


def compat_orders(words: int, passes: int, state: RandomState) -> Orders:
    """Return the orders of shap 0.51: one array of indices, shuffled in place again and again."""
    order = np.arange(words)
    orders = np.empty((passes, words), dtype=np.intp)
    for row in orders:
        state.shuffle(order)
        row[:] = order
    return orders


def order_masks(orders: Orders) -> KeepMasks:
    """Return the empty mask, then per order the masks on the way up and those on the way down, ends left out."""
    passes, words = orders.shape
    place = np.argsort(orders, axis=1)
    up = place[:, np.newaxis, :] < np.arange(1, words)[:, np.newaxis]
    rows = np.concatenate([up, ~up], axis=1).reshape(passes * 2 * (words - 1), words)
    return np.concatenate([np.zeros((1, words), dtype=np.bool_), rows])


def order_values(masks: KeepMasks, scores: FloatVector) -> FloatVector:
    """Return each word's mean contribution, given the whole text and then the masks of `order_masks`."""
    words = masks.shape[1]
    whole, empty = scores[0], scores[1]
    if words == 1:
        return np.array([whole - empty])
    steps = scores[2:].reshape(-1, 2, words - 1)
    # On the way up, the word added first is kept in every row and the word added last in none.
    counts = masks[2:].reshape(-1, 2, words - 1, words)[:, 0].sum(axis=1)
    result = np.zeros(words)
    for (up, down), order in zip(steps, np.argsort(-counts, axis=1), strict=True):
        result[order] += np.diff(up, prepend=empty, append=whole)
        result[order] -= np.diff(down, prepend=whole, append=empty)
    return result / (2 * len(steps))


# Below this share of the largest singular value a direction counts as undetermined and gets no value.
_RANK = 1e-10


class Layout(NamedTuple):
    """How a budget is spent: sizes 1 .. `whole_sizes` (and their complements) in full, then `drawn` random pairs."""

    whole_sizes: int
    drawn: int


def layout(words: int, budget: int) -> Layout:
    """Return how many sizes the budget covers, and how many pairs are drawn with the rest.

    >>> layout(words=4, budget=14), layout(words=4, budget=11)
    (Layout(whole_sizes=2, drawn=0), Layout(whole_sizes=1, drawn=1))
    """
    left = budget // 2
    for size in range(1, words // 2 + 1):
        pairs = math.comb(words, size) // (2 if 2 * size == words else 1)
        if pairs > left:
            return Layout(size - 1, left)
        left -= pairs
    return Layout(words // 2, 0)


def subset_count(words: int, budget: int) -> int:
    """Return how many masks the budget comes to: at most all but the empty and the full one, and an even number."""
    return min(budget // 2 * 2, (1 << words) - 2)


def subset_masks(words: int, budget: int, rng: Generator) -> KeepMasks:
    """Return the masks between the empty and the full one, each followed by its complement."""
    sizes, drawn = layout(words, budget)
    parts = [*_whole(words, sizes), _draw_subsets(words, sizes, drawn, rng)]
    masks = np.concatenate([part for part in parts if len(part)] or [np.zeros((0, words), dtype=np.bool_)])
    return np.stack([masks, ~masks], axis=1).reshape(-1, words)


def subset_values(masks: KeepMasks, scores: FloatVector, budget: int) -> FloatVector:
    """Return the values, given the whole text, the empty text and then the masks of `subset_masks`."""
    words = masks.shape[1]
    whole, empty = scores[0], scores[1]
    mean = (whole - empty) / words
    if len(masks) == 2:  # noqa: PLR2004 - nothing between empty and whole was asked
        return np.full(words, mean)
    return fit_subsets(masks, scores, _weights(words, budget), determined=layout(words, budget).whole_sizes > 0)


def fit_subsets(masks: KeepMasks, scores: FloatVector, weights: FloatVector, *, determined: bool) -> FloatVector:
    """Return the values of a weighted regression, given the whole text, the empty text and then weighted masks."""
    whole, empty = scores[0], scores[1]
    mean = (whole - empty) / masks.shape[1]
    subsets = masks[2:].astype(np.float64)
    root = np.sqrt(weights)
    # Rows centred by their mean see only what sums to zero: the constraint holds whatever the solver returns.
    left = (subsets - subsets.mean(axis=1, keepdims=True)) * root[:, np.newaxis]
    right = (scores[2:] - empty - mean * subsets.sum(axis=1)) * root
    apart = _zero_sum_solution(left.T @ left, left.T @ right, determined=determined)
    return np.asarray(mean + apart, dtype=np.float64)


def _zero_sum_solution(gram: FloatMatrix, target: FloatVector, *, determined: bool) -> FloatVector:
    """Return the solution that sums to zero; the shortest one where the masks do not determine it."""
    if determined:
        # The constant direction is all the system lacks; any value there makes it solvable and moves nothing else.
        return np.linalg.solve(gram + np.trace(gram) / len(gram) ** 2, target)
    return np.asarray(np.linalg.lstsq(gram, target, rcond=_RANK)[0], dtype=np.float64)


def _whole(words: int, sizes: int) -> Iterator[KeepMasks]:
    """Yield all sets of each size; of the middle size only those with the first word, as the others complement them."""
    for size in range(1, sizes + 1):
        middle = 2 * size == words
        subsets = combinations(range(1, words), size - 1) if middle else combinations(range(words), size)
        indices = np.array([(0, *rest) if middle else rest for rest in subsets], dtype=np.intp)
        masks = np.zeros((len(indices), words), dtype=np.bool_)
        np.put_along_axis(masks, indices, values=True, axis=1)
        yield masks


def _draw_subsets(words: int, sizes: int, pairs: int, rng: Generator) -> KeepMasks:
    if not pairs:
        return np.zeros((0, words), dtype=np.bool_)
    between = np.arange(sizes + 1, words - sizes)
    mass = 1 / (between * (words - between))
    size = rng.choice(between, size=pairs, p=mass / mass.sum())
    masks: KeepMasks = np.argsort(rng.random((pairs, words)), axis=1) < size[:, np.newaxis]
    return masks


def _weights(words: int, budget: int) -> FloatVector:
    """Return one weight per mask of `subset_masks`."""
    sizes, drawn = layout(words, budget)
    parts = []
    for size in range(1, sizes + 1):
        number = math.comb(words, size)
        rows = number if 2 * size == words else 2 * number
        parts.append(np.full(rows, (words - 1) / (number * size * (words - size))))
    if drawn:
        between = np.arange(sizes + 1, words - sizes)
        parts.append(np.full(2 * drawn, np.sum((words - 1) / (between * (words - between))) / (2 * drawn)))
    return np.concatenate(parts)


def spread_pairs(words: int, budget: int) -> list[int]:
    """Return how many pairs of each size 1, 2 ... n // 2 a budget of masks comes to.

    >>> spread_pairs(words=6, budget=20), spread_pairs(words=6, budget=32)
    ([4, 3, 3], [6, 5, 5])
    """
    there = [_pairs(words, size) for size in range(1, words // 2 + 1)]
    counts = [0] * len(there)
    left = min(budget // 2, sum(there))
    while left:
        open_sizes = [k for k, number in enumerate(there) if counts[k] < number]
        share = max(1, left // len(open_sizes))
        for k in open_sizes[:left]:
            more = min(share, there[k] - counts[k])
            counts[k] += more
            left -= more
    return counts


def _pairs(words: int, size: int) -> int:
    """Return how many pairs of a set of a size and its complement there are."""
    return math.comb(words, size) // (2 if 2 * size == words else 1)


def leverage_masks(words: int, budget: int, rng: Generator) -> KeepMasks:
    """Return masks of all sizes but none and all, evenly many of each, every one followed by its complement."""
    masks: dict[bytes, KeepMasks] = {}
    for size, pairs in enumerate(spread_pairs(words, budget), start=1):
        masks |= _distinct_sets(words, size, pairs, rng)
    rows = np.array(list(masks.values()), dtype=np.bool_).reshape(-1, words)
    return np.stack([rows, ~rows], axis=1).reshape(-1, words)


def _distinct_sets(words: int, size: int, count: int, rng: Generator) -> dict[bytes, KeepMasks]:
    """Return random sets of a size, none twice and of the middle size none with its complement."""
    if 2 * count > _pairs(words, size):
        (every,) = (masks for k, masks in enumerate(_whole(words, size), start=1) if k == size)
        sample = every[rng.permutation(len(every))[:count]]
        return {mask.tobytes(): mask for mask in sample}
    sets: dict[bytes, KeepMasks] = {}
    while len(sets) < count:
        mask = np.zeros(words, dtype=np.bool_)
        mask[rng.permutation(words)[:size]] = True
        mask = ~mask if 2 * size == words and not mask[0] else mask
        sets[mask.tobytes()] = mask
    return sets


def leverage_values(masks: KeepMasks, scores: FloatVector, budget: int) -> FloatVector:
    """Return the values, given the whole text, the empty text and then the masks of `leverage_masks`."""
    words = masks.shape[1]
    if len(masks) == 2:  # noqa: PLR2004 - nothing between empty and whole was asked
        return np.full(words, (scores[0] - scores[1]) / words)
    pairs = spread_pairs(words, budget)
    weights = [
        np.full(2 * drawn, (words - 1) / (math.comb(words, size) * size * (words - size)) * _pairs(words, size) / drawn)
        for size, drawn in enumerate(pairs, start=1)
        if drawn
    ]
    return fit_subsets(masks, scores, np.concatenate(weights), determined=pairs[0] == words > 2)  # noqa: PLR2004


Method = Literal["exact", "permutation", "kernel", "leverage"]

_REGRESSIONS = ("kernel", "leverage")
# 2^20 is a million probes for one text.
_EXACT_AT_MOST = 20
_COMPAT_BUDGET = 500
# What shap's KernelExplainer spends: 2n + 2048.
_KERNEL_BUDGET = 2048
# Far above the rounding of some thousand additions, far below any difference that matters.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Shap:
    """Explains a text by what each word adds, on average, to sets of the other words.

    `passes` is read by the permutation method, `budget` by the kernel and leverage methods (None: 2n + 2048) and by
    `compat` (None: 500), `seed` by `compat` alone (None: the seed of the run).
    """

    method: Literal["auto", "exact", "permutation", "kernel", "leverage"] = "auto"
    exact_up_to: int = 7
    passes: int = 10
    budget: int | None = None
    masker: Masker = component("masker", default=Replace())
    mode: Literal["default", "compat"] = "default"
    seed: int | None = None

    rounds: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_fields(self)
        check_masker("shap", self.masker)
        check_seed("shap", self.seed, self.mode)
        check_least("shap", "passes", self.passes, 1)
        if not 0 <= self.exact_up_to <= _EXACT_AT_MOST:
            raise SpecError(f"shap: exact_up_to is {self.exact_up_to!r}, expected 0 to {_EXACT_AT_MOST}")
        if self.mode == "compat" and self.method in _REGRESSIONS:
            raise SpecError(
                f"shap: mode='compat' follows shap's PermutationExplainer; with method={self.method!r} leave it out"
            )
        if self.budget is not None:
            check_least("shap", "budget", self.budget, 2)
            if self.mode != "compat" and self.method not in _REGRESSIONS:
                raise SpecError(
                    f"shap: budget is {self.budget!r}, but only method='kernel', method='leverage' and mode='compat' "
                    "read it; set passes instead"
                )

    def raise_budget(self) -> "Shap":
        if self.budget is not None:
            return replace(self, budget=2 * self.budget)
        return replace(self, passes=2 * self.passes)

    def cost(self, words: int) -> int:
        if not words:
            return 0
        match self._method(words):
            case "exact":
                return (1 << _countable(words)) - 1
            case "permutation":
                return 1 + 2 * self._passes(words) * (words - 1)
            case "kernel" | "leverage":
                return 1 + subset_count(words, self._budget(words))

    def plan(self, evidence: Evidence, rng: Generator) -> KeepMasks:
        words = len(evidence.words)
        if not words:
            return np.zeros((0, 0), dtype=np.bool_)
        match self._method(words):
            case "exact":
                return exact_masks(_countable(words))
            case "permutation":
                return order_masks(self._orders(evidence, rng))
            case "kernel" | "leverage" as method:
                draw = subset_masks if method == "kernel" else leverage_masks
                between = draw(words, self._budget(words), rng)
                return np.concatenate([np.zeros((1, words), dtype=np.bool_), between])

    def fit(self, evidence: Evidence) -> Fit:
        words = len(evidence.words)
        method = self._method(words)
        if not words:
            return Fit(np.zeros(0), method=method)
        importance = self._values(evidence, method)
        flags = []
        if method in _REGRESSIONS and self._budget(words) < min(2 * words, 2**words - 2):
            flags.append("few samples")
        if not _adds_up(importance, evidence.scores):
            flags.append("does not add up")
        return Fit(importance, method=method, flags=tuple(flags))

    def _method(self, words: int) -> Method:
        if self.method == "auto":
            return "exact" if words <= self.exact_up_to else "permutation"
        return self.method

    def _budget(self, words: int) -> int:
        return 2 * words + _KERNEL_BUDGET if self.budget is None else self.budget

    def _passes(self, words: int) -> int:
        if self.mode == "default":
            return self.passes
        budget = _COMPAT_BUDGET if self.budget is None else self.budget
        return max(1, budget // (2 * words + 1))

    def _orders(self, evidence: Evidence, rng: Generator) -> Orders:
        words = len(evidence.words)
        if self.mode == "default":
            return draw_orders(words, self._passes(words), rng)
        seed = evidence.seed if self.seed is None else self.seed
        return compat_orders(words, self._passes(words), RandomState(seed))

    def _values(self, evidence: Evidence, method: Method) -> FloatVector:
        match method:
            case "exact":
                return exact_values(evidence.scores, len(evidence.words))
            case "permutation":
                return order_values(evidence.masks, evidence.scores)
            case "kernel" | "leverage":
                fit = subset_values if method == "kernel" else leverage_values
                return fit(evidence.masks, evidence.scores, self._budget(len(evidence.words)))


def _countable(words: int) -> int:
    if words > _EXACT_AT_MOST:
        raise SpecError(
            f"shap: method='exact' would take 2^{words} - 1 probes for a text of {words} words; it goes up to "
            f"{_EXACT_AT_MOST} words, use method='permutation' or method='kernel'"
        )
    return words


def _adds_up(importance: FloatVector, scores: FloatVector) -> bool:
    """Return whether the importances sum to the whole score less that of the empty text, row 1."""
    gap = abs(float(importance.sum()) - float(scores[0] - scores[1]))
    return gap <= _ROUNDING * max(1.0, float(np.abs(scores).max()))
