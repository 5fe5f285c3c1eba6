"""Coefficients and levels."""

import math
import re
import warnings
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy import stats

from whyscore.errors import DataError, SpecError
from whyscore.stats.coefficients import (
    COEFFICIENTS,
    _counts_by_signs,
    _counts_by_sorting,
    coefficient_of,
    inversions,
    kernel,
    pair_counts,
    ranks,
)
from whyscore.stats.correlation import correlate, partial_correlation
from whyscore.stats.matrices import (
    LEVELS,
    DegenerateStatisticWarning,
    align,
    as_matrix,
    from_rows,
    is_human,
    level_of,
    mean_rating,
    tie,
)

Matrices = Callable[[str], NDArray[np.float64]]
GOLD, METRIC = [1, 2, 2, 3, 4], [2, 1, 1.5, 5, 3]

few_values = st.integers(-3, 3).map(float)
vectors = st.integers(3, 12).flatmap(
    lambda size: st.tuples(arrays(np.float64, size, elements=few_values), arrays(np.float64, size, elements=few_values))
)


@pytest.mark.parametrize(
    ("coefficient", "value"), [("kendall", 0.316227766), ("kendall_c", 0.32), ("tau_23", 0.2), ("acc_23", 0.6)]
)
def test_kendall_variants_of_the_toy_example(coefficient: str, value: float) -> None:
    assert correlate(METRIC, GOLD, "global", coefficient).value == pytest.approx(value, abs=1e-9)


@given(vectors)
def test_coefficients_equal_those_of_scipy(pair: tuple[NDArray[np.float64], NDArray[np.float64]]) -> None:
    x, z = pair
    flat = len(set(x)) == 1 or len(set(z)) == 1
    peers = {
        "pearson": lambda: stats.pearsonr(x, z)[0],
        "spearman": lambda: stats.spearmanr(x, z)[0],
        "kendall_b": lambda: stats.kendalltau(x, z)[0],
        "kendall_c": lambda: stats.kendalltau(x, z, variant="c")[0],
    }
    for name, peer in peers.items():
        ours = float(kernel(coefficient_of(name))(x, z))
        if flat:
            assert math.isnan(ours)
        else:
            assert ours == pytest.approx(peer(), abs=1e-12)


@given(vectors)
def test_pairs_are_the_same_by_signs_and_by_sorting(pair: tuple[NDArray[np.float64], NDArray[np.float64]]) -> None:
    x, z = pair
    x = np.where(x == 3, np.nan, x)
    assert [float(kind) for kind in _counts_by_signs(x, z)] == list(_counts_by_sorting(x, z))


def test_long_vectors_are_counted_as_scipy_counts_them() -> None:
    rng = np.random.default_rng(0)
    x, z = rng.integers(0, 50, 2000).astype(float), rng.integers(0, 9, 2000).astype(float)
    counted = pair_counts(x, z)
    assert float(counted.all) == 2000 * 1999 / 2
    assert correlate(x, z, "global", "kendall").value == pytest.approx(stats.kendalltau(x, z)[0], abs=1e-13)


def test_inversions_are_counted() -> None:
    values = np.random.default_rng(0).integers(0, 30, 200)
    naive = sum(int((values[:k] > values[k]).sum()) for k in range(200))
    assert inversions(values) == naive
    assert inversions(np.array([], dtype=np.int64)) == 0


@pytest.mark.parametrize("length", [7, 40])
def test_ranks_are_average_ranks(length: int) -> None:
    values = np.random.default_rng(0).integers(0, 5, (3, length)).astype(float)
    values[0, 2] = np.nan
    kept = ~np.isnan(values[0])
    assert ranks(values)[0][kept] == pytest.approx(stats.rankdata(values[0][kept]))
    assert np.isnan(ranks(values)[0, 2])
    assert ranks(values)[1] == pytest.approx(stats.rankdata(values[1]))


def test_summeval_system_level_kendall_equals_the_published_tables(summeval: Matrices, expected: dict) -> None:
    table = expected["summeval_system_level_single_ref_16_systems"]["kendall_tau_b"]
    for metric, humans in table.items():
        for human, value in humans.items():
            found = correlate(summeval(metric), summeval(f"expert_{human}"), "system", "kendall").value
            assert found == pytest.approx(value, abs=5e-5), (metric, human)
    assert sum(map(len, table.values())) == 28


