"""`whyscore compare` and `whyscore metaeval scores` from the command line, offline."""

import csv
import io
import json
from pathlib import Path

import pytest

from support.cli import Run
from whyscore.cli.commands import metaeval

REFERENCES = ["the cat sat on the mat", "a dog ran away", "it rains today", "I like green tea", "he went home early"]
GOOD = ["the cat sat on a mat", "a dog ran off", "it rains today", "I like tea", "he went home"]
BAD = ["cat on mat", "dogs run", "it is wet", "I like coffee", "he goes"]
SCORES = "system,doc,da,good,bad\n" + "".join(
    f"s{i},{j},{i + j % 3},{i + (j * i) % 3},{(7 * i + 3 * j) % 5}\n" for i in range(5) for j in range(8)
)


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> None:
    """Small files in the working folder."""
    for name, texts in (("ref", REFERENCES), ("good", GOOD), ("bad", BAD)):
        (tmp_path / f"{name}.txt").write_text("".join(f"{text}\n" for text in texts), "utf-8")
    (tmp_path / "scores.csv").write_text(SCORES, "utf-8")


COMPARE = ("compare", "-r", "ref.txt", "-t", "good.txt", "bad.txt", "-m", "token_f1")
JUDGE = (
    "metaeval",
    "scores",
    "scores.csv",
    "--segment",
    "doc",
    "--human",
    "da",
    "--metric",
    "good",
    "bad",
    "--draws",
    "50",
)


def test_compare_prints_scores_ranks_and_plain_words(run: Run) -> None:
    done = run(*COMPARE)
    assert done.code == 0
    assert done.out.splitlines()[0].split() == ["system", "token_f1", "↑", "token_f1", "rank"]
    assert "5 segments; in brackets: 95 % bootstrap confidence intervals" in done.out
    assert "token_f1: good and bad do not differ significantly on 5 segments" in done.out
    assert "signature: token_f1|nrefs:1|" in done.err
    assert "note: 5 segments are too few: the smallest possible p is 0.0625" in done.err


@pytest.mark.parametrize("form", ["json", "jsonl", "tsv", "csv", "markdown", "latex"])
def test_compare_writes_every_format(run: Run, form: str) -> None:
    done = run(*COMPARE, "-f", form, "-q")
    assert done.code == 0
    assert done.err == ""
    if form == "json":
        document = json.loads(done.out)
        assert document["kind"] == "comparisons"
        assert [row["rank"] for row in document["systems"]] == [1, 1]
        assert document["records"][0]["exact"] is True
    elif form == "jsonl":
        assert json.loads(done.out.splitlines()[1])["first"] == "good"
    elif form in ("tsv", "csv"):
        row = next(csv.DictReader(io.StringIO(done.out), delimiter="\t" if form == "tsv" else ","))
        assert row["p"] == "0.0625"
    else:
        assert "5 segments are too few" in done.out


def test_compare_refuses_what_it_cannot_do(run: Run) -> None:
    one = run("compare", "-r", "ref.txt", "-t", "good.txt", "-m", "chrf", "-q")
    assert (one.code, one.err) == (
        3,
        "whyscore: error: compare takes at least two systems, ref.txt has 1: give more -t\n",
    )
    none = run("compare", "-r", "ref.txt", "-t", "good.txt", "bad.txt")
    assert (none.code, none.err) == (2, "whyscore: error: no metric: name one with -m, for example -m chrf\n")
    draws = run(*COMPARE, "--draws", "0")
    assert draws.code == 2
    assert "argument --draws: expected a whole number, 1 or more, got '0'" in draws.err
    planned = run(*COMPARE, "--dry-run", "-q")
    assert planned.out == "token_f1: 10 texts, 10 distinct, 0 already stored\n"


def test_compare_tells_strengths_and_power_where_asked(run: Run) -> None:
    done = run(*COMPARE, "--strengths", "--power", "3", "5")
    assert done.code == 0, done.err
    assert "token_f1: strength by segments won (Bradley-Terry): good 0." in done.out
    assert "token_f1: power of good against bad: " in done.out
    told = json.loads(run(*COMPARE, "--strengths", "--power", "3", "5", "-f", "json").out)
    assert [(row["n"], row["first"], row["second"]) for row in told["power"]] == [
        (3, "good", "bad"),
        (5, "good", "bad"),
    ]
    first = told["systems"][0]
    assert first["strength_low"] <= first["strength"] <= first["strength_high"]
    plain = json.loads(run(*COMPARE, "-f", "json").out)
    assert "power" not in plain
    assert "strength_low" not in plain["systems"][0]
    assert run(*COMPARE, "--power", "0").code == 2


