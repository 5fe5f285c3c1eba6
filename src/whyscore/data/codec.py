"""The codec of all records: JSON to typed facts and back, strict, with errors that name file, line and field.

1. `decode` reads a line of JSON as a type, `convert` a value that was parsed before. Types are dataclasses or structs;
   unknown keys are left out, so that files of later versions can be read. A null where a number is expected is NaN.
2. What does not fit is told as `file:line: 'field' is value, expected ...`, with what to do where that is known
   (`find_misfit`).
3. `record_of` returns a fact as a plain object, its keys in the order of the fields.
4. Explanations are held by columns (spans, importances, notes) and written by words: they have functions of their own.
5. A file of records (`read_records`) has a header, which says what they are and which data they are about; then one
   object a line. Readers take all older numbers of `schema_version` and refuse newer ones.
"""

import dataclasses
import json
import math
import sys
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
import numpy as np

from whyscore.data.files import Limits, TextFile
from whyscore.data.formats.jsonl import parse_object
from whyscore.errors import DataError
from whyscore.text.files import REASONS, check_reason, finite, line, number
from whyscore.types import ExplanationRecord, Finding, Place, Segment, Side, SimilarityMatrix, WordMatch

T = TypeVar("T")
_ABSENT = object()
_SCALARS: dict[Any, tuple[tuple[type, ...], str]] = {
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
    str: ((str,), "a text"),
    bool: ((bool,), "true or false"),
    type(None): ((type(None),), "null"),
}


class Where(NamedTuple):
    """The place of a record, and what to do where it is damaged."""

    file: str
    line: int | None = None
    cure: str = ""

    def error(self, what: str) -> DataError:
        """Return the error that says what is wrong here, and what to do."""
        return DataError(f"{what}: {self.cure}" if self.cure else what, file=self.file, line=self.line)


def decode(kind: type[T], text: str, where: Where) -> T:
    """Return what a line of JSON holds, as a type."""
    try:
        value: T = _decoder(kind).decode(text)  # type: ignore[arg-type]
    except (msgspec.MsgspecError, RecursionError, UnicodeEncodeError):
        # The slow way knows half surrogates, says where JSON is broken, and gives the value that does not fit.
        return convert(kind, parse_object(text, where.file, where.line or 1), where)
    return value


def convert(kind: type[T], value: object, where: Where) -> T:
    """Return a parsed JSON value as a type."""
    if isinstance(value, Mapping):
        numbers = _numbers(kind)  # type: ignore[arg-type]
        value = {key: math.nan if item is None and key in numbers else item for key, item in value.items()}
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        _refuse(kind, value, error, where)
    except UnicodeEncodeError as error:
        raise where.error("a name holds half a surrogate pair, expected one of the fields of the record") from error


def record_of(fact: object) -> dict[str, object]:
    """Return a fact as a plain object, and so a fact inside of it."""
    values = {field.name: getattr(fact, field.name) for field in dataclasses.fields(fact)}  # type: ignore[arg-type]
    return {name: _plain(value) for name, value in values.items()}


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value):
        return record_of(value)
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


@cache
def _decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    return msgspec.json.Decoder(kind)


@cache
def _numbers(kind: type) -> frozenset[str]:
    """Return the fields in which null stands for NaN."""
    return frozenset(name for name, hint in _hints(kind).items() if hint is float)


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


class Misfit(NamedTuple):
    """A value that does not fit a type: where it stands, what it is, and what was expected."""

    path: str
    value: object
    wanted: str


def find_misfit(hint: Any, value: object, path: str = "") -> Misfit | None:  # noqa: ANN401 - any type
    """Return the first value that does not fit a type; None where all fit.

    msgspec tells what it refuses as a sentence for people, so a value it refused is looked through again.
    """
    origin, inner = get_origin(hint) or hint, get_args(hint)
    if origin in (Union, types.UnionType):
        return _misfit_of_all(inner, value, path)
    if choices := _choices(hint):
        return None if value in choices else Misfit(path, value, f"one of {', '.join(choices)}")
    if origin in (list, tuple):
        return _misfit_in_list(inner, value, path)
    if origin in (dict, Mapping):
        return _misfit_in_mapping(inner[1], value, path)
    if dataclasses.is_dataclass(hint) or isinstance(hint, msgspec.StructMeta):
        return _misfit_in_object(hint, value, path)
    fits, expected = _SCALARS.get(hint, ((object,), "a value"))
    wrong = not isinstance(value, fits) or (isinstance(value, bool) and hint in (int, float))
    return Misfit(path, value, expected) if wrong else None


