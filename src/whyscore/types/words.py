"""Words with exact offsets, and what is known about them while and after they are explained."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple, Self

import numpy as np

from whyscore.marking import Span
from whyscore.types.arrays import FloatVector, KeepMasks
from whyscore.types.segments import HYPOTHESIS, SOURCE, Place, Side


@dataclass(frozen=True)
class Words:
    """A text cut into words with exact code-point spans; what lies between words is kept."""

    text: str
    spans: tuple[Span, ...]

    def __len__(self) -> int:
        return len(self.spans)

    def __iter__(self) -> Iterator[str]:
        return iter([self.text[start:end] for start, end in self.spans])

    @cached_property
    def gaps(self) -> tuple[str, ...]:
        """The text before the first word, between neighbours, and after the last: one more than there are words."""
        starts = [start for start, _ in self.spans] + [len(self.text)]
        ends = [0] + [end for _, end in self.spans]
        return tuple(self.text[end:start] for end, start in zip(ends, starts, strict=True))


MatchKind = Literal["exact", "root", "synonym", "similar", "none"]
"""`similar` is the nearest by vectors, without a class of its own."""


@dataclass(frozen=True, slots=True)
class WordMatch:
    """How one word was matched: by which kind, with which stretch of the other text."""

    text: str
    label: MatchKind
    mark: str
    credit: float
    partner: int | None = None
    """The number of the partner among the words that the metric reads, from zero."""
    partner_text: str | None = None
    start: int | None = None
    end: int | None = None
    """Where the partner is in the other text."""
    similarity: float | None = None
    alignment: int = 0
    """Which of several references, in the order they are explained."""
    unknown: bool = False
    """Whether it matched nothing because it has no vector."""
    against: Literal["reference", "source"] = "reference"
    """What the hypothesis is matched with."""

    @classmethod
    def similar(cls, text: str, similarity: float, partner: str, span: Span | None, place: Place) -> Self:
        """Return a match by vectors with a stretch of the text at a place; special pieces have no span."""
        start, end = span or (None, None)
        return cls(
            text=text,
            label="similar",
            mark="",
            credit=similarity,
            partner_text=partner,
            start=start,
            end=end,
            similarity=similarity,
            alignment=place.reference or 0,
            against="source" if place.side is Side.SOURCE else "reference",
        )

    def partner_place(self, explained: Place) -> Place:
        """Return which text the partner of a word of an explained text stands in."""
        if explained.side is not Side.HYPOTHESIS:
            return HYPOTHESIS
        return SOURCE if self.against == "source" else Place(Side.REFERENCE, self.alignment)


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What an explainer knows of one text: the masks asked so far and the score each got; row 0 keeps every word."""

    words: Words
    masks: KeepMasks
    scores: FloatVector
    seed: int = 0

    @classmethod
    def whole(cls, words: Words, score: float, seed: int = 0) -> "Evidence":
        """Return the evidence before any probe: the whole text and its score."""
        return cls(words, np.ones((1, len(words)), dtype=np.bool_), np.array([score], dtype=np.float64), seed)

    def extend(self, masks: KeepMasks, scores: FloatVector) -> Self:
        """Return the evidence with more probes behind it."""
        return replace(self, masks=np.vstack([self.masks, masks]), scores=np.concatenate([self.scores, scores]))


class Fit(NamedTuple):
    """An explainer's answer for one text."""

    importance: FloatVector
    quality: float | None = None
    """How well the explanation describes the probes (weighted R squared), where that means something."""
    method: str | None = None
    """Which algorithm ran, where the explainer chooses one."""
    flags: tuple[str, ...] = ()
    """Words of warning that belong beside the result."""
    spread: FloatVector | None = None
    """Disagreement between the members of an ensemble, per word."""


class WordScores(NamedTuple):
    """What a metric itself says of each word of one text."""

    importance: FloatVector
    notes: tuple[str, ...] | None = None
    """Per word, why: the n-grams that matched, the edit, the counterpart."""
    matches: tuple[tuple[WordMatch, ...], ...] | None = None
    """Per word, which words of the other text it was matched with, where the metric matches words."""
