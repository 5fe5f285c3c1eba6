"""Charts of a decomposition: the data behind them, and that they can be drawn."""

from pathlib import Path

import numpy as np
import pytest

from whyscore.analysis.decompose.decompose import decompose
from whyscore.analysis.decompose.result import Decompositions
from whyscore.analysis.decompose.settings import DecomposeSettings
from whyscore.data.formats.text import from_texts
from whyscore.errors import UserError
from whyscore.report.figures.decompose import (
    best_rows,
    charts,
    discrepancy_rows,
    draw,
    frequency_rows,
    group_rows,
    measure_rows,
    pearson,
    usage_rows,
)
from whyscore.types import Dataset, Entry, Segment

REFERENCES = ["he saw 3 cats in the garden", "she had 12 dogs in her house", "it cost 7 coins at the fair"]
SYSTEMS = {
    "right": REFERENCES,
    "mixed": [REFERENCES[0], REFERENCES[1].replace("12", "13"), REFERENCES[2]],
    "wrong": [text.replace("the", "a").replace("3", "4") for text in REFERENCES],
}


@pytest.fixture(scope="module")
def found() -> Decompositions:
    data = from_texts(SYSTEMS, REFERENCES)
    return decompose(data, "bleu(smoothing='exp')", features=["number", "url"], scorers=[len], draws=50)


def test_three_systems_are_enough_to_compare_measures(found: Decompositions) -> None:
    rows = measure_rows(found)
    assert {(row["feature"], row["measure"], row["n"]) for row in rows} == {
        ("number", measure, 3) for measure in ("sigma_all", "sigma", "range")
    }
    two = [row for row in found if row.system != "wrong"]
    assert measure_rows(two) == []


def test_a_correlation_needs_variation() -> None:
    assert pearson(np.array([1.0, 1.0]), np.array([1.0, 2.0])) is None
    assert pearson(np.array([1.0, 2.0]), np.array([3.0, 5.0])) == pytest.approx(1.0)


def test_fractions_of_each_row_sum_to_one(found: Decompositions) -> None:
    rows = discrepancy_rows(found)
    total = sum(row["fraction"] for row in rows if (row["system"], row["feature"]) == ("mixed", "number"))  # type: ignore[misc]
    assert total == pytest.approx(1.0)


def test_references_are_shown_once(found: Decompositions) -> None:
    rows = [row for row in usage_rows(found) if row["measure"] == "frequency" and row["feature"] == "number"]
    assert [row["text"] for row in rows] == ["reference", "right", "mixed", "wrong"]


def test_every_chart_is_drawn(found: Decompositions, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    written = draw(found, tmp_path / "new", formats=("svg",))
    assert [path.stem for path in written] == [
        *("shares", "ranges", "scores", "frequencies", "measures", "groups", "discrepancy", "usage", "scorers"),
    ]
    assert all(path.read_text("utf-8").startswith("<svg") for path in written)


def test_charts_without_numbers_are_left_out(found: Decompositions) -> None:
    nothing = Decompositions([row for row in found if row.feature == "url"])
    assert set(charts(nothing)) == {"discrepancy", "usage"}


def test_a_folder_that_cannot_be_made_is_told(found: Decompositions, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot be created: .* Choose another folder"):
        draw(found, tmp_path / "file" / "x")


def test_the_smallest_share_of_a_feature_is_the_best(found: Decompositions) -> None:
    table = found.tables()[0]
    assert table.best == frozenset({(0, "share")})
    assert table.columns[:4] == ("system", "feature", "n", "share")
    paper = Decompositions(found, settings=DecomposeSettings(labels="paper"))
    assert paper.tables()[0].columns[7:10] == ("add", "hit", "miss")


def test_programs_get_every_number(found: Decompositions) -> None:
    (table,) = found.tables(long=True)
    assert len(table.columns) == 38
    assert len(table.rows) == 6


def test_tests_are_shown_pair_by_pair(found: Decompositions) -> None:
    assert len(found.tables()[1].rows) == 6
    assert [len(table.rows) for table in found.tables()] == [6, 6, 3]


def test_a_prompt_shows_a_line_and_a_notebook_a_screenful(found: Decompositions) -> None:
    assert len(repr(found)) < 200
    assert "<td>number</td>" in found._repr_html_()
    assert len(found._repr_html_()) < 10_000


def test_groups_have_rows_of_their_own(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    entries = [
        Entry(f"{pair} {k}", system, Segment(text, references=(REFERENCES[k],)), extra={"pair": pair})
        for pair in ("de-en", "ru-en")
        for system, texts in SYSTEMS.items()
        for k, text in enumerate(texts)
    ]
    found = decompose(
        Dataset("wmt", tuple(entries)),
        "bleu(smoothing='exp')",
        features=["number"],
        scorers=[len],
        group=["pair"],
        draws=0,
    )
    assert [(row["group"], row["feature"], row["n"]) for row in group_rows(found)] == [
        (pair, feature, 3) for feature in ("number", "function('len')") for pair in ("de-en", "ru-en")
    ]
    assert [row["group"] for row in best_rows(found)] == ["de-en: right", "ru-en: right"]
    assert frequency_rows(found)[0]["frequency"] == pytest.approx(3 / 21)
    names = {path.stem for path in draw(found, tmp_path, formats=("svg",))}
    assert {"scores", "groups", "best", "frequencies"} <= names
    assert "measures" not in names


def test_names_of_features_and_their_correlation_stand_in_the_chart(found: Decompositions) -> None:
    drawn = charts(found)["ranges"]
    assert {row["by_range"].split(",")[0] for row in drawn["data"]["values"]} == {"number"}  # type: ignore[index,attr-defined]
    assert all("r = " in row["by_range"] for row in drawn["data"]["values"])  # type: ignore[index,attr-defined]
