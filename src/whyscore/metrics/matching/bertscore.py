"""BERTScore (Zhang et al. 2020, arXiv 1904.09675) and XBERTScore (Leiter 2021), by greedy matching of vectors.

1. Encode both texts: the hypothesis, and a reference (`bertscore`) or the source (`xbertscore`).
2. Match every unit with its most similar one on the other side; precision is the mean over the hypothesis, recall over
   the other text, F their harmonic mean (`whyscore.models.matching`). Units are pieces, as published. The embedded
   encoder has no published numbers; there units are words, in phrases of up to three, unless something about pieces is
   asked for (`idf`, `specials`, `mode="paper"`): see there.
3. Several references: `compat` takes the best precision, recall and F, each by itself, as the published code does;
   `paper` those of the reference with the best F.
4. Special pieces: `compat` gives them no weight but lets them be the best match, `paper` leaves them out.
5. Word scores: the similarity of the units of a word, from the reference with the best F, with the counterpart as a
   note (`words`).

The signature holds the hash code of bert-score where it offers the same configuration, so that numbers in papers can be
compared. Without a model `bertscore` takes the one its authors chose for the language. idf and rescaling: `weights`,
`baseline`.

Segments before it in the document (`--context`) are read together with a text, and only its own units are matched:
document-level BERTScore (Vernikos et al. 2022, arXiv 2209.13654), with a blank in place of a separator.

What was prepared of a text serves all later calls, within a bound of bytes: probes of one text meet the texts that do
not change again and again. The least recently used texts are forgotten first; a model in a folder whose files change
is read anew.
"""

import importlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from importlib.metadata import version as package_version
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Self

import numpy as np

from whyscore.errors import MissingExtra, SpecError
from whyscore.metrics.matching.weights import Baseline, layer_of, read_baseline, read_idf
from whyscore.metrics.matching.words import Scale, TextPair, WordOptions, text_pair, word_scores
from whyscore.metrics.needs import compared_texts, need_references, need_source
from whyscore.models.attribution import Inside, Line, Reading
from whyscore.models.checkpoints import state_of_model
from whyscore.models.encoders.embedded import pools_itself
from whyscore.models.encoders.loading import encoder as load_encoder
from whyscore.models.encoders.loading import warn_uncovered
from whyscore.models.encoders.sentence import open_states
from whyscore.models.matching import (
    NOTHING,
    Both,
    InContext,
    Numbers,
    Reader,
    Sided,
    Specials,
    best_of_each,
    by_phrases,
    by_pieces,
    cosines,
    match_table,
    numbers,
)
from whyscore.models.pairs import Long, Pinned
from whyscore.protocols import Encoder, Similarities
from whyscore.registry import spec_of
from whyscore.settings import Precision, check_fields, names_file
from whyscore.text.alignment import Fill, Pool
from whyscore.text.files import State
from whyscore.types import (
    HYPOTHESIS,
    FloatMatrix,
    FloatVector,
    Inputs,
    Place,
    Segment,
    Side,
    Signature,
    Words,
    WordScores,
)
from whyscore.version import __version__

if TYPE_CHECKING:
    from torch import Tensor

# So many metrics at a time (say the members of an ensemble) may remember texts, within these bytes each.
_METRICS, _MEMORY = 4, 512 * 1024**2
# The matches of some 10,000 pairs of sentences: the score and the words of both sides come from the same.
_MATCHES = 16 * 1024**2


class EncoderState(NamedTuple):
    """An encoder, and what changes when the files of its folder do."""

    encoder: Encoder
    files: State | None


class Recipe(NamedTuple):
    """Everything that decides how a text is prepared."""

    state: EncoderState
    phrases: int
    specials: Specials
    idf: tuple[str, str] | None
    """The file and the digest of its weights."""
    languages: tuple[str, ...]


@lru_cache(maxsize=16)
def signature_of(state: EncoderState) -> Signature:
    """Return the signature of an encoder, read once."""
    return state.encoder.signature()


