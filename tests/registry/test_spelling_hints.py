"""Hints for names that are nearly right, and for lists where one thing is expected."""

import re

import pytest

import whyscore as ws
from whyscore import registry as names
from whyscore.errors import DataError, SpecError, UnknownName
from whyscore.registry import USUAL, build, parse


def test_the_case_of_a_name_does_not_hide_the_near_one() -> None:
    assert "Did you mean 'chrf'?" in str(UnknownName.among("metric", "CHRF", ["bleu", "chrf"]))


@pytest.mark.parametrize(
    ("given", "spec"),
    [
        ("BLEU", "bleu"),
        ("chrF", "chrf"),
        ("chrF++", "chrf(word_order=2)"),
        ("ROUGE-L", "rouge(kind=L)"),
        ("TER", "ter"),
    ],
)
def test_names_as_papers_write_them_are_understood(given: str, spec: str) -> None:
    assert build(given) == build(spec)


@pytest.mark.parametrize("hint", USUAL.values())
def test_every_hint_can_be_built(hint: str) -> None:
    assert build(hint).higher_is_better


def test_a_name_of_another_tool_can_still_be_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert build("chrfpp") == build("chrf(word_order=2)")
    assert parse("chrfpp").name == "chrfpp"
    monkeypatch.setitem(names._registered["metric"], "sacrebleu", dict)
    assert build("sacrebleu") == {}


def test_several_metrics_where_one_is_expected_are_told_apart() -> None:
    segment = ws.Segment("a cat", references=("a dog",))
    expected = "one metric at a time, got ['chrf', 'bleu']: call once per metric, or use score_systems for several"
    with pytest.raises(SpecError, match=re.escape(expected)):
        ws.score([segment], ["chrf", "bleu"])  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [ws.Segment("a cat", references=("a dog",)), "a cat"])
def test_one_segment_is_not_a_list(given: object) -> None:
    expected = f"expected a list of segments, got {given!r}: pass [Segment(hypothesis, source, references)]"
    with pytest.raises(DataError, match=re.escape(expected)):
        ws.explain(given, "chrf", "erasure")  # type: ignore[arg-type]


def test_data_can_be_checked_alone() -> None:
    data = ws.from_texts(["I have a  cat"], [["I have a dog"]])
    first, second = (str(finding) for finding in ws.validate(data))
    assert first == "leading, trailing or double space in 1 of 1 hypotheses of hypothesis: segments 0"
    assert second == "texts has 1 segment: significance tests need about 100 or more"
    with pytest.raises(DataError, match=re.escape(f"{first} (and 1 more)")):
        ws.validate(data, strict=True)
