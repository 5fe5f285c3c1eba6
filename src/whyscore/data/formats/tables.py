"""TSV and CSV files: a header, then one row a line.

0. Where another character than the usual one is more frequent in the header, it separates the columns; that is noted.
1. CSV follows RFC 4180, read by the standard library; cells may hold line ends inside quotes.
2. TSV has no standard. `auto` takes quotation marks as CSV quoting where every cell that has one starts and ends with
   one and doubles those inside, and as plain characters otherwise; the choice is noted. Only `csv` lets a cell go
   over several lines.
3. Without a header the columns are named `1`, `2`, ...
4. Rows become entries in `gathering`, block by block; the lines in messages are those of the file.

Excel workbooks (`.xlsx`): the first sheet is a table with a header.

1. The workbook is opened read-only by openpyxl. Formulas are never evaluated: a cell has the value that the program
   which wrote the file has stored, and none where it has stored none.
2. A workbook is a zip archive. What it would unpack to is checked against the limits before anything is read.
3. Numbers become their digits, whole ones without a point; empty rows at the end are left out.
"""

import csv
import zipfile
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice, repeat
from pathlib import Path
from typing import NamedTuple

from whyscore.data.columns import Block
from whyscore.data.files import Limits, TextFile
from whyscore.data.gathering import Gathering, Options, Quoting
from whyscore.data.naming import system_names
from whyscore.errors import DataError, MissingExtra, need_package
from whyscore.garbage import gc_paused
from whyscore.types import Dataset, Finding

_BLOCK = 5_000
_CSV = (",", ";", "|")
_OTHERS = ("\t", ";", "|")
"""What may separate columns instead of the usual character; a comma is also in texts."""


class Rows(NamedTuple):
    """Some rows: how many cells each has, the cells of all of them in one list, and the line each begins on."""

    widths: list[int]
    cells: list[str]
    lines: Sequence[int]

    def without_first(self) -> "Rows":
        """Return the rows after the header."""
        return Rows(self.widths[1:], self.cells[self.widths[0] :], self.lines[1:])


def table_of(file: TextFile, path: str | Path, options: Options, delimiter: str) -> Dataset:
    """Return the data set in a file of which nothing has been read yet."""
    gathering = Gathering(file.name, system_names([path])[0], options)
    notes: list[Finding] = []
    with gc_paused():
        for block in read_blocks(file, delimiter, options, notes):
            gathering.add(block)
        return gathering.finish(Path(file.name).name, [*file.findings, *notes])


def read_blocks(file: TextFile, delimiter: str, options: Options, notes: list[Finding]) -> Iterator[Block]:
    """Yield the rows of a file under the names of their columns; what is noticed is added to `notes`."""
    delimiter = _delimiter(file, delimiter, notes) if options.header else delimiter
    if delimiter in _CSV or options.quoting == "csv":
        parts = _csv_rows(file, delimiter, options.limits.line)
    else:
        parts = _tsv_rows(file, delimiter, options.quoting, notes)
    first = next(parts, None)
    file.refuse_empty("a header line and one segment per line")
    if first is None:
        return
    names, header_line = _names(file.name, first, header=options.header)
    width, count = len(names), 0
    for rows in chain([first if header_line is None else first.without_first()], parts):
        if rows.widths:
            _check_widths(file.name, rows, width)
            columns = [rows.cells[k::width] for k in range(width)]
            yield Block(file.name, names, columns, rows.lines, cells=True, header_line=header_line)
        count += len(rows.widths)
    if not count:
        raise DataError(f"{file.name} has a header but no rows: expected one segment per line")


def _delimiter(file: TextFile, usual: str, notes: list[Finding]) -> str:
    """Return what separates the columns: the usual character, unless another one is more frequent in the header."""
    line = file.first()
    best = max((usual, *_OTHERS), key=line.count)
    if line.count(best) <= line.count(usual):
        return usual
    notes.append(Finding("delimiter", f"columns are separated by {best!r}, as the header shows", file.name, 1))
    return best


def _csv_rows(file: TextFile, delimiter: str, limit: int) -> Iterator[Rows]:
    # The ends of lines were taken off; inside quotes they belong to the cell.
    reader = csv.reader((f"{line}\n" for line in file.lines()), delimiter=delimiter, strict=True)
    line = 1
    while True:
        widths: list[int] = []
        cells: list[str] = []
        lines: list[int] = []
        with _field_limit(limit):
            try:
                for row in islice(reader, _BLOCK):
                    widths.append(len(row) or 1)
                    cells.extend(row or [""])
                    lines.append(line)
                    line = reader.line_num + 1
            except csv.Error as error:
                raise DataError(f"not valid CSV (RFC 4180): {error}", file=file.name, line=line) from error
        if not widths:
            return
        yield Rows(widths, cells, lines)


