"""Small files of a user, read whole: UTF-8 and JSON, with every complaint on one line that names the file.

Data sets, which can be large, packed or in other encodings, are read in `whyscore.data`.
"""

import json
import re
import sys
import zlib
from pathlib import Path
from zipfile import BadZipFile

from whyscore.errors import DataError

UNREADABLE_ARRAYS = (
    ValueError, OSError, KeyError, EOFError, BadZipFile, NotImplementedError, RecursionError, MemoryError, TypeError,
    AttributeError, zlib.error, DeprecationWarning,
)  # fmt: skip
"""What numpy raises for files of arrays that are damaged or something else."""


def text_of(path: str | Path) -> str:
    """Return the text of a UTF-8 file; a mark at its start is left out, all ends of lines are newlines."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", file=str(path)) from error
    except UnicodeDecodeError as error:
        raise DataError(f"is not UTF-8 at byte {error.start}; convert it", file=str(path)) from error
    except ValueError as error:  # a zero in the name
        raise DataError(f"cannot be read: {error}", file=repr(str(path))) from error


ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def json_of(text: str, path: str | Path, line: int | None = None) -> object:
    """Return the value that JSON stands for; what is nested too deep or no float could hold is refused."""
    try:
        found: object = STRICT.decode(text)
    except json.JSONDecodeError as error:
        place = line or error.lineno
        raise DataError(f"not JSON: {error.msg}", file=str(path), line=place, column=error.colno) from error
    except (RecursionError, ValueError) as error:
        raise DataError(f"JSON that cannot be read: {error}", file=str(path), line=line) from error
    return found


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object, whose keys stand in it once; of two values none can be said to be the one that was meant."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(
            f"the key {next(name for name in names if names.count(name) > 1)!r} stands in one object twice"
        )
    return found


def refuse_surrogates(text: str, value: object, file: str, line: int) -> None:
    """Refuse half a surrogate pair in what a line of JSON stands for: no file could hold that text as UTF-8."""
    if ESCAPED_SURROGATE.search(text) is None:
        return
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        message = f"half a surrogate pair ({half}), which is no character: repair the text"
        raise DataError(message, file=file, line=line) from error


def whole(digits: str) -> int:
    """Return the number that digits stand for, for `json.loads(..., parse_int=whole)`; none beyond all floats.

    >>> whole("-12")
    -12
    """
    if len(digits) > sys.float_info.max_10_exp:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


STRICT = json.JSONDecoder(parse_int=whole, object_pairs_hook=_object)
"""Reads JSON as above: no key twice, no number beyond all floats."""
