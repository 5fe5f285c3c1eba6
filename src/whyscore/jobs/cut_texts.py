"""Which texts a metric could not read whole: told beside every score that they are behind."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from whyscore.jobs.common import MetricLike, as_metric
from whyscore.jobs.languages import Encoding, spoken
from whyscore.models.encoders.loading import CoverageNotice
from whyscore.types import Segment

Cut = Mapping[str, list[int]]
"""By the name of the text: how many of its pieces were read, and how many it has."""


@runtime_checkable
class Measured(Protocol):
    """An encoder that says how much of a text it reads."""

    def lengths(self, texts: Sequence[str]) -> list[tuple[int, int]]:
        """Return how many pieces of each text are read, and how many it has."""


def cut_texts(
    metric: MetricLike, segments: Sequence[Segment], languages: tuple[str, str] | None = None
) -> dict[int, Cut]:
    """Return the texts of each segment that were cut, by the segment's number; only a tokenizer is asked.

    Metrics without an encoder of single texts, and encoders without a limit, cut nothing that is known here.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CoverageNotice)  # told when the scores were made
        own = spoken(as_metric(metric), languages)
    encoder = own.encoder() if isinstance(own, Encoding) else None
    if not isinstance(encoder, Measured):
        return {}
    asked = [(k, place, segment.text(place)) for k, segment in enumerate(segments)
             for place in segment.places(own.inputs)]  # fmt: skip
    distinct = list(dict.fromkeys(text for *_, text in asked))
    known = dict(zip(distinct, encoder.lengths(distinct), strict=True))
    found: dict[int, dict[str, list[int]]] = {}
    for k, place, text in asked:
        kept, total = known[text]
        if kept < total:
            found.setdefault(k, {})[str(place)] = [kept, total]
    return found
