"""Is system A better than system B? Tests on segments that both translated.

1. What is resampled is a row of numbers per segment: the counts of a corpus metric (BLEU, chrF, TER), or the segment's
   score and a 1, whose total is the mean. Texts are never touched.
2. `permutation` (approximate randomisation, Riezler and Maxwell 2005): rows change places between the two systems.
   Means have the distribution of flipped signs, exact where it can be; corpus metrics list all swaps
   where they are no more than would be drawn. The exact distribution of a sum of flipped differences: up to 20 of
   them, all sums by doubling; whole numbers on a common scale (ratings, thirds of ratings), by convolution, one
   difference after the other. Otherwise random signs, and p = (c + 1) / (n + 1).
3. `bootstrap` (Koehn 2004): segments are drawn with replacement. `sign` p is the share of differences at or below 0.
4. `t` and `wilcoxon` on the segments' differences, as quick references.
5. Documents as blocks: whole blocks are swapped, flipped or drawn, as their segments are not independent.

Strengths from instance-level pairings (Bradley and Terry 1952; for evaluation: Peyrard et al. 2021).

1. w_ij = number of segments on which i scores above j; a tie counts half for each, or is dropped.
2. Minorise-maximise (Hunter 2004): strength_i <- wins_i / sum_j (w_ij + w_ji) / (strength_i + strength_j), scaled to
   sum 1, until nothing moves by 1e-12.
3. The maximum exists where systems cannot be parted into two groups of which one never beats the other (Ford 1957).
   Where they can, as where a system never wins or never loses, half a win each way is added to every pair (`prior`)
   and told.

Unlike means, strengths do not move with the size of a single difference.
"""

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whyscore.errors import DataError, SpecError
from whyscore.stats.matrices import as_matrix, divide, row_means
from whyscore.stats.resampling import draw_sums, percentiles, random_rows
from whyscore.stats.significance import Alternative, check_resampling
from whyscore.types import Estimate, FloatMatrix, FloatVector, read_only

ENUMERATED = 20
_SCALES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 60, 100, 300, 1000)
_WORK = 200_000_000  # additions that convolution may take
_NEAR = 1e-7  # a number this close to a whole one is whole
_TOLERANCE = 1e-10


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
            return _list_swaps(differences)
        whole = whole_numbers(differences)
        if whole is not None:
            return _convolve(whole)
    return _draw_flips(differences, n, seed)


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


def _list_swaps(differences: FloatVector) -> PValues:
    sums = np.zeros(1)
    for value in differences:
        sums = np.concatenate([sums + value, sums - value])
    return _shares(sums, differences, "all sign flips", len(sums))


def _convolve(whole: FloatVector) -> PValues:
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


def _draw_flips(differences: FloatVector, n: int, seed: int) -> PValues:
    parts = [(1 - 2 * heads) @ differences for heads in _coins(len(differences), n, seed)]
    return _shares(np.concatenate(parts), differences, "random sign flips", None, n)


