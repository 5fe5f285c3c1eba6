"""Tables for programs, separated by tabs: numbers whole, undefined ones empty, nothing but the table."""

import csv
import io
from collections.abc import Iterator, Sequence

from whyscore.present import Look
from whyscore.types.result import Cell, Result, Table, is_number

SUFFIX = ".tsv"
# As they are, in full width, and behind characters that spreadsheets skip.
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠", "\t", "\r", "\n")


def lines(result: Result, look: Look) -> Iterator[str]:
    """Yield the tables for programs."""
    return delimited_lines(result, look, "\t")


def delimited_lines(result: Result, look: Look, delimiter: str) -> Iterator[str]:
    """Yield the tables for programs with any delimiter, a blank line between them."""
    for number, table in enumerate(result.tables(long=True)):
        yield from ["\n"] if number else []
        yield _table(table, look, delimiter)


def _table(table: Table, look: Look, delimiter: str) -> str:
    head = [_guard(name) if look.safe else name for name in table.columns]
    rows = [[_value(cell, look) for cell in row] for row in table.rows]
    return "".join(_line(row, delimiter) for row in (head, *rows))


def _line(cells: Sequence[str], delimiter: str) -> str:
    r"""Return a row; cells with a carriage return are quoted, too, which `csv` leaves out where rows end in newlines.

    >>> _line(["a\rb", "c"], ",")
    '"a\rb",c\n'
    """
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\r\n").writerow(cells)
    return f"{text.getvalue()[:-2]}\n"


def _value(cell: Cell, look: Look) -> str:
    if isinstance(cell, str):
        return _guard(cell) if look.safe else cell
    if not is_number(cell):
        return ""
    if not isinstance(cell, float):
        return str(cell)
    return repr(float(cell)) if look.decimals is None else f"{cell:.{look.decimals}f}"


def _guard(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula.

    >>> _guard("=1+1"), _guard("-3.5"), _guard("a=b")
    ("'=1+1", '-3.5', 'a=b')
    """
    if not text.startswith(_FORMULA):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text
