"""Which layer of a model agrees best with human judgements, after Leiter (2021).

1. Segments are grouped by the text they are compared with, in windows that bound the memory. The texts of a window go
   through the network once; the vectors of all layers are held until no later window needs them. Encoders that give
   one layer at a time are asked once per layer, and a note says so.
2. In each layer the metric itself scores all segments; the scores are correlated with the human ones.
3. Where words are marked as errors, the error score of a word is minus its similarity: AUC per sentence, then the mean.

Units are subwords in every layer unless phrases are asked for, so that layers differ in nothing else.

The experiments about matching as commands: what unrelated texts score, and which layer agrees with people.

Baseline, for rescaling BERTScore (Zhang et al. 2020):

1. Take the distinct lines of a text in one language, blank ones left out.
2. Score random pairs of them; b is the mean of precision, recall and F.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import ClassVar, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from whyscore.analysis.common import MetricLike, as_metric, requested_name, with_languages
from whyscore.analysis.metaeval import gold_of, segments_of
from whyscore.cli.options import Command, InputSettings, MetricSettings, OutputSettings, QuietSettings
from whyscore.cli.output import emit, emit_result, format_of, tell, tell_each, tell_signatures
from whyscore.cli.setup import load_dataset, only_metric
from whyscore.data.codec import Kind
from whyscore.data.files import read_lines
from whyscore.data.formats.eval4nlp import SPLITTER, Gold, Judged, read_gold
from whyscore.data.records import header_of
from whyscore.errors import DataError, SpecError, UserError
from whyscore.metrics.matching.bertscore import BertScore
from whyscore.metrics.matching.weights import Baseline, baseline_lines, estimate_baseline, layer_of
from whyscore.models.encoders.embedded import LAYERS, Embedded
from whyscore.models.encoders.transformer import Inseparable, Transformer
from whyscore.protocols import Encoded, Encoder
from whyscore.registry import spec_of
from whyscore.settings import REQUIRED, Seeded, again, option, takes
from whyscore.stats.coefficients import Coefficient, kernel
from whyscore.stats.resampling import content_order
from whyscore.stats.words import Ragged, agree
from whyscore.types import (
    HYPOTHESIS,
    SOURCE,
    Dataset,
    Entry,
    FloatVector,
    Inputs,
    Place,
    Segment,
    Signature,
    Words,
)
from whyscore.types.result import Record, Result, Table

COEFFICIENTS: dict[str, Coefficient] = {"pearson": "pearson", "spearman": "spearman", "kendall": "kendall_b"}
_DIRECTED = (*COEFFICIENTS, "auc", "source_auc")
_MARKS = ("tags", "tgt_tags", "src_tags", "annotations")
# Bytes of vectors in a window, if a piece has three letters and a vector 1,024 numbers.
_MEMORY = 256 * 1024**2
_LETTER = 1024 * 4 / 3
_PLACES: dict[Judged, Place] = {"target": HYPOTHESIS, "source": SOURCE}

WordsOf = Mapping[Judged, Sequence[Words]]


class Answers(NamedTuple):
    """What one layer says: a score per segment, and a number per word of the sides that were asked for."""

    scores: FloatVector
    words: dict[Judged, list[FloatVector]]


class Found(NamedTuple):
    """The answers of all layers, from 0 on, and how they came about."""

    layers: list[Answers]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LayerRow:
    """What one layer agrees with; NaN where a number is not defined, None where it was not asked for."""

    layer: int
    pearson: float | None
    spearman: float | None
    kendall: float | None
    n: int
    """Segments with a human score."""
    auc: float | None
    source_auc: float | None
    sentences: int
    """Sentences with an AUC of the hypothesis."""

    def record(self) -> dict[str, object]:
        """Return the numbers that were asked for."""
        parts: dict[str, object] = {"layer": self.layer}
        if self.pearson is not None:
            parts |= {name: getattr(self, name) for name in COEFFICIENTS} | {"n": self.n}
        if self.auc is not None:
            parts |= {"auc": self.auc, "sentences": self.sentences}
        return parts if self.source_auc is None else parts | {"source_auc": self.source_auc}


@dataclass(frozen=True, eq=False, repr=False)
class LayerSweep(Result):
    """All layers of a model compared with human judgements."""

    dataset: Dataset
    rows: tuple[LayerRow, ...]
    signature: Signature
    notes: tuple[str, ...]
    kind: ClassVar[Kind] = "metaeval"

    def header(self) -> Record:
        return header_of(self.kind, self.dataset, {"layers": str(self.signature)}).object()

    def records(self) -> Iterator[Record]:
        return (row.record() for row in self.rows)

    def tables(self, *, long: bool = False) -> list[Table]:
        del long
        plain = Table.of(self.records())
        return [replace(plain, higher_is_better={name: True for name in plain.columns if name in _DIRECTED})]


def layers(
    dataset: Dataset, metric: MetricLike = "xbertscore", *, human: str | None = None, gold: Gold | None = None
) -> LayerSweep:
    """Return how well each layer of a model agrees with people.

    Args:
        dataset: texts, with human scores, error spans or tags.
        metric: bertscore or xbertscore with its model; its layer is not looked at.
        human: the name of the human score; None for the gold's sentence scores, if any.
        gold: word tags of the same segments in the same order; None for those of the data set, if any.
    """
    prepared = _prepare(metric, dataset)
    marked = _marks(dataset, gold)
    people = dataset.human(human) if human is not None else None if marked is None else marked.sentence
    if people is None and marked is None:
        raise DataError(f"{dataset.name} says nothing to compare layers with: name a human score, or give word tags")
    sides = {} if marked is None else _sides(marked, dataset, prepared)
    answers = answers_of(prepared, dataset.segments, {side: marks.words for side, marks in sides.items()})
    rows = tuple(_row(layer, layer_answers, people, sides) for layer, layer_answers in enumerate(answers.layers))
    signature = prepared.signature().with_facts(layer=f"0-{len(rows) - 1}")
    notes = (*answers.notes, *_left_out(answers.layers, sides))
    return LayerSweep(dataset, rows, replace(signature, spec=spec_of(replace(prepared, layer=None))), notes)


class _Side(NamedTuple):
    tags: Ragged
    words: tuple[Words, ...]
    fits: tuple[bool, ...]


def matching_metric(metric: MetricLike) -> BertScore:
    """Return a metric that matches the vectors of one layer; any other is refused."""
    matcher = as_metric(metric)
    if not isinstance(matcher, BertScore):
        raise SpecError(f"{requested_name(metric)} matches no vectors of one layer: name bertscore or xbertscore")
    return matcher


def _prepare(metric: MetricLike, dataset: Dataset) -> BertScore:
    """Return the metric as it is asked in every layer: by pieces, words that were not read without a number."""
    matcher = matching_metric(metric)
    fill = "null" if matcher.fill == "error" else matcher.fill
    prepared = replace(matcher, layer=0, phrases=matcher.phrases or 0, fill=fill)
    return cast("BertScore", with_languages(prepared, dataset.languages))


def _marks(dataset: Dataset, gold: Gold | None) -> Gold | None:
    """Return the word tags: those that were given, or those of the data set."""
    if gold is not None:
        if len(gold) != len(dataset):
            raise DataError(f"{gold.name} has {len(gold)} segments, {dataset.name} has {len(dataset)}: one for each")
        return gold
    named = any(name.lower() in _MARKS for entry in dataset.entries for name in entry.extra)
    return gold_of(dataset) if named or any(entry.spans is not None for entry in dataset.entries) else None


def _sides(gold: Gold, dataset: Dataset, metric: BertScore) -> dict[Judged, _Side]:
    """Return the marked sides that the metric reads, with the words that tags are given for."""
    marked_sides: dict[Judged, _Side] = {}
    sides: tuple[Judged, ...] = ("target", "source") if Inputs.SOURCE in metric.inputs else ("target",)
    for side in sides:
        marks = gold.side(side)
        if marks is None:
            continue
        texts = [segment.hypothesis if side == "target" else segment.source or "" for segment in dataset.segments]
        words = tuple(map(SPLITTER.split, texts))
        fits = tuple(len(tokens) == count for tokens, count in zip(words, marks.tags.lengths.tolist(), strict=True))
        marked_sides[side] = _Side(marks.tags, words, fits)
    return marked_sides


def _row(layer: int, answers: Answers, people: FloatVector | None, sides: dict[Judged, _Side]) -> LayerRow:
    numbers = {} if people is None else _correlations(answers.scores, people)
    aucs = {side: _auc(answers, side, marks) for side, marks in sides.items()}
    auc = aucs.get("target")
    return LayerRow(
        layer=layer,
        pearson=numbers.get("pearson"),
        spearman=numbers.get("spearman"),
        kendall=numbers.get("kendall"),
        n=0 if people is None else int((~np.isnan(people)).sum()),
        auc=None if auc is None else _mean(auc),
        source_auc=_mean(aucs["source"]) if "source" in aucs else None,
        sentences=0 if auc is None else len(auc),
    )


def _correlations(scores: FloatVector, people: FloatVector) -> dict[str, float]:
    known = ~np.isnan(people)
    pairs = np.stack([scores, people], axis=1)[known]
    scores, people = pairs[content_order(pairs)].T  # sums in another order differ in the last digit
    return {name: float(kernel(coefficient)(scores, people)) for name, coefficient in COEFFICIENTS.items()}


def _auc(answers: Answers, side: Judged, marked: _Side) -> FloatVector:
    """Return the AUC of each sentence with marked and unmarked words, where all of its words have a number."""
    usable = _usable(answers, side, marked)
    rows = [row for row, good in zip(answers.words[side], usable, strict=True) if good]
    tags = marked.tags.select(np.array(usable, dtype=np.bool_))
    return agree(tags, Ragged.of(rows).negate()).of("auc")


def _usable(answers: Answers, side: Judged, marked: _Side) -> list[bool]:
    return [fit and bool(np.isfinite(row).all()) for fit, row in zip(marked.fits, answers.words[side], strict=True)]


def _mean(values: FloatVector) -> float:
    return math.fsum(values.tolist()) / len(values) if len(values) else math.nan


def _left_out(answers: Sequence[Answers], sides: dict[Judged, _Side]) -> list[str]:
    """Return how many sentences have no AUC because of their words."""
    notes = []
    for side, marked in sides.items():
        unfit = marked.fits.count(False)
        unread = len(marked.fits) - unfit - sum(_usable(answers[0], side, marked))
        if unfit:
            notes.append(f"{unfit} sentences of the {side} have another number of words than of tags; they have no AUC")
        if unread:
            notes.append(f"{unread} sentences of the {side} have words that the model did not read; they have no AUC")
    return notes


def answers_of(metric: BertScore, segments: Sequence[Segment], words: WordsOf) -> Found:
    """Return what a metric says in every layer of its model."""
    encoder = replace(metric, layer=0).encoder()
    if isinstance(encoder, Transformer):
        try:
            return _by_one_pass(metric, encoder, segments, words)
        except Inseparable as error:
            note, layers = f"one pass per layer, not one for all: {error}", encoder.layers
    else:
        layers = len(LAYERS) if isinstance(encoder, Embedded) else 1
        note = f"one pass per layer, not one for all: {metric.model} gives one layer at a time"
    each = [replace(metric, layer=layer) for layer in range(layers)]
    return Found([_ask(layer_metric, segments, words) for layer_metric in each], (note,) if layers > 1 else ())


def _ask(metric: BertScore, segments: Sequence[Segment], words: WordsOf) -> Answers:
    """Return what a metric says of segments and of their words."""
    scores = metric.score(segments)
    numbers = {
        side: [word_score.importance for word_score in metric.word_scores(segments, _PLACES[side], side_words)]
        for side, side_words in words.items()
    }
    return Answers(scores, numbers)


@dataclass(frozen=True, eq=False)
class _Held:
    """An encoder that only knows texts whose vectors are there already."""

    encoder: Transformer
    vectors: dict[str, Encoded] = field(default_factory=dict)

    def signature(self) -> Signature:
        return self.encoder.signature()

    def languages(self) -> frozenset[str] | None:
        return None

    def encode(self, texts: Sequence[str]) -> list[Encoded]:
        return [self.vectors[text] for text in texts]

    def pooled(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self.encoder.pooled(texts)


@dataclass(frozen=True)
class _Layer(BertScore):
    """A metric that reads vectors that are there already."""

    held: Encoder | None = field(default=None, metadata={"inside": True})

    def encoder(self) -> Encoder:
        """Return what holds the vectors."""
        return self.held or super().encoder()


def _by_one_pass(metric: BertScore, encoder: Transformer, segments: Sequence[Segment], words: WordsOf) -> Found:
    encoders = [_Held(replace(encoder, layer=layer)) for layer in range(encoder.layers)]
    options = {option.name: getattr(metric, option.name) for option in fields(metric)}
    metrics = [
        _Layer(**(options | {"layer": layer, "held": layer_encoder})) for layer, layer_encoder in enumerate(encoders)
    ]
    texts = [_texts(segment, metric) for segment in segments]
    later = Counter(text for segment_texts in texts for text in segment_texts)
    parts: list[list[Answers]] = [[] for _ in encoders]
    order: list[int] = []
    passes = 0
    for window in _windows(texts, int(_MEMORY / _LETTER / len(encoders))):
        used = [text for row in window for text in texts[row]]
        new = [text for text in dict.fromkeys(used) if text not in encoders[0].vectors]
        for layer_encoder, vectors in zip(encoders, encoder.every_layer(new), strict=True):
            layer_encoder.vectors.update(zip(new, vectors, strict=True))
        window_words = {side: [rows[row] for row in window] for side, rows in words.items()}
        for part, layer_metric in zip(parts, metrics, strict=True):
            part.append(_ask(layer_metric, [segments[row] for row in window], window_words))
        later.subtract(used)
        for layer_encoder in encoders:
            for text in [text for text in layer_encoder.vectors if not later[text]]:
                del layer_encoder.vectors[text]
        order += window
        passes += len(new)
    note = f"{passes} distinct texts went through the network once, for all {len(encoders)} layers"
    return Found([_join_answers(part, order) for part in parts], (note,))


def _texts(segment: Segment, metric: BertScore) -> tuple[str, ...]:
    """Return the texts that are compared, the hypothesis last."""
    others = (segment.source or "",) if Inputs.SOURCE in metric.inputs else segment.references
    return (*others, segment.hypothesis)


def _windows(texts: Sequence[tuple[str, ...]], letters: int) -> Iterator[list[int]]:
    """Yield rows, those that are compared with the same text near each other, in groups of bounded size."""
    window: list[int] = []
    size = 0
    for row in sorted(range(len(texts)), key=lambda row: texts[row]):
        size += sum(map(len, texts[row]))
        if window and size > letters:
            yield window
            window, size = [], sum(map(len, texts[row]))
        window.append(row)
    if window:
        yield window


def _join_answers(parts: Sequence[Answers], order: Sequence[int]) -> Answers:
    """Return the answers of all windows in the order of the segments."""
    back = np.argsort(order)
    scores = np.concatenate([part.scores for part in parts])[back] if parts else np.zeros(0)
    sides = parts[0].words if parts else {}
    words = {side: [row for part in parts for row in part.words[side]] for side in sides}
    return Answers(scores, {side: [rows[k] for k in back.tolist()] for side, rows in words.items()})


_BASELINE = """\
examples:
  whyscore experiment baseline english.txt -m "bertscore(model='roberta-large')" -o roberta.tsv
  whyscore score -t sys.txt -r ref.txt -m "bertscore(model='roberta-large', baseline='roberta.tsv')"
