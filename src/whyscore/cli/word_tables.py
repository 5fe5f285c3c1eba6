"""Explanations as a table: one row per word."""

from collections.abc import Iterable, Sequence

from whyscore.data.records import Explained
from whyscore.data.tabular import Cell, Table

COLUMNS = ("id", "system", "metric", "explainer", "side", "reference", "word", "start", "end", "importance")


def word_table(explained: Iterable[Explained], notes: Sequence[str] = ()) -> Table:
    """Return the words of all explanations with their places and importances; notes stand below."""
    return Table(COLUMNS, tuple(row for one in explained for row in _rows(one)), notes=tuple(notes))


def _rows(given: Explained) -> Iterable[tuple[Cell, ...]]:
    one = given.explanation
    place = str(one.place.side), one.place.reference
    named = given.entry.id, given.entry.system, given.metric, given.explainer, *place
    for (start, end), importance in zip(one.words.spans, one.importance.tolist(), strict=True):
        yield (*named, one.words.text[start:end], start, end, importance)
