"""A short coverage-guided round; a longer one is run by hand."""

import subprocess
import sys
from pathlib import Path

import pytest

TARGET = Path(__file__).with_name("atheris_target.py")


def test_a_round_of_coverage_guided_bytes_finds_nothing(tmp_path: Path) -> None:
    pytest.importorskip("atheris", reason="atheris is not installed: pip install atheris (Linux and macOS)")
    command = [sys.executable, str(TARGET), "-runs=3000", "-max_total_time=10", "-seed=1", "-max_len=400"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Done" in done.stderr
