"""Permutation tests of two metrics."""

import math
import re
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from whyscore.errors import SpecError
from whyscore.stats.correlation import correlate
from whyscore.stats.matrices import (
    LEVELS,
    PERMUTES,
    DegenerateStatisticWarning,
    coin_count,
    every_coin,
    free_coins,
    spread,
    standardise,
)
from whyscore.stats.resampling import sort_by_content
from whyscore.stats.significance import permutation_test

Matrices = Callable[[str], NDArray[np.float64]]


def three(seed: int, *, rounded: bool = False, shape: tuple[int, int] = (6, 9)) -> list[NDArray[np.float64]]:
    found = np.random.default_rng(seed).normal(size=(3, *shape))
    return list(found.round(0) if rounded else found)


def test_p_values_equal_those_of_nlpstats_on_its_own_regression(expected: dict) -> None:
    state = np.random.RandomState(1234)
    x, y, z = (state.random_sample((9, 5)) for _ in range(3))
    golden = expected["nlpstats_permutation_test_regression"]
    calls = [
        ("global_pearson_both_two-sided_9999", "global", "pearson", "row_xor_column", "two-sided", 9999),
        ("then_global_pearson_both_greater_1000", "global", "pearson", "row_xor_column", "greater", 1000),
        ("then_less_1000", "global", "pearson", "row_xor_column", "less", 1000),
        ("then_system_spearman_inputs_1000", "system", "spearman", "inputs", "two-sided", 1000),
        ("then_input_kendall_systems_1000", "input", "kendall", "systems", "two-sided", 1000),
    ]
    for key, level, coefficient, permute, alternative, n in calls:
        found = permutation_test(
            *(x, y, z, level, coefficient),
            permute=permute, alternative=alternative, n=n, seed=state, compat="nlpstats",
        )  # fmt: skip
        assert found.p == golden[key], key


@pytest.mark.parametrize(
    ("better", "worse", "level", "coefficient", "n", "p"),
    [
        ("bertscore_recall", "rouge-1_f1", "system", "kendall", 9999, 0.008000800080008),
        ("qa-eval_f1", "MoverScore", "system", "kendall", 9999, 0.0024002400240024),
        ("qa-eval_f1", "MoverScore", "segment", "kendall", 1000, 0.033),
        ("qa-eval_f1", "MoverScore", "segment", "pearson", 1000, 0.195),
    ],
)
def test_p_values_equal_those_of_nlpstats_on_summeval(
    summeval: Matrices, better: str, worse: str, level: str, coefficient: str, n: int, p: float
) -> None:
    found = permutation_test(
        *(summeval(better), summeval(worse), summeval("expert_relevance"), level, coefficient),
        permute="row_xor_column", alternative="greater", n=n, seed=0, compat="nlpstats",
    )  # fmt: skip
    assert found.p == pytest.approx(p, abs=1e-15)


@pytest.mark.parametrize("level", ["system", "input", "global"])
@pytest.mark.parametrize("coefficient", ["pearson", "spearman", "kendall"])
def test_p_values_equal_those_of_nlpstats_on_random_matrices(level: str, coefficient: str) -> None:
    peer = pytest.importorskip("nlpstats.correlations")
    before = np.random.get_state()  # noqa: NPY002 - theirs is the global one
    for permute, theirs in (("row_xor_column", "both"), ("systems", "systems"), ("inputs", "inputs")):
        x, y, z = three(3, shape=(5, 6))
        np.random.seed(5)  # noqa: NPY002
        golden = peer.permutation_test(x, y, z, level, coefficient, theirs, alternative="greater", n_resamples=15)
        ours = permutation_test(
            *(x, y, z, level, coefficient),
            permute=permute, alternative="greater", n=15, seed=5, compat="nlpstats", keep=True,
        )  # fmt: skip
        assert ours.samples == pytest.approx(np.array(golden.samples), abs=1e-12)
        theirs_with_margin = np.mean(np.array(golden.samples) >= ours.delta - 1e-12)
        assert ours.p == theirs_with_margin
        # What is left are deltas equal to the observed one, which rounding puts on one side or the other.
        equal = np.mean(np.abs(np.array(golden.samples) - ours.delta) < 1e-12)
        assert abs(ours.p - golden.pvalue) <= equal + 1e-12
    np.random.set_state(before)  # noqa: NPY002


@pytest.mark.parametrize(("permute", "ps"), [("cell", (0.0058, 0.0015)), ("row_xor_column", (0.0085, 0.0024))])
def test_long_runs_of_the_two_ways_to_permute_both(summeval: Matrices, permute: str, ps: tuple[float, float]) -> None:
    human, n = summeval("expert_relevance"), 20_000
    pairs = (("bertscore_recall", "rouge-1_f1"), ("qa-eval_f1", "MoverScore"))
    for (better, worse), p in zip(pairs, ps, strict=True):
        found = permutation_test(
            summeval(better), summeval(worse), human, permute=permute, alternative="greater", n=n
        )  # fmt: skip
        # 4 standard errors of this run, and half a digit of the golden number
        assert found.p == pytest.approx(p, abs=4 * math.sqrt(p / n) + 0.00035)


def test_all_swaps_of_systems_are_listed(summeval: Matrices) -> None:
    human = summeval("expert_relevance")
    found = permutation_test(
        *(summeval("bertscore_recall"), summeval("rouge-1_f1"), human), permute="systems", alternative="greater"
    )
    assert found.exact
    assert (found.extreme, found.n, found.seed) == (7992, 65536, None)
    other = permutation_test(
        *(summeval("qa-eval_f1"), summeval("MoverScore"), human), permute="systems", alternative="greater"
    )
    assert (other.extreme, other.n) == (6312, 65536)


