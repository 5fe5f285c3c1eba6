"""`whyscore boost`, `calibrate` and the BMX experiments as their users meet them."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from support.cli import Run
from whyscore.analysis.calibrate.settings import grid_of
from whyscore.data.dataset import sample
from whyscore.errors import DataError, UserError
from whyscore.experiments.bmx.study import RunFolder, explain_in
from whyscore.experiments.bmx.summeval import ASPECTS
from whyscore.metrics.lexical.token_f1 import TokenF1
from whyscore.report.figures import FORMATS
from whyscore.stats.correlation import correlate
from whyscore.testing.fakes import Counting
from whyscore.types import Dataset


@pytest.fixture(autouse=True)
def files(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files in the working folder."""
    assert run  # it enters the folder
    monkeypatch.setenv("COLUMNS", "200")
    Path("ref.txt").write_text("the cat sat on the mat\nI have a dog\n", "utf-8")
    Path("sys.txt").write_text("the cat sat on a mat\nI have a cat\n", "utf-8")
    rows = [
        {
            "LP": "a-b" if k % 2 else "c-d",
            "hypothesis": " ".join([f"w{i}" for i in range(k % 9)] + ["wrong"] * (9 - k % 9)),
            "reference": " ".join(f"w{i}" for i in range(9)),
            "da": k % 9 + (k * 7 % 5) * 0.7,
        }
        for k in range(60)
    ]
    Path("data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def records(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


FILES = ("-r", "ref.txt", "-t", "sys.txt")


def test_boosted_scores_of_systems_come_as_a_table(run: Run) -> None:
    done = run("boost", *FILES, "-m", "token_f1", "-p", "1", "--weight", "0.5")
    assert done.code == 0
    assert done.out.splitlines()[0].split() == ["system", "original", "aggregate", "boosted", "segments"]
    assert done.out.splitlines()[2].split()[:2] == ["sys", "0.792"]
    assert "signature: boosted(metric=token_f1, p=1.0)|aggregator:power_mean|w:0.5|rule:given" in done.err


@pytest.mark.parametrize("flag", ["--weight", "-w"])
def test_the_example_of_the_interface_gives_records(run: Run, flag: str) -> None:
    options = ("-e", "lime(samples=100)", "-p", "1.5", flag, "0.6", "--segments", "-f", "jsonl")
    done = run("boost", *FILES, "-m", "chrf", *options)
    header, first, second = records(done.out)
    assert header["kind"] == "scores"
    assert (first["id"], second["id"]) == ("0", "1")
    parts = first["parts"]
    assert isinstance(parts, dict)
    assert first["score"] == pytest.approx(0.6 * parts["original"] + 0.4 * parts["aggregate"])


def test_segments_come_as_a_table_too(run: Run) -> None:
    done = run("boost", *FILES, "-m", "token_f1", "--segments", "-f", "tsv", "-q")
    assert done.out.splitlines()[0] == "id\tsystem\toriginal\taggregate\tboosted"
    assert len(done.out.splitlines()) == 3
    assert done.err == ""


def test_whole_numbers_after_w_are_decimals_and_never_silently_a_weight(run: Run) -> None:
    done = run("boost", *FILES, "-m", "token_f1", "-w", "1")
    assert done.out.splitlines()[2].split()[1] == "0.8"
    assert "note: -w 1 sets the number of decimals; for the weight: --weight 1" in done.err
    twice = run("boost", *FILES, "-m", "token_f1", "--weight", "0.5", "-w", ".6")
    assert (twice.code, "got two weights, --weight 0.5 and -w 0.6: leave one out" in twice.err) == (2, True)


def test_a_dry_run_says_how_many_texts_there_would_be(run: Run) -> None:
    done = run("boost", *FILES, "-m", "token_f1", "-e", "erasure", "--dry-run")
    assert done.out == "boosted(metric=token_f1): 22 texts, 22 distinct, 0 already stored\n"
    nested = run("boost", *FILES, "-m", "boosted(metric=token_f1)", "-e", "erasure", "--dry-run")
    assert "242 texts" in nested.out
    assert "the costs of nested explainers multiply" in nested.out


def test_a_reader_is_warned_where_the_mean_counts_words(run: Run) -> None:
    done = run("boost", *FILES, "-m", "token_f1", "-p", "-3")
    assert "warning: in 100% of the segments the power mean is determined by its floor alone" in done.err
    assert "note: w = 1, not boosted" in run("boost", *FILES, "-m", "token_f1", "--weight", "1").err
    blank = ("boost", "--text", "-t", " ", "-m", "length", "--segments", "-f", "tsv")
    nothing, kept = run(*blank), run(*blank, "--on-empty", "score")
    assert "note: 1 segments have no word to explain and get no boosted score" in nothing.err
    assert "note: 1 segments have no word to explain and keep the original score" in kept.err
    assert nothing.out.splitlines()[1].split("\t")[-1] == ""
    assert float(kept.out.splitlines()[1].split("\t")[-1]) == float(kept.out.splitlines()[1].split("\t")[2])
    assert "note: lower is better for ter; its scores are negated here" in run("boost", *FILES, "-m", "ter").err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("boost", *FILES), 2, "no metric: name one with -m"),
        (("boost", *FILES, "-m", "chrf", "bleu"), 2, "one metric at a time, got chrf bleu"),
        (("boost", *FILES, "-m", "chrf", "-p", "301"), 2, "p is 301.0, expected a number from -300 to 300"),
        (("boost", *FILES, "-m", "chrf", "--weight", "2"), 2, "boosted: w is 2.0, expected a weight from 0"),
        (("boost", *FILES, "--calibration", "none.json"), 3, "none.json: cannot be read: No such file"),
        (("calibrate", "data.jsonl", "--human", "da"), 2, "no metric: name one with -m"),
        (("calibrate", "data.jsonl", "-m", "chrf"), 2, "no human score: name its column with --human"),
        (("calibrate", "data.jsonl", "-m", "chrf", "--human", "x"), 3, "no column 'x' for --human"),
        (("calibrate", "data.jsonl", "-m", "chrf", "--human", "da", "--group", "X"), 3, "no column 'X' to group by"),
        (("calibrate", "data.jsonl", "-m", "chrf", "--human", "da", "--grid", "1:2"), 2, "cannot read the grid '1:2'"),
        (("calibrate", "data.jsonl", "-m", "chrf", "--human", "da", "--level", "word"), 2, "no level named 'word'"),
        (("experiment", "bmx-grid", "data.jsonl", "-m", "chrf", "--human", "da"), 2, "no folder for the run"),
        (("experiment", "bmx-grid", "data.jsonl", "-m", "chrf", "-o", "r"), 2, "no human score"),
        (
            ("experiment", "bmx-stability", "data.jsonl", "-m", "chrf", "-o", "r", "--runs", "1"),
            2,
            "runs is 1, expected 2 or more",
        ),
    ],
)
def test_what_cannot_be_done_is_one_line(run: Run, arguments: tuple[str, ...], code: int, message: str) -> None:
    done = run(*arguments)
    assert done.code == code
    assert message in done.err.splitlines()[-1]
    assert "Traceback" not in done.err


