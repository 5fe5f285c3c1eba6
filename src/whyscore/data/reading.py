"""Any single file or data frame as a data set: the suffix says what it is, or else the content.

| suffix (also with `.gz`, `.zst`) | read as |
|---|---|
| `.tsv`, `.csv` | table; its header tells whether columns are separated by tab, comma, semicolon or bar |
| `.xlsx` | the first sheet of an Excel workbook, as a table |
| `.jsonl`, `.ndjson` | JSON lines, or a data set that whyscore wrote |
| `.txt` | one hypothesis a line |
| `.xlf`, `.xliff` | XLIFF 1.2 or 2.x: source and target of every unit |
| `.tmx` | TMX 1.4: the variants of a language pair |
| `.eval`, `.json` | a log of inspect_ai (`logs`) |
| `.pkl` | summaries of REALSumm (`summaries`), without running any code in them |
| a folder | a WMT folder or submissions to WMT (`wmt`), gold of a word-level task (`eval4nlp`), REALSumm's files |

By content: a line that starts with `{` is JSON lines, one with a tab is TSV, anything else is text. Tables and JSON
lines with the columns of MQM ratings, whose texts hold `<v>` marks, are read as such (`mqm`), and so are JSON lines
with the fields of SummEval's annotations (`summaries`), of samples of lm-evaluation-harness (`logs`) or of WMT26's
evaluation task (`wmt26`).

Data frames of any library that narwhals knows (pandas, polars, pyarrow ...) have the column names of tables. A null is
a missing value; rows count from one in messages.

Dialects of error spans are known by name and content. By name: `.xlf`, `.xliff` is XLIFF, `.rating` is mt-metrics-eval,
a name that ends in `tags` is word tags, a folder is gold of a word-level task. By content: whyscore's own records; JSON
lines and tables by the keys of their first object or the names of their columns.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, Protocol, cast, get_args

from whyscore.data.codec import is_header, read_records
from whyscore.data.columns import Block, Choice
from whyscore.data.dataset import dataset_of, read_dataset
from whyscore.data.files import STDIN, Limits, TextFile
from whyscore.data.formats.dialects import Offsets, read_json_spans, read_marot, read_mtme, read_tags, read_wmtqe
from whyscore.data.formats.eval4nlp import gold_dataset, is_gold
from whyscore.data.formats.jsonl import jsonl_of, parse_object
from whyscore.data.formats.logs import inspect_of, is_lm_eval, lm_eval_of
from whyscore.data.formats.mqm import is_mqm, read_mqm
from whyscore.data.formats.spans import BadSpan, spans_of
from whyscore.data.formats.summaries import REALSUMM, is_summeval, realsumm_of, summeval_of
from whyscore.data.formats.tables import table_of, xlsx_of
from whyscore.data.formats.tmx import tmx_of
from whyscore.data.formats.wmt import is_submissions, is_wmt, read_submissions, read_wmt
from whyscore.data.formats.wmt26 import is_wmt26, read_wmt26, with_wmt25_spans, wmt26_of
from whyscore.data.formats.xliff import INLINES, Inline, read_xliff, xliff_of
from whyscore.data.gathering import Gathering, Options, Quoting
from whyscore.data.naming import plain_name, system_names
from whyscore.errors import DataError, MissingExtra, SpecError, UserError, need_package
from whyscore.stats.annotators import GOOGLE, Weights
from whyscore.types import Dataset, Entry, ErrorSpan, Origin, Segment

Format = Literal["tsv", "csv", "xlsx", "jsonl", "txt", "xliff", "tmx", "eval", "pkl"]
_FORMATS: dict[str, Format] = {
    ".tsv": "tsv",
    ".csv": "csv",
    ".xlsx": "xlsx",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".txt": "txt",
    ".xlf": "xliff",
    ".xliff": "xliff",
    ".tmx": "tmx",
    ".eval": "eval",
    ".json": "eval",
    ".pkl": "pkl",
}
_DELIMITERS = {"tsv": "\t", "csv": ","}


def read(
    path: str | Path,
    *,
    columns: Choice | None = None,
    human: str | Sequence[str] = (),
    header: bool = True,
    quoting: Quoting = "auto",
    languages: tuple[str, str] | None = None,
    encoding: str = "utf-8",
    limits: Limits | None = None,
    format: Format | None = None,  # noqa: A002 - the word users know
    inline: Inline = "drop",
    alt_trans: bool = False,
) -> Dataset:
    """Return the data set in a file or folder; `-` is the standard input.

    Args:
        path: the file, plain or packed.
        columns: role -> name of its column, where names do not say it; numbers count columns from one.
        human: further columns with human scores.
        header: whether the first line of a table names its columns.
        quoting: how quotation marks in TSV are read.
        languages: source and target language, e.g. `("de", "en")`.
        encoding: where the file is not UTF-8.
        limits: guards against huge files.
        format: instead of the one the suffix stands for.
        inline: whether inline codes of XLIFF and TMX are left out or leave one private-use character each.
        alt_trans: whether the alternative translations of XLIFF 1.2 are references.
    """
    if quoting not in get_args(Quoting):
        raise SpecError(f"quoting is {quoting!r}, expected {' or '.join(map(repr, get_args(Quoting)))}")
    human_names = (human,) if isinstance(human, str) else tuple(human)
    options = Options(columns or {}, human_names, header, quoting, languages, encoding, limits or Limits())
    if inline not in INLINES:
        raise SpecError(f"inline is {inline!r}, expected {' or '.join(map(repr, INLINES))}")
    if Path(path).is_dir():
        return _folder(path, options)
    kind = format or _by_suffix(path)
    if kind in ("xliff", "tmx"):
        return _read_markup(path, options, kind, inline, alt_trans=alt_trans)
    if kind == "pkl":
        return replace(realsumm_of(path, options.limits), languages=languages)
    if kind == "eval":
        return replace(inspect_of(path, options.limits), languages=languages)
    if kind == "xlsx":
        return xlsx_of(path, options)
    return _read_lines(path, kind, options)


def _read_markup(path: str | Path, options: Options, kind: Format, inline: Inline, *, alt_trans: bool) -> Dataset:
    languages, encoding, limits = options.languages, options.encoding, options.limits
    if kind == "tmx":
        return tmx_of(path, languages, inline=inline, encoding=encoding, limits=limits)
    return xliff_of(path, languages, encoding, limits, inline=inline, alt_trans=alt_trans)


def _read_lines(path: str | Path, kind: Format | None, options: Options) -> Dataset:
    """Return the data set in a file that is read line by line."""
    file = TextFile(path, encoding=options.encoding, limits=options.limits)
    layout = kind or _by_content(file.first(), file.name)
    if not options.columns and str(path) != STDIN and _is_mqm(file.first(), layout, file.name):
        return replace(read_mqm(path), languages=options.languages)
    if layout in _DELIMITERS:
        return with_wmt25_spans(table_of(file, path, options, _DELIMITERS[layout]))
    if layout == "jsonl":
        if not options.columns and (reader := _find_reader(file)):
            dataset = reader(file)
            return replace(dataset, languages=options.languages or dataset.languages)
        return dataset_of(file) if is_header(file.first()) else jsonl_of(file, path, options)
    return _plain(file, path, options.languages)


def _find_reader(file: TextFile) -> Callable[[TextFile], Dataset] | None:
    """Return what reads JSON lines whose first line has the fields of a known layout."""
    line = file.first()
    if is_header(line) or not any(key in line for key in ("expert_annotations", "resps", "item_id")):
        return None
    keys = parse_object(line, file.name, 1)
    if is_wmt26(keys):
        return wmt26_of
    return summeval_of if is_summeval(keys) else lm_eval_of if is_lm_eval(keys) else None


def _folder(path: str | Path, options: Options) -> Dataset:
    """Return the data set in a folder, whose files tell what it is."""
    if is_wmt(path):
        return read_wmt(path, options.languages, encoding=options.encoding, limits=options.limits)
    if is_submissions(path):
        return read_submissions(path, options.languages, encoding=options.encoding, limits=options.limits)
    if is_gold(path):
        choice = options.columns.get("references")
        ending = choice if isinstance(choice, str) or choice is None else ",".join(choice)
        return gold_dataset(path, languages=options.languages, references=ending, limits=options.limits)
    if any((Path(path) / name).is_file() for name in REALSUMM):
        return replace(realsumm_of(path, options.limits), languages=options.languages)
    raise DataError(
        "is a folder: give a file, a WMT folder (with sources and system-outputs, or files such as "
        "newstest2019.SYSTEM.de-en), or a gold folder (with *.tgt-tags or target.gold)",
        file=str(path),
    )


def _is_mqm(line: str, layout: Format, name: str) -> bool:
    """Return whether the first line of a table or of JSON lines is that of raw MQM ratings."""
    if layout == "jsonl":
        return "severity" in line and not is_header(line) and is_mqm(list(parse_object(line, name, 1)))
    return layout == "tsv" and is_mqm(line.split("\t"))


def _by_suffix(path: str | Path) -> Format | None:
    """Return the format a suffix stands for, None where there is no suffix."""
    suffix = plain_name(path).suffix.lower()
    if str(path) == STDIN or not suffix:
        return None
    if suffix not in _FORMATS:
        raise DataError(
            f"cannot tell the format from {suffix!r}: expected {', '.join(_FORMATS)} (also with .gz or .zst); rename "
            "the file, or pass --input-format tsv",
            file=str(path),
        )
    return _FORMATS[suffix]


def _by_content(line: str, name: str) -> Format:
    if line.startswith(("<?xml", "<xliff", "<tmx")):
        raise DataError(
            "is XML: XLIFF is read from a file that ends in .xlf or .xliff, TMX from .tmx", file=name, line=1
        )
    if line.lstrip().startswith("{"):
        return "jsonl"
    return "tsv" if "\t" in line else "txt"


def _plain(file: TextFile, path: str | Path, languages: tuple[str, str] | None) -> Dataset:
    system = system_names([path])[0]
    entries = tuple(Entry(str(k), system, Segment(text)) for k, text in enumerate(file.lines()))
    file.refuse_empty("one segment per line")
    origin = Origin({system: file.name}, range(1, len(entries) + 1))
    return Dataset(Path(file.name).name, entries, languages, file.findings, origin)


def join_systems(parts: Sequence[Dataset], names: Sequence[str]) -> Dataset:
    """Return data sets of one system each, of the same segments, as one: the systems have these names."""
    first = parts[0]
    for part, name in zip(parts, names, strict=True):
        if part.ids != first.ids:
            odd = next((id_ for id_ in part.ids if id_ not in first.ids), None) or "another order"
            raise DataError(f"{name} has different segments from {names[0]} ({odd}): compare files of the same job")
    entries = [replace(entry, system=name) for part, name in zip(parts, names, strict=True) for entry in part.entries]
    findings = tuple(finding for part in parts for finding in part.findings)
    return Dataset(" and ".join(names), tuple(entries), first.languages, findings)


def add_references(dataset: Dataset, sets: Mapping[str, Sequence[str]]) -> Dataset:
    """Return a data set whose segments have the lines of some files as further references, in order."""
    count = len(dataset.ids)
    for file, lines in sets.items():
        if len(lines) != count:
            raise DataError(f"{file} has {len(lines)} lines, {dataset.name} has {count} segments: give one line each")
    rows = {name: tuple(lines[k] for lines in sets.values()) for k, name in enumerate(dataset.ids)}
    entries = []
    for entry in dataset.entries:
        segment = replace(entry.segment, references=(*entry.segment.references, *rows[entry.id]))
        entries.append(replace(entry, segment=segment))
    return replace(dataset, entries=tuple(entries))


class _Series(Protocol):
    def to_list(self) -> list[object]: ...

    def is_null(self) -> "_Series": ...


class _Frame(Protocol):
    @property
    def columns(self) -> list[str]: ...

    def __getitem__(self, name: str) -> _Series: ...


def read_frame(
    frame: object,
    *,
    name: str = "frame",
    columns: Choice | None = None,
    human: Sequence[str] = (),
    languages: tuple[str, str] | None = None,
) -> Dataset:
    """Return the data set in a data frame; options as in `reading.read`."""
    data = _eager(frame)
    names = tuple(data.columns)
    values = [_values(data[column]) for column in names]
    rows = len(values[0]) if values else 0
    if not rows:
        raise DataError(f"{name} is empty: expected one segment per row")
    gathering = Gathering(name, "hypothesis", Options(columns or {}, tuple(human), languages=languages))
    gathering.add(Block(name, names, values, range(1, rows + 1), cells=False))
    return gathering.finish(name)


def _eager(frame: object) -> _Frame:
    with need_package(MissingExtra.of("reading data frames", "frames")):
        import narwhals  # noqa: PLC0415 - an extra
    try:
        data = narwhals.from_native(cast("narwhals.DataFrame[narwhals.typing.IntoDataFrame]", frame))
    except TypeError as error:
        raise DataError(f"expected a data frame, got {type(frame).__name__}") from error
    return cast("_Frame", data.collect() if isinstance(data, narwhals.LazyFrame) else data)


def _values(series: _Series) -> list[object]:
    nulls = series.is_null().to_list()
    return [None if null else value for value, null in zip(series.to_list(), nulls, strict=True)]


DIALECTS = (
    *("whyscore", "spans", "mqm", "marot", "mtme", "pearmut", "wmt26", "wmtqe", "xcomet", "xliff", "tags", "gold"),
    "table",
)
_SUFFIXES = {".xlf": "xliff", ".xliff": "xliff", ".rating": "mtme"}


def dialect_of(path: str | Path) -> str:
    """Return the dialect of a file, or `explanations` for whyscore's own; what cannot be told is an error."""
    if Path(path).is_dir():
        return "gold"
    name = plain_name(path)
    if name.suffix.lower() in _SUFFIXES:
        return _SUFFIXES[name.suffix.lower()]
    if name.name.lower().endswith("tags"):
        return "tags"
    return _dialect_by_content(path, TextFile(path).first())


