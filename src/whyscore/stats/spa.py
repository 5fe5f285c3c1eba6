"""Soft pairwise accuracy (Thompson, Mathur, Deutsch and Khayrallah 2024, arXiv 2409.09598).

1. For every pair of systems i < j, p = the one-sided p-value of "i is better than j" by flipping signs of the segments'
   differences, once with the metric's scores and once with people's.
2. One matrix of signs serves all pairs and both sides.
3. The accuracy is 1 - the mean of |p_human - p_metric|.

A pair uses the segments that both systems have in both matrices. Compatible mode (`mtme`): 1000 rows of signs from
numpy's generator with seed 4, float32 throughout, p = count / 1000, on columns that all systems have.
"""

import math
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whyscore.errors import SpecError
from whyscore.stats.matrices import NOTHING, DegenerateStatisticWarning, Dropped, Missing, align
from whyscore.stats.resampling import content_order, random_rows
from whyscore.types import FloatMatrix, FloatVector

DRAWS = 10_000
_COMPAT_DRAWS, _COMPAT_SEED = 1000, 4
_MARGIN = 1e-10  # of the largest sum there can be: what is left is rounding


@dataclass(frozen=True, slots=True, eq=False)
class SoftAccuracy:
    """Soft pairwise accuracy, with the p-values of every pair of systems behind it (NaN on and below the diagonal)."""

    value: float
    human: FloatMatrix
    metric: FloatMatrix
    pairs: int
    n: int
    """Rows of signs."""
    seed: int
    compat: str | None = None
    dropped: Dropped = NOTHING
    reason: str | None = None


def soft_pairwise_accuracy(
    x: ArrayLike,
    z: ArrayLike,
    *,
    n: int = DRAWS,
    seed: int = 0,
    missing: Missing = "paired",
    compat: Literal["mtme"] | None = None,
) -> SoftAccuracy:
    """Return how near the metric's certainty about every two systems comes to that of people."""
    if compat not in (None, "mtme"):
        raise SpecError(f"compat is {compat!r}, expected 'mtme' or None")
    if n < 1:
        raise SpecError(f"n is {n}, expected at least 1 row of signs")
    (a, b), dropped = align(x, z, missing="complete" if compat else missing, level="segment")
    if compat is None:
        order = content_order(b.T, a.T)
        a, b = a[:, order], b[:, order]
    count = _COMPAT_DRAWS if compat else n
    used = _COMPAT_SEED if compat else seed
    human, metric = (preference(one, n=count, seed=used, compat=compat) for one in (b, a))
    errors = np.abs(human - metric)
    errors = errors[~np.isnan(errors)]
    pairs = len(errors)
    if not pairs:
        warnings.warn("spa is not defined: no two systems share a segment", DegenerateStatisticWarning, stacklevel=2)
        return SoftAccuracy(math.nan, human, metric, 0, count, used, compat, dropped, "empty")
    return SoftAccuracy(1 - float(errors.mean()), human, metric, pairs, count, used, compat, dropped)


Signs = NDArray[np.floating]
"""Rows x segments, -1 or 1."""


def preference(
    matrix: FloatMatrix,
    *,
    n: int = DRAWS,
    seed: int = 0,
    compat: Literal["mtme"] | None = None,
    signs: Signs | None = None,
) -> FloatMatrix:
    """Return for every i < j the p-value of "system i is better than system j", NaN elsewhere.

    `signs` are the rows of signs, where they are known already.
    """
    if compat:
        matrix = matrix[:, ~np.isnan(matrix).any(axis=0)]
    i, j = np.triu_indices(len(matrix), 1)
    totals = _flip_whole if not np.isnan(matrix).any() else _flip_by_pair
    blocks = _sign_blocks(n, matrix.shape[1], seed, len(i), compat) if signs is None else (signs,)
    counts = totals(matrix, i, j, blocks, single=compat is not None)
    drawn = n if signs is None else len(signs)
    p = counts / drawn if compat else (counts + 1) / (drawn + 1)
    shared = (~np.isnan(matrix)).astype(np.int64)
    p = np.where((shared @ shared.T)[i, j] > 0, p, np.nan)
    result = np.full((len(matrix), len(matrix)), np.nan)
    result[i, j] = p
    return result


def preferences(stack: NDArray[np.float64], signs: Signs) -> FloatMatrix:
    """Return the same p-values for a stack of complete matrices: matrices x pairs i < j."""
    count, systems, _ = stack.shape
    i, j = np.triu_indices(systems, 1)
    scores = stack - stack.mean(axis=1, keepdims=True)
    sums = scores.sum(axis=2)
    margin = _MARGIN * np.abs(scores).sum(axis=2).max(axis=1, keepdims=True)
    flipped = (signs @ scores.reshape(count * systems, -1).T).reshape(-1, count, systems)
    least = sums[:, i] - sums[:, j] - margin
    found: FloatMatrix = ((flipped[:, :, i] - flipped[:, :, j] >= least).sum(axis=0) + 1) / (len(signs) + 1)
    return found


def sign_rows(n: int, segments: int, seed: int) -> Signs:
    """Return n rows of random signs."""
    return np.concatenate(list(_sign_blocks(n, segments, seed, segments, None)))


def _sign_blocks(n: int, segments: int, seed: int, width: int, compat: str | None) -> Iterator[Signs]:
    """Yield rows of signs; `width` is the most numbers held for one of them."""
    for drawn in random_rows(n, segments, seed, each=width):
        yield (drawn.round() * 2 - 1).astype(np.float32 if compat else np.float64)


def _flip_whole(
    matrix: FloatMatrix, i: NDArray[np.int64], j: NDArray[np.int64], signs: Iterable[Signs], *, single: bool
) -> FloatVector:
    """Return how often flipped sums are at least the observed ones, where every system has every segment."""
    # Equal sums in float32 depend on the order of adding: that of mt-metrics-eval is system by system.
    scores = np.ascontiguousarray(matrix, dtype=np.float32) if single else matrix - matrix.mean(axis=0)
    sums = scores.sum(axis=1)
    margin = 0.0 if single else _MARGIN * float(np.abs(scores).sum(axis=1).max(initial=0.0))
    counts = np.zeros(len(i))
    for block in signs:
        flipped = block @ scores.T
        counts += (flipped[:, i] - flipped[:, j] >= sums[i] - sums[j] - margin).sum(axis=0)
    return counts


def _flip_by_pair(
    matrix: FloatMatrix, i: NDArray[np.int64], j: NDArray[np.int64], signs: Iterable[Signs], *, single: bool
) -> FloatVector:
    """Return the same over the segments that both systems of a pair have."""
    del single  # compatible mode never comes here
    differences = np.nan_to_num(matrix[i] - matrix[j], nan=0.0)
    sums = differences.sum(axis=1)
    margin = _MARGIN * np.abs(differences).sum(axis=1)
    counts = np.zeros(len(i))
    for block in signs:
        counts += (block @ differences.T >= sums - margin).sum(axis=0)
    return counts
