"""`whyscore decompose` and the experiments about shares, as commands."""

import json
from pathlib import Path

import jsonschema
import pytest

from support.cli import Run
from whyscore.data.records import schema

REFERENCE = "the old man saw 3 cats in the garden today\nnobody had 12 dogs in the old house\nwe were all here\n"
GOOD = "the old man saw 3 cats in a garden today\nnobody had 12 dogs in an old house\nwe were all there\n"
BAD = "the old man saw 4 cats in the garden today\nnobody had 13 dogs in the old house\nwe were all here\n"


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    for name, text in {"ref.txt": REFERENCE, "good.txt": GOOD, "bad.txt": BAD}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return [
        "-r",
        str(tmp_path / "ref.txt"),
        "-t",
        str(tmp_path / "good.txt"),
        str(tmp_path / "bad.txt"),
        "--store",
        "none",
    ]


def test_people_get_a_table_of_shares_and_one_of_tests(files: list[str], run: Run) -> None:
    done = run("decompose", *files, "-m", "bleu", "--features", "number", "url", "--draws", "50")
    assert done.code == 0
    _, out, err = done
    lines = [line.split() for line in out.splitlines() if line]
    assert lines[0][:6] == ["system", "feature", "n", "share", "↓", "interval"]
    assert lines[2][:4] == ["good", "number", "2", "0.000"]
    assert "no segment has url on both sides (reference 0, hypothesis 0)" in out
    assert lines[4][:4] == ["bad", "number", "2", "1.000"]
    assert "good - bad" in out
    assert "signature: rules|language:en|rules:1" in err


def test_tables_may_have_no_decimals(files: list[str], run: Run) -> None:
    done = run("decompose", *files, "-m", "bleu", "--features", "number", "--draws", "0", "-w", "0")
    assert done.out.splitlines()[2].split()[:4] == ["good", "number", "2", "0"]


def test_programs_get_records_with_the_promised_keys(files: list[str], run: Run) -> None:
    done = run("decompose", *files, "-m", "bleu", "--features", "number", "-f", "jsonl", "--draws", "20")
    assert done.code == 0
    header, *rows = map(json.loads, done.out.splitlines())
    jsonschema.validate(header, schema("header"))
    assert header["kind"] == "decomposition"
    assert header["signatures"]["tagger"] == "rules|language:en|rules:1"
    good, bad, test = rows
    assert (good["system"], good["share"], bad["share"], good["reason"]) == ("good", 0.0, 1.0, None)
    assert bad["discrepancy"]["all"]["equal"] == 3
    assert (test["row"], test["first"], test["second"], test["difference"]) == ("test", "good", "bad", -1.0)


def test_an_undefined_share_is_null_with_its_reason(files: list[str], run: Run) -> None:
    done = run("decompose", *files, "-m", "bleu", "--features", "url", "-f", "json", "--draws", "0")
    assert done.code == 0
    record = json.loads(done.out)["records"][0]
    assert record["share"] is None
    assert record["reason"] == "no segment has url on both sides (reference 0, hypothesis 0)"


@pytest.mark.parametrize("form", ["tsv", "csv", "markdown", "latex"])
def test_every_table_format_comes_out(form: str, files: list[str], run: Run) -> None:
    done = run("decompose", *files, "-m", "bleu", "chrf", "--features", "number", "-f", form, "--draws", "20")
    assert done.code == 0
    out = done.out
    assert "number" in out
    if form in ("tsv", "csv"):
        separator = "\t" if form == "tsv" else ","
        header, *rows = out.splitlines()
        assert header.split(separator)[:4] == ["system", "metric", "feature", "n"]
        assert len(rows) == 4


def test_the_numbers_of_every_segment(files: list[str], run: Run) -> None:
    command = ["decompose", *files, "-m", "bleu", "--features", "number", "--segments", "--draws", "0"]
    done = run(*command, "-f", "jsonl")
    assert done.code == 0
    _, first, *_ = map(json.loads, done.out.splitlines())
    assert (first["id"], first["feature"], first["hypothesis_spans"]) == ("0", "number", [[16, 17]])
    done = run(*command, "-f", "tsv")
    assert done.code == 0
    assert done.out.splitlines()[0].split("\t")[3:] == ["id", "sigma", "oracle", "anti"]


def test_examples_show_what_was_hidden_and_scored(files: list[str], run: Run) -> None:
    command = ["decompose", *files, "-m", "bleu", "--features", "number", "--draws", "0", "--examples", "1"]
    done = run(*command)
    assert done.code == 0
    out = done.out
    assert out.split("\n\n")[-1].splitlines() == [
        "bad 1 · number · bleu 0.595, best case 1.000, worst case 0.595",  # (7/8 x 5/7 x 3/6 x 2/5)^(1/4)
        "  hypothesis nobody had [13] dogs in the old house",
        "  scored     nobody had □ dogs in the old house",
        "  reference  nobody had [12] dogs in the old house",
        "  scored     nobody had ■ dogs in the old house",
    ]
    done = run(*command, "-f", "json")
    assert done.code == 0
    bad = json.loads(done.out)["records"][1]
    assert bad["examples"][0]["hypothesis_spans"] == [[11, 13]]


