import json
from pathlib import Path

import pytest

from support.cli import Run
from whyscore.data.records import schema

GOLD = {"x.mt": "a b c\nd e\nf g\n", "x.src": "A B\nD E\nF G\n", "x.tgt-tags": "0 1 0\n1 0\n0 0\n", "x.da": "3\n1\n9\n"}


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    folder = tmp_path / "gold"
    folder.mkdir()
    for name, text in GOLD.items():
        (folder / name).write_text(text, "utf-8")
    return folder


def team(folder: Path, name: str, target: str, **files: str) -> str:
    (folder / name).mkdir()
    (folder / name / "target.submission").write_text(target, "utf-8")
    for file, text in files.items():
        (folder / name / (f"{file}.txt" if file == "metadata" else f"{file}.submission")).write_text(text, "utf-8")
    return str(folder / name)


def test_the_published_row_as_json(shared: Path, run: Run) -> None:
    base = shared / "eval4nlp2021" / "dev" / "et-en"
    handed_in = shared / "leiter2021_dev_predictions" / "xbertscore_mbart_et-en"
    code, out, _ = run("metaeval", "words", "--gold", base, "--submission", handed_in, "-f", "json")
    found = json.loads(out)
    assert code == 0
    assert (found["schema_version"], found["kind"], found["gold"], found["system"]) == (
        1,
        "words",
        "et-en",
        "xbertscore_mbart_et-en",
    )
    target = found["sides"]["target"]
    assert (target["n"], target["n_eval"], target["ties"]) == (1000, 887, 0)
    assert target["dropped"] == {"no_error": 113, "all_error": 0, "mismatch": 0}
    assert target["auc"] == pytest.approx(0.648146, abs=1e-6)
    assert target["ap"] == pytest.approx(0.503904, abs=1e-6)
    assert target["recall_at_k"] == target["recall_at_k_legacy"] == pytest.approx(0.391763, abs=1e-6)
    low, high = target["interval"]["auc"]
    assert low < target["auc"] < high
    assert found["sides"]["source"]["auc"] == pytest.approx(0.664096, abs=1e-6)
    assert found["sentence"] == {
        "n": 1000,
        "pearson": pytest.approx(0.254938, abs=1e-6),
        "spearman": pytest.approx(0.250830, abs=1e-6),
    }
    assert found["warnings"] == []


def test_a_whole_table_with_ranks(gold: Path, tmp_path: Path, run: Run) -> None:
    good, bad = (
        team(tmp_path, "good", "1 3 2\n5 4\n0 0\n", sentence="3\n2\n9\n"),
        team(tmp_path, "bad", "3 1 2\n4 5\n0 0\n"),
    )
    code, out, err = run("metaeval", "words", "--gold", gold, "--submission", good, bad, "--ranking", "--draws", "0")
    assert (code, err.splitlines()[-1].split("|")[0]) == (0, "signature: words")
    assert out == (
        "system  side    n  n_eval  AUC ↑   AP ↑  R@K ↑  pearson  spearman\n"
        "------  ------  -  ------  -----  -----  -----  -------  --------\n"
        "good    target  3       2  1.000  1.000  1.000    0.994     1.000\n"
        "bad     target  3       2  0.000  0.417  0.000        -         -\n"
        "\n"
        "target: 2 of 3 sentences judged; left out: 1 no_error\n"
        "\n"
        "system  rank AUC  rank AP  rank R@K  mean rank\n"
        "------  --------  -------  --------  ---------\n"
        "good       1.000    1.000     1.000      1.000\n"
        "bad        2.000    2.000     2.000      2.000\n"
        "\n"
        "target, 2 sentences in common; best group: AUC good; AP good, bad; R@K good\n"
    )


