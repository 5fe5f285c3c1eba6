"""Speed relative to plain sacreBLEU in the same run, as explaining asks: many hypotheses against one reference."""

import random
import time
from collections.abc import Callable

import pytest
from sacrebleu.metrics import BLEU, CHRF, TER

from whyscore.registry import build
from whyscore.types import Segment


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


@pytest.mark.parametrize(
    ("spec", "peer", "texts", "most"),
    [
        ("chrf", CHRF(), 100, 1 / 3),
        ("bleu", BLEU(effective_order=True), 100, 1.0),
        ("ter", TER(), 20, 1.1),
    ],
)
def test_scoring_many_hypotheses_takes_a_share_of_the_time_of_sacrebleu(
    spec: str, peer: BLEU | CHRF | TER, texts: int, most: float
) -> None:
    reference = "The damage that the fire did, and what caused it, will still have to be looked into now."
    hypothesis = "The damage done by the fire is yet to be determined, as is what has caused that fire."
    words = hypothesis.split(" ")
    metric = build(spec)
    ratios = []
    for seed in range(5):
        # New texts in each round: tokenizers remember what they have seen.
        draw = random.Random(seed)
        hypotheses = [" ".join(draw.sample(words, len(words) - k % 3)) for k in range(texts)]
        segments = [Segment(hypothesis, None, (reference,)) for hypothesis in hypotheses]
        ours = seconds(lambda: metric.score(segments))  # noqa: B023 - called at once
        theirs = seconds(lambda: [peer.sentence_score(text, [reference]) for text in hypotheses])  # noqa: B023
        ratios.append(ours / theirs)
    assert min(ratios) <= most
