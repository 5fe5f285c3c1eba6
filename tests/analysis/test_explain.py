"""The explain engine: one call a round, the same digits whatever the order, nothing lost."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whyscore as ws
from whyscore.analysis.explain import ExplainSettings, Unexplained, attempt, cost
from whyscore.errors import ContractError, MissingInput, SpecError, UnknownName
from whyscore.registry import BUILT_IN
from whyscore.scoring.executors import Processes
from whyscore.scoring.stack import LOCAL, Cost
from whyscore.types import HYPOTHESIS, FloatVector, Inputs, Place, Segment, Side, Signature, Words, WordScores

PROBING = [
    "erasure",
    "lime(samples=30)",
    "shap",
    "shap(method=kernel, budget=60)",
    "partition(budget=40)",
    "greedy(rounds=3)",
    "random",
]
NEEDING = {
    "attention",
    "ensemble",
    "evidence",
    "gradient",
    "input_marginalization",
    "intrinsic",
    "logprob",
    "matching",
    "tagging",
    "token_matching",
}
"""Explainers that need more than a text and a function; all others are probed below, new ones too."""
PROBING += sorted(BUILT_IN["explainer"].keys() - NEEDING - {spec.partition("(")[0] for spec in PROBING})


@dataclass(frozen=True)
class Overlap:
    """The share of hypothesis words that stand in a reference; counts its calls."""

    sign: float = 1.0
    calls: list[int] = field(default_factory=list, compare=False)

    inputs = Inputs.HYPOTHESIS | Inputs.REFERENCES

    @property
    def higher_is_better(self) -> bool:
        return self.sign > 0

    def signature(self) -> Signature:
        return Signature("overlap", (("version", "1"),))

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        self.calls.append(len(segments))
        return np.array([self.sign * self._one(segment) for segment in segments])

    @staticmethod
    def _one(segment: Segment) -> float:
        words = segment.hypothesis.split()
        found = {word for reference in segment.references for word in reference.split()}
        return sum(word in found for word in words) / 10 + len(found & set(words)) / 7


SEGMENTS = [
    Segment("the cat sat on a mat today", "die Katze", ("a cat sat on the mat", "the cat was sitting")),
    Segment("hello", None, ("hello world",)),
    Segment("completely different words here", None, ("nothing shared at all",)),
    Segment("  spaced   out  text ", None, ("spaced text",)),
    Segment("the cat sat on a mat today", None, ("a dog",)),
]


def digits(explanations: Sequence[ws.Explanation]) -> list[tuple[object, ...]]:
    return [(one.place, one.words, one.importance.tolist(), one.score, one.probes) for one in explanations]


@pytest.mark.parametrize("explainer", PROBING)
def test_the_number_of_calls_does_not_depend_on_the_number_of_segments(explainer: str) -> None:
    one, many = Overlap(), Overlap()
    ws.explain(SEGMENTS[:1], one, explainer)
    ws.explain(SEGMENTS * 20, many, explainer)
    assert len(many.calls) == len(one.calls)


def test_erasure_takes_one_call_for_the_whole_texts_and_one_for_all_probes() -> None:
    metric = Overlap()
    ws.explain(SEGMENTS, metric, "erasure")
    assert len(metric.calls) == 2


@pytest.mark.parametrize("explainer", PROBING)
def test_order_windows_batches_and_processes_change_no_digit(explainer: str, tmp_path: Path) -> None:
    expected = digits(ws.explain(SEGMENTS, "token_f1", explainer))
    backwards = ws.explain(SEGMENTS[::-1], "token_f1", explainer)
    by_segment = sorted(backwards, key=lambda one: -one.index)
    assert digits(by_segment) == expected
    assert digits(ws.explain(SEGMENTS, "token_f1", explainer, window=1)) == expected
    small = ws.Resources(size=3)
    assert digits(ws.explain(SEGMENTS, "token_f1", explainer, resources=small)) == expected
    stored = ws.Resources(store=ws.Store(tmp_path / "s"), executor=Processes(2))
    assert digits(ws.explain(SEGMENTS, "token_f1", explainer, resources=stored)) == expected
    again = ws.Resources(store=ws.Store(tmp_path / "s"))
    assert digits(ws.explain(SEGMENTS, "token_f1", explainer, resources=again)) == expected


def test_a_resumed_run_scores_nothing_twice(tmp_path: Path) -> None:
    store = ws.Store(tmp_path / "s")
    ws.explain(SEGMENTS[:2], Overlap(), "lime(samples=30)", resources=ws.Resources(store=store))
    metric = Overlap()
    ws.explain(SEGMENTS[:2], metric, "lime(samples=30)", resources=ws.Resources(store=store))
    assert metric.calls == []


def test_another_seed_gives_other_probes() -> None:
    first, second = (ws.explain(SEGMENTS[:1], Overlap(), "lime(samples=30)", seed=seed) for seed in (0, 1))
    assert digits(first) != digits(second)


def test_a_metric_and_its_negation_have_equal_importances() -> None:
    for explainer in PROBING:
        up, down = (ws.explain(SEGMENTS, Overlap(sign), explainer) for sign in (1.0, -1.0))
        for one, other in zip(up, down, strict=True):
            assert one.importance.tolist() == pytest.approx(other.importance.tolist(), abs=1e-12)
            assert one.score == -other.score


def test_erasing_the_only_matching_word_takes_the_whole_score() -> None:
    found = ws.explain([Segment("a cat", references=("a dog",))], "token_f1", sides=["hypothesis"])[0]
    assert found.score == 0.5
    assert found.importance.tolist() == [0.5, 0.5 - 2 / 3]
    assert found.error_scores.tolist() == [-0.5, 2 / 3 - 0.5]
    assert [found.words.text[start:end] for start, end in found.words.spans] == ["a", "cat"]


def test_every_reference_is_explained_with_the_others_fixed() -> None:
    segment = Segment("a b", references=("a", "b c"))
    found = ws.explain([segment], Overlap(), "erasure")
    assert [str(one.place) for one in found] == ["hypothesis", "reference 1", "reference 2"]
    whole = Overlap().score([segment])[0]
    without = Overlap().score([Segment("a b", references=("a", "c"))])[0]
    assert found[2].importance[0] == pytest.approx(whole - without)
    assert found[0].segment == segment


def test_the_source_is_explained_where_the_metric_reads_it() -> None:
    segment = Segment("zwei Hunde", "two dogs", ("ref",))
    found = ws.explain([segment], "copy", "erasure")
    assert [one.place.side for one in found] == [Side.HYPOTHESIS, Side.SOURCE]


@pytest.mark.parametrize("text", ["", "   ", "one", "one two", "word " * 300, "w " * 1000])
@pytest.mark.parametrize("explainer", PROBING)
def test_texts_of_any_length_can_be_explained(explainer: str, text: str) -> None:
    found = ws.explain([Segment(text, references=("one word",))], "token_f1", explainer, sides=["hypothesis"])[0]
    assert found.importance.shape == (len(text.split()),)
    assert np.isfinite(found.importance).all()


@pytest.mark.parametrize("explainer", PROBING)
def test_probes_are_counted_as_planned(explainer: str) -> None:
    metric = Overlap()
    asked = cost(SEGMENTS, metric, explainer)
    found = ws.explain(SEGMENTS, metric, explainer)
    probes = sum(one.probes - 1 for one in found)
    if explainer.startswith(("partition", "greedy")):  # their later rounds are counted at their largest
        assert asked.asked >= probes + len(SEGMENTS)
    else:
        assert asked.asked == probes + len(SEGMENTS)
    assert asked.distinct <= asked.asked
    assert asked.stored == 0


def test_a_dry_run_knows_what_is_stored(tmp_path: Path) -> None:
    held = ws.Resources(store=ws.Store(tmp_path / "s"))
    ws.explain(SEGMENTS, "token_f1", "erasure", resources=held)
    asked = cost(SEGMENTS, "token_f1", "erasure", resources=held)
    assert asked.stored == asked.distinct
    assert cost([Segment("")], "length", "erasure") == Cost(1, 1, 0)


def test_repeats_tell_how_stable_an_explanation_is() -> None:
    noisy = ws.explain(SEGMENTS[:1], Overlap(), "lime(samples=12)", repeat=3, sides=["hypothesis"])[0]
    steady = ws.explain(SEGMENTS[:1], Overlap(), "erasure", repeat=3, sides=["hypothesis"])[0]
    assert noisy.stability is not None
    assert noisy.stability < 1
    assert steady.stability == pytest.approx(1)
    assert noisy.probes == 3 * 12
    single = ws.explain(SEGMENTS[:1], Overlap(), "lime(samples=12)", sides=["hypothesis"])[0]
    assert noisy.importance.tolist() == single.importance.tolist()
    assert single.stability is None


def test_shapley_values_add_up_to_what_the_text_earns() -> None:
    for one in ws.explain(SEGMENTS, "token_f1", "shap"):
        hidden = one.segment.with_text(one.place, " ".join(["UNKWORDZ"] * len(one.words)))
        earned = one.score - ws.score([hidden], "token_f1").values[0]
        assert one.importance.sum() == pytest.approx(earned, abs=1e-12)


def exploding(segments: Sequence[Segment]) -> list[float]:
    if any("boom" in segment.hypothesis and "safe" not in segment.hypothesis for segment in segments):
        raise RuntimeError("cannot read boom")
    return [float(len(segment.hypothesis)) for segment in segments]


def test_a_metric_that_raises_on_a_probe_leaves_the_other_segments_explained() -> None:
    asked = [Segment("fine words"), Segment("safe boom here"), Segment("also fine")]
    with pytest.raises(Unexplained) as caught:
        ws.explain(asked, exploding, "erasure")
    outcome = attempt(asked, exploding, "erasure", ExplainSettings(), LOCAL)
    assert [one.segment for one in outcome] == [asked[0], asked[2]]
    assert [one.index for one in outcome] == [0, 2]
    assert list(outcome.failures) == [1]
    message = str(caught.value)
    assert message.startswith("1 of 3 segments could not be explained; the first is segment 1: ")
    assert "'boom here'" in message
    assert "cannot read boom" in message


def test_a_nan_for_a_probe_is_refused_with_its_text() -> None:
    def broken(segments: Sequence[Segment]) -> list[float]:
        return [float("nan") if s.hypothesis == "b" else 1.0 for s in segments]

    with pytest.raises(ContractError, match=r"gave nan for|nan.*'b'"):
        ws.explain([Segment("a b")], broken, "erasure")


def test_a_function_with_the_wrong_count_is_named() -> None:
    def short(segments: Sequence[Segment]) -> list[float]:
        return [1.0] * min(1, len(segments))

    with pytest.raises(ContractError, match="short"):
        ws.explain(SEGMENTS, short, "erasure")


def test_a_constant_metric_is_flagged() -> None:
    found = ws.explain([Segment("a b c")], lambda segments: [1.0] * len(segments), "erasure")[0]
    assert found.importance.tolist() == [0.0, 0.0, 0.0]
    assert "constant" in found.flags


def test_text_that_holds_the_mask_string_is_flagged() -> None:
    found = ws.explain([Segment("an UNKWORDZ word", references=("a word",))], "token_f1", "lime", sides=["hypothesis"])[
        0
    ]
    assert "mask string in text" in found.flags


def test_a_text_without_blanks_gets_a_hint() -> None:
    text = "我希望大家能花点时间考虑一个非常简单的事实那就是，到目前为止，我们对宇宙的大部分了解都来自于光。"
    found = ws.explain([Segment(text)], "length", "erasure")[0]
    assert "long units: try unit auto" in found.flags
    assert len(ws.explain([Segment(text)], "length", "erasure", unit="auto")[0].words) == len(text)


def test_a_long_text_gets_a_hint() -> None:
    short, long = (Segment(" ".join(["w."] * count)) for count in (250, 251))
    assert ws.explain([short], "length", "erasure")[0].flags == ()
    assert ws.explain([long], "length", "erasure")[0].flags == ("long text: try unit sentence",)
    assert "long text: try unit sentence" not in ws.explain([long], "length", "erasure", unit="sentence")[0].flags


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ws.explain(SEGMENTS, "chrf", "lim"), UnknownName, "no explainer named 'lim'. Did you mean 'lime'?"),
        (
            lambda: ws.explain(SEGMENTS, "chrf", sides=["target"]),
            SpecError,
            "no side named 'target'. Known: hypothesis, source, reference",
        ),
        (lambda: ws.explain(SEGMENTS, "chrf", repeat=0), SpecError, "repeat is 0, expected 1 or more"),
        (
            lambda: ws.explain([Segment("a")], "chrf"),
            MissingInput,
            "chrf needs a reference: segment 0 has no reference.",
        ),
        (
            lambda: ws.explain(SEGMENTS, "length", sides=["source"]),
            MissingInput,
            "the metric reads hypothesis of segment 0, not source",
        ),
        (
            lambda: ws.explain(SEGMENTS, "length", "intrinsic"),
            SpecError,
            "length has no word scores of its own: explain it with erasure, lime or shap",
        ),
        (
            lambda: ws.explain(["a text"], "chrf"),
            ValueError,
            "item 0 is 'a text': pass Segment(hypothesis, source, references) objects",
        ),
    ],
)
def test_what_cannot_be_explained_is_refused(call: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        call()


@pytest.mark.parametrize("metric", ["bleu", "chrf", "ter", "rouge"])
def test_lexical_metrics_say_themselves_which_words_matched(metric: str) -> None:
    found = ws.explain(SEGMENTS, metric, "intrinsic")
    assert all(one.importance.shape == (len(one.words),) for one in found)
    assert all(one.notes is not None and len(one.notes) == len(one.words) for one in found)


class HypothesisOnly(Overlap):
    """Has something to say of the hypothesis alone."""

    def word_scores(self, segments: Sequence[Segment], place: Place, words: Sequence[Words]) -> list[WordScores]:
        if place != HYPOTHESIS:
            raise SpecError(f"overlap has no words for the {place}")
        return [WordScores(np.ones(len(text))) for _, text in zip(segments, words, strict=True)]


def test_texts_that_a_metric_has_no_words_for_are_left_out_unless_asked_for() -> None:
    found = ws.explain(SEGMENTS, HypothesisOnly(), "intrinsic")
    assert [one.place for one in found] == [HYPOTHESIS] * len(SEGMENTS)
    with pytest.raises(SpecError, match="overlap has no words for the reference 1"):
        ws.explain(SEGMENTS, HypothesisOnly(), "intrinsic", sides=["reference"])


@given(st.lists(st.text(max_size=25), min_size=1, max_size=4), st.text(min_size=1, max_size=20))
@settings(max_examples=40)
def test_words_slice_their_text_and_importances_are_finite(texts: list[str], reference: str) -> None:
    for one in ws.explain([Segment(text, references=(reference,)) for text in texts], Overlap(), "lime(samples=10)"):
        assert list(one.words) == [one.words.text[start:end] for start, end in one.words.spans]
        assert one.words.text == one.segment.text(one.place)
        assert np.isfinite(one.importance).all()


def test_explanations_show_themselves() -> None:
    found = ws.explain([Segment("<b>a</b> cat", references=("a cat",))], "token_f1", sides=["hypothesis"])[0]
    assert str(found) == "[<b>a</b> -0.17] [cat +0.50]"
    html = found._repr_html_()
    assert "&lt;b&gt;a&lt;/b&gt;" in html
    assert "<b>" not in html
    with pytest.raises(ValueError, match="read-only"):
        found.importance[0] = 1
    assert repr(found) == "<Explanation of hypothesis, score 0.5: [<b>a</b> -0.17] [cat +0.50]>"
    many = ws.explain(SEGMENTS * 15, "token_f1", sides=["hypothesis"])
    assert many._repr_html_().count("<small>") == 40
    assert "and 35 more" in many._repr_html_()


def test_the_signature_names_every_choice() -> None:
    found = ws.explain(SEGMENTS[:1], "chrf", "lime(samples=12)", seed=3, unit="char")[0]
    facts = dict(found.signature.facts)
    assert found.signature.spec == "lime(samples=12)"
    assert facts == {"metric": "chrf", "unit": "char", "masker": "replace", "seed": "3", "version": ws.__version__}


def token_f1_rows(shipped: Path) -> list[dict[str, object]]:
    lines = (shipped / "boosting" / "explanations_tokenF1_wmt17_csen.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_erasure_equals_the_golden_explanations(shipped: Path) -> None:
    rows = token_f1_rows(shipped)
    segments = [Segment(str(row["hypothesis"]), references=(str(row["reference"]),)) for row in rows]
    found = ws.explain(segments, "token_f1", "erasure")
    for row, hypothesis, reference in zip(rows, found[::2], found[1::2], strict=True):
        assert hypothesis.score == pytest.approx(row["score"], abs=1e-12)
        assert hypothesis.importance.tolist() == pytest.approx(row["erasure_hyp"], abs=1e-12)
        assert reference.importance.tolist() == pytest.approx(row["erasure_ref"], abs=1e-12)


def test_lime_in_compat_equals_the_golden_explanations(shipped: Path) -> None:
    rows = token_f1_rows(shipped)
    for row in rows:
        segment = Segment(str(row["hypothesis"]), references=(str(row["reference"]),))
        spec = f"lime(samples={row['lime_num_samples']}, mode=compat, seed={row['lime_seed']})"
        hypothesis, reference = ws.explain([segment], "token_f1", spec, unit='word(separator="space")')
        assert hypothesis.importance.tolist() == pytest.approx(row["lime_hyp"], abs=1e-12)
        assert reference.importance.tolist() == pytest.approx(row["lime_ref"], abs=1e-12)


def test_shap_equals_brute_force_shapley_values(shipped: Path) -> None:
    lines = (shipped / "boosting" / "shapley_exact_tokenF1_wmt17_csen.jsonl").read_text("utf-8").splitlines()
    for row in map(json.loads, lines):
        segment = Segment(row["hypothesis"], references=(row["reference"],))
        for spec, tolerance in [
            ("shap", 1e-12),
            ("shap(method=exact)", 1e-12),
            ("shap(method=permutation, passes=1)", 1e-12),
            ("shap(method=kernel, budget=126)", 1e-9),
        ]:
            found = ws.explain([segment], "token_f1", spec, sides=["hypothesis"])[0]
            assert found.importance.tolist() == pytest.approx(row["shapley_hyp"], abs=tolerance), spec
            assert found.importance.sum() == pytest.approx(row["score"] - row["base"], abs=1e-9)


def auc(scores: FloatVector, gold: FloatVector) -> float:
    """The share of (error, no error) pairs ranked right, ties half."""
    errors, others = scores[gold == 1][:, None], scores[gold == 0][None, :]
    return float(((errors > others) + 0.5 * (errors == others)).mean())


@pytest.mark.parametrize(
    ("pair", "n", "explainer", "expected", "tolerance"),
    [
        ("et-en", 887, "erasure", 0.9124, 5e-5),
        ("ro-en", 654, "erasure", 0.9421, 5e-5),
        ("et-en", 887, "lime", 0.925, 5e-3),
        ("ro-en", 654, "lime", 0.956, 5e-3),
        ("et-en", 887, "random", 0.5, 2e-2),
        ("ro-en", 654, "random", 0.5, 2e-2),
    ],
)
def test_explanations_find_the_errors_people_found(
    shipped: Path, pair: str, n: int, explainer: str, expected: float, tolerance: float
) -> None:
    folder = shipped / "eval4nlp2021" / "dev" / pair
    hypotheses, references, tags = (
        (folder / f"dev.{name}").read_text("utf-8").removesuffix("\n").split("\n") for name in ("mt", "pe", "tgt-tags")
    )
    gold = [np.array(line.split(), dtype=float) for line in tags]
    both = [i for i, tag in enumerate(gold) if 0 < tag.sum() < len(tag)]
    assert len(both) == n
    segments = [Segment(hypotheses[i], references=(references[i],)) for i in both]
    found = ws.explain(segments, "token_f1", explainer, sides=["hypothesis"], unit='word(separator="space")')
    values = [auc(one.error_scores, gold[i]) for i, one in zip(both, found, strict=True)]
    assert np.mean(values) == pytest.approx(expected, abs=tolerance)


def test_explanations_are_a_result_with_records_tables_and_a_short_form() -> None:
    segments = [Segment(f"a cat {k}", references=("a dog",)) for k in range(60)]
    found = ws.explain(segments, "token_f1", "erasure", sides=["hypothesis"])
    first = next(iter(found.records()))
    assert (first["id"], first["system"], first["metric"], first["explainer"]) == ("0", "system", "token_f1", "erasure")
    assert [word["text"] for word in first["words"]] == ["a", "cat", "0"]
    (table,) = found.tables()
    assert len(table.rows) == 180
    assert table.rows[1][:9] == ("0", "system", "token_f1", "erasure", "hypothesis", None, "cat", 2, 5)
    assert found.header()["kind"] == "explanations"
    assert list(found.header()["signatures"]) == ["erasure of token_f1"]
    assert len(repr(found)) < 2000
    assert "50 more" in repr(found)
    assert "and 20 more" in found._repr_html_()


def test_scores_and_boosted_scores_show_themselves_in_a_line() -> None:
    segments = [Segment(f"a cat {k}", references=("a dog",)) for k in range(1000)]
    scores = ws.score(segments, "token_f1")
    assert repr(scores).startswith("<Scores of token_f1: 1000 segments [0.4, 0.4,")
    assert len(repr(scores)) < 200
    assert list(scores.records())[999] == {"id": "999", "score": pytest.approx(0.4)}
    boosted = ws.boost(segments[:3], "token_f1")
    assert len(repr(boosted)) < 200
    assert [record["id"] for record in boosted.records()] == ["0", "1", "2"]
    (total,) = boosted.systems().records()
    assert (total["system"], total["segments"]) == ("system", 3)
