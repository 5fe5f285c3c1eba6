"""A fault of whyscore itself is one line too, and nothing about it is lost."""

import re
import tempfile
from pathlib import Path

import pytest

from support.cli import Run
from whyscore.cli.commands import score
from whyscore.cli.main import main


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("WHYSCORE_DEBUG")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def fail_with(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def run(_: object) -> int:
        raise error

    monkeypatch.setattr(score, "run", run)


@pytest.mark.usefixtures("quiet")
def test_a_fault_is_one_line_and_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: Run) -> None:
    fail_with(monkeypatch, RuntimeError("no such thing\nmore"))
    done = run("score", "--sample", "-m", "chrf")
    assert done.code == 1
    [line] = done.err.splitlines()
    assert line.startswith("whyscore: error: internal error, please report it (RuntimeError: no such thing)")
    [file] = tmp_path.glob("whyscore-fault-*.txt")
    assert str(file) in line
    assert re.search(r"'score', '--sample'.*Traceback.*RuntimeError", file.read_text("utf-8"), re.DOTALL)


@pytest.mark.usefixtures("quiet")
def test_without_room_for_a_file_it_says_how_to_see_the_fault(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: Run
) -> None:
    fail_with(monkeypatch, RuntimeError("no such thing"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    done = run("score", "--sample", "-m", "chrf")
    assert done.code == 1
    assert "Run it again with WHYSCORE_DEBUG=1 and report what you see" in done.err


@pytest.mark.usefixtures("quiet")
def test_too_little_memory_is_no_fault(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    fail_with(monkeypatch, MemoryError())
    done = run("score", "--sample", "-m", "chrf")
    assert done.code == 1
    said = "whyscore: error: not enough memory: give fewer texts at a time\n"
    assert done.err == said


def test_a_fault_is_shown_as_it_is_where_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(monkeypatch, RuntimeError("no such thing"))
    with pytest.raises(RuntimeError, match="no such thing"):
        main(["score", "--sample", "-m", "chrf"])
