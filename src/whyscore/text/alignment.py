"""Numbers of subword pieces as numbers of words, by character spans alone.

1. Words and pieces are half-open spans of code points in the same text. White space at the ends of a piece is trimmed
   (SentencePiece spans begin at the blank before a word).
2. A piece belongs to every word it overlaps. Several pieces may share a span: byte pieces of one character, ligatures
   that were normalised into several letters.
3. A piece that is empty after trimming, or only a boundary mark, is weak: it counts for the word it touches only when
   that word has no other piece.
4. Pool the pieces of each word: mean, sum, max, min or first. A piece over a word border counts in full for each word,
   or by its share of characters (`split`), so that sums stay exact.
5. A word without a piece is missing, for a reason: the text was cut before it (`truncated`), its pieces were left out
   on purpose (`dropped`), or there is none (`no_piece`). It is refused or filled as the caller chooses, and reported.

Nothing is guessed from the look of a piece, nothing is matched by its letters.

Shares of a sum must not get lost on the way (`carry_marks`): a boundary mark that is a piece of its own (`▁`) has no
letters, so that a word with other pieces does not count it; its share goes to the piece that follows, or to the last.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from whyscore.errors import ContractError, DataError, SpecError
from whyscore.marking import Span
from whyscore.types import FloatVector, Words, WordScores

Pool = Literal["mean", "sum", "max", "min", "first"]
Fill = Literal["error", "previous", "next", "median", "null"]
"""What a word without a piece gets; words the model did not read have no number under any of these."""
Reason = Literal["truncated", "dropped", "no_piece"]

BOUNDARY_MARKS = "▁Ġ"
"""How SentencePiece and byte-level tokenizers write the blank before a word."""

Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Pieces:
    """The pieces of one text, special ones left out.

    `texts` are the pieces as the tokenizer writes them, to know boundary marks by; `dropped` marks pieces that were
    left out on purpose; `seen` is where a model stopped reading, None for the end of the text.
    """

    spans: Sequence[Span]
    texts: Sequence[str] | None = None
    dropped: Sequence[bool] | None = None
    seen: int | None = None


class Pairs(NamedTuple):
    """Which piece belongs to which word, sorted by word and, within it, by piece."""

    piece: Indices
    word: Indices
    share: FloatVector
    """The share of the piece's characters that lies in the word."""


class PieceScores(NamedTuple):
    """One number per piece of a text that a model read, special pieces left out."""

    spans: tuple[Span, ...]
    pieces: tuple[str, ...]
    values: FloatVector
    total: int
    """How many pieces the text has; more than there are values where it was cut."""

    @property
    def read(self) -> Pieces:
        """The pieces, and where the model stopped reading."""
        seen = self.spans[-1][1] if self.spans else 0
        return Pieces(self.spans, self.pieces, seen=None if len(self.spans) == self.total else seen)


class Missing(NamedTuple):
    """A word without a piece, and why."""

    word: int
    reason: Reason


class Pooled(NamedTuple):
    """One number per word, NaN where there is none, and the pieces behind it."""

    values: FloatVector
    pairs: Pairs
    missing: tuple[Missing, ...] = ()
    filled: tuple[int, ...] = ()
    """The missing words that got a number from elsewhere."""

    def explain_missing(self, notes: Sequence[str]) -> list[str]:
        """Return one note per word: for a word without a piece the reason, and whether it was filled."""
        reasons = {word: f"{reason}, filled" if word in self.filled else reason for word, reason in self.missing}
        return [reasons.get(word, note) for word, note in enumerate(notes)]


def pool_words(
    words: Words,
    pieces: Pieces,
    values: FloatVector,
    *,
    pool: Pool = "mean",
    fill: Fill | Literal["value"] = "error",
    value: float | None = None,
    split: bool = False,
) -> Pooled:
    """Return one number per word from one number per piece.

    `fill="value"` gives missing words `value`. Truncated words stay NaN under every other policy, as nothing near
    them was read; other words without a piece are an error where no policy is chosen.

    >>> pool_words(Words("a bcd", ((0, 1), (2, 5))), Pieces([(0, 1), (2, 3), (3, 5)]), np.array([1., 2., 4.])).values
    array([1., 3.])
    """
    if len(values) != len(pieces.spans):
        raise ContractError(f"expected one number per piece, got {len(values)} for {len(pieces.spans)} pieces")
    pairs = align(words, pieces)
    numbers = values[pairs.piece] * pairs.share if split else values[pairs.piece]
    result = _pool(numbers, pairs.word, len(words), pool)
    missing = _missing(words, pieces, pairs)
    values, filled = _fill(words, result, missing, fill, value)
    return Pooled(values, pairs, missing, filled)


