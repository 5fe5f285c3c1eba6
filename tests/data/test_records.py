"""Records: what is written, that it fits its schema, and that it reads back."""

import json
import math
import re
import tracemalloc
from collections.abc import Iterable
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyscore.data.codec import KINDS, VERSION, Kind, read_records
from whyscore.data.dataset import dataset_lines, read_dataset
from whyscore.data.reading import read
from whyscore.data.records import digest, explanation_lines, row_lines, schema, score_lines, span_lines
from whyscore.data.writing import cut_torn_line, write_lines
from whyscore.errors import ContractError, DataError
from whyscore.text.files import REASONS, line
from whyscore.types import (
    HYPOTHESIS,
    Dataset,
    Entry,
    ErrorSpan,
    Explanation,
    ExplanationRecord,
    Place,
    Scores,
    Segment,
    Side,
    Signature,
    Words,
)

CREATED = "2026-01-02T03:04:05Z"
SEGMENT = Segment("a cat", "eine Katze", ("one cat", "the cat"))
SPANS = (
    ErrorSpan(0, 1, "minor", "Style", score=-1.0),
    ErrorSpan(5, 10, None, None, Side.SOURCE),
    ErrorSpan(4, 7, "major", "Accuracy", Side.REFERENCE, 1, confidence=0.25),
)
DATASET = Dataset(
    "small",
    (
        Entry("0", "A", SEGMENT, {"mqm": -1.5, "da": math.nan}, SPANS, "doc", {"note": "é", "list": (1, math.inf)}),
        Entry("1", "A", Segment("b"), spans=()),
        Entry("0", "B", Segment("")),
    ),
    ("de", "en"),
)


def checked(kind: Kind, lines: Iterable[str]) -> list[dict[str, object]]:
    """Return the objects of lines that fit their schema."""
    texts = list(lines)
    assert all(text.endswith("\n") and text.count("\n") == 1 for text in texts)
    header, *records = (json.loads(text, parse_constant=pytest.fail) for text in texts)
    jsonschema.validate(header, schema("header"))
    assert header["kind"] == kind
    for record in records:
        jsonschema.validate(record, schema(kind))
    return records


@pytest.mark.parametrize("kind", ["header", *KINDS])
def test_the_schemas_are_schemas(kind: Kind) -> None:
    jsonschema.Draft202012Validator.check_schema(schema(kind))


@pytest.mark.parametrize("kind", ["scores", "explanations", "rows"])
def test_the_schemas_know_every_reason(kind: str) -> None:
    text = json.dumps(schema("metaeval" if kind == "rows" else kind))  # type: ignore[arg-type]
    assert all(json.dumps(reason) in text for reason in REASONS)


def test_the_header_says_what_follows() -> None:
    scores = {"chrf": Scores(np.array([1.0, 2.0, 3.0]), Signature("chrf", (("nrefs", "1"),)))}
    first = next(score_lines(DATASET, scores, created=CREATED))
    assert json.loads(first) == {
        "schema": "whyscore/1",
        "schema_version": 1,
        "kind": "scores",
        "signatures": {"chrf": "chrf|nrefs:1"},
        "created": CREATED,
        "dataset": {"name": "small", "digest": digest(DATASET), "languages": ["de", "en"]},
        "counts": {"entries": 3, "systems": 2, "segments": 2},
    }
    assert list(json.loads(first)) == ["schema", "schema_version", "kind", "signatures", "created", "dataset", "counts"]


def test_scores_are_written_line_by_line() -> None:
    rows = np.array([[0.1, 0.2], [0.3, math.nan], [0.5, 0.6]])
    scores = {
        "f1": Scores(np.array([0.1 + 0.2, math.nan, 1.0]), Signature("f1"), rows=rows, columns=("P", "R")),
        "ter": Scores(np.array([1.0, math.inf, 3.0]), Signature("ter"), higher_is_better=False),
    }
    lines = list(
        score_lines(DATASET, scores, parts=True, truncated={"f1": {2}}, reasons={"f1": {1: "empty"}}, created=CREATED)
    )
    assert lines[1] == (
        '{"id": "0", "system": "A", "metric": "f1", "score": 0.30000000000000004, "parts": {"P": 0.1, "R": 0.2}}\n'
    )
    records = checked("scores", lines)
    assert [record.get("score") for record in records] == [0.1 + 0.2, None, 1.0, 1.0, None, 3.0]
    assert [record.get("reason") for record in records] == [None, "empty", None, None, "undefined", None]
    assert [record.get("truncated") for record in records] == [None, None, True, None, None, None]
    assert records[1]["parts"] == {"P": 0.3, "R": None}


