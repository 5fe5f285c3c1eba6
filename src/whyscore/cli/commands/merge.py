"""`whyscore merge`: joins the shards of a run."""

import argparse
import sys
from pathlib import Path

from whyscore.cli.commands.evaluate import PAGE
from whyscore.cli.commands.report import report_lines, write_page
from whyscore.cli.legacy import progress, resources
from whyscore.cli.options import Parser, add_running
from whyscore.cli.output import tell
from whyscore.errors import UserError
from whyscore.report import build_report
from whyscore.runs.shards import joinable, merge

EXAMPLES = """\
examples:
  whyscore merge run-1/ run-2/ run-3/ run-4/ -o run/
"""


def add_arguments(parser: Parser) -> None:
    """Add the shards and the folder of the whole."""
    parser.add_argument("shards", nargs="+", metavar="RUN", help="all folders of whyscore evaluate --shard I/N")
    parser.add_argument("-o", "--output", default="run", metavar="FOLDER", help="the run folder (default: run)")
    parser.add_argument("-f", "--format", choices=("text", "json", "markdown", "latex"), default="text")
    parser.add_argument("--title", metavar="TEXT", help="of the report (default: the name of the data)")
    parser.add_argument("--overwrite", action="store_true", help="replace another run in the folder")
    add_running(parser)


def run(arguments: argparse.Namespace) -> int:
    """Join the shards, write the report, print the verdict."""
    if arguments.seed:
        raise UserError(f"--seed is {arguments.seed}: the shards bring their own. Leave it out")
    if arguments.dry_run:
        shards, entries = joinable(arguments.shards)
        sys.stdout.write(f"{shards} shards with {entries} entries can be joined: what they scored is known\n")
        return 0
    arguments.store = arguments.store or "none"  # the shards bring their own
    command = ["whyscore", *sys.argv[1:]] if sys.argv[1:2] == ["merge"] else None
    with progress(arguments) as bar:
        held = resources(arguments, bar)
        found = merge(
            arguments.shards, arguments.output, resources=held, overwrite=arguments.overwrite, command=command
        )
    report = build_report(found, title=arguments.title)
    page = Path(arguments.output) / PAGE
    write_page(report, page)
    sys.stdout.writelines(report_lines(report, arguments.format))
    tell(arguments, f"report: {page}")
    return 0
