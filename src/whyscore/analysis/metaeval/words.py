"""Are the word scores right? Submissions and explainers judged against the words that people marked.

1. Gold is a folder of a shared task, or a data set with error spans or tags (`annotators.gold_of`).
2. Systems are submissions, explainers asked about the same texts, and baselines. Importance points the other way than
   error scores, so it is turned once, here. Words stand between blanks (U+0020): the texts of the shared tasks are
   split already, and their tags count these words.
3. Gold and scores of a side must have as many values a sentence. Where they do not, `on_mismatch` decides: an error
   that names the lines, `skip` (left out, counted) or `truncate` (cut to the shorter, counted).
4. Per sentence AUC, AP and recall at K (`stats.words`); sentences without, or with nothing but, marked words are left
   out of the means and counted, separately for each side. Sentence scores: Pearson and Spearman over all sentences.
   A mean AUC clearly below chance is answered with a warning; nothing is turned round by itself.
5. Systems are compared on the sentences they have in common: paired tests, groups of the best, the shared task's rank,
   and on request Bradley-Terry strengths (every sentence is a match between two systems, equal values half a win each;
   after Peyrard et al., 2021).
6. Decisions: a word is BAD above a threshold that is given, or learnt on other data (the highest MCC over the scores
   there). Learnt on the very data it is judged on, every number is marked as `oracle`: nobody has that threshold before
   the answers are known.

Baselines that no explainer may lose to:

| name | score of a word |
|---|---|
| `random` | uniform in [0, 1), from the seed and the text; the sentences have such scores too |
| `length` | its characters |
| `surprisal` | how rare it is by the unigram model of the built-in encoder's subwords (`models.surprisal`) |
| `frequency` | how rare it is by word frequencies, where the language and the package `wordfreq` are there |
| `position` | its number in the sentence |
| `constant` | 0 |
| `copy` | 0 where the word occurs in the other text, else 1 |
| `logprob` | minus its log-probability under the system that wrote it, where a file holds these |

`chance` is no draw but the mean over all orders, so that it has no error: the exact zero line. Explainers whose AUC is
below `length`, `surprisal` or `frequency` are told so (`below-control`): these know nothing of the translation.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import cast

import numpy as np

from whyscore.analysis.common import MetricLike, Segments, as_metric, as_segments, requested_name, with_languages
from whyscore.analysis.explain import explain
from whyscore.analysis.metaeval.faithfulness import faithfulness, stability
from whyscore.analysis.metaeval.result import (
    Decision,
    SentenceResult,
    SideRanking,
    SideResult,
    SystemResult,
    WordsResult,
)
from whyscore.analysis.metaeval.settings import MetaevalWordsSettings, Pool
from whyscore.data.files import read_lines
from whyscore.data.formats.eval4nlp import EOS, SIDES, SPLITTER, Gold, GoldSide, Judged, Scored, Submission, join_id
from whyscore.data.formats.word_lines import score_lines
from whyscore.data.naming import few, refuse_twice
from whyscore.data.records import StoredExplanations
from whyscore.errors import DataError, MissingInput, SpecError, UserError
from whyscore.explainers.logprob import LogProb
from whyscore.metrics.controls import random_score
from whyscore.models.surprisal import frequency_problem, frequency_surprisal, piece_surprisal
from whyscore.protocols import Explainer
from whyscore.scoring.stack import LOCAL, Resources
from whyscore.settings import takes
from whyscore.stats.coefficients import pearson, spearman
from whyscore.stats.correction import correct_p
from whyscore.stats.resampling import content_order
from whyscore.stats.systems import bradley_terry
from whyscore.stats.words import (
    MEASURES,
    Agreement,
    Gaps,
    Measure,
    Ragged,
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
from whyscore.types import (
    HYPOTHESIS,
    Estimate,
    ExplanationRecord,
    Finding,
    FloatMatrix,
    FloatVector,
    Inputs,
    Segment,
    Side,
    Words,
)

CONTROLS = ("length", "surprisal", "frequency")
BELOW = "below-control"


def control_scores(name: str, words: Words, language: str | None = None) -> FloatVector | None:
    """Return the error score of each word; None where the control needs word frequencies that are not there."""
    if name == "length":
        return np.array([float(len(word)) for word in words])
    if name == "surprisal":
        return piece_surprisal(words)
    return None if frequency_problem(language) is not None else frequency_surprisal(words, str(language))


def below_control(who: str, auc: float, controls: Mapping[str, float]) -> Finding | None:
    """Return the finding about word scores whose AUC is below that of the best control; None where it is not."""
    name = max(controls, key=controls.__getitem__, default=None)
    if name is None or not auc < controls[name]:
        return None
    what = {"length": "the length", "surprisal": "the surprisal", "frequency": "the frequency"}[name]
    message = f"AUC {auc:.3f} is below that of {what} of the word alone ({controls[name]:.3f}): do not rely on it"
    return Finding(BELOW, f"{who}: {message}")


BASELINES = ("random", *CONTROLS, "position", "constant", "copy")
_NO_SCORES = np.zeros(0)
_SHOWN_LINES = 20
_SMALLEST_P = 0.0001
_JUDGED: dict[Side, Judged] = {Side.HYPOTHESIS: "target", Side.SOURCE: "source"}


@takes(MetaevalWordsSettings)
def metaevaluate_words(
    gold: Gold,
    submissions: Sequence[Submission] = (),
    *,
    segments: Sequence[Segment] = (),
    metrics: Sequence[str] = (),
    explainers: Sequence[str] = ("erasure",),
    tuning: tuple[Gold, Sequence[Submission]] | None = None,
    settings: MetaevalWordsSettings,
    resources: Resources = LOCAL,
) -> WordsResult:
    """Return how well submissions and explainers find the words that people marked.

    Args:
        gold: what people marked.
        submissions: error scores, higher where a word is more likely wrong.
        segments: the texts of the gold, for explainers.
        metrics: each is explained by each of the explainers.
        explainers: judged like submissions, where there are metrics.
        tuning: other gold, and the submissions of the same systems to it: thresholds are learnt there.
        settings: how they are judged and compared.
        resources: store, executor and progress.
    """
    if sum([settings.threshold is not None, tuning is not None, settings.oracle_threshold]) > 1:
        raise UserError("one threshold is enough: give --threshold, --tune-on or --oracle-threshold")
    _check_explained(metrics, segments, settings)
    pairs = [(metric, explainer) for metric in metrics for explainer in explainers]
    explained = [
        explained_submission(segments, *pair, languages=gold.languages, seed=settings.seed, resources=resources)
        for pair in pairs
    ]
    candidates = [*submissions, *explained]
    refuse_twice([submission.name for submission in candidates])
    if settings.gaps:
        gold, candidates = without_gap_tags(gold, candidates, settings.gaps)
    systems = [judge(gold, submission, settings) for submission in _flip(candidates, settings.flip)]
    first = len(submissions)
    systems[first:] = _with_trust(systems[first:], gold.target, pairs, segments, settings=settings, resources=resources)
    if settings.logprobs is not None:
        systems.append(judge(gold, logprob(settings.logprobs, gold, settings.pool), settings, baseline=True))
    systems = _with_baselines(systems, gold, settings, explained=bool(metrics))
    if not systems:
        raise DataError("there is nothing to judge: give submissions, explainers or baselines")
    refuse_twice([system.system for system in systems])
    ranking = _rank_sides(gold, systems, settings) if settings.compares else {}
    return WordsResult(gold, tuple(_with_decisions(systems, tuning, settings)), settings, ranking)


def _check_explained(metrics: Sequence[str], segments: Sequence[Segment], settings: MetaevalWordsSettings) -> None:
    if (settings.faithfulness or settings.seeds) and not metrics:
        raise UserError("--faithfulness and --seeds need explainers: name a metric with -m and explainers with -e")
    if metrics and not segments:
        raise UserError("explainers need the texts: give a gold folder that has them, or -t, -s and -r")


def _with_baselines(
    systems: Sequence[SystemResult], gold: Gold, settings: MetaevalWordsSettings, *, explained: bool
) -> list[SystemResult]:
    """Return the systems with findings about those below a control, and the baselines where they are asked for."""
    if settings.baselines:
        taken = {system.system for system in systems}
        baselines = [chance_result(gold, settings)]
        baselines += [
            judge(gold, submission, settings, baseline=True) for submission in _baselines(gold, settings.seed)
        ]
        named = [
            replace(result, system=f"{result.system} (baseline)") if result.system in taken else result
            for result in baselines
        ]
        return [*_with_findings(systems, baselines), *named]
    if explained and gold.target.words is not None:
        controls = [
            judge(gold, submission, settings, baseline=True) for submission in _baselines(gold, settings.seed, CONTROLS)
        ]
        return _with_findings(systems, controls)
    return list(systems)


def _with_findings(systems: Sequence[SystemResult], baselines: Sequence[SystemResult]) -> list[SystemResult]:
    """Return the judged systems, with a finding for each side on which a control has a higher AUC."""
    controls = [baseline for baseline in baselines if baseline.system in CONTROLS]
    return [
        system if system.baseline else replace(system, findings=tuple(_findings(system, controls)))
        for system in systems
    ]


def _findings(system: SystemResult, controls: Sequence[SystemResult]) -> Iterator[Finding]:
    for side, result in system.sides.items():
        aucs = {
            control.system: other.mean("auc") for control in controls if (other := control.sides.get(side)) is not None
        }
        finding = None if result is None else below_control(f"{system.system}, {side}", result.mean("auc"), aucs)
        if finding is not None:
            yield finding


def _with_trust(
    systems: Sequence[SystemResult],
    gold: GoldSide,
    pairs: Sequence[tuple[str, str]],
    segments: Sequence[Segment],
    *,
    settings: MetaevalWordsSettings,
    resources: Resources,
) -> list[SystemResult]:
    """Return judged explainers with their faithfulness and stability, where that is asked for."""
    shared = {"unit": SPLITTER, "seed": settings.seed, "resources": resources}
    by_pair = dict(zip(pairs, systems, strict=True))
    for metric in dict.fromkeys(metric for metric, _ in pairs) if settings.faithfulness else ():
        metric_pairs = [pair for pair in pairs if pair[0] == metric]
        results = faithfulness(segments, metric, [name for _, name in metric_pairs], draws=settings.draws, **shared)
        by_pair |= {
            pair: replace(by_pair[pair], faithfulness=result)
            for pair, result in zip(metric_pairs, results, strict=True)
        }
    for pair in pairs if settings.seeds else ():
        stable = stability(segments, *pair, seeds=settings.seeds, **shared)
        spread = _spread(stable.importances, gold, settings)
        by_pair[pair] = replace(by_pair[pair], stability=stable, spread=spread)
    return list(by_pair.values())


def _spread(repeats: Sequence[FloatMatrix], gold: GoldSide, settings: MetaevalWordsSettings) -> dict[Measure, float]:
    """Return the standard deviation of the measures between seeds; `repeats` holds seeds x words for each text."""
    plain = replace(settings, draws=0)
    missing = tuple(k for k, repeat in enumerate(repeats) if not repeat.shape[1])
    results = [
        judge_side(gold, Scored(Ragged.of([-repeat[seed] for repeat in repeats]), f"seed {seed}", missing), plain)
        for seed in range(len(repeats[0]) if repeats else 0)
    ]
    return {measure: float(np.std([side.mean(measure) for side in results])) for measure in MEASURES}


def _with_decisions(
    systems: Sequence[SystemResult],
    tuning: tuple[Gold, Sequence[Submission]] | None,
    settings: MetaevalWordsSettings,
) -> list[SystemResult]:
    """Return the systems with decisions by the threshold that was given or learnt, where there is one."""
    if tuning is None:
        if settings.threshold is None and not settings.oracle_threshold:
            return list(systems)
        return [replace(system, decisions=decide(system, settings.threshold)) for system in systems]
    gold, submissions = tuning
    places = [k for k, system in enumerate(systems) if not system.baseline]
    if len(submissions) != len(places):
        raise SpecError(
            f"{len(submissions)} submissions to learn thresholds from for {len(places)} systems: one for each"
        )
    decided = list(systems)
    for k, submission in zip(places, submissions, strict=True):
        decided[k] = replace(systems[k], decisions=decide(systems[k], thresholds(judge(gold, submission, settings))))
    return decided


def judge(
    gold: Gold, submission: Submission, settings: MetaevalWordsSettings, *, baseline: bool = False
) -> SystemResult:
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
        sides[side] = result = judge_side(gold_side, scored, settings)
        warnings.extend(_warnings(result, side, baseline=baseline))
    return SystemResult(submission.name, sides, _sentence(gold, submission), tuple(warnings), baseline=baseline)


def judge_side(gold: GoldSide, scored: Scored, settings: MetaevalWordsSettings) -> SideResult:
    """Return the numbers of one side of a submission."""
    tags, scores = select_tags(gold, settings), scored.scores
    if len(tags) != len(scores):
        raise DataError(f"{scored.file} has {len(scores)} lines, {gold.file} has {len(tags)}: line counts must match")
    if settings.drop_eos:
        scores = _without_eos(gold, scores)
    if scored.missing:
        there = tags.lengths.copy()
        there[list(scored.missing)] = 0
        tags, scores = tags.cut(there), scores.cut(there)
    wrong = tags.lengths != scores.lengths
    if wrong.any() and settings.on_mismatch == "error":
        raise _mismatch(gold, scored, np.flatnonzero(wrong).tolist())
    if settings.on_mismatch == "skip" and wrong.any():
        nothing = np.where(wrong, 0, tags.lengths)
        tags, scores = tags.cut(nothing), scores.cut(nothing)
    else:
        tags, scores = tags.cut(scores.lengths), scores.cut(tags.lengths)
    result = side_result(agree(tags, scores, settings.ties), settings)
    cut = settings.on_mismatch == "truncate"
    return replace(result, mismatch=int(wrong.sum()), cut=cut, missing=len(scored.missing), tags=tags, scores=scores)


def select_tags(gold: GoldSide, settings: MetaevalWordsSettings) -> Ragged:
    """Return the tags that count, without those of `<EOS>` where that is wanted."""
    return _without_eos(gold, gold.tags) if settings.drop_eos else gold.tags


def side_result(values: Agreement, settings: MetaevalWordsSettings) -> SideResult:
    """Return per-sentence values with their means and intervals."""
    rows = np.stack([values.of(measure) for measure in MEASURES])
    estimates = mean_estimates(rows, draws=settings.draws, seed=settings.seed)
    return SideResult(values, dict(zip(MEASURES, estimates, strict=True)))


def _without_eos(gold: GoldSide, values: Ragged) -> Ragged:
    """Return the values without those of a last word `<EOS>`."""
    if gold.words is None:
        raise DataError(f"{gold.file} has no words: --drop-eos cannot tell which lines end in {EOS}")
    last = [words.text[slice(*words.spans[-1])] if len(words) else "" for words in gold.words]
    ends = np.array([word == EOS for word in last])
    return values.cut(np.maximum(values.lengths - ends, 0))


def _mismatch(gold: GoldSide, scored: Scored, rows: Sequence[int]) -> DataError:
    lines = [f"line {k + 1} has {scored.scores.lengths[k]} scores for {gold.tags.lengths[k]} tags" for k in rows]
    return DataError(
        f"{len(rows)} of {len(gold.tags)} lines do not match {gold.file}: {few(lines, limit=_SHOWN_LINES)}. Fix them, "
        "or pass --on-mismatch skip or truncate",
        file=scored.file,
        line=rows[0] + 1,
    )


def _warnings(result: SideResult, side: Judged, *, baseline: bool) -> list[str]:
    if not result.n_eval:
        return [f"{side}: no sentence has both marked and unmarked words, so there is nothing to judge"]
    guard = orientation(result.values.auc[~np.isnan(result.values.auc)])
    warnings = []
    if guard.fires and not baseline:
        p = f"p = {guard.p:.4f}".replace("0.", ".") if guard.p >= _SMALLEST_P else "p < .0001"
        shown = f"{guard.mean:.4f}".replace("0.", ".", 1)
        message = f"AUC {shown} is below chance ({p}): are the scores error scores? --flip reverses them"
        warnings.append(f"{side}: {message}")
    if result.missing:
        warnings.append(f"{side}: {result.missing} of {len(result.values.auc)} sentences have no word scores: left out")
    if result.mismatch:
        done = "cut to the shorter" if result.cut else "left out"
        warnings.append(f"{side}: {result.mismatch} sentences with a wrong number of scores were {done}")
    return warnings


def _sentence(gold: Gold, submission: Submission) -> SentenceResult | None:
    if gold.sentence is None or submission.sentence is None:
        return None
    if len(gold.sentence) != len(submission.sentence):
        raise DataError(
            f"{submission.sentence_file} has {len(submission.sentence)} lines, {gold.name} has {len(gold)}: "
            "line counts must match"
        )
    predicted, human = submission.sentence, gold.sentence
    order = content_order(np.stack([predicted, human], axis=1))  # sums in another order differ in the last digit
    predicted, human = predicted[order], human[order]
    return SentenceResult(
        int((~np.isnan(predicted + human)).sum()), float(pearson(predicted, human)), float(spearman(predicted, human))
    )


def chance_result(gold: Gold, settings: MetaevalWordsSettings) -> SystemResult:
    """Return what random scores reach on average."""
    sides = {
        side: side_result(chance(select_tags(gold_side, settings)), settings)
        for side in SIDES
        if (gold_side := gold.side(side)) is not None
    }
    return SystemResult("chance", sides, baseline=True)


def baseline(name: str, gold: Gold, seed: int = 0) -> Submission:
    """Return a baseline's scores for every side whose words are known."""
    sides: dict[Judged, Scored] = {}
    for side in SIDES:
        gold_side = gold.side(side)
        if gold_side is None or gold_side.words is None:
            continue
        other = gold.words("source" if side == "target" else "target")
        language = None if gold.languages is None else gold.languages[1 if side == "target" else 0]
        if (name == "copy" and other is None) or (name == "frequency" and frequency_problem(language) is not None):
            continue
        rows = _rows(name, gold_side.words, other, seed, language)
        sides[side] = Scored(Ragged.of(rows), f"{name} of {gold_side.file}")
    if not sides:
        raise DataError(f"{gold.name} has no words: the baseline {name!r} needs them")
    sentence = None
    if name == "random" and gold.target.words is not None:
        sentence = np.array([random_score(segment.hypothesis, segment.source, seed) for segment in segments_of(gold)])
    return Submission(name, sides, sentence, name)


