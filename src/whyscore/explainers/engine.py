"""The explain engine: for every text of every segment, which words made the score.

1. Cut every text into words; score every segment once, whole.
2. In each round the explainer plans masks for each text, the masker turns them into probes, and the metric is asked
   once about all probes of all texts.
3. The explainer reads the importance of each word off the scores.

Windows bound the memory: texts are taken together until their probes fill a window. Random numbers come from (seed,
text, round), so that order, windows, batches and processes cannot change a digit.

A mask string must reach the metric as it was written. A metric may lower-case, strip or cut texts first: `[MASK]`
becomes `[mask]`, three tokens, or nothing, and hidden words are not what the masker says. `check_mask` finds out from
scores alone, once for each metric and mask:

1. Take the first segment with words; the mask stands for its middle word, in the hypothesis and in the references.
2. Put in the hypothesis what pre-processing could make of the mask: nothing, small letters, the mask without its
   punctuation, its parts cut by spaces. Where the score stays, the metric cannot tell the two apart.
3. What another word makes of the score is the measure. There is no verdict where even that changes nothing, or where a
   space inside a word changes nothing. A plain word such as UNKWORDZ is one unknown word in small letters too.

Checks that several explainers make of their options.

The metric explains itself: matched n-grams, edits, similarities, log-probabilities.

1. Nothing is planned and nothing is fitted: these components only say whom to ask.
2. The engine asks the metric, which must be a `WordScorer`, for one score per word.

`matching` (Leiter 2021) is for metrics of similarities (bertscore, xbertscore): each word gets the similarity of its
best counterpart in the other text, which is named. `tagging` is for networks that tag words as right or wrong.
"""

import re
import string
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import numpy as np

from whyscore.errors import ContractError, MissingInput, SpecError, WhyscoreError
from whyscore.models.attribution import LooksInside
from whyscore.protocols import (
    Explainer,
    FollowsOriginal,
    HidesWords,
    Masker,
    Metric,
    Probes,
    Splitter,
    TokenMasker,
    WordScorer,
)
from whyscore.registry import build, spec_of
from whyscore.scoring.rows import Oriented, orient
from whyscore.scoring.stack import LOCAL, Prepared, Resources, require
from whyscore.settings import check_files
from whyscore.text.files import files_of
from whyscore.text.maskers import Replace
from whyscore.text.randomness import generator
from whyscore.text.splitters import WhiteSpace
from whyscore.types import (
    HYPOTHESIS,
    Evidence,
    Explanation,
    Fit,
    FloatVector,
    KeepMasks,
    Place,
    Segment,
    Side,
    Signature,
    Words,
    WordScores,
)
from whyscore.version import __version__

WINDOW = 200_000
"""Probes that are planned and held at a time."""


_LONG_TEXT = 250  # words from which sampled explanations of single words are thin
_LONG_UNIT = 30  # characters a unit has on average where white space does not separate words


class Task(NamedTuple):
    """One text to explain: which segment, which place of it, its words, and the seed of this repeat."""

    segment: int
    place: Place
    words: Words
    seed: int


@dataclass(frozen=True)
class Plan:
    """Everything that decides an explanation, besides the segments."""

    metric: Oriented
    explainer: Explainer | WordScorer | object
    masker: Masker | None
    splitter: Splitter
    seed: int = 0
    repeat: int = 1
    window: int = WINDOW

    def signature(self) -> Signature:
        base = self.metric.metric.signature()
        facts = [("metric", base.spec), ("unit", spec_of(self.splitter))]
        if self.masker is not None:
            facts.append(("masker", spec_of(self.masker)))
        files = files_of([self.explainer, self.masker])
        facts += [("files", "+".join(files.values()))] if files else []
        facts += [("seed", str(self.seed)), ("version", __version__)]
        return Signature(spec_of(self.explainer), tuple(facts), base.stable)


