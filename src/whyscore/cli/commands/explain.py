"""`whyscore explain`: which words made the score.

On a terminal words stand on colours, or in brackets with their numbers where there is no colour; every other format is
that of the result. `--until-stable` first raises the budget of sampled explainers until they repeat themselves.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import groupby

from rich.console import Console, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from whyscore import marking
from whyscore.analysis.common import as_metric, with_languages
from whyscore.analysis.explain import (
    ExplainersSettings,
    ExplainSettings,
    Explanations,
    attempt,
    cost,
    refuse_failures,
    require_matrix,
    word_matrices,
)
from whyscore.analysis.metaeval.faithfulness import until_stable
from whyscore.analysis.metaeval.settings import FaithfulnessSettings
from whyscore.analysis.score import fail_if_truncated, truncation_messages
from whyscore.cli.options import (
    InputSettings,
    LimitSettings,
    MetricSettings,
    OutputSettings,
    RunningSettings,
    TruncationSettings,
)
from whyscore.cli.output import emit, emit_result, format_of, tell, tell_signatures
from whyscore.cli.setup import (
    fail_if_unparsed,
    load_dataset,
    make_resources,
    some_metrics,
    take_first,
    tell_time,
    working,
)
from whyscore.errors import UserError
from whyscore.explainers.engine import failure_message
from whyscore.marking import visible
from whyscore.registry import spec_of
from whyscore.scoring.stack import Resources
from whyscore.settings import again, option
from whyscore.types import Dataset, Explanation, Inputs
from whyscore.types.result import Joined

EXAMPLES = """\
examples:
  whyscore explain --text -s "Ich habe einen Hund" -t "I have a cat" -r "I have a dog" -m chrf -e erasure
  whyscore explain -r ref.txt -t sys.txt -m chrf -e "lime(samples=100)" --side hypothesis reference -o why.jsonl
  whyscore explain -r ref.txt -t sys.txt -m my_metric.py:score -e shap
  whyscore explain --sample --limit 3 -m ter -e intrinsic
  whyscore explain -r ref.txt -t sys.txt -m chrf -e erasure -o words.tsv
  whyscore explain -s src.txt -t sys.txt -m xbertscore -e matching --matrix -o why.jsonl
