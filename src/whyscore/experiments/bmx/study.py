"""What the BMX experiments share: a run folder whose explanations survive a stop, and results that draw figures.

1. Entries are explained in pieces. Each piece is appended to a file of JSON lines when it is done, so that a run that
   was stopped goes on where it was; the last line, if torn, is cut off.
2. Tables are written before figures: figures can be drawn again from the tables alone.

What every p and w gains, with a calibration and controls for every explainer (BMX, section 4).

How much of a boosted score is chance: the same explanations with other random numbers (BMX, section 5.3).

1. Explain every segment `runs` times, with seeds seed, seed + 1 ...
2. For every p and every w below 1, correlate over segments the boosted scores of two runs; average over pairs of runs,
   over p and over groups.
3. Beside it the mean correlation of the raw importances within a segment, which the boosted scores hide: for w above 0
   both runs share the original score.
"""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple, cast

import numpy as np

from whyscore.aggregate import Bags, Family
from whyscore.analysis.calibrate import (
    AgreementSettings,
    Calibration,
    ChoosingSettings,
    Explained,
    JudgingSettings,
    Material,
    Search,
    Setting,
    calibrate_explained,
    columns_of,
    groups_of,
    human_of,
    judged_settings,
    material_from,
    sort_entries,
)
from whyscore.analysis.common import MetricLike, as_metric
from whyscore.analysis.explain import cost, explain
from whyscore.data.codec import Where, decode
from whyscore.data.writing import cut_torn_line, make_folder, write_lines
from whyscore.errors import DataError
from whyscore.explainers.masks.erasure import Random
from whyscore.metrics.boosted import Parts, gather_importances
from whyscore.protocols import Explainer, Metric
from whyscore.registry import build, spec_of
from whyscore.scoring.rows import orient
from whyscore.scoring.stack import LOCAL, Resources
from whyscore.scoring.store import digest
from whyscore.settings import Seeded, again, option, takes
from whyscore.stats.coefficients import pearson
from whyscore.text.files import finite, json_of, line, text_of
from whyscore.text.splitters import WhiteSpace
from whyscore.types import Dataset, Evidence, FloatMatrix, FloatVector, IntVector
from whyscore.types.result import Cell, Result, Table

if TYPE_CHECKING:
    from whyscore.report.figures import Chart


SCHEMA = "whyscore/1"
PIECE = 64
"""Entries that are explained at a time: what a stop can lose."""

Row = dict[str, object]
Figure = tuple[str, "Chart", str]
"""Name, chart and caption."""


@dataclass(frozen=True)
class RunFolder:
    """Where an experiment writes its tables."""

    path: Path
    name: str

    @classmethod
    def make(cls, path: str | Path, name: str) -> "RunFolder":
        """Return the folder, made if it is not there."""
        return cls(make_folder(path), name)

    def write(self, name: str, rows: Iterable[Mapping[str, object]], **about: object) -> Path:
        """Write a table as JSON lines, whole or not at all."""
        path = self.path / f"{name}.jsonl"
        head = {"schema": SCHEMA, "schema_version": 1, "kind": "experiment", "experiment": self.name, "table": name}
        write_lines(path, (line(cast("Row", finite(row))) for row in ({**head, **about}, *rows)))
        return path

    def head(self, name: str) -> Row:
        """Return the header of a table."""
        return self._rows(name)[0]

    def read(self, name: str) -> list[Row]:
        """Return the rows of a table, without its header."""
        return self._rows(name)[1:]

    def _rows(self, name: str) -> list[Row]:
        path = self.path / f"{name}.jsonl"
        rows = [json_of(text, path, number) for number, text in enumerate(lines_of(path), start=1)]
        if not rows or not all(isinstance(row, dict) for row in rows):
            raise DataError("expected a header and one object a line: make the table again", file=str(path))
        return cast("list[Row]", rows)


class Run(Result):
    """What an experiment found, with the folder that holds its tables; figures are drawn from these."""

    kind: ClassVar[str] = "experiment"
    folder: RunFolder

    def figures(self) -> Iterator[Figure]:
        """Yield every figure with its name and caption."""
        raise NotImplementedError

    def summary(self) -> Iterator[str]:
        """Yield what is to be said beside the tables."""
        yield from ()

    def document(self) -> object:
        return list(self.records())


@dataclass(frozen=True, slots=True)
class _Importances:
    """The score of an entry and the importances of all its words."""

    index: int
    score: float
    importance: list[float]


