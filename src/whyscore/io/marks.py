"""Texts with `<v>...</v>` marks, as Google's MQM ratings write them: the plain text and the marked stretches.

1. The marks are taken out; each pair gives a stretch of the plain text.
2. A mark that is opened and never closed runs to the end of the text; one that is closed and never opened begins with
   the text. Both are told.
3. Blanks at the edges of a stretch belong outside it; moved edges are told.
"""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from whyscore.marking import Span

_MARK = re.compile(r"</?v>")
OPEN, CLOSE = "<v>", "</v>"


class Unmarked(NamedTuple):
    """A text without its marks, the stretches they marked, and what had to be put right."""

    text: str
    spans: tuple[Span, ...]
    lone: bool
    """Whether a mark had no counterpart."""
    trimmed: int
    """Stretches that began or ended with a blank."""


def unmarked(marked: str) -> Unmarked:
    """Return the plain text and what was marked in it.

    >>> unmarked("a <v>bad </v>cat")
    Unmarked(text='a bad cat', spans=((2, 5),), lone=False, trimmed=1)
    """
    if "<v>" not in marked and "</v>" not in marked:
        return Unmarked(marked, (), lone=False, trimmed=0)
    parts, spans, length = [], [], 0
    start: int | None = None
    lone, at = False, 0
    for match in _MARK.finditer(marked):
        parts.append(marked[at : match.start()])
        length += match.start() - at
        at = match.end()
        if match.group() == OPEN:
            lone = lone or start is not None
            start = length if start is None else start
        else:
            lone = lone or start is None
            spans.append((start or 0, length))
            start = None
    text = "".join([*parts, marked[at:]])
    if start is not None:
        lone = True
        spans.append((start, len(text)))
    kept = [trim(text, span) for span in spans]
    moved = sum(one != other for one, other in zip(kept, spans, strict=True))
    return Unmarked(text, tuple(kept), lone=lone, trimmed=moved)


def marked(text: str, span: Span) -> str:
    """Return a text with one stretch marked."""
    start, end = span
    return f"{text[:start]}{OPEN}{text[start:end]}{CLOSE}{text[end:]}"


def trim(text: str, span: Span) -> Span:
    """Return a stretch without blanks at its edges; one of blanks alone becomes empty, where it began."""
    start, end = span
    inside = text[start:end]
    if not inside.strip():
        return start, start
    return start + len(inside) - len(inside.lstrip()), end - len(inside) + len(inside.rstrip())


def moved(text: str, span: Span, other: str) -> Span:
    """Return where a stretch of one text stands in another, nearly equal one: equal stretches stay what they are."""
    blocks = SequenceMatcher(None, text, other, autojunk=False).get_opcodes()
    start = _place(span[0], blocks, last=False)
    return start, max(start, _place(span[1], blocks, last=True))


def _place(offset: int, blocks: Sequence[tuple[str, int, int, int, int]], *, last: bool) -> int:
    """Return where an edge goes; inside a changed stretch it goes to the stretch's own edge."""
    for kind, a, b, c, d in blocks:
        inside = a < offset <= b if last else a <= offset < b
        if inside:
            return c + offset - a if kind == "equal" else (d if last else c)
    return blocks[-1][4] if blocks and offset else 0