def test_a_dry_run_counts(files: list[str], run: Run) -> None:
    done = run("decompose", *files, "-m", "bleu", "--features", "number", "--dry-run")
    assert done.code == 0
    expected = "bleu: 12 texts, 8 distinct, 8 tagged now; 14 segments asked, 14 distinct, 0 already stored\n"
    assert done.out == expected


def test_a_language_alone_is_that_of_the_texts(files: list[str], run: Run) -> None:
    done = run("decompose", *files, "-m", "bleu", "-l", "ru", "--features", "negation")
    assert done.code == 2
    assert "rules has no list of negation for 'ru', only for de, en, es, fr" in done.err


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ([], 2, "no metric: name one with -m, for example -m bleu"),
        (["-m", "bleu", "--tagger", "spcay"], 2, "no tagger named 'spcay'. Did you mean 'spacy'?"),
        (["-m", "bleu", "--tagger", "spacy(model='xx_none')"], 4, "python -m spacy download xx_none"),
        (["-m", "bleu", "--scorers", "sad"], 2, "no scorer named 'sad'"),
        (["-m", "bleu", "--draws", "-1"], 2, "expected a whole number, 0 or more, got '-1'"),
        (["-m", "rouge", "--level", "corpus"], 2, "rouge has no corpus score of its own"),
        (
            ["-m", "bleu", "--tagger", "pretagged(reference='no.tag', hypothesis=('a', 'b'))"],
            3,
            "no.tag: cannot be read",
        ),
    ],
)
def test_what_goes_wrong_is_one_line_and_a_code(
    options: list[str], code: int, message: str, files: list[str], run: Run
) -> None:
    done = run("decompose", *files, *options)
    assert done.code == code
    err = done.err
    assert message in err
    assert "Traceback" not in err


def test_tags_of_another_length_are_told_with_file_and_line(files: list[str], tmp_path: Path, run: Run) -> None:
    (tmp_path / "r.tag").write_text("A\n")
    tagger = f"pretagged(reference='{tmp_path / 'r.tag'}', hypothesis=('x', 'y'))"
    done = run("decompose", *files, "-m", "bleu", "--tagger", tagger)
    assert done.code == 3
    assert f"{tmp_path / 'r.tag'}:2: has 1 lines, its texts have 3" in done.err


def test_charts_are_drawn_where_asked(files: list[str], tmp_path: Path, run: Run) -> None:
    pytest.importorskip("vl_convert")
    folder = tmp_path / "charts"
    done = run("decompose", *files, "-m", "bleu", "--features", "number", "--figures", str(folder))
    assert done.code == 0
    assert {"shares.svg", "shares.html", "discrepancy.svg"} <= {path.name for path in folder.iterdir()}
    assert f"figure: {folder / 'shares.svg'}" in done.err


@pytest.mark.parametrize("name", ["muler-hybrid", "muler-specificity", "muler-frequency", "muler-tagnoise"])
def test_every_experiment_runs_under_both_names(name: str, files: list[str], run: Run) -> None:
    options = [*files, "-m", "bleu", "--features", "number", "-f", "jsonl"]
    long = run("experiment", name, *options).out.splitlines()[1:]
    assert run("experiment", name.removeprefix("muler-"), *options).out.splitlines()[1:] == long
    assert {json.loads(line)["system"] for line in long} == {"good", "bad"}


def test_an_experiment_is_a_table_for_people(files: list[str], run: Run) -> None:
    out = run("experiment", "hybrid", *files, "-m", "bleu", "--features", "number", "--alpha", "0.5").out.splitlines()
    assert out[0].split() == [
        "system", "feature", "n", "sigma", "MuLER", "O", "AO", "50-50",
    ]  # fmt: skip


def test_pairs_are_found_judged_and_tallied(files: list[str], tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "judge"
    asked = ("experiment", "muler-pairs", *files, "-m", "bleu", "--features", "number", "--close", "1", "--far", "0")
    assert "name one with -o" in run(*asked).err
    done = run(*asked, "-o", str(folder))
    assert done.code == 0
    assert "A: smaller share" in done.out
    empty = run("experiment", "muler-pairs", "--sheet", str(folder / "sheet.tsv"))
    assert "2 of 2 items have no judgement" in empty.err
    (folder / "filled.tsv").write_text("item\tjudgement\n1\t0\n2\t=\n", "utf-8")
    tallied = run("experiment", "muler-pairs", "--sheet", str(folder / "filled.tsv"), "-f", "jsonl").out
    assert json.loads(tallied.splitlines()[-1])["equal"] == 2


def test_figures_of_what_decompose_wrote(files: list[str], tmp_path: Path, run: Run) -> None:
    shares = tmp_path / "shares.jsonl"
    run("decompose", *files, "-m", "bleu", "--features", "number", "-f", "jsonl", "-o", str(shares))
    done = run("experiment", "muler-figures", str(shares), "-o", str(tmp_path / "figures"))
    assert "no correlation over systems: it takes three in a group, and the largest has 2" in done.err
