"""What calibration reads: scores, word importances and human judgements. The metric is never asked again.

1. `Material` holds one score, one bag of importances and one hypothesis length per entry.
2. `Columns` are the aggregated importances of every entry for every parameter that is tried (parameters x entries).
3. A `Setting` is one set of entries with one human score, coefficient and level. `gains` gives what every mixture
   w s0 + (1 - w) M gains there over s0 alone, for the whole grid at once.
4. Groups that cannot be judged are left out and named with the reason.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whyscore.aggregate import Bags, Family, FlooredFamily
from whyscore.errors import DataError, UserError
from whyscore.explainers.masks.erasure import Random
from whyscore.metrics.boosted import Parts, gather_importances
from whyscore.protocols import Explainer, HidesWords, Metric
from whyscore.registry import build, spec_of
from whyscore.scoring.rows import orient
from whyscore.stats.coefficients import CLASSIFYING, coefficient_of
from whyscore.stats.grid import Target
from whyscore.stats.matrices import level_of
from whyscore.types import Dataset, Entry, Evidence, Explanation, FloatMatrix, FloatVector, IntVector
from whyscore.types.data import natural_order

DEGENERATE = 0.99
"""A segment whose floored values carry this share of the sum of v^p has a power mean that sees nothing else."""


@dataclass(frozen=True, eq=False)
class Material:
    """One row per entry: its score (larger is better), its importances, its length and where it belongs."""

    scores: FloatVector
    bags: Bags
    lengths: FloatVector
    """Words of the hypothesis."""
    systems: IntVector
    segments: IntVector
    documents: IntVector
    """Entries of one document are never parted."""
    has_documents: bool = False
    """Whether documents are more than single segments."""

    def __len__(self) -> int:
        return len(self.scores)

    def with_bags(self, bags: Bags) -> "Material":
        """Return the same entries with other importances."""
        return replace(self, bags=bags)


@dataclass(frozen=True, eq=False)
class Columns:
    """Aggregated importances: one row per parameter, one column per entry."""

    parameters: FloatVector
    values: FloatMatrix
    degenerate: NDArray[np.bool_] | None = None
    """Where the floor value determines the number entirely; None for aggregators without a floor."""

    def degenerate_share(self, rows: IntVector) -> FloatVector:
        """Return for each parameter the share of entries whose number the floor value determines entirely."""
        if self.degenerate is None or not len(rows):
            return np.zeros(len(self.parameters))
        share: FloatVector = self.degenerate[:, rows].mean(axis=1)
        return share


def columns_of(material: Material, family: Family, parameters: FloatVector) -> Columns:
    """Return the aggregated importances of all entries for all parameters."""
    if isinstance(family, FlooredFamily):
        table = family.powers(material.bags, parameters)
        return Columns(parameters, table.means, table.floored >= DEGENERATE)
    return Columns(parameters, family.table(material.bags, parameters))


def length_columns(material: Material, rows: IntVector, sign: float = 1.0) -> Columns:
    """Return a control: the hypothesis length, brought to mean and deviation of the scores of some rows.

    A sign of -1 turns it round: the shorter, the better.
    """
    rows = rows[~np.isnan(material.scores[rows])]
    lengths, scores = sign * material.lengths[rows], material.scores[rows]
    spread = float(lengths.std())
    stretch = float(scores.std()) / spread if spread > 0 else 0.0
    values = (sign * material.lengths - lengths.mean()) * stretch + scores.mean()
    return Columns(np.ones(1), values[None])


def rescale(columns: Columns, material: Material, rows: IntVector) -> tuple[Columns, FloatVector, FloatVector]:
    """Return the columns with mean and deviation of the scores of some rows, and the shift and stretch of each."""
    values = columns.values[:, rows]
    spread = np.nanstd(values, axis=1)
    stretch = np.divide(np.nanstd(material.scores[rows]), spread, out=np.ones_like(spread), where=spread > 0)
    shift = np.nanmean(material.scores[rows]) - stretch * np.nanmean(values, axis=1)
    return (
        Columns(columns.parameters, shift[:, None] + stretch[:, None] * columns.values, columns.degenerate),
        shift,
        stretch,
    )


@dataclass(frozen=True, eq=False)
class Setting:
    """One question to people: these entries, this human score, this coefficient at this level."""

    name: str
    group: str
    human_name: str
    coefficient: str
    level: str
    rows: IntVector
    human: FloatVector
    """Aligned with all entries of the material; NaN where nobody judged."""

    def on(self, rows: IntVector) -> "Setting":
        """Return the same question about other entries."""
        return replace(self, rows=rows)

    def at(self, material: Material) -> "Judged":
        """Return the setting with its human scores made ready."""
        return Judged(material, self)


@dataclass(frozen=True, eq=False)
class Judged:
    """A setting over its material: correlations of any mixture."""

    material: Material
    setting: Setting

    @cached_property
    def target(self) -> Target:
        """The human scores, prepared."""
        rows, material = self.setting.rows, self.material
        return Target.of(
            self.setting.human[rows],
            coefficients=(self.setting.coefficient,),
            level=self.setting.level,
            systems=material.systems[rows],
            segments=material.segments[rows],
            valid=~np.isnan(material.scores[rows]) & (material.bags.lengths[rows] > 0),
        )

    @cached_property
    def whole(self) -> FloatVector:
        """The original scores at the level."""
        return self.target.project(self.material.scores[self.setting.rows])

    @cached_property
    def before(self) -> float:
        """The correlation of the original score."""
        return float(self.target.correlate(self.whole[None])[0, 0])

    def gains(self, columns: Columns, weights: FloatVector) -> FloatMatrix:
        """Return what each mixture gains: parameters x weights."""
        other = self.target.project(columns.values[:, self.setting.rows])
        gains: FloatMatrix = self.target.mix(self.whole, other, weights)[0] - self.before
        return gains

    def correlation(self, values: FloatVector) -> float:
        """Return the correlation of any score, one value per entry of the material."""
        return float(self.target.correlate(self.target.project(values[self.setting.rows])[None])[0, 0])

    @property
    def n(self) -> int:
        """How many entries were judged and scored."""
        return len(self.target.entries)


def material_from(data: Dataset, scores: FloatVector, bags: Bags) -> Material:
    """Return the material of a data set's entries: scores that are larger where better, and their importances.

    Entries without a document are documents of their own, together with the same segment of other systems.
    """
    entries = data.entries
    documents = positions([entry.document or entry.id for entry in entries])
    return Material(
        scores,
        bags,
        np.array([len(entry.segment.hypothesis.split()) for entry in entries], dtype=np.float64),
        positions([entry.system for entry in entries]),
        positions([entry.id for entry in entries]),
        documents,
        len(set(documents.tolist())) < len(entries),
    )


def positions(names: Sequence[str]) -> IntVector:
    """Return a whole number per name, equal for equal names, in the order of their first appearance."""
    first: dict[str, int] = {}
    return np.array([first.setdefault(name, len(first)) for name in names], dtype=np.int64)


LEAST = 10
"""Judged segments that a setting needs."""

_LEAST_SYSTEMS = 3
_CLASSES = 2
_ORIGIN = "data set"


def material_of(data: Dataset, explanations: Sequence[Explanation], metric: Metric, parts: Parts = "all") -> Material:
    """Return what calibration reads of explained entries."""
    scores, bags = gather_importances(explanations, len(data), parts)
    return material_from(data, orient(metric).sign * scores, bags)


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
    default = explaining.masker if isinstance(explaining, HidesWords) else None
    masker = facts.get("masker")
    drawn = [
        replace(
            explanation, importance=Random().fit(Evidence.whole(explanation.words, explanation.score, seed)).importance
        )
        for explanation in explanations
    ]
    return Explained(
        data,
        metric,
        spec_of(explaining),
        material,
        material.with_bags(gather_importances(drawn, len(material), parts)[1]),
        None if default is not None and spec_of(default) == masker else masker,
        facts.get("unit", "word"),
        parts,
        seed,
    )


def human_of(data: Dataset, names: Sequence[str] | None) -> dict[str, FloatVector]:
    """Return the human scores of those names, one number per entry."""
    if not names:
        raise UserError("no human score: name its column with --human, for example --human da")
    return {name: data.human(name) for name in names}


def possible_settings(
    material: Material,
    human: dict[str, FloatVector],
    groups: Sequence[str],
    level: str,
    coefficients: Sequence[str],
) -> tuple[tuple[Setting, ...], list[str]]:
    """Return the settings that can be judged, perhaps none, and a note for each that cannot."""
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
                classes = len(np.unique(values[rows][~np.isnan(values[rows])]))
                if coefficient in CLASSIFYING and (classes != _CLASSES or at == "system"):
                    obstacle = f"its human scores have {classes} values" if at != "system" else "systems have no class"
                    notes.append(f"{name} was left out: {obstacle}, {coefficient} needs two classes of segments")
                    continue
                settings.append(Setting(name, group, score, coefficient, at, rows, values))
    return tuple(settings), notes


def _unusable(material: Material, human: FloatVector, rows: IntVector, level: str) -> str:
    """Return why a group cannot be judged by a human score, or nothing."""
    rated = rows[~np.isnan(human[rows]) & ~np.isnan(material.scores[rows])]
    if not len(rated):
        return "none of its segments has a human score"
    if len(rated) < LEAST:
        return f"{len(rated)} judged segments, at least {LEAST} are needed"
    if np.ptp(human[rated]) == 0:
        return f"its human scores are all {human[rated[0]]:g}"
    if np.ptp(material.scores[rated]) == 0:
        return f"the metric scores every segment {material.scores[rated[0]]:g}"
    systems = len(np.unique(material.systems[rated]))
    if level in ("system", "segment") and systems < _LEAST_SYSTEMS:
        return f"{systems} systems, the level {level} needs at least {_LEAST_SYSTEMS}"
    return ""


def join_datasets(datasets: Dataset | Sequence[Dataset]) -> Dataset:
    """Return one data set; of several, the entries know where they come from."""
    if isinstance(datasets, Dataset):
        return datasets
    if len(datasets) == 1:
        return datasets[0]
    names = [
        f"{dataset.name} {k}" if [d.name for d in datasets].count(dataset.name) > 1 else dataset.name
        for k, dataset in enumerate(datasets)
    ]
    entries = [_rename(entry, name) for name, dataset in zip(names, datasets, strict=True) for entry in dataset.entries]
    return Dataset(" + ".join(names), tuple(entries))


def sort_entries(data: Dataset) -> Dataset:
    """Return the entries by id, numbers in it as numbers, system and text: folds and sums go by their order."""

    def key(entry: Entry) -> tuple[object, ...]:
        return natural_order(entry.id), entry.system, entry.segment.hypothesis

    return replace(data, entries=tuple(sorted(data.entries, key=key)))


def _rename(entry: Entry, name: str) -> Entry:
    """Return an entry whose id and document are unique among several data sets."""
    document = None if entry.document is None else f"{name}: {entry.document}"
    return replace(entry, id=f"{name}: {entry.id}", document=document, extra={**entry.extra, _ORIGIN: name})


def groups_of(data: Dataset, group: str | None) -> list[str]:
    """Return the group of each entry: its value in a column, and the data set it comes from."""
    if group is not None and not any(group in entry.extra for entry in data.entries):
        columns = sorted({name for entry in data.entries for name in entry.extra} - {_ORIGIN})
        raise DataError(f"{data.name} has no column {group!r} to group by; it has: {', '.join(columns) or 'none'}")
    parts = [
        (str(entry.extra.get(_ORIGIN, "")), "" if group is None else str(entry.extra.get(group, "")))
        for entry in data.entries
    ]
    return [" ".join(filter(None, part)) for part in parts]


def check_judged(data: Dataset, human: dict[str, FloatVector]) -> None:
    """Refuse data with hardly any human score."""
    for name, values in human.items():
        rated = int((~np.isnan(values)).sum())
        if rated < LEAST:
            raise DataError(
                f"{data.name} has {rated} segments with the human score {name!r}: calibration needs at least {LEAST}"
            )
