"""Which segments should people rate? Those that tell systems apart, chosen before anybody rated them.

A method gives every segment (with the outputs of all systems) a number, and the segments with the highest are chosen
(Zouhar, Cui and Sachan 2025, arXiv 2501.18251):

1. `random`: chance, fixed by the seed and the segment.
2. `diversity`: minus the mean similarity of every two systems' outputs, by BLEU or another metric of two texts.
3. `variance`: the variance over the systems of a metric's scores.
4. `disagreement`: how much metrics contradict each other: the variance over metrics of their standardised scores, the
   mean over the systems.

All pairs of outputs are one score call, and so are the segments under each metric. Equal values are ordered by chance.

The simulation asks what each method buys on data that have ratings. On the chosen segments alone it measures

- the rank correlation (Spearman) of the systems' mean human scores with those of all segments;
- the share of pairs of systems that differ significantly (sign flips, one-sided, p < .05);
- the number of clusters: every system above a border beats every one below it.

Chance is drawn several times, with the range of 95 % of the draws. Human scores play no part in the choice.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, Literal, NamedTuple, get_args

import numpy as np

from whyscore.analysis.common import MetricLike, requested_name
from whyscore.analysis.metaeval.scores import score_by_language
from whyscore.errors import DataError, SpecError
from whyscore.scoring.stack import LOCAL, Resources
from whyscore.settings import Seeded, option, takes
from whyscore.stats.agreement import preference
from whyscore.stats.correlation import correlate
from whyscore.stats.matrices import is_human
from whyscore.stats.resampling import percentiles
from whyscore.text.randomness import generator
from whyscore.types import Dataset, Entry, FloatMatrix, FloatVector, Segment
from whyscore.types.result import Record, Result, Table

Method = Literal["random", "diversity", "disagreement", "variance"]
METHODS: tuple[Method, ...] = get_args(Method)
_ALPHA, _FLIPS, _LEVEL = 0.05, 1000, 0.95


SCORING = ("variance", "disagreement")
"""Methods that read the scores of metrics."""


@dataclass(frozen=True, kw_only=True)
class SelectSettings(Seeded):
    """How segments are chosen."""

    count: int = option(100, "how many segments to choose", flags=("-n", "--count"), least=1, metavar="N", basic=True)
    method: Method = option(
        "diversity", "random; diversity: different outputs; disagreement of metrics; variance of a metric", basic=True
    )
    similarity: str = option(
        "bleu(effective_order=True)", "metric that compares two outputs, for diversity", metavar="SPEC"
    )
    repeats: int = option(20, "draws of the method random in a simulation", least=1, metavar="N")


@dataclass(frozen=True, eq=False, repr=False)
class Selection(Result):
    """The chosen segments, the most informative first."""

    name: str
    method: str
    total: int
    segments: tuple[tuple[Entry, float], ...]
    """The entry of the first system, and the number it was chosen by."""
    kind: ClassVar[str] = "selection"

    def header(self) -> Record:
        return {"data": self.name, "method": self.method, "segments": self.total, "chosen": len(self.segments)}

    def records(self) -> Iterator[Record]:
        for rank, (entry, value) in enumerate(self.segments, start=1):
            facts = {"rank": rank, "id": entry.id, "value": value, "document": entry.document}
            yield facts | {"source": entry.segment.source}

    def lead(self) -> Sequence[str]:
        return (f"{len(self.segments)} of {self.total} segments of {self.name}, by {self.method}",)


class Bought(NamedTuple):
    """What a method buys with so many segments."""

    method: str
    segments: int
    correlation: float
    low: float | None
    high: float | None
    clusters: float
    pairs: float
    """The share of pairs of systems that differ significantly."""


@dataclass(frozen=True, eq=False, repr=False)
class Simulation(Result):
    """What each method would have bought on data that have ratings."""

    name: str
    human: str
    systems: int
    total: int
    all_clusters: int
    all_pairs: float
    """With all segments: clusters, and the share of pairs that differ significantly."""
    rows: tuple[Bought, ...]
    kind: ClassVar[str] = "simulation"

    def header(self) -> Record:
        facts = {"data": self.name, "human": self.human, "systems": self.systems, "segments": self.total}
        return facts | {"clusters_of_all": self.all_clusters, "pairs_of_all": self.all_pairs}

    def records(self) -> Iterator[Record]:
        return (row._asdict() for row in self.rows)

    def display_tables(self) -> list[Table]:
        columns = ("method", "segments", "correlation", "low", "high", "clusters", "significant pairs")
        note = (
            f"system ranking by {self.human} on the chosen segments: Spearman correlation with the ranking on all "
            f"{self.total} segments; clusters of {self.systems} systems, and share of pairs, that differ significantly "
            f"(all segments: {self.all_clusters} and {self.all_pairs:.2f}); random: mean and 95 % range of the draws"
        )
        return [Table(columns, tuple(tuple(row) for row in self.rows), best=frozenset(), notes=(note,))]


def selection_values(
    dataset: Dataset,
    method: Method,
    scores: Mapping[str, FloatVector],
    *,
    similarity: MetricLike,
    seed: int = 0,
    resources: Resources = LOCAL,
) -> FloatVector:
    """Return one number per segment, in the order of `dataset.ids`: the highest are chosen first."""
    if method == "random":
        return np.array([generator(seed, "select", name).random() for name in dataset.ids])
    if method == "diversity":
        return _diversity(dataset, similarity, resources)
    needed = 1 if method == "variance" else 2
    if len(scores) < needed:
        raise SpecError(f"{method} needs {'a metric' if needed == 1 else 'two metrics or more'}: name with -m")
    # Whatever is added up is sorted first: systems and segments in any order give the same digits.
    matrices = [_standard(dataset.matrix(values)) for values in scores.values()]
    if method == "variance":
        spread: FloatVector = np.mean([np.nanvar(np.sort(matrix, axis=0), axis=0) for matrix in matrices], axis=0)
        return spread
    # Rows of all metrics on one scale: what is left are their differences about an output.
    disagreement: FloatVector = np.nanmean(np.sort(np.var(matrices, axis=0), axis=0), axis=0)
    return disagreement


def _standard(matrix: FloatMatrix) -> FloatMatrix:
    values = np.sort(matrix, axis=None)
    return (matrix - np.nanmean(values)) / (float(np.nanstd(values)) or 1.0)


def _diversity(dataset: Dataset, similarity: MetricLike, resources: Resources) -> FloatVector:
    """Return minus the mean similarity of the outputs of every two systems."""
    outputs: dict[str, list[str]] = {name: [] for name in dataset.ids}
    for entry in dataset.entries:
        outputs[entry.id].append(entry.segment.hypothesis)
    pairs = [
        (name, Segment(a, references=(b,)))
        for name, output in outputs.items()
        for a, b in combinations(sorted(output), 2)
    ]
    entries = tuple(Entry(str(k), "pair", segment) for k, (_, segment) in enumerate(pairs))
    values = score_by_language(Dataset("pairs", entries, dataset.languages), similarity, resources)
    place = {name: k for k, name in enumerate(dataset.ids)}
    owners = np.array([place[name] for name, _ in pairs])
    counts = np.bincount(owners, minlength=len(place))
    diversity: FloatVector = -np.bincount(owners, values, len(place)) / np.maximum(counts, 1)
    return diversity


def _order(values: FloatVector, ids: Sequence[str], seed: int) -> list[int]:
    """Return the segments, the highest value first; equal values by chance, unknown ones last."""
    chance = [generator(seed, "tie", name).random() for name in ids]
    keys = np.array([chance, -np.nan_to_num(values, nan=-np.inf)])
    return [int(k) for k in np.lexsort(keys)]


def without_references(dataset: Dataset) -> Dataset:
    """Return the outputs of systems alone; all where there are only human references."""
    outputs = tuple(entry for entry in dataset.entries if not is_human(entry.system))
    return Dataset(dataset.name, outputs or dataset.entries, dataset.languages)


@takes(SelectSettings)
def select(
    dataset: Dataset, metrics: Sequence[MetricLike] = (), *, settings: SelectSettings, resources: Resources = LOCAL
) -> Selection:
    """Return the segments that people should rate.

    Args:
        dataset: the outputs of two systems or more; human references among them play no part.
        metrics: for the methods variance and disagreement.
        settings: how many, and by which method.
        resources: store, executor and progress.
    """
    data = without_references(dataset)
    if settings.method != "random":
        _check_systems(data)
    if settings.count > len(data.ids):
        raise DataError(f"{settings.count} segments were requested, {data.name} has {len(data.ids)}: ask for fewer")
    used = metrics if settings.method in SCORING else ()
    scores = {requested_name(metric): score_by_language(data, metric, resources) for metric in used}
    values = selection_values(
        *(data, settings.method, scores), similarity=settings.similarity, seed=settings.seed, resources=resources
    )
    first = {entry.id: entry for entry in reversed(data.entries)}
    order = _order(values, data.ids, settings.seed)[: settings.count]
    return Selection(
        *(data.name, settings.method, len(data.ids)), tuple((first[data.ids[k]], float(values[k])) for k in order)
    )


def _check_systems(data: Dataset) -> None:
    if len(data.systems) < 2:  # noqa: PLR2004 - systems are told apart
        raise DataError(f"{data.name} has one system: only the method random can choose its segments")


@takes(SelectSettings)
def simulate_selection(
    dataset: Dataset,
    metrics: Sequence[MetricLike] = (),
    *,
    human: str,
    settings: SelectSettings,
    resources: Resources = LOCAL,
) -> Simulation:
    """Return what each method buys with a quarter, half, all and twice the requested number of segments.

    Args:
        dataset: outputs of several systems with a human score; segments that a system or a rater lacks are left out.
        metrics: for the methods variance and disagreement, which are left out without them.
        human: the name of the human score, higher is better.
        settings: how many segments, and how often chance is drawn.
        resources: store, executor and progress.
    """
    data = without_references(dataset)
    _check_systems(data)
    rated = data.matrix(data.human(human))
    rated_ids = {data.ids[k] for k in np.flatnonzero(~np.isnan(rated).any(axis=0))}
    data = Dataset(data.name, tuple(entry for entry in data.entries if entry.id in rated_ids), data.languages)
    if len(rated_ids) < settings.count:
        raise DataError(
            f"{data.name} has {len(rated_ids)} segments that are rated for all systems, fewer than {settings.count}"
        )
    rated = data.matrix(data.human(human))
    scores = {requested_name(metric): score_by_language(data, metric, resources) for metric in metrics}
    possible = [m for m in METHODS if m in ("random", "diversity") or len(scores) >= 1 + (m == "disagreement")]

    def order(method: Method, seed: int) -> list[int]:
        arguments, similarity = (data, method, scores), settings.similarity
        values = selection_values(*arguments, similarity=similarity, seed=seed, resources=resources)
        return _order(values, data.ids, seed)

    repeats = {method: settings.repeats if method == "random" else 1 for method in possible}
    orders = {method: [order(method, settings.seed + k) for k in range(times)] for method, times in repeats.items()}
    steps = (settings.count // 4, settings.count // 2, settings.count, 2 * settings.count)
    counts = sorted({n for n in steps if 2 <= n <= len(rated_ids)})  # noqa: PLR2004 - fewer tell nothing
    rows = [_simulate(method, n, rated, method_orders) for n in counts for method, method_orders in orders.items()]
    return Simulation(data.name, human, len(data.systems), len(rated_ids), *_count_clusters(rated), tuple(rows))


def _simulate(method: str, count: int, rated: FloatMatrix, orders: Sequence[Sequence[int]]) -> Bought:
    whole = rated.mean(axis=1)[:, None]
    parts = [rated[:, list(order[:count])] for order in orders]
    correlations = np.array([correlate(p.mean(axis=1)[:, None], whole, "system", "spearman").value for p in parts])
    separation = np.array([_count_clusters(part) for part in parts], dtype=np.float64).mean(axis=0)
    clusters, pairs = separation.tolist()
    low, high = percentiles(correlations, _LEVEL).tolist() if len(parts) > 1 else (None, None)
    return Bought(method, count, float(correlations.mean()), low, high, clusters, pairs)


def _count_clusters(rated: FloatMatrix) -> tuple[int, float]:
    """Return how many clusters of systems differ significantly, and the share of pairs that do."""
    p = preference(rated[np.argsort(-rated.mean(axis=1), kind="stable")], n=_FLIPS)
    clusters = 1 + sum(bool((p[:k, k:] < _ALPHA).all()) for k in range(1, len(p)))
    return clusters, float((p[np.triu_indices(len(p), 1)] < _ALPHA).mean())
