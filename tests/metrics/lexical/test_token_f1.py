"""Token F1 by hand, against stored scores, and as a property."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyscore.errors import MissingInput
from whyscore.metrics.lexical.token_f1 import TokenF1
from whyscore.types import Segment

WORDS = st.lists(st.sampled_from(["a", "b", "c"]), max_size=8)


def f1(hypothesis: str, *references: str) -> float:
    return float(TokenF1().score([Segment(hypothesis, None, references)])[0])


def test_stored_scores_are_met(shipped: Path) -> None:
    path = shipped / "boosting" / "explanations_tokenF1_wmt17_csen.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
    segments = [Segment(row["hypothesis"], None, (row["reference"],)) for row in rows]
    np.testing.assert_allclose(TokenF1().score(segments), [row["score"] for row in rows], atol=1e-12)
    assert len(rows) == 10


def test_two_of_three_words_on_both_sides() -> None:
    assert f1("a black cat", "a white cat") == pytest.approx(2 / 3)


def test_a_repeated_word_counts_as_often_as_both_have_it() -> None:
    assert f1("the the the", "the the cat") == pytest.approx(2 / 3)


def test_the_best_reference_counts() -> None:
    assert f1("a cat", "a dog", "a cat", "") == 1


def test_nothing_in_common_is_zero_even_for_two_empty_texts() -> None:
    assert [f1("a", "b"), f1("", "a"), f1("a", ""), f1("", "")] == [0, 0, 0, 0]


@given(WORDS, WORDS)
def test_both_sides_are_equal_partners(first: list[str], second: list[str]) -> None:
    value = f1(" ".join(first), " ".join(second))
    assert value == f1(" ".join(second), " ".join(first))
    assert 0 <= value <= 1
    assert (value == 1) == (sorted(first) == sorted(second) != [])


def test_a_segment_without_reference_is_refused() -> None:
    message = "token_f1 needs a reference: segment 1 (hypothesis 'a') has none"
    with pytest.raises(MissingInput, match=re.escape(message)):
        TokenF1().score([Segment("a", "b")])
