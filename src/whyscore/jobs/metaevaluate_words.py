"""Are the word scores right? Submissions and explainers judged against the words that people marked.

1. Gold: a folder of a shared task, or a data set with error spans or tags (`words_gold`).
2. Systems: submissions that were read, explainers asked about the same texts, and baselines. Importance points the
   other way than error scores, so it is turned once, here.
3. Every system is judged the same way (`judging`), then compared on the sentences they have in common: paired tests,
   groups of the best, the shared task's rank, and on request Bradley-Terry strengths (every sentence is a match
   between two systems, equal values half a win each; after Peyrard et al., 2021).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Literal, get_args

import numpy as np

from whyscore.data.formats.eval4nlp import SIDES, Gold, Judged, Submission
from whyscore.data.naming import refuse_twice
from whyscore.errors import DataError, SpecError
from whyscore.jobs.judging import Judging, SystemResult, judge
from whyscore.jobs.word_baselines import NAMES, Pool, baseline, chance_result, logprob
from whyscore.stats.bradley_terry import bradley_terry
from whyscore.stats.correction import corrected
from whyscore.stats.words import MEASURES, Measure, PairedTest, Test, best_group, mean_estimates, pair_tests, ranks
from whyscore.types import Estimate, FloatMatrix, Signature
from whyscore.version import __version__

Ranking = Literal["mean", "bt"]
RANKINGS: tuple[Ranking, ...] = get_args(Ranking)


@dataclass(frozen=True, slots=True)
class Comparing:
    """How systems are compared with each other."""

    rank: Ranking = "mean"
    test: Test = "ttest"
    correct: str = "none"
    alpha: float = 0.05


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


@dataclass(frozen=True, eq=False)
class WordsResult:
    """All systems, and what stands behind their numbers."""

    gold: Gold
    systems: tuple[SystemResult, ...]
    signature: Signature
    ranking: Mapping[Judged, SideRanking] = field(default_factory=dict)


def metaevaluate_words(
    gold: Gold,
    submissions: Sequence[Submission],
    *,
    judging: Judging | None = None,
    comparing: Comparing | None = None,
    flip: Sequence[str] | None = None,
    baselines: bool = False,
    logprobs: str | None = None,
    pool: Pool = "min",
) -> WordsResult:
    """Return how well each submission finds the words that people marked.

    Args:
        gold: what people marked.
        submissions: error scores, higher where a word is more likely wrong.
        judging: ties, mismatches, intervals.
        comparing: compare the systems with each other.
        flip: submissions whose scores are turned round; an empty list turns all.
        baselines: judge chance, length and the other baselines too.
        logprobs: log-probabilities of the system that wrote the texts, as one more baseline.
        pool: how a word's pieces are put together for `logprobs`.
    """
    how = judging or Judging()
    given = _flipped(submissions, flip)
    results = [judge(gold, one, how) for one in given]
    if logprobs is not None:
        results.append(judge(gold, logprob(logprobs, gold, pool), how, baseline=True))
    if baselines:
        taken = {one.system for one in results}
        own = [chance_result(gold, how)]
        own += [judge(gold, one, how, baseline=True) for one in _baselines(gold, how.seed)]
        results += [replace(one, system=f"{one.system} (baseline)") if one.system in taken else one for one in own]
    if not results:
        raise DataError("there is nothing to judge: give submissions, explainers or baselines")
    refuse_twice([one.system for one in results])
    ranking = {} if comparing is None else _ranking(gold, results, comparing, how)
    return WordsResult(gold, tuple(results), _signature(gold, how, comparing, flip), ranking)


def _flipped(submissions: Sequence[Submission], flip: Sequence[str] | None) -> list[Submission]:
    if flip is None:
        return list(submissions)
    known = [one.name for one in submissions]
    for name in flip:
        if name not in known:
            raise SpecError(f"no submission named {name!r} to flip; there are: {', '.join(known)}")
    return [_turned(one) if not flip or one.name in flip else one for one in submissions]


def _turned(one: Submission) -> Submission:
    sides = {side: scored._replace(scores=scored.scores.turned()) for side, scored in one.sides.items()}
    return replace(one, sides=sides)


def _baselines(gold: Gold, seed: int) -> list[Submission]:
    """Return the baselines that the texts allow."""
    found = []
    for name in NAMES:
        try:
            found.append(baseline(name, gold, seed))
        except DataError:
            if name != "copy":  # without the other text there is nothing to copy from
                raise
    return found


def _ranking(
    gold: Gold, results: Sequence[SystemResult], how: Comparing, judging: Judging
) -> dict[Judged, SideRanking]:
    if len(results) < 2:  # noqa: PLR2004 - nobody to compare with
        raise DataError("one system cannot be ranked: give two or more, or --baselines")
    return {
        side: _side_ranking(side, results, how, judging)
        for side in SIDES
        if gold.side(side) is not None and any(one.sides.get(side) for one in results)
    }


def _side_ranking(side: Judged, results: Sequence[SystemResult], how: Comparing, judging: Judging) -> SideRanking:
    there = {one.system: found for one in results if (found := one.sides.get(side)) is not None}
    names = list(there)
    common = np.logical_and.reduce([found.judged > 0 for found in there.values()])
    values: dict[Measure, FloatMatrix] = {
        measure: np.stack([getattr(found.values, measure)[common] for found in there.values()]) for measure in MEASURES
    }
    tests = {measure: pair_tests(values[measure], how.test, seed=judging.seed) for measure in MEASURES}
    pairs = list(combinations(range(len(names)), 2))
    family = [tests[measure][pair].p for measure in MEASURES for pair in pairs]
    flat = iter(corrected(how.correct, family, how.alpha, family=f"{side}: all pairs and measures").adjusted)
    adjusted = {measure: {pair: next(flat) for pair in pairs} for measure in MEASURES}
    best = {
        measure: tuple(
            names[k] for k in best_group(values[measure].mean(axis=1).tolist(), adjusted[measure], how.alpha)
        )
        for measure in MEASURES
    }
    differences = {
        measure: mean_estimates(
            np.stack([values[measure][i] - values[measure][j] for i, j in pairs]),
            draws=judging.draws,
            seed=judging.seed,
        )
        for measure in MEASURES
        if pairs
    }
    strengths, warnings = _strengths(values, names, judging) if how.rank == "bt" and pairs else ({}, ())
    placed = {measure: _ranks(measure, side, results) for measure in MEASURES}
    return SideRanking(
        n=int(common.sum()),
        ranks={one.system: {measure: placed[measure][one.system] for measure in MEASURES} for one in results},
        mean_rank={one.system: sum(placed[measure][one.system] for measure in MEASURES) / 3 for one in results},
        best=best,
        tests={(names[i], names[j]): {measure: tests[measure][i, j] for measure in MEASURES} for i, j in pairs},
        adjusted={(names[i], names[j]): {measure: adjusted[measure][i, j] for measure in MEASURES} for i, j in pairs},
        differences={
            (names[i], names[j]): {measure: differences[measure][k] for measure in MEASURES}
            for k, (i, j) in enumerate(pairs)
        },
        strengths=strengths,
        warnings=warnings,
    )


def _ranks(measure: Measure, side: Judged, results: Sequence[SystemResult]) -> dict[str, float]:
    means = [found.mean(measure) if (found := one.sides.get(side)) is not None else np.nan for one in results]
    return dict(zip([one.system for one in results], ranks(np.array(means)).tolist(), strict=True))


def _strengths(
    values: Mapping[Measure, FloatMatrix], names: Sequence[str], judging: Judging
) -> tuple[dict[Measure, dict[str, Estimate]], tuple[str, ...]]:
    """Return Bradley-Terry strengths per measure, and which systems stand at the border."""
    strengths: dict[Measure, dict[str, Estimate]] = {}
    warnings = []
    for measure, matrix in values.items():
        found = bradley_terry(matrix, draws=judging.draws, seed=judging.seed)
        plain = [Estimate(value, n=matrix.shape[1]) for value in found.strengths.tolist()]
        strengths[measure] = dict(zip(names, found.intervals or plain, strict=True))
        never = {"wins": found.wins.sum(axis=1) == 0, "loses": found.wins.sum(axis=0) == 0}
        for what, rows in never.items():
            warnings += [
                f"{names[k]} never {what} by {measure}: its strength is at the border, half a win was added each way"
                for k in np.flatnonzero(rows).tolist()
            ]
    return strengths, tuple(warnings)


def _signature(gold: Gold, how: Judging, comparing: Comparing | None, flip: Sequence[str] | None) -> Signature:
    facts = {"gold": gold.name, "task": gold.task} | how.facts()
    facts["flip"] = "no" if flip is None else ",".join(flip) or "all"
    if comparing is not None:
        facts |= {"rank": comparing.rank, "test": comparing.test, "correct": comparing.correct}
        facts["alpha"] = repr(comparing.alpha)
    return Signature("words", (*facts.items(), ("version", __version__)))
