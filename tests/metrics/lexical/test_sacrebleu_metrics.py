"""BLEU, chrF and TER give sacreBLEU's numbers, signatures and rules."""

import logging
import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF, TER

from whyscore.errors import MissingExtra, MissingInput, SpecError
from whyscore.metrics.lexical.bleu import Bleu
from whyscore.metrics.lexical.chrf import Chrf
from whyscore.metrics.lexical.ter import Ter
from whyscore.protocols import CorpusMetric, WordScorer
from whyscore.registry import build, spec_of
from whyscore.types import Segment

Peer = Callable[..., BLEU | CHRF | TER]
Translated = Callable[..., list[Segment]]

FAST: list[tuple[str, Peer]] = [
    ("bleu", BLEU),
    ("bleu(lowercase=True)", lambda **more: BLEU(lowercase=True, **more)),
    ('bleu(smoothing="add-k")', lambda **more: BLEU(smooth_method="add-k", **more)),
    ('bleu(smoothing="add-k", smoothing_value=2)', lambda **more: BLEU(smooth_method="add-k", smooth_value=2, **more)),
    ('bleu(smoothing="floor")', lambda **more: BLEU(smooth_method="floor", **more)),
    ('bleu(smoothing="none")', lambda **more: BLEU(smooth_method="none", **more)),
    ('bleu(tokenize="intl", max_order=2)', lambda **more: BLEU(tokenize="intl", max_ngram_order=2, **more)),
    ('bleu(tokenize="char", max_order=6)', lambda **more: BLEU(tokenize="char", max_ngram_order=6, **more)),
    ('bleu(tokenize="zh")', lambda **more: BLEU(tokenize="zh", **more)),
    ('bleu(tokenize="none")', lambda **more: BLEU(tokenize="none", **more)),
    ("chrf", lambda **_: CHRF()),
    ("chrf(word_order=2)", lambda **_: CHRF(word_order=2)),
    ("chrf(char_order=0, word_order=3)", lambda **_: CHRF(char_order=0, word_order=3)),
    ("chrf(lowercase=True, beta=3)", lambda **_: CHRF(lowercase=True, beta=3)),
    ("chrf(whitespace=True)", lambda **_: CHRF(whitespace=True)),
    ("chrf(eps_smoothing=True)", lambda **_: CHRF(eps_smoothing=True)),
]
SLOW: list[tuple[str, Peer]] = [
    ("ter", lambda **_: TER()),
    ("ter(normalized=True)", lambda **_: TER(normalized=True)),
    ("ter(no_punct=True, case_sensitive=True)", lambda **_: TER(no_punct=True, case_sensitive=True)),
    (
        "ter(normalized=True, no_punct=True, asian_support=True)",
        lambda **_: TER(normalized=True, no_punct=True, asian_support=True),
    ),
]


def by_segment(peer: Peer) -> BLEU | CHRF | TER:
    return peer(effective_order=True)


def sentence_scores(peer: BLEU | CHRF | TER, segments: list[Segment]) -> list[float]:
    return [peer.sentence_score(segment.hypothesis, list(segment.references)).score for segment in segments]


def corpus_score(peer: BLEU | CHRF | TER, segments: list[Segment]) -> float:
    """Return sacreBLEU's corpus score; missing references are None, as it wants them."""
    most = max(len(segment.references) for segment in segments)
    streams = [[(*segment.references, *[None] * most)[k] for segment in segments] for k in range(most)]
    return float(peer.corpus_score([segment.hypothesis for segment in segments], streams).score)


@pytest.mark.parametrize("references", [1, 2, 3])
@pytest.mark.parametrize(("spec", "peer"), FAST)
def test_scores_of_segments_and_of_them_all_are_those_of_sacrebleu(
    spec: str, peer: Peer, references: int, translated: Translated
) -> None:
    segments = translated(references, 300 if references == 1 else 100)
    metric = build(spec)
    rows = metric.statistics(segments)
    np.testing.assert_allclose(metric.scores(rows), sentence_scores(by_segment(peer), segments), atol=1e-9)
    assert metric.total(rows.sum(axis=0)) == pytest.approx(corpus_score(peer(), segments), abs=1e-9)


