"""From texts to the alignments of MEE: words, stems and vectors, each asked for once per call.

1. Cut every distinct text into words (`compat`: at white space).
2. Pair equal words.
3. Ask the stemmer once for the words that are left (`paper`, where the language has one), and pair words of one stem.
4. Ask the word vectors once for the words that are left, and pair similar words.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from whyscore.metrics.mee_links import (
    Counts,
    Link,
    best_links,
    cosine_matrix,
    counted,
    exact_links,
    first_links,
    stem_links,
)
from whyscore.models.word_vectors import Found, WordVectors, looked_up
from whyscore.text.segmentation import Segmenter
from whyscore.text.splitters import white_space
from whyscore.text.stemming import Stemmer
from whyscore.types import Words

Mode = Literal["paper", "compat"]
Form = Literal["NFC", "NFKC"]
Pair = tuple[str, str]
"""Hypothesis and reference."""


@dataclass(frozen=True, eq=False)
class Matcher:
    """Everything that decides which words match."""

    mode: Mode
    segmenter: Segmenter
    stemmer: Stemmer | None
    words: WordVectors | None
    root: float
    synonym: float
    lowercase: bool = False
    normalise: Form | None = None

    @property
    def by_cosine(self) -> bool:
        """Whether root matches are made by vectors."""
        return self.mode == "compat" or self.stemmer is None

    def facts(self) -> dict[str, str]:
        """Return what a signature says of the matching."""
        stem = f"cos{self.root:g}" if self.stemmer is None else self.stemmer.signature().spec
        return {
            "mode": self.mode,
            "segmenter": "white-space" if self.mode == "compat" else self.segmenter.name,
            "root": f"cos{self.root:g}" if self.by_cosine else stem,
            "syn": f"cos{self.synonym:g}",
            "words": "none" if self.words is None else self.words.signature().spec,
            "case": "lower" if self.lowercase else "mixed",
            "norm": self.normalise or "none",
            "beta": "3",
        }

    @property
    def stable(self) -> bool:
        """Whether the facts name everything."""
        named = [one.signature().stable for one in (self.words, self.stemmer) if one is not None]
        return all(named)

    def cut(self, text: str) -> Words:
        """Return the words of a text with their places in it."""
        return white_space(text) if self.mode == "compat" else self.segmenter.split(text)

    def form(self, word: str) -> str:
        """Return a word as it is compared."""
        return self.normalised(word.lower() if self.lowercase else word)

    def normalised(self, text: str) -> str:
        """Return a text in the normal form that was asked for, if any."""
        return text if self.normalise is None else unicodedata.normalize(self.normalise, text)


class Side(NamedTuple):
    """The words of one text: where they stand, and as they are compared."""

    words: Words
    forms: tuple[str, ...]


class Alignment(NamedTuple):
    """Which words of two texts matched; `asked` and `unknown` count the words that were looked up in the vectors."""

    hypothesis: Side
    reference: Side
    links: tuple[Link, ...]
    no_vector: frozenset[str]
    """The words that were looked up and have no vector."""
    unknown: float
    """Their share of the words that were looked up; 0 where none was."""

    @property
    def counts(self) -> Counts:
        """How many matches of each kind."""
        return counted(self.links, len(self.hypothesis.forms), len(self.reference.forms))


def aligned(matcher: Matcher, pairs: Sequence[Pair]) -> dict[Pair, Alignment]:
    """Return the alignment of each distinct pair; stemmer and vectors are asked once for all."""
    sides = {text: _side(matcher, text) for text in dict.fromkeys(text for pair in pairs for text in pair)}
    drafts = [
        _Draft(pair, sides[pair[0]], sides[pair[1]], tuple(exact_links(sides[pair[0]].forms, sides[pair[1]].forms)))
        for pair in dict.fromkeys(pairs)
    ]
    if matcher.mode == "paper" and matcher.stemmer is not None:
        drafts = _stemmed(matcher.stemmer, drafts)
    return {draft.pair: draft.done(links, found) for draft, links, found in _similar(matcher, drafts)}


class _Draft(NamedTuple):
    """An alignment in the making."""

    pair: Pair
    hypothesis: Side
    reference: Side
    links: tuple[Link, ...]

    @property
    def lengths(self) -> tuple[int, int]:
        return len(self.hypothesis.forms), len(self.reference.forms)

    def left(self) -> tuple[list[int], list[int]]:
        """Return the numbers of the words that have no partner yet."""
        here = {link.hypothesis for link in self.links}
        there = {link.reference for link in self.links}
        own, other = self.lengths
        return [k for k in range(own) if k not in here], [k for k in range(other) if k not in there]

    def done(self, links: Iterable[Link], found: "_Asked") -> Alignment:
        return Alignment(self.hypothesis, self.reference, (*self.links, *links), found.missing, found.share)


class _Asked(NamedTuple):
    missing: frozenset[str]
    share: float


def _side(matcher: Matcher, text: str) -> Side:
    words = matcher.cut(text)
    return Side(words, tuple(map(matcher.form, words)))


def _stemmed(stemmer: Stemmer, drafts: Sequence[_Draft]) -> list[_Draft]:
    """Return the drafts with the root matches added; words without a letter or digit have no root."""
    left = [draft.left() for draft in drafts]
    asked = [
        (_lower(draft.hypothesis, here), _lower(draft.reference, there))
        for draft, (here, there) in zip(drafts, left, strict=True)
    ]
    distinct = sorted({word for sides in asked for side in sides for word in side.values()})
    stems = dict(zip(distinct, stemmer.stems(distinct), strict=True))
    result = []
    for draft, (here, there) in zip(drafts, asked, strict=True):
        own, other = ({number: stems[word] for number, word in side.items()} for side in (here, there))
        result.append(draft._replace(links=(*draft.links, *stem_links(own, other, draft.lengths))))
    return result


def _lower(side: Side, numbers: Iterable[int]) -> dict[int, str]:
    return {n: side.forms[n].lower() for n in numbers if any(map(str.isalnum, side.forms[n]))}


def _similar(matcher: Matcher, drafts: Sequence[_Draft]) -> list[tuple[_Draft, list[Link], _Asked]]:
    """Return the matches by vectors of each draft."""
    places = [_looked_at(matcher, draft) for draft in drafts]
    forms = [
        ([draft.hypothesis.forms[n] for n in here], [draft.reference.forms[n] for n in there])
        for draft, (here, there) in zip(drafts, places, strict=True)
    ]
    distinct = sorted({word for sides in forms for side in sides for word in side})
    rows = {word: row for row, word in enumerate(distinct)}
    found = looked_up(matcher.words, distinct) if matcher.words is not None else None
    result: list[tuple[_Draft, list[Link], _Asked]] = []
    for draft, own, (here, there) in zip(drafts, places, forms, strict=True):
        if found is None or not here or not there:
            result.append((draft, [], _Asked(frozenset(), 0.0)))
            continue
        numbers = [rows[word] for word in here], [rows[word] for word in there]
        links = _linked(matcher, draft, found, own, numbers)
        missing = [word for word in (*here, *there) if not found.known[rows[word]]]
        result.append((draft, links, _Asked(frozenset(missing), len(missing) / (len(here) + len(there)))))
    return result


def _looked_at(matcher: Matcher, draft: _Draft) -> tuple[Sequence[int], Sequence[int]]:
    """Return the words whose vectors are compared; none where a side has nothing left."""
    here, there = draft.left()
    if matcher.mode == "compat":
        here = list(range(draft.lengths[0]))
    return (here, there) if here and there else ((), ())


_Numbers = tuple[Sequence[int], Sequence[int]]


def _linked(matcher: Matcher, draft: _Draft, found: Found, places: _Numbers, rows: _Numbers) -> list[Link]:
    cosines = cosine_matrix(found.rows, found.known, *rows)
    if matcher.mode == "compat":
        return first_links(cosines, places, root=matcher.root, synonym=matcher.synonym)
    root = matcher.root if matcher.by_cosine else None
    return best_links(cosines, places, draft.lengths, root=root, synonym=matcher.synonym)
