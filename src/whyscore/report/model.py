"""A report as data: what the page, the tables for papers and the terminal show. Absent parts are empty."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from markupsafe import Markup

from whyscore.settings import option
from whyscore.types import Dataset, Estimate, FeatureShare, Finding, Gate, PairTest, RunMetric
from whyscore.types.result import Cell, Record, Result, Table

_SENTENCES = 6
_FEATURES = {
    "upos:ADJ": "adjectives", "upos:ADP": "prepositions", "upos:ADV": "adverbs", "upos:AUX": "auxiliary verbs",
    "upos:CCONJ": "coordinating conjunctions", "upos:DET": "determiners", "upos:INTJ": "interjections",
    "upos:NOUN": "nouns", "upos:NUM": "numerals", "upos:PART": "particles", "upos:PRON": "pronouns",
    "upos:PROPN": "proper nouns", "upos:PUNCT": "punctuation", "upos:SCONJ": "subordinating conjunctions",
    "upos:SYM": "symbols", "upos:VERB": "verbs", "upos:X": "other words", "ent:PERSON": "names of persons",
    "ent:ORG": "names of organisations", "ent:GPE": "names of countries and cities", "ent:LOC": "names of places",
    "ent:DATE": "dates", "ent:TIME": "times", "ent:MONEY": "amounts of money", "ent:PERCENT": "percentages",
    "ent:CARDINAL": "numbers", "ent:ORDINAL": "ordinal numbers", "ent:QUANTITY": "quantities",
    "ent:FAC": "names of buildings", "ent:NORP": "nationalities and groups", "ent:EVENT": "names of events",
    "ent:LANGUAGE": "names of languages", "ent:LAW": "names of laws", "ent:PRODUCT": "names of products",
    "ent:WORK_OF_ART": "titles of works", "capitalised": "capitalised words", "all_caps": "words in capitals",
    "quotation": "quotation marks",
}  # fmt: skip
_PACKED = ("explorer", "figures", "changes", "segments", "digits", "trend")


@dataclass(frozen=True, kw_only=True)
class ReportSettings:
    """What a report shows."""

    title: str | None = option(None, "title of the report (default: the name of the data)", metavar="TEXT", basic=True)
    texts: bool = option(
        True,
        "leave out segments, words and the command line, for sharing externally",
        flags=("--no-texts",),
        basic=True,
    )
    baseline: str | None = option(
        None,
        "compare the other systems with this one (default: the baseline of the quality gates)",
        metavar="SYSTEM",
        basic=True,
    )


@dataclass(frozen=True, slots=True)
class SystemRow:
    """A system: its corpus score under each metric, the cluster it is in, and its mean human scores."""

    system: str
    totals: tuple[Estimate, ...]
    clusters: tuple[int | None, ...]
    """By metric: 1 is the top cluster; None where nothing was tested."""
    human: tuple[float, ...] = ()
    human_clusters: tuple[int | None, ...] = ()
    common: tuple[Estimate, ...] = ()
    """By metric, over the segments that all systems have; empty where they have the same ones."""
    human_common: tuple[float, ...] = ()

    def score(self, number: int) -> float:
        """Return the score under a metric that can be compared with those of other systems."""
        return (self.common or self.totals)[number].value

    def human_score(self, number: int) -> float:
        """Return the mean human score that can be compared with those of other systems."""
        return (self.human_common or self.human)[number]


@dataclass(frozen=True, slots=True)
class CostlyWord:
    """A word that costs points: how often it occurs in explained texts, how often it costs, and how much in total."""

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
    points: bool = True
    """Whether the values are differences of scores; otherwise they only rank words."""


@dataclass(frozen=True, slots=True)
class WordCounts:
    """How many words of one side were explained under a metric, how many cost, and how much together."""

    metric: str
    side: str
    texts: int
    words: int
    costing: int
    total: float
    points: bool = True
    """Whether the values are differences of scores."""


@dataclass(frozen=True, slots=True)
class MatchedShares:
    """A system under a metric of word matches: what each kind of match adds, and the rest of the score."""

    system: str
    score: float
    exact: float
    root: float
    synonym: float
    rest: float
    """What n-grams and sentence vectors add; 0 for metrics of words alone."""
    unmatched: float
    """Share of the words without a match."""
    unknown: float
    """Share of the words that matched nothing and have no vector."""
    n: int
    """Explained segments."""


@dataclass(frozen=True, slots=True)
class MatchedPair:
    """Two words that were matched: as forms of the same root, or as synonyms."""

    kind: str
    hypothesis: str
    reference: str
    count: int
    cosine: float | None
    """The mean; None where a stemmer decided."""
    example: str


@dataclass(frozen=True, slots=True)
class MatchSummary:
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
    """How well the highlights of a metric match the words that human raters marked, and what chance gives."""

    metric: str
    explainer: str
    side: str
    auc: Estimate
    ap: Estimate
    chance_ap: float
    n: int
    """Texts with both marked and unmarked words."""
    controls: Mapping[str, float] = field(default_factory=dict)
    """The AUC of what is known of the words alone on the same texts: their length, their surprisal."""
    finding: Finding | None = None
    """`below-control`, where the best of the controls has a higher AUC."""


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """The corpus score of a system in one of several runs."""

    run: str
    system: str
    metric: str
    score: Estimate


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture made elsewhere: SVG that was checked."""

    title: str
    svg: str
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Provenance:
    """How the run was made."""

    created: str
    version: str
    command: str | None
    signatures: tuple[tuple[str, str], ...]
    versions: tuple[tuple[str, str], ...]
    counts: tuple[tuple[str, str], ...]
    seconds: tuple[tuple[str, str], ...]
    licences: tuple[tuple[str, str], ...] = ()
    findings: tuple[Finding, ...] = ()
    """What was noticed in the input."""
    problems: tuple[Finding, ...] = ()
    """What could not be done, or has to be kept in mind; the code names the part of the run."""


