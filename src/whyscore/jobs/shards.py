"""A run in several places: each does a part of the segments, and the parts are joined to what one place had made.

1. Shard i of n holds every n-th segment, all systems of it together, so that tests and words stay side by side.
2. A shard is a run like any other. Beside it stand `shard.json`, which says where its entries belong, and the store
   with every score it asked for.
3. `merge` puts the entries back in their order, joins the stores, takes over finished explanations, and does the whole
   run: nothing that a shard did is done again. The files are those of an unsharded run, byte for byte, but for dates.

With a budget, each shard explains its part of it; segments that only the whole set shows to be among the worst are
explained when the shards are joined.
"""

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from whyscore.errors import DataError, UserError
from whyscore.io.atomic import write_lines
from whyscore.io.datasets import read_dataset
from whyscore.jobs import runs
from whyscore.jobs.common import LOCAL, Resources
from whyscore.jobs.evaluate import evaluate
from whyscore.jobs.runs_choices import Settings
from whyscore.jobs.runs_explaining import explained_lines
from whyscore.jobs.runs_reading import Run
from whyscore.scoring.store import Store
from whyscore.scoring.store_repair import take
from whyscore.types import Dataset, Entry

SHARD = "shard.json"
STORE = "scores.sqlite"


class Shard(NamedTuple):
    """Part `number` (from 1) of `of`."""

    number: int
    of: int

    def __str__(self) -> str:
        """Return the shard as it is written on the command line."""
        return f"{self.number}/{self.of}"


def read_shard(text: str) -> Shard:
    """Return what a text such as 2/4 stands for.

    >>> read_shard("2/4")
    Shard(number=2, of=4)
    """
    first, slash, second = text.partition("/")
    if not (slash and first.isdecimal() and second.isdecimal() and 1 <= int(first) <= int(second)):
        raise UserError(f"cannot read the shard {text!r}: write it like 1/4, 2/4, 3/4, 4/4")
    return Shard(int(first), int(second))


def shard_of(dataset: Dataset, shard: Shard) -> Dataset:
    """Return every n-th segment of a data set with all its systems."""
    found = replace(dataset, entries=tuple(dataset.entries[k] for k in _positions(dataset, shard)))
    if not found.entries:
        raise UserError(f"shard {shard} is empty: the data have {len(dataset.ids)} segments. Use fewer shards")
    return found


def share(budget: int | None, shard: Shard) -> int | None:
    """Return a shard's part of a budget.

    >>> share(100, Shard(1, 3)), share(None, Shard(1, 3))
    (34, None)
    """
    return None if budget is None else math.ceil(budget / shard.of)


def describe(folder: str | Path, dataset: Dataset, shard: Shard, asked: Mapping[str, object]) -> None:
    """Write where the entries of a shard belong, and what the whole run was asked for."""
    facts = {
        "schema": runs.SCHEMA,
        "kind": "shard",
        "number": shard.number,
        "of": shard.of,
        "whole": runs.fingerprint(dataset, asked),
        "asked": dict(asked),
        "positions": _positions(dataset, shard),
    }
    Path(folder).mkdir(parents=True, exist_ok=True)
    write_lines(Path(folder) / SHARD, [json.dumps(facts) + "\n"])


def merge(
    folders: Sequence[str | Path], output: str | Path, *, resources: Resources = LOCAL, overwrite: bool = False
) -> Run:
    """Return the run that the shards in these folders are parts of, written to a folder of its own."""
    parts = _parts(folders)
    asked = parts[0].asked
    dataset = _joined(parts)
    if runs.fingerprint(dataset, asked) != parts[0].whole:
        raise DataError(f"{parts[0].folder}: the shards do not add up to the data they were cut from")
    with TemporaryDirectory() as place, closing(_store(parts, Path(place) / STORE)) as store:
        return evaluate(
            dataset,
            asked["metrics"],  # type: ignore[arg-type]
            output=output,
            explainers=asked["explainers"],  # type: ignore[arg-type]
            budget=asked["budget"],  # type: ignore[arg-type]
            settings=Settings(**asked["settings"]),  # type: ignore[arg-type]
            resources=replace(resources, store=store),
            overwrite=overwrite,
            explained=explained_lines([part.folder for part in parts]),
        )


class _Part(NamedTuple):
    folder: Path
    shard: Shard
    whole: str
    asked: dict[str, object]
    positions: list[int]


def _parts(folders: Sequence[str | Path]) -> list[_Part]:
    """Return the shards in order; all of one run, none missing, none twice."""
    parts = sorted((_part(Path(folder)) for folder in folders), key=lambda part: part.shard)
    if not parts:
        raise UserError("no shard: give the folders that whyscore evaluate --shard wrote")
    first = parts[0]
    for part in parts[1:]:
        if part.whole != first.whole or part.shard.of != first.shard.of:
            raise DataError(f"{part.folder} is a shard of another run than {first.folder}")
    numbers = [part.shard.number for part in parts]
    missing = sorted(set(range(1, first.shard.of + 1)) - set(numbers))
    if missing:
        raise DataError(f"shards are missing: {', '.join(f'{number}/{first.shard.of}' for number in missing)}")
    if len(numbers) > first.shard.of:
        twice = next(number for number in numbers if numbers.count(number) > 1)
        raise DataError(f"shard {twice}/{first.shard.of} is given twice")
    return parts


def _part(folder: Path) -> _Part:
    file = folder / SHARD
    if not file.exists():
        raise DataError(
            f"{folder} is no shard: it has no {SHARD}. Make one with whyscore evaluate --shard 1/2 -o {folder}"
        )
    if runs.facts_of(folder).get("status") != "done":
        raise DataError(f"{folder} is not finished: run the same whyscore evaluate command again to go on")
    try:
        facts = json.loads(file.read_text("utf-8"))
        shard = Shard(int(facts["number"]), int(facts["of"]))
        return _Part(folder, shard, str(facts["whole"]), dict(facts["asked"]), [int(k) for k in facts["positions"]])
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"not what whyscore evaluate --shard writes: {error}", file=str(file)) from error


def _joined(parts: Sequence[_Part]) -> Dataset:
    """Return the data set that the shards were cut from."""
    placed: dict[int, Entry] = {}
    for part in parts:
        data = read_dataset(part.folder / runs.SEGMENTS)
        placed |= zip(part.positions, data.entries, strict=True)
    return replace(data, entries=tuple(placed[k] for k in sorted(placed)))


def _store(parts: Sequence[_Part], path: Path) -> Store:
    store = Store(path)
    for part in parts:
        if (part.folder / STORE).exists():
            take(store, Store(part.folder / STORE))
    return store


def _positions(dataset: Dataset, shard: Shard) -> list[int]:
    column = {name: k for k, name in enumerate(dataset.ids)}
    return [k for k, entry in enumerate(dataset.entries) if column[entry.id] % shard.of == shard.number - 1]
