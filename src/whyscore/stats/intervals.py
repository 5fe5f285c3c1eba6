"""How certain is a correlation? Intervals over other systems, other segments, or both.

1. Percentile bootstrap (Efron 1979): draw rows, then columns, with replacement, the same for both matrices. `systems`
   speaks for other systems on the same segments, `inputs` for other segments and the same systems, `both` for both;
   it is the default and the widest (Deutsch, Dror and Roth 2021).
2. Fisher's z with the variances of Bonett and Wright (2000), as a cross-check.
3. Differences of two metrics: `sign` p is the share of resampled differences at or below 0, `centred` p the share at
   or above twice the observed one.

Resamples without a value (all drawn systems the same) are counted and left out. Accuracies over pairs of systems do not
count a system that was drawn twice as a pair with itself (see `drawn_pairs` and, for `acc_23`, `draws`).
"""

import math
import warnings
from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike

from whyscore.errors import SpecError
from whyscore.stats.coefficients import coefficient_of
from whyscore.stats.drawn_pairs import PAIRED, drawn_pair_values, too_many
from whyscore.stats.draws import MEMORY, Drawing, Resample, drawn_values
from whyscore.stats.matrices import NOTHING, DegenerateStatisticWarning, Dropped, Level, Missing, align
from whyscore.stats.measures import FINE, Fine, Measure, agree, measure_of
from whyscore.types import Estimate, FloatMatrix, FloatVector

LEVEL = 0.95
TOO_MANY = "too many pairs"
"""The reason of an interval that would take too long."""

DRAWS = 1000
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
    level: str | None = None,
    coefficient: str = "kendall_b",
    *,
    resample: Resample = "both",
    n: int = DRAWS,
    confidence: float = LEVEL,
    seed: int = 0,
    missing: Missing = "paired",
    memory: int = MEMORY,
    keep: bool = False,
    fine: Fine = FINE,
) -> Bootstrap:
    """Return a measure of agreement with the percentile interval over resampled systems, segments or both.

    `coefficient` is any measure, also `acc_eq`, `spa`, `pdp` ...; its own level is taken where none is given.
    """
    measure = measure_of(coefficient, level)
    at, named = measure.level, measure.name
    _check(resample, n, confidence)
    (a, b), dropped = align(x, z, missing=missing, level=at)
    value, size = _value(a, b, measure, missing=missing, seed=seed, fine=fine), _size(a, at)
    if too_many(a, at, named, n):
        estimate = Estimate(value, level=confidence, n=size, reason=TOO_MANY)
        return Bootstrap(estimate, at, named, resample, 0, n, seed, dropped)
    drawing = Drawing(resample, n, seed, memory, fine.undefined, fine.tie_tolerance, fine.epsilon)
    values = _drawn(a, b, measure, drawing)
    known = values[~np.isnan(values)]
    estimate = _estimate(value, known, confidence, size)
    samples = values if keep else None
    return Bootstrap(estimate, at, named, resample, len(known), n - len(known), seed, dropped, samples)


def bootstrap_difference(
    x: ArrayLike,
    y: ArrayLike,
    z: ArrayLike,
    level: str | None = None,
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
    measure = measure_of(coefficient, level)
    at, named = measure.level, measure.name
    _check(resample, n, confidence)
    (a, b, human), dropped = align(x, y, z, missing=missing, level=at)
    if too_many(a, at, named, n):
        raise SpecError(f"{named}@{at} has too many pairs for {n} draws here: use the level segment, or fewer draws")
    drawing = Drawing(resample, n, seed, memory)
    deltas = _drawn(a, human, measure, drawing) - _drawn(b, human, measure, drawing)
    known = deltas[~np.isnan(deltas)]
    values = [_value(one, human, measure, missing=missing, seed=seed) for one in (a, b)]
    observed = values[0] - values[1]
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


def _drawn(x: FloatMatrix, z: FloatMatrix, measure: Measure, drawing: Drawing) -> FloatVector:
    """Return a measure of every draw."""
    if measure.name in PAIRED:
        return drawn_pair_values(x, z, measure.level, measure.name, drawing)
    return drawn_values(x, z, measure.level, coefficient_of(measure.name), drawing)


def _value(
    x: FloatMatrix, z: FloatMatrix, measure: Measure, *, missing: Missing, seed: int, fine: Fine = FINE
) -> float:
    """Return a measure of two aligned matrices; NaN where it is not defined."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateStatisticWarning)
        return agree(x, z, measure, missing=missing, seed=seed, fine=fine)[0].value


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
