"""The masks of the published tables, to compare with them.

1. Best case: each word of the feature becomes the feature's name on both sides, and a following 's or ' goes.
2. Worst case: X0 X1 ... in references and Y0 Y1 ... in hypotheses; every X of a reference and every Y of a hypothesis
   is numbered, also one that stood there before.
3. The masked text is then cut by NLTK's word tokenizer, a line as one sentence.
4. Spans are hidden piece by piece between blanks; a leading "the " stays.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from whyscore.errors import SpecError
from whyscore.jobs.decompose_masks import Mask, TokenMetric, Variant
from whyscore.jobs.decompose_tags import Marked, Marking
from whyscore.marking import Span
from whyscore.protocols import Metric
from whyscore.taggers.nltk import nltk_tokens
from whyscore.text.placeholders import by_words

_ARTICLE = re.compile(r"the\s+", re.IGNORECASE)
_CLITIC = re.compile(r"['’]s?")


@dataclass(frozen=True)
class CompatGrain:
    """Hides words as the published tables do."""

    metric: Metric
    names: tuple[str, ...]
    cut: bool
    kind: ClassVar[str] = "compat"

    def plain(self, text: Marked) -> str:
        """Return the text as the metric reads it."""
        return self._read(text.text)

    def hidden(self, text: Marked, spans: Sequence[Span], masks: Sequence[Mask], feature: int) -> str:
        """Refuse mixed masks: the experiments with them are defined in token space."""
        del text, spans, masks, feature
        raise SpecError("mode='compat' has no mixed masks: run this experiment with mode='paper'")

    def variant(self, text: Marked, feature: int, *, hypothesis: bool) -> Variant:
        """Return the text with a feature hidden in both ways."""
        letter = "Y" if hypothesis else "X"
        pieces = list(_pieces(text.text, text.spans[feature]))
        named = _hidden(text.text, pieces, self.names[feature])
        numbered = _numbered(_hidden(text.text, pieces, letter), letter)
        return Variant(self._read(named), self._read(numbered))

    def _read(self, text: str) -> str:
        return " ".join(token for token, _, _ in nltk_tokens(text)) if self.cut else text


def compat_grain(metric: Metric, marking: Marking) -> CompatGrain:
    """Return the published masks for a metric; one that counts tokens gets NLTK's."""
    names = tuple(re.sub(r"\W+", "", name.rpartition(":")[2]) or "FEATURE" for name in marking.features)
    if isinstance(metric, TokenMetric):
        return CompatGrain(metric.on_tokens(), names, cut=True)
    return CompatGrain(metric, names, cut=False)


def _pieces(text: str, spans: Sequence[Span]) -> Iterator[Span]:
    for start, end in spans:
        article = _ARTICLE.match(text, start, end)
        yield from by_words(text, [(article.end() if article else start, end)])


def _hidden(text: str, pieces: Sequence[Span], mask: str) -> str:
    parts: list[str] = []
    position = 0
    for start, end in pieces:
        parts += [text[position:start], mask]
        clitic = _CLITIC.match(text, end)
        position = clitic.end() if clitic else end
    return "".join([*parts, text[position:]])


def _numbered(text: str, letter: str) -> str:
    """Return the text with every such letter numbered.

    >>> _numbered("X saw the X", "X")
    'X0 saw the X1'
    """
    first, *rest = text.split(letter)
    return first + "".join(f"{letter}{number}{part}" for number, part in enumerate(rest))
