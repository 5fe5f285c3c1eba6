"""Texts with their words as units, in phrases.

1. A unit is a white-space word; where the script has no blanks, a piece. Its weight is log(1 + its surprisal), the sum
   over its pieces of -log p in the encoder's own unigram model, or 1 for encoders without one.
2. Runs of 1 to `orders` units have the vector that the model itself would pool from their pieces, seen in the text
   (`whyscore.models.encoders.embedded`), and so has the whole text.
"""

from collections.abc import Sequence
from itertools import compress
from typing import NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray

from whyscore.metrics.matching import Sided, lengths_of
from whyscore.metrics.matching_texts import seen_of
from whyscore.models.encoders.embedded import Surprising, phrase_vectors
from whyscore.protocols import Encoded, Encoder
from whyscore.text.alignment import BOUNDARY_MARKS
from whyscore.text.splitters import white_space
from whyscore.types import FloatVector

_NO_BLANKS = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")


def by_phrases(texts: Sequence[str], encoder: Encoder, orders: int) -> list[Sided]:
    """Return the texts with their words as units, in phrases of up to `orders` words."""
    encoded = encoder.encode(texts)
    cuts = [_units(text, own) for text, own in zip(texts, encoded, strict=True)]
    vectors = phrase_vectors(encoder, encoded, [_ranges(cut.edges, orders) for cut in cuts])
    weights = [_weights(cut, encoder) for cut in cuts]
    return [
        _sided(cut, rows, counted, orders)._replace(seen=seen_of(own))
        for own, cut, rows, counted in zip(encoded, cuts, vectors, weights, strict=True)
    ]


class _Units(NamedTuple):
    """The units of a text as groups of neighbouring pieces, special pieces not counted."""

    text: str
    pieces: list[str]
    edges: NDArray[np.intp]
    """The first piece of each unit, and the number of pieces."""
    spans: NDArray[np.int64]

    @property
    def number(self) -> int:
        """How many units there are."""
        return len(self.spans)


def _units(text: str, own: Encoded) -> _Units:
    """Return the words of a text, or its pieces where the script has no blanks."""
    spans = own.spans[~own.special]
    pieces = list(compress(own.pieces, ~own.special))
    starts = np.array([start for start, _ in white_space(text).spans], dtype=np.int64)
    # The end of a piece lies inside its word; its beginning may be the blank before it.
    word = np.searchsorted(starts, np.maximum(spans[:, 1] - 1, 0), side="right")
    apart = np.array([_NO_BLANKS.search(text, start, end) is not None for start, end in spans.tolist()], dtype=np.bool_)
    weak = np.array([not piece.strip(BOUNDARY_MARKS + " ") for piece in pieces], dtype=np.bool_)
    first = np.ones(len(pieces), dtype=np.bool_)
    # A boundary mark that is a piece of its own belongs to what follows.
    first[1:] = ~weak[:-1] & (apart[1:] | apart[:-1] | (word[1:] != word[:-1]))
    edges = np.append(np.flatnonzero(first), len(pieces)).astype(np.intp)
    return _Units(text, pieces, edges, np.column_stack([spans[edges[:-1], 0], spans[edges[1:] - 1, 1]]))


def _ranges(edges: NDArray[np.intp], orders: int) -> NDArray[np.intp]:
    """Return first piece and end of all runs of 1 to `orders` units, and of the whole text as the last row."""
    counts = _counts(len(edges) - 1, orders)
    parts = [np.column_stack([edges[:count], edges[length : length + count]]) for length, count in enumerate(counts, 1)]
    return np.concatenate([*parts, [[0, edges[-1]]]]).astype(np.intp)


def _counts(units: int, orders: int) -> tuple[int, ...]:
    """Return how many runs of each length there are; lengths without any are left out.

    >>> _counts(4, 3), _counts(2, 3), _counts(0, 3)
    ((4, 3, 2), (2, 1), (0,))
    """
    return tuple(units - length + 1 for length in range(1, max(min(orders, units), 1) + 1))


def _weights(cut: _Units, encoder: Encoder) -> FloatVector:
    if not isinstance(encoder, Surprising) or not cut.number:
        return np.ones(cut.number)
    return np.log1p(np.add.reduceat(encoder.surprisal(cut.pieces), cut.edges[:-1]))


def _sided(cut: _Units, rows: NDArray[np.float32], weights: FloatVector, orders: int) -> Sided:
    vectors, whole = rows[:-1], rows[-1].astype(np.float64)
    return Sided(
        cut.text,
        cut.spans,
        tuple(cut.text[start:end].strip() for start, end in cut.spans.tolist()),
        weights,
        np.zeros(cut.number, dtype=np.bool_),
        _counts(cut.number, orders),
        vectors,
        lengths_of(vectors),
        whole / (np.sqrt(whole @ whole) or 1.0),
    )
