"""How much a piece weighs in a transport: as much as any other, or by inverse document frequency.

1. A file holds one text per line; df is the number of texts a piece occurs in, N the number of texts.
2. w = log((N + 1) / (df + 1)); a piece that no text holds weighs log(N + 1). Special pieces are in every text and weigh
   nothing.

The published code counts the texts of the run. Here a score depends on its segment alone, so the texts come from a
file, whose table has a digest in the signature; without one all pieces weigh the same, which is told once.
"""

import hashlib
import math
import warnings
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from whyscore.errors import DataError
from whyscore.protocols import Encoder
from whyscore.text.files import text_of
from whyscore.types import FloatVector

UNIFORM = "uniform"

_HELD = 1024
_FEWEST = 2


class MassNotice(UserWarning):
    """Pieces weigh the same where the published metric weighs them by idf."""


class Table(NamedTuple):
    """The weight of every piece of a collection of texts, and of those that are not in it."""

    known: Mapping[str, float]
    unknown: float

    def of(self, pieces: Sequence[str]) -> FloatVector:
        """Return the weight of each piece."""
        return np.array([self.known.get(piece, self.unknown) for piece in pieces], dtype=np.float64)

    @property
    def digest(self) -> str:
        """A short name for the numbers."""
        return hashlib.blake2b(repr((sorted(self.known.items()), self.unknown)).encode(), digest_size=6).hexdigest()


def table_of(path: str | None, encoder: Encoder) -> Table | None:
    """Return the weights that a file of texts gives to the encoder's pieces; None where all weigh the same."""
    if path is None or path == UNIFORM:
        return None
    file = Path(path).expanduser()
    if not file.is_file():
        raise DataError("no such file: idf takes a file with one text per line, or 'uniform'", file=path)
    return _table(str(file), file.stat().st_mtime_ns, cast("Hashable", encoder))


@lru_cache(maxsize=1)
def tell_uniform(name: str) -> None:
    """Say, once, that the pieces of a metric weigh the same though it was published with idf."""
    told = f"{name}: every piece weighs the same; the published metric weighs by idf. Give texts to count in, "
    warnings.warn(f"{told}{name}(idf='ref.txt'), or say idf='uniform'", MassNotice, stacklevel=2)


@lru_cache(maxsize=8)
def _table(path: str, _: int, encoder: Encoder) -> Table:
    texts = text_of(path).splitlines()
    if len(texts) < _FEWEST:
        raise DataError(f"idf needs at least two texts to count in, got {len(texts)}", file=path)
    frequency: Counter[str] = Counter()
    for start in range(0, len(texts), _HELD):
        for encoded in encoder.encode(texts[start : start + _HELD]):
            frequency.update(set(encoded.pieces))
    known = {piece: math.log((len(texts) + 1) / (count + 1)) for piece, count in frequency.items()}
    return Table(known, math.log(len(texts) + 1))
