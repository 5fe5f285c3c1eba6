import json
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from whyscore.analysis.metaeval.annotators import (
    against_shares,
    annotator_agreement,
    annotators_of,
    gold_by_majority,
    gold_of,
    read_annotators,
)
from whyscore.analysis.metaeval.settings import MetaevalWordsSettings
from whyscore.analysis.metaeval.words import (
    baseline,
    chance_result,
    decide,
    explained_submission,
    judge,
    logprob,
    metaevaluate_words,
    segments_of,
    thresholds,
    without_gap_tags,
)
from whyscore.data.formats.eval4nlp import Gold, GoldSide, Scored, Submission, read_submission
from whyscore.data.formats.eval4nlp import read_gold as read_gold_again
from whyscore.errors import DataError, SpecError
from whyscore.present import present
from whyscore.stats.words import MEASURES, Ragged
from whyscore.text.splitters import WhiteSpace
from whyscore.types import Dataset, Entry, ErrorSpan, Segment, Side

PLAIN = MetaevalWordsSettings(draws=0)
read_gold = cache(read_gold_again)
WMT = {
    "en-cs": ("hw-tsc", "ist-unbabel", "openkiwi-lime", "random"),
    "en-de": ("hw-tsc", "ist-unbabel", "openkiwi-lime", "random"),
}
WMT |= {"km-en": ("hw-tsc", "ist-unbabel", "ut-qe", "openkiwi-lime", "random")}


def means(result: object, side: str = "target") -> list[float]:
    found = result.sides[side]  # type: ignore[attr-defined]
    return [found.mean(measure) for measure in MEASURES]


def made(tags: list[list[float]], scores: list[list[float]], name: str = "team") -> tuple[Gold, Submission]:
    words = tuple(WhiteSpace("space").split(" ".join("w" * (k + 1) for k in range(len(row)))) for row in tags)
    gold = Gold("toy", "eval4nlp2021", GoldSide(Ragged.of(tags), "toy.tgt-tags", words), sources=words)
    return gold, Submission(name, {"target": Scored(Ragged.of(scores), "target.submission")})


def test_sentences_with_a_wrong_number_of_scores(shared: Path) -> None:
    gold = read_gold(shared / "wmt22_task2" / "en-yo")
    handed_in = read_submission(shared / "wmt22_task2" / "en-yo" / "ist-unbabel")
    for policy, count, wanted in (
        ("truncate", 719, [0.670575, 0.357879, 0.232626]),
        ("skip", 717, [0.670694, 0.358185, 0.232810]),
    ):
        found = judge(gold, handed_in, MetaevalWordsSettings(on_mismatch=policy, draws=0))  # type: ignore[arg-type]
        side = found.sides["target"]
        assert side is not None
        assert (side.n_eval, side.mismatch) == (count, 6)
        assert means(found) == pytest.approx(wanted, abs=1e-6)
        assert side.dropped["mismatch"] == (0 if policy == "truncate" else 6)
        if policy == "skip":
            assert side.n_eval + sum(side.dropped.values()) == 1010


def test_a_wrong_number_of_scores_is_an_error_that_names_the_lines(shared: Path) -> None:
    folder = shared / "wmt22_task2" / "en-yo"
    told = (
        "line 106 has 14 scores for 16 tags, line 112 has 22 scores for 24 tags, line 326 has 24 scores for 26 tags, "
        "line 533 has 42 scores for 44 tags, line 550 has 28 scores for 30 tags, line 577 has 34 scores for 36 tags"
    )
    with pytest.raises(DataError, match=re.escape(told)) as caught:
        judge(read_gold(folder), read_submission(folder / "ist-unbabel"), PLAIN)
    assert (caught.value.exit_code, caught.value.line) == (3, 106)


def test_the_end_mark_can_be_left_out(shared: Path) -> None:
    for pair, count, wanted in (
        ("en-cs", 614, [0.733179, 0.674999, 0.578571]),
        ("en-de", 190, [0.776617, 0.491607, 0.364217]),
        ("km-en", 940, [0.640363, 0.759047, 0.677874]),
    ):
        folder = shared / "wmt22_task2" / pair
        found = judge(
            read_gold(folder), read_submission(folder / "ist-unbabel"), MetaevalWordsSettings(drop_eos=True, draws=0)
        )
        assert found.sides["target"] is not None
        assert found.sides["target"].n_eval == count
        assert means(found) == pytest.approx(wanted, abs=1e-6)


