import re

import pytest

from whyscore.analysis.metaeval.spans import metaevaluate_spans
from whyscore.errors import DataError
from whyscore.types import Dataset, Entry, ErrorSpan, Segment, Side


def data(name: str, *spans: tuple[ErrorSpan, ...] | None, system: str = "A", text: str = "a bad cat") -> Dataset:
    entries = (Entry(str(k), system, Segment(text, "eine Katze"), spans=own) for k, own in enumerate(spans))
    return Dataset(name, tuple(entries))


def test_sides_are_judged_apart_and_unrated_segments_left_out() -> None:
    gold = data("gold", (ErrorSpan(2, 5, "major"), ErrorSpan(0, 4, "major", side=Side.SOURCE)), None, ())
    found = metaevaluate_spans(data("mine", (ErrorSpan(2, 5, "minor"),), (ErrorSpan(0, 1),), (), system="B"), gold)
    hypothesis, source = found.sides[Side.HYPOTHESIS], found.sides[Side.SOURCE]
    assert (hypothesis.n, hypothesis.exact.f1, hypothesis.characters.f1) == (2, 1.0, 0.5)
    assert (source.credit.precision, source.credit.recall) == (0.0, 0.0)
    strict = metaevaluate_spans(data("mine", (ErrorSpan(2, 5, "minor"),), (), ()), gold, severity=True)
    assert strict.sides[Side.HYPOTHESIS].exact.f1 == 0.0
    assert "severity:yes" in str(strict.signature)


def test_weights_stand_in_the_signature() -> None:
    one = data("x", (ErrorSpan(2, 5, "minor"), ErrorSpan(6, 9, "major")))
    found = metaevaluate_spans(data("y", (ErrorSpan(6, 9, "major"),)), one, weights={"minor": 1, "major": 5})
    assert found.sides[Side.HYPOTHESIS].exact.recall == 5 / 6
    assert "weights:major=5,minor=1" in str(found.signature)


@pytest.mark.parametrize(
    ("predicted", "gold", "message"),
    [
        (data("mine", ()), data("gold", (), ()), "mine and gold do not match: no predicted spans for 1"),
        (data("mine", ()), data("gold", None), "mine and gold do not match: gold has no human ratings"),
        (data("mine", (), text="other"), data("gold", ()), "segment 0: the texts differ, so offsets mean different"),
    ],
)
def test_data_that_do_not_match_are_refused(predicted: Dataset, gold: Dataset, message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        metaevaluate_spans(predicted, gold)
