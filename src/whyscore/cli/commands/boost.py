"""`whyscore boost`: a metric's scores, made better by its own explanations."""

import argparse
from collections.abc import Iterator

import numpy as np

from whyscore.analysis.boost import BoostResult, boost, boosted, cost
from whyscore.cli.legacy import dataset, progress, resources
from whyscore.cli.options import Parser, add_inputs, add_metrics, add_output, add_running
from whyscore.cli.output import document, emit, format_of, tell, tell_signatures
from whyscore.data.records import row_lines, score_lines
from whyscore.errors import UserError
from whyscore.metrics.boosted import Boosted
from whyscore.present import render
from whyscore.types import Dataset
from whyscore.types.table import Cell, Table

EXAMPLES = """\
examples:
  whyscore boost -r ref.txt -t sys.txt -m chrf -e "lime(samples=100)" -p 1.5 -w 0.6 --segments -f jsonl
  whyscore boost -r ref.txt -t sys.txt --calibration chrf.calibration.json
  whyscore boost --text -t "I have a cat" -r "I have a dog" -m token_f1 -p 1 -w 0.5
  whyscore boost --sample -m "boosted(metric=token_f1, p=1)" -e erasure -p 2 -w 0.8 --dry-run
"""

_WARN = 0.5


def add_arguments(parser: Parser) -> None:
    """Add inputs, the metric with its explainer, p and w, and output."""
    add_metrics(parser)
    add_explaining(parser)
    parser.add_argument("-p", "--power", type=float, metavar="P", help="of the power mean, -300 to 300 (default: 1)")
    parser.add_argument("-a", "--aggregator", metavar="SPEC", help="another mean: 'exp_mean(t=2)', 'quantile(q=0.2)'")
    parser.add_argument("--calibration", metavar="FILE", help="p and w as `whyscore calibrate` found them")
    parser.add_argument("--allow-overlap", action="store_true", help="also score data the calibration was fitted on")
    parser.add_argument(
        "--on-empty", choices=("fail", "score"), default="fail",
        help="segments without any word: no boosted score (default), or the original one",
    )  # fmt: skip
    parser.add_argument("--segments", action="store_true", help="the score of every segment instead of the systems")
    add_inputs(parser)
    add_output(parser)
    add_running(parser)
    # -w is the paper's weight; the decimals of tables keep --width
    mixing = parser.add_argument_group("mixing", conflict_handler="resolve")
    mixing.add_argument("-w", "--weight", type=float, metavar="W", help="of the original score, 0 to 1 (default: 0.5)")


def add_explaining(parser: Parser) -> None:
    """Add what explains the metric, and which words are aggregated."""
    parser.add_argument(
        "-e", "--explainer", "--explainers", metavar="SPEC", help="erasure (default), 'lime(samples=100)', intrinsic"
    )
    parser.add_argument(
        "--parts", choices=("all", "hypothesis", "first_reference"), default="all", help="whose words are aggregated"
    )
    parser.add_argument("--unit", default="word", metavar="SPEC", help="what is hidden at a time (default: word)")
    parser.add_argument("--masker", metavar="SPEC", help="what a hidden word becomes (default: the explainer's choice)")


def one_metric(arguments: argparse.Namespace) -> str | None:
    """Return the one metric that was named, if any."""
    metrics = arguments.metrics or [None]
    if len(metrics) > 1:
        raise UserError(f"one metric at a time, got {' '.join(metrics)}")
    found: str | None = metrics[0]
    return found


def run(arguments: argparse.Namespace) -> int:
    """Boost what was asked for and write it out."""
    metric = one_metric(arguments)
    if metric is None and not arguments.calibration:
        raise UserError("no metric: name one with -m, for example -m chrf, or give a --calibration")
    made = _made(arguments, metric)
    data = dataset(arguments)
    if arguments.dry_run:
        emit(arguments, _planned(arguments, data, made))
        return 0
    with progress(arguments) as bar:
        result = boost(
            data,
            made,
            resources=resources(arguments, bar),
            calibration=arguments.calibration,
            allow_overlap=arguments.allow_overlap,
        )
    emit(arguments, _lines(arguments, data, result))
    _say(arguments, result)
    return 0


