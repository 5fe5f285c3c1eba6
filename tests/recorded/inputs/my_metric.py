"""A metric of a user's own: the share of the reference's words that the hypothesis has."""

from collections.abc import Sequence
from typing import Any


def score(segments: Sequence[Any]) -> list[float]:
    """Return a score per segment."""
    found = []
    for segment in segments:
        wanted = set(segment.references[0].split())
        found.append(len(wanted & set(segment.hypothesis.split())) / max(1, len(wanted)))
    return found
