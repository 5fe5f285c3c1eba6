"""Files that are there whole or not at all.

1. The text goes to a temporary sibling, which is flushed to the disk.
2. Then the sibling is renamed into place, which no reader can observe halfway. Until then an old file stays as it was.

A process that is killed leaves its sibling behind. It holds a lock on it as long as it lives, so that the next one who
writes the same file knows it for a leftover and removes it. Temporary folders are held and tidied up likewise.

What is no ordinary file (`/dev/stdout`, a pipe) is written to directly. A file that grows over hours (`growing`) is
written to directly too, so that what it holds is there after an interruption; of its last line there may be a part.

A link that the user names is followed. One that stands in a folder where a file of ours belongs is replaced
(`follow=False`): somebody else may have made the folder, and the link could lead to any file of the user.
"""

import errno
import json
import os
import platform
import re
import shutil
import stat
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TextIO

from whyscore.errors import DataError, ExecutionError, UserError
from whyscore.text.files import has_locks, has_name, held_folder, hold, open_sibling

LOCK = ".lock"
_HOLDER = re.compile(r"process (?P<number>\d+) on (?P<machine>.*), since ")
_PREFIX = "whyscore-store-"
_FULL = (errno.ENOSPC, errno.EDQUOT)
_LEVEL = 3  # of explanations 1/7 of the bytes is left; 6 leaves 1/9 in more than twice the time
_NEAR = 10  # characters shown on each side of one that cannot be written
_GZIP = 31  # the largest window, with the header and trailer of gzip


def write_lines(path: str | Path, lines: Iterable[str], *, follow: bool = True) -> None:
    """Write lines, which carry their own ends, to a file that appears when all are written."""
    with open_whole(path, follow=follow) as file:
        file.writelines(lines)


def make_folder(path: str | Path) -> Path:
    """Return a folder for files, made where it is not there."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder}: cannot be created: {error.strerror}. Choose another folder with -o") from error
    return folder


def write_or_compare(path: Path, facts: Mapping[str, object]) -> list[str]:
    """Write facts as JSON; return the names of those that differ from what an earlier process wrote there."""
    text = json.dumps(facts, ensure_ascii=False, indent=2)
    if not path.exists():
        write_lines(path, [f"{text}\n"])
        return []
    before, now = json.loads(path.read_text("utf-8")), json.loads(text)
    return [name for name in {**now, **before} if before.get(name) != now.get(name)]


@contextmanager
def lock(path: str | Path) -> Iterator[None]:
    """Hold a folder against other processes; where another one holds it, say which.

    The system gives the lock back when its holder ends, however it ends, so that no lock outlives its process. On a
    file system without locks the file says who holds the folder: a process of this machine that has ended does not.
    """
    target = Path(path)
    if target.exists() and not target.is_dir():
        raise UserError(f"{path} is a file: a folder is needed here. Choose another name with -o")
    file = _open_lock(target)
    if file is None:
        yield
        return
    with file:
        file.truncate(0)
        file.write(f"process {os.getpid()} on {platform.node()}, since {now()}")
        file.flush()
        try:
            yield
        finally:
            (target / LOCK).unlink(missing_ok=True)


def _open_lock(folder: Path) -> TextIO | None:
    """Return the lock file, held; None where none can be written, as in a finished run on a read-only disk."""
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file = open(  # noqa: SIM115 - as here
                folder / LOCK, "a+", encoding="utf-8", errors="replace", opener=_open_unlinked
            )
        except OSError as error:
            if os.path.lexists(folder / LOCK) and not _is_plain((folder / LOCK).lstat()):
                raise ExecutionError(f"{folder / LOCK} was not created by whyscore: delete it") from error
            return None
        if not _is_plain(os.fstat(file.fileno())):
            file.close()
            raise ExecutionError(f"{folder / LOCK} was not created by whyscore: delete it")
        held = hold(file)
        file.seek(0)
        holder = file.read().strip()
        if not held or (not has_locks(file) and _is_alive(holder)):
            file.close()
            cure = "" if not held else f". If it has ended, delete {folder / LOCK}"
            raise ExecutionError(
                f"{folder} is in use by {holder or 'another process'}: wait until it ends, or choose another folder "
                f"with -o{cure}"
            )
        if has_name(file):
            return file
        file.close()  # the holder before removed it when it ended


def _open_unlinked(path: str, flags: int) -> int:
    """Open a file that stands where its name does, without waiting for the other end of a pipe."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0), 0o666)


