"""Intervals by the bootstrap over segments (Efron 1979; Koehn 2004 for machine translation).

Segments are drawn with replacement. What is resampled is a row of counts per segment, never a text, so that a corpus
metric costs one matrix product and one formula per draw. The same seed gives the same draws to every system.
"""

from collections.abc import Callable, Iterator

import numpy as np

from whyscore.types import Estimate, FloatMatrix, FloatVector

DRAWS = 1000
LEVEL = 0.95
_CELLS = 4_000_000  # draws x segments held in memory at a time


def draw_counts(segments: int, draws: int, seed: int) -> Iterator[FloatMatrix]:
    """Yield blocks of draws x segments: how often each segment was drawn."""
    rng = np.random.default_rng(seed)
    block = max(1, _CELLS // max(segments, 1))
    for start in range(0, draws, block):
        picked = rng.integers(0, segments, size=(min(block, draws - start), segments))
        yield np.stack([np.bincount(row, minlength=segments) for row in picked]).astype(np.float64)


def bootstrap_total(
    rows: FloatMatrix,
    total: Callable[[FloatVector], float],
    *,
    draws: int = DRAWS,
    level: float = LEVEL,
    seed: int = 0,
) -> Estimate:
    """Return the score of all rows together, with the percentile interval over resampled segments."""
    value = float(total(rows.sum(axis=0)))
    if len(rows) < 2:  # noqa: PLR2004 - one segment has no spread
        return Estimate(value, level=level, n=len(rows), reason="undefined")
    sums = np.vstack([counts @ rows for counts in draw_counts(len(rows), draws, seed)])
    low, high = _percentiles(np.array([total(row) for row in sums]), level)
    return Estimate(value, low, high, level, len(rows))


def bootstrap_mean(values: FloatVector, *, draws: int = DRAWS, level: float = LEVEL, seed: int = 0) -> Estimate:
    """Return the mean with the percentile interval over resampled segments."""
    if len(values) == 0:
        return Estimate(float("nan"), level=level, n=0, reason="empty")
    count = len(values)
    return bootstrap_total(values[:, None], lambda row: float(row[0]) / count, draws=draws, level=level, seed=seed)


def _percentiles(values: FloatVector, level: float) -> tuple[float, float]:
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
