"""What a comparison of systems says: scores, tested differences, clusters, and the same in plain words.

Quality gates on a comparison, as `runs_gates` has them on a run.

| gate | passed where |
|---|---|
| `under`: a metric and a number | every system reaches the number (or stays below it, where lower is better) |
| `worse`: a system | no other system is worse than it beyond chance, by any metric |
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from markupsafe import Markup

from whyscore.analysis.compare.power import PairPower
from whyscore.errors import GateNotPassed
from whyscore.stats.correction import Clusters
from whyscore.types import Estimate, PairTest, Signature
from whyscore.types.table import Cell, Table

_DIGITS = 2
_SHARE_DIGITS = 3
_SHOWN = 50


@dataclass(frozen=True, slots=True, eq=False)
class MetricComparison:
    """All systems under one metric, best first in `clusters`."""

    metric: str
    totals: Mapping[str, Estimate]
    pairs: tuple[PairTest, ...]
    clusters: Clusters
    strengths: Mapping[str, float]
    """Bradley-Terry strengths by won segments; unlike scores, they do not move with the size of a difference."""
    higher_is_better: bool
    signature: Signature | None = None
    strength_intervals: Mapping[str, Estimate] = field(default_factory=dict)
    """Of the strengths, by resampled segments; empty where nobody asked."""
    powers: tuple[PairPower, ...] = ()
    """By simulation; empty where nobody asked."""

    @property
    def won(self) -> str:
        """The strengths with their intervals, the strongest first, in one line."""
        order = sorted(self.strength_intervals.items(), key=lambda item: -item[1].value)
        shown = ", ".join(f"{system} {_interval(one, _SHARE_DIGITS)}" for system, one in order)
        return f"{self.metric}: strength by won segments (Bradley-Terry): {shown}"

    @property
    def ranks(self) -> dict[str, int]:
        """The rank of each system: that of its cluster."""
        return dict(zip(self.clusters.names, self.clusters.ranks, strict=True))


@dataclass(frozen=True, eq=False)
class Comparison:
    """Systems x metrics, with tests between every two systems."""

    systems: tuple[str, ...]
    metrics: tuple[MetricComparison, ...]
    test: str
    n: int
    """Segments that all systems have."""
    blocks: int | None
    draws: int
    seed: int
    alpha: float
    correction: str
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[MetricComparison]:
        """Yield the metrics."""
        return iter(self.metrics)

    @property
    def pairs(self) -> tuple[PairTest, ...]:
        """The tested differences of all metrics."""
        return tuple(pair for one in self.metrics for pair in one.pairs)

    @property
    def how(self) -> str:
        """What the numbers mean, in one line."""
        unit = f"{self.blocks} documents" if self.blocks else f"{self.n} segments"
        corrected = "" if self.correction == "none" else f", {self.correction}-corrected per metric"
        return (
            f"{self.n} segments; in brackets the 95 % interval of the bootstrap over {unit}; rank = cluster of systems "
            f"that a {self.test} test (two-sided, alpha {self.alpha:g}, seed {self.seed}{corrected}) cannot tell apart"
        )

    def table(self, digits: int = _DIGITS) -> Table:
        """Return systems x metrics with intervals and ranks; the best cluster of each metric is bold."""
        columns = ("system", *(name for one in self.metrics for name in (one.metric, f"{one.metric} rank")))
        rows: list[tuple[Cell, ...]] = []
        for system in self.systems:
            cells = [(_interval(one.totals[system], digits), one.ranks[system]) for one in self.metrics]
            rows.append((system, *(cell for pair in cells for cell in pair)))
        best = frozenset(
            (row, one.metric)
            for one in self.metrics
            for row, system in enumerate(self.systems)
            if one.ranks[system] == 1
        )
        directions = {one.metric: one.higher_is_better for one in self.metrics}
        signatures = dict.fromkeys(str(one.signature) for one in self.metrics if one.signature)
        return Table(columns, tuple(rows), directions, best, (self.how, *self.notes, *signatures))

    def scores(self) -> list[dict[str, Cell]]:
        """Return one row per metric and system, for programs."""
        return [
            {
                "metric": one.metric,
                "system": system,
                "score": total.value,
                "low": total.low,
                "high": total.high,
                "rank": one.ranks[system],
                "strength": one.strengths[system],
                **_strength_ends(one, system),
                "n": total.n,
            }
            for one in self.metrics
            for system, total in one.totals.items()
        ]

    def rows(self) -> list[dict[str, Cell | bool]]:
        """Return one row per metric and pair of systems, for programs."""
        return [
            {
                "metric": pair.metric,
                "first": pair.first,
                "second": pair.second,
                "difference": pair.difference,
                "low": pair.low,
                "high": pair.high,
                "p": pair.p,
                "adjusted": pair.adjusted,
                "better": pair.better,
                "test": self.test,
                "method": pair.method,
                "exact": pair.exact,
                "n": pair.n,
                "blocks": pair.blocks,
                "detectable": pair.detectable,
                "needed": pair.needed,
                "reason": pair.reason,
            }
            for pair in self.pairs
        ]

    def __str__(self) -> str:
        """Return every tested pair in plain words, one a line."""
        return "\n".join(map(str, self.pairs))

    def _repr_html_(self) -> str:
        table = self.table()
        cell = Markup("<td>{}</td>")
        bold = Markup("<td><b>{}</b></td>")
        head = Markup("").join(Markup("<th>{}</th>").format(name) for name in table.columns)
        body = Markup("").join(
            Markup("<tr>{}</tr>").format(
                Markup("").join(
                    (bold if (number, name) in table.bold else cell).format(value)
                    for name, value in zip(table.columns, row, strict=True)
                )
            )
            for number, row in enumerate(table.rows)
        )
        lines = Markup("").join(Markup("<li>{}</li>").format(str(pair)) for pair in islice(self.pairs, _SHOWN))
        more = len(self.pairs) - _SHOWN
        tail = Markup("<p>and {} more pairs</p>").format(more) if more > 0 else Markup("")
        notes = Markup("").join(Markup("<br><small>{}</small>").format(note) for note in table.notes)
        frame = Markup("<div><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>{}<ul>{}</ul>{}</div>")
        return str(frame.format(head, body, notes, lines, tail))


def _strength_ends(one: MetricComparison, system: str) -> dict[str, Cell]:
    found = one.strength_intervals.get(system)
    return {} if found is None else {"strength_low": found.low, "strength_high": found.high}


def _interval(total: Estimate, digits: int) -> str:
    if math.isnan(total.value):
        return "-"
    shown = "" if total.low is None or total.high is None else f" [{total.low:.{digits}f}, {total.high:.{digits}f}]"
    return f"{total.value:.{digits}f}{shown}"


def comparison_failures(found: Comparison, under: Mapping[str, float], worse: str | None) -> list[str]:
    """Return what keeps the gates shut, one sentence each; nothing where they are passed."""
    told = []
    for one in found:
        if one.metric in under:
            limit = under[one.metric]
            for system, total in one.totals.items():
                passed = total.value >= limit if one.higher_is_better else total.value <= limit
                if not passed:  # also where the score is not a number
                    side = "below" if one.higher_is_better else "above"
                    told.append(f"{one.metric} of {system} is {total.value:.2f}, {side} {limit:g}")
        told += [
            f"{pair.second if pair.better == pair.first else pair.first} is worse than {worse} by {pair.metric} "
            f"({abs(pair.difference):.2f}, p = {pair.decisive:.3g})"
            for pair in one.pairs
            if worse is not None and pair.better == worse
        ]
    return told


def check_comparison(found: Comparison, under: Mapping[str, float], worse: str | None) -> None:
    """Raise where a gate is not passed."""
    told = comparison_failures(found, under, worse)
    if told:
        raise GateNotPassed(f"the quality gate is not passed: {'; '.join(told)}")
