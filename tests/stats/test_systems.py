"""Tests of two systems, clusters, strengths, power."""

import csv
import json
import math
import re
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from whyscore.errors import DataError, SpecError
from whyscore.stats.annotators import Weights, mqm_scores
from whyscore.stats.correction import bonferroni, clusters, holm
from whyscore.stats.correlation import correlate, partial_correlation
from whyscore.stats.intervals import bootstrap, fisher
from whyscore.stats.matrices import DegenerateStatisticWarning
from whyscore.stats.significance import permutation_test, power, power_curve, williams
from whyscore.stats.systems import (
    Units,
    bootstrap_p,
    bradley_terry,
    classical_test,
    compare_rows,
    flip_test,
    in_blocks,
    mean_rows,
    mean_totals,
    resample,
    swap_test,
    whole_numbers,
)

Matrices = Callable[[str], NDArray[np.float64]]


@pytest.fixture(scope="module")
def relevance(summeval: Matrices, shipped: Path) -> dict[str, NDArray[np.float64]]:
    with (shipped / "summeval" / "scores.csv").open(encoding="utf-8") as file:
        names = list(dict.fromkeys(row["system"] for row in csv.DictReader(file)))
    return dict(zip(names, summeval("expert_relevance"), strict=True))


def deltas_of(a: NDArray[np.float64], b: NDArray[np.float64], blocks: list[str] | None = None) -> NDArray[np.float64]:
    """Return the differences of the means of bootstrap samples, of segments or of whole documents."""
    first, second = (resample(in_blocks(mean_rows(one), blocks), mean_totals, 10_000, 0) for one in (a, b))
    return first - second


@pytest.mark.parametrize(
    ("first", "second", "exact", "sign", "t"),
    [
        ("M22", "M5", 0.00889, 0.0037, 0.00786),
        ("M23", "M0", 0.19226, 0.091, 0.17999),
        ("M17", "M0", 0.29148, 0.138, 0.27352),
        ("M0", "M5", 0.25686, 0.121, 0.23664),
    ],
)
def test_systems_of_summeval(
    relevance: dict[str, NDArray[np.float64]], first: str, second: str, exact: float, sign: float, t: float
) -> None:
    a, b = relevance[first], relevance[second]
    found = flip_test(a - b, n=10_000, seed=0)
    assert found.exact
    assert found.method == "sign flips by convolution"
    assert found.two_sided == pytest.approx(exact, abs=5e-6)
    deltas = deltas_of(a, b)
    assert bootstrap_p(deltas, float((a - b).mean()), "sign").greater == pytest.approx(sign, abs=0.006)
    low, high = np.quantile(deltas, [0.025, 0.975])
    assert low < (a - b).mean() < high
    assert classical_test(a - b, "t").two_sided == pytest.approx(t, abs=5e-6)
    assert flip_test(a - b, n=10_000, seed=0, exact=False).two_sided == pytest.approx(exact, abs=0.02)


@settings(max_examples=50)
@given(st.lists(st.integers(-4, 4), min_size=1, max_size=9))
def test_convolution_and_listing_agree_with_all_signs(values: list[int]) -> None:
    differences = np.array(values) / 3
    sums = [
        math.fsum(s * v for s, v in zip(signs, values, strict=True)) for signs in product((1, -1), repeat=len(values))
    ]
    observed = sum(values)
    two = np.mean([abs(one) >= abs(observed) for one in sums])
    greater = np.mean([one >= observed for one in sums])
    listed = flip_test(differences, n=1, seed=0)
    assert (listed.two_sided, listed.greater) == (pytest.approx(two), pytest.approx(greater))
    long = np.concatenate([differences, np.zeros(30)])
    convolved = flip_test(long, n=1, seed=0)
    assert convolved.method == "sign flips by convolution"
    assert (convolved.two_sided, convolved.greater, convolved.less) == (
        pytest.approx(two), pytest.approx(greater), pytest.approx(np.mean([one <= observed for one in sums])),
    )  # fmt: skip


