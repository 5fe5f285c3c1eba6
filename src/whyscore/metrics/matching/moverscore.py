"""MoverScore (Zhao et al. 2019, arXiv 1909.02622) and XMoverScore (Zhao et al. 2020, arXiv 2005.01196; Leiter 2021).

1. Both texts become units with a vector and a mass: pieces, or n-grams of them. MoverScore reads
   a reference, XMoverScore the source, whose vectors can be mapped into the hypothesis' language (`map`).
2. d is the least work that moves the mass of one text to that of the other.
3. The score is 1 - d or 1 / (1 + d), the mean or the best over several references; higher is better.
4. `lm` adds 0.1 times the mean log-probability of the hypothesis under a causal language model. The published code
   gives the model no beginning of the text: the mean is over the second and later pieces, and 0 for a single one;
   `mode="paper"` counts all. Word scores leave it out, as it says nothing of the pair, unless `lm_words` says how much
   log p of a word, pooled over its pieces like the distances, adds to the score of a hypothesis word (what Leiter 2021
   leaves for later).

Word scores: minus the distance to the nearest unit of the other text, or minus the transported cost.

The published versions differ in these axes, each of which can be chosen by itself:

| axis | moverscore v1 | moverscore v2 | xmoverscore v1 | xmoverscore v2 |
|---|---|---|---|---|
| vectors | last 5 layers: min, mean, max | last layer | last layer | layer 8 |
| pieces | drop | drop | drop | keep |
| units | 1 piece | 1 piece | 1 piece | 2 pieces, plain mean |
| distance | squared | Euclid | squared | Euclid |
| flows | all | all | all | without the lowest 30 % |
| score | 1 - d | 1/(1 + d) | 1 - d | 1 - d |

`v1-keep`, the default of xmoverscore, is v1 with all pieces, which Leiter (2021) found better. Special pieces carry
mass in all of them.

Optimal transport, the least work that turns one text into the other:

1. Vectors have unit length, so that the squared distance of two is 2 - 2 cos; `euclid` is its root. A vector of zeros
   has cosine 0 with everything.
2. d = min over T of sum T[i,j] C[i,j], where the rows of T add up to the masses of one text and its columns to those of
   the other, each set of masses scaled to add up to one (`ot.emd`, exact, float64).
3. `drop` takes out the flows below the k-th smallest of the n flows there are, k = max(int(drop * n), 1), as in the
   baseline of Eval4NLP 2021. Many flows have the same size, and which of them are dropped depends on the solver. The
   published code calls pyemd, which since version 1.1 solves a partial transport between the units of both texts
   together (`ot.partial`); so does `drop` here, with the same numbers.
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

Looked into (`inspect`), the score is differentiated with the flow as it stands: by the envelope theorem the slope of
the least work with respect to a distance is the flow there. The language model is left out.

Units, what is moved, have a vector and a mass:

1. Pieces are kept, or dropped: `drop`, as the published code does it, those with `##` in them (WordPiece's mark of a
   piece inside a word), those that are one character of ASCII punctuation, and those in a list of stop words; `words`
   for any tokenizer, those that are punctuation only, that do not start a word, and that start a word of the list.
   There words are those of Unicode, never guessed from the look of a piece.
2. Special pieces carry mass like the others (`include`), none but can be the nearest (`weightless`), or are gone.
3. The vector of a piece is mapped where a map is given.
4. Units are windows of n kept pieces, each one further on; a shorter text is one window. Mass = sum of the weights,
   vector = weighted or plain mean, scaled to unit length after that. With n = 1 units are pieces.
"""

import importlib
import os
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray

from whyscore.errors import DataError, MissingExtra, SpecError, need_package
from whyscore.marking import Span
from whyscore.metrics.matching.weights import IdfTable, table_of, tell_uniform
from whyscore.metrics.needs import compared_texts, need_inputs
from whyscore.models import language_models as text_probability
from whyscore.models.attribution import Inside, Reading
from whyscore.models.checkpoints import device_of
from whyscore.models.encoders.loading import encoder as load_encoder
from whyscore.models.encoders.loading import get_pinned
from whyscore.models.encoders.sentence import MODULES, open_states
from whyscore.models.encoders.stacks import source
from whyscore.models.encoders.transformer import PowerMeans
from whyscore.models.heads import widen
from whyscore.models.maps import Kind, LanguageMap, read_map
from whyscore.models.matching import pieces_of
from whyscore.models.pairs import Long
from whyscore.models.word_vectors import unit
from whyscore.protocols import Encoded, Encoder
from whyscore.registry import spec_of
from whyscore.settings import Precision, check_fields, names_file
from whyscore.text.alignment import Fill, Pairs, Pieces, PieceScores, Pool, Pooled, carry_marks, pool_words, score_words
from whyscore.text.files import files_of, read_once, text_of
from whyscore.text.splitters import UnicodeWords
from whyscore.types import (
    HYPOTHESIS,
    FloatMatrix,
    FloatVector,
    Inputs,
    Place,
    Segment,
    Side,
    Signature,
    WordMatch,
    Words,
    WordScores,
)
from whyscore.version import __version__

if TYPE_CHECKING:
    from torch import Tensor


