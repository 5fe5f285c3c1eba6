"""Bootstrap draws of systems and segments: long vectors, and accuracies over pairs."""

import math
import re
from collections.abc import Callable
from itertools import combinations
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from whyscore.errors import SpecError
from whyscore.stats import intervals
from whyscore.stats.agreement import (
    acc_eq,
    difference_correlation,
    kendall_like,
    pairwise_accuracy,
    preference,
    sign_rows,
)
from whyscore.stats.coefficients import pair_counts
from whyscore.stats.correlation import level_values
from whyscore.stats.intervals import Drawing, bootstrap, draw_blocks, draw_values, too_many
from whyscore.stats.kendall import Places
from whyscore.stats.matrices import coins, spread, standardise
from whyscore.stats.resampling import content_order, sort_by_content
from whyscore.stats.significance import permutation_test

Matrix = NDArray[np.float64]
Matrices = Callable[[str], Matrix]


def made(rows: int, columns: int, seed: int = 0, *, gaps: bool = False) -> tuple[Matrix, Matrix, Matrix]:
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 5, (rows, columns)).astype(float)
    x, y = z + 2 * rng.normal(size=z.shape), np.round(z + 2 * rng.normal(size=z.shape))
    if gaps:
        x[rng.random(z.shape) < 0.15] = np.nan
        z[rng.random(z.shape) < 0.1] = np.nan
    return x, y, z


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 90), st.integers(1, 40), st.integers(1, 40), st.integers(0, 10**6))
def test_weighted_pairs_are_those_of_repeated_places(count: int, x_values: int, z_values: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, z = (rng.integers(0, most, count).astype(float) for most in (x_values, z_values))
    weights = rng.integers(0, 4, (3, count))
    found = Places.of(x, z).pairs(weights)
    for k, own in enumerate(weights):
        peer = pair_counts(np.repeat(x, own), np.repeat(z, own))
        assert [float(kind[k]) for kind in found] == [float(kind) for kind in peer]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 90), st.integers(1, 40), st.integers(0, 10**6))
