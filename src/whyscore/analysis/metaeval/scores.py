"""How good is a metric? Its agreement with people, beside other metrics and beside sentinels.

1. Scores become matrices (systems x segments) per group; human references among the systems are left out unless asked.
2. Every metric gets its agreement with a bootstrap interval; sentinels (length, copying, chance) too.
3. Metrics are tested against each other where that is asked for, and those that cannot be told apart share a rank.
4. Notes say what looks wrong: metrics not above the best sentinel, metrics below chance, cells left out, heavy ties.
   Ties are heavy where at least one pair of scores in twenty is equal, as with twenty values that are equally frequent:
   then the agreement depends on how a coefficient treats ties.

Learned sentinels (Perrella et al. 2024, arXiv 2408.13831) see one text alone, the source, the hypothesis or the
reference, and predict the human score of a translation without comparing it with anything:

1. Texts become counts of character n-grams (1 to 4 characters, lower case), hashed to 512 columns, as log(1 + count),
   scaled to length 1.
2. Ridge regression (penalty 1) on the human score, for each group of the table on its own.
3. Five folds: a row is predicted by the other folds. Rows of one document are in one fold, or rows with the same source
   where the table names no documents.

The paper fine-tunes XLM-R on DA and MQM ratings of earlier years; ours learn from the ratings at hand, and so are
controls for that data alone.
"""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Literal, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from whyscore.analysis.common import MetricLike, as_metric, requested_name, with_languages
from whyscore.analysis.metaeval.result import Agreement, GroupAgreement, Metaevaluation, MetricTest
from whyscore.analysis.metaeval.settings import MetaevalScoresSettings
from whyscore.analysis.metaeval.tables import MatrixSet, ScoreTable, dataset_table, matrix_sets, without_humans
from whyscore.analysis.metaeval.uses import FilterUse, RerankUse, average_tasks, judge_filters
from whyscore.data.columns import ALIASES
from whyscore.data.gathering import pair_of
from whyscore.errors import DataError, MissingInput, SpecError
from whyscore.metrics.controls import Copy, Length, LengthRatio
from whyscore.models.surprisal import piece_surprisal
from whyscore.protocols import Metric, SupportsLanguages
from whyscore.scoring.rows import orient
from whyscore.scoring.stack import LOCAL, Resources
from whyscore.settings import takes
from whyscore.stats.agreement import acc_eq_held_out
from whyscore.stats.correction import Clusters, clusters, correct_p
from whyscore.stats.correlation import partial_correlation
from whyscore.stats.intervals import TOO_MANY, bootstrap, fisher, shares
from whyscore.stats.matrices import DegenerateStatisticWarning, row_means
from whyscore.stats.measures import FINE, Fine, Measure, agree, measure_of
from whyscore.stats.resampling import block_folds, sort_by_content
from whyscore.stats.significance import PermutationTest, at_least, outcome_test, permutation_test, williams
from whyscore.text.randomness import generator
from whyscore.text.splitters import white_space
from whyscore.types import Dataset, Estimate, FloatMatrix, FloatVector, Scores, Segment

DRAWN = {"both": "systems and segments", "systems": "systems", "inputs": "segments"}
METHODS = {
    "permutation": "permutation test, permute {permute}",
    "bootstrap": "paired bootstrap over {drawn}",
    "williams": "Williams' test",
}
_BOOTSTRAPPED = ("spa", "pdp", "kendall_like")
"""The measures that are tested by the bootstrap alone."""

_PERMUTED = {"nlpstats": "permutation test as in nlpstats, permute {permute}, p = c / n"}


class _Both(NamedTuple):
    """The p-values of "the first is better" and of "the second is better"."""

    delta: float
    first: float
    second: float
    exact: bool
    reason: str | None