def make_plan(
    metric: Metric,
    explainer: str | Explainer = "erasure",
    *,
    unit: str | Splitter = "word",
    masker: str | Masker | None = None,
    seed: int = 0,
    repeat: int = 1,
    window: int = WINDOW,
) -> Plan:
    """Return the plan of an explanation, every part of it built and checked."""
    if repeat < 1:
        raise SpecError(f"repeat is {repeat}, expected 1 or more")
    explaining = build(explainer, "explainer") if isinstance(explainer, str) else explainer
    requested = build(masker, "masker") if isinstance(masker, str) else masker
    hiding = requested or (explaining.masker if isinstance(explaining, HidesWords) else None)
    check_files([explaining, hiding])
    splitter = build(unit, "splitter") if isinstance(unit, str) else unit
    if unit == "word" and isinstance(explaining, FollowsOriginal) and explaining.mode == "compat":
        splitter = WhiteSpace("space")  # as the packages that compat follows cut their texts
    plan = Plan(orient(metric), explaining, hiding, splitter, seed, repeat, window)
    if not isinstance(explaining, Explainer):
        _word_scorer(plan)  # a metric without them is refused before any work
    return plan


def sides_of(sides: Sequence[str | Side] | None) -> frozenset[Side]:
    """Return the named sides, or all; an unknown one is refused."""
    names = [side.value for side in Side]
    for side in sides or ():
        if side not in names:
            raise SpecError(f"no side named {side!r}. Known: {', '.join(names)}")
    return frozenset(Side(side) for side in sides or names)


def tasks_of(plan: Plan, segments: Sequence[Segment], sides: frozenset[Side]) -> Iterator[Task]:
    """Yield every text to explain: segment by segment, place by place, once per repeat."""
    for i, segment in enumerate(segments):
        places = [place for place in segment.places(plan.metric.inputs) if place.side in sides]
        if not places:
            reads = ", ".join(str(place) for place in segment.places(plan.metric.inputs))
            raise MissingInput(f"the metric reads {reads} of segment {i}, not {', '.join(sorted(sides))}")
        texts = [segment.text(place) for place in places]
        for place, words in zip(places, [plan.splitter.split(text) for text in texts], strict=True):
            for number in range(plan.repeat):
                yield Task(i, place, words, plan.seed + number)


def windows(plan: Plan, tasks: Iterable[Task]) -> Iterator[list[Task]]:
    """Yield tasks in groups whose probes fit a window; repeats of one text stay together."""
    explainer = cast("Explainer", plan.explainer)
    window: list[Task] = []
    total = 0
    for task in tasks:
        size = len(task.words.spans)
        probes = explainer.cost(size) if size else 0
        if window and total + probes > plan.window and task.seed == plan.seed:
            yield window
            window, total = [], 0
        window.append(task)
        total += probes
    if window:
        yield window


def ask(
    plan: Plan, window: list[Task], evidence_by_task: list[Evidence], number: int
) -> tuple[list[KeepMasks], list[Probes]]:
    """Return the masks of each text in this round, and the texts that stand for them."""
    explainer, masker = cast("Explainer", plan.explainer), plan.masker
    masks = [
        explainer.plan(evidence, generator(task.seed, task.words.text, str(number)))
        for task, evidence in zip(window, evidence_by_task, strict=True)
    ]
    if masker is None:
        if any(map(len, masks)):
            raise ContractError(f"{spec_of(explainer)} plans probes but names no masker")
        return masks, [Probes([]) for _ in masks]
    probes = masker.render([(task.words, rows) for task, rows in zip(window, masks, strict=True)])
    for rows, texts in zip(masks, probes, strict=True):
        if texts.rows is None and len(texts.texts) != len(rows):
            raise ContractError(f"{spec_of(masker)} made {len(texts.texts)} texts for {len(rows)} masks")
    return masks, probes


def probe_segments(segments: Sequence[Segment], window: Sequence[Task], probes: Sequence[Probes]) -> list[Segment]:
    """Return each probe as a segment: its text in the explained place, all else as it was."""
    return [
        segments[task.segment].with_text(task.place, text)
        for task, texts in zip(window, probes, strict=True)
        for text in texts.texts
    ]


