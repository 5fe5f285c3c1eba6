"""Which word needed which edit: TER's way from hypothesis to reference, step by step.

sacreBLEU counts the edits of TER and forgets which they were. Here its search for shifts is repeated, choice by choice,
on faster edit distances:

1. Spell every distinct word of the two texts as one letter. A shift is then a few slices of a string.
2. Shift blocks of words as long as there is a shift that saves more edits than it costs. Candidates, their order and
   their ranking are sacreBLEU's; only candidates that rank higher than the best so far are measured to the end.
   No shift saves anything once the distance is that of the bags of words, which no order of the words goes below.
3. Align what came out with the reference by its edit distance: equal, substituted, inserted, deleted.
4. Give each word its edits. A shift is one edit, shared by the words of the block.

Two neighbouring blocks that change places can be told as a shift of either. As in sacreBLEU's ranking the longer block
that stands in the reference is said to have moved, and the earlier of two equally long ones.

**When the beam cannot matter.** sacreBLEU fills only cells near the diagonal: row i from floor(i R / H) - 25 to
floor(i R / H) + 24, for H hypothesis words and R reference words; row 0 and the end of row H are complete. A cell
left out can only make other cells dearer. So:

- *If the path that the complete matrix prefers lies in the beam, distance and path are those of the beam.* Along the
  path, each cell is reached by cells of the beam at its cost in the complete matrix. Neighbours that were dearer in the
  complete matrix are dearer in the beam too, so every choice among the three neighbours stays the same.
- *If distance + |R - H| <= 46, every cheapest path lies in the beam.* With a insertions and b deletions, a - b = R - H
  and a + b <= distance, so a path's cells have j - i between -(distance - (R - H)) / 2 and (distance + (R - H)) / 2.
  i R / H - i lies between 0 and R - H, and the computed floor is less than 1 below i R / H, or 1 where rounding hits
  a whole number. Both borders of the beam are kept if distance + |R - H| <= 2 (25 - 1 - 1).

The distance of complete matrices is that of rapidfuzz (bit-parallel, in C++); their paths are found with the bit
vectors of Hyyrö (2003), "A bit-vector algorithm for computing Levenshtein and Damerau edit distances". Where neither
statement holds, the beam is filled cell by cell.
"""

import math
from collections import Counter
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Literal, NamedTuple

from rapidfuzz.distance.Levenshtein import distance as levenshtein
from sacrebleu.metrics.lib_ter import (
    _BEAM_WIDTH,
    _INT_INFINITY,
    _MAX_SHIFT_CANDIDATES,
    _MAX_SHIFT_DIST,
    _MAX_SHIFT_SIZE,
    BeamEditDistance,
)

Kind = Literal["ok", "substituted", "inserted", "deleted"]

_SURE = 2 * (_BEAM_WIDTH - 2)
"""Up to this sum of distance and difference in length the beam cannot matter."""


class Edit(NamedTuple):
    """What happened to one word."""

    kind: Kind = "ok"
    other: str | None = None
    """The word on the other side, where there is one."""
    shifts: float = 0.0
    """The word's share of the shifts it took part in."""

    @property
    def cost(self) -> float:
        return (self.kind != "ok") + self.shifts


class Trace(NamedTuple):
    """The edits of all words: every insertion stands on the hypothesis side, every deletion on the reference side."""

    hypothesis: list[Edit]
    reference: list[Edit]
    edits: int


class _Shift(NamedTuple):
    """A block of `length` words at `start` goes to `target`; of equally good shifts the largest one is taken."""

    length: int
    before_start: int
    before_target: int

    @property
    def order(self) -> tuple[slice, slice, slice, slice]:
        """The four parts of the words, in their new order."""
        start, target, end = -self.before_start, -self.before_target, self.length - self.before_start
        if target < start:
            return slice(target), slice(start, end), slice(target, start), slice(end, None)
        border = target if target > end else target + self.length
        return slice(start), slice(end, border), slice(start, end), slice(border, None)


