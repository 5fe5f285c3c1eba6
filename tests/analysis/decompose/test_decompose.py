"""Decomposition by feature: small cases worked out by hand, and everything that can be asked wrongly."""

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from sacrebleu.metrics import CHRF

import whyscore as ws
from whyscore.analysis.decompose.counts import discrepancy
from whyscore.analysis.decompose.decompose import decompose, plan
from whyscore.analysis.decompose.result import Decomposition, Decompositions, label_fractions
from whyscore.analysis.decompose.settings import FeatureSettings
from whyscore.analysis.decompose.shares import guarded_share, share_of
from whyscore.analysis.decompose.tagging import SpanCounts, mark, members_of
from whyscore.data.formats.text import from_texts
from whyscore.errors import DataError, MissingExtra, MissingInput, SpecError, UnknownName
from whyscore.metrics.callable import Callable as CallableMetric
from whyscore.metrics.lexical.bleu import Bleu
from whyscore.metrics.lexical.token_f1 import TokenF1
from whyscore.protocols import Similarities, Tagged
from whyscore.scoring.stack import Resources
from whyscore.scoring.store import Store
from whyscore.testing.fakes import Counting
from whyscore.types import Dataset, Entry, FloatVector, Inputs, Segment, Signature

LOCAL = Resources()
REFERENCE = "the old man saw 3 cats in the garden today"


def only(found: Decompositions) -> Decomposition:
    (row,) = found
    return row


def numbers(reference: str, hypothesis: str, **options: object) -> Decomposition:
    data = [Segment(hypothesis, references=(reference,))]
    return only(decompose(data, "bleu", features=["number"], draws=0, **options))  # type: ignore[arg-type]


def test_identical_texts_have_nothing_to_gain() -> None:
    row = numbers(REFERENCE, REFERENCE)
    assert (row.share, row.gain, row.guarded) == (0.0, 0.0, 0.0)
    assert row.sigma == row.oracle == pytest.approx(1.0)
    assert row.anti is not None
    assert row.anti < 1


def test_a_feature_that_differs_everywhere_in_equal_context_is_lost_whole() -> None:
    row = numbers(REFERENCE, REFERENCE.replace("3", "5"))
    assert row.share == 1.0
    assert row.oracle == pytest.approx(1.0)
    assert row.sigma == row.anti


def test_bleu_is_unsmoothed_and_from_zero_to_one() -> None:
    row = numbers("a b c 3 e", "a b c 5 e")  # no run of four words is right
    assert row.sigma == 0.0
    assert row.oracle == pytest.approx(1.0)
    smoothed = decompose([Segment("a b c 5 e", references=("a b c 3 e",))], 'bleu(smoothing="exp")', draws=0)
    assert 0 < smoothed[0].sigma_all < 1


def test_a_metric_means_the_same_by_its_name_and_as_an_object() -> None:
    data = [Segment("a b c 5 e", references=("a b c 3 e",)), Segment(REFERENCE, references=(REFERENCE,))]
    by_name, by_object = (decompose(data, metric, draws=20) for metric in ("bleu", Bleu()))
    assert by_name == by_object
    assert by_name.signatures == by_object.signatures
    own = decompose(data, 'bleu(smoothing="none", effective_order=False, score_scale=1)', draws=20)
    assert [(row.sigma_all, row.share) for row in own] == [(row.sigma_all, row.share) for row in by_name]
    smoothed = decompose(data, Bleu(smoothing="exp"), draws=0)
    assert [row.sigma_all for row in smoothed] == [row.sigma_all for row in decompose(data, 'bleu(smoothing="exp")')]
    assert smoothed[0].sigma_all == pytest.approx(ws.score(data, "bleu").values.mean() / 100)


def test_the_result_says_which_bleu_was_scored() -> None:
    found = decompose([Segment(REFERENCE, references=(REFERENCE,))], "bleu", features=["number"], draws=0)
    spec = 'bleu(smoothing="none", effective_order=False, score_scale=1)'
    assert str(found.signatures["bleu"]).startswith(f"{spec}|")
    assert found.notes == [f"bleu: scored as {spec}"]
    assert f"bleu: scored as {spec}" in found.tables()[0].notes
    assert decompose([Segment("a 3", references=("a 3",))], "bleu(smoothing='exp')", draws=0).notes == []


