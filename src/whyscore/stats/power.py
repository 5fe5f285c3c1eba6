"""How many segments does it take? Power of a comparison and the smallest difference it can see.

1. Two systems, by the normal approximation: n = ceil(((z_{1-alpha/2} + z_power) sd / difference)^2) segments, and the
   minimum detectable difference (z_{1-alpha/2} + z_power) sd / sqrt(n), sd of the paired differences (n - 1 below).
2. By simulation, for any test: draw segments (without replacement up to as many as there are, with it beyond), test,
   and count p <= alpha; the curve over n, and the smallest n that reaches the wanted power.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whyscore.errors import DataError, SpecError

ALPHA = 0.05
POWER = 0.8
_RUNS = 200


@dataclass(frozen=True, slots=True)
class Power:
    """What n segments can tell of two systems."""

    difference: float
    deviation: float
    n: int
    detectable: float
    """The smallest true difference that n segments find with the wanted power."""
    needed: int | None
    """Segments that the observed difference would take; None where there is no difference or no spread."""
    alpha: float
    power: float


@dataclass(frozen=True, slots=True)
class PowerCurve:
    """Power by number of segments, found by simulation."""

    n: tuple[int, ...]
    power: tuple[float, ...]
    wanted: float
    alpha: float
    runs: int
    seed: int

    @property
    def enough(self) -> int | None:
        """The smallest tried number of segments that reaches the wanted power; None where none does."""
        return next((n for n, power in zip(self.n, self.power, strict=True) if power >= self.wanted), None)


def power(differences: ArrayLike, *, alpha: float = ALPHA, wanted: float = POWER) -> Power:
    """Return what paired differences say of the size of a test set."""
    values = np.asarray(differences, dtype=np.float64).ravel()
    values = values[~np.isnan(values)]
    if len(values) < 2:  # noqa: PLR2004 - a deviation takes two
        raise DataError(f"power needs at least 2 segments that both systems have, got {len(values)}")
    difference, deviation = float(values.mean()), float(values.std(ddof=1))
    reach = reach_of(alpha, wanted) * deviation
    needed = math.ceil((reach / difference) ** 2) if abs(difference) > 0 and deviation > 0 else None
    return Power(difference, deviation, len(values), reach / math.sqrt(len(values)), needed, alpha, wanted)


def reach_of(alpha: float = ALPHA, wanted: float = POWER) -> float:
    """Return how many standard errors a difference must have to be found with the wanted power."""
    from scipy.special import ndtri  # noqa: PLC0415 - loads half of scipy

    for name, value in (("alpha", alpha), ("power", wanted)):
        if not 0 < value < 1:
            raise SpecError(f"{name} is {value}, expected more than 0 and less than 1")
    return float(ndtri(1 - alpha / 2) + ndtri(wanted))


def power_curve(
    test: Callable[[NDArray[np.int64]], float],
    segments: int,
    sizes: Sequence[int],
    *,
    runs: int = _RUNS,
    alpha: float = ALPHA,
    wanted: float = POWER,
    seed: int = 0,
) -> PowerCurve:
    """Return the share of runs with p <= alpha for each number of segments.

    Args:
        test: positions of segments -> p-value of the test on them.
        segments: how many there are.
        sizes: how many to draw.
        runs: draws per size.
        alpha: the p-value that counts as found.
        wanted: the power that is enough.
        seed: fixes the draws.
    """
    if any(size < 1 for size in sizes):
        raise SpecError(f"sizes are {list(sizes)}, expected 1 or more segments")
    shares = []
    for size in sizes:
        rng = np.random.default_rng([seed, size])
        drawn = (rng.choice(segments, size, replace=size > segments) for _ in range(runs))
        shares.append(float(np.mean([test(one) <= alpha for one in drawn])))
    return PowerCurve(tuple(sizes), tuple(shares), wanted, alpha, runs, seed)
