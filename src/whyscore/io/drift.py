"""Says where two files of unequal length fall out of step.

1. Two lines fit by how far their length ratio is from that of the whole files, and whether they hold the same numbers.
2. Let S be the shorter file and L the longer one. Line i of S is compared with line i of L (in step) and with line
   i + 1 of L (S lacks a line). The earliest window of twenty lines that fits better one line on holds the drift.
3. Near that window, the drift is where staying in step before and shifting after it fits best.

Without such a window, or with too few lines behind it, nothing is claimed.
"""

import math
import re
from collections.abc import Sequence

import numpy as np

from whyscore.types import FloatVector

_WINDOW = 20
_LEAST = 5
_NUMBERS = re.compile(r"\d+")


def first_drift(one: Sequence[str], other: Sequence[str]) -> int | None:
    """Return the line (from one) at which the shorter file likely lacks a line, or None."""
    short, long = sorted((one, other), key=len)
    n = min(len(short), len(long) - 1)
    if n < _LEAST:
        return None
    ratio = math.log((1 + sum(map(len, short))) / (1 + sum(map(len, long))))
    step = _misfits(short[:n], long[:n], ratio)
    shifted = _misfits(short[:n], long[1 : n + 1], ratio)
    gain = step - shifted
    sums = np.concatenate([[0.0], np.cumsum(gain)])
    starts = np.arange(n - _LEAST + 1)
    better = sums[np.minimum(starts + _WINDOW, n)] - sums[starts] > 0
    if not better.any():
        return None
    start = int(np.argmax(better))
    # The gain of shifting from k to the end of the neighbourhood is largest where the drift begins.
    stop = min(start + 2 * _WINDOW, n)
    return start + int(np.argmax(sums[stop] - sums[start:stop])) + 1


def _misfits(one: Sequence[str], other: Sequence[str], ratio: float) -> FloatVector:
    return np.array([_misfit(a, b, ratio) for a, b in zip(one, other, strict=True)], dtype=np.float64)


def _misfit(one: str, other: str, ratio: float) -> float:
    length = abs(math.log((1 + len(one)) / (1 + len(other))) - ratio)
    return length + (set(_NUMBERS.findall(one)) != set(_NUMBERS.findall(other)))
