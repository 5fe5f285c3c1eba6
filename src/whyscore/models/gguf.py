"""GGUF files: what a model says of itself, and its parts as transformers makes them.

The header (format: github.com/ggml-org/ggml, docs/gguf.md):

1. The letters GGUF, the version (2 or 3, little-endian), the number of tensors and the number of entries.
2. Entry by entry a name, a type and a value. Numbers and texts are kept. Lists are passed over: those of a
   vocabulary hold hundreds of thousands of texts, which nobody needs for a signature.
3. A file that ends early, or names a type that does not exist, is damaged.

The vocabulary and the weights are read by transformers with the package gguf; both hold data and no code.
"""

import importlib
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from whyscore.errors import DataError, MissingExtra, SpecError, WhyscoreError, need_package
from whyscore.text.files import read_once

SUFFIX = ".gguf"

Value = int | float | bool | str

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _LIST = 8, 9


@read_once(16)
def header_of(path: Path) -> Mapping[str, Value]:
    """Return the numbers and texts in the header of a file."""
    size = path.stat().st_size
    with path.open("rb") as file, blame_file(path):
        if file.read(len(_MAGIC)) != _MAGIC:
            raise ValueError("it does not begin with GGUF")
        version, _tensors, entries = _read(file, "IQQ")
        if version not in _VERSIONS:
            raise ValueError(f"it has version {version}, expected 2 or 3")
        header = {}
        for _entry in range(int(entries)):
            name, (kind,) = _text(file, size), _read(file, "I")
            value = _value(file, int(kind), size)
            if value is not None:
                header[name] = value
        return header


def _value(file: BinaryIO, kind: int, size: int) -> Value | None:
    """Return a number or a text; lists are passed over."""
    if kind in _NUMBERS:
        return _read(file, _NUMBERS[kind])[0]
    if kind == _TEXT:
        return _text(file, size)
    if kind != _LIST:
        raise ValueError(f"it has a value of the unknown type {kind}")
    inner, length = (int(number) for number in _read(file, "IQ"))
    if length > size:
        raise ValueError(f"it names a list of {length} values, more than its {size} bytes can hold")
    if inner in _NUMBERS:
        file.seek(length * struct.calcsize(f"<{_NUMBERS[inner]}"), 1)
    else:
        for _ in range(length):
            _value(file, inner, size)
    return None


def _read(file: BinaryIO, form: str) -> tuple[Value, ...]:
    return struct.unpack(f"<{form}", file.read(struct.calcsize(f"<{form}")))


def _text(file: BinaryIO, size: int) -> str:
    (length,) = _read(file, "Q")
    if int(length) > size:
        raise ValueError(f"it names a text of {length} bytes, more than its {size}")
    return file.read(int(length)).decode("utf-8", errors="replace")


def limit_of(path: Path, otherwise: int = 512) -> int:
    """Return how many pieces the model reads."""
    header = header_of(path)
    return int(header.get(f"{header.get('general.architecture')}.context_length", otherwise))


def licence_in(path: Path) -> str | None:
    """Return the licence that the file names."""
    named = header_of(path).get("general.license")
    return str(named).lower() if named else None


def need_reader(who: str) -> None:
    """Refuse an installation without the packages that read such files."""
    with need_package(MissingExtra.of(f"{who}: a GGUF file", "gguf,neural")):
        for name in ("gguf", "accelerate"):
            importlib.import_module(name)


@contextmanager
def blame_file(path: Path) -> Iterator[None]:
    """Turn what the readers raise for a damaged file into an error of ours.

    They check little: a wrong length shows as an index out of range, a wrong type as a missing key.
    """
    try:
        yield
    except WhyscoreError:
        raise
    except NotImplementedError as error:
        raise SpecError(f"{path} uses a quantisation that transformers does not read: {error}") from error
    except (ArithmeticError, LookupError, OSError, TypeError, ValueError, struct.error, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise DataError(f"is damaged, or no GGUF file that transformers reads: {reason}", file=str(path)) from error
