"""Batches of similar length, longest first: padding is small, and what is too large fails early."""

from collections.abc import Iterator, Sequence

from whyscore.types import Segment

SIZE = 512
"""Segments a batch holds at the most: what an interruption can lose."""

CHARACTERS = 400_000
"""Characters a batch holds at the most, counting every text as long as the longest."""


def length(segment: Segment) -> int:
    """Return how many characters a segment has, all texts together."""
    return len(segment.hypothesis) + len(segment.source or "") + sum(map(len, segment.references))


def batches(segments: Sequence[Segment], size: int = SIZE, characters: int = CHARACTERS) -> Iterator[list[int]]:
    """Yield the indices of each batch; together they are every index once.

    >>> list(batches([Segment("a"), Segment("aaa"), Segment("aa")], size=2))
    [[1, 2], [0]]
    """
    lengths = [length(segment) for segment in segments]
    order = sorted(range(len(segments)), key=lambda i: -lengths[i])
    start = 0
    while start < len(order):
        longest = max(lengths[order[start]], 1)
        count = max(1, min(size, characters // longest))
        yield order[start : start + count]
        start += count
