"""The score store: what was scored once is never scored again, by whichever process.

One sqlite file in WAL mode; one table per signature; the key is a 128-bit digest of the texts a metric reads, the
value its row as raw little-endian float64 and a checksum: CRC-32 of the row, begun with the digest and with the CRC-32
of the signature and the width, so that a row stands for nothing but what it was written for. Several processes may
read and write at once. Each batch is one transaction, so a process killed at any moment loses the batch in flight and
nothing else. A row whose checksum does not fit, or with a number that is not finite, is as if it were not there, and is
told of. Rows of schema 1, which had no checksums, and of schema 2, whose checksums knew four bytes of the digest alone,
get theirs when the store is opened. A store of a newer schema is refused, and so is one with views or triggers, which
nothing here makes.

A damaged store:

1. `check` asks sqlite to look at every page and index, then looks at every row: a digest of 16 bytes, its checksum, and
   as many finite numbers as its signature says.
2. `repair` copies everything readable into a new file and puts it in the place of the old one, which stays beside it
   unchanged.
   Where a page is damaged, or the end of the file is missing, the range of digests is halved until the rows that cannot
   be read stand alone: digests are evenly spread, so that a page costs only the rows that are reached through it.
3. `take` copies the rows of another store, for work that was done in several places.

Tags of texts stand in tables like those of scores, one per signature of a tagger, so that the store's size, list and
pruning hold for them too. Such a table has rows of no numbers (width 0); each is the compressed JSON of a text's tags.
"""

import contextlib
import json
import os
import shlex
import sqlite3
import struct
import threading
import warnings
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard, cast
from urllib.parse import quote

import numpy as np

from whyscore.errors import StoreError
from whyscore.protocols import Tagged
from whyscore.types import FloatMatrix, Segment

SCHEMA = 3
_APPLICATION = 0x57485953  # "WHYS"
_CHUNK = 900  # below the oldest limit of sqlite on variables per statement
_PATIENCE = 60.0  # seconds to wait for another process's transaction
# Digests hit pages at random. Few, large checkpoints write a page once for many batches, and the inner pages of ten
# million rows stay in memory.
_CHECKPOINT = 16_000  # pages of 4 KiB
_CACHE = 32 * 1024  # KiB
_INFLATED = 64 * 1024**2  # bytes of a row of tags or answers, unpacked
_CHECKSUM = 4  # bytes
_RESIDUE = 0x2144DF1C
_EXPONENT = np.uint32(0x7FF00000)
"""The bits of the upper half of a float64 that are all set where it is infinite or no number."""

_TABLES = """
CREATE TABLE IF NOT EXISTS signatures (
    number INTEGER PRIMARY KEY, signature TEXT NOT NULL UNIQUE, width INTEGER NOT NULL, used TEXT NOT NULL)
"""


class StoreWarning(UserWarning):
    """The store cannot keep what is scored; the scores themselves are not affected."""


class Held(NamedTuple):
    """What the store holds for one signature."""

    signature: str
    segments: int
    used: str


def _mark(segment: Segment) -> str:
    texts = (segment.hypothesis, *(() if segment.source is None else ("s", segment.source)), "r", *segment.references)
    return "".join([f"{len(text)}:{text}" for text in texts])


def digest(segment: Segment) -> bytes:
    """Return 128 bits that name a segment's texts."""
    marked = _mark(segment) + "".join([f"c{_mark(previous)}" for previous in segment.context])
    return blake2b(marked.encode("utf-8", "surrogatepass"), digest_size=16).digest()


