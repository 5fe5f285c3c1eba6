"""The parts behind MEE, MEE2 and MEE4: what matched, the n-grams, the sentence vectors."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np

from whyscore.errors import SpecError
from whyscore.jobs.common import LOCAL, MetricLike, Resources, Segments, as_metric, as_segments
from whyscore.jobs.languages import spoken
from whyscore.metrics.mee.metric import Mee2
from whyscore.protocols import RowMetric
from whyscore.types import Dataset, FloatVector, Signature, read_only


@dataclass(frozen=True, eq=False)
class MeeParts:
    """One number per segment and part; `exact`, `root` and `synonym` are cumulative F values whose mean is `lms`."""

    exact: FloatVector
    root: FloatVector
    synonym: FloatVector
    lms: FloatVector
    syn: FloatVector
    cxt: FloatVector
    unknown: FloatVector
    """The share of words without a vector among those that were looked up."""
    score: FloatVector
    metric: Mee2
    signature: Signature

    def __len__(self) -> int:
        """Return the number of segments."""
        return len(self.score)

    @property
    def flags(self) -> tuple[tuple[str, ...], ...]:
        """Words of warning for each segment: `no-vectors` where no word that was looked up has one."""
        return tuple(("no-vectors",) if share == 1.0 else () for share in self.unknown.tolist())

    def rows(self) -> Iterator[dict[str, float]]:
        """Yield the parts of each segment by name, then the score."""
        names = (*self.metric.columns, "score")
        columns = [getattr(self, name).tolist() for name in names]
        for values in zip(*columns, strict=True):
            yield dict(zip(names, values, strict=True))


def mee_parts(segments: Segments, metric: MetricLike = "mee4", *, resources: Resources = LOCAL) -> MeeParts:
    """Return the parts of each segment, computed once: mee, mee2, mee4 and any other weights follow from them.

    Where a segment has several references, the parts are those of the reference that is best by the metric's weights
    (or the means, with `references="mean"`).

    Args:
        segments: What is scored; a data set also says the language.
        metric: `mee2` or `mee4` with their options.
        resources: Store, executor and progress.

    >>> from whyscore.types import Segment
    >>> mee_parts([Segment("a cat", references=("a dog",))], "mee4(words=None)").exact
    array([0.5])
    """
    asked = spoken(as_metric(metric), segments.languages if isinstance(segments, Dataset) else None)
    if not isinstance(asked, Mee2):
        raise SpecError(f"mee_parts takes mee2 or mee4 with their options, got {asked.signature().spec}")
    rows = cast("RowMetric", resources.prepare(asked)).statistics(as_segments(segments))
    columns = {name: read_only(np.ascontiguousarray(rows[:, k])) for k, name in enumerate(asked.columns)}
    return MeeParts(**columns, score=read_only(asked.scores(rows)), metric=asked, signature=asked.signature())
