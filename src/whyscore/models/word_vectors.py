"""One vector per word, whatever stands around it: from files, from the small encoders, or from the caller.

    embedded          the static table of the embedded encoder, offline at once
    static            the static table for about a hundred languages
    cc.ru.300.vec     text vectors of fastText, word2vec or GloVe, also .gz and .zst
    cc.ru.300.bin     a binary model of fastText, which has vectors for words it never saw
    a Python object   anything with `vectors` and `signature`, a mapping, KeyedVectors, or a function of words

Rows have unit length, so that cosines are products; the row of a word without a vector is zero.

A binary model of fastText (Bojanowski et al. 2017, arXiv 1607.04606), without its package:

1. The head names the width, the number of buckets and the lengths of the letter n-grams; then come the words.
2. The vector of a known word is the mean of its own row and of the rows of its n-grams, that of any other word the mean
   of its n-grams alone. N-grams are taken of `<word>` and found by their hash (FNV-1a, 32 bits, as fastText has it).
3. The matrix stays on the disk and is mapped into memory; only the rows asked for are read.

Vectors as text (fastText's .vec, word2vec, GloVe), a word and its numbers on each line:

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
import struct
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, BinaryIO, Literal, NamedTuple, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from whyscore.errors import ContractError, DataError, MissingExtra, SpecError, need_package
from whyscore.models.checkpoints import ModelLocation, revision
from whyscore.models.encoders.loading import encoder
from whyscore.text.files import read_once
from whyscore.types import FloatMatrix, FloatVector, Signature

_MAGIC, _VERSION = 793712314, 12
_HEAD = struct.Struct("<2i12id3i2q")
_ENTRY = struct.Struct("<qb")
_SHAPE = struct.Struct("<?2q")
_END = "</s>"
_FNV_START, _FNV_PRIME, _BITS = 2166136261, 16777619, 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class _FileVectors:
    """Word vectors in a file."""

    path: str

    def signature(self) -> Signature:
        file = Path(self.path).expanduser()
        return Signature(f"{file.name}@{revision(ModelLocation(self.path, file.parent, hub=False), [file])}")

    def vectors(self, words: Sequence[str]) -> tuple[FloatMatrix, NDArray[np.bool_]]:
        """Return one row of unit length per word, and which words are known."""
        width, vectors = self._rows(Path(self.path).expanduser(), words)
        rows = np.zeros((len(words), width), dtype=np.float64)
        known = np.zeros(len(words), dtype=np.bool_)
        for number, row in enumerate(vectors):
            if row is not None:
                rows[number], known[number] = row, True
        return unit(rows), known

    def _rows(self, file: Path, words: Sequence[str]) -> "tuple[int, Iterable[Row | FloatVector | None]]":
        """Return the width of the vectors, and the row of each word or None."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class BinaryVectors(_FileVectors):
    """The vectors of a fastText model, also of words it never saw; a word without a row or an n-gram is unknown."""

    def _rows(self, file: Path, words: Sequence[str]) -> "tuple[int, Iterable[Row | FloatVector | None]]":
        model = _read_model(str(file))
        places = (model.rows_of(word) for word in words)
        return model.matrix.shape[1], (model.mean(rows, self.path) if rows else None for rows in places)


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
        row = self.words.get(written)
        places = [] if row is None else [row]
        if word != _END and self.longest > 0 and self.buckets > 0:
            grams = letter_grams(word, self.shortest, self.longest)
            places += [self.own_rows + fnv(gram) % self.buckets for gram in grams]
        return places

    def mean(self, places: Sequence[int], path: str) -> NDArray[np.float64]:
        """Return the mean of some rows."""
        rows = self.matrix[list(places)]
        if not np.isfinite(rows).all():
            raise DataError("a vector holds a number that is not finite: fetch the file again", file=path)
        mean: NDArray[np.float64] = rows.mean(axis=0, dtype=np.float64)
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


@read_once(2)
def _read_model(path: str) -> _Model:
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
    word = bytearray()
    while True:
        block = file.read(64)
        if not block:
            raise struct.error("no end of a word")
        head, zero, rest = block.partition(b"\0")
        word += head
        if zero:
            file.seek(-len(rest), 1)
            return bytes(word)


