"""Score matrices: systems x segments, NaN where a system lacks a segment.

1. `from_rows` makes a matrix of a long table, whatever the order of its rows.
2. `align` settles what happens to cells that are missing in one of several matrices, and counts what was dropped.
3. `tie` makes means equal that differ by rounding alone: 1469/300 can be reached by many sums.

All matrices are oriented: higher is better.

Which cells change places between two metrics.

1. `coins` tosses coins: a cell is swapped iff its own coin says so (`cell`), iff row coin and column coin differ
   (`row_xor_column`), by its row's coin (`systems`) or by its column's (`inputs`).
2. `every_coin` lists all of them where there are few.
3. `sum_swapped_cells` gives the row sums of a swapped matrix by matrix products, without the matrix.
"""

import math
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeVar, get_args

import numpy as np
from numpy.random import Generator, RandomState
from numpy.typing import ArrayLike, NDArray

from whyscore.errors import DataError, SpecError
from whyscore.types import FloatMatrix, FloatVector

Level = Literal["system", "segment", "global", "within_system"]
Missing = Literal["paired", "unpaired", "complete", "error"]

LEVELS: tuple[Level, ...] = get_args(Level)
ALIASES: dict[str, Level] = {"input": "segment", "summary": "segment", "none": "global", "item": "segment"}
TIE_TOLERANCE = 1e-9
_REFERENCES = ("human-", "ref-")


class DegenerateStatisticWarning(UserWarning):
    """A statistic is not defined: a vector is constant or too short. The value is NaN, never 0."""


class Dropped(NamedTuple):
    """What was left out as it was missing somewhere: cells that one matrix had, rows and columns left empty."""

    cells: int = 0
    rows: int = 0
    columns: int = 0


NOTHING = Dropped()


class Aligned(NamedTuple):
    """Matrices of one shape, with NaN at the same places unless they are unpaired."""

    matrices: tuple[FloatMatrix, ...]
    dropped: Dropped


class Table(NamedTuple):
    """A matrix with the names of its rows and columns, in the order of their first appearance."""

    values: FloatMatrix
    systems: tuple[Hashable, ...]
    segments: tuple[Hashable, ...]


def level_of(name: str) -> Level:
    """Return a level by its name or an alias.

    >>> level_of("input"), level_of("system")
    ('segment', 'system')
    """
    canonical = ALIASES.get(name, name)
    for level in LEVELS:
        if canonical == level:
            return level
    raise SpecError(f"no level named {name!r}: use {', '.join((*LEVELS, *ALIASES))}")


def as_matrix(values: ArrayLike, name: str = "the matrix") -> FloatMatrix:
    """Return values as systems x segments; a plain vector is one column, every item a system of its own."""
    matrix = np.asarray(values, dtype=np.float64)
    matrix = matrix[:, None] if matrix.ndim == 1 else matrix
    if matrix.ndim != 2:  # noqa: PLR2004 - systems and segments
        raise DataError(f"{name} has {matrix.ndim} dimensions, expected systems x segments")
    if not matrix.size:
        raise DataError(f"{name} is empty ({matrix.shape[0]} systems, {matrix.shape[1]} segments)")
    if np.isinf(matrix).any():
        raise DataError(f"{name} holds an infinite number: scores must be finite, or NaN where missing")
    return matrix


def align(*arrays: ArrayLike, missing: Missing = "paired", level: Level = "segment") -> Aligned:
    """Return matrices of one shape in which the same cells count."""
    if missing not in get_args(Missing):
        raise SpecError(f"missing is {missing!r}, expected {' or '.join(map(repr, get_args(Missing)))}")
    names = ("X", "Z") if len(arrays) == 2 else ("X", "Y", "Z")  # noqa: PLR2004
    matrices = [as_matrix(values, name) for name, values in zip(names, arrays, strict=False)]
    _check_shapes(matrices, names)
    gaps = [np.isnan(matrix) for matrix in matrices]
    gap: NDArray[np.bool_] = np.logical_or.reduce(gaps)
    if missing == "error" and gap.any():
        row, column = np.argwhere(gap)[0].tolist()
        raise DataError(f"{int(gap.sum())} cells are missing, the first in row {row}, column {column}")
    if missing == "unpaired":
        if level != "system":
            raise SpecError(f"missing='unpaired' is for the level system, not {level}: use 'paired' or 'complete'")
        return Aligned(tuple(matrices), Dropped())
    if missing == "complete":
        gap = np.broadcast_to(gap.any(axis=0), gap.shape)
    lost = sum(int((gap & ~matrix_gap).sum()) for matrix_gap in gaps)
    aligned = tuple(np.where(gap, np.nan, matrix) for matrix in matrices)
    return Aligned(aligned, Dropped(lost, int(gap.all(axis=1).sum()), int(gap.all(axis=0).sum())))


