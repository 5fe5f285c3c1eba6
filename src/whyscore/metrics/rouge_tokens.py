"""How ROUGE cuts a text.

| mode | tokens |
|---|---|
| `default` | runs of letters, marks and digits of any script, case-folded; characters in scripts without blanks |
| `compat` | runs of a-z and 0-9 in lower case: everything else is lost, as in the `rouge-score` package |
| `split` | what stands between blanks, as it stands: for texts that are cut already |

With stemming, tokens of more than three characters are cut to their stem by Porter's algorithm for English; in the
default mode only those of a-z and 0-9, since it knows no other letters.
"""

import importlib
import re
from functools import lru_cache
from typing import Literal, Protocol

import regex

from whyscore.errors import MissingExtra
from whyscore.metrics.spans import Token, located

Mode = Literal["default", "compat", "split"]

_NO_BLANKS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_UNICODE = regex.compile(rf"(?V1)[[\p{{L}}\p{{N}}]&&[{_NO_BLANKS}]]\p{{M}}*|[[\p{{L}}\p{{M}}\p{{N}}]--[{_NO_BLANKS}]]+")
_ASCII = re.compile(r"[a-z0-9]+")
# Shorter words are left alone, as in the rouge-score package.
_SHORTEST_STEM = 4


def cut(text: str, mode: Mode, *, stem: bool) -> list[str]:
    """Return the tokens of a text.

    >>> cut("Straße, 10-year", "default", stem=False)
    ['strasse', '10', 'year']
    """
    tokens = _raw(text, mode)
    return [_stemmed(token) for token in tokens] if stem else tokens


def cut_with_spans(text: str, mode: Mode, *, stem: bool) -> tuple[Token, ...]:
    """Return the tokens with their places in the text."""
    tokens = cut(text, mode, stem=stem)
    spans = _spans(text, mode)
    if len(spans) != len(tokens):
        spans = [(token.start, token.end) for token in located(_raw(text, mode), text)]
    return tuple(Token(token, start, end) for token, (start, end) in zip(tokens, spans, strict=True))


def _raw(text: str, mode: Mode) -> list[str]:
    if mode == "default":
        return [token.casefold() for token in _UNICODE.findall(text)]
    return _ASCII.findall(text.lower()) if mode == "compat" else text.split()


def _spans(text: str, mode: Mode) -> list[tuple[int, int]]:
    """Return the spans where cutting keeps the length of the text, else none."""
    if mode == "default":
        return [match.span() for match in _UNICODE.finditer(text)]
    if mode == "split":
        return [match.span() for match in re.finditer(r"\S+", text)]
    lower = text.lower()
    return [match.span() for match in _ASCII.finditer(lower)] if len(lower) == len(text) else []


@lru_cache(maxsize=1 << 16)
def _stemmed(token: str) -> str:
    if len(token) < _SHORTEST_STEM or not _ASCII.fullmatch(token):
        return token
    return _stemmer().stem(token)


class _Stemmer(Protocol):
    def stem(self, word: str) -> str:
        """Return the word without its ending."""


@lru_cache(maxsize=1)
def _stemmer() -> _Stemmer:
    try:
        porter = importlib.import_module("nltk.stem.porter")
    except ImportError as error:
        raise MissingExtra.of("rouge(stem=True)", "rouge") from error
    stemmer: _Stemmer = porter.PorterStemmer()
    return stemmer
