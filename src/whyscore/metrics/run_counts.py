"""How many runs of characters or words two texts share, for many pairs of texts at once.

Explaining asks for thousands of pairs in which one text stays and the other changes, so the texts that stay are looked
at once, and all pairs are counted together:

1. Write all texts one after the other as numbers: code points, or one number per word.
2. Name the runs of n in the texts that stay: a run of n is a known run of n - 1 and one more unit, so equal pairs of
   (name of the run of n - 1, unit) get the same name. Names of different texts differ.
3. Look the runs of the changing texts up. What was unknown at n - 1 cannot be known at n and is dropped.
4. Count for each pair how often each named run occurs on both sides, and add up the smaller counts.

Several texts may stay together, as the references of BLEU do: a run then counts as often as in the text that has it
most often.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

Units = Sequence[str]
"""A text as the sequence of its characters, or a list of words."""

# Units of a batch: large enough that numpy's calls cost little, small enough for the processor's cache.
_BATCH = 1 << 16


class Pairs(NamedTuple):
    """What is compared: pair p is `moving[p]` with the texts `fixed[group[p]]`."""

    fixed: Sequence[Sequence[Units]]
    moving: Sequence[Units]
    group: Sequence[int]


class _Flat(NamedTuple):
    """Several texts in one row of numbers."""

    units: Integers
    lengths: Integers

    def spread(self, values: Integers) -> Integers:
        """Return the value of each text for each of its units."""
        return np.repeat(values, self.lengths)

    @property
    def left(self) -> Integers:
        """How many units the text has from here on."""
        return self.spread(np.cumsum(self.lengths)) - np.arange(len(self.units))


class _Batch(NamedTuple):
    """A portion of the pairs as numbers; `owner` says which group each fixed text belongs to."""

    fixed: _Flat
    owner: Integers
    moving: _Flat
    group: Integers


def shared_runs(pairs: Pairs, longest: int) -> Integers:
    """Return for each pair (rows) and each length 1 .. `longest` (columns) the number of runs both sides have.

    >>> shared_runs(Pairs([["banana"]], ["ananas", "ban"], [0, 0]), 2).tolist()
    [[5, 4], [3, 2]]
    """
    result = np.zeros((len(pairs.moving), longest), dtype=np.int64)
    for portion in _portions(pairs):
        result[portion] = _counted(_numbered(pairs, portion), longest)
    return result


def _portions(pairs: Pairs) -> Iterator[list[int]]:
    """Yield the pairs in portions of bounded size, those with the same fixed texts together."""
    sizes = [sum(map(len, texts)) for texts in pairs.fixed]
    portion: list[int] = []
    filled = 0
    for p in sorted(range(len(pairs.moving)), key=pairs.group.__getitem__):
        size = len(pairs.moving[p]) + sizes[pairs.group[p]]
        if portion and filled + size > _BATCH:
            yield portion
            portion, filled = [], 0
        portion.append(p)
        filled += size
    if portion:
        yield portion


def _numbered(pairs: Pairs, portion: Sequence[int]) -> _Batch:
    """Return the portion with units and groups as numbers 0, 1, ...; equal units are equal numbers."""
    groups = {number: place for place, number in enumerate(dict.fromkeys(pairs.group[p] for p in portion))}
    fixed = [text for number in groups for text in pairs.fixed[number]]
    owner = [place for number, place in groups.items() for _ in pairs.fixed[number]]
    everything = [*fixed, *(pairs.moving[p] for p in portion)]
    lengths = np.array([len(text) for text in everything], dtype=np.int64)
    units = _units(everything)
    border = int(lengths[: len(fixed)].sum())
    return _Batch(
        _Flat(units[:border], lengths[: len(fixed)]),
        np.array(owner, dtype=np.int64),
        _Flat(units[border:], lengths[len(fixed) :]),
        np.array([groups[pairs.group[p]] for p in portion], dtype=np.int64),
    )


def _units(texts: Sequence[Units]) -> Integers:
    """Return the units of all texts as numbers."""
    if isinstance(texts[0], str):
        points = np.frombuffer("".join(chain(*texts)).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        return np.unique(points, return_inverse=True)[1].astype(np.int64)
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(word, len(numbers)) for word in chain(*texts)], dtype=np.int64)


def _counted(batch: _Batch, longest: int) -> Integers:
    """Return the shared runs of one batch, by step 2 to 4."""
    fixed, owner, moving, group = batch
    result = np.zeros((len(group), longest), dtype=np.int64)
    radix = int(max(fixed.units.max(initial=0), moving.units.max(initial=0))) + 1
    left = (fixed.left, moving.left)
    text, owners, pair = (
        fixed.spread(np.arange(len(owner))),
        fixed.spread(owner),
        moving.spread(np.arange(len(group))),
    )
    # Before the first unit every run is empty, and its name is the number of the group.
    places, names = [np.arange(len(fixed.units)), np.arange(len(moving.units))], [owners, group[pair]]
    for n in range(1, longest + 1):
        for side, flat in enumerate((fixed, moving)):
            fits = left[side][places[side]] >= n
            places[side] = places[side][fits]
            names[side] = names[side][fits] * radix + flat.units[places[side] + n - 1]
        known, first, names[0] = np.unique(names[0], return_index=True, return_inverse=True)
        if not len(known):
            break
        found = np.minimum(np.searchsorted(known, names[1]), len(known) - 1)
        kept = known[found] == names[1]
        places[1], names[1] = places[1][kept], found[kept]
        counts = _most(names[0], text[places[0]], len(owner))
        result[:, n - 1] = _smaller(pair[places[1]], names[1], counts, owners[places[0][first]], group)
    return result


def _most(names: Integers, text: Integers, texts: int) -> Integers:
    """Return how often each named run occurs in the text that has it most often."""
    result = np.zeros(int(names.max()) + 1, dtype=np.int64)
    cells, counts = np.unique(names * texts + text, return_counts=True)
    np.maximum.at(result, cells // texts, counts)
    return result


def _smaller(pair: Integers, name: Integers, counts: Integers, owner: Integers, group: Integers) -> Integers:
    """Return for each pair the sum over runs of the smaller of the two counts.

    Args:
        pair: the pair of each run found in a changing text.
        name: the name of each such run.
        counts: how often each named run may count.
        owner: the group that each name belongs to; names of one group follow each other.
        group: the group of each pair.
    """
    sizes = np.bincount(owner, minlength=int(group.max()) + 1)
    # One cell for each pair and each named run of its group: pair p has `width[p]` of them.
    width = sizes[group]
    shift = (np.cumsum(width) - width) - (np.cumsum(sizes) - sizes)[group]
    seen = np.bincount(name + shift[pair], minlength=int(width.sum()))
    cells = np.repeat(np.arange(len(group)), width)
    allowed = counts[np.arange(len(seen)) - shift[cells]]
    return np.bincount(cells, np.minimum(seen, allowed), minlength=len(group)).astype(np.int64)
