"""Records: the JSON lines that whyscore writes and reads back (`schema` whyscore/1).

1. The first line is the header: what the records are, which signatures stand behind them, which data they are about.
2. Then one object a line, keys in a fixed order. Undefined numbers are null, with a `reason` from a closed list.
3. New optional keys leave `schema_version` as it is; renamed or removed ones raise it. Readers take all older numbers
   and refuse newer ones.

The form of every kind is fixed by the JSON Schema files in `schemas/`.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Literal, get_args

from whyscore.errors import DataError
from whyscore.io.files import TextFile
from whyscore.io.jsonl import parsed
from whyscore.io.strict import line
from whyscore.io.unpacking import Limits
from whyscore.types import Dataset, Finding

SCHEMA = "whyscore/1"
SCHEMA_KEY = f'an object with "schema": "{SCHEMA}"'
VERSION = 1
Kind = Literal[
    "dataset", "scores", "totals", "explanations", "spans", "decomposition", "comparisons", "metaeval", "words"
]
KINDS: tuple[Kind, ...] = get_args(Kind)
_ROWS = ("totals", "decomposition", "comparisons", "metaeval", "words")


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

    def line(self) -> str:
        """Return the header as a line of JSON; without a date it is dated now."""
        dataset: dict[str, object] = {"name": self.name, "digest": self.digest}
        if self.languages is not None:
            dataset["languages"] = list(self.languages)
        return line(
            {
                "schema": SCHEMA,
                "schema_version": self.schema_version,
                "kind": self.kind,
                "signatures": dict(self.signatures),
                "created": self.created or datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
                "dataset": dataset,
                "counts": dict(self.counts),
            }
        )


def header_of(
    kind: Kind, dataset: Dataset, signatures: Mapping[str, str] | None = None, created: str | None = None
) -> Header:
    """Return the header for records about a data set."""
    counts = {"entries": len(dataset), "systems": len(dataset.systems), "segments": len(dataset.ids)}
    return Header(kind, signatures or {}, created, dataset.name, digest(dataset), dataset.languages, counts)


def digest(dataset: Dataset) -> str:
    """Return a fingerprint of ids, systems and texts: equal where the same work was done on the same texts."""
    state = hashlib.blake2b(digest_size=16)
    for entry in dataset.entries:
        segment = entry.segment
        source = () if segment.source is None else (segment.source,)
        # The counts keep texts from sliding from one field into the next.
        parts = (entry.id, entry.system, segment.hypothesis, *source, *segment.references)
        marked = f"{len(source)},{len(segment.references)};" + "".join(f"{len(part)}:{part}" for part in parts)
        state.update(marked.encode("utf-8", "surrogatepass"))
    return state.hexdigest()


class Records:
    """The records of a file: the header now, the objects one by one when iterated over (once)."""

    def __init__(self, file: TextFile, *, drop_torn: bool) -> None:
        """Read the header."""
        self._file, self._drop_torn = file, drop_torn
        self._torn: tuple[Finding, ...] = ()
        self._lines = enumerate(file.lines(), start=1)
        number, first = next(self._lines, (1, ""))
        if not is_header(first):
            raise DataError(f"no header of records: expected {SCHEMA_KEY}", file=file.name, line=1)
        self.header = _header(parsed(first, file.name, number), file.name)

    def __iter__(self) -> Iterator[dict[str, object]]:
        """Yield the objects after the header."""
        return (record for _, record in self.numbered())

    def numbered(self) -> Iterator[tuple[int, dict[str, object]]]:
        """Yield the objects with their lines."""
        for number, text in self._lines:
            if not self._file.ended:
                if self._drop_torn:
                    self._torn = (Finding("the last line is torn and was left out", self._file.name, number),)
                    return
                self._check_torn(text, number)
            yield number, parsed(text, self._file.name, number)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was noticed; complete after the last object."""
        return self._torn or self._file.findings

    def _check_torn(self, text: str, number: int) -> None:
        try:
            parsed(text, self._file.name, number)
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
    text = (resources.files("whyscore.io") / "schemas" / f"{name}.json").read_text(encoding="utf-8")
    loaded: dict[str, object] = json.loads(text)
    return loaded


def _header(value: dict[str, object], file: str) -> Header:
    version, kind = value.get("schema_version"), value.get("kind")
    if not isinstance(version, int) or version < 1:
        raise DataError(f"'schema_version' is {version!r}, expected a whole number", file=file, line=1)
    if version > VERSION:
        raise DataError(
            f"written by a newer whyscore (schema_version {version}, this one reads up to {VERSION}): update whyscore",
            file=file,
            line=1,
        )
    if kind not in KINDS:
        raise DataError(f"'kind' is {kind!r}, expected one of {', '.join(KINDS)}", file=file, line=1)
    about, signatures, counts = (_object(value, key, file) for key in ("dataset", "signatures", "counts"))
    pair = about.get("languages")
    return Header(
        kind,
        {str(key): str(text) for key, text in signatures.items()},
        _text(value.get("created")),
        _text(about.get("name")),
        _text(about.get("digest")),
        (str(pair[0]), str(pair[1])) if isinstance(pair, list) and len(pair) == 2 else None,  # noqa: PLR2004 - a pair
        {key: number for key, number in counts.items() if isinstance(number, int)},
        version,
    )


def _object(value: dict[str, object], key: str, file: str) -> dict[str, object]:
    found = value.get(key, {})
    if not isinstance(found, dict):
        raise DataError(f"{key!r} is {found!r}, expected an object", file=file, line=1)
    return found


def _text(value: object) -> str | None:
    return None if value is None else str(value)
