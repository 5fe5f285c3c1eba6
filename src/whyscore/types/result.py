"""What every result of an analysis offers: records for programs, tables for people, data frames, a notebook form.

Tables: named columns and rows of cells, which every output format writes its own way.
"""

import importlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar, Literal, TypeGuard

from markupsafe import Markup

from whyscore.errors import ContractError, MissingExtra
from whyscore.marking import ON_ONE_LINE

Cell = str | float | int | None
Mark = Literal["higher", "significant", "corrected"]
"""A value above the one it is compared with; significantly so; and still after a correction of the p-values."""
DECIMALS = 3
_ROWS = 20


@dataclass(frozen=True, slots=True)
class Table:
    """Named columns and rows of cells; numbers are cells too, so that each format can write them its own way."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    higher_is_better: Mapping[str, bool] = field(default_factory=dict)
    """The direction of the columns that have one."""
    best: frozenset[tuple[int, str]] | None = None
    """The bold cells as row and column, e.g. a whole cluster; None takes the best value of each directed column."""
    notes: tuple[str, ...] = ()
    title: str = ""
    """A heading, where a result has several tables."""
    decimals: int = DECIMALS
    """Of its numbers, for people who do not ask for others."""
    marks: Mapping[tuple[int, str], frozenset[Mark]] = field(default_factory=dict)
    """The marks of cells, by row and column: each format shows them its own way."""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ContractError(f"a row of {len(row)} cells in a table of {len(self.columns)} columns: {row!r}")

    @classmethod
    def of(
        cls,
        records: Iterable[Mapping[str, object]],
        columns: Mapping[str, str] | Iterable[str] = (),
        optional: Iterable[str] = (),
        **facts: Any,  # noqa: ANN401 - the other fields
    ) -> "Table":
        """Return records as a table: one column per key that holds numbers or texts, in order of appearance.

        Args:
            records: The rows.
            columns: The keys that are shown, perhaps with their names in the table; all where none is given.
            optional: Those of the keys that are left out where no record has a value.
            facts: Notes, a title and other fields of the table.
        """
        rows = [{key: value for key, value in record.items() if is_cell(value)} for record in records]
        keys = columns or dict.fromkeys(key for row in rows for key in row)
        names = dict(columns) if isinstance(columns, Mapping) else {key: key for key in keys}
        for key in optional:
            if all(row.get(key) is None for row in rows):
                del names[key]
        return cls(tuple(names.values()), tuple(tuple(row.get(key) for key in names) for row in rows), **facts)

    @classmethod
    def join(cls, tables: Sequence["Table"]) -> "Table":
        """Return tables of equal columns as one, each note once."""
        rows = tuple(row for table in tables for row in table.rows)
        notes = tuple(dict.fromkeys(note for table in tables for note in table.notes))
        return cls(tables[0].columns, rows, tables[0].higher_is_better, notes=notes)

    @property
    def bold(self) -> frozenset[tuple[int, str]]:
        """The cells that are bold where bold is asked for."""
        if self.best is not None:
            return self.best
        return frozenset(cell for name in self.higher_is_better for cell in self._best_of(name))

    def _best_of(self, name: str) -> list[tuple[int, str]]:
        place = self.columns.index(name)
        values = {row: value for row, cells in enumerate(self.rows) if is_number(value := cells[place])}
        if not values:
            return []
        best = max(values.values()) if self.higher_is_better[name] else min(values.values())
        return [(row, name) for row, value in values.items() if value == best]

    def right_aligned(self) -> list[bool]:
        """Return which columns hold numbers."""
        columns = list(zip(*self.rows, strict=True)) or [()] * len(self.columns)
        return [any(is_number(cell) for cell in column) for column in columns]

    def texts(self, decimals: int | None = None) -> list[list[str]]:
        """Return the cells of all rows for people, each on one line; with their own decimals where none are given."""
        digits = self.decimals if decimals is None else decimals
        return [[format_cell(cell, digits).translate(ON_ONE_LINE) for cell in row] for row in self.rows]

    def html(self, rows: int = _ROWS) -> Markup:
        """Return the first rows as HTML for notebooks."""
        head = Markup("").join(Markup("<th>{}</th>").format(name) for name in self.columns)
        body = Markup("").join(
            Markup("<tr>{}</tr>").format(
                Markup("").join(Markup("<td>{}</td>").format(format_cell(cell, self.decimals)) for cell in row)
            )
            for row in self.rows[:rows]
        )
        more = f"and {len(self.rows) - rows} more rows" if len(self.rows) > rows else ""
        notes = Markup("").join(
            Markup("<div><small>{}</small></div>").format(note) for note in (*self.notes, more) if note
        )
        return Markup("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>{}").format(head, body, notes)


def format_cell(cell: Cell, decimals: int = DECIMALS) -> str:
    """Return a cell as text: whole numbers stay whole, undefined ones are a dash."""
    if isinstance(cell, str):
        return cell
    if not is_number(cell):
        return "-"
    return f"{cell:.{decimals}f}" if isinstance(cell, float) else str(cell)


def is_number(cell: object) -> TypeGuard[float]:
    """Return whether a cell is a finite number."""
    return isinstance(cell, Real) and math.isfinite(cell)


def is_cell(value: object) -> TypeGuard[Cell]:
    """Return whether a value can stand in a cell."""
    return value is None or isinstance(value, str | Real)


Record = Mapping[str, object]
_TABLES = 3


class Result:
    """Base of all results. A subclass gives `records`, `tables`, or both; each follows from the other.

    One whose tables for people are others than those for programs gives `records` and `display_tables`.

    `document` is the JSON form. It is the header with the records unless a result has a better one.
    """

    kind: ClassVar[str] = "result"
    """What the records are, for their header."""

    def records(self) -> Iterator[Record]:
        """Yield one plain object per row, at full precision."""
        for table in self.tables(long=True):
            yield from (dict(zip(table.columns, row, strict=True)) for row in table.rows)

    def tables(self, *, long: bool = False) -> Sequence[Table]:
        """Return tables for people, or with `long` the tables for programs: one row per record."""
        return [Table.of(self.records())] if long else self.display_tables()

    def display_tables(self) -> Sequence[Table]:
        """Return the tables for people, where the records as they are would not do."""
        return [Table.of(self.records())]

    def lead(self) -> Sequence[str]:
        """Return sentences that come before the tables for people: a title, then what the tables show."""
        return ()

    def header(self) -> Record:
        """Return what stands behind the records: data, settings, signatures."""
        return {}

    def document(self) -> object:
        """Return the whole as one JSON value."""
        return {**self.header(), "records": list(self.records())}

    def to_pandas(self) -> object:
        """Return the records as a pandas data frame."""
        return self._frame("pandas")

    def to_polars(self) -> object:
        """Return the records as a polars data frame."""
        return self._frame("polars")

    def _frame(self, backend: str) -> object:
        try:
            narwhals = importlib.import_module("narwhals")
            importlib.import_module(backend)
        except ImportError as error:
            raise MissingExtra(
                f"a {backend} data frame needs the package {error.name}: pip install {error.name}"
            ) from error
        rows = list(self.records())
        columns = dict.fromkeys(key for row in rows for key in row)
        return narwhals.from_dict({key: [row.get(key) for row in rows] for key in columns}, backend=backend).to_native()

    def __repr__(self) -> str:
        """Return the first lines: what one wants to see at a prompt."""
        tables = self.tables()
        sizes = ", ".join(f"{len(table.rows)} x {len(table.columns)}" for table in tables)
        return f"<{type(self).__name__}: {sizes}; .tables(), .records(), .to_pandas()>"

    def _repr_html_(self) -> str:
        return "".join(str(table.html()) for table in self.tables()[:_TABLES])


class Joined(Result):
    """Several results of one kind as one: records follow each other, signatures and tables are joined."""

    def __init__(self, results: Sequence[Result]) -> None:
        self.results = tuple(results)

    def header(self) -> Record:
        headers = [result.header() for result in self.results]
        maps = [signatures for header in headers if isinstance(signatures := header.get("signatures"), Mapping)]
        return {**headers[0], "signatures": {name: text for signatures in maps for name, text in signatures.items()}}

    def records(self) -> Iterator[Record]:
        return (record for result in self.results for record in result.records())

    def tables(self, *, long: bool = False) -> list[Table]:
        return [
            Table.join(tables) for tables in zip(*(result.tables(long=long) for result in self.results), strict=True)
        ]