def _misfit_of_all(inner: Sequence[Any], value: object, path: str) -> Misfit | None:
    """Look at a value that may be of several types: the misfit that goes deepest says most."""
    misfits = [misfit for misfit in (find_misfit(hint, value, path) for hint in inner) if misfit is not None]
    if len(misfits) < len(inner):
        return None
    deepest = max(misfits, key=lambda misfit: len(misfit.path))
    expected = " or ".join(dict.fromkeys(misfit.wanted for misfit in misfits))
    return deepest if deepest.path != path else Misfit(path, value, expected)


def _misfit_in_mapping(hint: object, value: object, path: str) -> Misfit | None:
    if not isinstance(value, Mapping):
        return Misfit(path, value, "an object")
    misfits = (find_misfit(hint, item, path) for item in value.values())
    return next((Misfit(path, value, misfit.wanted) for misfit in misfits if misfit is not None), None)


def _misfit_in_list(inner: Sequence[Any], value: object, path: str) -> Misfit | None:
    """Look through a list, or a tuple of a fixed length."""
    fixed = len(inner) > 1 and inner[-1] is not ...
    if not isinstance(value, list | tuple) or (fixed and len(value) != len(inner)):
        return Misfit(path, value, f"a list of {len(inner)}" if fixed else "a list")
    hints = inner if fixed else [inner[0]] * len(value)
    misfits = (find_misfit(hint, item, f"{path}[{k}]") for k, (hint, item) in enumerate(zip(hints, value, strict=True)))
    return next((misfit for misfit in misfits if misfit is not None), None)


def _misfit_in_object(kind: Any, value: object, path: str) -> Misfit | None:  # noqa: ANN401 - a type
    """Look through the fields of a record, in their order."""
    if not isinstance(value, Mapping):
        return Misfit(path, value, "an object")
    for field in msgspec.inspect.type_info(kind).fields:  # type: ignore[attr-defined]
        hint = _hints(kind)[field.name]
        if field.name in value:
            misfit = find_misfit(hint, value[field.name], f"{path}.{field.name}")
        else:
            misfit = find_misfit(hint, _ABSENT, f"{path}.{field.name}") if field.required else None
        if misfit is not None:
            return misfit._replace(value=None) if misfit.value is _ABSENT else misfit
    return None


def _refuse(kind: type, value: object, error: msgspec.ValidationError, where: Where) -> NoReturn:
    """Raise what a validation found, in our words."""
    misfit = find_misfit(kind, value)
    if misfit is None:
        raise where.error(str(error)) from error
    name = repr(misfit.path.removeprefix(".")) if misfit.path else "it"
    raise where.error(f"{name} is {misfit.value!r}, expected {misfit.wanted}") from error


def _choices(hint: object) -> tuple[str, ...]:
    if isinstance(hint, type) and issubclass(hint, Enum):
        return tuple(str(member.value) for member in hint)
    return get_args(hint) if get_origin(hint) is Literal else ()


Several = tuple[str, ...] | str | None


class _Texts(msgspec.Struct):
    hypothesis: str
    source: str | None = None
    references: Several = None
    reference: Several = None
    context: "tuple[_Texts, ...] | None" = None

    def segment(self) -> Segment:
        given = self.references or self.reference or ()
        references = (given,) if isinstance(given, str) else given
        return Segment(self.hypothesis, self.source, references, tuple(text.segment() for text in self.context or ()))


def convert_segment(value: object, where: Where) -> Segment:
    """Return the segment whose texts an object holds: hypothesis, source, references (or a reference), and context."""
    return convert(_Texts, value, where).segment()


class _Word(msgspec.Struct, gc=False):
    start: int
    end: int
    text: str = ""
    importance: float | None = None
    note: str | None = None
    matches: tuple[WordMatch, ...] | None = None
    spread: float | None = None


class _Explanation(msgspec.Struct):
    id: str
    system: str
    metric: str
    side: Side
    words: list[_Word]
    explainer: str = ""
    reference: int | None = None
    score: float | None = None
    probes: int = 0
    fit: float | None = None
    filled: tuple[int, ...] | None = None
    method: str | None = None
    flags: tuple[str, ...] = ()
    stability: float | None = None
    parts: dict[str, float | None] | None = None


