"""A run: a folder of JSON lines that holds everything a report shows.

| file | holds |
|---|---|
| `run.json` | what was asked, when, with which versions; counts, times, findings; whether it is finished |
| `segments.jsonl` | the texts, human scores and error spans |
| `scores.jsonl`, `totals.jsonl` | every entry under every metric; every system with its interval |
| `explanations.jsonl.gz` | the importance of words, packed; `zcat` shows it line by line |
| `decomposition.jsonl`, `comparisons.jsonl` | features lost; tests between systems |
| `triage.json` | which segments need review, where `whyscore triage` decided it |
| `spans.jsonl`, `models.json` | error spans, and the models behind the metrics, where there are any |

1. `open_or_create` makes the folder, or finds out that it holds the same work, which then goes on where it stopped.
2. A file is there whole or not at all. Explanations grow block by block under another name
   and are renamed when they are complete. Until the run is finished, `run.json` holds a digest of each complete file:
   one that was changed since is made again.
3. The lines of a block are added to `<name>.part`. Then a line in `<name>.blocks` says where they end, how much work
   they stand for, a digest of them, and what went wrong in it. After an interruption everything behind the last
   complete and unchanged block is cut off: blocks begin where they would have begun. `<name>.blocks` stays until
   `run.json` says the same (`forget`).
4. `read_run` reads it all back, every record as its type: reports look at nothing else.
5. A folder is filled, and changed later, by one process at a time (`data.writing.lock`).

Several runs become one (`merge_runs`), to see what changed: `old/` and `new/` side by side, segment by segment.

1. A system is identified by its run and its name there. In the merged run it keeps its name, with the label of its run
   before it where the name occurs in several runs: `old: base`, `new: base`.
2. Metrics are those that all runs have. Where their signatures differ, the numbers cannot be compared: refused.
3. Each system is tested against its older self, by flipping the signs of the differences between segments. The tests
   inside each run are kept; its clusters are not, because they know nothing of the other run.
4. Segments are joined by their ids; a segment whose source or references differ is shown with both.
"""

import hashlib
import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np

from whyscore.data.codec import Kind, Where, convert, read_records, record_of
from whyscore.data.dataset import dataset_lines, read_dataset
from whyscore.data.writing import (
    LOCK,
    Growing,
    cut_torn_line,
    growing,
    lock,
    make_folder,
    now,
    write_lines,
)
from whyscore.errors import DataError, ExecutionError, UserError
from whyscore.stats.correction import ALPHA
from whyscore.stats.systems import DRAWS, flip_test
from whyscore.text.files import STRICT, finite, remove_leftovers
from whyscore.types import (
    ClusterRank,
    Dataset,
    Estimate,
    ExplanationRecord,
    FeatureShare,
    Finding,
    FloatVector,
    Gate,
    PairTest,
    RunFacts,
    RunMetric,
    SegmentFeatures,
    ShareTest,
    Total,
)
from whyscore.types.result import Cell, Result, Table
from whyscore.version import __version__

RUN = "run.json"
SEGMENTS = "segments.jsonl"
SCORES = "scores.jsonl"
TOTALS = "totals.jsonl"
EXPLANATIONS = "explanations.jsonl.gz"
PLAIN_EXPLANATIONS = "explanations.jsonl"
"""What earlier versions wrote, not packed."""
DECOMPOSITION = "decomposition.jsonl"
COMPARISONS = "comparisons.jsonl"
SPANS = "spans.jsonl"
MODELS = "models.json"
TRIAGE = "triage.json"
_FILES = (
    RUN, SEGMENTS, SCORES, TOTALS, EXPLANATIONS, PLAIN_EXPLANATIONS, DECOMPOSITION, COMPARISONS, SPANS, MODELS, TRIAGE,
)  # fmt: skip
SCHEMA = "whyscore/1"
SEGMENT, CLUSTER = "segment", "cluster"
"""The `row` of records that are not the main ones of their file."""
GROWING = ".part"
BLOCKS = ".blocks"