def _check_shapes(matrices: Sequence[FloatMatrix], names: Sequence[str]) -> None:
    first = matrices[0].shape
    for name, matrix in zip(names, matrices, strict=True):
        if matrix.shape != first:
            raise DataError(
                f"{names[0]} has {first[0]} systems x {first[1]} segments, {name} has {matrix.shape[0]} x "
                f"{matrix.shape[1]}: all matrices need the same systems and segments; use NaN where a score is missing"
            )


def row_means(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of each row (the last axis) over what it has; NaN for a row that has nothing."""
    there = ~np.isnan(matrix)
    counts = there.sum(axis=-1)
    if there.all():
        whole: NDArray[np.float64] = matrix.mean(axis=-1)
        return whole
    return divide(np.where(there, matrix, 0.0).sum(axis=-1), counts)


def divide(top: ArrayLike, bottom: NDArray[np.number]) -> NDArray[np.float64]:
    """Return the quotients; NaN where the divisor is not above 0.

    >>> divide([1.0, 2.0], np.array([2, 0])).tolist()
    [0.5, nan]
    """
    above, below = np.broadcast_arrays(np.asarray(top, dtype=np.float64), bottom)
    quotients: NDArray[np.float64] = np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0)
    return quotients


Scalar = TypeVar("Scalar", np.float64, np.bool_)


def group_cells(matrix: NDArray[Scalar], level: Level) -> NDArray[Scalar]:
    """Return systems x segments, or a stack of them, as groups x places: the vectors that a level compares.

    At the level system there is one group, that of the means.
    """
    if level == "system":
        means: NDArray[Any] = tie(row_means(np.asarray(matrix, dtype=np.float64)))
        return means[..., None, :]
    if level == "segment":
        return np.swapaxes(matrix, -1, -2)
    return matrix if level == "within_system" else matrix.reshape(*matrix.shape[:-2], 1, -1)


def tie(values: NDArray[np.float64], tolerance: float = TIE_TOLERANCE) -> NDArray[np.float64]:
    """Return the values with those made equal that lie in one run of sorted values with gaps up to the tolerance.

    The tolerance is a share of the spread; 0 leaves the values alone. Works along the last axis; NaN stays NaN.

    >>> tie(np.array([0.3, 0.1 + 0.2, 1.0])).tolist()
    [0.3, 0.3, 1.0]
    """
    if tolerance == 0 or values.shape[-1] < 2:  # noqa: PLR2004 - one value ties with nothing
        return values
    order = np.argsort(values, axis=-1, kind="stable")
    ordered = np.take_along_axis(values, order, axis=-1)
    gaps = np.diff(ordered, axis=-1)
    defined = ~np.isnan(values)
    spread = np.where(defined, values, -np.inf).max(axis=-1) - np.where(defined, values, np.inf).min(axis=-1)
    with np.errstate(invalid="ignore"):
        near = gaps <= tolerance * spread[..., None]
    near &= gaps > 0
    if not near.any():
        return values
    with np.errstate(invalid="ignore"):
        starts = ~(gaps <= tolerance * spread[..., None])
    first = np.concatenate([np.ones((*starts.shape[:-1], 1), dtype=np.bool_), starts], axis=-1)
    places = np.where(first, np.arange(values.shape[-1]), 0)
    leaders = np.maximum.accumulate(places, axis=-1)
    result = np.empty_like(values)
    np.put_along_axis(result, order, np.take_along_axis(ordered, leaders, axis=-1), axis=-1)
    return result


def from_rows(
    systems: Sequence[Hashable],
    segments: Sequence[Hashable],
    values: Sequence[float],
    *,
    lines: Sequence[int] | None = None,
    file: str | None = None,
) -> Table:
    """Return the matrix of a long table; a (system, segment) pair that comes twice is an error with both lines."""
    numbers = lines if lines is not None else range(1, len(values) + 1)
    rows = {name: i for i, name in enumerate(dict.fromkeys(systems))}
    columns = {name: j for j, name in enumerate(dict.fromkeys(segments))}
    matrix = np.full((len(rows), len(columns)), np.nan)
    seen: dict[tuple[int, int], int] = {}
    for system, segment, value, number in zip(systems, segments, values, numbers, strict=True):
        key = (rows[system], columns[segment])
        if key in seen:
            raise DataError(
                f"system {system!r} has the segment {segment!r} twice, first on line {seen[key]}: keep one row for "
                "each system and segment",
                file=file,
                line=number,
            )
        seen[key] = number
        matrix[key] = value
    return Table(matrix, tuple(rows), tuple(columns))


def mean_rating(ratings: Sequence[float]) -> float:
    """Return the mean of several raters, summed exactly, so that equal ratings in any order are ties."""
    return math.fsum(ratings) / len(ratings) if ratings else math.nan


def is_human(system: str) -> bool:
    """Return whether a system's name says that people wrote its texts (`Human-A`, `ref-B`).

    >>> is_human("Human-P.0"), is_human("refined")
    (True, False)
    """
    return system.lower().startswith(_REFERENCES)


def standardise(matrix: FloatMatrix) -> FloatMatrix:
    """Return a matrix with mean 0 and standard deviation 1 over all its cells; a constant one becomes 0."""
    centred = matrix - np.nanmean(matrix)
    spread = float(np.nanstd(matrix))
    return centred / spread if spread > 0 else centred


def flat(matrix: FloatMatrix) -> FloatVector:
    """Return the cells that are there, row by row."""
    return matrix[~np.isnan(matrix)]


Permute = Literal["cell", "row_xor_column", "systems", "inputs"]
PERMUTES: tuple[Permute, ...] = get_args(Permute)
ENUMERATED = 20
"""All swaps are listed where they are at most two to this power."""

Coins = NDArray[np.bool_]
"""Resamples x coins; where both rows and columns have some, those of the rows come first."""

Swaps = NDArray[np.bool_]
"""Resamples x systems x segments: True where X and Y change places."""

_HALF = 0.5
_DRAWN = 4_000_000  # random numbers held at a time; a coin takes one byte of the eight


def coin_count(permute: Permute, rows: int, columns: int) -> int:
    """Return how many coins one resample takes."""
    return {"cell": rows * columns, "row_xor_column": rows + columns, "systems": rows, "inputs": columns}[permute]


def free_coins(permute: Permute, rows: int, columns: int) -> int:
    """Return how many coins make a difference: turning all rows and all columns is turning nothing."""
    return coin_count(permute, rows, columns) - (permute == "row_xor_column")


def coins(
    rng: Generator | RandomState, permute: Permute, rows: int, columns: int, *, n: int, block: int
) -> Iterator[Coins]:
    """Yield the coins of n random swaps in blocks; the size of the blocks does not change them."""
    count = coin_count(permute, rows, columns)
    for start in range(0, n, block):
        total = min(block, n - start)
        piece = max(1, _DRAWN // count)
        sizes = [(min(piece, total - done), count) for done in range(0, total, piece)]
        yield np.concatenate(
            [(rng.random_sample(size) if isinstance(rng, RandomState) else rng.random(size)) > _HALF for size in sizes]
        )


def every_coin(permute: Permute, rows: int, columns: int, *, block: int) -> Iterator[Coins]:
    """Yield the coins of all distinct swaps in blocks."""
    free = free_coins(permute, rows, columns)
    for start in range(0, 2**free, block):
        numbers = np.arange(start, min(start + block, 2**free))
        yield ((numbers[:, None] >> np.arange(coin_count(permute, rows, columns))) & 1).astype(np.bool_)


def spread(tossed: Coins, permute: Permute, rows: int, columns: int) -> Swaps:
    """Return the swaps that coins stand for."""
    shape = (len(tossed), rows, columns)
    if permute == "cell":
        return tossed.reshape(shape)
    if permute == "systems":
        return np.broadcast_to(tossed[:, :, None], shape)
    if permute == "inputs":
        return np.broadcast_to(tossed[:, None, :], shape)
    return tossed[:, :rows, None] ^ tossed[:, None, rows:]


def sum_swapped_cells(tossed: Coins, permute: Permute, difference: FloatMatrix) -> FloatMatrix:
    """Return resamples x systems: the sum of a difference (Y - X) over the swapped cells of each row."""
    rows, columns = difference.shape
    if permute == "cell":
        swaps = tossed.reshape(len(tossed), rows, columns)
        return np.stack([swaps[:, i].astype(np.float64) @ difference[i] for i in range(rows)], axis=1)
    if permute == "inputs":
        return tossed.astype(np.float64) @ difference.T
    whole: FloatVector = difference.sum(axis=1)
    row_coins: FloatMatrix = tossed[:, :rows].astype(np.float64)
    if permute == "systems":
        return row_coins * whole
    return row_coins * whole + (1 - 2 * row_coins) * (tossed[:, rows:].astype(np.float64) @ difference.T)
