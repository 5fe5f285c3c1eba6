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
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple, TypeVar

import msgspec

from whyscore.data.checks import findings
from whyscore.data.codec import Where, convert
from whyscore.data.dataset import read_dataset
from whyscore.data.files import TextFile
from whyscore.data.writing import temporary_folder, write_lines
from whyscore.errors import DataError, StoreError, UserError
from whyscore.registry import build_from_file
from whyscore.runs import folder as runs
from whyscore.runs.evaluate import EvaluateSettings, Key, RequestedMetric, evaluate_requested, key_of, request_metrics
from whyscore.runs.folder import Run
from whyscore.scoring.stack import LOCAL, Resources
from whyscore.scoring.store import Store, repair_command, take
from whyscore.settings import make
from whyscore.text.files import json_of, text_of
from whyscore.types import Dataset, Entry
from whyscore.version import __version__

S = TypeVar("S", bound=EvaluateSettings)
SHARD = "shard.json"
STORE = "scores.sqlite"


class Shard(NamedTuple):
    """Part `number` (from 1) of `of`."""

    number: int
    of: int

    def __str__(self) -> str:
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
    part = replace(dataset, entries=tuple(dataset.entries[k] for k in _positions(dataset, shard)))
    if not part.entries:
        count = len(dataset.ids)
        raise UserError(
            f"shard {shard} is empty: the data have {count} segments. There is nothing to do "
            f"here: whyscore merge needs only the first {count} shards"
        )
    return part


def share(budget: int | None, shard: Shard) -> int | None:
    """Return a shard's part of a budget.

    >>> share(100, Shard(1, 3)), share(None, Shard(1, 3))
    (34, None)
    """
    return None if budget is None else math.ceil(budget / shard.of)


def settings_of_shard(settings: S, requested: Sequence[RequestedMetric], shard: Shard) -> S:
    """Return the settings with the shard's part of the budget; without one, of the default, which each would use up."""
    budgets = [request.budget for request in requested if request.budget is not None]
    return replace(settings, budget=share(max(budgets), shard) if budgets else None)


class _Request(msgspec.Struct):
    """What the whole run was asked for."""

    metrics: list[str]
    explainers: tuple[str, ...] | None
    budget: int | None
    settings: dict[str, str | int | None]
    """Unit, tagger, seed and draws."""

    def whole(self) -> EvaluateSettings:
        return make(EvaluateSettings, {"explainers": self.explainers, "budget": self.budget, **self.settings})

    def plain(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__struct_fields__}


class _ShardFile(msgspec.Struct):
    """`shard.json`: where the entries of a shard belong."""

    number: int
    of: int
    segments: int
    whyscore: str
    whole: str
    """The fingerprint of the whole run."""
    asked: _Request
    positions: list[int]
    first_line: int | None = None


def describe(
    folder: str | Path, dataset: Dataset, shard: Shard, metrics: Sequence[str], settings: EvaluateSettings
) -> None:
    """Write where the entries of a shard belong, and what the whole run was asked for."""
    used = {name: getattr(settings, name) for name in ("unit", "tagger", "seed", "draws")}
    request = _Request(list(metrics), settings.explainers, settings.budget, used)
    facts = _ShardFile(
        *shard,
        segments=len(dataset.ids),
        whyscore=__version__,
        whole=runs.fingerprint(dataset, request.plain()),
        asked=request,
        positions=_positions(dataset, shard),
        first_line=dataset.first_line,
    )
    Path(folder).mkdir(parents=True, exist_ok=True)
    head = {"schema": runs.SCHEMA, "kind": "shard"}
    write_lines(Path(folder) / SHARD, [json.dumps(head | msgspec.to_builtins(facts)) + "\n"], follow=False)


