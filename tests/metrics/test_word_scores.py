"""What BLEU and chrF say of single words."""

import re
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyscore.errors import DataError, SpecError
from whyscore.metrics.lexical.bleu import Bleu
from whyscore.metrics.lexical.chrf import Chrf
from whyscore.metrics.lexical.ngrams import NOT_READ, Chain, Order, balances, credit, table, token_grams
from whyscore.metrics.lexical.rows import run_credits
from whyscore.metrics.spans import touching
from whyscore.registry import build
from whyscore.text.splitters import Characters, WhiteSpace, white_space
from whyscore.types import HYPOTHESIS, SOURCE, FloatVector, Place, Segment, Side, Words

REFERENCE = Place(Side.REFERENCE, 0)
SPECS = ["bleu", "bleu(tokenize=intl, lowercase=True)", "chrf", "chrf(word_order=2)", "chrf(whitespace=True)"]
SPECS += ["rouge(kind=1)", "rouge(kind=2)", "rouge", "rouge(kind=Lsum)", "ter", "ter(normalized=True)"]


def importance(spec: str, hypothesis: str, *references: str, place: Place = HYPOTHESIS) -> list[float]:
    segment = Segment(hypothesis, None, references)
    answer = build(spec).word_scores([segment], place, [white_space(segment.text(place))])[0]
    return list(answer.importance)


def test_a_wrong_word_takes_the_blame_for_all_its_ngrams() -> None:
    segment = Segment("I have a cat", None, ("I have a dog",))
    scores = Bleu().word_scores([segment], HYPOTHESIS, [white_space(segment.hypothesis)])[0]
    assert scores.notes == (
        "1-grams 1/1, 2-grams 1/1, 3-grams 1/1, 4-grams 0/1",
        "1-grams 1/1, 2-grams 2/2, 3-grams 1/2, 4-grams 0/1",
        "1-grams 1/1, 2-grams 1/2, 3-grams 1/2, 4-grams 0/1",
        "1-grams 0/1, 2-grams 0/1, 3-grams 0/1, 4-grams 0/1",
    )
    assert scores.importance.tolist() == [3 / 4, (1 + 1 + 1 / 2) / 4, (1 + 1 / 2 + 1 / 2) / 4, -1]


def test_a_wrong_order_is_the_fault_of_all_words_in_it() -> None:
    # All words match and no pair does, so that every longer n-gram speaks against its words.
    assert importance("bleu", "c b a", "a b c") == [(1 - 1 - 1) / 3] * 3


def test_a_repeated_word_has_matched_in_part() -> None:
    segment = Segment("the the", None, ("the",))
    scores = Bleu(max_order=1).word_scores([segment], HYPOTHESIS, [white_space("the the")])[0]
    assert scores.importance.tolist() == [0, 0]
    assert scores.notes == ("1-grams 0.5/1", "1-grams 0.5/1")


def test_bleu_reads_all_references_together_and_chrf_the_best() -> None:
    assert importance("bleu(max_order=1)", "a cat", "a dog", "my cat") == [1, 1]
    assert importance("chrf(char_order=0, word_order=1)", "a cat sat", "a dog", "my cat sat") == [-1, 1, 1]


def test_the_words_of_each_reference_are_compared_with_the_hypothesis() -> None:
    for place, expected in ((REFERENCE, [1, -1]), (Place(Side.REFERENCE, 1), [-1, 1])):
        assert importance("bleu(max_order=1)", "a cat", "a dog", "my cat", place=place) == expected
        assert importance("chrf(char_order=0, word_order=1)", "a cat", "a dog", "my cat", place=place) == expected


def test_characters_across_the_border_of_words_count_for_both() -> None:
    segment = Segment("ab cd", None, ("abcd",))
    scores = Chrf(char_order=2).word_scores([segment], HYPOTHESIS, [white_space("ab cd")])[0]
    assert scores.notes == ("1-grams 2/2, 2-grams 2/2", "1-grams 2/2, 2-grams 2/2")
    assert scores.importance.tolist() == [1, 1]


def test_single_characters_can_be_scored() -> None:
    segment = Segment("我有猫", None, ("我有狗",))
    scores = Chrf(char_order=1).word_scores([segment], HYPOTHESIS, [Characters().split("我有猫")])[0]
    assert scores.importance.tolist() == [1, 1, -1]


def test_a_token_that_lies_in_several_words_counts_for_each() -> None:
    segment = Segment("cat", None, ("dog",))
    scores = Bleu().word_scores([segment], HYPOTHESIS, [Characters().split("cat")])[0]
    assert scores.importance.tolist() == [-1, -1, -1]


