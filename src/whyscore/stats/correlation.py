"""How well a metric agrees with people: coefficients at named levels.

| level | definition |
|---|---|
| system | the coefficient of the two vectors of row means |
| segment | the coefficient across systems for each segment, then the mean over segments |
| global | the coefficient of all cells |
| within_system | the coefficient along each system's segments, then the mean over systems |

A correlation that is not defined is NaN, with a warning and a reason; means over segments leave it out and count it.
Levels and names: Deutsch, Dror and Roth (2021), doi 10.1162/tacl_a_00417.
"""

import math
import warnings
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from whyscore.errors import DataError, SpecError
from whyscore.stats.coefficients import Coefficient, Stack, coefficient_of, kernel, pearson, ranks
from whyscore.stats.matrices import (
    NOTHING,
    TIE_TOLERANCE,
    DegenerateStatisticWarning,
    Dropped,
    Level,
    Missing,
    align,
    as_matrix,
    level_of,
    row_means,
    tie,
)
from whyscore.stats.resampling import sort_by_content
from whyscore.types import FloatMatrix

Undefined = Literal["leave_out", "zero"]
_RANKED = ("spearman", "kendall_b", "kendall_c", "tau_23", "acc_23")


@dataclass(frozen=True, slots=True)
class Correlation:
    """A coefficient with what stands behind it; `reason` says why where the value is NaN."""

    value: float
    level: Level
    coefficient: str
    n: int
    """Vectors that were averaged (segments or systems), or places in the one vector."""
    n_used: int
    """Those of them that have a value, or places that count."""
    missing: Missing = "paired"
    dropped: Dropped = NOTHING
    reason: str | None = None

    @property
    def name(self) -> str:
        """The name a number is printed with: `kendall_b@segment`."""
        return f"{self.coefficient}@{self.level}"

    def __float__(self) -> float:
        """Return the value."""
        return self.value


def correlate(
    x: ArrayLike,
    z: ArrayLike,
    level: str = "system",
    coefficient: str = "kendall_b",
    *,
    missing: Missing = "paired",
    undefined: Undefined = "leave_out",
    tie_tolerance: float = TIE_TOLERANCE,
) -> Correlation:
    """Return the coefficient of two matrices (systems x segments) at a level.

    Args:
        x: the metric's scores; a vector is one column.
        z: the human scores.
        level: `system`, `segment`, `global` or `within_system`.
        coefficient: see `coefficients`.
        missing: what to do with cells that one of the matrices lacks.
        undefined: whether segments without a value are left out of the mean, or count as 0 to penalise them.
        tie_tolerance: differences of means up to this share of their spread are ties; 0 compares bit by bit.

    >>> correlate([[1, 2], [2, 3], [9, 7]], [[1, 1], [2, 2], [3, 3]], "system", "kendall").value
    1.0
    """
    at, named = level_of(level), coefficient_of(coefficient)
    _check(undefined, tie_tolerance)
    (a, b), dropped = align(x, z, missing=missing, level=at)
    a, b = sort_by_content(a, b)  # sums in another order differ in the last digit
    values = vector_values(a, b, at, named, tie_tolerance)
    if at in ("segment", "within_system"):
        value, used, count = float(mean_of_defined(values, undefined)), int((~np.isnan(values)).sum()), values.shape[-1]
    else:
        sides = (row_means(a), row_means(b)) if at == "system" else (a, b)
        value, used, count = float(values), int((~np.isnan(sides[0] + sides[1])).sum()), sides[0].size
    reason = _reason(a, b, value)
    if reason:
        what = f"{named}@{at} is not defined"
        warnings.warn(f"{what}: {_REASONS[reason]}", DegenerateStatisticWarning, stacklevel=2)
    return Correlation(value, at, named, count, used, missing, dropped, reason)


_REASONS = {
    "empty": "no vector has two values on both sides",
    "constant": "the metric's or the human scores are constant",
}


def _check(undefined: str, tolerance: float) -> None:
    if undefined not in ("leave_out", "zero"):
        raise SpecError(f"undefined is {undefined!r}, expected 'leave_out' or 'zero'")
    if not 0 <= tolerance < 1:
        raise SpecError(f"tie_tolerance is {tolerance}, expected 0 or more and less than 1")


def _reason(x: FloatMatrix, z: FloatMatrix, value: float) -> str | None:
    if not math.isnan(value):
        return None
    both = ~(np.isnan(x) | np.isnan(z))
    return "constant" if both.sum() > 1 and (both.any(axis=1).sum() > 1 or both.shape[0] == 1) else "empty"


def vector_values(
    x: Stack, z: Stack, level: Level, coefficient: Coefficient, tolerance: float = TIE_TOLERANCE
) -> Stack:
    """Return the coefficient of every vector that a level compares, for stacks of systems x segments."""
    compute = kernel(coefficient)
    if level == "system":
        return mean_values(row_means(x), row_means(z), coefficient, tolerance)
    if level == "segment":
        return compute(np.swapaxes(x, -1, -2), np.swapaxes(z, -1, -2))
    if level == "within_system":
        return compute(x, z)
    return compute(x.reshape(*x.shape[:-2], -1), z.reshape(*z.shape[:-2], -1))


def mean_values(a: Stack, b: Stack, coefficient: Coefficient, tolerance: float = TIE_TOLERANCE) -> Stack:
    """Return the coefficient of vectors of means, among which ties are those within the tolerance."""
    if coefficient in _RANKED:
        a, b = tie(a, tolerance), tie(b, tolerance)
    return kernel(coefficient)(a, b)


def level_values(
    x: Stack,
    z: Stack,
    level: Level,
    coefficient: Coefficient,
    tolerance: float = TIE_TOLERANCE,
    *,
    undefined: Undefined = "leave_out",
) -> Stack:
    """Return the coefficient at a level, for stacks of systems x segments: one number per pair of matrices."""
    values = vector_values(x, z, level, coefficient, tolerance)
    return mean_of_defined(values, undefined) if level in ("segment", "within_system") else values


def mean_of_defined(values: Stack, undefined: Undefined = "leave_out") -> Stack:
    """Return the mean of the last axis over what is defined, or with 0 for the rest; NaN where nothing is."""
    if undefined == "zero":
        gaps = np.isnan(values)
        values = np.where(gaps & ~gaps.all(axis=-1, keepdims=True), 0.0, values)
    return row_means(values)


def partial_correlation(x: ArrayLike, z: ArrayLike, control: ArrayLike, coefficient: str = "pearson") -> float:
    """Return the correlation of two vectors given a third, for example the length of the text.

    Pearson, or Spearman as Pearson of ranks; places where one of the three is missing do not count.
    """
    if coefficient not in ("pearson", "spearman"):
        raise SpecError(f"partial correlation is for pearson and spearman, not {coefficient!r}")
    vectors = [as_matrix(values).ravel() for values in (x, z, control)]
    if len({len(vector) for vector in vectors}) > 1:
        raise DataError(
            f"vectors of {', '.join(str(len(vector)) for vector in vectors)} values: they need the same length"
        )
    there = ~np.isnan(vectors).any(axis=0)
    a, b, c = (ranks(vector[there]) if coefficient == "spearman" else vector[there] for vector in vectors)
    ab, ac, bc = (float(pearson(*pair)) for pair in ((a, b), (a, c), (b, c)))
    rest = (1 - ac * ac) * (1 - bc * bc)
    return (ab - ac * bc) / math.sqrt(rest) if rest > 0 else math.nan