def test_calibrating_and_boosting_work_together(run: Run) -> None:
    done = run(
        "calibrate", "data.jsonl", "--human", "da", "--group", "LP", "-m", "token_f1", "-e", "erasure", "--level",
        "global", "--coefficient", "pearson", "--rule", "median", "--grid", "coarse", "--resamples", "99",
        "-o", "c.json",
    )  # fmt: skip
    assert done.code == 0
    assert re.search(r"calibration [0-9a-f]{16} saved to c.json", done.err)
    assert {"oracle", "in-domain", "cross-domain"} <= {line.split()[0] for line in done.out.splitlines() if line}
    assert "length, brevity, random: uninformative controls" in done.out
    boosted = run("boost", *FILES, "--calibration", "c.json", "--segments", "-f", "tsv")
    assert boosted.code == 0
    assert len(boosted.out.splitlines()) == 3
    assert run("boost", *FILES, "--calibration", "c.json", "-m", "chrf").code == 2
    assert run("boost", *FILES, "--calibration", "c.json", "-e", "lime").code == 2
    assert run("boost", "data.jsonl", "--calibration", "c.json").code == 3
    assert run("boost", "data.jsonl", "--calibration", "c.json", "--allow-overlap").code == 0


def test_code_that_a_calibration_names_is_not_run(run: Run) -> None:
    Path("evil.py").write_text("open('ran', 'w')\ndef score(a, b): return [1.0] * len(a)\n", "utf-8")
    asked = ("data.jsonl", "--human", "da", "-m", "token_f1", "-e", "erasure", "--resamples", "99", "-o", "good.json")
    assert run("calibrate", *asked).code == 0
    forged = json.loads(Path("good.json").read_text("utf-8")) | {"metric": "evil.py:score"}
    Path("forged.json").write_text(json.dumps(forged), "utf-8")
    refused = run("boost", *FILES, "--calibration", "forged.json")
    assert (refused.code, Path("ran").exists()) == (3, False)
    assert "forged.json: evil.py:score would run code from evil.py" in refused.err
    assert "--allow-code evil.py" in refused.err
    named = run("boost", *FILES, "--calibration", "forged.json", "--allow-code", "evil.py")
    assert (named.code, Path("ran").exists()) == (2, True)
    assert "this calibration was made with the metric token_f1" in named.err


