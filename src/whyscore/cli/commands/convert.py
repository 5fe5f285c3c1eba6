"""`whyscore convert`: word scores to spans, spans to words, and any dialect to any other."""

import argparse
import json
from pathlib import Path

from whyscore.analysis.convert import (
    TARGETS,
    Converted,
    categorised,
    chosen_group,
    convert,
    spans_by,
    thresholds_of,
    to_submission,
)
from whyscore.cli.options import Parser
from whyscore.cli.output import emit, tell
from whyscore.data.explanations import read_explanations
from whyscore.data.formats.dialects import OFFSETS
from whyscore.data.formats.eval4nlp import TRACKS, read_gold
from whyscore.data.formats.mqm import WEIGHTS, Weights
from whyscore.data.formats.text import read_texts
from whyscore.data.reading import DIALECTS, dialect_of, read, read_foreign
from whyscore.errors import DataError, UserError
from whyscore.stats.spans import JOINS
from whyscore.text.files import whole
from whyscore.types import Dataset

EXAMPLES = """\
examples:
  whyscore convert mqm.tsv --to whyscore -o rated.jsonl
  whyscore convert explanations.jsonl --to spans --threshold auto -o spans.jsonl
  whyscore convert explanations.jsonl --to eval4nlp --team me --track constrained -o submission/
  whyscore convert mqm.tsv --to tags -o dev.tgt-tags
"""


def add_arguments(parser: Parser) -> None:
    """Add what to read, what to write, and how scores become spans."""
    parser.add_argument("data", metavar="FILE", help="explanations, spans or ratings; a gold folder")
    parser.add_argument("--to", required=True, choices=TARGETS, help="what to write")
    parser.add_argument("--from", dest="origin", choices=DIALECTS, help="what the file is, where it does not say so")
    parser.add_argument("-o", "--output", metavar="PATH", help="file or folder to write (default: stdout)")
    parser.add_argument("-q", "--quiet", action="store_true", help="no notes on stderr")
    texts = parser.add_argument_group("texts, where the file does not hold them")
    texts.add_argument("--texts", metavar="FILE", help="a data file with the texts")
    texts.add_argument("-s", "--source", metavar="FILE", help="source, one segment a line")
    texts.add_argument("-t", "--hypotheses", nargs="+", metavar="FILE", help="hypotheses of one or more systems")
    texts.add_argument("--systems", nargs="+", metavar="NAME", help="names of the systems")
    _add_spans(parser)
    other = parser.add_argument_group("other")
    other.add_argument("--pick", metavar="NAME", help="which explanations, where a file holds several kinds")
    other.add_argument(
        "--weights", default="google", metavar="NAME|FILE", help="MQM weights: google, xcomet, a JSON file"
    )
    other.add_argument("--offsets", choices=OFFSETS, default="codepoints", help="units of ESA spans")
    other.add_argument("--bad", action="store_true", help="write tags as OK and BAD")
    other.add_argument("--tagger", metavar="SPEC", help="give spans without a category the feature a tagger finds")
    other.add_argument("--into", metavar="FILE", help="the XLIFF file to mark")
    other.add_argument("--team", metavar="NAME", help="eval4nlp: writes metadata.txt")
    other.add_argument("--track", choices=TRACKS, default="constrained", help="eval4nlp: for metadata.txt")
    other.add_argument("--description", metavar="TEXT", help="eval4nlp: for metadata.txt")


def _add_spans(parser: Parser) -> None:
    group = parser.add_argument_group("from word scores to spans")
    group.add_argument(
        "--threshold", nargs="+", metavar="X", help="auto, or error scores for minor, major and critical"
    )
    group.add_argument("--top", type=float, metavar="SHARE", help="flag this share of the words instead")
    group.add_argument("--tune-on", metavar="GOLD", help="gold folder of the same segments: the best MCC there")
    group.add_argument("--precision", type=float, metavar="P", help="with --tune-on: reach this precision")
    group.add_argument("--rate", type=float, metavar="R", help="with --tune-on: flag this share")
    group.add_argument("--join", choices=JOINS, default="worst", help="severity of joined words")
    group.add_argument("--gap", type=int, default=0, metavar="N", help="bridge up to N unflagged words")


def run(arguments: argparse.Namespace) -> int:
    """Convert, write, and say what could not be said."""
    kind = arguments.origin or dialect_of(arguments.data)
    if kind == "explanations" and arguments.to == "eval4nlp":
        done = _submitted(arguments)
    else:
        data = _read(arguments, kind)
        if arguments.tagger:
            data = categorised(data, arguments.tagger)
        for finding in data.findings:
            tell(arguments, f"note: {finding}")
        done = convert(
            data,
            arguments.to,
            output=arguments.output,
            origin=_origin(arguments, kind),
            offsets=arguments.offsets,
            into=arguments.into,
            words=("OK", "BAD") if arguments.bad else ("0", "1"),
        )
    for what, count in (done.lost or {}).items():
        tell(arguments, f"note: {arguments.to} cannot say: {what} ({count})")
    for file in done.files:
        tell(arguments, f"wrote {file}")
    if done.lines:
        emit(arguments, done.lines)
    return 0


def _submitted(arguments: argparse.Namespace) -> Converted:
    if not arguments.output:
        raise UserError("a submission is a folder: name it with -o")
    return to_submission(
        read_explanations(arguments.data),
        arguments.output,
        group=arguments.pick,
        team=arguments.team,
        track=arguments.track,
        description=arguments.description,
    )


def _read(arguments: argparse.Namespace, kind: str) -> Dataset:
    texts = _texts(arguments)
    if kind != "explanations":
        weights = _weights(arguments.weights)
        return read_foreign(arguments.data, kind, texts=texts, weights=weights, offsets=arguments.offsets)
    stored = read_explanations(arguments.data)
    wanted = arguments.threshold
    if wanted is not None:
        wanted = "auto" if wanted == ["auto"] else [_number(value) for value in wanted]
    found = thresholds_of(
        stored,
        wanted,
        gold=read_gold(arguments.tune_on) if arguments.tune_on else None,
        precision=arguments.precision,
        rate=arguments.rate,
        top=arguments.top,
        join=arguments.join,
        gap=arguments.gap,
        group=arguments.pick,
    )
    given = {"minor": found.minor, "major": found.major, "critical": found.critical, "top": found.top}
    told = ", ".join(f"{name} {value:g}" for name, value in given.items() if value is not None)
    tell(arguments, f"note: error scores above: {told}")
    return spans_by(stored, found, arguments.pick, texts)


def _origin(arguments: argparse.Namespace, kind: str) -> str:
    if kind != "explanations":
        return kind
    return chosen_group(read_explanations(arguments.data), arguments.pick)[0]


def _texts(arguments: argparse.Namespace) -> Dataset | None:
    if arguments.texts:
        return read(arguments.texts)
    if arguments.hypotheses:
        return read_texts(arguments.hypotheses, source=arguments.source, systems=arguments.systems)
    return None


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise UserError(f"--threshold is {value!r}, expected auto or numbers") from None


def _weights(name: str) -> Weights:
    if name in WEIGHTS:
        return WEIGHTS[name]
    if not Path(name).is_file():
        raise UserError(f"no MQM weights named {name!r}: use {', '.join(WEIGHTS)}, or a JSON file of weights")
    try:
        rules = json.loads(Path(name).read_text("utf-8"), parse_int=whole)
        return Weights({str(rule): float(weight) for rule, weight in rules.items()})
    except (OSError, ValueError, AttributeError, TypeError, RecursionError) as error:
        raise DataError(f"no table of weights: {error}; expected an object of numbers", file=name) from error
