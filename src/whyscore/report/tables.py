"""A report as tables for papers (Markdown, LaTeX), as text for a terminal, and as JSON for programs.

A decomposition as tables: shares with what stands beside them, tests between systems, sentence scorers.
"""

import dataclasses
import json
from collections.abc import Sequence

from whyscore.analysis.decompose.result import Decomposition, Decompositions
from whyscore.analysis.decompose.views import LABELS, named
from whyscore.present import render
from whyscore.report.model import Report
from whyscore.report.verdict import p_value, shown
from whyscore.text.strict import finite
from whyscore.types.table import Cell, Table

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


_LONG = ("n", "informative", "sigma", "sigma_all", "oracle", "anti", "share", "low", "high", "guarded", "gain", "range")
_COUNTS = ("under", "over", "equal", "missing", "invented", "absent")


def share_table(found: Decompositions, labels: str = "field", over: str = "all", digits: int = 3) -> Table:
    """Return the table people read: one row per system and feature.

    `labels` names the discrepancy columns by sign, as the paper or as its code does; `over` counts all segments or
    `both`, those with the feature on both sides.
    """
    several = len({row.metric for row in found}) > 1
    added = any(row.additive is not None for row in found)
    rows = [_share_row(row, labels, over, digits, several=several, added=added) for row in found]
    columns = ["system", *(["metric"] if several else []), "feature", "n", "share", "interval", "gain", "range"]
    columns += [*LABELS[labels].values(), "word F", *(["additive"] if added else []), "notes"]
    return Table(tuple(columns), tuple(rows), {"share": False}, _best(found), _notes(found))


def long_table(found: Decompositions) -> Table:
    """Return the table programs read: every number of every row."""
    counts = [f"{name}_{over}" for over in ("all", "both") for name in _COUNTS]
    usage = [f"{name}_{side}" for name in ("frequency", "uniqueness") for side in ("reference", "hypothesis")]
    rest = ("precision", "recall", "word_f", "additive", "outside", "flags", "reason")
    columns = ("system", "metric", "feature", *_LONG, *counts, *usage, *rest)
    return Table(columns, tuple(_long_row(row) for row in found))


def difference_table(found: Decompositions) -> Table:
    """Return the differences between systems with p and q."""
    several = len({row.metric for row in found.tests}) > 1
    rows: list[tuple[Cell, ...]] = []
    for one in found.tests:
        names = (*((one.metric,) if several else ()), one.feature, f"{one.first} - {one.second}")
        rows.append((*names, one.difference, _interval(one.low, one.high, 3), one.p, one.q))
    columns = (*(("metric",) if several else ()), "feature", "systems", "difference", "interval", "p", "q")
    correction = found.tests[0].correction.replace("_", "-") if found.tests else ""
    note = f"difference of shares, below zero the first is better; q is p corrected over all rows ({correction})"
    return Table(columns, tuple(rows), {}, frozenset(), (note,))


def scorer_table(found: Decompositions) -> Table:
    """Return how far texts are from their references on sentence scores."""
    rows: list[tuple[Cell, ...]] = []
    for one in found.scorers:
        signed = one.signed, _interval(one.signed_low, one.signed_high, 4)
        absolute = one.absolute, _interval(one.absolute_low, one.absolute_high, 4)
        rows.append((one.system, one.scorer, one.n, one.left_out, *signed, *absolute))
    columns = ("system", "scorer", "n", "left out", "signed", "interval", "absolute", "its interval")
    note = "signed: mean of reference - hypothesis; absolute: mean of the size of that difference"
    return Table(columns, tuple(rows), {}, frozenset(), (note,))


def segment_table(found: Decompositions) -> Table:
    """Return the numbers of every segment behind every row."""
    rows: list[tuple[Cell, ...]] = [
        (row.system, row.metric, row.feature, name, sigma, oracle, anti)
        for row in found
        if row.segments is not None
        for name, sigma, oracle, anti in zip(
            row.segments.ids,
            row.segments.sigma.tolist(),
            row.segments.oracle.tolist(),
            row.segments.anti.tolist(),
            strict=True,
        )
    ]
    return Table(("system", "metric", "feature", "id", "sigma", "oracle", "anti"), tuple(rows))


def _share_row(
    row: Decomposition, labels: str, over: str, digits: int, *, several: bool, added: bool
) -> tuple[Cell, ...]:
    fractions = named(row.discrepancy[over], labels).values()
    said = [*row.flags, *([row.reason] if row.reason else [])]
    return (
        row.system,
        *((row.metric,) if several else ()),
        row.feature,
        row.n,
        row.share,
        _interval(row.low, row.high, digits),
        row.gain,
        row.range,
        *fractions,
        row.word_f.get("f"),
        *((row.additive,) if added else ()),
        ", ".join(said),
    )


def _long_row(row: Decomposition) -> tuple[Cell, ...]:
    numbers: list[Cell] = [getattr(row, name) for name in _LONG]
    counts: list[Cell] = [row.discrepancy[over][name] for over in ("all", "both") for name in _COUNTS]
    usage: list[Cell] = [held[side] for held in (row.frequency, row.uniqueness) for side in ("reference", "hypothesis")]
    words: list[Cell] = [row.word_f.get(name) for name in ("precision", "recall", "f")]
    rest: tuple[Cell, ...] = (row.additive, row.outside, " ".join(row.flags), row.reason)
    return (row.system, row.metric, row.feature, *numbers, *counts, *usage, *words, *rest)


def _interval(low: float | None, high: float | None, digits: int) -> str:
    return "-" if low is None or high is None else f"[{low:.{digits}f}, {high:.{digits}f}]"


def _best(found: Sequence[Decomposition]) -> frozenset[tuple[int, str]]:
    """Return the cells of the smallest share of each feature, where there are several systems."""
    best = set()
    for key in {(row.metric, row.feature) for row in found}:
        shares = {k: row.share for k, row in enumerate(found) if (row.metric, row.feature) == key}
        known = {k: share for k, share in shares.items() if share is not None}
        if len(known) > 1:
            smallest = min(known.values())
            best |= {(k, "share") for k, share in known.items() if share == smallest}
    return frozenset(best)


def _notes(found: Decompositions) -> tuple[str, ...]:
    told = ["share: part of what the feature could win or lose that is lost; lower is better; 95 % bootstrap interval"]
    told += [
        f"{system}, {metric}: words without any of these features add {value:.4f}"
        for (system, metric), value in found.others.items()
    ]
    return (*told, *found.notes, *(str(signature) for signature in found.signatures.values()))
