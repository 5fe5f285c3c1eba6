"""A decomposition as tables: shares with what stands beside them, tests between systems, sentence scorers."""

from collections.abc import Sequence

from whyscore.analysis.decompose.result import Decomposition, Decompositions
from whyscore.analysis.decompose.views import LABELS, named
from whyscore.types.table import Cell, Table

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