def explain_in(
    folder: RunFolder,
    data: Dataset,
    metric: MetricLike,
    explainer: str | Explainer,
    *,
    parts: Parts = "all",
    seed: int = 0,
    resources: Resources = LOCAL,
) -> Explained:
    """Return the entries explained, going on from what the folder holds."""
    scorer = as_metric(metric)
    explaining = cast("Explainer", build(explainer, "explainer") if isinstance(explainer, str) else explainer)
    path = folder.path / f"importances_{plain_name(spec_of(explaining))}_{seed}.jsonl"
    head = {
        "schema": SCHEMA,
        "kind": "importances",
        "metric": str(scorer.signature()),
        "explainer": spec_of(explaining),
        "parts": parts,
        "seed": seed,
        "entries": len(data),
        "data": _digest(data),
    }
    entries = _read_stored(path, head)
    with path.open("a", encoding="utf-8") as file:
        if not entries and path.stat().st_size == 0:
            file.write(line(head))
        for start in range(len(entries), len(data), PIECE):
            segments = data.segments[start : start + PIECE]
            explanations = explain(segments, scorer, explaining, seed=seed, resources=resources)
            if explanations.failures:
                reason = next(iter(explanations.failures.values()))
                raise DataError(
                    f"the study needs a score for every text, {len(explanations.failures)} have none: {reason}"
                )
            scores, bags = gather_importances(explanations, len(segments), parts)
            for k in range(len(segments)):
                entries.append(_Importances(start + k, float(scores[k]), bags.of_segment(k).tolist()))
                file.write(line(asdict(entries[-1])))
            file.flush()
    scores = orient(scorer).sign * np.array([entry.score for entry in entries])
    bags = Bags.of([np.array(entry.importance, dtype=np.float64) for entry in entries])
    material = material_from(data, scores, bags)
    noise = material.with_bags(random_bags(data, scorer, parts, seed))
    return Explained(data, scorer, spec_of(explaining), material, noise, parts=parts, seed=seed)


