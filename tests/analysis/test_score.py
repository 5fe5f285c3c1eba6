"""The score job: one call a metric, corpus scores from rows, intervals from resampled rows."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF, TER

import whyscore as ws
from support.cli import Run
from whyscore.errors import DataError
from whyscore.types import Segment

SYSTEMS = {"good": ["the cat sat on the mat", "I have a dog", "three"], "bad": ["cat the", "I a have cat", "four five"]}
REFERENCES = [["the cat sat on a mat", "a cat was on the mat"], ["I have a dog"], ["three"]]


def test_scores_are_aligned_with_the_segments() -> None:
    segments = [Segment("a b", references=("a b",)), Segment("c", references=("a b",))]
    found = ws.score(segments, "token_f1")
    assert found.values.tolist() == [1.0, 0.0]
    assert len(found) == 2
    with pytest.raises(ValueError, match="read-only"):
        found.values[0] = 3


def test_any_function_is_a_metric() -> None:
    def longest(hypotheses: Sequence[str], references: Sequence[str]) -> list[int]:
        return [max(len(h), len(r)) for h, r in zip(hypotheses, references, strict=True)]

    found = ws.score(ws.from_texts(["ab"], references=["abc"]), longest)
    assert found.values.tolist() == [3.0]
    assert not found.signature.stable


@pytest.mark.parametrize(("name", "kind"), [("bleu", BLEU), ("chrf", CHRF), ("ter", TER)])
def test_corpus_scores_with_a_varying_number_of_references_are_sacrebleus(name: str, kind: type) -> None:
    data = ws.from_texts(SYSTEMS, references=REFERENCES)
    (result,) = ws.score_systems(data, [name], draws=0)
    padded = [[refs[k] if k < len(refs) else None for refs in REFERENCES] for k in range(2)]
    for system, texts in SYSTEMS.items():
        assert result.totals[system].value == pytest.approx(kind().corpus_score(texts, padded).score, abs=1e-9)
    assert dict(result.signature.facts)["nrefs"] == "var"


def test_a_metric_without_corpus_formula_is_averaged() -> None:
    data = ws.from_texts(SYSTEMS, references=REFERENCES)
    (result,) = ws.score_systems(data, ["token_f1"])
    good = result.entries.values[:3]
    assert result.totals["good"].value == pytest.approx(good.mean())
    assert (result.totals["good"].low or 0) <= good.mean() <= (result.totals["good"].high or 0)
    assert result.totals["good"].n == 3


def test_intervals_depend_on_the_seed_alone() -> None:
    data = ws.sample()
    first, again = (ws.score_systems(data, ["chrf"], seed=1)[0].totals for _ in range(2))
    other = ws.score_systems(data, ["chrf"], seed=2)[0].totals
    assert first == again
    assert first != other
    backwards = ws.Dataset(data.name, data.entries[::-1])
    assert ws.score_systems(backwards, ["chrf"], draws=0)[0].totals[data.systems[0]].value == pytest.approx(
        first[data.systems[0]].value, abs=1e-9
    )


def test_signatures_of_corpus_and_segment_scores_differ_where_the_formulas_do() -> None:
    data = ws.from_texts(["a b c"], references=["a b d"])
    (result,) = ws.score_systems(data, ["bleu"])
    assert str(result.signature) == "bleu|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"
    assert str(result.entries.signature) == "bleu|nrefs:1|case:mixed|eff:yes|tok:13a|smooth:exp|version:2.6.0"


def test_one_segment_has_no_interval_and_says_so() -> None:
    (result,) = ws.score_systems(ws.from_texts(["a b"], references=["a c"]), ["chrf"])
    total = result.totals["hypothesis"]
    assert (total.low, total.high, total.reason) == (None, None, "undefined")


def test_human_scores_and_matrices_keep_gaps_as_gaps() -> None:
    entry = ws.Entry
    data = ws.Dataset(
        "d",
        (
            entry("1", "A", Segment("x"), {"mqm": -1.0}),
            entry("2", "A", Segment("y")),
            entry("2", "B", Segment("z"), {"mqm": -3.0}),
        ),
    )
    assert np.array_equal(data.human("mqm"), [-1.0, np.nan, -3.0], equal_nan=True)
    assert np.array_equal(data.matrix(data.human("mqm")), [[-1.0, np.nan], [np.nan, -3.0]], equal_nan=True)
    with pytest.raises(DataError, match="d has no human score 'da'; it has: mqm"):
        data.human("da")


@pytest.mark.parametrize("name", ["bleu", "chrf", "ter"])
def test_real_text_scores_like_sacrebleu(shipped: Path, name: str) -> None:
    folder = shipped / "eval4nlp2021" / "dev" / "et-en"
    read = {own: (folder / f"dev.{own}").read_text("utf-8").split("\n")[:200] for own in ("mt", "src", "pe")}
    reference = read.pop("pe")
    peer = {"bleu": BLEU(), "chrf": CHRF(), "ter": TER()}[name]
    sentence = {"bleu": BLEU(effective_order=True), "chrf": CHRF(), "ter": TER()}[name]
    (result,) = ws.score_systems(ws.from_texts(read, references=reference), [name], draws=0)
    for system, texts in read.items():
        assert result.totals[system].value == pytest.approx(peer.corpus_score(texts, [reference]).score, abs=1e-9)
    texts = next(iter(read.values()))
    expected = [sentence.sentence_score(h, [r]).score for h, r in zip(texts, reference, strict=True)]
    assert result.entries.values[: len(texts)].tolist() == pytest.approx(expected, abs=1e-9)


def write_uneven() -> None:
    """Write a file in which B has half of the segments of A, and A is better on these alone."""
    rows = [("A", k, "a b" if k < 2 else "c d") for k in range(4)] + [("B", k, "a c") for k in range(2)]
    lines = [
        json.dumps({"id": str(k), "system": who, "hypothesis": text, "reference": "a b", "mqm": len(text) - k})
        for who, k, text in rows
    ]
    Path("uneven.jsonl").write_text("\n".join(lines), "utf-8")


def test_systems_without_a_segment_in_common_are_said_not_to_be_comparable(run: Run) -> None:
    rows = [{"id": name, "system": name, "hypothesis": "a b", "reference": "a b"} for name in "AB"]
    Path("apart.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    done = run("score", "apart.jsonl", "-m", "token_f1", "--draws", "0", "--store", "none")
    assert "different segments (A 1, B 1), none of which all have: scores are not comparable\n" in done.err


def test_systems_with_different_segments_are_shown_on_their_own_and_on_the_common_ones(run: Run) -> None:
    write_uneven()
    done = run("score", "uneven.jsonl", "-m", "token_f1", "--draws", "0", "--store", "none")
    assert "the systems have different segments (A 4, B 2): scores are comparable on the 2 that all have" in done.err
    assert "0.50; 1.00 on 2 common" in done.out
    data = ws.read("uneven.jsonl")
    found = ws.score_systems(data, ["token_f1"], draws=0)
    assert [(one["score"], one["n"], one["common_score"], one["common_n"]) for one in found.records()] == [
        (0.5, 4, 1.0, 2),
        (0.5, 2, 0.5, 2),
    ]
    assert (
        "token_f1 of each system on all its own segments: A 0.50 (4), B 0.50 (2)" in ws.compare(data, "token_f1").notes
    )


def test_a_run_of_systems_with_different_segments_compares_them_on_the_common_ones(run: Run) -> None:
    write_uneven()
    done = run(
        "evaluate", "uneven.jsonl", "-m", "token_f1", "--draws", "20", "--store", "none", "-o", "run", "-f", "json"
    )
    assert done.code == 0, done.err
    found = ws.read_run("run")
    assert [(one["score"], one["n"], one["common_score"], one["common_n"]) for one in found.records()] == [
        (0.5, 4, 1.0, 2),
        (0.5, 2, 0.5, 2),
    ]
    report = json.loads(done.out)
    assert [row["system"] for row in report["systems"]] == ["A", "B"]
    assert report["warnings"] == [str(one) for one in found.facts.findings if one.code == "uneven-systems"]
    assert report["verdict"][0] == (
        "token_f1: A scores highest (1.0000), but not significantly above B (0.5000, p = 0.50)."
    )
    page = Path("run/report.html").read_text("utf-8")
    assert page.count("1.0000 on 2 common segments") == page.count("0.5000 on 2 common segments") == 1
    text = run("evaluate", "uneven.jsonl", "-m", "token_f1", "--draws", "20", "--store", "none", "-o", "run").out
    assert "; 1.0000 on 2 common" in text


def test_human_scores_are_compared_on_the_common_segments(run: Run) -> None:
    write_uneven()
    done = run(
        "evaluate", "uneven.jsonl", "--human", "mqm", "-m", "token_f1", "--draws", "20", "-o", "run", "-f", "json"
    )
    rows = {row["system"]: row for row in json.loads(done.out)["systems"]}
    assert [rows[name]["human"] for name in "AB"] == [[1.5], [2.5]]
    assert [rows[name]["human_common"] for name in "AB"] == [[2.5], [2.5]]


def test_a_check_counts_the_segments_of_each_system(run: Run) -> None:
    write_uneven()
    assert "4 segments, 2 systems: A (4), B (2); 2 segments in common" in run("validate", "uneven.jsonl").out
    found = json.loads(run("validate", "uneven.jsonl", "-f", "json").out)
    assert (found["by_system"], found["common"]) == ({"A": 4, "B": 2}, 2)
    assert "uneven-systems" in [one["code"] for one in found["findings"]]
