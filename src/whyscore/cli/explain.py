"""`whyscore explain`: which words made the score."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from io import StringIO

from rich.console import Console

from whyscore.analysis.common import as_metric, asked_name, spoken
from whyscore.analysis.explain import Unexplained, attempt, cost, require_matrix, word_matrices
from whyscore.analysis.mee import Behind, is_mee, mee_behind
from whyscore.analysis.score import check_whole, cuts_told
from whyscore.cli.arguments import add_cut_gate, add_inputs, add_metrics, add_output, add_running
from whyscore.cli.estimates import tell_time
from whyscore.cli.mee_tables import part_bars
from whyscore.cli.output import document, emit, format_of, tell, tell_signatures
from whyscore.cli.parsing import positive
from whyscore.cli.progress import progress
from whyscore.cli.setup import dataset, resources
from whyscore.cli.stable import add_until_stable, raised
from whyscore.cli.word_tables import word_table
from whyscore.cli.words import Terminal, show
from whyscore.data.records import Explained, Heat, explanation_lines
from whyscore.data.tabular import render
from whyscore.errors import UserError
from whyscore.explainers.engine import failure_message
from whyscore.scoring.stack import Resources
from whyscore.types import Dataset, Entry, Explanation

EXAMPLES = """\
examples:
  whyscore explain --text -s "Ich habe einen Hund" -t "I have a cat" -r "I have a dog" -m chrf -e erasure
  whyscore explain -r ref.txt -t sys.txt -m chrf -e "lime(samples=100)" --side hypothesis reference -o why.jsonl
  whyscore explain -r ref.txt -t sys.txt -m my_metric.py:score -e shap
  whyscore explain --sample --limit 3 -m ter -e intrinsic
  whyscore explain -r ref.txt -t sys.txt -m chrf -e erasure -o words.tsv
  whyscore explain -s src.txt -t sys.txt -m xbertscore -e matching --matrix -o why.jsonl