def _is_plain(state: os.stat_result) -> bool:
    """Return whether a file is an ordinary one that has no other name."""
    return stat.S_ISREG(state.st_mode) and state.st_nlink <= 1


def _is_alive(holder: str) -> bool:
    """Return whether the process that a lock names may still be there: one of another machine may."""
    named = _HOLDER.match(holder)
    if named is None:
        return False
    if named["machine"] != platform.node():
        return True
    try:
        os.kill(int(named["number"]), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # somebody else's
        return True
    return int(named["number"]) != os.getpid()


def now() -> str:
    """Return this moment as records write it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@contextmanager
def open_whole(path: str | Path, *, follow: bool = True) -> Iterator[IO[str]]:
    """Yield a text file that takes the path's place when the block ends well, and leaves no trace when it does not."""
    target = Path(os.path.realpath(path)) if follow else Path(path)
    special = follow and target.exists() and not target.is_file() and not target.is_dir()
    with _raise_with_path(path):
        file = target.open("w", encoding="utf-8", newline="\n") if special else open_sibling(target)
    written = Path(file.name)
    try:
        with _raise_with_path(path):
            with file:
                yield file
                file.flush()
                if not special:
                    os.fsync(file.fileno())
            if not special:
                written.replace(target)
    except BaseException:
        if not special:
            with suppress(OSError):
                written.unlink()
        raise


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield a folder that is removed at the end; those that killed processes left are removed now."""
    folder, file = held_folder(_PREFIX)
    try:
        with file:
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Growing:
    """A file at whose end lines are added; once flushed, they outlive this process.

    What is packed is added as a gzip member of its own, so that the file can be cut off between any two of them.
    """

    path: Path
    file: IO[bytes]
    packed: bool = False

    def writelines(self, lines: Sequence[str]) -> None:
        """Add lines, which carry their own ends."""
        data = "".join(lines).encode()
        with _raise_with_path(self.path):
            self.file.write(_pack(data) if self.packed else data)

    def flush(self) -> None:
        """Hand everything over to the system."""
        with _raise_with_path(self.path):
            self.file.flush()


def _pack(data: bytes) -> bytes:
    """Return a gzip member; it holds no date, so that the same lines are always the same bytes."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    return packer.compress(data) + packer.flush()


@contextmanager
def growing(path: str | Path, *, packed: bool = False) -> Iterator[Growing]:
    """Yield a file that lines can be added to; what cannot be written is told with the path and a cure."""
    with _raise_with_path(path):
        file = Path(path).open("ab")  # noqa: SIM115 - closed below, twice told apart
    try:
        yield Growing(Path(path), file, packed)
    except BaseException:
        with suppress(OSError):  # closing tries once more to write what could not be written
            file.close()
        raise
    with _raise_with_path(path):
        file.close()


def cut_torn_line(path: str | Path) -> int:
    """Return how many bytes after the last newline were cut off a file, so that more lines can be appended."""
    with _raise_with_path(path), Path(path).open("r+b") as file:
        end = file.seek(0, os.SEEK_END)
        position = end
        while position:
            start = max(0, position - (1 << 16))
            file.seek(start)
            newline = file.read(position - start).rfind(b"\n")
            if newline >= 0:
                position = start + newline + 1
                break
            position = start
        file.truncate(position)
    return end - position


@contextmanager
def _raise_with_path(path: str | Path) -> Iterator[None]:
    """Turn what the system says into an error with the path and a cure."""
    try:
        yield
    except BrokenPipeError:  # a reader that has seen enough is no mistake
        raise
    except OSError as error:
        if error.errno in _FULL:
            raise ExecutionError(f"{path}: the disk is full; free some space and run again, nothing is lost") from error
        raise UserError(f"{path}: cannot be written: {error.strerror}. Choose another location") from error
    except UnicodeEncodeError as error:  # texts were read as UTF-8: only the name of a file can hold other bytes
        near = error.object[max(0, error.start - _NEAR) : error.end + _NEAR]
        raise DataError(f"{path}: cannot be written: {near!r} is not UTF-8. Rename the file of that name") from error


def tab_separated(cells: Sequence[str]) -> str:
    """Return a row of a format that knows no quotes; a cell that would begin another cell or row is refused."""
    row = "\t".join(cells)
    if row.count("\t") != len(cells) - 1 or "\n" in row or "\r" in row:
        cell = next(cell for cell in cells if set(cell) & set("\t\n\r"))
        raise DataError(
            f"{cell!r} has a tab or a line end, which rows separated by tabs cannot hold: remove it, or take a format "
            "of JSON lines"
        )
    return f"{row}\n"
