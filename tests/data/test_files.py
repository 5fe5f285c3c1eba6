"""Lines out of plain and packed files."""

import codecs
import gzip
import io
import re
import sys
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from whyscore.data import files as unpacking
from whyscore.data.files import Limits, TextFile, read_lines
from whyscore.errors import DataError, MissingExtra, SpecError


def written(folder: Path, data: bytes, name: str = "ref.txt") -> str:
    path = folder / name
    path.write_bytes(data)
    return str(path)


def messages(path: str) -> list[str]:
    return [str(finding).removeprefix(path) for finding in read_lines(path).findings]


def test_a_plain_file_gives_its_lines_and_no_findings(tmp_path: Path) -> None:
    assert read_lines(written(tmp_path, b"a cat\n\n b \n")) == (["a cat", "", " b "], ())


def test_only_a_newline_ends_a_line(tmp_path: Path) -> None:
    text = "a\u2028b\u0085c\x0cd\x0be\x1cf\rg\u2029h"
    assert read_lines(written(tmp_path, f"{text}\nnext\n".encode())).texts == [text, "next"]


def test_a_missing_last_newline_is_fine_and_noted(tmp_path: Path) -> None:
    path = written(tmp_path, b"a\nb")
    assert read_lines(path).texts == ["a", "b"]
    assert messages(path) == [":2: the last line does not end in a newline; it was read"]


def test_one_carriage_return_before_a_newline_is_removed_and_noted(tmp_path: Path) -> None:
    path = written(tmp_path, b"a\r\nb\nc\r\r\nd\r")
    assert read_lines(path).texts == ["a", "b", "c\r", "d\r"]
    assert messages(path)[0] == ": 2 of 4 lines end in CR LF; the CR was removed"


def test_a_byte_order_mark_is_removed_once_and_noted(tmp_path: Path) -> None:
    path = written(tmp_path, "\ufeff\ufeffa\n\ufeffb\n".encode())
    assert read_lines(path).texts == ["\ufeffa", "\ufeffb"]
    assert messages(path) == [":1: a byte order mark (BOM) was removed"]


@pytest.mark.parametrize("chunk", [1, 2, 3, 5])
def test_chunks_may_end_anywhere(tmp_path: Path, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "CHUNK", chunk)
    path = written(tmp_path, "\ufeffä€𝄞\r\nb\r\n\r\nc".encode())
    assert read_lines(path).texts == ["ä€𝄞", "b", "", "c"]


@pytest.mark.parametrize("data", [b"", "\ufeff".encode()])
def test_an_empty_file_is_an_error(tmp_path: Path, data: bytes) -> None:
    path = written(tmp_path, data)
    with pytest.raises(DataError, match=re.escape(f"{path} is empty: expected one segment a line")):
        read_lines(path)


def test_a_single_newline_is_one_empty_line(tmp_path: Path) -> None:
    assert read_lines(written(tmp_path, b"\n")).texts == [""]


@pytest.mark.parametrize("chunk", [1, 4, 1 << 20])
def test_latin_1_bytes_are_an_error_with_their_position(
    tmp_path: Path, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "CHUNK", chunk)
    path = written(tmp_path, b"ok\ncaf\xe9 au lait\n")
    expected = (
        f"{path}:2: byte 6 (0xe9) is not UTF-8: save the file as UTF-8, or name its encoding, e.g. --encoding latin-1"
    )
    with pytest.raises(DataError, match=re.escape(expected)):
        read_lines(path)
    assert read_lines(path, encoding="latin-1").texts == ["ok", "café au lait"]


def test_a_character_cut_off_at_the_end_is_an_error(tmp_path: Path) -> None:
    path = written(tmp_path, "a\nä".encode()[:-1])
    with pytest.raises(DataError, match=re.escape(f"{path}:2: byte 2 (0xc3) is not UTF-8")):
        read_lines(path)


def test_utf_16_is_told_by_its_mark(tmp_path: Path) -> None:
    for encoding in ("utf-16", "utf-16-be"):
        mark = b"" if encoding == "utf-16" else codecs.BOM_UTF16_BE
        found = read_lines(written(tmp_path, mark + "é\nb\n".encode(encoding)))
        assert found.texts == ["é", "b"]
        assert "utf-16" in {finding.code for finding in found.findings}


@pytest.mark.parametrize("encoding", ["utf-9", "rot13"])
def test_an_unknown_encoding_is_refused(encoding: str) -> None:
    with pytest.raises(SpecError, match=re.escape(f"no text encoding named '{encoding}'")):
        TextFile("x", encoding=encoding)


def test_a_file_that_is_not_there_is_an_error_with_its_name(tmp_path: Path) -> None:
    path = str(tmp_path / "none.txt")
    with pytest.raises(DataError, match=re.escape(f"{path}: cannot be read: No such file or directory")):
        read_lines(path)
    with pytest.raises(DataError, match=re.escape(f"{tmp_path}: cannot be read: Is a directory")):
        read_lines(tmp_path)


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress], ids=["gzip", "zstandard"])
@pytest.mark.parametrize("name", ["a.txt.gz", "a.txt.zst", "a.txt"])
def test_packed_files_are_known_by_their_content(tmp_path: Path, pack: object, name: str) -> None:
    path = written(tmp_path, pack("ä\r\nb\n".encode()), name)  # type: ignore[operator]
    assert read_lines(path).texts == ["ä", "b"]


