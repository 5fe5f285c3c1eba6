"""What the benchmarks share: real segments, timed metrics, and the packages lime and shap in a loop."""

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from sacrebleu.metrics import CHRF

from whyscore.protocols import Metric
from whyscore.types import FloatVector, Inputs, Segment, Signature

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
SAMPLES = 100

Scorer = Callable[[Sequence[str], str], FloatVector]
"""Texts and the reference they are compared with -> scores, as a user of lime or shap writes it."""


def segments(count: int) -> list[Segment]:
    """Return real segments (WMT17 cs-en), or made-up ones where the data is absent."""
    path = DATA / "wmt17" / "wmt17_to_en.jsonl"
    if path.exists():
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()[:count]]
        return [Segment(row["translation"], references=(row["reference"],)) for row in rows]
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcdefghij"), 5)) for _ in range(500)]
    texts = [" ".join(rng.choice(words, 20)) for _ in range(2 * count)]
    return [Segment(one, references=(other,)) for one, other in zip(texts[:count], texts[count:], strict=True)]


def chrf_loop() -> Scorer:
    """Return sacreBLEU's chrF, text by text."""
    metric = CHRF()
    return lambda texts, reference: np.array([metric.sentence_score(str(text), [reference]).score for text in texts])


class Rate:
    """Texts and seconds: of the whole work, and inside the metric."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.texts, self.seconds, self.inside, self.calls = 0, 0.0, 0.0, 0

    @property
    def per_second(self) -> float:
        """Texts per second of the whole work."""
        return self.texts / self.seconds

    def timed(self, work: Callable[[], FloatVector], texts: int) -> FloatVector:
        """Return what a metric says and keep the time it took."""
        start = time.perf_counter()
        result = work()
        self.inside += time.perf_counter() - start
        self.texts += texts
        self.calls += 1
        return result


def lime_loop(asked: Sequence[Segment], scorer: Scorer) -> Rate:
    """Return the rate of lime's explainer in a loop over segments."""
    from lime.lime_text import LimeTextExplainer

    rate = Rate()
    start = time.perf_counter()
    for segment in asked:

        def probabilities(texts: list[str], reference: str = segment.references[0]) -> FloatVector:
            return np.stack([rate.timed(lambda: scorer(texts, reference), len(texts))] * 2, axis=1)

        explainer = LimeTextExplainer(bow=False, split_expression=" ", random_state=np.random.RandomState(0))
        explainer.explain_instance(
            segment.hypothesis, probabilities, labels=(0,), num_features=10_000, num_samples=SAMPLES
        )
    rate.seconds = time.perf_counter() - start
    return rate


def shap_loop(asked: Sequence[Segment], scorer: Scorer) -> Rate:
    """Return the rate of shap's permutation explainer in a loop over segments."""
    import shap

    rate = Rate()
    start = time.perf_counter()
    for segment in asked:

        def value(texts: list[str], reference: str = segment.references[0]) -> FloatVector:
            return rate.timed(lambda: scorer(texts, reference), len(texts))

        masker = shap.maskers.Text(r"\s+", mask_token="UNKWORDZ")
        shap.explainers.Permutation(value, masker, seed=0)([segment.hypothesis], max_evals=500, silent=True)
    rate.seconds = time.perf_counter() - start
    return rate


class TimedMetric:
    """A metric that keeps the time it takes."""

    def __init__(self, metric: Metric, rate: Rate) -> None:
        """Stand in for a metric."""
        self.metric, self.rate = metric, rate

    @property
    def inputs(self) -> Inputs:
        """The metric's."""
        return self.metric.inputs

    @property
    def needs(self) -> Inputs:
        """What the segments have."""
        return Inputs.HYPOTHESIS

    @property
    def higher_is_better(self) -> bool:
        """The metric's."""
        return self.metric.higher_is_better

    def signature(self) -> Signature:
        """Return the metric's signature."""
        return self.metric.signature()

    def score(self, asked: Sequence[Segment]) -> FloatVector:
        """Score and keep the time."""
        return self.rate.timed(lambda: self.metric.score(asked), len(asked))
