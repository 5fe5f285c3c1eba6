"""N-grams of characters and tokens, and how many of them two texts share.

1. A text becomes its n-grams, one sequence per order: strings of characters, or tuples of tokens.
2. The text that many others are compared with becomes a table per order: every n-gram with its count.
3. A match is clipped: an n-gram counts as often as it stands in both texts.

The number of matches is the same whichever text is the table, so callers turn the text that stays into tables.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from whyscore.types import FloatVector

Gram = str | tuple[str, ...]
"""Characters in a row, or tokens in a row."""


class Table(NamedTuple):
    """The n-grams of one order with their counts."""

    counts: Mapping[Gram, int]
    repeated: Mapping[Gram, int]
    """Those that occur more than once: only they can need clipping."""
    total: int


def character_grams(text: str, order: int) -> list[Sequence[Gram]]:
    """Return the runs of 1, 2, ... `order` characters.

    >>> character_grams("abc", 2)
    [['a', 'b', 'c'], ['ab', 'bc']]
    """
    return [[text[start : start + n] for start in range(len(text) - n + 1)] for n in range(1, order + 1)]


def token_grams(tokens: Sequence[str], order: int) -> list[Sequence[Gram]]:
    """Return the runs of 1, 2, ... `order` tokens.

    >>> token_grams(["a", "cat"], 2)
    [[('a',), ('cat',)], [('a', 'cat')]]
    """
    shifted = [tokens[start:] for start in range(order)]
    return [list(zip(*shifted[:n], strict=False)) for n in range(1, order + 1)]


def table(grams: Sequence[Gram]) -> Table:
    """Return the n-grams of one order as a table."""
    counts = Counter(grams)
    return Table(counts, {gram: count for gram, count in counts.items() if count > 1}, len(grams))


def widest(tables: Sequence[Table]) -> Table:
    """Return for each n-gram the largest count any table has, BLEU's rule for several references."""
    if len(tables) == 1:
        return tables[0]
    counts: Counter[Gram] = Counter()
    for one in tables:
        counts |= Counter(one.counts)
    return Table(counts, {gram: count for gram, count in counts.items() if count > 1}, counts.total())


def matched(grams: Sequence[Gram], other: Table) -> int:
    """Return how many n-grams also stand in the table, each at most as often as there.

    >>> matched("banana", table("ananas"))
    5
    """
    found = len(other.counts.keys() & grams)
    if not other.repeated:
        return found
    again = Counter(filter(other.repeated.__contains__, grams))
    return found + sum(map(min, again.values(), map(other.repeated.__getitem__, again))) - len(again)


def credit(grams: Sequence[Gram], other: Table) -> FloatVector:
    """Return for each n-gram the share of it that matched: 1, 0, or between when it occurs more often than there.

    >>> credit("aab", table("ab")).tolist()
    [0.5, 0.5, 1.0]
    """
    own = Counter(grams)
    shares = {gram: min(count, other.counts.get(gram, 0)) / count for gram, count in own.items()}
    return np.array([shares[gram] for gram in grams], dtype=np.float64)
