"""Line-aligned texts, and texts given directly."""

import random
import re
from pathlib import Path

import pytest

from whyscore.data.formats.text import first_drift, from_literals, from_texts, read_texts
from whyscore.data.naming import system_names
from whyscore.errors import DataError
from whyscore.types import Finding, Segment


def files(folder: Path, **texts: str) -> dict[str, str]:
    paths = {}
    for name, text in texts.items():
        path = folder / f"{name}.txt"
        path.write_text(text, encoding="utf-8", newline="")
        paths[name] = str(path)
    return paths


def test_lines_become_segments_system_by_system(tmp_path: Path) -> None:
    at = files(tmp_path, src="s1\ns2\n", a="a1\na2\n", b="b1\nb2\n", r="r1\nr2\n", q="q1\nq2\n")
    dataset = read_texts([at["a"], at["b"]], [at["r"], at["q"]], at["src"], languages=("de", "en"))
    assert [(entry.id, entry.system) for entry in dataset.entries] == [("0", "a"), ("1", "a"), ("0", "b"), ("1", "b")]
    assert dataset.segments[3] == Segment("b2", "s2", ("r2", "q2"))
    assert dataset.languages == ("de", "en")
    assert dataset.name == "r.txt"
    assert dataset.findings == ()


def test_texts_are_not_changed(tmp_path: Path) -> None:
    at = files(tmp_path, a=" a\u00a0 \u0301 \n", r="r\n")
    assert read_texts([at["a"]], [at["r"]]).segments[0].hypothesis == " a\u00a0 \u0301 "


def test_one_path_stands_for_a_list_of_one(tmp_path: Path) -> None:
    at = files(tmp_path, a="a\n", r="r\n")
    assert read_texts(at["a"], at["r"]).segments == (Segment("a", None, ("r",)),)


def test_source_and_references_are_not_needed(tmp_path: Path) -> None:
    at = files(tmp_path, a="a\n")
    assert read_texts([at["a"]]).segments == (Segment("a"),)


def sentences(count: int) -> list[str]:
    draw = random.Random(1)
    return [" ".join("w" * draw.randint(1, 9) for _ in range(draw.randint(3, 30))) for _ in range(count)]


def test_unequal_files_are_refused_with_the_first_likely_drift(tmp_path: Path) -> None:
    lines = sentences(1000)
    short = lines[:411] + lines[412:]
    at = files(tmp_path, sys="\n".join(short) + "\n", ref="\n".join(lines) + "\n")
    expected = (
        f"{at['sys']} has 999 lines, {at['ref']} has 1000: line counts must match; first likely drift at line 412"
    )
    with pytest.raises(DataError, match=re.escape(expected)):
        read_texts([at["sys"]], [at["ref"]])
    expected = (
        f"{at['ref']} has 1000 lines, {at['sys']} has 999: line counts must match; first likely drift at line 412"
    )
    with pytest.raises(DataError, match=re.escape(expected)):
        read_texts([at["ref"]], [at["sys"]])


def test_without_a_drift_the_first_missing_line_is_named(tmp_path: Path) -> None:
    lines = sentences(100)
    at = files(tmp_path, sys="\n".join(lines[:-2]) + "\n", ref="\n".join(lines) + "\n", src="a\nb\n", one="a\n")
    expected = "98 lines, {} has 100: line counts must match; the first line missing from {} is line 99"
    with pytest.raises(DataError, match=re.escape(expected.format(at["ref"], at["sys"]))):
        read_texts([at["sys"]], [at["ref"]])
    with pytest.raises(DataError, match=re.escape(f"the first line missing from {at['one']} is line 2")):
        read_texts([at["src"]], [at["one"]])


def test_numbers_show_a_drift_that_lengths_do_not() -> None:
    lines = [f"chapter {k:04d}" for k in range(60)]
    assert first_drift(lines[:30] + lines[31:], lines) == 31
    assert first_drift(lines, lines[:7] + lines[8:]) == 8
    assert first_drift(lines[:-1], lines) is None


