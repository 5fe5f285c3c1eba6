"""Bootstrap intervals."""

import numpy as np
import pytest
from scipy import stats

from whyscore.stats import resampling
from whyscore.stats.resampling import (
    bootstrap_mean,
    bootstrap_total,
    draw_counts,
    draw_sums,
    percentiles,
    sort_by_content,
)


def test_every_draw_has_as_many_segments_as_there_are() -> None:
    counts = np.vstack(list(draw_counts(7, 50, 0)))
    assert counts.shape == (50, 7)
    assert (counts.sum(axis=1) == 7).all()


def test_the_interval_of_a_mean_agrees_with_theory() -> None:
    values = np.random.default_rng(0).normal(5, 2, size=400)
    found = bootstrap_mean(values, draws=4000)
    error = stats.sem(values)
    assert found.value == pytest.approx(values.mean())
    assert found.low == pytest.approx(values.mean() - 1.96 * error, abs=0.15 * error)
    assert found.high == pytest.approx(values.mean() + 1.96 * error, abs=0.15 * error)


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    rng = np.random.default_rng(1)
    covered = 0
    for number in range(200):
        found = bootstrap_mean(rng.exponential(1.0, size=60), draws=300, seed=number)
        covered += (found.low or 0) <= 1.0 <= (found.high or 0)
    assert 0.88 <= covered / 200 <= 0.99


def test_blocks_do_not_change_the_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(0).random((30, 2))
    whole = bootstrap_total(rows, lambda row: row[0] / row[1])
    monkeypatch.setattr("whyscore.stats.resampling._CELLS", 100)
    assert bootstrap_total(rows, lambda row: row[0] / row[1]) == whole


@pytest.mark.parametrize("width", [1, 7])
def test_sums_of_draws_are_exact(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, width)) * 10.0 ** rng.integers(-6, 6, width)
    counts = np.vstack(list(draw_counts(300, 40, 0)))
    sums = np.vstack(list(draw_sums(rows, 40, 0)))
    assert np.abs(sums - counts @ rows).max(axis=0) == pytest.approx(0, abs=1e-11 * np.abs(rows).max() * 300)
    # Drawn one by one, and in another order of the columns, products have other shapes.
    monkeypatch.setattr(resampling, "_CELLS", 300)
    np.testing.assert_array_equal(np.vstack(list(draw_sums(rows, 40, 0))), sums)
    apart = np.hstack([np.vstack(list(draw_sums(rows[:, [k]], 40, 0))) for k in reversed(range(width))])
    np.testing.assert_array_equal(apart[:, ::-1], sums)


def test_counts_keep_their_sums() -> None:
    rows = np.random.default_rng(0).integers(0, 10**9, (2000, 3)).astype(np.float64)
    counts = np.vstack(list(draw_counts(2000, 5, 0)))
    np.testing.assert_array_equal(np.vstack(list(draw_sums(rows, 5, 0))), counts @ rows)


def test_numbers_near_the_smallest_keep_their_sums() -> None:
    rows = np.full((20, 1), 1e-320)
    np.testing.assert_array_equal(np.vstack(list(draw_sums(rows, 5, 0))), np.full((5, 1), rows.sum()))


def test_last_digits_do_not_change_the_order_of_systems() -> None:
    rng = np.random.default_rng(0)
    human, metric = (rng.random((200, 1)) for _ in range(2))
    human = human.round(1)  # many systems are equal when rounded
    noisy = metric + rng.normal(size=metric.shape) * 1e-14
    for exact, other in zip(sort_by_content(metric, human), sort_by_content(noisy, human), strict=True):
        np.testing.assert_allclose(other, exact, rtol=0, atol=1e-12)


def test_nothing_and_one_value_have_no_interval() -> None:
    nothing = bootstrap_mean(np.array([]))
    assert np.isnan(nothing.value)
    assert nothing.reason == "empty"
    assert bootstrap_mean(np.array([3.0])).low is None


def test_rows_that_are_mixed_in_parts_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    table = np.random.default_rng(0).integers(0, 4, size=(50, 2)).astype(np.float64)
    whole = resampling.content_order(table, table[::-1])
    monkeypatch.setattr(resampling, "_PART", 7)
    assert np.array_equal(resampling.content_order(table, table[::-1]), whole)


def test_no_end_of_an_interval_is_a_negative_zero() -> None:
    assert not np.signbit(percentiles(np.zeros(5), 0.95)).any()
