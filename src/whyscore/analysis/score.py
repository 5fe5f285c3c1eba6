"""Scores of segments and systems, each metric asked once for everything, and which texts a model did not read whole.

Truncated texts are named beside every score that depends on them, and `--fail-if-truncated` is a quality gate:

1. Where a metric's encoder can say how much it reads of a text, only its tokenizer is asked.
2. Any other metric whose signature has a limit (`trunc`), or that is made of such metrics, scores the segments once
   more while truncation is watched: scores that come from a store do not say it.
"""

import math
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from whyscore.analysis.common import (
    Encoding,
    MetricLike,
    Segments,
    as_metric,
    as_segments,
    language_support,
    languages_of,
    requested_name,
    with_languages,
)
from whyscore.data.codec import Kind
from whyscore.data.records import header_of, score_records
from whyscore.errors import DataError, GateNotPassed
from whyscore.models.encoders.loading import CoverageNotice
from whyscore.models.pairs import watch_cuts
from whyscore.protocols import CorpusMetric, Metric, RowMetric, SupportsLengths
from whyscore.scoring.answers import AsksModel
from whyscore.scoring.rows import parts_of
from whyscore.scoring.stack import LOCAL, Prepared, Resources, require
from whyscore.settings import Bootstrapped, Seeded, takes
from whyscore.stats.resampling import bootstrap_mean, bootstrap_total
from whyscore.types import Dataset, Estimate, FloatMatrix, FloatVector, Inputs, Scores, Segment, Signature
from whyscore.types.result import Record, Result, Table

_DECIMALS = 2


@dataclass(frozen=True, kw_only=True)
class ScoreSettings(Bootstrapped, Seeded):
    """How systems are scored."""


@dataclass(frozen=True, eq=False)
class MetricResult:
    """One metric over a data set: each system's corpus score with its interval, and the score of every entry."""

    metric: str
    totals: dict[str, Estimate]
    entries: Scores
    signature: Signature
    higher_is_better: bool
    notes: tuple[str, ...] = ()
    """What is to be known beside the scores: repeats and failures of a judge."""
    common: Mapping[str, Estimate] = field(default_factory=dict)
    """Over the segments that all systems have, where some have others besides."""
    unsupported: tuple[str, ...] = ()
    """Languages of the data that the model behind the metric was not made for: its scores decide nothing."""

    @property
    def missing(self) -> float:
        """The share of entries without a score."""
        return float(np.mean(~np.isfinite(self.entries.values))) if len(self.entries) else 0.0

    def total(self, system: str, digits: int) -> str:
        """Return the score of a system, and where systems have different segments that on the common ones."""
        interval = self.totals[system].interval(digits)
        return (
            f"{interval}; {self.common[system].value:.{digits}f} on {self.common[system].n} common"
            if self.common
            else interval
        )

    def best(self, systems: Sequence[str]) -> list[int]:
        """Return the rows of the best system, or systems; where there is one system, none is best."""
        values = [(self.common or self.totals)[system].value for system in systems]
        top = max(values) if self.higher_is_better else min(values)
        return [row for row, value in enumerate(values) if value == top and len(values) > 1]


class SystemScores(Result, list[MetricResult]):
    """The corpus score of every system under every metric, with intervals; a list with one item per metric."""

    kind: ClassVar[Kind] = "totals"
    __repr__ = Result.__repr__

    def __init__(
        self, dataset: Dataset, results: Iterable[MetricResult], *, decimals: int = _DECIMALS, notes: bool = True
    ) -> None:
        super().__init__(results)
        self.dataset, self.decimals, self.notes = dataset, decimals, notes

    def header(self) -> Record:
        return header_of(self.kind, self.dataset, {result.metric: str(result.signature) for result in self}).object()

    def records(self) -> Iterator[Record]:
        for result in self:
            for system, total in result.totals.items():
                record = {"system": system, "metric": result.metric, "score": total.value}
                record |= {"low": total.low, "high": total.high, "level": total.level, "n": total.n}
                if result.common:
                    record |= {"common_score": result.common[system].value, "common_n": result.common[system].n}
                record |= {"unsupported": list(result.unsupported)} if result.unsupported else {}
                record |= self._missing(result, system)
                yield record | {"higher_is_better": result.higher_is_better}

    def _missing(self, result: MetricResult, system: str) -> Record:
        """Return how many segments of a system have no score, by reason, and their share; empty if none."""
        places = [k for k, entry in enumerate(self.dataset.entries) if entry.system == system]
        reasons = Counter(result.entries.reasons[k] for k in places if k in result.entries.reasons)
        return {"missing": dict(reasons), "missing_share": reasons.total() / len(places)} if reasons else {}

    def tables(self, *, long: bool = False) -> list[Table]:
        if long:
            return [Table.of(self.records(), ("system", "metric", "score", "low", "high", "n"))]
        systems = self.dataset.systems
        rows = [(system, *(result.total(system, self.decimals) for result in self)) for system in systems]
        signatures = (str(result.signature) for result in self)
        notes = (f"{len(self.dataset.ids)} segments; brackets: 95 % bootstrap confidence interval", *signatures)
        return [
            Table(
                ("system", *(result.metric for result in self)),
                tuple(rows),
                {result.metric: result.higher_is_better for result in self},
                frozenset((row, result.metric) for result in self for row in result.best(systems)),
                notes if self.notes else (),
            )
        ]

    def documents(self) -> "DocumentScores":
        """Return the score of every document."""
        return DocumentScores(self.dataset, self)

    def segments(self) -> "SegmentScores":
        """Return the score of every entry."""
        return SegmentScores(self.dataset, {result.metric: result.entries for result in self})


