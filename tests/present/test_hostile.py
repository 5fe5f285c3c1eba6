"""Texts and names that attack terminals, browsers, TeX or spreadsheets come out harmless in every format."""

import csv
import io
import json
import re
from pathlib import Path

import pytest

from support.cli import Run
from support.nasty import WRITABLE
from whyscore import marking
from whyscore.present import formats, render
from whyscore.types.result import Table

HOSTILE = (
    "\x1b[2J\x1b[31mred",
    "\x1b]0;title\x07",
    "\x1b]8;;http://x\x1b\\link",
    "\x9b31m",
    "name\nsecond line",
    "name\r\nsecond | line",
    "line\u2028separator\x85next\x0b\x0c",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[click](javascript:alert(1))",
    "| cell | `code` |",
    r"\input{/etc/passwd}",
    r"\write18{id} & $x$ % comment # _ ^ ~",
    "[3pt] after the end of a row",
    "* star",
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-2+3",
    "@SUM(A1)",
    "\t=1+1",
    "＝1+1",
    '"quoted", "cells"',
)
TEXTS = (*HOSTILE, *WRITABLE[:300])
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")


def table(text: str) -> Table:
    return Table((text or "x", "value"), ((text, 1.0),), title=text, notes=(text,))


@pytest.mark.parametrize("form", ["text", "markdown", "latex"])
def test_formats_for_people_hold_no_control_character(form: str) -> None:
    for text in TEXTS:
        assert CONTROL.search(render(table(text), form)) is None, text


def test_latex_has_no_command_of_a_text() -> None:
    known = {"begin", "end", "toprule", "midrule", "bottomrule", "footnotesize", "par", "textbf", "textasciitilde"}
    known |= {"textasciicircum", "textbackslash", "uparrow", "downarrow", "rightarrow", "pm", "times", "geq", "leq"}
    known |= {"approx", "ldots", "surd", "cdot"}
    for text in TEXTS:
        made = render(table(text), "latex")
        assert set(re.findall(r"\\([A-Za-z]+)", made)) <= known, text
        body = made.replace("\\\\", "").replace("\\{", "").replace("\\}", "")
        assert body.count("{") == body.count("}"), text
        assert not re.search(r"\\\\\s*[\[*]", made), text
        (row,) = [line for line in made.split("\n") if line.endswith(" \\\\")][1:]
        assert len(re.findall(r"(?<!\\)&", row)) == 1, text


def test_markdown_has_no_markup_of_a_text() -> None:
    for text in TEXTS:
        made = render(table(text), "markdown")
        assert not re.search(r"(?<!\\)<", made), text
        assert not re.search(r"(?<!\\)\]\(", made), text
        rows = [line for line in made.split("\n") if line.startswith("|")]
        assert [len(re.findall(r"(?<!\\)\|", row)) for row in rows] == [3, 3, 3], text


@pytest.mark.parametrize(("form", "delimiter"), [("csv", ","), ("tsv", "\t")])
def test_cells_come_back_whole_and_hold_no_formula(form: str, delimiter: str) -> None:
    for text in TEXTS:
        plain, safe = (render(table(text), form, safe=safe) for safe in (False, True))
        rows = list(csv.reader(io.StringIO(plain, newline=""), delimiter=delimiter))
        assert (rows[0][0], rows[1][0]) == (text or "x", text)
        cells = [cell for row in csv.reader(io.StringIO(safe, newline=""), delimiter=delimiter) for cell in row]
        for cell in cells:
            number = re.fullmatch(r"[+-]?(\d+\.?\d*(e[+-]?\d+)?|inf|nan)", cell.strip(), re.IGNORECASE)
            assert number or not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n", "＝")), cell


def test_html_of_words_holds_no_markup_of_a_text() -> None:
    for text in TEXTS:
        made = str(marking.html(text, [(0, len(text))], [1.0]))
        assert not re.search(r"<(script|img|v)\b", made)


RESULTS = {
    "score": ("score", "-m", "chrf", "length_ratio", "--draws", "0"),
    "score --segments": ("score", "-m", "chrf", "--segments"),
    "compare": ("compare", "-m", "chrf", "--draws", "20"),
    "explain": ("explain", "-m", "chrf", "-e", "erasure"),
    "boost": ("boost", "-m", "chrf", "-e", "erasure", "--segments"),
    "decompose": ("decompose", "-m", "chrf", "--draws", "10"),
    "select": ("select", "-n", "3", "--method", "random"),
    "validate": ("validate",),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_of_hostile_data_are_harmless_in_every_format(name: str, run: Run) -> None:
    rows = [
        {"id": f"{text}{k}", "system": system, "hypothesis": f"{text} x", "reference": f"{text} y", "document": text}
        for system in (HOSTILE[0], HOSTILE[11])
        for k, text in enumerate(HOSTILE)
    ]
    Path("data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    verb, *options = RESULTS[name]
    stored = () if verb == "validate" else ("--store", "none")
    for form in ("text", "markdown", "latex", "csv"):
        safe = ("--safe-csv",) if form == "csv" else ()
        done = run(verb, "data.jsonl", *options, "-f", form, *stored, *safe)
        assert done.code == 0, done.err
        assert CONTROL.search(done.err.replace("\r", "")) is None
        if form == "csv":
            cells = [cell for row in csv.reader(io.StringIO(done.out, newline="")) for cell in row]
            assert not [cell for cell in cells if cell.startswith(("=", "+1+", "-2+", "@", "\t", "＝"))]
            continue
        assert CONTROL.search(done.out) is None, form
        assert form != "markdown" or not re.search(r"(?<!\\)<(script|img)", done.out)
        assert form != "latex" or not re.search(r"\\(input|write)", done.out)


def test_every_format_is_tried_here() -> None:
    assert set(formats()) == {"text", "markdown", "latex", "csv", "tsv", "json", "jsonl"}
