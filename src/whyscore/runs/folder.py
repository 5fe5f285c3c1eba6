"""A run: a folder of JSON lines that holds everything a report shows.

| file | holds |
|---|---|
| `run.json` | what was asked, when, with which versions; counts, times, findings; whether it is finished |
| `segments.jsonl` | the texts, human scores and error spans |
| `scores.jsonl`, `totals.jsonl` | every entry under every metric; every system with its interval |
| `explanations.jsonl` | the importance of words |
| `decomposition.jsonl`, `comparisons.jsonl` | features lost; tests between systems |
| `spans.jsonl`, `models.json` | error spans, and the models behind the metrics, where there are any |

1. `begun` makes the folder, or finds out that it holds the same work, which then goes on where it stopped.
2. `finished_file` writes a file that is there whole or not at all. Explanations grow block by block under another name
   (`runs_blocks`) and are renamed when they are complete.
3. `read_run` reads it all back: reports look at nothing else.

A file of a run that grows block by block, with what is to be known about each block.

1. The lines of a block are added to `<name>.part`. Then a line in `<name>.blocks` says where they end, how much work
   they stand for, and what went wrong in it.
2. After an interruption everything behind the last block that is told whole is cut off: blocks begin where they would
   have begun, and tell what they would have told.
3. The complete file takes its name. `<name>.blocks` stays until `run.json` tells the same, and `forget` removes it.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from whyscore.data.dataset import dataset_lines
from whyscore.data.writing import Growing, cut_torn_line, growing, write_lines
from whyscore.errors import DataError, UserError
from whyscore.text.strict import finite, whole
from whyscore.types import Dataset
from whyscore.version import __version__

RUN = "run.json"
SEGMENTS = "segments.jsonl"
SCORES = "scores.jsonl"
TOTALS = "totals.jsonl"
EXPLANATIONS = "explanations.jsonl"
DECOMPOSITION = "decomposition.jsonl"
COMPARISONS = "comparisons.jsonl"
SPANS = "spans.jsonl"
MODELS = "models.json"
SCHEMA = "whyscore/1"
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

    def finished_file(self, name: str, lines: Iterable[str]) -> None:
        """Write a file that appears when all its lines are written."""
        write_lines(self.path / name, lines)

    def describe(self, facts: Mapping[str, object]) -> None:
        """Write `run.json`."""
        head = {"schema": SCHEMA, "schema_version": 1, "kind": "run", "created": self.created, "whyscore": __version__}
        text = json.dumps(finite(head | dict(facts)), ensure_ascii=False, indent=2, allow_nan=False)
        write_lines(self.path / RUN, [f"{text}\n"])


def begun(path: str | Path, dataset: Dataset, plan: Mapping[str, object], *, overwrite: bool = False) -> Folder:
    """Return the folder for this work: a new one, or the one where the same work was begun before.

    A folder that holds other work is refused, because reports would mix the two.
    """
    target = Path(path)
    if target.exists() and not target.is_dir():
        raise UserError(f"{path} is a file: a run needs a folder. Choose another name with -o")
    _tidied(target)
    found = fingerprint(dataset, plan)
    known = _facts(target) if (target / RUN).exists() else None
    if known is None and target.exists() and any(target.iterdir()) and not overwrite:
        raise UserError(f"{path} is not empty and holds no run: choose another folder, or --overwrite")
    if known is not None and known.get("fingerprint") == found:
        return Folder(target, str(known.get("created")))
    if known is not None and not overwrite:
        raise UserError(f"{path} holds another run, of {known.get('created')}: choose another folder, or --overwrite")
    _cleared(target)
    return Folder(target, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))


def fingerprint(dataset: Dataset, plan: Mapping[str, object]) -> str:
    """Return a digest of the data (people's judgements included), the plan and the version of whyscore."""
    state = hashlib.blake2b(digest_size=16)
    state.update(json.dumps([finite(plan), __version__], sort_keys=True).encode())
    for line in dataset_lines(dataset, created="-"):
        state.update(line.encode("utf-8", "surrogatepass"))
    return state.hexdigest()


def facts_of(path: str | Path) -> dict[str, object]:
    """Return what `run.json` says of a run."""
    folder = Path(path)
    if not (folder / RUN).exists():
        raise DataError(f"{path} is no run folder: it has no {RUN}. Make one with whyscore evaluate -o {path}")
    return _facts(folder)


def _facts(folder: Path) -> dict[str, object]:
    file = folder / RUN
    try:
        found = json.loads(file.read_text("utf-8"), parse_int=whole)
    except (ValueError, RecursionError) as error:
        raise DataError(f"not JSON: {error}", file=str(file)) from error
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise DataError(f'expected an object with "schema": "{SCHEMA}"', file=str(file))
    return found


def _tidied(folder: Path) -> None:
    """Remove what a process that was killed while it wrote a file left beside it."""
    for name in (RUN, SEGMENTS, SCORES, TOTALS, EXPLANATIONS, DECOMPOSITION, COMPARISONS, SPANS, MODELS, "report.html"):
        for file in folder.glob(f".{name}*.????????.tmp"):
            file.unlink(missing_ok=True)


def _cleared(folder: Path) -> None:
    """Remove what an earlier run left; nothing else in the folder is touched."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder}: cannot be made: {error.strerror}. Choose another folder with -o") from error
    for name in (RUN, SEGMENTS, SCORES, TOTALS, EXPLANATIONS, DECOMPOSITION, COMPARISONS, SPANS, MODELS):
        for suffix in ("", GROWING, BLOCKS):
            (folder / f"{name}{suffix}").unlink(missing_ok=True)


class Block(NamedTuple):
    """A complete part of a growing file."""

    work: int
    """How many pieces of work it stands for."""
    end: int
    """How many bytes the file has with it."""
    problems: list[str]


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
        block = Block(work, self.lines.path.stat().st_size, problems)
        self.told.writelines([f"{json.dumps(block._asdict())}\n"])
        self.told.flush()
        self.done.append(block)


@contextmanager
def growing_blocks(folder: Folder, name: str, head: str) -> Iterator[Blocks]:
    """Yield a file, with the blocks it has from before, that takes its name when all ends well."""
    whole, part, told = folder.path / name, _path(folder, name, GROWING), _path(folder, name, BLOCKS)
    if whole.exists() and told.exists() and not part.exists():
        whole.replace(part)  # stopped after the last block, before `run.json` told of it
    done = _kept(part, told)
    if not done:
        told.unlink(missing_ok=True)
        write_lines(part, [head])
    with growing(part) as lines, growing(told) as telling:
        yield Blocks(done, lines, telling)
    part.replace(whole)


def forget(folder: Folder, name: str) -> None:
    """Remove what was told of blocks: `run.json` tells it now."""
    _path(folder, name, BLOCKS).unlink(missing_ok=True)


def _kept(part: Path, told: Path) -> list[Block]:
    """Return the blocks that both files hold whole, and cut off what stands behind them."""
    if not (part.exists() and told.exists()):
        return []
    cut_torn_line(told)
    size = part.stat().st_size
    try:
        known = [Block(**json.loads(line)) for line in told.read_text("utf-8").splitlines()]
        done = [
            block for block in known if 0 < block.end <= size and block.work > 0 and isinstance(block.problems, list)
        ]
    except (ValueError, TypeError, RecursionError):
        return []  # not what was written: the work begins again
    if done:
        write_lines(told, [f"{json.dumps(block._asdict())}\n" for block in done])
        os.truncate(part, done[-1].end)
    return done


def _path(folder: Folder, name: str, suffix: str) -> Path:
    return folder.path / f"{name}{suffix}"
