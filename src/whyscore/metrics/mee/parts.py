"""The parts of MEE, MEE2 and MEE4, computed once and shared by the three.

Pairs of texts that were asked about lately are remembered by their content and by everything that decides the part
(the facts of the signature), so that `mee mee2 mee4` cut, align and encode each pair once. What is remembered is what
would be computed again: no number depends on it. Parts that a signature cannot name (vectors of the caller) are never
remembered. At most 65,536 pairs are kept for each part, the oldest go first.

The contextual part is the cosine of the sentence vectors of hypothesis and reference. The encoder is named by the user
or is the default of the mode; no other one steps in where it is missing. Vectors are taken as they come (float32),
cosines are computed in float64, and a vector of zeros has the cosine 0.

The syntactic part of MEE2 and MEE4 (Mukherjee and Shrivastava 2022): BLEU whose order grows with the reference.

    Syn = BP exp(1/n sum_k log p_k),   p_k = clipped matches of order k / max(1, h - k + 1),   k = 1 .. n

h and r are the lengths of hypothesis and reference (words or characters), n = max(1, ceil(r / 3)), BP = 1 if h > r and
exp(1 - r/h) else. The j-th order without a match has p_k = ln(h) / (5 2^j max(1, h - k + 1)) if h > 1 (method 4 of Chen
and Cherry 2014) and is left out of the sum if h = 1. Without a match of order 1, and for an empty side, Syn is 0.

Counting n-grams of every order by their texts is quadratic. Here all pairs are counted together, order by order:

1. Every position of every text is a number: its class. Positions of one pair are in one class if the same n-gram begins
   there. An n-gram of order k is a class of order k - 1 and one more unit, so that classes are refined by sorting pairs
   of numbers; no n-gram is ever built.
2. A class that stands in one text only is dropped: no longer n-gram that begins there can match.
3. A class with one position in each text is a pair of positions, which is followed unit by unit without sorting.
4. The orders after the last match are a closed sum. Equal texts have 1 without counting.

All sums are sums of logarithms: the published code computes 2^j and fails for references of more than 3,060 characters.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from whyscore.errors import ContractError, SpecError
from whyscore.metrics.mee.words import Counts, Matcher, Pair, align_pairs
from whyscore.models.encoders.embedded import Embedded
from whyscore.models.encoders.loading import encoder
from whyscore.models.encoders.sentence import MODULES, Sentence
from whyscore.models.encoders.static import Static
from whyscore.types import FloatMatrix, FloatVector, Signature, split_by_size

Codes = NDArray[np.int64]
"""A text as numbers, one for each unit; equal units have equal numbers."""

# Units that are counted together: large enough to make numpy's overhead vanish, small enough for the caches.
_BLOCK = 1 << 17
_ORDERS_PER_UNIT = 3
_SMOOTHING = 5.0  # K of Chen and Cherry's method 4


def characters(text: str) -> Codes:
    """Return the code points of a text.

    >>> characters("ab").tolist()
    [97, 98]
    """
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(np.int64)


def order(length: int) -> int:
    """Return the order of the n-grams for a reference of that length.

    >>> [order(length) for length in (0, 1, 3, 4, 105)]
    [1, 1, 1, 2, 35]
    """
    return max(1, -(-length // _ORDERS_PER_UNIT))


def syntactic(pairs: Sequence[tuple[Codes, Codes]]) -> FloatVector:
    """Return Syn of each pair of hypothesis and reference.

    >>> syntactic([(characters("abcxyz"), characters("abcdef"))])
    array([0.4472136])
    """
    values = np.zeros(len(pairs), dtype=np.float64)
    some = [number for number, (hypothesis, reference) in enumerate(pairs) if len(hypothesis) and len(reference)]
    same = [number for number in some if np.array_equal(*pairs[number])]
    values[same] = 1.0
    for block in split_by_size(sorted(set(some) - set(same)), lambda number: sum(map(len, pairs[number])), _BLOCK):
        values[block] = _score_pairs([pairs[number] for number in block])
    return values


class _Matches(NamedTuple):
    """What is known of the orders of each pair."""

    logs: FloatVector
    """Sum of the logarithms of the clipped matches over the orders that have any."""
    orders: NDArray[np.int64]
    """How many orders have any."""


def _score_pairs(pairs: Sequence[tuple[Codes, Codes]]) -> FloatVector:
    lengths = np.array([len(hypothesis) for hypothesis, _ in pairs], dtype=np.int64)
    other = np.array([len(reference) for _, reference in pairs], dtype=np.int64)
    orders = np.maximum(1, -(-other // _ORDERS_PER_UNIT))
    matches = _matches(pairs, lengths, other, orders)
    missing = orders - matches.orders
    # ln(h) of h = 1 is 0; those orders are left out below.
    smoothed = np.log(np.where(lengths > 1, np.log(np.maximum(lengths, 2)), 1.0) / _SMOOTHING)
    unmatched = missing * smoothed - np.log(2.0) * missing * (missing + 1) / 2
    single = lengths == 1
    unmatched[single] = 0.0
    counted = np.where(single, matches.orders, orders)
    total = matches.logs + unmatched - _log_grams(lengths, counted)
    brevity = np.where(lengths > other, 0.0, 1.0 - other / lengths)
    return np.where(matches.orders > 0, np.exp(brevity + total / orders), 0.0)


def _log_grams(length: NDArray[np.int64], orders: NDArray[np.int64]) -> FloatVector:
    """Return the sum of log max(1, length - k + 1) over the orders k = 1 .. orders."""
    most = int(length.max())
    table = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, most + 1)))])
    difference: FloatVector = table[length] - table[np.maximum(0, length - orders)]
    return difference


def _matches(
    pairs: Sequence[tuple[Codes, Codes]], own: NDArray[np.int64], other: NDArray[np.int64], orders: NDArray[np.int64]
) -> _Matches:
    """Return the clipped matches of all orders, as far as the formula needs them."""
    lengths = np.stack([own, other], axis=1).ravel()
    ends = np.cumsum(lengths)
    total = int(ends[-1])
    # One row of units: hypothesis and reference of the first pair, of the second ...
    units, alphabet = _compact(np.concatenate([side for pair in pairs for side in pair]))
    pair_of = np.repeat(np.arange(len(pairs)), own + other)
    in_own = np.repeat(np.tile([True, False], len(pairs)), lengths)
    # How many units an n-gram that begins here may have: the rest of its text, and the order of its pair.
    room = np.minimum(np.repeat(ends, lengths) - np.arange(total), np.repeat(orders, own + other))
    state = _State(_Row(units, alphabet, pair_of, in_own, room), len(pairs))
    logs, count = np.zeros(len(pairs)), np.zeros(len(pairs), dtype=np.int64)
    while state.alive:
        matched = state.refine()
        some = matched > 0
        logs[some] += np.log(matched[some])
        count += some
    return _Matches(logs, count)


def _compact(codes: Codes) -> tuple[Codes, int]:
    """Return the codes as 0, 1, 2 ..., and how many there are."""
    distinct, compact = np.unique(codes, return_inverse=True)
    return compact.astype(np.int64).reshape(-1), len(distinct)


class _Row(NamedTuple):
    """All texts in one row: per position its unit, its pair, its side, and how long an n-gram may be."""

    units: Codes
    alphabet: int
    pair_of: NDArray[np.int64]
    in_own: NDArray[np.bool_]
    room: NDArray[np.int64]


class _State:
    """Which positions can still match, and in which classes."""

    def __init__(self, row: _Row, pairs: int) -> None:
        self._units, self._alphabet, self._pair_of, self._own, self._room = row
        self._pairs, self._order = pairs, 0
        self._bits = len(row.units).bit_length()
        self._mask = (1 << self._bits) - 1
        self._positions = np.arange(len(row.units))
        self._classes = row.pair_of
        self._single = np.empty((2, 0), dtype=np.int64)

    @property
    def alive(self) -> bool:
        """Whether a longer n-gram could match."""
        return bool(len(self._positions) or self._single.shape[1])

    def refine(self) -> FloatVector:
        """Go on to the next order and return the clipped matches of each pair."""
        matched = self._follow() + self._split_classes()
        self._order += 1
        longer = self._room[self._positions] > self._order
        self._positions, self._classes = self._positions[longer], self._classes[longer]
        return matched

    def _follow(self) -> FloatVector:
        """Go on with the n-grams that stand once on each side."""
        here, there = self._single
        if not len(here):
            return np.zeros(self._pairs)
        fits = (self._room[here] > self._order) & (self._room[there] > self._order)
        self._single = self._single[:, fits]
        here, there = self._single + self._order
        self._single = self._single[:, self._units[here] == self._units[there]]
        return np.bincount(self._pair_of[self._single[0]], minlength=self._pairs).astype(np.float64)

    def _split_classes(self) -> FloatVector:
        """Split the classes by the next unit and keep those that stand on both sides more than once."""
        if not len(self._positions):
            return np.zeros(self._pairs)
        key = self._classes * self._alphabet + self._units[self._positions + self._order]
        # Class, unit and position in one number: sorting numbers is several times faster than sorting indices.
        packed = np.sort((key << self._bits) | self._positions)
        positions, key = packed & self._mask, packed >> self._bits
        first = np.empty(len(key), dtype=np.bool_)
        first[0] = True
        np.not_equal(key[1:], key[:-1], out=first[1:])
        starts = np.flatnonzero(first)
        size = np.diff(starts, append=len(key))
        # Positions of a class are in order, and the hypothesis stands before the reference.
        counts = np.add.reduceat(self._own[positions], starts, dtype=np.int64)
        clipped = np.minimum(counts, size - counts)
        matched: FloatVector = np.bincount(
            self._pair_of[positions[starts]], weights=clipped.astype(np.float64), minlength=self._pairs
        ).astype(np.float64, copy=False)
        self._keep(positions, starts, size, clipped)
        return matched

    def _keep(
        self,
        positions: NDArray[np.int64],
        starts: NDArray[np.int64],
        size: NDArray[np.int64],
        clipped: NDArray[np.int64],
    ) -> None:
        alone = (clipped == 1) & (size == 2)  # noqa: PLR2004 - one position on each side
        several = (clipped > 0) & ~alone
        first = starts[alone]
        self._single = np.concatenate([self._single, np.stack([positions[first], positions[first + 1]])], axis=1)
        self._positions = positions[np.repeat(several, size)]
        self._classes = np.repeat(np.arange(int(several.sum())), size[several])


_SHORT_NAMES = {"LaBSE": "sentence-transformers/LaBSE"}


def sentence_encoder(spec: object) -> object:
    """Return the encoder that a name or an object stands for.

    >>> sentence_encoder("LaBSE").model
    'sentence-transformers/LaBSE'
    """
    if not isinstance(spec, str):
        if callable(spec) or hasattr(spec, "pooled") or hasattr(spec, "encode"):
            return spec
        raise SpecError(
            f"sentences is {spec!r}, expected 'embedded', 'LaBSE', a model of sentence-transformers, a function of "
            "texts, or an object with pooled() or encode()"
        )
    if spec in ("embedded", "static"):
        return encoder(spec)
    folder = Path(spec).expanduser()
    if folder.is_dir() and not (folder / MODULES).is_file():
        return encoder(spec)
    return Sentence(_SHORT_NAMES.get(spec, spec))


def encoder_signature(encoder: object) -> Signature:
    """Return the encoder's own signature; one that names nothing where it has none."""
    if isinstance(encoder, Embedded | Static):
        return _small_signature(encoder)
    if hasattr(encoder, "signature"):
        return cast("Signature", encoder.signature())
    return Signature(f"{getattr(encoder, '__name__', type(encoder).__name__)}-of-the-caller", stable=False)