"""

_DIGITS = 2
_MOST_DIGITS = 8
_RECORDS = ("json", "jsonl")


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
    add_until_stable(parser)
    parser.add_argument("--limit", type=positive, metavar="N", help="only the first N segments of each system")
    parser.add_argument(
        "--matrix", action="store_true",
        help="add the similarities of words to json and jsonl (bertscore, xbertscore)",
    )  # fmt: skip
    add_inputs(parser)
    add_cut_gate(parser)
    add_output(parser)
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
    cut = cuts_told({name: name for name in arguments.metrics}, data) if arguments.fail_if_truncated else []
    with progress(arguments) as bar:
        held = resources(arguments, bar)
        found = [
            (metric, explainer, *_explained(arguments, data, metric, explainer, held))
            for metric in dict.fromkeys(arguments.metrics)
            for asked in dict.fromkeys(explainers)
            for explainer in [_stable(arguments, data, metric, asked, held)]
        ]
    _write(arguments, data, found)
    failures = [failure for *_, failure in found if failure is not None]
    if failures:
        raise failures[0]
    check_whole(cut)
    return 0


def _stable(arguments: argparse.Namespace, data: Dataset, metric: str, explainer: str, held: Resources) -> str:
    options = {"unit": arguments.unit, "sides": arguments.sides, "masker": arguments.masker, "seed": arguments.seed}
    return raised(arguments, data, metric, explainer, options | {"resources": held})


def _check_matrix(arguments: argparse.Namespace) -> None:
    if format_of(arguments) not in _RECORDS:
        raise UserError("--matrix goes into records: add -f jsonl, or -o FILE.jsonl")
    for metric in arguments.metrics:
        require_matrix(metric)


Found = tuple[str, str, list[tuple[Entry, Explanation]], Unexplained | None]


def _explained(
    arguments: argparse.Namespace, data: Dataset, metric: str, explainer: str, held: Resources
) -> tuple[list[tuple[Entry, Explanation]], Unexplained | None]:
    """Return the explanations with their entries, and the failure that left some out."""
    outcome = attempt(data, metric, explainer, **_options(arguments), resources=held)  # type: ignore[arg-type]
    failed = Unexplained(failure_message(outcome.failures, len(data))) if outcome.failures else None
    return list(_with_entries(data, outcome.explanations)), failed


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
    emit(arguments, _planned(arguments, data, explainers))
    return 0


def _planned(arguments: argparse.Namespace, data: Dataset, explainers: Sequence[str]) -> Iterator[str]:
    for metric in dict.fromkeys(arguments.metrics):
        for explainer in dict.fromkeys(explainers):
            asked = cost(data, metric, explainer, resources=resources(arguments), **_options(arguments))  # type: ignore[arg-type]
            told = f"{asked.asked} texts, {asked.distinct} distinct, {asked.stored} already stored"
            yield f"{metric} {explainer}: {told}\n"
            used = spoken(as_metric(metric), data.languages)
            tell_time(arguments, f"{metric} {explainer}", used, data.segments, asked.distinct - asked.stored)


def _write(arguments: argparse.Namespace, data: Dataset, found: Sequence[Found]) -> None:
    signatures = {
        f"{one.signature.spec} of {metric}": one.signature for metric, _, pairs, _ in found for _, one in pairs[:1]
    }
    chosen = format_of(arguments)
    if chosen == "text":
        _show(arguments, data, found)
        tell_signatures(arguments, signatures.values())
        return
    explained = (item for one in found for item in _records(arguments, data, one))
    if chosen in _RECORDS:
        lines = explanation_lines(data, explained, {name: str(signature) for name, signature in signatures.items()})
        emit(arguments, document(lines) if chosen == "json" else lines)
    else:
        table = word_table(explained, [str(signature) for signature in signatures.values()])
        emit(arguments, [render(table, chosen, decimals=arguments.width, safe=arguments.safe_csv)])
    if not signatures:
        tell(arguments, "note: nothing was explained")


def _records(arguments: argparse.Namespace, data: Dataset, found: Found) -> Iterator[Explained]:
    metric, explainer, pairs, _ = found
    explanations = [one for _, one in pairs]
    heats: Sequence[Heat | None] = [None] * len(pairs)
    if arguments.matrix:
        heats = word_matrices(data, metric, explanations, explainer, unit=arguments.unit)
    behind: Sequence[Behind | None] = [None] * len(pairs)
    if is_mee(metric):
        behind = mee_behind(data, metric, explanations)
    for (entry, one), heat, known in zip(pairs, heats, behind, strict=True):
        named = Explained(entry, asked_name(metric), asked_name(explainer), one, heat=heat)
        matches = known and [[match._asdict() for match in word] for word in known.matches]
        yield named._replace(parts=known and known.parts, matches=matches)


def _show(arguments: argparse.Namespace, data: Dataset, found: Sequence[Found]) -> None:
    digits = _digits(found) if arguments.width is None else arguments.width
    titled = [
        (f"{entry.system} {entry.id} · {metric} {one.score:.{_DIGITS}f} · {one.signature.spec}{bars}", one)
        for metric, _, pairs, _ in found
        for (entry, one), bars in zip(pairs, _bars(data, metric, [one for _, one in pairs]), strict=True)
    ]
    if arguments.output and arguments.output != "-":
        text = StringIO()
        show(titled, Console(file=text, color_system=None, width=120), digits)
        emit(arguments, [text.getvalue()])
        return
    console = Terminal(file=sys.stdout, highlight=False)
    show(titled, console, digits)


def _bars(data: Dataset, metric: str, explanations: Sequence[Explanation]) -> list[str]:
    """Return the parts of each score as bars, where a metric has parts that no word stands for."""
    if not is_mee(metric):
        return [""] * len(explanations)
    behind = mee_behind(data, metric, explanations)
    return [f"\n{part_bars(known.parts)}" if "syn" in known.parts else "" for known in behind]


def _digits(found: Sequence[Found]) -> int:
    """Return enough decimals for the largest importance to show two digits."""
    largest = max(
        (float(abs(one.importance).max(initial=0.0)) for *_, pairs, _ in found for _, one in pairs), default=0.0
    )
    return next((digits for digits in range(_DIGITS, _MOST_DIGITS) if largest >= 10.0**-digits * 10), _MOST_DIGITS)
