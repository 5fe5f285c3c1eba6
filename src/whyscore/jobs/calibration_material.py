"""What calibration reads: scores, word importances and human judgements. The metric is never asked again.

1. `Material` holds one score, one bag of importances and one hypothesis length per entry.
2. `Columns` are the aggregated importances of every entry for every parameter that is tried (parameters x entries).
3. A `Setting` is one set of entries with one human score, coefficient and level. `gains` gives what every mixture
   w s0 + (1 - w) M gains there over s0 alone, for the whole grid at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from whyscore.aggregate.bags import Bags, Family
from whyscore.aggregate.power import PowerMean
from whyscore.aggregate.sides import PerSide
from whyscore.stats.grid import Target
from whyscore.types import Dataset, FloatMatrix, FloatVector

Numbers = NDArray[np.int64]

DEGENERATE = 0.99
"""A segment whose floored values carry this share of the sum of v^p has a power mean that sees nothing else."""


@dataclass(frozen=True, eq=False)
class Material:
    """One row per entry: its score (larger is better), its importances, its length and where it belongs."""

    scores: FloatVector
    bags: Bags
    lengths: FloatVector
    """Words of the hypothesis."""
    systems: Numbers
    segments: Numbers
    documents: Numbers
    """Entries of one document are never parted."""
    has_documents: bool = False
    """Whether documents are more than single segments."""

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self.scores)

    def replaced(self, bags: Bags) -> "Material":
        """Return the same entries with other importances."""
        return Material(
            self.scores, bags, self.lengths, self.systems, self.segments, self.documents, self.has_documents
        )


@dataclass(frozen=True, eq=False)
class Columns:
    """Aggregated importances: one row per parameter, one column per entry."""

    parameters: FloatVector
    values: FloatMatrix
    degenerate: NDArray[np.bool_] | None = None
    """Where the number hangs on the floor alone; None for aggregators without a floor."""

    def degenerate_share(self, rows: Numbers) -> FloatVector:
        """Return for each parameter the share of entries whose number hangs on the floor alone."""
        if self.degenerate is None or not len(rows):
            return np.zeros(len(self.parameters))
        share: FloatVector = self.degenerate[:, rows].mean(axis=1)
        return share


def columns_of(material: Material, family: Family, parameters: FloatVector) -> Columns:
    """Return the aggregated importances of all entries for all parameters."""
    if isinstance(family, PowerMean | PerSide):
        table = family.powers(material.bags, parameters)
        return Columns(parameters, table.means, table.floored >= DEGENERATE)
    return Columns(parameters, family.table(material.bags, parameters))


def length_columns(material: Material, rows: Numbers, sign: float = 1.0) -> Columns:
    """Return a control: the hypothesis length, brought to mean and deviation of the scores of some rows.

    A sign of -1 turns it round: the shorter, the better.
    """
    own, scores = sign * material.lengths[rows], material.scores[rows]
    spread = float(own.std())
    stretch = float(scores.std()) / spread if spread > 0 else 0.0
    values = (sign * material.lengths - own.mean()) * stretch + scores.mean()
    return Columns(np.ones(1), values[None])


def rescaled(columns: Columns, material: Material, rows: Numbers) -> tuple[Columns, FloatVector, FloatVector]:
    """Return the columns with mean and deviation of the scores of some rows, and the shift and stretch of each."""
    known = columns.values[:, rows]
    spread = np.nanstd(known, axis=1)
    stretch = np.divide(np.nanstd(material.scores[rows]), spread, out=np.ones_like(spread), where=spread > 0)
    shift = np.nanmean(material.scores[rows]) - stretch * np.nanmean(known, axis=1)
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
    rows: Numbers
    human: FloatVector
    """Aligned with all entries of the material; NaN where nobody judged."""

    def on(self, rows: Numbers) -> "Setting":
        """Return the same question about other entries."""
        return Setting(self.name, self.group, self.human_name, self.coefficient, self.level, rows, self.human)

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
        found: FloatMatrix = self.target.mixed(self.whole, other, weights)[0] - self.before
        return found

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


def positions(names: Sequence[str]) -> Numbers:
    """Return a whole number per name, equal for equal names, in the order of their first appearance."""
    first: dict[str, int] = {}
    return np.array([first.setdefault(name, len(first)) for name in names], dtype=np.int64)
