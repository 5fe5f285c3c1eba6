"""What the network may ask, how much of it, and how the answers look."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

TEXT = 5_000
"""Characters a text may have."""
REFERENCES = 8
SEGMENTS = 200
"""Segments a question may hold."""
PROBES = 20_000
"""Texts an explanation may score."""
BODY = 4_000_000
"""Bytes a question may have."""

Text = Annotated[str, Field(max_length=TEXT)]
OptionValue = bool | int | float | Annotated[str, Field(max_length=40)] | None


class Strict(BaseModel):
    """Unknown fields and numbers that are no numbers are refused."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Component(Strict):
    """A metric or an explainer by name, with literal options."""

    name: Annotated[str, Field(max_length=40)]
    options: Annotated[dict[Annotated[str, Field(max_length=40)], OptionValue], Field(max_length=20)] = {}


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


class ComponentsAnswer(Strict):
    """All that can be asked for here."""

    metrics: list[OfferedComponent]
    explainers: list[OfferedComponent]


class Problem(Strict):
    """What went wrong, and what to do."""

    error: str
