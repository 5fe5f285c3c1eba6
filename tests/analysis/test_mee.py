"""The parts of MEE: bars of systems, pairs of words, and what stands behind each word."""

import json
import re

import numpy as np
import pytest

import whyscore as ws
from support.cli import Run
from whyscore.analysis.explain import explain
from whyscore.analysis.mee import word_matches
from whyscore.cli.commands.explain import bar
from whyscore.data.formats.text import from_texts
from whyscore.errors import SpecError
from whyscore.metrics.mee.metric import Mee, Mee4
from whyscore.types import Dataset, Segment

VECTORS = {"big": [1.0, 0.0], "large": [0.9, 0.1], "cat": [0.0, 1.0], "dog": [0.6, 0.8], "pet": [0.4, 0.9]}


@pytest.fixture
def data() -> Dataset:
    texts = {"one": ["a big cat", "the big cats", "x y"], "two": ["a large cat", "the big cats", "large pets"]}
    return from_texts(texts, ["a large cat", "the large cat", "big pets"], languages=("de", "en"))


def test_the_parts_of_a_bar_add_up_to_the_score_of_the_system(data: Dataset) -> None:
    for metric in (Mee4(words=VECTORS), Mee(words=VECTORS), Mee4(words=VECTORS, alpha=1.0, epsilon=0.5)):
        view = ws.mee_view(data, metric)
        values = ws.score(data, metric).values
        for k, one in enumerate(view.bars):
            given = [one.exact, one.root, one.synonym, one.syn or 0.0, one.cxt or 0.0]
            assert sum(given) == pytest.approx(one.score, abs=1e-12)
            assert one.score == pytest.approx(values[3 * k : 3 * k + 3].mean(), abs=1e-12)
            assert (one.system, one.n) == (("one", "two")[k], 3)


def test_what_each_match_gives_is_its_credit(data: Dataset) -> None:
    one, _ = ws.mee_view(data, Mee(words=VECTORS)).bars
    # "a big cat": two exact of three and a synonym; "the big cats": one exact, one root, one synonym; "x y": nothing.
    assert one.exact == pytest.approx((2 / 3 + 1 / 3) / 3)
    assert one.root == pytest.approx(2 / 3 * (1 / 3) / 3)
    assert one.synonym == pytest.approx(1 / 3 * (1 / 3 + 1 / 3) / 3)
    assert (one.syn, one.cxt) == (None, None)
    # Of the words left in "x y" against "big pets", only big has a vector.
    assert one.unknown == pytest.approx((0 + 0 + 3 / 4) / 3)
    assert one.no_vectors == 0


def test_segments_without_any_vector_are_counted() -> None:
    (one,) = ws.mee_view([Segment("p q", references=("r s",))], Mee(words=VECTORS)).bars
    assert (one.unknown, one.no_vectors) == (1.0, 1)


def test_pairs_are_counted_over_all_systems_the_most_frequent_first(data: Dataset) -> None:
    cosine = 0.9 / np.hypot(0.9, 0.1)
    view = ws.mee_view(data, Mee(words=VECTORS))
    first, *rest = view.pairs
    assert first[:4] == ("synonym", "big", "large", 3)
    assert first.similarity == pytest.approx(cosine, abs=1e-9)
    assert rest[0] == ("root", "cats", "cat", 2, None)
    assert rest[1][:4] == ("synonym", "large", "big", 1)
    assert ws.mee_view(data, Mee(words=VECTORS), pairs=1).pairs == (first,)


def test_pairs_are_those_of_the_reference_that_counts() -> None:
    segment = Segment("big cat", references=("dog dog dog", "large cat"))
    best = ws.mee_view([segment], Mee(words=VECTORS)).pairs
    assert [pair[:4] for pair in best] == [("root", "big", "large", 1)]
    both = ws.mee_view([segment], Mee(words=VECTORS, references="mean")).pairs
    assert {pair.reference for pair in both} == {"large", "dog"}


def test_every_word_of_an_explanation_has_its_partners(data: Dataset) -> None:
    metric = Mee(words=VECTORS)
    explanations = explain(data, metric, "intrinsic")
    for one, known in zip(explanations, word_matches(data, metric, explanations), strict=True):
        other = one.segment.references[0] if one.place.reference is None else one.segment.hypothesis
        assert known.parts["lms"] == pytest.approx(one.score, abs=1e-12)
        credit = sum(match.credit for word in known.matches for match in word)
        own, there = len(known.matches), len(other.split())
        hypothesis, reference = (own, there) if one.place.reference is None else (there, own)
        assert credit / (0.9 * reference + 0.1 * hypothesis) == pytest.approx(one.score, abs=1e-12)
        for word in known.matches:
            for match in word:
                assert (match.partner is None) == (match.label == "none") == (match.credit == 0)
                if match.partner is not None:
                    assert other[match.start : match.end] == match.partner_text == other.split()[match.partner]


