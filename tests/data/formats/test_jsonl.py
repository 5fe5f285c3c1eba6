"""JSON lines, and the choice of a reader."""

import gzip
import io
import json
import re
import sys
from pathlib import Path

import pytest

from whyscore.data.reading import read, read_frame
from whyscore.errors import DataError, MissingExtra, SpecError
from whyscore.types import Dataset, ErrorSpan, Finding, Segment


def lines(folder: Path, *texts: str, name: str = "data.jsonl", **options: object) -> Dataset:
    path = folder / name
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8", newline="")
    return read(path, **options)  # type: ignore[arg-type]


def refused(folder: Path, message: str, *texts: str, **options: object) -> None:
    with pytest.raises(DataError, match=re.escape(f"{folder / 'data.jsonl'}{message}")):
        lines(folder, *texts, **options)


def test_objects_become_entries(tmp_path: Path) -> None:
    record = {"mt": "h", "src": "s", "refs": ["r", "q"], "system": "A", "id": 7, "doc": "d", "z": 1, "LP": "de-en"}
    dataset = lines(tmp_path, json.dumps(record | {"more": {"x": [1]}}))
    (entry,) = dataset.entries
    assert entry.segment == Segment("h", "s", ("r", "q"))
    assert (entry.id, entry.system, entry.document, entry.human) == ("7", "A", "d", {"z": 1.0})
    assert entry.extra == {"LP": "de-en", "more": {"x": [1]}}
    assert dataset.languages == ("de", "en")


def test_line_ends_inside_texts_are_kept(tmp_path: Path) -> None:
    assert lines(tmp_path, '{"mt": "a\u2028b\\nc"}').segments[0].hypothesis == "a\u2028b\nc"


def test_lines_may_have_different_keys(tmp_path: Path) -> None:
    dataset = lines(tmp_path, '{"mt": "a", "da": 1}', '{"hyp": "b", "src": "s"}', '{"mt": "c", "da": null}')
    assert dataset.segments == (Segment("a"), Segment("b", "s"), Segment("c"))
    assert [entry.human for entry in dataset.entries] == [{"da": 1.0}, {}, {}]
    assert dataset.ids == ("0", "1", "2")


def test_null_means_missing(tmp_path: Path) -> None:
    dataset = lines(tmp_path, '{"mt": "a", "src": null, "ref": null, "doc": null, "spans": null, "score": null}')
    (entry,) = dataset.entries
    assert entry.segment == Segment("a")
    assert (entry.document, entry.spans, entry.human) == (None, None, {})


def test_spans_are_read(tmp_path: Path) -> None:
    span = '{"text": "a", "start": 0, "end": 1, "severity": "major", "confidence": 0.5}'
    dataset = lines(tmp_path, f'{{"mt": "ab", "error_spans": [{span}]}}')
    assert dataset.entries[0].spans == (ErrorSpan(0, 1, "major", confidence=0.5),)


def test_blank_lines_are_left_out_and_noted(tmp_path: Path) -> None:
    dataset = lines(tmp_path, '{"mt": "a"}', "", '{"mt": "b"}', " ")
    assert len(dataset) == 2
    assert dataset.findings == (
        Finding("blank-lines", "blank lines were left out: 2, 4", str(tmp_path / "data.jsonl"), 2),
    )


@pytest.mark.parametrize("text", ["[1]", "3", '"a"', "null"])
def test_what_is_no_object_is_refused(tmp_path: Path, text: str) -> None:
    refused(tmp_path, ":9: not an object", *['{"mt": "a"}'] * 8, text)


def test_what_is_no_json_is_refused_with_line_and_column(tmp_path: Path) -> None:
    refused(tmp_path, ":2:11: not JSON: Expecting ',' delimiter", '{"mt": "a"}', '{"mt": "b"; }')
    refused(tmp_path, ":1: JSON that cannot be read: ", '{"mt": "a", "id": ' + "9" * 5000 + "}")
    refused(tmp_path, ":1: JSON that cannot be read: ", "[" * 100_000)


