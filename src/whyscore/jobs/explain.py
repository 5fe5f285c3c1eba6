"""The explain engine: for every text of every segment, which words made the score.

1. Cut every text into words; score every segment once, whole.
2. In each round the explainer plans masks for each text, the masker turns them into probes, and the metric is asked
   once about all probes of all texts.
3. The explainer reads the importance of each word off the scores.

Windows bound the memory: texts are taken together until their probes fill a window. Random numbers come from (seed,
text, round), so that order, windows, batches and processes cannot change a digit.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from whyscore.errors import ContractError, SpecError
from whyscore.jobs.common import LOCAL, MetricLike, Resources, Segments, as_segments
from whyscore.jobs.languages import languages_of, spoken
from whyscore.jobs.mask_checks import check_mask
from whyscore.jobs.probing import (
    WINDOW,
    Plan,
    Task,
    ask,
    make_plan,
    per_mask,
    probed,
    scored,
    sides_of,
    tasks_of,
    windows,
)
from whyscore.models.attribution.interface import LooksInside
from whyscore.protocols import Explainer, Masker, Metric, Splitter, WordScorer
from whyscore.registry import spec_of
from whyscore.scoring.rows import oriented
from whyscore.scoring.stack import Cost, require
from whyscore.scoring.stack import cost as score_cost
from whyscore.types import (
    HYPOTHESIS,
    Evidence,
    Explanation,
    Explanations,
    Fit,
    FloatVector,
    Segment,
    Side,
    Signature,
    WordScores,
)

_LONG_TEXT = 250  # words from which sampled explanations of single words are thin
_LONG_UNIT = 30  # characters a unit has on average where white space does not separate words


class Unexplained(ContractError):
    """Some segments could not be explained; `explanations` holds all the others."""

    def __init__(self, message: str, explanations: Explanations) -> None:
        """Keep what was explained."""
        super().__init__(message)
        self.explanations = explanations


def explain(
    segments: Segments,
    metric: MetricLike,
    explainer: str | Explainer = "erasure",
    *,
    sides: Sequence[str | Side] | None = None,
    unit: str | Splitter = "word",
    masker: str | Masker | None = None,
    seed: int = 0,
    repeat: int = 1,
    resources: Resources = LOCAL,
    window: int = WINDOW,
) -> Explanations:
    """Return one explanation per segment and place: hypothesis, source and references, as far as the metric reads them.

    Args:
        segments: What to explain.
        metric: A spec, a metric, or any function of segments.
        explainer: A spec or an explainer.
        sides: Only these sides; all that the metric reads if None.
        unit: What is hidden at a time: word, char, auto, sentence, chunk(k), unicode.
        masker: What a hidden word becomes; the explainer's own choice if None.
        seed: Fixes every random number.
        repeat: Explain with this many seeds, and keep how well the repeats agree as `stability`.
        resources: Store, executor and progress.
        window: How many probes are held at a time.

    >>> print(explain([Segment("a cat", references=("a dog",))], "token_f1", sides=["hypothesis"])[0])
    [a +0.50] [cat -0.17]
    """
    plan = make_plan(metric, explainer, unit=unit, masker=masker, seed=seed, repeat=repeat, window=window)
    metric = spoken(plan.metric.metric, languages_of(segments))
    plan = replace(plan, metric=oriented(resources.prepare(metric)))
    given = as_segments(segments)
    asked = [segment.only(plan.metric.inputs) for segment in given]
    require(plan.metric.metric, asked)
    check_mask(metric, plan.masker, asked)
    by = _by_probes if isinstance(plan.explainer, Explainer) else _by_words
    results, failures = by(plan, asked, sides_of(sides))
    whole = Explanations(replace(one, segment=given[one.index]) for one in results)
    if failures:
        raise Unexplained(_told(failures, len(given)), whole)
    return whole


def cost(
    segments: Segments,
    metric: MetricLike,
    explainer: str | Explainer = "erasure",
    *,
    sides: Sequence[str | Side] | None = None,
    resources: Resources = LOCAL,
    **options: object,
) -> Cost:
    """Return how many texts an explanation would score, how many differ, and how many the store already holds.

    Exact for explainers with one round; for the others the later rounds are counted at their largest.
    """
    plan = make_plan(metric, explainer, **options)  # type: ignore[arg-type]
    asked = [segment.only(plan.metric.inputs) for segment in as_segments(segments)]
    base = spoken(plan.metric.metric, languages_of(segments))
    if not isinstance(plan.explainer, Explainer):
        return score_cost(base, asked, resources.store)
    total, distinct, stored = score_cost(base, asked, resources.store)
    for window in windows(plan, tasks_of(plan, asked, sides_of(sides))):
        known = [Evidence.whole(task.words, np.nan, task.seed) for task in window]
        masks, probes = ask(plan, window, known, 0)
        first = score_cost(base, list(probed(asked, window, probes)), resources.store)
        later = sum(plan.explainer.cost(len(task.words)) - len(rows) for task, rows in zip(window, masks, strict=True))
        total, distinct, stored = total + first.asked + later, distinct + first.distinct + later, stored + first.stored
    return Cost(total, distinct, stored)


Results = tuple[list[Explanation], dict[int, str]]


def _by_probes(plan: Plan, segments: Sequence[Segment], sides: frozenset[Side]) -> Results:
    """Return the explanations, and why segments are missing among them."""
    whole, failures = scored(plan, segments)
    results: list[Explanation] = []
    for window in windows(plan, tasks_of(plan, segments, sides)):
        tasks = [task for task in window if task.segment not in failures]
        results += _explained(plan, segments, tasks, whole, failures)
    return [one for one in results if one.index not in failures], failures


def _explained(
    plan: Plan, segments: Sequence[Segment], window: list[Task], whole: FloatVector, failures: dict[int, str]
) -> list[Explanation]:
    """Return the explanations of one window; segments with a failing probe are added to `failures` and left out."""
    explainer = cast("Explainer", plan.explainer)
    known = [Evidence.whole(task.words, whole[task.segment], task.seed) for task in window]
    counts = [1] * len(window)
    for number in range(explainer.rounds):
        masks, probes = ask(plan, window, known, number)
        if not any(map(len, masks)):
            break
        values, failed = scored(plan, list(probed(segments, window, probes)))
        start = 0
        for i, (rows, texts) in enumerate(zip(masks, probes, strict=True)):
            part = values[start : start + len(texts.texts)]
            for k in range(start, start + len(texts.texts)) if failed else ():
                if k in failed:
                    failures.setdefault(window[i].segment, failed[k])
            start += len(texts.texts)
            counts[i] += len(texts.texts)
            known[i] = known[i].extend(rows, per_mask(texts, part, len(rows)))
    signature = plan.signature()
    fitted = [
        (task, evidence, explainer.fit(evidence), count)
        for task, evidence, count in zip(window, known, counts, strict=True)
        if task.segment not in failures
    ]
    groups = [fitted[i : i + plan.repeat] for i in range(0, len(fitted), plan.repeat)]
    return [_explanation(plan, segments, group, signature) for group in groups]


Fitted = tuple[Task, Evidence, Fit, int]


def _explanation(plan: Plan, segments: Sequence[Segment], group: list[Fitted], signature: Signature) -> Explanation:
    """Return the explanation of one text from its repeats: the first one's numbers, and how well all agree."""
    task, evidence, fit, _ = group[0]
    if fit.importance.shape != (len(task.words),):
        shape = fit.importance.shape
        raise ContractError(f"{spec_of(plan.explainer)} gave {shape} importances for {len(task.words)} words")
    return Explanation(
        segment=segments[task.segment],
        place=task.place,
        words=task.words,
        importance=fit.importance,
        score=plan.metric.sign * float(evidence.scores[0]),
        probes=sum(count for *_, count in group),
        signature=signature,
        fit=fit.quality,
        method=fit.method,
        flags=tuple(dict.fromkeys((*fit.flags, *_flags(plan, task, evidence)))),
        spread=fit.spread,
        stability=agreement([fit.importance for _, _, fit, _ in group]) if len(group) > 1 else None,
        index=task.segment,
    )