def test_metaeval_stops_early_on_request_and_says_so(run: Run) -> None:
    whole = json.loads(run(*JUDGE, "--test", "permute-both", "-f", "json").out)
    done = json.loads(run(*JUDGE, "--test", "permute-both", "--early-stop", "-f", "json").out)
    assert done["test"] == f"{whole['test']}, stopped early where p is clear"
    p = whole["tests"][0]["p"]
    error = (p * (1 - p) / 1000) ** 0.5  # standard error of the 1,000 swaps after which it stopped
    assert done["tests"][0]["p"] == pytest.approx(p, abs=3 * error)
    assert done["tests"][0]["delta"] == whole["tests"][0]["delta"]
    refused = run(*JUDGE, "--test", "bootstrap", "--early-stop")
    assert refused.code == 2
    assert "early_stop is only for the permutation test of coefficients, without compat: leave it out" in refused.err


def test_explain_raises_budgets_until_halves_agree(run: Run) -> None:
    asked = ("explain", "-r", "ref.txt", "-t", "good.txt", "-m", "chrf", "-f", "jsonl", "--side", "hypothesis")
    done = run(*asked, "-e", "lime(samples=4)", "--until-stable", "0.9")
    assert done.code == 0, done.err
    spec = done.err.split(" is stable: two halves agree by ")[0].split("note: ")[-1]
    assert spec.startswith("lime(samples=")
    assert int(spec.removeprefix("lime(samples=").removesuffix(")")) > 4
    assert done.out.splitlines()[1:] == run(*asked, "-e", spec).out.splitlines()[1:]
    assert "erasure is stable: two halves agree by 1.000 after 1 round(s)" in run(*asked, "--until-stable", "1").err
    assert run(*asked, "-e", "random", "--until-stable", "1").code == 2


def test_compare_knows_human_scores_of_the_sample(run: Run) -> None:
    done = run("compare", "--sample", "--human", "mqm", "--draws", "100", "-f", "json", "-q")
    assert json.loads(done.out)["records"][0]["method"] == "sign flips by convolution"


def test_metaeval_prints_agreement_tests_and_sentinels(run: Run) -> None:
    done = run(*JUDGE, "--level", "system", "--coefficient", "kendall", "--test", "permute-both", "--resamples", "99")
    assert done.code == 0
    head = done.out.splitlines()[0].split()
    assert head == ["metric", "kendall_b@system", "↑", "rank", "n", "remarks"]
    assert "(random)" in done.out
    assert "permutation test, permute cell" in done.out
    assert "kendall_b@system with da, 5 systems x 8 segments" in done.out


def test_metaeval_takes_fine_points(run: Run) -> None:
    fine = (
        "--coefficient",
        "acc_eq",
        "--resample",
        "inputs",
        "--held-out-epsilon",
        "--draws",
        "20",
        "-f",
        "json",
        "-q",
    )
    document = json.loads(run(*JUDGE, *fine).out)
    good = next(row for row in document["metrics"] if row["metric"] == "good")
    assert document["resample"] == "inputs"
    assert good["low"] <= good["value"] <= good["high"]
    assert good["at_zero"] <= good["value"]
    assert good["held_out"] is not None
    given = ("--undefined", "zero", "--tie-tolerance", "0", "--compat", "mtme", "--draws", "0", "-f", "json", "-q")
    row = json.loads(run(*JUDGE, *given).out)["metrics"][0]
    assert (row["low"], row["fisher_low"] is None) == (None, False)
    refused = run(*JUDGE, "--epsilon", "0.1", "-q")
    assert (refused.code, refused.err) == (
        2, "whyscore: error: epsilon is only for acc_eq, not for kendall: leave it out\n",
    )  # fmt: skip


@pytest.mark.parametrize("form", ["json", "jsonl", "tsv", "csv", "markdown", "latex"])
def test_metaeval_writes_every_format(run: Run, form: str) -> None:
    done = run(*JUDGE, "--test", "permutation", "--resamples", "20", "-f", form, "-q")
    assert (done.code, done.err) == (0, "")
    if form == "json":
        document = json.loads(done.out)
        constant = next(row for row in document["metrics"] if row["metric"] == "constant")
        assert (constant["value"], constant["reason"]) == (None, "constant")
        assert document["tests"][0]["method"] == "permutation test, permute cell"
    elif form == "jsonl":
        header, first, *_ = map(json.loads, done.out.splitlines())
        assert (header["schema"], header["kind"]) == ("whyscore/1", "metaeval")
        assert first["metric"] in ("good", "bad")
    elif form in ("tsv", "csv"):
        rows = list(csv.DictReader(io.StringIO(done.out), delimiter="\t" if form == "tsv" else ","))
        assert {row["measure"] for row in rows} == {"kendall_b@system"}
    else:
        assert "good" in done.out


