"""Several explainers as one."""

import re

import numpy as np
import pytest

from whyscore.errors import ContractError, SpecError
from whyscore.explainers.engine import Intrinsic
from whyscore.explainers.ensemble import Ensemble
from whyscore.explainers.logprob import LogProb
from whyscore.explainers.masks.erasure import Erasure, Random
from whyscore.explainers.masks.lime import Lime
from whyscore.explainers.masks.partition import Partition
from whyscore.explainers.masks.shap import Shap
from whyscore.protocols import Explainer
from whyscore.testing.checks import explain_masks, gather, numbered_words, wavy
from whyscore.text.maskers import Delete, Replace
from whyscore.types import FloatVector, KeepMasks

MEMBERS: list[Explainer] = [
    Erasure(), Lime(), Lime(mode="compat"), Shap(), Shap(method="kernel"), Partition(budget=50), Random()
]  # fmt: skip


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: type(member).__name__)
@pytest.mark.parametrize("how", ["sum", "mean"])
def test_an_ensemble_of_one_is_that_one(member: Explainer, how: str) -> None:
    words = numbered_words(20)
    alone = explain_masks(member, words, wavy)
    joined = explain_masks(Ensemble((member,), how=how), words, wavy)  # type: ignore[arg-type]
    assert np.array_equal(joined.importance, alone.importance)
    assert joined.spread is not None
    assert not joined.spread.any()


def test_each_member_sees_its_own_rows_in_every_round() -> None:
    words = numbered_words(40)
    members = (Partition(budget=60, rounds=4), Lime(samples=50), Partition(budget=30, rounds=6), Shap(passes=2))
    joined = explain_masks(Ensemble(members, how="mean"), words, wavy)
    alone = [explain_masks(member, words, wavy).importance for member in members]
    assert joined.importance == pytest.approx(np.mean(alone, axis=0), abs=1e-15)
    assert joined.spread == pytest.approx(np.std(alone, axis=0), abs=1e-15)
    assert joined.method == "owen+lime+owen+permutation"
    assert joined.flags == ("shared spans",)


def test_ranks_are_scaled_to_one_and_ties_share_their_rank() -> None:
    effect = np.array([3.0, -1.0, -1.0, 10.0])

    def value(masks: KeepMasks) -> FloatVector:
        return masks @ effect

    fit = explain_masks(Ensemble((Erasure(), Erasure(mode="default"))), numbered_words(4), value)
    assert fit.importance == pytest.approx([2 / 3, 1 / 6, 1 / 6, 1])


def test_z_scores_have_mean_zero_and_equal_importances_count_nothing() -> None:
    fit = explain_masks(Ensemble((Erasure(),), how="z"), numbered_words(3), lambda masks: masks @ np.array([1.0, 2, 3]))
    assert fit.importance == pytest.approx([-np.sqrt(1.5), 0, np.sqrt(1.5)])
    flat = explain_masks(Ensemble((Erasure(),), how="z"), numbered_words(3), lambda masks: masks.sum(axis=1) * 0.1)
    assert flat.importance == pytest.approx([0, 0, 0], abs=1e-9)


def test_weights_move_the_result_towards_a_member() -> None:
    words, members = numbered_words(12), (Lime(), Shap())
    lime, shap = (explain_masks(member, words, wavy).importance for member in members)
    mean = explain_masks(Ensemble(members, how="mean", weights=(3, 1)), words, wavy).importance
    total = explain_masks(Ensemble(members, how="sum", weights=(3, 1)), words, wavy).importance
    assert mean == pytest.approx((3 * lime + shap) / 4, abs=1e-15)
    assert total == pytest.approx(3 * lime + shap, abs=1e-15)


def test_one_word_ranks_in_the_middle() -> None:
    assert explain_masks(Ensemble((Erasure(),)), numbered_words(1), wavy).importance.tolist() == [0.5]


def test_an_ensemble_may_be_a_member() -> None:
    words = numbered_words(30)
    inner = Ensemble((Lime(), Partition(budget=20)), how="mean")
    joined = explain_masks(Ensemble((inner, Shap()), how="sum"), words, wavy).importance
    expected = explain_masks(inner, words, wavy).importance + explain_masks(Shap(), words, wavy).importance
    assert joined == pytest.approx(expected, abs=1e-15)


def test_members_agree_on_a_masker_or_take_the_one_given() -> None:
    assert Ensemble((Lime(), Random(), Shap())).masker == Replace()
    assert Ensemble((Lime(), Erasure()), masker=Delete()).masker == Delete()
    assert Ensemble((Random(),)).masker is None
    message = "ensemble: members mask words differently (Replace(token='UNKWORDZ'), Delete(mode='default')), so they"
    with pytest.raises(SpecError, match=re.escape(message)):
        Ensemble((Lime(), Erasure()))


def test_a_single_member_needs_no_tuple() -> None:
    assert Ensemble(Lime()) == Ensemble((Lime(),))  # type: ignore[arg-type]


@pytest.mark.parametrize("member", [LogProb("x.jsonl"), Intrinsic(), "lime"])
def test_what_does_not_explain_by_masks_cannot_be_a_member(member: object) -> None:
    message = f"ensemble: {member!r} does not explain by masks and cannot be a member"
    with pytest.raises(SpecError, match=re.escape(message)):
        Ensemble((Lime(), member))  # type: ignore[arg-type]


@pytest.mark.parametrize(("options", "message"), [
    ({"members": ()}, "ensemble needs members: write ensemble(lime, shap)"),
    ({"weights": (1.0, 2.0)}, "ensemble: 2 weights for 1 members, expected one each"),
    ({"weights": (0,)}, "ensemble: weights are (0,), expected numbers of 0 or more, not all 0"),
    ({"how": "median"}, "Ensemble: how is 'median', expected 'rank' or 'z' or 'sum' or 'mean'"),
    ({"masker": 3}, "ensemble: masker is 3, expected a masker"),
])  # fmt: skip
def test_options_that_make_no_sense_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        Ensemble(**{"members": (Lime(),), **options})  # type: ignore[arg-type]


def test_probes_that_nobody_planned_are_refused() -> None:
    evidence = gather(Lime(), numbered_words(5), wavy)
    with pytest.raises(ContractError, match="ensemble: 94 probes were not planned by any member"):
        Ensemble((Erasure(),)).fit(evidence)
