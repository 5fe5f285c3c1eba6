"""Shares: ratios of means over segments, with intervals and tests (Karidi, Choshen, Patel and Abend, MuLER).

Each segment has a gain a (best case - score) and a range b (best case - worst case); the share of a feature is
sum a / sum b, a ratio of means and not a mean of ratios.

1. Intervals: segments are drawn with replacement; one matrix of weights W serves every feature and system, so the
   resampled sums are one matrix product.
2. Tests between systems: the rows of the two systems are swapped, segment by segment, at random; p counts the swaps
   whose difference is at least as large as the observed one, both signs, (count + 1) / (draws + 1).
3. `word_f`: how well the words of a feature were met, by matching word forms.

What is summed is a row of numbers per segment, and `fit` turns sums into values: so the same resampling serves shares
of segment scores and of corpus scores. Values that are undefined in a draw are NaN; they are dropped and counted.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from whyscore.stats.resampling import draw_counts, percentiles, random_rows
from whyscore.types import FloatMatrix, FloatVector

Fit = Callable[[FloatMatrix], FloatMatrix]
"""From summed rows (draws x columns) to values (draws x features)."""

_CELLS = 4_000_000
_SWAPS = 1  # keeps the draws of the test apart from those of the interval
# Two ways to sum the same numbers differ in the last digits; an equal difference must count as equal.
_EQUAL = 1e-12


class Interval(NamedTuple):
    """A percentile interval, and how many draws had no value; None where too few had one."""

    low: float | None
    high: float | None
    dropped: int = 0


class WordF(NamedTuple):
    """Precision, recall and F of the words that carry a feature; None where there are none."""

    precision: float | None
    recall: float | None
    f: float | None


def ratios(floor: float) -> Fit:
    """Return the fit of segment scores: columns are first all gains, then all ranges; undefined at or below the floor.

    >>> ratios(0.0)(np.array([[1.0, 2.0, 4.0, 0.0]]))
    array([[0.25,  nan]])
    """

    def fit(sums: FloatMatrix) -> FloatMatrix:
        gains, ranges = np.hsplit(sums, 2)
        found: FloatMatrix = np.divide(gains, ranges, out=np.full(gains.shape, np.nan), where=ranges > floor)
        return found

    return fit


def resampled(rows: FloatMatrix, fit: Fit, *, draws: int, seed: int) -> FloatMatrix:
    """Return the values of each draw of segments, draws x features."""
    if not draws or not len(rows):
        return np.empty((0, fit(rows[:0].sum(axis=0, keepdims=True)).shape[1]))
    return np.vstack([fit(counts @ rows) for counts in draw_counts(len(rows), draws, seed)])


def interval(values: FloatVector, level: float = 0.95) -> Interval:
    """Return the percentile interval of resampled values; without a second value there is none."""
    known = values[~np.isnan(values)]
    dropped = len(values) - len(known)
    if len(known) < 2:  # noqa: PLR2004 - one value has no spread
        return Interval(None, None, dropped)
    low, high = percentiles(known, level).tolist()
    return Interval(low, high, dropped)


def swap_test(first: FloatMatrix, second: FloatMatrix, fit: Fit, *, draws: int, seed: int) -> FloatVector:
    """Return the two-sided p of each feature's difference between two systems; NaN where the difference is undefined.

    `first` and `second` are rows of the same segments.
    """
    total = (first + second).sum(axis=0)
    observed = np.abs(_difference(fit, first.sum(axis=0, keepdims=True), total))[0]
    counts = np.zeros(len(observed))
    valid = np.zeros(len(observed))
    for coins in random_rows(draws, len(first), [seed, _SWAPS], held=_CELLS, dtype=np.float64):
        stay = (coins < 0.5).astype(np.float64)  # noqa: PLR2004 - a fair coin
        drawn = np.abs(_difference(fit, stay @ first + (1 - stay) @ second, total))
        counts += np.nansum(drawn >= observed - _EQUAL, axis=0)
        valid += (~np.isnan(drawn)).sum(axis=0)
    return np.where(np.isnan(observed), np.nan, (counts + 1) / (valid + 1))


def _difference(fit: Fit, one: FloatMatrix, total: FloatVector) -> FloatMatrix:
    return fit(one) - fit(total - one)


class Pairing(NamedTuple):
    """The numbers of the words of reference and hypothesis that have a partner of the same form."""

    reference: frozenset[int]
    hypothesis: frozenset[int]


def paired(reference: Sequence[str], hypothesis: Sequence[str]) -> Pairing:
    """Return which words are met on the other side: of equal forms the first with the first, and so on.

    >>> paired(["the", "cat"], ["the", "the", "dog"])
    Pairing(reference=frozenset({0}), hypothesis=frozenset({0}))
    """
    waiting: dict[str, list[int]] = defaultdict(list)
    for number in range(len(reference) - 1, -1, -1):
        waiting[reference[number]].append(number)
    pairs = [(waiting[form].pop(), number) for number, form in enumerate(hypothesis) if waiting.get(form)]
    return Pairing(frozenset(own for own, _ in pairs), frozenset(other for _, other in pairs))


def word_f(segments: Iterable[tuple[Pairing, frozenset[int], frozenset[int]]]) -> WordF:
    """Return how well the words of a feature were met, after compare-mt (Neubig et al. 2019).

    For each segment: its pairing, and the words of reference and of hypothesis that carry the feature. A paired
    hypothesis word takes its partner's label, the others keep their own.

    >>> word_f([(paired(["a", "cat"], ["a", "dog"]), frozenset({1}), frozenset({1}))]).f
    0.0
    """
    met = wanted = given = 0
    for pairing, reference, hypothesis in segments:
        here = len(reference & pairing.reference)
        met += here
        wanted += len(reference)
        given += here + len(hypothesis - pairing.hypothesis)
    precision = met / given if given else None
    recall = met / wanted if wanted else None
    if precision is None or recall is None:
        return WordF(precision, recall, None)
    return WordF(precision, recall, 2 * met / (given + wanted))
