"""The metric explains itself: matched n-grams, edits, similarities, log-probabilities.

1. Nothing is planned and nothing is fitted: this component only says whom to ask.
2. The engine asks the metric, which must be a `WordScorer`, for one score per word.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """Stands for the metric's own word scores."""
