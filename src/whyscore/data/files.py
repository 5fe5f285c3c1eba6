r"""Text files as every reader sees them: lines, packed files, and several files in a folder or archive.

Lines:

1. The bytes are unpacked where needed and decoded as UTF-8, or as the caller says; a byte that does not
   fit is an error with its position. A byte order mark is removed and noted.
2. A line ends at `\n` and nowhere else: U+2028, U+0085 and form feeds stay inside. One `\r` before the `\n` is removed
   and noted. A last line without `\n` counts, and is noted.
3. Nothing else is changed: no stripping, no normalising, no unescaping.

The path `-` is the standard input.

Packed files, guarded against bombs:

1. The first bytes say whether the data are gzip or Zstandard, whatever the name is: no UTF-8 text starts like these.
2. Unpacked bytes are handed on in chunks, and counted.
3. More than `Limits.file` bytes, or more than `Limits.ratio` times what was read of the packed data, is an error that
   names the limit and what raises it. The first megabyte is free: it can hurt nobody, and short repetitive
   texts pack very well.

Files that lie together, in a folder or in a zip archive that is read in memory:

1. A folder is listed; an archive's files go by their own names, whatever folder they lie in inside it.
2. Nothing is ever extracted to the disk, and only the files that are asked for are unpacked.
3. What an archive says of a file's size is held against the limits before it is unpacked; the standard library refuses
   files that turn out larger than that.
"""

import codecs
import difflib
import gzip
import io
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple, Protocol, cast

from whyscore.errors import DataError, MissingExtra, SpecError, need_package
from whyscore.settings import check_fields
from whyscore.types import Finding

