"""Tables on a terminal: aligned columns, an arrow for the direction, notes below.

Where the width of the terminal is known, a wider table is folded into blocks that repeat the first column, and
sentences break between words.
"""

import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len

from whyscore.marking import ON_ONE_LINE
from whyscore.present import Look
from whyscore.types.result import Mark, Result, Table

SUFFIX = ".txt"
MARKS: dict[Mark, str] = {"higher": "+", "significant": "*", "corrected": "!"}
"""What stands behind a marked value."""


def lines(result: Result, look: Look) -> Iterator[str]:
    """Yield the tables for people, a blank line between them."""
    lead = result.lead()
    yield from (f"{_wrap(sentence, look.width)}\n" for sentence in lead)
    for number, table in enumerate(result.tables()):
        yield from ["\n"] if number or lead else []
        yield from _table(table, look)


def _table(table: Table, look: Look) -> Iterator[str]:
    head = [name.translate(ON_ONE_LINE) + arrow(table, name, "↑", "↓") for name in table.columns]
    body = [
        [cell + _marks(table, number, name) for name, cell in zip(table.columns, row, strict=True)]
        for number, row in enumerate(table.texts(look.decimals))
    ]
    widths = [max(map(cell_len, column)) for column in zip(head, *body, strict=True)]
    right = table.right_aligned()
    for number, block in enumerate(_blocks(widths, look.width)):
        yield from ["\n"] if number else []
        wide, sides = [widths[k] for k in block], [right[k] for k in block]
        for row in (head, ["-" * width for width in widths], *body):
            yield f"{_align([row[k] for k in block], wide, sides)}\n"
    yield from (f"{_wrap(line, look.width)}\n" for line in below(table))


def _blocks(widths: Sequence[int], width: int | None) -> list[list[int]]:
    """Return which columns stand side by side: all, or as many as fit, behind the first one each time.

    >>> _blocks([6, 10, 10, 10], 30), _blocks([6, 10, 10, 10], None)
    ([[0, 1, 2], [0, 3]], [[0, 1, 2, 3]])
    """
    blocks: list[list[int]] = [[0] if widths else []]
    for k in range(1, len(widths)):
        if width and len(blocks[-1]) > 1 and sum(widths[j] + 2 for j in blocks[-1]) + widths[k] > width:
            blocks.append([0])
        blocks[-1].append(k)
    return blocks


def _wrap(sentence: str, width: int | None) -> str:
    line = sentence.translate(ON_ONE_LINE)
    return textwrap.fill(line, width, break_on_hyphens=False) if width else line


def _marks(table: Table, row: int, name: str) -> str:
    """Return the marks of a cell, as wide as the widest in its column, so that the digits stay below each other."""
    width = max((len(marks) for (_, column), marks in table.marks.items() if column == name), default=0)
    cell_marks = table.marks.get((row, name), frozenset())
    return "".join(sign for mark, sign in MARKS.items() if mark in cell_marks).ljust(width)


def _align(row: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = []
    for cell, width, to_the_right in zip(row, widths, right, strict=True):
        blanks = " " * (width - cell_len(cell))
        padded.append(blanks + cell if to_the_right else cell + blanks)
    return "  ".join(padded).rstrip()


class Style(NamedTuple):
    """How marks are set: templates with a place for the cell."""

    higher: str
    corrected: str
    strong: str


def mark_rows(table: Table, look: Look, escape: Callable[[str], str], style: Style) -> Iterator[list[str]]:
    """Yield the cells of each row with their marks: higher, significantly so or the best, also after correction."""
    bold = table.bold if look.bold else frozenset()
    for number, row in enumerate(table.texts(look.decimals)):
        cells = []
        for name, text in zip(table.columns, row, strict=True):
            marks = table.marks.get((number, name), frozenset())
            cell = escape(text)
            cell = style.higher.format(cell) if "higher" in marks else cell
            cell = style.corrected.format(cell) if "corrected" in marks else cell
            cells.append(style.strong.format(cell) if (number, name) in bold or "significant" in marks else cell)
        yield cells


def arrow(table: Table, name: str, up: str, down: str) -> str:
    """Return what is put behind a column's name for its direction, if it has one."""
    better = table.higher_is_better.get(name)
    return "" if better is None else f" {up if better else down}"


def below(table: Table) -> list[str]:
    """Return the notes, after a blank line."""
    return ["", *table.notes] if table.notes else []
