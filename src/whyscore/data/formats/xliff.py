"""XLIFF 1.2 and 2.x: units as a data set, and error spans written back without touching another byte.

Reading:

1. The file is parsed by expat, which resolves nothing from outside. A file that declares entities is refused, as is
   nesting deeper than 256; a bare DOCTYPE is harmless.
2. A unit is a `trans-unit` (1.2) or a `segment` of a `unit` (2.x). Every character of its source and target is kept
   with the bytes it stands on, so that places in the text are places in the file. Ids may come again (segments
   without one, several `file` elements); then they are numbered: `7`, `7#2`.
3. Inline codes carry no text: `ph x bx ex it bpt ept sc ec sub` are left out with all that is inside, or stand for one
   private-use character (`inline="placeholder"`); `g mrk pc hi` are left out, what is inside is text.
   The targets of `alt-trans` (1.2) are kept beside the unit's own; who asks for them gets them as references.
4. Units that say `translate="no"` or have an empty target are left out and counted.
5. ITS 2.0 marks (`locQualityIssue`) in the file are error spans.

As a data set, targets are the hypotheses; references are alternatives that were asked for:

1. A unit without a source, and a file without any target, are errors that name the unit.
2. Languages are those that were asked for, else the file's; where they contradict each other, that is told.

Writing error spans into a file:

1. Spans become ITS 2.0 marks (`locQualityIssue`: type, comment, severity from 0 to 100) around the marked characters.
2. A mark is cut where a tag of the file, or the edge of another mark, would cross it; so the result is well formed.
3. What is said of a whole unit (its score) becomes a note: at the end of a `trans-unit`, among the `notes` of a `unit`.
4. Whether a unit needs review becomes its state: `needs-review-translation` or `translated` of a `target` (1.2),
   `translated` or `reviewed` of a `segment` (2.x, where `translated` means that a review is due).
5. Everything else is copied byte for byte.

XML by expat, event by event, with the guards that every reader of it needs.

Entities are refused (a small file could become any size), nesting has a limit, every fault names its line and column.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple, NoReturn, get_args
from xml.parsers import expat

from whyscore.data.files import STDIN, Limits, read_bytes
from whyscore.data.naming import number_repeats, system_names
from whyscore.errors import DataError
from whyscore.text.stemming import language_code
from whyscore.types import Dataset, Entry, ErrorSpan, Finding, Origin, Segment, Severity, Side

_DEPTH = 256


class Events:
    """Hears what a file consists of; readers say what they make of it."""

    def __init__(self, file: str, data: bytes) -> None:
        self._file, self._data = file, data
        self._path: list[str] = []
        self._parser = expat.ParserCreate("utf-8")
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.EntityDeclHandler = self._entity

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        raise NotImplementedError

    def _end(self, tag: str) -> None:
        raise NotImplementedError

    def _characters(self, text: str) -> None:
        raise NotImplementedError

    def _where(self) -> str:
        """Return what a message about broken XML adds: in which unit that is."""
        return ""

    def _parse(self) -> None:
        try:
            self._parser.Parse(self._data, True)  # noqa: FBT003 - its own way of saying that there is no more
        except expat.ExpatError as error:
            message = f"not well-formed XML: {expat.errors.messages.get(error.code, error)}{self._where()}"
            raise DataError(message, file=self._file, line=error.lineno, column=error.offset + 1) from error

    def _enter(self, name: str) -> None:
        """Remember an element that begins."""
        self._path.append(name)
        if len(self._path) > _DEPTH:
            self._refuse(f"elements are nested deeper than {_DEPTH}")

    def _refuse(self, message: str) -> NoReturn:
        parser = self._parser
        raise DataError(message, file=self._file, line=parser.CurrentLineNumber, column=parser.CurrentColumnNumber + 1)

    def _entity(self, *_: object) -> NoReturn:
        self._refuse("declares entities, which are refused: they can blow a small file up to any size")


Inline = Literal["drop", "placeholder"]
INLINES: tuple[Inline, ...] = get_args(Inline)
PLACEHOLDER = "\ue000"
_CODES = frozenset({"ph", "x", "bx", "ex", "it", "bpt", "ept", "sc", "ec", "sub"})
SEVERITIES: dict[Severity, int] = {"neutral": 0, "minor": 25, "major": 75, "critical": 100}


class Letter(NamedTuple):
    """A character of a text and the bytes it stands on."""

    text: str
    start: int
    end: int
    cdata: bool = False
    """Whether it stands in a CDATA section, where tags are no tags."""


class Mark(NamedTuple):
    """An error that the file marks already."""

    start: int
    end: int
    attributes: Mapping[str, str]


@dataclass(slots=True)
class Text:
    """The source or the target of a unit."""

    letters: list[Letter] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)

    def __str__(self) -> str:
        return "".join(letter.text for letter in self.letters)


@dataclass(slots=True)
class Unit:
    """A segment of the file."""

    id: str
    line: int
    translate: bool
    source: Text | None = None
    target: Text | None = None
    alternatives: list[Text] = field(default_factory=list)
    """The targets of `alt-trans` elements."""
    note_at: int = 0
    """The byte before which a note may stand."""
    has_notes: bool = True
    """Whether a note there needs no `notes` element around it."""
    state_at: int = -1
    """The byte where the tag begins that has the state: `target` (1.2) or `segment` (2.x)."""


@dataclass(frozen=True, eq=False)
class Xliff:
    """A file: its bytes, its languages and its units."""

    file: str
    data: bytes
    version: str
    languages: tuple[str, str] | None
    units: tuple[Unit, ...]

    def dataset(self, system: str, *, alt_trans: bool = False) -> Dataset:
        """Return the units that have a target; the others are counted. `alt_trans` takes alternatives as references."""
        units = [unit for unit in self.units if unit.translate and unit.target is not None and str(unit.target)]
        entries = tuple(
            Entry(
                unit.id,
                system,
                Segment(str(unit.target), self._source(unit), _alternatives(unit) if alt_trans else ()),
                spans=_spans(unit) or None,
            )
            for unit in units
        )
        left = len(self.units) - len(units)
        finding = Finding(
            "units-left-out", f"units without a target, or not to be translated, were left out: {left}", self.file
        )
        origin = Origin.table(self.file, [system], [unit.line for unit in units])
        return Dataset(Path(self.file).name, entries, self.languages, (finding,) if left else (), origin)

    def _source(self, unit: Unit) -> str:
        if unit.source is None:
            raise DataError(f"unit {unit.id!r} has a target but no source", file=self.file, line=unit.line)
        return str(unit.source)


def read_xliff(path: str | Path, *, inline: Inline = "drop", limits: Limits | None = None) -> Xliff:
    """Return the units of an XLIFF file."""
    data = read_bytes(path, limits)
    try:
        data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"byte {error.start} is not UTF-8: save the file as UTF-8", file=str(path)) from error
    reader = _Reader(str(path), data, placeholder=inline == "placeholder")
    return reader.read()


class _Reader(Events):
    """Turns the events of the parser into units."""

    def __init__(self, file: str, data: bytes, *, placeholder: bool) -> None:
        super().__init__(file, data)
        self._placeholder = placeholder
        self._parser.buffer_text = False
        self._parser.StartCdataSectionHandler = lambda: setattr(self, "_cdata", True)
        self._parser.EndCdataSectionHandler = lambda: setattr(self, "_cdata", False)
        self._cdata = False
        self._units: list[Unit] = []
        self._unit: Unit | None = None
        self._text: Text | None = None
        self._skipped = 0
        self._open: list[tuple[int, Mapping[str, str]]] = []
        self._version = ""
        self._names: tuple[str, str] | None = None
        self._within = ("", True)
        self._notes: int | None = None
        self._first: int | None = None

    def read(self) -> Xliff:
        self._parse()
        if not self._version:
            raise DataError("not XLIFF: expected a root element xliff", file=self._file, line=1)
        for unit, name in zip(self._units, number_repeats([unit.id for unit in self._units]), strict=True):
            unit.id = name
        return Xliff(self._file, self._data, self._version, self._names, tuple(self._units))

    def _where(self) -> str:
        return "" if self._unit is None else f", in unit {self._unit.id!r}"

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(":")[2]
        self._enter(name)
        if self._first is None and name in ("originalData", "segment", "ignorable"):
            self._first = self._parser.CurrentByteIndex
        if self._text is not None:
            self._inline(name, attributes)
        elif name == "xliff":
            self._version = attributes.get("version", "1.2")
            self._languages(attributes.get("srcLang"), attributes.get("trgLang"))
        elif name == "file":
            self._languages(attributes.get("source-language"), attributes.get("target-language"))
        elif name == "unit":
            self._within = attributes.get("id", ""), attributes.get("translate") != "no"
            self._notes, self._first = None, None
        elif name in ("trans-unit", "segment"):
            self._begin(name, attributes)
        elif name in ("source", "target") and self._unit is not None:
            self._text = Text()
            if name == "target" and self._version.startswith("1") and "alt-trans" not in self._path:
                self._unit.state_at = self._parser.CurrentByteIndex

    def _begin(self, name: str, attributes: dict[str, str]) -> None:
        line = self._parser.CurrentLineNumber
        if name == "trans-unit":
            self._unit = Unit(attributes.get("id", str(len(self._units))), line, attributes.get("translate") != "no")
            return
        unit, translate = self._within
        unit_id = attributes.get("id")
        self._unit = Unit(f"{unit}/{unit_id}" if unit_id else unit, line, translate)
        self._unit.state_at = self._parser.CurrentByteIndex

    def _inline(self, name: str, attributes: dict[str, str]) -> None:
        text = self._text
        if text is None:
            return
        if self._skipped or name in _CODES:
            if not self._skipped and self._placeholder:
                at = self._parser.CurrentByteIndex
                text.letters.append(Letter(PLACEHOLDER, at, at))
            self._skipped += 1
        else:
            issue = {key.rpartition(":")[2]: value for key, value in attributes.items() if "locQualityIssue" in key}
            self._open.append((len(text.letters), issue))

    def _end(self, tag: str) -> None:
        name = tag.rpartition(":")[2]
        self._path.pop()
        if self._text is not None:
            if self._skipped:
                self._skipped -= 1
                return
            if name in ("source", "target") and not self._open:
                self._keep(name, self._text)
                self._text = None
                return
            start, issue = self._open.pop()
            if issue:
                self._text.marks.append(Mark(start, len(self._text.letters), issue))
        elif name == "notes":
            self._notes = self._parser.CurrentByteIndex
        elif name in ("trans-unit", "segment") and self._unit is not None:
            self._finish(name, self._unit)

    def _keep(self, name: str, text: Text) -> None:
        if self._unit is None:
            return
        if "alt-trans" not in self._path:
            setattr(self._unit, name, text)
        elif name == "target":
            self._unit.alternatives.append(text)

    def _finish(self, name: str, unit: Unit) -> None:
        """Keep a unit, and where a note on it may stand: at its end (1.2), or before the first segment (2.x)."""
        if name == "trans-unit":
            unit.note_at = self._parser.CurrentByteIndex
        else:
            unit.note_at, unit.has_notes = self._notes or self._first or 0, self._notes is not None
        self._units.append(unit)
        self._unit = None

    def _characters(self, data: str) -> None:
        if self._text is None or self._skipped:
            return
        at = self._parser.CurrentByteIndex
        if not self._cdata and self._data[at : at + 1] == b"&":
            end = self._data.index(b";", at) + 1
            self._text.letters.append(Letter(data, at, end))
            return
        for letter in data:
            # The parser gives one newline for CR LF.
            size = 2 if letter == "\n" and self._data[at : at + 2] == b"\r\n" else len(letter.encode())
            self._text.letters.append(Letter(letter, at, at + size, self._cdata))
            at += size

    def _languages(self, source: str | None, target: str | None) -> None:
        if source and target and self._names is None:
            self._names = source, target


def _alternatives(unit: Unit) -> tuple[str, ...]:
    return tuple(text for text in map(str, unit.alternatives) if text.strip())


def _spans(unit: Unit) -> tuple[ErrorSpan, ...]:
    """Return the errors that the file marks in the target and the source of a unit."""
    spans = []
    for side, text in ((Side.HYPOTHESIS, unit.target), (Side.SOURCE, unit.source)):
        for mark in sorted(text.marks, key=lambda mark: (mark.start, mark.end)) if text is not None else ():
            category = mark.attributes.get("locQualityIssueComment") or mark.attributes.get("locQualityIssueType")
            severity = severity_of(mark.attributes.get("locQualityIssueSeverity"))
            spans.append(ErrorSpan(mark.start, mark.end, severity, category, side))
    return tuple(spans)


def severity_of(value: str | None) -> Severity | None:
    """Return the severity nearest to a number from 0 to 100."""
    try:
        number = float(value or "")
    except ValueError:
        return None
    return min(SEVERITIES, key=lambda name: abs(SEVERITIES[name] - number))


_UTF8 = ("utf-8", "utf8", "utf-8-sig")


def xliff_of(
    path: str | Path,
    languages: tuple[str, str] | None,
    encoding: str,
    limits: Limits | None,
    *,
    inline: Inline = "drop",
    alt_trans: bool = False,
) -> Dataset:
    """Return the translated units of a file; the system is named after the file."""
    if str(path) == STDIN:
        raise DataError("XLIFF is read from a file, not from the standard input: save it first")
    if encoding.lower() not in _UTF8:
        raise DataError(
            f"XLIFF is read as UTF-8, not as {encoding}: convert the file, or drop --encoding", file=str(path)
        )
    xliff = read_xliff(path, inline=inline, limits=limits)
    data = xliff.dataset(system_names([path])[0], alt_trans=alt_trans)
    if not data.entries:
        raise DataError(_nothing(xliff), file=xliff.file)
    contradicted = _contradiction(xliff, languages)
    return replace(data, languages=languages or data.languages, findings=(*data.findings, *contradicted))


def _nothing(xliff: Xliff) -> str:
    if not xliff.units:
        return "has no units: expected trans-unit (XLIFF 1.2) or unit/segment (2.x) elements"
    first = xliff.units[0].id
    return (
        f"none of its {len(xliff.units)} units has a target to be scored; the first is {first!r}: translate them first"
    )


def _contradiction(xliff: Xliff, requested: tuple[str, str] | None) -> tuple[Finding, ...]:
    """Return the finding about languages that are not the file's; de and de-AT are the same."""
    languages = xliff.languages
    if (
        languages is None
        or requested is None
        or all(
            language_code(language) == language_code(other)
            for language, other in zip(languages, requested, strict=True)
        )
    ):
        return ()
    return (
        Finding(
            "languages-differ",
            f"the file says {' to '.join(languages)}, and {' to '.join(requested)} was requested",
            xliff.file,
        ),
    )


