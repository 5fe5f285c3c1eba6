"""Fakes answer what their names say."""

import re

import pytest

from whyscore.errors import SpecError
from whyscore.testing.fakes import Constant, Counting, WordWeights
from whyscore.types import Inputs, Segment


def test_a_constant_is_the_same_for_all() -> None:
    metric = Constant(0.25, higher_is_better=False)
    assert metric.score([Segment("a"), Segment("b")]).tolist() == [0.25, 0.25]
    assert not metric.higher_is_better
    assert str(metric.signature()) == "constant(0.25)"


def test_weights_of_words_add_up() -> None:
    metric = WordWeights(("good", "bad"), (1.0, -2.0), other=0.5)
    assert metric.score([Segment("good bad bad thing"), Segment("")]).tolist() == [-2.5, 0]


def test_words_without_weight_are_refused() -> None:
    with pytest.raises(SpecError, match=re.escape("word_weights: 2 words, but 1 weights")):
        WordWeights(("a", "b"), (1.0,))


def test_questions_are_counted() -> None:
    metric = Counting(WordWeights(("a",), (1.0,)))
    metric.score([Segment("a"), Segment("a")])
    metric.score([Segment("b")])
    assert (metric.calls, metric.asked) == (2, 3)
    assert metric.segments == [Segment("a"), Segment("a"), Segment("b")]
    assert metric.inputs == Inputs.HYPOTHESIS
    assert metric.signature() == WordWeights(("a",), (1.0,)).signature()
