"""The parts of MEE on the command line: bars beside explained words, and the tables of `score --parts`."""

import argparse
from collections.abc import Iterator, Mapping, Sequence

from whyscore.analysis.mee import MeeView, is_mee, mee_view
from whyscore.cli.output import document
from whyscore.data.records import row_lines
from whyscore.data.tabular import Table, render
from whyscore.errors import UserError
from whyscore.metrics.mee.words import MARKS
from whyscore.scoring.stack import Resources
from whyscore.types import Dataset

_STEPS = 10
_FULL, _EMPTY = "█", "░"
_BARS = (("lms", "LMS"), ("syn", "Syn"), ("cxt", "Cxt"))


def bar(value: float) -> str:
    """Return a number from 0 to 1 as a bar of ten steps.

    >>> bar(0.23), bar(-0.5)
    ('██░░░░░░░░', '░░░░░░░░░░')
    """
    filled = min(_STEPS, max(0, round(_STEPS * value)))
    return _FULL * filled + _EMPTY * (_STEPS - filled)


def part_bars(parts: Mapping[str, float]) -> str:
    """Return the parts of a score as bars; what a metric does not have is left out."""
    return "  ".join(f"{name} {bar(parts[key])} {parts[key]:.2f}" for key, name in _BARS if key in parts)


def part_views(data: Dataset, metrics: Sequence[str], resources: Resources) -> dict[str, MeeView]:
    """Return the parts of every metric that has some; none at all is an error."""
    chosen = [metric for metric in metrics if is_mee(metric)]
    if not chosen:
        raise UserError(f"--parts shows the parts of mee, mee2 and mee4; asked for: {', '.join(metrics)}")
    return {metric: mee_view(data, metric, resources=resources) for metric in chosen}


def view_lines(
    arguments: argparse.Namespace, data: Dataset, views: Mapping[str, MeeView], chosen: str
) -> Iterator[str]:
    """Yield the views in a format."""
    if chosen in ("json", "jsonl"):
        rows = ({"metric": metric, **record} for metric, view in views.items() for record in view.records())
        lines = row_lines("totals", data, rows, {metric: str(view.signature) for metric, view in views.items()})
        yield from document(lines) if chosen == "json" else lines
        return
    tables = [table for metric, view in views.items() for table in (_bars(metric, view), _pairs(metric, view))]
    if chosen in ("tsv", "csv"):
        tables = [_bars(metric, view) for metric, view in views.items()]
    yield "\n".join(render(table, chosen, decimals=arguments.width, safe=arguments.safe_csv) for table in tables)


def _bars(metric: str, view: MeeView) -> Table:
    rows = [(metric, *one) for one in view.bars]
    columns = ("metric", "system", "n", "exact", "root", "synonym", "syn", "cxt", "score", "unknown", "no vectors")
    return Table(columns, tuple(rows))


def _pairs(metric: str, view: MeeView) -> Table:
    rows = [(metric, f"{MARKS[one.kind]} {one.kind}", *one[1:]) for one in view.pairs]
    return Table(("metric", "match", "hypothesis", "reference", "times", "cosine"), tuple(rows))
