"""What must hold for every text: the two theorems about shares, matrices, masks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyscore.analysis.decompose.counts import discrepancy
from whyscore.analysis.decompose.decompose import decompose
from whyscore.analysis.decompose.result import Decomposition, label_fractions
from whyscore.analysis.decompose.tagging import SpanCounts
from whyscore.metrics.lexical.bleu import Bleu
from whyscore.metrics.lexical.rows import BleuRows
from whyscore.protocols import Similarities, Tagged
from whyscore.types import FloatVector, Inputs, Segment, Signature

WORDS = ["a", "b", "c", "well-known", "d.", "3"]
sentences = st.lists(st.sampled_from(WORDS), min_size=1, max_size=10).map(" ".join)
pairs = st.lists(st.tuples(sentences, sentences), min_size=1, max_size=4)
METRICS = ["bleu", "rouge(kind=1)", "rouge(kind=2)", "rouge"]
SLACK = 1e-12


@dataclass
class Blind:
    """Tags stretches of text that have nothing to do with what stands there."""

    seed: int

    def signature(self) -> Signature:
        return Signature(f"blind({self.seed})")

    def tag(self, texts: Sequence[str]) -> list[tuple[Tagged, ...]]:
        rng = np.random.default_rng(self.seed)
        found = []
        for text in texts:
            ends = np.sort(rng.integers(0, len(text) + 1, size=(2, 2)), axis=1)
            found.append(tuple(Tagged(int(a), int(b), ("X",)) for a, b in ends if a < b))
        return found


def segments_of(held: list[tuple[str, str]]) -> list[Segment]:
    return [Segment(hypothesis, references=(reference,)) for reference, hypothesis in held]


def decomposed(held: list[tuple[str, str]], metric: str, **options: object) -> Decomposition:
    (row,) = decompose(segments_of(held), metric, draws=0, examples=0, **options)  # type: ignore[arg-type]
    return row


@pytest.mark.parametrize("metric", METRICS)
@settings(max_examples=40)
@given(pairs, st.integers(0, 1000))
def test_whatever_the_tagger_the_worst_case_is_never_above_the_score(
    metric: str, held: list[tuple[str, str]], seed: int
) -> None:
    row = decomposed(held, metric, tagger=Blind(seed), features=["X"])
    assert row.segments is not None
    assert (row.segments.anti <= row.segments.sigma + SLACK).all()


@pytest.mark.parametrize("metric", METRICS)
@settings(max_examples=40)
@given(pairs, st.sets(st.sampled_from(["a", "b", "known", "d", "3"]), min_size=1))
def test_where_the_word_alone_decides_the_best_case_is_never_below_the_score(
    metric: str, held: list[tuple[str, str]], words: set[str]
) -> None:
    row = decomposed(held, metric, features=[f"words:{','.join(sorted(words))}"])
    assert row.segments is not None
    assert (row.segments.oracle >= row.segments.sigma - SLACK).all()
    assert row.share is None or -SLACK <= row.share <= 1 + SLACK


@settings(max_examples=40)
@given(pairs, st.sampled_from(["bleu", "chrf", "ter", "token_f1"]))
def test_the_choice_of_the_mask_changes_nothing(held: list[tuple[str, str]], metric: str) -> None:
    plain = decomposed(held, metric, features=["words:a,b"])
    # Segments that hold the first masks, and no word of the feature, push the run to the next ones.
    taken = "\ue000\ue001\ue002 zzzz zzzq zzzx c"
    pushed = decomposed([*held, (taken, taken)], metric, features=["words:a,b"])
    assert plain.segments is not None
    assert pushed.segments is not None
    for name in ("sigma", "oracle", "anti"):
        assert np.array_equal(getattr(plain.segments, name), getattr(pushed.segments, name))


@settings(max_examples=40)
@given(st.lists(st.text(st.sampled_from("\ue000\ue001 zqx"), min_size=1, max_size=9), min_size=1, max_size=3))
def test_texts_made_of_masks_are_decomposed_like_others(texts: list[str]) -> None:
    held = [(text + " 7 a b c", text + " 8 a b c") for text in texts]
    for metric in ("bleu", "chrf", "token_f1"):
        row = decomposed(held, metric, features=["number"])
        assert row.oracle == pytest.approx(1.0)


@given(st.lists(st.tuples(st.integers(0, 3), st.lists(st.integers(0, 3), min_size=1, max_size=3)), min_size=1))
def test_discrepancy_sums_to_one(counts: list[tuple[int, list[int]]]) -> None:
    columns = [(count, min(others), max(others)) for count, others in counts]
    found = discrepancy(SpanCounts(*map(np.array, zip(*columns, strict=True))))
    assert found["under"] + found["over"] + found["equal"] == len(counts)
    assert found["missing"] <= found["under"]
    assert found["invented"] <= found["over"]
    assert found["absent"] <= found["equal"]
    for labels in ("field", "paper", "code"):
        assert sum(label_fractions(found, labels).values()) == pytest.approx(1.0)


@dataclass(frozen=True)
class Greedy:
    """Greedy matching of white-space words whose similarities depend on the words and a seed."""

    seed: int

    inputs: ClassVar[Inputs] = Inputs.HYPOTHESIS | Inputs.REFERENCES
    higher_is_better: ClassVar[bool] = True

    def signature(self) -> Signature:
        return Signature("greedy")

    def similarities(self, segments: Sequence[Segment]) -> list[tuple[Similarities, ...]]:
        return [tuple(self._one(text, segment.hypothesis) for text in segment.references) for segment in segments]

    def matched(self, similarities: Sequence[Sequence[Similarities]]) -> FloatVector:
        return np.array([max(self._f(one) for one in each) for each in similarities])

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        return self.matched(self.similarities(segments))

    def _one(self, reference: str, hypothesis: str) -> Similarities:
        own, other = spans_of(hypothesis), spans_of(reference)
        rng = np.random.default_rng([self.seed, len(own), len(other)])
        cosines = rng.uniform(-0.2, 1.0, (len(other), len(own)))
        return Similarities(cosines, other, np.ones(len(other)), own, np.ones(len(own)))

    def _f(self, one: Similarities) -> float:
        recall, precision = float(one.cosines.max(axis=1).mean()), float(one.cosines.max(axis=0).mean())
        return (precision + recall) / 2


def spans_of(text: str) -> np.ndarray:
    ends = np.cumsum([len(word) + 1 for word in text.split()]) - 1
    return np.column_stack([ends - [len(word) for word in text.split()], ends])


@settings(max_examples=40)
@given(pairs, st.integers(0, 1000))
def test_a_changed_matrix_keeps_the_score_between_worst_and_best(held: list[tuple[str, str]], seed: int) -> None:
    (row,) = decompose(segments_of(held), Greedy(seed), tagger=Blind(seed), features=["X"], draws=0)
    assert row.segments is not None
    assert (row.segments.anti <= row.segments.sigma + SLACK).all()
    assert (row.segments.sigma <= row.segments.oracle + SLACK).all()


@settings(max_examples=25)
@given(st.lists(sentences.filter(lambda text: len(text.split()) > 3), min_size=1, max_size=3))
def test_identical_texts_lose_nothing(texts: list[str]) -> None:
    row = decomposed([(text, text) for text in texts], "bleu(tokenize='none')", features=["words:a,b,c"])
    assert row.n == 0 or row.share == 0.0


@settings(max_examples=60)
@given(pairs)
def test_unsmoothed_bleu_of_many_rows_at_once_is_that_of_the_metric(held: list[tuple[str, str]]) -> None:
    metric = Bleu(smoothing="none", effective_order=False)
    rows = metric.statistics(segments_of(held))
    plain = BleuRows(tokenize="13a", lowercase=False, smoothing="none", smoothing_value=None, max_order=4)
    expected = [plain.formula(row, effective_order=False) for row in rows.tolist()]
    assert metric.scores(rows) == pytest.approx(expected, abs=1e-12)
    assert replace(metric, score_scale=1).scores(rows) * 100 == pytest.approx(expected, abs=1e-12)
