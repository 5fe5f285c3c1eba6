"""Boosted metrics: worked examples, the contract of a metric, and everything that is refused."""

import re
from pathlib import Path

import numpy as np
import pytest

import whyscore as ws
from whyscore.aggregate import PowerMean
from whyscore.analysis.boost import cost
from whyscore.errors import SpecError, TextFailure
from whyscore.metrics.boosted import Boosted
from whyscore.metrics.lexical.token_f1 import TokenF1
from whyscore.scoring.executors import Processes
from whyscore.scoring.stack import Resources
from whyscore.testing import check_metric
from whyscore.testing.checks import SEGMENTS
from whyscore.testing.fakes import Counting, WordWeights
from whyscore.types import Segment, Side

CAT = Segment("I have a cat", references=("I have a dog",))
# A reference of one word cannot be erased: nothing is left to compare with.
LONGER = [segment for segment in SEGMENTS if all(len(text.split()) != 1 for text in segment.references)]


def test_the_boosted_score_mixes_the_score_with_the_mean_of_its_importances() -> None:
    found = ws.boost([CAT], "token_f1", "erasure", p=1.0, w=0.6)
    importances = np.concatenate([one.importance for one in ws.explain([CAT], "token_f1", "erasure")])
    mean = PowerMean(1.0).aggregate(importances)
    assert found.original.tolist() == [0.75]
    assert found.aggregate.tolist() == pytest.approx([mean])
    assert found.scores.values.tolist() == pytest.approx([0.6 * 0.75 + 0.4 * mean])
    assert found.scores.columns == ("original", "aggregate")


def test_references_and_hypothesis_can_have_a_power_each() -> None:
    found = ws.boost([CAT, CAT], "token_f1", "erasure", aggregator="per_side(p=3, reference=0.5)", w=0.6)
    by_side = {one.place.side: one.importance for one in ws.explain([CAT], "token_f1", "erasure")}
    references, hypothesis = by_side[Side.REFERENCE], by_side[Side.HYPOTHESIS]
    shift = -min(references.min(), hypothesis.min()) + 1e-9
    means = [(((v + shift) ** p).mean()) ** (1 / p) for v, p in ((references, 0.5), (hypothesis, 3.0))]
    assert found.aggregate.tolist() == pytest.approx([np.mean(means)] * 2, rel=1e-9)
    assert found.scores.values.tolist() == pytest.approx([0.6 * 0.75 + 0.4 * float(np.mean(means))] * 2)
    assert found.degenerate == 0.0
    assert "per_side(p=3.0, reference=0.5)" in str(found.metric.signature())


def test_a_weight_of_one_is_the_original_and_of_zero_the_explanation() -> None:
    original = ws.score([CAT], "chrf").values
    assert ws.boost([CAT], "chrf", p=2.0, w=1.0).scores.values == pytest.approx(original)
    alone = ws.boost([CAT], "chrf", p=2.0, w=0.0)
    assert alone.scores.values == pytest.approx(alone.aggregate)


@pytest.mark.parametrize(
    "spec",
    [
        "boosted(metric=chrf, explainer=lime(samples=20), p=1.5, w=0.6)",
        "boosted(metric=ter, explainer=intrinsic, aggregator=exp_mean(t=0.1))",
        "boosted(metric=token_f1, explainer=random, p=-2.0, w=0.0)",
        "boosted(metric=boosted(metric=token_f1, explainer=lime(samples=6)), explainer=lime(samples=6), w=0.9)",
        'boosted(metric=chrf, explainer=lime(samples=10), aggregator=quantile(q=0.2), parts="first_reference")',
    ],
)
def test_a_boosted_metric_is_a_metric(spec: str) -> None:
    made = ws.build(spec)
    assert ws.build(ws.spec_of(made)) == made
    check_metric(made)


def test_a_metric_boosted_by_erasure_is_a_metric() -> None:
    check_metric(ws.build("boosted(metric=token_f1)"), LONGER)


