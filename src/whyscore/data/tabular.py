r"""Result tables as text, TSV, CSV, Markdown, LaTeX and JSON.

1. People read `text`, `markdown` and `latex`: numbers are rounded (three decimals unless told), headers carry an arrow
   for the direction, the best values are bold, undefined ones are `-`, and notes (n, signatures) stand below.
2. Programs read `tsv`, `csv` and `json`: numbers are whole, undefined ones are empty or null, and there is nothing but
   the table.
3. Special characters are escaped by each format's own rules. With `safe`, cells that a spreadsheet would take for a
   formula get a leading `'`.
"""

import csv
import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeGuard, get_args

from rich.cells import cell_len

from whyscore.data.strict import finite
from whyscore.errors import ContractError, SpecError

Cell = str | float | int | None
Format = Literal["text", "tsv", "csv", "markdown", "latex", "json"]
FORMATS: tuple[Format, ...] = get_args(Format)
DECIMALS = 3
_UNDEFINED = "-"
_FORMULA = ("=", "+", "-", "@")
_LATEX = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "\\": r"\textbackslash{}",
        "\n": " ",
    }
)
_MARKDOWN = str.maketrans({**{character: f"\\{character}" for character in "\\`*_[]<>|#"}, "\n": " "})
_TEXT = str.maketrans({"\n": " ", "\t": " "})


@dataclass(frozen=True, slots=True)
class Table:
    """Named columns and rows of cells; numbers are cells too, so that each format can write them its own way."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    higher_is_better: Mapping[str, bool] = field(default_factory=dict)
    """The direction of the columns that have one."""
    best: frozenset[tuple[int, str]] | None = None
    """The bold cells as row and column, e.g. a whole cluster; None takes the best value of each directed column."""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse rows that do not fit the columns."""
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ContractError(f"a row of {len(row)} cells in a table of {len(self.columns)} columns: {row!r}")

    @property
    def bold(self) -> frozenset[tuple[int, str]]:
        """The cells that are bold where bold is asked for."""
        if self.best is not None:
            return self.best
        return frozenset(cell for name in self.higher_is_better for cell in self._best_of(name))

    def _best_of(self, name: str) -> list[tuple[int, str]]:
        place = self.columns.index(name)
        values = {row: value for row, cells in enumerate(self.rows) if _is_number(value := cells[place])}
        if not values:
            return []
        best = max(values.values()) if self.higher_is_better[name] else min(values.values())
        return [(row, name) for row, value in values.items() if value == best]


def render(
    table: Table, form: str = "text", *, decimals: int | None = None, bold: bool = True, safe: bool = False
) -> str:
    """Return a table in one of the `FORMATS`, with a newline at the end.

    Args:
        table: the table.
        form: the format.
        decimals: of all numbers; without it people get three and programs get all. JSON is never rounded.
        bold: mark the best values in Markdown and LaTeX.
        safe: keep spreadsheets from taking texts in TSV and CSV for formulas.
    """
    if form not in FORMATS:
        raise SpecError(f"no table format named {form!r}: use {', '.join(FORMATS)}")
    if decimals is not None and decimals < 0:
        raise SpecError(f"decimals is {decimals}, expected 0 or more")
    if form == "json":
        return _json(table)
    if form in ("tsv", "csv"):
        return _separated(table, "\t" if form == "tsv" else ",", decimals, safe=safe)
    digits = DECIMALS if decimals is None else decimals
    marked = table.bold if bold else frozenset()
    if form == "text":
        return _text(table, digits)
    return _markdown(table, digits, marked) if form == "markdown" else _latex(table, digits, marked)


def _json(table: Table) -> str:
    rows = [dict(zip(table.columns, map(finite, row), strict=True)) for row in table.rows]
    return json.dumps(rows, ensure_ascii=False, allow_nan=False, indent=2) + "\n"


def _separated(table: Table, delimiter: str, decimals: int | None, *, safe: bool) -> str:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow([_guarded(name) if safe else name for name in table.columns])
    for row in table.rows:
        writer.writerow([_value(cell, decimals, safe=safe) for cell in row])
    return text.getvalue()


