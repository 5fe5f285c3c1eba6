"""What comes out: data on stdout or in a file, everything else on stderr."""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from whyscore.io.atomic import write_lines
from whyscore.types import Signature

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
    return _SUFFIXES.get(Path(arguments.output).suffix.lower(), "text") if arguments.output else "text"


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
