"""The embedded encoder: Google's universal-sentence-encoder-multilingual v3 (Yang et al. 2020, arXiv 1907.04307).

Small (33 MB), on numpy alone, offline, for 16 languages: Arabic, Chinese (both scripts), Dutch, English, French,
German, Italian, Japanese, Korean, Polish, Portuguese, Russian, Spanish, Thai and Turkish.

1. Cut each distinct text into SentencePiece pieces with exact offsets (`unigram`), between a begin and an end piece.
2. Vectors of the pieces, all texts of a window at once (`ngram_network`):
   layer 0, "static": the table's vector of the piece, 512 numbers, the same wherever it stands;
   layer 1, "features": static vector and n-gram convolutions over up to four neighbours each side, 1,280 numbers;
   layer 2, "projected": the 512 numbers whose sum over a text is all that its sentence vector is made of.
3. The pooled vector of a text is the model's own sentence vector, whatever the layer.

The text of a piece without a letter in the vocabulary is `<unk>`. A text without pieces (blank) is read by the model
as one unknown piece; it counts as special here, as it stands for nothing in the text.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whyscore.errors import SpecError
from whyscore.models import embedded_package as package
from whyscore.models import ngram_network as network
from whyscore.models.unigram import Segmenter
from whyscore.options import check_fields
from whyscore.protocols import Encoded
from whyscore.registry import spec_of
from whyscore.types import FloatVector, Signature

LAYERS = ("static", "features", "projected")

# Pieces of a window: it bounds the memory (about 15 KB for each distinct piece) and shares work within it.
_WINDOW = 2048


@dataclass(frozen=True, slots=True)
class Embedded:
    """Multilingual vectors without torch or a download.

    Args:
        layer: 0 static vectors, 1 n-gram features, 2 projected features.
    """

    layer: int = 2

    def __post_init__(self) -> None:
        """Refuse layers that do not exist."""
        check_fields(self)
        if not 0 <= self.layer < len(LAYERS):
            meant = ", ".join(f"{number} ({name})" for number, name in enumerate(LAYERS))
            raise SpecError(f"embedded: layer is {self.layer}, expected {meant}")

    def signature(self) -> Signature:
        """Return the spec, the package and its licence."""
        facts = (
            ("rev", f"{package.PACKAGE}-{package.VERSION}"),
            ("layer", f"{self.layer}-{LAYERS[self.layer]}"),
            ("prec", "fp32"),
            ("licence", package.LICENCE),
        )
        return Signature(spec_of(self), facts)

    def languages(self) -> frozenset[str]:
        """Return the languages the model was trained on."""
        return package.LANGUAGES

    def encode(self, texts: Sequence[str]) -> list[Encoded]:
        """Return the pieces of each text with their vectors."""
        found: dict[str, Encoded] = {}
        weights = package.parts().weights
        for window in _windows(dict.fromkeys(texts)):
            rows = self._rows(weights, window)
            found |= zip(window.texts, _encoded(window, rows), strict=True)
        return [found[text] for text in texts]

    def pooled(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the model's sentence vector of each text, 512 numbers of unit length."""
        distinct = list(dict.fromkeys(texts))
        weights = package.parts().weights
        blocks = [
            network.pooled(weights, network.features(weights, window.pieces, window.lengths), window.lengths)
            for window in _windows(distinct)
        ]
        place = {text: number for number, text in enumerate(distinct)}
        vectors = np.concatenate([np.empty((0, weights.outer.shape[1]), dtype=np.float32), *blocks])
        return vectors[[place[text] for text in texts]]

    def surprisal(self, pieces: Sequence[str]) -> FloatVector:
        """Return -log p of each piece in the unigram model, a weight like idf that needs no corpus.

        Special pieces weigh 0, pieces that are not in the vocabulary as much as its rarest.
        """
        known, rarest = _surprisal()
        return np.array([known.get(piece, rarest) for piece in pieces], dtype=np.float64)

    def _rows(self, weights: network.Weights, window: "_Window") -> network.Rows:
        if self.layer == 0:
            return network.static(weights, window.pieces)
        rows = network.features(weights, window.pieces, window.lengths)
        return rows if self.layer == 1 else network.projected(weights, rows)


class _Window(NamedTuple):
    """Texts that are computed together; their pieces follow one another."""

    texts: list[str]
    pieces: NDArray[np.intp]
    spans: NDArray[np.int64]
    special: NDArray[np.bool_]
    lengths: list[int]


class _Coded(NamedTuple):
    """A text as pieces, begin and end included."""

    text: str
    pieces: list[int]
    spans: list[tuple[int, int]]
    special: list[bool]


@lru_cache(maxsize=1)
def _segmenter() -> Segmenter:
    return Segmenter(package.parts().vocabulary)


@lru_cache(maxsize=1)
def _surprisal() -> tuple[dict[str, float], float]:
    """Return -log p of each known piece, and the largest of them."""
    vocabulary = package.parts().vocabulary
    known = {piece: -score for piece, score in zip(vocabulary.pieces, vocabulary.scores, strict=True)}
    del known[vocabulary.pieces[vocabulary.unknown]]
    return known, max(known.values())


def _coded(text: str) -> _Coded:
    vocabulary = package.parts().vocabulary
    pieces, spans = _segmenter().cut(text)
    end = len(text)
    return _Coded(
        text,
        [vocabulary.begin, *(pieces or (vocabulary.unknown,)), vocabulary.end],
        [(0, 0), *(spans or ((end, end),)), (end, end)],
        [True, *(False for _ in pieces), True] if pieces else [True, True, True],
    )


def _windows(texts: Sequence[str] | dict[str, None]) -> Iterator[_Window]:
    """Yield the texts in their order, cut into pieces, in groups of bounded size."""
    group: list[_Coded] = []
    size = 0
    for text in texts:
        coded = _coded(text)
        if group and size + len(coded.pieces) > _WINDOW:
            yield _window(group)
            group, size = [], 0
        group.append(coded)
        size += len(coded.pieces)
    if group:
        yield _window(group)


def _window(group: Sequence[_Coded]) -> _Window:
    return _Window(
        [coded.text for coded in group],
        np.array([piece for coded in group for piece in coded.pieces], dtype=np.intp),
        np.array([span for coded in group for span in coded.spans], dtype=np.int64),
        np.array([flag for coded in group for flag in coded.special], dtype=np.bool_),
        [len(coded.pieces) for coded in group],
    )


def _encoded(window: _Window, rows: network.Rows) -> Iterator[Encoded]:
    names = package.parts().vocabulary.pieces
    vectors = rows.distinct[rows.of]
    start = 0
    for length in window.lengths:
        part = slice(start, start + length)
        pieces = tuple(names[piece] for piece in window.pieces[part].tolist())
        yield Encoded(vectors[part], window.spans[part], pieces, window.special[part], length)
        start += length
