"""Word lists with values, read from the user's own files, and the score of a text under them.

1. A table is read by its header: the columns of Brysbaert et al. (2014) concreteness, NRC-VAD (Mohammad 2018), Warriner
   et al. (2013) norms and WKWSCI sentiment (Khoo and Johnkhan 2018) are known; else the first column is the word and
   the second its value. Entries of two words are left out: texts are looked up word by word.
2. A word is looked up as it is, then in lower case, then by its lemma.
"""

import csv
import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

from whyscore.errors import DataError, SpecError
from whyscore.taggers.aligned import lines_of
from whyscore.taggers.rules import finder

_WORDS = ("word", "term", "form", "lemma")
_VALUES = ("conc.m", "valence", "v.mean.sum", "sentiment", "polarity", "score", "value", "rating")
_ALIASES = {"valence": "v.mean.sum", "arousal": "a.mean.sum", "dominance": "d.mean.sum", "concreteness": "conc.m"}
_TOKEN = re.compile(r"\w+(?:['’-]\w+)*")
_REACH = 3


class Columns(NamedTuple):
    """Which column holds the value; `texts` where it is a text."""

    value: str | None = None
    texts: bool = False


class Lexicon(NamedTuple):
    """Values (or texts) by word."""

    values: Mapping[str, float]
    texts: Mapping[str, str]
    digest: str


def lexicon_values(path: str, columns: Columns) -> Lexicon:
    """Return a word list; a changed file is read again."""
    try:
        state = Path(path).stat()
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", file=path) from error
    return _read(path, columns, (state.st_mtime_ns, state.st_size))


def token_score(text: str, values: Mapping[str, float], lemmas: Mapping[str, str], *, sentiment: bool) -> float | None:
    """Return the mean value of the words found, or their balance of positive and negative; None if none is found.

    >>> token_score("not a good day", {"good": 1.0}, {}, sentiment=True)
    -0.25
    """
    words = _TOKEN.findall(text)
    found = [
        (place, value) for place, word in enumerate(words) if (value := _look_up(word, values, lemmas)) is not None
    ]
    if not found:
        return None
    if not sentiment:
        return sum(value for _, value in found) / len(found)
    negations = {place for place, word in enumerate(words) if any(finder("negation", "en")(word))}
    turned = [_sign(value) * (-1 if negations & set(range(place - _REACH, place)) else 1) for place, value in found]
    return sum(turned) / len(words)


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _look_up(word: str, values: Mapping[str, float], lemmas: Mapping[str, str]) -> float | None:
    lower = word.lower()
    for form in (word, lower, lemmas.get(word) or lemmas.get(lower, "")):
        if form in values:
            return values[form]
    return None


@lru_cache(maxsize=16)
def _read(path: str, columns: Columns, _: tuple[int, int]) -> Lexicon:
    lines = lines_of(path)
    # Words may hold quotation marks; in TSV they mean nothing.
    commas = path.lower().endswith(".csv")
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if commas else csv.QUOTE_NONE
    try:
        rows = [row for row in csv.reader(lines, delimiter="," if commas else "\t", quoting=quoting) if row]
    except csv.Error as error:
        raise DataError(f"cannot be read as a table: {error}", file=path) from error
    if not rows:
        raise DataError("is empty: expected a table of words and values", file=path)
    header = [cell.strip().strip('"').lower() for cell in rows[0]]
    word, value, first = _places(header, columns, path)
    values: dict[str, float] = {}
    texts: dict[str, str] = {}
    for number, row in enumerate(rows[first:], start=first + 1):
        if len(row) <= max(word, value):
            raise DataError(f"expected {max(word, value) + 1} columns, found {len(row)}", file=path, line=number)
        entry, held = row[word].strip().strip('"'), row[value].strip().strip('"')
        if columns.texts:
            texts[entry] = held
        elif " " not in entry:
            values[entry] = _number(held, path, number)
    digest = hashlib.blake2b("\n".join(lines).encode(), digest_size=8).hexdigest()
    return Lexicon(values, texts, digest)


def _places(header: Sequence[str], columns: Columns, path: str) -> tuple[int, int, int]:
    """Return the columns of word and value, and the first row of data."""
    known = [name for name in _WORDS if name in header]
    if columns.value is not None:
        asked = columns.value.lower()
        name = next((name for name in (asked, _ALIASES.get(asked, asked)) if name in header), None)
        if name is None:
            raise SpecError(f"{path} has no column {columns.value!r}; it has: {', '.join(header)}")
        return (header.index(known[0]) if known else 0), header.index(name), 1
    values = [name for name in _VALUES if name in header]
    if known and values and not columns.texts:
        return header.index(known[0]), header.index(values[0]), 1
    return 0, 1, 1 if known else 0


def _number(text: str, path: str, line: int) -> float:
    polarity = {"positive": 1.0, "negative": -1.0, "neutral": 0.0}.get(text.lower())
    if polarity is not None:
        return polarity
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DataError(f"expected a number, found {text!r}", file=path, line=line)
    return value
