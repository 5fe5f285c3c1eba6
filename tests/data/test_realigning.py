"""Hypothesis files with line breaks of their own."""

import json
from pathlib import Path

import pytest

from whyscore.cli.main import main
from whyscore.data.dataset import dataset_lines
from whyscore.data.formats.text import read_texts
from whyscore.errors import DataError


@pytest.fixture
def at(tmp_path: Path) -> dict[str, str]:
    texts = {
        "ref": "The cat sat.\nIt was warm.\n\nA dog came.\nIt barked.\n",
        "src": "Die Katze saß.\nEs war warm.\n\nEin Hund kam.\nEr bellte.\n",
        "merged": "The cat sat. It was so warm.\n\nA dog came. It barked.\n",
        "even": "A cat sat.\nIt's warm.\n\nThe dog came.\nIt barks.\n",
        "whole": "The cat sat. It was warm. A dog\ncame. It barked.\n",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
    return {name: str(tmp_path / f"{name}.txt") for name in texts}


def test_documents_are_realigned_by_themselves(at: dict[str, str]) -> None:
    data = read_texts([at["merged"], at["even"]], at["ref"], at["src"], realign="documents")
    assert [segment.hypothesis for segment in data.of("merged").segments] == [
        *("The cat sat.", "It was so warm.", "A dog came.", "It barked."),
    ]
    assert [segment.hypothesis for segment in data.of("even").segments] == [
        *("A cat sat.", "It's warm.", "The dog came.", "It barks."),
    ]
    assert [segment.source for segment in data.of("merged").segments] == [
        *("Die Katze saß.", "Es war warm.", "Ein Hund kam.", "Er bellte."),
    ]
    assert [entry.document for entry in data.of("even").entries] == ["1", "1", "2", "2"]


def test_notes_and_records_say_what_was_realigned(at: dict[str, str]) -> None:
    data = read_texts([at["merged"], at["even"]], at["ref"], realign="documents")
    notes = [(finding.code, finding.file) for finding in data.findings]
    assert notes == [("realigned", at["merged"]), ("not-realigned", at["even"])]
    assert f"2 lines re-aligned to the 4 segments of {at['ref']}" in data.findings[0].message
    header, *records = [json.loads(line) for line in dataset_lines(data)]
    assert header["counts"] == {"entries": 8, "systems": 2, "segments": 4, "realigned": 4}
    assert [record.get("extra") for record in records] == [{"realigned": True}] * 4 + [None] * 4


def test_a_file_is_realigned_at_once(at: dict[str, str]) -> None:
    data = read_texts(at["whole"], at["ref"], realign="file")
    texts = [segment.hypothesis for segment in data.segments]
    assert texts == ["The cat sat.", "It was warm.", "", "A dog came.", "It barked."]
    assert "empty: 1 segment" in data.findings[0].message


def test_the_error_of_unequal_files_names_the_option(at: dict[str, str]) -> None:
    with pytest.raises(DataError, match=r"line counts must match; .* pass --realign file"):
        read_texts(at["whole"], at["ref"])
    with pytest.raises(DataError) as caught:  # without references there is nothing to re-align to
        read_texts(at["whole"], source=at["src"])
    assert "--realign" not in str(caught.value)


def test_what_cannot_be_realigned_is_refused(at: dict[str, str]) -> None:
    with pytest.raises(DataError, match=r"has 1 document, .* has 2: .* --realign file"):
        read_texts(at["whole"], at["ref"], realign="documents")
    with pytest.raises(DataError, match="references: give them with -r"):
        read_texts(at["whole"], source=at["src"], realign="file")
    with pytest.raises(DataError, match=r"has 2 lines, .* has 5: only the hypotheses are re-aligned"):
        read_texts(at["merged"], at["ref"], at["whole"], realign="file")


def test_the_command_line_realigns_and_scores_documents(at: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    options = ["-r", at["ref"], "-m", "chrf", "--by-document", "--realign", "documents", "-f", "json"]
    assert main(["score", "-t", at["merged"], *options]) == 0
    said = capsys.readouterr()
    assert "re-aligned to the 4 segments" in said.err
    assert json.loads(said.out)["counts"]["realigned"] == 4
    assert main(["score", "--sample", "-m", "chrf", "--realign", "file"]) == 2
    assert "--realign file is for files with one text per line" in capsys.readouterr().err
