"""What a metric needs of a segment, with the message for those who did not bring it."""

from collections.abc import Iterable, Sequence

from whyscore.errors import MissingInput, SpecError
from whyscore.types import Place, Segment, Side

_SHOWN = 60


def shown(text: str) -> str:
    """Return the beginning of a text as it stands in a message."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def need_references(name: str, segments: Iterable[Segment]) -> None:
    """Refuse segments without any reference."""
    for number, segment in enumerate(segments, start=1):
        if not segment.references:
            raise MissingInput(
                f"{name} needs a reference: segment {number} (hypothesis {shown(segment.hypothesis)}) has none. "
                "Give references, or choose a metric without them"
            )


def need_source(name: str, segments: Iterable[Segment]) -> None:
    """Refuse segments without a source."""
    for number, segment in enumerate(segments, start=1):
        if segment.source is None:
            raise MissingInput(
                f"{name} needs the source: segment {number} (hypothesis {shown(segment.hypothesis)}) has none. "
                "Give sources, or choose a metric without them"
            )


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
