"""What stdout cannot encode is escaped."""

import os
import subprocess
import sys


def test_an_encoding_without_arrows_gets_escapes() -> None:
    command = [sys.executable, "-m", "whyscore", "score", "--text", "-t", "ä cat", "-r", "ä dog", "-m", "chrf", "-q"]
    settings = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\\u2191" in done.stdout
    assert done.stdout.isascii()
