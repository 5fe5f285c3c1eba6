"""Optimal transport between the units of two texts: the least work that turns one into the other.

1. Vectors have unit length, so that the squared distance of two is 2 - 2 cos; `euclid` is its root. A vector of zeros
   has cosine 0 with everything.
2. d = min over T of sum T[i,j] C[i,j], where the rows of T add up to the masses of one text and its columns to those of
   the other, each set of masses scaled to add up to one (`ot.emd`, exact, float64).
3. `drop` takes out the flows below a quantile of those there are, as in the baseline of Eval4NLP 2021. Which flows an
   optimum has is not unique, so neither is such a number.
4. Where one text has no mass, all cosines count as 0: d is 2, or its root.

Each distinct text is encoded once, each distinct pair is solved once:

1. Pairs are taken in windows, those with the same first text together.
2. The vectors of all texts of a window come from one call of the encoder; they are pinned within a bound of bytes, so
   that probes meet the vectors of the text that does not change.
3. Per pair: one matrix of distances and one transport.

Word scores, what each word costs and whom it goes to:

1. `min`: minus the distance of a piece to the nearest unit of the other text; a piece in several windows has their
   mean. Pieces of a word are pooled.
2. `flow`: minus the cost of all that is moved from or to a piece. The words, with the special pieces, add up to minus
   the distance; a piece over a word border is split by characters. An optimal flow is not unique, so single numbers
   may differ between solvers, their sum does not.
3. A word whose pieces were all dropped carries no mass: 0 by `flow`, filled by `min`. Words that the model did not read
   have no number.
"""

import importlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple, Protocol, cast

import numpy as np

from whyscore.errors import DataError, MissingExtra
from whyscore.metrics.matching.units import Cut, Moving, moving, over_windows
from whyscore.metrics.pieces import Fill, carried
from whyscore.models.encoders.loading import pinned
from whyscore.protocols import Encoded, Encoder
from whyscore.text.alignment import Pairs, Pieces, Pool, Pooled, pool_words
from whyscore.types import FloatMatrix, FloatVector, Words, WordScores

Cost = Literal["squared", "euclid"]

NOTHING: dict[Cost, float] = {"squared": 2.0, "euclid": float(np.sqrt(2.0))}
"""The distance to a text without mass."""

# Two equal vectors have a dot product of one up to rounding, and a root makes rounding large.
_ROUNDING = 1e-12
_STEPS = 10_000_000


class Moved(NamedTuple):
    """The optimum: how much goes where, and what it costs in all."""

    flow: FloatMatrix
    distance: float


class _Solver(Protocol):
    """What is used of POT."""

    def emd(self, a: FloatVector, b: FloatVector, M: FloatMatrix, numItermax: int) -> FloatMatrix:  # noqa: N803 - its names
        """Return the flow."""


def costs(other: FloatMatrix, hypothesis: FloatMatrix, cost: Cost) -> FloatMatrix:
    """Return the distance of every unit of one text to every unit of the other, from vectors of unit length.

    >>> costs(np.array([[1.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 1.0]]), "squared")
    array([[0., 2.]])
    """
    squared = 2.0 - 2.0 * (other @ hypothesis.T)
    squared[squared < _ROUNDING] = 0.0
    return squared if cost == "squared" else np.sqrt(squared)


def transport(cost: FloatMatrix, rows: FloatVector, columns: FloatVector, drop: float = 0.0) -> Moved:
    """Return the cheapest way to move the masses of the rows to those of the columns; both must have some mass."""
    flow = solver().emd(rows / rows.sum(), columns / columns.sum(), np.ascontiguousarray(cost), numItermax=_STEPS)
    if drop > 0:
        flow = np.where(flow < np.quantile(flow[flow > 0], drop), 0.0, flow)
    return Moved(flow, float(np.sum(flow * cost)))


@lru_cache(maxsize=1)
def solver() -> _Solver:
    """Return the package that solves transport problems."""
    try:
        with _without_backends():
            return cast("_Solver", importlib.import_module("ot"))
    except ImportError as error:
        raise MissingExtra.of("moverscore", "mover") from error


@contextmanager
def _without_backends() -> Iterator[None]:
    """Keep POT from importing torch and its kin, which takes seconds: arrays of numpy are all it gets here."""
    names = [f"POT_BACKEND_DISABLE_{name}" for name in ("PYTORCH", "TENSORFLOW", "JAX", "CUPY")]
    added = [name for name in names if name not in os.environ]
    os.environ.update(dict.fromkeys(added, "1"))
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


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


Word = Literal["min", "flow"]


class Sides(NamedTuple):
    """A moved pair, seen from the text whose words are scored."""

    own: Moving
    other: Moving
    cost: FloatMatrix
    """Units of the own text x units of the other."""
    moved: Moved | None
    """None where one of the texts has nothing to move."""


