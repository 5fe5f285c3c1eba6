"""A folder that can be handed in to a shared task: texts -> metric -> explainer -> files.

Word-level tasks (Eval4NLP 2021, WMT22 task 2):

1. Explain every segment, word by word as the task's files split them.
2. Write the error scores of both sides, the sentence scores and the metadata.
3. Read the folder back and check it by the task's own rules, before anybody hands it in.

The WMT metrics task (`submit_scores`), one pair of tab-separated files per metric, without header:

| file | columns |
|---|---|
| `METRIC.sys.score` | metric, language pair, test set, domain, reference, system, score |
| `METRIC.seg.score` | metric, language pair, test set, domain, document, reference, system, segment number, score |

1. Score all systems by all metrics, one call each. Metrics where lower is better are turned: higher is better in WMT.
2. System scores: over all segments (domain `all`), and for each domain where the data name them (column `domain`), by
   the metric's own formula or as the mean of the segments. Segments are numbered from one, in the order of the data.
3. The reference is `src` for metrics that do not read references.

The WMT26 evaluation task (`submit_wmt26`), one file of JSON lines with the predictions for all three parts:

1. `task2_pred`: the score, turned where lower is better, and times 100 where a perfect one is 1.
2. `task1_pred`: the error spans that the metric marks itself, or those of an explainer's word scores: the split of all
   error scores into two groups that differ most, and again, for minor and major.
3. `task3_pred`: error-free is a score (as written in `task2_pred`) of at least `error_free` without a predicted span.
4. Where a language model gave no usable answer, the prediction that needs it is left out, and `missing` says why.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from whyscore.analysis.common import MetricLike, Segments, as_metric, requested_name, with_languages
from whyscore.analysis.convert import SubmissionSettings, split_scores
from whyscore.analysis.explain import explain
from whyscore.analysis.metaeval.spans import predict_spans
from whyscore.analysis.metaeval.words import explained_submission
from whyscore.analysis.score import MetricResult, estimate, score_systems
from whyscore.data.formats.eval4nlp import (
    Submission,
    Track,
    metadata_faults,
    read_submission,
    refuse,
    write_submission,
)
from whyscore.data.formats.wmt26 import ERROR_FREE, ESA, read_wmt26, wmt26_lines
from whyscore.data.naming import refuse_twice
from whyscore.data.writing import make_folder, tab_separated, write_lines
from whyscore.errors import DataError
from whyscore.protocols import Explainer, Metric, SupportsErrorSpans, SupportsScale
from whyscore.registry import parse
from whyscore.scoring.stack import LOCAL, Resources
from whyscore.settings import Seeded, again, option, takes
from whyscore.stats.spans import Thresholds, to_spans
from whyscore.types import Dataset, Entry, ErrorSpan, FloatVector, Inputs, Side
from whyscore.types.result import Record, Result

_ALL = "all"


@dataclass(frozen=True, kw_only=True)
class SubmitSettings(Seeded):
    """What a shared task wants to know of a submission."""

    task: Literal["eval4nlp", "eval4nlp2021", "wmt22", "wmt-metrics", "wmt26"] = option(
        "eval4nlp", "shared task to write files for", positional=True, basic=True
    )
    team: str = again(SubmissionSettings, "team", "", help="the name of the team", basic=True)
    track: Track = again(SubmissionSettings, "track", basic=True)
    description: str | None = again(
        SubmissionSettings, "description", help="one line for metadata.txt (default: metric and explainer)"
    )
    test_set: str = option("testset", "wmt-metrics: the name of the test set", metavar="NAME")
    reference: str = option("refA", "wmt-metrics: the name of the reference", metavar="NAME")
    error_free: float | None = option(
        None, "wmt26: also decide which segments are error-free: those with this score, such as 85", metavar="X"
    )


@dataclass(frozen=True, eq=False, repr=False)
class Submitted(Result):
    """What was written."""

    folder: Path
    files: tuple[Path, ...]
    submission: Submission | None = None
    """As it was read back; None for files of scores."""
    missing: Mapping[int, str] = field(default_factory=dict)
    """Why segments lack a prediction, by their number, where a language model gave no usable answer."""

    def records(self) -> Iterator[Record]:
        return ({"file": str(file)} for file in self.files)


@takes(SubmitSettings)
def submit(
    segments: Segments,
    metric: MetricLike,
    explainer: str | Explainer,
    folder: str | Path,
    *,
    settings: SubmitSettings,
    resources: Resources = LOCAL,
) -> Submitted:
    """Return the files of a submission, written and read back.

    Args:
        segments: texts in the order of the task's files.
        metric: a spec, a metric, or any function of segments.
        explainer: a spec or an explainer.
        folder: where the files go.
        settings: the task, the team, the track.
        resources: store, executor and progress.
    """
    if not settings.team.strip():
        raise DataError("a submission needs the name of a team")
    prediction = explained_submission(segments, metric, explainer, seed=settings.seed, resources=resources)
    _refuse_missing(prediction.name, np.zeros(0) if prediction.sentence is None else prediction.sentence)
    task: Literal["eval4nlp2021", "wmt22"] = "wmt22" if settings.task == "wmt22" else "eval4nlp2021"
    files = write_submission(
        folder,
        {side: scored.scores.rows() for side, scored in prediction.sides.items()},
        prediction.sentence,
        team=settings.team,
        track=settings.track,
        description=settings.description or prediction.name,
        task=task,
    )
    submission = read_submission(folder)
    refuse(metadata_faults(submission, task, folder, required=True))
    return Submitted(Path(folder), tuple(files), submission)


@takes(SubmitSettings)
def submit_scores(
    dataset: Dataset,
    metrics: Sequence[MetricLike],
    folder: str | Path,
    *,
    settings: SubmitSettings,
    resources: Resources = LOCAL,
) -> Submitted:
    """Return the files of scores for the WMT metrics task.

    Args:
        dataset: systems with the same segments, and their languages.
        metrics: one pair of files each.
        folder: where the files go.
        settings: the names of test set and reference.
        resources: store, executor and progress.
    """
    if dataset.languages is None:
        raise DataError(f"{dataset.name} does not name its languages: give the pair, for example -l en-ru")
    names = [_name(metric) for metric in metrics]
    refuse_twice(names)
    for name in (settings.test_set, settings.reference, *dataset.systems):
        if not name.strip() or set("\t\r\n") & set(name):
            raise DataError(f"{name!r} cannot be used in a tab-separated file: rename it")
    place = make_folder(folder)
    scored = score_systems(dataset, metrics, draws=0, resources=resources)
    files = []
    for result in scored:
        _refuse_missing(result.metric, result.entries.values)
    for name, result in zip(names, scored, strict=True):
        metric = with_languages(as_metric(metrics[names.index(name)]), dataset.languages)
        table = _Scores(name, dataset, metric, result, settings)
        for level, rows in (("sys", table.systems()), ("seg", table.segments())):
            files.append(place / f"{name}.{level}.score")
            write_lines(files[-1], map(tab_separated, rows))
    return Submitted(place, tuple(files))


@takes(SubmitSettings)
def submit_wmt26(
    dataset: Dataset,
    metric: MetricLike,
    explainer: str | Explainer | None,
    file: str | Path,
    *,
    settings: SubmitSettings,
    resources: Resources = LOCAL,
) -> Submitted:
    """Return the file of predictions for the WMT26 evaluation task, written and read back.

    Args:
        dataset: the items of the task, all systems.
        metric: gives the scores; a metric that marks error spans gives these too.
        explainer: word scores that become spans, where the metric marks none.
        file: where the predictions go.
        settings: which score is error-free.
        resources: store, executor and progress.
    """
    used = with_languages(as_metric(metric), dataset.languages)
    result = score_systems(dataset, [metric], draws=0, resources=resources)[0]
    sign = 1.0 if result.higher_is_better else -1.0
    times = 1.0 if isinstance(used, SupportsScale) and used.score_scale not in (None, 1) else 100.0
    values = sign * times * result.entries.values
    if np.isnan(values).all():
        raise DataError(f"{result.metric} gave no score for any segment: there is nothing to submit")
    spans, missing = _predict_spans(dataset, used, explainer, settings, resources)
    missing = {**result.entries.reasons, **missing}
    entries = []
    for k, (entry, value) in enumerate(zip(dataset.entries, values.tolist(), strict=True)):
        segment_spans = None if spans is None else spans[k]
        extra = {**entry.extra, ESA: None if math.isnan(value) else value}
        if settings.error_free is not None:
            complete = not math.isnan(value) and (spans is None or segment_spans is not None)
            extra[ERROR_FREE] = value >= settings.error_free and not segment_spans if complete else None
        entries.append(replace(entry, spans=segment_spans, extra=extra))
    written = replace(dataset, entries=tuple(entries))
    lost: Counter[str] = Counter()
    write_lines(file, wmt26_lines(written, lost))
    read_wmt26(file, dataset)
    return Submitted(Path(file).parent, (Path(file),), missing=missing)


def _predict_spans(
    dataset: Dataset, metric: Metric, explainer: str | Explainer | None, settings: SubmitSettings, resources: Resources
) -> tuple[list[tuple[ErrorSpan, ...] | None] | None, dict[int, str]]:
    """Return the spans of each segment, None where a language model gave no usable answer, and why some are missing."""
    if explainer is None:
        return (predict_spans(dataset, metric, resources) if isinstance(metric, SupportsErrorSpans) else None), {}
    explanations = explain(dataset, metric, explainer, sides=["hypothesis"], seed=settings.seed, resources=resources)
    thresholds = Thresholds(*split_scores(np.concatenate([-explanation.importance for explanation in explanations])))
    spans: list[tuple[ErrorSpan, ...] | None] = [
        None if k in explanations.failures else () for k in range(len(dataset))
    ]
    for explanation in explanations:
        spans[explanation.index] = tuple(
            to_spans(explanation.words, -explanation.importance, thresholds, Side.HYPOTHESIS)
        )
    return spans, explanations.failures


def _refuse_missing(metric: str, values: FloatVector) -> None:
    missing = int(np.isnan(values).sum())
    if missing:
        raise DataError(
            f"a submission needs a score for every segment, {metric} gave none for {missing:,} of {len(values):,}: run "
            "it again, or use another model or prompt"
        )


def _name(metric: MetricLike) -> str:
    """Return the name of a metric without its options."""
    name = parse(metric).name if isinstance(metric, str) else requested_name(metric)
    return Path(name.replace(":", "_")).name


class _Scores(NamedTuple):
    """The scores of one metric as rows of the task's files."""

    name: str
    dataset: Dataset
    metric: Metric
    result: MetricResult
    settings: SubmitSettings

    def systems(self) -> Iterator[list[str]]:
        """Yield the rows of systems, by domain."""
        domains = list(map(_domain, self.dataset.entries))
        for domain in dict.fromkeys([_ALL, *sorted(set(domains))]):
            for system in self.dataset.systems:
                indices = [
                    k for k, entry in enumerate(self.dataset.entries)
                    if entry.system == system and domain in (_ALL, domains[k])
                ]  # fmt: skip
                if indices:
                    yield [*self._head(domain), self._reference, system, repr(self._total(indices))]

    def segments(self) -> Iterator[list[str]]:
        """Yield the rows of segments."""
        numbers = {name: str(k) for k, name in enumerate(self.dataset.ids, start=1)}
        for entry, value in zip(self.dataset.entries, self.result.entries.values, strict=True):
            head = [*self._head(_domain(entry)), entry.document or "-", self._reference, entry.system]
            yield [*head, numbers[entry.id], repr(self._sign * float(value))]

    def _head(self, domain: str) -> tuple[str, str, str, str]:
        return self.name, "-".join(self.dataset.languages or ()), self.settings.test_set, domain

    def _total(self, indices: list[int]) -> float:
        values, rows = self.result.entries.values[indices], self.result.entries.rows
        counts = values[:, None] if rows is None else rows[indices]
        return self._sign * estimate(self.metric, counts, values, seed=0, draws=0).value

    @property
    def _sign(self) -> float:
        return 1.0 if self.result.higher_is_better else -1.0

    @property
    def _reference(self) -> str:
        return self.settings.reference if Inputs.REFERENCES in self.metric.inputs else "src"


def _domain(entry: Entry) -> str:
    domain = next((value for name, value in entry.extra.items() if name.lower() == "domain"), None)
    return " ".join(str(domain).split()) if domain not in (None, "") else _ALL
