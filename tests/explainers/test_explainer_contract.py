"""Promises that all explainers keep, and that the contract itself notices broken ones."""

import re
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import Generator

from whyscore.errors import ContractError, SpecError
from whyscore.explainers.engine import Intrinsic
from whyscore.explainers.ensemble import Ensemble
from whyscore.explainers.logprob import LogProb
from whyscore.explainers.masks.erasure import Erasure, Greedy, InputMarginalization, Random
from whyscore.explainers.masks.lime import Lime
from whyscore.explainers.masks.partition import Partition
from whyscore.explainers.masks.shap import Shap
from whyscore.protocols import Explainer
from whyscore.registry import build, spec_of
from whyscore.testing.checks import (
    check_explainer,
    explain_masks,
    explain_text,
    gather,
    numbered_words,
    wavy,
)
from whyscore.text.infill import Infill
from whyscore.text.maskers import Delete, Replace
from whyscore.text.splitters import white_space
from whyscore.types import Evidence, Fit, FloatVector, KeepMasks, Segment

INFILL = Infill(corpus=("a cat sat", "the dog sat"), top=2)

EXPLAINERS: list[Explainer] = [
    Erasure(),
    Erasure(mode="compat"),
    Lime(),
    Lime(samples="auto"),
    Lime(mode="compat", seed=3),
    Shap(),
    Shap(method="permutation", passes=2),
    Shap(method="kernel"),
    Shap(method="kernel", budget=31),
    Shap(mode="compat"),
    Partition(),
    Partition(budget=60, rounds=4),
    Greedy(),
    Greedy(rounds=2),
    InputMarginalization(INFILL),
    Random(),
    Ensemble((Lime(), Shap(), Partition(budget=40), Random())),
    Ensemble((Erasure(), Lime(samples=30)), how="z", masker=Delete()),
]

ADDING_UP = [
    Shap(),
    Shap(method="permutation"),
    Shap(method="kernel", budget=40),
    Shap(mode="compat"),
    Partition(),
    Partition(budget=12, rounds=3),
]


def _id(explainer: Explainer) -> str:
    return type(explainer).__name__


@pytest.mark.parametrize("explainer", EXPLAINERS, ids=_id)
def test_every_explainer_keeps_the_contract(explainer: Explainer) -> None:
    check_explainer(explainer, sizes=(0, 1, 2, 3, 7, 8, 30, 300))


@pytest.mark.slow
@pytest.mark.parametrize("explainer", EXPLAINERS, ids=_id)
def test_every_explainer_keeps_the_contract_for_a_thousand_words(explainer: Explainer) -> None:
    check_explainer(explainer, sizes=(1000,))


@pytest.mark.parametrize("explainer", EXPLAINERS, ids=_id)
@pytest.mark.parametrize("text", ["", " \t\n ", "one"])
def test_texts_of_no_and_of_one_word_work(explainer: Explainer, text: str) -> None:
    words = white_space(text)
    evidence = Evidence.whole(words, 0.5)
    if explainer.rounds:
        assert explainer.plan(evidence, np.random.default_rng(0)).shape == (explainer.cost(len(words)), len(words))
    fit = explain_text(explainer, words, lambda masked: float(masked == text))
    assert fit.importance.shape == (len(words),)


@pytest.mark.parametrize("explainer", EXPLAINERS, ids=_id)
def test_texts_explained_alone_in_company_or_in_another_order_get_the_same_bits(explainer: Explainer) -> None:
    texts = [f"{'word ' * k}and {k} more {k}" for k in range(6)]
    alone = {text: explain_masks(explainer, white_space(text), wavy).importance for text in texts}
    together = {text: gather(explainer, white_space(text), wavy) for text in reversed(texts)}
    for text in texts:
        assert np.array_equal(alone[text], explainer.fit(together[text]).importance)


@pytest.mark.parametrize("explainer", ADDING_UP, ids=_id)
@settings(deadline=None)
@given(data=st.data())
def test_importances_add_up_to_what_the_words_earn(explainer: Explainer, data: st.DataObject) -> None:
    words = data.draw(st.integers(1, 12), label="words")
    table = data.draw(st.integers(0, 2**32 - 1), label="game")
    fit = explain_masks(explainer, numbered_words(words), _any_game(table, words))
    ends = _any_game(table, words)(np.array([[True] * words, [False] * words]))
    assert fit.importance.sum() == pytest.approx(ends[0] - ends[1], abs=1e-9)
    assert "does not add up" not in fit.flags


@pytest.mark.parametrize("explainer", [*ADDING_UP[:5], Erasure(), Ensemble((Shap(), Partition()), how="mean")], ids=_id)
@settings(deadline=None)
@given(effects=st.lists(st.floats(-5, 5), min_size=1, max_size=12), base=st.floats(-5, 5))
def test_an_additive_metric_is_recovered_exactly(explainer: Explainer, effects: list[float], base: float) -> None:
    effect = np.array(effects)
    fit = explain_masks(explainer, numbered_words(len(effect)), lambda masks: base + masks @ effect)
    assert fit.importance == pytest.approx(effect, abs=1e-9)


