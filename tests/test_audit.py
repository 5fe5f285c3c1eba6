"""The audit of packages stops for a known fault, and never passes a list it could not read for a clean one."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "scripts" / "audit.py"


@pytest.fixture(scope="module")
def audit() -> ModuleType:
    spec = importlib.util.spec_from_file_location("audit", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def answer(monkeypatch: pytest.MonkeyPatch, stdout: str, stderr: str = "") -> None:
    def run(*_: object, **__: object) -> "subprocess.CompletedProcess[str]":
        return subprocess.CompletedProcess([sys.executable], 1, stdout, stderr)

    monkeypatch.setattr(subprocess, "run", run)


def test_a_known_fault_stops(
    audit: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer(
        monkeypatch,
        '{"dependencies": [{"name": "a", "version": "1", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2"]}]}]}',
    )
    assert audit.main() == 1
    assert capsys.readouterr().out == "a 1: PYSEC-1, mended in 2\naudit: 1 of 1 packages looked up\n"


def test_packages_that_are_not_listed_are_counted_and_not_called_clean(
    audit: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer(
        monkeypatch,
        '{"dependencies": [{"name": "a", "version": "1", "vulns": []}, {"name": "b", "skip_reason": "not found"}]}',
    )
    assert audit.main() == 0
    said = "audit: 1 of 2 packages looked up; the others are not in the list that was reached\n"
    assert capsys.readouterr().out == said


def test_without_a_network_it_says_that_nothing_was_looked_up(
    audit: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer(monkeypatch, "", "Traceback\nConnectionError: no route")
    assert audit.main() == 0
    said = capsys.readouterr().out
    assert said.startswith("audit: the list of known faults cannot be reached, nothing was looked up")
    assert "no route" in said
