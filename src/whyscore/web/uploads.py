"""Files that are uploaded, evaluated in a process of their own and added to the runs.

1. An upload is one data file of a known kind. Its texts are counted and measured before any of them is scored.
2. One upload is evaluated at a time, the others wait. Its process reports the stage it is in through a pipe; cancelling
   it, or going beyond the limit of time or memory, ends the process.
3. The runs lie in a temporary folder and are deleted when the server stops; the newest `KEPT` are kept.
"""

import asyncio
import multiprocessing
import re
import secrets
import shutil
import time
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple

from whyscore.data.checks import findings, refuse_findings
from whyscore.data.files import Limits
from whyscore.data.reading import read
from whyscore.errors import DataError, UserError, WhyscoreError
from whyscore.runs.evaluate import EvaluateSettings, evaluate
from whyscore.scoring.executors import end_with_parent
from whyscore.scoring.stack import Resources, Stages
from whyscore.types import Dataset
from whyscore.web import limits as allowed
from whyscore.web.live import TEXT, Strict
from whyscore.web.workers import limit_memory

SUFFIXES = (".tsv", ".csv", ".xlsx", ".jsonl", ".xlf", ".xliff", ".tmx")
ENTRIES = 5_000
"""Texts of all systems that an upload may hold."""
SECONDS = 900
"""Time that an evaluation may take."""
WAITING = 8
"""Uploads that may wait."""
KEPT = 20
"""Runs that are kept."""
_LOOK = 0.2
"""Seconds between two reports of progress."""

State = Literal["waiting", "running", "done", "failed", "cancelled"]


class UploadAnswer(Strict):
    """How far the evaluation of an upload is; `run` names the run when it is done."""

    id: str
    name: str
    state: State
    stage: str
    done: int
    total: int
    error: str | None
    run: str | None


class Task(NamedTuple):
    """What the process is given."""

    file: Path
    name: str
    metrics: tuple[str, ...]
    languages: tuple[str, str] | None
    folder: Path
    memory: int
    """Megabytes that it may take."""


@dataclass
class Upload:
    """An upload and what became of it."""

    id: str
    task: Task
    state: State = "waiting"
    stage: str = ""
    done: int = 0
    total: int = 0
    error: str | None = None
    run: str | None = None

    def answer(self) -> UploadAnswer:
        """Return what a client sees."""
        about = {name: getattr(self, name) for name in UploadAnswer.model_fields if name != "name"}
        return UploadAnswer(name=self.task.name, **about)