def test_a_score_that_is_no_number_is_refused(tmp_path: Path) -> None:
    good = '{"mt": "a", "score": 1}'
    refused(tmp_path, ":9: 'score' is \"n/a\", expected a number", *[good] * 8, '{"mt": "a", "score": "n/a"}')
    refused(tmp_path, ":2: 'score' is \"4.5\", expected a number", good, '{"mt": "a", "score": "4.5"}')
    refused(tmp_path, ":1: 'score' is true, expected a number", '{"mt": "a", "score": true}')
    refused(tmp_path, ":1: 'score' is Infinity, expected a number", '{"mt": "a", "score": 1e999}')


def test_nan_is_refused_wherever_it_stands(tmp_path: Path) -> None:
    refused(tmp_path, ":2: 'score' is NaN, expected a number", '{"mt": "a"}', '{"mt": "b", "score": NaN}')
    refused(tmp_path, ":1: 'x' is -Infinity, expected a number", '{"mt": "b", "x": -Infinity}')
    refused(tmp_path, ":1: NaN is not JSON: write null where there is no number", '{"mt": "b", "x": [NaN]}')


def test_texts_that_are_no_texts_are_refused(tmp_path: Path) -> None:
    refused(tmp_path, ":2: 'mt' is 3, expected a text", '{"mt": "a"}', '{"mt": 3}')
    refused(tmp_path, ":1: 'mt' is null, expected a text", '{"mt": null}')
    refused(tmp_path, ":1: 'src' is [\"s\"], expected a text or null", '{"mt": "a", "src": ["s"]}')
    refused(tmp_path, ":1: 'ref' is [1], expected a text or a list of texts", '{"mt": "a", "ref": [1]}')
    refused(tmp_path, ":1: 'id' is 1.5, expected a text or a whole number", '{"mt": "a", "id": 1.5}')
    refused(tmp_path, ":1: 'id' is true, expected a text or a whole number", '{"mt": "a", "id": true}')


def test_a_line_without_a_hypothesis_is_refused(tmp_path: Path) -> None:
    refused(tmp_path, ":2: no column for the hypothesis among 'src': the header must", '{"mt": "a"}', '{"src": "b"}')


def test_ids_on_some_lines_only_are_refused(tmp_path: Path) -> None:
    message = ":2: some rows have an id and others have none: give all rows one, or none"
    refused(tmp_path, message, '{"mt": "a", "id": 1}', '{"mt": "b"}')
    refused(tmp_path, message, '{"mt": "a"}', '{"mt": "b", "id": 1}')


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    refused(tmp_path, " is empty: expected one object per line")
    path = tmp_path / "data.jsonl"
    with pytest.raises(DataError, match=re.escape(f"{path} is empty: expected one object per line")):
        read(path)


def test_more_objects_than_a_block_are_all_read(tmp_path: Path) -> None:
    dataset = lines(tmp_path, *(f'{{"mt": "h{k}", "da": {k}}}' for k in range(12_345)))
    assert dataset.human("da").tolist() == list(range(12_345))


def test_the_suffix_chooses_the_reader(tmp_path: Path) -> None:
    assert lines(tmp_path, "hyp\tsrc", "a\tb", name="x.tsv").segments == (Segment("a", "b"),)
    assert lines(tmp_path, "hyp,src", "a,b", name="x.CSV").segments == (Segment("a", "b"),)
    assert lines(tmp_path, '{"hyp": "a"}', name="x.ndjson").segments == (Segment("a"),)
    text = lines(tmp_path, "a", "b\tc", name="x.txt", languages=("de", "en"))
    assert text.segments == (Segment("a"), Segment("b\tc"))
    assert (text.systems, text.ids, text.languages) == (("x",), ("0", "1"), ("de", "en"))


