"""Words against words: the cosines behind a match, as a matrix to be drawn.

1. The text that is explained and the one it faces are those of `matching_words`: with several references, the one
   with the best F.
2. A cell is the mean cosine over all pairs of a unit of the one word and a unit of the other; special pieces belong to
   no word. Where units are phrases, those of one word alone are taken: longer ones belong to several.
3. A word without a unit has no numbers (NaN). Cosines stand as they are: not weighted, not rescaled.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from whyscore.marking import Span
from whyscore.metrics.matching import Sided
from whyscore.metrics.matching_words import Facing
from whyscore.text.alignment import Pieces, align
from whyscore.types import FloatMatrix, Place, Segment, Words


@runtime_checkable
class Faces(Protocol):
    """A metric that matches the texts of a segment with each other."""

    def faced(self, segments: Sequence[Segment], place: Place) -> Iterator[Facing | None]:
        """Return the text at a place with the one it is matched with, for each segment; None where one is blank."""


def word_cosines(found: Facing, words: Words, others: Words) -> FloatMatrix:
    """Return the mean cosine of each word of the explained text with each word of the text it faces."""
    single = found.cosines[: found.own.runs[0], : found.other.runs[0]]
    result: FloatMatrix = _means(found.own, words) @ single @ _means(found.other, others).T
    return result


def _means(text: Sided, words: Words) -> FloatMatrix:
    """Return words x units: what each unit adds to the mean of a word; NaN for a word without a unit."""
    kept = np.flatnonzero(~text.special)
    spans: list[Span] = [(start, end) for start, end in text.spans[kept].tolist()]
    pairs = align(words, Pieces(spans, [text.pieces[k] for k in kept], seen=text.seen))
    table = np.zeros((len(words), len(text.special)))
    table[pairs.word, kept[pairs.piece]] = 1.0
    totals = table.sum(axis=1, keepdims=True)
    result: FloatMatrix = np.divide(table, totals, out=np.full_like(table, np.nan), where=totals > 0)
    return result
