"""Kinds of pairs in long vectors, for many ways to weigh the same places at once.

The bootstrap draws places several times, a swap of two metrics takes one of two values at each place: either way the
values stay and only the weight of each place (how often it counts) changes. So the places are sorted once.

1. Places stand in the order of x, then of z. A pair is discordant where z stands in the wrong order: an inversion.
2. Inversions are counted in blocks of about sqrt(n) places. Within a block of neighbours in x, and within a block of
   neighbours in z, all pairs are looked at: one matrix product for all weights. Of two places that share no block, the
   blocks decide: running sums over a table of blocks x blocks.
3. Ties are sums of weights over runs of equal values.

Weights are whole numbers and all sums are exact, so that the results are those of counting each pair.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whyscore.stats.coefficients import Pairs, Stack
from whyscore.types import FloatVector

Numbers = NDArray[np.int64]
Weights = NDArray[np.float32]
"""Draws x places: how often each place counts. Whole numbers, so that sums are exact up to 2^24."""

MOST = 200_000
"""Places up to which the tables of a long vector are held."""

_HELD = 500_000  # weights that are looked at together: what fits a cache


class _Blocks(NamedTuple):
    """Which pairs within a block are inversions (blocks x size x size), and where the block's places stand."""

    places: Numbers
    inverted: Weights


