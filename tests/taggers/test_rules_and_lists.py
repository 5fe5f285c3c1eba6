"""Features without a model: rules, word lists, patterns."""

import re
from pathlib import Path

import pytest

from whyscore.errors import DataError, SpecError
from whyscore.registry import build, spec_of
from whyscore.taggers.lexicon import Lexicon
from whyscore.taggers.rules import Rules, available, finder


def found(rule: str, text: str, language: str = "en") -> list[str]:
    return [text[start:end] for start, end in finder(rule, language)(text)]


@pytest.mark.parametrize(
    ("rule", "text", "words"),
    [
        ("number", "1,200.5 of 3 (٤٥)", ["1,200.5", "3", "٤٥"]),
        ("punctuation", "Well, «no»!", [",", "«", "»", "!"]),
        ("capitalised", "The Élan of McCoy's 3D", ["The", "Élan", "McCoy"]),
        ("negation", "No, I don't; he isn’t, cannot, note", ["No", "don't", "isn’t", "cannot"]),
        ("gendered_pronoun", "SHE gave him hers, they said", ["SHE", "him", "hers"]),
        ("third_person_pronoun", "SHE gave him hers, they said", ["SHE", "him", "hers", "they"]),
        ("quotation", 'a "b" „c“', ['"', '"', "„", "“"]),
        ("url", "see https://a.b/c?d=1. or x@y.org!", ["https://a.b/c?d=1", "x@y.org"]),
    ],
)
def test_each_rule_finds_what_it_says(rule: str, text: str, words: list[str]) -> None:
    assert found(rule, text) == words


def test_rules_are_per_language() -> None:
    assert found("negation", "Ich habe keine und nicht eine", "de") == ["keine", "nicht"]
    assert found("negation", "ninguna cosa, nunca", "es-MX") == ["ninguna", "nunca"]
    assert "gendered_pronoun" not in available("de")


def test_a_language_without_a_list_is_said_so() -> None:
    message = "rules has no list of negation for 'ru', only for de, en, es, fr: give the words yourself"
    with pytest.raises(SpecError, match=re.escape(message)):
        found("negation", "не", "ru")


def test_the_tagger_gives_every_rule_as_a_label() -> None:
    (tags,) = Rules().tag(["No 3"])
    assert [("No 3"[start:end], labels) for start, end, labels in tags] == [
        ("No", ("capitalised",)),
        ("No", ("negation",)),
        ("3", ("number",)),
    ]


def test_words_lists_and_patterns_are_features_with_names(tmp_path: Path) -> None:
    (tmp_path / "cities.txt").write_text("New York\n\nRome\n", encoding="utf-8")
    tagger = Lexicon(("words:he,she", f"CITY=list:{tmp_path / 'cities.txt'}", r"regex:\d+%"))
    (tags,) = tagger.tag(["She left new york, 5% of Rome."])
    text = "She left new york, 5% of Rome."
    assert [(text[a:b], labels[0]) for a, b, labels in tags] == [
        ("She", "words:he,she"),
        ("new york", "CITY"),
        ("5%", r"regex:\d+%"),
        ("Rome", "CITY"),
    ]
    assert build(spec_of(tagger), "tagger") == tagger


def test_a_changed_list_changes_the_signature(tmp_path: Path) -> None:
    file = tmp_path / "w.txt"
    file.write_text("a\n")
    before = str(Lexicon((f"list:{file}",)).signature())
    file.write_text("b\n")
    assert str(Lexicon((f"list:{file}",)).signature()) != before


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ((), "lexicon: entries is empty"),
        (("he,she",), "lexicon: cannot read 'he,she': write words:he,she or list:FILE or regex:PATTERN"),
        (("regex:(",), "cannot read the pattern regex:(: missing ), unterminated subpattern"),
    ],
)
def test_entries_that_mean_nothing_are_refused(entries: tuple[str, ...], message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        Lexicon(entries)


def test_a_list_that_is_missing_or_empty_is_told_with_its_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=re.escape(f"{tmp_path / 'no.txt'}: cannot be read: No such file")):
        Lexicon((f"list:{tmp_path / 'no.txt'}",)).tag(["a"])
    (tmp_path / "empty.txt").write_text("\n")
    with pytest.raises(DataError, match=r"empty\.txt: has no word: expected one word or phrase per line"):
        Lexicon((f"list:{tmp_path / 'empty.txt'}",)).tag(["a"])
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9\n")
    with pytest.raises(DataError, match=r"latin\.txt: is not UTF-8 at byte 3; convert it"):
        Lexicon((f"list:{tmp_path / 'latin.txt'}",)).tag(["a"])
