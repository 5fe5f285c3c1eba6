"""Hiding the most harmful words one after the other."""

import re

import numpy as np
import pytest

import whyscore as ws
from whyscore.errors import SpecError
from whyscore.explainers.masks.erasure import Erasure, Greedy
from whyscore.testing.checks import explain_masks, numbered_words
from whyscore.types import FloatVector, KeepMasks, Segment


def squared(masks: KeepMasks) -> FloatVector:
    """The first two words do harm, the more the more of them there are; the third helps a little."""
    harm = masks[:, :2].sum(axis=1).astype(np.float64)
    scores: FloatVector = 0.5 * masks[:, 2] - harm**2
    return scores


def additive(masks: KeepMasks) -> FloatVector:
    scores: FloatVector = masks @ np.array([-2.0, 1.0, -3.0, 0.0, 4.0])
    return scores


def test_harm_that_words_do_together_is_shared_out_in_order() -> None:
    # Hiding one of the two takes -4 to -1, hiding the other one then -1 to 0: together all that there is.
    found = explain_masks(Greedy(), numbered_words(4), squared)
    assert found.importance.tolist() == [-3.0, -1.0, 0.5, 0.0]
    assert explain_masks(Erasure(), numbered_words(4), squared).importance.tolist() == [-3.0, -3.0, 0.5, 0.0]
    assert found.importance[:2].sum() == squared(np.ones((1, 4), bool))[0] - squared(np.array([[0, 0, 1, 1]]) > 0)[0]


def test_an_additive_metric_is_recovered_exactly_whatever_the_rounds() -> None:
    for rounds in (1, 2, 3, 9):
        assert explain_masks(Greedy(rounds), numbered_words(5), additive).importance.tolist() == [
            -2.0,
            1.0,
            -3.0,
            0.0,
            4.0,
        ]


def test_one_round_is_erasure() -> None:
    segments = [Segment("a cat sat on the the mat", references=("a dog sat on a mat",))]
    one, other = (ws.explain(segments, "chrf", name) for name in ("greedy(rounds=1)", "erasure"))
    for a, b in zip(one, other, strict=True):
        assert a.importance.tolist() == b.importance.tolist()
        assert (a.method, a.probes) == ("greedy", b.probes)


def test_nothing_is_asked_once_no_word_does_harm() -> None:
    # Of five words two do harm: five probes, then four, then three that find nothing more to hide.
    segments = [Segment("no a b wrong c", references=("a b c",))]
    (found,) = ws.explain(segments, "token_f1", "greedy(rounds=5)", sides=["hypothesis"])
    assert found.probes == 1 + 5 + 4 + 3
    assert Greedy(5).cost(5) == 5 + 4 + 3 + 2 + 1
    assert (found.importance < 0).tolist() == [True, False, False, True, False]
    whole, without = ws.score([*segments, Segment("a b c", references=("a b c",))], "token_f1").values
    assert found.importance[[0, 3]].sum() == pytest.approx(whole - without)


def test_a_text_whose_every_word_does_harm_is_hidden_to_the_end() -> None:
    found = explain_masks(Greedy(9), numbered_words(2), lambda masks: -masks.sum(axis=1).astype(np.float64))
    assert found.importance.tolist() == [-1.0, -1.0]


def test_options_out_of_range_are_refused() -> None:
    with pytest.raises(SpecError, match=re.escape("greedy: rounds is 0, expected 1 or more")):
        Greedy(0)
