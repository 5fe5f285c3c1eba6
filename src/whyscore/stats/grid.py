"""Many versions of a score against the same human scores: a whole grid of settings in one call.

1. `Target` looks at the human scores once: which entries count, which of them stand together (the systems of a segment,
   the segments of a system), their ranks and their ties.
2. `project` brings scores to the level: entries themselves, or system means. It is linear, so that a mixture
   w a + (1 - w) b can be mixed after the projection, when there are 16 means left of 1600 entries.
3. `correlate` gives every row of projected scores its coefficients. Rows are sorted once for Spearman and Kendall;
   concordant pairs are counted by comparing whole-number ranks with all pairs of the human order at once.

Means are tied where they differ by rounding alone (`whyscore.stats.matrices.tie`). Undefined coefficients are NaN; in
averages over segments or systems they are left out.

Ranks of many rows at once, and Kendall's tau b of every row against one vector.

1. Each row is sorted once. Its ranks are kept twice: averaged over ties for Spearman, and as small whole numbers.
2. Ties are counted in the sorted ranks.
3. Concordant pairs: the ranks, in the order of the human scores, are compared with each other all at once, a stripe of
   pairs at a time; pairs that are tied for people are masked out. Discordant pairs are what is left.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whyscore.errors import DataError
from whyscore.stats.coefficients import Coefficient, coefficient_of, kendall_b, kernel, pearson
from whyscore.stats.matrices import TIE_TOLERANCE, Level, divide, level_of, tie
from whyscore.types import FloatMatrix, FloatVector, IntVector

_FEW = 48  # up to here all pairs are held at once
_STRIPES = 4


class Ranked(NamedTuple):
    """Ranks along the last axis."""

    average: NDArray[np.float64]
    least: NDArray[np.int16]
    """From 0; tied values share the least of their ranks."""


def rank_rows(values: NDArray[np.float64]) -> Ranked:
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


def kendall_rows(least: NDArray[np.int16], human: FloatVector) -> FloatVector:
    """Return tau b of every row of least ranks: concordant pairs by comparison, ties by counting."""
    count, length = least.shape
    human_ranks = rank_rows(human[None]).least[0]
    order = np.argsort(human_ranks, kind="stable")
    # take, not [:, order], which lays the rows out across the memory
    ranks, human_ranks = np.take(least, order, axis=1), human_ranks[order].astype(np.int64)
    all_pairs = length * (length - 1) / 2
    tied_human = _count_tied_pairs(human_ranks[None], length)[0]
    tied = _count_tied_pairs(ranks, length)
    both = _count_tied_pairs(ranks.astype(np.int64) * length + human_ranks, length) if tied_human else np.zeros(count)
    concordant = _count_concordant(ranks, human_ranks)
    untied = all_pairs - tied_human - (tied - both)
    surplus = 2 * concordant - untied
    return kendall_b(surplus, all_pairs - tied, np.full(count, all_pairs - tied_human))


def _count_tied_pairs(ranks: NDArray[np.int64] | NDArray[np.int16], length: int) -> FloatVector:
    """Return how many pairs of each row are equal."""
    ordered = np.sort(ranks, axis=-1)
    same = ordered[:, 1:] == ordered[:, :-1]
    result = np.zeros(len(ranks))
    for row in np.flatnonzero(same.any(axis=1)):
        edges = np.flatnonzero(np.concatenate([[True], ~same[row], [True]]))
        sizes = np.diff(edges) if length else edges
        result[row] = float((sizes * (sizes - 1) // 2).sum())
    return result


def _count_concordant(ranks: NDArray[np.int16], human_ranks: IntVector) -> FloatVector:
    """Return how many pairs of each row rise with the human ranks, which rise from left to right."""
    length = ranks.shape[1]
    if length <= _FEW:
        first, second = np.nonzero(human_ranks[:, None] < human_ranks[None, :])
        concordant: FloatVector = (ranks[:, first] < ranks[:, second]).sum(axis=1).astype(np.float64)
        return concordant
    edges = np.linspace(0, length, _STRIPES + 1).astype(int).tolist()
    stripes = [(start, end, human_ranks[start:end, None] < human_ranks[None, start:]) for start, end in pairwise(edges)]
    buffers = [np.empty(later.shape, dtype=np.bool_) for *_, later in stripes]
    result = np.zeros(len(ranks))
    for number, row in enumerate(ranks):
        total = 0
        for (start, end, later), buffer in zip(stripes, buffers, strict=True):
            np.less(row[start:end, None], row[None, start:], out=buffer)
            np.logical_and(buffer, later, out=buffer)
            total += int(np.count_nonzero(buffer))
        result[number] = total
    return result


_MANY = 4096  # from here on rows are counted one by one in O(n log n)
_CELLS = 4_000_000  # numbers held in memory at a time
_FLAT = 1e-13  # relative spread below which a vector is constant but for rounding


class _Block(NamedTuple):
    """Entries that are correlated together, all groups of one size: groups x places."""

    places: IntVector
    human: FloatMatrix


@dataclass(frozen=True, eq=False)
class Target:
    """Human scores made ready for one level and some coefficients."""

    coefficients: tuple[Coefficient, ...]
    entries: IntVector
    """Which of the given entries count."""
    means: FloatMatrix | None
    """At the level system: entries x systems, the weight of each entry in its system's mean."""
    blocks: tuple[_Block, ...]

    @classmethod
    def of(
        cls,
        human: FloatVector,
        *,
        coefficients: Sequence[str] = ("pearson",),
        level: str = "global",
        systems: IntVector | None = None,
        segments: IntVector | None = None,
        valid: NDArray[np.bool_] | None = None,
    ) -> "Target":
        """Return the human scores, prepared.

        Args:
            human: one number per entry, NaN where nobody judged.
            coefficients: pearson, spearman, kendall ...
            level: system, segment, global or within_system.
            systems: the number of each entry's system, for all levels but global.
            segments: the number of each entry's segment, for the level segment.
            valid: which entries have a score; all if None.
        """
        mask = ~np.isnan(human) if valid is None else valid & ~np.isnan(human)
        entries = np.flatnonzero(mask)
        requested = tuple(coefficient_of(name) for name in coefficients)
        at: Level = level_of(level)
        values = human[entries]
        if at == "global":
            return cls(requested, entries, None, (_Block(np.arange(len(entries))[None], values[None]),))
        if systems is None or (at == "segment" and segments is None):
            raise DataError(f"the level {at} needs to know the system and the segment of every score")
        if at == "system":
            weights = _mean_weights(systems[entries])
            human_means = tie(values @ weights, TIE_TOLERANCE)
            block = _Block(np.arange(weights.shape[1])[None], human_means[None])
            return cls(requested, entries, weights, (block,))
        by = segments if at == "segment" and segments is not None else systems
        return cls(requested, entries, None, tuple(_group_cells(by[entries], values)))

    def project(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return scores (... x entries) at the level: (... x systems) or (... x entries that count)."""
        values = scores[..., self.entries]
        means: NDArray[np.float64] = values if self.means is None else values @ self.means
        return means

    def correlate(self, projected: FloatMatrix) -> FloatMatrix:
        """Return the coefficients (rows) of every row of projected scores (columns)."""
        size = max(1, _CELLS // max(1, projected.shape[1]))
        parts = [self._correlate(projected[start : start + size]) for start in range(0, len(projected), size)]
        return np.concatenate(parts, axis=1) if parts else np.empty((len(self.coefficients), 0))

    def mix(self, whole: FloatVector, others: FloatMatrix, weights: FloatVector) -> NDArray[np.float64]:
        """Return coefficients x others x weights: how each mixture weight * whole + (1 - weight) * other agrees.

        All are projected already. Pearson's coefficient of a mixture follows from the covariances of its parts.
        """
        result = np.empty((len(self.coefficients), len(others), len(weights)))
        slow = [k for k, name in enumerate(self.coefficients) if name != "pearson" or not self._whole]
        if len(slow) < len(self.coefficients):
            result[self.coefficients.index("pearson")] = _mix_pearson(whole, others, weights, self.blocks[0].human[0])
        if slow:
            inner = replace(self, coefficients=tuple(self.coefficients[k] for k in slow))
            rows = weights[None, :, None] * whole + (1 - weights)[None, :, None] * others[:, None, :]
            values = inner.correlate(rows.reshape(-1, rows.shape[-1]))
            result[slow] = values.reshape(len(slow), len(others), len(weights))
        return result

    @property
    def _whole(self) -> bool:
        """Whether all places are correlated together, not in groups."""
        return len(self.blocks) == 1 and len(self.blocks[0].places) == 1

    def _correlate(self, rows: FloatMatrix) -> FloatMatrix:
        if self.means is not None:
            rows = tie(rows, TIE_TOLERANCE)
        sums = np.zeros((len(self.coefficients), len(rows)))
        counts = np.zeros_like(sums)
        for block in self.blocks:
            stacked = _correlate_groups(rows[:, block.places], block.human, self.coefficients)
            defined = ~np.isnan(stacked)
            sums += np.where(defined, stacked, 0.0).sum(axis=2)
            counts += defined.sum(axis=2)
        return divide(sums, counts)


def grid_correlations(
    scores: FloatMatrix,
    human: FloatVector,
    *,
    coefficients: Sequence[str] = ("pearson",),
    level: str = "global",
    systems: IntVector | None = None,
    segments: IntVector | None = None,
) -> FloatMatrix:
    """Return coefficients x versions: how each row of scores agrees with the human scores.

    >>> grid_correlations(np.array([[1.0, 2.0, 4.0], [3.0, 2.0, 1.0]]), np.array([1.0, 2.0, 3.0])).round(3).tolist()
    [[0.982, -1.0]]
    """
    valid = np.asarray(~np.isnan(scores).any(axis=0), dtype=np.bool_)
    target = Target.of(human, coefficients=coefficients, level=level, systems=systems, segments=segments, valid=valid)
    return target.correlate(target.project(scores))


def _mix_pearson(
    whole: FloatVector, others: FloatMatrix, weights: FloatVector, human: FloatVector
) -> NDArray[np.float64]:
    """Return others x weights: Pearson's correlation of each mixture with the human scores."""
    count = len(human)
    if count < 2:  # noqa: PLR2004 - no line through one point
        return np.full((len(others), len(weights)), np.nan)
    h, a = human - human.mean(), whole - whole.mean()
    means = others.mean(axis=1)
    b = others - means[:, None]
    u, v = weights[None, :], 1 - weights[None, :]
    top = u * (a @ h) + v * (b @ h)[:, None]
    spread = u * u * (a @ a) + 2 * u * v * (b @ a)[:, None] + v * v * np.einsum("ij,ij->i", b, b)[:, None]
    size = spread + count * (u * whole.mean() + v * means[:, None]) ** 2
    steady = (spread > _FLAT**2 * size) & (h @ h > _FLAT**2 * (human @ human))
    bottom = np.sqrt(np.maximum(spread, 0.0) * (h @ h))
    correlations: NDArray[np.float64] = np.divide(top, bottom, out=np.full(top.shape, np.nan), where=steady)
    return correlations.clip(-1.0, 1.0)


def _mean_weights(systems: IntVector) -> FloatMatrix:
    names, numbers = np.unique(systems, return_inverse=True)
    weights = np.zeros((len(systems), len(names)))
    weights[np.arange(len(systems)), numbers] = 1.0
    shares: FloatMatrix = weights / np.maximum(weights.sum(axis=0), 1)
    return shares


def _group_cells(by: IntVector, human: FloatVector) -> list[_Block]:
    """Return the groups of two and more entries, those of one size together."""
    order = np.argsort(by, kind="stable")
    sizes = np.unique(by, return_counts=True)[1]
    starts = np.concatenate([[0], np.cumsum(sizes)])[:-1]
    blocks = []
    for size in np.unique(sizes[sizes > 1]):
        places = order[starts[sizes == size][:, None] + np.arange(size)]
        blocks.append(_Block(places, human[places]))
    return blocks


def _correlate_groups(
    scores: NDArray[np.float64], human: FloatMatrix, coefficients: Sequence[Coefficient]
) -> NDArray[np.float64]:
    """Return coefficients x versions x groups, from versions x groups x places."""
    sortable = human.shape[1] <= _MANY
    ranked = rank_rows(scores) if sortable and {"spearman", "kendall_b"} & set(coefficients) else None
    values = []
    for coefficient in coefficients:
        if coefficient == "spearman" and ranked is not None:
            values.append(pearson(ranked.average, rank_rows(human).average[None]))
        elif coefficient == "kendall_b" and ranked is not None:
            taus = [kendall_rows(ranked.least[:, k], row) for k, row in enumerate(human)]
            values.append(np.stack(taus, axis=1))
        else:
            values.append(kernel(coefficient)(scores, human[None]))
    return np.stack(values)
