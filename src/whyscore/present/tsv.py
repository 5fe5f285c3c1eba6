"""Tables for programs, separated by tabs: numbers whole, undefined ones empty, nothing but the table."""

import csv
import io
from collections.abc import Iterator

from whyscore.present import Look
from whyscore.types.result import Result
from whyscore.types.table import Cell, Table, is_number

SUFFIX = ".tsv"
_FORMULA = ("=", "+", "-", "@")


def lines(result: Result, look: Look) -> Iterator[str]:
    """Yield the tables for programs."""
    return separated(result, look, "\t")


def separated(result: Result, look: Look, delimiter: str) -> Iterator[str]:
    """Yield the tables for programs with any delimiter, a blank line between them."""
    for number, table in enumerate(result.tables(long=True)):
        yield from ["\n"] if number else []
        yield _table(table, look, delimiter)


def _table(table: Table, look: Look, delimiter: str) -> str:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow([_guard(name) if look.safe else name for name in table.columns])
    for row in table.rows:
        writer.writerow([_value(cell, look) for cell in row])
    return text.getvalue()


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
