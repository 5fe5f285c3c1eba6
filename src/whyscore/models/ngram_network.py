"""Vectors of pieces from a table and convolutions over n-grams (the network of USE multilingual v3; Yang et al. 2020).

1. Each piece has a static vector, 512 numbers, in a quantised table.
2. A linear map and a layer norm make the input of three branches, 256 numbers each. A branch is two convolutions over
   2, 3 or 5 neighbours, each followed by ReLU and added to its input. Outside a text there are zeros.
3. Features of a piece: static vector and the three branches, 1,280 numbers, layer-normed.
4. Projection of the features: 512 numbers per piece.
5. The vector of a text: projections summed and divided by the square root of their number, then two residual layers,
   tanh and unit length.

Two things make it fast, and neither changes a number by more than rounding. What depends on the piece alone (1, 2, and
each neighbour's share of the first convolution) is computed once per distinct piece. What depends on a piece and its
neighbours is computed once per distinct neighbourhood, so that probes of one text, which differ in a word, share most.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]
Matrix = NDArray[np.float32]
Indices = NDArray[np.intp]

# Rows computed at once: enough to use the weights well, few enough to stay in the cache of one core.
_ROWS = 256


class Branch(NamedTuple):
    """Two convolutions over the same window."""

    left: int
    """How many neighbours to the left the window reaches."""
    first: NDArray[np.float32]
    """Window x width x width."""
    first_bias: Vector
    second: Matrix
    """(Window x width) x width."""
    second_bias: Vector


class Weights(NamedTuple):
    """All numbers of the network."""

    table: NDArray[np.uint8]
    scale: Vector
    low: Vector
    chunks: int
    """Piece i is quantised with scale and low number i modulo chunks."""
    inner: Matrix
    inner_bias: Vector
    inner_norm: tuple[Vector, Vector]
    branches: tuple[Branch, ...]
    norm: tuple[Vector, Vector]
    outer: Matrix
    outer_bias: Vector
    hidden: tuple[Matrix, Matrix, Matrix, Matrix]
    skips: tuple[Matrix, Matrix]
    epsilon: float


class Rows(NamedTuple):
    """Distinct vectors, and which of them each piece has."""

    distinct: Matrix
    of: Indices


def static(weights: Weights, pieces: Indices) -> Rows:
    """Return the table's vector of each piece."""
    known, of = np.unique(pieces, return_inverse=True)
    return Rows(_static(weights, known), of)


def features(weights: Weights, pieces: Indices, lengths: Sequence[int]) -> Rows:
    """Return the normed features of each piece of texts that follow one another in `pieces`."""
    reach = max(max(b.left, len(b.first) - 1 - b.left) for b in weights.branches)
    near = _windows(lengths, reach)
    known, of = np.unique(pieces, return_inverse=True)
    vectors = _static(weights, known)
    inner = vectors @ weights.inner
    inner += weights.inner_bias
    _layer_norm(inner, weights.inner_norm, weights.epsilon)
    width = weights.branches[0].second.shape[1]
    parts = [inner[:, i * width : (i + 1) * width] for i in range(len(weights.branches))]
    once = [_first(branch, part, of, near, reach) for branch, part in zip(weights.branches, parts, strict=True)]
    asked, same = _neighbourhoods(of, lengths, 2 * reach)
    result = np.empty((len(asked), vectors.shape[1] + width * len(once)), dtype=np.float32)
    for begin in range(0, len(asked), _ROWS):
        rows = asked[begin : begin + _ROWS]
        block = result[begin : begin + _ROWS]
        block[:, : vectors.shape[1]] = vectors[of[rows]]
        for i, (branch, inputs) in enumerate(zip(weights.branches, once, strict=True)):
            column = vectors.shape[1] + i * width
            block[:, column : column + width] = _second(branch, inputs, rows, near, reach)
        _layer_norm(block, weights.norm, weights.epsilon)
    return Rows(result, same)


def projected(weights: Weights, rows: Rows) -> Rows:
    """Return the projection of each piece's features."""
    result = rows.distinct @ weights.outer
    result += weights.outer_bias
    return Rows(result, rows.of)


