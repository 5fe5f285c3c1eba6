"""The figures of boosting, drawn from the tables of a run alone.

| figure | shows |
|---|---|
| `curves` | correlation over p, one line per w, the original as a black line, the degenerate range shaded |
| `heat` | what every p and w gains; degenerate cells are hatched by a grey stroke |
| `improving` | box plots of the p and w that gain more than epsilon, with their medians |
| `settings` | original against boosted in every setting, beside the controls |
| `counts` | how many settings got better, worse, or stayed, by source |
| `sorted_scores` | human, original and aggregated scores in units of their deviation, ordered by the human score |
| `stability` | agreement of repeated runs by w |
| `choices` | p and w as chosen on every split |
| `costs` | texts scored and seconds by explainer |
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from whyscore.report.figures import load_package

if TYPE_CHECKING:
    from types import ModuleType

    from whyscore.report.figures import Chart

Rows = Sequence[Mapping[str, object]]

BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#999999"
_DEGENERATE = 0.5
_WIDTH, _HEIGHT = 300, 180
_CURVE_POINTS = 4000
_LINE_POINTS = 300
_COARSE = 5
_BOX = 44


def curves(rows: Rows) -> "Chart":
    """Return correlation over p for each w, a panel per setting and explainer."""
    alt = load_package("altair")
    base = alt.Chart(_values(rows)).properties(width=_WIDTH, height=_HEIGHT)
    # The degenerate share is the same for every w: one row for each p will do.
    least = min((float(str(row["w"])) for row in rows), default=0.0)
    shade = (
        base.transform_filter(f"datum.degenerate > {_DEGENERATE} && datum.w == {least!r}")
        .mark_rule(color=GREY, opacity=0.12, strokeWidth=3)
        .encode(x=alt.X("p:Q"))
    )
    lines = base.mark_line(strokeWidth=1.4).encode(
        x=alt.X("p:Q", title="p"),
        y=alt.Y("correlation:Q", title="correlation", scale=alt.Scale(zero=False)),
        color=alt.Color("w:O", scale=alt.Scale(scheme="viridis")),
        tooltip=["setting:N", "p:Q", "w:Q", "correlation:Q", "gain:Q", "degenerate:Q"],
    )
    original = base.mark_line(color="black", strokeWidth=1.6).encode(
        x="p:Q", y=alt.Y("original:Q", title="correlation")
    )
    layers = alt.layer(shade, lines, original)
    chart: Chart = layers.facet(facet=alt.Facet("panel:N", title=None), columns=3).resolve_scale(y="independent")
    return chart


def heat(rows: Rows) -> "Chart":
    """Return the gain of every p and w as colours, a panel per setting and explainer."""
    alt = load_package("altair")
    gains = [abs(row["gain"]) for row in rows if isinstance(row["gain"], float)]
    largest = max(gains, default=0.0) or 1.0
    base = alt.Chart(_values(rows, every=_COARSE)).properties(width=_WIDTH, height=_HEIGHT)
    cells = base.mark_rect().encode(
        x=alt.X("p:O", axis=alt.Axis(labelOverlap=True, format=".0f"), title="p"),
        y=alt.Y("w:O", sort="descending"),
        color=alt.Color("gain:Q", scale=alt.Scale(scheme="blueorange", domain=[-largest, largest], reverse=True)),
        tooltip=["setting:N", "p:Q", "w:Q", "gain:Q", "degenerate:Q"],
    )
    marks = (
        base.transform_filter(f"datum.degenerate > {_DEGENERATE}")
        .mark_text(text="/", color="#555")
        .encode(x="p:O", y=alt.Y("w:O", sort="descending"))
    )
    chart: Chart = alt.layer(cells, marks).facet(facet=alt.Facet("panel:N", title=None), columns=2)
    return chart


def improving(rows: Rows, epsilon: float) -> "Chart":
    """Return box plots of the p and the w that gain more than epsilon, per explainer."""
    alt = load_package("altair")
    gaining = [row for row in rows if isinstance(row["gain"], float) and row["gain"] > epsilon]
    panels = []
    for name in ("p", "w"):
        base = alt.Chart({"values": [{"explainer": row["explainer"], name: row[name]} for row in gaining]})
        box = base.mark_boxplot(extent="min-max", color=BLUE).encode(
            x=alt.X(f"{name}:Q"), y=alt.Y("explainer:N", title=None)
        )
        median = base.mark_text(dy=-15, fontSize=11).encode(
            x=alt.X(f"median({name}):Q"), y="explainer:N", text=alt.Text(f"median({name}):Q", format=".2f")
        )
        panels.append(
            alt.layer(box, median).properties(
                width=_WIDTH, height=alt.Step(_BOX), title=f"{name} with a gain above {epsilon:g}"
            )
        )
    chart: Chart = alt.hconcat(*panels)
    return chart


def settings(rows: Rows) -> "Chart":
    """Return original against boosted correlation in every setting, by source and protocol."""
    alt = load_package("altair")
    values = [{**row, "result": _result(row["gain"]), "panel": f"{row['protocol']} · {row['setting']}"} for row in rows]
    base = alt.Chart({"values": values}).properties(width=_WIDTH)
    rule = base.mark_rule(color=GREY).encode(
        x=alt.X("before:Q", title="correlation", scale=alt.Scale(zero=False)), x2="after:Q", y="source:N"
    )
    before = base.mark_point(color="black", filled=True, size=50).encode(x="before:Q", y=alt.Y("source:N", title=None))
    after = base.mark_point(filled=True, size=70).encode(
        x="after:Q",
        y="source:N",
        color=alt.Color("result:N", scale=_results(alt)),
        tooltip=["protocol:N", "setting:N", "source:N", "before:Q", "after:Q", "gain:Q", "p_value:Q", "adjusted:Q"],
    )
    layers = alt.layer(rule, before, after)
    facet = alt.Facet("panel:N", title=None)
    chart: Chart = layers.facet(facet=facet, columns=3).resolve_scale(x="independent")
    return chart


def counts(rows: Rows) -> "Chart":
    """Return how many settings got better or worse, by source."""
    alt = load_package("altair")
    marked = alt.Chart({"values": [{**row, "result": _result(row["gain"])} for row in rows]}).mark_bar()
    encoding = {
        "x": alt.X("count():Q", title="settings"),
        "y": alt.Y("source:N", title=None),
        "color": alt.Color("result:N", scale=_results(alt)),
    }
    return _panels(marked, encoding, {"width": _WIDTH}, column=alt.Column("protocol:N", title=None))


def bars(rows: Rows) -> "Chart":
    """Return the mean correlation of the original and of each source, by data set and metric."""
    alt = load_package("altair")
    original = [{**row, "source": "original", "after": row["before"]} for row in rows]
    encoding = {
        "x": alt.X("source:N", title=None, sort=None),
        "y": alt.Y("mean(after):Q", title="correlation with human scores"),
        "color": alt.Color("source:N", legend=None, sort=None),
    }
    facets = {"column": alt.Column("data:N", title=None), "row": alt.Row("protocol:N", title=None)}
    return _panels(alt.Chart({"values": [*original, *rows]}).mark_bar(), encoding, {"width": _WIDTH // 3}, **facets)


def sorted_scores(rows: Rows) -> "Chart":
    """Return human, original and aggregated scores, standardised, in the order of the human scores."""
    alt = load_package("altair")
    base = alt.Chart({"values": [{**row, "panel": _panel(row)} for row in rows]})
    colours = alt.Scale(domain=["human", "original", "aggregate"], range=["black", BLUE, ORANGE])
    encoding = {
        "x": alt.X("place:Q", title="segments, worst to best by human score"),
        "y": alt.Y("z:Q", title="standard deviations"),
        "color": alt.Color("score:N", scale=colours),
    }
    marked = base.mark_point(size=8, filled=True, opacity=0.6)
    return _panels(marked, encoding, facet=alt.Facet("panel:N", title=None), columns=2)


def stability(rows: Rows) -> "Chart":
    """Return the agreement of repeated runs by w, one line per number of samples."""
    alt = load_package("altair")
    base = alt.Chart({"values": [dict(row) for row in rows if row["w"] is not None]})
    encoding = {
        "x": alt.X("w:Q"),
        "y": alt.Y("correlation:Q", title="correlation between runs", scale=alt.Scale(zero=False)),
        "color": alt.Color("samples:N"),
        "tooltip": ["group:N", "samples:N", "w:Q", "correlation:Q"],
    }
    return _panels(base.mark_line(point=True), encoding, facet=alt.Facet("group:N", title=None), columns=3)


def choices(rows: Rows) -> "Chart":
    """Return p and w as chosen on every split, by source and rule."""
    alt = load_package("altair")
    base = alt.Chart({"values": [dict(row) for row in rows if row["p"] is not None]})
    encoding = {
        "x": alt.X("p:Q"),
        "y": alt.Y("w:Q", scale=alt.Scale(domain=[0, 1])),
        "color": alt.Color("source:N"),
        "shape": alt.Shape("source:N"),
        "tooltip": ["source:N", "rule:N", "split:O", "p:Q", "w:Q"],
    }
    marked = base.mark_point(filled=True, size=60, opacity=0.7)
    return _panels(marked, encoding, facet=alt.Facet("rule:N", title=None), columns=3)


def _panels(
    marked: Any,  # noqa: ANN401 - of altair, which is not there for type checkers
    encoding: Mapping[str, object],
    size: Mapping[str, object] = MappingProxyType({"width": _WIDTH, "height": _HEIGHT}),
    **facets: object,
) -> "Chart":
    """Return one panel per facet."""
    chart: Chart = marked.encode(**encoding).properties(**size).facet(**facets)
    return chart


def costs(rows: Rows) -> "Chart":
    """Return texts scored and seconds taken by explainer."""
    alt = load_package("altair")
    base = alt.Chart({"values": [dict(row) for row in rows]}).mark_bar(color=BLUE).properties(width=_WIDTH)
    chart: Chart = alt.hconcat(
        base.encode(x=alt.X("texts:Q"), y=alt.Y("explainer:N", title=None)),
        base.encode(x=alt.X("seconds:Q"), y=alt.Y("explainer:N", title=None)),
    )
    return chart


def _values(rows: Rows, every: int = 1) -> dict[str, object]:
    """Return the rows as chart data with their panel; long curves are thinned to what can be seen."""
    powers = sorted({float(str(row["p"])) for row in rows})
    panels = len({_panel(row) for row in rows}) or 1
    step = max(every, -(-len(rows) // (_CURVE_POINTS * panels)), -(-len(powers) // _LINE_POINTS))
    shown = set(powers[::step])
    return {"values": [{**row, "panel": _panel(row)} for row in rows if float(str(row["p"])) in shown]}


def _panel(row: Mapping[str, object]) -> str:
    """Return the title of the panel that a row belongs to."""
    where = row.get("setting") or row.get("group")
    return " · ".join(str(part) for part in (row["explainer"], where) if part)


def _results(alt: "ModuleType") -> object:
    """Return the colours of better, equal and worse."""
    return alt.Scale(domain=["improved", "unchanged", "worse"], range=[BLUE, GREY, ORANGE])


def _result(gain: object) -> str:
    if not isinstance(gain, float) or gain == 0:
        return "unchanged"
    return "improved" if gain > 0 else "worse"