"""

_DIGITS, _MOST_DIGITS = 2, 8
_NAMED = 3  # words that are named below a text
_STEPS = 10  # of a bar


@dataclass(frozen=True, kw_only=True)
class ExplainCommand(
    LimitSettings, RunningSettings, OutputSettings, TruncationSettings, InputSettings, ExplainSettings, MetricSettings
):  # fmt: skip
    """What `whyscore explain` takes."""

    explainers: tuple[str, ...] = again(ExplainersSettings, "explainers")
    until_stable: float | None = again(FaithfulnessSettings, "until_stable")
    matrix: bool = option(False, "add the word similarity matrix to json and jsonl (bertscore, xbertscore)")


SETTINGS = ExplainCommand


def run(settings: ExplainCommand) -> int:
    """Explain everything that was asked for and write it out."""
    metrics, explainers = some_metrics(settings), list(dict.fromkeys(settings.explainers))
    if settings.matrix:
        _check_matrix(metrics, settings)
    data = take_first(load_dataset(settings, metrics, explainers), settings.limit)
    if settings.dry_run:
        return _say_costs(data, metrics, explainers, settings)
    cut = truncation_messages({name: name for name in metrics}, data) if settings.fail_if_truncated else []
    with working(settings) as resources:
        results = [
            _explain(data, metric, explainer, settings, resources) for metric in metrics for explainer in explainers
        ]
    _write(results, settings)
    for result in results:
        refuse_failures(result.metric, result.failures, len(data))
        if result.failures:
            tell(settings, f"warning: {failure_message(result.failures, len(data))}")
    fail_if_truncated(cut)
    fail_if_unparsed(settings, resources)
    return 0


def _check_matrix(metrics: Sequence[str], settings: ExplainCommand) -> None:
    if format_of(settings) not in ("json", "jsonl"):
        raise UserError("--matrix goes into records: add -f jsonl, or -o FILE.jsonl")
    for metric in metrics:
        require_matrix(metric)


def _explain(
    data: Dataset, metric: str, explainer: str, settings: ExplainCommand, resources: Resources
) -> Explanations:
    if settings.until_stable is not None:
        explainer = _raise_budget(data, metric, explainer, settings, resources)
    explanations = attempt(data, metric, explainer, settings, resources)
    if settings.matrix:
        explanations.matrices = word_matrices(explanations, settings.unit)
    return explanations


def _raise_budget(data: Dataset, metric: str, explainer: str, settings: ExplainCommand, resources: Resources) -> str:
    """Return the explainer with a budget at which it is stable, and say which."""
    options = {name: getattr(settings, name) for name in ("unit", "sides", "masker", "seed")}
    budget = until_stable(data, metric, explainer, mark=settings.until_stable, resources=resources, **options)
    spec, state = spec_of(budget.explainer), "stable" if budget.reached else "not stable"
    tell(settings, f"note: {spec} is {state}: two halves agree by {budget.spearman:.3f} after {budget.rounds} round(s)")
    return spec


def _say_costs(data: Dataset, metrics: Sequence[str], explainers: Sequence[str], settings: ExplainCommand) -> int:
    """Say how many texts would be scored, and how long that would take."""
    resources = make_resources(settings)
    for metric in metrics:
        used = with_languages(as_metric(metric), data.languages)
        for explainer in explainers:
            planned = cost(data, metric, explainer, settings=settings, resources=resources)
            print(f"{metric} {explainer}: {planned}")
            tell_time(settings, f"{metric} {explainer}", used, data.segments, planned.left)
    return 0


def _write(results: Sequence[Explanations], settings: ExplainCommand) -> None:
    if format_of(settings) == "text":
        _show(results, settings)
        tell_signatures(settings, [result.signature for result in results if result.signature is not None])
        return
    emit_result(Joined(results), settings)
    if not any(results):
        tell(settings, "note: nothing was explained")


def _show(results: Sequence[Explanations], settings: ExplainCommand) -> None:
    digits = _digits(results) if settings.width is None else settings.width
    titled = [pair for result in results for pair in _with_titles(result)]
    if settings.output and settings.output != "-":
        text = StringIO()
        show(titled, Console(file=text, color_system=None, width=120), digits)
        emit(settings, [text.getvalue()])
    else:
        show(titled, Terminal(file=sys.stdout, highlight=False), digits)


def _with_titles(explanations: Explanations) -> Iterator[tuple[str, Explanation]]:
    """Yield each explanation with its title, and the parts of its score as bars where it has such that no word has."""
    parts = [word_match.parts for word_match in explanations.word_matches or ()] or [{}] * len(explanations)
    for explanation, part in zip(explanations, parts, strict=True):
        entry = explanations.dataset.entries[explanation.index]
        bars = f"\n{part_bars(part)}" if "syn" in part else ""
        score = f"{explanations.metric} {explanation.score:.{_DIGITS}f}"
        title = f"{entry.system} {entry.id} · {score} · {explanation.signature.spec}"
        yield f"{title}{bars}", explanation


def _digits(results: Iterable[Iterable[Explanation]]) -> int:
    """Return enough decimals for the largest importance to show two digits."""
    largest = max(
        (float(abs(explanation.importance).max(initial=0.0)) for group in results for explanation in group), default=0.0
    )
    return next((digits for digits in range(_DIGITS, _MOST_DIGITS) if largest >= 10.0**-digits * 10), _MOST_DIGITS)


def bar(value: float) -> str:
    """Return a number from 0 to 1 as a bar of ten steps.

    >>> bar(0.23), bar(-0.5)
    ('██░░░░░░░░', '░░░░░░░░░░')
    """
    filled = min(_STEPS, max(0, round(_STEPS * value)))
    return "█" * filled + "░" * (_STEPS - filled)


def part_bars(parts: Mapping[str, float]) -> str:
    """Return the parts of a score as bars; what a metric does not have is left out."""
    names = {"lms": "LMS", "syn": "Syn", "cxt": "Cxt"}
    return "  ".join(f"{name} {bar(parts[key])} {parts[key]:.2f}" for key, name in names.items() if key in parts)


class Terminal(Console):
    """A console that leaves a closed pipe to whoever called, where rich would end the program with a failure."""

    def on_broken_pipe(self) -> None:
        """Raise what happened."""
        raise BrokenPipeError


def segment_view(explanations: Sequence[Explanation], digits: int) -> RenderableType:
    """Return all places of one segment below each other, coloured on one common scale."""
    largest = max(
        (float(abs(explanation.importance).max()) for explanation in explanations if len(explanation.importance)),
        default=0.0,
    )
    grid = Grid.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for explanation in explanations:
        grid.add_row(Text(str(explanation.place), style="bold"), _colour(explanation, largest))
        for line in _remarks(explanation, digits):
            grid.add_row("", Text(visible(line), style="dim"))
    for place, text in _context(explanations):
        grid.add_row(Text(place, style="dim"), Text(visible(text), style="dim"))
    return grid


def plain_view(explanations: Sequence[Explanation], digits: int) -> Iterator[str]:
    """Yield the lines of one segment for where there is no colour: every word in brackets with its number."""
    context = _context(explanations)
    width = (
        max(
            len(place)
            for place in [*(str(explanation.place) for explanation in explanations), *(place for place, _ in context)]
        )
        + 2
    )
    for explanation in explanations:
        words = marking.plain(explanation.words.text, explanation.words.spans, explanation.importance.tolist(), digits)
        yield f"{explanation.place!s:<{width}}{words}"
        yield from (f"{'':<{width}}{line}" for line in _remarks(explanation, digits))
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
        segment_explanations = [explanation for _, explanation in group]
        console.print(Text(visible(title)), soft_wrap=True)
        if colour:
            console.print(segment_view(segment_explanations, digits))
        else:
            console.print(Text(visible("\n".join(plain_view(segment_explanations, digits)))), soft_wrap=True)
        console.print()
    if colour:
        console.print(legend())


def _context(explanations: Sequence[Explanation]) -> list[tuple[str, str]]:
    """Return the texts of the segment that are not explained: readers want to see them all the same."""
    segment = explanations[0].segment
    explained = {explanation.place for explanation in explanations}
    everything = Inputs.HYPOTHESIS | Inputs.SOURCE | Inputs.REFERENCES
    return [(str(place), segment.text(place)) for place in segment.places(everything) if place not in explained]


def _colour(explanation: Explanation, largest: float) -> Text:
    strength = marking.strengths(explanation.importance.tolist(), largest)
    text = Text()
    for piece, number in marking.pieces(explanation.words.text, explanation.words.spans):
        text.append(visible(piece), style="" if number is None else _style(strength[number]))
    return text


def _style(strength: float) -> str:
    red, green, blue = marking.colour(strength)
    return f"{marking.ink(strength)} on rgb({red},{green},{blue})"


def _remarks(explanation: Explanation, digits: int) -> list[str]:
    """Return what stands below a text: the extreme words, the quality of the explanation, warnings, edits."""
    words = list(explanation.words)
    order = explanation.importance.argsort(kind="stable").tolist()
    worst = [f"{words[i]} {explanation.importance[i]:+.{digits}f}" for i in order if explanation.importance[i] < 0][
        :_NAMED
    ]
    best = [
        f"{words[i]} {explanation.importance[i]:+.{digits}f}" for i in reversed(order) if explanation.importance[i] > 0
    ][:_NAMED]
    facts = [f"{explanation.probes} probes" if explanation.probes > 1 else ""]
    facts.append("" if explanation.fit is None else f"fit {explanation.fit:.2f}")
    facts.append("" if explanation.stability is None else f"stability {explanation.stability:.2f}")
    facts += [explanation.method or "", *explanation.flags]
    lines = [f"costs: {', '.join(worst)}"] if worst else []
    lines += [f"earns: {', '.join(best)}"] if best else []
    if explanation.notes:
        costly = [i for i in range(len(words)) if explanation.importance[i] < 0]
        notes = [f"{words[i]}: {explanation.notes[i]}" for i in costly or range(len(words)) if explanation.notes[i]]
        lines += ["; ".join(notes)] if notes else []
    quality = " · ".join(fact for fact in facts if fact)
    return [*lines, quality] if quality else lines
