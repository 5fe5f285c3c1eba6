"""Any single file: the suffix says what it is; the standard input and files without a suffix say so themselves.

| suffix (also with `.gz`, `.zst`) | read as |
|---|---|
| `.tsv`, `.csv` | table |
| `.jsonl`, `.ndjson` | JSON lines, or a data set that whyscore wrote |
| `.txt` | one hypothesis a line |
| `.xlf`, `.xliff` | XLIFF 1.2 or 2.x: source and target of every unit |

By content: a line that starts with `{` is JSON lines, one with a tab is TSV, anything else is text.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from whyscore.errors import DataError, SpecError
from whyscore.io.columns import Choice
from whyscore.io.datasets import dataset_of
from whyscore.io.files import STDIN, TextFile
from whyscore.io.gathering import Options, Quoting
from whyscore.io.jsonl import jsonl_of
from whyscore.io.located import Located, Origin
from whyscore.io.naming import plain_name, system_names
from whyscore.io.records import is_header
from whyscore.io.tables import table_of
from whyscore.io.unpacking import Limits
from whyscore.io.xliff_data import xliff_of
from whyscore.types import Dataset, Entry, Segment

Format = Literal["tsv", "csv", "jsonl", "txt", "xliff"]
_FORMATS: dict[str, Format] = {
    ".tsv": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".txt": "txt",
    ".xlf": "xliff",
    ".xliff": "xliff",
}
_DELIMITERS = {"tsv": "\t", "csv": ","}


def read(
    path: str | Path,
    *,
    columns: Choice | None = None,
    human: str | Sequence[str] = (),
    header: bool = True,
    quoting: Quoting = "auto",
    languages: tuple[str, str] | None = None,
    encoding: str = "utf-8",
    limits: Limits | None = None,
    format: Format | None = None,  # noqa: A002 - the word users know
) -> Dataset:
    """Return the data set in a file; `-` is the standard input.

    Args:
        path: the file, plain or packed.
        columns: role -> name of its column, where names do not say it; numbers count columns from one.
        human: further columns with human scores.
        header: whether the first line of a table names its columns.
        quoting: how quotation marks in TSV are read.
        languages: source and target language, e.g. `("de", "en")`.
        encoding: where the file is not UTF-8.
        limits: guards against huge files.
        format: instead of the one the suffix stands for.
    """
    if quoting not in get_args(Quoting):
        raise SpecError(f"quoting is {quoting!r}, expected {' or '.join(map(repr, get_args(Quoting)))}")
    asked = (human,) if isinstance(human, str) else tuple(human)
    options = Options(columns or {}, asked, header, quoting, languages, encoding, limits or Limits())
    known = format or _by_suffix(path)
    if known == "xliff":
        return xliff_of(path, languages, encoding, limits)
    file = TextFile(path, encoding=encoding, limits=limits)
    chosen = known or _by_content(file.first(), file.name)
    if chosen in _DELIMITERS:
        return table_of(file, path, options, _DELIMITERS[chosen])
    if chosen == "jsonl":
        return dataset_of(file) if is_header(file.first()) else jsonl_of(file, path, options)
    return _plain(file, path, languages)


def _by_suffix(path: str | Path) -> Format | None:
    """Return the format a suffix stands for, None where there is no suffix."""
    if Path(path).is_dir():
        raise DataError("is a folder: give a file", file=str(path))
    suffix = plain_name(path).suffix.lower()
    if str(path) == STDIN or not suffix:
        return None
    if suffix not in _FORMATS:
        raise DataError(
            f"cannot tell the format from {suffix!r}: expected {', '.join(_FORMATS)} (also with .gz or .zst); rename "
            "the file, or say --input-format tsv",
            file=str(path),
        )
    return _FORMATS[suffix]


def _by_content(line: str, name: str) -> Format:
    if line.startswith(("<?xml", "<xliff")):
        raise DataError("is XML: XLIFF is read from a file that ends in .xlf or .xliff", file=name, line=1)
    if line.lstrip().startswith("{"):
        return "jsonl"
    return "tsv" if "\t" in line else "txt"


def _plain(file: TextFile, path: str | Path, languages: tuple[str, str] | None) -> Dataset:
    system = system_names([path])[0]
    entries = tuple(Entry(str(k), system, Segment(text)) for k, text in enumerate(file.lines()))
    file.refuse_empty("one segment a line")
    origin = Origin({system: file.name}, range(1, len(entries) + 1))
    return Located(Path(file.name).name, entries, languages, file.findings, origin)
