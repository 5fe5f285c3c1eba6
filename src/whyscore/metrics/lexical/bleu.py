"""BLEU, after Papineni, Roukos, Ward and Zhu (2002), computed by sacreBLEU (Post 2018, arXiv 1804.08771).

1. Cut hypothesis and references into tokens; count the n-grams of each order, 1 to `max_order`.
2. An n-gram matches as often as it stands in the hypothesis and in the reference that has it most often.
3. BLEU = 100 x brevity penalty x geometric mean of the shares that matched. Over a corpus the counts are summed first.

MuLER, and the tables published with it, average sentence BLEU without smoothing, from 0 to 1: an order without a match
makes the score 0 (`bleu(smoothing="none", effective_order=False, score_scale=1)`), or all but 0, as NLTK does it
(`smoothing="nltk"`). That is what a decomposition scores where nothing is said of smoothing (`smoothing="auto"`).

Segment scores use the effective order (orders longer than the hypothesis are left out) unless `effective_order` says
otherwise; the corpus score does not: both are sacreBLEU's own habits.

Word scores are the balance of matched and failed n-grams of a word (`word_balance`). Hypothesis words are compared with
all references together, as BLEU does; the words of a reference with the hypothesis. The brevity penalty belongs to no
word and is left out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import starmap
from typing import ClassVar, Literal

import numpy as np

from whyscore.errors import MissingExtra, SpecError
from whyscore.metrics.lexical.ngrams import Chain, Order, balance_words, hidden_matches
from whyscore.metrics.lexical.rows import TOKENIZERS, BleuRows, run_credits
from whyscore.metrics.needs import need_references, present
from whyscore.metrics.spans import locate_tokens
from whyscore.protocols import Token
from whyscore.registry import spec_of
from whyscore.settings import check_fields
from whyscore.types import (
    FloatMatrix,
    FloatVector,
    HiddenWords,
    Inputs,
    IntVector,
    Place,
    Segment,
    Side,
    Signature,
    Words,
    WordScores,
)

# Which extra of sacreBLEU a tokenizer needs.
_EXTRAS = {"ja-mecab": "pip install 'sacrebleu[ja]'", "ko-mecab": "pip install 'sacrebleu[ko]'"}
_NEEDS_VALUE = ("floor", "add-k")
# The precision of an order without a match; NLTK takes the smallest normal number there is.
_ZEROS = {"none": 0.0, "nltk": 2.2250738585072014e-308}


@dataclass(frozen=True, slots=True)
class Bleu:
    """Shares of n-grams that also stand in a reference, 0 to 100.

    Args:
        tokenize: how texts are cut: sacreBLEU's name of a tokenizer.
        lowercase: whether case is ignored.
        smoothing: what stands for an order without any match; None is "none", "nltk" the smallest number there is, and
            "auto" is "exp", or "none" in decompositions.
        smoothing_value: the number that `floor` and `add-k` need; None takes sacreBLEU's.
        max_order: the longest n-grams counted.
        effective_order: whether orders longer than the hypothesis are left out; None means for segments only.
        score_scale: the score of a perfect text.
    """

    tokenize: str | None = "13a"
    lowercase: bool = False
    smoothing: Literal["auto", "exp", "floor", "add-k", "none", "nltk"] | None = "auto"
    smoothing_value: float | None = None
    max_order: int = 4
    effective_order: bool | None = None
    score_scale: Literal[100, 1] = 100

    inputs: ClassVar[Inputs] = Inputs.HYPOTHESIS | Inputs.REFERENCES
    higher_is_better: ClassVar[bool] = True

    def __post_init__(self) -> None:
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
                f"bleu: smoothing_value is {self.smoothing_value}, but smoothing {self._smoothing!r} takes none. "
                "Leave it out, or choose 'floor' or 'add-k'"
            )
        if self.smoothing_value is not None and not 0 <= self.smoothing_value < float("inf"):
            raise SpecError(f"bleu: smoothing_value is {self.smoothing_value}, expected 0 or more")
        if self.smoothing == "nltk" and self.effective_order is not False:
            raise SpecError('bleu: smoothing "nltk" counts every order: write effective_order=False too')

    @property
    @lru_cache(maxsize=32)  # noqa: B019 - asked for at every check of what a metric can do
    def columns(self) -> tuple[str, ...]:
        orders = range(1, self.max_order + 1)
        return (
            "hypothesis_length",
            "reference_length",
            *(f"matched_{n}" for n in orders),
            *(f"total_{n}" for n in orders),
        )

    def signature(self) -> Signature:
        return Signature(spec_of(self), _rows(self).facts(effective_order=bool(self.effective_order)))

    def segment_signature(self) -> Signature:
        return Signature(spec_of(self), _rows(self).facts(effective_order=self._by_segment))

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        return self.scores(self.statistics(segments))

    def statistics(self, segments: Sequence[Segment]) -> FloatMatrix:
        need_references("bleu", segments)
        return _rows(self).rows(segments)

    def scores(self, rows: FloatMatrix) -> FloatVector:
        if self._smoothing in _ZEROS and self.effective_order is False:
            return self.score_scale * _bleu_without_smoothing(rows, self.max_order, _ZEROS[self._smoothing])
        formula, effective = _rows(self).formula, self._by_segment
        scores = [formula(row.tolist(), effective_order=effective) for row in rows]
        return np.array(scores, dtype=np.float64) * (self.score_scale / 100)

    def total(self, row: FloatVector) -> float:
        return _rows(self).formula(row.tolist(), effective_order=bool(self.effective_order)) * (self.score_scale / 100)

    def for_decomposition(self, *, published: bool) -> "Bleu":
        if self.smoothing != "auto":
            return self
        effective = bool(self.effective_order)
        smoothing: Literal["nltk", "none"] = "nltk" if published and not effective else "none"
        return replace(self, smoothing=smoothing, effective_order=effective, score_scale=1)

    @property
    def minimum_tokens(self) -> int:
        return self.max_order if self._smoothing in _ZEROS and not self._by_segment else 1

    def tokens(self, text: str) -> tuple[Token, ...]:
        return locate_tokens(_rows(self).tokens(text), text)

    def on_tokens(self) -> "Bleu":
        return replace(self, tokenize="none", lowercase=False)

    def hidden_statistics(
        self, texts: Sequence[tuple[IntVector, Sequence[IntVector]]], hidden: HiddenWords
    ) -> Iterator[tuple[FloatMatrix, FloatMatrix]]:
        for hypothesis, references in texts:
            size = len(hypothesis)
            other = min((len(text) for text in references), key=lambda length: (abs(length - size), length))
            totals = [max(size - n, 0) for n in range(self.max_order)]
            lengths, counts = np.tile([size, other], (len(hidden), 1)), np.tile(totals, (len(hidden), 1))
            best, worst = hidden_matches(hypothesis, references, hidden, self.max_order)
            yield np.hstack([lengths, best, counts]), np.hstack([lengths, worst, counts])

    def word_scores(self, segments: Sequence[Segment], place: Place, words: Sequence[Words]) -> list[WordScores]:
        return balance_words("bleu", segments, place, words, self._chains)

    @property
    def _smoothing(self) -> str:
        return "exp" if self.smoothing == "auto" else str(self.smoothing)

    @property
    def _by_segment(self) -> bool:
        return True if self.effective_order is None else self.effective_order

    def _chains(self, segments: Sequence[Segment], place: Place) -> list[list[Chain]]:
        """Return the n-grams of each text that match its references, or a reference's that match the hypothesis."""
        cut, on_hypothesis = _rows(self).tokens, place.side is Side.HYPOTHESIS
        texts = [segment.text(place) for segment in segments]
        others = [present(segment.references) if on_hypothesis else [segment.hypothesis] for segment in segments]
        tokens = [cut(text) for text in texts]
        shares = run_credits(
            tokens, [[cut(text) for text in references_of_text] for references_of_text in others], self.max_order
        )
        spans = [
            [(token.start, token.end) for token in locate_tokens(*pair)] for pair in zip(tokens, texts, strict=True)
        ]
        return [
            [Chain(tokens_spans, list(starmap(Order, enumerate(orders, 1))))]
            for tokens_spans, orders in zip(spans, shares, strict=True)
        ]


