"""A judge end to end: commands, client, record and replay, with a model and a server that nobody here wrote.

It is not about quality: the model has 135 million parameters and reads no German. What counts is that every answer
becomes a score or a missing value with a reason, that the endpoint's JSON schema is used, and that the record replays.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.cli import Run
from support.small_model import small_model

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("small model")]
_SOURCES = ("Ich habe einen Hund.", "Er liest jeden Abend ein Buch.")
_SYSTEMS = {
    "a": ("I have a dog.", "He reads a book every evening."),
    "b": ("I have a cat.", "He reads."),
}
_TEXTS = ["-s", "src.txt", "-t", "a.txt", "b.txt", "-l", "de-en"]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with small_model() as address:
        yield address


@pytest.fixture(autouse=True)
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, lines in {"src": _SOURCES, **_SYSTEMS}.items():
        (tmp_path / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def rows_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()[1:]]


def test_scores_of_a_real_model_are_recorded_and_replayed(run: Run, url: str) -> None:
    judge = f"judge(model='smollm2', url='{url}', protocol='score', max_tokens=64, connections=2)"
    live = run("score", *_TEXTS, "-m", judge, "--record", "answers.jsonl", "--segments", "-f", "jsonl")
    assert live.code == 0, live.err
    rows = rows_of(live.out)
    assert all(isinstance(row["score"], float) and 0 <= row["score"] <= 100 for row in rows)  # by the JSON schema
    spent = re.search(r"judge: 4 calls, ([\d,]+) tokens", live.err)
    assert spent is not None
    assert int(spent[1].replace(",", "")) > 4 * 100  # as the endpoint counts them
    recorded = rows_of(Path("answers.jsonl").read_text("utf-8"))
    assert {row["finish"] for row in recorded} == {"stop"}
    replayed = run("score", *_TEXTS, "-m", "judge(recorded='answers.jsonl')", "--segments", "-f", "jsonl")
    assert [row["score"] for row in rows_of(replayed.out)] == [row["score"] for row in rows]


def test_error_spans_of_a_real_model_are_located_or_counted(run: Run, url: str) -> None:
    judge = f"judge(model='smollm2', url='{url}', protocol='mqm', max_tokens=160, connections=2)"
    given = ["-s", "src.txt", "-t", "b.txt", "-l", "de-en", "-m", judge]
    scored = run("score", *given, "--segments", "-f", "jsonl")
    assert scored.code == 0, scored.err
    rows = rows_of(scored.out)
    assert all((row["score"] is None) == ("reason" in row) for row in rows)
    assert {row["reason"] for row in rows if row["score"] is None} <= {"truncated", "unparsed"}
    usable = [row["parts"] for row in rows if row["score"] is not None]
    assert usable
    # So small a model quotes the example of the prompt, which is nowhere in the text.
    lost = sum(parts["lost"] for parts in usable)
    assert (f"{lost:.0f} of " in scored.err and "are not in the text" in scored.err) == (lost > 0)
    explained = run("explain", *given, "-e", "intrinsic", "-f", "jsonl")
    assert explained.code == 0, explained.err
    sides = [row for row in rows_of(explained.out) if row["side"] == "hypothesis"]
    assert len(sides) == len(usable)
    marked = sum(any(word["importance"] < 0 for word in row["words"]) for row in sides)
    assert marked <= sum(parts["errors"] for parts in usable) - lost


def test_free_text_of_a_real_model_is_a_score_or_a_reason(run: Run, url: str) -> None:
    judge = f"judge(model='smollm2', url='{url}', protocol='score', structured=False, max_tokens=48, connections=2)"
    found = run("score", "-s", "src.txt", "-t", "a.txt", "-l", "de-en", "-m", judge, "--record", "free.jsonl")
    answers = rows_of(Path("free.jsonl").read_text("utf-8"))
    assert len(answers) == len(_SOURCES)
    assert all(row["answer"] and row["finish"] in ("stop", "length") for row in answers)
    assert found.code == 0 or "gave no score" in found.err
