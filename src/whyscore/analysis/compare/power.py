"""How many segments would it take? The power of a comparison of two systems, by simulation (see `stats.power`)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from whyscore.stats.power import power_curve
from whyscore.types import FloatMatrix
from whyscore.types.table import Cell

_LEAST_DRAWS, _FINENESS = 199, 10


@dataclass(frozen=True, slots=True)
class PairPower:
    """How often a test tells two systems apart, by the number of segments (or documents)."""

    metric: str
    first: str
    second: str
    n: tuple[int, ...]
    power: tuple[float, ...]
    enough: int | None
    """The smallest number that reaches the wanted power."""
    wanted: float
    alpha: float
    runs: int

    def __str__(self) -> str:
        """Return the curve in plain words."""
        shares = ", ".join(f"{share:.0%} at {n:,}" for n, share in zip(self.n, self.power, strict=True))
        end = f"{self.wanted:.0%} from {self.enough:,} on" if self.enough else f"{self.wanted:.0%} at none of them"
        return f"{self.metric}: power of {self.first} against {self.second}: {shares}; {end}"

    def rows(self) -> list[dict[str, Cell]]:
        """Return one row per number of segments, for programs."""
        pair: dict[str, Cell] = {"metric": self.metric, "first": self.first, "second": self.second}
        return [pair | {"n": n, "power": share} for n, share in zip(self.n, self.power, strict=True)]


def pair_draws(alpha: float) -> int:
    """Return how many resamples a simulated test takes: as few as still resolve alpha to a tenth of it.

    >>> pair_draws(0.05), pair_draws(0.001)
    (199, 9999)
    """
    return max(_LEAST_DRAWS, round(_FINENESS / alpha) - 1)


def pair_power(
    names: tuple[str, str, str],
    sides: tuple[FloatMatrix, FloatMatrix],
    p_of: Callable[[FloatMatrix, FloatMatrix], float],
    *,
    sizes: Sequence[int],
    alpha: float,
    seed: int,
) -> PairPower:
    """Return the power of a test of two systems (metric, first, second) on drawn rows of both sides."""
    first, second = sides
    curve = power_curve(lambda picked: p_of(first[picked], second[picked]), len(first), sizes, alpha=alpha, seed=seed)
    return PairPower(*names, curve.n, curve.power, curve.enough, curve.wanted, curve.alpha, curve.runs)
