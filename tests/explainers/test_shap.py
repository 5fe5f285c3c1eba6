"""Shapley values: exact ones by their definition, the others against them and against the package."""

import json
import math
import os
import re
import warnings
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import RandomState

from whyscore.errors import SpecError
from whyscore.explainers.masks import shap as kernel
from whyscore.explainers.masks import shap as shapley
from whyscore.explainers.masks.shap import Shap
from whyscore.testing.checks import check_explainer, explain_masks, explain_text, gather, numbered_words, wavy
from whyscore.text.maskers import Replace
from whyscore.text.splitters import white_space
from whyscore.types import Evidence, FloatVector, KeepMasks

TokenF1 = Callable[[str, str], float]
Game = Callable[[KeepMasks], FloatVector]


def _any_game(seed: int, words: int) -> Game:
    values = np.random.default_rng(seed).normal(size=2**words)
    return lambda masks: values[masks @ (1 << np.arange(words))]


def _by_orders(game: Game, words: int) -> FloatVector:
    """Shapley's definition: the mean over all orders of what a word adds when its turn comes."""
    result = np.zeros(words)
    for order in permutations(range(words)):
        mask = np.zeros((1, words), dtype=np.bool_)
        for word in order:
            before = game(mask)[0]
            mask[0, word] = True
            result[word] += game(mask)[0] - before
    return result / math.factorial(words)


@pytest.mark.parametrize("words", [1, 2, 3, 5, 6])
def test_exact_values_are_the_mean_over_all_orders(words: int) -> None:
    game = _any_game(words, words)
    fit = explain_masks(Shap(method="exact"), numbered_words(words), game)
    assert fit.importance == pytest.approx(_by_orders(game, words), abs=1e-12)
    assert fit.method == "exact"


def test_two_words_that_count_only_together_share_the_credit() -> None:
    fit = explain_masks(Shap(), numbered_words(3), lambda masks: (masks[:, 0] & masks[:, 2]).astype(np.float64))
    assert fit.importance.tolist() == [0.5, 0.0, 0.5]


@pytest.mark.parametrize("explainer", [
    Shap(method="exact"),
    Shap(),
    Shap(method="kernel", budget=2**7 - 2),
    Shap(method="permutation", passes=1),
], ids=lambda explainer: f"{explainer.method}")  # fmt: skip
def test_stored_exact_values_of_wmt17_are_reproduced(shipped: Path, token_f1: TokenF1, explainer: Shap) -> None:
    lines = (shipped / "boosting" / "shapley_exact_tokenF1_wmt17_csen.jsonl").read_text().splitlines()
    assert len(lines) == 5
    for row in map(json.loads, lines):
        words = white_space(row["hypothesis"])
        fit = explain_text(explainer, words, lambda text, r=row: token_f1(text, r["reference"]))
        tolerance = 1e-9 if explainer.method == "kernel" else 1e-12
        assert np.abs(fit.importance - row["shapley_hyp"]).max() <= tolerance
        assert fit.importance.sum() == pytest.approx(row["score"] - row["base"], abs=1e-12)


@settings(deadline=None)
@given(words=st.integers(1, 9), seed=st.integers(0, 10_000), more=st.integers(0, 5))
def test_the_kernel_is_exact_once_its_budget_covers_all_masks(words: int, seed: int, more: int) -> None:
    game = _any_game(seed, words)
    whole = Shap(method="kernel", budget=max(2, 2**words - 2 + more))
    exact = explain_masks(Shap(method="exact"), numbered_words(words), game)
    fit = explain_masks(whole, numbered_words(words), game)
    assert np.abs(fit.importance - exact.importance).max() <= 1e-9
    assert fit.method == "kernel"


@pytest.mark.parametrize("words", [2, 3, 4, 5, 6, 7])
def test_a_full_kernel_budget_asks_every_mask_once_with_its_weight(words: int) -> None:
    masks = kernel.subset_masks(words, 2**words - 2, np.random.default_rng(0))
    codes = masks @ (1 << np.arange(words))
    assert sorted(codes.tolist()) == list(range(1, 2**words - 1))
    assert (codes[::2] + codes[1::2] == 2**words - 1).all()
    sizes = masks.sum(axis=1)
    expected = [(words - 1) / (math.comb(words, k) * k * (words - k)) for k in sizes.tolist()]
    assert kernel._weights(words, 2**words - 2) == pytest.approx(expected, rel=1e-12)


def test_kernel_sizes_are_filled_from_outside_in() -> None:
    masks = kernel.subset_masks(8, 40, np.random.default_rng(0))
    sizes = masks.sum(axis=1)
    assert sorted(sizes[:16].tolist()) == [1] * 8 + [7] * 8
    assert set(sizes[16:].tolist()) <= {2, 3, 4, 5, 6}
    assert (masks[16::2] ^ masks[17::2]).all()
    assert len(masks) == 40


