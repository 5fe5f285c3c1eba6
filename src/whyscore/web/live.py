"""Requests from the network: what they hold, how much of it, how the answers look, and the analyses that answer."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from whyscore import marking
from whyscore.analysis.explain import ExplainSettings, explain
from whyscore.analysis.score import score
from whyscore.errors import MissingInput, UserError
from whyscore.protocols import Explainer
from whyscore.registry import build
from whyscore.report import build_report
from whyscore.report.page import html
from whyscore.scoring.stack import Resources, needs
from whyscore.scoring.store import Store
from whyscore.text.splitters import WhiteSpace
from whyscore.types import Explanation, Inputs, Segment
from whyscore.web import limits as allowed

TEXT = 5_000
"""Characters a text may have."""
REFERENCES = 8
SEGMENTS = 200
"""Segments a question may hold."""
PROBES = 20_000
"""Texts an explanation may score."""
COST, LARGE = 50_000_000, 500_000
"""Estimated cost that a question may have, and from which on it counts as large. The unit is a character that a metric
counts, about a microsecond."""
_PAIRS = {"ter": 10, "qe": 10, "xbertscore": 10}
"""What a pair of words costs a metric that compares all words of two texts."""

OPTIONS = 20
"""Options that a component or an analysis may be given."""

Text = Annotated[str, Field(max_length=TEXT)]
OptionValue = bool | int | float | Annotated[str, Field(max_length=40)] | None


def _check_number(options: object) -> object:
    """Refuse too many options at once: pydantic would make errors for each of them, gigabytes of a large body."""
    if isinstance(options, dict) and len(options) > OPTIONS:
        raise ValueError(f"at most {OPTIONS} options are allowed, got {len(options)}")
    return options


Options = Annotated[dict[Annotated[str, Field(max_length=40)], OptionValue], BeforeValidator(_check_number)]


class Strict(BaseModel):
    """Unknown fields and numbers that are no numbers are refused."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def check_names(cls, value: object) -> object:
        """Refuse the first unknown field: pydantic would make an error for each of them."""
        unknown = (
            next((name for name in value if name not in cls.model_fields), None) if isinstance(value, dict) else None
        )
        if unknown is not None:
            raise ValueError(f"no field is named {str(unknown)[:40]!r}: {', '.join(cls.model_fields)}")
        return value


class Component(Strict):
    """A metric or an explainer by name, with literal options."""

    name: Annotated[str, Field(max_length=40)]
    options: Options = {}


class AskedSegment(Strict):
    """The texts of one segment."""

    hypothesis: Text
    source: Text | None = None
    references: Annotated[list[Text], Field(max_length=REFERENCES)] = []


class ScoreQuestion(Strict):
    """Score these segments."""

    segments: Annotated[list[AskedSegment], Field(min_length=1, max_length=SEGMENTS)]
    metric: Component = Component(name="chrf")


class ScoreAnswer(Strict):
    """One score per segment."""

    scores: list[float]
    signature: str
    higher_is_better: bool


class ExplainQuestion(Strict):
    """Which words made the score of this segment?"""

    segment: AskedSegment
    metric: Component = Component(name="chrf")
    explainer: Component = Component(name="erasure")
    settings: Options = {}
    seed: Annotated[int, Field(ge=0, le=2**31)] = 0


class ExplainedWord(Strict):
    """A word with its place in the text (code points, end exclusive), its importance and how it is coloured."""

    text: str
    start: int
    end: int
    importance: float
    note: str | None
    background: str
    ink: str


class ExplainedText(Strict):
    """The words of one text."""

    side: str
    reference: int | None
    text: str
    words: list[ExplainedWord]


class ExplainAnswer(Strict):
    """The words of every text that the metric reads."""

    score: float
    higher_is_better: bool
    probes: int
    fit: float | None
    signature: str
    texts: list[ExplainedText]


class OfferedComponent(Strict):
    """What can be asked for."""

    name: str
    about: str
    options: dict[str, list[str] | str]


class OfferedSetting(Strict):
    """A setting of an explanation, with the words it takes or the kind of its value."""

    name: str
    about: str
    values: list[str] | str
    default: OptionValue


class ComponentsAnswer(Strict):
    """All that can be requested here."""

    metrics: list[OfferedComponent]
    explainers: list[OfferedComponent]
    settings: list[OfferedSetting]


class Problem(Strict):
    """What went wrong, and what to do."""

    error: str


def components() -> ComponentsAnswer:
    """Return what can be asked for."""
    return ComponentsAnswer(
        metrics=[_component(component) for component in allowed.list_components("metric")],
        explainers=[_component(component) for component in allowed.list_components("explainer")],
        settings=[
            OfferedSetting(
                name=name,
                about=setting.option.help,
                values=_values(values),
                default=cast("OptionValue", setting.default),
            )
            for name, (setting, values) in allowed.list_settings(ExplainSettings).items()
        ],
    )