def test_numbers_without_a_common_scale_are_drawn() -> None:
    values = np.random.default_rng(0).normal(0.2, 1, 100)
    assert whole_numbers(values) is None
    found = flip_test(values, n=20_000, seed=0)
    assert not found.exact
    assert found.two_sided == pytest.approx(stats.ttest_1samp(values, 0).pvalue, abs=0.02)
    # (c + 1) / (n + 1) with a whole number c.
    assert found.two_sided * 20_001 == pytest.approx(round(found.two_sided * 20_001), abs=1e-9)


def test_documents_are_flipped_as_a_whole() -> None:
    # Two documents of opposite sign: nothing can be told, though segments alone would.
    a, b = np.array([1.0] * 30 + [-0.5] * 10), np.zeros(40)
    documents = ["x"] * 30 + ["y"] * 10
    assert flip_test(a - b, n=10_000, seed=0).two_sided < 0.01
    blocks = in_blocks(mean_rows(a), documents) - in_blocks(mean_rows(b), documents)
    found = flip_test(blocks[:, 0], n=10_000, seed=0)
    # Sums of 30 and -5: every choice of signs is at least 25 away from 0.
    assert (found.two_sided, len(blocks), found.exact) == (1.0, 2, True)
    assert bootstrap_p(deltas_of(a, b, documents), float((a - b).mean()), "sign").two_sided > 0.2


def test_what_cannot_be_tested_is_refused() -> None:
    units = Units(mean_rows(np.ones(2)), mean_rows(np.ones(2)), mean_totals)
    with pytest.raises(SpecError, match="no test named 'z'"):
        compare_rows(units, test="z", n=10, seed=0, deltas=None)  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="alternative is 'up'"):
        compare_rows(units, test="permutation", alternative="up", n=10, seed=0, deltas=None)  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="n is 0"):
        compare_rows(units, test="permutation", n=0, seed=0, deltas=None)


def test_a_constant_difference_has_no_t() -> None:
    assert math.isnan(classical_test(np.ones(2), "t").two_sided)
    # Ranks 1, 3 and 2 of the differences 1, 4 and -2: 6 of 8 sign patterns are as far from the middle.
    assert classical_test(np.array([1.0, 4.0, -2.0]), "wilcoxon").two_sided == pytest.approx(0.75)


def test_swapped_rows_give_the_test_of_flipped_signs() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(0.5, 1, 12), rng.normal(0, 1, 12)
    units = Units(mean_rows(a), mean_rows(b), mean_totals)
    assert swap_test(units, n=5000, seed=0).two_sided == pytest.approx(flip_test(a - b, n=5000, seed=0).two_sided)
    drawn = compare_rows(units, test="permutation", n=1000, seed=0, deltas=None)
    assert not drawn.exact
    assert drawn.two_sided == pytest.approx(flip_test(a - b, n=5000, seed=0).two_sided, abs=0.06)
    drawn = compare_rows(units, test="bootstrap", n=2000, seed=0, deltas=None)
    expected = bootstrap_p(deltas_of(a, b), float((a - b).mean()), "sign").greater
    assert drawn.greater == pytest.approx(expected, abs=0.02)
    with pytest.raises(SpecError, match="not for corpus scores"):
        compare_rows(units, test="t", n=10, seed=0, deltas=None)


def test_clusters_of_seven_metrics(summeval: Matrices) -> None:
    names = [
        *("qa-eval_f1", "bertscore_recall", "rouge-1_f1", "rouge-2_f1", "MoverScore", "bertscore_f1"),
        "bertscore_precision",
    ]
    human = summeval("expert_relevance")
    values = [correlate(summeval(name), human).value for name in names]

    def p(i: int, j: int) -> float:
        if i > j:
            return 1.0
        return permutation_test(
            *(summeval(names[i]), summeval(names[j]), human), permute="row_xor_column", alternative="greater",
            seed=np.random.RandomState(0),
        ).p  # fmt: skip

    found = clusters(names, values, p)
    assert found.names == tuple(names)
    assert found.ranks == (1, 1, 2, 2, 2, 3, 4)
    assert found.members(1) == ("qa-eval_f1", "bertscore_recall")
    ps = [float(found.p[i, j]) for i in range(7) for j in range(i + 1, 7)]
    assert sum(one <= 0.05 for one in ps) == 15
    assert bonferroni(ps).rejections == 9
    assert holm(ps).rejections == 12


