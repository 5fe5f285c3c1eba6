"""Lines of the files that taggers read: UTF-8, ended by newlines alone."""

from pathlib import Path

from whyscore.errors import DataError


def lines_of(file: str) -> list[str]:
    """Return the lines of a file without their ends."""
    try:
        text = Path(file).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", file=file) from error
    except UnicodeDecodeError as error:
        raise DataError(f"is not UTF-8 at byte {error.start}; convert it", file=file) from error
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return lines[:-1] if lines[-1] == "" else lines
