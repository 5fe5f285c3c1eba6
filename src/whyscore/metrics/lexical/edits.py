"""Which word needed which edit: TER's way from hypothesis to reference, step by step.

sacreBLEU counts the edits of TER and forgets which they were. Here its own search for shifts runs with a faster edit
distance, and, where the edits are asked for, with words that remember where they stood:

1. Shift blocks of words as long as sacreBLEU finds a shift that saves more edits than it costs.
2. Align what came out with the reference by its edit distance: equal, substituted, inserted, deleted.
3. Give each word its edits. A shift is one edit, shared by the words of the block.

Two neighbouring blocks that change places can be told as a shift of either. As in sacreBLEU's ranking the longer block
that stands in the reference is said to have moved, and the earlier of two equally long ones.
"""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple, cast

from sacrebleu.metrics.lib_ter import (
    _BEAM_WIDTH,
    _INT_INFINITY,
    _MAX_SHIFT_CANDIDATES,
    _MAX_SHIFT_SIZE,
    BeamEditDistance,
    _shift,
)

Kind = Literal["ok", "substituted", "inserted", "deleted"]


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
    """The words before and after a block was shifted, and the reference that asked for it."""

    before: list[str]
    after: list[str]
    reference: list[str]


class _Marked(str):
    """A word that remembers its position; equal words stay equal."""

    __slots__ = ("position",)
    position: int


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
        number = len(words_h)
        ratio = self._n_words_ref / number if words_h else 1
        width = _BEAM_WIDTH if ratio / 2 <= _BEAM_WIDTH else math.ceil(ratio / 2 + _BEAM_WIDTH)
        for i in range(start_h + 1, number + 1):
            diagonal = math.floor(i * ratio)
            last = self._n_words_ref + 1 if i == number else min(self._n_words_ref + 1, diagonal + width)
            rows.append(self._row(words_h[i - 1], rows[-1][0], range(max(0, diagonal - width), last)))
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
    distance = _Distance(list(reference))
    words, shifts = _shifted(_marked(hypothesis), list(reference), distance)
    shares = _shares(shifts, len(hypothesis))
    edits, operations = distance(words)
    on_hypothesis = [Edit()] * len(hypothesis)
    on_reference: list[Edit] = []
    moved = iter(words)
    for operation in operations:
        if operation == "i":
            on_reference.append(Edit("deleted"))
            continue
        word = next(moved)
        position = _position(word)
        if operation == "d":
            on_hypothesis[position] = Edit("inserted", None, shares[position])
            continue
        kind: Kind = "ok" if operation == " " else "substituted"
        on_hypothesis[position] = Edit(kind, reference[len(on_reference)], shares[position])
        on_reference.append(Edit(kind, str(word), shares[position]))
    return Trace(on_hypothesis, on_reference, len(shifts) + edits)


def alignment(hypothesis: list[str], reference: list[str]) -> str:
    """Return the cheapest edits without shifts, a letter each: blank, `s`ubstitute, `d`elete or `i`nsert.

    >>> alignment(["a", "big", "cat"], ["a", "dog"])
    ' ds'
    """
    return str(_Distance(reference)(hypothesis)[1]) if reference else "d" * len(hypothesis)


def edits(hypothesis: list[str], reference: list[str]) -> int:
    """Return the number of edits alone, as sacreBLEU counts them."""
    if not reference:
        return len(hypothesis)
    distance = _Distance(reference)
    words, shifts = _shifted(hypothesis, reference, distance)
    return len(shifts) + distance(words)[0]


def _marked(words: Sequence[str]) -> list[str]:
    marked: list[str] = []
    for position, word in enumerate(words):
        one = _Marked(word)
        one.position = position
        marked.append(one)
    return marked


def _position(word: str) -> int:
    return cast("_Marked", word).position


def _shifted(words: list[str], reference: list[str], distance: BeamEditDistance) -> tuple[list[str], list[_Shift]]:
    """Return the words after all shifts, and the shifts."""
    shifts: list[_Shift] = []
    checked = 0
    while True:
        saved, changed, checked = _shift(words, reference, distance, checked)
        if checked >= _MAX_SHIFT_CANDIDATES or saved <= 0:
            return words, shifts
        shifts.append(_Shift(words, changed, reference))
        words = changed


def _shares(shifts: Sequence[_Shift], size: int) -> list[float]:
    """Return each word's part of the shifts, by its first position."""
    shares = [0.0] * size
    for shift in shifts:
        block = _moved(*shift)
        for word in block:
            shares[_position(word)] += 1 / len(block)
    return shares


def _moved(before: list[str], after: list[str], reference: list[str]) -> list[str]:
    """Return the block that was shifted between the two orders: of `first second`, which became `second first`."""
    old, new = [_position(word) for word in before], [_position(word) for word in after]
    changed = [k for k in range(len(old)) if old[k] != new[k]]
    start, end = changed[0], changed[-1] + 1
    border = start + end - new.index(old[start])
    first, second = before[start:border], before[border:end]
    known = [block for block in (first, second) if _stands_in(block, reference)]
    return max(known or [first, second], key=len)


def _stands_in(block: list[str], words: list[str]) -> bool:
    size = len(block)
    if size > _MAX_SHIFT_SIZE:
        return False
    return any(words[start : start + size] == block for start in range(len(words) - size + 1))