def run_pair_tests(
    metrics: Mapping[str, FloatMatrix], human: FloatMatrix, measure: Measure, settings: MetaevalScoresSettings
) -> tuple[MetricTest, ...]:
    """Return the tests of every two metrics, the better one first, not yet corrected; none where none is asked for."""
    if settings.test is None:
        return ()
    _check(measure, human, settings)
    method = method_of(measure, settings)
    tests = []
    for first, second in combinations(metrics, 2):
        test = _pair(metrics[first], metrics[second], human, measure, settings)
        better = test.delta >= 0 or math.isnan(test.delta)
        names, p = ((first, second), test.first) if better else ((second, first), test.second)
        tests.append(MetricTest(*names, abs(test.delta), p, p, method, test.exact, reason=test.reason))
    return tuple(tests)


def correct_families(
    groups: Sequence[tuple[MetricTest, ...]], settings: MetaevalScoresSettings
) -> list[tuple[MetricTest, ...]]:
    """Return the tests of each group, corrected over those of its group or over those of the whole table."""
    if settings.correction == "none":
        return list(groups)
    if settings.family == "group":
        return [_correct(tests, settings) for tests in groups]
    every = iter(_correct([test for tests in groups for test in tests], settings))
    return [tuple(next(every) for _ in tests) for tests in groups]


def _correct(tests: Sequence[MetricTest], settings: MetaevalScoresSettings) -> tuple[MetricTest, ...]:
    corrected = correct_p(settings.correction, [test.p for test in tests], settings.alpha, family=settings.family)
    return tuple(
        replace(test, adjusted=adjusted, family_size=corrected.n)
        for test, adjusted in zip(tests, corrected.adjusted, strict=True)
    )


def cluster_metrics(
    values: Mapping[str, float], tests: Sequence[MetricTest], settings: MetaevalScoresSettings
) -> Clusters | None:
    """Return the clusters that the corrected tests support; None where nothing was tested."""
    if settings.test is None:
        return None
    names = list(values)
    p = {(test.first, test.second): test.adjusted for test in tests}
    return clusters(names, list(values.values()), lambda i, j: p.get((names[i], names[j]), 1.0), alpha=settings.alpha)


def _check(measure: Measure, human: FloatMatrix, settings: MetaevalScoresSettings) -> None:
    """Refuse tests that a measure does not have."""
    if measure.name in _BOOTSTRAPPED and settings.test != "bootstrap":
        raise SpecError(f"{measure.name} is tested by the bootstrap: use the test bootstrap")
    if settings.test == "williams" and measure.level != "global" and human.shape[1] > 1:
        raise SpecError(
            f"Williams' test compares correlations over all cells, not {measure.name}@{measure.level}: use the level "
            "global, or the test permutation"
        )


def method_of(measure: Measure, settings: MetaevalScoresSettings) -> str:
    """Return the name of a test with what it permutes or draws; of `acc_eq`, outcomes of pairs are permuted."""
    test = settings.test or ""
    if test == "permutation" and measure.name == "acc_eq":
        return METHODS[test].format(permute="pairs")
    form = _PERMUTED.get(settings.compat or "", METHODS[test]) if test == "permutation" else METHODS[test]
    name = form.format(permute=settings.permute, drawn=DRAWN[settings.resample])
    if settings.early_stop:
        name += ", stopped early where p is clear"
    return f"{name} as in {settings.compat}" if test == "williams" and settings.compat else name


