"""`whyscore validate`: the checks that run before any work, alone.

`whyscore validate SUBMISSION --gold GOLD`: every fault of a submission to a word-level shared task.
"""

import argparse

from whyscore.cli.legacy import looked_at
from whyscore.cli.options import Parser, QuietSettings, add_inputs, add_output, read_settings
from whyscore.cli.output import FORMATS, emit, finding_lines, format_of
from whyscore.cli.setup import refuse_findings, show_findings
from whyscore.data.formats.eval4nlp import look_at_gold, look_at_submission, metadata_faults, misfits
from whyscore.errors import DataError, UserError
from whyscore.types import Finding

TASKS = ("eval4nlp2021", "wmt22")


def add_submission(parser: Parser) -> None:
    """Add what a submission is held against."""
    group = parser.add_argument_group("submissions to word-level tasks")
    group.add_argument("--gold", metavar="PATH", help="check a submission (FILE) against this gold folder or zip")
    group.add_argument("--task", choices=TASKS, help="require the task's metadata.txt too")


def check_submission(arguments: argparse.Namespace) -> int:
    """Write all faults with file and line, then a summary; faults end with exit code 3."""
    if len(arguments.data) != 1:
        raise UserError(f"one submission is checked at a time, got {len(arguments.data)}")
    path = arguments.data[0]
    gold, submission = look_at_gold(arguments.gold), look_at_submission(path)
    found: list[Finding] = [*submission.findings, *misfits(submission, gold)]
    found += metadata_faults(submission, arguments.task or gold.task, path, required=arguments.task is not None)
    everything = [*gold.findings, *found]
    faults = sum(finding.error for finding in found)
    if format_of(arguments) == "text":
        lines = [f"{'error' if finding.error else 'note'}: {finding}" for finding in everything]
        lines.append(f"{submission.name}: {len(gold)} segments, {', '.join(submission.sides)}; {faults} fault(s)")
        emit(arguments, (f"{line}\n" for line in lines))
    else:
        about = {"name": submission.name, "segments": len(gold), "sides": list(submission.sides), "faults": faults}
        emit(arguments, finding_lines(arguments, about, everything))
    if faults:
        raise DataError(f"{path} cannot be handed in: {faults} fault(s)")
    return 0


EXAMPLES = """\
examples:
  whyscore validate -s src.txt -r ref.txt -t sysA.txt sysB.txt
  whyscore validate data.tsv --strict
  whyscore validate data.tsv -f json -o findings.json
  whyscore validate SUBMISSION --gold GOLD
"""


def add_arguments(parser: Parser) -> None:
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
    show_findings(found, read_settings(QuietSettings, arguments))
    refuse_findings(given, found, strict=arguments.strict)
    systems = f"{len(given.systems)} system(s): {', '.join(given.systems)}"
    emit(arguments, [f"{given.name}: {len(given.ids)} segments, {systems}\n"])
    return 0
