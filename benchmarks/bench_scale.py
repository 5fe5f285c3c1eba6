"""How time and memory grow: segments, rows of the store, workers of a cluster.

    python benchmarks/bench_scale.py [--million] [--rows 1000000] [--only curve memory store overhead ray]

| part | judged |
|---|---|
| curve | processor seconds per segment by chrF at 1,000, 10,000 and 100,000 equally long segments: equal within 10 % |
| memory | peak of `whyscore score` at 100,000 and 300,000 segments, by a straight line at 1,000,000: under 4 GiB |
| store | reads and writes a second at 10^4, 10^6 and 10^7 rows: neither may become 10 times slower |
| overhead | microseconds a text that deduplication, batches and store add to a free metric; printed only |
| ray | TER by two resident workers against one, the medians of five runs in turn: at least 1.7 times as fast |

Judged are ratios and bytes; seconds are printed only. The load of the machine is printed beside what depends on it: two
workers cannot be faster than one on a machine whose other core is taken.
"""

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path

import numpy as np

import whyscore as ws
from whyscore.protocols import Metric
from whyscore.scoring.ray import Ray
from whyscore.scoring.stack import batches, prepare
from whyscore.scoring.store import Store, digest
from whyscore.testing.fakes import Constant
from whyscore.types import Segment

LIMITS = {"curve": 0.10, "gigabytes": 4.0, "store": 10.0, "ray": 1.7}
GIB = 2**30
WORDS = 12
BATCH = 512
READ = 10_000


def pairs(count: int, words: int = WORDS, seed: int = 0) -> Iterator[tuple[str, str]]:
    """Yield distinct hypotheses of equal length, each with its reference."""
    draw = random.Random(seed)
    known = ["".join(draw.choices("abcdefghijklmnop", k=5)) for _ in range(5000)]
    for _ in range(count):
        reference = draw.choices(known, k=words)
        hypothesis = [draw.choice(known) if draw.random() < 0.3 else word for word in reference]
        yield " ".join(hypothesis), " ".join(reference)


def segments(count: int, words: int = WORDS) -> list[Segment]:
    """Return segments of equal length."""
    return [Segment(hypothesis, references=(reference,)) for hypothesis, reference in pairs(count, words)]


