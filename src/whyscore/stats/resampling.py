"""Resampling: in which order, how many draws at a time, random rows, percentiles, and the bootstrap over segments.

1. `block_sizes` cuts the draws of every test and interval into blocks that fit into memory; blocks do not change draws.
2. `random_rows` tosses the coins of sign flips and swaps, `draw_counts` draws segments with replacement.
3. Bootstrap over segments (Efron 1979; Koehn 2004 for machine translation): what is resampled is a row of counts per
   segment, never a text, so that a corpus metric costs one matrix product and one formula per draw. The same seed gives
   the same draws to every system.
4. `block_folds` and `bootstrap_ratio` keep rows of one document together: in cross-validation, and in the intervals of
   shares such as a precision.
5. Draws go by place. `content_order` and `sort_by_content` give segments and systems their places by the numbers they
   hold, so that the same data in another order draw the same and give the same digits, and the last digits of scores,
   in which processors differ, do not change what is drawn.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from whyscore.types import Estimate, FloatMatrix, FloatVector

Indices = NDArray[np.intp]

DRAWS = 1000
LEVEL = 0.95
_CELLS = 4_000_000  # draws x segments held in memory at a time
_PART = 1 << 16  # rows that are mixed at a time
_BITS = 52  # of a sum in float64, besides the first
_LEAST_EXPONENT = -1074  # of a number in float64


def content_order(*tables: FloatMatrix) -> Indices:
    """Return an order of rows that depends on what they hold, not on the order they come in.

    1. Sort the rows by a hash of the first table, then by one of the other tables together. Hashes are of numbers
       rounded to 8 bits: processors differ in the last digits of scores, which must not change what is drawn.
    2. Sort rows with equal hashes by their exact numbers, the first table first. Rows whose order the last digits
       decide are as good as equal, so drawing one for the other changes no more than these digits.
    """
    first, *others = map(_hash_rows, tables)
    second = sum(others, np.zeros_like(first))
    order = np.lexsort([second, first])
    same = (np.diff(first[order]) == 0) & (np.diff(second[order]) == 0)
    tied = np.append(same, False) | np.append(False, same)
    rows = order[tied]
    exact = [column for table in reversed(tables) for column in np.asarray(table)[rows].T[::-1]]
    order[tied] = rows[np.lexsort([*exact, second[rows], first[rows]])]
    return order


def sort_by_content(*matrices: FloatMatrix) -> tuple[FloatMatrix, ...]:
    """Return matrices of the same systems x segments, both in an order that depends on what the matrices hold.

    The last one, the human scores, decides alone where it can: metrics that are judged by it get the same draws.
    Systems that are equal when rounded go by their sums, the human ones first.
    """
    rounded = [_round(matrix.reshape(-1, 1)).reshape(matrix.shape) for matrix in matrices]
    sums = [np.sort(np.nan_to_num(matrix), axis=1).sum(axis=1) for matrix in matrices]
    rows = np.lexsort([*_marks(matrices), *sums, *_marks(rounded)])
    columns = content_order(*(matrix[rows].T for matrix in (matrices[-1], *matrices[:-1])))
    return tuple(matrix[np.ix_(rows, columns)] for matrix in matrices)


def _marks(matrices: Sequence[FloatMatrix]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return hashes of each system that do not depend on the order of segments: of the last matrix, and the others."""
    marks = [_mix(matrix.reshape(-1, 1)).reshape(matrix.shape).sum(axis=1, dtype=np.uint64) for matrix in matrices]
    return sum(marks[:-1], np.zeros_like(marks[-1])), marks[-1]


def _hash_rows(table: FloatMatrix) -> NDArray[np.uint64]:
    """Return a hash of each rounded row; mixed in parts, because it takes several tables of the same size."""
    values = np.asarray(table, dtype=np.float64)
    steps = _steps(values)
    parts = (values[start : start + _PART] for start in range(0, max(1, len(values)), _PART))
    return np.concatenate([_mix(np.rint(part / steps)).sum(axis=1, dtype=np.uint64) for part in parts])


