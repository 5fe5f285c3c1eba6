"""What people bring: entries with human judgements, error spans, data sets and findings about them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import ClassVar, Literal

import numpy as np
from markupsafe import escape

from whyscore.errors import DataError
from whyscore.types.arrays import FloatMatrix, FloatVector
from whyscore.types.result import Record, Result, Table
from whyscore.types.segments import Place, Segment, Side

Severity = Literal["neutral", "minor", "major", "critical"]
_SHOWN = 5
_LENGTH = 120


def _shorten(value: object) -> object:
    return f"{value[:_LENGTH]}…" if isinstance(value, str) and len(value) > _LENGTH else value


@dataclass(frozen=True, slots=True)
class ErrorSpan:
    """A marked error: half-open code-point offsets into the text of its side."""

    start: int
    end: int
    severity: Severity | None = None
    category: str | None = None
    side: Side = Side.HYPOTHESIS
    reference: int | None = None
    score: float | None = None
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A segment with its identity and what people said of it, kept apart from the value."""

    id: str
    system: str
    segment: Segment
    human: Mapping[str, float] = field(default_factory=dict)
    spans: tuple[ErrorSpan, ...] | None = None
    document: str | None = None
    extra: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something noticed in the input: a warning, or an error that stops the work. Lines count from one."""

    code: str
    """Which kind of finding it is: short and stable, for programs."""
    message: str
    file: str | None = None
    line: int | None = None
    error: bool = False

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line) if part is not None)
        return f"{place}: {self.message}" if place else self.message

    def record(self) -> Record:
        """Return the finding as a plain object."""
        kind = "error" if self.error else "note"
        return {"kind": kind, "code": self.code, "file": self.file, "line": self.line, "message": self.message}


_NUMBER = re.compile(r"(\d{1,18})$")


def _number_in(name: str) -> tuple[str, int] | None:
    """Return what an id begins with, and the number that it ends in.

    >>> _number_in("talk3:12"), _number_in("intro")
    (('talk3:', 12), None)
    """
    match = _NUMBER.search(name)
    return None if match is None else (name[: match.start()], int(match[1]))


def natural_order(name: str) -> tuple[object, ...]:
    """Return a key that sorts ids with the numbers in them as numbers.

    >>> sorted(["talk 10", "talk 9"], key=natural_order)
    ['talk 9', 'talk 10']
    """
    parts = re.split(r"0*([0-9]+)", name)
    return [(len(part), part) if k % 2 else part for k, part in enumerate(parts)], name


def _find_interrupted(dataset: "Dataset", places: Mapping[tuple[str, str], Sequence[int]]) -> list[Finding]:
    """Return a finding where other documents of the same system stand between the segments of a document."""
    rank: dict[str, int] = {}
    within = []
    for entry in dataset.entries:
        within.append(rank.setdefault(entry.system, 0))
        rank[entry.system] += 1
    names = dict.fromkeys(
        document
        for (_, document), members in places.items()
        if within[members[-1]] - within[members[0]] >= len(members)
    )
    if not names:
        return []
    message = (
        f"{len(names)} documents are interrupted by segments of others, the first is {next(iter(names))!r}: their "
        "context is in the order of the data"
    )
    return [Finding("interrupted-document", message)]


@dataclass(frozen=True, slots=True)
class Origin:
    """Which file each text came from, and the line of each entry in it, so that findings can point at them.

    Line-aligned files hold a line per segment; there the source and the references stand in files of their own, once
    for all systems. A table is one file, and every row repeats them.
    """

    hypotheses: Mapping[str, str]
    """The file of each system."""
    lines: Sequence[int]
    """The line of each entry, aligned with the entries."""
    source: str | None = None
    references: tuple[str, ...] = ()

    @classmethod
    def table(cls, file: str, systems: Sequence[str], lines: Sequence[int]) -> "Origin":
        """Return the origin of entries that all stand in one file."""
        return cls(dict.fromkeys(systems, file), lines, file, (file,))

    @property
    def repeats(self) -> bool:
        """Whether source and references are written down again for every system."""
        return self.source in self.hypotheses.values()

    def file(self, place: Place, system: str) -> str | None:
        """Return the file that holds the text at a place."""
        if place.side is Side.HYPOTHESIS:
            return self.hypotheses.get(system)
        if place.side is Side.SOURCE:
            return self.source
        return self.references[min(place.reference or 0, len(self.references) - 1)] if self.references else None


@dataclass(frozen=True, repr=False)
class Dataset(Result):
    """Entries of one or more systems, in the order they were read."""

    kind: ClassVar[str] = "segments"

    name: str
    entries: tuple[Entry, ...]
    languages: tuple[str, str] | None = None
    findings: tuple[Finding, ...] = ()
    origin: Origin | None = field(default=None, compare=False)
    """Where the entries were read; dropped where they no longer fit it."""
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict, compare=False)
    """The columns of a table by the role they play; `ignored` are the others."""

    def __post_init__(self) -> None:
        if self.origin is not None and len(self.origin.lines) != len(self.entries):
            object.__setattr__(self, "origin", None)

    def __len__(self) -> int:
        return len(self.entries)

    def __repr__(self) -> str:
        languages = f", {' to '.join(self.languages)}" if self.languages else ""
        size = f"{len(self.systems)} systems x {len(self.ids)} segments"
        return f"<{type(self).__name__} {self.name!r}: {size}{languages}; {len(self.findings)} findings>"

    def header(self) -> Record:
        languages = list(self.languages) if self.languages else None
        return {"name": self.name, "languages": languages, "segments": len(self.ids), "systems": list(self.systems)}

    def records(self) -> Iterator[Record]:
        for entry in self.entries:
            texts = {"hypothesis": entry.segment.hypothesis, "source": entry.segment.source}
            texts |= {f"reference_{k}": text for k, text in enumerate(entry.segment.references)}
            yield {"id": entry.id, "system": entry.system, **texts, **entry.human}

    def _repr_html_(self) -> str:
        first = (record for record, _ in zip(self.records(), range(_SHOWN), strict=False))
        table = Table.of({key: _shorten(value) for key, value in record.items()} for record in first)
        return f"<div><small>{escape(repr(self))}</small></div>{table.html()}"

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """The segments, aligned with the entries."""
        return tuple(entry.segment for entry in self.entries)

    @cached_property
    def systems(self) -> tuple[str, ...]:
        """The systems in the order of their first entry."""
        return tuple(dict.fromkeys(entry.system for entry in self.entries))

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The segment ids in the order of their first entry."""
        return tuple(dict.fromkeys(entry.id for entry in self.entries))

    def of(self, system: str) -> "Dataset":
        """Return the entries of one system."""
        return self.take([k for k, entry in enumerate(self.entries) if entry.system == system])

    def take(self, numbers: Sequence[int]) -> "Dataset":
        """Return the entries with these numbers, in this order, with their lines."""
        origin = self.origin and replace(self.origin, lines=[self.origin.lines[k] for k in numbers])
        return replace(self, entries=tuple(self.entries[k] for k in numbers), origin=origin)

    @property
    def first_line(self) -> int | None:
        """The line of the first segment, where every next one is on the next line in the files of all systems."""
        if self.origin is None or not self.entries:
            return None
        first, place = self.origin.lines[0], {name: k for k, name in enumerate(self.ids)}
        rows = zip(self.entries, self.origin.lines, strict=True)
        return first if all(line == first + place[entry.id] for entry, line in rows) else None

    def describe_columns(self) -> str:
        """Return which columns of a table are used as what and which are ignored; nothing for other data."""
        used = [f"{role} = {', '.join(map(repr, names))}" for role, names in self.columns.items()]
        return "; ".join(used).replace("ignored = ", "ignored: ")

    def with_context(self, count: int) -> "Dataset":
        """Return the data with up to `count` previous segments of the same document and system beside each segment.

        Every entry must name its document, and all systems must have its segments in one order: that of their numbers
        where ids end in one.
        """
        if count <= 0:
            return self
        places: dict[tuple[str, str], list[int]] = {}
        for k, entry in enumerate(self.entries):
            if entry.document is None:
                raise DataError(
                    f"{self.name}: segment {entry.id!r} of system {entry.system!r} names no document, and context is "
                    "taken from it. Name the column with --columns document=NAME, or leave out --context"
                )
            places.setdefault((entry.system, entry.document), []).append(k)
        self._check_order(places)
        entries = list(self.entries)
        for members in places.values():
            segments = [replace(self.entries[k].segment, context=()) for k in members]
            for place, k in enumerate(members):
                before = tuple(segments[max(0, place - count) : place])
                entries[k] = replace(entries[k], segment=replace(segments[place], context=before))
        return replace(self, entries=tuple(entries), findings=(*self.findings, *_find_interrupted(self, places)))

    def _check_order(self, places: Mapping[tuple[str, str], Sequence[int]]) -> None:
        first: dict[str, tuple[str, list[str]]] = {}
        for (system, document), members in places.items():
            ids = [self.entries[k].id for k in members]
            numbers = [_number_in(name) for name in ids]
            for before, after in pairwise(zip(numbers, ids, strict=True)):
                if before[0] and after[0] and before[0][0] == after[0][0] and before[0][1] > after[0][1]:
                    raise DataError(
                        f"{self.name}: document {document!r} of system {system!r} is out of order: segment "
                        f"{after[1]!r} comes after {before[1]!r}. Sort the segments, or leave out --context"
                    )
            other_system, other_ids = first.setdefault(document, (system, ids))
            common = set(ids) & set(other_ids)
            if [name for name in ids if name in common] != [name for name in other_ids if name in common]:
                raise DataError(
                    f"{self.name}: systems {other_system!r} and {system!r} have the segments of document "
                    f"{document!r} in different orders. Sort the segments, or leave out --context"
                )

    def human(self, name: str) -> FloatVector:
        """Return the human score of that name for every entry, NaN where there is none."""
        names = {score for entry in self.entries for score in entry.human}
        if name not in names:
            raise DataError(f"{self.name} has no human score {name!r}; it has: {', '.join(sorted(names)) or 'none'}")
        return np.array([entry.human.get(name, np.nan) for entry in self.entries], dtype=np.float64)

    def matrix(self, values: Sequence[float] | FloatVector) -> FloatMatrix:
        """Return one value per entry as systems x segments, NaN where a system lacks a segment."""
        rows = {system: i for i, system in enumerate(self.systems)}
        columns = {name: j for j, name in enumerate(self.ids)}
        result = np.full((len(rows), len(columns)), np.nan)
        for entry, value in zip(self.entries, values, strict=True):
            result[rows[entry.system], columns[entry.id]] = value
        return result
