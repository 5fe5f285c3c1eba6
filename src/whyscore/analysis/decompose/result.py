"""What a decomposition gives back: one row per system, metric and feature, tests between systems, sentence scorers."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import NamedTuple

from markupsafe import Markup

from whyscore.marking import Span
from whyscore.types import FloatVector, Signature, read_only

Discrepancy = Mapping[str, int]


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

    def __post_init__(self) -> None:
        """Keep the numbers from being changed."""
        for name in ("sigma", "oracle", "anti"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    def records(self) -> list[dict[str, object]]:
        """Return one record per segment."""
        numbers = zip(self.sigma.tolist(), self.oracle.tolist(), self.anti.tolist(), strict=True)
        spans = zip(self.hypothesis_spans, self.reference_spans, strict=True)
        return [
            {"id": name, "sigma": sigma, "oracle": oracle, "anti": anti}
            | {"hypothesis_spans": [list(span) for span in own]}
            | {"reference_spans": [[list(span) for span in each] for each in others]}
            for name, (sigma, oracle, anti), (own, others) in zip(self.ids, numbers, spans, strict=True)
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


@dataclass(frozen=True, eq=False)
class Decomposition:
    """How much of what a system loses under a metric it loses on one feature.

    `share` = (oracle - sigma) / (oracle - anti): 0 means nothing to gain from the feature, 1 that every occurrence is
    as bad as it can be; lower is better. It is None, with a `reason`, where it is undefined.
    """

    system: str
    metric: str
    feature: str
    n: int
    informative: int
    sigma: float | None
    sigma_all: float
    oracle: float | None
    anti: float | None
    share: float | None
    low: float | None
    high: float | None
    guarded: float | None
    gain: float | None
    discrepancy: Mapping[str, Discrepancy]
    frequency: Mapping[str, float | None]
    uniqueness: Mapping[str, float | None]
    flags: tuple[str, ...] = ()
    reason: str | None = None
    range: float | None = None
    outside: int = 0
    """Segments whose score is not between the worst and the best case."""
    dropped: int = 0
    """Bootstrap draws without a value."""
    word_f: Mapping[str, float | None] = field(default_factory=dict)
    additive: float | None = None
    segments: SegmentRows | None = field(default=None, repr=False)
    examples: tuple[Example, ...] = field(default=(), repr=False)

    def record(self) -> dict[str, object]:
        """Return the row under the names it has in files."""
        hidden = ("segments", "examples")
        row = {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in hidden}
        row |= {"discrepancy": {over: dict(counts) for over, counts in self.discrepancy.items()}}
        row |= {name: dict(row[name]) for name in ("frequency", "uniqueness", "word_f")}
        return row | {"flags": list(self.flags)}

    def _repr_html_(self) -> str:
        return Decompositions([self])._repr_html_()


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of two systems' shares of one feature, first - second, with the test of it."""

    metric: str
    feature: str
    first: str
    second: str
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    q: float | None
    """p corrected over all features and pairs of systems."""
    correction: str
    reason: str | None = None

    def record(self) -> dict[str, object]:
        """Return the row under the names it has in files."""
        return {"row": "test"} | asdict(self)


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

    def record(self) -> dict[str, object]:
        """Return the row under the names it has in files."""
        return {"row": "scorer"} | asdict(self)


class Decompositions(list[Decomposition]):
    """The rows of a decomposition, which a notebook shows as a table, with all that belongs beside them."""

    def __init__(
        self,
        rows: Sequence[Decomposition] = (),
        *,
        tests: Sequence[Difference] = (),
        scorers: Sequence[ScorerDifference] = (),
        others: Mapping[tuple[str, str], float] | None = None,
        signatures: Mapping[str, Signature] | None = None,
        cost: Cost | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        """Take the rows and what belongs beside them."""
        super().__init__(rows)
        self.tests = list(tests)
        self.scorers = list(scorers)
        self.others = dict(others or {})
        """Additive view: the importance of words without any of the features, by system and metric."""
        self.signatures = dict(signatures or {})
        self.cost = cost
        self.notes = list(notes)

    def of(self, system: str, feature: str, metric: str | None = None) -> Decomposition:
        """Return one row by its names."""
        for row in self:
            if (row.system, row.feature) == (system, feature) and metric in (None, row.metric):
                return row
        raise KeyError(f"no row of {system!r} and {feature!r}")

    def _repr_html_(self) -> str:
        head = ("system", "metric", "feature", "n", "share", "interval", "gain", "oracle", "anti", "flags", "reason")
        rows = [Markup("<tr>{}</tr>").format(_cells(head, "th"))]
        rows += [Markup("<tr>{}</tr>").format(_cells(_shown(row), "td")) for row in self]
        notes = [Markup("<div><small>{}</small></div>").format(str(text)) for text in self.signatures.values()]
        return str(Markup("<table>{}</table>{}").format(Markup("").join(rows), Markup("").join(notes)))


def _shown(row: Decomposition) -> tuple[str, ...]:
    interval = "" if row.low is None or row.high is None else f"[{row.low:.3f}, {row.high:.3f}]"
    numbers = [("-" if value is None else f"{value:.3f}") for value in (row.share, row.gain, row.oracle, row.anti)]
    share, *rest = numbers
    names = (row.system, row.metric, row.feature, str(row.n))
    return (*names, share, interval, *rest, " ".join(row.flags), row.reason or "")


def _cells(texts: Sequence[str], tag: str) -> Markup:
    cell = Markup(f"<{tag}>{{}}</{tag}>")  # noqa: S704 - our own tag
    return Markup("").join([cell.format(text) for text in texts])
