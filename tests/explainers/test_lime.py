"""LIME: equal to the package where that is asked, and its distribution where it is not."""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import RandomState
from scipy import stats

from whyscore.errors import SpecError
from whyscore.explainers.masks.lime import (
    Lime,
    average_lime,
    balanced_masks,
    closeness,
    compat_masks,
    draw_masks,
    paired_masks,
    weighted_ridge,
)
from whyscore.testing.checks import check_explainer, explain_masks, explain_text, gather, numbered_words, wavy
from whyscore.text.maskers import Replace
from whyscore.text.splitters import WhiteSpace, white_space
from whyscore.types import FloatVector, KeepMasks

TokenF1 = Callable[[str, str], float]

SENTENCES = [
    ("the quick brown fox jumps over the lazy dog near the river bank", "a quick fox jumped over a lazy dog"),
    ("no-break\u00a0space and\ttab stay  inside   words , always .", "tab and space stay outside ."),
    (" ".join(f"word{k % 17}" for k in range(140)), " ".join(f"word{k}" for k in range(60))),
]


def test_the_number_of_hidden_words_is_uniform_and_so_are_their_places() -> None:
    masks = draw_masks(8, 40_000, np.random.default_rng(0))
    hidden = (~masks).sum(axis=1)
    assert set(hidden.tolist()) == set(range(1, 9))
    assert stats.chisquare(np.bincount(hidden)[1:]).pvalue > 0.01
    for size in range(1, 8):
        places = (~masks[hidden == size]).sum(axis=0)
        # Places of one row exclude each other, so the statistic is scaled to its known variance.
        scale = (8 - 1) / (8 - size)
        assert stats.chi2.sf(scale * stats.chisquare(places).statistic, 7) > 0.01


def test_default_masks_have_the_distribution_of_the_package() -> None:
    ours = draw_masks(5, 30_000, np.random.default_rng(1))
    theirs = compat_masks(5, 30_001, RandomState(1))
    counts = [np.bincount(masks @ (1 << np.arange(5)), minlength=32)[:31] for masks in (ours, theirs)]
    assert stats.chi2_contingency(counts).pvalue > 0.01


@pytest.mark.parametrize(("text", "reference"), SENTENCES)
@pytest.mark.parametrize("seed", [0, 1, 99])
def test_compat_equals_the_package_byte_for_byte(text: str, reference: str, seed: int, token_f1: TokenF1) -> None:
    words = WhiteSpace(separator="space").split(text)
    theirs, asked = _library(text, RandomState(seed), lambda masked: token_f1(masked, reference))
    evidence = gather(Lime(mode="compat", seed=seed), words, lambda masks: masks.sum(axis=1).astype(np.float64))
    (probes,) = Replace().render([(words, evidence.masks)])
    assert list(probes.texts) == asked
    fit = explain_text(Lime(mode="compat", seed=seed), words, lambda masked: token_f1(masked, reference))
    assert np.abs(fit.importance - theirs["coefficients"]).max() <= 1e-12
    assert fit.quality == pytest.approx(theirs["r2"], abs=1e-12)


def test_one_state_goes_on_from_text_to_text_as_in_the_package(token_f1: TokenF1) -> None:
    library, ours = RandomState(0), RandomState(0)
    for text, reference in SENTENCES:
        words = WhiteSpace(separator="space").split(text)
        theirs, asked = _library(text, library, lambda masked, r=reference: token_f1(masked, r))
        masks = np.vstack([np.ones((1, len(words)), dtype=np.bool_), compat_masks(len(words), 100, ours)])
        (probes,) = Replace().render([(words, masks)])
        assert list(probes.texts) == asked
        scores = np.array([token_f1(masked, reference) for masked in probes.texts])
        ridge = weighted_ridge(masks, scores, closeness(masks, 25))
        assert np.abs(ridge.coefficients - theirs["coefficients"]).max() <= 1e-12
        assert ridge.intercept == pytest.approx(theirs["intercept"], abs=1e-12)


def _library(
    text: str, state: RandomState, score: Callable[[str], float]
) -> tuple[dict[str, FloatVector | float], list[str]]:
    """Return what lime 0.2.0.1 says of a text, and the texts it asked for."""
    from lime.lime_text import LimeTextExplainer

    asked: list[str] = []

    def classify(texts: list[str]) -> FloatVector:
        asked.extend(texts)
        return np.array([[score(masked)] for masked in texts])

    explainer = LimeTextExplainer(bow=False, split_expression=" ", random_state=state, feature_selection="none")
    number = len([word for word in text.split(" ") if word])
    found = explainer.explain_instance(text, classify, labels=(0,), num_features=number, num_samples=100)
    coefficients = np.array([value for _, value in sorted(found.local_exp[0])])
    return {"coefficients": coefficients, "intercept": found.intercept[0], "r2": found.score}, asked


