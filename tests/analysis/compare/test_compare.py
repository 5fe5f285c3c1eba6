"""Comparing systems."""

import re
from dataclasses import replace

import numpy as np
import pytest
from sacrebleu.metrics import BLEU
from scipy import stats

import whyscore as ws
from whyscore.analysis.compare.compare import compare
from whyscore.errors import DataError, SpecError
from whyscore.stats.resampling import content_order
from whyscore.stats.systems import Test, bootstrap_p, bradley_terry, flip_test, mean_rows, mean_totals, resample
from whyscore.types import Dataset, Entry, Segment

REFERENCES = ["the cat sat on the mat", "a dog ran away", "it rains today", "I like green tea", "he went home early"]
GOOD = ["the cat sat on a mat", "a dog ran away", "it rains today", "I like tea", "he went home"]
BAD = ["cat on mat", "dogs run", "it is wet", "I like coffee", "he goes"]


def three() -> Dataset:
    return ws.from_texts({"good": GOOD, "bad": BAD, "same": GOOD}, references=REFERENCES)


def larger(count: int = 60) -> Dataset:
    """Two systems that make the same errors on exchanged halves of the segments, and a third that makes many more."""
    rng = np.random.default_rng(0)
    words = [f"word{k}" for k in range(50)]
    half = [" ".join(rng.choice(words, 12)) for _ in range(count // 2)]

    def changed(share: float) -> list[str]:
        return [noisy(text, share, words, rng) for text in half]

    one, other = changed(0.2), changed(0.2)
    systems = {"a": one + other, "b": other + one, "c": changed(0.7) + changed(0.7)}
    return ws.from_texts(systems, references=half + half)


def noisy(text: str, share: float, words: list[str], rng: np.random.Generator) -> str:
    return " ".join(str(rng.choice(words)) if rng.random() < share else word for word in text.split())


def test_scores_are_those_of_the_metric_and_of_sacrebleu() -> None:
    found = compare(three(), ["bleu", "token_f1"])
    bleu, f1 = found.metrics
    assert bleu.totals["good"].value == pytest.approx(BLEU().corpus_score(GOOD, [REFERENCES]).score)
    segments = [Segment(text, references=(ref,)) for text, ref in zip(GOOD, REFERENCES, strict=True)]
    assert f1.totals["good"].value == pytest.approx(ws.score(segments, "token_f1").values.mean())
    assert str(bleu.signature).startswith("bleu|nrefs:1|")


def test_tiny_sets_are_tested_exactly_and_told_to_be_small() -> None:
    found = compare(three(), ["chrf", "token_f1"])
    assert all(pair.exact for pair in found.pairs)
    assert found.notes[0] == "5 segments are too few: the smallest possible p is 0.0625"
    same = next(pair for pair in found.pairs if (pair.first, pair.second) == ("good", "same"))
    assert (same.difference, same.p, same.better) == (0.0, 1.0, None)
    assert "do not differ significantly on 5 segments" in str(same)


def test_a_clear_difference_is_found_and_a_small_one_is_not() -> None:
    found = compare(larger(), ["bleu", "chrf", "token_f1"], draws=500)
    for one in found:
        assert one.ranks["a"] == 1
        assert one.ranks["c"] == 2
        pairs = {(pair.first, pair.second): pair for pair in one.pairs}
        assert pairs["a", "c"].better == "a"
        assert pairs["a", "b"].p == 1.0
        assert pairs["a", "b"].better is None
        assert pairs["a", "b"].detectable is not None
        assert re.match(
            rf"{one.metric}: a is significantly better than c by .* on 60 segments \(p [=<] 0.00\d\)",
            str(pairs["a", "c"]),
        )
        assert re.match(
            rf"{one.metric}: a and b do not differ significantly on 60 segments \(difference .*, p = .*; "
            r"differences of about .* or more are detectable", str(pairs["a", "b"]),
        )  # fmt: skip


def test_p_values_of_equally_good_systems_are_uniform() -> None:
    words = [f"word{k}" for k in range(50)]
    found: dict[str, list[float]] = {"chrf": [], "token_f1": []}
    for seed in range(80):
        rng = np.random.default_rng([5, seed])
        references = [" ".join(rng.choice(words, 12)) for _ in range(25)]
        systems = {name: [noisy(text, 0.2, words, rng) for text in references] for name in "ab"}
        data = ws.from_texts(systems, references=references)
        for one in compare(data, list(found), draws=99, seed=seed):
            found[one.metric].append(one.pairs[0].p)
    for metric, ps in found.items():
        assert stats.kstest(ps, "uniform").pvalue > 0.01, metric


@pytest.mark.parametrize("test", ["permutation", "bootstrap"])
def test_the_corpus_test_of_a_mean_is_that_of_its_segments(test: str) -> None:
    data = larger(30)
    found = compare(data, "token_f1", test=test, draws=2000)
    values = {name: ws.score(data.of(name), "token_f1").values for name in data.systems}
    for pair in found.pairs:
        first, second = values[pair.first], values[pair.second]
        if test == "permutation":
            peer = flip_test(first - second, n=2000, seed=0)
        else:
            totals = [resample(mean_rows(own), mean_totals, 2000, 0) for own in (first, second)]
            peer = bootstrap_p(totals[0] - totals[1], float((first - second).mean()), "sign")
        assert pair.p == pytest.approx(peer.two_sided, abs=0.03)
        assert pair.difference == pytest.approx(float((first - second).mean()))


def test_what_a_set_is_too_small_for_is_told_once_per_metric() -> None:
    found = compare(larger(), "token_f1")
    size = found.pairs[0].detectable
    few = "token_f1: 60 segments are too few to separate 1 of 3 pairs of systems"
    assert found.notes == (f"{few}; the smallest detectable differences are {size:.3g}",)


def test_an_outlier_moves_scores_but_not_won_segments() -> None:
    scores = {"a": [2.0] * 9 + [-99.0], "b": [1.0] * 10}
    entries = [Entry(str(k), name, Segment("x"), {"da": v}) for name, vs in scores.items() for k, v in enumerate(vs)]
    found = compare(Dataset("made", tuple(entries)), human=["da"])
    assert found.metrics[0].strengths["a"] == pytest.approx(0.9)
    assert "da: ranking by segments won (Bradley-Terry) gives a different order: a before b" in found.notes


def test_strengths_have_the_intervals_of_resampled_segments() -> None:
    data = larger()
    plain, found = compare(data, "token_f1"), compare(data, "token_f1", strength_draws=200, seed=3)
    (one,) = found.metrics
    matrix = ws.score(data, "token_f1").values.reshape(3, -1)
    order = content_order(np.hstack([mean_rows(values) for values in matrix]))
    peer = bradley_terry(matrix[:, order], draws=200, seed=3)
    assert [one.strength_intervals[name] for name in "abc"] == list(peer.intervals)
    assert one.won.startswith("token_f1: strength by segments won (Bradley-Terry): ")
    rows = {row["system"]: row for row in found.scores()}
    assert (rows["c"]["strength_low"], rows["c"]["strength_high"]) == (peer.intervals[2].low, peer.intervals[2].high)
    assert plain.metrics[0].strength_intervals == {}
    assert "strength_low" not in plain.scores()[0]
    assert one.strengths == plain.metrics[0].strengths


@pytest.mark.parametrize(
    ("metric", "test", "draws"),
    [("token_f1", "permutation", 999), ("bleu", "permutation", 39), ("bleu", "bootstrap", 39)],
)
def test_power_is_the_share_of_drawn_sets_on_which_a_difference_is_found(metric: str, test: Test, draws: int) -> None:
    (one,) = compare(larger(), metric, test=test, draws=draws, power=[8, 4, 60, 8]).metrics
    curves = {(curve.first, curve.second): curve for curve in one.powers}
    assert list(curves) == [("a", "b"), ("a", "c"), ("b", "c")]
    near, far = curves["a", "b"], curves["a", "c"]
    assert far.n == (4, 8, 60)
    assert far.power[-1] == 1.0
    assert far.power[0] < far.power[1] + 0.05
    assert far.enough in (4, 8, 60)
    assert near.enough is None
    assert max(near.power) < 0.25
    assert str(near).endswith("; 80% at none of these sizes")
    assert str(far).endswith(f"100% at 60; 80% from {far.enough} on")
    assert far.rows()[-1] == {"metric": metric, "first": "a", "second": "c", "n": 60, "power": 1.0}


def test_power_of_one_run_is_that_of_the_test_on_the_same_segments() -> None:
    data = larger(20)
    (one,) = compare(data, "token_f1", power=[20]).metrics
    matrix = ws.score(data, "token_f1").values.reshape(3, -1)
    for curve, (first, second) in zip(one.powers, ((0, 1), (0, 2), (1, 2)), strict=True):
        # All segments in another order: the flips differ, the difference does not.
        p = flip_test(matrix[first] - matrix[second], n=0, seed=0).two_sided
        assert curve.power[0] == pytest.approx(float(p <= 0.05), abs=0.05)


def test_lower_is_better_for_ter() -> None:
    found = compare(larger(), "ter", draws=300).metrics[0]
    assert found.totals["c"].value > found.totals["a"].value
    assert found.ranks == {"a": 1, "b": 1, "c": 2}
    assert next(pair for pair in found.pairs if pair.second == "c").better in ("a", "b")


def test_the_same_seed_gives_the_same_numbers() -> None:
    data = larger(25)
    assert compare(data, "chrf", seed=3, draws=200).pairs == compare(data, "chrf", seed=3, draws=200).pairs
    assert compare(data, "chrf", seed=4, draws=200).pairs != compare(data, "chrf", seed=3, draws=200).pairs


def test_corrections_raise_p_values() -> None:
    plain, corrected = (compare(larger(25), "chrf", draws=200, correction=name) for name in ("none", "bonferroni"))
    for one, other in zip(plain.pairs, corrected.pairs, strict=True):
        assert other.p == one.p
        assert other.adjusted == pytest.approx(min(1.0, 3 * one.p))


def test_systems_are_compared_on_what_they_share() -> None:
    data = three()
    short = replace(data, entries=tuple(e for e in data.entries if not (e.system == "bad" and e.id == "2")))
    found = compare(short, "chrf")
    assert found.n == 4
    assert "compared on the 4 of 5 segments that all systems have" in found.notes


def test_documents_are_resampled_as_a_whole() -> None:
    data = larger(40)
    named = replace(data, entries=tuple(replace(e, document=f"d{int(e.id) // 10}") for e in data.entries))
    found = compare(named, ["chrf", "token_f1"], documents=True)
    assert found.blocks == 4
    assert all(pair.exact and pair.blocks == 4 for pair in found.pairs)
    assert "4 documents are too few: the smallest possible p is 0.125" in found.notes
    assert any("come from 4 documents" in note for note in compare(named, "chrf", draws=50).notes)
    with pytest.raises(DataError, match="names no document for segment '0'"):
        compare(data, "chrf", documents=True)
    with pytest.raises(SpecError, match="does not support documents"):
        compare(named, "token_f1", documents=True, test="t")


def test_human_scores_can_be_compared_by() -> None:
    entries = [
        Entry(str(k), system, Segment("x"), {"da": float(k % 3 + gain)} if k else {})
        for system, gain in (("a", 1), ("b", 0))
        for k in range(20)
    ]
    found = compare(Dataset("made", tuple(entries)), human=["da"]).metrics[0]
    assert found.pairs[0].difference == pytest.approx(1.0)
    assert found.pairs[0].n == 19
    assert found.pairs[0].better == "a"
    assert found.signature is None


def test_results_can_be_shown() -> None:
    found = compare(three(), ["chrf", "token_f1"])
    table, *matrices = found.tables()
    assert [one.columns[0] for one in matrices] == ["chrf", "token_f1"]
    assert table.columns == ("system", "chrf", "chrf rank", "token_f1", "token_f1 rank")
    html = found._repr_html_()
    assert "<td>good</td>" in html
    assert "do not differ significantly" in html
    assert len(list(found.records())) == len(found.pairs) == 6
    assert len(str(found).splitlines()) == 6
    assert ws.compare is compare


def test_sizes_and_draws_below_one_are_refused() -> None:
    with pytest.raises(SpecError, match=re.escape("power is 0, expected 1 or more")):
        compare(three(), "bleu", power=[0])
    with pytest.raises(SpecError, match=re.escape("strength_draws is -1, expected 0 or more")):
        compare(three(), "bleu", strength_draws=-1)


def test_wrong_input_is_refused() -> None:
    data = three()
    with pytest.raises(DataError, match="at least two systems"):
        compare(data.of("good"), "chrf")
    with pytest.raises(SpecError, match="no metric to compare by"):
        compare(data)
    with pytest.raises(SpecError, match="test is 'sign', expected 'permutation'"):
        compare(data, "chrf", test="sign")  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="draws is 0"):
        compare(data, "chrf", draws=0)
    with pytest.raises(SpecError, match="correction is 'tukey', expected 'none'"):
        compare(data, "chrf", correction="tukey")
    with pytest.raises(SpecError, match="not for corpus scores"):
        compare(data, "bleu", test="t")
    with pytest.raises(DataError, match="has no human score 'da'"):
        compare(data, human=["da"])
    apart = tuple(replace(e, id=f"{e.system}{e.id}") for e in data.entries)
    with pytest.raises(DataError, match=re.escape("share no segment id (good 5, bad 5, same 5 segments)")):
        compare(replace(data, entries=apart), "chrf")
    with pytest.raises(DataError, match="has the segment '0' twice"):
        compare(replace(data, entries=(*data.entries, data.entries[0])), "chrf")
    nothing = replace(data, entries=tuple(replace(e, human={"da": float("nan")}) for e in data.entries))
    with pytest.raises(DataError, match="no segment has a score for every system"):
        compare(nothing, human=["da"])
