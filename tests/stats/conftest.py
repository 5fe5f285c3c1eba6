"""Real matrices of scores."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from whyscore.stats.matrices import from_rows, mean_rating

Matrices = Callable[[str], NDArray[np.float64]]


@pytest.fixture(scope="session")
def summeval(shipped: Path) -> Matrices:
    """SummEval by column: 16 systems x 100 documents; experts are the mean of their raw ratings."""
    with (shipped / "summeval" / "scores.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    systems, documents = [row["system"] for row in rows], [row["instance_id"] for row in rows]

    def value(row: dict[str, str], column: str) -> float:
        raw = f"{column}_raw"
        return mean_rating([float(one) for one in row[raw].split("|")]) if raw in row else float(row[column])

    return lambda column: from_rows(systems, documents, [value(row, column) for row in rows]).values


@pytest.fixture(scope="session")
def expected(shipped: Path) -> dict[str, dict[str, dict[str, dict[str, float]]]]:
    """The golden numbers."""
    found: dict[str, dict[str, dict[str, dict[str, float]]]] = json.loads(
        (shipped / "statistics" / "expected.json").read_text("utf-8")
    )
    return found


@pytest.fixture(scope="session")
def newstest(shared: Path) -> Matrices:
    """The WMT20 en-de scores by column: 7 machine translation systems x 1418 segments."""
    with (shared / "mqm" / "newstest2020_ende_mqm_and_metrics.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if not row["system"].startswith("Human")]
    systems, segments = [row["system"] for row in rows], [int(row["seg_id"]) for row in rows]
    return lambda column: from_rows(systems, segments, [float(row[column] or "nan") for row in rows]).values
