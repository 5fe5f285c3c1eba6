"""The experiments of MuLER (Karidi, Choshen, Patel, Abend): hybrids, random, rare and wrong features, submissions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from whyscore.analysis.decompose import FeatureSettings
from whyscore.cli.options import Command, FolderSettings, InputSettings, MetricSettings, OutputSettings, RunningSettings
from whyscore.cli.output import emit_result, tell_each
from whyscore.cli.setup import load_dataset, only_metric, some_metrics, with_target_language, working
from whyscore.errors import UserError
from whyscore.experiments.muler.random import SpecificitySettings, TagnoiseSettings, specificity, tagnoise
from whyscore.experiments.muler.shares import FrequencySettings, HybridSettings, Rows, frequency, hybrid
from whyscore.experiments.muler.submissions import PairsSettings, figures, pairs, tally
from whyscore.settings import option

_TAGS = "--tagger \"pretagged(reference='ref.tag', hypothesis='sys.tag')\" --features NOUN=NN,NNS"


@dataclass(frozen=True, kw_only=True)
class ShareCommand(RunningSettings, OutputSettings, InputSettings, FeatureSettings, MetricSettings):
    """What all commands here take."""


@dataclass(frozen=True, kw_only=True)
class HybridCommand(ShareCommand, HybridSettings):
    """What `whyscore experiment hybrid` takes."""


@dataclass(frozen=True, kw_only=True)
class FrequencyCommand(ShareCommand, FrequencySettings):
    """What `whyscore experiment frequency` takes."""


@dataclass(frozen=True, kw_only=True)
class SpecificityCommand(ShareCommand, SpecificitySettings):
    """What `whyscore experiment specificity` takes."""


@dataclass(frozen=True, kw_only=True)
class TagnoiseCommand(ShareCommand, TagnoiseSettings):
    """What `whyscore experiment tagnoise` takes."""


@dataclass(frozen=True, kw_only=True)
class FiguresCommand(FolderSettings):
    """What `whyscore experiment muler-figures` takes."""

    files: tuple[str, ...] = option(
        (), "what `decompose -f jsonl` wrote, or tables of stored shares", positional=True, metavar="FILE", basic=True
    )


@dataclass(frozen=True, kw_only=True)
class PairsCommand(RunningSettings, FolderSettings, InputSettings, PairsSettings, MetricSettings):
    """What `whyscore experiment muler-pairs` takes."""

    sheet: tuple[str, ...] = option((), "filled sheets to tally, instead of data", metavar="FILE", basic=True)
    key: str | None = option(None, "who wrote which text (default: key.jsonl beside the sheet)", metavar="FILE")
    partial: bool = option(False, "leave out items without a judgement", basic=True)


Work = Callable[..., Rows[Any]]


def _experiment(name: str, about: str, settings: type[ShareCommand], work: Work) -> Command:
    """Return an experiment that runs its function for each metric."""

    def run(options: ShareCommand) -> int:
        metrics = some_metrics(options, "bleu")
        if options.dry_run:
            raise UserError("--dry-run is for decompose: run whyscore decompose --dry-run with the same options")
        data = load_dataset(with_target_language(options), metrics)
        with working(options) as resources:
            results = [work(data, metric, settings=options, resources=resources) for metric in metrics]
        emit_result(type(results[0])(data, [row for rows in results for row in rows]), options)
        return 0

    example = f"examples:\n  whyscore experiment {name} -r ref.txt -t sys.txt -m bleu {_TAGS}\n"
    return Command(about, example, settings, run, work)


def _draw_figures(options: FiguresCommand) -> int:
    correlations = figures(options.files, options.folder)
    emit_result(correlations, options)
    tell_each(options, "figure", correlations.figures)
    return 0


def _find_or_tally_pairs(options: PairsCommand) -> int:
    if options.sheet:
        emit_result(tally(options.sheet, options.key, partial=options.partial), options)
        return 0
    metric = only_metric(options)
    if options.folder is None:
        raise UserError("no folder for the sheet: name one with -o; a filled sheet is tallied with --sheet")
    data = load_dataset(with_target_language(options), [metric])
    with working(options) as resources:
        result = pairs(data, metric, settings=options, resources=resources)
    tell_each(options, "written", result.write(options.folder))
    emit_result(result, options)
    return 0


_FIGURES = """\
examples:
  whyscore decompose submissions/ --group pair -m bleu --tagger spacy -l en -f jsonl -o shares.jsonl
  whyscore experiment muler-figures shares.jsonl -o figures/
"""
_PAIRS = """\
examples:
  whyscore experiment muler-pairs submissions/ --group pair year -m bleu --tagger spacy -l en --features NOUN -o judge/
  whyscore experiment muler-pairs --sheet judge/sheet.tsv
"""

_NAMED: dict[str, tuple[str, type[ShareCommand], Work]] = {
    "hybrid": ("scores of systems with a known part of a feature right", HybridCommand, hybrid),
    "specificity": ("shares of random groups of words, which mean nothing", SpecificityCommand, specificity),
    "frequency": ("shares of a feature cut down to a part of its words", FrequencyCommand, frequency),
    "tagnoise": ("shares with a part of the tags wrong", TagnoiseCommand, tagnoise),
}

EXPERIMENTS: dict[str, Command] = {
    title: _experiment(title, *parts) for name, parts in _NAMED.items() for title in (f"muler-{name}", name)
}
EXPERIMENTS |= {
    "muler-figures": Command(
        "charts and correlations of shares over many submissions", _FIGURES, FiguresCommand, _draw_figures, figures
    ),
    "muler-pairs": Command(
        "systems close in the metric and far apart on a feature, for people to judge",
        _PAIRS,
        PairsCommand,
        _find_or_tally_pairs,
        pairs,
    ),
}
