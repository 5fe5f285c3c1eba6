"""How much a piece counts in BERTScore and MoverScore: inverse document frequency.

1. A file holds one text per line; df is the number of texts a piece occurs in, N the number of texts.
2. w = log((N + 1) / (df + 1)); a piece that no text holds weighs log(N + 1). Special pieces are in every text and weigh
   nothing.
3. The table can be written to a `.json` file, and such a file be given instead of the texts.

With one text every piece in it would weigh nothing, so at least two are asked for. The table depends on the file
alone, never on the segments of a call, so that a score depends on its segment alone; its digest is in the signature.

The published code of MoverScore counts the texts of the run instead. Without a file all its pieces weigh the same,
which is told once.

Rescaling of BERTScore, so that unrelated texts score about 0: (v - b) / (1 - b).

1. b is what unrelated texts score on average: one number for precision, recall and F each, per model and layer.
2. A file holds a line `LAYER,P,R,F` and one line of numbers per layer, with commas or tabs; bert_score's files are of
   this kind.
3. Where there is no file, b is estimated from random pairs of the lines of a text in one language.
"""

import csv
import hashlib
import json
import math
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, Protocol, cast

import numpy as np

from whyscore.errors import DataError, SpecError
from whyscore.protocols import Encoder, SupportsLayer
from whyscore.text.files import json_of, read_once, text_of, write_whole
from whyscore.text.randomness import generator
from whyscore.types import FloatMatrix, FloatVector, Segment

_HELD = 1024


class IdfTable(NamedTuple):
    """The weight of every piece of a collection of texts, and of those that are not in it."""

    known: Mapping[str, float]
    unknown: float
    digest: str
    """A short name for the weights."""

    @classmethod
    def of_weights(cls, known: Mapping[str, float], unknown: float) -> "IdfTable":
        """Return the table with its digest."""
        content = json.dumps([sorted(known.items()), unknown], ensure_ascii=False)
        return cls(known, unknown, hashlib.blake2b(content.encode(), digest_size=6).hexdigest())

    def of(self, pieces: Sequence[str]) -> FloatVector:
        """Return the weight of each piece."""
        return np.array([self.known.get(piece, self.unknown) for piece in pieces], dtype=np.float64)


def idf_table(texts: Iterable[str], encoder: Encoder) -> IdfTable:
    """Return the weights that a collection of texts gives to the encoder's pieces."""
    lines = list(texts)
    number = len(lines)
    if number < 2:  # noqa: PLR2004 - two, as the message says
        raise SpecError(f"idf needs at least two texts to count in, got {number}")
    frequency: Counter[str] = Counter()
    for start in range(0, number, _HELD):
        for encoded in encoder.encode(lines[start : start + _HELD]):
            frequency.update(set(encoded.pieces))
    weights = {piece: math.log((number + 1) / (count + 1)) for piece, count in frequency.items()}
    return IdfTable.of_weights(weights, math.log(number + 1))


def write_idf(table: IdfTable, path: str | Path) -> None:
    """Write a table that `idf=` reads again, at full precision."""
    content = {"unknown": table.unknown, "known": dict(sorted(table.known.items()))}
    write_whole(path, f"{json.dumps(content, ensure_ascii=False, indent=0)}\n".encode())


@read_once(16)
def read_idf(path: str, encoder: Encoder) -> IdfTable:
    """Return the weights in a `.json` file, or those that a file of texts, one per line, gives; read once per file."""
    if not Path(path).is_file():
        raise DataError("no such file: idf takes a file with one text per line, or a .json table", file=path)
    text = text_of(path)
    if path.endswith(".json"):
        return _parse_table(text, path)
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return idf_table(lines if lines[-1] else lines[:-1], encoder)


def _parse_table(text: str, path: str) -> IdfTable:
    try:
        content = cast("dict[str, dict[str, float]]", json_of(text, path))
        weights = {str(piece): float(weight) for piece, weight in content["known"].items()}
        unknown = float(cast("float", content["unknown"]))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DataError('expected a table of weights, {"unknown": 6.9, "known": {"a": 0.1}}', file=path) from error
    if not all(math.isfinite(weight) and weight >= 0 for weight in (*weights.values(), unknown)):
        raise DataError("weights must be 0 or more", file=path)
    return IdfTable.of_weights(weights, unknown)


UNIFORM = "uniform"


class MassNotice(UserWarning):
    """Pieces weigh the same where the published metric weighs them by idf."""


def table_of(path: str | None, encoder: Encoder) -> IdfTable | None:
    """Return the weights that a file gives to the encoder's pieces; None where all weigh the same."""
    return None if path is None or path == UNIFORM else read_idf(str(Path(path).expanduser()), encoder)


@lru_cache(maxsize=1)
def tell_uniform(name: str) -> None:
    """Say, once, that the pieces of a metric weigh the same though it was published with idf."""
    message = f"{name}: every piece weighs the same; the published metric weighs by idf. Give texts to count in, "
    warnings.warn(f"{message}{name}(idf='ref.txt'), or say idf='uniform'", MassNotice, stacklevel=2)


_HEADER = ("LAYER", "P", "R", "F")


class Baseline(NamedTuple):
    """What unrelated texts score."""

    precision: float
    recall: float
    f: float

    def rescale(self, rows: FloatMatrix) -> FloatMatrix:
        """Return rows of precision, recall and F on the new scale."""
        base = np.array(self, dtype=np.float64)
        result: FloatMatrix = (rows - base) / (1 - base)
        return result


def rescale(values: FloatVector, base: float | None) -> FloatVector:
    """Return similarities on the new scale, or as they are where there is no baseline."""
    return values if base is None else (values - base) / (1 - base)


def layer_of(encoder: Encoder) -> int:
    """Return the number of the layer that an encoder reads; 0 where it has none."""
    return encoder.layer_read if isinstance(encoder, SupportsLayer) else 0


@read_once(16)
def read_baseline(path: str, layer: int) -> Baseline:
    """Return the baseline of a layer from a file."""
    if not Path(path).is_file():
        raise DataError("no such file: a baseline is a table with the columns LAYER, P, R and F", file=path)
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
            row_layer, (precision, recall, f) = int(layer_text), map(float, rest)
        except ValueError:
            raise DataError(
                f"expected a layer and three numbers, found {', '.join(row)}", file=path, line=number
            ) from None
        if row_layer == layer:
            return _check_baseline(Baseline(precision, recall, f), path, number)
    raise DataError(f"has no baseline for layer {layer}", file=path)


def _check_baseline(baseline: Baseline, path: str, line: int) -> Baseline:
    wrong = [value for value in baseline if not -math.inf < value < 1]
    if wrong:
        raise DataError(f"a baseline must be below 1, found {max(wrong)}", file=path, line=line)
    return baseline


def baseline_lines(baseline: Baseline, layer: int) -> list[str]:
    """Return a baseline as a table with tabs, at full precision."""
    return ["\t".join(_HEADER) + "\n", "\t".join([str(layer), *map(repr, map(float, baseline))]) + "\n"]


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
