"""Tests between metrics, and the clusters they support."""

import math
from collections.abc import Mapping
from itertools import combinations
from typing import NamedTuple, Protocol

import numpy as np

from whyscore.errors import SpecError
from whyscore.jobs.metaevaluation import MetricTest
from whyscore.stats.clusters import Clusters, clusters
from whyscore.stats.correction import corrected
from whyscore.stats.intervals import bootstrap_difference
from whyscore.stats.matrices import Missing
from whyscore.stats.measures import Measure
from whyscore.stats.outcomes import outcome_test
from whyscore.stats.permutation import PermutationTest, at_least, permutation_test
from whyscore.stats.swaps import Permute
from whyscore.stats.williams import williams
from whyscore.types import FloatMatrix

METHODS = {
    "permutation": "permutation test, permute {permute}",
    "bootstrap": "paired bootstrap over systems and segments",
    "williams": "Williams' test",
}
_UNTESTED = ("spa", "pdp", "kendall_like")


class Options(Protocol):
    """What a test needs to know."""

    @property
    def test(self) -> str | None:
        """Which test, None for no test."""

    @property
    def permute(self) -> Permute:
        """Which cells change places together."""

    @property
    def correction(self) -> str:
        """Of the p-values of all pairs."""

    @property
    def alpha(self) -> float:
        """The p-value that counts."""

    @property
    def test_draws(self) -> int:
        """Resamples."""

    @property
    def seed(self) -> int:
        """Fixes them."""

    @property
    def missing(self) -> Missing:
        """What to do with cells that one matrix lacks."""


class _Both(NamedTuple):
    """The p-values of "the first is better" and of "the second is better"."""

    delta: float
    first: float
    second: float
    exact: bool
    reason: str | None


def compare_metrics(
    metrics: Mapping[str, FloatMatrix],
    human: FloatMatrix,
    values: Mapping[str, float],
    of: tuple[Measure, str | None],
    options: Options,
) -> tuple[tuple[MetricTest, ...], Clusters | None]:
    """Return the tests of every two metrics, the better one first, and the clusters; nothing where no test is asked.

    `of` is the measure and the group that it is taken of.
    """
    measure, group = of
    if options.test is None:
        return (), None
    if options.test not in METHODS:
        raise SpecError(f"no test named {options.test!r}: use {', '.join(METHODS)}")
    if measure.name in _UNTESTED:
        raise SpecError(
            f"{measure.name} has no test of two metrics here: use a coefficient, pairwise_accuracy or acc_eq"
        )
    names = list(metrics)
    found = {
        (i, j): _pair(metrics[names[i]], metrics[names[j]], human, measure, options)
        for i, j in combinations(range(len(names)), 2)
    }
    better = {pair: one.delta >= 0 or math.isnan(one.delta) for pair, one in found.items()}
    raw = [one.first if better[pair] else one.second for pair, one in found.items()]
    adjusted = dict(zip(found, corrected(options.correction, raw, options.alpha).adjusted, strict=True))
    method = method_of(options.test, measure, options.permute)
    tests = []
    for (i, j), one in found.items():
        first, second, p_value = (i, j, one.first) if better[i, j] else (j, i, one.second)
        facts = (abs(one.delta), p_value, adjusted[i, j], method, one.exact, group, one.reason)
        tests.append(MetricTest(names[first], names[second], *facts))

    def p(i: int, j: int) -> float:
        pair, forward = (min(i, j), max(i, j)), i < j
        return adjusted[pair] if better[pair] == forward else 1.0

    return tuple(tests), clusters(names, [values[name] for name in names], p, alpha=options.alpha)


def method_of(test: str, measure: Measure, permute: Permute) -> str:
    """Return the name of a test with what it permutes; of `acc_eq`, that is outcomes of pairs."""
    return METHODS[test].format(permute="pairs" if measure.name == "acc_eq" else permute)


def _pair(x: FloatMatrix, y: FloatMatrix, z: FloatMatrix, measure: Measure, options: Options) -> _Both:
    coefficient = "acc_23" if measure.name == "pairwise_accuracy" else measure.name
    if options.test == "williams":
        one, other = (
            williams(*pair, z, coefficient, alternative="greater", missing=options.missing) for pair in ((x, y), (y, x))
        )
        return _Both(one.delta, one.p, other.p, exact=False, reason=one.reason)
    if options.test == "bootstrap":
        if measure.name == "acc_eq":
            raise SpecError("acc_eq is tested by permutation: use the test permutation")
        drawn = bootstrap_difference(
            *(x, y, z, measure.level, coefficient), n=options.test_draws, seed=options.seed, missing=options.missing
        )
        delta = drawn.estimate.value
        return _Both(delta, drawn.sign, 1 - drawn.sign, exact=False, reason=drawn.estimate.reason)
    if measure.name == "acc_eq":
        swapped = outcome_test(
            *(x, y, z, measure.level), alternative="greater", n=options.test_draws, seed=options.seed,
            missing=options.missing, keep=True,
        )  # fmt: skip
    else:
        swapped = permutation_test(
            *(x, y, z, measure.level, coefficient), permute=options.permute, alternative="greater",
            n=options.test_draws, seed=options.seed, missing=options.missing, keep=True,
        )  # fmt: skip
    return _Both(swapped.delta, swapped.p, _turned(swapped), swapped.exact, swapped.reason)


def _turned(found: PermutationTest) -> float:
    """Return the p-value of the other direction, from the same swaps."""
    if found.samples is None:
        return math.nan
    known = found.samples[~np.isnan(found.samples)]
    extreme = int(at_least(known, found.delta, "less").sum())
    return extreme / len(known) if found.exact else (extreme + 1) / (len(known) + 1)
