"""Words and findings as tables; names that are wrong are told before files are read."""

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import whyscore as ws
from support.cli import Run
from whyscore.data.reading import DIALECTS, dialect_of, read_foreign
from whyscore.errors import SpecError
from whyscore.text.randomness import generator

EXPLAIN = ("explain", "--text", "-t", "a <v> cat", "-r", "a dog", "-m", "token_f1", "-e", "erasure", "--store", "none")
COLUMNS = ["id", "system", "metric", "explainer", "side", "reference", "word", "start", "end", "importance"]


def said(run: Run, *arguments: str, code: int = 0) -> tuple[str, str]:
    """What a command writes to stdout and stderr."""
    done = run(*arguments)
    assert done.code == code
    return done.out, done.err


def importances() -> list[tuple[str, float]]:
    """What the library says about the same texts."""
    found = ws.explain([ws.Segment("a <v> cat", references=("a dog",))], "token_f1", "erasure")
    return [
        (one.words.text[start:end], value)
        for one in found
        for (start, end), value in zip(one.words.spans, one.importance.tolist(), strict=True)
    ]


@pytest.mark.parametrize(("form", "delimiter"), [("tsv", "\t"), ("csv", ",")])
def test_words_are_rows_for_programs(form: str, delimiter: str, run: Run) -> None:
    out, err = said(run, *EXPLAIN, "-f", form)
    rows = list(csv.DictReader(io.StringIO(out), delimiter=delimiter))
    assert list(rows[0]) == COLUMNS
    assert [(row["word"], float(row["importance"])) for row in rows] == importances()
    assert [(row["side"], row["reference"]) for row in rows] == [("hypothesis", "")] * 3 + [("reference", "0")] * 2
    texts = {"hypothesis": "a <v> cat", "reference": "a dog"}
    assert all(texts[row["side"]][int(row["start"]) : int(row["end"])] == row["word"] for row in rows)
    assert "error" not in err


def test_words_are_rows_for_papers(run: Run) -> None:
    out, _ = said(run, *EXPLAIN, "-f", "markdown", "--side", "hypothesis", "-w", "1")
    head, _, _, second, *_ = out.splitlines()
    assert head == f"| {' | '.join(COLUMNS)} |"
    assert second.startswith("| 0 | system 1 | token\\_f1 | erasure | hypothesis | - | \\<v\\> | 2 | 5 | ")
    assert out.splitlines()[-1].startswith("erasure\\|metric:token\\_f1")
    latex, _ = said(run, *EXPLAIN, "-f", "latex")
    assert latex.startswith("\\begin{tabular}")
    assert "token\\_f1" in latex


def test_the_suffix_of_the_file_decides(tmp_path: Path, run: Run) -> None:
    said(run, *EXPLAIN, "-o", str(tmp_path / "words.csv"))
    assert (tmp_path / "words.csv").read_text("utf-8").startswith(",".join(COLUMNS))


