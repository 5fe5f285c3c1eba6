"""The experiments of the BMX paper, whole: explain, try every p and w, judge, and write the tables of a run folder.

| name | what it shows |
|---|---|
| `bmx-grid` | what every p and w gains, with a calibration and controls for every explainer |
| `bmx-summeval` | what every rule does on the eight splits of SummEval, beside the controls |
| `bmx-stability` | how much of a boosted score is chance: repeated runs of LIME |
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from whyscore.analysis.calibrate.calibrate import Judging
from whyscore.analysis.calibrate.file import Calibration
from whyscore.analysis.calibrate.material import Explained, groups_of
from whyscore.analysis.calibrate.rules import RULES, WEIGHTS, Rule
from whyscore.analysis.calibrate.settings import Options, options_of
from whyscore.analysis.common import MetricLike
from whyscore.analysis.explain import cost
from whyscore.errors import SpecError
from whyscore.experiments.bmx.stability import importance_stability, stability
from whyscore.experiments.bmx.study import Row, RunFolder, calibration_of, explained_in, grid_rows, score_rows
from whyscore.experiments.bmx.summeval import Criterion, Split, Summary, splits, summaries
from whyscore.scoring.stack import LOCAL, Resources
from whyscore.types import Dataset

GRID, SUMMEVAL, STABILITY = "bmx-grid", "bmx-summeval", "bmx-stability"
SAMPLES = (100, 1000)
"""Of LIME, as in the paper."""
RUNS = 3
_LEAST_RUNS = 2


class GridRun(NamedTuple):
    """The tables of a run folder, and a calibration for each explainer."""

    folder: RunFolder
    calibrations: list[Calibration]


class SummevalRun(NamedTuple):
    """The tables of a run folder, and the means over splits and aspects."""

    folder: RunFolder
    means: list[Summary]


class StabilityRun(NamedTuple):
    """The tables of a run folder, and the agreement of runs by samples, group and weight."""

    folder: RunFolder
    rows: list[Row]


def bmx_grid(
    data: Dataset,
    metric: MetricLike,
    explainers: Sequence[str] = ("erasure",),
    *,
    output: str | Path,
    human: str | Sequence[str],
    group: str | None = None,
    level: str = "global",
    coefficients: Sequence[str] = ("pearson",),
    options: Options | None = None,
    judging: Judging = Judging(),  # noqa: B008 - a value
    seed: int = 0,
    resources: Resources = LOCAL,
) -> GridRun:
    """Return what every p and w gains: the whole grid, outcomes, scores and costs, written to a folder."""
    names = [human] if isinstance(human, str) else list(human)
    folder, chosen = RunFolder.make(output, GRID), options or standard_options()
    calibrations: list[Calibration] = []
    grids: list[Row] = []
    ordered: list[Row] = []
    spent: list[Row] = []
    for found, cost_row in _all_explained(folder, data, metric, explainers, seed=seed, resources=resources):
        judged = calibration_of(
            found, chosen, human=names, group=group, level=level, coefficients=coefficients, judging=judging
        )
        judged.save(folder.path / f"calibration_{len(calibrations)}.json")
        calibrations.append(judged)
        grids += grid_rows(found, chosen, human=names, group=group, level=level, coefficients=coefficients)
        ordered += score_rows(found, judged, human=names[0], group=group)
        spent.append(cost_row)
    folder.write("grid", grids, epsilon=chosen.epsilon)
    folder.write("outcomes", [asdict(one) for judged in calibrations for one in judged.outcomes])
    folder.write("scores", ordered)
    folder.write("costs", spent)
    return GridRun(folder, calibrations)


def bmx_summeval(
    data: Dataset,
    metric: MetricLike,
    explainers: Sequence[str] = ("erasure",),
    *,
    output: str | Path,
    rules: Sequence[Rule] = RULES,
    criterion: Criterion = "both",
    options: Options | None = None,
    resamples: int = 999,
    seed: int = 0,
    resources: Resources = LOCAL,
) -> SummevalRun:
    """Return what every explainer and rule did on every split of `read_summeval`, written to a folder."""
    folder, chosen = RunFolder.make(output, SUMMEVAL), options or standard_options()
    rows: list[Split] = []
    spent: list[Row] = []
    for found, cost_row in _all_explained(folder, data, metric, explainers, seed=seed, resources=resources):
        spent.append(cost_row)
        rows += splits(found, chosen, rules=rules, criterion=criterion, resamples=resamples, seed=seed)
    unique = list(dict.fromkeys(rows))  # the length control is the same for every explainer
    means = summaries(unique)
    folder.write("splits", [row._asdict() for row in unique], criterion=criterion)
    folder.write("summary", [row._asdict() for row in means])
    folder.write("costs", spent)
    return SummevalRun(folder, means)


def bmx_stability(
    data: Dataset,
    metric: MetricLike,
    *,
    output: str | Path,
    group: str | None = None,
    samples: Sequence[int] = SAMPLES,
    runs: int = RUNS,
    every: int = 1,
    options: Options | None = None,
    seed: int = 0,
    resources: Resources = LOCAL,
) -> StabilityRun:
    """Return how well repeated runs of LIME agree, by the weight of the original score, written to a folder."""
    part = thinned(data, group, runs=runs, every=every)
    folder, chosen = RunFolder.make(output, STABILITY), options or standard_options()
    groups = groups_of(part, group)
    rows: list[Row] = []
    for count in samples:
        found = [
            explained_in(folder, part, metric, f"lime(samples={count})", seed=seed + run, resources=resources).material
            for run in range(runs)
        ]
        raw = importance_stability([one.bags for one in found])
        agreed = stability(found, groups, chosen.family, chosen.parameters, chosen.weights)
        rows += [{"samples": count, **row._asdict(), "importances": raw} for row in agreed]
    folder.write("stability", rows, runs=runs, every=every)
    return StabilityRun(folder, rows)


def thinned(data: Dataset, group: str | None, *, runs: int = RUNS, every: int = 1) -> Dataset:
    """Return every N-th entry of each group, which is what `bmx-stability` explains."""
    if runs < _LEAST_RUNS or every < 1:
        raise SpecError(f"runs is {runs} and every {every}: expected at least {_LEAST_RUNS} runs, and 1")
    seen: dict[str, int] = {}
    kept = []
    for entry, name in zip(data.entries, groups_of(data, group), strict=True):
        number = seen[name] = seen.get(name, -1) + 1
        if number % every == 0:
            kept.append(entry)
    return Dataset(data.name, tuple(kept), data.languages)


def standard_options() -> Options:
    """Return what is tried where nothing else is asked for."""
    return options_of(
        "default", rule=None, epsilon=None, grid=None, weights=WEIGHTS, scale="raw", aggregator="power_mean"
    )


def _all_explained(
    folder: RunFolder,
    data: Dataset,
    metric: MetricLike,
    explainers: Sequence[str],
    *,
    seed: int,
    resources: Resources,
) -> Iterator[tuple[Explained, Row]]:
    """Yield the data explained by each explainer, with what that cost."""
    for explainer in explainers:
        asked, start = cost(data, metric, explainer), time.perf_counter()
        found = explained_in(folder, data, metric, explainer, seed=seed, resources=resources)
        seconds = round(time.perf_counter() - start, 3)
        yield found, {"explainer": found.explainer, "texts": asked.distinct, "seconds": seconds}
