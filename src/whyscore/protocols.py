"""What plugins must be able to do. Authors inherit nothing: a class with these members is enough.

Components are frozen dataclasses: their parameters are the fields, making one does no work, and models load at the
first score. `whyscore.testing` holds each protocol's contract as tests.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol, Self, TypeGuard, runtime_checkable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from whyscore.types import (
    ErrorSpan,
    Evidence,
    Fit,
    FloatMatrix,
    FloatVector,
    HiddenWords,
    Inputs,
    IntVector,
    KeepMasks,
    Place,
    Segment,
    Signature,
    Words,
    WordScores,
)


@runtime_checkable
class Metric(Protocol):
    """Scores segments.

    What else the rest of the system can use is a protocol of its own, which a metric fulfils or not: rows
    (`RowMetric`), a corpus score (`CorpusMetric`), many of them at once (`SupportsTotals`), scores of words
    (`WordScorer`), similarities (`MatrixMetric`), tokens (`TokenMetric`), less input than it reads (`SupportsNeeds`),
    scale (`SupportsScale`), how texts are masked for it (`SupportsMasking`), and which variant of it is decomposed
    (`SupportsDecomposition`).

    >>> class Shouting:
    ...     inputs, higher_is_better = Inputs.HYPOTHESIS, False
    ...     def signature(self): return Signature("shouting")
    ...     def score(self, segments):
    ...         return np.array([float(segment.hypothesis.count("!")) for segment in segments])
    """

    @property
    def inputs(self) -> Inputs:
        """Which texts of a segment the score depends on."""

    @property
    def higher_is_better(self) -> bool:
        """Whether a larger score means a better hypothesis."""

    def signature(self) -> Signature:
        """Return the text that names every choice behind the scores."""

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        """Return one finite float64 per segment; each depends on its segment alone."""


@runtime_checkable
class RowMetric(Metric, Protocol):
    """A metric with several numbers per segment (counts; precision, recall and F) behind each score."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The name of each number in a row."""

    def statistics(self, segments: Sequence[Segment]) -> FloatMatrix:
        """Return one row of numbers per segment."""

    def scores(self, rows: FloatMatrix) -> FloatVector:
        """Return the segment score that each row stands for."""


@runtime_checkable
class CorpusMetric(RowMetric, Protocol):
    """A metric whose corpus score is a formula over summed rows (BLEU, chrF, TER): resample rows, never texts."""

    def total(self, row: FloatVector) -> float:
        """Return the corpus score of one summed row."""

    def segment_signature(self) -> Signature:
        """Return the signature of the segment scores, where the formula differs from the corpus one."""


@runtime_checkable
class SupportsTotals(Protocol):
    """Computes many corpus scores at once, with the digits that `CorpusMetric.total` gives one by one."""

    def totals(self, rows: FloatMatrix) -> FloatVector:
        """Return the corpus score of each summed row."""


@runtime_checkable
class WordScorer(Protocol):
    """Gives each word a score directly, without probes: matched n-grams, edits, similarities, log-probabilities."""

    def word_scores(self, segments: Sequence[Segment], place: Place, words: Sequence[Words]) -> list[WordScores]:
        """Return one answer per segment for the text at `place`, one number for each of its words."""


@runtime_checkable
class MayScoreWords(Protocol):
    """A metric whose options decide whether it has word scores."""

    def has_word_scores(self) -> bool:
        """Return whether it has word scores as it is."""


def scores_words(metric: object) -> TypeGuard[WordScorer]:
    """Return whether a metric gives each word a score."""
    return isinstance(metric, WordScorer) and (not isinstance(metric, MayScoreWords) or metric.has_word_scores())


@runtime_checkable
class SupportsErrorSpans(Protocol):
    """A metric that marks the errors it found in the hypothesis."""

    def error_spans(self, segments: Sequence[Segment]) -> list[tuple[ErrorSpan, ...]]:
        """Return the error spans of every segment; none where it found no error."""


@runtime_checkable
class SupportsLanguages(Protocol):
    """A metric or an explainer whose numbers depend on the languages of the texts."""

    def for_languages(self, source: str, target: str) -> Self:
        """Return it for these languages; itself where it was told before, or names what they would choose."""