CHUNK = 1 << 14  # the lines of a large one, alive together, would leave holes in the heap as large as the file
_FREE = 1_000_000
_GZIP, _ZSTD, _ZIP = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04"


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a file may hold: characters a line, unpacked bytes, unpacked bytes per packed byte."""

    line: int = 1_000_000
    file: int = 2_000_000_000
    ratio: int = 200

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("line", "file", "ratio"):
            if getattr(self, name) < 1:
                raise SpecError(f"Limits: {name} is {getattr(self, name)}, expected 1 or more")


_USUAL = Limits()


class Bytes(Protocol):
    """Anything that bytes can be read from."""

    def read(self, size: int = -1, /) -> bytes:
        """Return at most `size` bytes, none at the end."""


class _Counted(io.RawIOBase):
    """A stream whose first bytes can be looked at, and that knows how much was read of it."""

    def __init__(self, stream: Bytes) -> None:
        super().__init__()
        self._stream = stream
        self.head = stream.read(len(_ZSTD))
        self._pending = self.head
        self.count = 0

    def read(self, size: int = -1, /) -> bytes:
        """Return the bytes that were looked at first, then those of the stream."""
        if self._pending:
            cut = len(self._pending) if size < 0 else size
            data, self._pending = self._pending[:cut], self._pending[cut:]
            if size < 0:
                data += self._stream.read()
        else:
            data = self._stream.read(size)
        self.count += len(data)
        return data


def unpack(stream: Bytes, name: str, limits: Limits) -> Iterator[bytes]:
    """Yield the bytes of a stream in chunks, unpacked where they are gzip or Zstandard."""
    packed = _Counted(stream)
    plain = _open_packed(packed, name)
    total = 0
    while data := _chunk(plain, name):
        total += len(data)
        if total > limits.file:
            raise DataError(
                f"holds more than {limits.file:,} bytes, the limit for a file; raise it with --max-file "
                "or Limits(file=...)",
                file=name,
            )
        if plain is not packed and total > max(_FREE, limits.ratio * packed.count):
            raise DataError(
                f"unpacks to more than {limits.ratio} times its packed size, the guard against bombs; raise it with "
                "--max-ratio or Limits(ratio=...)",
                file=name,
            )
        yield data


def _open_packed(packed: _Counted, name: str) -> Bytes:
    if packed.head.startswith(_GZIP):
        return gzip.GzipFile(fileobj=packed, mode="rb")
    if packed.head == _ZSTD:
        return _zstandard(packed)
    if packed.head == _ZIP:
        raise DataError("is a zip archive: unpack it first, or pack the file with gzip", file=name)
    return packed


def _zstandard(packed: _Counted) -> Bytes:
    with need_package(MissingExtra.of("reading .zst files", "zstd")):
        import zstandard  # noqa: PLC0415 - an extra
    reader = zstandard.ZstdDecompressor().stream_reader(cast("IO[bytes]", packed), read_across_frames=True)
    return cast("Bytes", reader)


def _chunk(plain: Bytes, name: str) -> bytes:
    try:
        return plain.read(CHUNK)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"the gzip data are damaged or cut off: {error}", file=name) from error
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=name) from error
    except Exception as error:
        if type(error).__name__ != "ZstdError":
            raise
        raise DataError(f"the Zstandard data are damaged or cut off: {error}", file=name) from error


def read_bytes(path: str | Path, limits: Limits | None = None) -> bytes:
    """Return the bytes of a file, unpacked where it is packed."""
    try:
        with Path(path).open("rb") as stream:
            return b"".join(unpack(stream, str(path), limits or Limits()))
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", file=str(path)) from error


STDIN = "-"
_BOM = "\ufeff"
_NEIGHBOURS = 1000
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Lines(NamedTuple):
    """The lines of a file, and what was noticed while reading them."""

    texts: list[str]
    findings: tuple[Finding, ...]


class TextFile:
    """A text file that is read once, block by block; `findings` are complete after the last block.

    With `torn`, the last line may break off inside a character, as it does when a writer was stopped.
    """

    def __init__(
        self, path: str | Path, *, encoding: str = "utf-8", limits: Limits | None = None, torn: bool = False
    ) -> None:
        self.name = display_name(path)
        self.ended = True
        """Whether the last line ended in a newline."""
        self._path, self._encoding, self._limits, self._torn = str(path), encoding, limits or _USUAL, torn
        self._begun, self._bom, self._crlf, self._count = False, False, 0, 0
        self._blocks: Iterator[list[str]] | None = None
        try:
            b" ".decode(encoding, "ignore")
        except LookupError as error:
            raise SpecError(f"no text encoding named {encoding!r}: use one that Python knows, e.g. latin-1") from error

    def blocks(self) -> Iterator[list[str]]:
        """Yield the lines in lists, without their ends."""
        if self._blocks is None:
            self._blocks = self._read()
        return self._blocks

    def lines(self) -> Iterator[str]:
        return chain.from_iterable(self.blocks())

    def first(self) -> str:
        """Return the first line without using it up; an empty text where there is none."""
        block = next(self.blocks(), [])
        self._blocks = chain([block], self.blocks())
        return block[0] if block else ""

    def refuse_empty(self, expected: str) -> None:
        """Raise the error for a file without a line; call it when all blocks are read."""
        if not self._count:
            raise DataError(f"{self.name} is empty: expected {expected}")

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was noticed so far."""
        findings = []
        if self._encoding == "utf-16":
            findings.append(Finding("utf-16", "read as UTF-16", self.name, 1))
        if self._bom:
            findings.append(Finding("byte-order-mark", "a byte order mark (BOM) was removed", self.name, 1))
        if self._crlf:
            message = f"{self._crlf} of {self._count} lines end in CR LF; the CR was removed"
            findings.append(Finding("crlf", message, self.name))
        if not self.ended:
            findings.append(
                Finding(
                    "no-final-newline", "the last line does not end in a newline; it was read", self.name, self._count
                )
            )
        return tuple(findings)

    def _read(self) -> Iterator[list[str]]:
        tail = ""
        with _stream(self._path, self.name) as stream:
            for text in self._decode(unpack(stream, self.name, self._limits)):
                *lines, tail = self._cut(tail + text)
                self._check(lines, tail)
                self._count += len(lines)
                if lines:
                    yield lines
        if tail:
            self.ended = False
            self._count += 1
            yield [tail]

    def _cut(self, text: str) -> list[str]:
        if not self._begun:
            self._bom, text = text.startswith(_BOM), text.removeprefix(_BOM)
        self._begun = self._begun or self._bom or bool(text)
        if "\r" in text:
            self._crlf += text.count("\r\n")
            text = text.replace("\r\n", "\n")
        return text.split("\n")

    def _check(self, lines: list[str], tail: str) -> None:
        limit = self._limits.line
        if len(tail) <= limit and max(map(len, lines), default=0) <= limit:
            return
        number = self._count + next(k for k, line in enumerate([*lines, tail], start=1) if len(line) > limit)
        raise DataError(
            f"the line is longer than {limit:,} characters, the limit for a line; raise it with --max-line "
            "or Limits(line=...)",
            file=self.name,
            line=number,
        )

    def _decode(self, chunks: Iterator[bytes]) -> Iterator[str]:
        first = next(chunks, b"")
        if self._encoding.lower() in ("utf-8", "utf8") and first[:2] in _UTF16:
            self._encoding = "utf-16"  # its mark is no UTF-8, so this cannot be anything else
        decoder = codecs.getincrementaldecoder(self._encoding)()
        start = 0
        for chunk in chain([first], chunks, [b""]):
            pending = decoder.getstate()[0]
            try:
                text = decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError as error:
                if self._torn and not chunk:
                    yield "\ufffd"
                    return
                raise self._undecodable(error, start - len(pending)) from error
            start += len(chunk)
            yield text

    def _undecodable(self, error: UnicodeDecodeError, start: int) -> DataError:
        position = start + error.start
        return DataError(
            f"byte {position} (0x{error.object[error.start]:02x}) is not {self._encoding.upper()}: save the file as "
            "UTF-8, or name its encoding, e.g. --encoding latin-1",
            file=self.name,
            line=self._count + error.object[: error.start].count(b"\n") + 1,
        )


