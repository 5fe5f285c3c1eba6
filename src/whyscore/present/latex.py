r"""Tables in LaTeX with booktabs (and xcolor for marks), the best values bold, notes below the table."""

from collections.abc import Iterator

from whyscore.marking import on_one_line
from whyscore.present import Look
from whyscore.present.text import arrow
from whyscore.types.result import Result, Table, shown

SUFFIX = ".tex"
_ESCAPED = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "\\": r"\textbackslash{}",
        # What pdflatex has no glyph for in its usual fonts.
        "→": r"$\rightarrow$",
        "↑": r"$\uparrow$",
        "↓": r"$\downarrow$",
        "−": r"$-$",
        "±": r"$\pm$",
        "×": r"$\times$",
        "≥": r"$\geq$",
        "≤": r"$\leq$",
        "≈": r"$\approx$",
        "…": r"\ldots{}",
        "✓": r"$\surd$",
        "✗": r"$\times$",
        "·": r"$\cdot$",
        "\u00a0": "~",
        # Pictures of control characters.
        **dict.fromkeys(map(chr, range(0x2400, 0x2425)), "?"),
    }
)


def lines(result: Result, look: Look) -> Iterator[str]:
    """Yield the tables for people, a blank line between them."""
    for number, table in enumerate(result.tables()):
        yield from ["\n"] if number else []
        yield from [f"% {_escape(table.title)}\n"] if table.title else []
        yield from _table(table, look)


def _table(table: Table, look: Look) -> Iterator[str]:
    bold = table.bold if look.bold else frozenset()
    columns = "".join("r" if right else "l" for right in table.right_aligned())
    head = [_escape(name) + arrow(table, name, r"$\uparrow$", r"$\downarrow$") for name in table.columns]
    yield f"\\begin{{tabular}}{{{columns}}}\n\\toprule\n"
    yield " & ".join(head) + " \\\\\n\\midrule\n"
    for number, row in enumerate(table.rows):
        cells = [_escape(shown(cell, table.decimals if look.decimals is None else look.decimals)) for cell in row]
        marked = zip(table.columns, cells, strict=True)
        cells = [_mark(table, number, name, cell, bold=(number, name) in bold) for name, cell in marked]
        # The end of a row would take a bracket or a star that follows it for its own.
        first = "{}" if cells and cells[0].startswith(("[", "*")) else ""
        yield first + " & ".join(cells) + " \\\\\n"
    yield "\\bottomrule\n\\end{tabular}\n"
    for note in table.notes:
        yield f"\n{{\\footnotesize {_escape(note)}\\par}}\n"


def _escape(text: str) -> str:
    return on_one_line(text).translate(_ESCAPED)


def _mark(table: Table, row: int, name: str, cell: str, *, bold: bool) -> str:
    """Return a cell with its marks: blue is higher, bold significantly so, underlined after correction."""
    marks = table.marks.get((row, name), frozenset())
    cell = rf"\textcolor{{blue}}{{{cell}}}" if "higher" in marks else cell
    cell = rf"\underline{{{cell}}}" if "corrected" in marks else cell
    return rf"\textbf{{{cell}}}" if bold or "significant" in marks else cell