@runtime_checkable
class PartsMetric(RowMetric, WordScorer, Protocol):
    """A metric whose score is the sum of named parts, and whose word scores name the matches of each word (MEE)."""

    def parts(self, rows: FloatMatrix) -> Mapping[str, tuple[float, FloatVector]]:
        """Return for each part its weight and its value in each row; the weighted values add up to the score."""


class Similarities(NamedTuple):
    """How similar every unit of one text is to every unit of the hypothesis, and how much each unit counts."""

    cosines: FloatMatrix
    """Units of the other text x units of the hypothesis."""
    spans: NDArray[np.int64]
    """Units of the other text x 2: code-point offsets into it; empty for special pieces."""
    weights: FloatVector
    """Of the units of the other text."""
    hypothesis_spans: NDArray[np.int64]
    """Units of the hypothesis x 2."""
    hypothesis_weights: FloatVector
    """Of the units of the hypothesis."""


@runtime_checkable
class MatrixMetric(Metric, Protocol):
    """A metric that is arithmetic over similarities (BERTScore): texts are encoded once, changed cells cost nothing."""

    def similarities(self, segments: Sequence[Segment]) -> list[tuple[Similarities, ...]]:
        """Return for each segment one matrix per reference, or the one against the source."""

    def matched(self, similarities: Sequence[Sequence[Similarities]]) -> FloatVector:
        """Return the score of each segment from its matrices; unchanged ones give what `score` gives."""


class Token(NamedTuple):
    """A token as the metric counts it, and where it stands in the text as given."""

    text: str
    start: int
    end: int


@runtime_checkable
class TokenMetric(Metric, Protocol):
    """A metric that counts tokens and says which: a feature is masked token by token (BLEU, ROUGE, TER)."""

    def tokens(self, text: str) -> tuple[Token, ...]:
        """Return the tokens with their places in the text as given."""

    def on_tokens(self) -> Metric:
        """Return the metric for texts that are cut already: a text scores what its joined tokens score there."""


@runtime_checkable
class SupportsNeeds(Protocol):
    """A metric that can do without some of the texts that it would read."""

    @property
    def needs(self) -> Inputs:
        """What must be there: a part of `inputs`."""


@runtime_checkable
class SupportsModel(Protocol):
    """A metric that reads texts through a model, which it names."""

    @property
    def model(self) -> str | None:
        """The name of the model or its folder; None for the usual one."""


@runtime_checkable
class SupportsScale(Protocol):
    """A metric that says how large its numbers are; all others count as if they went to 1."""

    @property
    def score_scale(self) -> float | None:
        """The score of a perfect hypothesis, 100 or 1, or of a useless one where lower is better; None: find out."""


Masking = Literal["token", "character", "matrix", "opaque"]
"""What is masked for a metric: its tokens, characters, cells of its similarity matrix, or words of the text."""


@runtime_checkable
class SupportsMasking(Protocol):
    """A metric that says how texts are masked for it; of others, tokens or matrices are masked, or words replaced."""

    @property
    def masking(self) -> Literal["character", "opaque"] | None:
        """`character` where runs of characters are compared, blind to what they mean (chrF); None: find out."""


@runtime_checkable
class SupportsPlaceholders(Protocol):
    """A metric whose model has words of its own for masked ones."""

    @property
    def placeholders(self) -> tuple[str, str, str]:
        """Three words that never agree: one of both sides, one of hypotheses, one of references."""


@runtime_checkable
class SupportsDecomposition(Protocol):
    """A metric of which a decomposition scores another variant, unless its options were chosen explicitly."""

    def for_decomposition(self, *, published: bool) -> Metric:
        """Return that variant, whose spec says what it is; with `published`, the one behind the published tables."""


@runtime_checkable
class SupportsMinimumLength(Protocol):
    """A metric that is 0 for short texts, even against themselves."""

    @property
    def minimum_tokens(self) -> int:
        """The tokens that a text must have to score more than 0."""