def merge(
    folders: Sequence[str | Path],
    output: str | Path,
    *,
    resources: Resources = LOCAL,
    overwrite: bool = False,
    command: Sequence[str] | None = None,
    allow_code: Sequence[str] = (),
) -> Run:
    """Return the run that the shards in these folders are parts of, written to a folder of its own.

    Args:
        folders: All shards, in any order.
        output: The run folder.
        resources: Executor and progress, for what no shard did; a store besides those of the shards, if there is one.
        overwrite: Replace another run in the folder.
        command: The command line, for the report.
        allow_code: Files and modules that the shards may run code from, such as those of your own metrics.
    """
    parts = _parts(folders)
    if any(part.folder.resolve() == Path(output).resolve() for part in parts):
        raise UserError(f"{output} is one of the shards: choose another folder with -o")
    _refuse_code(parts[0], allow_code)
    first, dataset = parts[0].file, _join_data(parts)
    if runs.fingerprint(dataset, first.asked.plain()) != first.whole:
        raise DataError(f"{parts[0].folder}: the shards do not add up to the data they were cut from")
    _check_signatures(dataset, parts[0])
    lines = ShardExplanations([part.folder for part in parts])
    with closing(lines), _open_stores(parts, resources.store) as store:
        settings = first.asked.whole()
        return evaluate_requested(
            dataset,
            request_metrics(dataset, first.asked.metrics, settings),
            output,
            settings,
            replace(resources, store=store),
            findings=findings(dataset),
            command=command,
            overwrite=overwrite,
            explained=lines,
            first_line=first.first_line,
        )


def joinable(folders: Sequence[str | Path]) -> tuple[int, int]:
    """Return how many shards and entries would be joined; what keeps them from it is an error."""
    parts = _parts(folders)
    return len(parts), sum(len(part.file.positions) for part in parts)


class _Part(NamedTuple):
    folder: Path
    shard: Shard
    file: _ShardFile
    signatures: dict[str, str]


def _parts(folders: Sequence[str | Path]) -> list[_Part]:
    """Return the shards in order; all of one run, none missing, none twice."""
    parts = sorted((_part(Path(folder)) for folder in folders), key=lambda part: part.shard)
    if not parts:
        raise UserError("no shard: give the folders that whyscore evaluate --shard wrote")
    first = parts[0]
    for part in parts[1:]:
        difference = _difference(part, first)
        if difference:
            raise DataError(f"{part.folder} is a shard of another run than {first.folder}: {difference}")
    for part, following in pairwise(parts):
        if part.shard == following.shard:
            raise DataError(f"shard {part.shard} is given twice: {part.folder} and {following.folder}")
    # Shards behind the last segment are empty, and nobody could make them.
    numbers = range(1, min(first.shard.of, first.file.segments) + 1)
    missing = sorted(set(numbers) - {part.shard.number for part in parts})
    if missing:
        raise DataError(f"shards are missing: {', '.join(f'{number}/{first.shard.of}' for number in missing)}")
    return parts


def _difference(part: _Part, first: _Part) -> str | None:
    """Return what keeps a shard from being joined with the first one; None where nothing does."""
    if part.file.whyscore != first.file.whyscore:
        return f"made by whyscore {part.file.whyscore}, not {first.file.whyscore}"
    if part.shard.of != first.shard.of:
        return f"one of {part.shard.of} shards, not of {first.shard.of}"
    there, here = _flat(part.file.asked), _flat(first.file.asked)
    for name in here | there:
        if there.get(name) != here.get(name):
            return f"{name} is {there.get(name)}, not {here.get(name)}"
    if part.file.whole != first.file.whole:
        return "cut from other data"
    for name, signature in first.signatures.items():
        if part.signatures.get(name) != signature:
            return f"the signature of {name} is {part.signatures.get(name)}, not {signature}"
    return None


def _flat(request: _Request) -> dict[str, object]:
    return {name: value for name, value in request.plain().items() if name != "settings"} | request.settings


def _check_signatures(dataset: Dataset, part: _Part) -> None:
    """Refuse to join where a metric is another one than where the shards were made: files would mix the two."""
    request = part.file.asked
    for metric in request_metrics(dataset, request.metrics, request.whole()):
        here, there = str(metric.metric.signature()), part.signatures.get(metric.name)
        if here != there:
            raise DataError(f"{part.folder}: the signature of {metric.name} is {there} there and {here} here")


class _Plan(msgspec.Struct):
    metrics: list[tuple[str, str, str | None, int | None]]


