"""Writes the pages of docs/reference from the program itself.

python scripts/make_docs.py            writes them
python scripts/make_docs.py --check    names those that are not what would be written
"""

import argparse
import contextlib
import io
import os
import sys
from pathlib import Path

from whyscore.cli.main import VERBS, main, parser_of

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"


def command_line() -> str:
    """Return the page of all commands: what `-h` prints, verb by verb."""
    parts = ["# Commands\n\nMade from the program by `make docs`.\n"]
    for verb in VERBS:
        parser = parser_of(verb)
        parts.append(f"\n## whyscore {verb}\n\n```text\n{parser.format_help().rstrip()}\n```\n")
        for name, inner in _inner(parser):
            parts.append(f"\n### whyscore {verb} {name}\n\n```text\n{inner.format_help().rstrip()}\n```\n")
    return "".join(parts)


def _inner(parser: argparse.ArgumentParser) -> list[tuple[str, argparse.ArgumentParser]]:
    """Return the parsers of what a verb can be asked to do; aliases are left out."""
    found: dict[int, tuple[str, argparse.ArgumentParser]] = {}
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


def pages() -> dict[str, str]:
    """Return every generated page by its file name."""
    os.environ.update(COLUMNS="110", NO_COLOR="1")
    for name in [name for name in os.environ if name.startswith("WHYSCORE_")]:
        del os.environ[name]
    return {"commands.md": command_line(), "components.md": components()}


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
