"""Vectors from a binary model of fastText (Bojanowski et al. 2017, arXiv 1607.04606), without its package.

1. The head names the width, the number of buckets and the lengths of the letter n-grams; then come the words.
2. The vector of a known word is the mean of its own row and of the rows of its n-grams, that of any other word the mean
   of its n-grams alone. N-grams are taken of `<word>` and found by their hash (FNV-1a, 32 bits, as fastText has it).
3. The matrix stays on the disk and is mapped into memory; only the rows asked for are read.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from whyscore.errors import DataError
from whyscore.models.checkpoints import Home, revision
from whyscore.types import FloatMatrix, Signature

_MAGIC, _VERSION = 793712314, 12
_HEAD = struct.Struct("<2i12id3i2q")
_ENTRY = struct.Struct("<qb")
_SHAPE = struct.Struct("<?2q")
_END = "</s>"
_FNV_START, _FNV_PRIME, _BITS = 2166136261, 16777619, 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class BinaryVectors:
    """The vectors of a fastText model, also of words it never saw."""

    path: str

    def signature(self) -> Signature:
        """Return the file's name and a digest of its content."""
        file = Path(self.path).expanduser()
        return Signature(f"{file.name}@{revision(Home(self.path, file.parent, hub=False), [file])}")

    def vectors(self, words: Sequence[str]) -> tuple[FloatMatrix, NDArray[np.bool_]]:
        """Return one row of unit length per word; a word without a row or an n-gram is unknown."""
        file = Path(self.path).expanduser()
        model = _model(str(file), file.stat().st_mtime_ns)
        rows = np.zeros((len(words), model.matrix.shape[1]), dtype=np.float64)
        known = np.zeros(len(words), dtype=np.bool_)
        for number, word in enumerate(words):
            places = model.rows_of(word)
            if places:
                rows[number], known[number] = model.mean(places, self.path), True
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return rows / np.where(lengths > 0, lengths, 1.0), known


class _Model(NamedTuple):
    words: dict[bytes, int]
    own_rows: int
    """Rows of the matrix that belong to words; the buckets follow."""
    buckets: int
    shortest: int
    longest: int
    matrix: NDArray[np.float32]

    def rows_of(self, word: str) -> list[int]:
        """Return the rows whose mean is the vector of a word."""
        written = word.encode("utf-8", "surrogatepass")
        own = self.words.get(written)
        places = [] if own is None else [own]
        if word != _END and self.longest > 0 and self.buckets > 0:
            grams = letter_grams(word, self.shortest, self.longest)
            places += [self.own_rows + fnv(gram) % self.buckets for gram in grams]
        return places

    def mean(self, places: Sequence[int], path: str) -> NDArray[np.float64]:
        """Return the mean of some rows."""
        found = self.matrix[list(places)]
        if not np.isfinite(found).all():
            raise DataError("a vector holds a number that is not finite: fetch the file again", file=path)
        mean: NDArray[np.float64] = found.mean(axis=0, dtype=np.float64)
        return mean


def letter_grams(word: str, shortest: int, longest: int) -> Iterator[bytes]:
    """Yield the letter n-grams of a word between its marks, without the marks alone.

    >>> [gram.decode() for gram in letter_grams("ab", 2, 3)]
    ['<a', '<ab', 'ab', 'ab>', 'b>']
    """
    marked = f"<{word}>"
    for start in range(len(marked)):
        for length in range(max(1, shortest), longest + 1):
            end = start + length
            if end > len(marked):
                break
            if length > 1 or 0 < start < len(marked) - 1:
                yield marked[start:end].encode("utf-8", "surrogatepass")


def fnv(gram: bytes) -> int:
    """Return fastText's hash of an n-gram: bytes count as signed, which differs from plain FNV-1a beyond ASCII.

    >>> fnv(b"a")
    3826002220
    """
    value = _FNV_START
    for byte in gram:
        signed = byte if byte < 128 else byte | 0xFFFFFF00  # noqa: PLR2004 - the sign bit of a byte
        value = ((value ^ signed) * _FNV_PRIME) & _BITS
    return value


@lru_cache(maxsize=2)
def _model(path: str, _: int) -> _Model:
    with Path(path).open("rb") as file:
        try:
            return _read(file, path)
        except DataError:
            raise
        except (struct.error, OSError, OverflowError, ValueError) as error:
            raise DataError("ends too early: the file is cut off, fetch it again", file=path) from error


def _read(file: BinaryIO, path: str) -> _Model:
    head = _HEAD.unpack(file.read(_HEAD.size))
    if head[:2] != (_MAGIC, _VERSION):
        raise DataError(f"is no fastText model of version {_VERSION}: expected the .bin file of fastText", file=path)
    width, buckets, shortest, longest = head[2], head[10], head[11], head[12]
    size, count, pruned = head[15], head[16], head[19]
    words: dict[bytes, int] = {}
    for number in range(size):
        word = _word(file)
        kind = _ENTRY.unpack(file.read(_ENTRY.size))[1]
        if kind == 0:
            words[word] = number
    file.seek(8 * max(0, pruned), 1)
    quantised, rows, columns = _SHAPE.unpack(file.read(_SHAPE.size))
    if quantised:
        raise DataError("is a quantised model (.ftz), which is not supported: use the full .bin or a .vec", file=path)
    if columns != width or rows != count + buckets:
        raise DataError(f"has a matrix of {rows} x {columns}, expected {count + buckets} x {width}", file=path)
    if min(count, width, buckets) < 0 or any(number >= count for number in words.values()):
        raise DataError("is damaged: its numbers do not fit together, fetch it again", file=path)
    if Path(path).stat().st_size < file.tell() + 4 * rows * columns:
        raise DataError("ends too early: the file is cut off, fetch it again", file=path)
    matrix = np.memmap(path, dtype="<f4", mode="r", offset=file.tell(), shape=(rows, columns))
    return _Model(words, count, buckets, shortest, longest, matrix)


def _word(file: BinaryIO) -> bytes:
    """Return the bytes up to the next zero."""
    found = bytearray()
    while True:
        block = file.read(64)
        if not block:
            raise struct.error("no end of a word")
        head, zero, rest = block.partition(b"\0")
        found += head
        if zero:
            file.seek(-len(rest), 1)
            return bytes(found)
