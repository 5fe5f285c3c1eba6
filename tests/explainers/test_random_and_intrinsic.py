"""The control, and the marker for metrics that explain themselves."""

import numpy as np
import pytest

from whyscore.explainers.engine import Intrinsic
from whyscore.explainers.masks.erasure import Random
from whyscore.protocols import Explainer
from whyscore.testing.checks import explain_masks, numbered_words, wavy
from whyscore.text.randomness import generator
from whyscore.text.splitters import white_space
from whyscore.types import Evidence


def test_random_numbers_follow_from_the_seed_and_the_text_alone() -> None:
    words = numbered_words(50)
    first = explain_masks(Random(), words, wavy, seed=4).importance
    assert np.array_equal(first, generator(4, "random", words.text).random(50))
    assert np.array_equal(first, Random().fit(Evidence.whole(words, 99.0, seed=4)).importance)
    assert not np.array_equal(first, explain_masks(Random(), words, wavy, seed=5).importance)


def test_random_numbers_are_uniform_between_zero_and_one() -> None:
    drawn = np.concatenate([explain_masks(Random(), white_space(f"{k} a b c"), wavy).importance for k in range(2000)])
    assert drawn.min() >= 0
    assert drawn.max() < 1
    assert np.histogram(drawn, bins=4, range=(0, 1))[0] / len(drawn) == pytest.approx([0.25] * 4, abs=0.02)


def test_intrinsic_plans_nothing_and_is_no_explainer_by_masks() -> None:
    assert not isinstance(Intrinsic(), Explainer)
    assert Intrinsic() == Intrinsic()