def test_where_no_segment_has_the_feature_on_both_sides_it_is_said_why() -> None:
    row = numbers("3 cats", "three cats")
    assert row.share is None
    assert row.reason == "no segment has number on both sides (reference 1, hypothesis 0)"
    assert (row.n, row.sigma, row.gain, row.guarded, row.low) == (0, None, None, None, None)
    assert row.discrepancy["all"] == {
        "under": 1, "over": 0, "equal": 0, "missing": 1, "invented": 0, "absent": 0,
    }  # fmt: skip


def test_a_useless_system_gets_no_share() -> None:
    row = numbers("a b c d 3", "v w x y 5")
    assert row.share is None
    assert row.reason == "range 0e+00 is too small"
    assert row.informative == 0


def test_a_tagger_that_sees_the_sides_differently_makes_a_share_below_zero_which_is_kept() -> None:
    agreed = "we met 7 and 8 near the old house"
    segments = [Segment(agreed, references=(text,)) for text in (agreed, agreed.replace("and", "or"))]
    noisy = only(decompose(segments, "bleu", tagger=Sides(), features=["X"], draws=0))
    assert noisy.share is not None
    assert noisy.share < 0
    assert "negative" in noisy.flags
    assert noisy.outside == 1
    assert [one.gain < 0 for one in noisy.details] == [True]


class Sides:
    """Tags another word in every text."""

    def signature(self) -> Signature:
        return Signature("sides")

    def tag(self, texts: Sequence[str]) -> list[tuple[Tagged, ...]]:
        return [(Tagged(0, 2, ("X",)),) if " or " in text else (Tagged(29, 33, ("X",)),) for text in texts]


def test_few_segments_are_flagged() -> None:
    assert "few" in numbers(REFERENCE, REFERENCE).flags
    many = [Segment(REFERENCE, references=(REFERENCE,))] * 30
    assert only(decompose(many, "bleu", features=["number"], draws=0)).flags == ()


def test_metrics_that_only_read_text_are_asked_about_words_and_flagged() -> None:
    row = only(decompose([Segment("see 10km", references=("see 12km",))], TokenF1(), features=["number"], draws=0))
    assert "unnatural-text" in row.flags
    assert row.details[0].masked_hypothesis == "see zzzq km"
    assert row.details[0].masked_references == ("see zzzz km",)
    assert (row.oracle, row.share) == (1.0, pytest.approx((1 - 0.5) / (1 - 2 / 3)))


def test_any_function_can_be_decomposed() -> None:
    def same_length(hypotheses: list[str], references: list[str]) -> list[float]:
        return [float(len(a) == len(b)) for a, b in zip(hypotheses, references, strict=True)]

    row = only(decompose([Segment("5 a", references=("12 a",))], same_length, features=["number"], draws=0))
    assert (row.sigma, row.oracle, row.anti) == (0.0, 1.0, 1.0)
    assert row.share is None


def chrf(segments: Sequence[Segment]) -> list[float]:
    metric = CHRF()
    return [metric.sentence_score(segment.hypothesis, segment.references).score for segment in segments]


def chrf_of_one(segments: Sequence[Segment]) -> list[float]:
    return [score / 100 for score in chrf(segments)]


@pytest.mark.parametrize("function", [chrf, chrf_of_one])
def test_a_function_that_computes_chrf_has_the_shares_of_chrf(function: Callable[..., object]) -> None:
    data = ws.sample().of(ws.sample().systems[0])
    own, known = decompose(data, function, draws=0), decompose(data, "chrf", draws=0)
    assert len(own) == len(known) > 0
    for one, other in zip(own, known, strict=True):
        assert (one.n, one.informative, one.flags) == (other.n, other.informative, other.flags)
        for name in ("share", "guarded", "gain", "sigma", "sigma_all", "oracle", "anti"):
            assert getattr(one, name) == pytest.approx(getattr(other, name), abs=1e-9)


def test_a_function_can_say_how_it_compares() -> None:
    data = [Segment("a 1234 cat", references=("a 5678 cat",))]
    found, said = decompose(data, chrf, draws=0), decompose(data, CallableMetric(chrf, masking="opaque"), draws=0)
    assert "unnatural-text" in said[0].flags
    assert "unnatural-text" not in found[0].flags


