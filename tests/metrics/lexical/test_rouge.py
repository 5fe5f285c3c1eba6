"""ROUGE against the rouge-score package, and its words in every script."""

import re
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from whyscore.errors import MissingExtra, MissingInput, SpecError
from whyscore.metrics.lexical import rouge as rouge_tokens
from whyscore.metrics.lexical.rouge import Rouge
from whyscore.protocols import RowMetric, WordScorer
from whyscore.registry import build, spec_of
from whyscore.text.splitters import white_space
from whyscore.types import HYPOTHESIS, Place, Segment, Side

KINDS = ["1", "2", "L", "Lsum"]
REFERENCE = Place(Side.REFERENCE, 0)


def package(segments: list[Segment], kind: str, *, stem: bool) -> list[tuple[float, float, float]]:
    scorer = RougeScorer([f"rouge{kind}"], use_stemmer=stem)
    found = [scorer.score_multi(segment.references, segment.hypothesis)[f"rouge{kind}"] for segment in segments]
    return [(score.precision, score.recall, score.fmeasure) for score in found]


ASCII = st.text(st.sampled_from("ab cdefginrs .,-'\n19AB"), max_size=60)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(ASCII, st.lists(ASCII, min_size=1, max_size=3)), min_size=1, max_size=3), st.booleans())
def test_any_ascii_texts_score_as_in_the_package(kind: str, items: list[tuple[str, list[str]]], stem: bool) -> None:  # noqa: FBT001
    segments = [Segment(hypothesis, None, tuple(references)) for hypothesis, references in items]
    rows = Rouge(kind, stem=stem, mode="compat").statistics(segments)  # type: ignore[arg-type]
    np.testing.assert_allclose(rows, package(segments, kind, stem=stem), atol=1e-12)


@pytest.mark.parametrize("stem", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_translations_score_as_in_the_package(kind: str, stem: bool, translated: Callable[..., list[Segment]]) -> None:  # noqa: FBT001
    texts = translated(3, 100)
    joined = [
        Segment(
            f"{one.hypothesis}\n{two.hypothesis}",
            None,
            tuple(f"{a}\n\n{b}" for a, b in zip(one.references, two.references, strict=True)),
        )
        for one, two in pairwise(texts)
    ]
    rows = build(f"rouge(kind='{kind}', stem={stem}, mode=compat)").statistics(joined)
    np.testing.assert_allclose(rows, package(joined, kind, stem=stem), atol=1e-12)


def test_summaries_have_the_published_means(shared: Path) -> None:
    folder = shared / "muler" / "cnndm_head1000"
    references = (folder / "ref.txt").read_text(encoding="utf-8").split("\n")[:-1]
    hypotheses = (folder / "t5_base.txt").read_text(encoding="utf-8").split("\n")[:-1]
    segments = [Segment(h, None, (r,)) for h, r in zip(hypotheses, references, strict=True)]
    means = Rouge(stem=True, mode="compat").statistics(segments).mean(axis=0)
    expected = [0.23223479906601535, 0.25533182278282673, 0.23561066942572875]
    np.testing.assert_allclose(means, expected, atol=1e-12)


def test_precision_recall_and_f_by_hand() -> None:
    segment = Segment("the cat sat", None, ("the cat sat on the mat",))
    assert Rouge("1").statistics([segment])[0].tolist() == pytest.approx([1, 0.5, 2 / 3])
    assert Rouge("2").statistics([segment])[0].tolist() == pytest.approx([1, 2 / 5, 4 / 7])
    assert Rouge("L").statistics([segment])[0].tolist() == pytest.approx([1, 0.5, 2 / 3])
    assert [Rouge(measure=m).score([segment])[0] for m in ("p", "r", "f")] == pytest.approx([1, 0.5, 2 / 3])


def test_order_matters_to_subsequences_only() -> None:
    segment = Segment("c b a", None, ("a b c",))
    assert Rouge("1").score([segment])[0] == 1
    assert Rouge("L").score([segment])[0] == pytest.approx(1 / 3)


def test_lines_are_compared_one_by_one_in_lsum() -> None:
    segment = Segment("c d\na b", None, ("a b\nc d",))
    assert Rouge("Lsum").score([segment])[0] == 1
    assert Rouge("L").score([segment])[0] == 0.5


def test_the_reference_with_the_best_f_counts_for_all_three_numbers() -> None:
    segment = Segment("a b", None, ("a b c d e f g h", "a x"))
    # F is 0.4 and 0.5; the first reference has the better precision, but the second is chosen.
    assert Rouge("1").statistics([segment])[0].tolist() == [0.5, 0.5, 0.5]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Das Haus, STRASSE/straße!", ["das", "haus", "strasse", "strasse"]),
        ("यह बिल्ली है।", ["यह", "बिल्ली", "है"]),
        ("Это кошка — да", ["это", "кошка", "да"]),
        ("我有10只cat。", ["我", "有", "10", "只", "cat"]),
        ("ねこがいる", ["ね", "こ", "が", "い", "る"]),
        ("แมวดี", ["แ", "ม", "ว", "ดี"]),
        ("قطة، كلب", ["قطة", "كلب"]),
        ("고양이가 있다", ["고양이가", "있다"]),
    ],
)
def test_every_script_has_words(text: str, tokens: list[str]) -> None:
    assert [token.text for token in Rouge().tokens(text)] == tokens
    assert Rouge().score([Segment(text, None, (text,))])[0] == 1


