import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import permutations

import numpy as np
import pytest

from whyscore.analysis.explain import explain
from whyscore.analysis.metaeval.faithfulness import (
    MEASURES,
    _Curves,
    curve_masks,
    faithfulness,
    measures_of,
    stability,
    summary,
    until_stable,
)
from whyscore.errors import SpecError
from whyscore.types import FloatVector, Inputs, Segment, Signature

WORTH = {"great": 4.0, "good": 2.0, "fine": 1.0, "the": 0.0, "bad": -1.0, "awful": -3.0}
TEXTS = ["great the bad good awful", "fine the", "awful great fine good the bad", "good bad good bad the fine great"]


@dataclass
class Sum:
    """The sum of what the words of the hypothesis are worth; counts how often it is asked."""

    inputs: Inputs = Inputs.HYPOTHESIS
    higher_is_better: bool = True
    calls: list[int] = field(default_factory=list)

    def signature(self) -> Signature:
        return Signature("sum")

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        self.calls.append(len(segments))
        return np.array([sum(WORTH.get(word, 0.0) for word in one.hypothesis.split()) for one in segments])


def segments(texts: Sequence[str] = TEXTS) -> list[Segment]:
    return [Segment(text) for text in texts]


def test_the_right_order_has_the_smallest_deletion_area_of_all_orders() -> None:
    words = TEXTS[0].split()
    worth = np.array([WORTH[word] for word in words])

    def deletion(order: Sequence[int]) -> float:
        kept = curve_masks(np.array(order)).astype(float) @ worth
        return float(measures_of(_Curves(*kept.reshape(2, -1)), (0.2,))[list(MEASURES).index("deletion")])

    best = min(deletion(order) for order in permutations(range(len(words))))
    [found] = faithfulness(segments(TEXTS[:1]), Sum(), ["erasure"])
    assert found.measures["deletion"].raw == pytest.approx(best)


def test_comprehensiveness_of_one_word_is_the_largest_importance() -> None:
    [found] = faithfulness(segments(), Sum(), ["erasure"], shares=[0.01])
    largest = [float(one.importance.max()) for one in explain(segments(), Sum(), "erasure")]
    smallest = [float(one.importance.min()) for one in explain(segments(), Sum(), "erasure")]
    assert found.values[:, 0].tolist() == pytest.approx(largest)
    assert found.values[:, 1].tolist() == pytest.approx([-value for value in smallest])
    assert found.measures["comprehensiveness_plus"].raw == pytest.approx(np.mean(largest))


def test_measures_by_hand() -> None:
    [found] = faithfulness(segments(["great awful"]), Sum(), ["erasure"], shares=[0.5])
    # Hidden in order: 1, -3, 0; put back in order: 0, 4, 1.
    assert found.values[0].tolist() == pytest.approx([4.0, 3.0, -3.0, -1.25, 2.25])


def test_random_importance_gains_nothing_and_the_right_one_gains() -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(list(WORTH), 8)) for _ in range(150)]
    right, random = faithfulness(segments(texts), Sum(), ["erasure", "random"], draws=400)
    for measure in MEASURES:
        assert (right.measures[measure].raw_gain.low or -1) > 0, measure
        gain = random.measures[measure].raw_gain
        assert gain.low is not None
        assert gain.high is not None
        # Five intervals of 95 % may miss by a little; none may miss by its own width.
        width = gain.high - gain.low
        assert gain.low - width / 2 < 0 < gain.high + width / 2, measure


def test_all_probes_of_all_explainers_go_into_one_call() -> None:
    metric = Sum()
    faithfulness(segments(), metric, ["random"], draws=0)
    # One for the texts as they are, one for all their probes.
    assert len(metric.calls) == 2
    both = Sum()
    faithfulness(segments(), both, ["random", "erasure"], draws=0)
    assert len(both.calls) == 2 + 2


def test_lower_is_better_metrics_are_turned_first() -> None:
    [up] = faithfulness(segments(), Sum(), ["erasure"], draws=0)
    negated = Sum(higher_is_better=False)
    negated.score = lambda given: -Sum().score(given)  # type: ignore[method-assign]
    [down] = faithfulness(segments(), negated, ["erasure"], draws=0)
    assert np.allclose(down.values, up.values, rtol=0, atol=1e-12)


