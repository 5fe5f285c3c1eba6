"""Rows with named columns become entries: the part that tables, JSON lines and data frames share.

1. Rows come in blocks, column by column (`columns`).
2. An id names what was translated or summarised, so it repeats from system to system (in Eval4NLP 2023 it is the
   document's). The same id twice *within* a system is an error that names both lines, unless the column of documents
   tells them apart, as where segments are counted within documents: then ids are `document:id`.
3. Without an id column, ids are row numbers from zero: counted within each system where all systems have the same
   sources and references in the same order, over all rows otherwise.
4. Without a system column, the file is one system.

References of a segment:

1. An empty reference is left out where the segment has another one, and noted.
2. Where it has no other, the segment keeps no reference; that is noted too, and a metric that needs one refuses it.
3. Python callers give one text or one list of texts per segment. One list per reference *set* is told from that by
   its lengths and refused; where both readings fit (as many sets as segments), it is taken as per segment, and noted.

Speed, for a million rows that were checked already:

1. A frozen dataclass sets each field through a Python call. For a million rows of a table that alone takes longer than
   reading the file. Here the fields are set column by column, by the slots themselves; the values are the same.
2. The garbage collector walks over all of them again and again while they are made, though nothing can be garbage yet.
   It rests meanwhile.
"""

import sys
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from itertools import chain, repeat
from typing import Literal, NamedTuple, TypeVar

from whyscore.data import columns as conversion
from whyscore.data.columns import Block, Choice, Roles, quote_names, resolve
from whyscore.data.files import Limits
from whyscore.data.naming import few
from whyscore.errors import DataError
from whyscore.types import Dataset, Entry, ErrorSpan, Finding, Origin, Segment


class Present(NamedTuple):
    """References without the empty ones."""

    rows: list[tuple[str, ...]]
    dropped: list[tuple[int, int]]
    """Row and number of each empty reference that has another one beside it."""
    missing: list[int]
    """Rows that have empty references only."""


def present(references: Iterable[tuple[str, ...]]) -> Present:
    """Return each segment's references without those that hold nothing but blanks."""
    rows = list(references)
    if all(map(str.strip, chain.from_iterable(rows))):
        return Present(rows, [], [])
    result = Present([], [], [])
    for k, row in enumerate(rows):
        texts = row
        if not all(map(str.strip, row)):
            texts = tuple(text for text in row if text.strip())
            if texts:
                result.dropped.extend((k, i) for i, text in enumerate(row) if not text.strip())
            else:
                result.missing.append(k)
        result.rows.append(texts)
    return result


def note_dropped_references(file: str | None, lines: Sequence[int]) -> Finding:
    """Return the note about empty references that were left out."""
    message = f"empty reference, counted as missing because the segment has another: lines {few(lines)}"
    return Finding("empty-reference", message, file, lines[0])


def missing_note(file: str | None, lines: Sequence[int]) -> Finding:
    """Return the note about segments that are left without any reference."""
    message = f"empty reference and no other: metrics that read references cannot score lines {few(lines)}"
    return Finding("no-reference", message, file, lines[0])


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
        return rows, (Finding("ambiguous-references", message),)
    return rows, ()


T = TypeVar("T", Segment, Entry)


def make_values(kind: type[T], columns: Sequence[Sequence[object]]) -> list[T]:
    """Return one value per row; there is one column per field, in order, and nothing is checked.

    >>> make_values(Segment, [["a cat"], [None], [("a dog",)], [()]])
    [Segment(hypothesis='a cat', source=None, references=('a dog',))]
    """
    values: list[T] = list(map(object.__new__, repeat(kind, len(columns[0]))))
    for described, column in zip(fields(kind), columns, strict=True):
        _run(map(getattr(kind, described.name).__set__, values, column))
    return values


def _run(calls: Iterable[object]) -> None:
    deque(calls, maxlen=0)


Quoting = Literal["auto", "csv", "raw"]


