"""The tags of HanTa's three models as universal parts of speech.

| model | its tags | notes |
|---|---|---|
| English | CLAWS C5 | be, have and do have tags of their own: be is AUX, have before a participle and do before an infinitive, within three words, too |
| German | STTS | sein, haben, werden (VA) and modal verbs (VM) are AUX |
| Dutch | CGN | zijn, hebben, worden and modal verbs, told by their lemmas, are AUX |

Words without letter or digit are PUNCT, whatever their tag.
"""  # noqa: E501 - a table

import re
from collections.abc import Callable, Mapping, Sequence

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


def universal(language: str, tags: Tags) -> list[str]:
    """Return the universal part of speech of each word of a sentence.

    >>> universal("en", [("She", "she", "PNP"), ("has", "have", "VHZ"), ("gone", "go", "VVN"), (".", ".", "PUN")])
    ['PRON', 'AUX', 'VERB', 'PUNCT']
    """
    one = _READERS[language]
    return [one(tags, place) if any(map(str.isalnum, word)) else "PUNCT" for place, (word, _, _) in enumerate(tags)]


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