class Told(NamedTuple):
    """How word scores are made of pieces."""

    word: Word
    pool: Pool
    fill: Fill
    cost: Cost


def sides(other: Moving, hypothesis: Moving, cost: FloatMatrix, moved: Moved | None, *, turned: bool) -> Sides:
    """Return a pair seen from the other text, or `turned`, from the hypothesis."""
    if not turned:
        return Sides(other, hypothesis, cost, moved)
    flow = None if moved is None else Moved(moved.flow.T, moved.distance)
    return Sides(hypothesis, other, cost.T, flow)


def word_scores(words: Words, pair: Sides, told: Told) -> WordScores:
    """Return one number per word, with the counterparts of its pieces as a note."""
    own = pair.own
    real = np.flatnonzero(~own.encoded.special)
    values = np.full(len(own.encoded.pieces), np.nan)
    values[own.kept] = _costs(pair, told)
    dropped = np.ones(len(own.encoded.pieces), dtype=np.bool_)
    dropped[own.kept] = False
    spans = [(int(start), int(end)) for start, end in own.encoded.spans[real]]
    cut = own.encoded.total > len(own.encoded.pieces)
    seen = (spans[-1][1] if spans else 0) if cut else None
    written = [own.encoded.pieces[piece] for piece in real.tolist()]
    pieces = Pieces(spans, written, dropped[real].tolist(), seen)
    shares = carried(words.text, spans, written, values[real]) if told.word == "flow" else values[real]
    pooled = _pooled(words, pieces, -shares, told)
    notes = _notes(pair, told, pooled.pairs, real.tolist(), list(words))
    for word, reason in pooled.missing:
        notes[word] = f"{reason}, filled" if word in pooled.filled else reason
    return WordScores(pooled.values, tuple(notes))


def _pooled(words: Words, pieces: Pieces, values: FloatVector, told: Told) -> Pooled:
    flow = told.word == "flow"
    fill = "null" if flow or told.fill == "error" else told.fill
    pooled = pool_words(words, pieces, values, pool="sum" if flow else told.pool, fill=fill, split=flow)
    if flow:
        unmoved = [word for word, reason in pooled.missing if reason != "truncated"]
        pooled.values[unmoved] = 0.0
        return pooled
    lost = [word for word, reason in pooled.missing if reason != "truncated"]
    if told.fill == "error" and lost:
        name = words.text[slice(*words.spans[lost[0]])]
        raise DataError(
            f"{len(lost)} word(s) of {words.text!r} have no piece, first {name!r}; choose fill='previous', 'next', "
            "'median' or 'null'"
        )
    return pooled


def _costs(pair: Sides, told: Told) -> FloatVector:
    """Return what each kept piece costs."""
    own, cost = pair.own, pair.cost
    if not len(own.kept):
        return np.zeros(0)
    if told.word == "min":
        nearest = cost.min(axis=1, initial=np.inf) if cost.size else np.full(len(cost), NOTHING[told.cost])
        result: FloatVector = np.nanmean(over_windows(nearest, own.size), axis=1)
        return result
    if pair.moved is None:
        whole = own.masses / own.masses.sum() * NOTHING[told.cost] if not own.empty else np.zeros(len(own.masses))
    else:
        whole = (pair.moved.flow * cost).sum(axis=1)
    shared: FloatVector = np.nansum(over_windows(whole, own.size), axis=1) / own.size
    return shared


def _notes(pair: Sides, told: Told, pairs: Pairs, real: list[int], words: list[str]) -> list[str]:
    """Return, for each word, whom its pieces go to; a piece that is the whole word is not named again."""
    own = pair.own
    unit_of = {int(piece): _unit(place, own) for place, piece in enumerate(own.kept.tolist())}
    shown: list[list[str]] = [[] for _ in words]
    for number, word in zip(pairs.piece.tolist(), pairs.word.tolist(), strict=True):
        told_of = _counterpart(pair, told, unit_of[real[number]])
        shown[word].append(told_of.removeprefix(f"{words[word]} ").removeprefix(f"{words[word]}: "))
    return ["; ".join(dict.fromkeys(parts)) for parts in shown]


def _unit(place: int, own: Moving) -> int:
    """Return the first unit that a kept piece stands in, or the last there is."""
    return min(place, len(own.masses) - 1)


def _counterpart(pair: Sides, told: Told, unit: int) -> str:
    name = pair.own.named(unit)
    if not pair.cost.size:
        return f"{name}: nothing to go to"
    if told.word == "flow" and pair.moved is not None:
        flow = pair.moved.flow[unit]
        if not flow.any():
            return f"{name}: not moved"
        best = int(flow.argmax())
        return f"{name} to {pair.other.named(best)} {pair.cost[unit, best]:.4g}"
    best = int(pair.cost[unit].argmin())
    return f"{name} to {pair.other.named(best)} {pair.cost[unit, best]:.4g}"