@dataclass(frozen=True, slots=True)
class Options:
    """How a file with named columns is read; see `reading.read`."""

    columns: Choice = field(default_factory=dict)
    human: tuple[str, ...] = ()
    header: bool = True
    quoting: Quoting = "auto"
    languages: tuple[str, str] | None = None
    encoding: str = "utf-8"
    limits: Limits = field(default_factory=Limits)


@dataclass(slots=True)
class _Rows:
    """What was read so far, one item per row in each list; `ids` stays empty without an id column."""

    ids: list[str] = field(default_factory=list)
    systems: list[str] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    human: list[Mapping[str, float]] = field(default_factory=list)
    spans: list[tuple[ErrorSpan, ...] | None] = field(default_factory=list)
    documents: list[str | None] = field(default_factory=list)
    extra: list[Mapping[str, object]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)


class Gathering:
    """Collects blocks of rows and makes a data set of them."""

    def __init__(self, file: str, system: str, options: Options) -> None:
        self._file, self._system, self._options = file, system, options
        self._roles: dict[tuple[str, ...], Roles] = {}
        self._rows = _Rows()
        self._dropped: list[int] = []
        self._missing: list[int] = []
        self._pairs: set[str] = set()

    def add(self, block: Block) -> None:
        """Take the rows of a block, once per column of hypotheses."""
        roles = self._roles_of(block)
        several = len(roles.hypothesis) > 1
        for place in roles.hypothesis:
            self._add(block, roles, place, block.names[place] if several else self._system)

    def _add(self, block: Block, roles: Roles, hypothesis: int, system: str) -> None:
        rows = self._rows
        self._add_ids(block, roles.id)
        segments = self._segments(block, roles, hypothesis)
        rows.segments.extend(segments)
        if roles.system is None:
            rows.systems.extend([system] * len(block))
        else:
            rows.systems.extend(map(sys.intern, conversion.labels(block, roles.system)))
        rows.human.extend(conversion.human(block, roles.human) if roles.human else [_NO_SCORES] * len(block))
        rows.spans.extend(conversion.spans(block, roles.spans, segments))
        rows.documents.extend(conversion.optional_labels(block, roles.document))
        rows.extra.extend(conversion.others(block, roles.extra))
        rows.lines.extend(block.lines)
        if roles.languages:
            self._pairs |= conversion.pairs(block, roles.languages)

    @property
    def size(self) -> int:
        """How many rows were taken."""
        return len(self._rows.lines)

    def finish(self, name: str, findings: Iterable[Finding] = ()) -> Dataset:
        """Return the data set of all rows, with the findings of the reader and our own."""
        self._check_human()
        rows = self._rows
        if rows.ids:
            _with_documents(rows)
            _refuse_twice(rows, self._file)
        several = any(len(roles.hypothesis) > 1 for roles in self._roles.values())
        ids = rows.ids or (_within(rows.systems) if several else _row_numbers(rows.systems, rows.segments))
        columns: list[Sequence[object]] = [
            ids,
            rows.systems,
            rows.segments,
            rows.human,
            rows.spans,
            rows.documents,
            rows.extra,
        ]
        entries = tuple(make_values(Entry, columns))
        notes = [*findings]
        if self._dropped:
            notes.append(note_dropped_references(self._file, self._dropped))
        if self._missing:
            notes.append(missing_note(self._file, self._missing))
        origin = Origin.table(self._file, list(dict.fromkeys(rows.systems)), rows.lines)
        languages = self._options.languages or (pair_of(*self._pairs) if len(self._pairs) == 1 else None)
        used: dict[str, tuple[str, ...]] = {}
        for names, roles in self._roles.items():
            for role, added in _name_columns(names, roles).items():
                used[role] = tuple(dict.fromkeys((*used.get(role, ()), *added)))
        return Dataset(name, entries, languages, tuple(notes), origin, used)

    def _roles_of(self, block: Block) -> Roles:
        roles = self._roles.get(block.names)
        if roles is None:
            line = block.lines[0] if block.header_line is None else block.header_line
            texts = partial(conversion.holds_texts, block)
            request = self._options.columns, self._options.human
            roles = resolve(block.names, *request, self._file, line, holds_texts=texts)
            self._roles[block.names] = roles
        return roles

    def _add_ids(self, block: Block, place: int | None) -> None:
        rows = self._rows
        if bool(rows.lines) and (place is None) == bool(rows.ids):
            message = "some rows have an id and others have none: give all rows one, or none"
            raise DataError(message, file=self._file, line=block.lines[0])
        if place is not None:
            rows.ids.extend(conversion.labels(block, place))

    def _segments(self, block: Block, roles: Roles, hypothesis: int) -> list[Segment]:
        references = present(conversion.references(block, roles.references))
        self._dropped.extend(block.lines[k] for k in dict.fromkeys(row for row, _ in references.dropped))
        self._missing.extend(block.lines[k] for k in references.missing)
        hypotheses = conversion.texts(block, hypothesis)
        sources, context = conversion.optional_texts(block, roles.source), [()] * len(hypotheses)
        return make_values(Segment, [hypotheses, sources, references.rows, context])

    def _check_human(self) -> None:
        """Refuse the name of a human score that no row has."""
        columns = list(dict.fromkeys(name for names in self._roles for name in names))
        for name in self._options.human:
            if name not in columns:
                raise DataError(f"no column {name!r} for --human; there are: {quote_names(columns)}", file=self._file)


