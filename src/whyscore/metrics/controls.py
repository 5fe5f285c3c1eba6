"""Sentinels: what can be said of a hypothesis without understanding it.

A metric that does not agree with people better than these has learnt nothing but length or copying. Words are what
stands between blanks. `random` is the baseline of Eval4NLP 2021: with the explainer of that name, a submission by
chance.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from whyscore.metrics.needs import need_references, need_source, present
from whyscore.registry import spec_of
from whyscore.settings import check_fields
from whyscore.text.randomness import generator
from whyscore.types import FloatVector, Inputs, Segment, Signature
from whyscore.version import __version__


@dataclass(frozen=True, slots=True)
class Length:
    """The number of words of the hypothesis."""

    inputs: ClassVar[Inputs] = Inputs.HYPOTHESIS
    higher_is_better: ClassVar[bool] = True

    def signature(self) -> Signature:
        return Signature(spec_of(self), (("version", __version__),))

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        return np.array([len(segment.hypothesis.split()) for segment in segments], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class LengthRatio:
    """Words of the hypothesis for each word of the reference, the mean over the references.

    An empty reference counts as missing where there is another one. Where there is none, it counts as one word, and
    two empty texts have the ratio 1.
    """

    inputs: ClassVar[Inputs] = Inputs.HYPOTHESIS | Inputs.REFERENCES
    higher_is_better: ClassVar[bool] = True

    def signature(self) -> Signature:
        return Signature(spec_of(self), (("nrefs", "any"), ("version", __version__)))

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        need_references("length_ratio", segments)
        return np.array([_ratio(segment) for segment in segments], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Copy:
    """The share of hypothesis words that also occur in the source; 0 for an empty hypothesis.

    Lower is better: a text that was not translated at all has 1.
    """

    inputs: ClassVar[Inputs] = Inputs.HYPOTHESIS | Inputs.SOURCE
    higher_is_better: ClassVar[bool] = False

    def signature(self) -> Signature:
        return Signature(spec_of(self), (("version", __version__),))

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        need_source("copy", segments)
        return np.array([_share_copied(segment) for segment in segments], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Random:
    """A random number in [0, 1) for each hypothesis and its source, the same for the same texts and seed.

    Args:
        seed: fixes the numbers.
    """

    seed: int = 0

    inputs: ClassVar[Inputs] = Inputs.HYPOTHESIS | Inputs.SOURCE
    higher_is_better: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_fields(self)

    def signature(self) -> Signature:
        return Signature(spec_of(self), (("version", __version__),))

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        need_source("random", segments)
        drawn = [random_score(segment.hypothesis, segment.source, self.seed) for segment in segments]
        return np.array(drawn, dtype=np.float64)


def random_score(hypothesis: str, source: str | None, seed: int = 0) -> float:
    """Return a number in [0, 1) that depends on the texts and the seed alone."""
    return float(generator(seed, "random score", hypothesis, source or "").random())


def _ratio(segment: Segment) -> float:
    words = len(segment.hypothesis.split())
    lengths = [len(text.split()) for text in present(segment.references)]
    if lengths == [0]:
        return float(words or 1)
    return sum([words / length for length in lengths]) / len(lengths)


def _share_copied(segment: Segment) -> float:
    words = segment.hypothesis.split()
    source_words = set((segment.source or "").split())
    return sum([word in source_words for word in words]) / len(words) if words else 0.0