@pytest.mark.parametrize("permute", PERMUTES)
def test_listing_finds_every_distinct_swap_once(permute: str) -> None:
    blocks = [spread(part, permute, 3, 2) for part in every_coin(permute, 3, 2, block=5)]
    swaps = np.concatenate(blocks).reshape(-1, 6)
    assert len(np.unique(swaps, axis=0)) == len(swaps) == 2 ** free_coins(permute, 3, 2)
    everything = {
        tuple(spread(np.array([tossed], dtype=np.bool_), permute, 3, 2).ravel().tolist())
        for tossed in product([False, True], repeat=coin_count(permute, 3, 2))
    }
    assert {tuple(row) for row in swaps.tolist()} == everything


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("coefficient", ["pearson", "spearman", "kendall_b", "kendall_c", "tau_23", "acc_23"])
def test_resampled_deltas_are_those_of_the_swapped_matrices(level: str, coefficient: str, *, rounded: bool) -> None:
    x, y, z = three(1, rounded=rounded)
    x[2, 3] = y[0, 0] = np.nan
    z[4, :2] = np.nan
    gap = np.isnan(x + y + z)
    x, y, z = sort_by_content(*(np.where(gap, np.nan, one) for one in (x, y, z)))  # as they are drawn
    found = permutation_test(x, y, z, level, coefficient, permute="cell", n=20, keep=True)
    a, b = standardise(x), standardise(y)
    drawn = np.random.default_rng(0).random((20, x.size)) > 0.5
    assert found.samples is not None
    for swap, delta in zip(drawn.reshape(20, *x.shape), found.samples, strict=True):
        first, second = np.where(swap, b, a), np.where(swap, a, b)
        naive = correlate(first, z, level, coefficient).value - correlate(second, z, level, coefficient).value
        assert delta == pytest.approx(naive, abs=1e-12)


@settings(max_examples=25)
@given(st.integers(0, 200), st.sampled_from(PERMUTES), st.sampled_from(LEVELS))
def test_swapping_the_metrics_turns_greater_into_less(seed: int, permute: str, level: str) -> None:
    x, y, z = three(seed)
    one = permutation_test(x, y, z, level, permute=permute, alternative="greater", n=50)
    other = permutation_test(y, x, z, level, permute=permute, alternative="less", n=50)
    assert one.p == other.p
    assert one.delta == pytest.approx(-other.delta)


@pytest.mark.parametrize("permute", PERMUTES)
def test_a_metric_is_not_better_than_itself(permute: str) -> None:
    x, _, z = three(0)
    assert permutation_test(x, x, z, permute=permute, n=99).p == 1.0


@pytest.mark.parametrize("level", LEVELS)
def test_the_memory_given_does_not_change_a_result(level: str) -> None:
    x, y, z = three(2)
    whole = permutation_test(x, y, z, level, n=200)
    assert permutation_test(x, y, z, level, n=200, memory=20_000) == whole


def test_the_global_generator_is_left_alone() -> None:
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    permutation_test(*three(0), n=10)
    permutation_test(*three(0), n=10, compat="nlpstats", seed=3)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


def test_p_values_under_a_true_null_are_uniform() -> None:
    # Both metrics are the human scores with the same noise: exchangeable, cell by cell.
    ps = []
    for seed in range(500):
        rng = np.random.default_rng([9, seed])
        z = rng.normal(size=(8, 30))
        x, y = z + rng.normal(size=(2, 8, 30))
        ps.append(permutation_test(x, y, z, "global", "pearson", alternative="greater", n=199, seed=seed).p)
    assert stats.kstest(ps, "uniform").pvalue > 0.01


def test_one_column_makes_cell_and_systems_the_same() -> None:
    x, y, z = three(4, shape=(9, 1))
    ps = {
        permutation_test(x, y, z, level, permute=way).p for way in ("cell", "systems") for level in ("system", "global")
    }
    assert len(ps) == 1


def test_stopping_early_is_told() -> None:
    x, _, z = three(0, shape=(8, 20))
    found = permutation_test(z, x, z, "global", "pearson", n=50_000, early_stop=True)
    assert found.stopped
    assert found.n == 1000
    assert found.p < 0.02


def test_an_undefined_difference_has_no_p() -> None:
    x, _, z = three(0)
    with pytest.warns(DegenerateStatisticWarning, match="not defined"):
        found = permutation_test(np.ones_like(x), x, z)
    assert math.isnan(found.p)
    assert found.reason == "constant"
    assert (found.n, found.name) == (0, "kendall_b@system, permute cell")


def test_wrong_options_are_refused() -> None:
    data = three(0)
    with pytest.raises(SpecError, match=re.escape("no way to permute named 'both': use cell, row_xor_column")):
        permutation_test(*data, permute="both")  # type: ignore[misc, arg-type]
    with pytest.raises(SpecError, match="alternative is 'bigger'"):
        permutation_test(*data, alternative="bigger")  # type: ignore[misc, arg-type]
    with pytest.raises(SpecError, match="n is 0"):
        permutation_test(*data, n=0)  # type: ignore[misc]
    with pytest.raises(SpecError, match=re.escape("more than 2^20 swaps")):
        permutation_test(*data, exact=True)  # type: ignore[misc]
    with pytest.raises(SpecError, match="compat is 'R'"):
        permutation_test(*data, compat="R")  # type: ignore[misc, arg-type]
