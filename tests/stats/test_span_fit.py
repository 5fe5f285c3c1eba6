import re
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyscore.errors import DataError, SpecError
from whyscore.stats.spans import (
    Marked,
    Thresholds,
    combine,
    judge_spans,
    learn_threshold,
    otsu,
    to_levels,
    to_spans,
    unite,
)
from whyscore.text.splitters import white_space
from whyscore.types import ErrorSpan, Side

TEXT = white_space("one bad awful cat sat")  # 0-3 4-7 8-13 14-17 18-21

texts = st.lists(st.sampled_from(["a", "bb", "né", "日本", "😀", "e\u0301", "שלום"]), min_size=1, max_size=8).map(
    " ".join
)
spans = st.lists(st.tuples(st.integers(0, 8), st.integers(1, 4)), max_size=3)


def span(start: int, end: int, severity: str | None = "major") -> ErrorSpan:
    return ErrorSpan(start, end, severity)  # type: ignore[arg-type]


def test_neighbours_join_with_the_blank_and_have_the_worst_severity() -> None:
    found = to_spans(TEXT, np.array([0.0, 1.5, 3.0, 0.5, 2.0]), Thresholds(minor=1.0, major=2.5))
    assert [(one.start, one.end, one.severity, one.score) for one in found] == [
        (4, 13, "major", 3.0),
        (18, 21, "minor", 2.0),
    ]


def test_severities_can_be_kept_apart_and_gaps_bridged() -> None:
    scores = np.array([0.0, 1.5, 3.0, 0.5, 2.0])
    apart = to_spans(TEXT, scores, Thresholds(minor=1.0, major=2.5, join="same"))
    assert [(one.start, one.end, one.severity) for one in apart] == [
        (4, 7, "minor"),
        (8, 13, "major"),
        (18, 21, "minor"),
    ]
    bridged = to_spans(TEXT, scores, Thresholds(minor=1.0, gap=1))
    assert [(one.start, one.end) for one in bridged] == [(4, 21)]


def test_a_share_of_the_words_has_no_severity() -> None:
    found = to_spans(TEXT, np.array([0.0, 1.5, 3.0, 0.5, 2.0]), Thresholds(top=0.2))
    assert [(one.start, one.end, one.severity) for one in found] == [(8, 13, None)]


@given(texts, st.data())
def test_tags_become_spans_and_the_same_tags_again(text: str, data: st.DataObject) -> None:
    words = white_space(text)
    tags = np.array(data.draw(st.lists(st.integers(0, 1), min_size=len(words), max_size=len(words))), dtype=float)
    found = to_spans(words, tags, Thresholds(major=0.5))
    assert [text[one.start : one.end].strip() for one in found] == [text[one.start : one.end] for one in found]
    assert (to_levels(words, found) > 0).astype(float).tolist() == tags.tolist()


@given(texts, spans)
def test_spans_grow_to_whole_words_and_then_stay(text: str, given_spans: list[tuple[int, int]]) -> None:
    words = white_space(text)
    first = [span(min(start, len(text)), min(start + size, len(text))) for start, size in given_spans]
    once = to_spans(words, to_levels(words, first).astype(float), Thresholds(minor=0.5, major=1.5))
    twice = to_spans(words, to_levels(words, once).astype(float), Thresholds(minor=0.5, major=1.5))
    assert once == twice
    for one in first:
        inside = text[one.start : one.end].strip()
        assert not inside or any(other.start <= one.start + 1 and one.end - 1 <= other.end for other in once)


@pytest.mark.parametrize(("touch", "level"), [("any", 2), ("half", 2), ("all", 0)])
def test_how_much_of_a_word_must_be_marked(touch: str, level: int) -> None:
    assert to_levels(white_space("abcd"), [span(0, 2)], touch).tolist() == [level]  # type: ignore[arg-type]


