"""Ratios of means with intervals and tests, and words met."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyscore.analysis.decompose.counts import Met, pair_rows
from whyscore.analysis.decompose.shares import interval, ratios, resample, swap_test


def table(gains: list[float], ranges: list[float]) -> np.ndarray:
    return np.column_stack([gains, ranges])


def test_the_share_is_a_ratio_of_sums_not_a_mean_of_ratios() -> None:
    rows = table([1.0, 0.0], [2.0, 8.0])
    assert ratios(0.0)(rows.sum(axis=0, keepdims=True))[0, 0] == 0.1


def test_at_or_below_the_floor_there_is_no_share() -> None:
    assert np.isnan(ratios(1e-6)(np.array([[1e-9, 1e-6]])))[0, 0]


def test_the_same_seed_gives_every_feature_the_same_weights() -> None:
    rows = np.array([[1.0, 1.0, 2.0, 2.0], [0.0, 0.0, 2.0, 2.0], [1.0, 1.0, 4.0, 4.0]])
    drawn = resample(rows, ratios(0.0), draws=50, seed=3)
    assert drawn.shape == (50, 2)
    assert np.array_equal(drawn[:, 0], drawn[:, 1])
    assert np.array_equal(drawn, resample(rows, ratios(0.0), draws=50, seed=3))


def test_draws_without_a_value_are_dropped_and_counted() -> None:
    found = interval(np.array([0.0, np.nan, 1.0, np.nan]))
    assert found.dropped == 2
    assert found.low == pytest.approx(0.025)
    assert found.high == pytest.approx(0.975)


def test_one_value_makes_no_interval() -> None:
    assert interval(np.array([0.5, np.nan])) == (None, None, 1)


def test_equal_systems_are_never_different() -> None:
    rows = table([1.0, 2.0, 0.5], [2.0, 3.0, 4.0])
    assert swap_test(rows, rows, ratios(0.0), draws=99, seed=0).tolist() == [1.0]


def test_the_p_of_a_difference_is_that_of_all_swaps() -> None:
    first, second = table([0.0] * 4, [1.0] * 4), table([1.0] * 4, [1.0] * 4)
    p = swap_test(first, second, ratios(0.0), draws=20_000, seed=0)[0]
    assert p == pytest.approx(2 / 16, abs=0.01)  # nothing swapped, or everything


def test_an_undefined_difference_has_no_p() -> None:
    rows = table([0.0, 0.0], [0.0, 0.0])
    assert np.isnan(swap_test(rows, table([1.0, 1.0], [1.0, 1.0]), ratios(0.0), draws=10, seed=0)[0])


def test_words_of_a_feature_are_met_by_their_form() -> None:
    reference, hypothesis = ["the", "cat", "saw", "the", "dog"], ["the", "cat", "ate", "the", "cat"]
    found = Met()
    found.add(pair_rows(reference, hypothesis), frozenset({1, 4}), frozenset({1, 4}))
    assert found.scores == {"precision": 0.5, "recall": 0.5, "f": 0.5}


def test_a_met_word_takes_the_label_of_its_partner() -> None:
    found = Met()
    found.add(pair_rows(["run"], ["run"]), frozenset({0}), frozenset())
    assert found.scores == {"precision": 1.0, "recall": 1.0, "f": 1.0}


def test_without_words_of_the_feature_there_is_no_f() -> None:
    found = Met()
    found.add(pair_rows(["a"], ["b"]), frozenset(), frozenset())
    assert found.scores == {"precision": None, "recall": None, "f": None}


words = st.lists(st.sampled_from("abc"), max_size=8)


@given(words, words)
def test_every_form_is_paired_as_often_as_both_sides_have_it(reference: list[str], hypothesis: list[str]) -> None:
    found = pair_rows(reference, hypothesis)
    for form in "abc":
        both = min(reference.count(form), hypothesis.count(form))
        assert sum(reference[k] == form for k in found.reference) == both
        assert sum(hypothesis[k] == form for k in found.hypothesis) == both
