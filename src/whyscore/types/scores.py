"""What comes back: signatures, scores, estimates and explanations."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from markupsafe import Markup

from whyscore import marking
from whyscore.types.arrays import FloatMatrix, FloatVector, read_only
from whyscore.types.result import DECIMALS, Record, Result
from whyscore.types.segments import Place, Segment
from whyscore.types.words import WordMatch, Words

SHOWN = 40
"""Explanations that a notebook shows at a time."""
_FIRST = 5


_ESCAPE = re.compile(r"%(?=(?:25)*(?:7C|3A))")
_ESCAPED = re.compile(r"%7C|%3A|%25(?=(?:25)*(?:7C|3A))")


def _escape(text: str) -> str:
    return _ESCAPE.sub("%25", text).replace("|", "%7C")


def _unescape(text: str) -> str:
    return _ESCAPED.sub(lambda match: {"%7C": "|", "%3A": ":"}.get(match[0], "%"), text)


@dataclass(frozen=True)
class Signature:
    """The text that names every choice behind a number: the spec that rebuilds the object, then facts.

    `stable` is False where the text cannot name everything (a function made at run time): such scores are never stored.
    """

    spec: str
    facts: tuple[tuple[str, str], ...] = ()
    stable: bool = True

    def __str__(self) -> str:
        facts = (f"{_escape(key).replace(':', '%3A')}:{_escape(value)}" for key, value in self.facts)
        return "|".join([_escape(self.spec), *facts])

    @classmethod
    def parse(cls, text: str) -> "Signature":
        """Return the signature that was written as `text`, the inverse of `str`.

        >>> Signature.parse("chrf|nrefs:1|nc:6").facts
        (('nrefs', '1'), ('nc', '6'))
        """
        spec, *facts = text.split("|")
        pairs = (fact.partition(":") for fact in facts)
        return cls(_unescape(spec), tuple((_unescape(key), _unescape(value)) for key, _, value in pairs))

    def with_facts(self, **facts: object) -> "Signature":
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
    matches: tuple[tuple[WordMatch, ...], ...] | None = None
    spread: FloatVector | None = None
    stability: float | None = None
    index: int = 0
    """The position of its segment among those explained, from zero."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "importance", read_only(self.importance))

    @property
    def error_scores(self) -> FloatVector:
        """One number per word, higher where the word is more likely an error: the negated importance."""
        return -self.importance

    def __str__(self) -> str:
        return marking.plain(self.words.text, self.words.spans, self.importance.tolist())

    def __repr__(self) -> str:
        return f"<Explanation of {self.place}, score {self.score:.4g}: {self}>"

    def _repr_html_(self) -> str:
        head = Markup("<div><small>{place} &middot; {score:.4g} &middot; {signature}</small><br>{words}</div>")
        words = marking.html(self.words.text, self.words.spans, self.importance.tolist())
        return str(head.format(place=str(self.place), score=self.score, signature=str(self.signature), words=words))


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its interval; `reason` says why where there is none."""

    value: float
    low: float | None = None
    high: float | None = None
    level: float = 0.95
    n: int = 0
    reason: str | None = None

    def interval(self, digits: int = DECIMALS) -> str:
        """Return the number with its interval, for people; a dash where it is undefined.

        >>> Estimate(51.26, 50.1, 52.2).interval(1)
        '51.3 [50.1, 52.2]'
        """
        if math.isnan(self.value):
            return "-"
        ends = "" if self.low is None or self.high is None else f" [{self.low:.{digits}f}, {self.high:.{digits}f}]"
        return f"{self.value:.{digits}f}{ends}"


@dataclass(frozen=True, eq=False, repr=False)
class Scores(Result):
    """A metric's numbers, aligned with the segments."""

    values: FloatVector
    signature: Signature
    higher_is_better: bool = True
    rows: FloatMatrix | None = None
    columns: tuple[str, ...] = ()
    reasons: Mapping[int, str] = field(default_factory=dict)
    """Why segments have no score, by their numbers."""
    kind: ClassVar[str] = "scores"

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", read_only(self.values))

    def __len__(self) -> int:
        return len(self.values)

    def header(self) -> Record:
        return {"signature": str(self.signature), "higher_is_better": self.higher_is_better}

    def records(self) -> Iterator[Record]:
        for number, value in enumerate(self.values.tolist()):
            why = {} if math.isfinite(value) else {"reason": self.reasons.get(number, "undefined")}
            yield {"id": str(number), "score": value if math.isfinite(value) else None, **why}

    def __repr__(self) -> str:
        first = ", ".join(f"{value:.4g}" for value in self.values[:_FIRST].tolist())
        more = ", ..." if len(self) > _FIRST else ""
        return f"<Scores of {self.signature.spec}: {len(self)} segments [{first}{more}]; .values, .records()>"
