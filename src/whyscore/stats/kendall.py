"""Tau after swaps, without comparing every pair again for every swap.

A pair of places has only four values, as each side comes from X or from Y. So with s in {0, 1} per place (1: swapped)
the sum over pairs of any function of the two signs is c + l.s + s'Ms/2: a matrix product for all swaps at once.
In long vectors that is too much: there the values of X and of Y are sorted together, once, and a swap chooses half of
them (see `Places`).

`Places`: kinds of pairs in long vectors, for many ways to weigh the same places at once.

The bootstrap draws places several times, a swap of two metrics takes one of two values at each place: either way the
values stay and only the weight of each place (how often it counts) changes. So the places are sorted once.

1. Places stand in the order of x, then of z. A pair is discordant where z stands in the wrong order: an inversion.
2. Inversions are counted in blocks of about sqrt(n) places. Within a block of neighbours in x, and within a block of
   neighbours in z, all pairs are compared: one matrix product for all weights. Of two places that share no block, the
   blocks decide: running sums over a table of blocks x blocks.
3. Ties are sums of weights over runs of equal values.

Weights are whole numbers and all sums are exact, so that the results are those of counting each pair.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whyscore.stats.coefficients import LONG, Coefficient, Pairs, Stack, from_pairs, kendall_b
from whyscore.stats.correlation import mean_of_defined
from whyscore.stats.matrices import Level, Swaps, divide, group_cells
from whyscore.types import FloatMatrix, FloatVector, IntVector

Weights = NDArray[np.float32]
"""Draws x places: how often each place counts. Whole numbers, so that sums are exact up to 2^24."""

MOST = 200_000
"""Places up to which the tables of a long vector are held."""

_HELD = 500_000  # weights processed together: what fits a cache


class _Blocks(NamedTuple):
    """Which pairs within a block are inversions (blocks x size x size), and where the block's places stand."""

    places: IntVector
    inverted: Weights


class _Runs(NamedTuple):
    """Runs of equal values: the places that stand alone, and those of longer runs with where each run begins."""

    alone: FloatVector
    places: IntVector
    starts: IntVector

    @classmethod
    def of(cls, new: NDArray[np.bool_], order: IntVector) -> "_Runs":
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
    """Places of two vectors, sorted once; weights are read in the order of x, then of z."""

    order: IntVector
    x_runs: _Runs
    z_runs: _Runs
    both_runs: _Runs
    x_blocks: _Blocks
    z_blocks: _Blocks
    cells: IntVector
    """Of each position, its block by x and its block by z, as one number."""

    @classmethod
    def of(cls, x: FloatVector, z: FloatVector) -> "Places":
        """Return the places of two vectors without gaps."""
        order = np.lexsort((z, x))
        first, second = x[order], z[order]
        by_z = np.argsort(second, kind="stable")
        new_x, new_z = first[1:] != first[:-1], second[1:] != second[:-1]
        positions = np.arange(len(order))
        runs = (
            _Runs.of(new_x, positions),
            _Runs.of(np.diff(second[by_z]) != 0, by_z),
            _Runs.of(new_x | new_z, positions),
        )
        return cls(order, *runs, *_blocks(by_z))

    def __len__(self) -> int:
        return len(self.order)

    def pairs(self, weights: NDArray[np.generic]) -> Pairs:
        """Return the kinds of pairs for each row of weights (draws x places)."""
        return self._in_parts(weights, lambda part: (self._kinds(part, self._inversions(part)),))[0]

    def halves(self, mask: NDArray[np.bool_]) -> tuple[Pairs, Pairs]:
        """Return the kinds of pairs among the places in the mask of each row, and among the others."""
        if not len(self):
            return self.pairs(mask), self.pairs(mask)
        touching = self._touching()
        whole = float(touching.sum()) / 2

        def both(inside: Weights) -> tuple[Pairs, Pairs]:
            inverted = self._inversions(inside)
            # All inversions, less those that touch the mask; those with both ends in it were subtracted twice.
            rest = whole - np.einsum("dp,p->d", inside, touching, dtype=np.float64) + inverted
            return self._kinds(inside, inverted), self._kinds(1 - inside, rest)

        inside, outside = self._in_parts(mask, both)
        return inside, outside

    def _in_parts(
        self, weights: NDArray[np.generic], count: Callable[[Weights], tuple[Pairs, ...]]
    ) -> tuple[Pairs, ...]:
        """Return the counts for all rows of weights, computed a few rows at a time."""
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
        total = self._count_between(padded)
        for blocks in (self.x_blocks, self.z_blocks):
            grouped = np.ascontiguousarray(padded[:, blocks.places].swapaxes(0, 1))
            total += np.einsum("bds,bds->d", grouped @ blocks.inverted, grouped, dtype=np.float64)
        return total

    def _count_between(self, padded: Weights) -> Stack:
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


