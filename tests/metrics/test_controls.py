"""Sentinels count words and copies, nothing else."""

import re

import pytest

from whyscore.errors import MissingInput
from whyscore.metrics.controls import Copy, Length, LengthRatio
from whyscore.types import Inputs, Segment


def ratio(hypothesis: str, *references: str) -> float:
    return float(LengthRatio().score([Segment(hypothesis, None, references)])[0])


def copied(hypothesis: str, source: str) -> float:
    return float(Copy().score([Segment(hypothesis, source)])[0])


def test_length_is_the_number_of_words() -> None:
    assert Length().score([Segment(" a  cat\nsat "), Segment("")]).tolist() == [3, 0]


def test_the_ratio_is_the_mean_over_the_references() -> None:
    assert ratio("a b", "a", "a b c d") == (2 + 0.5) / 2


def test_an_empty_reference_is_missing_where_there_is_another() -> None:
    assert ratio("a b", "", "a b c d", " ") == 0.5


def test_an_empty_reference_alone_counts_as_one_word() -> None:
    assert [ratio("a b", ""), ratio("", ""), ratio("", "a")] == [2, 1, 0]


def test_copies_are_words_that_stand_in_the_source() -> None:
    assert copied("Der Hund is here", "Der Hund ist da") == 0.5
    assert copied("Hund Hund", "Hund") == 1


def test_an_empty_hypothesis_copies_nothing() -> None:
    assert copied("", "Hund") == 0


def test_copying_is_bad() -> None:
    assert not Copy().higher_is_better


def test_each_sentinel_reads_what_it_needs() -> None:
    assert Length().inputs == Inputs.HYPOTHESIS
    assert LengthRatio().inputs == Inputs.HYPOTHESIS | Inputs.REFERENCES
    assert Copy().inputs == Inputs.HYPOTHESIS | Inputs.SOURCE


def test_missing_texts_are_refused() -> None:
    long = "x" * 100
    message = f"copy needs the source: segment 1 (hypothesis '{'x' * 60}...') has none. Give sources"
    with pytest.raises(MissingInput, match=re.escape(message)):
        Copy().score([Segment(long, None, ("a",))])
    with pytest.raises(MissingInput, match=re.escape("length_ratio needs a reference: segment 1")):
        LengthRatio().score([Segment("a", "b")])