def test_drawn_kernel_masks_come_in_proportion_to_their_weight() -> None:
    drawn = kernel._draw_subsets(8, 1, 30_000, np.random.default_rng(0))
    sizes = np.bincount(drawn.sum(axis=1), minlength=7)[2:7]
    mass = np.array([1 / (k * (8 - k)) for k in range(2, 7)])
    assert sizes / 30_000 == pytest.approx(mass / mass.sum(), abs=0.01)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 7), st.integers(0, 5), st.integers(0, 9))
def test_leverage_is_exact_once_its_budget_covers_all_masks(words: int, seed: int, more: int) -> None:
    game = _any_game(seed, words)
    fit = explain_masks(Shap(method="leverage", budget=max(2, 2**words - 2 + more)), numbered_words(words), game)
    exact = explain_masks(Shap(method="exact"), numbered_words(words), game)
    assert fit.importance == pytest.approx(exact.importance, abs=1e-9)


def test_leverage_spreads_its_masks_evenly_over_the_sizes_and_asks_none_twice() -> None:
    masks = kernel.leverage_masks(9, 64, np.random.default_rng(0))
    assert len(np.unique(masks, axis=0)) == len(masks) == 64
    assert (masks[::2] == ~masks[1::2]).all()
    assert np.bincount(masks.sum(axis=1), minlength=10).tolist() == [0, 8, 8, 8, 8, 8, 8, 8, 8, 0]


def test_leverage_is_right_on_average_and_checked_like_every_explainer() -> None:
    game = _any_game(3, 8)
    exact = explain_masks(Shap(method="exact"), numbered_words(8), game).importance
    fits = [
        explain_masks(Shap(method="leverage", budget=60), numbered_words(8), game, seed).importance
        for seed in range(200)
    ]
    assert np.mean(fits, axis=0) == pytest.approx(exact, abs=4 * np.std(fits, axis=0).max() / np.sqrt(200))
    check_explainer(Shap(method="leverage", budget=600))


def test_a_kernel_budget_far_from_full_comes_near_the_exact_values() -> None:
    game = _any_game(0, 12)
    exact = explain_masks(Shap(method="exact"), numbered_words(12), game).importance
    errors = [
        np.abs(explain_masks(Shap(method="kernel", budget=budget), numbered_words(12), game).importance - exact).mean()
        for budget in (100, 1000, 4094)
    ]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 1e-9


def test_too_small_a_kernel_budget_is_flagged_and_still_adds_up() -> None:
    fit = explain_masks(Shap(method="kernel", budget=10), numbered_words(30), wavy)
    assert fit.flags == ("few samples",)
    assert explain_masks(Shap(method="kernel", budget=60), numbered_words(30), wavy).flags == ()


@pytest.mark.parametrize("words", [2, 5, 9, 30])
def test_one_pass_is_exact_where_words_interact_in_pairs(words: int) -> None:
    rng = np.random.default_rng(words)
    alone, together = rng.normal(size=words), rng.normal(size=(words, words))
    np.fill_diagonal(together, 0)

    def game(masks: KeepMasks) -> FloatVector:
        kept = masks.astype(np.float64)
        return kept @ alone + np.einsum("ri,ij,rj->r", kept, together, kept)

    fit = explain_masks(Shap(method="permutation", passes=1), numbered_words(words), game)
    expected = alone + (together.sum(axis=0) + together.sum(axis=1)) / 2
    assert fit.importance == pytest.approx(expected, abs=1e-10)


def test_a_permutation_pass_asks_nothing_twice_that_is_known() -> None:
    evidence = gather(Shap(method="permutation", passes=3), numbered_words(10), wavy)
    kept = evidence.masks.sum(axis=1)
    assert len(kept) == 1 + 1 + 2 * 3 * 9
    assert (kept == 0).sum() == 1
    assert (kept == 10).sum() == 1


def test_masks_along_an_order_go_up_and_down_in_that_order() -> None:
    masks = shapley.order_masks(np.array([[2, 0, 1]]))
    assert masks.astype(int).tolist() == [[0, 0, 0], [0, 0, 1], [1, 0, 1], [1, 1, 0], [0, 1, 0]]


SENTENCES = [
    ("the quick brown fox jumps over the lazy dog near the river", "a quick fox jumped over the lazy lazy dog"),
    ("one two three four five six seven eight", "eight seven six five four three two one zero"),
    (" ".join(f"w{k % 13}" for k in range(60)), " ".join(f"w{k}" for k in range(20))),
]


@pytest.mark.parametrize(("text", "reference"), SENTENCES)
@pytest.mark.parametrize("seed", [0, 7])
def test_compat_equals_the_permutations_of_the_package(text: str, reference: str, seed: int, token_f1: TokenF1) -> None:
    words = white_space(text)
    theirs = _library(lambda masks: _scores(text, reference, masks, token_f1), len(words), seed)
    explainer = Shap(method="permutation", mode="compat", seed=seed)
    fit = explain_text(explainer, words, lambda masked: token_f1(masked, reference))
    assert np.array_equal(fit.importance, theirs)


@pytest.mark.parametrize("words", [2, 8, 31, 249])
def test_compat_equals_the_package_on_games_with_interactions(words: int) -> None:
    fit = explain_masks(Shap(method="permutation", mode="compat", seed=3), numbered_words(words), _rugged)
    assert np.abs(fit.importance - _library(_rugged, words, 3)).max() <= 1e-12


