"""Cuts texts into the units that are explained; offsets are code points of the text as given.

White-space words are the default, because human word labels are given for them. Scripts without blanks need
`char` or `auto`.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import regex

from whyscore.errors import SpecError
from whyscore.settings import check_fields
from whyscore.types import Words

# The standard `re`, whose white space is that of `str.split` (the separators U+001C-1F included).
_SPACES = {"any": re.compile(r"\S+"), "space": re.compile(r"[^ ]+")}
_BLANK = r"\s\x1c-\x1f"
_GRAPHEMES = regex.compile(rf"(?![{_BLANK}])\X")
NO_BLANKS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_AUTO = regex.compile(rf"(?=[{NO_BLANKS}])\X|[^{_BLANK}{NO_BLANKS}]+")
# Default word boundaries of Unicode (UAX 29), extended so that punctuation stands alone.
_UNICODE = regex.compile(rf"(?w)\w(?:\B[^{_BLANK}])*|[^\w{_BLANK}]\p{{M}}*")
_ENDS = rf"[.!?…]+[\"'”’»)\]]*(?=[{_BLANK}]|$)|[。！？]+[」』”]*|(?=[{_BLANK}]*$)"
_SENTENCES = regex.compile(rf"[^{_BLANK}](?:.*?)(?:{_ENDS})", regex.DOTALL)


def _cut(pattern: "re.Pattern[str] | regex.Pattern[str]", text: str) -> Words:
    return Words(text, tuple(match.span() for match in pattern.finditer(text)))


@dataclass(frozen=True, slots=True)
class WhiteSpace:
    """Runs of anything but white space; with `separator="space"` only U+0020 ends a word, as in pre-tokenised data."""

    separator: Literal["any", "space"] = "any"

    def __post_init__(self) -> None:
        check_fields(self)

    def split(self, text: str) -> Words:
        return _cut(_SPACES[self.separator], text)


@dataclass(frozen=True, slots=True)
class UnicodeWords:
    """Words by the word boundaries of Unicode (UAX 29); each punctuation mark is a unit of its own."""

    def split(self, text: str) -> Words:
        return _cut(_UNICODE, text)


@dataclass(frozen=True, slots=True)
class Characters:
    """Characters as readers see them (grapheme clusters), blanks left out: for Chinese, Japanese, Thai."""

    def split(self, text: str) -> Words:
        return _cut(_GRAPHEMES, text)


@dataclass(frozen=True, slots=True)
class Auto:
    """White-space words, but single characters wherever the script is written without blanks."""

    def split(self, text: str) -> Words:
        return _cut(_AUTO, text)


@dataclass(frozen=True, slots=True)
class Sentences:
    """Sentences, cut after final punctuation: coarse units for long texts."""

    def split(self, text: str) -> Words:
        return _cut(_SENTENCES, text)


@dataclass(frozen=True, slots=True)
class Chunks:
    """Runs of `size` white-space words, for long texts and small budgets."""

    size: int = 3

    def __post_init__(self) -> None:
        check_fields(self)
        if self.size < 1:
            raise SpecError(f"chunk: size is {self.size}, expected 1 or more")

    def split(self, text: str) -> Words:
        spans = white_space(text).spans
        groups = [spans[i : i + self.size] for i in range(0, len(spans), self.size)]
        return Words(text, tuple((group[0][0], group[-1][1]) for group in groups))


@lru_cache(maxsize=4096)
def white_space(text: str) -> Words:
    """Return the white-space words of a text, the unit most of whyscore works with.

    >>> list(white_space(" a  cat"))
    ['a', 'cat']
    """
    return _cut(_SPACES["any"], text)
