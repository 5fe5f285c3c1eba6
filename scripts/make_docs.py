"""Writes the pages of docs/reference from the program itself.

python scripts/make_docs.py            writes them
python scripts/make_docs.py --check    names those that are not what would be written
"""

import argparse
import contextlib
import dataclasses
import functools
import inspect
import io
import os
import re
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import cast

import whyscore as ws
from whyscore.cli.main import VERBS, main, parser_of
from whyscore.cli.options import Parser
from whyscore.settings import REQUIRED, describe_type, settings_of

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"
_PYTHON = """# Python

Made from the program by `make docs`. `import whyscore as ws` gives the names below. The functions take their settings
as keyword arguments, or all of them as one object by `settings=`.
"""
PLAIN = (str, int, float, bool, tuple, type(None))
MEMBERS = (types.FunctionType, property, classmethod, functools.cached_property)


def command_line() -> str:
    """Return the page of all commands: what `--help-all` prints, verb by verb."""
    parts = ["# Commands\n\nMade from the program by `make docs`.\n"]
    for verb in VERBS:
        parser = parser_of(verb)
        parts.append(f"\n## whyscore {verb}\n\n```text\n{parser.format_full_help().rstrip()}\n```\n")
        for name, inner in _inner(parser):
            parts.append(f"\n### whyscore {verb} {name}\n\n```text\n{inner.format_full_help().rstrip()}\n```\n")
    return "".join(parts)


def _inner(parser: Parser) -> list[tuple[str, Parser]]:
    """Return the parsers of what a verb can be asked to do; aliases are left out."""
    found: dict[int, tuple[str, Parser]] = {}
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to ask
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - likewise
            for name, inner in action.choices.items():
                found.setdefault(id(inner), (name, inner))
    return list(found.values())


def components() -> str:
    """Return the page of all components with their options."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        main(["list", "-v"])
    return f"# Components\n\nMade from the program by `make docs`.\n\n```text\n{out.getvalue().rstrip()}\n```\n"


def python() -> str:
    """Return the page of the public names: what they take and what they are for."""
    names = [name for name in (*ws.__all__, "list") if name != "__version__"]
    things = {name: ws.report if name == "report" else getattr(ws, name) for name in sorted(names, key=str.lower)}
    functions = {name: thing for name, thing in things.items() if not isinstance(thing, type)}
    classes = {name: thing for name, thing in things.items() if isinstance(thing, type)}
    parts = [
        _PYTHON,
        "\n## Functions\n",
        *(_function(name, thing) for name, thing in functions.items()),
        "\n## Classes\n",
        *(_class(name, thing) for name, thing in classes.items()),
    ]
    return "".join(parts)


def _function(name: str, thing: object) -> str:
    work = cast("Callable[..., object]", ws.build_report if name == "report" else thing)
    kind = getattr(work, "settings", None)
    shown = f"\n### ws.{name}\n\n```text\n{name}{_signature(work, kind)}\n```\n\n{_described(work)}\n"
    return shown if kind is None else f"{shown}\n{_settings(kind)}"


def _signature(work: Callable[..., object], kind: type | None) -> str:
    """Return what a function takes; settings are left to the table below."""
    named = {setting.name for setting in settings_of(kind)} if kind else set()
    whole = inspect.signature(work)
    kept = [
        item.replace(annotation=inspect.Parameter.empty)
        for item in whole.parameters.values()
        if item.name not in named | {"settings"}
    ]
    told = re.sub(
        r"<[^<>]*>|\w+\([^()]*\)",
        "...",
        str(whole.replace(parameters=kept, return_annotation=inspect.Signature.empty))[1:-1],
    )
    return f"({', '.join(part for part in (told, '**settings' if kind else '') if part)})"


def _settings(kind: type) -> str:
    rows = [
        f"| `{one.name}` | {_cell(describe_type(one.type))} | {_cell(_default(one.default))} | "
        f"{_cell(one.option.help)} |"
        for one in settings_of(kind)
    ]
    return "\n".join(["| setting | what it is | default | meaning |", "|---|---|---|---|", *rows]) + "\n"


def _default(value: object) -> str:
    return (
        "required" if value is REQUIRED else f"`{value!r}`" if isinstance(value, PLAIN) else f"`{type(value).__name__}`"
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _class(name: str, kind: type) -> str:
    fields = [field.name for field in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []
    members = [
        (member, inspect.getdoc(value) or "")
        for member, value in inspect.getmembers_static(kind)
        if not member.startswith("_") and member not in fields and isinstance(value, MEMBERS)
    ]
    listed = "".join(f"- `{member}`: {about.partition(chr(10))[0]}\n" for member, about in members)
    shape = f"```text\n{name}({', '.join(fields)})\n```\n\n" if fields else ""
    return f"\n### ws.{name}\n\n{shape}{_described(kind)}\n" + (f"\n{listed}" if listed else "")


def _described(thing: object) -> str:
    """Return a docstring as Markdown: arguments become a list, examples a block."""
    text = inspect.getdoc(thing) or ""
    text = re.sub(r"^Args:$", "", text, flags=re.MULTILINE)
    text = re.sub(r"^    (\w+): ", r"- `\1`: ", text, flags=re.MULTILINE)
    text = re.sub(
        r"((?:^(?:>>>|\.\.\.).*\n?(?:^(?!>>>|\.\.\.|$).*\n?)*)+)", r"```pycon\n\1\n```\n", text, flags=re.MULTILINE
    )
    return re.sub(r"\n{2,}(?=```$)", "\n", re.sub(r"\n{3,}", "\n\n", text), flags=re.MULTILINE).strip()


def pages() -> dict[str, str]:
    """Return every generated page by its file name."""
    os.environ.update(COLUMNS="110", NO_COLOR="1")
    for name in [name for name in os.environ if name.startswith("WHYSCORE_")]:
        del os.environ[name]
    return {"commands.md": command_line(), "components.md": components(), "python.md": python()}


def stale() -> list[str]:
    """Return the pages that are missing or differ from what would be written."""
    return [name for name, text in pages().items() if not _same(FOLDER / name, text)]


def _same(path: Path, text: str) -> bool:
    return path.exists() and path.read_text("utf-8") == text


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(", ".join(stale()) or 0)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for page, content in pages().items():
        (FOLDER / page).write_text(content, "utf-8")
