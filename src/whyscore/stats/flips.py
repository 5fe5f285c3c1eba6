"""Sign flips of paired differences: the exact distribution of their sum, or draws from it.

1. Few differences (up to 20): all sums, by doubling.
2. Differences that are whole numbers on a common scale (ratings, thirds of ratings): the distribution of the sum by
   convolution, one difference after the other.
3. Otherwise random signs, and p = (c + 1) / (n + 1).
"""

from dataclasses import dataclass
from math import gcd

import numpy as np

from whyscore.types import FloatVector

ENUMERATED = 20
_SCALES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 60, 100, 300, 1000)
_WORK = 200_000_000  # additions that convolution may take
_NEAR = 1e-7  # a number this close to a whole one is whole
_MARGIN = 1e-10
_CELLS = 8_000_000


@dataclass(frozen=True, slots=True)
class PValues:
    """The p-values of "differs", "is above" and "is below"."""

    two_sided: float
    greater: float
    less: float
    exact: bool
    method: str
    draws: int | None = None

    def of(self, alternative: str) -> float:
        """Return the p-value of one alternative."""
        return {"two-sided": self.two_sided, "greater": self.greater, "less": self.less}[alternative]


def flip_test(differences: FloatVector, *, n: int, seed: int, exact: bool | None = None) -> PValues:
    """Return the p-values of the sum of differences under random signs.

    `exact` False always draws; by default the distribution is listed where it can be.
    """
    if exact is not False:
        if len(differences) <= ENUMERATED:
            return _listed(differences)
        whole = whole_numbers(differences)
        if whole is not None:
            return _convolved(whole)
    return _drawn(differences, n, seed)


def whole_numbers(values: FloatVector) -> FloatVector | None:
    """Return the values on the smallest scale that makes all of them whole; None where no small scale does.

    >>> whole_numbers(np.array([1 / 3, -1.0, 2 / 3])).tolist()
    [1.0, -3.0, 2.0]
    """
    for scale in _SCALES:
        scaled = values * scale
        rounded = np.rint(scaled)
        if (np.abs(scaled - rounded) <= _NEAR * np.maximum(1.0, np.abs(scaled))).all():
            common = gcd(*(int(value) for value in rounded)) or 1
            reach = float(np.abs(rounded).sum()) / common
            return rounded / common if reach * 2 * len(values) <= _WORK else None
    return None


def _listed(differences: FloatVector) -> PValues:
    sums = np.zeros(1)
    for value in differences:
        sums = np.concatenate([sums + value, sums - value])
    return _shares(sums, differences, "all sign flips", len(sums))


def _convolved(whole: FloatVector) -> PValues:
    sizes = np.abs(whole).astype(np.int64)
    reach = int(sizes.sum())
    chances = np.zeros(2 * reach + 1)
    chances[reach] = 1.0
    low = high = reach
    for size in sizes[sizes > 0].tolist():
        part = chances[low : high + 1] / 2
        chances[low : high + 1] = 0.0
        chances[low - size : high + 1 - size] += part
        chances[low + size : high + 1 + size] += part
        low, high = low - size, high + size
    observed, values = int(whole.sum()), np.arange(-reach, reach + 1)
    extreme = (np.abs(values) >= abs(observed), values >= observed, values <= observed)
    two_sided, greater, less = (min(1.0, float(chances[where].sum())) for where in extreme)
    return PValues(two_sided, greater, less, exact=True, method="sign flips by convolution")


def _drawn(differences: FloatVector, n: int, seed: int) -> PValues:
    rng = np.random.default_rng(seed)
    block = max(1, _CELLS // len(differences))
    parts = []
    for start in range(0, n, block):
        drawn = rng.random((min(block, n - start), len(differences)), dtype=np.float32)
        parts.append(np.where(drawn < 0.5, -1.0, 1.0) @ differences)  # noqa: PLR2004 - a fair coin
    return _shares(np.concatenate(parts), differences, "random sign flips", None, n)


def _shares(
    sums: FloatVector, differences: FloatVector, method: str, total: int | None, draws: int | None = None
) -> PValues:
    return p_values(
        sums, float(differences.sum()), _MARGIN * float(np.abs(differences).sum()), method, total=total, draws=draws
    )


def p_values(
    values: FloatVector, observed: float, margin: float, method: str, *, total: int | None, draws: int | None
) -> PValues:
    """Return the p-values of an observed value among resampled ones: all there are (`total`), or some (`draws`)."""
    counts = [
        int(where.sum())
        for where in (
            np.abs(values) >= abs(observed) - margin,
            values >= observed - margin,
            values <= observed + margin,
        )
    ]
    shares = [count / total if total else (count + 1) / (len(values) + 1) for count in counts]
    return PValues(shares[0], shares[1], shares[2], exact=total is not None, method=method, draws=draws)