def logprob(path: str | Path, gold: Gold, pool: Pool = "min") -> Submission:
    """Return minus the log-probability of each word of the target, and the mean log-probability per sentence."""
    if gold.target.words is None:
        raise DataError(f"{gold.name} has no words: log-probabilities are matched by text")
    words = list(gold.target.words)
    explained = LogProb(str(path), pool).word_scores([Segment(line.text) for line in words], HYPOTHESIS, words)
    scores = Scored(Ragged.of([-explanation.importance for explanation in explained]), str(path))
    return Submission(f"logprob({pool})", {"target": scores}, _mean_logprob(Path(path), len(gold)), str(path))


def _rows(
    name: str, texts: Sequence[Words], other: Sequence[Words] | None, seed: int, language: str | None
) -> list[FloatVector]:
    if name in CONTROLS:
        return [cast("FloatVector", control_scores(name, words, language)) for words in texts]
    if name == "copy":
        vocabularies = [set(words) for words in other or ()]
        return [np.array([float(word not in vocabularies[k]) for word in words]) for k, words in enumerate(texts)]
    scorers: dict[str, Callable[[Words], FloatVector]] = {
        "random": lambda words: generator(seed, "random", words.text).random(len(words)),
        "position": lambda words: np.arange(len(words), dtype=np.float64),
        "constant": lambda words: np.zeros(len(words)),
    }
    return [scorers[name](words) for words in texts]


