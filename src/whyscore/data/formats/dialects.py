"""Error spans in the dialects of other programs, read and written; ours are half-open code-point offsets.

| dialect | offsets | omission |
|---|---|---|
| `xcomet` | characters, end exclusive; the start may include the blank before | - |
| `mtme` | characters, end exclusive; `is_source_error` tells the side | a span of the source |
| `pearmut` (ESA) | characters, end **inclusive** | the word `missing` instead of numbers |
| `wmtqe` (WMT QE task 2) | characters, end exclusive; `s = e` is one character | the place after the end |
| `marot` | tokens, end inclusive | a span of the source |

Reading notes what was put right; writing counts, by kind, what the dialect cannot say. Both in a `Counter`.

Files of these dialects, read as data sets and written from them:

| dialect | file |
|---|---|
| `xcomet`, `pearmut` | JSON lines with the texts (`src`, `mt` or `tgt`, `ref`) and `error_spans` |
| `mtme` | `system TAB rating in JSON TAB rater`, one line a segment; the texts come from elsewhere |
| `mqm` | Google's MQM rows (`mqm`) |
| `marot` | the same rows with a tenth column of JSON |
| `wmtqe` | `LP METHOD SEG TARGET STARTS ENDS TYPES`; header lines are those before the first row of numbers |
| `tags` | one line of word tags a segment; the texts come from elsewhere |
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from whyscore.data.columns import ALIASES
from whyscore.data.files import TextFile, read_lines
from whyscore.data.formats.jsonl import objects
from whyscore.data.formats.mqm import COLUMNS, NO_ERROR, Rating, read_ratings, trim
from whyscore.data.formats.spans import BadSpan, number_at, whole_at
from whyscore.data.formats.word_lines import tag_lines
from whyscore.data.naming import system_names
from whyscore.data.writing import tab_separated
from whyscore.errors import DataError
from whyscore.stats.spans import Thresholds, to_levels, to_spans
from whyscore.text.files import line as json_line
from whyscore.text.files import whole
from whyscore.text.splitters import WhiteSpace
from whyscore.types import Dataset, Entry, ErrorSpan, Finding, Segment, Severity, Side, Words

Offsets = Literal["codepoints", "utf16", "bytes"]
OFFSETS: tuple[Offsets, ...] = get_args(Offsets)
Tally = Counter[str]
MISSING = "missing"
OMISSION = "omission"
_SEVERITIES: tuple[Severity, ...] = get_args(Severity)


class Lists(NamedTuple):
    """The three columns of WMT QE task 2."""

    starts: str
    ends: str
    types: str


NO_ERROR_LISTS = Lists("-1", "-1", "no-error")


def to_codepoints(text: str, offset: int, unit: Offsets) -> int:
    """Return an offset in code points, from UTF-16 units (JavaScript) or UTF-8 bytes.

    >>> to_codepoints("😀 b", 3, "utf16"), to_codepoints("é b", 3, "bytes")
    (2, 2)
    """
    if unit == "codepoints":
        return offset
    # Half a character, as in the middle of a surrogate pair, counts to the character it is part of.
    return sum(end <= offset for end in accumulate(_units(letter, unit) for letter in text))


def from_codepoints(text: str, offset: int, unit: Offsets) -> int:
    """Return an offset in the units of another program."""
    if unit == "codepoints":
        return offset
    return _units(text[:offset], unit)


def _units(text: str, unit: Offsets) -> int:
    """Return the length of a text in UTF-16 units or bytes; halves of characters, which JSON can hold, count too."""
    if unit == "utf16":
        return len(text.encode("utf-16-le", "surrogatepass")) // 2
    return len(text.encode("utf-8", "surrogatepass"))


def xcomet_spans(items: Sequence[object], text: str, notes: Tally) -> tuple[ErrorSpan, ...]:
    """Return the spans that xCOMET found in a hypothesis."""
    spans = []
    for item in map(_mapping, items):
        start, end = whole_at(item, "start"), whole_at(item, "end")
        first, last = trim(text, _inside(start, end, text, notes))
        if (first, last) != (start, end):
            notes["blanks trimmed"] += 1
        quoted = item.get("text")
        if isinstance(quoted, str) and quoted.strip() != text[first:last]:
            notes["text differs from its offsets"] += 1
        spans.append(
            ErrorSpan(first, last, severity_of(item), _text(item, "category"), confidence=number_at(item, "confidence"))
        )
    return tuple(spans)


def xcomet_items(spans: Sequence[ErrorSpan], text: str, lost: Tally) -> list[dict[str, object]]:
    """Return spans of the hypothesis as xCOMET writes them."""
    items = []
    for span in _of_hypothesis(spans, lost):
        if span.start == span.end:
            lost[OMISSION] += 1
            continue
        _count(lost, span, "category", "score")
        item: dict[str, object] = {"text": text[span.start : span.end], "start": span.start, "end": span.end}
        item["severity"] = span.severity
        items.append(item | ({} if span.confidence is None else {"confidence": span.confidence}))
    return items


def mtme_spans(rating: object, segment: Segment, notes: Tally) -> tuple[ErrorSpan, ...] | None:
    """Return the spans of a rating of mt-metrics-eval; None where there is no rating."""
    if rating is None:
        return None
    errors = _mapping(rating).get("errors")
    if not isinstance(errors, list):
        raise BadSpan(f"errors is {errors!r}, expected a list")
    spans = []
    for item in map(_mapping, errors):
        side = Side.SOURCE if item.get("is_source_error") else Side.HYPOTHESIS
        text = (segment.source or "") if side is Side.SOURCE else segment.hypothesis
        start, end = _inside(whole_at(item, "start"), whole_at(item, "end"), text, notes)
        spans.append(
            ErrorSpan(start, end, severity_of(item), _text(item, "category"), side, score=number_at(item, "score"))
        )
    return tuple(spans)


def mtme_rating(spans: Sequence[ErrorSpan] | None, lost: Tally) -> dict[str, object] | None:
    """Return a rating of mt-metrics-eval."""
    if spans is None:
        return None
    errors: list[dict[str, object]] = []
    for span in spans:
        if span.side is Side.REFERENCE:
            lost["span of a reference"] += 1
            continue
        _count(lost, span, "confidence")
        fields = {"start": span.start, "end": span.end, "category": span.category, "severity": span.severity}
        errors.append({**fields, "score": span.score, "is_source_error": span.side is Side.SOURCE})
    return {"errors": errors}


def pearmut_spans(
    items: Sequence[object], text: str, notes: Tally, unit: Offsets = "codepoints"
) -> tuple[ErrorSpan, ...]:
    """Return the spans of an ESA campaign; `missing` is an omission, put at the end of the text."""
    spans = []
    for item in map(_mapping, items):
        category = _text(item, "category")
        if MISSING in (item.get("start_i"), item.get("end_i")):
            spans.append(ErrorSpan(len(text), len(text), severity_of(item), category or OMISSION))
            continue
        first, last = (to_codepoints(text, whole_at(item, key), unit) for key in ("start_i", "end_i"))
        start, end = _inside(first, last + 1, text, notes)
        spans.append(ErrorSpan(start, end, severity_of(item), category))
    return tuple(spans)


def pearmut_items(
    spans: Sequence[ErrorSpan], text: str, lost: Tally, unit: Offsets = "codepoints"
) -> list[dict[str, object]]:
    """Return spans of the hypothesis for an ESA campaign, for instance to fill it in beforehand."""
    items: list[dict[str, object]] = []
    for span in _of_hypothesis(spans, lost):
        _count(lost, span, "score", "confidence")
        fields = {"severity": span.severity, "category": span.category}
        if span.start == span.end:
            if span.start != len(text):
                lost["place of an omission"] += 1
            items.append({"start_i": MISSING, "end_i": MISSING, **fields})
            continue
        first, last = (from_codepoints(text, offset, unit) for offset in (span.start, span.end - 1))
        items.append({"start_i": first, "end_i": last, **fields})
    return items


def wmtqe_spans(lists: Lists, text: str, notes: Tally) -> tuple[ErrorSpan, ...]:
    """Return the spans in the three columns of WMT QE task 2."""
    starts, ends, types = lists.starts.split(), lists.ends.split(), lists.types.split()
    if not len(starts) == len(ends) == len(types):
        raise BadSpan(f"{len(starts)} starts, {len(ends)} ends and {len(types)} types: every span needs all three")
    spans = []
    for first, last, kind in zip(starts, ends, types, strict=True):
        start, end = _integer(first), _integer(last)
        if start == end == -1:
            continue
        if start >= len(text):
            spans.append(ErrorSpan(len(text), len(text), _severity(kind), OMISSION))
            continue
        # A single place stands for the character there.
        start, end = _inside(start, end + (start == end), text, notes)
        spans.append(ErrorSpan(start, end, _severity(kind)))
    return tuple(spans)


def wmtqe_lists(spans: Sequence[ErrorSpan], text: str, lost: Tally) -> Lists:
    """Return spans of the hypothesis in the three columns of WMT QE task 2."""
    rows = []
    for span in _of_hypothesis(spans, lost):
        empty = span.start == span.end
        if empty and span.start != len(text):
            lost["place of an omission"] += 1
        _count(lost, span, "score", "confidence", *(() if empty and span.category == OMISSION else ("category",)))
        start, end = (len(text), len(text)) if empty else (span.start, span.end)
        rows.append((str(start), str(end), span.severity or "minor"))
        if span.severity is None:
            lost["unknown severity, written as minor"] += 1
    return Lists(*(" ".join(column) for column in zip(*rows, strict=True))) if rows else NO_ERROR_LISTS


def locate(tokens: Sequence[str], text: str) -> Words:
    """Return where tokens stand in their text, from left to right; one that is not there is an error."""
    spans, at = [], 0
    for token in tokens:
        start = text.find(token, at)
        if start < 0:
            raise BadSpan(f"the token {token!r} is not in the text after character {at}")
        at = start + len(token)
        spans.append((start, at))
    return Words(text, tuple(spans))


def token_span(words: Words, first: int, last: int) -> tuple[int, int]:
    """Return the characters from one token to another, both included."""
    if not 0 <= first <= last < len(words):
        raise BadSpan(f"tokens {first} to {last} are outside a text of {len(words)} tokens")
    return words.spans[first][0], words.spans[last][1]


def tokens_of(words: Words, span: ErrorSpan) -> tuple[int, int] | None:
    """Return the first and last token a span touches; None where it touches none."""
    touched = [k for k, (start, end) in enumerate(words.spans) if start < span.end and span.start < end]
    return (touched[0], touched[-1]) if touched else None


def severity_of(item: Mapping[str, object]) -> Severity | None:
    """Return the severity of a foreign span, in lower case."""
    value = item.get("severity")
    return None if value is None or value == "" else _severity(str(value))


def _severity(value: str) -> Severity:
    for severity in _SEVERITIES:
        if value.lower() == severity:
            return severity
    raise BadSpan(f"severity is {value!r}, expected {', '.join(_SEVERITIES)}")


def _of_hypothesis(spans: Sequence[ErrorSpan], lost: Tally) -> list[ErrorSpan]:
    for span in spans:
        if span.side is not Side.HYPOTHESIS:
            lost[f"span of a {span.side}"] += 1
    return [span for span in spans if span.side is Side.HYPOTHESIS]


def _count(lost: Tally, span: ErrorSpan, *fields: str) -> None:
    for name in fields:
        if getattr(span, name) is not None:
            lost[name] += 1


def _inside(start: int, end: int, text: str, notes: Tally) -> tuple[int, int]:
    """Return a span clipped to its text, and note where that was needed."""
    if start < 0 or end < start:
        raise BadSpan(f"the span {start}-{end} is not a valid span: expected 0 <= start <= end")
    kept = min(start, len(text)), min(end, len(text))
    if kept != (start, end):
        notes["clipped to the text"] += 1
    return kept


def _mapping(item: object) -> Mapping[str, object]:
    if not isinstance(item, Mapping):
        raise BadSpan(f"expected an object, got {item!r}")
    return item


def _integer(cell: str) -> int:
    try:
        return int(cell)
    except ValueError as error:
        raise BadSpan(f"{cell!r} is not a whole number") from error


def _text(item: Mapping[str, object], key: str) -> str | None:
    value = item.get(key)
    return None if value is None else str(value)


_TEXTS = {"hypothesis": (*ALIASES["hypothesis"],), "source": ALIASES["source"]}
_WMTQE = ("LP", "METHOD", "SEG", "TARGET", "STARTS", "ENDS", "TYPES")
_WORDS = WhiteSpace("space")
_TAGGED = Thresholds(major=0.5)


def read_json_spans(path: str | Path, dialect: str, unit: Offsets = "codepoints") -> Dataset:
    """Return the segments of xCOMET or ESA JSON lines; a segment may bring the texts of several systems."""
    notes: Tally = Counter()
    file = TextFile(path)
    entries: list[Entry] = []
    for item in objects(file, []):
        try:
            entries.extend(_json_entries(item.value, len(entries), str(path), dialect, unit, notes))
        except BadSpan as error:
            raise DataError(str(error), file=file.name, line=item.line) from error
    return Dataset(Path(path).name, tuple(entries), None, (*file.findings, *changed_spans(notes, file.name)))


def _json_entries(  # noqa: PLR0917 - for this module alone
    value: Mapping[str, object], number: int, path: str, dialect: str, unit: Offsets, notes: Tally
) -> Iterator[Entry]:
    lower = {key.lower(): field for key, field in value.items()}
    texts = next((lower[name] for name in _TEXTS["hypothesis"] if name in lower), None)
    source = next((lower[name] for name in _TEXTS["source"] if name in lower), None)
    listed = lower.get("error_spans", lower.get("errors", lower.get("spans")))
    systems = texts if isinstance(texts, Mapping) else {str(lower.get("system") or system_names([path])[0]): texts}
    for system, text in systems.items():
        if not isinstance(text, str):
            raise BadSpan(f"no text of the hypothesis: expected one of {', '.join(_TEXTS['hypothesis'][:4])}")
        items = listed.get(system) if isinstance(listed, Mapping) else listed
        if items is not None and not isinstance(items, list):
            raise BadSpan(f"error_spans is {items!r}, expected a list")
        if dialect == "xcomet":
            spans = None if items is None else xcomet_spans(items, text, notes)
        else:
            spans = None if items is None else pearmut_spans(items, text, notes, unit)
        ref = lower.get("ref", lower.get("reference"))
        segment = Segment(text, source if isinstance(source, str) else None, (ref,) if isinstance(ref, str) else ())
        yield Entry(str(lower.get("id", number)), str(system), segment, spans=spans)


def json_span_lines(dataset: Dataset, dialect: str, lost: Tally, unit: Offsets = "codepoints") -> Iterator[str]:
    """Yield JSON lines of xCOMET or ESA spans."""
    for entry in dataset.entries:
        segment = entry.segment
        record: dict[str, object] = {"id": entry.id, "system": entry.system}
        record |= {} if segment.source is None else {"src": segment.source}
        record["mt" if dialect == "xcomet" else "tgt"] = segment.hypothesis
        record |= {"ref": segment.references[0]} if segment.references else {}
        if entry.spans is not None:
            written = xcomet_items if dialect == "xcomet" else pearmut_items
            options = () if dialect == "xcomet" else (unit,)
            record["error_spans"] = written(entry.spans, segment.hypothesis, lost, *options)
        yield json_line(record)


def read_mtme(path: str | Path, texts: Dataset) -> Dataset:
    """Return texts with the ratings of mt-metrics-eval, which stand in the order of each system's lines."""
    notes: Tally = Counter()
    waiting = {system: list(texts.of(system).entries) for system in texts.systems}
    rated: dict[tuple[str, str], tuple[tuple[ErrorSpan, ...] | None, str]] = {}
    for number, text in enumerate(read_lines(path).texts, start=1):
        system, tab, rest = text.partition("\t")
        rating, *rater = rest.split("\t")
        if not tab:
            raise DataError("expected a system, a tab and a rating", file=str(path), line=number)
        if not waiting.get(system):
            names = ", ".join(waiting)
            raise DataError(f"no text for a rating of {system!r}; texts are of: {names}", file=str(path), line=number)
        entry = waiting[system].pop(0)
        try:
            items = None if rating == "None" else json.loads(rating, parse_int=whole)
            spans = mtme_spans(items, entry.segment, notes)
        except (BadSpan, RecursionError, ValueError) as error:
            raise DataError(f"not a rating: {error}", file=str(path), line=number) from error
        rated[system, entry.id] = spans, "".join(rater)
    entries = tuple(_with_rating(entry, *rated.get((entry.system, entry.id), (None, ""))) for entry in texts.entries)
    return replace(texts, entries=entries, findings=(*texts.findings, *changed_spans(notes, str(path))))