def _round(table: FloatMatrix) -> FloatMatrix:
    """Return a table in steps of about 1/256 of the largest number of each column."""
    values = np.asarray(table, dtype=np.float64)
    rounded: FloatMatrix = np.rint(values / _steps(values))
    return rounded


def _steps(values: FloatMatrix) -> FloatVector:
    largest = np.max(np.abs(values), axis=0, initial=0.0, where=np.isfinite(values))
    # Powers of two keep counts exact. With the square root, a largest number near 1 is not at the border of two steps.
    steps: FloatVector = np.exp2(np.ceil(np.log2(np.where(largest > 0, largest, 1.0) * np.sqrt(2))) - 8)
    return steps


def _mix(rows: FloatMatrix) -> NDArray[np.uint64]:
    """Return every number mixed with its column to 64 bits (SplitMix64, Steele et al. 2014)."""
    values = np.where(np.isnan(rows), np.nan, np.asarray(rows, dtype=np.float64) + 0.0)  # one NaN, one zero
    column = np.arange(1, 1 + values.shape[1], dtype=np.uint64)
    bits = cast("NDArray[np.uint64]", np.ascontiguousarray(values).view(np.uint64))
    bits = np.add(bits, np.multiply(column, np.uint64(0x9E3779B97F4A7C15)))
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: NDArray[np.uint64] = bits ^ (bits >> np.uint64(31))
    return mixed