def read_lines(
    path: str | Path, *, expected: str = "one segment a line", encoding: str = "utf-8", limits: Limits | None = None
) -> Lines:
    """Return all lines of a file; an empty file is an error that says what was `expected`."""
    file = TextFile(path, encoding=encoding, limits=limits)
    texts = list(file.lines())
    file.refuse_empty(expected)
    return Lines(texts, file.findings)


def display_name(path: str | Path) -> str:
    """Return the name of a file in messages: the path as it was given."""
    return "stdin" if str(path) == STDIN else str(path)


def _cure(path: str, error: OSError) -> str:
    """Return what helps against a file that cannot be opened."""
    if isinstance(error, IsADirectoryError):
        return ": give a file in it"
    if not isinstance(error, FileNotFoundError):
        return ""
    folder, name = Path(path).parent, Path(path).name
    there = [path.name for path in islice(folder.iterdir(), _NEIGHBOURS)] if folder.is_dir() else []
    folded = {name.casefold(): name for name in there}
    near = difflib.get_close_matches(name.casefold(), folded, n=1)
    if near:
        return f". Did you mean {str(folder / folded[near[0]])!r}?"
    if " " in path:
        return ". To give the text itself instead of a file, add --text"
    return ": check the path" if folder.is_dir() else f": there is no folder {folder} either"


@contextmanager
def _stream(path: str, name: str) -> Iterator[Bytes]:
    if path == STDIN:
        yield sys.stdin.buffer
        return
    try:
        stream = Path(path).open("rb")  # noqa: SIM115 - closed below, where errors are not those of opening
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}{_cure(path, error)}", file=name) from error
    with stream:
        yield stream


