"""The contract of metrics holds for every metric there is, and catches those that break it."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from whyscore.errors import ContractError
from whyscore.metrics.lexical.bleu import Bleu
from whyscore.metrics.lexical.token_f1 import TokenF1
from whyscore.protocols import Metric, Token
from whyscore.registry import build, list_names
from whyscore.testing import check_metric
from whyscore.testing.checks import SEGMENTS
from whyscore.testing.fakes import Constant, Counting, WordWeights
from whyscore.types import FloatMatrix, FloatVector, Inputs, Place, Segment, Signature, Words, WordScores


@pytest.fixture
def specs(tmp_path: Path) -> dict[str, str]:
    """The metrics that need an argument, with one."""
    function = tmp_path / "metric.py"
    function.write_text("def score(segments):\n    return [len(s.hypothesis) for s in segments]\n", encoding="utf-8")
    scores = tmp_path / "scores.jsonl"
    rows = [
        {"hypothesis": s.hypothesis, "source": s.source, "references": s.references, "score": len(s.references)}
        for s in SEGMENTS
    ]
    scores.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    boosted = "boosted(metric=chrf, explainer=lime(samples=20), p=1.5, w=0.6)"
    return {"boosted": boosted, "callable": f'callable("{function}:score")', "lookup": f'lookup("{scores}")'}


# Metrics with networks: their own tests make small ones and run the same check on them.
NETWORKS = {
    "bartscore",
    "bertscore",
    "comet",
    "ensemble",
    "judge",
    "lmscore",
    "metricx",
    "moverscore",
    "sbert",
    "transquest",
    "xbertscore",
    "xmoverscore",
}


@pytest.mark.parametrize("name", [name for name in list_names("metric") if name not in NETWORKS])
def test_every_metric_keeps_the_contract(name: str, specs: dict[str, str]) -> None:
    check_metric(build(specs.get(name, name)))


@pytest.mark.parametrize(
    "spec",
    [
        'bleu(smoothing="add-k")',
        'bleu(tokenize="zh", effective_order=False)',
        'bleu(tokenize="char", lowercase=True)',
        "chrf(word_order=2)",
        "chrf(char_order=0, word_order=1)",
        "chrf(whitespace=True, lowercase=True, eps_smoothing=True)",
        "ter(normalized=True, no_punct=True, asian_support=True)",
        "rouge(kind=1, measure=p)",
        "rouge(kind=2, stem=True)",
        "rouge(kind=Lsum, mode=compat)",
        "rouge(mode=split)",
    ],
)
def test_other_settings_keep_the_contract_too(spec: str) -> None:
    check_metric(build(spec))


@pytest.mark.parametrize("metric", [Constant(1.5), WordWeights(("cat",), (2.0,), 0.5), Counting(Constant())], ids=repr)
def test_fakes_keep_the_contract(metric: Metric) -> None:
    check_metric(metric, rebuild=False)


@dataclass(frozen=True)
class Lengths:
    """A metric without fault, for others to spoil."""

    inputs: ClassVar[Inputs] = Inputs.HYPOTHESIS
    higher_is_better: ClassVar[bool] = True

    def signature(self) -> Signature:
        return Signature("lengths", stable=False)

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        return np.array([len(segment.hypothesis) for segment in segments], dtype=np.float64)


class WithoutScore:
    inputs, higher_is_better = Inputs.HYPOTHESIS, True

    def signature(self) -> Signature:
        return Signature("x")


class WrongInputs(Lengths):
    inputs = "hypothesis"  # type: ignore[assignment]


class WrongDirection(Lengths):
    higher_is_better = 1  # type: ignore[assignment]


class Lists(Lengths):
    def score(self, segments: Sequence[Segment]) -> FloatVector:
        return [1.0 for _ in segments]  # type: ignore[return-value]


class Single(Lengths):
    def score(self, segments: Sequence[Segment]) -> FloatVector:
        return super().score(segments).astype(np.float32)  # type: ignore[return-value]


class Short(Lengths):
    def score(self, segments: Sequence[Segment]) -> FloatVector:
        return super().score(segments)[:-1]


class Undefined(Lengths):
    def score(self, segments: Sequence[Segment]) -> FloatVector:
        return np.array([len(s.hypothesis) or np.nan for s in segments], dtype=np.float64)


class NeedsSome(Lengths):
    def score(self, segments: Sequence[Segment]) -> FloatVector:
        return super().score(segments) if segments else np.zeros(1)


class Restless(Lengths):
    drawn: ClassVar = count()

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        return super().score(segments) + next(self.drawn)


class Positional(Lengths):
    def score(self, segments: Sequence[Segment]) -> FloatVector:
        return np.arange(len(segments), dtype=np.float64)


class Padded(Lengths):
    def score(self, segments: Sequence[Segment]) -> FloatVector:
        lengths = super().score(segments)
        return lengths / lengths.max(initial=1.0)


class Peeking(Lengths):
    def score(self, segments: Sequence[Segment]) -> FloatVector:
        return np.array([len(s.source or "") for s in segments], dtype=np.float64)


class PeekingWherePresent(Lengths):
    def score(self, segments: Sequence[Segment]) -> FloatVector:
        return np.array([float("7" in (s.source or "")) for s in segments], dtype=np.float64)


class Unsigned(Lengths):
    def signature(self) -> Signature:
        return "lengths"  # type: ignore[return-value]


class Dated(Lengths):
    drawn: ClassVar = count()

    def signature(self) -> Signature:
        return Signature(f"lengths({next(self.drawn)})", stable=False)


class Unregistered(Lengths):
    def signature(self) -> Signature:
        return Signature("lengths")


class Borrowed(Lengths):
    """Signs as another metric."""

    def signature(self) -> Signature:
        return TokenF1().signature()


class Renamed(Lengths):
    def signature(self) -> Signature:
        return Signature("length")


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (WithoutScore(), "WithoutScore is no metric: it has no score"),
        (WrongInputs(), "WrongInputs.inputs is 'hypothesis', expected some of Inputs.HYPOTHESIS"),
        (WrongDirection(), "WrongDirection.higher_is_better is 1, expected True or False"),
        (Lists(), "Lists.score of 7 segments must be a float64 array, got list"),
        (Single(), "Single.score of 7 segments must be a float64 array, got an array of float32"),
        (Short(), "Short.score of 7 segments must have the shape (7,), got (6,)"),
        (Undefined(), "Undefined.score of 7 segments must be finite, got nan at [2]"),
        (NeedsSome(), "NeedsSome.score of 0 segments must have the shape (0,), got (1,)"),
        (Restless(), "Restless asked twice gives"),
        (Positional(), "Positional asked in another order gives"),
        (Padded(), "Padded asked one by one gives"),
        (Peeking(), "Peeking without the texts it does not read gives"),
        (PeekingWherePresent(), "PeekingWherePresent, whose inputs do not name source, with another one gives"),
        (Unsigned(), "Unsigned.signature() must be a Signature, got 'lengths'"),
        (Dated(), "Dated.signature() says 'lengths(0)', then 'lengths(1)'"),
        (
            Unregistered(),
            "Unregistered: the spec 'lengths' of its signature builds nothing (no metric named 'lengths'.",
        ),
        (Renamed(), "Renamed: the spec 'length' builds a metric that signs 'length|version:"),
        (Borrowed(), "Borrowed built from its spec gives"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_broken_metric_is_caught(metric: Metric, message: str) -> None:
    with pytest.raises(ContractError, match=re.escape(message)):
        check_metric(metric)


def test_equal_segments_with_different_scores_are_caught() -> None:
    class Doubting(Lengths):
        def score(self, segments: Sequence[Segment]) -> FloatVector:
            return np.array([float(id(segment) == id(second)) for segment in segments])

    first, second = Segment("a cat"), Segment("a cat")
    with pytest.raises(ContractError, match=re.escape("Doubting on equal segments gives")):
        check_metric(Doubting(), [first, second])


@dataclass(frozen=True)
class Spoilt(Bleu):
    """BLEU, to be spoilt in one place."""

    fault: str = ""

    def signature(self) -> Signature:
        return replace(Bleu().signature(), stable=False)

    def statistics(self, segments: Sequence[Segment]) -> FloatMatrix:
        rows = Bleu.statistics(self, segments)
        return rows[:, :-1] if self.fault == "width" else rows

    def scores(self, rows: FloatMatrix) -> FloatVector:
        if self.fault == "width":
            return np.zeros(len(rows))
        scores = Bleu.scores(self, rows)
        if self.fault == "changed":
            rows += 1
        return scores

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        scores = self.scores(self.statistics(segments))
        return scores + 1 if self.fault == "apart" else scores

    def total(self, row: FloatVector) -> float:
        if self.fault == "mutating":
            row += 1
        if self.fault == "empty" and not row.any():
            return float("nan")
        return Bleu.total(self, row)

    def segment_signature(self) -> Signature:
        return None if self.fault == "unsigned" else Bleu.segment_signature(self)  # type: ignore[return-value]

    def word_scores(self, segments: Sequence[Segment], place: Place, words: Sequence[Words]) -> list[WordScores]:
        answers = Bleu.word_scores(self, segments, place, words)
        if self.fault == "answers":
            return answers * 2
        if self.fault == "words":
            return [WordScores(answer.importance[:-1]) for answer in answers]
        return [WordScores(a.importance, ()) for a in answers] if self.fault == "notes" else answers


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("width", "Spoilt.statistics of 7 segments in 10 columns must have the shape (7, 10), got (7, 9)"),
        ("changed", "Spoilt.scores changes the rows it is given; work on a copy"),
        ("apart", "Spoilt.scores of its rows gives"),
        ("mutating", "Spoilt.total changes the rows it is given; work on a copy"),
        ("empty", "Spoilt.total must be a finite float, got nan for the row [0.0, 0.0, 0.0, 0.0"),
        ("unsigned", "Spoilt.segment_signature() must be a Signature, got None"),
        ("answers", ") must be one answer for one segment, got 2"),
        ("words", ") must have the shape (5,), got (4,)"),
        ("notes", ") must have 5 notes, got 0"),
    ],
)
def test_a_broken_corpus_metric_is_caught(fault: str, message: str) -> None:
    check_metric(Spoilt())
    with pytest.raises(ContractError, match=re.escape(message)):
        check_metric(Spoilt(fault=fault))


def test_totals_that_are_not_those_of_single_rows_are_caught() -> None:
    class Hasty(Bleu):
        __slots__ = ()

        def signature(self) -> Signature:
            return replace(Bleu().signature(), stable=False)

        def totals(self, rows: FloatMatrix) -> FloatVector:
            return 1 + np.array([self.total(row) for row in rows])

    with pytest.raises(ContractError, match=re.escape("Hasty.totals gives [")):
        check_metric(Hasty())


def test_a_tolerance_lets_rounding_pass() -> None:
    class Rounding(Lengths):
        def score(self, segments: Sequence[Segment]) -> FloatVector:
            return super().score(segments) + 1e-7 * len(segments)

    with pytest.raises(ContractError, match=re.escape("Rounding asked one by one")):
        check_metric(Rounding())
    check_metric(Rounding(), tolerance=1e-5)


def test_segments_of_ones_own_are_asked() -> None:
    metric = Counting(Constant())
    check_metric(metric, [Segment("mine")], rebuild=False)
    assert {segment.hypothesis for segment in metric.segments} == {"mine"}


class NeedsMore(Lengths):
    needs = Inputs.SOURCE


class NoScale(Lengths):
    score_scale = -1.0


class NotByCharacters(Lengths):
    masking = "character"


class NoVariant(Lengths):
    def for_decomposition(self, *, published: bool) -> str:
        return f"published={published}"


class OtherTokens(TokenF1):
    def tokens(self, text: str) -> tuple[Token, ...]:
        return tuple(Token(f"{word}!", 0, 0) for word in text.split())

    def on_tokens(self) -> "OtherTokens":
        return self


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (NeedsMore(), "NeedsMore.needs is"),
        (NoScale(), "NoScale.score_scale is -1.0, expected a number above 0"),
        (NotByCharacters(), "NotByCharacters.masking is 'character', but it does not compare characters"),
        (NoVariant(), "NoVariant.for_decomposition must give a metric, got 'published=False'"),
        (OtherTokens(), r"OtherTokens.on_tokens\(\) cuts the tokens"),
    ],
)
def test_what_a_metric_declares_must_be_true(metric: Metric, message: str) -> None:
    with pytest.raises(ContractError, match=message):
        check_metric(metric, rebuild=False)
