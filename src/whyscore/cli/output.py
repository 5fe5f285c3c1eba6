"""What comes out: data on stdout or in a file, everything else on stderr."""

import argparse
import itertools
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from whyscore.cli.options import OutputSettings
from whyscore.data.writing import write_lines
from whyscore.errors import UserError
from whyscore.marking import ON_ONE_LINE, visible
from whyscore.present import Look, present, suffixes
from whyscore.types import Signature
from whyscore.types.result import Result


class Says(Protocol):
    """What knows how much may be said."""

    @property
    def quiet(self) -> bool:
        """Whether nothing is said beside the data."""


class Writes(Protocol):
    """What knows where results go."""

    @property
    def output(self) -> str | Path | None:
        """The file, or None for stdout."""


def format_of(output: argparse.Namespace | OutputSettings, formats: Sequence[str] = ()) -> str:
    """Return the output format: as asked, else by the suffix of the file, else text; `formats` are those there are."""
    if output.format:
        return str(output.format)
    suffix = Path(output.output).suffix.lower() if output.output else ""
    if not suffix:
        return "text"
    offered = {ending: name for ending, name in suffixes().items() if name in (formats or (name,))}
    if suffix not in offered:
        endings = ", ".join(offered)
        raise UserError(f"{output.output}: {suffix!r} is not a format of this command: use {endings}, or add -f text")
    return offered[suffix]


def check_output(arguments: argparse.Namespace) -> None:
    """Refuse a file that results could not be written to, before any work is done for them."""
    options = vars(arguments)
    if not options.get("formats") or options.get("output") in (None, "-"):
        return
    format_of(arguments, options["formats"])
    path = Path(arguments.output)
    if path.is_dir():
        raise UserError(f"{path}: is a folder: name a file in it with -o")
    if not path.parent.is_dir():
        raise UserError(f"{path}: there is no folder {path.parent}: create it first, or choose another location")
    if not os.access(path.parent, os.W_OK):
        raise UserError(f"{path}: no permission to write in {path.parent.absolute()}: choose another location with -o")


def emit(output: Writes, lines: Iterable[str]) -> None:
    """Write lines, which carry their own ends, to stdout, or to the file that was named when all are there."""
    if output.output and output.output != "-":
        write_lines(output.output, lines)
        return
    shown = sys.stdout.isatty()
    for line in lines:
        sys.stdout.write(visible(line) if shown else line)


def terminal_width(file: str | Path | None = None) -> int | None:
    """Return how wide tables may be: the width of the terminal, or None where the output goes elsewhere."""
    to_terminal = file in (None, "", "-") and sys.stdout.isatty()
    return shutil.get_terminal_size().columns if to_terminal else None


def emit_result(
    result: Result, output: OutputSettings, decimals: int | None = None, *, below: Iterable[str] = ()
) -> None:
    """Write a result in the format that was asked for, and lines below it."""
    digits = output.width if output.width is not None else decimals
    look = Look(digits, width=terminal_width(output.output), safe=output.safe_csv)
    emit(output, itertools.chain(present(result, format_of(output), look), below))


def tell(output: Says, line: str) -> None:
    """Say something beside the data, on one line of stderr."""
    if not output.quiet:
        print(line.translate(ON_ONE_LINE), file=sys.stderr)


def tell_each(output: Says, kind: str, lines: Iterable[object]) -> None:
    """Say notes, warnings or names of files beside the data, each on a line of its own."""
    for line in lines:
        tell(output, f"{kind}: {line}")


def tell_signatures(output: Says, signatures: Iterable[Signature]) -> None:
    """Print each signature once, beside a table."""
    tell_each(output, "signature", dict.fromkeys(str(signature) for signature in signatures))
