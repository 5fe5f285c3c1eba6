"""Gold from several annotators: agreement, one label out of many votes, continuous gold, MQM scores.

1. Agreement: Cohen's kappa of each pair, sentence by sentence, mean over sentences and then over pairs (as in
   Fomicheva et al., 2021); a sentence where kappa is undefined (both mark nothing, or everything) is left out and
   counted. `pooled` is one kappa per pair over all words.
2. One label: the majority. With an even number of votes each vote weighs its annotator's mean kappa with the others
   (negative ones 0); 1 where the weight for 1 exceeds half of the total, so that an exact tie is 0.
   A sentence that an annotator did not see is an empty row of theirs: pairs are compared on what both saw, votes are
   counted among those who saw it.
3. Continuous gold: the share of annotators who marked a word. Per sentence Pearson, Spearman and weighted AUC: a pair
   with g_i > g_j weighs g_i - g_j, which is AUC for gold of 0 and 1.

`mqm_scores`, from raw error ratings (Freitag et al. 2021, arXiv 2104.14478):

1. Every error has a weight: major 5, minor 1, neutral and no error 0; major non-translation 25; minor punctuation 0.1.
2. The weights of one rater for one segment of one system are added; raters are averaged; the sign is turned, so that
   higher is better.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from whyscore.errors import DataError
from whyscore.stats.coefficients import pearson, spearman
from whyscore.stats.words import Ragged
from whyscore.types import FloatMatrix, FloatVector, IntVector

_EPSILON = 1e-12


class PairAgreement(NamedTuple):
    """How far two annotators agree."""

    sentence: float
    """Mean kappa over the sentences that have one."""
    pooled: float
    """Kappa over all words."""
    used: int
    left_out: int


class Continuous(NamedTuple):
    """Agreement of scores with continuous gold, one number per sentence; NaN where a side is constant."""

    pearson: FloatVector
    spearman: FloatVector
    weighted_auc: FloatVector


def kappa(a: FloatVector, b: FloatVector) -> float:
    """Return Cohen's kappa of two rows of 0/1; NaN where both are constant and equal.

    >>> round(kappa(np.array([1.0, 1, 0, 0, 0]), np.array([1.0, 0, 0, 0, 0])), 4)
    0.5455
    """
    if not len(a):
        return float("nan")
    first, second = float(a.mean()), float(b.mean())
    by_chance = first * second + (1 - first) * (1 - second)
    # All of one kind on both sides: exactly 1, since means of equal 0/1 are exact.
    return float("nan") if by_chance == 1.0 else float(((a == b).mean() - by_chance) / (1 - by_chance))


def agreement(first: Ragged, second: Ragged) -> PairAgreement:
    """Return how far two annotators agree, per sentence and over all words, on the sentences that both saw."""
    _lengths([first, second])
    both = (first.lengths > 0) & (second.lengths > 0)
    first, second = first.select(both), second.select(both)
    values = np.array([kappa(a, b) for a, b in zip(first.rows(), second.rows(), strict=True)])
    defined = values[~np.isnan(values)]
    mean = float(defined.mean()) if len(defined) else float("nan")
    return PairAgreement(mean, kappa(first.values, second.values), len(defined), len(values) - len(defined))


def pair_agreements(annotators: Sequence[Ragged]) -> dict[tuple[int, int], PairAgreement]:
    """Return the agreement of every pair of annotators."""
    return {(i, j): agreement(annotators[i], annotators[j]) for i, j in combinations(range(len(annotators)), 2)}


def reliabilities(annotators: Sequence[Ragged]) -> FloatVector:
    """Return each annotator's mean per-sentence kappa with the others; 0 where there is none."""
    agreements = pair_agreements(annotators)
    means = []
    for k in range(len(annotators)):
        kappas = [pair.sentence for names, pair in agreements.items() if k in names and not np.isnan(pair.sentence)]
        means.append(sum(kappas) / len(kappas) if kappas else 0.0)
    return np.array(means)


def majority(annotators: Sequence[Ragged], weights: FloatVector | None = None) -> Ragged:
    """Return one 0/1 per word: what most annotators say; `weights` decide where their number is even.

    >>> votes = [Ragged.of([[vote]]) for vote in (1.0, 0.0, 1.0, 0.0)]
    >>> float(majority(votes, np.array([0.6, 0.5, 0.4, 0.3])).values[0])
    1.0
    """
    votes, lengths = _votes(annotators)
    seen = ~np.isnan(votes)
    count, ones = seen.sum(axis=0), np.nansum(votes, axis=0)
    labels = 2 * ones > count
    even = count % 2 == 0
    if even.any():
        raw = reliabilities(annotators) if weights is None else np.asarray(weights, dtype=np.float64)
        clipped = np.maximum(raw, 0.0)
        # Sums of weights that are equal on paper may differ in the last digit: 0.6 + 0.3 against 0.5 + 0.4.
        lead = 2 * (clipped @ np.where(seen, votes, 0.0)) - clipped @ seen
        labels = np.where(even, lead > _EPSILON * max(1.0, float(clipped.sum())), labels)
    return Ragged(labels.astype(np.float64), lengths)


def shares(annotators: Sequence[Ragged]) -> Ragged:
    """Return the share of annotators who marked each word."""
    votes, lengths = _votes(annotators)
    return Ragged(np.nanmean(votes, axis=0), lengths)


