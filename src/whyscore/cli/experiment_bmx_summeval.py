"""The eight splits of SummEval as a command."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from whyscore.analysis.calibrate.judgement import CONTROLS
from whyscore.analysis.calibrate.rules import RULES, Rule
from whyscore.cli.experiment_bmx_common import (
    add_common,
    chosen_options,
    decimals_of,
    draw,
    metric_of,
    planned,
    run_folder,
)
from whyscore.cli.output import tell
from whyscore.cli.parsing import positive
from whyscore.cli.progress import progress
from whyscore.cli.setup import check_names, resources
from whyscore.data.tabular import Cell, Table, render
from whyscore.experiments.bmx.study import RunFolder
from whyscore.experiments.bmx.summeval import Summary, read_summeval
from whyscore.experiments.bmx.tables import bmx_summeval
from whyscore.types import Dataset

if TYPE_CHECKING:
    from whyscore.report.charts import Chart

_HEAD = (
    "source", "rule", "kendall", "spearman", "kendall gain", "spearman gain", "mean p", "mean w", "splits boosted",
    "p <= .05", "corrected",
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the two files, the metric, explainers and rules."""
    add_common(parser)
    group = parser.add_argument_group("input")
    group.add_argument("--scores", required=True, metavar="FILE", help="ratings and splits (CSV)")
    group.add_argument("--texts", required=True, metavar="FILE", help="references and summaries (JSON lines)")
    group.add_argument("--criterion", choices=("kendall", "both"), default="both", help="what p and w are chosen by")
    group.add_argument("--rules", nargs="+", choices=RULES, default=list(RULES), help="rules to compare (default: all)")
    group.add_argument("--limit", type=positive, metavar="N", help="only the first N documents of each split")
    group.add_argument("--resamples", type=int, default=999, metavar="N", help="behind p-values (default: 999)")
    group.add_argument("--grid", default=None, metavar="NAME", help="default, compat, coarse, or =START:STOP:STEP")
    group.add_argument("-a", "--aggregator", default="power_mean", metavar="SPEC", help="the mean whose p is varied")
    group.add_argument("--scale", choices=("raw", "z"), default="raw", help="of the aggregate (default: raw)")


def run(arguments: argparse.Namespace) -> int:
    """Write what every source and rule did on every split, and the means."""
    check_names(arguments)
    data = _limited(read_summeval(arguments.scores, arguments.texts), arguments.limit)
    if arguments.dry_run:
        return planned(arguments, data, arguments.explainers or ["erasure"])
    output, options = run_folder(arguments), chosen_options(arguments)
    rules = (arguments.rule,) if arguments.rule else tuple(arguments.rules)
    with progress(arguments) as bar:
        folder, means = bmx_summeval(
            data,
            metric_of(arguments),
            arguments.explainers or ["erasure"],
            output=output,
            rules=cast("tuple[Rule, ...]", rules),
            criterion=arguments.criterion,
            options=options,
            resamples=arguments.resamples,
            seed=arguments.seed,
            resources=resources(arguments, bar),
        )
    draw(arguments, folder, _summeval_figures)
    table = Table(_HEAD, tuple(tuple(cast("Sequence[Cell]", row)) for row in means))
    print(render(table, arguments.format or "text", decimals=decimals_of(arguments)), end="")
    tell(arguments, "means over four aspects and over the splits, each judged on the documents it was not fitted on")
    for sentence in _told(means):
        tell(arguments, sentence)
    tell(arguments, f"tables and figures are in {folder.path}")
    return 0


def _told(means: Sequence[Summary]) -> Iterator[str]:
    """Yield a plain sentence for every explainer and rule that is no better than the original or the controls."""
    for row in means[1:]:
        if row.source in CONTROLS:
            continue
        controls = [one.kendall_gain for one in means if one.rule == row.rule and one.source in CONTROLS]
        if not row.kendall_gain > 0:
            yield f"{row.source}, {row.rule}: boosting does not help here (Kendall {row.kendall_gain:+.4f})"
        elif row.kendall_gain <= max(controls):
            yield f"{row.source}, {row.rule}: {row.kendall_gain:+.4f} is not distinguishable from length/noise"


def _summeval_figures(folder: RunFolder) -> Iterator[tuple[str, "Chart", str]]:
    from whyscore.report import figures_boost as figure  # noqa: PLC0415 - an extra

    rows = folder.read("splits")
    yield "choices", figure.choices(_each_choice(rows)), "p and w as chosen on every split"
    outcomes = [
        {**row, "protocol": row["rule"], "setting": row["aspect"], "gain": _difference(row)}
        for row in rows
        if row["coefficient"] == "kendall_b"
    ]
    yield "counts", figure.counts(outcomes), "Splits and aspects that got better or worse (Kendall), by rule"
    yield "costs", figure.costs(folder.read("costs")), "Texts scored and seconds by explainer"


def _each_choice(rows: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    names = ("source", "rule", "split", "p", "w")
    return [
        dict(zip(names, held, strict=True))
        for held in dict.fromkeys(tuple(row[name] for name in names) for row in rows)
    ]


def _difference(row: Mapping[str, object]) -> float:
    return float(cast("float", row["after"])) - float(cast("float", row["before"]))


def _limited(data: Dataset, limit: int | None) -> Dataset:
    """Return the first documents of every split, for a quick look."""
    if limit is None:
        return data
    kept: dict[object, list[str]] = {}
    for entry in data.entries:
        held = kept.setdefault(entry.extra["bmx_split"], [])
        if entry.id not in held and len(held) < limit:
            held.append(entry.id)
    wanted = {name for held in kept.values() for name in held}
    return Dataset(data.name, tuple(entry for entry in data.entries if entry.id in wanted))
