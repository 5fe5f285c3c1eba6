"""`whyscore explain`: which words made the score.

Explanations as a table: one row per word.

Explanations on a terminal: words on colours, or in brackets with their numbers where there is no colour.

`--until-stable`: raise the budget of sampled explainers until they repeat themselves.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from itertools import groupby

from rich.console import Console, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from whyscore import marking
from whyscore.analysis.common import as_metric, requested_name, with_languages
from whyscore.analysis.explain import Unexplained, attempt, cost, require_matrix, word_matrices
from whyscore.analysis.mee import Behind, is_mee, mee_behind
from whyscore.analysis.metaeval.faithfulness import until_stable
from whyscore.analysis.score import fail_if_truncated, truncation_messages
from whyscore.cli.commands.score import part_bars
from whyscore.cli.legacy import dataset, progress, resources
from whyscore.cli.options import (
    Parser,
    QuietSettings,
    add_cut_gate,
    add_inputs,
    add_metrics,
    add_output,
    add_running,
    positive,
    read_settings,
)
from whyscore.cli.output import document, emit, format_of, tell, tell_signatures
from whyscore.cli.setup import tell_time
from whyscore.data.records import explanation_lines
from whyscore.errors import UserError
from whyscore.explainers.engine import failure_message
from whyscore.present import render
from whyscore.registry import spec_of
from whyscore.scoring.stack import Resources
from whyscore.types import Dataset, Entry, Explanation, ExplanationRecord, Inputs, SimilarityMatrix
from whyscore.types.table import Cell, Table

COLUMNS = ("id", "system", "metric", "explainer", "side", "reference", "word", "start", "end", "importance")


def word_table(explained: Iterable[ExplanationRecord], notes: Sequence[str] = ()) -> Table:
    """Return the words of all explanations with their places and importances; notes stand below."""
    return Table(COLUMNS, tuple(row for one in explained for row in _rows(one)), notes=tuple(notes))


def _rows(one: ExplanationRecord) -> Iterable[tuple[Cell, ...]]:
    named = one.id, one.system, one.metric, one.explainer, str(one.place.side), one.place.reference
    for word, (start, end), importance in zip(one.words, one.spans.tolist(), one.importance.tolist(), strict=True):
        yield (*named, word, start, end, importance)


_NAMED = 3


class Terminal(Console):
    """A console that leaves a closed pipe to whoever called, where rich would end the program with a failure."""

    def on_broken_pipe(self) -> None:
        """Raise what happened."""
        raise BrokenPipeError


def segment_view(explanations: Sequence[Explanation], digits: int) -> RenderableType:
    """Return all places of one segment below each other, coloured on one common scale."""
    largest = max((float(abs(one.importance).max()) for one in explanations if len(one.importance)), default=0.0)
    grid = Grid.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for one in explanations:
        grid.add_row(Text(str(one.place), style="bold"), _coloured(one, largest))
        for line in _remarks(one, digits):
            grid.add_row("", Text(line, style="dim"))
    for place, text in _context(explanations):
        grid.add_row(Text(place, style="dim"), Text(text, style="dim"))
    return grid


def plain_view(explanations: Sequence[Explanation], digits: int) -> Iterator[str]:
    """Yield the lines of one segment for where there is no colour: every word in brackets with its number."""
    context = _context(explanations)
    width = (
        max(len(place) for place in [*(str(one.place) for one in explanations), *(place for place, _ in context)]) + 2
    )
    for one in explanations:
        words = marking.plain(one.words.text, one.words.spans, one.importance.tolist(), digits)
        yield f"{one.place!s:<{width}}{words}"
        yield from (f"{'':<{width}}{line}" for line in _remarks(one, digits))
    yield from (f"{place:<{width}}{text}" for place, text in context)


def legend() -> Text:
    """Return the scale in words and colours."""
    scale = Text("costs points ")
    for step in (-1.0, -0.6, -0.3, 0.0, 0.3, 0.6, 1.0):
        scale.append(f" {step:+.1f} ", style=_style(step))
    return scale.append(" earns points (1: the strongest word)")


def show(explanations: Iterable[tuple[str, Explanation]], console: Console, digits: int) -> None:
    """Print explanations, grouped by their titles, with a legend where colours are used."""
    colour = console.color_system is not None and not console.no_color
    for title, group in groupby(explanations, key=lambda pair: pair[0]):
        found = [one for _, one in group]
        console.print(Text(title), soft_wrap=True)
        if colour:
            console.print(segment_view(found, digits))
        else:
            for line in plain_view(found, digits):
                console.print(Text(line), soft_wrap=True)
        console.print()
    if colour:
        console.print(legend())


def _context(explanations: Sequence[Explanation]) -> list[tuple[str, str]]:
    """Return the texts of the segment that are not explained: readers want to see them all the same."""
    segment = explanations[0].segment
    explained = {one.place for one in explanations}
    everything = Inputs.HYPOTHESIS | Inputs.SOURCE | Inputs.REFERENCES
    return [(str(place), segment.text(place)) for place in segment.places(everything) if place not in explained]


def _coloured(one: Explanation, largest: float) -> Text:
    strength = marking.strengths(one.importance.tolist(), largest)
    text = Text()
    for piece, number in marking.pieces(one.words.text, one.words.spans):
        text.append(piece, style="" if number is None else _style(strength[number]))
    return text


def _style(strength: float) -> str:
    red, green, blue = marking.colour(strength)
    return f"{marking.ink(strength)} on rgb({red},{green},{blue})"


def _remarks(one: Explanation, digits: int) -> list[str]:
    """Return what stands below a text: the extreme words, the quality of the explanation, warnings, edits."""
    words = list(one.words)
    order = one.importance.argsort(kind="stable").tolist()
    worst = [f"{words[i]} {one.importance[i]:+.{digits}f}" for i in order if one.importance[i] < 0][:_NAMED]
    best = [f"{words[i]} {one.importance[i]:+.{digits}f}" for i in reversed(order) if one.importance[i] > 0][:_NAMED]
    facts = [f"{one.probes} probes" if one.probes > 1 else ""]
    facts.append("" if one.fit is None else f"fit {one.fit:.2f}")
    facts.append("" if one.stability is None else f"stability {one.stability:.2f}")
    facts += [one.method or "", *one.flags]
    lines = [f"costs: {', '.join(worst)}"] if worst else []
    lines += [f"earns: {', '.join(best)}"] if best else []
    if one.notes:
        costly = [i for i in range(len(words)) if one.importance[i] < 0]
        told = [f"{words[i]}: {one.notes[i]}" for i in costly or range(len(words)) if one.notes[i]]
        lines += ["; ".join(told)] if told else []
    known = " · ".join(fact for fact in facts if fact)
    return [*lines, known] if known else lines


def add_until_stable(parser: Parser) -> None:
    """Add the agreement that is wanted of two halves of the probes."""
    parser.add_argument("--until-stable", type=float, metavar="R", help="raise budgets until halves agree by R")


def raised(
    arguments: argparse.Namespace, data: Dataset, metric: str, explainer: str, options: dict[str, object]
) -> str:
    """Return the explainer with a budget at which it is stable, and say which; itself where nobody asked."""
    if arguments.until_stable is None:
        return explainer
    found = until_stable(data, metric, explainer, mark=arguments.until_stable, **options)
    spec = spec_of(found.explainer)
    state = "stable" if found.reached else "not stable"
    tell(arguments, f"note: {spec} is {state}: two halves agree by {found.spearman:.3f} after {found.rounds} round(s)")
    return spec


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


def add_arguments(parser: Parser) -> None:
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
    cut = truncation_messages({name: name for name in arguments.metrics}, data) if arguments.fail_if_truncated else []
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
    fail_if_truncated(cut)
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
    outcome = attempt(data, metric, explainer, **_options(arguments), resources=held)
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
            asked = cost(data, metric, explainer, resources=resources(arguments), **_options(arguments))
            told = f"{asked.asked} texts, {asked.distinct} distinct, {asked.stored} already stored"
            yield f"{metric} {explainer}: {told}\n"
            used = with_languages(as_metric(metric), data.languages)
            tell_time(
                read_settings(QuietSettings, arguments),
                f"{metric} {explainer}",
                used,
                data.segments,
                asked.distinct - asked.stored,
            )


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


def _records(arguments: argparse.Namespace, data: Dataset, found: Found) -> Iterator[ExplanationRecord]:
    metric, explainer, pairs, _ = found
    explanations = [one for _, one in pairs]
    heats: Sequence[SimilarityMatrix | None] = [None] * len(pairs)
    if arguments.matrix:
        heats = word_matrices(data, metric, explanations, explainer, unit=arguments.unit)
    behind: Sequence[Behind | None] = [None] * len(pairs)
    if is_mee(metric):
        behind = mee_behind(data, metric, explanations)
    for (entry, one), heat, known in zip(pairs, heats, behind, strict=True):
        others = {"matrix": heat} | ({} if known is None else {"parts": known.parts, "matches": known.matches})
        yield ExplanationRecord.of(entry, requested_name(metric), requested_name(explainer), one, **others)


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