def test_lower_is_better_metrics_are_turned() -> None:
    row = only(decompose([Segment("a 5 c d", references=("a 3 c d",))], "ter", features=["number"], draws=0))
    assert (row.sigma, row.oracle, row.anti, row.share) == (-0.25, 0.0, -0.25, 1.0)


def test_chrf_hides_behind_as_many_characters_as_the_words_have() -> None:
    data = [Segment("a 1234 cat", references=("a 5678 cat",)), Segment("b 12 dog", references=("b 34 dog",))]
    row = only(decompose(data, "chrf", features=["number"], draws=0))
    example = row.details[0]
    assert example.masked_hypothesis is not None
    assert len(example.masked_hypothesis) - len("a  cat") == 3  # the mean of four and two
    assert row.oracle == pytest.approx(1.0)


def test_hiding_happens_in_tokens_and_not_in_text() -> None:
    row = numbers("a 10-year plan for 3 men", "a 12-year plan for 3 men")
    masked = row.details[0].masked_hypothesis
    assert masked is not None
    assert masked.split()[2:] == ["-", "year", "plan", "for", masked.split()[1], "men"]


def test_the_metric_is_asked_once_for_everything_and_only_about_segments_with_the_feature() -> None:
    texts = {"a": [REFERENCE, "no digits here at all"], "b": [REFERENCE.replace("3", "5"), "none at all here"]}
    data = from_texts(texts, [REFERENCE, "there are no digits here"])
    metric = Counting(TokenF1())
    found = decompose(data, metric, features=["number", "negation", "url"], draws=10)
    assert metric.calls == 1
    members = [row.n for row in found if row.system == "a"]
    assert members == [1, 1, 0]
    assert found.cost is not None
    assert found.cost.asked == 4 + 2 * (2 + 2 + 0)
    assert metric.asked == found.cost.distinct < found.cost.asked


def test_each_text_is_tagged_once_and_never_again(tmp_path: Path) -> None:
    seen: list[str] = []

    class Listening(Sides):
        def tag(self, texts: Sequence[str]) -> list[tuple[Tagged, ...]]:
            seen.extend(texts)
            return super().tag(texts)

    data = from_texts({"a": ["x y"], "b": ["x y"]}, ["x y"])
    held = Resources(Store(tmp_path / "s.sqlite"))
    first = decompose(data, "chrf", tagger=Listening(), features=["X"], draws=0, resources=held)
    assert seen == ["x y"]
    again = decompose(data, "chrf", tagger=Listening(), features=["X"], draws=0, resources=held)
    assert seen == ["x y"]
    assert first.cost is not None
    assert again.cost is not None
    assert (first.cost.texts, first.cost.distinct_texts, first.cost.tagged, again.cost.tagged) == (4, 1, 1, 0)
    assert [row.record() for row in first] == [row.record() for row in again]


def test_a_plan_counts_without_scoring(tmp_path: Path) -> None:
    data = [Segment(REFERENCE, references=(REFERENCE,))] * 3
    held = Resources(Store(tmp_path / "s.sqlite"))
    before = plan(data, "bleu", features=["number"], resources=held)
    assert (before.texts, before.distinct_texts, before.asked, before.distinct, before.stored) == (6, 1, 9, 3, 0)
    decompose(data, "bleu", features=["number"], draws=0, resources=held)
    assert plan(data, "bleu", features=["number"], resources=held).stored == 3


def test_several_references_are_all_hidden_and_one_with_the_feature_is_enough() -> None:
    data = [Segment("he saw 5 cats now", references=("he saw 3 cats now", "he saw some cats now"))]
    any_of_them = only(decompose(data, "bleu", features=["number"], draws=0))
    assert (any_of_them.n, any_of_them.share) == (1, 1.0)
    all_of_them = only(decompose(data, "bleu", features=["number"], references="all", draws=0))
    assert all_of_them.reason == "no segment has number on both sides (reference 1, hypothesis 1)"


def test_discrepancy_with_several_references_is_judged_by_their_range() -> None:
    found = discrepancy(SpanCounts(np.array([2, 0, 4, 0, 1]), np.array([1, 1, 1, 0, 0]), np.array([3, 3, 3, 0, 0])))
    assert found == {"under": 1, "over": 2, "equal": 2, "missing": 1, "invented": 1, "absent": 1}


