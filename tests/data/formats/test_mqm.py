import csv
import json
import math
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from whyscore.data.formats.mqm import (
    XCOMET,
    carry_span,
    mark_span,
    mqm_rows,
    read_mqm,
    read_ratings,
    strip_marks,
    trim,
    weights_of,
)
from whyscore.errors import DataError, SpecError
from whyscore.stats.annotators import GOOGLE, Weights
from whyscore.stats.spans import to_levels
from whyscore.text.splitters import white_space
from whyscore.types import Dataset, Side

HEADER = "system\tdoc\tdoc_id\tseg_id\trater\tsource\ttarget\tcategory\tseverity\n"


@cache
def ted(path: Path) -> Dataset:
    return read_mqm(path)


def table(folder: Path, *rows: str, header: str = HEADER) -> Path:
    path = folder / "mqm.tsv"
    path.write_text(header + "".join(f"{row}\n" for row in rows), "utf-8")
    return path


def row(target: str, category: str, severity: str, *, rater: str = "r1", source: str = "s") -> str:
    return f"A\td\t1\t7\t{rater}\t{source}\t{target}\t{category}\t{severity}"


@pytest.mark.parametrize(
    ("text", "plain", "spans", "lone", "trimmed"),
    [
        ("no marks", "no marks", (), False, 0),
        ("a <v>bad</v> cat", "a bad cat", ((2, 5),), False, 0),
        ("a <v> bad</v> cat", "a  bad cat", ((3, 6),), False, 1),
        ("a <v>bad cat", "a bad cat", ((2, 9),), True, 0),
        ("a bad</v> cat", "a bad cat", ((0, 5),), True, 0),
        ("<v>a</v> b <v>c</v>", "a b c", ((0, 1), (4, 5)), False, 0),
    ],
)
def test_marks_are_taken_out(text: str, plain: str, spans: object, lone: bool, trimmed: int) -> None:  # noqa: FBT001
    assert strip_marks(text) == (plain, spans, lone, trimmed)


def test_marking_is_the_way_back() -> None:
    assert strip_marks(mark_span("a bad cat", (2, 5)))[:2] == ("a bad cat", ((2, 5),))
    assert trim("a   b", (1, 4)) == (1, 1)


def test_spans_are_carried_over_to_a_slightly_different_text() -> None:
    assert carry_span("a bad cat", (2, 5), "a  bad cat") == (3, 6)
    assert carry_span("the bad cat", (4, 7), "the bad, cat") == (4, 7)


def test_ted_ratings_have_the_published_marks(shipped: Path) -> None:
    path = shipped / "mqm" / "ted_zhen_ratings.jsonl"
    rows, data = list(read_ratings(path)), ted(path)
    assert (len(rows), len(data), len(data.systems), len(data.ids)) == (9915, 7935, 15, 529)
    assert sum(one.nothing for one in rows) == sum(not entry.spans for entry in data.entries) == 4297
    spans = [span for entry in data.entries for span in entry.spans or ()]
    assert Counter((span.side, span.severity) for span in spans if span.side is Side.HYPOTHESIS) == {
        (Side.HYPOTHESIS, "major"): 3101,
        (Side.HYPOTHESIS, "minor"): 2168,
    }
    assert Counter(span.category for span in spans if span.side is Side.SOURCE) == {
        "Accuracy/Omission": 311,
        "Source error": 38,
    }
    told = [(finding.line, finding.message) for finding in data.findings]
    assert [(line, re.findall(r": (\d+), lines", message)[0]) for line, message in told] == [
        (9621, "1"),
        (326, "49"),
        (937, "10"),
    ]


def test_ted_words_touched_by_a_span(shipped: Path) -> None:
    total = touched = 0
    for entry in ted(shipped / "mqm" / "ted_zhen_ratings.jsonl").entries:
        words = white_space(entry.segment.hypothesis)
        own = [span for span in entry.spans or () if span.side is Side.HYPOTHESIS]
        total, touched = total + len(words), touched + int((to_levels(words, own) > 0).sum())
    assert (total, touched) == (130282, 15162)


