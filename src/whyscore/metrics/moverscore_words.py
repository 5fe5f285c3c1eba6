"""Word scores of a transport: what each word costs, and whom it goes to.

1. `min`: minus the distance of a piece to the nearest unit of the other text; a piece in several windows has their
   mean. Pieces of a word are pooled.
2. `flow`: minus the cost of all that is moved from or to a piece. The words, with the special pieces, add up to minus
   the distance; a piece over a word border is split by characters. An optimal flow is not unique, so single numbers
   may differ between solvers, their sum does not.
3. A word whose pieces were all dropped carries no mass: 0 by `flow`, filled by `min`. Words that the model did not read
   have no number.
"""

from typing import Literal, NamedTuple

import numpy as np

from whyscore.errors import DataError
from whyscore.metrics.moverscore_transport import NOTHING, Cost, Moved
from whyscore.metrics.moverscore_units import Moving, over_windows
from whyscore.metrics.piece_shares import carried
from whyscore.metrics.piece_words import Fill
from whyscore.text.alignment import Pairs, Pieces, Pool, Pooled, pool_words
from whyscore.types import FloatMatrix, FloatVector, Words, WordScores

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
