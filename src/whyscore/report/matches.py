"""What metrics of word matches found, put together: which kinds of match make the score, and which words were paired.

1. Such a metric says of every word which words of the other text it was matched with, and how: that is in the records
   of its explanations. Metrics without such records, or whose words have the nearest by vectors alone, have nothing to
   show here.
2. The importances of the words of one side add up to what the matches add to the score, so their sums by kind are the
   parts of a bar. What is missing to the score comes from n-grams and sentence vectors.
3. Pairs of roots and synonyms are counted: wrong ones on top mean that the threshold is too low.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from whyscore.report.model import MatchedPair, MatchedShares, MatchSummary
from whyscore.runs.folder import Run
from whyscore.types import ExplanationRecord, Side, WordMatch

SHOWN = 12
_KINDS = ("exact", "root", "synonym")
_ROUNDING = 1e-6


def match_summaries(run: Run) -> tuple[MatchSummary, ...]:
    """Return what each metric of word matches found; other metrics are left out."""
    found = []
    for metric in run.metrics:
        matched = [
            one
            for one in run.explanations
            if one.metric == metric.name and one.place.side is Side.HYPOTHESIS and _has_classes(one)
        ]
        # Views that show what a word costs do not add up to the score.
        if matched and not any((one.importance < 0).any() for one in matched):
            found.append(_summary(run, metric.name, matched))
    return tuple(found)


def _has_classes(one: ExplanationRecord) -> bool:
    return one.matches is not None and not any(match.label == "similar" for own in one.matches for match in own)


@dataclass
class _Sums:
    """What the words of one system add, by kind."""

    kinds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(_KINDS, 0.0))
    words: int = 0
    unmatched: int = 0
    unknown: int = 0
    scores: list[float] = field(default_factory=list)

    def add(self, importance: float, matches: Sequence[WordMatch]) -> None:
        """Add a word; its importance belongs to the kinds of its matches in proportion to their credits."""
        whole = sum(one.credit for one in matches)
        for one in matches:
            if one.label != "none":
                self.kinds[one.label] += importance * one.credit / whole
        # A word such as `day.` holds two words of the metric, each with its own matches.
        self.words += len(matches)
        self.unmatched += sum(one.label == "none" for one in matches)
        self.unknown += sum(one.unknown for one in matches)


@dataclass
class _Pairs:
    """How often two words were matched, with what cosine, and where first."""

    cosines: dict[tuple[str, str, str], list[float | None]] = field(default_factory=dict)
    first: dict[tuple[str, str, str], str] = field(default_factory=dict)

    def add(self, matches: Sequence[WordMatch], where: str) -> None:
        """Add the matches of a word that are not exact."""
        for one in matches:
            if one.label not in ("exact", "none"):
                key = one.label, one.text, one.partner_text or ""
                self.cosines.setdefault(key, []).append(one.similarity)
                self.first.setdefault(key, where)

    def most_frequent(self) -> Iterator[MatchedPair]:
        """Yield the most frequent pairs of each kind."""
        for kind in ("root", "synonym"):
            keys = sorted(
                (key for key in self.cosines if key[0] == kind), key=lambda key: (-len(self.cosines[key]), key)
            )
            for key in keys[:SHOWN]:
                known = [value for value in self.cosines[key] if value is not None]
                mean = float(np.mean(known)) if known else None
                yield MatchedPair(*key, len(self.cosines[key]), mean, self.first[key])


def _summary(run: Run, metric: str, matched: Sequence[ExplanationRecord]) -> MatchSummary:
    sums: dict[str, _Sums] = {system: _Sums() for system in run.dataset.systems}
    pairs = _Pairs()
    for one in matched:
        entry = run.dataset.entries[one.entry]
        own = sums[entry.system]
        own.scores.append(float(run.scores[metric][one.entry]))
        for value, matches in zip(one.importance.tolist(), one.matches or (), strict=True):
            own.add(value, matches)
            pairs.add(matches, entry.id)
    systems = tuple(_shares(system, own) for system, own in sums.items() if own.scores)
    return MatchSummary(metric, tuple(sorted(systems, key=lambda one: -one.score)), tuple(pairs.most_frequent()))


def _shares(system: str, own: _Sums) -> MatchedShares:
    n = len(own.scores)
    score = float(np.mean(own.scores))
    parts = {kind: value / n for kind, value in own.kinds.items()}
    rest = score - sum(parts.values())
    rest = rest if abs(rest) > _ROUNDING else 0.0
    words = max(1, own.words)
    return MatchedShares(
        system, score, **parts, rest=rest, unmatched=own.unmatched / words, unknown=own.unknown / words, n=n
    )
