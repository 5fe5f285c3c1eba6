"""MQM ratings with `<v>` marks (Freitag et al., 2021): error spans and scores out of raw rows, and rows out of spans.

1. One row an error: system, doc, doc_id, seg_id, rater, source, target, category, severity. The mark stands in the
   target, or in the source (omissions, errors of the source). `No-error` rows say that a rater found nothing.
2. All rows of a (system, segment) must give one text without their marks. Where one differs, its span is carried over
   by aligning the two texts, and told.
3. MQM score = minus the sum of the weights of a rater's rows, mean over raters, summed exactly.

| weights | values |
|---|---|
| `google` | Non-translation 25; minor Fluency/Punctuation 0.1; major 5, minor 1; neutral and no-error 0; critical 5 |
| `xcomet` | minor 1, major 5, critical 10; at most 25 a rater and segment |
| own | `{"major": 5, "minor Fluency/Punctuation": 0.1}`: a severity, or a severity and the beginning of a category |

Marks (`<v>...</v>`) in a text:

1. The marks are taken out; each pair gives a stretch of the plain text.
2. A mark that is opened and never closed runs to the end of the text; one that is closed and never opened begins with
   the text. Both are told.
3. Blanks at the edges of a stretch belong outside it; moved edges are told.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import NamedTuple

from whyscore.data.files import TextFile
from whyscore.data.formats.jsonl import objects
from whyscore.data.naming import few, plain_name
from whyscore.errors import DataError, SpecError
from whyscore.marking import Span
from whyscore.stats.annotators import GOOGLE, Weights
from whyscore.types import Dataset, Entry, ErrorSpan, Finding, Origin, Segment, Severity, Side

_MARK = re.compile(r"</?v>")
OPEN, CLOSE = "<v>", "</v>"


class Unmarked(NamedTuple):
    """A text without its marks, the stretches they marked, and what had to be put right."""

    text: str
    spans: tuple[Span, ...]
    lone: bool
    """Whether a mark had no counterpart."""
    trimmed: int
    """Stretches that began or ended with a blank."""


def strip_marks(marked: str) -> Unmarked:
    """Return the plain text and what was marked in it.

    >>> strip_marks("a <v>bad </v>cat")
    Unmarked(text='a bad cat', spans=((2, 5),), lone=False, trimmed=1)
    """
    if "<v>" not in marked and "</v>" not in marked:
        return Unmarked(marked, (), lone=False, trimmed=0)
    parts, spans, length = [], [], 0
    start: int | None = None
    lone, at = False, 0
    for match in _MARK.finditer(marked):
        parts.append(marked[at : match.start()])
        length += match.start() - at
        at = match.end()
        if match.group() == OPEN:
            lone = lone or start is not None
            start = length if start is None else start
        else:
            lone = lone or start is None
            spans.append((start or 0, length))
            start = None
    text = "".join([*parts, marked[at:]])
    if start is not None:
        lone = True
        spans.append((start, len(text)))
    trimmed = [trim(text, span) for span in spans]
    shorter = sum(span != original for span, original in zip(trimmed, spans, strict=True))
    return Unmarked(text, tuple(trimmed), lone=lone, trimmed=shorter)


def mark_span(text: str, span: Span) -> str:
    """Return a text with one stretch marked."""
    start, end = span
    return f"{text[:start]}{OPEN}{text[start:end]}{CLOSE}{text[end:]}"


def trim(text: str, span: Span) -> Span:
    """Return a stretch without blanks at its edges; one of blanks alone becomes empty, where it began."""
    start, end = span
    inside = text[start:end]
    if not inside.strip():
        return start, start
    return start + len(inside) - len(inside.lstrip()), end - len(inside) + len(inside.rstrip())


def carry_span(text: str, span: Span, other: str) -> Span:
    """Return where a stretch of one text stands in another, nearly equal one: equal stretches stay what they are."""
    blocks = SequenceMatcher(None, text, other, autojunk=False).get_opcodes()
    start = _place(span[0], blocks, last=False)
    return start, max(start, _place(span[1], blocks, last=True))


def _place(offset: int, blocks: Sequence[tuple[str, int, int, int, int]], *, last: bool) -> int:
    """Return where an edge goes; inside a changed stretch it goes to the stretch's own edge."""
    for kind, a, b, c, d in blocks:
        inside = a < offset <= b if last else a <= offset < b
        if inside:
            return c + offset - a if kind == "equal" else (d if last else c)
    return blocks[-1][4] if blocks and offset else 0


