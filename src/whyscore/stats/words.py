"""Word scores and word tags against the words that human annotators marked.

`agree`: AUC, AP and recall at K, sentence by sentence.
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

`mean_estimates`, `pair_tests`, `best_group`, `ranks`: which of several submissions finds the marked words best. All
comparisons are paired: the rows of a matrix (systems x sentences) are one measure on the *same* sentences.

1. Intervals: the bootstrap over sentences, with the same resamples for all systems.
2. Tests, two-sided: the paired t-test (Table 6 of Fomicheva et al., 2021), or sign flips of the differences with
   p = (count + 1) / (draws + 1) for few sentences.
3. Best group of a measure: the systems that no other beats with a higher mean and p below alpha.
4. Rank: rank on each measure (1 = best, equal means share the mean rank), then the mean over the measures; a system
   without a side is last on it.

`confusion`: binary decisions, as the WMT word-level tasks judge them by F1 of both classes, their product, and MCC.

1. Words are BAD (1) or OK (0), from tags or from scores above a threshold.
2. All words of the corpus are counted together; no sentence is left out.
3. A number whose denominator is 0 is NaN, never 0.

The WMT22 result pages call F1 of BAD "Recall" and F1 of OK "Precision"; here they have their own names.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from whyscore.errors import DataError, SpecError
from whyscore.stats import coefficients
from whyscore.stats.matrices import divide
from whyscore.stats.resampling import block_sizes, content_order, draw_sums, percentiles
from whyscore.types import Estimate, FloatMatrix, FloatVector, IntVector

Ties = Literal["expected", "legacy", "first", "low", "high"]
TIES: tuple[Ties, ...] = get_args(Ties)
Measure = Literal["auc", "ap", "recall_at_k"]
MEASURES: tuple[Measure, ...] = get_args(Measure)


@dataclass(frozen=True, slots=True, eq=False)
class Ragged:
    """Numbers of sentences of different length, in one vector: sentence i has `lengths[i]` of them."""

    values: FloatVector
    lengths: IntVector

    @classmethod
    def of(cls, rows: Iterable[Sequence[float] | FloatVector]) -> "Ragged":
        """Return the numbers of some sentences.

        >>> Ragged.of([[1, 0], [1]]).values
        array([1., 0., 1.])
        """
        arrays = [np.asarray(row, dtype=np.float64) for row in rows]
        values = np.concatenate(arrays) if arrays else np.zeros(0)
        return cls(values, np.array([len(row) for row in arrays], dtype=np.int64))

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def starts(self) -> IntVector:
        """Where each sentence begins in the vector."""
        return np.concatenate([[0], np.cumsum(self.lengths)[:-1]]).astype(np.int64) if len(self) else self.lengths

    @property
    def sentences(self) -> IntVector:
        """The sentence of each number."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def rows(self) -> list[FloatVector]:
        return np.split(self.values, np.cumsum(self.lengths)[:-1]) if len(self) else []

    def sums(self) -> FloatVector:
        """Return the sum of each sentence, 0 where it is empty."""
        return np.bincount(self.sentences, weights=self.values, minlength=len(self)).astype(np.float64)

    def select(self, mask: NDArray[np.bool_]) -> "Ragged":
        """Return the sentences where the mask is true."""
        return Ragged(self.values[np.repeat(mask, self.lengths)], self.lengths[mask])

    def cut(self, lengths: IntVector) -> "Ragged":
        """Return the first `lengths[i]` numbers of each sentence, or all where it has fewer."""
        limits = np.minimum(self.lengths, lengths)
        places = np.arange(len(self.values)) - np.repeat(self.starts, self.lengths)
        return Ragged(self.values[places < np.repeat(limits, self.lengths)], limits)

    def negate(self) -> "Ragged":
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
    marked: IntVector
    """P of each sentence."""
    words: IntVector
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

    sentence: IntVector
    size: IntVector
    marked: IntVector
    above: IntVector
    marked_above: IntVector


