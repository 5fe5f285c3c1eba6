"""How surprising words are by themselves, whatever stands around them: -log of a unigram probability, in nats.

Rare words are translated wrongly more often than frequent ones, so the surprisal of a word is a strong baseline for
finding errors without looking at the source (Shannon 1948 for the measure). Two estimates:

1. From pieces (`piece_surprisal`): each SentencePiece piece of the embedded encoder has a log-probability in a unigram
   model (Kudo 2018, arXiv 1804.10959). A word has the sum over its pieces, and letters without a piece count as the
   unknown piece. A piece over a word border is divided by characters. Works for every language and needs nothing else.
2. From word frequencies (`frequency_surprisal`): the package `wordfreq` lists words of 42 languages with their share of
   a large mixed corpus.
   a. A word is lower-cased, its punctuation is dropped and digits of longer numbers become zeros, as in the lists.
   b. A listed word has -log of its share.
   c. Any other word is cut by the word boundaries of Unicode, characters in Chinese, and has the largest surprisal of
      its tokens: "state-of-the-art" is as rare as its rarest part. A token that is not listed counts as the rarest one.
   d. Punctuation has 0.

`frequency_problem` says whether the second is available, and why not.
"""

import importlib
import math
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple, Protocol, cast

import numpy as np
import regex

from whyscore.models.encoders.embedded import segmenter, vocabulary
from whyscore.text.alignment import Pieces, pool_words
from whyscore.text.splitters import UnicodeWords
from whyscore.text.stemming import language_code
from whyscore.types import FloatVector, Words

EXTRA = "frequencies"

_NUMBER = regex.compile(r"\d(?=\d)|(?<=\d)\d")
_SPEAKS = regex.compile(r"[\p{L}\p{N}]")


class FrequencyNotice(UserWarning):
    """Word frequencies were asked for and are not there."""


@lru_cache(maxsize=1 << 14)
def piece_surprisal(words: Words) -> FloatVector:
    """Return the surprisal of each word by the embedded encoder's own unigram model; the values cannot be changed.

    >>> from whyscore.text.splitters import white_space
    >>> the, rare = piece_surprisal(white_space("the ornithologist"))
    >>> bool(the < rare)
    True
    """
    table = vocabulary()
    cut = segmenter().cut(words.text)
    surprisals = [-(table.unknown_score if piece == table.unknown else table.scores[piece]) for piece in cut.pieces]
    pieces = Pieces(cut.spans, [table.pieces[piece] for piece in cut.pieces])
    values = np.array(surprisals, dtype=np.float64)
    # A word without a piece is one the tokenizer reads as nothing: control characters and the like.
    pooled = pool_words(words, pieces, values, pool="sum", fill="value", value=0.0, split=True).values
    pooled.flags.writeable = False
    return pooled


def frequency_surprisal(words: Words, language: str) -> FloatVector:
    """Return the surprisal of each word by its frequency in the language; `frequency_problem` must have found none."""
    listed = _read_list(_code(language))
    return np.array([_surprisal(word, listed) for word in words], dtype=np.float64)


def frequency_problem(language: str | None) -> str | None:
    """Return why there are no word frequencies for a language and what to do about it; None where there are."""
    package = _package()
    if package is None:
        return f"word frequencies need an extra package: pip install 'whyscore[{EXTRA}]'"
    if language is None:
        return "the language is not known; name it, for instance by -l de-en"
    if _code(language) not in package.available_languages():
        languages = " ".join(sorted(package.available_languages()))
        return f"no word frequencies for {language!r}; there are lists for: {languages}"
    return None


class _Frequencies(Protocol):
    """What is used of wordfreq."""

    def available_languages(self) -> Mapping[str, str]:
        """Return the languages that have a list."""

    def get_frequency_dict(self, lang: str) -> Mapping[str, float]:
        """Return the share of each word in the texts of a language."""


class _Listed(NamedTuple):
    surprisal: Mapping[str, float]
    rarest: float


@lru_cache(maxsize=1)
def _package() -> _Frequencies | None:
    try:
        return cast("_Frequencies", importlib.import_module("wordfreq"))
    except ImportError:
        return None


@lru_cache(maxsize=8)
def _read_list(code: str) -> _Listed:
    frequencies = cast("_Frequencies", _package()).get_frequency_dict(code)
    surprisal = {word: -math.log(share) for word, share in frequencies.items() if share > 0}
    return _Listed(surprisal, max(surprisal.values()))


def _code(language: str) -> str:
    """Return the language alone: de of de-AT, zh of zh_TW; Norwegian and Serbo-Croatian under their listed names."""
    code = language_code(language)
    return {"no": "nb", "hr": "sh", "sr": "sh", "bs": "sh"}.get(code, code)


def _surprisal(word: str, listed: _Listed) -> float:
    tokens = [_NUMBER.sub("0", token) for token in UnicodeWords().split(word.lower()) if _SPEAKS.search(token)]
    whole = listed.surprisal.get("".join(tokens))
    if whole is not None:
        return whole
    return max((listed.surprisal.get(token, listed.rarest) for token in tokens), default=0.0)
