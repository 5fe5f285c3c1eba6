"""MEE, MEE2 and MEE4: hand cases, the published scores, edge cases, word scores, errors."""

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import whyscore as ws
from whyscore.errors import ContractError, DataError, MissingExtra, MissingInput, SpecError
from whyscore.metrics.mee import parts as mee_parts
from whyscore.metrics.mee.metric import Mee, Mee2, Mee4, RootNotice, tell_cosine
from whyscore.models.encoders.embedded import Embedded
from whyscore.models.encoders.loading import CoverageNotice
from whyscore.registry import build, spec_of
from whyscore.testing import check_metric
from whyscore.text.splitters import white_space
from whyscore.types import HYPOTHESIS, SOURCE, FloatMatrix, Place, Segment, Side, Signature

REFERENCE = Place(Side.REFERENCE, 0)
NOTHING: dict[str, list[float]] = {}


@pytest.fixture(autouse=True)
def _nothing_remembered() -> None:
    mee_parts.forget()


def segment(hypothesis: str, *references: str) -> Segment:
    return Segment(hypothesis, references=references)


def with_cosines(**cosines: float) -> dict[str, list[float]]:
    """Vectors of words whose cosine with the word `one` is given."""
    return {word: [cosine, (1 - cosine**2) ** 0.5] for word, cosine in cosines.items()}


def lengths(texts: Sequence[str]) -> FloatMatrix:
    """A sentence encoder by hand: what a text is made of, letter by letter."""
    return np.array([[text.count("a") + 1.0, text.count("b") - 0.5, len(text)] for text in texts])


@dataclass(eq=False)
class CountingWords:
    table: Mapping[str, Sequence[float]]
    calls: list[list[str]] = field(default_factory=list)

    def signature(self) -> Signature:
        return Signature("counting", stable=False)

    def vectors(self, words: Sequence[str]) -> tuple[FloatMatrix, "np.ndarray[tuple[int], np.dtype[np.bool_]]"]:
        self.calls.append(list(words))
        known = np.array([word in self.table for word in words])
        return np.array([self.table.get(word, (0.0, 0.0)) for word in words]), known


@dataclass(eq=False)
class CountingTexts:
    calls: list[list[str]] = field(default_factory=list)

    def signature(self) -> Signature:
        return Signature("counting-texts", stable=False)

    def encode(self, texts: Sequence[str]) -> FloatMatrix:
        self.calls.append(list(texts))
        return lengths(texts)


def parts(metric: Mee, hypothesis: str, reference: str) -> dict[str, float]:
    row = metric.statistics([segment(hypothesis, reference)])[0]
    return dict(zip(metric.columns, row.tolist(), strict=True))


@pytest.mark.parametrize(
    ("metric", "hypothesis", "reference", "expected"),
    [
        (Mee("compat", with_cosines(dog=1.0, cat=0.6)), "dog", "dog cat", (0.526316, 1.052632, 1.052632, 0.877193)),
        (Mee("paper", with_cosines(dog=1.0, cat=0.6)), "dog", "dog cat", (0.526316, 0.526316, 0.526316, 0.526316)),
        (Mee("compat", with_cosines(a=1.0, b=0.42, c=0.9)), "a", "b c", (0, 0, 0.526316, 0.175439)),
        (Mee("paper", with_cosines(a=1.0, b=0.42, c=0.9)), "a", "b c", (0, 0.526316, 0.526316, 0.350877)),
        (Mee("compat", None), "a dog has b", "a dog has b", (1, 1, 1, 1)),
        (Mee("paper", None), "a dog has b", "a dog has b", (1, 1, 1, 1)),
    ],
)
def test_the_table_of_hand_cases(metric: Mee, hypothesis: str, reference: str, expected: tuple[float, ...]) -> None:
    found = parts(metric, hypothesis, reference)
    assert [found[name] for name in ("exact", "root", "synonym", "lms")] == pytest.approx(expected, abs=5e-7)


def test_stems_make_root_matches_and_ignore_case() -> None:
    metric = Mee(words=None, language="en")
    assert parts(metric, "Cats sleep", "the cat Sleeping") == pytest.approx(
        {"exact": 0, "root": 2 / 2.9, "synonym": 2 / 2.9, "lms": 4 / 8.7, "unknown": 0}
    )


