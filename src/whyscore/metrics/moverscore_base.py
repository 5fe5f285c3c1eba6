"""What MoverScore and XMoverScore have in common: from options to distances, from distances to scores and words.

1. The version's axes, with what the caller chose instead, say how texts become units and what moving them costs.
2. All distinct pairs of a call are solved together (`moverscore_pairs`).
3. The score of a segment is the mean, or the best, over its pairs; a language model may add its share.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from whyscore.errors import SpecError
from whyscore.metrics.moverscore_masses import Table, table_of, tell_uniform
from whyscore.metrics.moverscore_pairs import Pair, Recipe, Solved, distances, solve
from whyscore.metrics.moverscore_transport import Cost
from whyscore.metrics.moverscore_units import Apply, Cut, Mean, Specials, Tokens, stop_words
from whyscore.metrics.moverscore_versions import (
    Asked,
    Axes,
    Form,
    Mode,
    encoder_of,
    overridden,
)
from whyscore.metrics.moverscore_words import Told, Word, sides, word_scores
from whyscore.metrics.piece_words import Fill
from whyscore.models import language_models as text_probability
from whyscore.models.checkpoints import Precision, device_of
from whyscore.models.rows import Long
from whyscore.options import check_fields
from whyscore.protocols import Encoder
from whyscore.registry import spec_of
from whyscore.text.alignment import Pool
from whyscore.types import (
    FloatMatrix,
    FloatVector,
    Place,
    Segment,
    Side,
    Signature,
    Words,
    WordScores,
)
from whyscore.version import __version__

_AXES = ("tokens", "specials", "ngram", "ngram_mean", "cost", "flow_drop", "form")


@dataclass(frozen=True, slots=True)
class Mover:
    """What both metrics have in common."""

    model: str | None = None
    version: str = "v2"
    layer: int | None = None
    layers: int | None = None
    tokens: Tokens | None = None
    stop_words: str | None = None
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
    word: Word = "min"
    pool: Pool = "mean"
    fill: Fill | None = None
    mode: Mode = "compat"
    device: str = "auto"
    precision: Precision = "fp32"
    long: Long = "truncate"

    higher_is_better: ClassVar[bool] = True
    who: ClassVar[str]
    versions: ClassVar[dict[str, Axes]]

    def __post_init__(self) -> None:
        """Refuse options out of range."""
        check_fields(self)
        for name in ("ngram", "layers"):
            number = getattr(self, name)
            if number is not None and number < 1:
                raise SpecError(f"{self.who}: {name} is {number}, expected 1 or more")
        if self.flow_drop is not None and not 0 <= self.flow_drop < 1:
            raise SpecError(f"{self.who}: flow_drop is {self.flow_drop}, expected 0 to below 1")
        if self.layer is not None and self.layers is not None:
            raise SpecError(f"{self.who}: layer={self.layer} reads one layer, layers={self.layers} several; drop one")
        if self.idf is None and self.idf_hypothesis is not None:
            raise SpecError(f"{self.who}: idf_hypothesis weighs the hypothesis alone; give idf for the other text too")

    @property
    def columns(self) -> tuple[str, ...]:
        """The numbers behind a score: of the transport, and of the language model where one is asked."""
        return ("mover",) if self.lm is None else ("mover", "lm")

    def signature(self) -> Signature:
        """Return the spec, then the facts of the encoder, of masses, map and language model."""
        encoder = self.encoder()
        own = encoder.signature()
        facts = {"encoder": own.spec} | dict(own.facts) | {"mode": self.mode, "mass": self._masses(encoder)}
        facts |= self._more_facts()
        if self.lm is not None:
            facts["lm"] = text_probability.revision_of(self.lm)
        return Signature(spec_of(self), tuple((facts | {"version": __version__}).items()))

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        """Return one score per segment."""
        return self.scores(self.statistics(segments))

    def statistics(self, segments: Sequence[Segment]) -> FloatMatrix:
        """Return the score of the transport, and the mean log-probability where a language model is asked."""
        asked = [self._pairs(segment) for segment in self._checked(segments)]
        found = distances([pair for pairs in asked for pair in pairs], self._recipe())
        form = self._axes().form
        rows = [[self._over([_scored(found[pair], form) for pair in pairs])] for pairs in asked]
        if self.lm is not None:
            model = text_probability.load_text_model(self.lm, device_of(self.device, self.who), self.precision)
            means = model.means([segment.hypothesis for segment in segments])
            rows = [[*row, means[segment.hypothesis]] for row, segment in zip(rows, segments, strict=True)]
        return np.array(rows, dtype=np.float64).reshape(len(segments), len(self.columns))

    def scores(self, rows: FloatMatrix) -> FloatVector:
        """Return the score of the transport, with the share of the language model."""
        weights = [1.0] if self.lm is None else [1.0, self.lm_weight]
        return np.asarray(rows @ np.array(weights), dtype=np.float64)

    def word_scores(self, segments: Sequence[Segment], place: Place, words: Sequence[Words]) -> list[WordScores]:
        """Return minus what each word costs, with its counterpart as a note."""
        self._check_place(place)
        asked = [self._pairs_at(segment, place) for segment in self._checked(segments)]
        wanted: dict[Pair, list[tuple[int, int]]] = {}
        for number, pairs in enumerate(asked):
            for order, pair in enumerate(pairs):
                wanted.setdefault(pair, []).append((number, order))
        answers: list[dict[int, tuple[float, WordScores]]] = [{} for _ in asked]
        for pair, solved in solve(list(wanted), self._recipe()):
            for number, order in wanted[pair]:
                answers[number][order] = (solved.distance, self._words(solved, place, words[number]))
        return [self._joined([found[order] for order in sorted(found)]) for found in answers]

    def _words(self, solved: Solved, place: Place, words: Words) -> WordScores:
        axes = self._axes()
        fill: Fill = self.fill or ("previous" if axes.tokens == "drop" else "error")
        turned = place.side is Side.HYPOTHESIS
        seen = sides(solved.other, solved.hypothesis, solved.cost, solved.moved, turned=turned)
        return word_scores(words, seen, Told(self.word, self.pool, fill, axes.cost))

    def _joined(self, found: Sequence[tuple[float, WordScores]]) -> WordScores:
        """Return one answer for a hypothesis with several references: the mean over them, notes of the nearest."""
        nearest = int(np.argmin([distance for distance, _ in found]))
        best = found[nearest][1]
        if len(found) == 1 or self._best_counts():
            return best
        mean: FloatVector = np.mean([answer.importance for _, answer in found], axis=0)
        return WordScores(mean, tuple(f"reference {nearest + 1}: {note}" for note in best.notes or ()))

    def encoder(self) -> Encoder:
        """Return what turns texts into vectors."""
        asked = Asked(self.model, self.layer, self.layers, self.device, self.precision, self.long)
        return encoder_of(self.who, asked, self.versions[self.version])

    def _axes(self) -> Axes:
        return overridden(self.versions[self.version], self.mode, {name: getattr(self, name) for name in _AXES})

    def _tables(self, encoder: Encoder) -> tuple[Table | None, Table | None]:
        """Return the weights of the pieces of the other text and of the hypothesis."""
        if self.idf is None and self._axes().idf:
            tell_uniform(self.who)
        own = self.idf if self.idf_hypothesis is None else self.idf_hypothesis
        return table_of(self.idf, encoder), table_of(own, encoder)

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

    def _checked(self, segments: Sequence[Segment]) -> Sequence[Segment]:
        raise NotImplementedError

    def _check_place(self, place: Place) -> None:
        raise NotImplementedError

    def _pairs(self, segment: Segment) -> list[Pair]:
        raise NotImplementedError

    def _pairs_at(self, segment: Segment, place: Place) -> list[Pair]:
        if place.side is Side.HYPOTHESIS:
            return self._pairs(segment)
        return [(segment.text(place), segment.hypothesis)]


def _scored(distance: float, form: Form) -> float:
    return 1.0 - distance if form == "1-d" else 1.0 / (1.0 + distance)