def test_entities_and_quotation_marks_are_found_in_the_text_as_given() -> None:
    assert importance("bleu(max_order=1)", "He &amp; I", "She & I") == [-1, 1, 1]


def test_a_failed_ngram_is_blamed_on_the_shortest_failed_part() -> None:
    orders = [Order(1, np.array([1.0, 1, 1])), Order(2, np.array([1.0, 0])), Order(3, np.array([0.0]))]
    words = Words("a b c", ((0, 1), (2, 3), (4, 5)))
    [scores] = balances([words], [[Chain(list(words.spans), orders)]])
    # "b c" is the shortest failed part of "a b c": nothing speaks against "a".
    assert scores.importance.tolist() == pytest.approx([(1 + 1 + 0) / 3, (1 + 0 - 1) / 3, (1 - 1 - 1) / 3])


def balance_by_definition(words: Words, chain: Chain) -> tuple[list[float], list[str]]:
    """Return importances and notes of one text, n-gram by n-gram and word by word."""
    found: list[list[float]] = [[] for _ in words.spans]
    notes: list[list[str]] = [[] for _ in words.spans]
    inner: list[set[int]] = []
    for order in chain.orders:
        faults = []
        for start, share in enumerate(order.credit.tolist()):
            inside = inner[start] | inner[start + 1] if inner else set()
            faults.append(set() if share == 1 else inside or set(range(start, start + order.n)))
        inner = faults
        for number, units in enumerate(touching(chain.units, words)):
            grams = range(max(0, units.start - order.n + 1), min(len(order.credit), units.stop)) if units else ()
            if len(grams):
                matched = sum(float(order.credit[k]) for k in grams)
                against = sum(1 - float(order.credit[k]) for k in grams if faults[k] & set(units))
                found[number].append((matched - against) / len(grams))
                notes[number].append(f"{order.n}-grams {matched:.3g}/{len(grams)}")
    return [sum(own) / len(own) if own else 0.0 for own in found], [", ".join(own) or NOT_READ for own in notes]


CREDITS = st.sampled_from([0.0, 1.0, 1.0, 1 / 3, 0.7])


@st.composite
def texts_with_chains(draw: st.DrawFn, longest: int) -> tuple[Words, Chain]:
    units = draw(st.lists(st.integers(0, 3), max_size=9))  # of which those of length 0 stand nowhere
    ends = np.cumsum(units).tolist()
    spans = list(zip([0, *ends], ends, strict=False))
    orders = []
    for n in [*range(1, 4), longest]:
        size = max(0, len(spans) - n + 1) if n <= 4 else 0
        orders.append(Order(n, np.array(draw(st.lists(CREDITS, min_size=size, max_size=size)), dtype=np.float64)))
    text = "x" * sum(units)
    borders = sorted(draw(st.sets(st.integers(0, len(text)), max_size=6)))
    return Words(text, tuple(pairwise(borders))), Chain(spans, orders)


@pytest.mark.parametrize("longest", [4, 70])
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_balances_of_many_texts_are_those_of_the_definition_to_the_last_digit(
    longest: int, data: st.DataObject
) -> None:
    texts = data.draw(st.lists(texts_with_chains(longest), max_size=4))
    scores = balances([words for words, _ in texts], [[chain] for _, chain in texts])
    found = [(one.importance.tolist(), list(one.notes or ())) for one in scores]
    assert found == [balance_by_definition(words, chain) for words, chain in texts]


UNITS = st.text("abc", max_size=9)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(UNITS, st.lists(UNITS, min_size=1, max_size=3)), max_size=4))
def test_credits_of_many_texts_are_those_of_counted_ngrams(texts: list[tuple[str, list[str]]]) -> None:
    own, others = [one for one, _ in texts], [rest for _, rest in texts]
    for text, rest, rows in zip(own, others, run_credits(own, others, 4), strict=True):
        for grams, *there, row in zip(token_grams(text, 4), *[token_grams(one, 4) for one in rest], rows, strict=True):
            most = Counter[tuple[str, ...]]()
            for one in there:
                most |= Counter(one)
            assert row.tolist() == credit(grams, table(list(most.elements()))).tolist()


WORDS = st.lists(st.sampled_from(["a", "cat", "Cat", "sat.", "on", "the", "mat", "-", "狗"]), max_size=8)


