"""What every p and w gains, with a calibration and controls for every explainer (BMX, section 4)."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

import numpy as np

from whyscore.analysis.calibrate.calibrate import calibrate_explained
from whyscore.analysis.calibrate.file import Calibration
from whyscore.analysis.calibrate.material import Explained, Setting, columns_of, groups_of, human_of, settings_of
from whyscore.analysis.calibrate.settings import JudgingSettings, Search
from whyscore.analysis.common import MetricLike
from whyscore.experiments.bmx.study import Figure, Row, Run, RunFolder, explain_by_each
from whyscore.registry import build
from whyscore.scoring.stack import LOCAL, Resources
from whyscore.settings import takes
from whyscore.types import Dataset, FloatVector
from whyscore.types.table import Table


@dataclass(frozen=True, repr=False)
class GridRun(Run):
    """The tables of a run folder, and a calibration for each explainer."""

    folder: RunFolder
    calibrations: list[Calibration]

    def tables(self, *, long: bool = False) -> list[Table]:
        tables = [one.outcome_table() for one in self.calibrations]
        rows = tuple(row for table in tables for row in table.rows)
        return [Table(tables[0].columns, rows)] if long else tables

    def summary(self) -> Iterator[str]:
        """Yield what each calibration came to."""
        for one in self.calibrations:
            yield from (*one.notes, f"{one.explainer}: {one.verdict}")

    def figures(self) -> Iterator[Figure]:
        """Yield curves, heat maps, settings, counts, ordered scores and costs."""
        from whyscore.report.figures import boost as figure  # noqa: PLC0415 - an extra

        grid, outcomes, scores = (self.folder.read(name) for name in ("grid", "outcomes", "scores"))
        epsilon = float(cast("float", self.folder.head("grid").get("epsilon", 0.0)))
        curves = "Correlation over p for each w; black: the original; shaded: degenerate"
        yield "grid_curves", figure.curves(grid), curves
        yield "grid_heat", figure.heat(grid), "Gain of every p and w; / marks degenerate cells"
        yield "improving", figure.improving(grid, epsilon), "The p and w that gain, with their medians"
        yield "settings", figure.settings(outcomes), "Original (black) and boosted correlation in every setting"
        yield "counts", figure.counts(outcomes), "Settings that got better or worse, by source"
        yield "sorted_scores", figure.sorted_scores(scores), "Standardised scores ordered by the human score"
        yield "costs", figure.costs(self.folder.read("costs")), "Texts scored and seconds by explainer"


@takes(JudgingSettings)
def bmx_grid(
    data: Dataset,
    metric: MetricLike,
    explainers: Sequence[str] = ("erasure",),
    *,
    output: str | Path,
    settings: JudgingSettings,
    resources: Resources = LOCAL,
) -> GridRun:
    """Return what every p and w gains: the whole grid, outcomes, scores and costs, written to a folder."""
    folder = RunFolder.make(output, "bmx-grid")
    calibrations: list[Calibration] = []
    grids: list[Row] = []
    ordered: list[Row] = []
    costs: list[Row] = []
    for found, cost_row in explain_by_each(folder, data, metric, explainers, seed=settings.seed, resources=resources):
        judged = calibrate_explained(found, settings)
        judged.save(folder.path / f"calibration_{len(calibrations)}.json")
        calibrations.append(judged)
        human, groups = human_of(found.data, settings.human), groups_of(found.data, settings.group)
        asked, _ = settings_of(found.material, human, groups, settings.level, settings.coefficient)
        grids += grid_rows(found, asked, settings.search)
        ordered += score_rows(found, judged, settings)
        costs.append(cost_row)
    folder.write("grid", grids, epsilon=settings.search.epsilon)
    folder.write("outcomes", [asdict(one) for judged in calibrations for one in judged.outcomes])
    folder.write("scores", ordered)
    folder.write("costs", costs)
    return GridRun(folder, calibrations)


def grid_rows(found: Explained, settings: Sequence[Setting], search: Search) -> Iterator[Row]:
    """Yield the whole grid: what every p and w gains in every setting, and where the aggregate is degenerate."""
    columns = columns_of(found.material, search.family, search.parameters)
    for setting in settings:
        judged = setting.at(found.material)
        gains = judged.gains(columns, search.weights)
        shares = columns.degenerate_share(setting.rows)
        for i, p in enumerate(columns.parameters.tolist()):
            for j, w in enumerate(search.weights.tolist()):
                yield {
                    "explainer": found.explainer,
                    "setting": setting.name,
                    "group": setting.group,
                    "p": p,
                    "w": w,
                    "original": judged.before,
                    "correlation": judged.before + float(gains[i, j]),
                    "gain": float(gains[i, j]),
                    "degenerate": float(shares[i]),
                }


def score_rows(found: Explained, calibration: Calibration, how: JudgingSettings) -> Iterator[Row]:
    """Yield human, original and aggregated score of every judged entry, each with mean 0 and deviation 1 in its group.

    Ordered by the human score, they show what the aggregate adds.
    """
    parameter = calibration.p if calibration.boosted else 1.0
    family = build(calibration.aggregator, "aggregator")
    values = columns_of(found.material, family, np.array([parameter])).values[0]
    groups = np.array(groups_of(found.data, how.group))
    judged = next(iter(human_of(found.data, how.human).values()))
    for name in dict.fromkeys(groups.tolist()):
        rows = np.flatnonzero((groups == name) & ~np.isnan(judged) & ~np.isnan(values))
        order = rows[np.argsort(judged[rows], kind="stable")]
        parts = {"human": judged, "original": found.material.scores, "aggregate": values}
        for score, numbers in parts.items():
            for place, number in enumerate(_standard(numbers[order]).tolist()):
                yield {"explainer": found.explainer, "group": name, "place": place, "score": score, "z": number}


def _standard(values: FloatVector) -> FloatVector:
    spread = float(values.std()) if len(values) else 0.0
    centred: FloatVector = values - values.mean()
    return centred / spread if spread > 0 else centred