def test_ted_scores_from_raw_ratings(shipped: Path) -> None:
    with (shipped / "mqm" / "ted_zhen_mqm_expected.csv").open(encoding="utf-8") as file:
        wanted = {(row["system"], row["seg_id"]): float(row["mqm"]) for row in csv.DictReader(file)}
    data = ted(shipped / "mqm" / "ted_zhen_ratings.jsonl")
    found = {(entry.system, entry.id): entry.human["mqm"] for entry in data.entries}
    assert found.keys() == wanted.keys()
    assert max(abs(found[key] - wanted[key]) for key in wanted) <= 1e-12
    for system, mean in {"ref-B": -0.4153, "DIDI-NLP": -1.6509, "ref-A": -5.5151}.items():
        own = [value for (name, _), value in found.items() if name == system]
        assert math.fsum(own) / len(own) == pytest.approx(mean, abs=5e-5)


@pytest.mark.parametrize(
    ("rows", "google", "xcomet"),
    [
        ([row("x", "No-error", "No-error")], 0.0, 0.0),
        ([row("<v>x</v>", "Fluency/Punctuation", "Minor"), row("<v>x</v>", "Style", "Minor")], -1.1, -2.0),
        ([row("<v>x</v>", "Non-translation!", "Major")], -25.0, -5.0),
        ([row("<v>x</v>", "Accuracy", "Major")] * 6, -30.0, -25.0),
        ([row("<v>x</v>", "Accuracy", "Major"), row("x", "No-error", "No-error", rater="r2")], -2.5, -2.5),
        ([row("<v>x</v>", "Other", "Neutral")], 0.0, 0.0),
    ],
)
def test_scores_by_hand(tmp_path: Path, rows: list[str], google: float, xcomet: float) -> None:
    path = table(tmp_path, *rows)
    for weights, score in ((GOOGLE, google), (XCOMET, xcomet), (Weights({}), 0.0)):
        assert read_mqm(path, weights).entries[0].human["mqm"] == pytest.approx(score, abs=1e-12)


def test_a_row_with_another_text_is_repaired_and_told(tmp_path: Path) -> None:
    path = table(tmp_path, row("a <v>bad</v> cat", "A", "Major"), row("a  bad <v>cat</v>", "A", "Minor"))
    data = read_mqm(path)
    assert [(span.start, span.end) for span in data.entries[0].spans or ()] == [(2, 5), (6, 9)]
    [finding] = data.findings
    assert str(finding) == (
        f"{path}:3: spans were transferred from rows whose text differs from the first row of the segment: 1, lines 3"
    )


def test_quotation_marks_are_characters(tmp_path: Path) -> None:
    data = read_mqm(table(tmp_path, row('"a <v>bad</v> "cat', "A", "Major")))
    assert data.entries[0].segment.hypothesis == '"a bad "cat'


def test_rows_come_out_as_they_went_in(shipped: Path, tmp_path: Path) -> None:
    path = shipped / "mqm" / "ted_zhen_ratings.jsonl"
    lost: Counter[str] = Counter()
    rows = ["\t".join(cells) for cells in mqm_rows(ted(path), lost)]
    assert not lost
    again = read_mqm(table(tmp_path, *rows[1:], header=f"{rows[0]}\n"))
    assert [entry.spans for entry in again.entries] == [entry.spans for entry in ted(path).entries]
    assert [entry.human for entry in again.entries] == [entry.human for entry in ted(path).entries]
    # Byte for byte, but for what reading put right: the trimmed edges and the mark without its counterpart.
    given = Counter()
    for line in path.read_text("utf-8").split("\n")[:-1]:
        value = json.loads(line)
        given[value["system"], str(value["seg_id"]), value["source"], value["target"]] += 1
    written = Counter((cells[0], cells[3], cells[5], cells[6]) for cells in (text.split("\t") for text in rows[1:]))
    assert sum((given - written).values()) == 49 + 1


@pytest.mark.parametrize(
    ("header", "rows", "message"),
    [
        (HEADER, ["A\td\t1"], "mqm.tsv:2: expected 9 columns, found 3"),
        (HEADER, [row("x", "A", "Huge")], "mqm.tsv:2: severity is 'Huge', expected Minor, Major, Neutral or No-error"),
        ("system\ttarget\n", ["A\tx"], "mqm.tsv:2: no column 'seg_id' among system, target: MQM ratings need system"),
        (HEADER, [], "holds no ratings: expected one error per row"),
    ],
)
def test_tables_that_are_no_ratings_are_refused(tmp_path: Path, header: str, rows: list[str], message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        read_mqm(table(tmp_path, *rows, header=header))


def test_unknown_weights_are_refused() -> None:
    with pytest.raises(SpecError, match=re.escape("no MQM weights named 'x': use google, xcomet, or give a table")):
        weights_of("x")
