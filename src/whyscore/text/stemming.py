"""Stems and lemmas: what words of one root have in common.

Snowball's stemmers (Porter 2001) cut endings by rules; simplemma looks lemmas up in lists. Both take words in small
letters. Which languages they support is looked up at run time, so that newer versions add theirs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from typing import Literal, Protocol, runtime_checkable

from whyscore.errors import MissingExtra, SpecError, need_package
from whyscore.types import Signature

_EXTRA = ("the root match of mee", "mee")

StemmerName = Literal["auto", "snowball", "simplemma", "none"]

_SNOWBALL = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": "english",
    "eo": "esperanto", "es": "spanish", "et": "estonian", "eu": "basque", "fa": "persian", "fi": "finnish",
    "fr": "french", "ga": "irish", "hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian",
    "it": "italian", "lt": "lithuanian", "nb": "norwegian", "ne": "nepali", "nl": "dutch", "nn": "norwegian",
    "no": "norwegian", "pl": "polish", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian",
    "sv": "swedish", "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip


@runtime_checkable
class Stemmer(Protocol):
    """Says which words have one root: those with the same stem."""

    def signature(self) -> Signature:
        """Return the text that names every choice behind the stems."""

    def stems(self, words: Sequence[str]) -> list[str]:
        """Return the stem of each word; words come in small letters."""


@dataclass(frozen=True, slots=True)
class Snowball:
    """Stems by the rules of Snowball; `algorithm` is its name for the language."""

    algorithm: str

    def signature(self) -> Signature:
        return Signature(f"snowball-{self.algorithm}-{version('snowballstemmer')}")

    def stems(self, words: Sequence[str]) -> list[str]:
        """Return the stem of each word."""
        import snowballstemmer  # noqa: PLC0415 - an extra

        stems: list[str] = snowballstemmer.stemmer(self.algorithm).stemWords(list(words))
        return stems


@dataclass(frozen=True, slots=True)
class Lemmas:
    """Lemmas from the lists of simplemma; `code` is its name for the language."""

    code: str

    def signature(self) -> Signature:
        return Signature(f"simplemma-{self.code}-{version('simplemma')}")

    def stems(self, words: Sequence[str]) -> list[str]:
        """Return the lemma of each word, in small letters."""
        import simplemma  # noqa: PLC0415 - an extra

        return [simplemma.lemmatize(word, lang=self.code).lower() for word in words]


def stemmer(name: StemmerName, language: str | None) -> Stemmer | None:
    """Return the stemmer of a language; None where there is none.

    Args:
        name: `auto` takes Snowball's where it knows the language, else simplemma's; `none` takes none.
        language: a code such as `ru` or `pt-BR`; None where nobody knows.

    >>> stemmer("auto", "ru")
    Snowball(algorithm='russian')
    """
    if name == "none" or (language is None and name == "auto"):
        return None
    if language is None:
        raise SpecError(f"the stemmer {name!r} needs the language: write language='ru', or give the pair with -l en-ru")
    code = language_code(language)
    choices: dict[str, Stemmer | None] = {}
    if name in ("auto", "snowball"):
        algorithm = _SNOWBALL.get(code)
        choices["snowball"] = Snowball(algorithm) if algorithm in _algorithms() else None
    if name == "simplemma" or (name == "auto" and choices["snowball"] is None):
        choices["simplemma"] = Lemmas(code) if code in _lemma_languages() else None
    result = next((choice for choice in choices.values() if choice is not None), None)
    if result is None and name != "auto":
        raise SpecError(f"{name} does not know the language {language!r}; choose stemmer='auto' or 'none'")
    return result


def language_code(language: str) -> str:
    """Return the language of a code without region and script.

    >>> language_code("pt-BR"), language_code("zh_TW")
    ('pt', 'zh')
    """
    return language.lower().replace("_", "-").split("-")[0]


@lru_cache(maxsize=1)
def _algorithms() -> frozenset[str]:
    with need_package(MissingExtra.of(*_EXTRA)):
        import snowballstemmer  # noqa: PLC0415 - an extra
    return frozenset(snowballstemmer.algorithms())


@lru_cache(maxsize=1)
def _lemma_languages() -> frozenset[str]:
    with need_package(MissingExtra.of(*_EXTRA)):
        from simplemma.strategies.dictionaries.dictionary_factory import SUPPORTED_LANGUAGES  # noqa: PLC0415
    return frozenset(SUPPORTED_LANGUAGES)
