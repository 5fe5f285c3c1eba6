r"""Tables in LaTeX with booktabs (and xcolor for marks), the best values bold, notes below the table."""

from collections.abc import Iterator

from whyscore.marking import ON_ONE_LINE
from whyscore.present import Look
from whyscore.present.text import Style, arrow, mark_rows
from whyscore.types.result import Result, Table

SUFFIX = ".tex"
_STYLE = Style(r"\textcolor{{blue}}{{{}}}", r"\underline{{{}}}", r"\textbf{{{}}}")
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
    columns = "".join("r" if right else "l" for right in table.right_aligned())
    head = [_escape(name) + arrow(table, name, r"$\uparrow$", r"$\downarrow$") for name in table.columns]
    yield f"\\begin{{tabular}}{{{columns}}}\n\\toprule\n"
    yield " & ".join(head) + " \\\\\n\\midrule\n"
    for cells in mark_rows(table, look, _escape, _STYLE):
        # The end of a row would take a bracket or a star that follows it for its own.
        first = "{}" if cells and cells[0].startswith(("[", "*")) else ""
        yield first + " & ".join(cells) + " \\\\\n"
    yield "\\bottomrule\n\\end{tabular}\n"
    for note in table.notes:
        yield f"\n{{\\footnotesize {_escape(note)}\\par}}\n"


def _escape(text: str) -> str:
    return text.translate(ON_ONE_LINE).translate(_ESCAPED)
