"""Scores of segments and systems, each metric asked once for everything.

Which texts a metric could not read whole: told beside every score that they are behind.

A quality gate on texts that a model did not read whole.

1. Where a metric's encoder can say how much it reads of a text, only its tokenizer is asked.
2. Any other metric whose signature has a limit (`trunc`), or that is made of such metrics, scores the segments once
   more, and what it cuts is watched: scores that come from a store do not say it.
"""

import dataclasses
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from whyscore.analysis.common import (
    Encoding,
    MetricLike,
    Segments,
    as_metric,
    as_segments,
    asked_name,
    languages_of,
    spoken,
)
from whyscore.errors import GateNotPassed
from whyscore.models.encoders.loading import CoverageNotice
from whyscore.models.pairs import watched_cuts
from whyscore.options import check_seed
from whyscore.protocols import CorpusMetric, Metric, RowMetric
from whyscore.scoring.stack import LOCAL, Prepared, Resources, require
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


Cut = Mapping[str, list[int]]
"""By the name of the text: how many of its pieces were read, and how many it has."""


@runtime_checkable
class Measured(Protocol):
    """An encoder that says how much of a text it reads."""

    def lengths(self, texts: Sequence[str]) -> list[tuple[int, int]]:
        """Return how many pieces of each text are read, and how many it has."""


def cut_texts(
    metric: MetricLike, segments: Sequence[Segment], languages: tuple[str, str] | None = None
) -> dict[int, Cut]:
    """Return the texts of each segment that were cut, by the segment's number; only a tokenizer is asked.

    Metrics without an encoder of single texts, and encoders without a limit, cut nothing that is known here.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CoverageNotice)  # told when the scores were made
        own = spoken(as_metric(metric), languages)
    encoder = own.encoder() if isinstance(own, Encoding) else None
    if not isinstance(encoder, Measured):
        return {}
    asked = [(k, place, segment.text(place)) for k, segment in enumerate(segments)
             for place in segment.places(own.inputs)]  # fmt: skip
    distinct = list(dict.fromkeys(text for *_, text in asked))
    known = dict(zip(distinct, encoder.lengths(distinct), strict=True))
    found: dict[int, dict[str, list[int]]] = {}
    for k, place, text in asked:
        kept, total = known[text]
        if kept < total:
            found.setdefault(k, {})[str(place)] = [kept, total]
    return found


def cuts_told(metrics: Mapping[str, MetricLike], data: Dataset) -> list[str]:
    """Return a sentence for every metric, by its name, that does not read all texts whole.

    A loaded model does not read again what it remembers: ask before scoring.
    """
    return [told for name, metric in metrics.items() for told in _cuts(name, metric, data)]


def check_whole(told: Sequence[str]) -> None:
    """Raise where any text was cut."""
    if told:
        raise GateNotPassed(f"the quality gate is not passed: {'; '.join(told)}")


def _cuts(name: str, metric: MetricLike, data: Dataset) -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CoverageNotice)  # told when the scores are made
        own = spoken(as_metric(metric), data.languages)
    if isinstance(own, Encoding) and isinstance(own.encoder(), Measured):
        yield from _measured(name, own, data)
    elif any("trunc" in dict(part.signature().facts) for part in _parts(own)):
        yield from (f"{name}: {told}" for told in _watched(own, data))


def _measured(name: str, metric: Metric, data: Dataset) -> Iterator[str]:
    found = cut_texts(metric, data.segments, data.languages)
    if not found:
        return
    entry, texts = data.entries[min(found)], found[min(found)]
    place, (kept, total) = next(iter(texts.items()))
    first = f"the first is the {place} of {entry.system} {entry.id}, {kept} of {total} pieces"
    yield f"{name} cuts texts of {len(found)} of {len(data)} segments ({first})"


def _watched(metric: Metric, data: Dataset) -> list[str]:
    distinct = list(dict.fromkeys(segment.only(metric.inputs) for segment in data.segments))
    with watched_cuts() as seen:
        metric.score(distinct)
    return list(dict.fromkeys(seen))


def _parts(thing: object) -> Iterator[Metric]:
    """Yield a metric and all that it is made of."""
    if isinstance(thing, Metric):
        yield thing
    if isinstance(thing, tuple):
        for item in thing:
            yield from _parts(item)
    elif dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        for field in dataclasses.fields(thing):
            yield from _parts(getattr(thing, field.name))