def test_a_stemmer_of_the_caller_is_asked_once() -> None:
    class First:
        calls = 0

        def signature(self) -> Signature:
            return Signature("first-letter", stable=False)

        def stems(self, words: Sequence[str]) -> list[str]:
            self.calls += 1
            return [word[0] for word in words]

    stemmer = First()
    rows = Mee(words=None, stemmer=stemmer).statistics([segment("cats ran", "cows run"), segment("Ant .", "ape !")])
    assert rows[:, 1].tolist() == [1.0, 0.5]
    assert stemmer.calls == 1


def test_punctuation_has_no_root() -> None:
    assert parts(Mee(words=None, language="en"), "!", "?")["root"] == 0


def test_case_counts_unless_it_is_asked_not_to() -> None:
    assert Mee(words=None).score([segment("The", "the")])[0] == 0
    assert Mee(words=None, lowercase=True).score([segment("The", "the")])[0] == 1


def test_repeated_words_match_as_often_as_both_sides_have_them() -> None:
    assert parts(Mee(words=None), "the the", "the")["exact"] == pytest.approx(1 / (0.9 + 0.2))


def test_decomposed_letters_match_after_normalising_alone() -> None:
    written = segment("cafe\u0301", "caf\u00e9")
    assert Mee(words=None).score([written])[0] == 0
    assert Mee(words=None, normalise="NFC").score([written])[0] == 1
    assert Mee4(words=None, normalise="NFC", sentences=lengths).score([written])[0] == pytest.approx(1)


@pytest.mark.parametrize("mode", ["paper", "compat"])
@pytest.mark.parametrize(
    ("hypothesis", "reference"), [("", "a b"), ("a b", ""), ("", ""), (" ", "\t"), ("!", "?"), ("a", "b")]
)
def test_empty_and_tiny_texts_have_zero_matches(mode: str, hypothesis: str, reference: str) -> None:
    metric = build(f"mee4(mode={mode}, words=None)")
    found = parts(Mee4(mode=metric.mode, words=None, sentences=lengths), hypothesis, reference)
    assert (found["lms"], found["syn"]) == (0, 0)
    if not (hypothesis + reference).strip():
        assert found["cxt"] == 0


@pytest.mark.parametrize("mode", ["paper", "compat"])
@pytest.mark.parametrize("text", ["a", "。", "...", "a a a", "Кот спит, а пёс нет."])
def test_identical_texts_are_perfect(mode: str, text: str) -> None:
    metric = Mee4(mode=build(f"mee(mode={mode})").mode, words=NOTHING, sentences=lengths)
    found = parts(metric, text, text)
    assert [found[name] for name in ("exact", "root", "synonym", "lms", "syn", "cxt")] == pytest.approx([1] * 6)
    assert metric.score([segment(text, text)])[0] == pytest.approx(1)


def test_a_negative_cosine_is_clipped_in_paper_and_kept_in_compat() -> None:
    def against(texts: Sequence[str]) -> list[list[float]]:
        return [[1.0 if "a" in text else -1.0] for text in texts]

    pair = segment("a", "b")
    assert Mee4(words=None, sentences=against).score([pair])[0] == 0
    assert Mee4("compat", None, sentences=against).score([pair])[0] == pytest.approx(-0.75)


def test_a_vector_of_zeros_has_the_cosine_zero() -> None:
    assert parts(Mee4(words=None, sentences=lambda texts: np.zeros((len(texts), 3))), "a b", "a c")["cxt"] == 0


def test_words_without_vectors_are_counted_and_flagged() -> None:
    found = ws.mee_parts([segment("a b", "a c"), segment("a", "a")], Mee4(words=NOTHING, sentences=lengths))
    assert found.unknown.tolist() == [1.0, 0.0]
    assert found.flags == (("no-vectors",), ())
    assert found.synonym.tolist() == found.exact.tolist()


def test_the_best_reference_counts_or_the_mean() -> None:
    asked = [segment("a b", "x y", "a b", "a c")]
    assert Mee(words=None).score(asked)[0] == 1
    assert Mee(words=None, references="mean").score(asked)[0] == pytest.approx(0.5)
    best, worst = Mee4(words=None, sentences=lengths), Mee4(words=None, sentences=lengths, references="mean")
    single = [segment("a b", reference) for reference in asked[0].references]
    assert best.score(asked)[0] == best.score(single).max()
    assert worst.score(asked)[0] == pytest.approx(best.score(single).mean())


