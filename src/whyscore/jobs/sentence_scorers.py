"""Scores of single texts, to see whether hypotheses say things as their references do: sentiment, concreteness ...

1. Each distinct text gets a score s, or none where a lexicon knows no word of it.
2. Per system: the mean of s(reference) - s(hypothesis), signed as in the paper, and of its absolute value, which is
   what the paper's published code computes; both with bootstrap intervals. Of several references the mean counts.
3. Pairs without a score on one side are left out and counted; in `compat` that side counts 0.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from typing import Literal, Protocol, cast, runtime_checkable

import numpy as np

from whyscore.errors import MissingExtra, SpecError
from whyscore.jobs.decompose_result import ScorerDifference
from whyscore.jobs.sentence_lexicons import Columns, lexicon_values, token_score
from whyscore.options import check_fields
from whyscore.registry import build, spec_of
from whyscore.stats.resampling import bootstrap_mean
from whyscore.types import Dataset, Estimate, Segment, Signature

TextFunction = Callable[[str], float]


@runtime_checkable
class SentenceScorer(Protocol):
    """Gives each text a number, or None where it has nothing to say."""

    def signature(self) -> Signature:
        """Return the text that names every choice behind the scores."""

    def scores(self, texts: Sequence[str]) -> list[float | None]:
        """Return one number per text."""


ScorerLike = str | SentenceScorer | TextFunction


@dataclass(frozen=True, slots=True)
class Sentiment:
    """The compound sentiment of VADER (Hutto and Gilbert 2014), -1 to 1, for English; MIT licence."""

    def signature(self) -> Signature:
        """Return the spec and the version of VADER."""
        try:
            version = metadata.version("vaderSentiment")
        except metadata.PackageNotFoundError as error:
            raise MissingExtra.of("sentiment", "sentiment") from error
        return Signature(spec_of(self), (("vader", version),))

    def scores(self, texts: Sequence[str]) -> list[float | None]:
        """Return the compound score of each text."""
        analyzer = _vader()
        return [float(analyzer.polarity_scores(text)["compound"]) for text in texts]


@dataclass(frozen=True, slots=True)
class LexiconScorer:
    """The mean value of a text's words in a word list of your own: concreteness, valence, arousal, dominance.

    Known by their columns: Brysbaert's concreteness (Word, Bigram, Conc.M), NRC-VAD, Warriner's norms, WKWSCI
    sentiment; else a table of words and values. None is shipped: see the licence of yours.

    Args:
        path: the word list, TSV or CSV, with or without a header.
        column: which value, by its name in the header; None takes the one that is known, or the second column.
        kind: `mean` of the words found, or `sentiment`: (positive - negative) / words, where a negation among the
            three words before turns the sign.
        lemmas: a table of forms and lemmas, for words that the list has only as lemmas.
    """

    path: str
    column: str | None = None
    kind: Literal["mean", "sentiment"] = "mean"
    lemmas: str | None = None

    def __post_init__(self) -> None:
        """Refuse options of the wrong type."""
        check_fields(self)

    def signature(self) -> Signature:
        """Return the spec and a digest of the list."""
        values = lexicon_values(self.path, Columns(self.column))
        return Signature(spec_of(self), (("digest", values.digest), ("words", str(len(values.values)))))

    def scores(self, texts: Sequence[str]) -> list[float | None]:
        """Return the score of each text; None where no word is in the list."""
        values = lexicon_values(self.path, Columns(self.column)).values
        lemmas = lexicon_values(self.lemmas, Columns(texts=True)).texts if self.lemmas else {}
        return [token_score(text, values, lemmas, sentiment=self.kind == "sentiment") for text in texts]


@dataclass(frozen=True)
class FunctionScorer:
    """Any function from a text to a number."""

    function: TextFunction

    def signature(self) -> Signature:
        """Return the name of the function, which says too little to store anything under it."""
        name = getattr(self.function, "__qualname__", type(self.function).__qualname__)
        return Signature(f"function({name!r})", stable=False)

    def scores(self, texts: Sequence[str]) -> list[float | None]:
        """Return what the function says of each text; NaN is nothing to say."""
        found = [float(self.function(text)) for text in texts]
        return [None if np.isnan(value) else value for value in found]


def as_scorer(given: ScorerLike) -> SentenceScorer:
    """Return the scorer that a spec, an object or a plain function stands for."""
    if isinstance(given, str):
        return cast("SentenceScorer", build(given, "scorer"))
    if isinstance(given, SentenceScorer):
        return given
    if callable(given):
        return FunctionScorer(given)
    raise SpecError(f"{given!r} is no sentence scorer: give its name, an object with scores(texts), or a function")


def score_sentences(
    dataset: Dataset, scorer: ScorerLike, *, mode: str = "paper", draws: int = 2000, seed: int = 0
) -> list[ScorerDifference]:
    """Return for each system how far its texts are from their references on a sentence score."""
    chosen = as_scorer(scorer)
    name = scorer if isinstance(scorer, str) else chosen.signature().spec
    texts = list(dict.fromkeys(text for one in dataset.segments for text in (*one.references, one.hypothesis)))
    known = dict(zip(texts, chosen.scores(texts), strict=True))
    return [
        _compared(system, name, _differences(dataset.of(system).segments, known, mode), draws, seed)
        for system in dataset.systems
    ]


def _differences(segments: Sequence[Segment], known: Mapping[str, float | None], mode: str) -> list[float | None]:
    missing = 0.0 if mode == "compat" else None
    result: list[float | None] = []
    for segment in segments:
        scores = [value for text in segment.references if (value := known[text]) is not None]
        reference = float(np.mean(scores)) if scores else missing
        own = known[segment.hypothesis]
        hypothesis = missing if own is None else own
        result.append(None if reference is None or hypothesis is None else reference - hypothesis)
    return result


def _compared(system: str, scorer: str, differences: Sequence[float | None], draws: int, seed: int) -> ScorerDifference:
    values = np.array([value for value in differences if value is not None], dtype=np.float64)
    left_out = len(differences) - len(values)
    if not len(values):
        reason = f"no pair of texts has a score on both sides ({left_out} left out)"
        return ScorerDifference(system, scorer, 0, left_out, None, None, None, None, None, None, reason)
    signed, absolute = (_estimate(each, draws, seed) for each in (values, np.abs(values)))
    return ScorerDifference(
        system,
        scorer,
        len(values),
        left_out,
        signed.value,
        signed.low,
        signed.high,
        absolute.value,
        absolute.low,
        absolute.high,
    )


def _estimate(values: "np.ndarray[tuple[int], np.dtype[np.float64]]", draws: int, seed: int) -> Estimate:
    if not draws:
        return Estimate(float(values.mean()), n=len(values))
    return bootstrap_mean(values, draws=draws, seed=seed)


class _Vader(Protocol):
    def polarity_scores(self, text: str) -> Mapping[str, float]: ...


@lru_cache(maxsize=1)
def _vader() -> _Vader:
    try:
        module = importlib.import_module("vaderSentiment.vaderSentiment")
    except ImportError as error:
        raise MissingExtra.of("sentiment", "sentiment") from error
    analyzer: _Vader = module.SentimentIntensityAnalyzer()
    return analyzer