def test_a_cluster_starts_where_any_member_beats_the_next() -> None:
    p = np.full((3, 3), 1.0)
    p[0, 2] = 0.01
    assert clusters(["a", "b", "c"], [3, 2, 1], p).ranks == (1, 1, 2)
    assert clusters(["a", "b", "c"], [1, 2, 3], p.T, higher_is_better=True).names == ("c", "b", "a")
    assert clusters(["b", "a"], [1, 1], np.ones((2, 2))).names == ("a", "b")
    assert clusters(["a", "b"], [math.nan, 1], np.ones((2, 2))).names == ("b", "a")
    with pytest.raises(DataError, match="one for each"):
        clusters(["a"], [1, 2], np.ones((2, 2)))
    with pytest.raises(SpecError, match="alpha is 2"):
        clusters(["a"], [1], np.ones((1, 1)), alpha=2)


def test_bradley_terry_of_summeval(relevance: dict[str, NDArray[np.float64]], summeval: Matrices) -> None:
    names = list(relevance)
    found = bradley_terry(np.array(list(relevance.values())))
    strengths = dict(zip(names, found.strengths.tolist(), strict=True))
    top = {"M17": 0.1291, "M23": 0.1224, "M22": 0.1216, "M0": 0.1018, "M20": 0.0245, "M11": 0.0184}
    for name, value in top.items():
        assert strengths[name] == pytest.approx(value, abs=5e-5)
    means = dict(zip(names, found.means.tolist(), strict=True))
    assert (means["M23"], means["M22"], means["M17"]) == tuple(
        pytest.approx(one, abs=5e-5) for one in (4.26, 4.25, 4.23)
    )
    assert correlate(found.strengths, found.means, "global").value == pytest.approx(0.9333, abs=5e-5)
    assert ("M17", "M23") in [(names[i], names[j]) for i, j in found.disagreements]
    taus = {
        "bertscore_recall": 0.7,
        "bertscore_f1": 0.1833,
        "rouge-1_f1": 0.3833,
        "MoverScore": 0.3333,
        "qa-eval_f1": 0.75,
    }
    for metric, tau in taus.items():
        own = bradley_terry(summeval(metric)).strengths
        assert correlate(own, found.strengths, "global").value == pytest.approx(tau, abs=5e-5)
    assert found.prior == 0


def test_bradley_terry_of_two_is_the_share_of_wins() -> None:
    found = bradley_terry([[1.0, 2.0, 3.0, 1.0], [0.0, 1.0, 4.0, 1.0]], draws=50)
    assert found.strengths.tolist() == pytest.approx([2.5 / 4, 1.5 / 4])
    assert bradley_terry([[1.0, 2.0, 3.0, 1.0], [0.0, 1.0, 4.0, 1.0]], ties="drop").strengths[0] == pytest.approx(2 / 3)
    assert found.intervals[0].low is not None
    # Each wins and loses, but the first two never lose to the others: without a prior there is no maximum.
    parted = bradley_terry([[3.0, 4.0], [4.0, 3.0], [1.0, 2.0], [2.0, 1.0]], draws=20)
    assert parted.prior == 0.5
    assert parted.strengths[:2] == pytest.approx([parted.strengths[0]] * 2)
    assert parted.strengths[0] > parted.strengths[2] > 0
    assert all(one.low is not None and one.low > 0 for one in parted.intervals)
    never = bradley_terry([[1.0, 1.0], [0.0, 0.0]])
    assert never.prior == 0.5
    assert never.strengths.tolist() == pytest.approx([2.5 / 3, 0.5 / 3])
    with pytest.raises(DataError, match="only one"):
        bradley_terry([[1.0, 2.0]])
    with pytest.raises(SpecError, match="ties is 'no'"):
        bradley_terry([[1.0], [2.0]], ties="no")  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="prior is 0"):
        bradley_terry([[1.0], [2.0]], prior=0)


@pytest.mark.parametrize(
    ("resample", "low", "high"), [("systems", 0.568, 0.892), ("inputs", 0.600, 0.850), ("both", 0.438, 0.929)]
)
def test_bootstrap_intervals_of_summeval(summeval: Matrices, resample: str, low: float, high: float) -> None:
    found = bootstrap(summeval("bertscore_recall"), summeval("expert_relevance"), resample=resample, n=9999)
    assert found.estimate.low == pytest.approx(low, abs=0.015)
    assert found.estimate.high == pytest.approx(high, abs=0.015)
    assert found.name.endswith(f"bootstrap over {resample}")


