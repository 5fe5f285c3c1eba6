"""Small files of a user, read whole: UTF-8 and JSON, with every complaint on one line that names the file.

Data sets, which can be large, packed or in other encodings, are read in `whyscore.data`.
"""

import json
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


def json_of(text: str, path: str | Path, line: int | None = None) -> object:
    """Return the value that JSON stands for; what is nested too deep or no float could hold is refused."""
    try:
        found: object = json.loads(text, parse_int=whole)
    except json.JSONDecodeError as error:
        place = line or error.lineno
        raise DataError(f"not JSON: {error.msg}", file=str(path), line=place, column=error.colno) from error
    except (RecursionError, ValueError) as error:
        raise DataError(f"JSON that cannot be read: {error}", file=str(path), line=line) from error
    return found


def whole(digits: str) -> int:
    """Return the number that digits stand for, for `json.loads(..., parse_int=whole)`; none beyond all floats.

    >>> whole("-12")
    -12
    """
    if len(digits) > sys.float_info.max_10_exp:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)
