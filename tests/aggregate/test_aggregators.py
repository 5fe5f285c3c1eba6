"""Aggregators: worked examples, limits, and what must hold for all of them."""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from whyscore.aggregate import Bags, ExpMean, Family, Lehmer, PerSide, PowerMean, Quantile, Trimmed, power_table
from whyscore.errors import SpecError
from whyscore.protocols import Aggregator
from whyscore.registry import build, list_names

# The example of the BMX paper.
PAPER = np.array([0.5, 0.4, 0.2, 0.0, 0.5, 0.4, 0.2, 0.0])

vectors = st.lists(st.floats(-10, 10), min_size=1, max_size=12).map(lambda values: np.array(values, dtype=np.float64))


@pytest.mark.parametrize(
    ("p", "expected"),
    [
        (1.0, 0.275000001),
        (2.0, 0.335410197),
        (3.0, 0.366551847),
        (0.0, 0.00251486687),
        (-1.0, 3.99999996e-9),
        (30.0, 0.477440492),
        (math.inf, 0.500000001),
        (-math.inf, 1e-9),
    ],
)
def test_the_papers_example_has_these_power_means(p: float, expected: float) -> None:
    assert PowerMean(p).aggregate(PAPER) == pytest.approx(expected, rel=2e-9)


def test_importances_of_zero_give_the_floor_whatever_the_power() -> None:
    table = power_table(Bags.of([np.zeros(30)]), np.arange(-300.0, 301.0))
    np.testing.assert_allclose(table.means, 1e-9, rtol=1e-12)
    assert (table.floored == 1).all()


def test_positive_importances_are_not_shifted() -> None:
    assert PowerMean(1.0).aggregate(np.array([0.1, 0.3])) == pytest.approx(0.2 + 1e-9, rel=1e-12)
    assert PowerMean(1.0).aggregate(np.array([-0.1, 0.3])) == pytest.approx(0.2 + 1e-9, rel=1e-12)


def test_seven_hundred_words_do_not_underflow() -> None:
    assert PowerMean(0.0).aggregate(np.full(720, 1e-3)) == pytest.approx(1e-3, rel=1e-5)


@pytest.mark.parametrize("p", [-300.0, -30.0, 0.0, 30.0, 300.0])
def test_large_powers_stay_finite(p: float) -> None:
    values = np.random.default_rng(0).normal(size=200)
    assert math.isfinite(PowerMean(p).aggregate(values))


def test_a_negative_power_of_shifted_importances_counts_words() -> None:
    values = np.random.default_rng(0).normal(size=40)
    assert PowerMean(-1.0).aggregate(values) == pytest.approx(1e-9 * 40, rel=1e-4)
    assert PowerMean(-2.0).aggregate(values) == pytest.approx(1e-9 * 40**0.5, rel=1e-4)


def test_the_share_of_the_floor_is_that_of_its_terms_in_the_sum() -> None:
    values = np.array([-0.2, -0.2, 0.1, 0.5])
    v = values + 0.2 + 1e-9
    for p in (-2.0, -0.1, 0.05, 0.5):
        expected = (v[:2] ** p).sum() / (v**p).sum()
        assert power_table(Bags.of([values]), np.array([p])).floored[0, 0] == pytest.approx(expected, rel=1e-9)
    assert power_table(Bags.of([values + 1]), np.array([-2.0])).floored[0, 0] == 0


def test_a_relative_floor_lets_a_negative_power_see_the_other_words() -> None:
    few, many = np.array([0.0, 0.1, 0.1]), np.array([0.0, 1.0, 1.0])
    tiny = [PowerMean(-1.0).aggregate(values) for values in (few, many)]
    relative = [PowerMean(-1.0, floor="relative").aggregate(values) for values in (few, many)]
    assert tiny[1] == pytest.approx(tiny[0], rel=1e-7)
    assert relative[1] == pytest.approx(10 * relative[0], rel=1e-9)


@given(vectors, st.floats(-20, 20), st.floats(0, 5))
def test_power_means_grow_with_the_power_and_stay_between_the_extremes(
    values: np.ndarray, p: float, step: float
) -> None:
    low, high, least, most = (PowerMean(q).aggregate(values) for q in (p, p + step, -math.inf, math.inf))
    assert low <= high * (1 + 1e-9)
    assert least * (1 - 1e-9) <= low <= most * (1 + 1e-9)


