"""What a model says of the pieces of a text, as word scores.

Shares of a sum, piece by piece: what must not get lost on the way to words.

A boundary mark that is a piece of its own (`▁`) has no letters, so that a word with other pieces does not count it. In
a sum it has a share all the same: it goes to the piece that follows, which it stands before, or to the last one.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whyscore.marking import Span
from whyscore.text.alignment import BOUNDARY_MARKS, Fill, Pieces, Pool, align, pool_words
from whyscore.types import FloatVector, Words, WordScores


class PieceScores(NamedTuple):
    """One number per piece of a text that a model read, special pieces left out."""

    spans: tuple[Span, ...]
    pieces: tuple[str, ...]
    values: FloatVector
    total: int
    """How many pieces the text has; more than there are values where it was cut."""

    @property
    def seen(self) -> int | None:
        """Where the model stopped reading; None for the end of the text."""
        if len(self.spans) == self.total:
            return None
        return self.spans[-1][1] if self.spans else 0


def word_scores(words: Words, scores: PieceScores, pool: Pool, fill: Fill, what: str) -> WordScores:
    """Return one number per word, with the pieces behind it as a note; `what` names the numbers.

    Words beyond the end of what was read are NaN, with the note `truncated`.
    """
    pieces = Pieces(scores.spans, scores.pieces, seen=scores.seen)
    pooled = pool_words(words, pieces, scores.values, pool=pool, fill=fill)
    return WordScores(pooled.values, tuple(pooled.explain_missing(_notes(words, pieces, scores, what))))


def _notes(words: Words, pieces: Pieces, scores: PieceScores, what: str) -> list[str]:
    """Return each word's pieces, as they stand in the text, with their numbers."""
    shown: list[list[str]] = [[] for _ in range(len(words))]
    pairs = align(words, pieces)
    for piece, word in zip(pairs.piece.tolist(), pairs.word.tolist(), strict=True):
        text = words.text[slice(*scores.spans[piece])].strip() or scores.pieces[piece]
        shown[word].append(f"{text} {scores.values[piece]:.4g}")
    return [f"{what}: {', '.join(parts)}" for parts in shown]


def carried(text: str, spans: Sequence[Span], pieces: Sequence[str], values: FloatVector) -> FloatVector:
    """Return the values with those of boundary marks added to the piece that follows.

    >>> carried("a .", [(0, 1), (1, 2), (2, 3)], ["▁a", "▁", "."], np.array([1.0, 2.0, 4.0]))
    array([1., 0., 6.])
    """
    marks = _marks(text, spans, pieces)
    strong = np.flatnonzero(~marks)
    if not len(strong) or not marks.any():
        return values
    result = np.where(marks, 0.0, values)
    weak = np.flatnonzero(marks & ~np.isnan(values))
    following = np.minimum(np.searchsorted(strong, weak), len(strong) - 1)
    np.add.at(result, strong[following], values[weak])
    return result


def _marks(text: str, spans: Sequence[Span], pieces: Sequence[str]) -> NDArray[np.bool_]:
    flags = [
        not text[start:end].strip() or not piece.strip(BOUNDARY_MARKS + " ")
        for (start, end), piece in zip(spans, pieces, strict=True)
    ]
    return np.array(flags, dtype=np.bool_)
