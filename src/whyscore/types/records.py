"""The facts that travel: from an analysis to the run folder, the report, the page and JSON, in one type each.

Field names are the keys of records, in their order, so that a record is the fact and nothing is renamed on the way.
`whyscore.data.codec` reads and writes all of them.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from whyscore.types.arrays import FloatMatrix, FloatVector, read_only
from whyscore.types.data import Entry, Finding
from whyscore.types.scores import Estimate, Explanation
from whyscore.types.segments import Place
from whyscore.types.words import WordMatch, Words

_SMALLEST = 0.001
_BESIDE = ("examples", "because")


def drop_empty_group(record: dict[str, object]) -> dict[str, object]:
    """Return a record without its group where it has none."""
    return {name: value for name, value in record.items() if name != "group" or value is not None}


@dataclass(frozen=True, slots=True)
class Total:
    """The corpus score of a system under a metric, with its interval; NaN where it is undefined."""

    system: str
    metric: str
    score: float
    low: float | None = None
    high: float | None = None
    level: float = 0.95
    n: int = 0
    higher_is_better: bool = True
    common_score: float | None = None
    """Over the segments that all systems have, where some have others besides."""
    common_n: int | None = None

    @classmethod
    def of(
        cls, system: str, metric: str, estimate: Estimate, common: Estimate | None = None, *, higher_is_better: bool
    ) -> Self:
        """Return the total that an estimate is, under the names of its system and metric."""
        ends = estimate.low, estimate.high, estimate.level, estimate.n
        shared = () if common is None else (common.value, common.n)
        return cls(system, metric, estimate.value, *ends, higher_is_better, *shared)


@dataclass(frozen=True, slots=True)
class HumanPreference:
    """How often human raters preferred the system that is ahead by a difference of this size, in data rated before.

    `share` is None, with a `reason`, where the data do not cover the metric, the language pair or the domain.
    """

    share: float | None = None
    low: float | None = None
    high: float | None = None
    pairs: int = 0
    """Rated pairs of systems behind it."""
    least: float | None = None
    most: float | None = None
    """The sizes of their differences, up to `most`; None: all larger ones."""
    segments: int = 0
    """On how many segments these were measured, at the least."""
    origin: str = ""
    """The rated test sets."""
    reason: str | None = None

    @property
    def summary(self) -> str:
        """The share with its interval, as text."""
        if self.share is None or self.low is None or self.high is None:
            return "not known"
        return f"{self.share:.0%} [{self.low:.0%}, {self.high:.0%}]"

    def __str__(self) -> str:
        if self.share is None:
            return f"in human terms: not known ({self.reason})"
        size = f"{self.least:g} or more" if self.most is None else f"{self.least:g} to {self.most:g}"
        return (
            f"in human terms: raters preferred the system ahead by {size} in {self.summary} of {self.pairs} pairs "
            f"({self.origin})"
        )


@dataclass(frozen=True, slots=True)
class PairTest:
    """Two systems under one metric: `difference` is the first minus the second, in the metric's own numbers."""

    metric: str
    first: str
    second: str
    difference: float
    low: float | None = None
    high: float | None = None
    p: float | None = None
    """Two-sided; None, with a reason, where it is undefined."""
    better: str | None = None
    """The better system, where the difference is statistically significant."""
    adjusted: float | None = None
    """p corrected for the number of pairs; None: there was no correction."""
    method: str = ""
    exact: bool = False
    n: int = 0
    """Segments that both systems have."""
    blocks: int | None = None
    """Documents, where whole documents were resampled."""
    detectable: float | None = None
    """The smallest difference that this many segments detect with a power of .8."""
    needed: int | None = None
    """Segments that the observed difference would take."""
    reason: str | None = None
    humans: HumanPreference | None = None
    """What a difference of this size meant to human raters; None: not looked up."""

    @property
    def worse(self) -> str:
        """The system that is not the better one."""
        return self.second if self.better == self.first else self.first

    @property
    def decisive(self) -> float | None:
        """The p-value that decided: the corrected one where there was a correction."""
        return self.p if self.adjusted is None else self.adjusted

    def __str__(self) -> str:
        where = f"on {self.n} segments" + (f" in {self.blocks} documents" if self.blocks else "")
        p = self.decisive
        if self.better is not None:
            gain = f"significantly better than {self.worse} by {_size(abs(self.difference))}"
            return f"{self.metric}: {self.better} is {gain} {where} ({_p(p)})"
        if self.reason:
            return f"{self.metric}: {self.first} and {self.second} cannot be compared {where} ({self.reason})"
        limit = ""
        if self.detectable is not None and self.detectable > 0:
            limit = f"; differences of about {_size(self.detectable)} or more are detectable"
        if self.needed is not None and self.needed > self.n:
            limit += f", this one on about {self.needed:,} segments"
        size = f"difference {_size(self.difference)}, {_p(p)}{limit}"
        return f"{self.metric}: {self.first} and {self.second} do not differ significantly {where} ({size})"


