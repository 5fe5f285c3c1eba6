"""A file of a run that grows block by block, with what is to be known about each block.

1. The lines of a block are added to `<name>.part`. Then a line in `<name>.blocks` says where they end, how much work
   they stand for, and what went wrong in it.
2. After an interruption everything behind the last block that is told whole is cut off: blocks begin where they would
   have begun, and tell what they would have told.
3. The complete file takes its name. `<name>.blocks` stays until `run.json` tells the same, and `forget` removes it.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from whyscore.data.writing import Growing, cut_torn_line, growing, write_lines
from whyscore.jobs.runs import BLOCKS, GROWING, Folder


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
