"""SummEval's annotations and REALSumm's scores, as their authors publish them."""

import csv
import json
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

from whyscore.data.reading import read
from whyscore.errors import DataError
from whyscore.experiments.bmx.summeval import SPLIT, read_summeval, with_splits

RATING = {"coherence": 2, "consistency": 5, "fluency": 4, "relevance": 1}
ROW = {
    "id": "doc-1", "model_id": "M0", "decoded": "a bad cat", "references": ["a cat", "the cat"],
    "expert_annotations": [RATING, {**RATING, "coherence": 3}], "turker_annotations": [RATING], "filepath": "x.story",
}  # fmt: skip


def written(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def test_annotations_of_summeval_are_read_as_they_are(tmp_path: Path) -> None:
    (entry,) = read(written(tmp_path / "model_annotations.aligned.jsonl", ROW)).entries
    assert (entry.id, entry.document, entry.system) == ("doc-1", "doc-1", "M0")
    assert (entry.segment.hypothesis, entry.segment.references) == ("a bad cat", ("a cat", "the cat"))
    assert entry.human["coherence"] == 2.5
    assert entry.human["turker_coherence"] == 2.0
    assert len(entry.human) == 8


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"expert_annotations": [{**RATING, "fluency": "good"}]}, ":1: cannot read the ratings of fluency"),
        ({"references": 3}, ":1: 'references' must be a list of texts"),
        ({"model_id": None}, ":1: 'model_id' is None, expected a text"),
    ],
)
def test_annotations_that_do_not_fit_are_refused(tmp_path: Path, change: dict[str, object], message: str) -> None:
    path = written(tmp_path / "a.jsonl", {**ROW, **change})
    with pytest.raises(DataError, match=re.escape(f"{path}{message}")):
        read(path)


def test_the_annotations_give_the_same_data_and_splits_as_the_two_files(shipped: Path, tmp_path: Path) -> None:
    folder = shipped / "summeval"
    wanted = read_summeval(folder / "scores.csv", folder / "texts.jsonl")
    with (folder / "scores.csv").open(newline="", encoding="utf-8") as file:
        rated = list(csv.DictReader(file))
    rows = []
    for entry, row in zip(wanted.entries, rated, strict=True):
        raw = {aspect: [int(one) for one in row[f"expert_{aspect}_raw"].split("|")] for aspect in RATING}
        experts = [{aspect: ratings[k] for aspect, ratings in raw.items()} for k in range(3)]
        rows.append({"id": entry.id, "model_id": entry.system, "decoded": entry.segment.hypothesis,
                     "references": list(entry.segment.references), "expert_annotations": experts})  # fmt: skip
    found = with_splits(read(written(tmp_path / "model_annotations.aligned.jsonl", *rows)))
    for one, other in zip(found.entries, wanted.entries, strict=True):
        assert (one.id, one.system, one.segment, one.human) == (other.id, other.system, other.segment, other.human)
        assert one.extra[SPLIT] == other.extra[SPLIT]


def test_splits_need_the_four_aspects(tmp_path: Path) -> None:
    data = read(written(tmp_path / "a.jsonl", {"id": "1", "hypothesis": "a", "reference": "b", "da": 1}))
    with pytest.raises(DataError, match="has no human score coherence, consistency, fluency, relevance; it has: da"):
        with_splits(data)


def pickled(path: Path, *systems: str, scores: dict[str, object] | None = None) -> Path:
    given = scores or {"litepyramid_recall": np.float64(0.25), "rouge_1_f_score": 0.5}
    summaries = {name: {"system_summary": "<t> a bad cat . </t>  <t> it </t>", "scores": given} for name in systems}
    document = {"doc_id": 7, "ref_summ": "<t> a cat </t>", "system_summaries": summaries}
    path.write_bytes(pickle.dumps({7: document}, protocol=3))
    return path


def test_scores_of_realsumm_are_read_as_they_are(tmp_path: Path) -> None:
    pickled(tmp_path / "abs.pkl", "bart_out.txt", "t5.txt")
    pickled(tmp_path / "ext.pkl", "bart_out.txt")
    data = read(tmp_path)
    assert [entry.system for entry in data.entries] == ["bart_out", "t5", "bart_out_ext"]
    first = data.entries[0]
    assert (first.id, first.document, first.human) == ("7", "7", {"litepyramid_recall": 0.25})
    assert (first.segment.hypothesis, first.segment.references) == ("a bad cat . it", ("a cat",))
    assert first.extra == {"rouge_1_f_score": 0.5}
    assert read(tmp_path / "ext.pkl").systems == ("bart_out",)


class Evil:
    """Runs a command where it is unpickled by a careless reader."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return eval, ("print('run')",)


def test_no_code_of_a_pickled_file_is_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = pickled(tmp_path / "abs.pkl", "a", scores={"x": Evil()})
    with pytest.raises(DataError, match=re.escape("is not a REALSumm file: names builtins.eval: only dictionaries")):
        read(path)
    assert capsys.readouterr().out == ""


_SYSTEMS = {number: {"system_summary": "a", "scores": {}} for number in range(300)}
LAUGHS = {number: {"ref_summ": "a", "system_summaries": _SYSTEMS} for number in range(300)}
"""Some thousand bytes that stand for 90,000 summaries."""


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x80\x03}q\x00(K", "is not a REALSumm file"),
        (pickle.dumps([1]), "expected a dictionary of documents"),
        (pickle.dumps({1: {}}), "document 1: expected 'ref_summ' and 'system_summaries'"),
        (pickle.dumps({}), "holds no summary"),
        (b"\x80\x03}r\xff\xff\xff\x03.", "has place 67108863 in 9 bytes"),
        (pickle.dumps(LAUGHS), "names the same summaries again and again"),
    ],
)
def test_files_that_are_not_realsumm_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "abs.pkl").write_bytes(content)
    with pytest.raises(DataError, match=re.escape(message)):
        read(tmp_path / "abs.pkl")