Tokens = Literal["keep", "drop", "words"]
Specials = Literal["include", "weightless", "exclude"]
Mean = Literal["weighted", "plain"]
Apply = Callable[[FloatMatrix], FloatMatrix]

_ASCII_PUNCTUATION = frozenset(string.punctuation)
_PUNCTUATION = regex.compile(r"[\p{P}\p{S}]*")


@dataclass(frozen=True)
class Cut:
    """How texts become units."""

    tokens: Tokens
    specials: Specials
    ngram: int
    mean: Mean
    stop_words: frozenset[str] = frozenset()
    weights: IdfTable | None = None
    mapped: Apply | None = None


class Moving(NamedTuple):
    """One text, ready to be moved."""

    text: str
    encoded: Encoded
    kept: NDArray[np.intp]
    """The numbers of the pieces that units are made of."""
    size: int
    """How many pieces a unit has."""
    vectors: FloatMatrix
    """Units x width, of unit length."""
    masses: FloatVector

    @property
    def empty(self) -> bool:
        """Whether there is nothing to move."""
        return not bool(self.masses.sum() > 0)

    def describe(self, unit: int) -> str:
        """Return how a unit reads in the text; special pieces, and those of white space alone, by their names."""
        span = self.span(unit)
        if span is not None:
            return self.text[slice(*span)]
        return " ".join(self.encoded.pieces[piece] for piece in self.kept[unit : unit + self.size].tolist())

    def span(self, unit: int) -> Span | None:
        """Return where a unit stands in the text, without white space at its ends; None where it is not text."""
        pieces = self.kept[unit : unit + self.size]
        real = pieces[~self.encoded.special[pieces]]
        if not len(real):
            return None
        start, end = int(self.encoded.spans[real[0]][0]), int(self.encoded.spans[real[-1]][1])
        written = self.text[start:end]
        start += len(written) - len(written.lstrip())
        return (start, start + len(written.strip())) if written.strip() else None


class Windows(NamedTuple):
    """The pieces that units are made of, and how much each counts in them."""

    kept: NDArray[np.intp]
    size: int
    shares: FloatMatrix
    """Units x pieces of a unit."""
    masses: FloatVector


def moving(text: str, encoded: Encoded, cut: Cut) -> Moving:
    """Return a text as units."""
    shape = windows(text, encoded, cut)
    rows = encoded.vectors[shape.kept].astype(np.float64)
    vectors = rows if cut.mapped is None else cut.mapped(rows)
    return Moving(text, encoded, shape.kept, shape.size, unit(_means(vectors, shape)), shape.masses)


def windows(text: str, encoded: Encoded, cut: Cut) -> Windows:
    """Return which pieces of a text make units, their shares and the masses of the units."""
    kept = np.flatnonzero(_select_pieces(text, encoded, cut))
    pieces = [encoded.pieces[piece] for piece in kept.tolist()]
    weights = np.ones(len(kept)) if cut.weights is None else cut.weights.of(pieces)
    if cut.specials == "weightless":
        weights[encoded.special[kept]] = 0.0
    size = max(1, min(cut.ngram, len(kept)))
    if size == 1:
        return Windows(kept, size, np.ones((len(kept), 1)), weights)
    return Windows(kept, size, *_shares(weights, size, cut.mean))


def over_windows(values: FloatVector, size: int) -> FloatMatrix:
    """Return, for each piece, the values of the windows it stands in, NaN where a window would reach outside.

    >>> over_windows(np.array([1.0, 2.0]), 2)
    array([[ 1., nan],
           [ 2.,  1.],
           [nan,  2.]])
    """
    table = np.full((len(values) + size - 1, size), np.nan)
    for shift in range(size):
        table[shift : shift + len(values), shift] = values
    return table


def stop_words(path: str | None) -> frozenset[str]:
    """Return the words of a file, one a line, in small letters."""
    if path is None:
        return frozenset()
    return _read_stop_words(path)


@read_once(8)
def _read_stop_words(path: str) -> frozenset[str]:
    file = Path(path).expanduser()
    if not file.is_file():
        raise DataError("no such file: stop_words takes a file with one word per line", file=path)
    return frozenset(line.strip().lower() for line in text_of(file).splitlines()) - {""}


def _select_pieces(text: str, encoded: Encoded, cut: Cut) -> NDArray[np.bool_]:
    """Return which pieces units are made of."""
    real = ~encoded.special
    if cut.tokens == "drop":
        dropped = cut.stop_words | _ASCII_PUNCTUATION
        for piece in np.flatnonzero(real).tolist():
            written = encoded.pieces[piece]
            real[piece] = "##" not in written and written not in dropped
    elif cut.tokens == "words":
        words = UnicodeWords().split(text).spans
        starts = {start for start, end in words if text[start:end].lower() not in cut.stop_words}
        for piece in np.flatnonzero(real).tolist():
            start, end = encoded.spans[piece].tolist()
            written = text[start:end]
            first = start + len(written) - len(written.lstrip())
            real[piece] = first in starts and not _PUNCTUATION.fullmatch(written.strip())
    return real if cut.specials == "exclude" else real | encoded.special


