"""How time and memory grow: segments, rows of the store, workers of a cluster.

    python benchmarks/bench_scale.py [--million] [--rows 1000000] [--only curve evaluate memory store overhead ray]

| part | judged |
|---|---|
| curve | processor seconds per segment by chrF at 1,000, 10,000 and 100,000 equally long segments: equal within 10 % |
| evaluate | processor seconds a segment of `evaluate -m chrf --budget 0` beyond 10,000: at most 10 % more than below |
| memory | peak of `whyscore score` at 100,000 and 300,000 segments, by a straight line at 1,000,000: at most 1.2 GiB |
| store | reads and writes a second at 10^4, 10^6 and 10^7 rows: neither may become 10 times slower |
| overhead | microseconds a text that deduplication, batches and store add to a free metric; printed only |
| ray | `evaluate` by a slow metric, two workers of a running cluster against one: at least 1.7 times as fast |

`evaluate` has features, tests and a report, on two systems. For the part `ray` it explains by LIME; the medians of five
runs in turn are compared, from texts to page. The metric is `xbertscore`, milliseconds a text, as workers are for slow
metrics; the same by TER, microseconds a text, is printed beside it and not judged. Workers take seconds to start,
however many there are; a run of half a minute on one worker, still short for a cluster, shows what they do then.

Judged are ratios and bytes; seconds are printed only. The load of the machine is printed beside what depends on it: two
workers cannot be faster than one on a machine whose other core is taken. So the part `ray` also prints the processor
seconds of the main process, which workers cannot share, and of the same run without workers.
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
from typing import NamedTuple

import numpy as np

import whyscore as ws
from bench_score import load
from whyscore.protocols import Executor, Metric
from whyscore.report.page import html
from whyscore.scoring.executors import Serial, limit_threads
from whyscore.scoring.ray import Ray, connect
from whyscore.scoring.stack import prepare
from whyscore.scoring.store import Store, digest
from whyscore.testing.fakes import Constant
from whyscore.types import Segment

LIMITS = {"curve": 0.10, "evaluate": 0.10, "gigabytes": 1.2, "store": 10.0, "ray": 1.7}
GIB = 2**30
WORDS = 12
BATCH = 512
READ = 10_000
LIME = "lime(samples=100)"
SLOW = "xbertscore"
RAY = {SLOW: (500, 100), "ter": (1000, 400)}
"""The segments of a run of each metric, and how many of them are explained."""


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


class Spent(NamedTuple):
    """What a command took."""

    seconds: float
    """Of the processor."""
    memory: int
    """Bytes at the most."""


def write(folder: Path, count: int, words: int) -> list[str]:
    """Write two systems and their reference, and return the options that name them."""
    systems = [folder / f"{name}-{count}.txt" for name in ("reference", "first", "second")]
    draw = random.Random(1)
    with systems[0].open("w") as reference, systems[1].open("w") as first, systems[2].open("w") as second:
        for hypothesis, text in pairs(count, words):
            reference.write(f"{text}\n")
            first.write(f"{hypothesis}\n")
            second.write(" ".join("other" if draw.random() < 0.2 else word for word in text.split()) + "\n")
    return ["-r", str(systems[0]), "-t", *map(str, systems[1:])]


def spend(*arguments: str) -> Spent:
    """Run a command in a process of its own, with one thread: several wait for each other, which costs seconds too."""
    command = [sys.executable, "-m", "whyscore", *arguments, "-q"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=os.environ | limit_threads(1))
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"whyscore {arguments[0]} failed")
    return Spent(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)


def grow() -> bool:
    """Measure the processor seconds of `evaluate` without explanations at three sizes."""
    spent = {}
    with tempfile.TemporaryDirectory() as folder:
        for count, runs in ((1000, 5), (10_000, 3), (100_000, 1)):
            files = write(Path(folder), count, WORDS)
            command = ["evaluate", *files, "-m", "chrf", "--budget", "0", "--store", "none", "--jobs", "1"]
            taken = [spend(*command, "-o", f"{folder}/run-{count}-{k}") for k in range(runs)]
            spent[count] = Spent(statistics.median(one.seconds for one in taken), max(one.memory for one in taken))
            print(
                f"evaluate  {count:>7,} segments x 2: {spent[count].seconds:.1f} s of the processor, "
                f"{spent[count].memory / GIB:.2f} GiB ({load()})"
            )
    below, beyond = (
        (spent[more].seconds - spent[less].seconds) / (more - less)
        for less, more in ((1000, 10_000), (10_000, 100_000))
    )
    off = beyond / below - 1
    print(
        f"evaluate  one more segment: {1e3 * below:.2f} ms below 10,000, {1e3 * beyond:.2f} ms beyond: "
        f"{100 * off:+.1f} % (limit {100 * LIMITS['evaluate']:.0f} %)"
    )
    return off <= LIMITS["evaluate"]


def memory(*, million: bool) -> bool:
    """Measure the peak at some sizes and draw a line to a million."""
    counts = (100_000, 300_000, 1_000_000) if million else (100_000, 300_000)
    peaks = {}
    with tempfile.TemporaryDirectory() as folder:
        for count in counts:
            files = write(Path(folder), count, 8)[:-1]
            took, peaks[count] = spend("score", *files, "-m", "chrf", "--store", f"{folder}/s{count}")
            print(
                f"memory    {count:>9,} segments by chrF: {peaks[count] / GIB:.2f} GiB, {took:.0f} s of the processor"
            )
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


def evaluate(metric: str, executor: Executor) -> tuple[float, float]:
    """Return the seconds of a run from texts to page, and those of the processor in this process."""
    count, budget = RAY[metric]
    texts = list(pairs(count, 30))
    data = ws.from_texts(
        {"first": [one for one, _ in texts]}, [other for _, other in texts], [other for _, other in texts]
    )
    with tempfile.TemporaryDirectory() as folder:
        start, used = time.perf_counter(), time.process_time()
        resources = ws.Resources(executor=executor)
        run = ws.evaluate(data, [metric], output=folder, explainers=(LIME,), budget=budget, resources=resources)
        html(ws.report(run))
        return time.perf_counter() - start, time.process_time() - used


def ray() -> bool:
    """Measure two workers against one."""
    connect(None, None)
    ratios = {metric: _compare_workers(metric) for metric in RAY}
    for metric, ratio in ratios.items():
        limit = f"at least {LIMITS['ray']}" if metric == SLOW else "not judged"
        print(f"ray       {metric}: two workers are {ratio:.2f} times as fast as one ({limit})")
    return ratios[SLOW] >= LIMITS["ray"]


def _compare_workers(metric: str) -> float:
    """Return how many times as fast as one worker two are, and print what they took."""
    alone = evaluate(metric, Serial())[1]
    print(f"ray       {metric}, {RAY[metric][0]} segments: without workers {alone:.1f} s of the processor")
    taken: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(5):
        for workers, walls in taken.items():
            wall, main_process = evaluate(metric, Ray(workers=workers))
            walls.append(wall)
            print(
                f"ray       {metric}, {workers} worker(s): {wall:.1f} s; "
                f"main process {main_process:.1f} s of the processor ({load()})"
            )
    return statistics.median(taken[1]) / statistics.median(taken[2])


def main() -> int:
    """Print all parts and return 1 if one is beyond its limit."""
    parser = argparse.ArgumentParser(description="How time and memory grow.")
    parser.add_argument("--million", action="store_true", help="score a million segments too: minutes")
    parser.add_argument(
        "--rows", type=int, default=10_000_000, help="rows of the store at the most; ten million take minutes"
    )
    parts = ("curve", "evaluate", "memory", "store", "overhead", "ray")
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    given = parser.parse_args()
    rows = [count for count in (10_000, 1_000_000, 10_000_000) if count <= given.rows]
    work: dict[str, Callable[[], bool]] = {
        "curve": curve,
        "evaluate": grow,
        "memory": lambda: memory(million=given.million),
        "store": lambda: store(rows),
        "overhead": overhead,
        "ray": ray,
    }
    for name, limit in LIMITS.items():
        print(f"stated before  {name}: {limit}")
    fine = [work[name]() for name in given.only]
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