def test_a_flat_text_has_raw_values_only() -> None:
    [found] = faithfulness(segments(["the the", "great the"]), Sum(), ["erasure"], draws=0)
    assert (found.n, found.flat, found.failed) == (2, 1, 0)
    assert found.measures["comprehensiveness_plus"].gain.n == 1
    [flat] = faithfulness(segments(["the the"]), Sum(), ["erasure"], draws=0)
    assert np.isnan(flat.measures["deletion"].normalised)


def test_texts_without_words_are_counted() -> None:
    [found] = faithfulness(segments(["", "great the"]), Sum(), ["erasure"], draws=0)
    assert (found.n, found.failed) == (1, 1)


def test_the_masker_stands_in_the_signature_and_results_repeat() -> None:
    first, again = (faithfulness(segments(), Sum(), ["lime"], masker='replace("X")', draws=50)[0] for _ in range(2))
    assert 'masker:replace(token="X")' in str(first.signature)
    assert first.values.tolist() == again.values.tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shares": [0.0]}, "shares are (0.0,), expected numbers above 0 and up to 1"),
        ({"shares": []}, "shares are (), expected numbers above 0 and up to 1"),
        ({"orders": 0}, "orders is 0, expected 1 or more"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        faithfulness(segments(), Sum(), ["erasure"], **options)


def test_results_are_records_and_tables_with_stability_beside() -> None:
    found = faithfulness(segments(), Sum(), ["erasure", "random"], draws=0, seeds=2)
    [people], [programs] = found.tables(), found.tables(long=True)
    assert [row[0] for row in people.rows] == [row[0] for row in programs.rows] == ["erasure", "random"]
    assert people.columns[-3:] == programs.columns[-3:] == ("spearman", "top_word", "jaccard")
    assert [row["stability"]["seeds"] for row in found.records()] == [2, 2]  # type: ignore[index]
    assert repr(found).startswith("<FaithfulnessResults: 2 x 10")


# Stability


@pytest.mark.parametrize("explainer", ["erasure", "shap"])
def test_deterministic_explainers_agree_exactly(explainer: str) -> None:
    found = stability(segments(), Sum(), explainer, seeds=3)
    assert (found.spearman, found.top_word, found.jaccard) == (1.0, 1.0, 1.0)


def test_word_scores_of_a_metric_agree_exactly() -> None:
    given = [Segment("a cat sat", references=("a dog sat",))]
    assert stability(given, "ter", "intrinsic", seeds=3).spearman == 1.0


def test_sampled_explainers_agree_less_and_repeat_whatever_the_order() -> None:
    found = stability(segments(), Sum(), "lime(samples=10)", seeds=4)
    assert found.spearman < 1.0
    backwards = stability(segments(TEXTS[::-1]), Sum(), "lime(samples=10)", seeds=4)
    assert backwards.values.tolist() == found.values[::-1].tolist()


def test_all_seeds_share_the_score_calls() -> None:
    metric = Sum()
    stability(segments(), metric, "lime(samples=10)", seeds=5)
    assert len(metric.calls) == 2


def test_the_first_seed_is_the_explanation_itself() -> None:
    found = stability(segments(), Sum(), "lime(samples=10)", seeds=3)
    alone = explain(segments(), Sum(), "lime(samples=10)")
    for repeats, one in zip(found.importances, alone, strict=True):
        assert repeats[0].tolist() == one.importance.tolist()


def test_agreement_by_hand() -> None:
    found = summary("x", [np.array([[1.0, 2.0, 3.0], [1.0, 3.0, 2.0]]), np.array([[1.0, 1.0], [1.0, 2.0]])])
    assert found.values[0].tolist() == pytest.approx([0.5, 1.0, 1.0])
    assert (found.n, found.constant, found.spearman) == (2, 1, pytest.approx(0.5))


def test_a_budget_is_raised_until_the_halves_agree() -> None:
    found = until_stable(segments(), Sum(), "lime(samples=8)", mark=0.9)
    assert found.reached
    assert found.spearman >= 0.9
    assert found.explainer.samples == 8 * 2 ** (found.rounds - 1)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: stability(segments(), Sum(), "erasure", seeds=1), "seeds is 1, expected 2 or more"),
        (lambda: until_stable(segments(), Sum(), "random", mark=1.0), "random has no budget to raise"),
        (lambda: until_stable(segments(), Sum(), "lime", mark=2.0), "the stability threshold is 2.0, expected -1 to 1"),
    ],
)
def test_stability_that_cannot_be_had_is_refused(call: object, message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        call()  # type: ignore[operator]
