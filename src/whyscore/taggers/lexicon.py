r"""Word lists and patterns as features.

| expression | finds |
|---|---|
| `words:he,she` | these words, whole, whatever their case |
| `list:FILE` | the words or phrases of a file, one a line |
| `regex:\d+%` | what a pattern of Python's `re` matches; empty matches are left out |
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from whyscore.errors import DataError, SpecError
from whyscore.marking import Span
from whyscore.protocols import Tagged
from whyscore.registry import spec_of
from whyscore.settings import check_fields
from whyscore.taggers.aligned import digest_of, lines_of
from whyscore.taggers.rules import whole_words
from whyscore.types import Signature

PREFIXES = ("words:", "list:", "regex:")
_NAMED = re.compile(r"([A-Za-z_][\w-]*)=(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Lexicon:
    r"""Finds the words of lists and what patterns match; no model.

    Args:
        entries: `words:he,she`, `list:FILE` or `regex:\d+%`, each with a name in front if wanted: `HE=words:he,him`.
    """

    entries: tuple[str, ...]

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.entries:
            raise SpecError("lexicon: entries is empty: write for example lexicon('words:he,she', 'regex:[0-9]+')")
        for entry in self.entries:
            _, body = split_name(entry)
            if not body.startswith(PREFIXES):
                raise SpecError(f"lexicon: cannot read {entry!r}: write words:he,she or list:FILE or regex:PATTERN")
            if body.startswith("regex:"):
                pattern_of(body)

    def signature(self) -> Signature:
        files = [split_name(entry)[1][len("list:") :] for entry in self.entries if "list:" in entry]
        return Signature(spec_of(self), tuple((Path(file).name, digest_of(file)) for file in files))

    def labels(self) -> tuple[str, ...]:
        return tuple(split_name(entry)[0] for entry in self.entries)

    def tag(self, texts: Sequence[str]) -> list[tuple[Tagged, ...]]:
        patterns = [(name, pattern_of(body)) for name, body in map(split_name, self.entries)]
        return [
            tuple(sorted(Tagged(*span, (name,)) for name, pattern in patterns for span in find_matches(pattern, text)))
            for text in texts
        ]


def split_name(expression: str) -> tuple[str, str]:
    """Return an expression's name and body; one without a name is its own.

    >>> split_name("HE=words:he,him"), split_name("feats:Gender=Fem")
    (('HE', 'words:he,him'), ('feats:Gender=Fem', 'feats:Gender=Fem'))
    """
    named = _NAMED.fullmatch(expression)
    return (named[1], named[2]) if named else (expression, expression)


def pattern_of(body: str) -> "re.Pattern[str]":
    """Return the pattern that a list or a pattern stands for."""
    kind, _, rest = body.partition(":")
    if kind == "list":
        return _file_pattern(rest, digest_of(rest))
    return _pattern(kind, rest)


def find_matches(pattern: "re.Pattern[str]", text: str) -> list[Span]:
    """Return the spans a pattern matches in a text."""
    return [match.span() for match in pattern.finditer(text) if match.group()]


@lru_cache(maxsize=256)
def _pattern(kind: str, rest: str) -> "re.Pattern[str]":
    if kind == "words":
        words = [word.strip() for word in rest.split(",") if word.strip()]
        if not words:
            raise SpecError("words: names no word: write for example words:he,she")
        return whole_words([re.escape(word) for word in sorted(words, key=len, reverse=True)])
    try:
        return re.compile(rest)
    except re.error as error:
        raise SpecError(f"cannot read the pattern regex:{rest}: {error}") from error


@lru_cache(maxsize=64)
def _file_pattern(file: str, _: str) -> "re.Pattern[str]":
    words = {line.strip() for line in lines_of(file)} - {""}
    if not words:
        raise DataError("has no word: expected one word or phrase per line", file=file)
    return whole_words([re.escape(word) for word in sorted(words, key=lambda word: (-len(word), word))])
