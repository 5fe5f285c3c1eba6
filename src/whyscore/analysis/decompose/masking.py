"""How the texts of a feature are hidden: the grain of the metric decides where.

| grain | metrics | hidden where | behind |
|---|---|---|---|
| `token` | with `tokens` and `on_tokens`: BLEU, ROUGE, TER | tokens of the unmasked text | one private-use character |
| `character` | chrF | text | as many as the feature's words are long on average |
| `matrix` | with similarities: BERTScore | cells of the matrix | nothing |
| `opaque` | all others | text | a word that stands for nothing |

Hiding in a raw string can change how a metric cuts the rest of it; hence tokens wherever a metric has them.

The masks of the published tables, to compare with them.

1. Best case: each word of the feature becomes the feature's name on both sides, and a following 's or ' goes.
2. Worst case: X0 X1 ... in references and Y0 Y1 ... in hypotheses; every X of a reference and every Y of a hypothesis
   is numbered, also one that stood there before.
3. The masked text is then cut by NLTK's word tokenizer, a line as one sentence.
4. Spans are hidden piece by piece between blanks; a leading "the " stays.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

from whyscore.analysis.decompose.tagging import Marked, Marking
from whyscore.errors import SpecError
from whyscore.marking import Span
from whyscore.metrics.lexical.chrf import Chrf
from whyscore.metrics.spans import Token
from whyscore.protocols import MatrixMetric, Metric
from whyscore.taggers.nltk import nltk_tokens
from whyscore.text.placeholders import (
    Placeholders,
    TokenRow,
    Unit,
    by_words,
    hide_in_text,
    hide_in_tokens,
    unused_characters,
    unused_words,
)
from whyscore.text.splitters import UnicodeWords, white_space
from whyscore.types import Words

Mask = Literal["agreeing", "differing", "apart"]
Cut = Callable[[str], Sequence[Token]]


@runtime_checkable
class TokenMetric(Protocol):
    """A metric that counts tokens and says which."""

    def tokens(self, text: str) -> tuple[Token, ...]:
        """Return the tokens with their places in the text as given."""

    def on_tokens(self) -> Metric:
        """Return the same metric for texts that are cut already."""


class Variant(NamedTuple):
    """A text with a feature hidden: where all occurrences agree, and where none does."""

    oracle: str
    anti: str


class Grain(Protocol):
    """Where and how features are hidden for a metric."""

    @property
    def kind(self) -> str:
        """The name of the grain."""

    @property
    def metric(self) -> Metric:
        """The metric that reads the texts made here."""

    def plain(self, text: Marked) -> str:
        """Return the text with nothing hidden, as the metric reads it."""

    def hidden(self, text: Marked, spans: Sequence[Span], masks: Sequence[Mask], feature: int) -> str:
        """Return the text with spans hidden, each behind its own mask."""

    def variant(self, text: Marked, feature: int, *, hypothesis: bool) -> Variant:
        """Return the text with a feature hidden in both ways; a reference is the same in both."""


@dataclass(frozen=True)
class _Simple:
    """What all grains of this page share: the two masks, and that one text becomes the other by exchanging them."""

    metric: Metric
    placeholders: Placeholders
    unit: Unit

    def variant(self, text: Marked, feature: int, *, hypothesis: bool) -> Variant:
        """Return the text with a feature hidden; only a hypothesis gets the mask that never agrees."""
        spans = text.spans[feature]
        agreeing = self.hidden(text, spans, ["agreeing"] * len(spans), feature)
        return Variant(agreeing, self._exchanged(agreeing, feature) if hypothesis else agreeing)

    def hidden(self, text: Marked, spans: Sequence[Span], masks: Sequence[Mask], feature: int) -> str:
        """Return the text with spans hidden."""
        raise NotImplementedError

    def _exchanged(self, agreeing: str, feature: int) -> str:
        del feature
        return agreeing.replace(self.placeholders.agreeing, self.placeholders.differing)

    def _strings(self, masks: Sequence[Mask]) -> list[str]:
        return [getattr(self.placeholders, one) for one in masks]

    def _pieces(self, text: Marked, spans: Sequence[Span], masks: Sequence[Mask]) -> tuple[list[Span], list[str]]:
        """Return what to hide in text, per word or whole spans, and behind which strings."""
        strings = self._strings(masks)
        if self.unit == "span":
            return list(spans), strings
        pairs = [
            (piece, one) for span, one in zip(spans, strings, strict=True) for piece in by_words(text.text, [span])
        ]
        return [piece for piece, _ in pairs], [one for _, one in pairs]


@dataclass(frozen=True)
class TokenGrain(_Simple):
    """Hides tokens of the unmasked text; the metric then reads tokens joined by blanks."""

    cut: Cut
    kind: ClassVar[str] = "token"
    _known: dict[int, TokenRow] = field(default_factory=dict, repr=False, compare=False)

    def tokens(self, text: Marked) -> TokenRow:
        """Return the tokens of a text, which is cut once."""
        known = self._known.get(text.number)
        if known is None:
            known = self._known[text.number] = token_row(self.cut(text.text), text.text)
        return known

    def plain(self, text: Marked) -> str:
        """Return the tokens, joined."""
        tokens = self.tokens(text)
        return _joined(text.text, tokens, tokens.texts)

    def hidden(self, text: Marked, spans: Sequence[Span], masks: Sequence[Mask], feature: int) -> str:
        """Return the tokens with spans hidden, joined."""
        del feature
        tokens = self.tokens(text)
        return _joined(text.text, tokens, hide_in_tokens(tokens, spans, self._strings(masks), self.unit))


@dataclass(frozen=True)
class CharacterGrain(_Simple):
    """Hides stretches of text behind as many characters as a feature's words have on average."""

    lengths: tuple[int, ...]
    kind: ClassVar[str] = "character"

    def plain(self, text: Marked) -> str:
        """Return the text itself."""
        return text.text

    def hidden(self, text: Marked, spans: Sequence[Span], masks: Sequence[Mask], feature: int) -> str:
        """Return the text with spans hidden."""
        pieces, strings = self._pieces(text, spans, masks)
        return hide_in_text(text.text, pieces, [one[: self.lengths[feature]] for one in strings])

    def _exchanged(self, agreeing: str, feature: int) -> str:
        length = self.lengths[feature]
        return agreeing.replace(self.placeholders.agreeing[:length], self.placeholders.differing[:length])


