"""The values users meet. All are frozen: equal texts are equal segments, and results do not change."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Flag, StrEnum
from functools import cached_property
from typing import Literal, NamedTuple, Self

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from whyscore import marking
from whyscore.errors import DataError
from whyscore.marking import Span

FloatVector = NDArray[np.float64]
"""One number per segment, word or probe."""

FloatMatrix = NDArray[np.float64]
"""Rows of numbers: a metric's counts (segments x columns), or systems x segments with NaN where missing."""

KeepMasks = NDArray[np.bool_]
"""Probes x words; True keeps the word."""


SHOWN = 50
"""Explanations that a notebook shows at a time."""


def read_only(array: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a copy that refuses to be written to: results are values."""
    copy = np.array(array, dtype=np.float64)
    copy.setflags(write=False)
    return copy


class Inputs(Flag):
    """Which texts of a segment a metric reads."""

    HYPOTHESIS = 1
    SOURCE = 2
    REFERENCES = 4


class Side(StrEnum):
    """Which kind of text of a segment."""

    HYPOTHESIS = "hypothesis"
    SOURCE = "source"
    REFERENCE = "reference"


class Place(NamedTuple):
    """Which text of a segment is explained; `reference` counts from zero and is None on the other sides."""

    side: Side
    reference: int | None = None

    def __str__(self) -> str:
        """Return `hypothesis`, `source` or `reference 1`, counted as people count."""
        return self.side if self.reference is None else f"{self.side} {self.reference + 1}"


HYPOTHESIS = Place(Side.HYPOTHESIS)
SOURCE = Place(Side.SOURCE)


@dataclass(frozen=True, slots=True)
class Segment:
    """One hypothesis with its source and references, as a metric sees it: a value without an id.

    `references` is one text or several texts *of this segment*, never one list per reference set.
    """

    hypothesis: str
    source: str | None = None
    references: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Take one reference or any sequence of them, and refuse what is not text."""
        if type(self.references) is not tuple:
            given = (self.references,) if isinstance(self.references, str) else tuple(self.references or ())
            object.__setattr__(self, "references", given)
        if not isinstance(self.hypothesis, str):
            raise DataError(f"a hypothesis must be text, got {self.hypothesis!r}")
        if self.source is not None and not isinstance(self.source, str):
            raise DataError(f"a source must be text or None, got {self.source!r}")
        for reference in self.references:
            if not isinstance(reference, str):
                raise DataError(f"references must be texts, one tuple per segment, got {reference!r}")

    def only(self, inputs: Inputs) -> "Segment":
        """Return the segment without what is not read, so that equal questions are equal values."""
        source = self.source if Inputs.SOURCE in inputs else None
        references = self.references if Inputs.REFERENCES in inputs else ()
        if source is self.source and references is self.references:
            return self
        return Segment(self.hypothesis, source, references)

    def places(self, inputs: Inputs) -> tuple[Place, ...]:
        """Return the places that are read and present: hypothesis, source, references in order."""
        found = [HYPOTHESIS]
        if Inputs.SOURCE in inputs and self.source is not None:
            found.append(SOURCE)
        if Inputs.REFERENCES in inputs:
            found.extend(Place(Side.REFERENCE, k) for k in range(len(self.references)))
        return tuple(found)

    def text(self, place: Place) -> str:
        """Return the text at a place; an absent one is an error."""
        if place.side is Side.HYPOTHESIS:
            return self.hypothesis
        if place.side is Side.SOURCE and self.source is not None:
            return self.source
        if place.reference is not None and place.reference < len(self.references):
            return self.references[place.reference]
        raise DataError(f"the segment has no {place}: {len(self.references)} reference(s), source {self.source!r}")

    def with_text(self, place: Place, text: str) -> "Segment":
        """Return the segment with another text at a place."""
        if place.side is Side.HYPOTHESIS:
            return Segment(text, self.source, self.references)
        if place.side is Side.SOURCE:
            return Segment(self.hypothesis, text, self.references)
        k = place.reference or 0
        return Segment(self.hypothesis, self.source, (*self.references[:k], text, *self.references[k + 1 :]))


Severity = Literal["neutral", "minor", "major", "critical"]


@dataclass(frozen=True, slots=True)
class ErrorSpan:
    """A marked error: half-open code-point offsets into the text of its side."""

    start: int
    end: int
    severity: Severity | None = None
    category: str | None = None
    side: Side = Side.HYPOTHESIS
    reference: int | None = None
    score: float | None = None
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A segment with its identity and what people said of it, kept apart from the value."""

    id: str
    system: str
    segment: Segment
    human: Mapping[str, float] = field(default_factory=dict)
    spans: tuple[ErrorSpan, ...] | None = None
    document: str | None = None
    extra: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something noticed in the input: a warning, or an error that stops the work. Lines count from one."""

    message: str
    file: str | None = None
    line: int | None = None
    error: bool = False

    def __str__(self) -> str:
        """Return `file:line: message`."""
        place = ":".join(str(part) for part in (self.file, self.line) if part is not None)
        return f"{place}: {self.message}" if place else self.message


@dataclass(frozen=True)
class Dataset:
    """Entries of one or more systems, in the order they were read."""

    name: str
    entries: tuple[Entry, ...]
    languages: tuple[str, str] | None = None
    findings: tuple[Finding, ...] = ()

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self.entries)

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """The segments, aligned with the entries."""
        return tuple(entry.segment for entry in self.entries)

    @cached_property
    def systems(self) -> tuple[str, ...]:
        """The systems in the order of their first entry."""
        return tuple(dict.fromkeys(entry.system for entry in self.entries))

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The segment ids in the order of their first entry."""
        return tuple(dict.fromkeys(entry.id for entry in self.entries))

    def of(self, system: str) -> "Dataset":
        """Return the entries of one system."""
        return replace(self, entries=tuple(entry for entry in self.entries if entry.system == system))

    def human(self, name: str) -> FloatVector:
        """Return the human score of that name for every entry, NaN where there is none."""
        known = {score for entry in self.entries for score in entry.human}
        if name not in known:
            raise DataError(f"{self.name} has no human score {name!r}; it has: {', '.join(sorted(known)) or 'none'}")
        return np.array([entry.human.get(name, np.nan) for entry in self.entries], dtype=np.float64)

    def matrix(self, values: Sequence[float] | FloatVector) -> FloatMatrix:
        """Return one value per entry as systems x segments, NaN where a system lacks a segment."""
        rows = {system: i for i, system in enumerate(self.systems)}
        columns = {name: j for j, name in enumerate(self.ids)}
        result = np.full((len(rows), len(columns)), np.nan)
        for entry, value in zip(self.entries, values, strict=True):
            result[rows[entry.system], columns[entry.id]] = value
        return result


@dataclass(frozen=True)
class Words:
    """A text cut into words with exact code-point spans; what lies between words is kept."""

    text: str
    spans: tuple[Span, ...]

    def __len__(self) -> int:
        """Return the number of words."""
        return len(self.spans)

    def __iter__(self) -> Iterator[str]:
        """Yield the words."""
        return (self.text[start:end] for start, end in self.spans)

    @cached_property
    def gaps(self) -> tuple[str, ...]:
        """The text before the first word, between neighbours, and after the last: one more than there are words."""
        starts = [start for start, _ in self.spans] + [len(self.text)]
        ends = [0] + [end for _, end in self.spans]
        return tuple(self.text[end:start] for end, start in zip(ends, starts, strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What an explainer knows of one text: the masks asked so far and the score each got; row 0 keeps every word."""

    words: Words
    masks: KeepMasks
    scores: FloatVector
    seed: int = 0

    @classmethod
    def whole(cls, words: Words, score: float, seed: int = 0) -> "Evidence":
        """Return the evidence before any probe: the whole text and its score."""
        return cls(words, np.ones((1, len(words)), dtype=np.bool_), np.array([score], dtype=np.float64), seed)

    def extend(self, masks: KeepMasks, scores: FloatVector) -> Self:
        """Return the evidence with more probes behind it."""
        return replace(self, masks=np.vstack([self.masks, masks]), scores=np.concatenate([self.scores, scores]))


