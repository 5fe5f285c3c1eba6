"""Ranks of many rows at once, and Kendall's tau b of every row against one vector.

1. Each row is sorted once. Its ranks are kept twice: averaged over ties for Spearman, and as small whole numbers.
2. Ties are counted in the sorted ranks.
3. Concordant pairs: the ranks, in the order of the human scores, are compared with each other all at once, a stripe of
   pairs at a time; pairs that are tied for people are masked out. Discordant pairs are what is left.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whyscore.stats.coefficients import kendall_b
from whyscore.types import FloatVector

Numbers = NDArray[np.int64]
"""One whole number per entry."""

_FEW = 48  # up to here all pairs are held at once
_STRIPES = 4


class Ranked(NamedTuple):
    """Ranks along the last axis."""

    average: NDArray[np.float64]
    least: NDArray[np.int16]
    """From 0; tied values share the least of their ranks."""


def ranked_rows(values: NDArray[np.float64]) -> Ranked:
    """Return the ranks along the last axis."""
    order = np.argsort(values, axis=-1)
    ordered = np.take_along_axis(values, order, axis=-1)
    length = values.shape[-1]
    new = np.ones(values.shape, dtype=np.bool_)
    new[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    average, least = np.empty(values.shape), np.empty(values.shape, dtype=np.int16)
    places = np.arange(length)
    if new.all():
        np.put_along_axis(least, order, np.broadcast_to(places.astype(np.int16), values.shape), axis=-1)
        return Ranked(least.astype(np.float64) + 1, least)
    first = np.maximum.accumulate(np.where(new, places, 0), axis=-1)
    ends = np.ones(values.shape, dtype=np.bool_)
    ends[..., :-1] = new[..., 1:]
    last = np.flip(np.minimum.accumulate(np.flip(np.where(ends, places, length), axis=-1), axis=-1), axis=-1)
    np.put_along_axis(average, order, (first + last) / 2 + 1, axis=-1)
    np.put_along_axis(least, order, first.astype(np.int16), axis=-1)
    return Ranked(average, least)


def kendall_rows(ranked: Ranked, human: FloatVector) -> FloatVector:
    """Return tau b of every row: concordant pairs by comparison, ties by counting."""
    count, length = ranked.least.shape
    own = ranked_rows(human[None]).least[0]
    order = np.argsort(own, kind="stable")
    # take, not [:, order], which lays the rows out across the memory
    ranks, own = np.take(ranked.least, order, axis=1), own[order].astype(np.int64)
    all_pairs = length * (length - 1) / 2
    tied_human = _tied_pairs(own[None], length)[0]
    tied = _tied_pairs(ranks, length)
    both = _tied_pairs(ranks.astype(np.int64) * length + own, length) if tied_human else np.zeros(count)
    concordant = _concordant(ranks, own)
    untied = all_pairs - tied_human - (tied - both)
    surplus = 2 * concordant - untied
    return kendall_b(surplus, all_pairs - tied, np.full(count, all_pairs - tied_human))


def _tied_pairs(ranks: NDArray[np.int64] | NDArray[np.int16], length: int) -> FloatVector:
    """Return how many pairs of each row are equal."""
    ordered = np.sort(ranks, axis=-1)
    same = ordered[:, 1:] == ordered[:, :-1]
    result = np.zeros(len(ranks))
    for row in np.flatnonzero(same.any(axis=1)):
        edges = np.flatnonzero(np.concatenate([[True], ~same[row], [True]]))
        sizes = np.diff(edges) if length else edges
        result[row] = float((sizes * (sizes - 1) // 2).sum())
    return result


def _concordant(ranks: NDArray[np.int16], own: Numbers) -> FloatVector:
    """Return how many pairs of each row rise with the human ranks, which rise from left to right."""
    length = ranks.shape[1]
    if length <= _FEW:
        first, second = np.nonzero(own[:, None] < own[None, :])
        found: FloatVector = (ranks[:, first] < ranks[:, second]).sum(axis=1).astype(np.float64)
        return found
    edges = np.linspace(0, length, _STRIPES + 1).astype(int).tolist()
    stripes = [(start, end, own[start:end, None] < own[None, start:]) for start, end in pairwise(edges)]
    held = [np.empty(later.shape, dtype=np.bool_) for *_, later in stripes]
    result = np.zeros(len(ranks))
    for number, row in enumerate(ranks):
        total = 0
        for (start, end, later), room in zip(stripes, held, strict=True):
            np.less(row[start:end, None], row[None, start:], out=room)
            np.logical_and(room, later, out=room)
            total += int(np.count_nonzero(room))
        result[number] = total
    return result