@dataclass(frozen=True, eq=False, repr=False)
class DocumentScores(Result):
    """The score of every document under every metric: the corpus score of its segments.

    A metric with a corpus formula (BLEU, chrF, TER) has that formula over the counts of the document's segments, which
    is not the mean of their scores; any other metric has the mean, where every segment weighs the same.
    """

    dataset: Dataset
    results: Sequence[MetricResult]
    kind: ClassVar[Kind] = "documents"

    def header(self) -> Record:
        return header_of(
            self.kind, self.dataset, {result.metric: str(result.signature) for result in self.results}
        ).object()

    def records(self) -> Iterator[Record]:
        places: dict[tuple[str, str], list[int]] = {}
        for k, entry in enumerate(self.dataset.entries):
            if entry.document is None:
                raise DataError(
                    f"{self.dataset.name}: segment {entry.id!r} names no document: name the column with --columns "
                    "document=NAME"
                )
            places.setdefault((entry.document, entry.system), []).append(k)
        metrics = {result.metric: as_metric(result.metric) for result in self.results}
        for (document, system), indices in places.items():
            for result in self.results:
                values, rows = result.entries.values[indices], result.entries.rows
                counts = values[:, None] if rows is None else rows[indices]
                total = estimate(metrics[result.metric], counts, values, seed=0, draws=0)
                yield {
                    "document": document, "system": system, "metric": result.metric,
                    "score": None if math.isnan(total.value) else total.value, "n": total.n or 0,
                    "aggregation": "corpus" if isinstance(metrics[result.metric], CorpusMetric) else "mean",
                }  # fmt: skip

    def display_tables(self) -> list[Table]:
        rows: dict[tuple[object, object], dict[str, object]] = {}
        kinds: dict[str, str] = {}
        for record in self.records():
            cells_by_metric = rows.setdefault((record["document"], record["system"]), {"n": record["n"]})
            cells_by_metric[str(record["metric"])] = record["score"]
            kinds[str(record["metric"])] = str(record["aggregation"])
        descriptions = {"corpus": "corpus formula over the segments of a document", "mean": "mean over its segments"}
        note = "; ".join(f"{metric}: {descriptions[kind]}" for metric, kind in kinds.items())
        cells = tuple((*key, row["n"], *(row.get(metric) for metric in kinds)) for key, row in rows.items())
        columns = ("document", "system", "segments", *kinds)
        return [Table(columns, cells, best=frozenset(), notes=(note,))]  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False, repr=False)
class SegmentScores(Result):
    """The score of every entry under every metric."""

    dataset: Dataset
    scores: Mapping[str, Scores]
    kind: ClassVar[Kind] = "scores"

    def header(self) -> Record:
        return header_of(
            self.kind, self.dataset, {name: str(scores.signature) for name, scores in self.scores.items()}
        ).object()

    def records(self) -> Iterator[Record]:
        # Rows of a corpus metric are counts, many and not for reading; those of all others are the parts of a score.
        parts = [name for name in self.scores if not isinstance(as_metric(name), CorpusMetric)]
        data = self.dataset
        cut = {name: cut_texts(name, data.segments, data.languages) for name in self.scores}
        return score_records(data, self.scores, parts=parts, truncated=cut)

    def tables(self, *, long: bool = False) -> list[Table]:
        del long
        values = [scores.values.tolist() for scores in self.scores.values()]
        rows = [
            (entry.id, entry.system, *numbers) for entry, *numbers in zip(self.dataset.entries, *values, strict=True)
        ]
        return [Table(("id", "system", *self.scores), tuple(rows))]


