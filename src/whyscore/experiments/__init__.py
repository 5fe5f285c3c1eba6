"""The papers' experiments by name: what `whyscore experiment NAME` and `whyscore.experiment(name, ...)` run.

Each module of `PAPERS` offers a table of them:

    EXPERIMENTS = {"bmx-grid": Experiment("what it shows", "examples: ...", GridCommand, run_grid, bmx_grid)}
"""

import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

from whyscore.errors import SpecError, UnknownName

PAPERS = ("bmx.command", "muler.command", "matching", "eval4nlp", "injection", "participants", "perturbations")


class Experiment(NamedTuple):
    """One experiment, as a command and as a function."""

    help: str
    examples: str
    """Commands to paste, shown by `-h`."""
    settings: type
    """The settings class of the command: its options."""
    run: Callable[[Any], int]
    """Takes the settings and returns the exit code."""
    function: Callable[..., object]
    """What Python calls; it documents what it takes and what comes back."""
    formats: tuple[str, ...] = ()
    """The output formats that make sense; all where empty."""


def experiments() -> dict[str, Experiment]:
    """Return every experiment by its name."""
    tables = [importlib.import_module(f"whyscore.experiments.{module}").EXPERIMENTS for module in PAPERS]
    return {name: one for table in tables for name, one in cast("dict[str, Experiment]", table).items()}


def experiment(name: str, *given: object, **options: object) -> object:
    """Return what an experiment of the papers found; the names are those of `whyscore experiment`.

        experiment("hybrid", dataset, "bleu", features=["number"])
        experiment("bmx-grid", dataset, "token_f1", ["erasure"], human="da", output="run")

    Args:
        name: One of `experiments()`.
        given: What its function takes: data, a metric, explainers.
        options: Its options.
    """
    known = experiments()
    if name not in known:
        raise UnknownName.among("experiment", name, known)
    work = known[name].function
    _check(name, work, given, options)
    return work(*given, **options)


def _check(name: str, work: Callable[..., object], given: tuple[object, ...], options: Mapping[str, object]) -> None:
    """Refuse what the function does not take, before it begins."""
    known = inspect.signature(work)
    try:
        known.bind(*given, **options)
    except TypeError as error:
        raise SpecError(f"{name}: {error}. Its options: {', '.join(known.parameters)}") from None
