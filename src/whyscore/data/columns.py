"""Which column plays which role.

1. Columns named by the caller come first, matched exactly; a number that is no column's name counts columns from one.
   An empty name switches a role off.
2. The other roles are found by the names below, whatever their case. Two candidates for one role are an error.
3. Numbered references (`ref_a`, `ref_b`; `reference_0`, `reference_1`) are several references of each segment.
4. Several columns of hypotheses are several systems, named by their headers. So are all columns of texts without
   another role, where no column is named like a hypothesis and there are sources or references: one column per engine.
5. All other columns are kept as `extra`. Language columns are kept there too, because results are grouped by them.

The raw values of a column become texts, labels, numbers or spans; a value that does not fit is named with its line.
Each column is tried as a whole first, so that the usual case costs no Python work per value.
"""

import json
import math
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from whyscore.data.formats.spans import BadSpan, spans_of
from whyscore.errors import DataError, UnknownName
from whyscore.types import ErrorSpan, Segment

ALIASES: dict[str, tuple[str, ...]] = {
    "hypothesis": (
        *("hypothesis", "hyp", "mt", "tgt", "target", "translation", "prediction", "candidate", "cand", "output"),
        *("summary", "decoded", "hypothesis_segment"),
    ),
    "source": ("source", "src", "input", "document", "article", "source_segment"),
    "references": ("reference", "ref", "references", "refs", "reference_segment"),
    "system": ("system", "sys", "model", "model_id", "system_name", "summarizer_id", "system_id"),
    "id": ("id", "seg_id", "segment_id", "item_id", "instance_id", "line"),
    "document": ("doc", "doc_id", "document_id"),
    "human": ("score", "da", "da_mean", "z", "z_mean", "mqm", "esa", "hter", "human"),
    "languages": ("lp", "lang_pair"),
    "spans": ("errors", "error_spans", "spans"),
}
"""The names that are understood without being told, per role."""

_SEVERAL = ("references", "human", "hypothesis")
_NUMBERED = re.compile(r"(reference|ref)(?:[_-][a-z]|[_-]?\d+)")
_ABOUT = ("note", "notes", "comment", "comments", "remark", "remarks", "context", "domain", "domain_name", "category")
"""Columns of texts that are about a segment; no engine has such a name."""
_SHOWN = 30
_TWO_LANGUAGES = (("src_lang", "tgt_lang"), ("source_lang", "target_lang"))

Choice = Mapping[str, str | Sequence[str]]
"""The caller's columns: role -> name, or names for hypotheses, references and human scores."""


@dataclass(frozen=True, slots=True)
class Roles:
    """The place of each role among the columns."""

    hypothesis: tuple[int, ...]
    """Several are several systems."""
    source: int | None
    references: tuple[int, ...]
    system: int | None
    id: int | None
    document: int | None
    human: tuple[int, ...]
    languages: tuple[int, ...]
    spans: int | None
    extra: tuple[int, ...]


def resolve(
    names: Sequence[str],
    columns: Choice,
    human: Iterable[str],
    file: str,
    line: int | None,
    *,
    holds_texts: Callable[[int], bool] = lambda _: False,
) -> Roles:
    """Return the roles of named columns; `file` and `line` are where the names stand.

    `holds_texts` says of a column whether its values read like texts.
    """
    for role in columns:
        if role not in ALIASES:
            raise UnknownName.among("column role", role, ALIASES)
    places_of = {role: _find_requested(role, names, choice, file, line) for role, choice in columns.items()}
    taken = {place for places in places_of.values() for place in places}
    free = {place: name.lower() for place, name in enumerate(names) if place not in taken}
    for role in ALIASES:
        if role not in places_of:
            places_of[role] = _find_by_name(role, names, free, file, line)
    places_of["human"] = _with_human(names, places_of["human"], human)
    if not places_of["hypothesis"] and (places_of["source"] or places_of["references"]) and not places_of["system"]:
        others = set(range(len(names))) - {place for places in places_of.values() for place in places}
        places_of["hypothesis"] = tuple(k for k in sorted(others) if names[k].lower() not in _ABOUT and holds_texts(k))
    _check_hypotheses(names, places_of, file, line)
    used = {place for role, places in places_of.items() if role != "languages" for place in places}
    first = {role: next(iter(places), None) for role, places in places_of.items()}
    return Roles(
        hypothesis=places_of["hypothesis"],
        references=places_of["references"],
        human=places_of["human"],
        languages=places_of["languages"],
        extra=tuple(place for place in range(len(names)) if place not in used),
        source=first["source"],
        system=first["system"],
        id=first["id"],
        document=first["document"],
        spans=first["spans"],
    )


