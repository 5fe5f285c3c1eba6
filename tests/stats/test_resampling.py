"""Bootstrap intervals."""

import numpy as np
import pytest
from scipy import stats

from whyscore.stats import resampling
from whyscore.stats.resampling import bootstrap_mean, bootstrap_total, draw_counts


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
