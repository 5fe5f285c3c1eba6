"""chrF, after Popović (2015), and chrF++ (Popović 2017), computed by sacreBLEU (Post 2018, arXiv 1804.08771).

1. Count the runs of 1 to `char_order` characters of hypothesis and reference, blanks left out; with `word_order=2`
   (chrF++) also words and pairs of words.
2. Precision and recall are averaged over the orders, all with the same weight.
3. chrF = 100 x F-beta of the two. Over a corpus the counts are summed first. Of several references, the one with the
   best score counts.

Word scores are the balance of matched and failed n-grams of a word (`word_balance`). Hypothesis words are compared with
the reference that has the best score, the words of any reference with the hypothesis.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import starmap
from typing import ClassVar, Literal

from whyscore.errors import SpecError
from whyscore.marking import Span
from whyscore.metrics.lexical.ngrams import Chain, Order, balance_words
from whyscore.metrics.lexical.rows import ChrfRows, CountedMetric, run_credits
from whyscore.metrics.spans import locate_tokens
from whyscore.settings import check_fields
from whyscore.types import Inputs, Place, Segment, Side, Words, WordScores


@dataclass(frozen=True, slots=True)
class Chrf(CountedMetric):
    """F-score of the character n-grams that hypothesis and reference share, 0 to 100.

    Args:
        char_order: the longest runs of characters counted.
        word_order: the longest runs of words counted; 2 is chrF++, 0 counts none.
        beta: how many times more recall weighs than precision.
        lowercase: whether case is ignored.
        whitespace: whether blanks are characters too.
        eps_smoothing: sum F-scores of the orders, as chrF++.py, NLTK and Moses do, instead of averaging first.
    """

    char_order: int = 6
    word_order: int = 0
    beta: int = 2
    lowercase: bool = False
    whitespace: bool = False
    eps_smoothing: bool = False

    name: ClassVar[str] = "chrf"
    inputs: ClassVar[Inputs] = Inputs.HYPOTHESIS | Inputs.REFERENCES
    higher_is_better: ClassVar[bool] = True
    score_scale: ClassVar[float] = 100.0

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("char_order", "word_order"):
            if getattr(self, name) < 0:
                raise SpecError(f"chrf: {name} is {getattr(self, name)}, expected 0 or more")
        if self.char_order + self.word_order == 0:
            raise SpecError("chrf: char_order and word_order are both 0, so that nothing is counted; raise one")
        if self.beta < 1:
            raise SpecError(f"chrf: beta is {self.beta}, expected 1 or more")

    @property
    @lru_cache(maxsize=32)  # noqa: B019 - asked for at every check of what a metric can do
    def columns(self) -> tuple[str, ...]:
        orders = [f"c{n}" for n in range(1, self.char_order + 1)] + [f"w{n}" for n in range(1, self.word_order + 1)]
        return tuple(f"{what}_{order}" for order in orders for what in ("hypothesis", "reference", "matched"))

    @property
    def masking(self) -> Literal["character", "opaque"]:
        return "character" if self.char_order else "opaque"

    @property
    @lru_cache(maxsize=32)  # noqa: B019 - metrics are small values
    def counts(self) -> ChrfRows:
        return ChrfRows(**asdict(self))

    def word_scores(self, segments: Sequence[Segment], place: Place, words: Sequence[Words]) -> list[WordScores]:
        return balance_words("chrf", segments, place, words, self._chains)

    def _chains(self, segments: Sequence[Segment], place: Place) -> list[list[Chain]]:
        """Return the n-grams of each text that match its best reference, or a reference's that match the hypothesis."""
        rows, on_hypothesis = self.counts, place.side is Side.HYPOTHESIS
        texts = [segment.text(place) for segment in segments]
        others = [rows.best(segment) if on_hypothesis else segment.hypothesis for segment in segments]
        chains: list[list[Chain]] = [[] for _ in segments]
        if self.char_order:
            characters, compared = list(map(rows.characters, texts)), list(map(rows.characters, others))
            shares = run_credits(characters, [[text] for text in compared], self.char_order)
            for chain, text, units, orders in zip(chains, texts, characters, shares, strict=True):
                chain.append(Chain(_character_spans(rows, units, text), list(starmap(Order, enumerate(orders, 1)))))
        if self.word_order:
            tokens = [rows.tokens(text) for text in texts]
            shares = run_credits(tokens, [[rows.tokens(text)] for text in others], self.word_order)
            for chain, text, words, orders in zip(chains, texts, tokens, shares, strict=True):
                spans = [(token.start, token.end) for token in locate_tokens(words, text)]
                chain.append(Chain(spans, list(starmap(Order, enumerate(orders, 1))), "word {n}-grams"))
        return chains


def _character_spans(rows: ChrfRows, counted: str, text: str) -> Sequence[Span]:
    """Return where the characters chrF counts stand in the text."""
    # Upper and lower case are equally long nearly always: then each character stands where it stood.
    places = range(len(text)) if rows.whitespace else [k for k, letter in enumerate(text) if not letter.isspace()]
    if len(counted) == len(places):
        return [(place, place + 1) for place in places]
    return [(token.start, token.end) for token in locate_tokens(counted, text)]
