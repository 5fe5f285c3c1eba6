"""What meta-evaluations say of metrics and of word scores, as records for programs and tables for people."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np

from whyscore.analysis.metaeval.faithfulness import FaithfulnessResult, StabilityResult, gain_table
from whyscore.analysis.metaeval.settings import MetaevalScoresSettings, MetaevalWordsSettings
from whyscore.analysis.metaeval.uses import Average, FilterUse, RerankUse, use_tables
from whyscore.data.codec import Header, Kind
from whyscore.data.formats.eval4nlp import Gold, Judged
from whyscore.stats.annotators import PairAgreement
from whyscore.stats.correction import Clusters
from whyscore.stats.words import MEASURES, Confusion, Measure, PairedTest, Ragged
from whyscore.stats.words import Agreement as WordAgreement
from whyscore.text.files import finite
from whyscore.types import Estimate, Finding, FloatVector, Signature
from whyscore.types.result import DECIMALS, Cell, Record, Result, Table
from whyscore.version import __version__

_DRAWN = {
    "both": "systems and segments, the widest one",
    "systems": "systems, for the same segments",
    "inputs": "segments, for the same systems",
}
_AGREEMENT = ("group", "metric", "measure", "value", "low", "high", "rank", "n", "n_used", "dropped", "sentinel",
              "beaten", "below_chance", "epsilon", "at_zero", "held_out", "given_length", "distinct", "fisher_low",
              "fisher_high", "reason")  # fmt: skip
_NAMES = {"beaten": "not_above_sentinel"}
_P_DECIMALS = 4


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

    def record(self) -> Record:
        """Return the fields, for programs."""
        return {_NAMES.get(name, name): finite(getattr(self, name)) for name in _AGREEMENT}

    def remarks(self) -> str:
        """Return what a reader of the number should know."""
        remarks = ["sentinel"] if self.sentinel else []
        remarks += [self.reason] if self.reason and math.isnan(self.value) else []
        remarks += ["not above the best sentinel"] if self.beaten else []
        remarks += ["below chance: wrong direction?"] if self.below_chance and not self.sentinel else []
        if self.epsilon is not None and not math.isnan(self.epsilon):
            zero = "" if not self.epsilon or self.at_zero is None else f" ({self.at_zero:.{DECIMALS}f} at 0)"
            remarks.append(f"epsilon {self.epsilon:.4g}{zero}")
        if self.held_out is not None:
            remarks.append(f"{self.held_out:.{DECIMALS}f} by the other half's epsilon")
        return "; ".join(remarks)


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
    family_size: int | None = None
    """How many tests were corrected together; None without a correction."""


@dataclass(frozen=True, eq=False)
class GroupAgreement:
    """All metrics on one set of systems and segments."""

    group: str | None
    agreements: tuple[Agreement, ...]
    tests: tuple[MetricTest, ...]
    clusters: Clusters | None
    systems: int
    segments: int


@dataclass(frozen=True, eq=False, repr=False)
class Metaevaluation(Result):
    """Agreement of metrics with people for each group of the data, tests between metrics, clusters, sentinels."""

    name: str
    """Of the data."""
    human: str
    measure: str
    groups: tuple[GroupAgreement, ...]
    settings: MetaevalScoresSettings
    method: str | None
    """The test between metrics, with what it permutes or draws."""
    notes: tuple[str, ...] = ()
    decimals: int = DECIMALS
    """Of intervals in the table for people."""
    uses: tuple[FilterUse | RerankUse, ...] = ()
    averages: tuple[tuple[str, ...], tuple[Average, ...]] = ((), ())
    """The names of groups and tasks, and metrics with their average over them."""
    kind: ClassVar[Kind] = "metaeval"

    def __iter__(self) -> Iterator[Agreement]:
        return (agreement for group in self.groups for agreement in group.agreements)

    def __getitem__(self, metric: str) -> Agreement:
        agreements = [agreement for agreement in self if agreement.metric == metric]
        if len(agreements) != 1:
            raise KeyError(metric)
        return agreements[0]

    @property
    def tests(self) -> tuple[MetricTest, ...]:
        """The tests between metrics."""
        return tuple(test for group in self.groups for test in group.tests)

    @property
    def how(self) -> str:
        """What the numbers mean, in one line."""
        sizes = dict.fromkeys((group.systems, group.segments) for group in self.groups)
        extents = [f"{rows} rows" if n == 1 else f"{rows} systems x {n} segments" for rows, n in sizes]
        line, used = f"{self.measure} with {self.human}, {' and '.join(extents)}", self.settings
        if any(agreement.low is not None for agreement in self):
            line += f"; in brackets the 95 % bootstrap interval over {_DRAWN[used.resample]}"
        if used.compat:
            line += f"; as in {used.compat}"
        if self.method is None:
            return line
        facts = f"one-sided, alpha {used.alpha:g}, seed {used.seed}{self._correction()}"
        return f"{line}; rank = cluster by {self.method} ({facts})"

    def _correction(self) -> str:
        if self.settings.correction == "none":
            return ""
        sizes = dict.fromkeys(str(test.family_size) for test in self.tests)
        over = "of the table" if self.settings.family == "table" else "of each group"
        return f", {self.settings.correction}-corrected over the {' or '.join(sizes)} tests {over}"

    def header(self) -> Record:
        return Header(self.kind, name=Path(self.name).name, counts={"metrics": len(list(self))}).object()

    def records(self) -> Iterator[Record]:
        return (agreement.record() for agreement in self)

    def document(self) -> object:
        used = self.settings
        facts: dict[str, object] = {
            "human": self.human,
            "measure": self.measure,
            "test": self.method,
            "seed": used.seed,
        }
        facts |= {"resample": used.resample, "compat": used.compat, "alpha": used.alpha}
        facts |= {"correction": used.correction, "family": None if used.correction == "none" else used.family}
        facts |= {"notes": list(self.notes), "metrics": list(self.records())}
        facts |= {"uses": [use.record() for use in self.uses]} if self.uses else {}
        names, averages = self.averages
        if averages:
            facts["averages"] = [
                finite(asdict(a) | {"values": dict(zip(names, a.values, strict=True))}) for a in averages
            ]
        return {**facts, "tests": [{"group": test.group} | asdict(test) for test in self.tests]}

    def display_tables(self) -> list[Table]:
        tables = [self._agreements(), *([self._tests()] if self.significant else [])]
        return [*tables, *self._averages(), *use_tables(self.uses)]

    def _averages(self) -> list[Table]:
        names, averages = self.averages
        rows: tuple[tuple[Cell, ...], ...] = tuple(
            (
                average.rank,
                average.cluster,
                f"({average.metric})" if average.sentinel else average.metric,
                average.average,
                *average.values,
            )
            for average in averages
        )
        used = self.settings
        title = "average over groups and tasks (equal weights)"
        how = f"cluster: metrics that do not differ significantly (permutation test, one-sided, alpha {used.alpha:g}, "
        how += f"{used.test_draws:,} draws, not corrected)"
        columns = ("rank", "cluster", "metric", "average", *names)
        return [Table(columns, rows, best=frozenset(), notes=(how,), title=title)] if rows else []

    @property
    def significant(self) -> tuple[MetricTest, ...]:
        """The tests in which the first metric agrees significantly better."""
        return tuple(test for test in self.tests if test.adjusted <= self.settings.alpha)

    def _agreements(self) -> Table:
        shown = {
            "group": any(group.group is not None for group in self.groups),
            "given length": any(agreement.given_length is not None for agreement in self),
            "rank": self.method is not None,
        }
        names = ("group", "metric", self.measure, "given length", "rank", "n", "remarks")
        columns = tuple(name for name in names if shown.get(name, True))
        rows, bold = [], []
        for number, agreement in enumerate(self):
            cells: dict[str, Cell] = {
                "group": agreement.group,
                "metric": f"({agreement.metric})" if agreement.sentinel else agreement.metric,
                self.measure: agreement.interval(self.decimals),
                "given length": agreement.given_length,
                "rank": agreement.rank,
                "n": agreement.n_used,
                "remarks": agreement.remarks(),
            }
            rows.append(tuple(cells[name] for name in columns))
            if agreement.rank == 1 if self.method else self._leads(agreement):
                bold.append((number, self.measure))
        alike = ("no two metrics differ significantly",) if self.tests and not self.significant else ()
        return Table(columns, tuple(rows), {self.measure: True}, frozenset(bold), (self.how, *alike, *self.notes))

    def _leads(self, agreement: Agreement) -> bool:
        rivals = [other.value for other in self if other.group == agreement.group and not other.sentinel]
        defined = [value for value in rivals if not math.isnan(value)]
        return not agreement.sentinel and len(defined) > 1 and agreement.value == max(defined)

    def _tests(self) -> Table:
        columns = {"group": "group", "first": "metric", "second": "better than", "delta": "difference", "adjusted": "p"}
        rows = [asdict(test) for test in self.significant]
        note = f"{len(rows)} of {len(self.tests)} pairs differ significantly: {self.tests[0].method}"
        return Table.of(rows, columns, ("group",), notes=(note,), decimals=_P_DECIMALS)

    def __str__(self) -> str:
        return "\n".join(
            " ".join(filter(None, (agreement.group, agreement.metric, agreement.interval(), agreement.remarks())))
            for agreement in self
        )


@dataclass(frozen=True, eq=False)
class SideResult:
    """A side of a submission: one number per sentence (NaN where left out), their means, and what was left out."""

    values: WordAgreement
    estimates: Mapping[Measure, Estimate]
    missing: int = 0
    """Sentences without word scores, because a language model gave no answer that can be used."""
    mismatch: int = 0
    """Sentences whose number of scores was not the gold's."""
    cut: bool = False
    """Whether these were cut and judged, rather than left out."""
    tags: Ragged | None = None
    scores: Ragged | None = None
    """Gold and scores as they were judged, word by word; None for chance, which has no scores."""

    @property
    def n(self) -> int:
        """Sentences in all."""
        return len(self.values.auc)

    @property
    def judged(self) -> FloatVector:
        """1 for each sentence that counts in the means."""
        return (~np.isnan(self.values.auc)).astype(np.float64)

    @property
    def n_eval(self) -> int:
        """Sentences behind the means."""
        return int(self.judged.sum())

    @property
    def dropped(self) -> dict[str, int]:
        """How many sentences count nowhere, by reason."""
        there = self.values.words > 0
        return {
            "no_error": int((self.values.marked == 0)[there].sum()),
            "all_error": int((self.values.marked == self.values.words)[there].sum()),
            "mismatch": 0 if self.cut else self.mismatch,
        }

    @property
    def ties(self) -> int:
        """Sentences where equal scores cross the border K."""
        return int(self.values.ties.sum())

    def mean(self, name: str) -> float:
        """Return the mean of a column of the values over the judged sentences; NaN where there is none."""
        values: FloatVector = getattr(self.values, name)
        defined = values[~np.isnan(values)].tolist()
        return math.fsum(defined) / len(defined) if self.n_eval and defined else float("nan")

    def record(self, *, tie_interval: bool = False) -> dict[str, object]:
        """Return the means with their intervals, and what was left out."""
        record: dict[str, object] = {"n": self.n, "n_eval": self.n_eval, "dropped": self.dropped, "ties": self.ties}
        if self.missing:
            record["missing"] = self.missing
        if self.cut and self.mismatch:
            record["truncated"] = self.mismatch
        record |= {name: self.mean(name) for name in (*MEASURES, "recall_at_k_legacy")}
        if tie_interval:
            record["tie_interval"] = [self.mean("recall_at_k_low"), self.mean("recall_at_k_high")]
        intervals = {name: estimate for name, estimate in self.estimates.items() if estimate.low is not None}
        record["interval"] = {name: [estimate.low, estimate.high] for name, estimate in intervals.items()}
        if not self.n_eval:
            record["reason"] = next((reason for reason in ("no_error", "all_error") if self.dropped[reason]), "empty")
        return record

    def segment(self, k: int) -> dict[str, object]:
        """Return the numbers of one sentence."""
        words, marked = int(self.values.words[k]), int(self.values.marked[k])
        record: dict[str, object] = {"n_tokens": words, "n_errors": marked}
        record |= {name: float(getattr(self.values, name)[k]) for name in MEASURES}
        if np.isnan(self.values.auc[k]):
            record["reason"] = "empty" if not words else "no_error" if not marked else "all_error"
        return record