@dataclass(frozen=True)
class Folder:
    """A run folder that is being filled; `created` is the date all its files carry, also after a restart."""

    path: Path
    created: str

    def has(self, name: str) -> bool:
        """Return whether a file is there, and so complete."""
        return (self.path / name).exists()

    def digest(self, name: str) -> str | None:
        """Return a digest of a file, or None where it is not there."""
        try:
            with (self.path / name).open("rb") as file:
                return hashlib.file_digest(file, "blake2b").hexdigest()[:16]
        except FileNotFoundError:
            return None

    def describe(self, facts: RunFacts, changed: Iterable[str] = ()) -> RunFacts:
        """Write `run.json`, and return the facts with the digests of files that were written since."""
        digests = {name: digest for name in changed if (digest := self.digest(name))}
        facts = replace(facts, digests={**facts.digests, **digests})
        record = record_of(replace(facts, created=self.created, whyscore=__version__))
        record["findings"] = [*map(Finding.record, facts.findings)]
        record["problems"] = [*map(Finding.record, facts.problems)]
        if facts.status == "done":
            del record["noted"], record["digests"]
        head = {"schema": SCHEMA, "schema_version": 1, "kind": "run"}
        text = json.dumps(finite(head | record), ensure_ascii=False, indent=2, allow_nan=False)
        write_lines(self.path / RUN, [f"{text}\n"], follow=False)
        return facts


def open_or_create(path: str | Path, work: str, *, overwrite: bool = False) -> Folder:
    """Return the folder for the work with this fingerprint: a new one, or the one where it was begun before.

    A folder that holds other work is refused, because reports would mix the two.
    """
    target = Path(path)
    _remove_leftovers(target)
    facts = _facts(target) if (target / RUN).exists() else None
    if facts is None and _holds_files(target) and not overwrite:
        raise UserError(f"{path} is not empty and holds no run: choose another folder, or --overwrite")
    if facts is not None and facts.fingerprint == work:
        return Folder(target, facts.created)
    if facts is not None and not overwrite:
        raise UserError(f"{path} holds another run, of {facts.created}: choose another folder, or --overwrite")
    clear(target)
    return Folder(target, now())


def _holds_files(folder: Path) -> bool:
    return folder.exists() and any(file.name != LOCK for file in folder.iterdir())


def fingerprint(dataset: Dataset, plan: Mapping[str, object]) -> str:
    """Return a digest of the data (people's judgements included), the plan and the version of whyscore."""
    state = hashlib.blake2b(digest_size=16)
    state.update(json.dumps([finite(plan), __version__], sort_keys=True).encode())
    for line in dataset_lines(dataset, created="-"):
        state.update(line.encode("utf-8", "surrogatepass"))
    return state.hexdigest()


def record_gates(run: "Run", gates: Sequence[Gate]) -> "Run":
    """Return the run with judged gates, which its `run.json` tells from now on."""
    facts = replace(run.facts, gates=tuple(gates))
    if facts.gates != run.facts.gates:
        with _lock_again(run):
            Folder(Path(run.folder), facts.created).describe(facts)
    return replace(run, facts=facts)


@contextmanager
def _lock_again(run: "Run") -> Iterator[None]:
    """Hold the folder that a run was read from, which nobody may have filled with another run since."""
    with lock(run.folder):
        if facts_of(run.folder).fingerprint != run.facts.fingerprint:
            raise ExecutionError(f"{run.folder} was filled with another run meanwhile: choose another folder with -o")
        yield


def write_triage(run: "Run", facts: Mapping[str, object], review: Mapping[tuple[str, str], bool]) -> None:
    """Write which segments of a run, by system and id, need review, and how that was decided."""
    nested: dict[str, dict[str, bool]] = {}
    for (system, segment_id), flag in review.items():
        nested.setdefault(system, {})[segment_id] = flag
    text = json.dumps(finite({**facts, "review": nested}), ensure_ascii=False, allow_nan=False)
    with _lock_again(run):
        write_lines(run.folder / TRIAGE, [f"{text}\n"], follow=False)


def facts_of(path: str | Path) -> RunFacts:
    """Return what `run.json` says of a run."""
    folder = Path(path)
    if not (folder / RUN).exists():
        raise DataError(f"{path} is no run folder: it has no {RUN}. Make one with whyscore evaluate -o {path}")
    return _facts(folder)


