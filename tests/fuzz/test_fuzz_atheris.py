"""The targets of the fuzzer, driven by chance everywhere, and by coverage where atheris is installed.

`make fuzz` runs the latter for longer. Atheris has wheels for Linux alone; without it nothing of the harness goes
untried, as the first test drives the same functions.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from support.fuzz_targets import TARGETS, mutated

SCRIPT = Path(__file__).with_name("atheris_target.py")


@pytest.mark.slow
@pytest.mark.parametrize(("target", "number"), [("spec", 400), ("spans", 400), ("readers", 60), ("parsers", 250)])
def test_bytes_changed_by_chance_find_nothing(target: str, number: int) -> None:
    inputs = list(mutated(target, number))
    assert len(inputs) > number
    for data in (b"", b"\x00", *inputs):
        TARGETS[target](data)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_a_round_of_coverage_guided_bytes_finds_nothing(target: str, tmp_path: Path) -> None:
    pytest.importorskip("atheris", reason="atheris is not installed: pip install 'whyscore[fuzz]' (Linux)")
    command = [sys.executable, str(SCRIPT), target, "-runs=500", "-max_total_time=3", "-seed=1", "-max_len=600"]
    command.append("-rss_limit_mb=0")  # its measure of memory begins with that of the process that starts it
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Done" in done.stderr