ITS = "http://www.w3.org/2005/11/its"
_TYPES = {
    "mistranslation": "mistranslation",
    "omission": "omission",
    "addition": "addition",
    "untranslated": "untranslated",
    "non-translation": "untranslated",
    "grammar": "grammar",
    "spelling": "misspelling",
    "punctuation": "typographical",
    "terminology": "terminology",
    "style": "style",
    "locale": "locale-violation",
    "inconsistency": "inconsistency",
}


def with_spans(xliff: Xliff, spans: Mapping[str, Sequence[ErrorSpan]], notes: Mapping[str, str] | None = None) -> bytes:
    """Return the bytes of a file with spans and notes, by the ids of units; without any they are the file's own."""
    pieces: list[_Piece] = []
    for unit in xliff.units:
        for side, text in ((Side.HYPOTHESIS, unit.target), (Side.SOURCE, unit.source)):
            side_spans = [span for span in spans.get(unit.id, ()) if span.side is side and span.start < span.end]
            if text is not None and side_spans:
                pieces += _pieces(xliff, text, side_spans)
    edits: list[tuple[int, int, int, str]] = []
    for order, piece in enumerate(pieces):
        opened, closed = f"<mrk {piece.attributes}>", "</mrk>"
        if piece.cdata:
            # The section is closed around each tag; what it holds stays in sections.
            opened, closed = (f"]]>{tag}<![CDATA[" for tag in (opened, closed))
        edits += [(piece.start, 1, order, opened), (piece.end, 0, -order, closed)]
    edits += [(place, 2, 0, text) for place, text in _notes(xliff, notes or {}).items()]
    parts, at = [], 0
    for place, _, _, tag in sorted(edits, key=lambda edit: edit[:3]):
        parts += [xliff.data[at:place], tag.encode()]
        at = place
    return b"".join([*parts, xliff.data[at:]])