def test_the_guard_fires_for_turned_scores_and_for_nothing_else(shared: Path) -> None:
    fired = {}
    for pair in ("en-cs", "en-de", "km-en", "en-yo"):
        gold = read_gold(shared / "wmt22_task2" / pair)
        for folder in sorted((shared / "wmt22_task2" / pair).iterdir()):
            if folder.is_dir():
                found = judge(gold, read_submission(folder), MetaevalWordsSettings(on_mismatch="skip", draws=0))
                for warning in found.warnings:
                    if "below chance" in warning:
                        fired[pair, folder.name] = warning
    assert sorted(fired) == [("en-de", "openkiwi-lime"), ("en-yo", "openkiwi-lime")]
    assert fired["en-de", "openkiwi-lime"] == (
        "target: AUC .4416 is below chance (p = .0008): are the scores error scores? --flip reverses them"
    )


def test_turned_scores_fire_the_guard_and_flipping_them_puts_them_right(shared: Path) -> None:
    gold = read_gold(shared / "eval4nlp2021" / "dev" / "et-en")
    shap = read_submission(shared / "eval4nlp2021" / "baselines" / "xmover-shap-dev" / "et-en", name="shap")
    turned = metaevaluate_words(gold, [shap], settings=PLAIN, flip=["shap"]).systems[0]
    assert means(turned)[0] == pytest.approx(0.417407, abs=1e-6)
    assert "below chance" in turned.warnings[0]
    assert not metaevaluate_words(gold, [shap], settings=PLAIN).systems[0].warnings
    assert turned.sides["source"] is None


def test_ties_at_the_border_are_counted_and_shared_out(shared: Path) -> None:
    wanted = {"en-cs": (1, 0.362836), "km-en": (2, 0.564509), "en-yo": (1, 0.144073)}
    for pair, (count, recall) in wanted.items():
        folder = shared / "wmt22_task2" / pair
        side = judge(read_gold(folder), read_submission(folder / "random"), PLAIN).sides["target"]
        assert side is not None
        assert side.ties == count
        assert side.mean("recall_at_k") == pytest.approx(recall, abs=1e-6)
    folder = shared / "eval4nlp2021"
    found = judge(read_gold(folder / "dev" / "ro-en"), read_submission(folder / "baselines/random-dev/ro-en"), PLAIN)
    assert [side.ties for side in found.sides.values() if side is not None] == [1, 1]


@pytest.mark.parametrize("pair", ["et-en", "ro-en"])
def test_baselines_have_their_exact_values(shipped: Path, pair: str) -> None:
    wanted = {
        ("et-en", "chance"): ([0.5, 0.386977, 0.284987], [0.5, 0.387351, 0.256638]),
        ("et-en", "length"): ([0.629706, 0.442621, 0.356659], [0.682424, 0.497337, 0.388019]),
        ("et-en", "constant"): ([0.5, 0.284987, 0.284987], [0.5, 0.256638, 0.256638]),
        ("ro-en", "chance"): ([0.5, 0.366315, 0.251118], [0.5, 0.371530, 0.255634]),
        ("ro-en", "length"): ([0.675100, 0.450801, 0.348919], [0.691786, 0.473843, 0.367051]),
        ("ro-en", "constant"): ([0.5, 0.251118, 0.251118], [0.5, 0.255634, 0.255634]),
    }
    gold = read_gold(shipped / "eval4nlp2021" / "dev" / pair)
    for name in ("chance", "length", "constant"):
        found = chance_result(gold, PLAIN) if name == "chance" else judge(gold, baseline(name, gold), PLAIN)
        for side, numbers in zip(("target", "source"), wanted[pair, name], strict=True):
            assert means(found, side) == pytest.approx(numbers, abs=1e-6)


@pytest.mark.parametrize(
    ("pair", "pool", "wanted"),
    [
        ("et-en", "sum", [0.728873, 0.609629, 0.500821]),
        ("et-en", "min", [0.720172, 0.587309, 0.478173]),
        ("et-en", "mean", [0.699711, 0.553558, 0.445722]),
        ("et-en", "first", [0.683135, 0.553086, 0.446946]),
        ("ro-en", "sum", [0.776918, 0.666691, 0.552145]),
        ("ro-en", "min", [0.763782, 0.642655, 0.527480]),
        ("ro-en", "mean", [0.736941, 0.593674, 0.477656]),
        ("ro-en", "first", [0.699257, 0.582715, 0.465279]),
    ],
)
def test_log_probabilities_of_the_translation_system(shipped: Path, pair: str, pool: str, wanted: list[float]) -> None:
    gold = read_gold(shipped / "eval4nlp2021" / "dev" / pair)
    found = judge(gold, logprob(shipped / "mlqe_pe_wordprobas" / "dev" / pair, gold, pool), PLAIN)  # type: ignore[arg-type]
    assert means(found) == pytest.approx(wanted, abs=1e-6)
    assert found.sentence is not None
    assert found.sentence.pearson == pytest.approx({"et-en": 0.495902, "ro-en": 0.636421}[pair], abs=1e-6)


