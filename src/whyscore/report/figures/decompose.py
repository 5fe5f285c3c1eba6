"""The charts of a decomposition, each from rows of plain data.

| chart | shows |
|---|---|
| shares | share of each feature with its interval, systems side by side |
| ranges | share against range (how good the context is), a point with its feature's name per system; r per feature |
| scores | share against the metric's score of all segments, one panel with its r per feature |
| frequencies | share against how frequent a feature is in references, means over systems, names on the points |
| measures | Pearson correlation over systems of -share with score and range; needs three systems or more |
| groups | the correlation with the score alone, one row per group (source language), sentence scorers beside features |
| best | the shares of the best submission of each group |
| discrepancy | how often a feature is used less, more or as often as in the references |
| usage | frequency and uniqueness of each feature on both sides |
| scorers | signed and absolute difference of sentence scores |
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from whyscore.analysis.decompose.result import Decomposition, Decompositions, ScorerDifference, label_fractions
from whyscore.report.figures import COLOURS, save_chart
from whyscore.types import FeatureShare

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


def draw(decompositions: Decompositions, folder: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Return the files that were written: every chart there are numbers for, in every format."""
    drawings = charts(decompositions).items()
    return [path for name, chart in drawings for path in save_chart(_Described(chart), folder, name, formats=formats)]


def charts(decompositions: Decompositions) -> dict[str, Chart]:
    """Return the charts by name; those without numbers are left out."""
    builders: dict[str, tuple[Rows, Callable[[Rows], Chart]]] = {
        "shares": (share_rows(decompositions), _share_chart),
        "ranges": (share_rows(decompositions), _range_chart),
        "scores": (share_rows(decompositions) if measure_rows(decompositions) else [], _score_chart),
        "frequencies": (frequency_rows(decompositions), _frequency_chart),
        "measures": (
            measure_rows(decompositions) if len({row.group for row in decompositions}) == 1 else [],
            _measure_chart,
        ),
        "groups": (group_rows(decompositions), _group_chart),
        "best": (best_rows(decompositions), _best_chart),
        "discrepancy": (discrepancy_rows(decompositions), _discrepancy_chart),
        "usage": (usage_rows(decompositions), _usage_chart),
        "scorers": (scorer_rows(decompositions), _scorer_chart),
    }
    return {name: chart(rows) for name, (rows, chart) in builders.items() if rows}


def share_rows(shares: Sequence[FeatureShare]) -> Rows:
    """Return the shares that are defined, with interval, range and n; in one group also r with range and score."""
    keys = ("group", "system", "metric", "feature", "share", "low", "high", "range", "sigma_all", "n")
    alone = len({row.group for row in shares}) == 1
    correlations = {
        (measure_row["metric"], measure_row["feature"], measure_row["measure"]): measure_row["pearson"]
        for measure_row in measure_rows(shares)
        if alone
    }
    rows: Rows = []
    for row in shares:
        if row.share is not None:
            names = {key: getattr(row, key) for key in keys} | {"system": _system(row)}
            for measure in ("range", "sigma_all"):
                r = correlations.get((row.metric, row.feature, measure))
                names[f"by_{measure}"] = f"{row.feature}, r = {-r:.2f}" if isinstance(r, float) else row.feature
            rows.append(names)
    return rows


def _system(row: FeatureShare | ScorerDifference) -> str:
    return " ".join(filter(None, (row.group, row.system)))


def measure_rows(feature_shares: Sequence[FeatureShare]) -> Rows:
    """Return for each group, metric and feature how -share goes with score and range over systems; n: over how many."""
    groups: dict[tuple[str | None, str, str], list[FeatureShare]] = {}
    for row in feature_shares:
        if row.share is not None:
            groups.setdefault((row.group, row.metric, row.feature), []).append(row)
    rows: Rows = []
    for (group, metric, feature), members in groups.items():
        if len(members) < _LEAST_SYSTEMS:
            continue
        shares = np.array([-float(row.share or 0.0) for row in members])
        for measure in ("sigma_all", "sigma", "range"):
            value = pearson(shares, np.array([float(getattr(row, measure)) for row in members]))
            names = {"group": group, "metric": metric, "feature": feature, "measure": measure}
            rows.append(names | {"pearson": value, "n": len(members)})
    return rows