def _facts(folder: Path) -> RunFacts:
    file = folder / RUN
    try:
        record = STRICT.decode(file.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"not JSON: {error}", file=str(file)) from error
    if not isinstance(record, dict) or record.get("schema") != SCHEMA:
        raise DataError(f'expected an object with "schema": "{SCHEMA}"', file=str(file))
    for key in ("findings", "problems"):
        if isinstance(listed := record.get(key), list):
            record[key] = [_finding(item) for item in listed]
    return convert(RunFacts, record, Where(str(file), cure=_AGAIN))


def _finding(item: object) -> object:
    """Return a finding as it is recorded now; early runs recorded messages alone, whose kind is not known."""
    record = {"message": item} if isinstance(item, str) else item
    return {"code": ""} | record if isinstance(record, dict) else record


def _remove_leftovers(folder: Path) -> None:
    """Remove what a process that was killed while it wrote a file left beside it."""
    for name in (*_FILES, "report.html"):
        remove_leftovers(folder, f"{name}*")


def clear(folder: Path) -> None:
    """Remove what an earlier run left; nothing else in the folder is touched."""
    make_folder(folder)
    for name in _FILES:
        for suffix in ("", GROWING, BLOCKS):
            (folder / f"{name}{suffix}").unlink(missing_ok=True)


class Block(NamedTuple):
    """A complete part of a growing file."""

    work: int
    """How many pieces of work it stands for."""
    end: int
    """How many bytes the file has with it."""
    problems: list[str]
    digest: str
    """Of the bytes since the block before, or since the beginning, and of the work and the problems."""


@dataclass(frozen=True)
class Blocks:
    """A file that takes more blocks; `done` are those that it has already."""

    done: list[Block]
    lines: Growing
    told: Growing

    @property
    def work(self) -> int:
        """How many pieces of work are done."""
        return sum(block.work for block in self.done)

    @property
    def problems(self) -> list[str]:
        """What is to be known about all blocks."""
        return [problem for block in self.done for problem in block.problems]

    def add(self, lines: Sequence[str], work: int, problems: list[str]) -> None:
        """Add a block; it outlives this process."""
        self.lines.writelines(lines)
        self.lines.flush()
        start, end = self.done[-1].end if self.done else 0, self.lines.path.stat().st_size
        with self.lines.path.open("rb") as file:
            file.seek(start)
            block = Block(work, end, problems, _digest(file.read(end - start), work, problems))
        self.told.writelines([f"{json.dumps(block._asdict())}\n"])
        self.told.flush()
        self.done.append(block)


@contextmanager
def growing_blocks(folder: Folder, name: str, head: str) -> Iterator[Blocks]:
    """Yield a file, with the blocks it has from before, that takes its name when all ends well."""
    whole, part, index = folder.path / name, _path(folder, name, GROWING), _path(folder, name, BLOCKS)
    if whole.exists() and index.exists() and not part.exists():
        whole.replace(part)  # stopped after the last block, before `run.json` told of it
    for file in (part, index):
        if file.is_symlink():  # not ours: lines would be added to the file that it leads to
            file.unlink()
    done = _read_blocks(part, index)
    if not done:
        index.unlink(missing_ok=True)
        part.unlink(missing_ok=True)
        with growing(part, packed=True) as lines:
            lines.writelines([head])
    with growing(part, packed=True) as lines, growing(index) as telling:
        yield Blocks(done, lines, telling)
    part.replace(whole)


def forget(folder: Folder, name: str) -> None:
    """Remove what was told of blocks: `run.json` tells it now."""
    _path(folder, name, BLOCKS).unlink(missing_ok=True)


def _read_blocks(part: Path, index: Path) -> list[Block]:
    """Return the blocks that both files hold as they were written, and cut off what stands behind them."""
    if not (part.exists() and index.exists()):
        return []
    cut_torn_line(index)
    size = part.stat().st_size
    try:
        blocks = [Block(**json.loads(line)) for line in index.read_text("utf-8").splitlines()]
        done = list(takewhile(lambda block: block.work > 0 and isinstance(block.problems, list), blocks))
        done = list(_intact_blocks(part, [block for block in done if 0 < block.end <= size]))
    except (ValueError, TypeError, RecursionError):
        return []  # not what was written: the work begins again
    if len(done) < len(blocks):
        warnings.warn(f"{part} was changed or cut since it was written: the rest is made again", stacklevel=2)
    if done:
        write_lines(index, [f"{json.dumps(block._asdict())}\n" for block in done], follow=False)
        os.truncate(part, done[-1].end)
    return done