@given(vectors)
def test_a_grid_gives_what_single_powers_give(values: np.ndarray) -> None:
    powers = np.arange(-40, 41) / 10
    bags = Bags.of([values, np.array([0.3, 0.7])])
    table = power_table(bags, powers)
    for row, power in enumerate(powers):
        alone = power_table(bags, np.array([power]))
        np.testing.assert_allclose(table.means[row], alone.means[0], rtol=1e-10)
        np.testing.assert_allclose(table.floored[row], alone.floored[0], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", list_names("aggregator"))
def test_every_aggregator_keeps_its_promises(name: str) -> None:
    made = build(name, "aggregator")
    assert isinstance(made, Aggregator)
    assert isinstance(made, Family)
    assert math.isnan(made.aggregate(np.zeros(0)))
    assert math.isnan(made.aggregate(np.array([0.1, math.nan])))
    assert made.aggregate(np.array([0.25])) == pytest.approx(0.25, abs=1e-8)
    values = [np.array([0.5, -0.2, 0.1]), np.zeros(0), np.array([0.3]), np.linspace(-1, 1, 40)]
    own = getattr(made, made.parameter) if made.parameter else 0.0
    bags = Bags.of(values)
    bags = bags.with_sides(bags.lengths)
    together = made.table(bags, np.array([own]))[0]
    alone = np.array([made.aggregate(one) for one in values])
    np.testing.assert_array_equal(together, alone)
    assert made.table(bags, made.grid()).shape == (len(made.grid()), 4)


def sided(references: list[list[float]], hypotheses: list[list[float]]) -> Bags:
    joined = [np.array([*one, *other]) for one, other in zip(references, hypotheses, strict=True)]
    return Bags.of(joined).with_sides(np.array([len(one) for one in hypotheses]))


def test_each_side_has_its_own_power_by_hand() -> None:
    found = PerSide(p=2.0, reference=-1.0).table(sided([[0.5, 0.25]], [[0.3, 0.4, 0.1]]), np.array([2.0, 1.0]))
    references = 2 / (1 / 0.5 + 1 / 0.25)
    hypothesis = np.sqrt((0.09 + 0.16 + 0.01) / 3)
    assert found[:, 0] == pytest.approx(
        [(2 * references + 3 * hypothesis) / 5, (2 * references + 3 * 0.8 / 3) / 5], rel=1e-7
    )


def test_both_sides_are_shifted_together() -> None:
    bags = sided([[0.5, -0.1]], [[0.2, 0.3]])
    found = PerSide(p=3.0).table(bags, np.array([3.0]))[0, 0]
    assert found == pytest.approx((0.6 + 0.0 + 2 * ((0.3**3 + 0.4**3) / 2) ** (1 / 3)) / 4, rel=1e-7)


@given(vectors, st.integers(0, 30))
def test_powers_of_one_on_both_sides_are_the_mean_over_all_words(values: np.ndarray, own: int) -> None:
    bags = Bags.of([values]).with_sides(np.array([min(own, len(values))]))
    expected = PowerMean(1.0).aggregate(values)
    assert PerSide().table(bags, np.ones(1))[0, 0] == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_a_segment_with_one_side_has_that_sides_mean_and_one_without_words_none() -> None:
    bags = sided([[], [0.2, 0.4], []], [[0.1, 0.3], [], []])
    found = PerSide(p=2.0, reference=0.0).powers(bags, np.array([2.0]))
    expected = [PowerMean(2.0).aggregate(np.array([0.1, 0.3])), PowerMean(0.0).aggregate(np.array([0.2, 0.4]))]
    assert found.means[0, :2].tolist() == pytest.approx(expected, rel=1e-12)
    assert np.isnan(found.means[0, 2])
    assert np.isnan(found.floored[0, 2])


def test_a_mean_hangs_on_the_floor_only_where_both_sides_do() -> None:
    bags = sided([[0.0, 0.5], [0.3, 0.5]], [[0.0, 0.4], [0.0, 0.4]])
    both = PerSide(p=-2.0, reference=-2.0).powers(bags, np.array([-2.0])).floored[0]
    assert both[0] == pytest.approx(1.0)
    assert both[1] == 0
    assert PerSide(p=-2.0).powers(bags, np.array([-2.0])).floored[0, 0] < 1e-6


def test_bags_keep_their_sides_when_some_are_taken() -> None:
    bags = sided([[1.0], [2.0, 3.0]], [[4.0, 5.0], [6.0]])
    assert bags.of_hypothesis.tolist() == [False, True, True, False, False, True]
    taken = bags.take(np.array([1]))
    assert taken.hypothesis is not None
    assert (taken.hypothesis.tolist(), taken.of_hypothesis.tolist()) == ([1], [False, False, True])


def test_sides_that_nobody_told_are_refused() -> None:
    told = "per_side: it is not known which words belong to the hypothesis; use power_mean"
    with pytest.raises(SpecError, match=re.escape(told)):
        PerSide().table(Bags.of([np.ones(2)]), np.ones(1))


@given(vectors, st.floats(-5, 5))
def test_exponential_means_follow_their_formula(values: np.ndarray, t: float) -> None:
    found = ExpMean(t).aggregate(values)
    if abs(t) > 1e-3:
        assert found == pytest.approx(np.log(np.exp(t * values).mean()) / t, rel=1e-9, abs=1e-9)
    assert values.min() - 1e-9 <= found <= values.max() + 1e-9


def test_exponential_means_reach_mean_max_and_min() -> None:
    values = np.array([-0.2, 0.1, 0.7])
    assert ExpMean(0.0).aggregate(values) == pytest.approx(0.2)
    assert ExpMean(math.inf).aggregate(values) == 0.7
    assert ExpMean(-math.inf).aggregate(values) == -0.2


@given(vectors, st.floats(0, 1))
def test_quantiles_are_numpys(values: np.ndarray, q: float) -> None:
    assert Quantile(q).aggregate(values) == pytest.approx(float(np.quantile(values, q)), rel=1e-9, abs=1e-12)


@given(vectors, st.floats(0, 0.49))
def test_trimmed_means_are_scipys(values: np.ndarray, share: float) -> None:
    assert Trimmed(share).aggregate(values) == pytest.approx(stats.trim_mean(values, share), rel=1e-9, abs=1e-12)


def test_lehmer_means_follow_their_formula() -> None:
    values = np.array([0.2, 0.3, 0.7])
    v = values + 1e-9
    for p in (-2.0, 0.0, 0.5, 1.0, 3.0):
        assert Lehmer(p).aggregate(values) == pytest.approx((v**p).sum() / (v ** (p - 1)).sum(), rel=1e-9)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("per_side(p=301)", "per_side: p is 301.0, expected a number from -300 to 300, or inf or -inf"),
        ("per_side(reference=-301)", "per_side (reference): p is -301.0, expected a number from -300 to 300"),
        ("power_mean(p=301)", "power_mean: p is 301.0, expected a number from -300 to 300, or inf or -inf"),
        ("power_mean(p=nan)", "power_mean: p is nan, expected a number from -300 to 300, or inf or -inf"),
        ("power_mean(floor=low)", "power_mean: floor is 'low', expected 'tiny' or 'relative'"),
        ("lehmer(p=1000)", "lehmer: p is 1000.0, expected a number from -300 to 300"),
        ("exp_mean(t=nan)", "exp_mean: t is nan, expected a number, inf or -inf"),
        ("quantile(q=2)", "quantile: q is 2.0, expected a number from 0 to 1"),
        ("trimmed(share=0.5)", "trimmed: share is 0.5, expected a number from 0 to below 0.5"),
    ],
)
def test_parameters_out_of_range_are_refused(spec: str, message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        build(spec, "aggregator")


def test_bags_can_be_taken_in_any_order() -> None:
    bags = Bags.of([np.array([1.0, 2.0]), np.zeros(0), np.array([3.0])])
    taken = bags.take(np.array([2, 0, 1]))
    assert taken.values.tolist() == [3.0, 1.0, 2.0]
    assert taken.lengths.tolist() == [1, 2, 0]
    assert [bags.of_segment(k).tolist() for k in range(3)] == [[1.0, 2.0], [], [3.0]]
