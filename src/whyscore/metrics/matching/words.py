"""What matching says of words: the similarity of their units, and the counterpart of each in the other text.

1. Units are pooled to words by their spans, so that any words can be asked about.
2. The counterpart of a word is that of its most similar unit: the stretch of the other text with the highest cosine. It
   is given whole (a piece as the word it stands in) with its offsets, so that an alignment can be drawn, and as a note:
   `source: Katze [4:9] 0.83`, `reference 2: cat [4:7] 0.91`.
3. Contributions are w s / sum of w, pooled by the sum, a unit over a word border split by characters. The words of the
   hypothesis add up to precision, those of the other text to recall; what belongs to no word is told.

Similarity matrix, the cosines of words with words:

1. The text is compared with the one behind its word scores: with several references, the one with the best F.
2. A cell is the mean cosine over all pairs of a unit of the one word and a unit of the other; special pieces belong to
   no word. Where units are phrases, those of one word alone are taken: longer ones belong to several.
3. A word without a unit has no numbers (NaN). Cosines stand as they are: not weighted, not rescaled.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import compress
from operator import itemgetter
from typing import Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

from whyscore.marking import Span
from whyscore.metrics.matching.weights import rescale
from whyscore.models.matching import Matched, Pair, Sided, cosines
from whyscore.stats.matrices import divide
from whyscore.text.alignment import Fill, Indices, Pieces, Pool, Pooled, align, pool_words
from whyscore.text.splitters import Auto
from whyscore.types import FloatMatrix, Place, Segment, WordMatch, Words, WordScores

Scale = Literal["similarity", "contribution"]

_LEAST = 5e-7  # what is rounding
_start, _end = itemgetter(0), itemgetter(1)


class WordOptions(NamedTuple):
    """How word scores are made."""

    pool: Pool
    fill: Fill
    scale: Scale
    base: float | None
    """What unrelated texts score on this side; None where nothing is rescaled."""


class TextPair(NamedTuple):
    """The explained text, what its units score, and the text it faces."""

    own: Sided
    other: Sided
    matched: Matched
    """What the units of the explained text find in the other."""
    place: Place
    """Of the other text."""
    turned: bool
    """Whether the other text is the hypothesis."""


def text_pair(pair: Pair | None, other: Sided, hypothesis: Sided, place: Place, *, turned: bool) -> TextPair | None:
    """Return a pair as seen from the hypothesis, or, `turned`, from the other text; None where nothing matches."""
    if pair is None:
        return None
    if turned:
        return TextPair(other, hypothesis, pair.other, place, turned)
    return TextPair(hypothesis, other, pair.hypothesis, place, turned)


def word_scores(words: Words, pair: TextPair | None, options: WordOptions) -> WordScores:
    """Return one number per word, with its counterpart; zeros where there is nothing to match with."""
    if pair is None:
        return WordScores(np.zeros(len(words)), ("nothing to match with",) * len(words))
    units = np.flatnonzero(~pair.own.special)
    values = rescale(pair.matched.similarity, options.base)
    if options.scale == "contribution":
        values = values * pair.own.weights / pair.own.weights.sum()
    whole = options.scale == "contribution"
    pool: Pool = "sum" if whole else options.pool
    pooled = pool_words(words, _pieces(pair.own), values[units], pool=pool, fill=options.fill, split=whole)
    matches = _matches(words, pooled, pair, units)
    notes = pooled.explain_missing([_note(match, pair.place) for match in matches])
    if whole and notes:
        outside = float(values.sum() - np.nansum(pooled.values))
        notes[0] += f"; {outside:.6f} belongs to no word" if abs(outside) > _LEAST else ""
    return WordScores(pooled.values, tuple(notes), tuple(() if match is None else (match,) for match in matches))


def _pieces(text: Sided) -> Pieces:
    """Return the units that stand for something in the text."""
    spans: list[Span] = [(start, end) for start, end in text.spans[~text.special].tolist()]
    return Pieces(spans, list(compress(text.pieces, ~text.special)), seen=text.seen)


def _matches(words: Words, pooled: Pooled, pair: TextPair, units: Indices) -> list[WordMatch | None]:
    """Return the counterpart of each word; None where it has no unit."""
    best, cosine = pair.matched.best[units].tolist(), pair.matched.cosine[units].tolist()
    around = Auto().split(pair.other.text).spans
    best_units: dict[int, int] = {}
    for unit, word in zip(pooled.pairs.piece.tolist(), pooled.pairs.word.tolist(), strict=True):
        if word not in best_units or cosine[unit] > cosine[best_units[word]]:
            best_units[word] = unit
    forms = list(words)
    matches: list[WordMatch | None] = [None] * len(words)
    for word, unit in best_units.items():
        partner, span = _counterpart(pair.other, best[unit], around)
        matches[word] = WordMatch.similar(forms[word], cosine[unit], partner, span, pair.place)
    return matches


def _note(match: WordMatch | None, place: Place) -> str:
    if match is None:
        return ""
    offsets = "" if match.start is None else f" [{match.start}:{match.end}]"
    return f"{place}: {match.partner_text}{offsets} {match.similarity:.4f}"


def _counterpart(other: Sided, run: int, around: Sequence[Span]) -> tuple[str, Span | None]:
    """Return a run of the other text and its offsets, as the words it stands in; a special piece has no offsets."""
    length = 0
    while run >= other.runs[length]:
        run -= other.runs[length]
        length += 1
    start, end = int(other.spans[run, 0]), int(other.spans[run + length, 1])
    if other.special[run]:
        return other.pieces[run], None
    inside = around[bisect_right(around, start, key=_end) : bisect_left(around, end, key=_start)]
    if inside:
        start, end = min(start, inside[0][0]) if not other.text[start].isspace() else inside[0][0], inside[-1][1]
    return other.text[start:end], (start, end)


@runtime_checkable
class SupportsSimilarity(Protocol):
    """A metric that matches the texts of a segment with each other."""

    def text_pairs(self, segments: Sequence[Segment], place: Place) -> Iterator[TextPair | None]:
        """Return the text at a place with the one it is matched with, for each segment; None where one is blank."""


def word_cosines(pair: TextPair, words: Words, others: Words) -> FloatMatrix:
    """Return the mean cosine of each word of the explained text with each word of the text it faces."""
    table = cosines(pair.own, pair.other) if pair.turned else cosines(pair.other, pair.own).T
    single = table[: pair.own.runs[0], : pair.other.runs[0]]
    result: FloatMatrix = _means(pair.own, words) @ single @ _means(pair.other, others).T
    return result


def _means(text: Sided, words: Words) -> FloatMatrix:
    """Return words x units: what each unit adds to the mean of a word; NaN for a word without a unit."""
    units = np.flatnonzero(~text.special)
    pairs = align(words, _pieces(text))
    table = np.zeros((len(words), len(text.special)))
    table[pairs.word, units[pairs.piece]] = 1.0
    return divide(table, table.sum(axis=1, keepdims=True))
