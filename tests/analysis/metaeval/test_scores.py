"""Metrics against people."""

import csv
import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import whyscore as ws
from whyscore.analysis.metaeval.result import Metaevaluation
from whyscore.analysis.metaeval.scores import metaevaluate_table, score_by_language, sentinels, with_metrics
from whyscore.analysis.metaeval.settings import MetaevalScoresSettings
from whyscore.analysis.metaeval.tables import (
    Roles,
    ScoreTable,
    read_columns,
    read_ratings,
    read_wmt,
    score_table,
    texts_of,
    with_ratings,
    with_records,
)
from whyscore.data.records import score_lines
from whyscore.errors import DataError, SpecError
from whyscore.stats.correlation import correlate
from whyscore.types import Dataset, Entry, Estimate, Scores, Segment, Signature


def made(systems: int = 5, segments: int = 12, seed: int = 0) -> Dataset:
    rng = np.random.default_rng(seed)
    words = [f"w{k}" for k in range(9)]
    return Dataset(
        "made",
        tuple(
            Entry(str(k), f"s{i}", Segment(" ".join(rng.choice(words, rng.integers(3, 9))), "w1 w2 w3", ("w1 w2 w3",)),
                  {"da": float(rng.normal(i))})
            for i in range(systems)
            for k in range(segments)
        ),
    )  # fmt: skip


def table(path: Path, text: str) -> Path:
    path.write_text(text, "utf-8")
    return path


def test_one_vector_gives_one_estimate() -> None:
    data = made()
    found = ws.metaevaluate(data, data.human("da") ** 3, human="da", level="segment", coefficient="kendall")
    assert found.value == 1.0
    assert (found.measure, found.n, found.low) == ("kendall_b@segment", 12, 1.0)
    assert isinstance(found, Estimate)


def test_scores_that_are_better_lower_are_turned() -> None:
    data = made()
    lower = Scores(-data.human("da"), Signature("x"), higher_is_better=False)
    assert ws.metaevaluate(data, lower, human="da", level="global", coefficient="pearson").value == pytest.approx(1.0)


def test_a_metric_is_scored_where_it_is_named() -> None:
    data = made()
    one = ws.metaevaluate(data, "token_f1", human="da", level="global", coefficient="pearson", draws=50)
    peer = correlate(data.matrix(ws.score(data, "token_f1").values), data.matrix(data.human("da")), "global", "pearson")
    assert one.value == pytest.approx(peer.value)
    turned = ws.metaevaluate(data, ["ter", "token_f1"], human="da", level="global", coefficient="pearson", draws=0)
    assert turned["token_f1"].value == pytest.approx(one.value)
    ter = correlate(data.matrix(-ws.score(data, "ter").values), data.matrix(data.human("da")), "global", "pearson")
    assert turned["ter"].value == pytest.approx(ter.value)


def test_sentinels_stand_below_and_mark_what_they_beat() -> None:
    data = made()
    found = ws.metaevaluate(
        data, {"good": data.human("da"), "nothing": np.zeros(60), "bad": -data.human("da")}, human="da", level="global"
    )
    names = [one.metric for one in found]
    assert names[:3] == ["good", "bad", "nothing"]
    lengths = {"length", "-length", "source length", "length ratio"}
    assert set(names[3:]) == {"random", "constant", "copy rate", "-surprisal"} | lengths
    assert all(one.sentinel for one in list(found)[3:])
    assert not found["good"].beaten
    assert found["bad"].beaten
    assert found["bad"].below_chance
    assert math.isnan(found["nothing"].value)
    assert found["nothing"].reason == "constant"
    assert any(note.startswith("bad is below chance") for note in found.notes)
    assert "nothing has no kendall_b@global: constant" in found.notes