_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_HEADER = 2
_DIGITS, _WIDEST = 12, 99_999


@dataclass(frozen=True, slots=True)
class TextVectors(_FileVectors):
    """The rows of a text file of word vectors."""

    def _rows(self, file: Path, words: Sequence[str]) -> "tuple[int, Iterable[Row | FloatVector | None]]":
        opened = _open_table(str(file))
        written = [word.encode("utf-8", "surrogatepass") for word in words]
        rows = opened.rows(dict.fromkeys(written))
        return opened.width, map(rows.get, written)


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
        with _open_packed(path) as file:
            first = _next(file, path) or b""
        self.width, self._header, self._promised = _shape(first, path)
        self._packed = _magic(path) is not None
        self._index: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]] | None = None
        self._found: dict[bytes, Row | None] = {}

    def rows(self, words: dict[bytes, None]) -> dict[bytes, Row]:
        new = words.keys() - self._found.keys()
        if new:
            self._found |= dict.fromkeys(new)
            self._found |= self._read_stream(new) if self._packed else self._look_up_lines(sorted(new))
        return {word: row for word in words if (row := self._found[word]) is not None}

    def _read_stream(self, words: set[bytes]) -> dict[bytes, Row]:
        rows: dict[bytes, Row] = {}
        count = 0
        for line in self._lines():
            word = self._word(line)
            count += 1
            if word in words and word not in rows:
                rows[word] = self._numbers(line.text, line.number)
                if len(rows) == len(words):
                    return rows
        self._check_count(count)
        return rows

    def _look_up_lines(self, words: Sequence[bytes]) -> dict[bytes, Row]:
        hashes, offsets, numbers = self._index_lines()
        rows: dict[bytes, Row] = {}
        with Path(self._path).open("rb") as file:
            for word in words:
                place = int(np.searchsorted(hashes, hash(word)))
                while place < len(hashes) and hashes[place] == hash(word):
                    file.seek(int(offsets[place]))
                    text, number = file.readline(), int(numbers[place])
                    if self._word(_Line(number, 0, text)) == word:
                        rows[word] = self._numbers(text, number)
                        break
                    place += 1
        return rows

    def _index_lines(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the hashes of all words in order, and where their lines begin; equal hashes in the file's order."""
        if self._index is None:
            hashes, offsets, numbers = array("q"), array("q"), array("q")
            for line in self._lines():
                hashes.append(hash(self._word(line)))
                offsets.append(line.offset)
                numbers.append(line.number)
            self._check_count(len(hashes))
            order = np.argsort(np.frombuffer(hashes, dtype=np.int64), kind="stable") if hashes else np.empty(0, np.intp)
            columns = (np.array(column, dtype=np.int64)[order] for column in (hashes, offsets, numbers))
            self._index = cast("tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]", tuple(columns))
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
        with _open_packed(self._path) as file:
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


_open_table = read_once(4)(_Table)


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


def _open_packed(path: str) -> IO[bytes]:
    """Return the file, unpacked where its first bytes say that it is packed."""
    magic = _magic(path)
    if magic == _GZIP:
        return cast("IO[bytes]", gzip.open(path, "rb"))
    if magic == _ZSTD:
        with need_package(MissingExtra.of("reading .zst files", "zstd")):
            import zstandard  # noqa: PLC0415 - an extra
        reader = zstandard.ZstdDecompressor().stream_reader(
            Path(path).open("rb"),  # noqa: SIM115 - the reader closes it
            closefd=True,
            read_across_frames=True,
        )
        return io.BufferedReader(reader, 1 << 20)
    return Path(path).open("rb")


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
        return _encoder_signature(self.name)

    def vectors(self, words: Sequence[str]) -> tuple[FloatMatrix, BoolVector]:
        """Return the mean over the known pieces of each word; a word without any is unknown."""
        coder = encoder(self.name, 0)
        rows: list[FloatMatrix] = []
        known: list[bool] = []
        for start in range(0, len(words), _BLOCK):
            for encoded in coder.encode(words[start : start + _BLOCK]):
                kept = [
                    k for k, piece in enumerate(encoded.pieces) if not encoded.special[k] and piece not in _EMPTY_PIECES
                ]
                known.append(bool(kept))
                rows.append(encoded.vectors[kept].sum(axis=0, dtype=np.float64))
        return unit(np.array(rows, dtype=np.float64).reshape(len(words), -1)), np.array(known, dtype=np.bool_)


@dataclass(frozen=True, slots=True, eq=False)
class TableVectors:
    """Vectors that the caller holds: a mapping, or anything with `in` and `[]` such as gensim's KeyedVectors."""

    table: Mapping[str, Sequence[float]]

    def signature(self) -> Signature:
        return Signature(f"{type(self.table).__name__}-of-the-caller", stable=False)

    def vectors(self, words: Sequence[str]) -> tuple[FloatMatrix, BoolVector]:
        # KeyedVectors has no `get` that answers None.
        vectors = [self.table[word] if word in self.table else None for word in words]  # noqa: SIM401
        return _stack(vectors, "the table of words")


@dataclass(frozen=True, slots=True, eq=False)
class FunctionVectors:
    """Vectors by a function of words, which returns one vector, or None, for each."""

    function: Callable[[Sequence[str]], Sequence[Sequence[float] | None]]

    def signature(self) -> Signature:
        return Signature(f"{getattr(self.function, '__name__', 'function')}-of-the-caller", stable=False)

    def vectors(self, words: Sequence[str]) -> tuple[FloatMatrix, BoolVector]:
        return _stack(list(self.function(words)), self.signature().spec)


def word_vectors(provider: object) -> WordVectors | None:
    """Return the provider that a name, a path or an object stands for; None for None.

    >>> word_vectors("embedded")
    EncoderVectors(name='embedded')
    """
    if provider is None or isinstance(provider, WordVectors):
        return provider
    if isinstance(provider, str):
        return _name_provider(provider)
    if hasattr(provider, "__getitem__") and hasattr(provider, "__contains__"):
        return TableVectors(cast("Mapping[str, Sequence[float]]", provider))
    if callable(provider):
        return FunctionVectors(provider)
    raise SpecError(
        f"words is {provider!r}, expected 'embedded', 'static', a file, None, a mapping, a function of words, or an "
        "object with vectors() and signature()"
    )


def look_up(provider: WordVectors | None, words: Sequence[str]) -> Found:
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


def cosine(vector: NDArray[np.floating], other: NDArray[np.floating]) -> float:
    """Return the cosine of two vectors, in float64; 0 where one of them has no length."""
    left, right = vector.astype(np.float64), other.astype(np.float64)
    lengths = float(np.linalg.norm(left) * np.linalg.norm(right))
    return float(left @ right) / lengths if lengths else 0.0


@lru_cache(maxsize=2)
def _encoder_signature(name: str) -> Signature:
    """Return the name and the edition of an encoder that cannot change, asked for once."""
    return Signature(f"{name}@{dict(encoder(name, 0).signature().facts)['rev']}")


def _name_provider(name: str) -> WordVectors:
    if name in ("embedded", "static"):
        return EncoderVectors(cast("Literal['embedded', 'static']", name))
    if not Path(name).expanduser().is_file():
        raise DataError(
            "no such file of word vectors: name a .vec or .bin file, 'embedded', 'static', or words=None for none",
            file=name,
        )
    return BinaryVectors(name) if name.endswith(".bin") else TextVectors(name)


def _stack(vectors: Sequence[Sequence[float] | None], who: str) -> tuple[FloatMatrix, BoolVector]:
    known = np.array([vector is not None for vector in vectors], dtype=np.bool_)
    widths = {len(vector) for vector in vectors if vector is not None}
    if len(widths) > 1:
        listing = ", ".join(map(str, sorted(widths)))
        raise ContractError(f"{who} gave vectors of different widths ({listing}); all words need one width")
    rows = np.zeros((len(vectors), widths.pop() if widths else 1), dtype=np.float64)
    for row, vector in zip(rows, vectors, strict=True):
        if vector is not None:
            row[:] = vector
    return rows, known