def agree(gold: Ragged, scores: Ragged, ties: Ties = "expected") -> Agreement:
    """Return how well scores find marked words, per sentence; `ties` is the rule behind `recall_at_k`.

    >>> agreement = agree(Ragged.of([[1, 0, 1, 1, 0]]), Ragged.of([[0.9, 0.5, 0.5, 0.5, 0.1]]))
    >>> [round(float(values[0]), 6) for values in agreement[:4]]
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

    def mean(parts: FloatVector | IntVector, over: IntVector) -> FloatVector:
        return divide(np.bincount(groups.sentence, weights=parts, minlength=count), over * defined)

    ordered = _order_hits(groups, gold.values[order], places)
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


def _groups(sentence: IntVector, scores: FloatVector, gold: FloatVector, starts: IntVector) -> _Groups:
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


def _right_pairs(groups: _Groups, unmarked: IntVector) -> FloatVector:
    """Return for each group its (marked, unmarked) pairs in the right order, ties half."""
    negatives = groups.size - groups.marked
    below = unmarked[groups.sentence] - (groups.above - groups.marked_above) - negatives
    pairs: FloatVector = groups.marked * (below + 0.5 * negatives)
    return pairs


class _Hits(NamedTuple):
    earlier: FloatVector
    later: FloatVector


def _order_hits(groups: _Groups, gold: FloatVector, places: IntVector) -> _Hits:
    """Return for each group the marked words that get a place, where the earlier or the later word wins."""
    sums = np.r_[0.0, np.cumsum(gold)]
    begins = np.cumsum(groups.size) - groups.size
    ends = begins + groups.size
    return _Hits(sums[begins + places] - sums[begins], sums[ends] - sums[ends - places])


Test = Literal["ttest", "permutation"]
TESTS: tuple[Test, ...] = get_args(Test)
FLIPS = 10_000
LEVEL = 0.95
_BLOCK = 4_000_000  # flips x sentences held in memory at a time
_EPSILON = 1e-12


class PairedTest(NamedTuple):
    """A two-sided test of one system against another on the same sentences."""

    difference: float
    statistic: float
    """Student's t; NaN for sign flips."""
    p: float
    n: int


class Guard(NamedTuple):
    """The one-sided test of per-sentence AUC against chance."""

    mean: float
    p: float

    @property
    def fires(self) -> bool:
        """Whether the scores seem to point the wrong way."""
        return self.mean < 0.5 and self.p < 0.01  # noqa: PLR2004 - chance, and the level of the guard


def mean_estimates(values: FloatMatrix, *, draws: int = 1000, seed: int = 0) -> list[Estimate]:
    """Return the mean of each row with its percentile interval; all rows share the resamples of the columns.

    Differences of rows are rows too, so that they get intervals the same way.
    """
    n = values.shape[1]
    if n == 0:
        return [Estimate(float("nan"), n=0, reason="empty") for _ in values]
    values = values[:, content_order(values.T)]
    means = values.mean(axis=1)
    if n == 1 or draws == 0:
        return [Estimate(float(mean), level=LEVEL, n=n, reason="undefined" if n == 1 else None) for mean in means]
    drawn = np.vstack(list(draw_sums(values.T, draws, seed))) / n
    bounds = zip(means.tolist(), *percentiles(drawn, LEVEL).tolist(), strict=True)
    return [Estimate(mean, least, most, LEVEL, n) for mean, least, most in bounds]


def compare_pair(a: FloatVector, b: FloatVector, test: Test = "ttest", *, seed: int = 0) -> PairedTest:
    """Return the two-sided test of system A against system B; p is NaN for fewer than two sentences."""
    if test not in TESTS:
        raise SpecError(f"no test named {test!r}: use {', '.join(TESTS)}")
    differences = np.sort(np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64))
    n = len(differences)
    mean = float(differences.mean()) if n else float("nan")
    if n < 2:  # noqa: PLR2004 - one difference has no spread
        return PairedTest(mean, float("nan"), float("nan"), n)
    if test == "permutation":
        return PairedTest(mean, float("nan"), _flip_p(differences, seed), n)
    statistic = _student(differences)
    return PairedTest(mean, statistic, 1.0 if mean == 0 else _two_sided(statistic, n - 1), n)


def orientation(auc: FloatVector) -> Guard:
    """Return the test whether AUC is below chance, which scores that point the wrong way give."""
    n = len(auc)
    if n < 2:  # noqa: PLR2004 - one value has no spread
        return Guard(float(auc.mean()) if n else float("nan"), float("nan"))
    from scipy.stats import t  # noqa: PLC0415 - slow to import

    return Guard(float(auc.mean()), float(t.cdf(_student(auc - 0.5), n - 1)))


def pair_tests(values: FloatMatrix, test: Test = "ttest", *, seed: int = 0) -> dict[tuple[int, int], PairedTest]:
    """Return the test of every pair of rows, the earlier against the later."""
    count = len(values)
    return {
        (i, j): compare_pair(values[i], values[j], test, seed=seed) for i in range(count) for j in range(i + 1, count)
    }


def best_group(means: Sequence[float], p: dict[tuple[int, int], float], alpha: float = 0.05) -> list[int]:
    """Return the rows that no other beats: none has a higher mean with p < alpha."""

    def beaten(i: int) -> bool:
        others = (j for j in range(len(means)) if j != i and means[j] > means[i])
        return any(p[min(i, j), max(i, j)] < alpha for j in others)

    return [i for i in range(len(means)) if not beaten(i)]


def ranks(means: FloatVector) -> FloatVector:
    """Return the rank of each mean, 1 for the highest; equal means share their mean rank, missing ones are last.

    >>> ranks(np.array([0.5, 0.9, 0.5, np.nan])).tolist()
    [2.5, 1.0, 2.5, 4.0]
    """
    values = np.asarray(means, dtype=np.float64)
    return np.where(np.isnan(values), float(len(values)), coefficients.ranks(-values))


