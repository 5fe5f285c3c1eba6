"""Line-aligned texts: one segment a line, one file per system and per reference set; and texts given directly.

1. All files are read and must have the same number of lines; otherwise the message says where they drift apart.
2. Systems are named after their files (`naming`), ids are line numbers from zero.
3. The k-th reference file is reference k of every segment; empty lines are treated in `gathering`.
4. With `realign`, hypotheses with another number of lines are cut into the segments of the references (`realigning`).

Where two files of unequal length fall out of step:

1. Two lines fit by how far their length ratio is from that of the whole files, and whether they hold the same numbers.
2. Let S be the shorter file and L the longer one. Line i of S is compared with line i of L (in step) and with line
   i + 1 of L (S lacks a line). The earliest window of twenty lines that fits better one line on holds the drift.
3. Near that window, the drift is where staying in step before and shifting after it fits best.

Without such a window, or with too few lines behind it, nothing is claimed.
"""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from itertools import compress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from whyscore.data.files import STDIN, Limits, display_name, read_lines
from whyscore.data.gathering import Present, missing_note, note_dropped_references, per_segment, present
from whyscore.data.naming import refuse_twice, system_names
from whyscore.data.realigning import FileLines, Realign, Realigned, realign_lines
from whyscore.errors import DataError
from whyscore.types import Dataset, Entry, Finding, FloatVector, Origin, Segment

_WINDOW = 20
_LEAST = 5
_NUMBERS = re.compile(r"\d+")


def first_drift(one: Sequence[str], other: Sequence[str]) -> int | None:
    """Return the line (from one) at which the shorter file likely lacks a line, or None."""
    short, long = sorted((one, other), key=len)
    n = min(len(short), len(long) - 1)
    if n < _LEAST:
        return None
    ratio = math.log((1 + sum(map(len, short))) / (1 + sum(map(len, long))))
    step = _misfits(short[:n], long[:n], ratio)
    shifted = _misfits(short[:n], long[1 : n + 1], ratio)
    gain = step - shifted
    sums = np.concatenate([[0.0], np.cumsum(gain)])
    starts = np.arange(n - _LEAST + 1)
    better = sums[np.minimum(starts + _WINDOW, n)] - sums[starts] > 0
    if not better.any():
        return None
    start = int(np.argmax(better))
    # The gain of shifting from k to the end of the neighbourhood is largest where the drift begins.
    stop = min(start + 2 * _WINDOW, n)
    return start + int(np.argmax(sums[stop] - sums[start:stop])) + 1


def _misfits(one: Sequence[str], other: Sequence[str], ratio: float) -> FloatVector:
    return np.array([_misfit(a, b, ratio) for a, b in zip(one, other, strict=True)], dtype=np.float64)


def _misfit(one: str, other: str, ratio: float) -> float:
    length = abs(math.log((1 + len(one)) / (1 + len(other))) - ratio)
    return length + (set(_NUMBERS.findall(one)) != set(_NUMBERS.findall(other)))


File = str | Path


def read_texts(
    hypotheses: File | Sequence[File],
    references: File | Sequence[File] = (),
    source: File | None = None,
    *,
    systems: Sequence[str] | None = None,
    languages: tuple[str, str] | None = None,
    encoding: str = "utf-8",
    limits: Limits | None = None,
    realign: Realign | None = None,
) -> Dataset:
    """Return the segments of line-aligned files, system by system.

    Args:
        hypotheses: one file per system.
        references: one file per reference set.
        source: the file that was translated or summarised.
        systems: one name per hypothesis file, instead of names made from the paths.
        languages: source and target language, e.g. `("de", "en")`.
        encoding: of all files.
        limits: guards against huge files.
        realign: cut hypotheses with other borders into the segments of the references: `file` aligns each file at
            once, `documents` each document, where empty lines separate the documents of all files.
    """
    hypotheses, references = _several(hypotheses), _several(references)
    files = [*references, *([] if source is None else [source]), *hypotheses]
    _check_files(hypotheses, files)
    names = system_names(hypotheses, systems)
    read = [read_lines(file, encoding=encoding, limits=limits) for file in files]
    lines = [FileLines(display_name(file), content.texts) for file, content in zip(files, read, strict=True)]
    aligned = _LineAligned(lines[: len(references)], lines[len(references) : -len(names)], lines[-len(names) :])
    if realign is not None:
        aligned = aligned.realign(realign)
    aligned.check_counts()
    findings = [finding for content in read for finding in content.findings]
    return aligned.dataset(names, languages, findings)


