"""What an answer says: a score, error spans with their places in the text, or why it cannot be used.

1. Thoughts (`<think> ... </think>`) are left out. The last JSON object with the expected keys counts; code fences, text
   around it, trailing commas and Python's quotes are tolerated. For `score` and `pairwise`, a plain answer without JSON
   is taken where it can mean one thing only.
2. An answer that says less than was asked for, or a number out of range, is `unparsed`; one that the model did not
   finish is `truncated`; one that it declined is `refused`; prose in another language than English is `wrong language`;
   a call without an answer is `failed`. Nothing is guessed: such answers have no score.
3. A quoted error is looked for in its text: exactly; without regard to case and spacing; then, from 8 characters on,
   fuzzily with at most 15 % of its characters changed (`rapidfuzz`). Of several occurrences, the one after the error
   before it counts, else the nearest that no other error has taken. What is not found is counted.
"""

import ast
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

from rapidfuzz import fuzz

from whyscore.marking import Span
from whyscore.metrics.judge.protocols import ASPECTS, SEVERITIES, Protocol
from whyscore.scoring.answers import Missing, Reply
from whyscore.stats.annotators import GOOGLE
from whyscore.types import ErrorSpan, Segment, Severity, Side

WORST = 25.0  # the most that a segment can lose in WMT's MQM scores
_LONGEST = 100_000  # characters of an answer that are looked at
_MOST = 200  # errors of one answer
_FUZZY = 85.0
_SHORTEST = 8
_PROSE = 60  # characters from which a language can be identified
_SHOWN = 80
_THOUGHT = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
_COMMA = re.compile(r",\s*([}\]])")
_NUMBER = re.compile(r"(?<![\w.-])-?\d+(?:\.\d+)?(?!\.?\w)")
_RATED = re.compile(r"\bscore\W{0,6}(\d+(?:\.\d+)?)(?!\.?\d)|\b(\d+(?:\.\d+)?)\s*/\s*100\b", re.IGNORECASE)
_CHOICE = re.compile(r"(?:translation\s+)?\W*(A|B|tie)\W*", re.IGNORECASE)
_REFUSAL = re.compile(
    r"\b(?:i(?:'m| am) (?:sorry|unable|not able)|i (?:can(?:'|no)t|can not|won't|will not|must decline)|as an ai\b)",
    re.IGNORECASE,
)
_SPACE = re.compile(r"\s+")


