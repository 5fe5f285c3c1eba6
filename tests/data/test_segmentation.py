"""Translations cut into the segments of their references."""

from itertools import combinations_with_replacement, pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from whyscore.data import realigning
from whyscore.data.realigning import resegment
from whyscore.errors import DataError
from whyscore.text.splitters import Auto

WORDS = st.lists(st.sampled_from(["a", "b", "C", "d.", "猫", "と"]), max_size=6).map(" ".join)
LINES = st.lists(WORDS, max_size=6)
SEGMENTS = st.lists(st.lists(WORDS, max_size=2), min_size=1, max_size=5)


def units(texts: list[str]) -> list[str]:
    return [unit for text in texts for unit in Auto().split(text)]


@given(st.lists(st.text(max_size=12), max_size=6), st.lists(st.lists(st.text(max_size=12), max_size=2), min_size=1))
def test_no_word_is_lost_repeated_or_moved(texts: list[str], references: list[list[str]]) -> None:
    result = resegment(texts, references)
    assert len(result) == len(references)
    assert "".join("".join(result).split()) == "".join("".join(texts).split())


@given(st.lists(WORDS.filter(bool), min_size=1, max_size=8), st.data())
def test_the_same_words_with_other_borders_get_the_segmentation_of_the_reference(
    segments: list[str], data: st.DataObject
) -> None:
    words = " ".join(segments).split()
    borders = sorted(data.draw(st.lists(st.integers(0, len(words)), max_size=6)))
    texts = [" ".join(words[start:end]).upper() for start, end in pairwise([0, *borders, len(words)])]
    result = resegment(texts, [[segment] for segment in segments])
    assert [units([text]) for text in result] == [units([segment.upper()]) for segment in segments]


@given(st.lists(WORDS, min_size=1, max_size=8))
def test_an_equal_segmentation_is_unchanged(segments: list[str]) -> None:
    assert resegment(segments, [[segment] for segment in segments]) == segments


def cost(words: list[str], starts: tuple[int, ...], references: list[list[str]]) -> int:
    """Return the edits of a segmentation, each segment against its nearest reference."""
    return sum(
        min(
            Levenshtein.distance([word.lower() for word in words[start:end]], [word.lower() for word in units([text])])
            for text in row or [""]
        )
        for (start, end), row in zip(pairwise([*starts, len(words)]), references, strict=True)
    )


@given(LINES, SEGMENTS, st.sampled_from([1, 7, 1000]))
@example(["b b", "b", "a"], [["a"], ["c"], ["b a"]], 1)
def test_the_edits_are_the_fewest_of_all_segmentations(
    texts: list[str], references: list[list[str]], held: int
) -> None:
    words = units(texts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(realigning, "HELD", held)
        result = resegment(texts, references)
    lengths = [len(units([text])) for text in result]
    starts = tuple(sum(lengths[:k]) for k in range(len(lengths)))
    every = combinations_with_replacement(range(len(words) + 1), len(references) - 1)
    natural = {sum(len(units([text])) for text in texts[:k]) for k in range(1, len(texts) + 1)}
    natural |= {k for k, word in enumerate(words, 1) if word == "d."}

    def rank(starts: tuple[int, ...]) -> tuple[int, int, tuple[int, ...]]:
        return cost(words, starts, references), sum(start not in natural for start in starts[1:]), starts[::-1]

    assert starts == min(((0, *others) for others in every), key=rank)


def test_scripts_without_blanks_are_cut_between_characters_and_joined_without_blanks() -> None:
    assert resegment(["今日は天気がいい。明", "日は雨です。"], [["今日は天気が良い。"], ["明日は雨だ。"]]) == [
        "今日は天気がいい。",
        "明日は雨です。",
    ]


def test_a_segment_that_was_not_translated_is_empty() -> None:
    assert resegment(["one two five six"], [["one two"], ["three four"], ["five six"]]) == ["one two", "", "five six"]


def test_of_equally_good_borders_the_natural_one_is_taken() -> None:
    references = [["a b"], ["c d"]]
    assert resegment(["a b x", "c d"], references) == ["a b x", "c d"]
    assert resegment(["a b", "x c d"], references) == ["a b", "x c d"]
    assert resegment(["a b x c d"], references) == ["a b", "x c d"]
    assert resegment(["a b x. c d"], references) == ["a b x.", "c d"]
    assert resegment(["a b y x!”) c d"], references) == ["a b y x!”)", "c d"]


def test_a_document_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(realigning, "CELLS", 5)
    with pytest.raises(DataError, match=r"3 words of a translation and 2 of its references .* --realign documents"):
        resegment(["a b c"], [["a"], ["b"]])


def test_no_segments_are_refused() -> None:
    with pytest.raises(DataError, match="no reference segments"):
        resegment(["a"], [])
