"""A run folder of somebody else: nothing in it is run or sent to the terminal, and what does not fit is one line."""

import gzip
import json
import os
import shutil
from pathlib import Path

import pytest

from whyscore.cli.main import main
from whyscore.data.writing import write_lines
from whyscore.runs.folder import Run

CODE = "evil.py:score"
TEXT = "<script>evil</script>\x1b]0;owned\x07"
FORGED: list[tuple[str, int, tuple[str | int, ...], object, int]] = [
    ("run.json", 0, ("metrics", 0, "name"), CODE, 3),
    ("run.json", 0, ("metrics", 0, "explainer"), CODE, 0),
    ("run.json", 0, ("metrics", 0, "signature"), "|||", 0),
    ("run.json", 0, ("metrics", 0, "signature"), 3, 3),
    ("run.json", 0, ("plan", "tagger"), CODE, 0),
    ("run.json", 0, ("plan",), [1], 3),
    ("run.json", 0, ("command",), ["whyscore", TEXT], 0),
    ("run.json", 0, ("findings",), [{"kind": "note", "code": "uneven-systems", "message": TEXT}], 0),
    ("run.json", 0, ("seconds",), {"scores": TEXT}, 3),
    ("run.json", 0, ("gates",), [{"metric": "chrf"}], 3),
    ("totals.jsonl", 1, ("score",), "x", 3),
    ("totals.jsonl", 1, ("score",), 1e308, 0),
    ("totals.jsonl", 1, ("common_n",), 2, 3),
    ("totals.jsonl", 0, ("schema_version",), 99, 3),
    ("scores.jsonl", 1, ("metric",), CODE, 0),
    ("scores.jsonl", 1, ("id",), "none", 3),
    ("comparisons.jsonl", 1, ("metric",), CODE, 0),
    ("comparisons.jsonl", 1, ("p",), "x", 3),
    ("decomposition.jsonl", 1, ("feature",), TEXT, 0),
    ("decomposition.jsonl", 1, ("discrepancy",), 3, 3),
    ("segments.jsonl", 1, ("hypothesis",), TEXT, 0),
    ("segments.jsonl", 1, ("references",), 3, 3),
    ("explanations.jsonl.gz", 1, ("metric",), CODE, 0),
    ("explanations.jsonl.gz", 1, ("explainer",), CODE, 0),
    ("explanations.jsonl.gz", 1, ("words", 0, "text"), TEXT, 0),
    ("explanations.jsonl.gz", 1, ("words", 0, "end"), 999_999_999, 3),
]


def forge(file: Path, line: int, path: tuple[str | int, ...], value: object) -> None:
    """Put a value into one record of a file."""
    packed = file.suffix == ".gz"
    text = (gzip.decompress(file.read_bytes()) if packed else file.read_bytes()).decode()
    lines = [text] if file.suffix == ".json" else text.splitlines()
    record = place = json.loads(lines[line])
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    lines[line] = json.dumps(record)
    content = "".join(f"{one}\n" for one in lines).encode()
    file.write_bytes(gzip.compress(content) if packed else content)


@pytest.mark.parametrize(
    ("name", "line", "path", "value", "code"), FORGED, ids=[f"{one[0]}-{one[2][-1]}-{one[3]!r:.9}" for one in FORGED]
)
def test_a_forged_run_is_shown_or_refused_and_never_run(
    name: str, line: int, path: tuple[str | int, ...], value: object, code: int,
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("evil.py").write_text("open('ran', 'w')\ndef score(a, b=None): return [1.0] * len(a)\n", "utf-8")
    shutil.copytree(run.folder, "forged")
    forge(Path("forged") / name, line, path, value)
    for output in (["-o", "page.html"], ["-f", "text"], ["-f", "json"]):
        assert main(["report", "forged", *output]) == code
    said = capsys.readouterr()
    assert not Path("ran").exists()
    assert "\x1b" not in said.out + said.err
    if code:
        lines = said.err.splitlines()
        assert len(lines) == len([one for one in lines if one.startswith("whyscore: error: forged")]) == 3
    else:
        assert "<script>evil" not in Path("page.html").read_text("utf-8")


@pytest.mark.parametrize(
    "name", ["report.html", "run.json", "explanations.jsonl.gz.part", "explanations.jsonl.gz.blocks"]
)
def test_a_link_in_a_run_folder_is_replaced_and_never_followed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["evaluate", "--sample", "-m", "length_ratio", "--budget", "2", "-e", "erasure", "-o", "run"]
    command += ["--tagger", "none", "--store", "none"]
    assert main(command) == 0
    run, precious, link = Path("run"), Path("precious"), Path("run", name)
    state = json.loads((run / "run.json").read_text("utf-8"))
    if name.startswith("explanations"):  # as if it had been stopped
        (run / "explanations.jsonl.gz").rename(run / "explanations.jsonl.gz.part")
        (run / "explanations.jsonl.gz.blocks").touch()
        state["status"] = "running"
    (run / "run.json").write_text(json.dumps(state), "utf-8")
    precious.write_text(link.read_text("utf-8") if name == "run.json" else "mine", "utf-8")
    content = precious.read_bytes()
    link.unlink()
    link.symlink_to(precious.resolve())
    assert main([*command, "--fail-under", "length_ratio=0.1"]) == 0
    assert precious.read_bytes() == content
    assert not any(file.is_symlink() for file in run.iterdir())


def test_a_pipe_that_looks_like_a_leftover_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".report.html.0123abcd.tmp")
    write_lines(tmp_path / "report.html", ["page"])
    assert (tmp_path / "report.html").read_text("utf-8") == "page"


@pytest.mark.parametrize("by", ["score", "spans"])
def test_triage_runs_no_code_that_a_run_names_unless_it_is_allowed(
    by: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("evil.py").write_text("open('ran', 'w')\ndef score(a, b=None): return [1.0] * len(a)\n", "utf-8")
    shutil.copytree(run.folder, "forged")
    name = run.metrics[0].name
    forge(Path("forged/run.json"), 0, ("metrics", 0, "signature"), f'callable("{CODE}")')
    rated = [{"id": str(k), "doc": str(k), "hypothesis": f"a {k}", "reference": "a", "esa": 5 * k} for k in range(20)]
    Path("rated.jsonl").write_text("\n".join(map(json.dumps, rated)), "utf-8")
    command = ["triage", "forged", "-m", name, "--tune-on", "rated.jsonl", "--precision", "0.5", "--by", by]
    assert main(command) == 3
    assert "would run code from evil.py" in capsys.readouterr().err
    assert not Path("ran").exists()
    assert main([*command, "--allow-code", "evil.py"]) == (0 if by == "score" else 2)  # it marks no error spans
    assert Path("ran").exists() == (by == "score")
