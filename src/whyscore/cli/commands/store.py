"""`whyscore store`: how large the score store is, what can go, and whether it is sound."""

import argparse

from whyscore.cli.legacy import store
from whyscore.cli.options import Parser
from whyscore.cli.output import emit, format_of, to_json
from whyscore.errors import UserError
from whyscore.scoring.store import Store, check, repair

EXAMPLES = """\
examples:
  whyscore store size
  whyscore store prune --days 30
  whyscore store prune --signature my_metric
  whyscore store check
  whyscore store repair
"""

_FORMATS = ("text", "json")


def add_arguments(parser: Parser) -> None:
    """Add what to do and to what."""
    actions = ("size", "prune", "check", "repair")
    parser.add_argument("action", choices=actions, metavar="|".join(actions), help="what to do with the store")
    parser.add_argument("--store", metavar="PATH", help="the score store (default: in your cache folder)")
    parser.add_argument("--days", type=float, default=0.0, help="prune: only what was not written to for so long")
    parser.add_argument("--signature", default="", metavar="TEXT", help="prune: only signatures that contain this")
    parser.add_argument("-f", "--format", choices=_FORMATS, help="default: text, or what the suffix of -o says")
    parser.set_defaults(formats=_FORMATS)
    parser.add_argument("-o", "--output", metavar="FILE", help="write to this file instead of stdout")


def run(arguments: argparse.Namespace) -> int:
    """Print sizes, or drop what is old."""
    kept = store(arguments)
    if kept is None:
        raise UserError("there is no store to look at: --store none was given")
    if arguments.action == "prune":
        gone = kept.prune(days=arguments.days, containing=arguments.signature)
        emit(arguments, [to_json({"pruned": gone}) if format_of(arguments) == "json" else f"{gone} scores dropped\n"])
        return 0
    if arguments.action == "check":
        return _check(arguments, kept)
    if arguments.action == "repair":
        return _repair(arguments, kept)
    held = kept.held()
    if format_of(arguments) == "json":
        entries = [{"signature": one.signature, "segments": one.segments, "used": one.used} for one in held]
        emit(arguments, [to_json({"path": str(kept.path), "bytes": kept.size(), "signatures": entries})])
        return 0
    lines = [f"{one.segments:>10}  {one.used[:10]}  {one.signature}\n" for one in held]
    emit(arguments, [f"{kept.path}: {kept.size():,} bytes\n", *lines])
    return 0


def _check(arguments: argparse.Namespace, kept: Store) -> int:
    """Say what is wrong with the store; 1 where anything is."""
    faults = check(kept)
    if format_of(arguments) == "json":
        emit(arguments, [to_json({"path": str(kept.path), "faults": faults})])
    elif faults:
        emit(arguments, [*(f"{fault}\n" for fault in faults), "save what can be read with: whyscore store repair\n"])
    else:
        emit(arguments, [f"{kept.path} is sound\n" if kept.path.exists() else f"there is no store at {kept.path}\n"])
    return 1 if faults else 0


def _repair(arguments: argparse.Namespace, kept: Store) -> int:
    """Save what can be read."""
    done = repair(kept)
    if format_of(arguments) == "json":
        emit(arguments, [to_json({"path": str(kept.path), "rows": done.rows, "damaged": str(done.damaged)})])
    else:
        emit(arguments, [f"{done.rows} rows saved; the damaged file is now {done.damaged}\n"])
    return 0