def test_several_spans_share_a_word_and_neutral_ones_are_no_errors() -> None:
    words = white_space("abcd")
    assert to_levels(words, [span(0, 2), span(2, 4)], "all").tolist() == [2]
    assert to_levels(words, [span(0, 4, "neutral")]).tolist() == [0]
    assert to_levels(words, [span(0, 1, "critical"), span(1, 4, "minor")], "half").tolist() == [1]


def test_otsu_splits_where_the_groups_differ_most() -> None:
    assert otsu(np.array([1.0, 1.1, 9.0, 9.5])) == 1.1
    assert np.isnan(otsu(np.ones(4)))


def test_thresholds_are_learnt_for_a_precision_or_a_rate() -> None:
    scores, gold = np.array([1.0, 2, 3, 4, 5]), np.array([0.0, 1, 0, 1, 1])
    assert learn_threshold(scores, gold, precision=1.0) == 3.0
    assert learn_threshold(scores, gold, precision=0.7) == 1.0
    assert learn_threshold(scores, gold, rate=0.4) == 3.0
    assert np.isnan(learn_threshold(scores, 1 - gold, precision=0.9))


def test_character_credit_by_hand() -> None:
    gold = (span(0, 4, "major"), span(6, 8, "minor"))
    found = (span(2, 7, "major"),)
    fit = judge_spans([Marked(10, gold, found)]).characters
    assert fit == (2.5, 5.0, 2.5, 6.0)


def test_both_severities_or_an_unknown_one_take_anything() -> None:
    both = (span(0, 4, "major"), span(0, 4, "minor"))
    assert judge_spans([Marked(4, both, (span(0, 4, "minor"),))]).characters.f1 == 1.0
    assert judge_spans([Marked(4, (span(0, 4, "minor"),), (span(0, 4, None),))]).characters.f1 == 1.0
    assert judge_spans([Marked(4, (span(0, 4, "critical"),), (span(0, 4, "major"),))]).characters.f1 == 1.0


def test_an_omission_stands_after_the_text() -> None:
    found = judge_spans([Marked(4, (span(4, 4),), (span(2, 2),))])
    assert found.characters == (1.0, 1.0, 1.0, 1.0)
    assert found.partial.f1 == 1.0


def test_nothing_predicted_is_perfect_where_nothing_is_marked() -> None:
    assert judge_spans([Marked(4, (), ())]).credit.f1 == 1.0
    nothing = judge_spans([Marked(4, (span(0, 2),), ())])
    assert (nothing.credit.precision, nothing.credit.recall, nothing.exact.f1) == (0.0, 0.0, 0.0)


def test_exact_matches_are_one_to_one_and_may_ask_for_severity() -> None:
    text = Marked(9, (span(0, 2, "minor"), span(4, 6)), (span(0, 2), span(4, 6)))
    assert judge_spans([text]).exact.f1 == 1.0
    assert judge_spans([text], severity=True).exact.f1 == 0.5
    weighted = judge_spans([text], severity=True, weights={"minor": 1, "major": 5}).exact
    assert (weighted.precision, weighted.recall) == (0.5, 5 / 6)


def test_an_omission_inside_another_error_stays_one_of_its_own() -> None:
    assert [(one.start, one.end) for one in unite([span(0, 10), span(3, 3), span(3, 3), span(5, 12)])] == [
        (0, 12),
        (3, 3),
    ]
    whole = judge_spans([Marked(10, [span(0, 4), span(2, 2)], [span(0, 4), span(10, 10)])])
    assert whole.characters == (5.0, 5.0, 5.0, 5.0)
    assert (whole.gold, whole.predicted, whole.partial.f1) == (2, 2, 1.0)


def test_overlapping_spans_of_one_severity_are_united() -> None:
    assert [(one.start, one.end) for one in unite([span(3, 6), span(0, 4), span(8, 9)])] == [(0, 6), (8, 9)]
    assert [(one.start, one.end) for one in unite([span(0, 2), span(2, 4)])] == [(0, 2), (2, 4)]
    assert len(unite([span(0, 4), span(2, 6, "minor")])) == 2


