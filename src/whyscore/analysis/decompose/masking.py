"""How a feature is masked in texts: what the metric compares decides where, and behind what.

| masking | metrics | masked where | behind |
|---|---|---|---|
| `token` | `TokenMetric`: BLEU, ROUGE, TER | tokens of the unmasked text | one private-use character |
| `character` | declared or probed: chrF | text | as many characters as the feature's words are long on average |
| `matrix` | `MatrixMetric`: BERTScore | cells of the matrix (`scoring`) | nothing |
| `opaque` | all others | text | a word that stands for nothing |

Masking a raw string can change how a metric cuts the rest of it; hence tokens wherever a metric has them.

The masks of the published tables (`mode="compat"`) are others:

1. Best case: each word of the feature becomes the feature's name on both sides, and a following 's or ' goes.
2. Worst case: X0 X1 ... in references and Y0 Y1 ... in hypotheses; every X of a reference and every Y of a hypothesis
   is numbered, also one that stood there before.
3. The masked text is then cut by NLTK's word tokenizer, a line as one sentence.
4. Spans are masked piece by piece between blanks; a leading "the " stays.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

import numpy as np

from whyscore.analysis.decompose.settings import FeatureSettings, Tokens
from whyscore.analysis.decompose.tagging import Marked, Marking
from whyscore.errors import SpecError
from whyscore.marking import Span
from whyscore.protocols import Masking, Metric, SupportsPlaceholders, Token, TokenMetric
from whyscore.taggers.nltk import nltk_tokens, nltk_words
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


class Variant(NamedTuple):
    """A text with a feature masked: where all occurrences agree, and where none does."""

    oracle: str
    anti: str


class TextMasking(Protocol):
    """Where and how features are masked in the texts of a metric."""

    @property
    def metric(self) -> Metric:
        """The metric that reads the texts made here."""

    def plain(self, text: Marked) -> str:
        """Return the text with nothing masked, as the metric reads it."""

    def mask_spans(self, text: Marked, spans: Sequence[Span], masks: Sequence[Mask], feature: int) -> str:
        """Return the text with spans masked, each behind its own mask."""

    def variant(self, text: Marked, feature: int, *, hypothesis: bool) -> Variant:
        """Return the text with a feature masked in both ways; a reference is the same in both."""


@dataclass(frozen=True)
class _Simple:
    """What all but the published masks share: one variant becomes the other by exchanging its mask."""

    metric: Metric
    placeholders: Placeholders
    unit: Unit

    def variant(self, text: Marked, feature: int, *, hypothesis: bool) -> Variant:
        """Return the text with a feature masked; only a hypothesis gets the mask that never agrees."""
        spans = text.spans[feature]
        agreeing = self.mask_spans(text, spans, ["agreeing"] * len(spans), feature)
        return Variant(agreeing, self._exchange(agreeing, feature) if hypothesis else agreeing)

    def plain(self, text: Marked) -> str:
        return text.text

    def mask_spans(self, text: Marked, spans: Sequence[Span], masks: Sequence[Mask], feature: int) -> str:
        raise NotImplementedError

    def _exchange(self, agreeing: str, feature: int) -> str:
        del feature
        return agreeing.replace(self.placeholders.agreeing, self.placeholders.differing)

    def _strings(self, masks: Sequence[Mask]) -> list[str]:
        return [getattr(self.placeholders, mask) for mask in masks]

    def _pieces(self, text: Marked, spans: Sequence[Span], masks: Sequence[Mask]) -> tuple[list[Span], list[str]]:
        """Return what to mask in text, per word or whole spans, and behind which strings."""
        strings = self._strings(masks)
        if self.unit == "span":
            return list(spans), strings
        pairs = [
            (piece, string)
            for span, string in zip(spans, strings, strict=True)
            for piece in by_words(text.text, [span])
        ]
        return [piece for piece, _ in pairs], [string for _, string in pairs]


@dataclass(frozen=True)
class TokenMasking(_Simple):
    """Masks tokens of the unmasked text; the metric then reads tokens joined by blanks."""

    cut: Cut
    _known: dict[int, TokenRow] = field(default_factory=dict, repr=False, compare=False)

    def tokens(self, text: Marked) -> TokenRow:
        row = self._known.get(text.number)
        if row is None:
            row = self._known[text.number] = _token_row(self.cut(text.text), text.text)
        return row

    def plain(self, text: Marked) -> str:
        tokens = self.tokens(text)
        return _join(text.text, tokens, tokens.texts)

    def mask_spans(self, text: Marked, spans: Sequence[Span], masks: Sequence[Mask], feature: int) -> str:
        del feature
        tokens = self.tokens(text)
        return _join(text.text, tokens, hide_in_tokens(tokens, spans, self._strings(masks), self.unit))


@dataclass(frozen=True)
class CharacterMasking(_Simple):
    """Masks stretches of text behind as many characters as a feature's words have on average."""

    lengths: tuple[int, ...]

    def mask_spans(self, text: Marked, spans: Sequence[Span], masks: Sequence[Mask], feature: int) -> str:
        pieces, strings = self._pieces(text, spans, masks)
        return hide_in_text(text.text, pieces, [string[: self.lengths[feature]] for string in strings])

    def _exchange(self, agreeing: str, feature: int) -> str:
        length = self.lengths[feature]
        return agreeing.replace(self.placeholders.agreeing[:length], self.placeholders.differing[:length])


@dataclass(frozen=True)
class OpaqueMasking(_Simple):
    """Masks stretches of text behind words that stand for nothing."""

    def mask_spans(self, text: Marked, spans: Sequence[Span], masks: Sequence[Mask], feature: int) -> str:
        del feature
        pieces, strings = self._pieces(text, spans, masks)
        return hide_in_text(text.text, pieces, strings, spaced=True)


