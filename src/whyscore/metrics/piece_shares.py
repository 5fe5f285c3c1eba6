"""Shares of a sum, piece by piece: what must not get lost on the way to words.

A boundary mark that is a piece of its own (`▁`) has no letters, so that a word with other pieces does not count it. In
a sum it has a share all the same: it goes to the piece that follows, which it stands before, or to the last one.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from whyscore.marking import Span
from whyscore.text.alignment import BOUNDARY_MARKS
from whyscore.types import FloatVector


def carried(text: str, spans: Sequence[Span], pieces: Sequence[str], values: FloatVector) -> FloatVector:
    """Return the values with those of boundary marks added to the piece that follows.

    >>> carried("a .", [(0, 1), (1, 2), (2, 3)], ["▁a", "▁", "."], np.array([1.0, 2.0, 4.0]))
    array([1., 0., 6.])
    """
    marks = _marks(text, spans, pieces)
    strong = np.flatnonzero(~marks)
    if not len(strong) or not marks.any():
        return values
    result = np.where(marks, 0.0, values)
    weak = np.flatnonzero(marks & ~np.isnan(values))
    following = np.minimum(np.searchsorted(strong, weak), len(strong) - 1)
    np.add.at(result, strong[following], values[weak])
    return result


def _marks(text: str, spans: Sequence[Span], pieces: Sequence[str]) -> NDArray[np.bool_]:
    flags = [
        not text[start:end].strip() or not piece.strip(BOUNDARY_MARKS + " ")
        for (start, end), piece in zip(spans, pieces, strict=True)
    ]
    return np.array(flags, dtype=np.bool_)
