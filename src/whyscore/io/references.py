"""References per segment: empty ones are missing, transposed ones are refused.

1. An empty reference is left out where the segment has another one, and noted.
2. Where it has no other, the segment keeps no reference; that is noted too, and a metric that needs one refuses it.
3. Python callers give one text or one list of texts per segment. One list per reference *set* is told from that by
   its lengths and refused; where both readings fit (as many sets as segments), it is taken as per segment, and noted.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from whyscore.errors import DataError
from whyscore.io.wording import few
from whyscore.types import Finding


class Present(NamedTuple):
    """References without the empty ones."""

    rows: list[tuple[str, ...]]
    dropped: list[tuple[int, int]]
    """Row and number of each empty reference that has another one beside it."""
    missing: list[int]
    """Rows that have empty references only."""


def present(given: Iterable[tuple[str, ...]]) -> Present:
    """Return each segment's references without those that hold nothing but blanks."""
    rows = list(given)
    if all(map(str.strip, chain.from_iterable(rows))):
        return Present(rows, [], [])
    found = Present([], [], [])
    for k, row in enumerate(rows):
        kept = row
        if not all(map(str.strip, row)):
            kept = tuple(text for text in row if text.strip())
            if kept:
                found.dropped.extend((k, i) for i, text in enumerate(row) if not text.strip())
            else:
                found.missing.append(k)
        found.rows.append(kept)
    return found


def dropped_note(file: str | None, lines: Sequence[int]) -> Finding:
    """Return the note about empty references that were left out."""
    message = f"empty reference, counted as missing because the segment has another: lines {few(lines)}"
    return Finding(message, file, lines[0])


def missing_note(file: str | None, lines: Sequence[int]) -> Finding:
    """Return the note about segments that are left without any reference."""
    message = f"empty reference and no other: metrics that read references cannot score lines {few(lines)}"
    return Finding(message, file, lines[0])


def per_segment(
    references: Sequence[str | Sequence[str]], segments: int
) -> tuple[list[tuple[str, ...]], tuple[Finding, ...]]:
    """Return one tuple of references per segment, as a Python caller gave them."""
    if isinstance(references, str):
        raise DataError(f"references must be a list with one text or list per segment, got the text {references!r}")
    rows = [(row,) if isinstance(row, str) else tuple(row) for row in references]
    nested = bool(rows) and not any(isinstance(row, str) for row in references)
    fits_sets = nested and all(len(row) == segments for row in rows)
    if len(rows) != segments:
        if fits_sets:
            raise DataError(
                f"references look transposed: {len(rows)} lists of {segments} texts for {segments} segments; "
                "pass one list per segment, e.g. list(zip(*refs))"
            )
        raise DataError(f"{len(rows)} references for {segments} hypotheses: give one text or one list per segment")
    if fits_sets and segments > 1:
        message = (
            f"references are {segments} lists of {segments} texts for {segments} segments: taken as one list per "
            "segment; if they are one list per reference set, pass list(zip(*refs))"
        )
        return rows, (Finding(message),)
    return rows, ()
