"""A data set as records and back: entry for entry, text for text, span for span.

Keys that hold nothing are left out. `spans` tells a segment without errors (`[]`) from one that nobody rated (no key).
"""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from whyscore.data.files import TextFile
from whyscore.data.formats.spans import BadSpan, span_object, spans_of
from whyscore.data.located import Located, Origin
from whyscore.data.records import Records, header_of
from whyscore.errors import DataError
from whyscore.text.strict import finite, line
from whyscore.types import Dataset, Entry, Segment


def dataset_lines(dataset: Dataset, *, created: str | None = None) -> Iterator[str]:
    """Yield a data set as the lines of a file of records."""
    yield header_of("dataset", dataset, created=created).line()
    for entry in dataset.entries:
        yield line(_object(entry))


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
    for number, record in records.numbered():
        try:
            entry = _entry(record)
        except (BadSpan, DataError) as error:
            raise DataError(str(error), file=file.name, line=number) from error
        key = entry.system, entry.id
        if key in first:
            message = f"system {entry.system!r} has the id {entry.id!r} twice, first on line {first[key]}"
            raise DataError(message, file=file.name, line=number)
        first[key] = number
        entries.append(entry)
        lines.append(number)
    origin = Origin.table(file.name, list(dict.fromkeys(entry.system for entry in entries)), lines)
    name = header.name or Path(file.name).name
    return Located(name, tuple(entries), header.languages, records.findings, origin)


def _object(entry: Entry) -> dict[str, object]:
    segment = entry.segment
    found: dict[str, object] = {"id": entry.id, "system": entry.system, "hypothesis": segment.hypothesis}
    if segment.source is not None:
        found["source"] = segment.source
    if segment.references:
        found["references"] = list(segment.references)
    human = {name: float(value) for name, value in entry.human.items() if math.isfinite(value)}
    if human:
        found["human"] = human
    if entry.spans is not None:
        found["spans"] = [span_object(span, segment) for span in entry.spans]
    if entry.document is not None:
        found["document"] = entry.document
    if entry.extra:
        found["extra"] = finite(entry.extra)
    return found


def _entry(record: Mapping[str, object]) -> Entry:
    references = record.get("references", [])
    if not isinstance(references, list):
        raise DataError(f"'references' is {references!r}, expected a list of texts")
    # A segment refuses what is not text.
    segment = Segment(record.get("hypothesis"), record.get("source"), tuple(references))  # type: ignore[arg-type]
    document = record.get("document")
    return Entry(
        _text(record, "id"),
        _text(record, "system"),
        segment,
        _human(record.get("human", {})),
        spans_of(record.get("spans"), segment),
        None if document is None else str(document),
        _extra(record.get("extra", {})),
    )


def _text(record: Mapping[str, object], key: str) -> str:
    value = record.get(key)
    if not isinstance(value, str):
        raise DataError(f"{key!r} is {value!r}, expected a text")
    return value


def _human(value: object) -> dict[str, float]:
    if not isinstance(value, dict):
        raise DataError(f"'human' is {value!r}, expected an object")
    for name, number in value.items():
        if not isinstance(number, int | float) or isinstance(number, bool):
            raise DataError(f"{name!r} is {number!r}, expected a number")
    return {name: float(number) for name, number in value.items()}


def _extra(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise DataError(f"'extra' is {value!r}, expected an object")
    return value
