"""Tables of metric and human scores, long form: one row per system and segment.

1. Columns come from a CSV, TSV or JSONL file, a data frame, a mapping of columns, or the human scores of a data set.
2. Numbers may be missing (blank, `NaN`, `None`, null). Where a column has its raw ratings beside it (`relevance` and
   `relevance_raw` with `3|4|4`), those are taken: rounded means break ties.
3. Rows of several raters (a rater column) are averaged by exact summation.
4. Without a system column every row is a system of its own.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from whyscore.data.columns import ALIASES, Block, listed
from whyscore.data.files import TextFile
from whyscore.data.formats.jsonl import objects
from whyscore.data.formats.tables import read_blocks
from whyscore.data.gathering import Gathering, Options
from whyscore.data.naming import plain_name
from whyscore.errors import DataError, MissingExtra
from whyscore.stats.matrices import mean_rating
from whyscore.types import Dataset, Finding, FloatVector

_MISSING = ("", "nan", "none", "null", "na", "n/a", "-")
_RAW, _BETWEEN = "_raw", "|"
_DELIMITERS = {".tsv": "\t", ".csv": ","}


@dataclass(frozen=True, slots=True)
class Roles:
    """The columns that name things; None is found by the usual names, an empty name switches a role off."""

    system: str | None = None
    segment: str | None = None
    group: str | None = None
    rater: str | None = None


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Rows with names and numbers; `systems` is None where every row is a system of its own."""

    name: str
    systems: tuple[str, ...] | None
    segments: tuple[str, ...]
    scores: Mapping[str, FloatVector]
    lines: tuple[int, ...]
    groups: tuple[str, ...] | None = None
    texts: Dataset | None = None
    """The same rows with their texts, where there are any."""
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.segments)

    def having(self, **scores: FloatVector) -> "ScoreTable":
        """Return the table with more columns."""
        return replace(self, scores={**self.scores, **scores})


@dataclass(slots=True)
class Columns:
    """Raw columns by name, with the line of each row."""

    name: str
    values: dict[str, Sequence[object]]
    lines: list[int]
    blocks: list[Block] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def numbers(self, name: str) -> FloatVector:
        """Return a column as numbers, NaN where missing; raw ratings beside it are preferred."""
        raw = f"{name}{_RAW}"
        if raw in self.values:
            self.notes.append(f"{name} was taken from the ratings in {raw}")
            return np.array([self._rated(raw, k) for k in range(len(self.lines))])
        if name not in self.values:
            raise DataError(f"no column {name!r}; there are: {listed(self.values)}", file=self.name)
        return np.array([self._number(name, k, value) for k, value in enumerate(self.values[name])])

    def names(self, name: str) -> tuple[str, ...]:
        """Return a column of names, none of them empty."""
        found = tuple("" if value is None else str(value) for value in self.values[name])
        if "" in found:
            raise DataError(f"{name!r} is empty, expected a name", file=self.name, line=self.lines[found.index("")])
        return found

    def find(self, role: str, given: str | None, *aliases: str) -> str | None:
        """Return the column for a role: as named, or by one of the usual names; None where there is none."""
        if given is not None:
            if given and given not in self.values:
                raise DataError(f"no column {given!r} for --{role}; there are: {listed(self.values)}", file=self.name)
            return given or None
        return next((name for name in self.values if name.lower() in aliases), None)

    def _rated(self, name: str, row: int) -> float:
        value = self.values[name][row]
        parts = value if isinstance(value, list) else str("" if value is None else value).split(_BETWEEN)
        known = [self._number(name, row, part) for part in parts]
        return mean_rating([one for one in known if not math.isnan(one)])

    def _number(self, name: str, row: int, value: object) -> float:
        if value is None or (isinstance(value, str) and value.strip().lower() in _MISSING):
            return math.nan
        try:
            number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else math.inf
        except ValueError:
            number = math.inf
        if math.isinf(number):
            raise DataError(f"{name!r} is {value!r}, expected a number", file=self.name, line=self.lines[row])
        return number


def read_columns(path: str | Path, *, encoding: str = "utf-8") -> Columns:
    """Return the columns of a `.csv`, `.tsv` or `.jsonl` file."""
    suffix = plain_name(path).suffix.lower()
    file = TextFile(path, encoding=encoding)
    if suffix in (".jsonl", ".ndjson"):
        return _from_objects(file)
    if suffix not in _DELIMITERS:
        raise DataError(f"a table of scores ends in .csv, .tsv or .jsonl, not {suffix!r}", file=str(path))
    notes: list[Finding] = []
    blocks = list(read_blocks(file, _DELIMITERS[suffix], Options(encoding=encoding), notes))
    names = blocks[0].names
    columns: dict[str, Sequence[object]] = {
        name: [value for block in blocks for value in block.columns[k]] for k, name in enumerate(names)
    }
    lines = [number for block in blocks for number in block.lines]
    return Columns(file.name, columns, lines, blocks, [finding.message for finding in notes])


