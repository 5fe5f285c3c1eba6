import json
from pathlib import Path

import numpy as np
import pytest

from support.cli import Run
from whyscore.data.files import read_lines
from whyscore.data.formats.word_lines import numbers
from whyscore.stats.coefficients import kernel


def test_score_files_of_eval4nlp_2023(shipped: Path) -> None:
    columns = []
    for name in ("dev_gold", "example_submission_guanaco"):
        path = shipped / "eval4nlp2023_summarization" / f"{name}.seg.scores"
        values, findings = numbers(read_lines(path), str(path))
        assert not any(finding.error for finding in findings)
        columns.append(values)
    gold, predicted = columns
    assert len(gold) == len(predicted) == 1280
    assert len(np.unique(predicted)) == 12
    wanted = {"kendall_b": 0.270749, "pearson": 0.307070, "spearman": 0.350254}
    for name, value in wanted.items():
        assert float(kernel(name)(predicted, gold)) == pytest.approx(value, abs=1e-6)  # type: ignore[arg-type]


def test_gold_and_a_submission_of_eval4nlp_2023_are_compared(shipped: Path, run: Run, tmp_path: Path) -> None:
    folder = shipped / "eval4nlp2023_summarization"
    gold, handed_in = folder / "dev_gold.seg.scores", folder / "example_submission_guanaco.seg.scores"
    command = ["metaeval", "scores", gold, "--scores", handed_in, "--level", "global", "--coefficient", "kendall"]
    found = run(*command, "-f", "jsonl")
    assert found.code == 0, found.err
    record = next(one for one in map(json.loads, found.out.splitlines()) if one.get("metric"))
    assert record["metric"] == "example_submission_guanaco"
    assert record["value"] == pytest.approx(0.270749, abs=1e-6)
    short = tmp_path / "short.seg.scores"
    short.write_text("1\n2\n", encoding="utf-8")
    assert "has 2 lines for 1280 rows" in run("metaeval", "scores", gold, "--scores", short).err