def score_words(
    words: Words, scores: PieceScores, pool: Pool, fill: Fill, what: str, *, split: bool = False
) -> WordScores:
    """Return one number per word, with the pieces behind it as a note; `what` names the numbers.

    Words beyond the end of what was read are NaN, with the note `truncated`.
    """
    pooled = pool_words(words, scores.read, scores.values, pool=pool, fill=fill, split=split)
    shown: list[list[str]] = [[] for _ in range(len(words))]
    for piece, word in zip(pooled.pairs.piece.tolist(), pooled.pairs.word.tolist(), strict=True):
        text = words.text[slice(*scores.spans[piece])].strip() or scores.pieces[piece]
        shown[word].append(f"{text} {scores.values[piece]:.4g}")
    notes = [f"{what}: {', '.join(parts)}" for parts in shown]
    return WordScores(pooled.values, tuple(pooled.explain_missing(notes)))


def carry_marks(text: str, pieces: Pieces, values: FloatVector) -> FloatVector:
    """Return the values with those of boundary marks added to the piece that follows.

    >>> carry_marks("a .", Pieces([(0, 1), (1, 2), (2, 3)], ["▁a", "▁", "."]), np.array([1.0, 2.0, 4.0]))
    array([1., 0., 6.])
    """
    blank = _flags([not text[start:end].strip() for start, end in pieces.spans], len(pieces.spans))
    marks = blank | _marks(pieces.texts, len(pieces.spans))
    strong = np.flatnonzero(~marks)
    if not len(strong) or not marks.any():
        return values
    result = np.where(marks, 0.0, values)
    weak = np.flatnonzero(marks & ~np.isnan(values))
    following = np.minimum(np.searchsorted(strong, weak), len(strong) - 1)
    np.add.at(result, strong[following], values[weak])
    return result


def align(words: Words, pieces: Pieces) -> Pairs:
    """Return which piece belongs to which word; dropped pieces belong to none."""
    if pieces.dropped is None and tuple(pieces.spans) == words.spans and not any(map(_is_blank, words)):
        numbers = np.arange(len(words))
        return Pairs(numbers, numbers, np.ones(len(words)))
    starts, ends = _trim(words.text, pieces.spans)
    kept = ~_flags(pieces.dropped, len(starts))
    weak = (starts == ends) | _marks(pieces.texts, len(starts))
    strong = _overlaps(words, starts, ends, np.flatnonzero(kept & ~weak))
    touching = _touches(words, starts, ends, np.flatnonzero(kept & weak))
    helped = ~_with_piece(strong, len(words))[touching.word]
    joined = [np.concatenate([a, b[helped]]) for a, b in zip(strong, touching, strict=True)]
    order = np.lexsort((joined[0], joined[1]))
    piece, word, share = (part[order] for part in joined)
    return Pairs(piece, word, share)


def _is_blank(text: str) -> bool:
    return not text or text.isspace()


def find_uncovered(text: str, spans: Sequence[Span]) -> list[int]:
    """Return the offsets of the characters, white space aside, that no piece covers.

    >>> find_uncovered("a bc", [(0, 1), (2, 3)])
    [3]
    """
    edges = np.zeros(len(text) + 1, dtype=np.intp)
    starts, ends = _inside(text, spans)
    np.add.at(edges, starts, 1)
    np.add.at(edges, ends, -1)
    bare = (np.cumsum(edges[:-1]) == 0) & ~_blank(text)
    return [int(offset) for offset in np.flatnonzero(bare)]


def _with_piece(pairs: Pairs, words: int) -> NDArray[np.bool_]:
    """Return which words have a piece."""
    result = np.zeros(words, dtype=np.bool_)
    result[pairs.word] = True
    return result


def _columns(spans: Sequence[Span]) -> tuple[Indices, Indices]:
    table = np.array(spans, dtype=np.intp).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def _inside(text: str, spans: Sequence[Span]) -> tuple[Indices, Indices]:
    """Return the starts and ends of pieces, which must lie in their text."""
    starts, ends = _columns(spans)
    if len(starts) and (starts.min() < 0 or ends.max() > len(text) or np.any(starts > ends)):
        raise ContractError(f"pieces reach outside their text of {len(text)} characters, or end before they start")
    return starts, ends


def _blank(text: str) -> NDArray[np.bool_]:
    return np.fromiter(map(str.isspace, text), dtype=np.bool_, count=len(text))


def _flags(flags: Sequence[bool] | None, number: int) -> NDArray[np.bool_]:
    return np.zeros(number, dtype=np.bool_) if flags is None else np.array(flags, dtype=np.bool_)


def _marks(texts: Sequence[str] | None, number: int) -> NDArray[np.bool_]:
    """Return which pieces are nothing but boundary marks."""
    return _flags(None if texts is None else [not text.strip(BOUNDARY_MARKS + " ") for text in texts], number)