def _mean_logprob(path: Path, count: int) -> FloatVector | None:
    """Return the mean log-probability of each line, the end of the text included; None where lines do not say it."""
    file = path / "word_probas"
    if not file.is_file():
        return None
    values = score_lines(read_lines(file), str(file)).values
    return values.sums() / values.lengths if len(values) == count else None


def _flip(submissions: Sequence[Submission], flip: Sequence[str] | None) -> list[Submission]:
    if flip is None:
        return list(submissions)
    names = [submission.name for submission in submissions]
    for name in flip:
        if name not in names:
            raise SpecError(f"no submission named {name!r} to flip; there are: {', '.join(names)}")
    return [_reverse(submission) if not flip or submission.name in flip else submission for submission in submissions]


def _reverse(submission: Submission) -> Submission:
    sides = {side: scored._replace(scores=scored.scores.negate()) for side, scored in submission.sides.items()}
    return replace(submission, sides=sides)


def _baselines(gold: Gold, seed: int, names: Sequence[str] = BASELINES) -> list[Submission]:
    """Return the baselines that the texts allow."""
    submissions = []
    for name in names:
        try:
            submissions.append(baseline(name, gold, seed))
        except DataError:
            if name not in ("copy", "frequency"):  # without the other text, or word frequencies, there are none
                raise
    return submissions