@dataclass(frozen=True, slots=True)
class SentenceResult:
    """How sentence scores go with the gold ones."""

    n: int
    pearson: float
    spearman: float

    def record(self) -> Record:
        """Return the correlations."""
        return asdict(self) | ({"reason": "constant"} if math.isnan(self.pearson) else {})


@dataclass(frozen=True, slots=True)
class Decision:
    """Word scores of one side as decisions: BAD above a threshold."""

    threshold: float
    counts: Confusion
    oracle: bool = False
    """The threshold was chosen on the judged data."""

    def record(self) -> Record:
        """Return the counts and the measures made of them."""
        names = ("precision", "recall", "f1_bad", "f1_ok", "f1_product", "mcc")
        measures = {name: getattr(self.counts, name) for name in names}
        return {"threshold": self.threshold, "oracle": self.oracle, **self.counts._asdict(), **measures}


@dataclass(frozen=True, slots=True)
class ContinuousResult:
    """How scores follow the share of annotators who marked a word: means over the sentences where they are defined."""

    pearson: float
    spearman: float
    weighted_auc: float
    n: int


@dataclass(frozen=True, eq=False)
class SystemResult:
    """One submission, judged."""

    system: str
    sides: Mapping[Judged, SideResult | None]
    """None where there is gold but no scores, or the other way round: `not submitted`."""
    sentence: SentenceResult | None = None
    warnings: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    """What a reader should know before trusting it: `below-control`."""
    baseline: bool = False
    decisions: Mapping[Judged, Decision] | None = None
    faithfulness: FaithfulnessResult | None = None
    stability: StabilityResult | None = None
    spread: Mapping[Measure, float] = field(default_factory=dict)
    """The standard deviation of the measures between seeds."""
    continuous: Mapping[Judged, ContinuousResult] | None = None

    def record(self, *, tie_interval: bool = False) -> dict[str, object]:
        """Return all that is known, with the keys of the published result."""
        sides = {side: result and result.record(tie_interval=tie_interval) for side, result in self.sides.items()}
        record: dict[str, object] = {"system": self.system, "baseline": self.baseline, "sides": sides}
        record |= {"sentence": self.sentence and self.sentence.record(), "warnings": list(self.warnings)}
        record |= {"findings": [finding.record() for finding in self.findings]} if self.findings else {}
        missing = {side: "not submitted" for side, result in self.sides.items() if result is None}
        record |= {"reasons": missing} if missing else {}
        if self.decisions is not None:
            record["decisions"] = {side: decision.record() for side, decision in self.decisions.items()}
        if self.faithfulness is not None:
            record["faithfulness"] = self.faithfulness.record()
        if self.stability is not None:
            record["stability"] = self.stability.record() | {"sd": dict(self.spread)}
        if self.continuous is not None:
            record["continuous"] = {side: asdict(correlations) for side, correlations in self.continuous.items()}
        return record

    def cells(self, side: Judged) -> dict[str, Cell]:
        """Return the numbers of one side by column, those of the sentences beside the target."""
        cells: dict[str, Cell] = {"system": self.system, "side": side}
        result, decision = self.sides[side], (self.decisions or {}).get(side)
        if result is not None:
            cells |= {"n": result.n, "n_eval": result.n_eval, "ties": result.ties}
            cells |= {shown: result.mean(name) for name, shown in _SHOWN.items()}
            cells |= {name: result.mean(name) for name in (*MEASURES, "recall_at_k_legacy")}
            for name, estimate in result.estimates.items():
                cells |= {f"{name}_low": estimate.low, f"{name}_high": estimate.high}
        if self.sentence is not None and side == "target":
            cells |= {"pearson": self.sentence.pearson, "spearman": self.sentence.spearman}
        if decision is not None:
            cells |= {"threshold": decision.threshold, **{name: getattr(decision.counts, name) for name in _DECIDED}}
        return cells | ({} if self.stability is None else {"stability": self.stability.spearman})


