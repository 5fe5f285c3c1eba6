"""`whyscore report`: a report from run folders, or what changed between two."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from whyscore.cli.options import OutputSettings, QuietSettings
from whyscore.cli.output import emit, tell, tell_each, terminal_width
from whyscore.data.writing import write_lines
from whyscore.errors import UserError
from whyscore.present import Look, present
from whyscore.report import build_report
from whyscore.report.figures import FORMATS as FIGURE_FORMATS
from whyscore.report.figures import Format, save_figures
from whyscore.report.model import Report, ReportSettings
from whyscore.report.page import html
from whyscore.settings import again, option

EXAMPLES = """\
examples:
  whyscore report run/ -o report.html
  whyscore report old/ new/ -o diff.html
  whyscore report run/ -o tables.tex
  whyscore report run/ --figures figures/
  whyscore report run/ --no-texts -o outside.html
"""

FORMATS = ("html", "markdown", "latex", "json", "text")
_SUFFIXES = {".html": "html", ".htm": "html", ".md": "markdown", ".tex": "latex", ".json": "json", ".txt": "text"}


@dataclass(frozen=True, kw_only=True)
class FigureSettings(QuietSettings):
    """Charts as files."""

    TITLE: ClassVar[str] = "output"

    figures: str | None = option(None, "also save all charts as files in this folder", metavar="FOLDER")
    figure_formats: tuple[Format, ...] = option(
        FIGURE_FORMATS, "file formats of the charts (default: all)", metavar="NAME"
    )


@dataclass(frozen=True, kw_only=True)
class ReportCommand(FigureSettings, ReportSettings):
    """What `whyscore report` takes."""

    runs: tuple[str, ...] = option(
        (), "run folders; several are compared with each other", positional=True, metavar="FOLDER", basic=True
    )
    output: str | None = again(OutputSettings, "output", help="output file; its suffix determines the format")
    format: str | None = again(OutputSettings, "format")


SETTINGS = ReportCommand


def run(settings: ReportCommand) -> int:
    """Write the report."""
    if not settings.runs:
        raise UserError("no run folder: name one written by whyscore evaluate")
    report = build_report([Path(folder) for folder in settings.runs], settings=settings)
    form = settings.format or _format_of(settings.output)
    if form == "html":
        if not settings.output:
            raise UserError("a page needs a file: name it with -o report.html")
        write_page(report, Path(settings.output))
    else:
        emit(settings, report_lines(report, form, terminal_width(settings.output)))
    if settings.output not in (None, "-"):
        tell(settings, f"report: {settings.output}")
    write_figures(settings, report)
    return 0


def report_lines(report: Report, form: str, width: int | None = None) -> Iterator[str]:
    """Yield a report in one of the forms that are not a page; a terminal gets the verdict and the systems alone."""
    return present(report.summary() if form == "text" else report, form, Look(width=width))


def write_page(report: Report, path: Path, *, follow: bool = True) -> None:
    """Write the page of a report."""
    write_lines(path, [html(report)], follow=follow)


def write_figures(settings: FigureSettings, report: Report) -> None:
    """Save the charts where that was asked for."""
    if settings.figures:
        tell_each(settings, "figure", save_figures(report, Path(settings.figures), settings.figure_formats))


def _format_of(output: str | None) -> str:
    if output is None or output == "-":
        return "text"
    suffix = Path(output).suffix.lower()
    if suffix not in _SUFFIXES:
        raise UserError(f"cannot tell the format of {output}: use {', '.join(_SUFFIXES)}, or pass -f")
    return _SUFFIXES[suffix]
