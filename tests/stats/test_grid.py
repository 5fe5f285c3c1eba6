"""Correlations of many score vectors at once: the same numbers as scipy, at every level."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from whyscore.errors import DataError, SpecError
from whyscore.stats.correlation import correlate
from whyscore.stats.grid import Target, grid_correlations

ALL = ("pearson", "spearman", "kendall")


def by_scipy(x: np.ndarray, z: np.ndarray) -> list[float]:
    return [stats.pearsonr(x, z)[0], stats.spearmanr(x, z)[0], stats.kendalltau(x, z)[0]]


@pytest.mark.parametrize("length", [5, 40, 49, 300])
@pytest.mark.parametrize("digits", [0, 1, 8])
def test_pooled_correlations_are_scipys(length: int, digits: int) -> None:
    rng = np.random.default_rng(length + digits)
    scores, human = rng.normal(size=(4, length)).round(digits), rng.normal(size=length).round(1)
    scores[3] = human * 2 + 1
    found = grid_correlations(scores, human, coefficients=ALL)
    np.testing.assert_allclose(found, np.transpose([by_scipy(row, human) for row in scores]), atol=1e-12)


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=3, max_size=70))
def test_ties_are_counted_as_scipy_counts_them(pairs: list[tuple[int, int]]) -> None:
    x, z = np.array(pairs, dtype=np.float64).T
    found = grid_correlations(x[None], z, coefficients=("kendall",))[0, 0]
    expected = np.nan if np.ptp(x) == 0 or np.ptp(z) == 0 else stats.kendalltau(x, z)[0]
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("level", ["system", "segment", "global", "within_system"])
def test_levels_are_those_of_single_correlations(level: str) -> None:
    rng = np.random.default_rng(3)
    matrix, human = rng.normal(size=(3, 7, 30)), rng.normal(size=(7, 30)).round(1)
    human[rng.random((7, 30)) < 0.1] = np.nan
    systems, segments = (one.ravel() for one in np.indices((7, 30)))
    found = grid_correlations(
        matrix.reshape(3, -1), human.ravel(), coefficients=ALL, level=level, systems=systems, segments=segments
    )
    for k, coefficient in enumerate(ALL):
        expected = [correlate(one, human, level, coefficient).value for one in matrix]
        np.testing.assert_allclose(found[k], expected, atol=1e-12)


def test_long_vectors_are_counted_in_another_way_with_the_same_result() -> None:
    rng = np.random.default_rng(0)
    scores, human = rng.normal(size=(1, 5000)).round(2), rng.normal(size=5000).round(2)
    found = grid_correlations(scores, human, coefficients=("kendall",))[0, 0]
    assert found == pytest.approx(stats.kendalltau(scores[0], human)[0], abs=1e-12)


@pytest.mark.parametrize("level", ["system", "global", "segment"])
def test_mixtures_are_correlated_as_if_they_were_formed(level: str) -> None:
    rng = np.random.default_rng(1)
    systems, segments = (one.ravel() for one in np.indices((6, 20)))
    whole, others, human = rng.normal(size=120), rng.normal(size=(5, 120)) * 1e-3, rng.normal(size=120)
    weights = np.array([0.0, 0.2, 1.0])
    target = Target.of(human, coefficients=ALL, level=level, systems=systems, segments=segments)
    found = target.mix(target.project(whole), target.project(others), weights)
    for j, weight in enumerate(weights):
        mixed = weight * whole + (1 - weight) * others
        expected = target.correlate(target.project(mixed))
        np.testing.assert_allclose(found[:, :, j], expected, atol=1e-10)


def test_constant_scores_have_no_correlation() -> None:
    human = np.arange(12.0)
    scores = np.vstack([np.full(12, 0.1), human])
    found = grid_correlations(scores, human, coefficients=ALL)
    assert np.isnan(found[:, 0]).all()
    np.testing.assert_allclose(found[:, 1], 1.0)
    target = Target.of(human, coefficients=("pearson",))
    mixed = target.mix(np.full(12, 0.5), np.full((1, 12), 0.3), np.array([0.5]))
    assert np.isnan(mixed).all()


def test_means_that_differ_by_rounding_alone_are_tied() -> None:
    human = np.array([0.1 + 0.2, 0.3, 1.0, 2.0])
    scores = np.array([[1.0, 2.0, 3.0, 4.0]])
    numbers = np.arange(4)
    found = grid_correlations(
        scores, human, coefficients=("kendall",), level="system", systems=numbers, segments=np.zeros(4, dtype=np.int64)
    )
    assert found[0, 0] == pytest.approx(stats.kendalltau([1, 2, 3, 4], [0.3, 0.3, 1, 2])[0])


def test_entries_without_a_judgement_are_left_out() -> None:
    human = np.array([1.0, np.nan, 2.0, 4.0])
    scores = np.array([[1.0, 100.0, 2.0, 4.0]])
    assert grid_correlations(scores, human)[0, 0] == pytest.approx(1.0)


def test_a_level_needs_to_know_where_scores_belong() -> None:
    with pytest.raises(DataError, match=re.escape("the level system needs to know the system and the segment")):
        Target.of(np.arange(3.0), level="system")
    with pytest.raises(SpecError, match=re.escape("no level named 'word'")):
        Target.of(np.arange(3.0), level="word")
