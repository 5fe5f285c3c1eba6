"""`whyscore store`: how large the score store is, and what can go."""

import argparse

from whyscore.cli.output import emit, to_json
from whyscore.cli.setup import store
from whyscore.errors import UserError

EXAMPLES = """\
examples:
  whyscore store size
  whyscore store prune --days 30
  whyscore store prune --signature my_metric
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what to do and to what."""
    parser.add_argument("action", choices=("size", "prune"))
    parser.add_argument("--store", metavar="PATH", help="the score store (default: in your cache folder)")
    parser.add_argument("--days", type=float, default=0.0, help="prune: only what was not written to for so long")
    parser.add_argument("--signature", default="", metavar="TEXT", help="prune: only signatures that contain this")
    parser.add_argument("-f", "--format", choices=("text", "json"), default="text")
    parser.add_argument("-o", "--output", metavar="FILE", help="write to this file instead of stdout")


def run(arguments: argparse.Namespace) -> int:
    """Print sizes, or drop what is old."""
    kept = store(arguments)
    if kept is None:
        raise UserError("there is no store to look at: --store none was given")
    if arguments.action == "prune":
        gone = kept.prune(days=arguments.days, containing=arguments.signature)
        emit(arguments, [to_json({"pruned": gone}) if arguments.format == "json" else f"{gone} scores dropped\n"])
        return 0
    held = kept.held()
    if arguments.format == "json":
        entries = [{"signature": one.signature, "segments": one.segments, "used": one.used} for one in held]
        emit(arguments, [to_json({"path": str(kept.path), "bytes": kept.size(), "signatures": entries})])
        return 0
    lines = [f"{one.segments:>10}  {one.used[:10]}  {one.signature}\n" for one in held]
    emit(arguments, [f"{kept.path}: {kept.size():,} bytes\n", *lines])
    return 0
