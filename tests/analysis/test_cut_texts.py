"""Texts that a model cannot read whole are told in the records of their scores."""

import json
from pathlib import Path

import pytest

from support import tiny_models
from support.cli import Run
from whyscore.analysis.score import cut_texts
from whyscore.metrics.matching.bertscore import BertScore
from whyscore.types import Segment

SHORT = "the cat sat"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("torch", reason="the extra 'neural' is not installed")
    place = tmp_path_factory.mktemp("tiny") / "model"
    tiny_models.save(place, "bert", "BertModel", texts=[SHORT], limit=8)
    return str(place)


def pieces(number: int) -> str:
    """Return a text of that many pieces: every character is one."""
    return " ".join(["t"] * number)


def test_one_piece_beyond_the_limit_is_cut_and_one_within_is_not(folder: str) -> None:
    # Six pieces fit between the two special ones.
    segments = [Segment(pieces(6), references=(pieces(6),)), Segment(pieces(7), references=("t", pieces(9)))]
    metric = BertScore(folder, 2, device="cpu")
    assert cut_texts(metric, segments) == {1: {"hypothesis": [6, 7], "reference 2": [6, 9]}}
    assert cut_texts(BertScore(folder, 2, device="cpu", long="window"), segments) == {}


@pytest.mark.parametrize("metric", ["chrf", "xbertscore", "sbert"])
def test_what_reads_everything_cuts_nothing(metric: str) -> None:
    assert cut_texts(metric, [Segment("a " * 2000, "b", ("c",))]) == {}


def test_record_and_stderr_tell_of_it(run: Run, folder: str, tmp_path: Path) -> None:
    texts = tmp_path / "t.txt"
    texts.write_text(f"t\n{pieces(7)}\n", "utf-8")
    spec = f"bertscore(model={folder!r}, layer=2, device='cpu')"
    given = ("score", "-t", str(texts), "-r", str(texts), "--segments", "-f", "jsonl", "--store", "none")
    code, out, err = run(*given, "-m", spec)
    assert code == 0, err
    header, first, second = map(json.loads, out.splitlines())
    assert "truncated" not in first
    assert second["truncated"] == {"hypothesis": [6, 7], "reference 1": [6, 7]}
    assert all("trunc:8" in signature for signature in header["signatures"].values())
    assert "longer than the 8 pieces the model reads" in err
    code, out, err = run(*given, "-m", spec.replace(")", ", long='error')"))
    assert (code, out) == (3, "")
    assert "has 7 pieces, the model reads 6" in err