def test_packed_files_are_chosen_by_the_suffix_before(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv.gz"
    path.write_bytes(gzip.compress(b"hyp\na\n"))
    dataset = read(path)
    assert (dataset.segments, dataset.systems) == ((Segment("a"),), ("x",))


def test_files_without_a_suffix_are_chosen_by_content(tmp_path: Path) -> None:
    assert lines(tmp_path, "hyp\tsrc", "a\tb", name="x").segments == (Segment("a", "b"),)
    assert lines(tmp_path, '{"hyp": "a"}', name="x").segments == (Segment("a"),)
    assert lines(tmp_path, "plain", name="x").segments == (Segment("plain"),)


def test_the_standard_input_is_chosen_by_content(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"hyp": "a"}\n')))
    dataset = read("-")
    assert (dataset.segments, dataset.systems, dataset.name) == ((Segment("a"),), ("stdin",), "stdin")


def test_the_format_can_be_said(tmp_path: Path) -> None:
    assert lines(tmp_path, "hyp\tsrc", "a\tb", name="x.en", format="tsv").segments == (Segment("a", "b"),)


def test_an_unknown_suffix_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    expected = (
        f"{tmp_path / 'x.odt'}: cannot tell the format from '.odt': expected .tsv, .csv, .xlsx, .jsonl, .ndjson, .txt, "
        ".xlf, .xliff, .tmx, .eval, .json, .pkl (also with .gz or .zst); rename the file, or pass --input-format tsv"
    )
    with pytest.raises(DataError, match=re.escape(expected)):
        lines(tmp_path, "a", name="x.odt")
    with pytest.raises(DataError, match=re.escape(f"{tmp_path}: is a folder: give a file")):
        read(tmp_path)


def test_an_unknown_quoting_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=re.escape("quoting is 'none', expected 'auto' or 'csv' or 'raw'")):
        lines(tmp_path, "hyp", "a", name="x.tsv", quoting="none")


def test_options_reach_every_reader(tmp_path: Path) -> None:
    record = '{"text": "a", "HUMAN_score": 1.5}'
    dataset = lines(tmp_path, record, columns={"hypothesis": "text"}, human="HUMAN_score")
    assert (dataset.segments, dataset.entries[0].human) == ((Segment("a"),), {"HUMAN_score": 1.5})
    path = tmp_path / "latin.tsv"
    path.write_bytes("hyp\ncafé\n".encode("latin-1"))
    assert read(path, encoding="latin-1").segments == (Segment("café"),)


def test_a_data_frame_is_read_like_a_table() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "mt": ["a", "b"],
            "src": ["s", None],
            "refs": [["r"], ["q", "p"]],
            "da": [0.5, None],
            "id": [3, 4],
            "x": [1, 2],
        }
    )
    dataset = read_frame(frame, languages=("de", "en"))
    assert dataset.segments == (Segment("a", "s", ("r",)), Segment("b", None, ("q", "p")))
    assert [entry.human for entry in dataset.entries] == [{"da": 0.5}, {}]
    assert (dataset.ids, dataset.systems, dataset.languages) == (("3", "4"), ("hypothesis",), ("de", "en"))
    assert [entry.extra for entry in dataset.entries] == [{"x": 1}, {"x": 2}]


def test_a_data_frame_that_does_not_fit_is_refused() -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(DataError, match=re.escape("frame:2: 'mt' is null, expected a text")):
        read_frame(pandas.DataFrame({"mt": ["a", None]}))
    with pytest.raises(DataError, match=re.escape("frame is empty: expected one segment per row")):
        read_frame(pandas.DataFrame({"mt": []}))
    with pytest.raises(DataError, match=re.escape("expected a data frame, got list")):
        read_frame([1])
    with pytest.raises(DataError, match=re.escape("frame:1: no column 'MT' for --columns hypothesis=MT; there are:")):
        read_frame(pandas.DataFrame({"mt": ["a"]}), columns={"hypothesis": "MT"})


def test_a_data_frame_without_narwhals_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "narwhals", None)
    expected = "reading data frames needs extra packages: pip install 'whyscore[frames]'"
    with pytest.raises(MissingExtra, match=re.escape(expected)):
        read_frame(object())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"hypothesis": "a", "hypothesis": "b", "reference": "c"}', "the key 'hypothesis' stands in one object twice"),
        ('{"hypothesis": "a \\ud800 b", "reference": "c"}', r"half a surrogate pair (\ud800), which is no character"),
        ('{"hypothesis": "a", "reference": "c", "id": "\\uDFFF"}', r"half a surrogate pair (\udfff)"),
    ],
)
def test_objects_that_can_be_read_in_two_ways_or_not_written_are_refused(
    line: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text(f'{{"hypothesis": "\\ud83d\\ude00", "reference": "c"}}\n{line}\n', "utf-8")
    with pytest.raises(DataError, match=re.escape(message)) as told:
        read(path)
    assert f"{path}:2: " in str(told.value)