WORDS = st.lists(st.sampled_from(["a", "b", "cat", "cats", "Dog", "."]), max_size=7).map(" ".join)
TABLE = {"a": [1.0, 0.0], "b": [0.8, 0.6], "cat": [0.0, 1.0], "cats": [0.1, 1.0], "Dog": [0.45, -0.9]}


@given(WORDS, WORDS)
def test_swapping_the_texts_keeps_exact_and_stem_counts(one: str, other: str) -> None:
    metric = Mee(words=None, language="en")
    here, there = metric.alignments([segment(one, other), segment(other, one)])
    assert here[0].counts[:3] == there[0].counts[:3]


@pytest.mark.parametrize("mode", ["paper", "compat"])
@pytest.mark.parametrize("name", ["mee", "mee2", "mee4"])
def test_word_scores_add_up_on_both_sides(mode: str, name: str) -> None:
    plain = build(f"{name}(mode={mode}, words=None)")

    @given(WORDS, WORDS)
    def add_up(hypothesis: str, reference: str) -> None:
        extra = {} if name == "mee" else {"sentences": lengths}
        metric = type(plain)(mode=plain.mode, words=TABLE, **extra)
        loss = type(plain)(mode=plain.mode, words=TABLE, view="loss", **extra)
        share = metric.weights.shares[0] if isinstance(metric, Mee2) else 1.0
        asked = [segment(hypothesis, reference)]
        lms = parts(metric, hypothesis, reference)["lms"]
        lost = 0.0
        for place in (HYPOTHESIS, REFERENCE):
            words = [white_space(asked[0].text(place))]
            assert metric.word_scores(asked, place, words)[0].importance.sum() == pytest.approx(share * lms, abs=1e-13)
            lost += loss.word_scores(asked, place, words)[0].importance.sum()
        if hypothesis and reference:
            assert lost == pytest.approx(-share * (1 - lms), abs=1e-13)

    add_up()


def test_notes_say_what_matched_which_word_and_how() -> None:
    metric = Mee(words=with_cosines(big=1.0, large=0.45, red=0.0), language="en")
    asked = [segment("big cats ran , blue", "cat large ran , red")]
    own = metric.word_scores(asked, HYPOTHESIS, [white_space(asked[0].hypothesis)])[0]
    assert own.notes == (
        "≈ synonym 'large' (word 2, cosine 0.45, credit 1/3)",
        "~ root 'cat' (word 1, credit 2/3)",
        "= exact 'ran' (word 3, credit 1)",
        "= exact ',' (word 4, credit 1)",
        "· none, no vector",
    )
    assert own.importance.tolist() == pytest.approx([1 / 15, 2 / 15, 0.2, 0.2, 0])
    there = metric.word_scores(asked, REFERENCE, [white_space(asked[0].references[0])])[0]
    assert there.notes is not None
    assert there.notes[0] == "~ root 'cats' (word 2, credit 2/3)"
    assert there.notes[4] == "· none"


def test_a_word_of_compat_may_have_two_partners() -> None:
    metric = Mee("compat", with_cosines(dog=1.0, cat=0.6))
    own = metric.word_scores([segment("dog", "dog cat")], HYPOTHESIS, [white_space("dog")])[0]
    assert own.notes == ("= exact 'dog' (word 1, credit 1), ~ root 'cat' (word 2, cosine 0.60, credit 2/3)",)


def test_a_unit_of_several_words_tells_of_each_of_them() -> None:
    own = Mee(words=None).word_scores([segment("cat.", "cat !")], HYPOTHESIS, [white_space("cat.")])[0]
    assert own.notes == ("cat = exact 'cat' (word 1, credit 1); . · none",)
    assert own.importance.tolist() == [0.5]


