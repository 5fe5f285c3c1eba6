"""Files that components name: what they hold counts, and is read once."""

import hashlib
from pathlib import Path

import pytest

from whyscore.registry import build


def test_files_of_a_component_are_read_again_only_when_they_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    digest = hashlib.file_digest

    def count(file: object, name: str) -> object:
        read.append(Path(file.name).name)  # type: ignore[attr-defined]
        return digest(file, name)  # type: ignore[arg-type]

    monkeypatch.setattr(hashlib, "file_digest", count)
    scores = tmp_path / "log_probs.jsonl"
    scores.write_text("{}\n", "utf-8")
    metric = build(f'boosted(metric=chrf, explainer=logprob("{scores}"))')
    signature = metric.signature()
    assert metric.signature() == signature
    assert read == ["log_probs.jsonl"]
    scores.write_text("{}\n{}\n", "utf-8")
    assert metric.signature() != signature


def test_a_folder_of_a_model_counts_with_the_folders_in_it(tmp_path: Path) -> None:
    (tmp_path / "1_Dense").mkdir()
    (tmp_path / "config.json").write_text("{}", "utf-8")
    weights = tmp_path / "1_Dense" / "weights"
    weights.write_text("1", "utf-8")
    metric = build(f'boosted(metric=chrf, explainer=logprob("{tmp_path}"))')
    signature = metric.signature()
    weights.write_text("12", "utf-8")
    assert metric.signature() != signature
