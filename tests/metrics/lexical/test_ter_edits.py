"""The edits of TER, one by one."""

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.lib_ter import BeamEditDistance, translation_edit_rate

from support.ter_pairs import all_pairs, nasty_pairs, read_recorded, real_pairs
from whyscore.metrics.lexical.edits import Edit, _Distance, alignment, edits, trace
from whyscore.metrics.lexical.ter import Ter
from whyscore.text.splitters import Characters, white_space
from whyscore.types import HYPOTHESIS, Place, Segment, Side

WORDS = st.lists(st.sampled_from("abcdef"), max_size=14)
REFERENCE = Place(Side.REFERENCE, 0)


@settings(max_examples=300)
@given(WORDS, WORDS)
def test_as_many_edits_as_sacrebleu_finds(hypothesis: list[str], reference: list[str]) -> None:
    number = translation_edit_rate(hypothesis, reference)[0]
    assert edits(hypothesis, reference) == number
    assert trace(hypothesis, reference).edits == number


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=90),
    st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=90),
)
def test_the_edit_distance_is_that_of_sacrebleu_with_its_beam(hypothesis: list[str], reference: list[str]) -> None:
    ours, theirs = _Distance(reference), BeamEditDistance(reference)
    for words in (hypothesis, hypothesis[::-1], hypothesis[: len(hypothesis) // 3] + hypothesis):
        assert ours(words) == theirs(words)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_paths_are_those_of_the_beam_on_both_sides_of_its_borders(data: st.DataObject) -> None:
    # A stretch that only one side has pushes the cheapest path towards the border, 25 cells off the diagonal.
    size, apart = data.draw(st.integers(1, 60)), data.draw(st.integers(15, 40))
    shared = data.draw(st.lists(st.sampled_from("abcdefgh"), min_size=size, max_size=size))
    longer = shared + ["x"] * data.draw(st.sampled_from([0, apart - 2, apart - 1, apart, apart + 1]))
    shifted = ["y"] * apart + shared
    for hypothesis, reference in ((longer, shifted), (shifted, longer)):
        assert alignment(hypothesis, reference) == BeamEditDistance(reference)(hypothesis)[1]


def test_real_and_nasty_texts_need_as_many_edits_as_sacrebleu_finds(shared: Path) -> None:
    pairs = random.Random(0).sample(real_pairs(shared), 200)
    for hypothesis, reference in [*pairs, *nasty_pairs(pairs[:4])]:
        number, words = translation_edit_rate(hypothesis, reference)
        assert (edits(hypothesis, reference), len(reference)) == (number, words)
        assert trace(hypothesis, reference).edits == number
        assert alignment(hypothesis, reference) == BeamEditDistance(reference)(hypothesis)[1]


@pytest.mark.slow
def test_twenty_thousand_texts_need_as_many_edits_as_sacrebleu_found(shared: Path) -> None:
    pairs = all_pairs(shared)
    recorded = read_recorded(pairs)
    assert len(recorded) == 21_000
    # One pair after the other: the second question finds the shifts that the first one searched for.
    assert [(edits(*pair), trace(*pair).edits) for pair in pairs] == [(number, number) for number in recorded]


@settings(max_examples=300)
@given(WORDS, WORDS)
def test_every_edit_is_charged_once(hypothesis: list[str], reference: list[str]) -> None:
    steps = trace(hypothesis, reference)
    deleted = sum(edit.kind == "deleted" for edit in steps.reference)
    assert sum(edit.cost for edit in steps.hypothesis) + deleted == pytest.approx(steps.edits)
    assert len(steps.hypothesis) == len(hypothesis)
    assert len(steps.reference) == len(reference)


@settings(max_examples=300)
@given(WORDS, WORDS)
def test_words_said_to_be_right_stand_on_the_other_side(hypothesis: list[str], reference: list[str]) -> None:
    steps = trace(hypothesis, reference)
    for words, sides in ((hypothesis, steps.hypothesis), (reference, steps.reference)):
        for word, edit in zip(words, sides, strict=True):
            if edit.kind in ("ok", "substituted"):
                assert (edit.other == word) == (edit.kind == "ok")


def test_each_kind_of_edit_is_told() -> None:
    longer, shorter, other = ["a", "big", "cat"], ["a", "cat"], ["a", "cow"]
    assert [edit.kind for edit in trace(longer, shorter).hypothesis] == ["ok", "inserted", "ok"]
    assert [edit.kind for edit in trace(shorter, longer).reference] == ["ok", "deleted", "ok"]
    assert trace(shorter, other).hypothesis[1] == Edit("substituted", "cow")
    assert trace(shorter, other).reference[1] == Edit("substituted", "cat")


def test_a_shifted_block_shares_one_edit() -> None:
    steps = trace(["today", "we", "go", "home"], ["we", "go", "home", "today"])
    assert steps.edits == 1
    assert [edit.shifts for edit in steps.hypothesis] == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3])
    assert {edit.kind for edit in steps.hypothesis} == {"ok"}