@contextmanager
def _field_limit(limit: int) -> Iterator[None]:
    """Let cells be as long as lines may be; the standard library keeps one limit for the whole process."""
    before = csv.field_size_limit(limit)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _tsv_rows(file: TextFile, delimiter: str, quoting: Quoting, notes: list[Finding]) -> Iterator[Rows]:
    """Yield rows; unless quoting is `raw`, all lines are seen before the first row, to choose how to read quotes."""
    blocks = file.blocks()
    quoted = False
    if quoting == "auto":
        waiting = deque(blocks)
        marked = [line for block in waiting for line in block if '"' in line]
        quoted = all(_quoted(cell) for line in marked for cell in line.split(delimiter) if '"' in cell)
        if marked:
            how = "CSV quoting" if quoted else "plain characters"
            notes.append(Finding("quoting", f"quotation marks were read as {how}", file.name))
        # Lines are let go as they are used, so that they and the entries are not all in memory at once.
        blocks = iter(lambda: waiting.popleft() if waiting else None, None)
    start = 1
    for block in blocks:
        joined = delimiter.join(block)
        cells = joined.split(delimiter)
        if quoted and '"' in joined:
            cells = [cell[1:-1].replace('""', '"') if '"' in cell else cell for cell in cells]
        widths = [count + 1 for count in map(str.count, block, repeat(delimiter))]
        yield Rows(widths, cells, range(start, start + len(block)))
        start += len(block)


def _quoted(cell: str) -> bool:
    """Return whether a cell starts and ends with a quotation mark and doubles those inside.

    >>> _quoted('"a ""big"" cat"'), _quoted('a "big" cat'), _quoted('"')
    (True, False, False)
    """
    inner = cell[1:-1]
    return len(cell) > 1 and cell[0] == cell[-1] == '"' and '"' not in inner.replace('""', "")


def _names(file: str, rows: Rows, *, header: bool) -> tuple[tuple[str, ...], int | None]:
    """Return the names of the columns and the line on which they stand, if any."""
    if not header:
        return tuple(str(k) for k in range(1, rows.widths[0] + 1)), None
    names = tuple(rows.cells[: rows.widths[0]])
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"the header has the column {name!r} twice: rename one", file=file, line=rows.lines[0])
    return names, rows.lines[0]


def _check_widths(file: str, rows: Rows, width: int) -> None:
    if rows.widths.count(width) == len(rows.widths):
        return
    row, found = next((k, columns) for k, columns in enumerate(rows.widths) if columns != width)
    raise DataError(f"expected {width} columns, found {found}", file=file, line=rows.lines[row])


_FREE = 10_000_000
_ROWS = 1_048_576
"""Rows that a sheet of Excel has."""


def xlsx_of(path: str | Path, options: Options) -> Dataset:
    """Return the data set in the first sheet of a workbook."""
    name = str(path)
    _check_size(path, options.limits)
    gathering = Gathering(name, system_names([path])[0], options)
    rows = _rows(path)
    header = next(rows, [])
    if not any(header):
        raise DataError("the first row of the first sheet is empty: expected the names of the columns", file=name)
    width = max(k for k, cell in enumerate(header, start=1) if cell)
    names = tuple(header[:width]) if options.header else tuple(str(k) for k in range(1, width + 1))
    if options.header and len(set(names)) < width:
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"the header has the column {twice!r} twice: rename one", file=name, line=1)
    start = 2 if options.header else 1
    body = rows if options.header else iter([header, *rows])
    count = 0
    while block := list(islice(body, _BLOCK)):
        lines = [start + count + k for k, row in enumerate(block) if any(row)]
        kept = [(row + [""] * width)[:width] for row in block if any(row)]
        count += len(block)
        if kept:
            columns = [list(column) for column in zip(*kept, strict=True)]
            gathering.add(Block(name, names, columns, lines, cells=True, header_line=1 if options.header else None))
    if not gathering.size:
        raise DataError(f"{name} has a header but no rows: expected one segment per row")
    return gathering.finish(Path(path).name)


def _check_size(path: str | Path, limits: Limits) -> None:
    """Refuse what is no workbook, and one that unpacks to more than the limits allow."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise DataError(f"cannot be read as an Excel workbook: {error}", file=str(path)) from error
    size = sum(member.file_size for member in members)
    packed = sum(member.compress_size for member in members)
    if size > limits.file or size > max(_FREE, limits.ratio * packed):
        raise DataError(f"unpacks to {size:,} bytes; raise --max-file or --max-ratio to read it", file=str(path))


def _rows(path: str | Path) -> Iterator[list[str]]:
    """Yield the rows of the first sheet as texts."""
    with need_package(MissingExtra.of("reading .xlsx files", "xlsx")):
        import openpyxl  # noqa: PLC0415 - an extra
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        try:
            # A cell far out, or a size that the sheet only claims, would make openpyxl fill in billions of empty cells.
            sheet, width = book.worksheets[0], None
            for first, last in ((1, 1), (2, _ROWS)):
                for row in sheet.iter_rows(min_row=first, max_row=last, max_col=width, values_only=True):
                    yield ["" if cell is None else _text(cell) for cell in row]
                    width = width or max((k for k, cell in enumerate(row, start=1) if cell is not None), default=1)
        finally:
            book.close()
    except DataError:
        raise
    except Exception as error:  # openpyxl raises whatever its parsers do on a damaged file
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise DataError(f"the workbook is damaged: {reason}", file=str(path)) from error


def _text(cell: object) -> str:
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
