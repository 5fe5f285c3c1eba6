"""Metrics as filters and re-rankers, and averages over groups and tasks."""

import json

import numpy as np
import pytest
from tests.support.cli import Run

import whyscore as ws
from whyscore.analysis.metaeval.scores import metaevaluate_table
from whyscore.analysis.metaeval.tables import ScoreTable
from whyscore.analysis.metaeval.uses import FilterUse, RerankUse
from whyscore.errors import DataError
from whyscore.stats.agreement import acc_eq, soft_pairwise_accuracy
from whyscore.stats.significance import swap_segments


def table(seed: int = 0, systems: int = 3, segments: int = 40) -> ScoreTable:
    """The metric `oracle` is the human score, `noise` is chance, `flat` a constant."""
    rng = np.random.default_rng(seed)
    human = np.round(-5 * rng.random((systems, segments)), 1).ravel()
    names = [(f"S{i}", str(j)) for i in range(systems) for j in range(segments)]
    scores = {"mqm": human, "oracle": human, "noise": rng.random(len(human)), "flat": np.ones(len(human))}
    return ScoreTable("t", tuple(a for a, _ in names), tuple(b for _, b in names), scores, tuple(range(len(names))))


def test_a_perfect_metric_filters_and_reranks_without_mistake_and_a_constant_as_chance() -> None:
    result = metaevaluate_table(
        table(), "mqm", ["oracle", "noise", "flat"], filters=(-1.0, -4.0), with_sentinels=False, draws=0
    )
    filters = {(u.metric, u.limit): u for u in result.uses if isinstance(u, FilterUse)}
    ranks = {u.metric: u for u in result.uses if isinstance(u, RerankUse)}
    oracle, flat = filters["oracle", -4.0], filters["flat", -4.0]
    assert oracle.precision == 1.0
    assert oracle.recall > 0.95  # the threshold is that of other segments
    assert (flat.precision, flat.recall, flat.kept) == (flat.good, 1.0, 1.0)
    assert filters["noise", -1.0].f1 < filters["oracle", -1.0].f1
    assert ranks["oracle"].precision == 1.0
    assert ranks["oracle"].chosen == ranks["oracle"].best > ranks["flat"].chosen == pytest.approx(ranks["flat"].chance)
    assert ranks["flat"].precision == pytest.approx(1 / 3, abs=0.05)
    assert [one.title for one in result.tables()[1:]] == [
        "as filters; thresholds by F1 on other documents", "as re-rankers: one of the outputs for each segment",
    ]  # fmt: skip


def test_the_average_is_that_of_spa_and_tie_calibrated_accuracy_over_groups() -> None:
    one = table()
    both = ScoreTable(
        *("t", (one.systems or ()) * 2, one.segments * 2, {k: np.tile(v, 2) for k, v in one.scores.items()}),
        lines=one.lines * 2,
        groups=("en-de",) * len(one) + ("zh-en",) * len(one),
    )  # fmt: skip
    result = metaevaluate_table(both, "mqm", ["oracle", "noise"], average=True, with_sentinels=False, draws=0)
    names, averages = result.averages
    assert names == ("en-de spa", "en-de acc_eq", "zh-en spa", "zh-en acc_eq")
    assert [(a.metric, a.rank) for a in averages] == [("oracle", 1), ("noise", 2)]
    assert averages[0].values == pytest.approx((1.0, 1.0, 1.0, 1.0))
    assert [a.cluster for a in averages] == [1, 2]
    alone = metaevaluate_table(one, "mqm", ["noise"], coefficient="acc_eq", with_sentinels=False, draws=0)
    assert averages[1].values[1] == pytest.approx(alone["noise"].value)
    assert averages[1].average == pytest.approx(np.mean(averages[1].values))
    with pytest.raises(DataError, match="averages of SPA need two systems or more"):
        metaevaluate_table(table(systems=1), "mqm", ["noise"], average=True, level="global", draws=0)


def test_clusters_of_averages_part_metrics_that_differ_and_hold_others_together() -> None:
    one = table(systems=6, segments=60)
    rng = np.random.default_rng(1)
    human = one.scores["mqm"]
    near = human + rng.normal(0, 1.0, len(human))
    scores = dict(one.scores) | {"near": near, "scaled": 2 * near + 1}
    again = ScoreTable("t", one.systems, one.segments, scores, one.lines)
    names = ["oracle", "near", "scaled", "noise"]
    result = metaevaluate_table(again, "mqm", names, average=True, with_sentinels=False, draws=0, test_draws=999)
    clusters = {a.metric: a.cluster for a in result.averages[1]}
    assert clusters == {"oracle": 1, "near": 2, "scaled": 2, "noise": 3}
    shown = result.tables()[1]
    assert shown.columns[:3] == ("rank", "cluster", "metric")
    assert "999 draws" in shown.notes[0]
    strict = metaevaluate_table(
        again, "mqm", names, average=True, with_sentinels=False, draws=0, test_draws=999, alpha=1e-6
    )
    assert {a.cluster for a in strict.averages[1]} == {1}


def test_of_equally_good_metrics_few_are_called_different() -> None:
    """Swapping segments keeps its level: one-sided tests of the leader find a difference in about a tenth of pairs."""
    wrong = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        human = rng.normal(size=(4, 25))
        first, second = (human + rng.normal(0, 2, human.shape) for _ in range(2))
        found = swap_segments(first, second, human, n=199, seed=seed)
        assert found is not None
        lead = abs(found.observed.sum())
        wrong += (1 + int((np.sign(found.observed.sum()) * found.drawn.sum(axis=1) >= lead).sum())) / 200 <= 0.05
    assert 3 <= wrong <= 20


def test_swapped_segments_begin_with_the_observed_differences() -> None:
    rng = np.random.default_rng(0)
    human = rng.normal(size=(5, 200))
    first, second = human + rng.normal(0, 0.5, human.shape), human + rng.normal(0, 3, human.shape)
    found = swap_segments(first, second, human, n=99, seed=0)
    assert found is not None
    gains = [acc_eq(one, human).value for one in (first, second)]
    softs = [soft_pairwise_accuracy(one, human).value for one in (first, second)]
    assert found.observed[1] == pytest.approx(gains[0] - gains[1])
    assert found.observed[0] == pytest.approx(softs[0] - softs[1], abs=0.02)  # the normal distribution is near
    assert found.observed.sum() > found.drawn.sum(axis=1).max()
    order = rng.permutation(200)
    again = swap_segments(first[:, order], second[:, order], human[:, order], n=99, seed=0)
    assert again is not None
    np.testing.assert_allclose(again.drawn, found.drawn, atol=1e-12)
    assert swap_segments(np.full((2, 3), np.nan), first[:2, :3], human[:2, :3], n=9, seed=0) is None


def test_the_command_shows_them_and_json_has_all(run: Run) -> None:
    asked = ("metaeval", "scores", "--sample", "--human", "mqm", "-m", "token_f1", "--draws", "0", "-q")
    done = run(*asked, "--filter=-1", "--average", "-f", "json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert {one["use"] for one in found["uses"]} == {"filter", "rerank"}
    assert found["averages"][0]["rank"] == 1
    assert "uses" not in json.loads(run(*asked, "-f", "json").out)
    assert len(ws.sample().systems) > 1