def _pair(x: FloatMatrix, y: FloatMatrix, z: FloatMatrix, measure: Measure, settings: MetaevalScoresSettings) -> _Both:
    coefficient = "acc_23" if measure.name == "pairwise_accuracy" else measure.name
    if settings.test == "williams":
        greater, less = (
            williams(*pair, z, coefficient, alternative="greater", missing=settings.missing, compat=settings.compat)
            for pair in ((x, y), (y, x))
        )
        return _Both(greater.delta, greater.p, less.p, exact=False, reason=greater.reason)
    if settings.test == "bootstrap":
        drawn = bootstrap(
            *(x, z, measure.level, measure.name), against=y, resample=settings.resample, n=settings.test_draws,
            seed=settings.seed, missing=settings.missing, keep=True,
        )  # fmt: skip
        delta = drawn.estimate.value
        turned = shares(-_drop_nan(drawn.samples), -delta)[0]
        return _Both(delta, drawn.sign, turned, exact=False, reason=drawn.estimate.reason)
    if measure.name == "acc_eq":
        swapped = outcome_test(
            *(x, y, z, measure.level), alternative="greater", n=settings.test_draws, seed=settings.seed,
            missing=settings.missing, keep=True,
            epsilons=None if settings.epsilon is None else (settings.epsilon, settings.epsilon),
        )  # fmt: skip
    else:
        swapped = permutation_test(
            *(x, y, z, measure.level, coefficient), permute=settings.permute or "cell",
            # Both directions are read off the same swaps: they end where neither can matter any more.
            alternative="two-sided" if settings.early_stop else "greater", early_stop=settings.early_stop,
            n=settings.test_draws, seed=settings.seed, missing=settings.missing, keep=True,
            compat="nlpstats" if settings.compat == "nlpstats" else None,
            tie_tolerance=None if settings.compat else settings.tie_tolerance,
        )  # fmt: skip
    return _Both(
        swapped.delta, _one_sided(swapped, "greater"), _one_sided(swapped, "less"), swapped.exact, swapped.reason
    )


def _one_sided(test: PermutationTest, alternative: Literal["greater", "less"]) -> float:
    """Return the p-value of one direction, from the same swaps."""
    if test.samples is None:
        return math.nan
    samples = _drop_nan(test.samples)
    extreme = int(at_least(samples, test.delta, alternative).sum())
    return extreme / len(samples) if test.exact or test.compat else (extreme + 1) / (len(samples) + 1)


def _drop_nan(samples: FloatVector | None) -> FloatVector:
    return np.zeros(0) if samples is None else samples[~np.isnan(samples)]


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

    def warning(self, name: str) -> str:
        """Return what a reader should know."""
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
    scores = matrix[~np.isnan(matrix)]
    counts = np.unique(scores, return_counts=True)[1].astype(np.float64)
    all_pairs = scores.size * (scores.size - 1)
    return Ties(scores.size, len(counts), float(counts @ (counts - 1)) / all_pairs if all_pairs else 0.0)


_PARTIAL = ("pearson", "spearman")
_FISHER = ("pearson", "spearman", "kendall_b")
_LEVEL = 0.95


def agreement_of(matrices: MatrixSet, name: str, measure: Measure, settings: MetaevalScoresSettings) -> Agreement:
    """Return how well a metric, or a sentinel, agrees with people."""
    matrix = matrices.metrics[name] if name in matrices.metrics else matrices.sentinels[name]
    fine = Fine(settings.undefined, settings.tie_tolerance, settings.epsilon, settings.compat == "mtme")
    measured, facts = agree(matrix, matrices.human, measure, missing=settings.missing, seed=settings.seed, fine=fine)
    drawn = _interval(matrix, matrices.human, measure, settings) if not math.isnan(measured.value) else None
    low, high = (drawn.low, drawn.high) if drawn else (None, None)
    one_vector = measure.name in _FISHER and measure.level in ("system", "global")
    check = fisher(measured.value, measured.n_used, measure.name) if one_vector else None
    return Agreement(
        *(measured.value, low, high, _LEVEL, measured.n, measured.reason or (drawn.reason if drawn else None), name),
        *(measured.name, matrices.group, measured.n_used),
        dropped=measured.dropped.cells,
        below_chance=high is not None and measure.chance is not None and high < measure.chance,
        epsilon=facts.get("epsilon"),
        at_zero=facts.get("at_zero"),
        held_out=acc_eq_held_out(matrix, matrices.human, measure.level, missing=settings.missing).value
        if settings.held_out
        else None,
        given_length=_correlate_given_length(matrices, matrix, measure) if settings.given_length else None,
        distinct=ties_of(matrix).distinct,
        fisher_low=check.low if check else None,
        fisher_high=check.high if check else None,
    )