def group_rows(decompositions: Decompositions) -> Rows:
    """Return how -share, and the smallness of each scorer's absolute difference, go with the score in each group."""
    rows = [
        row | {"group": row["group"] or "all"} for row in measure_rows(decompositions) if row["measure"] == "sigma_all"
    ]
    scores = {(row.group, row.system, row.metric): row.sigma_all for row in decompositions}
    for metric in dict.fromkeys(row.metric for row in decompositions):
        for group, scorer in dict.fromkeys(
            (difference.group, difference.scorer) for difference in decompositions.scorers
        ):
            differences = [
                difference
                for difference in decompositions.scorers
                if (difference.group, difference.scorer) == (group, scorer)
            ]
            pairs = [
                (difference.absolute, scores.get((group, difference.system, metric))) for difference in differences
            ]
            points = [(-x, y) for x, y in pairs if x is not None and y is not None]
            if len(points) >= _LEAST_SYSTEMS:
                value = pearson(*np.array(points).T)
                names = {"group": group or "all", "metric": metric, "feature": scorer, "measure": "sigma_all"}
                rows.append(names | {"pearson": value, "n": len(points)})
    return rows


def best_rows(shares: Sequence[FeatureShare]) -> Rows:
    """Return the shares of the submission with the best score of each group, where there are groups."""
    best: dict[tuple[str, str], FeatureShare] = {}
    for row in shares:
        if row.group is not None and row.sigma_all is not None:
            key = row.group, row.metric
            if key not in best or row.sigma_all > float(best[key].sigma_all or 0.0):
                best[key] = row
    return [
        {"group": f"{row.group}: {row.system}", "metric": row.metric, "feature": row.feature, "share": row.share}
        for row in shares
        if row.share is not None and row.group and best[row.group, row.metric].system == row.system
    ]


def frequency_rows(shares: Sequence[FeatureShare]) -> Rows:
    """Return for each metric and feature its mean share and its mean frequency in references, over systems."""
    pairs_by_feature: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for row in shares:
        often = row.frequency.get("reference")
        if row.share is not None and often is not None:
            pairs_by_feature.setdefault((row.metric, row.feature), []).append((row.share, often))
    return [
        {"metric": metric, "feature": feature, "share": float(share), "frequency": float(often)}
        for (metric, feature), pairs in pairs_by_feature.items()
        for share, often in [np.mean(pairs, axis=0)]
    ]


def pearson(
    x: "np.ndarray[tuple[int], np.dtype[np.float64]]", y: "np.ndarray[tuple[int], np.dtype[np.float64]]"
) -> float | None:
    """Return the correlation, None where one side does not vary."""
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    order = np.lexsort([y, x])  # sums in another order differ in the last digit
    return float(np.corrcoef(x[order], y[order])[0, 1])


def discrepancy_rows(decompositions: Sequence[Decomposition]) -> Rows:
    """Return the fractions of segments with less, more and as much of a feature as their references."""
    first = decompositions[0].metric if decompositions else None
    return [
        {"system": _system(row), "feature": row.feature, "outcome": outcome, "fraction": fraction}
        for row in decompositions
        if row.metric == first and row.discrepancy
        for outcome, fraction in label_fractions(row.discrepancy["all"], "field").items()
        if np.isfinite(fraction)
    ]


def usage_rows(decompositions: Sequence[Decomposition]) -> Rows:
    """Return frequency and uniqueness of each feature, references once and each system."""
    first = decompositions[0].metric if decompositions else None
    rows: Rows = []
    for row in decompositions:
        if row.metric != first or not row.frequency:
            continue
        for measure, values in (("frequency", row.frequency), ("uniqueness", row.uniqueness)):
            references = " ".join(filter(None, (row.group, "reference")))
            sides = {references: values["reference"], _system(row): values["hypothesis"]}
            texts = [
                {"text": text, "feature": row.feature, "measure": measure, "value": value}
                for text, value in sides.items()
                if value is not None
            ]
            rows += [text for text in texts if text not in rows]
    return rows


