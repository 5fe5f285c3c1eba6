"""Parts of speech by HanTa (Wartena 2019), the Hanover tagger: English, German and Dutch models inside the package.

Words are those of NLTK's word tokenizer, a line taken as one sentence. Its tags become universal ones (`hanta_tags`).

HanTa unpickles its models, and would take a file of the same name from the current folder first. It is therefore given
the place of its own file, and only after that file is known to be the published one, byte for byte.
"""

import hashlib
import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Protocol

from whyscore.errors import DataError, MissingExtra, SpecError
from whyscore.options import check_fields
from whyscore.protocols import Tagged
from whyscore.registry import spec_of
from whyscore.taggers.hanta_tags import universal
from whyscore.taggers.nltk import nltk_tokens
from whyscore.types import Signature

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
        """Refuse options of the wrong type."""
        check_fields(self)

    def signature(self) -> Signature:
        """Return the spec, the language and the version of HanTa."""
        try:
            version = metadata.version("HanTa")
        except metadata.PackageNotFoundError as error:
            raise _missing() from error
        return Signature(spec_of(self), (("language", self._code), ("hanta", version)))

    def tag(self, texts: Sequence[str]) -> list[tuple[Tagged, ...]]:
        """Return the words of each text with universal (`upos:`) and the model's own (`xpos:`) tags, in order."""
        tagger = _loaded(_MODELS[self._code])
        return [_tagged(text, tagger, self._code) for text in texts]

    @property
    def _code(self) -> str:
        code = (self.language or "en").lower().replace("_", "-").partition("-")[0]
        if code not in _MODELS:
            raise SpecError(
                f"hanta has no model for {self.language!r}, only for {', '.join(sorted(_MODELS))}: use spacy or stanza"
            )
        return code


def _tagged(text: str, tagger: _Tagger, language: str) -> tuple[Tagged, ...]:
    tokens = nltk_tokens(text)
    found = tagger.tag_sent([text[start : min(end, start + _LONGEST)] for _, start, end in tokens])
    return tuple(
        Tagged(start, end, (f"upos:{upos}", f"xpos:{tag}"))
        for (_, start, end), upos, (_, _, tag) in zip(tokens, universal(language, found), found, strict=True)
    )


def _missing() -> MissingExtra:
    return MissingExtra(f"hanta needs extra packages: pip install HanTa=={_VERSION}")


@lru_cache(maxsize=3)
def _loaded(model: str) -> _Tagger:
    try:
        module = importlib.import_module("HanTa.HanoverTagger")
    except ImportError as error:
        raise _missing() from error
    tagger: _Tagger = module.HanoverTagger(str(_published(Path(str(module.__file__)).parent / model)))
    return tagger


def _published(path: Path) -> Path:
    """Return the path of a model, which is refused unless it is the published one."""
    found = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "missing"
    if found != _FILES[path.name]:
        raise DataError(
            f"is not the model of HanTa {_VERSION}: its SHA-256 digest is {found[:12]}…, expected "
            f"{_FILES[path.name][:12]}…. Install it again: pip install --force-reinstall HanTa=={_VERSION}",
            file=str(path),
        )
    return path
