"""The standard stack around a metric: each distinct segment once, from the store where it is known, in batches else.

    Prepared -> Deduplicated -> Cached -> Batched -> executor -> metric

Each layer is a few lines and knows nothing of the others; the whole is a metric again.

Batches hold neighbours: probes of one text share most of what a model computes, and models sort by length themselves.
The batch with the longest text comes first, so that what is too large fails early. A `Progress` is notified of how far
the work has come.

How fast a metric is, for an estimate before the work:

1. One text is scored and not counted: a model may have to be loaded.
2. Texts from all over the data are scored, a few at a time, until a moment has passed or none is left.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, Protocol, cast

import numpy as np

from whyscore.errors import MissingInput
from whyscore.protocols import (
    CorpusMetric,
    Executor,
    Metric,
    Part,
    RowMetric,
    SizedExecutor,
    SupportsNeeds,
    SupportsTotals,
)
from whyscore.scoring.answers import Answers, AsksModel, Missing
from whyscore.scoring.executors import Serial
from whyscore.scoring.rows import (
    Answer,
    Incomplete,
    RowSource,
    ask,
    asks_model,
    missing,
    name,
    read_scores,
    width,
    with_answers,
)
from whyscore.scoring.store import Store, digest
from whyscore.types import FloatMatrix, FloatVector, Inputs, Segment, Signature

SIZE = 512
"""Segments a batch holds at the most: what an interruption can lose."""

CHARACTERS = 400_000
"""Characters a batch holds at the most, counting every text as long as the longest."""


def length(segment: Segment) -> int:
    """Return how many characters a segment has, all texts together."""
    size = len(segment.hypothesis) + len(segment.source or "") + sum(map(len, segment.references))
    return size + sum(map(length, segment.context))


def batches(segments: Sequence[Segment], size: int = SIZE, characters: int = CHARACTERS) -> Iterator[list[int]]:
    """Yield the indices of each batch, that with the longest segment first; together they are every index once.

    >>> list(batches([Segment("a"), Segment("aa"), Segment("aaa")], size=2))
    [[2], [0, 1]]
    """
    found: list[tuple[int, list[int]]] = []
    longest, batch = 1, list[int]()
    for number, segment in enumerate(segments):
        most = max(longest, length(segment))
        if batch and (len(batch) == size or (len(batch) + 1) * most > characters):
            found.append((longest, batch))
            most, batch = max(1, length(segment)), []
        longest = most
        batch.append(number)
    if batch:
        found.append((longest, batch))
    for _, batch in sorted(found, key=lambda pair: -pair[0]):
        yield batch


class Progress(Protocol):
    """Is notified of the stages of the work, and of segments that are requested and scored."""

    def begin(self, stage: str, total: int | None = None) -> None:
        """Note that a stage begins; with a total it counts by `advance`, otherwise by segments that are scored."""

    def advance(self, count: int) -> None:
        """Note that so much of the stage's total is done."""

    def asked(self, count: int) -> None:
        """Note that so many more segments will be scored."""

    def answered(self, count: int, *, stored: bool) -> None:
        """Note that so many are done; `stored` ones came from the store."""


@dataclass
class Stages:
    """Keeps how far the current stage has come; a subclass shows it, or stops the work, when `changed` is called."""

    stage: str = "score"
    total: int = 0
    done: int = 0
    stored: int = 0
    counts_segments: bool = True
    """Whether the stage counts segments that are scored."""

    def begin(self, stage: str, total: int | None = None) -> None:
        self.end(stage)
        self.stage, self.total, self.done, self.stored = stage, total or 0, 0, 0
        self.counts_segments = total is None
        self.changed()

    def advance(self, count: int) -> None:
        self.done += count
        self.changed()

    def asked(self, count: int) -> None:
        if self.counts_segments:
            self.total += count
        self.changed()

    def answered(self, count: int, *, stored: bool) -> None:
        if self.counts_segments:
            self.done += count
            self.stored += count if stored else 0
        self.changed()

    def end(self, following: str) -> None:
        """Hear that a stage ends, and which one follows: nobody looks."""

    def changed(self) -> None:
        """Do nothing: no progress is shown."""


@dataclass(frozen=True)
class Batched:
    """Asks the metric in batches through an executor."""

    metric: Metric
    executor: Executor = field(default_factory=Serial)
    size: int | None = SIZE

    def stream(self, segments: Sequence[Segment]) -> Iterator[Part]:
        """Yield rows as they are ready."""
        if self.size is None:
            return self.executor.run(self.metric, segments, [range(len(segments))] if segments else [])
        return self.executor.run(self.metric, segments, list(batches(segments, self.size)))


