"""What commands use that take arguments instead of settings."""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from whyscore.cli import setup
from whyscore.cli.options import (
    GateSettings,
    InputSettings,
    MetricSettings,
    QuietSettings,
    RunningSettings,
    read_settings,
)
from whyscore.cli.output import tell
from whyscore.cli.progress import Bar, progress_bar
from whyscore.scoring.ray import Ray
from whyscore.scoring.stack import Progress, Resources
from whyscore.scoring.store import Store
from whyscore.types import Dataset, Finding


def place_metrics(arguments: argparse.Namespace) -> None:
    """Apply device options to the metrics."""
    metrics = getattr(arguments, "metrics", None)
    if metrics:
        arguments.metrics = setup.requested_metrics(read_settings(MetricSettings, arguments))
        arguments.device = arguments.precision = None


def dataset(arguments: argparse.Namespace) -> Dataset:
    """Return the segments that the arguments name, checked; findings go to stderr."""
    given, found = looked_at(arguments)
    setup.show_findings(found, read_settings(QuietSettings, arguments))
    setup.refuse_data(given, found, strict=arguments.strict)
    return given


def looked_at(arguments: argparse.Namespace) -> tuple[Dataset, Sequence[Finding]]:
    """Return the segments that the arguments name, and what is to be known about them."""
    if getattr(arguments, "dry_run", False):
        arguments.output = None
    place_metrics(arguments)
    check_names(arguments)
    return setup.load_and_validate(read_settings(InputSettings, arguments), getattr(arguments, "metrics", None) or ())


def check_names(arguments: argparse.Namespace) -> None:
    """Refuse metrics and explainers there are not."""
    explainers: list[str] = []
    for name in ("explainer", "explainers"):
        given = getattr(arguments, name, None) or ()
        explainers += [given] if isinstance(given, str) else given
    setup.check_names(getattr(arguments, "metrics", None) or (), explainers)


def resources(arguments: argparse.Namespace, progress: Progress | None = None) -> Resources:
    """Return store, executor and progress as asked for."""
    found = setup.make_resources(read_settings(RunningSettings, arguments), progress)
    if isinstance(found.executor, Ray):
        arguments.workers_used = found.executor.rates
    return found


def baseline(arguments: argparse.Namespace, data: Dataset) -> str | None:
    """Return the system that no other may be worse than."""
    return setup.baseline_of(read_settings(GateSettings, arguments), data)


def store(arguments: argparse.Namespace) -> Store | None:
    """Return the score store, or None for `--store none`."""
    return setup.open_store(arguments.store)


@contextmanager
def progress(arguments: argparse.Namespace) -> Iterator[Bar | None]:
    """Give a bar while the work lasts."""
    with progress_bar(read_settings(QuietSettings, arguments)) as bar:
        yield bar
    for name, rate in getattr(arguments, "workers_used", {}).items():
        speed = f", {rate.texts / rate.seconds:,.0f}/s" if rate.seconds else ""
        tell(read_settings(QuietSettings, arguments), f"{name}: {rate.texts:,} texts{speed}")