def decode_explanation(
    text: str, where: Where, entries: Mapping[tuple[str, str], int] | None = None
) -> ExplanationRecord:
    """Return the explanation that a line of JSON holds; its words follow each other in the text.

    `entries` are the numbers of all entries by system and id, where it must be of one of them.
    """
    fields = decode(_Explanation, text, where)
    if (fields.side is Side.REFERENCE) != (fields.reference is not None):
        raise where.error(f"'reference' is {fields.reference!r}, which does not go with the side '{fields.side}'")
    entry = -1 if entries is None else entries.get((fields.system, fields.id))
    if entry is None:
        raise where.error(f"no segment {fields.id!r} of system {fields.system!r}")
    words = fields.words
    try:
        spans = np.array([offset for word in words for offset in (word.start, word.end)], np.int64).reshape(-1, 2)
    except OverflowError as error:
        raise where.error("an offset of a word is beyond all texts") from error
    flat = spans.ravel()
    if len(flat) and (flat[0] < 0 or (flat[1:] < flat[:-1]).any()):
        wrong = words[int(np.argmax(np.diff(flat, prepend=0) < 0)) // 2]
        raise where.error(f"the word {wrong.text!r} is from {wrong.start} to {wrong.end}, expected offsets in order")
    notes = [word.note for word in words]
    matches = [word.matches for word in words]
    spread = [word.spread for word in words]
    missing = len(words)
    importance = np.array([word.importance for word in words], dtype=np.float64)  # None becomes NaN
    importance.setflags(write=False)
    return ExplanationRecord(
        sys.intern(fields.id),
        sys.intern(fields.system),
        sys.intern(fields.metric),
        sys.intern(fields.explainer),
        Place(fields.side, fields.reference),
        tuple([sys.intern(word.text) for word in words]),
        spans,
        importance,
        math.nan if fields.score is None else fields.score,
        fields.probes,
        fields.fit,
        notes=tuple([sys.intern(note or "") for note in notes]) if any(notes) else None,
        matches=None if matches.count(None) == missing else tuple(match or () for match in matches),
        spread=None if spread.count(None) == missing else np.array(spread, dtype=np.float64),
        filled=fields.filled,
        method=fields.method,
        flags=fields.flags,
        stability=fields.stability,
        parts=None if fields.parts is None else {name: _float(value) for name, value in fields.parts.items()},
        entry=entry,
        line=where.line,
    )


def explanation_record(explanation: ExplanationRecord) -> dict[str, object]:
    """Return an explanation as a plain object; keys that hold nothing are left out."""
    record: dict[str, object] = {
        "id": explanation.id,
        "system": explanation.system,
        "metric": explanation.metric,
        "explainer": explanation.explainer,
        "side": str(explanation.place.side),
        "reference": explanation.place.reference,
        "words": _words(explanation),
        "score": number(explanation.score),
        "probes": explanation.probes,
        "fit": number(explanation.fit),
    }
    optional: dict[str, object] = {
        "filled": None if explanation.filled is None else list(explanation.filled),
        "method": explanation.method,
        "flags": list(explanation.flags) or None,
        "stability": number(explanation.stability),
        "matrix": None if explanation.matrix is None else _matrix(explanation.matrix),
        "parts": finite(explanation.parts),
    }
    record |= {key: value for key, value in optional.items() if value is not None}
    if not (math.isfinite(explanation.score) and np.isfinite(explanation.importance).all()):
        record["reason"] = next((flag for flag in explanation.flags if flag in REASONS), "undefined")
    return record


def encode_explanation(explanation: ExplanationRecord) -> str:
    """Return an explanation as one line of JSON with its newline."""
    record = explanation_record(explanation)
    try:
        return f"{_ENCODER.encode(record).decode()}\n"
    except (UnicodeError, TypeError):  # half a surrogate pair, or a type that `line` knows or explains
        return line(record)


_ENCODER = msgspec.json.Encoder()


def _words(explanation: ExplanationRecord) -> list[dict[str, object]]:
    words: list[dict[str, object]] = [
        {"text": text, "start": start, "end": end, "importance": number(value)}
        for text, (start, end), value in zip(
            explanation.words, explanation.spans.tolist(), explanation.importance.tolist(), strict=True
        )
    ]
    columns: dict[str, Any] = {
        "note": explanation.notes,
        "matches": None
        if explanation.matches is None
        else [list(map(_match, word_matches)) for word_matches in explanation.matches],
        "spread": None if explanation.spread is None else finite(explanation.spread),
    }
    for key, values in columns.items():
        for word, value in zip(words, values, strict=True) if values is not None else ():
            word[key] = value
    return words


def _match(match: WordMatch) -> dict[str, object]:
    usual = (("unknown", False), ("against", "reference"))
    return {key: finite(value) for key, value in record_of(match).items() if (key, value) not in usual}


def _matrix(matrix: SimilarityMatrix) -> dict[str, object]:
    spans = () if matrix.words is None else matrix.words.spans
    text = "" if matrix.words is None else matrix.words.text
    record: dict[str, object] = {
        "side": None if matrix.place is None else str(matrix.place.side),
        "reference": None if matrix.place is None else matrix.place.reference,
        "words": [{"text": text[start:end], "start": start, "end": end} for start, end in spans],
        "cosines": finite(matrix.cosines),
    }
    return record if matrix.reason is None else record | {"reason": check_reason(matrix.reason)}


def _float(value: float | None) -> float:
    return math.nan if value is None else value


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


@dataclasses.dataclass(frozen=True, slots=True)
class Header:
    """The first line: what stands behind the records that follow."""

    kind: Kind
    signatures: Mapping[str, str] = dataclasses.field(default_factory=dict)
    created: str | None = None
    name: str | None = None
    digest: str | None = None
    languages: tuple[str, str] | None = None
    counts: Mapping[str, int] = dataclasses.field(default_factory=dict)
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


class _About(msgspec.Struct, frozen=True):
    name: str | None = None
    digest: str | None = None
    languages: tuple[str, str] | None = None


class _Version(msgspec.Struct):
    schema_version: object = None


class _Row(msgspec.Struct):
    row: object = None


class _Header(msgspec.Struct):
    kind: Kind
    signatures: dict[str, str] = {}
    created: str | None = None
    dataset: _About = _About()
    counts: dict[str, int] = {}


def _header(text: str, file: str) -> Header:
    version = decode(_Version, text, Where(file, 1)).schema_version
    if not isinstance(version, int) or version < 1:
        raise DataError(f"'schema_version' is {version!r}, expected a whole number", file=file, line=1)
    if version > VERSION:
        raise DataError(
            f"written by a newer whyscore (schema_version {version}, this one reads up to {VERSION}): update whyscore",
            file=file,
            line=1,
        )
    header = decode(_Header, text, Where(file, 1))
    about = header.dataset
    names = about.name, about.digest, about.languages
    return Header(header.kind, header.signatures, header.created, *names, header.counts, version)


class Records:
    """The records of a file: the header now, the objects one by one when iterated over (once)."""

    def __init__(self, file: TextFile, *, drop_torn: bool) -> None:
        self._file, self._drop_torn = file, drop_torn
        self._torn: tuple[Finding, ...] = ()
        blocks = file.blocks()
        first, *rest = next(blocks, ()) or ("",)
        self._blocks = chain([rest], blocks)
        if not is_header(first):
            raise DataError(f"no header of records: expected {SCHEMA_KEY}", file=file.name, line=1)
        self.header = _header(first, file.name)

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

    def rows(self, kinds: Mapping[str | None, type], cure: str = "") -> Iterator[tuple[Where, str | None, object]]:
        """Yield the objects as the types that their `row` stands for, with their places; others are left out."""
        for at, text in self._texts():
            where = Where(self._file.name, at, cure)
            row = decode(_Row, text, where).row
            if (row is None or isinstance(row, str)) and row in kinds:
                yield where, row, decode(kinds[row], text, where)

    def _texts(self) -> Iterator[tuple[int, str]]:
        return chain.from_iterable(self._numbered_blocks())

    def _numbered_blocks(self) -> Iterator[Iterable[tuple[int, str]]]:
        start = 2
        for block in self._blocks:
            if block and not self._file.ended:  # a line without an end is a block of its own
                if self._drop_torn:
                    self._torn = (
                        Finding("torn-line", "the last line is incomplete and was left out", self._file.name, start),
                    )
                    return
                self._check_torn(block[0], start)
            yield enumerate(block, start)
            start += len(block)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was noticed; complete after the last object."""
        return self._torn or self._file.findings

    def _check_torn(self, text: str, number: int) -> None:
        try:
            parse_object(text, self._file.name, number)
        except DataError as error:
            message = "the last line is incomplete, as after an interrupted run: resume the run, or delete the line"
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
