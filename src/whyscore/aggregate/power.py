"""The power mean of BMX (Leiter, Nguyen and Eger 2022, arXiv 2212.10469), in log space.

1. Regularise: v = phi + r + 1e-9, with r = |min phi| where a segment has an importance of 0 or below, else 0.
2. M_p(v) = (mean of v^p)^(1/p) = exp((LSE(p log v) - log n) / p), with log-sum-exp, so that no power and no product is
   ever formed: 720 words would underflow. |p| < 1e-6 takes the limit exp(mean of log v), p = +-inf max and min.
3. Say how much of the sum the values at the floor carry. A shifted segment has at least one value at exactly 1e-9; for
   p of -1 and below that value decides alone, and M_p is a count of words: 1e-9 (n / c)^(1/|p|).

`floor="relative"` raises the lowest value to 1 % of the segment's range instead of 1e-9, so that a negative p still
looks at the other words.

`PerSide` has one power for the hypothesis and another for the texts it is compared with:

1. Regularise all importances of a segment together, as above: both sides keep one scale.
2. Take the power mean of the words of the hypothesis with p, that of references and source with `reference`.
3. Mean of the two, each counted by its words: equal powers of 1 give the mean over all words, as `power_mean(p=1)`.
   A segment with words on one side alone has that side's mean.

A mean is determined by the floor where it carries both sides. Calibration varies p; `reference` stays as it was given.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from whyscore.aggregate.bags import Bags, PowerTable
from whyscore.errors import SpecError
from whyscore.settings import check_fields
from whyscore.types import FloatMatrix, FloatVector

Floor = Literal["tiny", "relative"]

TINY = 1e-9
LARGEST = 300.0
"""Powers up to this size are allowed, and infinite ones."""

_ZERO = 1e-6
_EQUAL = 1e-9  # steps of a grid that differ less are equal
_FRESH = 15
_SHARE_OF_RANGE = 0.01


@dataclass(frozen=True, slots=True)
class PowerMean:
    """The power mean of the importances: p = 1 the mean, 0 the geometric mean, -inf the smallest, inf the largest."""

    p: float = 1.0
    floor: Floor = "tiny"

    parameter: ClassVar[str] = "p"

    def __post_init__(self) -> None:
        check_fields(self)
        check_power("power_mean", self.p)

    def aggregate(self, importance: FloatVector) -> float:
        """Return the power mean; NaN for no importance at all.

        >>> round(PowerMean(2.0).aggregate(np.array([0.5, 0.4, 0.2, 0.0])), 9)
        0.335410197
        """
        return float(self.table(Bags.of([importance]), np.array([self.p]))[0, 0])

    def grid(self) -> FloatVector:
        """Return -30.0, -29.9 ... 30.0: 601 values with an exact 0."""
        return np.arange(-300, 301) / 10

    def table(self, bags: Bags, parameters: FloatVector) -> FloatMatrix:
        """Return the mean of every segment for every power."""
        return self.powers(bags, parameters).means

    def powers(self, bags: Bags, parameters: FloatVector) -> PowerTable:
        """Return the means, with what the floor carries of each."""
        return power_table(bags, parameters, self.floor)


def check_power(who: str, p: float) -> None:
    """Refuse a power that is no number, or too large to mean anything but max or min."""
    if np.isnan(p) or (np.isfinite(p) and abs(p) > LARGEST):
        raise SpecError(f"{who}: p is {p!r}, expected a number from -300 to 300, or inf or -inf")


def power_table(bags: Bags, powers: FloatVector, floor: Floor = "tiny") -> PowerTable:
    """Return the power means of all segments for all powers, with what the floor carries of each."""
    values, floors = regularised(bags, floor)
    worker = Powers(bags, values, floors)
    means, floored = np.empty((len(powers), len(bags))), np.empty((len(powers), len(bags)))
    for row, power in enumerate(powers.tolist()):
        means[row], floored[row] = worker.mean(power)
    return PowerTable(means, floored)


def regularised(bags: Bags, floor: Floor) -> tuple[FloatVector, FloatVector]:
    """Return the values made positive, and for each shifted segment its lowest value (NaN for the others)."""
    low = bags.reduce(np.minimum, bags.values)
    raised = np.where(low <= 0, -low, 0.0)
    least = np.full(len(bags), TINY)
    if floor == "relative":
        width = bags.reduce(np.maximum, bags.values) - low
        least = np.where(width > 0, _SHARE_OF_RANGE * width, TINY)
    values = (bags.values + bags.spread(raised)) + bags.spread(least)
    return values, np.where(low <= 0, least, np.nan)


class Powers:
    """Powers of all values, as exponentials of logarithms measured from each segment's largest or smallest value.

    Where powers come in equal steps, as in a grid, each is the one before times the power of the step: a product
    instead of an exponential. Every `_FRESH` steps it starts anew, so that rounding stays below 1e-13.
    """

    def __init__(self, bags: Bags, values: FloatVector, floors: FloatVector) -> None:
        self._bags = bags
        self._count = np.where(bags.lengths > 0, bags.lengths, 1).astype(np.float64)
        self._high, self._low = bags.reduce(np.maximum, values), bags.reduce(np.minimum, values)
        self._logs = np.log(values)
        tied = bags.reduce(np.add, (values == bags.spread(floors)).astype(np.float64))
        self._tied = np.where(np.isnan(floors) & ~np.isnan(self._low), 0.0, tied)
        self._distance: FloatVector = np.zeros(0)
        self._raised: FloatVector = np.zeros(0)
        self._factor: FloatVector | None = None
        self._power, self._step, self._age = 0.0, 0.0, 0

    def mean(self, power: float) -> tuple[FloatVector, FloatVector]:
        """Return the means for one power, and the share of the floor in each."""
        if np.isinf(power):
            limit = self._high if power > 0 else self._low
            at_floor = (self._tied > 0) & (limit == self._low)
            return limit.copy(), np.where(np.isnan(limit), np.nan, at_floor)
        if abs(power) < _ZERO:
            return np.exp(self._bags.reduce(np.add, self._logs) / self._count), self._tied / self._count
        centre = np.log(self._high if power > 0 else self._low)
        total = self._bags.reduce(np.add, self._raise(power, centre))
        floored = self._tied * np.exp(power * (np.log(self._low) - centre)) / total
        return np.exp(centre + (np.log(total) - np.log(self._count)) / power), floored

    def _raise(self, power: float, centre: FloatVector) -> FloatVector:
        """Return (v / centre)^power of every value."""
        step = power - self._power
        if self._power == 0 or (self._power > 0) != (power > 0):
            self._distance = self._logs - self._bags.spread(centre)
            self._factor, self._step = None, step
        elif abs(step - self._step) > _EQUAL:
            self._factor, self._step = None, step
        elif self._age < _FRESH:
            if self._factor is None:
                self._factor = np.exp(step * self._distance)
            self._raised *= self._factor
            self._power, self._age = power, self._age + 1
            return self._raised
        self._raised = np.exp(power * self._distance)
        self._power, self._age = power, 0
        return self._raised


WHO = "per_side"


@dataclass(frozen=True, slots=True)
class PerSide:
    """The power mean of each side's words, with a power of its own for each."""

    p: float = 1.0
    reference: float = 1.0
    floor: Floor = "tiny"

    parameter: ClassVar[str] = "p"

    def __post_init__(self) -> None:
        check_fields(self)
        check_power(WHO, self.p)
        check_power(f"{WHO} (reference)", self.reference)

    def aggregate(self, importance: FloatVector) -> float:
        bags = Bags.of([importance])
        return float(self.table(bags.sided(bags.lengths), np.array([self.p]))[0, 0])

    def grid(self) -> FloatVector:
        """Return the powers of `power_mean`."""
        return PowerMean().grid()

    def table(self, bags: Bags, parameters: FloatVector) -> FloatMatrix:
        """Return the mean of every segment for every power of the hypothesis."""
        return self.powers(bags, parameters).means

    def powers(self, bags: Bags, parameters: FloatVector) -> PowerTable:
        """Return the means, with what the floor carries of the side where it carries less."""
        if bags.hypothesis is None:
            raise SpecError(f"{WHO}: nobody said which words belong to the hypothesis; use power_mean")
        values, floors = regularised(bags, self.floor)
        own = bags.of_hypothesis
        sides = [Bags(values[own], bags.hypothesis), Bags(values[~own], bags.lengths - bags.hypothesis)]
        first, second = (Powers(side, side.values, floors) for side in sides)
        fixed = second.mean(self.reference)
        rows = [_joined(bags, sides, (first.mean(power), fixed)) for power in parameters.tolist()]
        return PowerTable(np.stack([row[0] for row in rows]), np.stack([row[1] for row in rows]))


def _joined(
    bags: Bags, sides: list[Bags], found: tuple[tuple[FloatVector, FloatVector], tuple[FloatVector, FloatVector]]
) -> tuple[FloatVector, FloatVector]:
    """Return the mean over both sides by their words, and the smaller share of the floor."""
    total, least = np.zeros(len(bags)), np.full(len(bags), np.inf)
    for side, (means, floored) in zip(sides, found, strict=True):
        there = side.lengths > 0
        total[there] += side.lengths[there] * means[there]
        least[there] = np.minimum(least[there], floored[there])
    words = np.where(bags.lengths > 0, bags.lengths, np.nan)
    return total / words, np.where(bags.lengths > 0, least, np.nan)