def test_sentences_as_records(gold: Path, tmp_path: Path, run: Run) -> None:
    import jsonschema

    handed_in = team(tmp_path, "good", "1 3 2\n5 4\n0 0\n")
    _, out, _ = run("metaeval", "words", "--gold", gold, "--submission", handed_in, "--segments", "-f", "jsonl")
    header, *records = map(json.loads, out.splitlines())
    jsonschema.validate(header, schema("header"))
    for record in records:
        jsonschema.validate(record, schema("words"))
    assert records[0] == {
        "id": "0", "system": "good", "side": "target", "n_tokens": 3, "n_errors": 1, "auc": 1.0, "ap": 1.0,
        "recall_at_k": 1.0,
    }  # fmt: skip
    assert records[2]["auc"] is None
    assert records[2]["reason"] == "no_error"


@pytest.mark.parametrize(
    ("target", "options", "code", "message"),
    [
        ("1 2\n5 4\n0 0\n", [], 3, "target.submission:1: 1 of 3 lines do not match"),
        ("1 2\n5 4\n0 0\n", ["--on-mismatch", "skip"], 0, "1 sentences with a wrong number of scores were left out"),
        ("1 2\n5 4\n0 0\n", ["--on-mismatch", "truncate"], 0, "scores were cut to the shorter"),
        ("1 2 3\n5 4\n", [], 3, "target.submission has 2 lines"),
        ("1 nan 3\n5 4\n0 0\n", [], 3, "target.submission:1: 'nan' is no finite number"),
        ("1 2 3\n5 4\n0 0\n", ["--flip", "x"], 2, "no submission named 'x' to flip; there are: team"),
        ("1 2 3\n5 4\n0 0\n", ["--ranking"], 3, "one system cannot be ranked"),
        ("1 2 3\n5 4\n0 0\n", ["--threshold", "1", "--oracle-threshold"], 2, "one threshold is enough"),
        ("1 2 3\n5 4\n0 0\n", ["--faithfulness"], 2, "--faithfulness and --seeds need explainers"),
        ("1 2 3\n5 4\n0 0\n", ["-e", "erasure"], 2, "explainers need a metric: name one with -m"),
        ("1 2 3\n5 4\n0 0\n", ["--tune-on", "x"], 2, "--tune-on takes GOLD and one submission per system: 0 for 1"),
    ],
)
def test_what_goes_wrong_is_one_line(
    gold: Path,
    tmp_path: Path,
    run: Run,
    *,
    target: str,
    options: list[str],
    code: int,
    message: str,
) -> None:
    handed_in = team(tmp_path, "team", target)
    found, _, err = run("metaeval", "words", "--gold", gold, "--submission", handed_in, *options)
    assert found == code
    assert message in err


def test_no_gold_is_answered_with_the_ways_to_give_it(run: Run) -> None:
    code, _, err = run("metaeval", "words", "--submission", "x")
    assert (code, err) == (
        2,
        "whyscore: error: no gold: give --gold GOLD, a data file with spans or tags, or --annotators\n",
    )


def test_decisions_and_tie_intervals(gold: Path, tmp_path: Path, run: Run) -> None:
    handed_in = team(tmp_path, "team", "1 3 3\n5 4\n0 0\n")
    options = ["--oracle-threshold", "--tie-interval", "-f", "json"]
    _, out, _ = run("metaeval", "words", "--gold", gold, "--submission", handed_in, *options)
    found = json.loads(out)
    assert found["decisions"]["target"]["oracle"] is True
    assert found["sides"]["target"]["tie_interval"] == [0.5, 1.0]
    assert found["sides"]["target"]["recall_at_k"] == 0.75


def test_explainers_are_judged_with_faithfulness_and_stability(gold: Path, tmp_path: Path, run: Run) -> None:
    (tmp_path / "ref.txt").write_text("a x c\ny e\nf g\n", "utf-8")
    options = ["-r", tmp_path / "ref.txt", "-m", "token_f1", "-e", "erasure", "--faithfulness", "--seeds", "2"]
    options += ["--store", "none", "--draws", "20"]
    code, out, _ = run("metaeval", "words", "--gold", gold, *options, "-f", "json")
    found = json.loads(out)
    assert code == 0
    assert found["sides"]["target"]["auc"] == 1.0
    assert found["faithfulness"]["measures"]["deletion"]["gain"]["value"] > 0
    assert found["stability"]["spearman"] == 1.0
    assert found["stability"]["sd"] == {"auc": 0.0, "ap": 0.0, "recall_at_k": 0.0}
    _, out, _ = run("metaeval", "words", "--gold", gold, *options)
    assert "gains over random order" in out