def _dialect_by_content(path: str | Path, first: str) -> str:
    """Return the dialect that the first line of a file stands for."""
    if is_header(first):
        kind = read_records(path).header.kind
        return "whyscore" if kind == "dataset" else kind
    if first.lstrip().startswith("{"):
        return _by_keys(parse_object(first, str(path), 1))
    columns = first.split("\t")
    if is_mqm(columns):
        return "marot" if "metadata" in map(str.lower, columns) else "mqm"
    if len(columns) > 1 or columns[0] == "LP" or plain_name(path).suffix.lower() == ".csv":
        return "wmtqe" if columns[0] == "LP" else "table"
    if not _is_number(first):
        names = ", ".join(DIALECTS)
        raise UserError(
            f"{path}: its format cannot be recognised from the first line: name it with --from, one of {names}"
        )
    return "wmtqe"  # the header lines of a WMT QE submission are single numbers


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", ""))
    except ValueError:
        return False
    return True


def read_foreign(
    path: str | Path,
    dialect: str | None = None,
    *,
    texts: Dataset | None = None,
    weights: Weights | str = GOOGLE,
    offsets: Offsets = "codepoints",
) -> Dataset:
    """Return a data set with the error spans of a file in any dialect; some need the texts beside it."""
    name = dialect or dialect_of(path)
    beside: dict[str, Callable[[str | Path, Dataset], Dataset]] = {
        "mtme": read_mtme,
        "tags": read_tags,
        "spans": read_spans,
    }
    alone: dict[str, Callable[[str | Path], Dataset]] = {
        "whyscore": read_dataset,
        "mqm": lambda file: read_mqm(file, weights),
        "marot": read_marot,
        "xcomet": lambda file: read_json_spans(file, "xcomet"),
        "pearmut": lambda file: read_json_spans(file, "pearmut", offsets),
        "wmt26": lambda file: read_wmt26(file, texts, offsets),
        "wmtqe": read_wmtqe,
        "xliff": lambda file: read_xliff(file).dataset(Path(file).stem),
        "gold": gold_dataset,
        "table": read,
    }
    if name in alone:
        return alone[name](path)
    if name not in beside:
        raise UserError(f"no dialect named {name!r} can be read as spans: use {', '.join(DIALECTS)}")
    if texts is None:
        raise UserError(f"{path} holds {name} without the texts: give them with -t and -s, or with --texts")
    return beside[name](path, texts)


