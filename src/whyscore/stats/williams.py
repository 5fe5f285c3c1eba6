"""Williams' test of two correlations that share a variable (Williams 1959; for metrics: Graham and Baldwin 2014).

With r12 = r(X, Z), r13 = r(Y, Z), r23 = r(X, Y), K = 1 - r12^2 - r13^2 - r23^2 + 2 r12 r13 r23 and m = (r12 + r13) / 2,

    t = (r12 - r13) sqrt((n - 1)(1 + r23) / (2 K (n - 1) / (n - 3) + m^2 (1 - r23)^3)),   n - 3 degrees of freedom.

It is made for Pearson over one vector of independent pairs: all cells (`global`), complete. Other coefficients come
with a warning. Compatible modes: `nlpstats` takes absolute correlations, `mtme` the absolute t.
"""

import math
import warnings
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from whyscore.errors import SpecError
from whyscore.stats.coefficients import coefficient_of, kernel
from whyscore.stats.matrices import NOTHING, DegenerateStatisticWarning, Dropped, Missing, align
from whyscore.stats.permutation import Alternative, check_options


@dataclass(frozen=True, slots=True)
class Williams:
    """Williams' test; `p` is NaN with a reason where it is not defined."""

    p: float
    t: float
    delta: float
    n: int
    coefficient: str
    alternative: Alternative
    compat: str | None = None
    dropped: Dropped = NOTHING
    reason: str | None = None

    @property
    def degrees(self) -> int:
        """The degrees of freedom."""
        return self.n - 3


def williams(
    x: ArrayLike,
    y: ArrayLike,
    z: ArrayLike,
    coefficient: str = "pearson",
    *,
    alternative: Alternative = "two-sided",
    missing: Missing = "paired",
    compat: Literal["nlpstats", "mtme"] | None = None,
) -> Williams:
    """Return Williams' test of r(X, Z) against r(Y, Z) over all cells."""
    named = coefficient_of(coefficient)
    check_options("cell", alternative, 1)
    if compat not in (None, "nlpstats", "mtme"):
        raise SpecError(f"compat is {compat!r}, expected 'nlpstats', 'mtme' or None")
    if named != "pearson":
        warnings.warn(f"Williams' test is made for pearson, not {named}: prefer a permutation test", stacklevel=2)
    (a, b, human), dropped = align(x, y, z, missing=missing, level="global")
    there = ~np.isnan(a)
    a, b, human = a[there], b[there], human[there]
    n = int(there.sum())
    compute = kernel(named)
    r12, r13, r23 = (float(compute(*pair)) for pair in ((a, human), (b, human), (a, b)))
    if compat == "nlpstats":
        r12, r13, r23 = abs(r12), abs(r13), abs(r23)
    t = _statistic(r12, r13, r23, n)
    reason = None
    if math.isnan(t):
        reason = "empty" if n <= 3 else "constant"  # noqa: PLR2004 - t has n - 3 degrees of freedom
        warnings.warn("Williams' test is not defined for these scores", DegenerateStatisticWarning, stacklevel=2)
    p = math.nan if reason else _p_value(abs(t) if compat == "mtme" else t, n - 3, alternative)
    return Williams(p, t, r12 - r13, n, named, alternative, compat, dropped, reason)


def _statistic(r12: float, r13: float, r23: float, n: int) -> float:
    if n <= 3:  # noqa: PLR2004
        return math.nan
    rest = 1 - r12**2 - r13**2 - r23**2 + 2 * r12 * r13 * r23
    bottom = 2 * rest * (n - 1) / (n - 3) + ((r12 + r13) / 2) ** 2 * (1 - r23) ** 3
    return (r12 - r13) * math.sqrt((n - 1) * (1 + r23) / bottom) if bottom > 0 else math.nan


def _p_value(t: float, degrees: int, alternative: Alternative) -> float:
    from scipy.special import stdtr  # noqa: PLC0415 - loads half of scipy

    if alternative == "two-sided":
        return float(2 * stdtr(degrees, -abs(t)))
    return float(stdtr(degrees, -t if alternative == "greater" else t))