def _shares(weights: FloatVector, size: int, mean: Mean) -> tuple[FloatMatrix, FloatVector]:
    """Return how much each piece counts in each window of `size` pieces, and the masses of the windows."""
    # Where no piece of a window has weight, the plain mean is its only sensible direction.
    count = len(weights) - size + 1
    spread = np.stack([weights[shift : shift + count] for shift in range(size)], axis=1)
    masses = spread.sum(axis=1)
    shares = spread / np.where(masses > 0, masses, 1.0)[:, None]
    if mean == "plain":
        shares = np.full_like(shares, 1 / size)
    shares[masses <= 0] = 1 / size
    return shares, masses


def _means(vectors: FloatMatrix, shape: Windows) -> FloatMatrix:
    """Return the mean vector of each unit."""
    if shape.size == 1:
        return vectors
    count, shares = len(shape.shares), shape.shares
    rows = sum((shares[:, [shift]] * vectors[shift : shift + count] for shift in range(shape.size)), np.zeros(1))
    return np.asarray(rows)


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


def costs(other: FloatMatrix, hypothesis: FloatMatrix, cost: Cost) -> FloatMatrix:
    """Return the distance of every unit of one text to every unit of the other, from vectors of unit length.

    >>> costs(np.array([[1.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 1.0]]), "squared")
    array([[0., 2.]])
    """
    squared = 2.0 - 2.0 * (other @ hypothesis.T)
    squared[squared < _ROUNDING] = 0.0
    return squared if cost == "squared" else np.sqrt(squared)


def transport(cost: FloatMatrix, rows: FloatVector, columns: FloatVector) -> Moved:
    """Return the cheapest way to move the masses of the rows to those of the columns; both must have some mass."""
    flow = solver().emd(rows / rows.sum(), columns / columns.sum(), np.ascontiguousarray(cost), numItermax=_STEPS)
    return Moved(flow, float(np.sum(flow * cost)))


def transport_whole(whole: FloatMatrix, rows: FloatVector, columns: FloatVector, drop: float) -> Moved:
    """Return the same from the distances between the units of both texts together, without the smallest flows."""
    here, count = len(rows), len(rows) + len(columns)
    masses = np.zeros((2, count))
    masses[0, :here], masses[1, here:] = rows / rows.sum(), columns / columns.sum()
    flow = solver().partial.partial_wasserstein(masses[0], masses[1], whole, m=float(masses.sum(axis=1).min()))
    remaining = drop_flows(flow[:here, here:], drop)
    return Moved(remaining, float(np.sum(remaining * whole[:here, here:])))


def drop_flows(flow: FloatMatrix, share: float) -> FloatMatrix:
    """Return flows without those below the k-th smallest of the n there are, k = max(int(share * n), 1)."""
    present = np.sort(flow[flow > 0])
    return np.where(flow < present[max(int(share * len(present)), 1) - 1], 0.0, flow)


@lru_cache(maxsize=1)
def solver() -> ModuleType:
    """Return the package that solves transport problems."""
    with need_package(MissingExtra.of("moverscore", "mover")), _without_backends():
        return importlib.import_module("ot")


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
    ordered = [pair for group in by_other.values() for pair in group]
    for start in range(0, len(ordered), _WINDOW):
        window = ordered[start : start + _WINDOW]
        vectors = _encode(recipe.encoder, [text for pair in window for text in pair])
        others = {text: moving(text, vectors[text], recipe.other) for text in dict.fromkeys(x for x, _ in window)}
        texts = {text: moving(text, vectors[text], recipe.hypothesis) for text in dict.fromkeys(y for _, y in window)}
        for pair in window:
            yield pair, _solve_pair(others[pair[0]], texts[pair[1]], recipe)


def _solve_pair(other: Moving, hypothesis: Moving, recipe: Recipe) -> Solved:
    cost = costs(other.vectors, hypothesis.vectors, recipe.cost)
    if other.empty or hypothesis.empty:
        return Solved(other, hypothesis, cost, None, NOTHING[recipe.cost])
    masses = (other.masses, hypothesis.masses)
    if recipe.drop > 0:
        units = np.concatenate([other.vectors, hypothesis.vectors])
        moved = transport_whole(costs(units, units, recipe.cost), *masses, recipe.drop)
    else:
        moved = transport(cost, *masses)
    return Solved(other, hypothesis, cost, moved, moved.distance)


def _encode(encoder: Encoder, texts: Sequence[str]) -> dict[str, Encoded]:
    return get_pinned(encoder, Encoded).take(texts, encoder.encode)


Word = Literal["min", "flow"]


class Sides(NamedTuple):
    """A moved pair, seen from the text whose words are scored."""

    own: Moving
    other: Moving
    cost: FloatMatrix
    """Units of the own text x units of the other."""
    moved: Moved | None
    """None where one of the texts has nothing to move."""
    place: Place
    """Where the other text stands."""


class WordOptions(NamedTuple):
    """How word scores are made of pieces."""

    word: Word
    pool: Pool
    fill: Fill
    cost: Cost


