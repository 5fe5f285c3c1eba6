"""Surprisal of words: sums of pieces, frequencies of words, and what happens without them."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyscore.models import surprisal as module
from whyscore.models.encoders.embedded import Embedded, parts
from whyscore.models.surprisal import (
    frequency_problem,
    frequency_surprisal,
    piece_surprisal,
)
from whyscore.text.splitters import Auto, white_space


def test_a_word_has_the_sum_of_its_pieces() -> None:
    vocabulary = parts().vocabulary
    (encoded,) = Embedded().encode(["ornithologist"])
    expected = sum(-vocabulary.scores[vocabulary.pieces.index(piece)] for piece in encoded.pieces[1:-1])
    assert piece_surprisal(white_space("ornithologist")) == pytest.approx([expected])


def test_letters_without_a_piece_count_as_the_unknown_one() -> None:
    assert piece_surprisal(white_space("ᚠ"))[0] >= -parts().vocabulary.unknown_score


def test_frequent_words_surprise_less_in_both_estimates() -> None:
    words = white_space("the hospital ornithologist")
    for values in (piece_surprisal(words), frequency_surprisal(words, "en")):
        assert np.all(np.diff(values) > 0)


def test_a_listed_word_has_the_logarithm_of_its_share() -> None:
    import wordfreq

    share = wordfreq.get_frequency_dict("en")["hospital"]
    assert frequency_surprisal(white_space("Hospital, ."), "en") == pytest.approx([-math.log(share), 0.0])
    rarest = max(-math.log(value) for value in wordfreq.get_frequency_dict("en").values())
    assert frequency_surprisal(white_space("zqxjkvw"), "en-GB") == pytest.approx([rarest])


def test_missing_package_and_language_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for language, told in ((None, "the language is not known"), ("xx", "no word frequencies for 'xx'")):
        assert told in str(frequency_problem(language))
    assert frequency_problem("en") is None
    monkeypatch.setattr(module, "_package", lambda: None)
    assert "pip install 'whyscore[frequencies]'" in str(frequency_problem("en"))


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=40))
def test_every_word_of_every_text_has_a_finite_surprisal(text: str) -> None:
    for words in (white_space(text), Auto().split(text)):
        for values in (piece_surprisal(words), frequency_surprisal(words, "de")):
            assert values.shape == (len(words),)
            assert np.all(np.isfinite(values))
            assert np.all(values >= 0)