def _value(cell: Cell, decimals: int | None, *, safe: bool) -> str:
    """Return a cell for programs."""
    if isinstance(cell, str):
        return _guarded(cell) if safe else cell
    if not _is_number(cell):
        return ""
    if not isinstance(cell, float):
        return str(cell)
    return repr(float(cell)) if decimals is None else f"{cell:.{decimals}f}"


def _guarded(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula.

    >>> _guarded("=1+1"), _guarded("-3.5"), _guarded("a=b")
    ("'=1+1", '-3.5', 'a=b')
    """
    if not text.startswith(_FORMULA):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


def _text(table: Table, decimals: int) -> str:
    head = [(name + _arrow(table, name, "↑", "↓")).translate(_TEXT) for name in table.columns]
    body = [[_shown(cell, decimals).translate(_TEXT) for cell in row] for row in table.rows]
    widths = [max(map(cell_len, column)) for column in zip(head, *body, strict=True)]
    right = _right_aligned(table)
    lines = [_aligned(row, widths, right) for row in (head, ["-" * width for width in widths], *body)]
    return "".join(f"{line}\n" for line in (*lines, *_below(table)))


def _aligned(row: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = []
    for cell, width, to_the_right in zip(row, widths, right, strict=True):
        blanks = " " * (width - cell_len(cell))
        padded.append(blanks + cell if to_the_right else cell + blanks)
    return "  ".join(padded).rstrip()


def _markdown(table: Table, decimals: int, bold: frozenset[tuple[int, str]]) -> str:
    def escaped(text: str) -> str:
        return text.translate(_MARKDOWN)

    head = [escaped(name) + _arrow(table, name, "↑", "↓") for name in table.columns]
    rule = ["---:" if right else "---" for right in _right_aligned(table)]
    body = _cells(table, decimals, bold, escaped, "**{}**")
    lines = [f"| {' | '.join(row)} |" for row in (head, rule, *body)]
    return "".join(f"{line}\n" for line in (*lines, *map(escaped, _below(table))))


def _latex(table: Table, decimals: int, bold: frozenset[tuple[int, str]]) -> str:
    def escaped(text: str) -> str:
        return text.translate(_LATEX)

    columns = "".join("r" if right else "l" for right in _right_aligned(table))
    head = [escaped(name) + _arrow(table, name, r"$\uparrow$", r"$\downarrow$") for name in table.columns]
    body = _cells(table, decimals, bold, escaped, r"\textbf{{{}}}")
    lines = [
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        " & ".join(head) + r" \\",
        r"\midrule",
        *(" & ".join(row) + r" \\" for row in body),
        r"\bottomrule",
        *(rf"\multicolumn{{{len(columns)}}}{{l}}{{\footnotesize {escaped(note)}}} \\" for note in table.notes),
        r"\end{tabular}",
    ]
    return "".join(f"{line}\n" for line in lines)


def _cells(
    table: Table, decimals: int, bold: frozenset[tuple[int, str]], escaped: Callable[[str], str], strong: str
) -> list[list[str]]:
    rows = []
    for number, row in enumerate(table.rows):
        cells = [escaped(_shown(cell, decimals)) for cell in row]
        marked = zip(table.columns, cells, strict=True)
        rows.append([strong.format(cell) if (number, name) in bold else cell for name, cell in marked])
    return rows


def _arrow(table: Table, name: str, up: str, down: str) -> str:
    """Return what is put behind a column's name for its direction, if it has one."""
    better = table.higher_is_better.get(name)
    return "" if better is None else f" {up if better else down}"


def _shown(cell: Cell, decimals: int) -> str:
    """Return a cell for people: whole numbers stay whole, undefined ones are a dash."""
    if isinstance(cell, str):
        return cell
    if not _is_number(cell):
        return _UNDEFINED
    return f"{cell:.{decimals}f}" if isinstance(cell, float) else str(cell)


def _right_aligned(table: Table) -> list[bool]:
    """Return which columns hold numbers."""
    columns = list(zip(*table.rows, strict=True)) or [()] * len(table.columns)
    return [any(_is_number(cell) for cell in column) for column in columns]


def _below(table: Table) -> list[str]:
    return ["", *table.notes] if table.notes else []


def _is_number(cell: Cell) -> TypeGuard[float]:
    return cell is not None and not isinstance(cell, str) and math.isfinite(cell)