@lru_cache(maxsize=_METRICS)
def reader_of(recipe: Recipe) -> Reader:
    """Return what prepares texts; a new one warns of languages that the model does not know."""
    encoder = recipe.state.encoder
    warn_uncovered(encoder, recipe.languages)
    if recipe.phrases:
        prepare = partial(by_phrases, encoder=encoder, orders=recipe.phrases)
        return Reader(encoder, prepare, Pinned(_MEMORY), Pinned(_MEMORY), Pinned(_MATCHES))
    weigh = None if recipe.idf is None else read_idf(recipe.idf[0], encoder).of
    prepare = partial(by_pieces, encoder=encoder, specials=recipe.specials, weigh=weigh)
    return Reader(encoder, prepare, Pinned(_MEMORY), Pinned(_MEMORY), Pinned(_MATCHES))


PUBLISHED = {"en": "roberta-large", "zh": "bert-base-chinese", "tr": "dbmdz/bert-base-turkish-cased"}
"""What bert_score takes for a language; for all others the following."""
MULTILINGUAL = "bert-base-multilingual-cased"
BERT_SCORE = "0.3.13"
"""The version of bert-score whose numbers these are (docs/parity.md)."""

_PHRASES = 3
# de, zh-TW, sr_Latn; a pair is two of them with a hyphen between.
_CODE = re.compile(r"[a-z]{2,3}(?:[-_](?:[A-Z]{2}|[A-Z][a-z]{3}))?")