def _interval(
    matrix: FloatMatrix, human: FloatMatrix, measure: Measure, settings: MetaevalScoresSettings
) -> Estimate | None:
    """Return the bootstrap's interval; None where none was asked for."""
    if not settings.draws:
        return None
    fine = FINE._replace(undefined=settings.undefined, tie_tolerance=settings.tie_tolerance, epsilon=settings.epsilon)
    return bootstrap(
        *(matrix, human, measure.level, measure.name),
        resample=settings.resample,
        n=settings.draws,
        seed=settings.seed,
        missing=settings.missing,
        fine=fine,
    ).estimate


def _correlate_given_length(matrices: MatrixSet, matrix: FloatMatrix, measure: Measure) -> float | None:
    """Return the correlation given length, for the levels that compare one vector."""
    if measure.name not in _PARTIAL or measure.level not in ("system", "global") or LENGTH not in matrices.sentinels:
        return None
    ordered = sort_by_content(matrix, matrices.sentinels[LENGTH], matrices.human)
    scores, length, human = (row_means(side) if measure.level == "system" else side.ravel() for side in ordered)
    return partial_correlation(scores, human, length, measure.name)


_ONE = "metric"
Given = Scores | FloatVector | MetricLike
"""One number per entry, or a metric that gives them."""


@overload
def metaevaluate(
    dataset: Dataset,
    scores: Mapping[str, Given] | list[MetricLike],
    *,
    human: str,
    settings: MetaevalScoresSettings | None = ...,
    resources: Resources = ...,
    **options: object,
) -> Metaevaluation: ...
@overload
def metaevaluate(
    dataset: Dataset,
    scores: Given,
    *,
    human: str,
    settings: MetaevalScoresSettings | None = ...,
    resources: Resources = ...,
    **options: object,
) -> Agreement: ...
@takes(MetaevalScoresSettings)
def metaevaluate(
    dataset: Dataset,
    scores: Given | Mapping[str, Given] | list[MetricLike],
    *,
    human: str,
    settings: MetaevalScoresSettings,
    resources: Resources = LOCAL,
) -> Agreement | Metaevaluation:
    """Return the agreement of scores with a human score of the data set.

    One vector, `Scores` or metric gives one estimate with its interval; several by name, or a list of metrics, give a
    table, with tests between them where `test` is asked for. Scores are turned where they say that lower is better.

    Args:
        dataset: entries with human scores.
        scores: one number per entry, a metric, or several of them.
        human: the name of the human score, higher is better.
        settings: level, coefficient, test, intervals.
        resources: store, executor and progress, where metrics are scored.
    """
    named: dict[str, Given]
    if isinstance(scores, Mapping):
        named = dict(scores)
    elif isinstance(scores, list):
        named = {requested_name(metric): metric for metric in scores}
    else:
        named, settings = {_ONE: scores}, replace(settings, with_sentinels=False)
    vectors = {name: _vector(dataset, name, value, resources) for name, value in named.items()}
    result = metaevaluate_table(
        dataset_table(dataset, human).with_scores(**vectors), human, list(named), settings=settings
    )
    return result if isinstance(scores, Mapping | list) else result[_ONE]


def _vector(dataset: Dataset, name: str, requested: Given, resources: Resources) -> FloatVector:
    """Return one number per entry, higher is better."""
    if isinstance(requested, str | Metric) or callable(requested):
        return score_by_language(dataset, requested, resources)
    values = requested.values if isinstance(requested, Scores) else np.asarray(requested, dtype=np.float64)
    if len(values) != len(dataset):
        raise DataError(f"{name} has {len(values)} scores for {len(dataset)} entries of {dataset.name}: one for each")
    return -values if isinstance(requested, Scores) and not requested.higher_is_better else values


def with_metrics(table: ScoreTable, metrics: Sequence[MetricLike], resources: Resources = LOCAL) -> ScoreTable:
    """Return a table with the scores of metrics on its texts, turned so that higher is better."""
    texts = table.texts
    if not metrics:
        return table
    if texts is None:
        names = ", ".join(requested_name(metric) for metric in metrics)
        raise DataError(f"{table.name} has no column {names} and no texts to score: name columns, or add texts")
    for metric in metrics:
        table = table.with_scores(**{requested_name(metric): score_by_language(texts, metric, resources)})
    return table


