"""Owen values on the tree of halves."""

import re
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyscore.errors import SpecError
from whyscore.explainers.masks.partition import Partition, _whole_tree
from whyscore.testing.checks import explain_masks, gather, numbered_words, wavy
from whyscore.types import FloatVector, KeepMasks

Game = Callable[[KeepMasks], FloatVector]


def _any_game(seed: int, words: int) -> Game:
    values = np.random.default_rng(seed).normal(size=2**words)
    return lambda masks: values[masks @ (1 << np.arange(words))]


def _tree_orders(start: int, end: int) -> Iterator[list[int]]:
    """Yield the orders of a span in which each half comes as a block, one or the other first."""
    if end - start == 1:
        yield [start]
        return
    middle = (start + end) // 2
    for left in _tree_orders(start, middle):
        for right in _tree_orders(middle, end):
            yield left + right
            yield right + left


def _owen(game: Game, words: int) -> FloatVector:
    """Owen's definition: the mean, over all orders that keep spans together, of what a word adds at its turn."""
    result, number = np.zeros(words), 0
    for order in _tree_orders(0, words):
        mask = np.zeros((1, words), dtype=np.bool_)
        for word in order:
            before = game(mask)[0]
            mask[0, word] = True
            result[word] += game(mask)[0] - before
        number += 1
    return result / number


@pytest.mark.parametrize("words", range(1, 10))
def test_an_unlimited_budget_gives_the_owen_values_of_the_tree(words: int) -> None:
    game = _any_game(words, words)
    fit = explain_masks(Partition(budget=10_000), numbered_words(words), game)
    assert fit.importance == pytest.approx(_owen(game, words), abs=1e-12)
    assert fit.method == "owen"
    assert fit.flags == ()


@settings(deadline=None)
@given(words=st.integers(3, 20), seed=st.integers(0, 100))
def test_asking_in_rounds_asks_a_part_of_the_whole_tree_and_still_adds_up(words: int, seed: int) -> None:
    shift = np.random.default_rng(seed).normal(size=words)

    def game(masks: KeepMasks) -> FloatVector:
        return np.tanh(masks @ shift)

    whole = _whole_tree(words)
    at_once = explain_masks(Partition(budget=whole), numbered_words(words), game)
    in_rounds = gather(Partition(budget=whole - 1, rounds=30), numbered_words(words), game)
    exact = set(map(bytes, gather(Partition(budget=whole), numbered_words(words), game).masks))
    assert set(map(bytes, in_rounds.masks)) <= exact
    fit = Partition(budget=whole - 1, rounds=30).fit(in_rounds)
    assert fit.importance.sum() == pytest.approx(at_once.importance.sum(), abs=1e-12)


def test_the_whole_tree_is_asked_in_the_first_round_when_the_budget_covers_it() -> None:
    evidence = gather(Partition(budget=10_000, rounds=1), numbered_words(16), wavy)
    assert len(evidence.masks) - 1 == Partition(budget=10_000).cost(16) == 1 + 170
    assert len(set(map(bytes, evidence.masks))) == len(evidence.masks)


def test_spans_that_matter_are_opened_and_the_others_share_equally() -> None:
    def game(masks: KeepMasks) -> FloatVector:
        return masks[:, 5] + 0.01 * masks[:, 8:].sum(axis=1)

    fit = explain_masks(Partition(budget=40), numbered_words(16), game)
    assert fit.importance[5] == pytest.approx(1, abs=1e-12)
    assert fit.importance[8:] == pytest.approx(np.full(8, 0.01), abs=1e-12)
    assert fit.flags == ("shared spans",)


@pytest.mark.parametrize("words", [40, 300, 1000])
@pytest.mark.parametrize("explainer", [Partition(), Partition(budget=33), Partition(budget=200, rounds=5)])
def test_long_texts_use_the_budget_up_and_no_more(explainer: Partition, words: int) -> None:
    evidence = gather(explainer, numbered_words(words), wavy)
    assert len(evidence.masks) - 1 == explainer.cost(words) <= 1 + explainer.budget
    assert len(set(map(bytes, evidence.masks))) == len(evidence.masks)


def test_rounds_too_few_for_the_budget_lower_the_cost() -> None:
    assert Partition(budget=500, rounds=2).cost(300) == 1 + 2 + 8
    assert len(gather(Partition(budget=500, rounds=2), numbered_words(300), wavy).masks) - 1 == 11


@pytest.mark.parametrize(("options", "message"), [
    ({"budget": 1}, "partition: budget is 1, expected 2 or more"),
    ({"rounds": 0}, "partition: rounds is 0, expected 1 or more"),
    ({"budget": "all"}, "Partition: budget is 'all', expected a whole number"),
])  # fmt: skip
def test_options_out_of_range_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        Partition(**options)  # type: ignore[arg-type]
