"""A damaged store: what is wrong with it, and how to save what can be read.

1. `check` asks sqlite to look at every page and index, then looks at every row: a digest of 16 bytes, and as many
   finite numbers as its signature says.
2. `repair` copies everything readable into a new file and puts it in the place of the old one, which stays beside it.
   Where a page is damaged, the range of digests is halved until the rows that cannot be read stand alone: digests are
   evenly spread, so that a page costs only the rows that are reached through it.
3. `take` copies the rows of another store, for work that was done in several places.
"""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from whyscore.errors import StoreError
from whyscore.scoring.store import Store

_BYTES = 16
_DEPTH = 14
_PART = 4 * 2**20  # bytes of the file that are in memory at a time
_SHOWN = 20


class Repaired(NamedTuple):
    """What was saved."""

    rows: int
    damaged: Path
    """Where the old file is now."""


class _Signed(NamedTuple):
    number: int
    signature: str
    width: int


def check(store: Store) -> list[str]:
    """Return what is wrong with a store; nothing for a sound one, or one that is not there."""
    if not store.path.exists():
        return []
    try:
        with contextlib.closing(_reading(store.path)) as connection:
            pages = [str(row[0]) for row in connection.execute(f"PRAGMA integrity_check({_SHOWN})")]
            if pages != ["ok"]:
                return pages
            return [fault for signed in _signed(connection) for fault in _faults(connection, signed)]
    except sqlite3.DatabaseError as error:
        return [str(error)]


def repair(store: Store) -> Repaired:
    """Save every row that can be read; the old file stays beside the new one."""
    if not store.path.exists():
        raise StoreError(f"{store.path}: there is no store to repair")
    store.close()
    fresh = Store(store.path.with_name(f"{store.path.name}.repaired"))
    fresh.path.unlink(missing_ok=True)
    try:
        saved = take(fresh, store)
    except sqlite3.DatabaseError:
        saved = 0  # not even the list of signatures can be read
    fresh.close()
    damaged = _free(store.path)
    store.path.rename(damaged)
    for suffix in ("-wal", "-shm"):
        store.path.with_name(store.path.name + suffix).unlink(missing_ok=True)
    if fresh.path.exists():
        fresh.path.rename(store.path)
    return Repaired(saved, damaged)


def take(store: Store, other: Store) -> int:
    """Copy the rows of another store into this one and return how many there were."""
    saved = 0
    with contextlib.closing(_reading(other.path)) as connection:
        for signed in _signed(connection):
            for some in _read(connection, signed.number, other.path.stat().st_size // _PART + 1):
                good = [(key, row) for key, row in some if _sound(key, row, signed.width)]
                store.put_bytes(signed.signature, [key for key, _ in good], [row for _, row in good], signed.width)
                saved += len(good)
    return saved


def _reading(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True)


def _signed(connection: sqlite3.Connection) -> list[_Signed]:
    rows = connection.execute("SELECT number, signature, width FROM signatures").fetchall()
    return [_Signed(int(number), str(signature), int(width)) for number, signature, width in rows]


def _faults(connection: sqlite3.Connection, signed: _Signed) -> Iterator[str]:
    bad = sum(
        not _sound(key, row, signed.width)
        for key, row in connection.execute(f"SELECT digest, row FROM scores_{signed.number}")  # noqa: S608 - a number
    )
    if bad:
        yield f"{bad} rows of {signed.signature} are not {signed.width} numbers"


def _sound(key: object, row: object, width: int) -> bool:
    """Return whether a row is what the store writes; bytes that are no numbers (width 0) are taken as they are."""
    if not (isinstance(key, bytes) and isinstance(row, bytes) and len(key) == _BYTES):
        return False
    return width == 0 or (len(row) == 8 * width and bool(np.isfinite(np.frombuffer(row, dtype="<f8")).all()))


def _read(connection: sqlite3.Connection, number: int, parts: int) -> Iterator[list[tuple[bytes, bytes]]]:
    """Yield the rows of a table in parts: digests are evenly spread, so that equal ranges hold equally many."""
    end = 1 << 8 * _BYTES
    for k in range(parts):
        yield from _readable(connection, number, end * k // parts, end * (k + 1) // parts, _DEPTH)


def _readable(
    connection: sqlite3.Connection, number: int, low: int, high: int, depth: int
) -> Iterator[list[tuple[bytes, bytes]]]:
    """Yield the rows between two digests; where reading fails, those of both halves."""
    query = f"SELECT digest, row FROM scores_{number} WHERE digest >= ? AND digest <= ?"  # noqa: S608 - a number
    ends = (low.to_bytes(_BYTES, "big"), (high - 1).to_bytes(_BYTES, "big"))
    try:
        yield connection.execute(query, ends).fetchall()
    except sqlite3.DatabaseError:
        if depth:
            middle = (low + high) // 2
            yield from _readable(connection, number, low, middle, depth - 1)
            yield from _readable(connection, number, middle, high, depth - 1)


def _free(path: Path) -> Path:
    number = 1
    while (name := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    return name