def _rank_sides(
    gold: Gold, systems: Sequence[SystemResult], settings: MetaevalWordsSettings
) -> dict[Judged, SideRanking]:
    if len(systems) < 2:  # noqa: PLR2004 - nobody to compare with
        raise DataError("one system cannot be ranked: give two or more, or --baselines")
    return {
        side: _rank_side(side, systems, settings)
        for side in SIDES
        if gold.side(side) is not None and any(system.sides.get(side) for system in systems)
    }


def _rank_side(side: Judged, results: Sequence[SystemResult], settings: MetaevalWordsSettings) -> SideRanking:
    there = {result.system: outcome for result in results if (outcome := result.sides.get(side)) is not None}
    names = list(there)
    common = np.logical_and.reduce([outcome.judged > 0 for outcome in there.values()])
    values: dict[Measure, FloatMatrix] = {
        measure: np.stack([getattr(outcome.values, measure)[common] for outcome in there.values()])
        for measure in MEASURES
    }
    tests = {measure: pair_tests(values[measure], settings.test or "ttest", seed=settings.seed) for measure in MEASURES}
    pairs = list(combinations(range(len(names)), 2))
    family = [tests[measure][pair].p for measure in MEASURES for pair in pairs]
    flat = iter(correct_p(settings.correct, family, settings.alpha, family=f"{side}: all pairs and measures").adjusted)
    adjusted = {measure: {pair: next(flat) for pair in pairs} for measure in MEASURES}
    best = {
        measure: tuple(
            names[k] for k in best_group(values[measure].mean(axis=1).tolist(), adjusted[measure], settings.alpha)
        )
        for measure in MEASURES
    }
    differences: dict[Measure, dict[tuple[int, int], Estimate]] = {}
    for measure in MEASURES if pairs else ():
        between = np.stack([values[measure][i] - values[measure][j] for i, j in pairs])
        estimates = mean_estimates(between, draws=settings.draws, seed=settings.seed)
        differences[measure] = dict(zip(pairs, estimates, strict=True))
    strengths, warnings = _strengths(values, names, settings) if settings.rank == "bt" and pairs else ({}, ())
    placed = {measure: _ranks(measure, side, results) for measure in MEASURES}
    return SideRanking(
        n=int(common.sum()),
        ranks={result.system: {measure: placed[measure][result.system] for measure in MEASURES} for result in results},
        mean_rank={
            result.system: sum(placed[measure][result.system] for measure in MEASURES) / 3 for result in results
        },
        best=best,
        tests={(names[i], names[j]): {measure: tests[measure][i, j] for measure in MEASURES} for i, j in pairs},
        adjusted={(names[i], names[j]): {measure: adjusted[measure][i, j] for measure in MEASURES} for i, j in pairs},
        differences={
            (names[i], names[j]): {measure: differences[measure][i, j] for measure in MEASURES} for i, j in pairs
        },
        strengths=strengths,
        warnings=warnings,
    )


