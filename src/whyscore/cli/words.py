"""Explanations on a terminal: words on colours, or in brackets with their numbers where there is no colour."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from whyscore import marking
from whyscore.types import Explanation, Inputs

_NAMED = 3


class Terminal(Console):
    """A console that leaves a closed pipe to whoever called, where rich would end the program with a failure."""

    def on_broken_pipe(self) -> None:
        """Raise what happened."""
        raise BrokenPipeError


def segment_view(explanations: Sequence[Explanation], digits: int) -> RenderableType:
    """Return all places of one segment below each other, coloured on one common scale."""
    largest = max((float(abs(one.importance).max()) for one in explanations if len(one.importance)), default=0.0)
    grid = Table.grid(padding=(0, 2))
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