def test_the_hypothesis_is_explained_by_the_best_reference() -> None:
    own = Mee(words=None).word_scores([segment("a b", "x", "a b")], HYPOTHESIS, [white_space("a b")])[0]
    assert own.importance.tolist() == [0.5, 0.5]
    mean = Mee(words=None, references="mean").word_scores(
        [segment("a b", "x", "a b")], HYPOTHESIS, [white_space("a b")]
    )
    assert mean[0].importance.tolist() == [0.25, 0.25]
    assert mean[0].notes == ("· none | = exact 'a' (word 1, credit 1)", "· none | = exact 'b' (word 2, credit 1)")


def test_losses_are_shown_as_costs() -> None:
    found = ws.explain([segment("a b", "a c d")], "mee(words=None, view=loss)", "intrinsic")
    assert [one.importance.round(6).tolist() for one in found] == [
        pytest.approx([0, -0.1 / 2.9], abs=1e-6),
        pytest.approx([0, -0.9 / 2.9, -0.9 / 2.9], abs=1e-6),
    ]


def test_words_and_sentences_are_asked_for_once_per_run() -> None:
    words, sentences = CountingWords(TABLE), CountingTexts()
    metric = Mee4(words=words, sentences=sentences)
    metric.score([segment("a cat", "b cats"), segment("b Dog", "a ."), segment("a cat", "b cats")])
    assert [len(call) for call in words.calls] == [6]
    assert [sorted(call) for call in sentences.calls] == [["a .", "a cat", "b Dog", "b cats"]]


SHARING = ("mee(words=static)", "mee2(words=static, sentences=static)", "mee4(words=static, sentences=static)")


def test_the_three_metrics_share_their_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, int] = {"align_pairs": 0, "syntactic": 0, "contextual": 0}

    def counting(name: str) -> Callable[..., object]:
        original = getattr(mee_parts, name)

        def count(*arguments: object) -> object:
            asked[name] += len(arguments[-1])  # type: ignore[arg-type]
            return original(*arguments)

        return count

    for name in asked:
        monkeypatch.setattr(mee_parts, name, counting(name))
    data = [segment("a cat", "a dog"), segment("the cat", "the cats")]
    first = [ws.score(data, metric).values.tolist() for metric in SHARING]
    assert asked == {"align_pairs": 2, "syntactic": 2, "contextual": 2}
    mee_parts.forget()
    assert [ws.score(data, metric).values.tolist() for metric in SHARING] == first


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mee_parts, "_KEPT", 3)
    data = [segment("a" * k, "a") for k in range(1, 9)]
    whole = build("mee(words=None)").score(data)
    assert len(mee_parts._lexical._held) == 3
    assert build("mee(words=None)").score(data).tolist() == whole.tolist()


@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=5))
def test_order_company_and_repetition_change_nothing(pairs: list[tuple[str, str]]) -> None:
    metric = Mee4(words=TABLE, sentences=lengths)
    asked = [segment(*pair) for pair in pairs]
    whole = metric.score(asked)
    assert metric.score(asked[::-1])[::-1].tolist() == whole.tolist()
    assert metric.score([*asked, *asked])[: len(asked)].tolist() == whole.tolist()
    assert [float(metric.score([one])[0]) for one in asked] == whole.tolist()


@given(WORDS, WORDS)
def test_the_score_is_rebuilt_from_its_parts(hypothesis: str, reference: str) -> None:
    for metric, cosine in ((Mee2(words=TABLE, sentences=lengths), 1), (Mee4(words=TABLE, sentences=lengths), 3)):
        found = parts(metric, hypothesis, reference)
        value = ((2 * found["lms"] + found["syn"]) / 3 + cosine * found["cxt"]) / (1 + cosine)
        assert metric.score([segment(hypothesis, reference)])[0] == pytest.approx(value, abs=1e-14)


def test_other_weights_are_taken_and_signed() -> None:
    metric = Mee4(words=None, sentences="embedded", alpha=1, gamma=0, epsilon=0)
    pair = [segment("a cat", "a dog")]
    assert metric.score(pair)[0] == Mee(words=None).score(pair)[0]
    assert spec_of(metric) == 'mee4(words=None, sentences="embedded", alpha=1.0, gamma=0.0, epsilon=0.0)'
    assert "|weights:1/0/1/0|" in str(metric.signature())


