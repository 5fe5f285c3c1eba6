r"""The alignment behind MEE (Mukherjee et al. 2020): which word matched which and how, and what that says of each word.

Stemmer and vectors are asked once per call:

1. Cut every distinct text into words (`compat`: at white space).
2. Pair equal words.
3. Ask the stemmer once for the words that are left (`paper`, where the language has one), and pair words of one stem.
4. Ask the word vectors once for the words that are left, and pair similar words.

Arithmetic: with h words in the hypothesis, r in the reference and D = 0.9 r + 0.1 h, F (beta = 3) of m matches is m /
D. Matches are counted cumulatively (exact; exact and root; all three), and MEE is the mean of the three F:

    MEE = (3 exact + 2 root + synonym) / (3 D)

so that every matched word carries a credit: exact 1, root 2/3, synonym 1/3.

`paper`: each word is used once. Exact matches pair equal words in order; root matches pair words of one stem, the
nearest relative positions first; all other matches are pairs by descending cosine, then by distance of their relative
positions, then by order.

`compat`, what the published score files contain: only reference words are used up. Exact matches as above; then each
hypothesis word, also one that matched already, takes the first reference word left whose cosine reaches the lower
threshold, and the higher threshold decides whether that was a root match or a synonym.

Words as MEE compares them, with exact code-point spans, in scripts with and without blanks.

1. A word is `\w+(?:[-'’]\w+)*`, letters with their marks; every other character that is no blank is a word of its own.
2. Runs of Chinese, Japanese, Thai, Lao, Khmer and Burmese letters are cut by a segmenter of the language where one is
   installed (jieba, fugashi, pythainlp), and else into characters as readers see them.

Which segmenter runs depends on what is installed, so it is part of the signature; `segmenter=` pins it.
"""

import importlib
import importlib.util
import logging
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from typing import Literal, NamedTuple, cast

import numpy as np
import regex
from numpy.typing import NDArray

from whyscore.errors import MissingExtra
from whyscore.metrics.lexical.ngrams import NOT_READ
from whyscore.metrics.spans import share_out, touching
from whyscore.models.word_vectors import Found, WordVectors, look_up
from whyscore.text.splitters import NO_BLANKS, white_space
from whyscore.text.stemming import Stemmer, language_code
from whyscore.types import FloatMatrix, FloatVector, WordMatch, Words, WordScores

SegmenterName = Literal["auto", "characters", "jieba", "fugashi", "pythainlp", "split"]

_LETTER = rf"[\w--[{NO_BLANKS}]]"
_WORDS = regex.compile(
    rf"(?P<run>[{NO_BLANKS}][{NO_BLANKS}\p{{M}}ー々]*)|{_LETTER}+(?:[-'’]{_LETTER}+)*|[^\w\s]", regex.V1
)
_GRAPHEMES = regex.compile(r"\X")

_OF_LANGUAGE: dict[str, Literal["jieba", "fugashi", "pythainlp"]] = {"zh": "jieba", "ja": "fugashi", "th": "pythainlp"}

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
    kind = name
    if name == "auto":
        preferred = _OF_LANGUAGE.get(language_code(language)) if language else None
        kind = preferred if preferred is not None and importlib.util.find_spec(preferred) else "characters"
    cut = _cutter(kind)
    label = kind if kind == "characters" else f"{kind}-{version(kind)}"
    return Segmenter(label, lambda text: Words(text, tuple(_spans(text, cut))))


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


def _join(forms: Sequence[str], notes: Sequence[str]) -> str:
    if len(notes) == 1:
        return notes[0]
    return "; ".join(f"{form} {note}" for form, note in zip(forms, notes, strict=True)) or NOT_READ


Kind = Literal["exact", "root", "synonym"]

CREDITS: Mapping[Kind, float] = {"exact": 1.0, "root": 2 / 3, "synonym": 1 / 3}
MARKS: Mapping[str, str] = {"exact": "=", "root": "~", "synonym": "≈", "none": "·"}
"""How a match is marked where there are no colours."""

_REFERENCE_SHARE, _HYPOTHESIS_SHARE = 0.9, 0.1  # beta = 3: recall counts nine times as much as precision