def test_scores_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ContractError, match=re.escape("chrf has 1 scores for 3 entries")):
        list(score_lines(DATASET, {"chrf": Scores(np.array([1.0]), Signature("chrf"))}))
    scores = {"chrf": Scores(np.array([math.nan] * 3), Signature("chrf"))}
    with pytest.raises(ContractError, match=re.escape("no reason named 'because' for a null; known: constant, empty")):
        list(score_lines(DATASET, scores, reasons={"chrf": {0: "because"}}))


def explanation(importance: list[float], **more: object) -> Explanation:
    words = Words("a cat", ((0, 1), (2, 5)))
    values = np.array(importance)
    return Explanation(SEGMENT, HYPOTHESIS, words, values, 54.31, 100, Signature("lime"), **more)  # type: ignore[arg-type]


def test_explanations_are_written_as_the_interface_says() -> None:
    entry = DATASET.entries[0]
    items = [ExplanationRecord.of(entry, "chrf", "lime(samples=100)", explanation([0.5, -0.83], fit=0.97))]
    lines = list(explanation_lines(DATASET, items, {"chrf": "chrf|nrefs:2"}, created=CREATED))
    expected = (
        '{"id": "0", "system": "A", "metric": "chrf", "explainer": "lime(samples=100)", "side": "hypothesis", '
        '"reference": null, "words": [{"text": "a", "start": 0, "end": 1, "importance": 0.5}, {"text": "cat", '
        '"start": 2, "end": 5, "importance": -0.83}], "score": 54.31, "probes": 100, "fit": 0.97}\n'
    )
    assert json.dumps(json.loads(lines[1])) + "\n" == expected
    checked("explanations", lines)


def test_explanations_carry_what_else_is_known() -> None:
    entry = DATASET.entries[0]
    known = explanation(
        [0.5, 0.1], method="exact", flags=("few probes",), notes=("n", "m"), spread=np.array([0.1, 0.2]), stability=0.9
    )
    undefined = explanation([math.nan, 0.1], flags=("slow", "flat"))
    third = Explanation(
        SEGMENT, Place(Side.REFERENCE, 1), Words("the cat", ()), np.array([]), math.nan, 0, Signature("x")
    )
    items = [ExplanationRecord.of(entry, "m", "e", item, filled=(1,)) for item in (known, undefined, third)]
    records = checked("explanations", explanation_lines(DATASET, items, {}, created=CREATED))
    assert [record.get("reason") for record in records] == [None, "flat", "undefined"]
    assert records[0]["words"][1] == {
        "text": "cat",
        "start": 2,
        "end": 5,
        "importance": 0.1,
        "note": "m",
        "spread": 0.2,
    }  # type: ignore[index]
    assert {key: records[0][key] for key in ("filled", "method", "flags", "stability")} == {
        "filled": [1],
        "method": "exact",
        "flags": ["few probes"],
        "stability": 0.9,
    }
    assert (records[2]["side"], records[2]["reference"]) == ("reference", 1)


def test_spans_are_written_per_text() -> None:
    records = checked("spans", span_lines(DATASET, "people", created=CREATED))
    assert [(record["id"], record["side"], record["reference"]) for record in records] == [
        ("0", "hypothesis", None),
        ("0", "source", None),
        ("0", "reference", 1),
        ("1", "hypothesis", None),
    ]
    assert records[0]["spans"] == [
        {"start": 0, "end": 1, "text": "a", "severity": "minor", "category": "Style", "score": -1.0, "confidence": None}
    ]
    assert records[3]["spans"] == []


@pytest.mark.parametrize("kind", ["decomposition", "comparisons", "metaeval", "words"])
def test_rows_are_written_with_a_reason_for_what_is_undefined(kind: Kind) -> None:
    rows = [{"feature": "NN", "share": 0.5}, {"feature": "VB", "share": math.nan, "low": None}]
    rows.append({"feature": "DT", "share": math.nan, "reason": "constant", "values": np.array([1.0, math.nan])})
    records = checked(kind, row_lines(kind, DATASET, rows, {"bleu": "x"}, created=CREATED))
    assert records == [
        {"feature": "NN", "share": 0.5},
        {"feature": "VB", "share": None, "low": None, "reason": "undefined"},
        {"feature": "DT", "share": None, "reason": "constant", "values": [1.0, None]},
    ]


def test_a_data_set_is_written_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "small.jsonl"
    write_lines(path, dataset_lines(DATASET, created=CREATED))
    records = checked("dataset", path.read_text(encoding="utf-8").splitlines(keepends=True))
    assert list(records[0]) == [
        *("id", "system", "hypothesis", "source", "references", "human", "spans", "document", "extra"),
    ]
    assert list(records[2]) == ["id", "system", "hypothesis"]
    back = read(path)
    assert (back.name, back.languages) == ("small", ("de", "en"))
    assert back.entries[1:] == DATASET.entries[1:]
    first = back.entries[0]
    assert (first.segment, first.spans, first.document) == (SEGMENT, SPANS, "doc")
    # What is not a number is missing, and JSON knows lists only.
    assert (first.human, first.extra) == ({"mqm": -1.5}, {"note": "é", "list": [1, None]})