class _LineAligned(NamedTuple):
    """Files that go line by line: those of the references, of the source (one or none) and of the hypotheses."""

    references: Sequence[FileLines]
    source: Sequence[FileLines]
    hypotheses: Sequence[FileLines]
    realigned: Realigned | None = None

    def realign(self, mode: Realign) -> "_LineAligned":
        """Return the files with the hypotheses cut into the segments of the references."""
        realigned = realign_lines(self.references, next(iter(self.source), None), self.hypotheses, mode)
        shared = zip((*self.references, *self.source), realigned.shared, strict=True)
        inputs = [FileLines(file.name, texts) for file, texts in shared]
        outputs = zip(self.hypotheses, realigned.hypotheses, strict=True)
        count = len(self.references)
        hypotheses = [FileLines(file.name, texts) for file, texts in outputs]
        return _LineAligned(inputs[:count], inputs[count:], hypotheses, realigned)

    def check_counts(self) -> None:
        """Refuse files of different length; the first file (a reference, where there is one) is the measure."""
        first, *others = (*self.references, *self.source, *self.hypotheses)
        for file in others:
            if len(file.texts) != len(first.texts):
                can_realign = self.references and file in self.hypotheses
                hint = f"; if {file.name} is segmented differently, pass --realign file" if can_realign else ""
                raise DataError(
                    f"{file.name} has {len(file.texts)} lines, {first.name} has {len(first.texts)}: line counts must "
                    f"match; {_drift(file.name, file.texts, first.name, first.texts)}{hint}"
                )

    def dataset(self, names: Sequence[str], languages: tuple[str, str] | None, findings: Sequence[Finding]) -> Dataset:
        """Return the segments, system by system, given the names of the systems."""
        realigned, n = self.realigned, len(self.hypotheses[0].texts)
        rows = zip(*(file.texts for file in self.references), strict=True)
        kept = present(rows) if self.references else Present([()] * n, [], [])
        sources = self.source[0].texts if self.source else [None] * n
        systems = dict(zip(names, self.hypotheses, strict=True))
        moved = set(compress(names, realigned.changed)) if realigned else set()
        numbers = realigned.numbers if realigned else range(1, n + 1)
        origin = Origin(
            {name: file.name for name, file in systems.items() if name not in moved},
            [*numbers] * len(names),
            self.source[0].name if self.source else None,
            tuple(file.name for file in self.references),
        )
        texts = {name: file.texts for name, file in systems.items()}
        entries = _entries(texts, sources, kept.rows, realigned and realigned.documents, moved)
        notes = (*(realigned.notes if realigned else ()), *_reference_notes(kept, origin.references, numbers))
        first = next(iter((*self.references, *self.source, *self.hypotheses)))
        return Dataset(Path(first.name).name, entries, languages, (*findings, *notes), origin)


def from_texts(
    hypotheses: Sequence[str] | Mapping[str, Sequence[str]],
    references: Sequence[str | Sequence[str]] | None = None,
    sources: Sequence[str] | None = None,
    *,
    name: str = "texts",
    languages: tuple[str, str] | None = None,
) -> Dataset:
    """Return the segments of texts given in Python.

    Args:
        hypotheses: one text per segment, or such a list for each system's name.
        references: one text or one list of texts *per segment*.
        sources: one text per segment.
        name: of the data set, in messages.
        languages: source and target language.

    >>> from_texts(["a cat"], references=[["a dog", "one dog"]]).segments[0].references
    ('a dog', 'one dog')
    """
    if languages is not None and (isinstance(languages, str) or len(languages) != 2):  # noqa: PLR2004 - a pair
        raise DataError(f"languages is {languages!r}: give source and target, for example ('en', 'de')")
    systems = hypotheses if isinstance(hypotheses, Mapping) else {"hypothesis": hypotheses}
    counts = {system: _length("hypotheses", texts) for system, texts in systems.items()}
    if not counts or not all(counts.values()):
        raise DataError("there are no hypotheses: give at least one")
    (first, n), *others = counts.items()
    for system, count in others:
        if count != n:
            raise DataError(f"{system!r} has {count} hypotheses, {first!r} has {n}: every system needs all segments")
    if sources is not None and _length("sources", sources) != n:
        raise DataError(f"{len(sources)} sources for {n} hypotheses: give one per segment")
    rows, notes = ([()] * n, ()) if references is None else per_segment(references, n)
    references_present = present(rows)
    if references_present.dropped or references_present.missing:
        notes = (*notes, *_reference_notes(references_present, (), range(1, n + 1)))
    return Dataset(name, _entries(systems, sources or [None] * n, references_present.rows), languages, notes)


