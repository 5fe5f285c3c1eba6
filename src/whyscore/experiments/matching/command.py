"""The experiments about matching: what unrelated texts score, and which layer of a model agrees with people."""

import argparse
from collections.abc import Iterator

from whyscore.analysis.metaeval.gold import segments_of
from whyscore.cli.commands.experiment import Experiment
from whyscore.cli.legacy import dataset
from whyscore.cli.options import Parser, add_inputs, add_metrics, add_output, natural
from whyscore.cli.output import document, emit, format_of, tell, tell_signatures
from whyscore.data.files import read_lines
from whyscore.data.formats.eval4nlp import Gold, read_gold
from whyscore.data.records import row_lines
from whyscore.errors import UserError
from whyscore.experiments.matching.studies import COEFFICIENTS, PAIRS, LayerSweep, baseline, layers
from whyscore.metrics.matching.baseline import baseline_lines
from whyscore.present import render
from whyscore.types import Dataset, Entry
from whyscore.types.table import Cell, Table

_BASELINE = """\
examples:
  whyscore experiment baseline english.txt -m "bertscore(model='roberta-large')" -o roberta.tsv
  whyscore score -t sys.txt -r ref.txt -m "bertscore(model='roberta-large', baseline='roberta.tsv')"
"""
_LAYERS = """\
examples:
  whyscore experiment layers data.tsv --human da -m "xbertscore(model='./folder')"
  whyscore experiment layers --gold GOLD -m "xbertscore(model='xlm-roberta-large')" -o layers.tsv
"""
_DIGITS = 4


def _add_baseline(parser: Parser) -> None:
    add_metrics(parser)
    parser.add_argument("texts", metavar="FILE", help="texts in one language, one a line")
    parser.add_argument("--pairs", type=int, default=PAIRS, metavar="N", help=f"random pairs (default: {PAIRS:,})")
    parser.add_argument("--seed", type=natural, default=0, help="fixes which pairs (default: 0)")
    parser.add_argument("--encoding", default="utf-8", metavar="NAME", help="of the file (default: utf-8)")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the table to this file instead of stdout")
    parser.add_argument("-q", "--quiet", action="store_true", help="nothing on stderr")


def _run_baseline(arguments: argparse.Namespace) -> int:
    """Write the table that `bertscore(baseline=FILE)` reads."""
    lines = read_lines(arguments.texts, encoding=arguments.encoding)
    found = baseline(lines.texts, _metric(arguments, "bertscore"), pairs=arguments.pairs, seed=arguments.seed)
    emit(arguments, baseline_lines(found.baseline, found.layer))
    left = len(lines.texts) - found.texts
    if left:
        tell(arguments, f"note: {left} lines are blank or come again; they were left out")
    tell(arguments, f"{found.pairs:,} random pairs of {found.texts:,} texts, layer {found.layer}")
    tell_signatures(arguments, [found.signature])
    return 0


def _add_layers(parser: Parser) -> None:
    add_metrics(parser)
    parser.add_argument("--gold", metavar="PATH", help="word tags: a gold folder or zip of Eval4NLP 2021 or WMT22")
    add_inputs(parser)
    add_output(parser)


def _run_layers(arguments: argparse.Namespace) -> int:
    """Write what every layer of the model agrees with."""
    if arguments.human and len(arguments.human) > 1:
        raise UserError(f"--human {' '.join(arguments.human)}: layers are compared with one human score at a time")
    data, gold = _data(arguments)
    human = arguments.human[0] if arguments.human else None
    found = layers(data, _metric(arguments, "xbertscore"), human=human, gold=gold)
    emit(arguments, _lines(arguments, data, found))
    for note in found.notes:
        tell(arguments, f"note: {note}")
    if format_of(arguments) not in ("json", "jsonl"):
        tell_signatures(arguments, [found.signature])
    return 0


def _metric(arguments: argparse.Namespace, usual: str) -> str:
    asked = arguments.metrics or [usual]
    if len(asked) > 1:
        raise UserError(f"-m {' '.join(asked)}: this experiment takes one metric at a time")
    return str(asked[0])


def _data(arguments: argparse.Namespace) -> tuple[Dataset, Gold | None]:
    """Return the texts and the word tags; a gold folder has both."""
    gold = read_gold(arguments.gold) if arguments.gold else None
    if gold is None or arguments.data or arguments.hypotheses:
        return dataset(arguments), gold
    for finding in gold.findings:
        tell(arguments, f"note: {finding}")
    pairs = zip(gold.names(), segments_of(gold), strict=True)
    return Dataset(gold.name, tuple(Entry(name, gold.name, segment) for name, segment in pairs)), gold


def _lines(arguments: argparse.Namespace, data: Dataset, found: LayerSweep) -> Iterator[str]:
    chosen = format_of(arguments)
    records = [row.record() for row in found.rows]
    if chosen in ("json", "jsonl"):
        lines = row_lines("metaeval", data, records, {"layers": str(found.signature)})
        yield from document(lines) if chosen == "json" else lines
        return
    columns = tuple(records[0])
    directed = {name: True for name in (*COEFFICIENTS, "auc", "source_auc") if name in columns}
    rows = tuple(tuple(_cell(value) for value in record.values()) for record in records)
    digits = _DIGITS if arguments.width is None else arguments.width
    yield render(Table(columns, rows, directed), chosen, decimals=digits, safe=arguments.safe_csv)


def _cell(value: object) -> Cell:
    return value if isinstance(value, int | float) else None


EXPERIMENTS: dict[str, Experiment] = {
    "baseline": Experiment(
        "what unrelated texts score, for rescaling BERTScore", _add_baseline, _run_baseline, _BASELINE
    ),
    "layers": Experiment("which layer of a model agrees best with people", _add_layers, _run_layers, _LAYERS),
}