def test_the_three_outcomes_have_the_names_that_were_published() -> None:
    counts = {"under": 1, "over": 2, "equal": 1}
    assert label_fractions(counts, "paper") == {"add": 0.25, "hit": 0.5, "miss": 0.25}
    assert label_fractions(counts, "code") == {"add": 0.25, "miss": 0.5, "hit": 0.25}
    assert all(map(math.isnan, label_fractions({"under": 0, "over": 0, "equal": 0}, "field").values()))


def test_a_span_can_be_hidden_as_one() -> None:
    data = [Segment("I love New York so much", references=("I love San Pedro Town so much",))]
    city = ["CITY=words:New York,San Pedro Town"]
    words = only(decompose(data, "bleu", features=city, draws=0))
    whole = only(decompose(data, "bleu", features=city, unit="span", draws=0))
    assert whole.oracle == pytest.approx(1.0)
    assert words.oracle is not None
    assert words.oracle < 1
    masked = whole.details[0].masked_hypothesis
    assert masked is not None
    assert len(masked.split()) == 5


def test_corpus_scores_are_those_of_the_summed_rows() -> None:
    data = from_texts({"s": ["a b c 5 e f", "g h i j 7"]}, ["a b c 3 e f", "g h i j 7"])
    row = only(decompose(data, "bleu", features=["number"], level="corpus", draws=50))
    whole = ws.score_systems(data, ['bleu(smoothing="none")'], draws=0)[0].totals["s"].value / 100
    assert row.sigma == row.sigma_all == pytest.approx(whole, abs=1e-12)
    assert row.share is not None
    assert row.low is not None
    assert row.low <= row.share


def test_a_test_between_systems_has_p_and_q_for_every_feature() -> None:
    reference = [REFERENCE.replace("3", str(k)) for k in range(12)]
    worse = [REFERENCE.replace("3", str(k + 50)) for k in range(12)]
    data = from_texts({"good": reference, "bad": worse}, reference)
    found = decompose(data, "bleu", features=["number", "url", "capitalised"], draws=500)
    by_name = {test.feature: test for test in found.tests}
    assert by_name["number"].difference == -1.0
    assert by_name["number"].p == pytest.approx(2 / 2**12, abs=0.01)
    assert by_name["number"].q == by_name["number"].p  # the only test that could be made
    assert by_name["url"].p is None
    assert by_name["url"].reason == "the share of url is undefined for good or bad"


def test_systems_are_compared_on_the_segments_they_share() -> None:
    data = from_texts({"a": ["1 x y z w", "2 x y z w"], "b": ["1 x y z w", "2 x y z w"]}, ["1 x y z w", "2 x y z w"])
    part = Dataset(data.name, data.entries[:3])
    found = decompose(part, "bleu", features=["number"], draws=20)
    assert [row.n for row in found] == [2, 1]
    assert found.tests[0].p == 1.0


def test_a_difference_and_its_interval_are_those_of_the_segments_that_both_systems_have() -> None:
    references = [REFERENCE.replace("3", str(k)) for k in range(12)]
    hypotheses = [text.replace("cats", "birds") if k % 3 else text for k, text in enumerate(references)]
    wrong = [REFERENCE.replace("3", str(k + 50)) if k % 4 else references[k] for k in range(12)]
    data = from_texts({"long": wrong, "half": hypotheses}, references)
    common = [entry for entry in data.entries if int(entry.id) < 6]
    uneven = Dataset(data.name, tuple(entry for entry in data.entries if entry in common or entry.system == "long"))
    options = {"features": ["number"], "draws": 50}
    (expected,) = decompose(Dataset(data.name, tuple(common)), "bleu", **options).tests  # type: ignore[arg-type]
    found = decompose(uneven, "bleu", **options)  # type: ignore[arg-type]
    assert [row.n for row in found] == [12, 6]
    assert found.tests == [expected]
    assert found[0].share is not None
    assert found[1].share is not None
    assert found[0].share - found[1].share != expected.difference
    assert "compared on the segments that both have" in str(found.tables()[1].notes)


def test_examples_of_equal_gain_do_not_depend_on_the_order_of_segments() -> None:
    data = from_texts({"s": ["a 3 c d"] * 9}, ["a 5 c d"] * 9)
    turned = Dataset(data.name, data.entries[::-1])
    first, second = (only(decompose(every, "chrf", features=["number"], draws=0)) for every in (data, turned))
    assert first.examples
    assert first.examples == second.examples


