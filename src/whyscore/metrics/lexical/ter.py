"""Translation edit rate, after Snover, Dorr, Schwartz, Micciulla and Makhoul (2006), computed by sacreBLEU.

1. Count the fewest edits (insert, delete, substitute a word, shift a block of words) that turn the hypothesis into a
   reference; of several references the one with the fewest edits counts.
2. TER = 100 x edits / mean number of words of the references. Over a corpus both are summed first. Lower is better.

Word scores: each word is charged with its edits (`ter_edits`), and its importance is minus what they add to TER, so 0
for a word that may stay. The edits of the hypothesis words and the deleted words of the reference together are TER.
Hypothesis words are compared with the reference that needs the fewest edits, the words of any reference with the
hypothesis. The note says what happened, as seen from the reference: `ok`, `inserted`, `deleted`, `substituted for`
or `by` the word on the other side, `shifted`.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import ClassVar

from whyscore.metrics.lexical.edits import Edit, Trace, trace
from whyscore.metrics.lexical.ngrams import NOT_READ
from whyscore.metrics.lexical.rows import CountedMetric, TerRows, mean_length
from whyscore.metrics.needs import need_place, need_references
from whyscore.metrics.spans import locate_tokens, share_out, touching
from whyscore.protocols import Token
from whyscore.settings import check_fields
from whyscore.types import Inputs, Place, Segment, Side, Words, WordScores


@dataclass(frozen=True, slots=True)
class Ter(CountedMetric):
    """Edits per hundred reference words; 0 is perfect, and more than 100 is possible.

    Args:
        normalized: whether punctuation is cut off and entities are resolved.
        no_punct: whether punctuation is left out.
        asian_support: whether `normalized` and `no_punct` also know the scripts of East Asia.
        case_sensitive: whether case counts.
    """

    normalized: bool = False
    no_punct: bool = False
    asian_support: bool = False
    case_sensitive: bool = False

    name: ClassVar[str] = "ter"
    inputs: ClassVar[Inputs] = Inputs.HYPOTHESIS | Inputs.REFERENCES
    higher_is_better: ClassVar[bool] = False
    score_scale: ClassVar[float] = 100.0
    columns: ClassVar[tuple[str, ...]] = ("edits", "reference_length")

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    @lru_cache(maxsize=32)  # noqa: B019 - metrics are small values
    def counts(self) -> TerRows:
        return TerRows(**asdict(self))

    def tokens(self, text: str) -> tuple[Token, ...]:
        return locate_tokens(self.counts.tokens(text), text)

    def on_tokens(self) -> "Ter":
        return replace(self, normalized=False, no_punct=False, asian_support=False, case_sensitive=True)

    def word_scores(self, segments: Sequence[Segment], place: Place, words: Sequence[Words]) -> list[WordScores]:
        need_place("ter", place)
        need_references("ter", segments)
        return [self._word_scores(segment, place, text) for segment, text in zip(segments, words, strict=True)]

    def _word_scores(self, segment: Segment, place: Place, words: Words) -> WordScores:
        rows = self.counts
        on_hypothesis = place.side is Side.HYPOTHESIS
        text = segment.text(place)
        hypothesis = rows.tokens(segment.hypothesis)
        reference = rows.best(segment) if on_hypothesis else rows.reference_tokens(text)
        steps = trace(hypothesis, reference)
        points = _points(steps, mean_length(rows.references(segment)))
        if on_hypothesis:
            return _charge_words(words, locate_tokens(hypothesis, text), steps.hypothesis, points, "for")
        return _charge_words(words, locate_tokens(reference, text), steps.reference, points, "by")


def _points(steps: Trace, length: float) -> float:
    """Return what one edit adds to TER; without reference words any number of edits is 100."""
    return 100 / (length or max(steps.edits, 1))


def _charge_words(
    words: Words, tokens: Sequence[Token], edits: Sequence[Edit], points: float, preposition: str
) -> WordScores:
    """Return each word's costs; a token that lies in several words is paid by them in equal parts."""
    touched = touching([(token.start, token.end) for token in tokens], words)
    importance = -points * share_out([edit.cost for edit in edits], touched)
    notes = [_note([tokens[k].text for k in numbers], [edits[k] for k in numbers], preposition) for numbers in touched]
    # Adding zero turns -0.0, the importance of a word without edits, into 0.0.
    return WordScores(importance + 0.0, tuple(notes))


def _note(tokens: Sequence[str], edits: Sequence[Edit], preposition: str) -> str:
    notes = [_describe_edit(edit, preposition) for edit in edits]
    if len(notes) == 1:
        return notes[0]
    return ", ".join(f"{token} {what}" for token, what in zip(tokens, notes, strict=True)) or NOT_READ


def _describe_edit(edit: Edit, preposition: str) -> str:
    what = f"substituted {preposition} {edit.other!r}" if edit.kind == "substituted" else edit.kind
    if not edit.shifts:
        return what
    return "shifted" if edit.kind == "ok" else f"shifted, {what}"