def test_several_annotators_unite_or_meet() -> None:
    two = [[span(0, 4)], [span(2, 6, "minor")]]
    assert [(one.start, one.end) for one in combine(two, 8)] == [(0, 4), (2, 6)]
    assert [(one.start, one.end, one.severity) for one in combine(two, 8, "intersection")] == [(2, 4, "minor")]


@given(spans, spans)
def test_credit_is_the_best_of_all_pairings(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> None:
    gold, found = (unite([span(start, start + size) for start, size in part]) for part in (one, other))
    fit = judge_spans([Marked(20, gold, found)]).credit
    if not gold or not found:
        return
    best = 0.0
    longer, shorter = sorted((range(len(gold)), range(len(found))), key=len, reverse=True)
    for order in permutations(longer, len(shorter)):
        pairs = [(a, b) if len(gold) >= len(found) else (b, a) for a, b in zip(order, shorter, strict=True)]
        common = [max(0, min(gold[g].end, found[f].end) - max(gold[g].start, found[f].start)) for g, f in pairs]
        sizes = [(gold[g].end - gold[g].start, found[f].end - found[f].start) for g, f in pairs]
        precision = sum(c / size for c, (_, size) in zip(common, sizes, strict=True)) / len(found)
        recall = sum(c / size for c, (size, _) in zip(common, sizes, strict=True)) / len(gold)
        best = max(best, 2 * precision * recall / (precision + recall) if precision + recall else 0.0)
    assert fit.f1 == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"minor": 2.0, "major": 1.0}, "thresholds must rise with severity, got [2.0, 1.0]"),
        ({}, "give thresholds (minor, major, critical) or top"),
        ({"minor": 1.0, "top": 0.2}, "give thresholds (minor, major, critical) or top"),
        ({"top": 1.5}, "top is 1.5, expected a share above 0 and up to 1"),
        ({"minor": 1.0, "gap": -1}, "gap is -1, expected 0 or more words"),
    ],
)
def test_thresholds_that_make_no_sense_are_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        Thresholds(**options)  # type: ignore[arg-type]


def test_spans_of_several_sides_are_judged_apart() -> None:
    with pytest.raises(DataError, match="judge each side alone"):
        unite([span(0, 1), ErrorSpan(0, 1, side=Side.SOURCE)])


def test_scores_must_fit_the_words() -> None:
    with pytest.raises(DataError, match=re.escape("2 scores for 5 words")):
        to_spans(TEXT, np.array([1.0, 2.0]), Thresholds(minor=1.0))


def test_greedy_matching_can_miss_the_best_pairing_and_macro_counts_segments() -> None:
    # The largest overlap (6-12 with 5-11) leaves 0-6 and 11-13 without the partners that the best pairing finds.
    gold, found = (span(0, 6), span(6, 12)), (span(5, 11), span(11, 13))
    text = Marked(13, gold, found)
    best, greedy = judge_spans([text]).partial, judge_spans([text], matching="greedy").partial
    assert (best.recall, greedy.recall) == (1.0, 0.5)
    credit = judge_spans([text], matching="greedy").credit
    assert (credit.precision, credit.recall) == (pytest.approx(5 / 6 / 2), pytest.approx(5 / 6 / 2))
    assert credit.f1 <= judge_spans([text]).credit.f1 + 1e-12
    right, empty = Marked(4, (span(0, 2),), (span(0, 2),)), Marked(4, (), ())
    macro = judge_spans([text, right, empty], average="macro", matching="greedy").credit
    assert macro.recall == pytest.approx((5 / 12 + 1 + 1) / 3)
    assert judge_spans([text, right, empty], matching="greedy").credit.recall == pytest.approx((5 / 6 + 1) / 3)
    weights = {"minor": 1.0, "major": 5.0}
    heavy = Marked(9, (span(0, 2, "major"), span(4, 6, "minor")), (span(0, 2, "major"),))
    assert judge_spans([heavy], weights=weights).credit.recall == pytest.approx(5 / 6)
