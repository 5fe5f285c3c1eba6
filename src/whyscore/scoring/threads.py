"""How many threads the libraries of a worker start: as many as it has cores, where they would take the whole machine.

They read their limits when they are loaded, so that these must stand in the environment before a worker starts.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")
"""What torch and numpy read (the first three), and the tokenizers."""


def limited_to(cores: int) -> dict[str, str]:
    """Return the variables that keep a process to some cores, to one at least.

    >>> limited_to(0)["OMP_NUM_THREADS"]
    '1'
    """
    return dict.fromkeys(VARIABLES, str(max(1, cores)))


@contextmanager
def starting(cores: int) -> Iterator[None]:
    """Let processes that are started now inherit the limits; lower ones that are set already stay."""
    before = {name: os.environ.get(name) for name in VARIABLES}
    wanted = limited_to(cores)
    for name, value in before.items():
        lower = value is not None and value.isdecimal() and 0 < int(value) < int(wanted[name])
        os.environ[name] = str(value) if lower else wanted[name]
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
