"""Features by Stanza (Qi, Zhang, Zhang, Bolton and Manning 2020): parts of speech, morphology, relations, entities.

The models must have been downloaded before: nothing is fetched here. A language without models is an error with the
command that gets them.
"""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from typing import Protocol

from whyscore.errors import MissingExtra, need_package
from whyscore.protocols import Tagged
from whyscore.registry import spec_of
from whyscore.settings import check_fields
from whyscore.taggers.aligned import Word, tag_words
from whyscore.types import Signature

_PROCESSORS = "tokenize,mwt,pos,lemma,depparse,ner"


class _Word(Protocol):
    id: int
    upos: str | None
    xpos: str | None
    feats: str | None
    deprel: str | None
    head: int


class _Token(Protocol):
    start_char: int
    end_char: int
    words: Sequence[_Word]


class _Entity(Protocol):
    start_char: int
    end_char: int
    type: str


class _Sentence(Protocol):
    tokens: Sequence[_Token]
    ents: Sequence[_Entity]


class _Parsed(Protocol):
    sentences: Sequence[_Sentence]


class _Pipeline(Protocol):
    def bulk_process(self, texts: Sequence[str]) -> Sequence[_Parsed]: ...


@dataclass(frozen=True, slots=True)
class Stanza:
    """Finds parts of speech, entities, morphology and relations with Stanza's models of a language.

    Args:
        language: None takes the language of the data, or English.
    """

    language: str | None = None

    def __post_init__(self) -> None:
        check_fields(self)

    def signature(self) -> Signature:
        with need_package(_missing()):
            version = metadata.version("stanza")
        return Signature(spec_of(self), (("language", self.language or "en"), ("stanza", version)))

    def tag(self, texts: Sequence[str]) -> list[tuple[Tagged, ...]]:
        non_blank = [text for text in texts if text.strip()]
        parsed = iter(_pipeline(self.language or "en").bulk_process(non_blank) if non_blank else ())
        return [_tag_text(next(parsed)) if text.strip() else () for text in texts]


def _tag_text(parsed: _Parsed) -> tuple[Tagged, ...]:
    tagged: list[Tagged] = []
    for sentence in parsed.sentences:
        pairs = [(token, word) for token in sentence.tokens for word in token.words]
        numbers = {word.id: number for number, (_, word) in enumerate(pairs)}
        tagged += tag_words([_word(token, word, numbers) for token, word in pairs])
        tagged += [Tagged(entity.start_char, entity.end_char, (f"ent:{entity.type}",)) for entity in sentence.ents]
    return tuple(tagged)


def _word(token: _Token, word: _Word, numbers: dict[int, int]) -> Word:
    pairs = tuple(word.feats.split("|")) if word.feats else ()
    tags = (word.upos or "", word.xpos or "")
    return Word(token.start_char, token.end_char, *tags, pairs, word.deprel or "", numbers.get(word.head))


def _missing() -> MissingExtra:
    return MissingExtra("stanza needs the package 'stanza': pip install stanza")


@lru_cache(maxsize=2)
def _pipeline(language: str) -> _Pipeline:
    with need_package(_missing()):
        stanza = importlib.import_module("stanza")
    try:
        loaded: _Pipeline = stanza.Pipeline(
            language, processors=_PROCESSORS, download_method=None, verbose=False, use_gpu=False
        )
    except Exception as error:
        reason = " ".join(str(error).split())[:120]
        cure = f"python -c \"import stanza; stanza.download('{language}')\""
        raise MissingExtra(f"stanza has no models for {language!r} ({reason}): {cure}") from error
    return loaded
