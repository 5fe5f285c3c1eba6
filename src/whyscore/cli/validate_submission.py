"""`whyscore validate SUBMISSION --gold GOLD`: every fault of a submission to a word-level shared task."""

import argparse

from whyscore.cli.findings import finding_lines
from whyscore.cli.output import emit, format_of
from whyscore.data.formats.eval4nlp import look_at_gold, look_at_submission, metadata_faults, misfits
from whyscore.errors import DataError, UserError
from whyscore.types import Finding

TASKS = ("eval4nlp2021", "wmt22")


def add_submission(parser: argparse.ArgumentParser) -> None:
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
