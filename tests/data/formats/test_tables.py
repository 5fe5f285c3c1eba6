"""TSV, CSV and the roles of columns."""

import csv
import re
import tracemalloc
from pathlib import Path

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyscore.cli.main import main
from whyscore.data.files import Limits
from whyscore.data.reading import read
from whyscore.errors import DataError, UnknownName
from whyscore.types import Dataset, ErrorSpan, Finding, Segment, Side


def table(folder: Path, text: str, name: str = "data.tsv", **options: object) -> Dataset:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return read(path, **options)  # type: ignore[arg-type]


def refused(folder: Path, text: str, message: str, name: str = "data.tsv", **options: object) -> None:
    with pytest.raises(DataError, match=re.escape(f"{folder / name}{message}")):
        table(folder, text, name, **options)


def test_columns_are_found_by_their_names(tmp_path: Path) -> None:
    text = "SRC\tHYP\tRef\tmodel_id\tseg_id\tdoc\tDA\tlp\tnote\ns\th\tr\tA\t7\td1\t0.5\tde-en\tx\n"
    dataset = table(tmp_path, text)
    (entry,) = dataset.entries
    assert entry.segment == Segment("h", "s", ("r",))
    assert (entry.id, entry.system, entry.document) == ("7", "A", "d1")
    assert entry.human == {"DA": 0.5}
    assert entry.extra == {"lp": "de-en", "note": "x"}
    assert dataset.languages == ("de", "en")
    assert dataset.name == "data.tsv"


@pytest.mark.parametrize(
    ("role", "names"),
    [
        ("hypothesis", "hypothesis hyp mt tgt target translation prediction candidate cand output summary decoded"),
        ("source", "source src input document article"),
        ("references", "reference ref references refs reference_0 ref_a ref1 reference-2"),
    ],
)
def test_every_name_of_a_text_is_understood(tmp_path: Path, role: str, names: str) -> None:
    for name in names.split():
        head = name if role == "hypothesis" else f"hyp\t{name}"
        segment = table(tmp_path, f"{head}\nx\ty\n" if role != "hypothesis" else f"{name}\nx\n").segments[0]
        expected = {"hypothesis": Segment("x"), "source": Segment("x", "y"), "references": Segment("x", None, ("y",))}
        assert segment == expected[role], name


@pytest.mark.parametrize("name", ["score", "da", "da_mean", "z", "z_mean", "mqm", "esa", "hter", "human", "Score"])
def test_every_name_of_a_human_score_is_understood(tmp_path: Path, name: str) -> None:
    assert table(tmp_path, f"hyp\t{name}\nh\t-1.5\n").entries[0].human == {name: -1.5}


def test_two_columns_for_one_role_are_refused(tmp_path: Path) -> None:
    expected = ":1: columns 'mt' and 'tgt' could both be the hypothesis: choose with --columns hypothesis=mt"
    refused(tmp_path, "mt\ttgt\na\tb\n", expected)
    expected = ":1: columns 'ref' and 'reference' could both be the references: choose with --columns references=ref"
    refused(tmp_path, "mt\tref\treference\na\tb\tc\n", expected)


def test_a_chosen_column_settles_it_and_the_other_is_kept(tmp_path: Path) -> None:
    (entry,) = table(tmp_path, "mt\ttgt\na\tb\n", columns={"hypothesis": "tgt", "source": ""}).entries
    assert entry.segment == Segment("b")
    assert entry.extra == {"mt": "a"}


def test_a_role_can_be_switched_off(tmp_path: Path) -> None:
    (entry,) = table(tmp_path, "mt\terrors\na\t3\n", columns={"spans": ""}).entries
    assert (entry.spans, entry.extra) == (None, {"errors": "3"})


