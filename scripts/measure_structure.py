"""Prints how large the house is and how far one segment walks through it.

    python scripts/measure_structure.py

Files, lines, the largest folder, the length of functions (without docstrings), public names, options of all commands;
then, for score, explain, decompose and evaluate on one segment: how many modules of whyscore are crossed, and how often
the file changes from one call to the next.
"""

import ast
import contextlib
import io
import itertools
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import FrameType

import numpy as np

import whyscore
from whyscore.cli.main import VERBS, parser_of

ROOT = Path(whyscore.__file__).parent


def count_lines(paths: list[Path]) -> int:
    """Return the lines of files."""
    return sum(len(path.read_text("utf-8").splitlines()) for path in paths)


def functions() -> list[tuple[int, str]]:
    """Return the length of every function without its docstring, with its place."""
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                doc = node.body[0] if ast.get_docstring(node) else None
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                lines -= ((doc.end_lineno or doc.lineno) - doc.lineno + 1) if doc else 0
                found.append((lines, f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"))
    return sorted(found)


def count_options() -> int:
    """Return how many options all commands have, each command's own counted."""
    total = 0
    for verb in VERBS:
        pending = [parser_of(verb)]
        while pending:
            parser = pending.pop()
            for action in parser._actions:  # noqa: SLF001 - argparse has no public list
                inner = getattr(action, "choices", None)
                if isinstance(inner, dict):
                    pending.extend(inner.values())
                elif action.option_strings:
                    total += 1
    return total


def walk(arguments: list[str], again: list[str]) -> tuple[int, int]:
    """Return how many modules of whyscore a command crosses after its imports, and how often the file changes."""
    from whyscore.cli.main import main  # noqa: PLC0415 - what is measured

    files: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(str(ROOT)) and frame.f_code.co_name != "<module>":
            files.append(name)

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        main(arguments)  # imports and caches
        sys.setprofile(note)
        try:
            main(again)
        finally:
            sys.setprofile(None)
    return len(set(files)), sum(one != other for one, other in itertools.pairwise(files))


def main() -> None:
    """Print everything."""
    sources = sorted(ROOT.rglob("*.py"))
    folders = Counter(path.parent for path in sources if path.name != "__init__.py")
    largest, modules = folders.most_common(1)[0]
    lengths = functions()
    print(f"files {len(sources)}, lines {count_lines(sources):,}")
    for name in ("cli", "analysis", "runs", "experiments", "jobs"):
        if (ROOT / name).exists():
            inside = list((ROOT / name).rglob("*.py"))
            print(f"  {name}: {len(inside)} files, {count_lines(inside):,} lines")
    print(f"largest folder {largest.relative_to(ROOT)}: {modules} modules")
    p90 = np.percentile([length for length, _ in lengths], 90)
    print(f"functions {len(lengths):,}, p90 {p90:.0f} lines, longest {lengths[-1]}")
    print(f"public names {len(whyscore.__all__)}, options {count_options()}")
    texts = ["--text", "-s", "Ich habe einen Hund", "-t", "I have a cat", "-r", "I have a dog", "--store", "none"]
    with tempfile.TemporaryDirectory() as folder:
        commands = {
            "score": ["score", *texts, "-m", "chrf"],
            "explain": ["explain", *texts, "-m", "chrf", "-e", "erasure"],
            "decompose": ["decompose", *texts, "-m", "chrf"],
            "evaluate": ["evaluate", *texts, "-m", "chrf", "-o", f"{folder}/1"],
        }
        for name, arguments in commands.items():
            again = [*arguments[:-1], f"{folder}/2"] if name == "evaluate" else arguments
            modules, switches = walk(arguments, again)
            print(f"{name}: {modules} modules, {switches} switches")


if __name__ == "__main__":
    main()