def score(segments: Segments, metric: MetricLike, *, resources: Resources = LOCAL) -> Scores:
    """Return a metric's score for every segment.

    >>> score([Segment("I have a cat", references=("I have a dog",))], "token_f1").values
    array([0.75])
    """
    texts = as_segments(segments)
    scorer = with_languages(as_metric(metric), languages_of(segments))
    require(scorer, texts)
    prepared = resources.prepare(scorer)
    return _scores(prepared, prepared.rows(texts), texts, facts_of_data(scorer, texts))


@takes(ScoreSettings)
def score_systems(
    dataset: Dataset, metrics: Sequence[MetricLike], *, settings: ScoreSettings, resources: Resources = LOCAL
) -> SystemScores:
    """Return every system under every metric: one score call per metric for all systems."""
    systems = np.array([entry.system for entry in dataset.entries])
    parts = {system: np.flatnonzero(systems == system).tolist() for system in dataset.systems}
    shared = _common(dataset, parts)
    results = []
    scorers = [with_languages(as_metric(metric), dataset.languages) for metric in metrics]
    for metric in scorers:
        require(metric, dataset.segments)  # before any model is loaded
    names = [requested_name(metric) for metric in metrics]
    unsupported, _ = language_support(dataset, dict(zip(names, scorers, strict=True)))
    whole = slice(None)  # a view where a list of all places would copy a large table
    where = {system: whole if len(part) == len(dataset) else part for system, part in parts.items()}
    for name, prepared in zip(names, map(resources.prepare, scorers), strict=True):
        rows, metric = prepared.rows(dataset.segments), prepared.metric
        facts = facts_of_data(metric, dataset.segments)
        scores = _scores(prepared, rows, dataset.segments, facts)
        totals = {
            system: estimate(metric, rows[indices], scores.values[indices], seed=settings.seed, draws=settings.draws)
            for system, indices in where.items()
        }
        common = {
            system: estimate(metric, rows[indices], scores.values[indices], seed=settings.seed, draws=0)
            for system, indices in shared.items()
        }
        signature = metric.signature().with_facts(**facts)
        notes = tuple(judge_remarks(prepared, dataset.segments, [entry.system for entry in dataset.entries]))
        remarks = notes, common, unsupported.get(name, ())
        results.append(MetricResult(name, totals, scores, signature, metric.higher_is_better, *remarks))
    return SystemScores(dataset, results)


def judge_remarks(prepared: Prepared, segments: Sequence[Segment], systems: Sequence[str] = ()) -> Iterator[str]:
    """Yield what is to be known of the language models behind a metric: what failed, repeats, position bias."""
    for part in parts_of(prepared.metric):
        if isinstance(part, AsksModel):
            yield from part.remarks(segments, systems)


def _common(dataset: Dataset, parts: Mapping[str, list[int]]) -> dict[str, list[int]]:
    """Return the entries of the segments that all systems have, by system; none where they have the same ones."""
    ids = [{dataset.entries[k].id for k in indices} for indices in parts.values()]
    if all(names == ids[0] for names in ids):
        return {}
    shared = set.intersection(*ids)
    common = {system: [k for k in indices if dataset.entries[k].id in shared] for system, indices in parts.items()}
    return common if shared else {}


def estimate(metric: Metric, rows: FloatMatrix, values: FloatVector, *, seed: int, draws: int) -> Estimate:
    """Return the corpus score: the metric's own formula over summed rows, or else the mean of the segments.

    Segments without a score are left out; `n` counts the others.
    """
    there = np.isfinite(values)
    if not there.all():
        rows, values = rows[there], values[there]
    if not len(values):
        return Estimate(math.nan, reason="empty")
    if draws == 0:
        # Sorted: segments in any order give the same digits.
        total = metric.total(rows.sum(axis=0)) if isinstance(metric, CorpusMetric) else np.sort(values).mean()
        return Estimate(float(total), n=len(values))
    if isinstance(metric, CorpusMetric):
        return bootstrap_total(rows, metric.total, seed=seed, draws=draws)
    return bootstrap_mean(values, seed=seed, draws=draws)