def test_data_with_spans_is_gold_too(tmp_path: Path, run: Run) -> None:
    rows = [{"mt": "a bad cat", "ref": "a good cat", "tags": [0, 1, 0]}, {"mt": "two", "ref": "two", "tags": "0"}]
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    _, out, _ = run("metaeval", "words", path, "-m", "token_f1", "--store", "none", "-f", "json")
    assert json.loads(out)["sides"]["target"]["auc"] == 1.0
    rows[0]["tags"] = [0, 1]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    code, _, err = run("metaeval", "words", path, "-m", "token_f1", "--store", "none")
    assert code == 3
    assert f"{path}:1: 2 tags for 3 words" in err


def test_annotators_stand_above_the_systems(gold: Path, tmp_path: Path, run: Run) -> None:
    files = []
    for name, tags in {"a": "0 1 0\n1 0\n0 0\n", "b": "0 1 0\n1 0\n0 1\n", "c": "1 1 0\n1 0\n0 0\n"}.items():
        files.append(tmp_path / f"{name}.tags")
        files[-1].write_text(tags, "utf-8")
    handed_in = team(tmp_path, "team", "1 3 2\n5 4\n0 0\n")
    options = ["--submission", handed_in, "--annotators", *files]
    _, out, _ = run("metaeval", "words", "--gold", gold, *options)
    systems = [line.split("  ")[0] for line in out.splitlines()[2:6]]
    assert systems == ["annotator a", "annotator b", "annotator c", "team"]
    _, out, _ = run("metaeval", "words", "--gold", gold, *options, "-f", "json")
    found = json.loads(out)
    assert found["continuous"]["target"]["n"] == 3
    assert found["annotators"]["annotators"] == ["a", "b", "c"]


