"""Small files of a user, read whole: UTF-8 and JSON, with every complaint on one line that names the file.

What a component reads is known by the files that it names, and what they hold: a file is read again when it changed.

Data sets, which can be large, packed or in other encodings, are read in `whyscore.data`.

JSON that every reader understands: one line an object, no NaN, floats in the shortest form that reads back equal.
"""

import dataclasses
import glob
import hashlib
import json
import math
import os
import pickletools
import re
import secrets
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache, wraps
from pathlib import Path
from typing import Concatenate, Literal, ParamSpec, TextIO, TypeVar, get_args
from zipfile import BadZipFile

import numpy as np

from whyscore.errors import ContractError, DataError

if sys.platform != "win32":
    import fcntl

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


File = TypeVar("File", bound=str | Path)
Options = ParamSpec("Options")
Content = TypeVar("Content")


def read_once(
    most: int,
) -> Callable[[Callable[Concatenate[File, Options], Content]], Callable[Concatenate[File, Options], Content]]:
    """Return a decorator that keeps what a function made of `most` files, its first argument, until they change.

    What cannot be read is left to the function to refuse, and tried again.
    """

    def decorate(read: Callable[Concatenate[File, Options], Content]) -> Callable[Concatenate[File, Options], Content]:
        @lru_cache(maxsize=most)
        def keep(path: File, _: object, /, *args: Options.args, **options: Options.kwargs) -> Content:
            return read(path, *args, **options)

        @wraps(read)
        def look_up(path: File, /, *args: Options.args, **options: Options.kwargs) -> Content:
            return keep(path, state_of(path), *args, **options)  # type: ignore[arg-type] # hashable ones

        look_up.cache_clear = keep.cache_clear  # type: ignore[attr-defined] # as `lru_cache` has it
        return look_up

    return decorate


State = tuple[object, ...]


def state_of(path: str | Path) -> State | None:
    """Return what changes when a file does, or a file of a folder; None where there is none of that name.

    The time of the last change of the inode cannot be set back, as that of the content can.
    """
    try:
        place = Path(path).expanduser()
        if place.is_dir():
            return tuple((str(file), state_of(file)) for file in sorted(place.rglob("*")) if file.is_file())
        state = place.stat()
    except (OSError, ValueError, RuntimeError):  # no such file, a zero in the name, nobody's home
        return None
    return state.st_mtime_ns, state.st_ctime_ns, state.st_size, state.st_ino


@read_once(1024)
def digest_file(path: Path) -> bytes:
    """Return a digest of what a file holds; it is read again when it has changed."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").digest()


def files_of(thing: object) -> dict[str, str]:
    """Return the files that a component names, anywhere inside it, with a digest of what each holds now.

    A text names a file where there is one of that name: as it is, behind a prefix (`list:words.txt`) or before a
    function (`metric.py:score`). A folder counts as the files in it, that of a model with the folders in it.
    """
    if isinstance(thing, str):
        parts = {thing, thing.rpartition(":")[0], thing.rpartition(":")[2], thing.rpartition("=")[2]}
        return {part: digest for part in sorted(parts - {""}) if (digest := _digest_named(part))}
    files: dict[str, str] = {}
    if isinstance(thing, tuple | list):
        for item in thing:
            files |= files_of(item)
    elif dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        for field in dataclasses.fields(thing):
            if field.init:  # an option: what a component remembers may name folders that it does not read
                files |= files_of(getattr(thing, field.name))
    return files


_MODEL = ("config.json", "modules.json", "hparams.yaml", "config.cfg")
"""The folder of a model has one of these."""


def _digest_named(name: str) -> str | None:
    """Return a digest of a file, or of all files in a folder; None where there is none of that name."""
    try:
        path = Path(name).expanduser()
        members = path.rglob("*") if any((path / name).is_file() for name in _MODEL) else path.glob("*")
        files = sorted(member for member in members if member.is_file()) if path.is_dir() else [path]
        if not files or not all(member.is_file() for member in files):
            return None
        whole = hashlib.blake2b(b"".join(map(digest_file, files)), digest_size=8)
    except (OSError, ValueError, RuntimeError):  # no name of a file, or one that may not be read
        return None
    return whole.hexdigest()


ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def json_of(text: str, path: str | Path, line: int | None = None) -> object:
    """Return the value that JSON stands for; what is nested too deep or no float could hold is refused."""
    try:
        value: object = STRICT.decode(text)
    except json.JSONDecodeError as error:
        place = line or error.lineno
        raise DataError(f"not JSON: {error.msg}", file=str(path), line=place, column=error.colno) from error
    except (RecursionError, ValueError) as error:
        raise DataError(f"JSON that cannot be read: {error}", file=str(path), line=line) from error
    return value


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object from its pairs; a repeated key is refused, as either value could be the intended one."""
    result = dict(pairs)
    if len(result) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(
            f"the key {next(name for name in names if names.count(name) > 1)!r} stands in one object twice"
        )
    return result


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


__all__ = ["REASONS", "Reason", "check_reason", "finite", "line", "number", "whole"]