def score_by_language(dataset: Dataset, metric: MetricLike, resources: Resources = LOCAL) -> FloatVector:
    """Return one number per entry, higher is better; each language pair of the data is scored in its languages."""
    base, scores = as_metric(metric), np.full(len(dataset), np.nan)
    for languages, rows in _rows_by_languages(dataset, base).items():
        prepared = orient(resources.prepare(with_languages(base, languages)))
        scores[rows] = prepared.score([dataset.segments[k] for k in rows])
    return scores


def _rows_by_languages(dataset: Dataset, metric: Metric) -> dict[tuple[str, str] | None, list[int]]:
    """Return the rows of each language pair; all together where there is one, or the metric does not ask for it."""
    if dataset.languages is not None or not isinstance(metric, SupportsLanguages):
        return {dataset.languages: list(range(len(dataset)))}
    rows: dict[tuple[str, str] | None, list[int]] = {}
    for k, entry in enumerate(dataset.entries):
        named = next((str(value) for name, value in entry.extra.items() if name.lower() in ALIASES["languages"]), "")
        rows.setdefault(pair_of(named), []).append(k)
    return rows


@takes(MetaevalScoresSettings)
def metaevaluate_table(
    table: ScoreTable, human: str, metrics: Sequence[str], *, settings: MetaevalScoresSettings
) -> Metaevaluation:
    """Return the agreement of the named columns of a table with its human column."""
    measure, level_notes = _measure(table, settings)
    if np.isnan(table.scores[human]).all():
        raise DataError(f"{table.name}: the human score {human!r} is missing in every row")
    table, notes = without_humans(table, keep=settings.with_humans)
    extra = sentinels(table, human, settings.seed) if settings.with_sentinels or settings.given_length else {}
    sets = matrix_sets(table, human, metrics, extra)
    families = correct_families([_test_group(matrices, measure, settings) for matrices in sets], settings)
    groups = tuple(
        _judge_group(matrices, tests, measure, settings) for matrices, tests in zip(sets, families, strict=True)
    )
    notes = [
        *table.notes,
        *level_notes,
        *notes,
        *(note for group in groups for note in _warnings(group, measure, settings)),
    ]
    notes += [note for matrices in sets for note in _tie_warnings(matrices)] + _means(groups, metrics, measure)
    method = None if settings.test is None else method_of(measure, settings)
    name = f"{measure.name}@{measure.level}"
    result = Metaevaluation(table.name, human, name, groups, settings, method, tuple(dict.fromkeys(notes)))
    shown = sets if settings.with_sentinels else [matrices._replace(sentinels={}) for matrices in sets]
    return _with_uses(result, shown, table, settings)


def _with_uses(
    result: Metaevaluation, sets: Sequence[MatrixSet], table: ScoreTable, settings: MetaevalScoresSettings
) -> Metaevaluation:
    """Return a result with what metrics are worth in use, and over all groups and tasks, where that was asked for."""
    if settings.average and (table.systems is None or any(len(matrices.human) < 2 for matrices in sets)):  # noqa: PLR2004
        raise DataError(
            f"{table.name}: averages of SPA need two systems or more in every group: name them with --system"
        )
    if settings.filters is not None:
        owners = _segment_owners(table)
        uses: list[FilterUse | RerankUse] = []
        for matrices in sets:
            rows = (
                range(len(table))
                if table.groups is None
                else [k for k, g in enumerate(table.groups) if g == matrices.group]
            )
            columns = dict.fromkeys(table.segments[k] for k in rows)
            uses += judge_filters(matrices, settings.filters, [owners[name] for name in columns], settings.seed)
        result = replace(result, uses=tuple(uses))
    if not settings.average:
        return result
    averages = average_tasks(sets, draws=settings.test_draws, alpha=settings.alpha, seed=settings.seed)
    return replace(result, averages=averages)


def _segment_owners(table: ScoreTable) -> dict[str, str]:
    """Return the document of each segment; the segment itself where no document is named."""
    documents = [None] * len(table) if table.texts is None else [entry.document for entry in table.texts.entries]
    return {
        name: name if document is None else f"document {document}"
        for name, document in zip(table.segments, documents, strict=True)
    }


