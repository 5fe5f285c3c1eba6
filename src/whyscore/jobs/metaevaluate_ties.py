"""Metrics with few distinct scores, whose agreement depends on how a coefficient treats ties.

1. Of a metric's scores the distinct ones are counted, and the pairs of scores that are equal.
2. Ties are heavy where at least one pair in twenty is tied, as with twenty values that are equally frequent.
"""

from typing import NamedTuple

import numpy as np

from whyscore.types import FloatMatrix

HEAVY = 0.05


class Ties(NamedTuple):
    """How many scores there are, how many differ, and the share of pairs that are equal."""

    scores: int
    distinct: int
    pairs: float

    @property
    def heavy(self) -> bool:
        """Whether ties decide about the agreement; a constant has none at all, for another reason."""
        return self.distinct > 1 and self.pairs >= HEAVY

    def told(self, name: str) -> str:
        """Return the warning."""
        return (
            f"{name} has heavy ties: {self.distinct:,} distinct values among {self.scores:,} scores, so "
            f"{self.pairs:.1%} of the pairs are equal; coefficients differ in how they count them (acc_eq gives credit "
            "for ties)"
        )


def ties_of(matrix: FloatMatrix) -> Ties:
    """Return the ties among the scores of a metric, missing ones left out.

    >>> ties_of(np.array([[1.0, 1.0], [2.0, np.nan]]))
    Ties(scores=3, distinct=2, pairs=0.3333333333333333)
    """
    known = matrix[~np.isnan(matrix)]
    counts = np.unique(known, return_counts=True)[1].astype(np.float64)
    all_pairs = known.size * (known.size - 1)
    return Ties(known.size, len(counts), float(counts @ (counts - 1)) / all_pairs if all_pairs else 0.0)
