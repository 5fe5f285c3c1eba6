"""What the records of a run must hold, so that reports meet nothing else; each complaint names file and line."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whyscore.errors import DataError
from whyscore.types import Dataset, Place, Side

Row = Mapping[str, object]

_AGAIN = "the file was changed or damaged; make the run again with whyscore evaluate --overwrite"
_ROW, _CLUSTER, _SEGMENT = "row", "cluster", "segment"


class Where(NamedTuple):
    """The place of a record."""

    file: str
    line: int

    def wrong(self, what: str) -> DataError:
        """Return the error that says what is wrong here, and what to do."""
        return DataError(f"{what}: {_AGAIN}", file=self.file, line=self.line)


def text(record: Row, key: str, where: Where) -> str:
    """Return a text that every record has."""
    found = record.get(key)
    if not isinstance(found, str):
        raise where.wrong(f"{key!r} is {found!r}, expected a text")
    return found


def value_of(value: object) -> float:
    """Return a number; NaN where there is none."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan


def counted(value: object) -> int:
    """Return a count; 0 where there is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def words_of(record: Row, where: Where) -> list[Row]:
    """Return the words of an explanation."""
    words = record.get("words")
    if not isinstance(words, list) or not all(isinstance(word, Mapping) for word in words):
        raise where.wrong(f"'words' is {words!r}, expected a list of objects")
    return words


def place_of(record: Row, where: Where) -> Place:
    """Return which text an explanation is of."""
    side, reference = record.get("side"), record.get("reference")
    if side not in tuple(Side):
        raise where.wrong(f"'side' is {side!r}, expected {', '.join(Side)}")
    if (side == Side.REFERENCE) != (isinstance(reference, int) and not isinstance(reference, bool)):
        raise where.wrong(f"'reference' is {reference!r}, which does not go with the side {side!r}")
    return Place(Side(str(side)), reference if isinstance(reference, int) else None)


def spans_of(words: Sequence[Row], size: int, where: Where) -> NDArray[np.int64]:
    """Return where words begin and end, one after the other inside a text of `size` characters."""
    at = 0
    for word in words:
        for key in ("start", "end"):
            found = word.get(key)
            if not isinstance(found, int) or isinstance(found, bool) or not at <= found <= size:
                raise where.wrong(f"{key!r} of a word is {found!r}, expected {at} to {size}")
            at = found
    return np.array([(word["start"], word["end"]) for word in words], dtype=np.int64).reshape(-1, 2)


def check_features(row: Row, dataset: Dataset, where: Where) -> None:
    """Refuse a row of a decomposition that reports could not show."""
    if row.get(_ROW) not in (None, _SEGMENT):
        return
    system = text(row, "system", where)
    if system not in dataset.systems:
        raise where.wrong(f"'system' is {system!r}, expected one of {', '.join(map(repr, dataset.systems))}")
    if row.get(_ROW) == _SEGMENT:
        if text(row, "id", where) not in dataset.ids:
            raise where.wrong(f"no segment {row['id']!r}")
    else:
        text(row, "metric", where)
        text(row, "feature", where)
        told = row.get("discrepancy")
        counts = told.get("all", {}) if isinstance(told, Mapping) else {}
        if not isinstance(counts, Mapping) or not all(isinstance(value, int | float) for value in counts.values()):
            raise where.wrong(f"'discrepancy' is {told!r}, expected counts")


def check_tests(row: Row, where: Where) -> None:
    """Refuse a row of comparisons that reports could not show."""
    if row.get(_ROW) == _CLUSTER:
        found = row.get(_CLUSTER)
        if not isinstance(found, int) or isinstance(found, bool):
            raise where.wrong(f"{_CLUSTER!r} is {found!r}, expected a whole number")
        keys: tuple[str, ...] = ("metric", "system")
    else:
        keys = () if _ROW in row else ("metric", "first", "second")
    for key in keys:
        text(row, key, where)
