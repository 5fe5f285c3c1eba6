"""Strengths from instance-level pairings (Bradley and Terry 1952; for evaluation: Peyrard et al. 2021).

1. w_ij = number of segments on which i scores above j; a tie counts half for each, or is dropped.
2. Minorise-maximise (Hunter 2004): strength_i <- wins_i / sum_j (w_ij + w_ji) / (strength_i + strength_j), scaled to
   sum 1, until nothing moves by 1e-12.
3. The maximum exists where systems cannot be parted into two groups of which one never beats the other (Ford 1957).
   Where they can, as where a system never wins or never loses, half a win each way is added to every pair (`prior`)
   and told.

Unlike means, strengths do not move with the size of a single difference.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whyscore.errors import DataError, SpecError
from whyscore.stats.matrices import as_matrix, row_means
from whyscore.stats.resampling import percentiles
from whyscore.types import Estimate, FloatMatrix, FloatVector, read_only

PRIOR = 0.5
_STILL = 1e-12
_ROUNDS = 100_000


@dataclass(frozen=True, slots=True, eq=False)
class Strengths:
    """Strength of every system (they sum to 1), with the means beside them."""

    strengths: FloatVector
    means: FloatVector
    wins: FloatMatrix
    ties: Literal["half", "drop"]
    prior: float
    """Pseudo-wins that were added; 0 where none were needed."""
    intervals: tuple[Estimate, ...] = ()
    seed: int | None = None

    @property
    def disagreements(self) -> list[tuple[int, int]]:
        """Pairs of systems that strengths and means put in different order, the stronger one first."""
        order = np.argsort(-self.strengths, kind="stable").tolist()
        pairs = [(i, j) for place, i in enumerate(order) for j in order[place + 1 :]]
        return [(i, j) for i, j in pairs if self.means[i] < self.means[j]]


def bradley_terry(
    scores: ArrayLike,
    *,
    ties: Literal["half", "drop"] = "half",
    prior: float = PRIOR,
    draws: int = 0,
    confidence: float = 0.95,
    seed: int = 0,
) -> Strengths:
    """Return the strengths of systems x segments; missing cells take no part.

    `draws` resamples of the segments give intervals; 0 leaves them out.
    """
    matrix = as_matrix(scores, "the scores")
    if len(matrix) < 2:  # noqa: PLR2004 - a pairing takes two
        raise DataError("Bradley-Terry compares systems: there is only one")
    if ties not in ("half", "drop"):
        raise SpecError(f"ties is {ties!r}, expected 'half' or 'drop'")
    if not prior > 0:
        raise SpecError(f"prior is {prior}, expected more than 0")
    results = _results(matrix, ties)
    wins = results.sum(axis=0)
    (strengths,), (added,) = _fit(wins[None], prior)
    intervals: list[Estimate] = []
    if draws:
        picked = np.random.default_rng(seed).integers(0, matrix.shape[1], (draws, matrix.shape[1]))
        # Few segments give few different tables.
        tables, which = np.unique([results[one].sum(axis=0) for one in picked], axis=0, return_inverse=True)
        resampled = _fit(tables, prior)[0][which.ravel()]
        tails = percentiles(resampled, confidence)
        intervals = [
            Estimate(float(value), float(low), float(high), confidence, matrix.shape[1])
            for value, low, high in zip(strengths, *tails, strict=True)
        ]
    return Strengths(
        *(read_only(strengths), read_only(row_means(matrix)), read_only(wins), ties, float(added), tuple(intervals)),
        seed if draws else None,
    )


def _results(matrix: FloatMatrix, ties: str) -> NDArray[np.float64]:
    """Return segments x systems x systems: 1 where the row wins, a half where there is a tie that counts."""
    columns = matrix.T
    above = (columns[:, :, None] > columns[:, None, :]).astype(np.float64)
    if ties == "drop":
        return above
    equal = (columns[:, :, None] == columns[:, None, :]).astype(np.float64)
    results: NDArray[np.float64] = above + equal * (1 - np.eye(len(matrix))) / 2
    return results


def _fit(wins: NDArray[np.float64], prior: float) -> tuple[FloatMatrix, FloatVector]:
    """Return the strengths behind each of many tables of wins (tables x systems x systems), and what was added."""
    added = np.where(_has_maximum(wins), 0.0, prior)
    wins = wins + added[:, None, None] * (1 - np.eye(wins.shape[1]))
    played, won = wins + wins.transpose(0, 2, 1), wins.sum(axis=2)
    found = np.full(won.shape, math.nan)
    active, strengths = np.arange(len(wins)), np.full(won.shape, 1 / wins.shape[1])
    for _ in range(_ROUNDS):
        new = won / (played / (strengths[:, :, None] + strengths[:, None, :])).sum(axis=2)
        new /= new.sum(axis=1, keepdims=True)
        still = np.abs(new - strengths).max(axis=1) < _STILL
        found[active[still]] = new[still]
        if still.all():
            break
        active, strengths, played, won = active[~still], new[~still], played[~still], won[~still]
    return found, added


def _has_maximum(wins: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return for each table whether every system beats every other one directly or through others."""
    reach: NDArray[np.bool_] = (wins > 0) | np.eye(wins.shape[1], dtype=np.bool_)
    for _ in range(max(1, wins.shape[1].bit_length())):
        reach = np.matmul(reach, reach)
    return np.asarray(reach.all(axis=(1, 2)), dtype=np.bool_)
