"""Rescaling of BERTScore, so that unrelated texts score about 0: (v - b) / (1 - b).

1. b is what unrelated texts score on average: one number for precision, recall and F each, per model and layer.
2. A file holds a line `LAYER,P,R,F` and one line of numbers per layer, with commas or tabs; bert_score's files are of
   this kind.
3. Where there is no file, b is estimated from random pairs of the lines of a text in one language.
"""

import csv
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from whyscore.errors import DataError, SpecError
from whyscore.protocols import Encoder, SupportsLayer
from whyscore.text.files import text_of
from whyscore.text.randomness import generator
from whyscore.types import FloatMatrix, FloatVector, Segment

_HEADER = ("LAYER", "P", "R", "F")


class Baseline(NamedTuple):
    """What unrelated texts score."""

    precision: float
    recall: float
    f: float

    def rescaled(self, rows: FloatMatrix) -> FloatMatrix:
        """Return rows of precision, recall and F on the new scale."""
        base = np.array(self, dtype=np.float64)
        result: FloatMatrix = (rows - base) / (1 - base)
        return result


def rescaled(values: FloatVector, base: float | None) -> FloatVector:
    """Return similarities on the new scale, or as they are where there is no baseline."""
    return values if base is None else (values - base) / (1 - base)


def layer_of(encoder: Encoder) -> int:
    """Return the number of the layer that an encoder reads; 0 where it has none."""
    return encoder.layer_read if isinstance(encoder, SupportsLayer) else 0


def read_baseline(path: str, layer: int) -> Baseline:
    """Return the baseline of a layer from a file."""
    file = Path(path)
    if not file.is_file():
        raise DataError("no such file: a baseline is a table with the columns LAYER, P, R and F", file=path)
    return _read(path, file.stat().st_mtime_ns, layer)


@lru_cache(maxsize=16)
def _read(path: str, _: int, layer: int) -> Baseline:
    lines = text_of(path).splitlines()
    try:
        rows = list(csv.reader(lines, delimiter="\t" if lines and "\t" in lines[0] else ","))
    except csv.Error as error:
        raise DataError(f"cannot be read as a table: {error}", file=path) from error
    if not rows or tuple(rows[0]) != _HEADER:
        raise DataError(
            f"expected the columns {', '.join(_HEADER)}, found {', '.join(rows[0]) if rows else 'nothing'}",
            file=path,
            line=1,
        )
    for number, row in enumerate(rows[1:], start=2):
        try:
            layer_text, *rest = row
            own, (precision, recall, f) = int(layer_text), map(float, rest)
        except ValueError:
            raise DataError(
                f"expected a layer and three numbers, found {', '.join(row)}", file=path, line=number
            ) from None
        if own == layer:
            return _checked(Baseline(precision, recall, f), path, number)
    raise DataError(f"has no baseline for layer {layer}", file=path)


def _checked(found: Baseline, path: str, line: int) -> Baseline:
    wrong = [value for value in found if not -math.inf < value < 1]
    if wrong:
        raise DataError(f"a baseline must be below 1, found {max(wrong)}", file=path, line=line)
    return found


def baseline_lines(found: Baseline, layer: int) -> list[str]:
    """Return a baseline as a table with tabs, at full precision."""
    return ["\t".join(_HEADER) + "\n", "\t".join([str(layer), *map(repr, map(float, found))]) + "\n"]


def write_baseline(found: Baseline, layer: int, path: str | Path) -> None:
    """Write a baseline as a table with tabs, at full precision."""
    Path(path).write_text("".join(baseline_lines(found, layer)), "utf-8")


class Rescalable(Protocol):
    """A metric with rows of precision, recall and F, which can be asked without its baseline."""

    @property
    def baseline(self) -> str | None:
        """The file of its baseline."""

    def statistics(self, segments: Sequence[Segment]) -> FloatMatrix:
        """Return precision, recall and F of each segment."""


def estimate_baseline(texts: Sequence[str], metric: Rescalable, *, pairs: int = 20_000, seed: int = 0) -> Baseline:
    """Return what random pairs of the texts score on average; no text is paired with itself."""
    if len(texts) < 2:  # noqa: PLR2004 - a pair
        raise SpecError(f"a baseline needs at least two texts, got {len(texts)}")
    rng = generator(seed, *texts)
    first = rng.integers(len(texts), size=pairs)
    second = (first + rng.integers(1, len(texts), size=pairs)) % len(texts)
    plain = replace(metric, baseline=None)  # type: ignore[type-var]
    segments = [Segment(texts[i], texts[j], (texts[j],)) for i, j in zip(first.tolist(), second.tolist(), strict=True)]
    return Baseline(*plain.statistics(segments).mean(axis=0).tolist())
