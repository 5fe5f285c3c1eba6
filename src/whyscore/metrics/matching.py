"""Greedy matching of the units of two texts, the arithmetic behind BERTScore (Zhang et al. 2020, arXiv 1904.09675).

1. S = cosines between all phrases of both texts. A phrase is a run of 1, 2 ... units; with pieces as units and runs of
   one this is BERTScore.
2. Each phrase has the cosine of its best counterpart in the other text, of whatever length that is.
3. A unit has, for each length of run, the mean over the runs it stands in; its similarity is the mean over the lengths
   and, where the whole texts have vectors, their cosine.
4. Precision is the weighted mean similarity of the hypothesis' units, recall that of the other text, and
   F = 2PR / (P + R), 0 where P + R is 0. A text without a unit that counts matches nothing: P = R = F = 0.

All of it is float64, from vectors in float32. A zero vector has cosine 0 with everything.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whyscore.types import FloatMatrix, FloatVector


class Sided(NamedTuple):
    """One text, ready to be matched."""

    text: str
    spans: NDArray[np.int64]
    """Where each unit stands; empty for special pieces."""
    pieces: tuple[str, ...]
    """How each unit is written."""
    weights: FloatVector
    """How much each unit counts; all 0 where the text says nothing."""
    special: NDArray[np.bool_]
    """Which units stand for nothing in the text."""
    runs: tuple[int, ...]
    """How many runs there are of 1, 2 ... units; their vectors follow one another."""
    vectors: NDArray[np.float32]
    """Of the runs."""
    lengths: FloatVector
    """Of these vectors; 1 for a zero vector."""
    whole: FloatVector | None = None
    """Of the whole text, of unit length."""
    seen: int | None = None
    """Where the model stopped reading; None for the end of the text."""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to match."""
        return not bool(self.weights.any())

    @property
    def nbytes(self) -> int:
        """How much memory the vectors take."""
        return self.vectors.nbytes


class Pair(NamedTuple):
    """A matched pair of texts."""

    cosines: FloatMatrix
    """Runs of the other text x runs of the hypothesis."""
    other: FloatVector
    """The similarity of each unit of the other text."""
    hypothesis: FloatVector
    """The similarity of each unit of the hypothesis."""


class Numbers(NamedTuple):
    """What a pair scores."""

    precision: float
    recall: float
    f: float


NOTHING = Numbers(0.0, 0.0, 0.0)


def lengths_of(vectors: NDArray[np.float32]) -> FloatVector:
    """Return the length of each row; 1 for rows of zeros, which stay as they are when they are divided by it.

    >>> lengths_of(np.array([[3, 4], [0, 0]], dtype=np.float32))
    array([5., 1.])
    """
    rows = vectors.astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return np.where(lengths > 0, lengths, 1.0)


def cosines(other: Sided, hypothesis: Sided) -> FloatMatrix:
    """Return the cosine of every run of the other text with every run of the hypothesis."""
    products = other.vectors.astype(np.float64) @ hypothesis.vectors.astype(np.float64).T
    products /= other.lengths[:, None]
    products /= hypothesis.lengths
    return products


def match(other: Sided, hypothesis: Sided) -> Pair | None:
    """Return the matched pair; None where one of the texts has nothing to match."""
    if other.empty or hypothesis.empty:
        return None
    found = cosines(other, hypothesis)
    both = other.whole is not None and hypothesis.whole is not None
    whole = [float(other.whole @ hypothesis.whole)] if both else []  # type: ignore[operator]
    here = _similarity(found.max(axis=1), other.runs, whole)
    return Pair(found, here, _similarity(found.max(axis=0), hypothesis.runs, whole))


def numbers(pair: Pair | None, other: FloatVector, hypothesis: FloatVector) -> Numbers:
    """Return precision, recall and F of a pair, from it and the weights of both texts."""
    if pair is None:
        return NOTHING
    precision, recall = _mean(pair.hypothesis, hypothesis), _mean(pair.other, other)
    return Numbers(precision, recall, harmonic(precision, recall))


def best_of_each(own: Sequence[Numbers]) -> Numbers:
    """Return the best of each number over several references."""
    return Numbers(*(max(column) for column in zip(*own, strict=True)))


def harmonic(precision: float, recall: float) -> float:
    """Return the F-score; 0 where both cancel out."""
    total = precision + recall
    return 2 * precision * recall / total if total else 0.0


def spread(values: FloatVector, units: int) -> FloatVector:
    """Return for each unit the mean over the runs it stands in, from one value per run of one length.

    >>> spread(np.array([1.0, 3.0]), 3)
    array([1., 2., 3.])
    """
    length = units - len(values) + 1
    if length == 1:
        return values
    running = np.concatenate([[0.0], np.cumsum(values)])
    first = np.maximum(np.arange(units) - length + 1, 0)
    after = np.minimum(np.arange(units) + 1, len(values))
    result: FloatVector = (running[after] - running[first]) / (after - first)
    return result


def _similarity(best: FloatVector, runs: Sequence[int], whole: Sequence[float]) -> FloatVector:
    """Return the similarity of each unit from the best cosine of each run."""
    if len(runs) == 1 and not whole:
        return best
    parts = np.split(best, np.cumsum(runs)[:-1])
    total = sum((spread(part, runs[0]) for part in parts), np.zeros(runs[0]))
    result: FloatVector = (total + sum(whole)) / (len(parts) + len(whole))
    return result


def _mean(values: FloatVector, weights: FloatVector) -> float:
    return float(values @ weights / weights.sum())
