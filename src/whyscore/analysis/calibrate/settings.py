"""The settings of a calibration: what is tried, how p and w are chosen, how the choice is judged."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal, NamedTuple, cast

import numpy as np

from whyscore.aggregate import Family, PowerMean
from whyscore.analysis.calibrate.rules import EPSILON, FOLDS, WEIGHTS, Rule
from whyscore.analysis.explain import MaskingSettings
from whyscore.errors import SpecError, UserError
from whyscore.metrics.boosted import Parts
from whyscore.registry import build, spec_of
from whyscore.settings import Judged, Seeded, again, option
from whyscore.stats.matrices import Permute
from whyscore.types import FloatVector

DEFAULT_RULE: Rule = "cautious"
COARSE = 120
"""Steps of the coarse grid."""

Correction = Literal["holm", "bonferroni", "none"]
Mode = Literal["default", "paper", "compat"]
"""Our choices, the BMX paper's, or those of its public code."""


class Search(NamedTuple):
    """What is tried and how it is chosen, with every default filled in."""

    rule: Rule
    epsilon: float
    parameters: FloatVector
    weights: FloatVector
    scale: str
    family: Family
    keep_reversed: bool


class Testing(NamedTuple):
    """How gains are tested, with every default filled in."""

    permute: Permute
    compat: Literal["nlpstats"] | None
    """Whether p = c / n from the random numbers of nlpstats."""
    correction: Correction

    @property
    def name(self) -> str:
        """The test, as it stands beside its p-values."""
        return f"permute {self.permute}, p = {'c / n as in nlpstats' if self.compat else '(c + 1) / (n + 1)'}"


def grid_of(text: str) -> str | list[float]:
    """Return the name of a grid, or its values from START:STOP:STEP, both ends included.

    >>> grid_of("-1:1:0.5")
    [-1.0, -0.5, 0.0, 0.5, 1.0]
    """
    if ":" not in text:
        return text
    try:
        start, stop, step = map(float, text.split(":"))
    except ValueError:
        raise UserError(f"cannot read the grid {text!r}: write START:STOP:STEP, for example -30:30:0.5") from None
    if not step > 0 or stop < start:
        raise UserError(f"the grid {text!r} is empty: STEP must be above 0 and STOP not below START")
    count = int((stop - start) / step + 1e-9) + 1
    return [round(start + k * step, 10) for k in range(count)]


@dataclass(frozen=True, kw_only=True)
class ChoosingSettings:
    """What is tried, and the rule that chooses p and w."""

    TITLE: ClassVar[str] = "choosing"

    rule: Rule | None = option(None, "how p and w are chosen (default: cautious)", basic=True)
    mode: Mode = option("default", "follow the BMX paper (paper) or its public code (compat) in every choice")
    epsilon: float | None = option(None, "gains up to this size count as none (default: 0.001)", metavar="G")
    aggregator: str | Family = option(
        "power_mean", "the mean whose parameter is varied", flags=("-a", "--aggregator"), metavar="SPEC"
    )
    grid: str | Sequence[float] | None = option(
        None,
        "values of p to try: default (601), compat (600, as in the paper), coarse (121), or =START:STOP:STEP",
        parse=grid_of,
        metavar="NAME",
        basic=True,
    )
    weights: tuple[float, ...] = option(WEIGHTS, "weights of the original score to try besides 1", line=False)
    scale: Literal["raw", "z"] = option(
        "raw", "z: first scale the aggregate to the mean and standard deviation of the scores"
    )

    @cached_property
    def search(self) -> Search:
        """What is tried, checked; the mode fills in what was not given."""
        tried = np.array(sorted(set(self.weights)), dtype=np.float64)
        if not len(tried) or tried.min() < 0 or tried.max() >= 1:
            raise SpecError(
                f"weights are {list(self.weights)}, expected numbers from 0 to below 1; 1 is always a candidate"
            )
        least = self.epsilon if self.epsilon is not None else (EPSILON if self.mode == "default" else 0.0)
        if not 0 <= least < 1:
            raise SpecError(f"epsilon is {least!r}, expected a gain of 0 or more")
        family = cast(
            "Family", build(self.aggregator, "aggregator") if isinstance(self.aggregator, str) else self.aggregator
        )
        grid = self.grid if self.grid is not None else ("default" if self.mode == "default" else "compat")
        return Search(
            self.rule or (DEFAULT_RULE if self.mode == "default" else "median"),
            least,
            parameters_of(grid, family),
            tried,
            self.scale,
            family,
            self.mode == "paper",
        )


