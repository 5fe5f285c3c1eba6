"""Files of safetensors: eight bytes with the length of a header, the header as JSON, the numbers.

The header gives type, shape and place of each array by name, and texts about the file under `__metadata__`.

1. A header is looked at before anything else is read: its length fits the file, no name stands in it twice, types and
   shapes fit the places, and the places follow each other from the first byte of the numbers to the last.
2. Arrays are read with numpy alone where their types are those of numpy.

Networks are read by the package safetensors, after the header was looked at here.
"""

import json
import math
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from whyscore.errors import DataError
from whyscore.text.files import STRICT, write_whole

SUFFIX = ".safetensors"

Arrays = Mapping[str, NDArray[np.generic]]

_FACTS = "__metadata__"
_LENGTH = struct.Struct("<Q")
_LONGEST = 100_000_000  # bytes of a header, the limit of the package
_LARGEST = 2**63  # of a size or a place
_DIMENSIONS = 32  # of an array of numpy
_TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip
_BITS = {
    **{name: 8 * np.dtype(code).itemsize for name, code in _TYPES.items()},
    "BF16": 16, "C64": 64, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "F6_E2M3": 6, "F6_E3M2": 6, "F4": 4,
}  # fmt: skip
_NAMES = {np.dtype(code): name for name, code in _TYPES.items()}


class _Place(NamedTuple):
    """Where an array stands among the numbers, and how it is to be read."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


class _Header(NamedTuple):
    places: dict[str, _Place]
    facts: dict[str, str]


def write_tensors(path: Path, arrays: Arrays, facts: Mapping[str, str] | None = None) -> None:
    """Write arrays as safetensors, whole or not at all."""
    header: dict[str, object] = {_FACTS: dict(facts or {})}
    parts, end = [], 0
    for name in sorted(arrays):
        values = arrays[name]
        data = values.tobytes()
        header[name] = {"dtype": _NAMES[values.dtype], "shape": values.shape, "data_offsets": [end, end + len(data)]}
        parts.append(data)
        end += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    write_whole(path, b"".join([_LENGTH.pack(len(text)), text, *parts]))


def read_tensors(path: Path) -> tuple[dict[str, NDArray[np.generic]], dict[str, str]]:
    """Return the arrays of a safetensors file and its facts; a damaged one is refused."""
    try:
        with path.open("rb") as file:
            header = _header(file, path.stat().st_size)
            numbers = memoryview(file.read())
        return {name: _array(numbers, name, place) for name, place in header.places.items()}, header.facts
    except (OSError, ValueError, OverflowError) as error:
        raise _unreadable(error, path) from error


def _array(numbers: memoryview, name: str, place: _Place) -> NDArray[np.generic]:
    if place.dtype not in _TYPES:
        raise ValueError(f"{name!r} has the type {place.dtype}, expected one of {', '.join(_TYPES)}")
    array: NDArray[np.generic] = np.frombuffer(numbers[place.start : place.end], dtype=_TYPES[place.dtype])
    return array.reshape(place.shape)


def check_tensors(paths: Iterable[Path]) -> None:
    """Refuse safetensors files whose headers are damaged or crafted; files of other formats are passed over."""
    for path in paths:
        if path.suffix != SUFFIX:
            continue
        try:
            with path.open("rb") as file:
                _header(file, path.stat().st_size)
        except (OSError, ValueError) as error:
            raise _unreadable(error, path) from error


def _unreadable(error: Exception, path: Path) -> DataError:
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return DataError(f"is damaged, cannot be read as safetensors: {reason}", file=str(path))


def _header(file: BinaryIO, size: int) -> _Header:
    """Return the header of a file of a size, and leave the file at the first of its numbers."""
    start = file.read(_LENGTH.size)
    if len(start) < _LENGTH.size:
        raise ValueError(f"it has {len(start)} bytes, the length of its header alone takes {_LENGTH.size}")
    (length,) = _LENGTH.unpack(start)
    if length > min(size - _LENGTH.size, _LONGEST):
        raise ValueError(f"its header is said to have {length} bytes, the file has {size}")
    content = _decode(file.read(length))
    facts = content.pop(_FACTS, None)
    if facts is None:
        facts = {}
    if not isinstance(facts, dict) or not all(isinstance(fact, str) for fact in facts.values()):
        raise ValueError(f"expected texts by name under {_FACTS}")
    places = {name: _place(name, entry) for name, entry in content.items()}
    end = 0
    for name, place in sorted(places.items(), key=lambda item: (item[1].start, item[1].end)):
        if place.start != end:
            raise ValueError(f"{name!r} begins at byte {place.start} of the numbers, expected {end}")
        end = place.end
    if end != size - _LENGTH.size - length:
        raise ValueError(f"its arrays take {end} bytes, the file has {size - _LENGTH.size - length} for them")
    return _Header(places, facts)


def _decode(text: bytes) -> dict[str, object]:
    try:
        content = STRICT.decode(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its header is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"expected a JSON object as its header, found {type(content).__name__}")  # noqa: TRY004 - of a file
    return content


def _place(name: str, entry: object) -> _Place:
    if isinstance(entry, dict) and entry.keys() == {"dtype", "shape", "data_offsets"}:
        dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
        if isinstance(dtype, str) and _are_sizes(shape) and _are_sizes(offsets) and len(offsets) == 2:  # noqa: PLR2004
            start, end = offsets
            _check_size(name, dtype, shape, end - start)
            return _Place(dtype, tuple(shape), start, end)
    raise ValueError(f"{name!r} has no type, shape and place that can be read")


def _are_sizes(values: object) -> bool:
    return isinstance(values, list) and all(type(value) is int and 0 <= value < _LARGEST for value in values)


def _check_size(name: str, dtype: str, shape: list[int], size: int) -> None:
    """Refuse an array of no known type, or one that does not fit its place."""
    if dtype not in _BITS:
        raise ValueError(f"{name!r} has the type {dtype!r}, expected one of {', '.join(_BITS)}")
    if len(shape) > _DIMENSIONS:
        raise ValueError(f"{name!r} has {len(shape)} dimensions, expected at most {_DIMENSIONS}")
    if math.prod(shape) * _BITS[dtype] != 8 * size:
        raise ValueError(f"{name!r} has the shape {shape} and the type {dtype}, which do not fit its {size} bytes")