def explain_by_each(
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
        planned, start = cost(data, metric, explainer), time.perf_counter()
        explained = explain_in(folder, data, metric, explainer, seed=seed, resources=resources)
        seconds = round(time.perf_counter() - start, 3)
        yield explained, {"explainer": explained.explainer, "texts": planned.distinct, "seconds": seconds}


def random_bags(data: Dataset, metric: Metric, parts: Parts, seed: int) -> Bags:
    """Return random importances for the words that an explainer would explain."""
    splitter, bags = WhiteSpace(), []
    for segment in data.segments:
        places = segment.places(metric.inputs)
        places_used = [
            place
            for place in places
            if parts == "all" or place == places[0] or (parts == "first_reference" and place.reference == 0)
        ]
        words = [splitter.split(segment.text(place)) for place in places_used]
        bags.append(np.concatenate([Random().fit(Evidence.whole(tokens, 0.0, seed)).importance for tokens in words]))
    return Bags.of(bags)


def _digest(data: Dataset) -> str:
    """Return sixteen characters that name all texts."""
    digests = b"".join(digest(segment) for segment in data.segments)
    return blake2b(digests, digest_size=8).hexdigest()


def plain_name(spec: str) -> str:
    """Return a spec as part of a file's name."""
    return "".join(letter if letter.isalnum() else "_" for letter in spec).strip("_")


def _read_stored(path: Path, head: Mapping[str, object]) -> list[_Importances]:
    """Return what a stopped run left; a file of other work is refused."""
    if not path.exists():
        return []
    cut_torn_line(path)
    first, *lines = lines_of(path) or [""]
    if not first:
        return []
    if json_of(first, path, 1) != json.loads(line(head)):
        message = "holds other work (another metric, explainer or data): choose another folder with -o"
        raise DataError(message, file=str(path))
    entries: list[_Importances] = []
    for number, text in enumerate(lines, start=2):
        where = Where(str(path), number, cure="delete the file, and run the same command again")
        entry = decode(_Importances, text, where)
        # Two runs that filled the same folder at a time have written entries twice: the first counts.
        if entry.index == len(entries):
            entries.append(entry)
    return entries


def lines_of(path: str | Path) -> list[str]:
    """Return the lines of a file; only a newline ends one, as texts may hold other separators."""
    lines = text_of(path).split("\n")
    return lines[:-1] if lines[-1] == "" else lines


@dataclass(frozen=True, repr=False)
class GridRun(Run):
    """The tables of a run folder, and a calibration for each explainer."""

    folder: RunFolder
    calibrations: list[Calibration]

    def tables(self, *, long: bool = False) -> list[Table]:
        tables = [calibration.outcome_table() for calibration in self.calibrations]
        rows = tuple(row for table in tables for row in table.rows)
        return [Table(tables[0].columns, rows)] if long else tables

    def summary(self) -> Iterator[str]:
        """Yield what each calibration came to."""
        for calibration in self.calibrations:
            yield from (*calibration.notes, f"{calibration.explainer}: {calibration.verdict}")

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
    data, folder = sort_entries(data), RunFolder.make(output, "bmx-grid")
    calibrations: list[Calibration] = []
    grids: list[Row] = []
    ordered: list[Row] = []
    costs: list[Row] = []
    for explained, cost_row in explain_by_each(
        folder, data, metric, explainers, seed=settings.seed, resources=resources
    ):
        calibration = calibrate_explained(explained, settings)
        calibration.save(folder.path / f"calibration_{len(calibrations)}.json")
        calibrations.append(calibration)
        grids += grid_rows(explained, judged_settings(explained, settings)[0], settings.search)
        ordered += score_rows(explained, calibration, settings)
        costs.append(cost_row)
    folder.write("grid", grids, epsilon=settings.search.epsilon)
    folder.write("outcomes", [asdict(outcome) for calibration in calibrations for outcome in calibration.outcomes])
    folder.write("scores", ordered)
    folder.write("costs", costs)
    return GridRun(folder, calibrations)


def grid_rows(explained: Explained, settings: Sequence[Setting], search: Search) -> Iterator[Row]:
    """Yield the whole grid: what every p and w gains in every setting, and where the aggregate is degenerate."""
    columns = columns_of(explained.material, search.family, search.parameters)
    for setting in settings:
        agreement = setting.at(explained.material)
        gains = agreement.gains(columns, search.weights)
        shares = columns.degenerate_share(setting.rows)
        for i, p in enumerate(columns.parameters.tolist()):
            for j, w in enumerate(search.weights.tolist()):
                yield {
                    "explainer": explained.explainer,
                    "setting": setting.name,
                    "group": setting.group,
                    "p": p,
                    "w": w,
                    "original": agreement.before,
                    "correlation": agreement.before + float(gains[i, j]),
                    "gain": float(gains[i, j]),
                    "degenerate": float(shares[i]),
                }


def score_rows(explained: Explained, calibration: Calibration, how: JudgingSettings) -> Iterator[Row]:
    """Yield human, original and aggregated score of every judged entry, each with mean 0 and deviation 1 in its group.

    Ordered by the human score, they show what the aggregate adds.
    """
    parameter = calibration.p if calibration.boosted else 1.0
    family = build(calibration.aggregator, "aggregator")
    values = columns_of(explained.material, family, np.array([parameter])).values[0]
    groups = np.array(groups_of(explained.data, how.group))
    human = next(iter(human_of(explained.data, how.human).values()))
    for name in dict.fromkeys(groups.tolist()):
        rows = np.flatnonzero((groups == name) & ~np.isnan(human) & ~np.isnan(values))
        order = rows[np.argsort(human[rows], kind="stable")]
        parts = {"human": human, "original": explained.material.scores, "aggregate": values}
        for score, numbers in parts.items():
            for place, number in enumerate(_standard(numbers[order]).tolist()):
                yield {"explainer": explained.explainer, "group": name, "place": place, "score": score, "z": number}


def _standard(values: FloatVector) -> FloatVector:
    spread = float(values.std()) if len(values) else 0.0
    centred: FloatVector = values - values.mean()
    return centred / spread if spread > 0 else centred


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
    part, search = thin(sort_entries(data), settings.group, settings.every), settings.search
    folder, groups = RunFolder.make(output, "bmx-stability"), groups_of(part, settings.group)
    rows: list[Row] = []
    for count in settings.samples:
        runs = [
            explain_in(
                folder, part, metric, f"lime(samples={count})", seed=settings.seed + run, resources=resources
            ).material
            for run in range(settings.runs)
        ]
        raw = importance_stability([run.bags for run in runs])
        agreed = stability(runs, groups, search.family, search.parameters, search.weights)
        rows += [{"samples": count, **row._asdict(), "importances": raw} for row in agreed]
    folder.write("stability", rows, runs=settings.runs, every=settings.every)
    return StabilityRun(folder, rows)


def thin(data: Dataset, group: str | None, every: int) -> Dataset:
    """Return every N-th entry of each group."""
    seen: dict[str, int] = {}
    entries = []
    for entry, name in zip(data.entries, groups_of(data, group), strict=True):
        number = seen[name] = seen.get(name, -1) + 1
        if number % every == 0:
            entries.append(entry)
    return Dataset(data.name, tuple(entries), data.languages)


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
    labels = np.array(groups)
    rows: list[Stability] = []
    for name in names:
        members = np.flatnonzero(labels == name)
        by_weight = _by_weight(tables, runs[0].scores, members, weights)
        rows += [Stability(name, w, value) for w, value in zip(weights.tolist(), by_weight.tolist(), strict=True)]
    everything = [
        Stability("all", w, float(np.mean([row.correlation for row in rows if row.w == w]))) for w in weights.tolist()
    ]
    overall = Stability("all", None, float(np.mean([row.correlation for row in everything])))
    return [*rows, *everything, overall]


def _by_weight(
    tables: Sequence[FloatMatrix], scores: FloatVector, members: IntVector, weights: FloatVector
) -> FloatVector:
    """Return the mean correlation between runs for each weight, over all parameters."""
    means = []
    for weight in weights.tolist():
        mixed = [weight * scores[members] + (1 - weight) * table[:, members] for table in tables]
        pairs = [float(np.nanmean(pearson(first, second))) for first, second in combinations(mixed, 2)]
        means.append(float(np.mean(pairs)))
    return np.array(means)


def importance_stability(runs: Sequence[Bags]) -> float:
    """Return the mean correlation of the raw importances of a segment between runs; constant ones are left out."""
    correlations = [value for first, second in combinations(runs, 2) for value in _within(first, second)]
    return float(np.mean(correlations)) if correlations else float("nan")


def _within(first: Bags, second: Bags) -> Iterator[float]:
    for k in range(len(first)):
        value = float(pearson(first.of_segment(k), second.of_segment(k))) if first.lengths[k] > 1 else float("nan")
        if not np.isnan(value):
            yield value
