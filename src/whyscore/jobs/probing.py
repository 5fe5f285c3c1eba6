"""From a plan to probes: what is asked about which text, in windows that bound the memory."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np

from whyscore.errors import ContractError, MissingInput, SpecError
from whyscore.jobs.common import MetricLike, as_metric
from whyscore.protocols import Explainer, Masker, Probes, Splitter, WordScorer
from whyscore.registry import build, spec_of
from whyscore.scoring.rows import Incomplete, Oriented, oriented, read_scores
from whyscore.text.randomness import generator
from whyscore.text.splitters import WhiteSpace
from whyscore.types import Evidence, FloatVector, KeepMasks, Place, Segment, Side, Signature, Words
from whyscore.version import __version__

WINDOW = 200_000
"""Probes that are planned and held at a time."""


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
        """Return what names an explanation: the explainer's spec, then what it was asked about and how."""
        asked = self.metric.metric.signature()
        facts = [("metric", asked.spec), ("unit", spec_of(self.splitter))]
        if self.masker is not None:
            facts.append(("masker", spec_of(self.masker)))
        facts += [("seed", str(self.seed)), ("version", __version__)]
        return Signature(spec_of(self.explainer), tuple(facts), asked.stable)


def make_plan(
    metric: MetricLike,
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
    chosen = build(masker, "masker") if isinstance(masker, str) else masker
    hiding = chosen or getattr(explaining, "masker", None)
    splitter = build(unit, "splitter") if isinstance(unit, str) else unit
    if unit == "word" and getattr(explaining, "mode", None) == "compat":
        splitter = WhiteSpace("space")  # as the packages that compat follows cut their texts
    return Plan(oriented(as_metric(metric)), explaining, hiding, splitter, seed, repeat, window)


def sides_of(sides: Sequence[str | Side] | None) -> frozenset[Side]:
    """Return the named sides, or all; an unknown one is refused."""
    known = [side.value for side in Side]
    for side in sides or ():
        if side not in known:
            raise SpecError(f"no side named {side!r}. Known: {', '.join(known)}")
    return frozenset(Side(side) for side in sides or known)


def tasks_of(plan: Plan, segments: Sequence[Segment], sides: frozenset[Side]) -> Iterator[Task]:
    """Yield every text to explain: segment by segment, place by place, once per repeat."""
    for i, segment in enumerate(segments):
        places = [place for place in segment.places(plan.metric.inputs) if place.side in sides]
        if not places:
            reads = ", ".join(str(place) for place in segment.places(plan.metric.inputs))
            raise MissingInput(f"the metric reads {reads} of segment {i}, not {', '.join(sorted(sides))}")
        for place in places:
            words = plan.splitter.split(segment.text(place))
            for number in range(plan.repeat):
                yield Task(i, place, words, plan.seed + number)


def windows(plan: Plan, tasks: Iterable[Task]) -> Iterator[list[Task]]:
    """Yield tasks in groups whose probes fit a window; repeats of one text stay together."""
    explainer = cast("Explainer", plan.explainer)
    window: list[Task] = []
    held = 0
    for task in tasks:
        probes = explainer.cost(len(task.words)) if len(task.words) else 0
        if window and held + probes > plan.window and task.seed == plan.seed:
            yield window
            window, held = [], 0
        window.append(task)
        held += probes
    if window:
        yield window


def ask(plan: Plan, window: list[Task], known: list[Evidence], number: int) -> tuple[list[KeepMasks], list[Probes]]:
    """Return the masks each text is to be asked about in this round, and the texts that stand for them."""
    explainer, masker = cast("Explainer", plan.explainer), plan.masker
    masks = [
        explainer.plan(evidence, generator(task.seed, task.words.text, str(number)))
        for task, evidence in zip(window, known, strict=True)
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


def probed(segments: Sequence[Segment], window: list[Task], probes: list[Probes]) -> Iterator[Segment]:
    """Yield each probe as a segment: its text in the explained place, all else as it was."""
    for task, texts in zip(window, probes, strict=True):
        segment, place = segments[task.segment], task.place
        for text in texts.texts:
            yield segment.with_text(place, text)


def per_mask(probes: Probes, values: FloatVector, masks: int) -> FloatVector:
    """Return one score per mask: the only probe's, or the weighted sum over several."""
    if probes.rows is None:
        return values
    weights = np.ones(len(values)) if probes.weights is None else probes.weights
    result = np.zeros(masks)
    np.add.at(result, np.asarray(probes.rows, dtype=np.intp), weights * values)
    return result


def scored(plan: Plan, segments: Sequence[Segment]) -> tuple[FloatVector, dict[int, str]]:
    """Return the scores, NaN where the metric failed, and why it failed there."""
    try:
        return plan.metric.score(segments), {}
    except Incomplete as error:
        reasons = {i: f"{error.who} {reason}" for i, reason in error.failures.items()}
        rows = np.where(np.isfinite(error.rows), error.rows, 0.0)
        values = plan.metric.sign * read_scores(plan.metric.metric, rows)
        values[list(reasons)] = np.nan
        return values, reasons
