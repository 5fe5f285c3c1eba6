"""The parts of MEE, MEE2 and MEE4, computed once and shared by the three.

Pairs of texts that were asked about lately are remembered by their content and by everything that decides the part
(the facts of the signature), so that `mee mee2 mee4` cut, align and encode each pair once. What is remembered is what
would be computed again: no number depends on it. Parts that a signature cannot name (vectors of the caller) are never
remembered. At most 65,536 pairs are kept for each part, the oldest go first.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from whyscore.metrics.mee.context import contextual, encoder_signature
from whyscore.metrics.mee.syntax import Codes, characters, syntactic
from whyscore.metrics.mee.words import Counts, Matcher, Pair, aligned

_KEPT = 65_536

Value = TypeVar("Value")


class Lexical(NamedTuple):
    """The word matches of one pair."""

    counts: Counts
    unknown: float
    """The share of words without a vector among those looked up."""


class _Memory:
    """Answers by part and pair, the oldest dropped first."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, Pair], object] = {}

    def answered(
        self, part: str | None, pairs: Iterable[Pair], compute: Callable[[list[Pair]], Mapping[Pair, Value]]
    ) -> dict[Pair, Value]:
        """Return an answer for each distinct pair; those not remembered are computed in one call."""
        asked = list(dict.fromkeys(pairs))
        if part is None:
            return dict(compute(asked)) if asked else {}
        known = {pair: self._held[part, pair] for pair in asked if (part, pair) in self._held}
        missing = [pair for pair in asked if pair not in known]
        found: dict[Pair, Value] = {**known, **(compute(missing) if missing else {})}  # type: ignore[dict-item]
        for pair in missing:
            self._held[part, pair] = found[pair]
        for oldest in list(self._held)[: max(0, len(self._held) - _KEPT)]:
            del self._held[oldest]
        return found

    def forget(self) -> None:
        """Drop everything."""
        self._held.clear()


_lexical, _syntax, _context = _Memory(), _Memory(), _Memory()


def forget() -> None:
    """Drop all pairs that are remembered, for measurements and tests."""
    for memory in (_lexical, _syntax, _context):
        memory.forget()


def lexical(matcher: Matcher, pairs: Sequence[Pair]) -> dict[Pair, Lexical]:
    """Return the word matches of each distinct pair."""

    def compute(missing: list[Pair]) -> dict[Pair, Lexical]:
        return {pair: Lexical(one.counts, one.unknown) for pair, one in aligned(matcher, missing).items()}

    return _lexical.answered(_key(matcher), pairs, compute)


def syntax(matcher: Matcher, pairs: Sequence[Pair]) -> dict[Pair, float]:
    """Return Syn of each distinct pair: over words in `paper`, over characters of the stripped texts in `compat`."""

    def compute(missing: list[Pair]) -> dict[Pair, float]:
        codes = _codes(matcher, dict.fromkeys(text for pair in missing for text in pair))
        values = syntactic([(codes[own], codes[other]) for own, other in missing])
        return dict(zip(missing, values.tolist(), strict=True))

    words = _cutting(matcher) if matcher.mode == "paper" else f"characters {matcher.lowercase} {matcher.normalise}"
    return _syntax.answered(words, pairs, compute)


def context(matcher: Matcher, encoder: object, pairs: Sequence[Pair]) -> dict[Pair, float]:
    """Return Cxt of each distinct pair: clipped to 0 .. 1 in `paper`; 0 where both texts are blank."""

    def compute(missing: list[Pair]) -> dict[Pair, float]:
        return dict(zip(missing, contextual(encoder, missing).tolist(), strict=True))

    read = {pair: (_read(matcher, pair[0]), _read(matcher, pair[1])) for pair in pairs}
    some = {pair: texts for pair, texts in read.items() if any(text.strip() for text in texts)}
    signature = encoder_signature(encoder)
    cosines = _context.answered(str(signature) if signature.stable else None, some.values(), compute)
    found = dict.fromkeys(pairs, 0.0) | {pair: cosines[texts] for pair, texts in some.items()}
    if matcher.mode == "compat":
        return found
    return {pair: min(1.0, max(0.0, cosine)) for pair, cosine in found.items()}


def _read(matcher: Matcher, text: str) -> str:
    """Return a text as the encoder reads it: case is never changed."""
    given = text.strip() if matcher.mode == "compat" else text
    return matcher.normalised(given)


def _codes(matcher: Matcher, texts: Iterable[str]) -> dict[str, Codes]:
    if matcher.mode == "compat":
        return {text: characters(matcher.form(text.strip())) for text in texts}
    numbers: dict[str, int] = {}
    return {
        text: np.array([numbers.setdefault(matcher.form(word), len(numbers)) for word in matcher.cut(text)], np.int64)
        for text in texts
    }


def _key(matcher: Matcher) -> str | None:
    return repr(matcher.facts()) if matcher.stable else None


def _cutting(matcher: Matcher) -> str:
    facts = matcher.facts()
    return f"words {facts['segmenter']} {facts['case']} {facts['norm']}"
