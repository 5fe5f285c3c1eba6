"""Tables in Markdown, the best values bold."""

from collections.abc import Iterator

from whyscore.marking import on_one_line
from whyscore.present import Look
from whyscore.present.text import arrow, below
from whyscore.types.result import Result, Table, shown

SUFFIX = ".md"
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
    bold = table.bold if look.bold else frozenset()
    decimals = table.decimals if look.decimals is None else look.decimals
    head = [_escape(name) + arrow(table, name, "↑", "↓") for name in table.columns]
    rule = ["---:" if right else "---" for right in table.right_aligned()]
    body = []
    for number, row in enumerate(table.rows):
        cells = [_escape(shown(cell, decimals)) for cell in row]
        marked = zip(table.columns, cells, strict=True)
        body.append([_mark(table, number, name, cell, bold=(number, name) in bold) for name, cell in marked])
    yield from (f"| {' | '.join(row)} |\n" for row in (head, rule, *body))
    yield from (f"{_escape(line)}\n" for line in below(table))


def _escape(text: str) -> str:
    return on_one_line(text).translate(_ESCAPED)


def _mark(table: Table, row: int, name: str, cell: str, *, bold: bool) -> str:
    """Return a cell with its marks: blue is higher, bold significantly so, underlined also after correction."""
    marks = table.marks.get((row, name), frozenset())
    cell = f'<span style="color:blue">{cell}</span>' if "higher" in marks else cell
    cell = f"<u>{cell}</u>" if "corrected" in marks else cell
    return f"**{cell}**" if bold or "significant" in marks else cell
