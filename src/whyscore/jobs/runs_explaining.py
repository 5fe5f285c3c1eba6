"""The explanations of a run: written block by block, and gone on with after an interruption.

1. The work is a list of (metric, entry) pairs in a fixed order.
2. Each block of entries is explained and appended. Random numbers depend on the text alone, so blocks change nothing.
3. After an interruption, the lines of the last entry may be incomplete: they are dropped, and the work goes on there.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from whyscore.io.recording import Explained, explanation_lines
from whyscore.io.records import header_of
from whyscore.jobs import runs
from whyscore.jobs.common import Resources, asked_name
from whyscore.jobs.explain import Unexplained, explain
from whyscore.jobs.probing import make_plan
from whyscore.jobs.runs_choices import Asked, Settings, chosen_segments
from whyscore.types import Dataset, Entry, FloatVector

BLOCK = 64
"""Entries that are explained and written at a time."""


Key = tuple[str, str, str]
"""Metric, system and id."""


class Piece(NamedTuple):
    """One entry to be explained for one metric."""

    asked: Asked
    entry: Entry


def write_explanations(
    folder: runs.Folder,
    dataset: Dataset,
    asked: Sequence[Asked],
    *,
    scores: Mapping[str, FloatVector],
    settings: Settings,
    resources: Resources,
    explained: Mapping[Key, Sequence[str]] = MappingProxyType({}),
) -> list[str]:
    """Write the explanations of all metrics; return what went wrong on single segments.

    `explained` are lines of entries that were explained elsewhere, and are taken as they are.
    """
    pieces = [piece for one in asked if one.explainer for piece in _pieces(dataset, one, scores[one.name], settings)]
    signatures = {one.name: explained_signature(one, settings) for one in asked if one.explainer}
    head = header_of("explanations", dataset, signatures, folder.created).line()
    kept, done = complete(folder.partial_lines(runs.EXPLANATIONS), pieces)
    problems: list[str] = []
    with folder.growing_file(runs.EXPLANATIONS, kept or [head]) as file:
        for one, same in groupby(pieces[done:], key=lambda piece: piece.asked):
            entries = [piece.entry for piece in same]
            for start in range(0, len(entries), BLOCK):
                block = entries[start : start + BLOCK]
                new = [entry for entry in block if (one.name, entry.system, entry.id) not in explained]
                made = _by_key(_block(one, new, settings, resources, problems) if new else [])
                for entry in block:
                    key = (one.name, entry.system, entry.id)
                    file.writelines(explained[key] if key in explained else made.get(key, ()))
                file.flush()
    return problems


def complete(lines: Sequence[str], pieces: Sequence[Piece]) -> tuple[list[str], int]:
    """Return the lines of all entries but the last one written, and how many pieces of work they stand for."""
    if len(lines) < 2:  # noqa: PLR2004 - the header alone says nothing
        return [], 0
    keys = [_key(line) for line in lines[1:]]
    last = keys[-1]
    kept = [line for line, key in zip(lines[1:], keys, strict=True) if key != last]
    place = {(piece.asked.name, piece.entry.system, piece.entry.id): k for k, piece in enumerate(pieces)}
    return [lines[0], *kept], place[last]


def explained_signature(asked: Asked, settings: Settings) -> str:
    """Return the signature of a metric's explanations."""
    return str(make_plan(asked.metric, asked.explainer or "", unit=settings.unit, seed=settings.seed).signature())


def _pieces(dataset: Dataset, asked: Asked, values: FloatVector, settings: Settings) -> Iterator[Piece]:
    """Yield the entries to explain, segment by segment, so that systems can be seen side by side."""
    better = asked.metric.higher_is_better
    columns = chosen_segments(dataset.matrix(values), asked.budget, higher_is_better=better, seed=settings.seed)
    by_id: dict[str, list[Entry]] = {}
    for entry in dataset.entries:
        by_id.setdefault(entry.id, []).append(entry)
    for column in columns:
        yield from (Piece(asked, entry) for entry in by_id[dataset.ids[column]])


def _block(
    asked: Asked, entries: Sequence[Entry], settings: Settings, resources: Resources, problems: list[str]
) -> list[str]:
    """Return the lines of some entries; what cannot be explained is told in `problems` and left out."""
    segments = [entry.segment for entry in entries]
    explainer = asked.explainer or ""
    try:
        found = explain(segments, asked.metric, explainer, unit=settings.unit, seed=settings.seed, resources=resources)
    except Unexplained as error:
        found = error.explanations
        problems.append(f"{asked.name}: {error}")
    explained = (Explained(entries[one.index], asked.name, asked_name(explainer), one) for one in found)
    _, *lines = explanation_lines(Dataset("block", tuple(entries)), explained, {})
    return lines


def explained_lines(folders: Sequence[Path]) -> dict[Key, list[str]]:
    """Return the lines of all explanations in some runs, by what they explain."""
    found: dict[Key, list[str]] = {}
    for folder in folders:
        if (folder / runs.EXPLANATIONS).exists():
            with (folder / runs.EXPLANATIONS).open(encoding="utf-8", newline="\n") as file:
                next(file)
                found |= _by_key(file)
    return found


def _by_key(lines: Iterable[str]) -> dict[Key, list[str]]:
    found: dict[Key, list[str]] = {}
    for line in lines:
        found.setdefault(_key(line), []).append(line)
    return found


def _key(line: str) -> Key:
    record = json.loads(line)
    return record["metric"], record["system"], record["id"]
