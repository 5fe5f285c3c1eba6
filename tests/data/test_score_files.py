from pathlib import Path

import numpy as np
import pytest

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
