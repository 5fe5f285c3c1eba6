"""When Python's garbage collector runs.

It walks over values that can be garbage after every 700 new ones, and over all values now and then. Most of the work
here makes millions of values that stay and hardly any cycles, so that a sixth of its time went into those walks.
"""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_RARELY = (50_000, 20, 50)
"""New values per walk over the young ones, and how many walks per walk over older ones."""


@contextmanager
def gc_paused() -> Iterator[None]:
    """Keep the garbage collector from running inside the block: for values of ours alone, none of which is dropped."""
    was_running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_running:
            gc.enable()


class _Blocks:
    """The blocks of all threads in which the collector runs rarely: the last one to end restores its thresholds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open = 0
        self._before = gc.get_threshold()

    def begin(self) -> None:
        with self._lock:
            if not self._open:
                self._before = gc.get_threshold()
                gc.set_threshold(*_RARELY)
            self._open += 1

    def end(self) -> None:
        with self._lock:
            self._open -= 1
            if not self._open:
                gc.set_threshold(*self._before)


_blocks = _Blocks()


@contextmanager
def collect_rarely() -> Iterator[None]:
    """Let the garbage collector run a seventieth as often inside the block, where others' code may leave cycles."""
    _blocks.begin()
    try:
        yield
    finally:
        _blocks.end()
