"""Hide the most harmful word, then the most harmful of the rest: errors that hide behind each other.

1. Plan one probe per word: the text without it, as erasure does.
2. The word without which the score is highest is hidden for good, if that is more than the score with it (the first of
   equal ones); in the next round the words that are left are tried again without it.
3. Stop where hiding no word helps, or after `rounds` rounds, so that at most `rounds` - 1 words are hidden.
4. Fit: a hidden word's importance is what the score was before it went, less what it was after. The others' is what
   the last text loses without each. Importances of hidden words add up to score(whole) - score(without all of them).

One round is erasure, which counts the harm that two words do together twice.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from whyscore.explainers.engine import check_least, check_masker
from whyscore.explainers.masks.erasure import each_hidden
from whyscore.protocols import Masker
from whyscore.registry import component
from whyscore.settings import check_fields
from whyscore.text.maskers import Delete
from whyscore.types import Evidence, Fit, FloatVector, KeepMasks


@dataclass(frozen=True, slots=True)
class Greedy:
    """Explains a text by hiding its most harmful words one after the other, `rounds` - 1 at the most."""

    rounds: int = 5
    masker: Masker = component("masker", default=Delete())

    def __post_init__(self) -> None:
        check_fields(self)
        check_masker("greedy", self.masker)
        check_least("greedy", "rounds", self.rounds, 1)

    def cost(self, words: int) -> int:
        return sum(max(words - number, 0) for number in range(self.rounds))

    def plan(self, evidence: Evidence, rng: Generator) -> KeepMasks:  # noqa: ARG002 - nothing is drawn
        words = len(evidence.words)
        if len(evidence.masks) == 1:
            return each_hidden(words)
        state = _replay(evidence)
        best = _best(state)
        left = np.zeros(0, dtype=np.int64) if best is None else np.delete(state.left, best)
        masks = np.zeros((len(left), words), dtype=np.bool_)
        masks[:, left] = each_hidden(len(left))
        return masks

    def fit(self, evidence: Evidence) -> Fit:
        if not len(evidence.words):
            return Fit(np.zeros(0), method="greedy")
        return Fit(_replay(evidence).importance, method="greedy")


class _State(NamedTuple):
    """What is known after some rounds."""

    importance: FloatVector
    left: NDArray[np.int64]
    """The words that were tried in the last round."""
    score: float
    """Of the text with all of them."""
    without: FloatVector
    """Of the text without each of them."""


def _replay(evidence: Evidence) -> _State:
    """Return the last state, reading off the rounds from the number of their probes."""
    scores = evidence.scores
    importance = np.zeros(len(evidence.words))
    left = np.arange(len(evidence.words))
    score, at = float(scores[0]), 1
    while True:
        without = scores[at : at + len(left)]
        importance[left] = score - without
        state = _State(importance, left, score, without)
        at += len(left)
        best = _best(state)
        if best is None or at >= len(scores):
            return state
        score, left = float(without[best]), np.delete(left, best)


def _best(state: _State) -> int | None:
    """Return the place of the most harmful word among those left; None where hiding none helps."""
    best = int(np.argmax(state.without)) if len(state.without) else None
    return best if best is not None and state.without[best] > state.score else None
