import csv
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyscore.errors import DataError
from whyscore.stats.coefficients import pearson, spearman
from whyscore.stats.words import MEASURES, Ragged, agree, chance

FOLDERS = {
    "random(stored zip)": "eval4nlp2021/baselines/random-dev/{}",
    "xmover-shap(stored pkl)": "eval4nlp2021/baselines/xmover-shap-dev/{}",
    "xbertscore_mbart_et-en": "leiter2021_dev_predictions/xbertscore_mbart_{}",
}

sentences = st.lists(
    st.lists(st.tuples(st.integers(0, 1), st.sampled_from([0.0, 0.25, 0.5, 1.0, -3.0])), min_size=1, max_size=9),
    min_size=1,
    max_size=6,
)


def ragged(path: Path) -> Ragged:
    lines = path.read_text("utf-8").split("\n")
    return Ragged.of([list(map(float, line.split())) for line in (lines if lines[-1] else lines[:-1])])


def column(path: Path) -> np.ndarray:
    return np.array(path.read_text("utf-8").split(), dtype=np.float64)


def one(gold: list[float], scores: list[float], ties: str = "expected") -> dict[str, float]:
    found = agree(Ragged.of([gold]), Ragged.of([scores]), ties)  # type: ignore[arg-type]
    return {name: float(getattr(found, name)[0]) for name in found._fields}


@pytest.mark.parametrize(("ties", "recall"), [("expected", 7 / 9), ("legacy", 1.0), ("first", 2 / 3), ("low", 2 / 3)])
def test_the_worked_example_under_each_tie_rule(ties: str, recall: float) -> None:
    found = one([1, 0, 1, 1, 0], [0.9, 0.5, 0.5, 0.5, 0.1], ties)
    assert found["auc"] == pytest.approx(5 / 6, abs=1e-15)
    assert found["ap"] == pytest.approx(5 / 6, abs=1e-15)
    assert found["recall_at_k"] == pytest.approx(recall, abs=1e-15)
    assert found["recall_at_k_legacy"] == 1.0
    assert found["ties"]


def test_a_sentence_without_or_with_nothing_but_errors_has_no_value() -> None:
    found = agree(Ragged.of([[0, 0], [1, 1], [0, 1]]), Ragged.of([[1, 2], [1, 2], [1, 2]]))
    assert found.evaluated.tolist() == [False, False, True]
    assert np.isnan(found.auc).tolist() == [True, True, False]
    assert found.of("auc").tolist() == [1.0]


def test_a_tie_that_does_not_cross_the_border_is_no_border_tie() -> None:
    assert not one([1, 0, 0], [3, 1, 1])["ties"]
    assert one([1, 0, 0], [3, 3, 1])["ties"]


def test_every_published_row_under_the_legacy_tie_rule(shared: Path) -> None:
    lines = (shared / "word_level_expected.tsv").read_text("utf-8").splitlines()
    rows = list(csv.DictReader(lines, delimiter="\t"))
    assert len(rows) == 23
    for row in rows:
        _check_row(row, shared)


def _check_row(row: dict[str, str], shared: Path) -> None:
    pair = row["dataset"][-5:]
    if row["dataset"].startswith("eval4nlp"):
        base = shared / "eval4nlp2021" / "dev" / pair
        gold = ragged(base / f"dev.{'tgt' if row['side'] == 'target' else 'src'}-tags")
        human, folder = base / "dev.da", shared / FOLDERS[row["system"]].format(pair)
    else:
        base = shared / "wmt22_task2" / pair
        gold, human, folder = ragged(base / "target.gold"), base / "sentence.gold", base / row["system"]
    scores = ragged(folder / f"{row['side']}.submission")
    found = agree(gold.cut(scores.lengths), scores, "legacy")
    assert int(found.evaluated.sum()) == int(row["n_eval"])
    means = [float(found.of(measure).mean()) for measure in MEASURES]
    assert means == pytest.approx([float(row[name]) for name in ("auc", "ap", "rec_topk")], abs=1e-6)
    if row["pearson"]:
        x, z = column(folder / "sentence.submission"), column(human)
        assert float(pearson(x, z)) == pytest.approx(float(row["pearson"]), abs=1e-6)
        assert float(spearman(x, z)) == pytest.approx(float(row["spearman"]), abs=1e-6)


