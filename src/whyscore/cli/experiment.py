"""`whyscore experiment`: the papers' experiments, one command each."""

import argparse
import importlib
from typing import cast

from whyscore.cli.experiments import Experiment

EXAMPLES = """\
examples:
  whyscore experiment bmx-grid data.jsonl --human HUMAN_score --group LP -m token_f1 -e erasure -o run/
  whyscore experiment bmx-summeval --scores scores.csv --texts texts.jsonl -m token_f1 -e "lime(samples=100)" -o run/
  whyscore experiment bmx-stability data.jsonl --human HUMAN_score --group LP -m token_f1 --samples 100 1000 -o run/
"""

MODULES = ("experiment_bmx", "experiment_muler", "experiment_matching")
"""The modules of this package that offer experiments."""


def known() -> dict[str, Experiment]:
    """Return every experiment by its name."""
    found: dict[str, Experiment] = {}
    for module in MODULES:
        offered = importlib.import_module(f"whyscore.cli.{module}").EXPERIMENTS
        found |= cast("dict[str, Experiment]", offered)
    return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
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
