"""Scores that stand in other files than the table: whyscore's own records, raw MQM ratings, WMT folders.

What is joined must match by system and segment. Rows without a partner are counted and told; no partner at all is an
error.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from whyscore.data.files import TextFile, read_lines
from whyscore.data.naming import few
from whyscore.data.records import Records
from whyscore.errors import DataError
from whyscore.jobs.metaevaluate_tables import ScoreTable, read_columns
from whyscore.stats.annotators import GOOGLE, Weights, mqm_scores
from whyscore.types import FloatVector

Key = tuple[str, str]
"""System and segment."""

MQM = "mqm"


def with_records(table: ScoreTable, path: str | Path) -> tuple[ScoreTable, list[str]]:
    """Return a table with the scores in a file of records (`whyscore score --segments -f jsonl`), and their names."""
    records = Records(TextFile(path), drop_torn=False)
    if records.header.kind != "scores":
        raise DataError(f"holds records of the kind {records.header.kind!r}, expected 'scores'", file=str(path))
    found: dict[str, dict[Key, float]] = {}
    for number, record in records.numbered():
        key = (str(record.get("system")), str(record.get("id")))
        own = found.setdefault(str(record.get("metric")), {})
        if key in own:
            raise DataError(f"system {key[0]!r} has the segment {key[1]!r} twice", file=str(path), line=number)
        value = record.get("score")
        own[key] = float(value) if isinstance(value, int | float) else math.nan
    for metric, scores in found.items():
        table = _joined(table, metric, scores, str(path))
    return table, list(found)


def with_ratings(table: ScoreTable, path: str | Path, weights: Weights = GOOGLE) -> ScoreTable:
    """Return a table with the column `mqm`, from a file of raw MQM ratings: one row per error and rater."""
    return _joined(table, MQM, read_ratings(path, weights), str(path))


def read_ratings(path: str | Path, weights: Weights = GOOGLE) -> dict[Key, float]:
    """Return the MQM score of every system and segment in a file of raw ratings, higher is better."""
    columns = read_columns(path)
    wanted = {"system": "system", "segment": "seg_id", "rater": "rater", "severity": "severity", "category": "category"}
    names = {role: columns.find(role, None, alias, role) for role, alias in wanted.items()}
    absent = [wanted[role] for role, name in names.items() if name is None]
    if absent:
        raise DataError(f"raw MQM ratings have no column {', '.join(absent)}", file=str(path))
    system, segment, rater, severity, category = (columns.names(str(names[role])) for role in wanted)
    cells = list(zip(system, segment, strict=True))
    return {(str(cell[0]), str(cell[1])): value for cell, value in _scores(cells, rater, severity, category, weights)}


def _scores(
    cells: list[Key],
    raters: tuple[str, ...],
    severities: tuple[str, ...],
    categories: tuple[str, ...],
    weights: Weights,
) -> list[tuple[Key, float]]:
    found = mqm_scores(cells, raters, severities, categories, weights)
    return [(cell, found[cell]) for cell in dict.fromkeys(cells)]


def _joined(table: ScoreTable, name: str, scores: Mapping[Key, float], file: str) -> ScoreTable:
    if table.systems is None:
        raise DataError(f"{table.name} has no column for the system: scores of {file} cannot be matched to its rows")
    keys = list(zip(table.systems, table.segments, strict=True))
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
    return replace(table.having(**{name: values}), notes=(*table.notes, *notes))


def read_wmt(folder: str | Path, pair: str, human: str) -> tuple[ScoreTable, list[str]]:
    """Return the segment scores of a WMT folder (mt-metrics-eval's layout) for a language pair, and the metrics in it.

    Human scores are in `human-scores/PAIR.NAME.seg.score`, metrics in `metric-scores/PAIR/METRIC-REF.seg.score`: lines
    of a system and a score, in the order of the segments, `None` where missing.
    """
    root = Path(folder)
    gold = root / "human-scores" / f"{pair}.{human}.seg.score"
    if not gold.is_file():
        known = sorted(path.name for path in (root / "human-scores").glob("*.seg.score"))
        raise DataError(f"no human scores {gold.name} in {root}; there are: {', '.join(known) or 'none'}")
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
        table = _joined(table, name, _segment_scores(path), str(path))
    return table, names


def _segment_scores(path: Path) -> dict[Key, float]:
    """Return the scores of a file by system and number of the segment, from zero."""
    found: dict[Key, float] = {}
    counts: dict[str, int] = {}
    for number, line in enumerate(read_lines(path).texts, start=1):
        system, _, value = line.replace("\t", " ").partition(" ")
        try:
            score = math.nan if value.strip() == "None" else float(value)
        except ValueError as error:
            raise DataError(f"{line!r} is not a system and a score", file=str(path), line=number) from error
        found[system, str(counts.get(system, 0))] = score
        counts[system] = counts.get(system, 0) + 1
    return found
