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
    alone = metaevaluate_table(one, "mqm", ["noise"], coefficient="acc_eq", with_sentinels=False, draws=0)
    assert averages[1].values[1] == pytest.approx(alone["noise"].value)
    assert averages[1].average == pytest.approx(np.mean(averages[1].values))
    with pytest.raises(DataError, match="averages of SPA need two systems or more"):
        metaevaluate_table(table(systems=1), "mqm", ["noise"], average=True, level="global", draws=0)


def test_the_command_shows_them_and_json_has_all(run: Run) -> None:
    asked = ("metaeval", "scores", "--sample", "--human", "mqm", "-m", "token_f1", "--draws", "0", "-q")
    done = run(*asked, "--filter=-1", "--average", "-f", "json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert {one["use"] for one in found["uses"]} == {"filter", "rerank"}
    assert found["averages"][0]["rank"] == 1
    assert "uses" not in json.loads(run(*asked, "-f", "json").out)
    assert len(ws.sample().systems) > 1