def _shares(
    sums: FloatVector, differences: FloatVector, method: str, total: int | None, draws: int | None = None
) -> PValues:
    return p_values(
        sums, float(differences.sum()), _TOLERANCE * float(np.abs(differences).sum()), method, total=total, draws=draws
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


Test = Literal["permutation", "bootstrap", "t", "wilcoxon"]
TESTS: tuple[Test, ...] = get_args(Test)
Totals = Callable[[FloatMatrix], FloatVector]
"""Summed rows, one per resample -> the corpus score of each."""

DRAWS = 10_000
_MARGIN = 1e-9  # of the observed scores, or of differences: what is left is rounding


class Units(NamedTuple):
    """Rows of two systems that are resampled together: segments, or whole documents."""

    a: FloatMatrix
    b: FloatMatrix
    totals: Totals


def mean_totals(sums: FloatMatrix) -> FloatVector:
    """Return means from sums of (score, 1) rows."""
    return divide(sums[:, 0], sums[:, 1])


def mean_rows(values: FloatVector) -> FloatMatrix:
    """Return the rows whose total is the mean."""
    return np.stack([values, np.ones(len(values))], axis=1)


def in_blocks(rows: FloatMatrix, blocks: Sequence[Hashable] | None) -> FloatMatrix:
    """Return one summed row per block, in the order of their first row; the rows themselves without blocks."""
    if blocks is None:
        return rows
    if len(blocks) != len(rows):
        raise DataError(f"{len(blocks)} blocks for {len(rows)} segments: each segment belongs to one")
    places = {name: k for k, name in enumerate(dict.fromkeys(blocks))}
    summed = np.zeros((len(places), rows.shape[1]))
    np.add.at(summed, [places[name] for name in blocks], rows)
    return summed


def compare_rows(
    units: Units, *, test: Test, alternative: Alternative = "two-sided", n: int, seed: int, deltas: FloatVector | None
) -> PValues:
    """Return the p-values of a difference of corpus scores (A - B) whose rows are resampled.

    `deltas` are the differences of bootstrap samples, where they are known already.
    """
    _check(test, alternative, n)
    if test == "permutation":
        return swap_test(units, n=n, seed=seed)
    if test != "bootstrap":
        raise SpecError(
            f"the {test} test is for means of segments, not for corpus scores: use permutation or bootstrap"
        )
    if deltas is None:
        deltas = resample(units.a, units.totals, n, seed) - resample(units.b, units.totals, n, seed)
    return bootstrap_p(deltas, _difference(units), "sign")


def swap_test(units: Units, *, n: int, seed: int) -> PValues:
    """Return the p-values of swapping rows between two systems; all swaps where that is no more work than drawing."""
    count = len(units.a)
    listed = 2**count <= 2 * n
    whole = (units.a.sum(axis=0), units.b.sum(axis=0))
    moved = units.b - units.a
    parts = []
    for swaps in _every(count) if listed else _coins(count, n, seed):
        change = swaps @ moved
        parts.append(units.totals(whole[0] + change) - units.totals(whole[1] - change))
    deltas = np.concatenate(parts)
    scale = float(np.abs([units.totals(sums[None, :])[0] for sums in whole]).max())
    method = "all swaps" if listed else "random swaps"
    return p_values(
        deltas, _difference(units), _MARGIN * scale, method, total=len(deltas) if listed else None, draws=n
    )  # fmt: skip


def _difference(units: Units) -> float:
    return float(units.totals(units.a.sum(axis=0)[None, :])[0] - units.totals(units.b.sum(axis=0)[None, :])[0])


def _every(count: int) -> Iterator[FloatMatrix]:
    numbers = np.arange(2**count)
    yield ((numbers[:, None] >> np.arange(count)) & 1).astype(np.float64)


def _coins(count: int, n: int, seed: int) -> Iterator[FloatMatrix]:
    for drawn in random_rows(n, count, seed):
        yield (drawn < 0.5).astype(np.float64)  # noqa: PLR2004 - a fair coin


def resample(rows: FloatMatrix, totals: Totals, n: int, seed: int) -> FloatVector:
    """Return the corpus scores of bootstrap samples; the same seed draws the same segments for every system."""
    return np.concatenate([totals(sums) for sums in draw_sums(rows, n, seed)])


def bootstrap_p(deltas: FloatVector, observed: float, kind: Literal["sign", "centred"]) -> PValues:
    """Return the p-values of bootstrap differences: `sign` around 0, `centred` around twice the observed one.

    Differences that only rounding parts from these values are equal to them.
    """
    margin = _MARGIN * float(np.abs(deltas).max(initial=0.0, where=np.isfinite(deltas)))
    if kind == "sign":
        greater, less = float((deltas <= margin).mean()), float((deltas >= -margin).mean())
        two_sided = min(1.0, 2 * min(greater, less))
    else:
        greater = float((deltas >= 2 * observed - margin).mean())
        less = float((deltas <= 2 * observed + margin).mean())
        two_sided = float((np.abs(deltas - observed) >= abs(observed) - margin).mean())
    return PValues(two_sided, greater, less, exact=False, method=f"paired bootstrap, {kind}", draws=len(deltas))


def classical_test(differences: NDArray[np.float64], test: str) -> PValues:
    """Return the p-values of the paired t-test or of Wilcoxon's signed ranks; NaN where all differences are equal."""
    from scipy import stats  # noqa: PLC0415 - loads all of scipy

    if len(differences) < 2 or np.ptp(differences) == 0:  # noqa: PLR2004 - no spread
        return PValues(math.nan, math.nan, math.nan, exact=False, method=test)
    ask = stats.wilcoxon if test == "wilcoxon" else lambda values, alternative: stats.ttest_1samp(
        values, 0.0, alternative=alternative
    )  # fmt: skip
    two_sided, greater, less = (float(ask(differences, alternative=way).pvalue) for way in get_args(Alternative))
    return PValues(
        two_sided, greater, less, exact=False, method="Wilcoxon signed ranks" if test == "wilcoxon" else "paired t"
    )


def _check(test: str, alternative: str, n: int) -> None:
    if test not in TESTS:
        raise SpecError(f"no test named {test!r}: use {', '.join(TESTS)}")
    check_resampling(alternative, n)


PRIOR = 0.5
_STILL = 1e-12
_ROUNDS = 100_000


@dataclass(frozen=True, slots=True, eq=False)
class Strengths:
    """Strength of every system (they sum to 1), with the means beside them."""

    strengths: FloatVector
    means: FloatVector
    wins: FloatMatrix
    ties: Literal["half", "drop"]
    prior: float
    """Pseudo-wins that were added; 0 where none were needed."""
    intervals: tuple[Estimate, ...] = ()
    seed: int | None = None

    @property
    def disagreements(self) -> list[tuple[int, int]]:
        """Pairs of systems that strengths and means put in different order, the stronger one first."""
        order = np.argsort(-self.strengths, kind="stable").tolist()
        pairs = [(i, j) for place, i in enumerate(order) for j in order[place + 1 :]]
        return [(i, j) for i, j in pairs if self.means[i] < self.means[j]]


def bradley_terry(
    scores: ArrayLike,
    *,
    ties: Literal["half", "drop"] = "half",
    prior: float = PRIOR,
    draws: int = 0,
    confidence: float = 0.95,
    seed: int = 0,
) -> Strengths:
    """Return the strengths of systems x segments; missing cells take no part.

    `draws` resamples of the segments give intervals; 0 leaves them out.
    """
    matrix = as_matrix(scores, "the scores")
    if len(matrix) < 2:  # noqa: PLR2004 - a pairing takes two
        raise DataError("Bradley-Terry compares systems: there is only one")
    if ties not in ("half", "drop"):
        raise SpecError(f"ties is {ties!r}, expected 'half' or 'drop'")
    if not prior > 0:
        raise SpecError(f"prior is {prior}, expected more than 0")
    results = _results(matrix, ties)
    wins = results.sum(axis=0)
    (strengths,), (added,) = _fit(wins[None], prior)
    intervals: list[Estimate] = []
    if draws:
        picked = np.random.default_rng(seed).integers(0, matrix.shape[1], (draws, matrix.shape[1]))
        # Few segments give few different tables.
        tables, which = np.unique([results[segments].sum(axis=0) for segments in picked], axis=0, return_inverse=True)
        resampled = _fit(tables, prior)[0][which.ravel()]
        tails = percentiles(resampled, confidence)
        intervals = [
            Estimate(float(value), float(low), float(high), confidence, matrix.shape[1])
            for value, low, high in zip(strengths, *tails, strict=True)
        ]
    return Strengths(
        *(read_only(strengths), read_only(row_means(matrix)), read_only(wins), ties, float(added), tuple(intervals)),
        seed if draws else None,
    )


def _results(matrix: FloatMatrix, ties: str) -> NDArray[np.float64]:
    """Return segments x systems x systems: 1 where the row wins, a half where there is a tie that counts."""
    columns = matrix.T
    above = (columns[:, :, None] > columns[:, None, :]).astype(np.float64)
    if ties == "drop":
        return above
    equal = (columns[:, :, None] == columns[:, None, :]).astype(np.float64)
    results: NDArray[np.float64] = above + equal * (1 - np.eye(len(matrix))) / 2
    return results


def _fit(wins: NDArray[np.float64], prior: float) -> tuple[FloatMatrix, FloatVector]:
    """Return the strengths behind each of many tables of wins (tables x systems x systems), and what was added."""
    added = np.where(_has_maximum(wins), 0.0, prior)
    wins = wins + added[:, None, None] * (1 - np.eye(wins.shape[1]))
    played, won = wins + wins.transpose(0, 2, 1), wins.sum(axis=2)
    fits = np.full(won.shape, math.nan)
    active, strengths = np.arange(len(wins)), np.full(won.shape, 1 / wins.shape[1])
    for _ in range(_ROUNDS):
        new = won / (played / (strengths[:, :, None] + strengths[:, None, :])).sum(axis=2)
        new /= new.sum(axis=1, keepdims=True)
        still = np.abs(new - strengths).max(axis=1) < _STILL
        fits[active[still]] = new[still]
        if still.all():
            break
        active, strengths, played, won = active[~still], new[~still], played[~still], won[~still]
    return fits, added


def _has_maximum(wins: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return for each table whether every system beats every other one directly or through others."""
    reach: NDArray[np.bool_] = (wins > 0) | np.eye(wins.shape[1], dtype=np.bool_)
    for _ in range(max(1, wins.shape[1].bit_length())):
        reach = np.matmul(reach, reach)
    return np.asarray(reach.all(axis=(1, 2)), dtype=np.bool_)
