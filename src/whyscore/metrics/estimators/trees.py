"""Gradient-boosted decision trees in numpy (Friedman 2001), read from arrays.

1. All trees have the same number of places; the first one is the root. An inner place has a feature, a threshold and
   two children; a leaf has a value and is its own child, so that every walk may go on as long as the longest.
2. A row goes left where its feature is at most the threshold. A missing feature (NaN) goes where the tree says.
3. The sum over the trees is the logit.

All trees are walked at once, for a block of rows: places are numbered over all trees, so that one look-up finds a
property of all of them.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
Numbers = NDArray[np.int32]

_ROWS = 256


class Trees(NamedTuple):
    """The places of all trees, one tree after another."""

    roots: Numbers
    features: Numbers
    thresholds: Array
    missing_left: NDArray[np.bool_]
    children: Numbers
    """Left and right child of each place."""
    values: Array
    start: float
    """The logit before the first tree."""
    depth: int

    def logits(self, rows: Array) -> Array:
        """Return the sum over the trees for each row."""
        parts = [self._walk(rows[begin : begin + _ROWS]) for begin in range(0, len(rows), _ROWS)]
        return np.concatenate([np.zeros(0, dtype=np.float32), *parts])

    def _walk(self, rows: Array) -> Array:
        flat = np.ascontiguousarray(rows, dtype=np.float32).ravel()
        lines = (np.arange(len(rows), dtype=np.int32) * np.int32(rows.shape[1]))[:, None]
        gaps = bool(np.isnan(flat).any())
        places = np.tile(self.roots, (len(rows), 1))
        for _ in range(self.depth):
            values = flat.take(lines + self.features.take(places))
            right = ~(values <= self.thresholds.take(places))
            if gaps:
                right &= ~(np.isnan(values) & self.missing_left.take(places))
            places = self.children.take(2 * places + right)
        result: Array = self.values.take(places).sum(axis=1, dtype=np.float32) + np.float32(self.start)
        return result


def make_trees(arrays: Mapping[str, NDArray[np.generic]]) -> Trees:
    """Return trees from arrays of trees x places; `children` are numbered within their tree."""
    count, size = arrays["values"].shape
    roots = np.arange(count, dtype=np.int32) * np.int32(size)
    children = arrays["children"].astype(np.int32) + roots[:, None, None]
    start, depth = arrays["start"].tolist()
    return Trees(
        roots,
        arrays["features"].astype(np.int32).ravel(),
        arrays["thresholds"].astype(np.float32).ravel(),
        arrays["missing_left"].astype(np.bool_).ravel(),
        children.ravel(),
        arrays["values"].astype(np.float32).ravel(),
        float(start),
        int(depth),
    )
