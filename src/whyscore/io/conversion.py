"""Columns of raw values become texts, labels, numbers and spans; a value that does not fit is named with its line.

Each column is tried as a whole first, so that the usual case costs no Python work per value.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from whyscore.errors import DataError
from whyscore.io.spans import BadSpan, spans_of
from whyscore.types import ErrorSpan, Segment

_LISTS = ("references", "refs")


@dataclass(frozen=True, slots=True)
class Block:
    """Some rows of a file, column by column. `cells` says that every value is a text, as in TSV and CSV."""

    file: str
    names: tuple[str, ...]
    columns: Sequence[Sequence[object]]
    lines: Sequence[int]
    cells: bool
    header_line: int | None = None

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.lines)

    def bad(self, row: int, place: int, expected: str) -> DataError:
        """Return the error for a value that is not what was expected."""
        value = json.dumps(self.columns[place][row], ensure_ascii=False, default=str)
        message = f"{self.names[place]!r} is {value}, expected {expected}"
        return DataError(message, file=self.file, line=self.lines[row])


def texts(block: Block, place: int) -> Sequence[str]:
    """Return a column that must hold a text in every row."""
    column = block.columns[place]
    if not block.cells and set(map(type, column)) - {str}:
        raise block.bad(_first_other(column, str), place, "a text")
    return cast("Sequence[str]", column)


def optional_texts(block: Block, place: int | None) -> Sequence[str | None]:
    """Return a column of texts, None where a row has none."""
    if place is None:
        return [None] * len(block)
    column = block.columns[place]
    if not block.cells and set(map(type, column)) - {str, type(None)}:
        raise block.bad(_first_other(column, str, type(None)), place, "a text or null")
    return cast("Sequence[str | None]", column)


def labels(block: Block, place: int) -> Sequence[str]:
    """Return a column of ids or names; whole numbers count as their digits."""
    column = block.columns[place]
    if not block.cells and set(map(type, column)) - {str, int}:
        raise block.bad(_first_other(column, str, int), place, "a text or a whole number")
    found = cast("list[str]", column) if block.cells else list(map(str, column))
    if "" in found:
        raise block.bad(found.index(""), place, "a name")
    return found


def optional_labels(block: Block, place: int | None) -> Sequence[str | None]:
    """Return a column of names, None where a row has none."""
    if place is None:
        return [None] * len(block)
    return [None if value is None or value == "" else str(value) for value in block.columns[place]]


def references(block: Block, places: Sequence[int]) -> list[tuple[str, ...]]:
    """Return the references of each row, from one column of texts or lists, or from several columns."""
    if not places:
        return [()] * len(block)
    columns = [block.columns[place] for place in places]
    if block.cells and not any(block.names[place].lower() in _LISTS for place in places):
        return list(zip(*cast("list[Sequence[str]]", columns), strict=True))
    rows = []
    for k in range(len(block)):
        row: list[str] = []
        for place in places:
            row.extend(_several(block, k, place))
        rows.append(tuple(row))
    return rows


def _several(block: Block, row: int, place: int) -> list[str]:
    value = block.columns[place][row]
    if block.cells and isinstance(value, str) and value.startswith('["'):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return [cast("str", value)]
    if value is None:
        return []
    found = cast("list[str]", value if isinstance(value, list) else [value])
    if not all(isinstance(text, str) for text in found):
        raise block.bad(row, place, "a text or a list of texts")
    return found


def human(block: Block, places: Sequence[int]) -> list[Mapping[str, float]]:
    """Return the human scores of each row by name; rows without a score lack its name."""
    names = [block.names[place] for place in places]
    columns = [_numbers(block, place) for place in places]
    if any(None in column for column in columns):
        return [
            {name: value for name, value in zip(names, row, strict=True) if value is not None}
            for row in zip(*columns, strict=True)
        ]
    if len(names) == 1:
        name = names[0]
        return [{name: value} for value in cast("list[float]", columns[0])]
    rows: Iterable[tuple[float, ...]] = zip(*cast("list[list[float]]", columns), strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]


def _numbers(block: Block, place: int) -> Sequence[float | None]:
    column = block.columns[place]
    try:
        if block.cells or not set(map(type, column)) - {int, float}:
            found = list(map(float, cast("Sequence[str]", column)))
            if all(map(math.isfinite, found)):
                return found
    except (ValueError, OverflowError):
        pass
    return [_number(block, row, place) for row in range(len(block))]


def _number(block: Block, row: int, place: int) -> float | None:
    value = block.columns[place][row]
    if value is None or (block.cells and value == ""):
        return None
    try:
        fits = block.cells if isinstance(value, str) else isinstance(value, int | float) and not isinstance(value, bool)
        number = float(cast("str", value)) if fits else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise block.bad(row, place, "a number")
    return number


def spans(block: Block, place: int | None, segments: Sequence[Segment]) -> list[tuple[ErrorSpan, ...] | None]:
    """Return the error spans of each row; None where a row was not rated."""
    if place is None:
        return [None] * len(block)
    found = []
    for row, (value, segment) in enumerate(zip(block.columns[place], segments, strict=True)):
        try:
            found.append(spans_of(value, segment))
        except BadSpan as error:
            raise DataError(f"{block.names[place]!r}: {error}", file=block.file, line=block.lines[row]) from error
    return found


def pairs(block: Block, places: Sequence[int]) -> set[str]:
    """Return the language pairs that occur, as `de-en`."""
    columns = [block.columns[place] for place in places]
    return {"-".join(map(str, row)) for row in set(zip(*columns, strict=True))}


def others(block: Block, places: Sequence[int]) -> list[Mapping[str, object]]:
    """Return the columns without a role, by name, for each row."""
    if not places:
        return [_NOTHING] * len(block)
    names = [block.names[place] for place in places]
    columns = [block.columns[place] for place in places]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


_NOTHING: Mapping[str, object] = {}


def _first_other(column: Sequence[object], *kinds: type) -> int:
    return next(k for k, value in enumerate(column) if type(value) not in kinds)
