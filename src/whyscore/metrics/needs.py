"""What a metric needs of a segment, and what is to be known of a metric that does not say it.

A plain function says neither how large its numbers are nor what it compares. Both are found out by scoring a few
sentences (`traits_of`):

1. Its scale is 100 where a text scores 100 against itself, else 1.
2. It compares characters where exchanging all letters of both texts for others (rot13) leaves the score as it is, so
   that nothing but the form counts, and where a word with one wrong letter scores other than one with all wrong.
"""

import codecs
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from whyscore.errors import MissingInput, SpecError, WhyscoreError
from whyscore.protocols import Masking, MatrixMetric, Metric, SupportsMasking, SupportsScale, TokenMetric
from whyscore.types import HYPOTHESIS, SOURCE, Inputs, Place, Segment, Side

_REFERENCE = "the small brown dog sleeps under our old table"
_ONE_WRONG, _ALL_WRONG = _REFERENCE.replace("sleeps", "sleepz"), _REFERENCE.replace("sleeps", "zzzzzz")
_PERCENT = 100.0

_SHOWN = 60


def quote_start(text: str) -> str:
    """Return the beginning of a text as it stands in a message."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def need_references(name: str, segments: Iterable[Segment]) -> None:
    """Refuse segments without any reference."""
    for number, segment in enumerate(segments, start=1):
        if not segment.references:
            raise MissingInput(
                f"{name} needs a reference: segment {number} (hypothesis {quote_start(segment.hypothesis)}) has none. "
                "Give references, or choose a metric without them"
            )


def need_source(name: str, segments: Iterable[Segment]) -> None:
    """Refuse segments without a source."""
    for number, segment in enumerate(segments, start=1):
        if segment.source is None:
            raise MissingInput(
                f"{name} needs the source: segment {number} (hypothesis {quote_start(segment.hypothesis)}) has none. "
                "Give sources, or choose a metric without them"
            )


def need_inputs(name: str, segments: Sequence[Segment], inputs: Inputs, instead: str = "") -> None:
    """Refuse segments without a text that a metric reads; `instead` ends the message with what would do without it."""
    try:
        if Inputs.SOURCE in inputs:
            need_source(name, segments)
        if Inputs.REFERENCES in inputs:
            need_references(name, segments)
    except MissingInput as error:
        raise MissingInput(f"{error}{instead}") from None


def need_place(name: str, place: Place) -> None:
    """Refuse to explain the source for a metric that compares hypothesis and references."""
    if place.side is Side.SOURCE:
        raise SpecError(f"{name} does not read the source: explain the hypothesis or a reference")


def present(references: Sequence[str]) -> tuple[str, ...]:
    """Return the references that say something; an empty one counts as missing where there is another.

    >>> present(("a cat", ""))
    ('a cat',)
    >>> present(("", ""))
    ('',)
    """
    return tuple(text for text in references if text and not text.isspace()) or tuple(references[:1])


def compared_texts(segment: Segment, against: str, place: Place = HYPOTHESIS) -> dict[Place, str]:
    """Return the texts that a hypothesis is compared with, for the words of the text at a place.

    They are its source, or its references; a blank reference only where there is no other.
    """
    if against == "source":
        return {SOURCE: segment.source or ""}
    if place.side is Side.REFERENCE:
        return {place: segment.text(place)}
    placed = {Place(Side.REFERENCE, k): text for k, text in enumerate(segment.references)}
    return {other: text for other, text in placed.items() if text.strip()} or dict(list(placed.items())[:1])


class Traits(NamedTuple):
    """How large the numbers of a metric are, and how texts are masked for it."""

    scale: float
    masking: Masking


def traits_of(metric: Metric) -> Traits:
    """Return what a metric declares, else what its tokens or matrices imply, else what probing it shows."""
    scale = metric.score_scale if isinstance(metric, SupportsScale) else 1.0
    masking: Masking | None = metric.masking if isinstance(metric, SupportsMasking) else "opaque"
    if isinstance(metric, MatrixMetric):
        masking = "matrix"
    elif isinstance(metric, TokenMetric):
        masking = "token"
    if scale is None or masking is None:
        probed = probe(metric)
        return Traits(scale or probed.scale, masking or probed.masking)
    return Traits(scale, masking)


def probe(metric: Metric) -> Traits:
    """Return scale and masking of a metric by its scores of four sentences; one that fails on them compares words."""
    texts = [(_REFERENCE, _REFERENCE), (_ONE_WRONG, _REFERENCE), (_ALL_WRONG, _REFERENCE)]
    texts.append((codecs.encode(_ONE_WRONG, "rot13"), codecs.encode(_REFERENCE, "rot13")))
    try:
        scores = metric.score([Segment(hypothesis, _REFERENCE, (reference,)) for hypothesis, reference in texts])
    except WhyscoreError:
        return Traits(1.0, "opaque")
    equal, single, every, renamed = scores.tolist()
    characters = math.isclose(single, renamed, rel_tol=1e-9) and not math.isclose(single, every, rel_tol=1e-9)
    scale = _PERCENT if math.isclose(equal, _PERCENT, rel_tol=1e-9) else 1.0
    return Traits(scale, "character" if characters else "opaque")
