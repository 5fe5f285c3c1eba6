"""Where a metric runs: on the workers of a Ray cluster (https://docs.ray.io), here or on many machines.

1. Every worker is an actor that builds the metric once from its spec and keeps it; one per core, per `cores` cores, or
   per share of a GPU. It starts no more threads than it has cores. Between the calls of a run the workers stay, and
   build the next metric in the same process; they end with the executor.
2. Workers join as soon as their metric is built. Each has at most two batches: one to work on, one waiting, so that no
   worker idles and the driver holds little.
3. A worker that cannot build the metric, or has another one (its signature tells), is left out; where all are, that is
   the error. A metric with another signature than at the last call, as its file has changed, is built again.
4. A worker that dies gives its batches back to the others, and another one is started in its place where the cluster
   has room. A batch that three workers died on is an error: it is the batch that kills.
5. Only the spec, texts and floats cross the border. A metric in a file (`my_metric.py:score`) is shipped with it, with
   the modules beside it that it imports.

Batches are those of the serial executor and rows are put back by index: a result does not depend on who computed it.
"""

import importlib
import logging
import os
import shutil
import socket
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, TextIO

import numpy as np

from whyscore.errors import ExecutionError, MissingExtra, SpecError, UnknownName, WhyscoreError, need_package
from whyscore.protocols import Metric, Part, Rate
from whyscore.registry import Spec, Value, build, format_value, parse, spec_of
from whyscore.scoring.executors import Texts, limit_threads, texts_of
from whyscore.scoring.rows import ask
from whyscore.settings import check_fields
from whyscore.text.files import held_folder
from whyscore.text.sources import read_sources
from whyscore.types import FloatMatrix, Segment

if TYPE_CHECKING:
    from ray import ObjectRef
    from ray.actor import ActorHandle


_KNOCK = 10.0
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5)
"""How HTTP/2, and so gRPC, which Ray speaks, begins (RFC 9113, section 3.4): a preface and empty settings."""
_START = "Start one with: ray start --head"