def test_frequency_and_uniqueness_count_tokens_of_the_metric() -> None:
    row = numbers("3 , 4 and 3.", "3 cats")
    assert row.frequency == {"reference": 0.5, "hypothesis": 0.5}
    assert row.uniqueness == {"reference": pytest.approx(2 / 3), "hypothesis": 1.0}


def test_importances_of_words_add_up_beside_the_share() -> None:
    data = [Segment("he saw 5 cats", references=("he saw 3 cats",))]
    found = decompose(data, TokenF1(), features=["number"], explainer="shap", draws=0)
    row = only(found)
    assert row.additive is not None
    total = row.additive + found.others["system", row.metric]
    assert total == pytest.approx(0.75, abs=1e-9)  # score - score of nothing


def test_short_references_are_counted_under_unsmoothed_bleu() -> None:
    found = decompose([Segment("7", references=("7",))], "bleu", features=["number"], draws=0)
    _, note = found.notes
    assert note.startswith("1 reference(s) have fewer than 4 tokens: bleu without smoothing is 0 there even for the")


def test_empty_lines_are_no_members_and_count_as_zero() -> None:
    data = from_texts({"s": ["", "5 cats ran far away"]}, ["3 cats", "5 cats ran far away"])
    row = only(decompose(data, "bleu", features=["number"], draws=0))
    assert row.n == 1
    assert row.discrepancy["all"]["missing"] == 1


def test_rows_of_segments_and_records_have_the_promised_names() -> None:
    row = numbers(REFERENCE, REFERENCE)
    record = row.record()
    assert list(record)[:19] == [
        "system", "metric", "feature", "n", "informative", "sigma", "sigma_all", "oracle", "anti", "share", "low",
        "high", "guarded", "gain", "discrepancy", "frequency", "uniqueness", "flags", "reason",
    ]  # fmt: skip
    assert row.segments is not None
    (segment,) = row.segments.records()
    assert segment["hypothesis_spans"] == [[16, 17]]
    assert segment["sigma"] == pytest.approx(1.0)


def test_a_notebook_shows_a_table_with_everything_escaped() -> None:
    data = from_texts({"<s>": ["5 a b c"]}, ["5 a b c"])
    shown = decompose(data, "bleu", features=["number"], draws=0)._repr_html_()
    assert "<td>&lt;s&gt;</td><td>number</td><td>1</td><td>0.000</td>" in shown


def test_the_signature_names_how_features_were_hidden(tmp_path: Path) -> None:
    (tmp_path / "r").write_text("NN\n")
    tagger = f"pretagged(reference={str(tmp_path / 'r')!r}, hypothesis={str(tmp_path / 'r')!r})"
    found = decompose([Segment("a", references=("b",))], "bleu", tagger=tagger, draws=0)
    assert "|tok:13a|" in str(found.signatures["bleu"])
    assert str(found.signatures["bleu"]).endswith("|unit:word|level:segment|tokens:tagger|grain:token|seed:0")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"mode": "papr"}, SpecError, "mode is 'papr', expected 'paper' or 'compat'"),
        ({"draws": -1}, SpecError, "draws is -1, expected 0 or more"),
        ({"features": ["nubmer"]}, UnknownName, "no feature named 'nubmer'. Did you mean 'number'?"),
        ({"tagger": "ruels"}, UnknownName, "no tagger named 'ruels'. Did you mean 'rules'?"),
        ({"tokens": "tagger"}, SpecError, "tokens='tagger' needs a tagger that gives tokens, such as pretagged"),
        ({"tagger": object()}, SpecError, "is no tagger: it needs signature() and tag(texts)"),
    ],
)
def test_wrong_options_are_answered_with_the_right_ones(
    options: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)):
        decompose([Segment("a", references=("a",))], "bleu", **options)  # type: ignore[arg-type]