def _blocks(by_z: IntVector) -> tuple[_Blocks, _Blocks, IntVector]:
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
        _Blocks(np.arange(whole).reshape(-1, size), _invert(rank.reshape(-1, size), upper)),
        _Blocks(by_z.reshape(-1, size), _invert(standing, apart)),
        np.arange(whole) // size * (whole // size) + rank // size,
    )


def _invert(values: NDArray[np.int32], among: NDArray[np.bool_]) -> Weights:
    inverted: Weights = ((values[:, :, None] > values[:, None, :]) & among).astype(np.float32)
    return inverted


def _before_and_above(table: Weights) -> Weights:
    """Return the sum of each table over rows before and columns after, both exclusive."""
    before = np.cumsum(table, axis=1) - table
    above: Weights = np.flip(np.cumsum(np.flip(before, axis=2), axis=2), axis=2) - before
    return above


TABLED: tuple[Coefficient, ...] = ("kendall_b", "tau_23", "acc_23")
"""The coefficients that are functions of sums over pairs."""


def table_deltas(
    matrices: tuple[FloatMatrix, FloatMatrix, FloatMatrix],
    swaps: Swaps,
    level: Level,
    coefficient: Coefficient,
    *,
    memory: int,
) -> FloatVector:
    """Return r(X, Z) - r(Y, Z) of X, Y and Z after every swap, at a level whose vectors are cells."""
    first, second, human = (group_cells(matrix, level) for matrix in matrices)
    swapped = group_cells(swaps, level)
    if LONG <= human.shape[1] <= MOST:
        return _long_deltas((first, second, human), swapped, coefficient)
    cells = memory // 64
    there = (~np.isnan(human)).sum(axis=1)
    pairs: FloatVector = there * (there - 1) / 2
    if coefficient != "kendall_b":
        # tau_23 and acc_23 differ by a factor of two: of both, agreement counts.
        agreed = sum_swapped_pairs(first, second, human, swapped, _agreement, cells=cells)
        bottom = pairs / (2 if coefficient == "tau_23" else 1)
        return mean_of_defined(divide(agreed[0], bottom)) - mean_of_defined(divide(agreed[1], bottom))
    surplus = sum_swapped_pairs(first, second, human, swapped, _surplus, cells=cells)
    if _all_differ(first, second):
        untied = (pairs, pairs)
    else:
        untied = sum_swapped_pairs(first, second, human, swapped, _count_untied, cells=cells)
    moved = np.array([_count_untied_pairs(row) for row in human])
    taus = [kendall_b(top, free, moved) for top, free in zip(surplus, untied, strict=True)]
    return mean_of_defined(taus[0]) - mean_of_defined(taus[1])


def _long_deltas(
    groups: tuple[FloatMatrix, FloatMatrix, FloatMatrix], swaps: Swaps, coefficient: Coefficient
) -> FloatVector:
    """Return the same for groups of many places."""
    values = np.full((2, len(swaps), len(groups[0])), np.nan)
    for k, (x, y, z) in enumerate(zip(*groups, strict=True)):
        there = ~np.isnan(z)
        x, y, z = x[there], y[there], z[there]  # noqa: PLW2901 - the same without gaps
        swapped = swaps[:, k][:, there]
        both = np.concatenate([x, y]), np.concatenate([z, z])
        halves = Places.of(*both).halves(np.concatenate([~swapped, swapped], axis=1))
        for row, pairs in zip(values, halves, strict=True):
            row[:, k] = from_pairs(coefficient, pairs, *both)
    return mean_of_defined(values[0]) - mean_of_defined(values[1])


