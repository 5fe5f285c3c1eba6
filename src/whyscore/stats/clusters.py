"""Ranks that significance supports: metrics or systems in clusters.

1. Order by value, best first; equal values by name.
2. Walk down: start a new cluster where any member of the current one beats the next with p at or below alpha.
3. The rank is the number of the cluster. Within a cluster nothing is claimed, also not that the members are equal.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from whyscore.errors import DataError, SpecError
from whyscore.stats.correction import ALPHA
from whyscore.types import FloatMatrix, read_only


@dataclass(frozen=True, slots=True, eq=False)
class Clusters:
    """Names in order, best first, with their ranks and every p-value: `p[i, j]` is that of "i beats j"."""

    names: tuple[str, ...]
    values: tuple[float, ...]
    ranks: tuple[int, ...]
    p: FloatMatrix
    alpha: float

    def members(self, rank: int) -> tuple[str, ...]:
        """Return the names of one rank."""
        return tuple(name for name, own in zip(self.names, self.ranks, strict=True) if own == rank)


def clusters(
    names: Sequence[str],
    values: Sequence[float],
    p: FloatMatrix | Callable[[int, int], float],
    *,
    alpha: float = ALPHA,
    higher_is_better: bool = True,
) -> Clusters:
    """Return significance clusters.

    Args:
        names: of the metrics or systems.
        values: one for each; those without a value come last.
        p: p-values of "i beats j" by position in `names`, or a function that tells them.
        alpha: the p-value up to which one beats the other.
        higher_is_better: the direction of the values.
    """
    count = len(names)
    shape = (count, count) if callable(p) else p.shape
    if len(values) != count or shape != (count, count):
        raise DataError(f"{count} names, {len(values)} values and p-values of the shape {shape}: one for each")
    if not 0 < alpha < 1:
        raise SpecError(f"alpha is {alpha}, expected more than 0 and less than 1")

    def place(k: int) -> tuple[bool, float, str]:
        return math.isnan(values[k]), -values[k] if higher_is_better else values[k], names[k]

    order = sorted(range(count), key=place)
    table = np.full((count, count), math.nan)
    for row, i in enumerate(order):
        for column, j in enumerate(order):
            if row != column:
                table[row, column] = p(i, j) if callable(p) else p[i, j]
    ranks: list[int] = []
    current: list[int] = []
    for k in range(count):
        if current and any(table[member, k] <= alpha for member in current):
            current = []
        ranks.append(ranks[-1] + (not current) if ranks else 1)
        current.append(k)
    in_order = tuple(names[k] for k in order), tuple(float(values[k]) for k in order)
    return Clusters(*in_order, tuple(ranks), read_only(table), alpha)
