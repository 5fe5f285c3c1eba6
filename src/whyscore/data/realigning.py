"""Hypothesis files with borders of their own, cut into the segments of the references (`text.segmentation`).

1. `file`: each file is one document. `documents`: empty lines separate the documents, as many in each file, and are
   dropped; segments name their document by its number, from one.
2. A hypothesis file with as many lines as the first reference, in each document, is left as it is.
3. Each document of the others is re-aligned by itself.

Notes say which files were re-aligned and which were not; entries of a re-aligned file say so in `extra`.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Literal, NamedTuple

from whyscore.data.naming import counted
from whyscore.errors import DataError
from whyscore.text.segmentation import resegment
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
    found, changed, notes = [], [], []
    for file in hypotheses:
        documents = _documents(file, mode)
        _check_documents(file, documents, files[0], shared[0])
        texts = _texts(documents)
        other = list(map(len, texts)) != list(map(len, rows))
        if other:
            texts = [resegment(own, segments) for own, segments in zip(texts, rows, strict=True)]
        found.append([text for own in texts for text in own])
        changed.append(other)
        notes.append(_note(file, sum(map(len, documents)), found[-1], files[0].name, changed=other))
    return Realigned(
        found,
        [[text for own in _texts(documents) for text in own] for documents in shared],
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
    return [list(own) for filled, own in groupby(lines, lambda line: bool(line[1].strip())) if filled]


def _texts(documents: Sequence[_Document]) -> list[list[str]]:
    return [[text for _, text in document] for document in documents]


def _check_documents(
    file: FileLines, own: Sequence[_Document], first: FileLines, measure: Sequence[_Document], *, lines: bool = False
) -> None:
    """Refuse another number of documents and, with `lines`, of lines in one of them."""
    if len(own) != len(measure):
        raise DataError(
            f"{file.name} has {counted(len(own), 'document')}, {first.name} has {len(measure)}: separate the same "
            "documents with empty lines in both, or pass --realign file"
        )
    for k, (document, expected) in enumerate(zip(own, measure, strict=True), 1):
        if lines and len(document) != len(expected):
            place = f"document {k} of {file.name}" if len(own) > 1 else file.name
            raise DataError(
                f"{place} has {len(document)} lines, {first.name} has {len(expected)}: only the hypotheses are "
                "re-aligned, references and source must match line by line"
            )


def _note(file: FileLines, lines: int, texts: Sequence[str], reference: str, *, changed: bool) -> Finding:
    if not changed:
        message = f"has as many lines as {reference} ({lines:,}): not re-aligned"
        return Finding("not-realigned", message, file.name)
    empty = sum(not text for text in texts)
    number = counted(len(texts), "segment")
    message = f"{counted(lines, 'line')} re-aligned to the {number} of {reference} by minimal word edit distance"
    return Finding("realigned", message + (f"; empty: {counted(empty, 'segment')}" if empty else ""), file.name)
