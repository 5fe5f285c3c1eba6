"""Run the commands of docs/papers and write their output below them.

    python scripts/make_papers.py              # every page
    python scripts/make_papers.py bmx muler    # these

A block that begins with ```console holds commands, each on lines that begin with `$ ` (`> ` where one goes on), and
what they print. The script runs the commands of a page in order, in the root of the project, and writes what they print
to stdout. `$D` is the folder of the shared data, `$OUT` an empty folder for the page. A block that begins with
```console skip stays as it is: it needs weights or data that do not come with the project.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAPERS = ROOT / "docs" / "papers"
_BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)


def commands(block: str) -> Iterator[list[str]]:
    """Yield the lines of each command of a block."""
    command: list[str] = []
    goes_on = False
    for line in block.splitlines():
        if line.startswith("$ "):
            if command:
                yield command
            command = [line]
        elif goes_on and line.startswith("> "):
            command.append(line)
        goes_on = bool(command) and line is command[-1]
    if command:
        yield command


def run(command: Sequence[str], environment: dict[str, str]) -> str:
    """Return what a command prints to stdout."""
    script = "\n".join(line[2:] for line in command)
    done = subprocess.run(  # noqa: S603 - the commands of the project's own pages
        ["/bin/bash", "-c", script],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{script}\nended with {done.returncode}:\n{done.stderr}")
    return done.stdout.replace(environment["OUT"], "$OUT")


def refresh(page: Path) -> None:
    """Write what the commands of a page print below them."""
    with tempfile.TemporaryDirectory() as folder:
        places = {"D": os.path.relpath(ROOT.parent / "shared" / "data", ROOT), "OUT": folder, "COLUMNS": "100"}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = os.environ | places | {"PATH": path, "WHYSCORE_STORE": f"{folder}/store.sqlite"}

        def answer(block: re.Match[str]) -> str:
            parts = ["\n".join(command) + "\n" + run(command, environment) for command in commands(block[1])]
            return "```console\n" + "".join(part.rstrip("\n") + "\n" for part in parts) + "```"

        page.write_text(_BLOCK.sub(answer, page.read_text("utf-8")), "utf-8")


def main() -> None:
    """Refresh the pages named, or all."""
    names = sys.argv[1:] or [page.stem for page in sorted(PAPERS.glob("*.md"))]
    for name in names:
        refresh(PAPERS / f"{name}.md")


if __name__ == "__main__":
    main()