def test_numbered_references_are_several_references(tmp_path: Path) -> None:
    dataset = table(tmp_path, "hyp\tref_a\tref_b\nh\tr\tq\ng\t\tq\n")
    assert [segment.references for segment in dataset.segments] == [("r", "q"), ("q",)]
    told = "empty reference, counted as missing because the segment has another: lines 3"
    assert dataset.findings == (Finding("empty-reference", told, str(tmp_path / "data.tsv"), 3),)


def test_a_post_edit_is_a_reference_only_if_asked_for(tmp_path: Path) -> None:
    text = "mt\tpe\na\tb\n"
    assert table(tmp_path, text).entries[0].extra == {"pe": "b"}
    assert table(tmp_path, text, columns={"references": "pe"}).segments[0].references == ("b",)
    several = table(tmp_path, "mt\tpe\tx\na\tb\tc\n", columns={"references": ["x", "pe"]})
    assert several.segments[0].references == ("c", "b")


def test_a_list_of_references_may_stand_in_a_cell(tmp_path: Path) -> None:
    dataset = table(tmp_path, 'hyp\trefs\nh\t["r, 1", "q"]\ng\tplain\nf\t["not JSON\n', quoting="raw")
    assert [segment.references for segment in dataset.segments] == [("r, 1", "q"), ("plain",), ('["not JSON',)]


def test_an_unknown_role_is_answered_with_the_near_one(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match=re.escape("no column role named 'hypotheses'. Did you mean 'hypothesis'?")):
        table(tmp_path, "mt\na\n", columns={"hypotheses": "mt"})


def test_a_chosen_column_that_is_not_there_is_refused(tmp_path: Path) -> None:
    expected = ":1: no column 'MT' for --columns hypothesis=MT; there are: 'mt', 'x'"
    refused(tmp_path, "mt\tx\na\tb\n", expected, columns={"hypothesis": "MT"})
    expected = ": 2 columns are given for the source: give one, --columns source=NAME"
    refused(tmp_path, "mt\tx\ty\na\tb\tc\n", expected, columns={"source": ["x", "y"]})


def test_a_missing_header_is_refused_and_the_cure_works(tmp_path: Path) -> None:
    text = "Guten Morgen, liebe Sorgen, seid ihr auch schon alle da\tGood morning\nJa\tYes\n"
    expected = (
        ":1: no column for the hypothesis among 'Guten Morgen, liebe Sorgen, se...', 'Good morning': the header must "
        "name one of hypothesis, hyp, mt, tgt, target, translation, prediction, candidate, cand, output, summary, "
        "decoded, hypothesis_segment; otherwise pass --columns 'hypothesis=Good morning', or --no-header --columns "
        "hypothesis=NUMBER for a file without a header"
    )
    refused(tmp_path, text, expected)
    dataset = table(tmp_path, text, header=False, columns={"hypothesis": "2", "source": "1"})
    assert dataset.segments[1] == Segment("Yes", "Ja")


def test_numbers_count_columns_where_no_column_has_that_name(tmp_path: Path) -> None:
    text = "2\tx\ty\na\tb\tc\n"
    assert table(tmp_path, text, columns={"hypothesis": "2"}).segments[0].hypothesis == "a"
    assert table(tmp_path, text, columns={"hypothesis": "3"}).segments[0].hypothesis == "c"


def test_a_row_of_other_width_is_refused(tmp_path: Path) -> None:
    text = "hyp\tsrc\tref\tid\n" + "".join(f"h\ts\tr\t{k}\n" for k in range(15)) + "h\ts\tr\n"
    refused(tmp_path, text, ":17: expected 4 columns, found 3")
    refused(tmp_path, "hyp,src\na,b\n\n", ":3: expected 2 columns, found 1", "data.csv")


def test_widths_that_even_out_are_refused_too(tmp_path: Path) -> None:
    refused(tmp_path, "hyp\tsrc\na\tb\tc\nd\n", ":2: expected 2 columns, found 3")


