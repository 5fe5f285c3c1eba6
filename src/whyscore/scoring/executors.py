"""Where a metric runs: here, or in several processes of this machine.

Only the spec string, the signature, texts and floats cross to a worker, which builds the metric once and keeps it as
long as its signature stays. Results do not depend on the executor: batches are the same and are put back by index.

The libraries of a worker start as many threads as it has cores, where they would take the whole machine. They read
their limits when they are loaded, so these must stand in the environment before a worker starts. A worker ends when
the process that started it has ended, however it ended.
"""

import atexit
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from multiprocessing.connection import wait as wait_for
from types import MappingProxyType
from typing import ClassVar, Literal, TypeVar

from whyscore.errors import ExecutionError, SpecError, UnknownName
from whyscore.protocols import Metric, Part
from whyscore.registry import build, spec_of
from whyscore.scoring.rows import Answer, ask
from whyscore.settings import check_fields
from whyscore.types import Segment

VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")
"""What torch and numpy read (the first three), and the tokenizers."""


def limit_threads(cores: int) -> dict[str, str]:
    """Return the environment variables that limit a process to some threads, at least one.

    >>> limit_threads(0)["OMP_NUM_THREADS"]
    '1'
    """
    return dict.fromkeys(VARIABLES, str(max(1, cores)))


@contextmanager
def starting(cores: int) -> Iterator[None]:
    """Let processes that are started now inherit the limits; lower ones that are set already stay."""
    before = {name: os.environ.get(name) for name in VARIABLES}
    limits = limit_threads(cores)
    for name, value in before.items():
        lower = value is not None and value.isdecimal() and 0 < int(value) < int(limits[name])
        os.environ[name] = str(value) if lower else limits[name]
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


Key = TypeVar("Key")
Result = TypeVar("Result")
Texts = tuple[str, str | None, tuple[str, ...], tuple[Segment, ...]]

# Batches handed out per worker: one to work on, one waiting, so that no worker idles and memory stays bounded.
_AHEAD = 2


@dataclass(frozen=True, slots=True)
class Serial:
    """Scores in this process, one batch after the other."""

    def run(self, metric: Metric, segments: Sequence[Segment], batches: Iterable[Sequence[int]]) -> Iterator[Part]:
        for batch in batches:
            answer = ask(metric, [segments[i] for i in batch])
            yield Part(batch, answer.rows, answer.failures)


