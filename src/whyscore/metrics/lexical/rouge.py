"""ROUGE, after Lin (2004), "ROUGE: a package for automatic evaluation of summaries".

1. Cut hypothesis and reference into tokens (`rouge_tokens`).
2. Count what they share: tokens (`1`), pairs of neighbours (`2`), the longest common subsequence (`L`), or for each
   reference sentence the union of its common subsequences with all hypothesis sentences (`Lsum`, one sentence a line).
3. Precision = shared / hypothesis, recall = shared / reference, F = their harmonic mean; all from 0 to 1.

Of several references, the one with the best F counts, the first of equals, for all three numbers.

`mode="compat"` gives the numbers of the `rouge-score` package. Deviation of the default: tokens of all scripts count,
where the package drops every character but a-z and 0-9 and so gives 0 to Hindi, Russian or Chinese.

Word scores: for `1` and `2`, the balance of matched and failed n-grams of a word (`word_balance`); for `L` and `Lsum`
the same with the tokens that are part of the common subsequence (one of them, where there are several).
Hypothesis words are compared with the reference that has the best F, the words of any reference with the hypothesis.

How ROUGE cuts a text.

| mode | tokens |
|---|---|
| `default` | runs of letters, marks and digits of any script, case-folded; characters in scripts without blanks |
| `compat` | runs of a-z and 0-9 in lower case: everything else is lost, as in the `rouge-score` package |
| `split` | what stands between blanks, as it stands: for texts that are cut already |

With stemming, tokens of more than three characters are cut to their stem by Porter's algorithm for English; in the
default mode only those of a-z and 0-9, since it knows no other letters.

The union of common subsequences, by which ROUGE-Lsum compares texts of several sentences.

1. For each reference sentence, find a longest common subsequence with every hypothesis sentence; the places of the
   sentence that occur in any of them are its union.
2. Go through the unions in order. A place is a hit as long as its token has not been hit as often as the hypothesis
   contains it: the guard against double counting of ROUGE 1.5.5 and of the rouge-score package.

Longest common subsequences, with whole columns of the table in one Python integer.

After Hyyrö (2004), "Bit-parallel LCS-length computation revisited": bit i of a row is 0 where the length grows at
reference word i, so one row costs a handful of integer operations, whatever the number of words up to some hundreds.

1. For each word, a mask with a bit at every place where the reference has it.
2. For each hypothesis word, row = (row + hits) | (row - hits) with hits = row & mask of the word.
3. The length is the number of zeros; the length up to reference word i is the number of zeros below bit i.
"""

import importlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Literal, NamedTuple, Protocol

import numpy as np
import regex

from whyscore.errors import MissingExtra, SpecError, need_package
from whyscore.metrics.lexical.ngrams import (
    Chain,
    Gram,
    Order,
    Table,
    balance_words,
    count_matches,
    credit,
    table,
    token_grams,
)
from whyscore.metrics.needs import need_references
from whyscore.metrics.spans import locate_tokens
from whyscore.protocols import Token
from whyscore.registry import spec_of
from whyscore.settings import check_fields
from whyscore.text.splitters import NO_BLANKS
from whyscore.types import FloatMatrix, FloatVector, Inputs, Place, Segment, Side, Signature, Words, WordScores
from whyscore.version import __version__

Mode = Literal["default", "compat", "split"]

_UNICODE = regex.compile(rf"(?V1)[[\p{{L}}\p{{N}}]&&[{NO_BLANKS}]]\p{{M}}*|[[\p{{L}}\p{{M}}\p{{N}}]--[{NO_BLANKS}]]+")
_ASCII = re.compile(r"[a-z0-9]+")
# Shorter words are left alone, as in the rouge-score package.
_SHORTEST_STEM = 4


def cut(text: str, mode: Mode, *, stem: bool) -> list[str]:
    """Return the tokens of a text.

    >>> cut("Straße, 10-year", "default", stem=False)
    ['strasse', '10', 'year']
    """
    tokens = _raw(text, mode)
    return [_stem(token) for token in tokens] if stem else tokens


def cut_with_spans(text: str, mode: Mode, *, stem: bool) -> tuple[Token, ...]:
    """Return the tokens with their places in the text."""
    tokens = cut(text, mode, stem=stem)
    spans = _spans(text, mode)
    if len(spans) != len(tokens):
        spans = [(token.start, token.end) for token in locate_tokens(_raw(text, mode), text)]
    return tuple(Token(token, start, end) for token, (start, end) in zip(tokens, spans, strict=True))


def _raw(text: str, mode: Mode) -> list[str]:
    if mode == "default":
        return [token.casefold() for token in _UNICODE.findall(text)]
    return _ASCII.findall(text.lower()) if mode == "compat" else text.split()


def _spans(text: str, mode: Mode) -> list[tuple[int, int]]:
    """Return the spans where cutting keeps the length of the text, else none."""
    if mode == "default":
        return [match.span() for match in _UNICODE.finditer(text)]
    if mode == "split":
        return [match.span() for match in re.finditer(r"\S+", text)]
    lower = text.lower()
    return [match.span() for match in _ASCII.finditer(lower)] if len(lower) == len(text) else []