@pytest.mark.parametrize(
    ("pair", "wanted", "counts"),
    [
        ("et-en", [0.407992, 0.844334, 0.344482, 0.276373], (1705, 1465, 3483, 13419)),
        ("ro-en", [0.492195, 0.907824, 0.446826, 0.412250], None),
    ],
)
def test_decisions_by_log_probability(shipped: Path, pair: str, wanted: list[float], counts: tuple[int, ...]) -> None:
    gold = read_gold(shipped / "eval4nlp2021" / "dev" / pair)
    found = judge(gold, logprob(shipped / "mlqe_pe_wordprobas" / "dev" / pair, gold, "sum"), PLAIN)
    decision = decide(found, 1.0)["target"]
    own = decision.counts
    assert [own.f1_bad, own.f1_ok, own.f1_product, own.mcc] == pytest.approx(wanted, abs=1e-6)
    assert counts is None or tuple(own) == counts
    assert not decision.oracle


def test_decisions_of_a_submission_at_a_half(shared: Path) -> None:
    for pair, mcc in {"en-cs": 0.220486, "en-de": 0.126397, "km-en": 0.289251}.items():
        folder = shared / "wmt22_task2" / pair
        found = judge(read_gold(folder), read_submission(folder / "hw-tsc"), PLAIN)
        assert decide(found, 0.5)["target"].counts.mcc == pytest.approx(mcc, abs=1e-6)


def test_a_threshold_learnt_on_the_judged_data_is_marked() -> None:
    gold, handed_in = made([[1, 0, 0], [0, 1, 0]], [[3, 1, 1], [1, 4, 2]])
    found = judge(gold, handed_in, PLAIN)
    assert decide(found)["target"].oracle
    assert decide(found)["target"].counts.mcc == 1.0
    assert thresholds(found) == {"target": 2.0}


def ranking(shared: Path, pair: str, rank: str = "mean") -> object:
    folder = shared / "wmt22_task2" / pair
    teams = [read_submission(folder / name) for name in WMT[pair]]
    return metaevaluate_words(
        read_gold(folder),
        teams,
        settings=PLAIN,
        rank=rank,
    ).ranking["target"]


def test_paired_tests_and_best_groups_of_english_czech(shared: Path) -> None:
    found = ranking(shared, "en-cs")
    tests = found.tests["hw-tsc", "ist-unbabel"]  # type: ignore[attr-defined]
    assert [tests[m].statistic for m in MEASURES] == pytest.approx([-1.9239, -2.9881, -2.2109], abs=1e-4)
    assert [tests[m].p for m in MEASURES] == pytest.approx([0.0548, 0.00292, 0.0274], abs=5e-5)
    best = found.best  # type: ignore[attr-defined]
    assert best == {
        "auc": ("hw-tsc", "ist-unbabel"),
        "ap": ("ist-unbabel",),
        "recall_at_k": ("ist-unbabel",),
    }
    assert found.mean_rank == {"ist-unbabel": 1, "hw-tsc": 2, "openkiwi-lime": 3, "random": 4}  # type: ignore[attr-defined]


def test_paired_tests_and_ranks_of_khmer_english(shared: Path) -> None:
    found = ranking(shared, "km-en")
    tests = found.tests["hw-tsc", "ist-unbabel"]  # type: ignore[attr-defined]
    assert tests["auc"].statistic == pytest.approx(9.5707, abs=1e-4)
    assert (tests["ap"].statistic, tests["ap"].p) == pytest.approx((0.1522, 0.879), abs=5e-4)
    assert tests["recall_at_k"].statistic == pytest.approx(3.734, abs=1e-3)
    assert found.best["ap"] == ("hw-tsc", "ist-unbabel")  # type: ignore[attr-defined]
    assert list(found.mean_rank.items()) == list(zip(WMT["km-en"], range(1, 6), strict=True))  # type: ignore[attr-defined]