@pytest.mark.parametrize(
    "explainer",
    [Erasure(), Shap(), Shap(method="permutation"), Shap(method="kernel", budget=4096), Partition()],
    ids=_id,
)
@settings(deadline=None)
@given(words=st.integers(2, 9), seed=st.integers(0, 1000), data=st.data())
def test_a_word_without_effect_gets_nothing(explainer: Explainer, words: int, seed: int, data: st.DataObject) -> None:
    idle = data.draw(st.integers(0, words - 1))
    game = _any_game(seed, words)

    def value(masks: KeepMasks) -> FloatVector:
        without = masks.copy()
        without[:, idle] = False
        return game(without)

    assert explain_masks(explainer, numbered_words(words), value).importance[idle] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("explainer", [Erasure(), Shap(exact_up_to=9), Shap(method="kernel", budget=4096)], ids=_id)
@settings(deadline=None)
@given(words=st.integers(2, 9), seed=st.integers(0, 1000))
def test_words_that_do_the_same_get_the_same(explainer: Explainer, words: int, seed: int) -> None:
    game = _any_game(seed, words)

    def value(masks: KeepMasks) -> FloatVector:
        swapped = masks.copy()
        swapped[:, [0, -1]] = swapped[:, [-1, 0]]
        return game(masks) + game(swapped)

    importance = explain_masks(explainer, numbered_words(words), value).importance
    assert importance[0] == pytest.approx(importance[-1], abs=1e-9)


def _any_game(seed: int, words: int) -> "_Table":
    return _Table(np.random.default_rng(seed).normal(size=2**words))


@dataclass(frozen=True)
class _Table:
    """A game given by the value of each of its masks."""

    values: FloatVector

    def __call__(self, masks: KeepMasks) -> FloatVector:
        return self.values[masks @ (1 << np.arange(masks.shape[1]))]


SPECS = {
    "erasure": Erasure(),
    'erasure(masker=delete(mode="compat"), mode="compat")': Erasure(mode="compat"),
    'lime(samples="auto", masker=replace(token="..."))': Lime(samples="auto", masker=Replace("...")),
    'lime(mode="compat", seed=7)': Lime(mode="compat", seed=7),
    'shap(method="kernel", budget=500)': Shap(method="kernel", budget=500),
    "partition(budget=64)": Partition(budget=64),
    "random": Random(),
    "intrinsic": Intrinsic(),
    'logprob(path="probs.jsonl", pool="sum")': LogProb("probs.jsonl", pool="sum"),
    'ensemble(members=(lime, shap), how="z", masker=replace)': Ensemble((Lime(), Shap()), how="z"),
    "ensemble(members=(lime,), weights=(2,), masker=replace)": Ensemble((Lime(),), weights=(2,)),
    'input_marginalization(masker=infill(corpus="ref.txt", top=5))': InputMarginalization(Infill("ref.txt", top=5)),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "explainer"), SPECS.items())
def test_a_spec_makes_the_explainer_and_the_explainer_its_spec(spec: str, explainer: object) -> None:
    assert build(spec, kind="explainer") == explainer
    assert spec_of(explainer) == spec


def test_a_masker_given_by_name_where_an_object_is_meant_is_refused() -> None:
    with pytest.raises(SpecError, match=re.escape("lime: masker is 'delete', expected a masker: give whyscore.text")):
        Lime(masker="delete")  # type: ignore[arg-type]


@dataclass(frozen=True)
class Honest:
    """A tiny explainer that keeps the contract, to be broken in one place at a time."""

    rounds: int = 1
    price: int = 0
    scale: float = 1.0
    shape: int = 0
    draws: bool = False
    repeats: bool = False
    masker: object = None

    def cost(self, words: int) -> int:
        return words + self.price

    def plan(self, evidence: Evidence, rng: Generator) -> KeepMasks:  # noqa: ARG002 - nothing to draw
        words = len(evidence.words)
        if self.draws:
            np.random.rand()  # noqa: NPY002 - what the contract must notice
        masks = ~np.eye(words, words + self.shape, dtype=np.bool_)
        return masks | self.repeats

    def fit(self, evidence: Evidence) -> Fit:
        return Fit(self.scale * (evidence.scores[0] - evidence.scores[1:]))


BROKEN = {
    "Honest: cost(0) is 1, but 0 probes were planned": Honest(price=1),
    "Honest.fit: importance of word 0 of 1 is inf": Honest(scale=np.inf),
    "Honest.plan: expected a boolean array, probes x 0 words, got ndarray of shape (0, 1)": Honest(shape=1),
    "Honest.plan: draws from the global random numbers; use the generator given": Honest(draws=True),
    "Honest: the whole text was planned again; its score is row 0 of the evidence": Honest(repeats=True),
    "Honest.masker: expected a masker, got 'delete'": Honest(masker="delete"),
}


@pytest.mark.parametrize(("message", "explainer"), BROKEN.items())
def test_the_contract_names_what_is_broken(message: str, explainer: Honest) -> None:
    check_explainer(replace(Honest(), masker=Delete()))
    with pytest.raises(ContractError, match=re.escape(message)):
        check_explainer(explainer)


def test_a_class_without_the_members_is_no_explainer() -> None:
    with pytest.raises(ContractError, match="Segment lacks 'rounds', which every explainer has"):
        check_explainer(Segment("a"))  # type: ignore[arg-type]
