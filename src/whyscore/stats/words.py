"""How well word scores find the words that people marked: AUC, AP and recall at K, sentence by sentence.

After the Eval4NLP 2021 shared task (Fomicheva et al., 2021) and WMT22 QE task 2. Scores are error scores (higher = more
likely an error), and only their order inside a sentence counts. With P marked and N unmarked words, n = P + N:

1. One sort of all words by (sentence, falling score); equal scores of a sentence form a group.
2. Each group knows its size, how many of it are marked, and how many words stand above it: sums over runs
   (`reduceat`), no loop over sentences.
3. AUC: the share of (marked, unmarked) pairs in the right order, ties half. AP: the sum over groups of
   (share of P in the group) x (precision down to the group's end). Recall at K with K = P: marked words among the K
   highest, over K; the group that crosses the border K is shared out by the tie rule.

| tie rule | words tied at the border |
|---|---|
| `expected` | count with the share of the places left: the mean over all orders |
| `legacy` | the later word wins, as a stable ascending sort, reversed, has it: the published values |
| `first` | the earlier word wins |
| `low`, `high` | worst and best case |

Sentences whose words are all marked or all unmarked have no value: NaN.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from whyscore.errors import DataError
from whyscore.types import FloatVector

Ties = Literal["expected", "legacy", "first", "low", "high"]
TIES: tuple[Ties, ...] = get_args(Ties)
Measure = Literal["auc", "ap", "recall_at_k"]
MEASURES: tuple[Measure, ...] = get_args(Measure)
Whole = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Ragged:
    """Numbers of sentences of different length, in one vector: sentence i has `lengths[i]` of them."""

    values: FloatVector
    lengths: Whole

    @classmethod
    def of(cls, rows: Iterable[Sequence[float] | FloatVector]) -> "Ragged":
        """Return the numbers of some sentences.

        >>> Ragged.of([[1, 0], [1]]).values
        array([1., 0., 1.])
        """
        kept = [np.asarray(row, dtype=np.float64) for row in rows]
        values = np.concatenate(kept) if kept else np.zeros(0)
        return cls(values, np.array([len(row) for row in kept], dtype=np.int64))

    def __len__(self) -> int:
        """Return the number of sentences."""
        return len(self.lengths)

    @property
    def starts(self) -> Whole:
        """Where each sentence begins in the vector."""
        return np.concatenate([[0], np.cumsum(self.lengths)[:-1]]).astype(np.int64) if len(self) else self.lengths

    @property
    def sentences(self) -> Whole:
        """The sentence of each number."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def rows(self) -> list[FloatVector]:
        """Return the numbers sentence by sentence."""
        return np.split(self.values, np.cumsum(self.lengths)[:-1]) if len(self) else []

    def sums(self) -> FloatVector:
        """Return the sum of each sentence, 0 where it is empty."""
        return np.bincount(self.sentences, weights=self.values, minlength=len(self)).astype(np.float64)

    def chosen(self, kept: NDArray[np.bool_]) -> "Ragged":
        """Return some of the sentences, given as one truth value each."""
        return Ragged(self.values[np.repeat(kept, self.lengths)], self.lengths[kept])

    def cut(self, lengths: Whole) -> "Ragged":
        """Return the first `lengths[i]` numbers of each sentence, or all where it has fewer."""
        kept = np.minimum(self.lengths, lengths)
        places = np.arange(len(self.values)) - np.repeat(self.starts, self.lengths)
        return Ragged(self.values[places < np.repeat(kept, self.lengths)], kept)

    def turned(self) -> "Ragged":
        """Return the numbers multiplied by -1."""
        return replace(self, values=-self.values)


class Agreement(NamedTuple):
    """One number per sentence; NaN where the gold is all 0 or all 1."""

    auc: FloatVector
    ap: FloatVector
    recall_at_k: FloatVector
    recall_at_k_legacy: FloatVector
    recall_at_k_low: FloatVector
    recall_at_k_high: FloatVector
    ties: NDArray[np.bool_]
    """Whether a group of equal scores crosses the border K."""
    marked: Whole
    """P of each sentence."""
    words: Whole
    """n of each sentence."""

    @property
    def evaluated(self) -> NDArray[np.bool_]:
        """Which sentences have a value: those with both kinds of words."""
        return (self.marked > 0) & (self.marked < self.words)

    def of(self, measure: Measure) -> FloatVector:
        """Return one measure of the evaluated sentences."""
        values: FloatVector = getattr(self, measure)
        return values[self.evaluated]


class _Groups(NamedTuple):
    """Equal scores of a sentence: size, marked words, and how many words and marked words stand above."""

    sentence: Whole
    size: Whole
    marked: Whole
    above: Whole
    marked_above: Whole


