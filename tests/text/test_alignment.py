"""Numbers of pieces as numbers of words."""

import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyscore.errors import ContractError, DataError, SpecError
from whyscore.text.alignment import Missing, Pieces, _trim, align, find_uncovered, pool_words
from whyscore.text.splitters import white_space
from whyscore.types import Words

TEXT = "the unbelievable  cat"
WORDS = white_space(TEXT)
SPANS = [(0, 3), (3, 6), (6, 13), (13, 16), (17, 21)]
VALUES = np.array([1.0, 2.0, 6.0, 4.0, 8.0])


@pytest.mark.parametrize(("pool", "expected"), [
    ("mean", [1, 4, 8]), ("sum", [1, 12, 8]), ("max", [1, 6, 8]), ("min", [1, 2, 8]), ("first", [1, 2, 8]),
])  # fmt: skip
def test_pieces_are_pooled_per_word(pool: str, expected: list[float]) -> None:
    found = pool_words(WORDS, Pieces(SPANS), VALUES, pool=pool)  # type: ignore[arg-type]
    assert found.values.tolist() == expected
    assert found.missing == found.filled == ()


@given(st.text("a \t\u2009\x1cé", max_size=12), st.data())
def test_pieces_are_trimmed_as_letter_by_letter(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    letters = [place for place in range(start, end) if not text[place].isspace()]
    starts, ends = _trim(text, [(start, end)])
    assert (starts.tolist(), ends.tolist()) == (([letters[0]], [letters[-1] + 1]) if letters else ([end], [end]))


def test_white_space_at_the_ends_of_a_piece_is_trimmed() -> None:
    assert align(white_space("a b"), Pieces([(0, 2), (1, 3)])).word.tolist() == [0, 1]


def test_a_piece_over_a_border_counts_in_full_or_by_its_characters() -> None:
    words, pieces, values = white_space("ab cde"), Pieces([(0, 1), (1, 6)]), np.array([1.0, 10.0])
    assert pool_words(words, pieces, values, pool="sum").values.tolist() == [11, 10]
    split = pool_words(words, pieces, values, pool="sum", split=True).values
    assert split.tolist() == [1 + 10 * 1 / 5, 10 * 3 / 5]


def test_byte_pieces_of_one_character_share_its_span() -> None:
    found = pool_words(white_space("é x"), Pieces([(0, 1), (0, 1), (2, 3)]), np.array([1.0, 3.0, 5.0]))
    assert found.values.tolist() == [2, 5]


def test_a_boundary_mark_counts_only_for_a_word_without_another_piece() -> None:
    words, spans, texts = white_space("a 你好 b"), [(0, 1), (2, 3), (2, 4), (4, 5)], ["▁a", "▁", "你好", "▁"]
    found = pool_words(words, Pieces(spans, texts), np.array([1.0, 100.0, 3.0, 7.0]), pool="sum")
    assert found.values.tolist() == [1, 3, 7]


def test_an_empty_piece_at_a_word_counts_only_when_the_word_has_no_other() -> None:
    spans = [(0, 0), (0, 1), (2, 2)]
    assert pool_words(white_space("a b"), Pieces(spans), np.array([9.0, 1.0, 2.0]), pool="sum").values.tolist() == [
        1,
        2,
    ]


@pytest.mark.parametrize(("fill", "expected"), [
    ("previous", [2, 2, 2, 6, 6]), ("next", [2, 2, 6, 6, 6]), ("median", [4, 2, 4, 6, 4]),
    ("null", [np.nan, 2, np.nan, 6, np.nan]), ("value", [-1, 2, -1, 6, -1]),
])  # fmt: skip
def test_words_without_a_piece_are_filled_as_asked_and_reported(fill: str, expected: list[float]) -> None:
    words = white_space("a bb c d e")
    pieces = Pieces([(2, 4), (7, 8)])
    found = pool_words(words, pieces, np.array([2.0, 6.0]), fill=fill, value=-1.0)  # type: ignore[arg-type]
    assert np.array_equal(found.values, expected, equal_nan=True)
    assert found.filled == (() if fill == "null" else (0, 2, 4))
    assert found.missing == tuple(Missing(word, "no_piece") for word in (0, 2, 4))


def test_by_default_a_word_without_a_piece_is_an_error_with_its_name() -> None:
    message = "1 word(s) of 'a cat' have no piece, first 'cat'; choose fill='previous', 'next', 'median' or 'null'"
    with pytest.raises(DataError, match=re.escape(message)):
        pool_words(white_space("a cat"), Pieces([(0, 1)]), np.array([1.0]))


def test_words_behind_the_cut_stay_without_a_number_unless_one_is_given() -> None:
    words = white_space("a b c d")
    pieces = Pieces([(0, 1), (4, 5)], seen=5)
    values = np.array([1.0, 3.0])
    found = pool_words(words, pieces, values, fill="previous")
    assert np.array_equal(found.values, [1, 1, 3, np.nan], equal_nan=True)
    assert found.missing == (Missing(1, "no_piece"), Missing(3, "truncated"))
    assert found.filled == (1,)
    assert pool_words(words, pieces, values, fill="value", value=0.0).values.tolist() == [1, 0, 3, 0]


def test_dropped_pieces_leave_their_words_for_a_reason() -> None:
    pieces = Pieces([(0, 1), (2, 3)], dropped=[False, True])
    found = pool_words(white_space("a . b"), pieces, np.array([1.0, 2.0]), fill="null")
    assert found.missing == (Missing(1, "dropped"), Missing(2, "no_piece"))


def test_where_no_word_has_a_number_none_can_be_filled() -> None:
    found = pool_words(white_space("a b"), Pieces([]), np.zeros(0), fill="median")
    assert np.isnan(found.values).all()
    assert found.filled == ()


def test_a_text_without_words_has_no_numbers() -> None:
    assert pool_words(white_space("  "), Pieces([(0, 1)]), np.array([1.0])).values.shape == (0,)


def test_filling_with_a_value_needs_the_value() -> None:
    with pytest.raises(SpecError, match="fill='value' needs the value to fill with, got None"):
        pool_words(white_space("a b"), Pieces([(0, 1)]), np.array([1.0]), fill="value")


def test_pieces_that_do_not_fit_the_text_are_refused() -> None:
    with pytest.raises(ContractError, match="pieces reach outside their text of 1 characters"):
        align(white_space("a"), Pieces([(0, 2)]))
    with pytest.raises(ContractError, match="expected one number per piece, got 2 for 1 pieces"):
        pool_words(white_space("a"), Pieces([(0, 1)]), np.array([1.0, 2.0]))


@st.composite
def cut_texts(draw: st.DrawFn) -> tuple[str, list[tuple[int, int]]]:
    """Return a text and a way to cut all of it into pieces."""
    text = draw(st.text(alphabet="ab é你\t \u00a0", max_size=30))
    cuts = sorted(draw(st.sets(st.integers(0, len(text)), max_size=12)) | {0, len(text)})
    return text, list(pairwise(cuts))


@settings(deadline=None)
@given(cut=cut_texts())
def test_pieces_that_cover_the_text_leave_no_word_missing(cut: tuple[str, list[tuple[int, int]]]) -> None:
    text, spans = cut
    words = white_space(text)
    found = pool_words(words, Pieces(spans), np.arange(len(spans), dtype=np.float64))
    assert find_uncovered(text, spans) == []
    assert len(found.values) == len(words)
    assert not np.isnan(found.values).any()


@settings(deadline=None)
@given(cut=cut_texts(), data=st.data())
def test_pairs_are_those_with_characters_in_common(cut: tuple[str, list[tuple[int, int]]], data: st.DataObject) -> None:
    text, spans = cut
    kept = [span for span in spans if data.draw(st.booleans())]
    words = white_space(text)
    strong = {
        (piece, word)
        for piece, (start, end) in enumerate(kept)
        for word, (first, last) in enumerate(words.spans)
        if max(start, first) < min(end, last)
    }
    pairs = align(words, Pieces(kept))
    found = set(zip(pairs.piece.tolist(), pairs.word.tolist(), strict=True))
    assert strong <= found
    for piece, word in found - strong:
        assert not text[slice(*kept[piece])].strip()
        assert word not in {other for _, other in strong}
    bare = [k for k, letter in enumerate(text) if not letter.isspace() and not any(a <= k < b for a, b in kept)]
    assert find_uncovered(text, kept) == bare


@settings(deadline=None)
@given(cut=cut_texts())
def test_pieces_that_are_the_words_are_aligned_as_any_others(cut: tuple[str, list[tuple[int, int]]]) -> None:
    text, spans = cut
    for words in (Words(text, tuple(spans)), white_space(text)):
        written = [text[start:end].replace("a", "▁") for start, end in words.spans]
        pairs = align(words, Pieces(words.spans, written))
        expected = align(words, Pieces(words.spans, written, dropped=[False] * len(words)))
        for found, wanted in zip(pairs, expected, strict=True):
            assert found.tolist() == wanted.tolist()


@settings(deadline=None)
@given(cut=cut_texts())
def test_split_sums_keep_the_total(cut: tuple[str, list[tuple[int, int]]]) -> None:
    text, spans = cut
    solid = [span for span in spans if len(text[slice(*span)].split()) == 1]
    values = np.arange(1.0, len(solid) + 1)
    pooled = pool_words(white_space(text), Pieces(solid), values, pool="sum", split=True, fill="null").values
    assert np.nansum(pooled) == pytest.approx(values.sum(), abs=1e-9)
