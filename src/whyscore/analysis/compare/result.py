"""What a comparison of systems says: scores with intervals, tested differences, clusters, and the same in sentences.

How many segments it would take to tell two systems apart is simulated (`stats.significance`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import ClassVar, Literal

from markupsafe import Markup

from whyscore.data.codec import Kind, record_of
from whyscore.data.records import header_of
from whyscore.settings import Seeded, option
from whyscore.stats.correction import ALPHA, Clusters
from whyscore.stats.significance import power_curve
from whyscore.stats.systems import DRAWS, Test
from whyscore.types import Dataset, Estimate, FloatMatrix, HumanPreference, PairTest, Signature, Total
from whyscore.types.result import Cell, Mark, Record, Result, Table

_CORRECTED = {
    "none": "uncorrected",
    "holm": "Holm-corrected",
    "bonferroni": "Bonferroni-corrected",
    "benjamini_hochberg": "Benjamini-Hochberg-corrected",
}
_LEAST_DRAWS, _FINENESS = 199, 10


@dataclass(frozen=True, slots=True)
class PairPower:
    """How often a test tells two systems apart, by the number of segments (or documents)."""

    metric: str
    first: str
    second: str
    n: tuple[int, ...]
    power: tuple[float, ...]
    enough: int | None
    """The smallest number that reaches the wanted power."""
    wanted: float
    alpha: float
    runs: int

    def __str__(self) -> str:
        shares = ", ".join(f"{share:.0%} at {n:,}" for n, share in zip(self.n, self.power, strict=True))
        end = (
            f"{self.wanted:.0%} from {self.enough:,} on" if self.enough else f"{self.wanted:.0%} at none of these sizes"
        )
        return f"{self.metric}: power of {self.first} against {self.second}: {shares}; {end}"

    def rows(self) -> list[dict[str, Cell]]:
        pair: dict[str, Cell] = {"metric": self.metric, "first": self.first, "second": self.second}
        return [pair | {"n": n, "power": share} for n, share in zip(self.n, self.power, strict=True)]


def pair_draws(alpha: float) -> int:
    """Return how many resamples a simulated test takes: as few as still resolve alpha to a tenth of it.

    >>> pair_draws(0.05), pair_draws(0.001)
    (199, 9999)
    """
    return max(_LEAST_DRAWS, round(_FINENESS / alpha) - 1)


def pair_power(
    names: tuple[str, str, str],
    sides: tuple[FloatMatrix, FloatMatrix],
    p_of: Callable[[FloatMatrix, FloatMatrix], float],
    *,
    sizes: Sequence[int],
    alpha: float,
    seed: int,
) -> PairPower:
    """Return the power of a test of two systems (metric, first, second) on drawn rows of both sides."""
    first, second = sides
    curve = power_curve(lambda picked: p_of(first[picked], second[picked]), len(first), sizes, alpha=alpha, seed=seed)
    return PairPower(*names, curve.n, curve.power, curve.enough, curve.wanted, curve.alpha, curve.runs)


_DECIMALS = 2
_SHOWN = 50
_COLUMNS = (
    "metric first second difference low high p adjusted better test method exact n blocks detectable needed reason "
    "human_share human_low human_high human_pairs human_origin human_reason"
)


@dataclass(frozen=True, kw_only=True)
class CompareSettings(Seeded):
    """How systems are compared."""

    TITLE: ClassVar[str] = "test"

    human: tuple[str, ...] | None = option(
        None, "also compare by these human scores; higher is better", metavar="COLUMN"
    )
    test: Test = option(
        "permutation", "significance test; t and wilcoxon only for metrics that are means over segments", basic=True
    )
    draws: int = option(DRAWS, "resamples per test; small sets are tested exactly", least=1, metavar="N")
    alpha: float = option(ALPHA, "significance level", least=0, most=1, metavar="P")
    correction: Literal["none", "holm", "bonferroni", "benjamini_hochberg"] = option(
        "holm", "correction of the p-values over the pairs of each metric"
    )
    documents: bool = option(False, "resample whole documents instead of segments", basic=True)
    power: tuple[int, ...] = option(
        (), "power of each test on N segments (documents with --documents), by simulation", least=1, metavar="N"
    )
    domain: str | None = option(
        None,
        "domain of the texts, news or ted: report what differences mean to human raters in this domain",
        metavar="NAME",
    )
    strength_draws: int = option(
        0, "resamples for the intervals of the strengths; 0: no intervals", least=0, line=False
    )


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
    """Of the strengths, by resampled segments; empty where they were not requested."""
    powers: tuple[PairPower, ...] = ()
    """By simulation; empty where it was not requested."""
    unsupported: tuple[str, ...] = ()
    """Languages of the data that the model behind the metric was not made for."""

    @property
    def won(self) -> str:
        """The strengths with their intervals, the strongest first, in one line."""
        order = sorted(self.strength_intervals.items(), key=lambda item: -item[1].value)
        shown = ", ".join(f"{system} {strength.interval()}" for system, strength in order)
        return f"{self.metric}: strength by segments won (Bradley-Terry): {shown}"

    @property
    def ranks(self) -> dict[str, int]:
        """The rank of each system: that of its cluster."""
        return dict(zip(self.clusters.names, self.clusters.ranks, strict=True))


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Result):
    """Systems x metrics, with tests between every two systems."""

    dataset: Dataset
    metrics: tuple[MetricComparison, ...]
    settings: CompareSettings
    n: int
    """Segments that all systems have."""
    blocks: int | None
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    """On metrics that do not support the languages of the data."""
    decimals: int = _DECIMALS
    """Of scores in the table for people."""
    kind: ClassVar[Kind] = "comparisons"

    def __iter__(self) -> Iterator[MetricComparison]:
        return iter(self.metrics)

    @property
    def unsupported(self) -> dict[str, tuple[str, ...]]:
        """By metric, the languages of the data that it does not support."""
        return {metric.metric: metric.unsupported for metric in self.metrics if metric.unsupported}

    @property
    def pairs(self) -> tuple[PairTest, ...]:
        """The tested differences of all metrics."""
        return tuple(pair for metric in self.metrics for pair in metric.pairs)

    @property
    def how(self) -> str:
        """What the numbers mean, in one line."""
        used = self.settings
        size, drawn = (f" in {self.blocks} documents", " over documents") if self.blocks else ("", "")
        corrected = "" if used.correction == "none" else f", p-values {_CORRECTED[used.correction]} per metric"
        return (
            f"{self.n} segments{size}; in brackets: 95 % bootstrap confidence intervals{drawn}; systems of equal rank "
            f"do not differ significantly ({used.test} test, two-sided, alpha {used.alpha:g}, seed {used.seed}"
            f"{corrected})"
        )

    def total_records(self) -> Iterator[Total]:
        """Yield the score of every system under every metric."""
        for metric in self.metrics:
            for system, total in metric.totals.items():
                yield Total.of(system, metric.metric, total, higher_is_better=metric.higher_is_better)

    def header(self) -> Record:
        signatures = {comparison.metric: str(comparison.signature) for comparison in self if comparison.signature}
        return header_of(self.kind, self.dataset, signatures).object()

    def records(self) -> Iterator[Record]:
        for pair in self.pairs:
            record = record_of(pair) | {"test": self.settings.test}
            humans = pair.humans or HumanPreference()
            record |= {
                "human_share": humans.share, "human_low": humans.low, "human_high": humans.high,
                "human_pairs": humans.pairs, "human_origin": humans.origin or None, "human_reason": humans.reason,
            }  # fmt: skip
            yield {name: record[name] for name in _COLUMNS.split()}

    def document(self) -> object:
        used = self.settings
        how = {name: getattr(used, name) for name in ("test", "draws", "seed", "alpha", "correction")}
        powers = [row for comparison in self for curve in comparison.powers for row in curve.rows()]
        document = {
            **self.header(),
            **how,
            "notes": [*self.warnings, *self.notes],
            **({"unsupported": self.unsupported} if self.unsupported else {}),
            "systems": self.scores(),
            "records": list(self.records()),
        }
        return document | ({"power": powers} if powers else {})

    def display_tables(self) -> list[Table]:
        """Return the systems, best first by the first metric, and where there are many pairs a matrix per metric."""
        many = len(self.dataset.systems) > 2  # noqa: PLR2004 - one pair is a sentence
        return [self._score_table(), *(_matrix(metric, self.settings) for metric in self.metrics if many)]

    def _score_table(self) -> Table:
        columns = ("system", *(name for metric in self.metrics for name in (metric.metric, f"{metric.metric} rank")))
        rows: list[tuple[Cell, ...]] = []
        systems = self.metrics[0].clusters.names
        for system in systems:
            cells = [(metric.totals[system].interval(self.decimals), metric.ranks[system]) for metric in self.metrics]
            rows.append((system, *(cell for pair in cells for cell in pair)))
        best = frozenset(
            (row, metric.metric)
            for metric in self.metrics
            for row, system in enumerate(systems)
            if metric.ranks[system] == 1
        )
        directions = {metric.metric: metric.higher_is_better for metric in self.metrics}
        signatures = dict.fromkeys(str(metric.signature) for metric in self.metrics if metric.signature)
        return Table(columns, tuple(rows), directions, best, (self.how, *self.warnings, *self.notes, *signatures))

    def scores(self) -> list[dict[str, Cell]]:
        return [
            {
                "metric": metric.metric,
                "system": system,
                "score": total.value,
                "low": total.low,
                "high": total.high,
                "rank": metric.ranks[system],
                "strength": metric.strengths[system],
                **({} if ends is None else {"strength_low": ends.low, "strength_high": ends.high}),
                "n": total.n,
            }
            for metric in self.metrics
            for system, total in metric.totals.items()
            for ends in [metric.strength_intervals.get(system)]
        ]

    def __str__(self) -> str:
        return "\n".join(map(str, self.pairs))

    def _repr_html_(self) -> str:
        lines = Markup("").join(Markup("<li>{}</li>").format(str(pair)) for pair in islice(self.pairs, _SHOWN))
        more = len(self.pairs) - _SHOWN
        tail = Markup("<p>and {} more pairs</p>").format(more) if more > 0 else Markup("")
        return super()._repr_html_() + str(Markup("<ul>{}</ul>{}").format(lines, tail))


def _matrix(comparison: MetricComparison, settings: CompareSettings) -> Table:
    """Return all pairs under one metric, best system first: differences above the diagonal, p-values below it."""
    names = comparison.clusters.names
    pairs = {(pair.first, pair.second): pair for pair in comparison.pairs}
    rows: list[tuple[Cell, ...]] = []
    marks: dict[tuple[int, str], frozenset[Mark]] = {}
    for i, row in enumerate(names):
        cells: list[Cell] = []
        for j, column in enumerate(names):
            pair = pairs.get((row, column)) or pairs.get((column, row))
            if pair is None:
                cells.append(None)
            elif i < j:
                cells.append(pair.difference if pair.first == row else -pair.difference)
                if pair.better is not None:
                    marks[i, str(j + 1)] = frozenset({"significant"})
            else:
                cells.append(pair.decisive)
        rows.append((f"{i + 1} {row}", *cells))
    note = (
        f"{comparison.metric}: above the diagonal: row minus column, * or bold if significant at {settings.alpha:g}; "
        f"below it: p-values, {_CORRECTED[settings.correction]} over the {len(comparison.pairs)} pairs"
    )
    notes = [note] if (legend := _legend(comparison)) is None else [note, legend]
    columns = (comparison.metric, *(str(number) for number in range(1, len(names) + 1)))
    return Table(columns, tuple(rows), best=frozenset(), notes=tuple(notes), marks=marks)


def _legend(comparison: MetricComparison) -> str | None:
    """Return how often human raters preferred the system ahead, for each size of difference that there is."""
    by_size = {
        pair.humans.least: pair.humans for pair in comparison.pairs if pair.humans and pair.humans.share is not None
    }
    if not by_size:
        return None
    ordered = [by_size[least] for least in sorted(by_size, key=lambda least: least or 0.0)]
    sizes = [
        f"{preference.least:g} to {preference.most:g}"
        if preference.most is not None
        else f"{preference.least:g} or more"
        for preference in ordered
    ]
    shown = ", ".join(
        f"{size}: {preference.summary} of {preference.pairs}" for size, preference in zip(sizes, ordered, strict=True)
    )
    return (
        f"{comparison.metric} in human terms: raters preferred the system ahead by {shown} pairs ({ordered[0].origin})"
    )
