"""A report as data: what the page, the tables for papers and the terminal show. Absent parts are empty."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from whyscore.types import Estimate, PairTest


@dataclass(frozen=True, slots=True)
class MetricView:
    """A metric as readers meet it."""

    name: str
    higher_is_better: bool
    explainer: str | None
    digits: int


@dataclass(frozen=True, slots=True)
class SystemRow:
    """A system: its corpus score by each metric, the cluster it is in, and what people gave it on average."""

    system: str
    totals: tuple[Estimate, ...]
    clusters: tuple[int | None, ...]
    """By metric: 1 for those no other beats beyond chance; None where nothing was tested."""
    human: tuple[float, ...] = ()
    human_clusters: tuple[int | None, ...] = ()


@dataclass(frozen=True, slots=True)
class FeatureRow:
    """A linguistic feature of one system under one metric: how much of what it could earn is lost."""

    metric: str
    feature: str
    system: str
    share: float | None
    low: float | None
    high: float | None
    n: int
    under: float | None
    """Share of the segments with fewer of it than the reference."""
    over: float | None
    flags: tuple[str, ...] = ()
    reason: str | None = None
    examples: tuple[str, ...] = ()
    """Segments in which most is lost on it."""


@dataclass(frozen=True, slots=True)
class CostlyWord:
    """A word that costs points: how often it stands in explained texts, how often it costs, and how much in all."""

    word: str
    count: int
    costing: int
    total: float
    example: str
    """The id of the segment where it costs most."""


@dataclass(frozen=True, slots=True)
class CostlyWords:
    """The words that cost most under one metric, on one side."""

    metric: str
    side: str
    texts: int
    words: tuple[CostlyWord, ...]


@dataclass(frozen=True, slots=True)
class WordCounts:
    """How many words of one side were explained under a metric, how many cost, and how much together."""

    metric: str
    side: str
    texts: int
    words: int
    costing: int
    total: float


@dataclass(frozen=True, slots=True)
class MatchedShares:
    """A system under a metric of word matches: what each kind of match brings, and the rest of the score."""

    system: str
    score: float
    exact: float
    root: float
    synonym: float
    rest: float
    """What n-grams and sentence vectors bring; 0 for metrics of words alone."""
    unmatched: float
    """Share of the words without a match."""
    unknown: float
    """Share of the words that matched nothing and have no vector."""
    n: int
    """Explained segments."""


@dataclass(frozen=True, slots=True)
class MatchedPair:
    """Two words that were taken for one: as forms of the same root, or as synonyms."""

    kind: str
    hypothesis: str
    reference: str
    count: int
    cosine: float | None
    """The mean; None where a stemmer decided."""
    example: str


@dataclass(frozen=True, slots=True)
class Matches:
    """What a metric of word matches found."""

    metric: str
    systems: tuple[MatchedShares, ...]
    pairs: tuple[MatchedPair, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """What a reader can do next; `controls` are the choices of the segment browser that show it."""

    text: str
    controls: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Agreement:
    """How well the highlights of a metric find the words that people marked; beside it what chance finds."""

    metric: str
    explainer: str
    side: str
    auc: Estimate
    ap: Estimate
    chance_ap: float
    n: int
    """Texts with both marked and unmarked words."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture made elsewhere: SVG that was checked."""

    title: str
    svg: str
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Made:
    """How it was made."""

    created: str
    version: str
    command: str | None
    signatures: tuple[tuple[str, str], ...]
    versions: tuple[tuple[str, str], ...]
    counts: tuple[tuple[str, str], ...]
    seconds: tuple[tuple[str, str], ...]
    licences: tuple[tuple[str, str], ...] = ()
    findings: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """Everything a report shows."""

    title: str
    about: str
    verdict: tuple[str, ...]
    metrics: tuple[MetricView, ...]
    systems: tuple[SystemRow, ...]
    made: Made
    human: tuple[str, ...] = ()
    comparisons: tuple[PairTest, ...] = ()
    features: tuple[FeatureRow, ...] = ()
    costly: tuple[CostlyWords, ...] = ()
    agreement: tuple[Agreement, ...] = ()
    figures: tuple[Figure, ...] = ()
    explorer: Mapping[str, object] = field(default_factory=dict)
    pair: tuple[str, str] | None = None
    """The two systems to set against each other first."""
    changed: bool = False
    """Whether the two are one system, before and after."""
    headline: str = ""
    """The verdict in one sentence; empty where nothing was tested."""
    steps: tuple[Step, ...] = ()
    words: tuple[WordCounts, ...] = ()
    matches: tuple[Matches, ...] = ()
    texts: bool = True
    """Whether texts of the data may be shown."""

    @property
    def clustered(self) -> bool:
        """Whether systems are in clusters."""
        return any(rank is not None for row in self.systems for rank in row.clusters)