def _name_columns(names: Sequence[str], roles: Roles) -> dict[str, tuple[str, ...]]:
    """Return which columns play which role; `ignored` are the others."""
    places_by_role = {field.name: getattr(roles, field.name) for field in fields(roles)}
    places = {role: (place,) if isinstance(place, int) else place or () for role, place in places_by_role.items()}
    places["ignored"] = tuple(k for k in places.pop("extra") if k not in places["languages"])
    return {role: tuple(names[k] for k in columns) for role, columns in places.items() if columns}


_NO_SCORES: Mapping[str, float] = {}


def _with_documents(rows: _Rows) -> None:
    """Where ids count segments within documents, put the document before each: then they name segments."""
    keys = list(zip(rows.systems, rows.ids, strict=True))
    if len(set(keys)) == len(keys) or None in rows.documents:
        return
    longer = [f"{document}:{number}" for document, number in zip(rows.documents, rows.ids, strict=True)]
    if len(set(zip(rows.systems, longer, strict=True))) == len(keys):
        rows.ids = longer


def _refuse_twice(rows: _Rows, file: str) -> None:
    keys = rows.ids if len(set(rows.systems)) == 1 else list(zip(rows.systems, rows.ids, strict=True))
    if len(set(keys)) == len(keys):
        return
    first: dict[object, int] = {}
    for k, key in enumerate(keys):
        if key in first:
            raise DataError(
                f"system {rows.systems[k]!r} has the id {rows.ids[k]!r} twice, first on line {rows.lines[first[key]]}: "
                "give each segment of a system its own id",
                file=file,
                line=rows.lines[k],
            )
        first[key] = k


def _row_numbers(systems: Sequence[str], segments: Sequence[Segment]) -> list[str]:
    """Return row numbers from zero, within each system where the systems are aligned."""
    inputs: dict[str, list[tuple[str | None, tuple[str, ...]]]] = {}
    if len(set(systems)) > 1:
        for system, segment in zip(systems, segments, strict=True):
            inputs.setdefault(system, []).append((segment.source, segment.references))
    first, *others = inputs.values() or [[]]
    distinguishable = any(source is not None or references for source, references in first)
    if not others or not distinguishable or any(other != first for other in others):
        return [str(k) for k in range(len(segments))]
    return _within(systems)


def _within(systems: Sequence[str]) -> list[str]:
    """Return row numbers from zero within each system."""
    counts = dict.fromkeys(systems, -1)
    numbers = []
    for system in systems:
        counts[system] += 1
        numbers.append(str(counts[system]))
    return numbers


def pair_of(name: str) -> tuple[str, str] | None:
    """Return the languages of a pair such as en-ru; None for any other text."""
    source, _, target = name.partition("-")
    return (source, target) if source and target and "-" not in target else None
