"""Which word of one text stands for which word of the other: links to learn maps between languages from.

- Mutual nearest neighbours: i and j are linked if each is the other's nearest by cosine.
- IBM model 1 (Brown et al. 1993), for texts alone:
  1. t(target word | source word) is estimated by expectation maximisation over all pairs that occur together, with an
     empty source word beside the others; once in each direction.
  2. Each word is linked to its most probable partner, or to none.
  3. Links of both directions are kept; links of one direction beside a kept one (also diagonally) join them as long as
     one of their two words has no link yet.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whyscore.errors import DataError
from whyscore.types import FloatMatrix, FloatVector

Link = tuple[int, int]
"""Numbers of a source and a target word, from zero."""

Sentence = Sequence[str]
Indices = NDArray[np.intp]

_ROUNDS = 5
_EMPTY = ""
_DIGITS = 9  # a text of a billion words is none


def read_links(lines: Iterable[str], *, file: str | None = None) -> list[tuple[Link, ...]]:
    """Return the links of each line in Pharaoh's format.

    >>> read_links(["0-0 1-2"])
    [((0, 0), (1, 2))]
    """
    found = []
    for number, line in enumerate(lines, start=1):
        links = []
        for part in line.split():
            source, dash, target = part.partition("-")
            if not (dash and _place(source) and _place(target)):
                raise DataError(f"expected links such as 0-0 1-2, found {part!r}", file=file, line=number)
            links.append((int(source), int(target)))
        found.append(tuple(links))
    return found


def _place(digits: str) -> bool:
    """Return whether these are the digits of a place in a text."""
    return digits.isdecimal() and len(digits) <= _DIGITS


def mutual_nearest(similarity: FloatMatrix) -> tuple[Link, ...]:
    """Return the links between rows and columns that are each other's nearest; the first wins among equals.

    >>> mutual_nearest(np.array([[0.9, 0.1], [0.8, 0.2]]))
    ((0, 0),)
    """
    if not similarity.size:
        return ()
    forth, back = similarity.argmax(axis=1), similarity.argmax(axis=0)
    rows = np.flatnonzero(back[forth] == np.arange(len(forth)))
    return tuple((int(row), int(forth[row])) for row in rows)


def ibm1(sources: Sequence[Sentence], targets: Sequence[Sentence]) -> list[tuple[Link, ...]]:
    """Return the links of each pair of texts by IBM model 1 in both directions."""
    forth = _best(sources, targets)
    back = _best(targets, sources)
    links = []
    for one, other in zip(forth, back, strict=True):
        here = {(int(s), t) for t, s in enumerate(one.tolist()) if s >= 0}
        there = {(s, int(t)) for s, t in enumerate(other.tolist()) if t >= 0}
        links.append(grown(here, there))
    return links


def grown(here: set[Link], there: set[Link]) -> tuple[Link, ...]:
    """Return the common links, and those of one side that touch a kept one and have a word without a link.

    >>> grown({(0, 0), (1, 1)}, {(0, 0)})
    ((0, 0), (1, 1))
    """
    kept, waiting = here & there, sorted(here ^ there)
    added = True
    while added:
        added = False
        for source, target in waiting:
            near = any((source + i, target + j) in kept for i in (-1, 0, 1) for j in (-1, 0, 1))
            free = all(s != source for s, _ in kept) or all(t != target for _, t in kept)
            if (source, target) not in kept and near and free:
                kept.add((source, target))
                added = True
    return tuple(sorted(kept))


class _Together(NamedTuple):
    """All pairs of words that stand in the same pair of texts, one after another."""

    cell: Indices
    """Which distinct pair of words it is."""
    slot: Indices
    """Which word of a target text, counted over all texts."""
    place: Indices
    """Which word of the source text; -1 is the empty word."""
    source: Indices
    """The source word of each distinct pair."""


def _best(sources: Sequence[Sentence], targets: Sequence[Sentence]) -> list[Indices]:
    """Return for each target word the place of its most probable source word, -1 for the empty one."""
    together = _together(sources, targets)
    lengths = [len(target) for target in targets]
    probability = _estimated(together, sum(lengths))
    # Sorted by slot and then by rising probability, so that the last of each slot is the best.
    order = np.lexsort((probability[together.cell], together.slot))
    last = np.append(np.flatnonzero(np.diff(together.slot[order])), len(order) - 1) if len(order) else order
    best = np.full(sum(lengths), -1, dtype=np.intp)
    best[together.slot[order][last]] = together.place[order][last]
    return np.split(best, np.cumsum(lengths)[:-1]) if lengths else []


def _together(sources: Sequence[Sentence], targets: Sequence[Sentence]) -> _Together:
    numbers: dict[str, int] = {_EMPTY: 0}
    left, right, slot, place = [], [], [], []
    start = 0
    for source, target in zip(sources, targets, strict=True):
        here = np.array([0, *(numbers.setdefault(word, len(numbers)) for word in source)], dtype=np.int64)
        there = np.array([numbers.setdefault(word, len(numbers)) for word in target], dtype=np.int64)
        left.append(np.tile(here, len(there)))
        right.append(np.repeat(there, len(here)))
        slot.append(np.repeat(np.arange(start, start + len(there)), len(here)))
        place.append(np.tile(np.arange(-1, len(source)), len(there)))
        start += len(there)
    joined = [np.concatenate([np.empty(0, dtype=np.int64), *parts]) for parts in (left, right, slot, place)]
    keys, cell = np.unique(joined[0] * len(numbers) + joined[1], return_inverse=True)
    return _Together(cell.astype(np.intp), joined[2].astype(np.intp), joined[3].astype(np.intp), keys // len(numbers))


def _estimated(together: _Together, slots: int) -> FloatVector:
    """Return t(target | source) of each distinct pair."""
    probability = np.ones(len(together.source))
    for _ in range(_ROUNDS):
        here = probability[together.cell]
        share = here / np.bincount(together.slot, here, minlength=slots)[together.slot]
        counts = np.bincount(together.cell, share, minlength=len(probability))
        probability = counts / np.bincount(together.source, counts)[together.source]
    return probability
