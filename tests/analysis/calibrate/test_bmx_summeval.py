"""The eight splits of SummEval: sizes, and the table of the specification.

The importances of 1600 summaries with 11 references each (LIME: 1.9 million masks from one random state) are made once.
"""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from whyscore.aggregate import PowerMean
from whyscore.analysis.calibrate.material import Explained, columns_of
from whyscore.analysis.calibrate.rules import RULES as EVERY
from whyscore.analysis.calibrate.rules import Rule
from whyscore.errors import DataError
from whyscore.experiments.bmx.summeval import (
    ASPECTS,
    SPLIT,
    Split,
    SummevalSettings,
    aspect_rows,
    read_summeval,
    splits,
    summaries,
)
from whyscore.stats.correlation import correlate
from whyscore.types import Dataset

RULES: tuple[Rule, ...] = ("median", "argmax", "plateau", "cv_shrinkage")
COMPAT = SummevalSettings(mode="compat", epsilon=0.0, grid="compat", rules=RULES, resamples=0)


@pytest.fixture(scope="module")
def summeval(shipped: Path) -> Dataset:
    return read_summeval(shipped / "summeval" / "scores.csv", shipped / "summeval" / "texts.jsonl")


@pytest.fixture(scope="module")
def by_erasure(summeval: Dataset, erasure: Callable[..., object], as_explained: Callable[..., Explained]) -> Explained:
    return as_explained(summeval, erasure(summeval.segments), "erasure")


@pytest.fixture(scope="module")
def by_lime(
    summeval: Dataset, sequential_lime: Callable[..., object], as_explained: Callable[..., Explained]
) -> Explained:
    return as_explained(summeval, sequential_lime(summeval.segments, 0), "lime")


@pytest.fixture(scope="module")
def erasure_rows(by_erasure: Explained) -> list[Split]:
    return list(splits(by_erasure, COMPAT, controls=["length"]))


@pytest.fixture(scope="module")
def lime_rows(by_lime: Explained) -> list[Split]:
    return list(splits(by_lime, COMPAT, controls=[]))


def means(rows: list[Split], source: str, rule: str) -> tuple[float, float]:
    found = next(one for one in summaries(rows) if (one.source, one.rule) == (source, rule))
    return found.kendall, found.spearman


def test_the_splits_have_the_sizes_of_the_paper(summeval: Dataset) -> None:
    number = np.array([entry.extra[SPLIT] for entry in summeval.entries])
    assert np.bincount(number).tolist() == [208] * 7 + [144]
    assert [1600 - size for size in np.bincount(number).tolist()] == [1392] * 7 + [1456]
    documents = {
        split: {entry.document for entry in summeval.entries if entry.extra[SPLIT] == split} for split in range(8)
    }
    assert sum(map(len, documents.values())) == len(set().union(*documents.values())) == 100


def test_length_alone_agrees_with_people_this_much(summeval: Dataset) -> None:
    lengths = summeval.matrix([float(len(segment.hypothesis.split())) for segment in summeval.segments])
    found = [correlate(lengths, summeval.matrix(summeval.human(one)), "system", "kendall").value for one in ASPECTS]
    assert found == pytest.approx([0.0, 0.4667, 0.2259, 0.2333], abs=1e-4)


def test_settings_that_the_metric_gets_backwards_have_no_vote(erasure_rows: list[Split]) -> None:
    votes = {row.split: row.settings for row in erasure_rows if row.rule == "median" and row.source == "erasure"}
    assert [votes[split] for split in range(8)] == [8, 8, 8, 6, 6, 2, 8, 8]


@pytest.mark.parametrize(
    ("rule", "kendall", "spearman"),
    [
        ("median", 0.0903, 0.1348),
        ("argmax", 0.1164, 0.1688),
        ("plateau", 0.1467, 0.2114),
        ("cv_shrinkage", 0.1560, 0.2238),
    ],
)
def test_erasure_does_this_on_the_other_documents(
    erasure_rows: list[Split], rule: str, kendall: float, spearman: float
) -> None:
    assert means(erasure_rows, "original", "-") == pytest.approx((0.1560, 0.2238), abs=1e-4)
    assert means(erasure_rows, "erasure", rule) == pytest.approx((kendall, spearman), abs=1e-4)


def test_where_nothing_improves_nothing_is_boosted(erasure_rows: list[Split]) -> None:
    median = {row.split: row.w for row in erasure_rows if row.rule == "median" and row.source == "erasure"}
    assert [split for split, w in median.items() if w == 1] == [4]
    kept = [row.shrinkage for row in erasure_rows if row.rule == "cv_shrinkage" and row.source == "erasure"]
    assert max(one for one in kept if one is not None) <= 0.13


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "kendall", "spearman"),
    [
        ("median", 0.1222, 0.1654),
        ("argmax", 0.1942, 0.2619),
        ("plateau", 0.1404, 0.1999),
        ("cv_shrinkage", 0.1560, 0.2238),
    ],
)
def test_lime_does_this_on_the_other_documents(
    lime_rows: list[Split], rule: str, kendall: float, spearman: float
) -> None:
    assert means(lime_rows, "lime", rule) == pytest.approx((kendall, spearman), abs=0.003)