@dataclass(frozen=True)
class BertScore:
    """Similarity of the pieces of hypothesis and references, at most 1; higher is better.

    Args:
        model: `embedded`, `static`, a folder, a hub name or name@revision; None for the published one of the language.
        layer: whose vectors; None for the recommended layer.
        measure: F-score, precision or recall.
        idf: file with one reference per line, or a table of weights; None for equal weights.
        baseline: file with what unrelated texts score, for rescaling.
        phrases: 0 matches pieces, N phrases of up to N words; None for 3 with the embedded encoder, else 0.
        specials: whether special pieces weigh nothing, are left out, or count; None for what the mode says.
        mode: `compat` follows the published code, `paper` the formulas.
        scale: whether word scores are similarities or add up to precision and recall.
        pool: how the units of a word make its similarity.
        fill: what a word without a piece gets.
        languages: of the texts, like `de-en` or `en`; English where nobody says.
        long: what becomes of texts the model cannot read whole.
        device: auto, cpu, cuda, cuda:1, mps.
        precision: of the network.
        against: whether the hypothesis is compared with references or with the source.
    """

    model: str | None = None
    layer: int | None = None
    measure: Literal["f", "p", "r"] = "f"
    idf: str | None = names_file(None)
    baseline: str | None = names_file(None)
    phrases: int | None = None
    specials: Specials | None = None
    mode: Literal["compat", "paper"] = "compat"
    scale: Scale = "similarity"
    pool: Pool = "mean"
    fill: Fill = "error"
    languages: str | None = None
    long: Long = "truncate"
    device: str = "auto"
    precision: Precision = "fp32"
    against: Literal["reference", "source"] = "reference"

    higher_is_better: ClassVar[bool] = True
    original: ClassVar[str] = "bert-score 0.3.13"
    columns: ClassVar[tuple[str, ...]] = ("precision", "recall", "f")

    def __post_init__(self) -> None:
        check_fields(self)
        if self.languages is not None and not re.fullmatch(f"{_CODE.pattern}(?:-{_CODE.pattern})?", self.languages):
            raise SpecError(f"{self._name}: languages is {self.languages!r}, expected codes like 'en' or 'de-en'")
        if self.phrases is not None and self.phrases < 0:
            raise SpecError(f"{self._name}: phrases is {self.phrases}, expected 0 for pieces, or the words of a phrase")
        if self.phrases and (self.idf is not None or self.specials is not None):
            raise SpecError(
                f"{self._name}: idf and specials are about pieces, and phrases={self.phrases} matches words; "
                "write phrases=0, or leave them out"
            )

    def for_languages(self, source: str, target: str) -> Self:
        unasked = self.languages is None and self.model is None
        return replace(self, languages=f"{source}-{target}") if unasked else self

    @property
    def inputs(self) -> Inputs:
        return Inputs.HYPOTHESIS | Inputs.CONTEXT | (Inputs.SOURCE if self.against == "source" else Inputs.REFERENCES)

    def signature(self) -> Signature:
        encoder = self.encoder()
        signature, phrases = self._signature(encoder), self._phrases(encoder)
        facts = {} if self.model is not None else {"model": self._model}
        facts |= {"mode": self.mode, "units": f"words1-{phrases}.2" if phrases else "pieces"}
        if not phrases:
            facts["specials"] = self._specials()
        if self.idf is not None:
            facts["idf"] = read_idf(self.idf, encoder).digest
        base = self._baseline(encoder)
        if base is not None:
            facts["baseline"] = "/".join(f"{number:.6g}" for number in base)
        name = self.bert_score_hash()
        facts |= {} if name is None else {"hash": name}
        facts |= dict(signature.facts) | {"version": __version__}
        return Signature(spec_of(self), tuple(facts.items()), signature.stable)

    def bert_score_hash(self) -> str | None:
        """Return the hash code by which bert-score names this configuration; None where it offers no such one."""
        encoder = self.encoder()
        published = self.mode == "compat" and self._specials() == "weightless" and self.long == "truncate"
        if not published or self.against == "source" or self._model in ("embedded", "static") or self._phrases(encoder):
            return None
        name = f"{self._model}_L{layer_of(encoder)}{'_no-idf' if self.idf is None else '_idf'}"
        name += f"_version={BERT_SCORE}(hug_trans={package_version('transformers')})"
        return f"{name}{'' if self.baseline is None else '-custom-rescaled'}_fast-tokenizer"

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        return self.scores(self.statistics(segments))

    def statistics(self, segments: Sequence[Segment]) -> FloatMatrix:
        encoder = self.encoder()
        reader = self._reader(encoder)
        each = [
            [numbers(reader.match(both), both.other.weights, both.hypothesis.weights) for _, both in texts]
            for texts in self._texts(segments, reader)
        ]
        return self._rows(each, encoder)

    def scores(self, rows: FloatMatrix) -> FloatVector:
        return np.array(rows[:, "prf".index(self.measure)], dtype=np.float64)

    def for_decomposition(self, *, published: bool) -> "BertScore":
        del published
        return replace(self, phrases=0) if self.phrases is None else self

    def similarities(self, segments: Sequence[Segment]) -> list[tuple[Similarities, ...]]:
        encoder = self.encoder()
        if self._phrases(encoder):
            raise SpecError(f"{self._name} matches phrases, which no single matrix holds; write phrases=0 for pieces")
        return [
            tuple(Similarities(cosines(x, y), x.spans, x.weights, y.spans, y.weights) for _, (x, y, _) in texts)
            for texts in self._texts(segments, self._reader(encoder))
        ]

    def matched(self, similarities: Sequence[Sequence[Similarities]]) -> FloatVector:
        return self.scores(
            self._rows([[_numbers(matrix) for matrix in similarity] for similarity in similarities], self.encoder())
        )

    def word_scores(self, segments: Sequence[Segment], place: Place, words: Sequence[Words]) -> list[WordScores]:
        faced = self.text_pairs(segments, place)
        base = self._baseline(self.encoder())
        side = None if base is None else base.precision if place.side is Side.HYPOTHESIS else base.recall
        options = WordOptions(self.pool, self.fill, self.scale, side)
        return [word_scores(text, pair, options) for text, pair in zip(words, faced, strict=True)]

    def inspect(self, segments: Sequence[Segment]) -> Inside:
        """Return what the network reads of each segment, and the score as a differentiable function of it.

        The best match of a piece is taken as it stands: the score is smooth but where two matches are equally good.
        """
        encoder = self.encoder()
        if any(segment.context for segment in segments):
            raise SpecError(f"{self._name} cannot be looked into with context: use erasure, lime or shap")
        if self._phrases(encoder) or self.idf is not None:
            option = "phrases" if self.idf is None else "weights by idf"
            raise SpecError(
                f"{self._name} cannot be looked into with {option}: name the folder of a network and leave out idf, "
                f"{self._name}(model='./folder'), or explain it with erasure, lime or shap"
            )
        edges = None if self._specials() == "exclude" else _edges(by_pieces(["a"], encoder, self._specials())[0])
        base = self._baseline(encoder)

        def compare(states: "Tensor", mask: "Tensor", readings: Sequence[Reading]) -> "Tensor":
            del mask  # the rows know how long they are
            rows = iter(states)
            scores = [
                self._differentiable([_weigh(next(rows), line, edges) for line in reading], base)
                for reading in readings
            ]
            stacked: Tensor = importlib.import_module("torch").stack(scores)
            return stacked

        return open_states(
            encoder, segments, lambda segment: list(compared_texts(segment, self.against)), compare, self._name
        )

    def _differentiable(self, rows: Sequence["_Weighted"], base: Baseline | None) -> "Tensor":
        """Return the score of a hypothesis, the first row, with the texts it is compared with."""
        torch = importlib.import_module("torch")
        each = torch.stack([_match(other, rows[0]) for other in rows[1:]])
        best = each.max(dim=0).values if self.mode == "compat" else each[each[:, 2].argmax()]
        place = "prf".index(self.measure)
        value: Tensor = best[place]
        return value if base is None else (value - base[place]) / (1 - base[place])

    def text_pairs(self, segments: Sequence[Segment], place: Place) -> Iterator[TextPair | None]:
        """Return the text at a place with the one it is matched with, for each segment; None where one is blank."""
        self._check_place(place)
        turned = place.side is not Side.HYPOTHESIS
        reader = self._reader(self.encoder())
        return (_text_pair(texts, reader, turned=turned) for texts in self._texts(segments, reader, place))

    def _texts(
        self, segments: Sequence[Segment], reader: Reader, place: Place = HYPOTHESIS
    ) -> Iterator[list[tuple[Place, Both]]]:
        """Yield for each segment the texts it is compared with and where they stand, each with the hypothesis."""
        if self.against == "source":
            need_source(self._name, segments)
        else:
            need_references(self._name, segments)
        texts = [compared_texts(segment, self.against, place) for segment in segments]
        pairs = [
            _in_context(segment, other, text)
            for segment, others in zip(segments, texts, strict=True)
            for other, text in others.items()
        ]
        ready = reader.pairs(pairs)
        return ([(other, next(ready)) for other in others] for others in texts)

    def _rows(self, each: Sequence[Sequence[Numbers]], encoder: Encoder) -> FloatMatrix:
        """Return one row per segment from one per reference, rescaled where asked for."""
        best = [
            best_of_each(by_reference) if self.mode == "compat" else max(by_reference, key=lambda row: row.f)
            for by_reference in each
        ]
        rows = np.array(best, dtype=np.float64).reshape(-1, len(self.columns))
        base = self._baseline(encoder)
        return rows if base is None else base.rescale(rows)

    def _check_place(self, place: Place) -> None:
        if place.side is (Side.REFERENCE if self.against == "source" else Side.SOURCE):
            read = "the source" if self.against == "source" else "a reference"
            raise SpecError(f"{self._name} does not read the {place.side}: explain the hypothesis or {read}")

    @property
    def _name(self) -> str:
        return "xbertscore" if self.against == "source" else "bertscore"

    @property
    def _codes(self) -> tuple[str, ...]:
        """The languages of the texts that are compared: both of the pair, or the last one."""
        codes = tuple(_CODE.findall(self.languages or ""))
        return codes if self.against == "source" else codes[-1:]

    @property
    def _model(self) -> str:
        if self.model is not None:
            return self.model
        return PUBLISHED.get(self._codes[-1][:2] if self._codes else "en", MULTILINGUAL)

    def encoder(self) -> Encoder:
        """Return what turns texts into vectors."""
        encoder = load_encoder(self._model, self.layer, device=self.device, precision=self.precision, long=self.long)
        if self.model is None:
            try:
                self._signature(encoder)
            except MissingExtra as error:
                raise MissingExtra(f"{error}. Offline, {self._name}(model='embedded') needs no download") from error
        return encoder

    def _phrases(self, encoder: Encoder) -> int:
        """Return how long phrases are, 0 for pieces."""
        if self.phrases is not None:
            return self.phrases
        asked_about_pieces = self.idf is not None or self.specials is not None or self.mode == "paper"
        return _PHRASES if pools_itself(encoder) and not asked_about_pieces else 0

    def _specials(self) -> Specials:
        return self.specials or ("exclude" if self.mode == "paper" else "weightless")

    def _baseline(self, encoder: Encoder) -> Baseline | None:
        if self.baseline is None:
            return None
        return read_baseline(self.baseline, layer_of(encoder))

    def _reader(self, encoder: Encoder) -> Reader:
        idf = None if self.idf is None else (self.idf, read_idf(self.idf, encoder).digest)
        return reader_of(
            Recipe(self._encoder_state(encoder), self._phrases(encoder), self._specials(), idf, self._codes)
        )

    def _signature(self, encoder: Encoder) -> Signature:
        return signature_of(self._encoder_state(encoder))

    def _encoder_state(self, encoder: Encoder) -> EncoderState:
        return EncoderState(encoder, state_of_model(self._model))


