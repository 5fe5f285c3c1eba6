"""Parts of speech by HanTa (Wartena 2019), the Hanover tagger: English, German and Dutch models inside the package.

Words are those of NLTK's word tokenizer, a line taken as one sentence. Its tags become universal ones (`hanta_tags`).

HanTa unpickles its models, and would take a file of the same name from the current folder first. It is therefore given
the place of its own file, and only after that file is known to be the published one, byte for byte.

The tags of HanTa's three models as universal parts of speech.

| model | its tags | notes |
|---|---|---|
| English | CLAWS C5 | be is AUX; so are have before a participle and do before an infinitive, within three words |
| German | STTS | sein, haben, werden (VA) and modal verbs (VM) are AUX |
| Dutch | CGN | zijn, hebben, worden and modal verbs, recognised by their lemmas, are AUX |

Words without letter or digit are PUNCT, whatever their tag.
"""

import hashlib
import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Protocol

from whyscore.errors import DataError, MissingExtra, SpecError, need_package
from whyscore.protocols import Tagged
from whyscore.registry import spec_of
from whyscore.settings import check_fields
from whyscore.taggers.nltk import nltk_tokens
from whyscore.text.stemming import language_code
from whyscore.types import Signature

Tags = Sequence[tuple[str, str, str]]
"""Word, lemma and tag of each word of a sentence."""


def _table(**groups: str) -> dict[str, str]:
    return {tag: upos for upos, tags in groups.items() for tag in tags.split()}


_ENGLISH = _table(
    ADJ="AJ0 AJC AJS ORD",
    ADP="PRF PRP IN",
    ADV="AV0 AVP AVQ",
    AUX="VBB VBD VBG VBI VBN VBZ VM0",
    CCONJ="CJC",
    DET="AT0 DT0 DTQ",
    INTJ="ITJ",
    NOUN="NN NN0 NN1 NN2",
    NUM="CRD",
    PART="POS TO0 XX0",
    PRON="DPS EX0 PNI PNP PNQ PNX",
    PROPN="NP0",
    PUNCT="PUL PUN PUQ PUR",
    SCONJ="CJS CJT",
    VERB="VVB VVD VVG VVI VVN VVZ VDB VDD VDG VDI VDN VDZ VHB VHD VHG VHI VHN VHZ",
)
_GERMAN = _table(
    ADJ="ADJ(A) ADJ(D)",
    ADP="APPO APPR APPRART APZR PTKVZ",
    ADV="ADV PROAV PWAV",
    AUX="VA(FIN) VA(IMP) VA(INF) VA(PP) VM(FIN) VM(INF) VM(PP)",
    CCONJ="KOKOM KON",
    DET="ART PDAT PIAT PPOSAT PRELAT PWAT",
    INTJ="ITJ",
    NOUN="NN NNA NNI",
    NUM="CARD",
    PART="PTKA PTKANT PTKNEG PTKZU",
    PRON="PDS PIS PPER PPOSS PRELS PRF PWS",
    PROPN="NE",
    PUNCT="$( $, $.",
    SCONJ="KOUI KOUS",
    VERB="VV(FIN) VV(IMP) VV(INF) VV(IZU) VV(PP)",
)
# The first pattern that a tag begins with.
_DUTCH = (
    ("ADJ", "ADJ"),
    ("BW", "ADV"),
    ("LET", "PUNCT"),
    ("LID", "DET"),
    (r"N\(eigen", "PROPN"),
    (r"N\(", "NOUN"),
    (r"SPEC\(symb", "SYM"),
    ("TSW", "INTJ"),
    (r"TW\(hoofd", "NUM"),
    (r"TW\(rang", "ADJ"),
    (r"VG\(neven", "CCONJ"),
    (r"VG\(onder", "SCONJ"),
    (r"VNW\(\w+,adv-pron", "ADV"),
    (r"VNW\(\w+,(?:det|grad),.*prenom", "DET"),
    ("VNW", "PRON"),
    ("VZ", "ADP"),
    ("WW", "VERB"),
)
_DUTCH_HELPERS = frozenset(["zijn", "hebben", "worden", "zullen", "kunnen", "mogen", "moeten", "willen"])
_REACH = 3
_PARTICIPLES = frozenset(["VVN", "VBN", "VHN", "VDN", "VVD"])
_INFINITIVES = frozenset(["VVI", "VBI", "VHI", "VDI", "VVB"])


