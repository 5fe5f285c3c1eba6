"""Leave-one-out importance, after Li, Monroe and Jurafsky (2016), arXiv 1612.08220.

1. Plan one probe per word: the text with that word hidden (taken out, unless another masker is given).
2. The engine scores the probes of all texts in one call.
3. Fit: importance = score of the whole text - score without the word.

Deviation: the paper divides by the score of the whole text; we do not, as scores may be zero or negative.
`mode="compat"` leaves the blanks on both sides of a hidden word, as the public implementation of BMX does.

Random importance: the control that every other explainer has to beat.

1. Draw one number in [0, 1) per word, from the seed and the text alone.
2. Nothing is asked of the metric.

Equal texts get equal numbers, whatever stands around them.

Input marginalisation, after Kim, Yi, Kim and Yoon (2020), arXiv 2010.13984: erasure that stays on plausible texts.

1. Plan one probe per word, hiding that word alone.
2. The masker, an infill one, stands several texts in for each probe: the word is replaced by candidates v with
   probability p_v above a threshold, weighted w_v = p_v / sum p.
3. Fit: importance = score of the whole text - sum of w_v score(text with v for the word).

`mode="compat"` follows the public implementation of BMX: weights are a softmax of the probabilities, a second one, so
that they are almost uniform, and only the first 80 words are explained; the others get NaN and the result says so.
Deviation in `compat`: words are those of the explained text, not re-built from the language model's pieces.

Hide the most harmful word, then the most harmful of the rest: errors that hide behind each other.

1. Plan one probe per word: the text without it, as erasure does.
2. The word without which the score is highest is hidden for good, if that is more than the score with it (the first of
   equal ones); in the next round the words that are left are tried again without it.
3. Stop where hiding no word helps, or after `rounds` rounds, so that at most `rounds` - 1 words are hidden.
4. Fit: a hidden word's importance is what the score was before it went, less what it was after. The others' is what
   the last text loses without each. Importances of hidden words add up to score(whole) - score(without all of them).

One round is erasure, which counts the harm that two words do together twice.
"""

import dataclasses
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from whyscore.errors import SpecError
from whyscore.explainers.engine import check_least, check_masker
from whyscore.protocols import Masker
from whyscore.registry import component
from whyscore.settings import check_fields
from whyscore.text.maskers import Delete
from whyscore.text.randomness import generator
from whyscore.types import Evidence, Fit, FloatVector, KeepMasks


@dataclass(frozen=True, slots=True)
class Erasure:
    """Explains a text by masking one word at a time.

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
        return hide_each(len(evidence.words))

    def fit(self, evidence: Evidence) -> Fit:
        return Fit(evidence.scores[0] - evidence.scores[1:])


def hide_each(words: int) -> KeepMasks:
    """Return one mask per word, hiding that word alone.

    >>> hide_each(2).tolist()
    [[False, True], [True, False]]
    """
    return ~np.eye(words, dtype=np.bool_)


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


_COMPAT_WORDS = 80


@dataclass(frozen=True, slots=True)
class InputMarginalization:
    """Explains a text by what each word adds compared with plausible replacements.

    `threshold` and `top` are short for the masker's options of that name; None leaves the masker as it is.
    """

    masker: Masker = component("masker")
    threshold: float | None = None
    top: int | None = None
    mode: Literal["default", "compat"] = "default"

    rounds: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_fields(self)
        check_masker("input_marginalization", self.masker)
        options: dict[str, object] = {"threshold": self.threshold, "top": self.top}
        options["mode"] = "compat" if self.mode == "compat" else None
        changes = {name: value for name, value in options.items() if value is not None}
        object.__setattr__(self, "masker", _with_options(self.masker, changes))

    def cost(self, words: int) -> int:
        return min(words, _COMPAT_WORDS) if self.mode == "compat" else words

    def plan(self, evidence: Evidence, rng: Generator) -> KeepMasks:  # noqa: ARG002 - nothing is drawn
        words = len(evidence.words)
        return hide_each(words)[: self.cost(words)]

    def fit(self, evidence: Evidence) -> Fit:
        words = len(evidence.words)
        lost = evidence.scores[0] - evidence.scores[1:]
        if len(lost) == words:
            return Fit(lost)
        rest = np.full(words - len(lost), np.nan)
        return Fit(np.concatenate([lost, rest]), flags=(f"cut at {_COMPAT_WORDS} words",))


def _with_options(masker: Masker, options: dict[str, object]) -> Masker:
    """Return the masker with options replaced; one that lacks them is refused."""
    if not options:
        return masker
    lacking = [name for name in options if not hasattr(masker, name)]
    if lacking:
        raise SpecError(
            f"input_marginalization: {type(masker).__name__} has no option {', '.join(lacking)}; take an infill "
            "masker, for instance masker=infill(corpus='ref.txt')"
        )
    changed: Masker = dataclasses.replace(masker, **options)  # type: ignore[type-var]
    return changed


@dataclass(frozen=True, slots=True)
class Greedy:
    """Explains a text by masking its most harmful words one after the other, at most `rounds` - 1."""

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
            return hide_each(words)
        state = _replay(evidence)
        best = _best(state)
        left = np.zeros(0, dtype=np.int64) if best is None else np.delete(state.left, best)
        masks = np.zeros((len(left), words), dtype=np.bool_)
        masks[:, left] = hide_each(len(left))
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
