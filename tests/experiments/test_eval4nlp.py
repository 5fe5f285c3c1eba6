"""The organisers' side of Eval4NLP 2021."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from support.cli import Run
from whyscore.analysis.metaeval.settings import MetaevalWordsSettings
from whyscore.data.formats.eval4nlp import Gold, GoldSide, Scored, Submission, read_gold
from whyscore.errors import DataError, UserError
from whyscore.experiments.eval4nlp.annotators import annotators
from whyscore.experiments.eval4nlp.data import post_edit_labels, statistics
from whyscore.experiments.eval4nlp.marked_words import categories, top_shares, word_categories
from whyscore.experiments.eval4nlp.ranking import ranking, read_pairs
from whyscore.metrics.controls import Random
from whyscore.stats.words import Ragged
from whyscore.types import Segment

PLAIN = MetaevalWordsSettings(draws=0)


def write(folder: Path, **files: str) -> Path:
    """Return a gold folder; `__` in a name stands for a dash."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / f"x.{name.replace('__', '-')}").write_text(text, "utf-8")
    return folder


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return write(
        tmp_path / "et-en",
        mt="a big cat\nthe end\n",
        pe="a dog\nthe end\n",
        src="üks kass\nlõpp\n",
        tgt__tags="0 1 1\n0 0\n",
        src__tags="0 1\n0\n",
        da="20\n95\n",
    )


def test_a_word_that_the_post_editor_changed_or_took_out_is_marked(small: Path) -> None:
    found = post_edit_labels(read_gold(small))
    assert found is not None
    assert found.labels["target"].values.tolist() == [0, 1, 1, 0, 0]
    assert set(found.labels) == {"target"}  # no links to carry them over
    assert found.f1["target"] == 1.0


def test_source_words_take_the_label_of_their_links(small: Path) -> None:
    write(small, pe="a dog\nthe real end\n")
    (small / "x.src-mt.alignments").write_text("0-0 1-2\n\n", "utf-8")
    found = post_edit_labels(read_gold(small))
    assert found is not None
    # The last source word has no link, and the post-editor put a word in.
    assert found.labels["source"].values.tolist() == [0, 1, 1]


def test_a_link_outside_the_text_is_refused_with_its_line(small: Path) -> None:
    (small / "x.src-mt.alignments").write_text("0-0\n5-0\n", "utf-8")
    with pytest.raises(DataError, match=re.escape("the link 5-0 points outside texts of 1 and 2 words")) as error:
        post_edit_labels(read_gold(small))
    assert error.value.line == 2


def test_post_edits_of_other_length_are_refused(small: Path) -> None:
    write(small, pe="a dog\n")
    with pytest.raises(DataError, match=r"x\.pe has 1 lines, .*x\.tgt-tags has 2: line counts must match"):
        statistics([read_gold(small)])


def test_statistics_of_a_small_set(small: Path) -> None:
    (record,) = statistics([read_gold(small)]).records()
    assert record["sentences"] == 2
    assert (record["target_words"], record["source_words"]) == (5, 3)
    assert record["target_marked"] == 0.4
    assert (record["target_without_error"], record["target_spans"]) == (1, 1)
    assert record["score_mean"] == 57.5
    assert record["score_errors_pearson"] == pytest.approx(-1.0)
    assert record["score_histogram"] == [0, 0, 1, 0, 0, 0, 0, 0, 0, 1]


def test_scores_on_another_scale_have_no_histogram(small: Path) -> None:
    write(small, da="-1.5\n0.3\n")
    result = statistics([read_gold(small)])
    assert [one.histogram() for one in result.sets] == [None]
    assert [table.title for table in result.tables()] == ["Data", "Labels from post-edits against the gold"]