_STATES = {"1": ("translated", "needs-review-translation"), "2": ("reviewed", "translated")}
_TAG = re.compile(rb"""<[^\s/>]+(?:[^>"']|"[^"]*"|'[^']*')*>""")
_NAME = re.compile(rb"<[^\s/>]+")
_STATE = re.compile(rb"""\sstate\s*=\s*(?:"[^"]*"|'[^']*')""")


def with_states(xliff: Xliff, review: Mapping[str, bool]) -> bytes:
    """Return the bytes of a file in which units, by their ids, need review or not; the state they had is replaced."""
    parts, at = [], 0
    for unit in sorted(xliff.units, key=lambda item: item.state_at):
        tag = _TAG.match(xliff.data, unit.state_at) if unit.state_at >= 0 and unit.id in review else None
        if tag is None:
            continue
        state = f' state="{_STATES["1" if xliff.version.startswith("1") else "2"][review[unit.id]]}"'.encode()
        bare = _STATE.sub(b"", tag[0])
        end = len(bare) - len(_NAME.sub(b"", bare, count=1))
        parts += [xliff.data[at : tag.start()], bare[:end], state, bare[end:]]
        at = tag.end()
    return b"".join([*parts, xliff.data[at:]])


def _notes(xliff: Xliff, notes: Mapping[str, str]) -> dict[int, str]:
    """Return what is written before which byte; segments of one unit share its notes."""
    from xml.sax.saxutils import escape  # noqa: PLC0415 - imports urllib and ssl

    opening = '<note from="whyscore">' if xliff.version.startswith("1") else "<note>"
    found: dict[int, str] = {}
    bare = set()
    for unit in xliff.units:
        if unit.id in notes:
            owner = f"{unit.id}: " if "/" in unit.id else ""
            found[unit.note_at] = found.get(unit.note_at, "") + f"{opening}{escape(owner + notes[unit.id])}</note>"
            bare |= set() if unit.has_notes else {unit.note_at}
    return {place: f"<notes>{text}</notes>" if place in bare else text for place, text in found.items()}


