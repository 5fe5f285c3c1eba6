"""Words slice their text exactly, and maskers change nothing else."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from whyscore.registry import build, list_names
from whyscore.text.maskers import Delete, Replace
from whyscore.text.randomness import generator
from whyscore.text.splitters import WhiteSpace, white_space
from whyscore.types import Words

NASTY = [
    "",
    " ",
    "\t a\u00a0b\u3000c \n",
    "👩‍👩‍👧‍👦 e\u0301 ﷺ",
    "שלום עולם",
    "مرحبا \u202eabc\u202c",
    "我爱你。 กำลัง ทดสอบ",
    "a\u200bb \ufeffc",
    "one\u2028two\u0085three\x0cfour",
    "\ud83d lone",
]
texts = st.one_of(st.sampled_from(NASTY), st.text(st.characters(), max_size=60))


def joined(words: Words) -> str:
    parts = list(words)
    return words.gaps[0] + "".join(word + gap for word, gap in zip(parts, words.gaps[1:], strict=True))


@pytest.mark.parametrize("name", list_names("splitter"))
@given(text=texts)
def test_words_and_what_is_between_them_give_the_text_back(name: str, text: str) -> None:
    words = build(name, "splitter").split(text)
    assert joined(words) == text
    assert all(start < end for start, end in words.spans)
    assert all(a[1] <= b[0] for a, b in zip(words.spans, words.spans[1:], strict=False))
    assert list(words) == [text[start:end] for start, end in words.spans]


@pytest.mark.parametrize("name", ["word", "unicode", "char", "auto", "sentence", "chunk"])
@given(text=texts)
def test_everything_that_is_not_white_space_belongs_to_a_unit(name: str, text: str) -> None:
    words = build(name, "splitter").split(text)
    assert "".join("".join(words.gaps).split()) == ""


@given(texts)
def test_white_space_words_are_those_of_python(text: str) -> None:
    assert list(white_space(text)) == text.split()


def test_pre_tokenised_words_end_at_a_space_only() -> None:
    assert list(WhiteSpace("space").split("a\u00a0b  c\u3000d")) == ["a\u00a0b", "c\u3000d"]


@pytest.mark.parametrize(
    ("unit", "text", "expected"),
    [
        ("unicode", "Hello, can't 3.5 well-known", ["Hello", ",", "can't", "3.5", "well", "-", "known"]),
        ("char", "我 e\u0301 👩‍👧", ["我", "e\u0301", "👩‍👧"]),
        ("auto", "我爱 pizza。 กำลัง", ["我", "爱", "pizza。", "กำ", "ลั", "ง"]),
        ("sentence", "One. Two! “Three?” four", ["One.", "Two!", "“Three?”", "four"]),
        ("sentence", "你好。再见！", ["你好。", "再见！"]),
        ("chunk(2)", "a  b c", ["a  b", "c"]),
    ],
)
def test_units_are_what_readers_expect(unit: str, text: str, expected: list[str]) -> None:
    assert list(build(unit, "splitter").split(text)) == expected


@pytest.mark.parametrize("masker", [Delete(), Replace(), Replace("[MASK]")])
@given(text=texts)
def test_keeping_every_word_returns_the_text_unchanged(masker: Delete | Replace, text: str) -> None:
    words = white_space(text)
    mask = np.ones((1, len(words)), dtype=bool)
    if len(words):
        assert masker.render([(words, mask)])[0].texts == [text]


@given(texts, st.data())
def test_a_rendered_text_has_exactly_the_kept_words(text: str, data: st.DataObject) -> None:
    words = white_space(text)
    masks = data.draw(arrays(np.bool_, (3, len(words))))
    kept = [[word for word, keep in zip(words, row, strict=True) if keep] for row in masks]
    assert [probe.split() for probe in Delete().render([(words, masks)])[0].texts] == kept
    hidden = [[word if keep else "X" for word, keep in zip(words, row, strict=True)] for row in masks]
    assert [probe.split() for probe in Replace("X").render([(words, masks)])[0].texts] == hidden


@pytest.mark.parametrize(
    ("masker", "expected"),
    [
        (Delete(), [" a  b c ", " b c ", " c ", " a c ", " a  b ", " "]),
        (Delete("compat"), ["a b c", " b c", "  c", "a  c", "a b ", "  "]),
        (Replace("X"), [" a  b c ", " X  b c ", " X  X c ", " a  X c ", " a  b X ", " X  X X "]),
    ],
)
def test_blanks_follow_the_stated_rule(masker: Delete | Replace, expected: list[str]) -> None:
    masks = np.array([[1, 1, 1], [0, 1, 1], [0, 0, 1], [1, 0, 1], [1, 1, 0], [0, 0, 0]], dtype=bool)
    assert masker.render([(white_space(" a  b c "), masks)])[0].texts == expected


def test_random_numbers_depend_on_seed_and_content_alone() -> None:
    draws = {
        tuple(generator(seed, *content).random(3)) for seed in (0, 1) for content in (("a", "b"), ("ab",), ("b", "a"))
    }
    assert len(draws) == 6
    assert generator(0, "a").random() == generator(0, "a").random()
    assert re.fullmatch(r"[0-9.e-]+", str(generator(0, "\ud83d").random()))
