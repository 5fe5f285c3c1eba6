"""Calibration: rules on grids made by hand, honest outcomes, the file, and everything that is refused."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import whyscore as ws
from whyscore.aggregate import Bags, PowerMean, Quantile
from whyscore.analysis.calibrate.calibrate import calibrate
from whyscore.analysis.calibrate.file import Calibration, Outcome
from whyscore.analysis.calibrate.judgement import Question, Source, assign_folds, in_domain, verdict, with_corrections
from whyscore.analysis.calibrate.material import Columns, Material, Setting, columns_of, length_columns, material_of
from whyscore.analysis.calibrate.rules import WEIGHTS, Choice, Problem, Rule, choose, folds, pick, smooth
from whyscore.analysis.calibrate.settings import parameters_of
from whyscore.errors import DataError, SpecError
from whyscore.metrics.lexical.token_f1 import TokenF1
from whyscore.stats.significance import permutation_test
from whyscore.testing.fakes import Counting
from whyscore.types import Dataset, Entry, Segment

W = np.array([0.0, 0.5])
P = np.array([-1.0, 0.0, 1.0, 2.0])


def problem(epsilon: float = 0.0) -> Problem:
    material = Material(np.zeros(4), Bags.of([np.ones(1)] * 4), np.ones(4), *([np.arange(4)] * 3))
    setting = Setting("s", "", "h", "pearson", "global", np.arange(4), np.arange(4.0))
    return Problem(material, [setting], lambda _: columns(), W, epsilon)


def columns(degenerate: tuple[bool, ...] = (False,) * 4) -> Columns:
    return Columns(P, np.zeros((4, 4)), np.repeat(np.array(degenerate)[:, None], 4, axis=1))


def picked(
    gains: list[list[list[float]]], rule: Rule, epsilon: float = 0.0, **shape: tuple[bool, ...]
) -> tuple[float, float]:
    found = pick([np.array(gain) for gain in gains], columns(**shape), problem(epsilon), rule)
    return (found.p, found.w)


NOTHING = [[-1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0], [-1.0, -1.0]]


@pytest.mark.parametrize("rule", ["median", "median_of_argmax", "argmax", "plateau"])
def test_where_nothing_gains_the_original_stays(rule: Rule) -> None:
    found = pick([np.array(NOTHING)], columns(), problem(), rule)
    assert not found.boosted
    assert found.w == 1


def test_the_median_takes_powers_and_weights_apart() -> None:
    gains = [[[0.0, 0.1], [0.2, 0.0], [-0.1, 0.0], [0.1, 0.1]]]
    # Improving: (-1, .5), (0, 0), (2, 0), (2, .5).
    assert picked(gains, "median") == (1.0, 0.25)
    assert picked(gains, "median", 0.15) == (0.0, 0.0)


def test_the_median_pools_the_settings() -> None:
    one = [[0.1, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
    other = [[0.0, 0.0], [0.0, 0.0], [0.0, 0.1], [0.0, 0.1]]
    assert picked([one, other], "median") == (1.0, 0.5)


def test_the_median_of_the_best_counts_each_setting_once() -> None:
    one = [[0.3, 0.0], [0.2, 0.0], [0.2, 0.0], [0.2, 0.0]]
    other = [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.1]]
    assert picked([one, other], "median_of_argmax") == (0.5, 0.25)


def test_ties_go_to_the_larger_weight_then_to_the_smaller_power() -> None:
    flat = [[0.1, 0.1]] * 4
    assert picked([flat], "argmax") == (0.0, 0.5)
    assert picked([[[0.1, 0.0], [0.0, 0.0], [0.0, 0.0], [0.1, 0.0]]], "argmax") == (-1.0, 0.0)


def test_undefined_gains_are_never_chosen() -> None:
    gains = [[[np.nan, 0.1], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]]
    assert picked(gains, "argmax") == (-1.0, 0.5)
    assert picked(gains, "median") == (-1.0, 0.5)


def test_the_plateau_leaves_degenerate_powers_out() -> None:
    gains = [[[0.9, 0.0], [0.3, 0.0], [0.1, 0.0], [0.1, 0.0]]]
    assert picked(gains, "plateau")[0] == -1.0
    assert picked(gains, "plateau", degenerate=(True, False, False, False))[0] == 0.0


def test_smoothing_is_a_moving_average_with_its_ends_repeated() -> None:
    gain = np.zeros((601, 1))
    gain[300] = 21.0
    found = smooth(gain)[:, 0]
    assert found[[289, 290, 310, 311]].tolist() == pytest.approx([0.0, 1.0, 1.0, 0.0], abs=1e-12)
    assert smooth(np.ones((601, 1)))[:, 0] == pytest.approx(1.0)


def test_the_cautious_rule_never_goes_further_than_the_share_that_survives() -> None:
    data = judged()
    material = material_of(data, ws.explain(data, "token_f1", "erasure"), TokenF1())
    source = Source("erasure", material, PowerMean(), parameters_of("coarse", PowerMean()))
    for seed in range(6):
        human = data.human("da") + np.random.default_rng(seed).normal(scale=2.0, size=60)
        setting = Setting("s", "", "da", "pearson", "global", np.arange(60), human)
        asked = Problem(material, [setting], source.columns, np.array(WEIGHTS), 0.0)
        share, cautious = choose(asked, "cv_shrinkage"), choose(asked, "cautious")
        assert share.shrinkage is not None
        assert cautious.shrinkage is not None
        assert cautious.shrinkage <= share.shrinkage
        assert cautious.w >= share.w


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(SpecError, match=re.escape("no rule named 'best': use median, median_of_argmax, argmax")):
        choose(problem(), "best")  # type: ignore[arg-type]


def test_rows_are_dealt_out_one_by_one_and_documents_stay_together() -> None:
    base = problem().material
    setting = Setting("s", "", "h", "pearson", "global", np.arange(4), np.arange(4.0))
    assert folds(base, setting, 3).tolist() == [0, 1, 2, 0]
    together = replace(base, documents=np.array([7, 3, 7, 3]), has_documents=True)
    assert folds(together, setting, 3).tolist() == [0, 1, 0, 1]
    assert assign_folds(replace(base, documents=np.array([0, 1, 0, 2]), has_documents=True), [setting], 2).tolist() == [
        0,
        1,
        0,
        0,
    ]


def test_the_length_control_has_mean_and_deviation_of_the_scores() -> None:
    material = replace(
        problem().material, scores=np.array([1.0, 2.0, 3.0, 9.0]), lengths=np.array([5.0, 6.0, 7.0, 8.0])
    )
    rows = np.array([0, 1, 2])
    values = length_columns(material, rows).values[0]
    assert values[rows].mean() == pytest.approx(2.0)
    assert values[rows].std() == pytest.approx(material.scores[rows].std())
    turned = length_columns(material, rows, -1.0).values[0]
    assert turned[rows] == pytest.approx(values[rows][::-1])


def test_named_grids_have_these_sizes() -> None:
    assert parameters_of("default", PowerMean())[[0, 300, 600]].tolist() == [-30.0, 0.0, 30.0]
    assert len(parameters_of("compat", PowerMean())) == 600
    assert parameters_of("compat", PowerMean())[300] == 0.0
    assert parameters_of([3.0, 1.0], PowerMean()).tolist() == [1.0, 3.0]
    assert len(parameters_of("default", Quantile())) == 101
    with pytest.raises(SpecError, match=re.escape("power_mean: p is 500.0, expected a number from -300 to 300")):
        parameters_of([1.0, 500.0], PowerMean())
    with pytest.raises(SpecError, match="no grid named 'fine'"):
        parameters_of("fine", PowerMean())


def judged(count: int = 60, **changes: object) -> Dataset:
    """Translations whose quality is the share of right words, judged with some noise."""
    rng = np.random.default_rng(0)
    entries = []
    for k in range(count):
        right = int(rng.integers(0, 9))
        words = [f"w{k}x{i}" for i in range(8)]
        hypothesis = " ".join(words[:right] + ["wrong"] * (8 - right))
        human = {"da": float(changes.get("human", right + rng.normal(scale=2.0)))}
        segment = Segment(hypothesis, references=(" ".join(words),))
        entries.append(Entry(str(k), "s", segment, human, extra={"LP": "a-b" if k % 2 else "c-d"}))
    return Dataset("judged", tuple(entries))


@pytest.fixture(scope="module")
def found() -> Calibration:
    return calibrate(
        judged(), "token_f1", "erasure", human="da", group="LP", grid="coarse", rule="median", resamples=99
    )


def test_a_calibration_says_what_it_found(found: Calibration) -> None:
    assert [one.name for one in found.settings] == ["c-d da pearson@global", "a-b da pearson@global"]
    assert {(one.source, one.protocol) for one in found.outcomes} == {
        (source, protocol)
        for source in ("erasure", "length", "brevity", "random")
        for protocol in ("oracle", "in-domain", "cross-domain")
    }
    assert all(one.configurations == 121 * 5 for one in found.settings)
    assert all(one.improving_more <= one.improving for one in found.settings)
    tested = [one for one in found.outcomes if one.p_value is not None]
    assert tested
    assert all(one.adjusted >= one.p_value and one.low <= one.gain <= one.high for one in tested)
    assert not any(one.p_value for one in found.outcomes if one.protocol == "oracle")
    assert found.verdict


def test_held_out_scores_do_not_know_what_people_said_of_their_own_fold() -> None:
    data = judged()
    material = material_of(data, ws.explain(data, "token_f1", "erasure"), TokenF1())
    source = Source("erasure", material, PowerMean(), parameters_of("coarse", PowerMean()))
    human = data.human("da")
    first = np.arange(60) % 5 == 0
    made = []
    for told in (human, np.where(first, -human, human)):
        setting = Setting("s", "", "da", "pearson", "global", np.arange(60), told)
        made.append(in_domain(source, Question((setting,), np.array(WEIGHTS), 0.0, "argmax"), 5))
    np.testing.assert_array_equal(made[0][first], made[1][first])
    assert not np.array_equal(made[0][~first], made[1][~first])


def test_the_metric_is_asked_once_and_never_again() -> None:
    data = judged(20)
    metric = Counting(TokenF1())
    explanations = ws.explain(data, metric, "erasure")
    asked = metric.asked
    calibrate(data, metric, "erasure", human="da", grid="coarse", resamples=0, explanations=explanations)
    assert metric.asked == asked


def test_a_calibration_is_read_back_as_it_was_saved(found: Calibration, tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    found.save(file)
    again = Calibration.load(file)
    assert again.digest == found.digest
    assert again.document() == found.document()
    assert again.outcomes[0] == found.outcomes[0]
    assert json.loads(file.read_text())["schema_version"] == 1


def test_a_boosted_metric_is_made_from_a_calibration(found: Calibration, tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    found.save(file)
    metric = ws.boosted(calibration=file)
    assert metric.calibration == found.digest
    assert metric.rule == "median"
    assert metric.w == found.w
    other = [Segment("x y", references=("x z",))]
    direct = ws.boosted("token_f1", "erasure", p=found.p, w=found.w)
    assert ws.boost(other, calibration=found).scores.values == pytest.approx(direct.score(other))


def test_another_metric_or_explainer_than_the_calibrated_one_is_refused(found: Calibration) -> None:
    with pytest.raises(SpecError, match=re.escape("this calibration was made with the metric token_f1|nrefs:any")):
        ws.boosted("chrf", calibration=found)
    with pytest.raises(SpecError, match=re.escape("was made with the explainer erasure, not with lime:")):
        ws.boosted("token_f1", "lime", calibration=found)
    with pytest.raises(
        SpecError,
        match="a calibration sets p, w and the aggregator: give either the calibration or these options, not both",
    ):
        ws.boosted(calibration=found, p=1.0)


def test_data_that_the_calibration_was_fitted_on_are_refused(found: Calibration) -> None:
    with pytest.raises(
        DataError, match=re.escape("60 of 60 segments belong to the data this calibration was fitted on")
    ):
        ws.boost(judged(), calibration=found)
    assert len(ws.boost(judged(), calibration=found, allow_overlap=True).scores) == 60


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not a calibration: "),
        ('{"w": 1, "w": 0}', "is not a calibration: the key 'w' stands in one object twice"),
        ('{"kind": "scores"}', "is not a calibration: create one with whyscore calibrate"),
        ('{"kind": "calibration", "schema_version": 9}', "has schema_version 9, this whyscore reads 1: update it"),
        ('{"kind": "calibration", "schema_version": 1}', "'metric' is None, expected"),
    ],
)
def test_files_that_are_no_calibration_are_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "c.json"
    file.write_text(text)
    with pytest.raises(DataError, match=re.escape(f"{file}: {message}")):
        Calibration.load(file)


def test_several_data_sets_are_groups() -> None:
    one, other = judged(30), Dataset("other", judged(24).entries)
    found = calibrate([one, other], "token_f1", human="da", grid="coarse", resamples=0)
    assert [setting.group for setting in found.settings] == ["judged", "other"]
    assert [setting.n for setting in found.settings] == [30, 24]


@pytest.mark.parametrize("level", ["system", "segment"])
@pytest.mark.parametrize("aggregator", ["power_mean", "exp_mean", "mean", "per_side"])
def test_levels_and_aggregators_can_be_chosen(level: str, aggregator: str) -> None:
    base = judged(24)
    entries = tuple(replace(entry, id=str(k // 4), system=f"s{k % 4}") for k, entry in enumerate(base.entries))
    found = calibrate(
        Dataset("d", entries), "token_f1", human="da", level=level, coefficient=["kendall", "spearman"],
        aggregator=aggregator, grid="coarse", rule="plateau", resamples=20,
    )  # fmt: skip
    assert [one.coefficient for one in found.settings] == ["kendall_b", "spearman"]
    assert found.aggregator.startswith(aggregator)


def test_the_power_of_the_hypothesis_is_found_beside_a_given_one_of_the_references() -> None:
    found = calibrate(
        judged(), "token_f1", human="da", aggregator="per_side(reference=0.5)", grid="coarse", rule="argmax",
        epsilon=0.0, resamples=0,
    )  # fmt: skip
    assert found.boosted
    assert found.aggregator == f"per_side(p={found.p}, reference=0.5)"
    other = [Segment("x y", references=("x z",))]
    direct = ws.boosted("token_f1", "erasure", aggregator=found.aggregator, w=found.w)
    assert ws.boost(other, calibration=found).scores.values == pytest.approx(direct.score(other))


def test_compat_permutes_rows_and_columns_as_the_paper_did(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def noted(*given: object, **how: object) -> object:
        asked.append((how["permute"], how["compat"], how["n"]))
        return permutation_test(*given, **how)  # type: ignore[arg-type]

    monkeypatch.setattr("whyscore.analysis.calibrate.judgement.permutation_test", noted)
    how = {"human": "da", "grid": "coarse", "rule": "argmax", "resamples": 7}
    data = judged()
    explained = ws.explain(data, "token_f1", "erasure")
    compat = calibrate(data, "token_f1", mode="compat", explanations=explained, **how)  # type: ignore[arg-type]
    assert set(asked) == {("row_xor_column", "nlpstats", 7)}
    known = [one.p_value for one in compat.outcomes if one.p_value is not None]
    assert known
    assert all((7 * p) % 1 == pytest.approx(0, abs=1e-9) or (7 * p) % 1 == pytest.approx(1) for p in known)
    asked.clear()
    calibrate(data, "token_f1", mode="paper", explanations=explained, **how)  # type: ignore[arg-type]
    calibrate(data, "token_f1", mode="compat", permute="systems", explanations=explained, **how)  # type: ignore[arg-type]
    assert set(asked) == {("row_xor_column", "nlpstats", 7), ("systems", "nlpstats", 7)}
    asked.clear()
    calibrate(data, "token_f1", explanations=explained, **how)  # type: ignore[arg-type]
    assert set(asked) == {("cell", None, 7)}


@pytest.mark.parametrize("mode", ["paper", "compat"])
def test_modes_of_the_paper_correct_by_bonferroni_and_say_what_they_chose(mode: Literal["paper", "compat"]) -> None:
    found = calibrate(judged(), "token_f1", mode=mode, human="da", resamples=9)
    assert found.outcome_table().columns[-1] == "bonferroni"
    assert len(found.parameters) == 600
    (named,) = [note for note in found.notes if note.startswith(f"mode {mode}: 600 values of p from -30 to 29.9; ")]
    assert "permute row_xor_column, p = c / n as in nlpstats, one-sided, 9 resamples" in named
    assert "correction bonferroni over the settings of a source and protocol" in named
    assert any(note.startswith("the paper leaves open: ") for note in found.notes) == (mode == "paper")
    plain = calibrate(judged(), "token_f1", human="da", grid="coarse", resamples=0)
    assert plain.outcome_table().columns[-1] == "holm"
    assert not any(note.startswith("mode ") for note in plain.notes)


def test_a_scaled_aggregate_is_boosted_with_the_scale_of_the_calibration() -> None:
    data = judged()
    found = calibrate(data, "token_f1", human="da", scale="z", grid="coarse", rule="argmax", mode="paper", resamples=0)
    assert found.boosted
    metric = ws.boosted(calibration=found)
    assert (metric.shift, metric.stretch) == (found.shift, found.stretch)
    values = ws.boost(data, calibration=found, allow_overlap=True).scores.values
    human = data.human("da")
    assert np.corrcoef(values, human)[0, 1] == pytest.approx(found.settings[0].after)


def broken(**human: float) -> Dataset:
    return Dataset("broken", tuple(replace(entry, human=human) for entry in judged(30).entries))


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (judged(9), {}, "judged has 9 segments with the human score 'da': calibration needs at least 10"),
        (judged(), {"human": "mqm"}, "judged has no human score 'mqm'; it has: da"),
        (broken(da=3.0), {}, "nothing to calibrate on: da was left out: its human scores are all 3"),
        (judged(), {"group": "pair"}, "judged has no column 'pair' to group by; it has: LP"),
        (judged(), {"level": "system"}, "1 systems, the level system needs at least 3"),
        (judged(14), {"group": "LP"}, "c-d da was left out: 7 judged segments, at least 10 are needed"),
    ],
)
def test_data_that_cannot_be_calibrated_on_are_refused(data: Dataset, options: dict[str, str], message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        calibrate(data, "token_f1", **{"human": "da", **options})


def test_groups_that_nobody_judged_are_named_and_left_out() -> None:
    entries = [entry if entry.extra["LP"] == "a-b" else replace(entry, human={}) for entry in judged(40).entries]
    found = calibrate(Dataset("d", tuple(entries)), "token_f1", human="da", group="LP", grid="coarse", resamples=0)
    assert found.notes[0] == "c-d da was left out: none of its segments has a human score"
    assert [one.group for one in found.settings] == ["a-b"]


def test_a_metric_that_disagrees_with_people_is_not_boosted() -> None:
    entries = [replace(entry, human={"da": -entry.human["da"]}) for entry in judged(40).entries]
    found = calibrate(Dataset("d", tuple(entries)), "token_f1", human="da", grid="coarse", resamples=0)
    assert "has no vote: the original score has a correlation of -0." in found.notes[0]
    assert not found.boosted
    assert found.verdict == "boosting does not help here: not boosted, w = 1 keeps the original metric"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rule": "best"}, "rule is 'best', expected 'median' or"),
        ({"mode": "old"}, "mode is 'old', expected 'default' or 'paper' or 'compat'"),
        ({"weights": [1.0]}, "weights are [1.0], expected numbers from 0 to below 1"),
        ({"epsilon": -1.0}, "epsilon is -1.0, expected a gain of 0 or more"),
        ({"scale": "log"}, "scale is 'log', expected 'raw' or 'z'"),
        ({"aggregator": "per_side", "parts": "hypothesis"}, "per_side has a power for the references, but parts="),
        ({"coefficient": "cosine"}, "no coefficient named 'cosine'"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        calibrate(judged(20), "token_f1", human="da", **options)  # type: ignore[arg-type]


def outcomes(gain: float, length: float, noise: float, p: float | None = None) -> list[Outcome]:
    return [
        Outcome(source, "in-domain", "s", 9, 0.5, 0.5 + value, value, 1.0, 0.5, p_value=p if source == "x" else None)
        for source, value in (("x", gain), ("length", length), ("brevity", 0.0), ("random", noise))
    ]


CHOICE = Choice(1.0, 0.5)


@pytest.mark.parametrize(
    ("found", "choice", "message"),
    [
        (outcomes(-0.1, 0, 0), CHOICE, "boosting does not help here: on held-out data the mean gain is -0.1000"),
        (outcomes(0.1, 0, 0), Choice(1.0, 1.0), "boosting does not help here: not boosted"),
        (outcomes(0.1, 0.2, 0), CHOICE, "not distinguishable from length: held-out gain +0.1000"),
        (outcomes(0.1, 0.2, 0.1), CHOICE, "not distinguishable from length/noise"),
        (
            outcomes(0.1, 0, 0),
            CHOICE,
            "boosting helps: held-out gain +0.1000, controls length +0.0000, brevity +0.0000",
        ),
        (outcomes(0.1, 0, 0, 0.2), CHOICE, "boosting may help a little"),
        (outcomes(0.1, 0, 0, 0.01), CHOICE, "significant in 1 of 1 settings after correction"),
    ],
)
def test_the_verdict_is_a_plain_sentence(found: list[Outcome], choice: Choice, message: str) -> None:
    assert message in verdict(choice, with_corrections(found, "holm"), "x")


def test_corrected_p_values_belong_to_one_source_and_protocol() -> None:
    rows = [replace(one, p_value=0.02) for one in outcomes(0.1, 0.1, 0.1)]
    assert [one.adjusted for one in with_corrections(rows, "holm")] == [0.02] * 4
    same = [replace(one, source="x") for one in rows]
    assert [one.adjusted for one in with_corrections(same, "holm")] == pytest.approx([0.08] * 4)


def test_off_grid_powers_are_evaluated_exactly(wmt17: Dataset, erasure: Callable[..., tuple[np.ndarray, Bags]]) -> None:
    segments = wmt17.segments[:30]
    scores, bags = erasure(segments)
    material = Material(scores, bags, np.ones(30), *([np.arange(30)] * 3))
    exact = columns_of(material, PowerMean(), np.array([-3.65])).values[0]
    assert exact == pytest.approx([PowerMean(-3.65).aggregate(bags.of_segment(k)) for k in range(30)], rel=1e-12)


def classified(labels: tuple[float, ...] = (0.0, 1.0)) -> Dataset:
    """Translations that people found good or bad, by the share of right words, with noise."""
    random = np.random.default_rng(5)
    entries = []
    for k in range(60):
        reference = [str(one) for one in random.choice(list("abcdefghij"), 8)]
        hypothesis = [word if random.random() < 0.6 else "x" for word in reference]
        right = sum(a == b for a, b in zip(reference, hypothesis, strict=True)) + random.normal()
        human = {"good": labels[int(right > 5)] if len(labels) == 2 else right}
        entries.append(Entry(str(k), "s", Segment(" ".join(hypothesis), None, (" ".join(reference),)), human))
    return Dataset("classified", tuple(entries))


@pytest.mark.parametrize("coefficient", ["auc", "accuracy"])
def test_classes_are_calibrated_on_by_area_or_accuracy(coefficient: str) -> None:
    data = classified()
    found = calibrate(
        data, "chrf", human="good", coefficient=[coefficient], grid=[1.0, 2.0], resamples=49, mode="compat"
    )
    scores, labels = ws.score(data, "chrf").values, data.human("good")
    good, bad = scores[labels == 1], scores[labels == 0]
    area = np.mean((good[:, None] > bad) + 0.5 * (good[:, None] == bad))
    accuracy = max(np.mean((scores >= cut) == (labels == 1)) for cut in (*scores, np.inf))
    assert found.settings[0].before == pytest.approx(area if coefficient == "auc" else accuracy)
    assert found.settings[0].coefficient == coefficient
    held = [one for one in found.outcomes if one.protocol == "in-domain" and one.source == "erasure"]
    assert held[0].p_value is None or 0 <= held[0].p_value <= 1


def test_area_and_accuracy_need_two_classes() -> None:
    with pytest.raises(DataError, match="good auc@global was left out: its human scores have 60 values, auc needs two"):
        calibrate(classified(()), "chrf", human="good", coefficient=["auc"])
    with pytest.raises(SpecError, match="no coefficient named 'auk'"):
        calibrate(classified(), "chrf", human="good", coefficient=["auk"])