def test_a_submission_is_made_checked_and_judged(gold: Path, tmp_path: Path, run: Run) -> None:
    (tmp_path / "ref.txt").write_text("a x c\ny e\nf g\n", "utf-8")
    out = tmp_path / "submission"
    texts = ["-s", gold / "x.src", "-t", gold / "x.mt", "-r", tmp_path / "ref.txt"]
    options = [
        "-m",
        "token_f1",
        "-e",
        "erasure",
        "--team",
        "me",
        "--track",
        "constrained",
        "-o",
        out,
        "--store",
        "none",
    ]
    code, told, _ = run("submit", "eval4nlp", *texts, *options)
    assert code == 0
    assert told.splitlines() == [
        str(out / name) for name in ("target.submission", "sentence.submission", "metadata.txt")
    ]
    assert run("validate", out, "--gold", gold, "--task", "eval4nlp2021")[:2] == (
        0,
        "submission: 3 segments, target; 0 fault(s)\n",
    )
    code, judged, _ = run("metaeval", "words", "--gold", gold, "--submission", out, "-f", "tsv")
    assert (code, judged.splitlines()[1].split("\t")[:5]) == (0, ["submission", "target", "3", "2", "1.0"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-e", "erasure", "--team", "me", "-o", "x"], "a submission needs -m METRIC"),
        (["-m", "chrf", "--team", "me", "-o", "x"], "a submission needs -e EXPLAINER"),
        (["-m", "chrf", "-e", "erasure", "-o", "x"], "a submission needs --team"),
        (
            ["-m", "chrf", "bleu", "-e", "erasure", "--team", "me", "-o", "x"],
            "one metric per submission, got chrf bleu",
        ),
        (["-m", "chrf", "-e", "erasure", "--team", "me", "-o", "x", "--sample"], "one system per submission, got"),
    ],
)
def test_a_submission_needs_all_its_parts(
    options: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run: Run,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = run("submit", "eval4nlp", *options)
    assert code == 2
    assert message in err


def test_every_fault_of_a_submission_is_listed(gold: Path, tmp_path: Path, run: Run) -> None:
    handed_in = team(tmp_path, "team", "1 2\nnan 4\n0 0\n", metadata="me\nopen\nwords\n")
    code, out, err = run("validate", handed_in, "--gold", gold)
    assert code == 3
    assert out.splitlines() == [
        f"error: {handed_in}/target.submission:2: 'nan' is no finite number: expected a number such as 0.25",
        f"error: {handed_in}/target.submission:1: 2 scores for 3 tags in x.tgt-tags",
        f"error: {handed_in}/metadata.txt:2: the track is 'open', expected constrained or unconstrained",
        "team: 3 segments, target; 3 fault(s)",
    ]
    assert err == f"whyscore: error: {handed_in} cannot be submitted: 3 fault(s)\n"


def test_ratings_become_records_and_spans_of_any_dialect(shipped: Path, tmp_path: Path, run: Run) -> None:
    rated = tmp_path / "rated.jsonl"
    ratings = shipped / "mqm" / "ted_zhen_ratings.jsonl"
    code, _, err = run("convert", ratings, "--to", "whyscore", "-o", rated)
    assert code == 0
    assert "note: " in err
    code, _, err = run("convert", rated, "--to", "wmtqe", "-o", tmp_path / "x.tsv")
    assert code == 0
    assert err.splitlines() == [
        "note: wmtqe cannot represent: category (5269)",
        "note: wmtqe cannot represent: span of a source (349)",
    ]
    code, out, _ = run("metaeval", "spans", rated, "--gold", rated, "-f", "json")
    found = json.loads(out)["sides"]
    assert code == 0
    assert {side: own["credit"]["f1"] for side, own in found.items()} == {"hypothesis": 1.0, "source": 1.0}


def test_explanations_become_spans(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "e.jsonl"
    texts = ["--text", "-t", "a dog sat", "-r", "a cat sat"]
    run("explain", *texts, "-m", "token_f1", "--side", "hypothesis", "-o", path, "--store", "none")
    code, out, err = run("convert", path, "--to", "spans", "--threshold", "auto")
    assert code == 0
    assert json.loads(out.splitlines()[1])["spans"][0]["text"] == "dog"
    assert err.startswith("note: error scores above: minor 0")
    code, _, err = run("convert", path, "--to", "spans", "--threshold", "much")
    assert code == 2
    assert "threshold is 'much', expected auto or numbers" in err
    code, _, err = run("convert", path, "--to", "spans")
    assert code == 2
    assert "spans need thresholds" in err


def test_faithfulness_of_explainers(run: Run) -> None:
    options = [
        "--sample",
        "--limit",
        "2",
        "-m",
        "token_f1",
        "-e",
        "erasure",
        "random",
        "--store",
        "none",
        "--draws",
        "20",
    ]
    code, out, err = run("metaeval", "faithfulness", *options, "--seeds", "2", "--orders", "3")
    assert code == 0
    assert out.splitlines()[2].split()[:2] == ["erasure", "10"]
    assert "masker:delete" in err
    _, out, _ = run("metaeval", "faithfulness", *options, "--orders", "3", "-f", "json")
    assert [row["explainer"] for row in json.loads(out)["records"]] == ["erasure", "random"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-m", "chrf"], "no explainer: name some with -e"),
        (["-m", "chrf", "bleu", "-e", "random"], "one metric: name it"),
    ],
)
def test_faithfulness_needs_one_metric_and_explainers(options: list[str], message: str, run: Run) -> None:
    code, _, err = run("metaeval", "faithfulness", "--sample", *options)
    assert code == 2
    assert message in err