@dataclass(frozen=True)
class XBertScore(BertScore):
    """Similarity of source and hypothesis, without references, at most 1; higher is better.

    Args:
        model: `embedded`, `static`, a folder, a hub name or name@revision; the paper's is xlm-roberta-large.
        languages: of source and hypothesis, like `de-en`.
        against: whether the hypothesis is compared with references or with the source.

    All other options are those of `bertscore`.
    """

    model: str | None = "embedded"
    against: Literal["reference", "source"] = "source"


def _in_context(segment: Segment, place: Place, text: str) -> tuple[InContext, InContext]:
    """Return a text and the hypothesis, each behind its context.

    Compared with the source, both sides have their own texts before them. Compared with a reference, both have the
    references before it: an error of an earlier segment counts there, not here (Vernikos et al. 2022).
    """
    if not segment.context:
        return InContext(text), InContext(segment.hypothesis)
    if place.side is Side.REFERENCE:
        at = place.reference or 0
        before = _drop_blank(
            sentence.references[min(at, len(sentence.references) - 1)]
            for sentence in segment.context
            if sentence.references
        )
        return InContext(text, before), InContext(segment.hypothesis, before)
    sources = _drop_blank(sentence.source or "" for sentence in segment.context)
    return InContext(text, sources), InContext(
        segment.hypothesis, _drop_blank(sentence.hypothesis for sentence in segment.context)
    )


