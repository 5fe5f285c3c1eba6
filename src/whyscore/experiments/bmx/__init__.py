"""The experiments of BMX (Leiter, Nguyen and Eger 2022): transfer, the grid, SummEval, stability."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import ClassVar

from whyscore.analysis.calibrate import JudgingSettings, join_datasets, sort_entries
from whyscore.analysis.explain import ExplainersSettings, cost
from whyscore.cli.options import Command, FolderSettings, InputSettings, MetricSettings, RunningSettings
from whyscore.cli.output import emit_result, tell
from whyscore.cli.setup import (
    check_names,
    load_dataset,
    load_judged,
    only_metric,
    print_lines,
    requested_metrics,
    working,
)
from whyscore.data.reading import read
from whyscore.errors import MissingExtra, UserError
from whyscore.experiments.bmx.study import Run, StabilitySettings, bmx_grid, bmx_stability, thin
from whyscore.experiments.bmx.summeval import SPLIT, SummevalSettings, bmx_summeval, read_summeval, with_splits
from whyscore.experiments.bmx.transfer import MEASURES, TransferSettings, bmx, kind_of, spread
from whyscore.scoring.stack import Resources
from whyscore.settings import again, option
from whyscore.types import Dataset


@dataclass(frozen=True, kw_only=True)
class BmxCommand(RunningSettings, FolderSettings, MetricSettings):
    """What all three take."""

    TITLE: ClassVar[str] = "output"

    no_figures: bool = option(False, "write the tables alone", basic=True)


@dataclass(frozen=True, kw_only=True)
class ExplainerSettings:
    """Whose explanations are aggregated."""

    explainers: tuple[str, ...] = again(ExplainersSettings, "explainers", help="one or more (default: erasure)")


@dataclass(frozen=True, kw_only=True)
class GridCommand(BmxCommand, ExplainerSettings, JudgingSettings, InputSettings):
    """What `bmx-grid` takes."""


@dataclass(frozen=True, kw_only=True)
class SummevalCommand(BmxCommand, ExplainerSettings, SummevalSettings):
    """What `bmx-summeval` takes."""

    TITLE: ClassVar[str] = "input"

    annotations: str | None = option(
        None, "SummEval's model_annotations.aligned.jsonl, or --scores and --texts", metavar="FILE", basic=True
    )
    scores: str | None = option(None, "ratings and splits (CSV)", metavar="FILE", basic=True)
    texts: str | None = option(None, "references and summaries (JSON lines)", metavar="FILE", basic=True)
    limit: int | None = option(None, "only the first N documents of each split", metavar="N", least=1)


@dataclass(frozen=True, kw_only=True)
class StabilityCommand(BmxCommand, StabilitySettings, InputSettings):
    """What `bmx-stability` takes."""


@dataclass(frozen=True, kw_only=True)
class TransferCommand(BmxCommand, ExplainerSettings, TransferSettings):
    """What `bmx` takes."""

    TITLE: ClassVar[str] = "input"

    calibrate: tuple[str, ...] = option((), "data sets that p and w are chosen on", metavar="FILE", basic=True)
    evaluate: tuple[str, ...] = option((), "data sets that the choice is judged on", metavar="FILE", basic=True)
    limit: int | None = option(
        None, "at most N segments of each language pair, spread evenly: for a quick look", metavar="N", least=1
    )


def run_transfer(settings: TransferCommand) -> int:
    """Write original beside boosted for every metric and explainer, with p and w from other data sets."""
    metrics = requested_metrics(settings)
    check_names(metrics, settings.explainers)
    sets = [[_load(file, settings) for file in files] for files in (settings.calibrate, settings.evaluate)]
    plans = product((data for group in sets for data in group), metrics, settings.explainers)
    named = [(f"{data.name}, {metric}, {explainer}", data, metric, explainer) for data, metric, explainer in plans]

    def work(output: str, resources: Resources) -> Run:
        return bmx(*sets, metrics, settings.explainers, output=output, settings=settings, resources=resources)

    return _run(settings, named, work)


def _load(file: str, settings: TransferCommand) -> Dataset:
    """Return a data set, named so that the paper's measures for it are found.

    A folder with `scores.csv` and `texts.jsonl` is SummEval in two files.
    """
    two = [Path(file) / name for name in ("scores.csv", "texts.jsonl")]
    if all(path.is_file() for path in two):
        data = read_summeval(*two)
    else:
        there = {name for entry in read(file).entries for name in (*entry.human, *entry.extra)}
        names = dict.fromkeys(name.rpartition(":")[2] for name in settings.human or ())
        human = tuple(name for name in names if name in there)
        data = load_dataset(InputSettings(data=(file,), human=human, quiet=settings.quiet, verbose=settings.verbose))
    return replace(spread(data, settings.limit, settings.group), name=short_name(file))


def short_name(file: str) -> str:
    """Return the end of a path that tells which data set it is, without suffixes.

    >>> short_name("data/eval4nlp2021/dev/et-en"), short_name("wmt17/wmt17_to_en.jsonl.gz"), short_name("my/a.tsv")
    ('eval4nlp2021/dev/et-en', 'wmt17_to_en', 'a')
    """
    path = Path(file)
    parts = [*path.parts[:-1], path.name.split(".")[0] if path.suffix else path.name]
    for start in reversed(range(len(parts))):
        if kind_of("/".join(parts[start:])) in MEASURES:
            return "/".join(parts[start:])
    return parts[-1]


def run_grid(settings: GridCommand) -> int:
    """Write the whole grid, the calibrations and the figures of every explainer."""
    metric, explainers = only_metric(settings), settings.explainers
    data = join_datasets(load_judged(settings, metric, explainers))

    def work(output: str, resources: Resources) -> Run:
        return bmx_grid(data, metric, explainers, output=output, settings=settings, resources=resources)

    return _run(settings, _plans(data, metric, explainers), work)


def run_summeval(settings: SummevalCommand) -> int:
    """Write what every source and rule did on every split, and the means."""
    metric, explainers = only_metric(settings), settings.explainers
    check_names([metric], explainers)
    data = first_documents(sort_entries(_summeval(settings)), settings.limit)

    def work(output: str, resources: Resources) -> Run:
        return bmx_summeval(data, metric, explainers, output=output, settings=settings, resources=resources)

    return _run(settings, _plans(data, metric, explainers), work)


def _summeval(settings: SummevalCommand) -> Dataset:
    if settings.annotations:
        return with_splits(read(settings.annotations))
    if not (settings.scores and settings.texts):
        raise UserError("no SummEval: name its file with --annotations, or two files with --scores and --texts")
    return read_summeval(settings.scores, settings.texts)


def run_stability(settings: StabilityCommand) -> int:
    """Write how well repeated runs of LIME agree, by the weight of the original score."""
    metric = only_metric(settings)
    data = load_dataset(settings, [metric])

    def work(output: str, resources: Resources) -> Run:
        return bmx_stability(data, metric, output=output, settings=settings, resources=resources)

    explainers = [f"lime(samples={count})" for count in settings.samples]
    return _run(settings, _plans(thin(data, settings.group, settings.every), metric, explainers), work)


Plan = tuple[str, Dataset, str, str]
"""What a dry run counts: a name, the data, a metric and an explainer."""


def _plans(data: Dataset, metric: str, explainers: Sequence[str]) -> list[Plan]:
    return [(f"{metric} {explainer}", data, metric, explainer) for explainer in explainers]


def _run(settings: BmxCommand, plans: Sequence[Plan], work: Callable[[str, Resources], Run]) -> int:
    """Run an experiment, draw its figures and print its tables; or say how many texts each explainer would score."""
    if settings.dry_run:
        costs = [(name, cost(data, metric, explainer)) for name, data, metric, explainer in plans]
        return print_lines(f"{name}: {estimate.asked} texts, {estimate.distinct} distinct" for name, estimate in costs)
    if not settings.folder:
        raise UserError("no folder for the run: name one with -o, for example -o run/")
    with working(settings) as resources:
        run = work(settings.folder, resources)
    if not settings.no_figures:
        _draw(run, settings)
    emit_result(run, settings)
    for line in (*run.summary(), f"tables and figures are in {run.folder.path}"):
        tell(settings, line)
    return 0


def _draw(run: Run, settings: BmxCommand) -> None:
    """Draw the figures of a run from its tables; without the packages for that, say which are missing."""
    from whyscore.report.figures import save_chart  # noqa: PLC0415 - an extra

    try:
        for name, chart, caption in run.figures():
            save_chart(chart, run.folder.path / "figures", name, caption=caption)
    except MissingExtra as error:
        tell(settings, f"note: no figures: {error}")


def first_documents(data: Dataset, limit: int | None) -> Dataset:
    """Return the first documents of every split, for a quick look."""
    if limit is None:
        return data
    by_split: dict[object, dict[str, None]] = {}
    for entry in data.entries:
        documents = by_split.setdefault(entry.extra[SPLIT], {})
        if len(documents) < limit:
            documents[entry.id] = None
    selection = {name for documents in by_split.values() for name in documents}
    return Dataset(data.name, tuple(entry for entry in data.entries if entry.id in selection))


EXPERIMENTS = {
    "bmx": Command(
        "calibrate on some data sets, evaluate on others: original beside boosted, with tests",
        "examples:\n"
        "  whyscore experiment bmx --calibrate wmt17.jsonl mlqe.jsonl --evaluate wmt22.jsonl mqm.jsonl \\\n"
        "      --human wmt17:HUMAN_score mlqe:da -m xbertscore sbert -e erasure lime --mode paper -o run/\n",
        TransferCommand,
        run_transfer,
        bmx,
    ),
    "bmx-grid": Command(
        "what every p and w gains, with calibrations, controls and figures",
        "examples:\n"
        "  whyscore experiment bmx-grid data.jsonl --human HUMAN_score --group LP -m token_f1 -e erasure -o run/\n",
        GridCommand,
        run_grid,
        bmx_grid,
    ),
    "bmx-summeval": Command(
        "the eight splits of SummEval: every rule beside the length and random controls",
        "examples:\n"
        "  whyscore experiment bmx-summeval --annotations model_annotations.aligned.jsonl -m token_f1 -e lime -o run/\n"
        "  whyscore experiment bmx-summeval --scores scores.csv --texts texts.jsonl -m token_f1 -e lime -o run/\n",
        SummevalCommand,
        run_summeval,
        bmx_summeval,
    ),
    "bmx-stability": Command(
        "how much of a boosted score is due to random sampling: repeated runs of LIME",
        "examples:\n"
        "  whyscore experiment bmx-stability data.jsonl --human HUMAN_score --group LP -m token_f1 --every 5 -o run/\n",
        StabilityCommand,
        run_stability,
        bmx_stability,
    ),
}
