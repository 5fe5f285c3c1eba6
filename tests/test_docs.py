"""What the documentation says is true: examples run, generated pages are fresh, every verb is described."""

import doctest
import importlib
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from support.cli import run_command
from whyscore.cli.main import VERBS

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src" / "whyscore"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(language: str) -> list[tuple[str, str]]:
    fence = re.compile(rf"```{language}\n(.*?)```", re.DOTALL)
    return [(str(page.relative_to(ROOT)), block) for page in PAGES for block in fence.findall(page.read_text("utf-8"))]


def commands() -> list[tuple[str, str]]:
    """Every command of the pages that can run on the data that ships."""
    lines = [(page, line) for page, block in blocks("bash") for line in block.splitlines()]
    ours = [(page, line) for page, line in lines if line.startswith("whyscore ")]
    tours = "docs/tours/"  # test_tours.py runs them in order
    return [pair for pair in ours if ("--sample" in pair[1] or "--text" in pair[1]) and not pair[0].startswith(tours)]


@pytest.mark.parametrize(("page", "code"), blocks("python"))
def test_python_examples_run(page: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, page, "exec"), {"__name__": page})


@pytest.mark.parametrize(("page", "line"), commands())
def test_commands_of_the_pages_run(page: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the store is that of all tests: pages ask for the same scores
    done = run_command(*shlex.split(line, comments=True)[1:])
    assert done.code == 0, f"{page}: {line}\n{done.err}"


def with_examples() -> list[str]:
    """The modules whose docstrings hold examples."""
    paths = [path for path in sorted(SOURCES.rglob("*.py")) if ">>> " in path.read_text("utf-8")]
    return [
        ".".join(path.relative_to(SOURCES.parent).with_suffix("").parts).removesuffix(".__init__") for path in paths
    ]


@pytest.mark.parametrize("module", with_examples())
def test_examples_of_docstrings_run(module: str) -> None:
    done = doctest.testmod(importlib.import_module(module), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert done.attempted > 0
    assert done.failed == 0


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.md"])
def test_files_that_a_page_names_exist(page: str) -> None:
    named = re.findall(r"`([\w.]+/[\w./-]*)`", (ROOT / page).read_text("utf-8"))
    wanted = [name.strip("/").removesuffix(".py") for name in named if name != "whyscore/1"]  # a schema's name
    folders = [
        path for name in ("src", "tests", "docs", "scripts") for path in (ROOT / name, *(ROOT / name).rglob("*"))
    ]
    stems = [path.as_posix().removesuffix(".py") for path in folders]
    assert wanted
    assert [name for name in wanted if not any(stem.endswith(f"/{name}") for stem in stems)] == []


def test_every_package_is_described() -> None:
    table = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    rooms = {path.relative_to(SOURCES).parts[0].removesuffix(".py") for path in SOURCES.rglob("*.py")}
    assert {room for room in rooms if not re.search(rf"\| `{room}/?` \|", table)} <= {"__init__", "__main__", "version"}


def test_generated_pages_are_fresh() -> None:
    # In a process of its own: names that other tests registered would show up in the lists.
    command = [sys.executable, str(ROOT / "scripts" / "make_docs.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"run make docs: {done.stderr}"


def test_every_verb_is_described() -> None:
    told = "\n".join(page.read_text("utf-8") for page in PAGES if page.parent.name != "reference")
    missing = [verb for verb in VERBS if f"whyscore {verb}" not in told]
    assert missing == []


def test_links_between_pages_lead_somewhere() -> None:
    link = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
    links = [(page, target) for page in PAGES for target in link.findall(page.read_text("utf-8"))]
    assert [f"{page.name}: {target}" for page, target in links if not (page.parent / target).exists()] == []