Reason = Literal[
    "constant", "empty", "truncated", "flat", "not submitted", "no_error", "all_error", "undefined",
    "unparsed", "refused", "wrong language", "failed",
]  # fmt: skip
"""Why a number is null; the last four are those of answers that a judge gave."""

REASONS: tuple[Reason, ...] = get_args(Reason)

_UNSHOWN = re.compile("[\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""What JSON need not escape, but a terminal obeys or no file can hold."""


def number(value: float | None) -> float | None:
    """Return a number for JSON: None where it is not finite."""
    return None if value is None or not math.isfinite(value) else float(value)


def line(record: Mapping[str, object]) -> str:
    r"""Return a record as one line of JSON with its newline; keys keep their order, control characters are escaped.

    >>> line({"id": "é", "score": 0.1})
    '{"id": "é", "score": 0.1}\n'
    """
    try:
        text = json.dumps(record, ensure_ascii=False, allow_nan=False, default=_plain)
    except (TypeError, ValueError) as error:
        raise ContractError(f"a record cannot be written as JSON: {error}; it is {record!r}") from error
    return f"{escape_controls(text)}\n"


def escape_controls(text: str) -> str:
    r"""Return JSON that reads back equal, without characters that a terminal obeys or that have no UTF-8 form.

    >>> escape_controls('"é\x9b31m"')
    '"é\\u009b31m"'
    """
    if text.isascii() and "\x7f" not in text:
        return text
    return _UNSHOWN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def check_reason(reason: str) -> str:
    """Return a reason if it is on the closed list."""
    if reason not in REASONS:
        raise ContractError(f"no reason named {reason!r} for a null; known: {', '.join(REASONS)}")
    return reason


def finite(value: object) -> object:
    """Return a value with None for every number that is not finite, inside lists and objects too."""
    if isinstance(value, float | np.floating):
        return number(float(value))
    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return finite(value.tolist()) if isinstance(value, np.ndarray | np.generic) else value


def with_nulls(record: Mapping[str, object]) -> dict[str, object]:
    """Return a record with null for every number that is not finite, and with the reason for it."""
    result = {key: finite(value) for key, value in record.items()}
    if any(result[key] is None and value is not None for key, value in record.items()):
        result["reason"] = check_reason(str(record.get("reason") or "undefined"))
    return result


def _plain(value: object) -> object:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} {value!r} has no JSON form")


def remove_leftovers(folder: Path, pattern: str) -> None:
    """Remove what killed processes left in a folder of files whose names match a pattern; who lives holds its own."""
    for left in folder.glob(f".{pattern}.????????.tmp"):
        if not left.is_file():
            continue
        with suppress(OSError), left.open("a", encoding="utf-8") as file:
            if hold(file):
                left.unlink()


def open_sibling(target: Path) -> TextIO:
    """Return a new file beside another one, held; those that killed processes left there are removed."""
    remove_leftovers(target.parent, glob.escape(target.name))
    while True:
        name = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
        stream = name.open("x", encoding="utf-8", newline="\n")
        if hold(stream) and has_name(stream):
            return stream
        stream.close()  # somebody took it for a leftover before it was held


def write_whole(path: str | Path, content: bytes) -> None:
    """Write a file that is there whole or not at all; what a killed process left beside it is removed."""
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():  # a pipe, or a folder, which is an error
        target.write_bytes(content)
        return
    file = open_sibling(target)
    try:
        with file:
            file.buffer.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(file.name).replace(target)
    except BaseException:
        with suppress(OSError):
            Path(file.name).unlink()
        raise


def held_folder(prefix: str) -> tuple[Path, TextIO]:
    """Return a new temporary folder and the file that holds it; those that killed processes left are removed."""
    for left in Path(tempfile.gettempdir()).glob(f"{prefix}*/held"):
        if not left.is_file():
            continue
        with suppress(OSError), left.open("a", encoding="utf-8") as file:
            if hold(file):
                shutil.rmtree(left.parent, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    holding = (folder / "held").open("x", encoding="utf-8")
    hold(holding)
    return folder, holding


def hold(file: TextIO) -> bool:
    """Return whether this process now holds an open file alone; True where there are no locks."""
    if sys.platform == "win32":
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass  # a file system without locks
    return True


def has_locks(file: TextIO) -> bool:
    """Return whether the file system of a file that this process holds has locks."""
    if sys.platform == "win32":
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def has_name(file: TextIO) -> bool:
    """Return whether an open file still has its name."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), Path(file.name).stat())
    except FileNotFoundError:
        return False


_PUTS = {"PUT", "BINPUT", "LONG_BINPUT"}
"""Put a value in a numbered place; readers of pickles take memory up to that number."""


def check_places(pickled: bytes) -> None:
    """Refuse a pickle that asks for more places than it has bytes: a few bytes would take all memory."""
    for operation, place, _ in pickletools.genops(pickled):
        if operation.name in _PUTS and isinstance(place, int) and place > len(pickled):
            raise ValueError(f"has place {place} in {len(pickled)} bytes")
