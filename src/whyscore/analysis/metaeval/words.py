"""Are the word scores right? Submissions and explainers judged against the words that people marked.

1. Gold: a folder of a shared task, or a data set with error spans or tags (`words_gold`).
2. Systems: submissions that were read, explainers asked about the same texts, and baselines. Importance points the
   other way than error scores, so it is turned once, here.
3. Every system is judged the same way (`judging`), then compared on the sentences they have in common: paired tests,
   groups of the best, the shared task's rank, and on request Bradley-Terry strengths (every sentence is a match
   between two systems, equal values half a win each; after Peyrard et al., 2021).

One submission of word scores judged against gold: the numbers of each side, and what was left out.

1. Gold and scores of a side must have as many values a sentence. Where they do not, `on_mismatch` decides: an error
   that names the lines, `skip` (left out, counted) or `truncate` (cut to the shorter, counted).
2. Per sentence AUC, AP and recall at K (`stats.words`); sentences without, or with nothing but, marked words are left
   out of the means and counted, separately for each side.
3. Sentence scores: Pearson and Spearman over all sentences.
4. Mean AUC clearly below chance is answered with a warning; nothing is turned round by itself.

Word scores as yes-or-no decisions: BAD above a threshold, judged over all words of the corpus.

A threshold is given, or learnt on other data (the highest MCC over the scores seen there). Learnt on the very data it
is judged on, every number is marked as `oracle`: nobody has that threshold before the answers are known.

Word scores that no explainer may lose to: chance in closed form, and scores from the bare texts.

| name | score of a word |
|---|---|
| `random` | uniform in [0, 1), from the seed and the text |
| `length` | its characters |
| `position` | its number in the sentence |
| `constant` | 0 |
| `copy` | 0 where the word occurs in the other text, else 1 |
| `logprob` | minus its log-probability under the system that wrote it, where a file holds these |

`chance` is no draw but the mean over all orders, so that it has no error: the exact zero line.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from whyscore.data.files import read_lines
from whyscore.data.formats.eval4nlp import EOS, SIDES, Gold, GoldSide, Judged, Scored, Submission
from whyscore.data.formats.word_lines import score_lines
from whyscore.data.naming import few, refuse_twice
from whyscore.errors import DataError, SpecError
from whyscore.explainers.logprob import LogProb
from whyscore.options import check_fields, check_seed
from whyscore.stats.bradley_terry import bradley_terry
from whyscore.stats.coefficients import pearson, spearman
from whyscore.stats.correction import corrected
from whyscore.stats.words import (
    MEASURES,
    Agreement,
    Confusion,
    Gaps,
    Measure,
    PairedTest,
    Ragged,
    Test,
    Ties,
    agree,
    best_group,
    best_threshold,
    chance,
    confusion,
    mean_estimates,
    orientation,
    pair_tests,
    ranks,
    without_gaps,
)
from whyscore.text.randomness import generator
from whyscore.types import HYPOTHESIS, Estimate, FloatMatrix, FloatVector, Segment, Signature, Words
from whyscore.version import __version__

Mismatch = Literal["error", "skip", "truncate"]
MISMATCHES: tuple[Mismatch, ...] = get_args(Mismatch)


@dataclass(frozen=True, slots=True)
class Judging:
    """How submissions are judged; all of it stands in the signature."""

    ties: Ties = "expected"
    on_mismatch: Mismatch = "error"
    drop_eos: bool = False
    draws: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse choices there are not."""
        check_fields(self)
        check_seed(self.seed)
        if self.draws < 0:
            raise SpecError(f"draws is {self.draws}, expected 0 or more")

    def facts(self) -> dict[str, str]:
        """Return the choices by name, for a signature."""
        eos = "dropped" if self.drop_eos else "kept"
        facts = {"ties": self.ties, "mismatch": self.on_mismatch, "eos": eos}
        return facts | {"draws": str(self.draws), "seed": str(self.seed)}


@dataclass(frozen=True, eq=False)
class SideResult:
    """A side of a submission: one number per sentence (NaN where left out), their means, and what was left out."""

    values: Agreement
    estimates: Mapping[Measure, Estimate]
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
        return float(np.nanmean(values)) if self.n_eval else float("nan")


@dataclass(frozen=True, slots=True)
class SentenceResult:
    """How sentence scores go with the gold ones."""

    n: int
    pearson: float
    spearman: float


@dataclass(frozen=True, eq=False)
class SystemResult:
    """One submission, judged."""

    system: str
    sides: Mapping[Judged, SideResult | None]
    """None where there is gold but no scores, or the other way round: `not submitted`."""
    sentence: SentenceResult | None = None
    warnings: tuple[str, ...] = ()
    baseline: bool = False


