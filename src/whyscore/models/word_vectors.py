"""One vector per word, whatever stands around it: from files, from the small encoders, or from the caller.

    embedded          the static table of the embedded encoder, offline at once
    static            the static table for about a hundred languages
    cc.ru.300.vec     text vectors of fastText, word2vec or GloVe, also .gz and .zst
    cc.ru.300.bin     a binary model of fastText, which has vectors for words it never saw
    a Python object   anything with `vectors` and `signature`, a mapping, KeyedVectors, or a function of words

Rows have unit length, so that cosines are products; the row of a word without a vector is zero.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from whyscore.errors import ContractError, DataError, SpecError
from whyscore.models.loading import encoder
from whyscore.models.word_vectors_bin import BinaryVectors
from whyscore.models.word_vectors_text import TextVectors
from whyscore.types import FloatMatrix, Signature

BoolVector = NDArray[np.bool_]

# The blank before a word may be a piece of its own; it says nothing of the word.
_EMPTY_PIECES = frozenset({"<unk>", "[UNK]", "▁"})
_BLOCK = 4096


class Found(NamedTuple):
    """Vectors of words, and which of the words have one."""

    rows: FloatMatrix
    """Words x width, of unit length; zeros for unknown words."""
    known: BoolVector


@runtime_checkable
class WordVectors(Protocol):
    """Gives words their vectors."""

    def signature(self) -> Signature:
        """Return the text that names the vectors."""

    def vectors(self, words: Sequence[str]) -> tuple[FloatMatrix, BoolVector]:
        """Return one row of unit length per word, and which words are known."""


@dataclass(frozen=True, slots=True)
class EncoderVectors:
    """The mean of the static vectors of a word's pieces, by an encoder that runs on numpy."""

    name: Literal["embedded", "static"] = "embedded"

    def signature(self) -> Signature:
        """Return the encoder's name and edition."""
        return _encoder_signature(self.name)

    def vectors(self, words: Sequence[str]) -> tuple[FloatMatrix, BoolVector]:
        """Return the mean over the known pieces of each word; a word without any is unknown."""
        coder = encoder(self.name, 0)
        rows: list[FloatMatrix] = []
        known: list[bool] = []
        for start in range(0, len(words), _BLOCK):
            for one in coder.encode(words[start : start + _BLOCK]):
                kept = [k for k, piece in enumerate(one.pieces) if not one.special[k] and piece not in _EMPTY_PIECES]
                known.append(bool(kept))
                rows.append(one.vectors[kept].sum(axis=0, dtype=np.float64))
        return unit(np.array(rows, dtype=np.float64).reshape(len(words), -1)), np.array(known, dtype=np.bool_)


@dataclass(frozen=True, slots=True, eq=False)
class TableVectors:
    """Vectors that the caller holds: a mapping, or anything with `in` and `[]` such as gensim's KeyedVectors."""

    table: Mapping[str, Sequence[float]]

    def signature(self) -> Signature:
        """Return a text that cannot name the vectors."""
        return Signature(f"{type(self.table).__name__}-of-the-caller", stable=False)

    def vectors(self, words: Sequence[str]) -> tuple[FloatMatrix, BoolVector]:
        """Return the rows of the table."""
        # KeyedVectors has no `get` that answers None.
        found = [self.table[word] if word in self.table else None for word in words]  # noqa: SIM401
        return _stacked(found, "the table of words")


@dataclass(frozen=True, slots=True, eq=False)
class FunctionVectors:
    """Vectors by a function of words, which returns one vector, or None, for each."""

    function: Callable[[Sequence[str]], Sequence[Sequence[float] | None]]

    def signature(self) -> Signature:
        """Return a text that cannot name the vectors."""
        return Signature(f"{getattr(self.function, '__name__', 'function')}-of-the-caller", stable=False)

    def vectors(self, words: Sequence[str]) -> tuple[FloatMatrix, BoolVector]:
        """Return what the function says."""
        return _stacked(list(self.function(words)), self.signature().spec)


def word_vectors(given: object) -> WordVectors | None:
    """Return the provider that a name, a path or an object stands for; None for None.

    >>> word_vectors("embedded")
    EncoderVectors(name='embedded')
    """
    if given is None or isinstance(given, WordVectors):
        return given
    if isinstance(given, str):
        return _named(given)
    if hasattr(given, "__getitem__") and hasattr(given, "__contains__"):
        return TableVectors(cast("Mapping[str, Sequence[float]]", given))
    if callable(given):
        return FunctionVectors(given)
    raise SpecError(
        f"words is {given!r}, expected 'embedded', 'static', a file, None, a mapping, a function of words, or an "
        "object with vectors() and signature()"
    )


def looked_up(provider: WordVectors | None, words: Sequence[str]) -> Found:
    """Return the vectors of words after a look at their form; without a provider no word is known."""
    if provider is None or not words:
        return Found(np.zeros((len(words), 1)), np.zeros(len(words), dtype=np.bool_))
    rows, known = provider.vectors(words)
    rows, known = np.asarray(rows, dtype=np.float64), np.asarray(known, dtype=np.bool_)
    if rows.ndim != 2 or len(rows) != len(words) or known.shape != (len(words),):  # noqa: PLR2004 - a matrix
        raise ContractError(
            f"{provider.signature().spec} was asked for the vectors of {len(words)} words and gave the shapes "
            f"{rows.shape} and {known.shape}, expected ({len(words)}, width) and ({len(words)},)"
        )
    if not np.isfinite(rows).all():
        number = int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
        raise ContractError(f"{provider.signature().spec} gave a vector that is not finite for {words[number]!r}")
    return Found(unit(rows), known)


def unit(rows: FloatMatrix) -> FloatMatrix:
    """Return the rows with length one; rows of zeros stay.

    >>> unit(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: FloatMatrix = rows / np.where(lengths > 0, lengths, 1.0)
    return scaled


@lru_cache(maxsize=2)
def _encoder_signature(name: str) -> Signature:
    """Return the name and the edition of an encoder that cannot change, asked for once."""
    return Signature(f"{name}@{dict(encoder(name, 0).signature().facts)['rev']}")


def _named(name: str) -> WordVectors:
    if name in ("embedded", "static"):
        return EncoderVectors(cast("Literal['embedded', 'static']", name))
    if not Path(name).expanduser().is_file():
        raise DataError(
            "no such file of word vectors: name a .vec or .bin file, 'embedded', 'static', or words=None for none",
            file=name,
        )
    return BinaryVectors(name) if name.endswith(".bin") else TextVectors(name)


def _stacked(vectors: Sequence[Sequence[float] | None], who: str) -> tuple[FloatMatrix, BoolVector]:
    known = np.array([vector is not None for vector in vectors], dtype=np.bool_)
    widths = {len(vector) for vector in vectors if vector is not None}
    if len(widths) > 1:
        told = ", ".join(map(str, sorted(widths)))
        raise ContractError(f"{who} gave vectors of different widths ({told}); all words need one width")
    rows = np.zeros((len(vectors), widths.pop() if widths else 1), dtype=np.float64)
    for row, vector in zip(rows, vectors, strict=True):
        if vector is not None:
            row[:] = vector
    return rows, known