def agreement(repeats: Sequence[FloatVector]) -> float | None:
    """Return the mean Pearson correlation between repeats of one explanation; None where one of them is constant."""
    if len(repeats[0]) < 2 or any(np.ptp(values) == 0 for values in repeats):  # noqa: PLR2004 - no line through one point
        return None
    correlations = np.asarray(np.corrcoef(np.vstack(repeats)))
    return float(correlations[np.triu_indices(len(repeats), 1)].mean())


def _flags(plan: Plan, task: Task, evidence: Evidence) -> Iterator[str]:
    """Yield what a reader should know before believing the numbers."""
    if len(evidence.scores) > 1 and np.ptp(evidence.scores) == 0:
        yield "constant"
    token = getattr(plan.masker, "token", None)
    if token is not None and token in task.words.text:
        yield "mask string in text"
    if len(task.words) and len(task.words.text) / len(task.words) > _LONG_UNIT and spec_of(plan.splitter) == "word":
        yield "long units: try unit auto"
    if len(task.words) > _LONG_TEXT and spec_of(plan.splitter) == "word":
        yield "long text: try unit sentence"


def _by_words(plan: Plan, segments: Sequence[Segment], sides: frozenset[Side]) -> Results:
    """Return what the metric (or the explainer) says of each word without any probe."""
    scorer, signature = _word_scorer(plan), plan.signature()
    whole, failures = scored(plan, segments)
    tasks = [task for task in tasks_of(replace(plan, repeat=1), segments, sides) if task.segment not in failures]
    found: dict[Task, Explanation] = {}
    for place in dict.fromkeys(task.place for task in tasks):
        group = [task for task in tasks if task.place == place]
        try:
            answers = scorer.word_scores(
                [segments[task.segment] for task in group], place, [task.words for task in group]
            )
        except SpecError:
            # Not every metric has words to say of every text. Where no side was asked for, the others will do.
            if sides != frozenset(Side) or place == HYPOTHESIS:
                raise
            continue
        for task, answer in zip(group, answers, strict=True):
            found[task] = _answered(segments, task, answer, plan.metric.sign * float(whole[task.segment]), signature)
    return [found[task] for task in tasks if task in found], failures


def _answered(
    segments: Sequence[Segment], task: Task, answer: WordScores, score: float, signature: Signature
) -> Explanation:
    return Explanation(
        segment=segments[task.segment],
        place=task.place,
        words=task.words,
        importance=answer.importance,
        score=score,
        probes=1,
        signature=signature,
        notes=answer.notes,
        index=task.segment,
    )


def _word_scorer(plan: Plan) -> WordScorer:
    if isinstance(plan.explainer, WordScorer):
        return plan.explainer
    base: Metric = plan.metric.metric
    inner = getattr(base, "metric", base)
    if isinstance(plan.explainer, LooksInside):
        return plan.explainer.inside(inner)
    if isinstance(inner, WordScorer):
        return inner
    who = inner.signature().spec
    raise SpecError(f"{who} has no word scores of its own: explain it with erasure, lime or shap")


def _told(failures: dict[int, str], segments: int) -> str:
    first, reason = next(iter(sorted(failures.items())))
    return f"{len(failures)} of {segments} segments could not be explained; the first is segment {first}: {reason}"