@pytest.mark.slow
def test_nothing_of_the_gain_of_lime_survives_on_left_out_documents(lime_rows: list[Split]) -> None:
    kept = {row.shrinkage for row in lime_rows if row.rule == "cv_shrinkage"}
    assert kept == {0.0}


def test_the_length_of_the_summary_beats_every_explainer(erasure_rows: list[Split]) -> None:
    assert means(erasure_rows, "length", "median") == pytest.approx((0.4176, 0.5435), abs=1e-4)


@pytest.mark.slow
def test_all_summaries_have_an_importance_that_is_not_positive(by_erasure: Explained, by_lime: Explained) -> None:
    for found in (by_erasure, by_lime):
        bags = found.material.bags
        assert all(bags.of_segment(k).min() <= 0 for k in range(1600))
        at_minus_one = columns_of(found.material, PowerMean(), np.array([-1.0]))
        assert at_minus_one.degenerate_share(np.arange(1600))[0] == 1.0


def test_corrected_counts_are_those_of_the_correction() -> None:
    split = Split("erasure", "median", 0, "fluency", "kendall_b", 208, 1392, 4, -1.0, 0.4, None, 0.1, 0.2, 0.001)
    values = [0.001, 0.006, 0.0065, 0.011, 0.05, 0.2, 0.9, None]
    rows = [split._replace(split=k, p_value=value) for k, value in enumerate(values)]
    for correction, surviving in (("bonferroni", 2), ("holm", 3), ("none", 5)):
        (cell,) = aspect_rows(rows, correction)
        # Below .05 / 8 = .00625 there are two; Holm compares the third with .05 / 6.
        assert (cell.significant, cell.surviving) == (5, surviving)
        assert (cell.before, cell.after) == (pytest.approx(0.1), pytest.approx(0.2))
    spearman = [row._replace(coefficient="spearman", p_value=0.001) for row in rows]
    total = summaries([*rows, *spearman], "bonferroni")[1]
    assert (total.significant, total.surviving, total.spearman_significant, total.spearman_surviving) == (5, 2, 8, 8)


def test_modes_fill_in_their_choices() -> None:
    paper, compat, default = (SummevalSettings(mode=mode) for mode in ("paper", "compat", "default"))  # type: ignore[arg-type]
    assert (paper.fitted, compat.fitted, default.fitted) == (("kendall_b",), *[("kendall_b", "spearman")] * 2)
    assert (paper.compared, compat.compared, default.compared) == (("median",), ("median",), EVERY)
    assert [len(one.search.parameters) for one in (paper, compat, default)] == [600, 600, 601]
    assert [one.testing.permute for one in (paper, compat, default)] == ["row_xor_column", "row_xor_column", "cell"]
    assert [one.testing.correction for one in (paper, compat, default)] == ["bonferroni", "bonferroni", "holm"]
    assert SummevalSettings(mode="paper", criterion="both", correction="holm").testing.correction == "holm"
    assert default.choices("x") == ()


def test_files_that_are_not_summeval_are_refused(tmp_path: Path) -> None:
    scores, texts = tmp_path / "scores.csv", tmp_path / "texts.jsonl"
    texts.write_text('{"instance_id": "a", "references": ["x"], "systems": {"M0": "y"}}\n')
    scores.write_text("instance_id,system\n")
    with pytest.raises(DataError, match=re.escape(f"{scores}:1: has no column bmx_split, expert_coherence_raw")):
        read_summeval(scores, texts)
    raw = ",".join(f"expert_{aspect}_raw" for aspect in ASPECTS)
    scores.write_text(f"instance_id,system,bmx_split,{raw}\na,M1,0,1|2,1,1,1\n")
    with pytest.raises(DataError, match=re.escape(f"{scores}:2: {texts} has no text of M1 for a")):
        read_summeval(scores, texts)
    scores.write_text(f"instance_id,system,bmx_split,{raw}\na,M0,0,1|good,1,1,1\n")
    with pytest.raises(DataError, match=re.escape(f"{scores}:2: cannot read the ratings '1|good'")):
        read_summeval(scores, texts)
    texts.write_text('{"references": []}\n')
    with pytest.raises(DataError, match=re.escape(f"{texts}:1: 'instance_id' is None, expected a text")):
        read_summeval(scores, texts)
    with pytest.raises(DataError, match="cannot be read: No such file"):
        read_summeval(scores, tmp_path / "none.jsonl")
