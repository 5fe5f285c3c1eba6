"""Stored explanations read back: by system, metric and explainer, then by side, then by id.

Only explanations of the hypothesis and of the source are kept: the shared tasks and spans speak of these.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from whyscore.data.formats.eval4nlp import Judged
from whyscore.data.records import read_records
from whyscore.errors import DataError
from whyscore.types import FloatVector

_SIDES: dict[str, Judged] = {"hypothesis": "target", "source": "source"}


class StoredWords(NamedTuple):
    """The words of one text with their importance, and the score of its segment (NaN where there is none)."""

    id: str
    system: str
    spans: tuple[tuple[int, int], ...]
    words: tuple[str, ...]
    importance: FloatVector
    score: float
    line: int


@dataclass(frozen=True, eq=False)
class StoredExplanations:
    """Explanations of a file; a group's name says what differs within the file."""

    file: str
    groups: Mapping[str, Mapping[Judged, Mapping[str, StoredWords]]]


def read_explanations(path: str | Path) -> StoredExplanations:
    """Return the explanations in a file of records."""
    records = read_records(path, kind="explanations")
    rows: dict[tuple[str, str, str], dict[Judged, dict[str, StoredWords]]] = {}
    for line, record in records.numbered():
        side = _SIDES.get(str(record.get("side")))
        if side is None:
            continue
        found = _words(record, str(path), line)
        key = found.system, str(record.get("metric")), str(record.get("explainer"))
        own = rows.setdefault(key, {}).setdefault(side, {})
        if found.id in own:
            message = f"the id {found.id!r} is explained twice, first on line {own[found.id].line}"
            raise DataError(message, file=str(path), line=line)
        own[found.id] = found
    return StoredExplanations(str(path), dict(zip(_names(list(rows)), rows.values(), strict=True)))


def _names(keys: list[tuple[str, str, str]]) -> list[str]:
    """Return short names: metric and explainer always, the system where there are several."""
    several = len({system for system, _, _ in keys}) > 1
    return [f"{system} {metric} {how}" if several else f"{metric} {how}" for system, metric, how in keys]


def _words(record: Mapping[str, object], file: str, line: int) -> StoredWords:
    words = record.get("words")
    if not isinstance(words, list) or not all(isinstance(word, dict) for word in words):
        raise DataError(f"'words' is {words!r}, expected a list of objects", file=file, line=line)
    values = [word.get("importance") for word in words]
    for word, value in zip(words, values, strict=True):
        if not isinstance(value, int | float):
            raise DataError(
                f"the importance of {word.get('text')!r} is {value!r}, expected a number", file=file, line=line
            )
    score = record.get("score")
    return StoredWords(
        str(record.get("id")),
        str(record.get("system")),
        tuple(_span(word, file, line) for word in words),
        tuple(str(word.get("text")) for word in words),
        np.array(values, dtype=np.float64),
        float(score) if isinstance(score, int | float) else float("nan"),
        line,
    )


def _span(word: Mapping[str, object], file: str, line: int) -> tuple[int, int]:
    """Return where a word is."""
    start, end = word.get("start"), word.get("end")
    if not (isinstance(start, int) and isinstance(end, int) and 0 <= start <= end):
        raise DataError(
            f"the word {word.get('text')!r} is from {start!r} to {end!r}, expected two offsets", file=file, line=line
        )
    return start, end
