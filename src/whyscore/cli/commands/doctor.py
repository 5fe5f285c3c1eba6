"""`whyscore doctor`: what is installed, what is missing, and the command that helps."""

from dataclasses import dataclass

from whyscore.analysis.catalogue import doctor
from whyscore.cli.options import OutputSettings
from whyscore.cli.output import emit_result
from whyscore.cli.setup import open_store
from whyscore.settings import option

EXAMPLES = """\
examples:
  whyscore doctor
  whyscore doctor -f json
"""


@dataclass(frozen=True, kw_only=True)
class DoctorCommand(OutputSettings):
    """What `whyscore doctor` takes."""

    store: str | None = option(None, "the score store to look at (default: your cache folder)", metavar="PATH")


SETTINGS = DoctorCommand


def run(settings: DoctorCommand) -> int:
    """Print the state of this installation."""
    emit_result(doctor(open_store(settings.store)), settings)
    return 0
