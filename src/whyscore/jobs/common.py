"""What all jobs take: metrics by spec, object or function, and segments from wherever they come."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from whyscore.errors import DataError, SpecError
from whyscore.metrics.callable import Callable as CallableMetric
from whyscore.protocols import Executor, Metric
from whyscore.registry import build, spec_of
from whyscore.registry.specs import Spec, parse
from whyscore.scoring.stack import Prepared, Progress, prepare
from whyscore.scoring.store import Store
from whyscore.types import Dataset, Segment

MetricLike = str | Metric | Callable[..., object]
Segments = Sequence[Segment] | Dataset


@dataclass(frozen=True)
class Resources:
    """How the work is done: none of it changes a number."""

    store: Store | None = None
    executor: Executor | None = None
    progress: Progress | None = None
    size: int | None = None

    def prepare(self, metric: Metric) -> Prepared:
        """Return the metric behind deduplication, this store and this executor."""
        return prepare(metric, store=self.store, executor=self.executor, progress=self.progress, size=self.size)


LOCAL = Resources()
"""In this process, nothing stored, nothing shown."""


def as_metric(given: MetricLike) -> Metric:
    """Return the metric that a spec, an object or a plain function stands for."""
    if isinstance(given, str):
        return cast("Metric", build(given))
    if isinstance(given, Metric):
        return given
    if isinstance(given, Sequence):
        raise SpecError(f"one metric at a time, got {given!r}: ask in turn, or take score_systems for several")
    return CallableMetric(target=given)


def asked_name(given: MetricLike | object) -> str:
    """Return what results call a component: the spec as it was asked for, tidied, or else its signature's.

    >>> asked_name("chrf( word_order = 2 )"), asked_name("my_metric.py:score")
    ('chrf(word_order=2)', 'my_metric.py:score')
    """
    if isinstance(given, str):
        spec = parse(given)
        return given.strip() if spec == Spec("callable", (given.strip(),)) else str(spec)
    return as_metric(given).signature().spec if callable(given) or isinstance(given, Metric) else spec_of(given)


def as_segments(given: Segments) -> Sequence[Segment]:
    """Return the segments of a data set or of a list, refusing anything else with a hint."""
    if isinstance(given, Dataset):
        return given.segments
    if isinstance(given, Segment | str):
        raise DataError(f"expected a list of segments, got {given!r}: pass [Segment(hypothesis, source, references)]")
    for i, segment in enumerate(given):
        if not isinstance(segment, Segment):
            raise DataError(f"item {i} is {segment!r}: pass Segment(hypothesis, source, references) objects")
    return given
