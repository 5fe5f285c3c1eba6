"""Excel workbooks (`.xlsx`): the first sheet is a table with a header.

1. The workbook is opened read-only by openpyxl. Formulas are never evaluated: a cell has the value that the program
   which wrote the file has stored, and none where it has stored none.
2. A workbook is a zip archive. What it would unpack to is checked against the limits before anything is read.
3. Numbers become their digits, whole ones without a point; empty rows at the end are left out.
"""

import zipfile
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from whyscore.data.columns import Block
from whyscore.data.files import Limits
from whyscore.data.gathering import Gathering, Options
from whyscore.data.naming import system_names
from whyscore.errors import DataError, MissingExtra
from whyscore.types import Dataset

_BLOCK = 5_000
_FREE = 10_000_000


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
        twice = next(one for one in names if names.count(one) > 1)
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
        raise DataError(f"{name} has a header but no rows: expected one segment a row")
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
    try:
        import openpyxl  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtra.of("reading .xlsx files", "xlsx") from error
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        try:
            for row in book.worksheets[0].iter_rows(values_only=True):
                yield _texts(row)
        finally:
            book.close()
    except DataError:
        raise
    except Exception as error:  # openpyxl raises whatever its parsers do on a damaged file
        raise DataError(f"the workbook is damaged: {error or type(error).__name__}", file=str(path)) from error


def _texts(row: Sequence[object]) -> list[str]:
    return ["" if cell is None else _text(cell) for cell in row]


def _text(cell: object) -> str:
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
