"""From scores to shares: what the numbers of a feature say, and when they say nothing.

1. For each segment of I: gain a = oracle - sigma, range b = oracle - anti.
2. share = sum a / sum b. At corpus level the three means are replaced by the corpus score of the summed rows.
3. A range at or below the floor (a millionth of the metric's scale) gives no share: a system whose scores are all but
   zero everywhere must not get share 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from whyscore.analysis.decompose.scoring import Answers, Members, Reading
from whyscore.stats.shares import Fit, ratios
from whyscore.types import FloatMatrix, FloatVector

FLOOR = 1e-6
FEW_SEGMENTS = 30
FEW_INFORMATIVE = 20
# Scores of the same text may differ in the last digits between batches.
_EQUAL = 1e-12


class Cell(NamedTuple):
    """The numbers of one system and feature."""

    n: int
    informative: int
    sigma: float | None
    oracle: float | None
    anti: float | None
    share: float | None
    guarded: float | None
    gain: float | None
    range: float | None
    outside: int
    flags: tuple[str, ...]
    reason: str | None


@dataclass(frozen=True, eq=False)
class Values:
    """The segment scores of one metric: of all entries, and of each feature's entries in best and worst case."""

    reading: Reading
    answers: Answers
    members: Members
    corpus: bool = False
    floor: float = FLOOR
    guard: float = FLOOR
    """The floor of a single segment's range in `guarded`."""

    @cached_property
    def scores(self) -> tuple[FloatVector, list[FloatVector], list[FloatVector]]:
        """The scores of all entries, and for each feature those of its members in best and worst case."""
        groups = [self.answers.plain, *self.answers.oracle, *self.answers.anti]
        values = self.reading.values(np.vstack(groups))
        plain, *rest = np.split(values, np.cumsum([len(group) for group in groups])[:-1])
        features = len(self.members)
        return plain, rest[:features], rest[features:]

    def of(self, feature: int, chosen: Sequence[int]) -> tuple[FloatVector, FloatVector, FloatVector]:
        """Return sigma, oracle and anti of chosen members of a feature, by their position among the members."""
        entries = np.array(self.members[feature], dtype=np.intp)[list(chosen)]
        plain, oracle, anti = self.scores
        return plain[entries], oracle[feature][list(chosen)], anti[feature][list(chosen)]

    def triple(self, feature: int, chosen: Sequence[int]) -> tuple[float, float, float]:
        """Return the corpus scores of chosen members: as they are, in the best and in the worst case."""
        entries = np.array(self.members[feature], dtype=np.intp)[list(chosen)]
        rows = self.answers.plain[entries], self.answers.oracle[feature][chosen], self.answers.anti[feature][chosen]
        sigma, oracle, anti = (self.reading.total(part.sum(axis=0)) for part in rows)
        return sigma, oracle, anti


def cell_of(values: Values, feature: int, chosen: Sequence[int]) -> Cell:
    """Return the numbers of one feature over chosen members; without any there is no number."""
    if not len(chosen):
        return Cell(0, 0, None, None, None, None, None, None, None, 0, (), None)
    sigma, oracle, anti = values.of(feature, chosen)
    gains, ranges = oracle - sigma, oracle - anti
    means = float(sigma.mean()), float(oracle.mean()), float(anti.mean())
    own, best, worst = values.triple(feature, chosen) if values.corpus else means
    span = best - worst
    share = share_of(own, best, worst, values.floor)
    reason = None if share is not None else f"range {span:.0e} is too small"
    informative = int((ranges > values.floor).sum())
    outside = int(((sigma > oracle + _EQUAL) | (sigma < anti - _EQUAL)).sum())
    return Cell(
        len(chosen),
        informative,
        own,
        best,
        worst,
        share,
        guarded(gains, ranges, values.guard),
        best - own,
        span,
        outside,
        _flags(share, len(chosen), informative),
        reason,
    )


def share_of(sigma: float, oracle: float, anti: float, floor: float = FLOOR) -> float | None:
    """Return (oracle - sigma) / (oracle - anti), Eq. 2 of the paper; None where the range is not above the floor.

    >>> share_of(0.25, 0.5, 0.0), share_of(0.0, 8e-232, 0.0)
    (0.5, None)
    """
    return (oracle - sigma) / (oracle - anti) if oracle - anti > floor else None


def guarded(gains: FloatVector, ranges: FloatVector, floor: float) -> float:
    """Return the mean of a / b over the segments where it lies in (0, 1] and b is above the floor; others count 0.

    >>> guarded(np.array([1.0, -1.0, 2.0]), np.array([2.0, 2.0, 0.0]), 0.0)
    0.16666666666666666
    """
    sound = (ranges > floor) & (gains > 0) & (gains <= ranges)
    return float((gains[sound] / ranges[sound]).sum() / len(gains))


def summed_rows(values: Values, lines: Sequence[int], segments: int) -> FloatMatrix:
    """Return what is resampled: segments x columns, zero outside I.

    `lines` gives the segment of each member entry, or -1 for entries of other systems. The columns are all gains, then
    all ranges; at corpus level the rows of sigma, oracle and anti of each feature in turn.
    """
    features = len(values.members)
    width = values.answers.plain.shape[1]
    table = np.zeros((segments, 3 * width * features if values.corpus else 2 * features))
    for feature, entries in enumerate(values.members):
        chosen = [k for k, entry in enumerate(entries) if lines[entry] >= 0]
        if not chosen:
            continue
        places = [lines[entries[k]] for k in chosen]
        if values.corpus:
            own = values.answers.plain[[entries[k] for k in chosen]]
            parts = (own, values.answers.oracle[feature][chosen], values.answers.anti[feature][chosen])
            table[places, 3 * width * feature : 3 * width * (feature + 1)] = np.hstack(parts)
        else:
            sigma, oracle, anti = values.of(feature, chosen)
            table[places, feature] = oracle - sigma
            table[places, features + feature] = oracle - anti
    return table


def fit_of(values: Values) -> Fit:
    """Return how summed rows become shares."""
    return _corpus_shares(values) if values.corpus else ratios(values.floor)


def _corpus_shares(values: Values) -> Fit:
    total, floor = values.reading.total, values.floor

    def fit(sums: FloatMatrix) -> FloatMatrix:
        width = values.answers.plain.shape[1]
        parts = sums.reshape(-1, width)
        totals = np.array([total(row) if row.any() else 0.0 for row in parts]).reshape(len(sums), -1, 3)
        gains, ranges = totals[:, :, 1] - totals[:, :, 0], totals[:, :, 1] - totals[:, :, 2]
        found: FloatMatrix = np.divide(gains, ranges, out=np.full(gains.shape, np.nan), where=ranges > floor)
        return found

    return fit


def _flags(share: float | None, n: int, informative: int) -> tuple[str, ...]:
    flags = []
    if share is not None and share < 0:
        flags.append("negative")
    if share is not None and share > 1:
        flags.append("above-one")
    if n < FEW_SEGMENTS or informative < FEW_INFORMATIVE:
        flags.append("few")
    return tuple(flags)
