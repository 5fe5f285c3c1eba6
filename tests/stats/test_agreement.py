"""Accuracies over pairs, soft pairwise accuracy, and tests of them."""

import math
import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from whyscore.errors import SpecError, UnknownName
from whyscore.stats.agreement import (
    acc_eq,
    acc_eq_held_out,
    difference_correlation,
    kendall_like,
    pair_table,
    pairwise_accuracy,
    pool_pairs,
    preference,
    right,
    soft_pairwise_accuracy,
)
from whyscore.stats.coefficients import coefficient_of, kernel
from whyscore.stats.correlation import correlate
from whyscore.stats.matrices import DegenerateStatisticWarning
from whyscore.stats.measures import MEASURES, agree, as_share, average, measure_of
from whyscore.stats.significance import outcome_test

Matrices = Callable[[str], NDArray[np.float64]]

# The second number is what stats.PairwiseConfidenceError of mt-metrics-eval (68a481a) gives on these scores.
SUMMEVAL = {
    "bertscore_recall": (0.8750, 0.8788166666666667, 0.3973, 0.5474, 0.0),
    "bertscore_f1": (0.6417, 0.6445666666666667, 0.3077, 0.5229, 5.794e-5),
    "rouge-1_f1": (0.7500, 0.7326666666666667, 0.2815, 0.51225, 0.0),
    "rouge-2_f1": (0.7167, 0.738075, 0.2097, 0.4854, 0.0),
    "MoverScore": (0.7083, 0.6879583333333334, 0.2762, 0.5063, 0.0),
    "qa-eval_f1": (0.8833, 0.8841, 0.3303, 0.4982, 0.0),
}
LONG = (0.880, 0.647, 0.733, 0.740, 0.687, 0.886)
NEWSTEST = {
    "chrF": (0.9048, 0.8819, 0.2213, 0.5325, 0.0),
    "TER": (0.8571, 0.8528, 0.1860, 0.4845, 0.0),
    "YiSi-2": (0.6667, 0.6675, 0.1132, 0.4542, 2.08e-4),
    "parbleu": (0.7143, 0.7378, 0.1966, 0.5186, 0.0),
}
# Sums in float32 tie or not by the order of adding, which differs between machines.
SINGLE = 1.5e-4


