"""Where a metric runs: on the workers of a Ray cluster (https://docs.ray.io), here or on many machines.

1. Every worker is an actor that builds the metric once from its spec and keeps it; one per core, per `cores` cores, or
   per share of a GPU.
2. Workers join as soon as their metric is built. Each has at most two batches: one to work on, one waiting, so that no
   worker idles and the driver holds little.
3. A worker that dies gives its batches back to the others, and another one is started in its place where the cluster
   has room. A batch whose worker died three times is an error: it is the batch that kills.
4. Only the spec, texts and floats cross the border. A metric in a file (`my_metric.py:score`) is shipped with it.

Batches are those of the serial executor and rows are put back by index: a result does not depend on who computed it.
"""

import logging
import os
import socket
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from whyscore.errors import ExecutionError, MissingExtra, SpecError, UnknownName, WhyscoreError
from whyscore.options import check_fields
from whyscore.protocols import Metric, Part
from whyscore.registry import build, spec_of
from whyscore.scoring.executors import Texts, texts_of
from whyscore.scoring.rows import ask
from whyscore.scoring.shipping import ship
from whyscore.types import FloatMatrix, Segment

if TYPE_CHECKING:
    from ray import ObjectRef
    from ray.actor import ActorHandle

_AHEAD = 2
_TRIES = 3
_PATIENCE = 120.0
_KNOCK = 10.0


class Answered(NamedTuple):
    """What a worker sends back."""

    rows: FloatMatrix
    failures: dict[int, str]
    seconds: float


@dataclass(slots=True)
class Rate:
    """What one worker has done."""

    texts: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Ray:
    """Scores on a Ray cluster.

    Args:
        workers: how many; 0 is as many as the cluster has room for.
        address: of a running cluster, `auto` for the one this machine belongs to; None starts one here.
        cores: that each worker takes.
        gpus: that each worker takes; 0.5 puts two on one.
    """

    workers: int = 0
    address: str | None = None
    cores: float = 1.0
    gpus: float = 0.0
    rates: dict[str, Rate] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What each worker has done so far, by name."""

    batch: ClassVar[int] = 64

    def __post_init__(self) -> None:
        """Refuse numbers that make no worker."""
        check_fields(self)
        for name, value, least in (("workers", self.workers, 0), ("cores", self.cores, 0), ("gpus", self.gpus, 0)):
            if value < least:
                raise SpecError(f"ray: {name} is {value}, expected {least} or more")

    def run(self, metric: Metric, segments: Sequence[Segment], batches: Iterable[Sequence[int]]) -> Iterator[Part]:
        """Yield each batch's rows as workers finish them."""
        waiting = iter(batches)
        first = next(waiting, None)
        if first is None:
            return
        work = _Work(self, spec_of(metric))
        try:
            yield from work.parts(segments, chain([first], waiting))
        finally:
            work.close()


class _Resident:
    """A worker: the metric, built once."""

    metric: Metric

    def ready(self, spec: str) -> bool:
        """Return once the metric is built; its errors are those of a task, which come back as they are."""
        self.metric = build(spec)
        return True

    def answer(self, texts: Sequence[Texts]) -> Answered:
        """Return the rows of one batch."""
        start = time.perf_counter()
        found = ask(self.metric, [Segment(*text) for text in texts])
        return Answered(found.rows, found.failures, time.perf_counter() - start)


class _Asked(NamedTuple):
    worker: str
    batch: Sequence[int] | None
    """None while the worker builds its metric."""