def test_a_header_without_rows_and_an_empty_file_are_refused(tmp_path: Path) -> None:
    refused(tmp_path, "hyp\tsrc\n", " has a header but no rows: expected one segment per line")
    refused(tmp_path, "", " is empty: expected a header line and one segment per line")
    refused(tmp_path, "", " is empty: expected a header line and one segment per line", "data.csv")


def test_a_column_name_given_twice_is_refused(tmp_path: Path) -> None:
    refused(tmp_path, "hyp\tx\tx\na\tb\tc\n", ":1: the header has the column 'x' twice: rename one")


@pytest.mark.parametrize("cell", ["n/a", "nan", "NaN", "inf", "1,5"])
def test_a_human_score_that_is_no_number_is_refused(tmp_path: Path, cell: str) -> None:
    refused(tmp_path, f"hyp\tscore\na\t1\nb\t{cell}\n", f":3: 'score' is \"{cell}\", expected a number")


def test_an_empty_human_score_is_missing(tmp_path: Path) -> None:
    dataset = table(tmp_path, "hyp\tscore\tda\na\t1\t2\nb\t\t3\n")
    assert [entry.human for entry in dataset.entries] == [{"score": 1.0, "da": 2.0}, {"da": 3.0}]


def test_any_number_column_is_a_human_score_if_asked_for(tmp_path: Path) -> None:
    text = "hyp\tHUMAN_score\na\t1.5\n"
    assert table(tmp_path, text).entries[0].extra == {"HUMAN_score": "1.5"}
    assert table(tmp_path, text, human=("HUMAN_score",)).entries[0].human == {"HUMAN_score": 1.5}
    expected = ": no column 'human_score' for --human; there are: 'hyp', 'HUMAN_score'"
    refused(tmp_path, text, expected, human=("human_score",))


def test_the_same_id_twice_in_a_system_is_refused_with_both_lines(tmp_path: Path) -> None:
    expected = ":4: system 'A' has the id '7' twice, first on line 2: give each segment of a system its own id"
    refused(tmp_path, "hyp\tsys\tid\na\tA\t7\nb\tB\t7\nc\tA\t7\n", expected)
    refused(tmp_path, "hyp\tid\na\t7\nb\t8\nc\t7\n", ":4: system 'data' has the id '7' twice, first on line 2")


def test_an_empty_id_or_system_is_refused(tmp_path: Path) -> None:
    refused(tmp_path, "hyp\tid\na\t\n", ":2: 'id' is \"\", expected a name")
    refused(tmp_path, "hyp\tsystem\na\tA\nb\t\n", ":3: 'system' is \"\", expected a name")


def test_without_a_system_column_the_file_is_the_system(tmp_path: Path) -> None:
    assert table(tmp_path, "hyp\na\n", "sysA.tsv").systems == ("sysA",)


def test_without_ids_rows_are_numbered_within_systems_that_are_aligned(tmp_path: Path) -> None:
    aligned = table(tmp_path, "sys\tsrc\thyp\nA\ts\ta\nB\ts\tb\nA\tt\tc\nB\tt\td\n")
    assert [entry.id for entry in aligned.entries] == ["0", "0", "1", "1"]
    other = table(tmp_path, "sys\tsrc\thyp\nA\ts\ta\nA\tt\tb\nB\tt\tc\nB\ts\td\n")
    assert [entry.id for entry in other.entries] == ["0", "1", "2", "3"]
    nothing_to_go_by = table(tmp_path, "sys\thyp\nA\ta\nB\tb\n")
    assert [entry.id for entry in nothing_to_go_by.entries] == ["0", "1"]


def test_languages_come_from_the_caller_or_one_pair_of_all_rows(tmp_path: Path) -> None:
    assert table(tmp_path, "hyp\tsrc_lang\ttgt_lang\na\tzh\ten\n").languages == ("zh", "en")
    mixed = "hyp\tlp\na\tde-en\nb\tfr-en\n"
    assert table(tmp_path, mixed).languages is None
    assert table(tmp_path, mixed, languages=("xx", "en")).languages == ("xx", "en")
    assert table(tmp_path, "hyp\tlp\na\tall\n").languages is None