def test_stored_explanations_of_wmt17_are_reproduced(shipped: Path, token_f1: TokenF1) -> None:
    lines = (shipped / "boosting" / "explanations_tokenF1_wmt17_csen.jsonl").read_text().splitlines()
    assert len(lines) == 10
    for row in map(json.loads, lines):
        explainer = Lime(samples=row["lime_num_samples"], mode="compat", seed=row["lime_seed"])
        for side, other in (("reference", "hypothesis"), ("hypothesis", "reference")):
            words = white_space(row[side])
            fit = explain_text(explainer, words, lambda text, r=row, o=other: token_f1(text, r[o]))
            assert np.abs(fit.importance - row[f"lime_{side[:3]}"]).max() <= 1e-12
        drawn = compat_masks(len(words), 100, RandomState(row["lime_seed"]))
        masks = np.vstack([np.ones((1, len(words)), dtype=np.bool_), drawn])
        (probes,) = Replace().render([(words, masks)])
        scores = np.array([token_f1(text, row["reference"]) for text in probes.texts])
        ridge = weighted_ridge(masks, scores, closeness(masks, 25))
        assert ridge.intercept == pytest.approx(row["lime_hyp_intercept"], abs=1e-12)


def test_the_stored_row_without_a_match_has_no_importance_at_all(shipped: Path, token_f1: TokenF1) -> None:
    row = json.loads((shipped / "boosting" / "explanations_tokenF1_wmt17_csen.jsonl").read_text().splitlines()[5])
    fit = explain_text(Lime(), white_space(row["hypothesis"]), lambda text: token_f1(text, row["reference"]))
    assert row["score"] == 0
    assert not fit.importance.any()
    assert fit.quality is None
    assert fit.flags == ("constant",)


def test_paired_probes_hide_equally_many_words_from_both_ends_of_an_order() -> None:
    masks = paired_masks(6, 400, 25.0, np.random.default_rng(0))
    first, second = masks[::2], masks[1::2]
    assert (first.sum(axis=1) == second.sum(axis=1)).all()
    few = (~first).sum(axis=1) <= 3
    assert (first[few] | second[few]).all()
    # How many are hidden goes by the weight of such probes.
    hidden = np.bincount((~masks).sum(axis=1), minlength=7)[1:]
    weights = closeness(np.arange(6) >= np.arange(1, 7)[:, None], 25.0)
    assert np.abs(hidden / 400 - weights / weights.sum()).max() < 1 / 200 + 1e-12


def test_paired_probes_come_to_the_coefficients_of_uniform_ones() -> None:
    uniform, paired = (
        np.mean(
            [explain_masks(Lime(4000, sampling=kind), numbered_words(7), wavy, seed).importance for seed in (0, 1)], 0
        )
        for kind in ("uniform", "paired")
    )
    # 4,000 uniform samples are hardly shrunk by the penalty, paired ones as much as 100.
    assert np.corrcoef(uniform, paired)[0, 1] > 0.99
    check_explainer(Lime(sampling="paired"))


def test_paired_probes_are_more_stable_than_as_many_uniform_ones() -> None:
    def spread(kind: str) -> float:
        fits = [explain_masks(Lime(40, sampling=kind), numbered_words(12), wavy, seed).importance for seed in range(20)]
        return float(np.std(fits, axis=0).mean() / np.abs(np.mean(fits, axis=0)).mean())

    assert spread("paired") < 0.9 * spread("uniform")


@pytest.mark.parametrize("words", [5, 10, 23])
def test_balanced_probes_hide_words_and_pairs_equally_often(words: int) -> None:
    hidden = ~balanced_masks(words, 64, 25.0, np.random.default_rng(0))
    assert (hidden[::2].sum(axis=1) == hidden[1::2].sum(axis=1)).all()
    few = hidden[::2].sum(axis=1) <= words // 2
    assert not (hidden[::2] & hidden[1::2])[few].any()
    assert np.ptp(hidden.sum(axis=0)) <= 2
    drawn = ~paired_masks(words, 64, 25.0, np.random.default_rng(0))
    assert _spread_of_pairs(hidden) < 0.8 * _spread_of_pairs(drawn)


def _spread_of_pairs(hidden: KeepMasks) -> float:
    """Return how much pairs of words differ in how often they are hidden together."""
    together = hidden.T.astype(int) @ hidden
    return float(together[np.triu_indices(len(together), 1)].std())