def sides(solved: Solved, other: Place, *, turned: bool) -> Sides:
    """Return a pair seen from the other text, which stands at a place, or `turned`, from the hypothesis."""
    moved = solved.moved
    if not turned:
        return Sides(solved.other, solved.hypothesis, solved.cost, moved, HYPOTHESIS)
    flow = None if moved is None else Moved(moved.flow.T, moved.distance)
    return Sides(solved.hypothesis, solved.other, solved.cost.T, flow, other)


def word_scores(words: Words, pair: Sides, options: WordOptions) -> WordScores:
    """Return one number per word, with the counterparts of its pieces as a note."""
    text = pair.own
    real = np.flatnonzero(~text.encoded.special)
    values = np.full(len(text.encoded.pieces), np.nan)
    values[text.kept] = _costs(pair, options)
    pieces = replace(pieces_of(text.encoded), dropped=(~np.isin(real, text.kept)).tolist())
    shares = carry_marks(words.text, pieces, values[real]) if options.word == "flow" else values[real]
    pooled = _pool(words, pieces, -shares, options)
    goals = _goals(pair, options, pooled.pairs, real.tolist(), len(words))
    notes = pooled.explain_missing([_note(goal, word) for goal, word in zip(goals, words, strict=True)])
    return WordScores(pooled.values, tuple(notes), tuple(tuple(goal.match for goal in row) for row in goals))


def _pool(words: Words, pieces: Pieces, values: FloatVector, options: WordOptions) -> Pooled:
    flow = options.word == "flow"
    fill = "null" if flow else options.fill
    pooled = pool_words(words, pieces, values, pool="sum" if flow else options.pool, fill=fill, split=flow)
    if flow:
        unmoved = [word for word, reason in pooled.missing if reason != "truncated"]
        pooled.values[unmoved] = 0.0
    return pooled


def _costs(pair: Sides, options: WordOptions) -> FloatVector:
    """Return what each kept piece costs."""
    text, cost = pair.own, pair.cost
    if not len(text.kept):
        return np.zeros(0)
    if options.word == "min":
        nearest = cost.min(axis=1, initial=np.inf) if cost.size else np.full(len(cost), NOTHING[options.cost])
        result: FloatVector = np.nanmean(over_windows(nearest, text.size), axis=1)
        return result
    if pair.moved is None:
        whole = (
            text.masses / text.masses.sum() * NOTHING[options.cost] if not text.empty else np.zeros(len(text.masses))
        )
    else:
        whole = (pair.moved.flow * cost).sum(axis=1)
    shared: FloatVector = np.nansum(over_windows(whole, text.size), axis=1) / text.size
    return shared


class _Goal(NamedTuple):
    """Whom a unit goes to: the match, and how far in words."""

    match: WordMatch
    note: str


def _goals(pair: Sides, options: WordOptions, pairs: Pairs, real: list[int], count: int) -> list[list[_Goal]]:
    """Return, for each word, whom its pieces go to."""
    text = pair.own
    # The first unit that a kept piece stands in, or the last there is.
    unit_of = {piece: min(place, len(text.masses) - 1) for place, piece in enumerate(text.kept.tolist())}
    goals_by_word: list[dict[_Goal, None]] = [{} for _ in range(count)]
    for number, word in zip(pairs.piece.tolist(), pairs.word.tolist(), strict=True):
        goals_by_word[word][_goal(pair, options, unit_of[real[number]])] = None
    return [list(goals) for goals in goals_by_word]


def _goal(pair: Sides, options: WordOptions, unit: int) -> _Goal:
    name = pair.own.describe(unit)
    if not pair.cost.size:
        return _Goal(WordMatch(name, "none", "", 0.0), "nothing to go to")
    best = int(pair.cost[unit].argmin())
    if options.word == "flow" and pair.moved is not None:
        flow = pair.moved.flow[unit]
        if not flow.any():
            return _Goal(WordMatch(name, "none", "", 0.0), "not moved")
        best = int(flow.argmax())
    cost, partner = float(pair.cost[unit, best]), pair.other.describe(best)
    cosine = 1 - (cost if options.cost == "squared" else cost**2) / 2
    return _Goal(
        WordMatch.similar(name, cosine, partner, pair.other.span(best), pair.place), f"to {partner} {cost:.4g}"
    )


def _note(goals: Sequence[_Goal], word: str) -> str:
    """Return whom the pieces of a word go to; a piece that is the whole word is not named again."""
    parts = []
    for match, note in goals:
        named = f"{match.text}{': ' if match.similarity is None else ' '}"
        parts.append(note if match.text == word else f"{named}{note}")
    return "; ".join(parts)


Form = Literal["1-d", "1/(1+d)"]
Mode = Literal["compat", "paper"]


class Axes(NamedTuple):
    """All that a version decides."""

    model: str | None
    """What is loaded where nobody names a model."""
    layer: int | None
    """None for the last."""
    layers: int | None
    """How many of the last layers are joined; None for one layer."""
    tokens: Tokens
    ngram: int
    ngram_mean: Mean
    cost: Cost
    flow_drop: float
    form: Form
    specials: Specials = "include"
    idf: bool = False