@dataclass(frozen=True)
class Store:
    """The scores kept at `path`; the file is made at the first write."""

    path: Path
    _local: threading.local = field(default_factory=threading.local, repr=False, compare=False)
    _warned: set[str] = field(default_factory=set, repr=False, compare=False)

    def get(self, signature: str, digests: Sequence[bytes], width: int) -> dict[bytes, FloatMatrix]:
        """Return the rows that are known, by digest."""
        rows = self._whole(signature, digests, width)
        return {key: np.frombuffer(row, "<f8", width) for key, row in rows.items()}

    def put(self, signature: str, digests: Sequence[bytes], rows: FloatMatrix) -> None:
        """Keep rows; where that is impossible (full disk, read-only), warn once and go on."""
        values = [row.tobytes() for row in np.ascontiguousarray(rows, dtype="<f8")]
        self.put_bytes(signature, digests, values, rows.shape[1])

    def get_bytes(self, signature: str, digests: Sequence[bytes], width: int) -> dict[bytes, bytes]:
        """Return what is kept under a signature, by digest; rows that are no numbers have width 0."""
        return {key: row[:-_CHECKSUM] for key, row in self._whole(signature, digests, width).items()}

    def _whole(self, signature: str, digests: Sequence[bytes], width: int) -> dict[bytes, bytes]:
        """Return the rows that are as they were written, with their checksums; say how many are not."""
        with self._translate_errors():
            table = self._table(signature, width)
            if table is None:
                return {}
            rows: dict[bytes, bytes] = {}
            for start in range(0, len(digests), _CHUNK):
                some = digests[start : start + _CHUNK]
                marks = ",".join("?" * len(some))
                query = f"SELECT digest, row FROM {table} WHERE digest IN ({marks})"  # noqa: S608 - our own table name
                rows |= self._connection().execute(query, some)
            good = _whole_rows(rows, width, _mark_of(signature, width))
        if len(good) < len(rows):
            self._warn(f"{self.path}: {len(rows) - len(good)} rows of {signature} are damaged and not used")
        return good

    def put_bytes(self, signature: str, digests: Sequence[bytes], rows: Sequence[bytes], width: int) -> None:
        """Keep bytes by digest; where that is impossible, warn once and go on."""
        try:
            with self._translate_errors(), self._transaction() as connection:
                table, mark = self._ensure_table(connection, signature, width), _mark_of(signature, width)
                statement = f"INSERT OR REPLACE INTO {table} VALUES (?, ?)"  # noqa: S608 - our own table name
                checked = ((key, row + _checksum(key, row, mark)) for key, row in zip(digests, rows, strict=True))
                connection.executemany(statement, sorted(checked))
        except StoreError as error:
            self._warn(str(error))

    def _warn(self, message: str) -> None:
        """Say once that something cannot be kept or read."""
        if message not in self._warned:
            self._warned.add(message)
            warnings.warn(f"{message}; the results come out all the same", StoreWarning, stacklevel=3)

    def held(self) -> list[Held]:
        """Return what is held, most recently used first."""
        if not self.path.exists():
            return []
        with self._translate_errors():
            connection = self._connection()
            tables = connection.execute("SELECT number, signature, used FROM signatures ORDER BY used DESC").fetchall()
            count = "SELECT count(*) FROM scores_{}"
            return [
                Held(text, connection.execute(count.format(int(n))).fetchone()[0], used) for n, text, used in tables
            ]

    def size(self) -> int:
        """Return the size on disk in bytes, journal included."""
        files = (self.path, self.path.with_name(f"{self.path.name}-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def prune(self, *, days: float = 0.0, containing: str = "") -> int:
        """Drop what was not used for `days` and whose signature contains a text; return how many segments went."""
        limit = (datetime.now(UTC) - timedelta(days=days)).isoformat()
        with self._translate_errors(), self._transaction() as connection:
            query = "SELECT number FROM signatures WHERE used <= ? AND instr(signature, ?)"
            numbers = [int(row[0]) for row in connection.execute(query, (limit, containing))]
            gone = 0
            for number in numbers:
                gone += connection.execute(f"SELECT count(*) FROM scores_{number}").fetchone()[0]  # noqa: S608 - a number
                connection.execute(f"DROP TABLE scores_{number}")
                connection.execute("DELETE FROM signatures WHERE number = ?", (number,))
        with self._translate_errors():
            self._connection().execute("VACUUM")
            self._connection().execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return gone

    def close(self) -> None:
        """Close this thread's connection; the store can be used again afterwards."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            del self._local.connection

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._open()
            self._local.connection = connection
        return connection

    def _open(self) -> sqlite3.Connection:
        # Private: the store may hold scores of unpublished texts (as digests), and names of local models.
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        connection = _connect(self.path, "rwc", timeout=_PATIENCE, isolation_level=None)
        try:
            self._initialise(connection)
            # NORMAL: a killed process loses nothing; a power cut may lose the last transactions, never the file.
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute(f"PRAGMA wal_autocheckpoint={_CHECKPOINT}")
            connection.execute(f"PRAGMA cache_size=-{_CACHE}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _initialise(self, connection: sqlite3.Connection) -> None:
        """Set up an empty file, or make sure that the file is a store this version can read."""
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if application == 0 and not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(_TABLES)
            connection.execute(f"PRAGMA application_id={_APPLICATION}")
            connection.execute(f"PRAGMA user_version={SCHEMA}")
            connection.execute("COMMIT")
            return
        _check_known(connection, self.path)
        if version < SCHEMA:
            _renew_checksums(connection)

    def _table(self, signature: str, width: int) -> str | None:
        """Return the table of a signature; None where there is none, it is gone, or its rows have another width."""
        query = "SELECT number, width FROM signatures WHERE signature = ?"
        row = self._connection().execute(query, (signature,)).fetchone()
        if row is None:
            return None
        if row[1] != width:
            self._warn(f"{self.path}: rows of {signature} have {row[1]} numbers, not {width}, and are not used")
            return None
        table = f"scores_{int(row[0])}"
        if self._connection().execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone() is None:
            self._warn(f"{self.path} is damaged: the rows of {signature} are missing")
            return None
        return table

    def _ensure_table(self, connection: sqlite3.Connection, signature: str, width: int) -> str:
        """Return the table of a signature, made where there is none; rows of another width go."""
        insert = (
            "INSERT INTO signatures (signature, width, used) VALUES (?1, ?2, ?3) "
            "ON CONFLICT (signature) DO UPDATE SET width = ?2, used = ?3"
        )
        before = connection.execute("SELECT width FROM signatures WHERE signature = ?", (signature,)).fetchone()
        connection.execute(insert, (signature, width, datetime.now(UTC).isoformat()))
        query = "SELECT number FROM signatures WHERE signature = ?"
        (number,) = connection.execute(query, (signature,)).fetchone()
        if before is not None and before[0] != width:
            connection.execute(f"DROP TABLE IF EXISTS scores_{int(number)}")
        columns = "(digest BLOB PRIMARY KEY, row BLOB NOT NULL) WITHOUT ROWID"
        connection.execute(f"CREATE TABLE IF NOT EXISTS scores_{int(number)} {columns}")
        return f"scores_{int(number)}"

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        connection = self._connection()
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")

    @contextlib.contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Turn errors of sqlite and the system into one sentence with the path and the cure."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise StoreError(f"{self.path}: {_explain(str(error), self.path)}") from error
        except (UnicodeDecodeError, TypeError, OverflowError) as error:  # texts and numbers that it never wrote
            raise StoreError(f"{self.path}: {_explain('malformed', self.path)}") from error
        except OSError as error:
            raise StoreError(
                f"{self.path}: {error.strerror}. Choose another file with --store, or --store none"
            ) from error


def _check_known(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse what is no store, a store of a newer schema, and one that holds more than tables."""
    if connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:
        raise StoreError(f"{path} is not a whyscore store: choose another file with --store, or --store none")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > SCHEMA:
        raise StoreError(
            f"{path} was made by a newer whyscore (store version {version}, this one reads up to {SCHEMA}): "
            "upgrade whyscore, or choose another file with --store"
        )
    connection.execute("PRAGMA trusted_schema=OFF")
    query = "SELECT type, name FROM sqlite_master WHERE type NOT IN ('table', 'index')"
    for kind, name in connection.execute(query):
        raise StoreError(f"{path} holds a {kind} ({name}), which whyscore never makes: do not use this file")


def _renew_checksums(connection: sqlite3.Connection) -> None:
    """Give every row of a store of an older schema its checksum."""
    connection.execute("BEGIN IMMEDIATE")
    if connection.execute("PRAGMA user_version").fetchone()[0] < SCHEMA:  # no other process did it meanwhile
        for signed in _read_signatures(connection):
            connection.create_function("renewed", 2, signed.renew, deterministic=True)
            connection.execute(f"UPDATE scores_{signed.number} SET row = renewed(digest, row)")  # noqa: S608 - a number
        connection.execute(f"PRAGMA user_version={SCHEMA}")
    connection.execute("COMMIT")


def _mark_of(signature: str, width: int) -> int:
    """Return 32 bits that name a table: checksums of its rows begin with them."""
    return zlib.crc32(f"{width} {signature}".encode("utf-8", "surrogatepass"))


def _begin(key: bytes, mark: int) -> int:
    """Return what the checksum of a row begins with."""
    first, second, third, last = struct.unpack("<4I", key)
    return int(first ^ second ^ third ^ last ^ mark)


def _checksum(key: bytes, row: bytes, mark: int) -> bytes:
    return zlib.crc32(row, _begin(key, mark)).to_bytes(_CHECKSUM, "little")


def _is_whole(key: bytes, row: bytes, mark: int) -> bool:
    """Return whether a row is as it was written: the CRC of bytes with their own CRC behind is always the same."""
    return zlib.crc32(row, _begin(key, mark)) == _RESIDUE


def _whole_rows(rows: dict[bytes, bytes], width: int, mark: int) -> dict[bytes, bytes]:
    """Return the rows that are as they were written; they are checked one by one only if something is wrong."""
    if width and _are_whole(rows, width, mark):
        return rows
    return {key: row for key, row in rows.items() if _sound(key, row, width, mark)}


def _are_whole(rows: Mapping[bytes, bytes], width: int, mark: int) -> bool:
    """Return whether all rows are as they were written, by one CRC over all of them, and hold finite numbers.

    A whole row leaves the residue, whatever its CRC began with; a beginning may as well be mixed into the first four
    bytes. So every row is made to begin with the residue that the row before it leaves. One damaged row is found as
    surely as by its own CRC: the same bytes after two different values give two different values.
    """
    try:
        keys, stored = b"".join(rows), bytearray().join(rows.values())
    except TypeError:  # what is no bytes
        return False
    if len(keys) != _BYTES * len(rows) or set(map(len, rows.values())) != {8 * width + _CHECKSUM}:
        return False
    words = np.frombuffer(stored, "<u4").reshape(len(rows), -1)
    if (words[:, 1:-1:2] & _EXPONENT == _EXPONENT).any():
        return False
    first, second, third, last = np.frombuffer(keys, "<u4").reshape(len(rows), -1).T
    words[:, 0] ^= first ^ second ^ third ^ last ^ np.uint32(mark ^ _RESIDUE)
    return zlib.crc32(words.data, _RESIDUE) == _RESIDUE


_REASONS = {
    "full": "the disk is full. Free some space, or choose another file with --store",
    "disk I/O": "the disk fails, or is full. Free some space, or choose another file with --store",
    "readonly": "the store is read-only. Choose another file with --store, or --store none",
    "unable to open": "the store cannot be opened. Choose another file with --store, or --store none",
    "not a database": "this is not a whyscore store. Choose another file with --store, or --store none",
    "malformed": "the store is damaged. Save what can be read with: {repair}",
    "no such table": "the store is damaged. Save what can be read with: {repair}",
    "locked": f"another process kept the store locked for {_PATIENCE:.0f} seconds. Try again, or use --store none",
}


def _explain(error: str, path: Path) -> str:
    reason = next((reason for key, reason in _REASONS.items() if key in error), None)
    return error if reason is None else reason.replace("{repair}", repair_command(path))


def repair_command(path: Path) -> str:
    """Return the command that saves what can be read of a damaged store."""
    return f"whyscore store repair --store {shlex.quote(str(path))}"


_BYTES = 16
_DEPTH = 14
_PART = 4 * 2**20  # bytes of the file that are in memory at a time
_SHOWN = 20


class Repaired(NamedTuple):
    """What was saved."""

    rows: int
    damaged: Path | None
    """Where the old file is now; None where there was nothing to repair."""


class _Signed(NamedTuple):
    number: int
    signature: str
    width: int
    version: int

    @property
    def mark(self) -> int:
        """What checksums of its rows begin with."""
        return _mark_of(self.signature, self.width)

    def renew(self, key: bytes, row: bytes) -> bytes:
        """Return a row with its checksum, which that of an older schema gets now; one that is damaged stays so."""
        if self.version >= SCHEMA or not (isinstance(key, bytes) and isinstance(row, bytes) and len(key) == _BYTES):
            return row
        if self.version > 1:
            if zlib.crc32(row, int.from_bytes(key[:4], "little")) != _RESIDUE:
                return row
            row = row[:-_CHECKSUM]
        return row + _checksum(key, row, self.mark)

    def sound_rows(self, rows: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes | None]]:
        """Yield digests and rows without their checksums; None for a row that is damaged."""
        for key, stored in rows:
            row = self.renew(key, stored)
            yield key, row[:-_CHECKSUM] if _sound(key, row, self.width, self.mark) else None


def check(store: Store) -> list[str]:
    """Return what is wrong with a store; nothing for a sound one, or one that is not there or empty."""
    if not store.path.exists() or not store.path.stat().st_size:
        return []
    try:
        with contextlib.closing(_reading(store.path)) as connection:
            pages = [str(row[0]) for row in connection.execute(f"PRAGMA integrity_check({_SHOWN})")]
            if pages != ["ok"]:
                return pages
            _check_known(connection, store.path)
            return [fault for signed in _read_signatures(connection) for fault in _faults(connection, signed)]
    except sqlite3.DatabaseError as error:
        return [str(error)]


def repair(store: Store) -> Repaired:
    """Save every row that can be read in a new file, and let it take the place of the old one, which stays beside it.

    A sound store is left as it is, and so is one of which nothing could be saved, or not all of it written.
    """
    if not store.path.exists():
        raise StoreError(f"{store.path}: there is no store to repair")
    store.close()
    _refuse_foreign(store.path)
    if not check(store):
        return Repaired(sum(table.segments for table in store.held()), None)
    fresh = Store(_free(store.path, "repaired"))
    try:
        saved = take(fresh, store, damaged=True)
    except sqlite3.DatabaseError:
        saved = 0  # not even the list of signatures can be read
    written = sum(table.segments for table in fresh.held())
    fresh.close()
    if not saved or written < saved:
        for suffix in ("", "-wal", "-shm"):
            fresh.path.with_name(fresh.path.name + suffix).unlink(missing_ok=True)
        reason = f"only {written} of {saved} rows could be written: free some space" if saved else _NOTHING
        raise StoreError(f"{store.path}: {reason}. The file is as it was")
    damaged = _free(store.path, "damaged")
    store.path.rename(damaged)
    for suffix in ("-wal", "-shm"):
        journal = store.path.with_name(store.path.name + suffix)
        if journal.exists():
            journal.rename(damaged.with_name(damaged.name + suffix))
    fresh.path.rename(store.path)
    return Repaired(saved, damaged)


_NOTHING = "no row can be read. Move it away, or choose another file with --store"


def _refuse_foreign(path: Path) -> None:
    """Refuse a readable file that is not for this version to repair; what cannot be read at all may be anything."""
    if not path.stat().st_size:
        return
    with contextlib.closing(_reading(path)) as connection, contextlib.suppress(sqlite3.DatabaseError):
        _check_known(connection, path)


def take(store: Store, other: Store, *, damaged: bool = False) -> int:
    """Copy the rows of another store into this one and return how many there were.

    A damaged one may have lost its end: it is read as far as it goes, where sqlite would refuse the whole file.
    """
    saved = 0
    with contextlib.closing(_reading(other.path)) as connection:
        if damaged:
            connection.execute("PRAGMA writable_schema=ON")
        _check_known(connection, other.path)
        for signed in _read_signatures(connection):
            for some in _read(connection, signed.number, other.path.stat().st_size // _PART + 1):
                good = [(key, row) for key, row in signed.sound_rows(some) if row is not None]
                store.put_bytes(signed.signature, [key for key, _ in good], [row for _, row in good], signed.width)
                saved += len(good)
    return saved


def _reading(path: Path) -> sqlite3.Connection:
    """Open a store to read it alone, also where nothing may be written beside it, as on a read-only disk."""
    if path.is_dir():
        raise StoreError(f"{path} is a folder: choose a file with --store, or --store none")
    alone = not path.with_name(f"{path.name}-wal").exists() and not os.access(path.parent, os.W_OK)
    return _connect(path, "ro&immutable=1" if alone else "ro")


def _connect(path: Path, mode: str, **options: Any) -> sqlite3.Connection:  # noqa: ANN401 - those of sqlite3.connect
    """Open a file by a path that nothing in it can make a memory, a query or another file."""
    name = quote(os.fsencode(path.absolute().as_posix().lstrip("/")))
    connection: sqlite3.Connection = sqlite3.connect(f"file:///{name}?mode={mode}", uri=True, **options)
    return connection


def _read_signatures(connection: sqlite3.Connection) -> list[_Signed]:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    rows = connection.execute("SELECT number, signature, width FROM signatures").fetchall()
    return [_Signed(int(number), str(signature), int(width), version) for number, signature, width in rows]


def _faults(connection: sqlite3.Connection, signed: _Signed) -> Iterator[str]:
    rows = connection.execute(f"SELECT digest, row FROM scores_{signed.number}")  # noqa: S608 - a number
    bad = sum(row is None for _, row in signed.sound_rows(rows))
    if bad:
        yield f"{bad} rows of {signed.signature} are damaged"


def _sound(key: object, row: object, width: int, mark: int) -> TypeGuard[bytes]:
    """Return whether a row with its checksum is what the store writes: finite numbers, or any bytes (width 0)."""
    if not (isinstance(key, bytes) and isinstance(row, bytes) and len(key) == _BYTES and _is_whole(key, row, mark)):
        return False
    if width == 0:
        return True
    return len(row) == 8 * width + _CHECKSUM and bool(np.isfinite(np.frombuffer(row, "<f8", width)).all())


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


def _free(path: Path, state: str) -> Path:
    number = 1
    while (name := path.with_name(f"{path.name}.{state}-{number}")).exists():
        number += 1
    return name


Tags = tuple[Tagged, ...]

_WIDTH = 0


@dataclass(frozen=True)
class TagStore:
    """The tags kept in a score store."""

    store: Store

    def get(self, signature: str, texts: Sequence[str]) -> dict[str, Tags]:
        """Return the tags that are known, by text."""
        if not self.store.path.exists():
            return {}
        keys = {_digest(text): text for text in texts}
        rows = self.store.get_bytes(signature, list(keys), _WIDTH)
        return {keys[key]: _unpack(row) for key, row in rows.items() if _is_tag_row(row)}

    def put(self, signature: str, tags: Mapping[str, Tags]) -> None:
        """Keep tags by text; where that is impossible (full disk, read-only), warn and go on."""
        rows = [_pack(text_tags) for text_tags in tags.values()]
        self.store.put_bytes(signature, [_digest(text) for text in tags], rows, _WIDTH)


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def inflate(row: bytes) -> bytes:
    """Return what was compressed into a row; one that stands for more than any row of the store is as if damaged."""
    stream = zlib.decompressobj()
    content = stream.decompress(row, _INFLATED)
    if not stream.eof:
        raise zlib.error(f"cut off, or more than {_INFLATED:,} bytes")
    return content


def _pack(tags: Tags) -> bytes:
    return zlib.compress(json.dumps(tags, separators=(",", ":")).encode(), 1)


def _unpack(row: bytes) -> Tags:
    return tuple(Tagged(start, end, tuple(labels)) for start, end, labels in json.loads(inflate(row)))


def _is_tag_row(row: object) -> bool:
    """Return whether a row is what the store writes; a damaged one is as if it were not there."""
    try:
        return all(isinstance(tag.start, int) and isinstance(tag.end, int) for tag in _unpack(cast("bytes", row)))
    except (zlib.error, ValueError, TypeError, RecursionError):
        return False