@dataclass(frozen=True)
class Cached:
    """Asks only for what the store does not hold, and stores each batch as soon as it is there."""

    inner: Batched
    store: Store | None = None
    progress: Progress = field(default_factory=Stages)

    def rows(self, segments: Sequence[Segment]) -> Answer:
        metric = self.inner.metric
        rows = np.full((len(segments), width(metric)), np.nan)
        self.progress.asked(len(segments))
        table = _table(metric) if self.store is not None else None
        keys = [] if table is None else [digest(segment) for segment in segments]
        missing = self._fill(rows, table, keys)
        failures: dict[int, str] = {}
        for part in self.inner.stream([segments[i] for i in missing]):
            places = [missing[i] for i in part.indices]
            rows[places] = part.rows
            failures |= {places[i]: reason for i, reason in part.failures.items()}
            self._keep(table, keys, places, rows)
            self.progress.answered(len(places), stored=False)
        return Answer(rows, dict(sorted(failures.items())))

    def _fill(self, rows: FloatMatrix, table: str | None, keys: Sequence[bytes]) -> list[int]:
        """Put the stored rows in place and return the indices of the others."""
        if self.store is None or table is None:
            return list(range(len(rows)))
        stored = self.store.get(table, keys, rows.shape[1])
        missing = []
        for i, key in enumerate(keys):
            row = stored.get(key)
            if row is None:
                missing.append(i)
            else:
                rows[i] = row
        if len(missing) < len(rows):
            self.progress.answered(len(rows) - len(missing), stored=True)
        return missing

    def _keep(self, table: str | None, keys: Sequence[bytes], places: Sequence[int], rows: FloatMatrix) -> None:
        if self.store is None or table is None:
            return
        good = [i for i in places if np.isfinite(rows[i]).all()]
        if good:
            self.store.put(table, [keys[i] for i in good], rows[good])


def _table(metric: Metric) -> str | None:
    """Return the text that names a metric's table in the store, or None where the scores must not be stored."""
    signature = metric.signature()
    return str(signature) if signature.stable else None


@dataclass(frozen=True)
class Deduplicated:
    """Asks for each distinct segment once, reduced to what the metric reads."""

    inner: RowSource
    inputs: Inputs

    def rows(self, segments: Sequence[Segment]) -> Answer:
        first: dict[Segment, int] = {}
        where = [first.setdefault(segment.only(self.inputs), len(first)) for segment in segments]
        rows, failures = self.inner.rows(list(first))
        if len(first) == len(segments):  # each stands where it stood: no second copy of a large table
            return Answer(rows, failures)
        return Answer(rows[where], {i: failures[k] for i, k in enumerate(where) if k in failures})


class Attempt(NamedTuple):
    """Scores, NaN where a segment could not be scored, and the reason for each of those by index."""

    scores: FloatVector
    failures: dict[int, str]


@dataclass(frozen=True)
class Prepared:
    """A metric that never scores the same segment twice. It is itself a metric."""

    metric: Metric
    source: RowSource

    @cached_property
    def inputs(self) -> Inputs:
        return self.metric.inputs

    @cached_property
    def needs(self) -> Inputs:
        return needs(self.metric)

    @cached_property
    def higher_is_better(self) -> bool:
        return self.metric.higher_is_better

    def signature(self) -> Signature:
        return self.metric.signature()

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        return read_scores(self.metric, self.rows(segments))

    def attempt(self, segments: Sequence[Segment]) -> Attempt:
        """Return the scores of all segments that can be scored, NaN for the others, and why they cannot."""
        require(self.metric, segments, blank=True)
        rows, failures = self.source.rows(segments)
        scores = read_scores(self.metric, np.where(np.isfinite(rows), rows, 0.0) if failures else rows)
        scores[list(failures)] = np.nan
        return Attempt(scores, {i: f"{name(self.metric)} {reason}" for i, reason in failures.items()})

    def missing(self, segments: Sequence[Segment]) -> dict[int, Missing]:
        """Return why segments have no score, by their numbers; only metrics that ask language models have such."""
        return missing(self.metric, segments)

    def rows(self, segments: Sequence[Segment]) -> FloatMatrix:
        """Return one row per segment; where the metric has no rows, its score.

        A segment that cannot be scored is an error, unless a language model failed.
        """
        require(self.metric, segments, blank=True)
        rows, failures = self.source.rows(segments)
        if failures and (len(failures) == len(rows) or not asks_model(self.metric)):
            raise Incomplete(name(self.metric), failures)
        return rows


@dataclass(frozen=True)
class PreparedRows(Prepared):
    """The same for a metric with rows."""

    metric: RowMetric

    @property
    def columns(self) -> tuple[str, ...]:
        return self.metric.columns

    def statistics(self, segments: Sequence[Segment]) -> FloatMatrix:
        return self.rows(segments)

    def scores(self, rows: FloatMatrix) -> FloatVector:
        return self.metric.scores(rows)


@dataclass(frozen=True)
class PreparedCorpus(PreparedRows):
    """The same for a corpus metric."""

    metric: CorpusMetric

    def total(self, row: FloatVector) -> float:
        return self.metric.total(row)

    def totals(self, rows: FloatMatrix) -> FloatVector:
        if isinstance(self.metric, SupportsTotals):
            return self.metric.totals(rows)
        return np.array([self.metric.total(row) for row in rows], dtype=np.float64)

    def segment_signature(self) -> Signature:
        return self.metric.segment_signature()