@dataclass(frozen=True, slots=True)
class Processes:
    """Scores in `jobs` processes (0 = one per core), which share the cores: each starts as many threads as it has."""

    jobs: int = 0

    fields: ClassVar[Mapping[Literal["workers", "address"], str]] = MappingProxyType({"workers": "jobs"})
    batch: ClassVar[int] = 64
    """Segments a batch holds at the most: small enough that no worker waits long for the last one."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.jobs < 0:
            raise SpecError(f"processes: jobs is {self.jobs}, expected 0 (one per core) or more")

    def run(self, metric: Metric, segments: Sequence[Segment], batches: Iterable[Sequence[int]]) -> Iterator[Part]:
        spec, signature = spec_of(metric), str(metric.signature())
        work = ((batch, (spec, signature, texts_of(segments, batch))) for batch in batches)
        for batch, answer in self._run_unordered(_work, work, spec):
            yield Part(batch, answer.rows, answer.failures)

    def map(self, function: Callable[..., Result], calls: Iterable[tuple[object, ...]], who: str) -> Iterator[Result]:
        """Yield what a function of a module returns for the arguments of each call, in their order."""
        numbered = enumerate(calls)
        early: dict[int, Result] = {}
        following = 0
        for number, result in self._run_unordered(function, numbered, who):
            early[number] = result
            while following in early:
                yield early.pop(following)
                following += 1

    def _run_unordered(
        self, function: Callable[..., Result], work: Iterable[tuple[Key, tuple[object, ...]]], who: str
    ) -> Iterator[tuple[Key, Result]]:
        """Yield the results as they are ready; a worker that dies is an error that names `who`."""
        workers = self.jobs or os.cpu_count() or 1
        pool = _pool(workers)
        waiting = iter(work)
        running: dict[Future[Result], Key] = {}
        try:
            for key, arguments in islice(waiting, workers * _AHEAD):
                running[_submit(pool, workers, function, arguments)] = key
            while running:
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    key = running.pop(future)
                    result = future.result()
                    for after, arguments in islice(waiting, 1):
                        running[_submit(pool, workers, function, arguments)] = after
                    yield key, result
        except (KeyboardInterrupt, GeneratorExit):
            # The second comes where whoever asked was interrupted, and only those batches are ended that are running.
            if running:
                _end(pool)
            raise
        except UnknownName as error:
            hint = "workers know installed plugins and file.py:function, not names registered in one process"
            raise ExecutionError(f"{error}. The name is unknown to the worker processes: {hint}") from error
        except BrokenProcessPool as error:
            _pool.cache_clear()
            raise ExecutionError(
                f"a worker that ran {who} died (killed, or out of memory); what was scored is kept. "
                "Run the same command again to go on, perhaps with fewer --jobs"
            ) from error
        finally:
            for future in running:
                future.cancel()


def _end(pool: ProcessPoolExecutor) -> None:
    """End workers in the middle of their batches.

    Nobody waits for these, only for the pool's own thread: if it closed its pipe while the interpreter ends, there
    would be a traceback.
    """
    for worker in (pool._processes or {}).values():  # noqa: SLF001
        worker.terminate()
    pool.shutdown(cancel_futures=True)
    _pool.cache_clear()


@lru_cache(maxsize=1)
def _pool(workers: int) -> ProcessPoolExecutor:
    # spawn: a forked child of a process with threads (torch, rich) can hang.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=end_with_parent)
    atexit.register(pool.shutdown, wait=False, cancel_futures=True)
    return pool


def end_with_parent() -> None:
    """End this worker as soon as the process that started it has ended; a killed one cannot say good-bye."""
    parent = multiprocessing.parent_process()
    end = os._exit  # as it is now: while a user's function runs, it is an error

    def watch(sentinel: int) -> None:
        wait_for([sentinel])
        end(1)

    if parent is not None:
        threading.Thread(target=watch, args=(parent.sentinel,), daemon=True).start()


def _submit(
    pool: ProcessPoolExecutor, workers: int, function: Callable[..., Result], arguments: tuple[object, ...]
) -> "Future[Result]":
    # Handing out work may start a worker, which shares the cores with the others.
    with hide_main(), starting((os.cpu_count() or 1) // workers):
        return pool.submit(function, *arguments)


_STARTING = threading.Lock()


@contextmanager
def hide_main() -> Iterator[None]:
    """Keep workers from running the user's script again: what they need is in this package.

    Without it a script needs `if __name__ == "__main__"`, and a notebook or a script on stdin cannot use processes. One
    thread at a time: the main module is restored before the next one hides it.
    """
    with _STARTING:
        main = sys.modules["__main__"]
        spec, file = main.__spec__, getattr(main, "__file__", None)
        main.__spec__ = None
        if file is not None:
            del main.__file__
        try:
            yield
        finally:
            main.__spec__ = spec
            if file is not None:
                main.__file__ = file


@lru_cache(maxsize=4)
def _resident(spec: str, signature: str) -> Metric:
    """Return the metric of a spec, built once; one that is another than that of the process that asks is refused."""
    metric: Metric = build(spec)
    built = str(metric.signature())
    if built != signature:
        raise ExecutionError(
            f"{spec} changed while it was scored: it was {signature} and is {built}. Run the same command again"
        )
    return metric


def _work(spec: str, signature: str, texts: Sequence[Texts]) -> Answer:
    """Score one batch in a worker."""
    return ask(_resident(spec, signature), [Segment(*text) for text in texts])


def texts_of(segments: Sequence[Segment], batch: Sequence[int]) -> list[Texts]:
    """Return the texts of a batch, which is all that crosses to a worker."""
    return [
        (segment.hypothesis, segment.source, segment.references, segment.context)
        for segment in (segments[i] for i in batch)
    ]