def test_the_example_of_the_interface_works_everywhere() -> None:
    metric = ws.boosted("chrf", "lime(samples=100)", p=1.5, w=0.6)
    assert ws.spec_of(metric) == "boosted(metric=chrf, explainer=lime, p=1.5, w=0.6)"
    score = ws.score([CAT], metric).values[0]
    assert score == ws.score([CAT], "boosted(metric=chrf, explainer=lime(samples=100), p=1.5, w=0.6)").values[0]
    explained = ws.explain([CAT], metric, "erasure")
    assert [one.score for one in explained] == [score, score]


def test_the_signature_names_power_weight_rule_and_calibration() -> None:
    made = Boosted(TokenF1(), p=1.5, w=0.6, rule="median", calibration="abc")
    facts = dict(made.signature().facts)
    assert (facts["aggregator"], facts["w"]) == ("power_mean(p=1.5)", "0.6")
    assert (facts["rule"], facts["calibration"]) == ("median", "abc")
    assert facts["metric"].startswith("token_f1;nrefs:any")


def test_a_function_can_be_boosted_but_is_never_stored() -> None:
    def words(segments: list[Segment]) -> list[float]:
        return [float(len(segment.hypothesis.split())) for segment in segments]

    made = ws.boosted(words, "erasure", p=1.0, w=0.5)
    assert not made.signature().stable
    # Every word earns 1, so that the mean of the importances is 1.
    assert made.score([Segment("a b c")]) == pytest.approx([0.5 * 3 + 0.5 * 1])


def test_lower_is_better_metrics_are_turned_first() -> None:
    found = ws.boost([CAT], "ter", "erasure", p=1.0, w=1.0)
    assert found.metric.higher_is_better
    assert found.scores.values == pytest.approx(-ws.score([CAT], "ter").values)


def test_importances_of_all_references_are_aggregated() -> None:
    segment = Segment("a cat", references=("a dog", "the cat sat"))
    whole = ws.boosted("token_f1", "erasure", p=1.0, w=0.0)
    first = ws.boosted("token_f1", "erasure", p=1.0, w=0.0, parts="first_reference")
    own = ws.boosted("token_f1", "erasure", p=1.0, w=0.0, parts="hypothesis")
    sizes = [made.components([segment]).bags.lengths.tolist() for made in (whole, first, own)]
    assert sizes == [[7], [4], [2]]


def test_a_shift_and_a_stretch_bring_the_aggregate_to_another_scale() -> None:
    plain = ws.boosted("token_f1", p=1.0, w=0.0).score([CAT])
    scaled = Boosted(TokenF1(), p=1.0, w=0.0, shift=2.0, stretch=3.0).score([CAT])
    assert scaled == pytest.approx(2 + 3 * plain)


def test_a_segment_without_words_has_no_boosted_score() -> None:
    metric = WordWeights(("a",), (1.0,))
    found = ws.boost([Segment(""), Segment("a")], metric, p=1.0, w=0.5)
    assert np.isnan(found.scores.values).tolist() == [True, False]
    assert found.empty == 1
    with pytest.raises(TextFailure, match=re.escape('on_empty="score" keeps the original score')):
        ws.boosted(metric, p=1.0).score([Segment("")])
    assert Boosted(metric, p=1.0, on_empty="score").score([Segment("")]).tolist() == [0.0]
    kept = ws.boost([Segment(""), Segment("a")], metric, p=1.0, w=0.5, on_empty="score")
    assert kept.scores.values[0] == 0.0
    assert kept.empty == 1


def test_three_hundred_words_are_no_problem() -> None:
    long = Segment(" ".join(f"w{k}" for k in range(300)), references=("w1 w2 w3",))
    for explainer in ("erasure", "lime(samples=50)", "shap(passes=1)", "random"):
        assert np.isfinite(ws.boosted("token_f1", explainer, p=-3.0, w=0.5).score([long])).all()


