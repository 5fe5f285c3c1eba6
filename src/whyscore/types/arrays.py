"""The arrays that numbers travel in, and how work on them is divided."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Item = TypeVar("Item")

FloatVector = NDArray[np.float64]
"""One number per segment, word or probe."""

FloatMatrix = NDArray[np.float64]
"""Rows of numbers: a metric's counts (segments x columns), or systems x segments with NaN where missing."""

KeepMasks = NDArray[np.bool_]
"""Probes x words; True keeps the word."""

IntVector = NDArray[np.int64]
"""Numbers that stand for words, or counts."""

HiddenWords = NDArray[np.bool_]
"""Draws x words; True hides the word."""


def split_by_size(items: Iterable[Item], size: Callable[[Item], int], most: int) -> Iterator[list[Item]]:
    """Yield the items in lists whose sizes add up to `most` at the most; a larger item stands alone.

    >>> list(split_by_size(["a", "bb", "c"], len, 3))
    [['a', 'bb'], ['c']]
    """
    part: list[Item] = []
    total = 0
    for item in items:
        own = size(item)
        if part and total + own > most:
            yield part
            part, total = [], 0
        part.append(item)
        total += own
    if part:
        yield part


def read_only(array: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a copy that refuses to be written to: results are values."""
    copy = np.array(array, dtype=np.float64)
    copy.setflags(write=False)
    return copy
