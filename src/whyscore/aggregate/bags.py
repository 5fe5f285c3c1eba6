"""The importances of many segments side by side, however many words each has.

All values stand in one flat vector, segment after segment, so that numpy can work on all of them at once. Every
reduction gives a segment the same number whatever stands beside it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

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
        lengths = np.array([len(one) for one in importances], dtype=np.int64)
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
        own = self.lengths if self.hypothesis is None else self.hypothesis
        return np.arange(len(self.values)) >= np.repeat(self.starts + self.lengths - own, self.lengths)

    def sided(self, hypothesis: Counts) -> "Bags":
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
        own = None if self.hypothesis is None else self.hypothesis[segments]
        return Bags(self.values[places], lengths, own)

    def reduce(self, function: np.ufunc, values: FloatVector) -> FloatVector:
        """Return a function's reduction of each segment's values; NaN where a segment has none."""
        result = np.full(len(self.lengths), np.nan)
        if values.size:
            result[self._full] = function.reduceat(values, self.starts[self._full])
        return result

    def spread(self, numbers: FloatVector) -> FloatVector:
        """Return one number per segment, repeated for each of its values."""
        return np.repeat(numbers, self.lengths)

    def ordered(self) -> "Bags":
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
    """Means by parameter (rows) and segment (columns), and how much of each hangs on the floor."""

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
