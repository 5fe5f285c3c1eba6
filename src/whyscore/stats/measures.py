"""Every measure of agreement under one roof: a name, the level it is made for, and what chance gives.

Coefficients (see `coefficients`) take any level; the others have their own. Averages over tasks that mix correlations
and accuracies map correlations to (r + 1) / 2 first.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal, NamedTuple

from numpy.typing import ArrayLike

from whyscore.errors import SpecError, UnknownName
from whyscore.stats.agreement import acc_eq, difference_correlation, kendall_like, soft_pairwise_accuracy
from whyscore.stats.coefficients import COEFFICIENTS, coefficient_of
from whyscore.stats.correlation import Correlation, Undefined, correlate
from whyscore.stats.matrices import TIE_TOLERANCE, Level, Missing, level_of


class Measure(NamedTuple):
    """A measure of agreement."""

    name: str
    level: Level
    """Its default level."""
    fixed: bool
    """Whether it has no other level."""
    chance: float | None
    """What a metric without any information gets; None where that depends on the ties."""


class Fine(NamedTuple):
    """Options that few users need."""

    undefined: Undefined = "leave_out"
    """Whether vectors without a value are left out of a mean, or count as 0."""
    tie_tolerance: float = TIE_TOLERANCE
    """Of means."""
    epsilon: float | None = None
    """Of `acc_eq`, where it is not to be fitted."""
    compat: bool = False
    """Whether `spa` is to be that of mt-metrics-eval."""


FINE = Fine()

MEASURES: dict[str, Measure] = {
    **{name: Measure(name, "system", fixed=False, chance=0.0) for name in COEFFICIENTS},
    "acc_23": Measure("acc_23", "system", fixed=False, chance=None),
    "tau_23": Measure("tau_23", "system", fixed=False, chance=None),
    "auc": Measure("auc", "global", fixed=False, chance=0.5),
    "accuracy": Measure("accuracy", "global", fixed=False, chance=None),
    "acc_eq": Measure("acc_eq", "segment", fixed=False, chance=None),
    "pairwise_accuracy": Measure("pairwise_accuracy", "system", fixed=True, chance=0.5),
    "spa": Measure("spa", "system", fixed=True, chance=0.5),
    "pdp": Measure("pdp", "segment", fixed=True, chance=0.0),
    "kendall_like": Measure("kendall_like", "segment", fixed=True, chance=0.0),
}
_ACCURACIES = ("acc_23", "acc_eq", "pairwise_accuracy", "spa", "auc", "accuracy")


def measure_of(name: str, level: str | None = None) -> Measure:
    """Return a measure at a level; at its default level if none is given.

    >>> measure_of("kendall", "input")
    Measure(name='kendall_b', level='segment', fixed=False, chance=0.0)
    """
    if name in MEASURES:
        measure = MEASURES[name]
    else:
        try:
            measure = MEASURES[coefficient_of(name)]
        except SpecError:
            raise UnknownName.among("coefficient", name, [*MEASURES, "kendall"]) from None
    at = measure.level if level is None else level_of(level)
    if measure.fixed and at != measure.level:
        raise SpecError(f"{measure.name} is made for the level {measure.level}, not {at}: leave the level out")
    return measure._replace(level=at)


def agree(
    x: ArrayLike, z: ArrayLike, measure: Measure, *, missing: Missing = "paired", seed: int = 0, fine: Fine = FINE
) -> tuple[Correlation, Mapping[str, float]]:
    """Return the agreement of a metric with people, and further facts (epsilon of `acc_eq`)."""
    name, at = measure.name, measure.level
    if name == "acc_eq":
        ties = acc_eq(x, z, at, epsilon=fine.epsilon, missing=missing)
        facts = {"epsilon": ties.epsilon, "at_zero": ties.at_zero}
        return ties, facts
    if name == "spa":
        compat: Literal["mtme"] | None = "mtme" if fine.compat else None
        return soft_pairwise_accuracy(x, z, seed=seed, missing=missing, compat=compat), {}
    if name in ("pdp", "kendall_like"):
        compute = difference_correlation if name == "pdp" else kendall_like
        return compute(x, z, missing=missing), {}
    # Pairwise accuracy is the same number: tied in both is right, tied in one is wrong.
    named = "acc_23" if name == "pairwise_accuracy" else name
    correlation = correlate(
        x, z, at, named, missing=missing, undefined=fine.undefined, tie_tolerance=fine.tie_tolerance
    )
    return replace(correlation, coefficient=name), {}


def as_share(value: float, measure: str) -> float:
    """Return a value on the scale 0 to 1, for averages over tasks that mix correlations and accuracies.

    >>> as_share(0.5, "pearson"), as_share(0.5, "spa")
    (0.75, 0.5)
    """
    return value if measure in _ACCURACIES else (value + 1) / 2


def average(values: Mapping[str, tuple[float, str]], weights: Mapping[str, float] | None = None) -> float:
    """Return the weighted mean over tasks of (value, measure); mapped to shares where measures are mixed."""
    mixed = len({measure in _ACCURACIES for _, measure in values.values()}) > 1
    weighed = [(1.0 if weights is None else weights[task]) for task in values]
    mapped = [as_share(value, measure) if mixed else value for value, measure in values.values()]
    total = math.fsum(weighed)
    return math.fsum(w * v for w, v in zip(weighed, mapped, strict=True)) / total if total else math.nan
