"""Stems, lemmas and words for MEE."""

import builtins
import importlib.machinery
import re
import sys
import types

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyscore.errors import MissingExtra, SpecError
from whyscore.metrics.mee import words as segmentation
from whyscore.metrics.mee.words import segmenter
from whyscore.text import stemming
from whyscore.text.stemming import Lemmas, Snowball, stemmer


def test_forms_of_a_word_have_one_stem() -> None:
    found = stemmer("auto", "ru")
    assert found == Snowball("russian")
    one, other, third = found.stems(["кошка", "кошки", "дом"])
    assert one == other != third


def test_lemmas_step_in_where_snowball_has_no_rules() -> None:
    found = stemmer("auto", "uk")
    assert found == Lemmas("uk")
    assert found.stems(["коти"]) == ["кіт"]
    assert stemmer("simplemma", "en-GB") == Lemmas("en")
    assert Lemmas("en").stems(["mice", "ran"]) == ["mouse", "run"]


def test_languages_nobody_knows_have_no_stemmer() -> None:
    assert stemmer("auto", "xx") is None
    assert stemmer("auto", None) is None
    assert stemmer("none", "ru") is None


def test_every_language_of_the_table_is_one_of_snowball() -> None:
    assert set(stemming._SNOWBALL.values()) <= stemming._algorithms()


def test_asking_for_a_stemmer_that_cannot_be_is_refused() -> None:
    with pytest.raises(SpecError, match=re.escape("snowball does not know the language 'uk'")):
        stemmer("snowball", "uk")
    with pytest.raises(SpecError, match=re.escape("the stemmer 'simplemma' needs the language")):
        stemmer("simplemma", None)


@pytest.mark.parametrize(("package", "language"), [("snowballstemmer", "ru"), ("simplemma", "uk")])
def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, package: str, language: str) -> None:
    original = builtins.__import__

    def refusing(name: str, *rest: object, **named: object) -> object:
        if name.startswith(package):
            raise ImportError(name=name)
        return original(name, *rest, **named)  # type: ignore[arg-type]

    for cached in (stemming._algorithms, stemming._lemma_languages):
        cached.cache_clear()
    monkeypatch.setattr(builtins, "__import__", refusing)
    with pytest.raises(MissingExtra, match=re.escape("the root match of mee needs extra packages: pip install")):
        stemmer("auto", language)
    monkeypatch.undo()
    for cached in (stemming._algorithms, stemming._lemma_languages):
        cached.cache_clear()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It's a well-known café, isn’t it?", ["It's", "a", "well-known", "café", ",", "isn’t", "it", "?"]),
        ("-5 °C", ["-", "5", "°", "C"]),
        ("यह एक बिल्ली है", ["यह", "एक", "बिल्ली", "है"]),
        ("我有iPhone手机。", ["我", "有", "iPhone", "手", "机", "。"]),
        ("ฉันมีแมว", ["ฉั", "น", "มี", "แ", "ม", "ว"]),
        ("コーヒー", ["コ", "ー", "ヒ", "ー"]),
        ("", []),
        (" \t", []),
    ],
)
def test_words_and_characters(text: str, words: list[str]) -> None:
    assert list(segmenter("characters", None).split(text)) == words


@given(st.text())
def test_words_cover_everything_but_blanks(text: str) -> None:
    cut = segmenter("auto", None).split(text)
    assert all(word for word in cut)
    assert all(not gap or gap.isspace() for gap in cut.gaps)


def test_cut_texts_are_cut_at_blanks() -> None:
    assert list(segmenter("split", "zh").split("我 有 猫。")) == ["我", "有", "猫。"]


def installed(monkeypatch: pytest.MonkeyPatch, name: str, **members: object) -> None:
    """Put a module in the place of a segmenter that may not be installed."""
    module = types.ModuleType(name)
    module.__spec__ = importlib.machinery.ModuleSpec(name, None)
    module.__dict__.update(members)
    monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(segmentation, "version", lambda _: "1.0")
    segmentation._cutter.cache_clear()


class Pairs:
    """Cuts into pairs of characters."""

    def initialize(self) -> None:
        pass

    def lcut(self, run: str) -> list[str]:
        return [run[k : k + 2] for k in range(0, len(run), 2)]


def test_an_installed_segmenter_cuts_the_runs_of_its_language(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, "jieba", Tokenizer=Pairs, setLogLevel=lambda _: None)
    chinese = segmenter("auto", "zh-CN")
    assert chinese.name == "jieba-1.0"
    assert list(chinese.split("我们有猫, OK 3。")) == ["我们", "有猫", ",", "OK", "3", "。"]
    assert segmenter("auto", "en").name == "characters"
    segmentation._cutter.cache_clear()


def test_segmenters_of_japanese_and_thai(monkeypatch: pytest.MonkeyPatch) -> None:
    class Tagger:
        def __init__(self, _: str) -> None: ...

        def __call__(self, run: str) -> list[object]:
            return [types.SimpleNamespace(surface=word) for word in Pairs().lcut(run)]

    installed(monkeypatch, "fugashi", Tagger=Tagger)
    assert list(segmenter("auto", "ja").split("私はね。")) == ["私は", "ね", "。"]
    installed(monkeypatch, "pythainlp")
    installed(monkeypatch, "pythainlp.tokenize", word_tokenize=lambda run, **_: Pairs().lcut(run))
    assert list(segmenter("auto", "th").split("กขค")) == ["กข", "ค"]
    segmentation._cutter.cache_clear()


def test_a_segmenter_that_is_asked_for_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fugashi", None)
    segmentation._cutter.cache_clear()
    with pytest.raises(MissingExtra, match=re.escape("the segmenter 'fugashi' needs the package 'fugashi'")):
        segmenter("fugashi", "ja")