def _with_rating(entry: Entry, spans: tuple[ErrorSpan, ...] | None, rater: str) -> Entry:
    return replace(entry, spans=spans, extra={**entry.extra, "raters": [rater]} if rater else entry.extra)


def mtme_lines(dataset: Dataset, lost: Tally) -> Iterator[str]:
    """Yield ratings of mt-metrics-eval, one a line."""
    for entry in dataset.entries:
        rating = mtme_rating(entry.spans, lost)
        written = "None" if rating is None else json.dumps(rating, ensure_ascii=False)
        yield tab_separated((entry.system, written, _rater(entry)))


def _rater(entry: Entry) -> str:
    raters = entry.extra.get("raters")
    return str(raters[0]) if isinstance(raters, list) and raters else "rater"


def read_marot(path: str | Path) -> Dataset:
    """Return the segments of Marot rows, spans located by their tokens."""
    groups: dict[tuple[str, str], list[Rating]] = {}
    for row in read_ratings(path):
        groups.setdefault((row.values["system"], row.values["seg_id"]), []).append(row)
    entries = []
    for (system, number), rows in groups.items():
        first = rows[0].values
        segment = Segment(first["target"], first["source"])
        spans = [span for row in rows if not row.nothing for span in _marot_spans(row, segment, str(path))]
        extra = {"raters": list(dict.fromkeys(row.values.get("rater", "") for row in rows))}
        entries.append(Entry(number, system, segment, {}, tuple(spans), first.get("doc"), extra))
    return Dataset(Path(path).name, tuple(entries))