@pytest.mark.parametrize(("pair", "f1", "words"), [("et-en", 0.9964, 20072), ("ro-en", 0.9980, 17721)])
def test_labels_of_the_shared_task_come_from_its_post_edits(shared: Path, pair: str, f1: float, words: int) -> None:
    result = statistics([read_gold(shared / "eval4nlp2021" / "dev" / pair)])
    found = result.sets[0].post_edits
    assert found is not None
    assert found.f1["target"] == pytest.approx(f1, abs=1e-4)
    assert found.f1["source"] > 0.76
    (record,) = result.records()
    assert record["target_words"] == words


def test_labels_from_post_edits_are_written_as_a_gold_folder(small: Path, tmp_path: Path, run: Run) -> None:
    code, out, err = run("experiment", "eval4nlp-data", small, "-o", tmp_path / "out", "--no-figures", "-f", "json")
    assert code == 0
    assert json.loads(out)["records"][0]["post_edits"]["target"]["f1"] == 1.0
    assert "4 files in" in err
    assert read_gold(tmp_path / "out" / "et-en").target.tags.values.tolist() == [0, 1, 1, 0, 0]


def test_annotators_in_folders_agree_on_both_sides_and_on_scores(tmp_path: Path) -> None:
    tags = {
        "a": ("1 1 0 0 0\n0 1\n", "1 0\n0\n"),
        "b": ("1 0 0 0 0\n0 1\n", "1 0\n0\n"),
        "c": ("1 1 0 0 0\n0 1\n", "0 1\n0\n"),
    }
    scores = {"a": "10\n90\n", "b": "20\n80\n", "c": "50\n40\n"}
    folders = [
        write(tmp_path / name, tgt__tags=tags[name][0], src__tags=tags[name][1], da=scores[name]) for name in "abc"
    ]
    result = annotators(*folders)
    agreement = result.agreement
    assert agreement.pairs["target"]["a", "b"].sentence == pytest.approx((0.545454 + 1) / 2, abs=1e-5)
    assert agreement.pairs["source"]["a", "c"].sentence == pytest.approx(-1.0)
    assert agreement.scores == pytest.approx({("a", "b"): 1.0, ("a", "c"): -1.0, ("b", "c"): -1.0})
    assert agreement.pearson == pytest.approx(-1 / 3)
    assert result.gold.target.tags.values.tolist() == [1, 1, 0, 0, 0, 0, 1]
    assert result.gold.source is not None
    assert result.gold.source.tags.values.tolist() == [1, 0, 0]
    assert result.gold.sentence is not None
    assert result.gold.sentence.tolist() == pytest.approx([80 / 3, 70.0])
    assert {side for one in agreement.ceiling for side in one.sides} == {"target", "source"}


def test_annotations_with_scores_are_written_as_gold(tmp_path: Path, run: Run) -> None:
    def said(name: str, tags: list[int], score: float) -> list[dict[str, object]]:
        return [{"annotator": name, "tags": tags}, {"annotator": name, "score": score}]

    first = [*said("p", [0, 1, 1], 10), *said("q", [0, 0, 1], 30), *said("r", [0, 1, 0], 20)]
    second = [*said("p", [0, 0], 90), *said("q", [0, 1], 80)]
    rows = [
        {"hypothesis": "a big cat", "source": "üks kass", "annotations": first},
        {"hypothesis": "the end", "source": "lõpp", "annotations": second},
    ]
    file = tmp_path / "a.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    code, out, _ = run("experiment", "eval4nlp-annotators", file, "-o", tmp_path / "gold", "-f", "json")
    assert code == 0
    assert json.loads(out)["scores"]["pearson"] == pytest.approx(1.0)  # r scored one sentence only
    gold = read_gold(tmp_path / "gold")
    assert gold.target.tags.values.tolist()[:3] == [0, 1, 1]
    assert gold.sentence is not None
    assert gold.sentence.tolist() == [20, 85]
    assert (tmp_path / "gold" / "gold.mt").read_text("utf-8") == "a big cat\nthe end\n"
    shares = (tmp_path / "gold" / "gold.tgt-shares").read_text("utf-8").splitlines()
    assert [*map(float, shares[0].split())] == pytest.approx([0, 2 / 3, 2 / 3])


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        ({"annotator": "p"}, "expected annotator, side and tags, or score"),
        ({"annotator": "p", "score": "high"}, "the score of an annotation is 'high', expected a number"),
        ({"annotator": "p", "score": True}, "the score of an annotation is True, expected a number"),
    ],
)
def test_annotations_without_meaning_are_refused(
    tmp_path: Path, run: Run, annotation: dict[str, object], message: str
) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps({"hypothesis": "a", "annotations": [annotation]}) + "\n", "utf-8")
    code, _, err = run("experiment", "eval4nlp-annotators", file)
    assert code == 3
    assert message in err


