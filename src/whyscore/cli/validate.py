"""`whyscore validate`: the checks that run before any work, alone."""

import argparse

from whyscore.cli.arguments import add_inputs
from whyscore.cli.setup import dataset
from whyscore.cli.validate_submission import add_submission, check_submission

EXAMPLES = """\
examples:
  whyscore validate -s src.txt -r ref.txt -t sysA.txt sysB.txt
  whyscore validate data.tsv --strict
  whyscore validate SUBMISSION --gold GOLD
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the input options."""
    add_inputs(parser)
    parser.add_argument("-v", "--verbose", action="store_true", help="all findings, not the first 20")
    add_submission(parser)
    parser.set_defaults(quiet=False)


def run(arguments: argparse.Namespace) -> int:
    """Print what was found; errors end with exit code 3."""
    if arguments.gold:
        return check_submission(arguments)
    given = dataset(arguments)
    systems = f"{len(given.systems)} system(s): {', '.join(given.systems)}"
    print(f"{given.name}: {len(given.ids)} segments, {systems}")
    return 0
