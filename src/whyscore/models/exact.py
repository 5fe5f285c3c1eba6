"""Matrix products and sums whose digits depend on the numbers alone.

A product in float32 adds in an order that depends on the shape of the matrices, the place of a row in them, the number
of threads and the library, and so do its last digits. Here no sum is rounded, so that no order can matter:

1. Each row of the one matrix and each column of the other is divided by a power of two that makes it shorter than 1,
   and rounded to multiples of 2^-26.
2. They are multiplied in float64. By the Cauchy-Schwarz inequality every partial sum is below 2, and it is a multiple
   of 2^-52: float64 holds it exactly.
3. The powers of two are put back.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whyscore.types import FloatMatrix

Floats = NDArray[np.floating]

_FACTOR_BITS = 26
_SUMMAND_BITS = 40
# Rows multiplied at once: they stay in the cache of one core.
_ROWS = 256


class Factor(NamedTuple):
    """The weights of a layer, inputs x outputs, on their grid."""

    values: FloatMatrix
    powers: FloatMatrix
    """Of two, by which the columns were divided."""

    @property
    def weights(self) -> FloatMatrix:
        """The weights as they are multiplied."""
        return self.values * self.powers


def factor(*weights: Floats) -> Factor:
    """Return weights as a factor; several matrices with the same inputs stand side by side."""
    columns, powers = _scale(np.concatenate(weights, axis=1).T)
    return Factor(np.ascontiguousarray(columns.T), powers[:, 0])


def multiply(rows: Floats, weights: Factor) -> NDArray[np.float32]:
    """Return rows @ weights in float32.

    >>> multiply(np.array([[0.5, -3.0]]), factor(np.eye(2)))
    array([[ 0.5, -3. ]], dtype=float32)
    """
    flat = rows.reshape(-1, rows.shape[-1])
    result = np.empty((len(flat), len(weights.powers)), dtype=np.float32)
    for begin in range(0, len(flat), _ROWS):
        block, powers = _scale(flat[begin : begin + _ROWS])
        product = block @ weights.values
        product *= powers
        product *= weights.powers
        result[begin : begin + _ROWS] = product
    return result.reshape(*rows.shape[:-1], -1)


def multiply_rows(left: Floats, right: Floats) -> FloatMatrix:
    """Return left @ right.T, for each pair of matrices where there are several.

    >>> multiply_rows(np.eye(2), np.array([[0.5, 8.0]])).tolist()
    [[0.5], [8.0]]
    """
    (here, own), (there, other) = _scale(left), _scale(right)
    product: FloatMatrix = here @ np.swapaxes(there, -1, -2)
    product *= own
    product *= np.swapaxes(other, -1, -2)
    return product


def add(values: Floats, axis: int) -> FloatMatrix:
    """Return the sum over an axis, which is kept, of numbers rounded to multiples of 2^-40; exact below 4,096.

    >>> add(np.array([[0.5, 0.25]]), 1)
    array([[0.75]])
    """
    found: FloatMatrix = _round(values.astype(np.float64), _SUMMAND_BITS).sum(axis=axis, keepdims=True)
    return found


def _scale(rows: Floats) -> tuple[FloatMatrix, FloatMatrix]:
    """Return rows of a length below 1 on the grid, and the powers of two by which they were divided."""
    values = rows.astype(np.float64, order="C")
    _, exponents = np.frexp(np.sqrt(np.einsum("...j,...j->...", values, values))[..., None])
    values *= np.ldexp(1.0, -exponents)
    return _round(values, _FACTOR_BITS), np.ldexp(1.0, exponents)


def _round(values: FloatMatrix, bits: int) -> FloatMatrix:
    """Round numbers below 2^(51 - bits) to multiples of 2^-bits, in place, by adding a number with no bits beyond."""
    summand = 1.5 * 2.0 ** (52 - bits)
    values += summand
    values -= summand
    return values
