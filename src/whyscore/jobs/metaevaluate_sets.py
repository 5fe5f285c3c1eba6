"""From rows to matrices: systems x segments for each group of a table."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from whyscore.jobs.metaevaluate_tables import ScoreTable
from whyscore.stats.matrices import from_rows, is_human
from whyscore.types import FloatMatrix, FloatVector


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
    kept = [k for k, name in enumerate(table.systems) if name not in people]
    texts = table.texts
    chosen = replace(
        table,
        systems=tuple(table.systems[k] for k in kept),
        segments=tuple(table.segments[k] for k in kept),
        groups=None if table.groups is None else tuple(table.groups[k] for k in kept),
        scores={name: values[kept] for name, values in table.scores.items()},
        lines=tuple(table.lines[k] for k in kept),
        texts=None if texts is None else replace(texts, entries=tuple(texts.entries[k] for k in kept)),
    )
    return chosen, [f"{len(people)} human references among the systems were left out: {', '.join(people)}"]


def matrix_sets(
    table: ScoreTable, human: str, metrics: Sequence[str], extra: Mapping[str, FloatVector]
) -> list[MatrixSet]:
    """Return the matrices of each group."""
    sets = []
    for group in dict.fromkeys(table.groups) if table.groups is not None else (None,):
        rows = [k for k in range(len(table)) if table.groups is None or table.groups[k] == group]
        systems = [table.systems[k] if table.systems is not None else str(k) for k in rows]
        segments = [table.segments[k] if table.systems is not None else "" for k in rows]
        lines = [table.lines[k] for k in rows]

        def matrix(
            values: FloatVector,
            rows: list[int] = rows, systems: list[str] = systems, segments: list[str] = segments,
            lines: list[int] = lines,
        ) -> FloatMatrix:  # fmt: skip
            return from_rows(systems, segments, values[rows].tolist(), lines=lines, file=table.name).values

        sets.append(
            MatrixSet(
                group,
                matrix(table.scores[human]),
                {name: matrix(table.scores[name]) for name in metrics},
                {name: matrix(values) for name, values in extra.items()},
            )
        )
    return sets
