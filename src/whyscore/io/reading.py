"""Any single file: the suffix says what it is; the standard input and files without a suffix say so themselves.

| suffix (also with `.gz`, `.zst`) | read as |
|---|---|
| `.tsv`, `.csv` | table |
| `.jsonl`, `.ndjson` | JSON lines, or a data set that whyscore wrote |
| `.txt` | one hypothesis a line |
| `.xlf`, `.xliff` | XLIFF 1.2 or 2.x: source and target of every unit |
| `.tmx` | TMX 1.4: the variants of a language pair |
| a folder | a WMT folder (`wmt`), or gold of a word-level task (`gold_data`) |

By content: a line that starts with `{` is JSON lines, one with a tab is TSV, anything else is text. Tables and JSON
lines with the columns of MQM ratings, whose texts hold `<v>` marks, are read as such (`mqm`).
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

from whyscore.errors import DataError, SpecError
from whyscore.io.columns import Choice
from whyscore.io.datasets import dataset_of
from whyscore.io.files import STDIN, TextFile
from whyscore.io.gathering import Options, Quoting
from whyscore.io.gold_data import gold_dataset, is_gold
from whyscore.io.jsonl import jsonl_of, parsed
from whyscore.io.located import Located, Origin
from whyscore.io.mqm import is_mqm, read_mqm
from whyscore.io.naming import plain_name, system_names
from whyscore.io.records import is_header
from whyscore.io.tables import table_of
from whyscore.io.tmx import tmx_of
from whyscore.io.unpacking import Limits
from whyscore.io.wmt import is_wmt, read_wmt
from whyscore.io.xliff import INLINES, Inline
from whyscore.io.xliff_data import xliff_of
from whyscore.types import Dataset, Entry, Segment

Format = Literal["tsv", "csv", "jsonl", "txt", "xliff", "tmx"]
_FORMATS: dict[str, Format] = {
    ".tsv": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".txt": "txt",
    ".xlf": "xliff",
    ".xliff": "xliff",
    ".tmx": "tmx",
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
    inline: Inline = "drop",
    alt_trans: bool = False,
) -> Dataset:
    """Return the data set in a file or folder; `-` is the standard input.

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
        inline: whether inline codes of XLIFF and TMX are left out or leave one private-use character each.
        alt_trans: whether the alternative translations of XLIFF 1.2 are references.
    """
    if quoting not in get_args(Quoting):
        raise SpecError(f"quoting is {quoting!r}, expected {' or '.join(map(repr, get_args(Quoting)))}")
    asked = (human,) if isinstance(human, str) else tuple(human)
    options = Options(columns or {}, asked, header, quoting, languages, encoding, limits or Limits())
    if inline not in INLINES:
        raise SpecError(f"inline is {inline!r}, expected {' or '.join(map(repr, INLINES))}")
    if Path(path).is_dir():
        return _folder(path, options)
    known = format or _by_suffix(path)
    if known in ("xliff", "tmx"):
        return _marked_up(path, options, known, inline, alt_trans=alt_trans)
    return _lined(path, known, options)


def _marked_up(path: str | Path, options: Options, known: Format, inline: Inline, *, alt_trans: bool) -> Dataset:
    languages, encoding, limits = options.languages, options.encoding, options.limits
    if known == "tmx":
        return tmx_of(path, languages, inline=inline, encoding=encoding, limits=limits)
    return xliff_of(path, languages, encoding, limits, inline=inline, alt_trans=alt_trans)


def _lined(path: str | Path, known: Format | None, options: Options) -> Dataset:
    """Return the data set in a file that is read line by line."""
    file = TextFile(path, encoding=options.encoding, limits=options.limits)
    chosen = known or _by_content(file.first(), file.name)
    if not options.columns and str(path) != STDIN and _is_mqm(file.first(), chosen, file.name):
        return replace(read_mqm(path), languages=options.languages)
    if chosen in _DELIMITERS:
        return table_of(file, path, options, _DELIMITERS[chosen])
    if chosen == "jsonl":
        return dataset_of(file) if is_header(file.first()) else jsonl_of(file, path, options)
    return _plain(file, path, options.languages)


def _folder(path: str | Path, options: Options) -> Dataset:
    """Return the data set in a folder, whose files tell what it is."""
    if is_wmt(path):
        return read_wmt(path, options.languages, encoding=options.encoding, limits=options.limits)
    if is_gold(path):
        asked = options.columns.get("references")
        ending = asked if isinstance(asked, str) or asked is None else ",".join(asked)
        return gold_dataset(path, languages=options.languages, references=ending, limits=options.limits)
    raise DataError(
        "is a folder: give a file, a WMT folder (with sources and system-outputs), or a gold folder (with *.tgt-tags "
        "or target.gold)",
        file=str(path),
    )


def _is_mqm(line: str, chosen: Format, name: str) -> bool:
    """Return whether the first line of a table or of JSON lines is that of raw MQM ratings."""
    if chosen == "jsonl":
        return "severity" in line and not is_header(line) and is_mqm(list(parsed(line, name, 1)))
    return chosen == "tsv" and is_mqm(line.split("\t"))


def _by_suffix(path: str | Path) -> Format | None:
    """Return the format a suffix stands for, None where there is no suffix."""
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
    if line.startswith(("<?xml", "<xliff", "<tmx")):
        raise DataError(
            "is XML: XLIFF is read from a file that ends in .xlf or .xliff, TMX from .tmx", file=name, line=1
        )
    if line.lstrip().startswith("{"):
        return "jsonl"
    return "tsv" if "\t" in line else "txt"


def _plain(file: TextFile, path: str | Path, languages: tuple[str, str] | None) -> Dataset:
    system = system_names([path])[0]
    entries = tuple(Entry(str(k), system, Segment(text)) for k, text in enumerate(file.lines()))
    file.refuse_empty("one segment a line")
    origin = Origin({system: file.name}, range(1, len(entries) + 1))
    return Located(Path(file.name).name, entries, languages, file.findings, origin)
