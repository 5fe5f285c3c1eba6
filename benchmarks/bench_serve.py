"""How the server holds up: 64 connections at once ask for chrF scores until 4,000 answers are there.

    python benchmarks/bench_serve.py

1. All requests are honest. None may fail, and the slowest hundredth may take at most so many times as long as the
   median: with 64 clients and two workers everybody waits in turn, nobody for ever.
2. Every tenth request is hostile: long texts under TER, an explanation of thousands of probes, options beyond all
   numbers, specs where names are expected, JSON nested deep or full of mistakes, a workbook that unpacks to gigabytes,
   a client that leaves at once or does not read its answers, and bodies and headers that never end. No honest request
   may fail. The server and its workers may have at most so many times as much memory at the end as after the first
   quarter.

Times are printed; only counts and ratios are judged.
"""

import asyncio
import contextlib
import io
import json
import math
import random
import socket
import subprocess
import sys
import time
import zipfile
from dataclasses import dataclass, field
from functools import cache

CONNECTIONS = 64
ANSWERS = 4_000
MOST_FAILED = 0
MOST_SPREAD = 5.0
"""The 99th percentile of the waiting time over the median."""
MOST_MEMORY = 1.5
"""Memory at the end over memory after a quarter of the answers."""

HONEST: dict[str, object] = {
    "segments": [{"hypothesis": "the cat sat on the mat", "references": ["a cat sat on a mat"]}] * 5,
    "metric": {"name": "chrf"},
}
LONG = {"hypothesis": "a b c " * 200, "references": ["b a d " * 200]}
PATIENCE = 5
"""Seconds that a hostile client waits for its answer."""


def main() -> int:
    """Start the server, load it, and say how long answers took."""
    good = True
    for hostile in (0, 10):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        command = [sys.executable, "-m", "whyscore", "serve", "--port", str(port), "--store", "none", "-q"]
        with subprocess.Popen(command, start_new_session=True) as server:
            try:
                _wait(port)
                start = time.perf_counter()
                load = asyncio.run(_load(port, server.pid, hostile))
                seconds = time.perf_counter() - start
            finally:
                server.terminate()
        waits = sorted(load.waits)
        middle, slow = waits[len(waits) // 2], waits[int(len(waits) * 0.99)]
        growth = load.memory[-1] / load.memory[len(load.memory) // 4]
        print(
            f"{CONNECTIONS} connections, {hostile} % hostile: {len(waits)} honest answers, "
            f"{len(waits) / seconds:.0f} per second; median {middle * 1000:.0f} ms, p99 {slow * 1000:.0f} ms, "
            f"failed {load.failed}; memory {load.memory[-1]:.0f} MB, {growth:.2f} times that after a quarter"
        )
        good = good and load.failed <= MOST_FAILED and growth <= MOST_MEMORY
        good = good and (hostile > 0 or slow <= MOST_SPREAD * middle)
    print("ok" if good else f"limits: {MOST_FAILED} failed, p99 / median {MOST_SPREAD}, memory {MOST_MEMORY} times")
    return 0 if good else 1


def _wait(port: int) -> None:
    for _ in range(300):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit("the server did not start")


@dataclass
class Load:
    """What clients saw."""

    waits: list[float] = field(default_factory=list)
    failed: int = 0
    memory: list[float] = field(default_factory=list)
    """Megabytes of the server and its workers, from time to time."""


async def _load(port: int, server: int, hostile: int) -> Load:
    """Return what all clients saw; `hostile` percent of their requests do harm."""
    load, left, draw = Load(), ANSWERS, random.Random(0)

    async def client() -> None:
        nonlocal left
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while left > 0:
            left -= 1
            if draw.random() < hostile / 100:
                await _harm(port, draw)
                continue
            start = time.perf_counter()
            try:
                status = await _asked(reader, writer, HONEST)
            except (OSError, asyncio.IncompleteReadError, IndexError):  # closed after seconds without a request
                writer.close()
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                status = await _asked(reader, writer, HONEST)
            load.waits.append(time.perf_counter() - start)
            load.failed += status != 200
            if len(load.waits) % 50 == 0:
                load.memory.append(_megabytes(server))
        writer.close()

    await asyncio.gather(*(client() for _ in range(CONNECTIONS)))
    return load


async def _harm(port: int, draw: random.Random) -> None:
    """Send a hostile request on a connection of its own, and leave after a while or at once."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with contextlib.suppress(OSError, TimeoutError):
        writer.write(draw.choice(_hostile()))
        await asyncio.wait_for(writer.drain(), PATIENCE)
        if draw.random() < 0.8:
            await asyncio.wait_for(reader.read(1), PATIENCE)
    writer.close()


@cache
def _hostile() -> list[bytes]:
    """Return hostile requests as they go over the wire."""
    start = b"POST /api/score HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    segments, many = HONEST["segments"], {f"x{k}": [] for k in range(20_000)}
    metrics: list[dict[str, object]] = [
        *({"name": "chrf", "options": {"char_order": value}} for value in (100_000_000, 10**400, math.nan, "1e9")),
        *({"name": name} for name in ("boosted(metric=boosted(metric=chrf))", "ensemble(" * 1000, "os:system")),
        {"name": "chrf", "options": many},
    ]
    explained = {"hypothesis": "a b c " * 30, "references": ["b a d " * 30]}
    lime = {"name": "lime", "options": {"samples": 10**9}}
    workbook = io.BytesIO()
    with zipfile.ZipFile(workbook, "w", zipfile.ZIP_DEFLATED) as book, book.open("xl/workbook.xml", "w") as part:
        for _ in range(1000):
            part.write(bytes(10**6))
    return [
        *(_request({"segments": segments, "metric": metric}) for metric in metrics),
        *(_request({"segments": [LONG] * number, "metric": {"name": "ter"}}) for number in (1, 50)),
        _request({"segment": explained, "explainer": {"name": "shap"}}),
        _request({"segment": explained, "explainer": lime}),
        _request({"segments": [many] * 10}),
        _posted("/api/score", b'{"segments":' + b"[" * 100_000),
        _posted("/api/uploads?name=x.xlsx", workbook.getvalue(), "X-Whyscore: upload"),
        _request(HONEST).replace(b"localhost", b"elsewhere.example"),
        b"GET /static/page.css HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100,
        start,
        start + b"Content-Length: 4000000\r\n\r\n" + b"x" * 2_000_000,
        start + b"Content-Length: " + b"9" * 30 + b"\r\n\r\n",
        start + b"Transfer-Encoding: chunked\r\n\r\n" + (b"10000\r\n" + bytes(65_536) + b"\r\n") * 20,
    ]


def _megabytes(server: int) -> float:
    """Return how much memory the server and the processes it started have: all of its session."""
    listed = subprocess.run(["ps", "-s", str(server), "-o", "rss="], capture_output=True, text=True, check=False)
    return sum(map(int, listed.stdout.split())) / 1024


def _request(question: dict[str, object]) -> bytes:
    return _posted("/api/score" if "segments" in question else "/api/explain", json.dumps(question).encode())


def _posted(path: str, body: bytes, *headers: str) -> bytes:
    head = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", *headers]
    return "\r\n".join([*head, f"Content-Length: {len(body)}", "", ""]).encode() + body


async def _asked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, question: dict[str, object]) -> int:
    """Return the status of one question."""
    writer.write(_request(question))
    await writer.drain()
    status = int((await reader.readline()).split()[1])
    length = 0
    while (line := await reader.readline()) not in (b"\r\n", b""):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    await reader.readexactly(length)
    return status


if __name__ == "__main__":
    raise SystemExit(main())
