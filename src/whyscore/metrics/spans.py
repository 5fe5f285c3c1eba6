"""Where a metric's tokens stand in the text as it was given.

Metrics cut and change texts: blanks move, case goes, `&quot;` becomes a quotation mark. The tokens are found again by
their characters, from left to right:

1. Take the characters of the text without blanks, and those of the tokens, both in lower case.
2. If the two rows are equal, character k of the tokens is character k of the text.
3. If not, read `&quot; &amp; &lt; &gt;` as one character each and try again.
4. If not, align the rest between the common beginning and end (longest equal stretches first, `difflib`): equal
   stretches go one to one, exchanged ones in proportion, and added characters stand nowhere.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from html import unescape
from typing import NamedTuple

import numpy as np
import regex

from whyscore.marking import Span
from whyscore.protocols import Token
from whyscore.types import FloatVector, Words

_STRETCHES = regex.compile(r"\S+")
_WITH_ENTITIES = regex.compile(r"&(?:quot|amp|lt|gt);|\S")


class _Letters(NamedTuple):
    """The characters of a text without blanks, folded, with the stretch of text each stands for."""

    characters: Sequence[str]
    spans: list[Span]


def locate_tokens(tokens: Sequence[str], text: str) -> tuple[Token, ...]:
    """Return the tokens with their spans, in order; a token that is nowhere in the text gets an empty span.

    >>> locate_tokens(["say", '"', "hi", '"'], "Say &quot;hi&quot;")[1]
    Token(text='"', start=4, end=10)
    """
    row = _fold_case("".join(tokens))
    stretches = [match.span() for match in _STRETCHES.finditer(text)]
    if _fold_case("".join([text[start:end] for start, end in stretches])) != row:
        return _locate_by_characters(tokens, _spans(row, text))
    places = [place for start, end in stretches for place in range(start, end)]
    placed = []
    position = at = 0
    for token in tokens:
        start = position
        if token:
            start, at = places[at], at + len(token)
            position = places[at - 1] + 1
        placed.append(Token(token, start, position))
    return tuple(placed)


def _locate_by_characters(tokens: Sequence[str], spans: Sequence[Span | None]) -> tuple[Token, ...]:
    """Return the tokens by the spans of their characters."""
    placed = []
    position = at = 0
    for token in tokens:
        places = [span for span in spans[at : at + len(token)] if span is not None]
        start, position = (places[0][0], places[-1][1]) if places else (position, position)
        placed.append(Token(token, start, position))
        at += len(token)
    return tuple(placed)


def touching(tokens: Sequence[tuple[int, int]], words: Words) -> list[range]:
    """Return for each word the numbers of the tokens whose span overlaps it.

    >>> touching([(0, 3), (3, 4)], Words("cat.", ((0, 4),)))
    [range(0, 2)]
    """
    starts = [start for start, _ in tokens]
    ends = [end for _, end in tokens]
    return [range(bisect_right(ends, start), bisect_left(starts, end)) for start, end in words.spans]


def share_out(values: Sequence[float] | FloatVector, touched: Sequence[range]) -> FloatVector:
    """Return what each word has of the values of its tokens; a token in several words counts for them in equal parts.

    >>> share_out([1.0, 4.0], [range(0, 2), range(1, 2)])
    array([3., 2.])
    """
    owners = np.zeros(len(values), dtype=np.int64)
    for numbers in touched:
        owners[numbers.start : numbers.stop] += 1
    return np.array([sum(values[k] / owners[k] for k in numbers) for numbers in touched], dtype=np.float64)


def _fold_case(text: str) -> str:
    """Return each character in lower case, where that is one character.

    >>> _fold_case("Aİ ΑΣ")
    'aİ ασ'
    """
    lower = text.lower()
    # No character becomes fewer than one, and sigma alone depends on its neighbours: nothing to be done one by one.
    if len(lower) == len(text) and "Σ" not in text:
        return lower
    return "".join([lowered if len(lowered := character.lower()) == 1 else character for character in text])


def _letters_and_entities(text: str) -> _Letters:
    matches = list(_WITH_ENTITIES.finditer(text))
    return _Letters([_fold_case(unescape(match.group())) for match in matches], [match.span() for match in matches])


def _spans(row: str, text: str) -> Sequence[Span | None]:
    """Return the span of each character of a row that is not that of the text without blanks."""
    letters = _letters_and_entities(text)
    characters = list(row)
    return letters.spans if letters.characters == characters else _align_characters(characters, letters)


def _align_characters(row: Sequence[str], letters: _Letters) -> list[Span | None]:
    """Return the span of each character of the row, None where the text has no counterpart."""
    result: list[Span | None] = [None] * len(row)
    for here, there in _pairs(row, letters.characters):
        result[here] = letters.spans[there]
    return result


def _pairs(row: Sequence[str], other: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield which position of the row stands for which position of the other one, in order."""
    head = _common(row, other)
    tail = _common(row[head:][::-1], other[head:][::-1])
    yield from ((k, k) for k in range(head))
    middle, far = row[head : len(row) - tail], other[head : len(other) - tail]
    for kind, i1, i2, j1, j2 in SequenceMatcher(None, middle, far, autojunk=False).get_opcodes():
        if kind in {"equal", "replace"}:
            yield from ((head + k, head + j1 + (k - i1) * (j2 - j1) // (i2 - i1)) for k in range(i1, i2))
    yield from ((len(row) - k, len(other) - k) for k in range(tail, 0, -1))


def _common(row: Sequence[str], other: Sequence[str]) -> int:
    """Return how many characters agree from the beginning on."""
    for number, (here, there) in enumerate(zip(row, other, strict=False)):
        if here != there:
            return number
    return min(len(row), len(other))
