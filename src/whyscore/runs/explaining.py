"""The explanations of a run: written block by block, and gone on with after an interruption.

1. The work is a list of (metric, entry) pairs in a fixed order.
2. Each block of entries is explained and appended. Random numbers depend on the text alone, so blocks change nothing.
3. What could not be explained is written down with its block. After an interruption the work goes on after the last
   block that is complete, so that nothing is done, told or forgotten twice.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from whyscore.analysis.common import requested_name
from whyscore.analysis.explain import attempt
from whyscore.data.records import explanation_lines, header_of
from whyscore.errors import DataError
from whyscore.explainers.engine import failure_message, make_plan
from whyscore.runs import folder as runs
from whyscore.runs.choices import Asked, Settings, chosen_segments
from whyscore.runs.folder import growing_blocks
from whyscore.scoring.stack import Resources
from whyscore.types import Dataset, Entry, ExplanationRecord, FloatVector

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
    with growing_blocks(folder, runs.EXPLANATIONS, head) as file:
        for one, same in groupby(pieces[file.work :], key=lambda piece: piece.asked):
            entries = [piece.entry for piece in same]
            for start in range(0, len(entries), BLOCK):
                block = entries[start : start + BLOCK]
                problems: list[str] = []
                lines = _lines(one, block, settings, resources, explained=explained, problems=problems)
                file.add(lines, len(block), problems)
    return file.problems


def _lines(
    asked: Asked,
    block: Sequence[Entry],
    settings: Settings,
    resources: Resources,
    *,
    explained: Mapping[Key, Sequence[str]],
    problems: list[str],
) -> list[str]:
    """Return the lines of a block: those that were made elsewhere, and new ones for the others."""
    keys = [(asked.name, entry.system, entry.id) for entry in block]
    new = [entry for entry, key in zip(block, keys, strict=True) if key not in explained]
    made = _by_key(_block(asked, new, settings, resources, problems) if new else [])
    if problems and len(new) < len(block):
        # Problems are told of whole blocks, whoever explained the rest of it.
        problems.clear()
        _block(asked, block, settings, resources, problems)
    return [line for key in keys for line in (explained[key] if key in explained else made.get(key, ()))]


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
    outcome = attempt(segments, asked.metric, explainer, unit=settings.unit, seed=settings.seed, resources=resources)
    if outcome.failures:
        first = entries[min(outcome.failures)]
        message = failure_message(outcome.failures, len(segments))
        problems.append(f"{asked.name}: {message} (id {first.id} of {first.system})")
    who = requested_name(explainer)
    explained = (ExplanationRecord.of(entries[one.index], asked.name, who, one) for one in outcome)
    _, *lines = explanation_lines(Dataset("block", tuple(entries)), explained, {})
    return lines


class Elsewhere(Mapping[Key, Sequence[str]]):
    """The lines of all explanations in some runs, by what they explain; they stay in their files until asked for."""

    def __init__(self, folders: Sequence[Path]) -> None:
        """Find out which bytes of which file belong to which entry."""
        self._places: dict[Key, list[tuple[Path, int, int]]] = {}
        for folder in folders:
            if (folder / runs.EXPLANATIONS).exists():
                self._look(folder / runs.EXPLANATIONS)

    def _look(self, path: Path) -> None:
        with path.open("rb") as file:
            start = len(next(file, b""))
            for line in file:
                self._places.setdefault(_known_key(line, path), []).append((path, start, len(line)))
                start += len(line)

    def __getitem__(self, key: Key) -> list[str]:
        """Return the lines of one entry."""
        return [_read(*place) for place in self._places[key]]

    def __iter__(self) -> Iterator[Key]:
        """Yield what was explained."""
        return iter(self._places)

    def __len__(self) -> int:
        """Return how many entries were explained."""
        return len(self._places)


def _read(path: Path, start: int, length: int) -> str:
    with path.open("rb") as file:
        file.seek(start)
        return file.read(length).decode("utf-8")


def _by_key(lines: Iterable[str]) -> dict[Key, list[str]]:
    found: dict[Key, list[str]] = {}
    for line in lines:
        found.setdefault(_key(line), []).append(line)
    return found


def _key(line: str | bytes) -> Key:
    record = json.loads(line)
    return record["metric"], record["system"], record["id"]


def _known_key(line: bytes, path: Path) -> Key:
    """Return what a line of another run explains."""
    try:
        key = _key(line)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(f"a line is no explanation: {error}; make the shard again", file=str(path)) from error
    if not all(isinstance(part, str) for part in key):
        raise DataError(f"a line explains {key!r}, expected three names; make the shard again", file=str(path))
    return key
