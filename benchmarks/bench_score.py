"""How long scoring takes beside sacreBLEU doing the same, in one run on the same texts.

    python benchmarks/bench_score.py [FOLDER]

FOLDER holds a reference and two systems (WMT19 de-en: newstest2019-deen-ref.en and two outputs); without it, texts are
made up. Judged are ratios: cold and warm against sacreBLEU, two processes against one. Seconds are printed only.
"""

import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from sacrebleu.metrics import BLEU, CHRF, TER

import whyscore as ws
from whyscore.scoring.executors import Processes

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


def peer(reference: list[str], systems: dict[str, list[str]]) -> list[float]:
    """Return sacreBLEU's corpus scores: each metric prepares the references once for both systems."""
    metrics = [kind(references=[reference]) for kind in (BLEU, CHRF, TER)]
    return [metric.corpus_score(system, None).score for metric in metrics for system in systems.values()]


def main() -> int:
    """Print the ratios and return 1 if one is beyond its limit."""
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
    ws.score(data, "ter", resources=ws.Resources(executor=Processes(2)))  # workers started and warm, as in a long run
    two = seconds(lambda: ws.score(data, "ter", resources=ws.Resources(executor=Processes(2))))
    one = seconds(lambda: ws.score(data, "ter"))
    ratios = {"cold": cold / theirs, "warm": warm / theirs, "processes": one / two}
    print(f"{len(data)} segments x {metrics}: sacreBLEU {theirs:.2f} s; largest difference {worst:.1e}")
    print(f"cold       {ratios['cold']:.2f} x sacreBLEU   (limit {LIMITS['cold']})")
    print(f"warm       {ratios['warm']:.3f} x sacreBLEU  (limit {LIMITS['warm']})")
    print(f"intervals  add {(with_intervals - warm) / theirs:.3f} x sacreBLEU")
    print(f"processes  {ratios['processes']:.2f} x one process on TER with two (at least {LIMITS['processes']})")
    fine = ratios["cold"] <= LIMITS["cold"] and ratios["warm"] <= LIMITS["warm"] and worst < 1e-9
    return 0 if fine and ratios["processes"] >= LIMITS["processes"] else 1


if __name__ == "__main__":
    sys.exit(main())
