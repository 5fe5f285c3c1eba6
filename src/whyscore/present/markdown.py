"""Tables in Markdown, the best values bold."""

from collections.abc import Iterator

from whyscore.marking import ON_ONE_LINE
from whyscore.present import Look
from whyscore.present.text import Style, arrow, below, mark_rows
from whyscore.types.result import Result, Table

SUFFIX = ".md"
_STYLE = Style('<span style="color:blue">{}</span>', "<u>{}</u>", "**{}**")
_ESCAPED = str.maketrans({character: f"\\{character}" for character in "\\`*_[]<>|#"})


def lines(result: Result, look: Look) -> Iterator[str]:
    """Yield the tables for people, a blank line between them."""
    title, *sentences = result.lead() or ("",)
    yield from [f"# {_escape(title)}\n"] if title else []
    yield from (f"\n{_escape(sentence)}\n" for sentence in sentences)
    for number, table in enumerate(result.tables()):
        yield from ["\n"] if number or title else []
        yield from [f"## {_escape(table.title)}\n\n"] if table.title else []
        yield from _table(table, look)


def _table(table: Table, look: Look) -> Iterator[str]:
    head = [_escape(name) + arrow(table, name, "↑", "↓") for name in table.columns]
    rule = ["---:" if right else "---" for right in table.right_aligned()]
    body = mark_rows(table, look, _escape, _STYLE)
    yield from (f"| {' | '.join(row)} |\n" for row in (head, rule, *body))
    yield from (f"{_escape(line)}\n" for line in below(table))


def _escape(text: str) -> str:
    return text.translate(ON_ONE_LINE).translate(_ESCAPED)
