"""What looks wrong in a data set."""

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyscore.data import checks as characters
from whyscore.data.checks import CHECKS, findings, search, validate
from whyscore.data.formats.text import from_texts, read_texts
from whyscore.data.reading import read
from whyscore.errors import DataError
from whyscore.types import Dataset, Entry, Finding, Origin, Segment

ENOUGH = 100
SCREEN = 4000


def told(dataset: Dataset) -> list[str]:
    return [str(finding) for finding in findings(dataset)]


def texts_with(*special: str) -> list[str]:
    """Return enough different clean texts, the first of them replaced."""
    return [*special, *(f"clean text {k}" for k in range(ENOUGH - len(special)))]


def test_clean_texts_are_not_complained_about() -> None:
    sources = [f"sauberer Text {k}" for k in range(ENOUGH)]
    assert told(from_texts({"A": texts_with(), "B": texts_with("b")}, [f"r {k}" for k in range(ENOUGH)], sources)) == []


@pytest.mark.parametrize(
    ("special", "code"),
    [
        ("a\u00a0b", "no-break-space"),
        ("a\u00adb", "soft-hyphen"),
        ("a\u200bb", "zero-width"),
        ("a\u200db", "zero-width"),
        ("\ufeffab", "zero-width"),
        ("a\tb", "control-character"),
        ("a\x00b", "control-character"),
        ("a\x7fb", "control-character"),
        ("a\u0085b", "control-character"),
        ("a\u009fb", "control-character"),
        (" a", "extra-spaces"),
        ("a ", "extra-spaces"),
        ("a  b", "extra-spaces"),
        ("", "empty-text"),
    ],
)
def test_characters_that_are_not_seen_are_reported(special: str, code: str) -> None:
    (finding,) = findings(from_texts(texts_with("a", special)))
    assert finding.code == code
    assert finding.message.endswith(" in 1 of 100 hypotheses of hypothesis: segments 1")


@pytest.mark.parametrize(
    "harmless", ["a\u3000b", "a\nb", "a\n\nb", "𝄞", "é", "“a”", "a\u2028b", "ö" * 9, "&c. < 3 > 2"]
)
def test_other_characters_are_left_alone(harmless: str) -> None:
    assert told(from_texts(texts_with(harmless))) == []


def test_a_blank_text_is_empty() -> None:
    assert told(from_texts(texts_with("  ")))[0] == "empty text in 1 of 100 hypotheses of hypothesis: segments 0"


def test_characters_are_counted_and_the_first_places_named() -> None:
    dataset = from_texts(texts_with(*["a\u00a0b\u00a0c"] * 7, "\u00a0"))
    expected = (
        "no-break space (U+00A0) in 8 of 100 hypotheses of hypothesis, 15 in all: segments 0, 1, 2, 3, 4 and 3 more"
    )
    assert told(dataset)[0] == expected


def test_there_is_one_finding_for_each_system_and_side() -> None:
    dataset = from_texts(
        {"A": texts_with("a\u00ad"), "B": texts_with("b\u00ad")}, texts_with("r\u00ad"), texts_with("\u00ads")
    )
    message = "soft hyphen (U+00AD) in 1 of 100 {}: segments 0"
    kinds = ["hypotheses of A", "hypotheses of B", "sources", "texts of reference 1"]
    assert [text for text in told(dataset) if "soft" in text] == [message.format(kind) for kind in kinds]


def test_decomposed_texts_are_reported_and_mixtures_named() -> None:
    decomposed = unicodedata.normalize("NFD", "é")
    expected = (
        "text that is not in NFC in 1 of 100 hypotheses of hypothesis{}; "
        "metrics take them for different characters: segments 0"
    )
    assert told(from_texts(texts_with(decomposed))) == [expected.format("")]
    mixed = told(from_texts(texts_with(decomposed, "ä", "ö")))
    assert mixed == [expected.format(", while 2 others are composed (mixed NFC and NFD)")]


