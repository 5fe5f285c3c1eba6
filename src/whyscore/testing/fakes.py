"""Metrics whose answers can be worked out by hand, for tests of everything that asks a metric."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from whyscore.errors import SpecError
from whyscore.protocols import Metric
from whyscore.settings import check_fields
from whyscore.types import FloatVector, Inputs, Segment, Signature


@dataclass(frozen=True, slots=True)
class Constant:
    """The same score for every segment."""

    value: float = 0.0
    higher_is_better: bool = True

    inputs: ClassVar[Inputs] = Inputs.HYPOTHESIS

    def __post_init__(self) -> None:
        check_fields(self)

    def signature(self) -> Signature:
        return Signature(f"constant({self.value!r})")

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        return np.full(len(segments), self.value, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class WordWeights:
    """The sum of the weights of the hypothesis words: an additive metric, so every exact explainer must find them.

    >>> WordWeights(("good", "bad"), (1.0, -2.0)).score([Segment("a good bad cat")]).tolist()
    [-1.0]
    """

    words: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()
    other: float = 0.0
    """The weight of every word that is not listed."""
    higher_is_better: bool = True

    inputs: ClassVar[Inputs] = Inputs.HYPOTHESIS

    def __post_init__(self) -> None:
        check_fields(self)
        if len(self.words) != len(self.weights):
            raise SpecError(f"word_weights: {len(self.words)} words, but {len(self.weights)} weights")

    def signature(self) -> Signature:
        return Signature(f"word_weights({self.words!r}, {self.weights!r}, {self.other!r})")

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        weight = dict(zip(self.words, self.weights, strict=True))
        sums = [sum(weight.get(word, self.other) for word in segment.hypothesis.split()) for segment in segments]
        return np.array(sums, dtype=np.float64)


@dataclass(slots=True)
class Counting:
    """A metric that passes questions on and remembers them: how often it was asked, and about which segments."""

    metric: Metric
    calls: int = 0
    segments: list[Segment] = field(default_factory=list)

    @property
    def inputs(self) -> Inputs:
        return self.metric.inputs

    @property
    def higher_is_better(self) -> bool:
        return self.metric.higher_is_better

    @property
    def asked(self) -> int:
        """How many segments were scored so far, repeated ones included."""
        return len(self.segments)

    def signature(self) -> Signature:
        return self.metric.signature()

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        self.calls += 1
        self.segments.extend(segments)
        return self.metric.score(segments)
