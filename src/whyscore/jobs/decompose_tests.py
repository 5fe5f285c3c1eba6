"""Resampling of shares: each system's bootstrap draws, and the tests between every two systems."""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from whyscore.jobs.decompose_fit import fit_of, summed_rows
from whyscore.jobs.decompose_result import Difference
from whyscore.jobs.decompose_settings import Measured, Study
from whyscore.stats.correction import corrected
from whyscore.stats.shares import Interval, interval, resampled, swap_test
from whyscore.types import FloatMatrix


class System(NamedTuple):
    """One system: its entries, for every entry of the data set its segment (-1: another system's), and its draws."""

    name: str
    entries: list[int]
    lines: list[int]
    table: FloatMatrix
    draws: FloatMatrix


def systems_of(study: Study, one: Measured) -> list[System]:
    """Return the systems; the same seed gives all of them, and all features, the same weights."""
    dataset, settings = study.dataset, study.settings
    place = {name: k for k, name in enumerate(dataset.ids)}
    found = []
    for name in dataset.systems:
        entries = [k for k, entry in enumerate(dataset.entries) if entry.system == name]
        lines = [place[entry.id] if entry.system == name else -1 for entry in dataset.entries]
        table = summed_rows(one.values, lines, len(place))
        draws = resampled(table, fit_of(one.values), draws=settings.draws, seed=settings.seed)
        found.append(System(name, entries, lines, table, draws))
    return found


class _Compared(NamedTuple):
    """A difference before it is corrected."""

    feature: str
    first: str
    second: str
    difference: float
    limits: Interval
    p: float


def tests_between(study: Study, one: Measured, systems: Sequence[System]) -> list[Difference]:
    """Return the difference of every two systems on every feature, corrected over all of them."""
    if not study.settings.draws:
        return []
    found = [row for first, second in combinations(systems, 2) for row in _pair(study, one, first, second)]
    correction = study.settings.correction
    adjusted = corrected(correction, [row.p for row in found], family="features x pairs of systems").adjusted
    return [_difference(one.name, correction, row, q) for row, q in zip(found, adjusted, strict=True)]


def _pair(study: Study, one: Measured, first: System, second: System) -> list[_Compared]:
    settings, fit = study.settings, fit_of(one.values)
    both = _shared(study, first, second)
    p = swap_test(first.table[both], second.table[both], fit, draws=settings.draws, seed=settings.seed)
    values = [fit(system.table.sum(axis=0, keepdims=True))[0] for system in (first, second)]
    differences, draws = values[0] - values[1], first.draws - second.draws
    return [
        _Compared(name, first.name, second.name, float(differences[k]), interval(draws[:, k]), float(p[k]))
        for k, name in enumerate(study.marking.features)
    ]


def _difference(metric: str, correction: str, row: _Compared, q: float) -> Difference:
    names = metric, row.feature, row.first, row.second
    if np.isnan(row.difference):
        reason = f"the share of {row.feature} is undefined for {row.first} or {row.second}"
        return Difference(*names, None, None, None, None, None, correction, reason)
    return Difference(*names, row.difference, row.limits.low, row.limits.high, row.p, q, correction)


def _shared(study: Study, first: System, second: System) -> list[int]:
    """Return the segments that two systems share."""
    ids = [{study.dataset.entries[k].id for k in system.entries} for system in (first, second)]
    return [k for k, name in enumerate(study.dataset.ids) if name in ids[0] and name in ids[1]]
