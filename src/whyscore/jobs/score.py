"""Scores of segments and systems, each metric asked once for everything."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from whyscore.jobs.common import LOCAL, MetricLike, Resources, Segments, as_metric, as_segments, asked_name
from whyscore.jobs.languages import languages_of, spoken
from whyscore.options import check_seed
from whyscore.protocols import CorpusMetric, Metric, RowMetric
from whyscore.scoring.stack import Prepared, require
from whyscore.stats.resampling import bootstrap_mean, bootstrap_total
from whyscore.types import Dataset, Estimate, FloatMatrix, FloatVector, Scores, Segment, Signature


@dataclass(frozen=True, eq=False)
class MetricResult:
    """One metric over a data set: each system's corpus score with its interval, and the score of every entry."""

    metric: str
    totals: dict[str, Estimate]
    entries: Scores
    signature: Signature
    higher_is_better: bool


def score(segments: Segments, metric: MetricLike, *, resources: Resources = LOCAL) -> Scores:
    """Return a metric's score for every segment.

    >>> score([Segment("I have a cat", references=("I have a dog",))], "token_f1").values
    array([0.75])
    """
    asked = as_segments(segments)
    prepared = resources.prepare(spoken(as_metric(metric), languages_of(segments)))
    return _scores(prepared, _rows(prepared, asked), nrefs(asked))


def score_systems(
    dataset: Dataset,
    metrics: Sequence[MetricLike],
    *,
    seed: int = 0,
    draws: int = 1000,
    resources: Resources = LOCAL,
) -> list[MetricResult]:
    """Return every system under every metric: one score call per metric for all systems.

    `draws` is the number of bootstrap samples behind the intervals; 0 leaves them out.
    """
    check_seed(seed)
    parts = {system: _indices(dataset, system) for system in dataset.systems}
    count = nrefs(dataset.segments)
    results = []
    told = [spoken(as_metric(metric), dataset.languages) for metric in metrics]
    for name, prepared in zip(map(asked_name, metrics), map(resources.prepare, told), strict=True):
        rows = _rows(prepared, dataset.segments)
        scores = _scores(prepared, rows, count)
        totals = {
            system: estimate(prepared, rows[indices], scores.values[indices], seed=seed, draws=draws)
            for system, indices in parts.items()
        }
        signature = prepared.signature().having(**_data_facts(prepared, count))
        results.append(MetricResult(name, totals, scores, signature, prepared.higher_is_better))
    return results


def estimate(metric: Metric, rows: FloatMatrix, values: FloatVector, *, seed: int, draws: int) -> Estimate:
    """Return the corpus score: the metric's own formula over summed rows, or else the mean of the segments."""
    if draws == 0:
        total = metric.total(rows.sum(axis=0)) if isinstance(metric, CorpusMetric) else float(values.mean())
        return Estimate(float(total), n=len(values))
    if isinstance(metric, CorpusMetric):
        return bootstrap_total(rows, metric.total, seed=seed, draws=draws)
    return bootstrap_mean(values, seed=seed, draws=draws)


def nrefs(segments: Sequence[Segment]) -> str:
    """Return how many references there are, as sacreBLEU writes it: a number, or `var`."""
    counts = {len(segment.references) for segment in segments}
    return str(counts.pop()) if len(counts) == 1 else "var"


def _rows(prepared: Prepared, segments: Sequence[Segment]) -> FloatMatrix:
    require(prepared.metric, segments)
    return prepared.statistics(segments) if isinstance(prepared, RowMetric) else prepared.score(segments)[:, None]


def _scores(prepared: Prepared, rows: FloatMatrix, count: str) -> Scores:
    signature = prepared.segment_signature() if isinstance(prepared, CorpusMetric) else prepared.signature()
    has_rows = isinstance(prepared, RowMetric)
    return Scores(
        values=prepared.scores(rows) if isinstance(prepared, RowMetric) else rows[:, 0],
        signature=signature.having(**_data_facts(prepared, count)),
        higher_is_better=prepared.higher_is_better,
        rows=rows if has_rows else None,
        columns=prepared.columns if isinstance(prepared, RowMetric) else (),
    )


def _data_facts(prepared: Prepared, count: str) -> dict[str, str]:
    """Return the facts of a signature that only the data know."""
    return {"nrefs": count} if "nrefs" in dict(prepared.signature().facts) else {}


def _indices(dataset: Dataset, system: str) -> list[int]:
    return np.flatnonzero([entry.system == system for entry in dataset.entries]).tolist()