def test_metrics_and_segments_that_cannot_be_decomposed_are_refused() -> None:
    with pytest.raises(SpecError, match=re.escape("length reads no reference: a decomposition masks features in")):
        decompose([Segment("a")], "length")
    with pytest.raises(MissingInput, match=re.escape("needs a reference: segment 0 has no reference")):
        decompose([Segment("a")], "bleu")
    with pytest.raises(SpecError, match="rouge has no corpus score of its own: use level='segment'"):
        decompose([Segment("a", references=("a",))], "rouge", level="corpus")
    with pytest.raises(DataError, match="texts has no segment: nothing to decompose"):
        decompose(Dataset("texts", ()), "bleu")


def test_the_language_of_the_data_chooses_the_rules() -> None:
    data = from_texts({"s": ["nicht gut"]}, ["nicht gut"], languages=("en", "de"))
    marking = mark(data, FeatureSettings(features=("negation",)), LOCAL)
    assert marking.entries[0].hypothesis.spans == [((0, 5),)]
    assert dict(marking.signature.facts)["language"] == "de"
    russian = from_texts({"s": ["нет"]}, ["нет"], languages=("en", "ru"))
    with pytest.raises(SpecError, match=re.escape("rules has no list of negation for 'ru'")):
        decompose(russian, "bleu", features=["negation"])
    assert "negation" not in [row.feature for row in decompose(russian, "bleu", draws=0)]


