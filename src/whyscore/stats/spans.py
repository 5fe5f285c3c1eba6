"""How well predicted error spans fit the marked ones, micro or macro over segments, side by side.

First the overlapping spans of one annotator are united, severity by severity; an omission inside another error stays
one of its own; neutral spans are no errors and critical counts as major. Then:

1. `characters` (WMT23 QE): a marked character counts 1 where the prediction has its severity and .5 where it has the
   other one; a character with both severities, or with none known, counts 1 for any. Recall over marked characters,
   precision over predicted ones. One place after the text carries omissions.
2. `exact` (EM): same start and end (and severity, if asked), one to one.
3. `partial` (MP): any overlap counts 1, one to one, with the most pairs.
4. `credit` (MPP, arXiv 2603.19921): one to one, the pairs that maximise the segment's F. Precision credit = overlap /
   predicted length, recall credit = overlap / marked length, over the number of predicted and marked spans.

`matching="greedy"` pairs spans for 3 and 4 by falling overlap, as a share of both lengths, instead of the best pairing.
Micro adds up credit and spans of all segments, as the paper recommends; macro is the mean precision and the mean recall
of the segments, with F of the two.

Nothing predicted: precision 1 where nothing is marked either, else 0; recall likewise.

Word scores become error spans with severities, and spans become word labels again.

Words -> spans:
1. A word is flagged by the highest threshold its error score exceeds: minor, major, critical. Or the share `top` of the
   words with the highest scores is flagged, whatever their severity (None).
2. Neighbouring flagged words join, the blank between them included; up to `gap` unflagged words are bridged. The span
   has the worst severity inside (`join="same"` keeps different severities apart) and the largest score.

Spans -> words: a word carries the worst severity (1 minor, 2 major, 3 critical; 1 where it is not known) of the spans
that touch it: by `any` character, by `half` of its characters or more, or by `all`. Neutral spans are no errors.

Thresholds may be given, learnt on labelled words (`learn_threshold`), or found in the scores alone (`otsu`): the split
of all scores into two groups with the smallest variance inside the groups (Otsu, 1979).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from whyscore.errors import DataError, SpecError
from whyscore.settings import check_fields
from whyscore.stats.matrices import divide
from whyscore.types import ErrorSpan, FloatMatrix, FloatVector, Severity, Side, Words

_MAJOR, _MINOR = 2, 1
_KINDS = {None: (_MINOR, _MAJOR), "minor": (_MINOR,), "major": (_MAJOR,), "critical": (_MAJOR,), "neutral": ()}
_NAMES = {(_MINOR,): "minor", (_MAJOR,): "major", (_MINOR, _MAJOR): None}
_MIXES = (0.5, 0.0, 0.25, 0.75, 1.0)
_ROUNDS = 20


class Fit(NamedTuple):
    """How much of the prediction and of the gold is matched."""

    precision_credit: float
    predicted: float
    recall_credit: float
    gold: float

    @property
    def precision(self) -> float:
        """Credit over what was predicted."""
        return self.precision_credit / self.predicted if self.predicted else float(not self.gold)

    @property
    def recall(self) -> float:
        """Credit over what is marked."""
        return self.recall_credit / self.gold if self.gold else float(not self.predicted)

    @property
    def f1(self) -> float:
        """The harmonic mean of the two."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0

    def plus(self, other: "Fit") -> "Fit":
        """Return both together."""
        return Fit(*(a + b for a, b in zip(self, other, strict=True)))


NOTHING = Fit(0.0, 0.0, 0.0, 0.0)


class Marked(NamedTuple):
    """One text with its marked and predicted spans."""

    length: int
    gold: Sequence[ErrorSpan]
    predicted: Sequence[ErrorSpan]


@dataclass(frozen=True, slots=True)
class SpanResult:
    """All measures over all texts."""

    n: int
    predicted: int
    gold: int
    characters: Fit
    exact: Fit
    partial: Fit
    credit: Fit


Matching = Literal["optimal", "greedy"]
Averaging = Literal["micro", "macro"]