def single_p_values(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return p of every pair as mt-metrics-eval computes it, in float32, with the product of this machine."""
    scores = np.ascontiguousarray(matrix, dtype=np.float32)
    signs = np.random.default_rng(4).random((1000, scores.shape[1]), dtype=np.float32).round() * 2 - 1
    flipped, sums = signs @ scores.T, scores.sum(axis=1)
    i, j = np.triu_indices(len(scores), 1)
    return np.mean(flipped[:, i] - flipped[:, j] >= sums[i] - sums[j], axis=0)


@pytest.mark.parametrize("metric", SUMMEVAL)
def test_measures_of_summeval_relevance(summeval: Matrices, metric: str) -> None:
    x, z = summeval(metric), summeval("expert_relevance")
    pairwise, soft, differences, ties, epsilon = SUMMEVAL[metric]
    assert pairwise_accuracy(x, z).value == pytest.approx(pairwise, abs=5e-5)
    with threadpool_limits(1):  # float32 sums of a matrix product depend on its threads, as in the original
        found = soft_pairwise_accuracy(x, z, compat="mtme").value
        assert found == pytest.approx(1 - np.abs(single_p_values(x) - single_p_values(z)).mean(), abs=1e-12)
    assert found == pytest.approx(soft, abs=SINGLE)
    assert difference_correlation(x, z).value == pytest.approx(differences, abs=5e-5)
    tied = acc_eq(x, z)
    assert tied.value == pytest.approx(ties, abs=5.1e-5)
    assert tied.epsilon == pytest.approx(epsilon, rel=1e-3)


def test_long_runs_of_soft_pairwise_accuracy(summeval: Matrices) -> None:
    z = summeval("expert_relevance")
    for metric, value in zip(SUMMEVAL, LONG, strict=True):
        assert soft_pairwise_accuracy(summeval(metric), z, n=20_000).value == pytest.approx(value, abs=0.003)


def test_measures_of_newstest(newstest: Matrices) -> None:
    z = newstest("mqm")
    for metric, (pairwise, soft, differences, ties, epsilon) in NEWSTEST.items():
        x = newstest(metric)
        assert pairwise_accuracy(x, z).value == pytest.approx(pairwise, abs=5e-5), metric
        assert soft_pairwise_accuracy(x, z, compat="mtme").value == pytest.approx(soft, abs=SINGLE), metric
        assert difference_correlation(x, z).value == pytest.approx(differences, abs=5e-5), metric
        found = acc_eq(x, z)
        assert found.value == pytest.approx(ties, abs=5e-5), metric
        assert found.epsilon == pytest.approx(epsilon, rel=1e-3), metric
        assert found.pairs == 29_778


def test_people_tie_a_fifth_of_the_pairs_of_newstest(newstest: Matrices) -> None:
    human = newstest("mqm").T
    assert pair_table(human, human).tied.mean() == pytest.approx(0.1873, abs=5e-5)


def test_epsilon_can_be_fitted_on_other_segments(newstest: Matrices) -> None:
    x, z = newstest("YiSi-2"), newstest("mqm")
    # Segment ids run from 1, so that even positions are odd ids.
    fitted = acc_eq(x[:, ::2], z[:, ::2])
    assert fitted.epsilon == pytest.approx(2.15e-4, rel=1e-3)
    judged = acc_eq(x[:, 1::2], z[:, 1::2], epsilon=fitted.epsilon)
    assert judged.value == pytest.approx(0.4593, abs=5e-5)
    assert not judged.fitted
    assert acc_eq(x[:, 1::2], z[:, 1::2]).value == pytest.approx(0.4598, abs=5e-5)
    assert acc_eq(x, z).at_zero == pytest.approx(0.4189, abs=5e-5)


def test_the_toy_examples() -> None:
    metric, gold = [2, 1, 1.5, 5, 3], [1, 2, 2, 3, 4]
    found = acc_eq(metric, gold, "global")
    assert (found.value, found.epsilon, found.at_zero) == (pytest.approx(0.7), 0.5, pytest.approx(0.6))
    assert acc_eq(metric, gold, "global", epsilon=2).value == pytest.approx(0.4)
    soft = soft_pairwise_accuracy([[2, 2, 4], [1, 3, 5]], [[1, 2, 3], [2, 3, 4]], compat="mtme")
    assert soft.value == pytest.approx(0.872, abs=1e-9)


@settings(max_examples=40)
@given(st.integers(0, 10_000))
def test_the_best_epsilon_is_that_of_trying_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, z = rng.integers(0, 9, (5, 6)) / 4, rng.integers(0, 4, (5, 6)).astype(float)
    x[rng.random((5, 6)) < 0.1] = np.nan
    table = pair_table(np.where(np.isnan(x), np.nan, x).T, np.where(np.isnan(x), np.nan, z).T)
    tried = {e: float(table.weight[right(table, e)].sum()) for e in sorted({0.0, *table.distance.tolist()})}
    best = max(tried.values())
    found = acc_eq(x, z)
    assert found.value == pytest.approx(best, abs=1e-12)
    assert found.epsilon == min(e for e, value in tried.items() if value >= best - 1e-12)


def test_accuracy_at_zero_is_acc_23() -> None:
    x, z = np.random.default_rng(0).integers(0, 4, (2, 5, 8)).astype(float)
    assert acc_eq(x, z).at_zero == pytest.approx(correlate(x, z, "segment", "acc_23").value)


def test_pdp_is_pearson_of_all_ordered_differences() -> None:
    x, z = np.random.default_rng(0).random((2, 4, 6))
    x[1, 2] = np.nan
    differences = []
    for matrix in (x, z):
        d = matrix[:, None, :] - matrix[None, :, :]
        differences.append(d[~np.isnan(x[:, None, :] + x[None, :, :])])
    assert difference_correlation(x, z).value == pytest.approx(np.corrcoef(*differences)[0, 1])


def test_kendall_like_counts_clear_preferences_alone() -> None:
    z = np.array([[0.0], [10.0], [30.0], [60.0]])
    x = np.array([[1.0], [2.0], [1.0], [3.0]])
    # Clear pairs: 0-30 (tie: wrong), 0-60, 10-60, 30-60 (right); 10-30 is 20 points.
    found = kendall_like(x, z)
    assert (found.n, found.value) == (4, (3 - 1) / 4)


def test_pairs_of_several_sets_are_pooled() -> None:
    one = pairwise_accuracy([[1.0], [2.0]], [[1.0], [2.0]])
    two = pairwise_accuracy([[1.0], [2.0], [3.0]], [[3.0], [2.0], [1.0]])
    assert pool_pairs([one, two]).value == 0.25
    assert pool_pairs([one, two]).n == 4


def test_soft_accuracy_uses_the_segments_that_both_systems_have() -> None:
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, 4, 60))
    ragged = x.copy()
    ragged[2, 40:] = np.nan
    # The pair 0-2 is that of the first 40 segments but for the signs drawn, the pair 0-1 that of all of them.
    found, short, whole = (preference(one, n=2000) for one in (ragged, x[:, :40], x))
    assert found[0, 2] == pytest.approx(short[0, 2], abs=0.05)
    assert found[0, 1] == whole[0, 1]
    assert soft_pairwise_accuracy(ragged, z, n=2000).n == 6


@settings(max_examples=40)
@given(st.integers(0, 10_000))
def test_soft_accuracy_does_not_depend_on_the_order_of_systems(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, z = rng.integers(0, 3, (2, 5, 8)).astype(float)  # many equal sums
    x[rng.random(x.shape) < 0.1] = np.nan
    rows, columns = rng.permutation(5), rng.permutation(8)
    found, other = (soft_pairwise_accuracy(*pair, n=50).value for pair in ((x, z), (x[rows], z[rows])))
    assert found == other
    assert found == soft_pairwise_accuracy(x[np.ix_(rows, columns)], z[np.ix_(rows, columns)], n=50).value


def test_equal_systems_are_as_good_as_each_other() -> None:
    same = np.ones((2, 10))
    assert preference(same, n=100)[0, 1] == 1.0
    assert soft_pairwise_accuracy(same, same, n=100).value == 1.0


def test_what_has_no_pairs_is_not_defined() -> None:
    one = [[1.0, 2.0]]
    with pytest.warns(DegenerateStatisticWarning, match="acc_eq is not defined"):
        assert acc_eq(one, one).reason == "empty"
    with pytest.warns(DegenerateStatisticWarning, match="fewer than two systems"):
        assert math.isnan(pairwise_accuracy(one, one).value)
    with pytest.warns(DegenerateStatisticWarning, match="spa is not defined"):
        assert math.isnan(soft_pairwise_accuracy(one, one).value)
    with pytest.warns(DegenerateStatisticWarning, match="pdp is not defined"):
        assert difference_correlation(one, one).reason == "empty"
    with pytest.warns(DegenerateStatisticWarning, match="25 points"):
        assert math.isnan(kendall_like([[1.0], [2.0]], [[1.0], [2.0]]).value)
    with pytest.warns(DegenerateStatisticWarning, match="no two systems differ"):
        assert difference_correlation([[1.0], [1.0]], [[1.0], [2.0]]).reason == "constant"


def test_wrong_options_are_refused() -> None:
    pair = ([[1.0], [2.0]], [[1.0], [2.0]])
    with pytest.raises(SpecError, match="epsilon is -1"):
        acc_eq(*pair, epsilon=-1)
    with pytest.raises(SpecError, match="compat is 'x'"):
        soft_pairwise_accuracy(*pair, compat="x")  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="n is 0"):
        soft_pairwise_accuracy(*pair, n=0)
    with pytest.raises(SpecError, match=re.escape("spa is made for the level system, not global")):
        measure_of("spa", "global")
    with pytest.raises(UnknownName, match=re.escape("no coefficient named 'kendal'. Did you mean 'kendall'?")):
        measure_of("kendal")
    with pytest.raises(SpecError, match="use level segment or global"):
        outcome_test(*pair, pair[0], "system")


def test_outcomes_of_pairs_change_places() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=(6, 40))
    good, bad = z + rng.normal(size=(6, 40)), z + 9 * rng.normal(size=(6, 40))
    found = outcome_test(good, bad, z, alternative="greater", n=999)
    assert found.p == 0.001
    assert found.delta == pytest.approx(acc_eq(good, z).value - acc_eq(bad, z).value)
    assert found.permute == "pairs"
    assert outcome_test(bad, good, z, alternative="less", n=999).p == found.p
    assert outcome_test(good, good, z, n=99).p == 1.0
    small = outcome_test(good, bad, z, n=500, keep=True, memory=50_000)
    whole = outcome_test(good, bad, z, n=500, keep=True)
    assert small.samples == pytest.approx(whole.samples)
    with pytest.warns(DegenerateStatisticWarning):
        assert math.isnan(outcome_test([[1.0]], [[1.0]], [[1.0]]).p)


@pytest.mark.parametrize("name", MEASURES)
def test_every_measure_can_be_had_by_name(name: str) -> None:
    rng = np.random.default_rng(0)
    z = 100 * rng.random((5, 12))
    human = (z > 50).astype(np.float64) if name in ("auc", "accuracy") else z
    found, facts = agree(z + rng.random((5, 12)), human, measure_of(name))
    assert found.value > 0.8
    assert found.name == f"{name}@{MEASURES[name].level}"
    assert ("epsilon" in facts) == (name == "acc_eq")


@pytest.mark.parametrize("name", ["auc", "accuracy"])
def test_classification_needs_two_classes(name: str) -> None:
    assert math.isnan(kernel(coefficient_of(name))(np.arange(4.0), np.array([0.0, 1.0, 2.0, 2.0])))
    assert math.isnan(kernel(coefficient_of(name))(np.arange(4.0), np.ones(4)))
    gaps = np.array([0.0, np.nan, 1.0, 1.0])
    assert kernel(coefficient_of(name))(np.array([1.0, 9.0, 2.0, 3.0]), gaps) == 1.0


def test_averages_of_correlations_and_accuracies_are_on_one_scale() -> None:
    assert as_share(0.0, "pearson") == 0.5
    assert average({"a": (0.5, "pearson"), "b": (0.5, "spa")}) == pytest.approx(0.625)
    assert average({"a": (0.5, "pearson"), "b": (0.1, "kendall_b")}) == pytest.approx(0.3)
    assert average({"a": (0.5, "spa"), "b": (0.9, "spa")}, {"a": 3.0, "b": 1.0}) == pytest.approx(0.6)


@pytest.mark.filterwarnings("ignore::whyscore.stats.matrices.DegenerateStatisticWarning")
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("name", MEASURES)
def test_no_measure_depends_on_the_order_of_systems_and_segments(name: str, missing: float) -> None:
    rng = np.random.default_rng(3)
    x, z = rng.normal(size=(2, 5, 40))
    if name in ("auc", "accuracy"):
        z = (z > 0).astype(np.float64)
    z[rng.random(z.shape) < missing] = np.nan
    whole = agree(x, z, measure_of(name))
    halves = acc_eq_held_out(x, z)
    for _ in range(5):
        rows, columns = rng.permutation(5), rng.permutation(40)
        place = np.ix_(rows, columns)
        assert agree(x[place], z[place], measure_of(name)) == whole
        if name == "acc_eq":
            assert acc_eq_held_out(x[place], z[place]) == halves