@pytest.mark.parametrize(
    ("level", "key"),
    [
        ("system", "relevance_pearson_spearman_kendall_published_2dp"),
        ("segment", "summary_level_relevance_published_2dp"),
    ],
)
def test_summeval_relevance_equals_the_published_triples(
    summeval: Matrices, expected: dict, level: str, key: str
) -> None:
    human = summeval("expert_relevance")
    for metric, triple in expected["summeval_system_level_single_ref_16_systems"][key].items():
        for coefficient, value in zip(("pearson", "spearman", "kendall"), triple, strict=True):
            found = correlate(summeval(metric), human, level, coefficient).value
            assert found == pytest.approx(value, abs=0.0051), (metric, coefficient)


@pytest.mark.parametrize(
    ("metric", "level", "values"),
    [
        ("bertscore_recall", "system", (0.8405, 0.9088, 0.7500)),
        ("bertscore_recall", "segment", (0.3742, 0.3503, 0.2698, 0.2730, 0.0948)),
        ("bertscore_recall", "global", (0.3878, 0.3885, 0.2802)),
        ("rouge-1_f1", "system", (0.6097, 0.6235, 0.5000)),
        ("rouge-1_f1", "segment", (0.2788, 0.2561, 0.1967, 0.1978, 0.0245)),
        ("rouge-1_f1", "global", (0.3405, 0.3352, 0.2413)),
    ],
)
def test_levels_and_coefficients_on_summeval(
    summeval: Matrices, metric: str, level: str, values: tuple[float, ...]
) -> None:
    names = ("pearson", "spearman", "kendall", "kendall_c", "tau_23")
    for name, value in zip(names, values, strict=False):
        found = correlate(summeval(metric), summeval("expert_relevance"), level, name).value
        assert found == pytest.approx(value, abs=5e-5), name


def test_within_systems_kendall_on_summeval(summeval: Matrices) -> None:
    human = summeval("expert_relevance")
    found = [
        correlate(summeval(m), human, "within_system", "kendall").value for m in ("bertscore_recall", "rouge-1_f1")
    ]
    assert found == pytest.approx([0.2260, 0.2097], abs=5e-5)


def test_constant_columns_are_left_out_and_counted(summeval: Matrices) -> None:
    metric = summeval("rouge-1_f1")
    left_out = {
        human: 100 - correlate(metric, summeval(f"expert_{human}"), "segment", "kendall").n_used
        for human in ("coherence", "consistency", "fluency", "relevance")
    }
    assert left_out == {"coherence": 0, "consistency": 4, "fluency": 2, "relevance": 0}


def test_rounded_ratings_break_ties(summeval: Matrices) -> None:
    exact = summeval("expert_fluency")
    recall = summeval("bertscore_recall")
    assert correlate(recall, exact, "system", "kendall").value == pytest.approx(0.6611, abs=5e-5)
    assert correlate(recall, exact.round(6), "system", "kendall").value == pytest.approx(0.6500, abs=5e-5)


def test_missing_cells_are_handled_as_asked(summeval: Matrices) -> None:
    metric, human = summeval("bertscore_recall"), summeval("expert_relevance").copy()
    rows, columns = np.indices(human.shape)
    human[(rows + columns) % 7 == 0] = np.nan
    paired = correlate(metric, human, "system", "pearson")
    assert paired.value == pytest.approx(0.8311, abs=5e-5)
    assert paired.dropped.cells == 229
    assert correlate(metric, human, "system", "pearson", missing="unpaired").value == pytest.approx(0.8153, abs=5e-5)
    assert correlate(metric, human, "segment", "pearson").value == pytest.approx(0.3839, abs=5e-5)
    assert correlate(metric, human, "global", "pearson").value == pytest.approx(0.3866, abs=5e-5)
    with pytest.raises(DataError, match=re.escape("229 cells are missing, the first in row 0, column 0")):
        correlate(metric, human, missing="error")
    with pytest.raises(SpecError, match=re.escape("missing='unpaired' is for the level system, not global")):
        correlate(metric, human, "global", missing="unpaired")


