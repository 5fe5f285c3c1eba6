"""Experiments about shares on small texts."""

import re
from dataclasses import astuple

import pytest

from whyscore.analysis.decompose.decompose import decompose
from whyscore.errors import SpecError
from whyscore.experiments.muler.random import specificity, tagnoise
from whyscore.experiments.muler.shares import frequency, hybrid
from whyscore.metrics.lexical.bleu import Bleu
from whyscore.metrics.lexical.token_f1 import TokenF1
from whyscore.testing.fakes import Counting
from whyscore.types import Segment

WORDS = ["FRUIT=words:apple,banana,cherry,date"]
DATA = [
    Segment("an apple and a cherry were here", references=("an apple and a date were here",)),
    Segment("one banana and one date were there", references=("one cherry and one banana were there",)),
]


def test_a_hybrid_has_early_words_right_and_late_ones_wrong() -> None:
    rows = hybrid(DATA, "token_f1", features=WORDS, alpha=(0.0, 0.5, 1.0))
    assert [row.letter for row in rows] == ["a", "b", "d"]
    scores = [row.hybrid for row in rows]
    assert scores == sorted(scores)  # type: ignore[type-var]
    assert rows[-1].hybrid == rows[-1].oracle
    assert rows[-1].way == 1.0
    assert all(row.anti <= row.hybrid <= row.oracle for row in rows)  # type: ignore[operator]


def test_late_words_do_not_even_agree_with_early_ones() -> None:
    # The reference has only a late word, the hypothesis only an early one: nothing may match.
    data = [Segment("x apple y", references=("x date y",)), *DATA]
    (row,) = hybrid(data[:1], "token_f1", features=WORDS, alpha=(0.0,))
    assert row.hybrid == row.anti


def test_a_feature_found_nowhere_has_no_hybrid() -> None:
    (row,) = hybrid(DATA, "bleu", features=["number"], alpha=(0.5,))
    assert (row.n, row.hybrid, row.way) == (0, None, None)


def test_hybrids_stand_in_one_table_beside_the_share() -> None:
    rows = hybrid(DATA, "token_f1", features=WORDS)
    (table,) = rows.tables()
    assert table.columns == ("system", "feature", "n", "sigma", "MuLER", "O", "AO", "50-50", "40-60", "30-70")
    (cells,) = table.rows
    first = rows[0]
    assert cells[4:7] == (first.share, first.oracle, first.anti)
    assert first.share == (first.oracle - first.sigma) / (first.oracle - first.anti)  # type: ignore[operator]
    assert cells[7:] == tuple(row.hybrid for row in rows)


def test_all_hybrids_are_one_question() -> None:
    metric = Counting(TokenF1())
    hybrid(DATA, metric, features=[*WORDS, "number"], alpha=(0.2, 0.4, 0.6))
    assert metric.calls == 1


def test_a_part_of_a_feature_is_its_words_up_to_a_letter() -> None:
    half, whole = frequency(DATA, "token_f1", features=WORDS, alpha=(0.5, 1.0))
    assert (half.letter, half.n) == ("b", 2)
    assert (whole.letter, whole.n) == ("d", 2)


def test_words_without_a_letter_at_their_beginning_only_count_as_a_whole() -> None:
    data = [Segment("7 apples", references=("7 apples",))]
    first, whole = frequency(data, "token_f1", features=["number"], alpha=(0.0, 1.0))
    assert (first.n, whole.n, whole.letter) == (0, 1, "any")


def test_random_groups_are_the_same_for_the_same_seed() -> None:
    options = {"features": WORDS, "groups": (2,), "draws": 3}
    once = specificity(DATA, "chrf", **options)  # type: ignore[arg-type]
    assert once == specificity(DATA, "chrf", **options)  # type: ignore[arg-type]
    other = specificity(DATA, "chrf", seed=1, **options)  # type: ignore[arg-type]
    assert once != other
    assert [(row.groups, row.feature) for row in once] == [(2, None), (None, "FRUIT")]


def test_draws_at_once_are_the_draws_scored_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    data = [*DATA, Segment("a a b a", references=("a b a a c", "b a")), Segment("", references=("x",))]
    options = {"features": WORDS, "groups": (1, 2, 3), "draws": 5, "tokens": "metric"}
    for spec in ("bleu", "bleu(max_order=2)", "bleu(smoothing='exp')"):
        at_once = specificity(data, spec, **options)  # type: ignore[arg-type]
        with monkeypatch.context() as patch:
            patch.setattr(Bleu, "hidden_statistics", None)
            patch.setattr("whyscore.experiments.muler.random._SEGMENTS", 7)
            singly = specificity(data, spec, **options)  # type: ignore[arg-type]
        for one, other in zip(at_once, singly, strict=True):
            assert astuple(one)[4:] == pytest.approx(astuple(other)[4:], abs=1e-12)


def test_the_real_feature_stands_beside_random_words_of_its_frequency() -> None:
    *_, row = specificity(DATA, "token_f1", features=WORDS, groups=(), draws=4)
    (real,) = decompose(DATA, "token_f1", features=WORDS)
    assert row.real == real.share
    assert row.variance == pytest.approx(row.sd**2)  # type: ignore[operator]
    assert (row.real_reference, row.real_hypothesis) == (4 / 14, 4 / 14)


def test_one_group_of_all_words_is_lost_and_won_whole() -> None:
    (row, *_) = specificity(DATA, "token_f1", features=WORDS, groups=(1,), draws=1)
    assert row.frequency == 1.0
    assert row.sd is None


def test_noise_on_one_side_leaves_the_other_alone() -> None:
    rows = tagnoise(DATA, "token_f1", features=WORDS, noise="drop", side="reference", rates=(0.0, 1.0))
    assert [(row.rate, row.n) for row in rows] == [(0.0, 2), (1.0, 0)]


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (lambda: hybrid(DATA, "bleu", alpha=(1.5,)), "alpha is 1.5, expected 0 to 1"),
        (lambda: hybrid(DATA, "bleu", mode="compat"), "mode='compat' is for decompose and frequency"),
        (
            lambda: specificity(DATA, "bleu", draws=0),
            "draws is 0, expected 1 or more",
        ),
        (lambda: tagnoise(DATA, "bleu", rates=(2.0,)), "rates is 2.0, expected 0 to 1"),
    ],
)
def test_wrong_options_are_refused(work: object, message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        work()  # type: ignore[operator]
