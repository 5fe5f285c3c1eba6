"""`whyscore experiment`: the papers' experiments, one command each.

What an experiment is made of: the module `command` of each package of `whyscore.experiments` offers a table of them.

    EXPERIMENTS = {"bmx-grid": Experiment("what it shows", add_arguments, run)}
"""

import argparse
import importlib
from collections.abc import Callable
from typing import NamedTuple, cast

from whyscore.cli.options import Parser


class Experiment(NamedTuple):
    """One experiment: a line of help, its options, and the work, which returns the exit code."""

    help: str
    add_arguments: Callable[[Parser], None]
    run: Callable[[argparse.Namespace], int]
    examples: str = ""
    """Commands to paste, shown by `-h`."""


EXAMPLES = """\
examples:
  whyscore experiment bmx-grid data.jsonl --human HUMAN_score --group LP -m token_f1 -e erasure -o run/
  whyscore experiment bmx-summeval --scores scores.csv --texts texts.jsonl -m token_f1 -e "lime(samples=100)" -o run/
  whyscore experiment bmx-stability data.jsonl --human HUMAN_score --group LP -m token_f1 --samples 100 1000 -o run/
"""

PACKAGES = ("bmx", "muler", "matching")
"""The packages of `whyscore.experiments`; each has a module `command` that offers experiments."""


def known() -> dict[str, Experiment]:
    """Return every experiment by its name."""
    found: dict[str, Experiment] = {}
    for package in PACKAGES:
        offered = importlib.import_module(f"whyscore.experiments.{package}.command").EXPERIMENTS
        found |= cast("dict[str, Experiment]", offered)
    return found


def add_arguments(parser: Parser) -> None:
    """Add one parser per experiment."""
    choices = parser.add_subparsers(dest="experiment", metavar="NAME", required=True)
    for name, experiment in known().items():
        inner = choices.add_parser(
            name,
            help=experiment.help,
            description=f"{experiment.help[0].upper()}{experiment.help[1:]}.\n\n{experiment.examples}",
            formatter_class=parser.formatter_class,
            allow_abbrev=False,
        )
        experiment.add_arguments(inner)


def run(arguments: argparse.Namespace) -> int:
    """Run the experiment that was asked for."""
    return known()[arguments.experiment].run(arguments)
