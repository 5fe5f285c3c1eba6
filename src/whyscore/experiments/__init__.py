"""The papers' experiments by name: what `whyscore experiment NAME` and `whyscore.experiment(name, ...)` run.

Each module of `PAPERS` offers a table of them:

    EXPERIMENTS = {"bmx-grid": Command("what it shows", "examples: ...", GridCommand, run_grid, bmx_grid)}
"""

import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import cast

from whyscore.cli.options import Command
from whyscore.errors import SpecError, UnknownName

PAPERS = (
    *("bmx", "muler", "matching", "eval4nlp.data", "eval4nlp.annotators", "eval4nlp.ranking"),
    *("eval4nlp.marked_words", "injection", "eval4nlp.participants", "perturbations", "categories"),
)


def experiments() -> dict[str, Command]:
    """Return every experiment by its name."""
    tables = [importlib.import_module(f"whyscore.experiments.{module}").EXPERIMENTS for module in PAPERS]
    return {name: command for table in tables for name, command in cast("dict[str, Command]", table).items()}


def experiment(name: str, *given: object, **options: object) -> object:
    """Return what an experiment of the papers found; the names are those of `whyscore experiment`.

        experiment("hybrid", dataset, "bleu", features=["number"])
        experiment("bmx-grid", dataset, "token_f1", ["erasure"], human="da", output="run")

    Args:
        name: One of `experiments()`.
        given: What its function takes: data, a metric, explainers.
        options: Its options.
    """
    commands = experiments()
    if name not in commands:
        raise UnknownName.among("experiment", name, commands)
    work = cast("Callable[..., object]", commands[name].function)
    _check(name, work, given, options)
    return work(*given, **options)


def _check(
    name: str, work: Callable[..., object], arguments: tuple[object, ...], options: Mapping[str, object]
) -> None:
    """Refuse what the function does not take, before it begins."""
    signature = inspect.signature(work)
    try:
        signature.bind(*arguments, **options)
    except TypeError as error:
        raise SpecError(f"{name}: {error}. Its options: {', '.join(signature.parameters)}") from None