class _Runs(NamedTuple):
    """Runs of equal values: the places that stand alone, and those of longer runs with where each run begins."""

    alone: FloatVector
    places: Numbers
    starts: Numbers

    @classmethod
    def of(cls, new: NDArray[np.bool_], order: Numbers) -> "_Runs":
        """Return the runs of places in an order, given where a place differs from the one before it."""
        edges = np.concatenate([[True], new, [True]])[: len(order) + 1]
        single = edges[1:] & edges[:-1]
        alone = np.zeros(len(order))
        alone[order[single]] = 1.0
        return cls(alone, order[~single], np.flatnonzero(edges[:-1][~single]))

    def squares(self, weights: Weights, squared: Weights) -> Stack:
        """Return the sum over runs of their weight, squared."""
        total: Stack = np.einsum("dp,p->d", squared, self.alone, dtype=np.float64)
        if len(self.places):
            sums = np.add.reduceat(weights[:, self.places], self.starts, axis=1, dtype=np.float64)
            total += np.einsum("dr,dr->d", sums, sums)
        return total


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Places of two vectors, sorted once; weights are looked at in the order of x, then of z."""

    order: Numbers
    x_runs: _Runs
    z_runs: _Runs
    both_runs: _Runs
    x_blocks: _Blocks
    z_blocks: _Blocks
    cells: Numbers
    """Of each position, its block by x and its block by z, as one number."""

    @classmethod
    def of(cls, x: FloatVector, z: FloatVector) -> "Places":
        """Return the places of two vectors without gaps."""
        order = np.lexsort((z, x))
        first, second = x[order], z[order]
        by_z = np.argsort(second, kind="stable")
        new_x, new_z = first[1:] != first[:-1], second[1:] != second[:-1]
        own = np.arange(len(order))
        runs = (_Runs.of(new_x, own), _Runs.of(np.diff(second[by_z]) != 0, by_z), _Runs.of(new_x | new_z, own))
        return cls(order, *runs, *_blocks(by_z))

    def __len__(self) -> int:
        """Return how many places there are."""
        return len(self.order)

    def pairs(self, weights: NDArray[np.generic]) -> Pairs:
        """Return the kinds of pairs for each row of weights (draws x places)."""
        return self._in_parts(weights, lambda mine: (self._kinds(mine, self._inversions(mine)),))[0]

    def halves(self, chosen: NDArray[np.bool_]) -> tuple[Pairs, Pairs]:
        """Return the kinds of pairs among the chosen places of each row, and among the others."""
        if not len(self):
            return self.pairs(chosen), self.pairs(chosen)
        touching = self._touching()
        whole = float(touching.sum()) / 2

        def both(mine: Weights) -> tuple[Pairs, Pairs]:
            inverted = self._inversions(mine)
            # All inversions, less those that touch a chosen place; those with two chosen ends were taken off twice.
            others = whole - np.einsum("dp,p->d", mine, touching, dtype=np.float64) + inverted
            return self._kinds(mine, inverted), self._kinds(1 - mine, others)

        mine, others = self._in_parts(chosen, both)
        return mine, others

    def _in_parts(
        self, weights: NDArray[np.generic], count: Callable[[Weights], tuple[Pairs, ...]]
    ) -> tuple[Pairs, ...]:
        """Return what is counted for all rows of weights, a few rows at a time."""
        if not len(self):
            return (Pairs(*(np.zeros(len(weights)) for _ in Pairs._fields)),)
        rows = max(1, _HELD // len(self))
        parts = [
            count(weights[start : start + rows].astype(np.float32)[:, self.order])
            for start in range(0, len(weights), rows)
        ]
        return tuple(Pairs(*map(np.concatenate, zip(*kind, strict=True))) for kind in zip(*parts, strict=True))

    def _kinds(self, weights: Weights, discordant: Stack) -> Pairs:
        """Return the kinds from weights in the order of x, and the discordant pairs."""
        squared = weights * weights
        all_of = weights.sum(axis=1, dtype=np.float64)
        x_ties, z_ties, both = (
            (runs.squares(weights, squared) - all_of) / 2 for runs in (self.x_runs, self.z_runs, self.both_runs)
        )
        concordant = all_of * (all_of - 1) / 2 - x_ties - z_ties + both - discordant
        return Pairs(concordant, discordant, x_ties - both, z_ties - both, both)

    def _inversions(self, weights: Weights) -> Stack:
        padded = np.pad(weights, ((0, 0), (0, len(self.cells) - weights.shape[1])))
        total = self._between(padded)
        for blocks in (self.x_blocks, self.z_blocks):
            held = np.ascontiguousarray(padded[:, blocks.places].swapaxes(0, 1))
            total += np.einsum("bds,bds->d", held @ blocks.inverted, held, dtype=np.float64)
        return total

    def _between(self, padded: Weights) -> Stack:
        """Return the inversions of places that share no block."""
        table = self._table(padded)
        total: Stack = np.einsum("dxz,dxz->d", table, _before_and_above(table), dtype=np.float64)
        return total

    def _table(self, padded: Weights) -> Weights:
        """Return draws x blocks by x x blocks by z: the weight of the places in both."""
        blocks = len(self.x_blocks.places)
        table = np.empty((len(padded), blocks * blocks), dtype=np.float32)
        for k, row in enumerate(padded):
            table[k] = np.bincount(self.cells, row, minlength=blocks * blocks)
        return table.reshape(-1, blocks, blocks)

    def _touching(self) -> FloatVector:
        """Return how many inversions each place has a part in, in the order of x."""
        ones = np.zeros((1, len(self.cells)), dtype=np.float32)
        ones[:, : len(self)] = 1
        table = self._table(ones)
        turned = np.flip(table, axis=(1, 2))
        coarse = _before_and_above(table) + np.flip(_before_and_above(turned), axis=(1, 2))
        touching = coarse.ravel()[self.cells].astype(np.float64)
        for blocks in (self.x_blocks, self.z_blocks):
            ends = blocks.inverted.sum(axis=1) + blocks.inverted.sum(axis=2)
            touching[blocks.places] += ends
        result: FloatVector = touching[: len(self)]
        return result


def _blocks(by_z: Numbers) -> tuple[_Blocks, _Blocks, Numbers]:
    """Return the blocks of neighbours in x and in z, and the cell of each position; `by_z` is the order of z."""
    count = len(by_z)
    size = 1 << max(3, round(np.log2(max(count, 1)) / 2))
    # Positions that fill the last block stand in the right order, behind all others.
    whole = -(-count // size) * size
    by_z = np.concatenate([by_z, np.arange(count, whole)])
    rank = np.empty(whole, dtype=np.int32)
    rank[by_z] = np.arange(whole)
    standing = by_z.astype(np.int32).reshape(-1, size)
    upper = np.triu(np.ones((size, size), dtype=np.bool_), 1)
    block = standing // size
    apart = upper & (block[:, :, None] != block[:, None, :])
    return (
        _Blocks(np.arange(whole).reshape(-1, size), _inverted(rank.reshape(-1, size), upper)),
        _Blocks(by_z.reshape(-1, size), _inverted(standing, apart)),
        np.arange(whole) // size * (whole // size) + rank // size,
    )


def _inverted(values: NDArray[np.int32], among: NDArray[np.bool_]) -> Weights:
    found: Weights = ((values[:, :, None] > values[:, None, :]) & among).astype(np.float32)
    return found


def _before_and_above(table: Weights) -> Weights:
    """Return the sum of each table over rows before and columns after, both exclusive."""
    before = np.cumsum(table, axis=1) - table
    above: Weights = np.flip(np.cumsum(np.flip(before, axis=2), axis=2), axis=2) - before
    return above
