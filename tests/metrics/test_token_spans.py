"""Tokens of metrics are found again in the text as it was given."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from whyscore.metrics.lexical.bleu import Bleu
from whyscore.metrics.lexical.rouge import Rouge
from whyscore.metrics.lexical.ter import Ter
from whyscore.metrics.spans import _fold_case, locate_tokens, touching
from whyscore.protocols import Token
from whyscore.types import Words


def found(tokens: list[str], text: str) -> list[str]:
    return [text[token.start : token.end] for token in locate_tokens(tokens, text)]


def test_tokens_are_found_behind_any_blanks() -> None:
    assert locate_tokens(["a", "cat", "."], " a\u00a0 cat.") == (Token("a", 1, 2), Token("cat", 4, 7), Token(".", 7, 8))


def test_case_is_no_obstacle() -> None:
    assert found(["straße", "über"], "STRAßE ÜBER") == ["STRAßE", "ÜBER"]


@given(st.text())
@example("ΑΣ ΣΑΣ")
@example("Aİ ẞ")
def test_texts_are_folded_as_their_characters_are(text: str) -> None:
    lower = [character.lower() for character in text]
    assert _fold_case(text) == "".join(a if len(a) == 1 else b for a, b in zip(lower, text, strict=True))


def test_an_entity_is_one_character_for_a_tokenizer_that_resolves_it() -> None:
    assert found(['"', "a", "&", "b", '"'], "&quot;A &amp; B&quot;") == ["&quot;", "A", "&amp;", "B", "&quot;"]


def test_an_entity_is_five_characters_for_a_tokenizer_that_keeps_it() -> None:
    assert found(["&", "amp", ";"], "&amp;") == ["&", "amp", ";"]


def test_characters_that_were_dropped_shift_nothing() -> None:
    assert found(["hello", "world"], "hel-\nlo, <skipped> world!") == ["hel-\nlo", "world"]


def test_characters_that_were_added_stand_nowhere() -> None:
    assert locate_tokens(["▁a", "▁", "cat"], "a cat") == (Token("▁a", 0, 1), Token("▁", 1, 1), Token("cat", 2, 5))


def test_characters_that_were_exchanged_keep_their_place() -> None:
    assert found(["one", "xyz", "two"], "one 123 two") == ["one", "123", "two"]


def test_a_letter_whose_lower_case_is_longer_keeps_the_rest_in_place() -> None:
    text = "İstanbul is BIG"
    assert found(text.lower().split(), text) == ["İstanbul", "is", "BIG"]


def test_words_touch_the_tokens_they_overlap() -> None:
    words = Words("mat. x", ((0, 4), (5, 6)))
    assert touching([(0, 3), (3, 4), (5, 6)], words) == [range(2), range(2, 3)]


def test_a_token_over_several_words_touches_them_all() -> None:
    words = Words("abc", ((0, 1), (1, 2), (2, 3)))
    assert touching([(0, 3)], words) == [range(1)] * 3


METRICS = [
    Bleu(),
    Bleu(tokenize="intl", lowercase=True),
    Bleu(tokenize="zh"),
    Bleu(tokenize="char"),
    Ter(normalized=True, asian_support=True),
    Ter(no_punct=True),
    Rouge(),
    Rouge(mode="compat"),
    Rouge(mode="compat", stem=True),
    Rouge(mode="split"),
]
ANY = st.text(
    st.one_of(st.sampled_from("ab .,-'&;\n\tİẞΣ狗猫9é\u0301\u00a0<>\"quotamplt"), st.characters()), max_size=40
)


@pytest.mark.parametrize("metric", METRICS, ids=repr)
@settings(max_examples=100, deadline=None)
@given(ANY)
def test_tokens_of_any_text_stand_in_order_inside_it(metric: Bleu | Ter | Rouge, text: str) -> None:
    tokens = metric.tokens(text)
    borders = [border for token in tokens for border in (token.start, token.end)]
    assert borders == sorted(borders)
    assert all(0 <= border <= len(text) for border in borders)


@pytest.mark.parametrize("metric", METRICS[:5], ids=repr)
def test_tokens_of_plain_words_stand_exactly_where_they_are(metric: Bleu | Ter) -> None:
    text = 'He said: "I have 3,000 cats" (really) - yes.'
    for token in metric.tokens(text):
        assert text[token.start : token.end].lower() == token.text.lower()


def test_stems_stand_where_the_whole_words_are() -> None:
    tokens = Rouge(mode="compat", stem=True).tokens("Walking dogs, running!")
    assert tokens == (Token("walk", 0, 7), Token("dog", 8, 12), Token("run", 14, 21))