def _ranks(measure: Measure, side: Judged, results: Sequence[SystemResult]) -> dict[str, float]:
    means = [outcome.mean(measure) if (outcome := result.sides.get(side)) is not None else np.nan for result in results]
    return dict(zip([result.system for result in results], ranks(np.array(means)).tolist(), strict=True))


def _strengths(
    values: Mapping[Measure, FloatMatrix], names: Sequence[str], settings: MetaevalWordsSettings
) -> tuple[dict[Measure, dict[str, Estimate]], tuple[str, ...]]:
    """Return Bradley-Terry strengths per measure, and which systems stand at the border."""
    strengths: dict[Measure, dict[str, Estimate]] = {}
    warnings = []
    for measure, matrix in values.items():
        fitted = bradley_terry(matrix, draws=settings.draws, seed=settings.seed)
        plain = [Estimate(value, n=matrix.shape[1]) for value in fitted.strengths.tolist()]
        strengths[measure] = dict(zip(names, fitted.intervals or plain, strict=True))
        never = {"wins": fitted.wins.sum(axis=1) == 0, "loses": fitted.wins.sum(axis=0) == 0}
        for what, rows in never.items():
            warnings += [
                f"{names[k]} never {what} by {measure}: its strength is not finite, so half a win was added each way"
                for k in np.flatnonzero(rows).tolist()
            ]
        if fitted.prior and not any(rows.any() for rows in never.values()):
            warnings.append(f"some systems never beat the others by {measure}: half a win was added each way")
    return strengths, tuple(warnings)