def _intact_blocks(part: Path, blocks: Sequence[Block]) -> Iterator[Block]:
    """Yield the blocks before the first one that is not as it was written."""
    with part.open("rb") as file:
        for block in blocks:
            if _digest(file.read(max(0, block.end - file.tell())), block.work, block.problems) != block.digest:
                return
            yield block


def _digest(content: bytes, work: int, problems: list[str]) -> str:
    about = json.dumps([work, problems]).encode()
    return hashlib.blake2b(about + content, digest_size=8).hexdigest()


def _path(folder: Folder, name: str, suffix: str) -> Path:
    return folder.path / f"{name}{suffix}"


Row = Mapping[str, object]

_AGAIN = "the file was changed or damaged; make the run again with whyscore evaluate --overwrite"
_ROWS: dict[str, dict[str | None, tuple[str, type]]] = {
    "decomposition": {
        None: ("shares", FeatureShare), "test": ("share_tests", ShareTest),
        SEGMENT: ("segment_features", SegmentFeatures),
    },
    "comparisons": {None: ("pairs", PairTest), CLUSTER: ("ranks", ClusterRank)},
}  # fmt: skip
"""The field and the type, by the kind of the file and the `row` of a record; other rows are for other readers."""


@dataclass(frozen=True, eq=False, repr=False)
class Run(Result):
    """Everything a run folder holds; explanations are read when they are asked for."""

    folder: Path
    facts: RunFacts
    dataset: Dataset
    metrics: tuple[RunMetric, ...]
    totals: Mapping[str, Mapping[str, Estimate]]
    """By metric, then by system, each over all of its segments."""
    scores: Mapping[str, FloatVector]
    """By metric, aligned with the entries."""
    shares: tuple[FeatureShare, ...] = ()
    """What each system loses on each feature, by metric."""
    share_tests: tuple[ShareTest, ...] = ()
    segment_features: tuple[SegmentFeatures, ...] = ()
    """Segments with too few or too many of a feature."""
    pairs: tuple[PairTest, ...] = ()
    """The tested differences of all metrics."""
    ranks: tuple[ClusterRank, ...] = ()
    signatures: Mapping[str, str] = field(default_factory=dict)
    """Of decomposition and comparisons."""
    common: Mapping[str, Mapping[str, Estimate]] = field(default_factory=dict)
    """Like `totals`, over the segments that all systems have; empty where they have the same ones."""

    def total_records(self) -> Iterator[Total]:
        """Yield the score of every system under every metric."""
        for metric in self.metrics:
            for system, total in self.totals[metric.name].items():
                shared = self.common.get(metric.name, {}).get(system)
                yield Total.of(system, metric.name, total, shared, higher_is_better=metric.higher_is_better)

    def records(self) -> Iterator[Row]:
        return (total_record(total) for total in self.total_records())

    def display_tables(self) -> list[Table]:
        names = tuple(metric.name for metric in self.metrics)
        rows: list[tuple[Cell, ...]] = [
            (system, *(self.totals[name][system].value for name in names)) for system in self.dataset.systems
        ]
        directions = {metric.name: metric.higher_is_better for metric in self.metrics}
        return [Table(("system", *names), tuple(rows), directions, notes=(f"run folder: {self.folder}",))]

    def __repr__(self) -> str:
        return f"<Run {self.folder}: {len(self.metrics)} metrics, {self.dataset!r}>"

    @cached_property
    def shared_ids(self) -> frozenset[str]:
        """The segments that all systems have."""
        ids = [{entry.id for entry in self.dataset.of(system).entries} for system in self.dataset.systems]
        return frozenset(set.intersection(*ids))

    @cached_property
    def clusters(self) -> dict[tuple[str, str], int]:
        """The significance cluster by metric and system; 1 is the top cluster."""
        return {(rank.metric, rank.system): rank.cluster for rank in self.ranks}

    def metric(self, name: str) -> RunMetric:
        """Return the metric of that name."""
        match = next((metric for metric in self.metrics if metric.name == name), None)
        if match is None:
            raise DataError(
                f"the run has no metric {name!r}; it has: {', '.join(metric.name for metric in self.metrics)}"
            )
        return match

    @cached_property
    def explanations(self) -> tuple[ExplanationRecord, ...]:
        """The explanations, in the order in which they were made."""
        return tuple(self.read_explanations())

    def needs_review(self) -> dict[tuple[str, str], bool]:
        """Return which segments, by system and id, need review; nothing where `whyscore triage` was not run."""
        path = self.folder / TRIAGE
        if not path.is_file():
            return {}
        try:
            review = json.loads(path.read_text("utf-8"))["review"]
            return {
                (system, segment): bool(flag) for system, flags in review.items() for segment, flag in flags.items()
            }
        except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
            raise DataError(
                "not what whyscore triage wrote: run it again, or remove the file", file=str(path)
            ) from error

    def read_explanations(self) -> Iterator[ExplanationRecord]:
        """Yield the explanations one by one."""
        path = explanations_in(self.folder)
        if path is None:
            return
        entries = {(entry.system, entry.id): k for k, entry in enumerate(self.dataset.entries)}
        for explanation in read_records(path, kind="explanations").explanations(entries, _AGAIN):
            size = len(self.dataset.entries[explanation.entry].segment.text(explanation.place))
            if len(explanation.spans) and explanation.spans[-1, 1] > size:
                where = Where(str(path), explanation.line, _AGAIN)
                raise where.error(f"a word ends at {explanation.spans[-1, 1]}, expected 0 to {size}")
            yield explanation