def test_tests_between_metrics_make_clusters() -> None:
    data = made(6, 30)
    human = data.human("da")
    rng = np.random.default_rng(1)
    scores = {"close": human + 0.1 * rng.normal(size=180), "near": human + 0.1 * rng.normal(size=180),
              "far": human + 20 * rng.normal(size=180)}  # fmt: skip
    for test in ("permutation", "bootstrap", "williams"):
        found = ws.metaevaluate(
            data, scores, human="da", level="global", coefficient="pearson", test=test, test_draws=300, draws=20
        )
        assert {one.metric: one.rank for one in found if not one.sentinel} == {"close": 1, "near": 1, "far": 2}, test
        assert len(found.tests) == 3
        far = [one for one in found.tests if one.second == "far"]
        assert len(far) == 2
        assert all(one.p < 0.02 for one in far)
    assert [len(table.rows) for table in found.tables()] == [11, 2]
    corrected = ws.metaevaluate(
        data, scores, human="da", level="global", test="permutation", test_draws=99, draws=0, correction="bonferroni"
    )
    assert all(one.adjusted == pytest.approx(min(1, 3 * one.p)) for one in corrected.tests)


def test_permutation_tests_are_symmetric_in_the_order_of_metrics() -> None:
    data = made(6, 20)
    rng = np.random.default_rng(1)
    scores = {name: data.human("da") + size * rng.normal(size=120) for name, size in (("a", 1.0), ("b", 3.0))}
    turned = dict(reversed(scores.items()))
    results = [
        ws.metaevaluate(data, given, human="da", level="segment", test="permutation", test_draws=200, draws=0)
        for given in (scores, turned)
    ]
    first, second = (one.tests[0] for one in results)
    assert (first.first, first.p) == (second.first, second.p)


@pytest.mark.parametrize("measure", ["acc_eq", "pairwise_accuracy", "spa", "pdp"])
def test_every_accuracy_has_an_interval_and_a_bootstrap_test(measure: str) -> None:
    data = made(6, 20)
    noise = np.random.default_rng(0).normal(size=120)
    scores = {"good": data.human("da") + 0.1 * noise, "bad": noise}
    found = ws.metaevaluate(
        data, scores, human="da", coefficient=measure, test="bootstrap", test_draws=100, draws=100, resample="inputs"
    )
    for one in (found["good"], found["bad"]):
        assert one.low is not None
        assert one.high is not None
        assert one.low <= one.value <= one.high
    assert found.tests[0].first == "good"
    assert found.tests[0].p < 0.05
    assert found.tests[0].method == "paired bootstrap over segments"
    assert "bootstrap interval over segments, for the same systems" in found.how


def test_a_turned_accuracy_is_told() -> None:
    data = made(6, 20)
    found = ws.metaevaluate(data, {"bad": -data.human("da")}, human="da", coefficient="pdp", draws=100)
    assert found["bad"].below_chance
    assert any(note.startswith("bad is below chance (-1.0000") for note in found.notes)


def test_equal_metrics_are_not_better_than_each_other_by_the_bootstrap() -> None:
    data = made(5, 12)
    same = data.human("da") ** 3
    found = ws.metaevaluate(
        data, {"a": same, "b": 2 * same}, human="da", level="segment", test="bootstrap", test_draws=50, draws=0
    )
    assert (found.tests[0].delta, found.tests[0].p) == (0.0, 1.0)
    assert [one.rank for one in found if not one.sentinel] == [1, 1]


@pytest.fixture(scope="session")
def summeval_table(shipped: Path) -> ScoreTable:
    """SummEval with the experts' raw ratings."""
    columns = read_columns(shipped / "summeval" / "scores.csv")
    names = ["expert_relevance", "expert_fluency", "bertscore_recall", "rouge-1_f1", "bertscore_f1"]
    return score_table(columns, names, Roles(system="system", segment="instance_id"))


def test_p_values_can_be_those_of_nlpstats(summeval_table: ScoreTable) -> None:
    judging = MetaevalScoresSettings(
        test="permutation", permute="row_xor_column", compat="nlpstats", draws=0, with_sentinels=False
    )
    found = metaevaluate_table(summeval_table, "expert_relevance", ["bertscore_recall", "rouge-1_f1"], settings=judging)
    assert found.tests[0].p == 0.008000800080008
    assert found.tests[0].method == "permutation test as in nlpstats, permute row_xor_column, p = c / n"