def judge(gold: Gold, submission: Submission, how: Judging, *, baseline: bool = False) -> SystemResult:
    """Return the numbers of one submission on both sides."""
    sides: dict[Judged, SideResult | None] = {}
    warnings: list[str] = []
    for side in SIDES:
        gold_side, scored = gold.side(side), submission.sides.get(side)
        if gold_side is None:
            continue
        if scored is None:
            sides[side] = None
            continue
        sides[side] = found = judge_side(gold_side, scored, how)
        warnings.extend(_warned(found, side, baseline=baseline))
    return SystemResult(submission.name, sides, _sentence(gold, submission), tuple(warnings), baseline=baseline)


def judge_side(gold: GoldSide, scored: Scored, how: Judging) -> SideResult:
    """Return the numbers of one side of a submission."""
    tags, scores = judged_tags(gold, how), scored.scores
    if len(tags) != len(scores):
        raise DataError(f"{scored.file} has {len(scores)} lines, {gold.file} has {len(tags)}: line counts must match")
    if how.drop_eos:
        scores = _without_eos(gold, scores)
    wrong = tags.lengths != scores.lengths
    if wrong.any() and how.on_mismatch == "error":
        raise _mismatch(gold, scored, np.flatnonzero(wrong).tolist())
    if how.on_mismatch == "skip" and wrong.any():
        nothing = np.where(wrong, 0, tags.lengths)
        tags, scores = tags.cut(nothing), scores.cut(nothing)
    else:
        tags, scores = tags.cut(scores.lengths), scores.cut(tags.lengths)
    values = agree(tags, scores, how.ties)
    found = side_result(values, how)
    cut = how.on_mismatch == "truncate"
    return replace(found, mismatch=int(wrong.sum()), cut=cut, tags=tags, scores=scores)


def judged_tags(gold: GoldSide, how: Judging) -> Ragged:
    """Return the tags that count, without those of `<EOS>` where that is wanted."""
    return _without_eos(gold, gold.tags) if how.drop_eos else gold.tags


def side_result(values: Agreement, how: Judging) -> SideResult:
    """Return per-sentence values with their means and intervals."""
    rows = np.stack([values.of(measure) for measure in MEASURES])
    estimates = mean_estimates(rows, draws=how.draws, seed=how.seed)
    return SideResult(values, dict(zip(MEASURES, estimates, strict=True)))


def _without_eos(gold: GoldSide, values: Ragged) -> Ragged:
    """Return the values without those of a last word `<EOS>`."""
    if gold.words is None:
        raise DataError(f"{gold.file} comes without its words: --drop-eos cannot tell which lines end in {EOS}")
    last = [own.text[slice(*own.spans[-1])] if len(own) else "" for own in gold.words]
    ends = np.array([word == EOS for word in last])
    return values.cut(np.maximum(values.lengths - ends, 0))


def _mismatch(gold: GoldSide, scored: Scored, rows: Sequence[int]) -> DataError:
    told = [f"line {k + 1} has {scored.scores.lengths[k]} scores for {gold.tags.lengths[k]} tags" for k in rows]
    return DataError(
        f"{len(rows)} of {len(gold.tags)} lines do not fit {gold.file}: {few(told, limit=20)}. Put them right, or say "
        "--on-mismatch skip or truncate",
        file=scored.file,
        line=rows[0] + 1,
    )


def _warned(found: SideResult, side: Judged, *, baseline: bool) -> list[str]:
    if not found.n_eval:
        return [f"{side}: no sentence has both marked and unmarked words, so there is nothing to judge"]
    guard = orientation(found.values.auc[~np.isnan(found.values.auc)])
    warnings = []
    if guard.fires and not baseline:
        p = f"p = {guard.p:.4f}".replace("0.", ".") if guard.p >= 0.0001 else "p < .0001"  # noqa: PLR2004 - as shown
        shown = f"{guard.mean:.4f}".replace("0.", ".", 1)
        message = f"AUC {shown} is below chance ({p}): are the scores error scores? --flip turns them round"
        warnings.append(f"{side}: {message}")
    if found.mismatch:
        done = "cut to the shorter" if found.cut else "left out"
        warnings.append(f"{side}: {found.mismatch} sentences with a wrong number of scores were {done}")
    return warnings


def _sentence(gold: Gold, submission: Submission) -> SentenceResult | None:
    if gold.sentence is None or submission.sentence is None:
        return None
    if len(gold.sentence) != len(submission.sentence):
        raise DataError(
            f"{submission.sentence_file} has {len(submission.sentence)} lines, {gold.name} has {len(gold)}: "
            "line counts must match"
        )
    one, other = submission.sentence, gold.sentence
    return SentenceResult(int((~np.isnan(one + other)).sum()), float(pearson(one, other)), float(spearman(one, other)))