def connect(address: str | None, folder: Path | None) -> str | None:
    """Join or start a cluster, and name the session; files go along when it is joined, so new files need a new one."""
    with need_package(MissingExtra.of("--executor ray", "ray")):
        import ray  # noqa: PLC0415 - an optional package
    if ray.is_initialized():
        if folder is None and _same(address, ray.get_runtime_context().gcs_address):
            return session()
        ray.shutdown()
    _reach(address)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent anywhere
    environment = {} if folder is None else {"working_dir": str(folder)}
    try:
        ray.init(
            address=address or "local",  # without it Ray joins whatever cluster it finds
            runtime_env=environment,
            include_dashboard=False if address is None else None,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    except (ConnectionError, ValueError) as error:
        raise ExecutionError(f"no Ray cluster at {address!r}: {one_line(error)}. {_START}") from error
    except Exception as error:  # other versions of Ray or Python there; bare ones where a node does not start in time
        ray.shutdown()
        raise ExecutionError(f"cannot work with the Ray cluster at {address!r}: {one_line(error)}") from error
    # Ray would print news of lost nodes to stdout, among the data, whatever `log_to_driver` says.
    vars(importlib.import_module("ray._private.worker"))["_worker_logs_enabled"] = False
    return session()


def session() -> str | None:
    """Return the name of this connection to a cluster; None where there is none."""
    import ray  # noqa: PLC0415 - an optional package

    return str(ray.get_runtime_context().get_job_id()) if ray.is_initialized() else None


def one_line(error: object) -> str:
    """Return what an error says, on one line."""
    return " ".join(str(error).split()).removesuffix(".") or type(error).__name__


def to_local_error(cause: object, spec: str) -> Exception:
    """Return the error of a worker as this process would have raised it."""
    if isinstance(cause, UnknownName):
        hint = "workers know installed plugins and file.py:function, not names registered in one process"
        return ExecutionError(f"{cause}. The name is unknown to the workers: {hint}")
    if isinstance(cause, WhyscoreError):
        return cause
    return ExecutionError(f"a worker that ran {spec} failed: {type(cause).__name__}: {cause}")


def room(nodes: Sequence[Mapping[str, object]], cores: float, gpus: float) -> int:
    """Return how many workers fit on the nodes, each of them whole on one node.

    >>> room([{"Alive": True, "Resources": {"CPU": 3.0}}, {"Alive": True, "Resources": {"CPU": 1.0}}], 2.0, 0.0)
    1
    """
    there = [node["Resources"] for node in nodes if node["Alive"]]
    needs = {name: each for name, each in (("CPU", cores), ("GPU", gpus)) if each > 0}
    if not needs:
        return len(there)
    return sum(
        min(int(has.get(name, 0.0) // each) for name, each in needs.items()) for has in there if isinstance(has, dict)
    )


def worker_options(cores: float, gpus: float) -> dict[str, object]:
    """Return the options of a worker: its cores and GPUs, and no more threads than cores."""
    return {
        "num_cpus": cores,
        "num_gpus": gpus,
        "max_restarts": 0,
        "scheduling_strategy": "SPREAD",
        "runtime_env": {"env_vars": limit_threads(int(cores))},
    }


def no_room(cores: float, gpus: float) -> str:
    """Return that no node has what a worker takes, and what can be done about it."""
    needs = [f"{count:g} {name}{'s' if count > 1 else ''}" for count, name in ((cores, "core"), (gpus, "GPU")) if count]
    cure = "Leave gpus out, or join a cluster that has some with --ray-address" if gpus else "Ask for fewer cores"
    return f"the Ray cluster has no node with {' and '.join(needs)} for a worker. {cure}"


def _same(address: str | None, joined: str) -> bool:
    """Return whether the cluster that was joined is the one asked for; any will do where none is named."""
    return address in (None, "auto", joined) or str(address).startswith("ray://")


def _reach(address: str | None) -> None:
    """Refuse an address where nobody listens, or somebody else; Ray itself would try for minutes."""
    host, colon, port = (address or "").removeprefix("ray://").rpartition(":")
    if not (colon and port.isdigit()):
        return
    try:
        with socket.create_connection((host, int(port)), timeout=_KNOCK) as line:
            line.sendall(_GREETING)
            answer = line.recv(16)
    except TimeoutError:
        answer = b""
    except OSError as error:
        raise ExecutionError(f"no Ray cluster at {address!r}: {error}. {_START}") from error
    if not answer or answer.startswith(b"HTTP/1"):
        raise ExecutionError(f"no Ray cluster at {address!r}: what listens there is something else. {_START}")


class Shipment(NamedTuple):
    """A spec as the workers read it, and the folder that goes with it; None where no file is named."""

    spec: str
    folder: Path | None
    names: Mapping[str, str] = MappingProxyType({})
    """The path of each file by its name on the workers."""
    held: TextIO | None = None
    """What keeps the folder while this process lives."""

    def clear(self) -> None:
        """Remove the folder."""
        if self.folder is not None and self.held is not None:
            self.held.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    def original(self, signature: str) -> str:
        """Return the signature of a worker's metric with the names that files have here."""
        for moved, path in self.names.items():
            signature = signature.replace(format_value(f"{moved}:")[:-1], format_value(f"{path}:")[:-1])
        return signature


def ship(spec: str) -> Shipment:
    """Return the spec with every `path/file.py:function` replaced by where the file stands on the workers.

    >>> ship("chrf").folder is None
    True
    """
    files: dict[str, str] = {}
    moved = _relocate(parse(spec), files)
    if not files:
        return Shipment(spec, None)
    folder, held = held_folder("whyscore-ray-")
    shipment = Shipment(str(moved), folder, {name: path for path, name in files.items()}, held)
    try:
        _copy_sources(files, folder)
    except BaseException:
        shipment.clear()
        raise
    return shipment


def _copy_sources(files: Mapping[str, str], folder: Path) -> None:
    """Copy each file, under its new name, and the modules beside it that it imports."""
    for path, name in files.items():
        (_, content), *others = read_sources(Path(path).resolve()).contents.items()
        for place, text in ((folder / name, content), *((folder / other, text) for other, text in others)):
            if place.exists() and place.read_bytes() != text:
                raise ExecutionError(f"two files {place.relative_to(folder)} differ: give one of them another name")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(text)


def _relocate(value: Value, files: dict[str, str]) -> Value:
    if isinstance(value, Spec):
        positional = tuple(_relocate(item, files) for item in value.positional)
        return Spec(value.name, positional, tuple((name, _relocate(item, files)) for name, item in value.named))
    if isinstance(value, tuple):
        return tuple(_relocate(item, files) for item in value)
    if not isinstance(value, str):
        return value
    place, _, name = value.rpartition(":")
    if not place.endswith(".py") or not Path(place).is_file():
        return value
    moved = files.setdefault(place, f"shipped_{len(files)}.py")
    return f"{moved}:{name}"


_AHEAD = 2
_TRIES = 3
_PATIENCE = 120.0
"""Seconds that a cluster has to make room for a first worker: nodes may be on their way."""


class Answered(NamedTuple):
    """What a worker sends back."""

    rows: FloatMatrix
    failures: dict[int, str]
    seconds: float


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
    crew: list["_Work"] = field(default_factory=list, init=False, repr=False, compare=False)
    """The workers of the last call, waiting for the next one."""

    fields: ClassVar[Mapping[Literal["workers", "address"], str]] = MappingProxyType(
        {"workers": "workers", "address": "address"}
    )
    batch: ClassVar[int] = 64

    def __post_init__(self) -> None:
        check_fields(self)
        for name, value, least in (("workers", self.workers, 0), ("cores", self.cores, 0), ("gpus", self.gpus, 0)):
            if value < least:
                raise SpecError(f"ray: {name} is {value}, expected {least} or more")

    def run(self, metric: Metric, segments: Sequence[Segment], batches: Iterable[Sequence[int]]) -> Iterator[Part]:
        waiting = iter(batches)
        first = next(waiting, None)
        if first is None:
            return
        work = self._gather(metric)
        try:
            yield from work.parts(segments, chain([first], waiting))
        except BaseException:
            work.close()
            raise
        if work.shipped.folder is None:
            self.crew.append(work)
        else:
            work.close()

    def _gather(self, metric: Metric) -> "_Work":
        """Return the workers of the last call where they can go on, otherwise new ones."""
        shipped = ship(spec_of(metric))
        try:
            if self.crew:
                work = self.crew.pop()
                if _resume(work, metric, shipped):
                    return work
            return _Work(replace(self), self.rates, metric, shipped)
        except BaseException:
            shipped.clear()
            raise


def _resume(work: "_Work", metric: Metric, shipped: Shipment) -> bool:
    """Return whether workers go on with a metric; they are ended where they cannot."""
    resumed = False
    try:
        resumed = work.resume(metric, shipped)
    finally:
        if not resumed:
            work.close()
    return resumed


class _Resident:
    """A worker: the metric, built once."""

    metric: Metric

    def here(self) -> str:
        """Return where this is: the worker has found a place."""
        return socket.gethostname()

    def ready(self, spec: str) -> str:
        """Return the signature of the metric once it is built; its errors are those of a task, which come back."""
        self.metric = build(spec)
        return str(self.metric.signature())

    def answer(self, texts: Sequence[Texts]) -> Answered:
        """Return the rows of one batch."""
        start = time.perf_counter()
        answer = ask(self.metric, [Segment(*text) for text in texts])
        return Answered(answer.rows, answer.failures, time.perf_counter() - start)


class _Task(NamedTuple):
    worker: str
    batch: Sequence[int] | None = None
    """None while the worker looks for a place and builds its metric."""


class _Work:
    """The work on a metric: who is there, who does what, and what is left.

    It does not know the executor that holds it, so that the workers end with the last reference to that.
    """

    def __init__(self, settings: Ray, rates: dict[str, Rate], metric: Metric, shipped: Shipment) -> None:
        self.settings, self.rates, self.spec, self.shipped = settings, rates, spec_of(metric), shipped
        self.session = connect(settings.address, shipped.folder)
        self.signature = str(metric.signature())
        self.workers: dict[str, ActorHandle[_Resident]] = {}
        self.places: dict[str, str] = {}
        self.able: set[str] = set()
        self.running: dict[ObjectRef[object], _Task] = {}
        self.again: deque[Sequence[int]] = deque()
        self.deaths: Counter[int] = Counter()
        self.started = self.unable = 0
        self.wanted = self._count_workers()
        for _ in range(self.wanted):
            self._start()

    def resume(self, metric: Metric, shipped: Shipment) -> bool:
        """Return whether the workers can go on with a metric; they build it where it is another one.

        Files go along when a cluster is joined, so that they need new workers. So does another metric while some are
        still building the last one. Where the cluster has grown, more workers join.
        """
        if shipped.folder is not None or not self.workers or session() != self.session:
            return False
        signature = str(metric.signature())
        if (shipped.spec, signature) != (self.spec, self.signature):
            if self.running:
                return False
            self.spec, self.shipped, self.signature = shipped.spec, shipped, signature
            self.able.clear()
            for name, worker in self.workers.items():
                self.running[worker.ready.remote(self.spec)] = _Task(name)
        self.deaths.clear()
        self.unable = 0
        wanted = self._count_workers()
        for _ in range(self.wanted, wanted):
            self._start()
        self.wanted = wanted
        return True

    def parts(self, segments: Sequence[Segment], batches: Iterator[Sequence[int]]) -> Iterator[Part]:
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
                self._check_patience()
                continue
            first = self._first(done[0])
            task = self.running.pop(first)
            answer = self._answer(first, task)
            if answer is not None and task.batch is not None:
                yield Part(task.batch, answer.rows, answer.failures)

    def close(self) -> None:
        """Let the workers go."""
        for name in list(self.workers):
            self._let_go(name)
        self.shipped.clear()

    def _idle(self) -> str | None:
        """Return a worker that is ready and has room for a batch, the least busy first."""
        busy = Counter(task.worker for task in self.running.values())
        free = [name for name in self.workers if name in self.able and busy[name] < _AHEAD]
        return min(free, key=lambda name: busy[name]) if free else None

    def _busy(self) -> bool:
        return any(task.batch is not None for task in self.running.values())

    def _ask(self, worker: str, batch: Sequence[int], segments: Sequence[Segment]) -> None:
        self.running[self.workers[worker].answer.remote(texts_of(segments, batch))] = _Task(worker, batch)

    def _first(self, done: "ObjectRef[object]") -> "ObjectRef[object]":
        """Return the first task of the same worker: it works in order, so the first that fails is what killed it."""
        worker = self.running[done].worker
        return next(reference for reference, task in self.running.items() if task.worker == worker)

    def _answer(self, done: "ObjectRef[object]", task: _Task) -> Answered | None:
        """Return what a worker answered; None where it has become ready, cannot work, or died."""
        import ray  # noqa: PLC0415 - an optional package

        try:
            answer = ray.get(done)
        except ray.exceptions.RayTaskError as error:
            if task.batch is not None:
                raise to_local_error(error.cause, self.spec) from error
            self._exclude(task.worker, to_local_error(error.cause, self.spec))
            return None
        except ray.exceptions.RayError as error:
            self._handle_death(task, error)
            return None
        if isinstance(answer, Answered):
            rate = self.rates.setdefault(task.worker, Rate())
            rate.texts, rate.seconds = rate.texts + len(answer.rows), rate.seconds + answer.seconds
            return Answered(np.array(answer.rows), answer.failures, answer.seconds)
        self._register(task.worker, str(answer))
        return None

    def _register(self, worker: str, message: str) -> None:
        """Note where a worker is, and then which metric it has built."""
        if worker not in self.places:
            self.places[worker] = message
        elif (signature := self.shipped.original(message)) != self.signature:
            reason = f"its metric is {signature}, here it is {self.signature}. Install the same versions and models"
            self._exclude(worker, ExecutionError(f"a worker on {self.places[worker]} differs: {reason}"))
        else:
            self.able.add(worker)

    def _exclude(self, worker: str, error: Exception) -> None:
        """Go on without a worker that could not build the metric, as long as others can or may."""
        if worker not in self.workers:
            return
        self._let_go(worker)
        self.unable += 1
        place = self.places.get(worker)
        note = f"{worker}{f' on {place}' if place else ''} was left out ({one_line(error)})"
        self.rates[note] = Rate()
        # Those without a place would get that of the one who failed, and so fail one after the other.
        if not self.workers or (self.unable >= _TRIES and not any(name in self.places for name in self.workers)):
            raise error

    def _handle_death(self, task: _Task, error: Exception) -> None:
        """Give a batch back; the first sign of a death starts another worker."""
        first = task.worker in self.workers
        if task.batch is None:
            if first and self.unable + 1 < _TRIES:
                self._start()
            why = one_line(getattr(error, "cause", None) or error)
            self._exclude(task.worker, ExecutionError(f"no worker could build {self.spec}: {why}"))
            return
        self.again.append(task.batch)
        if not first:
            return  # it was waiting behind the batch that the worker died on
        self._let_go(task.worker)
        self._start()
        self.deaths[task.batch[0]] += 1
        if self.deaths[task.batch[0]] >= _TRIES:
            raise ExecutionError(
                f"{_TRIES} workers that ran {self.spec} died on the same {len(task.batch)} texts (killed, or out of "
                "memory); what was scored is kept. Run the same command again to go on"
            ) from error

    def _let_go(self, worker: str) -> None:
        """Stop a worker, also one that is only thought to be dead: its place is needed."""
        import ray  # noqa: PLC0415 - an optional package

        ray.kill(self.workers.pop(worker), no_restart=True)
        self.able.discard(worker)

    def _check_patience(self) -> None:
        """Refuse to wait for a cluster without room for a single worker; a metric may take its time to build."""
        if not any(name in self.places for name in self.workers):
            reason = no_room(self.settings.cores, self.settings.gpus)
            raise ExecutionError(f"{reason} (waited for {_PATIENCE:.0f} seconds); what was scored is kept")

    def _count_workers(self) -> int:
        """Return how many workers to start; more than fit are waited for, where a cluster may grow."""
        import ray  # noqa: PLC0415 - an optional package

        settings = self.settings
        available = room(ray.nodes(), settings.cores, settings.gpus)  # type: ignore[no-untyped-call]
        if not available and not (settings.workers and settings.address):
            raise ExecutionError(no_room(settings.cores, settings.gpus))
        return settings.workers or available

    def _start(self) -> None:
        import ray  # noqa: PLC0415 - an optional package

        name = f"worker-{self.started}"
        self.started += 1
        resident = ray.remote(_Resident).options(**worker_options(self.settings.cores, self.settings.gpus))
        worker: ActorHandle[_Resident] = resident.remote()  # type: ignore[assignment]
        self.workers[name] = worker
        self.running[worker.here.remote()] = _Task(name)
        self.running[worker.ready.remote(self.shipped.spec)] = _Task(name)