COLUMNS = ("system", "doc", "doc_id", "seg_id", "rater", "source", "target", "category", "severity")
_NEEDED = ("system", "seg_id", "source", "target", "category", "severity")
_ALIASES = {"docsegid": "doc_id", "globalsegid": "seg_id", "segid": "seg_id", "docid": "doc_id"}
_SEVERITIES: dict[str, Severity | None] = {
    "neutral": "neutral",
    "minor": "minor",
    "major": "major",
    "critical": "critical",
    "": None,
}
NO_ERROR = "No-error"
_NOTHING = ("no-error", "no error", "noerror")


XCOMET = Weights({"minor": 1.0, "major": 5.0, "critical": 10.0}, cap=25.0)
WEIGHTS = {"google": GOOGLE, "xcomet": XCOMET}


class Rating(NamedTuple):
    """One row of a file of ratings."""

    line: int
    values: Mapping[str, str]

    @property
    def nothing(self) -> bool:
        """Whether the row says that there is no error."""
        return self.values["severity"].lower() in _NOTHING or self.values["category"].lower() in _NOTHING


@dataclass(slots=True)
class _Counts:
    """What had to be put right, with the first lines."""

    lone: list[int] = field(default_factory=list)
    trimmed: list[int] = field(default_factory=list)
    repaired: list[int] = field(default_factory=list)
    twice: list[int] = field(default_factory=list)

    def findings(self, file: str) -> Iterator[Finding]:
        """Yield one note per kind."""
        kinds = (
            ("lone-mark", "a mark without its counterpart was taken to run to the edge of the text", self.lone),
            ("trimmed-marks", "marks with a space at an edge were trimmed", self.trimmed),
            (
                "moved-marks",
                "spans were transferred from rows whose text differs from the first row of the segment",
                self.repaired,
            ),
            ("marked-twice", "spans are marked twice by the same rater", self.twice),
        )
        for code, message, lines in kinds:
            if lines:
                yield Finding(code, f"{message}: {len(lines)}, lines {few(lines)}", file, lines[0])


def read_mqm(path: str | Path, weights: Weights | str = GOOGLE, *, human: str = "mqm") -> Dataset:
    """Return the rated segments with their spans and their MQM score (higher is better) as a human score."""
    table = weights_of(weights) if isinstance(weights, str) else weights
    rows = list(read_ratings(path))
    if not rows:
        raise DataError(f"{path} holds no ratings: expected one error per row")
    groups: dict[tuple[str, str], list[Rating]] = {}
    for row in rows:
        groups.setdefault((row.values["system"], row.values["seg_id"]), []).append(row)
    counts = _Counts()
    entries = tuple(_entry(key, ratings, table, human, counts) for key, ratings in groups.items())
    lines = [ratings[0].line for ratings in groups.values()]
    origin = Origin.table(str(path), list(dict.fromkeys(entry.system for entry in entries)), lines)
    return Dataset(Path(path).name, entries, None, tuple(counts.findings(str(path))), origin)


def weights_of(name: str) -> Weights:
    """Return a table of weights by its name."""
    if name not in WEIGHTS:
        raise SpecError(f"no MQM weights named {name!r}: use {', '.join(WEIGHTS)}, or give a table")
    return WEIGHTS[name]


def read_ratings(path: str | Path) -> Iterator[Rating]:
    """Yield the rows of a TSV or of JSON lines."""
    file = TextFile(path)
    if plain_name(path).suffix.lower() in (".jsonl", ".ndjson"):
        for item in objects(file, []):
            values = {_name_column(key): "" if value is None else str(value) for key, value in item.value.items()}
            yield _check_rating(values, file.name, item.line)
        return
    header: list[str] | None = None
    # MQM tables are raw: quotation marks are characters, and never hide a tab.
    for line, text in enumerate(file.lines(), start=1):
        cells = text.split("\t")
        if header is None:
            header = [_name_column(cell) for cell in cells]
            continue
        if len(cells) != len(header):
            raise DataError(f"expected {len(header)} columns, found {len(cells)}", file=file.name, line=line)
        yield _check_rating(dict(zip(header, cells, strict=True)), file.name, line)


def is_mqm(names: Sequence[str]) -> bool:
    """Return whether these are the columns of MQM ratings."""
    columns = {_name_column(name) for name in names}
    return all(name in columns for name in _NEEDED)


