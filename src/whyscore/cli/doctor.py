"""`whyscore doctor`: what is installed, what is missing, and the command that helps."""

import argparse
import platform
import re
import sys
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from whyscore.cli.output import emit, to_json
from whyscore.cli.setup import store
from whyscore.errors import StoreError, WhyscoreError
from whyscore.registry import known, load
from whyscore.registry.names import KINDS
from whyscore.version import __version__

EXAMPLES = """\
examples:
  whyscore doctor
  whyscore doctor -f json
"""

_REQUIREMENT = re.compile(r"^([\w.-]+)[^;]*(?:;.*extra == ['\"]([\w-]+)['\"])?")
_HIDDEN = ("dev",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the output options."""
    parser.add_argument("-f", "--format", choices=("text", "json"), default="text")
    parser.add_argument("-o", "--output", metavar="FILE", help="write to this file instead of stdout")
    parser.add_argument("--store", metavar="PATH", help="the score store to look at (default: your cache folder)")


def run(arguments: argparse.Namespace) -> int:
    """Print the state of this installation."""
    state: dict[str, object] = {
        "whyscore": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": packages(),
        "store": _store(arguments),
        "broken": broken(),
    }
    lines = [to_json(state)] if arguments.format == "json" else [f"{line}\n" for line in _lines(state)]
    emit(arguments, lines)
    return 0


def packages() -> dict[str, dict[str, str | None]]:
    """Return the version of every package whyscore can use, by extra ("core" for what it always needs)."""
    found: dict[str, dict[str, str | None]] = {}
    for line in requires("whyscore") or ():
        match = _REQUIREMENT.match(line)
        if match and match[2] not in _HIDDEN:
            found.setdefault(match[2] or "core", {})[match[1]] = _version(match[1])
    return found


def broken() -> dict[str, str]:
    """Return the components that cannot be loaded here, each with the reason."""
    reasons = {}
    for kind in KINDS:
        for name in known(kind):
            try:
                load(kind, name)
            except WhyscoreError as error:
                reasons[f"{kind} {name}"] = str(error)
    return reasons


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _store(arguments: argparse.Namespace) -> dict[str, object]:
    kept = store(arguments)
    if kept is None:
        return {"path": None}
    try:
        segments = sum(held.segments for held in kept.held())
    except StoreError as error:
        return {"path": str(kept.path), "problem": str(error)}
    return {"path": str(kept.path), "bytes": kept.size(), "segments": segments}


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
