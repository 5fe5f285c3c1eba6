"""How good is a metric? Its agreement with people, beside other metrics and beside sentinels.

1. Scores become matrices (systems x segments) per group; human references among the systems are left out unless asked.
2. Every metric gets its agreement with a bootstrap interval; sentinels (length, copying, chance) too.
3. Metrics are tested against each other where that is asked for, and those that cannot be told apart share a rank.
4. What looks wrong is told: metrics not above the best sentinel, metrics below chance, cells left out, heavy ties.

The agreement of one metric with people: the value, its interval, and what belongs beside them.

Metrics with few distinct scores, whose agreement depends on how a coefficient treats ties.

1. Of a metric's scores the distinct ones are counted, and the pairs of scores that are equal.
2. Ties are heavy where at least one pair in twenty is tied, as with twenty values that are equally frequent.
"""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, Unpack, overload

import numpy as np

from whyscore.analysis.common import MetricLike, as_metric, requested_name
from whyscore.analysis.metaeval.result import Agreement, Judged, MetaEvaluation
from whyscore.analysis.metaeval.sentinels import LENGTH, sentinels
from whyscore.analysis.metaeval.settings import Judging, Options
from whyscore.analysis.metaeval.tables import MatrixSet, ScoreTable, matrix_sets, without_humans
from whyscore.analysis.metaeval.tests import compare_metrics, method_of
from whyscore.errors import DataError
from whyscore.protocols import Metric
from whyscore.scoring.rows import oriented
from whyscore.scoring.stack import LOCAL, Resources
from whyscore.stats.agreement import acc_eq_held_out
from whyscore.stats.correction import corrected
from whyscore.stats.correlation import partial_correlation
from whyscore.stats.intervals import TOO_MANY, bootstrap, fisher
from whyscore.stats.matrices import DegenerateStatisticWarning, row_means
from whyscore.stats.measures import FINE, Fine, Measure, agree, measure_of
from whyscore.types import Dataset, Estimate, FloatMatrix, FloatVector, Scores

HEAVY = 0.05


class Ties(NamedTuple):
    """How many scores there are, how many differ, and the share of pairs that are equal."""

    scores: int
    distinct: int
    pairs: float

    @property
    def heavy(self) -> bool:
        """Whether ties decide about the agreement; a constant has none at all, for another reason."""
        return self.distinct > 1 and self.pairs >= HEAVY

    def told(self, name: str) -> str:
        """Return the warning."""
        return (
            f"{name} has heavy ties: {self.distinct:,} distinct values among {self.scores:,} scores, so "
            f"{self.pairs:.1%} of the pairs are equal; coefficients differ in how they count them (acc_eq gives credit "
            "for ties)"
        )


def ties_of(matrix: FloatMatrix) -> Ties:
    """Return the ties among the scores of a metric, missing ones left out.

    >>> ties_of(np.array([[1.0, 1.0], [2.0, np.nan]]))
    Ties(scores=3, distinct=2, pairs=0.3333333333333333)
    """
    known = matrix[~np.isnan(matrix)]
    counts = np.unique(known, return_counts=True)[1].astype(np.float64)
    all_pairs = known.size * (known.size - 1)
    return Ties(known.size, len(counts), float(counts @ (counts - 1)) / all_pairs if all_pairs else 0.0)


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


_ONE = "metric"


Given = Scores | FloatVector | MetricLike
"""One number per entry, or a metric that gives them."""