def _check_hypotheses(
    names: Sequence[str], places_of: Mapping[str, tuple[int, ...]], file: str, line: int | None
) -> None:
    """Refuse columns without hypotheses, and two ways of naming systems at once."""
    if not places_of["hypothesis"]:
        raise _no_hypothesis(names, file, line)
    if len(places_of["hypothesis"]) > 1 and places_of["system"]:
        named = names[places_of["system"][0]]
        raise DataError(
            f"{len(places_of['hypothesis'])} columns of hypotheses are as many systems, but the column {named!r} names "
            f"systems, too: leave it out with --columns system=, or give one column of hypotheses",
            file=file,
            line=line,
        )


def _find_requested(
    role: str, names: Sequence[str], choice: str | Sequence[str], file: str, line: int | None
) -> tuple[int, ...]:
    """Return the columns that the caller named for a role."""
    listed = [choice] if isinstance(choice, str) else list(choice)
    places = tuple(_place(name, names, role, file, line) for name in listed if name)
    if len(places) > 1 and role not in _SEVERAL:
        raise DataError(f"{len(places)} columns are given for the {role}: give one, --columns {role}=NAME", file=file)
    return places


def _place(name: str, names: Sequence[str], role: str, file: str, line: int | None) -> int:
    if name in names:
        return names.index(name)
    if name.isdecimal() and 1 <= int(name) <= len(names):
        return int(name) - 1
    raise DataError(
        f"no column {name!r} for --columns {role}={name}; there are: {quote_names(names)}", file=file, line=line
    )


def quote_names(names: Iterable[str]) -> str:
    """Return the names of columns in quotes, cut where they are no names but texts."""
    return ", ".join(repr(name if len(name) <= _SHOWN else f"{name[:_SHOWN]}...") for name in names)


def _find_by_name(
    role: str, names: Sequence[str], free: Mapping[int, str], file: str, line: int | None
) -> tuple[int, ...]:
    """Return the columns whose names fit a role."""
    plain = [place for place, name in free.items() if name in ALIASES[role]]
    if role == "human":
        return tuple(plain)
    if role == "languages":
        by_name = {name: place for place, name in free.items()}
        both = [
            (by_name[source], by_name[target])
            for source, target in _TWO_LANGUAGES
            if source in by_name and target in by_name
        ]
        return tuple(plain[:1]) or (both[0] if both else ())
    groups: list[tuple[int, ...]] = [(place,) for place in plain]
    if role == "references":
        groups += _find_numbered(free)
    if len(groups) > 1:
        first, second = (names[group[0]] for group in groups[:2])
        raise DataError(
            f"columns {first!r} and {second!r} could both be the {role}: choose with --columns {role}={first}",
            file=file,
            line=line,
        )
    return groups[0] if groups else ()


def _find_numbered(free: Mapping[int, str]) -> list[tuple[int, ...]]:
    """Return the numbered reference columns, `reference_*` apart from `ref_*`."""
    families: dict[str, list[int]] = {}
    for place, name in free.items():
        match = _NUMBERED.fullmatch(name)
        if match:
            families.setdefault(match[1], []).append(place)
    return [tuple(places) for places in families.values()]


def _with_human(names: Sequence[str], rated: tuple[int, ...], human: Iterable[str]) -> tuple[int, ...]:
    """Return the human scores found by name and those asked for; whether the latter exist is known after all rows."""
    return tuple(dict.fromkeys((*rated, *(names.index(name) for name in human if name in names))))


def _no_hypothesis(names: Sequence[str], file: str, line: int | None) -> DataError:
    taken = {alias for aliases in ALIASES.values() for alias in aliases}
    free = next((name for name in reversed(names) if name.lower() not in taken), "NAME")
    return DataError(
        f"no column for the hypothesis among {quote_names(names)}: the header must name one of "
        f"{', '.join(ALIASES['hypothesis'])}; otherwise pass --columns {shlex.quote(f'hypothesis={free}')}, "
        "or --no-header --columns hypothesis=NUMBER for a file without a header",
        file=file,
        line=line,
    )


_LISTS = ("references", "refs")


@dataclass(frozen=True, slots=True)
class Block:
    """Some rows of a file, column by column. `cells` says that every value is a text, as in TSV and CSV."""

    file: str
    names: tuple[str, ...]
    columns: Sequence[Sequence[object]]
    lines: Sequence[int]
    cells: bool
    header_line: int | None = None

    def __len__(self) -> int:
        return len(self.lines)

    def bad(self, row: int, place: int, expected: str) -> DataError:
        """Return the error for a value that is not what was expected."""
        value = json.dumps(self.columns[place][row], ensure_ascii=False, default=str)
        message = f"{self.names[place]!r} is {value}, expected {expected}"
        return DataError(message, file=self.file, line=self.lines[row])

    def column(self, place: int, expected: str, *kinds: type) -> Sequence[object]:
        """Return a column whose values are of some types; any other value is refused."""
        column = self.columns[place]
        if not self.cells and set(map(type, column)) - set(kinds):
            raise self.bad(next(k for k, value in enumerate(column) if type(value) not in kinds), place, expected)
        return column


