import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyscore.errors import DataError
from whyscore.stats.words import Ragged, best_threshold, confusion, without_gaps


def test_decisions_by_hand() -> None:
    found = confusion(np.array([1.0, 1, 0, 0, 0]), np.array([True, False, True, False, False]))
    assert found == (1, 1, 1, 2)
    assert (found.precision, found.recall, found.f1_bad) == (0.5, 0.5, 0.5)
    assert found.f1_ok == pytest.approx(2 / 3)
    assert found.f1_product == pytest.approx(1 / 3)
    assert found.mcc == pytest.approx((1 * 2 - 1 * 1) / np.sqrt(2 * 2 * 3 * 3))


def test_an_empty_margin_is_undefined_not_zero() -> None:
    found = confusion(np.array([1.0, 0]), np.array([False, False]))
    assert np.isnan(found.mcc)
    assert np.isnan(found.precision)


@given(st.lists(st.tuples(st.integers(0, 1), st.sampled_from([0.0, 1.0, 2.0, 3.0])), min_size=2, max_size=12))
def test_the_best_threshold_beats_every_other(words: list[tuple[int, float]]) -> None:
    gold, scores = (np.array(part, dtype=float) for part in zip(*words, strict=True))
    best = best_threshold(gold, scores)
    reached = [confusion(gold, scores > value).mcc for value in np.unique(scores)]
    if np.isnan(best):
        assert np.isnan(reached).all()
    else:
        assert confusion(gold, scores > best).mcc == pytest.approx(np.nanmax(reached), abs=1e-12)


@pytest.mark.parametrize(
    ("gaps", "kept"), [("drop", [[1.0, 0.0]]), ("only", [[0.0, 0.0, 1.0]]), ("all", [[0.0, 1.0, 0.0, 0.0, 1.0]])]
)
def test_words_stand_at_odd_places_between_gaps(gaps: str, kept: list[list[float]]) -> None:
    found = without_gaps(Ragged.of([[0, 1, 0, 0, 1]]), gaps)  # type: ignore[arg-type]
    assert [row.tolist() for row in found.rows()] == kept


def test_an_even_number_of_tags_has_no_gaps() -> None:
    with pytest.raises(DataError, match=re.escape("4 tags on line 2: with gaps there is one more gap than words")):
        without_gaps(Ragged.of([[0, 1, 0], [0, 1, 0, 1]]))


def test_decisions_must_fit_the_words() -> None:
    with pytest.raises(DataError, match=re.escape("1 decisions for 2 words")):
        confusion(np.array([1.0, 0]), np.array([True]))