@overload
def metaevaluate(
    dataset: Dataset,
    scores: Mapping[str, Given] | list[MetricLike],
    *,
    human: str,
    resources: Resources = ...,
    **options: Unpack[Options],
) -> MetaEvaluation: ...
@overload
def metaevaluate(
    dataset: Dataset, scores: Given, *, human: str, resources: Resources = ..., **options: Unpack[Options]
) -> Agreement: ...
def metaevaluate(
    dataset: Dataset,
    scores: Given | Mapping[str, Given] | list[MetricLike],
    *,
    human: str,
    resources: Resources = LOCAL,
    **options: Unpack[Options],
) -> Agreement | MetaEvaluation:
    """Return the agreement of scores with a human score of the data set.

    One vector, `Scores` or metric gives one estimate with its interval; several by name, or a list of metrics, give a
    table, with tests between them where `test` is asked for. Scores are turned where they say that lower is better.

    Args:
        dataset: entries with human scores.
        scores: one number per entry, a metric, or several of them.
        human: the name of the human score, higher is better.
        resources: store, executor and progress, where metrics are scored.
        options: fields of `Judging`: level, coefficient, test, permute, resample, correction, draws, seed, missing ...
    """
    judging = Judging(**options)
    given: dict[str, Given]
    if isinstance(scores, Mapping):
        given = dict(scores)
    elif isinstance(scores, list):
        given = {requested_name(metric): metric for metric in scores}
    else:
        given = {_ONE: scores}
        judging = replace(judging, with_sentinels=False)
    vectors = {name: _vector(dataset, name, one, resources) for name, one in given.items()}
    table = ScoreTable(
        name=dataset.name,
        systems=tuple(entry.system for entry in dataset.entries),
        segments=tuple(entry.id for entry in dataset.entries),
        scores={human: dataset.human(human)} | vectors,
        lines=tuple(range(1, len(dataset) + 1)),
        texts=dataset,
    )
    found = metaevaluate_table(table, human, list(given), judging)
    return found[_ONE] if _ONE in given else found


def _vector(dataset: Dataset, name: str, given: Given, resources: Resources) -> FloatVector:
    """Return one number per entry, higher is better."""
    if isinstance(given, str | Metric) or callable(given):
        return oriented(resources.prepare(as_metric(given))).score(dataset.segments)
    values = given.values if isinstance(given, Scores) else np.asarray(given, dtype=np.float64)
    if len(values) != len(dataset):
        raise DataError(f"{name} has {len(values)} scores for {len(dataset)} entries of {dataset.name}: one for each")
    return -values if isinstance(given, Scores) and not given.higher_is_better else values


def with_metrics(table: ScoreTable, metrics: Sequence[MetricLike], resources: Resources = LOCAL) -> ScoreTable:
    """Return a table with the scores of metrics on its texts, turned so that higher is better."""
    if metrics and table.texts is None:
        names = ", ".join(requested_name(metric) for metric in metrics)
        raise DataError(f"{table.name} has no column {names} and no texts to score: name columns, or add texts")
    for metric in metrics:
        prepared = oriented(resources.prepare(as_metric(metric)))
        table = table.with_scores(**{requested_name(metric): prepared.score(table.texts.segments)})  # type: ignore[union-attr]
    return table


def metaevaluate_table(
    table: ScoreTable, human: str, metrics: Sequence[str], judging: Judging | None = None
) -> MetaEvaluation:
    """Return the agreement of the named columns of a table with its human column."""
    judging = judging or Judging()
    measure = measure_of(judging.coefficient, judging.level)
    corrected(judging.correction, [], judging.alpha)  # refuses unknown names before any work
    if np.isnan(table.scores[human]).all():
        raise DataError(f"{table.name}: the human score {human!r} is missing in every row")
    table, notes = without_humans(table, keep=judging.with_humans)
    extra = sentinels(table, judging.seed) if judging.with_sentinels or judging.given_length else {}
    sets = matrix_sets(table, human, metrics, extra)
    groups = tuple(_judged(one, measure, judging) for one in sets)
    told = [*table.notes, *notes, *(note for one in groups for note in _warnings(one, measure, judging))]
    told += [note for one in sets for note in _tied(one)] + _means(groups, metrics, measure)
    method = None if judging.test is None else method_of(measure, judging)
    return MetaEvaluation(
        *(human, f"{measure.name}@{measure.level}", groups, method, judging.seed, judging.alpha, judging.correction),
        notes=tuple(dict.fromkeys(told)),
        resample=judging.resample,
        compat=judging.compat,
    )


