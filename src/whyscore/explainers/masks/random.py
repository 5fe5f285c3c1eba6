"""Random importance: the control that every other explainer has to beat.

1. Draw one number in [0, 1) per word, from the seed and the text alone.
2. Nothing is asked of the metric.

Equal texts get equal numbers, whatever stands around them.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from whyscore.text.randomness import generator
from whyscore.types import Evidence, Fit, KeepMasks


@dataclass(frozen=True, slots=True)
class Random:
    """Explains nothing: uniform numbers, as a control."""

    rounds: ClassVar[int] = 0

    def cost(self, words: int) -> int:  # noqa: ARG002 - the same for every length
        return 0

    def plan(self, evidence: Evidence, rng: Generator) -> KeepMasks:  # noqa: ARG002 - nothing is drawn here
        return np.zeros((0, len(evidence.words)), dtype=np.bool_)

    def fit(self, evidence: Evidence) -> Fit:
        words = evidence.words
        return Fit(generator(evidence.seed, "random", words.text).random(len(words)))
