"""What a metric must show to be looked into: what its network read, and how the score follows from it.

1. A metric that is `Inspectable` opens itself for some segments: per segment a `Reading`, the rows of pieces its
   network reads and which text stands where in them, and one differentiable function from readings to scores.
2. An explainer that is `LooksInside` takes such a metric and gives a word scorer. It finds one number per piece of a
   row, by running that function with an eye on the blocks of the network (`blocks`).
3. The same text may stand in several rows (UniTE reads the hypothesis three times): the numbers of a piece are added,
   or averaged, over the rows. Special pieces belong to no text and are left out.
4. Pieces become words by their characters (`whyscore.text.alignment`). Words the network did not read have no number.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

from whyscore.errors import DataError, SpecError
from whyscore.marking import Span
from whyscore.models.pairs import Coded, Coder, Cuts, Frame, Row
from whyscore.protocols import Metric, WordScorer
from whyscore.text.alignment import Pieces, Pool, Pooled, align, pool_words
from whyscore.types import FloatVector, Place, Segment, Words, WordScores

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

Fill = Literal["error", "previous", "next", "median", "null"]
"""What a word without a piece gets; words the network did not read have no number under any of these."""


class Part(NamedTuple):
    """A text in a row: which one, where its pieces begin, where they stand in it and how they are written."""

    place: Place
    start: int
    spans: tuple[Span, ...]
    pieces: tuple[str, ...]
    total: int
    """How many pieces the text has; more than there are spans where it was cut."""

    @property
    def inside(self) -> slice:
        """Where the pieces are in the row."""
        return slice(self.start, self.start + len(self.spans))


class Line(NamedTuple):
    """A row of pieces with the texts in it."""

    row: Row
    parts: tuple[Part, ...]


Reading = tuple[Line, ...]
"""All that a network reads for the score of one segment."""


@dataclass(frozen=True, eq=False)
class Inside:
    """A metric, opened for some segments."""

    who: str
    network: "Module"
    readings: tuple[Reading, ...]
    """One per segment."""
    score: Callable[[Sequence[Reading]], "Tensor"]
    """One number per reading, differentiable; the network sees the rows of all readings, one after the other."""
    device: str
    padding: int
    masking: int | None = None
    """The piece that stands for a hidden one, where the tokenizer has it."""


@runtime_checkable
class Inspectable(Protocol):
    """A metric whose score comes from a network that can be looked into."""

    def inspected(self, segments: Sequence[Segment]) -> Inside:
        """Return what the network reads of each segment, and the scores as a differentiable function of it."""


@runtime_checkable
class LooksInside(Protocol):
    """An explainer that reads word scores off the network of a metric."""

    def inside(self, metric: Metric) -> WordScorer:
        """Return the word scores of a metric; one that cannot be looked into is refused."""


class Shown(NamedTuple):
    """A text as a network sees it: which one, its pieces, and how many of them are read."""

    place: Place
    coded: Coded
    kept: int


def line(frame: Frame, texts: Sequence[Shown], limit: int | None = None) -> Line:
    """Return texts joined to one row with special pieces around them, cut at the end after `limit` pieces."""
    whole = frame.join([text.coded.ids[: text.kept] for text in texts])
    row = Row(whole.ids[:limit], whole.first)
    parts, start = [], len(frame.before)
    for place, coded, kept in texts:
        end = max(start, min(start + kept, len(row.ids)))
        read = end - start
        parts.append(Part(place, start, coded.spans[:read], coded.pieces[:read], len(coded.ids)))
        start += min(kept, len(coded.ids)) + len(frame.between)
    return Line(row, tuple(parts))


def masking_of(coder: Coder) -> int | None:
    """Return the piece by which a model hides others, if it knows one."""
    found = getattr(coder._tokenizer, "mask_token_id", None)  # noqa: SLF001 - the coder shows only what all models have
    return found if isinstance(found, int) else None


def warn_of_cuts(cuts: Cuts, readings: Sequence[Reading]) -> None:
    """Tell of texts that were cut, unless the same model has told of it before."""
    cut = sum(len(part.spans) < part.total for line in rows_of(readings) for part in line.parts)
    if not cuts.told:
        cuts.add(cut, sum(len(line.parts) for line in rows_of(readings)))


def rows_of(readings: Sequence[Reading]) -> list[Line]:
    """Return the rows of all readings, one after the other."""
    return [line for reading in readings for line in reading]


PieceValues = Callable[[Inside, Place], Sequence[Sequence[FloatVector]]]
"""From an opened metric and a place, one number per piece of each row of each reading."""


@dataclass(frozen=True, eq=False)
class PieceScorer:
    """Word scores of a metric from numbers for the pieces its network reads."""

    metric: Inspectable
    values: PieceValues
    combine: Literal["sum", "mean"]
    """What becomes of the numbers of a piece that stands in several rows."""
    pool: Pool
    fill: Fill
    what: str
    """What the numbers are, for notes."""

    def word_scores(self, segments: Sequence[Segment], place: Place, words: Sequence[Words]) -> list[WordScores]:
        opened = self.metric.inspected(segments)
        found = self.values(opened, place)
        return [
            self._words(own, *at_place(reading, place, values, self.combine))
            for own, reading, values in zip(words, opened.readings, found, strict=True)
        ]

    def _words(self, words: Words, part: Part, values: FloatVector) -> WordScores:
        pooled = pooled_words(words, part, values, self.pool, self.fill)
        notes = _notes(words, part, values, self.what)
        for word, reason in pooled.missing:
            notes[word] = f"{reason}, filled" if word in pooled.filled else reason
        return WordScores(pooled.values, tuple(notes))


def pooled_words(words: Words, part: Part, values: FloatVector, pool: Pool, fill: Fill) -> Pooled:
    """Return one number per word from one per piece of a text; NaN for words that were not read."""
    policy = "null" if fill == "error" else fill
    pooled = pool_words(words, _pieces(part), values, pool=pool, fill=policy, split=pool == "sum")
    lost = [word for word, reason in pooled.missing if reason != "truncated"]
    if fill == "error" and lost:
        name = words.text[slice(*words.spans[lost[0]])]
        raise DataError(
            f"{len(lost)} word(s) of {words.text!r} have no piece, first {name!r}; choose fill='previous', 'next', "
            "'median' or 'null'"
        )
    return pooled


def at_place(
    reading: Reading, place: Place, values: Sequence[FloatVector], combine: Literal["sum", "mean"]
) -> tuple[Part, FloatVector]:
    """Return the text at a place, as far as any row has it, and one number per piece of it.

    `values` holds, on its last axis, one number per piece of each row; a piece that stands in several rows gets their
    sum or mean.
    """
    found = [
        (part, numbers[..., part.inside])
        for line, numbers in zip(reading, values, strict=True)
        for part in line.parts
        if part.place == place
    ]
    if not found:  # an empty reference beside others is not read
        return Part(place, 0, (), (), 0), np.zeros((*values[0].shape[:-1], 0))
    longest = max((part for part, _ in found), key=lambda part: len(part.spans))
    total, count = np.zeros((*values[0].shape[:-1], len(longest.spans))), np.zeros(len(longest.spans))
    for part, numbers in found:
        total[..., : len(part.spans)] += numbers
        count[: len(part.spans)] += 1
    return longest, total / count if combine == "mean" else total


def opened(metric: object, who: str) -> Inspectable:
    """Return a metric that can be looked into, or refuse it with what works instead."""
    if isinstance(metric, Inspectable):
        return metric
    name = metric.signature().spec if isinstance(metric, Metric) else repr(metric)
    raise SpecError(
        f"{name} cannot be looked into: {who} needs a metric with a network of its own, such as comet or transquest. "
        "Explain it with erasure, lime or shap"
    )


def _pieces(part: Part) -> Pieces:
    cut = len(part.spans) < part.total
    seen = part.spans[-1][1] if part.spans else 0
    return Pieces(part.spans, part.pieces, seen=seen if cut else None)


def _notes(words: Words, part: Part, values: FloatVector, what: str) -> list[str]:
    """Return each word's pieces, as they stand in the text, with their numbers."""
    shown: list[list[str]] = [[] for _ in range(len(words))]
    pairs = align(words, _pieces(part))
    for piece, word in zip(pairs.piece.tolist(), pairs.word.tolist(), strict=True):
        text = words.text[slice(*part.spans[piece])].strip() or part.pieces[piece]
        shown[word].append(f"{text} {values[piece]:.4g}")
    return [f"{what}: {', '.join(parts)}" for parts in shown]
