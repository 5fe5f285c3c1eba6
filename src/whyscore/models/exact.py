"""Matrix products and sums whose digits depend on the numbers alone.

A product in float32 adds in an order that depends on the shape of the matrices, the place of a row in them, the number
of threads and the library, and so do its last digits. Here no sum is rounded, so that no order can matter:

1. Each row of the one matrix and each column of the other is rounded to multiples of 2^-26 times the power of two that
   is longer than it.
2. They are multiplied in float64. By the Cauchy-Schwarz inequality every partial sum is shorter than the product of the
   two powers, and it is a multiple of 2^-52 times that product: float64 holds it exactly.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whyscore.types import FloatMatrix

Floats = NDArray[np.floating]

_FACTOR_BITS = 26
_SUMMAND_BITS = 40
# Rows of so many numbers are added to without a buffer.
_LONG = 192
_SMALLEST_BUFFER = 16
# Rows multiplied at once: they stay in the cache of one core.
_ROWS = 256


class Factor(NamedTuple):
    """The weights of a layer, inputs x outputs, on their grid."""

    values: FloatMatrix


def factor(*weights: Floats) -> Factor:
    """Return weights as a factor; several matrices with the same inputs stand side by side."""
    columns = np.concatenate(weights, axis=1).T.astype(np.float64, order="C")
    return Factor(np.ascontiguousarray(_round_rows(columns).T))


def multiply(rows: Floats, weights: Factor) -> NDArray[np.float32]:
    """Return rows @ weights in float32.

    >>> multiply(np.array([[0.5, -3.0]]), factor(np.eye(2)))
    array([[ 0.5, -3. ]], dtype=float32)
    """
    flat = rows.reshape(-1, rows.shape[-1])
    result = np.empty((len(flat), weights.values.shape[1]), dtype=np.float32)
    for begin in range(0, len(flat), _ROWS):
        block = _round_rows(flat[begin : begin + _ROWS].astype(np.float64, order="C"))
        result[begin : begin + _ROWS] = block @ weights.values
    return result.reshape(*rows.shape[:-1], -1)


def multiply_rows(left: Floats, right: Floats) -> FloatMatrix:
    """Return left @ right.T, for each pair of matrices where there are several.

    >>> multiply_rows(np.eye(2), np.array([[0.5, 8.0]])).tolist()
    [[0.5], [8.0]]
    """
    here, there = (_round_rows(rows.astype(np.float64, order="C")) for rows in (left, right))
    product: FloatMatrix = here @ np.swapaxes(there, -1, -2)
    return product


def add(values: Floats, axis: int) -> FloatMatrix:
    """Return the sum over an axis, which is kept, of numbers rounded to multiples of 2^-40; exact below 4,096.

    >>> add(np.array([[0.5, 0.25]]), 1)
    array([[0.75]])
    """
    total: FloatMatrix = _round(values.astype(np.float64), _grid(_SUMMAND_BITS)).sum(axis=axis, keepdims=True)
    return total


def _round_rows(rows: FloatMatrix) -> FloatMatrix:
    """Round each row, in place, to the grid of its length."""
    _, exponents = np.frexp(np.sqrt(np.einsum("...j,...j->...", rows, rows))[..., None])
    grid = np.ldexp(_grid(_FACTOR_BITS), exponents)
    if rows.shape[-1] < _LONG:
        return _round(rows, grid)
    # numpy would repeat the grid of each row in its buffer, which takes twice the time of the sums; a buffer that is
    # smaller than a row it does not use.
    size = np.setbufsize(_SMALLEST_BUFFER)
    try:
        return _round(rows, grid)
    finally:
        np.setbufsize(size)


def _grid(bits: int) -> float:
    """Return the number whose last bit is 2^-bits: added to numbers below 2^(51 - bits), it leaves no bits beyond."""
    return 1.5 * 2.0 ** (52 - bits)


def _round(values: FloatMatrix, grid: float | FloatMatrix) -> FloatMatrix:
    values += grid
    values -= grid
    return values
