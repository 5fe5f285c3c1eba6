"""The experiments about shares as commands: hybrids, random features, rarer features, bad taggers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from whyscore.analysis.decompose.settings import FeatureSettings
from whyscore.cli.commands.decompose import with_target_language
from whyscore.cli.options import InputSettings, MetricSettings, OutputSettings, RunningSettings
from whyscore.cli.output import emit_result
from whyscore.cli.setup import load_dataset, requested_metrics, working
from whyscore.errors import UserError
from whyscore.experiments.catalogue import Experiment
from whyscore.experiments.muler.random import SpecificitySettings, TagnoiseSettings, specificity, tagnoise
from whyscore.experiments.muler.shares import FrequencySettings, HybridSettings, Rows, frequency, hybrid

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


Work = Callable[..., Rows[Any]]


def _experiment(name: str, about: str, settings: type[ShareCommand], work: Work) -> Experiment:
    """Return an experiment that runs its function for each metric."""

    def run(given: ShareCommand) -> int:
        metrics = requested_metrics(given)
        if not metrics:
            raise UserError("no metric: name one with -m, for example -m bleu")
        if given.dry_run:
            raise UserError("--dry-run is for decompose: run whyscore decompose --dry-run with the same options")
        data = load_dataset(with_target_language(given), metrics)
        with working(given) as resources:
            found = [work(data, metric, settings=given, resources=resources) for metric in metrics]
        emit_result(type(found[0])(data, [row for rows in found for row in rows]), given)
        return 0

    example = f"examples:\n  whyscore experiment {name} -r ref.txt -t sys.txt -m bleu {_TAGS}\n"
    return Experiment(about, example, settings, run, work)


_NAMED: dict[str, tuple[str, type[ShareCommand], Work]] = {
    "hybrid": ("scores of systems with a known part of a feature right", HybridCommand, hybrid),
    "specificity": ("shares of random groups of words, which mean nothing", SpecificityCommand, specificity),
    "frequency": ("shares of a feature cut down to a part of its words", FrequencyCommand, frequency),
    "tagnoise": ("shares with a part of the tags wrong", TagnoiseCommand, tagnoise),
}

EXPERIMENTS: dict[str, Experiment] = {
    title: _experiment(title, *parts) for name, parts in _NAMED.items() for title in (f"muler-{name}", name)
}