class Fit(NamedTuple):
    """An explainer's answer for one text."""

    importance: FloatVector
    quality: float | None = None
    """How well the explanation describes the probes (weighted R squared), where that means something."""
    method: str | None = None
    """Which algorithm ran, where the explainer chooses one."""
    flags: tuple[str, ...] = ()
    """Words of warning that belong beside the result."""
    spread: FloatVector | None = None
    """Disagreement between the members of an ensemble, per word."""


class WordScores(NamedTuple):
    """What a metric itself says of each word of one text."""

    importance: FloatVector
    notes: tuple[str, ...] | None = None
    """Per word, why: the n-grams that matched, the edit, the counterpart."""


@dataclass(frozen=True)
class Signature:
    """The text that names every choice behind a number: the spec that rebuilds the object, then facts.

    `stable` is False where the text cannot name everything (a function made at run time): such scores are never stored.
    """

    spec: str
    facts: tuple[tuple[str, str], ...] = ()
    stable: bool = True

    def __str__(self) -> str:
        """Return `spec|key:value|...`, sacreBLEU's grammar."""
        return "|".join([self.spec, *(f"{key}:{value}" for key, value in self.facts)])

    def having(self, **facts: object) -> "Signature":
        """Return the signature with facts replaced in place, or added at the end."""
        merged = dict(self.facts) | {key: str(value) for key, value in facts.items()}
        return replace(self, facts=tuple(merged.items()))


