"""`whyscore metaeval faithfulness`: does the metric agree with its explanations, and do they repeat?"""

import argparse
from collections.abc import Iterator, Sequence

from whyscore.analysis.metaeval.faithfulness import ORDERS, SHARES, FaithfulnessResult, faithfulness
from whyscore.analysis.metaeval.rows import faithfulness_row, stability_row
from whyscore.analysis.metaeval.stability import StabilityResult, stability
from whyscore.cli.commands.explain import add_until_stable, raised
from whyscore.cli.commands.metaeval.words import faithfulness_table, planned
from whyscore.cli.legacy import dataset, progress, resources
from whyscore.cli.options import Parser, add_inputs, add_metrics, add_output, add_running, positive
from whyscore.cli.output import emit, format_of, tell, tell_signatures, to_json
from whyscore.data.records import header_of
from whyscore.errors import UserError
from whyscore.present import render
from whyscore.text.strict import line
from whyscore.types import Dataset

EXAMPLES = """\
examples:
  whyscore metaeval faithfulness -r ref.txt -t sys.txt -m chrf -e erasure lime shap random
  whyscore metaeval faithfulness --sample --limit 20 -m chrf -e erasure 'lime(samples=200)' random --seeds 5
  whyscore metaeval faithfulness --sample --limit 20 -m chrf -e 'lime(samples=50)' --until-stable 0.95
"""


def add_arguments(parser: Parser) -> None:
    """Add inputs, one metric, explainers and output."""
    add_metrics(parser)
    parser.add_argument(
        "-e", "--explainers", "--explainer", dest="explainers", nargs="+", action="extend", metavar="SPEC",
        help="the explainers to judge; random is the control",
    )  # fmt: skip
    parser.add_argument(
        "--side", "--sides", dest="sides", nargs="+", action="extend", choices=("hypothesis", "source", "reference"),
        help="whose words are hidden (default: hypothesis)",
    )  # fmt: skip
    parser.add_argument("--masker", metavar="SPEC", help="what a hidden word becomes (default: delete)")
    parser.add_argument("--unit", default="word", metavar="SPEC", help="word (default), char, auto, 'chunk(3)'")
    parser.add_argument("--shares", nargs="+", type=float, default=list(SHARES), metavar="Q", help="of words hidden")
    parser.add_argument("--orders", type=int, default=ORDERS, metavar="N", help="random orders (default: 20)")
    parser.add_argument("--seeds", type=int, metavar="N", help="also ask whether N seeds agree")
    add_until_stable(parser)
    parser.add_argument("--draws", type=int, default=1000, metavar="N", help="bootstrap samples; 0: no intervals")
    parser.add_argument("--limit", type=positive, metavar="N", help="only the first N segments of each system")
    add_inputs(parser)
    add_output(parser)
    add_running(parser)


def run(arguments: argparse.Namespace) -> int:
    """Judge the explainers and write the result out."""
    if not arguments.metrics or len(arguments.metrics) > 1:
        raise UserError(f"one metric: name it with -m, for example -m chrf; got {len(arguments.metrics or [])}")
    if not arguments.explainers:
        raise UserError("no explainer: name some with -e, for example -e erasure lime random")
    data = _limited(dataset(arguments), arguments.limit)
    metric = arguments.metrics[0]
    if arguments.dry_run:
        emit(arguments, planned(arguments, data.segments, [metric], arguments.explainers))
        tell(arguments, f"and for each explained text of n words {arguments.orders + 1} orders of 2 (n + 1) texts")
        return 0
    with progress(arguments) as bar:
        held = resources(arguments, bar)
        options = {"unit": arguments.unit, "sides": arguments.sides or ["hypothesis"]}
        options |= {"masker": arguments.masker, "seed": arguments.seed, "resources": held}
        explainers = [raised(arguments, data, metric, one, options) for one in arguments.explainers]
        results = faithfulness(
            data, metric, explainers, shares=arguments.shares, orders=arguments.orders, draws=arguments.draws, **options
        )
        stable = [
            stability(data, metric, one, seeds=arguments.seeds, **options) for one in explainers if arguments.seeds
        ]
    chosen = format_of(arguments)
    emit(arguments, _lines(arguments, data, results, stable, chosen))
    if chosen == "text":
        tell_signatures(arguments, [one.signature for one in results])
    return 0


def _limited(data: Dataset, limit: int | None) -> Dataset:
    if limit is None:
        return data
    wanted = set(data.ids[:limit])
    return Dataset(data.name, tuple(entry for entry in data.entries if entry.id in wanted), data.languages)


def _lines(
    arguments: argparse.Namespace,
    data: Dataset,
    results: Sequence[FaithfulnessResult],
    stable: Sequence[StabilityResult],
    chosen: str,
) -> Iterator[str]:
    if chosen in ("json", "jsonl"):
        records = [{"kind": "faithfulness"} | faithfulness_row(one) for one in results]
        for row, own in zip(records, stable, strict=False):
            row["stability"] = stability_row(own)
        if chosen == "json":
            yield to_json({"schema_version": 1, "kind": "faithfulness", "records": records})
            return
        yield header_of("metaeval", data, {one.explainer: str(one.signature) for one in results}).line()
        yield from map(line, records)
        return
    table = faithfulness_table(results, stable, people=chosen not in ("tsv", "csv"))
    yield render(table, chosen, decimals=arguments.width, safe=arguments.safe_csv)
