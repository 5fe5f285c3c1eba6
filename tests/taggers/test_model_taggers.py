"""Taggers with a model: spaCy for real, the others as far as their data are installed."""

import re
import types
from collections.abc import Sequence

import pytest

from whyscore.errors import MissingExtra, SpecError
from whyscore.taggers import nltk as nltk_module
from whyscore.taggers import spacy as spacy_module
from whyscore.taggers import stanza as stanza_module
from whyscore.taggers.nltk import Nltk, nltk_tokens
from whyscore.taggers.penn import universal
from whyscore.taggers.spacy import Spacy
from whyscore.taggers.stanza import Stanza
from whyscore.taggers.words import Word, entities, tagged_words

TEXT = "John Smith did not buy the well-known house in New York."


@pytest.fixture(scope="module")
def spacy_tags() -> dict[str, set[str]]:
    pytest.importorskip("spacy")
    try:
        (tags,) = Spacy().tag([TEXT])
    except MissingExtra as error:
        pytest.skip(str(error))
    found: dict[str, set[str]] = {}
    for start, end, labels in tags:
        found.setdefault(TEXT[start:end], set()).update(labels)
    return found


def test_spacy_gives_parts_of_speech_morphology_relations_and_entities(spacy_tags: dict[str, set[str]]) -> None:
    assert spacy_tags["house"] >= {"upos:NOUN", "xpos:NN", "feats:Number=Sing", "dep:dobj", "distance:5"}
    assert spacy_tags["the"] >= {"upos:DET", "feats:Definite=Def", "distance:4"}
    assert spacy_tags["John Smith"] == {"ent:PERSON"}
    assert spacy_tags["New York"] == {"ent:GPE"}
    assert "head:5" in spacy_tags["buy"]
    assert not any(label.startswith("distance:") for label in spacy_tags["."] | spacy_tags["buy"])


def test_spacy_tells_its_pipeline_and_version_without_loading_it(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("spacy")
    monkeypatch.setattr(spacy_module, "_pipeline", lambda _: pytest.fail("loaded"))
    try:
        signature = str(Spacy().signature())
    except MissingExtra as error:
        pytest.skip(str(error))
    assert re.fullmatch(r"spacy\|model:en_core_web_sm\w*\|version:3\.8\.0\|spacy:3\.8\.\d+", signature)


def test_the_official_english_pipeline_is_taken_before_the_repacked_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spacy_module, "_version", lambda _: "3.8.0")
    assert Spacy()._name() == "en_core_web_sm"
    assert Spacy(language="de-AT")._name() == "de_core_news_sm"
    assert Spacy(model="mine", language="de")._name() == "mine"


def test_a_missing_pipeline_is_told_with_the_command_that_installs_it() -> None:
    pytest.importorskip("spacy")
    message = "spacy has no pipeline 'xx_none': python -m spacy download xx_none"
    with pytest.raises(MissingExtra, match=re.escape(message)):
        Spacy(model="xx_none").signature()
    with pytest.raises(MissingExtra, match=re.escape(message)):
        Spacy(model="xx_none").tag(["a"])


def test_without_spacy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spacy_module, "_version", lambda _: None)
    with pytest.raises(MissingExtra, match=re.escape("spacy needs extra packages: pip install 'whyscore[tagging]'")):
        Spacy().signature()


def test_an_empty_name_of_a_pipeline_is_refused() -> None:
    with pytest.raises(SpecError, match="spacy: model is empty"):
        Spacy(model="")


def test_words_that_share_a_span_are_one_with_the_labels_of_all() -> None:
    tags = tagged_words([Word(0, 2, "ADP", head=2), Word(0, 2, "DET", head=2), Word(3, 7, "NOUN")])
    assert [(tag.start, tag.end) for tag in tags] == [(0, 2), (3, 7)]
    assert tags[0].features == ("upos:ADP", "distance:2", "upos:DET", "distance:1")


