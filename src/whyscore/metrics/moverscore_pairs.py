"""Pairs of texts on their way to being moved: each distinct text is encoded once, each distinct pair is solved once.

1. Pairs are taken in windows, those with the same first text together.
2. The vectors of all texts of a window come from one call of the encoder; they are pinned within a bound of bytes, so
   that probes meet the vectors of the text that does not change.
3. Per pair: one matrix of distances and one transport.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from whyscore.metrics.moverscore_transport import NOTHING, Cost, Moved, costs, transport
from whyscore.metrics.moverscore_units import Cut, Moving, moving
from whyscore.models.encoders.loading import pinned
from whyscore.protocols import Encoded, Encoder
from whyscore.types import FloatMatrix

Pair = tuple[str, str]
"""The other text and the hypothesis."""

_WINDOW = 256


class Solved(NamedTuple):
    """A moved pair; `moved` is None where one of the texts has nothing to move."""

    other: Moving
    hypothesis: Moving
    cost: FloatMatrix
    moved: Moved | None
    distance: float


@dataclass(frozen=True)
class Recipe:
    """All that decides how a pair is moved."""

    encoder: Encoder
    other: Cut
    hypothesis: Cut
    cost: Cost
    drop: float


def distances(pairs: Sequence[Pair], recipe: Recipe) -> dict[Pair, float]:
    """Return the distance of each distinct pair."""
    return {pair: solved.distance for pair, solved in solve(pairs, recipe)}


def solve(pairs: Sequence[Pair], recipe: Recipe) -> Iterator[tuple[Pair, Solved]]:
    """Yield each distinct pair with its transport, pairs with the same other text together."""
    by_other: dict[str, list[Pair]] = {}
    for pair in dict.fromkeys(pairs):
        by_other.setdefault(pair[0], []).append(pair)
    ordered = [pair for own in by_other.values() for pair in own]
    for start in range(0, len(ordered), _WINDOW):
        window = ordered[start : start + _WINDOW]
        vectors = _vectors(recipe.encoder, [text for pair in window for text in pair])
        others = {text: moving(text, vectors[text], recipe.other) for text in dict.fromkeys(x for x, _ in window)}
        texts = {text: moving(text, vectors[text], recipe.hypothesis) for text in dict.fromkeys(y for _, y in window)}
        for pair in window:
            yield pair, _solved(others[pair[0]], texts[pair[1]], recipe)


def _solved(other: Moving, hypothesis: Moving, recipe: Recipe) -> Solved:
    cost = costs(other.vectors, hypothesis.vectors, recipe.cost)
    if other.empty or hypothesis.empty:
        return Solved(other, hypothesis, cost, None, NOTHING[recipe.cost])
    moved = transport(cost, other.masses, hypothesis.masses, recipe.drop)
    return Solved(other, hypothesis, cost, moved, moved.distance)


@dataclass(frozen=True)
class _Held:
    """An encoded text that knows its size."""

    encoded: Encoded

    @property
    def nbytes(self) -> int:
        """How many bytes the vectors take."""
        return self.encoded.vectors.nbytes


def _vectors(encoder: Encoder, texts: Sequence[str]) -> dict[str, Encoded]:
    def compute(missing: list[str]) -> list[_Held]:
        return [_Held(encoded) for encoded in encoder.encode(missing)]

    found = pinned(encoder, _Held).take(texts, compute)
    return {text: held.encoded for text, held in found.items()}
