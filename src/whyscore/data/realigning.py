"""Hypothesis files with borders of their own, cut into the segments of the references.

1. `file`: each file is one document. `documents`: empty lines separate the documents, as many in each file, and are
   dropped; segments name their document by its number, from one.
2. A hypothesis file with as many lines as the first reference, in each document, is left as it is.
3. Each document of the others is re-aligned by itself.

Notes say which files were re-aligned and which were not; entries of a re-aligned file say so in `extra`.

How a translation is cut into the segments of its reference (`resegment`):

Speech translation, document-level translation and files with several sentences per line have borders of their own. The
translation is re-aligned by minimal edit distance (Matusov et al. 2005, "Evaluating Machine Translation Output with
Automatic Sentence Segmentation"):

1. Units are words, and characters in scripts without blanks (`Auto`); case is ignored.
2. D(k, j) is the least number of insertions, deletions and substitutions that turn the first j units of the document's
   translation into its first k segments. With several references, each segment takes the nearest one.
3. The border after segment k is where the best path leaves segment k. No unit is lost, repeated or moved.
4. Of equally good paths, the one with the most natural borders is taken: ends of the translation's own lines, or places
   after final punctuation; of these, going from the last segment to the first, the one that starts it earliest.

A row of D holds cost, borders that are not natural, and the start of the segment as one integer, less the cost of
inserting all units up to its column: insertions are then a running minimum. Starts are held for one block of segments
at a time; with several blocks, each is computed again from its first row, so that memory stays bounded.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import isqrt
from typing import Literal, NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray

from whyscore.data.naming import with_noun
from whyscore.errors import DataError
from whyscore.text.splitters import NO_BLANKS, Auto
from whyscore.types import Finding

Realign = Literal["file", "documents"]


class FileLines(NamedTuple):
    """The lines of a file."""

    name: str
    texts: list[str]


class Realigned(NamedTuple):
    """The hypotheses, one text per segment, and what is known of the segments."""

    hypotheses: list[list[str]]
    shared: list[list[str]]
    """The lines of the references and of the source."""
    numbers: list[int]
    """The line of each segment in the first reference."""
    documents: list[str] | None
    changed: list[bool]
    """Which hypotheses were re-aligned."""
    notes: list[Finding]


def realign_lines(
    references: Sequence[FileLines], source: FileLines | None, hypotheses: Sequence[FileLines], mode: Realign
) -> Realigned:
    """Return the hypotheses re-aligned to the references, document by document or each file at once."""
    if not references:
        raise DataError(f"--realign {mode} cuts translations into the segments of the references: give them with -r")
    files = [*references, *([] if source is None else [source])]
    shared = [_documents(file, mode) for file in files]
    for file, documents in zip(files[1:], shared[1:], strict=True):
        _check_documents(file, documents, files[0], shared[0], lines=True)
    rows = [
        [[text for text in segment if text.strip()] for segment in zip(*parallel, strict=True)]
        for parallel in zip(*(_texts(documents) for documents in shared[: len(references)]), strict=True)
    ]
    realigned, changed, notes = [], [], []
    for file in hypotheses:
        documents = _documents(file, mode)
        _check_documents(file, documents, files[0], shared[0])
        texts = _texts(documents)
        other = list(map(len, texts)) != list(map(len, rows))
        if other:
            texts = [resegment(lines, segments) for lines, segments in zip(texts, rows, strict=True)]
        realigned.append([text for lines in texts for text in lines])
        changed.append(other)
        notes.append(_note(file, sum(map(len, documents)), realigned[-1], files[0].name, changed=other))
    return Realigned(
        realigned,
        [[text for lines in _texts(documents) for text in lines] for documents in shared],
        [number for document in shared[0] for number, _ in document],
        [str(k) for k, document in enumerate(shared[0], 1) for _ in document] if mode == "documents" else None,
        changed,
        notes,
    )


_Document = list[tuple[int, str]]
"""The lines of a document, with their numbers from one."""


def _documents(file: FileLines, mode: Realign) -> list[_Document]:
    lines = list(enumerate(file.texts, 1))
    if mode == "file":
        return [lines]
    return [list(group) for filled, group in groupby(lines, lambda line: bool(line[1].strip())) if filled]


def _texts(documents: Sequence[_Document]) -> list[list[str]]:
    return [[text for _, text in document] for document in documents]


def _check_documents(
    file: FileLines,
    documents: Sequence[_Document],
    first: FileLines,
    measure: Sequence[_Document],
    *,
    lines: bool = False,
) -> None:
    """Refuse another number of documents and, with `lines`, of lines in one of them."""
    if len(documents) != len(measure):
        raise DataError(
            f"{file.name} has {with_noun(len(documents), 'document')}, {first.name} has {len(measure)}: separate the "
            "same documents with empty lines in both, or pass --realign file"
        )
    for k, (document, expected) in enumerate(zip(documents, measure, strict=True), 1):
        if lines and len(document) != len(expected):
            place = f"document {k} of {file.name}" if len(documents) > 1 else file.name
            raise DataError(
                f"{place} has {len(document)} lines, {first.name} has {len(expected)}: only the hypotheses are "
                "re-aligned, references and source must match line by line"
            )


def _note(file: FileLines, lines: int, texts: Sequence[str], reference: str, *, changed: bool) -> Finding:
    if not changed:
        message = f"has as many lines as {reference} ({lines:,}): not re-aligned"
        return Finding("not-realigned", message, file.name)
    empty = sum(not text for text in texts)
    number = with_noun(len(texts), "segment")
    message = f"{with_noun(lines, 'line')} re-aligned to the {number} of {reference} by minimal word edit distance"
    return Finding("realigned", message + (f"; empty: {with_noun(empty, 'segment')}" if empty else ""), file.name)


CELLS = 4_000_000_000
"""The most pairs of units (translation x references) of one document."""
HELD = 64_000_000
"""How many starts of segments a block may hold, 4 bytes each, unless a block of sqrt(segments) segments needs more."""

_SPLITTER = Auto()
_UNSPACED = regex.compile(rf"[{NO_BLANKS}\u3001-\u303f\uff01-\uffef]")

_FINAL = regex.compile(r"[.!?…。！？]+[\p{Pe}\p{Pf}\"']*$")

_Row = NDArray[np.int64]
_Starts = NDArray[np.int32]


def resegment(texts: Sequence[str], references: Sequence[Sequence[str]]) -> list[str]:
    """Return the translation of a document with one text per segment of its reference; a text may be empty.

    Args:
        texts: The translation, in lines or sentences of its own.
        references: The references of each segment; a segment may have none.

    >>> resegment(["the cat sat. it", "was warm"], [["The cat sat."], ["It was so warm."]])
    ['the cat sat.', 'it was warm']
    """
    units, gaps, borders = _units(texts)
    if not references:
        raise DataError("there are no reference segments to re-align to: give at least one")
    segments = [[[unit.casefold() for unit in _SPLITTER.split(text)] for text in row] or [[]] for row in references]
    read = sum(len(words) for row in segments for words in row)
    if len(units) * read > CELLS:
        raise DataError(
            f"{len(units):,} words of a translation and {read:,} of its references are too many to re-align at once: "
            "separate documents with empty lines in all files and pass --realign documents"
        )
    starts = _Alignment.of([unit.casefold() for unit in units], segments, borders).starts()
    pieces = [gap + unit for gap, unit in zip(gaps, units, strict=True)]
    return ["".join(pieces[start:end]).strip() for start, end in pairwise([*starts, len(units)])]


def _units(texts: Sequence[str]) -> tuple[list[str], list[str], list[int]]:
    """Return the units of all texts, what stands before each of them, and before which of them borders are natural."""
    units: list[str] = []
    gaps: list[str] = []
    borders: list[int] = []
    for text in texts:
        words = _SPLITTER.split(text)
        if text_units := list(words):
            unspaced = units and _UNSPACED.match(units[-1][-1]) and _UNSPACED.match(text_units[0])
            gaps += ["" if unspaced else " ", *words.gaps[1:-1]]
            borders += [len(units) + k for k, unit in enumerate(text_units, 1) if _FINAL.search(unit)]
            units += text_units
        borders.append(len(units))
    return units, gaps, borders


@dataclass(frozen=True)
class _Alignment:
    """The units of a translation by their places, the segments, and what numbers in a row of D are made of."""

    size: int
    """How many columns D has."""
    places: dict[str, NDArray[np.intp]]
    segments: list[list[list[str]]]
    unnatural: _Row
    """What a border costs at each column: less than an edit, and nothing where it is natural."""
    edit: int

    @classmethod
    def of(cls, units: Sequence[str], segments: list[list[list[str]]], borders: Sequence[int]) -> "_Alignment":
        size = len(units) + 1
        places: dict[str, list[int]] = {}
        for k, unit in enumerate(units):
            places.setdefault(unit, []).append(k)
        unnatural = np.full(size, size, dtype=np.int64)
        unnatural[list(borders)] = 0
        arrays = {unit: np.array(columns, dtype=np.intp) for unit, columns in places.items()}
        return cls(size, arrays, segments, unnatural, size * (len(segments) + 1))

    def starts(self) -> list[int]:
        """Return at which unit each segment starts."""
        count = len(self.segments)
        block = max(HELD // self.size, isqrt(count), 1)
        firsts = range(0, count, block)
        row = np.full(
            self.size, self.edit * (self.size + sum(max(map(len, references)) for references in self.segments) + 1)
        )
        row[0] = 0
        rows = [row]
        for first in firsts[:-1]:
            rows.append(self._advance(rows[-1], first, first + block)[0])
        result: list[int] = []
        end = self.size - 1
        for first, row in zip(reversed(firsts), reversed(rows), strict=True):
            for starts in reversed(self._advance(row, first, first + block)[1]):
                end = int(starts[end])
                result.append(end)
        return result[::-1]

    def _advance(self, row: _Row, first: int, last: int) -> tuple[_Row, list[_Starts]]:
        """Return the row of D after some segments, and where each of them starts, given where it ends."""
        ramp = np.arange(self.size, dtype=np.int64) * self.edit
        all_starts = []
        for references in self.segments[first:last]:
            entered = np.minimum.accumulate(row + np.arange(self.size) - ramp)
            best = self._read(entered, references[0])
            for words in references[1:]:
                np.minimum(best, self._read(entered, words), out=best)
            best += ramp
            starts = best % self.size
            all_starts.append(starts.astype(np.int32))
            row = best - starts + self.unnatural
        return row, all_starts

    def _read(self, row: _Row, words: Sequence[str]) -> _Row:
        """Return the row after the words of a reference: each is deleted, substituted or, where equal, matched."""
        row = row.copy()
        matched = np.empty_like(row[1:])
        nowhere = np.empty(0, dtype=np.intp)
        for word in words:
            matched[:] = row[:-1]
            matched[self.places.get(word, nowhere)] -= self.edit
            row += self.edit
            np.minimum(row[1:], matched, out=row[1:])
            np.minimum.accumulate(row, out=row)
        return row