@dataclass(frozen=True)
class Bundle:
    """Files by name; `members` says where each lies."""

    path: Path
    members: dict[str, str]
    limits: Limits
    packed: bool = False

    @property
    def name(self) -> str:
        """The name of the folder, or of the archive without its suffix."""
        place = self.path.resolve()
        return place.stem if self.packed else place.name

    def file(self, name: str) -> str:
        """Return what messages call a file."""
        return str(self.path / self.members.get(name, name))

    def lines(self, name: str) -> Lines:
        if not self.packed:
            return read_lines(self.path / name, limits=self.limits)
        return _cut(self._read_member(name), self.file(name), self.limits)

    def _read_member(self, name: str) -> bytes:
        file = self.file(name)
        try:
            with zipfile.ZipFile(self.path) as archive:
                about = archive.getinfo(self.members[name])
                _refuse_large(about, file, self.limits)
                return archive.read(about)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, UnicodeDecodeError) as error:
            raise DataError(f"the zip archive is damaged: {error}", file=file) from error
        except (RuntimeError, NotImplementedError) as error:
            raise DataError(f"cannot be unpacked: {error}; pack it again without a password", file=file) from error


def open_bundle(path: str | Path, what: str, limits: Limits | None = None) -> Bundle:
    """Return the files in a folder or a zip archive; `what` says in messages what was expected there."""
    place, limits = Path(path), limits or Limits()
    if place.is_dir():
        files = {file.name: file.name for file in sorted(place.iterdir()) if file.is_file()}
        return Bundle(place, files, limits)
    if not place.exists():
        raise DataError(f"there is no such folder or archive: expected {what}", file=str(path))
    if not zipfile.is_zipfile(place):
        raise DataError(f"is neither a folder nor a zip archive: expected {what}", file=str(path))
    try:
        with zipfile.ZipFile(place) as archive:
            names = [member.filename for member in archive.infolist() if member.filename and not member.is_dir()]
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise DataError(f"the zip archive is damaged: {error}", file=str(path)) from error
    return Bundle(place, _by_name(names, str(path)), limits, packed=True)


def _by_name(names: list[str], file: str) -> dict[str, str]:
    members: dict[str, str] = {}
    for name in names:
        pure = PurePosixPath(name)
        if "__MACOSX" in pure.parts or pure.name.startswith("."):
            continue
        if pure.name in members:
            raise DataError(f"holds {pure.name!r} twice, as {members[pure.name]} and {name}: keep one", file=file)
        members[pure.name] = name
    return members


def _refuse_large(about: zipfile.ZipInfo, file: str, limits: Limits) -> None:
    if about.file_size > limits.file:
        raise DataError(
            f"holds more than {limits.file:,} bytes, the limit for a file; raise it with --max-file or "
            "Limits(file=...)",
            file=file,
        )
    if about.file_size > max(_FREE, limits.ratio * about.compress_size):
        raise DataError(
            f"unpacks to more than {limits.ratio} times its packed size, the guard against bombs; raise it with "
            "--max-ratio or Limits(ratio=...)",
            file=file,
        )


def _cut(data: bytes, file: str, limits: Limits) -> Lines:
    """Return the lines of unpacked bytes by the rules of `files`."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"byte {error.start} (0x{data[error.start]:02x}) is not UTF-8: save the file as UTF-8"
        raise DataError(message, file=file, line=data[: error.start].count(b"\n") + 1) from error
    findings = []
    if text.startswith(_BOM):
        text = text.removeprefix(_BOM)
        findings.append(Finding("byte-order-mark", "a byte order mark (BOM) was removed", file, 1))
    crlf = text.count("\r\n")
    *lines, tail = text.replace("\r\n", "\n").split("\n")
    if tail:
        lines.append(tail)
    if not lines:
        raise DataError(f"{file} is empty: expected one segment a line")
    if crlf:
        findings.append(Finding("crlf", f"{crlf} of {len(lines)} lines end in CR LF; the CR was removed", file))
    if tail:
        findings.append(
            Finding("no-final-newline", "the last line does not end in a newline; it was read", file, len(lines))
        )
    longest = max(range(len(lines)), key=lambda k: len(lines[k]))
    if len(lines[longest]) > limits.line:
        message = f"the line is longer than {limits.line:,} characters, the limit for a line; raise it with --max-line"
        raise DataError(message, file=file, line=longest + 1)
    return Lines(lines, tuple(findings))
