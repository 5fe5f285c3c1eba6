"""The score store: what was scored once is never scored again, by whichever process.

One sqlite file in WAL mode; one table per signature; the key is a 128-bit digest of the texts a metric reads, the
value its row as raw little-endian float64. Several processes may read and write at once. Each batch is one
transaction, so a process killed at any moment loses the batch in flight and nothing else.
"""

import contextlib
import sqlite3
import threading
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np

from whyscore.errors import StoreError
from whyscore.types import FloatMatrix, Segment

SCHEMA = 1
_APPLICATION = 0x57485953  # "WHYS"
_CHUNK = 900  # below the oldest limit of sqlite on variables per statement
_PATIENCE = 60.0  # seconds to wait for another process's transaction
# Digests hit pages at random. Few, large checkpoints write a page once for many batches, and the inner pages of ten
# million rows stay in memory.
_CHECKPOINT = 16_000  # pages of 4 KiB
_CACHE = 32 * 1024  # KiB

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


def digest(segment: Segment) -> bytes:
    """Return 128 bits that name a segment's texts."""
    texts = (segment.hypothesis, *(() if segment.source is None else ("s", segment.source)), "r", *segment.references)
    marked = "".join([f"{len(text)}:{text}" for text in texts])
    return blake2b(marked.encode("utf-8", "surrogatepass"), digest_size=16).digest()


@dataclass(frozen=True)
class Store:
    """The scores kept at `path`; the file is made at the first write."""

    path: Path
    _local: threading.local = field(default_factory=threading.local, repr=False, compare=False)
    _warned: set[str] = field(default_factory=set, repr=False, compare=False)

    def get(self, signature: str, digests: Sequence[bytes], width: int) -> dict[bytes, FloatMatrix]:
        """Return the rows that are known, by digest."""
        known = self.get_bytes(signature, digests, width)
        # A row of another length is damaged, and as if it were not there.
        size = 8 * width
        return {
            key: np.frombuffer(row, dtype="<f8")
            for key, row in known.items()
            if isinstance(row, bytes) and len(row) == size
        }

    def put(self, signature: str, digests: Sequence[bytes], rows: FloatMatrix) -> None:
        """Keep rows; where that is impossible (full disk, read-only), warn once and go on."""
        values = [row.tobytes() for row in np.ascontiguousarray(rows, dtype="<f8")]
        self.put_bytes(signature, digests, values, rows.shape[1])

    def get_bytes(self, signature: str, digests: Sequence[bytes], width: int) -> dict[bytes, bytes]:
        """Return what is kept under a signature, by digest; rows that are no numbers have width 0."""
        with self._guarded():
            table = self._table(signature, width)
            if table is None:
                return {}
            found: dict[bytes, bytes] = {}
            for start in range(0, len(digests), _CHUNK):
                some = digests[start : start + _CHUNK]
                marks = ",".join("?" * len(some))
                query = f"SELECT digest, row FROM {table} WHERE digest IN ({marks})"  # noqa: S608 - our own table name
                found |= self._connection().execute(query, some)
            return found

    def put_bytes(self, signature: str, digests: Sequence[bytes], rows: Sequence[bytes], width: int) -> None:
        """Keep bytes by digest; where that is impossible, warn once and go on."""
        try:
            with self._guarded(), self._transaction() as connection:
                table = self._made_table(connection, signature, width)
                statement = f"INSERT OR REPLACE INTO {table} VALUES (?, ?)"  # noqa: S608 - our own table name
                connection.executemany(statement, sorted(zip(digests, rows, strict=True)))
        except StoreError as error:
            if str(error) not in self._warned:
                self._warned.add(str(error))
                warnings.warn(f"{error}; the results come out all the same", StoreWarning, stacklevel=2)

    def held(self) -> list[Held]:
        """Return what is held, most recently used first."""
        if not self.path.exists():
            return []
        with self._guarded():
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
        with self._guarded(), self._transaction() as connection:
            query = "SELECT number FROM signatures WHERE used <= ? AND instr(signature, ?)"
            numbers = [int(row[0]) for row in connection.execute(query, (limit, containing))]
            gone = 0
            for number in numbers:
                gone += connection.execute(f"SELECT count(*) FROM scores_{number}").fetchone()[0]  # noqa: S608 - a number
                connection.execute(f"DROP TABLE scores_{number}")
                connection.execute("DELETE FROM signatures WHERE number = ?", (number,))
        with self._guarded():
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
            connection = self._opened()
            self._local.connection = connection
        return connection

    def _opened(self) -> sqlite3.Connection:
        # Private: the store may hold scores of unpublished texts (as digests), and names of local models.
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        connection = sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None)
        try:
            self._recognised(connection)
            # NORMAL: a killed process loses nothing; a power cut may lose the last transactions, never the file.
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute(f"PRAGMA wal_autocheckpoint={_CHECKPOINT}")
            connection.execute(f"PRAGMA cache_size=-{_CACHE}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _recognised(self, connection: sqlite3.Connection) -> None:
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
        elif application != _APPLICATION:
            raise StoreError(f"{self.path} is not a whyscore store: choose another file with --store, or --store none")
        elif version > SCHEMA:
            raise StoreError(
                f"{self.path} was made by a newer whyscore (store version {version}, this one reads up to {SCHEMA}): "
                "upgrade whyscore, or choose another file with --store"
            )

    def _table(self, signature: str, width: int) -> str | None:
        query = "SELECT number, width FROM signatures WHERE signature = ?"
        row = self._connection().execute(query, (signature,)).fetchone()
        if row is None:
            return None
        if row[1] != width:
            raise StoreError(f"{self.path} holds rows of {row[1]} numbers for {signature}, the metric gives {width}")
        return f"scores_{int(row[0])}"

    def _made_table(self, connection: sqlite3.Connection, signature: str, width: int) -> str:
        now = datetime.now(UTC).isoformat()
        insert = "INSERT INTO signatures (signature, width, used) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET used = ?"
        connection.execute(insert, (signature, width, now, now))
        table = self._table(signature, width)
        columns = "(digest BLOB PRIMARY KEY, row BLOB NOT NULL) WITHOUT ROWID"
        connection.execute(f"CREATE TABLE IF NOT EXISTS {table} {columns}")
        return str(table)

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
    def _guarded(self) -> Iterator[None]:
        """Turn sqlite's and the system's complaints into one sentence with the path and the cure."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise StoreError(f"{self.path}: {_explained(str(error))}") from error
        except (UnicodeDecodeError, TypeError, OverflowError) as error:  # texts and numbers that it never wrote
            raise StoreError(f"{self.path}: {_REASONS['malformed']}") from error
        except OSError as error:
            raise StoreError(
                f"{self.path}: {error.strerror}. Choose another file with --store, or --store none"
            ) from error


_REASONS = {
    "full": "the disk is full. Free some space, or choose another file with --store",
    "disk I/O": "the disk fails, or is full. Free some space, or choose another file with --store",
    "readonly": "the store is read-only. Choose another file with --store, or --store none",
    "unable to open": "the store cannot be opened. Choose another file with --store, or --store none",
    "not a database": "this is not a whyscore store. Choose another file with --store, or --store none",
    "malformed": "the store is damaged. Save what can be read with: whyscore store repair",
    "locked": f"another process kept the store locked for {_PATIENCE:.0f} seconds. Try again, or use --store none",
}


def _explained(error: str) -> str:
    return next((reason for key, reason in _REASONS.items() if key in error), error)