class MarkedError(NamedTuple):
    """An error as the judge describes it; `span` is None where the quotation is nowhere in the text."""

    quote: str
    severity: Severity
    category: str
    reason: str
    span: ErrorSpan | None

    @property
    def weight(self) -> float:
        """What it costs in MQM."""
        return GOOGLE.of(self.severity, self.category)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one answer says; the score is None where it cannot be used, and `missing` says why."""

    score: float | None
    parts: tuple[float, ...] = ()
    errors: tuple[MarkedError, ...] = ()
    missing: Missing | None = None

    @property
    def lost(self) -> int:
        """Errors that could not be located."""
        return sum(error.span is None for error in self.errors)

    def keeping(self, keep_mask: Sequence[bool], protocol: Protocol) -> "Judgement":
        """Return the judgement with some of its errors; the score of MQM follows from them."""
        errors = tuple(error for error, keep in zip(self.errors, keep_mask, strict=True) if keep)
        return replace(self, errors=errors, score=mqm(errors) if protocol.name == "mqm" else self.score)


def mqm(errors: Sequence[MarkedError]) -> float:
    """Return the MQM score of errors, 0 for none."""
    return -min(WORST, math.fsum(error.weight for error in errors)) + 0.0


class _Unusable(Exception):
    """An answer that does not say what was asked for."""


def judgement_of(reply: Reply, protocol: Protocol, segment: Segment, order: int = 0) -> Judgement:
    """Return what a reply says of a segment."""
    if reply.answer is None:
        return _missing("failed", reply.failure or "no answer")
    if reply.finish in ("content_filter", "refusal"):
        return _missing("refused", f"finished by {reply.finish}")
    text = _THOUGHT.sub("", reply.answer[:_LONGEST]).strip()
    try:
        return _read(text, protocol, segment, order)
    except _Unusable as error:
        return _missing(_reason(reply, text), f"{error}: {_shorten(text)}")


def _missing(reason: str, detail: str) -> Judgement:
    return Judgement(None, missing=Missing(reason, detail))


def _shorten(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def _reason(reply: Reply, text: str) -> str:
    if reply.finish == "length":
        return "truncated"
    if "{" in text:
        return "unparsed"
    if _REFUSAL.search(text):
        return "refused"
    return "wrong language" if len(text) >= _PROSE and _language(text) != "en" else "unparsed"


def _language(text: str) -> str:
    import py3langid  # noqa: PLC0415 - loads its tables

    return str(py3langid.classify(text)[0])


def _read(text: str, protocol: Protocol, segment: Segment, order: int) -> Judgement:
    required = protocol.schema["required"]
    names = [name for name in cast("list[str]", required) if name != "reason"]
    value = _object(text, names)
    if value is None:
        value = _plain(text, protocol)
    if protocol.name == "summary":
        aspects = tuple(_number(value, name, 1, 5) for name in ASPECTS)
        return Judgement(math.fsum(aspects) / len(aspects), aspects)
    if protocol.name == "pairwise":
        return _preference(value, order)
    errors = _errors(value["errors"], segment) if protocol.spans else ()
    if protocol.name == "mqm":
        return Judgement(mqm(errors), errors=errors)
    return Judgement(_number(value, "score", 0, 100), errors=errors)


def _object(text: str, names: Sequence[str]) -> Mapping[str, object] | None:
    """Return the last object that has all names; None where the text has no object at all."""
    objects = [value for value in _objects(text) if all(name in value for name in names)]
    if objects:
        return objects[-1]
    if "{" in text:
        raise _Unusable(f"no JSON object with {' and '.join(map(repr, names))}")
    return None


def _objects(text: str) -> Iterator[Mapping[str, object]]:
    """Yield the outermost objects of a text, as far as they can be read."""
    depth, start, quoted, skip = 0, 0, False, False
    for place, character in enumerate(text):
        if skip:
            skip = False
        elif quoted:
            skip, quoted = character == "\\", character != '"'
        elif character == '"' and depth:
            quoted = True
        elif character == "{":
            start = place if depth == 0 else start
            depth += 1
        elif character == "}" and depth:
            depth -= 1
            value = _value(text[start : place + 1]) if depth == 0 else None
            if isinstance(value, dict):
                yield value


def _value(text: str) -> object:
    if text.count("{") + text.count("[") + text.count("(") > 2 * _MOST:
        return None  # nested deeper than any answer, to exhaust a parser
    for read in (json.loads, lambda source: json.loads(_COMMA.sub(r"\1", source), strict=False), ast.literal_eval):
        try:
            return cast("object", read(text))
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return None


def _plain(text: str, protocol: Protocol) -> Mapping[str, object]:
    """Return what an answer without JSON says, where it can mean one thing only."""
    if protocol.name == "score":
        rated = [first or second for first, second in _RATED.findall(text)] or _NUMBER.findall(text)
        if len(set(rated)) == 1:
            return {"score": float(rated[0])}
    if protocol.name == "pairwise" and (choice := _CHOICE.fullmatch(text)):
        return {"better": choice[1]}
    raise _Unusable("no JSON")


def _number(value: Mapping[str, object], name: str, low: float, high: float) -> float:
    number = value[name]
    if isinstance(number, str) and _NUMBER.fullmatch(number.strip()):
        number = float(number)
    if isinstance(number, bool) or not isinstance(number, int | float) or not low <= number <= high:
        raise _Unusable(f"{name!r} is {_shorten(str(number))}, expected {low:g} to {high:g}")
    return float(number)


def _preference(value: Mapping[str, object], order: int) -> Judgement:
    """Return whether the hypothesis won, and whether the text that came first did; the hypothesis is B at first."""
    choice = str(value["better"]).strip().casefold()
    if choice not in ("a", "b", "tie"):
        raise _Unusable(f"'better' is {_shorten(choice)}, expected A, B or tie")
    if choice == "tie":
        return Judgement(50.0, (50.0,))
    letter = "b" if order == 0 else "a"
    return Judgement(100.0 if choice == letter else 0.0, (100.0 if choice == "a" else 0.0,))


def _errors(value: object, segment: Segment) -> tuple[MarkedError, ...]:
    if not isinstance(value, list) or len(value) > _MOST:
        raise _Unusable(f"'errors' is not a list of at most {_MOST} errors")
    errors: list[MarkedError] = []
    taken: dict[Side, list[Span]] = {side: [] for side in Side}
    for item in value:
        if not isinstance(item, dict) or not isinstance(item.get("quote"), str):
            raise _Unusable(f"an error without a quotation: {_shorten(str(item))}")
        severity = str(item.get("severity", "")).strip().casefold()
        if severity not in SEVERITIES:
            raise _Unusable(f"the severity of an error is {_shorten(severity)}, expected {', '.join(SEVERITIES)}")
        side = Side.SOURCE if str(item.get("in", "")).strip().casefold() == "source" else Side.HYPOTHESIS
        text = segment.hypothesis if side is Side.HYPOTHESIS else segment.source or ""
        place = locate(item["quote"], text, taken[side])
        category, reason = (_SPACE.sub(" ", str(item.get(key) or "")).strip() for key in ("category", "reason"))
        named = cast("Severity", severity)
        span = None
        if place is not None:
            taken[side].append(place)
            span = ErrorSpan(*place, named, category or None, side)
        errors.append(MarkedError(item["quote"], named, category, reason, span))
    return tuple(errors)


def locate(quote: str, text: str, taken: Sequence[Span] = ()) -> Span | None:
    """Return where a quotation stands in a text, None where it is not there.

    >>> locate("the cat", "The dog and the cat"), locate("the  Dog", "The dog and the cat")
    ((12, 19), (0, 7))
    >>> locate("a", "a b a", [(0, 1)]), locate("zebra", "The dog")
    ((4, 5), None)
    """
    phrase = quote.strip()
    if not phrase:
        return None
    for pattern, flags in ((re.escape(phrase), 0), (_loose(phrase), re.IGNORECASE)):
        places = [match.span() for match in re.finditer(pattern, text, flags)]
        free = [place for place in places if place not in taken] or places
        if free:
            last = taken[-1][1] if taken else 0
            return min(free, key=lambda place: (place[0] < last, abs(place[0] - last)))
    if not _SHORTEST <= len(phrase) <= len(text):
        return None
    near = fuzz.partial_ratio_alignment(phrase, text, score_cutoff=_FUZZY)
    return None if near is None else (near.dest_start, near.dest_end)


def _loose(quote: str) -> str:
    return r"\s+".join(re.escape(part) for part in quote.split())
