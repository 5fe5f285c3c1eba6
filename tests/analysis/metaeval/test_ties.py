"""Metrics with few distinct scores."""

import json
from pathlib import Path

import numpy as np
import pytest

import whyscore as ws
from support.cli import Run
from whyscore.analysis.metaeval.scores import Ties, ties_of
from whyscore.data.files import read_lines
from whyscore.types import Dataset, Entry, Segment


def test_tied_pairs_are_counted_by_hand() -> None:
    # Of 1 1 1 2 3: three of ten pairs are equal.
    assert ties_of(np.array([[1.0, 1.0, 1.0], [2.0, 3.0, np.nan]])) == Ties(5, 3, 0.3)
    assert ties_of(np.array([[1.0]])) == Ties(1, 1, 0.0)
    assert ties_of(np.full((2, 2), np.nan)) == Ties(0, 0, 0.0)


@pytest.mark.parametrize(("values", "heavy"), [(19, True), (25, False), (1, False)])
def test_ties_are_heavy_from_one_pair_in_twenty_on(values: int, heavy: bool) -> None:  # noqa: FBT001 - a parameter
    assert ties_of(np.arange(1000.0)[None] % values).heavy is heavy


def judged(scores: np.ndarray) -> tuple[str, ...]:
    entries = tuple(Entry(str(k), "s", Segment("x"), {"da": k % 7}) for k in range(len(scores)))
    options = {"level": "global", "draws": 0, "with_sentinels": False}
    return ws.metaevaluate(Dataset("d", entries), {"mine": scores}, human="da", **options).notes


def test_a_metric_without_heavy_ties_gets_no_note() -> None:
    assert not [note for note in judged(np.arange(100.0)) if "ties" in note]
    assert [note for note in judged(np.arange(100.0) % 4) if "mine has heavy ties: 4 distinct values among 100" in note]


def test_the_twelve_values_of_a_submission_are_reported(shipped: Path, run: Run, tmp_path: Path) -> None:
    folder = shipped / "eval4nlp2023_summarization"
    gold, guanaco = (
        read_lines(folder / f"{name}.seg.scores").texts for name in ("dev_gold", "example_submission_guanaco")
    )
    table = tmp_path / "scores.csv"
    rows = [f"{k},{one},{other}" for k, (one, other) in enumerate(zip(gold, guanaco, strict=True))]
    table.write_text("\n".join(["id,gold,guanaco", *rows]) + "\n", "utf-8")
    command = ["metaeval", "scores", str(table), "--system", "", "--human", "gold", "--metric", "guanaco"]
    command += ["--level", "global", "--draws", "0", "-f", "json", "--store", "none"]
    found = {}
    for coefficient in ("kendall", "pearson", "spearman"):
        done = run(*command, "--coefficient", coefficient)
        assert done.code == 0
        result = json.loads(done.out)
        [row] = [row for row in result["metrics"] if row["metric"] == "guanaco"]
        found[coefficient] = row["value"]
        assert (row["n"], row["distinct"]) == (1280, 12)
        [note] = [note for note in result["notes"] if "ties" in note]
        assert note.startswith("guanaco has heavy ties: 12 distinct values among 1,280 scores, so ")
        assert f"note: {note}\n" in done.err
    assert found == {
        "kendall": pytest.approx(0.270749, abs=1e-6),
        "pearson": pytest.approx(0.307070, abs=1e-6),
        "spearman": pytest.approx(0.350254, abs=1e-6),
    }