def nrefs(segments: Sequence[Segment]) -> str:
    """Return how many references there are, as sacreBLEU writes it: a number, or `var`."""
    counts = {len(segment.references) for segment in segments}
    return str(counts.pop()) if len(counts) == 1 else "var"


def _scores(prepared: Prepared, rows: FloatMatrix, segments: Sequence[Segment], facts: Mapping[str, str]) -> Scores:
    metric = prepared.metric
    complete = bool(np.isfinite(rows).all())
    reasons = {} if complete else {k: why.reason for k, why in prepared.missing(segments).items()}
    signature = metric.segment_signature() if isinstance(metric, CorpusMetric) else metric.signature()
    has_rows = isinstance(metric, RowMetric)
    return Scores(
        values=metric.scores(rows) if isinstance(metric, RowMetric) else rows[:, 0],
        signature=signature.with_facts(**facts),
        higher_is_better=metric.higher_is_better,
        rows=rows if has_rows else None,
        columns=metric.columns if isinstance(metric, RowMetric) else (),
        reasons=reasons,
    )


def facts_of_data(metric: Metric, segments: Sequence[Segment]) -> dict[str, str]:
    """Return the facts of a metric's signature that only the data know: references, and segments of context."""
    facts = {"nrefs": nrefs(segments)} if "nrefs" in dict(metric.signature().facts) else {}
    context = max((len(segment.context) for segment in segments), default=0) if Inputs.CONTEXT in metric.inputs else 0
    return facts | ({"context": str(context)} if context else {})


Cut = Mapping[str, list[int]]
"""By the name of the text: how many of its pieces were read, and how many it has."""


def cut_texts(
    metric: MetricLike, segments: Sequence[Segment], languages: tuple[str, str] | None = None
) -> dict[int, Cut]:
    """Return the texts of each segment that were cut, by the segment's number; only a tokenizer is asked.

    Metrics without an encoder of single texts, and encoders without a limit, cut nothing that is known here.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CoverageNotice)  # told when the scores were made
        scorer = with_languages(as_metric(metric), languages)
    encoder = scorer.encoder() if isinstance(scorer, Encoding) else None
    if not isinstance(encoder, SupportsLengths):
        return {}
    texts = [(k, place, segment.text(place)) for k, segment in enumerate(segments)
             for place in segment.places(scorer.inputs)]  # fmt: skip
    distinct = list(dict.fromkeys(text for *_, text in texts))
    lengths = dict(zip(distinct, encoder.lengths(distinct), strict=True))
    cuts: dict[int, dict[str, list[int]]] = {}
    for k, place, text in texts:
        read, total = lengths[text]
        if read < total:
            cuts.setdefault(k, {})[str(place)] = [read, total]
    return cuts


def truncation_messages(metrics: Mapping[str, MetricLike], data: Dataset) -> list[str]:
    """Return a sentence for every metric, by its name, that does not read all texts whole.

    A loaded model does not read again what it remembers: ask before scoring.
    """
    return [message for name, metric in metrics.items() for message in _cuts(name, metric, data)]


def fail_if_truncated(messages: Sequence[str]) -> None:
    """Raise where any text was cut."""
    if messages:
        raise GateNotPassed(f"quality gate not passed: {'; '.join(messages)}")


def _cuts(name: str, metric: MetricLike, data: Dataset) -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CoverageNotice)  # told when the scores are made
        scorer = with_languages(as_metric(metric), data.languages)
    if isinstance(scorer, Encoding) and isinstance(scorer.encoder(), SupportsLengths):
        yield from _describe_cuts(name, scorer, data)
    elif any("trunc" in dict(part.signature().facts) for part in parts_of(scorer)):
        yield from (f"{name}: {message}" for message in _watch_cuts(scorer, data))


def _describe_cuts(name: str, metric: Metric, data: Dataset) -> Iterator[str]:
    cuts = cut_texts(metric, data.segments, data.languages)
    if not cuts:
        return
    entry, texts = data.entries[min(cuts)], cuts[min(cuts)]
    place, (read, total) = next(iter(texts.items()))
    first = f"first: the {place} of {entry.system} {entry.id}, {read} of {total} subwords read"
    yield f"{name} truncates texts in {len(cuts)} of {len(data)} segments ({first})"


def _watch_cuts(metric: Metric, data: Dataset) -> list[str]:
    distinct = list(dict.fromkeys(segment.only(metric.inputs) for segment in data.segments))
    with watch_cuts() as seen:
        metric.score(distinct)
    return list(dict.fromkeys(seen))
