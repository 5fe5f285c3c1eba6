"""`whyscore list`: the components there are, what they read and which options they take."""

import argparse
import dataclasses
import inspect
from typing import cast, get_type_hints

from whyscore.cli.output import emit, to_json
from whyscore.errors import UnknownName, WhyscoreError
from whyscore.options import described
from whyscore.protocols import Metric
from whyscore.registry import known, load
from whyscore.registry.names import KINDS
from whyscore.registry.specs import written
from whyscore.types import Inputs

EXAMPLES = """\
examples:
  whyscore list metrics
  whyscore list explainers -v
  whyscore list -f json
"""

PLURALS = {f"{kind}s": kind for kind in KINDS}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the kinds to list."""
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(PLURALS))
    parser.add_argument("-f", "--format", choices=("text", "json"), default="text")
    parser.add_argument("-o", "--output", metavar="FILE", help="write to this file instead of stdout")
    parser.add_argument("-v", "--verbose", action="store_true", help="the whole description of each")


def run(arguments: argparse.Namespace) -> int:
    """Print what there is."""
    for kind in arguments.kinds:
        if kind not in PLURALS:
            raise UnknownName.among("kind of component", kind, PLURALS)
    kinds = [PLURALS[kind] for kind in arguments.kinds or PLURALS]
    cards = {f"{kind}s": [card(kind, name) for name in known(kind)] for kind in kinds if known(kind)}
    if arguments.format == "json":
        emit(arguments, [to_json(cards)])
        return 0
    lines = []
    for title, entries in cards.items():
        lines += [title, *(line for entry in entries for line in _lines(entry, verbose=arguments.verbose)), ""]
    emit(arguments, (f"{line}\n" for line in lines[:-1]))
    return 0


def card(kind: str, name: str) -> dict[str, object]:
    """Return what is known of a component without making one: what it is, what it reads, its options."""
    try:
        factory = load(kind, name)
    except WhyscoreError as error:
        return {"name": name, "missing": str(error)}
    documented = inspect.getdoc(factory) or ""
    return {
        "name": name,
        "about": documented.partition("\n")[0],
        "description": documented,
        **(_reads(factory) if kind == "metric" else {}),
        "options": _options(factory),
    }


def _reads(factory: object) -> dict[str, object]:
    """Return inputs and direction of a metric that can be made without options.

    A metric with a model may have to open it, or even fetch it, to know: nothing is asked of those.
    """
    if not (isinstance(factory, type) and dataclasses.is_dataclass(factory)) or "model" in _options(factory):
        return {}
    try:
        metric = cast("Metric", factory())
    except (TypeError, WhyscoreError):
        return {}
    return {
        "reads": [str(flag.name).lower() for flag in Inputs if flag in metric.inputs],
        "higher_is_better": metric.higher_is_better,
    }


def _options(factory: object) -> dict[str, str]:
    if not (isinstance(factory, type) and dataclasses.is_dataclass(factory)):
        return {}
    hints = get_type_hints(factory)
    return {
        field.name: f"{_kind(field, hints[field.name])}{_default(field)}"
        for field in dataclasses.fields(factory)
        if field.init
    }


def _kind(field: "dataclasses.Field[object]", hint: object) -> str:
    return f"a {field.metadata['kind']}" if "kind" in field.metadata else described(hint)


def _default(field: "dataclasses.Field[object]") -> str:
    value = field.default
    if value is None or isinstance(value, bool | int | float | str):
        return f", default {written(value)}"
    return ""


def _lines(entry: dict[str, object], *, verbose: bool) -> list[str]:
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
