"""A few named text files that lie together: in a folder, or in a zip archive that is read in memory.

1. A folder is listed; an archive's files go by their own names, whatever folder they lie in inside it.
2. Nothing is ever extracted to the disk, and only the files that are asked for are unpacked.
3. What an archive says of a file's size is held against the limits before it is unpacked; the standard library refuses
   files that turn out larger than that.
"""

import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from whyscore.errors import DataError
from whyscore.io.files import Lines, read_lines
from whyscore.io.unpacking import Limits
from whyscore.types import Finding

_FREE = 1_000_000  # as for gzip: the first megabyte can hurt nobody
_BOM = "\ufeff"


@dataclass(frozen=True)
class Bundle:
    """Files by name; `members` says where each lies."""

    path: Path
    members: dict[str, str]
    limits: Limits
    packed: bool = False

    @property
    def name(self) -> str:
        """The name of the folder, or of the archive without its suffix."""
        place = self.path.resolve()
        return place.stem if self.packed else place.name

    def file(self, name: str) -> str:
        """Return what messages call a file."""
        return str(self.path / self.members.get(name, name))

    def lines(self, name: str) -> Lines:
        """Return the lines of a file, and what was noticed while reading them."""
        if not self.packed:
            return read_lines(self.path / name, limits=self.limits)
        return _cut(self._unpacked(name), self.file(name), self.limits)

    def _unpacked(self, name: str) -> bytes:
        file = self.file(name)
        try:
            with zipfile.ZipFile(self.path) as archive:
                about = archive.getinfo(self.members[name])
                _refuse_large(about, file, self.limits)
                return archive.read(about)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
            raise DataError(f"the zip archive is damaged: {error}", file=file) from error
        except (RuntimeError, NotImplementedError) as error:
            raise DataError(f"cannot be unpacked: {error}; pack it again without a password", file=file) from error


def open_bundle(path: str | Path, what: str, limits: Limits | None = None) -> Bundle:
    """Return the files in a folder or a zip archive; `what` says in messages what was expected there."""
    place, limits = Path(path), limits or Limits()
    if place.is_dir():
        files = {one.name: one.name for one in sorted(place.iterdir()) if one.is_file()}
        return Bundle(place, files, limits)
    if not place.exists():
        raise DataError(f"there is no such folder or archive: expected {what}", file=str(path))
    if not zipfile.is_zipfile(place):
        raise DataError(f"is neither a folder nor a zip archive: expected {what}", file=str(path))
    try:
        with zipfile.ZipFile(place) as archive:
            names = [one.filename for one in archive.infolist() if one.filename and not one.is_dir()]
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise DataError(f"the zip archive is damaged: {error}", file=str(path)) from error
    return Bundle(place, _by_name(names, str(path)), limits, packed=True)


def _by_name(names: list[str], file: str) -> dict[str, str]:
    members: dict[str, str] = {}
    for name in names:
        pure = PurePosixPath(name)
        if "__MACOSX" in pure.parts or pure.name.startswith("."):
            continue
        if pure.name in members:
            raise DataError(f"holds {pure.name!r} twice, as {members[pure.name]} and {name}: keep one", file=file)
        members[pure.name] = name
    return members


def _refuse_large(about: zipfile.ZipInfo, file: str, limits: Limits) -> None:
    if about.file_size > limits.file:
        raise DataError(
            f"holds more than {limits.file:,} bytes, the limit for a file; raise it with --max-file or "
            "Limits(file=...)",
            file=file,
        )
    if about.file_size > max(_FREE, limits.ratio * about.compress_size):
        raise DataError(
            f"unpacks to more than {limits.ratio} times its packed size, the guard against bombs; raise it with "
            "--max-ratio or Limits(ratio=...)",
            file=file,
        )


def _cut(data: bytes, file: str, limits: Limits) -> Lines:
    """Return the lines of unpacked bytes by the rules of `files`."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"byte {error.start} (0x{data[error.start]:02x}) is not UTF-8: save the file as UTF-8"
        raise DataError(message, file=file, line=data[: error.start].count(b"\n") + 1) from error
    found = []
    if text.startswith(_BOM):
        text = text.removeprefix(_BOM)
        found.append(Finding("a byte order mark (BOM) was removed", file, 1))
    crlf = text.count("\r\n")
    *lines, tail = text.replace("\r\n", "\n").split("\n")
    if tail:
        lines.append(tail)
    if not lines:
        raise DataError(f"{file} is empty: expected one segment a line")
    if crlf:
        found.append(Finding(f"{crlf} of {len(lines)} lines end in CR LF; the CR was removed", file))
    if tail:
        found.append(Finding("the last line does not end in a newline; it was read", file, len(lines)))
    longest = max(range(len(lines)), key=lambda k: len(lines[k]))
    if len(lines[longest]) > limits.line:
        message = f"the line is longer than {limits.line:,} characters, the limit for a line; raise it with --max-line"
        raise DataError(message, file=file, line=longest + 1)
    return Lines(lines, tuple(found))