def _judged(one: MatrixSet, measure: Measure, judging: Judging) -> Judged:
    shown = one.sentinels if judging.with_sentinels else {}
    with warnings.catch_warnings():
        # Told in the table, with the reason.
        warnings.simplefilter("ignore", DegenerateStatisticWarning)
        found = [agreement_of(one, name, measure, judging) for name in one.metrics]
        controls = [replace(agreement_of(one, name, measure, judging), sentinel=True) for name in shown]
        values = {a.metric: a.value for a in found}
        tests, order = compare_metrics(one.metrics, one.human, values, (measure, one.group), judging)
    best = max((a.value for a in controls if not math.isnan(a.value)), default=math.nan)
    ranks = dict(zip(order.names, order.ranks, strict=True)) if order else {}
    marked = [replace(a, beaten=a.value <= best, rank=ranks.get(a.metric)) for a in found]
    ordered = [*sorted(marked, key=_place), *sorted(controls, key=_place)]
    systems = int((~np.isnan(one.human)).any(axis=1).sum())
    return Judged(one.group, tuple(ordered), tests, order, systems, int((~np.isnan(one.human)).any(axis=0).sum()))


def _place(one: Agreement) -> tuple[bool, float, str]:
    return math.isnan(one.value), -one.value, one.metric


def _warnings(one: Judged, measure: Measure, judging: Judging) -> list[str]:
    """Return what a reader of the numbers should know."""
    where = "" if one.group is None else f"{one.group}: "
    told = [
        f"{where}{a.metric} is below chance ({a.value:.4f}, at most {a.high:.4f}): are lower scores the better ones?"
        for a in one.agreements
        if a.below_chance and not a.sentinel and a.high is not None
    ]
    told += [f"{where}{a.metric} is not above the best sentinel" for a in one.agreements if a.beaten and not a.sentinel]
    told += [
        f"{where}{a.metric} has no {'interval' if a.reason == TOO_MANY else a.measure}: {a.reason}"
        for a in one.agreements
        if a.reason and not a.sentinel
    ]
    dropped = max((a.dropped for a in one.agreements if not a.sentinel), default=0)
    if dropped:
        told.append(f"{where}up to {dropped} cells were left out ({judging.missing}), as one side lacks them")
    if one.systems < 2 and measure.level in ("system", "segment"):  # noqa: PLR2004 - a correlation takes two
        told.append(f"{where}one system has no {measure.name}@{measure.level}: use the level global")
    return told


def _tied(one: MatrixSet) -> list[str]:
    """Return which metrics have so few distinct scores that ties decide."""
    where = "" if one.group is None else f"{one.group}: "
    found = {name: ties_of(matrix) for name, matrix in one.metrics.items()}
    return [f"{where}{ties.told(name)}" for name, ties in found.items() if ties.heavy]


def _means(groups: Sequence[Judged], metrics: Sequence[str], measure: Measure) -> list[str]:
    """Return each metric over several groups: their mean, all of the same weight; of pairwise accuracy, all pairs."""
    if len(groups) < 2:  # noqa: PLR2004 - one group is its own mean
        return []
    told = []
    for name in metrics:
        own = [a for one in groups for a in one.agreements if a.metric == name]
        if any(math.isnan(a.value) for a in own):
            continue
        if measure.name == "pairwise_accuracy":
            pairs = [a.n_used * (a.n_used - 1) // 2 for a in own]
            value = math.fsum(a.value * count for a, count in zip(own, pairs, strict=True)) / sum(pairs)
            told.append(f"{name}: {value:.4f} over the {sum(pairs)} pairs of {len(own)} groups")
        else:
            mean = math.fsum(a.value for a in own) / len(own)
            told.append(f"{name}: mean over {len(own)} groups {mean:.4f} (equal weights)")
    return told