def test_english_german_puts_the_turned_scores_below_random(shared: Path) -> None:
    found = ranking(shared, "en-de")
    tests = found.tests  # type: ignore[attr-defined]
    assert tests["hw-tsc", "ist-unbabel"]["auc"].statistic == pytest.approx(-4.772, abs=1e-3)
    turned = tests["openkiwi-lime", "random"]["auc"]
    assert (turned.statistic, turned.p) == pytest.approx((-2.649, 0.0088), abs=5e-4)
    ranks = found.mean_rank  # type: ignore[attr-defined]
    assert ranks == {"ist-unbabel": 1, "hw-tsc": 2, "random": 3, "openkiwi-lime": 4}


def test_bradley_terry_strengths(shared: Path) -> None:
    czech = ranking(shared, "en-cs", "bt").strengths["auc"]  # type: ignore[attr-defined]
    assert {name: one.value for name, one in czech.items()} == pytest.approx(
        {"ist-unbabel": 0.420453, "hw-tsc": 0.388702, "openkiwi-lime": 0.106353, "random": 0.084493}, abs=1e-5
    )
    khmer = ranking(shared, "km-en", "bt").strengths  # type: ignore[attr-defined]
    wanted = [0.408118, 0.241020, 0.184036, 0.086390, 0.080435]
    assert [one.value for one in khmer["auc"].values()] == pytest.approx(wanted, abs=1e-5)
    assert [khmer["ap"][name].value for name in ("hw-tsc", "ist-unbabel")] == pytest.approx(
        [0.343732, 0.280087], abs=1e-5
    )


def test_a_missing_side_is_last_in_the_ranking() -> None:
    gold, first = made([[1, 0, 0], [0, 1, 0]], [[3, 1, 1], [1, 4, 2]], "first")
    gold = Gold("toy", "eval4nlp2021", gold.target, gold.target)
    both = Submission("both", {"target": first.sides["target"], "source": first.sides["target"]})
    found = metaevaluate_words(gold, [first, both], settings=PLAIN, rank="mean")
    assert found.ranking["source"].mean_rank == {"first": 2.0, "both": 1.0}
    assert found.systems[0].sides["source"] is None


def test_a_system_that_never_loses_is_told() -> None:
    gold, good = made([[1, 0, 0], [0, 1, 0]], [[3, 1, 1], [1, 4, 2]], "good")
    bad = Submission("bad", {"target": Scored(good.sides["target"].scores.negate(), "bad")})
    found = metaevaluate_words(gold, [good, bad], settings=PLAIN, rank="bt")
    assert any(w.startswith("bad never wins by auc") for w in found.ranking["target"].warnings)


def test_gold_without_any_error_is_judged_as_nothing_to_judge() -> None:
    gold, handed_in = made([[0, 0], [0, 0]], [[1, 2], [2, 1]])
    found = judge(gold, handed_in, MetaevalWordsSettings())
    side = found.sides["target"]
    assert side is not None
    assert (side.n_eval, side.dropped["no_error"]) == (0, 2)
    assert np.isnan(side.mean("auc"))
    assert found.warnings == ("target: no sentence has both marked and unmarked words, so there is nothing to judge",)


def test_intervals_hold_the_mean_and_repeat() -> None:
    rng = np.random.default_rng(0)
    tags = [[1.0, 0, 0, 1, 0]] * 30
    gold, handed_in = made(tags, rng.random((30, 5)).tolist())
    first, again = (judge(gold, handed_in, MetaevalWordsSettings()).sides["target"] for _ in range(2))
    assert first is not None
    assert again is not None
    estimate = first.estimates["auc"]
    assert (estimate.low or 1) < estimate.value < (estimate.high or 0)
    assert estimate == again.estimates["auc"]


def test_a_baseline_gives_way_to_a_submission_of_its_name() -> None:
    gold, handed_in = made([[1, 0, 0]] * 3, [[3, 1, 1]] * 3, "random")
    names = [one.system for one in metaevaluate_words(gold, [handed_in], settings=PLAIN, baselines=True).systems]
    assert names == ["random", "chance", "random (baseline)", "length", "surprisal", "position", "constant", "copy"]