@dataclass(frozen=True, repr=False)
class Report(Result):
    """Everything a report shows."""

    kind: ClassVar[str] = "report"

    title: str
    about: str
    verdict: tuple[str, ...]
    metrics: tuple[RunMetric, ...]
    systems: tuple[SystemRow, ...]
    made: Provenance
    human: tuple[str, ...] = ()
    comparisons: tuple[PairTest, ...] = ()
    features: tuple[FeatureShare, ...] = ()
    costly: tuple[CostlyWords, ...] = ()
    agreement: tuple[Agreement, ...] = ()
    figures: tuple[Figure, ...] = ()
    explorer: Mapping[str, object] = field(default_factory=dict)
    pair: tuple[str, str] | None = None
    """The two systems to compare first."""
    changes: tuple[tuple[str, str], ...] = ()
    """In a report of several runs: the names of each system before and after."""
    trend: tuple[TrendPoint, ...] = ()
    """In a report of three or more runs: the scores of each run, in the order of the runs."""
    headline: str = ""
    """The verdict in one sentence; empty where nothing was tested."""
    steps: tuple[Step, ...] = ()
    words: tuple[WordCounts, ...] = ()
    matches: tuple[MatchSummary, ...] = ()
    texts: bool = True
    """Whether texts of the data may be shown."""
    digits: tuple[int, ...] = ()
    """Decimals of each metric."""
    segments: Mapping[str, int] = field(default_factory=dict)
    """Segments of each system."""
    gates: tuple[Gate, ...] = ()
    """The quality gates that were judged."""
    warnings: tuple[Finding, ...] = ()
    """Findings that put the numbers in doubt."""
    baseline: str | None = None
    """The system that the others are compared with."""
    tagger: str | None = None
    """What found the linguistic features."""

    @cached_property
    def clustered(self) -> bool:
        """Whether systems are in clusters."""
        return any(rank is not None for row in self.systems for rank in row.clusters)

    @property
    def changed(self) -> bool:
        """Whether it shows systems before and after."""
        return bool(self.changes)

    @property
    def main(self) -> int:
        """The metric that orders the systems: the first that supports the languages of the data."""
        return next(iter(self.supported), 0)

    def rate(self, feature: FeatureShare, kind: str) -> float | None:
        """Return the share of segments with fewer (`under`) or more (`over`) of a feature than the reference."""
        count, size = feature.discrepancy.get("all", {}).get(kind), self.segments.get(feature.system)
        return count / size if count is not None and size else None

    def lead(self) -> list[str]:
        """Return the title and the verdict."""
        gate = [self.gate] if self.gate else []
        doubts = [f"Warning: {warning.message}" for warning in self.warnings]
        headline = [self.headline] if self.headline else []
        return [f"{self.title}: {self.about}", *gate, *doubts, *headline, *self.verdict]

    @property
    def gate(self) -> str:
        """What became of the quality gates, in one sentence; empty where there were none."""
        failed = [str(gate) for gate in self.gates if not gate.passed]
        if failed:
            return f"Quality gate not passed: {'; '.join(failed)}."
        return f"Quality gate passed: {'; '.join(map(str, self.gates))}." if self.gates else ""

    @cached_property
    def supported(self) -> tuple[int, ...]:
        """The metrics that support the languages of the data, as places."""
        return tuple(k for k, metric in enumerate(self.metrics) if not metric.unsupported)

    def summary(self) -> "Summary":
        """Return the verdict and the systems alone: what a terminal shows."""
        return Summary(self)

    def header(self) -> Record:
        return {"title": self.title, "about": self.about, "signatures": dict(self.made.signatures)}

    def records(self) -> Iterator[Record]:
        for row in self.systems:
            for k, (metric, total, cluster) in enumerate(zip(self.metrics, row.totals, row.clusters, strict=True)):
                shared = {"common_score": row.common[k].value, "common_n": row.common[k].n} if row.common else {}
                interval = {"score": total.value, "low": total.low, "high": total.high, "n": total.n}
                yield {"system": row.system, "metric": metric.name, **interval, **shared, "cluster": cluster}

    def display_tables(self) -> list[Table]:
        parts = [self.systems_table(notes=True)]
        parts += [self._tests_table()] if self.comparisons else []
        parts += [self._features_table()] if self.features else []
        return [*parts, *([self._agreement_table()] if self.agreement else [])]

    def document(self) -> dict[str, object]:
        whole = {
            field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name not in _PACKED
        }
        metrics = zip(self.metrics, self.digits, strict=True)
        parts: dict[str, object] = {
            "metrics": [
                _pick(metric, "name", "higher_is_better", "explainer") | {"digits": k} for metric, k in metrics
            ],
            "systems": [_system_object(row) for row in self.systems],
            "features": [self._feature(feature) for feature in self.features],
            "changed": self.changed,
        }
        parts |= {"trend": _plain(self.trend)} if self.trend else {}
        return {name: parts[name] if name in parts else _plain(value) for name, value in whole.items()} | parts

    def _feature(self, share: FeatureShare) -> dict[str, object]:
        names = _pick(share, "metric", "feature", "system", "share", "low", "high", "n")
        rates = {kind: self.rate(share, kind) for kind in ("under", "over")}
        lists = {"flags": list(share.flags), "reason": share.because or share.reason, "examples": list(share.examples)}
        return names | rates | lists

    def systems_table(self, *, notes: bool = False) -> Table:
        """Return systems x metrics with intervals; the top cluster is bold, or the best where nothing was tested."""
        names = [metric.name for metric in self.metrics]
        rows: list[tuple[Cell, ...]] = [(row.system, *self._scores(row), *self._human(row)) for row in self.systems]
        remarks = [f"{self.about}; 95 % bootstrap confidence intervals in brackets"]
        remarks += [text for name, text in self.made.signatures if name in names]
        return Table(
            ("system", *names, *(f"human: {name}" for name in self.human)),
            tuple(rows),
            {metric.name: metric.higher_is_better for metric in self.metrics},
            frozenset(self._top()),
            tuple(remarks) if notes else (),
            "Systems",
        )

    def _scores(self, row: SystemRow) -> Iterator[str]:
        for k, digits in enumerate(self.digits):
            interval = row.totals[k].interval(digits)
            yield (
                f"{interval}; {row.common[k].value:.{digits}f} on {row.common[k].n} common" if row.common else interval
            )

    def _human(self, row: SystemRow) -> Iterator[Cell]:
        if not row.human_common:
            return iter(row.human)
        return (f"{mean:.2f}; {shared:.2f} on common" for mean, shared in zip(row.human, row.human_common, strict=True))

    def _top(self) -> Iterator[tuple[int, str]]:
        if len(self.systems) < 2:  # noqa: PLR2004 - one system is not best
            return
        for k, metric in enumerate(self.metrics):
            values = [row.score(k) for row in self.systems]
            best = max(values) if metric.higher_is_better else min(values)
            tested = any(row.clusters[k] is not None for row in self.systems)
            for number, row in enumerate(self.systems):
                if row.clusters[k] == 1 if tested else row.score(k) == best:
                    yield number, metric.name

    def _tests_table(self) -> Table:
        rows = [
            (
                *(
                    comparison.metric,
                    comparison.first,
                    comparison.second,
                    comparison.difference,
                    comparison.low,
                    comparison.high,
                ),
                *("" if comparison.decisive is None else p_value(comparison.decisive), comparison.better or ""),
                "" if comparison.humans is None else comparison.humans.summary,
            )
            for comparison in self.comparisons
        ]
        columns = ("metric", "system", "against", "difference", "low", "high", "p", "better", "human raters agree")
        return Table(columns, tuple(rows), title="Tests between systems")

    def _features_table(self) -> Table:
        rows = [
            (
                *(row.metric, row.feature, row.system, row.share, row.low, row.high),
                *(self.rate(row, "under"), self.rate(row, "over"), row.n),
            )
            for row in self.features
        ]
        columns = ("metric", "feature", "system", "lost", "low", "high", "too few", "too many", "segments")
        return Table(columns, tuple(rows), title="Score lost by feature")

    def _agreement_table(self) -> Table:
        rows = [
            (
                *(row.metric, row.explainer, row.side, row.auc.interval(3), row.ap.interval(3)),
                *(row.chance_ap, *(row.controls.get(name) for name in ("length", "surprisal")), row.n),
            )
            for row in self.agreement
        ]
        columns = ("metric", "explained by", "side", "AUC", "AP", "AP at chance", "AUC of length", "AUC of surprisal")
        notes = tuple(str(row.finding) for row in self.agreement if row.finding is not None)
        return Table((*columns, "texts"), tuple(rows), title="Do highlights match human error marks?", notes=notes)

    def __repr__(self) -> str:
        summary = self.headline or next(iter(self.verdict), "")
        return f"<Report {self.title!r}: {self.about}. {summary}>"

    def _repr_html_(self) -> str:
        title, *sentences = self.lead()
        lines = Markup("").join(Markup("<p>{}</p>").format(sentence) for sentence in sentences[:_SENTENCES])
        return str(Markup("<h3>{}</h3>{}{}").format(title, lines, self.systems_table().html()))


