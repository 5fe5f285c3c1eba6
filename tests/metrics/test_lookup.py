"""Scores from a file are found by their texts."""

import json
import os
import re
from pathlib import Path

import pytest

from whyscore.errors import DataError, SpecError
from whyscore.metrics.lookup import Lookup
from whyscore.registry import build
from whyscore.types import Inputs, Segment


def written(folder: Path, name: str, content: str) -> str:
    path = folder / name
    path.write_bytes(content.encode("utf-8"))
    return str(path)


def scores(path: str, *segments: Segment, **options: object) -> list[float]:
    return list(Lookup(path, **options).score(segments))  # type: ignore[arg-type]


def test_a_table_with_hypotheses_alone_ignores_the_other_texts(tmp_path: Path) -> None:
    path = written(tmp_path, "s.tsv", "hypothesis\tscore\na cat\t0.5\na dog\t-1e-3\n")
    assert Lookup(path).inputs == Inputs.HYPOTHESIS
    assert scores(path, Segment("a dog"), Segment("a cat", "Katze", ("x",))) == [-0.001, 0.5]


def test_sources_and_references_tell_equal_hypotheses_apart(tmp_path: Path) -> None:
    path = written(tmp_path, "s.csv", 'id,hypothesis,source,reference,human\n1,a,s,"x, y",1\n2,a,s,z,2\n3,a,t,z,3\n')
    assert Lookup(path, "human").inputs == Inputs.HYPOTHESIS | Inputs.SOURCE | Inputs.REFERENCES
    segments = Segment("a", "t", ("z",)), Segment("a", "s", ("x, y",)), Segment("a", "s", ("z",))
    assert scores(path, *segments, column="human") == [3, 1, 2]


def test_json_lines_may_have_several_references_and_our_own_first_line(tmp_path: Path) -> None:
    lines = [
        {"schema": "whyscore/1", "kind": "scores"},
        {"hypothesis": "a", "references": ["x", "y"], "score": 1},
        {"hypothesis": "a", "references": "x", "score": 2.5},
    ]
    path = written(tmp_path, "s.jsonl", "\n".join(map(json.dumps, lines)) + "\n\n")
    assert scores(path, Segment("a", None, ("x", "y")), Segment("a", "s", ("x",))) == [1, 2.5]


def test_line_ends_quotation_marks_and_byte_order_marks_are_read(tmp_path: Path) -> None:
    raw = written(tmp_path, "raw.tsv", '\ufeffhypothesis\tscore\r\nsay "hi\t1\r\n5" wide\t2')
    assert scores(raw, Segment('say "hi'), Segment('5" wide')) == [1, 2]
    quoted = written(tmp_path, "quoted.tsv", 'hypothesis\tscore\n"say ""hi"""\t1\nplain\u2028line\t2\n')
    assert scores(quoted, Segment('say "hi"'), Segment("plain\u2028line")) == [1, 2]


def test_equal_rows_may_stand_twice(tmp_path: Path) -> None:
    path = written(tmp_path, "s.tsv", "hypothesis\tscore\na\t1\na\t1.0\n")
    assert scores(path, Segment("a")) == [1]


def test_the_signature_names_the_content(tmp_path: Path) -> None:
    path = written(tmp_path, "s.tsv", "hypothesis\tscore\na\t1\n")
    before = Lookup(path).signature()
    assert re.fullmatch(r'lookup\(path="[^"]+"\)\|digest:[0-9a-f]{12}', str(before))
    assert build(before.spec).signature() == before
    written(tmp_path, "s.tsv", "hypothesis\tscore\na\t2\n")
    os.utime(path, ns=(1, 1))
    assert Lookup(path).signature() != before
    assert scores(path, Segment("a")) == [2]


def test_the_direction_is_an_option(tmp_path: Path) -> None:
    path = written(tmp_path, "s.tsv", "hypothesis\tscore\na\t1\n")
    assert not build(f"lookup('{path}', higher_is_better=False)").higher_is_better