def explanations_in(folder: Path) -> Path | None:
    """Return the file with the explanations of a run, if there are any."""
    return next((path for name in (EXPLANATIONS, PLAIN_EXPLANATIONS) if (path := folder / name).exists()), None)


def read_run(path: str | Path) -> Run:
    """Return the run in a folder; one that is not finished is refused, because half a report misleads."""
    folder = Path(path)
    facts = facts_of(folder)
    if not facts.done:
        raise DataError(f"{path} is not finished: run the same whyscore evaluate command again to go on")
    dataset = read_dataset(folder / SEGMENTS)
    features, first = _read_rows(folder / DECOMPOSITION, "decomposition", dataset)
    tests, second = _read_rows(folder / COMPARISONS, "comparisons", dataset)
    (totals, common), scores = read_totals(folder / TOTALS), read_scores(folder / SCORES, dataset)
    if not facts.metrics:
        raise Where(str(folder / RUN), cure=_AGAIN).error("it names no metrics")
    for metric in facts.metrics:
        tables = [totals, common] if common else [totals]
        if metric.name not in scores or any(
            not set(dataset.systems) <= set(every.get(metric.name, ())) for every in tables
        ):
            raise DataError(
                f"{path} lacks scores of {metric.name!r}: make the run again with whyscore evaluate --overwrite"
            )
    signatures = first | second
    return Run(
        folder, facts, dataset, facts.metrics, totals, scores, **features, **tests, signatures=signatures, common=common
    )


class _Score(msgspec.Struct):
    id: str
    system: str
    metric: str
    score: float | None = None


def read_scores(path: Path, dataset: Dataset) -> dict[str, FloatVector]:
    """Return the scores by metric, aligned with the entries; NaN where there is none."""
    entries = {(entry.system, entry.id): k for k, entry in enumerate(dataset.entries)}
    scores: dict[str, FloatVector] = {}
    for where, record in read_records(path, kind="scores").typed(_Score, _AGAIN):
        if record.metric not in scores:
            scores[record.metric] = np.full(len(entries), np.nan)
        if (record.system, record.id) not in entries:
            raise where.error(f"no segment {record.id!r} of system {record.system!r} in {SEGMENTS}")
        scores[record.metric][entries[record.system, record.id]] = np.nan if record.score is None else record.score
    return scores


def total_record(total: Total) -> Row:
    """Return a total as a plain object; what it is on common segments, where that is something else."""
    record = record_of(total)
    return record if total.common_n is not None else {key: record[key] for key in record if "common" not in key}


Totals = dict[str, dict[str, Estimate]]
"""Corpus scores by metric, then by system."""


