"""`whyscore metaeval spans`: predicted error spans against those that people marked."""

import argparse

from whyscore.analysis.metaeval.spans import SpansResult, metaevaluate_spans
from whyscore.cli.options import Parser, add_output
from whyscore.cli.output import emit, format_of, tell, tell_signatures, to_json
from whyscore.data.reading import read_foreign
from whyscore.errors import UserError
from whyscore.present import render
from whyscore.stats.spans import Fit, SpanResult
from whyscore.text.strict import line, number
from whyscore.types import Dataset
from whyscore.types.table import Cell, Table

EXAMPLES = """\
examples:
  whyscore metaeval spans predicted.jsonl --gold mqm.tsv
  whyscore metaeval spans predicted.jsonl --gold GOLD_FOLDER --severity -f json
"""

_MEASURES = {"characters": "characters", "exact": "exact (EM)", "partial": "partial (MP)", "credit": "credit (MPP)"}


def add_arguments(parser: Parser) -> None:
    """Add prediction, gold and how spans count."""
    parser.add_argument("data", metavar="FILE", help="predicted spans in any dialect, with their texts")
    parser.add_argument("--gold", required=True, metavar="PATH", help="marked spans in any dialect, or a gold folder")
    parser.add_argument("--severity", action="store_true", help="exact matches must have the severity too")
    parser.add_argument("--weights", nargs="+", metavar="NAME=X", help="of spans by severity, e.g. minor=1 major=5")
    add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    """Judge the spans and write the result out."""
    predicted, gold = _read(arguments, arguments.data), _read(arguments, arguments.gold)
    found = metaevaluate_spans(predicted, gold, severity=arguments.severity, weights=_weights(arguments.weights))
    chosen = format_of(arguments)
    if chosen in ("json", "jsonl"):
        record = _record(found, gold.name)
        emit(arguments, [to_json(record) if chosen == "json" else line(record)])
        return 0
    emit(arguments, [render(_table(found), chosen, decimals=arguments.width, safe=arguments.safe_csv)])
    if chosen == "text":
        tell_signatures(arguments, [found.signature])
    return 0


def _read(arguments: argparse.Namespace, path: str) -> Dataset:
    data = read_foreign(path)
    for finding in data.findings:
        tell(arguments, f"note: {finding}")
    return data


def _weights(given: list[str] | None) -> dict[str, float] | None:
    if given is None:
        return None
    try:
        return {name: float(weight) for name, weight in (item.split("=") for item in given)}
    except ValueError:
        raise UserError(f"cannot read the weights {' '.join(given)}: write them like minor=1 major=5") from None


def _fits(own: SpanResult) -> dict[str, Fit]:
    return {name: getattr(own, name) for name in _MEASURES}


def _record(found: SpansResult, gold: str) -> dict[str, object]:
    sides = {
        str(side): {"n": own.n, "predicted": own.predicted, "gold": own.gold}
        | {
            name: {key: number(getattr(fit, key)) for key in ("precision", "recall", "f1")}
            for name, fit in _fits(own).items()
        }
        for side, own in found.sides.items()
    }
    return {"schema_version": 1, "kind": "spans", "signature": str(found.signature), "gold": gold, "sides": sides}


def _table(found: SpansResult) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (str(side), _MEASURES[name], own.predicted, own.gold, fit.precision, fit.recall, fit.f1)
        for side, own in found.sides.items()
        for name, fit in _fits(own).items()
    ]
    columns = ("side", "measure", "predicted", "gold", "precision", "recall", "f1")
    return Table(columns, tuple(rows), best=frozenset())
