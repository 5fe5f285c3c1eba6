"""One table, five forms: aligned text, TSV, CSV, Markdown and LaTeX (booktabs).

Numbers are rounded for people (text, Markdown, LaTeX) and written in full for machines (TSV, CSV). Widths count what a
terminal shows, so that Chinese and Japanese names align too.
"""

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from whyscore.types import Estimate

Cell = str | float | int | None | Estimate

DECIMALS = {"text": 2, "markdown": 3, "latex": 3}
_FORMULA = ("=", "+", "-", "@")
_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
}


@dataclass(frozen=True)
class Table:
    """Columns with rows of cells; `best` holds the (row, column) of cells to stand out, `below` lines under it."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    best: frozenset[tuple[int, int]] = frozenset()
    below: Sequence[str] = ()


def render(table: Table, form: str, *, decimals: int | None = None, safe: bool = False) -> Iterator[str]:
    """Yield the lines of a table, each with its end.

    >>> print(*render(Table(["system", "chrf"], [["A", 51.234]]), "markdown"), sep="", end="")
    | system |   chrf |
    |:-------|-------:|
    | A      | 51.234 |
    """
    if form in ("tsv", "csv"):
        yield from _separated(table, "\t" if form == "tsv" else ",", safe=safe)
        return
    digits = DECIMALS[form] if decimals is None else decimals
    writer: Callable[[Table, list[list[str]]], Iterator[str]]
    writer = {"text": _text, "markdown": _markdown, "latex": _latex}[form]
    yield from writer(table, [[_shown(cell, digits) for cell in row] for row in table.rows])


def _shown(cell: Cell, digits: int) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, Estimate):
        interval = "" if cell.low is None or cell.high is None else f" [{cell.low:.{digits}f}, {cell.high:.{digits}f}]"
        return f"{cell.value:.{digits}f}{interval}"
    return f"{cell:.{digits}f}" if isinstance(cell, float) else str(cell)


def _separated(table: Table, separator: str, *, safe: bool) -> Iterator[str]:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=separator, lineterminator="\n")
    for row in [table.columns, *table.rows]:
        writer.writerow([_exact(cell, safe=safe) for cell in row])
    yield out.getvalue()


def _exact(cell: Cell, *, safe: bool) -> str:
    if cell is None:
        return ""
    if isinstance(cell, Estimate):
        return repr(cell.value)
    text = repr(cell) if isinstance(cell, float) else str(cell)
    # A spreadsheet would run such a text as a formula.
    return f"'{text}" if safe and isinstance(cell, str) and text.startswith(_FORMULA) else text


def _text(table: Table, cells: list[list[str]]) -> Iterator[str]:
    widths = _widths(table.columns, cells)
    for row in [table.columns, *cells]:
        yield "  ".join(_aligned(row, widths)).rstrip() + "\n"
    yield from (f"{line}\n" for line in table.below)


def _markdown(table: Table, cells: list[list[str]]) -> Iterator[str]:
    rows = [
        [f"**{_barred(cell)}**" if (i, j) in table.best else _barred(cell) for j, cell in enumerate(row)]
        for i, row in enumerate(cells)
    ]
    columns = [_barred(column) for column in table.columns]
    widths = _widths(columns, rows)
    rule = [f":{'-' * (width + 1)}" if j == 0 else f"{'-' * (width + 1)}:" for j, width in enumerate(widths)]
    yield f"| {' | '.join(_aligned(columns, widths))} |\n|{'|'.join(rule)}|\n"
    for row in rows:
        yield f"| {' | '.join(_aligned(row, widths))} |\n"
    if table.below:
        yield "\n"
        yield from (f"{line}  \n" for line in table.below)


def _latex(table: Table, cells: list[list[str]]) -> Iterator[str]:
    yield f"\\begin{{tabular}}{{l{'r' * (len(table.columns) - 1)}}}\n\\toprule\n"
    yield " & ".join(map(_escaped, table.columns)) + " \\\\\n\\midrule\n"
    for i, row in enumerate(cells):
        parts = [f"\\textbf{{{_escaped(c)}}}" if (i, j) in table.best else _escaped(c) for j, c in enumerate(row)]
        yield " & ".join(parts) + " \\\\\n"
    yield "\\bottomrule\n\\end{tabular}\n"
    yield from (f"% {line}\n" for line in table.below)


def _widths(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> list[int]:
    return [max(cell_len(cell) for cell in column) for column in zip(columns, *cells, strict=True)]


def _aligned(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Return the cells at their widths: the first column to the left, numbers to the right."""
    blanks = [" " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)]
    return [cell + blank if j == 0 else blank + cell for j, (cell, blank) in enumerate(zip(row, blanks, strict=True))]


def _barred(cell: str) -> str:
    return cell.replace("|", "\\|")


def _escaped(text: str) -> str:
    return re.sub("|".join(map(re.escape, _LATEX)), lambda found: _LATEX[found[0]], text)
