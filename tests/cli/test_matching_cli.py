"""Token matching from the command line: scores and explanations without references, offline."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.cli import Done, Run
from whyscore.metrics.matching import bertscore as matching_reader

SOURCES = ["Die Katze saß auf der Matte.", "Ich habe einen Hund."]
HYPOTHESES = ["The cat sat on the mat.", "I have a cat."]


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> Iterator[None]:
    """Two translations in the working folder."""
    (tmp_path / "src.txt").write_text("".join(f"{text}\n" for text in SOURCES), "utf-8")
    (tmp_path / "sys.txt").write_text("".join(f"{text}\n" for text in HYPOTHESES), "utf-8")
    yield
    matching_reader.reader_of.cache_clear()


def records(done: Done) -> list[dict[str, object]]:
    return [json.loads(line) for line in done.out.splitlines()[1:]]


def test_translations_are_scored_without_references(run: Run) -> None:
    done = run("score", "-s", "src.txt", "-t", "sys.txt", "-m", "xbertscore", "--segments", "-f", "jsonl")
    assert done.code == 0
    first, second = (float(str(record["score"])) for record in records(done))
    assert 1 > first > second > 0.5
    table = run("score", "-s", "src.txt", "-t", "sys.txt", "-m", "xbertscore")
    assert "signature: xbertscore|mode:compat|units:words1-3.2|" in table.err
    assert "licence:apache-2.0" in table.err


def test_both_sides_are_explained_with_their_counterparts(run: Run) -> None:
    files = ("-s", "src.txt", "-t", "sys.txt", "-m", "xbertscore")
    done = run("explain", *files, "-e", "matching", "--side", "hypothesis", "source", "-f", "jsonl")
    assert done.code == 0
    found = records(done)
    assert [(record["id"], record["side"]) for record in found] == [
        ("0", "hypothesis"),
        ("0", "source"),
        ("1", "hypothesis"),
        ("1", "source"),
    ]
    for record in found:
        other = (SOURCES if record["side"] == "hypothesis" else HYPOTHESES)[int(str(record["id"]))]
        for word in record["words"]:  # type: ignore[attr-defined]
            text, start, end = re.fullmatch(r"\w+: (.+) \[(\d+):(\d+)\] 0\.\d{4}", word["note"]).groups()  # type: ignore[union-attr]
            assert other[int(start) : int(end)] == text
    weakest = min(found[2]["words"], key=lambda word: word["importance"])  # type: ignore[call-overload]
    assert weakest["text"] == "cat."


def test_sums_of_metrics_are_explained_too(run: Run) -> None:
    spec = "ensemble(xbertscore, xbertscore(model='static'))"
    done = run("explain", "-s", "src.txt", "-t", "sys.txt", "-m", spec, "-e", "token_matching", "-f", "jsonl")
    assert done.code == 0
    assert all(" | " in word["note"] for record in records(done) for word in record["words"])  # type: ignore[attr-defined]


def test_bertscore_without_its_model_names_the_way_without(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")

    def unreachable(*_: object) -> Path:
        raise OSError("no network")

    monkeypatch.setattr("whyscore.models.checkpoints._fetch_folder", unreachable)
    done = run("score", "-r", "src.txt", "-t", "sys.txt", "-m", "bertscore")
    assert done.code == 4
    assert done.out == ""
    assert "roberta-large" in done.err
    assert "Offline, bertscore(model='embedded') needs no download" in done.err
    assert "Traceback" not in done.err
    assert run("score", "-r", "src.txt", "-t", "sys.txt", "-m", "bertscore(model='embedded')").code == 0


@pytest.mark.parametrize("pair", ["et-en", "ro-en"])
def test_a_language_the_encoder_does_not_know_is_told_and_scored(run: Run, shipped: Path, pair: str) -> None:
    folder = shipped / "eval4nlp2021" / "dev" / pair
    for name in ("src", "mt"):
        lines = (folder / f"dev.{name}").read_text("utf-8").split("\n")[:20]
        Path(name).write_text("\n".join(lines) + "\n", "utf-8")
    done = run(
        "explain", "-s", "src", "-t", "mt", "-m", f"xbertscore(languages='{pair}')", "-e", "matching", "-f", "jsonl"
    )
    assert done.code == 0
    assert len(records(done)) == 40
    assert done.err.count(f"does not support {pair[:2]!r}") == 1
    assert "do not base a decision on its scores" in done.err
