"""Scores of single texts, to see whether hypotheses say things as their references do: sentiment, concreteness ...

1. Each distinct text gets a score s, or none where a lexicon knows no word of it.
2. Per system: the mean of s(reference) - s(hypothesis), signed as in the paper, and of its absolute value, which is
   what the paper's published code computes; both with bootstrap intervals. Of several references the mean counts.
3. Pairs without a score on one side are left out and counted; in `compat` that side counts 0.

Word lists with values are read from the user's own files:

1. A table is read by its header: the columns of Brysbaert et al. (2014) concreteness, NRC-VAD (Mohammad 2018), Warriner
   et al. (2013) norms and WKWSCI sentiment (Khoo and Johnkhan 2018) are known; else the first column is the word and
   the second its value. Entries of two words are left out: texts are looked up word by word.
2. A word is looked up as it is, then in lower case, then by its lemma.
"""

import csv
import hashlib
import importlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, cast

import numpy as np

from whyscore.analysis.decompose.result import ScorerDifference
from whyscore.analysis.decompose.settings import DecomposeSettings
from whyscore.analysis.decompose.tagging import groups_of
from whyscore.errors import DataError, MissingExtra, SpecError
from whyscore.protocols import SentenceScorer
from whyscore.registry import build, spec_of
from whyscore.settings import check_fields, takes
from whyscore.stats.resampling import bootstrap_mean
from whyscore.taggers.aligned import lines_of
from whyscore.taggers.rules import finder
from whyscore.text.files import read_once
from whyscore.text.stemming import Stemmer, stemmer
from whyscore.types import Dataset, Estimate, Segment, Signature

_WORDS = ("word", "term", "form", "lemma")
_VALUES = ("conc.m", "valence", "v.mean.sum", "sentiment", "polarity", "score", "value", "rating")
_ALIASES = {"valence": "v.mean.sum", "arousal": "a.mean.sum", "dominance": "d.mean.sum", "concreteness": "conc.m"}
_TOKEN = re.compile(r"\w+(?:['’-]\w+)*")
_LANGUAGE = re.compile("[a-z]{2,3}")
_REACH = 3


class Columns(NamedTuple):
    """Which column holds the value; `texts` where it is a text."""

    value: str | None = None
    texts: bool = False


class Lexicon(NamedTuple):
    """Values (or texts) by word."""

    values: Mapping[str, float]
    texts: Mapping[str, str]
    digest: str


def lexicon_values(path: str, columns: Columns) -> Lexicon:
    """Return a word list; a changed file is read again."""
    try:
        Path(path).stat()
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", file=path) from error
    return _read(path, columns)


def token_score(text: str, values: Mapping[str, float], lemmas: Mapping[str, str], *, sentiment: bool) -> float | None:
    """Return the mean value of the words found, or their balance of positive and negative; None if none is found.

    >>> token_score("not a good day", {"good": 1.0}, {}, sentiment=True)
    -0.25
    """
    words = _TOKEN.findall(text)
    rated = [
        (place, value) for place, word in enumerate(words) if (value := _look_up(word, values, lemmas)) is not None
    ]
    if not rated:
        return None
    if not sentiment:
        return sum(value for _, value in rated) / len(rated)
    negations = {place for place, word in enumerate(words) if any(finder("negation", "en")(word))}
    signs = {place: (value > 0) - (value < 0) for place, value in rated}
    turned = [-sign if negations & set(range(place - _REACH, place)) else sign for place, sign in signs.items()]
    return sum(turned) / len(words)


def _look_up(word: str, values: Mapping[str, float], lemmas: Mapping[str, str]) -> float | None:
    lower = word.lower()
    for form in (word, lower, lemmas.get(word) or lemmas.get(lower, "")):
        if form in values:
            return values[form]
    return None


@read_once(16)
def _read(path: str, columns: Columns) -> Lexicon:
    lines = lines_of(path)
    # Words may hold quotation marks; in TSV they mean nothing.
    commas = path.lower().endswith(".csv")
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if commas else csv.QUOTE_NONE
    try:
        rows = [row for row in csv.reader(lines, delimiter="," if commas else "\t", quoting=quoting) if row]
    except csv.Error as error:
        raise DataError(f"cannot be read as a table: {error}", file=path) from error
    if not rows:
        raise DataError("is empty: expected a table of words and values", file=path)
    header = [cell.strip().strip('"').lower() for cell in rows[0]]
    word, value, first = _places(header, columns, path)
    values: dict[str, float] = {}
    texts: dict[str, str] = {}
    for number, row in enumerate(rows[first:], start=first + 1):
        if len(row) <= max(word, value):
            raise DataError(f"expected {max(word, value) + 1} columns, found {len(row)}", file=path, line=number)
        entry, content = row[word].strip().strip('"'), row[value].strip().strip('"')
        if columns.texts:
            texts[entry] = content
        elif " " not in entry:
            values[entry] = _number(content, path, number)
    digest = hashlib.blake2b("\n".join(lines).encode(), digest_size=8).hexdigest()
    return Lexicon(values, texts, digest)


def _places(header: Sequence[str], columns: Columns, path: str) -> tuple[int, int, int]:
    """Return the columns of word and value, and the first row of data."""
    words = [name for name in _WORDS if name in header]
    if columns.value is not None:
        requested = columns.value.lower()
        name = next((name for name in (requested, _ALIASES.get(requested, requested)) if name in header), None)
        if name is None:
            raise SpecError(f"{path} has no column {columns.value!r}; it has: {', '.join(header)}")
        return (header.index(words[0]) if words else 0), header.index(name), 1
    values = [name for name in _VALUES if name in header]
    if words and values and not columns.texts:
        return header.index(words[0]), header.index(values[0]), 1
    return 0, 1, 1 if words else 0


