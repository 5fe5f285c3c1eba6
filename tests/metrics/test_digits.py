"""The digits of metrics on the embedded encoder depend on the texts alone: not on batches, order, threads or shards."""

import os
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from whyscore.data.dataset import sample
from whyscore.models.encoders.embedded import Embedded
from whyscore.models.encoders.loading import _make_pinned
from whyscore.models.exact import add, factor, multiply, multiply_rows
from whyscore.protocols import WordScorer
from whyscore.registry import build
from whyscore.text.splitters import WhiteSpace
from whyscore.types import HYPOTHESIS, Segment

METRICS = ("sbert", "xbertscore", "mee2", "mee4", "qe")
SEGMENTS = list(dict.fromkeys(entry.segment for entry in sample().entries))[:24]


def score_fresh(name: str, segments: list[Segment]) -> np.ndarray:
    """Score without anything that an earlier call left in memory."""
    _make_pinned.cache_clear()
    return np.asarray(build(name).score(segments))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", METRICS)
def test_a_score_is_the_same_alone_and_among_others(name: str) -> None:
    whole = score_fresh(name, SEGMENTS)
    alone = np.concatenate([score_fresh(name, [segment]) for segment in SEGMENTS[:8]])
    np.testing.assert_array_equal(alone, whole[:8])
    np.testing.assert_array_equal(score_fresh(name, SEGMENTS[::-1])[::-1], whole)
    np.testing.assert_array_equal(score_fresh(name, SEGMENTS[5:]), whole[5:])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["xbertscore", "qe"])
def test_word_scores_are_the_same_alone_and_among_others(name: str) -> None:
    def ask(segments: list[Segment]) -> Iterator[list[float]]:
        _make_pinned.cache_clear()
        metric = build(name)
        assert isinstance(metric, WordScorer)
        words = [WhiteSpace().split(segment.hypothesis) for segment in segments]
        return (one.importance.tolist() for one in metric.word_scores(segments, HYPOTHESIS, words))

    assert [list(ask([segment])) for segment in SEGMENTS[:6]] == [[one] for one in list(ask(SEGMENTS))[:6]]


SCRIPT = """
import hashlib, warnings
warnings.simplefilter("ignore")
from whyscore.data.dataset import sample
from whyscore.registry import build
segments = list(dict.fromkeys(entry.segment for entry in sample().entries))[:24]
for name in {names!r}:
    print(name, hashlib.sha256(build(name).score(segments).tobytes()).hexdigest())
"""


def test_threads_change_no_digit() -> None:
    told = []
    for threads in ("1", "2"):
        environment = os.environ | {"OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
        command = [sys.executable, "-c", SCRIPT.format(names=METRICS)]
        told.append(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)
    assert told[0].count("\n") == len(METRICS)
    assert told[0] == told[1]


def test_vectors_are_the_same_in_any_window(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [segment.hypothesis for segment in SEGMENTS]
    whole = [own.vectors for own in Embedded().encode(texts)]
    pooled = Embedded().pooled(texts)
    monkeypatch.setattr("whyscore.models.encoders.embedded._WINDOW", 64)
    for one, other in zip(whole, Embedded().encode(texts[::-1])[::-1], strict=True):
        np.testing.assert_array_equal(one, other.vectors)
    np.testing.assert_array_equal(Embedded().pooled(texts[3:]), pooled[3:])


def test_exact_products_do_not_depend_on_the_order_of_addition() -> None:
    rng = np.random.default_rng(0)
    rows = (rng.normal(size=(300, 700)) * 10.0 ** rng.integers(-6, 6, size=(300, 1))).astype(np.float32)
    weights = rng.normal(size=(700, 40)).astype(np.float32)
    whole = multiply(rows, factor(weights))
    order = rng.permutation(700)
    np.testing.assert_array_equal(multiply(rows[:, order], factor(weights[order])), whole)
    np.testing.assert_array_equal(
        np.concatenate([multiply(row[None], factor(weights)) for row in rows[:20]]), whole[:20]
    )
    lengths = np.linalg.norm(rows.astype(float), axis=1)[:, None] * np.linalg.norm(weights.astype(float), axis=0)
    assert (np.abs(whole - rows.astype(float) @ weights.astype(float)) / lengths).max() < 1e-7
    pairs = multiply_rows(rows, weights.T)
    np.testing.assert_array_equal(multiply_rows(rows[:, order], weights.T[:, order]), pairs)
    values = rng.random((3, 500)).astype(np.float32)
    np.testing.assert_array_equal(add(values[:, order[order < 500]], 1), add(values, 1))
    np.testing.assert_array_equal(add(np.pad(values, ((0, 0), (0, 7))), 1), add(values, 1))