def to_universal(language: str, tags: Tags) -> list[str]:
    """Return the universal part of speech of each word of a sentence.

    >>> to_universal("en", [("She", "she", "PNP"), ("has", "have", "VHZ"), ("gone", "go", "VVN"), (".", ".", "PUN")])
    ['PRON', 'AUX', 'VERB', 'PUNCT']
    """
    reader = _READERS[language]
    return [reader(tags, place) if any(map(str.isalnum, word)) else "PUNCT" for place, (word, _, _) in enumerate(tags)]


def _english(tags: Tags, place: int) -> str:
    tag = tags[place][2]
    following = {other for _, _, other in tags[place + 1 : place + 1 + _REACH]}
    helped = _PARTICIPLES if tag.startswith("VH") else _INFINITIVES if tag.startswith("VD") else frozenset()
    return "AUX" if helped & following else _ENGLISH.get(tag, "X")


def _german(tags: Tags, place: int) -> str:
    return _GERMAN.get(tags[place][2], "X")


def _dutch(tags: Tags, place: int) -> str:
    _, lemma, tag = tags[place]
    if tag.startswith("WW") and lemma in _DUTCH_HELPERS:
        return "AUX"
    return next((upos for pattern, upos in _DUTCH if re.match(pattern, tag)), "X")


_READERS: Mapping[str, Callable[[Tags, int], str]] = {"de": _german, "en": _english, "nl": _dutch}


_VERSION = "1.2.1"
_MODELS = {"de": "morphmodel_ger.pgz", "en": "morphmodel_en.pgz", "nl": "morphmodel_dutch.pgz"}
_FILES = {
    "morphmodel_dutch.pgz": "f374e2200fb555eb1bea392af0c1c7b276971b89044ecbcedcbf2293d3edbe4b",
    "morphmodel_en.pgz": "99ddc9b14b3fe604b245e2d7a3aef59ab1bdd06b1bae4f4ce74738902e2a0265",
    "morphmodel_ger.pgz": "d0a23caa212663fe7715e18e937074287f80b9e3bab64ccebc12a81e0094db23",
}

# HanTa tries every way to cut a word into morphemes: one of 2,000 letters takes minutes. The beginning will do.
_LONGEST = 40


class _Tagger(Protocol):
    def tag_sent(self, sent: list[str]) -> list[tuple[str, str, str]]: ...


@dataclass(frozen=True, slots=True)
class Hanta:
    """Finds English, German and Dutch parts of speech with HanTa, without a download.

    Args:
        language: en, de or nl; None takes the language of the data, or English.
    """

    language: str | None = None

    def __post_init__(self) -> None:
        check_fields(self)

    def signature(self) -> Signature:
        with need_package(_missing()):
            version = metadata.version("HanTa")
        return Signature(spec_of(self), (("language", self._code), ("hanta", version)))

    def tag(self, texts: Sequence[str]) -> list[tuple[Tagged, ...]]:
        tagger = _load(_MODELS[self._code])
        return [_tag_text(text, tagger, self._code) for text in texts]

    @property
    def _code(self) -> str:
        code = language_code(self.language or "en")
        if code not in _MODELS:
            raise SpecError(
                f"hanta has no model for {self.language!r}, only for {', '.join(sorted(_MODELS))}: use spacy or stanza"
            )
        return code


def _tag_text(text: str, tagger: _Tagger, language: str) -> tuple[Tagged, ...]:
    tokens = nltk_tokens(text)
    tags = tagger.tag_sent([text[start : min(end, start + _LONGEST)] for _, start, end in tokens])
    return tuple(
        Tagged(start, end, (f"upos:{upos}", f"xpos:{tag}"))
        for (_, start, end), upos, (_, _, tag) in zip(tokens, to_universal(language, tags), tags, strict=True)
    )


def _missing() -> MissingExtra:
    return MissingExtra(f"hanta needs extra packages: pip install HanTa=={_VERSION}")


@lru_cache(maxsize=3)
def _load(model: str) -> _Tagger:
    with need_package(_missing()):
        module = importlib.import_module("HanTa.HanoverTagger")
    tagger: _Tagger = module.HanoverTagger(str(_find_published(Path(str(module.__file__)).parent / model)))
    return tagger


def _find_published(path: Path) -> Path:
    """Return the path of a model, which is refused unless it is the published one."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "missing"
    if digest != _FILES[path.name]:
        raise DataError(
            f"is not the model of HanTa {_VERSION}: its SHA-256 digest is {digest[:12]}…, expected "
            f"{_FILES[path.name][:12]}…. Install it again: pip install --force-reinstall HanTa=={_VERSION}",
            file=str(path),
        )
    return path