class _Work:
    """One run: who is there, who does what, and what is left."""

    def __init__(self, settings: Ray, spec: str) -> None:
        self.settings, self.spec = settings, spec
        shipped = ship(spec)
        _connect(settings.address, shipped.folder)
        self.remote_spec = shipped.spec
        self.workers: dict[str, ActorHandle[_Resident]] = {}
        self.running: dict[ObjectRef[object], _Asked] = {}
        self.again: deque[Sequence[int]] = deque()
        self.deaths: Counter[int] = Counter()
        self.started = 0
        for _ in range(settings.workers or self._room()):
            self._start()

    def parts(self, segments: Sequence[Segment], batches: Iterator[Sequence[int]]) -> Iterator[Part]:
        """Yield the answers; workers that die are replaced, their batches asked again."""
        import ray  # noqa: PLC0415 - an optional package

        more = True
        while True:
            while (more or self.again) and (worker := self._idle()) is not None:
                batch = self.again.popleft() if self.again else next(batches, None)
                if batch is None:
                    more = False
                    break
                self._ask(worker, batch, segments)
            if not (more or self.again or self._busy()):
                return
            done, _ = ray.wait(list(self.running), num_returns=1, timeout=_PATIENCE)
            if not done:
                self._impatient()
                continue
            asked = self.running.pop(done[0])
            answer = self._answer(done[0], asked)
            if answer is not None and asked.batch is not None:
                yield Part(asked.batch, answer.rows, answer.failures)

    def close(self) -> None:
        """Let the workers go."""
        import ray  # noqa: PLC0415 - an optional package

        for worker in self.workers.values():
            ray.kill(worker, no_restart=True)

    def _idle(self) -> str | None:
        """Return a worker that is ready and has room for a batch, the least busy first."""
        busy = Counter(asked.worker for asked in self.running.values())
        building = {asked.worker for asked in self.running.values() if asked.batch is None}
        free = [name for name in self.workers if name not in building and busy[name] < _AHEAD]
        return min(free, key=lambda name: busy[name]) if free else None

    def _busy(self) -> bool:
        return any(asked.batch is not None for asked in self.running.values())

    def _ask(self, worker: str, batch: Sequence[int], segments: Sequence[Segment]) -> None:
        self.running[self.workers[worker].answer.remote(texts_of(segments, batch))] = _Asked(worker, batch)

    def _answer(self, done: "ObjectRef[object]", asked: _Asked) -> Answered | None:
        """Return what a worker answered; None where it has just become ready, or died."""
        import ray  # noqa: PLC0415 - an optional package

        try:
            answer = ray.get(done)
        except ray.exceptions.RayTaskError as error:
            raise _own(error.cause, self.spec) from error
        except (
            ray.exceptions.RayActorError,
            ray.exceptions.ObjectLostError,
            ray.exceptions.WorkerCrashedError,
        ) as error:
            self._died(asked, error)
            return None
        if not isinstance(answer, Answered):
            return None
        rate = self.settings.rates.setdefault(asked.worker, Rate())
        rate.texts, rate.seconds = rate.texts + len(answer.rows), rate.seconds + answer.seconds
        return Answered(np.array(answer.rows), answer.failures, answer.seconds)

    def _died(self, asked: _Asked, error: Exception) -> None:
        """Give a batch back; the first sign of a death starts another worker."""
        if asked.worker in self.workers:
            del self.workers[asked.worker]
            self._start()
        if asked.batch is None:
            cause = getattr(error, "cause", None) or error
            if self.started > _TRIES * (len(self.workers) + 1):
                raise ExecutionError(f"no worker could build {self.spec}: {str(cause).splitlines()[0]}") from error
            return
        self.deaths[asked.batch[0]] += 1
        if self.deaths[asked.batch[0]] >= _TRIES:
            raise ExecutionError(
                f"{_TRIES} workers that ran {self.spec} died on the same {len(asked.batch)} texts (killed, or out of "
                "memory); what was scored is kept. Run the same command again to go on"
            ) from error
        self.again.append(asked.batch)

    def _impatient(self) -> None:
        """Refuse to wait for a cluster without room for a single worker."""
        if not self._busy():
            wanted = f"{self.settings.cores:g} core(s) and {self.settings.gpus:g} GPU(s)"
            raise ExecutionError(f"the Ray cluster had no room for a worker with {wanted} in {_PATIENCE:.0f} seconds")

    def _room(self) -> int:
        """Return how many workers the cluster can hold."""
        import ray  # noqa: PLC0415 - an optional package

        there: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
        limits = [(there.get("CPU", 0), self.settings.cores), (there.get("GPU", 0), self.settings.gpus)]
        return max(1, min(int(have // each) for have, each in limits if each > 0)) if any(e for _, e in limits) else 1

    def _start(self) -> None:
        import ray  # noqa: PLC0415 - an optional package

        resident = ray.remote(_Resident).options(
            num_cpus=self.settings.cores, num_gpus=self.settings.gpus, max_restarts=0, scheduling_strategy="SPREAD"
        )
        name = f"worker-{self.started}"
        self.started += 1
        self.workers[name] = resident.remote()  # type: ignore[assignment]
        self.running[self.workers[name].ready.remote(self.remote_spec)] = _Asked(name, None)


def _own(cause: object, spec: str) -> Exception:
    """Return the error of a worker as this process would have raised it."""
    if isinstance(cause, UnknownName):
        hint = "workers know installed plugins and file.py:function, not names registered in one process"
        return ExecutionError(f"{cause}. The name is unknown to the workers: {hint}")
    if isinstance(cause, WhyscoreError):
        return cause
    return ExecutionError(f"a worker that ran {spec} failed: {type(cause).__name__}: {cause}")


def _connect(address: str | None, folder: Path | None) -> None:
    """Join or start a cluster; files go along when it is joined, so new files need a new connection."""
    try:
        import ray  # noqa: PLC0415 - an optional package
    except ImportError as error:
        raise MissingExtra.of("--executor ray", "ray") from error
    if ray.is_initialized():
        if folder is None:
            return
        ray.shutdown()
    _reach(address)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent anywhere
    environment = {} if folder is None else {"working_dir": str(folder)}
    try:
        ray.init(
            address=address,
            runtime_env=environment,
            include_dashboard=False if address is None else None,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    except (ConnectionError, ValueError) as error:
        raise ExecutionError(f"no Ray cluster at {address!r}: {error}. Start one with: ray start --head") from error


def _reach(address: str | None) -> None:
    """Refuse an address where nobody listens; Ray itself would try for minutes."""
    host, colon, port = (address or "").removeprefix("ray://").rpartition(":")
    if not (colon and port.isdigit()):
        return
    try:
        socket.create_connection((host, int(port)), timeout=_KNOCK).close()
    except OSError as error:
        raise ExecutionError(f"no Ray cluster at {address!r}: {error}. Start one with: ray start --head") from error