MOVERSCORE = {
    "v1": Axes(None, None, 5, "drop", 1, "weighted", "squared", 0.0, "1-d", idf=True),
    "v2": Axes("distilbert-base-uncased", None, None, "drop", 1, "weighted", "euclid", 0.0, "1/(1+d)", idf=True),
}
XMOVERSCORE = {
    "v1": Axes("embedded", None, None, "drop", 1, "weighted", "squared", 0.0, "1-d"),
    "v1-keep": Axes("embedded", None, None, "keep", 1, "weighted", "squared", 0.0, "1-d"),
    "v2": Axes("embedded", 8, None, "keep", 2, "plain", "euclid", 0.3, "1-d"),
}


def override_axes(axes: Axes, mode: Mode, overrides: dict[str, object]) -> Axes:
    """Return the axes of a version as the papers print them, where asked for, and with what the caller chose."""
    printed = axes._replace(specials="exclude", cost="euclid") if mode == "paper" else axes
    return printed._replace(**{key: value for key, value in overrides.items() if value is not None})  # type: ignore[arg-type]


_AXES = ("tokens", "specials", "ngram", "ngram_mean", "cost", "flow_drop", "form")


@dataclass(frozen=True, slots=True)
class Mover:
    """What both metrics have in common."""

    model: str | None = None
    version: str = "v2"
    layer: int | None = None
    layers: int | None = None
    tokens: Tokens | None = None
    stop_words: str | None = names_file(None)
    specials: Specials | None = None
    ngram: int | None = None
    ngram_mean: Mean | None = None
    idf: str | None = None
    idf_hypothesis: str | None = None
    cost: Cost | None = None
    flow_drop: float | None = None
    form: Form | None = None
    lm: str | None = None
    lm_weight: float = 0.1
    lm_words: float = 0.0
    word: Word = "min"
    pool: Pool = "mean"
    fill: Fill | None = None
    mode: Mode = "compat"
    device: str = "auto"
    precision: Precision = "fp32"
    long: Long = "truncate"

    higher_is_better: ClassVar[bool] = True
    inputs: ClassVar[Inputs]
    who: ClassVar[str]
    versions: ClassVar[dict[str, Axes]]

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("ngram", "layers"):
            number = getattr(self, name)
            if number is not None and number < 1:
                raise SpecError(f"{self.who}: {name} is {number}, expected 1 or more")
        if self.flow_drop is not None and not 0 <= self.flow_drop < 1:
            raise SpecError(f"{self.who}: flow_drop is {self.flow_drop}, expected 0 to below 1")
        if self.layer is not None and self.layers is not None:
            raise SpecError(f"{self.who}: layer={self.layer} reads one layer, layers={self.layers} several; drop one")
        if self.lm is None and self.lm_words:
            raise SpecError(f"{self.who}: lm_words={self.lm_words} needs a language model: give lm='./folder'")
        if self.idf is None and self.idf_hypothesis is not None:
            raise SpecError(f"{self.who}: idf_hypothesis weighs the hypothesis alone; give idf for the other text too")

    @property
    def columns(self) -> tuple[str, ...]:
        return ("mover",) if self.lm is None else ("mover", "lm")

    def signature(self) -> Signature:
        encoder = self.encoder()
        signature = encoder.signature()
        facts = {"encoder": signature.spec} | dict(signature.facts) | {"mode": self.mode, "mass": self._masses(encoder)}
        facts |= self._more_facts()
        if self.stop_words is not None:
            facts["stop_words"] = "+".join(files_of(self.stop_words).values())
        if self.lm is not None:
            facts["lm"] = text_probability.revision_of(self.lm)
        return Signature(spec_of(self), tuple((facts | {"version": __version__}).items()))

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        return self.scores(self.statistics(segments))

    def statistics(self, segments: Sequence[Segment]) -> FloatMatrix:
        pairs_by_segment = [list(self._pairs(segment).values()) for segment in self._check_segments(segments)]
        distance_of = distances([pair for pairs in pairs_by_segment for pair in pairs], self._recipe())
        form = self._axes().form
        rows = [
            [self._over([_score_distance(distance_of[pair], form) for pair in pairs])] for pairs in pairs_by_segment
        ]
        if self.lm is not None:
            model = text_probability.load_text_model(self.lm, device_of(self.device, self.who), self.precision)
            means = model.means([segment.hypothesis for segment in segments], begin=self.mode == "paper")
            rows = [[*row, means[segment.hypothesis]] for row, segment in zip(rows, segments, strict=True)]
        return np.array(rows, dtype=np.float64).reshape(len(segments), len(self.columns))

    def scores(self, rows: FloatMatrix) -> FloatVector:
        weights = [1.0] if self.lm is None else [1.0, self.lm_weight]
        return np.asarray(rows @ np.array(weights), dtype=np.float64)

    def word_scores(self, segments: Sequence[Segment], place: Place, words: Sequence[Words]) -> list[WordScores]:
        self._check_place(place)
        pairs_by_segment = [self._pairs(segment, place) for segment in self._check_segments(segments)]
        occurrences: dict[Pair, list[tuple[int, Place]]] = {}
        for number, pairs in enumerate(pairs_by_segment):
            for other, pair in pairs.items():
                occurrences.setdefault(pair, []).append((number, other))
        answers: list[dict[Place, tuple[float, WordScores]]] = [{} for _ in pairs_by_segment]
        axes = self._axes()
        fill: Fill = self.fill or ("error" if axes.tokens == "keep" else "previous")
        options = WordOptions(self.word, self.pool, fill, axes.cost)
        for pair, solved in solve(list(occurrences), self._recipe()):
            for number, other in occurrences[pair]:
                seen = sides(solved, other, turned=place.side is Side.HYPOTHESIS)
                answers[number][other] = solved.distance, word_scores(words[number], seen, options)
        joined = [self._join(dict(sorted(answer.items()))) for answer in answers]
        return self._with_probabilities(joined, words) if self.lm_words and place.side is Side.HYPOTHESIS else joined

    def inspect(self, segments: Sequence[Segment]) -> Inside:
        recipe, axes = self._recipe(), self._axes()
        pairs_by_segment = [list(self._pairs(segment).items()) for segment in self._check_segments(segments)]
        shapes: dict[int, list[Sequence[Windows]]] = {}

        def compare(states: "Tensor", mask: "Tensor", readings: Sequence[Reading]) -> "Tensor":
            del mask  # the windows know their pieces
            torch = importlib.import_module("torch")
            rows, scores = iter(states), []
            for reading in readings:
                table = [next(rows) for _ in reading]
                work = torch.stack(
                    [
                        _differentiable(other, table[0], shape, recipe)
                        for other, shape in zip(table[1:], shapes[id(reading[0].parts)], strict=True)
                    ]
                )
                each = 1 - work if axes.form == "1-d" else 1 / (1 + work)
                scores.append(each.max() if self._best_counts() else each.mean())
            stacked: Tensor = torch.stack(scores).float()
            return stacked

        inside = open_states(recipe.encoder, segments, lambda segment: list(self._pairs(segment)), compare, self.who)
        vectors = _encode(recipe.encoder, [text for pairs in pairs_by_segment for _, pair in pairs for text in pair])
        for reading, pairs in zip(inside.readings, pairs_by_segment, strict=True):
            # The parts of a row stay the same object whatever the pieces are replaced by.
            shapes[id(reading[0].parts)] = [
                (windows(there, vectors[there], recipe.other), windows(here, vectors[here], recipe.hypothesis))
                for _, (there, here) in pairs
            ]
        return inside

    def _with_probabilities(self, scores: Sequence[WordScores], words: Sequence[Words]) -> list[WordScores]:
        """Return word scores with the log-probabilities of the words added."""
        model = text_probability.load_text_model(str(self.lm), device_of(self.device, self.who), self.precision)
        coded = model.pieces([text.text for text in words])
        added = []
        for score, text in zip(scores, words, strict=True):
            coding, values = coded[text.text]
            read = slice(len(values))
            pieces = PieceScores(coding.spans[read], coding.pieces[read], values, len(coding.pieces))
            logs = score_words(text, pieces, self.pool, self.fill or "previous", "log p")
            notes = tuple(f"{note}; {more}" for note, more in zip(score.notes or (), logs.notes or (), strict=True))
            added.append(score._replace(importance=score.importance + self.lm_words * logs.importance, notes=notes))
        return added

    def _join(self, answers: Mapping[Place, tuple[float, WordScores]]) -> WordScores:
        """Return one answer for a hypothesis with several references: the mean over them, matches with the nearest."""
        nearest = min(answers, key=lambda place: answers[place][0])
        best = answers[nearest][1]
        if len(answers) == 1 or self._best_counts():
            return best
        mean: FloatVector = np.mean([answer.importance for _, answer in answers.values()], axis=0)
        return WordScores(mean, tuple(f"{nearest}: {note}" for note in best.notes or ()), best.matches)

    def encoder(self) -> Encoder:
        """Return what turns texts into vectors."""
        published = self.versions[self.version].model
        if self.model is not None:
            return self._load_encoder(self.model)
        if published is None:
            raise MissingExtra(
                f"{self.who}(version='v1') was published with a BERT-base that was trained on MNLI and is on no hub: "
                f"name its folder, {self.who}(version='v1', model='./MNLI_BERT'), or work offline with "
                f"{self.who}(model='embedded')"
            )
        try:
            return self._load_encoder(published)
        except MissingExtra as error:
            if published == "embedded":
                raise
            raise MissingExtra(f"{error}. To work offline: {self.who}(model='embedded')") from error

    def _load_encoder(self, model: str) -> Encoder:
        axes, layer = self.versions[self.version], self.layer
        # Small encoders have layers of their own, to which the versions have nothing to say.
        if model not in ("embedded", "static"):
            layers = self.layers if self.layers is not None else axes.layers if layer is None else None
            if layers is not None:
                return PowerMeans(model, layers, self.device, self.precision, self.long)
            layer = axes.layer if layer is None else layer
            if layer is None and not (Path(model).expanduser() / MODULES).is_file():
                layer = source(model, "moverscore").shape.blocks
        return load_encoder(model, layer, device=self.device, precision=self.precision, long=self.long)

    def _axes(self) -> Axes:
        version = self.versions[self.version]
        axes = override_axes(version, self.mode, {name: getattr(self, name) for name in _AXES})
        small = (self.model or version.model) in ("embedded", "static")
        # The published rule reads WordPiece's marks, which small encoders do not have.
        return axes._replace(tokens="words") if small and self.tokens is None and axes.tokens == "drop" else axes

    def _tables(self, encoder: Encoder) -> tuple[IdfTable | None, IdfTable | None]:
        """Return the weights of the pieces of the other text and of the hypothesis."""
        if self.idf is None and self._axes().idf:
            tell_uniform(self.who)
        idf_hypothesis = self.idf if self.idf_hypothesis is None else self.idf_hypothesis
        return table_of(self.idf, encoder), table_of(idf_hypothesis, encoder)

    def _masses(self, encoder: Encoder) -> str:
        tables = self._tables(encoder)
        named = dict.fromkeys("uniform" if table is None else f"idf-{table.digest}" for table in tables)
        return "+".join(named)

    def _recipe(self) -> Recipe:
        encoder, axes = self.encoder(), self._axes()
        there, here = self._tables(encoder)
        words = stop_words(self.stop_words)
        mapped, turned = self._maps(encoder)
        shape = (axes.tokens, axes.specials, axes.ngram, axes.ngram_mean, words)
        return Recipe(encoder, Cut(*shape, there, mapped), Cut(*shape, here, turned), axes.cost, axes.flow_drop)

    def _maps(self, _: Encoder) -> tuple[Apply | None, Apply | None]:
        """Return what is done to the vectors of the other text and of the hypothesis."""
        return None, None

    def _more_facts(self) -> dict[str, str]:
        return {}

    def _best_counts(self) -> bool:
        return False

    def _over(self, values: Sequence[float]) -> float:
        return max(values) if self._best_counts() else float(np.mean(values))

    def _check_segments(self, segments: Sequence[Segment]) -> Sequence[Segment]:
        other = "moverscore" if self._reads_source() else "xmoverscore"
        need_inputs(self.who, segments, self.inputs, f", such as {other}")
        return segments

    def _check_place(self, place: Place) -> None:
        unread, read = ("references", "the source") if self._reads_source() else ("the source", "a reference")
        if place.side is (Side.REFERENCE if self._reads_source() else Side.SOURCE):
            raise SpecError(f"{self.who} does not read {unread}: explain the hypothesis or {read}")

    def _reads_source(self) -> bool:
        return Inputs.SOURCE in self.inputs

    def _pairs(self, segment: Segment, place: Place = HYPOTHESIS) -> dict[Place, Pair]:
        """Return the pairs behind the words of the text at a place, by where the other text stands."""
        against = "source" if self._reads_source() else "reference"
        return {other: (text, segment.hypothesis) for other, text in compared_texts(segment, against, place).items()}


