"""How metrics, word scores, error spans and explanations are judged: one settings class per analysis."""

from dataclasses import dataclass
from typing import Literal

from whyscore.analysis.compare.result import CompareSettings
from whyscore.analysis.explain import MaskingSettings
from whyscore.errors import SpecError
from whyscore.settings import Bootstrapped, Seeded, again, option
from whyscore.stats.correlation import Undefined
from whyscore.stats.intervals import Resample
from whyscore.stats.matrices import TIE_TOLERANCE, Missing, Permute
from whyscore.stats.measures import MEASURES
from whyscore.stats.spans import Averaging, Matching
from whyscore.stats.words import Gaps, Test, Ties
from whyscore.types import Side

Compat = Literal["mtme", "nlpstats"]
Correction = Literal["none", "holm", "bonferroni", "benjamini_hochberg"]
Family = Literal["group", "table"]
Mismatch = Literal["error", "skip", "truncate"]
Pool = Literal["min", "sum", "mean", "first"]
Ranking = Literal["mean", "bt"]
TESTS = ("permutation", "bootstrap", "williams")
_LONG = "permute-both"  # what the permutation test is called elsewhere


@dataclass(frozen=True, kw_only=True)
class MetaevalScoresSettings(Bootstrapped, Seeded):
    """How the agreement of metrics with human scores is measured and tested."""

    level: str | None = option(
        None,
        "system, segment, global or within_system (default: the usual one of the coefficient)",
        metavar="NAME",
        basic=True,
    )
    coefficient: str = option(
        "kendall", f"measure of agreement: kendall, {', '.join(MEASURES)}", metavar="NAME", basic=True
    )
    test: str | None = option(
        None, "test every pair of metrics and rank them in clusters", choices=(_LONG, *TESTS), basic=True
    )
    permute: Permute | None = option(
        None, "scores that a permutation swaps together (default: cell; row_xor_column with --compat nlpstats)"
    )
    correction: Correction = option("none", "correction of the p-values of a family of tests", basic=True)
    family: Family = option("table", "which tests are corrected together: those of a group, or of all groups")
    alpha: float = again(CompareSettings, "alpha")
    test_draws: int = option(9999, "resamples per test", flags=("--resamples",), least=1, metavar="N")
    early_stop: bool = option(False, "end a permutation test after a block of 1,000 where p < .02 or p > .5")
    missing: Missing = option("paired", "what to do with cells that are missing on one side")
    resample: Resample = option(
        "both", "what the bootstrap draws: systems, inputs (segments) or both, which gives the widest intervals"
    )
    undefined: Undefined = option(
        "leave_out", "leave segments without a value out of the mean, or count them as zero to penalise constants"
    )
    tie_tolerance: float = option(
        TIE_TOLERANCE, "means closer than this share of their spread are ties; 0: exact comparison", metavar="X"
    )
    epsilon: float | None = option(None, "epsilon of acc_eq, where it was fitted elsewhere", metavar="X")
    held_out: bool = option(
        False,
        "also report acc_eq with an epsilon fitted on the other half of the segments",
        flags=("--held-out-epsilon",),
    )
    compat: Compat | None = option(
        None, "numbers of mt-metrics-eval (SPA, Williams) or of nlpstats (p = c / n, its random numbers)"
    )
    with_sentinels: bool = option(
        True, "leave out the control metrics: length, copy, random, single text", flags=("--no-sentinels",)
    )
    with_humans: bool = option(False, "keep human references among the systems (named Human-* or ref-*)")
    given_length: bool = option(False, "also report the partial correlation given length")
    filters: tuple[float, ...] | None = option(
        None,
        "also judge metrics as filters that keep human scores of at least X (-1 and -4 of MQM), and as re-rankers",
        flags=("--filter", "--filters"),
        metavar="X",
    )
    average: bool = option(
        False, "also the average of SPA and tie-calibrated accuracy over all groups, ranks, and significance clusters"
    )

    def __post_init__(self) -> None:
        if self.test == _LONG:
            object.__setattr__(self, "test", "permutation")
        if self.permute is None:
            object.__setattr__(self, "permute", "row_xor_column" if self.compat == "nlpstats" else "cell")
        if self.permute == "cell" and self.compat == "nlpstats":
            raise SpecError("nlpstats has no test that swaps single cells: permute row_xor_column, systems or inputs")
        if self.coefficient != "acc_eq" and (self.epsilon is not None or self.held_out):
            raise SpecError(f"epsilon is only for acc_eq, not for {self.coefficient}: leave it out")
        if self.epsilon is not None and self.held_out:
            raise SpecError("a given epsilon is not fitted: do not set held_out")
        if self.early_stop and (self.test != "permutation" or self.coefficient == "acc_eq" or self.compat):
            raise SpecError("early_stop is only for the permutation test of coefficients, without compat: leave it out")


