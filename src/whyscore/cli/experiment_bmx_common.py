"""What the experiments of the BMX paper share on the command line: options, the run folder, figures."""

import argparse
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from whyscore.analysis.calibrate.rules import RULES, WEIGHTS
from whyscore.analysis.calibrate.settings import Options, options_of
from whyscore.analysis.explain import cost
from whyscore.cli.arguments import add_metrics, add_output, add_running
from whyscore.cli.boost import one_metric
from whyscore.cli.calibrate import grid_of
from whyscore.cli.output import tell
from whyscore.errors import MissingExtra, UserError
from whyscore.experiments.bmx.study import RunFolder
from whyscore.types import Dataset

if TYPE_CHECKING:
    from whyscore.report.charts import Chart

FIGURES = "figures"
_FORMATS = ("text", "tsv", "csv", "markdown", "latex", "json")
_DECIMALS = 4


def add_common(parser: argparse.ArgumentParser, *, explainers: bool = True) -> None:
    """Add what all three take."""
    add_metrics(parser)
    if explainers:
        parser.add_argument(
            "-e", "--explainers", "--explainer", dest="explainers", nargs="+", action="extend", metavar="SPEC",
            help="one or more (default: erasure)",
        )  # fmt: skip
    parser.add_argument("--no-figures", action="store_true", help="write the tables alone")
    parser.add_argument(
        "--mode", choices=("default", "paper", "compat"), default="default", help="all choices of the paper or its code"
    )
    parser.add_argument("--epsilon", type=float, metavar="G", help="gains up to this count as none (default: 0.001)")
    parser.add_argument("--rule", choices=RULES, help="how p and w are chosen (default: cautious)")
    add_output(parser, _FORMATS)
    parser.set_defaults(formats=None)  # -o is a folder
    add_running(parser)


def chosen_options(arguments: argparse.Namespace) -> Options:
    """Return what is tried, as asked for."""
    return options_of(
        arguments.mode,
        rule=arguments.rule,
        epsilon=arguments.epsilon,
        grid=grid_of(arguments.grid),
        weights=WEIGHTS,
        scale=arguments.scale,
        aggregator=arguments.aggregator,
    )


def run_folder(arguments: argparse.Namespace) -> str:
    """Return the folder that -o names."""
    if not arguments.output:
        raise UserError("no folder for the run: name one with -o, for example -o run/")
    return str(arguments.output)


def metric_of(arguments: argparse.Namespace) -> str:
    """Return the one metric that was named."""
    metric = one_metric(arguments)
    if metric is None:
        raise UserError("no metric: name one with -m, for example -m token_f1")
    return metric


def planned(arguments: argparse.Namespace, data: Dataset, explainers: Sequence[str]) -> int:
    """Say how many texts each explainer would score."""
    for explainer in explainers:
        asked = cost(data, metric_of(arguments), explainer)
        print(f"{metric_of(arguments)} {explainer}: {asked.asked} texts, {asked.distinct} distinct")
    return 0


def draw(
    arguments: argparse.Namespace,
    folder: RunFolder,
    charts: Callable[[RunFolder], Iterator[tuple[str, "Chart", str]]],
) -> None:
    """Draw the figures of a run from its tables; without the packages for that, say which are missing."""
    if arguments.no_figures:
        return
    from whyscore.report.charts import save_chart  # noqa: PLC0415 - an extra

    try:
        for name, chart, caption in charts(folder):
            save_chart(chart, folder.path / FIGURES, name, caption=caption)
    except MissingExtra as error:
        tell(arguments, f"note: no figures: {error}")


def decimals_of(arguments: argparse.Namespace) -> int | None:
    """Return how many decimals a table shows."""
    if arguments.width is not None:
        return int(arguments.width)
    return _DECIMALS if (arguments.format or "text") in ("text", "markdown", "latex") else None
