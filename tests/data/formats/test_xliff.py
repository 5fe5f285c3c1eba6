import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyscore.data.files import Limits
from whyscore.data.formats.xliff import PLACEHOLDER, read_xliff, severity_of, with_spans
from whyscore.errors import DataError
from whyscore.types import ErrorSpan, Side

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\r\n<!DOCTYPE xliff>\n<!-- é -->'
V12 = (
    HEAD + '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">'
    '<file source-language="de" target-language="en" original="a" datatype="x"><body>\n'
    '<trans-unit id="1"><source>Ich &amp; du <g id="1">habe</g> 😀</source>'
    '<target state="t">I &#38; you <g id="1">ha<x id="2"/>ve 😀</g> it<ph id="3">code</ph><![CDATA[ <b> ]]>.</target>'
    "<alt-trans><target>old</target></alt-trans><note>é</note></trans-unit>\n"
    '<trans-unit id="2" translate="no"><source>x</source><target>x</target></trans-unit>\n'
    '<trans-unit id="3"><source>x</source><target/></trans-unit>\n'
    "</body></file></xliff>\n"
)
V20 = (
    HEAD + '<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en" trgLang="fr">'
    '<file id="f"><unit id="u"><segment id="s1"><source>Hello <pc id="1">world</pc></source>'
    '<target>Bonjour <pc id="1">monde</pc>\r\nsuite</target></segment>'
    "<segment><source>Bye</source><target>Au <mrk id='m' type='term'>revoir</mrk></target></segment></unit>"
    '<unit id="v" translate="no"><segment><source>x</source><target>x</target></segment></unit></file></xliff>'
)


def written(folder: Path, text: str) -> Path:
    path = folder / "x.xlf"
    path.write_bytes(text.encode())
    return path


def test_units_of_version_one(tmp_path: Path) -> None:
    xliff = read_xliff(written(tmp_path, V12))
    data = xliff.dataset("sys")
    [entry] = data.entries
    assert (entry.id, entry.segment.source, entry.segment.hypothesis) == (
        "1",
        "Ich & du habe 😀",
        "I & you have 😀 it <b> .",
    )
    assert data.languages == ("de", "en")
    assert data.findings[0].message == "units without a target, or not to be translated, were left out: 2"


def test_segments_of_version_two(tmp_path: Path) -> None:
    data = read_xliff(written(tmp_path, V20)).dataset("sys")
    assert [(entry.id, entry.segment.hypothesis) for entry in data.entries] == [
        ("u/s1", "Bonjour monde\nsuite"),
        ("u", "Au revoir"),
    ]
    assert data.languages == ("en", "fr")


def test_inline_codes_can_leave_a_character(tmp_path: Path) -> None:
    text = read_xliff(written(tmp_path, V12), inline="placeholder").dataset("s").entries[0].segment.hypothesis
    assert text == f"I & you ha{PLACEHOLDER}ve 😀 it{PLACEHOLDER} <b> ."


@pytest.mark.parametrize("text", [V12, V20])
def test_a_file_without_spans_stays_byte_for_byte(tmp_path: Path, text: str) -> None:
    xliff = read_xliff(written(tmp_path, text))
    assert with_spans(xliff, {}) == with_spans(xliff, {"1": (), "nobody": (ErrorSpan(0, 1),)}) == text.encode()


@pytest.mark.parametrize(("text", "unit"), [(V12, "1"), (V20, "u/s1")])
def test_every_byte_outside_the_marks_is_unchanged(tmp_path: Path, text: str, unit: str) -> None:
    xliff = read_xliff(written(tmp_path, text))
    spans = [ErrorSpan(2, 12, "major", "Accuracy/Mistranslation"), ErrorSpan(9, 13, "minor", 'say "so" & <more>')]
    data = with_spans(xliff, {unit: spans})
    assert data != text.encode()
    # The texts hold no closing mark of their own before the touched units.
    count = len(re.findall(rb"<mrk [^>]*its:loc[^>]*>", data))
    plain = re.sub(rb"<mrk [^>]*its:loc[^>]*>", b"", data).replace(b"</mrk>", b"", count)
    assert count >= 3
    assert plain == text.encode()