def per_mask(probes: Probes, values: FloatVector, masks: int) -> FloatVector:
    """Return one score per mask: the only probe's, or the weighted sum over several."""
    if probes.rows is None:
        return values
    weights = np.ones(len(values)) if probes.weights is None else probes.weights
    result = np.zeros(masks)
    np.add.at(result, np.asarray(probes.rows, dtype=np.intp), weights * values)
    return result


def score_segments(plan: Plan, segments: Sequence[Segment]) -> tuple[FloatVector, dict[int, str]]:
    """Return the scores, NaN where the metric failed, and why it failed there."""
    base = plan.metric.metric
    values, failures = (base if isinstance(base, Prepared) else LOCAL.prepare(base)).attempt(segments)
    return plan.metric.sign * values, failures


def failed_segments(window: Sequence[Task], probes: Sequence[Probes], failed: Mapping[int, str]) -> dict[int, str]:
    """Return why segments have a failing probe, by their number; `failed` has the failures by the number of the probe.

    The first failure of a segment counts.
    """
    if not failed:
        return {}
    segments = [task.segment for task, texts in zip(window, probes, strict=True) for _ in texts.texts]
    return {segments[k]: failed[k] for k in sorted(failed, reverse=True)}


class Outcome(NamedTuple):
    """Explanations of all segments that could be explained, and why the others could not, by segment."""

    explanations: list[Explanation]
    failures: dict[int, str]


def explain_segments(
    plan: Plan, segments: Sequence[Segment], sides: frozenset[Side], resources: Resources = LOCAL
) -> Outcome:
    """Return one explanation per segment and place, for all segments that can be explained."""
    metric = plan.metric.metric
    plan = replace(plan, metric=orient(resources.prepare(metric)))
    read = [segment.only(metric.inputs) for segment in segments]
    require(metric, read)
    check_mask(metric, plan.masker, read)
    answer = _by_probes if isinstance(plan.explainer, Explainer) else _by_words
    return answer(plan, read, segments, sides)


def failure_message(failures: Mapping[int, str], segments: int) -> str:
    """Return how many segments could not be explained, and why the first could not."""
    first, reason = next(iter(sorted(failures.items())))
    return f"{len(failures)} of {segments} segments could not be explained; the first is segment {first}: {reason}"


def _by_probes(
    plan: Plan, segments: Sequence[Segment], whole_segments: Sequence[Segment], sides: frozenset[Side]
) -> Outcome:
    """Return the explanations, and why segments are missing among them."""
    whole, failures = score_segments(plan, segments)
    results: list[Explanation] = []
    for window in windows(plan, tasks_of(plan, segments, sides)):
        tasks = [task for task in window if task.segment not in failures]
        groups = _fit(plan, segments, tasks, whole, failures)
        signature = plan.signature()
        results += [_explanation(plan, whole_segments, group, signature) for group in groups]
    return Outcome([explanation for explanation in results if explanation.index not in failures], failures)


Fitted = tuple[Task, Evidence, Fit, int]


def _fit(
    plan: Plan, segments: Sequence[Segment], window: list[Task], whole: FloatVector, failures: dict[int, str]
) -> list[list[Fitted]]:
    """Return the fits of one window, repeats of one text together.

    Segments with a failing probe are added to `failures` and left out.
    """
    explainer = cast("Explainer", plan.explainer)
    evidence_by_task, counts = gather_evidence(plan, segments, window, whole, failures)
    fitted = [
        (task, evidence, explainer.fit(evidence), count)
        for task, evidence, count in zip(window, evidence_by_task, counts, strict=True)
        if task.segment not in failures
    ]
    return [fitted[i : i + plan.repeat] for i in range(0, len(fitted), plan.repeat)]


