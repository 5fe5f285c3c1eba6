"""`whyscore serve`: look at runs in the browser, try a sentence live, ask by JSON."""

import argparse
import sys

from whyscore.cli.legacy import store
from whyscore.cli.options import Parser, natural
from whyscore.cli.output import tell
from whyscore.errors import SpecError, UserError
from whyscore.web.app import LOOPBACK, serve

EXAMPLES = """\
examples:
  whyscore serve
  whyscore serve run/ --port 8000
  whyscore serve old/ new/ --host 0.0.0.0 --allow-host scores.example.org
"""


def add_arguments(parser: Parser) -> None:
    """Add what is served and where."""
    parser.add_argument("runs", nargs="*", metavar="RUN", help="run folders of whyscore evaluate")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen at (default: this machine alone)")
    parser.add_argument("--port", type=natural, default=8000, metavar="N", help="default: 8000; 0 takes a free one")
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

    def begun() -> None:
        tell(arguments, f"whyscore: http://{arguments.host}:{arguments.port} (Ctrl-C ends it)")
        if arguments.host not in LOOPBACK:
            tell(arguments, "note: everybody who reaches this address can read the runs and ask for scores")

    try:
        serve(
            arguments.runs,
            host=arguments.host,
            port=arguments.port,
            allow_hosts=arguments.allow_host,
            workers=arguments.workers,
            queue=arguments.queue,
            store=store(arguments),
            quiet=arguments.quiet,
            begun=begun,
        )
    except SpecError as error:  # it begins with the name of an option
        raise UserError(f"--{error}") from error
    sys.stderr.flush()
    return 0
