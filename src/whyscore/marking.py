"""Words with their importance, made visible: colours, plain text and HTML.

The scale is diverging and colour-blind safe (orange for words that cost points, blue for words that earn them, after
Okabe and Ito). Colour never stands alone: every form can also be read as numbers.
Control characters are shown as pictures, so that no text and no file name steers a terminal.
"""

from collections.abc import Iterator, Sequence
from math import isnan

from markupsafe import Markup

Span = tuple[int, int]

COSTS = (213, 94, 0)
EARNS = (0, 114, 178)
WHITE = (255, 255, 255)

# Relative luminance at which black and white letters have the same contrast (WCAG 2): sqrt(1.05 * 0.05) - 0.05.
_EQUAL_CONTRAST = 0.179


def strengths(importance: Sequence[float], largest: float | None = None) -> list[float]:
    """Return each importance scaled to -1 .. 1 by the largest size among them (or by `largest`); unknown ones are 0.

    >>> strengths([2.0, -1.0, 0.0])
    [1.0, -0.5, 0.0]
    """
    numbers = [value for value in importance if not isnan(value)]
    scale = max(map(abs, numbers), default=0.0) if largest is None else largest
    if not scale > 0:
        return [0.0] * len(importance)
    return [0.0 if isnan(value) else max(-1.0, min(1.0, value / scale)) for value in importance]


def colour(strength: float) -> tuple[int, int, int]:
    """Return the background for a strength of -1 (costs) .. 0 (white) .. 1 (earns)."""
    end = EARNS if strength >= 0 else COSTS
    weight = abs(strength)
    red, green, blue = (round(w + (e - w) * weight) for w, e in zip(WHITE, end, strict=True))
    return red, green, blue


def ink(strength: float) -> str:
    """Return the colour of letters that is easiest to read on a strength's background: black or white."""
    return "#000000" if _luminance(colour(strength)) > _EQUAL_CONTRAST else "#ffffff"


def _luminance(rgb: tuple[int, int, int]) -> float:
    """Return how bright a colour is, 0 to 1 (WCAG 2)."""
    parts = [part / 255 for part in rgb]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]  # noqa: PLR2004
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def pieces(text: str, spans: Sequence[Span]) -> Iterator[tuple[str, int | None]]:
    """Yield the text in order, cut at the spans: each piece with the number of its word, or None between words.

    >>> list(pieces("a  b", [(0, 1), (3, 4)]))
    [('a', 0), ('  ', None), ('b', 1)]
    """
    position = 0
    for number, (start, end) in enumerate(spans):
        if start > position:
            yield text[position:start], None
        yield text[start:end], number
        position = end
    if position < len(text):
        yield text[position:], None


def plain(text: str, spans: Sequence[Span], importance: Sequence[float], digits: int = 2) -> str:
    """Return the text with every word and its importance in brackets, for screens without colour.

    >>> plain("I see", [(0, 1), (2, 5)], [0.5, -0.25])
    '[I +0.50] [see -0.25]'
    """
    return "".join(
        piece if number is None else f"[{piece} {importance[number]:+.{digits}f}]"
        for piece, number in pieces(text, spans)
    )


def html(text: str, spans: Sequence[Span], importance: Sequence[float], largest: float | None = None) -> Markup:
    """Return the text as escaped HTML, each word on its colour, its value in the tooltip and for screen readers."""
    strength = strengths(importance, largest)
    word = Markup(
        '<span title="{value}" aria-label="{piece}: {value}" '
        'style="background:rgb({red},{green},{blue});color:{ink};padding:0 .15em;border-radius:.2em">{piece}</span>'
    )
    parts = []
    for piece, number in pieces(text, spans):
        if number is None:
            parts.append(Markup("{}").format(piece))
            continue
        red, green, blue = colour(strength[number])
        value, letters = f"{importance[number]:+.4g}", ink(strength[number])
        parts.append(word.format(piece=piece, value=value, red=red, green=green, blue=blue, ink=letters))
    return Markup("").join(parts)


_PICTURES = {code: chr(0x2400 + code) for code in range(0x20)} | {0x7F: "␡"}
_CODES = {code: f"\\x{code:02x}" for code in range(0x80, 0xA0)}  # the second block has no pictures in Unicode
# Embeddings, overrides and isolates: one that is not closed turns the rest of the line around.
_DIRECTIONS = {code: f"\\u{code:04x}" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}
_SEPARATORS = {0x2028: " ", 0x2029: " "}
_BLANKS = {ord("\n"): " ", ord("\t"): " "}
ON_ONE_LINE = _PICTURES | _CODES | _DIRECTIONS | _SEPARATORS | _BLANKS
"""For `str.translate`: pictures or codes for control characters, and blanks for newlines and tabs."""
_VISIBLE = {code: shown for code, shown in ON_ONE_LINE.items() if code not in _BLANKS}


def visible(text: str) -> str:
    r"""Return a text with pictures or codes for control characters; newlines and tabs stay.

    >>> visible("red \x1b[31m")
    'red ␛[31m'
    """
    return text.translate(_VISIBLE)
