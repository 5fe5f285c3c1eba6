"""The importances of many segments side by side, however many words each has.

All values stand in one flat vector, segment after segment, so that numpy can work on all of them at once. Every
reduction gives a segment the same number whatever stands beside it.

The power mean of BMX (Leiter, Nguyen and Eger 2022, arXiv 2212.10469), in log space.

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

Means beside the power mean; none of them needs the importances to be positive, but for `lehmer`.

| aggregator | number |
|---|---|
| `exp_mean(t)` | log(mean of e^(t phi)) / t; t -> 0 the mean, +-inf max and min |
| `geometric` | the power mean at p = 0: exp(mean of log v), v shifted above 0 as BMX does |
| `lehmer(p)` | sum of v^p / sum of v^(p-1), v shifted above 0 as BMX does |
| `quantile(q)` | the value below which a share q of the importances lies, interpolated |
| `trimmed(share)` | the mean without that share of the values at each end |
| `mean`, `min`, `max` | what they say |
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from whyscore.errors import SpecError
from whyscore.settings import check_fields
from whyscore.types import FloatMatrix, FloatVector

Counts = NDArray[np.int64]
"""One whole number per segment."""


@dataclass(frozen=True, eq=False)
class Bags:
    """One bag of importances per segment: all values in a row, and how many belong to each segment."""

    values: FloatVector
    lengths: Counts
    hypothesis: Counts | None = None
    """How many values of each segment, its last ones, belong to the hypothesis; None where nobody said."""

    @classmethod
    def of(cls, importances: Sequence[FloatVector]) -> Self:
        """Return the bags of several vectors, one per segment."""
        lengths = np.array([len(importance) for importance in importances], dtype=np.int64)
        values = np.concatenate([*importances, np.zeros(0)]).astype(np.float64)
        return cls(values, lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def starts(self) -> Counts:
        """Where the values of each segment begin."""
        return np.concatenate([[0], np.cumsum(self.lengths)[:-1]]).astype(np.int64)[: len(self.lengths)]

    @cached_property
    def owners(self) -> Counts:
        """Which segment each value belongs to."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @cached_property
    def of_hypothesis(self) -> NDArray[np.bool_]:
        """Which values belong to the hypothesis; all where nobody said."""
        counts = self.lengths if self.hypothesis is None else self.hypothesis
        return np.arange(len(self.values)) >= np.repeat(self.starts + self.lengths - counts, self.lengths)

    def with_sides(self, hypothesis: Counts) -> "Bags":
        """Return the same bags, knowing how many values at the end of each belong to the hypothesis."""
        return Bags(self.values, self.lengths, hypothesis)

    @cached_property
    def _full(self) -> NDArray[np.bool_]:
        return self.lengths > 0

    def of_segment(self, segment: int) -> FloatVector:
        """Return the importances of one segment."""
        start = int(self.starts[segment])
        return self.values[start : start + int(self.lengths[segment])]

    def take(self, segments: NDArray[np.int64]) -> "Bags":
        """Return the bags of some segments, in the order asked."""
        lengths = self.lengths[segments]
        shifts = np.concatenate([[0], np.cumsum(lengths)[:-1]])[: len(lengths)]
        places = np.arange(lengths.sum()) + np.repeat(self.starts[segments] - shifts, lengths)
        hypothesis = None if self.hypothesis is None else self.hypothesis[segments]
        return Bags(self.values[places], lengths, hypothesis)

    def reduce(self, function: np.ufunc, values: FloatVector) -> FloatVector:
        """Return a function's reduction of each segment's values; NaN where a segment has none."""
        result = np.full(len(self.lengths), np.nan)
        if values.size:
            result[self._full] = function.reduceat(values, self.starts[self._full])
        return result

    def spread(self, numbers: FloatVector) -> FloatVector:
        """Return one number per segment, repeated for each of its values."""
        return np.repeat(numbers, self.lengths)

    def sort_values(self) -> "Bags":
        """Return the same bags, the values of each from small to large; NaN comes last."""
        order = np.lexsort((self.values, self.owners))
        return Bags(self.values[order], self.lengths)


