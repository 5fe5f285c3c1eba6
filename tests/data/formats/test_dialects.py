import json
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyscore.data.formats import dialects
from whyscore.data.formats import dialects as dialects_files
from whyscore.data.formats.dialects import Lists, from_codepoints, to_codepoints
from whyscore.data.formats.mqm import read_mqm
from whyscore.data.formats.spans import BadSpan
from whyscore.data.reading import dialect_of, read_foreign
from whyscore.errors import DataError
from whyscore.types import Dataset, Entry, ErrorSpan, Segment, Side

PIECES = ["a", "bb", "né", "日本語", "😀", "e\u0301", "שלום", "x\u00a0y", "👩‍🚀"]
texts = st.lists(st.sampled_from(PIECES), min_size=1, max_size=7).map(" ".join)
severities = st.sampled_from(["minor", "major", "critical"])


@st.composite
def marked(draw: st.DrawFn) -> tuple[str, tuple[ErrorSpan, ...]]:
    text = draw(texts)
    spans = []
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(text) - 1))
        end = draw(st.integers(start + 1, len(text)))
        if text[start:end].strip() == text[start:end]:
            spans.append(ErrorSpan(start, end, draw(severities)))
    return text, tuple(spans)


@cache
def ted(shipped: Path) -> Dataset:
    return read_mqm(shipped / "mqm" / "ted_zhen_ratings.jsonl")


def of_hypothesis(entry: Entry) -> tuple[ErrorSpan, ...]:
    return tuple(span for span in entry.spans or () if span.side is Side.HYPOTHESIS)


def round_trips(text: str, spans: tuple[ErrorSpan, ...]) -> None:
    """Every dialect gives the spans back, and its own form stays the same from then on."""
    notes, lost = Counter[str](), Counter[str]()
    xcomet = dialects.xcomet_items(spans, text, lost)
    again = dialects.xcomet_spans(json.loads(json.dumps(xcomet)), text, notes)
    assert dialects.xcomet_items(again, text, lost) == xcomet
    assert [(one.start, one.end, one.severity) for one in again] == [
        (one.start, one.end, one.severity) for one in spans
    ]
    for unit in dialects.OFFSETS:
        pearmut = dialects.pearmut_items(spans, text, lost, unit)
        back = dialects.pearmut_spans(pearmut, text, notes, unit)
        assert back == tuple(ErrorSpan(one.start, one.end, one.severity, one.category) for one in spans)
        assert dialects.pearmut_items(back, text, lost, unit) == pearmut
    lists = dialects.wmtqe_lists(spans, text, lost)
    assert dialects.wmtqe_lists(dialects.wmtqe_spans(lists, text, notes), text, Counter()) == lists
    rating = dialects.mtme_rating(spans, lost)
    assert dialects.mtme_spans(json.loads(json.dumps(rating)), Segment(text), notes) == spans
    assert not notes


@settings(max_examples=1000)
@given(marked())
def test_generated_spans_survive_every_dialect(case: tuple[str, tuple[ErrorSpan, ...]]) -> None:
    round_trips(*case)


def test_ted_spans_survive_every_dialect(shipped: Path) -> None:
    for entry in ted(shipped).entries:
        round_trips(entry.segment.hypothesis, of_hypothesis(entry))


def test_ted_ratings_survive_mtme_with_their_sources(shipped: Path) -> None:
    lost = Counter[str]()
    for entry in ted(shipped).entries:
        rating = dialects.mtme_rating(entry.spans, lost)
        assert dialects.mtme_spans(rating, entry.segment, lost) == entry.spans
    assert not lost


@given(texts, st.integers(0, 30))
def test_offsets_go_there_and_back(text: str, offset: int) -> None:
    offset = min(offset, len(text))
    for unit in dialects.OFFSETS:
        assert to_codepoints(text, from_codepoints(text, offset, unit), unit) == offset


def test_xcomet_starts_may_include_the_blank_before() -> None:
    notes = Counter[str]()
    [span] = dialects.xcomet_spans([{"start": 1, "end": 5, "text": " bad", "severity": "Major"}], "a bad cat", notes)
    assert (span.start, span.end, span.severity) == (2, 5, "major")
    assert notes == {"blanks trimmed": 1}


