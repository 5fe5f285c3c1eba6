"""`whyscore list`: the components there are, what they read and which options they take."""

from dataclasses import dataclass

from whyscore.analysis.catalogue import LISTED, list_components
from whyscore.cli.options import OutputSettings
from whyscore.cli.output import emit_result
from whyscore.settings import option

EXAMPLES = """\
examples:
  whyscore list metrics
  whyscore list explainers -v
  whyscore list datasets
  whyscore list -f json
"""


@dataclass(frozen=True, kw_only=True)
class ListCommand(OutputSettings):
    """What `whyscore list` takes."""

    kinds: tuple[str, ...] = option((), ", ".join(LISTED), positional=True, metavar="KIND", basic=True)
    verbose: bool = option(False, "the whole description of each", flags=("-v", "--verbose"), basic=True)


SETTINGS = ListCommand


def run(settings: ListCommand) -> int:
    """Print what there is."""
    emit_result(list_components(*settings.kinds, verbose=settings.verbose), settings)
    return 0