@runtime_checkable
class Family(Protocol):
    """An aggregator with one parameter, or none, which can be tried at many values at once."""

    @property
    def parameter(self) -> str | None:
        """The name of the field that is varied."""

    def grid(self) -> FloatVector:
        """Return the values that are tried where nobody says which."""

    def table(self, bags: Bags, parameters: FloatVector) -> FloatMatrix:
        """Return one number per parameter (rows) and segment (columns); NaN where a segment has no importance."""


class PowerTable(NamedTuple):
    """Means by parameter (rows) and segment (columns), and how much of each the floor value determines."""

    means: FloatMatrix
    floored: FloatMatrix
    """The share of the sum of v^p that the values at the floor carry, 0 to 1."""


@runtime_checkable
class FlooredFamily(Family, Protocol):
    """A family that raises low importances to a floor, and says how much of a mean the floor carries."""

    @property
    def p(self) -> float:
        """The parameter as it was given."""

    def powers(self, bags: Bags, parameters: FloatVector) -> PowerTable:
        """Return the means, with what the floor carries of each."""


@runtime_checkable
class SidedFamily(FlooredFamily, Protocol):
    """A family that aggregates the words of the hypothesis and those of the other texts apart."""

    @property
    def reference(self) -> float:
        """The parameter of the other texts."""


Floor = Literal["tiny", "relative"]

TINY = 1e-9
LARGEST = 300.0
"""Powers up to this size are allowed, and infinite ones."""

_POWERS = np.arange(-300, 301) / 10  # -30.0, -29.9 ... 30.0: 601 values with an exact 0
_ZERO = 1e-6
_EQUAL = 1e-9  # steps of a grid that differ less are equal
_FRESH = 15
_SHARE_OF_RANGE = 0.01


class _Single:
    """What all aggregators share: one segment is a table of one."""

    __slots__ = ()
    parameter: ClassVar[str | None] = None
    tried: ClassVar[FloatVector] = np.zeros(1)

    def aggregate(self, importance: FloatVector) -> float:
        parameter = getattr(self, self.parameter) if self.parameter else 0.0
        return float(self.table(Bags.of([importance]), np.array([parameter]))[0, 0])

    def grid(self) -> FloatVector:
        return self.tried.copy()

    def table(self, bags: Bags, parameters: FloatVector) -> FloatMatrix:
        """Return the numbers of all segments for all parameters."""
        return np.stack([self._row(bags, float(value)) for value in parameters])

    def _row(self, bags: Bags, value: float) -> FloatVector:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class PowerMean(_Single):
    """The power mean of the importances: p = 1 the mean, 0 the geometric mean, -inf the smallest, inf the largest."""

    p: float = 1.0
    floor: Floor = "tiny"

    parameter: ClassVar[str | None] = "p"
    tried: ClassVar[FloatVector] = _POWERS

    def __post_init__(self) -> None:
        check_fields(self)
        check_power("power_mean", self.p)

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
    """Return the power means of all segments for all powers, with what the floor carries of each.

    >>> power_table(Bags.of([np.array([0.5, 0.4, 0.2, 0.0])]), np.array([2.0])).means.round(9)
    array([[0.3354102]])
    """
    values, floors = regularise(bags, floor)
    worker = Powers(bags, values, floors)
    means, floored = np.empty((len(powers), len(bags))), np.empty((len(powers), len(bags)))
    for row, power in enumerate(powers.tolist()):
        means[row], floored[row] = worker.mean(power)
    return PowerTable(means, floored)


