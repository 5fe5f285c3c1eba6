"""How p and w are chosen from what every mixture gains (Leiter, Nguyen and Eger 2022; and what we found since).

| rule | choice |
|---|---|
| `median` | of all (p, w) that gain more than epsilon in some setting: the median p and the median w, apart |
| `median_of_argmax` | the median over the settings of each one's best p, and of its best w |
| `argmax` | the largest mean gain over the settings |
| `plateau` | the largest mean gain after a moving average over 21 neighbouring p; degenerate cells are left out |
| `cv_shrinkage` | the plateau, pulled towards w = 1 by the share of the gain that survives on left-out folds |
| `cautious` | the same, after half a standard error was taken from the gain on left-out folds |

w = 1, the original metric with a gain of exactly 0, is always a candidate. Ties (to 1e-12) go to the larger w, then to
the smaller |p|. Where nothing gains, w is 1: "not boosted".
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from whyscore.analysis.calibrate.material import Columns, Material, Setting
from whyscore.errors import SpecError
from whyscore.types import FloatMatrix, FloatVector, IntVector

Rule = Literal["median", "median_of_argmax", "argmax", "plateau", "cv_shrinkage", "cautious"]
RULES: tuple[Rule, ...] = get_args(Rule)

WEIGHTS = (0.0, 0.2, 0.4, 0.6, 0.8)
"""The weights of the original score that are tried, besides 1."""

EPSILON = 0.001
FOLDS = 10
_MOST_FOLDS = 20  # up to here every document is a fold of its own
_TIE = 1e-12
_NEIGHBOURS = 60  # a sixtieth of the grid to each side: 10 of 601 values, one unit of p
_DEGENERATE = 0.5  # above this share of degenerate segments a cell is no candidate
_CAUTION = 0.5  # standard errors of the gain on left-out folds


@dataclass(frozen=True, slots=True)
class Choice:
    """A chosen parameter and weight; `p` is NaN where nothing was chosen and w is 1."""

    p: float
    w: float
    shrinkage: float | None = None
    """The share of the distance from w = 1 that was kept."""
    inside: float | None = None
    """Mean gain on the fitted folds."""
    outside: float | None = None
    """Mean gain on the left-out folds."""

    @property
    def boosted(self) -> bool:
        """Whether anything but the original metric was chosen."""
        return self.w < 1


ORIGINAL = Choice(float("nan"), 1.0)
"""Not boosted."""


class Problem(NamedTuple):
    """What a rule looks at: settings over material, and the columns that are tried."""

    material: Material
    settings: Sequence[Setting]
    columns: Callable[[IntVector], Columns]
    """The columns, given the rows that may be looked at."""
    weights: FloatVector
    epsilon: float

    @property
    def rows(self) -> IntVector:
        return np.unique(np.concatenate([setting.rows for setting in self.settings]))


def choose(problem: Problem, rule: Rule) -> Choice:
    """Return what a rule chooses; the original metric where there is no setting at all."""
    if rule not in RULES:
        raise SpecError(f"no rule named {rule!r}: use {', '.join(RULES)}")
    if not problem.settings:
        return ORIGINAL
    if rule in ("cv_shrinkage", "cautious"):
        return _by_folds(problem, rule)
    columns = problem.columns(problem.rows)
    return pick(grids(problem, columns), columns, problem, rule)


def grids(problem: Problem, columns: Columns) -> list[FloatMatrix]:
    """Return the gains of every setting, parameters x weights."""
    return [setting.at(problem.material).gains(columns, problem.weights) for setting in problem.settings]


def pick(gains: Sequence[FloatMatrix], columns: Columns, problem: Problem, rule: Rule) -> Choice:
    """Return what a rule without folds chooses from the gains."""
    p, w = columns.parameters, problem.weights
    if rule == "median":
        cells = [np.nonzero(np.nan_to_num(gain, nan=-np.inf) > problem.epsilon) for gain in gains]
        powers = np.concatenate([p[i] for i, _ in cells])
        if not len(powers):
            return ORIGINAL
        return Choice(float(np.median(powers)), float(np.median(np.concatenate([w[j] for _, j in cells]))))
    if rule == "median_of_argmax":
        each = [_largest(gain, p, w) for gain in gains]
        boosted = [choice for choice in each if choice.boosted]
        if not boosted:
            return ORIGINAL
        weight = float(np.median([choice.w for choice in each]))
        return Choice(float(np.median([choice.p for choice in boosted])), weight) if weight < 1 else ORIGINAL
    mean = np.mean(gains, axis=0)
    if rule == "argmax":
        return _largest(mean, p, w)
    plateau = smooth(mean)
    plateau[columns.degenerate_share(problem.rows) > _DEGENERATE] = np.nan
    return _largest(plateau, p, w)


def _largest(gain: FloatMatrix, p: FloatVector, w: FloatVector) -> Choice:
    """Return the best cell; w = 1 wins where nothing is above 0, ties go to the larger w, then to the smaller |p|."""
    values = np.nan_to_num(gain, nan=-np.inf)
    best = float(values.max(initial=-np.inf))
    if best <= _TIE:
        return ORIGINAL
    cells = np.argwhere(values >= best - _TIE)
    i, j = min(cells.tolist(), key=lambda cell: (-w[cell[1]], abs(p[cell[0]]), cell[0]))
    return Choice(float(p[i]), float(w[j]))


def smooth(gain: FloatMatrix) -> FloatMatrix:
    """Return the moving average over neighbouring parameters (21 of 601), the outermost repeated beyond the ends."""
    if len(gain) == 1:
        return gain.copy()
    side = max(1, round(len(gain) / _NEIGHBOURS))
    padded = np.pad(gain, ((side, side), (0, 0)), mode="edge")
    sums = np.cumsum(np.vstack([np.zeros((1, gain.shape[1])), padded]), axis=0)
    width = 2 * side + 1
    result: FloatMatrix = (sums[width:] - sums[:-width]) / width
    return result


def folds(material: Material, setting: Setting, count: int = FOLDS) -> NDArray[np.int64]:
    """Return the fold of each of a setting's rows: a few documents are a fold each, else documents or rows in turn.

    Rows are dealt out one by one, never cut into stretches: data may be sorted by quality.
    """
    if not material.has_documents:
        return np.arange(len(setting.rows)) % count
    documents = np.unique(material.documents[setting.rows], return_inverse=True)[1]
    # in the order of their first row, whatever their numbers
    first = np.unique(documents, return_index=True)[1]
    turn = np.argsort(np.argsort(first))[documents]
    return turn if turn.max(initial=0) < _MOST_FOLDS else turn % count


def _by_folds(problem: Problem, rule: Rule) -> Choice:
    """Return the plateau, shrunk by what is left of its gain on folds that it did not see."""
    columns = problem.columns(problem.rows)
    plateau = pick(grids(problem, columns), columns, problem, "plateau")
    if not plateau.boosted:
        return Choice(plateau.p, 1.0, 0.0)
    inside, outside = _refit(problem)
    inner, outer = float(np.nanmean(inside)), float(np.nanmean(outside))
    if rule == "cautious":
        error = float(np.nanstd(outside)) / np.sqrt(max(1, len(outside) - 1))
        outer -= _CAUTION * error
    shrinkage = float(np.clip(outer / inner, 0.0, 1.0)) if inner > problem.epsilon else 0.0
    return Choice(plateau.p if shrinkage else float("nan"), 1 - shrinkage * (1 - plateau.w), shrinkage, inner, outer)


def _refit(problem: Problem) -> tuple[list[float], list[float]]:
    """Return the mean gain of the plateau on the fitted rows and on the left-out ones, fold by fold."""
    turns = [folds(problem.material, setting) for setting in problem.settings]
    inside, outside = [], []
    for fold in range(1 + max(int(turn.max()) for turn in turns)):
        fitted = [setting.on(setting.rows[turn != fold]) for setting, turn in zip(problem.settings, turns, strict=True)]
        out = [setting.on(setting.rows[turn == fold]) for setting, turn in zip(problem.settings, turns, strict=True)]
        part = problem._replace(settings=fitted)
        columns = part.columns(part.rows)
        gains = grids(part, columns)
        choice = pick(gains, columns, part, "plateau")
        if not choice.boosted:
            inside.append(0.0)
            outside.append(0.0)
            continue
        cell = (
            int(np.flatnonzero(columns.parameters == choice.p)[0]),
            int(np.flatnonzero(part.weights == choice.w)[0]),
        )
        inside.append(float(np.mean([gain[cell] for gain in gains])))
        column = Columns(columns.parameters[[cell[0]]], columns.values[[cell[0]]])
        left = [setting.at(part.material).gains(column, part.weights[[cell[1]]])[0, 0] for setting in out]
        outside.append(float(np.nanmean(left)) if not np.isnan(left).all() else np.nan)
    return inside, outside