@pytest.mark.parametrize("level", ["system", "input", "global"])
def test_bootstrap_draws_as_nlpstats_does(level: str) -> None:
    peer = pytest.importorskip("nlpstats.correlations")
    rng = np.random.default_rng(0)
    z = rng.normal(size=(7, 12))
    x = z + rng.normal(size=(7, 12))
    before = np.random.get_state()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    golden = peer.bootstrap(x, z, level, "pearson", "both", n_resamples=400)
    np.random.set_state(before)  # noqa: NPY002
    ours = bootstrap(x, z, level, "pearson", n=4000, keep=True)
    assert stats.ks_2samp(golden.samples, ours.samples).pvalue > 0.01


def test_bootstrap_does_not_depend_on_memory_and_counts_what_is_undefined() -> None:
    x, z = np.random.default_rng(0).random((2, 3, 4))
    whole = bootstrap(x, z, "segment", n=300, keep=True)
    small = bootstrap(x, z, "segment", n=300, keep=True, memory=2000)
    assert whole.samples == pytest.approx(small.samples, nan_ok=True)
    assert whole.undefined == int(np.isnan(whole.samples).sum()) > 0
    assert whole.n + whole.undefined == 300
    delta = bootstrap(x, z, "global", "pearson", n=300, against=z)
    assert delta.estimate.value == pytest.approx(correlate(x, z, "global", "pearson").value - 1)
    assert delta.sign == 1.0
    kept = bootstrap(x, z, "global", "pearson", n=300, keep=True, against=z)
    known = kept.samples[~np.isnan(kept.samples)]
    assert delta.centred == np.mean(known >= 2 * delta.estimate.value)
    with pytest.raises(SpecError, match="resample is 'rows'"):
        bootstrap(x, z, resample="rows")  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="confidence is 1"):
        bootstrap(x, z, confidence=1)
    with pytest.raises(SpecError, match="n is 0"):
        bootstrap(x, z, n=0)


def test_fisher_intervals_of_summeval(summeval: Matrices) -> None:
    table = {"kendall": (0.5363, 0.8733), "pearson": (0.5910, 0.9432), "spearman": (0.7036, 0.9741)}
    for coefficient, ends in table.items():
        r = correlate(summeval("bertscore_recall"), summeval("expert_relevance"), "system", coefficient).value
        found = fisher(round(r, 4), 16, coefficient)  # the golden ends belong to four decimals
        assert (found.low, found.high) == tuple(pytest.approx(end, abs=5e-5) for end in ends)
    assert fisher(0.5, 3).reason == "undefined"
    assert fisher(1.0, 9).low == 1.0
    with pytest.raises(SpecError, match="not 'acc_23'"):
        fisher(0.5, 9, "acc_23")


def test_power_of_summeval(relevance: dict[str, NDArray[np.float64]]) -> None:
    close = power(relevance["M23"] - relevance["M17"])
    assert (close.difference, close.deviation) == (pytest.approx(0.03), pytest.approx(0.7402, abs=5e-5))
    assert (close.detectable, close.needed) == (pytest.approx(0.2074, abs=5e-5), 4779)
    far = power(relevance["M22"] - relevance["M8"])
    assert (far.difference, far.deviation) == (pytest.approx(0.7033, abs=5e-5), pytest.approx(0.9498, abs=5e-5))
    assert far.needed == 15
    assert power([1.0, 1.0]).needed is None
    with pytest.raises(DataError, match="at least 2 segments"):
        power([1.0])
    with pytest.raises(SpecError, match="alpha is 0"):
        power([1.0, 2.0], alpha=0)


def test_a_power_curve_finds_the_size_that_is_enough() -> None:
    differences = np.random.default_rng(0).normal(0.5, 1.0, 400)

    def test(places: NDArray[np.int64]) -> float:
        return float(stats.ttest_1samp(differences[places], 0).pvalue)

    curve = power_curve(test, 400, [5, 20, 80], runs=100)
    assert curve.power[0] < curve.power[1] < curve.power[2]
    assert curve.enough == 80
    assert power_curve(test, 400, [5], runs=20).enough is None
    with pytest.raises(SpecError, match=re.escape("sizes are [0]")):
        power_curve(test, 400, [0])