def test_spans_are_read_from_json_in_a_cell(tmp_path: Path) -> None:
    spans = '[{"start": 0, "end": 1, "severity": "minor"}, {"side": "source", "start": 1, "end": 2}]'
    dataset = table(tmp_path, f"hyp\tsrc\tspans\nab\tcd\t{spans}\nab\tcd\t\nab\tcd\t[]\n", quoting="raw")
    first = (ErrorSpan(0, 1, "minor"), ErrorSpan(1, 2, side=Side.SOURCE))
    assert [entry.spans for entry in dataset.entries] == [first, None, ()]


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ("3", "'spans': expected a list of spans, got 3"),
        ("oops", "'spans': expected a list of spans in JSON, got 'oops'"),
        ("[3]", "'spans': expected a span with start and end, got 3"),
        ('[{"start": 0}]', "'spans': end is None, expected a whole number"),
        ('[{"start": 0, "end": 9}]', "'spans': the span 0-9 is outside a text of 2 characters"),
        ('[{"start": 0, "end": 1, "severity": "bad"}]', "'spans': severity is 'bad', expected neutral, minor, major"),
        ('[{"start": 0, "end": 1, "side": "left"}]', "'spans': side is 'left', expected hypothesis, source, reference"),
        ('[{"start": 0, "end": 1, "side": "source"}]', "'spans': the segment has no source"),
        ('[{"start": 0, "end": 1, "text": "x"}]', "'spans': the span 0-1 holds 'a', but its text is 'x'"),
        ('[{"start": 0, "end": 1, "score": "x"}]', "'spans': score is 'x', expected a number"),
    ],
)
def test_spans_that_do_not_fit_are_refused(tmp_path: Path, spans: str, message: str) -> None:
    refused(tmp_path, f"hyp\tspans\nab\t{spans}\n", f":2: {message}", quoting="raw")


def test_tsv_quotes_are_csv_quoting_where_every_cell_agrees(tmp_path: Path) -> None:
    dataset = table(tmp_path, 'hyp\tsrc\n"a ""b"" c"\td\n"e"\tf\n')
    assert [segment.hypothesis for segment in dataset.segments] == ['a "b" c', "e"]
    assert dataset.findings == (
        Finding("quoting", "quotation marks were read as CSV quoting", str(tmp_path / "data.tsv")),
    )


@pytest.mark.parametrize("cell", ['he said "no"', '"', '"a" b', '"a"b"'])
def test_tsv_quotes_are_plain_where_one_cell_does_not(tmp_path: Path, cell: str) -> None:
    dataset = table(tmp_path, f'hyp\tsrc\n"e"\tf\n{cell}\td\n')
    assert [segment.hypothesis for segment in dataset.segments] == ['"e"', cell]
    assert dataset.findings == (
        Finding("quoting", "quotation marks were read as plain characters", str(tmp_path / "data.tsv")),
    )


def test_tsv_quoting_can_be_chosen(tmp_path: Path) -> None:
    text = 'hyp\tsrc\n"e"\tf\n'
    assert table(tmp_path, text, quoting="raw").segments[0].hypothesis == '"e"'
    several = table(tmp_path, 'hyp\tsrc\n"a\nb"\tf\n', quoting="csv")
    assert several.segments[0].hypothesis == "a\nb"


def test_csv_follows_rfc_4180(tmp_path: Path) -> None:
    text = 'id,hyp,src\r\n1,"a, ""b""\r\nc",d\r\n2,,e\r\n'
    dataset = table(tmp_path, text, "data.csv")
    assert dataset.segments == (Segment('a, "b"\nc', "d"), Segment("", "e"))
    refused(tmp_path, 'id,hyp\n1,"a"b\n', ":2: not valid CSV (RFC 4180): ", "data.csv")
    refused(tmp_path, 'id,hyp\n1,a\n2,"b\nc\n', ":3: not valid CSV (RFC 4180): unexpected end of data", "data.csv")