def read_totals(path: Path) -> tuple[Totals, Totals]:
    """Return the corpus scores over all segments of a system, and over those that all systems have."""
    totals: Totals = {}
    common: Totals = {}
    for _, total in read_records(path, kind="totals").typed(Total, _AGAIN):
        totals.setdefault(total.metric, {})[total.system] = Estimate(
            total.score, total.low, total.high, total.level, total.n
        )
        if total.common_n is not None:
            value = float("nan") if total.common_score is None else total.common_score
            common.setdefault(total.metric, {})[total.system] = Estimate(value, n=total.common_n)
    return totals, common


def _read_rows(path: Path, kind: Kind, dataset: Dataset) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the rows of a table of results, by the field of the run that holds them, and their signatures."""
    if not path.exists():
        return {}, {}
    records = read_records(path, kind=kind)
    systems, ids = dataset.systems, frozenset(dataset.ids)
    fields = {row: name for row, (name, _) in _ROWS[kind].items()}
    tables: dict[str, list[object]] = {}
    for where, row, fact in records.rows({row: expected for row, (_, expected) in _ROWS[kind].items()}, _AGAIN):
        if isinstance(fact, FeatureShare | SegmentFeatures) and fact.system not in systems:
            raise where.error(f"'system' is {fact.system!r}, expected one of {', '.join(map(repr, systems))}")
        if isinstance(fact, SegmentFeatures) and fact.id not in ids:
            raise where.error(f"no segment {fact.id!r}")
        tables.setdefault(fields[row], []).append(fact)
    return {name: tuple(rows) for name, rows in tables.items()}, dict(records.header.signatures)


F = TypeVar("F", FeatureShare, ShareTest, SegmentFeatures, PairTest)


class Identity(NamedTuple):
    """A system of a merged run: the label of its run, and its name there."""

    run: str
    system: str


@dataclass(frozen=True, eq=False)
class MergedRun(Run):
    """The systems of several runs."""

    runs: tuple[Run, ...] = ()
    identities: Mapping[str, Identity] = field(default_factory=dict)
    """By the name of the system in the merged run."""

    @property
    def changes(self) -> dict[str, tuple[str, str]]:
        """By system, its names in the merged run, in the first and in the last run that have it."""
        names: dict[str, list[str]] = {}
        for name, identity in self.identities.items():
            names.setdefault(identity.system, []).append(name)
        return {system: (same[0], same[-1]) for system, same in names.items() if len(same) > 1}

    def read_explanations(self) -> Iterator[ExplanationRecord]:
        """Yield the explanations of all runs by the metrics that they have in common."""
        metrics, start = {metric.name for metric in self.metrics}, 0
        for run in self.runs:
            yield from (
                replace(explanation, entry=explanation.entry + start)
                for explanation in run.explanations
                if explanation.metric in metrics
            )
            start += len(run.dataset)


def merge_runs(runs: Sequence[Run]) -> MergedRun:
    """Return one run that holds the systems of all."""
    labels, metrics = _labels(runs), _common_metrics(runs)
    names = _names(runs, labels)
    entries = [
        replace(entry, system=name[entry.system])
        for run, name in zip(runs, names, strict=True)
        for entry in run.dataset.entries
    ]
    whole = MergedRun(
        folder=runs[-1].folder,
        facts=_merge_facts(runs, labels),
        dataset=Dataset(" → ".join(labels), tuple(entries), runs[0].dataset.languages),
        metrics=metrics,
        totals={
            metric.name: {
                name[system]: total
                for run, name in zip(runs, names, strict=True)
                for system, total in run.totals[metric.name].items()
            }
            for metric in metrics
        },
        scores={metric.name: np.concatenate([run.scores[metric.name] for run in runs]) for metric in metrics},
        shares=_rename_systems([run.shares for run in runs], names),
        share_tests=_rename_systems([run.share_tests for run in runs], names),
        segment_features=_rename_systems([run.segment_features for run in runs], names),
        pairs=_rename_systems([run.pairs for run in runs], names),
        signatures={key: text for run in runs for key, text in run.signatures.items()},
        runs=tuple(runs),
        identities={
            new: Identity(label, old) for label, name in zip(labels, names, strict=True) for old, new in name.items()
        },
    )
    return replace(whole, pairs=(*whole.pairs, *_change_tests(whole)))


def _change_tests(run: MergedRun) -> Iterator[PairTest]:
    """Yield the test of each system against its older self, on the scores of the segments that both have.

    Where one of them has others too, totals cannot be compared: the difference is that of segment scores, in the mean.
    """
    place = {(entry.system, entry.id): k for k, entry in enumerate(run.dataset.entries)}
    for metric in run.metrics:
        values, totals = run.scores[metric.name], run.totals[metric.name]
        for old, new in run.changes.values():
            both = [name for name in run.dataset.ids if (old, name) in place and (new, name) in place]
            gaps = values[[place[new, name] for name in both]] - values[[place[old, name] for name in both]]
            finite_gaps = np.sort(gaps[np.isfinite(gaps)])  # draws go by place: one that no order of lines changes
            if not len(finite_gaps):
                yield PairTest(metric.name, new, old, float("nan"), reason="no segment in both runs")
                continue
            p = flip_test(finite_gaps, n=DRAWS, seed=0).two_sided if finite_gaps.any() else 1.0
            same = len(finite_gaps) == totals[new].n == totals[old].n
            size = totals[new].value - totals[old].value if same else float(finite_gaps.mean())
            better = (new if (size > 0) == metric.higher_is_better else old) if p <= ALPHA and size else None
            yield PairTest(metric.name, new, old, size, p=p, better=better, n=len(finite_gaps))


def _labels(runs: Sequence[Run]) -> list[str]:
    """Return the shortest tails of the folders' paths that differ."""
    parts = [Path(run.folder).resolve().parts for run in runs]
    for length in range(1, max(map(len, parts)) + 1):
        tails = ["/".join(part[-length:]) for part in parts]
        if len(set(tails)) == len(tails):
            return tails
    raise DataError(f"{runs[0].folder} is given twice: a run cannot be compared with itself")


