"""Processes that answer requests, each with limits on time and memory, and a queue in front of them.

1. A worker answers one request at a time and is kept for the next one; all are started before the server listens. Only
   the name of a function of `whyscore.web.live`, a question and an answer cross to it and back.
2. When a request takes longer than `seconds`, or its client closes the connection, the worker is killed, whatever it is
   computing. The next request starts a new one, forked from a process that has loaded everything already.
3. Its memory is limited by the operating system (`RLIMIT_DATA`, where there is one) to what it has after loading and
   `memory` megabytes. A request that needs more is refused, and its worker replaced.
4. `workers` requests are answered at a time and `queue` more may wait. One more is refused at once with a time to come
   back. Large requests leave one worker to the others, where there are several.
"""

import asyncio
import multiprocessing
import os
import signal
import time
import traceback
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, SpawnContext
from pathlib import Path
from typing import TypeVar

from whyscore.errors import UserError, WhyscoreError
from whyscore.scoring.executors import end_with_parent, hide_main, starting
from whyscore.scoring.store import Store
from whyscore.web import ServeSettings

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

Question = TypeVar("Question")
Answer = TypeVar("Answer")
Work = Callable[[Question, Store | None], Answer]
Context = ForkServerContext | SpawnContext

_LOOK = 0.25
"""Seconds between two looks at whether the client is still there."""
_LOADED = ("whyscore.web.live", "whyscore.metrics.lexical.chrf", "whyscore.metrics.lexical.ter")


class Busy(Exception):
    """There is no room in the queue."""


class Gone(Exception):
    """The client has closed the connection."""


class Worker:
    """A process that answers one request at a time."""

    def __init__(self, store: Path | None, memory: int, cores: int) -> None:
        if "forkserver" in multiprocessing.get_all_start_methods():
            context: Context = multiprocessing.get_context("forkserver")
            context.set_forkserver_preload(list(_LOADED))
        else:
            context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        with hide_main(), starting(cores):
            self._process = context.Process(target=_answer, args=(theirs, store, memory), daemon=True)
            self._process.start()
        theirs.close()
        self._connection.recv()  # it is ready
        self.usable = True
        """Whether it can be asked again."""

    def ask(self, work: Work[Question, Answer], question: Question) -> Answer:
        """Return the answer; what the worker refuses is raised here."""
        try:
            self._connection.send((work, question))
            answer, refusal, self.usable = self._connection.recv()
        except (EOFError, OSError) as error:
            self.kill()
            raise WhyscoreError("the worker process ended") from error
        if refusal is not None:
            raise UserError(refusal)
        result: Answer = answer
        return result

    def kill(self) -> None:
        """End the process now."""
        self.usable = False
        self._process.kill()

    def join(self) -> None:
        """Wait for the end of a process that cannot be asked again, and close what belongs to it."""
        self._process.join()
        self._connection.close()


class Queue:
    """Answers questions in worker processes, a few at a time."""

    def __init__(self, settings: ServeSettings, store: Store | None) -> None:
        self._settings = settings
        self._store = None if store is None else store.path
        self._turn = asyncio.Semaphore(settings.workers)
        self._large = asyncio.Semaphore(max(1, settings.workers - 1))
        self._threads = ThreadPoolExecutor(settings.workers)
        self._idle: list[Worker] = []
        self._inside = 0

    async def answer(
        self, work: Work[Question, Answer], question: Question, gone: Callable[[], Awaitable[bool]], *, large: bool
    ) -> Answer:
        """Return what a function of a question gives in a worker; `gone` says whether the client has left."""
        if self._inside >= self._settings.workers + self._settings.queue:
            raise Busy
        self._inside += 1
        try:
            async with self._large if large else nullcontext(), self._turn:
                if await gone():
                    raise Gone
                return await self._run(work, question, gone)
        finally:
            self._inside -= 1

    async def _run(
        self, work: Work[Question, Answer], question: Question, gone: Callable[[], Awaitable[bool]]
    ) -> Answer:
        loop = asyncio.get_running_loop()
        worker = self._idle.pop() if self._idle else await loop.run_in_executor(self._threads, self._start)
        running = loop.run_in_executor(self._threads, worker.ask, work, question)
        end = time.monotonic() + self._settings.seconds
        try:
            while not (await asyncio.wait([running], timeout=_LOOK))[0]:
                if await gone():
                    raise Gone
                if time.monotonic() > end:
                    raise UserError(
                        f"this takes more than {self._settings.seconds:g} seconds: send less text, or give "
                        "whyscore serve more --seconds"
                    )
            return running.result()
        finally:
            if not running.done():
                worker.kill()
                await asyncio.wait([running])
                running.exception()  # it was asked for: nobody is told that the worker ended
            if worker.usable:
                self._idle.append(worker)
            else:
                await loop.run_in_executor(self._threads, worker.join)

    async def open(self) -> None:
        """Start all workers, so that the first requests do not wait for them."""
        loop = asyncio.get_running_loop()
        starts = [loop.run_in_executor(self._threads, self._start) for _ in range(self._settings.workers)]
        self._idle += await asyncio.gather(*starts)

    def _start(self) -> Worker:
        return Worker(self._store, self._settings.memory, (os.cpu_count() or 1) // self._settings.workers)

    def close(self) -> None:
        """End the workers that wait for requests; the next request starts others."""
        while self._idle:
            worker = self._idle.pop()
            worker.kill()
            worker.join()


def _answer(connection: Connection, store: Path | None, memory: int) -> None:
    """Answer questions until the server closes the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server
    end_with_parent()
    score_store = None if store is None else Store(store)
    limit_memory(memory)
    connection.send(None)
    while True:
        try:
            work, question = connection.recv()
        except EOFError:
            return
        try:
            reply: tuple[object, str | None, bool] = (work(question, score_store), None, True)
        except UserError as error:
            reply = (None, str(error), True)
        except MemoryError:  # what was taken may not be given back: this worker ends
            refusal = (
                f"this takes more than {memory} MB of memory: send less text, or give whyscore serve more --memory"
            )
            reply = (None, refusal, False)
        except Exception:  # noqa: BLE001 - a server goes on
            traceback.print_exc()
            reply = (None, "this request failed", True)  # no details of the machine
        connection.send(reply)
        if not reply[-1]:
            return


def limit_memory(megabytes: int) -> None:
    """Let this process take so much memory more than it has now."""
    status = Path("/proc/self/statm")
    if resource is not None and status.exists():
        pages = int(status.read_text("ascii").split()[5])  # data and stack
        most = pages * resource.getpagesize() + megabytes * 2**20
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