def _rugged(masks: KeepMasks) -> FloatVector:
    place = np.arange(masks.shape[1])
    return np.sin(masks @ np.cos(place)) + np.cos(masks @ np.sin(1.3 * place))


def _scores(text: str, reference: str, masks: KeepMasks, token_f1: TokenF1) -> FloatVector:
    (probes,) = Replace().render([(white_space(text), masks)])
    return np.array([token_f1(masked, reference) for masked in probes.texts])


def _library(game: Game, words: int, seed: int) -> FloatVector:
    """Return the values of shap 0.51's PermutationExplainer; it seeds the global generator, which is put back."""
    # To compile its loops takes longer than to run them: they are run as they are written.
    with warnings.catch_warnings(), mock.patch.dict(os.environ, NUMBA_DISABLE_JIT="1"):
        warnings.simplefilter("ignore")  # of the package's plots
        import shap

    state = np.random.get_state()  # noqa: NPY002
    try:
        masker = shap.maskers.Independent(np.zeros((1, words)))
        explainer = shap.explainers.Permutation(lambda rows: game(rows == 1), masker, seed=seed)
        values = explainer(np.ones((1, words)), max_evals=500, silent=True).values[0]
    finally:
        np.random.set_state(state)  # noqa: NPY002
    return np.asarray(values, dtype=np.float64)


def test_compat_spends_five_hundred_and_at_least_one_pass() -> None:
    explainer = Shap(method="permutation", mode="compat")
    assert [explainer.cost(words) for words in (8, 249, 250, 1000)] == [
        1 + 2 * 29 * 7,
        1 + 2 * 248,
        1 + 2 * 249,
        1 + 2 * 999,
    ]
    assert Shap(mode="compat", budget=51).cost(8) == 1 + 2 * 3 * 7


def test_one_array_is_shuffled_again_and_again() -> None:
    state, order = RandomState(4), np.arange(5)
    expected = []
    for _ in range(3):
        state.shuffle(order)
        expected.append(order.tolist())
    assert shapley.compat_orders(5, 3, RandomState(4)).tolist() == expected


def test_auto_names_the_method_that_ran() -> None:
    assert [explain_masks(Shap(), numbered_words(words), wavy).method for words in (7, 8)] == ["exact", "permutation"]
    assert [Shap().cost(words) for words in (0, 1, 7, 8)] == [0, 1, 127, 1 + 2 * 10 * 7]


def test_exact_beyond_twenty_words_is_refused_before_anything_is_asked() -> None:
    message = "method='exact' would take 2^21 - 1 probes for a text of 21 words; it goes up to 20 words"
    evidence = Evidence.whole(numbered_words(21), 1.0)
    with pytest.raises(SpecError, match=re.escape(message)):
        Shap(method="exact").plan(evidence, np.random.default_rng(0))
    with pytest.raises(SpecError, match=re.escape(message)):
        Shap(method="exact").cost(21)


def test_sixteen_words_can_be_exact() -> None:
    fit = explain_masks(Shap(method="exact"), numbered_words(16), wavy)
    pairs = np.full(16, 0.1) - 0.05 * np.isin(np.arange(16), (0, 15))
    assert fit.importance == pytest.approx(np.sin(1.0 + np.arange(16)) + pairs, abs=1e-12)


def test_values_that_do_not_add_up_are_flagged() -> None:
    evidence = gather(Shap(method="permutation"), numbered_words(9), wavy)
    scores = evidence.scores.copy()
    scores[5] = np.inf
    scores[6] = 0
    with np.errstate(invalid="ignore"):
        assert (
            "does not add up" in Shap(method="permutation").fit(Evidence(evidence.words, evidence.masks, scores)).flags
        )


@pytest.mark.parametrize(("options", "message"), [
    ({"method": "tree"}, "Shap: method is 'tree', expected 'auto' or 'exact' or 'permutation' or 'kernel'"),
    ({"passes": 0}, "shap: passes is 0, expected 1 or more"),
    ({"exact_up_to": 21}, "shap: exact_up_to is 21, expected 0 to 20"),
    ({"budget": 1, "method": "kernel"}, "shap: budget is 1, expected 2 or more"),
    ({"budget": 99}, "shap: budget is 99, but only method='kernel', method='leverage' and mode='compat' read it"),
    ({"seed": 0}, "shap: seed is 0, but only mode='compat' reads it"),
    ({"mode": "compat", "method": "kernel"}, "shap: mode='compat' follows shap's PermutationExplainer"),
])  # fmt: skip
def test_options_out_of_range_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        Shap(**options)  # type: ignore[arg-type]


def test_subset_counts_agree_with_the_subsets() -> None:
    for words, budget in [(1, 2), (2, 2), (3, 5), (6, 30), (6, 200), (12, 333), (40, 2128)]:
        masks = kernel.subset_masks(words, budget, np.random.default_rng(0))
        assert len(masks) == kernel.subset_count(words, budget)
        if len(masks):
            assert len(kernel._weights(words, budget)) == len(masks)
