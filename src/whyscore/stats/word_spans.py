"""Word scores become error spans with severities, and spans become word labels again.

Words -> spans:
1. A word is flagged by the highest threshold its error score exceeds: minor, major, critical. Or the share `top` of the
   words with the highest scores is flagged, whatever their severity (None).
2. Neighbouring flagged words join, the blank between them included; up to `gap` unflagged words are bridged. The span
   has the worst severity inside (`join="same"` keeps different severities apart) and the largest score.

Spans -> words: a word carries the worst severity (1 minor, 2 major, 3 critical; 1 where it is not known) of the spans
that touch it: by `any` character, by `half` of its characters or more, or by `all`. Neutral spans are no errors.

Thresholds may be given, learnt on labelled words (`learnt`), or found in the scores alone (`otsu`): the split of all
scores into two groups with the smallest variance inside the groups (Otsu, 1979).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from whyscore.errors import DataError, SpecError
from whyscore.options import check_fields
from whyscore.types import ErrorSpan, FloatVector, Severity, Side, Words

Join = Literal["worst", "same"]
Touch = Literal["any", "half", "all"]
JOINS: tuple[Join, ...] = get_args(Join)
TOUCHES: tuple[Touch, ...] = get_args(Touch)
LEVELS: dict[Severity | None, int] = {"neutral": 0, None: 1, "minor": 1, "major": 2, "critical": 3}
_SEVERITIES: tuple[Severity, ...] = ("minor", "major", "critical")


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Error scores above which a word is wrong, and how badly; None switches a severity off."""

    minor: float | None = None
    major: float | None = None
    critical: float | None = None
    top: float | None = None
    """Share of the words with the highest scores, instead of thresholds."""
    join: Join = "worst"
    gap: int = 0

    def __post_init__(self) -> None:
        """Refuse thresholds that make no sense together."""
        check_fields(self)
        given = [value for value in (self.minor, self.major, self.critical) if value is not None]
        if given != sorted(given):
            raise SpecError(f"thresholds must rise with severity, got {given}")
        if bool(given) == (self.top is not None):
            raise SpecError("give thresholds (minor, major, critical) or top, the share of words, not both")
        if self.top is not None and not 0 < self.top <= 1:
            raise SpecError(f"top is {self.top}, expected a share above 0 and up to 1")
        if self.gap < 0:
            raise SpecError(f"gap is {self.gap}, expected 0 or more words")

    def levels(self, scores: FloatVector) -> NDArray[np.int64]:
        """Return the severity of each word as a number, 0 where it is not flagged."""
        levels = np.zeros(len(scores), dtype=np.int64)
        if self.top is not None:
            count = int(np.ceil(self.top * len(scores) - 1e-9))
            levels[np.argsort(-scores, kind="stable")[:count]] = 1
            return levels
        for level, threshold in enumerate((self.minor, self.major, self.critical), start=1):
            if threshold is not None:
                levels[scores > threshold] = level
        return levels


def to_spans(
    words: Words, scores: FloatVector, thresholds: Thresholds, side: Side = Side.HYPOTHESIS
) -> tuple[ErrorSpan, ...]:
    """Return the error spans of one text.

    >>> from whyscore.text.splitters import white_space
    >>> to_spans(white_space("a bad bad cat"), np.array([0.0, 2.0, 3.0, 0.5]), Thresholds(minor=1.0))[0].end
    9
    """
    if len(scores) != len(words):
        raise DataError(f"{len(scores)} scores for {len(words)} words: give one per word")
    levels = thresholds.levels(np.asarray(scores, dtype=np.float64))
    return tuple(_span(words, run, scores, levels, thresholds, side) for run in _runs(levels, thresholds))


def to_levels(words: Words, spans: Sequence[ErrorSpan], touch: Touch = "any") -> NDArray[np.int64]:
    """Return the worst severity of the spans that touch each word, 0 where none does."""
    if touch not in TOUCHES:
        raise SpecError(f"touch is {touch!r}, expected {', '.join(TOUCHES)}")
    levels = np.zeros(len(words), dtype=np.int64)
    marked = [(span, LEVELS[span.severity]) for span in spans if LEVELS[span.severity] and span.start < span.end]
    for k, (start, end) in enumerate(words.spans):
        touching = [(span, level) for span, level in marked if span.start < end and start < span.end]
        for level in sorted({level for _, level in touching}, reverse=True):
            # Several spans of a severity may share a word: their characters count together.
            here = [(span.start, span.end) for span, own in touching if own >= level]
            if _touched(start, end, here, touch):
                levels[k] = level
                break
    return levels


def otsu(scores: FloatVector) -> float:
    """Return the threshold that splits numbers into two groups with the least variance inside; NaN where all are equal.

    >>> otsu(np.array([0.0, 0.1, 0.2, 5.0, 5.1]))
    0.2
    """
    ordered = np.sort(np.asarray(scores, dtype=np.float64))
    n = len(ordered)
    ends = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    if not len(ends):
        return float("nan")
    sums = np.cumsum(ordered)
    low, high = sums[ends - 1] / ends, (sums[-1] - sums[ends - 1]) / (n - ends)
    between = ends * (n - ends) * (high - low) ** 2
    return float(ordered[ends[int(np.argmax(between))] - 1])


def learnt(
    scores: FloatVector, gold: FloatVector, *, precision: float | None = None, rate: float | None = None
) -> float:
    """Return the lowest threshold with at least that precision on labelled words, or that flags that share of them.

    NaN where no threshold reaches the precision.
    """
    if (precision is None) == (rate is None):
        raise SpecError("give the precision or the rate that is wanted, not both")
    ordered = np.sort(np.unique(scores))
    if rate is not None:
        if not 0 < rate < 1:
            raise SpecError(f"rate is {rate}, expected a share above 0 and below 1")
        return float(np.quantile(scores, 1 - rate, method="inverted_cdf"))
    order = np.argsort(-scores, kind="stable")
    falling, marked = scores[order], gold[order] > 0
    hits = np.concatenate([[0], np.cumsum(marked)])
    above = np.searchsorted(-falling, -ordered, side="left")
    shares = np.divide(hits[above], above, out=np.full(len(above), np.nan), where=above > 0)
    good = np.flatnonzero(shares >= (precision or 0.0))
    return float(ordered[good[0]]) if len(good) else float("nan")


def _runs(levels: NDArray[np.int64], how: Thresholds) -> list[list[int]]:
    """Return the flagged words that form one span each."""
    runs: list[list[int]] = []
    for k in np.flatnonzero(levels).tolist():
        near = runs and k - runs[-1][-1] <= how.gap + 1
        if near and (how.join == "worst" or levels[runs[-1][-1]] == levels[k]):
            runs[-1].append(k)
        else:
            runs.append([k])
    return runs


def _span(  # noqa: PLR0917 - for this module alone
    words: Words, run: list[int], scores: FloatVector, levels: NDArray[np.int64], how: Thresholds, side: Side
) -> ErrorSpan:
    severity = None if how.top is not None else _SEVERITIES[int(levels[run].max()) - 1]
    start, end = words.spans[run[0]][0], words.spans[run[-1]][1]
    return ErrorSpan(start, end, severity, side=side, score=float(np.max(scores[run])))


def _touched(start: int, end: int, spans: Sequence[tuple[int, int]], touch: Touch) -> bool:
    if touch == "any":
        return bool(spans)
    covered = np.zeros(end - start, dtype=np.bool_)
    for first, last in spans:
        covered[max(first - start, 0) : max(last - start, 0)] = True
    return bool(covered.mean() >= 0.5 if touch == "half" else covered.all())  # noqa: PLR2004 - half
