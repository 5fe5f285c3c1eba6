"""`whyscore doctor`: what is installed, what is missing, and the command that helps."""

import argparse
import sys
from pathlib import Path

from whyscore.analysis.catalogue import doctor
from whyscore.cli.legacy import store
from whyscore.cli.options import Parser
from whyscore.cli.output import emit, format_of, to_json

EXAMPLES = """\
examples:
  whyscore doctor
  whyscore doctor -f json
"""

_FORMATS = ("text", "json")


def add_arguments(parser: Parser) -> None:
    """Add the output options."""
    parser.add_argument("-f", "--format", choices=_FORMATS, help="default: text, or what the suffix of -o says")
    parser.set_defaults(formats=_FORMATS)
    parser.add_argument("-o", "--output", metavar="FILE", help="write to this file instead of stdout")
    parser.add_argument("--store", metavar="PATH", help="the score store to look at (default: your cache folder)")


def run(arguments: argparse.Namespace) -> int:
    """Print the state of this installation."""
    state = doctor(store(arguments))
    lines = [to_json(state)] if format_of(arguments) == "json" else [f"{line}\n" for line in _lines(state)]
    emit(arguments, lines)
    return 0


def _lines(state: dict[str, object]) -> list[str]:
    lines = [
        f"whyscore {state['whyscore']}, Python {state['python']} ({Path(sys.executable).name}), {state['platform']}"
    ]
    extras = state["packages"]
    for extra, names in extras.items() if isinstance(extras, dict) else ():
        missing = [name for name, found in names.items() if found is None]
        cure = f"   missing: {', '.join(missing)}   pip install 'whyscore[{extra}]'" if missing else ""
        there = ", ".join(f"{name} {found}" for name, found in names.items() if found)
        lines.append(f"{'-' if missing else '✓'} {extra}: {there}{cure}")
    kept = state["store"]
    if isinstance(kept, dict):
        about = kept.get("problem") or f"{kept.get('segments', 0)} scores, {kept.get('bytes', 0)} bytes"
        lines.append(f"{'-' if 'problem' in kept else '✓'} store: {kept['path']} ({about})")
    problems = state["broken"]
    lines += [f"- {name}: {reason}" for name, reason in problems.items()] if isinstance(problems, dict) else []
    return lines
