"""A mask string that a metric changes before it scores is told, once for each metric and mask."""

import re
import string
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pytest

from whyscore.analysis.explain import explain
from whyscore.errors import DataError
from whyscore.explainers import engine as mask_checks
from whyscore.explainers.engine import MaskWarning, check_mask
from whyscore.metrics.lexical.token_f1 import TokenF1
from whyscore.protocols import Metric
from whyscore.registry import build
from whyscore.text.maskers import Delete, Replace
from whyscore.types import FloatVector, Inputs, Segment, Signature

SEGMENTS = [
    Segment("   ", references=("the cat sat on the mat",)),
    Segment("the cat sat on a mat", references=("the dog sat",)),
]


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mask_checks, "_KNOWN", {})


@dataclass(frozen=True)
class Overlap:
    """Token F1 of texts that were changed first; counts the texts it is asked about."""

    name: str
    change: Callable[[str], str]
    asked: list[int] = field(default_factory=list, compare=False)
    inputs: ClassVar[Inputs] = Inputs.HYPOTHESIS | Inputs.REFERENCES
    higher_is_better: ClassVar[bool] = True

    def signature(self) -> Signature:
        return Signature(self.name)

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        self.asked.append(len(segments))
        changed = [
            Segment(self.change(one.hypothesis), references=tuple(map(self.change, one.references))) for one in segments
        ]
        return TokenF1().score(changed)


def stripped(text: str) -> str:
    return " ".join(word.strip(string.punctuation) for word in text.split())


def cut(text: str) -> str:
    return re.sub(r"([^\w\s])", r" \1 ", text)


def without_marked(text: str) -> str:
    return re.sub(r"\[\w+\]", "", text)


def told(metric: Metric, token: str, segments: Sequence[Segment] = SEGMENTS) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_mask(metric, Replace(token), segments)
    assert all(issubclass(one.category, MaskWarning) for one in caught)
    return [str(one.message) for one in caught]


@pytest.mark.parametrize(
    ("change", "token", "fate"),
    [
        (str.lower, "[MASK]", "lower-cases"),
        (str.lower, "<Mask>", "lower-cases"),
        (stripped, "[mask]", "strips"),
        (cut, "[mask]", "cuts up"),
        (without_marked, "[mask]", "drops"),
        (stripped, "...", "drops"),
    ],
)
def test_what_becomes_of_a_mask_is_told_in_one_line(change: Callable[[str], str], token: str, fate: str) -> None:
    (message,) = told(Overlap("overlap", change), token)
    fact = f"overlap {fate} the mask {token!r} before scoring: words are not masked as specified"
    assert message == f"{fact}; choose a plain word, or masker='delete'"


@pytest.mark.parametrize(
    ("change", "token"),
    [(str, "[MASK]"), (str.lower, "BLANK"), (str.lower, "[mask]"), (stripped, "BLANK"), (cut, "BLANK")],
)
def test_a_mask_that_survives_or_stays_a_word_is_not_told(change: Callable[[str], str], token: str) -> None:
    assert told(Overlap("overlap", change), token) == []


def test_a_metric_that_sees_no_spaces_or_no_words_gives_no_verdict() -> None:
    assert told(build("chrf", "metric"), "[mask]") == []
    assert told(Overlap("blind", lambda _: "same"), "[MASK]") == []


def test_texts_without_words_and_failing_metrics_give_no_verdict() -> None:
    lowering = Overlap("overlap", str.lower)
    assert told(lowering, "[MASK]", SEGMENTS[:1]) == []
    assert told(lowering, " ", SEGMENTS) == []

    def refuse(_: str) -> str:
        raise DataError("no such text")

    assert told(Overlap("refusing", refuse), "[MASK]") == []


def test_a_metric_is_asked_once_for_each_mask() -> None:
    metric = Overlap("overlap", str.lower)
    assert len(told(metric, "[MASK]")) == len(told(metric, "[MASK]")) == 1
    assert metric.asked == [7]
    assert told(metric, "[mask]") == []
    assert metric.asked == [7, 6]


def test_deleting_and_the_default_mask_ask_nothing() -> None:
    metric = Overlap("overlap", str.lower)
    for masker in (None, Delete(), Replace()):
        check_mask(metric, masker, SEGMENTS)
    assert metric.asked == []


def test_explaining_with_a_mask_that_is_lost_warns_and_goes_on() -> None:
    with pytest.warns(MaskWarning, match=re.escape("bleu cuts up the mask '[mask]' before scoring")):
        found = explain(SEGMENTS[1:], "bleu", "erasure", masker="replace('[mask]')", sides=["hypothesis"])
    assert np.isfinite(found[0].importance).all()
