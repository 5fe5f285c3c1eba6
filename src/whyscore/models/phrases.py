"""Vectors of phrases: stretches of pieces, seen in their text, as the model would pool them.

1. The vectors of the pieces of a phrase are summed; running sums make that one subtraction per phrase, however long.
2. The embedded encoder pools as it pools whole texts: begin and end piece are added, the sum is divided by the root of
   the number of pieces, and its last layers follow. The phrase that is the whole text has the text's own vector.
3. Any other encoder: the mean of the pieces of the phrase.

All phrases of many texts go through the last layers together.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from whyscore.models import embedded_package
from whyscore.models.embedded import LAYERS, Embedded
from whyscore.protocols import Encoded, Encoder
from whyscore.types import FloatMatrix, FloatVector

Ranges = NDArray[np.intp]
"""Phrases x 2: first piece and the piece after the last, special pieces not counted."""

_ROWS = 4096


@runtime_checkable
class Surprising(Protocol):
    """An encoder that knows how frequent its pieces are."""

    def surprisal(self, pieces: Sequence[str]) -> FloatVector:
        """Return -log p of each piece."""


class _Sums(NamedTuple):
    sums: FloatMatrix
    counts: FloatVector


def pools_itself(encoder: Encoder) -> bool:
    """Return whether phrases are pooled by the model's own last layers rather than by the mean."""
    return isinstance(encoder, Embedded) and LAYERS[encoder.layer] == "projected"


def phrase_vectors(encoder: Encoder, texts: Sequence[Encoded], ranges: Sequence[Ranges]) -> list[NDArray[np.float32]]:
    """Return for each text one vector per phrase, not scaled to unit length; zeros for a phrase of nothing."""
    own = pools_itself(encoder)
    parts = [_summed(text, wanted, special=own) for text, wanted in zip(texts, ranges, strict=True)]
    if not parts:
        return []
    sums = np.concatenate([part.sums for part in parts])
    counts = np.concatenate([part.counts for part in parts])[:, None]
    vectors = _last_layers(sums / np.sqrt(counts)) if own else (sums / np.maximum(counts, 1)).astype(np.float32)
    return np.split(vectors, np.cumsum([len(part.sums) for part in parts])[:-1])


def _summed(text: Encoded, wanted: Ranges, *, special: bool) -> _Sums:
    rows = text.vectors[~text.special].astype(np.float64)
    running = np.concatenate([np.zeros((1, rows.shape[1])), np.cumsum(rows, axis=0)])
    sums = running[wanted[:, 1]] - running[wanted[:, 0]]
    counts = (wanted[:, 1] - wanted[:, 0]).astype(np.float64)
    if special:
        sums += text.vectors[text.special].sum(axis=0, dtype=np.float64)
        counts += text.special.sum()
    return _Sums(sums, counts)


def _last_layers(rows: FloatMatrix) -> NDArray[np.float32]:
    """Return what the embedded network makes of pooled projections."""
    weights = embedded_package.parts().weights
    (d0, d1, d2, d3), (p1, p3) = weights.hidden, weights.skips
    result = np.empty((len(rows), d3.shape[1]), dtype=np.float32)
    for start in range(0, len(rows), _ROWS):
        block = rows[start : start + _ROWS].astype(np.float32)
        middle = np.maximum(block @ p1 + np.maximum(block @ d0, 0) @ d1, 0)
        result[start : start + _ROWS] = np.tanh(middle @ p3 + np.maximum(middle @ d2, 0) @ d3)
    return result