class Uploads:
    """Evaluates uploaded files one after the other and adds them to the runs of the server."""

    def __init__(self, runs: MutableMapping[str, Path], memory: int) -> None:
        self._runs, self._memory = runs, memory
        self._place = TemporaryDirectory(prefix="whyscore-", ignore_cleanup_errors=True)
        self._uploads: dict[str, Upload] = {}
        self._turn = asyncio.Semaphore(1)
        self._working: set[asyncio.Task[None]] = set()

    def start(self, name: str, body: bytes, metrics: Sequence[str], pair: str) -> Upload:
        """Return a new upload, which is evaluated when its turn comes; refuse what cannot be evaluated."""
        suffix = Path(name).suffix.lower()
        if suffix not in SUFFIXES:
            raise UserError(f"{name}: cannot read this kind of file: upload one of {', '.join(SUFFIXES)}")
        if not body:
            raise UserError(f"{name} is empty")
        specs = tuple(allowed.spec("metric", metric, {}) for metric in dict.fromkeys(metrics))
        languages = re.fullmatch(r"([A-Za-z_]{2,12})-([A-Za-z_]{2,12})", pair)
        if pair and languages is None:
            raise UserError(f"cannot read the language pair {pair!r}: write it like de-en")
        if sum(upload.state in ("waiting", "running") for upload in self._uploads.values()) > WAITING:
            raise UserError("too many uploads are waiting: try again later")
        stem = re.sub(r"[^\w.-]+", "-", Path(name).stem)[:60].strip(".") or "upload"  # `..` is no name of a folder
        key = secrets.token_urlsafe(12)
        place = Path(self._place.name) / key
        place.mkdir()
        file = place / f"{stem}{suffix}"
        file.write_bytes(body)
        pair_of = (languages[1], languages[2]) if languages else None
        upload = Upload(key, Task(file, file.name, specs, pair_of, place / stem, self._memory))
        self._uploads[key] = upload
        working = asyncio.get_running_loop().create_task(self._evaluate(upload))
        self._working.add(working)
        working.add_done_callback(self._working.discard)
        return upload

    def find(self, name: str) -> Upload:
        """Return an upload by its id."""
        if name not in self._uploads:
            raise UserError(f"no upload {name!r}")
        return self._uploads[name]

    def cancel(self, name: str) -> Upload:
        """Return an upload that is no longer evaluated; what is finished stays."""
        upload = self.find(name)
        if upload.state in ("waiting", "running"):
            upload.state = "cancelled"
        return upload

    async def _evaluate(self, upload: Upload) -> None:
        async with self._turn:
            if upload.state == "waiting":
                upload.state = "running"
                await self._watch(upload)
        upload.task.file.unlink(missing_ok=True)
        self._tidy()

    async def _watch(self, upload: Upload) -> None:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_evaluate, args=(upload.task, theirs), daemon=True)
        process.start()
        theirs.close()
        end = time.monotonic() + SECONDS
        try:
            while upload.state == "running":
                self._hear(upload, ours)
                if time.monotonic() > end:
                    upload.state, upload.error = "failed", f"this takes more than {SECONDS} seconds: upload fewer texts"
                await asyncio.sleep(_LOOK)
        finally:
            process.kill()
            process.join()
            ours.close()

    def _hear(self, upload: Upload, connection: Connection) -> None:
        """Take in what the process reported since the last look."""
        try:
            while connection.poll():
                upload.stage, upload.done, upload.total, upload.error = connection.recv()
                if upload.error is not None:
                    upload.state = "failed"
                elif upload.stage == "done":
                    upload.state, upload.run = "done", self._add(upload)
        except (EOFError, OSError):
            if upload.state == "running":
                upload.state, upload.error = "failed", "the evaluation ended unexpectedly"

    def _add(self, upload: Upload) -> str:
        name, number = upload.task.folder.name, 2
        while name in self._runs:
            name, number = f"{upload.task.folder.name}-{number}", number + 1
        self._runs[name] = upload.task.folder
        return name

    def _tidy(self) -> None:
        """Delete what failed, and the oldest runs beyond those that are kept."""
        over = [upload for upload in self._uploads.values() if upload.state not in ("waiting", "running")]
        for upload in over[: max(0, len(over) - KEPT)]:
            del self._uploads[upload.id]
            self._runs.pop(upload.run or "", None)
            shutil.rmtree(upload.task.folder.parent, ignore_errors=True)


class _Reports(Stages):
    """Sends the stage and its counts through a pipe, a few times a second."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._connection, self._sent = connection, (0.0, "")

    def changed(self) -> None:
        now = time.monotonic()
        if now - self._sent[0] >= _LOOK or self.stage != self._sent[1]:
            self._sent = now, self.stage
            self._connection.send((self.stage, self.done, self.total, None))


def _evaluate(task: Task, connection: Connection) -> None:
    """Evaluate a file in a process of its own; the last report says how it ended."""
    end_with_parent()
    limit_memory(task.memory)
    reports = _Reports(connection)
    try:
        reports.begin("read")
        data = read(task.file, languages=task.languages, limits=Limits(file=100_000_000))
        noticed = findings(data)
        refuse_findings(noticed, strict=False)
        _check_size(data)
        settings = EvaluateSettings(quick=True)
        evaluate(
            data,
            task.metrics or None,
            output=task.folder,
            settings=settings,
            resources=Resources(progress=reports),
            findings=noticed,
        )
        connection.send(("done", 1, 1, None))
    except WhyscoreError as error:
        message = str(error).replace(str(task.file), task.name).replace(str(task.folder), task.name)
        connection.send((reports.stage, 0, 0, message))
    except MemoryError:
        connection.send((reports.stage, 0, 0, f"this takes more than {task.memory} MB of memory: upload fewer texts"))
    except Exception:  # noqa: BLE001 - no details of the machine
        connection.send((reports.stage, 0, 0, "this file could not be evaluated"))


def _check_size(data: Dataset) -> None:
    if not data.entries:
        raise DataError("the file holds no segments")
    if len(data) > ENTRIES:
        raise UserError(f"the file holds {len(data):,} texts, at most {ENTRIES:,} are allowed: use whyscore evaluate")
    for entry in data.entries:
        segment = entry.segment
        longest = max(map(len, (segment.hypothesis, segment.source or "", *segment.references)))
        if longest > TEXT:
            raise UserError(
                f"segment {entry.id} has a text of {longest:,} characters, at most {TEXT:,} are allowed here"
            )
