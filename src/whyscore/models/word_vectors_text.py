"""Word vectors as text, the format of fastText's .vec, of word2vec and of GloVe: a word and its numbers on each line.

1. A first line of two whole numbers is a header: how many words, how many numbers each. Without it, the first line says
   how wide the rows are.
2. A plain file is read through once; of each line only where it begins is kept, under the hash of its word (16 bytes a
   word). Rows are then read where they are asked for, as often as wanted.
3. A packed file (.gz, .zst) cannot be entered in the middle: it is read through for the words that are asked for and
   were not asked for before, and what was found is kept. Unpack files that serve many calls.
4. Every line that is passed must have as many numbers as the others; an error names file and line. A word that comes
   twice has its first row.
"""

import gzip
import io
import zlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from whyscore.errors import DataError, MissingExtra
from whyscore.models.checkpoints import Home, revision
from whyscore.types import FloatMatrix, Signature

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_HEADER = 2
_DIGITS, _WIDEST = 12, 99_999


@dataclass(frozen=True, slots=True)
class TextVectors:
    """The rows of a text file of word vectors."""

    path: str

    def signature(self) -> Signature:
        """Return the file's name and a digest of its content."""
        file = Path(self.path).expanduser()
        return Signature(f"{file.name}@{revision(Home(self.path, file.parent, hub=False), [file])}")

    def vectors(self, words: Sequence[str]) -> tuple[FloatMatrix, NDArray[np.bool_]]:
        """Return one row of unit length per word, and which words are in the file."""
        file = Path(self.path).expanduser()
        opened = _table(str(file), file.stat().st_mtime_ns, file.stat().st_size)
        found = opened.rows({word.encode("utf-8", "surrogatepass"): None for word in words})
        rows = np.zeros((len(words), opened.width), dtype=np.float64)
        known = np.zeros(len(words), dtype=np.bool_)
        for number, word in enumerate(words):
            row = found.get(word.encode("utf-8", "surrogatepass"))
            if row is not None:
                rows[number], known[number] = row, True
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return rows / np.where(lengths > 0, lengths, 1.0), known


Row = NDArray[np.float32]


class _Line(NamedTuple):
    """A line with a vector: its number from one, and where it begins."""

    number: int
    offset: int
    text: bytes