@runtime_checkable
class SupportsHiddenWords(RowMetric, Protocol):
    """A metric of tokens that reads a text once for many ways of hiding some of its words."""

    def hidden_statistics(
        self, texts: Sequence[tuple[IntVector, Sequence[IntVector]]], hidden: HiddenWords
    ) -> Iterator[tuple[FloatMatrix, FloatMatrix]]:
        """Yield for each segment rows as those of `statistics`, one per draw: all hidden words agree; none does.

        A segment is its hypothesis and its references as numbers of words; a draw says which words are hidden.
        """


@runtime_checkable
class Explainer(Protocol):
    """Knows masks, not metrics: says which probes to ask, then reads importance off the scores."""

    @property
    def rounds(self) -> int:
        """How often probes may be planned; a later round sees the scores of the earlier ones."""

    def cost(self, words: int) -> int:
        """Return how many probes a text of that many words takes at the most."""

    def plan(self, evidence: Evidence, rng: Generator) -> KeepMasks:
        """Return the masks to ask next; no rows when nothing more is needed."""

    def fit(self, evidence: Evidence) -> Fit:
        """Return the importance of each word."""


@runtime_checkable
class HidesWords(Protocol):
    """An explainer that says what a hidden word becomes, where nobody names another masker."""

    @property
    def masker(self) -> "Masker | None":
        """What a hidden word becomes; None: nothing is hidden."""


@runtime_checkable
class SupportsBudget(Protocol):
    """An explainer that can ask more probes of each text."""

    def raise_budget(self) -> "Explainer | None":
        """Return the explainer with twice its budget; None where its budget follows from the text."""


@runtime_checkable
class FollowsOriginal(Protocol):
    """An explainer that can follow the package it is named after, down to how it cuts texts at spaces."""

    @property
    def mode(self) -> Literal["default", "compat"]:
        """Whether it does."""


class Probes(NamedTuple):
    """The texts that stand for the masks of one text.

    Where `rows` is None there is one text per mask. Otherwise text i belongs to mask `rows[i]` with weight
    `weights[i]`, and the score of a mask is the weighted sum.
    """

    texts: Sequence[str]
    rows: Sequence[int] | None = None
    weights: FloatVector | None = None


@runtime_checkable
class Masker(Protocol):
    """Turns masks into texts: what a hidden word becomes."""

    def render(self, texts: Sequence[tuple[Words, KeepMasks]]) -> list[Probes]:
        """Return the texts for the masks of many texts at once; keeping every word gives the text back unchanged."""


@runtime_checkable
class TokenMasker(Masker, Protocol):
    """A masker that puts one string in the place of every hidden word."""

    @property
    def token(self) -> str:
        """The string; a text that holds it already cannot be explained well."""


@runtime_checkable
class Splitter(Protocol):
    """Cuts a text into the units that are explained."""

    def split(self, text: str) -> Words:
        """Return the units with exact spans, in order, none of them empty."""


class Tagged(NamedTuple):
    """A stretch of text that carries features."""

    start: int
    end: int
    features: tuple[str, ...]


@runtime_checkable
class Tagger(Protocol):
    """Finds linguistic features in texts."""

    def signature(self) -> Signature:
        """Return the text that names every choice behind the tags."""

    def tag(self, texts: Sequence[str]) -> list[tuple[Tagged, ...]]:
        """Return the tagged stretches of each text, in order."""


@runtime_checkable
class SupportsLabels(Protocol):
    """A tagger that knows beforehand which features it can find."""

    def labels(self) -> tuple[str, ...]:
        """Return the features."""


@runtime_checkable
class SupportsLanguage(Protocol):
    """A frozen dataclass whose work depends on the language of the texts."""

    @property
    def language(self) -> str | None:
        """The language; None takes that of the data."""


@runtime_checkable
class SentenceScorer(Protocol):
    """Gives each text by itself a number: sentiment, concreteness."""

    def signature(self) -> Signature:
        """Return the text that names every choice behind the scores."""

    def scores(self, texts: Sequence[str]) -> list[float | None]:
        """Return one number per text; None where there is nothing to say."""


