import re

import numpy as np
import pytest
from scipy import stats

from whyscore.errors import SpecError
from whyscore.stats.words import best_group, compare_pair, mean_estimates, orientation, pair_tests, ranks

RNG = np.random.default_rng(3)
ONE, OTHER = RNG.random(40), RNG.random(40)


def test_the_paired_t_test_equals_scipy() -> None:
    found, wanted = compare_pair(ONE, OTHER), stats.ttest_rel(ONE, OTHER)
    assert (found.statistic, found.p) == pytest.approx((wanted.statistic, wanted.pvalue), abs=1e-12)


def test_sign_flips_agree_with_the_t_test_and_never_reach_zero() -> None:
    assert compare_pair(ONE, OTHER, "permutation").p == pytest.approx(compare_pair(ONE, OTHER).p, abs=0.02)
    assert compare_pair(ONE, ONE - 5, "permutation").p == 1 / 10_001


def test_equal_systems_do_not_differ() -> None:
    assert compare_pair(ONE, ONE).p == 1.0
    assert compare_pair(ONE, ONE, "permutation").p == 1.0


def test_one_sentence_gives_no_p() -> None:
    assert np.isnan(compare_pair(ONE[:1], OTHER[:1]).p)


def test_an_unknown_test_is_refused() -> None:
    with pytest.raises(SpecError, match=re.escape("no test named 'z': use ttest, permutation")):
        compare_pair(ONE, OTHER, "z")  # type: ignore[arg-type]


def test_a_missing_side_is_last_and_equal_means_share_their_rank() -> None:
    assert ranks(np.array([0.5, 0.9, 0.5, np.nan, np.nan])).tolist() == [2.5, 1.0, 2.5, 5.0, 5.0]


def test_only_clear_losers_leave_the_best_group() -> None:
    p = {(0, 1): 0.2, (0, 2): 0.01, (1, 2): 0.3}
    assert best_group([0.9, 0.8, 0.7], p) == [0, 1]


def test_the_guard_fires_below_chance_only() -> None:
    low, high = np.clip(0.3 + 0.1 * RNG.standard_normal(50), 0, 1), np.full(50, 0.8)
    assert orientation(low).fires
    assert not orientation(high).fires
    assert not orientation(np.array([0.1])).fires


def test_rows_share_their_resamples() -> None:
    first, second, difference = mean_estimates(np.stack([ONE, ONE + 1, np.ones(40)]), draws=200)
    assert second.low == pytest.approx((first.low or 0) + 1, abs=1e-12)
    assert (difference.low, difference.high) == pytest.approx((1.0, 1.0))


def test_pairs_are_named_by_rows() -> None:
    assert sorted(pair_tests(np.stack([ONE, OTHER, ONE]))) == [(0, 1), (0, 2), (1, 2)]
