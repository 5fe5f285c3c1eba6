"""`whyscore score`: any metrics for any systems in one pass.

The parts of MEE on the command line: bars beside explained words, and the tables of `score --parts`.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence

from whyscore.analysis.common import as_metric, spoken
from whyscore.analysis.mee import MeeView, is_mee, mee_view
from whyscore.analysis.score import MetricResult, check_whole, cut_texts, cuts_told, score_systems
from whyscore.cli.legacy import dataset, place_metrics, progress, resources
from whyscore.cli.options import (
    Parser,
    QuietSettings,
    add_cut_gate,
    add_inputs,
    add_metrics,
    add_output,
    add_running,
    read_settings,
)
from whyscore.cli.output import document, emit, format_of, tell_signatures
from whyscore.cli.setup import tell_time
from whyscore.data.records import row_lines, score_lines
from whyscore.errors import UserError
from whyscore.metrics.mee.words import MARKS
from whyscore.present import render
from whyscore.protocols import CorpusMetric
from whyscore.scoring.stack import Resources, cost
from whyscore.types import Dataset, Estimate, Signature
from whyscore.types.table import Cell, Table

_STEPS = 10
_FULL, _EMPTY = "█", "░"
_BARS = (("lms", "LMS"), ("syn", "Syn"), ("cxt", "Cxt"))


def bar(value: float) -> str:
    """Return a number from 0 to 1 as a bar of ten steps.

    >>> bar(0.23), bar(-0.5)
    ('██░░░░░░░░', '░░░░░░░░░░')
    """
    filled = min(_STEPS, max(0, round(_STEPS * value)))
    return _FULL * filled + _EMPTY * (_STEPS - filled)


def part_bars(parts: Mapping[str, float]) -> str:
    """Return the parts of a score as bars; what a metric does not have is left out."""
    return "  ".join(f"{name} {bar(parts[key])} {parts[key]:.2f}" for key, name in _BARS if key in parts)


def part_views(data: Dataset, metrics: Sequence[str], resources: Resources) -> dict[str, MeeView]:
    """Return the parts of every metric that has some; none at all is an error."""
    chosen = [metric for metric in metrics if is_mee(metric)]
    if not chosen:
        raise UserError(f"--parts shows the parts of mee, mee2 and mee4; asked for: {', '.join(metrics)}")
    return {metric: mee_view(data, metric, resources=resources) for metric in chosen}


def view_lines(
    arguments: argparse.Namespace, data: Dataset, views: Mapping[str, MeeView], chosen: str
) -> Iterator[str]:
    """Yield the views in a format."""
    if chosen in ("json", "jsonl"):
        rows = ({"metric": metric, **record} for metric, view in views.items() for record in view.records())
        lines = row_lines("totals", data, rows, {metric: str(view.signature) for metric, view in views.items()})
        yield from document(lines) if chosen == "json" else lines
        return
    tables = [table for metric, view in views.items() for table in (_bars(metric, view), _pairs(metric, view))]
    if chosen in ("tsv", "csv"):
        tables = [_bars(metric, view) for metric, view in views.items()]
    yield "\n".join(render(table, chosen, decimals=arguments.width, safe=arguments.safe_csv) for table in tables)


def _bars(metric: str, view: MeeView) -> Table:
    rows = [(metric, *one) for one in view.bars]
    columns = ("metric", "system", "n", "exact", "root", "synonym", "syn", "cxt", "score", "unknown", "no vectors")
    return Table(columns, tuple(rows))


def _pairs(metric: str, view: MeeView) -> Table:
    rows = [(metric, f"{MARKS[one.kind]} {one.kind}", *one[1:]) for one in view.pairs]
    return Table(("metric", "match", "hypothesis", "reference", "times", "cosine"), tuple(rows))


EXAMPLES = """\
examples:
  whyscore score -r ref.txt -t sysA.txt sysB.txt -m bleu chrf ter
  whyscore score -r ref.txt -t sysA.txt -m chrf --segments -f jsonl -o scores.jsonl
  whyscore score data.tsv -m 'chrf(word_order=2)' my_metric.py:score
  whyscore score --sample -m bleu chrf -f latex
  whyscore score --sample -m mee4 --parts
