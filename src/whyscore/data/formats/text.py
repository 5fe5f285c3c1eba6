"""Line-aligned texts: one segment a line, one file per system and per reference set; and texts given directly.

1. All files are read and must have the same number of lines; otherwise the message says where they drift apart.
2. Systems are named after their files (`naming`), ids are line numbers from zero.
3. The k-th reference file is reference k of every segment; empty lines are treated in `gathering`.

Where two files of unequal length fall out of step:

1. Two lines fit by how far their length ratio is from that of the whole files, and whether they hold the same numbers.
2. Let S be the shorter file and L the longer one. Line i of S is compared with line i of L (in step) and with line
   i + 1 of L (S lacks a line). The earliest window of twenty lines that fits better one line on holds the drift.
3. Near that window, the drift is where staying in step before and shifting after it fits best.

Without such a window, or with too few lines behind it, nothing is claimed.
"""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from whyscore.data.files import STDIN, Limits, Lines, read_lines, shown
from whyscore.data.gathering import Present, dropped_note, missing_note, per_segment, present
from whyscore.data.located import Located, Origin
from whyscore.data.naming import refuse_twice, system_names
from whyscore.errors import DataError
from whyscore.types import Dataset, Entry, Finding, FloatVector, Segment

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
    """
    hypotheses, references = _several(hypotheses), _several(references)
    files = [*references, *([] if source is None else [source]), *hypotheses]
    _check_files(hypotheses, files)
    names = system_names(hypotheses, systems)
    read = [read_lines(file, encoding=encoding, limits=limits) for file in files]
    _check_counts([shown(file) for file in files], [lines.texts for lines in read])
    sets = [lines.texts for lines in read[: len(references)]]
    n = len(read[0].texts)
    kept = present(zip(*sets, strict=True)) if sets else Present([()] * n, [], [])
    sources = read[len(references)].texts if source is not None else [None] * n
    texts = {name: lines.texts for name, lines in zip(names, read[-len(names) :], strict=True)}
    origin = Origin(
        {name: shown(file) for name, file in zip(names, hypotheses, strict=True)},
        list(range(1, n + 1)) * len(names),
        None if source is None else shown(source),
        tuple(shown(file) for file in references),
    )
    notes = (*_noted(read), *_reference_notes(kept, origin.references))
    title = Path(shown(files[0])).name
    return Located(title, _entries(texts, sources, kept.rows), languages, notes, origin)


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
    kept = present(rows)
    if kept.dropped or kept.missing:
        notes = (*notes, *_reference_notes(kept, ()))
    return Dataset(name, _entries(systems, sources or [None] * n, kept.rows), languages, notes)


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


def _check_counts(names: Sequence[str], texts: Sequence[Sequence[str]]) -> None:
    """Refuse files of different length; the first file (a reference, where there is one) is the measure."""
    for name, lines in zip(names[1:], texts[1:], strict=True):
        if len(lines) != len(texts[0]):
            raise DataError(
                f"{name} has {len(lines)} lines, {names[0]} has {len(texts[0])}: line counts must match; "
                f"{_drift(name, lines, names[0], texts[0])}"
            )


def _drift(name: str, lines: Sequence[str], other_name: str, other: Sequence[str]) -> str:
    line = first_drift(lines, other)
    if line is not None:
        return f"first likely drift at line {line}"
    shorter = name if len(lines) < len(other) else other_name
    return f"the first line missing from {shorter} is line {min(len(lines), len(other)) + 1}"


def _entries(
    systems: Mapping[str, Sequence[str]], sources: Sequence[str | None], references: Sequence[tuple[str, ...]]
) -> tuple[Entry, ...]:
    ids = [str(k) for k in range(len(sources))]
    return tuple(
        Entry(number, system, Segment(hypothesis, source, row))
        for system, texts in systems.items()
        for number, hypothesis, source, row in zip(ids, texts, sources, references, strict=True)
    )


def _noted(read: Sequence[Lines]) -> list[Finding]:
    return [finding for lines in read for finding in lines.findings]


def _reference_notes(kept: Present, files: Sequence[str]) -> list[Finding]:
    """Return the notes on empty references: per file for those left out, once for segments without any."""
    notes = []
    for number in sorted({number for _, number in kept.dropped}):
        lines = [row + 1 for row, of in kept.dropped if of == number]
        notes.append(dropped_note(files[number] if files else f"reference {number + 1}", lines))
    if kept.missing:
        notes.append(missing_note(files[0] if files else "references", [row + 1 for row in kept.missing]))
    return notes


def _length(what: str, texts: Sequence[str]) -> int:
    if isinstance(texts, str):
        raise DataError(f"{what} must be a list of texts, got one text: put it in brackets, [{texts!r}]")
    return len(texts)