class _Piece(NamedTuple):
    start: int
    end: int
    cdata: bool
    attributes: str = ""


def _pieces(xliff: Xliff, text: Text, spans: Sequence[ErrorSpan]) -> list[_Piece]:
    """Return byte ranges to be marked: spans cut at tags and at each other's edges."""
    edges = sorted({edge for span in spans for edge in (span.start, span.end)})
    pieces = []
    for span in spans:
        attributes = _attributes(xliff, span)
        inner = [edge for edge in edges if span.start <= edge <= span.end]
        for start, end in pairwise(inner):
            pieces += [piece._replace(attributes=attributes) for piece in _unbroken(text.letters[start:end])]
    return pieces


def _unbroken(letters: Sequence[Letter]) -> list[_Piece]:
    """Return the byte ranges of letters that no tag comes between; placeholders, which are tags, break them too."""
    ranges: list[_Piece] = []
    for letter in letters:
        if letter.start == letter.end:
            continue
        if ranges and ranges[-1].end == letter.start:
            ranges[-1] = ranges[-1]._replace(end=letter.end)
        else:
            ranges.append(_Piece(letter.start, letter.end, letter.cdata))
    return ranges


def _attributes(xliff: Xliff, span: ErrorSpan) -> str:
    from xml.sax.saxutils import quoteattr  # noqa: PLC0415 - imports urllib and ssl

    category = (span.category or "").lower()
    issue = next((kind for name, kind in _TYPES.items() if name in category), "uncategorized")
    kind = 'mtype="x-its"' if xliff.version.startswith("1") else f'id="w{span.start}-{span.end}" type="its:any"'
    parts = [kind, f'xmlns:its="{ITS}"', f'its:locQualityIssueType="{issue}"']
    if span.category:
        parts.append(f"its:locQualityIssueComment={quoteattr(span.category)}")
    if span.severity is not None:
        parts.append(f'its:locQualityIssueSeverity="{SEVERITIES[span.severity]}"')
    return " ".join(parts)
