"""Greedy matching of the units of two texts, the arithmetic behind BERTScore (Zhang et al. 2020, arXiv 1904.09675).

1. S = cosines between all phrases of both texts. A phrase is a run of 1, 2 ... units; with pieces as units and runs of
   one this is BERTScore.
2. Each phrase has the cosine of its best counterpart in the other text, of whatever length that is.
3. A unit has, for each length of run, the mean over the runs it stands in; its similarity is the mean over the lengths
   and, where the whole texts have vectors, their cosine.
4. Precision is the weighted mean similarity of the hypothesis' units, recall that of the other text, and
   F = 2PR / (P + R), 0 where P + R is 0. A text without a unit that counts matches nothing: P = R = F = 0.

All of it is float64, from vectors in float32. A zero vector has cosine 0 with everything.

Each distinct text is encoded once, each distinct pair matched once, and both are kept while there is memory for them.

Pieces as units: all pieces of the model's tokenizer. Special ones are left out (`exclude`), weigh nothing but can be
the best match (`weightless`), or count like the others (`include`). The piece with which multilingual models mark a
language (en_XX) is special, but counts where special ones are weightless, as in the published code; so does the end
piece of tokenizers that know no beginning (T5).

Words as units, in phrases:

1. A unit is a white-space word; where the script has no blanks, a piece. No unit reaches over a blank. Its weight is
   log(1 + its surprisal), the sum over its pieces of -log p in the encoder's own unigram model, or 1 for encoders
   without one.
2. Runs of 1 to `orders` units have the vector that the model itself would pool from their pieces, seen in the text
   (`whyscore.models.encoders.embedded`), and so has the whole text.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress
from typing import Literal, NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray

from whyscore.models.encoders.embedded import Surprising, code, mean_phrases, pool_phrases, pools_itself
from whyscore.models.exact import multiply_rows
from whyscore.models.pairs import Pinned
from whyscore.protocols import Encoded, Encoder, SupportsLengths
from whyscore.text.alignment import BOUNDARY_MARKS, Pieces
from whyscore.text.splitters import white_space
from whyscore.types import FloatMatrix, FloatVector


class Sided(NamedTuple):
    """One text, ready to be matched."""

    text: str
    spans: NDArray[np.int64]
    """Where each unit stands; empty for special pieces."""
    pieces: tuple[str, ...]
    """How each unit is written."""
    weights: FloatVector
    """How much each unit counts; all 0 where the text says nothing."""
    special: NDArray[np.bool_]
    """Which units stand for nothing in the text."""
    runs: tuple[int, ...]
    """How many runs there are of 1, 2 ... units; their vectors follow one another."""
    vectors: NDArray[np.float32]
    """Of the runs."""
    lengths: FloatVector
    """Of these vectors; 1 for a zero vector."""
    whole: FloatVector | None = None
    """Of the whole text, of unit length."""
    seen: int | None = None
    """Where the model stopped reading; None for the end of the text."""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to match."""
        return not bool(self.weights.any())

    @property
    def nbytes(self) -> int:
        """How much memory the vectors take."""
        return self.vectors.nbytes


class Matched(NamedTuple):
    """What the units of a text find in the text they are matched with."""

    similarity: FloatVector
    """The similarity of each unit."""
    best: NDArray[np.intp]
    """The run of the other text that is most similar to each unit."""
    cosine: FloatVector
    """Its cosine with the unit."""


class Pair(NamedTuple):
    """A matched pair of texts."""

    other: Matched
    hypothesis: Matched

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return sum(values.nbytes for side in self for values in side)


class Numbers(NamedTuple):
    """What a pair scores."""

    precision: float
    recall: float
    f: float


NOTHING = Numbers(0.0, 0.0, 0.0)


