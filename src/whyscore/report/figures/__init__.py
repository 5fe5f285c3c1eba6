"""Charts as files for papers and slides: SVG, PNG, PDF and interactive HTML.

One chart in four formats: interactive HTML that works offline, SVG, PNG and PDF, with its caption beside it.

    save_chart(chart, folder, "grid", caption="What every p gains")

writes `grid.html`, `grid.svg`, `grid.png`, `grid.pdf` and `grid.txt`.
"""

import importlib
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Literal, get_args

from whyscore.errors import MissingExtra, SpecError, UserError

if TYPE_CHECKING:
    import altair as alt

    Chart = alt.Chart | alt.LayerChart | alt.FacetChart | alt.HConcatChart | alt.VConcatChart


Format = Literal["html", "svg", "png", "pdf"]
FORMATS: tuple[Format, ...] = get_args(Format)
_SHARPNESS = 2.0


def save_chart(
    chart: "Chart", folder: str | Path, name: str, *, caption: str = "", formats: Sequence[str] = FORMATS
) -> list[Path]:
    """Return the files that were written: the chart in every format, and its caption."""
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{place}: cannot be made: {error.strerror}. Choose another place") from error
    written = []
    for form in formats:
        path = place / f"{name}.{form}"
        path.write_bytes(drawn(chart, form))
        written.append(path)
    if caption:
        path = place / f"{name}.txt"
        path.write_text(caption + "\n", encoding="utf-8")
        written.append(path)
    return written


def load_package(name: str) -> ModuleType:
    """Return a package that draws; it belongs to an extra."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtra.of("drawing figures", "report") from error


def drawn(chart: "Chart", form: str) -> bytes:
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
