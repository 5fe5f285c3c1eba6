"""Corrections for many tests."""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from whyscore.errors import DataError, SpecError
from whyscore.stats.correction import benjamini_hochberg, bonferroni, correct_p, holm, partial_conjunction

P = [0.001, 0.01, 0.02, 0.04]


def test_the_example_of_four_tests() -> None:
    assert bonferroni(P).rejections == 2
    assert holm(P).rejections == 4
    assert holm(P).adjusted == pytest.approx((0.004, 0.03, 0.04, 0.04))
    assert partial_conjunction(P).k == 4


def test_the_order_of_the_tests_is_kept() -> None:
    assert holm([0.04, 0.001, 0.02, 0.01]).adjusted == pytest.approx((0.04, 0.004, 0.04, 0.03))
    assert holm([0.04, 0.001], family="two metrics").family == "two metrics"


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_corrections_keep_their_order_of_severity(p: list[float]) -> None:
    raw, false_rate, stepwise, plain = (np.array(one) for one in (p, *(f(p).adjusted for f in (
        benjamini_hochberg, holm, bonferroni))))  # fmt: skip
    assert (raw <= false_rate + 1e-12).all()
    assert (false_rate <= stepwise + 1e-12).all()
    assert (stepwise <= plain + 1e-12).all()
    assert partial_conjunction(p).k == holm(p).rejections
    assert false_rate == pytest.approx(false_discovery_control(p), abs=1e-12)


def test_a_test_that_could_not_be_made_does_not_count() -> None:
    found = bonferroni([0.02, math.nan])
    assert found.adjusted[0] == pytest.approx(0.02)
    assert math.isnan(found.adjusted[1])
    assert found.rejected == (True, False)
    assert (found.n, partial_conjunction([0.02, math.nan]).n) == (1, 1)


def test_wrong_input_is_refused() -> None:
    with pytest.raises(DataError, match=re.escape("a p-value is 1.5, expected 0 to 1")):
        holm([1.5])
    with pytest.raises(DataError, match="2 dimensions"):
        holm([[0.5]])  # type: ignore[list-item]
    with pytest.raises(SpecError, match="alpha is 0"):
        holm([0.5], alpha=0)
    with pytest.raises(SpecError, match=re.escape("no correction named 'sidak': use none, bonferroni")):
        correct_p("sidak", P)
    assert correct_p("none", P).adjusted == tuple(P)
    assert correct_p("holm", P) == holm(P)