def lengths_of(vectors: NDArray[np.float32]) -> FloatVector:
    """Return the length of each row; 1 for rows of zeros, which stay as they are when they are divided by it.

    >>> lengths_of(np.array([[3, 4], [0, 0]], dtype=np.float32))
    array([5., 1.])
    """
    rows = vectors.astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return np.where(lengths > 0, lengths, 1.0)


def cosines(other: Sided, hypothesis: Sided) -> FloatMatrix:
    """Return the cosine of every run of the other text with every run of the hypothesis."""
    products = multiply_rows(other.vectors, hypothesis.vectors)
    products /= other.lengths[:, None]
    products /= hypothesis.lengths
    return products


def match(other: Sided, hypothesis: Sided) -> Pair | None:
    """Return the matched pair; None where one of the texts has nothing to match."""
    if other.empty or hypothesis.empty:
        return None
    return _match(other, hypothesis)


def _match(other: Sided, hypothesis: Sided) -> Pair:
    table = cosines(other, hypothesis)
    both = other.whole is not None and hypothesis.whole is not None
    whole = [float(other.whole @ hypothesis.whole)] if both else []  # type: ignore[operator]
    return match_table(table, other.runs, hypothesis.runs, whole)


def match_table(
    table: FloatMatrix, other: Sequence[int], hypothesis: Sequence[int], whole: Sequence[float] = ()
) -> Pair:
    """Return what both texts find, from the cosines of their runs, the runs of each length and the whole texts'."""
    return Pair(_matched(table, other, whole), _matched(table.T, hypothesis, whole))


def numbers(pair: Pair | None, other: FloatVector, hypothesis: FloatVector) -> Numbers:
    """Return precision, recall and F of a pair, from it and the weights of both texts."""
    if pair is None:
        return NOTHING
    precision, recall = _mean(pair.hypothesis.similarity, hypothesis), _mean(pair.other.similarity, other)
    return Numbers(precision, recall, harmonic(precision, recall))


def best_of_each(rows: Sequence[Numbers]) -> Numbers:
    """Return the best of each number over several references."""
    return Numbers(*(max(column) for column in zip(*rows, strict=True)))


def harmonic(precision: float, recall: float) -> float:
    """Return the F-score; 0 where both cancel out."""
    total = precision + recall
    return 2 * precision * recall / total if total else 0.0


def spread(values: FloatVector, units: int) -> FloatVector:
    """Return for each unit the mean over the runs it stands in, from one value per run of one length.

    >>> spread(np.array([1.0, 3.0]), 3)
    array([1., 2., 3.])
    """
    if len(values) == units:
        return values
    first, after, counts = _runs_around(units, len(values))
    running = np.zeros(len(values) + 1)
    np.cumsum(values, out=running[1:])
    result: FloatVector = (running[after] - running[first]) / counts
    return result


