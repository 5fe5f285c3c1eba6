"""MEE (Mukherjee et al. 2020), MEE2 and MEE4 (Mukherjee and Shrivastava, WMT 2022).

MEE, how many words match exactly, by root, or as synonyms:

1. Cut both texts into words, and match them (`words`).
2. MEE is the mean of F (beta = 3) of the exact matches, of these and the root matches, and of all matches.

`paper` is what the article describes: each word is used once. `compat` is what the published score files of WMT22
contain: words are what stands between blanks, and hypothesis words are used again, so that a module's F can reach
20/19; MEE itself cannot exceed 1. Scores of the two modes are not comparable.

Word scores: the credit of a word over D, which adds up to MEE on either side; with `view="loss"` minus what the word
costs, which over both sides adds up to MEE - 1. A note says what each word matched, and how.

MEE2 and MEE4:

1. LMS: the word matches of MEE.
2. Syn: BLEU whose order grows with the reference (`syntax`), over words in `paper`, over characters in `compat`.
3. Cxt: the cosine of the two sentence vectors (`parts`), clipped to 0 .. 1 in `paper`.
4. score = (delta (alpha LMS + gamma Syn) / (alpha + gamma) + epsilon Cxt) / (delta + epsilon), with alpha = 2,
   gamma = 1, delta = 1, and epsilon = 1 (MEE2) or 3 (MEE4).

Word scores are those of MEE, weighted as LMS is; Syn and Cxt have no words of their own.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import ClassVar, Literal, NamedTuple, Self, cast

import numpy as np

from whyscore.errors import MissingInput, SpecError
from whyscore.metrics.mee import parts
from whyscore.metrics.mee.parts import encoder_signature, sentence_encoder
from whyscore.metrics.mee.words import (
    Alignment,
    Form,
    Matcher,
    Mode,
    Pair,
    SegmenterName,
    align_pairs,
    explain_words,
    segmenter,
)
from whyscore.metrics.needs import need_place, need_references, present, quote_start
from whyscore.models.encoders.loading import encoder, warn_uncovered
from whyscore.models.word_vectors import BinaryVectors, EncoderVectors, word_vectors
from whyscore.protocols import Encoder, Token
from whyscore.registry import Spec, build, name_of, spec_of
from whyscore.settings import check_fields
from whyscore.text.stemming import Stemmer, StemmerName, stemmer
from whyscore.types import FloatMatrix, FloatVector, Inputs, Place, Segment, Side, Signature, Words, WordScores
from whyscore.version import __version__

OBJECT = {"takes": "a name or an object"}
"""Marks options that also take objects, whose form is looked at when they are used."""


class RootNotice(UserWarning):
    """Root matches are made by cosine, because no stemmer knows the language."""


@lru_cache(maxsize=64)
def tell_cosine(language: str | None, root: float, *, vectors: bool) -> None:
    """Say, once, that root matches are not made by stems though nobody asked for that."""
    if language is None:
        why = "the language is not known: give it with -l en-ru, or language='ru'"
    else:
        why = f"no stemmer supports {language!r}; if this is intended, set stemmer='none'"
    instead = f"by cosine (from {root:g})" if vectors else "not at all, as there are no word vectors"
    warnings.warn(f"MEE matches roots {instead}, because {why}", RootNotice, stacklevel=3)


@dataclass(frozen=True)
class Mee:
    """Exact, root and synonym matches of words; 0 to 1, higher is better.

    Args:
        mode: `paper`, or `compat` for the numbers of the published score files.
        words: vectors of words: `embedded` (the default of `paper`), `static`, a .vec or .bin file, None, or an object;
            `auto` is the default of the mode, and `compat` has none.
        language: of hypothesis and reference, for root matches and segmenters; without it roots are matched by vectors.
        stemmer: `auto`, `snowball`, `simplemma`, `none`, or an object.
        segmenter: `auto`, `characters`, `jieba`, `fugashi`, `pythainlp`; `split` for texts that are cut already.
        root: cosine from which on words have one root, where there is no stemmer.
        synonym: cosine from which on words are synonyms.
        lowercase: whether exact matches ignore case (`paper`).
        normalise: NFC or NFKC; None compares texts as they are.
        references: whether the best of several references counts or their mean.
        view: what word scores show: what a word earns (`credit`) or what it costs (`loss`).
    """

    mode: Mode = "paper"
    words: object = field(default="auto", metadata=OBJECT)
    language: str | None = None
    stemmer: object = field(default="auto", metadata=OBJECT)
    segmenter: SegmenterName = "auto"
    root: float = 0.5
    synonym: float = 0.4
    lowercase: bool = False
    normalise: Form | None = None
    references: Literal["max", "mean"] = "max"
    view: Literal["credit", "loss"] = "credit"

    inputs: ClassVar[Inputs] = Inputs.HYPOTHESIS | Inputs.REFERENCES
    higher_is_better: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("exact", "root", "synonym", "lms", "unknown")
    name: ClassVar[str] = "mee"

    def __post_init__(self) -> None:
        check_fields(self)
        for option in ("root", "synonym"):
            value = getattr(self, option)
            if not -1 <= value <= 1:
                raise SpecError(f"{self.name}: {option} is {value}, expected a cosine from -1 to 1")
        if self.synonym > self.root:
            raise SpecError(f"{self.name}: synonym={self.synonym} is above root={self.root}; it must not be")
        if self.lowercase and self.mode == "compat":
            raise SpecError(f"{self.name}: the published metric keeps case; lowercase=True needs mode='paper'")
        if isinstance(self.stemmer, str) and self.stemmer not in ("auto", "snowball", "simplemma", "none"):
            raise SpecError(
                f"{self.name}: stemmer is {self.stemmer!r}, expected 'auto', 'snowball', 'simplemma', 'none' or an "
                "object with stems()"
            )

    def for_languages(self, source: str, target: str) -> Self:
        del source
        return replace(self, language=target) if self.language is None else self

    def signature(self) -> Signature:
        matcher = self._matcher()
        facts = matcher.facts() | self._more_facts() | {"version": __version__}
        try:
            spec = spec_of(self)
        except SpecError:
            return Signature(f"{self.name}(of objects)", tuple(facts.items()), stable=False)
        return Signature(spec, tuple(facts.items()), stable=matcher.stable and self._names_alone())

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        return self.scores(self.statistics(segments))

    def statistics(self, segments: Sequence[Segment]) -> FloatMatrix:
        pairs_by_segment = [self._pairs(segment, number) for number, segment in enumerate(segments, start=1)]
        if self.mode == "paper" and self.stemmer == "auto" and self._matcher().by_cosine:
            tell_cosine(self.language, self.root, vectors=self.words is not None)
        for coder in self._coders() if self.language is not None else ():
            warn_uncovered(coder, [self.language or ""])
        row_of = self._rows([pair for pairs in pairs_by_segment for pair in pairs])
        rows = [self._over(np.array([row_of[pair] for pair in pairs], dtype=np.float64)) for pairs in pairs_by_segment]
        return np.array(rows, dtype=np.float64).reshape(len(segments), len(self.columns))

    def scores(self, rows: FloatMatrix) -> FloatVector:
        return np.array(rows[:, self.columns.index("lms")], dtype=np.float64)

    def parts(self, rows: FloatMatrix) -> dict[str, tuple[float, FloatVector]]:
        """Return the weight of each part and its values.

        Exact matches count with their F, root matches two thirds of what they add to it, synonyms one third; each times
        the weight of LMS.
        """
        exact, root, synonym = (rows[:, self.columns.index(name)] for name in ("exact", "root", "synonym"))
        lms = self._lms_share()
        return {"exact": (lms, exact), "root": (lms * 2 / 3, root - exact), "synonym": (lms / 3, synonym - root)}

    def tokens(self, text: str) -> tuple[Token, ...]:
        words = self._matcher().cut(text)
        return tuple(Token(word, start, end) for word, (start, end) in zip(words, words.spans, strict=True))

    def on_tokens(self) -> "Mee":
        return replace(self, segmenter="split")

    def alignments(self, segments: Sequence[Segment]) -> list[tuple[Alignment, ...]]:
        """Return for each segment which words matched, one alignment per reference."""
        need_references(self.name, segments)
        pairs = [[(segment.hypothesis, text) for text in segment.references] for segment in segments]
        alignments = align_pairs(self._matcher(), [pair for pairs_of_segment in pairs for pair in pairs_of_segment])
        return [tuple(alignments[pair] for pair in pairs_of_segment) for pairs_of_segment in pairs]

    def behind(self, segments: Sequence[Segment], place: Place) -> list[tuple[Alignment, ...]]:
        """Return for each segment the alignments that explain the text at `place`.

        These are those of the reference itself, of the best one for a hypothesis, or of all where their mean counts.
        """
        need_place(self.name, place)
        pairs_by_segment = self._find_explained_pairs(segments, place)
        alignments = align_pairs(self._matcher(), [pair for pairs in pairs_by_segment for pair in pairs])
        return [tuple(alignments[pair] for pair in pairs) for pairs in pairs_by_segment]

    def word_scores(self, segments: Sequence[Segment], place: Place, words: Sequence[Words]) -> list[WordScores]:
        on_hypothesis, weight = place.side is Side.HYPOTHESIS, self._lms_share()
        return [
            explain_words(text, alignments, weight, on_hypothesis=on_hypothesis, view=self.view)
            for text, alignments in zip(words, self.behind(segments, place), strict=True)
        ]

    def _find_explained_pairs(self, segments: Sequence[Segment], place: Place) -> list[list[Pair]]:
        """Return the pairs whose matches explain each segment: the given reference, the best one, or all."""
        if place.side is Side.REFERENCE:
            need_references(self.name, segments)
            return [[(segment.hypothesis, segment.text(place))] for segment in segments]
        pairs_by_segment = [self._pairs(segment, number) for number, segment in enumerate(segments, start=1)]
        if self.references == "mean" or all(len(pairs) == 1 for pairs in pairs_by_segment):
            return pairs_by_segment
        rows = self._rows([pair for pairs in pairs_by_segment for pair in pairs])
        return [[pairs[self._best(np.array([rows[pair] for pair in pairs]))]] for pairs in pairs_by_segment]

    def _pairs(self, segment: Segment, number: int) -> list[Pair]:
        need_references(self.name, [segment])
        if self.mode == "compat" and len(segment.references) > 1:
            raise MissingInput(
                f"{self.name}(mode='compat') takes one reference: segment {number} (hypothesis "
                f"{quote_start(segment.hypothesis)}) has {len(segment.references)}. Choose mode='paper', or one of them"
            )
        return [(segment.hypothesis, text) for text in present(segment.references)]

    def _rows(self, pairs: Sequence[Pair]) -> Mapping[Pair, tuple[float, ...]]:
        """Return the parts of each pair, as the columns name them."""
        lexical = parts.lexical(self._matcher(), pairs)
        return {pair: (*part.counts.modules, part.counts.lms, part.unknown) for pair, part in lexical.items()}

    def _over(self, rows: FloatMatrix) -> FloatVector:
        mean: FloatVector = rows.mean(axis=0)
        return mean if self.references == "mean" else rows[self._best(rows)]

    def _best(self, rows: FloatMatrix) -> int:
        return int(np.argmax(self.scores(rows)))

    def _coders(self) -> list[Encoder]:
        """Return the encoders that may not be made for the language."""
        provider = self._matcher().words
        return [encoder(provider.name, 0)] if isinstance(provider, EncoderVectors) else []

    def _lms_share(self) -> float:
        return 1.0

    def _more_facts(self) -> dict[str, str]:
        return {"refs": self.references}

    def _names_alone(self) -> bool:
        return all(value is None or isinstance(value, str) for value in (self.words, self.stemmer))

    def _matcher(self) -> Matcher:
        """Return what decides which words match; nothing is read before words are asked for."""
        words = self.words
        if words == "auto":
            words = "embedded"
            if self.mode == "compat":
                raise SpecError(
                    f"{self.name}(mode='compat') has no vectors by default: write words='cc.ru.300.vec' (fastText's "
                    "file of the target language), or words=None to go without"
                )
        provider = word_vectors(words)
        if self.mode == "compat" and isinstance(provider, BinaryVectors):
            raise SpecError(
                f"{self.name}(mode='compat') does not take {words}: a .bin has vectors for unknown words, which the "
                "published scores do not have. Use the .vec file"
            )
        return Matcher(
            self.mode,
            segmenter(self.segmenter, self.language),
            self._stemmer(),
            provider,
            self.root,
            self.synonym,
            self.lowercase,
            self.normalise,
        )

    def _stemmer(self) -> Stemmer | None:
        if self.mode == "compat":
            return None
        if isinstance(self.stemmer, str):
            return stemmer(cast("StemmerName", self.stemmer), self.language)
        if isinstance(self.stemmer, Stemmer):
            return self.stemmer
        raise SpecError(f"{self.name}: stemmer is {self.stemmer!r}, expected a name or an object with stems()")


class Weights(NamedTuple):
    """The four weights of the combined score."""

    alpha: float = 2.0
    gamma: float = 1.0
    delta: float = 1.0
    epsilon: float = 3.0

    @property
    def shares(self) -> tuple[float, float, float]:
        """How much LMS, Syn and Cxt count; together 1.

        >>> [round(share, 4) for share in Weights().shares]
        [0.1667, 0.0833, 0.75]
        """
        inner, outer = self.alpha + self.gamma, self.delta + self.epsilon
        return self.delta * self.alpha / inner / outer, self.delta * self.gamma / inner / outer, self.epsilon / outer

    @classmethod
    def of_shares(cls, lms: float, syn: float, cxt: float) -> "Weights":
        """Return weights that give the parts these shares, scaled like the published ones.

        >>> Weights.of_shares(1 / 6, 1 / 12, 3 / 4)
        Weights(alpha=2.0, gamma=1.0, delta=1.0, epsilon=3.0)
        """
        words = lms + syn
        if words <= 0:
            return cls(2.0, 1.0, 0.0, 1.0)
        # Rounded, so that shares with few digits give weights with few digits.
        alpha, gamma, epsilon = (round(value, 12) for value in (3 * lms / words, 3 * syn / words, cxt / words))
        return cls(alpha, gamma, 1.0, epsilon)

    def combine(self, lms: FloatVector, syn: FloatVector, cxt: FloatVector) -> FloatVector:
        """Return the score of each row of parts."""
        inner = (self.alpha * lms + self.gamma * syn) / (self.alpha + self.gamma)
        result: FloatVector = (self.delta * inner + self.epsilon * cxt) / (self.delta + self.epsilon)
        return result


@dataclass(frozen=True)
class Mee2(Mee):
    """Word matches, n-grams and sentence vectors in one score, sentence vectors counting half.

    Args:
        mode: see `mee`, as all options up to `view`.
        sentences: sentence encoder: `embedded` (the default of `paper`), `LaBSE` (that of `compat`), `static`, a model
            of sentence-transformers by name or folder, or an object; `auto` is the default of the mode.
        alpha: weight of the word matches against `gamma`.
        gamma: weight of the n-grams.
        delta: weight of word matches and n-grams against `epsilon`.
        epsilon: weight of the sentence vectors.
    """

    sentences: object = field(default="auto", metadata=OBJECT)
    alpha: float = 2.0
    gamma: float = 1.0
    delta: float = 1.0
    epsilon: float = 1.0

    columns: ClassVar[tuple[str, ...]] = ("exact", "root", "synonym", "lms", "syn", "cxt", "unknown")
    name: ClassVar[str] = "mee2"

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.sentences, Spec):
            object.__setattr__(self, "sentences", build(self.sentences, "encoder"))
        for option, value in self.weights._asdict().items():
            if not 0 <= value < np.inf:
                raise SpecError(f"{self.name}: {option} is {value}, expected 0 or more")
        if not self.alpha + self.gamma or not self.delta + self.epsilon:
            raise SpecError(f"{self.name}: alpha + gamma and delta + epsilon must be above 0, got {self.weights}")

    @property
    def weights(self) -> Weights:
        """The four weights."""
        return Weights(self.alpha, self.gamma, self.delta, self.epsilon)

    def scores(self, rows: FloatMatrix) -> FloatVector:
        lms, syn, cxt = (rows[:, self.columns.index(part)] for part in ("lms", "syn", "cxt"))
        combined = self.weights.combine(lms, syn, cxt)
        return np.clip(combined, 0.0, 1.0) if self.mode == "paper" else combined

    def parts(self, rows: FloatMatrix) -> dict[str, tuple[float, FloatVector]]:
        shares = zip(("syn", "cxt"), self.weights.shares[1:], strict=True)
        return super().parts(rows) | {name: (share, rows[:, self.columns.index(name)]) for name, share in shares}

    def _rows(self, pairs: Sequence[Pair]) -> Mapping[Pair, tuple[float, ...]]:
        matcher = self._matcher()
        words, grams = parts.lexical(matcher, pairs), parts.syntax(matcher, pairs)
        vectors = parts.context(matcher, self._encoder(), pairs)
        return {
            pair: (*part.counts.modules, part.counts.lms, grams[pair], vectors[pair], part.unknown)
            for pair, part in words.items()
        }

    def _encoder(self) -> object:
        default = "LaBSE" if self.mode == "compat" else "embedded"
        return sentence_encoder(default if self.sentences == "auto" else self.sentences)

    def _coders(self) -> list[Encoder]:
        encoder = self._encoder()
        return [*super()._coders(), *([encoder] if isinstance(encoder, Encoder) else [])]

    def _lms_share(self) -> float:
        return self.weights.shares[0]

    def _more_facts(self) -> dict[str, str]:
        signature = encoder_signature(self._encoder())
        facts = dict(signature.facts)
        kept_facts = {name: facts[name] for name in ("prec", "trunc", "long", "licence") if name in facts}
        revision = f"@{facts['rev']}" if "rev" in facts else ""
        return {
            "refs": self.references,
            "order": "chars/3" if self.mode == "compat" else "words/3",
            "weights": "/".join(f"{weight:g}" for weight in self.weights),
            "enc": f"{signature.spec}{revision}",
        } | kept_facts

    def _names_alone(self) -> bool:
        named = isinstance(self.sentences, str) or name_of("encoder", type(self.sentences)) is not None
        return named and super()._names_alone() and encoder_signature(self._encoder()).stable


@dataclass(frozen=True)
class Mee4(Mee2):
    """Word matches, n-grams and sentence vectors in one score, sentence vectors counting three quarters.

    Args:
        mode: see `mee2`, as all options.
    """

    epsilon: float = 3.0

    name: ClassVar[str] = "mee4"
