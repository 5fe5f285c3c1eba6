"""Draws the terminal picture of the README from a real run on the sample, and the calibration of `qe`.

python scripts/make_pictures.py
"""

import json
from io import StringIO
from pathlib import Path

import altair as alt
from rich.console import Console

import whyscore as ws
from whyscore.cli.commands.explain import show
from whyscore.report.figures import save_chart

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "images"
KINDS = {"edits": "target, changed", "source_edits": "source, changed", "spans": "target, in a span"}
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


def calibration() -> alt.LayerChart:
    """Return the share of wrong words by the probability that `qe` gives."""
    found = json.loads((ROOT / "training" / "calibration.json").read_text("utf-8"))
    rows = [{"kind": KINDS[name], **row} for name, tenths in found.items() for row in tenths]
    points = (
        alt.Chart({"values": rows})
        .mark_line(point=True)
        .encode(
            x=alt.X("probability:Q", title="probability that qe gives", scale=alt.Scale(domain=[0, 1])),
            y=alt.Y("wrong:Q", title="share of wrong words", scale=alt.Scale(domain=[0, 1])),
            color=alt.Color("kind:N", title="words of the"),
        )
    )
    ideal = (
        alt.Chart({"values": [{"x": 0, "y": 0}, {"x": 1, "y": 1}]})
        .mark_line(strokeDash=[4, 4], color="gray")
        .encode(x="x:Q", y="y:Q")
    )
    return alt.layer(ideal, points).properties(width=320, height=320)


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "explain.svg").write_text(explained(), "utf-8")
    save_chart(calibration(), FOLDER, "qe-calibration", formats=["svg"])
