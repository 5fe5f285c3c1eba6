"""The words that most often cost points.

1. Of every explained text, words below the neutral value cost, by the distance from it.
2. Words are counted without case and without the punctuation around them.
3. The list is ordered by what all occurrences cost beyond what as many words cost on average: otherwise it would only
   show the most frequent words. A word must have cost at least twice.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray

from whyscore.report.explorer import centres
from whyscore.report.model import CostlyWord, CostlyWords, WordCounts
from whyscore.runs.reading import Run, Told
from whyscore.types import FloatVector, Side

SHOWN = 12
_LEAST = 2
_EDGES = regex.compile(r"^[^\w]+|[^\w]+$")
_SIDES = (Side.HYPOTHESIS, Side.REFERENCE)


def costly_words(run: Run) -> tuple[CostlyWords, ...]:
    """Return the costliest words of each metric, of hypotheses and of references; metrics without any are left out."""
    middles = centres(run.explanations)
    found = []
    for metric in run.metrics:
        for side in _SIDES:
            told = [one for one in run.explanations if one.metric == metric.name and one.place.side is side]
            words = _costly(run, told, middles.get(metric.name, {}).get(str(side), 0.0))
            if words:
                found.append(CostlyWords(metric.name, str(side), len(told), words))
    return tuple(found)


def word_counts(run: Run) -> tuple[WordCounts, ...]:
    """Return how many words cost, for each metric and side; where no word does by itself there is nothing to count.

    Where the median stands for neither good nor bad, half of the words lie below it by definition.
    """
    middles = centres(run.explanations)
    found = []
    for metric in run.metrics:
        for side in Side:
            told = [one for one in run.explanations if one.metric == metric.name and one.place.side is side]
            cost = _costs(told, 0.0)
            if str(side) not in middles.get(metric.name, {}) and cost.any():
                counted = len(told), len(cost), int((cost < 0).sum()), float(cost.sum())
                found.append(WordCounts(metric.name, str(side), *counted))
    return tuple(found)


def _costs(told: Sequence[Told], middle: float) -> FloatVector:
    """Return what every word costs: 0, or its distance below the middle."""
    values = np.concatenate([np.zeros(0), *(one.importance for one in told)])
    return np.where(np.isfinite(values), np.minimum(0.0, values - middle), 0.0)


class _Occurrences(NamedTuple):
    """Every word of every text: which word it is, what it costs (below 0), and where it stands."""

    words: list[str]
    """The distinct words."""
    number: NDArray[np.int64]
    cost: FloatVector
    told: NDArray[np.int64]


def _costly(run: Run, told: Sequence[Told], middle: float) -> tuple[CostlyWord, ...]:
    found = _occurrences(run, told, middle)
    size = len(found.words)
    counts = np.bincount(found.number, minlength=size)
    costing = np.bincount(found.number, weights=found.cost < 0, minlength=size).astype(np.int64)
    totals = np.bincount(found.number, weights=found.cost, minlength=size)
    excess = totals - totals.sum() / max(1, counts.sum()) * counts
    candidates = [k for k in np.flatnonzero((excess < 0) & (costing >= _LEAST)).tolist() if found.words[k]]
    often = sorted(candidates, key=lambda k: (excess[k], found.words[k]))[:SHOWN]
    return tuple(
        CostlyWord(found.words[k], int(counts[k]), int(costing[k]), float(totals[k]), _worst(run, told, found, k))
        for k in often
    )


def _worst(run: Run, told: Sequence[Told], found: _Occurrences, word: int) -> str:
    """Return the id of the segment in which a word costs most, the first of several."""
    there = np.flatnonzero(found.number == word)
    worst = int(there[found.cost[there].argmin()])
    return run.dataset.entries[told[int(found.told[worst])].entry].id


def _occurrences(run: Run, told: Sequence[Told], middle: float) -> _Occurrences:
    known: dict[str, int] = {}
    forms: dict[str, int] = {}
    numbers: list[int] = []
    for one in told:
        text = run.dataset.entries[one.entry].segment.text(one.place)
        for start, end in one.spans.tolist():
            word = text[start:end]
            number = forms.get(word)
            if number is None:
                form = _EDGES.sub("", word).casefold()
                number = forms[word] = known.setdefault(form, len(known))
            numbers.append(number)
    cost = _costs(told, middle)
    texts = np.repeat(np.arange(len(told)), [len(one.importance) for one in told])
    return _Occurrences(list(known), np.array(numbers, dtype=np.int64), cost, texts)