def test_lines_in_messages_are_those_of_the_file(tmp_path: Path) -> None:
    refused(tmp_path, 'hyp,score\n"a\nb",1\nc,x\n', ":4: 'score' is \"x\", expected a number", "data.csv")


def test_a_csv_cell_may_be_long_and_the_process_keeps_its_limit(tmp_path: Path) -> None:
    before = csv.field_size_limit()
    long = "x" * (before + 1)
    assert table(tmp_path, f"hyp,src\n{long},s\n", "data.csv").segments[0].hypothesis == long
    assert csv.field_size_limit() == before


def test_more_rows_than_a_block_are_all_read(tmp_path: Path) -> None:
    rows = 12_345
    text = "id,hyp,score\n" + "".join(f"{k},h{k},{k}\n" for k in range(rows))
    for name, written in (("data.csv", text), ("data.tsv", text.replace(",", "\t"))):
        dataset = table(tmp_path, written, name)
        assert [entry.segment.hypothesis for entry in dataset.entries] == [f"h{k}" for k in range(rows)]
        assert dataset.human("score").tolist() == list(range(rows))


cells = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\r\n\t"), max_size=8)


@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=6))
def test_csv_cells_come_back_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "property.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("hyp", "src"), *rows])
    assert [(segment.hypothesis, segment.source) for segment in read(path).segments] == rows


@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=6))
def test_raw_tsv_cells_come_back_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "property.tsv"
    text = "".join(f"{one}\t{other}\n" for one, other in [("hyp", "src"), *rows])
    path.write_text(text, encoding="utf-8", newline="")
    dataset = read(path, quoting="raw")
    assert [(segment.hypothesis, segment.source) for segment in dataset.segments] == rows


ENGINES = "Source\tReference\tEngine A\tEngine B\tnote\nx\tthe cat\tthe cat\ta dog\t1\ny\ta dog\tthe cow\ta dog\t2\n"


def test_several_columns_of_hypotheses_are_several_systems(tmp_path: Path) -> None:
    path = tmp_path / "engines.tsv"
    path.write_text(ENGINES, "utf-8")
    data = read(path, columns={"hypothesis": ["Engine A", "Engine B"]})
    assert data.systems == ("Engine A", "Engine B")
    assert data.ids == ("0", "1")
    assert [entry.segment.hypothesis for entry in data.of("Engine B").entries] == ["a dog", "a dog"]
    assert data.first_line == 2
    assert data.describe_columns() == (
        "hypothesis = 'Engine A', 'Engine B'; source = 'Source'; references = 'Reference'; ignored: 'note'"
    )


def test_every_column_of_hypotheses_is_scored_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "engines.tsv"
    path.write_text(ENGINES, "utf-8")
    asked = [
        "score",
        str(path),
        "--columns",
        "hypothesis=Engine A",
        "hypothesis=Engine B",
        "-m",
        "chrf",
        "--store",
        "none",
    ]
    assert main(asked) == 0
    out, err = capsys.readouterr()
    assert "Engine A" in out
    assert "Engine B" in out
    assert "columns: hypothesis = 'Engine A', 'Engine B'" in err
    assert "ignored: 'note'" in err
    assert main(["validate", *asked[1:5]]) == 0
    assert "ignored: 'note'" in capsys.readouterr().out


def test_several_columns_of_hypotheses_and_one_of_systems_contradict(tmp_path: Path) -> None:
    path = tmp_path / "engines.tsv"
    path.write_text(ENGINES.replace("note", "system"), "utf-8")
    with pytest.raises(DataError, match="leave it out with --columns system="):
        read(path, columns={"hypothesis": ["Engine A", "Engine B"]})
    assert read(path, columns={"hypothesis": ["Engine A", "Engine B"], "system": ""}).systems == (
        "Engine A",
        "Engine B",
    )


