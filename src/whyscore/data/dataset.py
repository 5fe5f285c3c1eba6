"""A data set as records and back: entry for entry, text for text, span for span.

Keys that hold nothing are left out. `spans` tells a segment without errors (`[]`) from one that nobody rated (no key).
"""

import math
from collections.abc import Iterator
from importlib import resources
from itertools import chain
from pathlib import Path

import msgspec

from whyscore.data.codec import Records
from whyscore.data.files import TextFile
from whyscore.data.formats.spans import BadSpan, span_object, spans_of
from whyscore.data.records import header_of
from whyscore.errors import DataError
from whyscore.text.files import finite, line
from whyscore.types import Dataset, Entry, Origin, Segment


def dataset_lines(dataset: Dataset, *, created: str | None = None) -> Iterator[str]:
    """Yield a data set as the lines of a file of records."""
    head = header_of("dataset", dataset, created=created)
    return map(line, chain([head.object()], map(_object, dataset.entries)))


def read_dataset(path: str | Path) -> Dataset:
    """Return the data set in a file of records."""
    return dataset_of(TextFile(path))


def dataset_of(file: TextFile) -> Dataset:
    """Return the data set in a file of which nothing has been read yet."""
    records = Records(file, drop_torn=False)
    header = records.header
    if header.kind != "dataset":
        raise DataError(f"holds records of the kind {header.kind!r}, expected 'dataset'", file=file.name, line=1)
    entries, lines = [], []
    first: dict[tuple[str, str], int] = {}
    for where, record in records.typed(_Entry):
        try:
            entry = _entry(record)
        except (BadSpan, DataError) as error:
            raise where.error(str(error)) from error
        key, number = (entry.system, entry.id), where.line or 0
        if key in first:
            raise where.error(f"system {entry.system!r} has the id {entry.id!r} twice, first on line {first[key]}")
        first[key] = number
        entries.append(entry)
        lines.append(number)
    origin = Origin.table(file.name, list(dict.fromkeys(entry.system for entry in entries)), lines)
    name = header.name or Path(file.name).name
    return Dataset(name, tuple(entries), header.languages, records.findings, origin)


def _object(entry: Entry) -> dict[str, object]:
    segment = entry.segment
    record: dict[str, object] = {"id": entry.id, "system": entry.system, **_texts(segment)}
    if segment.context:
        record["context"] = [_texts(previous) for previous in segment.context]
    human = {name: float(value) for name, value in entry.human.items() if math.isfinite(value)}
    if human:
        record["human"] = human
    if entry.spans is not None:
        record["spans"] = [span_object(span, segment) for span in entry.spans]
    if entry.document is not None:
        record["document"] = entry.document
    if entry.extra:
        record["extra"] = finite(entry.extra)
    return record


def _texts(segment: Segment) -> dict[str, object]:
    record: dict[str, object] = {"hypothesis": segment.hypothesis}
    if segment.source is not None:
        record["source"] = segment.source
    if segment.references:
        record["references"] = list(segment.references)
    return record


class _Context(msgspec.Struct):
    hypothesis: str
    source: str | None = None
    references: tuple[str, ...] = ()


class _Entry(msgspec.Struct):
    id: str
    system: str
    hypothesis: str
    source: str | None = None
    references: tuple[str, ...] = ()
    context: tuple[_Context, ...] = ()
    human: dict[str, float] = {}
    spans: object = None
    document: str | None = None
    extra: dict[str, object] = {}


def _entry(record: _Entry) -> Entry:
    context = tuple(Segment(previous.hypothesis, previous.source, previous.references) for previous in record.context)
    segment = Segment(record.hypothesis, record.source, record.references, context)
    spans = spans_of(record.spans, segment)
    return Entry(record.id, record.system, segment, record.human, spans, record.document, record.extra)


FILE = "ted_zhen_sample.jsonl"


def sample() -> Dataset:
    """Return 100 segments of TED talks, Chinese to English, five systems, rated by people (`mqm`).

    Each entry has its source, two references, the MQM score (0 is perfect, below is worse) and the error spans that a
    professional marked. See NOTICE for where they come from, and `scripts/make_sample.py` for how they were chosen.
    """
    with resources.as_file(resources.files("whyscore") / "data" / FILE) as path:
        return read_dataset(path)
