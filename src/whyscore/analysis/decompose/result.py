"""What a decomposition gives back: one row per system, metric and feature, tests between systems, sentence scorers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from typing import ClassVar, NamedTuple, Self

from whyscore.analysis.decompose.settings import DecomposeSettings
from whyscore.analysis.decompose.tagging import Marking
from whyscore.data.codec import Kind
from whyscore.data.records import header_of
from whyscore.marking import Span
from whyscore.types import Dataset, FeatureShare, FloatVector, ShareTest, Signature
from whyscore.types.records import drop_empty_group
from whyscore.types.result import DECIMALS, Cell, Record, Result, Table

LABELS: dict[str, dict[str, str]] = {
    "field": {"under": "under", "over": "over", "equal": "equal"},
    "paper": {"under": "add", "over": "hit", "equal": "miss"},
    "code": {"under": "add", "over": "miss", "equal": "hit"},
}
"""What the three outcomes are called: by sign, in the paper, and in its published code, which contradicts it."""


def label_fractions(counts: Mapping[str, int], labels: str) -> dict[str, float]:
    """Return the fractions of under, over and equal under the names somebody gave them."""
    total = counts["under"] + counts["over"] + counts["equal"]
    return {name: counts[kind] / total if total else float("nan") for kind, name in LABELS[labels].items()}


class Cost(NamedTuple):
    """What the work took, or would take."""

    texts: int
    distinct_texts: int
    tagged: int
    asked: int
    distinct: int
    stored: int


@dataclass(frozen=True, eq=False)
class SegmentRows:
    """The segments with the feature on both sides, in the metric's sense turned so that more is better."""

    ids: tuple[str, ...]
    sigma: FloatVector
    oracle: FloatVector
    anti: FloatVector
    hypothesis_spans: tuple[tuple[Span, ...], ...]
    reference_spans: tuple[tuple[tuple[Span, ...], ...], ...]

    def records(self) -> list[dict[str, object]]:
        numbers = zip(self.sigma.tolist(), self.oracle.tolist(), self.anti.tolist(), strict=True)
        spans = zip(self.hypothesis_spans, self.reference_spans, strict=True)
        return [
            {"id": name, "sigma": sigma, "oracle": oracle, "anti": anti}
            | {"hypothesis_spans": [list(span) for span in hypothesis]}
            | {"reference_spans": [[list(span) for span in each] for each in others]}
            for name, (sigma, oracle, anti), (hypothesis, others) in zip(self.ids, numbers, spans, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class Example:
    """A segment that moved the share, with its texts as they are and as they were scored."""

    id: str
    sigma: float
    oracle: float
    anti: float
    hypothesis: str
    hypothesis_spans: tuple[Span, ...]
    references: tuple[str, ...]
    reference_spans: tuple[tuple[Span, ...], ...]
    masked_hypothesis: str | None = None
    masked_references: tuple[str, ...] = ()

    @property
    def gain(self) -> float:
        """What the metric would gain if the feature agreed everywhere."""
        return self.oracle - self.sigma


@dataclass(frozen=True)
class Decomposition(FeatureShare):
    """The share of one feature, with the segments behind it."""

    segments: SegmentRows | None = field(default=None, repr=False, compare=False)
    details: tuple[Example, ...] = field(default=(), repr=False)
    """The texts of `examples`."""

    def _repr_html_(self) -> str:
        return Decompositions([self])._repr_html_()


@dataclass(frozen=True, slots=True)
class ScorerDifference:
    """How far a system's texts are from their references on a sentence score, reference - hypothesis."""

    system: str
    scorer: str
    n: int
    left_out: int
    """Pairs without a word that the scorer knows on one side."""
    signed: float | None
    signed_low: float | None
    signed_high: float | None
    absolute: float | None
    absolute_low: float | None
    absolute_high: float | None
    reason: str | None = None
    group: str | None = None

    def record(self) -> dict[str, object]:
        """Return the row under the names it has in files."""
        return drop_empty_group({"row": "scorer"} | asdict(self))


class Decompositions(Result, list[Decomposition]):
    """One row per system, metric and feature, with everything that belongs beside them."""

    kind: ClassVar[Kind] = "decomposition"
    __repr__ = Result.__repr__

    def __init__(
        self,
        rows: Iterable[Decomposition] = (),
        *,
        dataset: Dataset | None = None,
        settings: DecomposeSettings | None = None,
        tests: Sequence[ShareTest] = (),
        scorers: Sequence[ScorerDifference] = (),
        others: Mapping[tuple[str, str], float] | None = None,
        signatures: Mapping[str, Signature] | None = None,
        cost: Cost | None = None,
        notes: Sequence[str] = (),
        marking: Marking | None = None,
    ) -> None:
        super().__init__(rows)
        self.dataset = Dataset("segments", ()) if dataset is None else dataset
        self.settings = settings or DecomposeSettings()
        self.tests = list(tests)
        self.scorers = list(scorers)
        self.others = dict(others or {})
        """Additive view: the importance of words without any of the features, by system and metric."""
        self.signatures = dict(signatures or {})
        self.cost = cost
        self.notes = list(notes)
        self.marking = marking
        """The texts with the spans of each feature, where they were tagged for this result."""
        self.decimals, self.signed = DECIMALS, True

    def of(self, system: str, feature: str, metric: str | None = None) -> Decomposition:
        """Return one row by its names."""
        for row in self:
            if (row.system, row.feature) == (system, feature) and metric in (None, row.metric):
                return row
        raise KeyError(f"no row of {system!r} and {feature!r}")

    def header(self) -> Record:
        return header_of(
            self.kind, self.dataset, {name: str(signature) for name, signature in self.signatures.items()}
        ).object()

    def records(self) -> Iterator[Record]:
        for row in self:
            examples = [asdict(detail) for detail in row.details]
            yield row.record() | ({"examples": examples} if self.settings.examples else {})
        yield from (test.record() for test in self.tests)
        yield from (scorer.record() for scorer in self.scorers)

    def tables(self, *, long: bool = False) -> list[Table]:
        if long:
            return [self._group(Table(_COLUMNS, tuple(_long_row(row) for row in self)), self)]
        tables = [self._shares(), *([self._tests()] if self.tests else [])]
        return [*tables, *([self._scorers()] if self.scorers else [])]

    def by_segment(self) -> "SegmentShares":
        """Return the numbers of every segment behind every row."""
        return SegmentShares(self)

    def presented(self, decimals: int = DECIMALS, *, signatures: bool = True) -> Self:
        """Return the same result with other decimals in its tables, or without the notes on how it was made."""
        other = copy(self)
        other.decimals, other.signed = decimals, signatures
        return other

    def _group(self, table: Table, rows: Sequence[Decomposition | ShareTest | ScorerDifference]) -> Table:
        """Return a table with the group of each row before it, where there are groups."""
        if not self.settings.group:
            return table
        cells = tuple((row.group, *row_cells) for row, row_cells in zip(rows, table.rows, strict=True))
        return replace(table, columns=("group", *table.columns), rows=cells)

    def _shares(self) -> Table:
        compat = self.settings.mode == "compat"
        labels = self.settings.labels or ("code" if compat else "field")
        several = len({row.metric for row in self}) > 1
        added = any(row.additive is not None for row in self)
        rows: list[tuple[Cell, ...]] = [
            (
                row.system,
                *((row.metric,) if several else ()),
                *(row.feature, row.n, row.share, _interval(row.low, row.high, self.decimals), row.gain, row.range),
                *label_fractions(row.discrepancy["both" if compat else "all"], labels).values(),
                row.word_f.get("f"),
                *((row.additive,) if added else ()),
                ", ".join([*row.flags, *([row.reason] if row.reason else [])]),
            )
            for row in self
        ]
        columns = ["system", *(["metric"] if several else []), "feature", "n", "share", "interval", "gain", "range"]
        columns += [*LABELS[labels].values(), "word F", *(["additive"] if added else []), "notes"]
        table = Table(tuple(columns), tuple(rows), {"share": False}, self._best(), tuple(self._notes()))
        return self._group(table, self)

    def _best(self) -> frozenset[tuple[int, str]]:
        """Return the cells of the smallest share of each feature, where there are several systems."""
        shares: dict[tuple[str | None, str, str], dict[int, float]] = {}
        for number, row in enumerate(self):
            if row.share is not None:
                shares.setdefault((row.group, row.metric, row.feature), {})[number] = row.share
        several = [share for share in shares.values() if len(share) > 1]
        best = {number for shares in several for number, share in shares.items() if share == min(shares.values())}
        return frozenset((number, "share") for number in best)

    def _notes(self) -> Iterator[str]:
        yield "share: part of what the feature could win or lose that is lost; lower is better; 95 % bootstrap interval"
        if not self.signed:
            return
        for (system, metric), value in self.others.items():
            yield f"{system}, {metric}: words without any of these features add {value:.4f}"
        yield from self.notes
        yield from map(str, self.signatures.values())

    def _tests(self) -> Table:
        several = len({test.metric for test in self.tests}) > 1
        rows: list[tuple[Cell, ...]] = []
        for test in self.tests:
            names = (*((test.metric,) if several else ()), test.feature, f"{test.first} - {test.second}")
            rows.append((*names, test.difference, _interval(test.low, test.high, DECIMALS), test.p, test.q))
        columns = (*(("metric",) if several else ()), "feature", "systems", "difference", "interval", "p", "q")
        correction = self.tests[0].correction.replace("_", "-")
        note = f"difference of shares, below zero the first is better; q is p corrected over all rows ({correction})"
        if self.dataset is not None and len({self.dataset.of(name).ids for name in self.dataset.systems}) > 1:
            note += "; two systems are compared on the segments that both have"
        return self._group(Table(columns, tuple(rows), {}, frozenset(), (note,)), self.tests)

    def _scorers(self) -> Table:
        rows: list[tuple[Cell, ...]] = []
        for scorer in self.scorers:
            signed = scorer.signed, _interval(scorer.signed_low, scorer.signed_high, 4)
            absolute = scorer.absolute, _interval(scorer.absolute_low, scorer.absolute_high, 4)
            rows.append((scorer.system, scorer.scorer, scorer.n, scorer.left_out, *signed, *absolute))
        columns = ("system", "scorer", "n", "left out", "signed", "interval", "absolute", "its interval")
        note = "signed: mean of reference - hypothesis; absolute: mean of the size of that difference"
        return self._group(Table(columns, tuple(rows), {}, frozenset(), (note,)), self.scorers)


@dataclass(frozen=True, repr=False)
class SegmentShares(Result):
    """The score of every segment behind every row: as it is, in the best and in the worst case."""

    rows: Decompositions
    kind: ClassVar[Kind] = "decomposition"

    def header(self) -> Record:
        return self.rows.header()

    def records(self) -> Iterator[Record]:
        for row in self.rows:
            names = drop_empty_group(
                {"group": row.group, "system": row.system, "metric": row.metric, "feature": row.feature}
            )
            yield from (names | record for record in (row.segments.records() if row.segments else ()))


_NUMBERS = (
    "n", "informative", "sigma", "sigma_all", "oracle", "anti", "share", "low", "high", "guarded", "gain", "range",
)  # fmt: skip
_COUNTS = ("under", "over", "equal", "missing", "invented", "absent")
_SIDES = ("reference", "hypothesis")
_COLUMNS = (
    *("system", "metric", "feature", *_NUMBERS),
    *(f"{name}_{over}" for over in ("all", "both") for name in _COUNTS),
    *(f"{name}_{side}" for name in ("frequency", "uniqueness") for side in _SIDES),
    *("precision", "recall", "word_f", "additive", "outside", "flags", "reason"),
)


def _long_row(row: Decomposition) -> tuple[Cell, ...]:
    return (
        *(row.system, row.metric, row.feature, *(getattr(row, name) for name in _NUMBERS)),
        *(row.discrepancy[over][name] for over in ("all", "both") for name in _COUNTS),
        *(usage[side] for usage in (row.frequency, row.uniqueness) for side in _SIDES),
        *(row.word_f.get(name) for name in ("precision", "recall", "f")),
        *(row.additive, row.outside, " ".join(row.flags), row.reason),
    )


def _interval(low: float | None, high: float | None, digits: int) -> str:
    return "-" if low is None or high is None else f"[{low:.{digits}f}, {high:.{digits}f}]"