def gather_evidence(
    plan: Plan, segments: Sequence[Segment], window: list[Task], whole: FloatVector, failures: dict[int, str]
) -> tuple[list[Evidence], list[int]]:
    """Return what is known of each task after all rounds of probes, and how many texts that took.

    Segments with a failing probe are added to `failures`.
    """
    evidence_by_task = [Evidence.whole(task.words, whole[task.segment], task.seed) for task in window]
    counts = [1] * len(window)
    for number in range(cast("Explainer", plan.explainer).rounds):
        masks, probes = ask(plan, window, evidence_by_task, number)
        if not any(map(len, masks)):
            break
        values, failed = score_segments(plan, probe_segments(segments, window, probes))
        for segment, reason in failed_segments(window, probes, failed).items():
            failures.setdefault(segment, reason)
        start = 0
        for i, (rows, texts) in enumerate(zip(masks, probes, strict=True)):
            part = values[start : start + len(texts.texts)]
            start += len(texts.texts)
            counts[i] += len(texts.texts)
            evidence_by_task[i] = evidence_by_task[i].extend(rows, per_mask(texts, part, len(rows)))
    return evidence_by_task, counts


def _explanation(plan: Plan, segments: Sequence[Segment], group: list[Fitted], signature: Signature) -> Explanation:
    """Return the explanation of one text from its repeats: the first one's numbers, and how well all agree."""
    task, evidence, fit, _ = group[0]
    size, shape = len(task.words.spans), fit.importance.shape
    if shape != (size,):
        raise ContractError(f"{spec_of(plan.explainer)} gave {shape} importances for {size} words")
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
    if isinstance(plan.masker, TokenMasker) and plan.masker.token in task.words.text:
        yield "mask string in text"
    size = len(task.words.spans)
    if size and len(task.words.text) / size > _LONG_UNIT and spec_of(plan.splitter) == "word":
        yield "long units: try unit auto"
    if size > _LONG_TEXT and spec_of(plan.splitter) == "word":
        yield "long text: try unit sentence"


def _by_words(
    plan: Plan, segments: Sequence[Segment], whole_segments: Sequence[Segment], sides: frozenset[Side]
) -> Outcome:
    """Return what the metric, or an explainer that sees the whole segments, says of each word without any probe."""
    inputs = whole_segments if isinstance(plan.explainer, WordScorer) else segments
    scorer, signature, sign = _word_scorer(plan), plan.signature(), plan.metric.sign
    whole, failures = score_segments(plan, segments)
    tasks = [task for task in tasks_of(replace(plan, repeat=1), segments, sides) if task.segment not in failures]
    explanations: dict[Task, Explanation] = {}
    for place in dict.fromkeys(task.place for task in tasks):
        group = [task for task in tasks if task.place == place]
        try:
            answers = scorer.word_scores(
                [inputs[task.segment] for task in group], place, [task.words for task in group]
            )
        except SpecError:
            # Not every metric has words to say of every text. Where no side was asked for, the others will do.
            if sides != frozenset(Side) or place == HYPOTHESIS:
                raise
            continue
        for task, answer in zip(group, answers, strict=True):
            score = sign * float(whole[task.segment])
            explanations[task] = _answer(whole_segments, task, answer, score, signature)
    return Outcome([explanations[task] for task in tasks if task in explanations], failures)


def _answer(
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
        matches=answer.matches,
        index=task.segment,
    )


def _word_scorer(plan: Plan) -> WordScorer:
    if isinstance(plan.explainer, WordScorer):
        return plan.explainer
    base: Metric = plan.metric.metric
    inner = base.metric if isinstance(base, Prepared) else base
    if isinstance(plan.explainer, LooksInside):
        return plan.explainer.inside(inner)
    if isinstance(inner, WordScorer):
        return inner
    who = inner.signature().spec
    raise SpecError(f"{who} has no word scores of its own: explain it with erasure, lime or shap")


_OTHER, _CUT = "zqxjkv", "zqx jkv"  # a word that no text holds, whole and in two
_SAME = 1e-4  # of what another word makes of the score
_PARTS = re.compile(r"\w+|[^\w\s]")

_KNOWN: dict[tuple[str, str], str | None] = {}
"""Verdicts by signature and mask, so that a metric is asked once."""


class MaskWarning(UserWarning):
    """The mask string does not survive what a metric does to texts first."""