@lru_cache(maxsize=8)
def _small_signature(encoder: Embedded | Static) -> Signature:
    """Return the signature of an encoder that cannot change, asked for once: it is looked at in every call."""
    return encoder.signature()


def contextual(encoder: object, pairs: Sequence[Pair]) -> FloatVector:
    """Return the cosine of each pair of texts; each distinct text is encoded once, all in one call."""
    distinct = list(dict.fromkeys(text for pair in pairs for text in pair))
    if not distinct:
        return np.empty(0, dtype=np.float64)
    vectors = _vectors(encoder, distinct)
    lengths = np.linalg.norm(vectors, axis=1)
    rows = {text: row for row, text in enumerate(distinct)}
    hypotheses, references = (np.array([rows[pair[k]] for pair in pairs], dtype=np.intp) for k in (0, 1))
    whole = lengths[hypotheses] * lengths[references]
    products = np.einsum("ij,ij->i", vectors[hypotheses], vectors[references])
    cosines: FloatVector = np.where(whole > 0, products / np.where(whole > 0, whole, 1.0), 0.0)
    return cosines


def _vectors(encoder: object, texts: Sequence[str]) -> FloatMatrix:
    ask = getattr(encoder, "pooled", None) or getattr(encoder, "encode", None) or encoder
    vectors = np.asarray(cast("Callable[[Sequence[str]], object]", ask)(texts), dtype=np.float64)
    if vectors.ndim != 2 or len(vectors) != len(texts):  # noqa: PLR2004 - a matrix
        raise ContractError(
            f"{encoder_signature(encoder).spec} was asked for the vectors of {len(texts)} texts and gave the shape "
            f"{vectors.shape}, expected ({len(texts)}, width)"
        )
    if not np.isfinite(vectors).all():
        number = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
        raise ContractError(
            f"{encoder_signature(encoder).spec} gave a vector that is not finite for {texts[number][:60]!r}"
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

    def answer(
        self, part: str | None, pairs: Iterable[Pair], compute: Callable[[list[Pair]], Mapping[Pair, Value]]
    ) -> dict[Pair, Value]:
        """Return an answer for each distinct pair; those not remembered are computed in one call."""
        distinct = list(dict.fromkeys(pairs))
        if part is None:
            return dict(compute(distinct)) if distinct else {}
        remembered = {pair: self._held[part, pair] for pair in distinct if (part, pair) in self._held}
        missing = [pair for pair in distinct if pair not in remembered]
        answers: dict[Pair, Value] = {**remembered, **(compute(missing) if missing else {})}  # type: ignore[dict-item]
        for pair in missing:
            self._held[part, pair] = answers[pair]
        for oldest in list(self._held)[: max(0, len(self._held) - _KEPT)]:
            del self._held[oldest]
        return answers

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
        return {
            pair: Lexical(alignment.counts, alignment.unknown)
            for pair, alignment in align_pairs(matcher, missing).items()
        }

    return _lexical.answer(_key(matcher), pairs, compute)


def syntax(matcher: Matcher, pairs: Sequence[Pair]) -> dict[Pair, float]:
    """Return Syn of each distinct pair: over words in `paper`, over characters of the stripped texts in `compat`."""

    def compute(missing: list[Pair]) -> dict[Pair, float]:
        codes = _codes(matcher, dict.fromkeys(text for pair in missing for text in pair))
        values = syntactic([(codes[hypothesis], codes[reference]) for hypothesis, reference in missing])
        return dict(zip(missing, values.tolist(), strict=True))

    words = _cutting(matcher) if matcher.mode == "paper" else f"characters {matcher.lowercase} {matcher.normalise}"
    return _syntax.answer(words, pairs, compute)


def context(matcher: Matcher, encoder: object, pairs: Sequence[Pair]) -> dict[Pair, float]:
    """Return Cxt of each distinct pair: clipped to 0 .. 1 in `paper`; 0 where both texts are blank."""

    def compute(missing: list[Pair]) -> dict[Pair, float]:
        return dict(zip(missing, contextual(encoder, missing).tolist(), strict=True))

    read = {pair: (_read(matcher, pair[0]), _read(matcher, pair[1])) for pair in pairs}
    some = {pair: texts for pair, texts in read.items() if any(text.strip() for text in texts)}
    signature = encoder_signature(encoder)
    cosines = _context.answer(str(signature) if signature.stable else None, some.values(), compute)
    result = dict.fromkeys(pairs, 0.0) | {pair: cosines[texts] for pair, texts in some.items()}
    if matcher.mode == "compat":
        return result
    return {pair: min(1.0, max(0.0, cosine)) for pair, cosine in result.items()}


def _read(matcher: Matcher, text: str) -> str:
    """Return a text as the encoder reads it: case is never changed."""
    stripped = text.strip() if matcher.mode == "compat" else text
    return matcher.to_normal_form(stripped)


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
