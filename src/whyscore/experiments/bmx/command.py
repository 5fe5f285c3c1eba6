"""The experiments of the BMX paper: the grid, the eight splits of SummEval, stability.

What the experiments of the BMX paper share on the command line: options, the run folder, figures.

The eight splits of SummEval as a command.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from whyscore.analysis.calibrate.calibrate import Judging
from whyscore.analysis.calibrate.judgement import CONTROLS
from whyscore.analysis.calibrate.material import joined
from whyscore.analysis.calibrate.rules import RULES, WEIGHTS, Rule
from whyscore.analysis.calibrate.settings import Options, options_of
from whyscore.analysis.explain import cost
from whyscore.cli.commands.boost import one_metric
from whyscore.cli.commands.calibrate import add_judging, datasets, grid_of, outcome_table
from whyscore.cli.commands.experiment import Experiment
from whyscore.cli.legacy import check_names, progress, resources
from whyscore.cli.options import Parser, add_inputs, add_metrics, add_output, add_running, positive
from whyscore.cli.output import tell
from whyscore.errors import MissingExtra, UserError
from whyscore.experiments.bmx.study import RunFolder
from whyscore.experiments.bmx.summeval import Summary, read_summeval
from whyscore.experiments.bmx.tables import RUNS, SAMPLES, bmx_grid, bmx_stability, bmx_summeval, thinned
from whyscore.present import render
from whyscore.types import Dataset
from whyscore.types.table import Cell, Table

if TYPE_CHECKING:
    from whyscore.report.figures.charts import Chart


FIGURES = "figures"
_FORMATS = ("text", "tsv", "csv", "markdown", "latex", "json")
_DECIMALS = 4


def add_common(parser: Parser, *, explainers: bool = True) -> None:
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
    from whyscore.report.figures.charts import save_chart  # noqa: PLC0415 - an extra

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


_HEAD = (
    "source", "rule", "kendall", "spearman", "kendall gain", "spearman gain", "mean p", "mean w", "splits boosted",
    "p <= .05", "corrected",
)  # fmt: skip


def add_arguments(parser: Parser) -> None:
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
    from whyscore.report.figures import boost as figure  # noqa: PLC0415 - an extra

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


def _add_grid(parser: Parser) -> None:
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
    from whyscore.report.figures import boost as figure  # noqa: PLC0415 - an extra

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


def _add_stability(parser: Parser) -> None:
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
    from whyscore.report.figures import boost as figure  # noqa: PLC0415 - an extra

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
        add_arguments,
        run,
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
