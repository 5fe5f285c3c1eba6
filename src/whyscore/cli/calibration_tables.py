"""A calibration as tables: its settings, and what it did under every protocol beside the controls."""

from math import isfinite

from whyscore.analysis.calibrate.file import Calibration, Outcome
from whyscore.data.tabular import Cell, Table

_ORDER = ("oracle", "in-domain", "cross-domain")


def setting_table(found: Calibration) -> Table:
    """Return one row per setting: how much of the grid gains there, and what it would choose alone."""
    rows: list[tuple[Cell, ...]] = [
        (
            one.name,
            one.n,
            one.before,
            one.after,
            f"{one.improving}/{one.configurations}",
            one.improving_more,
            f"{one.best_gain:+.4f} (p {one.best_p:g}, w {one.best_w:g})",
            _choice(one.own_p, one.own_w),
            one.degenerate,
        )
        for one in found.settings
    ]
    head = (
        "setting",
        "n",
        "original",
        "fitted",
        "gain > 0",
        f"> {found.epsilon:g}",
        "best",
        "own choice",
        "degenerate",
    )
    return Table(head, tuple(rows))


def outcome_table(found: Calibration) -> Table:
    """Return one row per protocol, source and setting: correlation before and after, the gain and how sure it is."""
    ordered = sorted(found.outcomes, key=lambda one: (_ORDER.index(one.protocol), one.setting))
    rows: list[tuple[Cell, ...]] = [_row(one) for one in ordered]
    head = ("protocol", "setting", "source", "original", "boosted", "gain", "low", "high", "p", found.correction)
    notes = (
        "oracle: fitted and judged on the same data, always too good",
        "length, brevity, random: controls that know nothing",
    )
    return Table(head, tuple(rows), notes=notes)


def _row(one: Outcome) -> tuple[Cell, ...]:
    return (
        one.protocol, one.setting, one.source, one.before, one.after, one.gain,
        one.low, one.high, one.p_value, one.adjusted,
    )  # fmt: skip


def _choice(p: float, w: float) -> str:
    return f"p {p:g}, w {w:.3g}" if isfinite(p) and w < 1 else "not boosted"
