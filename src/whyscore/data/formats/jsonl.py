"""JSON lines: one object a line, or whyscore's own records.

1. The first line tells records (`"schema": "whyscore/1"`) from plain objects; of the records, a data set can be read.
2. Objects with the same keys are gathered into blocks and read like the rows of a table (`gathering`); lines may have
   different keys. Objects are let go block by block.
3. JSON is strict: NaN and Infinity are refused, because no other language reads them; null means missing. A key that
   stands in an object twice is refused, and so is half a surrogate pair (in whyscore's own records it reads back).
"""

import json
import math
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from pathlib import Path
from typing import NamedTuple, NoReturn

from whyscore.data.columns import Block
from whyscore.data.files import TextFile
from whyscore.data.gathering import Gathering, Options
from whyscore.data.naming import few, system_names
from whyscore.errors import DataError
from whyscore.text.files import STRICT, refuse_surrogates, whole
from whyscore.types import Dataset, Finding

_BLOCK = 10_000


class Object(NamedTuple):
    """An object and the line it stands on."""

    line: int
    value: dict[str, object]


def jsonl_of(file: TextFile, path: str | Path, options: Options) -> Dataset:
    """Return the data set in a file of which nothing has been read yet."""
    gathering = Gathering(file.name, system_names([path])[0], options)
    blank: list[int] = []
    for names, same in groupby(objects(file, blank), key=lambda item: tuple(item.value)):
        while part := list(islice(same, _BLOCK)):
            columns = list(zip(*(item.value.values() for item in part), strict=True))
            gathering.add(Block(file.name, names, columns, [item.line for item in part], cells=False))
    file.refuse_empty("one object per line")
    notes = [*file.findings]
    if blank:
        notes.append(Finding("blank-lines", f"blank lines were left out: {few(blank)}", file.name, blank[0]))
    return gathering.finish(Path(file.name).name, notes)


def objects(file: TextFile, blank: list[int]) -> Iterator[Object]:
    """Yield the objects of a file; the numbers of blank lines are added to `blank`."""
    for number, line in enumerate(file.lines(), start=1):
        if not line or line.isspace():
            blank.append(number)
            continue
        value = parse_object(line, file.name, number)
        refuse_surrogates(line, value, file.name, number)
        yield Object(number, value)


def parse_object(line: str, file: str, number: int) -> dict[str, object]:
    """Return the object that a line holds."""
    try:
        value = _DECODER.decode(line)
    except json.JSONDecodeError as error:
        raise DataError(f"not JSON: {error.msg}", file=file, line=number, column=error.colno) from error
    except _NotFinite as error:
        raise DataError(_not_finite(line, str(error)), file=file, line=number) from error
    except (RecursionError, ValueError) as error:  # nested thousands deep, or a number of thousands of digits
        raise DataError(f"JSON that cannot be read: {error}", file=file, line=number) from error
    if not isinstance(value, dict):
        raise DataError("not an object", file=file, line=number)
    return value


class _NotFinite(ValueError):
    pass


def _refuse(constant: str) -> NoReturn:
    raise _NotFinite(constant)


_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_int=whole, object_pairs_hook=STRICT.object_pairs_hook)


def _not_finite(line: str, constant: str) -> str:
    """Return the message for NaN or an infinity, with its key where that is easy to tell."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):  # what follows is no JSON either
        value = None
    items: Iterable[tuple[str, object]] = value.items() if isinstance(value, dict) else ()
    for key, number in items:
        if isinstance(number, float) and not math.isfinite(number):
            return f"{key!r} is {constant}, expected a number"
    return f"{constant} is not JSON: write null where there is no number"
