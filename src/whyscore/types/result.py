"""What every result of an analysis offers: records for programs, tables for people, data frames, a notebook form."""

import importlib
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from whyscore.errors import MissingExtra
from whyscore.types.table import Table

Record = Mapping[str, object]
_TABLES = 3


class Result:
    """Base of all results. A subclass gives `records`, `tables`, or both; each follows from the other.

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
        del long
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
        headers = [one.header() for one in self.results]
        known = [signatures for header in headers if isinstance(signatures := header.get("signatures"), Mapping)]
        return {**headers[0], "signatures": {name: text for signatures in known for name, text in signatures.items()}}

    def records(self) -> Iterator[Record]:
        return (record for one in self.results for record in one.records())

    def tables(self, *, long: bool = False) -> list[Table]:
        return [Table.join(tables) for tables in zip(*(one.tables(long=long) for one in self.results), strict=True)]
