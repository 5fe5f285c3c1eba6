"""Which errors does a metric notice? A check-list of perturbations for any metric.

1. Put one error of each kind into each hypothesis (`whyscore.analysis.train.perturbations`), where it applies.
2. Score hypotheses and perturbed hypotheses in one call per metric.
3. A metric notices an error where the perturbed text scores strictly worse: the share of texts, with an interval by the
   bootstrap over texts. The mean drop is given in standard deviations of the metric's scores of the hypotheses, so that
   metrics of different scales can be compared.

A share says nothing about false alarms: a metric that dislikes every change notices everything. Read it beside the
drop, and beside how the metric treats paraphrases.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from whyscore.analysis.common import MetricLike, requested_name
from whyscore.analysis.score import score
from whyscore.analysis.train import Perturber, check_kinds
from whyscore.cli.options import Command, InputSettings, LimitSettings, MetricSettings, OutputSettings
from whyscore.cli.output import emit_result
from whyscore.cli.setup import load_dataset, requested_metrics, take_first
from whyscore.errors import DataError
from whyscore.scoring.store import digest
from whyscore.settings import Bootstrapped, Seeded, option, takes
from whyscore.stats.words import mean_estimates
from whyscore.text.randomness import generator
from whyscore.types import HYPOTHESIS, Dataset, Entry, Segment
from whyscore.types.result import Cell, Record, Result, Table


@dataclass(frozen=True, kw_only=True)
class PerturbationSettings(Seeded, Bootstrapped):
    """Which errors are put in."""

    kinds: tuple[str, ...] = option((), "kinds of perturbation (default: all)", metavar="KIND", basic=True)


class Noticed(NamedTuple):
    """How one metric takes one kind of error."""

    kind: str
    metric: str
    n: int
    noticed: float
    low: float | None
    high: float | None
    drop: float


@dataclass(frozen=True, repr=False)
class PerturbationResult(Result):
    """How often metrics notice errors that were put in."""

    rows: tuple[Noticed, ...]
    kind: ClassVar[str] = "perturbations"

    def records(self) -> Iterator[Record]:
        return (row._asdict() for row in self.rows)

    def display_tables(self) -> list[Table]:
        metrics = list(dict.fromkeys(row.metric for row in self.rows))
        cells = {(row.kind, row.metric): row for row in self.rows}
        rows: list[tuple[Cell, ...]] = []
        for kind in dict.fromkeys(row.kind for row in self.rows):
            metric_cells = [cells[kind, metric] for metric in metrics]
            rows.append(
                (kind, metric_cells[0].n, *(value for cell in metric_cells for value in (cell.noticed, cell.drop)))
            )
        columns = ("error", "n", *(column for metric in metrics for column in (metric, f"{metric} drop")))
        note = "share of texts that score worse with the error; drop: mean loss in standard deviations of the scores"
        return [Table(columns, tuple(rows), best=frozenset(), notes=(note,))]


@takes(PerturbationSettings)
def perturbations(
    dataset: Dataset, metrics: Sequence[MetricLike], *, settings: PerturbationSettings
) -> PerturbationResult:
    """Return how often each metric notices each kind of error.

    Args:
        dataset: Hypotheses to put errors into, with what the metrics read.
        metrics: Specs, metrics or functions.
        settings: Kinds of errors, seed, bootstrap samples.
    """
    kinds = check_kinds(settings.kinds)
    whole = sorted({segment for segment in dataset.segments if segment.hypothesis.split()}, key=digest)
    if not whole:
        raise DataError("there is no hypothesis to put errors into")
    sources = [segment.source or "" for segment in whole]
    perturber = Perturber(sources, [segment.hypothesis for segment in whole])
    changed: list[Segment] = []
    owners: dict[str, list[tuple[int, int]]] = {kind: [] for kind in kinds}
    for kind in kinds:
        for k, segment in enumerate(whole):
            draw = generator(settings.seed, kind, segment.hypothesis)
            perturbed = perturber.perturb(sources[k], segment.hypothesis, (kind,), draw)
            if perturbed is not None and perturbed.text.split() != segment.hypothesis.split():
                owners[kind].append((k, len(changed)))
                changed.append(segment.with_text(HYPOTHESIS, perturbed.text))
    rows = []
    entries = tuple(Entry(str(k), "", segment) for k, segment in enumerate([*whole, *changed]))
    for metric in metrics:
        scored = score(Dataset(dataset.name, entries, dataset.languages), metric)
        values = scored.values if scored.higher_is_better else -scored.values
        before, after = values[: len(whole)], values[len(whole) :]
        deviation = float(before.std()) or 1.0
        for kind, places in owners.items():
            if places:
                losses = np.array([before[k] - after[number] for k, number in places])
                worse = (losses > 0).astype(np.float64)
                (share,) = mean_estimates(worse[None], draws=settings.draws, seed=settings.seed)
                rows.append(
                    Noticed(kind, requested_name(metric), len(places), share.value, share.low, share.high,
                            float(losses.mean()) / deviation)
                )  # fmt: skip
    return PerturbationResult(tuple(rows))


@dataclass(frozen=True, kw_only=True)
class PerturbationsCommand(OutputSettings, InputSettings, MetricSettings, LimitSettings, PerturbationSettings):
    """What `perturbations` takes."""


def run_perturbations(settings: PerturbationsCommand) -> int:
    """Write how often each metric notices each kind of error."""
    metrics = requested_metrics(settings) or ["chrf"]
    data = take_first(load_dataset(settings, metrics), settings.limit)
    emit_result(perturbations(data, metrics, settings=settings), settings)
    return 0


_EXAMPLES = """\
examples:
  whyscore experiment perturbations --sample -m chrf bleu
  whyscore experiment perturbations -s src.txt -r ref.txt -t sys.txt -m chrf qe --kinds number name negation
"""
EXPERIMENTS = {
    "perturbations": Command(
        "which errors a metric notices: a check-list",
        _EXAMPLES,
        PerturbationsCommand,
        run_perturbations,
        perturbations,
    )
}
