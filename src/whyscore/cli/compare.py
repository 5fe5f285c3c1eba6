"""`whyscore compare`: is A better than B?"""

import argparse
import json
from collections.abc import Iterator
from itertools import islice

from whyscore.cli.arguments import add_inputs, add_metrics, add_output, add_running
from whyscore.cli.output import emit, format_of, tell, tell_signatures, to_json
from whyscore.cli.progress import progress
from whyscore.cli.setup import dataset, resources
from whyscore.errors import UserError
from whyscore.io.recording import row_lines
from whyscore.io.strict import finite
from whyscore.io.tabular import Table, render
from whyscore.jobs.common import as_metric
from whyscore.jobs.compare import compare
from whyscore.jobs.comparison import Comparison
from whyscore.scoring.prepare import cost
from whyscore.stats.systems import DRAWS, TESTS
from whyscore.types import Dataset

EXAMPLES = """\
examples:
  whyscore compare -r ref.txt -t base.txt sysA.txt sysB.txt -m bleu chrf --test permutation
  whyscore compare data.tsv -m chrf --documents --correction holm
  whyscore compare --sample -m chrf ter --human mqm
  whyscore compare --sample -m bleu -f latex
"""

_SHOWN = 20
_TABLES = ("markdown", "latex")


def add_arguments(parser: argparse.ArgumentParser) -> None:
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
    add_inputs(parser)
    add_output(parser)
    add_running(parser)


def run(arguments: argparse.Namespace) -> int:
    """Compare the systems and write out what can be told."""
    metrics = arguments.metrics or []
    if not metrics and not arguments.human:
        raise UserError("no metric: name one with -m, for example -m chrf")
    if arguments.draws < 1:
        raise UserError(f"--draws is {arguments.draws}, expected 1 or more")
    data = dataset(arguments)
    if arguments.dry_run:
        store = resources(arguments).store
        for metric in metrics:
            asked = cost(as_metric(metric), data.segments, store)
            emit(arguments, [f"{metric}: {asked.asked} texts, {asked.distinct} distinct, {asked.stored} stored\n"])
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
            resources=resources(arguments, bar),
        )
    chosen = format_of(arguments)
    emit(arguments, _lines(arguments, data, found, chosen))
    if chosen == "text":
        tell_signatures(arguments, [one.signature for one in found if one.signature])
    if chosen not in _TABLES:
        for note in found.notes:
            tell(arguments, f"note: {note}")
    return 0


def _document(records: Iterator[str], found: Comparison) -> Iterator[str]:
    """Yield one JSON document: the header, the score and rank of each system, and the tested pairs."""
    header, *pairs = map(json.loads, records)
    how = {"test": found.test, "draws": found.draws, "seed": found.seed, "alpha": found.alpha}
    how |= {"correction": found.correction, "notes": list(found.notes)}
    yield to_json(header | how | {"systems": finite(found.scores()), "records": pairs})


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
        if len(found.pairs) > shown:
            yield f"and {len(found.pairs) - shown} more pairs; -v shows all\n"
