"""Error spans as JSON objects and back, in whyscore's own form.

Offsets are half-open code points into the text of the span's side; `text`, where given, must be that slice. A missing
`side` is the hypothesis. Foreign dialects are converted before they come here.
"""

import json
from collections.abc import Mapping
from typing import get_args

from whyscore.errors import DataError
from whyscore.text.files import whole
from whyscore.types import ErrorSpan, Place, Segment, Severity, Side

_SEVERITIES = get_args(Severity)


class BadSpan(ValueError):
    """What is wrong with a span; the reader adds file and line."""


def span_object(span: ErrorSpan, segment: Segment) -> dict[str, object]:
    """Return a span as an object for JSON, with the text it marks; numbers that are not known are left out."""
    text = segment.text(Place(span.side, span.reference))[span.start : span.end]
    record: dict[str, object] = {"side": str(span.side)}
    if span.reference is not None:
        record["reference"] = span.reference
    record |= {"start": span.start, "end": span.end, "text": text, "severity": span.severity, "category": span.category}
    return record | {
        key: value for key, value in (("score", span.score), ("confidence", span.confidence)) if value is not None
    }


def spans_of(value: object, segment: Segment) -> tuple[ErrorSpan, ...] | None:
    """Return the spans of a JSON value (or of JSON in a table's cell); None where the segment was not rated."""
    if isinstance(value, str):
        value = _parse(value)
    if value is None:
        return None
    if not isinstance(value, list):
        raise BadSpan(f"expected a list of spans, got {value!r}")
    return tuple(_span(item, segment) for item in value)


def _parse(cell: str) -> object:
    if not cell:
        return None
    try:
        return json.loads(cell, parse_int=whole)
    except (ValueError, RecursionError) as error:
        raise BadSpan(f"expected a list of spans in JSON, got {cell!r}") from error


def _span(item: object, segment: Segment) -> ErrorSpan:
    if not isinstance(item, Mapping):
        raise BadSpan(f"expected a span with start and end, got {item!r}")
    start, end = (whole_at(item, key) for key in ("start", "end"))
    side = item.get("side") or Side.HYPOTHESIS
    if side not in tuple(Side):
        raise BadSpan(f"side is {side!r}, expected {', '.join(Side)}")
    severity = item.get("severity")
    if severity is not None and severity not in _SEVERITIES:
        raise BadSpan(f"severity is {severity!r}, expected {', '.join(_SEVERITIES)} or null")
    reference = whole_at(item, "reference") if side == Side.REFERENCE else None
    _check(item, _text(segment, Place(Side(side), reference)), start, end)
    category = item.get("category")
    return ErrorSpan(
        start,
        end,
        severity,
        None if category is None else str(category),
        Side(side),
        reference,
        number_at(item, "score"),
        number_at(item, "confidence"),
    )


def _text(segment: Segment, place: Place) -> str:
    try:
        return segment.text(place)
    except DataError as error:
        raise BadSpan(error.message) from error


def _check(item: Mapping[str, object], text: str, start: int, end: int) -> None:
    if not 0 <= start <= end <= len(text):
        if 0 <= end < start <= len(text):
            raise BadSpan(f"the span {start}-{end} ends before it begins: swap start and end")
        units = len(text.encode("utf-16-le", "surrogatepass")) // 2
        hint = ""
        if len(text) < end <= units:
            hint = f"; it has {units} UTF-16 units, but offsets count code points"
        raise BadSpan(f"the span {start}-{end} is outside a text of {len(text)} characters{hint}")
    quoted = item.get("text")
    if quoted is not None and quoted != text[start:end]:
        raise BadSpan(f"the span {start}-{end} holds {text[start:end]!r}, but its text is {quoted!r}")


def whole_at(item: Mapping[str, object], key: str) -> int:
    """Return a whole number of a span."""
    value = item.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadSpan(f"{key} is {value!r}, expected a whole number")
    return value


def number_at(item: Mapping[str, object], key: str) -> float | None:
    """Return a number of a span, if it has it."""
    value = item.get(key)
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise BadSpan(f"{key} is {value!r}, expected a number")
    return float(value)
