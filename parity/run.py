"""Run an original implementation in a virtual environment of its own, and store its numbers.

python parity/run.py comet
"""

import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).parent


def main(name: str, *arguments: str) -> None:
    """Make the environment where it is missing, then run the script of the original in it."""
    environment = HERE.parent / ".parity" / name
    python = environment / "bin" / "python"
    if not python.exists():
        venv.create(environment, with_pip=True)
        pinned = (HERE / "requirements" / f"{name}.txt").read_text("utf-8").split()
        # torch first and alone: asked for together with others, pip may take a build with gigabytes of GPU packages.
        for packages in ([one for one in pinned if one.startswith("torch==")], pinned):
            if packages:
                subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
    subprocess.run([python, HERE / "originals" / f"run_{name}.py", *arguments], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