def test_an_empty_reference_makes_every_word_an_insertion() -> None:
    assert trace(["a", "b"], []).hypothesis == [Edit("inserted"), Edit("inserted")]


def test_word_scores_of_the_edit_rate_say_what_happened() -> None:
    segment = Segment("The the cats sat on on teh mat.", None, ("The cat sat on the mat.", "A dog"))
    scores = Ter().word_scores([segment], HYPOTHESIS, [white_space(segment.hypothesis)])[0]
    assert scores.notes == (
        "shifted",
        "ok",
        "substituted for 'cat'",
        "ok",
        "inserted",
        "ok",
        "inserted",
        "ok",
    )
    # One edit is 100 / 4: TER divides by the mean length of the references.
    assert scores.importance.tolist() == [-25, 0, -25, 0, -25, 0, -25, 0]
    there = Ter().word_scores([segment], REFERENCE, [white_space(segment.references[0])])[0]
    assert there.notes == ("ok", "substituted by 'cats'", "ok", "ok", "shifted", "ok")
    other = Ter().word_scores([segment], Place(Side.REFERENCE, 1), [white_space("A dog")])[0]
    assert other.notes == ("substituted by 'teh'", "substituted by 'mat.'")


def test_a_missing_word_is_charged_to_the_reference() -> None:
    segment = Segment("I see", None, ("I see you",))
    assert Ter().word_scores([segment], HYPOTHESIS, [white_space("I see")])[0].importance.tolist() == [0, 0]
    there = Ter().word_scores([segment], REFERENCE, [white_space("I see you")])[0]
    assert there.notes == ("ok", "ok", "deleted")
    assert there.importance.tolist() == pytest.approx([0, 0, -100 / 3])


def test_a_word_of_two_tokens_tells_both() -> None:
    segment = Segment("a mat.", None, ("a mat!",))
    scores = Ter(normalized=True).word_scores([segment], HYPOTHESIS, [white_space("a mat.")])[0]
    assert scores.notes == ("ok", "mat ok, . substituted for '!'")
    assert scores.importance.tolist() == pytest.approx([0, -100 / 3])


def test_characters_of_one_token_share_its_edit() -> None:
    segment = Segment("cat", None, ("dog",))
    scores = Ter().word_scores([segment], HYPOTHESIS, [Characters().split("cat")])[0]
    assert scores.importance.tolist() == pytest.approx([-100 / 3] * 3)


def test_words_that_are_left_out_cost_nothing() -> None:
    segment = Segment("a , cat", None, ("a cat",))
    scores = Ter(no_punct=True).word_scores([segment], HYPOTHESIS, [white_space("a , cat")])[0]
    assert scores.importance.tolist() == [0, 0, 0]
    assert scores.notes == ("ok", "not read by the metric", "ok")


def test_an_empty_reference_costs_a_hundred_points_in_all() -> None:
    segment = Segment("a cat", None, ("",))
    scores = Ter().word_scores([segment], HYPOTHESIS, [white_space("a cat")])[0]
    assert scores.importance.sum() == -100 == -Ter().score([segment])[0]


def test_word_scores_and_missing_words_add_up_to_the_edit_rate(translated: Callable[..., list[Segment]]) -> None:
    segments = translated(1, 60)
    metric = Ter()
    words = [white_space(segment.hypothesis) for segment in segments]
    there = [white_space(segment.references[0]) for segment in segments]
    costs = [-scores.importance.sum() for scores in metric.word_scores(segments, HYPOTHESIS, words)]
    notes = [scores.notes or () for scores in metric.word_scores(segments, REFERENCE, there)]
    missing = [100 * note.count("deleted") / len(note) for note in notes]
    np.testing.assert_allclose(np.add(costs, missing), metric.score(segments), atol=1e-9)
