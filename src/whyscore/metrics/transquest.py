"""TransQuest, after Ranasinghe, Orasan and Mitkov (2020, 2021): quality estimation without references.

1. `mono`: source and hypothesis are read together; the network's one output is the score.
2. `siamese`: each is read by itself; the score is the cosine of the two mean vectors, computed in float64.
3. `micro`: the words of the source, a separator, and the words of the hypothesis with a mark for the gap before,
   between and after them; the first piece of each is tagged OK or BAD. The score is 1 - mean p(BAD) over the words and
   gaps of the hypothesis that were read, which the paper leaves open.

Inputs are cut at 128 pieces, or where the model's arguments say; of a pair the longer text loses its end first.

Word scores, from `micro` models for hypothesis and source: minus p(BAD) of each white-space word. Other units get the
mean over the words they touch. Words beyond the limit have no number and the note `truncated`; gaps are in `tags`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from whyscore.errors import SpecError
from whyscore.metrics.needs import need_source
from whyscore.metrics.piece_words import Fill, PieceScores, word_scores
from whyscore.metrics.transquest_inside import opened
from whyscore.metrics.transquest_models import SEPARATOR, Asked, Kind, QuestModel, layout_of, load
from whyscore.models.attribution.interface import Inside
from whyscore.models.checkpoints import Precision, device_of, signed
from whyscore.options import check_fields
from whyscore.text.splitters import white_space
from whyscore.types import FloatVector, Inputs, Place, Segment, Side, Signature, Words, WordScores


class Tags(NamedTuple):
    """p(BAD) of each white-space word of source and hypothesis, and of the gaps; NaN where nothing was read."""

    source: FloatVector
    hypothesis: FloatVector
    gaps: FloatVector
    """Before the first word of the hypothesis, between words, after the last: one more than there are words."""


@dataclass(frozen=True, slots=True)
class TransQuest:
    """Predicted quality of a translation from source and hypothesis.

    Args:
        model: local folder, hub name or name@revision.
        kind: which of the three architectures the model has.
        predicts: what its numbers mean: `quality` is better when higher, `hter`, the predicted edit rate, when lower.
            `auto` takes hter for models with that word in their name.
        fill: what a word without a piece gets.
        device: auto, cpu, cuda, cuda:1, mps.
        precision: of the network.
        allow_pickle: read files that could run code while loading; only for files you trust.
    """

    model: str
    kind: Kind = "mono"
    predicts: Literal["auto", "quality", "hter"] = "auto"
    fill: Fill = "error"
    device: str = "auto"
    precision: Precision = "fp32"
    allow_pickle: bool = False

    inputs: ClassVar[Inputs] = Inputs.HYPOTHESIS | Inputs.SOURCE

    def __post_init__(self) -> None:
        """Refuse options that do not go together."""
        check_fields(self)
        if self.kind == "micro" and self.predicts == "hter":
            raise SpecError("transquest: a micro model tags words and predicts no hter; leave out predicts='hter'")

    @property
    def higher_is_better(self) -> bool:
        """Whether the model was trained to predict quality rather than edits."""
        return self._meaning() == "quality"

    def signature(self) -> Signature:
        """Return the spec and the model's facts."""
        layout = layout_of(self.model, self.kind)
        facts = {"predicts": self._meaning()}
        files = [layout.weights]
        return signed(self, layout.home, files, precision=self.precision, limit=layout.limit, **facts)

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        """Return one score per segment; NaN where a micro model read nothing of the hypothesis."""
        need_source("transquest", segments)
        pairs = [(segment.source or "", segment.hypothesis) for segment in segments]
        if self.kind == "micro":
            return np.array([_share_fine(tags) for tags in self.tags(segments)], dtype=np.float64)
        if self.kind == "mono":
            scores = self._model().pairs(pairs)
            return np.array([scores[pair] for pair in pairs], dtype=np.float64)
        vectors = self._model().vectors([text for pair in pairs for text in pair])
        return np.array([_cosine(vectors[source], vectors[text]) for source, text in pairs], dtype=np.float64)

    def tags(self, segments: Sequence[Segment]) -> list[Tags]:
        """Return p(BAD) of words and gaps, from a micro model."""
        if self.kind != "micro":
            raise SpecError(f"transquest(kind={self.kind!r}) has no word scores; explain it with erasure, lime or shap")
        need_source("transquest", segments)
        model = self._model()
        asked = [_row(segment, model.layout.gap) for segment in segments]
        found = model.tags(asked)
        return [
            _split(found[row], len(white_space(segment.source or "")))
            for row, segment in zip(asked, segments, strict=True)
        ]

    def word_scores(self, segments: Sequence[Segment], place: Place, words: Sequence[Words]) -> list[WordScores]:
        """Return minus p(BAD) of each word of the hypothesis or the source."""
        if place.side is Side.REFERENCE:
            raise SpecError("transquest does not read references: explain the hypothesis or the source")
        return [
            word_scores(
                own,
                _tagged(own, tags.source if place.side is Side.SOURCE else tags.hypothesis),
                "mean",
                self.fill,
                "-p(BAD)",
            )
            for own, tags in zip(words, self.tags(segments), strict=True)
        ]

    def inspected(self, segments: Sequence[Segment]) -> Inside:
        """Return what the network reads of each segment, and the score as a differentiable function of it."""
        if self.kind == "micro":
            raise SpecError("transquest(kind='micro') tags words itself; explain it with intrinsic")
        need_source("transquest", segments)
        return opened(self._model(), segments, joined=self.kind == "mono")

    def _meaning(self) -> Literal["quality", "hter"]:
        if self.predicts == "auto":
            named = Path(self.model.partition("@")[0]).name.lower()
            return "hter" if "hter" in named and self.kind != "micro" else "quality"
        return self.predicts

    def _model(self) -> QuestModel:
        device = device_of(self.device, "transquest")
        return load(Asked(self.model, self.kind, device, self.precision, self.allow_pickle))


def _cosine(left: FloatVector, right: FloatVector) -> float:
    lengths = float(np.linalg.norm(left) * np.linalg.norm(right))
    return float(left @ right) / lengths if lengths else 0.0


def _row(segment: Segment, gap: str) -> tuple[str, ...]:
    """Return the words a micro model reads."""
    hypothesis = [part for word in white_space(segment.hypothesis) for part in (word, gap)]
    return (*white_space(segment.source or ""), SEPARATOR, gap, *hypothesis)


def _split(values: FloatVector, source: int) -> Tags:
    target = values[source + 1 :]
    return Tags(values[:source], target[1::2], target[::2])


def _share_fine(tags: Tags) -> float:
    values = np.concatenate([tags.hypothesis, tags.gaps])
    read = values[~np.isnan(values)]
    return 1.0 - float(read.mean()) if len(read) else float("nan")


def _tagged(words: Words, bad: FloatVector) -> PieceScores:
    """Return the white-space words of a text as pieces; those without a number were not read or say nothing."""
    own = white_space(words.text)
    known = np.flatnonzero(~np.isnan(bad))
    return PieceScores(
        tuple(own.spans[k] for k in known),
        tuple(own.text[slice(*own.spans[k])] for k in known),
        -bad[known],
        len(own),
    )