@dataclass(frozen=True, eq=False)
class Explanation:
    """The importance of each word of one text: above zero where the word raises the quality the metric sees.

    `score` is the metric's own number for the whole segment, in the metric's own direction.
    """

    segment: Segment
    place: Place
    words: Words
    importance: FloatVector
    score: float
    probes: int
    signature: Signature
    fit: float | None = None
    method: str | None = None
    flags: tuple[str, ...] = ()
    notes: tuple[str, ...] | None = None
    spread: FloatVector | None = None
    stability: float | None = None
    index: int = 0
    """Which of the segments that were asked about, from zero."""

    def __post_init__(self) -> None:
        """Keep the importance from being changed."""
        object.__setattr__(self, "importance", read_only(self.importance))

    @property
    def error_scores(self) -> FloatVector:
        """One number per word, higher where the word is more likely an error: the importance turned round."""
        return -self.importance

    def __str__(self) -> str:
        """Return the words with their importance in brackets."""
        return marking.plain(self.words.text, self.words.spans, self.importance.tolist())

    def __repr__(self) -> str:
        """Return place, score and words: what one wants to see in a list of explanations."""
        return f"<Explanation of {self.place}, score {self.score:.4g}: {self}>"

    def _repr_html_(self) -> str:
        head = Markup("<div><small>{place} &middot; {score:.4g} &middot; {signature}</small><br>{words}</div>")
        words = marking.html(self.words.text, self.words.spans, self.importance.tolist())
        return str(head.format(place=str(self.place), score=self.score, signature=str(self.signature), words=words))


class Explanations(list[Explanation]):
    """Several explanations, which a notebook shows below each other."""

    def _repr_html_(self) -> str:
        shown = "".join(one._repr_html_() for one in self[:SHOWN])
        return shown + (f"<div>and {len(self) - SHOWN} more</div>" if len(self) > SHOWN else "")


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its interval; `reason` says why where there is none."""

    value: float
    low: float | None = None
    high: float | None = None
    level: float = 0.95
    n: int = 0
    reason: str | None = None


@dataclass(frozen=True, eq=False)
class Scores:
    """A metric's numbers, aligned with the segments they were asked for."""

    values: FloatVector
    signature: Signature
    higher_is_better: bool = True
    rows: FloatMatrix | None = None
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Keep the values from being changed."""
        object.__setattr__(self, "values", read_only(self.values))

    def __len__(self) -> int:
        """Return the number of segments."""
        return len(self.values)
