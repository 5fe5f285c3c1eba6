"""Files that are there whole or not at all."""

import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from whyscore.data.writing import cut_torn_line, open_whole, temporary_folder, write_lines
from whyscore.errors import DataError, ExecutionError, UserError


def failing() -> Iterator[str]:
    yield "new\n"
    raise RuntimeError("stopped")


def test_lines_are_written_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_lines(path, ["é\r\n", "b\n"])
    assert path.read_bytes() == "é\r\nb\n".encode()
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old\n")
    with pytest.raises(RuntimeError, match="stopped"):
        write_lines(path, failing())
    assert path.read_text() == "old\n"
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_is_seen_before_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with open_whole(path) as file:
        file.write("x\n")
        file.flush()
        assert not path.exists()
    assert path.read_text() == "x\n"


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    target.write_text("old\n")
    link.symlink_to(target)
    write_lines(link, ["new\n"])
    assert link.is_symlink()
    assert target.read_text() == "new\n"


def test_the_file_gets_the_usual_permissions(tmp_path: Path) -> None:
    usual, ours = tmp_path / "usual", tmp_path / "ours"
    usual.write_text("x")
    write_lines(ours, ["x"])
    assert ours.stat().st_mode == usual.stat().st_mode


def test_what_is_no_ordinary_file_is_written_to_directly() -> None:
    write_lines("/dev/null", ["x\n"])


def test_a_full_disk_is_an_error_with_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    path = tmp_path / "a.txt"
    expected = f"{path}: the disk is full; free some space and run again, nothing is lost"
    with pytest.raises(ExecutionError, match=re.escape(expected)):
        write_lines(path, ["x\n"])
    assert list(tmp_path.iterdir()) == []


def test_no_permission_is_an_error_with_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "open", forbidden)
    path = tmp_path / "a.txt"
    with pytest.raises(
        UserError, match=re.escape(f"{path}: cannot be written: Permission denied. Choose another location")
    ):
        write_lines(path, ["x\n"])


def test_a_folder_in_the_way_or_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=re.escape(f"{tmp_path}: cannot be written: Is a directory. Choose another location")
    ):
        write_lines(tmp_path, ["x\n"])
    path = tmp_path / "none" / "a.txt"
    with pytest.raises(UserError, match=re.escape(f"{path}: cannot be written: No such file or directory")):
        write_lines(path, ["x\n"])
    with pytest.raises(UserError, match=re.escape(f"{path}: cannot be written: No such file or directory")):
        cut_torn_line(path)


def test_the_name_of_a_file_that_is_not_utf8_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"run\.json: cannot be written: .*'old\\udcff\.txt' is not UTF-8\. Rename the file"
    ):
        write_lines(tmp_path / "run.json", ["old\udcff.txt"])
    assert not list(tmp_path.iterdir())


def test_a_closed_pipe_is_not_turned_into_an_error_of_the_file(tmp_path: Path) -> None:
    def closed() -> Iterator[str]:
        yield "x\n"
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        write_lines(tmp_path / "a.txt", closed())


def test_what_killed_writers_left_is_removed_and_what_others_write_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, left, foreign = tmp_path / "a[1].txt", tmp_path / ".a[1].txt.0123abcd.tmp", tmp_path / ".b.txt.0123abcd.tmp"
    left.write_text("half")
    foreign.write_text("mine")
    with open_whole(path) as other:
        write_lines(path, ["first\n"])
        other.write("second\n")
    assert path.read_text() == "second\n"
    assert sorted(tmp_path.iterdir()) == sorted([path, foreign])
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    abandoned = tmp_path / "whyscore-store-x"
    abandoned.mkdir()
    (abandoned / "held").touch()
    with temporary_folder() as first, temporary_folder() as second:
        assert first.is_dir()
        assert second.is_dir()
        assert not abandoned.exists()
    assert sorted(tmp_path.iterdir()) == sorted([path, foreign])
