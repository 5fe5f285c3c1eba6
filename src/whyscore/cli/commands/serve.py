"""`whyscore serve`: explore runs in the browser, try a sentence, use the JSON API."""

import sys
from dataclasses import dataclass

from whyscore.cli.options import RunningSettings
from whyscore.cli.output import tell
from whyscore.cli.setup import open_store
from whyscore.settings import again, option
from whyscore.web import LOOPBACK, ServeSettings

EXAMPLES = """\
examples:
  whyscore serve
  whyscore serve run/ --port 8000
  whyscore serve old/ new/ --host 0.0.0.0 --token SECRET --allow-host scores.example.org
"""


@dataclass(frozen=True, kw_only=True)
class ServeCommand(ServeSettings):
    """What `whyscore serve` takes."""

    runs: tuple[str, ...] = option((), "run folders of whyscore evaluate", positional=True, metavar="RUN", basic=True)
    store: str | None = again(RunningSettings, "store")
    quiet: bool = option(False, "do not log requests", flags=("-q", "--quiet"))


SETTINGS = ServeCommand


def run(settings: ServeCommand) -> int:
    """Serve until interrupted."""
    from whyscore.web.app import serve  # noqa: PLC0415 - an extra that --help does not need

    def tell_address() -> None:
        tell(settings, f"whyscore: http://{settings.host}:{settings.port} (stop with Ctrl-C)")
        if settings.host not in LOOPBACK:
            tell(settings, "note: anyone with the token can read the runs and request scores; nothing is encrypted")

    serve(
        settings.runs,
        settings=settings,
        store=open_store(settings.store),
        quiet=settings.quiet,
        on_start=tell_address,
    )
    sys.stderr.flush()
    return 0
