"""Shapley values of a text's words, by all masks or by random orders. Pure functions over masks and scores.

The value of a mask is the score of its text. Row 0 of the scores is the whole text, row 1 the empty one.

**Exact** (Shapley 1953): with n words, a word's value is the mean over the sizes k = 0 .. n-1 of what it adds, on
average, to the sets of k other words.

**Permutation** (Castro, Gomez and Tejada 2009; forwards and backwards as in shap's PermutationExplainer): for each
random order, add the words one by one from nothing to the whole text, then take them away in the same order. A word's
value is the mean of its 2 x passes contributions. One pass is exact where words interact at most in pairs.
"""

import math

import numpy as np
from numpy.random import Generator, RandomState
from numpy.typing import NDArray

from whyscore.types import FloatVector, KeepMasks

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
    kept = masks[2:].reshape(-1, 2, words - 1, words)[:, 0].sum(axis=1)
    result = np.zeros(words)
    for (up, down), order in zip(steps, np.argsort(-kept, axis=1), strict=True):
        result[order] += np.diff(up, prepend=empty, append=whole)
        result[order] -= np.diff(down, prepend=whole, append=empty)
    return result / (2 * len(steps))