"""
_LAYERS = """\
examples:
  whyscore experiment layers data.tsv --human da -m "xbertscore(model='./folder')"
  whyscore experiment layers --gold GOLD -m "xbertscore(model='xlm-roberta-large')" -o layers.tsv
"""
_DIGITS = 4


@dataclass(frozen=True, kw_only=True)
class BaselineSettings(Seeded):
    """How the score of unrelated texts is estimated."""

    pairs: int = option(20_000, "random pairs", least=1, metavar="N", basic=True)


@dataclass(frozen=True, repr=False)
class BaselineEstimate(Result):
    """A baseline, the layer it is for, and what it was made from."""

    baseline: Baseline
    layer: int
    texts: int
    pairs: int
    signature: Signature
    kind: ClassVar[str] = "baseline"

    def records(self) -> Iterator[Record]:
        yield {"layer": self.layer, **self.baseline._asdict(), "texts": self.texts, "pairs": self.pairs}


@takes(BaselineSettings)
def baseline(texts: Sequence[str], metric: MetricLike = "bertscore", *, settings: BaselineSettings) -> BaselineEstimate:
    """Return what random pairs of texts score, for `bertscore(baseline=FILE)`.

    Args:
        texts: In one language; equal ones count once, blank ones not at all.
        metric: `bertscore` or `xbertscore` with its model and layer.
        settings: How many pairs are drawn.
    """
    raw = replace(matching_metric(metric), baseline=None)
    distinct = sorted({text for text in texts if text.strip()})
    estimated = estimate_baseline(distinct, raw, pairs=settings.pairs, seed=settings.seed)
    signature = raw.signature()
    drawn = signature.with_facts(pairs=settings.pairs, seed=settings.seed)
    return BaselineEstimate(estimated, layer_of(raw.encoder()), len(distinct), settings.pairs, drawn)


@dataclass(frozen=True, kw_only=True)
class BaselineCommand(QuietSettings, BaselineSettings, MetricSettings):
    """What `whyscore experiment baseline` takes."""

    texts: str = option(REQUIRED, "texts in one language, one a line", positional=True, metavar="FILE", basic=True)
    encoding: str = option("utf-8", "of the file", metavar="NAME")
    output: str | None = again(OutputSettings, "output", help="write the table to this file instead of stdout")


def run_baseline(settings: BaselineCommand) -> int:
    """Write the table that `bertscore(baseline=FILE)` reads."""
    lines = read_lines(settings.texts, encoding=settings.encoding)
    result = baseline(lines.texts, only_metric(settings, "bertscore"), settings=settings)
    emit(settings, baseline_lines(result.baseline, result.layer))
    left = len(lines.texts) - result.texts
    if left:
        tell(settings, f"note: {left} blank or repeated lines were left out")
    tell(settings, f"{result.pairs:,} random pairs of {result.texts:,} texts, layer {result.layer}")
    tell_signatures(settings, [result.signature])
    return 0


@dataclass(frozen=True, kw_only=True)
class LayersCommand(OutputSettings, InputSettings, MetricSettings):
    """What `whyscore experiment layers` takes."""

    gold: str | None = option(
        None, "word tags: a gold folder or zip of Eval4NLP 2021 or WMT22", metavar="PATH", basic=True
    )


def run_layers(settings: LayersCommand) -> int:
    """Write how well each layer of the model agrees with human judgements."""
    if settings.human and len(settings.human) > 1:
        raise UserError(f"--human {' '.join(settings.human)}: layers are compared with one human score at a time")
    metric = only_metric(settings, "xbertscore")
    data, gold = _data(settings)
    sweep = layers(data, metric, human=settings.human[0] if settings.human else None, gold=gold)
    emit_result(sweep, settings, _DIGITS)
    tell_each(settings, "note", sweep.notes)
    if format_of(settings) not in ("json", "jsonl"):
        tell_signatures(settings, [sweep.signature])
    return 0


def _data(settings: LayersCommand) -> tuple[Dataset, Gold | None]:
    """Return the texts and the word tags; a gold folder has both."""
    gold = read_gold(settings.gold) if settings.gold else None
    if gold is None or settings.data or settings.hypotheses:
        return load_dataset(settings), gold
    tell_each(settings, "note", gold.findings)
    pairs = zip(gold.names(), segments_of(gold), strict=True)
    return Dataset(gold.name, tuple(Entry(name, gold.name, segment) for name, segment in pairs)), gold


EXPERIMENTS = {
    "baseline": Command(
        "what unrelated texts score, for rescaling BERTScore", _BASELINE, BaselineCommand, run_baseline, baseline
    ),
    "layers": Command(
        "which layer of a model agrees best with human judgements", _LAYERS, LayersCommand, run_layers, layers
    ),
}