@dataclass(frozen=True, slots=True)
class SideRanking:
    """The systems of one side against each other."""

    n: int
    """Sentences that all of them were judged on."""
    ranks: Mapping[str, Mapping[Measure, float]]
    mean_rank: Mapping[str, float]
    best: Mapping[Measure, tuple[str, ...]]
    tests: Mapping[tuple[str, str], Mapping[Measure, PairedTest]]
    adjusted: Mapping[tuple[str, str], Mapping[Measure, float]]
    differences: Mapping[tuple[str, str], Mapping[Measure, Estimate]] = field(default_factory=dict)
    """The earlier minus the later, with intervals from the resamples that all systems share."""
    strengths: Mapping[Measure, Mapping[str, Estimate]] = field(default_factory=dict)
    """Bradley-Terry strengths, where they were asked for."""
    warnings: tuple[str, ...] = ()

    def record(self) -> dict[str, object]:
        """Return ranks, best groups and tests."""
        record: dict[str, object] = {
            "n": self.n,
            "mean_rank": dict(self.mean_rank),
            "ranks": {name: dict(ranks) for name, ranks in self.ranks.items()},
            "best": {measure: list(names) for measure, names in self.best.items()},
            "tests": [self._test(pair, measure) for pair in self.tests for measure in MEASURES],
        }
        if self.strengths:
            record["bradley_terry"] = {
                measure: {name: {"value": strength.value, "low": strength.low, "high": strength.high, "n": strength.n}
                          for name, strength in strengths.items()}
                for measure, strengths in self.strengths.items()
            }  # fmt: skip
        return record | {"warnings": list(self.warnings)}

    def _test(self, pair: tuple[str, str], measure: Measure) -> Record:
        test, between = self.tests[pair][measure], self.differences[pair][measure]
        record: dict[str, object] = {"systems": list(pair), "measure": measure, "difference": test.difference}
        record |= {"t": test.statistic, "p": test.p, "p_adjusted": self.adjusted[pair][measure]}
        return record | {"interval": None if between.low is None else [between.low, between.high]}

    def table(self, side: Judged) -> Table:
        """Return the systems by their mean rank."""
        columns = ("system", *(f"rank {shown}" for shown in _SHOWN.values()), "mean rank")
        columns += tuple(f"BT {_SHOWN[measure]}" for measure in self.strengths)
        rows: list[tuple[Cell, ...]] = []
        for name in sorted(self.mean_rank, key=lambda name: self.mean_rank[name]):
            strengths = [strength.get(name) for strength in self.strengths.values()]
            numbers = (None if strength is None else strength.value for strength in strengths)
            rows.append((name, *self.ranks[name].values(), self.mean_rank[name], *numbers))
        groups = [f"{_SHOWN[measure]} {', '.join(names)}" for measure, names in self.best.items()]
        notes = (f"{side}, {self.n} sentences in common; best group: {'; '.join(groups)}",)
        return Table(columns, tuple(rows), notes=notes, best=frozenset())


