"""How much of a boosted score is chance: the same explanations with other random numbers (BMX, section 5.3).

1. Explain every segment `runs` times, with seeds seed, seed + 1 ...
2. For every p and every w below 1, correlate over segments the boosted scores of two runs; average over pairs of runs,
   over p and over groups.
3. Beside it the mean correlation of the raw importances within a segment, which the boosted scores hide: for w above 0
   both runs share the original score.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import ClassVar, NamedTuple, cast

import numpy as np

from whyscore.aggregate.bags import Bags, Family
from whyscore.analysis.calibrate.material import Material, Numbers, columns_of, groups_of
from whyscore.analysis.calibrate.settings import AgreementSettings, ChoosingSettings
from whyscore.analysis.common import MetricLike
from whyscore.experiments.bmx.study import Figure, Row, Run, RunFolder, explain_in
from whyscore.scoring.stack import LOCAL, Resources
from whyscore.settings import Seeded, again, option, takes
from whyscore.stats.coefficients import pearson
from whyscore.types import Dataset, FloatMatrix, FloatVector
from whyscore.types.table import Cell, Table


@dataclass(frozen=True, kw_only=True)
class StabilitySettings(ChoosingSettings, Seeded):
    """What `bmx_stability` takes."""

    TITLE: ClassVar[str] = "repeated runs"

    group: str | None = again(AgreementSettings, "group")
    samples: tuple[int, ...] = option((100, 1000), "samples of LIME, as in the paper", metavar="N", least=1, basic=True)
    runs: int = option(3, "runs with different seeds", metavar="N", least=2, basic=True)
    every: int = option(1, "use only every N-th segment of a group", metavar="N", least=1, basic=True)


@dataclass(frozen=True, repr=False)
class StabilityRun(Run):
    """The tables of a run folder, and the agreement of runs by samples, group and weight."""

    folder: RunFolder
    rows: list[Row]

    def tables(self, *, long: bool = False) -> list[Table]:
        del long
        rows = [
            (row["samples"], "overall" if row["w"] is None else f"{row['w']:g}", row["correlation"], row["importances"])
            for row in self.rows
            if row["group"] == "all"
        ]
        head = ("samples", "w", "correlation of runs", "importances")
        return [Table(head, cast("tuple[tuple[Cell, ...], ...]", tuple(rows)), decimals=4)]

    def figures(self) -> Iterator[Figure]:
        """Yield the agreement by weight."""
        from whyscore.report.figures import boost as figure  # noqa: PLC0415 - an extra

        rows = self.folder.read("stability")
        yield "stability", figure.stability(rows), "Agreement of boosted scores between repeated runs"


@takes(StabilitySettings)
def bmx_stability(
    data: Dataset,
    metric: MetricLike,
    *,
    output: str | Path,
    settings: StabilitySettings,
    resources: Resources = LOCAL,
) -> StabilityRun:
    """Return how well repeated runs of LIME agree, by the weight of the original score, written to a folder."""
    part, search = thin(data, settings.group, settings.every), settings.search
    folder, groups = RunFolder.make(output, "bmx-stability"), groups_of(part, settings.group)
    rows: list[Row] = []
    for count in settings.samples:
        found = [
            explain_in(
                folder, part, metric, f"lime(samples={count})", seed=settings.seed + run, resources=resources
            ).material
            for run in range(settings.runs)
        ]
        raw = importance_stability([one.bags for one in found])
        agreed = stability(found, groups, search.family, search.parameters, search.weights)
        rows += [{"samples": count, **row._asdict(), "importances": raw} for row in agreed]
    folder.write("stability", rows, runs=settings.runs, every=settings.every)
    return StabilityRun(folder, rows)


def thin(data: Dataset, group: str | None, every: int) -> Dataset:
    """Return every N-th entry of each group."""
    seen: dict[str, int] = {}
    kept = []
    for entry, name in zip(data.entries, groups_of(data, group), strict=True):
        number = seen[name] = seen.get(name, -1) + 1
        if number % every == 0:
            kept.append(entry)
    return Dataset(data.name, tuple(kept), data.languages)


class Stability(NamedTuple):
    """The agreement of runs at one weight; `w` is None for the mean over all weights."""

    group: str
    w: float | None
    correlation: float


def stability(
    runs: Sequence[Material], groups: Sequence[str], family: Family, parameters: FloatVector, weights: FloatVector
) -> list[Stability]:
    """Return the agreement of repeated runs by weight, for each group and for all of them together."""
    tables = [columns_of(run, family, parameters).values for run in runs]
    names = list(dict.fromkeys(groups))
    held = np.array(groups)
    rows: list[Stability] = []
    for name in names:
        members = np.flatnonzero(held == name)
        by_weight = _by_weight(tables, runs[0].scores, members, weights)
        rows += [Stability(name, w, value) for w, value in zip(weights.tolist(), by_weight.tolist(), strict=True)]
    everything = [
        Stability("all", w, float(np.mean([row.correlation for row in rows if row.w == w]))) for w in weights.tolist()
    ]
    overall = Stability("all", None, float(np.mean([row.correlation for row in everything])))
    return [*rows, *everything, overall]


def _by_weight(
    tables: Sequence[FloatMatrix], scores: FloatVector, members: Numbers, weights: FloatVector
) -> FloatVector:
    """Return the mean correlation between runs for each weight, over all parameters."""
    found = []
    for weight in weights.tolist():
        mixed = [weight * scores[members] + (1 - weight) * table[:, members] for table in tables]
        pairs = [float(np.nanmean(pearson(one, other))) for one, other in combinations(mixed, 2)]
        found.append(float(np.mean(pairs)))
    return np.array(found)


def importance_stability(runs: Sequence[Bags]) -> float:
    """Return the mean correlation of the raw importances of a segment between runs; constant ones are left out."""
    found = [value for one, other in combinations(runs, 2) for value in _within(one, other)]
    return float(np.mean(found)) if found else float("nan")


def _within(one: Bags, other: Bags) -> Iterator[float]:
    for k in range(len(one)):
        value = float(pearson(one.of_segment(k), other.of_segment(k))) if one.lengths[k] > 1 else float("nan")
        if not np.isnan(value):
            yield value