def seconds(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Return how long a call takes."""
    start = clock()
    work()
    return clock() - start


def load() -> str:
    """Return how busy the machine is."""
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


def curve() -> bool:
    """Measure processor seconds per segment at three sizes; the best of some runs each, as the machine is shared."""
    clock = time.process_time
    data = segments(100_000)
    metric = ws.build("chrf")
    each = {}
    for count, runs in ((1000, 9), (10_000, 5), (100_000, 2)):
        part = data[:count]
        taken = [seconds(lambda part=part: prepare(metric, size=512).score(part), clock) for _ in range(runs)]
        each[count] = min(taken) / count
    middle = each[10_000]
    off = max(abs(value / middle - 1) for value in each.values())
    shown = ", ".join(f"{count:,}: {1e6 * value:.1f} µs" for count, value in each.items())
    print(
        f"curve     chrF per segment {shown}; {100 * off:.1f} % off a line "
        f"(limit {100 * LIMITS['curve']:.0f} %; {load()})"
    )
    return off <= LIMITS["curve"]


def peak(count: int, folder: Path) -> tuple[int, float]:
    """Return the largest memory of a process that scores so many segments, in bytes, and its seconds."""
    hypotheses, references = folder / f"h{count}.txt", folder / f"r{count}.txt"
    with hypotheses.open("w") as one, references.open("w") as other:
        for hypothesis, reference in pairs(count, 8):
            one.write(f"{hypothesis}\n")
            other.write(f"{reference}\n")
    command = [sys.executable, "-m", "whyscore", "score", "-t", str(hypotheses), "-r", str(references), "-m", "chrf"]
    start = time.perf_counter()
    process = subprocess.Popen([*command, "--store", str(folder / f"s{count}"), "-q"], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"scoring {count} segments failed")
    return used.ru_maxrss * 1024, time.perf_counter() - start


def memory(*, million: bool) -> bool:
    """Measure the peak at some sizes and draw a line to a million."""
    counts = (100_000, 300_000, 1_000_000) if million else (100_000, 300_000)
    peaks = {}
    with tempfile.TemporaryDirectory() as folder:
        for count in counts:
            peaks[count], took = peak(count, Path(folder))
            print(f"memory    {count:>9,} segments by chrF: {peaks[count] / GIB:.2f} GiB, {took:.0f} s ({load()})")
    slope = (peaks[300_000] - peaks[100_000]) / 200_000
    most = peaks.get(1_000_000, peaks[100_000] + slope * 900_000) / GIB
    print(
        f"memory    at 1,000,000: {most:.2f} GiB{'' if million else ' by the line'} (limit {LIMITS['gigabytes']} GiB)"
    )
    return most <= LIMITS["gigabytes"]


def store(rows: list[int]) -> bool:
    """Measure reads and writes a second at some numbers of rows."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        held = Store(Path(folder) / "scores.sqlite")
        written = 0
        for target in rows:
            fill(held, written, target - target // 10)
            writes = target // 10 / seconds(lambda target=target: fill(held, target - target // 10, target))
            written = target
            reads = READ / min(seconds(lambda wanted=wanted: held.get("m", wanted, 1)) for wanted in asked(written))
            found.append((writes, reads))
            print(
                f"store     {written:>10,} rows: {writes:,.0f} writes/s, {reads:,.0f} reads/s, "
                f"{held.size() / written:.0f} bytes a row ({load()})"
            )
        held.close()
    slower = [first / last for first, last in zip(found[0], found[-1], strict=True)]
    print(
        f"store     writing became {slower[0]:.1f}, reading {slower[1]:.1f} times slower (limit {LIMITS['store']:.0f})"
    )
    return max(slower) <= LIMITS["store"]


def fill(held: Store, first: int, last: int) -> None:
    """Write rows in batches of the size that runs have."""
    for start in range(first, last, BATCH):
        keys = [key(number) for number in range(start, min(start + BATCH, last))]
        held.put("m", keys, np.ones((len(keys), 1)))


def asked(written: int) -> Iterator[list[bytes]]:
    """Yield keys of rows that are there: others in each of three rounds, so that none is read twice."""
    draw = np.random.default_rng(0)
    for _ in range(3):
        yield [key(int(number)) for number in draw.integers(0, written, READ)]


def key(number: int) -> bytes:
    """Return a digest that can be made again."""
    return blake2b(number.to_bytes(8, "big"), digest_size=16).digest()


def overhead() -> bool:
    """Measure what the stack around a metric costs a text."""
    data = segments(20_000)
    free: Metric = Constant(1.0)
    with tempfile.TemporaryDirectory() as folder:
        held = Store(Path(folder) / "scores.sqlite")
        taken = {
            "the metric alone": min(seconds(lambda: free.score(data)) for _ in range(3)),
            "deduplicated, in batches": min(seconds(lambda: prepare(free, size=512).score(data)) for _ in range(3)),
            "stored": seconds(lambda: prepare(free, store=held).score(data)),
            "known": min(seconds(lambda: prepare(free, store=held).score(data)) for _ in range(3)),
            "digests alone": min(seconds(lambda: [digest(segment) for segment in data]) for _ in range(3)),
        }
        held.close()
    print(
        "overhead  "
        + ", ".join(f"{name} {1e6 * value / len(data):.1f} µs" for name, value in taken.items())
        + " a text"
    )
    return True


def rate(workers: int, data: list[Segment]) -> float:
    """Return texts a second from the moment on when every worker has answered once."""
    executor = Ray(workers=workers)
    start, done = None, 0
    for part in executor.run(ws.build("ter"), data, batches(data, executor.batch)):
        if start is not None:
            done += len(part.indices)
        elif len(executor.rates) == workers:
            start = time.perf_counter()
    if start is None:
        raise SystemExit("a worker never answered: give more texts")
    return done / (time.perf_counter() - start)


def ray() -> bool:
    """Measure two workers against one."""
    data = segments(12_000, 30)
    found: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(5):
        for workers, rates in found.items():
            rates.append(rate(workers, data))
            print(f"ray       {workers} worker(s): {rates[-1]:,.0f} texts/s by TER ({load()})")
    ratio = statistics.median(found[2]) / statistics.median(found[1])
    print(f"ray       two workers are {ratio:.2f} times as fast as one (at least {LIMITS['ray']})")
    return ratio >= LIMITS["ray"]


def main() -> int:
    """Print all parts and return 1 if one is beyond its limit."""
    parser = argparse.ArgumentParser(description="How time and memory grow.")
    parser.add_argument("--million", action="store_true", help="score a million segments too: minutes")
    parser.add_argument(
        "--rows", type=int, default=10_000_000, help="rows of the store at the most; ten million take minutes"
    )
    parts = ("curve", "memory", "store", "overhead", "ray")
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    given = parser.parse_args()
    rows = [count for count in (10_000, 1_000_000, 10_000_000) if count <= given.rows]
    work: dict[str, Callable[[], bool]] = {
        "curve": curve,
        "memory": lambda: memory(million=given.million),
        "store": lambda: store(rows),
        "overhead": overhead,
        "ray": ray,
    }
    fine = [work[name]() for name in given.only]
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
