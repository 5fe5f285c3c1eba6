"""Records: the JSON lines that whyscore writes and reads back (`schema` whyscore/1).

1. The first line is the header: what the records are, which signatures stand behind them, which data they are about.
2. Then one object a line, keys in a fixed order. Undefined numbers are null, with a `reason` from a closed list.
3. New optional keys leave `schema_version` as it is; renamed or removed ones raise it.

The form of every kind is fixed by the JSON Schema files in `schemas/`; `codec` reads files of records. Results become
lines by plain functions, ready for a file (`writing.write_lines`) or a pipe:

| function | kind |
|---|---|
| `score_lines` | scores: one line per metric and entry |
| `explanation_lines` | explanations: one line per explained text |
| `span_lines` | spans: one line per entry and text that has spans, or that was rated without finding any |
| `row_lines` | decomposition, comparisons, metaeval, words: one line per row of the table |

Stored explanations read back: by system, metric and explainer, then by side, then by id.

Only explanations of the hypothesis and of the source are kept: the shared tasks and spans are about these.
"""

import hashlib
import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import chain
from pathlib import Path
from typing import Literal

import numpy as np

from whyscore.data.codec import Header, Kind, encode_explanation, read_records
from whyscore.data.formats.eval4nlp import Judged
from whyscore.data.formats.spans import span_object
from whyscore.errors import ContractError, DataError
from whyscore.text.files import check_reason, finite, line, number, with_nulls
from whyscore.types import HYPOTHESIS, Dataset, Entry, ErrorSpan, ExplanationRecord, Place, Scores, Side

_ROWS = ("totals", "documents", "decomposition", "comparisons", "metaeval", "words")


def header_of(
    kind: Kind, dataset: Dataset, signatures: Mapping[str, str] | None = None, created: str | None = None
) -> Header:
    """Return the header for records about a data set."""
    counts = {"entries": len(dataset.entries), "systems": len(dataset.systems), "segments": len(dataset.ids)}
    if realigned := sum("realigned" in entry.extra for entry in dataset.entries):
        counts["realigned"] = realigned
    return Header(kind, signatures or {}, created, dataset.name, digest(dataset), dataset.languages, counts)


def digest(dataset: Dataset) -> str:
    """Return a fingerprint of ids, systems and texts: equal where the same work was done on the same texts."""
    state = hashlib.blake2b(digest_size=16)
    for entry in dataset.entries:
        segment = entry.segment
        source = () if segment.source is None else (segment.source,)
        # The counts keep texts from sliding from one field into the next.
        before = [
            text
            for previous in segment.context
            for text in (previous.hypothesis, previous.source or "", *previous.references)
        ]
        parts = (entry.id, entry.system, segment.hypothesis, *source, *segment.references, *before)
        marked = f"{len(source)},{len(segment.references)};" + "".join(f"{len(part)}:{part}" for part in parts)
        state.update(marked.encode("utf-8", "surrogatepass"))
    return state.hexdigest()


def schema(kind: Kind | Literal["header"]) -> dict[str, object]:
    """Return the JSON Schema of the header or of a kind of records."""
    name = "rows" if kind in _ROWS else kind
    text = (resources.files("whyscore.data") / "schemas" / f"{name}.json").read_text(encoding="utf-8")
    loaded: dict[str, object] = json.loads(text)
    return loaded


_SPAN_KEYS = ("start", "end", "text", "severity", "category", "score", "confidence")


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
    head = header_of("scores", dataset, {name: str(score.signature) for name, score in scores.items()}, created)
    records = score_records(dataset, scores, parts=parts, truncated=truncated, reasons=reasons)
    return map(line, chain([head.object()], records))


def score_records(
    dataset: Dataset,
    scores: Mapping[str, Scores],
    *,
    parts: bool | Collection[str] = False,
    truncated: Mapping[str, Collection[int] | Mapping[int, Mapping[str, Sequence[int]]]] | None = None,
    reasons: Mapping[str, Mapping[int, str]] | None = None,
) -> Iterator[dict[str, object]]:
    """Yield the records of `score_lines`."""
    for name, score in scores.items():
        if len(score.values) != len(dataset.entries):
            raise ContractError(f"{name} has {len(score.values)} scores for {len(dataset.entries)} entries")
        cut = (truncated or {}).get(name, ())
        why = (reasons or {}).get(name, score.reasons)
        for k, (entry, value) in enumerate(zip(dataset.entries, score.values.tolist(), strict=True)):
            record: dict[str, object] = {"id": entry.id, "system": entry.system, "metric": name, "score": number(value)}
            if (parts is True or (parts and name in parts)) and score.rows is not None:
                row = score.rows[k].tolist()
                record["parts"] = {part: number(item) for part, item in zip(score.columns, row, strict=True)}
            if k in cut:
                record["truncated"] = finite(cut[k]) if isinstance(cut, Mapping) else True
            if not math.isfinite(value):
                record["reason"] = check_reason(why.get(k, "undefined"))
            yield record


def explanation_lines(
    dataset: Dataset,
    explained: Iterable[ExplanationRecord],
    signatures: Mapping[str, str],
    *,
    created: str | None = None,
) -> Iterator[str]:
    """Yield explanations as they come; `signatures` names what stands behind them."""
    head = header_of("explanations", dataset, signatures, created)
    return chain([head.line()], map(encode_explanation, explained))


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
    head = header_of(kind, dataset, signatures, created)
    return map(line, chain([head.object()], map(with_nulls, rows)))


def _span(span: ErrorSpan, entry: Entry) -> dict[str, object]:
    fields = span_object(span, entry.segment)
    return {key: fields.get(key) for key in _SPAN_KEYS}


_SIDES: dict[Side, Judged] = {Side.HYPOTHESIS: "target", Side.SOURCE: "source"}


@dataclass(frozen=True, eq=False)
class StoredExplanations:
    """Explanations of a file; a group's name says what differs within the file."""

    file: str
    groups: Mapping[str, Mapping[Judged, Mapping[str, ExplanationRecord]]]


def read_explanations(path: str | Path) -> StoredExplanations:
    """Return the explanations in a file of records."""
    rows: dict[tuple[str, str, str], dict[Judged, dict[str, ExplanationRecord]]] = {}
    for explanation in read_records(path, kind="explanations").explanations():
        side = _SIDES.get(explanation.place.side)
        if side is None:
            continue
        undefined = np.isnan(explanation.importance)
        if undefined.any():
            word = explanation.words[int(np.argmax(undefined))]
            raise DataError(
                f"the importance of {word!r} is null, expected a number", file=str(path), line=explanation.line
            )
        texts = rows.setdefault((explanation.system, explanation.metric, explanation.explainer), {}).setdefault(
            side, {}
        )
        if explanation.id in texts:
            message = f"the id {explanation.id!r} is explained twice, first on line {texts[explanation.id].line}"
            raise DataError(message, file=str(path), line=explanation.line)
        texts[explanation.id] = explanation
    return StoredExplanations(str(path), dict(zip(_names(list(rows)), rows.values(), strict=True)))


def _names(keys: list[tuple[str, str, str]]) -> list[str]:
    """Return short names: metric and explainer always, the system where there are several."""
    several = len({system for system, _, _ in keys}) > 1
    return [f"{system} {metric} {how}" if several else f"{metric} {how}" for system, metric, how in keys]