def test_a_drift_is_found_across_languages_of_different_length() -> None:
    lines = sentences(300)
    longer = [line + line[: len(line) // 2] for line in lines]
    assert first_drift(lines[:99] + lines[100:], longer) == 100


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["out/sysA.txt", "out/sysB.txt.gz"], ["sysA", "sysB"]),
        (["a/out.txt", "b/out.txt", "c.txt"], ["a/out", "b/out", "c"]),
        (["out.txt", "b/out.txt"], ["out", "b/out"]),
        (["x/a/out.txt", "y/a/out.txt", "x/b/out.txt"], ["x/a/out", "y/a/out", "b/out"]),
        (["out.de", "out.en"], ["out.de", "out.en"]),
        (["news.sysA.en", "news.sysB.en"], ["news.sysA", "news.sysB"]),
        (["-"], ["stdin"]),
    ],
)
def test_systems_are_named_by_the_shortest_path_that_tells_them_apart(paths: list[str], names: list[str]) -> None:
    assert system_names(paths) == names


def test_equal_system_names_are_refused(tmp_path: Path) -> None:
    at = files(tmp_path, a="a\n", b="b\n")
    expected = "2 systems are named 'x': give each its own name with --systems"
    with pytest.raises(DataError, match=re.escape(expected)):
        read_texts([at["a"], at["b"]], systems=["x", "x"])
    with pytest.raises(DataError, match=re.escape("2 systems are named ")):
        read_texts([at["a"], at["a"]])
    with pytest.raises(DataError, match=re.escape(expected)):
        from_literals(["a", "b"], systems=["x", "x"])


def test_the_number_of_names_must_fit(tmp_path: Path) -> None:
    at = files(tmp_path, a="a\n")
    with pytest.raises(DataError, match=re.escape("2 system names for 1 hypothesis files: give one name per file")):
        read_texts([at["a"]], systems=["x", "y"])
    with pytest.raises(DataError, match=re.escape("1 system names for 2 hypotheses: give one name per text")):
        from_literals(["a", "b"], systems=["x"])
    assert read_texts([at["a"]], systems=["x"]).systems == ("x",)


def test_no_hypotheses_are_refused() -> None:
    with pytest.raises(DataError, match=re.escape("there are no hypotheses: give one file per system with -t")):
        read_texts([])
    for nothing in ([], {}, {"a": []}):
        with pytest.raises(DataError, match=re.escape("there are no hypotheses: give at least one")):
            from_texts(nothing)


def test_the_standard_input_can_be_given_once() -> None:
    expected = "- (the standard input) is given more than once, but can be read once: use a file"
    with pytest.raises(DataError, match=re.escape(expected)):
        read_texts(["-"], ["-"])


def test_an_empty_reference_is_missing_where_there_is_another(tmp_path: Path) -> None:
    at = files(tmp_path, a="a\nb\nc\n", r="r1\n\nr3\n", q="q1\nq2\n \n")
    dataset = read_texts([at["a"]], [at["r"], at["q"]])
    assert [segment.references for segment in dataset.segments] == [("r1", "q1"), ("q2",), ("r3",)]
    told = "empty reference, counted as missing because the segment has another: lines "
    assert dataset.findings == (
        Finding("empty-reference", f"{told}2", at["r"], 2),
        Finding("empty-reference", f"{told}3", at["q"], 3),
    )


def test_an_empty_reference_without_another_leaves_none(tmp_path: Path) -> None:
    at = files(tmp_path, a="a\nb\n", r="r1\n\n")
    dataset = read_texts([at["a"]], [at["r"]])
    assert [segment.references for segment in dataset.segments] == [("r1",), ()]
    message = "empty reference and no other: metrics that read references cannot score lines 2"
    assert dataset.findings == (Finding("no-reference", message, at["r"], 2),)