texts = st.text(max_size=6)
numbers = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def entries(draw: st.DrawFn) -> Entry:
    segment = Segment(draw(texts), draw(st.none() | texts), tuple(draw(st.lists(texts, max_size=2))))
    length = len(segment.hypothesis)
    start = draw(st.integers(0, length))
    span = ErrorSpan(start, draw(st.integers(start, length)), draw(st.sampled_from([None, "critical"])), draw(texts))
    return Entry(
        draw(texts),
        draw(texts),
        segment,
        draw(st.dictionaries(texts, numbers, max_size=2)),
        draw(st.sampled_from([None, (), (span,), (span, span)])),
        draw(st.none() | texts),
        draw(st.dictionaries(texts, st.none() | st.booleans() | st.integers() | numbers | texts, max_size=2)),
    )


@given(st.lists(entries(), min_size=1, max_size=4, unique_by=lambda entry: (entry.system, entry.id)))
def test_every_entry_reads_back_equal(tmp_path_factory: pytest.TempPathFactory, made: list[Entry]) -> None:
    path = tmp_path_factory.getbasetemp() / "property.jsonl"
    dataset = Dataset("any", tuple(made))
    write_lines(path, dataset_lines(dataset, created=CREATED))
    back = read_dataset(path)
    assert back.entries == dataset.entries
    assert digest(back) == digest(dataset)
    assert "".join(dataset_lines(back, created=CREATED)).encode() == path.read_bytes()


def test_the_digest_tells_texts_apart() -> None:
    def of(*segments: Segment) -> str:
        return digest(Dataset("x", tuple(Entry(str(k), "A", segment) for k, segment in enumerate(segments))))

    seen = [of(Segment("ab")), of(Segment("a", "b")), of(Segment("a", None, ("b",))), of(Segment("a"), Segment("b"))]
    assert len(set(seen)) == len(seen)
    assert of(Segment("ab")) == of(Segment("ab"))


def test_a_record_that_is_no_json_is_refused() -> None:
    with pytest.raises(ContractError, match=re.escape("a record cannot be written as JSON: Out of range float values")):
        line({"score": math.nan})
    with pytest.raises(ContractError, match=re.escape("a record cannot be written as JSON: set {1} has no JSON form")):
        line({"score": {1}})
    assert line({"score": np.float32(0.5), "n": np.int64(3)}) == '{"score": 0.5, "n": 3}\n'


def test_characters_are_not_escaped_but_half_pairs_and_controls_are() -> None:
    assert line({"text": "é𝄞\u2028"}) == '{"text": "é𝄞\u2028"}\n'
    assert line({"text": "é\ud800"}) == '{"text": "é\\ud800"}\n'
    assert line({"text": "\x1b\x7f\x9b\u202e"}) == '{"text": "\\u001b\\u007f\\u009b\\u202e"}\n'


def records_file(folder: Path, text: str) -> Path:
    path = folder / "scores.jsonl"
    path.write_text(text, encoding="utf-8", newline="")
    return path


HEADER = '{"schema": "whyscore/1", "schema_version": 1, "kind": "scores"}\n'


def test_records_are_read_with_their_header(tmp_path: Path) -> None:
    path = tmp_path / "scores.jsonl"
    scores = {"chrf": Scores(np.array([1.0, 2.0, 3.0]), Signature("chrf"))}
    write_lines(path, score_lines(DATASET, scores, created=CREATED))
    records = read_records(path, kind="scores")
    assert (records.header.kind, records.header.created, records.header.name) == ("scores", CREATED, "small")
    assert (records.header.signatures, records.header.languages) == ({"chrf": "chrf"}, ("de", "en"))
    assert records.header.counts == {"entries": 3, "systems": 2, "segments": 2}
    assert [record["score"] for record in records] == [1.0, 2.0, 3.0]
    assert records.findings == ()


def test_records_of_another_kind_are_refused(tmp_path: Path) -> None:
    path = records_file(tmp_path, HEADER)
    with pytest.raises(DataError, match=re.escape(f"{path}:1: holds records of the kind 'scores', expected 'spans'")):
        read_records(path, kind="spans")
    with pytest.raises(DataError, match=re.escape(f"{path}:1: holds records of the kind 'scores', expected 'dataset'")):
        read(path)


@pytest.mark.parametrize("text", ["", "\n", '{"id": "1"}\n', "oops\n", '{"schema": "other/1"}\n', '{"schema"\n'])
def test_a_missing_header_is_refused(tmp_path: Path, text: str) -> None:
    path = records_file(tmp_path, text)
    expected = f'{path}:1: no header of records: expected an object with "schema": "whyscore/1"'
    with pytest.raises(DataError, match=re.escape(expected)):
        read_records(path)


