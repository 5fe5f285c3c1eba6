"""Bytes out of plain and packed files, guarded against bombs.

1. The first bytes say whether the data are gzip or Zstandard, whatever the name is: no UTF-8 text starts like these.
2. Unpacked bytes are handed on in chunks, and counted.
3. More than `Limits.file` bytes, or more than `Limits.ratio` times what was read of the packed data, is an error that
   names the limit and what raises it. The first megabyte is free: it can hurt nobody, and short repetitive
   texts pack very well.
"""

import gzip
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Protocol, cast

from whyscore.errors import DataError, MissingExtra, SpecError
from whyscore.options import check_fields

CHUNK = 1 << 20
_FREE = 1_000_000
_GZIP, _ZSTD, _ZIP = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04"


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a file may hold: characters a line, unpacked bytes, unpacked bytes per packed byte."""

    line: int = 1_000_000
    file: int = 2_000_000_000
    ratio: int = 200

    def __post_init__(self) -> None:
        """Refuse limits that would refuse everything."""
        check_fields(self)
        for name in ("line", "file", "ratio"):
            if getattr(self, name) < 1:
                raise SpecError(f"Limits: {name} is {getattr(self, name)}, expected 1 or more")


class Bytes(Protocol):
    """Anything that bytes can be read from."""

    def read(self, size: int = -1, /) -> bytes:
        """Return at most `size` bytes, none at the end."""


class _Counted(io.RawIOBase):
    """A stream whose first bytes can be looked at, and that knows how much was read of it."""

    def __init__(self, stream: Bytes) -> None:
        super().__init__()
        self._stream = stream
        self.head = stream.read(len(_ZSTD))
        self._pending = self.head
        self.count = 0

    def read(self, size: int = -1, /) -> bytes:
        """Return the bytes that were looked at first, then those of the stream."""
        if self._pending:
            cut = len(self._pending) if size < 0 else size
            data, self._pending = self._pending[:cut], self._pending[cut:]
            if size < 0:
                data += self._stream.read()
        else:
            data = self._stream.read(size)
        self.count += len(data)
        return data


def unpacked(stream: Bytes, name: str, limits: Limits) -> Iterator[bytes]:
    """Yield the bytes of a stream in chunks, unpacked where they are gzip or Zstandard."""
    packed = _Counted(stream)
    plain = _opened(packed, name)
    total = 0
    while data := _chunk(plain, name):
        total += len(data)
        if total > limits.file:
            raise DataError(
                f"holds more than {limits.file:,} bytes, the limit for a file; raise it with --max-file "
                "or Limits(file=...)",
                file=name,
            )
        if plain is not packed and total > max(_FREE, limits.ratio * packed.count):
            raise DataError(
                f"unpacks to more than {limits.ratio} times its packed size, the guard against bombs; raise it with "
                "--max-ratio or Limits(ratio=...)",
                file=name,
            )
        yield data


def _opened(packed: _Counted, name: str) -> Bytes:
    if packed.head.startswith(_GZIP):
        return gzip.GzipFile(fileobj=packed, mode="rb")
    if packed.head == _ZSTD:
        return _zstandard(packed)
    if packed.head == _ZIP:
        raise DataError("is a zip archive: unpack it first, or pack the file with gzip", file=name)
    return packed


def _zstandard(packed: _Counted) -> Bytes:
    try:
        import zstandard  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtra.of("reading .zst files", "zstd") from error
    reader = zstandard.ZstdDecompressor().stream_reader(cast("IO[bytes]", packed), read_across_frames=True)
    return cast("Bytes", reader)


def _chunk(plain: Bytes, name: str) -> bytes:
    try:
        return plain.read(CHUNK)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"the gzip data are damaged or cut off: {error}", file=name) from error
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=name) from error
    except Exception as error:
        if type(error).__name__ != "ZstdError":
            raise
        raise DataError(f"the Zstandard data are damaged or cut off: {error}", file=name) from error