def test_a_text_that_its_offsets_do_not_show_is_noted() -> None:
    notes = Counter[str]()
    dialects.xcomet_spans([{"start": 2, "end": 5, "text": "cat", "severity": "minor"}], "a bad cat", notes)
    assert notes == {"text differs from its offsets": 1}


def test_ends_of_esa_spans_are_inclusive_and_omissions_are_missing() -> None:
    notes, lost = Counter[str](), Counter[str]()
    items = [
        {"start_i": 2, "end_i": 4, "severity": "minor"},
        {"start_i": "missing", "end_i": "missing", "severity": "major"},
    ]
    found = dialects.pearmut_spans(items, "a bad", notes)
    assert [(one.start, one.end, one.category) for one in found] == [(2, 5, None), (5, 5, "omission")]
    assert [item["start_i"] for item in dialects.pearmut_items(found, "a bad", lost)] == [2, "missing"]
    dialects.pearmut_items([ErrorSpan(1, 1, "minor")], "a bad", lost)
    assert lost["place of an omission"] == 1


def test_one_place_of_wmt_qe_is_one_character_and_ends_are_clipped() -> None:
    notes = Counter[str]()
    found = dialects.wmtqe_spans(Lists("0 2 5 3", "0 9 5 4", "minor major major minor"), "a bad", notes)
    assert [(one.start, one.end) for one in found] == [(0, 1), (2, 5), (5, 5), (3, 4)]
    assert notes == {"clipped to the text": 1}
    assert dialects.wmtqe_spans(Lists("-1", "-1", "no-error"), "a", notes) == ()
    assert dialects.wmtqe_lists((), "a", notes) == ("-1", "-1", "no-error")


def test_what_a_dialect_cannot_say_is_counted() -> None:
    spans = (
        ErrorSpan(0, 1, "minor", "Style", score=0.5, confidence=0.9),
        ErrorSpan(0, 1, side=Side.SOURCE),
        ErrorSpan(1, 1),
    )
    lost = Counter[str]()
    assert len(dialects.xcomet_items(spans, "a", lost)) == 1
    assert lost == {"span of a source": 1, "category": 1, "score": 1, "omission": 1}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: dialects.xcomet_spans([{"start": 3, "end": 1}], "abc", Counter()), "the span 3-1 is not a valid span"),
        (
            lambda: dialects.xcomet_spans([{"start": "0", "end": 1}], "abc", Counter()),
            "start is '0', expected a whole number",
        ),
        (lambda: dialects.xcomet_spans([7], "abc", Counter()), "expected an object, got 7"),
        (lambda: dialects.wmtqe_spans(Lists("1 2", "3", "minor"), "abc", Counter()), "2 starts, 1 ends and 1 types"),
        (lambda: dialects.wmtqe_spans(Lists("x", "3", "minor"), "abc", Counter()), "'x' is not a whole number"),
        (lambda: dialects.mtme_spans({"errors": 3}, Segment("a"), Counter()), "errors is 3, expected a list"),
        (
            lambda: dialects.wmtqe_spans(Lists("1", "2", "huge"), "abc", Counter()),
            "severity is 'huge', expected neutral",
        ),
        (lambda: dialects.locate(["b"], "aaa"), "the token 'b' is not in the text after character 0"),
        (
            lambda: dialects.token_span(dialects.locate(["a"], "a"), 0, 3),
            "tokens 0 to 3 are outside a text of 1 tokens",
        ),
    ],
)
def test_spans_that_cannot_be_read_say_why(call: object, message: str) -> None:
    with pytest.raises(BadSpan, match=re.escape(message)):
        call()  # type: ignore[operator]


# Whole files


@pytest.mark.parametrize("dialect", ["xcomet", "pearmut", "wmtqe", "mqm", "marot"])
def test_files_come_back_the_same(shipped: Path, tmp_path: Path, dialect: str) -> None:
    from whyscore.analysis.convert import convert

    data = ted(shipped)
    path = tmp_path / ("x.jsonl" if dialect in ("xcomet", "pearmut") else "x.tsv")
    first = convert(data, dialect).lines
    path.write_text("".join(first), "utf-8")
    assert dialect_of(path) == dialect
    assert convert(read_foreign(path), dialect).lines == first