def _from_objects(file: TextFile) -> Columns:
    found = list(objects(file, []))
    file.refuse_empty("one object a line")
    names = tuple(dict.fromkeys(key for item in found for key in item.value))
    columns = {name: [item.value.get(name) for item in found] for name in names}
    lines = [item.line for item in found]
    return Columns(
        file.name, dict(columns), lines, [Block(file.name, names, list(columns.values()), lines, cells=False)]
    )


def from_frame(frame: object, name: str = "frame") -> Columns:
    """Return the columns of a data frame of any library that narwhals knows, or of a mapping of lists."""
    if not isinstance(frame, Mapping):
        try:
            import narwhals  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise MissingExtra.of("reading data frames", "frames") from error
        try:
            data = narwhals.from_native(frame)  # type: ignore[call-overload]
        except TypeError as error:
            raise DataError(
                f"expected a file, a data frame or a mapping of columns, got {type(frame).__name__}"
            ) from error
        frame = (data.collect() if isinstance(data, narwhals.LazyFrame) else data).to_dict(as_series=False)
    columns: dict[str, Sequence[object]] = {str(key): list(values) for key, values in frame.items()}
    lengths = {len(values) for values in columns.values()}
    if len(lengths) != 1 or not max(lengths):
        raise DataError(f"{name} has columns of {', '.join(map(str, sorted(lengths))) or 'no'} rows: one length, not 0")
    rows = range(1, lengths.pop() + 1)
    return Columns(name, columns, list(rows), [Block(name, tuple(columns), list(columns.values()), rows, cells=False)])


def score_table(columns: Columns, scores: Sequence[str], roles: Roles | None = None) -> ScoreTable:
    """Return the named score columns of a table, row by row."""
    roles = roles or Roles()
    system = columns.find("system", roles.system, *ALIASES["system"])
    segment = columns.find("segment", roles.segment, *ALIASES["id"])
    if segment is None and roles.segment is None:
        segment = columns.find("segment", None, *ALIASES["document"])
    group, rater = columns.find("group", roles.group), columns.find("rater", roles.rater)
    if system is not None and segment is None:
        raise DataError(f"no column for the segment: name it with --segment; there are: {listed(columns.values)}")
    rows = tuple(str(k) for k in range(len(columns.lines)))
    table = ScoreTable(
        name=columns.name,
        systems=None if system is None else columns.names(system),
        segments=rows if segment is None else columns.names(segment),
        scores={name: columns.numbers(name) for name in dict.fromkeys(scores)},
        lines=tuple(columns.lines),
        groups=None if group is None else columns.names(group),
    )
    table = replace(table, notes=tuple(columns.notes))
    return table if rater is None else _over_raters(table)


def _over_raters(table: ScoreTable) -> ScoreTable:
    """Return one row per system and segment: the mean of its raters."""
    systems = table.systems or ("",) * len(table)
    groups = table.groups or ("",) * len(table)
    places: dict[tuple[str, str, str], list[int]] = {}
    for k, key in enumerate(zip(groups, systems, table.segments, strict=True)):
        places.setdefault(key, []).append(k)

    def mean(values: FloatVector, rows: list[int]) -> float:
        return mean_rating([value for value in values[rows].tolist() if not math.isnan(value)])

    first = [rows[0] for rows in places.values()]
    return replace(
        table,
        systems=None if table.systems is None else tuple(table.systems[k] for k in first),
        segments=tuple(table.segments[k] for k in first),
        groups=None if table.groups is None else tuple(table.groups[k] for k in first),
        scores={
            name: np.array([mean(values, rows) for rows in places.values()]) for name, values in table.scores.items()
        },
        lines=tuple(table.lines[k] for k in first),
        notes=(*table.notes, f"{len(table)} ratings of {len(first)} segments were averaged"),
    )


def texts_of(columns: Columns, roles: Roles | None = None) -> Dataset | None:
    """Return the texts of a table as a data set aligned with its rows; None where no column holds hypotheses."""
    roles = roles or Roles()
    if not any(name.lower() in ALIASES["hypothesis"] for name in columns.values):
        return None
    system = columns.find("system", roles.system, *ALIASES["system"])
    # Ids are of no use here, and rows of several raters would clash.
    chosen = {"id": "", "human": "", "spans": "", "system": system or "", "document": ""}
    gathering = Gathering(columns.name, "hypothesis", Options(columns=chosen))
    for block in columns.blocks:
        gathering.add(block)
    return gathering.finish(columns.name)
