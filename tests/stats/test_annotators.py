import re

import numpy as np
import pytest

from whyscore.errors import DataError
from whyscore.stats.annotators import (
    agreement,
    continuous,
    kappa,
    majority,
    pair_agreements,
    reliabilities,
    score_agreements,
    shares,
    weighted_auc,
)
from whyscore.stats.words import Ragged, agree

WORDS = ["Serbian", "troops", "started", "pursuing", "Austria", "on", "20", "August", "in", "withdrawal", "."]
MEANS = np.array([0, 0, 0, 0, 2 / 3, 0, 1 / 3, 1 / 3, 2 / 3, 1, 0])
MAJORITY = np.array([0.0, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0])
LENGTHS = np.array([float(len(word)) for word in WORDS])
THREE = [
    Ragged.of([[0, 0, 0, 0, 1, 0, 1, 1, 1, 1, 0]]),
    Ragged.of([[0, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0]]),
    Ragged.of([[0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0]]),
]


def test_kappa_of_the_overview_paper() -> None:
    assert kappa(np.array([1.0, 1, 0, 0, 0]), np.array([1.0, 0, 0, 0, 0])) == pytest.approx(0.5455, abs=5e-5)


def test_kappa_is_undefined_where_both_mark_nothing_or_everything() -> None:
    nothing = Ragged.of([[0, 0], [1, 1], [1, 0]])
    found = agreement(nothing, nothing)
    assert (found.sentence, found.used, found.left_out) == (1.0, 1, 2)
    assert found.pooled == 1.0


@pytest.mark.parametrize(("votes", "label"), [((1, 0, 1, 0), 1.0), ((1, 0, 0, 1), 0.0), ((0, 1, 1, 1), 1.0)])
def test_weights_decide_between_even_votes_and_a_tie_is_no_error(votes: tuple[int, ...], label: float) -> None:
    tagged = [Ragged.of([[float(vote)]]) for vote in votes]
    assert majority(tagged, np.array([0.6, 0.5, 0.4, 0.3])).values.tolist() == [label]


def test_negative_weights_count_as_zero() -> None:
    tagged = [Ragged.of([[float(vote)]]) for vote in (1, 0)]
    assert majority(tagged, np.array([0.1, -5.0])).values.tolist() == [1.0]


def test_the_sentence_of_the_overview_paper() -> None:
    assert shares(THREE).values == pytest.approx(MEANS)
    assert majority(THREE).values.tolist() == MAJORITY.tolist()
    by_majority = continuous(Ragged.of([MEANS]), Ragged.of([MAJORITY]))
    assert by_majority.weighted_auc[0] == pytest.approx(0.890625, abs=1e-6)
    assert by_majority.pearson[0] == pytest.approx(0.902110, abs=1e-6)
    assert weighted_auc(MEANS, LENGTHS) == pytest.approx(0.648438, abs=1e-6)
    found = agree(Ragged.of([MAJORITY]), Ragged.of([LENGTHS]))
    assert [float(values[0]) for values in found[:3]] == pytest.approx([0.666667, 0.566667, 0.444444], abs=1e-6)


def test_weighted_auc_is_auc_for_gold_of_zeros_and_ones() -> None:
    scores = np.random.default_rng(0).integers(0, 4, 11).astype(float)
    exact = agree(Ragged.of([MAJORITY]), Ragged.of([scores])).auc[0]
    assert weighted_auc(MAJORITY, scores) == pytest.approx(float(exact), abs=1e-12)


def test_constant_gold_has_no_continuous_measure() -> None:
    found = continuous(Ragged.of([[0.5, 0.5]]), Ragged.of([[1, 2]]))
    assert np.isnan([found.pearson[0], found.spearman[0], found.weighted_auc[0]]).all()


def test_an_annotator_who_did_not_see_a_sentence_has_no_vote_on_it() -> None:
    three = [Ragged.of([[1, 0], [1, 1]]), Ragged.of([[1, 1], [0, 1]]), Ragged.of([[], [0, 1]])]
    assert shares(three).values.tolist() == pytest.approx([1, 0.5, 1 / 3, 1])
    # The second annotator agrees with the third, the first with nobody: between the two, the second decides.
    assert majority(three).values.tolist() == [1, 1, 0, 1]
    assert pair_agreements(three)[0, 2].used + pair_agreements(three)[0, 2].left_out == 1


def test_an_annotator_without_agreement_weighs_nothing() -> None:
    four = [Ragged.of([[1, 0, 1, 0]])] * 2 + [Ragged.of([[0, 1, 0, 1]])]
    assert reliabilities(four).tolist() == pytest.approx([0.0, 0.0, -1.0])


def test_sentence_scores_agree_on_common_sentences() -> None:
    scores = np.array([[1.0, 2, 3, np.nan], [2.0, 4, 6, 1], [3.0, 2, 1, 0]])
    expected = {(0, 1): 1.0, (0, 2): -1.0, (1, 2): float(np.corrcoef(scores[1], scores[2])[0, 1])}
    assert score_agreements(scores) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("annotators", "message"),
    [
        ([[[1, 0]]], "1 annotator(s): agreement needs two or more"),
        ([[[1, 0]], [[1, 0], [1]]], "annotator 2 has 2 sentences, annotator 1 has 1"),
        ([[[1, 0]], [[1, 0, 0]]], "annotator 1 has 2 tags where another has 3, in sentence 1"),
    ],
)
def test_annotators_that_do_not_fit_are_refused(annotators: list[list[list[float]]], message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        majority([Ragged.of(one) for one in annotators])
