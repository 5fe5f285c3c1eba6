"""Means beside the power mean; none of them needs the importances to be positive, but for `lehmer`.

| aggregator | number |
|---|---|
| `exp_mean(t)` | log(mean of e^(t phi)) / t; t -> 0 the mean, +-inf max and min |
| `geometric` | the power mean at p = 0: exp(mean of log v), v shifted above 0 as BMX does |
| `lehmer(p)` | sum of v^p / sum of v^(p-1), v shifted above 0 as BMX does |
| `quantile(q)` | the value below which a share q of the importances lies, interpolated |
| `trimmed(share)` | the mean without that share of the values at each end |
| `mean`, `min`, `max` | what they say |
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from whyscore.aggregate.bags import Bags
from whyscore.aggregate.power import check_power, power_table
from whyscore.errors import SpecError
from whyscore.settings import check_fields
from whyscore.types import FloatMatrix, FloatVector

_ZERO = 1e-12
_HALF = 0.5


class _Single:
    """What all aggregators share: one segment is a table of one."""

    __slots__ = ()
    parameter: ClassVar[str | None] = None

    def aggregate(self, importance: FloatVector) -> float:
        own = getattr(self, self.parameter) if self.parameter else 0.0
        return float(self.table(Bags.of([importance]), np.array([own]))[0, 0])

    def grid(self) -> FloatVector:
        """Return the one value there is to try."""
        return np.zeros(1)

    def table(self, bags: Bags, parameters: FloatVector) -> FloatMatrix:
        """Return the numbers of all segments for all parameters."""
        return np.stack([self._row(bags, float(value)) for value in parameters])

    def _row(self, bags: Bags, value: float) -> FloatVector:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class ExpMean(_Single):
    """The exponential mean: large t looks at the highest importances, negative t at the lowest."""

    t: float = 1.0

    parameter: ClassVar[str | None] = "t"

    def __post_init__(self) -> None:
        check_fields(self)
        if np.isnan(self.t):
            raise SpecError(f"exp_mean: t is {self.t!r}, expected a number, inf or -inf")

    def grid(self) -> FloatVector:
        """Return -30.0 ... 30.0, for importances of scores from 0 to 1."""
        return np.arange(-300, 301) / 10

    def _row(self, bags: Bags, value: float) -> FloatVector:
        if abs(value) < _ZERO:
            return mean(bags)
        top = bags.reduce(np.maximum if value > 0 else np.minimum, bags.values)
        if np.isinf(value):
            return top
        total = bags.reduce(np.add, np.exp(value * (bags.values - bags.spread(top))))
        result: FloatVector = top + np.log(total / np.where(bags.lengths > 0, bags.lengths, 1)) / value
        return result


@dataclass(frozen=True, slots=True)
class Lehmer(_Single):
    """The Lehmer mean: p = 1 the mean, p = 2 the mean weighted by itself."""

    p: float = 2.0

    parameter: ClassVar[str | None] = "p"

    def __post_init__(self) -> None:
        check_fields(self)
        check_power("lehmer", self.p)

    def grid(self) -> FloatVector:
        """Return -30.0 ... 30.0."""
        return np.arange(-300, 301) / 10

    def _row(self, bags: Bags, value: float) -> FloatVector:
        if np.isinf(value):
            return _power_mean(bags, value)
        # M_p^p / M_(p-1)^(p-1), where M_0^0 is 1.
        upper, lower = np.log(power_table(bags, np.array([value, value - 1])).means)
        result: FloatVector = np.exp(value * upper - (value - 1) * lower)
        return result


@dataclass(frozen=True, slots=True)
class Quantile(_Single):
    """The value below which a share of the importances lies."""

    q: float = _HALF

    parameter: ClassVar[str | None] = "q"

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0 <= self.q <= 1:
            raise SpecError(f"quantile: q is {self.q!r}, expected a number from 0 to 1")

    def grid(self) -> FloatVector:
        """Return 0.00, 0.01 ... 1.00."""
        return np.arange(101) / 100

    def table(self, bags: Bags, parameters: FloatVector) -> FloatMatrix:
        """Return the quantiles of all segments, sorted once."""
        ordered = bags.ordered()
        full = bags.lengths > 0
        result = np.full((len(parameters), len(bags)), np.nan)
        last, starts = bags.lengths[full] - 1, bags.starts[full]
        for row, share in enumerate(parameters):
            place = share * last
            below = np.floor(place).astype(np.int64)
            low, high = ordered.values[starts + below], ordered.values[starts + np.minimum(below + 1, last)]
            result[row, full] = low + (high - low) * (place - below)
        unknown = np.isnan(bags.reduce(np.add, bags.values))
        result[:, unknown] = np.nan
        return result


@dataclass(frozen=True, slots=True)
class Trimmed(_Single):
    """The mean without a share of the values at each end, rounded down to whole words."""

    share: float = 0.1

    parameter: ClassVar[str | None] = "share"

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0 <= self.share < _HALF:
            raise SpecError(f"trimmed: share is {self.share!r}, expected a number from 0 to below 0.5")

    def grid(self) -> FloatVector:
        """Return 0.00, 0.01 ... 0.49."""
        return np.arange(50) / 100

    def table(self, bags: Bags, parameters: FloatVector) -> FloatMatrix:
        """Return the trimmed means of all segments, sorted once."""
        ordered = bags.ordered()
        place = np.arange(len(bags.values)) - bags.spread(bags.starts.astype(np.float64))
        unknown = np.isnan(bags.reduce(np.add, bags.values))
        rows = []
        for share in parameters:
            cut = np.floor(share * bags.lengths)
            kept = (place >= bags.spread(cut)) & (place < bags.spread(bags.lengths - cut))
            total = bags.reduce(np.add, np.where(kept, ordered.values, 0.0))
            rows.append(np.where(unknown, np.nan, total / np.where(bags.lengths > 0, bags.lengths - 2 * cut, 1)))
        return np.stack(rows)


@dataclass(frozen=True, slots=True)
class Geometric(_Single):
    """The geometric mean, the power mean at p = 0."""

    def _row(self, bags: Bags, value: float) -> FloatVector:  # noqa: ARG002 - there is no parameter
        return _power_mean(bags, 0.0)


@dataclass(frozen=True, slots=True)
class Mean(_Single):
    """The mean of the importances as they are."""

    def _row(self, bags: Bags, value: float) -> FloatVector:  # noqa: ARG002 - there is no parameter
        return mean(bags)


@dataclass(frozen=True, slots=True)
class Min(_Single):
    """The smallest importance."""

    def _row(self, bags: Bags, value: float) -> FloatVector:  # noqa: ARG002 - there is no parameter
        return bags.reduce(np.minimum, bags.values)


@dataclass(frozen=True, slots=True)
class Max(_Single):
    """The largest importance."""

    def _row(self, bags: Bags, value: float) -> FloatVector:  # noqa: ARG002 - there is no parameter
        return bags.reduce(np.maximum, bags.values)


def _power_mean(bags: Bags, power: float) -> FloatVector:
    means: FloatVector = power_table(bags, np.array([power])).means[0]
    return means


def mean(bags: Bags) -> FloatVector:
    """Return the mean of each segment's importances."""
    return bags.reduce(np.add, bags.values) / np.where(bags.lengths > 0, bags.lengths, 1)