def _part(folder: Path) -> _Part:
    path = folder / SHARD
    if not path.exists():
        raise DataError(
            f"{folder} is not a shard: it has no {SHARD}. Make one with whyscore evaluate --shard 1/2 -o {folder}"
        )
    facts = runs.facts_of(folder)
    if not facts.done:
        raise DataError(f"{folder} is not finished: run the same whyscore evaluate command again to resume")
    where = Where(str(path), cure="not what whyscore evaluate --shard writes")
    file = convert(_ShardFile, json_of(text_of(path), path), where)
    plan = convert(_Plan, facts.plan, where._replace(file=str(folder / runs.RUN)))
    signatures = {name: signature for name, signature, *_ in plan.metrics}
    return _Part(folder, Shard(file.number, file.of), file, signatures)


def _refuse_code(part: _Part, allow_code: Sequence[str]) -> None:
    """Refuse shards that name code; all shards ask for the same."""
    whole = part.file.asked.whole()
    named = {
        "metric": part.file.asked.metrics,
        "explainer": whole.explainers or (),
        "tagger": () if whole.tagger is None else (whole.tagger,),
        "splitter": (whole.unit,),
    }
    for kind, specs in named.items():
        for spec in specs:
            build_from_file(spec, kind, part.folder / SHARD, allow_code)


def _join_data(parts: Sequence[_Part]) -> Dataset:
    """Return the data set that the shards were cut from."""
    placed: dict[int, Entry] = {}
    for part in parts:
        data = read_dataset(part.folder / runs.SEGMENTS)
        if len(part.file.positions) != len(data.entries):
            there = f"{len(data.entries)} entries, {SHARD} says {len(part.file.positions)}"
            raise DataError(f"{part.folder} holds {there}: the shard is damaged, make it again")
        placed |= zip(part.file.positions, data.entries, strict=True)
    return Dataset(data.name, tuple(placed[k] for k in sorted(placed)), data.languages, data.findings)


@contextmanager
def _open_stores(parts: Sequence[_Part], store: Store | None) -> Iterator[Store]:
    """Give a store with every score that the shards kept: the one that is there, or one for this run alone."""
    with temporary_folder() as place:
        joined = store or Store(place / STORE)
        try:
            for part in parts:
                _take(joined, part.folder / STORE)
            yield joined
        finally:
            if joined is not store:
                joined.close()


def _take(store: Store, path: Path) -> None:
    if not path.exists():
        return
    try:
        take(store, Store(path))
    except sqlite3.DatabaseError as error:
        raise StoreError(f"{path}: {error}. Save it with: {repair_command(path)}") from error


def _positions(dataset: Dataset, shard: Shard) -> list[int]:
    column = {name: k for k, name in enumerate(dataset.ids)}
    return [k for k, entry in enumerate(dataset.entries) if column[entry.id] % shard.of == shard.number - 1]


class ShardExplanations(Mapping[Key, Sequence[str]]):
    """The lines of all explanations in some runs, by what they explain; unpacked, they wait in one temporary file."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._places: dict[Key, list[tuple[int, int]]] = {}
        self._lines = TemporaryFile()  # noqa: SIM115 - `close` closes it
        try:
            for path in filter(None, map(runs.explanations_in, folders)):
                self._look(path)
        except BaseException:  # nobody gets an object that could be closed
            self.close()
            raise

    def _look(self, path: Path) -> None:
        lines = TextFile(path).lines()
        next(lines, None)
        for text in lines:
            line = f"{text}\n".encode()
            self._places.setdefault(_read_key(line, path), []).append((self._lines.tell(), len(line)))
            self._lines.write(line)

    def close(self) -> None:
        """Give the temporary file back."""
        self._lines.close()

    def __getitem__(self, key: Key) -> list[str]:
        return [self._read(*place) for place in self._places[key]]

    def _read(self, start: int, length: int) -> str:
        self._lines.seek(start)
        return self._lines.read(length).decode("utf-8")

    def __iter__(self) -> Iterator[Key]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def _read_key(line: bytes, path: Path) -> Key:
    """Return what a line of another run explains."""
    try:
        key = key_of(line)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(f"a line is not an explanation: {error}; make the shard again", file=str(path)) from error
    if not all(isinstance(part, str) for part in key):
        raise DataError(f"a line explains {key!r}, expected three names; make the shard again", file=str(path))
    return key
