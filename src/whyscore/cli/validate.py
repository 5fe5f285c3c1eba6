"""`whyscore validate`: the checks that run before any work, alone."""

import argparse

from whyscore.cli.arguments import add_inputs, add_output
from whyscore.cli.findings import FORMATS, finding_lines
from whyscore.cli.output import emit, format_of
from whyscore.cli.setup import looked_at, refuse_findings, show_findings
from whyscore.cli.validate_submission import add_submission, check_submission

EXAMPLES = """\
examples:
  whyscore validate -s src.txt -r ref.txt -t sysA.txt sysB.txt
  whyscore validate data.tsv --strict
  whyscore validate data.tsv -f json -o findings.json
  whyscore validate SUBMISSION --gold GOLD
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the input options and how findings come out."""
    add_inputs(parser)
    add_output(parser, FORMATS)
    add_submission(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write what was found; errors end with exit code 3."""
    if arguments.gold:
        return check_submission(arguments)
    given, found = looked_at(arguments)
    if format_of(arguments) != "text":
        about = {"name": given.name, "segments": len(given.ids), "systems": list(given.systems)}
        emit(arguments, finding_lines(arguments, about, found))
        refuse_findings(given, found, strict=arguments.strict)
        return 0
    show_findings(found, arguments)
    refuse_findings(given, found, strict=arguments.strict)
    systems = f"{len(given.systems)} system(s): {', '.join(given.systems)}"
    emit(arguments, [f"{given.name}: {len(given.ids)} segments, {systems}\n"])
    return 0