def _marot_spans(row: Rating, segment: Segment, file: str) -> Iterator[ErrorSpan]:
    try:
        about = json.loads(row.values.get("metadata") or "{}")
        tokens = about.get("segment") or {}
        for side, text in ((Side.SOURCE, segment.source or ""), (Side.HYPOTHESIS, segment.hypothesis)):
            name = "source" if side is Side.SOURCE else "target"
            tokens_of_side = tokens.get(f"{name}_tokens")
            words = _WORDS.split(text) if tokens_of_side is None else locate(tokens_of_side, text)
            for first, last in about.get(f"{name}_spans") or []:
                severity = severity_of({"severity": row.values["severity"]})
                yield ErrorSpan(*token_span(words, first, last), severity, row.values["category"] or None, side)
    except (BadSpan, RecursionError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"the metadata cannot be read: {error}", file=file, line=row.line) from error


def marot_lines(dataset: Dataset, lost: Tally) -> Iterator[str]:
    """Yield Marot rows, spans as white-space tokens."""
    names = {"doc_id": "docSegId", "seg_id": "globalSegId"}
    yield tab_separated([*(names.get(column, column) for column in COLUMNS), "metadata"])
    for number, entry in enumerate(dataset.entries):
        if entry.spans is None:
            lost["unrated segment"] += 1
            continue
        segment = entry.segment
        texts = {Side.SOURCE: _WORDS.split(segment.source or ""), Side.HYPOTHESIS: _WORDS.split(segment.hypothesis)}
        tokens = {"source_tokens": list(texts[Side.SOURCE]), "target_tokens": list(texts[Side.HYPOTHESIS])}
        base = [entry.system, entry.document or "", str(number), entry.id, _rater(entry)]
        base += [segment.source or "", segment.hypothesis]
        rows = [row for span in entry.spans if (row := _marot_row(span, texts, lost))]
        for category, severity, spans in rows or [(NO_ERROR, NO_ERROR, {})]:
            about = json.dumps({"segment": tokens, **spans}, ensure_ascii=False)
            yield tab_separated([*base, category, severity, about])