@pytest.mark.parametrize(
    "spec",
    [
        "mee(words=None)",
        "mee(words=static, language=et)",
        'mee(mode="compat", words=None)',
        "mee2(words=None, sentences=static)",
        "mee4(words=None, sentences=static, references=mean, language=en)",
        'mee4(words=None, segmenter="split", stemmer="simplemma", language="en", normalise="NFC", sentences=static)',
    ],
)
def test_all_settings_keep_the_contract(spec: str) -> None:
    segments = (
        None if "compat" not in spec else [segment("a cat .", "a dog ."), segment("", "x"), segment("我 有", "我")]
    )
    check_metric(build(spec), segments)


def test_cut_texts_score_as_the_texts_themselves() -> None:
    metric = Mee(words=None, language="en")
    pair = segment("The cat's here, isn't it?", "The cats, aren't they?")
    cut = [" ".join(token.text for token in metric.tokens(text)) for text in (pair.hypothesis, *pair.references)]
    assert metric.on_tokens().score([segment(*cut)]).tolist() == metric.score([pair]).tolist()


def test_an_encoder_object_with_a_spec_comes_back_from_the_signature() -> None:
    metric = Mee2(words=None, sentences=Embedded(1))
    assert build(spec_of(metric)) == metric
    assert metric.signature().stable


def test_objects_without_a_name_are_never_stored() -> None:
    assert not Mee(words={"a": [1.0]}).signature().stable
    assert not Mee4(words=None, sentences=lengths).signature().stable
    assert Mee4(words=None).signature().stable


def test_the_signature_says_what_ran() -> None:
    facts = dict(Mee4(words=None, language="ru").signature().facts)
    assert facts["mode"] == "paper"
    assert facts["root"].startswith("snowball-russian-")
    assert facts["words"] == "none"
    assert facts["order"] == "words/3"
    assert facts["enc"].startswith("embedded@")
    assert dict(Mee(words=None, language="xx").signature().facts)["root"] == "cos0.5"
    assert dict(Mee("compat", None, language="ru").signature().facts)["root"] == "cos0.5"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Mee(root=1.5), "mee: root is 1.5, expected a cosine from -1 to 1"),
        (lambda: Mee(synonym=0.7), "mee: synonym=0.7 is above root=0.5"),
        (lambda: Mee("compat", lowercase=True), "the published metric keeps case; lowercase=True needs mode='paper'"),
        (lambda: Mee(stemmer="porter"), "mee: stemmer is 'porter', expected 'auto', 'snowball', 'simplemma', 'none'"),
        (lambda: Mee(stemmer=3).signature(), "mee: stemmer is 3, expected a name or an object with stems()"),
        (
            lambda: Mee("compat").signature(),
            "mee(mode='compat') has no vectors by default: write words='cc.ru.300.vec'",
        ),
        (lambda: Mee(words=3).signature(), "words is 3, expected 'embedded', 'static', a file, None"),
        (lambda: Mee4(epsilon=-1), "mee4: epsilon is -1.0, expected 0 or more"),
        (lambda: Mee4(alpha=0, gamma=0), "mee4: alpha + gamma and delta + epsilon must be above 0"),
        (lambda: Mee4(words=None, sentences=3).signature(), "sentences is 3, expected 'embedded', 'LaBSE'"),
        (lambda: Mee(stemmer="snowball").signature(), "the stemmer 'snowball' needs the language"),
    ],
)
def test_options_that_mean_nothing_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        make()


def test_compat_takes_one_reference() -> None:
    with pytest.raises(
        MissingInput, match=re.escape("mee(mode='compat') takes one reference: segment 2 (hypothesis 'a')")
    ):
        Mee("compat", None).score([segment("a", "b"), segment("a", "b", "c")])


def test_a_reference_is_needed_and_the_source_is_not_read() -> None:
    with pytest.raises(MissingInput, match=re.escape("mee2 needs a reference")):
        Mee2(words=None, sentences=lengths).score([Segment("a")])
    with pytest.raises(SpecError, match=re.escape("mee does not read the source")):
        Mee(words=None).word_scores([segment("a", "b")], SOURCE, [white_space("a")])


def test_an_encoder_of_the_wrong_shape_is_told_off() -> None:
    message = "flat-of-the-caller was asked for the vectors of 2 texts and gave the shape (2,), expected (2, width)"

    def flat(texts: Sequence[str]) -> list[float]:
        return [1.0 for _ in texts]

    with pytest.raises(ContractError, match=re.escape(message)):
        Mee4(words=None, sentences=flat).score([segment("a", "b")])
    with pytest.raises(ContractError, match=re.escape("gave a vector that is not finite for 'a'")):
        Mee4(words=None, sentences=lambda texts: np.full((len(texts), 2), np.nan)).score([segment("a", "b")])