def score_agreements(scores: FloatMatrix) -> dict[tuple[int, int], float]:
    """Return the Pearson correlation of every pair of annotators (rows), on the sentences that both scored."""
    return {(i, j): float(pearson(scores[i], scores[j])) for i, j in combinations(range(len(scores)), 2)}


def continuous(gold: Ragged, scores: Ragged) -> Continuous:
    """Return how well scores follow continuous gold, sentence by sentence."""
    if not np.array_equal(gold.lengths, scores.lengths):
        raise DataError("gold and scores differ in their number of sentences or words: align them first")
    rows = [
        (float(pearson(g, s)), float(spearman(g, s)), weighted_auc(g, s))
        for g, s in zip(gold.rows(), scores.rows(), strict=True)
    ]
    columns: FloatMatrix = np.array(rows, dtype=np.float64).reshape(len(rows), 3).T
    return Continuous(*columns)


def weighted_auc(gold: FloatVector, scores: FloatVector) -> float:
    """Return the weighted share of word pairs in the right order, ties half; NaN where the gold is constant."""
    weights = np.maximum(gold[:, None] - gold[None, :], 0.0)
    total = float(weights.sum())
    right = np.sign(scores[:, None] - scores[None, :]) / 2 + 0.5
    return float((weights * right).sum() / total) if total > 0 else float("nan")


def _votes(annotators: Sequence[Ragged]) -> tuple[FloatMatrix, IntVector]:
    """Return annotators x words, NaN where an annotator did not see the sentence, and the lengths of all sentences."""
    lengths = _lengths(annotators)
    votes = np.full((len(annotators), int(lengths.sum())), np.nan)
    for row, annotator in zip(votes, annotators, strict=True):
        row[np.repeat(annotator.lengths > 0, lengths)] = annotator.values
    return votes, lengths


def _lengths(annotators: Sequence[Ragged]) -> IntVector:
    """Return how many words each sentence has; annotators who saw it must agree on that."""
    if len(annotators) < 2:  # noqa: PLR2004 - nobody to agree with
        raise DataError(f"{len(annotators)} annotator(s): agreement needs two or more")
    first = annotators[0]
    for number, annotator in enumerate(annotators[1:], start=2):
        if len(annotator) != len(first):
            raise DataError(
                f"annotator {number} has {len(annotator)} sentences, annotator 1 has {len(first)}: align them"
            )
    counts = np.stack([annotator.lengths for annotator in annotators])
    lengths: IntVector = counts.max(axis=0)
    wrong = np.argwhere((counts != lengths) & (counts > 0))
    if len(wrong):
        who, where = wrong[0].tolist()
        mismatch = f"{counts[who, where]} tags where another has {lengths[where]}"
        raise DataError(f"annotator {who + 1} has {mismatch}, in sentence {where + 1}: align them first")
    return lengths


_SEVERITIES = ("critical", "major", "minor", "neutral", "no-error", "no error")


@dataclass(frozen=True, slots=True)
class Weights:
    """What errors cost: the longest rule that fits counts; `cap` is the most per rater and segment.

    A rule is a severity, a severity and the beginning of a category, or the beginning of a category.
    """

    rules: Mapping[str, float]
    cap: float | None = None

    def of(self, severity: str, category: str) -> float:
        """Return what one error costs; nothing where no rule fits.

        >>> GOOGLE.of("Major", "Non-translation!"), GOOGLE.of("Minor", "Style/Awkward")
        (25.0, 1.0)
        """
        kind = category.lower()
        name = f"{severity.lower()} {kind}"
        fitting = [rule for rule in self.rules if name.startswith(rule.lower()) or kind.startswith(rule.lower())]
        return self.rules[max(fitting, key=len)] if fitting else 0.0

    def score(self, costs: Mapping[str, Sequence[float]]) -> float:
        """Return minus what the errors of a segment cost, mean over raters."""
        most = math.inf if self.cap is None else self.cap
        return -math.fsum(min(most, math.fsum(cost)) for cost in costs.values()) / len(costs) + 0.0  # no minus zero


GOOGLE = Weights(
    {
        "major": 5.0,
        "critical": 5.0,  # Google's raters have no such severity; it is never milder than major
        "minor": 1.0,
        "minor Fluency/Punctuation": 0.1,
        "major Non-translation": 25.0,
        "neutral": 0.0,
    }
)
"""The weights of WMT's MQM evaluations."""


def mqm_scores(
    cells: Sequence[Hashable],
    raters: Sequence[str],
    severities: Sequence[str],
    categories: Sequence[str],
    weights: Weights = GOOGLE,
) -> dict[Hashable, float]:
    """Return the score of every cell (system and segment) from one row per error; a row without error counts too."""
    costs: dict[Hashable, dict[str, list[float]]] = {}
    for cell, rater, severity, category in zip(cells, raters, severities, categories, strict=True):
        if severity.lower() not in _SEVERITIES:
            raise DataError(f"no weight for the severity {severity!r}: known are {', '.join(_SEVERITIES)}")
        costs.setdefault(cell, {}).setdefault(rater, []).append(weights.of(severity, category))
    return {cell: weights.score(by_rater) for cell, by_rater in costs.items()}
