"""`whyscore learn-lexicon`: a lexicon from the command line, used by evidence; and what can go wrong."""

from pathlib import Path

import pytest

import whyscore as ws
from support.cli import Run
from whyscore.models.lexicon import read_lexicon

SOURCES, TARGETS = "der Hund schläft\ndas Haus\n", "the dog sleeps\nthe house\n"


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> None:
    """Parallel text in the working folder."""
    (tmp_path / "src.txt").write_text(SOURCES, "utf-8")
    (tmp_path / "tgt.txt").write_text(TARGETS, "utf-8")


@pytest.mark.parametrize("name", ["l.npz", "l.tsv"])
def test_a_lexicon_is_that_of_python_and_serves_evidence(run: Run, tmp_path: Path, name: str) -> None:
    done = run("learn-lexicon", "-s", "src.txt", "-t", "tgt.txt", "-o", name)
    assert done.code == 0
    expected = ws.learn_lexicon(SOURCES.splitlines(), TARGETS.splitlines())
    assert f"{name}: {len(expected.pairs)} pairs of words, digest {expected.digest}" in done.err
    found = read_lexicon(tmp_path / name)
    assert found.table(["dog"], ["hund"]) == pytest.approx(expected.table(["dog"], ["hund"]), rel=1e-5)
    explained = run(
        *("explain", "-s", "src.txt", "-t", "tgt.txt", "-l", "de-en", "-m", "xbertscore"),
        *("-e", f"evidence(lexicon='{name}')", "--side", "hypothesis", "--store", "none", "-f", "jsonl"),
    )
    assert explained.code == 0, explained.err
    assert '"importance"' in explained.out


def test_texts_of_different_length_are_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "tgt.txt").write_text("the dog\n", "utf-8")
    done = run("learn-lexicon", "-s", "src.txt", "-t", "tgt.txt", "-o", "l.npz")
    assert done.code == 3
    assert "2 sources, 1 targets: every line needs its counterpart" in done.err