def test_the_degenerate_share_is_told() -> None:
    segments = [CAT, Segment("I have a dog", references=("I have a dog",))]
    assert ws.boost(segments, "token_f1", "erasure", p=-3.0, w=0.5).degenerate == 0.5
    assert ws.boost(segments, "token_f1", "erasure", p=3.0, w=0.5).degenerate == 0.0


def test_the_metric_is_asked_as_often_whatever_the_number_of_segments() -> None:
    calls = []
    for count in (1, 20):
        metric = Counting(TokenF1())
        segments = [Segment(f"a cat {k}", references=(f"a dog {k}",)) for k in range(count)]
        ws.boosted(metric, "lime(samples=10)", p=1.0).score(segments)
        calls.append(metric.calls)
    assert calls[0] == calls[1]


def test_order_and_processes_and_the_store_change_no_digit(tmp_path: Path) -> None:
    segments = [Segment(f"a cat number {k}", references=(f"a dog number {k + 1}",)) for k in range(6)]
    plain = ws.boost(segments, "token_f1", "lime(samples=10)", p=1.3, w=0.4).scores.values
    turned = ws.boost(segments[::-1], "token_f1", "lime(samples=10)", p=1.3, w=0.4).scores.values[::-1]
    stored = Resources(store=ws.Store(tmp_path / "scores.sqlite"))
    first = ws.boost(segments[:3], "token_f1", "lime(samples=10)", p=1.3, w=0.4, resources=stored).scores.values
    resumed = ws.boost(segments, "token_f1", "lime(samples=10)", p=1.3, w=0.4, resources=stored).scores.values
    two = Resources(executor=Processes(2))
    spread = ws.boost(segments, "token_f1", "lime(samples=10)", p=1.3, w=0.4, resources=two).scores.values
    for other in (turned, resumed, spread):
        np.testing.assert_array_equal(other, plain)
    np.testing.assert_array_equal(first, plain[:3])


def test_nested_boosting_costs_the_product() -> None:
    inner = ws.boosted("token_f1", "lime(samples=10)", p=1.0)
    outer = ws.boosted(inner, "lime(samples=5)", p=1.0)
    # Both sides are explained: 1 + 2 * 9 texts within, 1 + 2 * 4 around.
    assert cost([CAT], inner).asked == 19
    assert cost([CAT], outer).asked == 19 * 9


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("boosted", "boosted needs metric: write boosted(metric=...)"),
        ("boosted(metric=chrf, p=1000)", "power_mean: p is 1000.0, expected a number from -300 to 300, or inf or -inf"),
        ("boosted(metric=chrf, w=1.5)", "boosted: w is 1.5, expected a weight from 0"),
        ("boosted(metric=chrf, p=1, aggregator=mean)", "give p or an aggregator, not both"),
        (
            "boosted(metric=chrf, aggregator=per_side, parts=hypothesis)",
            "per_side has a power for the references, but parts='hypothesis' leaves them out: use power_mean",
        ),
        ("boosted(metric=chrf, shift=inf)", "boosted: shift and stretch are inf and 1.0, expected numbers"),
        ("boosted(metric=chrf, parts=some)", "expected 'all' or 'hypothesis' or 'first_reference'"),
    ],
)
def test_options_out_of_range_are_refused(spec: str, message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        ws.build(spec)


def test_a_notebook_shows_how_each_score_came_about() -> None:
    page = ws.boost([Segment("<b> cat", references=("a cat",))], "token_f1", p=1.0, w=0.6)._repr_html_()
    assert "= 0.6 &middot; 0.5 + 0.4 &middot; " in page
    assert "&lt;b&gt;" in page
    assert "<b> cat" not in page


def test_boosting_nothing_is_refused() -> None:
    with pytest.raises(SpecError, match="no metric to boost"):
        ws.boosted()
