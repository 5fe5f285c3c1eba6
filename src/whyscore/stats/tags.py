"""Binary word decisions, as the WMT word-level tasks judge them: F1 of both classes, their product, and MCC.

1. Words are BAD (1) or OK (0), from tags or from scores above a threshold.
2. All words of the corpus are counted together; no sentence is left out.
3. A number whose denominator is 0 is NaN, never 0.

The WMT22 result pages call F1 of BAD "Recall" and F1 of OK "Precision"; here they have their own names.
"""

from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from whyscore.errors import DataError
from whyscore.stats.words import Ragged
from whyscore.types import FloatVector

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
    wanted = 1 if gaps == "drop" else 0
    words = tags.lengths // _GAP_EVERY
    return Ragged(tags.values[places % _GAP_EVERY == wanted], words if gaps == "drop" else words + 1)


def _mcc(tp: FloatVector, fp: FloatVector, fn: FloatVector, tn: FloatVector) -> FloatVector:
    margins = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    found: FloatVector = np.divide(tp * tn - fp * fn, np.sqrt(margins), out=np.full(len(tp), np.nan), where=margins > 0)
    return found


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")