def _token_row(tokens: Sequence[Token], text: str) -> TokenRow:
    """Return the tokens of a text column by column."""
    places = [(token.start, token.end) for token in tokens]
    # Two tokens in one place (an entity that became two) must both be found: no shortcut then.
    alone = len(set(places)) == len(places)
    numbers = {place: k for k, place in enumerate(places) if alone and place[0] < place[1]}
    starts, ends = [start for start, _ in places], [end for _, end in places]
    return TokenRow([token.text for token in tokens], starts, ends, text, numbers)


def masking_for(metric: Metric, marking: Marking, settings: FeatureSettings, masking: Masking) -> TextMasking:
    """Return where and how the features of a data set are masked for a metric."""
    if settings.mode == "compat":
        return compat_masking(metric, marking)
    texts = [text.text for text in marking.texts]
    if isinstance(metric, TokenMetric):
        cut = _cutter(metric, marking, settings.tokens)
        return TokenMasking(metric.on_tokens(), unused_characters(texts), settings.unit, cut)
    if masking == "character":
        lengths = mean_lengths(marking, settings.unit)
        placeholders = unused_characters(texts, max(lengths, default=1))
        return CharacterMasking(metric, placeholders, settings.unit, lengths)
    declared = Placeholders(*metric.placeholders) if isinstance(metric, SupportsPlaceholders) else None
    return OpaqueMasking(metric, declared or unused_words(texts), settings.unit)


def tokenizer_of(metric: Metric, marking: Marking, tokens: Tokens | None) -> Callable[[Marked], TokenRow]:
    """Return what gives the tokens of marked texts, cut as `tokens` says."""
    cut = _cutter(metric, marking, tokens)
    return lambda text: _token_row(cut(text.text), text.text)


def _cutter(metric: Metric, marking: Marking, tokens: Tokens | None) -> Cut:
    """Return how texts are cut: as the tagger did, as NLTK does, or as the metric does where it has tokens."""
    scheme = tokens or ("tagger" if marking.gives_tokens else "metric")
    if scheme == "tagger":
        if not marking.gives_tokens:
            raise SpecError("tokens='tagger' needs a tagger that gives tokens, such as pretagged: use metric or nltk")
        return lambda text: _as_tokens(white_space(text))
    if scheme == "nltk":
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
                if spans:
                    pieces = spans if unit == "span" else by_words(text.text, spans)
                    totals[feature] += (sum(end - start for start, end in pieces), len(pieces))
    return tuple(max(1, round(total / count)) if count else 1 for total, count in totals.tolist())


def _as_tokens(words: Words) -> list[Token]:
    return [Token(words.text[start:end], start, end) for start, end in words.spans]


def _join(text: str, tokens: TokenRow, shown: Sequence[str]) -> str:
    """Return tokens joined by blanks; a token after a line break starts a line, which only ROUGE-Lsum looks at."""
    if "\n" not in text:
        return " ".join(filter(None, shown))
    parts: list[str] = []
    position = 0
    for token, start, end in zip(shown, tokens.starts, tokens.ends, strict=True):
        if "\n" in text[position:start] and parts:
            parts.append("\n")
        position = max(position, end)
        if token:
            parts += ([" "] if parts and parts[-1] != "\n" else []) + [token]
    return "".join(parts)


_ARTICLE = re.compile(r"the\s+", re.IGNORECASE)
_CLITIC = re.compile(r"['’]s?")


@dataclass(frozen=True)
class CompatMasking:
    """Masks words as the published tables do."""

    metric: Metric
    names: tuple[str, ...]
    cut: bool

    def plain(self, text: Marked) -> str:
        return self._read(text.text)

    def mask_spans(self, text: Marked, spans: Sequence[Span], masks: Sequence[Mask], feature: int) -> str:
        """Refuse mixed masks: the experiments with them are defined in token space."""
        del text, spans, masks, feature
        raise SpecError("mode='compat' has no mixed masks: run this experiment with mode='paper'")

    def variant(self, text: Marked, feature: int, *, hypothesis: bool) -> Variant:
        letter = "Y" if hypothesis else "X"
        pieces = list(_pieces(text.text, text.spans[feature]))
        named = _mask_pieces(text.text, pieces, self.names[feature])
        numbered = _number(_mask_pieces(text.text, pieces, letter), letter)
        return Variant(self._read(named), self._read(numbered))

    def _read(self, text: str) -> str:
        return " ".join(nltk_words(text)) if self.cut else text


def compat_masking(metric: Metric, marking: Marking) -> CompatMasking:
    """Return the published masks for a metric; one that counts tokens gets NLTK's."""
    names = tuple(re.sub(r"\W+", "", name.rpartition(":")[2]) or "FEATURE" for name in marking.features)
    if isinstance(metric, TokenMetric):
        return CompatMasking(metric.on_tokens(), names, cut=True)
    return CompatMasking(metric, names, cut=False)


def _pieces(text: str, spans: Sequence[Span]) -> Iterator[Span]:
    for start, end in spans:
        article = _ARTICLE.match(text, start, end)
        yield from by_words(text, [(article.end() if article else start, end)])


def _mask_pieces(text: str, pieces: Sequence[Span], mask: str) -> str:
    parts: list[str] = []
    position = 0
    for start, end in pieces:
        parts += [text[position:start], mask]
        clitic = _CLITIC.match(text, end)
        position = clitic.end() if clitic else end
    return "".join([*parts, text[position:]])


def _number(text: str, letter: str) -> str:
    """Return the text with every such letter numbered.

    >>> _number("X saw the X", "X")
    'X0 saw the X1'
    """
    first, *rest = text.split(letter)
    return first + "".join(f"{letter}{number}{part}" for number, part in enumerate(rest))