def judge_spans(
    texts: Sequence[Marked],
    *,
    severity: bool = False,
    weights: Mapping[str, float] | None = None,
    matching: Matching = "optimal",
    average: Averaging = "micro",
) -> SpanResult:
    """Return how well spans fit; all spans of a text must be on one side.

    Args:
        texts: what was marked and predicted.
        severity: exact matches must have the severity too.
        weights: of spans by severity (`{"minor": 1, "major": 5}`) in the measures that count spans.
        matching: how spans are paired where they overlap partly.
        average: over all spans together, or over segments.
    """
    totals = {"characters": NOTHING, "exact": NOTHING, "partial": NOTHING, "credit": NOTHING}
    predicted = marked = 0
    for text in texts:
        gold, predictions = unite(text.gold), unite(text.predicted)
        predicted, marked = predicted + len(predictions), marked + len(gold)
        if not gold and not predictions and average == "micro":
            continue
        fits = {
            "characters": _characters(text.length, gold, predictions),
            "exact": _exact(gold, predictions, weights, severity=severity),
            "partial": _partial(gold, predictions, weights, greedy=matching == "greedy"),
            "credit": _credit(gold, predictions, weights, greedy=matching == "greedy"),
        }
        if average == "macro":
            fits = {name: Fit(fit.precision, 1.0, fit.recall, 1.0) for name, fit in fits.items()}
        totals = {name: total.plus(fits[name]) for name, total in totals.items()}
    return SpanResult(len(texts), predicted, marked, **totals)


def unite(spans: Sequence[ErrorSpan]) -> tuple[ErrorSpan, ...]:
    """Return the errors among some spans, overlapping ones of one severity united, in order."""
    if len({(span.side, span.reference) for span in spans}) > 1:
        raise DataError("spans of several sides were given for one text: judge each side alone")
    united: list[ErrorSpan] = []
    for kinds, name in _NAMES.items():
        group = sorted((span for span in spans if _KINDS[span.severity] == kinds), key=_sort_key)
        last: ErrorSpan | None = None
        for span in group:
            if last is not None and span.start < last.end and span.start < span.end:
                last = united[-1] = _move(last, last.start, max(last.end, span.end), name)
            elif last is None or (span.start, span.end) != (last.start, last.end):
                last = _move(span, span.start, span.end, name)
                united.append(last)
    return tuple(sorted(united, key=lambda span: (span.start, span.end)))


def _sort_key(span: ErrorSpan) -> tuple[bool, int, int]:
    """Return a sort key that puts empty spans last: an omission inside an error is a separate error."""
    return span.start == span.end, span.start, span.end


def combine(annotators: Sequence[Sequence[ErrorSpan]], length: int, how: str = "union") -> tuple[ErrorSpan, ...]:
    """Return the union or the intersection of several annotators' spans of one text, severity by severity.

    In an intersection a character must be marked by every annotator, and has the mildest of their worst severities.
    """
    side = next((span.side for spans in annotators for span in spans), Side.HYPOTHESIS)
    if how == "union":
        return unite([span for spans in annotators for span in spans])
    if how != "intersection":
        raise DataError(f"spans can be put together by union or intersection, got {how!r}")
    worst = np.stack([_worst(length, unite(spans)) for spans in annotators]).min(axis=0)
    common = []
    edges = np.flatnonzero(np.diff(np.concatenate([[0], worst, [0]])))
    for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        level = int(worst[start])
        if level:
            common.append(ErrorSpan(start, end, "major" if level == _MAJOR else "minor", side=side))
    return tuple(common)


