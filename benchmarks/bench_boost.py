"""The whole grid of a calibration against computing each configuration by itself.

    python benchmarks/bench_boost.py

3,000 configurations (600 powers x 5 weights) of 1,000 segments x 50 words, each correlated with human scores by
Pearson, Spearman and Kendall. All importances are above 0: below, negative powers give every segment of 50 words the
same number but for rounding, and ranks of rounding errors cannot be compared.

The naive way forms the power mean of every segment by its formula and calls scipy, configuration by configuration;
because that takes minutes, every twentieth configuration is run and the time multiplied. The results of both are
compared there. At least 20 times faster is judged, seconds are only printed.
"""

import sys
import time

import numpy as np
from scipy import stats

from whyscore.aggregate import Bags, power_table
from whyscore.stats.grid import Target
from whyscore.types import FloatMatrix, FloatVector

SEGMENTS, WORDS = 1000, 50
EVERY = 20
LEAST_RATIO = 20.0
LARGEST_DIFFERENCE = 1e-9
COEFFICIENTS = ("pearson", "spearman", "kendall")


def naive_power_mean(importance: FloatVector, p: float) -> float:
    """Return the power mean by its formula; p = 0 takes the limit, as v ** 0 says nothing."""
    low = importance.min()
    values = importance + (abs(low) if low <= 0 else 0.0) + 1e-9
    if p == 0:
        return float(np.exp(np.log(values).mean()))
    return float((values**p).mean() ** (1 / p))


def naive(rows: FloatMatrix, scores: FloatVector, human: FloatVector, p: float, w: float) -> list[float]:
    """Return the three correlations of one configuration."""
    mixed = w * scores + (1 - w) * np.array([naive_power_mean(row, p) for row in rows])
    return [
        float(stats.pearsonr(mixed, human)[0]),
        float(stats.spearmanr(mixed, human)[0]),
        float(stats.kendalltau(mixed, human)[0]),
    ]


def main() -> int:
    """Run both, print times, and return 1 where the ratio or the results are not good enough."""
    rng = np.random.default_rng(0)
    rows = rng.lognormal(-3.0, 1.0, size=(SEGMENTS, WORDS))
    scores = rng.random(SEGMENTS)
    human = scores + rng.normal(scale=0.5, size=SEGMENTS)
    powers, weights = np.round(np.arange(-300, 300) / 10, 1), np.array([0.0, 0.2, 0.4, 0.6, 0.8])

    start = time.perf_counter()
    table = power_table(Bags.of(list(rows)), powers).means
    means = time.perf_counter() - start
    target = Target.of(human, coefficients=COEFFICIENTS)
    found = target.mix(target.project(scores), target.project(table), weights)
    ours = time.perf_counter() - start

    configurations = [(i, j) for i in range(len(powers)) for j in range(len(weights))]
    start = time.perf_counter()
    checked = configurations[::EVERY]
    expected = np.array([naive(rows, scores, human, float(powers[i]), float(weights[j])) for i, j in checked])
    theirs = (time.perf_counter() - start) * len(configurations) / len(checked)

    own = np.array([found[:, i, j] for i, j in checked])
    difference = float(np.abs(own - expected).max())
    ratio = theirs / ours
    print(f"power means       {means:8.3f} s for {len(powers)} powers")
    print(f"whole grid        {ours:8.3f} s for {len(configurations)} configurations")
    print(f"one by one        {theirs:8.1f} s (from {len(checked)} of them)")
    print(f"ratio             {ratio:8.1f}   at least {LEAST_RATIO:g}")
    print(f"difference        {difference:8.1e}   at most {LARGEST_DIFFERENCE:g}")
    return 0 if ratio >= LEAST_RATIO and difference <= LARGEST_DIFFERENCE else 1


if __name__ == "__main__":
    sys.exit(main())
