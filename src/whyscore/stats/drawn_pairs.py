"""Accuracies over pairs of systems, on bootstrap draws of systems and segments.

1. A system that was drawn several times is no pair with itself: two equal texts are no evidence that a metric is right
   about anything. So a pair of different systems counts as often as the one was drawn times the other, and what is
   compared is computed once for the pairs there are.
2. `acc_eq`: the pairs are sorted by distance once; on every draw epsilon is chosen anew, as it is for the value.
3. `spa`: the p-values of every pair are computed on the drawn segments, with 1000 rows of signs.
4. `pdp`, `kendall_like`: sums over pairs and segments, a matrix product for all draws at once.
5. `pairwise_accuracy`: the means of the drawn segments.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whyscore.stats.agreement import CLEAR, grouped, pair_table, pairs_of, right
from whyscore.stats.coefficients import Stack
from whyscore.stats.draws import Drawing, Drawn, draw_blocks
from whyscore.stats.matrices import TIE_TOLERANCE, Level, tie
from whyscore.stats.spa import preference, preferences, sign_rows
from whyscore.types import FloatMatrix, FloatVector

PAIRED = ("acc_eq", "pairwise_accuracy", "spa", "pdp", "kendall_like")
"""The measures whose draws are made here."""

MOST = 1_000_000_000
"""Pairs times draws up to which epsilon is chosen on every draw."""

_SIGNS = 1000  # of a p-value on one draw
_HELD = 4_000_000  # signs x pairs x draws compared at a time


class _Both(NamedTuple):
    """A metric's and people's scores, and every pair i < j of systems."""

    x: FloatMatrix
    z: FloatMatrix
    i: NDArray[np.int64]
    j: NDArray[np.int64]

    @classmethod
    def of(cls, x: FloatMatrix, z: FloatMatrix) -> "_Both":
        return cls(x, z, *np.triu_indices(len(x), 1))

    def counts(self, drawn: Drawn) -> FloatMatrix:
        """Return how often each pair counts, draws x pairs."""
        own = drawn.row_counts(len(self.x))
        return own[:, self.i] * own[:, self.j]


Measured = Callable[[Drawn], FloatVector]


def drawn_pair_values(x: FloatMatrix, z: FloatMatrix, level: Level, measure: str, drawing: Drawing) -> FloatVector:
    """Return a measure of pairs for every draw of two matrices; NaN where a draw has no pair."""
    both = _Both.of(x, z)
    pairs = len(both.i) * max(1, x.shape[1])
    if measure == "acc_eq":
        measured, pairs = _tied_accuracy(both, level, drawing)
    elif measure == "spa":
        measured = _soft_accuracy(both, drawing)
    elif measure == "pairwise_accuracy":
        measured = _pairwise(both, drawing.tie_tolerance)
    else:
        measured = _differences(both) if measure == "pdp" else _clear_preferences(both)
    found = [measured(drawn) for drawn in draw_blocks(x.shape, drawing, max(64 * x.size, 32 * pairs))]
    return np.concatenate(found)


def too_many(x: FloatMatrix, level: Level, measure: str, n: int) -> bool:
    """Return whether a measure has too many pairs for so many draws."""
    if measure != "acc_eq" or level == "system":
        return False
    rows, columns = len(x), int(x.shape[1])
    sizes = {"global": (1, rows * columns), "within_system": (rows, columns), "segment": (columns, rows)}
    groups, places = sizes[level]
    return groups * places * (places - 1) // 2 * n > MOST


def _differences(both: _Both) -> Measured:
    dx, dz = both.x[both.i] - both.x[both.j], both.z[both.i] - both.z[both.j]
    there = ~np.isnan(dx + dz)
    dx, dz = np.where(there, dx, 0.0), np.where(there, dz, 0.0)

    def measured(drawn: Drawn) -> FloatVector:
        top, own, other = (_weighed(both, drawn, table) for table in (dx * dz, dx * dx, dz * dz))
        return _ratio(top, np.sqrt(own * other))

    return measured


def _clear_preferences(both: _Both) -> Measured:
    human, metric = both.z[both.i] - both.z[both.j], both.x[both.i] - both.x[both.j]
    clear = (np.abs(human) >= CLEAR) & ~np.isnan(metric)
    agreeing = clear & (human * metric > 0)

    def measured(drawn: Drawn) -> FloatVector:
        agreed, count = (_weighed(both, drawn, table.astype(np.float64)) for table in (agreeing, clear))
        return _ratio(2 * agreed - count, count)

    return measured


def _weighed(both: _Both, drawn: Drawn, table: FloatMatrix) -> FloatVector:
    """Return the sum of pairs x segments, each as often as it was drawn."""
    total: FloatVector = np.einsum("dk,dk->d", both.counts(drawn) @ table, drawn.column_counts(table.shape[1]))
    return total


def _means(matrix: FloatMatrix, drawn: Drawn, tolerance: float) -> FloatMatrix:
    """Return draws x systems: the means over drawn segments, near ones tied."""
    there = ~np.isnan(matrix)
    counts = drawn.column_counts(matrix.shape[1])
    return tie(_ratio(counts @ np.where(there, matrix, 0.0).T, counts @ there.T.astype(np.float64)), tolerance)


def _pairwise(both: _Both, tolerance: float) -> Measured:
    def measured(drawn: Drawn) -> FloatVector:
        means = (_means(one, drawn, tolerance) for one in (both.x, both.z))
        signs = [np.sign(one[:, both.i] - one[:, both.j]) for one in means]
        counts = both.counts(drawn) * ~np.isnan(signs[0] + signs[1])
        return _ratio((counts * (signs[0] == signs[1])).sum(axis=1), counts.sum(axis=1))

    return measured


def _soft_accuracy(both: _Both, drawing: Drawing) -> Measured:
    columns = both.x.shape[1]
    signs = sign_rows(_SIGNS, columns, drawing.seed)

    whole = not np.isnan(both.x + both.z).any()
    block = max(1, _HELD // (_SIGNS * max(len(both.i), 1)))

    def p_values(matrix: FloatMatrix, picked: NDArray[np.int64]) -> FloatMatrix:
        if whole:
            return preferences(np.moveaxis(matrix[:, picked], 0, 1), signs)
        return np.stack([preference(matrix[:, one], signs=signs)[both.i, both.j] for one in picked])

    def measured(drawn: Drawn) -> FloatVector:
        picked = np.arange(columns)[None, :] if drawn.columns is None else drawn.columns
        parts = [picked[start : start + block] for start in range(0, len(picked), block)]
        found = np.concatenate([np.abs(p_values(both.z, part) - p_values(both.x, part)) for part in parts])
        off = np.broadcast_to(found, (len(drawn), len(both.i)))
        counts = both.counts(drawn) * ~np.isnan(off)
        return 1 - _ratio((counts * np.nan_to_num(off)).sum(axis=1), counts.sum(axis=1))

    return measured


def _tied_accuracy(both: _Both, level: Level, drawing: Drawing) -> tuple[Measured, int]:
    """Return the accuracy with the best epsilon of each draw (or the given one), and the number of pairs."""
    if level == "system":
        return _tied_means(both, drawing), len(both.i)
    pairs = pair_table(grouped(both.x, level), grouped(both.z, level))
    order = np.argsort(pairs.distance, kind="stable")
    distance, concordant, group = pairs.distance[order], pairs.concordant[order], pairs.group[order]
    first, second = (one[order] for one in pairs_of(grouped(both.x, level), grouped(both.z, level)))
    ends = np.append(distance[1:] != distance[:-1], np.True_)[: len(distance)]
    change = pairs.tied[order].astype(np.float64) - concordant
    given = None if drawing.epsilon is None else right(pairs, drawing.epsilon)[order]
    rows, columns = both.x.shape

    def measured(drawn: Drawn) -> FloatVector:
        places, groups = _drawn_places(drawn, level, rows, columns)
        counts = places[:, first] * places[:, second]
        totals = np.stack([np.bincount(group, one, minlength=groups.shape[1]) for one in counts])
        share = _ratio(groups, totals * (groups * (totals > 0)).sum(axis=1, keepdims=True))
        weight = counts * np.nan_to_num(share)[:, group]
        if given is not None:
            return np.where(totals.sum(axis=1) > 0, weight @ given, np.nan)
        values = np.cumsum(weight * change, axis=1)[:, ends]
        if not len(distance) or distance[0] > 0:
            values = np.pad(values, ((0, 0), (1, 0)))
        return np.where(totals.sum(axis=1) > 0, weight @ concordant + values.max(axis=1), np.nan)

    return measured, len(distance)


def _drawn_places(drawn: Drawn, level: Level, rows: int, columns: int) -> tuple[FloatMatrix, FloatMatrix]:
    """Return how often each place within a group counts, and each group."""
    own, other = drawn.row_counts(rows), drawn.column_counts(columns)
    if level == "segment":
        return own, other
    if level == "within_system":
        return other, own
    return (own[:, :, None] * other[:, None, :]).reshape(len(drawn), -1), np.ones((len(drawn), 1))


def _tied_means(both: _Both, drawing: Drawing) -> Measured:
    def measured(drawn: Drawn) -> FloatVector:
        # As `acc_eq` has it, the tolerance of means is not to be chosen here.
        means = (_means(one, drawn, TIE_TOLERANCE) for one in (both.x, both.z))
        dx, dz = (one[:, both.i] - one[:, both.j] for one in means)
        counts = both.counts(drawn) * ~np.isnan(dx + dz)
        distance = np.where(counts > 0, np.abs(dx), np.inf)
        concordant, tied = np.sign(dx) * np.sign(dz) > 0, dz == 0
        if drawing.epsilon is not None:
            agreed = np.where(distance <= drawing.epsilon, tied, concordant)
            return _ratio((counts * agreed).sum(axis=1), counts.sum(axis=1))
        order = np.argsort(distance, axis=1, kind="stable")
        ordered = np.take_along_axis(distance, order, axis=1)
        change = np.take_along_axis(counts * (tied.astype(np.float64) - concordant), order, axis=1)
        ends = np.pad(ordered[:, 1:] != ordered[:, :-1], ((0, 0), (0, 1)), constant_values=True)
        values = np.where(ends, np.cumsum(change, axis=1), -np.inf)
        # Without a distance of 0, an epsilon of 0 ties nothing.
        best = np.maximum(values.max(axis=1, initial=-np.inf), np.where((ordered == 0).any(axis=1), -np.inf, 0.0))
        return _ratio((counts * concordant).sum(axis=1) + best, counts.sum(axis=1))

    return measured


def _ratio(top: Stack, bottom: Stack) -> Stack:
    found: Stack = np.divide(top, bottom, out=np.full(np.shape(bottom), np.nan), where=bottom > 0)
    return found
