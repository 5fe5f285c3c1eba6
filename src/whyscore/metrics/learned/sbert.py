"""SBERT as a metric: the cosine of two sentence vectors (Reimers and Gurevych 2019, arXiv 1908.10084).

1. The vector of a text is what its encoder makes of it: pooling, dense layers and length as the model's folder says
   (`whyscore.models.encoders.sentence`); the embedded encoder has vectors of its own.
2. The score is the cosine of the hypothesis with the source or with a reference, the mean or the best of several. A
   vector of zeros, of a text without a known word, has cosine 0.

Word scores, where a vector is the mean of those of its pieces: with u the mean of n vectors h_i and v the other
vector, h_i.v / (n |u| |v|) adds up to the cosine, special pieces included; the pieces of a word are summed, one over a
word border is split by characters. With several references the mean over them, or those of the best.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from whyscore.errors import SpecError
from whyscore.metrics.needs import need_inputs, present
from whyscore.models.attribution import Inside
from whyscore.models.encoders.loading import encoder as load_encoder
from whyscore.models.encoders.loading import get_pinned
from whyscore.models.encoders.sentence import open_sentence
from whyscore.models.matching import pieces_of
from whyscore.models.pairs import Long
from whyscore.models.word_vectors import cosine
from whyscore.protocols import AveragesPieces, Encoded, Encoder
from whyscore.registry import spec_of
from whyscore.settings import Precision, check_fields
from whyscore.text.alignment import Fill, carry_marks, pool_words
from whyscore.types import SOURCE, FloatVector, Inputs, Place, Segment, Side, Signature, Words, WordScores
from whyscore.version import __version__


@dataclass(frozen=True, slots=True)
class SBert:
    """Cosine of the vectors of whole texts, -1 to 1; higher is better.

    Args:
        model: embedded, static, a folder or a hub name.
        against: whether the hypothesis is compared with the source or with references.
        layer: of a network that is no sentence encoder; None for the recommended one.
        references: whether several references count by their mean or by the best.
        fill: the value of a word without subwords.
        device: auto, cpu, cuda, cuda:1, mps.
        precision: of the network.
        long: how texts longer than the model can read are handled.
    """

    model: str = "embedded"
    against: Literal["source", "reference"] = "source"
    layer: int | None = None
    references: Literal["mean", "max"] = "mean"
    fill: Fill = "error"
    device: str = "auto"
    precision: Precision = "fp32"
    long: Long = "truncate"

    higher_is_better: ClassVar[bool] = True
    original: ClassVar[str] = "sentence-transformers 5.7.0"

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def inputs(self) -> Inputs:
        return Inputs.HYPOTHESIS | (Inputs.SOURCE if self.against == "source" else Inputs.REFERENCES)

    def signature(self) -> Signature:
        encoder_signature = self.encoder().signature()
        return Signature(
            spec_of(self), (("encoder", encoder_signature.spec), *encoder_signature.facts, ("version", __version__))
        )

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        pairs = [(segment.hypothesis, self._others(segment)) for segment in self._check(segments)]
        texts = [text for hypothesis, others in pairs for text in (hypothesis, *others)]
        vectors = _vectors(self.encoder(), texts)
        scores = [self._over([cosine(vectors[text], vectors[other]) for other in others]) for text, others in pairs]
        return np.array(scores, dtype=np.float64)

    def word_scores(self, segments: Sequence[Segment], place: Place, words: Sequence[Words]) -> list[WordScores]:
        self._check_place(place)
        encoder = self.encoder()
        pairs = [self._texts_of(segment, place) for segment in self._check(segments)]
        texts = list(dict.fromkeys(other for text, others in pairs for other in (text, *others)))
        encoded = dict(zip(texts, encoder.encode(texts), strict=True))
        rows = {text: _Rows(text, encoded[text], encoder) for text in texts}
        return [
            self._words(text_words, rows[text], [rows[other] for other in others])
            for text_words, (text, others) in zip(words, pairs, strict=True)
        ]

    def has_word_scores(self) -> bool:
        encoder = self.encoder()
        return isinstance(encoder, AveragesPieces) and encoder.averaged("a", encoder.encode(["a"])[0]) is not None

    def inspect(self, segments: Sequence[Segment]) -> Inside:
        return open_sentence(self.encoder(), self._check(segments), self._places, self.references, "sbert")

    def _words(self, words: Words, rows: "_Rows", others: Sequence["_Rows"]) -> WordScores:
        shares = np.array([rows.shares(other.mean) for other in others])
        best = int(shares.sum(axis=1).argmax())
        values: FloatVector = shares[best] if self.references == "max" else shares.mean(axis=0)
        return rows.words(words, values, self.fill)

    def encoder(self) -> Encoder:
        """Return what turns texts into vectors."""
        return load_encoder(self.model, self.layer, device=self.device, precision=self.precision, long=self.long)

    def _over(self, values: Sequence[float]) -> float:
        return max(values) if self.references == "max" else float(np.mean(values))

    def _others(self, segment: Segment) -> tuple[str, ...]:
        return (segment.source or "",) if self.against == "source" else present(segment.references)

    def _places(self, segment: Segment) -> list[Place]:
        if self.against == "source":
            return [SOURCE]
        places = self._others(segment)
        return [Place(Side.REFERENCE, number) for number, text in enumerate(segment.references) if text in places][
            : len(places)
        ]

    def _texts_of(self, segment: Segment, place: Place) -> tuple[str, tuple[str, ...]]:
        """Return the text whose words are asked about, and what it is compared with."""
        if place.side is Side.HYPOTHESIS:
            return segment.hypothesis, self._others(segment)
        return segment.text(place), (segment.hypothesis,)

    def _check(self, segments: Sequence[Segment]) -> Sequence[Segment]:
        other = "reference" if self.against == "source" else "source"
        need_inputs("sbert", segments, self.inputs, f", or sbert(against={other!r})")
        return segments

    def _check_place(self, place: Place) -> None:
        if place.side not in (Side.HYPOTHESIS, Side(self.against)):
            raise SpecError(f"sbert(against={self.against!r}) does not read the {place}; explain what it reads")


class _Rows:
    """The pieces of a text that its vector is the mean of; an encoder that makes it otherwise is refused."""

    def __init__(self, text: str, encoded: Encoded, encoder: Encoder) -> None:
        counted = encoder.averaged(text, encoded) if isinstance(encoder, AveragesPieces) else None
        if counted is None:
            raise SpecError(
                f"sbert: the vectors of {encoder.signature().spec} are not sums over words, so words have no share "
                "in the cosine; explain it with erasure, lime or shap"
            )
        self._encoded = encoded
        self._rows = encoded.vectors.astype(np.float64) * counted[:, None]
        self._count = max(int(counted.sum()), 1)
        self.mean: FloatVector = self._rows.sum(axis=0) / self._count

    def shares(self, other: FloatVector) -> FloatVector:
        """Return what each piece adds to the cosine with another vector."""
        lengths = float(np.linalg.norm(self.mean) * np.linalg.norm(other))
        if not lengths:
            return np.zeros(len(self._rows))
        result: FloatVector = self._rows @ other / (self._count * lengths)
        return result

    def words(self, words: Words, values: FloatVector, fill: Fill) -> WordScores:
        """Return what each word adds; what special pieces add belongs to none."""
        pieces = pieces_of(self._encoded)
        shares = carry_marks(words.text, pieces, values[~self._encoded.special])
        pooled = pool_words(words, pieces, shares, pool="sum", fill=fill, split=True)
        return WordScores(pooled.values, tuple(pooled.explain_missing([""] * len(words))))


def _vectors(encoder: Encoder, texts: Sequence[str]) -> dict[str, NDArray[np.float32]]:
    def compute(missing: list[str]) -> list[NDArray[np.float32]]:
        return [row.copy() for row in encoder.pooled(missing)]

    return get_pinned(encoder, np.ndarray).take(texts, compute)