def _measure(table: ScoreTable, settings: MetaevalScoresSettings) -> tuple[Measure, list[str]]:
    """Return the measure at the level that can be computed: without systems, all rows form one vector (global)."""
    measure = measure_of(settings.coefficient, settings.level)
    if table.systems is not None or table.rows_are_systems or measure.level == "global":
        return measure, []
    named = "name the column of the system with --system ('' if every row is a system)"
    if measure.fixed:
        raise DataError(
            f"{table.name} names no systems, and {measure.name} is made for the level {measure.level}: {named}"
        )
    note = f"no systems are named: {measure.name} is taken over all rows (level global, not {measure.level}); {named}"
    return measure._replace(level="global"), [note]


def _test_group(matrices: MatrixSet, measure: Measure, settings: MetaevalScoresSettings) -> tuple[MetricTest, ...]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateStatisticWarning)
        tests = run_pair_tests(matrices.metrics, matrices.human, measure, settings)
    return tuple(replace(test, group=matrices.group) for test in tests)


def _judge_group(
    matrices: MatrixSet, tests: tuple[MetricTest, ...], measure: Measure, settings: MetaevalScoresSettings
) -> GroupAgreement:
    shown = matrices.sentinels if settings.with_sentinels else {}
    with warnings.catch_warnings():
        # Told in the table, with the reason.
        warnings.simplefilter("ignore", DegenerateStatisticWarning)
        agreements = [agreement_of(matrices, name, measure, settings) for name in matrices.metrics]
        controls = [replace(agreement_of(matrices, name, measure, settings), sentinel=True) for name in shown]
    order = cluster_metrics({a.metric: a.value for a in agreements}, tests, settings)
    best = max((a.value for a in controls if not math.isnan(a.value)), default=math.nan)
    ranks = dict(zip(order.names, order.ranks, strict=True)) if order else {}
    marked = [replace(a, beaten=a.value <= best, rank=ranks.get(a.metric)) for a in agreements]
    ordered = [*sorted(marked, key=_place), *sorted(controls, key=_place)]
    systems = int((~np.isnan(matrices.human)).any(axis=1).sum())
    segments = int((~np.isnan(matrices.human)).any(axis=0).sum())
    return GroupAgreement(matrices.group, tuple(ordered), tests, order, systems, segments)


def _place(agreement: Agreement) -> tuple[bool, float, str]:
    return math.isnan(agreement.value), -agreement.value, agreement.metric


def _warnings(group: GroupAgreement, measure: Measure, settings: MetaevalScoresSettings) -> list[str]:
    """Return what a reader of the numbers should know."""
    where = "" if group.group is None else f"{group.group}: "
    notes = [
        f"{where}{a.metric} is below chance ({a.value:.4f}, at most {a.high:.4f}): are lower scores better?"
        for a in group.agreements
        if a.below_chance and not a.sentinel and a.high is not None
    ]
    notes += [
        f"{where}{a.metric} is not above the best sentinel" for a in group.agreements if a.beaten and not a.sentinel
    ]
    notes += [
        f"{where}{a.metric} has no {'interval' if a.reason == TOO_MANY else a.measure}: {a.reason}"
        for a in group.agreements
        if a.reason and not a.sentinel
    ]
    dropped = max((a.dropped for a in group.agreements if not a.sentinel), default=0)
    if dropped:
        notes.append(f"{where}up to {dropped} cells were left out ({settings.missing}), as one side lacks them")
    if group.systems < 2 and measure.level in ("system", "segment"):  # noqa: PLR2004 - a correlation takes two
        notes.append(f"{where}one system has no {measure.name}@{measure.level}: use the level global")
    return notes


def _tie_warnings(matrices: MatrixSet) -> list[str]:
    """Return which metrics have so few distinct scores that ties decide."""
    where = "" if matrices.group is None else f"{matrices.group}: "
    ties_by_name = {name: ties_of(matrix) for name, matrix in matrices.metrics.items()}
    return [f"{where}{ties.warning(name)}" for name, ties in ties_by_name.items() if ties.heavy]