@pytest.mark.parametrize("spec", SPECS)
@settings(max_examples=60, deadline=None)
@given(WORDS, st.lists(WORDS, min_size=1, max_size=2))
def test_there_is_one_finite_number_and_one_note_for_each_word(
    spec: str, words: list[str], others: list[list[str]]
) -> None:
    segment = Segment("  ".join(words), None, tuple(" ".join(other) for other in others))
    metric = build(spec)
    for place in segment.places(metric.inputs):
        text = white_space(segment.text(place))
        scores = metric.word_scores([segment], place, [text])[0]
        assert scores.importance.shape == (len(text),)
        assert np.isfinite(scores.importance).all()
        assert len(scores.notes) == len(text)
        if not spec.startswith("ter"):
            assert (np.abs(scores.importance) <= 1).all()


@pytest.mark.parametrize("spec", [spec for spec in SPECS if not spec.startswith("ter")])
def test_equal_texts_are_all_right_and_foreign_ones_all_wrong(spec: str) -> None:
    text = "The quick brown fox jumps"
    assert importance(spec, text, text) == [1] * 5
    assert importance(spec, "xyz 123 qqq zzz 4567", "the quick brown fox jumped over") != [1] * 5
    assert importance(spec, "xxx 999 qqq zzz 444", "The brown fop jumped over") == pytest.approx([-1] * 5)


@pytest.mark.parametrize("spec", SPECS)
def test_a_word_without_a_match_is_below_a_word_with_nothing_but_matches(spec: str) -> None:
    values = importance(spec, "the cat sat on the mat qqqq", "the cat sat on the mat !")
    assert values[-1] < min(values[:2])
    assert values[-1] < 0


@pytest.mark.parametrize("name", ["bleu", "chrf", "rouge", "ter"])
def test_the_source_cannot_be_explained(name: str) -> None:
    message = f"{name} does not read the source: explain the hypothesis or a reference"
    with pytest.raises(SpecError, match=re.escape(message)):
        build(name).word_scores([Segment("a", "b", ("c",))], SOURCE, [white_space("b")])


@pytest.mark.parametrize("name", ["bleu", "chrf", "rouge", "ter"])
def test_a_reference_that_is_not_there_cannot_be_explained(name: str) -> None:
    with pytest.raises(DataError, match=re.escape("the segment has no reference 3")):
        build(name).word_scores([Segment("a", "b", ("c",))], Place(Side.REFERENCE, 2), [white_space("c")])


def area(importance: FloatVector, errors: FloatVector) -> float:
    """Return the share of pairs (wrong word, right word) in which the wrong one is lower."""
    wrong, right = importance[errors > 0], importance[errors == 0]
    difference = right[:, np.newaxis] - wrong
    return float(((difference > 0) + 0.5 * (difference == 0)).mean())


@pytest.mark.parametrize(
    ("spec", "pair", "auc", "f1"),
    [
        ("bleu", "et-en", 0.97, 0.88),
        ("bleu", "ro-en", 0.98, 0.92),
        ("chrf", "et-en", 0.94, 0.79),
        ("ter(case_sensitive=True)", "et-en", 0.98, 0.96),
        ("rouge", "et-en", 0.94, 0.9),
    ],
)
def test_word_scores_find_the_words_that_people_changed(
    spec: str, pair: str, auc: float, f1: float, shipped: Path
) -> None:
    folder = shipped / "eval4nlp2021" / "dev" / pair
    lines = [(folder / f"dev.{name}").read_text(encoding="utf-8").split("\n") for name in ("mt", "pe", "tgt-tags")]
    splitter = WhiteSpace("space")
    items = []
    for hypothesis, edited, tags in zip(*lines, strict=True):
        errors = np.array(tags.split(), dtype=np.float64)
        words = splitter.split(hypothesis)
        if len(errors) == len(words) and 0 < errors.sum() < len(errors):
            items.append((Segment(hypothesis, None, (edited,)), words, errors))
    items = items[:300]
    answers = build(spec).word_scores([item[0] for item in items], HYPOTHESIS, [item[1] for item in items])
    areas = [area(answer.importance, errors) for answer, (_, _, errors) in zip(answers, items, strict=True)]
    flagged = np.concatenate([answer.importance < 0 for answer in answers])
    wrong = np.concatenate([errors > 0 for _, _, errors in items])
    assert np.mean(areas) > auc
    assert 2 * (flagged & wrong).sum() / (flagged.sum() + wrong.sum()) > f1


def test_scoring_many_segments_is_scoring_each(translated: Callable[..., list[Segment]]) -> None:
    segments = translated(2, 20)
    words = [white_space(segment.hypothesis) for segment in segments]
    for spec in SPECS:
        metric = build(spec)
        together = metric.word_scores(segments, HYPOTHESIS, words)
        for segment, text, scores in zip(segments, words, together, strict=True):
            alone = metric.word_scores([segment], HYPOTHESIS, [text])[0]
            assert alone.notes == scores.notes
            assert alone.importance.tolist() == scores.importance.tolist()
