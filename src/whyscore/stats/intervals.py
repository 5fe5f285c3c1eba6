"""How certain is a correlation? Intervals over other systems, other segments, or both.

1. Percentile bootstrap (Efron 1979): draw rows, then columns, with replacement, the same for both matrices. `systems`
   speaks for other systems on the same segments, `inputs` for other segments and the same systems, `both` for both;
   it is the default and the widest (Deutsch, Dror and Roth 2021).
2. Fisher's z with the variances of Bonett and Wright (2000), as a cross-check.
3. Differences of two metrics: `sign` p is the share of resampled differences at or below 0, `centred` p the share at
   or above twice the observed one.

Resamples without a value (all drawn systems the same) are counted and left out.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whyscore.errors import SpecError
from whyscore.stats.coefficients import Coefficient, coefficient_of
from whyscore.stats.correlation import level_values
from whyscore.stats.matrices import NOTHING, Dropped, Level, Missing, align, level_of
from whyscore.types import Estimate, FloatMatrix, FloatVector

Resample = Literal["systems", "inputs", "both"]
LEVEL = 0.95
DRAWS = 1000
MEMORY = 256_000_000
_MARGIN = 1e-12  # what is left is rounding
_BONETT_WRIGHT = 0.437  # the variance of Fisher's z of Kendall's tau


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """A correlation with its bootstrap interval."""

    estimate: Estimate
    level: Level
    coefficient: str
    resample: Resample
    n: int
    """Resamples with a value."""
    undefined: int
    """Resamples without one, left out."""
    seed: int
    dropped: Dropped = NOTHING
    samples: FloatVector | None = None

    @property
    def name(self) -> str:
        """The name an interval is printed with."""
        return f"{self.coefficient}@{self.level}, bootstrap over {self.resample}"


@dataclass(frozen=True, slots=True)
class BootstrapDifference:
    """A difference of two correlations with its interval and two p-values that X is better."""

    estimate: Estimate
    sign: float
    centred: float
    level: Level
    coefficient: str
    resample: Resample
    n: int
    undefined: int
    seed: int
    dropped: Dropped = NOTHING
    samples: FloatVector | None = None


def bootstrap(
    x: ArrayLike,
    z: ArrayLike,
    level: str = "system",
    coefficient: str = "kendall_b",
    *,
    resample: Resample = "both",
    n: int = DRAWS,
    confidence: float = LEVEL,
    seed: int = 0,
    missing: Missing = "paired",
    memory: int = MEMORY,
    keep: bool = False,
) -> Bootstrap:
    """Return a correlation with the percentile interval over resampled systems, segments or both."""
    at, named = level_of(level), coefficient_of(coefficient)
    _check(resample, n, confidence)
    (a, b), dropped = align(x, z, missing=missing, level=at)
    values = np.concatenate(
        [
            level_values(_take(a, *drawn), _take(b, *drawn), at, named)
            for drawn in _draws(a.shape, resample, n, seed, memory)
        ]
    )
    known = values[~np.isnan(values)]
    value = float(level_values(a, b, at, named))
    estimate = _estimate(value, known, confidence, _size(a, at))
    samples = values if keep else None
    return Bootstrap(estimate, at, named, resample, len(known), n - len(known), seed, dropped, samples)


def bootstrap_difference(
    x: ArrayLike,
    y: ArrayLike,
    z: ArrayLike,
    level: str = "system",
    coefficient: str = "kendall_b",
    *,
    resample: Resample = "both",
    n: int = DRAWS,
    confidence: float = LEVEL,
    seed: int = 0,
    missing: Missing = "paired",
    memory: int = MEMORY,
    keep: bool = False,
) -> BootstrapDifference:
    """Return r(X, Z) - r(Y, Z) with its interval: rows and columns of all three are drawn together."""
    at, named = level_of(level), coefficient_of(coefficient)
    _check(resample, n, confidence)
    (a, b, human), dropped = align(x, y, z, missing=missing, level=at)
    deltas = np.concatenate(
        [
            _delta(_take(a, *drawn), _take(b, *drawn), _take(human, *drawn), at, named)
            for drawn in _draws(a.shape, resample, n, seed, memory)
        ]
    )
    known = deltas[~np.isnan(deltas)]
    observed = float(_delta(a, b, human, at, named))
    sign, centred = shares(known, observed)
    return BootstrapDifference(
        *(_estimate(observed, known, confidence, _size(a, at)), sign, centred, at, named, resample, len(known)),
        *(n - len(known), seed, dropped, deltas if keep else None),
    )


def shares(deltas: FloatVector, observed: float) -> tuple[float, float]:
    """Return the p-values `sign` and `centred` of "the difference is above 0"."""
    if not len(deltas) or math.isnan(observed):
        return math.nan, math.nan
    return float((deltas <= _MARGIN).mean()), float((deltas >= 2 * observed - _MARGIN).mean())


def fisher(r: float, n: int, coefficient: str = "pearson", *, confidence: float = LEVEL) -> Estimate:
    """Return the interval of a correlation of n pairs by Fisher's z.

    >>> found = fisher(0.75, 16, "kendall")
    >>> round(found.low, 4), round(found.high, 4)
    (0.5363, 0.8733)
    """
    from scipy.special import ndtri  # noqa: PLC0415 - loads half of scipy

    named = coefficient_of(coefficient)
    if named not in ("pearson", "spearman", "kendall_b"):
        raise SpecError(f"Fisher's z is for pearson, spearman and kendall, not {coefficient!r}")
    _check("both", 1, confidence)
    less = 4 if named == "kendall_b" else 3
    if math.isnan(r) or n <= less or abs(r) > 1:
        return Estimate(r, level=confidence, n=n, reason="undefined")
    spread = {"pearson": 1.0, "spearman": math.sqrt(1 + r * r / 2), "kendall_b": math.sqrt(_BONETT_WRIGHT)}[named]
    half = float(ndtri((1 + confidence) / 2)) * spread / math.sqrt(n - less)
    if abs(r) == 1:
        return Estimate(r, r, r, confidence, n)
    return Estimate(r, math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half), confidence, n)


def _delta(x: FloatMatrix, y: FloatMatrix, z: FloatMatrix, level: Level, coefficient: Coefficient) -> FloatVector:
    difference: FloatVector = level_values(x, z, level, coefficient) - level_values(y, z, level, coefficient)
    return difference


def _draws(
    shape: tuple[int, ...], resample: Resample, n: int, seed: int, memory: int
) -> Iterator[tuple[NDArray[np.int64] | None, NDArray[np.int64] | None]]:
    """Yield blocks of drawn rows and columns, None for what is not drawn; blocks do not change the draws."""
    rows, columns = shape
    # Signs of pairs are the largest thing held: half as many as systems, for each cell.
    block = max(1, memory // (64 * rows * columns * (1 + min(rows, 256) // 8)))
    row_rng, column_rng = (np.random.default_rng([seed, k]) for k in range(2))
    for start in range(0, n, block):
        size = min(block, n - start)
        yield (
            None if resample == "inputs" else row_rng.integers(0, rows, (size, rows)),
            np.broadcast_to(np.arange(columns), (size, columns))
            if resample == "systems"
            else column_rng.integers(0, columns, (size, columns)),
        )


def _take(
    matrix: FloatMatrix, rows: NDArray[np.int64] | None, columns: NDArray[np.int64] | None
) -> NDArray[np.float64]:
    if rows is None:
        return np.moveaxis(matrix[:, columns], 0, 1)
    return matrix[rows[:, :, None], columns[:, None, :]]  # type: ignore[index]


def _size(matrix: FloatMatrix, level: Level) -> int:
    there = ~np.isnan(matrix)
    if level == "system":
        return int(there.any(axis=1).sum())
    if level == "global":
        return int(there.sum())
    return int(there.any(axis=0 if level == "segment" else 1).sum())


def _estimate(value: float, known: FloatVector, confidence: float, n: int) -> Estimate:
    if len(known) < 2 or math.isnan(value):  # noqa: PLR2004 - an interval needs two ends
        return Estimate(value, level=confidence, n=n, reason="undefined")
    low, high = np.quantile(known, [(1 - confidence) / 2, (1 + confidence) / 2]).tolist()
    return Estimate(value, low, high, confidence, n)


def _check(resample: str, n: int, confidence: float) -> None:
    if resample not in get_args(Resample):
        raise SpecError(f"resample is {resample!r}, expected {' or '.join(map(repr, get_args(Resample)))}")
    if n < 1:
        raise SpecError(f"n is {n}, expected at least 1 resample")
    if not 0 < confidence < 1:
        raise SpecError(f"confidence is {confidence}, expected more than 0 and less than 1")