@runtime_checkable
class Aggregator(Protocol):
    """Turns the importances of one segment into one number."""

    def aggregate(self, importance: FloatVector) -> float:
        """Return the number; NaN for no importance at all."""


class Encoded(NamedTuple):
    """A text as vectors, one per piece of the model's tokenizer."""

    vectors: NDArray[np.float32]
    """Pieces x width."""
    spans: NDArray[np.int64]
    """Pieces x 2: half-open code-point offsets into the text as it was given; empty for specials."""
    pieces: tuple[str, ...]
    """The pieces themselves; equal pieces are equal strings (idf counts them)."""
    special: NDArray[np.bool_]
    """Which pieces the tokenizer added by itself."""
    total: int
    """How many pieces the text has; more than there are vectors where it was cut."""

    @property
    def nbytes(self) -> int:
        """How many bytes the vectors take."""
        return self.vectors.nbytes


@runtime_checkable
class LanguageBound(Protocol):
    """A metric that knows for which language pairs its model was made."""

    def unsupported(self, source: str | None, target: str | None) -> tuple[str, ...]:
        """Return which of the two languages its numbers mean little for; None is a language that is not known."""


@runtime_checkable
class Encoder(Protocol):
    """Turns texts into vectors; each distinct text is encoded once per call."""

    def signature(self) -> Signature:
        """Return the text that names model, revision, layer, precision, limit and licence."""

    def languages(self) -> frozenset[str] | None:
        """Return the language codes the model was made for; None where nobody says."""

    def encode(self, texts: Sequence[str]) -> list[Encoded]:
        """Return the pieces of each text with their vectors, whatever the batches behind it."""

    def pooled(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector per text, as the model itself makes it."""


@runtime_checkable
class AveragesPieces(Protocol):
    """An encoder whose vector of a text may be, but for its length, the mean of those of its pieces."""

    def averaged(self, text: str, encoded: Encoded) -> NDArray[np.bool_] | None:
        """Return which pieces the vector of a text is the mean of; None where it is made otherwise."""


@runtime_checkable
class SupportsLengths(Protocol):
    """An encoder that says how much of a text it reads."""

    def lengths(self, texts: Sequence[str]) -> list[tuple[int, int]]:
        """Return how many pieces of each text are read, and how many it has."""


@runtime_checkable
class Reproduces(Protocol):
    """A metric, or the class of one, whose numbers are those of another implementation."""

    original: str
    """The implementation and its version that the numbers were compared with, on random weights (docs/parity.md)."""


@runtime_checkable
class SupportsLayer(Protocol):
    """An encoder that reads a layer of a network."""

    @property
    def layer_read(self) -> int:
        """The number of the layer that the vectors come from, the first of several."""


class Part(NamedTuple):
    """A finished piece of work: which of the asked segments, their rows, and why rows are NaN (by position in it)."""

    indices: Sequence[int]
    rows: FloatMatrix
    failures: Mapping[int, str] = MappingProxyType({})


@runtime_checkable
class Executor(Protocol):
    """Runs a metric over batches, here or elsewhere. Only spec strings, segments and floats cross its border."""

    def run(self, metric: Metric, segments: Sequence[Segment], batches: Iterable[Sequence[int]]) -> Iterator[Part]:
        """Yield each batch's rows as they are ready, in any order."""


@runtime_checkable
class SizedExecutor(Executor, Protocol):
    """An executor that says how many segments a batch should hold."""

    @property
    def batch(self) -> int:
        """Segments of a batch."""


@runtime_checkable
class ConfigurableExecutor(Executor, Protocol):
    """An executor whose number of workers or address can also be given beside its spec."""

    @property
    def fields(self) -> Mapping[Literal["workers", "address"], str]:
        """The names of the fields that hold them; what is not there cannot be given."""


@dataclass(slots=True)
class Rate:
    """What one worker has done."""

    texts: int = 0
    seconds: float = 0.0


@runtime_checkable
class SupportsRates(Executor, Protocol):
    """An executor that knows what each of its workers has done."""

    @property
    def rates(self) -> Mapping[str, Rate]:
        """By the name of the worker."""
