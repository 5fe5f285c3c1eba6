"""Many frozen values at once, from columns that were checked already.

1. A frozen dataclass sets each field through a Python call. For a million rows of a table that alone takes longer than
   reading the file. Here the fields are set column by column, by the slots themselves; the values are the same.
2. The garbage collector walks over all of them again and again while they are made, though nothing can be garbage yet.
   It rests meanwhile.
"""

import gc
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from itertools import repeat
from typing import TypeVar

from whyscore.types import Entry, Segment

T = TypeVar("T", Segment, Entry)


def made(kind: type[T], columns: Sequence[Sequence[object]]) -> list[T]:
    """Return one value per row; there is one column per field, in order, and nothing is checked.

    >>> made(Segment, [["a cat"], [None], [("a dog",)]])
    [Segment(hypothesis='a cat', source=None, references=('a dog',))]
    """
    values: list[T] = list(map(object.__new__, repeat(kind, len(columns[0]))))
    for field, column in zip(fields(kind), columns, strict=True):
        _run(map(getattr(kind, field.name).__set__, values, column))
    return values


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """Keep the garbage collector from running inside the block."""
    was_running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_running:
            gc.enable()


def _run(calls: Iterable[object]) -> None:
    deque(calls, maxlen=0)
