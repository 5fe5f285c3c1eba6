"""Results as records: plain functions from values to lines, ready for a file (`atomic.write_lines`) or a pipe.

| function | kind |
|---|---|
| `score_lines` | scores: one line per metric and entry |
| `explanation_lines` | explanations: one line per explained text |
| `span_lines` | spans: one line per entry and text that has spans, or that was rated without finding any |
| `row_lines` | decomposition, comparisons, metaeval, words: one line per row of the table |
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from whyscore.errors import ContractError
from whyscore.io.records import Kind, header_of
from whyscore.io.spans import span_object
from whyscore.io.strict import REASONS, Reason, checked_reason, finite, line, number
from whyscore.types import (
    HYPOTHESIS,
    Dataset,
    Entry,
    ErrorSpan,
    Explanation,
    FloatMatrix,
    Place,
    Scores,
    Words,
)

_SPAN_KEYS = ("start", "end", "text", "severity", "category", "score", "confidence")


class Heat(NamedTuple):
    """How similar each word of an explained text is to each word of the text it is matched with."""

    place: Place | None
    """Of the other text; None where there is nothing to match with."""
    words: Words | None
    """Of the other text."""
    cosines: FloatMatrix
    """Words x words of the other text; NaN where a word was not read."""
    reason: Reason | None = None
    """Why numbers are missing."""


class Explained(NamedTuple):
    """An explanation with the names it goes by."""

    entry: Entry
    metric: str
    explainer: str
    explanation: Explanation
    filled: tuple[int, ...] | None = None
    """Words whose importance was filled in, because the metric gives them none."""
    heat: Heat | None = None
    """The similarities behind it, where they were asked for."""
    parts: Mapping[str, float] | None = None
    """The parts of the score, where the metric has some."""
    matches: Sequence[Sequence[Mapping[str, object]]] | None = None
    """Per word, which words of the other text it was matched with."""


def score_lines(
    dataset: Dataset,
    scores: Mapping[str, Scores],
    *,
    parts: bool | Collection[str] = False,
    truncated: Mapping[str, Collection[int] | Mapping[int, Mapping[str, Sequence[int]]]] | None = None,
    reasons: Mapping[str, Mapping[int, str]] | None = None,
    created: str | None = None,
) -> Iterator[str]:
    """Yield the scores of each metric, entry by entry.

    Args:
        dataset: the entries, aligned with the scores.
        scores: by the name of the metric in the records.
        parts: also write the numbers behind each score (precision, recall, counts); or of which metrics.
        truncated: per metric, the entries whose texts were cut; or by entry and text how many pieces of how many were
            read.
        reasons: per metric, why entries have no score.
        created: the date in the header.
    """
    signatures = {name: str(found.signature) for name, found in scores.items()}
    yield header_of("scores", dataset, signatures, created).line()
    for name, found in scores.items():
        if len(found) != len(dataset):
            raise ContractError(f"{name} has {len(found)} scores for {len(dataset)} entries")
        cut = (truncated or {}).get(name, ())
        why = (reasons or {}).get(name, {})
        for k, (entry, value) in enumerate(zip(dataset.entries, found.values.tolist(), strict=True)):
            record: dict[str, object] = {"id": entry.id, "system": entry.system, "metric": name, "score": number(value)}
            if (parts is True or (parts and name in parts)) and found.rows is not None:
                row = found.rows[k].tolist()
                record["parts"] = {part: number(item) for part, item in zip(found.columns, row, strict=True)}
            if k in cut:
                record["truncated"] = finite(cut[k]) if isinstance(cut, Mapping) else True
            if not math.isfinite(value):
                record["reason"] = checked_reason(why.get(k, "undefined"))
            yield line(record)


def explanation_lines(
    dataset: Dataset, explained: Iterable[Explained], signatures: Mapping[str, str], *, created: str | None = None
) -> Iterator[str]:
    """Yield explanations as they come; `signatures` names what stands behind them."""
    yield header_of("explanations", dataset, signatures, created).line()
    for item in explained:
        yield line(_explanation(item))


def span_lines(dataset: Dataset, origin: str, *, created: str | None = None) -> Iterator[str]:
    """Yield the error spans of a data set; `origin` says who found them (a rater, a metric)."""
    yield header_of("spans", dataset, created=created).line()
    for entry in dataset.entries:
        if entry.spans is None:
            continue
        places: dict[Place, list[ErrorSpan]] = {} if entry.spans else {HYPOTHESIS: []}
        for span in entry.spans:
            places.setdefault(Place(span.side, span.reference), []).append(span)
        for place, spans in places.items():
            yield line(
                {
                    "id": entry.id,
                    "system": entry.system,
                    "origin": origin,
                    "side": str(place.side),
                    "reference": place.reference,
                    "spans": [_span(span, entry) for span in spans],
                }
            )


def row_lines(
    kind: Kind,
    dataset: Dataset,
    rows: Iterable[Mapping[str, object]],
    signatures: Mapping[str, str] | None = None,
    *,
    created: str | None = None,
) -> Iterator[str]:
    """Yield the rows of a result table; where a number is not finite, `reason` says why."""
    yield header_of(kind, dataset, signatures, created).line()
    for row in rows:
        record = {key: finite(value) for key, value in row.items()}
        if any(record[key] is None and value is not None for key, value in row.items()):
            record["reason"] = checked_reason(str(row.get("reason") or "undefined"))
        yield line(record)


def _explanation(item: Explained) -> dict[str, object]:
    entry, found = item.entry, item.explanation
    record: dict[str, object] = {
        "id": entry.id,
        "system": entry.system,
        "metric": item.metric,
        "explainer": item.explainer,
        "side": str(found.place.side),
        "reference": found.place.reference,
        "words": _words(found, item.matches),
        "score": number(found.score),
        "probes": found.probes,
        "fit": number(found.fit),
    }
    known: dict[str, object] = {
        "filled": None if item.filled is None else list(item.filled),
        "method": found.method,
        "flags": list(found.flags) or None,
        "stability": number(found.stability),
        "matrix": None if item.heat is None else _matrix(item.heat),
        "parts": None if item.parts is None else {name: number(value) for name, value in item.parts.items()},
    }
    record |= {key: value for key, value in known.items() if value is not None}
    if not (math.isfinite(found.score) and all(map(math.isfinite, found.importance.tolist()))):
        record["reason"] = next((flag for flag in found.flags if flag in REASONS), "undefined")
    return record


def _words(
    found: Explanation, matches: Sequence[Sequence[Mapping[str, object]]] | None = None
) -> list[dict[str, object]]:
    words: list[dict[str, object]] = [
        {"text": found.words.text[start:end], "start": start, "end": end, "importance": number(value)}
        for (start, end), value in zip(found.words.spans, found.importance.tolist(), strict=True)
    ]
    if found.notes is not None:
        for word, note in zip(words, found.notes, strict=True):
            word["note"] = note
    if matches is not None:
        for word, own in zip(words, matches, strict=True):
            word["matches"] = [finite(dict(match)) for match in own]
    if found.spread is not None:
        for word, spread in zip(words, found.spread.tolist(), strict=True):
            word["spread"] = number(spread)
    return words


def _matrix(heat: Heat) -> dict[str, object]:
    spans = () if heat.words is None else heat.words.spans
    text = "" if heat.words is None else heat.words.text
    record: dict[str, object] = {
        "side": None if heat.place is None else str(heat.place.side),
        "reference": None if heat.place is None else heat.place.reference,
        "words": [{"text": text[start:end], "start": start, "end": end} for start, end in spans],
        "cosines": finite(heat.cosines),
    }
    return record if heat.reason is None else record | {"reason": checked_reason(heat.reason)}


def _span(span: ErrorSpan, entry: Entry) -> dict[str, object]:
    known = span_object(span, entry.segment)
    return {key: known.get(key) for key in _SPAN_KEYS}
