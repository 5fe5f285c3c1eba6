"""Draws the terminal pictures of the README from real runs on the sample: `python scripts/make_pictures.py`."""

from io import StringIO
from pathlib import Path

from rich.console import Console

import whyscore as ws
from whyscore.cli.commands.explain import show

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "images"
SYSTEMS = ("DIDI-NLP", "Online-W")
SEGMENT = "437"


def explained() -> str:
    """Return two translations of one sentence, explained, as an SVG of a terminal."""
    console = Console(record=True, width=104, force_terminal=True, color_system="truecolor", file=StringIO())
    chosen = [entry for entry in ws.sample().entries if entry.id == SEGMENT and entry.system in SYSTEMS]
    found = ws.explain([entry.segment for entry in chosen], "chrf", "erasure", sides=["hypothesis"])
    titles = [f"{entry.system} {entry.id} · chrf {one.score:.2f}" for entry, one in zip(chosen, found, strict=True)]
    show(zip(titles, found, strict=True), console, 2)
    return console.export_svg(title="whyscore explain --sample -m chrf -e erasure --side hypothesis")


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "explain.svg").write_text(explained(), "utf-8")