Pool = Literal["min", "sum", "mean", "first"]
POOLS: tuple[Pool, ...] = get_args(Pool)
NAMES = ("random", "length", "position", "constant", "copy")


def chance_result(gold: Gold, how: Judging) -> SystemResult:
    """Return what random scores reach on average."""
    sides = {
        side: side_result(chance(judged_tags(own, how)), how) for side in SIDES if (own := gold.side(side)) is not None
    }
    return SystemResult("chance", sides, baseline=True)


def baseline(name: str, gold: Gold, seed: int = 0) -> Submission:
    """Return a baseline's scores for every side whose words are known."""
    sides: dict[Judged, Scored] = {}
    for side in SIDES:
        own = gold.side(side)
        if own is None or own.words is None:
            continue
        there = gold.words("source" if side == "target" else "target")
        if name == "copy" and there is None:
            continue
        rows = _rows(name, own.words, there, seed)
        sides[side] = Scored(Ragged.of(rows), f"{name} of {own.file}")
    if not sides:
        raise DataError(f"{gold.name} comes without its words: the baseline {name!r} needs them")
    return Submission(name, sides)


def logprob(path: str | Path, gold: Gold, pool: Pool = "min") -> Submission:
    """Return minus the log-probability of each word of the target, and the mean log-probability per sentence."""
    if gold.target.words is None:
        raise DataError(f"{gold.name} comes without its words: log-probabilities are found by them")
    words = list(gold.target.words)
    segments = [Segment(own.text) for own in words]
    found = LogProb(str(path), pool).word_scores(segments, HYPOTHESIS, words)
    scores = Scored(Ragged.of([-one.importance for one in found]), str(path))
    return Submission(f"logprob({pool})", {"target": scores}, _mean_logprob(Path(path), len(gold)), str(path))


def _rows(name: str, own: Sequence[Words], there: Sequence[Words] | None, seed: int) -> list[FloatVector]:
    if name == "copy":
        known = [set(words) for words in there or ()]
        return [np.array([float(word not in known[k]) for word in words]) for k, words in enumerate(own)]
    scorers: dict[str, Callable[[Words], FloatVector]] = {
        "random": lambda words: generator(seed, "random", words.text).random(len(words)),
        "length": lambda words: np.array([float(len(word)) for word in words]),
        "position": lambda words: np.arange(len(words), dtype=np.float64),
        "constant": lambda words: np.zeros(len(words)),
    }
    return [scorers[name](words) for words in own]


def _mean_logprob(path: Path, count: int) -> FloatVector | None:
    """Return the mean log-probability of each line, the end of the text included; None where lines do not say it."""
    file = path / "word_probas"
    if not file.is_file():
        return None
    values = score_lines(read_lines(file), str(file)).values
    return values.sums() / values.lengths if len(values) == count else None


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


@dataclass(frozen=True, slots=True)
class Decision:
    """The decisions of one side."""

    threshold: float
    counts: Confusion
    oracle: bool = False
    """The threshold was chosen on the judged data."""


def decide(result: SystemResult, threshold: float | Mapping[Judged, float] | None = None) -> dict[Judged, Decision]:
    """Return the decisions of each side; without a threshold the best one of the judged data is taken, and marked."""
    found: dict[Judged, Decision] = {}
    for side, own in result.sides.items():
        if own is None or own.tags is None or own.scores is None:
            continue
        gold, scores = own.tags.values, own.scores.values
        if threshold is None:
            chosen = best_threshold(gold, scores)
        else:
            chosen = threshold.get(side, float("nan")) if isinstance(threshold, Mapping) else threshold
        if not np.isnan(chosen):
            found[side] = Decision(chosen, confusion(gold, scores > chosen), oracle=threshold is None)
    return found


def learnt(tuned: SystemResult) -> dict[Judged, float]:
    """Return the thresholds with the highest MCC on other data."""
    return {side: one.threshold for side, one in decide(tuned).items()}


def ungapped(gold: Gold, submissions: Sequence[Submission], gaps: Gaps) -> tuple[Gold, list[Submission]]:
    """Return gold and scores of the words, the gaps or both, out of target sequences gap, word, gap ... of 2N + 1."""
    side = GoldSide(
        without_gaps(gold.target.tags, gaps), gold.target.file, gold.target.words if gaps == "drop" else None
    )
    plain = replace(gold, target=side)
    kept = []
    for one in submissions:
        target = one.sides.get("target")
        if target is None:
            raise DataError(f"{one.name} has no scores of the target: gaps are between its words")
        # Scores of the words alone fit already where gaps are dropped.
        fits = np.array_equal(target.scores.lengths, side.tags.lengths)
        scores = target.scores if fits else without_gaps(target.scores, gaps)
        sides = {**one.sides, "target": Scored(scores, target.file)}
        kept.append(replace(one, sides=sides))
    return plain, kept
