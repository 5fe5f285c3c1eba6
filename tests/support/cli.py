"""The command line in tests: `run(*arguments)` gives the exit code and what was printed.

The fixture `run` (tests/conftest.py) calls it in a folder of its own, with a cache of its own and without the variables
of the user. Tests of signals and pipes start a process instead.
"""

import contextlib
import io
import math
from collections.abc import Callable
from typing import NamedTuple
from unittest import mock

from whyscore.cli import setup
from whyscore.cli.main import main


class Done(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


Run = Callable[..., Done]


def run_command(*arguments: object) -> Done:
    """Run a command in this process; how long it takes changes nothing that it prints."""
    out, err = io.StringIO(), io.StringIO()
    patient = mock.patch.object(setup, "INTERVAL", math.inf)
    with patient, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    return Done(code, out.getvalue(), err.getvalue())
