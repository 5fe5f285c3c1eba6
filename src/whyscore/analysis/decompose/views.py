"""What is counted beside the share: discrepancy, frequency, uniqueness, words met, and summed importance.

All of it comes from the spans of the features, never from looking for masks in texts. Behind each row stand its
segments: their numbers and spans, and the ones that moved the share most, with masked texts.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from whyscore.analysis.decompose.result import Example, SegmentRows
from whyscore.analysis.decompose.scoring import Measured, Study
from whyscore.analysis.decompose.settings import FeatureSettings
from whyscore.analysis.decompose.tagging import Marked, MarkedEntry
from whyscore.marking import Span
from whyscore.stats.shares import Pairing, WordF, paired, word_f
from whyscore.text.placeholders import TokenRow
from whyscore.types import Explanation, FloatVector


def discrepancy(pairs: Iterable[tuple[int, Sequence[int]]]) -> dict[str, int]:
    """Return how often a feature is used less, more, or as often as in the references.

    Each pair is the count in the hypothesis and those in its references: `under` is below the smallest of them, `over`
    above the largest.

    >>> discrepancy([(0, [2]), (3, [1]), (1, [1])])
    {'under': 1, 'over': 1, 'equal': 1, 'missing': 1, 'invented': 0, 'absent': 0}
    """
    found = dict.fromkeys(("under", "over", "equal", "missing", "invented", "absent"), 0)
    for own, others in pairs:
        low, high = min(others, default=0), max(others, default=0)
        kind = "under" if own < low else "over" if own > high else "equal"
        found[kind] += 1
        found["missing"] += kind == "under" and own == 0
        found["invented"] += kind == "over" and high == 0
        found["absent"] += kind == "equal" and own == 0 and high == 0
    return found


class Cutting(NamedTuple):
    """The words of a text, and for each feature which of them carry it."""

    forms: Sequence[str]
    carriers: tuple[frozenset[int], ...]


class Usage(NamedTuple):
    """How much of the text a feature is, and how varied; None where nothing can be counted."""

    frequency: float | None
    uniqueness: float | None


@dataclass(frozen=True)
class Counting:
    """Counts words; each text is cut once."""

    tokens: Callable[[Marked], TokenRow]
    _known: dict[int, Cutting] = field(default_factory=dict, repr=False, compare=False)

    def words(self, text: Marked) -> Cutting:
        """Return the words of a text with the features they carry."""
        known = self._known.get(text.number)
        if known is None:
            tokens = self.tokens(text)
            carriers = tuple(carriers_of(tokens.starts, tokens.ends, spans) for spans in text.spans)
            known = self._known[text.number] = Cutting(tokens.texts, carriers)
        return known

    def usage(self, texts: Sequence[Marked], feature: int) -> Usage:
        """Return frequency (words with the feature / words) and uniqueness (distinct forms / occurrences)."""
        cuttings = [self.words(text) for text in texts]
        words = sum(len(cutting.forms) for cutting in cuttings)
        found = [cutting.forms[k] for cutting in cuttings for k in cutting.carriers[feature]]
        frequency = len(found) / words if words else None
        return Usage(frequency, len(set(found)) / len(found) if found else None)

    def pairings(self, entries: Sequence[MarkedEntry]) -> list[tuple[Pairing, Cutting, Cutting]]:
        """Return which words are met, for the reference that meets most; segments without reference are left out."""
        result = []
        for entry in entries:
            own = self.words(entry.hypothesis)
            others = [self.words(text) for text in entry.references]
            pairs = [(paired(other.forms, own.forms), other) for other in others]
            if pairs:
                best, other = max(pairs, key=lambda pair: len(pair[0].reference))
                result.append((best, other, own))
        return result


def words_met(pairings: Sequence[tuple[Pairing, Cutting, Cutting]], feature: int) -> WordF:
    """Return precision, recall and F of the words of a feature."""
    return word_f((pairing, other.carriers[feature], own.carriers[feature]) for pairing, other, own in pairings)


def carriers_of(starts: Sequence[int], ends: Sequence[int], spans: Sequence[Span]) -> frozenset[int]:
    """Return the numbers of the words that a feature's spans overlap.

    >>> sorted(carriers_of([0, 3, 7], [2, 6, 9], [(4, 8)]))
    [1, 2]
    """
    found: set[int] = set()
    for start, end in spans:
        found.update(range(bisect_right(ends, start), bisect_left(starts, end)))
    return frozenset(k for k in found if starts[k] < ends[k])


class Additive(NamedTuple):
    """Summed importance of the words of each feature, and of the words without any, averaged over segments."""

    features: FloatVector
    other: float


def additive(explained: Sequence[tuple[MarkedEntry, Explanation]], features: int, factor: float) -> Additive:
    """Return the additive view of one system: what the words of each feature added to the score, on average."""
    sums = np.zeros(features)
    other = 0.0
    for entry, one in explained:
        starts, ends = [start for start, _ in one.words.spans], [end for _, end in one.words.spans]
        carriers = [carriers_of(starts, ends, spans) for spans in entry.hypothesis.spans]
        for feature, carried in enumerate(carriers):
            sums[feature] += one.importance[sorted(carried)].sum()
        rest = sorted(set(range(len(one.words))) - frozenset().union(*carriers))
        other += float(one.importance[rest].sum())
    # Importances are turned already; the factor only brings them to the scale of sigma.
    scale = abs(factor) / max(len(explained), 1)
    return Additive(sums * scale, other * scale)


_NEGATIVE_EXAMPLES = 3


def segment_rows(study: Study[FeatureSettings], one: Measured, feature: int, chosen: list[int]) -> SegmentRows:
    """Return the numbers of chosen members of a feature, with the spans that were masked."""
    sigma, oracle, anti = one.values.of(feature, chosen)
    places = [one.values.members[feature][k] for k in chosen]
    marked = [study.marking.entries[place] for place in places]
    return SegmentRows(
        tuple(study.dataset.entries[place].id for place in places),
        sigma,
        oracle,
        anti,
        tuple(entry.hypothesis.spans[feature] for entry in marked),
        tuple(tuple(text.spans[feature] for text in entry.references) for entry in marked),
    )


def examples_of(
    study: Study[FeatureSettings], one: Measured, feature: int, chosen: list[int], count: int
) -> tuple[Example, ...]:
    """Return `count` segments with the largest gain, and those that fall most below zero."""
    sigma, oracle, anti = one.values.of(feature, chosen)
    gains = oracle - sigma
    order = np.argsort(-gains, kind="stable").tolist()
    largest = [k for k in order[:count] if gains[k] > 0]
    negative = [k for k in order[::-1][: min(_NEGATIVE_EXAMPLES, count)] if gains[k] < 0]
    return tuple(
        _example(study, one, feature, chosen[k], (sigma[k], oracle[k], anti[k])) for k in (*largest, *negative)
    )


def _example(
    study: Study[FeatureSettings], one: Measured, feature: int, member: int, numbers: tuple[float, float, float]
) -> Example:
    place = one.values.members[feature][member]
    entry, marked = study.dataset.entries[place], study.marking.entries[place]
    hypothesis, references = _masked(one, marked, feature)
    sigma, oracle, anti = map(float, numbers)
    return Example(
        id=entry.id,
        sigma=sigma,
        oracle=oracle,
        anti=anti,
        hypothesis=entry.segment.hypothesis,
        hypothesis_spans=marked.hypothesis.spans[feature],
        references=entry.segment.references,
        reference_spans=tuple(text.spans[feature] for text in marked.references),
        masked_hypothesis=hypothesis,
        masked_references=references,
    )


def _masked(one: Measured, entry: MarkedEntry, feature: int) -> tuple[str | None, tuple[str, ...]]:
    if one.texts is None:
        return None, ()
    hypothesis = one.texts.variant(entry.hypothesis, feature, hypothesis=True).anti
    return hypothesis, tuple(one.texts.variant(text, feature, hypothesis=False).anti for text in entry.references)