@pytest.mark.parametrize("references", [1, 2, 3])
@pytest.mark.parametrize(("spec", "peer"), [FAST[0], FAST[2], FAST[10], FAST[11]])
def test_scores_of_the_whole_corpus_are_those_of_sacrebleu(
    spec: str, peer: Peer, references: int, translated: Translated
) -> None:
    segments = translated(references)
    metric = build(spec)
    assert metric.total(metric.statistics(segments).sum(axis=0)) == pytest.approx(
        corpus_score(peer(), segments), abs=1e-9
    )


@pytest.mark.parametrize(("spec", "peer"), SLOW)
def test_edit_rates_of_segments_and_of_them_all_are_those_of_sacrebleu(
    spec: str, peer: Peer, translated: Translated
) -> None:
    for references, number in ((1, 100 if spec == "ter" else 30), (2, 12), (3, 12)):
        segments = translated(references, number)
        metric = build(spec)
        rows = metric.statistics(segments)
        np.testing.assert_allclose(metric.scores(rows), sentence_scores(peer(), segments), atol=1e-9)
        assert metric.total(rows.sum(axis=0)) == pytest.approx(corpus_score(peer(), segments), abs=1e-9)


@pytest.mark.slow
def test_the_edit_rate_of_the_whole_corpus_is_that_of_sacrebleu(translated: Translated) -> None:
    segments = translated(1)
    metric = build("ter")
    assert metric.total(metric.statistics(segments).sum(axis=0)) == pytest.approx(
        corpus_score(TER(), segments), abs=1e-9
    )


@pytest.mark.parametrize(("spec", "peer"), [*FAST, *SLOW])
def test_the_number_of_references_may_vary(spec: str, peer: Peer, translated: Translated) -> None:
    three = translated(3, 21)
    segments = [Segment(s.hypothesis, None, s.references[: 1 + k % 3]) for k, s in enumerate(three)]
    metric = build(spec)
    rows = metric.statistics(segments)
    np.testing.assert_allclose(metric.scores(rows), sentence_scores(by_segment(peer), segments), atol=1e-9)
    assert metric.total(rows.sum(axis=0)) == pytest.approx(corpus_score(peer(), segments), abs=1e-9)


@pytest.mark.parametrize("spec", [spec for spec, _ in [*FAST, *SLOW]])
def test_an_empty_reference_among_several_counts_as_missing(spec: str) -> None:
    metric = build(spec)
    filled = Segment("the cat sat here", None, ("the cat is sitting there",))
    padded = Segment("the cat sat here", None, ("", "the cat is sitting there", " \t"))
    assert metric.statistics([padded]).tolist() == metric.statistics([filled]).tolist()


@pytest.mark.parametrize(("spec", "peer"), [*FAST, *SLOW])
def test_empty_texts_are_scored_by_the_rule_of_sacrebleu(spec: str, peer: Peer) -> None:
    segments = [Segment(h, None, r) for h, r in [("", "a cat"), ("a cat", ""), ("", ""), (" ", "a"), ("a", "a")]]
    assert build(spec).score(segments).tolist() == sentence_scores(by_segment(peer), segments)


TEXT = st.text(st.sampled_from("ab c.,&-'é狗\n\u00a0İ9"), max_size=25)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(TEXT, st.lists(TEXT.filter(str.strip), min_size=1, max_size=3)), min_size=1, max_size=4))
def test_any_texts_score_as_in_sacrebleu(items: list[tuple[str, list[str]]]) -> None:
    segments = [Segment(hypothesis, None, tuple(references)) for hypothesis, references in items]
    for spec, peer in (FAST[0], FAST[2], FAST[9], FAST[11], FAST[14], SLOW[0], SLOW[1]):
        np.testing.assert_allclose(
            build(spec).score(segments), sentence_scores(by_segment(peer), segments), atol=1e-9, err_msg=spec
        )


def test_explaining_a_reference_gives_the_same_numbers_as_explaining_the_hypothesis(translated: Translated) -> None:
    texts = [segment.hypothesis for segment in translated(1, 50)]
    fixed = translated(1, 1)[0].references[0]
    for spec, peer in (FAST[0], FAST[10], FAST[11]):
        turned = [Segment(fixed, None, text) for text in texts]
        np.testing.assert_allclose(
            build(spec).score(turned), sentence_scores(by_segment(peer), turned), atol=1e-9, err_msg=spec
        )


