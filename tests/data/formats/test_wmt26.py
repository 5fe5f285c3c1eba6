"""The WMT26 evaluation task, read, written and converted; the spans of WMT25's tables."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from tests.support.cli import Run

from whyscore.analysis.convert import convert
from whyscore.data.formats.wmt26 import read_wmt26, wmt26_lines
from whyscore.data.reading import dialect_of, read, read_foreign
from whyscore.errors import DataError
from whyscore.types import ErrorSpan, Segment

ITEM = "eng_Latn_###_deu_Latn_###_news_###_doc1_###_{}"


def item(number: int = 0, **fields: object) -> dict[str, object]:
    base = {"item_id": ITEM.format(number), "src": "a red cat", "ref": {"text": "eine rote Katze", "type": "postedit"}}
    return base | {"hyps": {"A": "eine rote Katze 😀 da", "B": "ein Hund"}} | fields


PREDICTED = {
    "task1_pred": {
        "A": {"errors": [{"start": 0, "end": 4, "severity": "major", "category": "x"}], "omission": "minor"},
        "B": {"errors": [], "omission": None, "instruction_fault": "major"},
    },
    "task2_pred": {"A": 60.0, "B": 75},
    "task3_pred": {"A": 0, "B": 1},
}


def write(path: Path, *items: object) -> Path:
    path.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in items), "utf-8")
    return path


def test_an_item_is_one_segment_of_every_system(tmp_path: Path) -> None:
    data = read(write(tmp_path / "x.jsonl", item(), item(1, ref=None)))
    assert (data.systems, data.languages, len(data.ids)) == (("A", "B"), ("en", "de"), 2)
    first, last = data.entries[0], data.entries[3]
    assert first.segment == Segment("eine rote Katze 😀 da", "a red cat", ("eine rote Katze",))
    assert (first.extra, first.spans) == ({"reference_type": "postedit", "domain": "news"}, None)
    assert first.document == last.document == "eng_Latn_###_deu_Latn_###_news_###_doc1"
    assert (last.segment.references, data.findings) == ((), ())


def test_predictions_are_read_and_written_as_they_are(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", item(**PREDICTED))
    data = read(path)
    assert data.entries[0].spans == (ErrorSpan(0, 4, "major", "x"), ErrorSpan(20, 20, "minor", "omission"))
    assert data.entries[1].spans == (ErrorSpan(8, 8, "major", "instruction"),)
    lost = Counter[str]()
    (line,) = wmt26_lines(data, lost, texts=True)
    again = json.loads(line)
    assert not +lost
    assert again["task2_pred"] == {"A": 60.0, "B": 75.0}
    assert again["task3_pred"] == {"A": 0, "B": 1}
    assert again["task1_pred"]["B"] == {"errors": [], "omission": None, "instruction_fault": "major"}
    texts = read(write(tmp_path / "texts.jsonl", item()))
    alone = read_wmt26(write(tmp_path / "y.jsonl", {"item_id": ITEM.format(0), **PREDICTED}), texts)
    assert [(e.segment, e.spans) for e in alone.entries] == [(e.segment, e.spans) for e in data.entries]


@pytest.mark.parametrize("dialect", ["whyscore", "xcomet", "pearmut", "mtme", "mqm", "wmtqe", "marot"])
def test_spans_go_round_through_every_dialect(tmp_path: Path, dialect: str) -> None:
    """Words with a severity are what all dialects can say; ids and systems stay."""
    path = write(tmp_path / "x.jsonl", item(hyps={"A": "eine rote Katze"}, task1_pred={"A": {"errors": [
        {"start": 5, "end": 9, "severity": "major"}, {"start": 10, "end": 15, "severity": "minor"}]}}))  # fmt: skip
    data = read_foreign(path)
    written = tmp_path / "there.tsv"
    written.write_text("".join(convert(data, dialect).lines), "utf-8")
    there = read_foreign(written, dialect, texts=data)
    back = write(tmp_path / "back.jsonl", *map(json.loads, convert(there, "wmt26").lines))
    assert dialect_of(back) == "wmt26"
    spans = [[(s.start, s.end, s.severity) for s in e.spans or ()] for e in read_foreign(back).entries]
    assert spans == [[(5, 9, "major"), (10, 15, "minor")]]


def test_what_is_not_known_is_named_and_skipped(tmp_path: Path) -> None:
    odd = item(resources={}, ref={"text": "r", "type": "pseudo", "by": "x"})
    data = read(write(tmp_path / "x.jsonl", odd))
    assert [(one.code, one.message) for one in data.findings] == [
        ("unknown-fields", "fields that are not known were skipped: resources, ref.by")
    ]


def test_overlaps_clipped_ends_utf16_offsets_and_documents_out_of_order_are_told(tmp_path: Path) -> None:
    def errors(*spans: tuple[int, int]) -> dict[str, object]:
        return {"task1_pred": {"A": {"errors": [{"start": a, "end": b, "severity": "minor"} for a, b in spans]}}}

    path = write(tmp_path / "x.jsonl", item(5, **errors((0, 4), (2, 6), (19, 21))), item(1, **errors((3, 99))))
    data = read(path)
    assert [one.message for one in data.findings] == [
        "spans clipped to the text; in UTF-16 units? Then read with --offsets utf16: 1",
        "spans that overlap another one: 1",
        "spans clipped to the text: 1",
        "segments of 1 document(s) are out of order: eng_Latn_###_deu_Latn_###_news_###_doc1",
    ]
    utf16 = read_foreign(path, offsets="utf16")
    assert (utf16.entries[0].spans or ())[2] == ErrorSpan(18, 20, "minor")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"task1_pred": {"A": {"errors": [{"start": 5, "end": 2, "severity": "minor"}]}}}, "the span 5-2 is reversed"),
        ({"task1_pred": {"A": {"errors": [{"start": 0, "end": 2, "severity": "huge"}]}}}, "severity is 'huge'"),
        ({"task1_pred": {"C": {"errors": []}}}, "a prediction for 'C', which has no hypothesis; there are: A, B"),
        ({"task1_pred": {"A": {"errors": [{"start": "0", "end": 2}]}}}, "start is '0', expected a whole number"),
        ({"task2_pred": {"A": "good"}}, "task2_pred is 'good', expected a number"),
        ({"hyps": ["a"]}, "hyps is ['a'], expected an object with one value per system"),
        ({"hyps": {"A": 3}}, "the hypothesis of 'A' is 3, expected a text"),
        ({"hyps": None, "task2_pred": {"A": 3}}, "give the task's file with --texts"),
    ],
)
def test_bad_items_are_refused_with_their_line(tmp_path: Path, fields: dict[str, object], message: str) -> None:
    path = write(tmp_path / "x.jsonl", item(), item(1, **fields))
    with pytest.raises(DataError, match=re.escape(message)) as caught:
        read(path)
    assert caught.value.line == 2


def test_what_the_layout_cannot_say_is_counted(tmp_path: Path) -> None:
    data = read(write(tmp_path / "x.jsonl", item(hyps={"A": "a b"})))
    spans = (ErrorSpan(0, 1, "critical"), ErrorSpan(2, 3), ErrorSpan(0, 1, "neutral"), ErrorSpan(3, 3, "minor"))
    entry = type(data.entries[0])("1", "A", Segment("a b"), spans=(*spans, ErrorSpan(0, 0, "major")))
    lost = Counter[str]()
    (line,) = wmt26_lines(type(data)("x", (entry,)), lost)
    assert +lost == {"critical, written as major": 1, "unknown severity, written as minor": 1, "neutral span": 1,
                     "further omission": 1, "place of an omission": 1}  # fmt: skip
    predicted = json.loads(line)["task1_pred"]["A"]
    assert [one["severity"] for one in predicted["errors"]] == ["major", "minor"]
    assert predicted["omission"] == "major"


def test_the_spans_of_wmt25_tables_are_read(tmp_path: Path) -> None:
    head = ["doc_id", "segment_id", "source_lang", "target_lang", "system_id", "source_segment", "hypothesis_segment"]
    rows = [
        ["d", "1", "en", "de", "S", "x", "eine Katze", "0 missing", "4 missing", "minor major"],
        ["d", "2", "en", "de", "S", "y", "ein Hund", "-1", "-1", "no-error"],
        ["d", "3", "en", "de", "S", "z", "ein Tier", "", "", ""],
    ]
    path = tmp_path / "x.tsv"
    lines = [[*head, "start_indices", "end_indices", "error_types"], *rows]
    path.write_text("".join("\t".join(row) + "\n" for row in lines), "utf-8")
    data = read(path)
    assert [e.spans for e in data.entries] == [
        (ErrorSpan(0, 4, "minor"), ErrorSpan(10, 10, "major", "omission")), (), None,
    ]  # fmt: skip
    path.write_text(path.read_text("utf-8").replace("0 missing", "7 missing"), "utf-8")
    with pytest.raises(DataError, match=re.escape("segment '1', row 1 of the data: the span 7-4 is not a valid span")):
        read(path)


def test_a_submission_has_scores_spans_and_decisions(run: Run, tmp_path: Path) -> None:
    hypotheses = {"A": "a red cat", "B": "a red dog", "C": "the blue thing"}
    path = write(tmp_path / "en-de.jsonl", item(ref={"text": "a red cat", "type": "pseudo"}, hyps=hypotheses))
    out = tmp_path / "out.jsonl"
    done = run("submit", "wmt26", path, "-m", "token_f1", "-e", "erasure", "--error-free", 85, "-o", out)
    assert done.code == 0, done.err
    found = json.loads(out.read_text("utf-8"))
    assert found["task2_pred"]["A"] == 100.0
    assert found["task3_pred"] == {"A": 1, "B": 0, "C": 0}
    assert [(e["start"], e["end"]) for e in found["task1_pred"]["B"]["errors"]] == [(6, 9)]
    assert found["task1_pred"]["A"]["errors"] == []
    done = run("submit", "wmt26", path, "-m", "token_f1")
    assert done.code == 2
    assert "a WMT26 submission needs one metric and a file" in done.err