def _size(value: float) -> str:
    return f"{value:.2f}" if abs(value) >= 1 else f"{value:.3f}"


def _p(value: float | None) -> str:
    if value is None:
        return "p undefined"
    return f"p < {_SMALLEST}" if value < _SMALLEST else f"p = {value:.3f}"


@dataclass(frozen=True, slots=True)
class ClusterRank:
    """The significance cluster of a system under a metric; 1 is the top cluster."""

    metric: str
    system: str
    cluster: int


@dataclass(frozen=True)
class FeatureShare:
    """How much of what a system loses under a metric it loses on one feature: a line of `decomposition.jsonl`.

    `share` = (oracle - sigma) / (oracle - anti): 0 means nothing to gain from the feature, 1 that every occurrence is
    as bad as it can be; lower is better. It is None, with a `reason`, where it is undefined.
    """

    system: str
    metric: str
    feature: str
    n: int = 0
    """Segments with the feature in the hypothesis and in a reference."""
    informative: int = 0
    """Those of them whose best and worst cases differ."""
    sigma: float | None = None
    """The mean score of the n segments, turned so that more is better and scaled to 1; `sigma_all`: of all segments."""
    sigma_all: float | None = None
    oracle: float | None = None
    """The best case: every occurrence of the feature agrees with the reference."""
    anti: float | None = None
    """The worst case: no occurrence agrees."""
    share: float | None = None
    low: float | None = None
    high: float | None = None
    """Ends of the 95 % bootstrap interval of the share."""
    guarded: float | None = None
    gain: float | None = None
    """oracle - sigma."""
    discrepancy: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Segments with fewer (`under`), more (`over`) or as many occurrences as the references: of `all`, and of `both`,
    those with the feature on both sides."""
    frequency: Mapping[str, float | None] = field(default_factory=dict)
    uniqueness: Mapping[str, float | None] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    reason: str | None = None
    range: float | None = None
    """oracle - anti."""
    outside: int = 0
    """Segments whose score is not between the worst and the best case."""
    dropped: int = 0
    """Bootstrap draws without a value."""
    word_f: Mapping[str, float | None] = field(default_factory=dict)
    """Precision, recall and F of the words of the feature."""
    additive: float | None = None
    """Summed importance of the words of the feature, mean over segments."""
    examples: tuple[str, ...] = ()
    """Ids of the segments that move the share most."""
    because: str | None = None
    """The reason in a sentence, where `reason` is a word of the closed list of records."""
    group: str | None = None
    """What the system is compared within: a language pair, a year; None where all of the data is one group."""

    def record(self) -> dict[str, object]:
        """Return the row under the names it has in files; those beside the numbers, examples, are left out."""
        row = {name: getattr(self, name) for name in FeatureShare.__dataclass_fields__ if name not in _BESIDE}
        row |= {"discrepancy": {over: dict(counts) for over, counts in self.discrepancy.items()}}
        row |= {name: dict(row[name]) for name in ("frequency", "uniqueness", "word_f")}
        return drop_empty_group(row | {"flags": list(self.flags)})


@dataclass(frozen=True, slots=True)
class ShareTest:
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
    group: str | None = None

    def record(self) -> dict[str, object]:
        """Return the row under the names it has in files."""
        return drop_empty_group({"row": "test"} | asdict(self))


@dataclass(frozen=True, slots=True)
class SegmentFeatures:
    """The features of which a hypothesis has fewer than every reference, or more."""

    system: str
    id: str
    under: tuple[str, ...] = ()
    over: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunMetric:
    """A metric of a run: its name in records, its direction, and who explained how much of it."""

    name: str
    signature: str
    higher_is_better: bool = True
    explainer: str | None = None
    explained: str | None = None
    """The signature of the explanations."""
    budget: int | None = None
    """How many segments are explained; None: all."""
    unsupported: tuple[str, ...] = ()
    """Languages of the data that its model was not made for: its numbers mean little there."""


@dataclass(frozen=True, slots=True)
class Gate:
    """A quality gate that was judged: a system against a limit, or against a baseline."""

    metric: str
    system: str
    passed: bool
    score: float
    """Of the system."""
    limit: float | None = None
    """What the score has to reach; None where the baseline decides."""
    baseline: str | None = None
    """The system that this one must not be significantly worse than."""
    difference: float | None = None
    """To the baseline; below 0 is worse, whatever the direction of the metric."""
    p: float | None = None
    higher_is_better: bool = True
    warning: str | None = None
    """Why the metric, or so few segments, should not decide here."""

    def __str__(self) -> str:
        if self.limit is not None:
            met = "at least" if self.higher_is_better else "at most"
            missed = "below" if self.higher_is_better else "above"
            return (
                f"{self.metric} of {self.system} is {self.score:.2f}, {met if self.passed else missed} {self.limit:g}"
            )
        how = "not significantly" if self.passed else "significantly"
        p = "" if self.p is None else f", p = {self.p:.3g}"
        gap = (self.difference or 0.0) * (1 if self.higher_is_better else -1)
        note = f"; {self.warning}" if self.warning else ""
        return f"{self.system} is {how} worse than {self.baseline} on {self.metric} ({gap:+.2f}{p}{note})"


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What `run.json` says of a run: what was asked for, when, with which versions, and what came of it."""

    created: str = ""
    whyscore: str = ""
    """The version."""
    status: Literal["running", "done"] = "running"
    fingerprint: str = ""
    """A digest of data and plan: the same work goes on in the same folder."""
    plan: Mapping[str, object] = field(default_factory=dict)
    command: tuple[str, ...] | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    noted: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """While it runs: what is to be known about each file that is complete."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """While it runs: of each file that is complete."""
    metrics: tuple[RunMetric, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[Finding, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    gates: tuple[Gate, ...] = ()
    first_line: int | None = None
    """The line of the first segment in its file, where each next segment is on the next line."""

    @property
    def done(self) -> bool:
        """Whether the run was finished."""
        return self.status == "done"


@dataclass(frozen=True, slots=True, eq=False)
class SimilarityMatrix:
    """How similar each word of an explained text is to each word of the text it is matched with."""

    place: Place | None
    """Of the other text; None where there is nothing to match with."""
    words: Words | None
    """Of the other text."""
    cosines: FloatMatrix
    """Words x words of the other text; NaN where a word was not read."""
    reason: str | None = None
    """Why numbers are missing."""


@dataclass(frozen=True, slots=True, eq=False)
class ExplanationRecord:
    """The importance of the words of one text, with the names it goes by; one number, note ... per word."""

    id: str
    system: str
    metric: str
    explainer: str
    place: Place
    words: tuple[str, ...]
    spans: NDArray[np.int64]
    """Words x 2: where each begins and ends in its text."""
    importance: FloatVector
    """NaN where it is undefined."""
    score: float = float("nan")
    probes: int = 0
    fit: float | None = None
    notes: tuple[str, ...] | None = None
    matches: tuple[tuple[WordMatch, ...], ...] | None = None
    """Per word, which words of the other text it was matched with."""
    spread: FloatVector | None = None
    filled: tuple[int, ...] | None = None
    """Words whose importance was filled in, because the metric gives them none."""
    method: str | None = None
    flags: tuple[str, ...] = ()
    stability: float | None = None
    matrix: SimilarityMatrix | None = None
    """The similarities behind it, where they were requested."""
    parts: Mapping[str, float] | None = None
    """The parts of the score, where the metric has some."""
    entry: int = -1
    """Which entry of the data set it is of; not in files."""
    line: int | None = None
    """Where it was read; not in files."""

    def __post_init__(self) -> None:
        if self.importance.flags.writeable:
            object.__setattr__(self, "importance", read_only(self.importance))

    @classmethod
    def of(cls, entry: Entry, metric: str, explainer: str, explanation: Explanation, **others: object) -> Self:
        """Return the record of an explanation; `others` are the fields that an explanation does not know."""
        fields: dict[str, object] = {
            "notes": explanation.notes,
            "matches": explanation.matches,
            "spread": explanation.spread,
            "method": explanation.method,
            "flags": explanation.flags,
            "stability": explanation.stability,
        }
        return cls(
            entry.id,
            entry.system,
            metric,
            explainer,
            explanation.place,
            tuple([explanation.words.text[start:end] for start, end in explanation.words.spans]),
            np.array(explanation.words.spans, dtype=np.int64).reshape(-1, 2),
            explanation.importance,
            explanation.score,
            explanation.probes,
            explanation.fit,
            **(fields | others),  # type: ignore[arg-type]
        )