@pytest.mark.parametrize(("spec", "peer"), [*FAST, *SLOW])
def test_signatures_are_those_of_sacrebleu_behind_the_spec(spec: str, peer: Peer) -> None:
    theirs = peer()
    theirs.corpus_score(["a cat"], [["a dog"]])
    metric = build(spec)
    assert str(metric.signature().with_facts(nrefs=1)) == f"{spec_of(metric)}|{theirs.get_signature().format()}"


def test_the_signature_of_plain_bleu_reads_as_users_know_it() -> None:
    assert str(Bleu().signature()) == "bleu|nrefs:any|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"
    assert str(Bleu().segment_signature()) == "bleu|nrefs:any|case:mixed|eff:yes|tok:13a|smooth:exp|version:2.6.0"


@pytest.mark.parametrize("effective", [True, False])
def test_an_effective_order_that_is_set_holds_for_segments_and_corpus(effective: bool) -> None:  # noqa: FBT001
    metric = Bleu(effective_order=effective)
    segment = Segment("a cat", None, ("a cat",))
    assert metric.signature() == metric.segment_signature()
    assert dict(metric.signature().facts)["eff"] == ("yes" if effective else "no")
    rows = metric.statistics([segment])
    expected = 100.0 if effective else BLEU().corpus_score(["a cat"], [["a cat"]]).score
    assert metric.scores(rows)[0] == metric.total(rows[0]) == pytest.approx(expected, abs=1e-9)


def test_two_words_alone_have_full_bleu_as_a_segment_and_none_as_a_corpus() -> None:
    metric = Bleu()
    rows = metric.statistics([Segment("a cat", None, ("a cat",))])
    assert metric.scores(rows)[0] == pytest.approx(100, abs=1e-9)
    assert metric.total(rows[0]) == 0


def test_rows_have_the_named_counts() -> None:
    segment = Segment("the the cat", None, ("the cat sat", "a cat"))
    bleu = dict(zip(Bleu(max_order=2).columns, Bleu(max_order=2).statistics([segment])[0].tolist(), strict=True))
    assert bleu == {
        "hypothesis_length": 3,
        "reference_length": 3,
        "matched_1": 2,
        "matched_2": 1,
        "total_1": 3,
        "total_2": 2,
    }
    chrf = Chrf(char_order=1, word_order=1)
    row = dict(zip(chrf.columns, chrf.statistics([segment])[0].tolist(), strict=True))
    assert row == {
        "hypothesis_c1": 9,
        "reference_c1": 9,
        "matched_c1": 7,
        "hypothesis_w1": 3,
        "reference_w1": 3,
        "matched_w1": 2,
    }
    assert dict(zip(Ter.columns, Ter().statistics([segment])[0].tolist(), strict=True)) == {
        "edits": 2,
        "reference_length": 2.5,
    }


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from([spec for spec, _ in FAST if spec.startswith("chrf")]),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0, 1, 2, 5, 1000]),
    st.sampled_from([1.0, 1 / 3]),
)
def test_many_rows_have_the_digits_that_each_has_alone(spec: str, seed: int, largest: int, scale: float) -> None:
    metric = build(spec)
    assert isinstance(metric, Chrf)
    rows = scale * np.random.default_rng(seed).integers(0, largest, (50, len(metric.columns)), endpoint=True)
    before = rows.copy()
    alone = [metric.counts.formula(row) for row in rows.tolist()]  # sacreBLEU's own code
    assert metric.scores(rows).tolist() == metric.totals(rows).tolist() == alone
    assert [metric.total(row) for row in rows] == alone
    assert rows.tolist() == before.tolist()


def test_totals_leave_the_row_as_it_was() -> None:
    metric = Bleu(smoothing="add-k")
    row = metric.statistics([Segment("a cat sat", None, ("a cat ran",))])[0]
    before = row.copy()
    assert metric.total(row) == metric.total(row)
    assert row.tolist() == before.tolist()


