"""Data frames of any library that narwhals knows (pandas, polars, pyarrow ...), with the column names of tables.

A null is a missing value; rows count from one in messages.
"""

from collections.abc import Sequence
from typing import Protocol, cast

from whyscore.errors import DataError, MissingExtra
from whyscore.io.columns import Choice
from whyscore.io.conversion import Block
from whyscore.io.gathering import Gathering, Options
from whyscore.types import Dataset


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
        raise DataError(f"{name} is empty: expected one segment a row")
    gathering = Gathering(name, "hypothesis", Options(columns or {}, tuple(human), languages=languages))
    gathering.add(Block(name, names, values, range(1, rows + 1), cells=False))
    return gathering.finish(name)


def _eager(frame: object) -> _Frame:
    try:
        import narwhals  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtra.of("reading data frames", "frames") from error
    try:
        data = narwhals.from_native(cast("narwhals.DataFrame[narwhals.typing.IntoDataFrame]", frame))
    except TypeError as error:
        raise DataError(f"expected a data frame, got {type(frame).__name__}") from error
    return cast("_Frame", data.collect() if isinstance(data, narwhals.LazyFrame) else data)


def _values(series: _Series) -> list[object]:
    nulls = series.is_null().to_list()
    return [None if null else value for value, null in zip(series.to_list(), nulls, strict=True)]
