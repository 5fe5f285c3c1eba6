"""`--systems` names the systems of files, and chooses among those of a data set."""

import csv
import io
from pathlib import Path

import pytest

import whyscore as ws
from support.cli import Run
from whyscore.analysis.common import of_systems
from whyscore.errors import UnknownName

SAMPLE = ("--sample", "-m", "token_f1", "--draws", "0", "--store", "none", "-q", "-f", "tsv")


def systems(out: str) -> list[str]:
    """The first column of a table."""
    return [row["system"] for row in csv.DictReader(io.StringIO(out), delimiter="\t")]


def test_the_sample_is_cut_down_to_the_systems_that_are_named_in_that_order(run: Run) -> None:
    everything = run("score", *SAMPLE).out
    chosen = run("score", *SAMPLE, "--systems", "Online-W", "MiSS").out
    assert systems(chosen) == ["Online-W", "MiSS"]
    assert set(chosen.splitlines()) < set(everything.splitlines())


@pytest.mark.parametrize("verb", ["score", "validate"])
def test_an_unknown_system_is_answered_with_those_there_are(verb: str, run: Run) -> None:
    metric = ["-m", "chrf"] if verb == "score" else []
    done = run(verb, "--sample", "--systems", "MiSs", *metric)
    assert done.code == 2
    assert "named 'MiSs'. Did you mean 'MiSS'? Known: Borderline, DIDI-NLP, Facebook-AI, MiSS, Online-W" in done.err


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "data.tsv"
    rows = ["id\tsystem\thyp\tref", "0\tA\ta cat\ta cat", "0\tB\ta\u00a0dog\ta cat", "1\tA\tx\ty", "1\tB\tx\ty"]
    path.write_text("".join(f"{row}\n" for row in rows), "utf-8")
    return path


def test_a_data_file_is_cut_down_too(table: Path, run: Run) -> None:
    options = ["-m", "token_f1", "--segments", "--store", "none", "-q", "-f", "tsv"]
    assert systems(run("score", table, *options, "--systems", "B").out) == ["B", "B"]


def test_findings_keep_their_lines_in_another_order(table: Path) -> None:
    data = ws.read(table)
    turned = of_systems(data, ["B", "A", "B"])
    assert turned.systems == ("B", "A")
    assert [entry.id for entry in turned.entries] == ["0", "1", "0", "1"]
    assert turned.origin is not None
    assert list(turned.origin.lines) == [3, 5, 2, 4]
    assert any(f"{table}:3" in str(finding) for finding in ws.validate(turned))


def test_data_without_lines_are_cut_down_too() -> None:
    data = ws.sample()
    part = of_systems(data, data.systems[:1])
    assert part.entries == data.of(data.systems[0]).entries
    with pytest.raises(UnknownName, match=r"no system of .* named 'none'"):
        of_systems(data, ["none"])