@pytest.mark.parametrize(
    ("labels", "spans"),
    [
        (["B-A", "I-A", "O"], [(0, 2)]),
        (["B-A", "B-A", "O"], [(0, 1), (1, 2)]),
        (["S-A", "S-A", "I-B"], [(0, 1), (1, 2), (2, 3)]),
        (["B-A", "E-A", "I-A"], [(0, 2), (2, 3)]),
        (["O", "I-A", "I-B"], [(1, 2), (2, 3)]),
    ],
)
def test_entities_come_from_their_borders(labels: list[str], spans: list[tuple[int, int]]) -> None:
    found = entities((k, k + 1, label) for k, label in enumerate(labels))
    assert [(tag.start, tag.end) for tag in found] == spans


@pytest.mark.parametrize(
    ("words", "tags", "expected"),
    [
        ("He does not go", "PRP VBZ RB VB", "PRON AUX ADV VERB"),
        ("He does it well today , go", "PRP VBZ PRP RB NN , VB", "PRON VERB PRON ADV NOUN PUNCT VERB"),
        ("It 's had fun", "PRP VBZ VBD NN", "PRON AUX VERB NOUN"),
        ("They have three houses", "PRP VBP CD NNS", "PRON VERB NUM NOUN"),
        ("” London can and to", "NN NNP MD CC TO", "PUNCT PROPN AUX CCONJ X"),
    ],
)
def test_penn_tags_become_universal_ones(words: str, tags: str, expected: str) -> None:
    assert universal(words.split(), tags.split()) == expected.split()


def test_nltk_tokens_keep_their_place_in_the_text() -> None:
    text = 'He said "can\'t".'
    assert [(token, text[start:end]) for token, start, end in nltk_tokens(text)] == [
        ("He", "He"),
        ("said", "said"),
        ("``", '"'),
        ("ca", "ca"),
        ("n't", "n't"),
        ("''", '"'),
        (".", "."),
    ]
    assert nltk_tokens("") == []


class FakePerceptron:
    def tag(self, tokens: Sequence[str]) -> list[tuple[str, str]]:
        return [(token, "NN") for token in tokens]


def test_nltk_tags_every_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nltk_module, "_perceptron", FakePerceptron)
    assert Nltk().tag(["a cat."]) == [
        ((0, 1, ("upos:NOUN", "xpos:NN")), (2, 5, ("upos:NOUN", "xpos:NN")), (5, 6, ("upos:PUNCT", "xpos:NN")))
    ]


def test_missing_data_of_nltk_are_told_with_the_command_that_gets_them(monkeypatch: pytest.MonkeyPatch) -> None:
    import nltk.tag.perceptron

    def absent(**_: object) -> None:
        raise LookupError

    monkeypatch.setattr(nltk.tag.perceptron, "PerceptronTagger", absent)
    nltk_module._perceptron.cache_clear()
    message = "nltk lacks the data of its tagger: python -m nltk.downloader averaged_perceptron_tagger_eng"
    with pytest.raises(MissingExtra, match=re.escape(message)):
        Nltk().tag(["a"])


def test_stanza_words_and_entities_become_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = types.SimpleNamespace
    word = plain(id=1, upos="NOUN", xpos="NN", feats="Number=Sing", deprel="root", head=0)
    sentence = plain(
        tokens=[plain(start_char=0, end_char=4, words=[word])], ents=[plain(start_char=0, end_char=4, type="GPE")]
    )
    parser = plain(bulk_process=lambda texts: [plain(sentences=[sentence]) for _ in texts])
    monkeypatch.setattr(stanza_module, "_pipeline", lambda _: parser)
    labels = ("upos:NOUN", "xpos:NN", "dep:root", "feats:Number=Sing")
    assert Stanza().tag(["Rome", " "]) == [((0, 4, labels), (0, 4, ("ent:GPE",))), ()]


def test_a_language_without_stanza_models_is_told_with_the_command_that_gets_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def absent(*_: object, **__: object) -> None:
        raise FileNotFoundError("no such\nfile")

    monkeypatch.setattr(stanza_module.importlib, "import_module", lambda _: types.SimpleNamespace(Pipeline=absent))
    stanza_module._pipeline.cache_clear()
    message = "stanza has no models for 'xx' (no such file): python -c \"import stanza; stanza.download('xx')\""
    with pytest.raises(MissingExtra, match=re.escape(message)):
        Stanza(language="xx").tag(["a"])
