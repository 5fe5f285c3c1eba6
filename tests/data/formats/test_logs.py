"""Logs of lm-evaluation-harness and inspect_ai are read as data."""

import json
import zipfile
from pathlib import Path

import pytest

from whyscore.cli.main import main
from whyscore.data.reading import read
from whyscore.errors import DataError


def sample(number: int, **changes: object) -> dict[str, object]:
    return {
        "doc_id": number,
        "doc": {"src": f"Satz {number}", "ref": "x"},
        "target": f"sentence {number}",
        "arguments": {"gen_args_0": {"arg_0": "Translate: ...", "arg_1": {"until": ["\n"]}}},
        "resps": [[f" sentence {number} raw"]],
        "filtered_resps": [f"sentence {number}"],
        "filter": "none",
        "metrics": ["bleu", "chrf"],
        "doc_hash": "0",
        "bleu": 12.5,
        "chrf": [1, 2],
    } | changes


def write(path: Path, *samples: dict[str, object]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(one) + "\n" for one in samples), "utf-8")
    return path


def test_samples_of_lm_eval(tmp_path: Path) -> None:
    path = tmp_path / "org__model" / "samples_wmt16_2026-01-01.jsonl"
    data = read(write(path, sample(0), sample(1, target=["a", "b"])), languages=("de", "en"))
    assert data.systems == ("org__model",)
    first, second = data.entries
    assert (first.id, first.segment.hypothesis, first.segment.source) == ("0", "sentence 0", "Satz 0")
    assert (first.segment.references, second.segment.references) == (("sentence 0",), ("a", "b"))
    assert first.extra == {"bleu": 12.5}
    assert data.languages == ("de", "en")
    filtered = read(write(path, sample(0), sample(0, filter="strict", filtered_resps=["x"])))
    assert filtered.systems == ("org__model (none)", "org__model (strict)")
    with pytest.raises(DataError, match="only tasks that generate text"):
        read(write(path, sample(0, filtered_resps=[[-1.5, False]])))
    with pytest.raises(DataError, match="the target is 3"):
        read(write(path, sample(0, target=3)))


def inspected(number: int, epoch: int = 1) -> dict[str, object]:
    return {
        "id": number,
        "epoch": epoch,
        "input": [{"role": "system", "content": "Translate."}, {"role": "user", "content": f"Satz {number}"}],
        "target": f"sentence {number}",
        "output": {
            "choices": [{"message": {"role": "assistant", "content": [{"type": "text", "text": "a sentence"}]}}]
        },
        "scores": {"match": {"value": "C"}, "f1": {"value": 0.5}},
    }


@pytest.mark.parametrize("suffix", ["json", "eval"])
def test_logs_of_inspect(tmp_path: Path, suffix: str) -> None:
    path, header = tmp_path / f"log.{suffix}", {"version": 2, "status": "success", "eval": {"model": "org/model"}}
    if suffix == "json":
        path.write_text(json.dumps(header | {"samples": [inspected(1), inspected(1, 2)]}, indent=1), "utf-8")
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("header.json", json.dumps(header))
            archive.writestr("_journal/start.json", "{}")
            for epoch in (1, 2):
                archive.writestr(f"samples/1_epoch_{epoch}.json", json.dumps(inspected(1, epoch)))
    data = read(path)
    assert data.systems == ("org/model",)
    assert data.ids == ("1/1", "1/2")
    segment = data.entries[0].segment
    assert (segment.hypothesis, segment.source, segment.references) == ("a sentence", "Satz 1", ("sentence 1",))
    assert data.entries[0].extra == {"f1": 0.5}


@pytest.mark.parametrize(
    "content", ["[1, 2]", "{}", '{"eval": {"model": "m"}, "samples": [{"id": 1, "target": "x"}]}', "{"]
)
def test_other_json_is_refused_with_what_to_do(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(content, "utf-8")
    with pytest.raises(DataError):
        read(path)


def test_logs_of_two_models_are_two_systems(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [write(tmp_path / name / "samples_t_1.jsonl", *map(sample, range(3))) for name in ("big", "small")]
    assert main(["score", *map(str, paths), "-m", "chrf", "-f", "json", "-q"]) == 0
    assert {row["system"] for row in json.loads(capsys.readouterr().out)["records"]} == {"big", "small"}