def decide(result: SystemResult, threshold: float | Mapping[Judged, float] | None = None) -> dict[Judged, Decision]:
    """Return the decisions of each side; without a threshold the best one of the judged data is taken, and marked."""
    decisions: dict[Judged, Decision] = {}
    for side, outcome in result.sides.items():
        if outcome is None or outcome.tags is None or outcome.scores is None:
            continue
        gold, scores = outcome.tags.values, outcome.scores.values
        if threshold is None:
            cutoff = best_threshold(gold, scores)
        else:
            cutoff = threshold.get(side, float("nan")) if isinstance(threshold, Mapping) else threshold
        if not np.isnan(cutoff):
            decisions[side] = Decision(cutoff, confusion(gold, scores > cutoff), oracle=threshold is None)
    return decisions


def thresholds(tuned: SystemResult) -> dict[Judged, float]:
    """Return the thresholds with the highest MCC on other data."""
    return {side: decision.threshold for side, decision in decide(tuned).items()}


def without_gap_tags(gold: Gold, submissions: Sequence[Submission], gaps: Gaps) -> tuple[Gold, list[Submission]]:
    """Return gold and scores of the words, the gaps or both, out of target sequences gap, word, gap ... of 2N + 1."""
    side = GoldSide(
        without_gaps(gold.target.tags, gaps), gold.target.file, gold.target.words if gaps == "drop" else None
    )
    plain = replace(gold, target=side)
    selected = []
    for submission in submissions:
        target = submission.sides.get("target")
        if target is None:
            raise DataError(f"{submission.name} has no scores of the target: gaps are between its words")
        # Scores of the words alone fit already where gaps are dropped.
        fits = np.array_equal(target.scores.lengths, side.tags.lengths)
        scores = target.scores if fits else without_gaps(target.scores, gaps)
        sides = {**submission.sides, "target": Scored(scores, target.file)}
        selected.append(replace(submission, sides=sides))
    return plain, selected