def test_one_annotator_has_nobody_to_agree_with(small: Path) -> None:
    with pytest.raises(UserError, match="1 annotator: agreement needs two or more"):
        annotators(small)


def test_annotators_of_other_sentences_are_refused(tmp_path: Path) -> None:
    one, other = write(tmp_path / "a", tgt__tags="1 0\n"), write(tmp_path / "b", tgt__tags="1 0\n0\n")
    with pytest.raises(DataError, match="annotator b has 2 sentences, a has 1: align them"):
        annotators(one, other)


def submission(name: str, target: list[list[float]], source: list[list[float]] | None = None) -> Submission:
    sides = {"target": Scored(Ragged.of(target), name)}
    return Submission(name, sides | ({"source": Scored(Ragged.of(source), name)} if source else {}))  # type: ignore[arg-type]


def gold_of(name: str) -> Gold:
    tags = Ragged.of([[1, 0, 0], [0, 1, 0]])
    return Gold(name, "eval4nlp2021", GoldSide(tags, "t"), GoldSide(tags, "s"))


def test_a_team_without_a_side_or_a_pair_is_last_there() -> None:
    right: list[list[float]] = [[3, 2, 1], [1, 3, 2]]
    wrong: list[list[float]] = [[1, 2, 3], [3, 1, 2]]
    pairs = [
        (gold_of("et-en"), [submission("both", right, wrong), submission("target", wrong), submission("third", wrong)]),
        (gold_of("ro-en"), [submission("both", wrong, right), submission("target", right)]),
    ]
    result = ranking(pairs, settings=PLAIN)
    rows = {(one["gold"], one["side"], one["system"]): one for one in result.records()}
    assert rows["et-en", "target", "both"]["mean_rank"] == 1
    assert rows["et-en", "target", "third"]["mean_rank"] == 2.5
    assert rows["et-en", "source", "target"]["mean_rank"] == 3
    assert rows["ro-en", "target", "third"]["mean_rank"] == 3
    assert rows["ro-en", "target", "third"]["reason"] == "not submitted"
    assert result.overall("both") == pytest.approx((1 + 1 + 2 + 1) / 4)
    assert result.overall("both", "target") == 1.5
    assert result.systems[0] == "both"


def test_the_ranks_of_wmt22(shared: Path) -> None:
    result = ranking(read_pairs([shared / "wmt22_task2" / pair for pair in ("en-cs", "km-en")], []), settings=PLAIN)
    ranks = {one["system"]: one["mean_rank"] for one in result.records() if one["gold"] == "km-en"}
    assert ranks == {"hw-tsc": 1, "ist-unbabel": 2, "ut-qe": 3, "openkiwi-lime": 4, "random": 5}
    best = {(one["system"], *one["best"]) for one in result.records() if one["gold"] == "en-cs" and one["best"]}  # type: ignore[misc]
    assert best == {("ist-unbabel", "auc", "ap", "recall_at_k"), ("hw-tsc", "auc")}


