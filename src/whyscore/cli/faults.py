"""A fault of whyscore itself: one line for the user, and a file with everything for whoever mends it."""

import os
import platform
import sys
import tempfile
import traceback
from collections.abc import Sequence

from whyscore.version import __version__

VARIABLE = "WHYSCORE_DEBUG"
"""Set, it lets a fault through as Python shows it."""


def shown() -> bool:
    """Return whether faults are to be shown as they are."""
    return bool(os.environ.get(VARIABLE))


def told(error: Exception, command: Sequence[str]) -> str:
    """Return the line for the user; the traceback is in a file that the line names."""
    if isinstance(error, MemoryError):
        return "there is not enough memory for this: give fewer texts at a time"
    kind = f"{type(error).__name__}: {error}".splitlines()[0]
    return f"this is a fault of whyscore, not yours ({kind}). {_where(_report(error, command))}"


def _report(error: Exception, command: Sequence[str]) -> str:
    head = f"whyscore {__version__}, Python {sys.version.split()[0]}, {platform.platform()}\n{list(command)}\n"
    return head + "".join(traceback.format_exception(error))


def _where(report: str) -> str:
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="whyscore-fault-", suffix=".txt", delete=False, encoding="utf-8", errors="backslashreplace"
        ) as file:
            file.write(report)
    except OSError:
        return f"Run it again with {VARIABLE}=1 and report what you see"
    return f"Please report it with the file {file.name}, which holds the command line"