def test_a_table_of_the_wmt25_evaluation_task_needs_no_option(tmp_path: Path) -> None:
    head = "doc_id segment_id source_lang target_lang set_id system_id source_segment hypothesis_segment "
    head += "reference_segment domain_name method"
    rows = [
        ("d1", "1", "en", "de", "test", "S1", "a cat", "eine Katze", "eine Katze", "news", "x"),
        ("d2", "1", "en", "de", "test", "S1", "a dog", "ein Hund", "ein Hund", "news", "x"),
        ("d1", "1", "en", "de", "test", "S2", "a cat", "die Katze", "eine Katze", "news", "x"),
        ("d2", "1", "en", "de", "test", "S2", "a dog", "der Hund", "ein Hund", "news", "x"),
    ]
    text = "".join("\t".join(row) + "\n" for row in (head.split(), *rows))
    data = table(tmp_path, text)
    assert (data.systems, data.ids, data.languages) == (("S1", "S2"), ("d1:1", "d2:1"), ("en", "de"))
    assert data.entries[0].segment == Segment("eine Katze", "a cat", ("eine Katze",))
    assert data.entries[0].document == "d1"


@pytest.mark.parametrize("sign", [";", "\t", "|"])
def test_the_header_tells_what_separates_the_columns(tmp_path: Path, sign: str) -> None:
    text = f'source{sign}reference, official{sign}mt\nx{sign}"a, b"{sign}c\n'
    data = table(tmp_path, text, "data.csv", columns={"references": "reference, official"})
    assert data.segments == (Segment("c", "x", ("a, b",)),)
    assert "delimiter" in {finding.code for finding in data.findings}
    assert table(tmp_path, "mt,note\na,b;c;d;e\n", "other.csv").segments == (Segment("a"),)


def workbook(path: Path, *rows: tuple[object, ...]) -> Path:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


def test_a_workbook_is_a_table(tmp_path: Path) -> None:
    head = ("id", "Source", "Reference", "Engine A", "Engine B")
    path = workbook(
        tmp_path / "x.xlsx", head, (1, "eine Katze", "a cat", "the cat", "a cat"), (2.5, "x", "y", "a b", "c d")
    )
    data = read(path)
    assert (data.systems, data.ids) == (("Engine A", "Engine B"), ("1", "2.5"))
    assert data.entries[0].segment == Segment("the cat", "eine Katze", ("a cat",))


def test_cells_far_out_take_no_memory(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.append(("mt", "ref"))
    for row in range(2, 802):
        book.active.append(("a", "b"))
        book.active.cell(row, 16_384, "far out")
    book.save(tmp_path / "x.xlsx")
    tracemalloc.start()
    try:
        assert len(read(tmp_path / "x.xlsx")) == 800
        assert tracemalloc.get_traced_memory()[1] < 20_000_000  # filled in, the rows alone would take 105,000,000
    finally:
        tracemalloc.stop()


def test_formulas_of_a_workbook_are_not_evaluated(tmp_path: Path) -> None:
    data = read(workbook(tmp_path / "x.xlsx", ("mt", "ref"), ("=1+1", "two"), ("one", "one")))
    assert [segment.hypothesis for segment in data.segments] == ["", "one"]


def test_what_is_no_workbook_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.xlsx"
    path.write_bytes(b"mt\tref\n")
    with pytest.raises(DataError, match="cannot be read as an Excel workbook"):
        read(path)
    with pytest.raises(DataError, match="has a header but no rows"):
        read(workbook(path, ("mt", "ref")))
    with pytest.raises(DataError, match="has the column 'mt' twice"):
        read(workbook(path, ("mt", "mt"), ("a", "b")))
    with pytest.raises(DataError, match="unpacks to"):
        read(path, limits=Limits(file=100))
