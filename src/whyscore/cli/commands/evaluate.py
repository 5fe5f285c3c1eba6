"""`whyscore evaluate`: texts in; one run folder, one report and a summary out. `whyscore merge`: joins its shards."""

import math
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal

from whyscore.analysis.common import with_languages
from whyscore.analysis.decompose.decompose import plan as decompose_plan
from whyscore.analysis.explain import cost as explain_cost
from whyscore.analysis.score import fail_if_truncated, truncation_messages
from whyscore.cli.commands.report import FigureSettings, report_lines, write_figures, write_page
from whyscore.cli.options import (
    GateSettings,
    InputSettings,
    MetricSettings,
    QuietSettings,
    RunningSettings,
    TruncationSettings,
)
from whyscore.cli.output import tell, terminal_width
from whyscore.cli.setup import (
    baseline_of,
    fail_if_unparsed,
    load_with_findings,
    make_resources,
    refuse_idle_reports,
    report_gates,
    requested_metrics,
    tell_time,
    warn_unsupported,
    working,
)
from whyscore.data.checks import findings
from whyscore.data.naming import with_noun
from whyscore.errors import UserError
from whyscore.marking import ON_ONE_LINE, visible
from whyscore.report import build_report
from whyscore.report.model import Report, ReportSettings
from whyscore.runs.evaluate import (
    EvaluateSettings,
    RequestedMetric,
    can_decompose,
    evaluate_requested,
    request_metrics,
    with_tagger,
)
from whyscore.runs.folder import Run, record_gates
from whyscore.runs.gates import check_baseline, check_gates, judge_gates, read_limits
from whyscore.runs.shards import STORE, describe, joinable, merge, read_shard, settings_of_shard, shard_of
from whyscore.scoring.stack import Resources, Stages, cost
from whyscore.settings import Seeded, again, option
from whyscore.types import Dataset

EXAMPLES = """\
examples:
  whyscore evaluate --sample -o run/
  whyscore evaluate -s src.txt -r ref.txt -t sysA.txt sysB.txt -m chrf bleu -l de-en -o run/
  whyscore evaluate data.jsonl -m chrf -e "lime(samples=100)" --budget 50 -o run/
  whyscore evaluate data.jsonl -m chrf --shard 1/4 -o run-1/
  whyscore evaluate -r ref.txt -t base.txt new.txt --fail-under chrf=50 --fail-if-worse base --junit gate.xml -o run/
"""

PAGE = "report.html"


@dataclass(frozen=True, kw_only=True)
class RunFolderSettings(QuietSettings):
    """Where a run goes, and how its summary is printed."""

    TITLE: ClassVar[str] = "output"

    output: str = option("run", "run folder to write", flags=("-o", "--output"), metavar="FOLDER", basic=True)
    format: Literal["text", "json", "markdown", "latex"] = option(
        "text", "format of the summary on stdout", flags=("-f", "--format"), basic=True
    )
    title: str | None = again(ReportSettings, "title", basic=False)
    baseline: str | None = again(ReportSettings, "baseline", basic=False)
    overwrite: bool = option(False, "replace an existing run in the folder", basic=True)


@dataclass(frozen=True, kw_only=True)
class EvaluateCommand(
    RunningSettings, FigureSettings, RunFolderSettings, TruncationSettings, GateSettings, InputSettings,
    EvaluateSettings, MetricSettings,
):  # fmt: skip
    """What `whyscore evaluate` takes."""

    shard: str | None = option(None, "process only part I of N; join the folders with whyscore merge", metavar="I/N")


SETTINGS = EvaluateCommand


def run(settings: EvaluateCommand) -> int:
    """Evaluate, write the run folder with its report, and print the verdict."""
    refuse_idle_reports(settings)
    metrics = requested_metrics(settings) or None
    data, noticed = load_with_findings(settings, metrics or (), settings.explainers or ())
    if settings.tagger == "auto":
        settings = with_tagger(settings, data)
        tell(settings, f"linguistic features: {settings.tagger}")
    requested = request_metrics(data, metrics, settings)
    under = read_limits(settings.fail_under or (), [request.name for request in requested])
    check_baseline(data.systems, worse := baseline_of(settings, data))
    if settings.dry_run:
        return _say_costs(settings, data, requested)
    shard = read_shard(settings.shard) if settings.shard else None
    part = data if shard is None else shard_of(data, shard)
    used = settings
    if shard is not None:  # its scores stay beside its run
        used = replace(settings, store=settings.store or str(Path(settings.output) / STORE))
        used = settings_of_shard(used, requested, shard)
    cut = (
        truncation_messages({request.name: request.metric for request in requested}, part)
        if settings.fail_if_truncated
        else []
    )
    with working(used) as resources:
        result = evaluate_requested(
            part,
            requested if shard is None else request_metrics(part, metrics, used),
            settings.output,
            used,
            resources,
            findings=noticed if shard is None else findings(part),
            command=command_line("evaluate"),
            overwrite=settings.overwrite,
        )
        unsupported = {metric.name: metric.unsupported for metric in result.metrics if metric.unsupported}
        gates = judge_gates(result, under, worse, unsupported)
        (resources.progress or Stages()).begin("report")
        report = make_report(settings, record_gates(result, gates))
    if shard is not None:
        describe(settings.output, data, shard, [request.name for request in requested], settings)
    if metrics is None:
        warn_unsupported(settings, part, {request.name: request.metric for request in requested})
    show_report(settings, report, result)
    write_figures(settings, report)
    report_gates(gates, settings, data.name)
    check_gates(gates, worse, under)
    fail_if_truncated(cut)
    fail_if_unparsed(settings, resources)
    return 0


