"""A metric's answer as rows: its counts where it has them, else its score alone.

Deduplication, the store and the executors work on rows, so that one run gives corpus scores, segment scores and
resampling from the same stored numbers. The direction of a metric matters here alone: `orient` turns one so that
larger is better.

A metric that fails on some texts does not take the others with it: a failing batch is halved until the texts that
cause it stand alone, and the rest is kept: an `Answer` holds the rows and the reasons of the missing ones. A metric
that asks a language model, or is made of one that does, may have no score for some segments: it says why itself.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from whyscore.errors import ContractError, MissingExtra, TextFailure, WhyscoreError
from whyscore.protocols import Metric, RowMetric
from whyscore.registry import spec_of
from whyscore.scoring.answers import Answers, AsksModel, Missing
from whyscore.types import FloatMatrix, FloatVector, Inputs, Segment, Signature

_SHOWN = 80


class RowSource(Protocol):
    """Anything that turns segments into rows: a metric's own work, or a wrapper around it."""

    def rows(self, segments: Sequence[Segment]) -> "Answer":
        """Return one row per segment, and why some are missing."""


class Incomplete(ContractError):
    """Some segments could not be scored."""

    def __init__(self, who: str, failures: Mapping[int, str]) -> None:
        first = next(iter(failures.values()))
        more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
        super().__init__(f"{who} {first}{more}")


class Answer(NamedTuple):
    """Rows, NaN where the metric failed, and the reason for each failure by index."""

    rows: FloatMatrix
    failures: dict[int, str]


def width(metric: Metric) -> int:
    """Return how many numbers a row of this metric has."""
    return len(metric.columns) if isinstance(metric, RowMetric) else 1


def name(metric: Metric) -> str:
    """Return what messages call a metric: the spec of its signature, or its own where the model is not here."""
    try:
        return metric.signature().spec
    except MissingExtra:
        return spec_of(metric)


def ask(metric: Metric, segments: Sequence[Segment]) -> Answer:
    """Return the metric's rows for a batch; a batch that fails is halved to find the texts that make it fail."""
    if not segments:
        return Answer(np.empty((0, width(metric))), {})
    try:
        rows = _compute_rows(metric, segments)
    except TextFailure as error:
        return _ask_halves(metric, segments, error.reason)
    except WhyscoreError:
        raise
    except Exception as error:  # noqa: BLE001 - any error of a user's metric is reported with the text it failed on
        return _ask_halves(metric, segments, f"failed on {_quote(segments[0])}: {type(error).__name__}: {error}")
    why = missing(metric, segments) if not np.isfinite(rows).all() else {}
    return Answer(rows, _find_undefined(rows, segments) | {i: str(reason) for i, reason in why.items()})


def parts_of(thing: object) -> Iterator[Metric]:
    """Yield a metric and all that it is made of."""
    if isinstance(thing, Metric):
        yield thing
    if isinstance(thing, tuple):
        for item in thing:
            yield from parts_of(item)
    elif dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        for field in dataclasses.fields(thing):
            yield from parts_of(getattr(thing, field.name))


def asks_model(metric: object) -> bool:
    """Return whether a metric, or one that it is made of, asks a language model."""
    return any(isinstance(part, AsksModel) for part in parts_of(metric))


def missing(metric: Metric, segments: Sequence[Segment]) -> dict[int, Missing]:
    """Return why segments have no score, by their numbers, where a language model is behind it."""
    reasons: dict[int, Missing] = {}
    for part in parts_of(metric):
        if isinstance(part, AsksModel):
            reasons |= {i: why for i, why in enumerate(part.missing(segments)) if why is not None}
    return reasons


def with_answers(thing: object, answers: Answers) -> object:
    """Return a metric, or what it is made of, with a place to keep the answers of language models."""
    if isinstance(thing, AsksModel):
        return thing.with_answers(answers)
    if isinstance(thing, tuple):
        return tuple(with_answers(item, answers) for item in thing)
    if not isinstance(thing, Metric) or not dataclasses.is_dataclass(thing):
        return thing
    values = {field.name: getattr(thing, field.name) for field in dataclasses.fields(thing) if field.init}
    changed = {name: part for name, value in values.items() if (part := with_answers(value, answers)) is not value}
    return dataclasses.replace(thing, **changed) if any(map(asks_model, changed.values())) else thing


def read_scores(metric: Metric, rows: FloatMatrix) -> FloatVector:
    """Return the segment scores that rows stand for."""
    return metric.scores(rows) if isinstance(metric, RowMetric) else rows[:, 0].copy()


def _ask_halves(metric: Metric, segments: Sequence[Segment], reason: str) -> Answer:
    """Return the answers of both halves of a batch that failed; one segment alone is the culprit."""
    if len(segments) == 1:
        return Answer(np.full((1, width(metric)), np.nan), {0: reason})
    half = len(segments) // 2
    return _join(ask(metric, segments[:half]), ask(metric, segments[half:]))


def _compute_rows(metric: Metric, segments: Sequence[Segment]) -> FloatMatrix:
    """Return the rows in the promised shape; NaN is judged later, row by row."""
    values = metric.statistics(segments) if isinstance(metric, RowMetric) else metric.score(segments)
    expected = (len(segments), width(metric)) if isinstance(metric, RowMetric) else (len(segments),)
    rows = np.asarray(values, dtype=np.float64)
    if rows.shape != expected:
        batch = f"{len(segments)} segment(s)"
        raise ContractError(f"{name(metric)} was asked about {batch} and gave shape {rows.shape}, expected {expected}")
    return rows.reshape(len(segments), width(metric))


def _find_undefined(rows: FloatMatrix, segments: Sequence[Segment]) -> dict[int, str]:
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1)).tolist()
    return {i: f"gave {_first_bad(rows[i])} for {_quote(segments[i])}; scores must be finite" for i in bad}


def _first_bad(row: FloatVector) -> float:
    return float(row[~np.isfinite(row)][0])


def _quote(segment: Segment) -> str:
    text = segment.hypothesis
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def _join(left: Answer, right: Answer) -> Answer:
    shift = len(left.rows)
    failures = left.failures | {shift + i: reason for i, reason in right.failures.items()}
    return Answer(np.vstack([left.rows, right.rows]), failures)


@dataclass(frozen=True, slots=True)
class Oriented:
    """A metric whose larger scores are always the better ones: lower-is-better metrics are multiplied by -1."""

    metric: Metric
    inputs: Inputs
    sign: float
    """What the metric's own numbers are multiplied by."""

    @property
    def higher_is_better(self) -> bool:
        return True

    def signature(self) -> Signature:
        signature = self.metric.signature()
        return signature if self.sign > 0 else signature.with_facts(sign="turned")

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        return self.sign * self.metric.score(segments)


def orient(metric: Metric) -> Oriented:
    """Return the metric with larger meaning better."""
    if isinstance(metric, Oriented):
        return metric
    return Oriented(metric, metric.inputs, 1.0 if metric.higher_is_better else -1.0)