class Link(NamedTuple):
    """Two matched words, by their numbers; `similarity` is their cosine where that made the match."""

    hypothesis: int
    reference: int
    kind: Kind
    similarity: float | None = None


class Counts(NamedTuple):
    """The matches of one pair of texts, and the words of both."""

    exact: int
    root: int
    synonym: int
    hypothesis: int
    reference: int

    @property
    def denominator(self) -> float:
        """D = 0.9 r + 0.1 h; one where a side is empty, as nothing matches then."""
        if not self.hypothesis or not self.reference:
            return 1.0
        # Whole numbers first, so that identical texts have exactly D = r.
        return (9 * self.reference + self.hypothesis) / 10

    @property
    def lms(self) -> float:
        """MEE itself.

        >>> round(Counts(exact=1, root=1, synonym=0, hypothesis=1, reference=2).lms, 6)
        0.877193
        """
        return (3 * self.exact + 2 * self.root + self.synonym) / (3 * self.denominator)

    @property
    def modules(self) -> tuple[float, float, float]:
        """F of the exact matches, of these and the root matches, and of all."""
        exact, root = self.exact, self.exact + self.root
        whole = self.denominator
        return exact / whole, root / whole, (root + self.synonym) / whole


def count_matches(links: Iterable[Link], hypothesis: int, reference: int) -> Counts:
    """Return how many matches of each kind there are."""
    kinds = [link.kind for link in links]
    return Counts(kinds.count("exact"), kinds.count("root"), kinds.count("synonym"), hypothesis, reference)


def exact_links(hypothesis: Sequence[str], reference: Sequence[str]) -> list[Link]:
    """Return the pairs of equal words, the first with the first, the second with the second.

    >>> exact_links(["the", "the"], ["the"])
    [Link(hypothesis=0, reference=0, kind='exact', similarity=None)]
    """
    places: dict[str, list[int]] = {}
    for place, word in enumerate(reference):
        places.setdefault(word, []).append(place)
    waiting = {word: iter(numbers) for word, numbers in places.items()}
    links = []
    for number, word in enumerate(hypothesis):
        partner = next(waiting[word], None) if word in waiting else None
        if partner is not None:
            links.append(Link(number, partner, "exact"))
    return links


def stem_links(hypothesis: Mapping[int, str], reference: Mapping[int, str], lengths: tuple[int, int]) -> list[Link]:
    """Return the pairs of words with one stem, those at the nearest relative positions first.

    Args:
        hypothesis: The stems of the words left, by the words' numbers.
        reference: The same of the other side.
        lengths: How many words the two texts have.
    """
    groups: dict[str, list[int]] = {}
    for place, stem in reference.items():
        groups.setdefault(stem, []).append(place)
    pairs = [
        (_distance(number, place, lengths), number, place)
        for number, stem in hypothesis.items()
        for place in groups.get(stem, ())
    ]
    return [Link(number, place, "root") for number, place in _free((n, p) for _, n, p in sorted(pairs))]


def best_links(
    cosines: FloatMatrix,
    places: tuple[Sequence[int], Sequence[int]],
    lengths: tuple[int, int],
    *,
    root: float | None,
    synonym: float,
) -> list[Link]:
    """Return the pairs of words by descending cosine.

    Args:
        cosines: Hypothesis words left x reference words left; below any threshold where a word is unknown.
        places: The numbers of these words in their texts.
        lengths: How many words the two texts have.
        root: From which cosine on a match is one of the root; None where stems were compared.
        synonym: From which cosine on there is a match.
    """
    here, there = np.nonzero(cosines >= synonym)
    rows, columns = np.asarray(places[0], dtype=np.intp)[here], np.asarray(places[1], dtype=np.intp)[there]
    cosines_of_links = cosines[here, there]
    apart = np.abs((rows + 0.5) / max(1, lengths[0]) - (columns + 0.5) / max(1, lengths[1]))
    order = np.lexsort((columns, rows, apart, -cosines_of_links))
    pairs = list(zip(rows[order].tolist(), columns[order].tolist(), strict=True))
    cosine = dict(zip(pairs, cosines_of_links[order].tolist(), strict=True))
    return [
        Link(*pair, "root" if root is not None and cosine[pair] >= root else "synonym", cosine[pair])
        for pair in _free(pairs)
    ]


