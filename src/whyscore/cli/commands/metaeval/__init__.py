"""`whyscore metaeval`: how good is a metric or an explainer?"""

import argparse
import importlib
from importlib.util import find_spec
from typing import cast

from whyscore.cli.main import Verb
from whyscore.cli.options import Parser

ABOUT = {
    "scores": "agreement of metrics with human scores: levels, tests, clusters, sentinels",
    "words": "agreement of word scores with the words that people marked",
    "spans": "agreement of predicted error spans with those that people marked",
    "faithfulness": "whether explanations name the words that made the score",
}
"""What can be judged; each is a module of this package."""

EXAMPLES = """\
examples:
  whyscore metaeval scores summeval.csv --human expert_relevance --metric rouge-1_f1 bertscore_f1 --level system
  whyscore metaeval scores --sample --human mqm -m chrf bleu --level segment
  whyscore metaeval scores -h
"""


def known() -> dict[str, Verb]:
    """Return the modules that are there, by the name of what they judge."""
    homes = {name: f"whyscore.cli.commands.metaeval.{name}" for name in ABOUT}
    return {
        name: cast("Verb", importlib.import_module(home)) for name, home in homes.items() if find_spec(home) is not None
    }


def add_arguments(parser: Parser) -> None:
    """Add one parser for each thing that can be judged."""
    choices = parser.add_subparsers(dest="judged", metavar="|".join(known()), required=True)
    for name, module in known().items():
        inner = choices.add_parser(
            name,
            help=ABOUT[name],
            description=f"{ABOUT[name][0].upper()}{ABOUT[name][1:]}.\n\n{module.EXAMPLES}",
            formatter_class=parser.formatter_class,
            allow_abbrev=False,
        )
        module.add_arguments(inner)


def run(arguments: argparse.Namespace) -> int:
    """Judge what was asked for."""
    return known()[arguments.judged].run(arguments)