@lru_cache(maxsize=1 << 16)
def _stem(token: str) -> str:
    if len(token) < _SHORTEST_STEM or not _ASCII.fullmatch(token):
        return token
    return _stemmer().stem(token)


class _Stemmer(Protocol):
    def stem(self, word: str) -> str:
        """Return the word without its ending."""


@lru_cache(maxsize=1)
def _stemmer() -> _Stemmer:
    with need_package(MissingExtra.of("rouge(stem=True)", "rouge")):
        porter = importlib.import_module("nltk.stem.porter")
    stemmer: _Stemmer = porter.PorterStemmer()
    return stemmer


def masks(reference: Sequence[str]) -> dict[str, int]:
    """Return for each word of the reference the bits of its places."""
    result: dict[str, int] = {}
    for place, word in enumerate(reference):
        result[word] = result.get(word, 0) | 1 << place
    return result


def length(places: Mapping[str, int], size: int, hypothesis: Sequence[str]) -> int:
    """Return the length of the longest common subsequence with a reference of `size` words.

    >>> length(masks(["a", "cat", "sat"]), 3, ["sat", "a", "sat"])
    2
    """
    full = row = (1 << size) - 1
    for word in hypothesis:
        hits = row & places.get(word, 0)
        row = (row + hits | row - hits) & full
    return size - row.bit_count()


def pairs(reference: Sequence[str], hypothesis: Sequence[str]) -> list[tuple[int, int]]:
    """Return the places of one longest common subsequence, (in the reference, in the hypothesis), in order.

    Of several, it is the one that ROUGE finds: from the end, equal words are taken, else the side is shortened that
    loses nothing, and the reference first if neither does.

    >>> pairs(["a", "cat", "sat"], ["sat", "a", "sat"])
    [(0, 1), (2, 2)]
    """
    rows = _rows(masks(reference), len(reference), hypothesis)
    i, j = len(reference), len(hypothesis)
    pairs = []
    while i and j:
        if reference[i - 1] == hypothesis[j - 1]:
            i, j = i - 1, j - 1
            pairs.append((i, j))
        elif _upto(rows[j - 1], i) > _upto(rows[j], i - 1):
            j -= 1
        else:
            i -= 1
    return pairs[::-1]


def _rows(places: Mapping[str, int], size: int, hypothesis: Sequence[str]) -> list[int]:
    full = (1 << size) - 1
    rows = [full]
    for word in hypothesis:
        row = rows[-1]
        hits = row & places.get(word, 0)
        rows.append((row + hits | row - hits) & full)
    return rows


def _upto(row: int, words: int) -> int:
    """Return the length for the first reference words: the zeros among as many bits."""
    return words - (row & (1 << words) - 1).bit_count()


Sentences = Sequence[Sequence[str]]
TokenPlace = tuple[int, int]
"""A sentence and a token in it."""


def union_hits(reference: Sentences, hypothesis: Sentences) -> Counter[str]:
    """Return how many hits each token has.

    >>> sorted(union_hits([["a", "cat"]], [["a"], ["cat", "sat"]]).items())
    [('a', 1), ('cat', 1)]
    """
    hits: Counter[str] = Counter()
    allowed = Counter(token for sentence in hypothesis for token in sentence)
    for sentence in reference:
        union = {i for other in hypothesis for i, _ in pairs(sentence, other)}
        for i in sorted(union):
            if hits[sentence[i]] < allowed[sentence[i]]:
                hits[sentence[i]] += 1
    return hits


def union_credit(reference: Sentences, hypothesis: Sentences) -> tuple[FloatVector, FloatVector]:
    """Return how far each token of the reference and of the hypothesis is a hit, all sentences in one row.

    The hits of a token are shared by its places in common subsequences.
    """
    hits = union_hits(reference, hypothesis)
    here: set[TokenPlace] = set()
    there: set[TokenPlace] = set()
    for r, sentence in enumerate(reference):
        for h, other in enumerate(hypothesis):
            for i, j in pairs(sentence, other):
                here.add((r, i))
                there.add((h, j))
    return _share_hits(reference, here, hits), _share_hits(hypothesis, there, hits)


def _share_hits(sentences: Sentences, places: set[TokenPlace], hits: Counter[str]) -> FloatVector:
    sharing = Counter(sentences[s][i] for s, i in places)
    values = [
        min(1.0, hits[token] / sharing[token]) if place in places else 0.0
        for place, token in _enumerate_tokens(sentences)
    ]
    return np.array(values, dtype=np.float64)


def _enumerate_tokens(sentences: Sentences) -> Iterator[tuple[TokenPlace, str]]:
    return (((s, i), token) for s, sentence in enumerate(sentences) for i, token in enumerate(sentence))


_MEASURES = {"p": 0, "r": 1, "f": 2}