@dataclass(frozen=True, repr=False)
class Summary(Result):
    """A report on a terminal: the verdict, then systems x metrics."""

    report: Report

    def lead(self) -> list[str]:
        """Return the title and the verdict."""
        return self.report.lead()

    def tables(self, *, long: bool = False) -> Sequence[Table]:
        return self.report.tables(long=True) if long else [self.report.systems_table()]


def feature_name(feature: str) -> str:
    """Return a feature as readers name it.

    >>> feature_name("upos:NOUN"), feature_name("all_caps"), feature_name("ent:XYZ")
    ('nouns', 'words in capitals', 'ent:XYZ')
    """
    return _FEATURES.get(feature, feature.replace("_", " "))


SMALLEST_P = 0.001
"""Below that nobody reads digits."""


def p_value(p: float) -> str:
    """Return a p-value as papers print it.

    >>> p_value(0.0004), p_value(0.0312), p_value(0.4)
    ('< 0.001', '0.031', '0.40')
    """
    if p < SMALLEST_P:
        return f"< {SMALLEST_P}"
    return f"{p:.3f}" if p < 0.1 else f"{p:.2f}"  # noqa: PLR2004 - the digits that matter


def about(data: Dataset) -> str:
    """Return how much of what was compared, in one line.

    >>> about(Dataset("x", (), ("de", "en")))
    '0 systems, 0 segments, de → en'
    """
    references = {len(segment.references) for segment in data.segments}
    parts = [_count(len(data.systems), "system"), _count(len(data.ids), "segment")]
    if references and references != {0}:
        parts.append(_count(max(references), "reference") if len(references) == 1 else "references vary")
    if data.languages:
        parts.append(" → ".join(data.languages))
    return ", ".join(parts)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _pick(value: object, *names: str) -> dict[str, object]:
    return {name: getattr(value, name) for name in names}


def _system_object(row: SystemRow) -> dict[str, object]:
    """Return a system; what it has on common segments, where that is something else."""
    names = [field.name for field in dataclasses.fields(row)]
    return {name: _plain(getattr(row, name)) for name in names if row.common or name not in ("common", "human_common")}


def _plain(value: object) -> object:
    if isinstance(value, Finding):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, Sequence) and not isinstance(value, str) else value
