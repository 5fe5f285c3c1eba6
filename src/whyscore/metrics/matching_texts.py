"""Texts on their way to being matched: each distinct text is encoded once, and kept while there is memory for it.

Pieces as units: all pieces of the model's tokenizer. Special ones are left out (`exclude`), weigh nothing but can be
the best match (`weightless`), or count like the others (`include`). The piece with which multilingual models mark a
language (en_XX) is special, but counts where special ones are weightless, as in the published code; so does the end
piece of tokenizers that know no beginning (T5).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import regex
from numpy.typing import NDArray

from whyscore.metrics.matching import Sided, lengths_of
from whyscore.models.pairs import Pinned
from whyscore.protocols import Encoded, Encoder
from whyscore.types import FloatVector

Specials = Literal["weightless", "exclude", "include"]
Weigh = Callable[[Sequence[str]], FloatVector]
"""Pieces -> how much each counts."""

# Characters of the texts that are prepared at a time, which bounds the memory: some 50,000 pieces.
_WINDOW = 200_000
# Multilingual models mark the language of a text by a special piece: en_XX, __en__.
_CODE = regex.compile(r"[a-z]{2,3}_[A-Z][A-Za-z]{1,3}|__[a-z]{2,3}__")


@dataclass(frozen=True, eq=False)
class Reader:
    """Prepares texts, each distinct one once for as long as it is remembered."""

    prepare: Callable[[Sequence[str]], list[Sided]]
    pinned: Pinned[Sided]

    def pairs(self, asked: Sequence[tuple[str, str]]) -> Iterator[tuple[Sided, Sided]]:
        """Yield both texts of each pair, in the order asked."""
        for window in _windows(asked):
            ready = self.pinned.take((text for pair in window for text in pair), self.prepare)
            for other, hypothesis in window:
                yield ready[other], ready[hypothesis]


def _windows(asked: Sequence[tuple[str, str]]) -> Iterator[Sequence[tuple[str, str]]]:
    """Yield the pairs in groups of bounded size."""
    start = held = 0
    for number, (other, hypothesis) in enumerate(asked):
        held += len(other) + len(hypothesis)
        if held > _WINDOW:
            yield asked[start : number + 1]
            start, held = number + 1, 0
    if start < len(asked):
        yield asked[start:]


def by_pieces(texts: Sequence[str], encoder: Encoder, specials: Specials, weigh: Weigh | None = None) -> list[Sided]:
    """Return the texts with their pieces as units; `weigh` gives weights, 1 each without it."""
    return [_of_pieces(text, own, specials, weigh) for text, own in zip(texts, encoder.encode(texts), strict=True)]


def _of_pieces(text: str, own: Encoded, specials: Specials, weigh: Weigh | None) -> Sided:
    kept = ~own.special if specials == "exclude" else np.ones(len(own.pieces), dtype=np.bool_)
    pieces = own.pieces if kept.all() else tuple(np.array(own.pieces, dtype=object)[kept].tolist())
    weights = np.ones(len(pieces)) if weigh is None else weigh(pieces)
    special = own.special[kept]
    if special.all():
        weights = np.zeros(len(pieces))
    elif specials == "weightless":
        weights = np.where(_weightless(special, pieces), 0.0, weights)
    vectors = own.vectors[kept]
    return Sided(
        text, own.spans[kept], pieces, weights, special, (len(pieces),), vectors, lengths_of(vectors), seen=seen_of(own)
    )


def _weightless(special: NDArray[np.bool_], pieces: Sequence[str]) -> list[bool]:
    """Return which pieces weigh nothing: those that begin and end texts, where a tokenizer has both."""
    if not special[0]:
        return [False] * len(pieces)
    return [flag and not _CODE.fullmatch(piece) for flag, piece in zip(special.tolist(), pieces, strict=True)]


def seen_of(own: Encoded) -> int | None:
    """Return where the model stopped reading; None for the end of the text."""
    if own.total == len(own.pieces):
        return None
    return int(own.spans[~own.special, 1].max(initial=0))