def explained_submission(
    segments: Segments,
    metric: MetricLike,
    explainer: str | Explainer,
    *,
    masker: str | None = None,
    languages: tuple[str, str] | None = None,
    seed: int = 0,
    resources: Resources = LOCAL,
) -> Submission:
    """Return an explainer's error scores for both sides, and the metric's scores of the sentences."""
    base, count = with_languages(as_metric(metric), languages), len(as_segments(segments))
    sides = ["hypothesis", "source"] if Inputs.SOURCE in base.inputs else ["hypothesis"]
    explained = explain(
        segments, base, explainer, sides=sides, unit=SPLITTER, masker=masker, seed=seed, resources=resources
    )
    name = f"{requested_name(metric)} {requested_name(explainer)}"
    missing = tuple(sorted(explained.failures))
    rows = {
        _JUDGED[side]: {explanation.index: explanation for explanation in explained if explanation.place.side is side}
        for side in _JUDGED
    }
    scored = {
        side: Scored(Ragged.of([row[k].error_scores if k in row else _NO_SCORES for k in range(count)]), name, missing)
        for side, row in rows.items()
        if len(row) == count - len(missing)
    }
    sentence = np.full(count, np.nan)
    for k, explanation in rows["target"].items():
        sentence[k] = explanation.score if base.higher_is_better else -explanation.score
    return Submission(name, scored, sentence, name)


