"""`whyscore evaluate`: texts in; one run folder, one report and a summary out."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from whyscore.analysis.common import with_languages
from whyscore.analysis.explain import cost as explain_cost
from whyscore.analysis.score import fail_if_truncated, truncation_messages
from whyscore.cli.commands.report import FigureSettings, report_lines, write_figures, write_page
from whyscore.cli.legacy import baseline, dataset, progress, resources
from whyscore.cli.options import (
    Parser,
    QuietSettings,
    add_cut_gate,
    add_gates,
    add_inputs,
    add_metrics,
    add_running,
    add_settings,
    read_settings,
)
from whyscore.cli.output import tell
from whyscore.cli.setup import tell_time
from whyscore.data.checks import findings
from whyscore.errors import UserError
from whyscore.report import build_report
from whyscore.runs.choices import Asked, Settings, asked_for
from whyscore.runs.evaluate import evaluate
from whyscore.runs.gates import check_gates, check_names, read_limits
from whyscore.runs.shards import STORE, Shard, describe, read_shard, shard_of, share
from whyscore.scoring.stack import cost
from whyscore.types import Dataset

EXAMPLES = """\
examples:
  whyscore evaluate --sample -o run/
  whyscore evaluate -s src.txt -r ref.txt -t sysA.txt sysB.txt -m chrf bleu -l de-en -o run/
  whyscore evaluate data.jsonl -m chrf -e "lime(samples=100)" --budget 50 -o run/
  whyscore evaluate data.jsonl -m chrf --shard 1/4 -o run-1/
  whyscore evaluate -r ref.txt -t base.txt new.txt --fail-under chrf=50 --fail-if-worse base -o run/