def test_ratings_and_tags_need_their_texts(shipped: Path, tmp_path: Path) -> None:
    from whyscore.analysis.convert import convert
    from whyscore.errors import UserError

    data = ted(shipped)
    for dialect, name in (("mtme", "zh-en.mqm.seg.rating"), ("tags", "x.tgt-tags")):
        path = tmp_path / name
        first = convert(data, dialect).lines
        path.write_text("".join(first), "utf-8")
        assert dialect_of(path) == dialect
        assert convert(read_foreign(path, texts=data), dialect).lines == first
        with pytest.raises(UserError, match=f"holds {dialect} without the texts"):
            read_foreign(path)


def test_marot_tokens_are_found_in_the_text_and_spans_grow_to_words(tmp_path: Path) -> None:
    metadata = {"segment": {"target_tokens": ["a", " ", "bad", "cat"]}, "target_spans": [[2, 3]]}
    cells = ["A", "d", "1", "7", "r", "s", "a badcat", "Style", "Minor", json.dumps(metadata)]
    header = [
        "system",
        "doc",
        "docSegId",
        "globalSegId",
        "rater",
        "source",
        "target",
        "category",
        "severity",
        "metadata",
    ]
    path = tmp_path / "x.tsv"
    path.write_text("\t".join(header) + "\n" + "\t".join(cells) + "\n", "utf-8")
    data = read_foreign(path)
    assert [(span.start, span.end) for span in data.entries[0].spans or ()] == [(2, 8)]
    lost = Counter[str]()
    one = Dataset("x", (Entry("0", "A", Segment("a bad cat"), spans=(ErrorSpan(3, 4, "minor"),)),))
    list(dialects_files.marot_lines(one, lost))
    assert lost == {"grown to whole words": 1}


def test_the_three_header_lines_of_a_wmt_qe_submission_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "sub.txt"
    path.write_text("1234\n5678\n1\nen-de\tme\t0\ta bad cat\t2\t5\tmajor\nen-de\tme\t1\tb\t-1\t-1\tno-error\n", "utf-8")
    data = read_foreign(path)
    assert [entry.spans for entry in data.entries] == [(ErrorSpan(2, 5, "major"),), ()]


def test_an_esa_item_may_hold_several_systems(tmp_path: Path) -> None:
    item = {
        "src": "s",
        "tgt": {"A": "a bad", "B": "b"},
        "error_spans": {"A": [{"start_i": 2, "end_i": 4, "severity": "minor"}], "B": []},
    }
    path = tmp_path / "esa.jsonl"
    path.write_text(json.dumps(item) + "\n", "utf-8")
    assert [(one.system, one.spans) for one in read_foreign(path).entries] == [
        ("A", (ErrorSpan(2, 5, "minor"),)),
        ("B", ()),
    ]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("x.tsv", "LP\tMETHOD\tSEG\tTARGET\tSTARTS\tENDS\tTYPES\n", "holds no rows: expected LP METHOD SEG"),
        ("x.tsv", "LP\tM\tS\tT\tS\tE\tT\na\tb\t0\ttext\t0\t1\tminor\nx\n", "x.tsv:3: expected 7 columns, found 1"),
        ("x.tsv", "LP\tM\tS\tT\tS\tE\tT\na\tb\t0\ttext\t0 1\t1\tminor\n", "x.tsv:2: 2 starts, 1 ends and 1 types"),
        (
            "x.jsonl",
            '{"mt": "a", "error_spans": [{"start": 5, "end": 2}]}\n',
            "x.jsonl:1: the span 5-2 is not a valid span",
        ),
        ("x.jsonl", '{"src": "a", "error_spans": [{"start": 0, "end": 1}]}\n', "x.jsonl:1: no text of the hypothesis"),
    ],
)
def test_files_that_cannot_be_read_say_where(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    with pytest.raises(DataError, match=re.escape(message)):
        read_foreign(tmp_path / name)


def test_tags_must_fit_their_texts(tmp_path: Path) -> None:
    (tmp_path / "x.tags").write_text("0 1\n", "utf-8")
    texts = Dataset("t", (Entry("0", "A", Segment("a b c")),))
    with pytest.raises(DataError, match=re.escape("x.tags:1: 2 tags for 3 words")):
        read_foreign(tmp_path / "x.tags", texts=texts)


def test_a_gold_folder_is_runs_of_marked_words(shipped: Path) -> None:
    data = read_foreign(shipped / "eval4nlp2021" / "dev" / "ro-en")
    assert (len(data), sum(len(entry.spans or ()) for entry in data.entries)) == (1000, 1399)