def scorer_rows(decompositions: Decompositions) -> Rows:
    """Return the signed and absolute differences of sentence scores with their intervals."""
    return [
        {"system": _system(scorer), "scorer": scorer.scorer, "difference": kind, "value": getattr(scorer, kind)}
        | {"low": getattr(scorer, f"{kind}_low"), "high": getattr(scorer, f"{kind}_high")}
        for scorer in decompositions.scorers
        for kind in ("signed", "absolute")
        if scorer.signed is not None
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
    shared = {"x": _numbers("range", "range: best case - worst case"), "y": _SHARE}
    correlated = any(row["by_range"] != row["feature"] for row in rows)
    point = {
        "color": _colour("by_range" if correlated else "system", rows),
        "tooltip": [_field(name) for name in ("group", "system", "metric", "feature", "share", "range", "n")],
    }
    return _chart(rows, {"layer": [_layer(_POINT, point), _layer(_LABEL, _NAME)], "encoding": shared})


def _score_chart(rows: Rows) -> Chart:
    several = any(row["group"] for row in rows)
    encoding = {
        "x": _numbers("sigma_all", str(rows[0]["metric"])) | {"scale": {"zero": False}},
        "y": _SHARE | {"scale": {"zero": False}},
        "color": _colour("group" if several else "system", rows),
        "facet": {"field": "by_sigma_all", "type": "nominal", "title": None, "columns": 3, "sort": None},
        "tooltip": [_field(name) for name in ("group", "system", "feature", "share", "sigma_all", "n")],
    }
    size = {"width": _WIDTH // 2, "height": _WIDTH // 3, "resolve": {"scale": {"y": "independent"}}}
    return _chart(rows, _layer(_POINT, encoding)) | size


def _frequency_chart(rows: Rows) -> Chart:
    shared = {"x": _numbers("frequency", "share of the words in the references"), "y": _SHARE}
    layers = [_layer(_POINT, {"color": _colour("metric", rows)}), _layer(_LABEL, _NAME)]
    return _chart(rows, {"layer": layers, "encoding": shared})


def _group_chart(rows: Rows) -> Chart:
    scale = {"scheme": "blueorange", "domain": [1, -1]}
    cell = {"color": {"field": "pearson", "type": "quantitative", "scale": scale, "title": "r of -share with score"}}
    return _heat(rows, cell, "pearson")


def _best_chart(rows: Rows) -> Chart:
    scale = {"scheme": "oranges"}
    return _heat(rows, {"color": {"field": "share", "type": "quantitative", "scale": scale, "title": "share"}}, "share")


def _heat(rows: Rows, cell: Mapping[str, object], value: str) -> Chart:
    number = {"text": {"field": value, "type": "quantitative", "format": ".2f"}}
    shared = {"x": _names("feature"), "y": _names("group")}
    return _chart(rows, {"layer": [_layer("rect", cell), _layer("text", number)], "encoding": shared})


def _measure_chart(rows: Rows) -> Chart:
    shared = {"x": _names("measure", f"over {rows[0]['n']} systems"), "y": _names("feature")}
    scale = {"scheme": "blueorange", "domain": [1, -1]}
    cell = {"color": {"field": "pearson", "type": "quantitative", "scale": scale, "title": "Pearson of -share"}}
    number = {"text": {"field": "pearson", "type": "quantitative", "format": ".2f"}}
    return _chart(rows, {"layer": [_layer("rect", cell), _layer("text", number)], "encoding": shared})


def _discrepancy_chart(rows: Rows) -> Chart:
    encoding = {
        "x": _numbers("fraction", "share of segments, compared with their references"),
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
_LABEL: Chart = {"type": "text", "align": "left", "dx": 6, "fontSize": 9}


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


_SHARE = _numbers("share", "share lost (lower is better)")
_NAME = {"text": _names("feature")}
