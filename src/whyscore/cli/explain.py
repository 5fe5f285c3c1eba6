"""`whyscore explain`: which words made the score."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from io import StringIO

from rich.console import Console

from whyscore.cli.arguments import add_inputs, add_metrics, add_output, add_running
from whyscore.cli.output import document, emit, format_of, tell, tell_signatures
from whyscore.cli.progress import progress
from whyscore.cli.setup import dataset, resources
from whyscore.cli.words import show
from whyscore.errors import UserError
from whyscore.io.recording import Explained, Heat, explanation_lines
from whyscore.jobs.common import Resources, asked_name
from whyscore.jobs.explain import Unexplained, cost, explain
from whyscore.jobs.word_matrix import require_matrix, word_matrices
from whyscore.types import Dataset, Entry, Explanation

EXAMPLES = """\
examples:
  whyscore explain --text -s "Ich habe einen Hund" -t "I have a cat" -r "I have a dog" -m chrf -e erasure
  whyscore explain -r ref.txt -t sys.txt -m chrf -e "lime(samples=100)" --side hypothesis reference -o why.jsonl
  whyscore explain -r ref.txt -t sys.txt -m my_metric.py:score -e shap
  whyscore explain --sample --limit 3 -m ter -e intrinsic
  whyscore explain -s src.txt -t sys.txt -m xbertscore -e matching --matrix -o why.jsonl
"""

_DIGITS = 2
_MOST_DIGITS = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add inputs, metrics, explainers and output."""
    add_metrics(parser)
    parser.add_argument(
        "-e", "--explainers", "--explainer", dest="explainers", nargs="+", action="extend", metavar="SPEC",
        help="erasure, 'lime(samples=100)', shap, intrinsic (default: erasure); see: whyscore list explainers",
    )  # fmt: skip
    parser.add_argument(
        "--side", "--sides", dest="sides", nargs="+", action="extend", choices=("hypothesis", "source", "reference"),
        help="which texts to explain (default: all that the metric reads)",
    )  # fmt: skip
    parser.add_argument(
        "--unit", default="word", metavar="SPEC", help="word (default), char, auto, sentence, 'chunk(3)'"
    )
    parser.add_argument("--masker", metavar="SPEC", help="what a hidden word becomes (default: the explainer's choice)")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="use N seeds, say how well they agree")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N segments of each system")
    parser.add_argument(
        "--matrix", action="store_true",
        help="add the similarities of words to json and jsonl (bertscore, xbertscore)",
    )  # fmt: skip
    add_inputs(parser)
    add_output(parser, ("text", "json", "jsonl"))
    add_running(parser)


def run(arguments: argparse.Namespace) -> int:
    """Explain everything that was asked for and write it out."""
    if not arguments.metrics:
        raise UserError("no metric: name one with -m, for example -m chrf")
    if arguments.matrix:
        _check_matrix(arguments)
    data = _limited(dataset(arguments), arguments.limit)
    explainers = arguments.explainers or ["erasure"]
    if arguments.dry_run:
        return _dry_run(arguments, data, explainers)
    with progress(arguments) as bar:
        held = resources(arguments, bar)
        found = [
            (metric, explainer, *_explained(arguments, data, metric, explainer, held))
            for metric in arguments.metrics
            for explainer in explainers
        ]
    _write(arguments, data, found)
    failures = [failure for *_, failure in found if failure is not None]
    if failures:
        raise failures[0]
    return 0


def _check_matrix(arguments: argparse.Namespace) -> None:
    if format_of(arguments) == "text":
        raise UserError("--matrix goes into records: add -f jsonl, or -o FILE.jsonl")
    for metric in arguments.metrics:
        require_matrix(metric)


Found = tuple[str, str, list[tuple[Entry, Explanation]], Unexplained | None]


def _explained(
    arguments: argparse.Namespace, data: Dataset, metric: str, explainer: str, held: Resources
) -> tuple[list[tuple[Entry, Explanation]], Unexplained | None]:
    """Return the explanations with their entries, and the failure that left some out."""
    failure = None
    try:
        results = explain(data, metric, explainer, **_options(arguments), resources=held)  # type: ignore[arg-type]
    except Unexplained as error:
        results, failure = error.explanations, error
    return list(_with_entries(data, results)), failure


def _options(arguments: argparse.Namespace) -> dict[str, object]:
    return {
        "sides": arguments.sides,
        "unit": arguments.unit,
        "masker": arguments.masker,
        "seed": arguments.seed,
        "repeat": arguments.repeat,
    }


def _with_entries(data: Dataset, results: Sequence[Explanation]) -> Iterator[tuple[Entry, Explanation]]:
    for one in results:
        yield data.entries[one.index], one


def _limited(data: Dataset, limit: int | None) -> Dataset:
    if limit is None:
        return data
    wanted = set(data.ids[:limit])
    return Dataset(data.name, tuple(entry for entry in data.entries if entry.id in wanted), data.languages)


def _dry_run(arguments: argparse.Namespace, data: Dataset, explainers: Sequence[str]) -> int:
    for metric in arguments.metrics:
        for explainer in explainers:
            asked = cost(data, metric, explainer, resources=resources(arguments), **_options(arguments))  # type: ignore[arg-type]
            told = f"{asked.asked} texts, {asked.distinct} distinct, {asked.stored} already stored"
            emit(arguments, [f"{metric} {explainer}: {told}\n"])
    return 0


def _write(arguments: argparse.Namespace, data: Dataset, found: Sequence[Found]) -> None:
    signatures = {
        f"{one.signature.spec} of {metric}": one.signature for metric, _, pairs, _ in found for _, one in pairs[:1]
    }
    chosen = format_of(arguments)
    if chosen == "text":
        _show(arguments, found)
        tell_signatures(arguments, signatures.values())
        return
    explained = (item for one in found for item in _records(arguments, data, one))
    lines = explanation_lines(data, explained, {name: str(signature) for name, signature in signatures.items()})
    emit(arguments, document(lines) if chosen == "json" else lines)
    if not signatures:
        tell(arguments, "note: nothing was explained")


def _records(arguments: argparse.Namespace, data: Dataset, found: Found) -> Iterator[Explained]:
    metric, explainer, pairs, _ = found
    heats: Sequence[Heat | None] = [None] * len(pairs)
    if arguments.matrix:
        heats = word_matrices(data, metric, [one for _, one in pairs], explainer, unit=arguments.unit)
    for (entry, one), heat in zip(pairs, heats, strict=True):
        yield Explained(entry, asked_name(metric), asked_name(explainer), one, heat=heat)


def _show(arguments: argparse.Namespace, found: Sequence[Found]) -> None:
    digits = _digits(found) if arguments.width is None else arguments.width
    titled = [
        (f"{entry.system} {entry.id} · {metric} {one.score:.{_DIGITS}f} · {one.signature.spec}", one)
        for metric, _, pairs, _ in found
        for entry, one in pairs
    ]
    if arguments.output and arguments.output != "-":
        text = StringIO()
        show(titled, Console(file=text, color_system=None, width=120), digits)
        emit(arguments, [text.getvalue()])
        return
    console = Console(file=sys.stdout, highlight=False)
    show(titled, console, digits)


def _digits(found: Sequence[Found]) -> int:
    """Return enough decimals for the largest importance to show two digits."""
    largest = max(
        (float(abs(one.importance).max(initial=0.0)) for *_, pairs, _ in found for _, one in pairs), default=0.0
    )
    return next((digits for digits in range(_DIGITS, _MOST_DIGITS) if largest >= 10.0**-digits * 10), _MOST_DIGITS)