def segments_of(gold: Gold) -> list[Segment]:
    """Return the texts of the gold as segments, for metrics that need no reference."""
    if gold.target.words is None:
        raise DataError(f"{gold.name} has no texts: metrics and explainers need them")
    if gold.sources is None:
        return [Segment(words.text) for words in gold.target.words]
    pairs = zip(gold.target.words, gold.sources, strict=True)
    return [Segment(target.text, source.text) for target, source in pairs]


def stored_submissions(
    stored: StoredExplanations, ids: Sequence[str], *, skip: bool = False, several: bool = False
) -> list[Submission]:
    """Return the stored explanations as submissions, one per system, metric and explainer, in the order of the ids.

    Sentences without an explanation, for example because a judge gave no usable answer, are refused unless `skip`.
    Where the ids are those of several systems, a submission has the explanations of all systems.
    """
    submissions = []
    groups = _join_systems(stored) if several else stored.groups
    for name, sides in groups.items():
        scored: dict[Judged, Scored] = {}
        for side, rows in sides.items():
            _check_ids(stored.file, name, [*rows, *(ids if skip else ())], ids)
            missing = tuple(k for k, segment in enumerate(ids) if segment not in rows)
            values = [-rows[segment].importance if segment in rows else _NO_SCORES for segment in ids]
            scored[side] = Scored(Ragged.of(values), stored.file, missing)
        target = next(iter(sides.values()))
        scores = [target[segment].score if segment in target else np.nan for segment in ids]
        complete = not any(np.isnan(target[segment].score) for segment in ids if segment in target)
        submissions.append(Submission(name, scored, np.array(scores) if complete else None, stored.file))
    if not submissions:
        raise MissingInput(f"{stored.file} holds no explanations of hypotheses or sources")
    return submissions


def _join_systems(stored: StoredExplanations) -> dict[str, dict[Judged, dict[str, ExplanationRecord]]]:
    """Return the explanations of all systems by metric and explainer, with ids that name the system."""
    joined: dict[str, dict[Judged, dict[str, ExplanationRecord]]] = {}
    for sides in stored.groups.values():
        for side, rows in sides.items():
            for row in rows.values():
                texts = joined.setdefault(f"{row.metric} {row.explainer}", {}).setdefault(side, {})
                texts[join_id(row.system, row.id)] = row
    return joined


def _check_ids(file: str, name: str, explained: Sequence[str], ids: Sequence[str]) -> None:
    strange = sorted(set(explained) - set(ids))
    missing = sorted(set(ids) - set(explained))
    if strange or missing:
        faults = [f"not in the gold: {few(strange)}"] if strange else []
        faults += [f"without an explanation: {few(missing)} (--on-mismatch skip leaves them out)"] if missing else []
        raise DataError(f"the ids of {name} and of the gold do not match; {'; '.join(faults)}", file=file)