@dataclass(frozen=True, eq=False)
class AnnotatorAgreement:
    """What several annotators say of each other."""

    names: tuple[str, ...]
    pairs: Mapping[Judged, Mapping[tuple[str, str], PairAgreement]]
    ceiling: tuple[SystemResult, ...]
    """Each annotator as a system, judged against the majority of the others."""

    scores: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """Pearson of the sentence scores of every two annotators, where they gave scores."""

    def kappa(self, side: Judged, kind: str = "sentence") -> float:
        """Return the mean kappa over pairs, per sentence or pooled."""
        return _mean_known([getattr(pair, kind) for pair in self.pairs[side].values()])

    @property
    def pearson(self) -> float:
        """The mean correlation of sentence scores over pairs."""
        return _mean_known(list(self.scores.values()))

    def notes(self) -> Iterator[str]:
        """Yield the mean kappas of each side, and the mean correlation of sentence scores."""
        for side in self.pairs:
            kappas = f"kappa {self.kappa(side):.3f} per sentence, {self.kappa(side, 'pooled'):.3f} pooled"
            yield f"{len(self.names)} annotators, {side}: {kappas}"
        if self.scores:
            yield f"{len(self.names)} annotators, sentence scores: Pearson {self.pearson:.3f}"

    def record(self) -> Record:
        """Return the agreement of annotators."""
        kappas = {
            side: {"kappa_sentence": self.kappa(side), "kappa_pooled": self.kappa(side, "pooled")}
            for side in self.pairs
        }
        pairs = {
            side: [{"annotators": list(names)} | pair._asdict() for names, pair in agreements.items()]
            for side, agreements in self.pairs.items()
        }
        record: dict[str, object] = {"annotators": list(self.names), "agreement": kappas, "pairs": pairs}
        for side, key in (("target", "ceiling"), ("source", "ceiling_source")):
            results = {
                annotator.system: result.record()
                for annotator in self.ceiling
                if (result := annotator.sides.get(side))  # type: ignore[call-overload]
            }
            record |= {key: results} if results or side == "target" else {}
        if self.scores:
            by_pair = [{"annotators": list(names), "pearson": value} for names, value in self.scores.items()]
            record["scores"] = {"pearson": self.pearson, "pairs": by_pair}
        return record


