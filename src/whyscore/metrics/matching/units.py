"""Texts as what is moved: units with a vector and a mass.

1. Pieces are kept, or dropped: `drop`, as the published code does it, those with `##` in them (WordPiece's mark of a
   piece inside a word), those that are one character of ASCII punctuation, and those in a list of stop words; `words`
   for any tokenizer, those that are punctuation only, that do not start a word, and that start a word of the list.
   There words are those of Unicode, never guessed from the look of a piece.
2. Special pieces carry mass like the others (`include`), none but can be the nearest (`weightless`), or are gone.
3. The vector of a piece is mapped where a map is given.
4. Units are windows of n kept pieces, each one further on; a shorter text is one window. Mass = sum of the weights,
   vector = weighted or plain mean, scaled to unit length after that. With n = 1 units are pieces.
"""

import string
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray

from whyscore.errors import DataError
from whyscore.marking import Span
from whyscore.metrics.matching.weights import IdfTable
from whyscore.protocols import Encoded
from whyscore.text.files import text_of
from whyscore.text.splitters import UnicodeWords
from whyscore.types import FloatMatrix, FloatVector

Tokens = Literal["keep", "drop", "words"]
Specials = Literal["include", "weightless", "exclude"]
Mean = Literal["weighted", "plain"]
Apply = Callable[[FloatMatrix], FloatMatrix]

_ASCII_PUNCTUATION = frozenset(string.punctuation)
_PUNCTUATION = regex.compile(r"[\p{P}\p{S}]*")


@dataclass(frozen=True)
class Cut:
    """How texts become units."""

    tokens: Tokens
    specials: Specials
    ngram: int
    mean: Mean
    stop_words: frozenset[str] = frozenset()
    weights: IdfTable | None = None
    mapped: Apply | None = None


class Moving(NamedTuple):
    """One text, ready to be moved."""

    text: str
    encoded: Encoded
    kept: NDArray[np.intp]
    """The numbers of the pieces that units are made of."""
    size: int
    """How many pieces a unit has."""
    vectors: FloatMatrix
    """Units x width, of unit length."""
    masses: FloatVector

    @property
    def empty(self) -> bool:
        """Whether there is nothing to move."""
        return not bool(self.masses.sum() > 0)

    def named(self, unit: int) -> str:
        """Return how a unit reads in the text; special pieces, and those of white space alone, by their names."""
        span = self.span(unit)
        if span is not None:
            return self.text[slice(*span)]
        return " ".join(self.encoded.pieces[piece] for piece in self.kept[unit : unit + self.size].tolist())

    def span(self, unit: int) -> Span | None:
        """Return where a unit stands in the text, without white space at its ends; None where it is not text."""
        pieces = self.kept[unit : unit + self.size]
        real = pieces[~self.encoded.special[pieces]]
        if not len(real):
            return None
        start, end = int(self.encoded.spans[real[0]][0]), int(self.encoded.spans[real[-1]][1])
        own = self.text[start:end]
        start += len(own) - len(own.lstrip())
        return (start, start + len(own.strip())) if own.strip() else None


class Windows(NamedTuple):
    """The pieces that units are made of, and how much each counts in them."""

    kept: NDArray[np.intp]
    size: int
    shares: FloatMatrix
    """Units x pieces of a unit."""
    masses: FloatVector


def moving(text: str, encoded: Encoded, cut: Cut) -> Moving:
    """Return a text as units."""
    found = windows(text, encoded, cut)
    rows = encoded.vectors[found.kept].astype(np.float64)
    vectors = rows if cut.mapped is None else cut.mapped(rows)
    return Moving(text, encoded, found.kept, found.size, unit_rows(_means(vectors, found)), found.masses)


def windows(text: str, encoded: Encoded, cut: Cut) -> Windows:
    """Return which pieces of a text make units, their shares and the masses of the units."""
    kept = np.flatnonzero(_kept(text, encoded, cut))
    pieces = [encoded.pieces[piece] for piece in kept.tolist()]
    weights = np.ones(len(kept)) if cut.weights is None else cut.weights.of(pieces)
    if cut.specials == "weightless":
        weights[encoded.special[kept]] = 0.0
    size = max(1, min(cut.ngram, len(kept)))
    if size == 1:
        return Windows(kept, size, np.ones((len(kept), 1)), weights)
    return Windows(kept, size, *_shares(weights, size, cut.mean))


def unit_rows(rows: FloatMatrix) -> FloatMatrix:
    """Return rows of unit length; rows of zeros stay as they are."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: FloatMatrix = rows / np.where(lengths > 0, lengths, 1.0)
    return scaled


def over_windows(values: FloatVector, size: int) -> FloatMatrix:
    """Return, for each piece, the values of the windows it stands in, NaN where a window would reach outside.

    >>> over_windows(np.array([1.0, 2.0]), 2)
    array([[ 1., nan],
           [ 2.,  1.],
           [nan,  2.]])
    """
    table = np.full((len(values) + size - 1, size), np.nan)
    for shift in range(size):
        table[shift : shift + len(values), shift] = values
    return table


def stop_words(path: str | None) -> frozenset[str]:
    """Return the words of a file, one a line, in small letters."""
    if path is None:
        return frozenset()
    file = Path(path).expanduser()
    if not file.is_file():
        raise DataError("no such file: stop_words takes a file with one word per line", file=path)
    return _read(file, file.stat().st_mtime_ns)


@lru_cache(maxsize=8)
def _read(file: Path, _: int) -> frozenset[str]:
    return frozenset(line.strip().lower() for line in text_of(file).splitlines()) - {""}


def _kept(text: str, encoded: Encoded, cut: Cut) -> NDArray[np.bool_]:
    """Return which pieces units are made of."""
    real = ~encoded.special
    if cut.tokens == "drop":
        dropped = cut.stop_words | _ASCII_PUNCTUATION
        for piece in np.flatnonzero(real).tolist():
            written = encoded.pieces[piece]
            real[piece] = "##" not in written and written not in dropped
    elif cut.tokens == "words":
        starts = {
            start: text[start:end] for start, end in UnicodeWords().split(text).spans if _says(text[start:end], cut)
        }
        for piece in np.flatnonzero(real).tolist():
            start, end = encoded.spans[piece].tolist()
            written = text[start:end]
            first = start + len(written) - len(written.lstrip())
            real[piece] = first in starts and not _PUNCTUATION.fullmatch(written.strip())
    return real if cut.specials == "exclude" else real | encoded.special


def _says(word: str, cut: Cut) -> bool:
    return word.lower() not in cut.stop_words


def _shares(weights: FloatVector, size: int, mean: Mean) -> tuple[FloatMatrix, FloatVector]:
    """Return how much each piece counts in each window of `size` pieces, and the masses of the windows."""
    # Where no piece of a window has weight, the plain mean is its only sensible direction.
    count = len(weights) - size + 1
    spread = np.stack([weights[shift : shift + count] for shift in range(size)], axis=1)
    masses = spread.sum(axis=1)
    shares = spread / np.where(masses > 0, masses, 1.0)[:, None]
    if mean == "plain":
        shares = np.full_like(shares, 1 / size)
    shares[masses <= 0] = 1 / size
    return shares, masses


def _means(vectors: FloatMatrix, found: Windows) -> FloatMatrix:
    """Return the mean vector of each unit."""
    if found.size == 1:
        return vectors
    count, shares = len(found.shares), found.shares
    rows = sum((shares[:, [shift]] * vectors[shift : shift + count] for shift in range(found.size)), np.zeros(1))
    return np.asarray(rows)