def test_what_was_noticed_in_any_file_is_passed_on(tmp_path: Path) -> None:
    at = files(tmp_path, a="a\r\n", r="\ufeffr\n")
    findings = [str(finding) for finding in read_texts([at["a"]], [at["r"]]).findings]
    assert findings == [
        f"{at['r']}:1: a byte order mark (BOM) was removed",
        f"{at['a']}: 1 of 1 lines end in CR LF; the CR was removed",
    ]


def test_python_texts_take_one_reference_or_several_per_segment() -> None:
    dataset = from_texts(["a", "b"], ["r", ["q1", "q2"]], ["s", "t"], languages=("de", "en"))
    assert dataset.segments == (Segment("a", "s", ("r",)), Segment("b", "t", ("q1", "q2")))
    assert (dataset.systems, dataset.ids, dataset.languages) == (("hypothesis",), ("0", "1"), ("de", "en"))


def test_python_texts_of_several_systems_share_their_references() -> None:
    dataset = from_texts({"A": ["a"], "B": ["b"]}, ["r"])
    assert [(entry.system, entry.segment.references) for entry in dataset.entries] == [("A", ("r",)), ("B", ("r",))]


def test_transposed_references_are_refused() -> None:
    hypotheses = ["h"] * 1000
    expected = (
        "references look transposed: 2 lists of 1000 texts for 1000 segments; pass one list per segment, "
        "e.g. list(zip(*refs))"
    )
    with pytest.raises(DataError, match=re.escape(expected)):
        from_texts(hypotheses, [["r"] * 1000, ["q"] * 1000])
    given = list(zip(["r"] * 1000, ["q"] * 1000, strict=True))
    assert from_texts(hypotheses, given).segments[0].references == ("r", "q")


def test_as_many_reference_sets_as_segments_are_accepted_with_a_warning() -> None:
    dataset = from_texts(["a", "b"], [["r1", "r2"], ["q1", "q2"]])
    assert dataset.segments[0].references == ("r1", "r2")
    expected = (
        "references are 2 lists of 2 texts for 2 segments: taken as one list per segment; if they are one list per "
        "reference set, pass list(zip(*refs))"
    )
    assert dataset.findings == (Finding("ambiguous-references", expected),)
    assert from_texts(["a"], [["r"]]).findings == ()
    assert from_texts(["a", "b"], ["r", "q"]).findings == ()


def test_texts_of_different_number_are_refused() -> None:
    with pytest.raises(DataError, match=re.escape("1 references for 2 hypotheses: give one text or one list per seg")):
        from_texts(["a", "b"], ["r"])
    with pytest.raises(DataError, match=re.escape("3 sources for 2 hypotheses: give one per segment")):
        from_texts(["a", "b"], sources=["s", "t", "u"])
    with pytest.raises(DataError, match=re.escape("'B' has 1 hypotheses, 'A' has 2: every system needs all segments")):
        from_texts({"A": ["a", "b"], "B": ["c"]})


def test_a_text_where_a_list_belongs_is_refused() -> None:
    with pytest.raises(DataError, match=re.escape("hypotheses must be a list of texts, got one text: put it in")):
        from_texts("a cat")
    with pytest.raises(DataError, match=re.escape("sources must be a list of texts, got one text: put it in brackets")):
        from_texts(["a"], sources="s")
    with pytest.raises(DataError, match=re.escape("references must be a list with one text or list per segment, got")):
        from_texts(["a"], "r")


def test_python_texts_drop_empty_references_too() -> None:
    dataset = from_texts(["a", "b"], [["", "q"], ""])
    assert [segment.references for segment in dataset.segments] == [("q",), ()]
    assert [finding.file for finding in dataset.findings] == ["reference 1", "references"]


def test_literal_texts_stand_for_files_of_one_line() -> None:
    dataset = from_literals(["a cat", "a dog"], ["the dog", "one dog"], "ein Hund")
    assert dataset.systems == ("system 1", "system 2")
    assert dataset.segments[1] == Segment("a dog", "ein Hund", ("the dog", "one dog"))
    assert from_literals(["a"]).segments == (Segment("a"),)