def _number(text: str, path: str, line: int) -> float:
    polarity = {"positive": 1.0, "negative": -1.0, "neutral": 0.0}.get(text.lower())
    if polarity is not None:
        return polarity
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DataError(f"expected a number, found {text!r}", file=path, line=line)
    return value


TextFunction = Callable[[str], float]


ScorerLike = str | SentenceScorer | TextFunction


@dataclass(frozen=True, slots=True)
class Sentiment:
    """The compound sentiment of VADER (Hutto and Gilbert 2014), -1 to 1, for English; MIT licence."""

    def signature(self) -> Signature:
        try:
            version = metadata.version("vaderSentiment")
        except metadata.PackageNotFoundError as error:
            raise MissingExtra.of("sentiment", "sentiment") from error
        return Signature(spec_of(self), (("vader", version),))

    def scores(self, texts: Sequence[str]) -> list[float | None]:
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
        lemmas: for words that the list has only as lemmas: a table of forms and lemmas, or the code of a language whose
            lemmas simplemma knows (`en`; extra `mee`).
    """

    path: str
    column: str | None = None
    kind: Literal["mean", "sentiment"] = "mean"
    lemmas: str | None = None

    def __post_init__(self) -> None:
        check_fields(self)

    def signature(self) -> Signature:
        values = lexicon_values(self.path, Columns(self.column))
        lemmas = (("lemmas", self._lemmatizer.signature().spec),) if self._lemmatizer else ()
        return Signature(spec_of(self), (("digest", values.digest), ("words", str(len(values.values))), *lemmas))

    def scores(self, texts: Sequence[str]) -> list[float | None]:
        values = lexicon_values(self.path, Columns(self.column)).values
        lemmas = self._lemmas_of(texts)
        return [token_score(text, values, lemmas, sentiment=self.kind == "sentiment") for text in texts]

    @property
    def _lemmatizer(self) -> Stemmer | None:
        return stemmer("simplemma", self.lemmas) if self.lemmas and _LANGUAGE.fullmatch(self.lemmas) else None

    def _lemmas_of(self, texts: Sequence[str]) -> Mapping[str, str]:
        """Return the lemmas of the words of some texts."""
        lemmatizer = self._lemmatizer
        if lemmatizer is None:
            return lexicon_values(self.lemmas, Columns(texts=True)).texts if self.lemmas else {}
        words = sorted({word.lower() for text in texts for word in _TOKEN.findall(text)})
        return dict(zip(words, lemmatizer.stems(words), strict=True))


@dataclass(frozen=True)
class FunctionScorer:
    """Any function from a text to a number."""

    function: TextFunction

    def signature(self) -> Signature:
        name = getattr(self.function, "__qualname__", type(self.function).__qualname__)
        return Signature(f"function({name!r})", stable=False)

    def scores(self, texts: Sequence[str]) -> list[float | None]:
        values = [float(self.function(text)) for text in texts]
        return [None if np.isnan(value) else value for value in values]


def as_scorer(scorer: object) -> SentenceScorer:
    """Return the scorer that a spec, an object or a plain function stands for."""
    if isinstance(scorer, str):
        return cast("SentenceScorer", build(scorer, "scorer"))
    if isinstance(scorer, SentenceScorer):
        return scorer
    if callable(scorer):
        return FunctionScorer(scorer)
    raise SpecError(f"{scorer!r} is no sentence scorer: give its name, an object with scores(texts), or a function")


@takes(DecomposeSettings)
def score_sentences(dataset: Dataset, scorer: ScorerLike, *, settings: DecomposeSettings) -> list[ScorerDifference]:
    """Return for each system how far its texts are from their references on a sentence score."""
    built = as_scorer(scorer)
    name = scorer if isinstance(scorer, str) else built.signature().spec
    texts = list(
        dict.fromkeys(text for segment in dataset.segments for text in (*segment.references, segment.hypothesis))
    )
    scores = dict(zip(texts, built.scores(texts), strict=True))
    rows = []
    for group, places in groups_of(dataset, settings.group).items():
        entries = [dataset.entries[place] for place in places]
        for system in dict.fromkeys(entry.system for entry in entries):
            segments = [entry.segment for entry in entries if entry.system == system]
            row = _compare(system, name, _differences(segments, scores, settings.mode), settings)
            rows.append(replace(row, group=group))
    return rows


def _differences(segments: Sequence[Segment], score_of: Mapping[str, float | None], mode: str) -> list[float | None]:
    missing = 0.0 if mode == "compat" else None
    result: list[float | None] = []
    for segment in segments:
        scores = [value for text in segment.references if (value := score_of[text]) is not None]
        reference = float(np.mean(scores)) if scores else missing
        score = score_of[segment.hypothesis]
        hypothesis = missing if score is None else score
        result.append(None if reference is None or hypothesis is None else reference - hypothesis)
    return result


def _compare(
    system: str, scorer: str, differences: Sequence[float | None], settings: DecomposeSettings
) -> ScorerDifference:
    values = np.array([value for value in differences if value is not None], dtype=np.float64)
    left_out = len(differences) - len(values)
    if not len(values):
        reason = f"no pair of texts has a score on both sides ({left_out} left out)"
        return ScorerDifference(system, scorer, 0, left_out, None, None, None, None, None, None, reason)
    signed, absolute = (
        bootstrap_mean(each, draws=settings.draws, seed=settings.seed)
        if settings.draws
        else Estimate(float(each.mean()))
        for each in (values, np.abs(values))
    )
    numbers = (*(signed.value, signed.low, signed.high), *(absolute.value, absolute.low, absolute.high))
    return ScorerDifference(system, scorer, len(values), left_out, *numbers)


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
