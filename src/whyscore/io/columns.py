"""Which column plays which role.

1. Columns named by the caller come first, matched exactly; a number that is no column's name counts columns from one.
   An empty name switches a role off.
2. The other roles are found by the names below, whatever their case. Two candidates for one role are an error.
3. Numbered references (`ref_a`, `ref_b`; `reference_0`, `reference_1`) are several references of each segment.
4. All other columns are kept as `extra`. Language columns are kept there too, because results are grouped by them.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from whyscore.errors import DataError, UnknownName

ALIASES: dict[str, tuple[str, ...]] = {
    "hypothesis": (
        *("hypothesis", "hyp", "mt", "tgt", "target", "translation", "prediction", "candidate", "cand", "output"),
        *("summary", "decoded"),
    ),
    "source": ("source", "src", "input", "document", "article"),
    "references": ("reference", "ref", "references", "refs"),
    "system": ("system", "sys", "model", "model_id", "system_name", "summarizer_id"),
    "id": ("id", "seg_id", "segment_id", "item_id", "instance_id", "line"),
    "document": ("doc", "doc_id", "document_id"),
    "human": ("score", "da", "da_mean", "z", "z_mean", "mqm", "esa", "hter", "human"),
    "languages": ("lp", "lang_pair"),
    "spans": ("errors", "error_spans", "spans"),
}
"""The names that are understood without being told, per role."""

_SEVERAL = ("references", "human")
_NUMBERED = re.compile(r"(reference|ref)(?:[_-][a-z]|[_-]?\d+)")
_SHOWN = 30
_TWO_LANGUAGES = ("src_lang", "tgt_lang")

Choice = Mapping[str, str | Sequence[str]]
"""The caller's columns: role -> name, or names for references and human scores."""


@dataclass(frozen=True, slots=True)
class Roles:
    """The place of each role among the columns."""

    hypothesis: int
    source: int | None
    references: tuple[int, ...]
    system: int | None
    id: int | None
    document: int | None
    human: tuple[int, ...]
    languages: tuple[int, ...]
    spans: int | None
    extra: tuple[int, ...]


def resolve(names: Sequence[str], columns: Choice, human: Iterable[str], file: str, line: int | None) -> Roles:
    """Return the roles of named columns; `file` and `line` are where the names stand."""
    for role in columns:
        if role not in ALIASES:
            raise UnknownName.among("column role", role, ALIASES)
    chosen = {role: _given(role, names, wanted, file, line) for role, wanted in columns.items()}
    taken = {place for places in chosen.values() for place in places}
    free = {place: name.lower() for place, name in enumerate(names) if place not in taken}
    for role in ALIASES:
        if role not in chosen:
            chosen[role] = _found(role, names, free, file, line)
    chosen["human"] = _with_human(names, chosen["human"], human)
    if not chosen["hypothesis"]:
        raise _no_hypothesis(names, file, line)
    used = {place for role, places in chosen.items() if role != "languages" for place in places}
    one = {role: next(iter(places), None) for role, places in chosen.items()}
    return Roles(
        hypothesis=chosen["hypothesis"][0],
        references=chosen["references"],
        human=chosen["human"],
        languages=chosen["languages"],
        extra=tuple(place for place in range(len(names)) if place not in used),
        source=one["source"],
        system=one["system"],
        id=one["id"],
        document=one["document"],
        spans=one["spans"],
    )


def _given(
    role: str, names: Sequence[str], wanted: str | Sequence[str], file: str, line: int | None
) -> tuple[int, ...]:
    """Return the columns that the caller named for a role."""
    listed = [wanted] if isinstance(wanted, str) else list(wanted)
    places = tuple(_place(name, names, role, file, line) for name in listed if name)
    if len(places) > 1 and role not in _SEVERAL:
        raise DataError(f"{len(places)} columns are given for the {role}: give one, --columns {role}=NAME", file=file)
    return places


def _place(name: str, names: Sequence[str], role: str, file: str, line: int | None) -> int:
    if name in names:
        return names.index(name)
    if name.isdecimal() and 1 <= int(name) <= len(names):
        return int(name) - 1
    raise DataError(f"no column {name!r} for --columns {role}={name}; there are: {listed(names)}", file=file, line=line)


def listed(names: Iterable[str]) -> str:
    """Return the names of columns in quotes, cut where they are no names but texts."""
    return ", ".join(repr(name if len(name) <= _SHOWN else f"{name[:_SHOWN]}...") for name in names)


def _found(role: str, names: Sequence[str], free: Mapping[int, str], file: str, line: int | None) -> tuple[int, ...]:
    """Return the columns whose names fit a role."""
    plain = [place for place, name in free.items() if name in ALIASES[role]]
    if role == "human":
        return tuple(plain)
    if role == "languages":
        both = tuple(place for wanted in _TWO_LANGUAGES for place, name in free.items() if name == wanted)
        return tuple(plain[:1]) or (both if len(both) == len(_TWO_LANGUAGES) else ())
    groups: list[tuple[int, ...]] = [(place,) for place in plain]
    if role == "references":
        groups += _numbered(free)
    if len(groups) > 1:
        first, second = (names[group[0]] for group in groups[:2])
        raise DataError(
            f"columns {first!r} and {second!r} could both be the {role}: choose with --columns {role}={first}",
            file=file,
            line=line,
        )
    return groups[0] if groups else ()


def _numbered(free: Mapping[int, str]) -> list[tuple[int, ...]]:
    """Return the numbered reference columns, `reference_*` apart from `ref_*`."""
    families: dict[str, list[int]] = {}
    for place, name in free.items():
        match = _NUMBERED.fullmatch(name)
        if match:
            families.setdefault(match[1], []).append(place)
    return [tuple(places) for places in families.values()]


def _with_human(names: Sequence[str], found: tuple[int, ...], human: Iterable[str]) -> tuple[int, ...]:
    """Return the human scores found by name and those asked for; whether the latter exist is known after all rows."""
    return tuple(dict.fromkeys((*found, *(names.index(name) for name in human if name in names))))


def _no_hypothesis(names: Sequence[str], file: str, line: int | None) -> DataError:
    return DataError(
        f"no column for the hypothesis among {listed(names)}: the header must name one of "
        f"{', '.join(ALIASES['hypothesis'])}; otherwise pass --columns hypothesis=NAME, or --no-header "
        "--columns hypothesis=NUMBER for a file without a header",
        file=file,
        line=line,
    )
