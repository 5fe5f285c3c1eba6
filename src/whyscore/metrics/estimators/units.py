"""The words that the estimator reads: white-space tokens, with the punctuation at their ends split off.

1. Cut the text at white space, so that no unit ever covers parts of two tokens.
2. Split punctuation off both ends of a token, so that plain and tokenised text have the same units.
3. Where a script writes no blanks (Chinese, Japanese, Thai), a longer token is cut into the pieces of the encoder.
4. A unit has the pieces it overlaps; a boundary piece that covers only white space belongs to none.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray

from whyscore.marking import Span

_TOKEN = regex.compile(r"\S+")
_EDGES = regex.compile(r"([\p{P}\p{S}]*)(.*?)([\p{P}\p{S}]*)", regex.DOTALL)
_UNSPACED = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Khmer}\p{Lao}\p{Myanmar}]")
_LONGEST_UNSPACED_WORD = 4


class Units(NamedTuple):
    """The units of one text."""

    spans: NDArray[np.int64]
    """Units x 2: code-point offsets."""
    words: tuple[str, ...]
    """As they are written."""
    ranges: NDArray[np.intp]
    """Units x 2: first piece, and the piece after the last, special ones not counted."""


def find_units(text: str, pieces: NDArray[np.int64]) -> Units:
    """Return the units of a text with their pieces, given where the pieces stand, special ones left out."""
    spans = list(_spans(text, pieces))
    places = np.array(spans, dtype=np.int64).reshape(-1, 2)
    starts, ends = pieces[:, 0], pieces[:, 1]
    first = np.searchsorted(ends, places[:, 0], side="right")
    last = np.searchsorted(starts, places[:, 1], side="left")
    first = np.minimum(first, max(len(pieces) - 1, 0))
    ranges = np.stack([first, np.minimum(np.maximum(last, first + 1), len(pieces))], axis=1)
    return Units(places, tuple(text[start:end] for start, end in spans), ranges.astype(np.intp))


def _spans(text: str, pieces: NDArray[np.int64]) -> Iterator[Span]:
    for token in _TOKEN.finditer(text):
        start, end = token.span()
        if end - start > _LONGEST_UNSPACED_WORD and _UNSPACED.search(token[0]):
            yield from _cut(start, end, pieces)
        else:
            yield from _peel(start, token[0])


def _peel(start: int, token: str) -> Iterator[Span]:
    """Yield the word inside a token and the punctuation around it; punctuation alone is one unit."""
    match = _EDGES.fullmatch(token)
    for group in (1, 2, 3):
        if match is not None and match[group]:
            yield start + match.start(group), start + match.end(group)


def _cut(start: int, end: int, pieces: NDArray[np.int64]) -> Iterator[Span]:
    """Yield the pieces that begin inside a token; what stands before the first belongs to it."""
    inside = pieces[(pieces[:, 0] >= start) & (pieces[:, 0] < end), 0].tolist()
    borders = sorted({start, *inside[1:]})
    yield from zip(borders, [*borders[1:], end], strict=True)