class _Table:
    """A file of vectors and what is known of it."""

    def __init__(self, path: str) -> None:
        self._path = path
        with _opened(path) as file:
            first = _next(file, path) or b""
        self.width, self._header, self._promised = _shape(first, path)
        self._packed = _magic(path) is not None
        self._index: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]] | None = None
        self._found: dict[bytes, Row | None] = {}

    def rows(self, wanted: dict[bytes, None]) -> dict[bytes, Row]:
        """Return the rows of those words that are in the file."""
        new = wanted.keys() - self._found.keys()
        if new:
            self._found |= dict.fromkeys(new)
            self._found |= self._streamed(new) if self._packed else self._sought(sorted(new))
        return {word: row for word in wanted if (row := self._found[word]) is not None}

    def _streamed(self, wanted: set[bytes]) -> dict[bytes, Row]:
        found: dict[bytes, Row] = {}
        count = 0
        for line in self._lines():
            word = self._word(line)
            count += 1
            if word in wanted and word not in found:
                found[word] = self._numbers(line.text, line.number)
                if len(found) == len(wanted):
                    return found
        self._check_count(count)
        return found

    def _sought(self, wanted: Sequence[bytes]) -> dict[bytes, Row]:
        hashes, offsets, numbers = self._indexed()
        found: dict[bytes, Row] = {}
        with Path(self._path).open("rb") as file:
            for word in wanted:
                place = int(np.searchsorted(hashes, hash(word)))
                while place < len(hashes) and hashes[place] == hash(word):
                    file.seek(int(offsets[place]))
                    text, number = file.readline(), int(numbers[place])
                    if self._word(_Line(number, 0, text)) == word:
                        found[word] = self._numbers(text, number)
                        break
                    place += 1
        return found

    def _indexed(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the hashes of all words in order, and where their lines begin; equal hashes in the file's order."""
        if self._index is None:
            hashes, offsets, numbers = array("q"), array("q"), array("q")
            for line in self._lines():
                hashes.append(hash(self._word(line)))
                offsets.append(line.offset)
                numbers.append(line.number)
            self._check_count(len(hashes))
            order = np.argsort(np.frombuffer(hashes, dtype=np.int64), kind="stable") if hashes else np.empty(0, np.intp)
            known = (np.array(column, dtype=np.int64)[order] for column in (hashes, offsets, numbers))
            self._index = cast("tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]", tuple(known))
        return self._index

    def _check_count(self, count: int) -> None:
        """Refuse a file that ends before its header says."""
        if self._promised is not None and count < self._promised:
            raise DataError(
                f"ends after {count:,} vectors, the header says {self._promised:,}: the file is cut off, fetch it "
                "again",
                file=self._path,
            )

    def _lines(self) -> Iterator[_Line]:
        offset = 0
        with _opened(self._path) as file:
            number = 0
            while text := _next(file, self._path):
                number += 1
                if (number > 1 or not self._header) and not text.isspace():
                    yield _Line(number, offset, text)
                offset += len(text)

    def _word(self, line: _Line) -> bytes:
        """Return the word of a line; what stands before the numbers may hold blanks."""
        text = line.text.rstrip()
        fields = text.count(b" ")
        if fields == self.width:
            return text[: text.index(b" ")]
        if fields < self.width:
            raise DataError(
                f"expected a word and {self.width} numbers, found {fields} numbers", file=self._path, line=line.number
            )
        return text.rsplit(b" ", self.width)[0]

    def _numbers(self, text: bytes, number: int) -> Row:
        try:
            with np.errstate(over="ignore"):  # told below
                row = np.array(text.rstrip().rsplit(b" ", self.width)[1:]).astype(np.float32)
        except ValueError as error:
            raise DataError(
                f"a vector holds something else than numbers: {error}", file=self._path, line=number
            ) from error
        if not np.isfinite(row).all():
            raise DataError("a vector holds a number that is not finite", file=self._path, line=number)
        return row


@lru_cache(maxsize=4)
def _table(path: str, _: int, __: int) -> _Table:
    return _Table(path)


def _shape(first: bytes, path: str) -> tuple[int, bool, int | None]:
    """Return how many numbers a row has, whether the first line is a header, and how many rows it promises."""
    fields = first.split()
    if len(fields) == _HEADER and all(field.isdigit() for field in fields):
        if len(fields[0]) > _DIGITS or not 0 < len(fields[1].lstrip(b"0")) <= len(str(_WIDEST)):
            raise DataError(f"expected at most {_WIDEST:,} numbers a word, the header says more", file=path, line=1)
        return int(fields[1]), True, int(fields[0])
    if len(fields) < _HEADER:
        raise DataError("expected a header, or a word and its numbers", file=path, line=1)
    return len(fields) - 1, False, None


def _next(file: IO[bytes], path: str) -> bytes:
    """Return the next line of a file, packed or not; nothing at its end."""
    try:
        return file.readline()
    except (EOFError, zlib.error, OSError) as error:
        raise DataError(f"cannot be read to its end: {error}", file=path) from error
    except Exception as error:
        if type(error).__name__ != "ZstdError":
            raise
        raise DataError(f"cannot be read to its end: {error}", file=path) from error


def _magic(path: str) -> bytes | None:
    with Path(path).open("rb") as file:
        head = file.read(len(_ZSTD))
    return next((magic for magic in (_GZIP, _ZSTD) if head.startswith(magic)), None)


def _opened(path: str) -> IO[bytes]:
    """Return the file, unpacked where its first bytes say that it is packed."""
    magic = _magic(path)
    if magic == _GZIP:
        return cast("IO[bytes]", gzip.open(path, "rb"))
    if magic == _ZSTD:
        try:
            import zstandard  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise MissingExtra.of("reading .zst files", "zstd") from error
        reader = zstandard.ZstdDecompressor().stream_reader(
            Path(path).open("rb"),  # noqa: SIM115 - the reader closes it
            closefd=True,
            read_across_frames=True,
        )
        return io.BufferedReader(reader, 1 << 20)
    return Path(path).open("rb")
