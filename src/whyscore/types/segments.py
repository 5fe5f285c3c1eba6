"""What a metric sees: a segment, its sides and the places of its texts."""

from dataclasses import dataclass, field
from enum import Flag, StrEnum
from typing import NamedTuple

from whyscore.errors import DataError


class Inputs(Flag):
    """Which texts of a segment a metric reads."""

    HYPOTHESIS = 1
    SOURCE = 2
    REFERENCES = 4
    CONTEXT = 8


class Side(StrEnum):
    """Which kind of text of a segment."""

    HYPOTHESIS = "hypothesis"
    SOURCE = "source"
    REFERENCE = "reference"


class Place(NamedTuple):
    """Which text of a segment is explained; `reference` counts from zero and is None on the other sides."""

    side: Side
    reference: int | None = None

    def __str__(self) -> str:
        return self.side if self.reference is None else f"{self.side} {self.reference + 1}"


HYPOTHESIS = Place(Side.HYPOTHESIS)
SOURCE = Place(Side.SOURCE)


@dataclass(frozen=True, slots=True)
class Segment:
    """One hypothesis with its source and references, as a metric sees it: a value without an id.

    `references` is one text or several texts *of this segment*, never one list per reference set. `context` holds the
    segments before it in its document, the nearest last: only metrics that read context see it.
    """

    hypothesis: str
    source: str | None = None
    references: tuple[str, ...] = ()
    context: "tuple[Segment, ...]" = field(default=(), repr=False)

    def __post_init__(self) -> None:
        if type(self.references) is not tuple:
            references = (self.references,) if isinstance(self.references, str) else tuple(self.references or ())
            object.__setattr__(self, "references", references)
        if not isinstance(self.hypothesis, str):
            raise DataError(f"a hypothesis must be text, got {self.hypothesis!r}")
        if self.source is not None and not isinstance(self.source, str):
            raise DataError(f"a source must be text or None, got {self.source!r}")
        for reference in self.references:
            if not isinstance(reference, str):
                raise DataError(f"references must be texts, one tuple per segment, got {reference!r}")

    def only(self, inputs: Inputs) -> "Segment":
        """Return the segment without what is not read, so that equal questions are equal values."""
        if self.source is None and not self.context and Inputs.REFERENCES in inputs:
            return self
        source = self.source if Inputs.SOURCE in inputs else None
        references = self.references if Inputs.REFERENCES in inputs else ()
        context = tuple(segment.only(inputs) for segment in self.context) if Inputs.CONTEXT in inputs else ()
        if source is self.source and references is self.references and context == self.context:
            return self
        return Segment(self.hypothesis, source, references, context)

    def places(self, inputs: Inputs) -> tuple[Place, ...]:
        """Return the places that are read and present: hypothesis, source, references in order."""
        places = [HYPOTHESIS]
        if Inputs.SOURCE in inputs and self.source is not None:
            places.append(SOURCE)
        if Inputs.REFERENCES in inputs:
            places.extend(Place(Side.REFERENCE, k) for k in range(len(self.references)))
        return tuple(places)

    def text(self, place: Place) -> str:
        """Return the text at a place; an absent one is an error."""
        if place.side is Side.HYPOTHESIS:
            return self.hypothesis
        if place.side is Side.SOURCE and self.source is not None:
            return self.source
        if place.reference is not None and place.reference < len(self.references):
            return self.references[place.reference]
        raise DataError(f"the segment has no {place}: {len(self.references)} reference(s), source {self.source!r}")

    def with_text(self, place: Place, text: str) -> "Segment":
        """Return the segment with another text at a place."""
        if place.side is Side.HYPOTHESIS:
            return Segment(text, self.source, self.references, self.context)
        if place.side is Side.SOURCE:
            return Segment(self.hypothesis, text, self.references, self.context)
        k = place.reference or 0
        references = (*self.references[:k], text, *self.references[k + 1 :])
        return Segment(self.hypothesis, self.source, references, self.context)
