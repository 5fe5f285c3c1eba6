"""`whyscore report`: a report from run folders, or what changed between two."""

import argparse
import sys
from pathlib import Path

from whyscore.cli.options import Parser
from whyscore.cli.output import tell
from whyscore.data.writing import write_lines
from whyscore.errors import UserError
from whyscore.report import build_report
from whyscore.report.figures.charts import FORMATS
from whyscore.report.figures.report import save_figures
from whyscore.report.model import Report
from whyscore.report.page import html
from whyscore.report.tables import as_json, paper, summary

EXAMPLES = """\
examples:
  whyscore report run/ -o report.html
  whyscore report old/ new/ -o diff.html
  whyscore report run/ -o tables.tex
  whyscore report run/ --figures figures/
  whyscore report run/ --no-texts -o outside.html
"""

_SUFFIXES = {".html": "html", ".htm": "html", ".md": "markdown", ".tex": "latex", ".json": "json", ".txt": "text"}
_FORMATS = ("html", "markdown", "latex", "json", "text")


def add_arguments(parser: Parser) -> None:
    """Add run folders and output."""
    parser.add_argument("runs", nargs="+", metavar="FOLDER", help="a run folder; several are set against each other")
    parser.add_argument("-o", "--output", metavar="FILE", help="write to this file; its suffix says the format")
    parser.add_argument("-f", "--format", choices=_FORMATS, help="default: what the suffix of -o says, else text")
    parser.add_argument("--title", metavar="TEXT", help="of the report (default: the name of the data)")
    parser.add_argument(
        "--no-texts", action="store_true", help="no segment, no word and no command line: for readers outside"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="nothing on stderr")
    add_figures(parser)


def add_figures(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add where charts are saved."""
    parser.add_argument("--figures", metavar="FOLDER", help="also save every chart as a file here")
    parser.add_argument(
        "--figure-formats", nargs="+", choices=FORMATS, default=list(FORMATS), metavar="NAME",
        help=f"of the charts: {', '.join(FORMATS)} (default: all)",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Write the report."""
    report = build_report(
        [Path(folder) for folder in arguments.runs], title=arguments.title, texts=not arguments.no_texts
    )
    form = arguments.format or _form(arguments.output)
    if form == "html" and not arguments.output:
        raise UserError("a page needs a file: name it with -o report.html")
    text = html(report) if form == "html" else summarised(report, form)
    if arguments.output and arguments.output != "-":
        write_lines(arguments.output, [text])
        tell(arguments, f"report: {arguments.output}")
    else:
        sys.stdout.write(text)
    write_figures(arguments, report)
    return 0


def summarised(report: Report, form: str) -> str:
    """Return a report in one of the forms that are not a page."""
    if form == "json":
        return as_json(report)
    return summary(report) if form == "text" else paper(report, form)


def write_page(report: Report, path: Path) -> None:
    """Write the page of a report."""
    write_lines(path, [html(report)])


def write_figures(arguments: argparse.Namespace, report: Report) -> None:
    """Save the charts where that was asked for."""
    if arguments.figures:
        for path in save_figures(report, Path(arguments.figures), arguments.figure_formats):
            tell(arguments, f"figure: {path}")


def _form(output: str | None) -> str:
    if output is None or output == "-":
        return "text"
    suffix = Path(output).suffix.lower()
    if suffix not in _SUFFIXES:
        raise UserError(f"cannot tell the format of {output}: use {', '.join(_SUFFIXES)}, or say it with -f")
    return _SUFFIXES[suffix]