def _bleu_without_smoothing(rows: FloatMatrix, order: int, zero: float) -> FloatVector:
    """Return BLEU, 0 to 1, of all rows at once; `zero` is the precision of an order without a match.

    Also where that is not quite zero, a hypothesis without any matched word is.
    """
    hypothesis_lengths, reference_lengths = rows[:, 0], rows[:, 1]
    matched, totals = rows[:, 2 : 2 + order], rows[:, 2 + order : 2 + 2 * order]
    precision = np.where(matched > 0, matched / np.maximum(totals, 1), zero)
    short = np.where(
        hypothesis_lengths > reference_lengths, 0.0, 1 - reference_lengths / np.maximum(hypothesis_lengths, 1)
    )
    with np.errstate(divide="ignore"):
        logs = np.log(precision).mean(axis=1)
    return np.asarray(np.where(matched[:, 0] > 0, np.exp(short + logs), 0.0), dtype=np.float64)


@lru_cache(maxsize=32)
def _rows(metric: Bleu) -> BleuRows:
    try:
        return BleuRows(
            tokenize=str(metric.tokenize),
            lowercase=metric.lowercase,
            smoothing="none" if metric.smoothing == "nltk" else metric._smoothing,  # noqa: SLF001 - of this module
            smoothing_value=metric.smoothing_value,
            max_order=metric.max_order,
        )
    except (ImportError, RuntimeError, OSError) as error:
        cure = _EXTRAS.get(str(metric.tokenize), "pip install sentencepiece, and let it fetch its model once")
        reason = " ".join(str(error).split())
        raise MissingExtra(f"the tokenizer {metric.tokenize!r} cannot be used ({reason}): {cure}") from error
