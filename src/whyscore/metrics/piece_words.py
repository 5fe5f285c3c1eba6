"""What a model says of the pieces of a text, as word scores."""

from typing import Literal, NamedTuple

from whyscore.errors import DataError
from whyscore.marking import Span
from whyscore.text.alignment import Pieces, Pool, align, pool_words
from whyscore.types import FloatVector, Words, WordScores

Fill = Literal["error", "previous", "next", "median", "null"]
"""What a word without a piece gets; words the model did not read have no number under any of these."""


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
    pooled = pool_words(words, pieces, scores.values, pool=pool, fill="null" if fill == "error" else fill)
    lost = [word for word, reason in pooled.missing if reason != "truncated"]
    if fill == "error" and lost:
        name = words.text[slice(*words.spans[lost[0]])]
        raise DataError(
            f"{len(lost)} word(s) of {words.text!r} have no piece, first {name!r}; choose fill='previous', 'next', "
            "'median' or 'null'"
        )
    notes = _notes(words, pieces, scores, what)
    for word, reason in pooled.missing:
        notes[word] = f"{reason}, filled" if word in pooled.filled else reason
    return WordScores(pooled.values, tuple(notes))


def _notes(words: Words, pieces: Pieces, scores: PieceScores, what: str) -> list[str]:
    """Return each word's pieces, as they stand in the text, with their numbers."""
    shown: list[list[str]] = [[] for _ in range(len(words))]
    pairs = align(words, pieces)
    for piece, word in zip(pairs.piece.tolist(), pairs.word.tolist(), strict=True):
        text = words.text[slice(*scores.spans[piece])].strip() or scores.pieces[piece]
        shown[word].append(f"{text} {scores.values[piece]:.4g}")
    return [f"{what}: {', '.join(parts)}" for parts in shown]
