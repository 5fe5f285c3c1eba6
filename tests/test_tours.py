"""Every command of the guided tours works when it is pasted, in the order of the tour."""

import csv
import re
import shlex
from itertools import islice
from pathlib import Path

import pytest

import whyscore as ws
from whyscore.cli.main import main

ROOT = Path(__file__).resolve().parents[1]
TOURS = sorted((ROOT / "docs" / "tours").glob("*.md"))
GOLD = ROOT / "tests" / "data" / "eval4nlp2021" / "dev" / "et-en"
METRIC = """
def score(hypotheses, references):
    return [float(a == b[0]) for a, b in zip(hypotheses, references)]
"""
XLIFF = '<xliff version="1.2"><file source-language="de" target-language="en"><body>{}</body></file></xliff>'
UNIT = '<trans-unit id="{}"><source>Satz {}</source><target>sentence number {}</target></trans-unit>'


def first(path: Path, count: int) -> list[str]:
    with path.open(encoding="utf-8") as file:
        return list(islice(file, count))


@pytest.fixture
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that the tours speak of, in the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WHYSCORE_STORE", str(tmp_path / "scores.sqlite"))
    entries = [entry for entry in ws.sample().entries if entry.system == "MiSS"][:12]
    references = [entry.segment.references[0] for entry in entries]
    worse = [entry.segment.hypothesis.rsplit(" ", 3)[0] for entry in entries]
    columns = {"ref.txt": references, "prod.txt": worse, "new.txt": [one.segment.hypothesis for one in entries]}
    for name, texts in columns.items():
        Path(name).write_text("".join(f"{text}\n" for text in texts), "utf-8")
    Path("my_metric.py").write_text(METRIC, "utf-8")
    with Path("engines.csv").open("w", encoding="utf-8", newline="") as file:
        rows = [("Source", "Reference", "Engine A", "Engine B")]
        rows += [(f"Satz {k}", *texts) for k, texts in enumerate(zip(*columns.values(), strict=True))]
        csv.writer(file, delimiter=";").writerows(rows)
    Path("job.xlf").write_text(XLIFF.format("".join(UNIT.format(k, k, k) for k in range(12))), "utf-8")
    Path("gold").mkdir()
    for path in GOLD.iterdir():
        Path("gold", path.name).write_text("".join(first(path, 12)), "utf-8")
    texts = zip(*(first(GOLD / f"dev.{name}", 12) for name in ("src", "mt", "pe", "da")), strict=True)
    lines = ["\t".join(text.strip() for text in row) for row in texts]
    Path("judgements.tsv").write_text("\n".join(["source\thypothesis\treference\tda", *lines, ""]), "utf-8")


@pytest.mark.usefixtures("inputs")
@pytest.mark.parametrize("tour", TOURS, ids=lambda tour: tour.stem)
def test_every_command_of_a_tour_works(tour: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```bash\n(.*?)```", tour.read_text("utf-8"), re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    assert lines
    for line in lines:
        program, *arguments = shlex.split(line)
        assert program == "whyscore"
        assert main(arguments) == 0, f"{line}\n{capsys.readouterr().err}"


def test_there_are_four_tours() -> None:
    assert [tour.stem for tour in TOURS] == ["localisation-lead", "organiser", "release-gate", "researcher"]
