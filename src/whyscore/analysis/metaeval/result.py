"""What a meta-evaluation says: agreement of every metric with people, tests between metrics, clusters, sentinels."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from whyscore.stats.correction import Clusters
from whyscore.types import Estimate
from whyscore.types.table import Cell, Table

_DIGITS = 3
_SMALLEST = 0.001
_DRAWN = {
    "both": "systems and segments, the widest one",
    "systems": "systems, for the same segments",
    "inputs": "segments, for the same systems",
}


@dataclass(frozen=True, slots=True)
class Agreement(Estimate):
    """How well one metric agrees with people; the interval is the bootstrap's over systems and segments."""

    metric: str = ""
    measure: str = ""
    """With its level: `kendall_b@segment`."""
    group: str | None = None
    n_used: int = 0
    dropped: int = 0
    """Cells that only one side has."""
    sentinel: bool = False
    rank: int | None = None
    beaten: bool = False
    """Whether it is not above the best sentinel."""
    below_chance: bool = False
    """Whether the whole interval is below what chance gives: perhaps its direction is wrong."""
    epsilon: float | None = None
    at_zero: float | None = None
    """The accuracy without calibrated ties, where only equal scores are ties."""
    held_out: float | None = None
    """The accuracy with epsilon fitted on the other half of the segments."""
    given_length: float | None = None
    """The partial correlation given the length of the hypothesis."""
    distinct: int | None = None
    """How many different scores the metric gave; few of them are heavy ties."""
    fisher_low: float | None = None
    """The interval by Fisher's z, as a cross-check of the bootstrap's."""
    fisher_high: float | None = None

    def row(self) -> dict[str, Cell | bool]:
        """Return the fields, for programs."""
        return {
            "group": self.group,
            "metric": self.metric,
            "measure": self.measure,
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "rank": self.rank,
            "n": self.n,
            "n_used": self.n_used,
            "dropped": self.dropped,
            "sentinel": self.sentinel,
            "not_above_sentinel": self.beaten,
            "below_chance": self.below_chance,
            "epsilon": self.epsilon,
            "at_zero": self.at_zero,
            "held_out": self.held_out,
            "given_length": self.given_length,
            "distinct": self.distinct,
            "fisher_low": self.fisher_low,
            "fisher_high": self.fisher_high,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class MetricTest:
    """A test of two metrics: p is that of "the first agrees better than the second"."""

    first: str
    second: str
    delta: float
    p: float
    adjusted: float
    method: str
    exact: bool = False
    group: str | None = None
    reason: str | None = None

    def row(self) -> dict[str, Cell | bool]:
        """Return the fields, for programs."""
        return {
            "group": self.group,
            "first": self.first,
            "second": self.second,
            "delta": self.delta,
            "p": self.p,
            "adjusted": self.adjusted,
            "method": self.method,
            "exact": self.exact,
            "reason": self.reason,
        }


@dataclass(frozen=True, eq=False)
class Judged:
    """All metrics on one set of systems and segments."""

    group: str | None
    agreements: tuple[Agreement, ...]
    tests: tuple[MetricTest, ...]
    clusters: Clusters | None
    systems: int
    segments: int


@dataclass(frozen=True, eq=False)
class MetaEvaluation:
    """Metrics against people, for each group of the data."""

    human: str
    measure: str
    groups: tuple[Judged, ...]
    test: str | None
    seed: int
    alpha: float
    correction: str
    notes: tuple[str, ...] = ()
    resample: str = "both"
    """What the bootstrap behind the intervals draws."""
    compat: str | None = None

    def __iter__(self) -> Iterator[Agreement]:
        """Yield the agreement of every metric in every group."""
        return (one for group in self.groups for one in group.agreements)

    def __getitem__(self, metric: str) -> Agreement:
        """Return a metric's agreement, where there is one group or the metric is in one group."""
        found = [one for one in self if one.metric == metric]
        if len(found) != 1:
            raise KeyError(metric)
        return found[0]

    @property
    def tests(self) -> tuple[MetricTest, ...]:
        """The tests between metrics."""
        return tuple(one for group in self.groups for one in group.tests)

    @property
    def how(self) -> str:
        """What the numbers mean, in one line."""
        sizes = dict.fromkeys((group.systems, group.segments) for group in self.groups)
        extent = " and ".join(_extent(systems, segments) for systems, segments in sizes)
        told = f"{self.measure} with {self.human}, {extent}"
        if any(one.low is not None for one in self):
            told += f"; in brackets the 95 % bootstrap interval over {_DRAWN[self.resample]}"
        if self.compat:
            told += f"; as {self.compat} has it"
        if self.test is None:
            return told
        corrected = "" if self.correction == "none" else f", {self.correction}-corrected"
        return f"{told}; rank = cluster by {self.test} (one-sided, alpha {self.alpha:g}, seed {self.seed}{corrected})"

    def table(self, digits: int = _DIGITS) -> Table:
        """Return metrics with their agreement, best first, sentinels below."""
        grouped = any(group.group is not None for group in self.groups)
        length = any(one.given_length is not None for one in self)
        columns = (
            *(("group",) if grouped else ()),
            *("metric", self.measure),
            *(("given length",) if length else ()),
            *(("rank",) if self.test else ()),
            *("n", "remarks"),
        )
        rows: list[tuple[Cell, ...]] = []
        bold = []
        for one in self:
            if (self.test and one.rank == 1) or (not self.test and self._leads(one)):
                bold.append((len(rows), self.measure))
            rows.append(
                (
                    *((one.group,) if grouped else ()),
                    *(f"({one.metric})" if one.sentinel else one.metric, _interval(one, digits)),
                    *((one.given_length,) if length else ()),
                    *((one.rank,) if self.test else ()),
                    *(one.n_used, _remarks(one)),
                )
            )
        notes = (self.how, *self.notes)
        return Table(columns, tuple(rows), {self.measure: True}, frozenset(bold), notes)

    def _leads(self, one: Agreement) -> bool:
        rivals = [other.value for other in self if other.group == one.group and not other.sentinel]
        known = [value for value in rivals if not math.isnan(value)]
        return not one.sentinel and len(known) > 1 and one.value == max(known)

    def test_table(self) -> Table | None:
        """Return the tests between metrics; None where none were made."""
        if not self.tests:
            return None
        rows = tuple((*((one.group or "",)), one.first, one.second, one.delta, one.adjusted) for one in self.tests)
        grouped = any(one.group for one in self.tests)
        columns = ("group", "metric", "better than", "difference", "p")
        kept = rows if grouped else tuple(row[1:] for row in rows)
        return Table(columns if grouped else columns[1:], kept, notes=(self.tests[0].method,))

    def __str__(self) -> str:
        """Return one line per metric."""
        return "\n".join(
            " ".join(filter(None, (one.group, one.metric, _interval(one, _DIGITS), _remarks(one)))) for one in self
        )

    def _repr_html_(self) -> str:
        table = self.table()
        head = Markup("").join(Markup("<th>{}</th>").format(name) for name in table.columns)
        rows = []
        for one, cells in zip(self, table.rows, strict=True):
            style = Markup(' style="color:#666"') if one.sentinel else Markup("")
            tds = Markup("").join(Markup("<td>{}</td>").format("" if cell is None else _plain(cell)) for cell in cells)
            rows.append(Markup("<tr{}>{}</tr>").format(style, tds))
        notes = Markup("").join(Markup("<br><small>{}</small>").format(note) for note in table.notes)
        frame = Markup("<div><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>{}</div>")
        return str(frame.format(head, Markup("").join(rows), notes))


def _extent(systems: int, segments: int) -> str:
    return f"{systems} rows" if segments == 1 else f"{systems} systems x {segments} segments"


def _plain(cell: Cell) -> str:
    return f"{cell:.{_DIGITS}f}" if isinstance(cell, float) else str(cell)


def _interval(one: Estimate, digits: int) -> str:
    if math.isnan(one.value):
        return "-"
    shown = "" if one.low is None or one.high is None else f" [{one.low:.{digits}f}, {one.high:.{digits}f}]"
    return f"{one.value:.{digits}f}{shown}"


def _remarks(one: Agreement) -> str:
    told = ["sentinel"] if one.sentinel else []
    told += [one.reason] if one.reason and math.isnan(one.value) else []
    told += ["not above the best sentinel"] if one.beaten else []
    told += ["below chance: wrong direction?"] if one.below_chance and not one.sentinel else []
    if one.epsilon is not None and not math.isnan(one.epsilon):
        zero = "" if not one.epsilon or one.at_zero is None else f" ({one.at_zero:.{_DIGITS}f} at 0)"
        told.append(f"epsilon {one.epsilon:.4g}{zero}")
    told += [f"{one.held_out:.{_DIGITS}f} by the other half's epsilon"] if one.held_out is not None else []
    return "; ".join(told)
