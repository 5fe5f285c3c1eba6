"""How the server holds up: 64 connections at once ask for chrF scores until 4,000 answers are there.

    python benchmarks/bench_serve.py

No answer may fail, and the slowest hundredth may take at most so many times as long as the median: with 64 askers and
two workers everybody waits in turn, nobody for ever. Times are printed; only counts and ratios are judged.
"""

import asyncio
import json
import socket
import subprocess
import sys
import time

CONNECTIONS = 64
ANSWERS = 4_000
MOST_FAILED = 0
MOST_SPREAD = 5.0
"""The 99th percentile of the waiting time over the median."""

QUESTION = json.dumps(
    {
        "segments": [{"hypothesis": "the cat sat on the mat", "references": ["a cat sat on a mat"]}] * 5,
        "metric": {"name": "chrf"},
    }
).encode()


def main() -> int:
    """Start the server, load it, and say how long answers took."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "whyscore", "serve", "--port", str(port), "--store", "none", "-q"]
    with subprocess.Popen(command) as server:
        try:
            _wait(port)
            start = time.perf_counter()
            waits, failed = asyncio.run(_load(port))
            seconds = time.perf_counter() - start
        finally:
            server.terminate()
    middle, slow = waits[len(waits) // 2], waits[int(len(waits) * 0.99)]
    print(
        f"{CONNECTIONS} connections, {len(waits)} answers, {len(waits) / seconds:.0f} per second; "
        f"median {middle * 1000:.0f} ms, p99 {slow * 1000:.0f} ms, failed {failed}"
    )
    good = failed <= MOST_FAILED and slow <= MOST_SPREAD * middle
    print("ok" if good else f"above the limit: {MOST_FAILED} failed, p99 / median {MOST_SPREAD}")
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


async def _load(port: int) -> tuple[list[float], int]:
    """Return the sorted waiting times of all answers, and how many failed."""
    waits: list[float] = []
    failed = 0
    left = ANSWERS

    async def asker() -> None:
        nonlocal left, failed
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while left > 0:
            left -= 1
            start = time.perf_counter()
            status = await _asked(reader, writer)
            waits.append(time.perf_counter() - start)
            failed += status != 200
        writer.close()

    await asyncio.gather(*(asker() for _ in range(CONNECTIONS)))
    return sorted(waits), failed


async def _asked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
    """Return the status of one question."""
    head = ["POST /api/score HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
    head += [f"Content-Length: {len(QUESTION)}", "", ""]
    writer.write("\r\n".join(head).encode() + QUESTION)
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