def test_a_word_of_compat_lists_both_partners() -> None:
    metric = Mee(mode="compat", words={"dog": [1.0, 0.0], "cat": [0.9, 0.1]})
    explanations = explain([Segment("dog", references=("dog cat",))], metric, "intrinsic", sides=["hypothesis"])
    (known,) = word_matches([], metric, explanations)
    assert [(match.label, match.mark, match.partner) for match in known.matches[0]] == [
        ("exact", "=", 0),
        ("root", "~", 1),
    ]


def test_other_metrics_have_no_such_parts() -> None:
    with pytest.raises(SpecError, match=re.escape("expected mee, mee2 or mee4 with their options, got token_f1")):
        ws.mee_view([Segment("a", references=("a",))], "token_f1")


@pytest.mark.parametrize(("value", "filled"), [(-1.0, 0), (0.04, 0), (0.06, 1), (0.5, 5), (1.0, 10), (1.2, 10)])
def test_bars_have_ten_steps(value: float, filled: int) -> None:
    assert bar(value) == "█" * filled + "░" * (10 - filled)


ONE = ("--text", "-t", "the cats sat", "-r", "the cat sat", "-l", "de-en", "--store", "none")


def test_parts_and_pairs_come_from_the_command_line(run: Run) -> None:
    code, out, err = run("score", *ONE, "-m", "mee2(words=None)", "chrf", "--parts", "-f", "jsonl")
    assert code == 0, err
    _, first, second = map(json.loads, out.splitlines())
    assert (first["row"], first["metric"], first["system"], first["no_vectors"]) == (
        "bar", "mee2(words=None)", "system 1", 0,
    )  # fmt: skip
    assert first["exact"] == pytest.approx(2 / 3 / 3)
    assert first["root"] == pytest.approx(1 / 3 * 2 / 3 / 3)
    assert sum(first[part] for part in ("exact", "root", "synonym", "syn", "cxt")) == pytest.approx(first["score"])
    assert second == {
        "metric": "mee2(words=None)", "row": "pair", "kind": "root", "hypothesis": "cats", "reference": "cat",
        "times": 1, "similarity": None,
    }  # fmt: skip
    code, out, err = run("score", *ONE, "-m", "mee(words=None)", "--parts")
    assert code == 0, err
    assert "mee(words=None)  ~ root  cats        cat            1  -\n" in out
    assert run("score", *ONE, "-m", "mee(words=None)", "--parts", "-f", "tsv")[1].count("\n") == 2
    code, _, err = run("score", *ONE, "-m", "chrf", "--parts")
    assert code == 2
    assert "--parts shows the parts of mee, mee2 and mee4; requested: chrf" in err


def test_explained_words_stand_below_the_bars_and_carry_their_matches(run: Run) -> None:
    code, out, err = run("explain", *ONE, "-m", "mee4(words=None)", "-e", "intrinsic", "--side", "hypothesis")
    assert code == 0, err
    assert re.search(r"\nLMS █{9}░ 0\.89  Syn [█░]{10} \d\.\d\d  Cxt [█░]{10} \d\.\d\d\n", out)
    code, out, err = run("explain", *ONE, "-m", "mee4(words=None)", "-e", "intrinsic", "-f", "jsonl")
    assert code == 0, err
    record = json.loads(out.splitlines()[1])
    assert record["parts"]["exact"] == pytest.approx(2 / 3)
    assert [match["label"] for word in record["words"] for match in word["matches"]] == ["exact", "root", "exact"]
    code, out, err = run("explain", *ONE, "-m", "chrf", "-e", "erasure", "-f", "jsonl")
    assert code == 0, err
    assert "parts" not in json.loads(out.splitlines()[1])


def test_records_of_segments_hold_the_numbers_behind_a_score(run: Run) -> None:
    code, out, err = run(
        "score", *ONE, "-m", "bertscore(model='embedded')", "rouge", "bleu", "--segments", "-f", "jsonl"
    )
    assert code == 0, err
    bert, rouge, bleu = (json.loads(line) for line in out.splitlines()[1:])
    for one in (bert, rouge):
        p, r, f = (one["parts"][name] for name in ("precision", "recall", "f"))
        assert 2 * p * r / (p + r) == pytest.approx(f)
        assert f == pytest.approx(one["score"])
    assert "parts" not in bleu
