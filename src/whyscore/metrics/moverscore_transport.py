"""Optimal transport between the units of two texts: the least work that turns one into the other.

1. Vectors have unit length, so that the squared distance of two is 2 - 2 cos; `euclid` is its root. A vector of zeros
   has cosine 0 with everything.
2. d = min over T of sum T[i,j] C[i,j], where the rows of T add up to the masses of one text and its columns to those of
   the other, each set of masses scaled to add up to one (`ot.emd`, exact, float64).
3. `drop` takes out the flows below a quantile of those there are, as in the baseline of Eval4NLP 2021. Which flows an
   optimum has is not unique, so neither is such a number.
4. Where one text has no mass, all cosines count as 0: d is 2, or its root.
"""

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Literal, NamedTuple, Protocol, cast

import numpy as np

from whyscore.errors import MissingExtra
from whyscore.types import FloatMatrix, FloatVector

Cost = Literal["squared", "euclid"]

NOTHING: dict[Cost, float] = {"squared": 2.0, "euclid": float(np.sqrt(2.0))}
"""The distance to a text without mass."""

# Two equal vectors have a dot product of one up to rounding, and a root makes rounding large.
_ROUNDING = 1e-12
_STEPS = 10_000_000


class Moved(NamedTuple):
    """The optimum: how much goes where, and what it costs in all."""

    flow: FloatMatrix
    distance: float


class _Solver(Protocol):
    """What is used of POT."""

    def emd(self, a: FloatVector, b: FloatVector, M: FloatMatrix, numItermax: int) -> FloatMatrix:  # noqa: N803 - its names
        """Return the flow."""


def costs(other: FloatMatrix, hypothesis: FloatMatrix, cost: Cost) -> FloatMatrix:
    """Return the distance of every unit of one text to every unit of the other, from vectors of unit length.

    >>> costs(np.array([[1.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 1.0]]), "squared")
    array([[0., 2.]])
    """
    squared = 2.0 - 2.0 * (other @ hypothesis.T)
    squared[squared < _ROUNDING] = 0.0
    return squared if cost == "squared" else np.sqrt(squared)


def transport(cost: FloatMatrix, rows: FloatVector, columns: FloatVector, drop: float = 0.0) -> Moved:
    """Return the cheapest way to move the masses of the rows to those of the columns; both must have some mass."""
    flow = solver().emd(rows / rows.sum(), columns / columns.sum(), np.ascontiguousarray(cost), numItermax=_STEPS)
    if drop > 0:
        flow = np.where(flow < np.quantile(flow[flow > 0], drop), 0.0, flow)
    return Moved(flow, float(np.sum(flow * cost)))


@lru_cache(maxsize=1)
def solver() -> _Solver:
    """Return the package that solves transport problems."""
    try:
        with _without_backends():
            return cast("_Solver", importlib.import_module("ot"))
    except ImportError as error:
        raise MissingExtra.of("moverscore", "mover") from error


@contextmanager
def _without_backends() -> Iterator[None]:
    """Keep POT from importing torch and its kin, which takes seconds: arrays of numpy are all it gets here."""
    names = [f"POT_BACKEND_DISABLE_{name}" for name in ("PYTORCH", "TENSORFLOW", "JAX", "CUPY")]
    added = [name for name in names if name not in os.environ]
    os.environ.update(dict.fromkeys(added, "1"))
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]