def block_sizes(n: int, each: int, capacity: int) -> Iterator[int]:
    """Yield how many of n resamples to draw at a time, if one takes `each` numbers and `capacity` fit into memory.

    >>> list(block_sizes(10, 3, 12))
    [4, 4, 2]
    """
    block = max(1, capacity // max(each, 1))
    yield from (min(block, n - start) for start in range(0, n, block))


def random_rows(
    n: int,
    width: int,
    seed: int | Sequence[int],
    *,
    each: int = 0,
    capacity: int = 8_000_000,
    dtype: DTypeLike = np.float32,
) -> Iterator[NDArray[Any]]:
    """Yield n rows of random numbers from 0 to below 1, in blocks; `each` is what a row takes, if more than itself."""
    rng = np.random.default_rng(seed)
    for size in block_sizes(n, max(each, width), capacity):
        yield rng.random((size, width), dtype=dtype)  # type: ignore[arg-type]


def percentiles(values: NDArray[np.float64], level: float) -> NDArray[np.float64]:
    """Return the ends of the percentile interval of resampled values, low and high, of each column.

    The high end is minus the low end of the negated values: A - B and B - A have the same digits.
    """
    share = (1 - level) / 2
    ends: NDArray[np.float64] = np.stack([np.quantile(values, share, axis=0), -np.quantile(-values, share, axis=0)])
    return ends + 0.0  # without negative zeros


def draw_counts(segments: int, draws: int, seed: int) -> Iterator[FloatMatrix]:
    """Yield blocks of draws x segments: how often each segment was drawn."""
    rng = np.random.default_rng(seed)
    for size in block_sizes(draws, segments, _CELLS):
        picked = rng.integers(0, segments, size=(size, segments))
        counts = np.empty(picked.shape)
        for own, row in zip(counts, picked, strict=True):
            own[:] = np.bincount(row, minlength=segments)
        yield counts


def draw_sums(rows: FloatMatrix, draws: int, seed: int, *, overwrite: bool = False) -> Iterator[FloatMatrix]:
    """Yield the sums of drawn rows, draws x columns, in blocks.

    Numbers are rounded to so many bits that any sum of as many rows is exact: a matrix product adds in an order that
    depends on the processor, the threads and the size of the block, and so would its last digits. Of 1,000 rows, 43
    bits are left; counts stay as they are. With `overwrite` the rows themselves are rounded, as a million of them take
    150 MB.
    """
    finite = np.isfinite(rows)
    largest = np.maximum(
        np.max(rows, axis=0, initial=0.0, where=finite), -np.min(rows, axis=0, initial=0.0, where=finite)
    )
    exponents = np.ceil(np.log2(np.where(largest > 0, largest, 1.0) * max(1, len(rows)))) - _BITS
    grid = np.exp2(np.maximum(exponents, _LEAST_EXPONENT))
    exact = np.divide(rows, grid, out=rows if overwrite else None)
    np.rint(exact, out=exact)
    exact *= grid
    yield from (counts @ exact for counts in draw_counts(len(rows), draws, seed))


def bootstrap_total(
    rows: FloatMatrix, total: Callable[[FloatVector], float], *, draws: int = DRAWS, level: float = LEVEL, seed: int = 0
) -> Estimate:
    """Return the score of all rows together, with the percentile interval over resampled segments."""
    rows = np.asarray(rows, dtype=np.float64)[content_order(rows)]
    value = float(total(rows.sum(axis=0)))
    if len(rows) < 2:  # noqa: PLR2004 - one segment has no spread
        return Estimate(value, level=level, n=len(rows), reason="undefined")
    sums = np.vstack(list(draw_sums(rows, draws, seed, overwrite=True)))
    low, high = percentiles(np.array([total(row) for row in sums]), level).tolist()
    return Estimate(value, low, high, level, len(rows))


def bootstrap_mean(values: FloatVector, *, draws: int = DRAWS, level: float = LEVEL, seed: int = 0) -> Estimate:
    """Return the mean with the percentile interval over resampled segments."""
    if len(values) == 0:
        return Estimate(float("nan"), level=level, n=0, reason="empty")
    count = len(values)
    return bootstrap_total(values[:, None], lambda row: float(row[0]) / count, draws=draws, level=level, seed=seed)


def block_folds(blocks: Sequence[str], folds: int, seed: int = 0) -> Indices:
    """Return the fold of each row: blocks, such as documents, stay whole and are dealt out in an order of chance.

    The order depends on the seed and the names of the blocks alone, not on the order of the rows.
    """
    digests = {
        name: hashlib.blake2b(f"{seed}:{name}".encode("utf-8", "surrogatepass")).digest() for name in set(blocks)
    }
    number = {name: k % folds for k, name in enumerate(sorted(digests, key=lambda name: (digests[name], name)))}
    return np.array([number[name] for name in blocks], dtype=np.intp)


def block_sums(rows: FloatMatrix, blocks: Sequence[str]) -> FloatMatrix:
    """Return the sum of the rows of each block, in the order of their names."""
    place = np.unique(np.asarray(blocks, dtype=str), return_inverse=True)[1].ravel()
    sums = np.zeros((int(place.max(initial=-1)) + 1, rows.shape[1]))
    np.add.at(sums, place, rows)
    return sums


def bootstrap_ratio(
    part: FloatVector,
    whole: FloatVector,
    blocks: Sequence[str],
    *,
    draws: int = DRAWS,
    level: float = LEVEL,
    seed: int = 0,
) -> Estimate:
    """Return sum(part) / sum(whole) with the percentile interval over resampled blocks; empty draws are left out."""
    sums = block_sums(np.column_stack([part, whole]).astype(np.float64), blocks)
    if not sums[:, 1].sum():
        return Estimate(float("nan"), level=level, n=0, reason="empty")
    value, n = float(sums[:, 0].sum() / sums[:, 1].sum()), int(np.sum(whole))
    if len(sums) < 2 or not draws:  # noqa: PLR2004 - one block has no spread
        return Estimate(value, level=level, n=n, reason="undefined" if draws else None)
    sums = sums[content_order(sums)]
    drawn = np.vstack(list(draw_sums(sums, draws, seed)))
    drawn = drawn[drawn[:, 1] > 0]
    low, high = percentiles(drawn[:, 0] / drawn[:, 1], level).tolist()
    return Estimate(value, low, high, level, n)