def test_soft_accuracies_can_be_those_of_mt_metrics_eval(summeval_table: ScoreTable) -> None:
    judging = MetaevalScoresSettings(coefficient="spa", compat="mtme", draws=0, with_sentinels=False)
    with threadpool_limits(1):  # float32 sums of a matrix product depend on its threads, as in the original
        found = metaevaluate_table(
            summeval_table, "expert_relevance", ["bertscore_recall", "bertscore_f1"], settings=judging
        )
    # What mt-metrics-eval (68a481a) gives on these scores. Whether sums in float32 tie depends on the processor, and
    # one tie in its thousand draws moves one of 120 pairs by 1e-3.
    assert [one.value for one in found] == pytest.approx([0.8788166666666667, 0.6445666666666667], abs=1.5e-4)
    assert found.how.endswith("; as in mtme")


def test_intervals_of_summeval_over_systems_segments_and_by_fisher(summeval_table: ScoreTable) -> None:
    expected = {"systems": (0.568, 0.892), "inputs": (0.600, 0.850), "both": (0.438, 0.929)}
    for resample, (low, high) in expected.items():
        judging = MetaevalScoresSettings(resample=resample, draws=9999, with_sentinels=False)  # type: ignore[arg-type]
        found = metaevaluate_table(summeval_table, "expert_relevance", ["bertscore_recall"], settings=judging)
        assert found["bertscore_recall"].low == pytest.approx(low, abs=0.015)
        assert found["bertscore_recall"].high == pytest.approx(high, abs=0.015)
    one = found["bertscore_recall"]
    assert (one.fisher_low, one.fisher_high) == (pytest.approx(0.5363, abs=5e-5), pytest.approx(0.8733, abs=5e-5))
    assert one.record()["fisher_low"] == one.fisher_low


def test_ties_of_means_can_be_compared_bit_by_bit(summeval_table: ScoreTable) -> None:
    rounded = replace(
        summeval_table, scores={**summeval_table.scores, "human": summeval_table.scores["expert_fluency"].round(6)}
    )
    for tolerance, value in ((1e-9, 0.6500), (1e-7, 0.6611)):
        judging = MetaevalScoresSettings(draws=0, tie_tolerance=tolerance, with_sentinels=False)
        found = metaevaluate_table(rounded, "human", ["bertscore_recall"], settings=judging)
        assert found["bertscore_recall"].value == pytest.approx(value, abs=5e-5)


def test_constant_segments_can_count_as_zero() -> None:
    data = made(3, 4)
    values = np.where(np.arange(12) % 4 == 0, 1.0, data.human("da"))
    left_out = ws.metaevaluate(data, values, human="da", level="segment", draws=20)
    zero = ws.metaevaluate(data, values, human="da", level="segment", draws=20, undefined="zero")
    assert (left_out.value, zero.value) == (1.0, 0.75)
    assert (left_out.n_used, zero.n_used) == (3, 3)
    assert zero.low is not None
    assert zero.low < 1.0
    assert left_out.low == 1.0


def test_an_epsilon_can_come_from_other_segments(shared: Path) -> None:
    columns = read_columns(shared / "mqm" / "newstest2020_ende_mqm_and_metrics.csv")
    table = score_table(columns, ["mqm", "YiSi-2"], Roles(system="system", segment="seg_id"))
    how = MetaevalScoresSettings(coefficient="acc_eq", draws=0, with_sentinels=False)
    own = metaevaluate_table(table, "mqm", ["YiSi-2"], settings=replace(how, held_out=True))["YiSi-2"]
    assert own.value == pytest.approx(0.4542, abs=5e-5)
    assert own.at_zero == pytest.approx(0.4189, abs=5e-5)
    assert own.epsilon == pytest.approx(2.08e-4, abs=5e-7)
    assert own.held_out is not None
    assert 0 < own.value - own.held_out < 0.002
    even = np.array([int(name) % 2 == 0 for name in table.segments])
    half = replace(table, scores={name: np.where(even, one, np.nan) for name, one in table.scores.items()})
    given = metaevaluate_table(half, "mqm", ["YiSi-2"], settings=replace(how, epsilon=2.15e-4))["YiSi-2"]
    assert given.value == pytest.approx(0.4593, abs=1e-4)
    assert given.epsilon == 2.15e-4


