"""Shapley values by weighted least squares, after Lundberg and Lee (2017), arXiv 1705.07874.

1. A set of k of n words weighs (n - 1) / (C(n, k) k (n - k)): sets of few and of nearly all words weigh most.
2. Fill the sizes from outside in (1 and n-1, then 2 and n-2 ...), each with all its sets, as long as the budget
   lasts; every set comes with its complement.
3. Spend what is left of the budget on random sets of the sizes between, drawn in proportion to their weight, again
   with their complements. They share the weight of those sizes equally.
4. Fit the values by weighted least squares such that they add up to score(whole) - score(empty).

With a budget of 2^n - 2 no set is left out and the result is the exact Shapley value.
"""

import math
from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from whyscore.types import FloatMatrix, FloatVector, KeepMasks

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
    parts = [*_whole(words, sizes), _drawn(words, sizes, drawn, rng)]
    masks = np.concatenate([part for part in parts if len(part)] or [np.zeros((0, words), dtype=np.bool_)])
    return np.stack([masks, ~masks], axis=1).reshape(-1, words)


def subset_values(masks: KeepMasks, scores: FloatVector, budget: int) -> FloatVector:
    """Return the values, given the whole text, the empty text and then the masks of `subset_masks`."""
    words = masks.shape[1]
    whole, empty = scores[0], scores[1]
    mean = (whole - empty) / words
    if len(masks) == 2:  # noqa: PLR2004 - nothing between empty and whole was asked
        return np.full(words, mean)
    subsets = masks[2:].astype(np.float64)
    root = np.sqrt(_weights(words, budget))
    # Rows centred by their mean see only what sums to zero: the constraint holds whatever the solver returns.
    left = (subsets - subsets.mean(axis=1, keepdims=True)) * root[:, np.newaxis]
    right = (scores[2:] - empty - mean * subsets.sum(axis=1)) * root
    apart = _zero_sum_solution(left.T @ left, left.T @ right, determined=layout(words, budget).whole_sizes > 0)
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
        chosen = combinations(range(1, words), size - 1) if middle else combinations(range(words), size)
        kept = np.array([(0, *rest) if middle else rest for rest in chosen], dtype=np.intp)
        masks = np.zeros((len(kept), words), dtype=np.bool_)
        np.put_along_axis(masks, kept, values=True, axis=1)
        yield masks


def _drawn(words: int, sizes: int, pairs: int, rng: Generator) -> KeepMasks:
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