def test_chosen_places_and_the_others_are_counted_apart(count: int, values: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, z = (rng.integers(0, values, count).astype(float) for _ in range(2))
    chosen = rng.random((3, count)) < 0.5
    halves = Places.of(x, z).halves(chosen)
    for k, own in enumerate(chosen):
        for half, mask in zip(halves, (own, ~own), strict=True):
            peer = pair_counts(x[mask], z[mask])
            assert [float(kind[k]) for kind in half] == [float(kind) for kind in peer]


def test_no_places_have_no_pairs() -> None:
    empty = Places.of(np.zeros(0), np.zeros(0))
    assert [kind.tolist() for kind in empty.pairs(np.zeros((2, 0)))] == [[0.0, 0.0]] * 5
    assert [kind.tolist() for kind in empty.halves(np.zeros((1, 0), dtype=bool))[1]] == [[0.0]] * 5


@pytest.mark.parametrize("resample", ["both", "systems", "inputs"])
@pytest.mark.parametrize(("level", "gaps"), [("global", False), ("global", True), ("within_system", True)])
def test_long_vectors_have_the_values_of_drawn_matrices(
    level: Literal["global", "within_system"],
    gaps: bool,  # noqa: FBT001 - a parameter
    resample: Literal["both", "systems", "inputs"],
) -> None:
    x, _, z = made(3, 290, gaps=gaps)
    drawing = Drawing(resample, 5, 1)
    found = draw_values(x, z, level, "kendall_b", drawing)
    (drawn,) = draw_blocks(x.shape, drawing)
    for k in range(5):
        rows = np.arange(3) if drawn.rows is None else drawn.rows[k]
        columns = np.arange(290) if drawn.columns is None else drawn.columns[k]
        taken = [matrix[np.ix_(rows, columns)] for matrix in (x, z)]
        assert found[k] == float(level_values(*taken, level, "kendall_b"))


def share_by_hand(x: Matrix, z: Matrix, level: str, rows: list[int], columns: list[int]) -> float:
    """Return the share of right pairs of a draw, pair by pair; what was drawn twice is no pair with itself."""
    cells = [(i, j) for i in rows for j in columns]
    if level == "system":
        means = {i: (np.nanmean(x[i, columns]), np.nanmean(z[i, columns])) for i in rows}
        groups = [[(i, means[i]) for i in rows]]
    elif level == "segment":
        groups = [[(i, (x[i, j], z[i, j])) for i in rows] for j in columns]
    elif level == "within_system":
        groups = [[(j, (x[i, j], z[i, j])) for j in columns] for i in rows]
    else:
        groups = [[(i * 1000 + j, (x[i, j], z[i, j])) for i, j in cells]]
    shares = []
    for group in groups:
        right = [
            np.sign(round(a[0] - b[0], 9)) == np.sign(round(a[1] - b[1], 9))
            for (p, a), (q, b) in combinations(group, 2)
            if p != q and not math.isnan(a[0] + a[1] + b[0] + b[1])
        ]
        if right:
            shares.append(float(np.mean(right)))
    return float(np.mean(shares)) if shares else math.nan


@pytest.mark.parametrize("resample", ["both", "systems", "inputs"])
@pytest.mark.parametrize("level", ["system", "segment", "global", "within_system"])
@pytest.mark.parametrize("size", [(4, 7), (2, 260)])
def test_shares_of_right_pairs_count_nothing_as_a_pair_with_itself(
    level: Literal["system", "segment", "global", "within_system"],
    resample: Literal["both", "systems", "inputs"],
    size: tuple[int, int],
) -> None:
    _, x, z = made(*size, 4)
    x[0, 0], x[1, 2] = np.nan, np.nan
    z = np.where(np.isnan(x), np.nan, z)
    draws = 4 if size[1] < 100 else 1
    drawing = Drawing(resample, draws, 2)
    found = draw_values(x, z, level, "acc_23", drawing)
    (drawn,) = draw_blocks(x.shape, drawing)
    for k in range(draws):
        rows = list(range(size[0])) if drawn.rows is None else drawn.rows[k].tolist()
        columns = list(range(size[1])) if drawn.columns is None else drawn.columns[k].tolist()
        expected = share_by_hand(x, z, level, rows, columns)
        assert found[k] == pytest.approx(expected, abs=1e-12, nan_ok=True)
    taus = draw_values(x, z, level, "tau_23", drawing)
    np.testing.assert_allclose(taus, 2 * found - 1, atol=1e-12)


def test_two_systems_drawn_twice_each_are_four_pairs_and_one_alone_is_none() -> None:
    x, z = sort_by_content(np.array([[1.0], [2.0], [3.0]]), np.array([[2.0], [1.0], [3.0]]))  # as they are drawn
    good = int(np.flatnonzero(x[:, 0] == 3)[0])  # ahead of both others on both sides
    found = bootstrap(x, z, "system", "acc_23", resample="systems", n=300, keep=True).samples
    assert found is not None
    (drawn,) = draw_blocks(x.shape, Drawing("systems", 300, 0))
    assert drawn.rows is not None
    for value, rows in zip(found.tolist(), drawn.rows.tolist(), strict=True):
        best, *rest = (rows.count(k) for k in (good, *({0, 1, 2} - {good})))
        right = best * sum(rest)
        every = right + rest[0] * rest[1]
        assert value == pytest.approx(right / every if every else math.nan, nan_ok=True)
    assert np.isnan(found).any()


@pytest.mark.parametrize("resample", ["both", "systems"])
def test_the_share_of_right_system_pairs_is_pairwise_accuracy_on_every_draw(
    resample: Literal["both", "systems"],
) -> None:
    x, _, z = made(6, 12, 8, gaps=True)
    first, second = (
        bootstrap(x, z, "system", measure, resample=resample, n=50, keep=True).samples
        for measure in ("acc_23", "pairwise_accuracy")
    )
    assert first is not None
    assert second is not None
    np.testing.assert_allclose(first, second, atol=1e-12)


@pytest.mark.parametrize("level", ["global", "within_system"])
@pytest.mark.parametrize("coefficient", ["kendall", "acc_23", "tau_23"])
def test_long_vectors_are_swapped_as_short_ones_are(
    level: str, coefficient: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y, z = made(3, 300, gaps=True)
    long = permutation_test(x, y, z, level, coefficient, n=30, keep=True)
    monkeypatch.setattr("whyscore.stats.kendall.LONG", 10**9)
    short = permutation_test(x, y, z, level, coefficient, n=30, keep=True)
    assert long.samples is not None
    assert short.samples is not None
    np.testing.assert_allclose(long.samples, short.samples, atol=1e-14, rtol=0)
    assert (long.p, long.delta) == (short.p, short.delta)


def copies(matrix: Matrix, rows: list[int], columns: list[int]) -> Matrix:
    return matrix[np.ix_(rows, columns)]


def naive(measure: str, x: Matrix, z: Matrix, rows: list[int], columns: list[int]) -> float:
    """Return a measure on drawn systems and segments, pair by pair; a system is no pair with itself."""
    rows = sorted(rows)  # the p-value of "i is better than j" is for i before j
    a, b = copies(x, rows, columns), copies(z, rows, columns)
    different = [(i, j) for i, j in combinations(range(len(rows)), 2) if rows[i] != rows[j]]
    if measure == "pairwise_accuracy":
        means = [(np.nanmean(a[i]) - np.nanmean(a[j]), np.nanmean(b[i]) - np.nanmean(b[j])) for i, j in different]
        return float(np.mean([np.sign(round(p, 9)) == np.sign(round(q, 9)) for p, q in means]))
    if measure == "spa":
        signs = sign_rows(1000, len(columns), 0)
        p, q = (preference(one, signs=signs) for one in (a, b))
        return 1 - float(np.mean([abs(p[i, j] - q[i, j]) for i, j in different]))
    cells = [(a[i, k] - a[j, k], b[i, k] - b[j, k], k) for i, j in different for k in range(len(columns))]
    known = [(p, q, k) for p, q, k in cells if not math.isnan(p + q)]
    if measure == "pdp":
        top = sum(p * q for p, q, _ in known)
        return top / math.sqrt(sum(p * p for p, _, _ in known) * sum(q * q for _, q, _ in known))
    if measure == "kendall_like":
        clear = [p * q > 0 for p, q, _ in known if abs(q) >= 25]
        return (2 * sum(clear) - len(clear)) / len(clear)
    best = 0.0
    for epsilon in {0.0, *(abs(p) for p, _, _ in known)}:
        right = [((q == 0) if abs(p) <= epsilon else p * q > 0, k) for p, q, k in known]
        groups = [[one for one, own in right if own == k] for k in range(len(columns))]
        best = max(best, float(np.mean([np.mean(group) for group in groups if group])))
    return best


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("measure", ["acc_eq", "pairwise_accuracy", "spa", "pdp", "kendall_like"])
def test_drawn_pairs_are_those_of_different_systems(measure: str, gaps: bool) -> None:  # noqa: FBT001 - a parameter
    x, y, z = made(5, 9, 3, gaps=gaps)
    if measure == "kendall_like":
        z = 20 * z
    elif measure == "acc_eq":
        x = np.where(np.isnan(x), np.nan, y)
    gap = np.isnan(x + z)
    x, z = sort_by_content(np.where(gap, np.nan, x), np.where(gap, np.nan, z))  # as they are drawn
    found = bootstrap(x, z, None, measure, n=12, keep=True).samples
    assert found is not None
    (drawn,) = draw_blocks(x.shape, Drawing("both", 12, 0))
    assert drawn.rows is not None
    assert drawn.columns is not None
    peers = [
        naive(measure, x, z, rows, columns)
        for rows, columns in zip(drawn.rows.tolist(), drawn.columns.tolist(), strict=True)
    ]
    np.testing.assert_allclose(found, peers, atol=1e-12, rtol=0)


@pytest.mark.parametrize("level", ["system", "segment", "global", "within_system"])
def test_the_draw_of_everything_once_is_the_value(level: str) -> None:
    x, _, z = made(4, 7, 5, gaps=True)
    x = np.round(x)
    once = bootstrap(x, z, level, "acc_eq", n=400, resample="systems", keep=True)
    assert once.samples is not None
    (drawn,) = draw_blocks(x.shape, Drawing("systems", 400, 0))
    assert drawn.rows is not None
    whole = [k for k, rows in enumerate(drawn.rows.tolist()) if len(set(rows)) == 4]
    assert whole
    assert once.samples[whole].tolist() == pytest.approx([acc_eq(x, z, level).value] * len(whole), abs=1e-12)


def test_a_perfect_metric_is_perfect_on_every_draw_and_one_system_is_no_pair() -> None:
    _, _, z = made(3, 8)
    z = z + np.arange(3)[:, None] / 10
    for measure in ("acc_eq", "pairwise_accuracy", "spa", "pdp", "acc_23", "tau_23"):
        found = bootstrap(z, z, None, measure, n=200, keep=True)
        assert found.undefined > 0, measure
        assert found.samples is not None
        known = found.samples[~np.isnan(found.samples)]
        assert known.tolist() == pytest.approx([1.0] * len(known)), measure
        assert found.estimate.low == pytest.approx(1.0)


def test_intervals_of_accuracies_hold_the_published_values(summeval: Matrices) -> None:
    x, z = summeval("bertscore_f1"), summeval("expert_relevance")
    values = {
        "acc_eq": acc_eq(x, z).value,
        "pdp": difference_correlation(x, z).value,
        "pairwise_accuracy": pairwise_accuracy(x, z).value,
        "spa": 0.647,
    }
    for measure, value in values.items():
        found = bootstrap(x, z, None, measure, n=60).estimate
        assert found.value == pytest.approx(value, abs=2e-3)
        assert found.low is not None
        assert found.high is not None
        assert found.low < value < found.high
        assert 0.02 < found.high - found.low < 0.7


def test_differences_of_accuracies_have_intervals(summeval: Matrices) -> None:
    x, y, z = (summeval(name) for name in ("bertscore_recall", "bertscore_f1", "expert_relevance"))
    for measure in ("acc_eq", "spa", "pdp", "pairwise_accuracy"):
        found = bootstrap(x, z, None, measure, n=30, keep=True, against=y)
        each = [bootstrap(one, z, None, measure, n=30, keep=True) for one in (x, y)]
        assert found.estimate.value == each[0].estimate.value - each[1].estimate.value
        assert found.samples is not None
        assert found.samples.tolist() == (each[0].samples - each[1].samples).tolist()  # type: ignore[operator]
        assert found.sign == (found.samples <= 1e-12).mean()
        assert found.sign < 0.5 < bootstrap(y, z, None, measure, n=30, against=x).sign


def test_blocks_change_no_draw() -> None:
    x, _, z = made(4, 20, gaps=True)
    for measure in ("acc_eq", "spa", "pdp", "pairwise_accuracy", "kendall_b"):
        whole, cut = (bootstrap(x, z, None, measure, n=30, memory=size, keep=True) for size in (10**9, 1))
        assert whole.samples is not None
        assert cut.samples is not None
        np.testing.assert_allclose(whole.samples, cut.samples, atol=1e-15, rtol=0)


def test_too_many_pairs_leave_the_interval_out() -> None:
    x, y, z = made(20, 75)
    assert too_many(x, "global", "acc_eq", 1000)
    assert not too_many(x, "segment", "acc_eq", 1000)
    assert not too_many(x, "global", "pdp", 1000)
    found = bootstrap(x, z, "global", "acc_eq", n=1000)
    assert (found.estimate.low, found.estimate.reason) == (None, intervals.TOO_MANY)
    assert found.estimate.value == acc_eq(x, z, "global").value
    with pytest.raises(SpecError, match=re.escape("acc_eq@global has too many pairs for 1000 draws here")):
        bootstrap(x, z, "global", "acc_eq", n=1000, against=y)


def test_a_measure_has_its_own_level() -> None:
    x, _, z = made(4, 6)
    assert bootstrap(x, z, coefficient="pdp", n=5).level == "segment"
    with pytest.raises(SpecError, match="pdp is made for the level segment, not system"):
        bootstrap(x, z, "system", "pdp", n=5)
    assert kendall_like(x, 25 * z).value == bootstrap(x, 25 * z, coefficient="kendall_like", n=5).estimate.value


def many_cells() -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return two metrics and ratings of 7 systems x 1418 segments, with as many ties as MQM ratings have."""
    rng = np.random.default_rng(0)
    human = -rng.poisson(2.0, (7, 1418)).astype(np.float64)
    return human + rng.normal(0, 5, human.shape), np.round(human + rng.normal(0, 9, human.shape)), human


def test_ten_thousand_cells_are_drawn_as_scipy_correlates_them() -> None:
    x, _, z = many_cells()
    x, z = sort_by_content(x, z)  # as they are drawn
    found = bootstrap(x, z, "global", "kendall", n=4, keep=True)
    assert found.estimate.value == pytest.approx(stats.kendalltau(x.ravel(), z.ravel()).statistic, abs=1e-12)
    assert found.samples is not None
    (drawn,) = draw_blocks(x.shape, Drawing("both", 4, 0))
    assert drawn.rows is not None
    assert drawn.columns is not None
    for value, rows, columns in zip(found.samples.tolist(), drawn.rows, drawn.columns, strict=True):
        taken = [matrix[np.ix_(rows, columns)].ravel() for matrix in (x, z)]
        assert value == pytest.approx(stats.kendalltau(*taken).statistic, abs=1e-12)


def test_ten_thousand_cells_are_swapped_as_scipy_correlates_them() -> None:
    x, y, z = sort_by_content(*many_cells())  # as they are drawn
    found = permutation_test(x, y, z, "global", "kendall", n=3, keep=True)
    assert found.samples is not None
    own, other = standardise(x), standardise(y)
    (tossed,) = coins(np.random.default_rng(0), "cell", *x.shape, n=3, block=3)
    for value, swapped in zip(found.samples.tolist(), spread(tossed, "cell", *x.shape), strict=True):
        first, second = np.where(swapped, other, own), np.where(swapped, own, other)
        taus = [stats.kendalltau(one.ravel(), z.ravel()).statistic for one in (first, second)]
        assert value == pytest.approx(taus[0] - taus[1], abs=1e-12)


@pytest.mark.parametrize("columns", [1, 3])
def test_last_digits_do_not_change_what_is_drawn(columns: int) -> None:
    rng = np.random.default_rng(0)
    exact = rng.random((2000, columns))
    exact[::50] = 1.0  # the largest number, often met
    elsewhere = exact * (1 + rng.uniform(-1e-8, 1e-8, exact.shape))
    drawn = exact[content_order(exact)]
    np.testing.assert_allclose(elsewhere[content_order(elsewhere)], drawn, rtol=3e-8)
    assert np.any(np.diff(drawn[:, 0]) < 0)  # shuffled, not sorted


def test_rows_that_differ_in_the_last_digit_alone_have_one_order() -> None:
    table = np.array([[0.5], [0.5 + 1e-15], [0.5 - 1e-15], [np.nan], [-0.0], [0.0]])
    drawn = table[content_order(table)]
    for order in ([5, 4, 3, 2, 1, 0], [2, 0, 1, 5, 3, 4]):
        np.testing.assert_array_equal(table[order][content_order(table[order])], drawn)
