"""Result tables in every format."""

import csv
import io
import json
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyscore.errors import ContractError, SpecError
from whyscore.present import Look, Tables, present, render
from whyscore.types.result import Table

TABLE = Table(
    ("system", "chrf", "ter", "n"),
    (("sys_A", 54.31249, 0.5, 100), ("系统", 54.31249, math.nan, 99), ("C&D", -1.0, None, 7)),
    {"chrf": True, "ter": False},
    notes=("chrf|nrefs:1",),
)


def test_text_is_aligned_by_the_width_on_the_screen() -> None:
    assert render(TABLE) == (
        "system  chrf ↑  ter ↓    n\n"
        "------  ------  -----  ---\n"
        "sys_A   54.312  0.500  100\n"
        "系统    54.312      -   99\n"
        "C&D     -1.000      -    7\n"
        "\n"
        "chrf|nrefs:1\n"
    )


def test_markdown_is_escaped_with_the_best_in_bold() -> None:
    assert render(TABLE, "markdown", decimals=1) == (
        "| system | chrf ↑ | ter ↓ | n |\n"
        "| --- | ---: | ---: | ---: |\n"
        "| sys\\_A | **54.3** | **0.5** | 100 |\n"
        "| 系统 | **54.3** | - | 99 |\n"
        "| C&D | -1.0 | - | 7 |\n"
        "\n"
        "chrf\\|nrefs:1\n"
    )


def test_latex_is_a_booktabs_table() -> None:
    assert render(TABLE, "latex") == (
        "\\begin{tabular}{lrrr}\n"
        "\\toprule\n"
        "system & chrf $\\uparrow$ & ter $\\downarrow$ & n \\\\\n"
        "\\midrule\n"
        "sys\\_A & \\textbf{54.312} & \\textbf{0.500} & 100 \\\\\n"
        "系统 & \\textbf{54.312} & - & 99 \\\\\n"
        "C\\&D & -1.000 & - & 7 \\\\\n"
        "\\bottomrule\n"
        "\\end{tabular}\n"
        "\n{\\footnotesize chrf|nrefs:1\\par}\n"
    )


def test_latex_escapes_every_special_character() -> None:
    body = render(Table((r"\~^&%$#_{}",), ()), "latex").splitlines()[2]
    assert body == r"\textbackslash{}\textasciitilde{}\textasciicircum{}\&\%\$\#\_\{\} \\"


def test_programs_get_every_digit_and_nothing_but_the_table() -> None:
    assert render(TABLE, "tsv") == (
        "system\tchrf\tter\tn\nsys_A\t54.31249\t0.5\t100\n系统\t54.31249\t\t99\nC&D\t-1.0\t\t7\n"
    )
    assert json.loads(render(TABLE, "json"))[:2] == [
        {"system": "sys_A", "chrf": 54.31249, "ter": 0.5, "n": 100},
        {"system": "系统", "chrf": 54.31249, "ter": None, "n": 99},
    ]


def test_decimals_round_csv_only_if_asked_and_json_never() -> None:
    assert render(TABLE, "csv", decimals=2).splitlines()[1] == "sys_A,54.31,0.50,100"
    assert json.loads(render(TABLE, "json", decimals=1))[0]["chrf"] == 54.31249


def test_csv_quotes_what_needs_it() -> None:
    table = Table(("a", "b"), (('x, "y"', "line\nend"),))
    assert list(csv.reader(io.StringIO(render(table, "csv")))) == [["a", "b"], ['x, "y"', "line\nend"]]
    assert list(csv.reader(io.StringIO(render(table, "tsv")), delimiter="\t"))[1] == ['x, "y"', "line\nend"]


def test_safe_csv_keeps_formulas_from_running() -> None:
    table = Table(("=x", "v"), (("=1+1", -1.5), ("-3.5", 2), ("-a", 3), ("+1", 4), ("@b", 5), ("a=b", None)))
    assert render(table, "csv", safe=True) == "'=x,v\n'=1+1,-1.5\n-3.5,2\n'-a,3\n+1,4\n'@b,5\na=b,\n"
    assert render(table, "csv") == "=x,v\n=1+1,-1.5\n-3.5,2\n-a,3\n+1,4\n@b,5\na=b,\n"


def test_bold_can_be_a_group_or_switched_off() -> None:
    table = Table(("s", "m"), (("A", 3.0), ("B", 2.9), ("C", 1.0)), {"m": True}, frozenset({(0, "m"), (1, "m")}))
    assert render(table, "markdown").count("**") == 4
    assert "**" not in render(table, "markdown", bold=False)


def test_a_column_without_a_number_has_no_best() -> None:
    assert "**" not in render(Table(("m",), ((None,), (math.nan,)), {"m": True}), "markdown")


def test_numbers_of_numpy_are_numbers() -> None:
    table = Table(("m",), ((np.float64(0.1),), (np.int64(3),)))  # type: ignore[arg-type]
    assert render(table, "csv") == "m\n0.1\n3\n"
    assert json.loads(render(table, "json")) == [{"m": 0.1}, {"m": 3}]


def test_a_table_without_rows_has_its_header() -> None:
    table = Table(("a", "bc"), ())
    assert render(table) == "a  bc\n-  --\n"
    assert render(table, "csv") == "a,bc\n"
    assert render(table, "json") == "[]\n"
    assert render(table, "markdown") == "| a | bc |\n| --- | --- |\n"


def test_line_ends_in_cells_do_not_break_tables_for_people() -> None:
    table = Table(("a",), (("x\ny",),))
    assert render(table).splitlines()[2] == "x y"
    assert render(table, "markdown").splitlines()[2] == "| x y |"
    assert render(table, "latex").splitlines()[4] == r"x y \\"


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ContractError, match=re.escape("a row of 1 cells in a table of 2 columns: ('x',)")):
        Table(("a", "b"), (("x",),))
    known = "text, json, jsonl, tsv, csv, markdown, latex"
    with pytest.raises(SpecError, match=re.escape(f"no output format named 'pdf': use {known}")):
        render(TABLE, "pdf")
    with pytest.raises(SpecError, match=re.escape("decimals is -1, expected 0 or more")):
        render(TABLE, decimals=-1)


cells = st.none() | st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\r\x00"), max_size=5)


@given(st.lists(st.tuples(cells, st.floats(allow_nan=False, allow_infinity=False)), max_size=5))
def test_csv_reads_back_what_was_written(rows: list[tuple[str | None, float]]) -> None:
    text = render(Table(("a", "b"), tuple(rows)), "csv")
    _, *back = csv.reader(io.StringIO(text, newline=""))
    assert [(cell, float(number)) for cell, number in back] == [(cell or "", number) for cell, number in rows]


def test_latex_has_no_sign_that_pdflatex_cannot_set() -> None:
    table = Table(("a → b", "x"), (("1 − 2 × 3 … ≥ ± ≈ ✓ ·\u00a0", 1.0),), {"x": True}, notes=("↑ is better ↓",))
    assert render(table, "latex").isascii()


@given(st.integers(24, 120))
def test_a_table_wider_than_the_terminal_is_folded(width: int) -> None:
    names = [f"metric {k}" for k in range(9)]
    table = Table(("system", *names), (("a", *range(9)), ("b", *range(9))), notes=("a note of many words " * 9,))
    text = "".join(present(Tables(table), "text", Look(width=width)))
    assert max(map(len, text.splitlines())) <= width
    assert all(text.count(name) == 1 for name in names)
    assert text.count("system") == text.count("\n\n") or width > 100
    assert "".join(present(Tables(table), "text", Look(width=1000))).splitlines()[0].count("metric") == 9