@pytest.mark.parametrize("measure", ["acc_eq", "pairwise_accuracy"])
def test_accuracies_can_be_tested_too(measure: str) -> None:
    data = made(6, 20)
    scores = {"a": data.human("da"), "b": np.random.default_rng(0).normal(size=120)}
    found = ws.metaevaluate(data, scores, human="da", coefficient=measure, test="permutation", test_draws=200, draws=0)
    assert found.tests[0].first == "a"
    assert (found["a"].epsilon == 0) == (measure == "acc_eq")
    assert "permute pairs" in found.how or measure != "acc_eq"


def test_partial_correlation_given_length() -> None:
    data = made()
    length = np.array([len(segment.hypothesis.split()) for segment in data.segments], dtype=float)
    human = length + np.random.default_rng(0).normal(size=60)
    judged = replace(
        data, entries=tuple(replace(e, human={"da": float(h)}) for e, h in zip(data.entries, human, strict=True))
    )
    found = ws.metaevaluate(
        judged, {"length alone": length + 1e-3 * human}, human="da", level="global", coefficient="pearson", draws=0,
        given_length=True,
    )  # fmt: skip
    assert found["length alone"].value > 0.7
    assert found["length alone"].given_length == pytest.approx(1.0)


def test_human_references_are_left_out_unless_asked_for() -> None:
    data = made()
    named = replace(data, entries=tuple(replace(e, system=e.system.replace("s0", "Human-A")) for e in data.entries))
    scores = {"m": data.human("da")}
    found = ws.metaevaluate(named, scores, human="da", draws=0)
    assert found.groups[0].systems == 4
    assert found.notes[0] == "1 human references among the systems were left out: Human-A"
    assert ws.metaevaluate(named, scores, human="da", draws=0, with_humans=True).groups[0].systems == 5


def test_one_system_is_told() -> None:
    data = made(systems=1)
    found = ws.metaevaluate(data, {"m": data.human("da")}, human="da", draws=0)
    assert math.isnan(found["m"].value)
    assert "one system has no kendall_b@system: use the level global" in found.notes


def test_results_can_be_shown() -> None:
    data = made()
    found = ws.metaevaluate(data, {"<m>": data.human("da")}, human="da", draws=20)
    assert "&lt;m&gt;" in found._repr_html_()
    assert "(random)" in [row[0] for row in found.tables()[0].rows]
    assert str(found).startswith("<m> 1.000 [")
    assert "5 systems x 12 segments" in found.how
    with pytest.raises(KeyError):
        found["absent"]


def test_wrong_input_is_refused() -> None:
    data = made()
    with pytest.raises(DataError, match=re.escape("made has no human score 'mqm'; it has: da")):
        ws.metaevaluate(data, np.ones(60), human="mqm")
    with pytest.raises(DataError, match=re.escape("metric has 3 scores for 60 entries of made")):
        ws.metaevaluate(data, np.ones(3), human="da")
    with pytest.raises(SpecError, match="test is 'anova'; choose from permute-both, permutation, bootstrap, williams"):
        ws.metaevaluate(data, {"m": np.arange(60.0)}, human="da", test="anova", draws=0)
    with pytest.raises(SpecError, match="spa is tested by the bootstrap: use the test bootstrap"):
        ws.metaevaluate(data, {"m": np.arange(60.0)}, human="da", coefficient="spa", test="permutation", draws=0)
    with pytest.raises(SpecError, match="Williams' test compares correlations over all cells, not pearson@system"):
        ws.metaevaluate(data, {"m": np.arange(60.0)}, human="da", coefficient="pearson", test="williams", draws=0)
    with pytest.raises(SpecError, match="epsilon is only for acc_eq, not for pdp"):
        ws.metaevaluate(data, np.arange(60.0), human="da", coefficient="pdp", epsilon=0.1)
    with pytest.raises(SpecError, match="a given epsilon is not fitted"):
        ws.metaevaluate(data, np.arange(60.0), human="da", coefficient="acc_eq", epsilon=0.1, held_out=True)
    with pytest.raises(SpecError, match="compat is 'scipy', expected 'mtme' or 'nlpstats' or None"):
        ws.metaevaluate(data, np.arange(60.0), human="da", compat="scipy")
    with pytest.raises(SpecError, match="undefined is 'one'"):
        ws.metaevaluate(data, np.arange(60.0), human="da", undefined="one")
    with pytest.raises(SpecError, match="resample is 'rows', expected 'systems' or 'inputs' or 'both'"):
        ws.metaevaluate(data, np.arange(60.0), human="da", resample="rows")
    twice = replace(data, entries=(*data.entries, data.entries[0]))
    with pytest.raises(DataError, match=re.escape("made:61: system 's0' has the segment '0' twice, first on line 1")):
        ws.metaevaluate(twice, np.ones(61), human="da")
    missing = replace(data, entries=tuple(replace(e, human={"da": math.nan}) for e in data.entries))
    with pytest.raises(DataError, match="the human score 'da' is missing in every row"):
        ws.metaevaluate(missing, np.ones(60), human="da")