def make_report(settings: RunFolderSettings, run: Run) -> Report:
    """Write the page of a run into its folder and return the report."""
    report = build_report(run, title=settings.title, baseline=settings.baseline)
    write_page(report, Path(settings.output) / PAGE, follow=False)
    return report


def show_report(settings: RunFolderSettings, report: Report, run: Run) -> None:
    """Print the summary of a report."""
    sys.stdout.write(visible("".join(report_lines(report, settings.format, terminal_width()))))
    for metric in run.metrics:
        tell(settings, f"signature: {metric.signature}")
    tell(settings, f"report: {Path(settings.output) / PAGE}")


def command_line(name: str) -> list[str] | None:
    """Return the command line, for the report, where this command was started by it."""
    return ["whyscore", *sys.argv[1:]] if sys.argv[1:2] == [name] else None


def _say_costs(settings: EvaluateCommand, data: Dataset, requested: list[RequestedMetric]) -> int:
    """Say what each stage would take; which segments are explained depends on scores not known yet."""
    resources = make_resources(settings)
    sizes = {"text": len(data), "system": len(data.systems), "segment": len(data.ids)}
    print(f"read: {', '.join(with_noun(number, noun) for noun, number in sizes.items())}")
    for request in requested:
        metric = with_languages(request.metric, data.languages)
        planned = cost(metric, data.segments, resources.store)
        print(f"score {request.name}: {planned}")
        left = planned.left
        left += _say_probes(settings, data, request, resources) if request.explainer else 0
        left += _say_masked(settings, data, request, resources) if can_decompose(request, data) else 0
        tell_time(settings, request.name, metric, data.segments, left)
    scores = len(requested) + len({name for entry in data.entries for name in entry.human})
    pairs = math.comb(len(data.systems), 2)
    size = f"{with_noun(pairs, 'pair')} of systems, {with_noun(scores, 'score')}"
    print(f"test: {with_noun(scores * pairs, 'difference')} ({size})" if pairs else "test: none")
    print(f"report: {Path(settings.output) / PAGE}".translate(ON_ONE_LINE))
    return 0


def _say_probes(settings: EvaluateCommand, data: Dataset, request: RequestedMetric, resources: Resources) -> int:
    """Say how many segments would be explained and return how many texts that are not those of the data it takes."""
    ids = set(data.ids[: request.budget]) if request.budget is not None else set(data.ids)
    part = [entry.segment for entry in data.entries if entry.id in ids]
    used = {"unit": settings.unit, "seed": settings.seed}
    texts = explain_cost(part, request.metric, request.explainer or "", resources=resources, **used)
    distinct = len({segment.only(request.metric.inputs) for segment in part})
    probes = max(0, texts.distinct - max(distinct, texts.stored))
    count = f"about {len(ids)} segments, {probes or 'no'} more texts to score"
    print(f"explain {request.name} by {request.explainer}: {count}")
    return probes


def _say_masked(settings: EvaluateCommand, data: Dataset, request: RequestedMetric, resources: Resources) -> int:
    """Say how many texts a decomposition would tag and score, and return how many are not stored."""
    if settings.tagger is None:
        return 0
    used = {"tagger": settings.tagger, "seed": settings.seed}
    texts = decompose_plan(data, request.name if request.spec else request.metric, resources=resources, **used)
    counts = f"{texts.distinct_texts} distinct texts to tag, {texts.distinct} to score, {texts.stored} already stored"
    print(f"features {request.name} by {settings.tagger}: {counts}")
    return texts.distinct - texts.stored


MERGE_EXAMPLES = """\
examples:
  whyscore merge run-1/ run-2/ run-3/ run-4/ -o run/
"""


@dataclass(frozen=True, kw_only=True)
class MergeCommand(RunningSettings, RunFolderSettings, Seeded):
    """What `whyscore merge` takes; seed and all that decides numbers come from the shards."""

    shards: tuple[str, ...] = option(
        (), "folders written by whyscore evaluate --shard I/N", positional=True, metavar="RUN", basic=True
    )
    allow_code: tuple[str, ...] = option(
        (), "files and modules that the shards may run code from: those of your own metrics", metavar="PATH"
    )


def run_merge(settings: MergeCommand) -> int:
    """Join the shards, write the report, print the verdict."""
    if not settings.shards:
        raise UserError("no shard: give the folders that whyscore evaluate --shard wrote")
    if settings.seed:
        raise UserError(f"--seed is {settings.seed}: the shards have their own seed. Leave it out")
    if settings.dry_run:
        shards, entries = joinable(settings.shards)
        sys.stdout.write(f"{shards} shards with {entries} entries can be merged; all scores are available\n")
        return 0
    with working(replace(settings, store=settings.store or "none")) as resources:  # the shards bring their own
        result = merge(
            settings.shards,
            settings.output,
            resources=resources,
            overwrite=settings.overwrite,
            command=command_line("merge"),
            allow_code=settings.allow_code,
        )
    show_report(settings, make_report(settings, result), result)
    return 0


VERBS = {"merge": (MERGE_EXAMPLES, MergeCommand, run_merge)}
