"""A quality gate on texts that a model did not read whole.

1. Where a metric's encoder can say how much it reads of a text, only its tokenizer is asked.
2. Any other metric whose signature has a limit (`trunc`), or that is made of such metrics, scores the segments once
   more, and what it cuts is watched: scores that come from a store do not say it.
"""

import dataclasses
import warnings
from collections.abc import Iterator, Mapping, Sequence

from whyscore.errors import GateNotPassed
from whyscore.jobs.common import MetricLike, as_metric
from whyscore.jobs.cut_texts import Measured, cut_texts
from whyscore.jobs.languages import Encoding, spoken
from whyscore.models.encoders.loading import CoverageNotice
from whyscore.models.pairs import watched_cuts
from whyscore.protocols import Metric
from whyscore.types import Dataset


def cuts_told(metrics: Mapping[str, MetricLike], data: Dataset) -> list[str]:
    """Return a sentence for every metric, by its name, that does not read all texts whole.

    A loaded model does not read again what it remembers: ask before scoring.
    """
    return [told for name, metric in metrics.items() for told in _cuts(name, metric, data)]


def check_whole(told: Sequence[str]) -> None:
    """Raise where any text was cut."""
    if told:
        raise GateNotPassed(f"the quality gate is not passed: {'; '.join(told)}")


def _cuts(name: str, metric: MetricLike, data: Dataset) -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CoverageNotice)  # told when the scores are made
        own = spoken(as_metric(metric), data.languages)
    if isinstance(own, Encoding) and isinstance(own.encoder(), Measured):
        yield from _measured(name, own, data)
    elif any("trunc" in dict(part.signature().facts) for part in _parts(own)):
        yield from (f"{name}: {told}" for told in _watched(own, data))


def _measured(name: str, metric: Metric, data: Dataset) -> Iterator[str]:
    found = cut_texts(metric, data.segments, data.languages)
    if not found:
        return
    entry, texts = data.entries[min(found)], found[min(found)]
    place, (kept, total) = next(iter(texts.items()))
    first = f"the first is the {place} of {entry.system} {entry.id}, {kept} of {total} pieces"
    yield f"{name} cuts texts of {len(found)} of {len(data)} segments ({first})"


def _watched(metric: Metric, data: Dataset) -> list[str]:
    distinct = list(dict.fromkeys(segment.only(metric.inputs) for segment in data.segments))
    with watched_cuts() as seen:
        metric.score(distinct)
    return list(dict.fromkeys(seen))


def _parts(thing: object) -> Iterator[Metric]:
    """Yield a metric and all that it is made of."""
    if isinstance(thing, Metric):
        yield thing
    if isinstance(thing, tuple):
        for item in thing:
            yield from _parts(item)
    elif dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        for field in dataclasses.fields(thing):
            yield from _parts(getattr(thing, field.name))