CSV = "system,seg_id,da,m\na,1,1.0,2\nb,1,2.0,3\na,2,,4\nb,2,NaN,5\n"


def test_a_table_is_read_with_gaps(tmp_path: Path) -> None:
    columns = read_columns(table(tmp_path / "t.csv", CSV))
    found = score_table(columns, ["da", "m"])
    assert found.systems == ("a", "b", "a", "b")
    assert np.isnan(found.scores["da"]).tolist() == [False, False, True, True]
    assert texts_of(columns) is None
    judged = metaevaluate_table(found, "da", ["m"], settings=MetaevalScoresSettings(level="global", draws=0))
    assert judged["m"].n_used == 2
    assert "up to 2 cells were left out (paired), as one side lacks them" in judged.notes


def test_raw_ratings_are_preferred(tmp_path: Path) -> None:
    columns = read_columns(table(tmp_path / "t.tsv", "system\tid\tda\tda_raw\na\t1\t0.333333\t0|0|1\nb\t1\t9\t\n"))
    found = score_table(columns, ["da"])
    assert found.scores["da"][0] == 1 / 3
    assert np.isnan(found.scores["da"][1])
    assert found.notes == ("da was taken from the ratings in da_raw",)


def test_rows_of_raters_are_averaged(tmp_path: Path) -> None:
    text = "system,id,da,who\na,1,0.1,x\na,1,0.2,y\na,1,0.3,z\nb,1,5,x\n"
    found = score_table(read_columns(table(tmp_path / "t.csv", text)), ["da"], Roles(rater="who"))
    assert found.scores["da"].tolist() == [pytest.approx(0.2), 5.0]
    assert found.notes == ("4 ratings of 2 segments were averaged",)