def check_mask(metric: Metric, masker: Masker | None, segments: Sequence[Segment]) -> None:
    """Warn where the metric does not see the mask string as it was written; the default one is known to be a word."""
    if not isinstance(masker, TokenMasker) or masker == Replace():
        return
    signature = metric.signature()
    key = (str(signature), masker.token)
    if key not in _KNOWN or not signature.stable:
        _KNOWN[key] = _fate(metric, masker.token, segments)
    fate = _KNOWN[key]
    if fate is not None:
        message = f"{signature.spec} {fate} the mask {masker.token!r} before scoring: words are not masked as specified"
        warnings.warn(f"{message}; choose a plain word, or masker='delete'", MaskWarning, stacklevel=3)


def _fate(metric: Metric, token: str, segments: Sequence[Segment]) -> str | None:
    """Return what happens to a mask, None where nothing does or nobody can tell."""
    segment = next((segment for segment in segments if segment.hypothesis.split()), None)
    if segment is None or not token.strip():
        return None
    variants = _variants(token)
    try:
        scores = metric.score(_probes(segment, token, [token, _OTHER, _CUT, *variants.values()]))
    except WhyscoreError:
        return None  # reported where the segments themselves are scored
    return _verdict(scores, list(variants))


def _variants(token: str) -> dict[str, str]:
    """Return what pre-processing could make of a mask, by the name of what it did."""
    variants = {"drops": ""}
    if token.isalnum():
        return variants
    bare = token.strip(string.punctuation)
    candidates = {"lower-cases": token.lower(), "strips": bare, "cuts up": " ".join(_PARTS.findall(token))}
    return variants | {fate: text for fate, text in candidates.items() if text not in ("", token)}


def _probes(segment: Segment, token: str, texts: Sequence[str]) -> list[Segment]:
    """Return the segment with each text for the middle word of the hypothesis; references have the mask there."""
    words = segment.hypothesis.split()
    middle = len(words) // 2

    def render(text: str) -> str:
        return " ".join([*words[:middle], *([text] if text else []), *words[middle + 1 :]])

    references = tuple(render(token) for _ in segment.references)
    return [Segment(render(text), segment.source, references, segment.context) for text in texts]


def _verdict(scores: FloatVector, fates: Sequence[str]) -> str | None:
    whole, other, cut, *rest = scores.tolist()
    scale = abs(whole - other)
    if not scale > 0:
        return None
    blind_to_spaces = abs(other - cut) <= _SAME * scale
    for fate, score in zip(fates, rest, strict=True):
        if abs(score - whole) <= _SAME * scale and not (fate == "cuts up" and blind_to_spaces):
            return fate
    return None


def check_least(owner: str, name: str, value: float, least: float) -> None:
    """Refuse a number below its least sensible value."""
    if value < least:
        raise SpecError(f"{owner}: {name} is {value!r}, expected {least!r} or more")


def check_masker(owner: str, masker: object) -> None:
    """Refuse what cannot hide words, such as the name of a masker where the masker itself is meant."""
    if not isinstance(masker, Masker):
        raise SpecError(
            f"{owner}: masker is {masker!r}, expected a masker: give whyscore.text.maskers.Delete() or "
            'build("delete", kind="masker")'
        )


def check_seed(owner: str, seed: int | None, mode: str) -> None:
    """Refuse a seed where it would not be read, and one that NumPy's old generator does not take."""
    if seed is None:
        return
    if mode != "compat":
        raise SpecError(
            f"{owner}: seed is {seed!r}, but only mode='compat' reads it; otherwise set the seed of the run"
        )
    if not 0 <= seed < 2**32:
        raise SpecError(f"{owner}: seed is {seed!r}, expected 0 to 4294967295, what numpy.random.RandomState takes")


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """Takes the metric's own word scores."""


@dataclass(frozen=True, slots=True)
class Matching:
    """Takes the metric's own word scores, as `intrinsic` does."""


@dataclass(frozen=True, slots=True)
class TokenMatching:
    """Another name for `matching`."""


@dataclass(frozen=True, slots=True)
class Tagging:
    """Takes the word scores of a network that tags words as right or wrong (xCOMET, MicroTransQuest)."""