def read_spans(path: str | Path, texts: Dataset) -> Dataset:
    """Return a data set of texts with the spans of whyscore's own records."""
    spans: dict[tuple[str, str], list[ErrorSpan]] = {}
    entries_by_key = {(entry.system, entry.id): entry for entry in texts.entries}
    for line, record in read_records(path, kind="spans").numbered():
        key = str(record.get("system")), str(record.get("id"))
        if key not in entries_by_key:
            raise DataError(f"system {key[0]!r} has no text with the id {key[1]!r}", file=str(path), line=line)
        place = {"side": record.get("side"), "reference": record.get("reference")}
        items = record.get("spans")
        try:
            added = spans_of(
                [{**item, **place} if isinstance(item, dict) else item for item in items]
                if isinstance(items, list)
                else items,
                entries_by_key[key].segment,
            )
        except BadSpan as error:
            raise DataError(str(error), file=str(path), line=line) from error
        spans.setdefault(key, []).extend(added or ())
    entries = (
        Entry(e.id, e.system, e.segment, e.human, _spans_of(spans, e), e.document, e.extra) for e in texts.entries
    )
    return Dataset(texts.name, tuple(entries), texts.languages)


def _spans_of(spans_by_key: dict[tuple[str, str], list[ErrorSpan]], entry: Entry) -> tuple[ErrorSpan, ...] | None:
    spans = spans_by_key.get((entry.system, entry.id))
    return None if spans is None else tuple(spans)


def _by_keys(value: dict[str, object]) -> str:
    if is_mqm(list(value)):
        return "mqm"
    if is_wmt26(value):
        return "wmt26"
    spans = value.get("error_spans", value.get("errors", value.get("spans")))
    lists = list(spans.values()) if isinstance(spans, dict) else [spans]
    items = [item for part in lists if isinstance(part, list) for item in part if isinstance(item, dict)]
    if any("start_i" in item for item in items) or isinstance(spans, dict):
        return "pearmut"
    return "table" if spans is None or "side" in (items[0] if items else {}) else "xcomet"
