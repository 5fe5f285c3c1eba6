"""Bootstrap draws of systems and segments, and what a coefficient is on each of them.

1. Rows are drawn with replacement, then columns; what is not drawn stays whole. Blocks do not change the draws.
2. A drawn matrix is compared like any other. In long vectors (all cells, or a system's many segments) that would sort
   anew for each draw: there, cells are sorted once and only how often each of them counts changes (`kendall.Places`).
3. `acc_23` and `tau_23` count pairs. What was drawn twice is no pair with itself: m copies of a place are m (m - 1) / 2
   pairs tied on both sides, which are taken out of the right ones and out of all. For the other coefficients such
   pairs are ties like any other, which they do not count as right.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np

from whyscore.stats.coefficients import LONG, Coefficient, Stack, from_pairs
from whyscore.stats.correlation import Undefined, mean_of_defined, vector_values
from whyscore.stats.kendall import MOST, TABLED, Places
from whyscore.stats.matrices import TIE_TOLERANCE, Level
from whyscore.stats.resampling import block_sizes
from whyscore.types import FloatMatrix, FloatVector, IntVector

Resample = Literal["systems", "inputs", "both"]

MEMORY = 256_000_000
_ACCURACIES = ("acc_23", "tau_23")


class Drawing(NamedTuple):
    """How draws are made."""

    resample: Resample
    n: int
    seed: int
    memory: int = MEMORY
    undefined: Undefined = "leave_out"
    tie_tolerance: float = TIE_TOLERANCE
    epsilon: float | None = None


class Drawn(NamedTuple):
    """A block of draws: which rows and which columns, None for all of them."""

    rows: IntVector | None
    columns: IntVector | None

    def row_counts(self, rows: int) -> FloatMatrix:
        """Return how often each row was drawn, draws x rows."""
        return _counts(self, self.rows, rows)

    def column_counts(self, columns: int) -> FloatMatrix:
        """Return how often each column was drawn, draws x columns."""
        return _counts(self, self.columns, columns)

    def __len__(self) -> int:
        return len(self.columns if self.rows is None else self.rows)  # type: ignore[arg-type]


def _counts(drawn: Drawn, picked: IntVector | None, size: int) -> FloatMatrix:
    if picked is None:
        return np.ones((len(drawn), size))
    shifted = picked + size * np.arange(len(picked))[:, None]
    return np.bincount(shifted.ravel(), minlength=size * len(picked)).reshape(-1, size).astype(np.float64)


def draw_blocks(shape: tuple[int, ...], drawing: Drawing, held: int | None = None) -> Iterator[Drawn]:
    """Yield the draws in blocks; `held` is the number of bytes that one draw takes."""
    rows, columns = shape
    # Signs of pairs are the largest thing held: half as many as systems, for each cell.
    each = 64 * rows * columns * (1 + min(rows, 256) // 8) if held is None else held
    row_rng, column_rng = (np.random.default_rng([drawing.seed, k]) for k in range(2))
    for size in block_sizes(drawing.n, each, drawing.memory):
        yield Drawn(
            None if drawing.resample == "inputs" else row_rng.integers(0, rows, (size, rows)),
            None if drawing.resample == "systems" else column_rng.integers(0, columns, (size, columns)),
        )


def drawn_values(
    x: FloatMatrix, z: FloatMatrix, level: Level, coefficient: Coefficient, drawing: Drawing
) -> FloatVector:
    """Return the coefficient at a level of every draw of two matrices."""
    length = {"global": x.size, "within_system": x.shape[1]}.get(level, 0)
    if coefficient in TABLED and LONG <= length <= MOST:
        long = _long_global if level == "global" else _long_rows
        return long(x, z, coefficient, drawing)
    found = []
    for drawn in draw_blocks(x.shape, drawing):
        values = vector_values(_take(x, drawn), _take(z, drawn), level, coefficient, drawing.tie_tolerance)
        if coefficient in _ACCURACIES:
            values = _apart(values, coefficient, _choose(_copies(x, z, level, drawn), level, drawn))
        found.append(mean_of_defined(values, drawing.undefined) if level in ("segment", "within_system") else values)
    return np.concatenate(found)


class _Copies(NamedTuple):
    """How many places each vector of each draw has, copies included, and the squares of their counts."""

    places: Stack
    squares: Stack


def _copies(x: FloatMatrix, z: FloatMatrix, level: Level, drawn: Drawn) -> _Copies:
    """Return the copies in every vector: draws, draws x segments or draws x systems."""
    there = [(~np.isnan(one)).astype(np.float64) for one in (x, z)]
    both = there[0] * there[1]
    rows, columns = drawn.row_counts(len(x)), drawn.column_counts(x.shape[1])
    if level == "segment":
        return _Copies(rows @ both, rows**2 @ both)
    if level == "within_system":
        return _Copies(columns @ both.T, columns**2 @ both.T)
    if level == "global":
        return _Copies(((rows @ both) * columns).sum(axis=1), ((rows**2 @ both) * columns**2).sum(axis=1))
    counted = rows * (columns @ there[0].T > 0) * (columns @ there[1].T > 0)
    return _Copies(counted.sum(axis=1), (counted**2).sum(axis=1))


def _choose(copies: _Copies, level: Level, drawn: Drawn) -> _Copies:
    """Return the copies of the vectors in the order they were drawn in."""
    order = {"segment": drawn.columns, "within_system": drawn.rows}.get(level)
    return copies if order is None else _Copies(*(np.take_along_axis(one, order, axis=1) for one in copies))


def _apart(values: Stack, coefficient: Coefficient, copies: _Copies) -> Stack:
    """Return accuracies (or tau_23) over pairs of different places; NaN where there is none."""
    every, own = copies.places * (copies.places - 1) / 2, (copies.squares - copies.places) / 2
    share = values if coefficient == "acc_23" else (values + 1) / 2
    rest = every - own
    agreed: Stack = np.divide(share * every - own, rest, out=np.full(rest.shape, np.nan), where=rest > 0)
    return agreed if coefficient == "acc_23" else 2 * agreed - 1


def _take(matrix: FloatMatrix, drawn: Drawn) -> Stack:
    if drawn.rows is None:
        return np.moveaxis(matrix[:, drawn.columns], 0, 1)
    if drawn.columns is None:
        return matrix[drawn.rows]
    return matrix[drawn.rows[:, :, None], drawn.columns[:, None, :]]


def _long_global(x: FloatMatrix, z: FloatMatrix, coefficient: Coefficient, drawing: Drawing) -> FloatVector:
    there = ~(np.isnan(x) | np.isnan(z))
    first, second = x[there], z[there]
    places = Places.of(first, second)
    found = []
    for drawn in draw_blocks(x.shape, drawing, 32 * x.size):
        counts = drawn.row_counts(len(x))[:, :, None] * drawn.column_counts(x.shape[1])[:, None, :]
        values = from_pairs(coefficient, places.pairs(counts[:, there]), first, second)
        if coefficient in _ACCURACIES:
            values = _apart(values, coefficient, _copies(x, z, "global", drawn))
        found.append(values)
    return np.concatenate(found)


def _long_rows(x: FloatMatrix, z: FloatMatrix, coefficient: Coefficient, drawing: Drawing) -> FloatVector:
    gaps = np.isnan(x) | np.isnan(z)
    rows = [(a[~gap], b[~gap], ~gap) for a, b, gap in zip(x, z, gaps, strict=True)]
    prepared = [(Places.of(a, b), there, a, b) for a, b, there in rows]
    found = []
    for drawn in draw_blocks(x.shape, drawing, 64 * x.shape[1]):
        counts = drawn.column_counts(x.shape[1])
        own = [from_pairs(coefficient, places.pairs(counts[:, there]), a, b) for places, there, a, b in prepared]
        values = np.stack(own, axis=1)
        if coefficient in _ACCURACIES:
            values = _apart(values, coefficient, _copies(x, z, "within_system", drawn))
        taken = values if drawn.rows is None else np.take_along_axis(values, drawn.rows, axis=1)
        found.append(mean_of_defined(taken, drawing.undefined))
    return np.concatenate(found)