def _drop_blank(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(text for text in texts if text.strip())


def _numbers(matrix: Similarities) -> Numbers:
    """Return what a matrix of pieces scores."""
    if not (matrix.weights.any() and matrix.hypothesis_weights.any()):
        return NOTHING
    others, hypotheses = matrix.cosines.shape
    return numbers(match_table(matrix.cosines, (others,), (hypotheses,)), matrix.weights, matrix.hypothesis_weights)


def _text_pair(texts: Sequence[tuple[Place, Both]], reader: Reader, *, turned: bool) -> TextPair | None:
    """Return the pair with the best F, as seen from the explained text."""
    pairs = [reader.match(both) for _, both in texts]
    scored = [
        numbers(pair, both.other.weights, both.hypothesis.weights).f
        for pair, (_, both) in zip(pairs, texts, strict=True)
    ]
    best = int(np.argmax(scored))
    place, (other, hypothesis, _) = texts[best]
    return text_pair(pairs[best], other, hypothesis, HYPOTHESIS if turned else place, turned=turned)


class _Weighted(NamedTuple):
    """The states of the pieces of a row, of unit length, and how much each counts."""

    vectors: "Tensor"
    weights: "Tensor"


def _edges(text: Sided) -> tuple[FloatVector, FloatVector]:
    """Return the weights of the special pieces before and after a text."""
    inside = np.flatnonzero(~text.special)
    return text.weights[: inside[0]], text.weights[inside[-1] + 1 :]


def _weigh(states: "Tensor", line: Line, edges: tuple[FloatVector, FloatVector] | None) -> _Weighted:
    torch = importlib.import_module("torch")
    (part,) = line.parts
    vectors = states[part.inside] if edges is None else states[: len(line.row.ids)]
    inner = np.ones(len(part.spans))
    weights = inner if edges is None or not len(inner) else np.concatenate([edges[0], inner, edges[1]])
    tensor = torch.as_tensor(
        weights if len(inner) else np.zeros(len(vectors)), dtype=vectors.dtype, device=vectors.device
    )
    return _Weighted(torch.nn.functional.normalize(vectors, dim=-1), tensor)


def _match(other: _Weighted, hypothesis: _Weighted) -> "Tensor":
    """Return precision, recall and F of two texts; zeros where one says nothing."""
    torch = importlib.import_module("torch")
    if not (other.weights.any() and hypothesis.weights.any()):
        return (hypothesis.vectors.sum() + other.vectors.sum()) * torch.zeros(3, device=other.vectors.device)
    cosine = other.vectors @ hypothesis.vectors.T
    precision = (cosine.max(dim=0).values * hypothesis.weights).sum() / hypothesis.weights.sum()
    recall = (cosine.max(dim=1).values * other.weights).sum() / other.weights.sum()
    scores: Tensor = torch.stack([precision, recall, 2 * precision * recall / (precision + recall)])
    return scores