def test_ragged_data_cannot_be_tagged_from_files(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("NN\nNN\n")
    tagger = (
        f"pretagged(reference={str(tmp_path / 't')!r}, hypothesis=({str(tmp_path / 't')!r}, {str(tmp_path / 't')!r}))"
    )
    data = from_texts({"a": ["x", "y"], "b": ["x", "y"]}, ["x", "y"])
    with pytest.raises(DataError, match="system 'b' lacks segments that others have"):
        decompose(Dataset("d", data.entries[:3]), "bleu", tagger=tagger)


class Toy:
    """Greedy matching over similarities that are given, as in the check of the paper's appendix."""

    inputs: ClassVar[Inputs] = Inputs.HYPOTHESIS | Inputs.REFERENCES
    higher_is_better: ClassVar[bool] = True

    def __init__(self, cosines: Sequence[Sequence[float]]) -> None:
        self.cosines = np.array(cosines)
        self.passes = 0

    def signature(self) -> Signature:
        return Signature("toy")

    def similarities(self, segments: Sequence[Segment]) -> list[tuple[Similarities, ...]]:
        self.passes += 1
        spans = np.array([[0, 1], [2, 3]])
        one = Similarities(self.cosines, spans, np.ones(2), spans, np.ones(2))
        return [(one,) * len(segment.references) for segment in segments]

    def matched(self, similarities: Sequence[Sequence[Similarities]]) -> FloatVector:
        return np.array([max(self._f(one) for one in each) for each in similarities])

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        return self.matched(self.similarities(segments))

    def _f(self, one: Similarities) -> float:
        recall, precision = one.cosines.max(axis=1).mean(), one.cosines.max(axis=0).mean()
        return float(2 * precision * recall / (precision + recall)) if precision + recall > 0 else 0.0


def test_a_matrix_is_changed_instead_of_texts() -> None:
    metric = Toy([[0.8, 0.1], [0.2, 0.5]])
    data = [Segment("a 1", references=("b 2",))]
    row = only(decompose(data, metric, features=["number"], draws=0))
    assert (row.sigma, row.oracle, row.anti) == (
        pytest.approx(0.65),
        pytest.approx(0.90),
        pytest.approx(0.40),
    )
    assert row.share == pytest.approx(0.5)
    assert metric.passes == 1


def test_segments_count_where_both_sides_have_the_feature() -> None:
    data = from_texts({"s": ["1", "x", "2", "y"]}, ["1", "2", "x", "y"])
    assert members_of(mark(data, FeatureSettings(features=("number",)), LOCAL)) == [[0]]


def test_settings_say_what_they_take() -> None:
    with pytest.raises(SpecError, match=re.escape("tokens is 'moses', expected 'metric' or 'tagger' or 'nltk'")):
        decompose([Segment("a", references=("a",))], "bleu", tokens="moses")  # type: ignore[arg-type]


def test_bertscore_lies_between_its_worst_and_best_case_for_one_encoding_of_each_text() -> None:
    data = [
        Segment("he paid 5 euros in May", references=("in May he paid 7 euros", "he paid 7 euros")),
        Segment("nobody saw 12 cats", references=("no one saw 12 cats",)),
    ]
    try:
        rows = decompose(data, "bertscore(model='embedded')", features=["number", "negation"], draws=0)
    except MissingExtra as error:
        pytest.skip(str(error))
    for row in rows:
        assert row.segments is not None
        assert (row.segments.anti <= row.segments.sigma).all()
        assert (row.segments.sigma <= row.segments.oracle).all()
    assert [row.n for row in rows] == [2, 1]
    assert rows[0].share is not None
    assert 0 < rows[0].share < 1


@pytest.mark.parametrize(("span", "share"), [(2e-6, 0.5), (1e-6, None), (8e-232, None), (0.0, None), (-0.1, None)])
def test_a_range_must_be_above_a_millionth_of_the_scale(span: float, share: float | None) -> None:
    assert share_of(span / 2, span, 0.0) == (None if share is None else pytest.approx(share))


def test_the_guarded_value_takes_ratios_above_zero_and_up_to_one() -> None:
    gains, ranges = np.array([1.0, 2.0, 3.0, 0.0, -1.0, 1e-9]), np.array([2.0, 2.0, 2.0, 2.0, 2.0, 1e-7])
    assert guarded_share(gains, ranges, 1e-6) == pytest.approx((1 / 2 + 1) / 6)
    assert guarded_share(gains, ranges, 0.0) == pytest.approx((1 / 2 + 1 + 1 / 100) / 6)


class TestGroups:
    """Systems are compared within a group only."""

    @pytest.fixture
    def data(self) -> Dataset:
        """One system in two groups whose segments have the same ids, a second in one of them."""
        texts = {
            ("de-en", "a"): ["I saw 3 cats in 1 garden today", "we had 4 dogs and 5 birds there"],
            ("de-en", "b"): ["I saw 2 cats in 1 garden today", "we had 9 dogs and 5 birds there"],
            ("ru-en", "a"): ["I saw 7 cats in 1 garden today", "we had 8 dogs and 6 birds there"],
        }
        reference = ("I saw 3 cats in 1 garden today", "we had 4 dogs and 5 birds there")
        entries = [
            Entry(f"{pair} {k}", system, Segment(text, references=(reference[k],)), extra={"pair": pair, "year": 2019})
            for (pair, system), held in texts.items()
            for k, text in enumerate(held)
        ]
        return Dataset("wmt", tuple(entries))

    def test_rows_and_tests_are_those_of_each_group_alone(self, data: Dataset) -> None:
        options = {"features": ["number"], "draws": 50, "scorers": [len]}
        found = decompose(data, "token_f1", group=["pair", "year"], **options)
        assert [(row.group, row.system) for row in found] == [
            ("de-en 2019", "a"), ("de-en 2019", "b"), ("ru-en 2019", "a"),
        ]  # fmt: skip
        for pair in ("de-en", "ru-en"):
            alone = Dataset("wmt", tuple(entry for entry in data.entries if entry.extra["pair"] == pair))
            own = decompose(alone, "token_f1", **options)
            held = [row for row in found if row.group == f"{pair} 2019"]
            assert [(row.share, row.low, row.high, row.n) for row in own] == [
                (row.share, row.low, row.high, row.n) for row in held
            ]
        (test,) = found.tests
        assert (test.group, test.first, test.second) == ("de-en 2019", "a", "b")
        assert [row.group for row in found.scorers] == ["de-en 2019", "de-en 2019", "ru-en 2019"]
        assert "one system, nothing to compare it with: ru-en 2019" in found.notes
        assert all(table.columns[0] == "group" for table in found.tables())
        assert [record.get("group") for record in found.records()][:3] == [row.group for row in found]

    def test_all_groups_are_one_question(self, data: Dataset) -> None:
        metric = Counting(TokenF1())
        decompose(data, metric, features=["number"], group=["pair"], draws=0)
        assert metric.calls == 1

    def test_without_groups_no_record_has_one(self, data: Dataset) -> None:
        assert not any("group" in record for record in decompose(data, "token_f1", features=["number"]).records())

    def test_a_column_that_is_not_there_is_refused(self, data: Dataset) -> None:
        expected = (
            "has no 'lp': --group takes columns that every segment fills; columns of wmt beside the texts: pair, year"
        )
        with pytest.raises(DataError, match=re.escape(expected)):
            decompose(data, "token_f1", features=["number"], group=["lp"])
