"""How fast a metric is here: a moment's trial, for an estimate before the work.

1. One text is scored and not counted: a model may have to be loaded.
2. Texts from all over the data are scored, a few at a time, until a moment has passed or none is left.
"""

import time
from collections.abc import Sequence

from whyscore.protocols import Metric
from whyscore.scoring.rows import ask
from whyscore.types import Segment

_AT_A_TIME = 32
_MOMENT = 0.3  # seconds


def rate(metric: Metric, segments: Sequence[Segment]) -> float:
    """Return how many texts a second the metric scores in this process; nothing is kept of what it scores."""
    ask(metric, segments[:1])
    stride = max(1, len(segments) // 1000)
    some = segments[::stride]
    start = time.perf_counter()
    done = 0
    for first in range(0, len(some), _AT_A_TIME):
        ask(metric, some[first : first + _AT_A_TIME])
        done = min(first + _AT_A_TIME, len(some))
        if time.perf_counter() - start > _MOMENT:
            break
    return done / max(time.perf_counter() - start, 1e-9)