def _differentiable(other: "Tensor", hypothesis: "Tensor", shapes: Sequence[Windows], recipe: Recipe) -> "Tensor":
    """Return the least work between two texts as a function of the states of their pieces, the flow held fast."""
    torch = importlib.import_module("torch")
    there, here = shapes
    if not (there.masses.sum() > 0 and here.masses.sum() > 0):
        nothing: Tensor = (other.sum() + hypothesis.sum()).double() * 0 + NOTHING[recipe.cost]
        return nothing
    units = [
        _units(states, shape, cut.mapped)
        for states, shape, cut in ((other, there, recipe.other), (hypothesis, here, recipe.hypothesis))
    ]
    if recipe.drop > 0:
        together = torch.cat(units).detach().cpu().numpy()
        moved = transport_whole(costs(together, together, recipe.cost), there.masses, here.masses, recipe.drop)
    squared = 2.0 - 2.0 * (units[0] @ units[1].T)
    apart = squared >= _ROUNDING
    # Roots have no slope at 0: equal units stay as they are.
    far = torch.where(apart, squared, torch.ones_like(squared))
    cost = torch.where(apart, far if recipe.cost == "squared" else far.sqrt(), torch.zeros_like(far))
    if not recipe.drop:
        moved = transport(cost.detach().cpu().numpy(), there.masses, here.masses)
    work: Tensor = (torch.as_tensor(moved.flow, device=cost.device) * cost).sum()
    return work