def pooled(weights: Weights, rows: Rows, lengths: Sequence[int]) -> Matrix:
    """Return one unit vector per text from the features of its pieces."""
    number = np.array(lengths, dtype=np.float32)[:, None]
    starts = np.cumsum([0, *lengths[:-1]])
    # The projection is linear, so it is done once per text, after the sum.
    mean = np.add.reduceat(rows.distinct[rows.of], starts, axis=0) @ weights.outer
    mean += number * weights.outer_bias
    mean /= np.sqrt(number)
    (d0, d1, d2, d3), (p1, p3) = weights.hidden, weights.skips
    middle = _relu(mean @ p1 + _relu(mean @ d0) @ d1)
    top: Matrix = np.tanh(middle @ p3 + _relu(middle @ d2) @ d3)
    top /= np.sqrt(np.maximum(np.sum(top * top, axis=1, keepdims=True), weights.epsilon))
    return top


def _static(weights: Weights, pieces: Indices) -> Matrix:
    chunk = pieces % weights.chunks
    vectors = weights.table[pieces].astype(np.float32)
    vectors *= weights.scale[chunk, None]
    vectors += weights.low[chunk, None]
    return vectors


def _windows(lengths: Sequence[int], reach: int) -> Indices:
    """Return the positions around each piece, from `reach` before to `reach` after; -1 outside its text."""
    number = np.array(lengths, dtype=np.intp)
    ends = np.repeat(np.cumsum(number), number)[:, None]
    starts = ends - np.repeat(number, number)[:, None]
    positions = np.arange(len(ends))[:, None] + np.arange(-reach, reach + 1)
    return np.where((positions >= starts) & (positions < ends), positions, -1)


def _neighbourhoods(pieces: Indices, lengths: Sequence[int], reach: int) -> tuple[Indices, Indices]:
    """Return one position for each distinct neighbourhood, and the neighbourhood of each position."""
    around = _windows(lengths, reach)
    seen = np.where(around < 0, -1, pieces[around]).astype(np.int32)
    joined = np.ascontiguousarray(seen).view(np.dtype((np.void, seen.itemsize * seen.shape[1]))).ravel()
    _, positions, same = np.unique(joined, return_index=True, return_inverse=True)
    return positions, same


def _first(branch: Branch, inputs: Matrix, of: Indices, near: Indices, reach: int) -> Matrix:
    """Return the first convolution at each position, and a last row of zeros for what lies outside."""
    result = np.zeros((len(of) + 1, inputs.shape[1]), dtype=np.float32)
    here = result[:-1]
    for slot, share in enumerate(branch.first):
        # A last row of zeros again: position -1 stands for no neighbour.
        of_piece = np.concatenate([inputs @ share, np.zeros((1, share.shape[1]), dtype=np.float32)])
        column = near[:, reach - branch.left + slot]
        here += of_piece[np.where(column < 0, -1, of[column])]
    here += branch.first_bias
    np.maximum(here, 0, out=here)
    here += inputs[of]
    return result


def _second(branch: Branch, inputs: Matrix, rows: Indices, near: Indices, reach: int) -> Matrix:
    first = reach - branch.left
    columns = near[rows, first : first + len(branch.first)]
    result: Matrix = inputs[columns].reshape(len(rows), -1) @ branch.second
    result += branch.second_bias
    np.maximum(result, 0, out=result)
    result += inputs[rows]
    return result


def _layer_norm(rows: Matrix, norm: tuple[Vector, Vector], epsilon: float) -> None:
    """Norm the rows in place."""
    rows -= rows.mean(axis=1, keepdims=True)
    variance = np.einsum("ij,ij->i", rows, rows) / rows.shape[1]
    rows *= (1 / np.sqrt(variance + epsilon))[:, None]
    rows *= norm[0]
    rows += norm[1]


def _relu(values: Matrix) -> Matrix:
    result: Matrix = np.maximum(values, 0)
    return result
