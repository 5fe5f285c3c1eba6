"""Is one metric better than another by accuracy with calibrated ties? Outcomes of pairs change places.

1. Each metric keeps its own epsilon, fitted once: fitting inside every resample would test the fitting.
2. For every pair of systems on a segment the two metrics are right or wrong; a fair coin decides whether they change
   outcomes. Only pairs on which they differ matter, so that the sum over a group is a binomial number.
3. p = (c + 1) / (n + 1), as in `permutation`.
"""

import math
import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whyscore.errors import SpecError
from whyscore.stats.agreement import PairTable, best_epsilon, grouped, pair_table, right
from whyscore.stats.matrices import DegenerateStatisticWarning, Missing, align, level_of
from whyscore.stats.permutation import MEMORY, Alternative, PermutationTest, at_least, check_options
from whyscore.types import FloatVector


class _Differing(NamedTuple):
    """By group: pairs that only X is right about, pairs that only Y is right about, and the weight of one pair."""

    x_only: NDArray[np.int64]
    y_only: NDArray[np.int64]
    weight: FloatVector


def outcome_test(
    x: ArrayLike,
    y: ArrayLike,
    z: ArrayLike,
    level: str = "segment",
    *,
    epsilons: tuple[float, float] | None = None,
    alternative: Alternative = "two-sided",
    n: int = 9999,
    seed: int = 0,
    missing: Missing = "paired",
    memory: int = MEMORY,
    keep: bool = False,
) -> PermutationTest:
    """Return the test of a difference in accuracy with calibrated ties between X and Y.

    Args:
        x: one metric, systems x segments.
        y: the other metric.
        z: the human scores.
        level: which pairs are compared; `segment` for pairs of systems on a segment.
        epsilons: of X and of Y, where they were fitted elsewhere.
        alternative: whether X is better (`greater`), worse (`less`) or otherwise.
        n: number of random swaps.
        seed: fixes them.
        missing: what to do with cells that one of the matrices lacks.
        memory: bytes that resampling may take.
        keep: return the resampled differences.
    """
    at = level_of(level)
    if at == "system":
        raise SpecError("outcomes of pairs are swapped within segments or over all cells: use level segment or global")
    check_options("cell", alternative, n)
    (a, b, human), dropped = align(x, y, z, missing=missing, level=at)
    tables = [pair_table(grouped(one, at), grouped(human, at)) for one in (a, b)]
    if not len(tables[0].distance):
        warnings.warn("acc_eq is not defined: there are no pairs", DegenerateStatisticWarning, stacklevel=2)
        return PermutationTest(
            math.nan, math.nan, at, "acc_eq", "pairs", alternative, 0, 0, exact=False, seed=seed, reason="empty"
        )
    chosen = epsilons or (best_epsilon(tables[0]), best_epsilon(tables[1]))
    differing = _differing(tables, chosen)
    observed = float(((differing.x_only - differing.y_only) * differing.weight).sum())
    deltas = _drawn(differing, n, seed, memory)
    extreme = int(at_least(deltas, observed, alternative).sum())
    return PermutationTest(
        *((extreme + 1) / (n + 1), observed, at, "acc_eq", "pairs", alternative, n, extreme),
        exact=False,
        seed=seed,
        missing=missing,
        dropped=dropped,
        samples=deltas if keep else None,
    )


def _differing(tables: list[PairTable], epsilons: tuple[float, float]) -> _Differing:
    first, second = (right(table, epsilon) for table, epsilon in zip(tables, epsilons, strict=True))
    groups = int(tables[0].group.max()) + 1
    weight = np.zeros(groups)
    weight[tables[0].group] = tables[0].weight
    counts = [np.bincount(tables[0].group[one], minlength=groups) for one in (first & ~second, second & ~first)]
    return _Differing(counts[0], counts[1], weight)


def _drawn(differing: _Differing, n: int, seed: int, memory: int) -> FloatVector:
    """Return the difference after each swap: heads of the coins of a group are for X, tails for Y."""
    total = differing.x_only + differing.y_only
    rng = np.random.default_rng(seed)
    block = max(1, memory // (32 * len(total)))
    parts = [
        (2 * rng.binomial(total, 0.5, (min(block, n - start), len(total))) - total) @ differing.weight
        for start in range(0, n, block)
    ]
    return np.concatenate(parts)