def _units(states: "Tensor", shape: Windows, mapped: Apply | None) -> "Tensor":
    """Return the units of a text, of unit length, from the states of its pieces."""
    torch = importlib.import_module("torch")
    rows = widen(states)[torch.as_tensor(shape.kept, device=states.device)]
    if mapped is not None:
        # Maps are linear: what they do to the unit vectors is all they do.
        rows = rows @ torch.as_tensor(mapped(np.eye(rows.shape[1])), dtype=rows.dtype, device=rows.device)
    count = len(shape.shares)
    shares = torch.as_tensor(shape.shares, dtype=rows.dtype, device=rows.device)
    means = sum(shares[:, [shift]] * rows[shift : shift + count] for shift in range(shape.size))
    units: Tensor = torch.nn.functional.normalize(means, dim=-1)
    return units


def _score_distance(distance: float, form: Form) -> float:
    return 1.0 - distance if form == "1-d" else 1.0 / (1.0 + distance)


@dataclass(frozen=True, slots=True)
class MoverScore(Mover):
    """How little work it takes to move the words of the hypothesis to those of a reference, 0 to 1; higher is better.

    Options that are None are as the version has them.

    Args:
        model: embedded, static, a folder or a hub name; None for what the version was published with.
        version: v2 (the published library, distilbert) or v1 (2019: five layers of a BERT trained on MNLI).
        layer: of a network; None for the last.
        layers: how many of the last layers are joined by minimum, mean and maximum.
        tokens: keep all pieces, or leave out punctuation and pieces inside a word: drop, as published, by ASCII and
            WordPiece's ##; words, by Unicode, for any tokenizer; versions that drop take it with embedded and static.
        stop_words: file with words to leave out, one a line; read with tokens='drop' and tokens='words'.
        specials: whether special pieces carry mass (include), none (weightless), or are gone (exclude).
        ngram: how many pieces a unit has.
        ngram_mean: how the vectors of a unit are averaged.
        idf: file of texts, one a line, to weigh pieces by; 'uniform' for no weights.
        idf_hypothesis: file of texts for the pieces of the hypothesis; None for the same as idf.
        cost: squared distance, or Euclid's.
        flow_drop: share of the smallest flows that is left out.
        form: how the distance becomes a score.
        lm: causal language model whose mean log-probability of the hypothesis is added.
        lm_weight: how much that counts.
        lm_words: how much the log-probability of a hypothesis word counts in its word score; 0 leaves it out.
        word: what a word is given: distance to the nearest (min), or transported cost (flow).
        pool: how pieces make a word, for word='min'.
        fill: what a word without a piece gets; None for previous where pieces are dropped, else error.
        mode: `compat` gives the numbers of the published code; `paper` is as printed: no special pieces, Euclid's
            distance, a language model that also counts the first piece.
        device: auto, cpu, cuda, cuda:1, mps.
        precision: of the networks.
        long: what becomes of texts the model cannot read whole.
        references: whether the mean over several references counts or the best.
    """

    version: Literal["v1", "v2"] = "v2"
    references: Literal["mean", "max"] = "mean"

    inputs: ClassVar[Inputs] = Inputs.HYPOTHESIS | Inputs.REFERENCES
    original: ClassVar[str] = "emnlp19-moverscore 0459a3b"
    who: ClassVar[str] = "moverscore"
    versions: ClassVar[dict[str, Axes]] = MOVERSCORE

    def _best_counts(self) -> bool:
        return self.references == "max"