@dataclass(frozen=True, kw_only=True)
class MetaevalWordsSettings(Bootstrapped, Seeded):
    """How word scores are judged against the words that people marked, and compared with each other."""

    ties: Ties = option("expected", "how recall at K counts words that are tied at the cut-off")
    tie_interval: bool = option(False, "also report recall at K with ties in the worst and the best order")
    on_mismatch: Mismatch = option("error", "what to do with sentences that have a wrong number of scores")
    drop_eos: bool = option(False, "drop a final <EOS> token")
    flip: tuple[str, ...] | None = option(
        None, "reverse the scores of these submissions, or of all if none is named", const="", metavar="NAME"
    )
    gaps: Gaps | None = option(None, "gold of 2N+1 tags with gaps between words: judge words, gaps or both")
    baselines: bool = option(False, "also judge chance, random, length and other baselines", basic=True)
    logprobs: str | None = option(
        None, "log-probabilities of the translation system as an additional baseline", metavar="PATH"
    )
    pool: Pool = option("min", "how log-probabilities of subwords become those of words")
    rank: Ranking | None = option(
        None,
        "rank the systems by their mean rank (default), or with Bradley-Terry strengths (bt) beside it",
        flags=("--rank", "--ranking"),
        const="mean",
        basic=True,
    )
    test: Test | None = option(None, "significance test between systems (default: ttest)")
    correct: Literal["none", "holm", "bonferroni"] = option("none", "correction of their p-values")
    alpha: float = again(CompareSettings, "alpha")
    threshold: float | None = option(None, "words with a higher score are labelled BAD, for F1 and MCC", metavar="X")
    oracle_threshold: bool = option(False, "choose the threshold on the evaluated data (marked as an oracle)")
    faithfulness: bool = option(False, "also measure how faithful the explainers are to the metric")
    seeds: int | None = option(None, "also measure how well N seeds of the explainers agree", least=2, metavar="N")

    @property
    def compares(self) -> bool:
        """Whether systems are compared with each other."""
        return self.rank is not None or self.test is not None or self.correct != "none"

    def facts(self) -> dict[str, str]:
        """Return the choices that a signature names."""
        facts = {"ties": self.ties, "mismatch": self.on_mismatch, "eos": "dropped" if self.drop_eos else "kept"}
        facts |= {"draws": str(self.draws), "seed": str(self.seed)}
        facts["flip"] = "no" if self.flip is None else ",".join(self.flip) or "all"
        if self.compares:
            facts |= {"rank": self.rank or "mean", "test": self.test or "ttest", "correct": self.correct}
            facts["alpha"] = repr(self.alpha)
        return facts


@dataclass(frozen=True, kw_only=True)
class MetaevalSpansSettings:
    """How predicted error spans are judged."""

    severity: bool = option(False, "exact matches must also agree in severity", basic=True)
    matching: Matching = option("optimal", "how spans that overlap partly are paired: for the best F, or greedily")
    average: Averaging = option("micro", "micro: over all spans; macro: mean over segments")


@dataclass(frozen=True, kw_only=True)
class ProbeSettings(MaskingSettings):
    """Which words are masked, and how."""

    sides: tuple[str, ...] | None = option(
        ("hypothesis",),
        "texts whose words are masked (default: hypothesis)",
        flags=("--side", "--sides"),
        choices=tuple(Side),
    )


@dataclass(frozen=True, kw_only=True)
class StabilitySettings(ProbeSettings):
    """How often an explainer is repeated."""

    seeds: int = option(5, "number of seeds to compare", least=2, metavar="N")


@dataclass(frozen=True, kw_only=True)
class FaithfulnessSettings(Bootstrapped, ProbeSettings):
    """How words are masked in the order of an explanation."""

    shares: tuple[float, ...] = option(
        (0.05, 0.1, 0.2, 0.5),
        "shares of the words that are masked (default: 0.05 0.1 0.2 0.5)",
        most=1,
        metavar="Q",
    )
    orders: int = option(20, "random orders per text that gains are measured against", least=1, metavar="N")
    seeds: int | None = option(None, "also measure how well N seeds agree", least=2, metavar="N", basic=True)
    until_stable: float | None = option(
        None,
        "first double the budget of each explainer until two halves of its probes agree by R",
        least=-1,
        most=1,
        metavar="R",
    )

    def __post_init__(self) -> None:
        if not self.shares or not all(share > 0 for share in self.shares):
            raise SpecError(f"shares are {tuple(self.shares)}, expected numbers above 0 and up to 1")
