"""Imports flow one way, and a light door stays light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import whyscore

ROOT = Path(whyscore.__file__).parent

LAYERS = [
    {"version", "errors"},
    {"marking", "options"},
    {"settings"},
    {"types"},
    {"protocols"},
    {"text", "stats", "aggregate", "registry"},
    {"present"},
    {"models"},
    {"scoring", "taggers", "data"},
    {"explainers"},
    {"metrics"},
    {"analysis"},
    {"runs"},
    {"report"},
    {"web"},
    {"cli"},
]
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}
FREE = {"testing", "experiments", "__init__", "__main__"}


def room(path: Path) -> str:
    return path.relative_to(ROOT).with_suffix("").parts[0]


def upstream_imports(path: Path) -> list[str]:
    """Every import that goes to the right, or to a sibling room."""
    own = room(path)
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{a.name}" if node.module == "whyscore" else node.module or "" for a in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] != "whyscore" or len(parts) < 2 or parts[1] == own:
                continue
            if LEVEL[parts[1]] >= LEVEL[own]:
                found.append(f"{path}:{node.lineno}: {own} imports {parts[1]}")
    return found


MODULES = [path for path in sorted(ROOT.rglob("*.py")) if room(path) not in FREE]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_from_its_left(path: Path) -> None:
    assert upstream_imports(path) == []


def test_every_room_has_a_layer() -> None:
    rooms = {room(path) for path in ROOT.rglob("*.py")} - FREE
    assert rooms <= set(LEVEL)


@pytest.mark.parametrize("command", ["import whyscore", "from whyscore.cli.main import main; main(['--help'])"])
def test_the_door_loads_nothing_heavy(command: str) -> None:
    heavy = ("torch", "transformers", "spacy", "altair", "scipy", "sacrebleu", "pandas", "lime", "shap")
    check = f"{command}; import sys; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_every_public_name_can_be_had() -> None:
    assert whyscore.__all__ == sorted(whyscore.__all__)
    for name in whyscore.__all__:
        assert getattr(whyscore, name) is not None
    assert sorted(dir(whyscore)) == sorted(whyscore.__all__)


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'scroe'"):
        whyscore.scroe  # type: ignore[attr-defined]  # noqa: B018
