"""MEE2 and MEE4, after Mukherjee and Shrivastava (WMT 2022).

1. LMS: the word matches of MEE (`mee`).
2. Syn: BLEU whose order grows with the reference (`mee_syntax`), over words in `paper`, over characters in `compat`.
3. Cxt: the cosine of the two sentence vectors (`mee_context`), clipped to 0 .. 1 in `paper`.
4. score = (delta (alpha LMS + gamma Syn) / (alpha + gamma) + epsilon Cxt) / (delta + epsilon), with alpha = 2,
   gamma = 1, delta = 1, and epsilon = 1 (MEE2) or 3 (MEE4).

Word scores are those of MEE, weighted as LMS is; Syn and Cxt have no words of their own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from whyscore.errors import SpecError
from whyscore.metrics import mee_parts as parts
from whyscore.metrics.mee import OBJECT, Mee
from whyscore.metrics.mee_context import encoder_signature, sentence_encoder
from whyscore.metrics.mee_words import Pair
from whyscore.protocols import Encoder
from whyscore.registry import build
from whyscore.registry.names import name_of
from whyscore.registry.specs import Spec
from whyscore.types import FloatMatrix, FloatVector


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

    def combined(self, lms: FloatVector, syn: FloatVector, cxt: FloatVector) -> FloatVector:
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
        """Refuse options that mean nothing together."""
        super().__post_init__()
        if isinstance(self.sentences, Spec):
            object.__setattr__(self, "sentences", build(self.sentences, "encoder"))
        for option, value in self.weights._asdict().items():
            if not 0 <= value < np.inf:
                raise SpecError(f"{self.name}: {option} is {value}, expected a number from 0 on")
        if not self.alpha + self.gamma or not self.delta + self.epsilon:
            raise SpecError(f"{self.name}: alpha + gamma and delta + epsilon must be above 0, got {self.weights}")

    @property
    def weights(self) -> Weights:
        """The four weights."""
        return Weights(self.alpha, self.gamma, self.delta, self.epsilon)

    def scores(self, rows: FloatMatrix) -> FloatVector:
        """Return the combined score of each row of parts."""
        lms, syn, cxt = (rows[:, self.columns.index(part)] for part in ("lms", "syn", "cxt"))
        combined = self.weights.combined(lms, syn, cxt)
        return np.clip(combined, 0.0, 1.0) if self.mode == "paper" else combined

    def _rows(self, pairs: Sequence[Pair]) -> Mapping[Pair, tuple[float, ...]]:
        matcher = self._matcher()
        words, grams = parts.lexical(matcher, pairs), parts.syntax(matcher, pairs)
        vectors = parts.context(matcher, self._encoder(), pairs)
        return {
            pair: (*one.counts.modules, one.counts.lms, grams[pair], vectors[pair], one.unknown)
            for pair, one in words.items()
        }

    def _encoder(self) -> object:
        default = "LaBSE" if self.mode == "compat" else "embedded"
        return sentence_encoder(default if self.sentences == "auto" else self.sentences)

    def _coders(self) -> list[Encoder]:
        own = self._encoder()
        return [*super()._coders(), *([own] if isinstance(own, Encoder) else [])]

    def _lms_share(self) -> float:
        return self.weights.shares[0]

    def _more_facts(self) -> dict[str, str]:
        found = encoder_signature(self._encoder())
        facts = dict(found.facts)
        told = {name: facts[name] for name in ("prec", "trunc", "long", "licence") if name in facts}
        revision = f"@{facts['rev']}" if "rev" in facts else ""
        return {
            "refs": self.references,
            "order": "chars/3" if self.mode == "compat" else "words/3",
            "weights": "/".join(f"{weight:g}" for weight in self.weights),
            "enc": f"{found.spec}{revision}",
        } | told

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
