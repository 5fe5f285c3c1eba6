"""The charts of a decomposition, each from rows of plain data.

| chart | shows |
|---|---|
| shares | share of each feature with its interval, systems side by side |
| ranges | share against range (how good the context is), one point per system and feature |
| measures | Pearson correlation over systems of -share with score and range; needs three systems or more |
| discrepancy | how often a feature is used less, more or as often as in the references |
| usage | frequency and uniqueness of each feature on both sides |
| scorers | signed and absolute difference of sentence scores |
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from whyscore.analysis.decompose.result import Decomposition, Decompositions, named
from whyscore.errors import UserError
from whyscore.report.figures.report import COLOURS, rendered

Rows = list[dict[str, object]]
Chart = dict[str, object]
"""A Vega-Lite description."""

FORMATS = ("svg", "html")
_SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
_LEAST_SYSTEMS = 3
_WIDTH = 360


@dataclass(frozen=True)
class _Described:
    """A chart that is its description."""

    chart: Chart

    def to_json(self) -> str:
        """Return the description."""
        return json.dumps(self.chart)


def draw(found: Decompositions, folder: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Return the files that were written: every chart there are numbers for, in every format."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder}: cannot be made: {error.strerror}. Choose another folder with --figures") from error
    written = []
    for name, chart in charts(found).items():
        for form in formats:
            path = folder / f"{name}.{form}"
            path.write_bytes(rendered(_Described(chart), form))
            written.append(path)
    return written


def charts(found: Decompositions) -> dict[str, Chart]:
    """Return the charts by name; those without numbers are left out."""
    made: dict[str, tuple[Rows, Callable[[Rows], Chart]]] = {
        "shares": (share_rows(found), _share_chart),
        "ranges": (share_rows(found), _range_chart),
        "measures": (measure_rows(found), _measure_chart),
        "discrepancy": (discrepancy_rows(found), _discrepancy_chart),
        "usage": (usage_rows(found), _usage_chart),
        "scorers": (scorer_rows(found), _scorer_chart),
    }
    return {name: chart(rows) for name, (rows, chart) in made.items() if rows}


def share_rows(found: Sequence[Decomposition]) -> Rows:
    """Return the shares that are defined, with interval, range and n."""
    keys = ("system", "metric", "feature", "share", "low", "high", "range", "n")
    return [{key: getattr(row, key) for key in keys} for row in found if row.share is not None]


def measure_rows(found: Sequence[Decomposition]) -> Rows:
    """Return for each metric and feature how -share goes with score and range over systems; n says over how many."""
    rows: Rows = []
    for metric, feature in dict.fromkeys((row.metric, row.feature) for row in found):
        known = [row for row in found if (row.metric, row.feature) == (metric, feature) and row.share is not None]
        if len(known) < _LEAST_SYSTEMS:
            continue
        shares = np.array([-float(row.share or 0.0) for row in known])
        for measure in ("sigma_all", "sigma", "range"):
            value = pearson(shares, np.array([float(getattr(row, measure)) for row in known]))
            names = {"metric": metric, "feature": feature, "measure": measure}
            rows.append(names | {"pearson": value, "n": len(known)})
    return rows


def pearson(
    x: "np.ndarray[tuple[int], np.dtype[np.float64]]", y: "np.ndarray[tuple[int], np.dtype[np.float64]]"
) -> float | None:
    """Return the correlation, None where one side does not vary."""
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    return float(np.corrcoef(x, y)[0, 1])


def discrepancy_rows(found: Sequence[Decomposition]) -> Rows:
    """Return the fractions of segments with less, more and as much of a feature as their references."""
    first = found[0].metric if found else None
    return [
        {"system": row.system, "feature": row.feature, "outcome": outcome, "fraction": fraction}
        for row in found
        if row.metric == first
        for outcome, fraction in named(row.discrepancy["all"], "field").items()
        if np.isfinite(fraction)
    ]


def usage_rows(found: Sequence[Decomposition]) -> Rows:
    """Return frequency and uniqueness of each feature, references once and each system."""
    first = found[0].metric if found else None
    rows: Rows = []
    for row in found:
        if row.metric != first:
            continue
        for measure, held in (("frequency", row.frequency), ("uniqueness", row.uniqueness)):
            sides = {"reference": held["reference"], row.system: held["hypothesis"]}
            texts = [
                {"text": text, "feature": row.feature, "measure": measure, "value": value}
                for text, value in sides.items()
                if value is not None
            ]
            rows += [one for one in texts if one not in rows]
    return rows


def scorer_rows(found: Decompositions) -> Rows:
    """Return the signed and absolute differences of sentence scores with their intervals."""
    return [
        {"system": one.system, "scorer": one.scorer, "difference": kind, "value": getattr(one, kind)}
        | {"low": getattr(one, f"{kind}_low"), "high": getattr(one, f"{kind}_high")}
        for one in found.scorers
        for kind in ("signed", "absolute")
        if one.signed is not None
    ]


def _share_chart(rows: Rows) -> Chart:
    shared = {"y": _names("feature"), "yOffset": _names("system")}
    bar = {"x": _numbers("share", "share lost (lower is better)"), "color": _colour("system", rows)}
    layers = [
        _layer("bar", bar),
        _layer({"type": "rule", "color": "black"}, {"x": _numbers("low"), "x2": _field("high")}),
    ]
    return _chart(rows, {"layer": layers, "encoding": shared})


def _range_chart(rows: Rows) -> Chart:
    encoding = {
        "x": _numbers("range", "range: best case - worst case"),
        "y": _numbers("share", "share lost (lower is better)"),
        "color": _colour("system", rows),
        "tooltip": [_field(name) for name in ("system", "metric", "feature", "share", "range", "n")],
    }
    return _chart(rows, _layer(_POINT, encoding))


def _measure_chart(rows: Rows) -> Chart:
    shared = {"x": _names("measure", f"over {rows[0]['n']} systems"), "y": _names("feature")}
    scale = {"scheme": "blueorange", "domain": [1, -1]}
    cell = {"color": {"field": "pearson", "type": "quantitative", "scale": scale, "title": "Pearson of -share"}}
    number = {"text": {"field": "pearson", "type": "quantitative", "format": ".2f"}}
    return _chart(rows, {"layer": [_layer("rect", cell), _layer("text", number)], "encoding": shared})


def _discrepancy_chart(rows: Rows) -> Chart:
    encoding = {
        "x": _numbers("fraction", "segments, against their references"),
        "y": _names("feature"),
        "yOffset": _names("system"),
        "color": _colour("outcome", rows),
        "tooltip": [_field(name) for name in ("system", "feature", "outcome", "fraction")],
    }
    return _chart(rows, _layer("bar", encoding))


def _usage_chart(rows: Rows) -> Chart:
    encoding = {
        "x": _numbers("value"),
        "y": _names("feature"),
        "color": _colour("text", rows),
        "shape": _names("text"),
        "column": _names("measure"),
    }
    return _chart(rows, _layer(_POINT, encoding))


def _scorer_chart(rows: Rows) -> Chart:
    shared = {"y": _names("scorer"), "yOffset": _names("system")}
    title = "reference - hypothesis"
    point = {"x": _numbers("value", title), "color": _colour("system", rows)}
    layers = [
        _layer("rule", {"x": _numbers("low", title), "x2": _field("high")}),
        _layer(_POINT, point | {"shape": _names("difference")}),
    ]
    return _chart(rows, {"layer": layers, "encoding": shared})


_POINT: Chart = {"type": "point", "filled": True, "size": 60}


def _chart(rows: Rows, body: Chart) -> Chart:
    config = {"font": "sans-serif", "background": "white"}
    return {"$schema": _SCHEMA, "data": {"values": rows}, "width": _WIDTH, "config": config} | body


def _layer(mark: str | Chart, encoding: Mapping[str, object]) -> Chart:
    return {"mark": mark, "encoding": encoding}


def _field(name: str) -> Chart:
    return {"field": name}


def _numbers(name: str, title: str | None = None) -> Chart:
    return {"field": name, "type": "quantitative", "title": title}


def _names(name: str, title: str | None = None) -> Chart:
    return {"field": name, "type": "nominal", "title": title, "sort": None}


def _colour(name: str, rows: Rows) -> Chart:
    order = list(dict.fromkeys(str(row[name]) for row in rows))
    return _names(name) | {"scale": {"domain": order, "range": list(COLOURS)}}