def _require_texts(metric: str, segments: Sequence[Segment]) -> None:
    """Refuse segments without a text that the metric needs, in the words of the form."""
    inputs = needs(build(metric, "metric"))
    for segment in segments:
        texts = {Inputs.SOURCE: segment.source, Inputs.REFERENCES: any(segment.references)}
        for text, there in texts.items():
            if text in inputs and not there:
                field = "source" if text is Inputs.SOURCE else "reference"
                raise MissingInput(f"{metric} needs a {field}: fill in the {field}, or choose another metric")


def answer_score(question: ScoreQuestion, store: Store | None) -> ScoreAnswer:
    """Return the scores of the segments."""
    metric = allowed.spec("metric", question.metric.name, question.metric.options)
    segments = [_segment(segment) for segment in question.segments]
    _require_texts(metric, segments)
    result = score(segments, metric, resources=Resources(store))
    return ScoreAnswer(
        scores=result.values.tolist(), signature=str(result.signature), higher_is_better=result.higher_is_better
    )


def answer_explain(question: ExplainQuestion, store: Store | None) -> ExplainAnswer:
    """Return the words of a segment."""
    metric = allowed.spec("metric", question.metric.name, question.metric.options)
    explainer = allowed.spec("explainer", question.explainer.name, question.explainer.options)
    settings = allowed.make_settings(ExplainSettings, {"seed": question.seed} | question.settings)
    segments = [_segment(question.segment)]
    _require_texts(metric, segments)
    explanations = explain(segments, metric, explainer, settings=settings, resources=Resources(store))
    if not explanations:
        raise UserError("there is no word to explain")
    return _answer_explanation(explanations, higher_is_better=build(metric, "metric").higher_is_better)


def answer_report(folders: Sequence[Path], _: Store | None) -> str:
    """Return the page of a report on runs."""
    return html(build_report(folders), home="/")


def is_large(question: ScoreQuestion | ExplainQuestion) -> bool:
    """Return whether a question takes long, by its texts and their lengths; one that takes too long is refused."""
    if isinstance(question, ScoreQuestion):
        estimate = sum(_cost(segment, question.metric.name) for segment in question.segments)
    else:
        explainer = allowed.spec("explainer", question.explainer.name, question.explainer.options)
        settings = allowed.make_settings(ExplainSettings, {"seed": question.seed} | question.settings)
        probes = _probes(_segment(question.segment), explainer, settings)
        if probes > PROBES:
            raise UserError(
                f"this explanation takes {probes} texts, at most {PROBES} are scored here: shorten the text"
            )
        estimate = probes * _cost(question.segment, question.metric.name)
    if estimate > COST:
        raise UserError(f"this needs about {estimate / COST:.1f} times the work allowed per request: send less text")
    return estimate > LARGE


def _cost(segment: AskedSegment, metric: str) -> int:
    """Return what scoring a segment costs, about."""
    others = [segment.source or "", *segment.references]
    words = len(segment.hypothesis.split()) * sum(len(text.split()) for text in others)
    return len(segment.hypothesis) + sum(map(len, others)) + _PAIRS.get(metric, 0) * words


def _probes(segment: Segment, explainer: str, settings: ExplainSettings) -> int:
    """Return how many texts an explanation scores at the most, counted without making them."""
    built = build(explainer, "explainer")
    if not isinstance(built, Explainer):
        return 1
    texts = (segment.hypothesis, segment.source or "", *segment.references)
    # Characters are never fewer than the words of any unit.
    sizes = [len(WhiteSpace().split(text)) if settings.unit == "word" else len(text) for text in texts]
    return settings.repeat * sum(map(built.cost, sizes))


def _answer_explanation(explanations: Sequence[Explanation], *, higher_is_better: bool) -> ExplainAnswer:
    first = explanations[0]
    return ExplainAnswer(
        score=first.score,
        higher_is_better=higher_is_better,
        probes=sum(explanation.probes for explanation in explanations),
        fit=first.fit,
        signature=str(first.signature),
        texts=[_text(explanation) for explanation in explanations],
    )


def _text(explanation: Explanation) -> ExplainedText:
    strengths = marking.strengths(explanation.importance.tolist())
    notes = explanation.notes or (None,) * len(explanation.words.spans)
    words = [
        ExplainedWord(
            text=explanation.words.text[start:end],
            start=start,
            end=end,
            importance=value,
            note=note,
            background="rgb({},{},{})".format(*marking.colour(strength)),
            ink=marking.ink(strength),
        )
        for (start, end), value, note, strength in zip(
            explanation.words.spans, explanation.importance.tolist(), notes, strengths, strict=True
        )
    ]
    return ExplainedText(
        side=str(explanation.place.side),
        reference=explanation.place.reference,
        text=explanation.words.text,
        words=words,
    )


def _component(component: allowed.Offered) -> OfferedComponent:
    options = {name: _values(values) for name, values in component.options.items()}
    return OfferedComponent(name=component.name, about=component.about, options=options)


def _values(values: allowed.Values) -> list[str] | str:
    return values if isinstance(values, str) else [str(word) for word in values]


def _segment(segment: AskedSegment) -> Segment:
    return Segment(segment.hypothesis, segment.source, tuple(segment.references))
