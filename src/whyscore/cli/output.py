"""What comes out: data on stdout or in a file, everything else on stderr.

What was found in input files, as data: one row per finding.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from whyscore.data.writing import write_lines
from whyscore.errors import UserError
from whyscore.present import render
from whyscore.types import Finding, Signature
from whyscore.types.table import Table

_SUFFIXES = {
    ".json": "json",
    ".jsonl": "jsonl",
    ".tsv": "tsv",
    ".csv": "csv",
    ".md": "markdown",
    ".tex": "latex",
    ".txt": "text",
}


def format_of(arguments: argparse.Namespace) -> str:
    """Return the output format: as asked, else by the suffix of the file, else text."""
    if arguments.format:
        return str(arguments.format)
    suffix = Path(arguments.output).suffix.lower() if arguments.output else ""
    offered = getattr(arguments, "formats", None) or tuple(_SUFFIXES.values())
    if suffix and _SUFFIXES.get(suffix) not in offered:
        known = ", ".join(known for known, name in _SUFFIXES.items() if name in offered)
        raise UserError(f"{arguments.output}: {suffix!r} is no format of this command: use {known}, or add -f text")
    return _SUFFIXES[suffix] if suffix else "text"


def check_output(arguments: argparse.Namespace) -> None:
    """Refuse a file that results could not be written to, before any work is done for them."""
    if not getattr(arguments, "formats", None) or arguments.output in (None, "-"):
        return
    format_of(arguments)
    path = Path(arguments.output)
    if path.is_dir():
        raise UserError(f"{path}: is a folder: name a file in it with -o")
    if not path.parent.is_dir():
        raise UserError(f"{path}: there is no folder {path.parent}: make it first, or choose another place")
    if not os.access(path.parent, os.W_OK):
        raise UserError(f"{path}: nothing may be written in {path.parent.absolute()}: choose another place with -o")


def emit(arguments: argparse.Namespace, lines: Iterable[str]) -> None:
    """Write lines, which carry their own ends, to stdout, or to the file that was named when all are there."""
    if arguments.output and arguments.output != "-":
        write_lines(arguments.output, lines)
        return
    for line in lines:
        sys.stdout.write(line)


def document(lines: Iterable[str]) -> Iterator[str]:
    """Yield records (a header line, then one object a line) as one JSON document, indented for people."""
    header, *records = map(json.loads, lines)
    yield to_json(header | {"records": records})


def to_json(value: object) -> str:
    """Return strict JSON, indented for people."""
    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def tell(arguments: argparse.Namespace, line: str) -> None:
    """Say something beside the data, on stderr."""
    if not arguments.quiet:
        print(line, file=sys.stderr)


def tell_signatures(arguments: argparse.Namespace, signatures: Iterable[Signature]) -> None:
    """Print each signature once, beside a table."""
    for text in dict.fromkeys(str(signature) for signature in signatures):
        tell(arguments, f"signature: {text}")


FORMATS = ("text", "json", "tsv", "csv", "markdown", "latex")
_COLUMNS = ("kind", "file", "line", "message")


def finding_lines(
    arguments: argparse.Namespace, about: Mapping[str, object], found: Sequence[Finding]
) -> Iterator[str]:
    """Yield the findings in a format other than text; JSON also says what they are about."""
    rows = [("error" if one.error else "note", one.file, one.line, one.message) for one in found]
    chosen = format_of(arguments)
    if chosen == "json":
        findings = [dict(zip(_COLUMNS, row, strict=True)) for row in rows]
        yield to_json({**about, "findings": findings})
    else:
        yield render(Table(_COLUMNS, tuple(rows)), chosen, safe=arguments.safe_csv)
