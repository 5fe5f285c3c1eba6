"""Which dialect a file of error spans is in, and its reader.

By name: `.xlf`, `.xliff` is XLIFF, `.rating` is mt-metrics-eval, a name that ends in `tags` is word tags, a folder is
gold of a word-level task. By content: whyscore's own records; JSON lines and tables by the keys of their first object
or the names of their columns.
"""

from collections.abc import Callable
from pathlib import Path

from whyscore.errors import DataError, UserError
from whyscore.io.datasets import read_dataset
from whyscore.io.dialects import Offsets
from whyscore.io.dialects_files import read_json_spans, read_marot, read_mtme, read_tags, read_wmtqe
from whyscore.io.files import TextFile
from whyscore.io.gold_data import gold_dataset
from whyscore.io.jsonl import parsed
from whyscore.io.mqm import GOOGLE, Weights, is_mqm, read_mqm
from whyscore.io.naming import plain_name
from whyscore.io.reading import read
from whyscore.io.records import is_header, read_records
from whyscore.io.spans import BadSpan, spans_of
from whyscore.io.xliff import read_xliff
from whyscore.types import Dataset, Entry, ErrorSpan

DIALECTS = ("whyscore", "spans", "mqm", "marot", "mtme", "pearmut", "wmtqe", "xcomet", "xliff", "tags", "gold", "table")
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
    return _by_content(path, TextFile(path).first())


def _by_content(path: str | Path, first: str) -> str:
    """Return the dialect that the first line of a file stands for."""
    if is_header(first):
        kind = read_records(path).header.kind
        return "whyscore" if kind == "dataset" else kind
    if first.lstrip().startswith("{"):
        return _by_keys(parsed(first, str(path), 1))
    columns = first.split("\t")
    if is_mqm(columns):
        return "marot" if "metadata" in map(str.lower, columns) else "mqm"
    if len(columns) > 1 or columns[0] == "LP" or plain_name(path).suffix.lower() == ".csv":
        return "wmtqe" if columns[0] == "LP" else "table"
    if not _is_number(first):
        names = ", ".join(DIALECTS)
        raise UserError(f"{path}: its first line does not say what it holds: name it with --from, one of {names}")
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
    chosen = dialect or dialect_of(path)
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
        "wmtqe": read_wmtqe,
        "xliff": lambda file: read_xliff(file).dataset(Path(file).stem),
        "gold": gold_dataset,
        "table": read,
    }
    if chosen in alone:
        return alone[chosen](path)
    if chosen not in beside:
        raise UserError(f"no dialect named {chosen!r} can be read as spans: use {', '.join(DIALECTS)}")
    if texts is None:
        raise UserError(f"{path} holds {chosen} without the texts: give them with -t and -s, or with --texts")
    return beside[chosen](path, texts)


def read_spans(path: str | Path, texts: Dataset) -> Dataset:
    """Return a data set of texts with the spans of whyscore's own records."""
    found: dict[tuple[str, str], list[ErrorSpan]] = {}
    known = {(entry.system, entry.id): entry for entry in texts.entries}
    for line, record in read_records(path, kind="spans").numbered():
        key = str(record.get("system")), str(record.get("id"))
        if key not in known:
            raise DataError(f"system {key[0]!r} has no text with the id {key[1]!r}", file=str(path), line=line)
        place = {"side": record.get("side"), "reference": record.get("reference")}
        items = record.get("spans")
        try:
            own = spans_of(
                [{**item, **place} if isinstance(item, dict) else item for item in items]
                if isinstance(items, list)
                else items,
                known[key].segment,
            )
        except BadSpan as error:
            raise DataError(str(error), file=str(path), line=line) from error
        found.setdefault(key, []).extend(own or ())
    entries = (Entry(e.id, e.system, e.segment, e.human, _kept(found, e), e.document, e.extra) for e in texts.entries)
    return Dataset(texts.name, tuple(entries), texts.languages)


def _kept(found: dict[tuple[str, str], list[ErrorSpan]], entry: Entry) -> tuple[ErrorSpan, ...] | None:
    own = found.get((entry.system, entry.id))
    return None if own is None else tuple(own)


def _by_keys(value: dict[str, object]) -> str:
    if is_mqm(list(value)):
        return "mqm"
    spans = value.get("error_spans", value.get("errors", value.get("spans")))
    lists = list(spans.values()) if isinstance(spans, dict) else [spans]
    items = [item for one in lists if isinstance(one, list) for item in one if isinstance(item, dict)]
    if any("start_i" in item for item in items) or isinstance(spans, dict):
        return "pearmut"
    return "table" if spans is None or "side" in (items[0] if items else {}) else "xcomet"