@pytest.mark.parametrize("words", [1, 2, 3, 8])
def test_the_average_over_all_masks_is_that_of_all_masks(words: int) -> None:
    rng = np.random.default_rng(1)
    singles, pairs = rng.normal(size=words), rng.normal(size=words * (words - 1) // 2)
    one, other = np.triu_indices(words, 1)
    hidden = np.arange(2**words)[:, None] >> np.arange(words) & 1 == 1
    scores = hidden @ singles + (hidden[:, one] & hidden[:, other]) @ pairs
    sizes = hidden.sum(axis=1)
    # 99 probes: each number of hidden words is equally likely, and so are all masks of a number.
    weights = closeness(~hidden, 25.0) * np.array([99 / words / math.comb(words, size) for size in sizes.tolist()])
    weights[0] = 1
    expected = weighted_ridge(~hidden, scores, weights).coefficients
    np.testing.assert_allclose(average_lime(singles, pairs, (one, other), 25.0), expected, rtol=1e-9)


def test_balanced_probes_come_to_the_coefficients_of_uniform_ones() -> None:
    uniform, balanced = (
        np.mean(
            [explain_masks(Lime(many, sampling=kind), numbered_words(7), wavy, seed).importance for seed in (0, 1)], 0
        )
        for kind, many in (("uniform", 4000), ("balanced", 400))
    )
    assert np.corrcoef(uniform, balanced)[0, 1] > 0.99
    check_explainer(Lime(sampling="balanced"))
    with pytest.raises(SpecError, match="sampling='balanced'"):
        Lime(sampling="balanced", mode="compat")


def test_balanced_probes_are_more_stable_than_as_many_paired_ones() -> None:
    def spread(kind: str) -> float:
        fits = [explain_masks(Lime(40, sampling=kind), numbered_words(12), wavy, seed).importance for seed in range(20)]
        return float(np.std(fits, axis=0).mean() / np.abs(np.mean(fits, axis=0)).mean())

    assert spread("balanced") < 0.9 * spread("paired")


@pytest.mark.parametrize("sampling", ["uniform", "paired", "balanced"])
def test_a_constant_score_gives_exact_zeros(sampling: Literal["uniform", "paired", "balanced"]) -> None:
    fit = explain_masks(Lime(sampling=sampling), numbered_words(12), lambda masks: np.full(len(masks), 0.1))
    assert not fit.importance.any()
    assert fit.quality is None


@pytest.mark.parametrize(("words", "share"), [(1, 0.03), (2, 0.33), (3, 0.71), (5, 0.86), (10, 0.94), (25, 0.98)])
def test_the_penalty_shrinks_short_texts_as_documented(words: int, share: float) -> None:
    fits = [explain_masks(Lime(), numbered_words(words), lambda masks: masks.mean(axis=1), seed) for seed in range(40)]
    assert np.mean([fit.importance.mean() * words for fit in fits]) == pytest.approx(share, abs=0.02)
    assert ("shrunk" in fits[0].flags) == (words <= 2)


def test_fewer_samples_than_words_are_flagged() -> None:
    assert explain_masks(Lime(samples=20), numbered_words(21), wavy).flags == ("few samples",)
    assert explain_masks(Lime(samples=21), numbered_words(21), wavy).flags == ()


def test_auto_takes_four_samples_per_word_and_never_less_than_a_hundred() -> None:
    assert [Lime(samples="auto").cost(words) for words in (0, 3, 25, 26, 1000)] == [0, 99, 99, 103, 3999]


@settings(deadline=None)
@given(words=st.integers(1, 14), probes=st.integers(2, 20), seed=st.integers(0, 10_000), width=st.floats(5, 100))
def test_both_ways_to_solve_the_ridge_agree_with_its_definition(
    words: int, probes: int, seed: int, width: float
) -> None:
    rng = np.random.default_rng(seed)
    masks = np.vstack([np.ones((1, words), dtype=np.bool_), draw_masks(words, probes - 1, rng)])
    scores, weights = rng.normal(size=probes), closeness(masks, width)
    ridge = weighted_ridge(masks, scores, weights)
    design = np.column_stack([masks, np.ones(probes)])
    penalty = np.diag([1.0] * words + [0.0])
    solved = np.linalg.solve(design.T @ (weights[:, np.newaxis] * design) + penalty, design.T @ (weights * scores))
    assert np.append(ridge.coefficients, ridge.intercept) == pytest.approx(solved, abs=1e-8)


def test_an_empty_probe_weighs_e_to_the_minus_eight() -> None:
    masks = np.array([[True, True, True, True], [True, False, False, False], [False] * 4])
    expected = [1, np.exp(-0.5 * (100 * (1 - 0.5) / 25) ** 2), np.exp(-8)]
    assert closeness(masks, 25) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(("options", "message"), [
    ({"samples": 1}, "lime: samples is 1, expected 2 or more"),
    ({"samples": "many"}, "Lime: samples is 'many', expected a whole number or 'auto'"),
    ({"kernel_width": 0.0}, "lime: kernel_width is 0.0, expected a number above 0"),
    ({"seed": 3}, "lime: seed is 3, but only mode='compat' reads it; otherwise set the seed of the run"),
    ({"seed": -1, "mode": "compat"}, "lime: seed is -1, expected 0 to 4294967295"),
])  # fmt: skip
def test_options_out_of_range_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        Lime(**options)  # type: ignore[arg-type]


def test_compat_without_a_seed_takes_that_of_the_run() -> None:
    words = numbered_words(9)
    by_run = gather(Lime(mode="compat"), words, wavy, seed=5).masks
    assert np.array_equal(by_run, gather(Lime(mode="compat", seed=5), words, wavy).masks)
    assert not np.array_equal(by_run, gather(Lime(mode="compat"), words, wavy, seed=6).masks)