def test_complete_keeps_columns_that_every_system_has() -> None:
    x = np.arange(12.0).reshape(3, 4)
    z = x.copy()
    z[1, 2] = np.nan
    found = align(x, z, missing="complete")
    assert np.isnan(found.matrices[0][:, 2]).all()
    assert found.dropped == (5, 0, 1)


@pytest.mark.parametrize("level", LEVELS)
def test_a_constant_metric_has_no_correlation(level: str) -> None:
    with pytest.warns(DegenerateStatisticWarning, match="constant"):
        found = correlate(np.full((4, 5), 0.1), np.arange(20.0).reshape(4, 5), level, "kendall")
    assert math.isnan(found.value)
    assert found.reason == "constant"


@pytest.mark.parametrize("coefficient", ["pearson", "spearman", "kendall", "kendall_c"])
def test_one_system_has_no_correlation_of_systems(coefficient: str) -> None:
    with pytest.warns(DegenerateStatisticWarning):
        found = correlate([[1.0, 2.0, 3.0]], [[3.0, 2.0, 1.0]], "system", coefficient)
    assert math.isnan(found.value)


def test_nothing_in_common_is_told_as_empty() -> None:
    nan = float("nan")
    with pytest.warns(DegenerateStatisticWarning, match="no vector has two values"):
        found = correlate([[1.0, nan], [nan, 2.0]], [[nan, 1.0], [2.0, nan]], "global", "pearson")
    assert found.reason == "empty"


def test_undefined_segments_can_count_as_zero() -> None:
    x = np.array([[1.0, 1.0], [2.0, 1.0], [3.0, 1.0]])
    z = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    assert correlate(x, z, "segment", "kendall").value == 1.0
    assert correlate(x, z, "segment", "kendall", undefined="zero").value == 0.5


@given(st.integers(0, 1000), st.sampled_from(LEVELS), st.sampled_from(COEFFICIENTS))
def test_the_order_of_systems_and_segments_does_not_matter(seed: int, level: str, coefficient: str) -> None:
    rng = np.random.default_rng(seed)
    x, z = rng.integers(0, 6, (2, 5, 7)).astype(float)
    x[0, 0] = np.nan
    rows, columns = rng.permutation(5), rng.permutation(7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateStatisticWarning)
        once = correlate(x, z, level, coefficient).value
        again = correlate(x[rows][:, columns], z[rows][:, columns], level, coefficient).value
    assert once == pytest.approx(again, abs=1e-12, nan_ok=True)


@given(st.integers(0, 1000), st.sampled_from(["segment", "global"]))
def test_increasing_transforms_leave_ranks_alone(seed: int, level: str) -> None:
    x, z = np.random.default_rng(seed).random((2, 6, 8))
    for coefficient in ("spearman", "kendall", "acc_23"):
        moved = correlate(np.exp(3 * x), z, level, coefficient).value
        assert moved == pytest.approx(correlate(x, z, level, coefficient).value, abs=1e-12)


@pytest.mark.parametrize("level", ["system", "input", "global"])
@pytest.mark.parametrize("coefficient", ["pearson", "spearman", "kendall"])
def test_correlations_equal_those_of_nlpstats(level: str, coefficient: str) -> None:
    peer = pytest.importorskip("nlpstats.correlations")
    rng = np.random.default_rng(7)
    for trial in range(5):
        x, z = rng.normal(size=(2, 8, 13))
        if trial % 2:
            x, z = x.round(0), z.round(0)
            gap = rng.random((8, 13)) < 0.1
            x[gap] = z[gap] = np.nan
        # Means of rounded numbers tie exactly there and here.
        ours = correlate(x, z, level, coefficient, tie_tolerance=0).value
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scipy's, about constant columns
            theirs = peer.correlate(x, z, level, coefficient)
        assert ours == pytest.approx(theirs, abs=1e-12)