def test_random_is_fixed_by_seed_and_text() -> None:
    gold, _ = made([[1, 0, 0]] * 2, [[3, 1, 1]] * 2)
    first, again, other = (baseline("random", gold, seed).sides["target"].scores.values for seed in (0, 0, 1))
    assert first.tolist() == again.tolist() != other.tolist()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"flip": ["x"]}, SpecError, "no submission named 'x' to flip; there are: team"),
        ({"rank": "mean"}, DataError, "one system cannot be ranked: give two or more, or --baselines"),
    ],
)
def test_what_cannot_be_done_is_told(options: dict[str, object], error: type[Exception], message: str) -> None:
    gold, handed_in = made([[1, 0, 0]], [[3, 1, 1]])
    with pytest.raises(error, match=re.escape(message)):
        metaevaluate_words(gold, [handed_in], settings=PLAIN, **options)


def test_two_submissions_of_one_name_are_refused() -> None:
    gold, handed_in = made([[1, 0, 0]], [[3, 1, 1]])
    with pytest.raises(DataError, match=re.escape("2 systems are named 'team'")):
        metaevaluate_words(gold, [handed_in, handed_in], settings=PLAIN)


def test_dropping_the_end_mark_needs_the_words() -> None:
    gold, handed_in = made([[1, 0, 0]], [[3, 1, 1]])
    bare = Gold("toy", "wmt22", GoldSide(gold.target.tags, "target.gold"))
    with pytest.raises(DataError, match=re.escape("target.gold has no words: --drop-eos")):
        judge(bare, handed_in, MetaevalWordsSettings(drop_eos=True))


def test_gaps_between_words_can_be_dropped_judged_alone_or_kept() -> None:
    gold, handed_in = made([[0, 1, 0, 0, 1]], [[1, 9, 2, 3, 4]])
    for gaps, count in {"drop": 2, "only": 3, "all": 5}.items():
        plain, [scores] = without_gap_tags(gold, [handed_in], gaps)  # type: ignore[arg-type]
        assert len(plain.target.tags.values) == len(scores.sides["target"].scores.values) == count


# Gold out of data sets


def dataset(*rows: dict[str, object]) -> Dataset:
    entries = []
    for k, row in enumerate(rows):
        spans = row.pop("spans", None)
        segment = Segment("a bad cat", "ein Hund", ("a cat",))
        entries.append(Entry(str(k), "sys", segment, {"da": float(k)}, spans, extra=row))  # type: ignore[arg-type]
    return Dataset("data", tuple(entries))