def mqm_rows(dataset: Dataset, lost: Counter[str]) -> Iterator[tuple[str, ...]]:
    """Yield a header and one row per span, or one `No-error` row; what rows cannot say is counted in `lost`."""
    yield COLUMNS
    for number, entry in enumerate(dataset.entries):
        if entry.spans is None:
            lost["unrated segment"] += 1
            continue
        base = (entry.system, entry.document or "", str(entry.extra.get("doc_id", number)), entry.id)
        raters = entry.extra.get("span_raters")
        named = [str(name) for name in raters] if isinstance(raters, list) else ["rater"] * len(entry.spans)
        everybody = entry.extra.get("raters")
        silent = set(everybody if isinstance(everybody, list) else ["rater"]) - set(named)
        segment = entry.segment
        for span, rater in zip(entry.spans, named, strict=True):
            if span.side is Side.REFERENCE:
                lost["span of a reference"] += 1
                continue
            texts = [segment.source or "", segment.hypothesis]
            place = 0 if span.side is Side.SOURCE else 1
            texts[place] = mark_span(texts[place], (span.start, span.end))
            severity = (span.severity or "").capitalize()
            yield (*base, rater, *texts, span.category or "", severity)
        for rater in sorted(map(str, silent)):
            yield (*base, rater, segment.source or "", segment.hypothesis, NO_ERROR, NO_ERROR)


def _name_column(cell: str) -> str:
    name = cell.strip().lower()
    return _ALIASES.get(name.replace("_", ""), name)


def _check_rating(values: dict[str, str], file: str, line: int) -> Rating:
    for name in _NEEDED:
        if name not in values:
            there = ", ".join(values)
            raise DataError(
                f"no column {name!r} among {there}: MQM ratings need {', '.join(_NEEDED)}", file=file, line=line
            )
    row = Rating(line, values)
    if not row.nothing and values["severity"].lower() not in _SEVERITIES:
        raise DataError(
            f"severity is {values['severity']!r}, expected Minor, Major, Neutral or No-error", file=file, line=line
        )
    return row


def _entry(key: tuple[str, str], rows: Sequence[Rating], weights: Weights, human: str, counts: _Counts) -> Entry:
    plain = [(strip_marks(row.values["source"]), strip_marks(row.values["target"])) for row in rows]
    source, target = (part.text for part in plain[0])
    spans: list[ErrorSpan] = []
    raters: list[str] = []
    seen: set[tuple[object, ...]] = set()
    for row, (there, here) in zip(rows, plain, strict=True):
        rater = row.values.get("rater", "")
        if there.lone or here.lone:
            counts.lone.append(row.line)
        if row.nothing:
            continue
        for side, part, text in ((Side.SOURCE, there, source), (Side.HYPOTHESIS, here, target)):
            for span in _place_spans(row, part, text, counts):
                error = _span(row, span, side)
                stretch = (rater, side, *span)
                if stretch in seen:
                    counts.twice.append(row.line)
                seen.add(stretch)
                spans.append(error)
                raters.append(rater)
    everybody = list(dict.fromkeys(row.values.get("rater", "") for row in rows))
    extra: dict[str, object] = {"raters": everybody}
    if spans:
        extra["span_raters"] = raters
    if "doc_id" in rows[0].values:
        extra["doc_id"] = rows[0].values["doc_id"]
    scores = {human: score(rows, weights)}
    return Entry(key[1], key[0], Segment(target, source), scores, tuple(spans), rows[0].values.get("doc"), extra)


def _place_spans(row: Rating, part: Unmarked, text: str, counts: _Counts) -> list[tuple[int, int]]:
    """Return the marked stretches of a row in the segment's text."""
    if part.trimmed:
        counts.trimmed += [row.line] * part.trimmed
    if part.text == text:
        return list(part.spans)
    counts.repaired.append(row.line)
    return [carry_span(part.text, span, text) for span in part.spans]


def _span(row: Rating, span: tuple[int, int], side: Side) -> ErrorSpan:
    return ErrorSpan(*span, _SEVERITIES[row.values["severity"].lower()], row.values["category"] or None, side)


def score(rows: Sequence[Rating], weights: Weights) -> float:
    """Return minus the weight of all errors, mean over raters."""
    costs: dict[str, list[float]] = {}
    for row in rows:
        cost = 0.0 if row.nothing else weights.of(row.values["severity"], row.values["category"])
        costs.setdefault(row.values.get("rater", ""), []).append(cost)
    return weights.score(costs)
