"""Error spans written into an XLIFF file, without touching a byte of anything else.

1. Spans become ITS 2.0 marks (`locQualityIssue`: type, comment, severity from 0 to 100) around the marked characters.
2. A mark is cut where a tag of the file, or the edge of another mark, would cross it; so the result is well formed.
3. What is said of a whole unit (its score) becomes a note: at the end of a `trans-unit`, among the `notes` of a `unit`.
4. Everything else is copied byte for byte.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from whyscore.io.xliff import SEVERITIES, Letter, Text, Xliff
from whyscore.types import ErrorSpan, Side

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
            own = [span for span in spans.get(unit.id, ()) if span.side is side and span.start < span.end]
            if text is not None and own:
                pieces += _pieces(xliff, text, own)
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


def _notes(xliff: Xliff, notes: Mapping[str, str]) -> dict[int, str]:
    """Return what is written before which byte; segments of one unit share its notes."""
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
    found = []
    for span in spans:
        attributes = _attributes(xliff, span)
        inner = [edge for edge in edges if span.start <= edge <= span.end]
        for start, end in pairwise(inner):
            found += [piece._replace(attributes=attributes) for piece in _unbroken(text.letters[start:end])]
    return found


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
    category = (span.category or "").lower()
    issue = next((kind for name, kind in _TYPES.items() if name in category), "uncategorized")
    kind = 'mtype="x-its"' if xliff.version.startswith("1") else f'id="w{span.start}-{span.end}" type="its:any"'
    parts = [kind, f'xmlns:its="{ITS}"', f'its:locQualityIssueType="{issue}"']
    if span.category:
        parts.append(f"its:locQualityIssueComment={quoteattr(span.category)}")
    if span.severity is not None:
        parts.append(f'its:locQualityIssueSeverity="{SEVERITIES[span.severity]}"')
    return " ".join(parts)