def _marot_row(span: ErrorSpan, texts: Mapping[Side, Words], lost: Tally) -> tuple[str, str, dict[str, object]] | None:
    if span.side not in texts:
        lost["span of a reference"] += 1
        return None
    words = texts[span.side]
    touched = tokens_of(words, span)
    if touched is None:
        lost["span without a token"] += 1
        return None
    if token_span(words, *touched) != (span.start, span.end):
        lost["grown to whole words"] += 1
    name = "source" if span.side is Side.SOURCE else "target"
    return span.category or "", (span.severity or "").capitalize(), {f"{name}_spans": [list(touched)]}


def read_wmtqe(path: str | Path) -> Dataset:
    """Return the segments of a WMT QE task 2 file: gold, or a submission with its three header lines."""
    notes: Tally = Counter()
    entries: list[Entry] = []
    for number, text in enumerate(read_lines(path).texts, start=1):
        cells = text.split("\t")
        if len(cells) != len(_WMTQE) or cells[0] == "LP":
            if entries:
                raise DataError(f"expected {len(_WMTQE)} columns, found {len(cells)}", file=str(path), line=number)
            continue
        try:
            spans = wmtqe_spans(Lists(*cells[4:]), cells[3], notes)
        except BadSpan as error:
            raise DataError(str(error), file=str(path), line=number) from error
        entries.append(Entry(cells[2], cells[1], Segment(cells[3]), spans=spans, extra={"lp": cells[0]}))
    if not entries:
        raise DataError(f"{path} holds no rows: expected {' '.join(_WMTQE)}")
    return Dataset(Path(path).name, tuple(entries), None, tuple(changed_spans(notes, str(path))))


