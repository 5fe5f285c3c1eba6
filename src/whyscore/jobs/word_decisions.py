"""Word scores as yes-or-no decisions: BAD above a threshold, judged over all words of the corpus.

A threshold is given, or learnt on other data (the highest MCC over the scores seen there). Learnt on the very data it
is judged on, every number is marked as `oracle`: nobody has that threshold before the answers are known.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from whyscore.data.formats.eval4nlp import Gold, GoldSide, Judged, Scored, Submission
from whyscore.errors import DataError
from whyscore.jobs.judging import SystemResult
from whyscore.stats.words import Confusion, Gaps, best_threshold, confusion, without_gaps


@dataclass(frozen=True, slots=True)
class Decision:
    """The decisions of one side."""

    threshold: float
    counts: Confusion
    oracle: bool = False
    """The threshold was chosen on the judged data."""


def decide(result: SystemResult, threshold: float | Mapping[Judged, float] | None = None) -> dict[Judged, Decision]:
    """Return the decisions of each side; without a threshold the best one of the judged data is taken, and marked."""
    found: dict[Judged, Decision] = {}
    for side, own in result.sides.items():
        if own is None or own.tags is None or own.scores is None:
            continue
        gold, scores = own.tags.values, own.scores.values
        if threshold is None:
            chosen = best_threshold(gold, scores)
        else:
            chosen = threshold.get(side, float("nan")) if isinstance(threshold, Mapping) else threshold
        if not np.isnan(chosen):
            found[side] = Decision(chosen, confusion(gold, scores > chosen), oracle=threshold is None)
    return found


def learnt(tuned: SystemResult) -> dict[Judged, float]:
    """Return the thresholds with the highest MCC on other data."""
    return {side: one.threshold for side, one in decide(tuned).items()}


def ungapped(gold: Gold, submissions: Sequence[Submission], gaps: Gaps) -> tuple[Gold, list[Submission]]:
    """Return gold and scores of the words, the gaps or both, out of target sequences gap, word, gap ... of 2N + 1."""
    side = GoldSide(
        without_gaps(gold.target.tags, gaps), gold.target.file, gold.target.words if gaps == "drop" else None
    )
    plain = replace(gold, target=side)
    kept = []
    for one in submissions:
        target = one.sides.get("target")
        if target is None:
            raise DataError(f"{one.name} has no scores of the target: gaps are between its words")
        # Scores of the words alone fit already where gaps are dropped.
        fits = np.array_equal(target.scores.lengths, side.tags.lengths)
        scores = target.scores if fits else without_gaps(target.scores, gaps)
        sides = {**one.sides, "target": Scored(scores, target.file)}
        kept.append(replace(one, sides=sides))
    return plain, kept
