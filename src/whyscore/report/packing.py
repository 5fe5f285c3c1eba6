"""Numbers as short texts: word borders and importances of thousands of segments in a page that loads at once.

The alphabet has 64 characters, none of which needs escaping in JSON or HTML.

1. Word borders: the gap before each word and its length, in UTF-16 units (what JavaScript counts), five bits a
   character, the sixth says that more follow.
2. Importances: two characters a word, -2047 .. 2047 times the largest size in the text; `..` where there is no number.
"""

from collections.abc import Sequence

import numpy as np

from whyscore.types import FloatVector

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
STEPS = 2047
UNKNOWN = ".."
_BITS = 5
_MORE = 1 << _BITS
_TWICE = np.array([first + second for first in ALPHABET for second in ALPHABET])


def packed_borders(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """Return the borders of words, given in code points.

    >>> packed_borders("a cat", [(0, 1), (2, 5)])
    'ABBD'
    """
    position = 0
    parts: list[str] = []
    ascii_only = text.isascii()
    for start, end in spans:
        gap, length = (start - position, end - start)
        if not ascii_only:
            gap, length = units(text[position:start]), units(text[start:end])
        parts += (packed_number(gap), packed_number(length))
        position = end
    return "".join(parts)


def packed_number(value: int) -> str:
    """Return a whole number from 0 up.

    >>> packed_number(3), packed_number(40)
    ('D', 'oB')
    """
    found = []
    while value >= _MORE:
        found.append(ALPHABET[value % _MORE + _MORE])
        value //= _MORE
    return "".join([*found, ALPHABET[value]])


def packed_values(values: FloatVector) -> tuple[float, str]:
    """Return the largest size, to four digits, and each value as a share of it.

    >>> packed_values(np.array([2.0, -2.0, np.nan]))
    (2.0, '__AB..')
    """
    known = np.isfinite(values)
    largest = float(np.abs(values[known]).max()) if known.any() else 0.0
    scale = float(f"{largest:.4g}") if largest > 0 else 1.0
    steps = np.where(known, np.rint(np.where(known, values, 0.0) / scale * STEPS), 0.0)
    codes = np.clip(steps, -STEPS, STEPS).astype(np.int64) + STEPS + 1
    return scale, "".join(np.where(known, _TWICE[codes], UNKNOWN).tolist())


def units(text: str) -> int:
    """Return how long JavaScript finds a text: characters beyond the first 65,536 count twice.

    >>> units("a😀")
    3
    """
    return len(text) + sum(character > "\uffff" for character in text) if not text.isascii() else len(text)
