"""Many tests at once: corrected p-values within a named family, and the clusters that they support.

1. Bonferroni: N times p.
2. Holm (1979): the u-th smallest p times N - u + 1, never below the one before it.
3. Benjamini and Hochberg (1995): the share of false findings instead of the chance of one.
4. Partial conjunction (Benjamini and Heller 2008, as Dror et al. 2017 use it): in how many settings there is an effect,
   with what certainty; counted by Bonferroni over the remaining hypotheses this is the number of Holm's rejections.

NaN (a test that could not be made) stays NaN and does not count as a test.

`clusters` of metrics or systems:

1. Order by value, best first; equal values by name.
2. Walk down: start a new cluster where any member of the current one beats the next with p at or below alpha.
3. The rank is the number of the cluster. Within a cluster nothing is claimed, also not that the members are equal.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from whyscore.errors import DataError, SpecError
from whyscore.types import FloatMatrix, FloatVector, read_only

ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Corrected:
    """Corrected p-values in the order they were given, and which of them reject at `alpha`."""

    method: str
    alpha: float
    p: tuple[float, ...]
    adjusted: tuple[float, ...]
    family: str = ""
    n: int = 0
    """Tests in the family."""

    @property
    def rejected(self) -> tuple[bool, ...]:
        """Which hypotheses are rejected."""
        return tuple(value <= self.alpha for value in self.adjusted)

    @property
    def rejections(self) -> int:
        """How many hypotheses are rejected."""
        return sum(self.rejected)


@dataclass(frozen=True, slots=True)
class PartialConjunction:
    """An effect in at least `k` of `n` settings; `p[u - 1]` is the p-value of "in at least u settings"."""

    k: int
    n: int
    alpha: float
    p: tuple[float, ...]
    family: str = ""


def bonferroni(p: Sequence[float], alpha: float = ALPHA, *, family: str = "") -> Corrected:
    """Return p-values times their number.

    >>> bonferroni([0.001, 0.01, 0.02, 0.04]).rejections
    2
    """
    return _correct("bonferroni", p, alpha, family, lambda ordered: ordered * len(ordered))


def holm(p: Sequence[float], alpha: float = ALPHA, *, family: str = "") -> Corrected:
    """Return Holm's p-values: never larger than Bonferroni's, with the same promise.

    >>> holm([0.04, 0.001, 0.01, 0.02]).adjusted
    (0.04, 0.004, 0.03, 0.04)
    """
    return _correct("holm", p, alpha, family, _step_down)


def benjamini_hochberg(p: Sequence[float], alpha: float = ALPHA, *, family: str = "") -> Corrected:
    """Return p-values that bound the expected share of false rejections."""

    def step_up(ordered: FloatVector) -> FloatVector:
        scaled = ordered * len(ordered) / np.arange(1, len(ordered) + 1)
        return np.minimum.accumulate(scaled[::-1])[::-1]

    return _correct("benjamini_hochberg", p, alpha, family, step_up)


def partial_conjunction(p: Sequence[float], alpha: float = ALPHA, *, family: str = "") -> PartialConjunction:
    """Return in how many settings there is an effect, at the least.

    >>> partial_conjunction([0.001, 0.01, 0.02, 0.04]).k
    4
    """
    values = _check(p, alpha)
    ordered = np.sort(values[~np.isnan(values)])
    adjusted = np.minimum(_step_down(ordered), 1.0)
    return PartialConjunction(int((adjusted <= alpha).sum()), len(ordered), alpha, tuple(adjusted.tolist()), family)


def correct_p(method: str, p: Sequence[float], alpha: float = ALPHA, *, family: str = "") -> Corrected:
    """Return p-values corrected by a named method; `none` leaves them."""
    methods = {"bonferroni": bonferroni, "holm": holm, "benjamini_hochberg": benjamini_hochberg}
    if method == "none":
        return _correct("none", p, alpha, family, lambda ordered: ordered)
    if method not in methods:
        raise SpecError(f"no correction named {method!r}: use none, {', '.join(methods)}")
    return methods[method](p, alpha, family=family)


def _step_down(ordered: FloatVector) -> FloatVector:
    count = len(ordered)
    steps: FloatVector = np.maximum.accumulate(ordered * (count - np.arange(count)))
    return steps


def _correct(
    method: str, p: Sequence[float], alpha: float, family: str, adjust: Callable[[FloatVector], FloatVector]
) -> Corrected:
    values = _check(p, alpha)
    adjusted = np.full(len(values), math.nan)
    defined = np.flatnonzero(~np.isnan(values))
    order = defined[np.argsort(values[defined], kind="stable")]
    adjusted[order] = np.minimum(adjust(values[order]), 1.0)
    return Corrected(method, alpha, tuple(values.tolist()), tuple(adjusted.tolist()), family, len(defined))


def _check(p: Sequence[float], alpha: float) -> FloatVector:
    values = np.asarray(p, dtype=np.float64)
    if values.ndim != 1:
        raise DataError(f"p-values must be a plain list, got {values.ndim} dimensions")
    wrong = values[(values < 0) | (values > 1)]
    if len(wrong):
        raise DataError(f"a p-value is {wrong[0]:g}, expected 0 to 1")
    if not 0 < alpha < 1:
        raise SpecError(f"alpha is {alpha}, expected more than 0 and less than 1")
    return values


@dataclass(frozen=True, slots=True, eq=False)
class Clusters:
    """Names in order, best first, with their ranks and every p-value: `p[i, j]` is that of "i beats j"."""

    names: tuple[str, ...]
    values: tuple[float, ...]
    ranks: tuple[int, ...]
    p: FloatMatrix
    alpha: float

    def members(self, rank: int) -> tuple[str, ...]:
        """Return the names of one rank."""
        return tuple(name for name, r in zip(self.names, self.ranks, strict=True) if r == rank)


def clusters(
    names: Sequence[str],
    values: Sequence[float],
    p: FloatMatrix | Callable[[int, int], float],
    *,
    alpha: float = ALPHA,
    higher_is_better: bool = True,
) -> Clusters:
    """Return significance clusters.

    Args:
        names: of the metrics or systems.
        values: one for each; those without a value come last.
        p: p-values of "i beats j" by position in `names`, or a function that tells them.
        alpha: the p-value up to which one beats the other.
        higher_is_better: the direction of the values.
    """
    count = len(names)
    shape = (count, count) if callable(p) else p.shape
    if len(values) != count or shape != (count, count):
        raise DataError(f"{count} names, {len(values)} values and p-values of the shape {shape}: one for each")
    if not 0 < alpha < 1:
        raise SpecError(f"alpha is {alpha}, expected more than 0 and less than 1")

    def place(k: int) -> tuple[bool, float, str]:
        return math.isnan(values[k]), -values[k] if higher_is_better else values[k], names[k]

    order = sorted(range(count), key=place)
    table = np.full((count, count), math.nan)
    for row, i in enumerate(order):
        for column, j in enumerate(order):
            if row != column:
                table[row, column] = p(i, j) if callable(p) else p[i, j]
    ranks: list[int] = []
    current: list[int] = []
    for k in range(count):
        if current and any(table[member, k] <= alpha for member in current):
            current = []
        ranks.append(ranks[-1] + (not current) if ranks else 1)
        current.append(k)
    in_order = tuple(names[k] for k in order), tuple(float(values[k]) for k in order)
    return Clusters(*in_order, tuple(ranks), read_only(table), alpha)
