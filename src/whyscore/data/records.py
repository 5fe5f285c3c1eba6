"""Records: the JSON lines that whyscore writes and reads back (`schema` whyscore/1).

1. The first line is the header: what the records are, which signatures stand behind them, which data they are about.
2. Then one object a line, keys in a fixed order. Undefined numbers are null, with a `reason` from a closed list.
3. New optional keys leave `schema_version` as it is; renamed or removed ones raise it. Readers take all older numbers
   and refuse newer ones.

The form of every kind is fixed by the JSON Schema files in `schemas/`; `codec` reads and writes single records. Results
become lines by plain functions, ready for a file (`writing.write_lines`) or a pipe:

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
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Literal, TypeVar, get_args

import msgspec
import numpy as np

from whyscore.data.codec import Where, convert, decode, decode_explanation, encode_explanation
from whyscore.data.files import Limits, TextFile
from whyscore.data.formats.eval4nlp import Judged
from whyscore.data.formats.jsonl import parse_object
from whyscore.data.formats.spans import span_object
from whyscore.errors import ContractError, DataError
from whyscore.text.files import check_reason, finite, line, number, with_nulls
from whyscore.types import HYPOTHESIS, Dataset, Entry, ErrorSpan, ExplanationRecord, Finding, Place, Scores, Side

T = TypeVar("T")
SCHEMA = "whyscore/1"
SCHEMA_KEY = f'an object with "schema": "{SCHEMA}"'
VERSION = 1
Kind = Literal[
    "dataset",
    "scores",
    "totals",
    "documents",
    "explanations",
    "spans",
    "decomposition",
    "comparisons",
    "metaeval",
    "words",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
_ROWS = ("totals", "documents", "decomposition", "comparisons", "metaeval", "words")


@dataclass(frozen=True, slots=True)
class Header:
    """The first line: what stands behind the records that follow."""

    kind: Kind
    signatures: Mapping[str, str] = field(default_factory=dict)
    created: str | None = None
    name: str | None = None
    digest: str | None = None
    languages: tuple[str, str] | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    schema_version: int = VERSION

    def object(self) -> dict[str, object]:
        """Return the header as a JSON object; without a date it is dated now."""
        dataset: dict[str, object] = {"name": self.name, "digest": self.digest}
        if self.languages is not None:
            dataset["languages"] = list(self.languages)
        return {
            "schema": SCHEMA,
            "schema_version": self.schema_version,
            "kind": self.kind,
            "signatures": dict(self.signatures),
            "created": self.created or datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "dataset": dataset,
            "counts": dict(self.counts),
        }

    def line(self) -> str:
        """Return the header as a line of JSON."""
        return line(self.object())


def header_of(
    kind: Kind, dataset: Dataset, signatures: Mapping[str, str] | None = None, created: str | None = None
) -> Header:
    """Return the header for records about a data set."""
    counts = {"entries": len(dataset), "systems": len(dataset.systems), "segments": len(dataset.ids)}
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


class Records:
    """The records of a file: the header now, the objects one by one when iterated over (once)."""

    def __init__(self, file: TextFile, *, drop_torn: bool) -> None:
        self._file, self._drop_torn = file, drop_torn
        self._torn: tuple[Finding, ...] = ()
        self._lines = enumerate(file.lines(), start=1)
        number, first = next(self._lines, (1, ""))
        if not is_header(first):
            raise DataError(f"no header of records: expected {SCHEMA_KEY}", file=file.name, line=1)
        self.header = _header(parse_object(first, file.name, number), file.name)

    def __iter__(self) -> Iterator[dict[str, object]]:
        return (record for _, record in self.numbered())

    def numbered(self) -> Iterator[tuple[int, dict[str, object]]]:
        """Yield the objects with their lines."""
        return ((at, parse_object(text, self._file.name, at)) for at, text in self._texts())

    def explanations(
        self, entries: Mapping[tuple[str, str], int] | None = None, cure: str = ""
    ) -> Iterator[ExplanationRecord]:
        """Yield the objects as explanations of these entries; `cure` says what to do where one is damaged."""
        return (decode_explanation(text, Where(self._file.name, at, cure), entries) for at, text in self._texts())

    def typed(self, kind: type[T], cure: str = "") -> Iterator[tuple[Where, T]]:
        """Yield the objects as a type, with their places."""
        for at, text in self._texts():
            where = Where(self._file.name, at, cure)
            yield where, decode(kind, text, where)

    def _texts(self) -> Iterator[tuple[int, str]]:
        for at, text in self._lines:
            if not self._file.ended:
                if self._drop_torn:
                    self._torn = (Finding("torn-line", "the last line is torn and was left out", self._file.name, at),)
                    return
                self._check_torn(text, at)
            yield at, text

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was noticed; complete after the last object."""
        return self._torn or self._file.findings

    def _check_torn(self, text: str, number: int) -> None:
        try:
            parse_object(text, self._file.name, number)
        except DataError as error:
            message = "the last line is torn, as when a run was stopped: resume the run, or delete the line"
            raise DataError(message, file=self._file.name, line=number) from error


