"""From explained and judged entries to material and settings; what cannot be judged is named with the reason."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from whyscore.errors import DataError
from whyscore.explainers.masks.random import Random
from whyscore.jobs.boosted import Parts, gathered
from whyscore.jobs.calibration_material import Material, Numbers, Setting, material_from, positions
from whyscore.protocols import Explainer, Metric
from whyscore.registry import build, spec_of
from whyscore.scoring.rows import oriented
from whyscore.stats.coefficients import coefficient_of
from whyscore.stats.matrices import level_of
from whyscore.types import Dataset, Entry, Evidence, Explanation, FloatVector

LEAST = 10
"""Judged segments that a setting needs."""

_LEAST_SYSTEMS = 3
_ORIGIN = "data set"


def material_of(data: Dataset, explanations: Sequence[Explanation], metric: Metric, parts: Parts = "all") -> Material:
    """Return what calibration reads of explained entries."""
    scores, bags = gathered(explanations, len(data), parts)
    return material_from(data, oriented(metric).sign * scores, bags)


class Explained(NamedTuple):
    """Explained entries: the material, the same with random importances, and how they came about."""

    data: Dataset
    metric: Metric
    explainer: str
    material: Material
    noise: Material
    masker: str | None = None
    unit: str = "word"
    parts: Parts = "all"
    seed: int = 0


def explained_of(
    data: Dataset,
    metric: Metric,
    explainer: str | Explainer,
    explanations: Sequence[Explanation],
    *,
    parts: Parts = "all",
    seed: int = 0,
) -> Explained:
    """Return what calibration needs to know of explanations, one or more per entry."""
    explaining = build(explainer, "explainer") if isinstance(explainer, str) else explainer
    material = material_of(data, explanations, metric, parts)
    facts = dict(explanations[0].signature.facts)
    own = getattr(explaining, "masker", None)
    masker = facts.get("masker")
    drawn = [
        replace(one, importance=Random().fit(Evidence.whole(one.words, one.score, seed)).importance)
        for one in explanations
    ]
    return Explained(
        data,
        metric,
        spec_of(explaining),
        material,
        material.replaced(gathered(drawn, len(material), parts)[1]),
        None if own is not None and spec_of(own) == masker else masker,
        facts.get("unit", "word"),
        parts,
        seed,
    )


def human_of(data: Dataset, names: str | Sequence[str]) -> dict[str, FloatVector]:
    """Return the human scores of those names, one number per entry."""
    return {name: data.human(name) for name in ((names,) if isinstance(names, str) else names)}


def settings_of(
    material: Material,
    human: dict[str, FloatVector],
    groups: Sequence[str],
    level: str,
    coefficients: Sequence[str],
) -> tuple[tuple[Setting, ...], list[str]]:
    """Return the settings that can be judged, and a note for each that cannot."""
    at = level_of(level)
    named = [coefficient_of(name) for name in coefficients]
    settings, notes = [], []
    numbers = positions(list(groups))
    for group in dict.fromkeys(groups):
        rows = np.flatnonzero(numbers == numbers[groups.index(group)])
        for score, values in human.items():
            reason = _unusable(material, values, rows, at)
            if reason:
                notes.append(f"{' '.join(filter(None, (group, score)))} was left out: {reason}")
                continue
            for coefficient in named:
                name = " ".join(filter(None, (group, score, f"{coefficient}@{at}")))
                settings.append(Setting(name, group, score, coefficient, at, rows, values))
    if not settings:
        raise DataError(f"nothing to calibrate on: {'; '.join(notes)}")
    return tuple(settings), notes


def _unusable(material: Material, human: FloatVector, rows: Numbers, level: str) -> str:
    """Return why a group cannot be judged by a human score, or nothing."""
    judged = rows[~np.isnan(human[rows]) & ~np.isnan(material.scores[rows])]
    if not len(judged):
        return "nobody judged any of its segments"
    if len(judged) < LEAST:
        return f"{len(judged)} judged segments, at least {LEAST} are needed"
    if np.ptp(human[judged]) == 0:
        return f"its human scores are all {human[judged[0]]:g}"
    if np.ptp(material.scores[judged]) == 0:
        return f"the metric scores every segment {material.scores[judged[0]]:g}"
    systems = len(np.unique(material.systems[judged]))
    if level in ("system", "segment") and systems < _LEAST_SYSTEMS:
        return f"{systems} systems, the level {level} needs at least {_LEAST_SYSTEMS}"
    return ""


def joined(given: Dataset | Sequence[Dataset]) -> Dataset:
    """Return one data set; of several, the entries know where they come from."""
    if isinstance(given, Dataset):
        return given
    if len(given) == 1:
        return given[0]
    names = [
        f"{one.name} {k}" if [d.name for d in given].count(one.name) > 1 else one.name for k, one in enumerate(given)
    ]
    entries = [_named(entry, name) for name, one in zip(names, given, strict=True) for entry in one.entries]
    return Dataset(" + ".join(names), tuple(entries))


def _named(entry: Entry, name: str) -> Entry:
    """Return an entry whose id and document are unique among several data sets."""
    document = None if entry.document is None else f"{name}: {entry.document}"
    return replace(entry, id=f"{name}: {entry.id}", document=document, extra={**entry.extra, _ORIGIN: name})


def groups_of(data: Dataset, group: str | None) -> list[str]:
    """Return the group of each entry: its value in a column, and the data set it comes from."""
    if group is not None and not any(group in entry.extra for entry in data.entries):
        known = sorted({name for entry in data.entries for name in entry.extra} - {_ORIGIN})
        raise DataError(f"{data.name} has no column {group!r} to group by; it has: {', '.join(known) or 'none'}")
    parts = [
        (str(entry.extra.get(_ORIGIN, "")), "" if group is None else str(entry.extra.get(group, "")))
        for entry in data.entries
    ]
    return [" ".join(filter(None, part)) for part in parts]


def check_judged(data: Dataset, human: dict[str, FloatVector]) -> None:
    """Refuse data with hardly any human score."""
    for name, values in human.items():
        judged = int((~np.isnan(values)).sum())
        if judged < LEAST:
            raise DataError(
                f"{data.name} has {judged} segments with the human score {name!r}: calibration needs at least {LEAST}"
            )