def texts(block: Block, place: int) -> Sequence[str]:
    """Return a column that must hold a text in every row."""
    return cast("Sequence[str]", block.column(place, "a text", str))


def optional_texts(block: Block, place: int | None) -> Sequence[str | None]:
    """Return a column of texts, None where a row has none."""
    if place is None:
        return [None] * len(block)
    return cast("Sequence[str | None]", block.column(place, "a text or null", str, type(None)))


def labels(block: Block, place: int) -> Sequence[str]:
    """Return a column of ids or names; whole numbers count as their digits."""
    column = block.column(place, "a text or a whole number", str, int)
    values = cast("list[str]", column) if block.cells else list(map(str, column))
    if "" in values:
        raise block.bad(values.index(""), place, "a name")
    return values


def optional_labels(block: Block, place: int | None) -> Sequence[str | None]:
    """Return a column of names, None where a row has none."""
    if place is None:
        return [None] * len(block)
    return [None if value is None or value == "" else str(value) for value in block.columns[place]]


def references(block: Block, places: Sequence[int]) -> list[tuple[str, ...]]:
    """Return the references of each row, from one column of texts or lists, or from several columns."""
    if not places:
        return [()] * len(block)
    columns = [block.columns[place] for place in places]
    if block.cells and not any(block.names[place].lower() in _LISTS for place in places):
        return list(zip(*cast("list[Sequence[str]]", columns), strict=True))
    rows = []
    for k in range(len(block)):
        row: list[str] = []
        for place in places:
            row.extend(_several(block, k, place))
        rows.append(tuple(row))
    return rows


def _several(block: Block, row: int, place: int) -> list[str]:
    value = block.columns[place][row]
    if block.cells and isinstance(value, str) and value.startswith('["'):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return [cast("str", value)]
    if value is None:
        return []
    texts = cast("list[str]", value if isinstance(value, list) else [value])
    if not all(isinstance(text, str) for text in texts):
        raise block.bad(row, place, "a text or a list of texts")
    return texts


def human(block: Block, places: Sequence[int]) -> list[Mapping[str, float]]:
    """Return the human scores of each row by name; rows without a score lack its name."""
    names = [block.names[place] for place in places]
    columns = [_numbers(block, place) for place in places]
    if any(None in column for column in columns):
        return [
            {name: value for name, value in zip(names, row, strict=True) if value is not None}
            for row in zip(*columns, strict=True)
        ]
    if len(names) == 1:
        name = names[0]
        return [{name: value} for value in cast("list[float]", columns[0])]
    rows: Iterable[tuple[float, ...]] = zip(*cast("list[list[float]]", columns), strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]


def _numbers(block: Block, place: int) -> Sequence[float | None]:
    column = block.columns[place]
    try:
        if block.cells or not set(map(type, column)) - {int, float}:
            numbers = list(map(float, cast("Sequence[str]", column)))
            if all(map(math.isfinite, numbers)):
                return numbers
    except (ValueError, OverflowError):
        pass
    return [_number(block, row, place) for row in range(len(block))]


def _number(block: Block, row: int, place: int) -> float | None:
    value = block.columns[place][row]
    if value is None or (block.cells and value == ""):
        return None
    try:
        fits = block.cells if isinstance(value, str) else isinstance(value, int | float) and not isinstance(value, bool)
        number = float(cast("str", value)) if fits else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise block.bad(row, place, "a number")
    return number


def spans(block: Block, place: int | None, segments: Sequence[Segment]) -> list[tuple[ErrorSpan, ...] | None]:
    """Return the error spans of each row; None where a row was not rated."""
    if place is None:
        return [None] * len(block)
    result = []
    for row, (value, segment) in enumerate(zip(block.columns[place], segments, strict=True)):
        try:
            result.append(spans_of(value, segment))
        except BadSpan as error:
            raise DataError(f"{block.names[place]!r}: {error}", file=block.file, line=block.lines[row]) from error
    return result


def pairs(block: Block, places: Sequence[int]) -> set[str]:
    """Return the language pairs that occur, as `de-en`."""
    columns = [block.columns[place] for place in places]
    return {"-".join(map(str, row)) for row in set(zip(*columns, strict=True))}


def others(block: Block, places: Sequence[int]) -> list[Mapping[str, object]]:
    """Return the columns without a role, by name, for each row."""
    if not places:
        return [_NOTHING] * len(block)
    names = [block.names[place] for place in places]
    columns = [block.columns[place] for place in places]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


_NOTHING: Mapping[str, object] = {}


_LETTER = re.compile(r"[^\W\d_]")
_MANY = 0.5


def holds_texts(block: Block, place: int) -> bool:
    """Return whether most values of a column are texts of more than one word, or of a script without blanks."""
    column = [value for value in block.columns[place] if isinstance(value, str)]
    spoken = [value for value in column if _LETTER.search(value) and (" " in value.strip() or not value.isascii())]
    return len(spoken) > _MANY * len(block)