"""

PAGE = "report.html"


class Part(NamedTuple):
    """What is evaluated here."""

    data: Dataset
    budget: int | None


def add_arguments(parser: Parser) -> None:
    """Add inputs, metrics, what is done with them, gates and output."""
    add_metrics(parser)
    parser.add_argument(
        "-e", "--explainers", "--explainer", dest="explainers", nargs="+", action="extend", metavar="SPEC",
        help="one for all metrics, or one each (default: intrinsic where the metric has word scores, else erasure)",
    )  # fmt: skip
    parser.add_argument(
        "--budget", type=int, metavar="N",
        help="explain N segments per metric: worst, best and random in turn; 0: none "
        "(default: all where the metric explains itself, else 100)",
    )  # fmt: skip
    parser.add_argument(
        "--tagger", default="rules", metavar="SPEC", help="who finds features, or none (default: rules)"
    )
    parser.add_argument(
        "--unit", default="auto", metavar="SPEC", help="what is coloured: auto (default), word, char, 'chunk(3)'"
    )
    parser.add_argument("--draws", type=int, default=1000, metavar="N", help="bootstrap samples; 0: no intervals")
    add_inputs(parser)
    add_gates(parser)
    add_cut_gate(parser)
    group = parser.add_argument_group("output")
    group.add_argument("-o", "--output", default="run", metavar="FOLDER", help="the run folder (default: run)")
    group.add_argument("-f", "--format", choices=("text", "json", "markdown", "latex"), default="text")
    group.add_argument("--title", metavar="TEXT", help="of the report (default: the name of the data)")
    group.add_argument("--overwrite", action="store_true", help="replace another run in the folder")
    group.add_argument("--shard", metavar="I/N", help="only part I of N; whyscore merge joins the folders")
    add_settings(parser, FigureSettings)
    add_running(parser)


def run(arguments: argparse.Namespace) -> int:
    """Evaluate, write the run folder with its report, and print the verdict."""
    if arguments.draws < 0:
        raise UserError(f"--draws is {arguments.draws}, expected 0 or more")
    data = dataset(arguments)
    asked = asked_for(data, arguments.metrics, arguments.explainers, arguments.budget)
    under, worse = read_limits(arguments.fail_under or ()), baseline(arguments, data)
    check_names([one.name for one in asked], data.systems, under, worse)
    if arguments.dry_run:
        return _dry_run(arguments, data, asked)
    shard = read_shard(arguments.shard) if arguments.shard else None
    part, budget = Part(data, arguments.budget) if shard is None else _part(arguments, data, asked, shard)
    cut = truncation_messages({one.name: one.metric for one in asked}, part) if arguments.fail_if_truncated else []
    with progress(arguments) as bar:
        found = evaluate(
            part,
            arguments.metrics,
            output=arguments.output,
            explainers=arguments.explainers,
            budget=budget,
            settings=_settings(arguments),
            resources=resources(arguments, bar),
            findings=findings(part),
            command=["whyscore", *sys.argv[1:]] if sys.argv[1:2] == ["evaluate"] else None,
            overwrite=arguments.overwrite,
        )
    if shard is not None:
        _describe(arguments, data, asked, shard)
    report = build_report(found, title=arguments.title)
    page = Path(arguments.output) / PAGE
    write_page(report, page)
    write_figures(read_settings(FigureSettings, arguments), report)
    sys.stdout.writelines(report_lines(report, arguments.format))
    for one in found.metrics:
        tell(arguments, f"signature: {one.signature}")
    tell(arguments, f"report: {page}")
    check_gates(found, under, worse)
    fail_if_truncated(cut)
    return 0


def _part(arguments: argparse.Namespace, data: Dataset, asked: Sequence[Asked], shard: Shard) -> Part:
    """Return the part of the data and of the budget that a shard does; its scores stay beside its run."""
    arguments.store = arguments.store or str(Path(arguments.output) / STORE)
    # A budget that nobody gave is one for each explainer, which every shard would use up whole.
    budgets = [one.budget for one in asked if one.budget is not None]
    return Part(shard_of(data, shard), share(max(budgets), shard) if budgets else None)


def _describe(arguments: argparse.Namespace, data: Dataset, asked: Sequence[Asked], shard: Shard) -> None:
    whole = {
        "metrics": [one.name for one in asked],
        "explainers": arguments.explainers,
        "budget": arguments.budget,
        "settings": asdict(_settings(arguments)),
    }
    describe(arguments.output, data, shard, whole)


def _settings(arguments: argparse.Namespace) -> Settings:
    tagger = None if arguments.tagger == "none" else arguments.tagger
    return Settings(unit=arguments.unit, tagger=tagger, seed=arguments.seed, draws=arguments.draws)


def _dry_run(arguments: argparse.Namespace, data: Dataset, asked: list[Asked]) -> int:
    """Say what scoring and explaining would take; which segments are explained depends on scores not known yet."""
    held = resources(arguments)
    for one in asked:
        used = with_languages(one.metric, data.languages)
        told = cost(used, data.segments, held.store)
        print(f"{one.name}: {told.asked} texts, {told.distinct} distinct, {told.stored} already stored")
        left = told.distinct - told.stored + (_explaining(arguments, data, one) if one.explainer else 0)
        tell_time(read_settings(QuietSettings, arguments), one.name, used, data.segments, left)
    return 0


def _explaining(arguments: argparse.Namespace, data: Dataset, asked: Asked) -> int:
    """Say how many segments would be explained and return how many texts that are not those of the data it takes."""
    wanted = set(data.ids[: asked.budget]) if asked.budget is not None else set(data.ids)
    part = [entry.segment for entry in data.entries if entry.id in wanted]
    settings = {"unit": arguments.unit, "seed": arguments.seed}
    told = explain_cost(part, asked.metric, asked.explainer or "", resources=resources(arguments), **settings)
    distinct = len({segment.only(asked.metric.inputs) for segment in part})
    probes = max(0, told.distinct - max(distinct, told.stored))
    print(f"{asked.name} by {asked.explainer}: about {len(wanted)} segments, {probes or 'no'} more texts")
    return probes