@dataclass(frozen=True, slots=True)
class XMoverScore(Mover):
    """How little work it takes to move the words of the hypothesis to those of the source, -1 to 1; higher is better.

    Options that are None are as the version has them.

    Args:
        model: embedded, static, a folder or a hub name; None for embedded.
        version: v1-keep (v1 with all pieces), v1 (2020) or v2 (baseline of Eval4NLP 2021: layer 8, pairs of pieces).
        layer: of a network; None for the last, in v2 for the eighth.
        idf: file of texts in the source language, one a line, to weigh pieces by; None or 'uniform' for no weights.
        mode: `paper` also maps both texts by umd.
        map: file of a map between the languages, see whyscore learn-map.
        remap: which of its maps: clp (projection) or umd (mismatch direction); None for clp where the file has it.

    All other options are those of `moverscore`.
    """

    version: Literal["v1", "v1-keep", "v2"] = "v1-keep"
    map: str | None = names_file(None)
    remap: Kind | None = None

    inputs: ClassVar[Inputs] = Inputs.HYPOTHESIS | Inputs.SOURCE
    original: ClassVar[str] = "ACL20-Reference-Free-MT-Evaluation 2026e18"
    who: ClassVar[str] = "xmoverscore"
    versions: ClassVar[dict[str, Axes]] = XMOVERSCORE

    def __post_init__(self) -> None:
        Mover.__post_init__(self)
        if self.remap is not None and self.map is None:
            model = "" if self.model is None else f" --model {self.model}"
            raise SpecError(
                f"xmoverscore: remap={self.remap!r} needs a map for the two languages. Learn one: whyscore learn-map "
                f"-s src.txt -t tgt.txt{model} -o map.npz, and give it as map='map.npz'"
            )

    def _maps(self, encoder: Encoder) -> tuple[Apply | None, Apply | None]:
        if self.map is None:
            return None, None
        learned, kind = self._map()
        signature, name = _as_learned(encoder.signature(), learned), str(self.map)

        def apply_map(rows: FloatMatrix) -> FloatMatrix:
            learned.check(name, signature, rows.shape[1])
            return learned.apply(rows, kind)

        return apply_map, apply_map if kind == "umd" and self.mode == "paper" else None

    def _map(self) -> tuple[LanguageMap, Kind]:
        learned = _read_map(Path(str(self.map)).expanduser())
        return learned, self.remap or ("umd" if learned.projection is None else "clp")

    def _more_facts(self) -> dict[str, str]:
        if self.map is None:
            return {}
        learned, kind = self._map()
        return {"map": f"{kind}-{learned.digest}"}


def _as_learned(signature: Signature, learned: LanguageMap) -> Signature:
    """Return an encoder's signature by the name the map knows it by, if the weights are the same."""
    same = dict(signature.facts).get("rev") == learned.facts.get("rev", "")
    return Signature(learned.facts.get("model", signature.spec), signature.facts) if same else signature


_read_map = read_once(8)(read_map)