@lru_cache(maxsize=1024)
def _runs_around(units: int, runs: int) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Return the first run each unit stands in, the one after the last, and how many these are."""
    places = np.arange(units)
    first, after = np.maximum(places - (units - runs), 0), np.minimum(places + 1, runs)
    return first, after, after - first


def _matched(table: FloatMatrix, runs: Sequence[int], whole: Sequence[float]) -> Matched:
    """Return what a text finds, from the cosines of its runs with those of the other text."""
    best = table[: runs[0]].argmax(axis=1)
    return Matched(_similarity(table.max(axis=1), runs, whole), best, table[np.arange(len(best)), best])


def _similarity(best: FloatVector, runs: Sequence[int], whole: Sequence[float]) -> FloatVector:
    """Return the similarity of each unit from the best cosine of each run."""
    if len(runs) == 1 and not whole:
        return best
    total, start = np.zeros(runs[0]), 0
    for number in runs:
        total += spread(best[start : start + number], runs[0])
        start += number
    result: FloatVector = (total + sum(whole)) / (len(runs) + len(whole))
    return result


def _mean(values: FloatVector, weights: FloatVector) -> float:
    return float(values @ weights / weights.sum())


Specials = Literal["weightless", "exclude", "include"]
Weigh = Callable[[Sequence[str]], FloatVector]
"""Pieces -> how much each counts."""

# Characters of the texts that are prepared at a time, which bounds the memory: some 50,000 pieces.
_WINDOW = 200_000
# Multilingual models mark the language of a text by a special piece: en_XX, __en__.
_CODE = regex.compile(r"[a-z]{2,3}_[A-Z][A-Za-z]{1,3}|__[a-z]{2,3}__")


class InContext(NamedTuple):
    """A text, and those that stand before it in its document: they are read with it, but not matched."""

    text: str
    before: tuple[str, ...] = ()

    @property
    def joined(self) -> str:
        """What the model reads: blanks between the texts."""
        return " ".join((*self.before, self.text))

    @property
    def key(self) -> str:
        """A name that no other text in context has."""
        return "".join(f"{len(text)}:{text}" for text in (*self.before, self.text))


class Both(NamedTuple):
    """Two texts, ready to be matched."""

    other: Sided
    hypothesis: Sided
    key: str
    """A name that no other two texts have."""


@dataclass(frozen=True, eq=False)
class Reader:
    """Prepares texts, each distinct one once for as long as it is remembered.

    A text in context is encoded behind the texts before it; then only its own units are kept, and the vector of the
    whole text is that of the text alone. Where they are too long for the model together, the first are left out.
    """

    encoder: Encoder
    prepare: Callable[[Sequence[str]], list[Sided]]
    pinned: Pinned[Sided]
    in_context: Pinned[Sided]
    matches: Pinned[Pair]

    def pairs(self, pairs: Sequence[tuple[InContext, InContext]]) -> Iterator[Both]:
        """Yield both texts of each pair, in the order asked."""
        for window in _windows(pairs):
            # One side after the other: texts of one language share more pieces.
            texts = [text for side in zip(*window, strict=True) for text in side]
            alone = self.pinned.take((text.text for text in texts), self.prepare)
            ready = self._read_behind({text.key: text for text in texts if text.before}, alone)
            for pair in window:
                other, hypothesis = (ready[text.key] if text.before else alone[text.text] for text in pair)
                yield Both(other, hypothesis, pair[0].key + pair[1].key)

    def match(self, texts: Both) -> Pair | None:
        """Return the matched pair, each distinct one matched once for as long as it is remembered."""
        if texts.other.empty or texts.hypothesis.empty:
            return None
        return self.matches.take([texts.key], lambda _: [_match(texts.other, texts.hypothesis)])[texts.key]

    def _read_behind(self, texts: Mapping[str, InContext], alone: Mapping[str, Sided]) -> dict[str, Sided]:
        def compute(keys: list[str]) -> list[Sided]:
            fitted = self._fit([texts[key] for key in keys])
            joined = iter(self.prepare([text.joined for text in fitted if text.before]))
            return [
                _cut_context(next(joined), text, alone[text.text]) if text.before else alone[text.text]
                for text in fitted
            ]

        return self.in_context.take(texts, compute)

    def _fit(self, texts: Sequence[InContext]) -> list[InContext]:
        """Return the texts with as much before them as the model reads at once."""
        if not isinstance(self.encoder, SupportsLengths):
            return list(texts)
        fitted = list(texts)
        long = list(range(len(texts)))
        while long:
            lengths = self.encoder.lengths([fitted[k].joined for k in long])
            long = [k for k, (read, total) in zip(long, lengths, strict=True) if read < total and fitted[k].before]
            for k in long:
                fitted[k] = fitted[k]._replace(before=fitted[k].before[1:])
        return fitted


def _cut_context(joined: Sided, text: InContext, alone: Sided) -> Sided:
    """Return the units of a text out of those of the text behind its context; special pieces stay."""
    offset = len(text.joined) - len(text.text)
    kept = joined.special | (joined.spans[:, 1] > offset)
    units = joined.runs[0]
    # A run is kept where all of its units are.
    runs = [
        np.lib.stride_tricks.sliding_window_view(kept, length).all(axis=1) if units else kept[:0]
        for length in range(1, len(joined.runs) + 1)
    ]
    counts = [int(run.sum()) for run in runs]
    rows = np.concatenate(runs)
    return Sided(
        text.text,
        np.maximum(joined.spans[kept] - offset, 0),
        tuple(compress(joined.pieces, kept)),
        joined.weights[kept],
        joined.special[kept],
        (counts[0], *(count for count in counts[1:] if count)),
        joined.vectors[rows],
        joined.lengths[rows],
        alone.whole,
        alone.seen,
    )


def _windows(pairs: Sequence[tuple[InContext, InContext]]) -> Iterator[Sequence[tuple[InContext, InContext]]]:
    """Yield the pairs in groups of bounded size."""
    start = size = 0
    for number, pair in enumerate(pairs):
        size += sum(len(text) for side in pair for text in (side.text, *side.before))
        if size > _WINDOW:
            yield pairs[start : number + 1]
            start, size = number + 1, 0
    if start < len(pairs):
        yield pairs[start:]


def by_pieces(texts: Sequence[str], encoder: Encoder, specials: Specials, weigh: Weigh | None = None) -> list[Sided]:
    """Return the texts with their pieces as units; `weigh` gives weights, 1 each without it."""
    return [
        _of_pieces(text, encoded, specials, weigh) for text, encoded in zip(texts, encoder.encode(texts), strict=True)
    ]


def _of_pieces(text: str, encoded: Encoded, specials: Specials, weigh: Weigh | None) -> Sided:
    kept = ~encoded.special if specials == "exclude" else np.ones(len(encoded.pieces), dtype=np.bool_)
    pieces = encoded.pieces if kept.all() else tuple(np.array(encoded.pieces, dtype=object)[kept].tolist())
    weights = np.ones(len(pieces)) if weigh is None else weigh(pieces)
    special = encoded.special[kept]
    if special.all():
        weights = np.zeros(len(pieces))
    elif specials == "weightless":
        weights = np.where(_weightless(special, pieces), 0.0, weights)
    vectors = encoded.vectors[kept]
    return Sided(
        text,
        encoded.spans[kept],
        pieces,
        weights,
        special,
        (len(pieces),),
        vectors,
        lengths_of(vectors),
        seen=seen_of(encoded),
    )


def _weightless(special: NDArray[np.bool_], pieces: Sequence[str]) -> list[bool]:
    """Return which pieces weigh nothing: those that begin and end texts, where a tokenizer has both."""
    if not special[0]:
        return [False] * len(pieces)
    return [flag and not _CODE.fullmatch(piece) for flag, piece in zip(special.tolist(), pieces, strict=True)]


def pieces_of(encoded: Encoded) -> Pieces:
    """Return the pieces of a text, special ones left out, as words are pooled from."""
    spans = [(start, end) for start, end in encoded.spans[~encoded.special].tolist()]
    return Pieces(spans, list(compress(encoded.pieces, ~encoded.special)), seen=seen_of(encoded))


def seen_of(encoded: Encoded) -> int | None:
    """Return where the model stopped reading; None for the end of the text."""
    if encoded.total == len(encoded.pieces):
        return None
    return int(encoded.spans[~encoded.special, 1].max(initial=0))


_NO_BLANKS = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")


def by_phrases(texts: Sequence[str], encoder: Encoder, orders: int) -> list[Sided]:
    """Return the texts with their words as units, in phrases of up to `orders` words."""
    if pools_itself(encoder):
        coded = [code(text) for text in texts]
        cuts = [_units(text.text, text.names, text.places) for text in coded]
        pooled = pool_phrases(coded, [_ranges(cut.edges, orders) for cut in cuts])
        return [_make_sided(cut, phrases.vectors, encoder, orders) for cut, phrases in zip(cuts, pooled, strict=True)]
    result = []
    for text, encoded in zip(texts, encoder.encode(texts), strict=True):
        cut = _units(text, list(compress(encoded.pieces, ~encoded.special)), encoded.spans[~encoded.special])
        rows = mean_phrases(encoded, _ranges(cut.edges, orders))
        result.append(_make_sided(cut, rows, encoder, orders)._replace(seen=seen_of(encoded)))
    return result


class _Units(NamedTuple):
    """The units of a text as groups of neighbouring pieces, special pieces not counted."""

    text: str
    pieces: list[str]
    edges: NDArray[np.intp]
    """The first piece of each unit, and the number of pieces."""
    spans: NDArray[np.int64]

    @property
    def number(self) -> int:
        """How many units there are."""
        return len(self.spans)


def _units(text: str, pieces: list[str], spans: NDArray[np.int64]) -> _Units:
    """Return the words of a text, or its pieces where the script has no blanks."""
    starts = np.array([start for start, _ in white_space(text).spans], dtype=np.int64)
    blank = np.array([not text[start:end].strip() for start, end in spans.tolist()], dtype=np.bool_)
    # A piece that covers no letter, the mark before a word, belongs to the word that follows; all others end in theirs.
    following = np.minimum(np.searchsorted(starts, spans[:, 1], side="left") + 1, len(starts))
    word = np.where(blank, following, np.searchsorted(starts, spans[:, 1] - 1, side="right"))
    apart = np.zeros(len(spans), dtype=np.bool_)
    if _NO_BLANKS.search(text):
        apart[:] = [_NO_BLANKS.search(text, start, end) is not None for start, end in spans.tolist()]
    weak = np.array([not piece.strip(BOUNDARY_MARKS + " ") for piece in pieces], dtype=np.bool_)
    first = np.ones(len(pieces), dtype=np.bool_)
    first[1:] = (word[1:] != word[:-1]) | (~weak[:-1] & (apart[1:] | apart[:-1]))
    edges = np.append(np.flatnonzero(first), len(pieces)).astype(np.intp)
    return _Units(text, pieces, edges, np.column_stack([spans[edges[:-1], 0], spans[edges[1:] - 1, 1]]))


def _ranges(edges: NDArray[np.intp], orders: int) -> NDArray[np.intp]:
    """Return first piece and end of all runs of 1 to `orders` units, and of the whole text as the last row."""
    counts = _counts(len(edges) - 1, orders)
    parts = [np.column_stack([edges[:count], edges[length : length + count]]) for length, count in enumerate(counts, 1)]
    return np.concatenate([*parts, [[0, edges[-1]]]]).astype(np.intp)


def _counts(units: int, orders: int) -> tuple[int, ...]:
    """Return how many runs of each length there are; lengths without any are left out.

    >>> _counts(4, 3), _counts(2, 3), _counts(0, 3)
    ((4, 3, 2), (2, 1), (0,))
    """
    return tuple(units - length + 1 for length in range(1, max(min(orders, units), 1) + 1))


def _weights(cut: _Units, encoder: Encoder) -> FloatVector:
    if not isinstance(encoder, Surprising) or not cut.number:
        return np.ones(cut.number)
    return np.log1p(np.add.reduceat(encoder.surprisal(cut.pieces), cut.edges[:-1]))


def _make_sided(cut: _Units, rows: NDArray[np.float32], encoder: Encoder, orders: int) -> Sided:
    vectors, whole = rows[:-1], rows[-1].astype(np.float64)
    return Sided(
        cut.text,
        cut.spans,
        tuple(cut.text[start:end].strip() for start, end in cut.spans.tolist()),
        _weights(cut, encoder),
        np.zeros(cut.number, dtype=np.bool_),
        _counts(cut.number, orders),
        vectors,
        lengths_of(vectors),
        whole / (np.sqrt(whole @ whole) or 1.0),
    )