def agree(gold: Ragged, scores: Ragged, ties: Ties = "expected") -> Agreement:
    """Return how well scores find marked words, per sentence; `ties` is the rule behind `recall_at_k`.

    >>> found = agree(Ragged.of([[1, 0, 1, 1, 0]]), Ragged.of([[0.9, 0.5, 0.5, 0.5, 0.1]]))
    >>> [round(float(values[0]), 6) for values in found[:4]]
    [0.833333, 0.833333, 0.777778, 1.0]
    """
    _check(gold, scores, ties)
    count = len(gold)
    marked = gold.sums().astype(np.int64)
    defined = (marked > 0) & (marked < gold.lengths)
    sentence = scores.sentences
    order = np.lexsort((-scores.values, sentence))
    groups = _groups(sentence[order], scores.values[order], gold.values[order], gold.starts)
    places = np.clip(marked[groups.sentence] - groups.above, 0, groups.size)

    def mean(parts: FloatVector | Whole, over: Whole) -> FloatVector:
        sums = np.bincount(groups.sentence, weights=parts, minlength=count)
        means: FloatVector = np.divide(sums, over, out=np.full(count, np.nan), where=defined)
        return means

    ordered = _ordered_hits(groups, gold.values[order], places)
    unmarked = groups.size - groups.marked
    low = mean(np.maximum(0, places - unmarked), marked)
    high = mean(np.minimum(groups.marked, places), marked)
    recalls = {
        "expected": mean(groups.marked * (places / groups.size), marked),
        "legacy": mean(ordered.later, marked),
        "first": mean(ordered.earlier, marked),
        "low": low,
        "high": high,
    }
    crossed = (places > 0) & (places < groups.size)
    return Agreement(
        auc=mean(_right_pairs(groups, gold.lengths - marked), marked * (gold.lengths - marked)),
        ap=mean(groups.marked * ((groups.marked_above + groups.marked) / (groups.above + groups.size)), marked),
        recall_at_k=recalls[ties],
        recall_at_k_legacy=recalls["legacy"],
        recall_at_k_low=low,
        recall_at_k_high=high,
        ties=defined & (np.bincount(groups.sentence[crossed], minlength=count) > 0),
        marked=marked,
        words=gold.lengths,
    )


def chance(gold: Ragged) -> Agreement:
    """Return what random scores reach on average, in closed form: no draw, no error.

    AUC 1/2; recall at K P/n; AP (H_n + (P-1)/(n-1) (n - H_n))/n with H_n the n-th harmonic number.
    """
    marked, words = gold.sums().astype(np.int64), gold.lengths
    defined = (marked > 0) & (marked < words)
    n, p = words[defined].astype(np.float64), marked[defined].astype(np.float64)
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, words.max(initial=1) + 1))])[words[defined]]

    def spread(values: FloatVector | float) -> FloatVector:
        result = np.full(len(gold), np.nan)
        result[defined] = values
        return result

    recall = spread(p / n)
    ap = spread((harmonic + (p - 1) / (n - 1) * (n - harmonic)) / n)
    nowhere = np.zeros(len(gold), dtype=np.bool_)
    return Agreement(spread(0.5), ap, recall, recall, recall, recall, nowhere, marked, words)


def _check(gold: Ragged, scores: Ragged, ties: str) -> None:
    if ties not in TIES:
        raise DataError(f"no tie rule named {ties!r}: use {', '.join(TIES)}")
    if not np.array_equal(gold.lengths, scores.lengths):
        raise DataError("gold and scores differ in their number of sentences or words: align them first")
    if not np.isin(gold.values, (0.0, 1.0)).all():
        raise DataError("gold marks must be 0 or 1; for shares of annotators use the continuous measures")
    if not np.isfinite(scores.values).all():
        raise DataError("word scores must be finite: NaN and infinities have no rank")


def _groups(sentence: Whole, scores: FloatVector, gold: FloatVector, starts: Whole) -> _Groups:
    """Return the groups of equal scores of words that are sorted by sentence and falling score."""
    if not len(scores):
        none = np.zeros(0, dtype=np.int64)
        return _Groups(none, none, none, none, none)
    begins = np.flatnonzero(np.r_[True, (sentence[1:] != sentence[:-1]) | (scores[1:] != scores[:-1])])
    owner = sentence[begins]
    sums = np.r_[0, np.cumsum(gold)].astype(np.int64)
    marked = np.add.reduceat(gold, begins).astype(np.int64)
    return _Groups(
        sentence=owner,
        size=np.diff(np.r_[begins, len(scores)]),
        marked=marked,
        above=begins - starts[owner],
        marked_above=sums[begins] - sums[starts[owner]],
    )


def _right_pairs(groups: _Groups, unmarked: Whole) -> FloatVector:
    """Return for each group its (marked, unmarked) pairs in the right order, ties half."""
    own = groups.size - groups.marked
    below = unmarked[groups.sentence] - (groups.above - groups.marked_above) - own
    pairs: FloatVector = groups.marked * (below + 0.5 * own)
    return pairs


class _Hits(NamedTuple):
    earlier: FloatVector
    later: FloatVector


def _ordered_hits(groups: _Groups, gold: FloatVector, places: Whole) -> _Hits:
    """Return for each group the marked words that get a place, where the earlier or the later word wins."""
    sums = np.r_[0.0, np.cumsum(gold)]
    begins = np.cumsum(groups.size) - groups.size
    ends = begins + groups.size
    return _Hits(sums[begins + places] - sums[begins], sums[ends] - sums[ends - places])
