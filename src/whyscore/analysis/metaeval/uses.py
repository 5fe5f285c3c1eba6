"""What metrics are used for, beside correlations: as filters, as re-rankers, and ranked over groups and tasks.

Filters and re-rankers (Perrella et al. 2024, arXiv 2410.05183):

1. Filter: a translation is good where its human score reaches a limit (-1 and -4 of MQM in the paper). A metric keeps
   what scores at or above its threshold. The threshold with the best F1 is found on four fifths of the segments, all
   systems together, and judged on the other fifth; precision, recall and F1 are over all fifths. A document is never
   parted.
2. Re-ranker: of the outputs for a segment, the metric takes the one it scores highest. Precision is the share of
   segments where no other output was rated higher; beside it the mean human score of what was taken, of the best
   outputs, and of an output by chance. Outputs with equal scores count in equal parts. Segments with fewer than two
   outputs are left out.

Averages (the aggregation of WMT's metrics tasks since 2024): for each group, soft pairwise accuracy of systems (SPA,
arXiv 2409.09598) and tie-calibrated accuracy within segments (acc_eq, arXiv 2305.14324), the mean of all of them with
equal weights, and the rank by that mean. Clusters (as in WMT's tables) come from a permutation test of every two
metrics, which swaps their scores of whole segments (`stats.significance.swap_segments`); differences of all groups and
tasks are averaged as the values are, draw by draw. A metric begins a new cluster where one of the cluster before beats
it (one-sided, p <= alpha, not corrected). Swapping single pairs instead, which are not independent of each other, told
13 of 40 pairs of equally good metrics apart, where 4 are expected.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from whyscore.analysis.metaeval.tables import MatrixSet
from whyscore.stats.agreement import acc_eq, soft_pairwise_accuracy
from whyscore.stats.correction import clusters
from whyscore.stats.resampling import block_folds
from whyscore.stats.significance import swap_segments
from whyscore.text.files import finite
from whyscore.types import FloatMatrix, FloatVector
from whyscore.types.result import Record, Table

_FOLDS = 5
_ROUNDING = 1e-12
TASKS = ("spa", "acc_eq")
_FILTER = {"group": "group", "metric": "metric", "limit": "human >=", "precision": "precision", "recall": "recall",
           "f1": "F1", "kept": "kept", "good": "good"}  # fmt: skip
_RERANK = {"group": "group", "metric": "metric", "precision": "precision", "chosen": "human score chosen",
           "best": "best", "chance": "by chance", "n": "n"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FilterUse:
    """A metric as a filter for translations whose human score reaches a limit."""

    group: str | None
    metric: str
    limit: float
    precision: float
    recall: float
    f1: float
    good: float
    """The share of good translations: the precision of keeping everything."""
    kept: float
    """The share that the metric keeps."""

    def record(self) -> Record:
        """Return the fields, for programs."""
        return {"use": "filter", **cast("Record", finite(asdict(self)))}


@dataclass(frozen=True, slots=True)
class RerankUse:
    """A metric that chooses one of several outputs."""

    group: str | None
    metric: str
    precision: float
    chosen: float
    """The mean human score of the outputs that it chooses; of the best ones; and by chance."""
    best: float
    chance: float
    n: int
    """Segments."""

    def record(self) -> Record:
        """Return the fields, for programs."""
        return {"use": "rerank", **cast("Record", finite(asdict(self)))}


def judge_filters(
    matrices: MatrixSet, limits: Sequence[float], blocks: Sequence[str], seed: int
) -> Iterator[FilterUse | RerankUse]:
    """Yield each metric as a filter for every limit, and as a re-ranker; `blocks` are of the segments."""
    alone = matrices.human.shape[1] == 1
    owners = [str(k) for k in range(len(matrices.human))] if alone else list(blocks)
    count = min(_FOLDS, len(set(owners)))
    fold = block_folds(owners, max(count, 1), seed)
    folds = np.broadcast_to(fold[:, None] if alone else fold[None, :], matrices.human.shape)
    for name, matrix in (matrices.metrics | matrices.sentinels).items():
        scored = ~np.isnan(matrix) & ~np.isnan(matrices.human)
        for limit in limits:
            yield _filter(matrices.group, name, limit, matrix[scored], matrices.human[scored] >= limit, folds[scored])
        if not alone:
            yield _rerank(matrices.group, name, matrix, matrices.human, scored)


def _filter(  # noqa: PLR0917 - for this module alone
    group: str | None, name: str, limit: float, scores: FloatVector, good: NDArray[np.bool_], fold: NDArray[np.intp]
) -> FilterUse:
    kept = np.zeros(len(scores), dtype=bool)
    for k in np.unique(fold):
        kept[fold == k] = scores[fold == k] >= _threshold(scores[fold != k], good[fold != k])
    hits, predicted, actual = float((kept & good).sum()), float(kept.sum()), float(good.sum())
    precision, recall = hits / predicted if predicted else math.nan, hits / actual if actual else math.nan
    f1 = 2 * hits / (predicted + actual) if predicted + actual else math.nan
    share = (float(side.mean()) if len(side) else math.nan for side in (good, kept))
    return FilterUse(group, name, limit, precision, recall, f1, *share)


def _threshold(scores: FloatVector, good: NDArray[np.bool_]) -> float:
    """Return the threshold with the best F1; of equal ones the highest. Everything is kept where nothing is known."""
    order = np.argsort(-scores, kind="stable")
    ordered, hits = scores[order], np.cumsum(good[order])
    last = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True)) if len(ordered) else np.array([], dtype=int)
    if not len(last) or not hits[-1]:
        return -math.inf
    f1 = 2 * hits[last] / (last + 1 + hits[-1])
    return float(ordered[last[int(np.argmax(f1))]])


def _rerank(
    group: str | None, name: str, matrix: FloatMatrix, human: FloatMatrix, scored: NDArray[np.bool_]
) -> RerankUse:
    columns = np.flatnonzero(scored.sum(axis=0) > 1)
    rows = []
    for j in columns.tolist():
        scores, rated = matrix[scored[:, j], j], human[scored[:, j], j]
        taken = rated[scores == scores.max()]
        rows.append(((taken == rated.max()).mean(), taken.mean(), rated.max(), rated.mean()))
    right, taken_mean, best, chance = np.mean(rows, axis=0).tolist() if rows else [math.nan] * 4
    return RerankUse(group, name, right, taken_mean, best, chance, len(rows))


@dataclass(frozen=True, slots=True)
class Average:
    """A metric over all groups and tasks; 1 is the best rank, and equal averages share one."""

    metric: str
    average: float
    rank: int
    cluster: int
    """Metrics of one cluster do not differ significantly; 1 is the top cluster."""
    values: tuple[float, ...]
    """By group, then by task."""
    sentinel: bool = False


def average_tasks(
    sets: Sequence[MatrixSet], *, draws: int, alpha: float, seed: int
) -> tuple[tuple[str, ...], tuple[Average, ...]]:
    """Return the names of groups and tasks, and the metrics with their averages, the best first."""
    names = tuple(f"{matrices.group or 'all'} {task}" for matrices in sets for task in TASKS)
    by_metric: dict[str, tuple[float, ...]] = {}
    sentinels = {name for matrices in sets for name in matrices.sentinels}
    for metric in dict.fromkeys(name for matrices in sets for name in (*matrices.metrics, *matrices.sentinels)):
        values: list[float] = []
        for matrices in sets:
            matrix = _matrix_of(matrices, metric)
            if matrix is None:
                values += [math.nan] * len(TASKS)
            else:
                values += [
                    soft_pairwise_accuracy(matrix, matrices.human, seed=seed).value,
                    acc_eq(matrix, matrices.human).value,
                ]
        by_metric[metric] = tuple(values)
    means = {name: math.fsum(values) / len(values) for name, values in by_metric.items()}
    defined = {name: mean for name, mean in means.items() if not math.isnan(mean)}
    order = list(defined)

    def p(i: int, j: int) -> float:
        return _swap_test(sets, (order[i], order[j]), draws, seed)

    ranked = clusters(order, list(defined.values()), p, alpha=alpha)
    return names, tuple(
        Average(
            *(
                name,
                defined[name],
                1 + sum(other > defined[name] for other in defined.values()),
                cluster,
                by_metric[name],
            ),
            sentinel=name in sentinels,
        )
        for name, cluster in zip(ranked.names, ranked.ranks, strict=True)
    )


def _matrix_of(matrices: MatrixSet, metric: str) -> FloatMatrix | None:
    return matrices.metrics.get(metric, matrices.sentinels.get(metric))


def _swap_test(sets: Sequence[MatrixSet], pair: tuple[str, str], draws: int, seed: int) -> float:
    """Return the p-value of "the first metric has the higher average"; NaN where a group lacks one of them."""
    observed, drawn = 0.0, np.zeros(draws)
    for number, matrices in enumerate(sets):
        first, second = (_matrix_of(matrices, name) for name in pair)
        swaps = (
            None
            if first is None or second is None
            else swap_segments(first, second, matrices.human, n=draws, seed=[seed, number])
        )
        if swaps is None:
            return math.nan
        observed, drawn = observed + float(swaps.observed.sum()), drawn + swaps.drawn.sum(axis=1)
    extreme = int((drawn >= observed - _ROUNDING).sum())
    return (extreme + 1) / (draws + 1)


def use_tables(uses: Sequence[FilterUse | RerankUse]) -> list[Table]:
    """Return filters and re-rankers as tables for people."""
    shown = (
        ("filter", _FILTER, "as filters; thresholds by F1 on other documents"),
        ("rerank", _RERANK, "as re-rankers: one of the outputs for each segment"),
    )
    records = [use.record() for use in uses]
    tables = [
        Table.of(
            (record for record in records if record["use"] == kind), names, ("group",), best=frozenset(), title=title
        )
        for kind, names, title in shown
    ]
    return [table for table in tables if table.rows]
