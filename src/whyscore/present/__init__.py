"""Results in every output format: one module per format, found by its name.

A module of this package is a format. It has a `SUFFIX` and a function `lines(result, look)`; nothing else needs to be
told of a new one.
"""

import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Protocol, cast

from whyscore.errors import SpecError
from whyscore.types.result import Result, Table


@dataclass(frozen=True, slots=True)
class Look:
    """How tables look."""

    decimals: int | None = None
    """Of all numbers; without it people get three and programs get all. JSON is never rounded."""
    bold: bool = True
    """Whether the best values are bold in Markdown and LaTeX."""
    width: int | None = None
    """Of the terminal; None where there is none."""
    safe: bool = False
    """Whether texts in TSV and CSV are kept from being taken for formulas by spreadsheets."""


PLAIN = Look()


class Format(Protocol):
    """A module of this package."""

    SUFFIX: str

    def lines(self, result: Result, look: Look) -> Iterator[str]:
        """Yield the result as lines, each with its newline."""


_ORDER = ("text", "json", "jsonl", "tsv", "csv", "markdown", "latex")


def formats() -> tuple[str, ...]:
    """Return the names of all formats: the usual ones first."""
    names = [module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")]
    return tuple(sorted(names, key=lambda name: (_ORDER.index(name) if name in _ORDER else len(_ORDER), name)))


def format_named(name: str) -> Format:
    """Return a format by its name."""
    if name not in formats():
        raise SpecError(f"no output format named {name!r}: use {', '.join(formats())}")
    return cast("Format", importlib.import_module(f"{__name__}.{name}"))


def suffixes() -> dict[str, str]:
    """Return the format that each suffix of a file stands for."""
    return {format_named(name).SUFFIX: name for name in formats()}


def present(result: Result, form: str = "text", look: Look = PLAIN) -> Iterator[str]:
    """Yield a result in one of the formats."""
    return format_named(form).lines(result, look)


class Tables(Result):
    """Plain tables as a result."""

    kind: ClassVar[str] = "tables"

    def __init__(self, *tables: Table) -> None:
        self._tables = tables

    def tables(self, *, long: bool = False) -> tuple[Table, ...]:
        del long
        return self._tables

    def document(self) -> object:
        return list(self.records())


def render(
    table: Table, form: str = "text", *, decimals: int | None = None, bold: bool = True, safe: bool = False
) -> str:
    """Return a table in one of the formats, with a newline at the end."""
    if decimals is not None and decimals < 0:
        raise SpecError(f"decimals is {decimals}, expected 0 or more")
    return "".join(present(Tables(table), form, Look(decimals, bold, safe=safe)))