def _trim(text: str, spans: Sequence[Span]) -> tuple[Indices, Indices]:
    """Return the spans without white space at their ends; one of white space alone becomes empty, at its end."""
    _, ends = _inside(text, spans)
    pieces = [text[start:end].lstrip() for start, end in spans]
    starts = ends - np.array([len(piece) for piece in pieces], dtype=np.intp)
    return starts, starts + np.array([len(piece.rstrip()) for piece in pieces], dtype=np.intp)


def _overlaps(words: Words, starts: Indices, ends: Indices, which: Indices) -> Pairs:
    """Return all pairs of a piece and a word with characters in common."""
    word_starts, word_ends = _columns(words.spans)
    first = np.searchsorted(word_ends, starts[which], side="right")
    number = np.searchsorted(word_starts, ends[which], side="left") - first
    piece = np.repeat(which, number)
    word = np.arange(number.sum()) - np.repeat(np.cumsum(number) - number, number) + np.repeat(first, number)
    common = np.minimum(ends[piece], word_ends[word]) - np.maximum(starts[piece], word_starts[word])
    return Pairs(piece, word, common / (ends[piece] - starts[piece]))


def _touches(words: Words, starts: Indices, ends: Indices, which: Indices) -> Pairs:
    """Return the word at or after the beginning of each weak piece that reaches it."""
    word_starts, word_ends = _columns(words.spans)
    word = np.searchsorted(word_ends, starts[which], side="right")
    inside = word < len(words)
    which, word = which[inside], word[inside]
    near = word_starts[word] <= np.maximum(starts[which], ends[which])
    return Pairs(which[near], word[near], np.ones(int(near.sum())))


def _pool(numbers: FloatVector, word: Indices, words: int, pool: Pool) -> FloatVector:
    result = np.full(words, np.nan)
    present, begin, count = np.unique(word, return_index=True, return_counts=True)
    if not len(present):
        return result
    match pool:
        case "first":
            result[present] = numbers[begin]
        case "max":
            result[present] = np.maximum.reduceat(numbers, begin)
        case "min":
            result[present] = np.minimum.reduceat(numbers, begin)
        case "sum":
            result[present] = np.add.reduceat(numbers, begin)
        case "mean":
            result[present] = np.add.reduceat(numbers, begin) / count
    return result


def _missing(words: Words, pieces: Pieces, pairs: Pairs) -> tuple[Missing, ...]:
    absent = np.flatnonzero(~_with_piece(pairs, len(words)))
    if not len(absent):
        return ()
    all_pieces = Pieces(pieces.spans, pieces.texts)
    left_out = set(align(words, all_pieces).word.tolist())
    seen = len(words.text) if pieces.seen is None else pieces.seen
    missing = []
    for word in absent.tolist():
        reason: Reason = "dropped" if word in left_out else "no_piece"
        missing.append(Missing(word, "truncated" if words.spans[word][0] >= seen else reason))
    return tuple(missing)


def _fill(
    words: Words, values: FloatVector, missing: Sequence[Missing], fill: Fill | Literal["value"], value: float | None
) -> tuple[FloatVector, tuple[int, ...]]:
    """Return the values with missing words filled by the policy, where it reaches them, and which were filled."""
    if fill == "value" and value is None:
        raise SpecError("fill='value' needs the value to fill with, got None")
    if not missing or fill == "null":
        return values, ()
    targets = [word for word, reason in missing if fill == "value" or reason != "truncated"]
    if fill == "error" and targets:
        name = words.text[slice(*words.spans[targets[0]])]
        raise DataError(
            f"{len(targets)} word(s) of {words.text!r} have no piece, first {name!r}; choose fill='previous', 'next', "
            "'median' or 'null'"
        )
    result = values.copy()
    result[targets] = _substitutes(values, np.array(targets, dtype=np.intp), fill, value)
    return result, tuple(word for word in targets if not np.isnan(result[word]))


def _substitutes(
    values: FloatVector, targets: Indices, fill: Fill | Literal["value"], value: float | None
) -> FloatVector:
    """Return what stands in for each missing word; NaN where no word of the text has a number."""
    present = np.flatnonzero(~np.isnan(values))
    if fill == "value":
        return np.full(len(targets), value, dtype=np.float64)
    if not len(present):
        return np.full(len(targets), np.nan)
    if fill == "median":
        return np.full(len(targets), np.median(values[present]))
    after = np.searchsorted(present, targets)
    # Before the first number there is only a next one, after the last only a previous one.
    nearest = after - 1 if fill == "previous" else after
    substitutes: FloatVector = values[present[np.clip(nearest, 0, len(present) - 1)]]
    return substitutes