@pytest.mark.parametrize(
    ("code", "stray"),
    [
        *(("unbalanced-tags", text) for text in ("<b>a", "a</b>", "<b><i>a</b></i>", "a <EOS>")),
        *(("html-entities", text) for text in ("a &amp; b", "&#39;", "&#x27;")),
    ],
)
def test_markup_is_reported_in_a_tenth_of_the_lines(code: str, stray: str) -> None:
    assert told(from_texts(texts_with(*[stray] * 9))) == []
    (finding,) = findings(from_texts(texts_with(*[stray] * 10)))
    assert finding.code == code
    assert finding.message.endswith(" in 10 of 100 hypotheses of hypothesis: segments 0, 1, 2, 3, 4 and 5 more")


def test_entities_are_called_so() -> None:
    assert told(from_texts(texts_with(*["a &quot;"] * 10)))[0].startswith("HTML entities such as &quot; in 10 of 100")


@pytest.mark.parametrize("fine", ["<b>a</b>", "a<br>b", "<x/>", "a < b", "AT&T; R&D", '<a href="x">y</a>'])
def test_balanced_markup_is_fine(fine: str) -> None:
    assert told(from_texts([fine] * ENOUGH, languages=None)) == []


def test_copies_of_the_source_are_reported_with_their_share() -> None:
    sources = texts_with("Ein  kleiner Text", "kurz hier", "我们走")
    copies = texts_with("  ein kleiner TEXT ", "kurz hier", "我们走")
    others = [f"other {k}" for k in range(ENOUGH)]
    dataset = from_texts([*copies[:3], *others[3:]], sources=sources)
    expected = "the source is copied in 2 of 100 hypotheses of hypothesis (2.0%): segments 0, 2"
    assert expected in told(dataset)


def test_many_copies_are_said_to_be_many() -> None:
    sources = [f"Satz Nummer {k}" for k in range(ENOUGH)]
    dataset = from_texts([*sources[:6], *(f"sentence number {k}" for k in range(6, ENOUGH))], sources=sources)
    expected = (
        "the source is copied in 6 of 100 hypotheses of hypothesis (6.0%, more than 5%: was this translated at all?): "
        "segments 0, 1, 2, 3, 4 and 1 more"
    )
    assert told(dataset) == [expected]


def test_a_hypothesis_that_is_the_reference_too_often_is_reported() -> None:
    hypotheses = [f"text {k}" for k in range(ENOUGH)]
    leaked = [["other", text] for text in hypotheses[:21]] + [["other", "more"]] * 79
    assert told(from_texts(hypotheses, leaked)) == [
        "21 of 100 hypotheses of hypothesis equal reference 2 (21.0%): a leak, or the wrong file?"
    ]
    assert told(from_texts(hypotheses, [["other", "more"], *leaked[1:]])) == []


def test_identical_systems_are_named() -> None:
    dataset = from_texts({"A": texts_with(), "B": texts_with("b"), "C": texts_with()})
    expected = "systems A and C have the same hypotheses in all 100 segments: the same file twice?"
    assert told(dataset) == [expected]


def test_a_small_test_set_is_reported() -> None:
    expected = "texts has 1 segment: significance tests need about 100 or more"
    assert told(from_texts(["a"])) == [expected]
    assert [finding.code for finding in findings(Dataset("nothing", ()))] == ["few-segments"]
    assert [finding.code for finding in findings(from_texts(texts_with()[:99]))] == ["few-segments"]


def test_findings_point_into_the_files_of_line_aligned_texts(tmp_path: Path) -> None:
    paths = {}
    for name, first in (("src", "s\u00ad"), ("a", "\u00ada"), ("b", "b"), ("ref", "r\u00ad"), ("ref2", "")):
        paths[name] = str(tmp_path / f"{name}.txt")
        (tmp_path / f"{name}.txt").write_text("\n".join(["first", first, *texts_with()]) + "\n", encoding="utf-8")
    dataset = read_texts([paths["a"], paths["b"]], [paths["ref"], paths["ref2"]], paths["src"])
    hyphens = [text for text in told(dataset) if "soft hyphen" in text]
    assert hyphens == [
        f"{paths['a']}:2: soft hyphen (U+00AD) in 1 of 102 hypotheses of a: lines 2",
        f"{paths['src']}:2: soft hyphen (U+00AD) in 1 of 102 sources: lines 2",
    ]