def test_teams_are_found_by_pair(shared: Path, run: Run) -> None:
    base = shared / "eval4nlp2021"
    golds = [base / "dev" / pair for pair in ("et-en", "ro-en")]
    teams = [base / "baselines" / name for name in ("random-dev", "xmover-shap-dev")]
    code, out, _ = run("experiment", "eval4nlp-ranking", *golds, "--submission", *teams, "-f", "json", "--draws", "0")
    assert code == 0
    overall = {one["system"]: one for one in json.loads(out)["overall"]}
    assert overall["xmover-shap-dev"] == {
        "system": "xmover-shap-dev", "mean_rank": 1.75, "target": 1.5, "source": 2.0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "holds no folder with target.submission: name the teams with --submission"),
        (["--submission", "nobody"], "no submission of nobody: expected nobody/et-en or"),
    ],
)
def test_a_ranking_without_submissions_is_refused(small: Path, run: Run, options: list[str], message: str) -> None:
    code, _, err = run("experiment", "eval4nlp-ranking", small, *options)
    assert code == 3
    assert message in err


def test_one_system_cannot_be_ranked() -> None:
    with pytest.raises(DataError, match="1 system cannot be ranked: give two or more, or --baselines"):
        ranking([(gold_of("et-en"), [submission("a", [[3.0, 2, 1], [1, 3, 2]])])], settings=PLAIN)


def test_words_have_the_first_category_that_fits(tmp_path: Path) -> None:
    folder = write(
        tmp_path / "et-en",
        mt="Tallinn the The 7th Big cat of incomprehensibility .\n",
        src="Tallinn suur kass .\n",
        tgt__tags="0 0 1 0 0 0 0 1 0\n",
    )
    (folder / "x.src-mt.alignments").write_text("0-0 1-4 2-5 2-6 2-7 3-8\n", "utf-8")
    found = word_categories(read_gold(folder), "target").tolist()
    assert found == [
        "copied", "unlinked", "repeated", "number", "capitalised", "frequent", "frequent", "rare", "punctuation",
    ]  # fmt: skip
    rows = {one["category"]: one for one in categories([(read_gold(folder), [])]).records()}
    assert (rows["repeated"]["words"], rows["repeated"]["marked"], rows["repeated"]["of_all_marked"]) == (1, 1.0, 0.5)
    assert rows["copied"]["marked"] == 0.0


def test_ties_at_the_border_share_the_places_left() -> None:
    gold, scores = Ragged.of([[1, 0, 1, 1, 0]]), Ragged.of([[0.9, 0.5, 0.5, 0.5, 0.1]])
    shares = top_shares(gold, scores)
    assert shares.tolist() == pytest.approx([1, 2 / 3, 2 / 3, 2 / 3, 0])
    assert float(shares[gold.values > 0].mean()) == pytest.approx(7 / 9)  # recall at K of the same sentence


def test_categories_need_words() -> None:
    with pytest.raises(DataError, match="et-en has no words: categories are found by them"):
        categories([(gold_of("et-en"), [])])


def test_random_scores_depend_on_the_texts_and_the_seed_alone() -> None:
    segments = [Segment("a b", "x"), Segment("c", "y"), Segment("a b", "x")]
    scores = Random().score(segments)
    assert scores[0] == scores[2] != scores[1]
    assert np.all((scores >= 0) & (scores < 1))
    assert Random(seed=1).score(segments)[0] != scores[0]


def test_a_submission_by_chance_has_both_sides_and_sentence_scores(tmp_path: Path, run: Run) -> None:
    (tmp_path / "mt").write_text("a b\nc\n", "utf-8")
    (tmp_path / "src").write_text("x\ny z\n", "utf-8")
    code, _, err = run(
        "submit", "eval4nlp", "-s", tmp_path / "src", "-t", tmp_path / "mt", "-m", "random", "-e", "random",
        "--team", "chance", "-o", tmp_path / "out",
    )  # fmt: skip
    assert code == 0, err
    names = ["metadata.txt", "sentence.submission", "source.submission", "target.submission"]
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == names
