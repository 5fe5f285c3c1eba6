"""What metrics of word matches (MEE and its kin) found: what each kind brings, and which words were taken for one.

1. Such a metric notes on every word of a hypothesis what matched it: `≈ synonym 'dog' (word 4, cosine 0.45, credit
   1/3)`. A run whose explanations hold no such note has nothing to show here.
2. The importances of the words of one side add up to what the matches bring to the score, so their sums by kind are
   the parts of a bar. What is missing to the score comes from n-grams and sentence vectors.
3. Pairs of roots and synonyms are counted: wrong ones on top mean that the threshold is too low.
"""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import regex

from whyscore.report.model import MatchedPair, MatchedShares, Matches
from whyscore.runs.reading import Run
from whyscore.types import ExplanationRecord, Side

SHOWN = 12
CREDITS = {"exact": 1.0, "root": 2 / 3, "synonym": 1 / 3}
_NOTE = regex.compile(
    r"""(?:(\S*[^\s,;|])\ )?[=~≈]\ (exact|root|synonym)\ ('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\ """
    r"""\(word\ \d+,\ (?:cosine\ (-?\d+\.\d+),\ )?credit""",
    regex.VERBOSE,
)
_NONE = "· none"
_NO_VECTOR = "· none, no vector"


class Match(NamedTuple):
    """One match that a note names; `own` is the word it is a note on, where the note says it."""

    own: str | None
    kind: str
    other: str
    cosine: float | None


def matches(run: Run) -> tuple[Matches, ...]:
    """Return what each metric of word matches found; other metrics are left out."""
    found = []
    for metric in run.metrics:
        told = [one for one in run.explanations if one.metric == metric.name and one.place.side is Side.HYPOTHESIS]
        noted = [one for one in told if one.notes and any(_is_note(note) for note in one.notes)]
        # Views that show what a word costs do not add up to the score.
        if noted and not any((one.importance < 0).any() for one in noted):
            found.append(_matches(run, metric.name, noted))
    return tuple(found)


def read_note(note: str) -> list[Match]:
    """Return the matches that a note names.

    >>> read_note("≈ synonym 'dog' (word 4, cosine 0.45, credit 1/3)")
    [Match(own=None, kind='synonym', other='dog', cosine=0.45)]
    >>> read_note("· none")
    []
    """
    return [
        Match(own, kind, ast.literal_eval(other), None if cosine is None else float(cosine))
        for own, kind, other, cosine in (one.groups() for one in _NOTE.finditer(note))
    ]


def _is_note(note: str) -> bool:
    return note.startswith(_NONE) or _NOTE.search(note) is not None


@dataclass
class _Sums:
    """What the words of one system bring, by kind."""

    kinds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(CREDITS, 0.0))
    words: int = 0
    unmatched: int = 0
    unknown: int = 0
    scores: list[float] = field(default_factory=list)

    def add(self, importance: float, note: str, found: Sequence[Match]) -> None:
        """Add a word; its importance belongs to the kinds of its matches in proportion to their credits."""
        whole = sum(CREDITS[one.kind] for one in found)
        for one in found:
            self.kinds[one.kind] += importance * CREDITS[one.kind] / whole
        # A word such as `day.` holds two words of the metric, each with its own part of the note.
        unmatched = note.count(_NONE)
        self.words += len(found) + unmatched
        self.unmatched += unmatched
        self.unknown += note.count(_NO_VECTOR)


@dataclass
class _Pairs:
    """How often two words were matched, with what cosine, and where first."""

    known: dict[tuple[str, str, str], list[float | None]] = field(default_factory=dict)
    first: dict[tuple[str, str, str], str] = field(default_factory=dict)

    def add(self, word: str, found: Sequence[Match], where: str) -> None:
        """Add the matches of a word that are not exact."""
        for one in found:
            if one.kind != "exact":
                key = one.kind, one.own or word, one.other
                self.known.setdefault(key, []).append(one.cosine)
                self.first.setdefault(key, where)

    def often(self) -> Iterator[MatchedPair]:
        """Yield the most frequent pairs of each kind."""
        for kind in ("root", "synonym"):
            own = sorted((key for key in self.known if key[0] == kind), key=lambda key: (-len(self.known[key]), key))
            for key in own[:SHOWN]:
                cosines = [value for value in self.known[key] if value is not None]
                mean = float(np.mean(cosines)) if cosines else None
                yield MatchedPair(*key, len(self.known[key]), mean, self.first[key])


def _matches(run: Run, metric: str, told: Sequence[ExplanationRecord]) -> Matches:
    sums: dict[str, _Sums] = {system: _Sums() for system in run.dataset.systems}
    pairs, read = _Pairs(), dict[str, list[Match]]()
    for one in told:
        entry = run.dataset.entries[one.entry]
        own = sums[entry.system]
        own.scores.append(float(run.scores[metric][one.entry]))
        for (start, end), value, note in zip(one.spans.tolist(), one.importance.tolist(), one.notes or (), strict=True):
            found = read.get(note)
            if found is None:
                found = read[note] = read_note(note)
            own.add(value, note, found)
            pairs.add(entry.segment.hypothesis[start:end], found, entry.id)
    systems = tuple(_shares(system, own) for system, own in sums.items() if own.scores)
    return Matches(metric, tuple(sorted(systems, key=lambda one: -one.score)), tuple(pairs.often()))


def _shares(system: str, own: _Sums) -> MatchedShares:
    n = len(own.scores)
    score = float(np.mean(own.scores))
    parts = {kind: value / n for kind, value in own.kinds.items()}
    rest = score - sum(parts.values())
    # Below that it is the rounding of the sums.
    rest = rest if abs(rest) > 1e-6 else 0.0  # noqa: PLR2004
    words = max(1, own.words)
    return MatchedShares(
        system, score, **parts, rest=rest, unmatched=own.unmatched / words, unknown=own.unknown / words, n=n
    )
