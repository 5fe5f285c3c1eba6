"""Questions from the network, put to the same jobs as every other."""

from collections.abc import Sequence

from whyscore import marking
from whyscore.analysis.explain import explain
from whyscore.analysis.score import score
from whyscore.errors import UserError
from whyscore.protocols import Explainer
from whyscore.registry import build
from whyscore.scoring.stack import Progress, Resources
from whyscore.scoring.store import Store
from whyscore.text.splitters import WhiteSpace
from whyscore.types import Explanation, Segment
from whyscore.web import allowed
from whyscore.web.asking import (
    PROBES,
    AskedSegment,
    ComponentsAnswer,
    ExplainAnswer,
    ExplainedText,
    ExplainedWord,
    ExplainQuestion,
    OfferedComponent,
    ScoreAnswer,
    ScoreQuestion,
)

_BATCH = 64
"""Segments between two looks at whether the asker is still there."""


def components() -> ComponentsAnswer:
    """Return what can be asked for."""
    return ComponentsAnswer(
        metrics=[_component(one) for one in allowed.offered("metric")],
        explainers=[_component(one) for one in allowed.offered("explainer")],
    )


def scored(question: ScoreQuestion, store: Store | None, progress: Progress) -> ScoreAnswer:
    """Return the scores of the segments."""
    metric = allowed.spec("metric", question.metric.name, question.metric.options)
    found = score([_segment(one) for one in question.segments], metric, resources=_resources(store, progress))
    return ScoreAnswer(
        scores=found.values.tolist(), signature=str(found.signature), higher_is_better=found.higher_is_better
    )


def explained(question: ExplainQuestion, store: Store | None, progress: Progress) -> ExplainAnswer:
    """Return the words of a segment."""
    metric = allowed.spec("metric", question.metric.name, question.metric.options)
    explainer = allowed.spec("explainer", question.explainer.name, question.explainer.options)
    segments = [_segment(question.segment)]
    asked = _probes(segments[0], explainer)
    if asked > PROBES:
        raise UserError(f"this explanation takes {asked} texts, at most {PROBES} are scored here: shorten the text")
    found = explain(segments, metric, explainer, seed=question.seed, resources=_resources(store, progress))
    if not found:
        raise UserError("there is no word to explain")
    return _explained(found, higher_is_better=build(metric, "metric").higher_is_better)


def _probes(segment: Segment, explainer: str) -> int:
    """Return how many texts an explanation scores at the most, counted without making them."""
    asked = build(explainer, "explainer")
    if not isinstance(asked, Explainer):
        return 1
    texts = (segment.hypothesis, segment.source or "", *segment.references)
    return sum(asked.cost(len(WhiteSpace().split(text))) for text in texts)


def _explained(found: Sequence[Explanation], *, higher_is_better: bool) -> ExplainAnswer:
    first = found[0]
    return ExplainAnswer(
        score=first.score,
        higher_is_better=higher_is_better,
        probes=sum(one.probes for one in found),
        fit=first.fit,
        signature=str(first.signature),
        texts=[_text(one) for one in found],
    )


def _text(one: Explanation) -> ExplainedText:
    strengths = marking.strengths(one.importance.tolist())
    notes = one.notes or (None,) * len(one.words.spans)
    words = [
        ExplainedWord(
            text=one.words.text[start:end],
            start=start,
            end=end,
            importance=value,
            note=note,
            background="rgb({},{},{})".format(*marking.colour(strength)),
            ink=marking.ink(strength),
        )
        for (start, end), value, note, strength in zip(
            one.words.spans, one.importance.tolist(), notes, strengths, strict=True
        )
    ]
    return ExplainedText(side=str(one.place.side), reference=one.place.reference, text=one.words.text, words=words)


def _component(one: allowed.Offered) -> OfferedComponent:
    options = {
        name: kind if isinstance(kind, str) else [str(word) for word in kind] for name, kind in one.options.items()
    }
    return OfferedComponent(name=one.name, about=one.about, options=options)


def _segment(one: AskedSegment) -> Segment:
    return Segment(one.hypothesis, one.source, tuple(one.references))


def _resources(store: Store | None, progress: Progress) -> Resources:
    return Resources(store, None, progress, _BATCH)
