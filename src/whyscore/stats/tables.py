"""What swapping makes of tau, without looking at every pair again for every swap.

A pair of places has only four values, as each side comes from X or from Y. So with s in {0, 1} per place (1: swapped)
the sum over pairs of any function of the two signs is c + l.s + s'Ms/2: a matrix product for all swaps at once.
In long vectors that is too much: there the values of X and of Y are sorted together, once, and a swap chooses half of
them (see `long_pairs`).
"""

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from whyscore.stats.coefficients import LONG, Coefficient, from_pairs, kendall_b
from whyscore.stats.correlation import averaged
from whyscore.stats.long_pairs import MOST, Places
from whyscore.stats.matrices import Level
from whyscore.stats.swaps import Swaps
from whyscore.types import FloatMatrix, FloatVector

TABLED: tuple[Coefficient, ...] = ("kendall_b", "tau_23", "acc_23")
"""The coefficients that are functions of sums over pairs."""

Scalar = TypeVar("Scalar", np.float64, np.bool_)


def table_deltas(
    matrices: tuple[FloatMatrix, FloatMatrix, FloatMatrix],
    swaps: Swaps,
    level: Level,
    coefficient: Coefficient,
    *,
    memory: int,
) -> FloatVector:
    """Return r(X, Z) - r(Y, Z) of X, Y and Z after every swap, at a level whose vectors are cells."""
    first, second, human = (_grouped(one, level) for one in matrices)
    chosen = _grouped(swaps, level)
    if LONG <= human.shape[1] <= MOST:
        return _long_deltas((first, second, human), chosen, coefficient)
    cells = memory // 64
    there = (~np.isnan(human)).sum(axis=1)
    pairs: FloatVector = there * (there - 1) / 2
    if coefficient != "kendall_b":
        # tau_23 and acc_23 differ by a factor of two: of both, agreement counts.
        agreed = swapped_totals(first, second, human, chosen, _agreement, cells=cells)
        bottom = pairs / (2 if coefficient == "tau_23" else 1)
        share = [np.divide(one, bottom, out=np.full(one.shape, np.nan), where=bottom > 0) for one in agreed]
        return averaged(share[0]) - averaged(share[1])
    surplus = swapped_totals(first, second, human, chosen, _surplus, cells=cells)
    if _all_differ(first, second):
        untied = (pairs, pairs)
    else:
        untied = swapped_totals(first, second, human, chosen, _untied, cells=cells)
    moved = np.array([_untied_pairs(one) for one in human])
    taus = [kendall_b(top, free, moved) for top, free in zip(surplus, untied, strict=True)]
    return averaged(taus[0]) - averaged(taus[1])


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
    return averaged(values[0]) - averaged(values[1])


def _grouped(matrix: NDArray[Scalar], level: Level) -> NDArray[Scalar]:
    """Return systems x segments as groups x places: the vectors that a level compares."""
    if level == "segment":
        return np.swapaxes(matrix, -1, -2)
    if level == "global":
        return matrix.reshape(*matrix.shape[:-2], 1, -1)
    return matrix


def _untied_pairs(values: FloatVector) -> float:
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


def _untied(metric: Signs, human: Signs, there: NDArray[np.bool_]) -> Signs:  # noqa: ARG001 - ties of the metric alone
    return np.abs(metric)


def _agreement(metric: Signs, human: Signs, there: NDArray[np.bool_]) -> Signs:
    agreed: NDArray[np.bool_] = (metric == human) & there
    return agreed.astype(np.int8)


def swapped_totals(
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
        own, crossed, turned, other = _tables(x, y, z, part, entry)
        form = (own - crossed - turned + other).astype(np.float32)
        lines = [(away - base).sum(axis=2, dtype=np.float64) for base, away in ((own, turned), (other, crossed))]
        constants = [base.sum(axis=(1, 2), dtype=np.float64)[:, None] / 2 for base in (own, other)]
        for first in range(0, len(swaps), size):
            batch = slice(first, first + size)
            chosen = np.ascontiguousarray(np.moveaxis(swaps[batch], 0, 1), dtype=np.float32)
            mine = chosen[:, :, part]
            # A product of float32 is exact: its entries are small whole numbers.
            square = np.einsum("grp,grp->gr", mine, chosen @ form.swapaxes(1, 2), dtype=np.float64) / 2
            for k in range(2):
                totals[k, :, batch] += constants[k] + np.einsum("grp,gp->gr", mine, lines[k]) + square
    return totals[0].T, totals[1].T


def _tables(
    x: FloatMatrix, y: FloatMatrix, z: FloatMatrix, part: slice, entry: Entry
) -> tuple[Signs, Signs, Signs, Signs]:
    """Return what pairs of some places with all others add: both from X, X then Y, Y then X, both from Y."""
    human = _compared(z, z, part)
    missing = np.isnan(z)
    there = ~(missing[:, part, None] | missing[:, None, :])
    places = np.arange(part.start, part.stop)

    def table(a: FloatMatrix, b: FloatMatrix) -> Signs:
        values = entry(_compared(a, b, part), human, there)
        values[:, places - part.start, places] = 0
        return values

    return table(x, x), table(x, y), table(y, x), table(y, y)


def _compared(a: FloatMatrix, b: FloatMatrix, part: slice) -> Signs:
    left, right = a[:, part, None], b[:, None, :]
    return (left > right).view(np.int8) - (left < right).view(np.int8)