class _Ruler:
    """Measures how far words are from one reference: the distances and paths of sacreBLEU's beam."""

    def __init__(self, reference: str) -> None:
        self.reference = reference
        self.places: dict[str, list[int]] = {}
        for place, letter in enumerate(reference):
            self.places.setdefault(letter, []).append(place)

    @cached_property
    def _masks(self) -> dict[str, int]:
        return {letter: sum(1 << place for place in places) for letter, places in self.places.items()}

    @cached_property
    def _beam(self) -> "_Distance":
        return _Distance(list(self.reference))

    def distance(self, words: str, limit: int) -> int:
        """Return the distance, or some number above the limit if it is above it."""
        edits = levenshtein(words, self.reference, score_cutoff=limit)
        if edits > limit or edits + abs(len(words) - len(self.reference)) <= _SURE:
            return edits
        path = self._complete(words)
        return edits if self._in_beam(path, len(words)) else int(self._beam(list(words))[0])

    def path(self, words: str) -> str:
        """Return the cheapest edits, a letter each: blank, `s`ubstitute, `d`elete or `i`nsert."""
        path = self._complete(words)
        sure = len(path) - path.count(" ") + abs(len(words) - len(self.reference)) <= _SURE
        return path if sure or self._in_beam(path, len(words)) else str(self._beam(list(words))[1])

    def _complete(self, words: str) -> str:
        """Return the path through the complete matrix; diagonal before deletion before insertion."""
        size = len(self.reference)
        every = (1 << size) - 1
        rises, falls = every, 0  # from left to right in the row above
        rows = []
        for letter in words:
            equal = self._masks.get(letter, 0)
            flat = ((((equal & rises) + rises) ^ rises) | equal | falls) & every  # along the diagonal
            down = falls | (every & ~(flat | rises))
            rows.append((equal, flat, down))
            up = (flat & rises) << 1
            down = (down << 1) | 1
            rises, falls = (up | ~(flat | down)) & every, down & flat & every
        path = []
        i, j = len(words), size
        while i and j:
            equal, flat, down = rows[i - 1]
            cell = 1 << (j - 1)
            if not flat & cell:
                step = "s"
            elif equal & cell:
                step = " "
            else:
                step = "d" if down & cell else "i"
            path.append(step)
            i -= step != "i"
            j -= step != "d"
        return "d" * i + "i" * j + "".join(reversed(path))

    def _in_beam(self, path: str, number: int) -> bool:
        """Return whether all cells of a path are cells that sacreBLEU fills."""
        i = j = 0
        rows = _beam_rows(number, len(self.reference))
        for step in path:
            i += step != "i"
            j += step != "d"
            if i and j not in rows[i - 1]:
                return False
        return True


def _beam_rows(number: int, size: int) -> list[range]:
    """Return the cells of each row but the first that sacreBLEU fills."""
    ratio = size / number if number else 1
    width = _BEAM_WIDTH if ratio / 2 <= _BEAM_WIDTH else math.ceil(ratio / 2 + _BEAM_WIDTH)
    middles = [math.floor(i * ratio) for i in range(1, number + 1)]
    rows = [range(max(0, middle - width), min(size + 1, middle + width)) for middle in middles]
    return [*rows[:-1], range(rows[-1].start, size + 1)] if rows else []


_Lines = tuple[list[int], list[str]]
"""One row of the edit distance: the cost of each cell, and the operation that led there."""