def test_a_calibration_can_be_printed_in_every_format(run: Run) -> None:
    base = ("calibrate", "data.jsonl", "--human", "da", "-m", "token_f1", "--grid=-2:2:0.5", "--resamples", "0")
    found = json.loads(run(*base, "-f", "json").out)
    assert found["kind"] == "calibration"
    assert found["parameters"] == [-2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0]
    for form, start in (("tsv", "protocol\t"), ("csv", "protocol,"), ("markdown", "# Verdict: "), ("latex", "\\begin")):
        assert run(*base, "-f", form, "-q").out.startswith(start)


def test_a_dry_calibration_counts_texts(run: Run) -> None:
    done = run("calibrate", "data.jsonl", "--human", "da", "-m", "token_f1", "--dry-run")
    assert re.fullmatch(r"token_f1: \d+ texts, \d+ distinct, 0 already stored\n", done.out)


def test_a_grid_can_be_spelled_out() -> None:
    assert grid_of("0:1:0.25") == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert grid_of("coarse") == "coarse"
    with pytest.raises(UserError, match="is empty: STEP must be above 0"):
        grid_of("1:0:0.1")


def test_the_grid_experiment_writes_tables_then_figures(run: Run) -> None:
    done = run(
        "experiment", "bmx-grid", "data.jsonl", "--human", "da", "--group", "LP", "-m", "token_f1", "-e", "erasure",
        "random", "--grid", "coarse", "--resamples", "0", "-o", "run",
    )  # fmt: skip
    assert done.code == 0
    names = {path.name for path in Path("run").iterdir()}
    assert {"grid.jsonl", "outcomes.jsonl", "scores.jsonl", "costs.jsonl", "calibration_0.json", "figures"} <= names
    header, first, *_ = records(Path("run/grid.jsonl").read_text())
    assert (header["experiment"], header["table"]) == ("bmx-grid", "grid")
    assert {"p", "w", "gain", "original", "degenerate"} <= first.keys()
    figures = {path.name for path in Path("run/figures").iterdir()}
    for name in ("grid_curves", "grid_heat", "improving", "settings", "counts", "sorted_scores", "costs"):
        assert {f"{name}.{form}" for form in (*FORMATS, "txt")} <= figures
    page = Path("run/figures/grid_curves.html").read_text()
    assert "<script src=" not in page
    assert Path("run/figures/grid_curves.png").read_bytes().startswith(b"\x89PNG")
    assert Path("run/figures/grid_curves.pdf").read_bytes().startswith(b"%PDF")


def test_the_stability_experiment_says_how_well_runs_agree(run: Run) -> None:
    done = run(
        "experiment", "bmx-stability", "data.jsonl", "--group", "LP", "-m", "token_f1", "--samples", "10", "20",
        "--runs", "2", "--every", "5", "--grid", "coarse", "-o", "run", "--no-figures",
    )  # fmt: skip
    assert done.code == 0
    lines = [line.split() for line in done.out.splitlines()[2:]]
    assert [line[1] for line in lines] == ["0", "0.2", "0.4", "0.6", "0.8", "overall"] * 2
    rows = records(Path("run/stability.jsonl").read_text())[1:]
    assert {row["samples"] for row in rows} == {10, 20}