@dataclass(frozen=True, slots=True)
class Rouge:
    """Overlap of hypothesis and reference in tokens, pairs or subsequences, 0 to 1.

    Args:
        kind: what is shared: `1` tokens, `2` pairs, `L` the longest common subsequence, `Lsum` that of each line.
        measure: which number is the score: `f`, `p` (precision) or `r` (recall).
        stem: whether English endings are cut off; needs the extra `rouge`.
        mode: how texts are cut; `compat` gives the numbers of the rouge-score package.
    """

    kind: Literal["1", "2", "L", "Lsum", 1, 2] = "L"
    measure: Literal["f", "p", "r"] = "f"
    stem: bool = False
    mode: Mode = "default"

    inputs: ClassVar[Inputs] = Inputs.HYPOTHESIS | Inputs.REFERENCES
    higher_is_better: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("precision", "recall", "f")

    def __post_init__(self) -> None:
        check_fields(self)
        object.__setattr__(self, "kind", str(self.kind))
        if self.stem and self.mode == "split":
            raise SpecError("rouge: stem=True changes tokens and mode='split' keeps them; leave one out")

    def signature(self) -> Signature:
        facts = (("nrefs", "any"), ("stem", "porter" if self.stem else "no"), ("version", __version__))
        return Signature(spec_of(self), facts)

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        return self.scores(self.statistics(segments))

    def statistics(self, segments: Sequence[Segment]) -> FloatMatrix:
        need_references("rouge", segments)
        rows = np.empty((len(segments), 3), dtype=np.float64)
        for number, segment in enumerate(segments):
            rows[number] = self._best(segment)[1]
        return rows

    def scores(self, rows: FloatMatrix) -> FloatVector:
        return np.array(rows[:, _MEASURES[self.measure]], dtype=np.float64)

    def for_decomposition(self, *, published: bool) -> "Rouge":
        return replace(self, measure="p", stem=True, mode="compat") if published and self == Rouge() else self

    def tokens(self, text: str) -> tuple[Token, ...]:
        return cut_with_spans(text, self.mode, stem=self.stem)

    def on_tokens(self) -> "Rouge":
        return replace(self, stem=False, mode="split")

    def word_scores(self, segments: Sequence[Segment], place: Place, words: Sequence[Words]) -> list[WordScores]:
        def chains(part: Sequence[Segment], place: Place) -> list[list[Chain]]:
            return [[self._chain(segment, place)] for segment in part]

        return balance_words("rouge", segments, place, words, chains)

    def _best(self, segment: Segment) -> tuple[str, tuple[float, float, float]]:
        """Return the reference with the best F and the three numbers."""
        hypothesis = _prepare(segment.hypothesis, self)
        rows = [_measures(_prepare(text, self), hypothesis, str(self.kind)) for text in segment.references]
        number = max(range(len(rows)), key=lambda k: rows[k][2])
        return segment.references[number], rows[number]

    def _chain(self, segment: Segment, place: Place) -> Chain:
        """Return the n-grams of a text, or its tokens, and how far each is shared."""
        on_hypothesis = place.side is Side.HYPOTHESIS
        text = segment.text(place)
        other = self._best(segment)[0] if on_hypothesis else segment.hypothesis
        tokens, tokens_of_other = _prepare(text, self), _prepare(other, self)
        spans = [(token.start, token.end) for token in self.tokens(text)]
        if self.kind in ("1", "2"):
            n = int(self.kind)
            return Chain(spans, [Order(n, credit(tokens.grams, tokens_of_other.table))])
        reference, hypothesis = (tokens_of_other, tokens) if on_hypothesis else (tokens, tokens_of_other)
        on_sides = union_credit(reference.sentences, hypothesis.sentences)
        return Chain(spans, [Order(1, on_sides[on_hypothesis])], "common subsequence")


class _Prepared(NamedTuple):
    """A text as ROUGE compares it."""

    tokens: list[str]
    sentences: Sentences
    grams: Sequence[Gram]
    table: Table
    masks: dict[str, int]


@lru_cache(maxsize=1024)
def _prepare(text: str, metric: Rouge) -> _Prepared:
    lines = [line for line in text.split("\n") if line] if metric.kind == "Lsum" else [text]
    sentences = [cut(line, metric.mode, stem=metric.stem) for line in lines]
    tokens = [token for sentence in sentences for token in sentence]
    grams = token_grams(tokens, int(metric.kind))[-1] if metric.kind in ("1", "2") else []
    return _Prepared(tokens, sentences, grams, table(grams), masks(tokens) if metric.kind == "L" else {})


def _measures(reference: _Prepared, hypothesis: _Prepared, kind: str) -> tuple[float, float, float]:
    """Return precision, recall and F of one pair of texts."""
    sizes = len(hypothesis.tokens), len(reference.tokens)
    if kind == "L":
        shared = length(reference.masks, len(reference.tokens), hypothesis.tokens)
    elif kind == "Lsum":
        shared = sum(union_hits(reference.sentences, hypothesis.sentences).values())
    else:
        shared = count_matches(hypothesis.grams, reference.table)
        sizes = len(hypothesis.grams), len(reference.grams)
    precision, recall = shared / max(sizes[0], 1), shared / max(sizes[1], 1)
    return precision, recall, 2 * precision * recall / (precision + recall) if shared else 0.0
