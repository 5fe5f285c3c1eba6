"""Error spans in the dialects of other programs, one segment at a time: foreign values <-> our half-open code points.

| dialect | offsets | omission |
|---|---|---|
| `xcomet` | characters, end exclusive; the start may include the blank before | - |
| `mtme` | characters, end exclusive; `is_source_error` tells the side | a span of the source |
| `pearmut` (ESA) | characters, end **inclusive** | the word `missing` instead of numbers |
| `wmtqe` (WMT QE task 2) | characters, end exclusive; `s = e` is one character | the place after the end |
| `marot` | tokens, end inclusive | a span of the source |

Reading notes what was put right; writing counts, by kind, what the dialect cannot say. Both in a `Counter`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Literal, NamedTuple, get_args

from whyscore.io.marks import trim
from whyscore.io.spans import BadSpan
from whyscore.types import ErrorSpan, Segment, Severity, Side, Words

Offsets = Literal["codepoints", "utf16", "bytes"]
OFFSETS: tuple[Offsets, ...] = get_args(Offsets)
Tally = Counter[str]
MISSING = "missing"
OMISSION = "omission"
_SEVERITIES: tuple[Severity, ...] = get_args(Severity)


class Lists(NamedTuple):
    """The three columns of WMT QE task 2."""

    starts: str
    ends: str
    types: str


NO_ERROR = Lists("-1", "-1", "no-error")


def to_codepoints(text: str, offset: int, unit: Offsets) -> int:
    """Return an offset in code points, from UTF-16 units (JavaScript) or UTF-8 bytes.

    >>> to_codepoints("😀 b", 3, "utf16"), to_codepoints("é b", 3, "bytes")
    (2, 2)
    """
    if unit == "codepoints":
        return offset
    # Half a character, as in the middle of a surrogate pair, counts to the character it is part of.
    return sum(end <= offset for end in accumulate(_units(letter, unit) for letter in text))


def from_codepoints(text: str, offset: int, unit: Offsets) -> int:
    """Return an offset in the units of another program."""
    if unit == "codepoints":
        return offset
    return _units(text[:offset], unit)


def _units(text: str, unit: Offsets) -> int:
    """Return the length of a text in UTF-16 units or bytes; halves of characters, which JSON can hold, count too."""
    if unit == "utf16":
        return len(text.encode("utf-16-le", "surrogatepass")) // 2
    return len(text.encode("utf-8", "surrogatepass"))


def xcomet_spans(items: Sequence[object], text: str, notes: Tally) -> tuple[ErrorSpan, ...]:
    """Return the spans that xCOMET found in a hypothesis."""
    spans = []
    for item in map(_mapping, items):
        start, end = _whole(item, "start"), _whole(item, "end")
        first, last = trim(text, _inside(start, end, text, notes))
        if (first, last) != (start, end):
            notes["blanks trimmed"] += 1
        said = item.get("text")
        if isinstance(said, str) and said.strip() != text[first:last]:
            notes["text differs from its offsets"] += 1
        spans.append(
            ErrorSpan(first, last, severity_of(item), _text(item, "category"), confidence=_number(item, "confidence"))
        )
    return tuple(spans)


def xcomet_items(spans: Sequence[ErrorSpan], text: str, lost: Tally) -> list[dict[str, object]]:
    """Return spans of the hypothesis as xCOMET writes them."""
    items = []
    for span in _of_hypothesis(spans, lost):
        if span.start == span.end:
            lost[OMISSION] += 1
            continue
        _count(lost, span, "category", "score")
        item: dict[str, object] = {"text": text[span.start : span.end], "start": span.start, "end": span.end}
        item["severity"] = span.severity
        items.append(item | ({} if span.confidence is None else {"confidence": span.confidence}))
    return items


def mtme_spans(rating: object, segment: Segment, notes: Tally) -> tuple[ErrorSpan, ...] | None:
    """Return the spans of a rating of mt-metrics-eval; None where there is no rating."""
    if rating is None:
        return None
    errors = _mapping(rating).get("errors")
    if not isinstance(errors, list):
        raise BadSpan(f"errors is {errors!r}, expected a list")
    spans = []
    for item in map(_mapping, errors):
        side = Side.SOURCE if item.get("is_source_error") else Side.HYPOTHESIS
        text = (segment.source or "") if side is Side.SOURCE else segment.hypothesis
        start, end = _inside(_whole(item, "start"), _whole(item, "end"), text, notes)
        spans.append(
            ErrorSpan(start, end, severity_of(item), _text(item, "category"), side, score=_number(item, "score"))
        )
    return tuple(spans)


def mtme_rating(spans: Sequence[ErrorSpan] | None, lost: Tally) -> dict[str, object] | None:
    """Return a rating of mt-metrics-eval."""
    if spans is None:
        return None
    errors: list[dict[str, object]] = []
    for span in spans:
        if span.side is Side.REFERENCE:
            lost["span of a reference"] += 1
            continue
        _count(lost, span, "confidence")
        known = {"start": span.start, "end": span.end, "category": span.category, "severity": span.severity}
        errors.append({**known, "score": span.score, "is_source_error": span.side is Side.SOURCE})
    return {"errors": errors}


def pearmut_spans(
    items: Sequence[object], text: str, notes: Tally, unit: Offsets = "codepoints"
) -> tuple[ErrorSpan, ...]:
    """Return the spans of an ESA campaign; `missing` is an omission, put at the end of the text."""
    spans = []
    for item in map(_mapping, items):
        category = _text(item, "category")
        if MISSING in (item.get("start_i"), item.get("end_i")):
            spans.append(ErrorSpan(len(text), len(text), severity_of(item), category or OMISSION))
            continue
        first, last = (to_codepoints(text, _whole(item, key), unit) for key in ("start_i", "end_i"))
        start, end = _inside(first, last + 1, text, notes)
        spans.append(ErrorSpan(start, end, severity_of(item), category))
    return tuple(spans)


def pearmut_items(
    spans: Sequence[ErrorSpan], text: str, lost: Tally, unit: Offsets = "codepoints"
) -> list[dict[str, object]]:
    """Return spans of the hypothesis for an ESA campaign, for instance to fill it in beforehand."""
    items: list[dict[str, object]] = []
    for span in _of_hypothesis(spans, lost):
        _count(lost, span, "score", "confidence")
        known = {"severity": span.severity, "category": span.category}
        if span.start == span.end:
            if span.start != len(text):
                lost["place of an omission"] += 1
            items.append({"start_i": MISSING, "end_i": MISSING, **known})
            continue
        first, last = (from_codepoints(text, offset, unit) for offset in (span.start, span.end - 1))
        items.append({"start_i": first, "end_i": last, **known})
    return items


def wmtqe_spans(lists: Lists, text: str, notes: Tally) -> tuple[ErrorSpan, ...]:
    """Return the spans in the three columns of WMT QE task 2."""
    starts, ends, types = lists.starts.split(), lists.ends.split(), lists.types.split()
    if not len(starts) == len(ends) == len(types):
        raise BadSpan(f"{len(starts)} starts, {len(ends)} ends and {len(types)} types: every span needs all three")
    spans = []
    for first, last, kind in zip(starts, ends, types, strict=True):
        start, end = _integer(first), _integer(last)
        if start == end == -1:
            continue
        if start >= len(text):
            spans.append(ErrorSpan(len(text), len(text), _severity(kind), OMISSION))
            continue
        # A single place stands for the character there.
        start, end = _inside(start, end + (start == end), text, notes)
        spans.append(ErrorSpan(start, end, _severity(kind)))
    return tuple(spans)


def wmtqe_lists(spans: Sequence[ErrorSpan], text: str, lost: Tally) -> Lists:
    """Return spans of the hypothesis in the three columns of WMT QE task 2."""
    rows = []
    for span in _of_hypothesis(spans, lost):
        empty = span.start == span.end
        if empty and span.start != len(text):
            lost["place of an omission"] += 1
        _count(lost, span, "score", "confidence", *(() if empty and span.category == OMISSION else ("category",)))
        start, end = (len(text), len(text)) if empty else (span.start, span.end)
        rows.append((str(start), str(end), span.severity or "minor"))
        if span.severity is None:
            lost["unknown severity, written as minor"] += 1
    return Lists(*(" ".join(column) for column in zip(*rows, strict=True))) if rows else NO_ERROR


def located(tokens: Sequence[str], text: str) -> Words:
    """Return where tokens stand in their text, from left to right; one that is not there is an error."""
    spans, at = [], 0
    for token in tokens:
        start = text.find(token, at)
        if start < 0:
            raise BadSpan(f"the token {token!r} is not in the text after character {at}")
        at = start + len(token)
        spans.append((start, at))
    return Words(text, tuple(spans))


def token_span(words: Words, first: int, last: int) -> tuple[int, int]:
    """Return the characters from one token to another, both included."""
    if not 0 <= first <= last < len(words):
        raise BadSpan(f"tokens {first} to {last} are outside a text of {len(words)} tokens")
    return words.spans[first][0], words.spans[last][1]


def tokens_of(words: Words, span: ErrorSpan) -> tuple[int, int] | None:
    """Return the first and last token a span touches; None where it touches none."""
    touched = [k for k, (start, end) in enumerate(words.spans) if start < span.end and span.start < end]
    return (touched[0], touched[-1]) if touched else None


def severity_of(item: Mapping[str, object]) -> Severity | None:
    """Return the severity of a foreign span, in lower case."""
    value = item.get("severity")
    return None if value is None or value == "" else _severity(str(value))


def _severity(value: str) -> Severity:
    for severity in _SEVERITIES:
        if value.lower() == severity:
            return severity
    raise BadSpan(f"severity is {value!r}, expected {', '.join(_SEVERITIES)}")


def _of_hypothesis(spans: Sequence[ErrorSpan], lost: Tally) -> list[ErrorSpan]:
    for span in spans:
        if span.side is not Side.HYPOTHESIS:
            lost[f"span of a {span.side}"] += 1
    return [span for span in spans if span.side is Side.HYPOTHESIS]


def _count(lost: Tally, span: ErrorSpan, *fields: str) -> None:
    for name in fields:
        if getattr(span, name) is not None:
            lost[name] += 1


def _inside(start: int, end: int, text: str, notes: Tally) -> tuple[int, int]:
    """Return a span clipped to its text, and note where that was needed."""
    if start < 0 or end < start:
        raise BadSpan(f"the span {start}-{end} is no span: expected 0 <= start <= end")
    kept = min(start, len(text)), min(end, len(text))
    if kept != (start, end):
        notes["clipped to the text"] += 1
    return kept


def _mapping(item: object) -> Mapping[str, object]:
    if not isinstance(item, Mapping):
        raise BadSpan(f"expected an object, got {item!r}")
    return item


def _whole(item: Mapping[str, object], key: str) -> int:
    value = item.get(key)
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadSpan(f"{key} is {value!r}, expected a whole number")
    return value


def _integer(cell: str) -> int:
    try:
        return int(cell)
    except ValueError as error:
        raise BadSpan(f"{cell!r} is no whole number") from error


def _text(item: Mapping[str, object], key: str) -> str | None:
    value = item.get(key)
    return None if value is None else str(value)


def _number(item: Mapping[str, object], key: str) -> float | None:
    value = item.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadSpan(f"{key} is {value!r}, expected a number")
    return float(value)
