"""A short queue in front of a few workers: questions wait in turn, too many are turned away, gone askers are forgotten.

1. `workers` questions are answered at a time, in threads; `queue` more may wait.
2. One more is refused at once, with a time to come back: a page that says so is better than one that hangs.
3. When the asker closes the connection, a waiting question is dropped, and a running one ends at its next batch: the
   progress of the scoring stack tells between batches, and that is where it is stopped.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar

from whyscore.scoring.stack import Progress

Answer = TypeVar("Answer")

_LOOK = 0.25
"""Seconds between looks at whether the asker is still there."""


class Busy(Exception):
    """There is no room in the queue."""


class Gone(Exception):
    """The asker has left."""


class Stoppable:
    """A progress that ends the work it hears of once it is stopped."""

    def __init__(self) -> None:
        """Start unstopped."""
        self._stopped = threading.Event()

    def stop(self) -> None:
        """End the work at its next batch."""
        self._stopped.set()

    def asked(self, count: int) -> None:
        """Hear of new segments."""
        del count
        self._look()

    def answered(self, count: int, *, stored: bool) -> None:
        """Hear of finished segments."""
        del count, stored
        self._look()

    def _look(self) -> None:
        if self._stopped.is_set():
            raise Gone


class Queue:
    """Answers questions in threads, a few at a time."""

    def __init__(self, workers: int, queue: int) -> None:
        """Make room for so many questions."""
        self._workers = asyncio.Semaphore(workers)
        self._room = workers + queue
        self._inside = 0

    async def answer(self, work: Callable[[Progress], Answer], gone: Callable[[], Awaitable[bool]]) -> Answer:
        """Return what the work gives; `gone` says whether the asker has left."""
        if self._inside >= self._room:
            raise Busy
        self._inside += 1
        try:
            async with self._workers:
                if await gone():
                    raise Gone
                return await self._run(work, gone)
        finally:
            self._inside -= 1

    async def _run(self, work: Callable[[Progress], Answer], gone: Callable[[], Awaitable[bool]]) -> Answer:
        progress = Stoppable()
        running = asyncio.ensure_future(asyncio.to_thread(work, progress))
        try:
            while True:
                done, _ = await asyncio.wait([running], timeout=_LOOK)
                if done:
                    return running.result()
                if await gone():
                    raise Gone
        finally:
            if not running.done():
                progress.stop()
                # The worker is not free before its thread is.
                await asyncio.wait([running])
