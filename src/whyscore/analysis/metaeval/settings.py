"""How metrics are judged."""

from dataclasses import dataclass
from typing import Literal, TypedDict

from whyscore.errors import SpecError
from whyscore.options import check_seed
from whyscore.stats.correction import ALPHA
from whyscore.stats.correlation import Undefined
from whyscore.stats.draws import Resample
from whyscore.stats.matrices import TIE_TOLERANCE, Missing, Permute

DRAWS = 1000
TEST_DRAWS = 9999

Compat = Literal["mtme", "nlpstats"]
"""mt-metrics-eval or nlpstats, whose numbers are to come out."""


@dataclass(frozen=True, slots=True)
class Judging:
    """How metrics are judged.

    Args:
        level: system, segment, global or within_system; the measure's own if None.
        coefficient: the measure of agreement.
        test: between every two metrics: permutation, bootstrap or williams.
        permute: what a permutation swaps.
        correction: of the p-values of all pairs.
        alpha: the p-value that counts.
        draws: of the bootstrap behind intervals; 0 leaves them out.
        test_draws: of a test.
        seed: fixes them.
        missing: what to do with cells that one side lacks.
        with_sentinels: also judge length, copying and chance.
        with_humans: keep human references among the systems.
        given_length: also the partial correlation given length.
        resample: what the bootstrap draws: systems, inputs (segments) or both, which is the widest.
        undefined: whether segments without a value are left out of a mean, or count as `zero` to penalise constants.
        tie_tolerance: means closer than this share of their spread are ties; 0 compares bit by bit.
        epsilon: of `acc_eq`, where it was fitted elsewhere.
        held_out: of `acc_eq`, also the accuracy with epsilon fitted on the other half of the segments.
        compat: mtme for SPA and Williams' test as mt-metrics-eval has them; nlpstats for p = c / n from its random
            numbers.
        early_stop: end a permutation test after a block of 1000 where p is clear: below .02 or above .5.
    """

    level: str | None = None
    coefficient: str = "kendall_b"
    test: str | None = None
    permute: Permute = "cell"
    correction: str = "none"
    alpha: float = ALPHA
    draws: int = DRAWS
    test_draws: int = TEST_DRAWS
    seed: int = 0
    missing: Missing = "paired"
    with_sentinels: bool = True
    with_humans: bool = False
    given_length: bool = False
    resample: Resample = "both"
    undefined: Undefined = "leave_out"
    tie_tolerance: float = TIE_TOLERANCE
    epsilon: float | None = None
    held_out: bool = False
    compat: Compat | None = None
    early_stop: bool = False

    def __post_init__(self) -> None:
        """Refuse options that would not be read."""
        check_seed(self.seed)
        if self.compat not in (None, "mtme", "nlpstats"):
            raise SpecError(f"compat is {self.compat!r}, expected 'mtme', 'nlpstats' or None")
        if self.coefficient != "acc_eq" and (self.epsilon is not None or self.held_out):
            raise SpecError(f"epsilon is of acc_eq alone, not of {self.coefficient}: leave it out")
        if self.epsilon is not None and self.held_out:
            raise SpecError("a given epsilon is not fitted: leave held_out away")
        if self.early_stop and (self.test != "permutation" or self.coefficient == "acc_eq" or self.compat):
            raise SpecError("early_stop is of the permutation test of coefficients, without compat: leave it out")


class Options(TypedDict, total=False):
    """The fields of `Judging`, as options of `metaevaluate`."""

    level: str | None
    coefficient: str
    test: str | None
    permute: Permute
    correction: str
    alpha: float
    draws: int
    test_draws: int
    seed: int
    missing: Missing
    with_sentinels: bool
    with_humans: bool
    given_length: bool
    resample: Resample
    undefined: Undefined
    tie_tolerance: float
    epsilon: float | None
    held_out: bool
    compat: Compat | None
    early_stop: bool