def _made(arguments: argparse.Namespace, metric: str | None) -> Boosted:
    if arguments.calibration:
        return boosted(metric, arguments.explainer, p=arguments.power, w=arguments.weight, on_empty=arguments.on_empty,
                       aggregator=arguments.aggregator, calibration=arguments.calibration)  # fmt: skip
    return boosted(
        metric,
        arguments.explainer,
        p=arguments.power,
        w=arguments.weight,
        aggregator=arguments.aggregator,
        parts=arguments.parts,
        unit=arguments.unit,
        masker=arguments.masker,
        seed=arguments.seed,
        on_empty=arguments.on_empty,
    )


def _planned(arguments: argparse.Namespace, data: Dataset, made: Boosted) -> Iterator[str]:
    asked = cost(data, made, resources=resources(arguments))
    nested = " at the most: the costs of nested explainers multiply" if isinstance(made.metric, Boosted) else ""
    spec = made.signature().spec
    yield f"{spec}: {asked.asked} texts, {asked.distinct} distinct, {asked.stored} already stored{nested}\n"


def _lines(arguments: argparse.Namespace, data: Dataset, result: BoostResult) -> Iterator[str]:
    chosen = format_of(arguments)
    if arguments.segments and chosen in ("json", "jsonl"):
        reasons = dict.fromkeys(np.flatnonzero(np.isnan(result.scores.values)).tolist(), "empty")
        name = result.scores.signature.spec
        lines = score_lines(data, {name: result.scores}, parts=True, reasons={name: reasons})
        yield from document(lines) if chosen == "json" else lines
        return
    table = _segment_table(data, result) if arguments.segments else _system_table(data, result)
    if chosen in ("json", "jsonl"):
        signature = result.scores.signature
        rows = (dict(zip(table.columns, row, strict=True)) for row in table.rows)
        lines = row_lines("totals", data, rows, {signature.spec: str(signature)})
        yield from document(lines) if chosen == "json" else lines
        return
    yield render(table, chosen, decimals=arguments.width, safe=arguments.safe_csv)


def _segment_table(data: Dataset, result: BoostResult) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (entry.id, entry.system, *map(float, numbers))
        for entry, *numbers in zip(data.entries, result.original, result.aggregate, result.scores.values, strict=True)
    ]
    return Table(("id", "system", "original", "aggregate", "boosted"), tuple(rows))


def _system_table(data: Dataset, result: BoostResult) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for system in data.systems:
        own = [k for k, entry in enumerate(data.entries) if entry.system == system]
        columns = (result.original, result.aggregate, result.scores.values)
        means = [_mean(values[own]) for values in columns]
        rows.append((system, *means, len(own)))
    directions = {"original": True, "boosted": True} if len(rows) > 1 else {}
    return Table(("system", "original", "aggregate", "boosted", "segments"), tuple(rows), directions)


def _mean(values: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]") -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def _say(arguments: argparse.Namespace, result: BoostResult) -> None:
    """Say beside the numbers what a reader must know."""
    if result.degenerate > _WARN:
        tell(
            arguments,
            f"warning: in {result.degenerate:.0%} of the segments the power mean hangs on the floor alone: "
            "it counts words. A larger p, or -a 'power_mean(p=..., floor=relative)', looks at them",
        )
    if result.empty:
        kept = "keep the original score" if result.metric.on_empty == "score" else "no boosted score"
        tell(arguments, f"note: {result.empty} segments have no word to explain and {kept}")
    if not result.metric.metric.higher_is_better:
        spec = result.metric.metric.signature().spec
        tell(arguments, f"note: lower is better for {spec}; its scores are turned here, so that higher is better")
    if result.metric.w == 1:
        tell(arguments, "note: w = 1, not boosted: these are the original scores")
    if format_of(arguments) == "text":
        tell_signatures(arguments, [result.scores.signature])
