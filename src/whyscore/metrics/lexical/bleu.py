"""BLEU, after Papineni, Roukos, Ward and Zhu (2002), computed by sacreBLEU (Post 2018, arXiv 1804.08771).

1. Cut hypothesis and references into tokens; count the n-grams of each order, 1 to `max_order`.
2. An n-gram matches as often as it stands in the hypothesis and in the reference that has it most often.
3. BLEU = 100 x brevity penalty x geometric mean of the shares that matched. Over a corpus the counts are summed first.

Segment scores use the effective order (orders longer than the hypothesis are left out) unless `effective_order` says
otherwise; the corpus score does not: both are sacreBLEU's own habits.

Word scores are the balance of matched and failed n-grams of a word (`word_balance`). Hypothesis words are compared with
all references together, as BLEU does; the words of a reference with the hypothesis. The brevity penalty belongs to no
word and is left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np

from whyscore.errors import MissingExtra, SpecError
from whyscore.metrics.lexical.ngrams import Chain, Order, Table, balances, credit, table, token_grams, widest
from whyscore.metrics.lexical.rows import TOKENIZERS, BleuRows
from whyscore.metrics.needs import need_place, need_references, present
from whyscore.metrics.spans import Token, located
from whyscore.options import check_fields
from whyscore.registry import spec_of
from whyscore.types import FloatMatrix, FloatVector, Inputs, Place, Segment, Side, Signature, Words, WordScores

# Which extra of sacreBLEU a tokenizer needs.
_EXTRAS = {"ja-mecab": "pip install 'sacrebleu[ja]'", "ko-mecab": "pip install 'sacrebleu[ko]'"}
_NEEDS_VALUE = ("floor", "add-k")


@dataclass(frozen=True, slots=True)
class Bleu:
    """Shares of n-grams that also stand in a reference, 0 to 100.

    Args:
        tokenize: how texts are cut: sacreBLEU's name of a tokenizer.
        lowercase: whether case is ignored.
        smoothing: what stands for an order without any match; None is "none".
        smoothing_value: the number that `floor` and `add-k` need; None takes sacreBLEU's.
        max_order: the longest n-grams counted.
        effective_order: whether orders longer than the hypothesis are left out; None means for segments only.
    """

    tokenize: str | None = "13a"
    lowercase: bool = False
    smoothing: Literal["exp", "floor", "add-k", "none"] | None = "exp"
    smoothing_value: float | None = None
    max_order: int = 4
    effective_order: bool | None = None

    inputs: ClassVar[Inputs] = Inputs.HYPOTHESIS | Inputs.REFERENCES
    higher_is_better: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse what sacreBLEU does not know; the bare word none in a spec reads as None."""
        if self.smoothing is None:
            object.__setattr__(self, "smoothing", "none")
        if type(self.smoothing_value) is int:
            object.__setattr__(self, "smoothing_value", float(self.smoothing_value))
        check_fields(self)
        if self.tokenize is None:
            raise SpecError('bleu: tokenize is None: leave it out for 13a, or write tokenize="none" to cut at blanks')
        if self.tokenize not in TOKENIZERS:
            raise SpecError(f"bleu: no tokenizer named {self.tokenize!r}. Known: {', '.join(sorted(TOKENIZERS))}")
        if self.max_order < 1:
            raise SpecError(f"bleu: max_order is {self.max_order}, expected 1 or more")
        if self.smoothing_value is not None and self.smoothing not in _NEEDS_VALUE:
            raise SpecError(
                f"bleu: smoothing_value is {self.smoothing_value}, but smoothing {self.smoothing!r} takes none. "
                "Leave it out, or choose 'floor' or 'add-k'"
            )
        if self.smoothing_value is not None and not 0 <= self.smoothing_value < float("inf"):
            raise SpecError(f"bleu: smoothing_value is {self.smoothing_value}, expected 0 or more")

    @property
    def columns(self) -> tuple[str, ...]:
        """The counts in a row."""
        orders = range(1, self.max_order + 1)
        return (
            "hypothesis_length",
            "reference_length",
            *(f"matched_{n}" for n in orders),
            *(f"total_{n}" for n in orders),
        )

    def signature(self) -> Signature:
        """Return the spec, then the fields of sacreBLEU's signature for the corpus score."""
        return Signature(spec_of(self), _rows(self).facts(effective_order=bool(self.effective_order)))

    def segment_signature(self) -> Signature:
        """Return the signature of the segment scores."""
        return Signature(spec_of(self), _rows(self).facts(effective_order=self._by_segment))

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        """Return the BLEU of each segment by itself."""
        return self.scores(self.statistics(segments))

    def statistics(self, segments: Sequence[Segment]) -> FloatMatrix:
        """Return the counts of each segment."""
        need_references("bleu", segments)
        return _rows(self).rows(segments)

    def scores(self, rows: FloatMatrix) -> FloatVector:
        """Return the segment score of each row of counts."""
        formula, effective = _rows(self).formula, self._by_segment
        return np.array([formula(row, effective_order=effective) for row in rows.tolist()], dtype=np.float64)

    def total(self, row: FloatVector) -> float:
        """Return the corpus score of one summed row."""
        return _rows(self).formula(row.tolist(), effective_order=bool(self.effective_order))

    def tokens(self, text: str) -> tuple[Token, ...]:
        """Return the tokens BLEU counts, with their places in the text as given."""
        return located(_rows(self).tokens(text), text)

    def on_tokens(self) -> "Bleu":
        """Return the same metric for texts that are cut already: tokens joined by blanks."""
        return replace(self, tokenize="none", lowercase=False)

    def word_scores(self, segments: Sequence[Segment], place: Place, words: Sequence[Words]) -> list[WordScores]:
        """Return the balance of matched and failed n-grams for each word of the texts at `place`."""
        need_place("bleu", place)
        need_references("bleu", segments)
        return [self._word_scores(segment, place, text) for segment, text in zip(segments, words, strict=True)]

    @property
    def _by_segment(self) -> bool:
        return True if self.effective_order is None else self.effective_order

    def _word_scores(self, segment: Segment, place: Place, words: Words) -> WordScores:
        tokens = self.tokens(segment.text(place))
        on_hypothesis = place.side is Side.HYPOTHESIS
        others = [
            self._tables(text) for text in (present(segment.references) if on_hypothesis else [segment.hypothesis])
        ]
        spans = [(token.start, token.end) for token in tokens]
        grams = token_grams([token.text for token in tokens], self.max_order)
        orders = [
            Order(n, credit(own, widest(tables)))
            for n, (own, *tables) in enumerate(zip(grams, *others, strict=True), start=1)
        ]
        return balances(words, [Chain(spans, orders)])

    def _tables(self, text: str) -> list[Table]:
        return [table(grams) for grams in token_grams(_rows(self).tokens(text), self.max_order)]


@lru_cache(maxsize=32)
def _rows(metric: Bleu) -> BleuRows:
    try:
        return BleuRows(
            tokenize=str(metric.tokenize),
            lowercase=metric.lowercase,
            smoothing=str(metric.smoothing),
            smoothing_value=metric.smoothing_value,
            max_order=metric.max_order,
        )
    except (ImportError, RuntimeError, OSError) as error:
        cure = _EXTRAS.get(str(metric.tokenize), "pip install sentencepiece, and let it fetch its model once")
        reason = " ".join(str(error).split())
        raise MissingExtra(f"the tokenizer {metric.tokenize!r} cannot be used ({reason}): {cure}") from error