def test_partial_correlation_takes_a_third_vector_away() -> None:
    rng = np.random.default_rng(0)
    length = rng.normal(size=500)
    x, z = length + rng.normal(size=500), length + rng.normal(size=500)
    residuals = [one - np.polyval(np.polyfit(length, one, 1), length) for one in (x, z)]
    assert partial_correlation(x, z, length) == pytest.approx(stats.pearsonr(*residuals)[0], abs=1e-10)
    assert abs(partial_correlation(x, z, length, "spearman")) < 0.1
    with pytest.raises(SpecError, match=re.escape("not 'kendall'")):
        partial_correlation(x, z, length, "kendall")
    with pytest.raises(DataError, match="500, 500, 3 values"):
        partial_correlation(x, z, [1.0, 2.0, 3.0])


def test_ties_are_runs_of_near_values() -> None:
    values = np.array([[0.3, 0.1 + 0.2, np.nan, 1.0], [1.0, 2.0, 3.0, 4.0]])
    assert tie(values)[0].tolist()[:2] == [0.3, 0.3]
    assert np.isnan(tie(values)[0, 2])
    assert tie(values)[1].tolist() == [1.0, 2.0, 3.0, 4.0]
    assert tie(values, 0) is values
    assert mean_rating([0.1, 0.2, 0.3]) == mean_rating([0.3, 0.2, 0.1])
    assert math.isnan(mean_rating([]))


def test_a_long_table_becomes_a_matrix_in_any_order() -> None:
    table = from_rows(["b", "a", "a"], ["2", "1", "2"], [1.0, 2.0, 3.0])
    assert table.systems == ("b", "a")
    assert table.segments == ("2", "1")
    assert table.values.tolist()[1] == [3.0, 2.0]
    assert np.isnan(table.values[0, 1])


def test_a_row_that_comes_twice_is_named_with_both_lines() -> None:
    with pytest.raises(DataError, match=re.escape("t.csv:9: system 'a' has the segment '1' twice, first on line 4")):
        from_rows(["a", "a"], ["1", "1"], [1.0, 2.0], lines=[4, 9], file="t.csv")


def test_bad_matrices_are_refused() -> None:
    with pytest.raises(DataError, match=re.escape("X has 2 systems x 3 segments, Z has 2 x 2")):
        correlate(np.ones((2, 3)), np.ones((2, 2)))
    with pytest.raises(DataError, match="infinite"):
        as_matrix([[1.0, math.inf]])
    with pytest.raises(DataError, match="3 dimensions"):
        as_matrix(np.ones((2, 2, 2)))
    with pytest.raises(DataError, match="is empty"):
        as_matrix(np.ones((0, 2)))
    with pytest.raises(SpecError, match=re.escape("no level named 'sentence': use system, segment")):
        level_of("sentence")
    with pytest.raises(SpecError, match=re.escape("no coefficient named 'tau_x': use pearson")):
        coefficient_of("tau_x")
    with pytest.raises(SpecError, match="missing is 'drop'"):
        correlate([1, 2], [1, 2], missing="drop")  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="undefined is 'one'"):
        correlate([1, 2], [1, 2], undefined="one")  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="tie_tolerance is -1"):
        correlate([1, 2], [1, 2], tie_tolerance=-1)


def test_results_carry_their_name() -> None:
    found = correlate(METRIC, GOLD, "none", "kendall")
    assert found.name == "kendall_b@global"
    assert float(found) == found.value
    assert (found.n, found.n_used) == (5, 5)
    assert level_of("input") == "segment"
    assert is_human("ref-A")
    assert not is_human("refined")


def test_wmt20_taus(newstest: Matrices) -> None:
    human = newstest("mqm")
    table = {
        "chrF": (0.1695, 0.8095, 0.1955, 42),
        "TER": (0.1471, 0.7143, 0.1925, 55),
        "YiSi-2": (0.1790, 0.3333, 0.0269, 42),
        "parbleu": (0.1602, 0.4286, 0.1879, 52),
    }
    for metric, (overall, system, segment, empty) in table.items():
        x = newstest(metric)
        assert correlate(x, human, "global", "kendall").value == pytest.approx(overall, abs=5e-5)
        assert correlate(x, human, "system", "kendall").value == pytest.approx(system, abs=5e-5)
        found = correlate(x, human, "segment", "kendall")
        assert found.value == pytest.approx(segment, abs=5e-5)
        assert found.n - found.n_used == empty
