"""Many texts through one network: each distinct row once, in batches of like length, back in order."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from whyscore.models.pairs import Cuts, budget_of, in_batches
from whyscore.models.rows import Long, RowCoder, Vectors
from whyscore.models.stacks import Stack
from whyscore.protocols import Encoded

# Larger batches leave the caches of a processor and hold more padding: 8,192 takes half as long again (MiniLM).
_PROCESSOR = 2048
# Texts whose vectors are held at a time where only one vector of each is wanted.
_HELD = 512


@dataclass(frozen=True, eq=False)
class Encoding:
    """A network with all that decides how texts go through it."""

    coder: RowCoder
    stack: Stack
    width: int
    limit: int | None
    long: Long
    batch: int
    cuts: Cuts
    who: str

    def encode(self, texts: Sequence[str]) -> list[Encoded]:
        """Return the pieces of each text with their vectors."""
        coded = self.coder.code(texts)
        room = self.coder.room(self.limit)
        if self.long == "truncate" and room is not None:
            self.cuts.add(sum(len(text.ids) > room for text in coded.values()), len(coded))
        wanted = {text: self.coder.rows(found, self.limit, self.long) for text, found in coded.items()}
        rows = list(dict.fromkeys(row for own in wanted.values() for row in own))

        def compute(batch: list[int]) -> list[Vectors]:
            return self.stack.states([rows[number] for number in batch])

        vectors = in_batches([len(row.ids) for row in rows], self.batch, compute, self.who)
        known = dict(zip(rows, vectors, strict=True))
        answers = {
            text: self.coder.encoded(found, [known[row] for row in wanted[text]], self.width, room)
            for text, found in coded.items()
        }
        return [answers[text] for text in texts]

    def each(self, texts: Sequence[str]) -> Iterator[tuple[str, Encoded]]:
        """Yield each distinct text with its vectors, holding few of them at a time."""
        # Short texts first, so that texts of like length meet in a batch here too.
        distinct = sorted(dict.fromkeys(texts), key=len)
        for first in range(0, len(distinct), _HELD):
            part = distinct[first : first + _HELD]
            yield from zip(part, self.encode(part), strict=True)


def batch_of(device: str) -> int:
    """Return how many pieces, padding counted, are computed at once on a device."""
    return min(_PROCESSOR, budget_of(device)) if device == "cpu" else budget_of(device)


def mean(encoded: Encoded) -> Vectors:
    """Return the mean of all vectors of a text, special pieces included; zeros where there are none."""
    if not len(encoded.vectors):
        return np.zeros(encoded.vectors.shape[1], dtype=np.float32)
    result: Vectors = encoded.vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
    return result


def limit_facts(limit: int | None, long: Long) -> dict[str, str]:
    """Return the part of a signature that says after how many pieces texts are cut, windowed or refused."""
    names = {"truncate": "trunc", "window": "window", "error": "limit"}
    return {} if limit is None else {names[long]: str(limit)}


def lengths(coder: RowCoder, texts: Sequence[str], limit: int | None, long: Long) -> list[tuple[int, int]]:
    """Return how many pieces of each text are read, and how many it has, special ones left out."""
    room = None if long == "window" else coder.room(limit)
    totals = {text: len(found.ids) for text, found in coder.code(texts).items()}
    return [(totals[text] if room is None else min(totals[text], room), totals[text]) for text in texts]