def test_a_header_that_cannot_be_understood_is_refused(tmp_path: Path) -> None:
    newer = HEADER.replace('"schema_version": 1', f'"schema_version": {VERSION + 1}')
    expected = ":1: written by a newer whyscore (schema_version 2, this one reads up to 1): update whyscore"
    with pytest.raises(DataError, match=re.escape(expected)):
        read_records(records_file(tmp_path, newer))
    for change, message in [
        (('"schema_version": 1, ', ""), ":1: 'schema_version' is None, expected a whole number"),
        (('"scores"', '"odd"'), ":1: 'kind' is 'odd', expected one of dataset, scores"),
        (('"scores"', '"scores", "counts": 3'), ":1: 'counts' is 3, expected an object"),
    ]:
        with pytest.raises(DataError, match=re.escape(message)):
            read_records(records_file(tmp_path, HEADER.replace(*change)))


@pytest.mark.parametrize("torn", ['{"id": "2", "sc', '{"id": "é'.encode()[:-1].decode("latin-1"), '{"id": "2"}'])
def test_a_torn_last_line_is_dropped_only_when_asked(tmp_path: Path, torn: str) -> None:
    path = records_file(tmp_path, HEADER + '{"id": "1"}\n')
    with path.open("ab") as file:
        file.write(torn.encode("latin-1"))
    records = read_records(path, drop_torn=True)
    assert [record["id"] for record in records] == ["1"]
    assert [str(finding) for finding in records.findings] == [f"{path}:3: the last line is incomplete and was left out"]
    assert cut_torn_line(path) == len(torn)
    assert [record["id"] for record in read_records(path)] == ["1"]
    assert cut_torn_line(path) == 0


def test_a_torn_last_line_is_an_error_otherwise(tmp_path: Path) -> None:
    path = records_file(tmp_path, HEADER + '{"id": "1"}\n{"id": "2", "sc')
    expected = f"{path}:3: the last line is incomplete, as after an interrupted run: resume the run, or delete the line"
    with pytest.raises(DataError, match=re.escape(expected)):
        list(read_records(path))
    whole = read_records(records_file(tmp_path, HEADER + '{"id": "1"}'))
    assert [record["id"] for record in whole] == ["1"]


def test_a_bad_line_in_the_middle_is_an_error_even_then(tmp_path: Path) -> None:
    path = records_file(tmp_path, HEADER + '{"id": \n{"id": "2"}\n')
    with pytest.raises(DataError, match=re.escape(f"{path}:2:8: not JSON: Expecting value")):
        list(read_records(path, drop_torn=True))


def test_a_file_of_one_torn_line_is_cut_to_nothing(tmp_path: Path) -> None:
    path = records_file(tmp_path, "x" * 100_000)
    assert cut_torn_line(path) == 100_000
    assert path.read_bytes() == b""


DATASET_HEADER = HEADER.replace("scores", "dataset")


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ('{"id": 1, "system": "A", "hypothesis": "h"}', "'id' is 1, expected a text"),
        ('{"id": "1", "hypothesis": "h"}', "'system' is None, expected a text"),
        ('{"id": "1", "system": "A"}', "'hypothesis' is None, expected a text"),
        ('{"id": "1", "system": "A", "hypothesis": "h", "references": "r"}', "'references' is 'r', expected a list"),
        (
            '{"id": "1", "system": "A", "hypothesis": "h", "human": {"da": "x"}}',
            "'human' is {'da': 'x'}, expected a number",
        ),
        ('{"id": "1", "system": "A", "hypothesis": "h", "human": 3}', "'human' is 3, expected an object"),
        ('{"id": "1", "system": "A", "hypothesis": "h", "extra": 3}', "'extra' is 3, expected an object"),
        ('{"id": "1", "system": "A", "hypothesis": "h", "spans": [{"start": 0, "end": 2}]}', "the span 0-2 is outside"),
        ('{"id": "0", "system": "A", "hypothesis": "h"}', "system 'A' has the id '0' twice, first on line 2"),
    ],
)
def test_a_broken_data_set_is_refused_with_the_line(tmp_path: Path, record: str, message: str) -> None:
    good = '{"id": "0", "system": "A", "hypothesis": "h"}\n'
    path = records_file(tmp_path, f"{DATASET_HEADER}{good}{record}\n")
    with pytest.raises(DataError, match=re.escape(f"{path}:3: {message}")):
        read(path)


def test_reading_records_does_not_hold_the_file(tmp_path: Path) -> None:
    path = records_file(tmp_path, HEADER + (json.dumps({"id": "x" * 2_000}) + "\n") * 10_000)
    tracemalloc.start()
    assert sum(1 for _ in read_records(path)) == 10_000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < path.stat().st_size / 2
