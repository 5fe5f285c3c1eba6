"""BARTScore, after Yuan, Neubig and Liu (2021), arXiv 2106.11520.

1. A direction `a->b` asks how probable text b is to a summarisation model that has read text a.
2. The score is the mean log p(b_t | b_<t, a) over the pieces of b, the special ones at both ends included, as the
   published code has it; `count="words"` leaves them out, except where a text has no other pieces.
3. `f` is the mean of `reference->hypothesis` (precision) and `hypothesis->reference` (recall). Several references count
   by their mean or by the best one.

The score has no zero that means anything: 0 would be a text that cannot be other than it is, and good texts lie near
-2 or -3. Compare only within one model and direction.

Word scores: the log-probabilities of the pieces of a word of the target text, pooled: the weakest (`min`), the sum (the
log-probability of the word), the mean, the first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from whyscore.errors import SpecError
from whyscore.metrics.bartscore_model import Asked, BartModel, Pair, Target, checkpoint_of, limit_of, load
from whyscore.metrics.needs import need_references, need_source, present
from whyscore.metrics.piece_words import Fill, PieceScores, word_scores
from whyscore.models.checkpoints import Precision, device_of, signed
from whyscore.options import check_fields
from whyscore.types import FloatMatrix, FloatVector, Inputs, Place, Segment, Side, Signature, Words, WordScores

Direction = Literal["source->hypothesis", "reference->hypothesis", "hypothesis->reference", "f"]

_BOTH = ("reference->hypothesis", "hypothesis->reference")
_TARGETS = {
    "source->hypothesis": (Side.HYPOTHESIS,),
    "reference->hypothesis": (Side.HYPOTHESIS,),
    "hypothesis->reference": (Side.REFERENCE,),
    "f": (Side.HYPOTHESIS, Side.REFERENCE),
}


@dataclass(frozen=True, slots=True)
class BartScore:
    """Mean log-probability of one text given another, below 0; higher is better.

    Args:
        model: local folder, hub name or name@revision of a BART.
        direction: which text is scored given which.
        count: whether the special pieces at both ends count.
        references: whether the mean over several references counts or the best.
        pool: how pieces make a word.
        fill: what a word without a piece gets.
        weights: file with the weights of the same model trained further (a `.pth` state dict).
        device: auto, cpu, cuda, cuda:1, mps.
        precision: of the network; probabilities are always computed in float64.
        allow_pickle: read files that could run code while loading; only for files you trust.
    """

    model: str = "facebook/bart-large-cnn"
    direction: Direction = "source->hypothesis"
    count: Literal["all", "words"] = "all"
    references: Literal["mean", "max"] = "mean"
    pool: Literal["min", "sum", "mean", "first"] = "min"
    fill: Fill = "error"
    weights: str | None = None
    device: str = "auto"
    precision: Precision = "fp32"
    allow_pickle: bool = False

    higher_is_better: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse options of the wrong type."""
        check_fields(self)

    @property
    def inputs(self) -> Inputs:
        """The two texts of the direction."""
        other = Inputs.SOURCE if self.direction == "source->hypothesis" else Inputs.REFERENCES
        return Inputs.HYPOTHESIS | other

    @property
    def columns(self) -> tuple[str, ...]:
        """The directions behind a score."""
        return _BOTH if self.direction == "f" else (self.direction,)

    def signature(self) -> Signature:
        """Return the spec and the model's facts."""
        home, weights = checkpoint_of(self._asked())
        return signed(self, home, [weights], precision=self.precision, limit=limit_of(home), mode="compat")

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        """Return one score per segment."""
        return self.scores(self.statistics(segments))

    def statistics(self, segments: Sequence[Segment]) -> FloatMatrix:
        """Return the score of each direction, per segment."""
        self._check(segments)
        asked = [[_pairs(segment, direction) for direction in self.columns] for segment in segments]
        found = self._model().targets([pair for row in asked for pairs in row for pair in pairs])
        rows = [[self._over([self._mean(found[pair]) for pair in pairs]) for pairs in row] for row in asked]
        return np.array(rows, dtype=np.float64).reshape(len(segments), len(self.columns))

    def scores(self, rows: FloatMatrix) -> FloatVector:
        """Return the mean over the directions."""
        return np.asarray(rows.mean(axis=1), dtype=np.float64)

    def word_scores(self, segments: Sequence[Segment], place: Place, words: Sequence[Words]) -> list[WordScores]:
        """Return the pooled log-probability of each word of the target text."""
        pieces = self.piece_scores(segments, place)
        return [
            word_scores(own, found, self.pool, self.fill, "log p") for own, found in zip(words, pieces, strict=True)
        ]

    def piece_scores(self, segments: Sequence[Segment], place: Place) -> list[PieceScores]:
        """Return the log-probability of each piece of the target text, special pieces left out.

        Hypotheses with several references get the mean over them, or the numbers of the best one.
        """
        self._check_place(place)
        self._check(segments)
        asked = [self._asked_about(segment, place) for segment in segments]
        found = self._model().targets([pair for pairs in asked for pair in pairs])
        return [self._pieces(pairs, found) for pairs in asked]

    def _pieces(self, pairs: Sequence[Pair], found: Mapping[Pair, Target]) -> PieceScores:
        targets = [found[pair] for pair in pairs]
        best = int(np.argmax([self._mean(target) for target in targets]))
        mean = np.stack([target.text for target in targets]).mean(axis=0)
        values: FloatVector = mean if self.references == "mean" else targets[best].text
        coded, kept = targets[0].coded, len(values)
        return PieceScores(coded.spans[:kept], coded.pieces[:kept], values, len(coded.ids))

    def _asked_about(self, segment: Segment, place: Place) -> list[Pair]:
        if place.side is Side.REFERENCE:
            return [(segment.hypothesis, segment.text(place))]
        return _pairs(segment, "reference->hypothesis" if self.direction == "f" else self.direction)

    def _mean(self, target: Target) -> float:
        if self.count == "words" and len(target.text):
            return float(target.text.mean())
        return float(np.concatenate([target.text, target.special]).mean())

    def _over(self, values: Sequence[float]) -> float:
        return float(np.mean(values)) if self.references == "mean" else max(values)

    def _check(self, segments: Sequence[Segment]) -> None:
        if self.direction == "source->hypothesis":
            need_source("bartscore", segments)
        else:
            need_references("bartscore", segments)

    def _check_place(self, place: Place) -> None:
        targets = _TARGETS[self.direction]
        if place.side not in targets:
            raise SpecError(
                f"bartscore(direction={self.direction!r}) has word scores for the {' and the '.join(targets)}, the "
                f"text it scores; asked for the {place}. Explain that with erasure, lime or shap"
            )

    def _asked(self) -> Asked:
        return Asked(self.model, self.weights, self.device, self.precision, self.allow_pickle)

    def _model(self) -> BartModel:
        return load(self._asked()._replace(device=device_of(self.device, "bartscore")))


def _pairs(segment: Segment, direction: str) -> list[Pair]:
    """Return the conditioning text and the target, once per reference."""
    if direction == "source->hypothesis":
        return [(segment.source or "", segment.hypothesis)]
    pairs = [(reference, segment.hypothesis) for reference in present(segment.references)]
    return pairs if direction == "reference->hypothesis" else [(there, here) for here, there in pairs]