def test_a_missing_file_of_vectors_is_named() -> None:
    with pytest.raises(DataError, match=re.escape("cc.ru.300.vec: no such file of word vectors")):
        Mee("compat", "cc.ru.300.vec").score([segment("a", "b")])


def test_a_model_that_is_not_there_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(MissingExtra, match="no folder"):
        Mee4(words=None, sentences=str(tmp_path / "LaBSE")).score([segment("a", "b")])


def test_chinese_is_cut_into_characters_or_words() -> None:
    pair = segment("我有猫。", "我有狗。")
    assert Mee(words=None).score([pair])[0] == 0.75
    assert parts(Mee("compat", None), "我有猫。", "我有狗。")["lms"] == 0


def test_vectors_of_a_file_make_synonyms(tmp_path: Path) -> None:
    path = tmp_path / "words.vec"
    path.write_text("3 2\nbig 1 0\nlarge 0.45 0.893\nred 0 1\n", encoding="utf-8")
    for mode in ("paper", "compat"):
        metric = build(f'mee(mode="{mode}", words="{path}")')
        found = metric.alignments([segment("big", "large")])[0][0]
        assert [(link.kind, round(link.similarity or 0, 2)) for link in found.links] == [("synonym", 0.45)]
        assert metric.signature().stable
        assert "|words:words.vec@" in str(metric.signature())


def test_compat_refuses_vectors_for_unknown_words(tmp_path: Path) -> None:
    path = tmp_path / "cc.ru.300.bin"
    path.touch()
    with pytest.raises(SpecError, match=re.escape("cc.ru.300.bin: a .bin has vectors for unknown words")):
        Mee("compat", str(path)).signature()


def test_batches_of_the_embedded_encoder_change_nothing_that_counts() -> None:
    asked = [segment("The cat sat on the mat .", "A cat is on the mat ."), segment("No", "Yes , of course !")]
    whole = Mee2().score(asked)
    mee_parts.forget()
    # Sums of float32 in another order differ by some 1e-8.
    assert Mee2().score(asked[:1])[0] == pytest.approx(whole[0], abs=1e-6)


def test_a_long_segment_is_scored_in_every_mode() -> None:
    text = " ".join(f"w{k % 97}" for k in range(2000))
    for mode in ("paper", "compat"):
        metric = Mee4(mode=build(f"mee(mode={mode})").mode, words=None, sentences=lengths)
        assert metric.score([segment(text, text)])[0] == pytest.approx(1)


def test_a_language_the_encoder_was_not_made_for_is_told() -> None:
    with pytest.warns(CoverageNotice, match=re.escape("does not support 'et'")):
        Mee2(words=None, language="et").score([segment("tere", "tere")])
    with pytest.warns(CoverageNotice, match=re.escape("embedded(layer=0) does not support 'et'")):
        Mee(language="et").score([segment("kass", "koer")])


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (
            Mee(words=TABLE),
            "MEE matches roots by cosine (from 0.5), because the language is not known: give it with -l",
        ),
        (Mee(words=TABLE, language="xx"), "MEE matches roots by cosine (from 0.5), because no stemmer supports 'xx'"),
        (
            Mee(words=None, language="xx"),
            "MEE matches roots not at all, as there are no word vectors, because no stemmer",
        ),
    ],
)
def test_roots_that_are_not_matched_by_stems_are_told_once(metric: Mee, message: str) -> None:
    tell_cosine.cache_clear()
    segments = [Segment("a", references=("b",))]
    with pytest.warns(RootNotice, match=re.escape(message)):
        metric.score(segments)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metric.score(segments)


@pytest.mark.parametrize(
    "metric", [Mee(words=TABLE, language="en"), Mee(words=TABLE, stemmer="none"), Mee("compat", words=TABLE)]
)
def test_roots_matched_as_asked_for_are_not_told(metric: Mee) -> None:
    tell_cosine.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metric.score([Segment("a", references=("b",))])
