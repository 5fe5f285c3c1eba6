"""Lines of word scores and word tags, one value per word, blanks between: numbers out, every fault with file and line.

A line with a fault counts as an empty one, so that all other lines can still be checked.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from whyscore.data.files import Lines
from whyscore.stats.words import Ragged
from whyscore.types import Finding, FloatVector

TAGS = {"0": 0.0, "1": 1.0, "OK": 0.0, "BAD": 1.0}


class Parsed(NamedTuple):
    """The numbers of a file, and what is wrong with it."""

    values: Ragged
    findings: tuple[Finding, ...]


class Fault(ValueError):
    """A value that cannot be read; the reader adds file and line."""


def score_lines(lines: Lines, file: str) -> Parsed:
    """Return one finite number per word."""
    return _parse(lines, file, lambda cells: [number(cell) for cell in cells], "one score per word")


def tag_lines(lines: Lines, file: str) -> Parsed:
    """Return one 0 or 1 per word; OK and BAD are understood."""
    return _parse(lines, file, lambda cells: [_tag(cell) for cell in cells], "one tag per word")


def numbers(lines: Lines, file: str) -> tuple[FloatVector, tuple[Finding, ...]]:
    """Return one finite number a line."""
    values, findings = [], [*lines.findings]
    for line, text in enumerate(lines.texts, start=1):
        try:
            values.append(number(text.strip()))
        except Fault as fault:
            values.append(math.nan)
            findings.append(Finding("unreadable-line", str(fault), file, line, error=True))
    return np.array(values, dtype=np.float64), tuple(findings)


def number(cell: str) -> float:
    """Return a finite number, as people and programs write it."""
    try:
        # Python alone reads 1_000 as a number.
        value = math.nan if "_" in cell else float(cell)
    except ValueError:
        value = math.nan
    if math.isfinite(value):
        return value
    shown = "the line is empty" if not cell else f"{cell!r} is no finite number"
    raise Fault(f"{shown}: expected a number such as 0.25")


def _tag(cell: str) -> float:
    if cell not in TAGS:
        raise Fault(f"{cell!r} is not a tag: expected 0 or 1, OK or BAD")
    return TAGS[cell]


def _parse(lines: Lines, file: str, read: Callable[[Sequence[str]], list[float]], expected: str) -> Parsed:
    rows: list[list[float]] = []
    findings = [*lines.findings]
    for line, text in enumerate(lines.texts, start=1):
        try:
            rows.append(read(_cells(text, expected)))
        except Fault as fault:
            rows.append([])
            findings.append(Finding("unreadable-line", str(fault), file, line, error=True))
    return Parsed(Ragged.of(rows), tuple(findings))


def _cells(text: str, expected: str) -> list[str]:
    cells = text.split()
    if not cells:
        raise Fault(f"the line is empty: expected {expected}")
    return cells