@given(st.lists(st.tuples(st.integers(0, 23), st.integers(1, 9)), max_size=4))
def test_marked_characters_come_back_whatever_tags_are_between(cuts: list[tuple[int, int]]) -> None:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        xliff = read_xliff(written(Path(folder), V12))
        length = len(xliff.dataset("s").entries[0].segment.hypothesis)
        spans = [ErrorSpan(start, min(start + size, length), "minor") for start, size in cuts if start < length]
        path = Path(folder) / "y.xlf"
        path.write_bytes(with_spans(xliff, {"1": spans}))
        again = read_xliff(path).dataset("s").entries[0]
    assert again.segment.hypothesis == xliff.dataset("s").entries[0].segment.hypothesis
    covered = {place for span in spans for place in range(span.start, span.end)}
    assert {place for span in again.spans or () for place in range(span.start, span.end)} == covered


def test_a_mark_says_type_comment_and_severity(tmp_path: Path) -> None:
    spans = [ErrorSpan(0, 1, "critical", "Accuracy/Omission"), ErrorSpan(0, 3, None, None, Side.SOURCE)]
    path = tmp_path / "y.xlf"
    path.write_bytes(with_spans(read_xliff(written(tmp_path, V12)), {"1": spans}))
    text = path.read_text("utf-8")
    assert 'its:locQualityIssueType="omission" its:locQualityIssueComment="Accuracy/Omission"' in text
    assert 'its:locQualityIssueSeverity="100">I</mrk>' in text
    again = read_xliff(path).dataset("s").entries[0].spans
    assert again == (
        ErrorSpan(0, 1, "critical", "Accuracy/Omission"),
        ErrorSpan(0, 3, None, "uncategorized", Side.SOURCE),
    )


@pytest.mark.parametrize(("value", "severity"), [("0", "neutral"), ("30", "minor"), ("100", "critical"), ("x", None)])
def test_severities_by_number(value: str, severity: str | None) -> None:
    assert severity_of(value) == severity


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><xliff>&b;</xliff>',
            "x.xlf:1:25: declares entities, which are refused: they can blow a small file up to any size",
        ),
        ("<xliff><file></xliff>", "x.xlf:1:16: not well-formed XML: mismatched tag"),
        ("<tmx/>", "x.xlf:1: not XLIFF: expected a root element xliff"),
        ("<xliff>" + "<g>" * 300, "elements are nested deeper than 256"),
    ],
)
def test_dangerous_or_broken_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        read_xliff(written(tmp_path, text))


def test_other_encodings_and_huge_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.xlf"
    path.write_bytes("<xliff>é</xliff>".encode("latin-1"))
    with pytest.raises(DataError, match=re.escape("byte 7 is not UTF-8: save the file as UTF-8")):
        read_xliff(path)
    with pytest.raises(DataError, match=re.escape("holds more than 5 bytes, the limit for a file")):
        read_xliff(path, limits=Limits(file=5))


def test_a_note_stands_at_the_end_of_a_unit_of_version_one(tmp_path: Path) -> None:
    xliff = read_xliff(written(tmp_path, V12))
    data = with_spans(xliff, {}, {"1": "chrf < 55"}).decode()
    assert data == V12.replace(
        '</note></trans-unit>\n<trans-unit id="2"',
        '</note><note from="whyscore">chrf &lt; 55</note></trans-unit>\n<trans-unit id="2"',
    )


def test_notes_of_version_two_stand_together_before_the_segments(tmp_path: Path) -> None:
    notes = {"u/s1": "chrf 55", "u": "chrf 60"}
    data = with_spans(read_xliff(written(tmp_path, V20)), {}, notes).decode()
    told = "<notes><note>u/s1: chrf 55</note><note>chrf 60</note></notes>"
    assert data == V20.replace('<unit id="u">', f'<unit id="u">{told}')
    already = V20.replace('<unit id="u">', '<unit id="u"><notes><note>mine</note></notes>')
    data = with_spans(read_xliff(written(tmp_path, already)), {}, {"u": "chrf 60"}).decode()
    assert data == already.replace("<note>mine</note>", "<note>mine</note><note>chrf 60</note>")