def test_findings_point_into_tables_with_every_line(tmp_path: Path) -> None:
    path = tmp_path / "data.tsv"
    path.write_text("sys\tid\thyp\tsrc\n" + "".join(f"{s}\t{k}\th{s}{k}\ts\u00ad\n" for k in range(100) for s in "AB"))
    expected = f"{path}:2: soft hyphen (U+00AD) in 200 of 200 sources: lines 2, 3, 4, 5, 6 and 195 more"
    assert told(read(path)) == [expected]
    of_one = f"{path}:3: soft hyphen (U+00AD) in 100 of 100 sources: lines 3, 5, 7, 9, 11 and 95 more"
    assert told(read(path).of("B")) == [of_one]


def test_what_was_noticed_while_reading_comes_first(tmp_path: Path) -> None:
    path = tmp_path / "data.tsv"
    path.write_bytes("\ufeffhyp\r\na\r\n".encode())
    assert told(read(path)) == [
        f"{path}:1: a byte order mark (BOM) was removed",
        f"{path}: 2 of 2 lines end in CR LF; the CR was removed",
        "data.tsv has 1 segment: significance tests need about 100 or more",
    ]
    assert [finding.code for finding in findings(read(path))] == ["byte-order-mark", "crlf", "few-segments"]


def test_lines_are_forgotten_where_they_no_longer_fit() -> None:
    entries = tuple(Entry(str(k), "A", Segment("\u00ad")) for k in range(2))
    origin = Origin({"A": "a.txt"}, [1, 2])
    assert told(Dataset("x", entries, origin=origin))[0].startswith("a.txt:1: soft hyphen")
    shorter = Dataset("x", entries[1:], origin=origin)
    assert told(shorter)[0] == "soft hyphen (U+00AD) in 1 of 1 hypotheses of A: segments 1"


def test_findings_are_warnings() -> None:
    assert not any(finding.error for finding in findings(from_texts(["\u00ad"])))
    assert findings(from_texts(["\u00ad"]))[0] == Finding(
        "soft-hyphen", "soft hyphen (U+00AD) in 1 of 1 hypotheses of hypothesis: segments 0"
    )


letters = st.text(st.sampled_from("ab \u00a0\u00ad\u200b\t\x00\x7f\u0085é\u0301\ud800𝄞<>/&;\n"), max_size=7)


@given(st.lists(letters, min_size=1, max_size=8), st.integers(1, 3))
def test_searching_many_texts_at_once_finds_what_searching_each_does(texts: list[str], block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(characters, "_BLOCK", block)
        found = {hits.check.code: hits.rows for hits in search(texts)}
    for check in CHECKS:
        rows = [k for k, text in enumerate(texts) if check.inside(text)]
        assert found.get(check.code, []) == (rows if len(rows) >= check.least_share * len(texts) else [])


def test_findings_are_a_result_with_codes() -> None:
    found = validate(from_texts(["\u00ad"]))
    record = {"kind": "note", "code": "soft-hyphen", "file": None, "line": None}
    assert next(found.records()) == record | {"message": found[0].message}
    assert found.header() == {"name": "texts", "segments": 1, "systems": ["hypothesis"]}
    assert found.tables()[0].columns == ("kind", "code", "file", "line", "message")
    assert len(repr(found)) < SCREEN
    with pytest.raises(DataError, match=r"soft hyphen .* \(and 1 more\)"):
        validate(from_texts(["\u00ad"]), strict=True)


def test_a_dataset_shows_itself_in_a_screenful() -> None:
    data = from_texts({"A": ["x" * 1000 + "<b>"] * 500, "B": ["y"] * 500}, ["r"] * 500, languages=("de", "en"))
    assert repr(data) == "<Dataset 'texts': 2 systems x 500 segments, de to en; 0 findings>"
    assert len(data._repr_html_()) < SCREEN
    assert "<b>" not in data._repr_html_()
    assert next(iter(data.records())) == {
        "id": "0",
        "system": "A",
        "hypothesis": "x" * 1000 + "<b>",
        "source": None,
    } | {"reference_0": "r"}