def first_links(
    cosines: FloatMatrix, places: tuple[Sequence[int], Sequence[int]], *, root: float, synonym: float
) -> list[Link]:
    """Return for each hypothesis word in order the first reference word left that is similar enough."""
    left = np.ones(len(places[1]), dtype=np.bool_)
    hits = cosines >= synonym
    links = []
    for row in np.flatnonzero(hits.any(axis=1)).tolist():
        open_hits = hits[row] & left
        if open_hits.any():
            column = int(open_hits.argmax())
            left[column] = False
            cosine = float(cosines[row, column])
            links.append(Link(places[0][row], places[1][column], "root" if cosine >= root else "synonym", cosine))
    return links


def credit_of(links: Iterable[Link], words: int, *, on_hypothesis: bool) -> FloatVector:
    """Return the credit of each word of one side; a hypothesis word of `compat` may have two."""
    result = np.zeros(words, dtype=np.float64)
    for link in links:
        result[link.hypothesis if on_hypothesis else link.reference] += CREDITS[link.kind]
    return result


def losses(contributions: FloatVector, whole: float, *, on_hypothesis: bool) -> FloatVector:
    """Return what each word of one side costs; over both sides the costs add up to 1 - MEE."""
    share = _HYPOTHESIS_SHARE if on_hypothesis else _REFERENCE_SHARE
    return share * (1.0 - contributions) / whole


def cosine_matrix(
    rows: FloatMatrix, has_vector: NDArray[np.bool_], here: Sequence[int], there: Sequence[int]
) -> FloatMatrix:
    """Return the cosines of words, by their numbers in a table of unit rows; -2 where one of them is unknown.

    Rounded to twelve decimals: equal words have equal cosines, wherever they stand.
    """
    rows_here, rows_there = np.asarray(here, dtype=np.intp), np.asarray(there, dtype=np.intp)
    both = has_vector[rows_here][:, None] & has_vector[rows_there][None, :]
    return np.where(both, np.round(rows[rows_here] @ rows[rows_there].T, 12), -2.0)


def _distance(number: int, place: int, lengths: tuple[int, int]) -> float:
    return abs((number + 0.5) / lengths[0] - (place + 0.5) / lengths[1])


