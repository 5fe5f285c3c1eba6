"""Which cells change places between two metrics.

1. `coins` tosses coins: a cell is swapped iff its own coin says so (`cell`), iff row coin and column coin differ
   (`row_xor_column`), by its row's coin (`systems`) or by its column's (`inputs`).
2. `every_coin` lists all of them where there are few.
3. `swapped_sums` gives the row sums of a swapped matrix by matrix products, without the matrix.
"""

from collections.abc import Iterator
from typing import Literal, get_args

import numpy as np
from numpy.random import Generator, RandomState
from numpy.typing import NDArray

from whyscore.types import FloatMatrix, FloatVector

Permute = Literal["cell", "row_xor_column", "systems", "inputs"]
PERMUTES: tuple[Permute, ...] = get_args(Permute)
ENUMERATED = 20
"""All swaps are listed where they are at most two to this power."""

Coins = NDArray[np.bool_]
"""Resamples x coins; where both rows and columns have some, those of the rows come first."""

Swaps = NDArray[np.bool_]
"""Resamples x systems x segments: True where X and Y change places."""

_HALF = 0.5
_DRAWN = 4_000_000  # random numbers held at a time; a coin takes one byte of the eight


def coin_count(permute: Permute, rows: int, columns: int) -> int:
    """Return how many coins one resample takes."""
    return {"cell": rows * columns, "row_xor_column": rows + columns, "systems": rows, "inputs": columns}[permute]


def free_coins(permute: Permute, rows: int, columns: int) -> int:
    """Return how many coins make a difference: turning all rows and all columns is turning nothing."""
    return coin_count(permute, rows, columns) - (permute == "row_xor_column")


def coins(
    rng: Generator | RandomState, permute: Permute, rows: int, columns: int, *, n: int, block: int
) -> Iterator[Coins]:
    """Yield the coins of n random swaps in blocks; the size of the blocks does not change them."""
    count = coin_count(permute, rows, columns)
    for start in range(0, n, block):
        wanted = min(block, n - start)
        piece = max(1, _DRAWN // count)
        sizes = [(min(piece, wanted - done), count) for done in range(0, wanted, piece)]
        yield np.concatenate(
            [(rng.random_sample(size) if isinstance(rng, RandomState) else rng.random(size)) > _HALF for size in sizes]
        )


def every_coin(permute: Permute, rows: int, columns: int, *, block: int) -> Iterator[Coins]:
    """Yield the coins of all distinct swaps in blocks."""
    free = free_coins(permute, rows, columns)
    for start in range(0, 2**free, block):
        numbers = np.arange(start, min(start + block, 2**free))
        yield ((numbers[:, None] >> np.arange(coin_count(permute, rows, columns))) & 1).astype(np.bool_)


def spread(tossed: Coins, permute: Permute, rows: int, columns: int) -> Swaps:
    """Return the swaps that coins stand for."""
    shape = (len(tossed), rows, columns)
    if permute == "cell":
        return tossed.reshape(shape)
    if permute == "systems":
        return np.broadcast_to(tossed[:, :, None], shape)
    if permute == "inputs":
        return np.broadcast_to(tossed[:, None, :], shape)
    return tossed[:, :rows, None] ^ tossed[:, None, rows:]


def swapped_sums(tossed: Coins, permute: Permute, difference: FloatMatrix) -> FloatMatrix:
    """Return resamples x systems: the sum of a difference (Y - X) over the swapped cells of each row."""
    rows, columns = difference.shape
    if permute == "cell":
        chosen = tossed.reshape(len(tossed), rows, columns)
        return np.stack([chosen[:, i].astype(np.float64) @ difference[i] for i in range(rows)], axis=1)
    if permute == "inputs":
        return tossed.astype(np.float64) @ difference.T
    whole: FloatVector = difference.sum(axis=1)
    own: FloatMatrix = tossed[:, :rows].astype(np.float64)
    if permute == "systems":
        return own * whole
    return own * whole + (1 - 2 * own) * (tossed[:, rows:].astype(np.float64) @ difference.T)