def test_williams_equals_the_published_values(shared: Path) -> None:
    toy = williams([1.1, 2, 3.1, 4, 5.1], [1.5, 2, 3.1, 4, 5.5], [1, 2, 3, 4, 5], alternative="greater")
    assert toy.p == pytest.approx(0.0190737, abs=5e-8)
    assert toy.degrees == 2
    with (shared / "wmt22qe" / "da_and_submissions.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for pair, t, p in (("en-cs", 2.938, 0.00169), ("km-en", 8.352, None)):
        own = [row for row in rows if row["lp"] == pair]
        x, y, z = ([float(row[name]) for row in own] for name in ("IST-Unbabel", "HW-TSC", "da"))
        found = williams(x, y, z, alternative="greater")
        assert found.t == pytest.approx(t, abs=5e-4)
        if p:
            assert found.p == pytest.approx(p, abs=5e-6)


def test_williams_as_nlpstats_has_it() -> None:
    peer = pytest.importorskip("nlpstats.correlations.williams")
    x, y, z = np.random.default_rng(2).normal(size=(3, 6, 4))
    for alternative in ("two-sided", "greater", "less"):
        golden = peer.williams_test(x, y, z, "global", "pearson", alternative).pvalue
        assert williams(x, y, z, alternative=alternative, compat="nlpstats").p == pytest.approx(golden, abs=1e-12)
    assert williams(x, y, z, alternative="greater", compat="mtme").p <= 0.5
    with pytest.warns(UserWarning, match="made for pearson, not kendall_b"):
        williams(x, y, z, "kendall")
    with pytest.warns(DegenerateStatisticWarning):
        assert williams([1, 2, 3], [1, 2, 3], [3, 2, 1]).reason == "empty"
    with pytest.raises(SpecError, match="compat is 'R'"):
        williams(x, y, z, compat="R")  # type: ignore[arg-type]


def test_one_column_permutations_of_wmt22(shared: Path) -> None:
    with (shared / "wmt22qe" / "da_and_submissions.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    published = {
        "en-cs": (0.6549, 0.6362, 0.6257, 0.5629, 0.5598), "km-en": (0.6689, 0.6526, 0.5087, 0.6226, 0.5788),
    }  # fmt: skip
    for pair, values in published.items():
        own = [row for row in rows if row["lp"] == pair]
        z = [float(row["da"]) for row in own]
        for name, value in zip(("IST-Unbabel", "papago", "HW-TSC", "NKUA", "OrganizersBaselines"), values, strict=True):
            x = [float(row[name]) for row in own]
            assert correlate(x, z, "global", "spearman").value == pytest.approx(value, abs=5e-5)
    golden = [
        ("en-cs", "HW-TSC", 0.0292, 0.0083, 0.002),
        ("en-cs", "papago", 0.0187, 0.067, 0.006),
        ("km-en", "papago", 0.0163, 0.020, 0.004),
    ]
    for pair, name, delta, p, margin in golden:
        own = [row for row in rows if row["lp"] == pair]
        ist, other, z = ([float(row[column]) for row in own] for column in ("IST-Unbabel", name, "da"))
        found = permutation_test(ist, other, z, "global", "spearman", alternative="greater", n=1500)
        assert found.delta == pytest.approx(delta, abs=5e-5)
        # The golden margin and 4 standard errors of this shorter run.
        assert found.p == pytest.approx(p, abs=margin + 4 * math.sqrt(p / 1500))


def test_length_is_a_poor_metric_of_wmt22(shared: Path) -> None:
    with (shared / "wmt22qe" / "da_and_submissions.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for pair, rho, without in (("en-cs", -0.1413, 0.6466), ("km-en", 0.0263, 0.6714)):
        own = [row for row in rows if row["lp"] == pair]
        lines = (shared / "wmt22_task2" / pair / "mt_tok").read_text("utf-8").rstrip("\n").split("\n")
        lengths = [len([word for word in line.split(" ") if word != "<EOS>"]) for line in lines]
        z, ist = ([float(row[name]) for row in own] for name in ("da", "IST-Unbabel"))
        assert correlate(lengths, z, "global", "spearman").value == pytest.approx(rho, abs=5e-5)
        assert partial_correlation(ist, z, lengths, "spearman") == pytest.approx(without, abs=5e-5)


def test_wmt17_sentence_bleu_in_any_order(shipped: Path) -> None:
    rows = [json.loads(line) for line in (shipped / "wmt17" / "wmt17_to_en.jsonl").read_text("utf-8").splitlines()]
    order = np.random.default_rng(0).permutation(len(rows))
    for pair, value in {"cs-en": 0.4350, "de-en": 0.4325, "tr-en": 0.5384}.items():
        own = [rows[k] for k in order if rows[k]["LP"] == pair]
        x, z = ([row[name] for row in own] for name in ("sentBLEU", "HUMAN_score"))
        assert correlate(x, z, "global", "pearson").value == pytest.approx(value, abs=5e-5)


def test_test_splits_of_summeval(summeval: Matrices, shipped: Path) -> None:
    with (shipped / "summeval" / "scores.csv").open(encoding="utf-8") as file:
        splits = {row["instance_id"]: row["bmx_split"] for row in csv.DictReader(file)}
    columns = np.array(list(splits.values()))
    table = {
        ("bertscore_f1", "kendall"): (0.4554, -0.1159, 0.1463, 0.2380),
        ("rouge-1_f1", "spearman"): (0.3480, 0.1793, 0.4379, 0.6050),
    }
    for (metric, coefficient), values in table.items():
        for human, value in zip(("coherence", "consistency", "fluency", "relevance"), values, strict=True):
            z = summeval(f"expert_{human}")
            found = [
                correlate(summeval(metric)[:, columns != split], z[:, columns != split], "system", coefficient).value
                for split in sorted(set(splits.values()))
            ]
            assert np.mean(found) == pytest.approx(value, abs=5e-5)


def test_length_as_a_sentinel_of_summeval(summeval: Matrices, shipped: Path) -> None:
    texts = [json.loads(line) for line in (shipped / "summeval" / "texts.jsonl").read_text("utf-8").splitlines()]
    with (shipped / "summeval" / "scores.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    systems = list(dict.fromkeys(row["system"] for row in rows))
    length = np.array([[len(text["systems"][system].split()) for text in texts] for system in systems], dtype=float)
    expected = {"coherence": 0.0, "consistency": 0.4667, "fluency": 0.2259, "relevance": 0.2333}
    for human, value in expected.items():
        assert correlate(length, summeval(f"expert_{human}")).value == pytest.approx(value, abs=5e-5)
    assert correlate(length, summeval("bertscore_f1")).value == pytest.approx(-0.4167, abs=5e-5)
    assert correlate(length, summeval("bertscore_recall")).value == pytest.approx(0.25, abs=5e-5)


def test_mqm_scores_from_raw_ratings(shipped: Path) -> None:
    lines = (shipped / "mqm" / "ted_zhen_ratings.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    found = mqm_scores(
        [(row["system"], str(row["seg_id"])) for row in rows],
        *([row[name] for row in rows] for name in ("rater", "severity", "category")),
    )
    with (shipped / "mqm" / "ted_zhen_mqm_expected.csv").open(encoding="utf-8") as file:
        golden = {(row["system"], row["seg_id"]): float(row["mqm"]) for row in csv.DictReader(file)}
    assert found.keys() == golden.keys()
    assert len(golden) == 7935
    for cell, value in golden.items():
        assert found[cell] == pytest.approx(value, abs=1e-12)


def test_raters_are_averaged_and_weights_can_be_changed() -> None:
    cells, raters = ["s"] * 3, ["a", "a", "b"]
    severities, categories = ["Major", "minor", "Neutral"], ["Accuracy", "Fluency/Punctuation", "Other"]
    assert mqm_scores(cells, raters, severities, categories)["s"] == pytest.approx(-5.1 / 2)
    plain = Weights({"major": 5, "minor": 1})
    assert mqm_scores(cells, raters, severities, categories, plain)["s"] == pytest.approx(-3.0)
    with pytest.raises(DataError, match="no weight for the severity 'huge'"):
        mqm_scores(["s"], ["a"], ["huge"], ["x"])