def test_the_package_gives_nothing_to_other_scripts() -> None:
    segment = Segment("यह बिल्ली है", None, ("यह बिल्ली है",))
    assert Rouge(mode="compat").score([segment])[0] == 0


def test_ascii_texts_score_alike_in_both_modes(translated: Callable[..., list[Segment]]) -> None:
    ascii_only = [s for s in translated(1, 200) if s.hypothesis.isascii() and s.references[0].isascii()]
    assert len(ascii_only) > 100
    for kind in KINDS:
        default, compat = (build(f"rouge(kind='{kind}', mode={mode})") for mode in ("default", "compat"))
        assert default.score(ascii_only).tolist() == compat.score(ascii_only).tolist()


def test_stemming_of_other_letters_leaves_them_alone() -> None:
    assert [token.text for token in Rouge(stem=True).tokens("walking кошками naïvely")] == [
        "walk",
        "кошками",
        "naïvely",
    ]


def test_texts_score_like_their_joined_tokens() -> None:
    metric = Rouge("2", stem=True)
    first, second = "Walking the dogs, quickly!", "He walked the dog quickly."
    joined = [" ".join(token.text for token in metric.tokens(text)) for text in (first, second)]
    plain = metric.score([Segment(first, None, (second,))])[0]
    assert metric.on_tokens().score([Segment(joined[0], None, (joined[1],))])[0] == plain > 0


def test_stemming_without_nltk_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    rouge_tokens._stemmer.cache_clear()
    monkeypatch.setitem(sys.modules, "nltk.stem.porter", None)
    message = "rouge(stem=True) needs extra packages: pip install 'whyscore[rouge]'"
    with pytest.raises(MissingExtra, match=re.escape(message)):
        Rouge(stem=True).score([Segment("unstemmedwordone", None, ("unstemmedwordone",))])
    monkeypatch.undo()
    assert Rouge(stem=True).score([Segment("unstemmedwordone", None, ("unstemmedwordone",))])[0] == 1


def test_kinds_may_be_given_as_numbers() -> None:
    assert build("rouge(kind=1)") == build('rouge(kind="1")') == Rouge("1")
    assert spec_of(build("rouge(kind=2)")) == 'rouge(kind="2")'


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("rouge(kind=3)", "rouge: kind is 3, expected '1' or '2' or 'L' or 'Lsum'"),
        ("rouge(measure=f1)", "rouge: measure is 'f1', expected 'f' or 'p' or 'r'"),
        ("rouge(stem=True, mode=split)", "rouge: stem=True changes tokens and mode='split' keeps them; leave one out"),
    ],
)
def test_impossible_options_are_refused(spec: str, message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        build(spec)


def test_a_segment_without_reference_is_refused() -> None:
    with pytest.raises(MissingInput, match=re.escape("rouge needs a reference: segment 1 (hypothesis 'a') has none")):
        Rouge().score([Segment("a")])


def test_rouge_is_a_row_metric_that_scores_words() -> None:
    assert isinstance(Rouge(), RowMetric)
    assert isinstance(Rouge(), WordScorer)
    assert str(Rouge("1", stem=True).signature()).startswith(
        'rouge(kind="1", stem=True)|nrefs:any|stem:porter|version:'
    )


def test_words_in_the_common_subsequence_help_and_others_hurt() -> None:
    segment = Segment("the big cat - here", None, ("a dog", "the cat"))
    scores = Rouge().word_scores([segment], HYPOTHESIS, [white_space(segment.hypothesis)])[0]
    assert scores.importance.tolist() == [1, -1, 1, 0, -1]
    assert scores.notes == (
        "common subsequence 1/1",
        "common subsequence 0/1",
        "common subsequence 1/1",
        "not read by the metric",
        "common subsequence 0/1",
    )
    other = Rouge().word_scores([segment], REFERENCE, [white_space("a dog")])[0]
    assert other.importance.tolist() == [-1, -1]


def test_pairs_of_words_are_counted_on_both_sides() -> None:
    segment = Segment("the cat sat down", None, ("the cat ran down",))
    scores = Rouge("2").word_scores([segment], HYPOTHESIS, [white_space(segment.hypothesis)])[0]
    assert scores.importance.tolist() == [1, 0, -1, -1]
    assert scores.notes == ("2-grams 1/1", "2-grams 1/2", "2-grams 0/2", "2-grams 0/1")
    there = Rouge("2").word_scores([segment], REFERENCE, [white_space(segment.references[0])])[0]
    assert there.importance.tolist() == [1, 0, -1, -1]


def test_hits_of_lsum_are_shared_by_their_places() -> None:
    segment = Segment("a\na", None, ("a b\nc",))
    scores = Rouge("Lsum").word_scores([segment], HYPOTHESIS, [white_space(segment.hypothesis)])[0]
    assert scores.notes == ("common subsequence 0.5/1", "common subsequence 0.5/1")
    assert scores.importance.tolist() == [0, 0]
