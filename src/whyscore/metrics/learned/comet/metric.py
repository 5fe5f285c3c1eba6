"""COMET (Rei et al. 2020, 2022), CometKiwi, UniTE and xCOMET, loaded from their checkpoints.

1. A folder holds `hparams.yaml` and the weights; configuration and tokenizer of the encoder lie beside them or come
   from the base model it names.
2. `regression_metric` (COMET-22) and `referenceless_regression_metric` read each text by itself: states of all blocks
   are mixed, pooled to one vector, and a small network scores [h; r; h*r; |h-r|; h*s; |h-s|] or [h; s; h*s; |h-s|].
   `ranking_metric` scores 1 / (1 + d), d the harmonic mean of the distances of h to s and to r.
3. `unified_metric` (CometKiwi, UniTE) and `xcomet_metric` read the texts joined, hypothesis first, as (h,s) or, with a
   reference, as (h,s), (h,r) and (h,s,r); the first piece is scored. UniTE takes the mean of the three.
4. xCOMET also tags the pieces of the hypothesis as fine, minor, major or critical (see below). With a reference its
   score is .12 s(h,s) + .33 s(h,r) + .33 s(h,s,r) + .22 m, else .78 s(h,s) + .22 m, with regression scores cut at 1 and
   m the MQM part of the tagged spans.

Word scores, from models with a word head: minus the probability that a piece of the word is an error. Several
references are scored one by one; `references` says whether their mean or the best one counts.

Error spans and the MQM part of xCOMET (arXiv 2310.10482), from class probabilities of pieces:

1. The probabilities of the inputs (h,s), (h,r), (h,s,r) are mixed 1/6, 1/3, 1/2.
2. A piece is an error if an error class is the most probable one or, with a threshold t, if p(error) > t; its severity
   is the most probable error class.
3. Neighbouring error pieces are one span, and the first severity counts; with `mode="paper"` only while the severity
   stays the same. A span that is open at the end of the text ends there.
4. A span is cut to its characters: blanks at its edges are left out. Confidence = mean probability of the classes
   that were chosen.
5. MQM part `m = (25 - min(25, sum of 1, 5, 10 for minor, major, critical)) / 25`.

`mode="compat"` gives the numbers of unbabel-comet 2.2.7, which differ in two ways: the special pieces around the
hypothesis may be errors, so that they open spans that have no text and cost points, and a span that is still open
after the last of them is dropped, so that an error at the very end may cost nothing. It also mixes by .1667, .3333 and
.5, and takes a threshold of 0 for none.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, cast

import numpy as np

from whyscore.errors import SpecError
from whyscore.marking import Span
from whyscore.metrics.learned.comet.checkpoint import HPARAMS, Settings, checkpoint_of, settings_of
from whyscore.metrics.learned.comet.network import CometModel, Judged, Texts, limit_of, load, open_model
from whyscore.metrics.needs import need_inputs, present
from whyscore.models.attribution import Inside
from whyscore.models.checkpoints import ModelRequest, device_of, model_signature
from whyscore.models.heads import LayerMix
from whyscore.models.pairs import Frame
from whyscore.registry import runs_code
from whyscore.settings import Precision, check_fields
from whyscore.text.alignment import BOUNDARY_MARKS, Fill, PieceScores, Pool, score_words
from whyscore.types import (
    ErrorSpan,
    FloatMatrix,
    FloatVector,
    Inputs,
    Place,
    Segment,
    Severity,
    Side,
    Signature,
    Words,
    WordScores,
)

Mode = Literal["default", "compat", "paper"]

SEVERITIES: tuple[Severity, ...] = ("minor", "major", "critical")
PENALTIES = (1, 5, 10)
WORST = 25
MIXED = (1 / 6, 1 / 3, 1 / 2)
MIXED_COMPAT = (0.1667, 0.3333, 0.5)  # as the published code has them


class Run(NamedTuple):
    """Neighbouring error pieces: the class, counted from 1, the first and the last piece, and the confidence."""

    label: int
    first: int
    last: int
    confidence: float


def mix_classes(parts: Sequence[FloatMatrix], mode: Mode = "default") -> FloatMatrix:
    """Return the class probabilities that several inputs give together; a single input speaks for itself."""
    if len(parts) == 1:
        return parts[0]
    weights = MIXED_COMPAT if mode == "compat" else MIXED
    weighted = [weight * part for weight, part in zip(weights, parts, strict=True)]
    return cast("FloatMatrix", np.sum(weighted, axis=0))


def runs(probabilities: FloatMatrix, threshold: float | None, mode: Mode) -> list[Run]:
    """Return the runs of error pieces, in order; in `compat` one that reaches the last piece is dropped."""
    labels = _labels(probabilities, (threshold or None) if mode == "compat" else threshold).tolist()
    runs_of_pieces: list[list[int]] = []
    for piece, label in enumerate(labels):
        if not label:
            continue
        goes_on = (
            runs_of_pieces and runs_of_pieces[-1][-1] == piece - 1 and (mode != "paper" or labels[piece - 1] == label)
        )
        if goes_on:
            runs_of_pieces[-1].append(piece)
        else:
            runs_of_pieces.append([piece])
    if mode == "compat" and runs_of_pieces and runs_of_pieces[-1][-1] == len(labels) - 1:
        del runs_of_pieces[-1]
    confidence = probabilities[np.arange(len(labels)), labels] if labels else np.zeros(0)
    return [Run(labels[run[0]], run[0], run[-1], float(confidence[run].mean())) for run in runs_of_pieces]


def error_spans(text: str, pieces: Sequence[Span], errors: Sequence[Run]) -> tuple[ErrorSpan, ...]:
    """Return the runs as spans of the text; what has no character besides blanks is left out."""
    spans = []
    for run in errors:
        start, end = pieces[run.first][0], pieces[run.last][1]
        inside = text[start:end]
        start += len(inside) - len(inside.lstrip())
        end -= len(inside) - len(inside.rstrip())
        if start < end:
            severity = SEVERITIES[run.label - 1]
            spans.append(ErrorSpan(start, end, severity, confidence=run.confidence))
    return tuple(spans)


def quality(errors: Sequence[Run]) -> float:
    """Return the MQM part of the score, 1 without errors.

    >>> quality([Run(2, 0, 1, 0.9), Run(1, 3, 3, 0.6)])
    0.76
    """
    return (WORST - min(WORST, sum(PENALTIES[run.label - 1] for run in errors))) / WORST


def _labels(probabilities: FloatMatrix, threshold: float | None) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    if threshold is None:
        return np.asarray(probabilities.argmax(axis=1))
    errors = probabilities[:, 1:]
    return np.where(errors.sum(axis=1) > threshold, errors.argmax(axis=1) + 1, 0)


class Shape(NamedTuple):
    """The numbers behind a score, and their weights in it."""

    columns: tuple[str, ...]
    weights: tuple[float, ...]


_FREE = Inputs.HYPOTHESIS | Inputs.SOURCE
_INPUTS = {
    "Unbabel/wmt22-comet-da": _FREE | Inputs.REFERENCES,
    "Unbabel/wmt20-comet-da": _FREE | Inputs.REFERENCES,
    "Unbabel/wmt22-cometkiwi-da": _FREE,
}
"""What the models of these names read."""

_ONE = Shape(("score",), (1.0,))
_UNITE = Shape(("source", "reference", "unified"), (1 / 3, 1 / 3, 1 / 3))
_XCOMET = Shape(("source", "reference", "unified", "mqm"), (0.12, 0.33, 0.33, 0.22))
_XCOMET_FREE = Shape(("source", "mqm"), (0.78, 0.22))


class PieceClasses(NamedTuple):
    """What a word head says of a hypothesis: class probabilities of its pieces, class 0 meaning no error."""

    pieces: PieceScores
    """The pieces, with minus the probability of an error."""
    probabilities: FloatMatrix
    framed: FloatMatrix
    """The same with the special pieces before and after the hypothesis."""


@dataclass(frozen=True, slots=True)
class Comet:
    """A trained metric of the COMET family; most models score from about 0 to 1, higher is better.

    Args:
        model: local folder, hub name or name@revision.
        device: auto, cpu, cuda, cuda:1, mps.
        precision: of the encoder; what stands on top of it is always computed in float32.
        layer_mix: overrides what the checkpoint says of mixing layers.
        against: `source` scores without references where the checkpoint could read them (UniTE, xCOMET).
        references: whether several references count by their mean or by the best.
        threshold: pieces with p(error) above it are errors; None takes the most probable class.
        mode: how xCOMET makes error spans. `default` joins neighbouring error pieces of the text whatever their
            severity, `paper` only equal ones; `compat` gives the numbers of unbabel-comet, where the special pieces
            around the text may open a span and a span that is open at the very end is dropped.
        pool: how the values of a word's subwords are combined.
        fill: the value of a word without subwords.
        allow_pickle: read checkpoints that could run code while loading; only for files you trust.
    """

    model: str = "Unbabel/wmt22-comet-da"
    device: str = "auto"
    precision: Precision = "fp32"
    layer_mix: LayerMix | None = None
    against: Literal["auto", "source"] = "auto"
    references: Literal["mean", "max"] = "mean"
    threshold: float | None = None
    mode: Mode = "default"
    pool: Pool = "mean"
    fill: Fill = "error"
    allow_pickle: bool = runs_code(default=False)

    higher_is_better: ClassVar[bool] = True
    original: ClassVar[str] = "unbabel-comet 2.2.7"

    def __post_init__(self) -> None:
        check_fields(self)
        if self.threshold is not None and not 0 <= self.threshold < 1:
            raise SpecError(f"comet: threshold is {self.threshold!r}, expected 0 to below 1, or None")

    @property
    def inputs(self) -> Inputs:
        if self.against == "auto" and self.model in _INPUTS:
            return _INPUTS[self.model]  # a missing text is said before a checkpoint is looked for
        inputs = self._settings().inputs
        if self.against == "auto":
            return inputs
        if not self._settings().joined or Inputs.SOURCE not in inputs:
            raise SpecError(f"comet: {self.model} cannot score against the source alone; leave out against='source'")
        return inputs & ~Inputs.REFERENCES

    @property
    def columns(self) -> tuple[str, ...]:
        return self._shape().columns

    def signature(self) -> Signature:
        home, weights = checkpoint_of(self.model)
        settings = self._settings()
        facts = {"mix": self.layer_mix or settings.mix} if settings.layer is None else {}
        files = [home.folder / HPARAMS, weights]
        limit = limit_of(home, settings)
        return model_signature(self, home, files, precision=self.precision, limit=limit, mode=self.mode, **facts)

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        return self.scores(self.statistics(segments))

    def statistics(self, segments: Sequence[Segment]) -> FloatMatrix:
        rows = [self._combine_references(parts) for parts in self._parts(segments)]
        return np.array(rows, dtype=np.float64).reshape(len(segments), len(self.columns))

    def scores(self, rows: FloatMatrix) -> FloatVector:
        return np.asarray(rows @ np.array(self._shape().weights), dtype=np.float64)

    def word_scores(self, segments: Sequence[Segment], place: Place, words: Sequence[Words]) -> list[WordScores]:
        if place.side is not Side.HYPOTHESIS:
            raise SpecError(f"comet tags the hypothesis; asked for the {place}. Explain it with erasure, lime or shap")
        classes = self.piece_classes(segments)
        return [
            score_words(text, classes_of_text.pieces, self.pool, self.fill, "-p(error)")
            for text, classes_of_text in zip(words, classes, strict=True)
        ]

    def error_spans(self, segments: Sequence[Segment]) -> list[tuple[ErrorSpan, ...]]:
        """Return the errors in each hypothesis, with severity and confidence, from models with a word head."""
        labels = self._settings().labels
        if self._settings().words is None or labels != SEVERITIES[: len(labels)]:
            raise SpecError(f"comet: {self.model} knows no severities; error spans need an xCOMET checkpoint")
        compat, result = self.mode == "compat", []
        for segment, (pieces, probabilities, framed) in zip(segments, self.piece_classes(segments), strict=True):
            errors = runs(framed if compat else probabilities, self.threshold, self.mode)
            spans = _without_marks(pieces)
            spans = _add_frame(spans, self._model().coder.frame) if compat else spans
            result.append(error_spans(segment.hypothesis, spans, errors))
        return result

    def inspect(self, segments: Sequence[Segment]) -> Inside:
        need_inputs("comet", segments, self.inputs)
        return open_model(self._model(), segments, self.inputs, self._shape().weights, self.references)

    def piece_classes(self, segments: Sequence[Segment]) -> list[PieceClasses]:
        """Return the class probabilities of the pieces of each hypothesis, from models with a word head."""
        if self._settings().words is None:
            raise SpecError(f"comet: {self.model} has no word head; explain it with erasure, lime or shap")
        model = self._model()
        coded = model.code([segment.hypothesis for segment in segments])
        result = []
        for segment, parts in zip(segments, self._parts(segments), strict=True):
            hypothesis = coded[segment.hypothesis]
            framed = self._combine_classes(parts)
            probabilities = _inner(framed, model.coder.frame)
            count = len(probabilities)
            values = probabilities[:, 0] - 1
            pieces = PieceScores(hypothesis.spans[:count], hypothesis.pieces[:count], values, len(hypothesis.ids))
            result.append(PieceClasses(pieces, probabilities, framed))
        return result

    def _parts(self, segments: Sequence[Segment]) -> list[list["_Part"]]:
        """Return for each segment one answer per reference, each distinct input computed once."""
        need_inputs("comet", segments, self.inputs)
        model, inputs = self._model(), self.inputs
        requests = [[_groups(texts, model.settings) for texts in _inputs(segment, inputs)] for segment in segments]
        distinct = list(dict.fromkeys(group for segment in requests for groups in segment for group in groups))
        if not model.settings.joined:
            answers = dict(zip(distinct, (Judged(score, None) for score in model.apart(distinct)), strict=True))
        else:
            answers = dict(zip(distinct, model.together(distinct), strict=True))
        tagging = model.settings.kind == "xcomet_metric"
        return [
            [self._part([answers[group] for group in groups], tagging) for groups in references]
            for references in requests
        ]

    def _part(self, answers: Sequence[Judged], tagging: bool) -> "_Part":  # noqa: FBT001 - one of two kinds
        """Return the parts of the score against one reference, and the class probabilities behind them."""
        tagged = [answer.classes for answer in answers if answer.classes is not None]
        classes = mix_classes(tagged, self.mode) if tagged else None
        scores = [answer.score for answer in answers]
        if tagging and classes is not None:
            read = classes if self.mode == "compat" else _inner(classes, self._model().coder.frame)
            scores = [min(score, 1.0) for score in scores] + [quality(runs(read, self.threshold, self.mode))]
        return _Part(tuple(scores), classes)

    def _combine_references(self, parts: Sequence["_Part"]) -> FloatVector:
        """Return the parts over all references: their mean, or those of the best one."""
        rows = np.array([part.scores for part in parts], dtype=np.float64)
        result: FloatVector = rows.mean(axis=0) if self.references == "mean" else rows[int(self.scores(rows).argmax())]
        return result

    def _combine_classes(self, parts: Sequence["_Part"]) -> FloatMatrix:
        tables = [part.classes for part in parts if part.classes is not None]
        if self.references == "mean":
            return np.asarray(np.mean(tables, axis=0), dtype=np.float64)
        rows = np.array([part.scores for part in parts], dtype=np.float64)
        return tables[int(self.scores(rows).argmax())]

    def _shape(self) -> Shape:
        settings = self._settings()
        three = settings.joined and Inputs.REFERENCES in self.inputs and Inputs.SOURCE in self.inputs
        if settings.kind == "xcomet_metric":
            return _XCOMET if three else _XCOMET_FREE
        return _UNITE if three else _ONE

    def _settings(self) -> Settings:
        return settings_of(self.model)

    def _model(self) -> CometModel:
        device = device_of(self.device, "comet")
        return load(ModelRequest(self.model, device, self.precision, self.allow_pickle), self.layer_mix)


class _Part(NamedTuple):
    scores: tuple[float, ...]
    classes: FloatMatrix | None


def _inner(framed: FloatMatrix, frame: Frame) -> FloatMatrix:
    """Return the rows of a table that stand for pieces of the text."""
    return framed[len(frame.before) : len(framed) - len(frame.after)]


def _without_marks(pieces: PieceScores) -> list[Span]:
    """Return the spans of pieces; a boundary mark alone has none, though tokenizers give it the letter that follows."""
    named = zip(pieces.spans, pieces.pieces, strict=True)
    return [(start, end if piece.strip(BOUNDARY_MARKS) else start) for (start, end), piece in named]


def _add_frame(spans: Sequence[Span], frame: Frame) -> list[Span]:
    """Return the spans of the pieces of a text with those of the special pieces around it, which are empty."""
    return [*((0, 0) for _ in frame.before), *spans, *((0, 0) for _ in frame.after)]


def _inputs(segment: Segment, inputs: Inputs) -> list[Texts]:
    """Return (h, s), (h, r) or (h, s, r), once per reference."""
    texts: Texts = (segment.hypothesis,)
    if Inputs.SOURCE in inputs and segment.source is not None:
        texts += (segment.source,)
    if Inputs.REFERENCES not in inputs:
        return [texts]
    return [(*texts, reference) for reference in present(segment.references)]


def _groups(texts: Texts, settings: Settings) -> list[Texts]:
    """Return what is read at once: three groups where a joined model has source and reference."""
    if not settings.joined or len(texts) < 3:  # noqa: PLR2004 - hypothesis, source and reference
        return [texts]
    hypothesis, source, reference = texts
    return [(hypothesis, source), (hypothesis, reference), texts]
