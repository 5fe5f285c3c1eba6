"""Files of error spans in the dialects of other programs: read as data sets, written from them.

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
from pathlib import Path

from whyscore.errors import DataError
from whyscore.io import dialects
from whyscore.io.columns import ALIASES
from whyscore.io.dialects import Lists, Offsets, Tally
from whyscore.io.files import TextFile, read_lines
from whyscore.io.jsonl import objects
from whyscore.io.mqm import COLUMNS, NO_ERROR, Rating, read_ratings
from whyscore.io.naming import system_names
from whyscore.io.spans import BadSpan
from whyscore.io.strict import line as json_line
from whyscore.io.strict import whole
from whyscore.io.word_lines import tag_lines
from whyscore.stats.spans import Thresholds, Touch, to_levels, to_spans
from whyscore.text.splitters import WhiteSpace
from whyscore.types import Dataset, Entry, ErrorSpan, Finding, Segment, Side, Words

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
    return Dataset(Path(path).name, tuple(entries), None, (*file.findings, *_told(notes, file.name)))


def _json_entries(  # noqa: PLR0917 - for this module alone
    value: Mapping[str, object], number: int, path: str, dialect: str, unit: Offsets, notes: Tally
) -> Iterator[Entry]:
    lower = {key.lower(): given for key, given in value.items()}
    texts = next((lower[name] for name in _TEXTS["hypothesis"] if name in lower), None)
    source = next((lower[name] for name in _TEXTS["source"] if name in lower), None)
    given = lower.get("error_spans", lower.get("errors", lower.get("spans")))
    systems = texts if isinstance(texts, Mapping) else {str(lower.get("system") or system_names([path])[0]): texts}
    for system, text in systems.items():
        if not isinstance(text, str):
            raise BadSpan(f"no text of the hypothesis: expected one of {', '.join(_TEXTS['hypothesis'][:4])}")
        items = given.get(system) if isinstance(given, Mapping) else given
        if items is not None and not isinstance(items, list):
            raise BadSpan(f"error_spans is {items!r}, expected a list")
        if dialect == "xcomet":
            spans = None if items is None else dialects.xcomet_spans(items, text, notes)
        else:
            spans = None if items is None else dialects.pearmut_spans(items, text, notes, unit)
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
            written = dialects.xcomet_items if dialect == "xcomet" else dialects.pearmut_items
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
            known = ", ".join(waiting)
            raise DataError(f"no text for a rating of {system!r}; texts are of: {known}", file=str(path), line=number)
        entry = waiting[system].pop(0)
        try:
            found = None if rating == "None" else json.loads(rating, parse_int=whole)
            spans = dialects.mtme_spans(found, entry.segment, notes)
        except (BadSpan, RecursionError, ValueError) as error:
            raise DataError(f"not a rating: {error}", file=str(path), line=number) from error
        rated[system, entry.id] = spans, "".join(rater)
    entries = tuple(_with_rating(entry, *rated.get((entry.system, entry.id), (None, ""))) for entry in texts.entries)
    return replace(texts, entries=entries, findings=(*texts.findings, *_told(notes, str(path))))


def _with_rating(entry: Entry, spans: tuple[ErrorSpan, ...] | None, rater: str) -> Entry:
    return replace(entry, spans=spans, extra={**entry.extra, "raters": [rater]} if rater else entry.extra)


def mtme_lines(dataset: Dataset, lost: Tally) -> Iterator[str]:
    """Yield ratings of mt-metrics-eval, one a line."""
    for entry in dataset.entries:
        rating = dialects.mtme_rating(entry.spans, lost)
        raters = entry.extra.get("raters")
        rater = str(raters[0]) if isinstance(raters, list) and raters else "rater"
        written = "None" if rating is None else json.dumps(rating, ensure_ascii=False)
        yield f"{entry.system}\t{written}\t{rater}\n"


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
            given = tokens.get(f"{name}_tokens")
            words = _WORDS.split(text) if given is None else dialects.located(given, text)
            for first, last in about.get(f"{name}_spans") or []:
                severity = dialects.severity_of({"severity": row.values["severity"]})
                yield ErrorSpan(
                    *dialects.token_span(words, first, last), severity, row.values["category"] or None, side
                )
    except (BadSpan, RecursionError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"the metadata cannot be read: {error}", file=file, line=row.line) from error


def marot_lines(dataset: Dataset, lost: Tally) -> Iterator[str]:
    """Yield Marot rows, spans as white-space tokens."""
    yield (
        "\t".join(
            [*("docSegId" if c == "doc_id" else "globalSegId" if c == "seg_id" else c for c in COLUMNS), "metadata"]
        )
        + "\n"
    )
    for number, entry in enumerate(dataset.entries):
        if entry.spans is None:
            lost["unrated segment"] += 1
            continue
        segment = entry.segment
        texts = {Side.SOURCE: _WORDS.split(segment.source or ""), Side.HYPOTHESIS: _WORDS.split(segment.hypothesis)}
        tokens = {"source_tokens": list(texts[Side.SOURCE]), "target_tokens": list(texts[Side.HYPOTHESIS])}
        raters = entry.extra.get("raters")
        rater = str(raters[0]) if isinstance(raters, list) and raters else "rater"
        base = [
            entry.system,
            entry.document or "",
            str(number),
            entry.id,
            rater,
            segment.source or "",
            segment.hypothesis,
        ]
        rows = [found for span in entry.spans if (found := _marot_row(span, texts, lost))]
        for category, severity, spans in rows or [(NO_ERROR, NO_ERROR, {})]:
            about = json.dumps({"segment": tokens, **spans}, ensure_ascii=False)
            yield "\t".join([*base, category, severity, about]) + "\n"


def _marot_row(span: ErrorSpan, texts: Mapping[Side, Words], lost: Tally) -> tuple[str, str, dict[str, object]] | None:
    if span.side not in texts:
        lost["span of a reference"] += 1
        return None
    words = texts[span.side]
    touched = dialects.tokens_of(words, span)
    if touched is None:
        lost["span without a token"] += 1
        return None
    if dialects.token_span(words, *touched) != (span.start, span.end):
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
            spans = dialects.wmtqe_spans(Lists(*cells[4:]), cells[3], notes)
        except BadSpan as error:
            raise DataError(str(error), file=str(path), line=number) from error
        entries.append(Entry(cells[2], cells[1], Segment(cells[3]), spans=spans, extra={"lp": cells[0]}))
    if not entries:
        raise DataError(f"{path} holds no rows: expected {' '.join(_WMTQE)}")
    return Dataset(Path(path).name, tuple(entries), None, tuple(_told(notes, str(path))))


def wmtqe_lines(dataset: Dataset, lost: Tally) -> Iterator[str]:
    """Yield a header and one row a segment, as the gold files of WMT QE task 2 have them."""
    yield "\t".join(_WMTQE) + "\n"
    languages = "-".join(dataset.languages) if dataset.languages else "-"
    for entry in dataset.entries:
        if entry.spans is None:
            lost["unrated segment"] += 1
            continue
        lists = dialects.wmtqe_lists(entry.spans, entry.segment.hypothesis, lost)
        cells = (str(entry.extra.get("lp", languages)), entry.system, entry.id, entry.segment.hypothesis, *lists)
        yield "\t".join(cells) + "\n"


def read_tags(path: str | Path, texts: Dataset, side: Side = Side.HYPOTHESIS) -> Dataset:
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
        words = _WORDS.split((entry.segment.source or "") if side is Side.SOURCE else entry.segment.hypothesis)
        if len(words) != len(tags):
            raise DataError(f"{len(tags)} tags for {len(words)} words", file=str(path), line=number)
        entries.append(
            replace(entry, spans=tuple(replace(one, score=None) for one in to_spans(words, tags, _TAGGED, side)))
        )
    return replace(texts, entries=tuple(entries))


def tags_lines(
    dataset: Dataset, lost: Tally, *, touch: Touch = "any", names: Sequence[str] = ("0", "1")
) -> Iterator[str]:
    """Yield one line of word tags an entry: 1 (or BAD) where a span of the hypothesis touches the word."""
    for entry in dataset.entries:
        if entry.spans is None:
            lost["unrated segment, written as correct"] += 1
        own = [span for span in entry.spans or () if span.side is Side.HYPOTHESIS]
        lost["span of another text"] += len(entry.spans or ()) - len(own)
        lost["omission"] += sum(span.start == span.end for span in own)
        levels = to_levels(_WORDS.split(entry.segment.hypothesis), own, touch)
        yield " ".join(names[int(level > 0)] for level in levels.tolist()) + "\n"


def _told(notes: Tally, file: str) -> Iterator[Finding]:
    return (Finding(f"spans {what}: {count}", file) for what, count in notes.items() if count)
