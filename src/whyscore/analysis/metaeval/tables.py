"""Tables of metric and human scores, long form: one row per system and segment.

1. Columns come from a CSV, TSV or JSONL file, a data frame, a mapping of columns, or the human scores of a data set. A
   file `*.scores`, as Eval4NLP 2023 has gold and submissions, is one column `score`: a number a line.
2. Numbers may be missing (blank, `NaN`, `None`, null). Where a column has its raw ratings beside it (`relevance` and
   `relevance_raw` with `3|4|4`), those are taken: rounded means break ties.
3. Rows of several raters (a rater column) are averaged by exact summation.
4. Without a system column every row stands for itself; without a column for the segment, the rows of each system are
   counted.
5. Scores from other files (whyscore's own records, raw MQM ratings, WMT folders) are joined by system and segment, or
   by segment alone where the table has no systems and the file one. Rows without a partner are counted in a note; no
   partner at all is an error.
6. Rows become matrices, systems x segments, for each group of a table.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from whyscore.data.codec import Records
from whyscore.data.columns import ALIASES, Block, Choice, quote_names
from whyscore.data.files import TextFile, read_lines
from whyscore.data.formats.jsonl import objects
from whyscore.data.formats.tables import read_blocks
from whyscore.data.gathering import Gathering, Options
from whyscore.data.naming import few, plain_name
from whyscore.errors import DataError, UserError
from whyscore.stats.annotators import GOOGLE, Weights, mqm_scores
from whyscore.stats.matrices import from_rows, is_human, mean_rating
from whyscore.types import Dataset, Finding, FloatMatrix, FloatVector

_MISSING = ("", "nan", "none", "null", "na", "n/a", "-")
_RAW, _BETWEEN = "_raw", "|"
SCORE, LISTED_SCORES = "score", ".scores"
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
    """Rows with names and numbers; `systems` is None where no column names them."""

    name: str
    systems: tuple[str, ...] | None
    segments: tuple[str, ...]
    scores: Mapping[str, FloatVector]
    lines: tuple[int, ...]
    groups: tuple[str, ...] | None = None
    texts: Dataset | None = None
    """The same rows with their texts, where there are any."""
    notes: tuple[str, ...] = ()
    rows_are_systems: bool = False
    """Whether rows without a column for the system are systems, not segments."""

    def __len__(self) -> int:
        return len(self.segments)

    def select(self, rows: Sequence[int]) -> "ScoreTable":
        """Return some of the rows."""
        texts = self.texts
        return replace(
            self,
            systems=None if self.systems is None else tuple(self.systems[k] for k in rows),
            segments=tuple(self.segments[k] for k in rows),
            groups=None if self.groups is None else tuple(self.groups[k] for k in rows),
            scores={name: values[rows] for name, values in self.scores.items()},
            lines=tuple(self.lines[k] for k in rows),
            texts=None if texts is None else replace(texts, entries=tuple(texts.entries[k] for k in rows)),
        )

    def with_scores(self, **scores: FloatVector) -> "ScoreTable":
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
            return np.array([self._rate(raw, k) for k in range(len(self.lines))])
        if name not in self.values:
            raise DataError(f"no column {name!r}; there are: {quote_names(self.values)}", file=self.name)
        return np.array([self._number(name, k, value) for k, value in enumerate(self.values[name])])

    def names(self, name: str) -> tuple[str, ...]:
        """Return a column of names, none of them empty."""
        names = tuple("" if value is None else str(value) for value in self.values[name])
        if "" in names:
            raise DataError(f"{name!r} is empty, expected a name", file=self.name, line=self.lines[names.index("")])
        return names

    def find(self, role: str, requested: str | None, *aliases: str) -> str | None:
        """Return the column for a role: as named, or by one of the usual names; None where there is none."""
        if requested is not None:
            if requested and requested not in self.values:
                raise DataError(
                    f"no column {requested!r} for --{role}; there are: {quote_names(self.values)}", file=self.name
                )
            return requested or None
        return next((name for name in self.values if name.lower() in aliases), None)

    def _rate(self, name: str, row: int) -> float:
        value = self.values[name][row]
        parts = value if isinstance(value, list) else str("" if value is None else value).split(_BETWEEN)
        ratings = [self._number(name, row, part) for part in parts]
        return mean_rating([rating for rating in ratings if not math.isnan(rating)])

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
    """Return the columns of a `.csv`, `.tsv`, `.jsonl` or `.scores` file."""
    suffix = plain_name(path).suffix.lower()
    file = TextFile(path, encoding=encoding)
    if suffix == LISTED_SCORES:
        values = [line.strip() for line in file.lines()]
        file.refuse_empty("one number per line")
        return Columns(file.name, {SCORE: values}, list(range(1, len(values) + 1)))
    if suffix in (".jsonl", ".ndjson"):
        return _from_objects(file)
    if suffix not in _DELIMITERS:
        raise DataError(f"a table of scores ends in .csv, .tsv, .jsonl or .scores, not {suffix!r}", file=str(path))
    notes: list[Finding] = []
    blocks = list(read_blocks(file, _DELIMITERS[suffix], Options(encoding=encoding), notes))
    names = blocks[0].names
    columns: dict[str, Sequence[object]] = {
        name: [value for block in blocks for value in block.columns[k]] for k, name in enumerate(names)
    }
    lines = [number for block in blocks for number in block.lines]
    return Columns(file.name, columns, lines, blocks, [finding.message for finding in notes])


def _from_objects(file: TextFile) -> Columns:
    items = list(objects(file, []))
    file.refuse_empty("one object per line")
    names = tuple(dict.fromkeys(key for item in items for key in item.value))
    columns = {name: [item.value.get(name) for item in items] for name in names}
    lines = [item.line for item in items]
    return Columns(
        file.name, dict(columns), lines, [Block(file.name, names, list(columns.values()), lines, cells=False)]
    )


def score_table(columns: Columns, scores: Sequence[str], roles: Roles | None = None) -> ScoreTable:
    """Return the named score columns of a table, row by row."""
    roles = roles or Roles()
    system = columns.find("system", roles.system, *ALIASES["system"])
    segment = columns.find("segment", roles.segment, *ALIASES["id"])
    if segment is None and roles.segment is None:
        segment = columns.find("segment", None, *ALIASES["document"])
    group, rater = columns.find("group", roles.group), columns.find("rater", roles.rater)
    rows = tuple(str(k) for k in range(len(columns.lines)))
    if system is not None and segment is None:
        rows = _count(columns.names(system), columns, rated=rater is not None)
    table = ScoreTable(
        name=columns.name,
        systems=None if system is None else columns.names(system),
        segments=rows if segment is None else columns.names(segment),
        scores={name: columns.numbers(name) for name in dict.fromkeys(scores)},
        lines=tuple(columns.lines),
        groups=None if group is None else columns.names(group),
    )
    table = replace(table, notes=tuple(columns.notes), rows_are_systems=roles.system == "")
    return table if rater is None else _over_raters(table)


def _count(systems: Sequence[str], columns: Columns, *, rated: bool) -> tuple[str, ...]:
    """Return the number of each row among those of its system, where all systems have as many."""
    seen: Counter[str] = Counter()
    numbers = []
    for system in systems:
        numbers.append(str(seen[system]))
        seen[system] += 1
    if rated or len(set(seen.values())) > 1:
        why = "several raters" if rated else "systems with different numbers of rows"
        raise DataError(
            f"no column for the segment, and {why}: name it with --segment; there are: {quote_names(columns.values)}"
        )
    columns.notes.append("no column names the segments: the rows of each system were counted")
    return tuple(numbers)


def dataset_table(dataset: Dataset, human: str) -> ScoreTable:
    """Return a human score of a data set, row by row, with the texts."""
    return ScoreTable(
        name=dataset.name,
        systems=tuple(entry.system for entry in dataset.entries),
        segments=tuple(entry.id for entry in dataset.entries),
        scores={human: dataset.human(human)},
        lines=tuple(range(1, len(dataset) + 1)),
        texts=dataset,
    )


def _over_raters(table: ScoreTable) -> ScoreTable:
    """Return one row per system and segment: the mean of its raters."""
    systems = table.systems or ("",) * len(table)
    groups = table.groups or ("",) * len(table)
    places: dict[tuple[str, str, str], list[int]] = {}
    for k, key in enumerate(zip(groups, systems, table.segments, strict=True)):
        places.setdefault(key, []).append(k)

    def mean(values: FloatVector, rows: list[int]) -> float:
        return mean_rating([value for value in values[rows].tolist() if not math.isnan(value)])

    means = {name: np.array([mean(values, rows) for rows in places.values()]) for name, values in table.scores.items()}
    note = f"{len(table)} ratings of {len(places)} segments were averaged"
    first = table.select([rows[0] for rows in places.values()])
    return replace(first, scores=means, notes=(*table.notes, note))


def texts_of(columns: Columns, roles: Roles | None = None, named: Choice | None = None) -> Dataset | None:
    """Return the texts of a table as a data set aligned with its rows; None where no column holds hypotheses.

    Args:
        columns: The table.
        roles: Which column holds the system.
        named: Columns of texts by their role, where their names do not say it.
    """
    roles, columns_by_role = roles or Roles(), dict(named or {})
    hypotheses = columns_by_role.get("hypothesis", "")
    if not isinstance(hypotheses, str) and len(hypotheses) > 1:
        raise UserError(
            f"a row of scores must belong to one hypothesis, got the columns {' and '.join(hypotheses)}: name one"
        )
    if "hypothesis" not in columns_by_role and not any(
        name.lower() in ALIASES["hypothesis"] for name in columns.values
    ):
        return None
    system = columns.find("system", roles.system, *ALIASES["system"])
    # Ids are of no use here, and rows of several raters would clash.
    mapping = {**columns_by_role, "id": "", "human": "", "spans": "", "system": system or ""}
    gathering = Gathering(columns.name, "hypothesis", Options(columns=mapping))
    for block in columns.blocks:
        gathering.add(block)
    return gathering.finish(columns.name)


Key = tuple[str, str]
"""System and segment."""

MQM = "mqm"


def with_records(table: ScoreTable, path: str | Path) -> tuple[ScoreTable, list[str]]:
    """Return a table with the scores in a file of records (`whyscore score --segments -f jsonl`), and their names.

    A file `*.scores` has a number for each row of the table, and is named as the file.
    """
    if plain_name(path).suffix.lower() == LISTED_SCORES:
        columns = read_columns(path)
        if len(columns.lines) != len(table):
            raise DataError(f"has {len(columns.lines)} lines for {len(table)} rows of {table.name}", file=str(path))
        name = Path(path).name.removesuffix(LISTED_SCORES).removesuffix(".seg")
        return table.with_scores(**{name: columns.numbers(SCORE)}), [name]
    records = Records(TextFile(path), drop_torn=False)
    if records.header.kind != "scores":
        raise DataError(f"holds records of the kind {records.header.kind!r}, expected 'scores'", file=str(path))
    by_metric: dict[str, dict[Key, float]] = {}
    for number, record in records.numbered():
        key = (str(record.get("system")), str(record.get("id")))
        metric_scores = by_metric.setdefault(str(record.get("metric")), {})
        if key in metric_scores:
            raise DataError(f"system {key[0]!r} has the segment {key[1]!r} twice", file=str(path), line=number)
        value = record.get("score")
        metric_scores[key] = float(value) if isinstance(value, int | float) else math.nan
    for metric, scores in by_metric.items():
        table = _join(table, metric, scores, str(path))
    return table, list(by_metric)


def with_ratings(table: ScoreTable, path: str | Path, weights: Weights = GOOGLE) -> ScoreTable:
    """Return a table with the column `mqm`, from a file of raw MQM ratings: one row per error and rater."""
    return _join(table, MQM, read_ratings(path, weights), str(path))


def read_ratings(path: str | Path, weights: Weights = GOOGLE) -> dict[Key, float]:
    """Return the MQM score of every system and segment in a file of raw ratings, higher is better."""
    columns = read_columns(path)
    aliases = {
        "system": "system",
        "segment": "seg_id",
        "rater": "rater",
        "severity": "severity",
        "category": "category",
    }
    names = {role: columns.find(role, None, alias, role) for role, alias in aliases.items()}
    absent = [aliases[role] for role, name in names.items() if name is None]
    if absent:
        raise DataError(f"raw MQM ratings have no column {', '.join(absent)}", file=str(path))
    system, segment, rater, severity, category = (columns.names(str(names[role])) for role in aliases)
    cells = list(zip(system, segment, strict=True))
    scores = mqm_scores(cells, rater, severity, category, weights)
    return {cell: scores[cell] for cell in dict.fromkeys(cells)}


def _join(table: ScoreTable, name: str, scores: Mapping[Key, float], file: str) -> ScoreTable:
    """Return a table with one more column, whose values belong to a system and a segment each."""
    keys = _keys(table, scores, file)
    unmatched = [key for key in keys if key not in scores]
    if len(unmatched) == len(keys):
        raise DataError(
            f"no system and segment of {table.name} is in {file}: here the first is {keys[0]!r}, there "
            f"{next(iter(scores), None)!r}"
        )
    notes = []
    if unmatched:
        shown = few([f"{system} {segment}" for system, segment in unmatched])
        notes.append(f"{len(unmatched)} of {len(keys)} rows have no {name} in {file}: {shown}")
    unused = len(set(scores) - set(keys))
    if unused:
        notes.append(f"{unused} scores of {name} in {file} belong to no row")
    values: FloatVector = np.array([scores.get(key, math.nan) for key in keys])
    return replace(table.with_scores(**{name: values}), notes=(*table.notes, *notes))


def _keys(table: ScoreTable, scores: Mapping[Key, float], file: str) -> list[Key]:
    """Return the system and segment of each row as a file of scores names them.

    1. Without systems in the table, the file may hold one: whatever its name, its segments are the rows.
    2. Rows whose segments are unknown there, such as documents, are counted, as the commands that write scores do.
    """
    systems = table.systems
    if systems is None:
        named = list(dict.fromkeys(system for system, _ in scores))
        if len(named) != 1:
            raise DataError(
                f"{table.name} has no column for the system, and {file} has scores of {len(named)} systems: "
                f"{few(named)}. Name the column with --system"
            )
        systems = tuple(named) * len(table)
    keys = list(zip(systems, table.segments, strict=True))
    if table.texts is None or any(key in scores for key in keys):
        return keys
    return list(zip(systems, (entry.id for entry in table.texts.entries), strict=True))


def read_wmt(folder: str | Path, pair: str, human: str) -> tuple[ScoreTable, list[str]]:
    """Return the segment scores of a WMT folder (mt-metrics-eval's layout) for a language pair, and the metrics in it.

    Human scores are in `human-scores/PAIR.NAME.seg.score`, metrics in `metric-scores/PAIR/METRIC-REF.seg.score`: lines
    of a system and a score, in the order of the segments, `None` where missing.
    """
    root = Path(folder)
    gold = root / "human-scores" / f"{pair}.{human}.seg.score"
    if not gold.is_file():
        available = sorted(path.name for path in (root / "human-scores").glob("*.seg.score"))
        raise DataError(f"no human scores {gold.name} in {root}; there are: {', '.join(available) or 'none'}")
    scores = _segment_scores(gold)
    keys = list(scores)
    table = ScoreTable(
        name=str(root),
        systems=tuple(system for system, _ in keys),
        segments=tuple(segment for _, segment in keys),
        scores={human: np.array(list(scores.values()))},
        lines=tuple(range(1, len(keys) + 1)),
    )
    names = []
    for path in sorted((root / "metric-scores" / pair).glob("*.seg.score")):
        name = path.name.removesuffix(".seg.score")
        names.append(name)
        table = _join(table, name, _segment_scores(path), str(path))
    return table, names


def _segment_scores(path: Path) -> dict[Key, float]:
    """Return the scores of a file by system and number of the segment, from zero."""
    scores: dict[Key, float] = {}
    counts: dict[str, int] = {}
    for number, line in enumerate(read_lines(path).texts, start=1):
        system, _, value = line.replace("\t", " ").partition(" ")
        try:
            score = math.nan if value.strip() == "None" else float(value)
        except ValueError as error:
            raise DataError(f"{line!r} is not a system and a score", file=str(path), line=number) from error
        scores[system, str(counts.get(system, 0))] = score
        counts[system] = counts.get(system, 0) + 1
    return scores


class MatrixSet(NamedTuple):
    """The matrices of one group."""

    group: str | None
    human: FloatMatrix
    metrics: dict[str, FloatMatrix]
    sentinels: dict[str, FloatMatrix]


def without_humans(table: ScoreTable, *, keep: bool) -> tuple[ScoreTable, list[str]]:
    """Return the table without human references among its systems unless they are kept, and what was left out."""
    people = sorted({name for name in table.systems or () if is_human(name)})
    if not people or keep or table.systems is None:
        return table, []
    rows = [k for k, name in enumerate(table.systems) if name not in people]
    note = f"{len(people)} human references among the systems were left out: {', '.join(people)}"
    return table.select(rows), [note]


def matrix_sets(
    table: ScoreTable, human: str, metrics: Sequence[str], extra: Mapping[str, FloatVector]
) -> list[MatrixSet]:
    """Return the matrices of each group."""

    def matrix(part: ScoreTable, values: FloatVector) -> FloatMatrix:
        alone = part.systems is None
        systems = part.systems or tuple(map(str, range(len(part))))
        segments = ("",) * len(part) if alone else part.segments
        return from_rows(systems, segments, values.tolist(), lines=part.lines, file=part.name).values

    sets = []
    for group in dict.fromkeys(table.groups) if table.groups is not None else (None,):
        rows = [k for k in range(len(table)) if table.groups is None or table.groups[k] == group]
        part = table.select(rows)
        columns = {name: matrix(part, part.scores[name]) for name in (human, *metrics)}
        controls = {name: matrix(part, values[rows]) for name, values in extra.items()}
        sets.append(MatrixSet(group, columns[human], {name: columns[name] for name in metrics}, controls))
    return sets
