"""`whyscore compare`: is A better than B?"""

import argparse
import json
from collections.abc import Iterator, Sequence
from itertools import islice

from whyscore.analysis.common import as_metric, requested_name
from whyscore.analysis.compare.compare import compare
from whyscore.analysis.compare.result import Comparison, check_comparison
from whyscore.cli.legacy import baseline, dataset, place_metrics, progress, resources
from whyscore.cli.options import Parser, add_gates, add_inputs, add_metrics, add_output, add_running, positive
from whyscore.cli.output import emit, format_of, tell, tell_signatures, to_json
from whyscore.data.records import row_lines
from whyscore.errors import UserError
from whyscore.present import render
from whyscore.runs.gates import check_names, read_limits
from whyscore.scoring.stack import cost
from whyscore.stats.systems import DRAWS, TESTS
from whyscore.text.strict import finite
from whyscore.types import Dataset
from whyscore.types.table import Table

EXAMPLES = """\
examples:
  whyscore compare -r ref.txt -t base.txt sysA.txt sysB.txt -m bleu chrf --test permutation
  whyscore compare data.tsv -m chrf --documents --correction holm
  whyscore compare --sample -m chrf ter --human mqm
  whyscore compare --sample -m bleu -f latex
  whyscore compare -r ref.txt -t prod.txt new.txt -m chrf --fail-if-worse
"""

STRENGTH_DRAWS = 1000
_SHOWN = 20
_TABLES = ("markdown", "latex")


def add_arguments(parser: Parser) -> None:
    """Add inputs, metrics, the test and output."""
    add_metrics(parser)
    group = parser.add_argument_group("test")
    group.add_argument("--test", choices=TESTS, default="permutation", help="default: permutation")
    group.add_argument("--draws", type=int, default=DRAWS, metavar="N", help=f"resamples (default: {DRAWS:,})")
    group.add_argument("--alpha", type=float, default=0.05, help="the p-value that counts (default: 0.05)")
    group.add_argument(
        "--correction", choices=("none", "holm", "bonferroni", "benjamini_hochberg"), default="none",
        help="of p-values over the pairs of each metric (default: none)",
    )  # fmt: skip
    group.add_argument("--documents", action="store_true", help="resample whole documents instead of segments")
    group.add_argument(
        "--strengths", action="store_true", help="also Bradley-Terry strengths by won segments, with intervals"
    )
    group.add_argument(
        "--power", type=positive, nargs="+", metavar="N",
        help="how often the test would find each difference on N segments (documents with --documents)",
    )  # fmt: skip
    add_inputs(parser)
    add_gates(parser)
    add_output(parser)
    add_running(parser)


def run(arguments: argparse.Namespace) -> int:
    """Compare the systems and write out what can be told."""
    place_metrics(arguments)
    metrics = list(dict.fromkeys(arguments.metrics or ()))
    if not metrics and not arguments.human:
        raise UserError("no metric: name one with -m, for example -m chrf")
    if arguments.draws < 1:
        raise UserError(f"--draws is {arguments.draws}, expected 1 or more")
    data = dataset(arguments)
    under, worse = read_limits(arguments.fail_under or ()), baseline(arguments, data)
    check_names([*map(requested_name, metrics), *(arguments.human or ())], data.systems, under, worse)
    if arguments.dry_run:
        emit(arguments, _planned(arguments, data, metrics))
        return 0
    with progress(arguments) as bar:
        found = compare(
            data,
            metrics,
            human=arguments.human or (),
            test=arguments.test,
            draws=arguments.draws,
            seed=arguments.seed,
            alpha=arguments.alpha,
            correction=arguments.correction,
            documents=arguments.documents,
            power=arguments.power or (),
            strength_draws=STRENGTH_DRAWS if arguments.strengths else 0,
            resources=resources(arguments, bar),
        )
    chosen = format_of(arguments)
    emit(arguments, _lines(arguments, data, found, chosen))
    if chosen == "text":
        tell_signatures(arguments, [one.signature for one in found if one.signature])
    if chosen not in _TABLES:
        for note in found.notes:
            tell(arguments, f"note: {note}")
    check_comparison(found, under, worse)
    return 0


def _planned(arguments: argparse.Namespace, data: Dataset, metrics: Sequence[str]) -> Iterator[str]:
    store = resources(arguments).store
    for metric in metrics:
        asked = cost(as_metric(metric), data.segments, store)
        yield f"{metric}: {asked.asked} texts, {asked.distinct} distinct, {asked.stored} already stored\n"


def _document(records: Iterator[str], found: Comparison) -> Iterator[str]:
    """Yield one JSON document: the header, the score and rank of each system, and the tested pairs."""
    header, *pairs = map(json.loads, records)
    how = {"test": found.test, "draws": found.draws, "seed": found.seed, "alpha": found.alpha}
    how |= {"correction": found.correction, "notes": list(found.notes)}
    powers = [row for one in found for curve in one.powers for row in curve.rows()]
    simulated = {"power": powers} if powers else {}
    yield to_json(header | how | {"systems": finite(found.scores()), "records": pairs} | simulated)


def _lines(arguments: argparse.Namespace, data: Dataset, found: Comparison, chosen: str) -> Iterator[str]:
    if chosen in ("json", "jsonl"):
        signatures = {one.metric: str(one.signature) for one in found if one.signature}
        records = row_lines("comparisons", data, found.rows(), signatures)
        yield from _document(records, found) if chosen == "json" else records
    elif chosen in ("tsv", "csv"):
        rows = found.rows()
        columns = tuple(rows[0])
        table = Table(columns, tuple(tuple(row[name] for name in columns) for row in rows))
        yield render(table, chosen, decimals=arguments.width, safe=arguments.safe_csv)
    else:
        digits = 2 if arguments.width is None else arguments.width
        table = found.table(digits)
        if chosen in _TABLES:
            yield render(table, chosen)
            return
        yield render(Table(table.columns, table.rows, table.higher_is_better, table.best, (found.how,)), "text")
        yield "\n"
        shown = len(found.pairs) if arguments.verbose else _SHOWN
        yield from (f"{pair}\n" for pair in islice(found.pairs, shown))
        yield from (f"{one.won}\n" for one in found if one.strength_intervals)
        yield from (f"{curve}\n" for one in found for curve in one.powers)
        if len(found.pairs) > shown:
            yield f"and {len(found.pairs) - shown} more pairs; -v shows all\n"