@pytest.fixture
def summaries(tmp_path: Path) -> tuple[str, str]:
    """A small SummEval: 6 documents in 2 splits, 4 systems."""
    raw = ",".join(f"expert_{aspect}_raw" for aspect in ASPECTS)
    texts, scores = [], [f"instance_id,system,bmx_split,{raw}"]
    for k in range(6):
        words = [f"d{k}w{i}" for i in range(6)]
        systems = {f"M{s}": " ".join(words[: s + 2] + ["x"] * ((k + s) % 3)) for s in range(4)}
        texts.append(json.dumps({"instance_id": f"d{k}", "references": [" ".join(words)] * 2, "systems": systems}))
        for s in range(4):
            ratings = ",".join(f"{1 + (s + a * k) % 5}|{1 + s}|{1 + (s * k) % 4}" for a in range(4))
            scores.append(f"d{k},M{s},{k // 3},{ratings}")
    (tmp_path / "texts.jsonl").write_text("\n".join(texts) + "\n")
    (tmp_path / "scores.csv").write_text("\n".join(scores) + "\n")
    return "scores.csv", "texts.jsonl"


def test_the_splits_experiment_compares_rules_and_controls(run: Run, summaries: tuple[str, str]) -> None:
    base = ("experiment", "bmx-summeval", "--scores", summaries[0], "--texts", summaries[1], "-m", "token_f1")
    assert run(*base, "--dry-run").out.startswith("token_f1 erasure: ")
    done = run(*base, "-e", "erasure", "--grid", "coarse", "--resamples", "20", "-o", "run")
    assert done.code == 0
    sources = [line.split()[0] for line in done.out.splitlines()[2:] if line]
    assert sources[0] == "original"
    assert {"erasure", "length", "brevity", "random"} <= set(sources)
    assert {path.name for path in Path("run/figures").glob("*.svg")} == {"choices.svg", "counts.svg", "costs.svg"}
    rows = records(Path("run/splits.jsonl").read_text())[1:]
    assert {(row["n_fitted"], row["n_judged"]) for row in rows} == {(12, 12)}


def test_the_splits_experiment_in_paper_mode_is_that_of_the_paper(run: Run, summaries: tuple[str, str]) -> None:
    base = ("experiment", "bmx-summeval", "--scores", summaries[0], "--texts", summaries[1], "-m", "token_f1")
    # People rank the systems otherwise than token F1 does, so that there is something to gain.
    head, *lines = Path(summaries[0]).read_text().splitlines()
    names = [line.split(",")[:3] for line in lines]
    ranked = [",".join([*own, *[str((2, 4, 1, 3)[int(own[1][1:])])] * 4]) for own in names]
    Path(summaries[0]).write_text("\n".join([head, *ranked]) + "\n")
    done = run(*base, "--mode", "paper", "--resamples", "20", "--no-figures", "-o", "run")
    assert done.code == 0, done.err
    about, *rows = records(Path("run/splits.jsonl").read_text())
    assert (about["criterion"], about["mode"]) == (["kendall_b"], "paper")
    assert (about["permute"], about["compat"], about["correction"]) == ("row_xor_column", "nlpstats", "bonferroni")
    assert {row["rule"] for row in rows} == {"median"}
    boosted = [row for row in rows if row["w"] < 1]
    assert {row["coefficient"] for row in boosted if row["p_value"] is not None} == {"kendall_b", "spearman"}
    assert all(row["settings"] <= len(ASPECTS) for row in rows)
    assert "p and w are chosen by system-level kendall_b of the four aspects" in done.out
    assert "mode paper: 600 values of p from -30 to 29.9; w 0, 0.2, 0.4, 0.6, 0.8; gains above 0 count" in done.out
    assert "correction bonferroni over the splits of an aspect and coefficient" in done.out
    assert "the paper leaves open: which end of its p grid is missing" in done.out
    aspects = records(Path("run/aspects.jsonl").read_text())[1:]
    assert {(row["aspect"], row["coefficient"]) for row in aspects} == {
        (aspect, coefficient) for aspect in ASPECTS for coefficient in ("kendall_b", "spearman")
    }
    compat = run(*base, "--mode", "compat", "--resamples", "20", "--no-figures", "-o", "compat")
    assert "p and w are chosen by system-level kendall_b and spearman" in compat.out


