"""Charts as files for papers and slides: interactive HTML that works offline, SVG, PNG and PDF, with a caption.

    save_chart(chart, folder, "grid", caption="What every p gains")

writes `grid.html`, `grid.svg`, `grid.png`, `grid.pdf` and `grid.txt`. Those of a report (`save_figures`) are one altair
chart each:

| chart | shows |
|---|---|
| systems | every system under every metric, with intervals |
| features | what each system loses on each feature, with intervals |
| highlights | how well highlights match human error marks |

The page draws its own small pictures; these are the same numbers, large and alone.
"""

import importlib
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, Protocol, get_args

from whyscore.data.writing import make_folder
from whyscore.errors import MissingExtra, SpecError
from whyscore.report.model import Report, feature_name
from whyscore.text.files import write_whole

Format = Literal["html", "svg", "png", "pdf"]
FORMATS: tuple[Format, ...] = get_args(Format)
_SHARPNESS = 2.0
# After Okabe and Ito: told apart by colour-blind readers too.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")
_WIDTH = 420
_ROW = 22

Rows = list[dict[str, object]]


class Chart(Protocol):
    """What is needed of an altair chart, or of a description."""

    def to_json(self) -> str:
        """Return the chart as Vega-Lite."""


def save_chart(
    chart: Chart, folder: str | Path, name: str, *, caption: str = "", formats: Sequence[str] = FORMATS
) -> list[Path]:
    """Return the files that were written: the chart in every format, and its caption."""
    place, written = make_folder(folder), []
    for form in formats:
        path = place / f"{name}.{form}"
        write_whole(path, render_chart(chart, form))
        written.append(path)
    if caption:
        path = place / f"{name}.txt"
        write_whole(path, f"{caption}\n".encode())
        written.append(path)
    return written


def load_package(name: str) -> ModuleType:
    """Return a package that draws; it belongs to an extra."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtra.of("drawing figures", "report") from error


def render_chart(chart: Chart, form: str) -> bytes:
    """Return a chart in one format; HTML carries the libraries it needs."""
    if form not in FORMATS:
        raise SpecError(f"no chart format named {form!r}: use {', '.join(FORMATS)}")
    vl_convert = load_package("vl_convert")
    spec = chart.to_json()
    if form == "html":
        return str(vl_convert.vegalite_to_html(spec, bundle=True)).encode()
    if form == "svg":
        return str(vl_convert.vegalite_to_svg(spec)).encode()
    if form == "png":
        return bytes(vl_convert.vegalite_to_png(spec, scale=_SHARPNESS))
    return bytes(vl_convert.vegalite_to_pdf(spec))


def save_figures(report: Report, folder: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Return the files that were written: every chart the report has numbers for, in every format."""
    return [
        path
        for name, (chart, caption) in figures(report).items()
        for path in save_chart(chart, folder, name, caption=caption, formats=formats)
    ]


def figures(report: Report) -> dict[str, tuple[Chart, str]]:
    """Return the charts with their captions, by name."""
    about = f"{report.title}: {report.about}; with 95 % confidence intervals."
    charts = {"systems": (systems_chart(report), f"Systems. {about}")}
    if any(row.share is not None for row in report.features):
        charts["features"] = (features_chart(report), f"Score lost by feature. {about}")
    if report.agreement:
        charts["highlights"] = (highlights_chart(report), f"Highlights against human error marks. {about}")
    return charts


def systems_chart(report: Report) -> Chart:
    """Return every system under every metric, a panel each, with intervals."""
    rows: Rows = [
        {"system": row.system, "metric": metric.name, "score": total.value, "low": total.low, "high": total.high}
        for row in report.systems
        for metric, total in zip(report.metrics, row.totals, strict=True)
    ]
    order = [row.system for row in report.systems]
    return _panels(rows, by="metric", row="system", value="score", order=order, shared=False)


def features_chart(report: Report) -> Chart:
    """Return what is lost on each feature, a panel per metric, systems side by side."""
    alt = load_package("altair")
    rows: Rows = [
        {"feature": feature_name(row.feature), "metric": row.metric, "system": row.system}
        | {"lost": row.share, "low": row.low, "high": row.high}
        for row in report.features
        if row.share is not None
    ]
    order = [row.system for row in report.systems]
    base = alt.Chart().encode(y=alt.Y("feature:N", title=None, sort="-x"), yOffset=alt.YOffset("system:N", sort=order))
    bars = base.mark_bar(opacity=0.85).encode(
        x=alt.X("lost:Q", title="share lost", axis=alt.Axis(format="%")),
        color=alt.Color("system:N", sort=order, scale=alt.Scale(range=list(COLOURS))),
    )
    lines = base.mark_rule(color="#222222").encode(x="low:Q", x2="high:Q")
    height = _ROW * len({row["feature"] for row in rows}) * max(1, len(order)) * 0.6
    whole = alt.layer(bars, lines, data=alt.Data(values=rows)).properties(width=_WIDTH, height=height)
    return _apply_style(whole.facet(column=alt.Column("metric:N", title=None)))


def highlights_chart(report: Report) -> Chart:
    """Return AUC and AP of each metric's highlights, with intervals."""
    rows: Rows = [
        {
            "metric": f"{row.metric} ({row.side})",
            "measure": name,
            "value": estimate.value,
            "low": estimate.low,
            "high": estimate.high,
        }
        for row in report.agreement
        for name, estimate in (("AUC", row.auc), ("AP", row.ap))
    ]
    return _panels(rows, by="measure", row="metric", value="value", order=None, shared=True)


def _panels(rows: Rows, *, by: str, row: str, value: str, order: Sequence[str] | None, shared: bool) -> Chart:
    """Return dots with intervals, a row each, in panels."""
    alt = load_package("altair")
    names = {str(record[row]) for record in rows}
    base = alt.Chart().encode(y=alt.Y(f"{row}:N", title=None, sort=list(order) if order else None))
    scale = alt.Scale(domain=[0, 1]) if shared else alt.Scale(zero=False)
    dots = base.mark_point(filled=True, size=70, color=COLOURS[0]).encode(
        x=alt.X(f"{value}:Q", title=None, scale=scale)
    )
    lines = base.mark_rule(color="#222222").encode(x=alt.X("low:Q", title=None), x2="high:Q")
    whole = alt.layer(lines, dots, data=alt.Data(values=rows))
    whole = whole.properties(width=_WIDTH // 2, height=_ROW * len(names))
    panels = whole.facet(column=alt.Column(f"{by}:N", title=None, sort=None))
    return _apply_style(panels if shared else panels.resolve_scale(x="independent"))


def _apply_style(chart: Any) -> Chart:  # noqa: ANN401 - of altair, which is not there for type checkers
    styled: Chart = (
        chart.configure_view(stroke=None)
        .configure(font="sans-serif", background="white")
        .configure_axis(labelFontSize=12, titleFontSize=12, gridColor="#e6e6e6", domainColor="#888888")
        .configure_header(labelFontSize=13, labelFontWeight="bold")
    )
    return styled