def _count_untied_pairs(values: FloatVector) -> float:
    _, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    return float(counts.sum() * (counts.sum() - 1) / 2 - (counts * (counts - 1) / 2).sum())


def _all_differ(x: FloatMatrix, y: FloatMatrix) -> bool:
    """Return whether no swap can make a tie: all scores of a group, of both metrics, are different."""
    ordered = np.sort(np.concatenate([x, y], axis=1), axis=1)
    return not bool((ordered[:, 1:] == ordered[:, :-1]).any())


Signs = NDArray[np.int8]
"""Signs of differences between places, 0 where one is missing."""

Entry = Callable[[Signs, Signs, NDArray[np.bool_]], Signs]
"""Signs of the metric and of people, and where both places are there -> what each pair adds."""


def _surplus(metric: Signs, human: Signs, there: NDArray[np.bool_]) -> Signs:  # noqa: ARG001 - missing ones are 0
    product: Signs = metric * human
    return product


def _count_untied(metric: Signs, human: Signs, there: NDArray[np.bool_]) -> Signs:  # noqa: ARG001 - ties of the metric alone
    return np.abs(metric)


def _agreement(metric: Signs, human: Signs, there: NDArray[np.bool_]) -> Signs:
    agreed: NDArray[np.bool_] = (metric == human) & there
    return agreed.astype(np.int8)


def sum_swapped_pairs(
    x: FloatMatrix, y: FloatMatrix, z: FloatMatrix, swaps: Swaps, entry: Entry, *, cells: int
) -> tuple[FloatMatrix, FloatMatrix]:
    """Return the sum of `entry` over pairs within each group, for the swapped X and the swapped Y.

    Args:
        x: groups x places.
        y: groups x places.
        z: groups x places.
        swaps: resamples x groups x places.
        entry: what a pair adds; symmetric in the two places.
        cells: numbers held in memory at a time.
    """
    groups, places = x.shape
    totals = np.zeros((2, groups, len(swaps)))
    size = max(1, cells // (groups * places))
    for start in range(0, places, size):
        part = slice(start, min(start + size, places))
        xx, xy, yx, yy = _tables(x, y, z, part, entry)
        form = (xx - xy - yx + yy).astype(np.float32)
        lines = [(away - base).sum(axis=2, dtype=np.float64) for base, away in ((xx, yx), (yy, xy))]
        constants = [base.sum(axis=(1, 2), dtype=np.float64)[:, None] / 2 for base in (xx, yy)]
        for first in range(0, len(swaps), size):
            batch = slice(first, first + size)
            batch_swaps = np.ascontiguousarray(np.moveaxis(swaps[batch], 0, 1), dtype=np.float32)
            part_swaps = batch_swaps[:, :, part]
            # A product of float32 is exact: its entries are small whole numbers.
            square = np.einsum("grp,grp->gr", part_swaps, batch_swaps @ form.swapaxes(1, 2), dtype=np.float64) / 2
            for k in range(2):
                totals[k, :, batch] += constants[k] + np.einsum("grp,gp->gr", part_swaps, lines[k]) + square
    return totals[0].T, totals[1].T


def _tables(
    x: FloatMatrix, y: FloatMatrix, z: FloatMatrix, part: slice, entry: Entry
) -> tuple[Signs, Signs, Signs, Signs]:
    """Return what pairs of some places with all others add: both from X, X then Y, Y then X, both from Y."""
    human = _compare(z, z, part)
    missing = np.isnan(z)
    there = ~(missing[:, part, None] | missing[:, None, :])
    places = np.arange(part.start, part.stop)

    def table(a: FloatMatrix, b: FloatMatrix) -> Signs:
        values = entry(_compare(a, b, part), human, there)
        values[:, places - part.start, places] = 0
        return values

    return table(x, x), table(x, y), table(y, x), table(y, y)


def _compare(a: FloatMatrix, b: FloatMatrix, part: slice) -> Signs:
    left, right = a[:, part, None], b[:, None, :]
    return (left > right).view(np.int8) - (left < right).view(np.int8)
