"""The experiments of the BMX paper: the grid, the eight splits of SummEval, stability."""

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from whyscore.analysis.calibrate.calibrate import Judging
from whyscore.analysis.calibrate.material import joined
from whyscore.cli import experiment_bmx_summeval
from whyscore.cli.arguments import add_inputs
from whyscore.cli.calibrate import add_judging, datasets
from whyscore.cli.calibration_tables import outcome_table
from whyscore.cli.experiment_bmx_common import (
    add_common,
    chosen_options,
    decimals_of,
    draw,
    metric_of,
    planned,
    run_folder,
)
from whyscore.cli.experiments import Experiment
from whyscore.cli.output import tell
from whyscore.cli.parsing import positive
from whyscore.cli.progress import progress
from whyscore.cli.setup import resources
from whyscore.data.tabular import Table, render
from whyscore.errors import UserError
from whyscore.experiments.bmx.study import RunFolder
from whyscore.experiments.bmx.tables import RUNS, SAMPLES, bmx_grid, bmx_stability, thinned

if TYPE_CHECKING:
    from whyscore.report.charts import Chart


def _add_grid(parser: argparse.ArgumentParser) -> None:
    add_common(parser)
    add_judging(parser)
    add_inputs(parser)


def _run_grid(arguments: argparse.Namespace) -> int:
    """Write the whole grid, the calibrations and the figures of every explainer."""
    if not arguments.human:
        raise UserError("no human score: name its column with --human, for example --human da")
    data, options = joined(datasets(arguments)), chosen_options(arguments)
    if arguments.dry_run:
        return planned(arguments, data, arguments.explainers or ["erasure"])
    output = run_folder(arguments)
    with progress(arguments) as bar:
        folder, calibrations = bmx_grid(
            data,
            metric_of(arguments),
            arguments.explainers or ["erasure"],
            output=output,
            human=arguments.human,
            group=arguments.group,
            level=arguments.level,
            coefficients=arguments.coefficients or ["pearson"],
            options=options,
            judging=Judging(resamples=arguments.resamples),
            seed=arguments.seed,
            resources=resources(arguments, bar),
        )
    draw(arguments, folder, _grid_figures)
    for judged in calibrations:
        print(render(outcome_table(judged), arguments.format or "text", decimals=decimals_of(arguments)), end="")
        for note in (*judged.notes, f"{judged.explainer}: {judged.verdict}"):
            tell(arguments, note)
    tell(arguments, f"tables and figures are in {folder.path}")
    return 0


def _grid_figures(folder: RunFolder) -> Iterator[tuple[str, "Chart", str]]:
    from whyscore.report import figures_boost as figure  # noqa: PLC0415 - an extra

    grid, outcomes = folder.read("grid"), folder.read("outcomes")
    yield (
        "grid_curves",
        figure.curves(grid),
        "Correlation over p for each w; black: the original; shaded: degenerate",
    )
    yield (
        "grid_heat",
        figure.heat(grid),
        "What every p and w gains; / marks degenerate cells",
    )
    yield "improving", figure.improving(grid, folder_epsilon(folder)), "The p and w that gain, with their medians"
    yield "settings", figure.settings(outcomes), "Original (black) and boosted correlation in every setting"
    yield "counts", figure.counts(outcomes), "Settings that got better or worse, by source"
    yield "sorted_scores", figure.sorted_scores(folder.read("scores")), "Standardised scores ordered by the human score"
    yield "costs", figure.costs(folder.read("costs")), "Texts scored and seconds by explainer"


def folder_epsilon(folder: RunFolder) -> float:
    """Return the smallest gain that counted in a run."""
    return float(cast("float", folder.head("grid").get("epsilon", 0.0)))


def _add_stability(parser: argparse.ArgumentParser) -> None:
    add_common(parser, explainers=False)
    add_judging(parser)
    parser.add_argument("--samples", nargs="+", type=int, default=list(SAMPLES), metavar="N", help="of LIME")
    parser.add_argument(
        "--runs", type=positive, default=RUNS, metavar="N", help=f"repeats with other seeds (default: {RUNS})"
    )
    parser.add_argument("--every", type=positive, default=1, metavar="N", help="only every N-th segment of a group")
    add_inputs(parser)


def _run_stability(arguments: argparse.Namespace) -> int:
    """Write how well repeated runs of LIME agree, by the weight of the original score."""
    whole, options = joined(datasets(arguments)), chosen_options(arguments)
    asked = {"group": arguments.group, "runs": arguments.runs, "every": arguments.every}
    data = thinned(whole, **asked)
    if arguments.dry_run:
        return planned(arguments, data, [f"lime(samples={count})" for count in arguments.samples])
    output, metric = run_folder(arguments), metric_of(arguments)
    with progress(arguments) as bar:
        held = resources(arguments, bar)
        folder, rows = bmx_stability(
            whole,
            metric,
            output=output,
            samples=arguments.samples,
            options=options,
            seed=arguments.seed,
            resources=held,
            **asked,
        )
    draw(arguments, folder, _stability_figures)
    shown = [row for row in rows if row["group"] == "all"]
    table = Table(
        ("samples", "w", "correlation of runs", "importances"),
        tuple(
            (cast("int", row["samples"]), "overall" if row["w"] is None else f"{row['w']:g}",
             cast("float", row["correlation"]), cast("float", row["importances"]))
            for row in shown
        ),
    )  # fmt: skip
    print(render(table, arguments.format or "text", decimals=decimals_of(arguments)), end="")
    tell(arguments, f"tables and figures are in {folder.path}")
    return 0


def _stability_figures(folder: RunFolder) -> Iterator[tuple[str, "Chart", str]]:
    from whyscore.report import figures_boost as figure  # noqa: PLC0415 - an extra

    yield "stability", figure.stability(folder.read("stability")), "Agreement of boosted scores between repeated runs"


EXPERIMENTS = {
    "bmx-grid": Experiment(
        "what every p and w gains, with calibrations, controls and figures",
        _add_grid,
        _run_grid,
        "examples:\n"
        "  whyscore experiment bmx-grid data.jsonl --human HUMAN_score --group LP -m token_f1 -e erasure -o run/\n",
    ),
    "bmx-summeval": Experiment(
        "the eight splits of SummEval: every rule beside the length and random controls",
        experiment_bmx_summeval.add_arguments,
        experiment_bmx_summeval.run,
        "examples:\n"
        '  whyscore experiment bmx-summeval --scores scores.csv --texts texts.jsonl -m token_f1 -e "lime(samples=100)" '
        "-o run/\n",
    ),
    "bmx-stability": Experiment(
        "how much of a boosted score is chance: repeated runs of LIME",
        _add_stability,
        _run_stability,
        "examples:\n"
        "  whyscore experiment bmx-stability data.jsonl --human HUMAN_score --group LP -m token_f1 --every 5 -o run/\n",
    ),
}
"""What `whyscore experiment` offers from here."""
