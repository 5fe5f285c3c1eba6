"""`whyscore triage`: which segments of a run need no review, at a chosen precision."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, cast

import numpy as np

from whyscore.analysis.metaeval.scores import score_by_language
from whyscore.analysis.metaeval.spans import predict_spans
from whyscore.analysis.triage import Triage, TriageSettings, triage
from whyscore.cli.options import OutputSettings, RunningSettings
from whyscore.cli.output import emit_result, tell
from whyscore.cli.setup import language_pair, working
from whyscore.data.formats.xliff import read_xliff, with_states
from whyscore.data.reading import read
from whyscore.data.writing import write_lines
from whyscore.errors import UserError
from whyscore.protocols import Metric, SupportsErrorSpans
from whyscore.registry import build_from_file, spec_of
from whyscore.runs.folder import RUN, Run, read_run, write_triage
from whyscore.scoring.stack import Resources
from whyscore.settings import again, option
from whyscore.stats.annotators import GOOGLE
from whyscore.types import Dataset, FloatVector, Side, Signature

EXAMPLES = """\
examples:
  whyscore triage run/ --tune-on rated.jsonl --precision 0.95                # esa >= 85 and no error span
  whyscore triage run/ --tune-on mqm.tsv --human mqm --precision 0.7 -o review.csv
  whyscore triage run/ --tune-on rated-run/ --by worst-word --xliff job.xlf --xliff-output reviewed.xlf
"""


@dataclass(frozen=True, kw_only=True)
class TriageCommand(RunningSettings, OutputSettings, TriageSettings):
    """What `whyscore triage` takes."""

    TITLE: ClassVar[str] = "input"

    run: str | None = option(None, "a folder of whyscore evaluate", positional=True, metavar="RUN", basic=True)
    tune_on: str | None = option(
        None, "rated data, or a run on rated data, to learn the threshold on", metavar="PATH", basic=True
    )
    metric: str | None = option(
        None, "the metric of the run, where it has several", flags=("-m", "--metric"), metavar="NAME", basic=True
    )
    by: Literal["score", "worst-word", "spans"] = option(
        "score", "what the threshold applies to: the score, the lowest word importance, or the error spans it marks"
    )
    lang_pair: str | None = option(None, "languages of the rated data (default: those of the run)", metavar="DE-EN")
    xliff: str | None = option(None, "the XLIFF file of the run, to be marked with states", metavar="FILE")
    xliff_output: str | None = option(None, "output file for the marked XLIFF", metavar="FILE")
    allow_code: tuple[str, ...] = option((), "files and modules that the runs may run code from", metavar="PATH")
    human: str | None = again(TriageSettings, "human")


SETTINGS = TriageCommand


def run(settings: TriageCommand) -> int:
    """Learn the threshold, sort the segments of the run out, and write what was asked for."""
    if not settings.run or not settings.tune_on:
        raise UserError("triage needs a run folder and rated data: whyscore triage run/ --tune-on rated.jsonl")
    if bool(settings.xliff) != bool(settings.xliff_output):
        raise UserError("name the XLIFF file with --xliff and the new file with --xliff-output")
    work = read_run(settings.run)
    if settings.metric is None and len(work.metrics) > 1:
        names = ", ".join(metric.name for metric in work.metrics)
        raise UserError(f"{settings.run} has several metrics: choose one with -m; there are: {names}")
    metric = work.metric(settings.metric or work.metrics[0].name).name
    with working(settings) as resources:
        values = _values(settings, work, metric, resources)
        rated, rated_scores = _read_rated(settings, work, metric, resources)
    result = triage(work.dataset, values, rated, rated_scores, metric=metric, settings=settings)
    write_triage(work, result.header(), {(o.entry.system, o.entry.id): o.review for o in result.decisions})
    if settings.xliff and settings.xliff_output:
        _mark(settings.xliff, settings.xliff_output, result)
        tell(settings, f"states: {settings.xliff_output}")
    emit_result(result, settings)
    tell(settings, f"whyscore report {settings.run} -o report.html has a filter for the segments to review")
    return 0


def _read_rated(settings: TriageCommand, work: Run, metric: str, resources: Resources) -> tuple[Dataset, FloatVector]:
    """Return the rated data and the metric on them: from their run folder, or scored now as the run scored."""
    path = str(settings.tune_on)
    if Path(path, RUN).is_file():
        other = read_run(path)
        other.metric(metric)
        return other.dataset, _values(settings, other, metric, resources)
    if settings.by == "worst-word":
        raise UserError(
            f"--by {settings.by} needs a run on the rated data, with the options of this run: whyscore evaluate {path} "
            "... -o rated-run/, then --tune-on rated-run/"
        )
    languages = language_pair(settings.lang_pair) or work.dataset.languages
    rated = read(path, human=settings.human or (), languages=languages)
    scorer = _build_metric(settings, work, metric)
    if settings.by == "spans":
        return rated, _span_weights(rated, scorer, resources)
    return rated, score_by_language(rated, scorer, resources)


def _build_metric(settings: TriageCommand, work: Run, metric: str) -> Metric:
    """Return a metric of a run, which others may have made: code that it names is refused unless the user allows it."""
    spec = Signature.parse(work.metric(metric).signature).spec
    return cast("Metric", build_from_file(spec, "metric", work.folder / RUN, settings.allow_code))


def _values(settings: TriageCommand, work: Run, metric: str, resources: Resources) -> FloatVector:
    """Return one number per entry of a run, higher is better; NaN where it is not known."""
    if settings.by == "score":
        return work.scores[metric] if work.metric(metric).higher_is_better else -work.scores[metric]
    if settings.by == "spans":
        return _span_weights(work.dataset, _build_metric(settings, work, metric), resources)
    values = np.full(len(work.dataset), np.nan)
    for explanation in work.explanations:
        if explanation.metric == metric and explanation.place.side is Side.HYPOTHESIS and len(explanation.importance):
            values[explanation.entry] = np.nanmin(explanation.importance)
    if np.isnan(values).all():
        raise UserError(f"{work.folder} has no explained words of {metric}: use --by score, or explain them")
    return values


def _span_weights(dataset: Dataset, metric: Metric, resources: Resources) -> FloatVector:
    """Return minus what the errors cost that a metric marks in each segment, by the weights of MQM; NaN: no answer."""
    if not isinstance(metric, SupportsErrorSpans):
        raise UserError(f"{spec_of(metric)} marks no error spans: use --by score")
    costs = [
        math.nan if spans is None else sum(GOOGLE.of(span.severity or "major", span.category or "") for span in spans)
        for spans in predict_spans(dataset, metric, resources)
    ]
    return -np.array(costs, dtype=np.float64)


def _mark(source: str, output: str, result: Triage) -> None:
    xliff = read_xliff(source)
    units = {unit.id for unit in xliff.units}
    review = {decision.entry.id: decision.review for decision in result.decisions if decision.entry.id in units}
    if not review:
        raise UserError(f"{source} has no unit of the run: give the file that was evaluated")
    write_lines(output, [with_states(xliff, review).decode("utf-8")])