def test_texts_of_a_table_are_scored(tmp_path: Path) -> None:
    rows = [{"system": s, "id": k, "hyp": f"w{k} {s}", "ref": f"w{k} a", "da": k} for s in "ab" for k in range(3)]
    path = table(tmp_path / "t.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    columns = read_columns(path)
    scored = with_metrics(replace(score_table(columns, ["da"]), texts=texts_of(columns)), ["token_f1", "ter"])
    assert scored.scores["token_f1"].tolist() == pytest.approx([1, 1, 1, 0.5, 0.5, 0.5])
    assert scored.scores["ter"][0] == 0
    assert scored.scores["ter"][3] < 0
    with pytest.raises(DataError, match="no column chrf and no texts to score"):
        with_metrics(score_table(columns, ["da"]), ["chrf"])


@pytest.mark.parametrize(
    ("text", "scores", "roles", "message"),
    [
        (CSV, ["x"], Roles(), "no column 'x'; there are: 'system', 'seg_id', 'da', 'm'"),
        (CSV, ["da"], Roles(system="who"), "no column 'who' for --system"),
        (
            "system,da\na,1\na,2\nb,1\n",
            ["da"],
            Roles(),
            "no column for the segment, and systems with different numbers of rows: name it with --segment",
        ),
        ("system,da,r\na,1,x\n", ["da"], Roles(rater="r"), "no column for the segment, and several raters: name it"),
        ("system,id,da\na,1,good\n", ["da"], Roles(), "t.csv:2: 'da' is 'good', expected a number"),
        ("system,id,da\na,1,inf\n", ["da"], Roles(), "t.csv:2: 'da' is 'inf', expected a number"),
        ("system,id,da\n,1,1\n", ["da"], Roles(), "t.csv:2: 'system' is empty, expected a name"),
    ],
)
def test_bad_tables_are_refused(tmp_path: Path, text: str, scores: Sequence[str], roles: Roles, message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        score_table(read_columns(table(tmp_path / "t.csv", text)), scores, roles)


def test_unknown_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=re.escape("ends in .csv, .tsv, .jsonl or .scores, not '.xlsx'")):
        read_columns(table(tmp_path / "t.xlsx", "x"))


def test_records_are_joined_by_system_and_segment(tmp_path: Path) -> None:
    data = made(2, 3)
    lines = score_lines(data, {"m": Scores(np.arange(6.0), Signature("m"))})
    path = table(tmp_path / "s.jsonl", "".join(lines))
    rows = ScoreTable("t", ("s0", "s1", "s9"), ("0", "2", "0"), {"da": np.ones(3)}, (1, 2, 3))
    joined, names = with_records(rows, path)
    assert names == ["m"]
    assert joined.scores["m"].tolist()[:2] == [0.0, 5.0]
    assert np.isnan(joined.scores["m"][2])
    assert joined.notes[0].startswith("1 of 3 rows have no m in")
    assert "s9 0" in joined.notes[0]
    assert "4 scores of m in" in joined.notes[1]
    stranger = ScoreTable("t", ("x",), ("y",), {}, (1,))
    with pytest.raises(DataError, match=re.escape("no system and segment of t is in")):
        with_records(stranger, path)
    with pytest.raises(DataError, match=re.escape("has scores of 2 systems: s0, s1. Name the column with --system")):
        with_records(replace(stranger, systems=None), path)


def test_mqm_ratings_are_joined(shipped: Path) -> None:
    with (shipped / "mqm" / "ted_zhen_mqm_expected.csv").open(encoding="utf-8") as file:
        golden = list(csv.DictReader(file))
    keys = [(row["system"], row["seg_id"]) for row in golden]
    rows = ScoreTable("t", tuple(k for k, _ in keys), tuple(k for _, k in keys), {}, tuple(range(len(keys))))
    found = with_ratings(rows, shipped / "mqm" / "ted_zhen_ratings.jsonl").scores["mqm"]
    assert found.tolist() == pytest.approx([float(row["mqm"]) for row in golden], abs=1e-12)


def test_ratings_without_severity_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="raw MQM ratings have no column rater, severity, category"):
        read_ratings(table(tmp_path / "r.csv", CSV))


def test_wmt_folders_are_read(tmp_path: Path) -> None:
    (tmp_path / "human-scores").mkdir()
    (tmp_path / "metric-scores" / "en-de").mkdir(parents=True)
    table(tmp_path / "human-scores" / "en-de.mqm.seg.score", "a\t-1\na\tNone\nb\t-3\nb\t0\n")
    table(tmp_path / "metric-scores" / "en-de" / "chrF-refA.seg.score", "a 1\na 2\nb 3\nb 4\n")
    found, names = read_wmt(tmp_path, "en-de", "mqm")
    assert names == ["chrF-refA"]
    assert found.scores["chrF-refA"].tolist() == [1.0, 2.0, 3.0, 4.0]
    assert np.isnan(found.scores["mqm"][1])
    with pytest.raises(DataError, match=re.escape("there are: en-de.mqm.seg.score")):
        read_wmt(tmp_path, "en-de", "da")
    table(tmp_path / "human-scores" / "en-de.bad.seg.score", "a one\n")
    with pytest.raises(DataError, match=re.escape("'a one' is not a system and a score")):
        read_wmt(tmp_path, "en-de", "bad")


