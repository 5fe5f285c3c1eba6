"""Tests between metrics, and the clusters they support."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np

from whyscore.analysis.metaeval.result import MetricTest
from whyscore.analysis.metaeval.settings import MetaevalScoresSettings
from whyscore.errors import SpecError
from whyscore.stats.correction import Clusters, clusters, corrected
from whyscore.stats.intervals import bootstrap_difference, shares
from whyscore.stats.measures import Measure
from whyscore.stats.significance import PermutationTest, at_least, outcome_test, permutation_test, williams
from whyscore.types import FloatMatrix, FloatVector

DRAWN = {"both": "systems and segments", "systems": "systems", "inputs": "segments"}
METHODS = {
    "permutation": "permutation test, permute {permute}",
    "bootstrap": "paired bootstrap over {drawn}",
    "williams": "Williams' test",
}
_BOOTSTRAPPED = ("spa", "pdp", "kendall_like")
"""The measures that are tested by the bootstrap alone."""

_PERMUTED = {"nlpstats": "permutation test as in nlpstats, permute {permute}, p = c / n"}


class _Both(NamedTuple):
    """The p-values of "the first is better" and of "the second is better"."""

    delta: float
    first: float
    second: float
    exact: bool
    reason: str | None


def run_pair_tests(
    metrics: Mapping[str, FloatMatrix], human: FloatMatrix, measure: Measure, settings: MetaevalScoresSettings
) -> tuple[MetricTest, ...]:
    """Return the tests of every two metrics, the better one first, not yet corrected; none where none is asked for."""
    if settings.test is None:
        return ()
    _check(measure, human, settings)
    method = method_of(measure, settings)
    tests = []
    for first, second in combinations(metrics, 2):
        one = _pair(metrics[first], metrics[second], human, measure, settings)
        better = one.delta >= 0 or math.isnan(one.delta)
        names, p = ((first, second), one.first) if better else ((second, first), one.second)
        tests.append(MetricTest(*names, abs(one.delta), p, p, method, one.exact, reason=one.reason))
    return tuple(tests)


def correct_families(
    groups: Sequence[tuple[MetricTest, ...]], settings: MetaevalScoresSettings
) -> list[tuple[MetricTest, ...]]:
    """Return the tests of each group, corrected over those of its group or over those of the whole table."""
    if settings.correction == "none":
        return list(groups)
    if settings.family == "group":
        return [_corrected(tests, settings) for tests in groups]
    every = iter(_corrected([test for tests in groups for test in tests], settings))
    return [tuple(next(every) for _ in tests) for tests in groups]


def _corrected(tests: Sequence[MetricTest], settings: MetaevalScoresSettings) -> tuple[MetricTest, ...]:
    found = corrected(settings.correction, [test.p for test in tests], settings.alpha, family=settings.family)
    return tuple(
        replace(test, adjusted=adjusted, family_size=found.n)
        for test, adjusted in zip(tests, found.adjusted, strict=True)
    )


def cluster_metrics(
    values: Mapping[str, float], tests: Sequence[MetricTest], settings: MetaevalScoresSettings
) -> Clusters | None:
    """Return the clusters that the corrected tests support; None where nothing was tested."""
    if settings.test is None:
        return None
    names = list(values)
    p = {(test.first, test.second): test.adjusted for test in tests}
    return clusters(names, list(values.values()), lambda i, j: p.get((names[i], names[j]), 1.0), alpha=settings.alpha)


def _check(measure: Measure, human: FloatMatrix, settings: MetaevalScoresSettings) -> None:
    """Refuse tests that a measure does not have."""
    if measure.name in _BOOTSTRAPPED and settings.test != "bootstrap":
        raise SpecError(f"{measure.name} is tested by the bootstrap: use the test bootstrap")
    if settings.test == "williams" and measure.level != "global" and human.shape[1] > 1:
        raise SpecError(
            f"Williams' test compares correlations over all cells, not {measure.name}@{measure.level}: use the level "
            "global, or the test permutation"
        )


def method_of(measure: Measure, settings: MetaevalScoresSettings) -> str:
    """Return the name of a test with what it permutes or draws; of `acc_eq`, outcomes of pairs are permuted."""
    test = settings.test or ""
    if test == "permutation" and measure.name == "acc_eq":
        return METHODS[test].format(permute="pairs")
    form = _PERMUTED.get(settings.compat or "", METHODS[test]) if test == "permutation" else METHODS[test]
    name = form.format(permute=settings.permute, drawn=DRAWN[settings.resample])
    if settings.early_stop:
        name += ", stopped early where p is clear"
    return f"{name} as in {settings.compat}" if test == "williams" and settings.compat else name


def _pair(x: FloatMatrix, y: FloatMatrix, z: FloatMatrix, measure: Measure, settings: MetaevalScoresSettings) -> _Both:
    coefficient = "acc_23" if measure.name == "pairwise_accuracy" else measure.name
    if settings.test == "williams":
        one, other = (
            williams(*pair, z, coefficient, alternative="greater", missing=settings.missing, compat=settings.compat)
            for pair in ((x, y), (y, x))
        )
        return _Both(one.delta, one.p, other.p, exact=False, reason=one.reason)
    if settings.test == "bootstrap":
        drawn = bootstrap_difference(
            *(x, y, z, measure.level, measure.name), resample=settings.resample, n=settings.test_draws,
            seed=settings.seed, missing=settings.missing, keep=True,
        )  # fmt: skip
        delta = drawn.estimate.value
        turned = shares(-_known(drawn.samples), -delta)[0]
        return _Both(delta, drawn.sign, turned, exact=False, reason=drawn.estimate.reason)
    if measure.name == "acc_eq":
        swapped = outcome_test(
            *(x, y, z, measure.level), alternative="greater", n=settings.test_draws, seed=settings.seed,
            missing=settings.missing, keep=True,
            epsilons=None if settings.epsilon is None else (settings.epsilon, settings.epsilon),
        )  # fmt: skip
    else:
        swapped = permutation_test(
            *(x, y, z, measure.level, coefficient), permute=settings.permute or "cell",
            # Both directions are read off the same swaps: they end where neither can matter any more.
            alternative="two-sided" if settings.early_stop else "greater", early_stop=settings.early_stop,
            n=settings.test_draws, seed=settings.seed, missing=settings.missing, keep=True,
            compat="nlpstats" if settings.compat == "nlpstats" else None,
            tie_tolerance=None if settings.compat else settings.tie_tolerance,
        )  # fmt: skip
    return _Both(
        swapped.delta, _one_sided(swapped, "greater"), _one_sided(swapped, "less"), swapped.exact, swapped.reason
    )


def _one_sided(test: PermutationTest, alternative: Literal["greater", "less"]) -> float:
    """Return the p-value of one direction, from the same swaps."""
    if test.samples is None:
        return math.nan
    known = _known(test.samples)
    extreme = int(at_least(known, test.delta, alternative).sum())
    return extreme / len(known) if test.exact or test.compat else (extreme + 1) / (len(known) + 1)


def _known(samples: FloatVector | None) -> FloatVector:
    return np.zeros(0) if samples is None else samples[~np.isnan(samples)]