def _student(differences: FloatVector) -> float:
    spread = float(differences.std(ddof=1))
    mean = float(differences.mean())
    if spread == 0:
        return 0.0 if mean == 0 else float(np.copysign(np.inf, mean))
    return float(mean / (spread / np.sqrt(len(differences))))


def _two_sided(statistic: float, freedom: int) -> float:
    from scipy.stats import t  # noqa: PLC0415 - slow to import

    return float(2 * t.sf(abs(statistic), freedom))


def _flip_p(differences: FloatVector, seed: int) -> float:
    """Return the share of sign flips whose mean is at least as far from 0 as the one seen."""
    rng = np.random.default_rng(seed)
    seen = abs(float(differences.sum())) - _EPSILON
    n, count = len(differences), 0
    for size in block_sizes(FLIPS, n, _BLOCK):
        signs = rng.integers(0, 2, size=(size, n), dtype=np.int8) * 2.0 - 1.0
        count += int((np.abs(signs @ differences) >= seen).sum())
    return (count + 1) / (FLIPS + 1)


Gaps = Literal["drop", "only", "all"]
GAPS: tuple[Gaps, ...] = get_args(Gaps)
_GAP_EVERY = 2


class Confusion(NamedTuple):
    """How often decisions and gold agree; BAD is the positive class."""

    tp: int
    fp: int
    fn: int
    tn: int

    @property
    def precision(self) -> float:
        """Share of the words called BAD that are."""
        return _ratio(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> float:
        """Share of the BAD words that are called so."""
        return _ratio(self.tp, self.tp + self.fn)

    @property
    def f1_bad(self) -> float:
        """F1 of BAD."""
        return _ratio(2 * self.tp, 2 * self.tp + self.fp + self.fn)

    @property
    def f1_ok(self) -> float:
        """F1 of OK."""
        return _ratio(2 * self.tn, 2 * self.tn + self.fp + self.fn)

    @property
    def f1_product(self) -> float:
        """F1 of BAD times F1 of OK."""
        return self.f1_bad * self.f1_ok

    @property
    def mcc(self) -> float:
        """Matthews' correlation; NaN where one kind of word, or of decision, is missing."""
        return float(_mcc(*(np.array([float(count)]) for count in self))[0])


def confusion(gold: FloatVector, bad: NDArray[np.bool_]) -> Confusion:
    """Return how often decisions agree with the gold, over all words.

    >>> confusion(np.array([1.0, 0, 1, 0]), np.array([True, True, False, False]))
    Confusion(tp=1, fp=1, fn=1, tn=1)
    """
    if len(gold) != len(bad):
        raise DataError(f"{len(bad)} decisions for {len(gold)} words: give one per word")
    marked = gold > 0
    tp, fp = int((marked & bad).sum()), int((~marked & bad).sum())
    return Confusion(tp, fp, int(marked.sum()) - tp, int((~marked).sum()) - fp)


def best_threshold(gold: FloatVector, scores: FloatVector) -> float:
    """Return the observed score above which calling words BAD gives the highest MCC; of equal ones the highest.

    NaN where no threshold has an MCC: the gold or the scores are constant.
    """
    order = np.argsort(-scores, kind="stable")
    ordered, marked = scores[order], gold[order] > 0
    # Words above the threshold t are BAD, so only the last word before a new value can end them.
    ends = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    if not len(ends):
        return float("nan")
    hits = np.cumsum(marked)
    tp = hits[ends - 1].astype(np.float64)
    fp = ends - tp
    values = _mcc(tp, fp, hits[-1] - tp, len(scores) - hits[-1] - fp)
    if np.isnan(values).all():
        return float("nan")
    return float(ordered[ends[int(np.nanargmax(values))]])


def without_gaps(tags: Ragged, gaps: Gaps = "drop") -> Ragged:
    """Return the tags of words, of gaps or of both, out of sequences gap, word, gap ... word, gap (2N + 1 long)."""
    if gaps not in GAPS:
        raise DataError(f"no choice of gaps named {gaps!r}: use {', '.join(GAPS)}")
    even = np.flatnonzero(tags.lengths % _GAP_EVERY == 0)
    if len(even):
        line, count = int(even[0]) + 1, int(tags.lengths[even[0]])
        raise DataError(f"{count} tags on line {line}: with gaps there is one more gap than words, an odd number")
    if gaps == "all":
        return tags
    places = np.arange(len(tags.values)) - np.repeat(tags.starts, tags.lengths)
    parity = 1 if gaps == "drop" else 0
    words = tags.lengths // _GAP_EVERY
    return Ragged(tags.values[places % _GAP_EVERY == parity], words if gaps == "drop" else words + 1)


def _mcc(tp: FloatVector, fp: FloatVector, fn: FloatVector, tn: FloatVector) -> FloatVector:
    return divide(tp * tn - fp * fn, np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)))


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")