def test_nothing_is_logged_or_warned(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    segments = [Segment("a cat sat .", None, ("a cat sat .",))] * 150
    with caplog.at_level(logging.DEBUG):
        for name in ("bleu", "bleu(effective_order=False)", "chrf", "ter"):
            metric = build(name)
            metric.total(metric.statistics(segments).sum(axis=0))
            metric.score(segments)
    assert caplog.text == ""
    assert capfd.readouterr() == ("", "")


def test_bleu_chrf_and_ter_are_corpus_metrics_that_score_words() -> None:
    for metric in (Bleu(), Chrf(), Ter()):
        assert isinstance(metric, CorpusMetric)
        assert isinstance(metric, WordScorer)


def test_only_the_edit_rate_is_better_when_lower() -> None:
    assert [Bleu().higher_is_better, Chrf().higher_is_better, Ter().higher_is_better] == [True, True, False]


@pytest.mark.parametrize("name", ["bleu", "chrf", "ter"])
def test_a_segment_without_reference_is_refused(name: str) -> None:
    message = f"{name} needs a reference: segment 2 (hypothesis 'a dog') has none. Give references"
    with pytest.raises(MissingInput, match=re.escape(message)):
        build(name).score([Segment("a cat", None, ("a cat",)), Segment("a dog")])


def test_an_unknown_tokenizer_is_answered_with_those_there_are() -> None:
    message = "bleu: no tokenizer named '13b'. Known: 13a, char, flores101, flores200, intl, ja-mecab, ko-mecab, none"
    with pytest.raises(SpecError, match=re.escape(message)):
        build("bleu(tokenize='13b')")


def test_a_tokenizer_without_its_packages_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from sacrebleu.tokenizers import tokenizer_ja_mecab

    monkeypatch.setattr(tokenizer_ja_mecab, "MeCab", None)
    with pytest.raises(MissingExtra, match=re.escape("pip install 'sacrebleu[ja]'")):
        Bleu(tokenize="ja-mecab").score([Segment("猫", None, ("犬",))])
    monkeypatch.setitem(__import__("sys").modules, "sentencepiece", None)
    with pytest.raises(MissingExtra, match=re.escape("the tokenizer 'spm' cannot be used")):
        Bleu(tokenize="spm").score([Segment("a", None, ("a",))])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("bleu(max_order=0)", "bleu: max_order is 0, expected 1 or more"),
        ("bleu(smoothing_value=0.5)", "bleu: smoothing_value is 0.5, but smoothing 'exp' takes none. Leave it out"),
        ("bleu(smoothing='floor', smoothing_value=-1)", "bleu: smoothing_value is -1.0, expected 0 or more"),
        ("bleu(smoothing='exponential')", "bleu: smoothing is 'exponential', expected 'auto' or 'exp' or 'floor'"),
        ("bleu(tokenize=none)", 'bleu: tokenize is None: leave it out for 13a, or write tokenize="none"'),
        ("chrf(char_order=0)", "chrf: char_order and word_order are both 0, so that nothing is counted; raise one"),
        ("chrf(word_order=-1)", "chrf: word_order is -1, expected 0 or more"),
        ("chrf(beta=0)", "chrf: beta is 0, expected 1 or more"),
        ("ter(normalized=1)", "ter: normalized is 1, expected True or False"),
    ],
)
def test_impossible_options_are_refused(spec: str, message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        build(spec)


def test_smoothing_none_needs_no_quotes() -> None:
    assert build("bleu(smoothing=none)") == Bleu(smoothing="none")
    assert spec_of(build("bleu(smoothing=none)")) == 'bleu(smoothing="none")'


@pytest.mark.parametrize("metric", [Bleu(), Bleu(tokenize="intl", lowercase=True), Ter(normalized=True)])
def test_texts_score_like_their_joined_tokens(metric: Bleu | Ter, translated: Translated) -> None:
    def joined(text: str) -> str:
        return " ".join(token.text for token in metric.tokens(text))

    segments = translated(2, 100)
    cut = [Segment(joined(s.hypothesis), None, tuple(map(joined, s.references))) for s in segments]
    assert metric.on_tokens().statistics(cut).tolist() == metric.statistics(segments).tolist()
