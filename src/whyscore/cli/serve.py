"""`whyscore serve`: look at runs in the browser, try a sentence live, ask by JSON."""

import argparse
import sys
from pathlib import Path

from whyscore.cli.output import tell
from whyscore.cli.setup import store
from whyscore.errors import MissingExtra, UserError

EXAMPLES = """\
examples:
  whyscore serve
  whyscore serve run/ --port 8000
  whyscore serve old/ new/ --host 0.0.0.0 --allow-host scores.example.org
"""

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what is served and where."""
    parser.add_argument("runs", nargs="*", metavar="RUN", help="run folders of whyscore evaluate")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen at (default: this machine alone)")
    parser.add_argument("--port", type=int, default=8000, metavar="N", help="default: 8000; 0 takes a free one")
    parser.add_argument(
        "--allow-host",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME",
        help="names it may be called by",
    )
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="questions answered at a time (default: 2)")
    parser.add_argument("--queue", type=int, default=256, metavar="N", help="questions that may wait (default: 256)")
    parser.add_argument("--store", metavar="PATH", help="where scores are kept, or none (default: your cache folder)")
    parser.add_argument("-q", "--quiet", action="store_true", help="no lines about requests on stderr")


def run(arguments: argparse.Namespace) -> int:
    """Serve until interrupted."""
    try:
        import uvicorn  # noqa: PLC0415 - an optional package
    except ImportError as error:
        raise MissingExtra.of("whyscore serve", "web") from error
    from whyscore.web.app import Settings, create  # noqa: PLC0415 - an optional package

    for name in ("workers", "queue"):
        if getattr(arguments, name) < 1:
            raise UserError(f"--{name} is {getattr(arguments, name)}, expected 1 or more")
    hosts = (*_LOOPBACK, "[::1]", arguments.host, *arguments.allow_host)
    settings = Settings(_named(arguments.runs), store(arguments), hosts, arguments.workers, arguments.queue)
    tell(arguments, f"whyscore: http://{arguments.host}:{arguments.port} (Ctrl-C ends it)")
    if arguments.host not in _LOOPBACK:
        tell(arguments, "note: everybody who reaches this address can read the runs and ask for scores")
    level = "warning" if arguments.quiet else "info"
    uvicorn.run(create(settings), host=arguments.host, port=arguments.port, log_level=level, server_header=False)
    sys.stderr.flush()
    return 0


def _named(folders: list[str]) -> dict[str, Path]:
    """Return the folders by name; equal names get a number."""
    found: dict[str, Path] = {}
    for given in folders:
        folder = Path(given).resolve()
        if not folder.is_dir():
            raise UserError(f"no run folder {given!r}: make one with whyscore evaluate ... -o {given}")
        name, number = folder.name, 2
        while name in found:
            name, number = f"{folder.name}-{number}", number + 1
        found[name] = folder
    return found