def _mean_known(values: Sequence[float]) -> float:
    defined = [value for value in values if not np.isnan(value)]
    return sum(defined) / len(defined) if defined else float("nan")


_SHOWN: dict[Measure, str] = {"auc": "AUC", "ap": "AP", "recall_at_k": "R@K"}
_DECIDED = ("f1_bad", "f1_ok", "mcc")


@dataclass(frozen=True, eq=False, repr=False)
class WordsResult(Result):
    """All systems that score words, and what stands behind their numbers."""

    gold: Gold
    systems: tuple[SystemResult, ...]
    settings: MetaevalWordsSettings
    ranking: Mapping[Judged, SideRanking] = field(default_factory=dict)
    annotators: AnnotatorAgreement | None = None
    kind: ClassVar[Kind] = "words"

    @property
    def signature(self) -> Signature:
        facts = {"gold": self.gold.name, "task": self.gold.task} | self.settings.facts()
        return Signature("words", (*facts.items(), ("version", __version__)))

    @property
    def warnings(self) -> list[str]:
        """What a reader of the numbers should know."""
        warnings = [f"{system.system}: {warning}" for system in self.systems for warning in system.warnings]
        warnings += [str(finding) for system in self.systems for finding in system.findings]
        return warnings + [
            f"{side}: {warning}" for side, ranking in self.ranking.items() for warning in ranking.warnings
        ]

    def header(self) -> Record:
        counts = {"segments": len(self.gold), "systems": len(self.systems)}
        return Header(self.kind, {"words": str(self.signature)}, name=self.gold.name, counts=counts).object()

    def records(self) -> Iterator[Record]:
        yield from self._systems()
        yield from ({"kind": "words", "block": name, name: block} for name, block in self._blocks().items())

    def document(self) -> object:
        records = list(self._systems())
        whole = records[0] if len(records) == 1 else {"schema_version": 1, "kind": "words", "records": records}
        return {**whole, **self._blocks()}

    def _systems(self) -> Iterator[dict[str, object]]:
        facts = {"schema_version": 1, "kind": "words", "signature": str(self.signature), "gold": self.gold.name}
        for system in self.systems:
            yield {**facts, **system.record(tie_interval=self.settings.tie_interval)}

    def _blocks(self) -> dict[str, object]:
        blocks: dict[str, object] = {}
        if self.ranking:
            blocks["ranking"] = {side: ranking.record() for side, ranking in self.ranking.items()}
        return blocks | ({} if self.annotators is None else {"annotators": self.annotators.record()})

    def segments(self) -> "WordSegments":
        """Return the numbers of every sentence."""
        return WordSegments(self)

    def tables(self, *, long: bool = False) -> list[Table]:
        if long:
            return [self._sides(long=True)]
        faithful = {system.system: system.faithfulness for system in self.systems if system.faithfulness is not None}
        gains = [gain_table("system", faithful)] if faithful else []
        return [self._sides(long=False), *gains, *(ranking.table(side) for side, ranking in self.ranking.items())]

    def _sides(self, *, long: bool) -> Table:
        """Return systems x sides with their numbers; annotators, as the ceiling, stand above the systems."""
        names = [*MEASURES] if long else [*_SHOWN.values()]
        columns = ["system", "side", "n", "n_eval", *names]
        if long:
            columns += ["recall_at_k_legacy", "ties", *(f"{name}_{end}" for name in names for end in ("low", "high"))]
        columns += ["pearson", "spearman"]
        decided = any(system.decisions is not None for system in self.systems)
        columns += ["threshold", *_DECIDED] if decided else []
        columns += ["stability"] if any(system.stability is not None for system in self.systems) else []
        rows: list[tuple[Cell, ...]] = []
        best: set[tuple[int, str]] = set()
        for system in (*(() if self.annotators is None else self.annotators.ceiling), *self.systems):
            for side in system.sides:
                cells = system.cells(side)
                if side in self.ranking and not long:
                    groups = self.ranking[side].best
                    best |= {(len(rows), _SHOWN[name]) for name in groups if system.system in groups[name]}
                rows.append(tuple(cells.get(column) for column in columns))
        directed = dict.fromkeys((*names, *(("mcc",) if decided else ())), True)
        return Table(tuple(columns), tuple(rows), directed, frozenset(best), () if long else tuple(self._notes()))

    def _notes(self) -> Iterator[str]:
        baselines = [system.system for system in self.systems if system.baseline]
        if baselines:
            yield f"baselines: {', '.join(baselines)}"
        yield from () if self.annotators is None else self.annotators.notes()
        for side in dict.fromkeys(side for system in self.systems for side in system.sides):
            result = next((result for system in self.systems if (result := system.sides.get(side)) is not None), None)
            if result is not None:
                left = ", ".join(f"{count} {reason}" for reason, count in result.dropped.items() if count)
                yield f"{side}: {result.n_eval} of {result.n} sentences judged; left out: {left or 'none'}"


@dataclass(frozen=True, eq=False, repr=False)
class WordSegments(Result):
    """The numbers of every sentence."""

    whole: WordsResult
    kind: ClassVar[Kind] = "words"

    def header(self) -> Record:
        return self.whole.header()

    def records(self) -> Iterator[Record]:
        names = self.whole.gold.names()
        for system in self.whole.systems:
            for side, result in system.sides.items():
                if result is not None:
                    facts = {"system": system.system, "side": side}
                    yield from ({"id": name, **facts, **result.segment(k)} for k, name in enumerate(names))

    def document(self) -> object:
        return {"schema_version": 1, "kind": "words", "records": list(self.records())}

    def tables(self, *, long: bool = False) -> list[Table]:
        del long
        return [Table.of(self.records(), ("id", "system", "side", "n_tokens", "n_errors", *MEASURES, "reason"))]