def test_metaeval_scores_texts_and_turns_what_is_told(run: Run) -> None:
    sample = run(
        "metaeval", "scores", "--sample", "--human", "mqm", "-m", "token_f1", "--draws", "0", "-f", "json", "-q"
    )
    assert any(row["metric"] == "length" for row in json.loads(sample.out)["metrics"])
    plain, turned = (
        {row["metric"]: row["value"] for row in json.loads(run(*JUDGE, *more, "-f", "json", "-q").out)["metrics"]}
        for more in ((), ("--lower", "good"))
    )
    assert turned["good"] == -plain["good"]
    assert turned["bad"] == plain["bad"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("scores.csv", "--metric", "good"), 2, "no human score: name its column with --human"),
        (("--human", "da", "--metric", "good"), 2, "no input: give a table of scores, or --sample"),
        (("scores.csv", "--human", "da"), 2, "no metric: name columns of the table with --metric"),
        (("scores.csv", "--human", "mqm", "--metric", "good", "--segment", "doc"), 3, "scores.csv: no column 'mqm'"),
        (("scores.csv", "--human", "da", "--metric", "chrf", "--segment", "doc"), 3,
         "scores.csv has no column chrf and no texts to score: name columns, or add texts"),
        (("scores.csv", "--human", "da", "--metric", "good", "--segment", "doc", "--level", "town"), 2,
         "no level named 'town': use system, segment"),
        (("scores.csv", "--human", "da", "--metric", "good", "--segment", "doc", "--coefficient", "kendal"), 2,
         "no coefficient named 'kendal'. Did you mean 'kendall'?"),
        (("scores.csv", "--human", "da", "--metric", "good", "--segment", "doc", "--lower", "x"), 2,
         "--lower x: no such column among da, good"),
        ((".", "--human", "da", "--metric", "good"), 2, "a WMT folder needs the language pair: -l en-de"),
        (("scores.csv", "--human", "da", "--metric", "good", "--segment", "doc", "--draws", "-1"), 2,
         "argument --draws: expected a whole number, 0 or more, got '-1'"),
    ],
)  # fmt: skip
def test_metaeval_refuses_what_it_cannot_do(run: Run, arguments: tuple[str, ...], code: int, message: str) -> None:
    done = run("metaeval", "scores", *arguments)
    assert done.code == code
    assert f"whyscore: error: {message}" in done.err
    assert "Traceback" not in done.err


def test_metaeval_says_what_it_would_score(run: Run) -> None:
    assert run(*JUDGE, "--dry-run").out == "40 rows; metrics to score: none\n"


def test_metaeval_lists_what_exists(run: Run) -> None:
    done = run("metaeval", "-h")
    assert done.code == 0
    assert "scores" in metaeval.commands()
    assert all(name in done.out for name in metaeval.commands())


def test_variables_stand_for_options(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHYSCORE_COEFFICIENT", "pearson")
    assert "pearson@system" in run(*JUDGE).out


MANY = ("compare", "--sample", "-m", "chrf", "ter", "--draws", "500")


def test_many_systems_are_sorted_corrected_and_shown_as_a_matrix(run: Run) -> None:
    document = json.loads(run(*MANY, "-f", "json", "-q").out)
    assert document["correction"] == "holm"
    chrf = [row for row in document["records"] if row["metric"] == "chrf"]
    ordered = sorted(row["p"] for row in chrf)
    assert min(row["adjusted"] for row in chrf) == pytest.approx(min(1.0, len(chrf) * ordered[0]))
    scores = {row["system"]: row["score"] for row in document["systems"] if row["metric"] == "chrf"}
    best_first = sorted(scores, key=lambda system: -scores[system])

    lines = run(*MANY).out.splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith("chrf "))
    assert [line.split()[0] for line in lines[2:7]] == best_first
    assert lines[start].split() == ["chrf", "1", "2", "3", "4", "5"]
    assert [line.split()[1] for line in lines[start + 2 : start + 7]] == best_first
    above, below = lines[start + 2].split()[-1], lines[start + 6].split()[2]
    pair = next(row for row in chrf if {row["first"], row["second"]} == {best_first[0], best_first[-1]})
    assert float(above.strip("*")) == pytest.approx(abs(pair["difference"]), abs=5e-4)
    assert above.endswith("*") == (pair["adjusted"] <= document["alpha"])
    assert float(below) == pytest.approx(pair["adjusted"], abs=5e-4)
    assert not any("significantly better" in line for line in lines)
    assert sum("significantly" in line for line in run(*MANY, "-v").out.splitlines()) >= 20
