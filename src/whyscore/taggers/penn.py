"""Penn Treebank tags as universal parts of speech.

| Penn | universal |
|---|---|
| NN NNS | NOUN |
| NNP NNPS | PROPN |
| JJ* | ADJ |
| RB* | ADV |
| PRP PRP$ WP WP$ EX | PRON |
| DT PDT WDT | DET |
| IN | ADP |
| CC | CCONJ |
| CD | NUM |
| MD, and forms of be | AUX |
| have before VBN or VBD, do before VB, within three words | AUX |
| other VB* | VERB |
| the rest | X |

Words without letter or digit are PUNCT, whatever their tag: taggers call curly quotes nouns.
"""

from collections.abc import Sequence

_UNIVERSAL = {
    **dict.fromkeys(("NN", "NNS"), "NOUN"),
    **dict.fromkeys(("NNP", "NNPS"), "PROPN"),
    **dict.fromkeys(("JJ", "JJR", "JJS"), "ADJ"),
    **dict.fromkeys(("RB", "RBR", "RBS"), "ADV"),
    **dict.fromkeys(("PRP", "PRP$", "WP", "WP$", "EX"), "PRON"),
    **dict.fromkeys(("DT", "PDT", "WDT"), "DET"),
    "IN": "ADP",
    "CC": "CCONJ",
    "CD": "NUM",
    "MD": "AUX",
}
_BE = frozenset(["be", "am", "is", "are", "was", "were", "been", "being", "'s", "'re", "'m", "’s", "’re", "’m"])
_HAVE = frozenset(["have", "has", "had", "having", "'ve", "'d", "’ve", "’d"])
_DO = frozenset(["do", "does", "did"])
_REACH = 3


def universal(words: Sequence[str], tags: Sequence[str]) -> list[str]:
    """Return the universal part of speech of each word of a sentence.

    >>> universal(["She", "has", "often", "gone", "."], ["PRP", "VBZ", "RB", "VBN", "."])
    ['PRON', 'AUX', 'ADV', 'VERB', 'PUNCT']
    """
    return [_one(words, tags, place) for place in range(len(words))]


def _one(words: Sequence[str], tags: Sequence[str], place: int) -> str:
    word, tag = words[place], tags[place]
    if not any(character.isalnum() for character in word):
        return "PUNCT"
    if tag.startswith("VB"):
        following = tags[place + 1 : place + 1 + _REACH]
        return "AUX" if _helps(word.lower(), following) else "VERB"
    return _UNIVERSAL.get(tag, "X")


def _helps(word: str, following: Sequence[str]) -> bool:
    """Return whether a verb only helps another one."""
    if word in _BE:
        return True
    if word in _HAVE:
        return "VBN" in following or "VBD" in following
    return word in _DO and "VB" in following
