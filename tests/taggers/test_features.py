"""The expressions that select features."""

import re

import pytest

from whyscore.errors import SpecError, UnknownName
from whyscore.protocols import Tagged
from whyscore.taggers.features import (
    Selection,
    carries,
    check_known,
    default_features,
    parse_feature,
    parse_features,
)


@pytest.mark.parametrize(
    ("part", "label", "yes"),
    [
        ("upos:NOUN", "upos:NOUN", True),
        ("NOUN", "upos:NOUN", True),
        ("NOUN", "upos:PROPN", False),
        ("PERSON", "ent:PERSON", True),
        ("ent:NOUN", "upos:NOUN", False),
        ("Number", "feats:Number=Sing", True),
        ("feats:Number=Plur", "feats:Number=Sing", False),
        ("Gender=Fem", "feats:Gender=Fem", True),
        ("dep:obl", "dep:obl:tmod", False),
        ("dep:obl*", "dep:obl:tmod", True),
        ("JJ*", "JJR", True),
        ("PRP$", "PRP$", True),
        ("PRP", "PRP$", False),
        ("[X]", "X", False),
        ("distance:7+", "distance:12", True),
        ("distance:3-6", "distance:7", False),
        ("distance:2", "distance:2", True),
        ("distance:7+", "head:9", False),
        ("distance:7+:both", "head:9", True),
    ],
)
def test_a_label_carries_what_an_expression_asks_for(part: str, label: str, yes: bool) -> None:  # noqa: FBT001
    assert carries(label, part) is yes


def test_names_groups_and_text_features_are_read() -> None:
    assert parse_feature("NOUN=NN,NNS").parts == ("NN", "NNS")
    assert parse_feature("feats:Gender=Fem").name == "feats:Gender=Fem"
    assert parse_feature("CLOCK=regex:\\d+:\\d+").parts == ("regex:\\d+:\\d+",)


@pytest.mark.parametrize(
    ("expression", "error", "message"),
    [
        ("NOUN=NN,,NNS", SpecError, "cannot read the feature 'NOUN=NN,,NNS'"),
        ("upos:NUON", UnknownName, "no part of speech named 'NUON'. Did you mean 'NOUN'?"),
        ("distance:far", SpecError, "cannot read 'distance:far': write distance:1, distance:3-6"),
        ("regex:[", SpecError, "cannot read the pattern regex:[: unterminated character set"),
        ("words: ,", SpecError, "words: names no word"),
    ],
)
def test_expressions_that_cannot_be_read_are_refused(expression: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        parse_feature(expression)


def test_a_feature_asked_for_twice_is_refused() -> None:
    with pytest.raises(SpecError, match="the feature 'NN' is requested twice"):
        parse_features(["NN", "NN"])


def test_spans_of_a_feature_are_merged_where_they_overlap() -> None:
    tags = (Tagged(0, 3, ("A",)), Tagged(2, 5, ("B",)), Tagged(5, 6, ("A",)))
    selection = Selection(parse_features(["AB=A,B", "A", "words:xyz"]))
    assert selection.spans("abcdef xyz", tags) == [((0, 5), (5, 6)), ((0, 3), (5, 6)), ((7, 10),)]


def test_rules_are_there_whatever_the_tagger_unless_it_has_a_label_of_that_name() -> None:
    features = parse_features(["number"])
    tags = (Tagged(0, 1, ("number",)),)
    assert Selection(features).spans("a 7", ()) == [((2, 3),)]
    assert Selection(features, tagger_labels=frozenset({"number"})).spans("a 7", tags) == [((0, 1),)]


def test_morphology_by_any_key_or_by_the_first_alone() -> None:
    tags = (Tagged(0, 1, ("feats:Case=Nom", "feats:Number=Sing")),)
    features = parse_features(["Number", "Case"])
    assert Selection(features).spans("a", tags) == [((0, 1),), ((0, 1),)]
    assert Selection(features, first_key=True).spans("a", tags) == [(), ((0, 1),)]


def test_without_a_wish_parts_of_speech_and_entities_are_looked_at_else_everything() -> None:
    assert default_features(["ent:GPE", "upos:VERB", "upos:ADJ", "dep:obj"], None) == (
        "upos:ADJ",
        "upos:VERB",
        "ent:GPE",
    )
    assert default_features(["VB", "NN"], None) == ("NN", "VB")
    assert default_features(["number"], ("number", "url")) == ("number", "url")


def test_a_closed_list_of_labels_answers_a_wrong_name_with_the_near_one() -> None:
    with pytest.raises(UnknownName, match=re.escape("no feature named 'nubmer'. Did you mean 'number'?")):
        check_known(parse_features(["nubmer"]), ("number", "url"))
