"""The digits of metrics on the embedded encoder depend on the texts alone: not on batches, order, threads or shards."""

import math
import operator
import os
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from whyscore.data.dataset import sample
from whyscore.metrics.matching.bertscore import reader_of
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
    reader_of.cache_clear()
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
        reader_of.cache_clear()
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


def _on_grid(values: np.ndarray) -> list[Fraction]:
    """Return a row rounded to multiples of 2^-26 times the power of two above its length, ties to even."""
    unit = Fraction(2) ** (math.frexp(math.sqrt(np.einsum("j,j->", values, values)))[1] - 26)
    return [round(Fraction(value) / unit) * unit for value in values.tolist()]


def test_exact_products_do_not_depend_on_the_order_of_addition() -> None:
    rng = np.random.default_rng(0)
    rows = (rng.normal(size=(300, 700)) * 10.0 ** rng.integers(-6, 6, size=(300, 1))).astype(np.float32)
    weights = rng.normal(size=(700, 40)).astype(np.float32)
    buffer = np.getbufsize()
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
    assert np.getbufsize() == buffer
    few = slice(None, None, 50)
    # The plain product of rows and columns on their grids, in fractions.
    left, right = ([_on_grid(row) for row in side] for side in (rows[few].astype(float), weights.T[:8].astype(float)))
    plain = [[float(sum(map(operator.mul, row, column))) for column in right] for row in left]
    np.testing.assert_array_equal(pairs[few, :8], plain)
    np.testing.assert_array_equal(whole[few, :8], np.array(plain, dtype=np.float32))
    values = rng.random((3, 500)).astype(np.float32)
    np.testing.assert_array_equal(add(values[:, order[order < 500]], 1), add(values, 1))
    np.testing.assert_array_equal(add(np.pad(values, ((0, 0), (0, 7))), 1), add(values, 1))