class _Distance(BeamEditDistance):
    """sacreBLEU's edit distance, cell by cell the same, in half the time: costs and operations stand apart."""

    def __init__(self, reference: list[str]) -> None:
        super().__init__(reference)
        size = len(reference) + 1
        self._initial_row: _Lines = (list(range(size)), ["i"] * size)  # type: ignore[assignment]

    def _edit_distance(
        self,
        words_h: list[str],
        start_h: int,
        cache: list[_Lines],  # type: ignore[override]
    ) -> tuple[int, list[_Lines], str]:
        """Return distance, new rows and operations; the names of the arguments are those of sacreBLEU."""
        rows = list(cache)
        for word, cells in list(zip(words_h, _beam_rows(len(words_h), self._n_words_ref), strict=True))[start_h:]:
            rows.append(self._row(word, rows[-1][0], cells))
        return rows[-1][0][-1], rows[len(cache) :], _operations(rows)

    def _row(self, word: str, above: list[int], cells: range) -> _Lines:
        """Return the next row; of equally cheap ways Tercom prefers diagonal, then deletion, then insertion."""
        costs, operations = [_INT_INFINITY] * len(above), ["x"] * len(above)
        left, reference = _INT_INFINITY, self._words_ref
        for j in cells:
            if j == 0:
                cost, operation = above[0] + 1, "d"
            else:
                cost, operation = above[j - 1], " "
                if word != reference[j - 1]:
                    cost, operation = cost + 1, "s"
                if above[j] + 1 < cost:
                    cost, operation = above[j] + 1, "d"
                if left + 1 < cost:
                    cost, operation = left + 1, "i"
            if cost < _INT_INFINITY:
                costs[j], operations[j] = cost, operation
            left = costs[j]
        return costs, operations


def _operations(rows: Sequence[_Lines]) -> str:
    """Return the way from the first cell to the last."""
    i, j = len(rows) - 1, len(rows[0][0]) - 1
    path = []
    while i or j:
        operation = rows[i][1][j]
        path.append(operation)
        i -= operation != "i"
        j -= operation != "d"
    return "".join(reversed(path))


def trace(hypothesis: Sequence[str], reference: Sequence[str]) -> Trace:
    """Return the edits that make the words of the reference out of those of the hypothesis.

    >>> [edit.kind for edit in trace(["a", "cat"], ["a", "dog"]).hypothesis]
    ['ok', 'substituted']
    """
    if not reference:
        return Trace([Edit("inserted") for _ in hypothesis], [], len(hypothesis))
    words, others = _spell(hypothesis, reference)
    path, shifts = _find_shifts(words, others)
    order, shares = _assign_shifts(shifts, words, others)
    on_hypothesis = [Edit()] * len(hypothesis)
    on_reference: list[Edit] = []
    moved = iter(order)
    for operation in path:
        if operation == "i":
            on_reference.append(Edit("deleted"))
            continue
        place = next(moved)
        if operation == "d":
            on_hypothesis[place] = Edit("inserted", None, shares[place])
            continue
        kind: Kind = "ok" if operation == " " else "substituted"
        on_hypothesis[place] = Edit(kind, reference[len(on_reference)], shares[place])
        on_reference.append(Edit(kind, hypothesis[place], shares[place]))
    return Trace(on_hypothesis, on_reference, len(shifts) + _cost(path))


def alignment(hypothesis: list[str], reference: list[str]) -> str:
    """Return the cheapest edits without shifts, a letter each: blank, `s`ubstitute, `d`elete or `i`nsert.

    >>> alignment(["a", "big", "cat"], ["a", "dog"])
    ' ds'
    """
    words, others = _spell(hypothesis, reference)
    return _Ruler(others).path(words)


def edits(hypothesis: Sequence[str], reference: Sequence[str]) -> int:
    """Return the number of edits alone, as sacreBLEU counts them."""
    if not reference:
        return len(hypothesis)
    path, shifts = _find_shifts(*_spell(hypothesis, reference))
    return len(shifts) + _cost(path)


def _spell(hypothesis: Sequence[str], reference: Sequence[str]) -> tuple[str, str]:
    """Return both texts with each word as one letter: two pairs that differ in their words alone are spelled alike."""
    letters: dict[str, str] = {}
    words, others = (
        "".join([letters.setdefault(w, chr(len(letters))) for w in words]) for words in (hypothesis, reference)
    )
    return words, others


def _cost(path: str) -> int:
    return len(path) - path.count(" ")