def test_gold_comes_from_spans_and_from_tags() -> None:
    spans = (ErrorSpan(3, 4, "minor"), ErrorSpan(0, 3, side=Side.SOURCE))
    gold = gold_of(dataset({"spans": spans}, {"tgt_tags": "1 0 0", "src_tags": ["OK", "BAD"]}))
    assert [row.tolist() for row in gold.target.tags.rows()] == [[0, 1, 0], [1, 0, 0]]
    assert gold.source is not None
    assert [row.tolist() for row in gold.source.tags.rows()] == [[1, 0], [0, 1]]
    assert gold.sentence is not None
    assert gold.sentence.tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{}], "data marks no words: give error spans, a column 'tags' with one 0 or 1 per word, or --gold"),
        ([{"tags": [1, 0]}], "segment 0: 2 tags for 3 words"),
        ([{"tags": [1, 0, 7]}], "segment 0: 7 is not a tag: expected 0 or 1, OK or BAD"),
        ([{"tags": [1, 0, 0]}, {}], "segment 1: has neither tags nor spans, but other segments have"),
        ([{"annotations": [{"tags": [1]}]}], "segment 0: an annotation is {'tags': [1]}, expected annotator"),
        ([{"annotations": [{"annotator": "a", "side": "x", "tags": [1]}]}], "segment 0: side is 'x', expected target"),
    ],
)
def test_gold_that_does_not_fit_its_text_is_refused(rows: list[dict[str, object]], message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        gold_of(dataset(*rows))


def test_annotations_in_a_data_set_become_votes() -> None:
    votes = [{"annotator": name, "tags": tags} for name, tags in (("a", [1, 1, 0]), ("b", [0, 1, 0]), ("c", "0 1 1"))]
    data = dataset({"annotations": votes})
    assert gold_of(data).target.tags.values.tolist() == [0, 1, 0]
    annotators = annotators_of(data)
    assert annotators is not None
    assert annotators.names == ("a", "b", "c")


def test_annotators_in_files_agree_and_set_the_ceiling(tmp_path: Path) -> None:
    for name, text in {"a": "1 1 0 0 0\n", "b": "1 0 0 0 0\n", "c": "1 1 0 0 0\n"}.items():
        (tmp_path / f"{name}.tags").write_text(text, "utf-8")
    annotators = read_annotators([tmp_path / f"{name}.tags" for name in "abc"])
    gold = gold_by_majority(annotators)
    assert gold.target.tags.values.tolist() == [1, 1, 0, 0, 0]
    found = annotator_agreement(annotators, gold, PLAIN)
    assert found.kappa("target") == pytest.approx((0.545454 + 1 + 0.545454) / 3, abs=1e-5)
    assert [one.system for one in found.ceiling] == ["annotator a", "annotator b", "annotator c"]
    # Without "a" the second word has one vote each way, of equal weight: it is no error, and "a" marks it.
    assert means(found.ceiling[0])[0] == 3.5 / 4
    system = judge(gold, Submission("s", {"target": Scored(Ragged.of([[5, 4, 3, 2, 1]]), "s")}), PLAIN)
    assert against_shares(annotators, system)["target"].weighted_auc == 1.0


# Explainers as submissions


def test_importance_is_turned_once_into_error_scores() -> None:
    segments = [Segment("a dog", "ein Hund", ("a cat",)), Segment("the cat", "die Katze", ("the cat",))]
    found = explained_submission(segments, "token_f1", "erasure")
    assert found.name == "token_f1 erasure"
    assert set(found.sides) == {"target"}
    first = found.sides["target"].scores.rows()[0]
    assert first[1] > 0 > first[0]
    assert found.sentence is not None
    assert found.sentence[1] == 1.0


def test_lower_is_better_metrics_are_turned_for_sentences() -> None:
    segments = [Segment("a dog", None, ("a cat",)), Segment("the cat", None, ("the cat",))]
    sentence = explained_submission(segments, "ter", "erasure").sentence
    assert sentence is not None
    assert sentence[0] < sentence[1] == 0.0


def test_the_texts_of_the_gold_are_segments(shipped: Path) -> None:
    gold = read_gold(shipped / "eval4nlp2021" / "dev" / "ro-en")
    segments = segments_of(gold)
    assert len(segments) == 1000
    assert segments[0].source is not None


# Results as objects


def test_undefined_numbers_are_null_with_a_reason() -> None:
    gold, handed_in = made([[0, 0], [0, 0]], [[1, 2], [2, 1]])
    constant = Submission("team", handed_in.sides, np.ones(2), "sentence.submission")
    gold = Gold("toy", "eval4nlp2021", gold.target, gold.target, np.array([1.0, 2.0]))
    found = metaevaluate_words(gold, [constant], settings=PLAIN)
    row = json.loads("".join(present(found, "json")))
    target = row["sides"]["target"]
    assert (target["auc"], target["reason"]) == (None, "no_error")
    assert row["sides"]["source"] is None
    assert row["reasons"] == {"source": "not submitted"}
    assert row["sentence"] == {"n": 2, "pearson": None, "spearman": None, "reason": "constant"}


def test_differences_have_intervals_from_shared_resamples() -> None:
    rng = np.random.default_rng(1)
    gold, first = made([[1.0, 0, 0, 1, 0]] * 40, rng.random((40, 5)).tolist(), "first")
    better = Submission("better", {"target": Scored(Ragged.of([[5, 1, 2, 4, 3]] * 40), "better")})
    side = metaevaluate_words(gold, [better, first], rank="mean").ranking["target"]
    difference = side.differences["better", "first"]["auc"]
    assert 0 < (difference.low or 0) < difference.value < (difference.high or 0)
    [auc, *_] = side.record()["tests"]  # type: ignore[misc]
    assert auc["interval"] == [difference.low, difference.high]


def test_a_side_that_only_one_system_has_is_ranked_without_tests() -> None:
    gold, first = made([[1, 0, 0], [0, 1, 0]], [[3, 1, 1], [1, 4, 2]], "first")
    gold = Gold("toy", "eval4nlp2021", gold.target, gold.target)
    both = Submission("both", {"target": first.sides["target"], "source": first.sides["target"]})
    side = metaevaluate_words(gold, [first, both], rank="bt").ranking["source"]
    assert (dict(side.tests), dict(side.strengths)) == ({}, {})


def test_results_are_short_at_a_prompt_and_tables_in_a_notebook() -> None:
    gold, handed_in = made([[1, 0, 0], [0, 1, 0]], [[3, 1, 1], [1, 4, 2]])
    found = metaevaluate_words(gold, [handed_in], settings=PLAIN)
    assert repr(found) == "<WordsResult: 1 x 9; .tables(), .records(), .to_pandas()>"
    assert "<th>AUC</th>" in found._repr_html_()
    assert [row["id"] for row in found.segments().records()] == ["0", "1"]
