"""The WMT26 automated evaluation task: JSON lines, one item per line, with the outputs of all systems.

| field | holds |
|---|---|
| `item_id` | source language, target language, domain, document and segment, joined by `_###_` |
| `src` | the source |
| `ref` | `text` and `type` (`human`, `postedit`, `pseudo`); or a text, or nothing |
| `hyps` | system -> hypothesis |
| `task1_pred` | system -> `errors` (`start`, `end`, `severity`; half-open code points), and a severity or null for an
`omission` and an `instruction_fault` |
| `task2_pred` | system -> predicted ESA score, 0 to 100 |
| `task3_pred` | system -> 1 for an error-free segment, 0 for others |

1. Other fields, and other fields of `ref` and of errors, are named once in a finding and skipped: layouts change.
2. Omissions and instruction faults have no place in the text: they are empty spans at its end, with their category.
3. A submission holds `item_id` and the predictions alone: its texts come from the task's file.
4. Writing keeps the order of items and systems. Critical counts as major, an unknown severity as minor; of several
   omissions the worst is written. What is changed or cannot be said is counted.

The tables of WMT25 have the spans of a segment in three columns: `start_indices`, `end_indices` and `error_types`, with
blanks between; -1 is no error, `missing` an omission. Ends are taken to be exclusive, as in WMT's QE tasks before.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from whyscore.data.files import TextFile
from whyscore.data.formats.dialects import (
    MISSING,
    OMISSION,
    Lists,
    Offsets,
    Tally,
    changed_spans,
    severity_of,
    to_codepoints,
    wmtqe_spans,
)
from whyscore.data.formats.jsonl import objects
from whyscore.data.formats.spans import BadSpan, whole_at
from whyscore.errors import DataError
from whyscore.text.files import line as json_line
from whyscore.types import Dataset, Entry, ErrorSpan, Finding, Origin, Segment, Severity, Side

FAULT = "instruction"
ESA, ERROR_FREE = "esa", "error_free"
"""Where predicted scores and decisions stand in the extra columns of an entry."""
_BETWEEN = "_###_"
_PARTS = 5
_FIELDS = ("item_id", "src", "ref", "hyps", "task1_pred", "task2_pred", "task3_pred")
_INSIDE = {
    "ref": ("text", "type"),
    "task1_pred": ("errors", "omission", "instruction_fault"),
    "errors": ("start", "end", "severity", "category", "text"),
}
_WORST: dict[Severity | None, int] = {None: 0, "neutral": -1, "minor": 0, "major": 1, "critical": 2}


def is_wmt26(value: Mapping[str, object]) -> bool:
    """Return whether an object is an item of the task."""
    return "item_id" in value and any(name in value for name in ("hyps", "task1_pred", "task2_pred", "task3_pred"))


def read_wmt26(path: str | Path, texts: Dataset | None = None, unit: Offsets = "codepoints") -> Dataset:
    """Return the segments of a file of the task; a submission, which has no texts, takes them from a data set."""
    return wmt26_of(TextFile(path), texts, unit)


def wmt26_of(file: TextFile, texts: Dataset | None = None, unit: Offsets = "codepoints") -> Dataset:
    """Return the segments of a file of which nothing has been read yet."""
    entries_by_key = {} if texts is None else {(entry.id, entry.system): entry for entry in texts.entries}
    reader = _Reader(entries_by_key, unit)
    entries: list[Entry] = []
    lines: list[int] = []
    seen: dict[str, int] = {}
    for item in objects(file, []):
        try:
            added = list(reader.entries(item.value))
        except BadSpan as error:
            raise DataError(str(error), file=file.name, line=item.line) from error
        name = str(item.value.get("item_id"))
        if name in seen:
            raise DataError(
                f"the item {name!r} comes twice, first on line {seen[name]}", file=file.name, line=item.line
            )
        seen[name] = item.line
        entries += added
        lines += [item.line] * len(added)
    file.refuse_empty("one item of WMT26 per line")
    pairs = {pair for entry in entries if (pair := _languages(entry.id)) is not None}
    origin = Origin.table(file.name, list(dict.fromkeys(entry.system for entry in entries)), lines)
    languages = pairs.pop() if len(pairs) == 1 else None
    findings = (*file.findings, *reader.findings(file.name), *_disorder(entries, file.name))
    return Dataset(Path(file.name).name, tuple(entries), languages, findings, origin)


class _Reader:
    """Turns items into entries, and keeps what is to be said about them."""

    def __init__(self, texts: Mapping[tuple[str, str], Entry], unit: Offsets) -> None:
        self._texts, self._unit = texts, unit
        self.notes: Tally = Counter()
        self.unknown: dict[str, None] = {}

    def entries(self, item: Mapping[str, object]) -> Iterator[Entry]:
        self._skip(item, _FIELDS)
        name = item.get("item_id")
        if not isinstance(name, str) or not name:
            raise BadSpan(f"item_id is {name!r}, expected a text")
        predictions = {task: _by_system(item, task) for task in _FIELDS[4:]}
        hypotheses = _by_system(item, "hyps")
        systems = hypotheses or dict.fromkeys(system for by_system in predictions.values() for system in by_system)
        for translations in predictions.values():
            for system in translations:
                if hypotheses and system not in hypotheses:
                    raise BadSpan(
                        f"a prediction for {system!r}, which has no hypothesis; there are: {', '.join(hypotheses)}"
                    )
        reference, kind = self._reference(item.get("ref"))
        for system, text in systems.items():
            base = self._base(name, system, text, item.get("src"), reference, kind)
            spans = self._spans(predictions["task1_pred"].get(system), base.segment.hypothesis)
            extra = dict(base.extra)
            for task, column in (("task2_pred", ESA), ("task3_pred", ERROR_FREE)):
                value = predictions[task].get(system)
                if value is not None:
                    extra[column] = _score(value, task)
            yield Entry(
                name, system, base.segment, base.human, base.spans if spans is None else spans, base.document, extra
            )

    def _base(  # noqa: PLR0917 - for this class alone
        self, name: str, system: str, text: object, source: object, reference: str | None, kind: str | None
    ) -> Entry:
        """Return the entry of a system without predictions: from its texts here, or from those beside the file."""
        if text is None:
            if (name, system) not in self._texts:
                cure = "the texts beside it have none" if self._texts else "give the task's file with --texts"
                raise BadSpan(f"no hypothesis of {system!r} for the item {name!r}: {cure}")
            return self._texts[name, system]
        if not isinstance(text, str):
            raise BadSpan(f"the hypothesis of {system!r} is {text!r}, expected a text")
        if source is not None and not isinstance(source, str):
            raise BadSpan(f"src is {source!r}, expected a text")
        parts = name.split(_BETWEEN)
        extra: dict[str, object] = {"reference_type": kind} if kind else {}
        document = None
        if len(parts) == _PARTS:
            extra["domain"] = parts[2]
            document = _BETWEEN.join(parts[:4])
        return Entry(
            name, system, Segment(text, source, (reference,) if reference else ()), document=document, extra=extra
        )

    def _reference(self, value: object) -> tuple[str | None, str | None]:
        if value is None or isinstance(value, str):
            return value, None
        if not isinstance(value, Mapping):
            raise BadSpan(f"ref is {value!r}, expected an object with text and type")
        self._skip(value, _INSIDE["ref"], "ref.")
        text, kind = value.get("text"), value.get("type")
        if text is not None and not isinstance(text, str):
            raise BadSpan(f"the text of ref is {text!r}, expected a text")
        return text, None if kind is None else str(kind)

    def _spans(self, value: object, text: str) -> tuple[ErrorSpan, ...] | None:
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise BadSpan(f"task1_pred is {value!r}, expected an object with errors")
        self._skip(value, _INSIDE["task1_pred"], "task1_pred.")
        errors = value.get("errors")
        if errors is not None and not isinstance(errors, list):
            raise BadSpan(f"errors is {errors!r}, expected a list")
        spans = [self._span(item, text) for item in errors or []]
        ordered = sorted(spans, key=lambda span: (span.start, span.end))
        self.notes["that overlap another one"] += sum(span.end > other.start for span, other in pairwise(ordered))
        for field, category in (("omission", OMISSION), ("instruction_fault", FAULT)):
            if value.get(field) is not None:
                spans.append(ErrorSpan(len(text), len(text), severity_of({"severity": value[field]}), category))
        return tuple(spans)

    def _span(self, item: object, text: str) -> ErrorSpan:
        if not isinstance(item, Mapping):
            raise BadSpan(f"an error is {item!r}, expected an object with start, end and severity")
        self._skip(item, _INSIDE["errors"], "errors.")
        places = [whole_at(item, key) for key in ("start", "end")]
        start, end = places
        if start < 0 or end < start:
            raise BadSpan(f"the span {start}-{end} is reversed or begins before the text: expected 0 <= start <= end")
        start, end = (to_codepoints(text, place, self._unit) for place in places)
        if end > len(text):
            shifted = self._unit == "codepoints" and end <= len(text.encode("utf-16-le", "surrogatepass")) // 2
            self.notes[
                f"clipped to the text{'; in UTF-16 units? Then read with --offsets utf16' if shifted else ''}"
            ] += 1
            start, end = min(start, len(text)), len(text)
        quoted = item.get("text")
        if isinstance(quoted, str) and quoted != text[start:end]:
            self.notes["that hold another text than they say"] += 1
        category = item.get("category")
        return ErrorSpan(start, end, severity_of(item), None if category is None else str(category))

    def _skip(self, value: Mapping[str, object], fields: tuple[str, ...], prefix: str = "") -> None:
        self.unknown |= {f"{prefix}{name}": None for name in value if name not in fields}

    def findings(self, file: str) -> Iterator[Finding]:
        if self.unknown:
            yield Finding("unknown-fields", f"fields that are not known were skipped: {', '.join(self.unknown)}", file)
        yield from changed_spans(self.notes, file)


def _by_system(item: Mapping[str, object], field: str) -> Mapping[str, object]:
    value = item.get(field)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise BadSpan(f"{field} is {value!r}, expected an object with one value per system")
    return value


def _score(value: object, task: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise BadSpan(f"{task} is {value!r}, expected a number")
    return float(value)


def _languages(name: str) -> tuple[str, str] | None:
    """Return the languages in an item id: `eng_Latn` and `de_DE` are cut to the language."""
    parts = name.split(_BETWEEN)
    return (_language(parts[0]), _language(parts[1])) if len(parts) == _PARTS else None


_CODES = {
    "eng": "en", "ces": "cs", "deu": "de", "ukr": "uk", "zho": "zh", "cmn": "zh", "jpn": "ja", "kor": "ko", "rus": "ru",
    "est": "et", "isl": "is", "arb": "ar", "ara": "ar", "arz": "ar", "srp": "sr", "ita": "it",
    "hin": "hi", "spa": "es", "fra": "fr", "por": "pt", "pol": "pl", "tur": "tr", "vie": "vi", "tha": "th", "ind": "id",
}  # fmt: skip
"""ISO 639-3 to the codes that metrics know."""


def _language(code: str) -> str:
    main = code.replace("-", "_").partition("_")[0].lower()
    return _CODES.get(main, main)


def _disorder(entries: list[Entry], file: str) -> Iterator[Finding]:
    """Yield the documents whose segments are out of order: context from previous segments would be wrong there."""
    last: dict[tuple[str, str], int] = {}
    problems: dict[str, None] = {}
    for entry in entries:
        number = entry.id.rpartition(_BETWEEN)[2]
        if entry.document is None or not number.isdecimal():
            continue
        if last.get((entry.system, entry.document), -1) > int(number):
            problems[entry.document] = None
        last[entry.system, entry.document] = int(number)
    if problems:
        names = ", ".join(list(problems)[:3])
        yield Finding("document-order", f"segments of {len(problems)} document(s) are out of order: {names}", file)


def wmt26_lines(dataset: Dataset, lost: Tally, *, texts: bool = False) -> Iterator[str]:
    """Yield one item a line: spans, scores and decisions of all systems, and with `texts` the texts too.

    The score of an entry is its extra column `esa`, or its human score of that name; the decision whether it is free
    of errors is its extra column `error_free`. `lost` counts what the layout cannot say.
    """
    items: dict[str, list[Entry]] = {}
    for entry in dataset.entries:
        items.setdefault(entry.id, []).append(entry)
    for name, fields in items.items():
        record: dict[str, object] = {"item_id": name}
        if texts:
            first = fields[0].segment
            kind = fields[0].extra.get("reference_type")
            record |= {} if first.source is None else {"src": first.source}
            record["ref"] = {"text": first.references[0], "type": kind} if first.references else None
            record["hyps"] = {entry.system: entry.segment.hypothesis for entry in fields}
        spans = {entry.system: _errors(entry, lost) for entry in fields if entry.spans is not None}
        scores = {entry.system: value for entry in fields if (value := _own_score(entry)) is not None}
        free = {entry.system: int(bool(flag)) for entry in fields if (flag := entry.extra.get(ERROR_FREE)) is not None}
        for field, values in (("task1_pred", spans), ("task2_pred", scores), ("task3_pred", free)):
            record |= {field: values} if values else {}
        yield json_line(record)


_WMT25 = ("start_indices", "end_indices", "error_types")


def with_wmt25_spans(dataset: Dataset) -> Dataset:
    """Return a table of WMT25 with its error spans; other tables as they are."""
    if not all(name in entry.extra for entry in dataset.entries[:1] for name in _WMT25) or not dataset.entries:
        return dataset
    notes: Tally = Counter()
    entries = []
    for number, entry in enumerate(dataset.entries, start=1):
        cells = [str(entry.extra.get(name) or "") for name in _WMT25]
        rated = bool(cells[0].strip())
        end = str(len(entry.segment.hypothesis))
        # An omission has no place: wmtqe puts it behind the text.
        lists = Lists(*(" ".join(end if word == MISSING else word for word in cell.split()) for cell in cells))
        try:
            spans = wmtqe_spans(lists, entry.segment.hypothesis, notes) if rated else None
        except BadSpan as error:
            raise DataError(f"segment {entry.id!r}, row {number} of the data: {error}", file=dataset.name) from error
        extra = {name: value for name, value in entry.extra.items() if name not in _WMT25}
        entries.append(replace(entry, spans=spans, extra=extra))
    return replace(dataset, entries=tuple(entries), findings=(*dataset.findings, *changed_spans(notes, dataset.name)))


def _own_score(entry: Entry) -> float | None:
    value = entry.extra.get(ESA, entry.human.get(ESA))
    return float(value) if isinstance(value, int | float) else None


def _errors(entry: Entry, lost: Tally) -> dict[str, object]:
    errors: list[dict[str, object]] = []
    whole: dict[str, Severity | None] = {"omission": None, "instruction_fault": None}
    for span in entry.spans or ():
        if span.side is not Side.HYPOTHESIS and not (span.side is Side.SOURCE and span.category == OMISSION):
            lost[f"span of a {span.side}"] += 1
            continue
        if span.severity == "neutral":
            lost["neutral span"] += 1
            continue
        for what, note in ((None, "unknown severity, written as minor"), ("critical", "critical, written as major")):
            lost[note] += span.severity == what
        severity: Severity = "major" if span.severity in ("major", "critical") else "minor"
        if span.side is Side.SOURCE or span.start == span.end:
            field = "instruction_fault" if span.category == FAULT else "omission"
            lost[f"further {field}"] += whole[field] is not None
            lost["place of an omission"] += span.side is Side.SOURCE or span.start != len(entry.segment.hypothesis)
            whole[field] = max(severity, whole[field] or severity, key=_WORST.__getitem__)
            continue
        for name in ("score", "confidence"):
            lost[name] += getattr(span, name) is not None
        error: dict[str, object] = {"start": span.start, "end": span.end, "severity": severity}
        errors.append(error | ({} if span.category is None else {"category": span.category}))
    return {"errors": errors, **whole}
