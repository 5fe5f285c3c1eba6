"""Evidence against words: each term by hand, what is left out, and bad input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyscore.models.evidence import (
    TERMS,
    Setting,
    Terms,
    covers,
    error_evidence,
    gather_terms,
    strongest_terms,
)
from whyscore.models.lexicon import learn_lexicon
from whyscore.text.splitters import white_space
from whyscore.types import Segment, Side

ROWS = [("das haus", "the house"), ("das buch", "the book"), ("ein buch", "a book")]
LEXICON = learn_lexicon([source for source, _ in ROWS], [target for _, target in ROWS])


def terms(source: str, hypothesis: str, side: Side = Side.HYPOTHESIS, setting: Setting = Setting()) -> Terms:  # noqa: B008
    text = hypothesis if side is Side.HYPOTHESIS else source
    (found,) = gather_terms([Segment(hypothesis, source)], side, [white_space(text)], setting)
    return found


def test_every_term_has_one_number_per_word() -> None:
    found = terms("Ich habe 3 Hunde .", "I have 4 dogs .")
    assert tuple(found) == TERMS
    assert all(values.shape == (5,) for values in found.values())


def test_numbers_punctuation_copies_and_scripts_are_compared_with_the_other_text() -> None:
    found = terms("Ich habe 3 Hunde , ja .", "Ich have 4 собак .  !")
    assert terms("the same text", "the same text")["copy"].tolist() == [1, 1, 1]
    assert found["number"].tolist() == [0, 0, 1, 0, 0, 0]
    assert found["punctuation"].tolist() == [0, 0, 0, 0, -1, 1]
    assert found["copy"].tolist() == [-1, 0, 0, 0, 0, 0]
    assert found["script"].tolist() == [0, 0, 0, 1, 0, 0]


def test_a_probable_translation_has_a_weaker_link_term_on_both_sides() -> None:
    setting = Setting(LEXICON)
    house, book = terms("das haus", "house book", setting=setting)["link"]
    assert house < book
    haus, buch = terms("haus buch", "the house", Side.SOURCE, setting)["link"]
    assert haus < buch
    assert terms("das haus", "the zebra", setting=setting)["link"][1] == 7
    assert np.isnan(terms("das haus", "the house")["link"]).all()


def test_words_of_a_text_without_blanks_are_judged_by_how_they_match() -> None:
    found = terms("The dog sleeps in the house .", "狗 睡 在 议会 。", setting=Setting(None, ("en", "zh")))
    assert np.isnan([found["rarity"], found["punctuation"]]).all()
    assert not np.isnan(found["match"]).any()
    with_nothing_to_compare = terms("Koer magab majas", "狗 睡 。", setting=Setting(None, ("et", "zh")))
    assert not np.isnan(with_nothing_to_compare["rarity"]).any()


def test_words_without_a_match_stand_out_where_the_encoder_knows_the_languages() -> None:
    hand = terms("Der Hund schläft im Haus", "The dog sleeps in the parliament", setting=Setting(None, ("de", "en")))
    assert int(np.argmax(hand["match"])) == 5
    unknown = terms("Koer magab majas", "The dog sleeps", setting=Setting(None, ("et", "en")))
    assert np.isnan(unknown["match"]).all()


def test_coverage_goes_by_the_language_or_else_by_the_script() -> None:
    assert covers("anything", "de-AT")
    assert not covers("anything", "et")
    assert covers("Koer magab", None)
    assert not covers("කෙටි පෙළ", None)
    assert covers("12 .", None)


def test_rarity_goes_by_subwords_then_by_word_frequencies_then_by_letters() -> None:
    text = "se ornithologist ja"
    subwords, listed, letters = (
        terms("x", text, setting=Setting(None, ("de", code)))["rarity"] for code in ("en", "cs", "xx")
    )
    assert np.argsort(subwords)[-1] == np.argsort(listed)[-1] == np.argsort(letters)[-1] == 1
    assert letters[0] == letters[2]
    assert listed[0] != listed[2]
    assert listed[0] != pytest.approx(subwords[0])


def test_a_wrong_word_has_the_highest_evidence() -> None:
    segment = Segment("The dog sleeps in the parliament", "Der Hund schläft im Haus")
    (found,) = error_evidence(
        [segment], Side.HYPOTHESIS, [white_space(segment.hypothesis)], Setting(None, ("de", "en"))
    )
    assert int(np.argmax(found)) == 5
    notes = strongest_terms(terms(segment.source or "", segment.hypothesis))
    assert len(notes) == 6
    assert "match" in notes[5] or "rarity" in notes[5]


@pytest.mark.parametrize("side", [Side.HYPOTHESIS, Side.SOURCE])
@pytest.mark.parametrize(
    ("source", "hypothesis"),
    [("", ""), ("", "a word"), ("ein Wort", ""), ("same text here", "same text here"), ("ein Wort", "y " * 2000)],
)
def test_bad_input_has_finite_evidence(side: Side, source: str, hypothesis: str) -> None:
    text = hypothesis if side is Side.HYPOTHESIS else source
    (found,) = error_evidence([Segment(hypothesis, source)], side, [white_space(text)], Setting(LEXICON))
    assert found.shape == (len(text.split()),)
    assert np.isfinite(found).all()


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=30), st.text(max_size=30))
def test_any_texts_have_finite_evidence_whatever_stands_beside_them(source: str, hypothesis: str) -> None:
    segment, other = Segment(hypothesis, source), Segment("a dog", "ein Hund")
    words = [white_space(hypothesis), white_space("a dog")]
    both = error_evidence([segment, other], Side.HYPOTHESIS, words)
    assert np.isfinite(both[0]).all()
    (alone,) = error_evidence([segment], Side.HYPOTHESIS, words[:1])
    assert both[0] == pytest.approx(alone, abs=1e-5)
