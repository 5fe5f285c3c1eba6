"""What is tried and how it is chosen: rule, smallest gain, grid of parameters, weights, scale and aggregator."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple, cast

import numpy as np

from whyscore.aggregate.bags import Family
from whyscore.aggregate.power import PowerMean
from whyscore.analysis.calibrate.rules import EPSILON, RULES, Rule
from whyscore.errors import SpecError
from whyscore.registry import build, spec_of
from whyscore.types import FloatVector

DEFAULT_RULE: Rule = "cautious"
COARSE = 120
"""Steps of the coarse grid."""

Mode = Literal["default", "paper", "compat"]
"""Our choices, the BMX paper's, or those of its public code."""


class Options(NamedTuple):
    """The choices behind a calibration."""

    rule: Rule
    epsilon: float
    parameters: FloatVector
    weights: FloatVector
    scale: str
    family: Family
    keep_reversed: bool


def options_of(
    mode: Mode,
    *,
    rule: Rule | None,
    epsilon: float | None,
    grid: str | Sequence[float] | None,
    weights: Sequence[float],
    scale: str,
    aggregator: str | Family,
) -> Options:
    """Return the options, checked; a mode fills in what was not given."""
    if mode not in ("default", "paper", "compat"):
        raise SpecError(f"mode is {mode!r}, expected 'default', 'paper' or 'compat'")
    if rule is not None and rule not in RULES:
        raise SpecError(f"no rule named {rule!r}: use {', '.join(RULES)}")
    if scale not in ("raw", "z"):
        raise SpecError(f"scale is {scale!r}, expected 'raw' or 'z'")
    tried = np.array(sorted(set(weights)), dtype=np.float64)
    if not len(tried) or tried.min() < 0 or tried.max() >= 1:
        raise SpecError(f"weights are {list(weights)}, expected numbers from 0 to below 1; 1 is always a candidate")
    least = epsilon if epsilon is not None else (EPSILON if mode == "default" else 0.0)
    if not 0 <= least < 1:
        raise SpecError(f"epsilon is {least!r}, expected a gain of 0 or more")
    family = cast("Family", build(aggregator, "aggregator") if isinstance(aggregator, str) else aggregator)
    asked = grid if grid is not None else ("compat" if mode == "compat" else "default")
    return Options(
        rule or (DEFAULT_RULE if mode == "default" else "median"),
        least,
        parameters_of(asked, family),
        tried,
        scale,
        family,
        mode == "paper",
    )


def parameters_of(grid: str | Sequence[float], family: Family) -> FloatVector:
    """Return the values of an aggregator's parameter that are tried, smallest first.

    >>> from whyscore.aggregate.power import PowerMean
    >>> [len(parameters_of(name, PowerMean())) for name in ("default", "compat", "coarse")]
    [601, 600, 121]
    """
    if not isinstance(grid, str):
        values = np.array(sorted(set(grid)), dtype=np.float64)
        if not len(values) or family.parameter is None:
            raise SpecError(f"a grid of {len(values)} values does not fit {spec_of(family)}")
        for value in values[[0, -1]].tolist():
            at(family, value)  # refuses what is out of range
        return values
    if grid not in ("default", "compat", "coarse"):
        raise SpecError(f"no grid named {grid!r}: use default, compat or coarse, or give the values")
    default = family.grid()
    if grid == "coarse":
        return default[:: max(1, len(default) // COARSE)] if len(default) > 1 else default
    if grid == "default" or len(default) == 1:
        return default
    values = np.arange(-30, 30, 0.1)
    values[300] = 0.0  # 4.26e-13 in the public code, whose formula is off by 2e-4 there; the exact limit
    return values


def at(family: Family, value: float) -> Family:
    """Return the aggregator with its parameter at a value."""
    if family.parameter is None:
        return family
    return cast("Family", replace(cast("PowerMean", family), **{family.parameter: value}))  # type: ignore[arg-type]