def _free(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the pairs in order, each word in one of them, sorted by the hypothesis."""
    used: set[int] = set()
    taken: dict[int, int] = {}
    for number, place in pairs:
        if number not in taken and place not in used:
            taken[number] = place
            used.add(place)
    return sorted(taken.items())


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
        named = [part.signature().stable for part in (self.words, self.stemmer) if part is not None]
        return all(named)

    def cut(self, text: str) -> Words:
        """Return the words of a text with their places in it."""
        return white_space(text) if self.mode == "compat" else self.segmenter.split(text)

    def form(self, word: str) -> str:
        """Return a word as it is compared."""
        return self.to_normal_form(word.lower() if self.lowercase else word)

    def to_normal_form(self, text: str) -> str:
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
        return count_matches(self.links, len(self.hypothesis.forms), len(self.reference.forms))


def align_pairs(matcher: Matcher, pairs: Sequence[Pair]) -> dict[Pair, Alignment]:
    """Return the alignment of each distinct pair; stemmer and vectors are asked once for all."""
    sides = {text: _side(matcher, text) for text in dict.fromkeys(text for pair in pairs for text in pair)}
    drafts = [
        _Draft(pair, sides[pair[0]], sides[pair[1]], tuple(exact_links(sides[pair[0]].forms, sides[pair[1]].forms)))
        for pair in dict.fromkeys(pairs)
    ]
    if matcher.mode == "paper" and matcher.stemmer is not None:
        drafts = _add_roots(matcher.stemmer, drafts)
    return {draft.pair: draft.done(links, vectors) for draft, links, vectors in _similar(matcher, drafts)}


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
        hypothesis, reference = self.lengths
        return [k for k in range(hypothesis) if k not in here], [k for k in range(reference) if k not in there]

    def done(self, links: Iterable[Link], vectors: "_Asked") -> Alignment:
        return Alignment(self.hypothesis, self.reference, (*self.links, *links), vectors.missing, vectors.share)


class _Asked(NamedTuple):
    missing: frozenset[str]
    share: float


def _side(matcher: Matcher, text: str) -> Side:
    words = matcher.cut(text)
    return Side(words, tuple(map(matcher.form, words)))


def _add_roots(stemmer: Stemmer, drafts: Sequence[_Draft]) -> list[_Draft]:
    """Return the drafts with the root matches added; words without a letter or digit have no root."""
    left = [draft.left() for draft in drafts]
    words = [
        (_lower(draft.hypothesis, here), _lower(draft.reference, there))
        for draft, (here, there) in zip(drafts, left, strict=True)
    ]
    distinct = sorted({word for sides in words for side in sides for word in side.values()})
    stems = dict(zip(distinct, stemmer.stems(distinct), strict=True))
    result = []
    for draft, (here, there) in zip(drafts, words, strict=True):
        hypothesis, reference = ({number: stems[word] for number, word in side.items()} for side in (here, there))
        result.append(draft._replace(links=(*draft.links, *stem_links(hypothesis, reference, draft.lengths))))
    return result


def _lower(side: Side, numbers: Iterable[int]) -> dict[int, str]:
    return {n: side.forms[n].lower() for n in numbers if any(map(str.isalnum, side.forms[n]))}


def _similar(matcher: Matcher, drafts: Sequence[_Draft]) -> list[tuple[_Draft, list[Link], _Asked]]:
    """Return the matches by vectors of each draft."""
    places = [_find_compared(matcher, draft) for draft in drafts]
    forms = [
        ([draft.hypothesis.forms[n] for n in here], [draft.reference.forms[n] for n in there])
        for draft, (here, there) in zip(drafts, places, strict=True)
    ]
    distinct = sorted({word for sides in forms for side in sides for word in side})
    rows = {word: row for row, word in enumerate(distinct)}
    vectors = look_up(matcher.words, distinct) if matcher.words is not None else None
    result: list[tuple[_Draft, list[Link], _Asked]] = []
    for draft, places_of_draft, (here, there) in zip(drafts, places, forms, strict=True):
        if vectors is None or not here or not there:
            result.append((draft, [], _Asked(frozenset(), 0.0)))
            continue
        numbers = [rows[word] for word in here], [rows[word] for word in there]
        links = _link_similar(matcher, draft, vectors, places_of_draft, numbers)
        missing = [word for word in (*here, *there) if not vectors.known[rows[word]]]
        result.append((draft, links, _Asked(frozenset(missing), len(missing) / (len(here) + len(there)))))
    return result


def _find_compared(matcher: Matcher, draft: _Draft) -> tuple[Sequence[int], Sequence[int]]:
    """Return the words whose vectors are compared; none where a side has nothing left."""
    here, there = draft.left()
    if matcher.mode == "compat":
        here = list(range(draft.lengths[0]))
    return (here, there) if here and there else ((), ())


_Numbers = tuple[Sequence[int], Sequence[int]]


def _link_similar(matcher: Matcher, draft: _Draft, vectors: Found, places: _Numbers, rows: _Numbers) -> list[Link]:
    cosines = cosine_matrix(vectors.rows, vectors.known, *rows)
    if matcher.mode == "compat":
        return first_links(cosines, places, root=matcher.root, synonym=matcher.synonym)
    root = matcher.root if matcher.by_cosine else None
    return best_links(cosines, places, draft.lengths, root=root, synonym=matcher.synonym)


_CREDITS = {"exact": "1", "root": "2/3", "synonym": "1/3"}


def word_matches(
    words: Words, alignments: Sequence[Alignment], *, on_hypothesis: bool
) -> tuple[tuple[WordMatch, ...], ...]:
    """Return for each of some words how the words of MEE in it were matched.

    A word of `compat` may have two partners, and a word such as `day.` holds two words of MEE.
    """
    matches: list[list[WordMatch]] = [[] for _ in words.spans]
    for number, alignment in enumerate(alignments):
        side, other = (alignment.hypothesis, alignment.reference)[:: 1 if on_hypothesis else -1]
        links = _by_word(alignment, on_hypothesis=on_hypothesis)
        for k, touched in enumerate(touching(side.words.spans, words)):
            for place in touched:
                text = side.forms[place]
                if not links[place]:
                    unknown = text in alignment.no_vector
                    matches[k].append(WordMatch(text, "none", MARKS["none"], 0.0, alignment=number, unknown=unknown))
                matches[k] += [_with_partner(text, link, other, number, on_hypothesis) for link in links[place]]
    return tuple(map(tuple, matches))


def _with_partner(text: str, link: Link, other: Side, alignment: int, on_hypothesis: bool) -> WordMatch:  # noqa: FBT001
    partner = link.reference if on_hypothesis else link.hypothesis
    start, end = other.words.spans[partner]
    return WordMatch(
        text=text,
        label=link.kind,
        mark=MARKS[link.kind],
        credit=CREDITS[link.kind],
        partner=partner,
        partner_text=other.forms[partner],
        start=start,
        end=end,
        similarity=link.similarity,
        alignment=alignment,
    )


def explain_words(
    words: Words,
    alignments: Sequence[Alignment],
    weight: float,
    *,
    on_hypothesis: bool,
    view: Literal["credit", "loss"],
) -> WordScores:
    """Return importance and note of each word, the mean over several alignments.

    A word of MEE that lies in several of the words asked about counts for them in equal parts.

    Args:
        words: The words asked about.
        alignments: What matched, one per reference.
        weight: How much LMS counts in the score.
        on_hypothesis: Which side is asked about.
        view: What a word earns, or minus what it costs.
    """
    importance = np.zeros(len(words), dtype=np.float64)
    notes: list[list[str]] = [[] for _ in words.spans]
    for alignment in alignments:
        side = alignment.hypothesis if on_hypothesis else alignment.reference
        values = weight * _values(alignment, on_hypothesis=on_hypothesis, view=view)
        descriptions = _describe_matches(alignment, on_hypothesis=on_hypothesis)
        touched = touching(side.words.spans, words)
        importance += share_out(values, touched) / len(alignments)
        for number, numbers in enumerate(touched):
            notes[number].append(_join([side.forms[k] for k in numbers], [descriptions[k] for k in numbers]))
    matches = word_matches(words, alignments, on_hypothesis=on_hypothesis)
    return WordScores(importance, tuple(" | ".join(note) for note in notes), matches)


def _values(alignment: Alignment, *, on_hypothesis: bool, view: str) -> FloatVector:
    counts = alignment.counts
    words = counts.hypothesis if on_hypothesis else counts.reference
    credit = credit_of(alignment.links, words, on_hypothesis=on_hypothesis)
    if view == "credit":
        return credit / counts.denominator
    # Adding zero turns -0.0, the cost of a word that matched exactly, into 0.0.
    return 0.0 - losses(credit, counts.denominator, on_hypothesis=on_hypothesis) + 0.0


def _describe_matches(alignment: Alignment, *, on_hypothesis: bool) -> list[str]:
    """Return for each word what matched it."""
    side, other = (alignment.hypothesis, alignment.reference)[:: 1 if on_hypothesis else -1]
    links = _by_word(alignment, on_hypothesis=on_hypothesis)
    return [
        ", ".join(_match(link, other.forms, on_hypothesis=on_hypothesis) for link in links)
        or f"{MARKS['none']} none" + (", no vector" if word in alignment.no_vector else "")
        for word, links in zip(side.forms, links, strict=True)
    ]


def _by_word(alignment: Alignment, *, on_hypothesis: bool) -> list[list[Link]]:
    """Return the matches of each word of one side."""
    side = alignment.hypothesis if on_hypothesis else alignment.reference
    links: list[list[Link]] = [[] for _ in side.forms]
    for link in alignment.links:
        links[link.hypothesis if on_hypothesis else link.reference].append(link)
    return links


def _match(link: Link, other: Sequence[str], *, on_hypothesis: bool) -> str:
    """Return a match in words, such as `≈ synonym 'dog' (word 4, cosine 0.45, credit 1/3)`."""
    partner = link.reference if on_hypothesis else link.hypothesis
    cosine = "" if link.similarity is None else f"cosine {link.similarity:.2f}, "
    place = f"word {partner + 1}, {cosine}credit {_CREDITS[link.kind]}"
    return f"{MARKS[link.kind]} {link.kind} {other[partner]!r} ({place})"
