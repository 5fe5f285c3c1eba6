"""Scores that were computed elsewhere, read from a file and found again by the texts they belong to.

1. The file is JSONL (`.jsonl`), CSV (`.csv`) or TSV (any other ending; quoted like CSV where every quotation mark fits
   that, else raw), in UTF-8. It has a column `hypothesis`, optionally `source` and `reference` (in JSONL also
   `references`, a list), and a column of scores.
2. The columns it has are the texts the metric reads: a segment is found by all of them together.
3. A segment that is not in the file is an error, and so are two rows with the same texts and different scores.

Reads a file of texts with scores: JSONL, CSV or TSV, each complaint with its line.
"""

import csv
import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from whyscore.data.codec import Where, convert_segment
from whyscore.errors import DataError
from whyscore.metrics.needs import quote_start
from whyscore.registry import spec_of
from whyscore.settings import check_fields
from whyscore.text.files import STRICT, read_once
from whyscore.types import FloatVector, Inputs, Segment, Signature


class Row(NamedTuple):
    """A score with the line it stands in."""

    score: float
    line: int


class Content(NamedTuple):
    """A file, read."""

    inputs: Inputs
    rows: Mapping[Segment, Row]
    """By the texts that have a column."""
    digest: str


_Record = Mapping[str, object]
_TEXT_COLUMNS = {
    "hypothesis": Inputs.HYPOTHESIS,
    "source": Inputs.SOURCE,
    "reference": Inputs.REFERENCES,
    "references": Inputs.REFERENCES,
}


@read_once(8)
def read(path: str, column: str) -> Content:
    """Return what the file says; it is read again when it has changed."""
    try:
        data = Path(path).read_bytes()
        text = data.decode("utf-8-sig")
    except FileNotFoundError:
        raise DataError("no such file: lookup needs a file of texts and scores", file=path) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", file=path) from error
    except UnicodeDecodeError as error:
        raise DataError(f"is not UTF-8 (byte {error.start}); convert it first", file=path) from error
    inputs = Inputs(0)
    rows: dict[Segment, Row] = {}
    for line, record in _records(text, path):
        columns = [name for name in _TEXT_COLUMNS if name in record]
        here = Inputs(0)
        for name in columns:
            here |= _TEXT_COLUMNS[name]
        _check_columns(record, column, here, inputs or here, (path, line))
        inputs = here
        row = Row(_score(record[column], column, (path, line)), line)
        before = rows.setdefault(convert_segment(record, Where(path, line)), row)
        if before.score != row.score:
            raise DataError(
                f"score {row.score!r} for the same texts as line {before.line}, which has {before.score!r}; keep one",
                file=path,
                line=line,
            )
    if not rows:
        raise DataError("has no scores: expected a column 'hypothesis' and one of scores", file=path)
    return Content(inputs, rows, hashlib.blake2b(data, digest_size=6).hexdigest())


def _records(text: str, path: str) -> Iterator[tuple[int, _Record]]:
    """Yield line number and columns of each row."""
    # Only \n ends a line: a form feed or U+2028 belongs to the text.
    lines = text.split("\n")
    if path.endswith(".jsonl"):
        for number, content in enumerate(lines, start=1):
            if content.strip():
                record = _json(content, path, number)
                if "schema" not in record:
                    yield number, record
        return
    yield from _table([line.removesuffix("\r") + "\n" for line in lines], path)


def _json(content: str, path: str, line: int) -> dict[str, object]:
    try:
        record = STRICT.decode(content)
    except (ValueError, RecursionError) as error:
        raise DataError(f"not JSON: {error}", file=path, line=line) from error
    if not isinstance(record, dict):
        raise DataError("not an object", file=path, line=line)
    return record


def _table(lines: list[str], path: str) -> Iterator[tuple[int, _Record]]:
    quoted = path.endswith(".csv") or _is_quoted(lines)
    reader = csv.reader(
        lines, delimiter="," if path.endswith(".csv") else "\t", quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    )
    try:
        header = next(reader)
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(header):
                raise DataError(f"expected {len(header)} columns, found {len(cells)}", file=path, line=reader.line_num)
            yield reader.line_num, dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise DataError(f"cannot be read as a table: {error}", file=path, line=reader.line_num) from error


def _is_quoted(lines: list[str]) -> bool:
    """Return whether every cell with a quotation mark is quoted as in CSV."""
    cells = [cell for line in lines if '"' in line for cell in line[:-1].split("\t") if '"' in cell]
    return all(
        len(cell) > 1 and cell[0] == cell[-1] == '"' and '"' not in cell[1:-1].replace('""', "") for cell in cells
    )


def _check_columns(record: _Record, column: str, here: Inputs, before: Inputs, place: tuple[str, int]) -> None:
    file, line = place
    has = ", ".join(record) or "nothing"
    if Inputs.HYPOTHESIS not in here:
        raise DataError(f"no column 'hypothesis'; it has: {has}", file=file, line=line)
    if column not in record:
        raise DataError(f"no column {column!r} with scores; it has: {has}", file=file, line=line)
    if here != before:
        raise DataError(f"other text columns than the rows before; it has: {has}", file=file, line=line)


def _score(value: object, column: str, place: tuple[str, int]) -> float:
    file, line = place
    try:
        score = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else math.nan
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise DataError(f"{column!r} is {value!r}, expected a finite number", file=file, line=line)
    return score


@dataclass(frozen=True, slots=True)
class Lookup:
    """A metric whose scores are read from a file.

    Args:
        path: the file.
        column: the column with the scores.
        higher_is_better: whether a larger score means a better hypothesis.
    """

    path: str
    column: str = "score"
    higher_is_better: bool = True

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def inputs(self) -> Inputs:
        return self._content.inputs

    def signature(self) -> Signature:
        return Signature(spec_of(self), (("digest", self._content.digest),))

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        content = self._content
        return np.array([self._find_rows(content, segment) for segment in segments], dtype=np.float64)

    @property
    def _content(self) -> Content:
        return read(self.path, self.column)

    def _find_rows(self, content: Content, segment: Segment) -> float:
        texts = segment.only(content.inputs)
        row = content.rows.get(texts)
        if row is None:
            message = f"hypothesis {quote_start(texts.hypothesis)}"
            message += f", source {quote_start(texts.source)}" if texts.source is not None else ""
            message += f", references {texts.references!r}" if Inputs.REFERENCES in content.inputs else ""
            raise DataError(f"no score for {message}; every segment needs a row with exactly its texts", file=self.path)
        return row.score
