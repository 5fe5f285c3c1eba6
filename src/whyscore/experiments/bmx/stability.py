"""How much of a boosted score is chance: the same explanations with other random numbers (BMX, section 5.3).

1. Explain every segment `runs` times, with seeds seed, seed + 1 ...
2. For every p and every w below 1, correlate over segments the boosted scores of two runs; average over pairs of runs,
   over p and over groups.
3. Beside it the mean correlation of the raw importances within a segment, which the boosted scores hide: for w above 0
   both runs share the original score.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from whyscore.aggregate.bags import Bags, Family
from whyscore.analysis.calibrate.material import Material, Numbers, columns_of
from whyscore.stats.coefficients import pearson
from whyscore.types import FloatMatrix, FloatVector


class Stability(NamedTuple):
    """The agreement of runs at one weight; `w` is None for the mean over all weights."""

    group: str
    w: float | None
    correlation: float


def stability(
    runs: Sequence[Material], groups: Sequence[str], family: Family, parameters: FloatVector, weights: FloatVector
) -> list[Stability]:
    """Return the agreement of repeated runs by weight, for each group and for all of them together."""
    tables = [columns_of(run, family, parameters).values for run in runs]
    names = list(dict.fromkeys(groups))
    held = np.array(groups)
    rows: list[Stability] = []
    for name in names:
        members = np.flatnonzero(held == name)
        by_weight = _by_weight(tables, runs[0].scores, members, weights)
        rows += [Stability(name, w, value) for w, value in zip(weights.tolist(), by_weight.tolist(), strict=True)]
    everything = [
        Stability("all", w, float(np.mean([row.correlation for row in rows if row.w == w]))) for w in weights.tolist()
    ]
    overall = Stability("all", None, float(np.mean([row.correlation for row in everything])))
    return [*rows, *everything, overall]


def _by_weight(
    tables: Sequence[FloatMatrix], scores: FloatVector, members: Numbers, weights: FloatVector
) -> FloatVector:
    """Return the mean correlation between runs for each weight, over all parameters."""
    found = []
    for weight in weights.tolist():
        mixed = [weight * scores[members] + (1 - weight) * table[:, members] for table in tables]
        pairs = [float(np.nanmean(pearson(one, other))) for one, other in combinations(mixed, 2)]
        found.append(float(np.mean(pairs)))
    return np.array(found)


def importance_stability(runs: Sequence[Bags]) -> float:
    """Return the mean correlation of the raw importances of a segment between runs; constant ones are left out."""
    found = [value for one, other in combinations(runs, 2) for value in _within(one, other)]
    return float(np.mean(found)) if found else float("nan")


def _within(one: Bags, other: Bags) -> Iterator[float]:
    for k in range(len(one)):
        value = float(pearson(one.of_segment(k), other.of_segment(k))) if one.lengths[k] > 1 else float("nan")
        if not np.isnan(value):
            yield value