def test_groups_are_judged_apart_and_wrong_directions_are_told(shared: Path) -> None:
    columns = read_columns(shared / "wmt22qe" / "da_and_submissions.csv")
    found = metaevaluate_table(
        score_table(columns, ["da", "IST-Unbabel", "NJUQE"], Roles(group="lp")), "da", ["IST-Unbabel", "NJUQE"],
        settings=MetaevalScoresSettings(level="global", coefficient="spearman", draws=100),
    )  # fmt: skip
    values = {(one.group, one.metric): one.value for one in found}
    assert values["en-cs", "IST-Unbabel"] == pytest.approx(0.6549, abs=5e-5)
    assert values["km-en", "IST-Unbabel"] == pytest.approx(0.6689, abs=5e-5)
    assert values["km-en", "NJUQE"] == pytest.approx(-0.4302, abs=5e-5)
    assert math.isnan(values["en-cs", "NJUQE"])
    assert any(note.startswith("km-en: NJUQE is below chance (-0.4302") for note in found.notes)
    assert "IST-Unbabel: mean over 2 groups 0.6619 (equal weights)" in found.notes
    assert found.tables()[0].columns[0] == "group"
    assert "1000 rows and 992 rows" in found.how


def test_pairs_of_several_groups_are_pooled() -> None:
    rows = [("x", "a", 1, 1), ("x", "b", 2, 2), ("x", "c", 3, 3), ("y", "a", 2, 1), ("y", "b", 1, 2)]
    groups, systems, human, metric = (tuple(row[k] for row in rows) for k in range(4))
    scores = {"da": np.array(human, dtype=float), "m": np.array(metric, dtype=float)}
    given = ScoreTable("t", systems, ("1",) * 5, scores, tuple(range(5)), groups=groups)
    found = metaevaluate_table(
        given, "da", ["m"], settings=MetaevalScoresSettings(coefficient="pairwise_accuracy", draws=0)
    )
    assert [one.value for one in found if not one.sentinel] == [1.0, 0.0]
    assert "m: 0.7500 over the 4 pairs of 2 groups" in found.notes


def test_sentinels_are_random_by_row_and_not_by_order() -> None:
    rows = ScoreTable("t", ("a", "b"), ("1", "1"), {}, (1, 2))
    turned = ScoreTable("t", ("b", "a"), ("1", "1"), {}, (1, 2))
    assert sentinels(rows, "da")["random"].tolist() == sentinels(turned, "da")["random"].tolist()[::-1]
    assert sentinels(rows, "da", seed=1)["random"].tolist() != sentinels(rows, "da")["random"].tolist()


# Families of tests, levels, and what is called better


def grouped(path: Path, groups: int = 3, rows: int = 40) -> ScoreTable:
    """Return a table without systems: two metrics of different quality in several groups."""
    rng = np.random.default_rng(5)
    lines = ["lp,da,good,poor"]
    for group in range(groups):
        for _ in range(rows):
            human = rng.normal()
            lines.append(f"l{group},{human},{human + rng.normal()},{human + 2 * rng.normal()}")
    return score_table(read_columns(table(path / "t.csv", "\n".join(lines))), ["da", "good", "poor"], Roles(group="lp"))


def judged(data: ScoreTable, **options: object) -> Metaevaluation:
    usual = {"coefficient": "pearson", "test": "permutation", "test_draws": 199, "draws": 0, "with_sentinels": False}
    return metaevaluate_table(data, "da", ["good", "poor"], **(usual | options))  # type: ignore[arg-type]


def test_a_correction_counts_the_tests_of_all_groups(tmp_path: Path) -> None:
    data = grouped(tmp_path)
    raw = [one.p for one in judged(data).tests]
    every = judged(data, correction="bonferroni")
    assert [one.adjusted for one in every.tests] == [min(1.0, 3 * p) for p in raw]
    assert [one.family_size for one in every.tests] == [3, 3, 3]
    assert "bonferroni-corrected over the 3 tests of the table" in every.how
    assert every.document()["family"] == "table"  # type: ignore[index]
    apart = judged(data, correction="bonferroni", family="group")
    assert [one.adjusted for one in apart.tests] == raw
    assert [one.family_size for one in apart.tests] == [1, 1, 1]
    assert "over the 1 tests of each group" in apart.how
    assert judged(data).document()["family"] is None  # type: ignore[index]


