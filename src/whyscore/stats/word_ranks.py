"""Which of several submissions finds the marked words best: intervals, tests, best groups, the shared-task rank.

All comparisons are paired: the rows of a matrix (systems x sentences) are one measure on the *same* sentences.

1. Intervals: the bootstrap over sentences, with the same resamples for all systems.
2. Tests, two-sided: the paired t-test (Table 6 of Fomicheva et al., 2021), or sign flips of the differences with
   p = (count + 1) / (draws + 1) for few sentences.
3. Best group of a measure: the systems that no other beats with a higher mean and p below alpha.
4. Rank: rank on each measure (1 = best, equal means share the mean rank), then the mean over the measures; a system
   without a side is last on it.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np

from whyscore.errors import SpecError
from whyscore.stats import coefficients
from whyscore.stats.resampling import draw_counts
from whyscore.types import Estimate, FloatMatrix, FloatVector

Test = Literal["ttest", "permutation"]
TESTS: tuple[Test, ...] = get_args(Test)
FLIPS = 10_000
LEVEL = 0.95
_BLOCK = 4_000_000  # flips x sentences held in memory at a time
_EPSILON = 1e-12


class PairedTest(NamedTuple):
    """A two-sided test of one system against another on the same sentences."""

    difference: float
    statistic: float
    """Student's t; NaN for sign flips."""
    p: float
    n: int


class Guard(NamedTuple):
    """The one-sided test of per-sentence AUC against chance."""

    mean: float
    p: float

    @property
    def fires(self) -> bool:
        """Whether the scores look turned round."""
        return self.mean < 0.5 and self.p < 0.01  # noqa: PLR2004 - chance, and the level of the guard


def mean_estimates(values: FloatMatrix, *, draws: int = 1000, seed: int = 0) -> list[Estimate]:
    """Return the mean of each row with its percentile interval; all rows share the resamples of the columns.

    Differences of rows are rows too, so that they get intervals the same way.
    """
    n = values.shape[1]
    if n == 0:
        return [Estimate(float("nan"), n=0, reason="empty") for _ in values]
    means = values.mean(axis=1)
    if n == 1 or draws == 0:
        return [Estimate(float(mean), level=LEVEL, n=n, reason="undefined" if n == 1 else None) for mean in means]
    drawn = np.vstack([counts @ values.T for counts in draw_counts(n, draws, seed)]) / n
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    bounds = zip(means.tolist(), low.tolist(), high.tolist(), strict=True)
    return [Estimate(mean, least, most, LEVEL, n) for mean, least, most in bounds]


def paired(one: FloatVector, other: FloatVector, test: Test = "ttest", *, seed: int = 0) -> PairedTest:
    """Return the two-sided test of one system against another; p is NaN for fewer than two sentences."""
    if test not in TESTS:
        raise SpecError(f"no test named {test!r}: use {', '.join(TESTS)}")
    differences = np.asarray(one, dtype=np.float64) - np.asarray(other, dtype=np.float64)
    n = len(differences)
    mean = float(differences.mean()) if n else float("nan")
    if n < 2:  # noqa: PLR2004 - one difference has no spread
        return PairedTest(mean, float("nan"), float("nan"), n)
    if test == "permutation":
        return PairedTest(mean, float("nan"), _flip_p(differences, seed), n)
    statistic = _student(differences)
    return PairedTest(mean, statistic, 1.0 if mean == 0 else _two_sided(statistic, n - 1), n)


def orientation(auc: FloatVector) -> Guard:
    """Return the test whether AUC is below chance, which scores that point the wrong way give."""
    n = len(auc)
    if n < 2:  # noqa: PLR2004 - one value has no spread
        return Guard(float(auc.mean()) if n else float("nan"), float("nan"))
    from scipy.stats import t  # noqa: PLC0415 - slow to import

    return Guard(float(auc.mean()), float(t.cdf(_student(auc - 0.5), n - 1)))


def pair_tests(values: FloatMatrix, test: Test = "ttest", *, seed: int = 0) -> dict[tuple[int, int], PairedTest]:
    """Return the test of every pair of rows, the earlier against the later."""
    count = len(values)
    return {(i, j): paired(values[i], values[j], test, seed=seed) for i in range(count) for j in range(i + 1, count)}


def best_group(means: Sequence[float], p: dict[tuple[int, int], float], alpha: float = 0.05) -> list[int]:
    """Return the rows that no other beats: none has a higher mean with p < alpha."""

    def beaten(i: int) -> bool:
        others = (j for j in range(len(means)) if j != i and means[j] > means[i])
        return any(p[min(i, j), max(i, j)] < alpha for j in others)

    return [i for i in range(len(means)) if not beaten(i)]


def ranks(means: FloatVector) -> FloatVector:
    """Return the rank of each mean, 1 for the highest; equal means share their mean rank, missing ones are last.

    >>> ranks(np.array([0.5, 0.9, 0.5, np.nan])).tolist()
    [2.5, 1.0, 2.5, 4.0]
    """
    values = np.asarray(means, dtype=np.float64)
    return np.where(np.isnan(values), float(len(values)), coefficients.ranks(-values))


def _student(differences: FloatVector) -> float:
    spread = float(differences.std(ddof=1))
    mean = float(differences.mean())
    if spread == 0:
        return 0.0 if mean == 0 else float(np.copysign(np.inf, mean))
    return float(mean / (spread / np.sqrt(len(differences))))


def _two_sided(statistic: float, freedom: int) -> float:
    from scipy.stats import t  # noqa: PLC0415 - slow to import

    return float(2 * t.sf(abs(statistic), freedom))


def _flip_p(differences: FloatVector, seed: int) -> float:
    """Return the share of sign flips whose mean is at least as far from 0 as the one seen."""
    rng = np.random.default_rng(seed)
    seen = abs(float(differences.sum())) - _EPSILON
    n, count = len(differences), 0
    block = max(1, _BLOCK // n)
    for start in range(0, FLIPS, block):
        signs = rng.integers(0, 2, size=(min(block, FLIPS - start), n), dtype=np.int8) * 2.0 - 1.0
        count += int((np.abs(signs @ differences) >= seen).sum())
    return (count + 1) / (FLIPS + 1)