def test_similarities_go_into_records_only(run: Run) -> None:
    _, err = said(run, *EXPLAIN, "--matrix", "-f", "tsv", code=2)
    assert "--matrix goes into records: add -f jsonl, or -o FILE.jsonl" in err


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table with a finding in line 3."""
    path = tmp_path / "data.tsv"
    path.write_text("hyp\tref\na cat\ta cat\na\u00a0dog\ta dog\n", "utf-8")
    return path


def test_findings_are_data_where_a_format_is_asked_for(table: Path, run: Run) -> None:
    out, err = said(run, "validate", str(table), "-f", "json")
    found = json.loads(out)
    assert (found["name"], found["segments"], len(found["systems"])) == ("data.tsv", 2, 1)
    assert {"kind", "code", "file", "line", "message"} == set(found["findings"][0])
    assert (str(table), 3) in [(one["file"], one["line"]) for one in found["findings"]]
    assert {one["kind"] for one in found["findings"]} == {"note"}
    assert err == ""
    rows, _ = said(run, "validate", str(table), "-f", "tsv")
    assert len(list(csv.DictReader(io.StringIO(rows), delimiter="\t"))) == len(found["findings"])


def test_findings_are_written_before_they_are_refused(table: Path, run: Run) -> None:
    place = table.parent / "findings.json"
    out, err = said(run, "validate", str(table), "--strict", "-o", str(place), code=3)
    assert out == ""
    assert f"{table}:3" in err
    assert json.loads(place.read_text("utf-8"))["findings"]


def test_a_quiet_validation_says_only_what_was_read(table: Path, run: Run) -> None:
    out, err = said(run, "validate", str(table))
    assert f"{table}:3" in err
    assert said(run, "validate", str(table), "-q") == (out, "")
    said(run, "validate", str(table), "-q", "-o", str(table.parent / "read.txt"))
    assert (table.parent / "read.txt").read_text("utf-8") == out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("score", "-m", "chfr"), "no metric named 'chfr'. Did you mean 'chrf'?"),
        (("explain", "-m", "chrf", "-e", "lmie"), "no explainer named 'lmie'. Did you mean 'lime'?"),
        (("evaluate", "-m", "chrf", "-e", "lmie"), "no explainer named 'lmie'. Did you mean 'lime'?"),
        (("compare", "-m", "chfr"), "no metric named 'chfr'. Did you mean 'chrf'?"),
        (
            ("boost", "-m", "chrf", "-e", "lmie", "-p", "1", "--weight", "0.5"),
            "no explainer named 'lmie'. Did you mean",
        ),
        (("metaeval", "words", "--gold", "no", "-m", "chrf", "-e", "lmie"), "no explainer named 'lmie'. Did you mean"),
        (("decompose", "-m", "chrf", "-e", "lmie"), "no explainer named 'lmie'. Did you mean 'lime'?"),
    ],
)
def test_wrong_names_are_told_before_files_are_read(
    options: tuple[str, ...], message: str, tmp_path: Path, run: Run
) -> None:
    first = 2 if options[0] == "metaeval" else 1
    _, err = said(run, *options[:first], str(tmp_path / "no.tsv"), *options[first:], code=2)
    assert message in err


@pytest.mark.parametrize("seed", [-1, -(2**70)])
def test_a_negative_seed_is_refused_with_its_value(seed: int) -> None:
    segments = [ws.Segment("a cat", references=("a dog",))]
    told = re.escape(f"seed is {seed}, expected 0 or more")
    with pytest.raises(SpecError, match=f"^{told}$"):
        generator(seed, "a text")
    with pytest.raises(SpecError, match=told):
        ws.explain(segments, "token_f1", "lime(samples=10)", seed=seed)


@pytest.mark.parametrize(
    "asked",
    [
        lambda data: ws.score_systems(data, ["token_f1"], seed=-1),
        lambda data: ws.compare(data, ["token_f1"], seed=-1),
        lambda data: ws.decompose(data, "token_f1", seed=-1),
        lambda data: ws.stability(data, "token_f1", "random", seed=-1),
        lambda data: ws.boost(data, "token_f1", "random", p=1.0, w=0.5, seed=-1),
        lambda data: ws.metaevaluate(data, {"mine": [1.0] * len(data)}, human="mqm", seed=-1),
        lambda data: ws.experiment("hybrid", data, "token_f1", seed=-1),
    ],
)
def test_every_job_refuses_a_negative_seed_in_the_same_words(asked: Callable[[ws.Dataset], object]) -> None:
    with pytest.raises(SpecError, match=r"^seed is -1, expected 0 or more$"):
        asked(ws.sample())


def test_a_file_that_does_not_say_what_it_is_must_be_named(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "ref.txt"
    path.write_text("the cat sat on the mat\n", "utf-8")
    _, err = said(run, "convert", str(path), "--to", "spans", code=2)
    told = f"{path}: its format cannot be recognised from the first line: name it with --from, one of "
    assert err == f"whyscore: error: {told}{', '.join(DIALECTS)}\n"


@pytest.mark.parametrize("first", ["12345", "1,200,000", "3.5"])
def test_a_submission_to_wmt_begins_with_a_number(first: str, tmp_path: Path) -> None:
    path = tmp_path / "submission.txt"
    path.write_text(f"{first}\n1\n1\nen-de\tours\t0\ta cat\t-1\t-1\tno-error\n", "utf-8")
    assert dialect_of(path) == "wmtqe"
    assert len(read_foreign(path)) == 1
