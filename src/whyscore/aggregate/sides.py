"""A power mean with one power for the hypothesis and another for the texts it is compared with.

1. Regularise all importances of a segment together, as `power` does: both sides keep one scale.
2. Take the power mean of the words of the hypothesis with p, that of references and source with `reference`.
3. Mean of the two, each counted by its words: equal powers of 1 give the mean over all words, as `power_mean(p=1)`.
   A segment with words on one side alone has that side's mean.

A mean is determined by the floor where it carries both sides. Calibration varies p; `reference` stays as it was given.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from whyscore.aggregate.bags import Bags
from whyscore.aggregate.power import Floor, PowerMean, Powers, PowerTable, check_power, regularised
from whyscore.errors import SpecError
from whyscore.options import check_fields
from whyscore.types import FloatMatrix, FloatVector

WHO = "per_side"


@dataclass(frozen=True, slots=True)
class PerSide:
    """The power mean of each side's words, with a power of its own for each."""

    p: float = 1.0
    reference: float = 1.0
    floor: Floor = "tiny"

    parameter: ClassVar[str] = "p"

    def __post_init__(self) -> None:
        """Refuse powers out of range."""
        check_fields(self)
        check_power(WHO, self.p)
        check_power(f"{WHO} (reference)", self.reference)

    def aggregate(self, importance: FloatVector) -> float:
        """Return the mean of a bare vector, which is taken for the words of a hypothesis."""
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
