"""Sums of metrics, and of what they say of words."""

import re

import numpy as np
import pytest

from whyscore.analysis.explain import explain
from whyscore.errors import SpecError
from whyscore.metrics.controls import Length
from whyscore.metrics.ensemble import Ensemble
from whyscore.metrics.matching.bertscore import BertScore, XBertScore
from whyscore.protocols import RowMetric, WordScorer
from whyscore.registry import build, spec_of
from whyscore.testing.checks import SEGMENTS, check_metric
from whyscore.types import Inputs, Segment

BOTH = "ensemble(bertscore(model=embedded), bertscore(model=static))"
SEGMENT = Segment("The cat sat on the mat.", "Die Katze saß auf der Matte.", ("A cat was sitting on a mat.",))


def test_scores_and_word_scores_are_summed() -> None:
    members = [BertScore("embedded"), BertScore("static")]
    found = build(BOTH)
    np.testing.assert_allclose(found.score([SEGMENT]), sum(member.score([SEGMENT]) for member in members))
    whole = explain([SEGMENT], found, "matching")
    parts = [explain([SEGMENT], member, "matching") for member in members]
    for one, *own in zip(whole, *parts, strict=True):
        np.testing.assert_allclose(one.importance, sum(part.importance for part in own))
        assert one.notes == tuple(" | ".join(notes) for notes in zip(*(part.notes or () for part in own), strict=True))
        assert one.matches == tuple(a + b for a, b in zip(*(part.matches or () for part in own), strict=True))
    mean = build(BOTH.replace(")" * 2, "), how=mean)"))
    np.testing.assert_allclose(mean.score([SEGMENT]), found.score([SEGMENT]) / 2)


def test_an_ensemble_of_one_is_itself() -> None:
    one, alone = build("ensemble(xbertscore)"), XBertScore()
    np.testing.assert_array_equal(one.score(SEGMENTS), alone.score(SEGMENTS))
    for left, right in zip(explain([SEGMENT], one, "matching"), explain([SEGMENT], alone, "matching"), strict=True):
        np.testing.assert_array_equal(left.importance, right.importance)
        assert left.notes == right.notes


def test_it_keeps_the_contract_and_its_spec_builds_it_again() -> None:
    check_metric(build(BOTH), tolerance=1e-5)
    check_metric(build("ensemble(chrf, bleu, how=mean)"))
    found = build("ensemble(chrf, xbertscore(phrases=2), chrf)")
    assert spec_of(found) == "ensemble(members=(chrf, xbertscore(phrases=2), chrf))"
    assert found.columns == ("chrf 1", "xbertscore(phrases=2)", "chrf 3")
    assert found.inputs == Inputs.HYPOTHESIS | Inputs.SOURCE | Inputs.REFERENCES | Inputs.CONTEXT
    assert isinstance(found, RowMetric)
    assert isinstance(found, WordScorer)
    assert "member2:[xbertscore(phrases=2)%7Cmode:compat" in str(found.signature())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Ensemble(()), "ensemble needs members: write ensemble(xbertscore, chrf)"),
        (lambda: Ensemble((3,)), "ensemble: 3 is not a metric and cannot be a member"),  # type: ignore[arg-type]
        (
            lambda: build("ensemble(chrf, ter)"),
            "ensemble: the sum would be meaningless, because chrf is better when higher, ter is better when lower",
        ),
    ],
)
def test_members_that_cannot_be_summed_are_refused(make: object, message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        make()  # type: ignore[operator]


def test_a_member_without_word_scores_is_named() -> None:
    with pytest.raises(SpecError, match=re.escape("ensemble: length has no word scores of its own")):
        explain([SEGMENT], Ensemble((Length(),)), "matching", sides=["hypothesis"])