def from_literals(
    hypotheses: Sequence[str],
    references: Sequence[str] = (),
    source: str | None = None,
    *,
    systems: Sequence[str] | None = None,
    languages: tuple[str, str] | None = None,
) -> Dataset:
    """Return one segment whose texts stand for one-line files: each hypothesis is a system, each reference a set.

    >>> from_literals(["a cat", "a dog"], ["the dog"]).systems
    ('system 1', 'system 2')
    """
    names = [f"system {k}" for k in range(1, len(hypotheses) + 1)] if systems is None else list(systems)
    if len(names) != len(hypotheses):
        raise DataError(f"{len(names)} system names for {len(hypotheses)} hypotheses: give one name per text")
    refuse_twice(names)
    texts = {name: [text] for name, text in zip(names, hypotheses, strict=True)}
    return from_texts(
        texts, [list(references)] if references else None, None if source is None else [source], languages=languages
    )


def _several(files: File | Sequence[File]) -> Sequence[File]:
    return [files] if isinstance(files, str | Path) else files


def _check_files(hypotheses: Sequence[File], files: Sequence[File]) -> None:
    if not hypotheses:
        raise DataError("there are no hypotheses: give one file per system with -t")
    if sum(str(file) == STDIN for file in files) > 1:
        raise DataError("- (the standard input) is given more than once, but can be read once: use a file")


def _drift(name: str, lines: Sequence[str], other_name: str, other: Sequence[str]) -> str:
    line = first_drift(lines, other)
    if line is not None:
        return f"first likely drift at line {line}"
    shorter = name if len(lines) < len(other) else other_name
    return f"the first line missing from {shorter} is line {min(len(lines), len(other)) + 1}"


def _entries(
    systems: Mapping[str, Sequence[str]],
    sources: Sequence[str | None],
    references: Sequence[tuple[str, ...]],
    documents: Sequence[str] | None = None,
    realigned: Collection[str] = (),
) -> tuple[Entry, ...]:
    ids = [str(k) for k in range(len(sources))]
    parts: Sequence[str | None] = documents or [None] * len(ids)
    # Mappings are shared: two of its own for each of a million entries take 120 MiB.
    human: Mapping[str, float] = {}
    extra = {system: {"realigned": True} if system in realigned else {} for system in systems}
    return tuple(
        Entry(number, system, Segment(hypothesis, source, row), human, document=document, extra=extra[system])
        for system, texts in systems.items()
        for number, hypothesis, source, row, document in zip(ids, texts, sources, references, parts, strict=True)
    )


def _reference_notes(kept: Present, files: Sequence[str], numbers: Sequence[int]) -> list[Finding]:
    """Return the notes on empty references: per file for those left out, once for segments without any."""
    notes = []
    for number in sorted({number for _, number in kept.dropped}):
        lines = [numbers[row] for row, of in kept.dropped if of == number]
        notes.append(note_dropped_references(files[number] if files else f"reference {number + 1}", lines))
    if kept.missing:
        notes.append(missing_note(files[0] if files else "references", [numbers[row] for row in kept.missing]))
    return notes


def _length(what: str, texts: Sequence[str]) -> int:
    if isinstance(texts, str):
        raise DataError(f"{what} must be a list of texts, got one text: put it in brackets, [{texts!r}]")
    return len(texts)