def test_several_packed_parts_are_read_in_order(tmp_path: Path) -> None:
    assert read_lines(written(tmp_path, gzip.compress(b"a\n") + gzip.compress(b"b\n"))).texts == ["a", "b"]
    assert read_lines(written(tmp_path, zstandard.compress(b"a\n") + zstandard.compress(b"b\n"))).texts == ["a", "b"]


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress], ids=["gzip", "zstandard"])
def test_a_bomb_is_refused_with_the_limit_and_what_raises_it(tmp_path: Path, pack: object) -> None:
    lines = (b"a" * 99 + b"\n") * 100_000
    path = written(tmp_path, pack(lines), "bomb.gz")  # type: ignore[operator]
    expected = (
        f"{path}: unpacks to more than 200 times its packed size, the guard against bombs; raise it with --max-ratio "
        "or Limits(ratio=...)"
    )
    with pytest.raises(DataError, match=re.escape(expected)):
        read_lines(path)
    assert len(read_lines(path, limits=Limits(ratio=100_000)).texts) == 100_000


def test_short_repetitive_texts_are_no_bomb(tmp_path: Path) -> None:
    assert len(read_lines(written(tmp_path, gzip.compress(b"a\n" * 100_000))).texts) == 100_000


def test_a_file_above_the_limit_is_refused_packed_or_not(tmp_path: Path) -> None:
    for name, data in (("a.txt", b"abc\n" * 5), ("a.gz", gzip.compress(b"abc\n" * 5))):
        path = written(tmp_path, data, name)
        expected = (
            f"{path}: holds more than 19 bytes, the limit for a file; raise it with --max-file or Limits(file=...)"
        )
        with pytest.raises(DataError, match=re.escape(expected)):
            read_lines(path, limits=Limits(file=19))
        assert len(read_lines(path, limits=Limits(file=20)).texts) == 5


@pytest.mark.parametrize("end", [b"\n", b""])
def test_a_line_above_the_limit_is_refused(tmp_path: Path, end: bytes) -> None:
    path = written(tmp_path, b"abc\nabcd" + end)
    expected = (
        f"{path}:2: the line is longer than 3 characters, the limit for a line; raise it with --max-line or "
        "Limits(line=...)"
    )
    with pytest.raises(DataError, match=re.escape(expected)):
        read_lines(path, limits=Limits(line=3))
    assert read_lines(path, limits=Limits(line=4)).texts == ["abc", "abcd"]


def test_the_usual_limits_are_those_of_the_documentation() -> None:
    assert Limits() == Limits(line=1_000_000, file=2_000_000_000, ratio=200)
    with pytest.raises(SpecError, match=re.escape("Limits: ratio is 0, expected 1 or more")):
        Limits(ratio=0)


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (gzip.compress(b"a\n" * 1000, mtime=0)[:-9], "gzip"),
        (gzip.compress(b"abc", mtime=0)[:12] + b"\xff" * 20, "gzip"),
        (zstandard.compress(b"abc" * 1000)[:6] + b"\xff" * 9, "Zstandard"),
    ],
)
def test_damaged_packed_data_are_an_error(tmp_path: Path, data: bytes, what: str) -> None:
    path = written(tmp_path, data)
    with pytest.raises(DataError, match=re.escape(f"{path}: the {what} data are damaged or cut off: ")):
        read_lines(path)


def test_a_zip_archive_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, b"PK\x03\x04....")
    with pytest.raises(DataError, match=re.escape(f"{path}: is a zip archive: unpack it first, or pack the file with")):
        read_lines(path)


def test_zstandard_without_its_package_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, zstandard.compress(b"a\n"))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    expected = "reading .zst files needs extra packages: pip install 'whyscore[zstd]'"
    with pytest.raises(MissingExtra, match=re.escape(expected)):
        read_lines(path)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_dash_is_the_standard_input(monkeypatch: pytest.MonkeyPatch, pack: object) -> None:
    data = io.TextIOWrapper(io.BytesIO(pack(b"a\r\nb")))  # type: ignore[operator]
    monkeypatch.setattr(sys, "stdin", data)
    lines = read_lines("-")
    assert lines.texts == ["a", "b"]
    assert str(lines.findings[0]) == "stdin: 1 of 2 lines end in CR LF; the CR was removed"


def test_the_first_line_can_be_looked_at_without_using_it_up(tmp_path: Path) -> None:
    file = TextFile(written(tmp_path, b"a\nb\n"))
    assert file.first() == file.first() == "a"
    assert list(file.lines()) == ["a", "b"]
    assert TextFile(written(tmp_path, b"")).first() == ""


line_texts = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\n")).filter(
    lambda text: not text.endswith("\r")
)


@given(st.lists(line_texts, min_size=1).filter(lambda texts: not texts[0].startswith("\ufeff")), st.integers(1, 9))
def test_lines_come_back_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], chunk: int
) -> None:
    path = written(tmp_path_factory.getbasetemp(), "".join(f"{text}\n" for text in texts).encode(), "property.txt")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unpacking, "CHUNK", chunk)
        assert read_lines(path) == (texts, ())