def regularise(bags: Bags, floor: Floor) -> tuple[FloatVector, FloatVector]:
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
class PerSide(_Single):
    """The power mean of each side's words, with a power of its own for each."""

    p: float = 1.0
    reference: float = 1.0
    floor: Floor = "tiny"

    parameter: ClassVar[str | None] = "p"
    tried: ClassVar[FloatVector] = _POWERS

    def __post_init__(self) -> None:
        check_fields(self)
        check_power(WHO, self.p)
        check_power(f"{WHO} (reference)", self.reference)

    def aggregate(self, importance: FloatVector) -> float:
        bags = Bags.of([importance])
        return float(self.table(bags.with_sides(bags.lengths), np.array([self.p]))[0, 0])

    def table(self, bags: Bags, parameters: FloatVector) -> FloatMatrix:
        """Return the mean of every segment for every power of the hypothesis."""
        return self.powers(bags, parameters).means

    def powers(self, bags: Bags, parameters: FloatVector) -> PowerTable:
        """Return the means, with what the floor carries of the side where it carries less."""
        if bags.hypothesis is None:
            raise SpecError(f"{WHO}: it is not known which words belong to the hypothesis; use power_mean")
        values, floors = regularise(bags, self.floor)
        in_hypothesis = bags.of_hypothesis
        sides = [
            Bags(values[in_hypothesis], bags.hypothesis),
            Bags(values[~in_hypothesis], bags.lengths - bags.hypothesis),
        ]
        first, second = (Powers(side, side.values, floors) for side in sides)
        fixed = second.mean(self.reference)
        rows = [_join(bags, sides, (first.mean(power), fixed)) for power in parameters.tolist()]
        return PowerTable(np.stack([row[0] for row in rows]), np.stack([row[1] for row in rows]))


def _join(
    bags: Bags, sides: list[Bags], results: tuple[tuple[FloatVector, FloatVector], tuple[FloatVector, FloatVector]]
) -> tuple[FloatVector, FloatVector]:
    """Return the mean over both sides by their words, and the smaller share of the floor."""
    total, least = np.zeros(len(bags)), np.full(len(bags), np.inf)
    for side, (means, floored) in zip(sides, results, strict=True):
        there = side.lengths > 0
        total[there] += side.lengths[there] * means[there]
        least[there] = np.minimum(least[there], floored[there])
    words = np.where(bags.lengths > 0, bags.lengths, np.nan)
    return total / words, np.where(bags.lengths > 0, least, np.nan)


_NO_EXPONENT = 1e-12
_HALF = 0.5


@dataclass(frozen=True, slots=True)
class ExpMean(_Single):
    """The exponential mean: large t looks at the highest importances, negative t at the lowest."""

    t: float = 1.0

    parameter: ClassVar[str | None] = "t"
    tried: ClassVar[FloatVector] = _POWERS  # for importances of scores from 0 to 1

    def __post_init__(self) -> None:
        check_fields(self)
        if np.isnan(self.t):
            raise SpecError(f"exp_mean: t is {self.t!r}, expected a number, inf or -inf")

    def _row(self, bags: Bags, value: float) -> FloatVector:
        if abs(value) < _NO_EXPONENT:
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
    tried: ClassVar[FloatVector] = _POWERS

    def __post_init__(self) -> None:
        check_fields(self)
        check_power("lehmer", self.p)

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
    tried: ClassVar[FloatVector] = np.arange(101) / 100

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0 <= self.q <= 1:
            raise SpecError(f"quantile: q is {self.q!r}, expected a number from 0 to 1")

    def table(self, bags: Bags, parameters: FloatVector) -> FloatMatrix:
        """Return the quantiles of all segments, sorted once."""
        ordered = bags.sort_values()
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
    tried: ClassVar[FloatVector] = np.arange(50) / 100

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0 <= self.share < _HALF:
            raise SpecError(f"trimmed: share is {self.share!r}, expected a number from 0 to below 0.5")

    def table(self, bags: Bags, parameters: FloatVector) -> FloatMatrix:
        """Return the trimmed means of all segments, sorted once."""
        ordered = bags.sort_values()
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
