"""Leave-one-out importance, after Li, Monroe and Jurafsky (2016), arXiv 1612.08220.

1. Plan one probe per word: the text with that word hidden (taken out, unless another masker is given).
2. The engine scores the probes of all texts in one call.
3. Fit: importance = score of the whole text - score without the word.

Deviation: the paper divides by the score of the whole text; we do not, as scores may be zero or negative.
`mode="compat"` leaves the blanks on both sides of a hidden word, as the public implementation of BMX does.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.random import Generator

from whyscore.explainers.checks import check_masker
from whyscore.protocols import Masker
from whyscore.registry import component
from whyscore.settings import check_fields
from whyscore.text.maskers import Delete
from whyscore.types import Evidence, Fit, KeepMasks


@dataclass(frozen=True, slots=True)
class Erasure:
    """Explains a text by hiding one word at a time.

    In `compat` the masker `delete` becomes `delete(mode="compat")`; another masker stays as it is.
    """

    masker: Masker = component("masker", default=Delete())
    mode: Literal["default", "compat"] = "default"

    rounds: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_fields(self)
        check_masker("erasure", self.masker)
        if self.mode == "compat" and isinstance(self.masker, Delete):
            object.__setattr__(self, "masker", Delete(mode="compat"))

    def cost(self, words: int) -> int:
        return words

    def plan(self, evidence: Evidence, rng: Generator) -> KeepMasks:  # noqa: ARG002 - nothing is drawn
        return each_hidden(len(evidence.words))

    def fit(self, evidence: Evidence) -> Fit:
        return Fit(evidence.scores[0] - evidence.scores[1:])


def each_hidden(words: int) -> KeepMasks:
    """Return one mask per word, hiding that word alone.

    >>> each_hidden(2).tolist()
    [[False, True], [True, False]]
    """
    return ~np.eye(words, dtype=np.bool_)
