"""`whyscore merge`: joins the shards of a run."""

import sys
from dataclasses import dataclass, replace

from whyscore.cli.commands.evaluate import RunFolderSettings, command_line, make_report, show_report
from whyscore.cli.options import RunningSettings
from whyscore.cli.setup import working
from whyscore.errors import UserError
from whyscore.runs.shards import joinable, merge
from whyscore.settings import Seeded, option

EXAMPLES = """\
examples:
  whyscore merge run-1/ run-2/ run-3/ run-4/ -o run/
"""


@dataclass(frozen=True, kw_only=True)
class MergeCommand(RunningSettings, RunFolderSettings, Seeded):
    """What `whyscore merge` takes; seed and all that decides numbers come from the shards."""

    shards: tuple[str, ...] = option(
        (), "all folders of whyscore evaluate --shard I/N", positional=True, metavar="RUN", basic=True
    )
    allow_code: tuple[str, ...] = option(
        (), "files and modules that the shards may run code from: those of your own metrics", metavar="PATH"
    )


SETTINGS = MergeCommand


def run(settings: MergeCommand) -> int:
    """Join the shards, write the report, print the verdict."""
    if not settings.shards:
        raise UserError("no shard: give the folders that whyscore evaluate --shard wrote")
    if settings.seed:
        raise UserError(f"--seed is {settings.seed}: the shards bring their own. Leave it out")
    if settings.dry_run:
        shards, entries = joinable(settings.shards)
        sys.stdout.write(f"{shards} shards with {entries} entries can be joined: what they scored is known\n")
        return 0
    with working(replace(settings, store=settings.store or "none")) as resources:  # the shards bring their own
        found = merge(
            settings.shards,
            settings.output,
            resources=resources,
            overwrite=settings.overwrite,
            command=command_line("merge"),
            allow_code=settings.allow_code,
        )
    show_report(settings, make_report(settings, found), found)
    return 0