def test_a_stopped_run_goes_on_where_it_was(tmp_path: Path) -> None:
    data = Dataset("sample", sample().entries[:70])
    folder = RunFolder.make(tmp_path / "run", "test")
    metric = Counting(TokenF1())
    whole = explain_in(folder, data, metric, "lime(samples=5)")
    asked = metric.asked
    file = next((tmp_path / "run").glob("importances_*"))
    lines = file.read_bytes().splitlines(keepends=True)
    # The run was killed while it wrote the 66th entry.
    file.write_bytes(b"".join(lines[:66]) + lines[66][:20])
    resumed = explain_in(folder, data, metric, "lime(samples=5)")
    assert metric.asked - asked < asked / 5
    assert resumed.material.bags.values.tolist() == whole.material.bags.values.tolist()
    assert resumed.material.scores.tolist() == whole.material.scores.tolist()
    # Another run filled the same folder at the same time.
    file.write_bytes(b"".join([*lines[:66], *lines[60:66], *lines[66:]]))
    twice = explain_in(folder, data, metric, "lime(samples=5)")
    assert twice.material.bags.values.tolist() == whole.material.bags.values.tolist()
    with pytest.raises(DataError, match="holds other work"):
        explain_in(folder, Dataset("other", data.entries[:5]), metric, "lime(samples=5)")


def test_help_opens_with_examples(run: Run) -> None:
    for verb in ("boost", "calibrate", "experiment"):
        out = run(verb, "-h").out
        assert "examples:" in out
        assert f"whyscore {verb}" in out
    assert "bmx-summeval" in run("experiment", "-h").out
    assert "--texts" in run("experiment", "bmx-summeval", "-h").out


@pytest.mark.parametrize(
    ("columns", "measure"),
    [
        ({}, "kendall_b@global"),
        ({"id": "q{k}"}, "kendall_b@global"),
        ({"system": "{s}", "id": "q{k}"}, "kendall_b@system"),
        ({"system": "{s}", "doc": "d{k}"}, "kendall_b@system"),
        ({"system": "{s}"}, "kendall_b@system"),
    ],
)
def test_boosted_scores_go_back_into_metaeval(run: Run, columns: dict[str, str], measure: str) -> None:
    words = ["the", "cat", "sat", "on", "a", "mat", "and", "a", "dog", "slept", "under", "the", "old", "table"]
    rows = []
    for s in "ABC":
        for k in range(6):
            names = {
                name: form.format(s=s, k=k if "system" in columns else f"{s}{k}") for name, form in columns.items()
            }
            texts = {"hypothesis": " ".join(words[k : k + 3 + ord(s) % 5]), "reference": " ".join(words[k : k + 8])}
            rows.append({**names, **texts, "da": float(ord(s) % 7 + k / 10)})
    Path("d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    boosted = run(
        *[
            "boost",
            "d.jsonl",
            "-m",
            "token_f1",
            "-e",
            "erasure",
            "-p",
            "1.5",
            "--weight",
            "0.6",
            "--segments",
            "-f",
            "jsonl",
            "-o",
            "b.jsonl",
        ]
    )
    assert boosted.code == 0, boosted.err
    done = run(
        *[
            "metaeval",
            "scores",
            "d.jsonl",
            "--human",
            "da",
            "--scores",
            "b.jsonl",
            "--no-sentinels",
            "--draws",
            "0",
            "-f",
            "json",
        ]
    )
    assert done.code == 0, done.err
    (found,) = json.loads(done.out)["metrics"]
    assert (found["metric"], found["measure"]) == ("boosted(metric=token_f1, p=1.5, w=0.6)", measure)
    assert found["dropped"] == 0
    values = [row["score"] for row in records(Path("b.jsonl").read_text())[1:]]
    expected = correlate(
        np.array(values).reshape(3, 6),
        np.array([row["da"] for row in rows]).reshape(3, 6),
        measure.split("@")[1],
        "kendall",
    )
    assert found["value"] == pytest.approx(expected.value)


def test_scores_of_several_systems_do_not_match_a_table_without_any(run: Run) -> None:
    Path("d.jsonl").write_text('{"hypothesis": "a b", "reference": "a c", "da": 1}\n')
    lines = ['{"schema": "whyscore/1", "schema_version": 1, "kind": "scores"}']
    lines += [json.dumps({"id": "0", "system": system, "metric": "m", "score": 1.0}) for system in ("A", "B")]
    Path("b.jsonl").write_text("\n".join(lines) + "\n")
    done = run("metaeval", "scores", "d.jsonl", "--human", "da", "--scores", "b.jsonl")
    assert done.code == 3
    assert (
        "d.jsonl has no column for the system, and b.jsonl has scores of 2 systems: A, B. Name the column" in done.err
    )