@given(sentences)
def test_all_measures_equal_scikit_learn_and_brute_force(rows: list[list[tuple[int, float]]]) -> None:
    from sklearn.metrics import average_precision_score, roc_auc_score

    gold = Ragged.of([[float(mark) for mark, _ in row] for row in rows])
    scores = Ragged.of([[score for _, score in row] for row in rows])
    found = agree(gold, scores)
    for k, row in enumerate(rows):
        marks, values = (np.array(part, dtype=float) for part in zip(*row, strict=True))
        count = int(marks.sum())
        if count in (0, len(marks)):
            assert np.isnan(found.ap[k])
            continue
        assert found.auc[k] == pytest.approx(roc_auc_score(marks, values), abs=1e-12)
        assert found.ap[k] == pytest.approx(average_precision_score(marks, values), abs=1e-12)
        top = np.argsort(values, kind="stable")[::-1][:count]
        assert found.recall_at_k_legacy[k] == pytest.approx(marks[top].mean(), abs=1e-12)
        assert found.recall_at_k_low[k] <= found.recall_at_k[k] <= found.recall_at_k_high[k]


@given(sentences)
def test_expected_recall_is_the_mean_over_all_orders_of_tied_words(rows: list[list[tuple[int, float]]]) -> None:
    row = rows[0]
    marks, values = (np.array(part, dtype=float) for part in zip(*row, strict=True))
    count = int(marks.sum())
    if count in (0, len(marks)):
        return
    border = np.sort(values)[::-1][count - 1]
    above, tied = values > border, values == border
    wanted = (marks[above].sum() + (count - above.sum()) * marks[tied].mean()) / count
    assert one(marks.tolist(), values.tolist())["recall_at_k"] == pytest.approx(wanted, abs=1e-12)


@given(sentences)
def test_sentences_do_not_hear_of_each_other(rows: list[list[tuple[int, float]]]) -> None:
    gold = Ragged.of([[float(mark) for mark, _ in row] for row in rows])
    scores = Ragged.of([[score for _, score in row] for row in rows])
    together = agree(gold, scores)
    backwards = agree(Ragged.of(gold.rows()[::-1]), Ragged.of(scores.rows()[::-1]))
    for name in ("auc", "ap", "recall_at_k"):
        assert np.array_equal(getattr(together, name), getattr(backwards, name)[::-1], equal_nan=True)


def test_chance_is_the_mean_over_all_orders() -> None:
    from itertools import permutations

    gold = [1.0, 1.0, 0.0, 0.0, 0.0]
    found = [one(gold, list(map(float, order))) for order in permutations(range(5))]
    exact = chance(Ragged.of([gold]))
    for name in MEASURES:
        assert float(getattr(exact, name)[0]) == pytest.approx(np.mean([row[name] for row in found]), abs=1e-12)


@pytest.mark.parametrize(
    ("gold", "scores", "message"),
    [
        ([[1, 0]], [[1.0]], "differ in their number of sentences or words"),
        ([[0.5, 0]], [[1.0, 2.0]], "gold marks must be 0 or 1"),
        ([[1, 0]], [[1.0, float("nan")]], "word scores must be finite"),
    ],
)
def test_what_cannot_be_judged_is_refused(gold: list[list[float]], scores: list[list[float]], message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        agree(Ragged.of(gold), Ragged.of(scores))


def test_an_unknown_tie_rule_is_refused() -> None:
    with pytest.raises(DataError, match=re.escape("no tie rule named 'best': use expected, legacy, first, low, high")):
        one([1, 0], [1, 2], "best")


def test_cutting_and_choosing_sentences() -> None:
    rows = Ragged.of([[1, 2, 3], [4], [5, 6]])
    assert [row.tolist() for row in rows.cut(np.array([2, 5, 0])).rows()] == [[1, 2], [4], []]
    assert [row.tolist() for row in rows.select(np.array([True, False, True])).rows()] == [[1, 2, 3], [5, 6]]
