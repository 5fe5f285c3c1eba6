r"""Lines out of text files, by the rules that hold for every reader.

1. The bytes are unpacked where needed (`unpacking`) and decoded as UTF-8, or as the caller says; a byte that does not
   fit is an error with its position. A byte order mark is removed and noted.
2. A line ends at `\n` and nowhere else: U+2028, U+0085 and form feeds stay inside. One `\r` before the `\n` is removed
   and noted. A last line without `\n` counts, and is noted.
3. Nothing else is changed: no stripping, no normalising, no unescaping.

The path `-` is the standard input.
"""

import codecs
import difflib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from whyscore.errors import DataError, SpecError
from whyscore.io.unpacking import Bytes, Limits, unpacked
from whyscore.types import Finding

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
        """Check the encoding's name; the file is opened by `blocks`."""
        self.name = shown(path)
        self.ended = True
        """Whether the last line ended in a newline."""
        self._path, self._encoding, self._limits, self._torn = str(path), encoding, limits or Limits(), torn
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
        """Yield the lines one by one."""
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
        found = []
        if self._bom:
            found.append(Finding("a byte order mark (BOM) was removed", self.name, 1))
        if self._crlf:
            message = f"{self._crlf} of {self._count} lines end in CR LF; the CR was removed"
            found.append(Finding(message, self.name))
        if not self.ended:
            found.append(Finding("the last line does not end in a newline; it was read", self.name, self._count))
        return tuple(found)

    def _read(self) -> Iterator[list[str]]:
        tail = ""
        with _stream(self._path, self.name) as stream:
            for text in self._decoded(unpacked(stream, self.name, self._limits)):
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

    def _decoded(self, chunks: Iterator[bytes]) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder(self._encoding)()
        start = 0
        for chunk in chain(chunks, [b""]):
            held = decoder.getstate()[0]
            try:
                text = decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError as error:
                if self._torn and not chunk:
                    yield "\ufffd"
                    return
                raise self._undecodable(error, start - len(held)) from error
            start += len(chunk)
            yield text

    def _undecodable(self, error: UnicodeDecodeError, start: int) -> DataError:
        position = start + error.start
        guess = "utf-16" if position == 0 and error.object[:2] in _UTF16 else "latin-1"
        return DataError(
            f"byte {position} (0x{error.object[error.start]:02x}) is not {self._encoding.upper()}: save the file as "
            f"UTF-8, or name its encoding, e.g. --encoding {guess}",
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


def shown(path: str | Path) -> str:
    """Return the name of a file in messages: the path as it was given."""
    return "stdin" if str(path) == STDIN else str(path)


def _cure(path: str, error: OSError) -> str:
    """Return what helps against a file that cannot be opened."""
    if isinstance(error, IsADirectoryError):
        return ": give a file in it"
    if not isinstance(error, FileNotFoundError):
        return ""
    folder, name = Path(path).parent, Path(path).name
    there = [found.name for found in islice(folder.iterdir(), _NEIGHBOURS)] if folder.is_dir() else []
    folded = {found.casefold(): found for found in there}
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
