"""`whyscore validate`: check input files, or a submission to a word-level shared task, without scoring."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from whyscore.cli.options import InputSettings, OutputSettings
from whyscore.cli.output import emit, emit_result, format_of
from whyscore.cli.setup import expected_findings, load_and_validate, refuse_data, show_findings
from whyscore.data.checks import Findings
from whyscore.data.formats.eval4nlp import look_at_gold, look_at_submission, metadata_faults, misfits
from whyscore.data.naming import with_noun
from whyscore.errors import DataError, UserError
from whyscore.marking import ON_ONE_LINE
from whyscore.settings import option

EXAMPLES = """\
examples:
  whyscore validate -s src.txt -r ref.txt -t sysA.txt sysB.txt
  whyscore validate data.tsv --strict
  whyscore validate data.tsv -f json -o findings.json
  whyscore validate SUBMISSION --gold GOLD
"""


@dataclass(frozen=True, kw_only=True)
class SubmissionSettings:
    """What a submission is checked against."""

    TITLE: ClassVar[str] = "submissions to word-level tasks"

    gold: str | None = option(
        None, "check a submission (FILE) against this gold folder or zip", metavar="PATH", basic=True
    )
    task: Literal["eval4nlp2021", "wmt22"] | None = option(None, "also require the task's metadata.txt", basic=True)


@dataclass(frozen=True, kw_only=True)
class ValidateCommand(OutputSettings, SubmissionSettings, InputSettings):
    """What `whyscore validate` takes."""


SETTINGS = ValidateCommand


def run(settings: ValidateCommand) -> int:
    """Write what was found; errors end with exit code 3."""
    if settings.gold is not None:
        return _check_submission(settings, settings.gold)
    data, noticed = load_and_validate(settings)
    expected = expected_findings(noticed, settings)
    if format_of(settings) != "text":
        emit_result(expected, settings)
        refuse_data(data, expected, strict=settings.strict)
        return 0
    show_findings(expected, settings)
    refuse_data(data, expected, strict=settings.strict)
    sizes = expected.about.get("by_system")
    names = [f"{name} ({sizes[name]})" for name in data.systems] if isinstance(sizes, dict) else data.systems
    shared = f"; {expected.about['common']} segments in common" if isinstance(sizes, dict) else ""
    systems = f"{with_noun(len(data.systems), 'system')}: {', '.join(names)}{shared}"
    lines = [f"{data.name}: {len(data.ids)} segments, {systems}"]
    if columns := data.describe_columns():
        lines.append(f"columns: {columns}")
    emit(settings, (f"{line.translate(ON_ONE_LINE)}\n" for line in lines))
    return 0


def _check_submission(settings: ValidateCommand, gold_path: str) -> int:
    """Write all faults with file and line, then a summary; faults end with exit code 3."""
    if len(settings.data) != 1:
        raise UserError(f"one submission is checked at a time, got {len(settings.data)}")
    path = settings.data[0]
    gold, submission = look_at_gold(gold_path), look_at_submission(path)
    faults = [*submission.findings, *misfits(submission, gold)]
    faults += metadata_faults(submission, settings.task or gold.task, path, required=settings.task is not None)
    count = sum(finding.error for finding in faults)
    about = {"name": submission.name, "segments": len(gold), "sides": list(submission.sides), "faults": count}
    combined = Findings([*gold.findings, *faults], **about)
    if format_of(settings) == "text":
        lines = [f"{'error' if finding.error else 'note'}: {finding}" for finding in combined]
        lines.append(f"{submission.name}: {len(gold)} segments, {', '.join(submission.sides)}; {count} fault(s)")
        emit(settings, (f"{line.translate(ON_ONE_LINE)}\n" for line in lines))
    else:
        emit_result(combined, settings)
    if count:
        raise DataError(f"{path} cannot be submitted: {count} fault(s)")
    return 0