def read_records(
    path: str | Path, *, kind: Kind | None = None, drop_torn: bool = False, limits: Limits | None = None
) -> Records:
    """Return the records in a file.

    Args:
        path: the file.
        kind: refuse records of other kinds.
        drop_torn: leave out a last line without a newline, for resuming a run that was stopped; otherwise it is an
            error where it is not whole.
        limits: guards against huge files.
    """
    records = Records(TextFile(path, limits=limits, torn=drop_torn), drop_torn=drop_torn)
    if kind is not None and records.header.kind != kind:
        raise DataError(f"holds records of the kind {records.header.kind!r}, expected {kind!r}", file=str(path), line=1)
    return records


def is_header(text: str) -> bool:
    """Return whether a line is the header of records."""
    if '"schema"' not in text:
        return False
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and str(value.get("schema")).startswith("whyscore/")


def schema(kind: Kind | Literal["header"]) -> dict[str, object]:
    """Return the JSON Schema of the header or of a kind of records."""
    name = "rows" if kind in _ROWS else kind
    text = (resources.files("whyscore.data") / "schemas" / f"{name}.json").read_text(encoding="utf-8")
    loaded: dict[str, object] = json.loads(text)
    return loaded


class _About(msgspec.Struct, frozen=True):
    name: str | None = None
    digest: str | None = None
    languages: tuple[str, str] | None = None


class _Header(msgspec.Struct):
    kind: Kind
    signatures: dict[str, str] = {}
    created: str | None = None
    dataset: _About = _About()
    counts: dict[str, int] = {}


def _header(value: dict[str, object], file: str) -> Header:
    version = value.get("schema_version")
    if not isinstance(version, int) or version < 1:
        raise DataError(f"'schema_version' is {version!r}, expected a whole number", file=file, line=1)
    if version > VERSION:
        raise DataError(
            f"written by a newer whyscore (schema_version {version}, this one reads up to {VERSION}): update whyscore",
            file=file,
            line=1,
        )
    header = convert(_Header, value, Where(file, 1))
    about = header.dataset
    names = about.name, about.digest, about.languages
    return Header(header.kind, header.signatures, header.created, *names, header.counts, version)


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
    signatures = {name: str(score.signature) for name, score in scores.items()}
    yield header_of("scores", dataset, signatures, created).line()
    for record in score_records(dataset, scores, parts=parts, truncated=truncated, reasons=reasons):
        yield line(record)


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
        if len(score) != len(dataset):
            raise ContractError(f"{name} has {len(score)} scores for {len(dataset)} entries")
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
    yield header_of("explanations", dataset, signatures, created).line()
    for item in explained:
        yield encode_explanation(item)


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
        yield line(with_nulls(row))


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
