"""The arrays that numbers travel in."""

import numpy as np
from numpy.typing import NDArray

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


def read_only(array: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a copy that refuses to be written to: results are values."""
    copy = np.array(array, dtype=np.float64)
    copy.setflags(write=False)
    return copy
