"""The metric explains itself: matched n-grams, edits, similarities, log-probabilities.

1. Nothing is planned and nothing is fitted: these components only say whom to ask.
2. The engine asks the metric, which must be a `WordScorer`, for one score per word.

`matching` (Leiter 2021) is for metrics of similarities (bertscore, xbertscore): each word gets the similarity of its
best counterpart in the other text, which is named. `tagging` is for networks that tag words as right or wrong.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """Stands for the metric's own word scores."""


@dataclass(frozen=True, slots=True)
class Matching:
    """Stands for the metric's own word scores, as `intrinsic` does."""


@dataclass(frozen=True, slots=True)
class TokenMatching:
    """The same by its other name."""


@dataclass(frozen=True, slots=True)
class Tagging:
    """The same for metrics whose networks tag words as right or wrong (xCOMET, MicroTransQuest)."""