def _means(groups: Sequence[GroupAgreement], metrics: Sequence[str], measure: Measure) -> list[str]:
    """Return each metric over several groups: their mean, all of the same weight; of pairwise accuracy, all pairs."""
    if len(groups) < 2:  # noqa: PLR2004 - one group is its own mean
        return []
    notes = []
    for name in metrics:
        agreements = [a for group in groups for a in group.agreements if a.metric == name]
        if any(math.isnan(a.value) for a in agreements):
            continue
        if measure.name == "pairwise_accuracy":
            pairs = [a.n_used * (a.n_used - 1) // 2 for a in agreements]
            value = math.fsum(a.value * count for a, count in zip(agreements, pairs, strict=True)) / sum(pairs)
            notes.append(f"{name}: {value:.4f} over the {sum(pairs)} pairs of {len(agreements)} groups")
        else:
            mean = math.fsum(a.value for a in agreements) / len(agreements)
            notes.append(f"{name}: mean over {len(agreements)} groups {mean:.4f} (equal weights)")
    return notes


LENGTH = "length"


_SIZE, _ORDERS, _PENALTY, _FOLDS, _FEWEST = 512, 4, 1.0, 5, 20


def sentinels(table: ScoreTable, human: str, seed: int = 0) -> dict[str, FloatVector]:
    """Return the sentinels of a table: higher is better.

    | name | value |
    |---|---|
    | random | a random number for each row, fixed by seed, system and segment |
    | constant | 1: has no correlation, and every pair is a tie |
    | length, -length | words of the hypothesis |
    | -surprisal | minus the mean surprisal of the hypothesis words, by subwords |
    | source length | words of the source |
    | length ratio | words of the hypothesis for each word of the references |
    | copy rate | share of the hypothesis words that stand in the source |
    | learned source, learned hypothesis, learned reference | a regression on the n-grams of that text alone |
    """
    systems = table.systems or ("",) * len(table)
    drawn = [generator(seed, *row).random() for row in zip(systems, table.segments, strict=True)]
    columns: dict[str, FloatVector] = {"random": np.array(drawn), "constant": np.ones(len(table))}
    if table.texts is None:
        return columns
    segments = table.texts.segments
    length = Length().score(segments)
    columns |= {LENGTH: length, f"-{LENGTH}": -length, "-surprisal": _familiarity(segments)}
    if all(segment.source is not None for segment in segments):
        columns["source length"] = np.array([float(len((segment.source or "").split())) for segment in segments])
        columns["copy rate"] = Copy().score(segments)
    ratio = _ratio(segments)
    columns |= {} if ratio is None else {"length ratio": ratio}
    return columns | _learn(table, segments, table.scores[human], seed)


def _learn(table: ScoreTable, segments: tuple[Segment, ...], human: FloatVector, seed: int) -> dict[str, FloatVector]:
    """Return the learned sentinels of the texts that all rows have; none where a group is too small to learn from."""
    texts: dict[str, list[str]] = {"hypothesis": [segment.hypothesis for segment in segments]}
    if all(segment.source is not None for segment in segments):
        texts["source"] = [segment.source or "" for segment in segments]
    if all(segment.references for segment in segments):
        texts["reference"] = [segment.references[0] for segment in segments]
    blocks = _blocks(table, segments)
    ranks = np.unique(blocks, return_inverse=True)[1]
    groups = np.array(table.groups or ("",) * len(table))
    columns = {}
    for name in sorted(texts, reverse=True):
        distinct = {text: k for k, text in enumerate(sorted(set(texts[name])))}
        features, places = _features(list(distinct)), np.array([distinct[text] for text in texts[name]])
        column = np.full(len(table), np.nan)
        for group in dict.fromkeys(groups.tolist()):
            rows = np.flatnonzero(groups == group)
            # By content, so that sums have the same digits whatever the order of the table.
            rows = rows[np.lexsort((human[rows], ranks[rows], places[rows]))]
            row_blocks = [blocks[k] for k in rows]
            if min((~np.isnan(human[rows])).sum() / _FEWEST, len(set(row_blocks)) / _FOLDS) >= 1:
                column[rows] = _predict(features, places[rows], human[rows], block_folds(row_blocks, _FOLDS, seed))
        if not np.isnan(column).all():
            columns[f"learned {name}"] = column
    return columns


def _blocks(table: ScoreTable, segments: tuple[Segment, ...]) -> list[str]:
    """Return what is never parted by folds: a document, the rows of a source, or those of a segment."""
    documents = [entry.document for entry in table.texts.entries] if table.texts is not None else []
    if documents and None not in documents:
        return [str(name) for name in documents]
    return [segment.source or name for segment, name in zip(segments, table.segments, strict=True)]


def _features(texts: list[str]) -> FloatMatrix:
    """Return hashed counts of character n-grams, one row per text."""
    rows = np.zeros((len(texts), _SIZE))
    for k, text in enumerate(texts):
        codes = np.frombuffer(text.lower().encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(np.uint64)
        rolled = np.zeros(len(codes), dtype=np.uint64)
        for order in range(1, min(_ORDERS, len(codes)) + 1):
            last = len(codes) - order + 1
            # The next character joins the n-gram; odd multipliers mix it (Knuth's multiplicative hashing).
            rolled = rolled[:last] * np.uint64(0x9E3779B97F4A7C15) + codes[order - 1 :] + np.uint64(order)
            mixed = (rolled * np.uint64(0xBF58476D1CE4E5B9)) >> np.uint64(55)  # the upper 9 bits: 512 columns
            rows[k] += np.bincount(mixed.astype(np.int64), minlength=_SIZE)
    rows = np.log1p(rows)
    scaled: FloatMatrix = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return scaled


def _predict(
    features: FloatMatrix, places: NDArray[np.intp], human: FloatVector, fold: NDArray[np.intp]
) -> FloatVector:
    """Return what the other folds predict for each row, by the features at its place.

    Each distinct text is a row with a weight: equal texts get equal predictions, to the last bit, and are read once.
    Sums of a fold are made once, and added up for the others.
    """
    grams, sums, targets, counts, totals = [], [], [], [], []
    for k in range(_FOLDS):
        rows = np.flatnonzero(~np.isnan(human) & (fold == k))
        used, inverse = np.unique(places[rows], return_inverse=True)
        weights, scores = (np.bincount(inverse.ravel(), column, len(used)) for column in (None, human[rows]))
        inputs = features[used]
        grams.append((inputs * weights[:, None]).T @ inputs)
        sums.append(weights @ inputs)
        targets.append(scores @ inputs)
        counts.append(float(weights.sum()))
        totals.append(float(scores.sum()))
    predictions = np.full(len(human), np.nan)
    for k in range(_FOLDS):
        n = sum(counts) - counts[k]
        if n:
            centre, mean = (sum(sums) - sums[k]) / n, (sum(totals) - totals[k]) / n
            gram = sum(grams) - grams[k] - n * np.outer(centre, centre) + _PENALTY * np.eye(_SIZE)
            slopes = np.linalg.solve(gram, sum(targets) - targets[k] - n * centre * mean)
            used, inverse = np.unique(places[fold == k], return_inverse=True)
            predictions[fold == k] = (mean + (features[used] - centre) @ slopes)[inverse.ravel()]
    # Last digits of a solution depend on the processor; they must not part what is equal.
    return predictions.astype(np.float32).astype(np.float64)


def _familiarity(segments: tuple[Segment, ...]) -> FloatVector:
    """Return minus the mean surprisal of the words of each hypothesis; 0 for one without words."""
    surprisal = [piece_surprisal(white_space(segment.hypothesis)) for segment in segments]
    return np.array([-float(values.mean()) if len(values) else 0.0 for values in surprisal])


def _ratio(segments: tuple[Segment, ...]) -> FloatVector | None:
    if not all(segment.references for segment in segments):
        return None
    try:
        return LengthRatio().score(segments)
    except MissingInput:  # empty references
        return None