@dataclass(frozen=True)
class OpaqueGrain(_Simple):
    """Hides stretches of text behind words that stand for nothing."""

    kind: ClassVar[str] = "opaque"

    def plain(self, text: Marked) -> str:
        """Return the text itself."""
        return text.text

    def hidden(self, text: Marked, spans: Sequence[Span], masks: Sequence[Mask], feature: int) -> str:
        """Return the text with spans hidden."""
        del feature
        pieces, strings = self._pieces(text, spans, masks)
        return hide_in_text(text.text, pieces, strings, spaced=True)


def token_row(tokens: Sequence[Token], text: str) -> TokenRow:
    """Return the tokens of a text column by column."""
    places = [(one.start, one.end) for one in tokens]
    # Two tokens in one place (an entity that became two) must both be found: no shortcut then.
    alone = len(set(places)) == len(places)
    numbers = {place: k for k, place in enumerate(places) if alone and place[0] < place[1]}
    starts, ends = [start for start, _ in places], [end for _, end in places]
    return TokenRow([one.text for one in tokens], starts, ends, text, numbers)


def kind_of(metric: Metric) -> str:
    """Return the grain of a metric."""
    if isinstance(metric, MatrixMetric):
        return "matrix"
    if isinstance(metric, TokenMetric):
        return "token"
    return "character" if isinstance(metric, Chrf) else "opaque"


def grain_of(metric: Metric, marking: Marking, *, unit: Unit = "word", tokens: str | None = None) -> Grain:
    """Return where and how the features of a data set are hidden for a metric."""
    texts = [text.text for text in marking.texts]
    if isinstance(metric, TokenMetric):
        cut = cutter(metric, marking, tokens)
        return TokenGrain(metric.on_tokens(), unused_characters(texts), unit, cut)
    if isinstance(metric, Chrf):
        lengths = mean_lengths(marking, unit)
        return CharacterGrain(metric, unused_characters(texts, max(lengths, default=1)), unit, lengths)
    return OpaqueGrain(metric, _declared(metric) or unused_words(texts), unit)


def cutter(metric: Metric, marking: Marking, tokens: str | None) -> Cut:
    """Return how texts are cut: as the tagger did, as NLTK does, or as the metric does where it has tokens."""
    chosen = tokens or ("tagger" if marking.gives_tokens else "metric")
    if chosen == "tagger":
        if not marking.gives_tokens:
            raise SpecError("tokens='tagger' needs a tagger that gives tokens, such as pretagged: use metric or nltk")
        return lambda text: _as_tokens(white_space(text))
    if chosen == "nltk":
        return lambda text: [Token(*token) for token in nltk_tokens(text)]
    if isinstance(metric, TokenMetric):
        return metric.tokens
    return lambda text: _as_tokens(UnicodeWords().split(text))


def mean_lengths(marking: Marking, unit: Unit) -> tuple[int, ...]:
    """Return for each feature the mean length of its occurrences in all references, rounded, at least one."""
    totals = np.zeros((len(marking.features), 2), dtype=np.int64)
    for entry in marking.entries:
        for text in entry.references:
            for feature, spans in enumerate(text.spans):
                pieces = spans if unit == "span" else by_words(text.text, spans)
                totals[feature] += (sum(end - start for start, end in pieces), len(pieces))
    return tuple(max(1, round(total / count)) if count else 1 for total, count in totals.tolist())


def _declared(metric: Metric) -> Placeholders | None:
    """Return the mask tokens that a metric's model declares, if it does."""
    declared = getattr(metric, "placeholders", None)
    return None if declared is None else Placeholders(*declared)


def _as_tokens(words: Words) -> list[Token]:
    return [Token(word, start, end) for word, (start, end) in zip(words, words.spans, strict=True)]


def _joined(text: str, tokens: TokenRow, shown: Sequence[str]) -> str:
    """Return tokens joined by blanks; a token after a line break starts a line, which only ROUGE-Lsum looks at."""
    if "\n" not in text:
        return " ".join(filter(None, shown))
    parts: list[str] = []
    position = 0
    for one, start, end in zip(shown, tokens.starts, tokens.ends, strict=True):
        if "\n" in text[position:start] and parts:
            parts.append("\n")
        position = max(position, end)
        if one:
            parts += ([" "] if parts and parts[-1] != "\n" else []) + [one]
    return "".join(parts)


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
