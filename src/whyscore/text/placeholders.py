"""Strings that stand for hidden stretches of text, and where they are put.

A placeholder must occur in no text of the run, or it would match what nobody wrote. Three are needed: one that both
sides get where everything agrees, another for the hypothesis where nothing may agree, and a third for references where
some occurrences agree and the rest must not.

1. Metrics that count tokens or characters get characters of Unicode's private-use areas that no text holds.
2. Metrics that read text get words of ASCII letters that no text holds, whatever the case, that no stemmer cuts, and
   of which none is inside another.
3. In tokens, a token that is covered becomes the placeholder, and of one that is covered in part only the covered
   characters do ("house." becomes "M."). Of a word that a stemmer cut, what is not covered is taken from the text
   itself ("1990s" becomes "Ms", not "M"): the ending tells it from "1990". What was normalised otherwise goes whole.
4. In text, everything outside the stretches stays byte for byte.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice, product
from types import MappingProxyType
from typing import Literal, NamedTuple

from whyscore.marking import Span

Unit = Literal["word", "span"]

_PRIVATE = (range(0xE000, 0xF900), range(0xF0000, 0xFFFFE), range(0x100000, 0x10FFFE))
_LETTERS = "zqxjkv"  # no vowel and no ending: stemmers and lower-casing leave words of these alone
_WORD = re.compile(r"\S+")


class Placeholders(NamedTuple):
    """What hides a stretch where the sides agree, and where they may not: in the hypothesis, and in a reference."""

    agreeing: str
    differing: str
    apart: str


class TokenRow(NamedTuple):
    """The tokens of a text, normalised, with their places in it."""

    texts: Sequence[str]
    starts: Sequence[int]
    ends: Sequence[int]
    text: str = ""
    """The text itself."""
    numbers: Mapping[Span, int] = MappingProxyType({})
    """Which token has exactly this place; may be left out, and saves looking for it."""


def unused_characters(texts: Iterable[str], length: int = 1) -> Placeholders:
    r"""Return strings of `length` different characters each that no text holds.

    >>> unused_characters(["a\ue000"]) == ("\ue001", "\ue002", "\ue003")
    True
    """
    used = set().union(*texts)
    free = (chr(code) for code in chain(*_PRIVATE) if chr(code) not in used)
    characters = "".join(islice(free, 3 * length))
    return Placeholders(characters[:length], characters[length : 2 * length], characters[2 * length :])


def unused_words(texts: Iterable[str]) -> Placeholders:
    """Return words of ASCII letters that no text holds, whatever the case.

    >>> unused_words(["a ZZZZ cat"])
    Placeholders(agreeing='zzzq', differing='zzzx', apart='zzzj')
    """
    folded = [text.casefold() for text in set(texts)]
    candidates = ("".join(letters) for size in range(4, 12) for letters in product(_LETTERS, repeat=size))
    words: list[str] = []
    for word in candidates:
        if not any(word in text for text in folded) and not any(shorter in word for shorter in words):
            words.append(word)
        if len(words) == len(Placeholders._fields):
            break
    return Placeholders(*words)


def merge_spans(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Return the spans in order, overlapping ones merged.

    >>> merge_spans([(4, 6), (0, 3), (2, 4)])
    ((0, 4), (4, 6))
    """
    result: list[Span] = []
    for start, end in sorted(spans):
        if start >= end:
            continue
        if result and start < result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((start, end))
    return tuple(result)


def by_words(text: str, spans: Iterable[Span]) -> tuple[Span, ...]:
    """Return the spans cut at white space: one per word they cover.

    >>> by_words("in New York", [(3, 11)])
    ((3, 6), (7, 11))
    """
    return tuple(
        (start + match.start(), start + match.end())
        for start, end in spans
        for match in _WORD.finditer(text[start:end])
    )


def hide_in_tokens(tokens: TokenRow, spans: Sequence[Span], masks: Sequence[str], unit: Unit = "word") -> list[str]:
    """Return the tokens with what the spans cover hidden, each span behind its own mask.

    With unit `word` no token appears or disappears. With unit `span` each span leaves one mask, where it begins, and
    the tokens behind it become empty.

    >>> hide_in_tokens(TokenRow(["a", "house."], [0, 2], [1, 8], "a house."), [(2, 7)], ["M"])
    ['a', 'M.']
    """
    result = list(tokens.texts)
    touched: dict[int, list[int]] = {}
    for number, (start, end) in enumerate(spans):
        exact = tokens.numbers.get((start, end))
        if exact is not None:
            result[exact] = masks[number]
            continue
        for token in range(bisect_right(tokens.ends, start), bisect_left(tokens.starts, end)):
            if tokens.starts[token] < tokens.ends[token]:  # a token that stands nowhere is never hidden
                touched.setdefault(token, []).append(number)
    seen: set[int] = set()
    for token, over in touched.items():
        shown = [masks[k] if unit == "word" or k not in seen else "" for k in over]
        seen.update(over)
        first, last = tokens.starts[token], tokens.ends[token]
        inside = [(spans[k][0] - first, spans[k][1] - first) for k in over]
        result[token] = _hide(result[token], tokens.text[first:last], inside, shown)
    return result


def hide_in_text(text: str, spans: Sequence[Span], masks: Sequence[str], *, spaced: bool = False) -> str:
    """Return the text with each span replaced by its mask.

    `spaced` puts a blank on a side of a mask where a letter, a digit or another mask would touch it.

    >>> hide_in_text("John's house", [(0, 4)], ["M"]), hide_in_text("pre-war", [(0, 3), (4, 7)], ["M", "M"])
    ("M's house", 'M-M')
    >>> hide_in_text("10km", [(0, 2)], ["M"], spaced=True)
    'M km'
    """
    parts: list[str] = []
    position = 0
    for (start, end), mask in zip(spans, masks, strict=True):
        between = text[position:start]
        parts.append(between)
        touched = bool(parts[:-1]) if not between else between[-1].isalnum()
        parts.append(f" {mask}" if spaced and touched else mask)
        if spaced and end < len(text) and text[end].isalnum() and not _starts(spans, end):
            parts.append(" ")
        position = end
    parts.append(text[position:])
    return "".join(parts)


def _starts(spans: Sequence[Span], offset: int) -> bool:
    return any(start == offset for start, _ in spans)


def _hide(token: str, original: str, spans: Sequence[Span], shown: Sequence[str]) -> str:
    """Return what is left of a token when spans of the stretch it stands for are hidden."""
    if len(token) != len(original):
        covered = sum(min(end, len(original)) - max(start, 0) for start, end in spans)
        if covered == len(original) or not original.isalnum():
            return next((mask for mask in shown if mask), "")
        token = original.casefold()
    parts: list[str] = []
    position = 0
    for (start, end), mask in zip(spans, shown, strict=True):
        parts += [token[position : max(start, 0)], mask]
        position = end
    return "".join([*parts, token[position:]])