def test_a_segment_that_is_not_in_the_file_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, "s.tsv", "hypothesis\tsource\treference\tscore\na\ts\tx\t1\n")
    message = f"{path}: no score for hypothesis 'a cat', source 's', references ('x',); every segment needs a row"
    with pytest.raises(DataError, match=re.escape(message)):
        scores(path, Segment("a cat", "s", ("x",)))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("s.tsv", "hypothesis\tscore\na\t1\nb\t1\na\t2\n", ":4: score 2.0 for the same texts as line 2, which has 1.0"),
        ("s.tsv", "text\tscore\na\t1\n", ":2: no column 'hypothesis'; it has: text, score"),
        ("s.tsv", "hypothesis\tvalue\na\t1\n", ":2: no column 'score' with scores; it has: hypothesis, value"),
        ("s.tsv", "hypothesis\tscore\na\n", ":2: expected 2 columns, found 1"),
        ("s.tsv", "hypothesis\tscore\na\tn/a\n", ":2: 'score' is 'n/a', expected a finite number"),
        ("s.tsv", "hypothesis\tscore\na\tnan\n", ":2: 'score' is 'nan', expected a finite number"),
        ("s.tsv", "hypothesis\tscore\n", ": has no scores: expected a column 'hypothesis' and one of scores"),
        ("s.tsv", "", ": has no scores"),
        ("s.jsonl", "{\n", ":1: not JSON: "),
        (
            "s.jsonl",
            '{"hypothesis": "a", "score": 1, "score": 2}\n',
            ":1: not JSON: the key 'score' stands",
        ),
        ("s.jsonl", "[1]\n", ":1: not an object"),
        ("s.jsonl", '{"hypothesis": 1, "score": 1}\n', ":1: 'hypothesis' is 1, expected a text"),
        (
            "s.jsonl",
            '{"hypothesis": "a", "references": [1], "score": 1}\n',
            ":1: 'references[0]' is 1, expected a text",
        ),
        ("s.jsonl", '{"hypothesis": "a", "score": true}\n', ":1: 'score' is True, expected a finite number"),
        ("s.jsonl", '{"hypothesis": "a", "score": null}\n', ":1: 'score' is None, expected a finite number"),
        (
            "s.jsonl",
            '{"hypothesis": "a", "score": 1}\n{"hypothesis": "b", "source": "s", "score": 1}\n',
            ":2: other text columns than the rows before; it has: hypothesis, source, score",
        ),
    ],
)
def test_files_that_cannot_be_used_are_named_with_the_line(
    tmp_path: Path, name: str, content: str, message: str
) -> None:
    path = written(tmp_path, name, content)
    with pytest.raises(DataError, match=re.escape(f"{path}{message}")):
        scores(path, Segment("a"))


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.tsv")
    with pytest.raises(DataError, match=re.escape(f"{missing}: no such file: lookup needs a file of texts and scores")):
        scores(missing, Segment("a"))
    latin = tmp_path / "latin.tsv"
    latin.write_bytes("hypothesis\tscore\nä\t1\n".encode("latin-1"))
    with pytest.raises(DataError, match=re.escape(f"{latin}: is not UTF-8 (byte 17); convert it first")):
        scores(str(latin), Segment("a"))
    with pytest.raises(DataError, match=re.escape(f"{tmp_path}: cannot be read: Is a directory")):
        scores(str(tmp_path), Segment("a"))
    huge = written(tmp_path, "huge.csv", f"hypothesis,score\n{'x' * 200_000},1\n")
    with pytest.raises(DataError, match=re.escape(f"{huge}:2: cannot be read as a table: field larger")):
        scores(huge, Segment("a"))


def test_a_path_must_be_given_as_text() -> None:
    with pytest.raises(SpecError, match=re.escape("lookup needs path: write lookup(path=...)")):
        build("lookup")
