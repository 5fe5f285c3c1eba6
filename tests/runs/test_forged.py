"""A run folder of somebody else: nothing in it is run or sent to the terminal, and what does not fit is one line."""

import gzip
import json
import shutil
from pathlib import Path

import pytest

from whyscore.cli.main import main
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