@dataclass(frozen=True, kw_only=True)
class TestedSettings(ChoosingSettings):
    """How gains are tested: both modes that follow the paper test as it did."""

    TITLE: ClassVar[str] = "tests on held-out data"

    resamples: int = option(9999, "permutations behind each p-value; 0: no tests or intervals", metavar="N", least=0)
    correction: Correction | None = option(
        None, "correction of the p-values in a family (default: holm; bonferroni with --mode paper or compat)"
    )
    permute: Permute | None = option(
        None, "what a permutation swaps (default: cell; row_xor_column with --mode paper or compat)"
    )

    @property
    def testing(self) -> Testing:
        """How gains are tested; the mode fills in what was not given."""
        if self.mode == "default":
            return Testing(self.permute or "cell", None, self.correction or "holm")
        return Testing(self.permute or "row_xor_column", "nlpstats", self.correction or "bonferroni")

    def choices(self, family: str) -> tuple[str, ...]:
        """Return what a mode chose, and what its source leaves open; `family` names the tests corrected together."""
        if self.mode == "default":
            return ()
        search, testing = self.search, self.testing
        p, w = search.parameters, search.weights
        vote = "keep their vote" if search.keep_reversed else "have no vote"
        choices = [
            f"{len(p)} values of p from {p[0]:g} to {p[-1]:g}",
            f"w {', '.join(f'{weight:g}' for weight in w)}",
            f"gains above {search.epsilon:g} count",
            f"rule {search.rule}",
            f"settings with a correlation of 0 or below {vote}",
            f"permute-both: {testing.name}, one-sided, {self.resamples} resamples",
            f"correction {testing.correction} over {family}",
        ]
        named = f"mode {self.mode}: {'; '.join(choices)}"
        return (named, _OPEN) if self.mode == "paper" else (named,)


_OPEN = (
    "the paper leaves open: which end of its p grid is missing (600 values with steps of 0.1 in [-30, 30]; here 30), "
    "how p-values are counted (here as nlpstats does), the number of resamples, and the seeds of LIME and SHAP"
)


@dataclass(frozen=True, kw_only=True)
class AgreementSettings:
    """Which human scores count, and how agreement with them is measured."""

    TITLE: ClassVar[str] = "agreement with human scores"

    human: tuple[str, ...] | None = again(Judged, "human", basic=True)
    group: str | None = option(
        None, "column that splits the data into groups, such as the language pair", metavar="COLUMN", basic=True
    )
    level: str = option("global", "global, segment, system or within_system", metavar="NAME", basic=True)
    coefficient: tuple[str, ...] = option(
        ("pearson",),
        "pearson (default), spearman, kendall; auc or accuracy for human scores with two values",
        flags=("--coefficient", "--coefficients"),
        metavar="NAME",
        basic=True,
    )


@dataclass(frozen=True, kw_only=True)
class JudgingSettings(AgreementSettings, TestedSettings, Seeded):
    """How a calibration of explained segments is made and judged."""

    TITLE: ClassVar[str] = "tests on held-out data"

    folds: int = option(FOLDS, "cross-validation folds for the gains on held-out documents", metavar="N", least=2)
    keep_gains: bool = option(False, "keep the whole grid of gains in the calibration")


@dataclass(frozen=True, kw_only=True)
class CalibrateSettings(JudgingSettings, MaskingSettings):
    """What `calibrate` takes."""

    TITLE: ClassVar[str] = "explanations"

    parts: Parts = option("all", "texts whose word importances are aggregated")


@dataclass(frozen=True, kw_only=True)
class WeightSettings(AgreementSettings, Seeded):
    """What `fit_weights` takes."""

    TITLE: ClassVar[str] = "tests on held-out data"

    folds: int = option(5, "number of cross-validation folds", metavar="N")


def parameters_of(grid: str | Sequence[float], family: Family) -> FloatVector:
    """Return the values of an aggregator's parameter that are tried, smallest first.

    >>> from whyscore.aggregate import PowerMean
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
