"""Judges on the command line: scores, gates, records, reports, meta-evaluation; hostile answers do no harm."""

import json
from pathlib import Path
from typing import Any

import pytest

from support.cli import Run
from support.judge_server import Turn, by_length, hypothesis_of, serving

HOSTILE = "<script>alert(1)</script>\x1b[31m</textarea>"


def write(folder: Path, count: int = 8) -> None:
    for name, words in (("src", "Satz Nummer"), ("a", "sentence number"), ("b", "phrase numeral")):
        lines = (f"{words} {k} {'x' * k}\n" for k in range(count))
        (folder / f"{name}.txt").write_text("".join(lines), encoding="utf-8")


def script(request: dict[str, Any], times: int) -> Turn:
    text = hypothesis_of(request)
    if text.startswith("sentence number 3"):
        return Turn(f"I cannot do that {HOSTILE}")
    error = {"quote": text.split()[0], "in": "translation", "category": HOSTILE, "severity": "major", "reason": HOSTILE}
    return Turn(json.dumps({"errors": [error], "score": len(text)})) if times >= 0 else Turn()


def test_a_judge_goes_through_every_command(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JUDGE_KEY", "sk-very-secret")
    write(tmp_path)
    texts = ["-s", "src.txt", "-t", "a.txt", "b.txt", "-l", "de-en"]
    with serving(script) as endpoint:
        judge = f"judge(model='m', url='{endpoint.url}', key='JUDGE_KEY')"
        planned = run("score", *texts, "-m", judge, "--dry-run")
        assert "16 texts, 16 distinct, 0 already stored" in planned.out
        assert "16 calls, about" in planned.out
        assert not endpoint.requests
        scored = run("score", *texts, "-m", judge, "--record", "answers.jsonl", "--segments", "-f", "jsonl")
        assert scored.code == 0
        assert "note: " in scored.err
        assert "1 of 16 answers cannot be used (6.2%): 1 refused" in scored.err
        assert "warning: 1 of 16 answers cannot be used" in scored.err
        rows = [json.loads(line) for line in scored.out.splitlines()[1:]]
        assert [row["reason"] for row in rows if row["score"] is None] == ["refused"]
        failed = run("score", *texts, "-m", judge, "--fail-if-unparsed", "0.05")
        assert failed.code == 5
        assert "1 of 16 answers cannot be used (6.2%, at most 5.0% may)" in failed.err
        assert run("score", *texts, "-m", judge, "--fail-if-unparsed", "0.1").code == 0
        refused = run("score", *texts, "-m", judge.replace("'m'", "'n'"), "--budget-calls", "3")
        assert (refused.code, "16 calls are needed and --budget-calls leaves 3" in refused.err) == (1, True)
        explained = run("explain", *texts[:4], "-m", judge, "-e", "intrinsic", "-l", "de-en")
        assert explained.code == 0
        assert "\x1b[31m" not in explained.out
        assert "1 of 8 segments could not be explained" in explained.err
        compared = run("compare", *texts, "-m", judge)
        assert compared.code == 0
        assert "7 segments" in compared.out
        evaluated = run("evaluate", *texts, "-m", judge, "-o", "run")
        assert evaluated.code == 0, evaluated.err
        assert len(endpoint.requests) == 16
    page = (tmp_path / "run" / "report.html").read_text("utf-8")
    assert "<script>alert(1)" not in page
    replayed = run("score", *texts, "-m", "judge(recorded='answers.jsonl')", "--segments", "-f", "jsonl")
    again = [json.loads(line) for line in replayed.out.splitlines()[1:]]
    assert [row["score"] for row in again] == [row["score"] for row in rows]
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(b"sk-very-secret" in path.read_bytes() for path in written)
    told = "".join(one.out + one.err for one in (planned, scored, failed, refused, explained, compared, evaluated))
    assert "sk-very-secret" not in told


def test_human_scores_are_compared_with_a_judge(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [f"Satz {k}\tsentence number {k} {'x' * k}\tone\t{k}\t{k}" for k in range(12)]
    head = "source\thypothesis\tsystem\tid\tda\n"
    (tmp_path / "data.tsv").write_text(head + "".join(f"{line}\n" for line in lines), encoding="utf-8")
    with serving(by_length) as endpoint:
        judge = f"judge(model='m', url='{endpoint.url}', protocol='score')"
        found = run("metaeval", "scores", "data.tsv", "--human", "da", "-m", judge, "--level", "global", "-f", "json")
    assert found.code == 0, found.err
    assert '"value": 1.0' in found.out or "0.99" in found.out