def test_clusters_follow_the_corrected_tests(tmp_path: Path) -> None:
    data = grouped(tmp_path)
    raw = {one.group: one.p for one in judged(data).tests}
    alpha = sorted(raw.values())[1]  # two groups of three are significant before, fewer after the correction
    before = {one.group: one.rank for one in judged(data, alpha=alpha) if one.metric == "poor"}
    after = {one.group: one.rank for one in judged(data, alpha=alpha, correction="bonferroni") if one.metric == "poor"}
    assert list(before.values()).count(2) > list(after.values()).count(2)


def test_only_significant_pairs_are_called_better(tmp_path: Path) -> None:
    data = grouped(tmp_path)
    found = judged(data)
    alpha = min(one.p for one in found.tests)
    (_, tests) = judged(data, alpha=alpha).tables()
    assert tests.columns == ("group", "metric", "better than", "difference", "p")
    assert [row[-1] for row in tests.rows] == [alpha]
    assert tests.notes[0].startswith("1 of 3 pairs differ significantly")
    none = judged(data, alpha=alpha / 2)
    (agreements,) = none.tables()
    assert "no two metrics differ significantly" in agreements.notes
    assert len(none.tests) == 3


def test_without_systems_the_level_is_that_of_all_rows(tmp_path: Path) -> None:
    data = grouped(tmp_path, groups=1)
    for level in (None, "system", "segment", "within_system"):
        found = judged(data, level=level, coefficient="kendall", test=None)
        assert found.measure == "kendall_b@global"
        assert {one.measure for one in found} == {"kendall_b@global"}
        (note,) = [note for note in found.notes if "level global" in note]
        assert "name the column of the system with --system" in note
    assert judged(data, level="global", test=None).notes == ()
    rows = replace(data, rows_are_systems=True)
    assert judged(rows, level="system", test=None).measure == "pearson@system"
    with pytest.raises(DataError, match=re.escape("names no systems, and spa is made for the level system")):
        judged(data, coefficient="spa", test=None)


def test_nlpstats_swaps_whole_rows_and_columns() -> None:
    data = made(6, 10)
    rng = np.random.default_rng(2)
    scores = {name: data.human("da") + rng.normal(size=60) for name in ("a", "b")}
    options = {"human": "da", "level": "segment", "test": "permutation", "test_draws": 199, "draws": 0}
    found = ws.metaevaluate(data, scores, compat="nlpstats", **options)  # type: ignore[call-overload]
    assert found.method == "permutation test as in nlpstats, permute row_xor_column, p = c / n"
    named = ws.metaevaluate(data, scores, compat="nlpstats", permute="row_xor_column", **options)  # type: ignore[call-overload]
    assert [one.p for one in named.tests] == [one.p for one in found.tests]
    with pytest.raises(SpecError, match=re.escape("nlpstats has no test that swaps single cells")):
        MetaevalScoresSettings(compat="nlpstats", permute="cell")


def test_each_language_pair_of_the_data_is_scored_in_its_languages() -> None:
    texts = {"en-de": ("Häuser", "Haus"), "en-ru": ("дома", "дом")}
    entries = [
        Entry(str(k), "A", Segment(hypothesis, references=(reference,)), {"da": float(k)}, extra={"LP": pair})
        for k, (pair, (hypothesis, reference)) in enumerate(texts.items())
    ]
    found = score_by_language(Dataset("both", tuple(entries)), "mee(words=None)")
    assert found.tolist() == pytest.approx([2 / 3, 2 / 3])  # a root match needs the stemmer of the language
    assert score_by_language(Dataset("one", tuple(entries[:1]), ("en", "ru")), "mee(words=None)").tolist() == [0.0]
    assert score_by_language(Dataset("both", tuple(entries)), "ter").tolist() == [-100.0, -100.0]