def wmtqe_lines(dataset: Dataset, lost: Tally) -> Iterator[str]:
    """Yield a header and one row a segment, as the gold files of WMT QE task 2 have them."""
    yield tab_separated(_WMTQE)
    languages = "-".join(dataset.languages) if dataset.languages else "-"
    for entry in dataset.entries:
        if entry.spans is None:
            lost["unrated segment"] += 1
            continue
        lists = wmtqe_lists(entry.spans, entry.segment.hypothesis, lost)
        cells = (str(entry.extra.get("lp", languages)), entry.system, entry.id, entry.segment.hypothesis, *lists)
        yield tab_separated(cells)


def read_tags(path: str | Path, texts: Dataset) -> Dataset:
    """Return a data set of texts with runs of BAD words as spans, one line of tags an entry."""
    parsed = tag_lines(read_lines(path), str(path))
    errors = [finding for finding in parsed.findings if finding.error]
    if errors:
        raise DataError(errors[0].message, file=errors[0].file, line=errors[0].line)
    rows = parsed.values.rows()
    if len(rows) != len(texts):
        raise DataError(f"{path} has {len(rows)} lines, {texts.name} has {len(texts)} segments: counts must match")
    entries = []
    for number, (entry, tags) in enumerate(zip(texts.entries, rows, strict=True), start=1):
        words = _WORDS.split(entry.segment.hypothesis)
        if len(words) != len(tags):
            raise DataError(f"{len(tags)} tags for {len(words)} words", file=str(path), line=number)
        entries.append(
            replace(entry, spans=tuple(replace(span, score=None) for span in to_spans(words, tags, _TAGGED)))
        )
    return replace(texts, entries=tuple(entries))


def tags_lines(dataset: Dataset, lost: Tally, *, names: Sequence[str] = ("0", "1")) -> Iterator[str]:
    """Yield one line of word tags an entry: 1 (or BAD) where a span of the hypothesis touches the word."""
    for entry in dataset.entries:
        if entry.spans is None:
            lost["unrated segment, written as correct"] += 1
        spans = [span for span in entry.spans or () if span.side is Side.HYPOTHESIS]
        lost["span of another text"] += len(entry.spans or ()) - len(spans)
        lost["omission"] += sum(span.start == span.end for span in spans)
        levels = to_levels(_WORDS.split(entry.segment.hypothesis), spans)
        yield " ".join(names[int(level > 0)] for level in levels.tolist()) + "\n"


def changed_spans(notes: Tally, file: str) -> Iterator[Finding]:
    """Yield what was put right while spans were read."""
    return (Finding("spans-changed", f"spans {what}: {count}", file) for what, count in notes.items() if count)
