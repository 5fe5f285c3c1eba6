r"""Words as MEE compares them, with exact code-point spans, in scripts with and without blanks.

1. A word is `\w+(?:[-'’]\w+)*`, letters with their marks; every other character that is no blank is a word of its own.
2. Runs of Chinese, Japanese, Thai, Lao, Khmer and Burmese letters are cut by a segmenter of the language where one is
   installed (jieba, fugashi, pythainlp), and else into characters as readers see them.

Which segmenter runs depends on what is installed, so it is part of the signature; `segmenter=` pins it.
"""

import importlib
import importlib.util
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from importlib.metadata import version
from typing import Literal, NamedTuple, cast

import regex

from whyscore.errors import MissingExtra
from whyscore.text.splitters import white_space
from whyscore.text.stemming import primary
from whyscore.types import Words

SegmenterName = Literal["auto", "characters", "jieba", "fugashi", "pythainlp", "split"]

_NO_BLANKS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_LETTER = rf"[\w--[{_NO_BLANKS}]]"
_WORDS = regex.compile(
    rf"(?P<run>[{_NO_BLANKS}][{_NO_BLANKS}\p{{M}}ー々]*)|{_LETTER}+(?:[-'’]{_LETTER}+)*|[^\w\s]", regex.V1
)
_GRAPHEMES = regex.compile(r"\X")

_OF_LANGUAGE: dict[str, Literal["jieba", "fugashi", "pythainlp"]] = {
    "zh": "jieba",
    "ja": "fugashi",
    "th": "pythainlp",
}

Cut = Callable[[str], Sequence[str]]
"""A run of letters -> its words in order; joined they are the run."""


class Segmenter(NamedTuple):
    """How texts are cut into words."""

    name: str
    """With the edition of the package, as it stands in signatures."""
    split: Callable[[str], Words]


def segmenter(name: SegmenterName, language: str | None) -> Segmenter:
    """Return what cuts texts of a language into words.

    `auto` takes the segmenter of the language if it is installed, and characters else; `split` takes what stands
    between blanks, for texts that are cut already.

    >>> list(segmenter("auto", "ru").split("Кот-учёный спит."))
    ['Кот-учёный', 'спит', '.']
    >>> list(segmenter("characters", "zh").split("我有猫。"))
    ['我', '有', '猫', '。']
    """
    if name == "split":
        return Segmenter(name, white_space)
    chosen = name
    if name == "auto":
        wanted = _OF_LANGUAGE.get(primary(language)) if language else None
        chosen = wanted if wanted is not None and importlib.util.find_spec(wanted) else "characters"
    cut = _cutter(chosen)
    told = chosen if chosen == "characters" else f"{chosen}-{version(chosen)}"
    return Segmenter(told, lambda text: Words(text, tuple(_spans(text, cut))))


def _spans(text: str, cut: Cut) -> Iterator[tuple[int, int]]:
    for match in _WORDS.finditer(text):
        if match["run"] is None:
            yield match.span()
            continue
        start = match.start()
        for word in cut(match["run"]):
            yield start, start + len(word)
            start += len(word)


@lru_cache(maxsize=8)
def _cutter(name: str) -> Cut:
    makers = {"characters": lambda: _GRAPHEMES.findall, "jieba": _jieba, "fugashi": _fugashi, "pythainlp": _pythainlp}
    try:
        # Packages may warn of their own code while they are loaded; users can do nothing about it.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return cast("Cut", makers[name]())
    except ImportError as error:
        raise MissingExtra(f"the segmenter {name!r} needs the package {error.name!r}: pip install {name}") from error


def _jieba() -> Cut:
    jieba = importlib.import_module("jieba")
    jieba.setLogLevel(logging.WARNING)
    tokenizer = jieba.Tokenizer()
    tokenizer.initialize()
    return cast("Cut", tokenizer.lcut)


def _fugashi() -> Cut:
    tagger = importlib.import_module("fugashi").Tagger("-Owakati")
    return lambda run: [word.surface for word in tagger(run)]


def _pythainlp() -> Cut:
    tokenize = importlib.import_module("pythainlp.tokenize").word_tokenize
    return lambda run: tokenize(run, keep_whitespace=True)
