"""How long scoring takes beside sacreBLEU doing the same, in one run on the same texts.

    python benchmarks/bench_score.py [FOLDER]

FOLDER holds a reference and two systems (WMT19 de-en: newstest2019-deen-ref.en and two outputs); without it, texts are
made up. Judged are ratios: cold and warm against sacreBLEU, two processes against one on TER, the medians of five runs
in turn. Seconds are printed only. Two processes cannot be faster than one where the other core is taken: the load is
printed beside them.
"""

import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from sacrebleu.metrics import BLEU, CHRF, TER

import whyscore as ws
from whyscore.scoring.executors import Processes, Serial

LIMITS = {"cold": 1.2, "warm": 0.1, "processes": 1.6}
SEGMENTS = 2000
FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "muler" / "wmt19_deen"


def texts(folder: Path) -> tuple[list[str], dict[str, list[str]]]:
    """Return a reference and the outputs of two systems."""
    if folder.is_dir():
        read = {path.name: path.read_text("utf-8").split("\n")[:SEGMENTS] for path in sorted(folder.iterdir())}
        reference = next(name for name in read if "-ref." in name)
        return read.pop(reference), read
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdefghij", k=draw.randint(2, 9))) for _ in range(3000)]
    lines = [" ".join(draw.choices(words, k=draw.randint(5, 40))) for _ in range(SEGMENTS)]
    return lines, {name: [_changed(line, words, draw) for line in lines] for name in ("one", "two")}


def _changed(line: str, words: list[str], draw: random.Random) -> str:
    return " ".join(draw.choice(words) if draw.random() < 0.4 else word for word in line.split())


def seconds(work: Callable[[], object]) -> float:
    """Return how long a call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def load() -> str:
    """Return how busy the machine is."""
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


def peer(reference: list[str], systems: dict[str, list[str]]) -> list[float]:
    """Return sacreBLEU's corpus scores: each metric prepares the references once for both systems."""
    metrics = [kind(references=[reference]) for kind in (BLEU, CHRF, TER)]
    return [metric.corpus_score(system, None).score for metric in metrics for system in systems.values()]


def compare_processes(reference: list[str], systems: dict[str, list[str]]) -> tuple[float, float]:
    """Return how long TER takes in one process and in two; no text is scored twice, as pairs are remembered."""
    taken: dict[int, list[float]] = {1: [], 2: []}
    for run in range(6):
        for jobs, times in taken.items():
            texts = {name: [line + " +" * (2 * run + jobs) for line in lines] for name, lines in systems.items()}
            data = ws.from_texts(texts, references=reference)
            resources = ws.Resources(executor=Serial() if jobs == 1 else Processes(jobs))
            times.append(seconds(lambda data=data, resources=resources: ws.score(data, "ter", resources=resources)))
    one, two = (median(times[1:]) for times in taken.values())  # in the first run workers are started
    return one, two


def main() -> int:
    """Print the ratios and return 1 if one is beyond its limit."""
    for name, limit in LIMITS.items():
        print(f"stated before  {name}: {limit} x")
    reference, systems = texts(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
    data = ws.from_texts(systems, references=reference)
    metrics = ["bleu", "chrf", "ter"]
    with tempfile.TemporaryDirectory() as folder:
        held = ws.Resources(store=ws.Store(Path(folder) / "store"))
        scored: list[float] = []
        theirs = seconds(lambda: scored.extend(peer(reference, systems)))
        cold = seconds(lambda: ws.score_systems(data, metrics, draws=0, resources=held))
        warm = seconds(lambda: ws.score_systems(data, metrics, draws=0, resources=held))
        with_intervals = seconds(lambda: ws.score_systems(data, metrics, resources=held))
        ours = [
            total.value
            for one in ws.score_systems(data, metrics, draws=0, resources=held)
            for total in one.totals.values()
        ]
    worst = max(abs(a - b) for a, b in zip(scored, ours, strict=True))
    one, two = compare_processes(reference, systems)
    ratios = {"cold": cold / theirs, "warm": warm / theirs, "processes": one / two}
    print(f"{len(data)} segments x {metrics}: sacreBLEU {theirs:.2f} s; largest difference {worst:.1e}")
    print(f"cold       {ratios['cold']:.2f} x sacreBLEU   (limit {LIMITS['cold']})")
    print(f"warm       {ratios['warm']:.3f} x sacreBLEU  (limit {LIMITS['warm']})")
    print(f"intervals  add {(with_intervals - warm) / theirs:.3f} x sacreBLEU")
    print(
        f"processes  {ratios['processes']:.2f} x one process on TER with two (at least {LIMITS['processes']}; {load()})"
    )
    fine = ratios["cold"] <= LIMITS["cold"] and ratios["warm"] <= LIMITS["warm"] and worst < 1e-9
    return 0 if fine and ratios["processes"] >= LIMITS["processes"] else 1


if __name__ == "__main__":
    sys.exit(main())