"""

_DECIMALS = 2
_PAPER_DECIMALS = 3


def add_arguments(parser: Parser) -> None:
    """Add inputs, metrics and output."""
    add_metrics(parser)
    parser.add_argument("--segments", action="store_true", help="the score of every segment instead of the corpus")
    parser.add_argument(
        "--parts", action="store_true", help="what each part of mee, mee2, mee4 gives, and which words were paired"
    )
    parser.add_argument("-b", "--score-only", action="store_true", help="print the numbers alone")
    parser.add_argument("--draws", type=int, default=1000, metavar="N", help="bootstrap samples; 0: no intervals")
    add_inputs(parser)
    add_cut_gate(parser)
    add_output(parser)
    add_running(parser)
    parser.set_defaults(metrics=None)


def run(arguments: argparse.Namespace) -> int:
    """Score everything that was asked for and write it out."""
    place_metrics(arguments)
    metrics = list(dict.fromkeys(arguments.metrics or ()))
    if not metrics:
        raise UserError("no metric: name one with -m, for example -m chrf")
    if arguments.draws < 0:
        raise UserError(f"--draws is {arguments.draws}, expected 0 or more")
    data = dataset(arguments)
    if arguments.dry_run:
        emit(arguments, _planned(arguments, data, metrics))
        return 0
    cut = cuts_told({name: name for name in metrics}, data) if arguments.fail_if_truncated else []
    if arguments.parts:
        with progress(arguments) as bar:
            views = part_views(data, metrics, resources(arguments, bar))
        emit(arguments, view_lines(arguments, data, views, format_of(arguments)))
        check_whole(cut)
        return 0
    with progress(arguments) as bar:
        held = resources(arguments, bar)
        results = score_systems(data, metrics, seed=arguments.seed, draws=arguments.draws, resources=held)
    chosen = format_of(arguments)
    emit(arguments, _lines(arguments, data, results, chosen))
    if chosen == "text" and not arguments.score_only:
        tell_signatures(arguments, _signatures(results, segments=arguments.segments).values())
    check_whole(cut)
    return 0


def _planned(arguments: argparse.Namespace, data: Dataset, metrics: Sequence[str]) -> Iterator[str]:
    store = resources(arguments).store
    for metric in metrics:
        used = spoken(as_metric(metric), data.languages)
        asked = cost(used, data.segments, store)
        yield f"{metric}: {asked.asked} texts, {asked.distinct} distinct, {asked.stored} already stored\n"
        tell_time(read_settings(QuietSettings, arguments), metric, used, data.segments, asked.distinct - asked.stored)


def _lines(arguments: argparse.Namespace, data: Dataset, results: Sequence[MetricResult], chosen: str) -> Iterator[str]:
    if arguments.score_only:
        yield from _numbers(results, arguments.width, segments=arguments.segments)
    elif chosen in ("json", "jsonl"):
        records = _segment_lines(data, results) if arguments.segments else _total_lines(data, results)
        yield from document(records) if chosen == "json" else records
    else:
        table = _table(arguments, data, results, chosen)
        yield render(table, chosen, decimals=arguments.width, safe=arguments.safe_csv)


def _table(arguments: argparse.Namespace, data: Dataset, results: Sequence[MetricResult], chosen: str) -> Table:
    if arguments.segments:
        return _segment_table(data, results)
    if chosen in ("tsv", "csv"):
        return _long_table(results)
    # On a terminal the signatures go to stderr, where they do not disturb what is copied or piped.
    return _wide_table(data, results, arguments.width, paper=chosen != "text")


def _signatures(results: Sequence[MetricResult], *, segments: bool) -> dict[str, Signature]:
    return {one.metric: one.entries.signature if segments else one.signature for one in results}


def _numbers(results: Sequence[MetricResult], decimals: int | None, *, segments: bool) -> Iterator[str]:
    digits = _DECIMALS if decimals is None else decimals
    for one in results:
        values = one.entries.values.tolist() if segments else [total.value for total in one.totals.values()]
        yield from (f"{value:.{digits}f}\n" for value in values)


def _segment_lines(data: Dataset, results: Sequence[MetricResult]) -> Iterator[str]:
    names = [one.metric for one in results]
    # Rows of a corpus metric are counts, many and not for reading; those of all others are the parts of a score.
    parts = [name for name in names if not isinstance(as_metric(name), CorpusMetric)]
    cut = {name: cut_texts(name, data.segments, data.languages) for name in names}
    return score_lines(data, {one.metric: one.entries for one in results}, parts=parts, truncated=cut)


def _total_lines(data: Dataset, results: Sequence[MetricResult]) -> Iterator[str]:
    signatures = {name: str(signature) for name, signature in _signatures(results, segments=False).items()}
    rows = (
        {"system": system, "metric": one.metric, "score": total.value, "low": total.low, "high": total.high}
        | {"level": total.level, "n": total.n, "higher_is_better": one.higher_is_better}
        for one in results
        for system, total in one.totals.items()
    )
    return row_lines("totals", data, rows, signatures)


def _wide_table(data: Dataset, results: Sequence[MetricResult], width: int | None, *, paper: bool) -> Table:
    """Return systems x metrics, each with its interval, the best of each metric marked."""
    digits = (_PAPER_DECIMALS if paper else _DECIMALS) if width is None else width
    rows = [(system, *(_interval(one.totals[system], digits) for one in results)) for system in data.systems]
    notes = [f"{len(data.ids)} segments; in brackets the 95 % interval of the bootstrap over segments"]
    notes += [str(signature) for signature in _signatures(results, segments=False).values()]
    return Table(
        ("system", *(one.metric for one in results)),
        tuple(rows),
        {one.metric: one.higher_is_better for one in results},
        frozenset(cell for one in results for cell in _best(data, one)),
        tuple(notes) if paper else (),
    )


def _best(data: Dataset, one: MetricResult) -> list[tuple[int, str]]:
    """Return the cells of the best system, or systems; where there is one system, none is best."""
    values = [one.totals[system].value for system in data.systems]
    top = max(values) if one.higher_is_better else min(values)
    return [(row, one.metric) for row, value in enumerate(values) if value == top and len(values) > 1]


def _interval(total: Estimate, digits: int) -> str:
    shown = "" if total.low is None or total.high is None else f" [{total.low:.{digits}f}, {total.high:.{digits}f}]"
    return f"{total.value:.{digits}f}{shown}"


def _long_table(results: Sequence[MetricResult]) -> Table:
    rows = [
        (system, one.metric, total.value, total.low, total.high, total.n)
        for one in results
        for system, total in one.totals.items()
    ]
    return Table(("system", "metric", "score", "low", "high", "n"), tuple(rows))


def _segment_table(data: Dataset, results: Sequence[MetricResult]) -> Table:
    values = [one.entries.values.tolist() for one in results]
    rows: list[tuple[Cell, ...]] = [
        (entry.id, entry.system, *numbers) for entry, *numbers in zip(data.entries, *values, strict=True)
    ]
    return Table(("id", "system", *(one.metric for one in results)), tuple(rows))
