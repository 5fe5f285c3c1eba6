"""The experiments about shares: hybrids, random features, rarer features, bad taggers."""

import argparse
from collections.abc import Callable, Iterator, Sequence

from whyscore.cli.commands.decompose import add_features, features_dataset, settings_of
from whyscore.cli.commands.experiment import Experiment
from whyscore.cli.legacy import progress, resources
from whyscore.cli.options import Parser, add_inputs, add_metrics, add_output, add_running
from whyscore.cli.output import document, emit, format_of
from whyscore.data.records import row_lines
from whyscore.errors import UserError
from whyscore.experiments.muler.random import GROUPS, RATES, NoiseRow, SpecificityRow, specificity, tagnoise
from whyscore.experiments.muler.shares import ALPHAS, QUARTERS, FrequencyRow, HybridRow, frequency, hybrid
from whyscore.present import render
from whyscore.scoring.stack import Resources
from whyscore.types import Dataset
from whyscore.types.table import Cell, Table

Row = HybridRow | FrequencyRow | SpecificityRow | NoiseRow
Work = Callable[[argparse.Namespace, Dataset, str, Resources], Sequence[Row]]

_TED = "--tagger \"pretagged(reference='ref.tag', hypothesis='sys.tag')\" --features NOUN=NN,NNS"


def _experiment(name: str, about: str, options: Callable[[Parser], None], work: Work) -> Experiment:
    def add_arguments(parser: Parser) -> None:
        add_metrics(parser)
        add_features(parser)
        options(parser)
        add_inputs(parser)
        add_output(parser)
        add_running(parser)

    def run(arguments: argparse.Namespace) -> int:
        return _run(arguments, work)

    example = f"examples:\n  whyscore experiment {name} -r ref.txt -t sys.txt -m bleu {_TED}\n"
    return Experiment(about, add_arguments, run, example)


def _run(arguments: argparse.Namespace, work: Work) -> int:
    if not arguments.metrics:
        raise UserError("no metric: name one with -m, for example -m bleu")
    data = features_dataset(arguments)
    if arguments.dry_run:
        raise UserError("--dry-run is for decompose: run whyscore decompose --dry-run with the same options")
    with progress(arguments) as bar:
        held = resources(arguments, bar)
        rows = [row for metric in arguments.metrics for row in work(arguments, data, metric, held)]
    emit(arguments, _lines(arguments, data, rows))
    return 0


def _lines(arguments: argparse.Namespace, data: Dataset, rows: Sequence[Row]) -> Iterator[str]:
    chosen = format_of(arguments)
    records = [row.record() for row in rows]
    if chosen in ("json", "jsonl"):
        lines = row_lines("decomposition", data, records)
        yield from document(lines) if chosen == "json" else lines
        return
    columns = tuple(records[0]) if records else ()
    cells = [tuple(_cell(value) for value in record.values()) for record in records]
    yield render(Table(columns, tuple(cells)), chosen, decimals=arguments.width, safe=arguments.safe_csv)


def _cell(value: object) -> Cell:
    return value if isinstance(value, str | int | float) else None


def _alphas(default: Sequence[float]) -> Callable[[Parser], None]:
    def add(parser: Parser) -> None:
        told = " ".join(map(str, default))
        parser.add_argument(
            "--alpha", type=float, nargs="+", default=list(default), metavar="A",
            help=f"parts of the feature's words, by first letter (default: {told})",
        )  # fmt: skip

    return add


def _specificity_options(parser: Parser) -> None:
    parser.add_argument("--groups", type=int, nargs="+", default=list(GROUPS), metavar="P", help="groups of words")
    parser.add_argument("--repeat", type=int, default=12, metavar="N", help="random features each (default: 12)")


def _noise_options(parser: Parser) -> None:
    parser.add_argument("--noise", choices=("drop", "move", "random"), default="drop", help="what becomes of tags")
    parser.add_argument("--side", choices=("hypothesis", "reference"), default="hypothesis", help="whose tags")
    parser.add_argument("--rates", type=float, nargs="+", default=list(RATES), metavar="R", help="parts that are wrong")


def _hybrid(arguments: argparse.Namespace, data: Dataset, metric: str, held: Resources) -> list[HybridRow]:
    return hybrid(
        data,
        metric,
        tagger=arguments.tagger,
        features=arguments.features,
        alpha=arguments.alpha,
        settings=settings_of(arguments),
        resources=held,
    )


def _frequency(arguments: argparse.Namespace, data: Dataset, metric: str, held: Resources) -> list[FrequencyRow]:
    return frequency(
        data,
        metric,
        tagger=arguments.tagger,
        features=arguments.features,
        alpha=arguments.alpha,
        settings=settings_of(arguments),
        resources=held,
    )


def _specificity(arguments: argparse.Namespace, data: Dataset, metric: str, held: Resources) -> list[SpecificityRow]:
    return specificity(
        data,
        metric,
        tagger=arguments.tagger,
        features=arguments.features,
        groups=arguments.groups,
        draws=arguments.repeat,
        settings=settings_of(arguments),
        resources=held,
    )


def _tagnoise(arguments: argparse.Namespace, data: Dataset, metric: str, held: Resources) -> list[NoiseRow]:
    return tagnoise(
        data,
        metric,
        tagger=arguments.tagger,
        features=arguments.features,
        noise=arguments.noise,
        side=arguments.side,
        rates=arguments.rates,
        settings=settings_of(arguments),
        resources=held,
    )


_NAMED: dict[str, tuple[str, Callable[[Parser], None], Work]] = {
    "hybrid": ("scores of systems with a known part of a feature right", _alphas(ALPHAS), _hybrid),
    "specificity": ("shares of random groups of words, which mean nothing", _specificity_options, _specificity),
    "frequency": ("shares of a feature cut down to a part of its words", _alphas(QUARTERS), _frequency),
    "tagnoise": ("shares with a part of the tags wrong", _noise_options, _tagnoise),
}

EXPERIMENTS: dict[str, Experiment] = {
    title: _experiment(title, *parts) for name, parts in _NAMED.items() for title in (f"muler-{name}", name)
}