@lru_cache(maxsize=1 << 14)
def _find_shifts(words: str, reference: str) -> tuple[str, tuple[_Shift, ...]]:
    """Return the path from the words to the reference after all shifts, and the shifts.

    Scores, word scores and texts with a feature masked ask for the same pairs: they are searched once.
    """
    ruler = _Ruler(reference)
    apart = len(words) - (Counter(words) & Counter(ruler.reference)).total()
    bags = max(apart, apart + len(ruler.reference) - len(words))
    shifts: list[_Shift] = []
    checked = 0
    while True:
        path = ruler.path(words)
        if _cost(path) == bags:
            return path, tuple(shifts)
        shift, checked = _best_shift(words, ruler, path, checked)
        if checked >= _MAX_SHIFT_CANDIDATES or shift is None:
            return path, tuple(shifts)
        shifts.append(shift)
        words = "".join([words[part] for part in shift.order])


def _best_shift(words: str, ruler: _Ruler, path: str, checked: int) -> tuple[_Shift | None, int]:
    """Return the shift that saves most, None where nothing saves, and the number of shifts looked at so far."""
    here, there = path.replace("i", ""), path.replace("d", "")  # the edits of the words, and of the reference
    best, least = None, _cost(path) - 1
    stands = _align_borders(path)
    for start, goal, longest in _blocks(words, ruler):
        for length in range(1, longest + 1):
            right = here[start : start + length].isspace() or there[goal : goal + length].isspace()
            if right or start <= stands[goal + 1] - 1 < start + length:
                continue
            before = -1
            for target in stands[goal : goal + length + 1]:
                if target == before:
                    continue
                before = target
                checked += 1
                shift = _Shift(length, -start, -target)
                first, second, third, fourth = shift.order
                edits = ruler.distance(words[first] + words[second] + words[third] + words[fourth], least)
                if edits < least or (edits == least and (best is None or shift > best)):
                    best, least = shift, edits
            if checked >= _MAX_SHIFT_CANDIDATES:
                return best, checked
    return best, checked


def _align_borders(path: str) -> list[int]:
    """Return where a block can be put before the reference's first word and after each of them."""
    targets, place = [0], 0
    for operation in path:
        place += operation != "i"
        if operation != "d":
            targets.append(place)
    return targets


def _blocks(words: str, ruler: _Ruler) -> list[tuple[int, int, int]]:
    """Return where words stand in the hypothesis and in the reference, and how many follow each other in both."""
    reference, blocks = ruler.reference, []
    for start, letter in enumerate(words):
        for goal in ruler.places.get(letter, ()):
            if abs(goal - start) > _MAX_SHIFT_DIST:
                continue
            end = min(_MAX_SHIFT_SIZE, len(words) - start, len(reference) - goal)
            length = 1
            while length < end and words[start + length] == reference[goal + length]:
                length += 1
            blocks.append((start, goal, length))
    return blocks


def _assign_shifts(shifts: Sequence[_Shift], words: str, reference: str) -> tuple[list[int], list[float]]:
    """Return the order of the words after all shifts, and each word's part of the shifts, by its first position."""
    order, shares = list(range(len(words))), [0.0] * len(words)
    for shift in shifts:
        after = [place for part in shift.order for place in order[part]]
        block = _find_moved_block(order, after, words, reference)
        for place in block:
            shares[place] += 1 / len(block)
        order = after
    return order, shares


def _find_moved_block(old: list[int], new: list[int], words: str, reference: str) -> list[int]:
    """Return the block that was shifted between the two orders: of `first second`, which became `second first`."""
    changed = [k for k in range(len(old)) if old[k] != new[k]]
    start, end = changed[0], changed[-1] + 1
    border = start + end - new.index(old[start])
    blocks = old[start:border], old[border:end]
    movable = [
        block for block in blocks if len(block) <= _MAX_SHIFT_SIZE and "".join(words[k] for k in block) in reference
    ]
    return max(movable or blocks, key=len)