def _common_metrics(runs: Sequence[Run]) -> tuple[RunMetric, ...]:
    shared = [metric for metric in runs[0].metrics if all(metric.name in {m.name for m in run.metrics} for run in runs)]
    if not shared:
        raise DataError("the runs have no metric in common: evaluate both with the same -m")
    for metric in shared:
        signatures = {run.metric(metric.name).signature for run in runs}
        if len(signatures) > 1:
            both = "' and '".join(sorted(signatures))
            raise DataError(
                f"{metric.name} has different signatures: '{both}'. Evaluate both runs with the same settings"
            )
    return tuple(shared)


def _names(runs: Sequence[Run], labels: Sequence[str]) -> list[dict[str, str]]:
    """Return, for each run, the names that its systems have in the merged run: all different."""
    every = [system for run in runs for system in run.dataset.systems]
    taken = {system for system in every if every.count(system) == 1}
    renamings: list[dict[str, str]] = []
    for run, label in zip(runs, labels, strict=True):
        names = {}
        for system in run.dataset.systems:
            name = system
            while every.count(system) > 1 and (name == system or name in taken):
                name = f"{label}: {name}"
            names[system] = name
            taken.add(name)
        renamings.append(names)
    return renamings


def _rename_systems(tables: Sequence[Sequence[F]], names: Sequence[Mapping[str, str]]) -> tuple[F, ...]:
    """Return the facts of all runs with the names that systems have in the merged run."""
    keys = ("system", "first", "second", "better")
    return tuple(
        replace(fact, **{key: name.get(getattr(fact, key), getattr(fact, key)) for key in keys if hasattr(fact, key)})
        for facts, name in zip(tables, names, strict=True)
        for fact in facts
    )


def _merge_facts(runs: Sequence[Run], labels: Sequence[str]) -> RunFacts:
    same_lines = len({(run.facts.first_line, run.dataset.ids) for run in runs}) == 1
    return replace(
        runs[-1].facts,
        created=", ".join(f"{label} {run.facts.created}" for label, run in zip(labels, runs, strict=True)),
        command=None,
        seconds={},
        first_line=runs[0].facts.first_line if same_lines else None,
        findings=_label_findings([run.facts.findings for run in runs], labels),
        problems=_label_findings([run.facts.problems for run in runs], labels),
    )


def _label_findings(tables: Sequence[Sequence[Finding]], labels: Sequence[str]) -> tuple[Finding, ...]:
    """Return the findings of all runs; each message begins with the label of its run."""
    each = zip(labels, tables, strict=True)
    return tuple(
        replace(finding, message=f"{label}: {finding.message}") for label, findings in each for finding in findings
    )
