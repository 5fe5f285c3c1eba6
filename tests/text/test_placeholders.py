"""Strings that hide stretches of text, and where they are put."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyscore.text.placeholders import (
    Placeholders,
    TokenRow,
    by_words,
    hide_in_text,
    hide_in_tokens,
    merge_spans,
    unused_characters,
    unused_words,
)

texts = st.lists(st.text(st.sampled_from("ab \ue000\ue001\U000f0000zqxjkvZQ"), max_size=12), max_size=4)


def row(text: str) -> TokenRow:
    spans = []
    place = 0
    for word in text.split():
        start = text.index(word, place)
        place = start + len(word)
        spans.append((word, start, place))
    words, starts, ends = ([one[k] for one in spans] for k in range(3))
    return TokenRow(words, starts, ends, text)


@given(texts, st.integers(1, 4))
def test_unused_characters_stand_in_no_text_and_share_none(held: list[str], length: int) -> None:
    found = unused_characters(held, length)
    letters = "".join(found)
    assert len(letters) == len(set(letters)) == 3 * length
    assert not set(letters) & set("".join(held))


@given(texts)
def test_unused_words_stand_in_no_text_and_in_no_other_word(held: list[str]) -> None:
    found = unused_words(held)
    for word in found:
        assert word.isascii()
        assert word.isalpha()
        assert word == word.lower()
        assert not any(word in text.casefold() for text in held)
        assert not any(word in other for other in found if other != word)


def test_a_stemmer_leaves_unused_words_alone() -> None:
    stem = pytest.importorskip("nltk.stem.porter").PorterStemmer().stem
    assert [stem(word) for word in unused_words([])] == list(unused_words([]))


def test_a_text_made_of_all_basic_private_characters_gets_the_next_free_ones() -> None:
    everything = "".join(map(chr, range(0xE000, 0xF900)))
    assert unused_characters([everything]) == Placeholders("\U000f0000", "\U000f0001", "\U000f0002")


@pytest.mark.parametrize(
    ("text", "spans", "hidden"),
    [
        ("the house.", [(4, 9)], "the M."),
        ("John's car", [(0, 4)], "M's car"),
        ("a well-known man", [(2, 6), (7, 12)], "a M-M man"),
        ("New York is big", [(0, 8)], "M M is big"),
        ("-- no", [(0, 1), (1, 2)], "MM no"),
        ("no", [], "no"),
    ],
)
def test_tokens_lose_exactly_what_is_covered(text: str, spans: list[tuple[int, int]], hidden: str) -> None:
    assert " ".join(hide_in_tokens(row(text), spans, ["M"] * len(spans))) == hidden


def test_a_span_as_one_leaves_one_mask_and_empties_what_follows() -> None:
    assert hide_in_tokens(row("in New York now"), [(3, 11)], ["M"], "span") == ["in", "M", "", "now"]


@pytest.mark.parametrize(
    ("token", "original", "span", "hidden"),
    [
        ('"', "&quot;", (0, 6), "M"),
        ('"', "&quot;", (0, 1), "M"),
        ("40yard", "40yards", (0, 2), "Myards"),
        ("1990", "1990s", (0, 4), "Ms"),
        ("run", "Running", (0, 7), "M"),
    ],
)
def test_what_is_not_covered_of_a_cut_word_is_taken_from_the_text(
    token: str, original: str, span: tuple[int, int], hidden: str
) -> None:
    tokens = TokenRow([token], [0], [len(original)], original)
    assert hide_in_tokens(tokens, [span], ["M"]) == [hidden]


def test_a_token_that_stands_nowhere_is_never_hidden() -> None:
    assert hide_in_tokens(TokenRow(["a", "@"], [0, 1], [1, 1], "a b"), [(0, 2)], ["M"]) == ["M", "@"]


def test_each_span_has_its_own_mask() -> None:
    assert hide_in_tokens(row("a b c"), [(0, 1), (4, 5)], ["M", "N"]) == ["M", "b", "N"]


@given(st.text(st.sampled_from("ab .-'"), max_size=20), st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20))))
def test_text_outside_the_spans_stays_byte_for_byte(text: str, pairs: list[tuple[int, int]]) -> None:
    spans = merge_spans((min(a, b), max(a, b)) for a, b in pairs if max(a, b) <= len(text))
    hidden = hide_in_text(text, spans, ["M"] * len(spans))
    assert hidden.split("M") == kept(text, spans)


def kept(text: str, spans: Sequence[tuple[int, int]]) -> list[str]:
    starts, ends = [0, *(end for _, end in spans)], [*(start for start, _ in spans), len(text)]
    return [text[start:end] for start, end in zip(starts, ends, strict=True)]


@pytest.mark.parametrize(
    ("text", "spans", "hidden"),
    [
        ("10km", [(0, 2)], "M km"),
        ("x10", [(1, 3)], "x M"),
        ("ab", [(0, 1), (1, 2)], "M M"),
        ("(10)", [(1, 3)], "(M)"),
        ("10 km", [(0, 2)], "M km"),
    ],
)
def test_a_word_as_mask_is_kept_apart_from_letters_digits_and_masks(
    text: str, spans: list[tuple[int, int]], hidden: str
) -> None:
    assert hide_in_text(text, spans, ["M"] * len(spans), spaced=True) == hidden


def test_overlapping_spans_become_one_and_touching_ones_stay_two() -> None:
    assert merge_spans([(3, 5), (0, 2), (1, 3), (5, 5)]) == ((0, 3), (3, 5))


def test_spans_are_cut_at_white_space() -> None:
    assert by_words("New  York", [(0, 9)]) == ((0, 3), (5, 9))
