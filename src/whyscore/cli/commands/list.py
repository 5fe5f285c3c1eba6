"""`whyscore list`: the components there are, what they read and which options they take."""

import argparse

from whyscore.analysis.catalogue import LISTED, Card, list_components
from whyscore.cli.options import Parser
from whyscore.cli.output import emit, format_of, to_json

EXAMPLES = """\
examples:
  whyscore list metrics
  whyscore list explainers -v
  whyscore list datasets
  whyscore list -f json
"""

_FORMATS = ("text", "json")


def add_arguments(parser: Parser) -> None:
    """Add the kinds to list."""
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(LISTED))
    parser.add_argument("-f", "--format", choices=_FORMATS, help="default: text, or what the suffix of -o says")
    parser.set_defaults(formats=_FORMATS)
    parser.add_argument("-o", "--output", metavar="FILE", help="write to this file instead of stdout")
    parser.add_argument("-v", "--verbose", action="store_true", help="the whole description of each")


def run(arguments: argparse.Namespace) -> int:
    """Print what there is."""
    cards = {what: list_components(what) for what in dict.fromkeys(arguments.kinds or LISTED)}
    if format_of(arguments) == "json":
        emit(arguments, [to_json(cards)])
        return 0
    lines = []
    for title, entries in cards.items():
        lines += [title, *(line for entry in entries for line in _lines(entry, verbose=arguments.verbose)), ""]
    emit(arguments, (f"{line}\n" for line in lines[:-1]))
    return 0


def _lines(entry: Card, *, verbose: bool) -> list[str]:
    if "missing" in entry:
        return [f"  {entry['name']:<22}(missing) {entry['missing']}"]
    reads = entry.get("reads")
    arrow = "" if reads is None else f" [{', '.join(reads)} {'↑' if entry['higher_is_better'] else '↓'}]"  # type: ignore[arg-type]
    lines = [f"  {entry['name']:<22}{entry['about']}{arrow}"]
    options = entry["options"]
    if verbose and isinstance(options, dict):
        lines += [f"      {line}" for line in str(entry["description"]).splitlines()[1:]]
        lines += [f"      {name}: {about}" for name, about in options.items()]
    return lines
