"""The agreement of one metric with people: the value, its interval, and what belongs beside them."""

import math

from whyscore.jobs.metaevaluate_options import Judging
from whyscore.jobs.metaevaluate_sentinels import LENGTH
from whyscore.jobs.metaevaluate_sets import MatrixSet
from whyscore.jobs.metaevaluate_ties import ties_of
from whyscore.jobs.metaevaluation import Agreement
from whyscore.stats.agreement import acc_eq_held_out
from whyscore.stats.correlation import partial_correlation
from whyscore.stats.intervals import bootstrap, fisher
from whyscore.stats.matrices import row_means
from whyscore.stats.measures import FINE, Fine, Measure, agree
from whyscore.types import Estimate, FloatMatrix

_PARTIAL = ("pearson", "spearman")
_FISHER = ("pearson", "spearman", "kendall_b")
_LEVEL = 0.95


def agreement_of(one: MatrixSet, name: str, measure: Measure, judging: Judging) -> Agreement:
    """Return how well a metric, or a sentinel, agrees with people."""
    matrix = one.metrics[name] if name in one.metrics else one.sentinels[name]
    fine = Fine(judging.undefined, judging.tie_tolerance, judging.epsilon, judging.compat == "mtme")
    found, facts = agree(matrix, one.human, measure, missing=judging.missing, seed=judging.seed, fine=fine)
    drawn = _interval(matrix, one.human, measure, judging) if not math.isnan(found.value) else None
    low, high = (drawn.low, drawn.high) if drawn else (None, None)
    one_vector = measure.name in _FISHER and measure.level in ("system", "global")
    check = fisher(found.value, found.n_used, measure.name) if one_vector else None
    return Agreement(
        *(found.value, low, high, _LEVEL, found.n, found.reason or (drawn.reason if drawn else None), name),
        *(found.name, one.group, found.n_used),
        dropped=found.dropped.cells,
        below_chance=high is not None and measure.chance is not None and high < measure.chance,
        epsilon=facts.get("epsilon"),
        at_zero=facts.get("at_zero"),
        held_out=acc_eq_held_out(matrix, one.human, measure.level, missing=judging.missing).value
        if judging.held_out
        else None,
        given_length=_given_length(one, matrix, measure) if judging.given_length else None,
        distinct=ties_of(matrix).distinct,
        fisher_low=check.low if check else None,
        fisher_high=check.high if check else None,
    )


def _interval(matrix: FloatMatrix, human: FloatMatrix, measure: Measure, judging: Judging) -> Estimate | None:
    """Return the bootstrap's interval; None where none was asked for."""
    if not judging.draws:
        return None
    fine = FINE._replace(undefined=judging.undefined, tie_tolerance=judging.tie_tolerance, epsilon=judging.epsilon)
    return bootstrap(
        *(matrix, human, measure.level, measure.name),
        resample=judging.resample,
        n=judging.draws,
        seed=judging.seed,
        missing=judging.missing,
        fine=fine,
    ).estimate


def _given_length(one: MatrixSet, matrix: FloatMatrix, measure: Measure) -> float | None:
    """Return the correlation given length, for the levels that compare one vector."""
    if measure.name not in _PARTIAL or measure.level not in ("system", "global") or LENGTH not in one.sentinels:
        return None
    vectors = (matrix, one.human, one.sentinels[LENGTH])
    sides = [row_means(side) if measure.level == "system" else side.ravel() for side in vectors]
    return partial_correlation(sides[0], sides[1], sides[2], measure.name)
