"""The parts of MEE, MEE2 and MEE4, computed once and shared by the three.

Pairs of texts that were asked about lately are remembered by their content and by everything that decides the part
(the facts of the signature), so that `mee mee2 mee4` cut, align and encode each pair once. What is remembered is what
would be computed again: no number depends on it. Parts that a signature cannot name (vectors of the caller) are never
remembered. At most 65,536 pairs are kept for each part, the oldest go first.

The contextual part is the cosine of the sentence vectors of hypothesis and reference. The encoder is named by the user
or is the default of the mode; no other one steps in where it is missing. Vectors are taken as they come (float32),
cosines are computed in float64, and a vector of zeros has the cosine 0.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TypeVar, cast

import numpy as np

from whyscore.errors import ContractError, SpecError
from whyscore.metrics.mee.syntax import Codes, characters, syntactic
from whyscore.metrics.mee.words import Counts, Matcher, Pair, aligned
from whyscore.models.encoders.embedded import Embedded
from whyscore.models.encoders.loading import encoder
from whyscore.models.encoders.sentence import MODULES, Sentence
from whyscore.models.encoders.static import Static
from whyscore.types import FloatMatrix, FloatVector, Signature

_SHORT_NAMES = {"LaBSE": "sentence-transformers/LaBSE"}


def sentence_encoder(given: object) -> object:
    """Return the encoder that a name or an object stands for.

    >>> sentence_encoder("LaBSE").model
    'sentence-transformers/LaBSE'
    """
    if not isinstance(given, str):
        if callable(given) or hasattr(given, "pooled") or hasattr(given, "encode"):
            return given
        raise SpecError(
            f"sentences is {given!r}, expected 'embedded', 'LaBSE', a model of sentence-transformers, a function of "
            "texts, or an object with pooled() or encode()"
        )
    if given in ("embedded", "static"):
        return encoder(given)
    folder = Path(given).expanduser()
    if folder.is_dir() and not (folder / MODULES).is_file():
        return encoder(given)
    return Sentence(_SHORT_NAMES.get(given, given))


def encoder_signature(given: object) -> Signature:
    """Return the encoder's own signature; one that names nothing where it has none."""
    if isinstance(given, Embedded | Static):
        return _small_signature(given)
    if hasattr(given, "signature"):
        return cast("Signature", given.signature())
    return Signature(f"{getattr(given, '__name__', type(given).__name__)}-of-the-caller", stable=False)


@lru_cache(maxsize=8)
def _small_signature(given: Embedded | Static) -> Signature:
    """Return the signature of an encoder that cannot change, asked for once: it is looked at in every call."""
    return given.signature()


def contextual(given: object, pairs: Sequence[Pair]) -> FloatVector:
    """Return the cosine of each pair of texts; each distinct text is encoded once, all in one call."""
    distinct = list(dict.fromkeys(text for pair in pairs for text in pair))
    if not distinct:
        return np.empty(0, dtype=np.float64)
    vectors = _vectors(given, distinct)
    lengths = np.linalg.norm(vectors, axis=1)
    rows = {text: row for row, text in enumerate(distinct)}
    own, other = (np.array([rows[pair[k]] for pair in pairs], dtype=np.intp) for k in (0, 1))
    whole = lengths[own] * lengths[other]
    products = np.einsum("ij,ij->i", vectors[own], vectors[other])
    cosines: FloatVector = np.where(whole > 0, products / np.where(whole > 0, whole, 1.0), 0.0)
    return cosines


def _vectors(given: object, texts: Sequence[str]) -> FloatMatrix:
    ask = getattr(given, "pooled", None) or getattr(given, "encode", None) or given
    vectors = np.asarray(cast("Callable[[Sequence[str]], object]", ask)(texts), dtype=np.float64)
    if vectors.ndim != 2 or len(vectors) != len(texts):  # noqa: PLR2004 - a matrix
        raise ContractError(
            f"{encoder_signature(given).spec} was asked for the vectors of {len(texts)} texts and gave the shape "
            f"{vectors.shape}, expected ({len(texts)}, width)"
        )
    if not np.isfinite(vectors).all():
        number = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
        raise ContractError(
            f"{encoder_signature(given).spec} gave a vector that is not finite for {texts[number][:60]!r}"
        )
    return vectors


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