def prepare(
    metric: Metric,
    *,
    store: Store | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    size: int | None = None,
    answers: Answers | None = None,
) -> Prepared:
    """Return the metric behind deduplication, store and batches.

    Without a store, other processes or someone to show progress to there is nothing to gain from batches: the metric
    gets everything in one call and packs it as its model likes it. So does a metric that asks a language model: it
    makes many calls at a time, and keeps the answers in the store instead of rows.
    """
    if isinstance(metric, Prepared):
        return metric
    if asks_model(metric):
        if answers is not None or store is not None or progress is not None:
            metric = cast("Metric", with_answers(metric, answers or Answers(store, progress=progress)))
        store = executor = progress = size = None
    alone = store is None and executor in (None, Serial()) and progress is None
    usual = executor.batch if isinstance(executor, SizedExecutor) else SIZE
    batch = size if size is not None or alone else usual
    cached = Cached(Batched(metric, executor or Serial(), batch), store, progress or Stages())
    source = Deduplicated(cached, metric.inputs)
    if isinstance(metric, CorpusMetric):
        return PreparedCorpus(metric, source)
    return PreparedRows(metric, source) if isinstance(metric, RowMetric) else Prepared(metric, source)


def needs(metric: Metric) -> Inputs:
    """Return what must be there: all that the metric reads, unless it says that it can do with less."""
    return metric.needs if isinstance(metric, SupportsNeeds) else metric.inputs


def describe_needs(metric: Metric) -> str:
    """Return what a metric needs besides the hypothesis, in words."""
    wanted = {Inputs.SOURCE: "a source", Inputs.REFERENCES: "a reference"}
    return " and ".join(text for flag, text in wanted.items() if flag in needs(metric))


def require(metric: Metric, segments: Sequence[Segment], *, blank: bool = False) -> None:
    """Refuse segments that lack a text the metric reads, before anything is scored.

    Data whose references are all empty lack a reference. A probe with all words of the reference hidden does not:
    `blank` lets it through.
    """
    inputs = needs(metric)
    wants_source, wants_reference = Inputs.SOURCE in inputs, Inputs.REFERENCES in inputs
    if not (wants_source or wants_reference):
        return
    for i, segment in enumerate(segments):
        lacks = "source" if wants_source and segment.source is None else None
        if wants_reference and not (segment.references if blank else any(segment.references)):
            lacks = lacks or "reference"
        if lacks:
            raise MissingInput(
                f"{name(metric)} needs {describe_needs(metric)}: segment {i} has no {lacks}. Give {_CURES[lacks]}"
            )


_CURES = {"source": "a source with -s", "reference": "references with -r"}


class Cost(NamedTuple):
    """What a score call would take."""

    asked: int
    distinct: int
    stored: int

    @property
    def left(self) -> int:
        """The texts that are yet to be scored."""
        return self.distinct - self.stored

    def __str__(self) -> str:
        return f"{self.asked} texts, {self.distinct} distinct, {self.stored} already stored"


def cost(metric: Metric, segments: Sequence[Segment], store: Store | None = None) -> Cost:
    """Return how many segments would be asked for, how many are distinct, and how many the store holds."""
    distinct = list(dict.fromkeys(segment.only(metric.inputs) for segment in segments))
    if isinstance(metric, AsksModel):
        return Cost(len(segments), len(distinct), metric.with_answers(Answers(store)).calls(distinct).whole)
    table = _table(metric)
    if store is None or table is None or not store.path.exists():
        return Cost(len(segments), len(distinct), 0)
    stored = store.get(table, [digest(segment) for segment in distinct], width(metric))
    return Cost(len(segments), len(distinct), len(stored))


_AT_A_TIME = 32
_MOMENT = 0.3  # seconds


def rate(metric: Metric, segments: Sequence[Segment]) -> float:
    """Return how many texts a second the metric scores in this process; nothing is kept of what it scores."""
    ask(metric, segments[:1])
    stride = max(1, len(segments) // 1000)
    some = segments[::stride]
    start = time.perf_counter()
    done = 0
    for first in range(0, len(some), _AT_A_TIME):
        ask(metric, some[first : first + _AT_A_TIME])
        done = min(first + _AT_A_TIME, len(some))
        if time.perf_counter() - start > _MOMENT:
            break
    return done / max(time.perf_counter() - start, 1e-9)


@dataclass(frozen=True)
class Resources:
    """How the work is done: none of it changes a number."""

    store: Store | None = None
    executor: Executor | None = None
    progress: Progress | None = None
    size: int | None = None
    answers: Answers | None = None
    """Where the answers of language models are kept, and what they may cost; in the store where it is None."""

    def keeping_answers(self, metric: Metric) -> "Resources":
        """Return resources that keep the answers of a language model behind the metric between score calls."""
        apart = self.answers is None and (self.store is not None or self.progress is not None)
        return (
            replace(self, answers=Answers(self.store, progress=self.progress)) if apart and asks_model(metric) else self
        )

    def prepare(self, metric: Metric) -> Prepared:
        """Return the metric behind deduplication, this store and this executor."""
        return prepare(
            metric,
            store=self.store,
            executor=self.executor,
            progress=self.progress,
            size=self.size,
            answers=self.answers,
        )


LOCAL = Resources()
"""In this process, nothing stored, nothing shown."""