def _worst(length: int, spans: Sequence[ErrorSpan]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    levels = np.zeros(length, dtype=np.int64)
    for span in spans:
        inside = levels[span.start : span.end]
        np.maximum(inside, max(_KINDS[span.severity]), out=inside)
    return levels


def _move(span: ErrorSpan, start: int, end: int, name: str | None) -> ErrorSpan:
    severity: Severity | None = "major" if name == "major" else "minor" if name == "minor" else None
    return ErrorSpan(start, end, severity, span.category, span.side, span.reference)


def _characters(length: int, gold: Sequence[ErrorSpan], predicted: Sequence[ErrorSpan]) -> Fit:
    marks, guesses = _paint(length, gold), _paint(length, predicted)
    marked, guessed = marks.any(axis=0), guesses.any(axis=0)
    both = marked & guessed
    same = (marks & guesses).any(axis=0)
    hits = float(same.sum() + 0.5 * (both & ~same).sum())
    return Fit(hits, float(guessed.sum()), hits, float(marked.sum()))


def _paint(length: int, spans: Sequence[ErrorSpan]) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """Return severities x places; empty spans are omissions, which stand at the place after the text."""
    places = np.zeros((2, length + 1), dtype=np.bool_)
    for span in spans:
        where = slice(span.start, span.end) if span.start < span.end else slice(length, length + 1)
        for kind in _KINDS[span.severity]:
            places[kind - 1, where] = True
    return places


def _exact(
    gold: Sequence[ErrorSpan], predicted: Sequence[ErrorSpan], weights: Mapping[str, float] | None, *, severity: bool
) -> Fit:
    def key(span: ErrorSpan) -> tuple[object, ...]:
        return (span.start, span.end, span.severity) if severity else (span.start, span.end)

    left = Counter(map(key, gold))
    right = Counter(map(key, predicted))
    common = left & right
    precise, complete = (float(_worth(spans, weights) @ _take(spans, key, common)) for spans in (predicted, gold))
    return _miss(gold, predicted, weights)._replace(precision_credit=precise, recall_credit=complete)


def _take(spans: Sequence[ErrorSpan], key: object, common: Counter[tuple[object, ...]]) -> FloatVector:
    """Return 1 for each span that is one of the common ones, as often as these occur."""
    left = Counter(common)
    hits = np.zeros(len(spans))
    for k, span in enumerate(spans):
        name = key(span)  # type: ignore[operator]
        if left[name] > 0:
            left[name] -= 1
            hits[k] = 1.0
    return hits


def _worth(spans: Sequence[ErrorSpan], weights: Mapping[str, float] | None) -> FloatVector:
    if weights is None:
        return np.ones(len(spans))
    return np.array([weights.get(span.severity or "major", 1.0) for span in spans], dtype=np.float64)


def _miss(gold: Sequence[ErrorSpan], predicted: Sequence[ErrorSpan], weights: Mapping[str, float] | None) -> Fit:
    """Return the fit of spans of which none is matched."""
    return Fit(0.0, float(_worth(predicted, weights).sum()), 0.0, float(_worth(gold, weights).sum()))


def _overlaps(gold: Sequence[ErrorSpan], predicted: Sequence[ErrorSpan]) -> FloatMatrix:
    """Return marked x predicted: characters in common. Two empty spans, both omissions, have one place in common."""
    starts, ends = (np.array([[getattr(span, name)] for span in gold]).reshape(-1, 1) for name in ("start", "end"))
    others, lasts = (
        np.array([[getattr(span, name) for span in predicted]]).reshape(1, -1) for name in ("start", "end")
    )
    common = np.clip(np.minimum(ends, lasts) - np.maximum(starts, others), 0, None).astype(np.float64)
    return np.where((starts == ends) & (others == lasts), 1.0, common)


def _lengths(spans: Sequence[ErrorSpan]) -> FloatVector:
    return np.array([max(1, span.end - span.start) for span in spans], dtype=np.float64)


def _partial(
    gold: Sequence[ErrorSpan], predicted: Sequence[ErrorSpan], weights: Mapping[str, float] | None, *, greedy: bool
) -> Fit:
    empty = _miss(gold, predicted, weights)
    if not len(gold) or not len(predicted):
        return empty
    common = _overlaps(gold, predicted)
    rows, columns = _greedy(common, gold, predicted) if greedy else _assign((common > 0).astype(np.float64))
    precise, complete = _worth(predicted, weights)[columns].sum(), _worth(gold, weights)[rows].sum()
    return empty._replace(precision_credit=float(precise), recall_credit=float(complete))


def _credit(
    gold: Sequence[ErrorSpan], predicted: Sequence[ErrorSpan], weights: Mapping[str, float] | None, *, greedy: bool
) -> Fit:
    empty = _miss(gold, predicted, weights)
    if not len(gold) or not len(predicted):
        return empty
    common = _overlaps(gold, predicted)
    precise = common / _lengths(predicted)[None, :] * _worth(predicted, weights)[None, :]
    complete = common / _lengths(gold)[:, None] * _worth(gold, weights)[:, None]
    if greedy:
        pairs = _greedy(common, gold, predicted)
        return empty._replace(precision_credit=float(precise[pairs].sum()), recall_credit=float(complete[pairs].sum()))
    best = empty
    # Where every span overlaps one other at the most there is one pairing, whatever is weighed.
    for mix in _MIXES[:1] if _single(common) else _MIXES:
        fit = _climb(precise, complete, empty, mix)
        best = fit if fit.f1 > best.f1 else best
    return best


def _greedy(
    common: FloatMatrix, gold: Sequence[ErrorSpan], predicted: Sequence[ErrorSpan]
) -> tuple[list[int], list[int]]:
    """Return one-to-one pairs by falling overlap over the mean of both lengths; equal ones in the order of the text."""
    shares = 2 * common / (_lengths(gold)[:, None] + _lengths(predicted)[None, :])
    rows: list[int] = []
    columns: list[int] = []
    for place in np.argsort(-shares, axis=None, kind="stable").tolist():
        row, column = divmod(place, shares.shape[1])
        if shares[row, column] <= 0:
            break
        if row not in rows and column not in columns:
            rows.append(row)
            columns.append(column)
    return rows, columns


def _climb(precise: FloatMatrix, complete: FloatMatrix, empty: Fit, mix: float) -> Fit:
    """Return a pairing that no re-weighting by the slope of F at its own precision and recall improves."""
    best = empty
    for _ in range(_ROUNDS):
        rows, columns = _assign((1 - mix) * precise / empty.predicted + mix * complete / empty.gold)
        fit = Fit(
            float(precise[rows, columns].sum()), empty.predicted, float(complete[rows, columns].sum()), empty.gold
        )
        if fit.f1 <= best.f1:
            return best
        best = fit
        # The slope of F = 2PR / (P + R): R^2 in the direction of P, P^2 in that of R.
        squares = fit.precision**2 + fit.recall**2
        mix = fit.precision**2 / squares
    return best


def _assign(worth: FloatMatrix) -> tuple[list[int], list[int]]:
    """Return the one-to-one pairs with the highest total worth; pairs worth nothing are left out."""
    if _single(worth):
        pairs = np.nonzero(worth)
        return pairs[0].tolist(), pairs[1].tolist()
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415 - slow to import

    rows, columns = linear_sum_assignment(worth, maximize=True)
    positive = worth[rows, columns] > 0
    return rows[positive].tolist(), columns[positive].tolist()


def _single(worth: FloatMatrix) -> bool:
    """Return whether every row and every column has one pair at the most."""
    pairs = worth > 0
    return bool(pairs.sum(axis=0).max(initial=0) <= 1 and pairs.sum(axis=1).max(initial=0) <= 1)


Join = Literal["worst", "same"]
Touch = Literal["any", "half", "all"]
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
        check_fields(self)
        thresholds = [value for value in (self.minor, self.major, self.critical) if value is not None]
        if thresholds != sorted(thresholds):
            raise SpecError(f"thresholds must rise with severity, got {thresholds}")
        if bool(thresholds) == (self.top is not None):
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
            here = [(span.start, span.end) for span, severity in touching if severity >= level]
            if _is_touched(start, end, here, touch):
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


def learn_threshold(
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
    good = np.flatnonzero(divide(hits[above], above) >= (precision or 0.0))
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


def _is_touched(start: int, end: int, spans: Sequence[tuple[int, int]], touch: Touch) -> bool:
    if touch == "any":
        return bool(spans)
    covered = np.zeros(end - start, dtype=np.bool_)
    for first, last in spans:
        covered[max(first - start, 0) : max(last - start, 0)] = True
    return bool(covered.mean() >= 0.5 if touch == "half" else covered.all())  # noqa: PLR2004 - half
