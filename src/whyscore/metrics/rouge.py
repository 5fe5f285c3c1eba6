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
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from whyscore.errors import SpecError
from whyscore.metrics import lcs
from whyscore.metrics.needs import need_place, need_references
from whyscore.metrics.ngrams import Gram, Table, credit, matched, table, token_grams
from whyscore.metrics.rouge_tokens import Mode, cut, cut_with_spans
from whyscore.metrics.rouge_union import Sentences, union_credit, union_hits
from whyscore.metrics.spans import Token
from whyscore.metrics.word_balance import Chain, Order, balances
from whyscore.options import check_fields
from whyscore.registry import spec_of
from whyscore.types import FloatMatrix, FloatVector, Inputs, Place, Segment, Side, Signature, Words, WordScores
from whyscore.version import __version__

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
        """Take 1 for '1'; refuse options of the wrong type, and stemming of tokens that are to stay as they are."""
        check_fields(self)
        object.__setattr__(self, "kind", str(self.kind))
        if self.stem and self.mode == "split":
            raise SpecError("rouge: stem=True changes tokens and mode='split' keeps them; leave one out")

    def signature(self) -> Signature:
        """Return the spec, then how texts are cut."""
        facts = (("nrefs", "any"), ("stem", "porter" if self.stem else "no"), ("version", __version__))
        return Signature(spec_of(self), facts)

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        """Return the chosen measure of each segment."""
        return self.scores(self.statistics(segments))

    def statistics(self, segments: Sequence[Segment]) -> FloatMatrix:
        """Return precision, recall and F of each segment."""
        need_references("rouge", segments)
        rows = np.empty((len(segments), 3), dtype=np.float64)
        for number, segment in enumerate(segments):
            rows[number] = self._best(segment)[1]
        return rows

    def scores(self, rows: FloatMatrix) -> FloatVector:
        """Return the chosen column."""
        return np.array(rows[:, _MEASURES[self.measure]], dtype=np.float64)

    def tokens(self, text: str) -> tuple[Token, ...]:
        """Return the tokens ROUGE counts, with their places in the text as given."""
        return cut_with_spans(text, self.mode, stem=self.stem)

    def on_tokens(self) -> "Rouge":
        """Return the same metric for texts that are cut already: tokens joined by blanks, lines kept for `Lsum`."""
        return replace(self, stem=False, mode="split")

    def word_scores(self, segments: Sequence[Segment], place: Place, words: Sequence[Words]) -> list[WordScores]:
        """Return the balance of what matched and what failed for each word of the texts at `place`."""
        need_place("rouge", place)
        need_references("rouge", segments)
        return [self._word_scores(segment, place, text) for segment, text in zip(segments, words, strict=True)]

    def _best(self, segment: Segment) -> tuple[str, tuple[float, float, float]]:
        """Return the reference with the best F and the three numbers."""
        hypothesis = _prepared(segment.hypothesis, self)
        rows = [_measures(_prepared(text, self), hypothesis, str(self.kind)) for text in segment.references]
        number = max(range(len(rows)), key=lambda k: rows[k][2])
        return segment.references[number], rows[number]

    def _word_scores(self, segment: Segment, place: Place, words: Words) -> WordScores:
        on_hypothesis = place.side is Side.HYPOTHESIS
        text = segment.text(place)
        other = self._best(segment)[0] if on_hypothesis else segment.hypothesis
        own, there = _prepared(text, self), _prepared(other, self)
        spans = [(token.start, token.end) for token in self.tokens(text)]
        if self.kind in ("1", "2"):
            n = int(self.kind)
            return balances(words, [Chain(spans, [Order(n, credit(own.grams, there.table))])])
        reference, hypothesis = (there, own) if on_hypothesis else (own, there)
        on_sides = union_credit(reference.sentences, hypothesis.sentences)
        return balances(words, [Chain(spans, [Order(1, on_sides[on_hypothesis])], "common subsequence")])


class _Prepared(NamedTuple):
    """A text as ROUGE compares it."""

    tokens: list[str]
    sentences: Sentences
    grams: Sequence[Gram]
    table: Table
    masks: dict[str, int]


@lru_cache(maxsize=1024)
def _prepared(text: str, metric: Rouge) -> _Prepared:
    lines = [line for line in text.split("\n") if line] if metric.kind == "Lsum" else [text]
    sentences = [cut(line, metric.mode, stem=metric.stem) for line in lines]
    tokens = [token for sentence in sentences for token in sentence]
    grams = token_grams(tokens, int(metric.kind))[-1] if metric.kind in ("1", "2") else []
    return _Prepared(tokens, sentences, grams, table(grams), lcs.masks(tokens) if metric.kind == "L" else {})


def _measures(reference: _Prepared, hypothesis: _Prepared, kind: str) -> tuple[float, float, float]:
    """Return precision, recall and F of one pair of texts."""
    sizes = len(hypothesis.tokens), len(reference.tokens)
    if kind == "L":
        shared = lcs.length(reference.masks, len(reference.tokens), hypothesis.tokens)
    elif kind == "Lsum":
        shared = sum(union_hits(reference.sentences, hypothesis.sentences).values())
    else:
        shared = matched(hypothesis.grams, reference.table)
        sizes = len(hypothesis.grams), len(reference.grams)
    precision, recall = shared / max(sizes[0], 1), shared / max(sizes[1], 1)
    return precision, recall, 2 * precision * recall / (precision + recall) if shared else 0.0
