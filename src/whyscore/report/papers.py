"""A report as tables for papers (Markdown, LaTeX), as text for a terminal, and as JSON for programs."""

import dataclasses
import json

from whyscore.data.strict import finite
from whyscore.data.tabular import Cell, Table, render
from whyscore.report.model import Report
from whyscore.report.verdict import p_value, shown

FORMS = ("text", "markdown", "latex")


def summary(report: Report) -> str:
    """Return what a terminal shows: the verdict, then systems x metrics."""
    lines = [f"{report.title}: {report.about}", *([report.headline] if report.headline else []), *report.verdict]
    return "\n\n".join(["\n".join(lines), render(systems_table(report), "text")])


def paper(report: Report, form: str) -> str:
    """Return all tables of a report in Markdown or LaTeX."""
    parts = [("Systems", systems_table(report, notes=True))]
    parts += [("Tests between systems", tests_table(report))] if report.comparisons else []
    parts += [("Features lost", features_table(report))] if report.features else []
    parts += [("Highlights against people", agreement_table(report))] if report.agreement else []
    heading = "## {}\n\n{}" if form == "markdown" else "% {}\n{}"
    text = "\n".join(heading.format(title, render(table, form)) for title, table in parts)
    if form != "markdown":
        return text
    said = "\n".join(f"- {_plain(sentence)}" for sentence in report.verdict)
    first = f"**{_plain(report.headline)}**\n\n" if report.headline else ""
    return f"# {_plain(report.title)}\n\n{_plain(report.about)}\n\n{first}{said}\n\n{text}"


def as_json(report: Report) -> str:
    """Return the report as one JSON document, without the packed data of the page."""
    fields = {field.name: getattr(report, field.name) for field in dataclasses.fields(report)}
    kept = {name: value for name, value in fields.items() if name not in ("explorer", "figures")}
    return json.dumps(finite(_unpacked(kept)), ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def systems_table(report: Report, *, notes: bool = False) -> Table:
    """Return systems x metrics with intervals; the first cluster is bold, or the best where nothing was tested."""
    names, digits = [metric.name for metric in report.metrics], [metric.digits for metric in report.metrics]
    rows: list[tuple[Cell, ...]] = [(row.system, *map(shown, row.totals, digits), *row.human) for row in report.systems]
    told = [f"{report.about}; in brackets the 95 % interval of the bootstrap over segments"]
    told += [text for name, text in report.made.signatures if name in names]
    return Table(
        ("system", *names, *(f"people: {name}" for name in report.human)),
        tuple(rows),
        {metric.name: metric.higher_is_better for metric in report.metrics},
        frozenset(_first(report)),
        tuple(told) if notes else (),
    )


def tests_table(report: Report) -> Table:
    """Return one row per metric and pair of systems."""
    rows = [
        (
            *(one.metric, one.first, one.second, one.difference, one.low, one.high),
            *("" if one.p is None else p_value(one.p), one.better or ""),
        )
        for one in report.comparisons
    ]
    return Table(("metric", "system", "against", "difference", "low", "high", "p", "better"), tuple(rows))


def features_table(report: Report) -> Table:
    """Return one row per metric, feature and system."""
    rows = [
        (row.metric, row.feature, row.system, row.share, row.low, row.high, row.under, row.over, row.n)
        for row in report.features
    ]
    columns = ("metric", "feature", "system", "lost", "low", "high", "too few", "too many", "segments")
    return Table(columns, tuple(rows))


def agreement_table(report: Report) -> Table:
    """Return how well highlights find what people marked."""
    rows = [
        (row.metric, row.explainer, row.side, shown(row.auc, 3), shown(row.ap, 3), row.chance_ap, row.n)
        for row in report.agreement
    ]
    return Table(("metric", "explained by", "side", "AUC", "AP", "AP by chance", "texts"), tuple(rows))


def _first(report: Report) -> list[tuple[int, str]]:
    if len(report.systems) < 2:  # noqa: PLR2004 - one system is not best
        return []
    found = []
    for k, metric in enumerate(report.metrics):
        values = [row.totals[k].value for row in report.systems]
        best = max(values) if metric.higher_is_better else min(values)
        tested = any(row.clusters[k] is not None for row in report.systems)
        for number, row in enumerate(report.systems):
            if row.clusters[k] == 1 if tested else row.totals[k].value == best:
                found.append((number, metric.name))
    return found


def _plain(text: str) -> str:
    """Return a text in Markdown without any markup of its own."""
    return "".join(f"\\{character}" if character in "\\`*_[]<>|#" else character for character in text)


def _unpacked(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _unpacked(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {key: _unpacked(item) for key, item in value.items()}
    return [_unpacked(item) for item in value] if isinstance(value, tuple | list) else value
