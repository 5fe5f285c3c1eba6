"""A Ray cluster (https://docs.ray.io): how it is joined, how many workers it holds, and what each may take of it."""

import importlib
import logging
import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

from whyscore.errors import ExecutionError, MissingExtra, UnknownName, WhyscoreError
from whyscore.scoring.threads import limited_to

_KNOCK = 10.0
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5)
"""How HTTP/2, and so gRPC, which Ray speaks, begins (RFC 9113, section 3.4): a preface and empty settings."""
_START = "Start one with: ray start --head"


def connect(address: str | None, folder: Path | None) -> None:
    """Join or start a cluster; files go along when it is joined, so new files need a new connection."""
    try:
        import ray  # noqa: PLC0415 - an optional package
    except ImportError as error:
        raise MissingExtra.of("--executor ray", "ray") from error
    if ray.is_initialized():
        if folder is None and _same(address, ray.get_runtime_context().gcs_address):
            return
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
    except RuntimeError as error:  # other versions of Ray or Python there than here, or a node that does not start
        ray.shutdown()
        raise ExecutionError(f"cannot work with the Ray cluster at {address!r}: {one_line(error)}") from error
    # Ray would print news of lost nodes to stdout, among the data, whatever `log_to_driver` says.
    vars(importlib.import_module("ray._private.worker"))["_worker_logs_enabled"] = False


def one_line(error: object) -> str:
    """Return what an error says, on one line."""
    return " ".join(str(error).split()).removesuffix(".") or type(error).__name__


def own(cause: object, spec: str) -> Exception:
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
    wanted = {name: each for name, each in (("CPU", cores), ("GPU", gpus)) if each > 0}
    if not wanted:
        return len(there)
    return sum(
        min(int(has.get(name, 0.0) // each) for name, each in wanted.items()) for has in there if isinstance(has, dict)
    )


def taken(cores: float, gpus: float) -> dict[str, object]:
    """Return the options of a worker: its cores and GPUs, and no more threads than cores."""
    return {
        "num_cpus": cores,
        "num_gpus": gpus,
        "max_restarts": 0,
        "scheduling_strategy": "SPREAD",
        "runtime_env": {"env_vars": limited_to(int(cores))},
    }


def no_room(cores: float, gpus: float) -> str:
    """Return that no node has what a worker takes, and what can be done about it."""
    wanted = [
        f"{count:g} {name}{'s' if count > 1 else ''}" for count, name in ((cores, "core"), (gpus, "GPU")) if count
    ]
    cure = "Leave gpus out, or join a cluster that has some with --ray-address" if gpus else "Ask for fewer cores"
    return f"the Ray cluster has no node with {' and '.join(wanted)} for a worker. {cure}"


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
