"""Taggers whose tags stand in files beside the texts: they are told which texts, line by line.

A tag file has one entry per line of the text file it belongs to: one file per set of references, one per system.

Lines of the files that taggers read: UTF-8, ended by newlines alone.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

from whyscore.errors import DataError, SpecError
from whyscore.protocols import Tagged
from whyscore.types import Signature

Tags = tuple[Tagged, ...]
Files = str | tuple[str, ...]


class Lines(NamedTuple):
    """The texts of a data set as they stand in files: per set of references, and per system."""

    references: Sequence[Sequence[str]]
    hypotheses: Mapping[str, Sequence[str]]


class AlignedTags(NamedTuple):
    """The tags in the same order."""

    references: list[list[Tags]]
    hypotheses: dict[str, list[Tags]]


@runtime_checkable
class AlignedTagger(Protocol):
    """Reads tags from files that go line by line with the texts."""

    @property
    def gives_tokens(self) -> bool:
        """Whether the tagged tokens are also the tokens that a metric is to count."""

    def signature(self) -> Signature:
        """Return the text that names every choice behind the tags."""

    def tag_lines(self, lines: Lines) -> AlignedTags:
        """Return the tags of every line of every file."""


def files_for(owner: str, side: str, given: Files, wanted: Sequence[str]) -> list[str]:
    """Return one tag file per file of texts, or say how many are missing."""
    files = [given] if isinstance(given, str) else list(given)
    if len(files) != len(wanted):
        raise SpecError(
            f"{owner}: {side} names {len(files)} file(s), the data have {len(wanted)} ({', '.join(wanted)}): "
            f"give one tag file for each, in this order, {side}=('a.tag', 'b.tag')"
        )
    return files


def same_length(file: str, found: int, texts: int, what: str = "lines") -> None:
    """Refuse a tag file of another length than its texts."""
    if found != texts:
        raise DataError(
            f"has {found} {what}, its texts have {texts}: every text needs its own. Nothing was scored",
            file=file,
            line=min(found, texts) + 1,
        )


def references_wanted(lines: Lines) -> list[str]:
    """Return what the sets of references are called in messages."""
    return [f"reference {number}" for number in range(1, len(lines.references) + 1)]


def lines_of(file: str) -> list[str]:
    """Return the lines of a file without their ends."""
    try:
        text = Path(file).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", file=file) from error
    except UnicodeDecodeError as error:
        raise DataError(f"is not UTF-8 at byte {error.start}; convert it", file=file) from error
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return lines[:-1] if lines[-1] == "" else lines
